"""Pictures of the cells of an AnnData on an embedding, such as UMAP's."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.plotting.drawing import (
    INK,
    axes,
    color_bar,
    color_clusters,
    entitle,
    hide_spines,
    select_evenly,
    shorten,
    type_name,
)
from gpuens.runtime import checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CELLS = 50_000  # maximum number of cells that are drawn, so that they do not hide each other
EMBEDDINGS = ("X_umap", "X_tsne", "X_draw_graph_fa", "X_pca")  # default embeddings in order of preference
SEQUENCE = "viridis"  # colour map for columns of numbers, such as certainty
SCALE_QUANTILES = 0.02, 0.98  # ends of the colour scale, so that few extreme cells leave colours for the others
MOST_NAMES = 40  # maximum number of clusters for which names are written


def embedding(adata: Any, color: str = "consensus", *, basis: str | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the cells on an embedding, coloured by a column of ``obs``: a consensus, or its certainty for each cell.

    Scanpy draws the same columns by ``scanpy.pl.umap(adata, color=["consensus", "consensus_certainty"])``.

    Parameters
    ----------
    adata : AnnData
    color : str
        The column. Categories have one colour each, with a name at the centre of their cells; numbers have a colour
        scale from their 2 % to their 98 % quantile.
    basis : str, optional
        The entry of ``obsm`` with the embedding; its first two columns are drawn. By default, the first existing entry
        of "X_umap", "X_tsne", "X_draw_graph_fa" and "X_pca".
        ax : matplotlib Axes, optional
        At most 50,000 cells are drawn, the same share of every cluster.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        For anything but an AnnData, and for missing columns and embeddings.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> import gpuens as ge
    >>> obs = pd.DataFrame({"leiden_1": list("aaabbb"), "leiden_2": list("aabccc")}, index=list("uvwxyz"))
    >>> adata = anndata.AnnData(np.zeros((6, 1)), obs=obs, obsm={"X_umap": np.arange(12.0).reshape(6, 2)})
    >>> ge.sc.consensus(adata, "leiden_*", n_clusters=2)
    >>> ge.plotting.embedding(adata).get_title(), ge.plotting.embedding(adata, "consensus_certainty").get_title()
    ('consensus', 'consensus_certainty')
    """
    if not (hasattr(adata, "obs") and hasattr(adata, "obsm")):
        raise TypeError(f"adata must be an AnnData, not {type_name(adata)}.")
    if not isinstance(color, str):
        raise TypeError(
            f"color must be the name of one column of obs, not {type_name(color)}; draw each column into its own ax."
        )
    if color not in adata.obs:
        raise ValueError(f"color={color!r} is no column of obs, which has {checks.listed(adata.obs.columns)}.")
    places = _places(adata, basis)
    column = adata.obs[color]
    named = hasattr(column, "cat") or column.dtype.kind not in "iuf"
    codes, names = _categories(column) if named else (np.zeros(len(column), np.int64), ())
    cells = select_evenly(codes, MOST_CELLS)
    ax = axes(ax, (5.4, 4.6))
    size = float(np.clip(30_000 / len(cells), 1.0, 30.0))
    if named:
        _draw_clusters(ax, places, codes, names, cells, size)
    else:
        values = column.to_numpy(dtype=np.float64)[cells]
        order = np.argsort(-values, kind="stable")  # the least certain cells are drawn last, on top
        x, y = places[cells][order].T
        low, high = np.nanquantile(values, SCALE_QUANTILES) if np.isfinite(values).any() else (0.0, 1.0)
        image = ax.scatter(x, y, s=size, c=values[order], cmap=SEQUENCE, vmin=low, vmax=high, linewidths=0)
        color_bar(image, ax, shorten(color, 40), extend="both")
    ax.set(xticks=[], yticks=[])
    entitle(ax, shorten(color, 40))
    return hide_spines(ax)


def _draw_clusters(ax: Any, places: np.ndarray, codes: np.ndarray, names: Any, cells: np.ndarray, size: float) -> None:
    palette = color_clusters(names)
    # cells are drawn in random order, so that no cluster hides all other clusters
    order = cells[np.random.default_rng(0).permutation(len(cells))]
    x, y = places[order].T
    ax.scatter(x, y, s=size, c=palette[codes[order]], linewidths=0)
    for code, name in enumerate(names if len(names) <= MOST_NAMES else ()):
        if (members := codes == code).any():
            x, y = np.median(places[members], axis=0)
            text = ax.text(x, y, shorten(name, 20), ha="center", va="center", fontsize=10, color=INK, weight="bold")
            text.set_bbox({"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1.0})
            text.set_parse_math(False)


def _categories(column: Any) -> tuple[np.ndarray, Any]:
    """Return the category code of each cell (n_obs,), which is -1 for a missing value, and the category names."""
    categories = column.astype("category").cat
    return categories.codes.to_numpy().astype(np.int64), categories.categories


def _places(adata: Any, basis: str | None) -> np.ndarray:
    entries = list(adata.obsm)
    name = next((name for name in EMBEDDINGS if name in entries), None) if basis is None else basis
    if name not in entries and f"X_{name}" in entries:  # names of embeddings by Scanpy begin with X_
        name = f"X_{name}"
    if name not in entries:
        missing = "basis: there is no embedding" if basis is None else f"basis={basis!r} names nothing"
        raise ValueError(
            f"{missing} in obsm, which has {checks.listed(entries) or 'no entries'}; name an entry with two columns, "
            "or make one, for example by scanpy.tl.umap."
        )
    places = np.asarray(adata.obsm[name])
    if places.ndim != 2 or places.shape[1] < 2:
        raise ValueError(f"basis={name!r} has shape {places.shape}, but two columns are drawn; name another.")
    return places[:, :2].astype(np.float64)
