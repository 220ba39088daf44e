"""The estimators: invariances, results, error messages, and scikit-learn's conventions."""

from functools import partial

import numpy as np
import oracles
import pandas as pd
import pytest
from conftest import METHODS, NEEDS_LITTLE_NOISE, random_labels, structured_labels
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score as ari

import gpuens as ge
from gpuens.runtime import device as devices

LINKAGE_METHODS = ["eac", "ecrmc", "lwea"]

# random labels do not have three or four clusters that every method can find
NOISE = pytest.mark.filterwarnings("ignore:found only . of . clusters", "ignore:n_clusters=. merges")
TOO_UNEQUAL = "weights differ too much"
OTHER_LINKAGES = {f"eac, {linkage}": partial(ge.EAC, linkage=linkage) for linkage in ("single", "complete")}


@pytest.fixture
def ensemble():
    return structured_labels(200, 8, 4, noise=0.15, split=3, missing=0.05, seed=11)


# --- invariances ------------------------------------------------------------------------------------------------------


@NOISE
@pytest.mark.parametrize("method", [*METHODS, *OTHER_LINKAGES])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_objects_changes_nothing(method, seed):
    """The results are equal even if there are ties, but for the order of clusters of equal size.

    Random labels with unit weights have many ties.
    """
    labels = random_labels(120, 5, (2, 6), missing=0.1, seed=seed)
    order = np.random.default_rng(seed).permutation(len(labels))
    a, b = ((METHODS | OTHER_LINKAGES)[method](4).fit(x) for x in (labels, labels[order]))
    np.testing.assert_array_equal(oracles.by_size(a.labels_[order]), b.labels_)
    if not a.parts().needs_features:
        numbers, new = np.empty(a.n_clusters_, dtype=int), random_labels(200, 5, (2, 4), seed=seed + 9)
        numbers[a.labels_[order]] = b.labels_
        np.testing.assert_array_equal(numbers[a.predict(new)], b.predict(new))
    if hasattr(a, "distances_"):
        np.testing.assert_array_equal(a.distances_, b.distances_)


@pytest.mark.parametrize("seed", range(5))
def test_order_of_the_clusterings_and_names_of_the_labels_do_not_matter_without_ties(seed):
    labels = structured_labels(150, 9, 4, noise=0.3, split=3, seed=seed)[0]
    rng = np.random.default_rng(seed)
    renamed = np.column_stack([rng.permutation(c.max() + 1)[c] for c in labels.T])[:, rng.permutation(9)]
    a, b = ge.LWEA().fit(labels), ge.LWEA().fit(renamed)
    np.testing.assert_allclose(a.distances_, b.distances_, atol=1e-12, rtol=0)
    gaps = np.diff(a.dendrogram_.similarities)
    untied = [k for k in range(2, 30) if gaps[len(gaps) - k + 1] < -1e-9]
    assert len(untied) > 5
    for k in untied:
        assert ari(a.dendrogram_.cut(k)[a.reduction_.row_of], b.dendrogram_.cut(k)[b.reduction_.row_of]) == 1.0


def test_the_order_of_the_clusterings_decides_ties():
    """The order of the clusterings may decide ties. This test checks the numbers in docs/reproducibility.md."""

    def kept(method, labels):
        return sum(ari(method(4).fit_predict(one), method(4).fit_predict(one[:, ::-1])) == 1.0 for one in labels)

    noise = [random_labels(60, 6, (2, 7), seed=seed) for seed in range(100)]
    planted = [structured_labels(60, 6, 4, seed=seed)[0] for seed in range(100)]
    assert [kept(ge.EAC, noise), kept(ge.EAC, planted), kept(ge.LWEA, noise + planted)] == [1, 76, 200]
    ring = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    assert ge.EAC(2).fit_predict(ring).tolist() == [0, 0, 1, 1]
    assert ge.EAC(2).fit_predict(ring[:, ::-1]).tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("method", METHODS)
def test_any_way_of_giving_the_labels_gives_the_same(method, ensemble):

    labels, _ = ensemble
    expected = METHODS[method](4).fit_predict(labels)
    with_gaps = np.where(labels >= 0, labels * 10 + 3, -1)
    strings = [pd.array([None if v < 0 else f"c{v:03d}" for v in c], dtype="string") for c in labels.T]
    for form in (labels.astype(np.int8), with_gaps, np.where(labels < 0, np.nan, labels), list(labels.T), strings,
                 pd.DataFrame(labels).astype("category"), ge.Ensemble(labels)):  # fmt: skip
        np.testing.assert_array_equal(METHODS[method](4).fit_predict(form), expected)


