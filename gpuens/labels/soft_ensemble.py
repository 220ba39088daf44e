"""Soft base clusterings: memberships (N, k_h) instead of labels, alone or together with columns of labels.

A row of memberships is ≥ 0 and sums to 1. A row of NaN is missing and counts as the uniform row 1 / k_h. The matrices
are stored side by side in one array (N, Σ k_h). Core groups are not used, because equal rows are rare.

Clusterings with overlapping clusters are soft, too: an object has the share 1 / n in each of its n clusters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpuens.labels.codes import codes_dtype, unlabelled_objects
from gpuens.labels.columns import as_column
from gpuens.labels.communities import Members, as_sequences, columns_by_name, read_named, refuse_single
from gpuens.labels.encoding import encode_column, encode_columns
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.frames import as_pandas, is_frame
from gpuens.labels.long_form import Triples, read_triples, triples_to_matrix
from gpuens.labels.object_names import in_one_order, index_of_all
from gpuens.labels.odd_labels import warn_of_odd_labels
from gpuens.labels.shares import TAKERS, Shares
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.device import Array

SUM_OF_ROWS = 1e-4  # largest difference of a row sum from 1, enough for float32
LARGEST_ROUNDING = 0.02  # largest difference of a row sum from 1 in a file of rounded memberships
HEAD_ROWS = 100  # number of rows that show whether a table holds memberships
ROUNDED = 1e-9  # largest size of a negative membership that counts as a rounded 0


class SoftEnsemble:
    """Base clusterings of the same N objects, some or all of them soft.

    Clusters are numbered in *joined* order: first those of all label columns, as in an Ensemble, then those of the soft
    clusterings. `split` and `joined` convert to the order of the given clusterings and back.

    Parameters
    ----------
    clusterings : list, or dict of name to clustering
        For each clustering its labels (N,), of any kind that Ensemble takes, or its memberships (N, k_h). Series and
        DataFrames are matched by the names in their indexes, as in an Ensemble. Sets of members may overlap, as those
        of networkx and cdlib do: an object in n of them has the share 1 / n in each.

    Attributes
    ----------
    offsets : ndarray (label columns + 1,), int64
    soft_offsets : ndarray (soft clusterings + 1,), int64
        The first cluster of each clustering among the label columns, and among the soft clusterings.
    starts : ndarray (n_clusterings,), int64
        The first cluster of each clustering in joined order.
    categories : list of arrays
        The label value of each cluster, in the order of the given clusterings; 0 … k_h - 1 for memberships.
    names : list
        The names of the clusterings; 0 … M - 1 for those of a list.
    index : pandas Index (n_objects,) or None
        The names of the objects, as in an Ensemble.

    Raises
    ------
    ValueError, TypeError, MemoryError
        For labels that Ensemble refuses, for memberships that are negative, not finite, or do not sum to 1, and for
        more memberships, N Σ k_h of the soft clusterings, than memory.

    Examples
    --------
    >>> import gpuens as ge
    >>> ens = ge.SoftEnsemble([[[0.9, 0.1], [0.2, 0.8]], ["a", "b"]])
    >>> ens.n_objects, ens.n_clusterings, ens.offsets.tolist(), ens.soft_offsets.tolist()
    (2, 2, [0, 2], [0, 2])

    Communities that overlap in "b":

    >>> ge.SoftEnsemble([[{"a", "b"}, {"b", "c"}]]).memberships_of(0, "cpu").tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """

    form = "soft clusterings"
    takers = TAKERS
    labels: Ensemble | None
    offsets: np.ndarray
    soft_offsets: np.ndarray
    categories: list[np.ndarray]
    names: list[Any]
    device_kind: str
    n_objects: int
    index: Any = None

    def __init__(self, clusterings: Sequence[Any] | Mapping[Any, Any]) -> None:
        refuse_single(clusterings)
        if not isinstance(clusterings, (list, tuple, Mapping)):
            raise TypeError(f"clusterings must be a list or a dict of clusterings, not {checks.shown(clusterings)}.")
        names, clusterings = _names_and_clusterings(clusterings)
        if any(map(devices.chunked, clusterings)):
            raise TypeError(
                "labels are soft clusterings in Dask arrays, but they are processed in one piece: pass .compute() of "
                "each."
            )
        titles = [f"labels[{name!r}]" for name in names]
        kind = devices.home_of_all(clusterings, titles)
        by_name = columns_by_name(clusterings, _as_labels, titles, overlap=True)
        if by_name is None:
            self.index = index_of_all(clusterings)
            of_each = zip(in_one_order(clusterings, titles), names, strict=True)
            parts = [_as_labels(clustering, name) for clustering, name in of_each]
        else:
            parts, self.index = by_name
        shapes = [(1 + int(part.rows.max()),) if isinstance(part, Members) else part.shape for part in parts]
        if by_name is not None:  # objects beyond the members of a clustering
            n_objects = max(shape[0] for shape in shapes)
            shapes = [(n_objects, *shape[1:]) for shape in shapes]
        _check_shapes(shapes)
        parts = [
            Shares.of_entries(part.rows, *encode_column(part.labels, name)) if isinstance(part, Members) else part
            for part, name in zip(parts, names, strict=True)
        ]
        self._store(parts, names, kind, shapes[0][0])

    def _store(self, parts: list[Any], names: list[Any], kind: str, n_objects: int) -> None:
        """Check and store clusterings: columns of labels, memberships (n_objects, k) and `Shares`."""
        soft = {m: part for m, part in enumerate(parts) if isinstance(part, Shares) or part.ndim == 2}
        n_clusters = [part.n_clusters if isinstance(part, Shares) else part.shape[1] for part in soft.values()]
        checks.check_memory(
            8 * n_objects * sum(n_clusters),
            devices.memory_budget(kind),
            f"the shares of {n_objects:,} objects in {sum(n_clusters):,} clusters of soft clusterings",
            "leave out clusterings with many clusters, or name one cluster for each object",
        )
        xp, ends = devices.namespace(kind), np.cumsum(n_clusters)
        matrix = xp.zeros((n_objects, sum(n_clusters)))
        missing = xp.ones(n_objects, dtype=bool)
        categories: list[np.ndarray] = [np.arange(0)] * len(parts)
        for (m, part), size, end in zip(soft.items(), n_clusters, ends.tolist(), strict=True):
            categories[m] = part.categories if isinstance(part, Shares) else np.arange(size)
            missing &= _write_memberships(part, matrix[:, end - size : end], names[m])
        label_places = [m for m in range(len(parts)) if m not in soft]
        self.labels = None
        if label_places:
            label_names = [names[m] for m in label_places]
            codes, label_values = encode_columns([parts[m] for m in label_places], label_names)
            missing &= unlabelled_objects(codes)
            self.labels = Ensemble.of_codes(codes, label_values, label_names, kind)
            for m, values in zip(label_places, label_values, strict=True):
                categories[m] = values
        of_labels = [m for m, part in enumerate(parts) if m not in soft or isinstance(part, Shares)]
        warn_of_odd_labels([categories[m] for m in of_labels], [names[m] for m in of_labels])
        checks.check_clusterings(list(map(len, categories)), names, n_objects)
        checks.refuse_unlabelled(devices.to_host(missing))
        self.categories, self.names, self.device_kind, self.n_objects = categories, names, kind, n_objects
        self._hold(matrix if soft else None, n_clusters, [*label_places, *soft])

    @classmethod
    def from_long(
        cls,
        frame: Any,
        *,
        object: Any = None,
        clustering: Any = None,
        label: Any = None,
        share: Any = None,
        drop_unlabelled: bool = False,
    ) -> "SoftEnsemble":
        """Return the clusterings of a table with a row for each cluster of an object: object, clustering, label.

        An object with several labels in a clustering has a share in each. A clustering without such objects is a column
        of labels, which needs less memory and time.

        Parameters
        ----------
        frame : DataFrame
            A missing label is like no row.
        object, clustering, label : name of a column, optional
            By default, as in `gpuens.Ensemble.from_long`.
        share : name of a column, optional
            The column of shares, finite numbers from 0 on, which are divided by their sum for each object and
            clustering; those of equal rows are added. Without it, an object in n clusters has the share 1 / n in each,
            and a row that is there twice counts once.
        drop_unlabelled : bool
            Leave out objects without any label instead of refusing them.

        Returns
        -------
        SoftEnsemble (n_objects, n_clusterings)
            For `gpuens.SCEC`, `gpuens.align` and `gpuens.modes`. ``index`` holds the objects and ``names`` the
            clusterings with any label, both in the order of their first rows. An object without a label in a clustering
            that has shares counts there as divided among all clusters.

        Raises
        ------
        ValueError, TypeError, MemoryError
            As `gpuens.Ensemble.from_long`, and for shares that are negative, infinite or missing.

        Examples
        --------
        >>> import gpuens as ge, pandas as pd
        >>> lines = [("ann", 1, "chess", 3), ("ann", 1, "choir", 1), ("bob", 1, "choir", 1)]
        >>> lines += [("ann", 2, "x", 1), ("bob", 2, "y", 1)]
        >>> ens = ge.SoftEnsemble.from_long(pd.DataFrame(lines, columns=["who", "run", "club", "hours"]), share="hours")
        >>> list(ens.index), ens.categories[0].tolist(), ens.memberships_of(0, "cpu").tolist()
        (['ann', 'bob'], ['chess', 'choir'], [[0.75, 0.25], [0.0, 1.0]])
        """
        triples = read_triples(frame, [object, clustering, label], share)
        return cls.of_triples(triples, drop_unlabelled=drop_unlabelled)[0]

    @classmethod
    def of_triples(cls, triples: Triples, *, drop_unlabelled: bool = False) -> tuple["SoftEnsemble", np.ndarray]:
        """Return the clusterings of a table that is read, and the mask (n_objects,) of its objects with a label."""
        has_label = np.flatnonzero(triples.labels >= 0)
        labelled = np.bincount(triples.rows[has_label], minlength=len(triples.objects)) > 0
        if not drop_unlabelled:
            checks.refuse_unlabelled(~labelled)
        triples = triples.take(has_label)
        number = np.cumsum(labelled) - 1
        triples = replace(triples, rows=number[triples.rows], objects=triples.objects[labelled])
        overlap = np.zeros(len(triples.clusterings), dtype=bool)
        overlap[triples.lines.columns[triples.lines.same_pair]] = True
        table = triples_to_matrix(triples.take(np.flatnonzero(~overlap[triples.columns])))
        shared = triples.take(np.flatnonzero(overlap[triples.columns]))
        shared = shared.take(np.argsort(shared.columns, kind="stable"))
        starts = np.searchsorted(shared.columns, np.arange(len(overlap) + 1))
        n_labels = np.bincount(triples.columns, minlength=len(overlap))
        places = np.flatnonzero(n_labels).tolist()
        parts = [
            _shares_of_lines(shared.take(np.arange(*starts[m : m + 2]))) if overlap[m] else table.column(m)
            for m in places
        ]
        ensemble = object.__new__(cls)
        ensemble._store(parts, [table.clusterings[m] for m in places], "cpu", len(triples.objects))
        ensemble.index = triples.objects
        return ensemble, labelled

    @classmethod
    def of(cls, ensemble: "Ensemble | SoftEnsemble") -> "SoftEnsemble":
        """Return an Ensemble as a SoftEnsemble without soft clusterings."""
        if isinstance(ensemble, SoftEnsemble):
            return ensemble
        hard = object.__new__(cls)
        hard.labels, hard.categories, hard.names = ensemble, ensemble.categories, ensemble.names
        hard.device_kind, hard.n_objects, hard.index = ensemble.device_kind, ensemble.n_objects, ensemble.index
        hard._hold(None, [], list(range(ensemble.n_clusterings)))
        return hard

    def _hold(self, soft: Any, n_clusters: list[int], order: list[int]) -> None:
        """Store soft clusterings and their numbering; ``order`` lists the given position of each, in joined order."""
        self._soft = soft
        self.offsets = np.zeros(1, dtype=np.int64) if self.labels is None else self.labels.offsets
        self.soft_offsets = np.concatenate([[0], np.cumsum(n_clusters)]).astype(np.int64)
        self.starts = np.concatenate([self.offsets[:-1], self.offsets[-1] + self.soft_offsets[:-1]])
        self._order = order

    def refuse(self, reduction: Any, sample_weight: Any) -> None:
        """Raise ValueError for a reduction or weights of the objects, which are for label rows."""
        if reduction is not None:
            raise ValueError(
                f"reduction={checks.shown(reduction)} needs rows of labels, which soft clusterings do not have; "
                "leave it None, or pass the argmax of the memberships as labels."
            )
        if sample_weight is not None:
            raise ValueError(
                "sample_weight is for labels, but these are soft clusterings; pass the argmax of the memberships as "
                "labels."
            )

    @property
    def n_clusterings(self) -> int:
        return len(self.starts)

    @property
    def n_clusters(self) -> int:
        return int(self.offsets[-1] + self.soft_offsets[-1])

    def __len__(self) -> int:
        return self.n_objects

    def codes_on(self, where: str) -> Array:
        """Return the codes (N, label columns) on a device."""
        if self.labels is None:
            return devices.namespace(where).empty((self.n_objects, 0), dtype=np.uint8)
        return self.labels.codes_on(where)

    def soft_on(self, where: str) -> Array:
        """Return the memberships (N, Σ k_h) of all soft clusterings on a device; the first call moves them there."""
        if self._soft is not None:
            self._soft = devices.move(self._soft, "cuda" if where == "cuda" else "cpu")
        return self._soft

    def memberships_of(self, m: int, where: str) -> Array:
        """Return the memberships (N, k_m) of the given clustering m on a device; labels are rows of 0 and 1.

        A missing label is a row of zeros.
        """
        place, n_columns = self._order.index(m), len(self.offsets) - 1
        if place < n_columns:
            xp = devices.namespace(where)
            is_member = self.codes_on(where)[:, place, None] == xp.arange(len(self.categories[m]))
            return is_member.astype(np.float64)
        first, last = self.soft_offsets[place - n_columns : place - n_columns + 2].tolist()
        return self.soft_on(where)[:, first:last]

    def hardened_on(self, where: str) -> Array:
        """Return codes (N, n_clusterings) in joined order, columns contiguous; soft clusterings are cut by argmax.

        A row of equal memberships becomes a missing label.
        """
        codes = self.codes_on(where)
        if self._soft is None:
            return codes
        xp, soft = devices.namespace(where), self.soft_on(where)
        largest = int(np.diff(np.append(self.starts, self.n_clusters)).max())
        dtype = max((codes_dtype(largest), codes.dtype.type), key=lambda kind: np.iinfo(kind).max)
        hardened = xp.empty((self.n_objects, self.n_clusterings), dtype=dtype, order="F")
        n_columns, missing = codes.shape[1], np.iinfo(dtype).max
        hardened[:, :n_columns] = xp.where(codes == np.iinfo(codes.dtype).max, missing, codes)
        for m, (first, last) in enumerate(zip(self.soft_offsets[:-1], self.soft_offsets[1:], strict=True)):
            memberships = soft[:, first:last]
            uniform = memberships.max(axis=1) == memberships.min(axis=1)
            hardened[:, n_columns + m] = xp.where(uniform & (last - first > 1), missing, memberships.argmax(axis=1))
        return hardened

    def hardened(self, where: str) -> Ensemble:
        """Return the ensemble of `hardened_on`, whose clusterings are in joined order."""
        sizes = np.diff(np.append(self.starts, self.n_clusters))
        return Ensemble.of_codes(self.hardened_on(where), [np.arange(size) for size in sizes], list(range(len(sizes))))

    def split(self, table: np.ndarray) -> list[np.ndarray]:
        """Return the rows (k_h, …) of a table (n_clusters, …) for each clustering, in the given order."""
        parts = np.split(table, self.starts[1:])
        return [parts[place].copy() for place in np.argsort(self._order)]

    def joined(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Return the parts (k_h, …) joined into a table (n_clusters, …), the inverse of `split`."""
        return np.concatenate([parts[place] for place in self._order])

    def __repr__(self) -> str:
        return (
            f"SoftEnsemble(n_objects={self.n_objects}, n_clusterings={self.n_clusterings}, "
            f"n_clusters={self.n_clusters})"
        )


