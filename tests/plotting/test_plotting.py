"""Pictures show the computed values, in a readable order."""

import re
import sys
import warnings
from itertools import pairwise

import numpy as np
import pytest
from conftest import refused, structured_labels

from gpuens import Ensemble, align, choose_k, plotting
from gpuens.evidence import Evidence, consistency
from gpuens.methods import EAC, ECRMC, HBGF, LWEA
from gpuens.plotting import drawing
from gpuens.plotting.drawing import for_files
from gpuens.reduction import CATree

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

LABELS, TRUTH = structured_labels(150, 8, 5, noise=0.1, missing=0.05, seed=2)
ENS = Ensemble(LABELS)
EST = LWEA(5).fit(ENS)
TREE = CATree().grow(ENS)
EVIDENCE = EST.evidence()
PAIRS = EVIDENCE.pairs()
CHOICE = choose_k(LABELS, ks=range(2, 7))
ALIGNED = align(LABELS, TRUTH)
LEVELS = {k: EST.reduction_.expand(EST.dendrogram_.cut(k)) for k in range(2, 9)}


@pytest.fixture(autouse=True)
def apart(request):
    """Draw each picture into a figure without pyplot, as reports do."""
    if "pyplot" in request.fixturenames:
        yield
    else:
        with for_files():
            yield


@pytest.fixture
def pyplot():
    """Return pyplot without open figures."""
    from matplotlib import pyplot

    pyplot.close("all")
    return pyplot


def literal_coassociation(labels):
    """Return, for each pair of objects, the share of the clusterings that put the two objects together."""
    n, m = labels.shape
    return np.array(
        [[sum(labels[i, c] == labels[j, c] >= 0 for c in range(m)) / m for j in range(n)] for i in range(n)]
    )


def blocks(ax):
    """Return the first position and the width of each frame on the diagonal of a heatmap."""
    corners = np.array([path.get_extents().get_points() for path in ax.collections[0].get_paths()])
    np.testing.assert_allclose(corners[:, :, 0], corners[:, :, 1])  # the frames are squares on the diagonal
    return np.rint(corners[:, 0, 0] + 0.5).astype(int), np.rint(np.diff(corners[:, :, 0]).ravel()).astype(int)


# --- heatmap ----------------------------------------------------------------------------------------------------------


def test_heatmap_shows_the_matrix_in_one_piece_for_each_cluster():
    ax = plotting.coassociation_heatmap(ENS, EST.labels_)
    picture = np.asarray(ax.images[0].get_array())
    whole = literal_coassociation(LABELS)
    np.testing.assert_allclose(np.sort(picture, axis=None), np.sort(whole, axis=None))
    starts, widths = blocks(ax)
    assert sorted(widths) == sorted(np.bincount(EST.labels_))
    np.testing.assert_array_equal(starts, np.cumsum(widths) - widths)
    for label, start, width in zip(ax.get_xticklabels(), starts, widths, strict=True):
        inside = np.sort(picture[start : start + width, start : start + width], axis=None)
        members = EST.labels_ == int(label.get_text())
        np.testing.assert_allclose(inside, np.sort(whole[np.ix_(members, members)], axis=None))
    assert ax.images[0].get_clim() == (0, 1)
    assert ax.get_title() == "Co-association of 150 objects in 8 clusterings"
    assert ax.get_ylabel().startswith("150 objects")


def test_similar_objects_stand_side_by_side():
    ax = plotting.coassociation_heatmap(ENS, EST.labels_)
    picture = np.asarray(ax.images[0].get_array())
    by_cluster = np.argsort(EST.labels_, kind="stable")
    unordered = literal_coassociation(LABELS)[np.ix_(by_cluster, by_cluster)]
    assert np.diagonal(picture, 1).mean() > np.diagonal(unordered, 1).mean() + 0.1


def test_of_many_objects_a_sample_is_drawn_with_every_cluster_in_it():
    labels, truth = structured_labels(3000, 6, 6, seed=3)
    ax = plotting.coassociation_heatmap(labels, truth, max_objects=200)
    assert ax.images[0].get_array().shape == (200, 200)
    _, widths = blocks(ax)
    expected = np.bincount(truth) * 200 / 3000
    by_name = dict(zip([int(tick.get_text()) for tick in ax.get_yticklabels()], widths, strict=True))
    assert all(abs(by_name[c] - share) <= 1 for c, share in enumerate(expected))
    assert ax.get_ylabel().startswith("200 of 3,000 objects")


