"""Every pair of similarity and partitioner equals a named method or a literal run on N × N, or raises one sentence."""

import functools
import itertools

import emulator
import numpy as np
import oracles
import pytest
from conftest import random_labels, similarities
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans

import gpuens as ge
from gpuens.partition import embedding as transfer_cut_embedding
from gpuens.partition import metis, rock
from gpuens.partition.medoids import pam
from gpuens.partition.meta_clustering import meta_clustering
from gpuens.partition.spectral import embedding
from gpuens.similarity.base import Features

K = 3
pytestmark = [  # ROCK warns if it merges clusters without links
    pytest.mark.filterwarnings("ignore:n_clusters=3 merges"),
]
NAMED = {
    ("coassociation", "average"): ge.EAC(K),
    ("coassociation", "single"): ge.EAC(K, linkage="single"),
    ("coassociation", "complete"): ge.EAC(K, linkage="complete"),
    ("coassociation", "transfer-cut"): ge.HBGF(K),
    ("coassociation", "metis"): ge.CSPA(K),
    ("lwca", "average"): ge.LWEA(K),
    ("lwca", "single"): ge.LWEA(K, linkage="single"),
    ("lwca", "complete"): ge.LWEA(K, linkage="complete"),
    ("lwca", "transfer-cut"): ge.LWGP(K),
    ("coupled", "metis"): ge.OCIa(K),
    ("coupled", "label-kmeans"): ge.CgC(K),
    ("coupled", "meta-clusters"): ge.CrCIa(K),
    ("common-neighbors", "rock"): ge.OCH(K),
    ("common-neighbors", "meta-clusters"): ge.CrCC(K),
    ("mapping", "average"): ge.ECRMC(K),
    ("agreement", "average"): ge.WEAC(K),
    ("links", "average"): ge.LCE(K),
    ("links", "pam"): ge.LCE(K, post="pam"),
    ("links", "spectral"): ge.LCE(K, post="spectral"),
    ("jaccard", "meta-clusters"): ge.MCLA(K),
    ("propagated", "single"): ge.PTA(K, linkage="single"),
    ("trajectories", "average"): ge.ECPCSHC(K),
}
REFUSED = {
    ("common-neighbors", "average"): "similarities of all clusters",
    ("common-neighbors", "transfer-cut"): "a weight of each cluster",
    ("common-neighbors", "label-kmeans"): "similarities within clusterings",
    ("common-neighbors", "spectral"): "similarities of all clusters",
    ("coupled", "transfer-cut"): "a weight of each cluster",
    ("mapping", "label-kmeans"): "similarities within clusterings",
    ("mapping", "meta-clusters"): "similarities that are not negative",
    ("mapping", "metis"): "similarities that are not negative",
    ("mapping", "rock"): "similarities that are not negative",
    ("mapping", "spectral"): "similarities that are not negative",
    ("mapping", "transfer-cut"): "a weight of each cluster",
    ("jaccard", "label-kmeans"): "similarities within clusterings",
    ("jaccard", "transfer-cut"): "a weight of each cluster",
    ("links", "transfer-cut"): "a weight of each cluster",
    ("propagated", "average"): "similarities of all clusters",
    ("propagated", "label-kmeans"): "similarities within clusterings",
    ("propagated", "spectral"): "similarities of all clusters",
    ("propagated", "transfer-cut"): "a weight of each cluster",
    ("trajectories", "transfer-cut"): "a weight of each cluster",
}
PAIRS = list(itertools.product(sorted(ge.similarities()), sorted(ge.partitioners())))
LITERAL = [pair for pair in PAIRS if pair not in REFUSED]
# One similarity of each kind. Other similarities of the same kind differ only in their values.
ANYWHERE = [pair for pair in LITERAL if pair[0] in ("coassociation", "lwca", "coupled", "jaccard", "common-neighbors")]
ANYWHERE += [(name, "metis") for name in ("agreement", "links", "propagated", "trajectories")]