def is_soft(clustering: Any) -> bool:
    """Return whether a base clustering consists of memberships (N, k_h) instead of labels."""
    if isinstance(clustering, (list, tuple)):
        return bool(clustering) and isinstance(clustering[0], (list, tuple, np.ndarray))
    return is_frame(clustering) or len(getattr(clustering, "shape", ())) == 2


def with_shares(labels: Any) -> Any:
    """Return clusterings as a SoftEnsemble if some are memberships or overlap, other labels unchanged.

    Iterators in a list or dict are used up, so that other labels come back with lists in their place.
    """
    checks.refuse_sparse(labels)  # one kind of sparse matrices is a Mapping
    if not isinstance(labels, (list, tuple, Mapping)):
        return labels
    names, clusterings = _names_and_clusterings(labels)
    read = read_named(clusterings, [f"labels[{name!r}]" for name in names], overlap=True)
    labels = dict(zip(names, clusterings, strict=True)) if isinstance(labels, Mapping) else clusterings
    of_each = zip(read, clusterings, strict=True)
    soft = any(is_soft(clustering) if named is None else named.overlap for named, clustering in of_each)
    return SoftEnsemble(labels) if soft else labels


def _names_and_clusterings(labels: Sequence[Any] | Mapping[Any, Any]) -> tuple[list[Any], list[Any]]:
    """Return the names of clusterings in a list or a dict, and the clusterings, with lists in place of iterators."""
    if isinstance(labels, Mapping):
        return list(labels), as_sequences(list(labels.values()))
    return list(range(len(labels))), as_sequences(labels)


