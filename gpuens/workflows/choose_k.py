"""The choice of the number of clusters: criteria for each candidate, and a suggestion with reasons and alternatives.

The base clusterings suggest a number of clusters (`gpuens.evidence.suggestion`), by the groups that they share and by
their own numbers. A method without a given number of clusters uses the same suggestion. To show how certain
a consensus of k clusters is, samples of the objects are clustered into k clusters. The smallest PAC alone is no
evidence for a number, because PAC falls as k grows even if the data have no clusters.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuens import __version__, generate
from gpuens.evidence import ConsensusMatrix, Evidence, Spectrum, Suggestion, beyond_chance, pairs
from gpuens.evidence.beyond_chance import LEVEL
from gpuens.evidence.inputs import CONVENTIONS
from gpuens.evidence.spectrum import LARGEST
from gpuens.evidence.suggestion import suggestion_of
from gpuens.generate.kmeans import share
from gpuens.io.checkpoint import Arrays, Checkpoint, digest, found_anew
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import as_features, columns_of, scaled
from gpuens.labels.frames import as_pandas
from gpuens.labels.object_names import in_one_order, in_order_of
from gpuens.labels.rows import Rows, as_rows
from gpuens.labels.weights import Copies, copies_of
from gpuens.methods.lopsided import remedy_of, unsaid, why_lopsided
from gpuens.reduction import core_groups
from gpuens.runtime import checks, progress
from gpuens.runtime import device as devices
from gpuens.runtime.defaults import METHOD
from gpuens.runtime.exponentials import natural_logarithms
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng
from gpuens.workflows.compare import default_estimator

if TYPE_CHECKING:
    import pandas as pd

BOOTSTRAPS = 1000  # bootstrap samples for the interval of the silhouette
SAMPLED = 10_000  # maximum number of objects from which the number of clusters is estimated
OF_EACH_KIND = 10  # number of k-means clusterings, and of landmark clusterings, that suggest the number of clusters
LEAST_PAC = 1e-4  # smaller values of PAC are raised to this limit, because the RCSI takes the logarithm of PAC
LEAST_GAIN = 0.01  # smaller relative gains of area are raised to this limit, because the elbow divides by them
LEAST_NULL = 19  # smallest number of reference data sets that can show significance at LEVEL
SHARE = 0.8  # share of all objects that each clustering contains, by default
# dtypes of what a suggestion knows of the clusterings, beside their spectrum
MEMBERS = {"sizes": np.int64, "effective": np.float64, "lopsided": np.int64, "stable": np.bool_}
PARTS = 3  # version number of the format in which the ``resume`` folder stores results
ROWS_COMPARED = 256  # number of feature rows that are added at a time while distinct rows are counted


@dataclass(repr=False)
class Choice:
    """The result of `choose_k`.

    Attributes
    ----------
    rows : list of dict
        One for each number of clusters "k", ascending. "silhouette": the median over the clusters of their mean
        silhouette on 1 - C, with "silhouette_low" and "silhouette_high", its bootstrap interval of 95 %;
        "mean_silhouette" and "certainty": means over the objects; "cluster_consensus": the mean over the clusters;
        "anmi"; "smallest": objects of the smallest cluster. From one ensemble "support" (of the groups that the
        clusterings share), "nearness" (to their own numbers) and "score", which combines them
        (`gpuens.evidence.Suggestion`), and from a tree "lifetime"; from clusterings for each k "pac",
        "rpac", "corrected_pac", "area", "delta_area" (relative to the area of the k before, at the first k the area)
        and "inconsistency"; from reference data "rcsi" and "p" (M3C). None where a number is not defined.
    labels : dict of int to ndarray (n_objects,)
        The consensus for each number of clusters.
    suggested : int
    reasons : dict of int to str
        The reasons for the suggestion and for each close alternative.
    structure : bool or None
        With reference data: whether the PAC of the suggestion is smaller than theirs. Without reference data: False if
        the clusterings agree no more than independent clusterings might (`gpuens.evidence.beyond_chance`), otherwise
        None, because agreement does not show that the data have clusters.
    doubt : str or None
        The reason for a doubt about the suggestion: other numbers suit the clusterings about as well, or these share no
        clear groups. None without a doubt.
    consensus : dict of int to gpuens.evidence.ConsensusMatrix
        For each k, the distribution of the pairs of objects and the consensus matrix of at most 500 objects. If all k
        have the same clusterings, all entries are equal.
    method : str
        The method that found `labels`.
    lopsided : dict of int to str
        For each number whose consensus has far less even sizes than the base clusterings, for example clusters of
        single objects: a description and advice. If the suggestion is such a number, there is also a warning.
    """

    rows: list[dict[str, Any]]
    labels: dict[int, np.ndarray]
    suggested: int
    reasons: dict[int, str]
    structure: bool | None
    doubt: str | None = None
    consensus: dict[int, ConsensusMatrix] = field(default_factory=dict, repr=False)
    method: str = METHOD
    lopsided: dict[int, str] = field(default_factory=dict)

    def plot(self, k: int | None = None) -> np.ndarray:
        """Draw the pictures of ConsensusClusterPlus: consensus matrix, CDF, delta area and tracking plot.

        If the clusterings are the same for all k, the score replaces the delta area. To draw a single picture into an
        Axes, use `gpuens.plotting.consensus_matrix`, `cdf`, `criterion` or `tracking`.

        Parameters
        ----------
        k : int, optional
            The number of clusters whose consensus orders the matrix; the suggested one by default.

        Returns
        -------
        ndarray (2, 2) of matplotlib Axes
            Of a new figure; ``axes[0, 0].figure.savefig("picture.png")`` writes it.

        Raises
        ------
        ValueError
            For a number that was not compared.

        Examples
        --------
        >>> import gpuens as ge
        >>> found = ge.choose_k([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]], ks=[2, 3])
        >>> [ax.get_title() for ax in found.plot()[0]]
        ['Consensus of 6 objects in 3 clusters', 'Consensus of the pairs of 6 objects, the same for all k']
        """
        from gpuens.plotting.choice import overview

        return overview(self, k)

    @property
    def runners_up(self) -> list[int]:
        return [k for k in self.reasons if k != self.suggested]

    @property
    def by_criterion(self) -> dict[str, int]:
        """The suggestion of each criterion alone, as {criterion: number of clusters with the best value}.

        For "delta_area" the best value is the elbow, after which it falls by the largest factor. In data without
        clusters, "pac" often suggests the largest number. Criteria whose numbers give worse answers on real data than
        always 8 clusters are left out, such as the support of the spectrum alone.
        """
        return {name: best for name, rule in SINGLE.items() if (best := rule(self.rows, name)) is not None}

    @property
    def table(self) -> "pd.DataFrame":
        """The list `rows` as a DataFrame indexed by k."""
        import pandas as pd

        return pd.DataFrame(self.rows).set_index("k")

    def __repr__(self) -> str:
        single: dict[int, list[str]] = {}
        for name, k in self.by_criterion.items():
            single.setdefault(k, []).append(name.replace("_", " "))
        return checks.summary(
            self,
            f"{self.suggested} clusters are suggested, of the numbers {min(self.labels)} to {max(self.labels)}",
            why=self.reasons[self.suggested],
            **{f"also_{k}": self.reasons[k] for k in self.runners_up[:3]},
            single_criteria="; ".join(f"{k} by {', '.join(names)}" for k, names in sorted(single.items())),
            see="table, labels, reasons, plot()",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON values with everything except the labels and the consensus matrices."""
        reasons = {str(k): why for k, why in self.reasons.items()}
        chosen = {"suggested": self.suggested, "reasons": reasons, "structure": self.structure}
        chosen |= {
            "doubt": self.doubt,
            "method": self.method,
            "lopsided": {str(k): why for k, why in self.lopsided.items()},
        }
        return {**chosen, "by_criterion": self.by_criterion, "ks": self.rows}


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule that finds the number of clusters whose criterion has the ``min`` or the ``max`` value.

    If several numbers have this value, the rule returns the first.
    """

    def rule(rows: list[dict[str, Any]], name: str) -> int | None:
        known = [row for row in rows if row.get(name) is not None]
        return choose(known, key=lambda row: row[name])["k"] if known else None

    return rule


def _elbow(rows: list[dict[str, Any]], name: str) -> int | None:
    """Return the number of clusters after which the criterion ``name`` falls by the largest factor."""
    known = [row for row in rows if row.get(name) is not None]
    values = [max(row[name], LEAST_GAIN) for row in known]
    falls = [before / after for before, after in pairwise(values)]
    return known[int(np.argmax(falls))]["k"] if falls else None


SINGLE = {
    **dict.fromkeys(("lifetime", "mean_silhouette", "rcsi"), _extreme(max)),
    **dict.fromkeys(("pac", "corrected_pac", "inconsistency"), _extreme(min)),
    "delta_area": _elbow,
}


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
    features = as_pandas(features)
    X = None if features is None else as_features(features, name="features")
    if X is not None:
        X, _ = scaled(X, scale, "features", columns_of(features))
    elif scale != "auto":
        raise ValueError(f"scale={checks.shown(scale)} is for features, but labels are given; leave it out.")
    find: Callable[[int], Arrays]
    copies: Copies | None = None  # weights of the objects
    rows_of: Any = labels  # the labels with their weights
    if null and not isinstance(X, np.ndarray):
        raise TypeError("features are a sparse matrix, but reference data are dense; pass features.toarray().")
    seed = int(rng.integers(2**31))
    own = int(random_state) if isinstance(random_state, Integral) else seed
    how = _How(method, own, seed, missing, device)
    resampled = partial(_resampled, n_clusterings=n_clusterings, objects=objects, n_init=n_init, device=device)
    if X is not None:
        numbers, most = _numbers_of(ks, X, objects)
        find = partial(_of_own, partial(resampled, X, seed), how, X)
    elif isinstance(labels, Mapping):
        numbers = _numbers(labels if ks is None else ks)
        if absent := [k for k in numbers if k not in labels]:
            raise ValueError(f"labels hold no clusterings for k={absent[0]}; leave it out of ks.")
        in_order = in_one_order(list(labels.values()), [f"labels[{k!r}]" for k in labels])
        labels = dict(zip(labels, in_order, strict=True))
        find = partial(_of_own, labels.__getitem__, how, None)
    else:
        labels = Ensemble(labels)
        weights, copies = (None, None) if sample_weight is None else _whole(sample_weight, labels)
        rows_of = Rows(labels, copies and copies.counts, device)
        n_distinct = len(core_groups(rows_of).rows)
        numbers = _numbers(ks, n_distinct, f"the objects have {n_distinct} distinct label rows")
        most = n_distinct
    keep: Callable[[str, Callable[[], Arrays]], Arrays] = found_anew
    if resume is not None:
        drawn = {} if X is None else {"n_clusterings": n_clusterings, "objects": objects, "n_init": n_init}
        about = {
            "gpuens": __version__,
            "parts": PARTS,
            "data": digest(labels if X is None else X)
            + ("" if copies is None else f"{digest(copies.counts)}{copies.unit}"),
            **how._asdict(),
            **drawn,
        }
        keep = Checkpoint(resume, about).part
    suggested = None if isinstance(labels, Mapping) else _suggestion(keep, numbers[-1], rows_of, X, seed, device)
    if suggested is not None and ks is None:
        alike = [suggested.n_clusters, *suggested.close()] if suggested.n_clusters > LARGEST else []
        numbers = sorted({*numbers, *(k for k in alike if k <= most)})
    if suggested is not None and X is None:
        find = _of_any(labels, weights, numbers[-1], how)
    rows: list[dict[str, Any]] = []
    answers, consensus, lopsided = {}, {}, {}
    for k in progress.bar(numbers, "numbers of clusters"):
        with unsaid():  # warnings matter only for the number that is suggested, and `chosen` gives this warning
            part = keep(f"k_{k}", partial(find, k))
        answers[k] = part["labels"]
        rows.append(json.loads(str(part["row"])))
        if "codes" in part:
            consensus[k] = ConsensusMatrix.of_arrays(part)
        if (why := rows[-1].pop("lopsided", None)) is not None:
            lopsided[k] = why
    if all(row["silhouette"] is None for row in rows):
        raise ValueError(
            f"method {method!r} found a single cluster for each number of ks, so there is nothing to choose; take "
            "another method."
        )

    def chosen(choice: Choice) -> Choice:
        if choice.suggested in lopsided:
            checks.warn(f"{choice.suggested} clusters by {method}: {lopsided[choice.suggested].removesuffix('.')}.")
        return replace(choice, method=method, lopsided=lopsided, consensus=consensus)

    if suggested is not None:
        _add_score(rows, suggested)
    if "pac" not in rows[0]:
        assert suggested is not None  # the row lacks "pac" only if all k share one ensemble
        consensus = dict.fromkeys(numbers, ConsensusMatrix.of(labels, seed, missing, counts=copies and copies.counts))
        return chosen(_beside_chance(_by_score(rows, answers, suggested), rows_of, device))
    for row, before in zip(rows, [None, *rows], strict=False):
        if before is None:
            row["delta_area"] = row["area"]
        elif before["area"] > 0:
            row["delta_area"] = row["area"] / before["area"] - 1.0
    if X is not None and null:
        _beside_null(rows, X, null, how, resampled, keep)
    choice = _by_chooser(rows, answers)
    if suggested is not None:
        return chosen(_beside_references(_by_score(rows, answers, suggested, choice)))
    return chosen(_beside_chance(choice, labels[choice.suggested], device))


# --- for each number of clusters --------------------------------------------------------------------------------------


class _How(NamedTuple):
    """The settings that are the same for the consensus of each number of clusters."""

    method: str
    random_state: int  # seed of the method; it is that of `gpuens.consensus`, so that both find equal labels
    seed: int  # seed of all random draws outside the method
    missing: str
    device: str

    def default_estimator(self, k: int, X: Any = None) -> Any:
        estimator = default_estimator(self.method, k, self.random_state, self.device)
        if estimator.needs_features and X is None:
            raise ValueError(
                f"method {self.method!r} compares the objects by features; give features in place of labels, or take "
                "another method."
            )
        return estimator

    def part(self, k: int, labels: np.ndarray, evidence: Evidence, estimator: Any, **more: Any) -> Arrays:
        """Return the labels for k clusters, and the row of `Choice.rows` for k as JSON.

        The entry "lopsided" of the row describes very uneven sizes of clusters.
        """
        rng = np.random.default_rng([self.seed, 0, k])  # draws for k do not depend on the other numbers in ``ks``
        unit = estimator._whole_unit
        remedy = partial(remedy_of, estimator, estimator._resolved_parts()[1], evidence.rows.n_objects * unit, k)
        why = why_lopsided(evidence.rows, evidence.clusters.sizes // unit, remedy, unit)
        row = {"k": k, **_of_consensus(evidence, rng), **more, "lopsided": why}
        return {"labels": labels, "row": np.array(json.dumps(row))}


def _resampled(X: Any, seed: int, k: int, *, n_clusterings: int, objects: float, n_init: int, device: str) -> Any:
    """Return an ensemble of k-means clusterings; each divides a sample of the objects into k clusters."""
    return generate.kmeans_ensemble(
        X, n_clusterings, (k, k), objects=objects, n_init=n_init, random_state=seed, progress=False, device=device
    )


def _numbers(ks: Any, largest: int = 10**6, why: str = "there are no more objects") -> list[int]:
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


def _numbers_of(ks: Any, X: Any, objects: float) -> tuple[list[int], int]:
    """Check and return the numbers ``ks`` if each clustering has only a share of the objects, and the largest possible.

    The default are the numbers up to `LARGEST`.
    """
    n_objects, n_drawn = X.shape[0], share(objects, X.shape[0], "objects")
    numbers = _numbers(ks, n_objects, f"there are {n_objects} objects")
    n_distinct = _n_distinct(X, numbers[-1])
    most, why = n_distinct, f"{n_distinct} of the {n_objects} objects differ"
    if n_drawn < n_distinct:
        most, why = n_drawn, f"each clustering has {n_drawn} of the {n_objects} objects (objects={objects})"
    if most < 2:
        raise ValueError(f"ks: {why}, so there is nothing to choose; give features of more objects.")
    if ks is not None and numbers[-1] > most:
        raise ValueError(f"ks must be at most {most}, because {why}, but is {numbers[-1]}; ask for fewer clusters.")
    return [k for k in numbers if k <= most], most


def _n_distinct(X: Any, enough: int) -> int:
    """Return the number of distinct rows of X, a matrix (n_objects, n_features), or ``enough`` if there are more."""
    found = np.empty((0, X.shape[1]))
    for start in range(0, X.shape[0], ROWS_COMPARED):
        some = X[start : start + ROWS_COMPARED]
        some = some.toarray() if hasattr(some, "toarray") else some
        found = np.unique(np.concatenate([found, some]), axis=0)[:enough]
        if len(found) == enough:
            break
    return len(found)


def _of_own(clusterings: Callable[[int], Any], how: _How, X: Any, k: int) -> Arrays:
    """Find the consensus for k from base clusterings of k clusters each; return its labels and all its criteria."""
    estimator, ensemble = how.default_estimator(k, X), Ensemble(clusterings(k))
    estimator.fit(ensemble, **({"features": X} if estimator.needs_features else {}))
    evidence = estimator.evidence(missing=how.missing)
    pairs = evidence.pairs()
    shown = ConsensusMatrix.of(ensemble, how.seed, how.missing, pairs)
    return shown.arrays() | how.part(
        k,
        devices.to_host(estimator.labels_),
        evidence,
        estimator,
        pac=pairs.pac(),
        rpac=_defined(pairs.rpac()),
        corrected_pac=_defined(pairs.corrected_pac()),
        area=pairs.area(),
        delta_area=None,
        inconsistency=evidence.consistency.inconsistency,
    )


def _of_any(ensemble: Ensemble, weights: np.ndarray | None, largest: int, how: _How) -> Callable[[int], Arrays]:
    """Return a function that finds the consensus of k clusters for any k, always from the same base clusterings.

    If the method is a linkage, the first call fits the tree, and each call cuts this tree into k clusters. The
    lifetimes of the tree are a further criterion.
    """
    of_weights = {} if weights is None else {"sample_weight": weights}
    fitted = cache(lambda k: how.default_estimator(k).fit(ensemble, **of_weights))

    def find(k: int) -> Arrays:
        estimator = fitted(largest)
        tree = getattr(estimator, "dendrogram_", None)
        if tree is None:
            estimator = estimator if k == largest else how.default_estimator(k).fit(ensemble, **of_weights)
            evidence = estimator.evidence(missing=how.missing)
            return how.part(k, devices.to_host(estimator.labels_), evidence, estimator)
        groups, lifetimes = estimator.reduction_.groups(), estimator.lifetimes_
        of_rows, labels = estimator._cut(k, "choose_k()")
        lifetime = float(lifetimes[k - 2]) if k - 2 < len(lifetimes) else None
        unit = estimator._whole_unit
        evidence = Evidence.of_groups(groups.rows, of_rows, devices.to_host(groups.row_of), how.missing, unit=unit)
        return how.part(k, devices.to_host(labels), evidence, estimator, lifetime=lifetime)

    return find


def _whole(sample_weight: Any, ensemble: Ensemble) -> tuple[np.ndarray, Copies]:
    """Return the weights (n_objects,) and their copies; refuse fractions, because the criteria count objects."""
    in_order = in_order_of(ensemble.index, sample_weight, "sample_weight")
    weights = checks.host_array(in_order, f"sample_weight must be {ensemble.n_objects} numbers, one per object")
    found = copies_of(weights, ensemble.n_objects, ensemble.n_clusterings)
    if not found.whole:
        raise ValueError(
            "sample_weight has fractions, but choose_k needs whole numbers of objects as weights; scale and round them."
        )
    return weights, found


def _of_consensus(evidence: Evidence, rng: np.random.Generator) -> dict[str, Any]:
    """Return the criteria of a consensus; sums are over label rows, so that copies of objects do not round them."""
    rows, clusters, labels, counts = evidence._row_objects, evidence.clusters, evidence._labels, evidence.rows.counts
    k = len(clusters.sizes)
    means = np.bincount(labels, weights=rows.silhouette * counts) / np.bincount(labels, weights=counts)
    medians = np.median(means[rng.integers(k, size=(BOOTSTRAPS, k))], axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    return {
        "silhouette": _defined(np.median(means)),
        "silhouette_low": _defined(low),
        "silhouette_high": _defined(high),
        "mean_silhouette": _mean(rows.silhouette, counts),
        "certainty": _mean(rows.certainty, counts),
        "cluster_consensus": _mean(clusters.consensus),
        "anmi": evidence.agreement.anmi,
        "smallest": int(clusters.sizes.min()),
    }


def _defined(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(values: np.ndarray, weights: Any = None) -> float | None:
    known = ~np.isnan(values)
    return (
        float(np.average(values[known], weights=None if weights is None else weights[known])) if known.any() else None
    )


def _beside_null(
    rows: list[dict[str, Any]],
    X: np.ndarray,
    null: int,
    how: _How,
    resampled: Callable[..., Any],
    keep: Callable[..., Any],
) -> None:
    """Add two criteria of M3C to each row: "rcsi" and "p", which compare its PAC with the PAC of reference data.

    RCSI is the mean of ln(PAC of the reference data sets) minus ln(PAC of the data). p is (1 + the number of reference
    data sets with a smaller PAC than the data) / (1 + the number of reference data sets).
    """
    center = X.mean(axis=0, dtype=np.float64)
    _, scales, axes = np.linalg.svd(X - center, full_matrices=False)
    # each row of `spread` is a principal axis, times the standard deviation of the data along this axis
    spread = scales[:, None] * axes / np.sqrt(len(X) - 1)

    def pac_of(reference: np.ndarray, seed: int, k: int) -> Arrays:
        found = pairs(resampled(reference, seed, k), missing=how.missing, device=how.device)
        return {"pac": np.array(found.pac())}

    pac = np.empty((null, len(rows)))
    for b in progress.bar(range(null), "reference data"):
        rng = np.random.default_rng([how.seed, 1, b])
        reference = center + rng.standard_normal((len(X), len(spread))) @ spread
        seed = int(rng.integers(2**31))
        pac[b] = [keep(f"null_{b}_{row['k']}", partial(pac_of, reference, seed, row["k"]))["pac"] for row in rows]
    for row, of_null in zip(rows, pac.T, strict=True):
        row["rcsi"] = float(natural_logarithms(of_null.clip(LEAST_PAC) / max(row["pac"], LEAST_PAC)).mean())
        row["p"] = float((1 + np.count_nonzero(of_null < row["pac"])) / (null + 1))


# --- score ------------------------------------------------------------------------------------------------------------


def _suggestion(keep: Callable[..., Arrays], largest: int, rows: Any, X: Any, seed: int, device: str) -> Suggestion:
    """Return the suggestion by label rows or, if X is given, by k-means and landmark clusterings of X.

    Numbers up to ``largest`` are compared at least.
    """

    def find() -> Arrays:
        found = suggestion_of(core_groups(rows).rows, largest) if X is None else by_features(X, seed, largest, device)
        members: Arrays = {name: np.array(getattr(found, name), MEMBERS[name]) for name in MEMBERS}
        return {**{one.name: getattr(found.spectrum, one.name) for one in fields(Spectrum)}, **members}

    part = keep(f"suggestion_{largest}", find)
    spectrum = Spectrum(*(part[one.name] for one in fields(Spectrum)))
    return Suggestion(
        spectrum, part["sizes"], float(part["effective"]), tuple(part["lopsided"].tolist()), bool(part["stable"])
    )


def by_features(X: Any, seed: int, largest: int = LARGEST, device: str = "auto") -> Suggestion:
    """Cluster at most `SAMPLED` objects by k-means and by landmarks; return the suggestion of these clusterings.

    Two algorithms are used, because structure that both find is less likely to be an artefact of one algorithm.
    """
    if X.shape[0] > SAMPLED:
        X = X[drawn(X.shape[0], seed)]
    made_by: tuple[Callable[..., Any], ...] = (generate.kmeans_ensemble, generate.landmark_ensemble)
    with checks.recorded():  # warnings are suppressed, because they concern clusterings that the user never sees
        found = [make(X, OF_EACH_KIND, random_state=seed, progress=False, device=device) for make in made_by]
        labels = [labels for ensemble in found for labels in devices.to_host(ensemble.to_array()).T]
        return suggestion_of(core_groups(as_rows(labels, device)).rows, largest)


def drawn(n_objects: int, seed: int) -> np.ndarray:
    """Draw at most `SAMPLED` objects for the estimate of the number of clusters; return their positions, ascending."""
    rng = np.random.default_rng([seed, 2])
    return np.sort(rng.choice(n_objects, min(n_objects, SAMPLED), replace=False))


def _add_score(rows: list[dict[str, Any]], found: Suggestion) -> None:
    """Add the entries "support", "nearness" and "score" to each row; they are None for a number without support."""
    at = {int(k): i for i, k in enumerate(found.spectrum.numbers)}
    of = {"support": found.spectrum.support, "nearness": found.nearness, "score": found.score}
    for row in rows:
        i = at.get(row["k"])
        row |= {name: None if i is None else float(values[i]) for name, values in of.items()}


# --- suggestions ------------------------------------------------------------------------------------------------------


def _by_chooser(rows: list[dict[str, Any]], answers: dict[int, np.ndarray]) -> Choice:
    known = [row for row in rows if row["silhouette"] is not None]
    best = max(known, key=lambda row: row["silhouette_low"])
    good = [row for row in known if row["silhouette"] >= best["silhouette_low"]]
    reasons = {
        row["k"]: f"clusters that hold together as well as those of {best['k']} (silhouette {row['silhouette']:.2f})"
        for row in reversed(good)
    }
    suggested = good[-1]["k"]
    reasons[suggested] = (
        f"the most clusters that hold together as well as those of any number (median silhouette "
        f"{good[-1]['silhouette']:.2f})"
    )
    return Choice(rows, answers, suggested, reasons, None)


def _by_score(
    rows: list[dict[str, Any]], answers: dict[int, np.ndarray], found: Suggestion, chooser: Choice | None = None
) -> Choice:
    """Return a choice that suggests the best of the compared numbers of clusters.

    Its reasons also name the numbers that suit nearly as well, and the suggestion of ``chooser``, if given.
    """
    numbers = list(answers)
    best = (found.best(numbers) or [min(numbers)])[0]
    reasons = {best: found.reason(numbers) if found.best(numbers) else "no other number was compared"}
    reasons |= dict.fromkeys(found.close(numbers), "suits the clusterings about as well")
    if (doubt := found.doubt(numbers)) is not None:
        reasons[best] += f"; in doubt, because {doubt}"
    if chooser is not None:
        k, why = chooser.suggested, f"by chooseR's rule, {chooser.reasons[chooser.suggested]}"
        reasons[k] = f"{reasons[k]}; {why}" if k in reasons else why
    return Choice(rows, answers, best, reasons, None, doubt)


def _beside_references(choice: Choice) -> Choice:
    """Return the choice with `structure` set by comparing its PAC with the PAC of the reference data.

    Without reference data, return the choice unchanged.
    """
    row = next(row for row in choice.rows if row["k"] == choice.suggested)
    if "p" not in row:
        return choice
    structure = row["p"] <= LEVEL
    why = f"{choice.reasons[choice.suggested]}; p = {row['p']:.3f} by reference data"
    why += "" if structure else ": no structure beyond chance"
    return replace(choice, structure=structure, reasons=choice.reasons | {choice.suggested: why})


def _beside_chance(choice: Choice, labels: Any, device: str) -> Choice:
    """Return the choice; set its `structure` to False if the clusterings ``labels`` agree no more than by chance."""
    found = beyond_chance(labels, device=device)
    if not found.doubtful:
        return choice
    why = {choice.suggested: f"{choice.reasons[choice.suggested]}; {found}: no structure beyond chance"}
    return replace(choice, structure=False, reasons=choice.reasons | why)