FEATURES = np.random.default_rng(5).standard_normal((70, 3))


TRUTH = np.repeat([0, 1, 2], [30, 25, 15])


@pytest.fixture(scope="module")
def labels():
    """Return distinct label rows in lexicographic order; their objects belong to three classes (`TRUTH`)."""
    noisy = np.random.default_rng(4)
    different = [np.where(noisy.random(70) < 0.45, noisy.integers(k, size=70), TRUTH) for k in (3, 4, 5) * 4]
    found = np.column_stack(different)
    found[noisy.random(found.shape) < 0.05] = -1
    groups = ge.CoreGroups().reduce(found)
    assert len(groups.rows) == len(found)
    TRUTH[groups.row_of] = TRUTH.copy()
    return groups.ensemble.to_array()


def consensus(similarity, partitioner, labels, **given):
    features = {"features": FEATURES} if similarity == "mapping" else {}
    return ge.Consensus(K, similarity=similarity, partitioner=partitioner, **given).fit(labels, **features)


def test_the_table_is_of_all_pairs():
    assert NAMED.keys() | REFUSED.keys() <= set(PAIRS)
    assert len(PAIRS) == 100


@pytest.mark.parametrize("pair", NAMED, ids=" × ".join)
@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_a_named_method_is_its_pair(labels, pair, where):
    # If a sample is fitted, the method and its pair must assign the objects outside the sample by the same rule.
    reduction = ge.Sample(40) if where == "emulated" else None
    similarity, partitioner = pair
    if isinstance(NAMED[pair], (ge.CrCIa, ge.CrCC)):
        partitioner += ":others=similarity"
    if isinstance(NAMED[pair], ge.ECPCSHC):
        similarity += ":missing=mean"
    found = consensus(similarity, partitioner, labels, device=where, reduction=reduction)
    features = {"features": FEATURES} if "mapping" in pair else {}
    expected = NAMED[pair].set_params(device=where, reduction=reduction).fit(labels, **features)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    if reduction is None and hasattr(expected, "distances_"):
        np.testing.assert_array_equal(found.distances_, expected.distances_)


@pytest.mark.parametrize("pair", REFUSED, ids=" × ".join)
def test_what_has_no_meaning_is_refused_and_what_has_is_named(labels, pair):
    similarity, partitioner = pair
    with pytest.raises(ValueError, match=REFUSED[pair]) as refused:
        ge.Consensus(K, similarity=similarity, partitioner=partitioner).fit(labels)
    named = str(refused.value).split("take one of ")[1].rstrip(".").split(", ")
    assert named == sorted(other for name, other in LITERAL if name == similarity)


# --- literal runs -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def literal_of(labels):
    """Return a function that computes the matrix of a similarity once."""
    return functools.cache(lambda similarity: matrix(similarity, labels))


def matrix(similarity, labels):
    """Return an array (N, N) with the similarities of all pairs of objects."""
    if similarity == "coassociation":
        return oracles.coassociation(labels)
    if similarity == "lwca":
        return ge.similarity.lwca(labels)
    if similarity == "coupled":
        return oracles.iaoso(labels)
    if similarity == "common-neighbors":
        return oracles.ccoso(labels, None)
    if similarity == "agreement":
        weights = oracles.weac_weights(labels)
        of_clusters = [weights[m] for m, _, _ in oracles.clusters(labels)]
        return oracles.coassociation(labels, of_clusters) * len(weights) / weights.sum()
    if similarity == "links":
        return oracles.cts(labels)
    if similarity == "propagated":
        return oracles.propagated(labels, 4, 4)[0]
    if similarity == "jaccard":
        return oracles.jaccard_of_objects(labels)
    if similarity == "trajectories":
        b, of = oracles.incidence(labels), [m for m, _, _ in oracles.clusters(labels)]
        return b @ (oracles.trajectories(labels) * np.equal.outer(of, of)) @ b.T / labels.shape[1]
    found = ge.Consensus(K, similarity=similarity).fit(labels, features=FEATURES)
    return oracles.revised_coassociation(labels, found.cluster_similarity_)


