"""Maps show the domain and the uncertainty of every object at its place."""

import math
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import refused, structured_labels

import gpuens as ge
from gpuens import plotting
from gpuens.plotting.drawing import color_clusters, for_files

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

RNG = np.random.default_rng(0)
XY = RNG.random((120, 2)) * [30, 20]
LABELS = (XY[:, 0] // 10).astype(int)
EST = ge.EM(3).fit(structured_labels(120, 5, 3, noise=0.3, seed=1)[0])
MAPS = {
    "domains": lambda places=XY, **more: plotting.domains(LABELS, places, **more),
    "uncertainty": lambda places=XY, **more: plotting.uncertainty(EST, places, **more),
}


@pytest.fixture(autouse=True)
def apart():
    with for_files():
        yield


def points(ax):
    """Return the places, colours and areas of the points of a map, the first of which is drawn first."""
    (drawn,) = ax.collections
    xy = np.asarray(drawn.get_offsets())
    return xy, np.broadcast_to(drawn.get_facecolors()[:, :3], (len(xy), 3)), drawn.get_sizes()


def at(xy):
    """Return the number of the object at each place."""
    return np.abs(xy[:, None] - XY).sum(axis=2).argmin(axis=1)


def literal_entropies(membership):
    k = membership.shape[1]
    return [-sum(q * math.log(q) for q in row if q > 0) / math.log(k) for row in membership.tolist()]


def test_every_object_has_the_colour_of_its_domain_at_its_place():
    labels = np.where(np.arange(120) % 7 == 0, -1, LABELS)
    ax = plotting.domains(labels, XY)
    xy, colors, _ = points(ax)
    assert sorted(at(xy)) == [*range(120)]
    np.testing.assert_allclose(colors, color_clusters(range(3))[labels[at(xy)]])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2", "no label"]
    for mark, color in zip(ax.get_legend().get_lines(), color_clusters(range(3)), strict=True):
        np.testing.assert_allclose(mark.get_color(), color)
    assert ax.get_title() == "3 domains of 120 objects"
    assert ax.get_aspect() == 1.0


@pytest.mark.parametrize("draw", MAPS.values(), ids=MAPS)
def test_y_grows_downwards_unless_said(draw):
    assert draw().yaxis_inverted()
    assert not draw(y_down=False).yaxis_inverted()
    assert not draw().xaxis_inverted()


def test_names_match_labels_and_places():
    order, names = RNG.permutation(120), [f"cell {i}" for i in range(120)]
    places = pd.DataFrame(XY, index=names, columns=["x", "y"]).iloc[order]
    xy, colors, _ = points(plotting.domains(pd.Series(np.array(list("xyz"))[LABELS], index=names), places))
    np.testing.assert_allclose(colors, color_clusters(range(3))[LABELS[at(xy)]])


def test_uncertainty_is_the_entropy_of_the_memberships():
    expected = literal_entropies(np.asarray(EST.membership_))
    assert max(expected) > 0.3
    ax = plotting.uncertainty(EST, XY)
    xy, _, _ = points(ax)
    values = np.asarray(ax.collections[0].get_array())
    np.testing.assert_allclose(values, np.array(expected)[at(xy)], atol=1e-12)
    assert (np.diff(values) >= 0).all()  # the most uncertain objects are on top
    low, high = ax.collections[0].get_clim()
    assert low == 0
    assert high == pytest.approx(np.quantile(expected, 0.98))


def test_a_grid_is_an_image():
    image = plotting.domains(LABELS, shape=(10, 12)).images[0]
    np.testing.assert_allclose(image.get_array(), color_clusters(range(3))[LABELS.reshape(10, 12)])
    assert image.get_extent() == [-0.5, 11.5, 9.5, -0.5]
    image = plotting.uncertainty(EST, shape=(10, 12)).images[0]
    np.testing.assert_allclose(image.get_array().ravel(), literal_entropies(np.asarray(EST.membership_)), atol=1e-12)


def test_large_maps_are_drawn_in_part(sizes):
    sizes("plotting.places", MOST_POINTS=30, MOST_PIXELS=4, RASTERIZED=25)
    ax = plotting.domains(LABELS, XY)
    xy, _, _ = points(ax)
    assert len(xy) == 30
    np.testing.assert_allclose(np.bincount(LABELS[at(xy)]), np.bincount(LABELS) / 4, atol=1)
    assert ax.collections[0].get_rasterized()
    assert not plotting.domains(LABELS[:20], XY[:20]).collections[0].get_rasterized()
    image = plotting.domains(LABELS, shape=(10, 12)).images[0]
    np.testing.assert_allclose(image.get_array(), color_clusters(range(3))[LABELS.reshape(10, 12)[::3, ::3]])
    assert image.get_extent() == [-0.5, 11.5, 9.5, -0.5]


def test_points_are_smaller_where_more_objects_share_a_place():
    areas = [points(plotting.domains(np.zeros(n), RNG.random((n, 2))))[2].max() for n in (2000, 10_000)]
    assert 120 > areas[0] > 4 * areas[1]
    far = np.repeat([0.0, 100.0], 1000)[:, None] * [1, 0]  # two slides; the gap between them holds no objects
    assert points(plotting.domains(np.zeros(2000), RNG.random((2000, 2)) + far))[2].max() < areas[0] / 100
    assert points(plotting.domains([0, 1], [[3, 3], [3, 3]]))[2].max() > 0


@pytest.mark.parametrize("k", [1, 20, 40, 41])
def test_the_legend_stays_beside_the_map(k):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    labels = np.array([f"domain {i} with a $very_long name" for i in np.arange(120) % k])
    ax = plotting.domains(labels, XY)
    canvas, legend = FigureCanvasAgg(ax.figure), ax.get_legend()
    canvas.draw()
    width, height = canvas.get_width_height()
    if k > 40:
        assert legend is None
        return
    boxes = [text.get_window_extent() for text in legend.get_texts()]
    assert len(boxes) == k
    assert all(box.x0 >= ax.get_window_extent().x1 and box.x1 <= width and box.y0 >= 0 for box in boxes)
    assert all(box.y1 <= height for box in boxes)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.parametrize("draw", MAPS.values(), ids=MAPS)
def test_axes_are_used_if_given_and_refused_if_none(draw, monkeypatch):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert draw(ax=ax) is ax
    refused(lambda: draw(ax=3), TypeError, "ax must be")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pictures need matplotlib"):
        draw()


@pytest.mark.parametrize("draw", MAPS.values(), ids=MAPS)
def test_other_places_are_refused(draw):
    refused(lambda: draw(None), TypeError, "coordinates or shape", "neither")
    refused(lambda: draw(shape=(10, 12)), TypeError, "coordinates or shape", "both")
    refused(lambda: draw(None, shape=(10, 10)), ValueError, "shape is 10 × 10", "120")
    refused(lambda: draw(None, shape=120), TypeError, "shape must be (height, width)")
    refused(lambda: draw(XY[:5]), ValueError, "coordinates are of 5", "120")
    refused(lambda: draw(XY[:, :1]), ValueError, "two columns")
    refused(lambda: draw(np.where(np.arange(240).reshape(120, 2) == 7, np.nan, XY)), ValueError, "object 3")


def test_estimators_without_memberships_are_refused():
    labels = structured_labels(120, 5, 3, seed=1)[0]
    est = ge.Spatial(3, refine=False).fit(labels, graph=ge.Graph.grid((10, 12)))
    assert plotting.domains(est, shape=(10, 12)).get_title() == "3 domains of 120 objects"
    for wrong in (est, LABELS):
        refused(lambda wrong=wrong: plotting.uncertainty(wrong, XY), TypeError, "estimator must be", "membership_")
