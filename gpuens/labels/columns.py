"""The caller's labels as columns, from every accepted container of M clusterings of N objects."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.communities import as_sequences, columns_by_name, refuse_single, warn_of_members
from gpuens.labels.frames import as_pandas, is_frame, is_of_cudf
from gpuens.labels.object_names import JOIN, counts_from_0, in_one_order, index_of, index_of_all, index_of_names
from gpuens.labels.odd_columns import separate_id_columns
from gpuens.labels.orientation import check_orientation
from gpuens.runtime import checks
from gpuens.runtime import device as devices


class Columns(NamedTuple):
    """M base clusterings of the same N objects, one column each, in the caller's own label values."""

    values: Any  # an array (M, N) of NumPy or CuPy, or a list of M results of `as_column`
    names: list[Any]
    device_kind: str  # "cpu" or "cuda": the memory of the caller's labels; a `Home` of arrays
    index: Any  # the names of the objects, a pandas Index (N,), or None
    left_out: Sequence[Any] = ()  # names of the columns of a DataFrame that name the objects

    def take(self, places: list[int]) -> "Columns":
        """Return the columns at some places, in the order of ``places``."""
        if places == list(range(len(self.names))):
            return self
        return self._replace(values=[self.values[m] for m in places], names=[self.names[m] for m in places])


def split_columns(
    labels: Any, names: Sequence[Any] | None = None, *, n_clusterings: int | None = None, wide: bool = False
) -> Columns:
    """Split the caller's labels into columns with the given ``names``, or with names of their own.

    Labels that may be transposed are refused, unless there are ``n_clusterings`` columns, as expected, or ``wide``
    says that rows are objects.
    """
    checks.refuse_sparse(labels)  # one kind of sparse matrices is a Mapping
    if not hasattr(labels, "shape"):
        refuse_single(labels)
    if isinstance(labels, Mapping):
        columns = _split_list(list(labels.values()), n_clusterings, wide)._replace(names=list(labels))
    elif isinstance(labels, (list, tuple)):
        columns = _split_list(labels, n_clusterings, wide)
    else:
        by_columns = is_frame(labels)
        columns = _split_frame(labels, names, n_clusterings) if by_columns else _split_array(labels)
        if not wide:
            by_columns = by_columns or len(columns.names) == n_clusterings
            check_orientation(columns.values, by_columns=by_columns)
    return columns if names is None else columns._replace(names=checks.check_names(names, len(columns.values)))


def _split_array(labels: Any) -> Columns:
    """Return the columns of an array (N, M) of any library; refuse AnnData, scalars, texts, sets and iterators.

    Soft clusterings and answers in long form, which are not for all methods, are refused, too.
    """
    if hasattr(labels, "takers"):
        raise TypeError(
            f"labels are {labels.form}, but label rows are needed here; pass these to {labels.takers}, or labels "
            "(n_objects, n_clusterings) here."
        )
    if hasattr(labels, "obs") and hasattr(labels, "obsm"):  # else NumPy would read an AnnData object row by row
        raise TypeError(
            "labels must be base clusterings, not AnnData: pass adata.obs[columns] with the columns that hold them, "
            f"of {checks.listed(labels.obs.columns)}."
        )
    is_scalar = labels is None or isinstance(labels, (str, bytes, Set, Iterator)) or np.isscalar(labels)
    if is_scalar or type(labels).__name__ == "NAType":
        raise TypeError(
            f"labels must be an array (n_objects, n_clusterings), a DataFrame or a list of columns, not "
            f"{type(labels).__name__}{', so pass list(labels)' if isinstance(labels, Iterator) else ''}."
        )
    device_kind, matrix = devices.home_of(labels), devices.native(labels)
    checks.check_label_shape(matrix.shape)
    if isinstance(matrix, np.matrix):  # columns of an np.matrix would be 2-D
        matrix = np.asarray(matrix)
    return Columns(matrix.T, list(range(matrix.shape[1])), device_kind, None)


