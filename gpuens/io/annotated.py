"""AnnData files, h5ad: labels in obs, features in X, layers or obsm."""

import os
from io import BytesIO
from typing import IO, Any

import numpy as np

from gpuens import checks, device


def read_obs(path: str | os.PathLike) -> Any:
    """Return obs, the annotations of the cells, as a DataFrame; the expression matrix is not read."""
    import h5py
    import pandas as pd
    from anndata.io import read_elem

    with h5py.File(path, "r") as file:
        _fits(file["obs"], path, "obs")
        obs = read_elem(file["obs"])
    if not isinstance(obs, pd.DataFrame):
        raise ValueError(f"obs holds a {type(obs).__name__}, not the annotations of cells.")
    return obs


def like_labels(obs: Any) -> list[int]:
    """Return the positions of the annotations that are categories or integers, as labels are."""
    import pandas as pd

    kinds = [isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_integer_dtype(dtype) for dtype in obs.dtypes]
    if not any(kinds):
        there = checks.listed(obs.columns)
        raise ValueError(f"columns is needed: no column holds categories or integers; there are {there}.")
    return [m for m, like in enumerate(kinds) if like]


def read_features(path: str | os.PathLike, key: str | None) -> Any:
    """Return X, or the entry ``key`` of layers or obsm: an array, a sparse matrix or a DataFrame."""
    import h5py
    from anndata.io import read_elem

    with h5py.File(path, "r") as file:
        places = {"X": file["X"]} if "X" in file else {}
        for group in ("obsm", "layers"):
            places = {**dict(file.get(group, {})), **places}
        if (key or "X") not in places:
            raise ValueError(
                f"key={key!r} names nothing in this file; X, obsm and layers hold {checks.listed(places)}."
            )
        _fits(places[key or "X"], path, key or "X")
        return read_elem(places[key or "X"])


def write_obs(file: IO[bytes], table: Any, ids: Any) -> None:
    """Write an AnnData without variables; obs holds the labels as categories, with -1 as missing."""
    import anndata
    import h5py
    import pandas as pd
    from anndata.io import write_elem

    obs = pd.DataFrame(index=[str(m) for m in range(len(table))] if ids is None else [str(name) for name in ids])
    for name, column in table.items():
        values = column.to_numpy()
        categories, codes = np.unique(values, return_inverse=True)
        if len(categories) and categories.dtype.kind == "i" and categories[0] == checks.MISSING:
            categories, codes = categories[1:], codes - 1
        strings = categories.dtype.kind not in "iub"
        obs[name] = pd.Categorical.from_codes(codes, pd.Index(categories, dtype=object if strings else None))
    buffer = BytesIO()
    with h5py.File(buffer, "w") as made:
        write_elem(made, "/", anndata.AnnData(obs=obs))
    file.write(buffer.getbuffer())


def _fits(element: Any, path: str | os.PathLike, what: str) -> None:
    """Refuse entries larger than the memory budget."""
    sizes = []

    def add(_: str, item: Any) -> None:
        if hasattr(item, "dtype"):
            sizes.append(item.size * item.dtype.itemsize)

    if hasattr(element, "visititems"):
        element.visititems(add)
    else:
        add("", element)
    what = f"{what} of {os.fspath(path)!r}"
    checks.check_memory(sum(sizes), device.memory_budget(), what, "leave out what is not needed")