def test_heatmap_takes_names_of_clusters_and_hides_those_too_thin_to_read():
    names = np.where(TRUTH == 0, "rare", "common").astype(object)
    names[TRUTH == 1] = "middling"
    names[:2] = "speck"
    ax = plotting.coassociation_heatmap(ENS, names.astype(str))
    assert sorted(tick.get_text() for tick in ax.get_xticklabels()) == ["common", "middling", "rare"]
    assert len(ax.collections[0].get_paths()) == 4


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("n", [1, 2])
def test_heatmap_of_next_to_nothing(n):
    ax = plotting.coassociation_heatmap([list("ab")[:n]], np.zeros(n, int))
    assert ax.images[0].get_array().tolist() == np.eye(n).tolist()


def test_heatmap_refuses():
    with pytest.raises(ValueError, match=r"labels must hold one value for each of the 150 row"):
        plotting.coassociation_heatmap(ENS, EST.labels_[:-1])
    with pytest.raises(ValueError, match="max_objects must be at least 1, but is 0"):
        plotting.coassociation_heatmap(ENS, EST.labels_, max_objects=0)
    with pytest.raises(ValueError, match="labels must be 1-D"):
        plotting.coassociation_heatmap(ENS, LABELS)
    refused(lambda: plotting.coassociation_heatmap(ENS), TypeError, "labels are missing", "a fitted estimator")


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_sizes_are_counted_largest_first():
    ax = plotting.sizes(np.repeat([3, 0, 7], [5, 20, 11]))
    assert [bar.get_height() for bar in ax.patches] == [20, 11, 5]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "7", "3"]
    assert ax.get_title() == "Sizes of 3 clusters of 36 objects"
    assert ax.get_yscale() == "linear"


def test_very_many_sizes_can_be_read():
    ax = plotting.sizes(np.arange(200))
    assert len(ax.patches) == 200
    assert ax.get_xlabel() == "clusters, the largest first"


# --- trees ------------------------------------------------------------------------------------------------------------


def heights(ax):
    """Return the heights of the merges that a dendrogram shows."""
    return sorted(path[1, 1] for lines in ax.collections for path in lines.get_segments())


@pytest.mark.parametrize(
    ("estimator", "p"),
    [(EST, 2), (EST, 30), (EAC(4).fit(ENS), 7), (EAC(4).fit(ENS), 10_000), (EAC().fit(ENS), 2), (EAC().fit(ENS), 30),
     (EAC(3, linkage="single").fit(ENS), 7), (EAC(3, linkage="single").fit(ENS), 10_000)],
)  # fmt: skip
def test_dendrogram_shows_the_last_merges_and_every_object(estimator, p):
    ax = plotting.dendrogram(estimator, p=p)
    tree = estimator.dendrogram_
    branches = min(p, tree.n_leaves)
    np.testing.assert_allclose(heights(ax), np.sort(1 - tree.similarities[-(branches - 1) :]))
    counts = [int(tick.get_text()) for tick in ax.get_xticklabels()]
    assert sorted(counts) == sorted(np.bincount(tree.cut(branches)[estimator.reduction_.row_of]))
    assert len(ax.lines) == (1 < estimator.n_clusters_ <= branches)


def test_the_line_is_where_the_clusters_are_cut():
    ax = plotting.dendrogram(EST, p=20)
    (line,) = ax.lines
    assert sum(height > line.get_ydata()[0] for height in heights(ax)) == EST.n_clusters_ - 1


def test_the_line_of_clusters_of_a_smallest_size_is_where_the_tree_is_cut():
    labels = LABELS.copy()
    labels[:4] = 90 + np.arange(4)[:, None]
    est = LWEA(3, min_size=4).fit(labels)
    assert est.n_branches_ > 6
    ax = plotting.dendrogram(est, p=20)
    (line,) = ax.lines
    assert sum(height > line.get_ydata()[0] for height in heights(ax)) == est.n_branches_ - 1
    assert f"3 clusters\nin {est.n_branches_} branches" in [text.get_text() for text in ax.texts]


def test_dendrogram_joins_what_the_method_joined():
    # three branches of 2, 3 and 1 objects; the second and the third branch are the most similar
    est = EAC(2).fit([[0, 0, 1, 1, 1, 2], [0, 0, 1, 1, 1, 1]])
    ax = plotting.dendrogram(est)
    assert [tick.get_text() for tick in ax.get_xticklabels()] in (["2", "1", "3"], ["2", "3", "1"])
    np.testing.assert_allclose(heights(ax), [0.5, 1.0])


def test_distances_below_zero_stand_at_the_axis_as_they_are():
    est = ECRMC(3).fit(ENS, features=np.random.default_rng(0).normal(size=(ENS.n_objects, 3)))
    similarities = est.dendrogram_.similarities
    assert similarities.max() > 1
    ax = plotting.dendrogram(est, p=10_000)
    (low, *_, high), (least, *_, most) = ax.get_yticks(), [float(tick.get_text()) for tick in ax.get_yticklabels()]
    np.testing.assert_allclose(
        least + (np.array(heights(ax)) - low) * (most - least) / (high - low), np.sort(1 - similarities), atol=1e-9
    )