def _shares_of_lines(triples: Triples) -> Shares:
    """Return the shares in the clusters of one clustering."""
    import pandas as pd

    labels = pd.Categorical.from_codes(triples.labels, triples.label_values)
    title = triples.clusterings[triples.columns[0]]
    return Shares.of_entries(triples.rows, *encode_column(labels, title), triples.weights)


def _as_labels(clustering: Any, name: object = None) -> Any:
    """Return a clustering as a column of labels or as memberships."""
    return _memberships(clustering, name) if is_soft(clustering) else as_column(clustering)


def _write_memberships(part: Any, matrix: Any, name: object) -> Any:
    """Write a soft clustering into a matrix (n_objects, k) of zeros; return the mask of its missing objects."""
    if isinstance(part, Shares):
        return part.write(matrix)
    xp = devices.namespace(devices.kind_of(part))
    missing = _missing_rows(part, name)
    matrix[:] = xp.where(missing[:, None], 1.0 / part.shape[1], xp.maximum(part, 0.0))
    return missing


def _memberships(clustering: Any, name: object) -> Any:
    """Return memberships as a float64 matrix; values that are not numbers keep their dtype."""
    clustering = as_pandas(clustering)
    if hasattr(clustering, "iloc"):
        clustering = clustering.to_numpy(dtype=np.float64, na_value=np.nan)
    elif isinstance(clustering, (list, tuple)):
        try:
            clustering = np.asarray(clustering)
        except ValueError:
            raise ValueError(
                f"labels: clustering {name!r} is soft, and its rows differ in length; pass one membership per cluster "
                "in every row."
            ) from None
    matrix = devices.native(clustering)
    return matrix.astype(np.float64) if matrix.dtype.kind in "iufb" else matrix


