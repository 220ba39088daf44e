"""CCE's estimators compared with a literal reference that works object by object, on every device."""

from itertools import combinations

import numpy as np
import oracles
import pytest
from conftest import random_labels, refused, structured_labels
from sklearn.metrics import adjusted_rand_score

import gpuens as ge
from gpuens.partition import metis

ENSEMBLES = {
    "structured": lambda: structured_labels(60, 8, 4, noise=0.2, split=2, missing=0.05, seed=3)[0],
    "repeated rows": lambda: random_labels(70, 4, (2, 5), distinct=20, seed=4),
    "unequal k": lambda: random_labels(50, 5, (2, 25), seed=3),
    "missing": lambda: random_labels(60, 6, (2, 6), missing=0.3, seed=5),
}
LAMBDAS = [1, 0, 2, 0.5, 3, 1, 1, 0.25]

pytestmark = pytest.mark.filterwarnings("ignore:found only . of . clusters", "ignore:n_clusters=. merges")


@pytest.fixture(params=ENSEMBLES)
def labels(request):
    return ENSEMBLES[request.param]()


def of_groups(labels, similarity):
    """Return the sum of similarities for each pair of core groups, the group sizes, and the group of each object."""
    membership = oracles.core_groups(labels).membership
    hot = np.eye(max(membership) + 1)[membership]
    return hot.T @ similarity @ hot, hot.sum(axis=0).astype(np.int64), np.array(membership)


