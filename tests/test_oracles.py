"""The references are checked too: against printed figures, SciPy, and each other by different roads."""

from fractions import Fraction

import numpy as np
import oracles
import pytest
import scipy.cluster.hierarchy
from conftest import distinct_rows, random_labels, structured_labels

# --- cluster-level quantities -----------------------------------------------------------------------------------------


def test_table_one_comes_out_to_the_printed_digits(table_one):
    h = oracles.entropy(table_one)
    assert [f"{x:.2f}" for x in h] == ["2.56", "0.00", "0.72", "0.97", "0.92", "1.95", "1.85", "1.44", "0.00"]
    eci = oracles.eci(table_one, theta=0.5)
    assert [f"{x:.2f}" for x in eci] == ["0.18", "1.00", "0.62", "0.52", "0.54", "0.27", "0.29", "0.38", "1.00"]


def test_incidence_leaves_missing_labels_out_and_closes_gaps():
    labels = np.array([[5, 0], [2, -1], [-1, 3], [5, 3]])
    assert oracles.incidence(labels).tolist() == [[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 1]]


def test_entropy_leaves_missing_objects_out_of_the_proportions():
    labels = np.array([[0, 0], [0, 1], [0, -1], [1, 1]])
    # cluster 0 has three objects, two of them labelled in the other clustering: one bit, not log2(3)
    assert oracles.entropy(labels) == pytest.approx([1, 0, 0, 1])


def test_coassociation_counts_agreements_and_keeps_m_below_the_line():
    labels = np.array([[0, 0, 0], [0, 0, 1], [0, -1, 1], [1, -1, -1]])
    thirds = 3 * oracles.coassociation(labels)
    assert thirds == pytest.approx(np.array([[3, 2, 1, 0], [2, 3, 2, 0], [1, 2, 2, 0], [0, 0, 0, 1]]))
    weighted = oracles.coassociation(labels, [0.5, 1, 0.25, 1, 0.125])
    assert 3 * weighted[0, 1] == 0.75
    assert 3 * weighted[1, 2] == 0.625


def test_coassociation_equals_label_by_label_comparison(any_labels):
    same = (any_labels[:, None, :] == any_labels[None, :, :]) & (any_labels != -1)[:, None, :]
    assert oracles.coassociation(any_labels) == pytest.approx(same.mean(axis=2))


# --- core groups ------------------------------------------------------------------------------------------------------


def test_core_groups_are_in_lexicographic_order_with_missing_last():
    labels = np.array([[1, 0], [-1, 2], [0, -1], [1, 0], [0, 7], [0, -1], [0, 2], [0, -1]])
    groups = oracles.core_groups(labels)
    assert groups.rows.tolist() == [[0, 2], [0, 7], [0, -1], [1, 0], [-1, 2]]
    assert groups.counts.tolist() == [1, 1, 3, 2, 1]
    assert groups.membership.tolist() == [3, 4, 2, 3, 1, 2, 0, 2]


def test_core_groups_give_the_rows_back(any_labels):
    groups = oracles.core_groups(any_labels)
    assert (groups.rows[groups.membership] == any_labels).all()
    assert (np.bincount(groups.membership) == groups.counts).all()


# --- linkage ----------------------------------------------------------------------------------------------------------


