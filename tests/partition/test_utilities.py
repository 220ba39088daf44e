"""KCC, QMI, ECC and SEC compared with loops over objects and clusterings that follow the formulas."""

import math

import numpy as np
import pytest
from conftest import random_labels, refused, structured_labels
from sklearn.base import clone
from sklearn.cluster import KMeans

import gpuens as ge
from gpuens.labels.rows import Rows
from gpuens.partition.label_kmeans import _LloydRun
from gpuens.partition.utilities import Utility, spectral, unlike_labels

pytestmark = pytest.mark.filterwarnings("ignore:found only . of . clusters")

CLEAR = structured_labels(200, 8, 4, noise=0.15, split=2, missing=0.1, seed=1)[0]
NOISE = random_labels(150, 5, (2, 5), missing=0.2, seed=2)
WHOLE = random_labels(150, 5, (2, 5), seed=3)
KINDS = [("uc", 2.0), ("uh", 2.0), ("ucos", 2.0), ("ulp", 3.0), ("ulp", 8.0)]
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0, 3.0])


# --- the oracle -------------------------------------------------------------------------------------------------------


def distribution(column):
    """Return {label: share} of the known labels."""
    known = [v for v in column if v >= 0]
    return {v: known.count(v) / len(known) for v in set(known)}


def convex(P, kind, p):
    if kind == "uc":
        return sum(x**2 for x in P.values())
    if kind == "uh":
        return sum(x * math.log2(x) for x in P.values())
    return sum(x**p for x in P.values()) ** (1 / p)


def distance(label, P, kind, p):
    share = P.get(label, 0.0)
    if kind == "uc":
        return 1 + convex(P, kind, p) - 2 * share
    if kind == "uh":
        return -math.log2(share + 2**-52)
    return 1 - (share / convex(P, kind, p)) ** (p - 1)


def centres(labels, partition):
    """Return the distribution of each cluster in each clustering.

    A cluster without labels gets the distribution of all objects.
    """
    return [
        [distribution(column[partition == r].tolist()) or distribution(column.tolist()) for column in labels.T]
        for r in range(partition.max() + 1)
    ]


def weights_of(labels, kind, p, given, normalised):
    w = np.ones(labels.shape[1]) if given is None else given / np.mean(given)
    of_all = [abs(convex(distribution(column.tolist()), kind, p)) for column in labels.T]
    return w / of_all if normalised else w


def distances(labels, centres, kind, p, w):
    return np.array([
        [sum(w[m] * distance(x[m], centre[m], kind, p) for m in range(len(x)) if x[m] >= 0) for centre in centres]
        for x in labels.tolist()
    ])  # fmt: skip


def utility(labels, found, kind, p, w):
    total = 0.0
    for m, column in enumerate(labels.T):
        of_all = distribution(column.tolist())
        known = column >= 0
        gain = -convex(of_all, kind, p)
        for r in set(found[known].tolist()):
            share = np.count_nonzero(found[known] == r) / known.sum()
            gain += share * convex(distribution(column[known & (found == r)].tolist()), kind, p)
        total += w[m] * known.mean() * gain
    return total


# --- KCC --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [CLEAR[:, :5], NOISE], ids=["clear", "noise"])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(("kind", "p"), KINDS)
def test_objective_and_utility_are_the_formulas(kind, p, normalised, labels, where):
    est = ge.KCC(4, utility=kind, p=p, normalised=normalised, weights=WEIGHTS, max_iter=100, tol=0, device=where)
    found = est.fit(labels).labels_
    w = weights_of(labels, kind, 2.0 if kind == "ucos" else p, WEIGHTS, normalised)
    literal = distances(labels, centres(labels, found), kind, p, w)
    np.testing.assert_allclose(est.objective_, literal[np.arange(len(labels)), found].sum(), rtol=1e-9)
    np.testing.assert_allclose(est.utility_, utility(labels, found, kind, p, w), rtol=1e-9)
    assert est.converged_
    # no object has a nearer centroid, so that the result is a fixed point of Lloyd's algorithm
    assert (literal[np.arange(len(labels)), found] <= literal.min(axis=1) + 1e-9).all()


@pytest.mark.parametrize("labels", [WHOLE, structured_labels(200, 8, 4, seed=4)[0]], ids=["noise", "clear"])
def test_category_utility_is_k_means_on_one_hot_labels(labels):
    onehot = np.column_stack([column[:, None] == np.unique(column) for column in labels.T]).astype(float)
    est = ge.QMI(4, n_init=20, max_iter=100, tol=0).fit(labels)
    centres = np.array([onehot[est.labels_ == r].mean(axis=0) for r in range(4)])
    theirs = KMeans(4, init=centres, n_init=1, tol=0).fit(onehot)
    np.testing.assert_array_equal(theirs.labels_, est.labels_)
    np.testing.assert_allclose(est.objective_, theirs.inertia_, rtol=1e-10)
    assert est.objective_ <= 1.02 * KMeans(4, n_init=20, random_state=0).fit(onehot).inertia_


