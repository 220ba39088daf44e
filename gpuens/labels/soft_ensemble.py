"""Soft base clusterings: memberships (N, k_h) instead of labels, alone or together with columns of labels.

A row of memberships is ≥ 0 and sums to 1. A row of NaN is missing and counts as the uniform row 1 / k_h. The matrices
are stored side by side in one array (N, Σ k_h). Core groups are not used, because equal rows are rare.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuens.labels.codes import codes_dtype, unlabelled_objects
from gpuens.labels.columns import as_column
from gpuens.labels.encoding import encode_columns
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.frames import as_pandas, is_frame
from gpuens.labels.object_names import in_one_order, index_of_all
from gpuens.labels.odd_labels import warn_of_odd_labels
from gpuens.runtime import checks
from gpuens.runtime import device as devices

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
    clusterings : list
        For each clustering its labels (N,), of any kind that Ensemble takes, or its memberships (N, k_h). Series and
        DataFrames are matched by the names in their indexes, as in an Ensemble.

    Attributes
    ----------
    offsets : ndarray (label columns + 1,), int64
    soft_offsets : ndarray (soft clusterings + 1,), int64
        The first cluster of each clustering among the label columns, and among the soft clusterings.
    starts : ndarray (n_clusterings,), int64
        The first cluster of each clustering in joined order.
    categories : list of arrays
        The label value of each cluster, in the order of the given clusterings; 0 … k_h - 1 for soft ones.

    Raises
    ------
    ValueError, TypeError
        For labels that Ensemble refuses, and for memberships that are negative, not finite, or do not sum to 1.

    Examples
    --------
    >>> from gpuens.labels.soft_ensemble import SoftEnsemble
    >>> ens = SoftEnsemble([[[0.9, 0.1], [0.2, 0.8]], ["a", "b"]])
    >>> ens.n_objects, ens.n_clusterings, ens.offsets.tolist(), ens.soft_offsets.tolist()
    (2, 2, [0, 2], [0, 2])
    """

    form = "soft clusterings"
    labels: Ensemble | None
    offsets: np.ndarray
    soft_offsets: np.ndarray
    categories: list[np.ndarray]
    names: list[Any]
    device_kind: str
    n_objects: int
    index: Any = None

    def __init__(self, clusterings: Sequence[Any]) -> None:
        if any(map(devices.chunked, clusterings)):
            raise TypeError(
                "labels are soft clusterings in Dask arrays, but they are processed in one piece: pass .compute() of "
                "each."
            )
        titles = [f"labels[{m}]" for m in range(len(clusterings))]
        kind = devices.home_of_all(clusterings, titles)
        self.index = index_of_all(clusterings)
        clusterings = in_one_order(clusterings, titles)
        soft: list[Any] = [
            _memberships(clustering, name) if is_soft(clustering) else None
            for name, clustering in enumerate(clusterings)
        ]
        columns = [
            as_column(clustering) for clustering, matrix in zip(clusterings, soft, strict=True) if matrix is None
        ]
        shapes = iter([column.shape for column in columns])
        _check_shapes([next(shapes) if matrix is None else matrix.shape for matrix in soft])
        names = list(range(len(soft)))
        xp, n_objects = devices.namespace(kind), len(columns[0] if columns else soft[0])
        missing = xp.ones(n_objects, dtype=bool)
        matrices, soft_names = [], []
        for name, matrix in enumerate(soft):
            if matrix is not None:
                is_missing = _missing_rows(matrix, name)
                missing &= is_missing
                matrices.append(xp.where(is_missing[:, None], 1.0 / matrix.shape[1], xp.maximum(matrix, 0.0)))
                soft_names.append(name)
        label_names = [name for name in names if name not in soft_names]
        categories: dict[int, np.ndarray] = {
            name: np.arange(matrix.shape[1]) for name, matrix in zip(soft_names, matrices, strict=True)
        }
        self.labels = None
        if columns:
            codes, label_values = encode_columns(columns, label_names)
            warn_of_odd_labels(label_values, label_names)
            missing &= unlabelled_objects(codes)
            self.labels = Ensemble.of_codes(codes, label_values, label_names, kind)
            categories |= dict(zip(label_names, label_values, strict=True))
        self.categories = [categories[name] for name in names]
        checks.check_clusterings([len(is_missing) for is_missing in self.categories], names, n_objects)
        checks.refuse_unlabelled(devices.to_host(missing))
        together = xp.ascontiguousarray(xp.concatenate(matrices, axis=1))  # the layout of the kernels
        self._hold(together, [matrix.shape[1] for matrix in matrices], label_names + soft_names)
        self.names, self.device_kind, self.n_objects = names, kind, n_objects

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

    def codes_on(self, where: str) -> Any:
        """Return the codes (N, label columns) on a device."""
        if self.labels is None:
            return devices.namespace(where).empty((self.n_objects, 0), dtype=np.uint8)
        return self.labels.codes_on(where)

    def soft_on(self, where: str) -> Any:
        """Return the memberships (N, Σ k_h) of all soft clusterings on a device; the first call moves them there."""
        if self._soft is not None:
            self._soft = devices.move(self._soft, "cuda" if where == "cuda" else "cpu")
        return self._soft

    def memberships_of(self, m: int, where: str) -> Any:
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

    def hardened_on(self, where: str) -> Any:
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


def _memberships(clustering: Any, name: int) -> Any:
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
    checks.check_label_shape((shapes[0][0], len(shapes)))


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