@NOISE
@pytest.mark.parametrize("method", METHODS)
def test_repeated_objects_share_a_label(method):
    labels = random_labels(200, 4, (2, 4), distinct=30, seed=2)
    found = METHODS[method](5).fit_predict(labels)
    assert len(np.unique(np.column_stack([labels, found]), axis=0)) == len(np.unique(labels, axis=0))


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", [None, ge.Sample(40, random_state=1)])
@pytest.mark.parametrize("method", sorted(name for name in METHODS if METHODS[name](3).parts().gives_membership))
def test_memberships_sum_to_one_also_of_labels_that_a_sample_does_not_have(method, reduction, where):
    labels, _ = structured_labels(200, 5, 3, noise=0.1, split=1, missing=0.1, seed=0)
    labels[190:] = 9 + np.arange(10)[:, None]  # these objects have labels that no other object has
    est = METHODS[method](3, reduction=reduction, device=where).fit(labels)
    membership = devices.to_host(est.membership_)
    assert (membership >= 0).all()
    np.testing.assert_allclose(membership.sum(axis=1), 1.0, atol=1e-12)
    # only em and scec compute memberships from the labels of objects outside the sample
    if reduction is not None and method not in ("em", "scec"):
        assert (membership[190:] == 1 / 3).all(axis=1).sum() > 5


@pytest.mark.parametrize("method", METHODS)
def test_structure_is_found(method, ensemble):
    labels, truth = ensemble
    if method in NEEDS_LITTLE_NOISE:
        labels, truth = structured_labels(200, 8, 4, noise=0.02, split=1, seed=11)
    est = METHODS[method](4).fit(labels)
    assert ari(truth, est.labels_) > 0.85
    assert est.n_clusters_ == 4
    assert est.labels_.dtype == np.int64
    assert set(est.labels_) == {0, 1, 2, 3}
    assert hasattr(est, "membership_") == est.fit_.gives_membership


def test_groups_that_straddle_the_cut_stay_together():
    """Objects with equal labels are never divided, although they are less similar than some objects with other labels.

    One clustering is far more certain than the others. The equal objects are in uncertain clusters of the others, which
    makes them less similar than different objects elsewhere, so that a literal run would divide them first.
    """
    rng = np.random.default_rng(0)
    sure = np.repeat([0, 1], 30)
    unsure = rng.integers(0, 8, (60, 3))
    unsure[30:] = 8 + rng.integers(0, 2, (30, 3))
    labels = np.column_stack([sure, sure, unsure])
    labels[1:6] = labels[0]
    est = ge.LWEA(theta=0.05).fit(labels)
    within = est.similarity_.self_similarities(est.reduction_.rows)
    n_groups = len(est.reduction_.counts)
    repeated = est.reduction_.counts > 1
    lowest = within[repeated].min()
    straddled = [k for k in range(2, n_groups) if est.dendrogram_.similarities[n_groups - k - 1] > lowest]
    assert straddled, "the example must straddle"
    for k in straddled[:5]:
        found = ge.LWEA(k, theta=0.05).fit(labels).labels_
        assert len(set(found[:6])) == 1
        assert len(set(found)) == k
    literal = oracles.full_scipy_average(labels, oracles.eci(labels, 0.05))
    np.testing.assert_allclose(est.distances_, np.sort(literal[:, 2]), atol=1e-12, rtol=0)


@pytest.mark.parametrize("method", LINKAGE_METHODS)
def test_linkages_find_the_number_of_clusters(method):
    labels, truth = structured_labels(300, 12, 5, noise=0.02, split=1, seed=3)
    est = METHODS[method]().fit(labels)
    assert est.n_clusters_ == 5
    assert ari(truth, est.labels_) == 1.0


@pytest.mark.parametrize("method", LINKAGE_METHODS)
def test_cut_at_a_height(method, ensemble):
    height = float(np.median(1 - METHODS[method](4).fit(ensemble[0]).dendrogram_.similarities))
    est = METHODS[method](distance_threshold=height).fit(ensemble[0])
    assert est.n_clusters_ == 1 + np.count_nonzero(1 - est.dendrogram_.similarities >= height)
    assert 1 < est.n_clusters_ < len(est.reduction_.counts)


def test_complete_linkage_says_when_a_cut_is_arbitrary():
    labels = np.repeat(np.arange(6), 4)[:, None] * np.array([1, 1]) + np.array([0, 1])
    with pytest.warns(UserWarning, match="n_clusters=2 merges 6 clusters that have similarity 0"):
        ge.EAC(2, linkage="complete").fit(labels)


def test_a_reduction_of_ones_own(ensemble):
    class FirstOfEachGroupUnweighted:
        def reduce(self, ens):
            reduced = ge.CoreGroups().reduce(ens)
            return ge.Reduction(ge.Rows(reduced.ensemble), reduced.row_of)

    found = ge.EAC(4, reduction=FirstOfEachGroupUnweighted()).fit(ensemble[0])
    assert (found.reduction_.counts == 1).all()
    assert len(found.labels_) == 200


