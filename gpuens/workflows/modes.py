"""Modes of an ensemble: groups of clusterings that agree, each with a consensus of its own.

Let A be the adjusted Rand index of each pair of clusterings. If all clusterings are noisy copies of a single partition,
with errors that are independent, A_ij = s_i s_j for i ≠ j: a clustering agrees with another as far as both agree with
the partition. This holds for errors of any frequency, which may differ between clusterings and between objects. The
residuals A_ij - s_i s_j then have no structure, and their eigenvalues are small. q modes give q - 1 large ones.

How small is found by a test. Under the hypothesis of q modes, clusterings of a mode err independently, so that the
labels of an object (in one naming, `gpuens.align`) can be exchanged among the clusterings of the mode. The test
compares the q-th eigenvalue with that after such exchanges. If it is larger, q + 1 modes are tried.

Several groups are not modes yet: clusterings that change gradually can be divided anywhere. Two groups are modes if
they are apart; otherwise they are joined. Clusterings in gradual changes, such as cuts at any place between .3 and .7,
give gaps of 1.8 to 3 times the scatter within the groups, and are a single story.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.alignment import align
from gpuens.contingency.scores import agreement, ari_of, vi_of
from gpuens.contingency.tables import table
from gpuens.labels.codes import select_columns, unlabelled_objects, without_empty
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.odd_columns import first_equal_clusterings
from gpuens.labels.soft_ensemble import SoftEnsemble, with_shares
from gpuens.methods import make_estimator
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

MOST_MODES = 9  # most modes that the rule tries
TESTED_RUNS = 200  # most clusterings in the test, drawn at random
TESTED_OBJECTS = 2000  # most objects in the test, drawn at random
COMPARED_OBJECTS = 8192  # most objects by which clusterings are compared and grouped, drawn at random
EXCHANGES = 20  # number of ensembles with exchanged labels
DEVIATIONS = 4.0  # an eigenvalue is large if it exceeds the mean after exchanges by this many standard deviations
APART = 3.0  # least distance between the centres of two modes, divided by the sum of the deviations within them
FITS = 100  # most iterations of the factor s, and of the centres of the groups
TOLERANCE = 1e-6


@dataclass
class Mode:
    """A group of clusterings that agree.

    Attributes
    ----------
    members : ndarray (n_members,), int64
        The positions of its clusterings.
    share : float
        Its share of all clusterings.
    medoid : int
        The position of the member with the largest mean ARI with the members.
    consensus : ndarray (n_objects,), int64
        The consensus of its clusterings; -1 for an object without a label in any of them.
    agreement : float
        The mean ARI of pairs of members; 1 for a single member.
    membership : ndarray (n_objects, n_names), float64, or None
        If clusterings are memberships: the mean of the members' shares, aligned with those of the medoid
        (`gpuens.align`), in the order of the clusters of ``consensus``; then ``consensus`` has the largest share.
    """

    members: np.ndarray
    share: float
    medoid: int
    consensus: np.ndarray
    agreement: float
    membership: np.ndarray | None = None

    @property
    def n_clusters(self) -> int:
        """The number of clusters of the consensus."""
        return int(self.consensus.max()) + 1


@dataclass(repr=False)
class Modes:
    """The result of `modes`: groups of clusterings, the largest first.

    Attributes
    ----------
    modes : list of Mode
    of_clustering : ndarray (n_clusterings,), int64
        The mode of each clustering.
    vi, ari : ndarray (n_modes, n_modes), float64
        The variation of information in bits, and the adjusted Rand index, of the consensuses of two modes.
    names : list
        The names of the clusterings.
    n_distinct : int
        The number of different clusterings.
    tests : list of dict
        For each tested number of modes: "n_modes", "eigenvalue", and "mean", "deviation" and "largest" of the
        eigenvalues after exchanges of labels. Empty for a given number of modes.
    """

    modes: list[Mode]
    of_clustering: np.ndarray
    vi: np.ndarray
    ari: np.ndarray
    names: list[Any]
    n_distinct: int
    tests: list[dict[str, Any]]

    @property
    def story(self) -> str:
        """The result as a sentence, such as "Your 100 clusterings are two stories: 62 and 38."."""
        sizes = [len(mode.members) for mode in self.modes]
        if len(sizes) == 1:
            if sizes[0] == 1:
                return "A single clustering tells a single story."
            how = ", and all are equal" if self.n_distinct == 1 else ", with gradual changes" * (len(self.tests) > 1)
            return f"Your {sizes[0]:,} clusterings tell a single story{how}."
        listed = f"{', '.join(f'{size:,}' for size in sizes[:-1])} and {sizes[-1]:,}"
        return f"Your {sum(sizes):,} clusterings are {NUMBERS.get(len(sizes), len(sizes))} stories: {listed}."

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values, without the labels of the consensuses."""
        modes = [
            {
                "clusterings": [str(self.names[m]) for m in mode.members],
                "share": mode.share,
                "medoid": str(self.names[mode.medoid]),
                "n_clusters": mode.n_clusters,
                "agreement": mode.agreement,
            }
            for mode in self.modes
        ]
        matrices = {name: _json_matrix(getattr(self, name)) for name in ("vi", "ari")}
        return {"story": self.story, "n_distinct": self.n_distinct, "modes": modes, **matrices, "tests": self.tests}

    def __repr__(self) -> str:
        facts = {
            f"mode {i}": f"{len(mode.members):,} clusterings ({mode.share:.0%}), {mode.n_clusters} "
            f"clusters, agreement {mode.agreement:.2f}, medoid {self.names[mode.medoid]}"
            for i, mode in enumerate(self.modes)
        }
        return checks.summary(self, self.story, **facts)


NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}


@takes_rng
def modes(
    labels: Any,
    n: int | None = None,
    *,
    method: str = "voting",
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
    wide: bool = False,
    device: str = "auto",
) -> Modes:
    """Divide clusterings into modes, groups that agree, and find the consensus of each mode.

    A consensus of clusterings that tell two stories is a mixture of both. The modes show how many stories there are,
    how many clusterings tell each, and how far they are apart. Independent errors of the clusterings make no modes; two
    groups count as modes if they are separated by more than their scatter.

    Equal clusterings are processed once, with a count. Time is that of the contingency tables of all pairs of different
    clusterings, for at most 8192 objects drawn at random; the test draws 200 clusterings and 2000 objects.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` or `gpuens.SoftEnsemble` takes
        (n_objects, n_clusterings). Memberships are compared by the cluster of the largest share, the first of equal
        ones.
    n : int, optional
        The number of modes; None finds it, at most 9, by the test that the module describes.
    method : str
        The method of the consensuses, a key of `gpuens.methods`. A consensus has as many clusters as the mode's medoid.
        The consensus of memberships is their mean.
    random_state : int, None or numpy.random.Generator
        For drawn objects and exchanged labels. The same seed gives the same result.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    wide : bool
        Rows are objects, even if there are more clusterings than objects; as in `gpuens.Ensemble`.
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    Modes

    Raises
    ------
    ValueError, TypeError
        For labels that Ensemble refuses, and for more modes than different clusterings.
    MemoryError
        If the table of all pairs of clusterings does not fit the memory.

    Examples
    --------
    >>> import gpuens as ge
    >>> rows, columns = [0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2, 0, 1, 2, 0, 1, 2]
    >>> found = ge.modes([rows, rows, columns, rows, columns, rows, rows, columns])
    >>> found.story
    'Your 8 clusterings are two stories: 5 and 3.'
    >>> found.of_clustering.tolist(), found.modes[1].consensus.tolist()
    ([0, 0, 1, 0, 1, 0, 0, 1], [0, 1, 2, 0, 1, 2, 0, 1, 2])
    >>> found.ari.tolist()
    [[1.0, -0.3333333333333333], [-0.3333333333333333, 1.0]]
    """
    labels = with_shares(labels)
    soft = labels if isinstance(labels, SoftEnsemble) else None
    ensemble = Ensemble(labels, wide=wide) if soft is None else _largest_shares(soft)
    rng = checks.make_generator(random_state)
    where = devices.resolve(device, ensemble.device_kind)
    first = first_equal_clusterings(ensemble.codes, np.diff(ensemble.offsets))
    distinct, place, counts = np.unique(first, return_inverse=True, return_counts=True)
    if n is not None:
        checks.check_integer(n, "n", minimum=1)
        if n > len(distinct):
            raise ValueError(f"n={n} modes are more than the {len(distinct)} different clusterings; take fewer.")
    checks.check_memory(
        40 * len(distinct) ** 2,
        devices.memory_budget(),
        f"the agreement of all pairs of {len(distinct):,} clusterings",
        "pass fewer clusterings, such as every tenth",
    )
    objects = _draw(ensemble.n_objects, COMPARED_OBJECTS, rng)
    directions = _Directions(_ari_matrix(_restrict(ensemble, objects, distinct), where), counts)
    groups, tests = np.zeros(len(distinct), dtype=np.int64), []
    if n is None:
        test = _Test(ensemble, place, rng, where)
        groups, tests = _join(directions, _find_groups(directions, test)), test.results
    elif n > 1:
        groups = _group(directions, n)
    return _describe(ensemble, directions, place, groups, _Consensus(ensemble, soft, method, where), tests)


