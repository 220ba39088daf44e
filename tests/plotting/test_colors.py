"""A cluster has one colour in all pictures, which colour-blind readers and readers of grey prints can distinguish."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

from gpuens.plotting.drawing import CLUSTERS, INK, MARK, MISSING_GREY, SHADE, color_clusters, number_clusters

# colour-blindness matrices of Machado, Oliveira & Fernandes (2009) for severity 1
SEEN_BY = {
    "everyone": np.eye(3),
    "protanopes": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopes": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopes": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])
LEAST_DIFFERENCE = {5: 23, 10: 17, 20: 12}  # least CIE L*a*b* distance between any two of the first n clusters
LEAST_GREY_DIFFERENCE = 13  # least difference of lightness, from 0 to 100, between neighbouring numbers


def lab(color, who="everyone"):
    """Return a colour in CIE L*a*b*, whose distances measure visible differences, as a group of people sees it."""
    from matplotlib.colors import to_rgb

    values = np.array(to_rgb(color))
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(XYZ @ np.clip(SEEN_BY[who] @ linear, 1e-3, 1) / XYZ.sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def least_difference(pairs, who):
    return min(np.linalg.norm(lab(a, who) - lab(b, who)) for a, b in pairs)


@pytest.mark.parametrize("who", SEEN_BY)
def test_colours_can_be_told_apart(who):
    for n, least in LEAST_DIFFERENCE.items():
        assert least_difference([(a, b) for i, a in enumerate(CLUSTERS[:n]) for b in CLUSTERS[:i]], who) >= least
    grounds = INK, "white", (MISSING_GREY,) * 3
    assert least_difference([(color, ground) for color in CLUSTERS for ground in grounds], who) >= 9
    assert least_difference([(MARK, SHADE), (MARK, INK), (MARK, "white")], who) >= 10


def test_neighbouring_numbers_differ_in_grey_print():
    assert min(abs(lab(a)[0] - lab(b)[0]) for a, b in pairwise(CLUSTERS)) >= LEAST_GREY_DIFFERENCE


def test_a_number_has_one_colour_whatever_clusters_surround_it():
    colors = color_clusters(range(60))
    assert len(np.unique(colors, axis=0)) == 61
    np.testing.assert_array_equal(color_clusters(["3", "10", "-1"]), colors[[3, 10, -1, -1]])
    np.testing.assert_array_equal(color_clusters([7.0, 0.0]), colors[[7, 0, -1]])
    assert (colors[-1] == MISSING_GREY).all()


def test_names_have_the_colours_of_their_sorted_positions():
    assert number_clusters(["b", "a", "c"]).tolist() == [1, 0, 2]
    assert number_clusters(["T cell", "4", "B cell"]).tolist() == [6, 4, 5]
    assert number_clusters([523, 111, 311]).tolist() == [2, 0, 1]
    assert number_clusters([]).tolist() == []


@pytest.mark.parametrize("n", [1, 20, 21, 90, 400])
def test_each_cluster_has_a_colour_of_its_own(n):
    assert len(np.unique(color_clusters(range(n)), axis=0)) == n + 1
