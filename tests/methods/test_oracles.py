"""The reference implementations compared with printed numbers, with SciPy, and with other computations."""

from fractions import Fraction

import numpy as np
import oracles
import pytest
import scipy.cluster.hierarchy
import scipy.linalg
from conftest import MANY_SHAPES, distinct_rows, random_labels, shapes, structured_labels

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
    # Cluster 0 has three objects, but only two have a label in the other clustering. So its entropy is 1 bit, not
    # log2(3).
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


# --- linkage ----------------------------------------------------------------------------------------------------------


def test_the_tie_breaker_is_splitmix64():
    # The first outputs of the published generator for seed 0. Each step adds 0x9e3779b97f4a7c15 to its state.
    assert oracles.splitmix64(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF
    assert oracles.splitmix64(2 * 0x9E3779B97F4A7C15 % 2**64) == 0x6E789E6AA1B965F4
    assert oracles.mix(3, 5) == oracles.mix(5, 3) == oracles.splitmix64(3 * 2**32 + 5)


@pytest.mark.parametrize("weighted", [False, True])
def test_greedy_merges_are_the_best_there_are(any_labels, weighted):
    """Replay the merges on all N objects: each similarity is a mean over object pairs, and no pair has a larger one."""
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
        assert similarity == float(exact)  # equal to the bit
        regions[a] = np.concatenate([regions[a], regions.pop(b)])


def test_equal_similarities_go_by_the_tie_breaker():
    labels = np.arange(12)[:, None] // np.array([2, 12])  # six groups; all pairs of groups are equally similar
    first = oracles.greedy_average_linkage(labels).merges[0]
    pairs = [(a, b) for a in range(6) for b in range(a + 1, 6)]
    assert first[:2] == min(pairs, key=lambda pair: oracles.mix(*pair))
    assert first[2] == 0.5


def test_regions_with_nothing_in_common_are_chained_by_id():
    labels = np.array([[0, 0], [1, 1], [0, 0], [2, 2], [3, 2]])
    dendrogram = oracles.greedy_average_linkage(labels)
    assert dendrogram.merges == [(2, 3, 0.5), (0, 1, 0.0), (0, 2, 0.0)]
    assert dendrogram.heights.tolist() == [0.5, 0, 0]


@pytest.mark.parametrize("seed", range(8))
def test_greedy_with_eci_weights_is_scipy(seed):
    drawn = random_labels(50, 5, (2, 6), seed=seed) if seed % 2 else structured_labels(50, 8, seed=seed, missing=0.1)[0]
    labels = distinct_rows(drawn)
    weights = oracles.eci(labels, theta=0.4)
    dendrogram = oracles.greedy_average_linkage(labels, weights)
    z = oracles.full_scipy_average(labels, weights)
    assert np.sort(dendrogram.heights)[::-1] == pytest.approx(1 - z[:, 2], abs=1e-12)
    for k in (2, 5, 10):
        ours = oracles.cut(dendrogram.merges, len(labels), k)[dendrogram.groups.membership]
        theirs = scipy.cluster.hierarchy.fcluster(z, k, "maxclust")
        assert len(set(theirs)) == len(set(zip(ours, theirs, strict=True))) == k


def test_cut_numbers_labels_by_first_appearance():
    merges = [(1, 3, 0.9), (0, 4, 0.5), (0, 2, 0.4), (0, 1, 0.1)]
    found = ["".join(map(str, oracles.cut(merges, 5, k))) for k in (5, 4, 3, 2, 1)]
    assert found == ["01234", "01213", "01210", "01010", "00000"]


def test_single_linkage_heights_are_scipys(any_labels):
    weights = oracles.eci(any_labels, 0.4)
    assert oracles.single_linkage_heights(any_labels, weights) == pytest.approx(
        1 - oracles.full_scipy(any_labels, weights, "single")[:, 2], abs=1e-12
    )


def test_complete_linkage_heights_by_hand():
    labels = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 2, 2]])
    # objects 0 and 1 (or 1 and 2) share two of three labels; objects 0 and 2 share one; object 3 shares none
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
    # an object can be without a direction only if the graph has more than k separate parts
    assert (length > 0).all() or values[-1] == pytest.approx(1)


# --- coupled clustering ensemble --------------------------------------------------------------------------------------


@pytest.fixture(params=shapes(name for name in MANY_SHAPES if name != "one clustering"))
def labels(request):
    return MANY_SHAPES[request.param]()


def printed(row):
    return [f"{value:.3f}" for value in row]