@pytest.mark.parametrize("pair", LITERAL, ids=" × ".join)
def test_a_pair_is_what_it_says_on_all_pairs_of_objects(labels, literal_of, pair):
    similarity, partitioner = pair
    found, literal = consensus(*pair, labels), literal_of(similarity).copy()
    CHECKS[partitioner](found, literal, ge.Rows(labels), similarity)
    assert found.n_clusters_ == len(np.unique(found.labels_)) <= K


def check_linkage(found, literal, rows, similarity):
    """Check that the heights equal SciPy's.

    Linkages other than single linkage are checked only where no ties decide.
    """
    kind = found.partitioner
    if kind != "single" and similarity in ("coassociation", "common-neighbors"):
        literal_of_cut = [literal[np.ix_(found.labels_ == c, found.labels_ == c)] for c in range(K)]
        assert np.mean([block.mean() for block in literal_of_cut]) > literal.mean()
        return
    distances = literal.max() - literal
    np.fill_diagonal(distances, 0.0)
    heights = linkage(squareform(distances, checks=False), kind)[:, 2]
    expected = np.sort(literal.max() - heights)[::-1]
    np.testing.assert_allclose(found.dendrogram_.similarities, expected, atol=1e-12)


def check_metis(found, literal, rows, similarity):
    np.testing.assert_array_equal(found.labels_, oracles.by_size(metis(literal, rows.counts, K)))


def check_rock(found, literal, rows, similarity):
    scale = {"coassociation": rows.n_clusterings, "common-neighbors": len(rows)}.get(similarity, 2.0**45)
    links = np.rint(literal * scale).astype(np.int64)
    expected = rock(lambda a, b: links[a:b, a:], rows.counts, K, found.threshold_)
    np.testing.assert_array_equal(found.labels_, oracles.by_size(expected.labels))
    unit = 1.0 if similarity == "common-neighbors" else scale  # links of common neighbours are counts already
    np.testing.assert_allclose(found.merges_.goodness, expected.goodness / unit, rtol=1e-9, atol=1e-12)


def check_label_kmeans(found, literal, rows, similarity):
    """Check that the objective is that of the literal features, and that each object has its nearest centroid."""
    features = []
    for m, block in enumerate(np.split(found.similarity_.full(), rows.offsets[1:-1], axis=1)):
        own = block[rows.offsets[m] : rows.offsets[m + 1]]
        own, codes = own - own.mean(axis=0), rows.ensemble.to_array()[:, m]
        features.append(np.where(codes[:, None] < 0, 0.0, own[codes]))
    points = np.concatenate(features, axis=1)
    centers = np.array([points[found.labels_ == c].mean(axis=0) for c in range(K)])
    squared = ((points[:, None] - centers) ** 2).sum(axis=2)
    np.testing.assert_allclose(found.objective_, squared[np.arange(len(points)), found.labels_].sum(), rtol=1e-9)
    assert (squared.min(axis=1) >= squared[np.arange(len(points)), found.labels_] - 1e-9).all()


def check_meta_clusters(found, literal, rows, similarity):
    codes, offsets = rows.ensemble.to_array(), rows.offsets
    held = np.concatenate(
        [codes[:, m : m + 1] == np.arange(offsets[m + 1] - offsets[m]) for m in range(codes.shape[1])], 1
    )
    held = held.astype(float)
    if similarity in ("jaccard", "trajectories"):  # Jaccard and trajectories compare clusters directly
        assert found.similarity_.between_clusters(rows) == pytest.approx(getattr(oracles, similarity)(codes))
        return
    if similarity == "common-neighbors":  # an object and itself have all neighbours of the object in common
        literal = similarities(ge.similarity.CommonNeighbors(), rows)
    between = held.T @ literal @ held / np.outer(held.sum(axis=0), held.sum(axis=0))
    expected = meta_clustering((between + between.T) / 2, rows, K)
    np.testing.assert_array_equal(found.labels_, expected.labels)
    np.testing.assert_array_equal(found.meta_clusters_, expected.results["meta_clusters"])


