"""Pictures of the cells of an AnnData on an embedding, such as UMAP's, or at their places in a tissue."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.plotting.drawing import (
    INK,
    axes,
    color_clusters,
    entitle,
    new_figure,
    shorten,
    type_name,
)
from gpuens.plotting.places import MAP_INCHES, MOST_NAMES, Places, draw_clusters, draw_numbers
from gpuens.runtime import checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EMBEDDINGS = ("X_umap", "X_tsne", "X_draw_graph_fa", "X_pca")  # default embeddings in order of preference
AXIS_NAMES = {"umap": "UMAP", "tsne": "t-SNE", "draw_graph_fa": "FA", "pca": "PC"}  # by Scanpy's names of embeddings
SCALE_QUANTILES = 0.02, 0.98  # ends of the colour scale, so that few extreme cells leave colours for the others
LOWEST_SHARE = 0.1  # share of the cells with the lowest numbers, about which the title says how low they are


def embedding(
    adata: Any,
    color: str | Sequence[str] = "consensus",
    *,
    basis: str | None = None,
    s: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes | np.ndarray":
    """Draw the cells on an embedding, coloured by a column of ``obs``: a consensus, or its certainty for each cell.

    Scanpy draws the same columns by ``scanpy.pl.umap(adata, color=["consensus", "consensus_certainty"])``.

    Parameters
    ----------
    adata : AnnData
    color : str or sequence of str
        The column; several have one panel each in a new figure. Categories have one colour each, by default that of
        their cluster in all pictures, or those that Scanpy stored in ``uns["NAME_colors"]``. Numbers have a colour
        scale from their 2 % to their 98 % quantile, with the lowest on top.
    basis : str, optional
        The entry of ``obsm`` with the embedding; its first two columns are drawn. By default, the first existing entry
        of "X_umap", "X_tsne", "X_draw_graph_fa" and "X_pca". In an entry with "spatial" in its name, y grows downwards.
    s : float, optional
        The area of the mark of a cell in square points; by default, marks nearly touch each other. At most 200,000
        cells are drawn, the same share of every cluster.
    ax : matplotlib Axes, optional
        The Axes for a single column.

    Returns
    -------
    matplotlib Axes, or an ndarray of them if ``color`` is a sequence

    Raises
    ------
    TypeError, ValueError
        For anything but an AnnData, for missing columns and embeddings, and for a single Axes with several columns.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> import gpuens as ge
    >>> obs = pd.DataFrame({"leiden_1": list("aaabbb"), "leiden_2": list("aabccc")}, index=list("uvwxyz"))
    >>> adata = anndata.AnnData(np.zeros((6, 1)), obs=obs, obsm={"X_umap": np.arange(12.0).reshape(6, 2)})
    >>> ge.sc.consensus(adata, "leiden_*", n_clusters=2)
    >>> left, right = ge.plotting.embedding(adata, ["consensus", "consensus_certainty"])
    >>> left.get_title(), right.get_title(), left.get_xlabel()
    ('consensus: 2 groups of 6 cells', 'Median 0.512; a tenth of 6 cells below 0.462', 'UMAP 1')
    """
    if not (hasattr(adata, "obs") and hasattr(adata, "obsm")):
        raise TypeError(f"adata must be an AnnData, not {type_name(adata)}.")
    columns = [color] if isinstance(color, str) else list(color)
    for name in columns:
        if not isinstance(name, str) or name not in adata.obs:
            raise ValueError(f"color={name!r} is no column of obs, which has {checks.listed(adata.obs.columns)}.")
    if s is not None:
        s = checks.check_real(s, "s", above=0.0)
    entry, places = _places(adata, basis)
    if isinstance(color, str):
        return _draw_column(axes(ax, MAP_INCHES, square=True), adata, color, entry, places, s)
    if not columns or ax is not None:
        raise ValueError(f"color names {len(columns)} columns; draw one column into an ax, or several without ax.")
    n_cols = math.ceil(math.sqrt(len(columns)))
    n_rows = math.ceil(len(columns) / n_cols)
    figure = new_figure((n_cols * MAP_INCHES[0], n_rows * MAP_INCHES[1]))
    panels = figure.subplots(n_rows, n_cols, squeeze=False).ravel()
    for empty in panels[len(columns) :]:
        empty.remove()
    for panel, name in zip(panels, columns, strict=False):
        _draw_column(panel, adata, name, entry, places, s)
    return panels[: len(columns)]


def _draw_column(ax: "Axes", adata: Any, name: str, entry: str, places: Places, s: float | None) -> "Axes":
    """Draw a column of ``obs`` at the places of the cells."""
    column, basis = adata.obs[name], entry.removeprefix("X_")
    is_tissue = "spatial" in basis
    axis = shorten(AXIS_NAMES.get(basis, basis), 20)
    ax.set_xlabel("x" if is_tissue else f"{axis} 1", loc="left")
    ax.set_ylabel("y" if is_tissue else f"{axis} 2", loc="bottom")
    if hasattr(column, "cat") or column.dtype.kind not in "iuf":
        codes, names = _categories(column)
        entitle(ax, f"{shorten(name, 40)}: {len(names):,} groups of {len(codes):,} cells")
        draw_clusters(ax, places, codes, names, _palette(adata, name, names), s)
        if not is_tissue and len(names) <= MOST_NAMES:
            _name_clusters(ax, places, codes, names)
        return ax
    values = column.to_numpy(dtype=np.float64)
    numbers = values[np.isfinite(values)] if np.isfinite(values).any() else np.zeros(1)
    low, high, lowest, median = np.quantile(numbers, (*SCALE_QUANTILES, LOWEST_SHARE, 0.5))
    entitle(ax, f"Median {median:.3g}; a tenth of {len(values):,} cells below {lowest:.3g}")
    draw_numbers(ax, places, values, (low, high), shorten(name, 40), s, lowest_on_top=True)
    return ax


def _palette(adata: Any, name: str, names: Any) -> np.ndarray:
    """Return the colours (n + 1, 3) of categories: those that Scanpy stored, or else those of clusters."""
    from matplotlib.colors import to_rgb

    palette, stored = color_clusters(names), getattr(adata, "uns", {}).get(f"{name}_colors", ())
    if len(stored) >= len(names) > 0:
        palette[:-1] = [to_rgb(color) for color in stored[: len(names)]]
    return palette


def _name_clusters(ax: Any, places: Places, codes: np.ndarray, names: Any) -> None:
    """Write names at the objects in the middle of their clusters, the largest first, unless they would overlap."""
    from matplotlib.patheffects import withStroke

    assert places.xy is not None
    texts = []
    for code in np.argsort(-np.bincount(codes[codes >= 0], minlength=len(names)), kind="stable"):
        if len(members := places.xy[codes == code]):
            nearest = np.abs(members - np.median(members, axis=0)).sum(axis=1).argmin()
            texts.append(
                ax.text(
                    *members[nearest], shorten(names[code], 20), ha="center", va="center", color=INK, weight="bold",
                    path_effects=[withStroke(linewidth=3, foreground="white")], parse_math=False,
                )
            )  # fmt: skip
    ax.figure.canvas.figure.draw_without_rendering()  # the layout, on which the overlaps depend
    boxes: list[Any] = []
    for text in texts:
        box = text.get_window_extent().padded(2)
        if any(map(box.overlaps, boxes)):
            text.remove()
        else:
            boxes.append(box)


def _categories(column: Any) -> tuple[np.ndarray, Any]:
    """Return the category code of each cell (n_obs,), which is -1 for a missing value, and the category names."""
    categories = column.astype("category").cat
    return categories.codes.to_numpy().astype(np.int64), categories.categories


def _places(adata: Any, basis: str | None) -> tuple[str, Places]:
    """Return the name of the embedding in ``obsm``, and the places of the cells on it."""
    entries = list(adata.obsm)
    name = next((name for name in EMBEDDINGS if name in entries), "") if basis is None else basis
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
    return name, Places(places[:, :2].astype(np.float64), (0, 0), "spatial" in name)