def test_the_cluster_similarities_of_the_coupled_ensemble_are_the_printed_ones():
    alpha = oracles.clusters_of(oracles.TABLE_TWO, 3)[0]
    assert alpha == {x - 1 for x in (2, 7, 8, 10, 11, 12)}
    assert len(alpha & oracles.clusters_of(oracles.TABLE_TWO, 1)[0]) / len(alpha) == 1 / 3  # P(A | α)
    assert oracles.iacsc(oracles.TABLE_TWO)[3][0, 1] == 3 / 4
    assert oracles.iersc(oracles.TABLE_TWO, 3, 1)[0, 1] == pytest.approx(5 / 6)
    assert oracles.iecsc(oracles.TABLE_TWO)[3][0, 1] == pytest.approx(7 / 9)
    matrices = oracles.ccsc(oracles.TABLE_TWO)
    assert matrices[3][0, 1] == pytest.approx(7 / 12)
    assert [[printed(row) for row in matrix] for matrix in matrices] == [
        [["0.714", "0.638"], ["0.638", "0.778"]],
        [["0.714", "0.667"], ["0.667", "0.778"]],
        [["0.667", "0.545"], ["0.545", "0.800"]],  # the paper rounds 6 / 11 to .546
        [["0.750", "0.583"], ["0.583", "0.750"]],
    ]


def test_the_object_similarities_of_the_coupled_ensemble_are_the_printed_ones():
    s = oracles.iaoso(oracles.TABLE_TWO)
    assert [" ".join(printed(s[x - 1])) for x in (2, 3, 10)] == [
        # the paper has one more .685 before u8, and .660 for u8, although u8 and u12 have equal labels
        "0.674 0.727 0.655 0.674 0.651 0.655 0.685 0.650 0.608 0.662 0.685 0.650",
        "0.685 0.655 0.761 0.685 0.662 0.761 0.707 0.672 0.714 0.684 0.707 0.672",
        "0.608 0.662 0.684 0.608 0.639 0.684 0.714 0.733 0.691 0.745 0.714 0.733",
    ]


def test_table_five_and_the_common_neighbors_are_the_printed_ones():
    of = [{z + 1 for z in near} for near in oracles.neighborhoods(oracles.iaoso(oracles.TABLE_TWO), 0.65)]
    assert of[2 - 1] == {1, 3, 4, 5, 6, 7, 8, 10, 11, 12}
    assert of[3 - 1] == {1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12}
    assert of[10 - 1] == {2, 3, 6, 7, 8, 9, 11, 12}
    assert of[2 - 1] & of[3 - 1] == {1, 4, 5, 6, 7, 8, 10, 11, 12}
    assert of[2 - 1] & of[10 - 1] == {3, 6, 7, 8, 11, 12}  # the paper counts 7 objects here, and divides 6 by 12
    common = oracles.ccoso(oracles.TABLE_TWO, 0.65)
    assert [" ".join(printed(common[x - 1])) for x in (2, 3, 10)] == [
        # the paper has IaOSO on the diagonal; u3's row continues with .750 .583, u10's row has .583 twice before .500
        "0.500 0.833 0.750 0.500 0.333 0.750 0.667 0.500 0.833 0.500 0.667 0.500",
        "0.583 0.750 0.917 0.583 0.417 0.833 0.750 0.583 0.750 0.583 0.750 0.583",
        "0.500 0.500 0.583 0.500 0.333 0.583 0.583 0.583 0.500 0.667 0.583 0.583",
    ]


def test_common_neighbors_by_jaccard_are_the_printed_ones():
    rows = [set(row) for row in oracles.TABLE_TWO.tolist()]
    jaccard = np.array([[len(a & b) / len(a | b) for b in rows] for a in rows])
    assert {z + 1 for z in oracles.neighborhoods(jaccard, 0.3)[2 - 1]} == {1, 3, 4, 5, 6, 7, 10, 11}
    assert printed(oracles.ieoso(jaccard, 0.3)[2 - 1, [3 - 1, 10 - 1]]) == ["0.583", "0.417"]


def test_objects_missing_elsewhere_stay_below_the_line():
    labels = np.array([[0, 0], [0, 1], [0, -1], [1, 1], [-1, 1]])
    assert oracles.iacsc(labels)[0] == pytest.approx(np.array([[9 / 15, 3 / 7], [3 / 7, 1 / 3]]))
    # cluster 0 has three objects, two with a label in the other clustering;
    # cluster 1 of the other clustering has three objects, two with a label in this one
    assert oracles.iersc(labels, 0, 1) == pytest.approx(np.array([[2 / 3, 1 / 3], [1 / 3, 1]]))
    assert oracles.iersc(labels, 1, 0) == pytest.approx(np.array([[1, 1 / 3], [1 / 3, 2 / 3]]))
    s = oracles.iaoso(labels)
    assert s[0, 2] == pytest.approx(9 / 15 * 2 / 3 / 2)  # one of two clusterings labels both objects
    assert s[2, 4] == 0