def check_spectral(found, literal, rows, similarity):
    if similarity == "links":  # an object is as similar to itself as to another object with the same labels
        np.fill_diagonal(literal, found.similarity_.self_similarities(rows))
    scale = 1 / np.sqrt(literal.sum(axis=1))
    values, vectors = np.linalg.eigh(scale[:, None] * literal * scale)
    points = vectors[:, -K:]
    assert values[-K] > values[-K - 1] + 1e-6, "the subspace must be one"
    points /= np.sqrt((points * points).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found.eigenvalues_, values[: -K - 1 : -1], rtol=1e-9)
    own, _ = embedding(found.similarity_, rows, K)
    np.testing.assert_allclose(own @ own.T, points @ points.T, atol=1e-7)
    expected = KMeans(K, n_init=10, random_state=0).fit_predict(points)
    assert ge.metrics.ari(found.labels_, expected) == 1.0


def test_spectral_clustering_loses_no_eigenvector(labels, monkeypatch):
    """LAPACK's search for a part of the eigenvectors may lose some with equal eigenvalues."""
    from scipy import linalg

    eigh, expected = linalg.eigh, consensus("lwca", "spectral", labels)

    def loses_one(matrix, **given):
        values, vectors = eigh(matrix, **given)
        return (values[1:], vectors[:, 1:]) if "subset_by_index" in given else (values, vectors)

    monkeypatch.setattr(linalg, "eigh", loses_one)
    found = consensus("lwca", "spectral", labels)
    np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_)
    np.testing.assert_array_equal(found.labels_, expected.labels_)


def check_transfer_cut(found, literal, rows, similarity):
    """Check the embedding against the leading eigenvectors of the bipartite graph of rows and clusters."""
    codes, offsets = rows.ensemble.to_array(), rows.offsets
    incidence = np.zeros((len(rows), rows.n_clusters))
    g, m = np.nonzero(codes >= 0)
    incidence[g, offsets[m] + codes[g, m]] = 1.0
    weighted = incidence * found.similarity_.weights
    graph = np.block([[np.zeros((len(rows),) * 2), weighted], [weighted.T, np.zeros((rows.n_clusters,) * 2)]])
    scale = 1 / np.sqrt(graph.sum(axis=1))
    values, vectors = np.linalg.eigh(scale[:, None] * graph * scale)
    points = vectors[: len(rows), -K:] * values[-K:]
    points /= np.sqrt((points * points).sum(axis=1, keepdims=True))
    own, _ = transfer_cut_embedding(rows, found.similarity_.weights.astype(float), K)
    np.testing.assert_allclose(own @ own.T, points @ points.T, atol=1e-7)
    assert ge.metrics.ari(found.labels_, KMeans(K, n_init=10, random_state=0).fit_predict(points)) == 1.0


def check_pam(found, literal, rows, similarity):
    distances = 1 - literal
    np.fill_diagonal(distances, 0.0)
    medoids, objective = pam(distances, np.ones(len(rows)), K)
    assert found.objective_ == pytest.approx(objective)
    assert set(found.medoids_) == set(medoids)


CHECKS = {
    "pam": check_pam,
    "average": check_linkage,
    "single": check_linkage,
    "complete": check_linkage,
    "metis": check_metis,
    "rock": check_rock,
    "label-kmeans": check_label_kmeans,
    "meta-clusters": check_meta_clusters,
    "spectral": check_spectral,
    "transfer-cut": check_transfer_cut,
}


# --- invariances ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def repeated():
    """Return labels with many equal rows, and features that are equal for equal rows."""
    rows = random_labels(60, 6, (3, 5), missing=0.05, seed=2)
    of = np.random.default_rng(3).integers(60, size=200)
    return rows[of], FEATURES[of % len(FEATURES)]