def test_dendrogram_of_one_row_says_so():
    with pytest.warns(UserWarning, match="constant"):
        est = EAC(1).fit(np.zeros((4, 2), int))
    ax = plotting.dendrogram(est)
    assert "nothing to merge" in ax.get_title()
    assert len(plotting.lifetimes(est).patches) == 0


@pytest.mark.parametrize("estimator", [LWEA().fit(ENS), EAC().fit(ENS), EAC().fit(np.unique(LABELS, axis=0))])
def test_lifetimes_peak_where_the_method_cuts(estimator):
    ax = plotting.lifetimes(estimator, p=10_000)
    bars = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in ax.patches}
    assert list(bars) == list(range(2, len(bars) + 2))
    assert max(bars, key=bars.get) == estimator.n_clusters_
    for k in (2, 3, 10):
        rising = [1 - similarity for similarity in estimator.dendrogram_.similarities]
        assert bars[k] == pytest.approx(rising[-(k - 1)] - rising[-k])
    assert ax.lines[0].get_xdata()[0] == estimator.n_clusters_
    assert len(plotting.lifetimes(estimator, p=6).patches) == 5


@pytest.mark.parametrize("draw", [plotting.dendrogram, plotting.lifetimes])
def test_only_fitted_linkage_methods_have_trees(draw):
    for other in (LWEA(3), HBGF(5).fit(ENS), LABELS, LWEA):
        with pytest.raises(TypeError, match="estimator must be a fitted linkage method"):
            draw(other)
    with pytest.raises(ValueError, match="p must be at least 2, but is 1"):
        draw(EST, p=1)


# --- CA-trees ---------------------------------------------------------------------------------------------------------


def markers(ax):
    """Return {label: (heights, areas)} of the nodes in a picture of a CA-tree.

    Nodes that are not selected have the label "".
    """
    found = {}
    for points in ax.collections[1:]:
        label = points.get_label() if not points.get_label().startswith("_") else ""
        found[label] = points.get_offsets()[:, 1].tolist(), points.get_sizes()
    return found


def test_ca_tree_shows_every_node_at_its_radius_and_its_way_up():
    ax = plotting.ca_tree(TREE, min_objects=1)
    heights, areas = markers(ax)[""]
    assert sorted(heights) == sorted(TREE.radii)
    np.testing.assert_array_equal(np.argsort(np.argsort(areas)), np.argsort(np.argsort(TREE.counts)))
    ways = ax.collections[0].get_segments()
    assert len(ways) == len(TREE) - 1
    ends = sorted((way[0, 1], way[-1, 1]) for way in ways)
    assert ends == sorted(zip(TREE.radii[:-1], TREE.radii[TREE.parents[:-1]], strict=True))
    top = ax.collections[1].get_offsets()[-1]
    assert sum(np.array_equal(way[-1], top) for way in ways) == np.count_nonzero(TREE.parents == len(TREE) - 1)
    assert not ax.lines
    assert ax.get_title() == "CA-tree of 150 objects"


def test_nodes_stand_in_the_order_of_their_leaves_and_above_their_children():
    ax = plotting.ca_tree(TREE, min_objects=1)
    x = ax.collections[1].get_offsets()[:, 0].data
    np.testing.assert_array_equal(x[: TREE.n_leaves], np.arange(TREE.n_leaves))
    for node in range(TREE.n_leaves, len(TREE)):
        children = x[TREE.parents == node]
        assert x[node] == (children.min() + children.max()) / 2


@pytest.mark.parametrize(("tau", "gamma"), [(0.0, 1.0), (0.25, 0.5), (0.5, 0.9), (0.7, 1.0), (1.0, 0.5)])
def test_a_cut_is_marked_and_its_line_parts_what_is_taken_from_what_is_above(tau, gamma):
    ax = plotting.ca_tree(TREE, tau, gamma, min_objects=1)
    found, taken, kept = markers(ax), TREE.cut(tau), TREE.kept(tau, gamma)
    whole = len(taken) == len(kept)
    assert sorted(found["taken" if whole else "kept"][0]) == sorted(TREE.radii[kept])
    left_out = np.setdiff1d(taken, kept)
    assert sorted(found.get("left out", ([],))[0]) == sorted(TREE.radii[left_out])
    (line,) = ax.lines
    height = line.get_ydata()[0]
    assert TREE.radii[taken].max() < height
    parents = TREE.parents[taken]
    assert all(TREE.radii[parents[parents >= 0]] > height)
    tail = "" if whole else f", {len(kept)} kept"
    assert ax.get_title() == f"CA-tree of 150 objects: {len(taken)} nodes at τ = {tau:g}{tail}"


