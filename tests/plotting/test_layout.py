"""Texts of all pictures are inside, apart and legible, also at the width of a column of a paper."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from conftest import structured_labels

import gpuens as ge
from gpuens import plotting
from gpuens.plotting.drawing import for_files, ink_on, luminance
from gpuens.reduction import CATree

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

COLUMN = 3.5, 2.9  # width and height, in inches, of a picture in a column of a journal
LEAST_CONTRAST = 4.5  # least contrast of texts by WCAG 2
N, K = 240, 12
LABELS, TRUTH = structured_labels(N, 12, K, noise=0.15, missing=0.05, seed=2)
NAMES = [f"leiden_{m / 10:g}" for m in range(12)]
EST = ge.LWEA(K).fit(LABELS)
EVIDENCE = EST.evidence()
CHOICE = ge.choose_k(LABELS, ks=range(2, 15))
ALIGNED = ge.align(pd.DataFrame(LABELS, columns=NAMES), TRUTH)
LEVELS = {k: EST.reduction_.expand(EST.dendrogram_.cut(k)) for k in range(2, 15)}
XY = np.random.default_rng(0).normal(size=(N, 2)) + 4 * np.stack([np.cos(TRUTH), np.sin(TRUTH)], axis=1)
SOFT = ge.EM(4).fit(LABELS)


def cells(color):
    anndata = pytest.importorskip("anndata", reason="cells")
    certainty = EVIDENCE.objects.certainty
    obs = pd.DataFrame({"consensus": pd.Categorical(EST.labels_.astype(str)), "consensus_certainty": certainty})
    obs.index = obs.index.astype(str)
    return anndata.AnnData(np.zeros((N, 1)), obs=obs, obsm={"X_umap": XY}), color


PICTURES = {  # name: function and number of entries in its legend
    "embedding": (lambda **more: plotting.embedding(*cells("consensus"), **more), K),
    "embedding_of_numbers": (lambda **more: plotting.embedding(*cells("consensus_certainty"), **more), 0),
    "domains": (lambda **more: plotting.domains(TRUTH, XY, **more), K),
    "uncertainty": (lambda **more: plotting.uncertainty(SOFT, XY, **more), 0),
    "coassociation_heatmap": (lambda **more: plotting.coassociation_heatmap(EST, **more), 0),
    "sizes": (lambda **more: plotting.sizes(EST.labels_, **more), 0),
    "answers": (lambda **more: plotting.answers(COMPARISON, **more), 0),
    "dendrogram": (lambda **more: plotting.dendrogram(EST, **more), 0),
    "lifetimes": (lambda **more: plotting.lifetimes(EST, **more), 0),
    "ca_tree": (lambda **more: plotting.ca_tree(CATree(0.4).reduce(LABELS), **more), 1),
    "cdf": (lambda **more: plotting.cdf(EVIDENCE.pairs(), **more), 2),
    "cdf_of_levels": (lambda **more: plotting.cdf({k: EVIDENCE.pairs() for k in range(2, 15)}, **more), 13),
    "item_consensus": (lambda **more: plotting.item_consensus(EVIDENCE, **more), 3),
    "cluster_consensus": (lambda **more: plotting.cluster_consensus(EVIDENCE, **more), 2),
    "silhouettes": (lambda **more: plotting.silhouettes(EVIDENCE, **more), 0),
    "between_clusters": (lambda **more: plotting.between_clusters(EVIDENCE, **more), 0),
    "clusterings": (lambda **more: plotting.clusterings(EVIDENCE.consistency, names=NAMES, **more), 0),
    "tracking": (lambda **more: plotting.tracking(LEVELS, **more), 0),
    "clustree": (lambda **more: plotting.clustree(LEVELS, **more), 0),
    "criterion": (lambda **more: plotting.criterion(CHOICE, **more), 0),
    "score": (lambda **more: plotting.criterion(CHOICE, "score", **more), 3),
    "consensus_matrix": (lambda **more: plotting.consensus_matrix(CHOICE, **more), 0),
    "label_strips": (lambda **more: plotting.label_strips(ALIGNED, **more), 0),
    "membership_bars": (lambda **more: plotting.membership_bars(ALIGNED, **more), 0),
}
COMPARISON = ge.compare(LABELS, K, methods=["eac", "lwea", "lwgp", "hbgf"])


def visible_texts(figure):
    """Return the boxes of all texts that a completely drawn picture shows, as a list of pairs of text and box."""
    from matplotlib.axis import Axis
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure).draw()
    hidden = set()  # ticks beyond the limits of an axis, which are not drawn
    for axis in figure.findobj(Axis):
        shown = {id(tick) for tick in axis._update_ticks()}
        hidden |= {id(tick.label1) for tick in [*axis.majorTicks, *axis.minorTicks] if id(tick) not in shown}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text() and id(text) not in hidden]
    return [(text, text.get_window_extent()) for text in texts]


@pytest.mark.parametrize("size", [None, COLUMN], ids=["by default", "in a column"])
@pytest.mark.parametrize("name", PICTURES)
def test_texts_are_inside_apart_and_legible(name, size):
    from matplotlib.figure import Figure

    draw, n_entries = PICTURES[name]
    with for_files():
        ax = draw() if size is None else draw(ax=Figure(figsize=size, dpi=150, layout="constrained").subplots())
    figure, texts = ax.figure, visible_texts(ax.figure)
    width, height = figure.canvas.get_width_height()
    for text, box in texts:
        assert min(box.x0, box.y0, width - box.x1, height - box.y1) >= -1, f"{text.get_text()!r} is cut off"
        assert text.get_fontsize() >= 5
    for (a, box), (b, other) in combinations(texts, 2):
        common = box.intersection(box, other)
        assert common is None or min(common.width, common.height) <= 2, f"{a.get_text()!r} overlaps {b.get_text()!r}"
    legend = ax.get_legend()
    assert n_entries == (0 if legend is None else len(legend.get_texts()))


def contrast(color, ground):
    low, high = sorted((luminance(color), luminance(ground)))
    return (high + 0.05) / (low + 0.05)


def test_numbers_in_cells_have_contrast():
    from matplotlib import colormaps

    for value in np.linspace(0, 1, 101):
        ground = colormaps["Blues"](value)
        assert contrast(ink_on(ground), ground) >= LEAST_CONTRAST
