"""One naming of the clusters of all clusterings: each cluster is named after the most similar cluster of a reference.

Each cluster c of a clustering belongs to a family f(c), a cluster of the reference, such that

    Σ_c |c ∩ f(c)| is largest among the maps f that are one to one (no more clusters than the reference has), or onto.

Both are assignments, so that the Hungarian method finds the optimum: of the contingency table, or, for maps onto the
reference, of the losses |c ∩ p| - max_q |c ∩ q|, because a cluster that no cluster of the reference needs goes to the
one with which it shares most objects. A cluster without a common object with its family goes there, too.

Overlaps of memberships u_c and v_p are products, u_c · v_p. If a soft clustering has one cluster more than the
reference, the differences of memberships decide:

    Σ_p ‖Σ_{c: f(c) = p} u_c - v_p‖² is smallest among the maps f onto the reference.

Two clusters a and b then merge, and the sum is 2 u_a · u_b - 2 Σ_c u_c · v_f(c) and a constant: each pair is tried
with its best assignment. Labels need no trials, because the clusters of a clustering have no object in common. For soft
clusterings of still more clusters, the overlap is largest, but the differences need not be smallest.

Several clusters of a family are a split. One of them has the name of the family; the others have a letter, too: "2.b".
The members of a family are named alike in all clusterings. The clusterings with few clusters come first; when a split
gets a new name, its objects in the family are carved out of the reference for this name. In later clusterings, the
members of the family are paired with these parts; one of them always has the name of the family itself.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpuens.contingency.scores import agreement
from gpuens.labels.columns import as_column
from gpuens.labels.encoding import encode_column
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.incidence import label_histograms
from gpuens.labels.object_names import in_order_of
from gpuens.labels.soft_ensemble import SoftEnsemble, is_soft, with_shares
from gpuens.runtime import checks
from gpuens.runtime import device as devices

LETTERS = "bcdefghijklmnopqrstuvwxyz"  # no "a": the first part of a family has the name of the family
APART = "unmatched"  # name of clusters whose objects all lack a label in the reference


class Aligned(NamedTuple):
    """Clusterings in one naming of clusters; the result of `align`. Code c means the same cluster in all clusterings.

    Attributes
    ----------
    codes : array (n_objects, n_clusterings), the smallest signed integers that hold them
        The cluster of each object; -1 for a missing label. Of a soft clustering, the cluster of the largest membership.
        In the memory of the labels.
    names : list of str
        The name of each code: the label values of the reference, then splits such as "2.b".
    families : ndarray (n_codes,), int64
        The cluster of the reference to which each code belongs; c itself for the clusters of the reference.
    clusters : list of ndarray (k_m,), int64
        For each clustering, the code of each of its clusters, in ascending order of its label values.
    reference : ndarray (n_objects,), int64
        The code of each object in the reference; -1 for a missing label.
    chosen : name of the clustering that is the reference, or None for given labels
    overlap : ndarray (n_clusterings,), float64
        The share of objects (of memberships, if soft) in the family of their cluster of the reference, from 0 to 1.
    columns : list
        The names of the clusterings.
    """

    codes: Any
    names: list[str]
    families: np.ndarray
    clusters: list[np.ndarray]
    reference: np.ndarray
    chosen: Any
    overlap: np.ndarray
    columns: list[Any]
    soft: list[Any]  # memberships (n_objects, k_m) of soft clusterings, None for labels

    @property
    def labels(self) -> np.ndarray:
        """The name of the cluster of each object, (n_objects, n_clusterings) objects; None for a missing label."""
        return np.array([*self.names, None], dtype=object)[devices.to_host(self.codes)]

    def membership(self, m: int) -> np.ndarray:
        """Return the shares (n_objects, n_codes) of each object in the clusters of all names, in clustering m, host.

        They are 0 and 1 for labels; a missing label is a row of zeros.
        """
        m = checks.check_integer(m, "m", minimum=0, maximum=len(self.clusters) - 1)
        if self.soft[m] is None:
            mask: np.ndarray = devices.to_host(self.codes[:, m])[:, None] == np.arange(len(self.names))
            return mask.astype(np.float64)
        shares = np.zeros((len(self.reference), len(self.names)))
        shares[:, self.clusters[m]] = devices.to_host(self.soft[m])
        return shares


def align(labels: Any, to: Any = None, *, wide: bool = False, device: str = "auto") -> Aligned:
    """Name the clusters of all clusterings after those of a reference, so that equal names mean equal clusters.

    Each cluster c has a family f(c), a cluster of the reference, such that Σ |c ∩ f(c)| is largest: one to one if the
    clustering has no more clusters than the reference, else with at least one cluster for each of the reference
    (`gpuens.contingency.alignment` has the objective of memberships). Clusters p, p.b, p.c, … of one family are named
    alike in all clusterings, so that names also agree between numbers of clusters; the cluster with the name p is then
    the one that shares most objects with the part p of the earlier clusterings. Time is linear in the number of
    objects, except for the choice of a reference, which compares all pairs of clusterings.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` or `gpuens.SoftEnsemble` takes
    to : labels (n_objects,), memberships (n_objects, k), "first" or None
        The reference, such as a consensus; "first" is the first clustering. None is the clustering with the largest
        mean ARI with all others; of ties, the first one.
    wide : bool
        Rows are objects, even if there are more clusterings than objects; as in `gpuens.Ensemble`.
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    Aligned
        Integer ``codes`` and their ``names``; ``labels`` are the names of all objects.

    Raises
    ------
    ValueError, TypeError
        For labels that Ensemble refuses, and for a reference of another length.
    MemoryError
        If the table of all clusters and those of the reference does not fit the memory.

    References
    ----------
    Kuhn, "The Hungarian method for the assignment problem", Naval Research Logistics 2 (1955).

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.align([[0, 0, 1, 1, 1], ["b", "b", "a", "a", None], [7, 7, 5, 5, 6]], to="first")
    >>> found.codes.tolist(), found.names
    ([[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1], [1, -1, 2]], ['0', '1', '1.b'])
    >>> found.labels[:, 2].tolist()
    ['0', '0', '1', '1', '1.b']
    >>> ge.align([[0, 0, 1, 1], [[0.1, 0.9], [0.2, 0.8], [1, 0], [0.6, 0.4]]], to="first").membership(1).tolist()
    [[0.9, 0.1], [0.8, 0.2], [0.0, 1.0], [0.4, 0.6]]
    """
    ensemble = _ensemble(labels, wide, soft=_is_matrix(to))
    where = devices.resolve(device, ensemble.device_kind)
    name, target = _reference(ensemble, to, where)
    parts: _HardParts | _SoftParts
    if isinstance(ensemble, SoftEnsemble):
        parts, hard, order = _SoftParts(ensemble, target, where), ensemble.hardened_on(where), ensemble._order
    else:
        parts, hard = _HardParts(ensemble, target, where), ensemble.codes_on(where)
        order = list(range(ensemble.n_clusterings))
    naming = _Naming(target.names, parts)
    sizes = [len(values) for values in ensemble.categories]
    clusters: list[Any] = [None] * len(sizes)
    for m in sorted(range(len(sizes)), key=lambda m: (sizes[m], m)):
        clusters[m] = naming.codes_of(m)
    families = np.array(naming.families, dtype=np.int64)
    sums = [_shares_of_families(shared, families[c]) for shared, c in zip(parts.shared, clusters, strict=True)]
    overlap = np.array([in_families / total if total else np.nan for in_families, total in sums])
    codes = devices.give_back(_rename_codes(hard, order, clusters, len(naming.names)), ensemble.device_kind)
    memberships = parts.memberships() if isinstance(parts, _SoftParts) else [None] * len(sizes)
    return Aligned(
        codes, naming.names, families, clusters, target.codes, name, overlap, list(ensemble.names), memberships
    )


def _ensemble(labels: Any, wide: bool, *, soft: bool) -> Ensemble | SoftEnsemble:
    """Return the ensemble of labels; it is a SoftEnsemble if ``soft``, or if some clusterings are memberships."""
    labels = with_shares(labels)
    if isinstance(labels, SoftEnsemble):
        return labels
    ensemble = Ensemble(labels, wide=wide)
    return SoftEnsemble.of(ensemble) if soft else ensemble


# --- the reference ----------------------------------------------------------------------------------------------------


class _Target(NamedTuple):
    """The reference: the codes of the objects (N,), -1 for missing, the memberships if soft, and the names."""

    codes: np.ndarray
    soft: Any
    names: list[str]


def _reference(ensemble: Ensemble | SoftEnsemble, to: Any, where: str) -> tuple[Any, _Target]:
    """Return the name of the clustering that is the reference (None for given labels), and the reference."""
    if isinstance(to, str) and to != "first":
        raise ValueError(
            f"to must be labels of all objects, 'first' or None, not {checks.shown(to)}; pass the consensus itself, "
            "such as ge.consensus(labels)."
        )
    if to is None or isinstance(to, str):
        m = 0 if to is not None else _central(ensemble, where)
        names = list(map(str, ensemble.categories[m].tolist()))
        return ensemble.names[m], _Target(*_column(ensemble, m, where), names)
    devices.check_readable(to, "to")
    to = in_order_of(ensemble.index, to, "to")
    if _is_matrix(to):
        memberships = SoftEnsemble([to])
        if memberships.n_objects != ensemble.n_objects:
            raise ValueError(
                f"to must have a row of memberships for each of the {ensemble.n_objects} objects, but has "
                f"{memberships.n_objects}."
            )
        names = list(map(str, memberships.categories[0].tolist()))
        return None, _Target(*_column(memberships, 0, where), names)
    column = as_column(to)
    checks.check_label_vector(tuple(column.shape), type(to).__name__, "to")
    checks.check_one_per_row(column, ensemble.n_objects, "to")
    codes, values = encode_column(column, "to")
    return None, _Target(devices.to_host(codes), None, list(map(str, values.tolist())))


def _central(ensemble: Ensemble | SoftEnsemble, where: str) -> int:
    """Return the clustering with the largest mean ARI with all others; soft ones are cut at their largest share."""
    hard = ensemble.hardened(where) if isinstance(ensemble, SoftEnsemble) else ensemble
    best = int(np.nan_to_num(agreement(hard, "ari", device=where)).sum(axis=1).argmax())
    return int(ensemble._order[best]) if isinstance(ensemble, SoftEnsemble) else best


def _column(ensemble: Ensemble | SoftEnsemble, m: int, where: str) -> tuple[np.ndarray, Any]:
    """Return the codes (N,) of clustering m, -1 for missing, host, and its memberships or None."""
    soft = None
    if isinstance(ensemble, SoftEnsemble):
        soft, codes = ensemble.memberships_of(m, where), ensemble.hardened_on(where)[:, ensemble._order.index(m)]
    else:
        codes = ensemble.codes_on(where)[:, m]
    codes = devices.to_host(codes)
    return np.where(codes == np.iinfo(codes.dtype).max, checks.MISSING, codes.astype(np.int64)), soft


def _is_matrix(to: Any) -> bool:
    return not isinstance(to, str) and to is not None and is_soft(to)


# --- names ------------------------------------------------------------------------------------------------------------


class _Division(Protocol):
    """The objects in parts: the clusters of the reference, and the common objects of the parts with other clusters."""

    shared: list[np.ndarray]  # for each clustering, the objects common to its clusters and those of the reference

    def count_common(self, m: int, clusters: np.ndarray, parts: list[int]) -> np.ndarray:
        """Return the number of objects (or share) in ``clusters`` of clustering m and ``parts``."""

    def overlaps(self, m: int, clusters: np.ndarray) -> np.ndarray | None:
        """Return the overlaps of ``clusters`` of clustering m with each other; None if there are none."""

    def carve(self, m: int, cluster: int, family: list[int], part: int) -> None:
        """Give the objects of a cluster in the parts of a family to a new part."""

    def claim(self, part: int) -> None:
        """Give all objects without a label in the reference to a new part."""


class _Naming:
    """The names found so far, the family of each, and the assignment of names to the clusters of a clustering."""

    def __init__(self, names: Sequence[str], parts: _Division) -> None:
        self.names, self.families = list(names), list(range(len(names)))
        self.parts, self._members = parts, {p: [p] for p in self.families}
        self._unmatched: int | None = None  # the family of clusters without a common object with the reference

    def codes_of(self, m: int) -> np.ndarray:
        """Return the code of each cluster of clustering m, and name its splits."""
        shared = self.parts.shared[m]
        apart = shared.sum(axis=1) == 0
        codes = np.empty(len(shared), dtype=np.int64)
        codes[~apart] = _assign_families(shared[~apart], lambda: self.parts.overlaps(m, ~apart))
        if apart.any():
            codes[apart] = self._apart()
        for p in np.flatnonzero(np.bincount(codes) > 1).tolist():
            clusters = np.flatnonzero(codes == p)
            codes[clusters] = self._split(m, clusters, p)
        return codes

    def _apart(self) -> int:
        """Return the family of clusters without a common object with the reference."""
        if self._unmatched is None:
            self._unmatched = self._add(APART, len(self.names))
            self._members[self._unmatched] = [self._unmatched]
            self.parts.claim(self._unmatched)
        return self._unmatched

    def _add(self, name: str, family: int) -> int:
        self.names.append(name)
        self.families.append(family)
        return len(self.names) - 1

    def _split(self, m: int, clusters: np.ndarray, p: int) -> np.ndarray:
        """Return the codes of several clusters of clustering m in family p, which get different names."""
        members = self._members[p]
        common = self.parts.count_common(m, clusters, members)
        worth = common.astype(np.float64)
        worth[:, 0] += common.sum() + 1.0  # so that one of them has the name of the family
        partner = _assign_partners(worth)
        partner[(partner > 0) & (common[np.arange(len(clusters)), partner] == 0)] = -1
        codes: np.ndarray = np.array(members)[partner]
        new = np.flatnonzero(partner < 0)
        for place in new[np.argsort(-common[new].sum(axis=1), kind="stable")].tolist():
            codes[place] = self._add(f"{self.names[p]}.{_letters(len(members) - 1)}", p)
            self.parts.carve(m, int(clusters[place]), list(members), int(codes[place]))
            members.append(int(codes[place]))
        return codes


def _assign_families(shared: np.ndarray, overlaps: Callable[[], np.ndarray | None]) -> np.ndarray:
    """Return the family (k,) of each cluster from a table (k, r) of overlaps with the clusters of the reference.

    ``overlaps`` returns the overlaps of the clusters with each other (k, k), None if there are none.
    """
    from scipy.optimize import linear_sum_assignment

    most_similar, targets = shared.argmax(axis=1), np.flatnonzero(shared.any(axis=0))
    families: np.ndarray = most_similar.copy()
    gains = shared if len(shared) <= len(targets) else shared - shared.max(axis=1, keepdims=True)
    rows, columns = linear_sum_assignment(gains[:, targets], maximize=True)
    families[rows] = targets[columns]
    if len(shared) == len(targets) + 1 and (common := overlaps()) is not None:
        families = _merge_best_pair(shared, common, families)
    apart = shared[np.arange(len(shared)), families] == 0
    families[apart] = most_similar[apart]
    return families


def _merge_best_pair(shared: np.ndarray, common: np.ndarray, families: np.ndarray) -> np.ndarray:
    """Return the families for which memberships differ least, if two clusters of a clustering merge.

    The overlap of ``families`` bounds that of every merge. Pairs are tried in ascending order of their overlap in
    ``common`` (k, k), until the bound minus this overlap is no better. Of equal pairs, the first one is taken.
    """
    from scipy.optimize import linear_sum_assignment

    targets = np.unique(families)
    bound = shared[np.arange(len(shared)), families].sum()
    first, second = np.triu_indices(len(shared), 1)
    best = -np.inf
    for pair in np.argsort(common[first, second], kind="stable").tolist():
        a, b = int(first[pair]), int(second[pair])
        if bound - common[a, b] <= best:
            break
        rest = np.delete(np.arange(len(shared)), b)
        table = shared[np.ix_(rest, targets)]
        table[a] += shared[b, targets]
        _, columns = linear_sum_assignment(table, maximize=True)
        objective = table[np.arange(len(rest)), columns].sum() - common[a, b]
        if objective > best:
            best, families = objective, np.insert(targets[columns], b, targets[columns[a]])
    return families


def _assign_partners(shared: np.ndarray) -> np.ndarray:
    """Return the partner (k,) of each row of a table (k, r), -1 without one; partners share as much as possible."""
    from scipy.optimize import linear_sum_assignment

    partners = np.full(len(shared), -1)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    useful = shared[rows, columns] > 0
    partners[rows[useful]] = columns[useful]
    return partners


def _letters(place: int) -> str:
    """Return the letters of a split: b … z, then zb … zz, zzb …."""
    rounds, letter = divmod(place, len(LETTERS))
    return "z" * rounds + LETTERS[letter]


def _shares_of_families(shared: np.ndarray, families: np.ndarray) -> tuple[float, float]:
    """Return the objects of a table in the families of their clusters, and all its objects."""
    is_named = families < shared.shape[1]
    return float(shared[is_named, families[is_named]].sum()), float(shared.sum())


# --- labels and memberships -------------------------------------------------------------------------------------------


class _HardParts:
    """Parts as one label per object; a carved part takes the objects of a cluster out of the other parts."""

    def __init__(self, ensemble: Ensemble, target: _Target, where: str) -> None:
        self.ensemble, self.xp = ensemble, devices.namespace(where)
        self.codes, k = ensemble.codes_on(where), len(target.names)
        _check_table(ensemble.n_clusters, k)
        labelled = self.xp.asarray(target.codes >= 0)
        labels = self.xp.asarray(np.maximum(target.codes, 0))
        counts = label_histograms(self.codes, ensemble.offsets, labelled.astype(np.int64), labels, k, device=where)
        self.shared = np.split(devices.to_host(counts), ensemble.offsets[1:-1])
        self.part_of = self.xp.where(labelled, labels + 1, 0)  # 1 + part of each object; 0: no label in the reference
        self.n_parts = k

    def count_common(self, m: int, clusters: np.ndarray, parts: list[int]) -> np.ndarray:
        k, xp, n = len(self.ensemble.categories[m]), self.xp, len(parts)
        row_of, column_of = np.full(k + 1, len(clusters)), np.full(1 + self.n_parts, n)
        row_of[clusters] = np.arange(len(clusters))
        column_of[1 + np.array(parts)] = np.arange(n)
        rows, columns = xp.asarray(row_of)[xp.minimum(self.codes[:, m], k)], xp.asarray(column_of)[self.part_of]
        counts = devices.to_host(xp.bincount(rows * (n + 1) + columns, minlength=(len(clusters) + 1) * (n + 1)))
        return counts.reshape(len(clusters) + 1, n + 1)[:-1, :-1]

    def overlaps(self, m: int, clusters: np.ndarray) -> None:
        return None

    def carve(self, m: int, cluster: int, family: list[int], part: int) -> None:
        of_family = np.zeros(part + 1, dtype=bool)
        of_family[[1 + member for member in family]] = True
        carved = (self.codes[:, m] == cluster) & self.xp.asarray(of_family)[self.part_of]
        self._move(carved, part)

    def claim(self, part: int) -> None:
        self._move(self.part_of == 0, part)

    def _move(self, objects: Any, part: int) -> None:
        self.part_of, self.n_parts = self.xp.where(objects, part + 1, self.part_of), part + 1


class _SoftParts:
    """Parts as shares of each object; a carved part takes the shares that the objects have in a cluster."""

    def __init__(self, ensemble: SoftEnsemble, target: _Target, where: str) -> None:
        self.ensemble, self.xp, self.where = ensemble, devices.namespace(where), where
        k, codes = len(target.names), self.xp.asarray(target.codes)
        _check_table(ensemble.n_clusters, k)
        soft = codes[:, None] == self.xp.arange(k) if target.soft is None else target.soft
        self.parts = soft.astype(np.float64)
        self.nowhere = codes < 0  # mask of the objects that are in no part
        self.shared = [self._multiply_parts(m) for m in range(ensemble.n_clusterings)]

    def count_common(self, m: int, clusters: np.ndarray, parts: list[int]) -> np.ndarray:
        return self._multiply_parts(m)[np.ix_(clusters, np.array(parts))]

    def _multiply_parts(self, m: int) -> np.ndarray:
        return self._products(m, self.parts)

    def overlaps(self, m: int, clusters: np.ndarray) -> np.ndarray:
        return self._products(m, self.ensemble.memberships_of(m, self.where))[np.ix_(clusters, clusters)]

    def _products(self, m: int, memberships: Any) -> np.ndarray:
        """Return the products of the memberships of clustering m with other ones, host."""
        with devices.library_threads(1):  # because sums by several threads could differ
            products: np.ndarray = devices.to_host(self.ensemble.memberships_of(m, self.where).T @ memberships)
        return products

    def carve(self, m: int, cluster: int, family: list[int], part: int) -> None:
        carved = self.parts[:, family] * self.ensemble.memberships_of(m, self.where)[:, cluster, None]
        self.parts[:, family] -= carved
        self._add(carved.sum(axis=1))

    def claim(self, part: int) -> None:
        self._add(self.nowhere)

    def _add(self, part: Any) -> None:
        self.parts = self.xp.concatenate([self.parts, part.astype(np.float64)[:, None]], axis=1)

    def memberships(self) -> list[Any]:
        soft = set(self.ensemble._order[len(self.ensemble.offsets) - 1 :])
        every = range(self.ensemble.n_clusterings)
        return [self.ensemble.memberships_of(m, self.where) if m in soft else None for m in every]


def _rename_codes(hard: Any, order: Sequence[int], clusters: list[np.ndarray], n_codes: int) -> Any:
    """Return the names' codes (N, M) of clusterings in the memory of ``hard``, whose columns are clusterings ``order``.

    ``clusters`` holds the code of each cluster, of each clustering.
    """
    xp = devices.namespace(devices.kind_of(hard))
    renamed = xp.empty(hard.shape, dtype=np.min_scalar_type(-n_codes), order="F")
    for place, m in enumerate(order):
        table = xp.asarray(np.append(clusters[m], checks.MISSING).astype(renamed.dtype))
        renamed[:, m] = table[xp.minimum(hard[:, place], len(clusters[m]))]
    return renamed


def _check_table(n_clusters: int, k: int) -> None:
    checks.check_memory(
        16 * n_clusters * k,
        devices.memory_budget(),
        f"the table of {n_clusters:,} clusters and the {k:,} of the reference",
        "align clusterings of fewer clusters",
    )
