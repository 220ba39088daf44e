"""Similarities by links of clusters and by random walks, and the methods that use them, against literal references."""

import itertools
import os
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import oracles
import pytest
from conftest import MANY_SHAPES, peak_of, random_labels, refused, shapes, structured_labels
from scipy.sparse import csr_array
from sklearn.cluster import KMeans

import gpuens as ge
from gpuens.partition import embedding as transfer_cut_embedding
from gpuens.partition import meta_clustering
from gpuens.partition.medoids import pam
from gpuens.partition.transfer_cut import mean_similarities
from gpuens.reduction import core_groups
from gpuens.runtime.device import to_host
from gpuens.similarity.trajectories import cosines_of_walks

METHODS = ["lce", "weac", "ecpcs-hc", "ecpcs-mc", "gp-mgla", "pta", "ptgp", "drec", "mcla", "rock", "limbo"]


@pytest.fixture(params=shapes(["few clusterings", "missing, repeated rows", "structured, no noise", "one row"]))
def labels(request):
    return MANY_SHAPES[request.param]()


def on_objects(similarity, labels, where):
    """Return the similarity of all objects, computed from distinct rows with counts; the diagonal is 1."""
    groups = core_groups(ge.Rows(labels, device=where))
    found = similarity(groups.rows)
    tile = found.tile(groups.rows, 0, len(groups.rows))
    np.fill_diagonal(tile, found.self_similarities(groups.rows))
    row_of = to_host(groups.row_of)
    whole = tile[np.ix_(row_of, row_of)]
    np.fill_diagonal(whole, 1.0)
    return whole


# --- similarities -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["cts", "asrs", "srs"])
def test_links_are_the_literal_ones(labels, measure, where):
    literal = getattr(oracles, measure)(labels, 0.7)
    found = ge.similarity.links(labels, measure, decay=0.7, device=where)
    np.testing.assert_allclose(found, literal, atol=1e-12)
    np.testing.assert_allclose(on_objects(ge.similarity.Links(measure, 0.7), labels, where), literal, atol=1e-12)
    block = ge.similarity.links(labels, measure, [-1, 0], [1, 0, -1], decay=0.7)
    np.testing.assert_allclose(block, literal[np.ix_([-1, 0], [1, 0, -1])], atol=1e-12)


def test_clusters_are_those_of_the_literal_walks(labels, where):
    rows = core_groups(ge.Rows(labels, device=where)).rows
    for n_steps in (1, 2, 7):
        literal = oracles.trajectories(labels, n_steps)
        np.testing.assert_allclose(ge.similarity.trajectories(rows, n_steps), literal, atol=1e-12)
    np.testing.assert_allclose(ge.similarity.Jaccard()(rows).between_clusters(rows), oracles.jaccard(labels))


@pytest.mark.parametrize(("n_neighbors", "n_steps"), [(1, 1), (3, 4), (1000, 2)])
def test_rows_are_those_of_the_literal_walks(labels, n_neighbors, n_steps, where):
    groups = oracles.core_groups(labels)
    n_neighbors = min(n_neighbors, len(groups.rows))
    literal, _ = oracles.propagated(labels, n_neighbors, n_steps)
    found = ge.similarity.propagated(labels, n_steps, n_neighbors=n_neighbors, device=where)
    np.testing.assert_allclose(found, literal[np.ix_(groups.membership, groups.membership)], atol=1e-12)


def test_weights_are_the_literal_agreement(labels, where):
    rows = core_groups(ge.Rows(labels, device=where)).rows
    for beta in (0, 1, 2.5):
        literal = oracles.weac_weights(labels, beta)
        np.testing.assert_allclose(ge.similarity.weac_weights(rows, beta), literal, atol=1e-12)
    graph = ge.similarity.AgreementLinks(beta=1.5)(rows).graph
    np.testing.assert_allclose(graph, oracles.sact(labels, 1.5), atol=1e-12)


def test_default_numbers_of_steps_and_neighbors_grow_with_the_rows():
    for n, expected in ((2, 1), (3, 1), (16, 2), (64, 4), (1599, 19), (1700, 20), (4000, 20)):
        rows = ge.Rows([np.arange(n), np.arange(n) % 2])
        found = ge.similarity.Propagated()(rows)
        assert (found.n_steps, found.n_neighbors) == (expected, expected)


