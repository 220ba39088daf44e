"""How many clusters: criteria for each number, a suggestion and the numbers that come close, with reasons.

The spectrum of base clusterings of any numbers of clusters suggests one (`gpuens.evidence.spectrum`), the same as where
a method is given none. Clusterings of k clusters each, of samples of the objects, tell how sure k clusters are; the
smallest PAC alone does not, as it falls with k where there is nothing to find.
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
from gpuens.evidence import ConsensusMatrix, Evidence, Spectrum, beyond_chance, pairs, spectrum
from gpuens.evidence.beyond_chance import LEVEL
from gpuens.evidence.given import CONVENTIONS
from gpuens.evidence.spectrum import LARGEST
from gpuens.generate.kmeans import share
from gpuens.io.checkpoint import Arrays, Folder, digest, found_anew
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import as_features
from gpuens.labels.object_names import in_one_order
from gpuens.labels.rows import Rows
from gpuens.methods.lopsided import remedy_of, unsaid, why_lopsided
from gpuens.reduction import core_groups
from gpuens.runtime import checks, progress
from gpuens.runtime import device as devices
from gpuens.runtime.defaults import METHOD
from gpuens.workflows import forecast
from gpuens.workflows.compare import made

if TYPE_CHECKING:
    import pandas as pd

BOOTSTRAPS = 1000
SAMPLED = 10_000  # objects that are enough to see how many clusters there are
OF_EACH_KIND = 10  # clusterings of features, by k-means and by landmarks, whose spectrum suggests a number
LEAST_PAC = 1e-4  # smallest PAC: the RCSI takes its logarithm
LEAST_GAIN = 0.01  # smallest relative gain of area that counts for the elbow
LEAST_NULL = 19  # reference data that can show significance at LEVEL
SHARE = 0.8  # share of the objects in each clustering
PARTS = 2  # version of what a folder keeps of each number
ROWS_COMPARED = 256  # at once, until enough of them differ


@dataclass(repr=False)
class Choice:
    """What `choose_k` found.

    Attributes
    ----------
    rows : list of dict
        One for each number of clusters "k", ascending. "silhouette": the median over the clusters of their mean
        silhouette on 1 - C, with "silhouette_low" and "silhouette_high", its bootstrap interval of 95 %;
        "mean_silhouette" and "confidence": means over the objects; "cluster_consensus": the mean over the clusters;
        "anmi"; "smallest": objects of the smallest cluster. From one ensemble "support", "gap", "drop" and "ratio"
        (`gpuens.evidence.Spectrum`), and from a tree "lifetime"; from clusterings for each k "pac",
        "rpac", "corrected_pac", "area", "delta_area" (relative to the area of the k before, at the first k the area)
        and "inconsistency"; from reference data "rcsi" and "p" (M3C). None where a number is not defined.
    labels : dict of int to ndarray (n_objects,)
        The consensus for each number of clusters.
    suggested : int
    reasons : dict of int to str
        Why it is suggested, and why the others come close.
    structure : bool or None
        Whether the PAC of the suggestion is smaller than that of reference data. Without them False where the
        clusterings agree no more than independent ones might (`gpuens.evidence.beyond_chance`), else None: that they
        agree does not say that the data have clusters.
    doubt : str or None
        Why the suggestion is in doubt: other numbers have nearly as much support. None if it is not, or not known.
    consensus : dict of int to gpuens.evidence.ConsensusMatrix
        The pairs of objects by the share of the clusterings that put both together, and the consensus matrix of at most
        500 objects: of the clusterings for each k, or the same one for all k.
    method : str
        The method whose consensus `labels` are.
    lopsided : dict of int to str
        The numbers whose consensus is far less even than the base clusterings, such as with a cluster of single
        objects, and what to do. Of the suggestion there is a warning, too.
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
        """Draw what ConsensusClusterPlus' users look at: consensus matrix, CDF, delta area and tracking plot.

        Where the clusterings are the same for all k, support takes the place of the delta area. Each picture alone, for
        any Axes: `gpuens.plotting.consensus_matrix`, `cdf`, `criterion` and `tracking`.

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
        """What single criteria would suggest: the number with the best value of each.

        That of "delta_area" is its elbow, the number after which it falls by the largest factor. The smallest "pac" is
        often that of the most clusters, where there is nothing to find.
        """
        return {name: best for name, rule in SINGLE.items() if (best := rule(self.rows, name)) is not None}

    @property
    def table(self) -> "pd.DataFrame":
        """The rows as a DataFrame indexed by k."""
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
        """Return all but the labels, for JSON."""
        reasons = {str(k): why for k, why in self.reasons.items()}
        chosen = {"suggested": self.suggested, "reasons": reasons, "structure": self.structure}
        chosen |= {
            "doubt": self.doubt,
            "method": self.method,
            "lopsided": {str(k): why for k, why in self.lopsided.items()},
        }
        return {**chosen, "by_criterion": self.by_criterion, "ks": self.rows}


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule: the number of clusters whose value is the least or the largest, the first of equal ones."""

    def rule(rows: list[dict[str, Any]], name: str) -> int | None:
        known = [row for row in rows if row.get(name) is not None]
        return choose(known, key=lambda row: row[name])["k"] if known else None

    return rule


