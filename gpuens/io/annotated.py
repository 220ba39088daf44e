"""AnnData files (h5ad): read labels from obs, read features from X, layers or obsm, and add a consensus to the file."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from gpuens import __version__
from gpuens.io import hdf5, paths
from gpuens.io.atomic import replacing
from gpuens.runtime import checks

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import sparray, spmatrix

GRAPH = "connectivities"  # entry of obsp that `scanpy.pp.neighbors` writes


def read_obs(path: str | os.PathLike[str]) -> "pd.DataFrame":
    """Read obs, the annotations of the cells, as a DataFrame; do not read the expression matrix."""
    import pandas as pd

    with _open(path) as file:
        obs = _read_entry(file, "obs", path)
    if not isinstance(obs, pd.DataFrame):
        raise ValueError(f"obs holds a {type(obs).__name__}, not the annotations of cells.")
    return obs


def like_labels(obs: Any, results: Iterable[str], argument: str = "columns") -> list[int]:
    """Return the positions of the columns of obs that may be base clusterings.

    These are columns of categories or integers, except those named in ``results``, which are earlier consensuses.
    """
    import pandas as pd

    label_columns = [
        m
        for m, (name, dtype) in enumerate(obs.dtypes.items())
        if (isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_integer_dtype(dtype)) and name not in results
    ]
    if not label_columns:
        listed_columns = checks.listed(obs.columns)
        raise ValueError(f"{argument} is needed: no column holds categories or integers; there are {listed_columns}.")
    return label_columns


def results(uns: Mapping[str, Any]) -> set[str]:
    """Return the names of the consensuses that gpuens added to an AnnData earlier.

    They must not be used as base clusterings of a new consensus.
    """
    return {name for name, entry in uns.items() if isinstance(entry, Mapping) and "gpuens" in entry}


def read_results(path: str | os.PathLike[str]) -> set[str]:
    """Return the names of the consensuses that gpuens added to an h5ad file earlier."""
    import h5py

    with paths.reading(path), _open(path) as file:
        uns = hdf5.group(file, "uns")
        # getlink=True gets only the link to an entry, so that entries of other programs are not read
        links = {name: uns.get(name, getlink=True) for name in uns}
        return results({name: uns[name] for name, link in links.items() if isinstance(link, h5py.HardLink)})


def read_features(path: str | os.PathLike[str], key: str | None) -> Any:
    """Read X, or the entry ``key`` of layers or obsm; return an array, a sparse matrix or a DataFrame."""
    with _open(path) as file:
        places = {name: f"{group}/{name}" for group in ("layers", "obsm") for name in hdf5.group(file, group)}
        places |= {"X": "X"} if "X" in file else {}
        if (key or "X") not in places:
            raise ValueError(
                f"key={key!r} names nothing in this file; X, obsm and layers hold {checks.listed(places)}."
            )
        return _read_entry(file, places[key or "X"], path)


def read_graph(path: str | os.PathLike[str], key: str = GRAPH) -> "sparray | spmatrix | None":
    """Read the graph of the cells, a sparse matrix (n_obs, n_obs), from ``obsp[key]``.

    Return None if the file has no such graph.
    """
    place = f"obsp/{key}"
    with _open(path) as file:
        if hdf5.entry(file, place) is None:
            return None
        graph = _read_entry(file, place, path)
    if not hasattr(graph, "tocsr"):
        raise ValueError(f"{place} is no sparse matrix.")
    return graph


def _open(path: str | os.PathLike[str]) -> Any:
    import anndata  # noqa: F401
    import h5py

    return h5py.File(path, "r")


def _read_entry(file: Any, name: str, path: str | os.PathLike[str]) -> Any:
    """Check that the data of an entry are inside the open file; then read the entry and return it."""
    from anndata.io import read_elem

    element = hdf5.entry(file, name)
    if element is None:
        raise ValueError(f"there is no {name}.")
    hdf5.check(element, f"{name} of {os.fspath(path)!r}")
    return read_elem(element)


def entry(values: Mapping[str, Any], key: str, argument: str, place: str = "obsm") -> Any:
    """Return the entry ``key`` of a place; raise an error that names the ``argument`` if there is no entry ``key``."""
    if key not in values:
        raise ValueError(f"{argument}={key!r} names nothing in {place}, which has {checks.listed(values)}.")
    return values[key]


def representation(adata: Any, use_rep: str) -> Any:
    """Return the features of the cells: X if ``use_rep`` is "X", otherwise the entry ``use_rep`` of obsm."""
    return adata.X if use_rep == "X" and adata.X is not None else entry(adata.obsm, use_rep, "use_rep")


def write_obs(file: IO[bytes], table: Any, ids: Any) -> None:
    """Write an AnnData without variables whose obs holds the labels as categories; label -1 means missing."""
    import anndata
    import h5py
    import pandas as pd
    from anndata.io import write_elem

    obs = pd.DataFrame(index=[str(m) for m in range(len(table))] if ids is None else [str(name) for name in ids])
    for name, column in table.items():
        if hasattr(column.dtype, "categories"):
            obs[name] = column.array
            continue
        values = column.to_numpy()
        categories, codes = np.unique(values, return_inverse=True)
        if len(categories) and categories.dtype.kind == "i" and categories[0] == checks.MISSING:
            categories, codes = categories[1:], codes - 1
        strings = categories.dtype.kind not in "iub"
        obs[name] = pd.Categorical.from_codes(codes, pd.Index(categories, dtype=object if strings else None))
    buffer = BytesIO()
    with h5py.File(buffer, "w") as h5file:
        write_elem(h5file, "/", anndata.AnnData(obs=obs))
    file.write(buffer.getbuffer())


# --- entries that a consensus adds to an AnnData ----------------------------------------------------------------------

# list of (place, key, value); ("obs", "consensus", value), for example, means adata.obs["consensus"] = value
Entries = list[tuple[str, str, Any]]


BESIDE = ("certainty", "confidence", "margin")  # names of the columns of obs that hold the evidence for each cell
REST = "rest"  # name of the column of obs that a method with a minimum cluster size adds


def read_index_name(path: str | os.PathLike[str]) -> str:
    """Return the name of the column of obs that holds the names of the cells.

    Raise an error if obs, obsm or uns is not a group, because then no entries can be added to it.
    """
    with paths.reading(path), _open(path) as file:
        for place in ("obs", "obsm", "uns"):
            if place in file and not hdf5.group(file, place):
                raise ValueError(f"{place} is no group of entries, to which a consensus could be added.")
        return str(hdf5.group(file, "obs").attrs.get("_index", "_index"))


def check_key(key: Any, clusterings: Iterable[Any], index: Any) -> str:
    """Check the key under which a new consensus will be stored, and return it.

    Raise an error if the key is invalid, or if the new columns would replace a base clustering or the names of the
    cells, which are the column ``index`` of obs.
    """
    if not isinstance(key, str) or not key or "/" in key:
        raise ValueError(f"key_added must be a name without '/', such as 'consensus', not {checks.shown(key)}.")
    added = [key, *(f"{key}_{name}" for name in (*BESIDE, REST))]
    if names := {"_index", index}.intersection(added):
        raise ValueError(f"key_added={key!r} would replace the names of the cells, {names.pop()!r}; take another.")
    if replaced := [name for name in added if name in clusterings]:
        raise ValueError(
            f"key_added={key!r} would replace {replaced[0]!r}, which is one of the base clusterings; take another."
        )
    return key


def entries(
    key: str, labels: np.ndarray, beside: Mapping[str, np.ndarray], parameters: Mapping[str, Any], **facts: Any
) -> Entries:
    """Return the entries that a consensus adds to an AnnData.

    - The labels (n_obs,) become categories of obs, "0", "1", …; -1 is missing. Labels that are texts are the
      categories.
    - Arrays ``beside`` the labels go to obs if their shape is (n_obs,), and to obsm if it is (n_obs, k).
    - Parameters and facts go to uns, unless they are None.
    """
    import pandas as pd

    if labels.dtype.kind == "O":
        clusters = pd.Categorical(labels)
    else:
        clusters = pd.Categorical.from_codes(labels, pd.Index([str(c) for c in range(labels.max(initial=-1) + 1)]))
    about = {"params": dict(_stored(parameters)), **dict(_stored(facts)), "gpuens": __version__}
    beside_them: Entries = [
        ("obs" if values.ndim == 1 else "obsm", f"{key}_{name}", values) for name, values in beside.items()
    ]
    return [("obs", key, clusters), *beside_them, ("uns", key, about)]


def chosen(facts: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of uns that describes how the number of clusters was chosen; it contains no labels."""
    import pandas as pd

    table = pd.DataFrame(facts["ks"]).astype(float).astype({"k": "int64"})
    told_facts = {
        name: value for name, value in facts.items() if name not in ("ks", "by_criterion") and value is not None
    }
    best = {"by_criterion": dict(facts["by_criterion"]), "table": table.set_axis([str(k) for k in table["k"]], axis=0)}
    return {**told_facts, **best, "params": dict(_stored(parameters)), "gpuens": __version__}