@pytest.mark.parametrize(("name", "kind"), [("qmi", "uc"), ("ecc", "uh")])
def test_named_utilities(name, kind):
    found, expected = ge.methods()[name](4).fit(NOISE), ge.KCC(4, utility=kind).fit(NOISE)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert (found.utility_, found.objective_) == (expected.utility_, expected.objective_)


def test_the_entropy_that_ecc_minimises():
    est = ge.ECC(4).fit(WHOLE)
    columns = [column.tolist() for r in range(4) for column in WHOLE[est.labels_ == r].T]
    entropy = -sum(len(column) * convex(distribution(column), "uh", 2.0) for column in columns)
    np.testing.assert_allclose(est.objective_, entropy, rtol=1e-9)


@pytest.mark.parametrize("kind", ["uc", "uh"])
def test_more_iterations_never_raise_the_objective(kind):
    reached = [ge.KCC(5, utility=kind, n_init=1, max_iter=n, tol=0).fit(NOISE).objective_ for n in (1, 2, 3, 5, 50)]
    assert reached == sorted(reached, reverse=True)
    tolerant = ge.KCC(5, utility=kind, n_init=1, max_iter=50, tol=0.5).fit(NOISE)
    assert (tolerant.n_iter_, tolerant.converged_) == (2, True)


@pytest.mark.parametrize("normalised", [False, True])
def test_a_constant_clustering_says_nothing(normalised):
    with_constant = np.column_stack([NOISE, np.zeros(len(NOISE), dtype=int)])
    est = ge.KCC(3, utility="uh", normalised=normalised)
    with pytest.warns(UserWarning, match="constant"):
        labels = est.fit_predict(with_constant)
    np.testing.assert_array_equal(labels, est.fit_predict(NOISE))


def test_a_cluster_without_labels_in_a_clustering_is_there_like_all_objects():
    labels = np.array([[0, -1], [0, -1], [0, -1], [1, 0], [1, 0], [1, 1], [1, 0]])
    utility = Utility.of(Rows(labels), "uc")
    P = utility.distributions(np.array([[3.0, 0], [0, 4], [0, 3], [0, 1]]))
    np.testing.assert_array_equal(P, [[1, 0], [0, 1], [0.75, 0.75], [0.25, 0.25]])


@pytest.mark.parametrize("kind", ["uc", "sec"])
def test_a_new_cluster_does_not_swallow_another(kind):
    """A row has distance zero from a row with the same labels and further ones.

    But a new cluster must not take both rows.
    """
    rows = Rows(np.array([[0, 1, 1, 1], [0, -1, -1, -1], [1, 1, 1, 1], [1, 0, 0, 0]]), counts=[1, 1, 1, 4])
    search = _LloydRun(rows, spectral(rows) if kind == "sec" else Utility.of(rows, kind).divergence())
    (found,) = search.side_by_side([search.clusters(*search.divergence(search.rows.shares_at(rows.codes[1:])), 4)])
    assert sorted(found.rule(rows)) == [0, 1, 2, 3]


def test_unlike_labels():
    labels = np.array([[0, 0, -1], [0, 0, 1], [0, 0, 2], [1, 1, 0], [1, 1, -1], [1, -1, 0], [-1, 1, 0]])
    rows = Rows(labels)
    cost, const = unlike_labels(rows.offsets, rows.shares_at(rows.codes))
    literal = (labels[:, None] != labels).sum(axis=2)
    own = np.array([const + sum(cost[rows.offsets[m] + v] for m, v in enumerate(x) if v >= 0) for x in labels.tolist()])
    np.testing.assert_array_equal(own, literal)


# --- SEC --------------------------------------------------------------------------------------------------------------


def weighted_points(labels):
    shared = ((labels[:, None] == labels) & (labels[:, None] >= 0)).sum(axis=(1, 2))
    B = np.column_stack([column[:, None] == v for column in labels.T for v in np.unique(column) if v >= 0])
    return B / shared[:, None], shared.astype(float)


def means(points, weights, partition):
    return np.array([np.average(points[partition == r], axis=0, weights=weights[partition == r])
                     for r in range(partition.max() + 1)])  # fmt: skip