def test_of_a_large_tree_the_largest_nodes_are_drawn():
    tree = CATree().grow(structured_labels(3000, 8, 6, seed=4)[0])
    assert len(tree) > 1000
    ax = plotting.ca_tree(tree, 0.5)
    shown = sum(len(heights) for heights, _ in markers(ax).values())
    assert 0 < shown <= 300
    assert ax.get_xlabel().startswith(f"the {shown} nodes of ")
    few = plotting.ca_tree(tree, min_objects=500)
    assert len(markers(few)[""][0]) == np.count_nonzero(tree.counts >= 500)
    alone = plotting.ca_tree(tree, min_objects=5000)
    assert markers(alone)[""][0] == [tree.radii[-1]]


def test_ca_tree_of_one_row():
    with pytest.warns(UserWarning, match="constant"):
        tree = CATree().grow(np.zeros((4, 2), int))
    ax = plotting.ca_tree(tree, 0.4)
    assert markers(ax)["taken"][0] == [0]


def test_ca_tree_refuses():
    for parameters, message in (
        ({"tau": 1.5}, "tau must be"),
        ({"tau": 0.4, "gamma": 0.0}, "gamma must be"),
        ({"min_objects": 0}, "min_objects must be at least 1, but is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            plotting.ca_tree(TREE, **parameters)


# --- evidence ---------------------------------------------------------------------------------------------------------


def test_cdf_is_that_of_the_pairs():
    at = np.linspace(0, 1, 41) + 1e-6
    lines = {line.get_label(): line.get_data() for line in plotting.cdf(PAIRS).lines}
    for (x, y), of in zip(lines.values(), (PAIRS, PAIRS.chance()), strict=True):
        np.testing.assert_allclose(y[np.searchsorted(x, at, side="right") - 1], of.cdf(at), atol=1e-12)
    several = plotting.cdf({2: PAIRS, 3: PAIRS})
    assert [text.get_text() for text in several.get_legend().get_texts()] == ["k = 2", "k = 3"]


def test_item_consensus_is_drawn_by_its_quantiles():
    ax = plotting.item_consensus(EVIDENCE)
    order = np.argsort(-np.bincount(EST.labels_), kind="stable")
    assert [int(tick.get_text()) for tick in ax.get_xticklabels()] == order.tolist()
    for cluster, bar in zip(order, ax.patches, strict=True):
        own = np.sort(EVIDENCE.objects.item_consensus[EST.labels_ == cluster])
        lower, upper = own[np.rint((len(own) - 1) * np.array([0.25, 0.75])).astype(int)]
        np.testing.assert_allclose([bar.get_y(), bar.get_y() + bar.get_height()], [lower, upper])


@pytest.mark.parametrize("steps", [600, 7])
def test_silhouettes_are_hills(steps, sizes):
    sizes("plotting.evidence", STEPS=steps)
    ax = plotting.silhouettes(EVIDENCE)
    silhouettes = EVIDENCE.objects.silhouette
    np.testing.assert_allclose(ax.lines[0].get_xdata()[0], silhouettes.mean())
    order = np.argsort(-np.bincount(EST.labels_), kind="stable")
    for cluster, hill in zip(order, ax.patches, strict=True):
        own = np.sort(silhouettes[EST.labels_ == cluster])[::-1]
        values, edges, _ = hill.get_data()
        assert edges[-1] - edges[0] == len(own)
        np.testing.assert_allclose(values, own[(edges[:-1] - edges[0]).astype(int)])
        assert len(values) == min(steps, len(own))


def test_clusters_and_clusterings_are_drawn_as_they_are():
    clusters = EVIDENCE.clusters
    ax = plotting.cluster_consensus(EVIDENCE)
    order = [int(tick.get_text()) for tick in ax.get_xticklabels()]
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], clusters.consensus[order])
    np.testing.assert_allclose(ax.collections[0].get_offsets()[:, 1], clusters.stability[order])
    ax = plotting.between_clusters(EVIDENCE)
    order = [int(tick.get_text()) for tick in ax.get_yticklabels()]
    np.testing.assert_allclose(ax.images[0].get_array(), clusters.between[np.ix_(order, order)])
    names = [f"run {m}" for m in range(8)]
    ax = plotting.clusterings(EVIDENCE.consistency, "ari", names=names)
    order = [names.index(tick.get_text()) for tick in ax.get_yticklabels()]
    np.testing.assert_allclose(ax.images[0].get_array(), EVIDENCE.consistency.ari[np.ix_(order, order)])