def test_the_tie_breaker_is_splitmix64():
    # the first outputs of the published generator for seed 0, whose state steps by 0x9e3779b97f4a7c15
    assert oracles.splitmix64(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF
    assert oracles.splitmix64(2 * 0x9E3779B97F4A7C15 % 2**64) == 0x6E789E6AA1B965F4
    assert oracles.mix(3, 5) == oracles.mix(5, 3) == oracles.splitmix64(3 * 2**32 + 5)


@pytest.mark.parametrize("weighted", [False, True])
def test_greedy_merges_are_the_best_there_are(any_labels, weighted):
    """Replay the merges on all N objects: each similarity is the mean over object pairs, and none is larger."""
    weights = oracles.eci(any_labels, 0.4) if weighted else None
    dendrogram = oracles.greedy_average_linkage(any_labels, weights)
    s = oracles.coassociation(any_labels, weights)
    membership = dendrogram.groups.membership
    regions = {g: np.flatnonzero(membership == g) for g in range(membership.max() + 1)}
    for a, b, similarity in dendrogram.merges:
        assert a < b
        assert similarity == pytest.approx(s[np.ix_(regions[a], regions[b])].mean(), abs=1e-12)
        ids = sorted(regions)
        others = [s[np.ix_(regions[i], regions[j])].mean() for i in ids for j in ids if i < j]
        assert similarity >= max(others) - 1e-12
        regions[a] = np.concatenate([regions[a], regions.pop(b)])
    assert list(regions) == [0]


def test_unweighted_similarities_are_exact_quotients():
    labels = random_labels(60, 7, (2, 4), distinct=20, seed=11)
    dendrogram = oracles.greedy_average_linkage(labels)
    regions = {g: np.flatnonzero(dendrogram.groups.membership == g) for g in range(len(dendrogram.groups.rows))}
    for a, b, similarity in dendrogram.merges:
        agreements = int((labels[regions[a]][:, None] == labels[regions[b]][None]).sum())
        exact = Fraction(agreements, len(regions[a]) * len(regions[b]) * labels.shape[1])
        assert similarity == float(exact)  # bit for bit
        regions[a] = np.concatenate([regions[a], regions.pop(b)])


def test_equal_similarities_go_by_the_tie_breaker():
    labels = np.arange(12)[:, None] // np.array([2, 12])  # six groups, all pairs equally similar
    first = oracles.greedy_average_linkage(labels).merges[0]
    pairs = [(a, b) for a in range(6) for b in range(a + 1, 6)]
    assert first[:2] == min(pairs, key=lambda pair: oracles.mix(*pair))
    assert first[2] == 0.5


def test_regions_with_nothing_in_common_are_chained_by_id():
    labels = np.array([[0, 0], [1, 1], [0, 0], [2, 2], [3, 2]])
    dendrogram = oracles.greedy_average_linkage(labels)
    assert dendrogram.merges == [(2, 3, 0.5), (0, 1, 0.0), (0, 2, 0.0)]
    assert dendrogram.heights.tolist() == [0.5, 0, 0]


def test_heights_never_rise_along_a_branch(any_labels):
    dendrogram = oracles.greedy_average_linkage(any_labels, oracles.eci(any_labels, 0.2))
    last = {}
    for (a, b, similarity), height in zip(dendrogram.merges, dendrogram.heights, strict=True):
        assert height <= min(last.get(a, 1), last.get(b, 1), similarity)
        last[a] = height


@pytest.mark.parametrize("seed", range(8))
def test_greedy_with_eci_weights_is_scipy(seed):
    labels = distinct_rows(
        random_labels(50, 5, (2, 6), seed=seed) if seed % 2 else structured_labels(50, 8, seed=seed, missing=0.1)[0]
    )
    weights = oracles.eci(labels, theta=0.4)
    dendrogram = oracles.greedy_average_linkage(labels, weights)
    z = oracles.full_scipy_average(labels, weights)
    assert np.sort(dendrogram.heights)[::-1] == pytest.approx(1 - z[:, 2], abs=1e-12)
    for k in (2, 5, 10):
        ours = oracles.cut(dendrogram.merges, len(labels), k)[dendrogram.groups.membership]
        theirs = scipy.cluster.hierarchy.fcluster(z, k, "maxclust")
        assert len(set(theirs)) == len(set(zip(ours, theirs, strict=True))) == k


def test_greedy_does_not_depend_on_the_order_of_the_objects(any_labels):
    order = np.random.default_rng(0).permutation(len(any_labels))
    assert oracles.greedy_average_linkage(any_labels).merges == oracles.greedy_average_linkage(any_labels[order]).merges


def test_cut_numbers_labels_by_first_appearance():
    merges = [(1, 3, 0.9), (0, 4, 0.5), (0, 2, 0.4), (0, 1, 0.1)]
    assert oracles.cut(merges, 5, 5).tolist() == [0, 1, 2, 3, 4]
    assert oracles.cut(merges, 5, 4).tolist() == [0, 1, 2, 1, 3]
    assert oracles.cut(merges, 5, 3).tolist() == [0, 1, 2, 1, 0]
    assert oracles.cut(merges, 5, 2).tolist() == [0, 1, 0, 1, 0]
    assert oracles.cut(merges, 5, 1).tolist() == [0, 0, 0, 0, 0]


def test_single_linkage_heights_are_scipys(any_labels):
    weights = oracles.eci(any_labels, 0.4)
    assert oracles.single_linkage_heights(any_labels, weights) == pytest.approx(
        1 - oracles.full_scipy(any_labels, weights, "single")[:, 2], abs=1e-12
    )


def test_complete_linkage_heights_by_hand():
    labels = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 2, 2]])
    # 0 and 1 (or 1 and 2) share two of three labels; the farthest of the three share one; 3 shares none
    assert oracles.complete_linkage_heights(labels) == pytest.approx([2 / 3, 1 / 3, 0])


# --- transfer cut -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_transfer_cut_is_the_svd_of_the_normalised_graph(any_labels, weighted):
    """W's row sums are X's column sums, so the eigenvalues are squared singular values of D_X^-½ X D^-½."""
    weights = oracles.eci(any_labels, 0.4) if weighted else None
    b = oracles.incidence(any_labels)
    k = min(3, b.shape[1])
    embedding, values = oracles.transfer_cut_embedding(any_labels, weights, k)
    x = b if weights is None else b * weights
    singular = np.linalg.svd(x / np.sqrt(x.sum(1))[:, None] / np.sqrt(x.sum(0)), compute_uv=False)
    assert values == pytest.approx((singular**2)[:k], abs=1e-12)
    assert values[0] == pytest.approx(1)
    length = np.linalg.norm(embedding, axis=1)
    assert length[length > 0] == pytest.approx(1)
    assert (length > 0).all() or values[-1] == pytest.approx(1)  # only more separate parts than k leave objects out


def test_transfer_cut_puts_separate_parts_at_right_angles():
    labels = np.arange(24)[:, None] // np.array([3, 4, 6])
    embedding, values = oracles.transfer_cut_embedding(labels, oracles.eci(labels, 0.4), 2)
    assert values == pytest.approx([1, 1])
    part = np.arange(24) // 12
    assert embedding @ embedding.T == pytest.approx((part[:, None] == part).astype(float), abs=1e-9)