def _split_frame(frame: Any, names: Sequence[Any] | None, n_clusterings: int | None) -> Columns:
    """Return the columns of a frame of any library; without ``names``, a column that names the objects is left out."""
    index, table = index_of(frame), as_pandas(frame)
    if not hasattr(table, "iloc"):
        raise TypeError(
            f"labels are a {type(frame).__name__} of {type(frame).__module__}, a table that is not known; pass "
            "labels.to_pandas() or an array."
        )
    checks.check_label_shape(tuple(table.shape))
    titles = list(table.columns)  # pandas allows equal names, so columns are selected by position
    values = [as_column(table.iloc[:, m]) for m in range(len(titles))]
    columns = Columns(values, titles, "cuda" if is_of_cudf(frame) else "cpu", index)
    if names is not None or len(titles) == n_clusterings:
        return columns
    has_names = index is not None and not counts_from_0(index)
    places, id_place = separate_id_columns(values, titles, "labels", named=has_names, argument="names")
    if id_place is not None:
        title = titles[id_place]
        checks.warn(
            f"labels: the column {title!r} names the objects and is no clustering; pass "
            f"labels.set_index({title!r}) to say so, or gpuens.Ensemble(labels, names=list(labels.columns)) if it is."
        )
        index = index_of_names(np.asarray(values[id_place]).tolist()).rename(title)
    left_out = [name for m, name in enumerate(titles) if m not in places]
    return columns.take(places)._replace(index=index, left_out=left_out)


def _split_list(labels: Sequence[Any], n_clusterings: int | None, wide: bool) -> Columns:
    """Return the elements of a list as columns in one order of the objects, if these have names."""
    names, labels = list(range(len(labels))), as_sequences(labels)
    titles = [f"labels[{m}]" for m in names]
    by_name = columns_by_name(labels, as_column, titles)
    if by_name is not None:
        return Columns(by_name[0], names, "cpu", by_name[1])
    series, index = in_one_order(labels, titles, JOIN), index_of_all(labels)
    device_kind, columns = devices.home_of_all(series, titles), [as_column(column) for column in series]
    of_lists = all(isinstance(column, (list, tuple)) for column in labels)
    _check_shapes([column.shape for column in columns], of_lists, index)
    if of_lists and not wide and n_clusterings != len(columns) > len(columns[0]):
        raise ValueError(
            f"labels are a list of {len(columns)} lists of {len(columns[0])} label(s), and in a list each element "
            "is one base clustering, so this looks transposed: pass numpy.array(labels) if each element is an "
            "object, or say wide=True (gpuens.Ensemble(labels, wide=True)) if there really are so few objects."
        )
    if of_lists:
        warn_of_members(labels)
    return Columns(columns, names, device_kind, index)


def _check_shapes(shapes: list[tuple[int, ...]], of_lists: bool, index: Any) -> None:
    """Refuse the shapes of the elements of a list unless all are columns (n_objects,) of the same objects."""
    if not shapes or (len(set(shapes)) == 1 and len(shapes[0]) != 1):
        are_members = of_lists and bool(shapes) and len(shapes[0]) == 2
        checks.check_label_shape((len(shapes), *shapes[0]) if shapes else (0, 0), members=are_members)
    for position, shape in enumerate(shapes):
        if len(shape) != 1:
            raise ValueError(
                "labels: in a list every element is one base clustering, a 1-D column of labels, but element "
                f"{position} is {'no column' if not shape else f'{len(shape)}-D'}."
            )
    for position, (length,) in enumerate(shapes):
        if length != shapes[0][0]:
            members = "; if each list is a cluster of one clustering, pass [labels]" if of_lists else ""
            advice = members if index is None else f"; {JOIN}, by the index of each"
            raise ValueError(
                f"labels: every base clustering must label the same objects, but clustering 0 has {shapes[0][0]} "
                f"labels and clustering {position} has {length}{advice}."
            )
    checks.check_label_shape((shapes[0][0], len(shapes)))


def as_column(column: Any) -> Any:
    """Return a column of labels as a NumPy or CuPy array, or as a Series if its dtype exists in pandas only."""
    column = as_pandas(column)
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