def parts_of(k):
    """Return, for each of k clusters, the number of its parts at the next level."""
    return [len(np.unique(LEVELS[k + 1][LEVELS[k] == cluster])) for cluster in range(k)]


def test_a_colour_that_stays_is_a_cluster_that_holds_together():
    ax = plotting.tracking(LEVELS)
    rows = np.asarray(ax.images[0].get_array())
    assert rows.shape == (len(LEVELS), len(EST.labels_), 3)
    for k, before, after in zip(LEVELS, rows[:-1], rows[1:], strict=False):
        _, sizes = np.unique(np.column_stack([LEVELS[k], LEVELS[k + 1]]), axis=0, return_counts=True)
        divided = [sizes_of for sizes_of in np.split(sizes, np.cumsum(parts_of(k))[:-1]) if len(sizes_of) == 2]
        assert (before != after).any(axis=1).sum() == divided[0].min()  # the larger part keeps the colour
    several = np.unique(rows[3].reshape(-1, 3), axis=0)
    assert len(several) == len(np.unique(LEVELS[5]))


def test_clusters_of_a_level_have_the_colours_of_their_numbers():
    for k in (2, 5, 8):
        rows = np.asarray(plotting.tracking(LEVELS, reference=k).images[0].get_array())
        expected = np.sort(drawing.color_clusters(range(k))[LEVELS[k]], axis=0)
        np.testing.assert_array_equal(np.sort(rows[list(LEVELS).index(k)], axis=0), expected)
        assert len(np.unique(rows[0], axis=0)) == 2  # earlier levels take their colours from later ones
    refused(lambda: plotting.tracking(LEVELS, reference=99), ValueError, "reference", "99")


@pytest.mark.parametrize("draw", ["tracking", "clustree"])
def test_names_of_levels_are_literal(draw):
    levels = {"$\\bad{$": [0, 0, 0, 1], "a$x_1$\n" + 200 * "b": [0, 1, 2, 2]}
    ax = getattr(plotting, draw)(levels)
    assert outside(ax) == {}
    assert [text.get_text()[:6] for text in ax.get_yticklabels()] == ["$\\bad{", "a$x_1$"]


def test_names_that_would_touch_are_rotated():
    for names, degrees in (([f"leiden_res_{i}" for i in range(5)], 90), ("abcde", 0)):
        ax = plotting.clusterings(consistency(LABELS[:, :5]), names=list(names))
        laid_out(ax)
        assert {text.get_rotation() for text in ax.get_xticklabels()} == {degrees}


def test_clustree_has_an_edge_for_every_way_that_objects_take():
    ax = plotting.clustree(LEVELS)
    ways = 0
    for k in list(LEVELS)[:-1]:
        pairs, counts = np.unique(np.column_stack([LEVELS[k], LEVELS[k + 1]]), axis=0, return_counts=True)
        ways += np.count_nonzero(counts >= 0.05 * np.bincount(LEVELS[k + 1])[pairs[:, 1]])
    edges, clusters = ax.collections
    assert len(edges.get_segments()) == ways
    assert len(clusters.get_offsets()) == sum(LEVELS)
    # in a dendrogram, each cluster is a part of one larger cluster
    np.testing.assert_allclose(edges.get_linewidths(), 3.0)


def test_a_criterion_is_drawn_for_each_number_of_clusters():
    for name in ("silhouette", "support"):
        ax = plotting.criterion(CHOICE, name)
        curve, suggested, *rings = ax.lines
        named = dict(zip([CHOICE.suggested, *CHOICE.runners_up], ["suggested", "second"], strict=False))
        assert [ring.get_xdata()[0] for ring in rings] == list(named)
        assert [text.get_text() for text in ax.texts] == [f"{k}: {text}" for k, text in named.items()]
        np.testing.assert_array_equal(curve.get_xydata(), CHOICE.table[name].reset_index().to_numpy())
        assert suggested.get_xdata()[0] == CHOICE.suggested
    texts = [text.get_text() for text in plotting.criterion(CHOICE, "score").texts]
    assert any(text.startswith(f"{CHOICE.table.support.idxmax()}: ") for text in texts)
    refused(lambda: plotting.criterion(CHOICE, "pac"), ValueError, "name must be one of", "'support'", "not 'pac'")
    refused(lambda: plotting.criterion(EST), TypeError, "choice must be what ge.choose_k(labels) returns, not LWEA")