def _elbow(rows: list[dict[str, Any]], name: str) -> int | None:
    """Return the number of clusters after which the value falls by the largest factor."""
    known = [row for row in rows if row.get(name) is not None]
    values = [max(row[name], LEAST_GAIN) for row in known]
    falls = [before / after for before, after in pairwise(values)]
    return known[int(np.argmax(falls))]["k"] if falls else None


SINGLE = {
    **dict.fromkeys(
        ("support", "gap", "drop", "ratio", "lifetime", "mean_silhouette", "cluster_consensus", "rcsi"), _extreme(max)
    ),
    **dict.fromkeys(("pac", "corrected_pac", "inconsistency"), _extreme(min)),
    "delta_area": _elbow,
}


def choose_k(
    labels: Any = None,
    *,
    features: Any = None,
    ks: Iterable[int] | None = None,
    method: str = METHOD,
    n_clusterings: int = 50,
    objects: float = SHARE,
    n_init: int = 5,
    null: int = 0,
    missing: str = "ignore",
    random_state: Any = 0,
    resume: str | os.PathLike[str] | None = None,
    device: str = "auto",
) -> Choice:
    """Compare numbers of clusters and suggest one.

    The suggestion is the number that the spectrum of one ensemble supports best (`gpuens.evidence.spectrum`), as where
    `gpuens.consensus` and `gpuens.cluster` are given none: that of the labels, or of k-means and landmark clusterings
    of the features (of 10,000 objects, if there are more). Where others have nearly as much support, `Choice.doubt`
    says so. With features, chooseR's suggestion is named beside it; of clusterings for each k it is the only one: the
    most clusters whose median silhouette reaches the best lower limit of its bootstrap intervals.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes, or a dict of int to such, optional
        The base clusterings, the same for all k or those of k clusters each.
    features : array (n_objects, n_features), optional
        In place of labels: k-means finds ``n_clusterings`` clusterings for each k (Monti's consensus clustering), and
        ten of 2 … √N clusters, which are one ensemble with ten by landmarks.
    ks : iterable of int, optional
        The numbers of clusters, 2 … 20 by default, or those of the dict. Of fewer objects than 20, or few that differ,
        the default ends with as many as each clustering can have.
    method : str
        A method by name, by default that of `gpuens.consensus`; linkages cut one tree for all k where the labels are
        the same.
    n_clusterings : int
        With features: the number of clusterings for each k.
    objects : float
        With features: the share of the objects that each clustering is of.
    n_init : int
        With features: the starts of each k-means. From single ones clusterings of the right number differ more than
        those of few, so that too few clusters would be suggested.
    null : int
        With features: the number of reference data sets, drawn from the normal distribution with the covariance of the
        features (M3C). 0, or at least 19, which can show significance at 5 %.
    missing : {"ignore", "zero"}
        See `gpuens.evidence.objects`.
    random_state : int or numpy.random.Generator
    resume : str or path, optional
        A folder that keeps what has been found for each number: a choice that was stopped, or that gets further
        numbers, goes on there. A folder of other data or parameters is refused.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For labels, features and numbers that cannot be.

    References
    ----------
    Monti et al., Machine Learning 52 (2003); Patterson-Cross et al. (chooseR), BMC Bioinformatics 22 (2021); John et
    al. (M3C), Scientific Reports 10 (2020).

    Examples
    --------
    >>> import gpuens as ge, numpy as np
    >>> X = np.random.default_rng(0).normal(np.repeat([[0, 0], [9, 0], [0, 9]], 20, axis=0))
    >>> found = ge.choose_k(features=X, ks=range(2, 7), n_clusterings=20)
    >>> found.suggested, found.table.columns[:3].tolist()
    (3, ['silhouette', 'silhouette_low', 'silhouette_high'])
    """
    checks.check_choice(missing, "missing", CONVENTIONS)
    if (labels is None) == (features is None):
        raise ValueError("labels and features: give one of them, base clusterings or what to make them from.")
    checks.check_integer(null, "null", minimum=0)
    if null and (features is None or null < LEAST_NULL):
        raise ValueError(
            f"null={null}: reference data are made from features, {LEAST_NULL} times at least; leave it 0 otherwise."
        )
    rng = checks.make_generator(random_state)
    X = None if features is None else as_features(features, name="features")
    find: Callable[[int], Arrays]
    if null and not isinstance(X, np.ndarray):
        raise TypeError("features are a sparse matrix, but reference data are dense: pass features.toarray().")
    seed = int(rng.integers(2**31))
    own = int(random_state) if isinstance(random_state, Integral) else seed
    how = _How(method, own, seed, missing, device)
    resampled = partial(_resampled, n_clusterings=n_clusterings, objects=objects, n_init=n_init, device=device)
    if X is not None:
        numbers = _numbers_of(ks, X, objects)
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
        n_distinct = len(core_groups(Rows(labels, device=device)).rows)
        numbers = _numbers(ks, n_distinct, f"the objects have {n_distinct} distinct label rows")
        find = _of_any(labels, numbers[-1], how)
    keep: Callable[[str, Callable[[], Arrays]], Arrays] = found_anew
    if resume is not None:
        drawn = {} if X is None else {"n_clusterings": n_clusterings, "objects": objects, "n_init": n_init}
        about = {
            "gpuens": __version__,
            "parts": PARTS,
            "data": digest(labels if X is None else X),
            **how._asdict(),
            **drawn,
        }
        keep = Folder(resume, about).part
    rows: list[dict[str, Any]] = []
    answers, consensus, lopsided = {}, {}, {}
    for k in progress.bar(numbers, "numbers of clusters"):
        with unsaid():  # all numbers but one are thrown away
            part = keep(f"k_{k}", partial(find, k))
        answers[k] = part["labels"]
        rows.append(json.loads(str(part["row"])))
        if "codes" in part:
            consensus[k] = ConsensusMatrix.of_arrays(part)
        if (why := rows[-1].pop("lopsided", None)) is not None:
            lopsided[k] = why
    if all(row["silhouette"] is None for row in rows):
        raise ValueError(f"method {method!r} found a single cluster for each number of ks; there is none to choose.")

    def chosen(choice: Choice) -> Choice:
        if choice.suggested in lopsided:
            checks.warn(f"{choice.suggested} clusters by {method}: {lopsided[choice.suggested].removesuffix('.')}.")
        return replace(choice, method=method, lopsided=lopsided, consensus=consensus)

    supported = None if isinstance(labels, Mapping) else _supported(keep, numbers[-1], labels, X, seed, device)
    if supported is not None:
        _add_support(rows, supported)
    if "pac" not in rows[0]:
        assert supported is not None  # as labels are no mapping
        consensus = dict.fromkeys(numbers, ConsensusMatrix.of(labels, seed, missing))
        return chosen(_beside_chance(_by_support(rows, answers, supported), labels, device))
    for row, before in zip(rows, [None, *rows], strict=False):
        if before is None:
            row["delta_area"] = row["area"]
        elif before["area"] > 0:
            row["delta_area"] = row["area"] / before["area"] - 1.0
    if X is not None and null:
        _beside_null(rows, X, null, how, resampled, keep)
    choice = _by_chooser(rows, answers)
    if supported is not None:
        return chosen(_beside_references(_by_support(rows, answers, supported, choice)))
    return chosen(_beside_chance(choice, labels[choice.suggested], device))