def test_clusterings_without_common_objects_and_single_ones_have_weights():
    apart = np.array([[0, -1], [1, -1], [-1, 0], [-1, 1]])
    assert ge.similarity.weac_weights(apart).tolist() == [1.0, 1.0]
    assert ge.similarity.weac_weights([[0, 0, 1]]).tolist() == [1.0]
    third = np.column_stack([apart, [0, 1, 1, 1]])
    assert ge.similarity.weac_weights(third)[2] == 1.0


def test_clusters_without_links_are_similar_to_themselves_alone():
    labels = np.array([[0, 0], [0, 1], [1, -1], [1, -1]])
    assert ge.similarity.trajectories(labels)[1].tolist() == [0.0, 1.0, 0.0, 0.0]
    for measure in ("cts", "asrs", "srs"):
        assert ge.similarity.links(labels, measure)[0, 2] == 0.0


def test_forgotten_pairs_are_computed_again():
    import pickle

    rows = core_groups(ge.Rows(MANY_SHAPES["structured"]())).rows
    found = ge.similarity.Propagated()(rows)
    expected = found.tile(rows, 0, 9)
    found.free_memory()
    np.testing.assert_array_equal(found.tile(rows, 0, 9), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).tile(rows, 0, 9), expected)


# --- outputs of the authors' programs ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authors():
    """Return a function that loads the outputs of an author's program."""
    setting = os.environ.get("GPUENS_DATA")
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = (Path(setting).parent if setting else beside) / "oracles"
    if not folder.is_dir():
        pytest.skip("needs the outputs of the authors' programs beside the data sets")
    return lambda name: np.load(folder / f"{name}.npz")


def same_partitions(estimator, given, key="labels"):
    for k, expected in zip(given["ks"].astype(int), given[key].T, strict=True):
        assert ge.metrics.ari(estimator.set_params(n_clusters=int(k)).fit_predict(given["L"]), expected) == 1.0


@pytest.mark.parametrize("data", ["iris", "iris5"])
@pytest.mark.parametrize("measure", ["CTS", "ASRS", "SRS"])
def test_lce_is_the_authors(authors, measure, data):
    given = authors(f"{data}_LCE_{measure}")
    np.testing.assert_allclose(ge.similarity.links(given["L"], measure.lower()), given["S"], atol=1e-12)
    for key, post in (("labels_al", "average"), ("labels_sl", "single"), ("labels_cl", "complete")):
        same_partitions(ge.LCE(measure=measure.lower(), post=post), given, key)


def test_weac_is_the_authors(authors):
    given = authors("iris_WEAC")
    np.testing.assert_allclose(ge.similarity.weac_weights(given["L"], beta=1), given["ncai"], atol=1e-12)
    np.testing.assert_allclose(on_objects(ge.similarity.Agreement(), given["L"], "cpu"), given["S"], atol=1e-12)
    for key, linkage in (("labels_al", "average"), ("labels_sl", "single")):  # ties decide complete linkage
        same_partitions(ge.WEAC(linkage=linkage), given, key)


def test_ecpcs_is_the_authors(authors):
    given = authors("iris_ECPCS_HC")
    np.testing.assert_allclose(ge.similarity.trajectories(given["L"]), given["clsSimRW"], atol=1e-12)
    np.testing.assert_allclose(on_objects(ge.similarity.Trajectories(), given["L"], "cpu"), given["ECA"], atol=1e-12)
    same_partitions(ge.ECPCSHC(), given)
    same_partitions(ge.ECPCSMC(), authors("iris_ECPCS_MC"))


@pytest.mark.filterwarnings("ignore:n_clusters=. merges")
def test_pta_and_ptgp_are_the_authors(authors):
    given = authors("iris_PTA")
    row_of = given["mcLabels"][np.argsort(given["mcLabels"][:, 0]), 1]
    np.testing.assert_allclose(ge.similarity.propagated(given["L"]), given["PTS"][np.ix_(row_of, row_of)], atol=1e-12)
    same_partitions(ge.PTA(), given, "labels_al")
    same_partitions(ge.PTA(linkage="single"), given, "labels_sl")
    given = authors("iris_PTGP")
    groups = core_groups(ge.Rows(given["L"]))
    edges = mean_similarities(ge.similarity.Propagated()(groups.rows), groups.rows)
    row_of = given["mcLabels"][np.argsort(given["mcLabels"][:, 0]), 1]
    np.testing.assert_allclose(edges[groups.row_of], given["B"][row_of], atol=1e-12)
    same_partitions(ge.PTGP(), given)