def test_one_object_and_one_clustering():
    assert ge.EAC(1).fit([[5]]).labels_.tolist() == [0]
    assert ge.EAC().fit([[5]]).children_.shape == (0, 2)
    assert ge.consensus([np.array([0, 1, 1])], 2, method="lwea").tolist() == [1, 0, 0]


# --- error messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("k", "error", "sentence"),
    [
        (0, ValueError, "n_clusters must be at least 1, but is 0."),
        (-3, ValueError, "n_clusters must be at least 1, but is -3."),
        (2.0, TypeError, "n_clusters must be a whole number, not 2.0."),
        (True, TypeError, "n_clusters must be a whole number, not True."),
        ("3", TypeError, "n_clusters must be a whole number, not '3'."),
        (4, ValueError, "n_clusters=4 is more than the 3 distinct label row"),
    ],
)
def test_bad_k_is_refused(method, k, error, sentence):
    with pytest.raises(error) as caught:
        METHODS[method](k).fit([[0, 0, 1, 1], [0, 1, 1, 1]])
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (ge.LWEA(2, theta=0), "theta must be above 0"),
        (ge.LWGP(2, theta=-1), "theta must be above 0"),
        (ge.HBGF(2, n_init=0), "n_init must be from 1 to 10000"),
        (ge.EAC(2, linkage="ward"), "linkage must be one of 'average', 'complete', 'single'"),
        (ge.EAC(2, distance_threshold=0.5), "n_clusters and distance_threshold are both given"),
        (ge.LWEA(distance_threshold=0), "distance_threshold must be above 0"),
        (ge.EAC(2, device="gpu"), "device must be one of 'auto', 'cpu', 'cuda', 'emulated'"),
        (ge.EAC(2, device="cuda"), "device='cuda' needs"),
        (ge.EAC(2, reduction="halves"), "reduction must be one of 'catree', 'core-groups', 'sample', not 'halves'"),
        (ge.EAC(2, reduction=3), "reduction must be None, have a method reduce(rows)"),
        (
            ge.EAC(2, weights=[1, 1e-200]),
            "weights differ too much for average linkage: that of a cluster would be 2e-2",
        ),
        (ge.EAC(2, weights=[1, 5e-324], missing="ignore"), f"{TOO_UNEQUAL} for average linkage"),
        (ge.LWEA(2, weights=[1e-170, 1]), f"{TOO_UNEQUAL} for average linkage"),
        (ge.Consensus(2, similarity=ge.similarity.LWCA(weights=[1, 1e200])), f"{TOO_UNEQUAL} for average"),
    ],
)
def test_bad_parameters_are_refused(estimator, sentence):
    with pytest.raises((ValueError, TypeError)) as caught:
        estimator.fit([[0, 0, 1, 1], [0, 1, 1, 1]])
    assert str(caught.value).startswith(sentence)


def test_consensus_refuses_unknown_methods_and_parameters():
    with pytest.raises(ValueError, match=r"method must be one of .*, such as 'lwea', .* not 'LWEA'"):
        ge.consensus([[0, 1]], 2, method="LWEA")
    with pytest.raises(TypeError, match="'theta' is no parameter of method 'eac'; its parameters are"):
        ge.consensus([[0, 1]], 2, method="eac", theta=0.4)


# --- scikit-learn's conventions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_fit_again_and_clone(method, ensemble):
    est = METHODS[method](4)
    first = est.fit(ensemble[0]).labels_
    if method in LINKAGE_METHODS:
        n_first = len(est.children_)
    est.fit(ensemble[0][:100])
    assert len(est.labels_) == 100
    if method in LINKAGE_METHODS:
        assert len(est.children_) == 99 != n_first
    np.testing.assert_array_equal(clone(est).fit(ensemble[0]).labels_, first)
    assert not hasattr(clone(est), "labels_")
    assert not hasattr(clone(est), "children_")


def test_columns_of_other_names_are_refused_by_predict(ensemble):
    frame = pd.DataFrame(ensemble[0]).add_prefix("run ")
    est = ge.LWEA(4).fit(frame)
    assert est.feature_names_in_.tolist() == list(frame)
    # an array has no column names, so that its columns are matched by position
    for given in (frame, ge.Ensemble(frame), ensemble[0]):
        np.testing.assert_array_equal(est.predict(given), est.labels_)
    for other in (frame[frame.columns[::-1]], ge.Ensemble(frame.rename(columns={"run 0": "run 9"}))):
        with pytest.raises(ValueError, match=r"feature names should match .* 'run 0' is expected"):
            est.predict(other)
    assert not hasattr(est.fit(ensemble[0]), "feature_names_in_")
    assert est.n_features_in_ == 8
