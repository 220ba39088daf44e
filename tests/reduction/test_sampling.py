"""The reduction Sample: which objects it draws, and how literal sums of similarities assign the objects not drawn."""

from functools import cache

import numpy as np
import oracles
import pytest
from conftest import METHODS, random_labels, refused, structured_labels
from sklearn.base import clone

import gpuens as ge

LABELS = structured_labels(120, 6, 4, noise=0.25, split=2, missing=0.05, seed=5)[0]

BY_VOTE = ["mcla", "ecpcs-mc"]
BY_SIMILARITY = [name for name, kind in METHODS.items() if kind(3)._parts()[0] is not None and name not in BY_VOTE]

pytestmark = pytest.mark.filterwarnings("ignore:found only . of . clusters", "ignore:n_clusters=. merges")


def similarity_of(method, est, labels, drawn):
    """Return the N × N similarity that a method uses. Its statistics are those of the drawn objects alone."""
    sample = labels[drawn]
    if method == "ecrmc":  # its similarity uses statistics of all objects
        return oracles.revised_coassociation(labels, est.cluster_similarity_)
    if method in ("eac", "hbgf", "cspa", "hgpa"):
        return oracles.coassociation(labels)
    if method in ("pta", "ptgp", "drec", "tome"):  # the similarities of these methods exist only for the sample
        return oracles.coassociation(labels)
    if method in ("ecpcs-hc", "gp-mgla", "lce"):
        rows = ge.Rows(est.reduction_.ensemble.encoded(labels))
        return est.similarity_.tile(rows, 0, len(labels))
    if method == "rock":
        shared = ((labels[:, None] == labels) & (labels[:, None] >= 0)).sum(axis=2)
        return oracles.ieoso(shared / (2 * labels.shape[1] - shared), est.threshold_ * (1 - 1e-12), among=drawn)
    if method == "weac":
        shared = (labels[:, None] == labels) & (labels[:, None] >= 0)
        return (shared * est.weights_).sum(axis=2) / est.weights_.sum()
    if method in ("lwea", "lwgp"):
        weights = dict(zip(names(sample), oracles.eci(sample, 0.4), strict=True))
        return oracles.coassociation(labels, np.array([weights.get(name, 0.0) for name in names(labels)]))
    coupled = coupled_by(tuple(drawn.tolist()))
    if method in ("cgc", "oc-ia", "crc-ia"):
        return coupled
    common = oracles.ieoso(coupled, est.threshold_, among=drawn)
    return est.mu_ * coupled + (1 - est.mu_) * common if method == "s-cce" else common


@cache
def coupled_by(drawn):
    """Return the coupled similarity of all objects, whose statistics are those of the drawn ones."""
    sample = LABELS[list(drawn)]
    look_ups = [
        {(a, b): matrix[i, j] for i, a in enumerate(known(sample, m)) for j, b in enumerate(known(sample, m))}
        for m, matrix in enumerate(oracles.ccsc(sample))
    ]
    return np.array([
        [np.mean([look_up.get((a, b), 0.0) for look_up, a, b in zip(look_ups, x, y, strict=True)]) for y in LABELS]
        for x in LABELS
    ])  # fmt: skip


def known(labels, m):
    return [v for v in np.unique(labels[:, m]) if v >= 0]


def names(labels):
    return [(m, v) for m in range(labels.shape[1]) for v in known(labels, m)]


@pytest.mark.parametrize("method", BY_SIMILARITY)
def test_the_others_go_to_the_cluster_they_are_most_similar_to(method, where):
    drawn = np.random.default_rng(1).choice(len(LABELS), 40, replace=False)
    rows = {tuple(row) for row in LABELS[drawn].tolist()}
    others = [x for x, row in enumerate(LABELS.tolist()) if tuple(row) not in rows]
    assert len(others) > 30
    for by in ("mean", "sum"):
        est = METHODS[method](3, reduction=ge.Sample(40, random_state=1, by=by), device=where).fit(LABELS)
        similarity = similarity_of(method, est, LABELS, drawn)
        scores = oracles.similarity_to_clusters(similarity, drawn, est.labels_[drawn], mean=by == "mean")
        chosen = scores[others, est.labels_[others]]
        np.testing.assert_allclose(chosen, scores[others].max(axis=1), atol=1e-12)
        by_row = {tuple(row): label for row, label in zip(LABELS[drawn].tolist(), est.labels_[drawn], strict=True)}
        assert all(
            by_row.get(tuple(row), label) == label for row, label in zip(LABELS.tolist(), est.labels_, strict=True)
        )