def margins(points, labels):
    """Return, for each point, the squared distance to the second nearest center minus that to its own center."""
    names, own = np.unique(labels, return_inverse=True)
    centers = np.array([points[own == q].mean(axis=0) for q in range(len(names))])
    squared = ((points[:, None] - centers) ** 2).sum(axis=2)
    nearest = squared[np.arange(len(points)), own]
    squared[np.arange(len(points)), own] = np.inf
    return squared.min(axis=1) - nearest


def test_gp_mgla_is_the_authors(authors):
    given = authors("iris_GPMGLA")
    rows = ge.Rows(given["L"])
    links = ge.similarity.AgreementLinks()(rows)
    np.testing.assert_allclose(links.graph, given["SACT"], atol=1e-12)
    for k, expected in zip(given["ks"].astype(int).tolist(), given["labels"].T, strict=True):
        points, _ = transfer_cut_embedding(rows, links.weights, k, links.graph)
        # The authors' k-means begins at points far from each other, of which some are tied, so that rounding decides.
        # The final clusters do not depend on it: no point leaves the authors' clusters, and none is near a tie.
        assert margins(points, expected).min() > 0.01
        assert ge.metrics.ari(ge.GPMGLA(k).fit_predict(given["L"]), expected) > 0.95


# --- methods ----------------------------------------------------------------------------------------------------------


@cache
def literal_gp_mgla():
    """Return labels, and the points and eigenvalues of their GP-MGLA graph."""
    labels = structured_labels(90, 6, 4, noise=0.3, missing=0.1, seed=3)[0]
    weights = [oracles.weac_weights(labels)[m] for m, _, _ in oracles.clusters(labels)]
    literal = np.vstack([0.5 * oracles.incidence(labels) * weights, oracles.sact(labels)])
    return labels, *oracles.bipartite_transfer_cut(literal, 3)


@pytest.mark.parametrize("dense_up_to", [2000, 0])
def test_clusters_stand_on_both_sides_of_gp_mglas_graph(dense_up_to, sizes, where):

    sizes("partition.transfer_cut", DENSE_UP_TO=dense_up_to, DENSE_IN_MEMORY_UP_TO=dense_up_to)
    labels, points, values = literal_gp_mgla()
    groups = core_groups(ge.Rows(labels, device=where))
    found = ge.similarity.AgreementLinks()(groups.rows)
    own, own_values = transfer_cut_embedding(groups.rows, found.weights, 3, found.graph)
    own = to_host(own)[to_host(groups.row_of)]
    np.testing.assert_allclose(own_values, values, atol=1e-9)
    np.testing.assert_allclose(own @ own.T, points[: len(labels)] @ points[: len(labels)].T, atol=1e-6)


def test_ptgp_cuts_the_literal_graph():
    labels = structured_labels(120, 6, 4, noise=0.3, missing=0.1, seed=4)[0]
    groups = oracles.core_groups(labels)
    pts, _ = oracles.propagated(labels, 5, 3)
    incidence = oracles.incidence(groups.rows)
    points, _ = oracles.bipartite_transfer_cut(pts @ incidence / incidence.sum(axis=0), 4)

    expected = KMeans(4, n_init=20, random_state=0).fit_predict(points)[groups.membership]
    found = ge.PTGP(4, n_neighbors=5, n_steps=3).fit_predict(labels)
    assert ge.metrics.ari(found, expected) == 1.0


def test_mcla_is_meta_clustering_of_jaccard_similarities(where):
    labels = structured_labels(200, 8, 4, missing=0.1, seed=5)[0]
    rows = ge.Rows(labels)
    expected = meta_clustering(oracles.jaccard(labels), rows, 4)
    est = ge.MCLA(4, device=where).fit(labels)
    assert ge.metrics.ari(est.labels_, expected.labels) == 1
    by_size = [expected.labels[est.labels_ == cluster][0] for cluster in range(4)]  # clusters are numbered by size
    np.testing.assert_array_equal(est.membership_, expected.membership(rows)[:, by_size])


def test_objects_go_to_the_meta_cluster_of_the_literal_normalized_cut():

    labels = structured_labels(200, 8, 4, noise=0.2, missing=0.1, seed=6)[0]
    matrix = oracles.trajectories(labels)
    scale = 1 / np.sqrt(matrix.sum(axis=1))
    points = np.linalg.eigh(scale[:, None] * matrix * scale)[1][:, -4:]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    of_clusters = KMeans(4, n_init=20, random_state=0).fit_predict(points)
    found = ge.ECPCSMC(4).fit(labels)
    assert ge.metrics.ari(found.meta_clusters_, of_clusters) == 1.0
    associated = oracles.association(labels, found.meta_clusters_.tolist())
    np.testing.assert_array_equal(found.labels_, associated.argmax(axis=1))