@pytest.mark.parametrize("pair", ANYWHERE, ids=" × ".join)
def test_neither_device_nor_chunks_nor_the_order_of_objects_matter(repeated, pair):
    import dask.array as da

    labels, _ = repeated
    expected = consensus(*pair, labels)
    emulated = consensus(*pair, labels, device="emulated")
    assert ge.metrics.ari(emulated.labels_, expected.labels_) == 1.0
    in_chunks = consensus(*pair, da.from_array(labels, chunks=(64, -1)))
    np.testing.assert_array_equal(in_chunks.labels_.compute(), expected.labels_)
    order = np.random.default_rng(1).permutation(len(labels))
    np.testing.assert_array_equal(consensus(*pair, labels[order]).labels_, expected.labels_[order])


@pytest.mark.parametrize("pair", [*ANYWHERE, *(pair for pair in LITERAL if "mapping" in pair)], ids=" × ".join)
def test_predict_knows_the_objects_of_fit_and_labels_others(repeated, pair):
    labels, features = repeated
    given = {"features": features} if "mapping" in pair else {}
    for reduction in (None, ge.Sample(120), ge.CATree(0.2, 0.9)):
        est = ge.Consensus(K, similarity=pair[0], partitioner=pair[1], reduction=reduction).fit(labels, **given)
        np.testing.assert_array_equal(est.predict(labels), est.labels_)
        new = labels[:50].copy()
        new[:, 0] = 99  # a label that the fit has not seen counts as missing
        assert set(est.predict(new)) <= set(est.labels_)


def test_predict_refuses_what_it_cannot_know(labels):
    est = ge.LWEA(K).fit(labels)
    with pytest.raises(ValueError, match="expecting 12 features"):
        est.predict(labels[:, :3])
    with pytest.raises(ValueError, match=r"1 object\(s\), the first of them 1, have no known label"):
        est.predict(np.array([labels[0], np.full(12, 77)]))


def test_grid_search_scores_what_is_predicted(labels):
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(ge.LWEA(), {"n_clusters": [2, 3, 4]}, scoring="adjusted_rand_score", cv=3)
    order = np.random.default_rng(0).permutation(len(labels))
    search.fit(labels[order], TRUTH[order])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_ == {"n_clusters": 3}


# --- weights of clusterings, sums of similarities, parameters ---------------------------------------------------------


@pytest.mark.parametrize("kind", [ge.EAC, ge.LWEA, ge.HBGF, ge.LWGP])
def test_a_clustering_of_twice_the_weight_counts_twice(labels, kind):
    once, twice = labels[:, :4], labels[:, [0, 0, 1, 2, 3]]
    weighted = kind(K, weights=[2, 1, 1, 1]).fit(once)
    if kind in (ge.EAC, ge.HBGF):
        literal = kind(K).fit(twice)
        assert ge.metrics.ari(weighted.labels_, literal.labels_) == 1.0
    equal = kind(K, weights=[3.0] * 4).fit(once)
    assert ge.metrics.ari(equal.labels_, kind(K).fit(once).labels_) == 1.0
    with pytest.raises(ValueError, match="weights must be"):
        kind(K, weights=[1, 2]).fit(once)


@pytest.mark.parametrize("linkage_of", ["average", "single"])
def test_weac_weighs_clusterings_by_their_agreement(labels, linkage_of):
    est = ge.WEAC(K, beta=3, linkage=linkage_of).fit(labels)
    columns = labels.T
    nmi = np.array([[ge.metrics.nmi(a, b, average="max") for b in columns] for a in columns])
    others = nmi.sum(axis=1) - nmi.diagonal()
    np.testing.assert_allclose(est.weights_, (others / others.max()) ** 3)
    shared = (labels[:, None] == labels) & (labels[:, None] >= 0)
    literal = (shared * est.weights_).sum(axis=2) / est.weights_.sum()
    distances = 1 - literal
    np.fill_diagonal(distances, 0.0)
    heights = linkage(squareform(distances, checks=False), linkage_of)[:, 2]
    np.testing.assert_allclose(est.dendrogram_.similarities, 1 - heights, atol=1e-12)