@pytest.mark.parametrize("method", BY_VOTE)
def test_the_others_vote_as_the_sample_does(method, where):
    """Objects outside the sample get labels by the method's vote.

    Labels by mean similarity would contradict memberships.
    """
    est = METHODS[method](3, reduction=ge.Sample(40, random_state=1), device=where).fit(LABELS)
    associated = oracles.association(LABELS, est.meta_clusters_)[:, : est.n_clusters_]
    own = associated[np.arange(len(LABELS)), est.labels_]
    np.testing.assert_allclose(own, associated.max(axis=1), atol=1e-12)
    np.testing.assert_array_equal(est.predict(LABELS), est.labels_)


def test_drawn_objects_are_counted_and_every_object_has_a_row():
    ens = ge.Ensemble(random_labels(300, 3, 3, seed=1))
    reduced = ge.Sample(50, random_state=3).reduce(ens)
    drawn = np.random.default_rng(3).choice(300, 50, replace=False)
    rows = np.concatenate([reduced.ensemble.to_array(), reduced.unrepresented.ensemble.to_array()])
    np.testing.assert_array_equal(rows[reduced.row_of], ens.to_array())
    np.testing.assert_array_equal(np.bincount(reduced.row_of[drawn], minlength=len(rows))[: len(reduced.counts)],
                                  reduced.counts)  # fmt: skip
    assert reduced.counts.sum() == 50
    assert reduced.expand(np.arange(len(rows))).shape == (300,)


@pytest.mark.parametrize("method", METHODS)
def test_a_sample_of_everything_is_everything(method):
    est, expected = METHODS[method](3), METHODS[method](3).fit(LABELS).labels_
    for size in (10_000, 1.0):
        est = clone(est).set_params(reduction=ge.Sample(size)).fit(LABELS)
        assert est.reduction_.unrepresented is None
        np.testing.assert_array_equal(est.labels_, expected)


def test_equal_scores_go_to_the_largest_cluster():
    """Some objects are in no base cluster of the sample, so that their similarity to every cluster is 0."""
    labels = np.array([[0, 0]] * 2 + [[1, 1]] * 5 + [[2, 2]] * 3)
    est = ge.EAC(2, reduction=ge.Sample(7, random_state=_Draws(range(7)))).fit(labels)
    assert est.labels_.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]


class _Draws(np.random.Generator):
    """A generator with given draws."""

    def __init__(self, drawn):
        super().__init__(np.random.PCG64(0))
        self.drawn = np.array(drawn)

    def choice(self, *args, **kwargs):
        return self.drawn


def test_the_tree_of_a_sample_is_not_passed_for_that_of_all():
    est = ge.EAC(3, reduction=ge.Sample(40)).fit(LABELS)
    assert est.dendrogram_.n_leaves == len(est.reduction_.counts)
    for name in ("children_", "distances_"):
        refused(lambda name=name: getattr(est, name), AttributeError, name, "sample")
    refused(est.linkage_matrix, AttributeError, "linkage_matrix", "sample")


def test_bad_settings_are_refused():
    for kind, sizes in ((ValueError, (0, -3, 1.5, 0.0)), (TypeError, ("many", True, None))):
        for size in sizes:
            refused(lambda size=size: ge.Sample(size), kind, "size")
    refused(lambda: ge.Sample(10, by="max"), ValueError, "by", "'max'")
    refused(lambda: ge.EAC(2, reduction=ge.Sample(10, random_state="x")).fit(LABELS), TypeError, "random_state")
    refused(lambda: ge.EAC(30, reduction=ge.Sample(10)).fit(LABELS), ValueError, "n_clusters=30")


def test_by_name():
    est = ge.EAC(3, reduction="sample:40,by=sum").fit(LABELS)
    np.testing.assert_array_equal(est.labels_, ge.EAC(3, reduction=ge.Sample(40, by="sum")).fit(LABELS).labels_)
    np.testing.assert_array_equal(ge.EAC(3, reduction="core-groups").fit_predict(LABELS), ge.EAC(3).fit_predict(LABELS))