@pytest.mark.filterwarnings("ignore:n_clusters=3 merges")
@pytest.mark.parametrize("threshold", [None, 0.2, 1 / 3])
def test_rock_merges_by_the_jaccard_similarity_of_label_sets(threshold, where):
    labels = structured_labels(70, 7, 3, noise=0.3, missing=0.1, seed=3)[0]
    shared = ((labels[:, None] == labels) & (labels[:, None] >= 0)).sum(axis=2)
    found = ge.ROCK(3, threshold=threshold, device=where).fit(labels)
    if threshold is None:
        mean = oracles.mean_over_pairs(shared)
        threshold = pytest.approx(mean / (2 * labels.shape[1] - mean))
    assert found.threshold_ == threshold
    jaccard = shared / (2 * labels.shape[1] - shared)
    merges = oracles.greedy_rock(labels, jaccard, found.threshold_)
    linked = [(a, b, good) for a, b, good in merges[: len(found.merges_.kept)] if good > 0]
    # pairs of clusters with links merge before pairs without links
    for one, other in zip(found.merges_[1:], zip(*linked, strict=True), strict=True):
        np.testing.assert_allclose(one[: len(linked)], other, rtol=1e-12)
    assert len(linked) > 20
    assert not found.merges_.goodness[len(linked) :].any()


def information_lost(a, b):
    """Return (p_a + p_b) JS(P_a, P_b) in bits for two clusters, each a pair (share, distribution over labels)."""
    (p, of_a), (q, of_b) = a, b
    mixed = (p * of_a + q * of_b) / (p + q)
    return sum(w * x * np.log2(x / z) for w, of in ((p, of_a), (q, of_b)) for x, z in zip(of, mixed, strict=True) if x)


@cache
def literal_limbo(shape):
    """Return labels of a shape, their incidence matrix, LIMBO's four clusters, and the losses of its merges."""
    labels = MANY_SHAPES[shape]()
    groups, n_clusterings = oracles.core_groups(labels), labels.shape[1]
    incidence = oracles.incidence(labels) / n_clusterings
    of = [np.flatnonzero(groups.membership == g) for g in range(len(groups.rows))]
    held = {g: (len(own) / len(labels), incidence[own[0]]) for g, own in enumerate(of)}
    losses = []
    while len(held) > 4:
        a, b = min(combinations(held, 2), key=lambda pair: (round(information_lost(*map(held.get, pair)), 12), pair))
        losses.append(information_lost(held[a], held[b]))
        (p, of_a), (q, of_b) = held[a], held.pop(b)
        held[a] = p + q, (p * of_a + q * of_b) / (p + q)
    return labels, incidence, list(held.values()), losses


@pytest.mark.parametrize("shape", ["noise", "missing, repeated rows", "structured"])
def test_limbo_loses_the_least_information(shape, where):
    labels, incidence, clusters, losses = literal_limbo(shape)
    found = ge.LIMBO(4, device=where).fit(labels)
    np.testing.assert_allclose(found.losses_[0], losses[0], atol=1e-12)
    if shape != "noise":  # in noise, many losses are equal, and rounding decides
        np.testing.assert_allclose(found.losses_, losses, atol=1e-12)
        one = [[information_lost((1 / len(labels), row), other) for other in clusters] for row in incidence]
        assert ge.metrics.ari(found.labels_, np.argmin(one, axis=1)) == 1.0
    np.testing.assert_array_equal(found.predict(labels), found.labels_)


def assert_no_better_exchange(distances, weights, k):
    """Assert that no exchange of a medoid for another object is better than PAM's medoids; return the objective."""

    def total(medoids):
        return float(weights @ distances[:, list(medoids)].min(axis=1))

    medoids, objective = pam(distances, weights, k)
    assert len(set(medoids.tolist())) == k
    assert objective == pytest.approx(total(medoids))
    exchanged = (set(medoids.tolist()) - {a} | {b} for a in medoids.tolist() for b in range(len(distances)))
    assert objective <= min(total(other) for other in exchanged if len(other) == k) + 1e-12
    return objective, total