@pytest.mark.parametrize("labels", [CLEAR, NOISE, WHOLE], ids=["clear", "noise", "whole"])
def test_sec_is_weighted_k_means(labels, where):
    est = ge.SEC(4, n_init=10, max_iter=100, tol=0, device=where).fit(labels)
    points, weights = weighted_points(labels)
    centres = means(points, weights, est.labels_)
    theirs = KMeans(4, init=centres, n_init=1, tol=0).fit(points, sample_weight=weights)
    np.testing.assert_array_equal(theirs.labels_, est.labels_)
    np.testing.assert_allclose(est.objective_, theirs.inertia_, rtol=1e-10)
    best = KMeans(4, n_init=20, random_state=0, tol=0).fit(points, sample_weight=weights)
    assert est.objective_ <= 1.03 * best.inertia_


def test_sec_reaches_what_its_authors_program_reaches_on_iris(shared_data):
    path = shared_data.parent / "oracles" / "iris_SEC.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    theirs = np.load(path)
    points, weights = weighted_points(theirs["L"])
    for i, k in enumerate(theirs["ks"].astype(int).tolist()):
        est = ge.SEC(k).fit(theirs["L"])
        # for k = 2, one of the authors' ten random starts ends lower than all starts of gpuens
        assert est.objective_ <= np.sort(theirs["objective"][:, i])[int(k == 2)] * (1 + 1e-12)
        found = theirs["labels"][:, i].astype(int)
        literal = (weights * ((points - means(points, weights, found)[found]) ** 2).sum(axis=1)).sum()
        np.testing.assert_allclose(literal, theirs["objective"][:, i].min(), rtol=1e-12)


# --- invariances ------------------------------------------------------------------------------------------------------

ESTIMATORS = {
    **{f"{kind} {p}": ge.KCC(4, utility=kind, p=p) for kind, p in KINDS},
    "normalised": ge.KCC(4, normalised=True, weights=WEIGHTS),
    "sec": ge.SEC(4),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("restarts_on", [50, 20_000])
def test_devices_and_threads(name, restarts_on, where, monkeypatch, sizes):
    sizes("partition.label_kmeans", RESTARTS_ON=restarts_on)
    expected = clone(ESTIMATORS[name]).fit(NOISE)
    monkeypatch.setenv("GPUENS_THREADS", "3")
    est = clone(ESTIMATORS[name]).set_params(device=where).fit(NOISE)
    np.testing.assert_array_equal(est.labels_, expected.labels_)
    assert (est.objective_, est.n_iter_) == (expected.objective_, expected.n_iter_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_counts_are_repetitions(name):
    _, partitioner = ESTIMATORS[name]._parts()
    rows = Rows(NOISE, counts=np.arange(len(NOISE)) % 4 + 1)
    partition, expected = (partitioner(None, x, 4) for x in (rows, Rows(np.repeat(NOISE, rows.counts, axis=0))))
    np.testing.assert_array_equal(np.repeat(partition.labels, rows.counts), expected.labels)
    np.testing.assert_allclose(partition.results["objective"], expected.results["objective"], rtol=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_new_objects_go_to_the_nearest_centre(name):
    est = ESTIMATORS[name].fit(NOISE)
    np.testing.assert_array_equal(est.predict(NOISE), est.labels_)
    unseen = NOISE[:40].copy()
    unseen[:, 0] = -1
    unseen[:, 1] = np.where((unseen[:, 2:] < 0).all(axis=1), 0, -1)
    # a label that the fit has not seen counts as missing
    labels = est.predict(np.column_stack([np.full(40, 77), unseen[:, 1:]]))
    if name in ("uc 2.0", "uh 2.0", "ulp 3.0"):
        literal = distances(unseen, centres(NOISE, est.labels_), est.utility, est.p, np.ones(5))
        np.testing.assert_allclose(literal[np.arange(40), labels], literal.min(axis=1), atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "kind", "parts"),
    [
        ({"utility": "mi"}, ValueError, ["utility must be one of 'uc', 'ucos', 'uh', 'ulp'"]),
        ({"p": 1}, ValueError, ["p must be above 1", "is 1.0"]),
        ({"normalised": "yes"}, TypeError, ["normalised must be True or False, not 'yes'"]),
        ({"weights": [1, 2]}, ValueError, ["weights must be 5 numbers"]),
        ({"tol": -1}, ValueError, ["tol must be from 0 to 1"]),
    ],
)
def test_refusals(parameters, kind, parts):
    refused(lambda: ge.KCC(3, **parameters).fit(NOISE), kind, *parts)