def test_object_label_space_by_hand():
    ol = oracles.object_label_space(oracles.TABLE_TWO)
    assert ol.shape == (12, 8)
    assert ol[0, 6:] == pytest.approx([7 / 12 - 2 / 3, 3 / 4 - 2 / 3])  # row β of M_4 minus its column means, 2/3


def test_association_is_the_share_of_the_collapsed_clusters():
    labels = np.array([[0, 0, 0], [0, 1, -1], [1, 1, 0], [1, -1, -1]])
    assert oracles.association(labels, [0, 1, 0, 1, 0]) == pytest.approx(
        np.array([[1, 0], [1 / 3, 1 / 2], [1 / 3, 1], [0, 1 / 2]])
    )


@pytest.mark.thorough
@pytest.mark.parametrize("theta", [0.2, 0.4, 0.6, 1.0])
def test_rock_merges_the_best_there_are(labels, theta):
    """Replay the merges on all objects, with links as sums of CCOSO, and check eq 23 at every merge."""
    merges = oracles.greedy_rock(labels, oracles.iaoso(labels), theta)
    links = oracles.ccoso(labels, theta) * len(labels)
    membership = oracles.core_groups(labels).membership
    regions = {g: np.flatnonzero(membership == g) for g in range(membership.max() + 1)}
    power = 1 + 2 * (1 - theta) / (1 + theta)

    def goodness(a, b):
        link = links[np.ix_(regions[a], regions[b])].sum()
        n_a, n_b = len(regions[a]), len(regions[b])
        return link / ((n_a + n_b) ** power - n_a**power - n_b**power) if link else 0

    assert len(merges) == len(regions) - 1
    for a, b, good in merges:
        assert a < b
        assert good == pytest.approx(goodness(a, b))
        assert good >= max(goodness(i, j) for i in regions for j in regions if i < j) * (1 - 1e-12)
        regions[a] = np.concatenate([regions[a], regions.pop(b)])
    assert list(regions) == [0]


def test_rock_by_hand():
    """Each pair of four mutual neighbors has two common neighbors; each pair of three has one.

    The larger group merges first.
    """
    part = np.array([0, 1, 0, 1, 0, 1, 0])
    merges = oracles.greedy_rock(np.arange(7)[:, None], part[:, None] == part, 0.5)
    power = 1 + 2 * 0.5 / 1.5
    # the denominator grows by this number when one object joins n objects
    one_more = [(n + 1) ** power - n**power - 1 for n in (1, 2, 3)]
    links = [2, 4, 6, 1, 2, 0]
    assert [good for _, _, good in merges] == pytest.approx(np.array(links) / [*one_more, *one_more[:2], 1])
    assert oracles.cut(merges, 7, 2).tolist() == part.tolist()
    fours = [(0, 2), (0, 4), (0, 6), (2, 4), (2, 6), (4, 6)]
    assert merges[0][:2] == min(fours, key=lambda pair: oracles.mix(*pair))


def test_rock_merges_what_has_no_links_by_the_tie_breaker():
    labels = np.arange(6)[:, None]
    merges = oracles.greedy_rock(labels, np.eye(6), 0.5)
    pairs = [(a, b) for a in range(6) for b in range(a + 1, 6)]
    assert merges[0] == (*min(pairs, key=lambda pair: oracles.mix(*pair)), 0.0)


# --- soft correspondence ----------------------------------------------------------------------------------------------


def test_correspondences_of_the_scec_papers_section_3():
    """Eq 10 without penalties gives the matrices printed for λ = 112233 and two other clusterings, and eq 3 falls."""
    m = np.eye(3)[[0, 0, 1, 1, 2, 2]]
    labels = np.array([[3, 3, 1, 1, 2, 2], [1, 1, 1, 1, 2, 2]]).T
    printed = [[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[0.5, 0.5, 0], [0, 0, 1]]
    for a, expected in zip(oracles.membership_matrices(labels), printed, strict=True):
        s, values = np.random.default_rng(0).dirichlet(np.ones(3), size=a.shape[1]), []
        for _ in range(500):
            s = oracles.scec_correspondence(m, a, s, 0.0, 1e-9)
            values.append(oracles.scec_objective(m, [a], [s], [0.0], [1e-9]))
        np.testing.assert_allclose(s, expected, atol=1e-6)
        assert np.diff(values).max() < 1e-12


def test_missing_labels_are_uniform_rows():
    (matrix,) = oracles.membership_matrices(np.array([[0], [-1], [2]]))
    assert matrix.tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