def weights_of(labels, weighted):
    return LAMBDAS[: labels.shape[1]] if weighted else None


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.parametrize("weighted", [False, True])
def test_cgc_minimises_the_literal_objective(labels, where, weighted):
    weights = weights_of(labels, weighted)
    est = ge.CgC(3, weights=weights, device=where).fit(labels)
    features = oracles.object_label_space(labels, weights)
    centroids = np.array([features[est.labels_ == k].mean(axis=0) for k in range(est.n_clusters_)])
    distances = ((features[:, None] - centroids) ** 2).sum(axis=2)
    assert est.objective_ == pytest.approx(distances[np.arange(len(labels)), est.labels_].sum(), abs=1e-10)
    assert (distances[np.arange(len(labels)), est.labels_] <= distances.min(axis=1) + 1e-10).all()
    for found, literal in zip(est.coupling_, oracles.ccsc(labels, weights), strict=True):
        np.testing.assert_allclose(found, literal, atol=1e-12, rtol=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_oc_ia_is_metis_on_the_literal_matrix(labels, where, weighted):
    weights = weights_of(labels, weighted)
    graph, counts, membership = of_groups(labels, oracles.iaoso(labels, weights))
    expected = metis(graph, counts, 3)[membership]
    assert same_partition(ge.OCIa(3, weights=weights, device=where).fit_predict(labels), expected)


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_oc_h_merges_as_the_literal_greedy_does(labels, where, threshold):
    similarity = oracles.iaoso(labels)
    literal = oracles.greedy_rock(labels, similarity, threshold or oracles.mean_over_pairs(similarity))
    est = ge.OCH(3, threshold=threshold, device=where).fit(labels)
    linked = np.count_nonzero(est.merges_.goodness > 0)
    merges = list(zip(est.merges_.kept.tolist(), est.merges_.absorbed.tolist(), strict=True))
    assert merges[:linked] == [(a, b) for a, b, _ in literal[:linked]]
    np.testing.assert_allclose(est.merges_.goodness[:linked], [g for _, _, g in literal[:linked]], rtol=1e-9)


@pytest.mark.parametrize("threshold", ["ia", None, 0.4])
def test_crc_is_meta_clustering_of_the_literal_similarity(labels, where, threshold):
    method = ge.CrCIa(3, device=where) if threshold == "ia" else ge.CrCC(3, threshold=threshold, device=where)
    literal = oracles.iaoso(labels) if threshold == "ia" else oracles.ccoso(labels, threshold)
    check_meta_clusters(method.fit(labels), labels, literal)


@pytest.mark.parametrize("mu", [None, 0.0, 0.3, 1.0])
def test_s_cce_mixes_both(labels, where, mu):
    est = ge.SCCE(3, mu=mu, device=where).fit(labels)
    if mu is None:
        both = [(a >= 0) & (b >= 0) for a, b in combinations(labels.T, 2)]
        aris = [adjusted_rand_score(a[x], b[x]) for (a, b), x in zip(combinations(labels.T, 2), both, strict=True)]
        mu = max(0.0, np.mean(aris))
        assert est.mu_ == pytest.approx(mu, abs=1e-12)
    check_meta_clusters(est, labels, mu * oracles.iaoso(labels) + (1 - mu) * oracles.ccoso(labels))


def check_meta_clusters(est, labels, similarity):
    sizes = np.array([len(objects) for _, _, objects in oracles.clusters(labels)])
    literal = metis(oracles.cluster_similarity(labels, similarity), sizes, 3)
    assert same_partition(est.meta_clusters_, literal)
    associated = oracles.association(labels, est.meta_clusters_)
    np.testing.assert_allclose(est.membership_, associated / associated.sum(axis=1, keepdims=True), atol=1e-12)
    own = associated[np.arange(len(labels)), est.labels_]
    np.testing.assert_allclose(own, associated.max(axis=1), atol=1e-12)


def test_table_two_is_solved():
    """Objects u2 and u3 belong together and u10 does not, although the labels alone do not show it (§1, §4.2)."""
    found = ge.OCH(2, threshold=0.65).fit_predict(oracles.TABLE_TWO)
    assert found[1] == found[2]


def test_a_sample_is_as_good_as_all_where_structure_is_clear(where):
    labels, truth = structured_labels(600, 8, 4, noise=0.1, split=2, seed=1)
    for method in (ge.CgC, ge.OCIa, ge.OCH, ge.CrCIa, ge.CrCC, ge.SCCE):
        found = method(4, reduction=ge.Sample(200), device=where).fit_predict(labels)
        assert ge.metrics.ari(truth, found) > 0.8, method


class Counted:
    """A reduction that keeps all rows and gives each row a count of objects."""

    def __init__(self, counts):
        self.counts = np.array(counts)

    def reduce(self, rows):
        return ge.Reduction(ge.Rows(rows.ensemble, self.counts), np.arange(len(rows)))


def test_links_of_any_number_of_objects_are_added_up_rightly():
    """Sums of links between 14 million objects are many times larger than the largest int64."""
    rows = [[0, 0, 0, 1, 1], [0, 1, 1, 1, 0], [1, 1, 0, 0, 1], [0, 2, 1, 2, 2]]
    counts = np.array([4045, 4115, 1826, 2501, 1933])
    few, many = (ge.OCH(2, threshold=0.1, reduction=Counted(counts * factor)).fit(rows) for factor in (1, 1000))
    np.testing.assert_array_equal(few.labels_, many.labels_)
    assert (many.merges_.goodness > 0).all()


def test_clusters_without_objects_take_no_part():
    """A sample leaves most clusters empty; the other clusters are grouped as if empty clusters did not exist."""
    labels = np.column_stack([np.repeat(np.arange(4), 30) * 3 + np.random.default_rng(m).integers(0, 3, 120)
                              for m in range(4)])  # fmt: skip
    for seed in range(10):
        drawn = np.random.default_rng(seed).choice(120, 8, replace=False)
        est = ge.CrCIa(4, reduction=ge.Sample(8, random_state=seed)).fit(labels)
        alone = ge.CrCIa(4).fit(labels[drawn])
        assert same_partition(est.labels_[drawn], alone.labels_)


# --- error messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [ge.CgC, ge.OCIa, ge.OCH, ge.CrCIa, ge.CrCC, ge.SCCE])
def test_what_cannot_be_is_refused(method):
    labels = ENSEMBLES["structured"]()
    refused(lambda: method(2, weights=[1, 2]).fit(labels), ValueError, "weights", "8")
    refused(lambda: method(2).fit(labels[:, :1]), ValueError, "single base clustering")
    if "threshold" in method().get_params():
        refused(lambda: method(2, threshold=1.5).fit(labels), ValueError, "threshold", "1.5")
    if "random_state" in method().get_params():
        refused(lambda: method(2, random_state="x").fit(labels), TypeError, "random_state")
    refused(lambda: ge.SCCE(2, mu=-0.1).fit(labels), ValueError, "mu", "-0.1")


@pytest.mark.parametrize("method", [ge.OCIa, ge.OCH])
def test_all_pairs_beyond_the_budget_are_refused_with_a_way_out(method, monkeypatch):
    labels = random_labels(400, 6, (2, 9), seed=1)
    monkeypatch.setenv("GPUENS_MEMORY", "300kB")
    refused(lambda: method(3).fit(labels), MemoryError, "Sample(")
    method(3, reduction=ge.Sample(60)).fit(labels)