def _stored(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Convert each value to a type that uns can store, and yield it with its name; None is omitted.

    An object, such as a reduction, is converted to its text.
    """
    for name, value in values.items():
        if isinstance(value, (list, tuple, np.ndarray)):
            yield name, np.asarray(value) if np.asarray(value).dtype.kind in "biuf" else [str(item) for item in value]
        elif value is not None:
            value = value.item() if isinstance(value, np.generic) else value
            yield name, value if isinstance(value, (bool, int, float, str)) else str(value)


def write_copy(path: str | os.PathLike[str], source: str | os.PathLike[str], added: Entries) -> None:
    """Write a copy of an h5ad file and add the entries of a consensus to the copy; do not read its other entries."""
    import h5py
    from anndata.io import write_elem

    with replacing(path) as file:
        with open(source, "rb") as original:
            shutil.copyfileobj(original, file)
        file.flush()
        with h5py.File(file.name, "r+", locking=False) as copy:  # no lock, because `replacing` holds a lock already
            # an obs of anndata before 0.8 is written again, because its categories are stored differently
            if copy["obs"].attrs.get("encoding-version") != "0.2.0":
                write_elem(copy, "obs", _read_entry(copy, "obs", path))
            for place in {place for place, _, _ in added} - set(copy):
                write_elem(copy, place, {})  # unlike h5py, `write_elem` also writes AnnData's encoding of the group
            for place, name, value in added:
                if copy[place].get(name, getlink=True) is not None:
                    del copy[place][name]  # this removes even a broken link, which anndata would not find
                write_elem(copy[place], name, value)
            order = [*copy["obs"].attrs["column-order"]]
            order += [name for place, name, _ in added if place == "obs" and name not in order]
            copy["obs"].attrs["column-order"] = order