def test_pam_finds_no_better_exchange():
    rng = np.random.default_rng(0)
    for n, k in ((12, 3), (9, 1), (6, 6), (15, 2)):
        points = rng.standard_normal((n, 2))
        distances = np.linalg.norm(points[:, None] - points, axis=2)
        objective, total = assert_no_better_exchange(distances, rng.integers(1, 5, n).astype(float), k)
        if n <= 12:  # for few objects, PAM comes close to the best possible choice of medoids
            assert objective <= 1.1 * min(total(each) for each in combinations(range(n), k))


@pytest.mark.parametrize("k", [2, 5, 8])
def test_pam_ends_where_distances_are_negative(k):
    """Similarities above 1, as of ECRMC, give negative distances. Here many distances are equal."""
    for seed in range(20):
        assert_no_better_exchange(np.random.default_rng(seed).integers(-5, 0, (8, 8)).astype(float), np.ones(8), k)
    est = ge.Consensus(2, similarity="jaccard", partitioner="pam").fit([[0, 0, 0, 1], [0, 0, 1, 1]])
    assert est.objective_ >= 0
    assert est.labels_.tolist() in ([0, 0, 0, 1], [0, 0, 1, 1])


RANGES = [*(ge.similarities().keys() - {"mapping"}), "links:measure=asrs", "links:measure=srs"]  # mapping: sums


@pytest.mark.filterwarnings("ignore:n_clusters=3 merges")
@pytest.mark.parametrize("linkage", ["average", "single", "complete"])
@pytest.mark.parametrize("similarity", sorted(RANGES))
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_distances_of_linkages_are_from_0_to_1(similarity, linkage, missing):
    """So a distance threshold means the same for every similarity."""
    labels = random_labels(40, 6, 4, missing=missing, seed=5)
    labels[20:] = labels[0]  # clear clusters, whose distances are small
    if similarity in ("common-neighbors", "propagated") and linkage == "average":
        return  # refused: similarities of pairs of rows
    distances = ge.Consensus(3, similarity=similarity, partitioner=linkage).fit(labels).distances_
    assert -1e-12 <= distances.min() <= distances.max() <= 1 + 1e-12


def test_jaccard_distances_are_those_of_the_literal_means():
    labels = structured_labels(40, 6, 3, noise=0.1, seed=2)[0]
    literal = 1 - oracles.jaccard_of_objects(labels)
    est = ge.Consensus(3, similarity="jaccard", partitioner="single").fit(labels)
    rows, row_of = est.reduction_.rows, est.reduction_.row_of
    np.testing.assert_allclose(1 - est.similarity_.tile(rows, 0, len(rows))[np.ix_(row_of, row_of)], literal)
    est = ge.Consensus(similarity="jaccard", partitioner="average:distance_threshold=0.6").fit(labels)
    assert 1 < est.n_clusters_ < len(rows)


@pytest.mark.parametrize("measure", ["cts", "asrs"])
def test_medoids_of_rows_are_those_of_their_objects(measure):
    labels = random_labels(60, 6, (2, 5), distinct=25, seed=2)
    found = ge.LCE(4, measure=measure, post="pam").fit(labels)
    literal = 1 - getattr(oracles, measure)(labels)
    row_of = found.reduction_.row_of
    medoids = [int(np.flatnonzero(row_of == g)[0]) for g in found.medoids_]
    assert found.objective_ == pytest.approx(literal[:, medoids].min(axis=1).sum())
    _, objective = pam(literal, np.ones(len(labels)), 4)
    assert found.objective_ == pytest.approx(objective)


@pytest.mark.parametrize("post", ["single", "complete", "pam", "spectral"])
def test_lce_by_other_ends(post):
    labels, truth = structured_labels(150, 8, 4, noise=0.1, seed=11)
    assert ge.metrics.ari(ge.LCE(4, post=post).fit_predict(labels), truth) > 0.9


@pytest.mark.filterwarnings("ignore:found only")
@pytest.mark.parametrize("method", METHODS)
def test_bad_parameters_are_refused_in_one_sentence(method):
    kind, labels = ge.methods()[method], [[0, 0, 1, 1], [0, 1, 1, 1]]
    for name, value, error in (
        ("beta", -1, ValueError), ("beta", "x", TypeError), ("alpha", 0, ValueError), ("n_steps", 0, ValueError),
        ("n_neighbors", 1.5, TypeError), ("linkage", "ward", ValueError), ("measure", "wct", ValueError),
        ("decay", 1.5, ValueError), ("post", "ward", ValueError), ("n_init", 0, ValueError),
        ("imbalance", 0, ValueError), ("threshold", 2, ValueError),
    ):  # fmt: skip
        if name in kind._get_param_names():
            refused(lambda name=name, value=value: kind(2, **{name: value}).fit(labels), error, name)


