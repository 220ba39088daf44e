"""Names of clusters after a reference, compared with all matchings, counted object by object."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from conftest import random_labels, refused, structured_labels

import gpuens as ge
from gpuens.plotting.drawing import for_files


def common(column, reference):
    """Return the number of objects of each pair of labels, counted one by one."""
    return Counter((a, b) for a, b in zip(column.tolist(), reference.tolist(), strict=True) if min(a, b) >= 0)


def best(column, reference):
    """Return the largest number of common objects over all pairings of clusters, by trying each of them."""
    counts = common(column, reference)
    ours, theirs = np.unique(column[column >= 0]).tolist(), np.unique(reference[reference >= 0]).tolist()
    ours += [-1] * (len(theirs) - len(ours))  # places for no cluster
    return max(sum(counts[pair] for pair in zip(order, theirs, strict=False)) for order in permutations(ours))


@pytest.mark.parametrize("seed", range(6))
def test_partners_share_as_many_objects_as_in_any_pairing(seed, where):
    rng = np.random.default_rng(seed)
    labels = np.column_stack([rng.integers(-1, k, 40) for k in (2, 3, 4, 4, 3)])
    reference = rng.integers(-1 if seed % 2 else 0, 4, 40)
    labels[labels.max(axis=1) < 0] = 0
    found = ge.align(labels, reference, device=where)
    assert found.names == list("0123")
    np.testing.assert_array_equal(found.reference, reference)
    for m, column in enumerate(labels.T):
        codes = found.codes[:, m]
        np.testing.assert_array_equal(codes < 0, column < 0)
        assert len(set(found.clusters[m])) == len(found.clusters[m])
        # one cluster for each label, and as many objects in it as the best pairing has
        assert len({*zip(column, codes, strict=True)}) == len({*column})
        assert np.count_nonzero((codes == reference) & (codes >= 0)) == best(column, reference)
        both = (column >= 0) & (reference >= 0)
        assert found.overlap[m] == pytest.approx((codes == reference)[both].mean())


def maps_onto(k, r):
    """Return all maps of k clusters to r clusters that leave none of these out."""
    return [chosen for chosen in product(range(r), repeat=k) if len(set(chosen)) == r]


@pytest.mark.parametrize("seed", range(4))
def test_families_of_splits_share_as_many_objects_as_in_any_map_onto_the_reference(seed, where):
    rng = np.random.default_rng(seed)
    reference = np.repeat(range(3), [30, 20, 10])
    labels = np.column_stack([rng.integers(0, k, 60) for k in (5, 4, 6)])
    found = ge.align(labels, reference, device=where)
    for m, column in enumerate(labels.T):
        counts, families = common(column, reference), found.families[found.clusters[m]]
        assert set(families) == {0, 1, 2}
        assert [c for c in range(3) if c in found.clusters[m]] == [0, 1, 2]  # the name of a family is in use
        totals = [sum(counts.get(pair, 0) for pair in enumerate(chosen)) for chosen in maps_onto(column.max() + 1, 3)]
        assert np.count_nonzero(families[column] == reference) == max(totals)
        assert found.overlap[m] == max(totals) / 60


def test_a_pairing_of_most_objects_need_not_give_the_best_families():
    """The third cluster is needed least elsewhere, so that the first and the second may both belong to cluster 0."""
    sizes = {(0, 0): 60, (0, 1): 40, (1, 0): 50, (2, 0): 10, (2, 1): 5}
    column, reference = np.repeat(np.array(list(sizes)).T, list(sizes.values()), axis=1)
    found = ge.align(column[:, None], reference)
    assert found.families[found.clusters[0]].tolist() == [0, 0, 1]
    assert found.overlap[0] == 115 / 165  # 100 / 165 with the pairs (0, 1) and (1, 0)


@pytest.mark.parametrize(("k", "r"), [(4, 3), (5, 4), (3, 2)])
@pytest.mark.parametrize("seed", range(4))
def test_soft_splits_into_one_more_cluster_differ_least_of_all_maps_onto_the_reference(seed, k, r):
    rng = np.random.default_rng(seed)
    first, second = rng.dirichlet([0.5] * r, 40), rng.dirichlet([0.5] * k, 40)
    found = ge.align([second], to=first)

    def difference(families):
        return sum(((second[:, np.equal(families, p)].sum(axis=1) - first[:, p]) ** 2).sum() for p in range(r))

    least = min(map(difference, maps_onto(k, r)))
    assert difference(found.families[found.clusters[0]]) == pytest.approx(least, rel=1e-12)


def test_clusters_without_common_objects_have_the_family_with_which_they_share_most():
    # cluster 2 of the reference has no label here; of three clusters in cluster 0, none can stand for it
    found = ge.align([[0, 0, 1, 2, 3, -1], [0, 0, 0, 0, 1, 2]], to=[0, 0, 0, 0, 1, 2])
    assert found.families[found.clusters[0]].tolist() == [0, 0, 0, 1]
    assert found.names == ["0", "1", "2", "0.b", "0.c"]


def test_splits_are_named_alike_in_all_clusterings_and_numbers_of_clusters():
    whole = np.repeat([0, 1, 2], 40)
    left, third = np.arange(120) % 40 < 17, np.arange(120) % 40 >= 35
    two = np.where((whole == 2) & left, 3, whole)  # the smaller part of cluster 2 is apart
    even = np.where((whole == 2) & (np.arange(120) % 40 < 22), 3, whole)  # the same part, now the larger one
    three = np.where((two == 2) & third, 4, two)
    other = np.where((three == 1) & left, 5, three)
    aligned = ge.align([three, (two + 1) % 4, even, 5 - other, np.minimum(whole, 1), whole], to=whole)
    assert aligned.names == ["0", "1", "2", "2.b", "2.c", "1.b"]
    assert aligned.families.tolist() == [0, 1, 2, 2, 2, 1]
    np.testing.assert_array_equal(aligned.codes[:, :4], np.column_stack([three, two, even, other]))
    assert aligned.overlap[[0, 1, 2, 3, 5]].tolist() == [1.0] * 5
    assert aligned.labels[-1].tolist() == ["2.c", "2", "2", "2.c", "1", "2"]


def test_the_reference_is_the_medoid_the_first_or_given():
    labels, truth = structured_labels(90, 6, 4, noise=0.3, seed=3)
    pairs = np.array([[ge.metrics.ari(a, b) for b in labels.T] for a in labels.T])
    aligned = ge.align(labels)
    assert aligned.chosen == pairs.sum(axis=1).argmax()
    np.testing.assert_array_equal(aligned.reference, labels[:, aligned.chosen])
    assert ge.align(labels, "first").chosen == 0
    by_truth = ge.align(labels, np.array(list("dbca"))[truth])
    assert (by_truth.chosen, by_truth.names[:4]) == (None, list("abcd"))


def test_objects_without_a_label_in_the_reference_keep_their_clusters():
    found = ge.align([[0, 0, 1, 1, 2, 3], [0, 0, 0, 0, 1, 1]], to=[0, 0, 1, 1, -1, -1])
    assert found.names == ["0", "1", "unmatched", "unmatched.b"]
    assert found.codes.tolist() == [[0, 0], [0, 0], [1, 0], [1, 0], [2, 2], [3, 2]]


def test_codes_are_labels_again_and_hard_memberships_agree_with_labels(where):
    labels = random_labels(80, 5, 6, missing=0.2, seed=1)
    hard, soft = ([form, labels[:, 0].clip(0)] for form in (labels, [*labels.T]))
    soft[1] = np.eye(6)[soft[1]]
    hard, soft = (ge.align(*arguments, device=where) for arguments in (hard, soft))
    assert soft.names == hard.names
    np.testing.assert_array_equal(soft.codes, hard.codes)
    np.testing.assert_allclose(soft.overlap, hard.overlap)
    for m in range(5):
        assert ge.metrics.ari(labels[:, m], hard.codes[:, m]) == 1.0
        assert len({*hard.labels[:, m]} - {None}) == len(hard.clusters[m])
    one_hot = [np.eye(len(hard.names))[column] if (column >= 0).all() else column for column in hard.codes.T]
    assert ge.align(one_hot).codes.shape == (80, 5)
    assert ge.Ensemble(hard.labels).n_clusterings == 5


def test_soft_clusterings_follow_the_overlap_of_memberships():
    rng = np.random.default_rng(0)
    first = rng.dirichlet([0.3] * 3, 50)
    parts = np.column_stack([first[:, 0] * 0.7, first[:, 0] * 0.3, first[:, 1:]])
    turn = rng.permutation(4)
    found = ge.align([first[:, [2, 0, 1]], parts[:, turn], first.argmax(axis=1)], to=first)
    assert found.names == ["0", "1", "2", "0.b"]
    np.testing.assert_allclose(found.membership(0)[:, :3], first)
    np.testing.assert_allclose(found.membership(1), parts[:, [0, 2, 3, 1]])
    np.testing.assert_array_equal(found.membership(2)[:, :3], np.eye(3)[first.argmax(axis=1)])
    for m, matrix in enumerate([first[:, [2, 0, 1]], parts[:, turn]]):
        literal = np.array([[sum(a * b for a, b in zip(x, y, strict=True)) for y in first.T] for x in matrix.T])
        totals = {sum(literal[a, r] for r, a in enumerate(some)) for some in permutations(range(len(literal)), 3)}
        own = [list(found.clusters[m]).index(r) for r in range(3)]
        assert sum(literal[a, r] for r, a in enumerate(own)) == pytest.approx(max(totals))


def test_labels_in_gpu_memory_stay_there(fake_cupy):
    labels, truth = structured_labels(60, 4, 3, noise=0.2, split=1, missing=0.1, seed=0)
    found = ge.align(fake_cupy.asarray(labels), fake_cupy.asarray(truth))
    host = ge.align(labels, truth)
    assert isinstance(found.codes, fake_cupy.ndarray)
    np.testing.assert_array_equal(fake_cupy.asnumpy(found.codes), host.codes)
    assert found.names == host.names


@pytest.mark.parametrize(
    ("to", "kind", "message"),
    [
        ([0, 1], ValueError, "to"),
        ("last", ValueError, "to must be labels of all objects, 'first' or None, not 'last'"),
        (3, TypeError, "to"),
        ([[0.5, 0.5]] * 3, ValueError, "to"),
        ([0, 0.5, 1, 1], ValueError, "whole numbers"),
    ],
)
def test_another_reference_is_refused(to, kind, message):
    refused(lambda: ge.align([[0, 0, 1, 1], [0, 1, 1, 1]], to), kind, message)


def test_too_large_a_table_is_refused(monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "10kB")
    labels, sentence = np.column_stack([np.arange(300)] * 2), "the table of 600 clusters and the 300 of the reference"
    refused(lambda: ge.align(labels, to=np.arange(300)), MemoryError, sentence)


# --- pictures ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def drawn():
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    with for_files():
        yield


@pytest.mark.usefixtures("drawn")
def test_a_strip_has_the_colours_of_the_reference_and_shades_of_parts():
    whole, place = np.repeat([0, 1], [30, 70]), np.arange(100)
    aligned = ge.align([np.where(place >= 80, 2, whole), 1 - whole, np.where(place < 5, -1, whole)], whole)
    ax = ge.plotting.label_strips(aligned, order=[1, 2, 0])
    reference, turned, gaps, split = np.asarray(ax.images[0].get_array())
    np.testing.assert_array_equal(reference, turned)
    assert np.abs(reference - split).max(axis=1).sum() > 0
    assert len({tuple(color) for color in split.round(6).tolist()}) == 3
    assert np.count_nonzero((gaps == 0.85).all(axis=1)) == 5
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "1"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["reference", "1 (k = 2)", "2 (k = 2)", "0 (k = 3)"]


@pytest.mark.usefixtures("drawn")
def test_bars_have_the_heights_of_the_shares():
    shares = np.random.default_rng(1).dirichlet([1, 1, 1], 20)
    ax = ge.plotting.membership_bars(ge.align([shares, shares[:, ::-1]], to=shares))
    image = np.asarray(ax.images[0].get_array())
    first, second = image[:30], image[34:]
    np.testing.assert_array_equal(first, second)
    colors = np.unique(first.reshape(-1, 3), axis=0)
    heights = (first[:, :, None] == colors).all(axis=3).mean(axis=0)
    drawn, wanted = (np.sort(np.sort(bars, axis=1), axis=0) for bars in (heights, shares))
    np.testing.assert_allclose(drawn, wanted, atol=1 / 30)


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("draw", ["label_strips", "membership_bars"])
def test_a_picture_of_many_has_few_pixels(draw):
    labels = np.random.default_rng(0).integers(0, 30, (30_000, 3))
    found = ge.align(ge.Ensemble([*labels.T] * 170), to="first")
    ax = getattr(ge.plotting, draw)(found)
    assert max(ax.images[0].get_array().shape) <= 900
    assert "of 510 clusterings" in ax.get_title()
    refused(lambda: getattr(ge.plotting, draw)(found, order=[510]), ValueError, "order")
    refused(lambda: getattr(ge.plotting, draw)(found, order=[]), ValueError, "order")
    refused(lambda: getattr(ge.plotting, draw)(labels), TypeError, "aligned")