def test_sums_of_similarities(labels):
    rows = ge.Rows(labels)
    a, b = ge.similarity.Coassociation()(rows), ge.similarity.Coupled()(rows)
    both = 0.25 * a + 0.75 * b
    expected = 0.25 * oracles.coassociation(labels) + 0.75 * oracles.iaoso(labels)
    np.testing.assert_allclose(both.tile(rows, 0, len(rows)), expected, atol=1e-12)
    np.testing.assert_allclose(both.self_similarities(rows), expected.diagonal(), atol=1e-12)
    clusters = np.arange(len(rows)) % K
    sums = both.sums(rows, clusters)(rows)
    np.testing.assert_allclose(sums, expected @ (clusters[:, None] == np.arange(K)), atol=1e-9)


def test_similarities_respect_counts(repeated):
    labels, _ = repeated
    groups = ge.CoreGroups().reduce(labels)
    first = np.unique(groups.row_of, return_index=True)[1]
    similarity = ge.similarity
    for measure in (similarity.LWCA(), similarity.Coassociation(), similarity.Coupled(), similarity.CommonNeighbors()):
        whole, reduced = similarities(measure, labels), similarities(measure, groups.rows)
        different = ~np.eye(len(first), dtype=bool)
        np.testing.assert_allclose(reduced[different], whole[np.ix_(first, first)][different], atol=1e-12)
    np.testing.assert_allclose(ge.similarity.eci(groups.rows), ge.similarity.eci(labels))


@pytest.mark.parametrize("reduction", [ge.CATree(0.2), ge.Sample(100)], ids=repr)
def test_reductions_work_where_the_device_says(repeated, reduction):
    with emulator.recorded() as launches:
        ge.EAC(K, reduction=reduction).fit(repeated[0])
        assert launches == []
        ge.EAC(K, reduction=reduction, device="emulated").fit(repeated[0])
    launched = {launch.kernel for launch in launches}
    assert "pack_rows" in launched
    assert ("common_prefixes" in launched) == isinstance(reduction, ge.CATree)


def test_parts_by_name_and_by_object(labels):
    by_object = ge.Consensus(K, similarity=ge.similarity.LWCA(theta=0.2), partitioner=ge.partition.METIS(0.1))
    by_name = ge.Consensus(K, similarity="lwca:theta=0.2", partitioner="metis:imbalance=0.1")
    np.testing.assert_array_equal(by_object.fit_predict(labels), by_name.fit_predict(labels))
    with pytest.raises(ValueError, match="similarity must be one of"):
        ge.Consensus(K, similarity="nothing").fit(labels)
    with pytest.raises(TypeError, match="partitioner must be a name"):
        ge.Consensus(K, partitioner=3).fit(labels)
    with pytest.raises(TypeError, match="features are not given"):
        ge.Consensus(K, similarity="mapping").fit(labels)
    with pytest.raises(TypeError, match="features were given"):
        ge.Consensus(K).fit(labels, features=FEATURES)


def test_a_new_method_is_a_similarity_and_a_partitioner(labels):
    from dataclasses import dataclass

    from gpuens.similarity import Blocks, Measure

    @dataclass(frozen=True)
    class Jaccard(Measure):
        """CSPA's similarity, but different clusters of one clustering have a constant similarity instead of 0."""

        shared: float = 0.1
        kind = "blocks"

        def __call__(self, rows, features: Features | None = None):
            return Blocks([np.full((k, k), self.shared) + (1 - self.shared) * np.eye(k) for k in np.diff(rows.offsets)])

    for partitioner in ("average", "single", "complete", "metis", "rock", "label-kmeans", "meta-clusters", "spectral"):
        found = ge.Consensus(K, similarity=Jaccard(), partitioner=partitioner).fit(labels)
        assert found.n_clusters_ == K, partitioner