def foresee(
    labels: Any = None,
    *,
    features: Any = None,
    ks: Iterable[int] | None = None,
    n_clusterings: int = 50,
    null: int = 0,
    resume: Any = None,
    **others: Any,
) -> float:
    """Return about the seconds that `choose_k` will take, NaN where that cannot be told within a second.

    It is foreseen from choices for some of the objects; parameters are the same.

    With features only the least and the largest number and a fifth of the clusterings are tried. The folder ``resume``
    is neither read nor written: results of some objects have no place among those of all.
    """
    with progress.silent():
        if features is not None:
            defaults: dict[str, Any] = choose_k.__kwdefaults__ or {}
            given = defaults | others | {"ks": ks, "n_clusterings": n_clusterings, "null": null}
            return _foreseen_of_features(as_features(features, name="features"), given)
        if isinstance(labels, Mapping):
            labels = {k: Ensemble(labels[k]) for k in labels}
            n, numbers = len(next(iter(labels.values()))), _numbers(labels if ks is None else ks)
        else:
            labels = Ensemble(labels)
            n, numbers = len(labels), _numbers(ks, len(labels), f"there are {len(labels)} objects")

        def choose(some: np.ndarray) -> Callable[[], Choice]:
            if isinstance(labels, Mapping):
                given: Any = {k: of_k.take(some) for k, of_k in labels.items()}
            else:
                given = labels.take(some)
            return partial(choose_k, given, ks=numbers, **others)

        return forecast.of_trials(choose, n, numbers[-1])


