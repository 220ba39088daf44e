"""Checks of the entries of an h5ad file before anndata reads them: the data must be inside the file and fit the memory.

An HDF5 file can contain links to other files, data that are stored in other files, and groups that contain themselves,
and anndata would follow all of them. The checks visit the same parts of an entry as anndata does.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpuens.runtime import checks, device

if TYPE_CHECKING:
    import h5py

# ids of the allowed HDF5 filters: six of HDF5 (deflate, shuffle, fletcher32, szip, nbit, scale-offset), lzf of h5py,
# and the filters of hdf5plugin that anndata recommends (blosc, lz4, bitshuffle, zstd, blosc2)
FILTERS = frozenset((1, 2, 3, 4, 5, 6, 32000, 32001, 32004, 32008, 32015, 32026))

DATAFRAME = "dataframe"
NULLABLE = ("nullable-integer", "nullable-boolean", "nullable-string-array")
SERIES = ("categorical", *NULLABLE)
SPARSE = ("csr_matrix", "csc_matrix")
PARTS = {  # encoding of a group → names of the parts of the group that anndata reads
    "categorical": ("codes", "categories"),
    **dict.fromkeys(NULLABLE, ("values", "mask")),
    **dict.fromkeys(SPARSE, ("data", "indices", "indptr")),
}


def entry(parent: Any, name: str) -> Any:
    """Return the entry ``name`` of a group, or None if it is absent; raise an error for a soft or external link."""
    import h5py

    element = parent
    for part in name.split("/"):
        link = element.get(part, getlink=True) if isinstance(element, h5py.Group) else None
        if link is None:
            return None
        if not isinstance(link, h5py.HardLink):
            where = f" of {link.filename!r}" if isinstance(link, h5py.ExternalLink) else ""
            raise ValueError(f"{_name(element, part)} is a link to {link.path!r}{where}, which is not followed.")
        element = element[part]
    return element


def group(file: Any, name: str) -> Any:
    """Return the group ``name`` of a file, or {} if the file has no group of this name."""
    import h5py

    element = entry(file, name)
    return element if isinstance(element, h5py.Group) else {}


def check(element: Any, owner: str) -> None:
    """Raise an error if the data of an entry are outside the file, too large, or neither labels nor features."""
    needed = sum(_bytes_of(dataset) for dataset in _datasets(element, (DATAFRAME, *SPARSE)))
    checks.check_memory(needed, device.memory_budget(), owner, "leave out what is not needed")


def _datasets(element: Any, kinds: tuple[str, ...] = ()) -> Iterator["h5py.Dataset"]:
    """Yield the datasets that anndata reads for an entry; raise an error for a group whose kind is not in ``kinds``."""
    import h5py

    if isinstance(element, h5py.Dataset):
        yield element
        categories = element.attrs.get("categories")  # files of anndata before 0.8 have this attribute
        if categories is not None and not isinstance(categories, h5py.Reference):
            raise ValueError(
                f"{_name(element)} refers to its categories by {checks.shown(categories)}, which is not a reference."
            )
        if categories is not None:
            yield from _datasets(element.parent[categories])
        return
    encoding = _encoding(element)
    if encoding not in kinds:
        raise ValueError(f"{_name(element)} holds {encoding or 'a group'}, which is not read as labels or features.")
    names: list[str]
    within: tuple[str, ...]
    if encoding == DATAFRAME:
        names, within = [_text(element.attrs["_index"]), *map(_text, element.attrs["column-order"])], SERIES
    else:
        names, within = [*PARTS[encoding]], NULLABLE if encoding == "categorical" else ()
    if encoding in SPARSE:
        _check_shape(element, encoding)
    for name in names:
        part = None if name.startswith("/") else entry(element, name)
        if part is not None:
            yield from _datasets(part, within)
        elif name != "mask":
            raise ValueError(f"{_name(element)} has no entry {name!r}.")


def _encoding(element: Any) -> str:
    """Return the name that anndata gives to the kind of a group, such as "csr_matrix"."""
    if (older := element.attrs.get("h5sparse_format")) is not None:
        return f"{_text(older)}_matrix"
    return _text(element.attrs.get("encoding-type", ""))


def _check_shape(element: Any, encoding: str) -> None:
    """Raise an error if the shape of a sparse matrix does not fit its indptr.

    Otherwise, reading a matrix with a false shape could allocate far too much memory.
    """
    shape = [int(n) for n in element.attrs.get("shape", element.attrs.get("h5sparse_shape", ()))]
    indptr = entry(element, "indptr")
    n_begins = len(indptr) if hasattr(indptr, "dtype") and indptr.ndim == 1 else 0
    if len(shape) != 2 or min(shape) < 0 or shape[encoding == "csc_matrix"] + 1 != n_begins:
        raise ValueError(f"{_name(element)} is a sparse matrix of shape {shape}, but has an indptr of {n_begins}.")


def _bytes_of(dataset: "h5py.Dataset") -> int:
    """Return the bytes of memory needed to read a dataset, which are at least the bytes of one chunk.

    Raise an error if the data are outside the file, compressed by an unknown filter, or neither numbers nor text.
    """
    import h5py

    properties = dataset.id.get_create_plist()
    if properties.get_layout() == h5py.h5d.VIRTUAL or properties.get_external_count():
        raise ValueError(f"{_name(dataset)} has its data in another file, which is not read.")
    foreign = {properties.get_filter(i)[0] for i in range(properties.get_nfilters())} - FILTERS
    if foreign:
        raise ValueError(f"{_name(dataset)} is compressed by the unknown filter {min(foreign)}.")
    if dataset.dtype.kind not in "biufSU" and h5py.check_string_dtype(dataset.dtype) is None:
        raise ValueError(f"{_name(dataset)} has type {dataset.dtype} in place of numbers or text.")
    sizes = [math.prod(shape) for shape in (dataset.shape, dataset.chunks) if shape is not None]
    return max(sizes, default=0) * int(dataset.dtype.itemsize)


def _name(element: Any, part: str = "") -> str:
    return repr("/".join(filter(None, [(element.name or "").strip("/"), part])))


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
