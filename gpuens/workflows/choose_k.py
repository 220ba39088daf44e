"""The choice of the number of clusters: criteria for each candidate, and a suggestion with reasons and alternatives.

The base clusterings suggest a number of clusters (`gpuens.evidence.suggestion`), by the groups that they share and by
their own numbers. A method without a given number of clusters uses the same suggestion. To show how certain
a consensus of k clusters is, samples of the objects are clustered into k clusters.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import cached_property, partial
from itertools import pairwise
from numbers import Integral
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gpuens import __version__, generate
from gpuens.evidence import ConsensusMatrix, Evidence, Spectrum, Suggestion, pairs
from gpuens.evidence.inputs import CONVENTIONS
from gpuens.evidence.spectrum import LARGEST
from gpuens.evidence.suggestion import suggestion_of
from gpuens.generate.kmeans import share
from gpuens.generate.suggestion import suggestion_by_features
from gpuens.io.checkpoint import Arrays, Checkpoint, digest, found_anew
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import Features
from gpuens.labels.object_names import in_one_order, in_order_of
from gpuens.labels.rows import Rows
from gpuens.labels.weights import copies_of
from gpuens.methods.lopsided import remedy_of, why_lopsided, without_lopsided_warnings
from gpuens.reduction import core_groups
from gpuens.runtime import checks, progress
from gpuens.runtime import device as devices
from gpuens.runtime.defaults import METHOD
from gpuens.runtime.exponentials import natural_logarithms
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng
from gpuens.workflows.choice import (
    Choice,
    Criteria,
    choice_by_score,
    choice_by_silhouette,
    compare_with_chance,
    compare_with_references,
)
from gpuens.workflows.compare import default_estimator

BOOTSTRAPS = 1000  # bootstrap samples for the interval of the silhouette
LEAST_PAC = 1e-4  # smaller values of PAC are raised to this limit, because the RCSI takes the logarithm of PAC
LEAST_NULL = 19  # smallest number of reference data sets that can show significance at LEVEL
SHARE = 0.8  # share of all objects that each clustering contains, by default
PARTS = 4  # version number of the format in which the ``resume`` folder stores results
CRITERION = "criterion_"  # prefix of the name of a criterion in such a result
ROWS_COMPARED = 256  # number of feature rows that are added at a time while distinct rows are counted


@takes_rng
def choose_k(
    labels: Any = None,
    *,
    features: Any = None,
    sample_weight: Any = None,
    ks: Iterable[int] | None = None,
    method: str = METHOD,
    n_clusterings: int = 50,
    objects: float = SHARE,
    n_init: int = 5,
    null: int = 0,
    scale: str = "auto",
    missing: str = "ignore",
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
    resume: str | os.PathLike[str] | None = None,
    device: str = "auto",
) -> Choice:
    """Compare candidate numbers of clusters and suggest one of them.

    One ensemble suggests the number, by the groups that its clusterings share and by their own numbers of clusters
    (`gpuens.evidence.suggestion`). `gpuens.consensus` and `gpuens.cluster` choose in the same way if no number is
    given. The ensemble is that of the labels, or k-means and landmark clusterings of the features (of at most 10,000
    objects). If the suggestion is in doubt, `Choice.doubt` says why.

    chooseR's suggestion is the most clusters whose median silhouette reaches the best lower limit of the bootstrap
    intervals. With features, it is a second suggestion; with a dict of labels for each k, it is the only one.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes, or a dict of int to such, optional
        The base clusterings: one ensemble for all k, or, in a dict, for each k clusterings of k clusters.
    features : array (n_objects, n_features), optional
        In place of labels. k-means finds ``n_clusterings`` clusterings for each k (Monti's consensus clustering). Ten
        k-means and ten landmark clusterings of 2 … √N clusters form the ensemble of the suggestion.
    sample_weight : array (n_objects,), optional
        With one ensemble: positive whole numbers; an object of weight 3 counts as three objects. They are divided by
        their greatest common divisor; "smallest" is a weight.
    ks : iterable of int, optional
        The numbers of clusters. The default is the keys of the dict, otherwise 2 … 20 and, if they are larger, the
        suggested number and the numbers that suit about as well. With few (distinct) objects, it ends at the largest
        number that each clustering can have.
    method : str
        The name of a method, by default that of `gpuens.consensus`. If all k have the same labels, a linkage cuts one
        tree for all k.
    n_clusterings : int
        With features: the number of clusterings for each k.
    objects : float
        With features: the share of the objects in each clustering.
    n_init : int
        With features: the starts of each k-means run. With a single start, clusterings of the right number of clusters
        differ more than clusterings of few clusters, so that too few clusters would be suggested.
    null : int
        With features: the number of reference data sets, drawn from the normal distribution with the covariance of the
        features (M3C). Use 0 or at least 19, the fewest that can show significance at 5 %.
    scale : {"auto", "standard", "robust", "none"}
        With features: see `gpuens.cluster`.
    missing : {"ignore", "zero"}
        See `gpuens.evidence.objects`.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    resume : str or path, optional
        A folder that keeps the results for each number, so that a stopped choice, or one with further numbers, can
        continue. A folder of other data or parameters is refused.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For invalid labels, features and numbers.

    References
    ----------
    Monti et al., Machine Learning 52 (2003); Patterson-Cross et al. (chooseR), BMC Bioinformatics 22 (2021); John et
    al. (M3C), Scientific Reports 10 (2020).

    Examples
    --------
    >>> import gpuens as ge, numpy as np
    >>> X = np.random.default_rng(0).normal(np.repeat([[0, 0], [9, 0], [0, 9]], 20, axis=0))
    >>> found = ge.choose_k(features=X, ks=range(2, 7), n_clusterings=20, random_state=1)
    >>> found.suggested, found.table.columns[:3].tolist()
    (3, ['silhouette', 'silhouette_low', 'silhouette_high'])
    """
    checks.check_choice(missing, "missing", CONVENTIONS)
    if (labels is None) == (features is None):
        raise ValueError("labels, features: give either base clusterings or the features to make them from.")
    checks.check_integer(null, "null", minimum=0)
    if null and (features is None or null < LEAST_NULL):
        raise ValueError(
            f"null={null}: reference data need features and at least {LEAST_NULL} sets; give both, or leave null at 0."
        )
    if sample_weight is not None and (features is not None or isinstance(labels, Mapping)):
        raise TypeError("sample_weight is for the labels of one ensemble; leave it out, or give one ensemble.")
    rng = checks.make_generator(random_state)
    if features is not None:
        features, _ = Features.of(features, name="features").scaled(scale)
    elif scale != "auto":
        raise ValueError(f"scale={checks.shown(scale)} is for features, but labels are given; leave it out.")
    seed = int(rng.integers(2**31))
    seed_of_method = int(random_state) if isinstance(random_state, Integral) else seed
    settings = _Settings(method, seed_of_method, seed, missing, device)
    if features is not None:
        resampling = {"n_clusterings": n_clusterings, "objects": objects, "n_init": n_init}
        return _OfFeatures(settings, features, resampling, null).choose(ks, resume)
    if isinstance(labels, Mapping):
        return _OfEnsembles(settings, labels).choose(ks, resume)
    return _OfOneEnsemble(settings, Ensemble(labels), sample_weight).choose(ks, resume)


class _Settings(NamedTuple):
    """The settings that are the same for the consensus of each number of clusters."""

    method: str
    random_state: int  # seed of the method; it is that of `gpuens.consensus`, so that both find equal labels
    seed: int  # seed of all random draws outside the method
    missing: str
    device: str


class _Comparison(ABC):
    """A comparison of numbers of clusters; the subclasses differ in the base clusterings."""

    data: Any  # features, an ensemble, or a dict of ensembles
    largest: int  # largest possible number of clusters
    suggests = True  # whether one ensemble suggests a number
    # parameters of the k-means clusterings of samples of the objects
    resampling: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self.keep: Callable[[str, Callable[[], Arrays]], Arrays] = found_anew

    @abstractmethod
    def check_numbers(self, ks: Any) -> list[int]:
        """Return the checked numbers of clusters, ascending, and set `largest`."""

    @abstractmethod
    def consensus(self, k: int) -> Arrays:
        """Find the consensus of k clusters; return its labels and criteria."""

    @abstractmethod
    def choice(self, rows: list[Criteria], labels: dict[int, np.ndarray], suggestion: Suggestion | None) -> Choice:
        """Return the choice among the numbers; complete their criteria before."""

    def suggest(self, largest: int) -> Suggestion:
        """Return the suggestion of one ensemble; it compares at least the numbers of clusters up to ``largest``."""
        raise NotImplementedError

    def digest(self) -> str:
        """Return the digest of the data and of their weights, for the ``resume`` folder."""
        return digest(self.data)

    def choose(self, ks: Any, resume: Any) -> Choice:
        self.numbers = self.check_numbers(ks)
        if resume is not None:
            data = {"gpuens": __version__, "parts": PARTS, "data": self.digest()}
            self.keep = Checkpoint(resume, {**data, **self.settings._asdict(), **self.resampling}).part
        suggestion = self._suggestion() if self.suggests else None
        if suggestion is not None and ks is None and suggestion.n_clusters > LARGEST:
            alike = [suggestion.n_clusters, *suggestion.close()]
            self.numbers = sorted({*self.numbers, *(k for k in alike if k <= self.largest)})
        parts: dict[int, Arrays] = {}
        for k in progress.bar(self.numbers, "numbers of clusters"):
            with without_lopsided_warnings():  # a warning matters only for the suggested number, and comes at the end
                parts[k] = self.keep(f"k_{k}", partial(self.consensus, k))
        rows = [_criteria_of(k, part) for k, part in parts.items()]
        method = self.settings.method
        if all(row["silhouette"] is None for row in rows):
            raise ValueError(
                f"method {method!r} found a single cluster for each number of ks, so there is nothing to choose; take "
                "another method."
            )
        if suggestion is not None:
            _add_score(rows, suggestion)
        choice = self.choice(rows, {k: part["labels"] for k, part in parts.items()}, suggestion)
        lopsided = {k: str(part["lopsided"]) for k, part in parts.items() if part["lopsided"]}
        if choice.suggested in lopsided:
            checks.warn(f"{choice.suggested} clusters by {method}: {lopsided[choice.suggested].removesuffix('.')}.")
        return replace(choice, method=method, lopsided=lopsided, consensus=self.matrices(parts))

    def matrices(self, parts: dict[int, Arrays]) -> dict[int, ConsensusMatrix]:
        """Return the consensus matrix of each number."""
        return {k: ConsensusMatrix.of_arrays(part) for k, part in parts.items()}

    def _suggestion(self) -> Suggestion:
        """Return the suggestion; numbers up to the last are compared at least."""
        largest = self.numbers[-1]
        return _suggestion_of(self.keep(f"suggestion_{largest}", lambda: _arrays_of(self.suggest(largest))))

    def estimator(self, k: int) -> Any:
        """Return the unfitted estimator for k clusters."""
        method, device = self.settings.method, self.settings.device
        estimator = default_estimator(method, k, self.settings.random_state, device)
        if estimator.parts().needs_features and not isinstance(self.data, Features):
            raise ValueError(
                f"method {method!r} compares the objects by features; give features in place of labels, or take "
                "another method."
            )
        return estimator

    def part(self, k: int, labels: Any, evidence: Evidence, estimator: Any, **criteria: Any) -> Arrays:
        """Return the labels for k clusters, their criteria, and a description of very uneven sizes or ""."""
        rng = np.random.default_rng([self.settings.seed, 0, k])  # draws for k do not depend on the other numbers
        unit = estimator.fit_.whole_unit
        remedy = partial(remedy_of, estimator, estimator.fit_.parts.partitioner, evidence.rows.n_objects * unit, k)
        why = why_lopsided(evidence.rows, evidence.clusters.sizes // unit, remedy, unit)
        criteria = {**_criteria_of_consensus(evidence, rng), **criteria}
        return {
            "labels": devices.to_host(labels),
            "lopsided": np.array(why or ""),
            **{f"{CRITERION}{name}": np.array(np.nan if x is None else x) for name, x in criteria.items()},
        }


class _OfEnsembles(_Comparison):
    """A comparison by an ensemble of k clusters for each number k."""

    suggests = False

    def __init__(self, settings: _Settings, labels: Mapping[int, Any]) -> None:
        super().__init__(settings)
        self.data = labels

    def check_numbers(self, ks: Any) -> list[int]:
        numbers = _check_numbers(self.data if ks is None else ks)
        if absent := [k for k in numbers if k not in self.data]:
            raise ValueError(f"labels hold no clusterings for k={absent[0]}; leave it out of ks.")
        in_order = in_one_order(list(self.data.values()), [f"labels[{k!r}]" for k in self.data])
        self.data = dict(zip(self.data, in_order, strict=True))
        self.largest = numbers[-1]
        return numbers

    def clusterings(self, k: int) -> Any:
        """Return the base clusterings of k clusters."""
        return self.data[k]

    def consensus(self, k: int) -> Arrays:
        estimator, ensemble, missing = self.estimator(k), Ensemble(self.clusterings(k)), self.settings.missing
        estimator.fit(ensemble, **({"features": self.data.values} if estimator.parts().needs_features else {}))
        evidence = estimator.evidence(missing=missing)
        pairs = evidence.pairs()
        criteria = {
            "pac": pairs.pac(),
            "rpac": pairs.rpac(),
            "corrected_pac": pairs.corrected_pac(),
            "area": pairs.area(),
            "delta_area": None,  # `choice` compares the areas of successive numbers
            "inconsistency": evidence.consistency.inconsistency,
        }
        matrix = ConsensusMatrix.of(ensemble, self.settings.seed, missing, pairs)
        return matrix.arrays() | self.part(k, estimator.labels_, evidence, estimator, **criteria)

    def choice(self, rows: list[Criteria], labels: dict[int, np.ndarray], suggestion: Suggestion | None) -> Choice:
        _add_delta_area(rows)
        choice = choice_by_silhouette(rows, labels)
        return compare_with_chance(choice, self.data[choice.suggested], self.settings.device)


class _OfFeatures(_OfEnsembles):
    """A comparison by k-means clusterings of k clusters for each number k."""

    data: Features
    suggests = True

    def __init__(self, settings: _Settings, features: Features, resampling: dict[str, Any], n_references: int) -> None:
        _Comparison.__init__(self, settings)
        if n_references and not isinstance(features.values, np.ndarray):
            raise TypeError("features are a sparse matrix, but reference data are dense; pass features.toarray().")
        self.data, self.resampling, self.n_references = features, resampling, n_references

    def digest(self) -> str:
        return digest(self.data.values)

    def check_numbers(self, ks: Any) -> list[int]:
        """Return the checked numbers, by default up to `LARGEST`, if each clustering has a share of the objects."""
        X, objects = self.data.values, self.resampling["objects"]
        n_objects, n_drawn = X.shape[0], share(objects, X.shape[0], "objects")
        numbers = _check_numbers(ks, n_objects, f"there are {n_objects} objects")
        n_distinct = _n_distinct(X, numbers[-1])
        self.largest, why = n_distinct, f"{n_distinct} of the {n_objects} objects differ"
        if n_drawn < n_distinct:
            self.largest, why = n_drawn, f"each clustering has {n_drawn} of the {n_objects} objects (objects={objects})"
        if self.largest < 2:
            raise ValueError(f"ks: {why}, so there is nothing to choose; give features of more objects.")
        if ks is not None and numbers[-1] > self.largest:
            raise ValueError(
                f"ks must be at most {self.largest}, because {why}, but is {numbers[-1]}; ask for fewer clusters."
            )
        return [k for k in numbers if k <= self.largest]

    def clusterings(self, k: int) -> Ensemble:
        return self._resampled(self.data, self.settings.seed, k)

    def _resampled(self, X: Any, seed: int, k: int) -> Ensemble:
        """Return k-means clusterings of X; each divides a sample of the objects into k clusters."""
        return generate.kmeans_ensemble(
            X, n_clusters=k, random_state=seed, progress=False, device=self.settings.device, **self.resampling
        )

    def suggest(self, largest: int) -> Suggestion:
        return suggestion_by_features(self.data, self.settings.seed, largest, self.settings.device)

    def choice(self, rows: list[Criteria], labels: dict[int, np.ndarray], suggestion: Suggestion | None) -> Choice:
        assert suggestion is not None
        _add_delta_area(rows)
        if self.n_references:
            self._add_references(rows)
        return compare_with_references(choice_by_score(rows, labels, suggestion, choice_by_silhouette(rows, labels)))

    def _add_references(self, rows: list[Criteria]) -> None:
        """Add two criteria of M3C to each row: "rcsi" and "p", which compare its PAC with the PAC of reference data.

        RCSI is the mean of ln(PAC of the reference data sets) minus ln(PAC of the data). p is (1 + the number of
        reference data sets with a smaller PAC than the data) / (1 + the number of reference data sets).
        """
        X, seed = self.data.values, self.settings.seed
        center = X.mean(axis=0, dtype=np.float64)
        _, scales, axes = np.linalg.svd(X - center, full_matrices=False)
        # each row of `spread` is a principal axis, times the standard deviation of the data along this axis
        spread = scales[:, None] * axes / np.sqrt(len(X) - 1)
        pac = np.empty((self.n_references, len(rows)))
        for b in progress.bar(range(self.n_references), "reference data"):
            rng = np.random.default_rng([seed, 1, b])
            reference = center + rng.standard_normal((len(X), len(spread))) @ spread
            pac_of = partial(self._pac_of, reference, int(rng.integers(2**31)))
            pac[b] = [self.keep(f"null_{b}_{row['k']}", partial(pac_of, row["k"]))["pac"] for row in rows]
        for row, references in zip(rows, pac.T, strict=True):
            row["rcsi"] = float(natural_logarithms(references.clip(LEAST_PAC) / max(row["pac"], LEAST_PAC)).mean())
            row["p"] = float((1 + np.count_nonzero(references < row["pac"])) / (self.n_references + 1))

    def _pac_of(self, reference: np.ndarray, seed: int, k: int) -> Arrays:
        ensemble = self._resampled(reference, seed, k)
        return {"pac": np.array(pairs(ensemble, missing=self.settings.missing, device=self.settings.device).pac())}


class _OfOneEnsemble(_Comparison):
    """A comparison by the same base clusterings for all numbers of clusters."""

    data: Ensemble

    def __init__(self, settings: _Settings, ensemble: Ensemble, sample_weight: Any) -> None:
        super().__init__(settings)
        self.data, self.counts, self.fit_parameters = ensemble, None, {}
        self.unit: float = 1
        if sample_weight is not None:
            weights = in_order_of(ensemble.index, sample_weight, "sample_weight")
            weights = checks.host_array(weights, f"sample_weight must be {ensemble.n_objects} numbers, one per object")
            copies = copies_of(weights, ensemble.n_objects, ensemble.n_clusterings)
            if not copies.whole:
                raise ValueError(
                    "sample_weight has fractions, but choose_k needs whole numbers of objects as weights; scale and "
                    "round them."
                )
            self.counts, self.unit, self.fit_parameters = copies.counts, copies.unit, {"sample_weight": weights}
        self.rows = Rows(ensemble, self.counts, settings.device)

    def digest(self) -> str:
        return digest(self.data) + ("" if self.counts is None else f"{digest(self.counts)}{self.unit}")

    @cached_property
    def _distinct_rows(self) -> Rows:
        return core_groups(self.rows).rows

    def check_numbers(self, ks: Any) -> list[int]:
        self.largest = len(self._distinct_rows)
        return _check_numbers(ks, self.largest, f"the objects have {self.largest} distinct label rows")

    def suggest(self, largest: int) -> Suggestion:
        return suggestion_of(self._distinct_rows, largest)

    @cached_property
    def _fit_of_largest(self) -> Any:
        """The fit for the largest compared number, whose tree is cut for each number if the method is a linkage."""
        return self.estimator(self.numbers[-1]).fit(self.data, **self.fit_parameters)

    def consensus(self, k: int) -> Arrays:
        """Find the consensus of k clusters by a cut of the tree, whose lifetimes are a further criterion, or a fit."""
        estimator, missing = self._fit_of_largest, self.settings.missing
        if getattr(estimator, "dendrogram_", None) is None:
            if k != self.numbers[-1]:
                estimator = self.estimator(k).fit(self.data, **self.fit_parameters)
            return self.part(k, estimator.labels_, estimator.evidence(missing=missing), estimator)
        groups, lifetimes = estimator.reduction_.groups(), estimator.lifetimes_
        row_labels, labels = estimator.fit_.cut(k, "choose_k()")
        row_of, unit = devices.to_host(groups.row_of), estimator.fit_.whole_unit
        evidence = Evidence.of_groups(groups.rows, row_labels, row_of, missing, unit=unit)
        lifetime = float(lifetimes[k - 2]) if k - 2 < len(lifetimes) else None
        return self.part(k, labels, evidence, estimator, lifetime=lifetime)

    def choice(self, rows: list[Criteria], labels: dict[int, np.ndarray], suggestion: Suggestion | None) -> Choice:
        assert suggestion is not None
        return compare_with_chance(choice_by_score(rows, labels, suggestion), self.rows, self.settings.device)

    def matrices(self, parts: dict[int, Arrays]) -> dict[int, ConsensusMatrix]:
        matrix = ConsensusMatrix.of(self.data, self.settings.seed, self.settings.missing, counts=self.counts)
        return dict.fromkeys(parts, matrix)


# --- numbers of clusters ----------------------------------------------------------------------------------------------


def _check_numbers(ks: Any, largest: int = 10**6, why: str = "there are no more objects") -> list[int]:
    """Check the numbers of clusters ``ks`` and return them in ascending order.

    If ``ks`` is None, the numbers are 2, 3, … up to ``largest``, but at most up to `LARGEST`. Error messages give
    ``why`` as the reason that no number above ``largest`` is possible.
    """
    if ks is None:
        ks = range(2, min(LARGEST, largest) + 1)
    if not isinstance(ks, Iterable):
        raise TypeError(f"ks must be some numbers of clusters, such as range(2, 21), not {checks.shown(ks)}.")
    if largest < 2:
        raise ValueError("ks: there is nothing to choose for a single object, or for objects that are all equal.")
    numbers = set()
    for k in ks:  # the loop stops at an invalid number, because ``ks`` may have more numbers than fit in memory
        numbers.add(checks.check_integer(k, "ks", minimum=2))
        if k > largest:
            raise ValueError(f"ks must be at most {largest}, because {why}, but is {k}; ask for fewer clusters.")
    if not numbers:
        raise ValueError("ks holds no number of clusters; give numbers such as range(2, 21).")
    return sorted(numbers)


def _n_distinct(X: Any, enough: int) -> int:
    """Return the number of distinct rows of X, a matrix (n_objects, n_features), or ``enough`` if there are more."""
    distinct = np.empty((0, X.shape[1]))
    for start in range(0, X.shape[0], ROWS_COMPARED):
        block = X[start : start + ROWS_COMPARED]
        block = block.toarray() if hasattr(block, "toarray") else block
        distinct = np.unique(np.concatenate([distinct, block]), axis=0)[:enough]
        if len(distinct) == enough:
            break
    return len(distinct)


# --- criteria ---------------------------------------------------------------------------------------------------------


def _criteria_of_consensus(evidence: Evidence, rng: np.random.Generator) -> Criteria:
    """Return the criteria of a consensus; sums are over label rows, so that copies of objects do not round them."""
    rows, clusters, labels, counts = evidence._row_objects, evidence.clusters, evidence._labels, evidence.rows.counts
    k = len(clusters.sizes)
    means = np.bincount(labels, weights=rows.silhouette * counts) / np.bincount(labels, weights=counts)
    medians = np.median(means[rng.integers(k, size=(BOOTSTRAPS, k))], axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    return {
        "silhouette": np.median(means),
        "silhouette_low": low,
        "silhouette_high": high,
        "mean_silhouette": _mean(rows.silhouette, counts),
        "certainty": _mean(rows.certainty, counts),
        "cluster_consensus": _mean(clusters.consensus, np.ones(k)),
        "anmi": evidence.agreement.anmi,
        "smallest": int(clusters.sizes.min()),
    }


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted mean of the values that are not NaN, or NaN if all are."""
    defined = ~np.isnan(values)
    return float(np.average(values[defined], weights=weights[defined])) if defined.any() else np.nan


def _criteria_of(k: int, part: Arrays) -> Criteria:
    """Return the criteria that a part of `_Comparison.part` holds; they are None where they are not defined."""
    criteria = {name.removeprefix(CRITERION): x.item() for name, x in part.items() if name.startswith(CRITERION)}
    return {"k": k, **{name: None if x != x else x for name, x in criteria.items()}}


def _add_delta_area(rows: list[Criteria]) -> None:
    """Add the area relative to that of the number before to each row, and to the first row its area."""
    rows[0]["delta_area"] = rows[0]["area"]
    for before, row in pairwise(rows):
        if before["area"] > 0:
            row["delta_area"] = row["area"] / before["area"] - 1.0


def _add_score(rows: list[Criteria], suggestion: Suggestion) -> None:
    """Add the entries "support", "nearness" and "score" to each row; they are None for a number without support."""
    place = {int(k): i for i, k in enumerate(suggestion.spectrum.numbers)}
    terms = {"support": suggestion.spectrum.support, "nearness": suggestion.nearness, "score": suggestion.score}
    for row in rows:
        i = place.get(row["k"])
        row |= {name: None if i is None else float(values[i]) for name, values in terms.items()}


def _arrays_of(suggestion: Suggestion) -> Arrays:
    """Return the arrays from which `_suggestion_of` restores a suggestion."""
    return {
        **{field.name: getattr(suggestion.spectrum, field.name) for field in fields(Spectrum)},
        "sizes": suggestion.sizes,
        "effective": np.array(suggestion.effective),
        "lopsided": np.array(suggestion.lopsided, dtype=np.int64),
        "stable": np.array(suggestion.stable),
    }


def _suggestion_of(part: Arrays) -> Suggestion:
    spectrum = Spectrum(*(part[field.name] for field in fields(Spectrum)))
    lopsided = tuple(part["lopsided"].tolist())
    return Suggestion(spectrum, part["sizes"], float(part["effective"]), lopsided, bool(part["stable"]))