def _foreseen_of_features(X: Any, given: dict[str, Any]) -> float:
    """Return the seconds of a choice from features: those for each number, and those of the spectrum, once."""
    n, numbers = X.shape[0], _numbers_of(given["ks"], X, given["objects"])
    ends, tried = sorted({numbers[0], numbers[-1]}), max(5, given["n_clusterings"] // 5)
    times = len(numbers) / len(ends) * given["n_clusterings"] / tried * (1 + given["null"])
    how = _How(given["method"], 0, 0, given["missing"], given["device"])
    drawing = {name: given[name] for name in ("objects", "n_init", "device")}

    def parts(some: np.ndarray) -> Callable[[], list[Arrays]]:
        clusterings = partial(_resampled, X[some], 0, n_clusterings=tried, **drawing)
        return lambda: [_of_own(clusterings, how, X[some], k) for k in ends]

    def whole(some: np.ndarray) -> Callable[[], Spectrum]:
        return partial(by_features, X[some], 0, device=given["device"])

    seconds: float = times * forecast.of_trials(parts, n, ends[-1])
    return seconds + forecast.of_trials(whole, min(n, SAMPLED), LARGEST)


# --- for each number of clusters --------------------------------------------------------------------------------------


class _How(NamedTuple):
    """How the consensus for a number of clusters is found."""

    method: str
    random_state: int  # the method's own seed, as in `gpuens.consensus`, so that labels are the same
    seed: int  # seed of all other draws
    missing: str
    device: str

    def made(self, k: int, X: Any = None) -> Any:
        estimator = made(self.method, k, self.random_state, self.device)
        if estimator.needs_features and X is None:
            raise ValueError(
                f"method {self.method!r} compares the objects by features; give choose_k features in place of labels, "
                "or take another method."
            )
        return estimator

    def part(self, k: int, labels: np.ndarray, evidence: Evidence, estimator: Any, **more: Any) -> Arrays:
        """Return the labels of the objects, and their row of the table as JSON, with "lopsided": why they are."""
        rng = np.random.default_rng([self.seed, 0, k])  # the same whatever the other numbers are
        remedy = remedy_of(estimator, estimator._parts()[1], len(labels), k)
        why = why_lopsided(evidence.rows, evidence.clusters.sizes, remedy)
        row = {"k": k, **_of_consensus(evidence, rng), **more, "lopsided": why}
        return {"labels": labels, "row": np.array(json.dumps(row))}


def _resampled(X: Any, seed: int, k: int, *, n_clusterings: int, objects: float, n_init: int, device: str) -> Any:
    """Return clusterings of k clusters each, by k-means of samples of the objects."""
    return generate.kmeans_ensemble(
        X, n_clusterings, (k, k), objects=objects, n_init=n_init, random_state=seed, progress=False, device=device
    )


def _numbers(ks: Any, largest: int = 10**6, why: str = "there are no more objects") -> list[int]:
    """Return the checked numbers of clusters, ascending; the first ones up to the largest if ``ks`` is None.

    ``why`` there are no larger ones.
    """
    if ks is None:
        ks = range(2, min(LARGEST, largest) + 1)
    if not isinstance(ks, Iterable):
        raise TypeError(f"ks must be some numbers of clusters, such as range(2, 21), not {checks.shown(ks)}.")
    if largest < 2:
        raise ValueError("ks: all objects are alike, or there is a single one, so that there is nothing to choose.")
    numbers = set()
    for k in ks:  # ks may hold more numbers than a list can
        numbers.add(checks.check_integer(k, "ks", minimum=2))
        if k > largest:
            raise ValueError(f"ks must be {largest} at most, as {why}, but is {k}; ask for fewer clusters.")
    if not numbers:
        raise ValueError("ks holds no number of clusters; give some, such as range(2, 21).")
    return sorted(numbers)


def _numbers_of(ks: Any, X: Any, objects: float) -> list[int]:
    """Return the checked numbers of clusters of features, each clustering of which is of a share of the objects."""
    n_objects, n_drawn = X.shape[0], share(objects, X.shape[0], "objects")
    numbers = _numbers(ks, n_objects, f"there are {n_objects} objects")
    n_distinct = _n_distinct(X, numbers[-1])
    most, why = n_distinct, f"{n_distinct} of the {n_objects} objects differ"
    if n_drawn < n_distinct:
        most, why = n_drawn, f"each clustering is of {n_drawn} of the {n_objects} objects (objects={objects})"
    if most < 2:
        raise ValueError(f"ks: {why}, so that there is nothing to choose; give features of more objects.")
    if ks is not None and numbers[-1] > most:
        raise ValueError(f"ks must be {most} at most, as {why}, but is {numbers[-1]}; ask for fewer clusters.")
    return [k for k in numbers if k <= most]


def _n_distinct(X: Any, enough: int) -> int:
    """Return how many rows of features (n, d) differ, or ``enough`` if no fewer do."""
    found = np.empty((0, X.shape[1]))
    for start in range(0, X.shape[0], ROWS_COMPARED):
        some = X[start : start + ROWS_COMPARED]
        some = some.toarray() if hasattr(some, "toarray") else some
        found = np.unique(np.concatenate([found, some]), axis=0)[:enough]
        if len(found) == enough:
            break
    return len(found)


def _of_own(clusterings: Callable[[int], Any], how: _How, X: Any, k: int) -> Arrays:
    """Return the part of k clusters, of clusterings of k clusters each and with what these say themselves."""
    estimator, ensemble = how.made(k, X), Ensemble(clusterings(k))
    estimator.fit(ensemble, **({"features": X} if estimator.needs_features else {}))
    evidence = estimator.evidence(missing=how.missing)
    pairs = evidence.pairs()
    shown = ConsensusMatrix.of(ensemble, how.seed, how.missing, pairs)
    return shown.arrays() | how.part(
        k, devices.to_host(estimator.labels_), evidence, estimator, pac=pairs.pac(), rpac=_defined(pairs.rpac()),
        corrected_pac=_defined(pairs.corrected_pac()), area=pairs.area(), delta_area=None,
        inconsistency=evidence.consistency.inconsistency,
    )  # fmt: skip


def _of_any(ensemble: Ensemble, largest: int, how: _How) -> Callable[[int], Arrays]:
    """Return a function that finds the part of k clusters, of the same clusterings for all k.

    A linkage is fitted once, when it is first needed, and cut; its lifetimes are further criteria.
    """
    fitted = cache(lambda k: how.made(k).fit(ensemble))

    def find(k: int) -> Arrays:
        estimator = fitted(largest)
        tree = getattr(estimator, "dendrogram_", None)
        if tree is None:
            estimator = estimator if k == largest else how.made(k).fit(ensemble)
            return how.part(k, devices.to_host(estimator.labels_), estimator.evidence(missing=how.missing), estimator)
        groups, labels, lifetimes = estimator.reduction_.groups(), tree.cut(k), estimator.lifetimes_
        row_of = devices.to_host(groups.row_of)
        lifetime = float(lifetimes[k - 2]) if k - 2 < len(lifetimes) else None
        evidence = Evidence.of_groups(groups.rows, labels, row_of, how.missing)
        return how.part(k, labels[row_of], evidence, estimator, lifetime=lifetime)

    return find


def _of_consensus(evidence: Evidence, rng: np.random.Generator) -> dict[str, Any]:
    objects, clusters, labels = evidence.objects, evidence.clusters, evidence.labels
    k = len(clusters.sizes)
    means = np.bincount(labels, weights=objects.silhouette) / clusters.sizes
    medians = np.median(means[rng.integers(k, size=(BOOTSTRAPS, k))], axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    return {
        "silhouette": _defined(np.median(means)),
        "silhouette_low": _defined(low),
        "silhouette_high": _defined(high),
        "mean_silhouette": _mean(objects.silhouette),
        "confidence": _mean(objects.confidence),
        "cluster_consensus": _mean(clusters.consensus),
        "anmi": evidence.agreement.anmi,
        "smallest": int(clusters.sizes.min()),
    }


def _defined(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(values: np.ndarray) -> float | None:
    return None if np.isnan(values).all() else float(np.nanmean(values))


def _beside_null(
    rows: list[dict[str, Any]],
    X: np.ndarray,
    null: int,
    how: _How,
    resampled: Callable[..., Any],
    keep: Callable[..., Any],
) -> None:
    """Add M3C's RCSI = mean ln PAC of the references - ln PAC, and p = (1 + #{smaller PAC}) / (references + 1)."""
    center = X.mean(axis=0, dtype=np.float64)
    _, scales, axes = np.linalg.svd(X - center, full_matrices=False)
    spread = scales[:, None] * axes / np.sqrt(len(X) - 1)  # rows: principal axes, as long as their deviations

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
        row["rcsi"] = float(np.log(of_null.clip(LEAST_PAC)).mean() - np.log(max(row["pac"], LEAST_PAC)))
        row["p"] = float((1 + np.count_nonzero(of_null < row["pac"])) / (null + 1))


# --- support ----------------------------------------------------------------------------------------------------------


def _supported(keep: Callable[..., Arrays], largest: int, labels: Any, X: Any, seed: int, device: str) -> Spectrum:
    """Return the support for numbers up to the largest, by labels, or by unlike clusterings of features."""

    at_most = max(largest, LARGEST)

    def find() -> Arrays:
        found = spectrum(labels, at_most, device=device) if X is None else by_features(X, seed, at_most, device)
        return {field.name: getattr(found, field.name) for field in fields(found)}

    part = keep(f"support_{at_most}", find)
    return Spectrum(*(part[field.name] for field in fields(Spectrum)))


def by_features(X: Any, seed: int, largest: int = LARGEST, device: str = "auto") -> Spectrum:
    """Return the spectrum of clusterings of features by k-means and by landmarks, of at most `SAMPLED` objects.

    What unlike algorithms see is more than what one of them makes.
    """
    if X.shape[0] > SAMPLED:
        X = X[drawn(X.shape[0], seed)]
    made_by: tuple[Callable[..., Any], ...] = (generate.kmeans_ensemble, generate.landmark_ensemble)
    with checks.recorded():  # warnings of clusterings that nobody sees
        found = [make(X, OF_EACH_KIND, random_state=seed, progress=False, device=device) for make in made_by]
        labels = [labels for ensemble in found for labels in devices.to_host(ensemble.to_array()).T]
        return spectrum(labels, largest, device=device)


def drawn(n_objects: int, seed: int) -> np.ndarray:
    """Return the objects, in ascending order, that show how many clusters there are."""
    rng = np.random.default_rng([seed, 2])
    return np.sort(rng.choice(n_objects, min(n_objects, SAMPLED), replace=False))


def _add_support(rows: list[dict[str, Any]], found: Spectrum) -> None:
    """Add the support for each number to its row, and what it is made of; None where there can be no such number."""
    of = {"support": found.support, "gap": found.gaps, "drop": found.drops, "ratio": found.ratios}
    at = {int(k): i for i, k in enumerate(found.numbers)}
    for row in rows:
        i = at.get(row["k"])
        row |= {name: None if i is None else float(values[i]) for name, values in of.items()}


# --- suggestions ------------------------------------------------------------------------------------------------------


def _by_chooser(rows: list[dict[str, Any]], answers: dict[int, np.ndarray]) -> Choice:
    known = [row for row in rows if row["silhouette"] is not None]
    best = max(known, key=lambda row: row["silhouette_low"])
    good = [row for row in known if row["silhouette"] >= best["silhouette_low"]]
    reasons = {
        row["k"]: f"median silhouette {row['silhouette']:.3f}, not below {best['silhouette_low']:.3f}, the best lower "
        f"limit (that of {best['k']} clusters)"
        for row in reversed(good)
    }
    suggested = good[-1]["k"]
    reasons[suggested] += "; of such numbers the largest"
    return Choice(rows, answers, suggested, reasons, None)


def _by_support(
    rows: list[dict[str, Any]], answers: dict[int, np.ndarray], found: Spectrum, chooser: Choice | None = None
) -> Choice:
    """Return the choice of the number with the most support; others that come close follow, and that of the chooser."""
    best = found.best(list(answers)) or [min(answers)]
    most = found.of(best[0])
    reasons = {k: f"support {found.of(k):.3f}" for k in best if k == best[0] or found.close(k, most)}
    reasons[best[0]] += ", the most"
    if (doubt := found.doubt(list(answers))) is not None:
        reasons[best[0]] += f"; in doubt, as {doubt}"
    if chooser is not None:
        why = f"chooseR's: {chooser.reasons[chooser.suggested]}"
        k = chooser.suggested
        reasons[k] = f"{reasons[k]}; {why}" if k in reasons else why
    return Choice(rows, answers, best[0], reasons, None, doubt)


def _beside_references(choice: Choice) -> Choice:
    """Return a choice from features that says whether reference data have as small a PAC, if there are any."""
    row = next(row for row in choice.rows if row["k"] == choice.suggested)
    if "p" not in row:
        return choice
    structure = row["p"] <= LEVEL
    why = f"{choice.reasons[choice.suggested]}; p = {row['p']:.3f} by reference data"
    why += "" if structure else ": no structure beyond chance"
    return replace(choice, structure=structure, reasons=choice.reasons | {choice.suggested: why})


def _beside_chance(choice: Choice, labels: Any, device: str) -> Choice:
    """Return a choice that says so where the clusterings, those of the suggestion, may agree by chance alone."""
    found = beyond_chance(labels, device=device)
    if not found.doubtful:
        return choice
    why = {choice.suggested: f"{choice.reasons[choice.suggested]}; {found}: no structure beyond chance"}
    return replace(choice, structure=False, reasons=choice.reasons | why)