@pytest.mark.parametrize("method", METHODS)
def test_what_does_not_fit_is_refused_before_work(method, monkeypatch):
    labels = random_labels(400, 6, 60, seed=1)
    monkeypatch.setenv("GPUENS_MEMORY", "400KB")
    refused(lambda: ge.methods()[method](3).fit(labels), MemoryError, "GPUENS_MEMORY")


BOUNDED = "AgreementLinks CommonNeighbors Coupled Jaccard LabelNeighbors Links Propagated Trajectories"


@pytest.mark.parametrize("name", BOUNDED.split())
def test_measures_refuse_before_work_what_does_not_fit(name, monkeypatch):
    kind, labels = getattr(ge.similarity, name), random_labels(400, 6, 60, seed=1)
    kind().refuse_too_many(ge.Rows(labels))
    monkeypatch.setenv("GPUENS_MEMORY", "100KB")
    monkeypatch.setattr(kind, "__call__", lambda *_: pytest.fail("work has begun"))
    refused(lambda: kind().refuse_too_many(ge.Rows(labels)), MemoryError, "GPUENS_MEMORY")
    # a partitioner that accepts every similarity
    est = ge.Consensus(3, similarity=kind(), partitioner=ge.partition.Partitioner())
    refused(lambda: est.fit(labels), MemoryError, "GPUENS_MEMORY")


def test_a_missing_label_may_count_as_the_mean():
    """A missing label counts as zero or as the mean.

    The two similarities differ by a constant: 0 without missing labels.
    """
    labels = random_labels(50, 4, (2, 5), seed=3)
    labels[::3, 1] = labels[::7, 3] = -1
    rows = ge.Rows(labels)
    expected = np.zeros((50, 50))
    for m, block in enumerate(ge.similarity.Trajectories()(rows).matrices()):
        there = labels[:, m] >= 0
        mean = block[np.ix_(labels[there, m], labels[there, m])].mean()
        similar = np.where(there[:, None] & there, block[np.ix_(labels[:, m], labels[:, m])], mean)
        expected += (similar - (0 if there.all() else mean)) / 4
    tile = ge.similarity.Trajectories(missing="mean")(rows).tile(rows, 0, 50)
    np.testing.assert_allclose(tile, expected, atol=1e-12, rtol=0)


def test_there_is_no_mean_of_a_clustering_that_no_row_has_a_label_of():
    """A node of a CA-tree has no label in a clustering if most members of the node have no label in this clustering."""
    fitted = ge.ECPCSHC(1, reduction="catree:1.0,gamma=0.5")
    fitted.fit([[0, 0, 0, 0, 1, 1], [0, -1, -1, -1, 1, -1], [0, 0, 0, 1, 1, 1]])
    rows = fitted.reduction_.rows
    assert (np.add.reduceat(rows.cluster_sizes(), rows.offsets[:-1]) == 0).any()
    assert np.isfinite(ge.similarity.Trajectories(missing="mean")(rows).whole_matrix).all()


@pytest.mark.parametrize("n_steps", [1, 2, 3, 7, 20])
def test_walks_of_dense_steps_double(n_steps):
    similar = np.random.default_rng(0).random((30, 30)) ** 4
    found, expected = (cosines_of_walks(form(similar), n_steps) for form in (np.array, csr_array))
    np.testing.assert_allclose(found, expected, atol=1e-14, rtol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("n_neighbors", [None, 300, 1000])
def test_walks_take_the_memory_that_is_asked_for(n_neighbors, foreseen):
    rows = ge.Rows(np.array(list(itertools.product([0, 1], repeat=10))))
    walked = ge.similarity.Propagated(2, n_neighbors)
    walked(rows).matrix  # noqa: B018 - the first call imports packages, which takes memory of its own
    assert 0.85 * foreseen[-1] < peak_of(lambda: walked(rows).matrix) < foreseen[-1]


@pytest.mark.parametrize("k", [3, 600, 1190])
def test_pam_takes_the_memory_that_is_asked_for(k, foreseen):
    rows = ge.Rows(random_labels(1200, 8, 6, seed=1))
    similarity, pam = ge.similarity.Coassociation()(rows), ge.partition.Medoids()
    pam(similarity, rows, 2)  # the first call imports packages, which takes memory of its own
    pam.refuse_too_many(rows, k, "diagonal")
    assert 0.7 * foreseen[-1] < peak_of(lambda: pam(similarity, rows, k)) < 1.03 * foreseen[-1]