@pytest.mark.parametrize(("n", "k"), [(100, 2), pytest.param(60_000, 200, marks=pytest.mark.thorough)])
def test_evidence_of_few_and_of_many_stays_in_the_picture(n, k):
    labels = np.random.default_rng(0).integers(0, k, n)
    ens = np.where(np.random.default_rng(1).random((n, 6)) < 0.3, np.roll(labels, 7)[:, None], labels[:, None])
    evidence = Evidence(ens, labels)
    levels = {k: labels, 2 * k: 2 * labels + ens[:, 0] % 2}
    for ax in (
        plotting.cdf(evidence.pairs(exact=False, n_pairs=1000)), plotting.item_consensus(evidence),
        plotting.cluster_consensus(evidence), plotting.silhouettes(evidence), plotting.between_clusters(evidence),
        plotting.tracking(levels), plotting.clustree(levels),
    ):  # fmt: skip
        assert outside(ax) == {}


def test_pictures_of_evidence_refuse():
    for draw in (plotting.item_consensus, plotting.cluster_consensus, plotting.silhouettes, plotting.between_clusters):
        refused(lambda draw=draw: draw(EST), TypeError, "evidence must be what estimator.evidence() returns, not LWEA")
    refused(lambda: plotting.cdf(EVIDENCE), TypeError, "pairs must be", "not Evidence")
    refused(lambda: plotting.cdf(PAIRS, lower=2), ValueError, "lower")
    refused(lambda: plotting.clusterings(EVIDENCE), TypeError, "consistency must be", "not Evidence")
    refused(lambda: plotting.clusterings(EVIDENCE.consistency, "mi"), ValueError, "measure", "'mi'")
    refused(lambda: plotting.clusterings(EVIDENCE.consistency, names=["a"]), ValueError, "names")
    refused(lambda: plotting.silhouettes(Evidence(ENS, np.zeros(150, int))), ValueError, "one cluster")
    refused(lambda: plotting.tracking([LEVELS]), TypeError, "levels must be a dict", "not list")
    refused(lambda: plotting.clustree({}), TypeError, "levels must be a dict")
    refused(lambda: plotting.tracking({2: EST.labels_, 3: EST.labels_[:5]}), ValueError, "levels[3]")


# --- all pictures -----------------------------------------------------------------------------------------------------

ALL = {
    "heatmap": lambda **more: plotting.coassociation_heatmap(ENS, EST.labels_, **more),
    "sizes": lambda **more: plotting.sizes(EST.labels_, **more),
    "dendrogram": lambda **more: plotting.dendrogram(EST, **more),
    "lifetimes": lambda **more: plotting.lifetimes(EST, **more),
    "ca_tree": lambda **more: plotting.ca_tree(TREE, 0.4, **more),
    "cdf": lambda **more: plotting.cdf(PAIRS, **more),
    "item_consensus": lambda **more: plotting.item_consensus(EVIDENCE, **more),
    "cluster_consensus": lambda **more: plotting.cluster_consensus(EVIDENCE, **more),
    "silhouettes": lambda **more: plotting.silhouettes(EVIDENCE, **more),
    "between_clusters": lambda **more: plotting.between_clusters(EVIDENCE, **more),
    "clusterings": lambda **more: plotting.clusterings(EVIDENCE.consistency, **more),
    "tracking": lambda **more: plotting.tracking(LEVELS, **more),
    "clustree": lambda **more: plotting.clustree(LEVELS, **more),
    "criterion": lambda **more: plotting.criterion(CHOICE, **more),
    "label_strips": lambda **more: plotting.label_strips(ALIGNED, **more),
    "profile": lambda **more: plotting.profile([[1.0, 2.0], [2.0, 2.0], [8.0, 1.0]], [0, 0, 1], **more),
    "membership_bars": lambda **more: plotting.membership_bars(ALIGNED, **more),
}


@pytest.mark.parametrize("draw", ALL.values(), ids=ALL)
def test_axes_are_used_if_given_and_made_without_a_window_if_not(draw):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert draw(ax=ax) is ax
    before = sys.modules.get("matplotlib.pyplot")
    made = draw()
    assert made.figure is not ax.figure
    assert all((made.get_title(), made.get_xlabel(), made.get_ylabel()))
    # pictures must not load pyplot, which would choose a backend and keep every figure
    assert sys.modules.get("matplotlib.pyplot") is before