def _largest_shares(soft: SoftEnsemble) -> Ensemble:
    """Return the ensemble of the clusters with the largest shares, without clusters that have no object."""
    hard = soft.hardened("cpu")
    order = np.argsort(soft._order).tolist()
    codes = select_columns(hard.codes, order, np.diff(hard.offsets))
    codes, categories = without_empty(codes, [hard.categories[m] for m in order])
    return Ensemble.of_codes(codes, categories, soft.names, soft.device_kind, index=soft.index)


def _draw(n: int, n_drawn: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(n) if n <= n_drawn else np.sort(rng.choice(n, n_drawn, replace=False))


def _restrict(ensemble: Ensemble, objects: np.ndarray, clusterings: np.ndarray) -> Ensemble:
    """Return the ensemble of some objects and some clusterings; nothing is checked.

    Clusters without these objects are left out if they must be many.
    """
    codes = select_columns(ensemble.codes[objects], clusterings.tolist(), np.diff(ensemble.offsets))
    categories = [ensemble.categories[m] for m in clusterings.tolist()]
    if max(map(len, categories)) > len(objects):
        codes, categories = without_empty(codes, categories)
    return Ensemble.of_codes(codes, categories, list(range(len(clusterings))))


def _ari_matrix(ensemble: Ensemble, where: str) -> np.ndarray:
    """Return the adjusted Rand index of each pair of clusterings (M, M); 0 for two without a common object."""
    ari = agreement(ensemble, "ari", device=where)
    ari[np.isnan(ari)] = 0.0
    return ari


def _json_matrix(matrix: np.ndarray) -> list[list[float | None]]:
    return [[None if value != value else value for value in row] for row in matrix.tolist()]


# --- the number of modes ----------------------------------------------------------------------------------------------


def _factor(weighted: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return s (U,) with pairs[i, j] ≈ s_i s_j for different clusterings; a clustering counts as often as it occurs.

    ``weighted`` are the pairs times the roots of both counts. Its diagonal becomes that of s_i s_j.
    """
    root, n_copies, diagonal = np.sqrt(counts), counts - 1.0, np.diag_indices(len(counts))
    x = weighted.sum(axis=1)
    x /= max(np.linalg.norm(x), TOLERANCE)
    s = np.zeros(len(counts))
    for _ in range(FITS):
        weighted[diagonal] = n_copies + np.minimum(s * s, 1.0)  # the agreement of a clustering with itself is s², not 1
        y = weighted @ x
        size = float(np.linalg.norm(y))
        x = y / max(size, TOLERANCE)
        before, s = s, np.maximum(np.sqrt(size) * x / root, 0.0)  # a clustering cannot disagree with a partition
        if np.abs(s - before).max() < TOLERANCE:
            break
    weighted[diagonal] = n_copies + np.minimum(s * s, 1.0)
    return s


def _eigenvalues(pairs: np.ndarray) -> np.ndarray:
    """Return the eigenvalues (M,), ascending, of the residuals of pairs of clusterings, whose diagonal is zero."""
    s = _factor(pairs.copy(), np.ones(len(pairs)))
    residuals = pairs - s[:, None] * s
    np.fill_diagonal(residuals, 0.0)
    with devices.library_threads(1):  # several threads would wait for each other at every column
        return np.linalg.eigvalsh(residuals)


class _Test:
    """The test whether clusterings have more than q modes, on a sample of clusterings and objects."""

    def __init__(self, ensemble: Ensemble, place: np.ndarray, rng: np.random.Generator, where: str) -> None:
        clusterings = _draw(ensemble.n_clusterings, TESTED_RUNS, rng)
        objects = _draw(ensemble.n_objects, TESTED_OBJECTS, rng)
        self.sample = _restrict(ensemble, objects, clusterings)
        self.place, self.rng, self.where = place[clusterings], rng, where
        self.pairs = _ari_matrix(self.sample, where)
        self.eigenvalues = _eigenvalues(self.pairs)[::-1]
        self.results: list[dict[str, Any]] = []

    def rejects(self, groups: np.ndarray, q: int) -> bool:
        """Return whether the groups of the different clusterings (U,) leave more structure than q modes explain."""
        groups = groups[self.place]
        labels = self._aligned_labels(groups)
        exchanged = np.array([self._exchanged_eigenvalue(labels, groups, q) for _ in range(EXCHANGES)])
        value = float(self.eigenvalues[q - 1]) if q <= len(groups) else 0.0
        mean, deviation, largest = float(exchanged.mean()), float(exchanged.std(ddof=1)), float(exchanged.max())
        result = {"n_modes": q, "eigenvalue": value, "mean": mean, "deviation": deviation, "largest": largest}
        self.results.append(result)
        return value > max(largest, mean + DEVIATIONS * deviation) + TOLERANCE

    def _aligned_labels(self, groups: np.ndarray) -> np.ndarray:
        """Return labels (N, M), -1 for missing, in one naming of clusters for each group."""
        labels, objects = self.sample.to_array(), np.arange(self.sample.n_objects)
        aligned = np.empty(labels.shape, dtype=np.int64)
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            central = labels[:, members[self.pairs[np.ix_(members, members)].sum(axis=1).argmax()]]
            part = _restrict(self.sample, objects, members)
            aligned[:, members] = devices.to_host(align(part, central, device=self.where).codes)
        return aligned

    def _exchanged_eigenvalue(self, labels: np.ndarray, groups: np.ndarray, q: int) -> float:
        """Return the q-th eigenvalue after an exchange of each object's labels within the groups."""
        labels = labels.copy()
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            labels[:, members] = self.rng.permuted(labels[:, members], axis=1)
        k = int(labels.max()) + 1
        codes = np.where(labels < 0, np.iinfo(np.uint32).max, labels).astype(np.uint32)
        ensemble = Ensemble.of_codes(np.asfortranarray(codes), [np.arange(k)] * len(groups), list(range(len(groups))))
        return float(_eigenvalues(_ari_matrix(ensemble, self.where))[-q])


# --- groups -----------------------------------------------------------------------------------------------------------


class _Directions:
    """Directions of the different clusterings: those of a mode have nearly the same direction, whatever their noise."""

    def __init__(self, pairs: np.ndarray, counts: np.ndarray) -> None:
        self.pairs, self.counts = pairs, counts
        self.along = cache(self._along)

    @cached_property
    def _weighted(self) -> np.ndarray:
        root = np.sqrt(self.counts)
        weighted: np.ndarray = self.pairs * root[:, None]
        weighted *= root
        _factor(weighted, self.counts)
        return weighted

    def _along(self, q: int) -> np.ndarray:
        """Return the rows (U, q) of the q leading eigenvectors of the agreement, scaled to length 1."""
        root = np.sqrt(self.counts)
        if len(root) > 500:
            from scipy.sparse.linalg import eigsh

            values, vectors = eigsh(self._weighted, q, which="LA", v0=root)
        else:
            values, vectors = np.linalg.eigh(self._weighted)
        axes = vectors[:, -q:] * np.sqrt(np.maximum(values[-q:], 0.0)) / root[:, None]
        return axes / np.maximum(np.linalg.norm(axes, axis=1, keepdims=True), TOLERANCE)


def _find_groups(directions: _Directions, test: _Test) -> np.ndarray:
    """Return the groups (U,) of as few modes as the test does not reject."""
    groups = np.zeros(len(directions.counts), dtype=np.int64)
    for q in range(2, 1 + min(MOST_MODES, len(groups))):
        if not test.rejects(groups, q - 1):
            break
        groups = _group(directions, q)
    return groups


def _group(directions: _Directions, q: int) -> np.ndarray:
    """Return q groups (U,) of the clusterings, numbered from 0: Ward's linkage of their directions, then k-means."""
    from scipy.cluster.hierarchy import fcluster, linkage

    points, counts = directions.along(q), directions.counts
    first = np.repeat(np.arange(len(counts)), np.minimum(counts, 2))  # Ward's linkage has no weights
    groups = fcluster(linkage(points[first], "ward"), q, "maxclust")[np.searchsorted(first, np.arange(len(counts)))] - 1
    for _ in range(FITS):
        centers = _centers(points, counts, groups, q)
        distances = ((points[:, None] - centers) ** 2).sum(axis=2)
        before, groups = groups, distances.argmin(axis=1)
        if (groups == before).all():
            break
    return np.unique(groups, return_inverse=True)[1]


def _centers(points: np.ndarray, counts: np.ndarray, groups: np.ndarray, q: int) -> np.ndarray:
    """Return the weighted mean (q, d) of the points of each group; an empty group is far away."""
    weights = np.bincount(groups, weights=counts, minlength=q)
    sums = np.stack([np.bincount(groups, weights=counts * axis, minlength=q) for axis in points.T], axis=1)
    return np.where(weights[:, None] > 0, sums / np.maximum(weights, 1)[:, None], np.inf)


def _join(directions: _Directions, groups: np.ndarray) -> np.ndarray:
    """Join groups until all are apart, the nearest first; a single clustering is no mode."""
    counts = directions.counts
    while (q := int(groups.max()) + 1) > 1:
        points = directions.along(q)
        centers, sizes = _centers(points, counts, groups, q), np.bincount(groups, weights=counts)
        gaps = np.full((q, q), np.inf)
        for i, j in zip(*np.triu_indices(q, 1), strict=True):
            way = centers[j] - centers[i]
            length = float(np.linalg.norm(way))
            along = points @ way / max(length, TOLERANCE)
            spread = [_deviation(along[groups == g], counts[groups == g]) for g in (i, j)]
            gaps[i, j] = length / max(sum(spread), TOLERANCE)
            if sizes[[i, j]].min() < 2:
                gaps[i, j] = min(gaps[i, j], length * APART / 4)  # directions are at most 2 apart
        i, j = np.unravel_index(gaps.argmin(), gaps.shape)
        if gaps[i, j] >= APART:
            break
        groups = np.unique(np.where(groups == j, i, groups), return_inverse=True)[1]
    return groups


def _deviation(values: np.ndarray, counts: np.ndarray) -> float:
    mean = np.average(values, weights=counts)
    return float(np.sqrt((counts * (values - mean) ** 2).sum() / max(counts.sum() - 1, 1)))


# --- the result -------------------------------------------------------------------------------------------------------


def _describe(
    ensemble: Ensemble,
    directions: _Directions,
    place: np.ndarray,
    groups: np.ndarray,
    consensus: "_Consensus",
    tests: list[dict[str, Any]],
) -> Modes:
    """Return the modes of the groups (U,) of the different clusterings, whose numbers are in ``place`` (M,)."""
    pairs, counts = directions.pairs, directions.counts
    sizes = np.bincount(groups, weights=counts)
    first = np.unique(groups[place], return_index=True)[1]
    order = np.lexsort([first, -sizes])
    of_clustering = np.argsort(order)[groups[place]]
    modes = []
    for i, group in enumerate(order.tolist()):
        members, distinct = np.flatnonzero(of_clustering == i), np.flatnonzero(groups == group)
        within = pairs[np.ix_(distinct, distinct)] @ counts[distinct]
        n_pairs = sizes[group] * (sizes[group] - 1)
        mean = float((counts[distinct] @ within - sizes[group]) / n_pairs) if n_pairs else 1.0
        medoid = int(np.flatnonzero(place == distinct[within.argmax()])[0])
        labels, membership = consensus.find(members, medoid)
        modes.append(Mode(members, len(members) / len(place), medoid, labels, mean, membership))
    q = len(modes)
    vi, ari = np.zeros((q, q)), np.eye(q)
    for a, b in zip(*np.triu_indices(q, 1), strict=True):
        shared = table(modes[a].consensus, modes[b].consensus)
        vi[a, b] = vi[b, a] = vi_of(shared)
        ari[a, b] = ari[b, a] = ari_of(shared)
    return Modes(modes, of_clustering, vi, ari, list(ensemble.names), len(counts), tests)


class _Consensus(NamedTuple):
    """The consensus of some clusterings by a method, or the mean of their memberships."""

    ensemble: Ensemble
    soft: SoftEnsemble | None
    method: str
    where: str

    def find(self, members: np.ndarray, medoid: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the labels (N,), with as many clusters as the medoid, -1 without any label; and the memberships."""
        labelled = devices.to_host(~unlabelled_objects(self.ensemble.codes[:, members]))
        if self.soft is None:
            return self._by_method(members, medoid, labelled), None
        clusterings = [self._clustering(self.soft, m) for m in members.tolist()]
        aligned = align(clusterings, clusterings[members.tolist().index(medoid)], device=self.where)
        mean = np.mean([aligned.membership(m) for m in range(len(members))], axis=0)
        labels = mean.argmax(axis=1)
        objects = np.flatnonzero(labelled)
        sizes = np.bincount(labels[objects], minlength=mean.shape[1])
        first_object = np.full(len(sizes), len(labels))
        np.minimum.at(first_object, labels[objects], objects)
        order = np.lexsort([first_object, -sizes])  # the largest cluster first
        return np.where(labelled, np.argsort(order)[labels], checks.MISSING), mean[:, order]

    def _clustering(self, soft: SoftEnsemble, m: int) -> np.ndarray:
        """Return the labels (N,), -1 for missing, or the memberships (N, k) of a clustering, host."""
        place = soft._order.index(m)
        if soft.labels is not None and place < soft.labels.n_clusterings:
            return soft.labels.to_array()[:, place]
        return soft.memberships_of(m, "cpu")

    def _by_method(self, members: np.ndarray, medoid: int, labelled: np.ndarray) -> np.ndarray:
        ensemble = self.ensemble
        part = _restrict(ensemble, np.flatnonzero(labelled), members)
        sizes = np.bincount(ensemble.codes[labelled, medoid], minlength=1)[: len(ensemble.categories[medoid])]
        parameters: dict[str, Any] = {"device": self.where}
        if self.method == "voting":
            parameters["reference"] = int(np.flatnonzero(members == medoid)[0])
        with checks.recorded():  # a mode may lose a small cluster of its medoid
            labels = make_estimator(self.method, int(np.count_nonzero(sizes)), parameters).fit(part).labels_
        labels_of_all = np.full(ensemble.n_objects, checks.MISSING, dtype=np.int64)
        labels_of_all[labelled] = devices.to_host(labels)
        return labels_of_all