def _check_shapes(shapes: list[tuple[int, ...]]) -> None:
    """Refuse lists whose elements are not labels (N,) or memberships (N, k_h) of the same N ≥ 1 objects."""
    for position, shape in enumerate(shapes):
        if len(shape) not in (1, 2) or shape[1:] == (0,):
            raise ValueError(
                f"labels: in a list every element is one base clustering, labels (N,) or memberships (N, k), but "
                f"element {position} has shape {shape}."
            )
        if shape[0] != shapes[0][0]:
            raise ValueError(
                f"labels: every base clustering must be of the same objects, but clustering 0 has {shapes[0][0]} rows "
                f"and clustering {position} has {shape[0]}."
            )
    checks.check_label_shape((shapes[0][0] if shapes else 0, len(shapes)))


def _missing_rows(matrix: Any, name: object) -> Any:
    """Return the mask of missing rows (all NaN), or refuse a matrix that is not a soft clustering."""
    if matrix.dtype.kind != "f":
        raise TypeError(
            f"labels: clustering {name!r} is 2-D, a soft clustering, and its memberships must be real numbers, not "
            f"{matrix.dtype}; pass a column of labels if it is a hard one."
        )
    is_nan = matrix != matrix
    missing = is_nan.all(axis=1)
    partly = is_nan.any(axis=1) & ~missing
    if partly.any():
        raise ValueError(
            f"labels: clustering {name!r} is soft, and row {int(partly.argmax())} has both NaN and numbers; make the "
            "whole row NaN if the object is missing."
        )
    negative = (matrix < -ROUNDED).any(axis=1)
    if negative.any():
        raise ValueError(
            f"labels: clustering {name!r} is soft, and row {int(negative.argmax())} has a negative membership; "
            "memberships are at least 0 and sum to 1 in each row."
        )
    sums = matrix.sum(axis=1)
    off = ~missing & ~(abs(sums - 1.0) <= SUM_OF_ROWS)
    if off.any():
        row = int(off.argmax())
        raise ValueError(
            f"labels: clustering {name!r} is soft, and row {row} sums to {float(sums[row]):g}; memberships must sum to "
            "1 in each row, or all be NaN for a missing object; pass labels as a 1-D column."
        )
    if missing.all():
        raise ValueError(f"labels of clustering {name!r} are all missing; leave that clustering out.")
    return missing


def looks_like_memberships(table: np.ndarray) -> bool:
    """Return whether rows of numbers (n, k) are shares that sum to 1, some of them between 0 and 1."""
    sums_to_1 = bool((np.abs(table.sum(axis=1) - 1.0) <= LARGEST_ROUNDING).all())
    return table.shape[1] > 1 and bool((table >= 0).all()) and sums_to_1 and bool(((table > 0) & (table < 1)).any())


def refuse_memberships(table: Any, source: str) -> None:
    """Refuse an array or DataFrame with memberships in place of labels."""
    try:
        head = np.asarray(table[:HEAD_ROWS].astype(object), dtype=np.float64)
    except (ValueError, TypeError):
        return
    if looks_like_memberships(head):
        raise ValueError(
            f"{source} has rows of shares that sum to 1, which are memberships and no labels; `gpuens modes FILE …` "
            "reads them from text and npy, and in Python gpuens.io.read_memberships for gpuens.modes, gpuens.align and "
            "gpuens.SCEC."
        )