@pytest.mark.parametrize("draw", ALL.values(), ids=ALL)
def test_without_matplotlib_one_sentence_says_what_to_install(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pictures need matplotlib.* install .*\[plot\]"):
        draw()


def test_what_is_no_tree_is_refused():
    for wrong in (CATree(), EST, EST.reduction_, LWEA, LWEA(2, reduction=CATree()), None):
        refused(lambda wrong=wrong: plotting.ca_tree(wrong), TypeError, "tree must be")


@pytest.mark.parametrize("draw", ALL.values(), ids=ALL)
def test_what_is_no_axes_is_refused(draw):
    refused(lambda: draw(ax=3), TypeError, "ax must be one of matplotlib's Axes", "3")


def test_a_tree_is_drawn_of_what_it_was_cut_for():
    expected = plotting.ca_tree(TREE, 0.5, 0.9)
    reduction = CATree(0.5, 0.9).reduce(ENS)
    for given in (
        reduction,
        EAC(3, reduction=CATree(0.5, 0.9)).fit(ENS),
        EAC(3, reduction="catree:0.5,gamma=0.9").fit(ENS),
    ):
        ax = plotting.ca_tree(given)
        assert ax.get_title() == expected.get_title()
        assert markers(ax)["kept"][0] == markers(expected)["kept"][0]
    assert plotting.ca_tree(reduction, 0.25, 1.0).get_title() == plotting.ca_tree(TREE, 0.25).get_title()


# --- readable pictures ------------------------------------------------------------------------------------------------

LONG = "a clustering $with \\a{{$ very_long^name,\nas the file of the hospital has it, of 2026-11-22, at resolution {}"


def laid_out(ax):
    """Return the width and height in pixels of a completely drawn picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    return canvas.get_width_height()


def outside(ax, texts=None):
    """Return the texts that extend beyond the edges of a picture, by default among all its texts."""
    width, height = laid_out(ax)
    if texts is None:
        shown = (thing for thing in ax.figure.findobj() if hasattr(thing, "get_text") and thing.get_visible())
        number = re.compile("−?[0-9.]+")  # skip numbers: they may be ticks outside the axis, which are not drawn
        texts = [text for text in shown if not number.fullmatch(text.get_text())]
    boxes = {text.get_text(): text.get_window_extent() for text in texts if text.get_text()}
    assert boxes
    return {
        text: box.extents.round()
        for text, box in boxes.items()
        if min(box.x0, box.y0, width - box.x1, height - box.y1) < -1
    }


@pytest.fixture(scope="module")
def unwieldy():
    """Return an SCEC fit with names of clusterings and clusters that are too long for a picture."""
    import pandas as pd

    from gpuens.methods import SCEC

    names = np.array([LONG.format(i) for i in range(LABELS.max() + 2)], dtype=object)
    frame = pd.DataFrame({LONG.format(m): names[column] for m, column in enumerate(LABELS.T)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit warns that it found fewer clusters
        return SCEC(30, n_init=1).fit(frame)


@pytest.mark.filterwarnings("ignore:found only .* of 30 clusters")
def test_names_of_any_length_stay_in_the_picture(unwieldy):
    names = np.array([LONG.format(i) for i in range(30)])
    many = np.arange(150) % 30
    few = np.arange(150) // 75
    for ax in (
        *(plotting.sizes(names[labels]) for labels in (many, few)),
        *(plotting.coassociation_heatmap(ENS, names[labels]) for labels in (many, few)),
        plotting.correspondence(unwieldy, 0),
        plotting.correspondence(unwieldy)[0],
    ):
        assert outside(ax) == {}


# --- pyplot -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", ALL.values(), ids=ALL)
def test_pictures_go_into_the_current_axes(draw, pyplot):
    """Pictures appear in a notebook, and plt.savefig writes them."""
    first = draw()
    assert first is pyplot.gca()
    assert len(pyplot.get_fignums()) == 1
    assert len(first.get_children()) > 10
    pyplot.close("all")
    figure, (left, right) = pyplot.subplots(1, 2)
    pyplot.sca(left)
    assert draw() is left
    assert draw(ax=right) is right
    assert pyplot.get_fignums() == [figure.number]


def test_pictures_of_several_panels_make_a_figure_of_their_own(pyplot, unwieldy):
    figure, ax = pyplot.subplots()
    for n, clustering in enumerate((0, None), 2):
        found = np.ravel(plotting.correspondence(unwieldy, clustering))
        assert found[0].figure is pyplot.gcf() is not figure
        assert len(pyplot.get_fignums()) == n
    assert len(ax.get_children()) == len(pyplot.Figure().subplots().get_children())


def test_pictures_for_files_stay_apart_from_pyplot(pyplot):
    with for_files():
        ax = plotting.sizes(TRUTH)
        assert plotting.sizes(TRUTH) is not ax
    assert pyplot.get_fignums() == []
    assert plotting.sizes(TRUTH) is pyplot.gca()


@pytest.mark.parametrize("p", [30, 60, 120])
def test_counts_below_a_dendrogram_can_be_read(p):
    """Counts are large enough and do not overlap; without enough room, a sentence replaces them."""
    from matplotlib.figure import Figure

    ax = plotting.dendrogram(EST, p=p)
    laid_out(ax)
    boxes = [tick.get_window_extent() for tick in ax.get_xticklabels()]
    assert len(boxes) == p
    assert min(tick.get_fontsize() for tick in ax.get_xticklabels()) >= 7
    assert all(left.x1 <= right.x0 + 1 for left, right in pairwise(boxes))
    narrow = plotting.dendrogram(EST, p=p, ax=Figure(figsize=(2, 2), layout="constrained").subplots())
    assert len(narrow.get_xticks()) == 0
    assert narrow.get_xlabel().replace("\n", " ") == f"{p} branches, too many to write how many objects each has"


def test_each_cluster_of_a_dendrogram_has_a_colour_and_its_neighbours_have_others():
    from matplotlib.colors import to_hex

    ax = plotting.dendrogram(EST, p=40)
    cut = ax.lines[0].get_ydata()[0]
    by_height = [(way[1, 1], to_hex(lines.get_colors()[0])) for lines in ax.collections for way in lines.get_segments()]
    assert {color for height, color in by_height if height > cut} == {drawing.INK}
    below = {color for height, color in by_height if height < cut}
    assert below <= {to_hex(color) for color in drawing.color_clusters(range(5))} | {drawing.INK}
    assert len(below) > 1


def test_bars_are_as_long_as_their_numbers_say_and_say_them():
    ax = plotting.sizes(np.repeat([0, 1], [14_778, 2]))
    assert ax.get_yscale() == "linear"
    assert ax.get_ylim()[0] == 0
    assert [bar.get_height() for bar in ax.patches] == [14_778, 2]
    assert [text.get_text() for text in ax.texts] == ["14,778", "2"]


# --- a choice of the number of clusters -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own():
    """Return a choice of k from clusterings with k clusters each, computed on samples of the objects."""
    X = np.random.default_rng(0).normal(np.repeat([[0, 0], [9, 0], [0, 9]], 20, axis=0))
    return choose_k(features=X, ks=range(2, 6), n_clusterings=15, random_state=1)


@pytest.mark.parametrize("k", [2, 4])
def test_a_consensus_matrix_is_that_of_the_clusterings_in_blocks(k):
    ax = plotting.consensus_matrix(CHOICE, k)
    picture = np.asarray(ax.images[0].get_array())
    # only known labels count
    literal = np.array([[np.mean((a == b)[(a >= 0) & (b >= 0)]) for a in LABELS] for b in LABELS])
    np.testing.assert_allclose(np.sort(picture.ravel()), np.sort(np.nan_to_num(literal).ravel()), atol=1e-12)
    assert len(blocks(ax)[0]) == k
    assert ax.get_title() == f"Consensus of 150 objects in {k} clusters"


def test_many_objects_have_a_consensus_matrix_of_some(monkeypatch):
    """With many objects, the consensus matrix shows only some of them, so that no N × N matrix is computed."""
    labels, _ = structured_labels(3000, 5, 3, seed=1)
    found = choose_k(labels, ks=[2, 3])
    assert found.consensus[2] is found.consensus[3]
    ax = plotting.consensus_matrix(found)
    assert ax.images[0].get_array().shape == (500, 500)
    assert "500 of 3,000 objects" in ax.get_title()
    assert "500 objects" in plotting.cdf(found).get_title()


def test_a_choice_has_the_pairs_of_each_number(own):
    ax = plotting.cdf(own)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["k = 2", "k = 3, suggested", "k = 4", "k = 5"]
    for row, line in zip(own.rows, ax.lines, strict=True):
        found = own.consensus[row["k"]].pairs
        assert (found.pac(), found.area()) == (row["pac"], row["area"])
        np.testing.assert_allclose(line.get_ydata()[1:-1], found.cdf(np.sort(found.consensus)))


def test_the_four_pictures_of_a_choice(own, pyplot):
    for choice, name in ((own, "delta area"), (CHOICE, "score")):
        panels = choice.plot()
        titles = [ax.get_title() for ax in panels.ravel()]
        assert panels[0, 0].figure is pyplot.gcf()
        assert titles[0].endswith(f"in {choice.suggested} clusters")
        assert titles[1].startswith("Consensus of")
        assert titles[2].startswith(name)
        assert titles[3].startswith("The clusters of")
    assert own.plot(5)[0, 0].get_title() == "Consensus of 60 objects in 5 clusters"
    refused(lambda: own.plot(9), ValueError, "k=9", "2, 3, 4, 5")
    refused(lambda: plotting.consensus_matrix(EST), TypeError, "ge.choose_k(labels)")


def test_matrices_of_all_numbers_side_by_side(own):
    panels = plotting.consensus_matrices(own)
    assert [ax.get_title() for ax in panels] == ["2 clusters", "3 clusters, suggested", "4 clusters", "5 clusters"]
    assert all(ax.images[0].get_array().shape == (60, 60) for ax in panels)
