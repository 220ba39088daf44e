"""The caller's labels as columns, from every accepted container of M clusterings of N objects."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.id_columns import columns_without_names
from gpuens.labels.object_names import JOIN, counts_from_0, in_one_order, index_of, index_of_all, index_of_names
from gpuens.runtime import checks
from gpuens.runtime import device as devices


class Columns(NamedTuple):
    """M base clusterings of the same N objects, one column each, in the caller's own label values."""

    values: Any  # an array (M, N) of NumPy or CuPy, or a list of M results of `as_column`
    names: list[Any]
    device_kind: str  # "cpu" or "cuda": the memory of the caller's labels
    index: Any  # the names of the objects, a pandas Index (N,), or None
    left_out: Sequence[Any] = ()  # names of the columns of a DataFrame that name the objects

    def chosen(self, places: list[int]) -> "Columns":
        """Return the columns at some places, in the order of ``places``."""
        if places == list(range(len(self.names))):
            return self
        return self._replace(values=[self.values[m] for m in places], names=[self.names[m] for m in places])


def split_columns(labels: Any, names: Sequence[Any] | None = None, *, n_clusterings: int | None = None) -> Columns:
    """Split the caller's labels into columns with the given ``names``, or with names of their own.

    Fewer objects than clusterings are refused as transposed, unless there are ``n_clusterings`` columns, as expected.
    """
    if isinstance(labels, (list, tuple)):
        columns = _of_list(labels, n_clusterings)
    elif hasattr(labels, "columns") and hasattr(labels, "shape"):
        columns = _of_frame(labels)
        if names is None and len(columns.names) != n_clusterings:
            columns = _named(columns)
    else:
        columns = _of_array(labels, n_clusterings)
    return columns if names is None else columns._replace(names=checks.check_names(names, len(columns.values)))


def _refuse_others(labels: Any) -> None:
    """Refuse AnnData, sparse matrices, scalars, texts, mappings and sets."""
    if hasattr(labels, "obs") and hasattr(labels, "obsm"):  # else NumPy would read an AnnData object row by row
        raise TypeError(
            "labels must be base clusterings, not AnnData: pass adata.obs[columns] with the columns that hold them, "
            f"of {checks.listed(labels.obs.columns)}."
        )
    checks.refuse_sparse(labels)
    nothing = labels is None or isinstance(labels, (str, bytes, dict, set, frozenset)) or np.isscalar(labels)
    if nothing or type(labels).__name__ == "NAType":
        raise TypeError(
            f"labels must be an array (n_objects, n_clusterings), a DataFrame or a list of columns, not "
            f"{type(labels).__name__}."
        )


def _of_list(labels: Sequence[Any], n_clusterings: int | None) -> Columns:
    """Return the elements of a list as columns; Series are brought into one order by the names of their objects."""
    names = list(range(len(labels)))
    ordered, index = in_one_order(labels, [f"labels[{m}]" for m in names], JOIN), index_of_all(labels)
    device_kind, columns = devices.common_kind(ordered), [as_column(column) for column in ordered]
    shapes = [column.shape for column in columns]
    if not shapes or (len(set(shapes)) == 1 and len(shapes[0]) != 1):
        checks.check_label_shape((len(shapes), *shapes[0]) if shapes else (0, 0), columns_are_clusterings=True)
    for position, shape in enumerate(shapes):
        if len(shape) != 1:
            raise ValueError(
                "labels: in a list every element is one base clustering, a 1-D column of labels, but element "
                f"{position} is {'no column' if not shape else f'{len(shape)}-D'}."
            )
    for position, (length,) in enumerate(shapes):
        if length != shapes[0][0]:
            named = "" if index is None else f"; {JOIN}, by the index of each"
            raise ValueError(
                f"labels: every base clustering must label the same objects, but clustering 0 has {shapes[0][0]} "
                f"labels and clustering {position} has {length}{named}."
            )
    checks.check_label_shape((shapes[0][0], len(shapes)), columns_are_clusterings=True)
    if n_clusterings != len(columns) > len(columns[0]) and all(isinstance(c, (list, tuple)) for c in labels):
        raise ValueError(
            f"labels are a list of {len(columns)} lists of {len(columns[0])} label(s), and in a list each element "
            "is one base clustering, so this looks transposed: pass numpy.array(labels) if each element is an "
            "object (or a list of arrays, if there really are so few objects)."
        )
    return Columns(columns, names, device_kind, index)


def _of_frame(frame: Any) -> Columns:
    """Return the columns of a DataFrame of pandas, polars or cuDF."""
    index, device_kind = index_of(frame), "cpu"
    checks.check_label_shape(tuple(frame.shape), columns_are_clusterings=True)
    if hasattr(frame, "to_pandas") and hasattr(frame, "iloc"):  # cuDF: its array interface cannot pass strings
        frame, device_kind = frame.to_pandas(), "cuda"
    names = list(frame.columns)  # pandas allows equal names, so columns are selected by position
    columns = [frame.iloc[:, m] if hasattr(frame, "iloc") else frame[name] for m, name in enumerate(names)]
    return Columns(list(map(as_column, columns)), names, device_kind, index)


def _named(columns: Columns) -> Columns:
    """Return columns without those that name the objects, whose names become the index unless there is one."""
    named = columns.index is not None and not counts_from_0(columns.index)
    kept, place = columns_without_names(columns.values, columns.names, "labels", named=named, argument="names")
    left_out = [name for m, name in enumerate(columns.names) if m not in kept]
    index = columns.index
    if place is not None:
        title = columns.names[place]
        checks.warn(
            f"labels: the column {title!r} names the objects and is no clustering; pass "
            f"labels.set_index({title!r}) to say so, or gpuens.Ensemble(labels, names=list(labels.columns)) if it is."
        )
        index = index_of_names(np.asarray(columns.values[place]).tolist()).rename(title)
    return columns.chosen(kept)._replace(index=index, left_out=left_out)


def _of_array(labels: Any, n_clusterings: int | None) -> Columns:
    """Return the columns of an array (N, M) of any library."""
    _refuse_others(labels)
    device_kind, matrix = devices.kind_of(labels), devices.native(labels)
    as_known = len(matrix.shape) == 2 and matrix.shape[1] == n_clusterings
    checks.check_label_shape(matrix.shape, columns_are_clusterings=as_known)
    if isinstance(matrix, np.matrix):  # columns of an np.matrix would be 2-D
        matrix = np.asarray(matrix)
    return Columns(matrix.T, list(range(matrix.shape[1])), device_kind, None)


def as_column(column: Any) -> Any:
    """Return a column of labels as a NumPy or CuPy array, or as a Series if its dtype exists in pandas only."""
    if hasattr(column, "iloc") and not isinstance(getattr(column, "dtype", np.dtype(object)), np.dtype):
        # categories, Int64, string, …
        return column
    if not isinstance(column, (list, tuple)):
        return devices.native(column)
    try:
        array = np.asarray(column)
    except ValueError:  # a list of lists of different lengths
        array = np.empty(len(column), dtype=object)
        array[:] = column
        return array
    # otherwise NumPy would turn None and NaN among strings into strings, and round large integers among floats
    return np.array(column, dtype=object) if array.dtype.kind in "USf" else array
