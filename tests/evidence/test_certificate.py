"""Bounds of the mean loss compared with all partitions of few objects, and with all permutations of few clusterings."""

import itertools

import numpy as np
import pytest
from conftest import random_labels, refused, structured_labels
from oracles import median_losses, partitions

import gpuens as ge

pytestmark = pytest.mark.filterwarnings("ignore:constant clusterings")
LOSSES = [("binder", 1.0), ("binder", 0.5), ("binder", 1.4), ("vi", 1.0), ("vi", 0.6), ("vi", 1.3), ("omari", 1.0)]
ALL_OF = {n: np.array(list(partitions(n))) for n in (3, 4, 6, 8)}


def certify(labels, loss="binder", a=1.0, consensus=None, **given):
    """Return the certificate of a consensus, by default one cluster, which no bound depends on."""
    labels = np.asarray(labels)
    return ge.evidence.certificate(labels, np.zeros(len(labels)) if consensus is None else consensus, loss, a, **given)


def best_of(labels, loss, a):
    return median_losses(labels, ALL_OF[len(labels)], loss, a).min()


@pytest.fixture
def bounded(sizes):
    """Compare no partitions."""
    sizes("evidence.certificate", FEW=0)


# --- no partition passes the bound ------------------------------------------------------------------------------------


def inputs():
    """Yield label matrices of 4, 6 and 8 objects: random, structured, with equal rows, with missing labels."""
    for seed in range(6):
        for n, m in ((4, 2), (6, 3), (8, 4), (8, 7)):
            missing = 0.25 * (seed % 2)
            yield random_labels(n, m, (1, 4), missing=missing, seed=seed)
            yield random_labels(n, m, (2, 3), distinct=n // 2, missing=missing, seed=seed)
            yield structured_labels(n, m, 3, noise=0.3, split=1, missing=missing, seed=seed)[0]


@pytest.mark.parametrize("by", ["triangles", "pairs"])
@pytest.mark.parametrize(("loss", "a"), LOSSES)
def test_no_partition_passes_the_bound(loss, a, by, sizes, bounded):
    if loss == "vi" and by == "pairs":
        return
    if by == "pairs":
        sizes("evidence.certificate", MOST_TRIANGLE_ROWS={"binder": 0, "omari": 0})
    tightness = []
    for labels in inputs():
        found, best = certify(labels, loss, a), best_of(labels, loss, a)
        assert 0 <= found.bound <= best + 1e-12
        tightness.append(found.bound / best if best > 0 else 1.0)
        assert found.by == ("clusterings" if loss == "vi" else by)
    assert np.mean(tightness) > {"binder": 0.9, "vi": 0.8 * min(a, 2 - a), "omari": 0.75}[loss]


@pytest.mark.parametrize(("loss", "a"), [("binder", 1.0), ("binder", 1.4)])
def test_the_metric_of_binders_loss_bounds_it_too(loss, a, sizes, bounded):
    """Above MOST_COMPARISONS, whose cost has no square of the rows."""
    bounds = [certify(labels, loss, a).bound for labels in inputs()]
    sizes("evidence.certificate", MOST_COMPARISONS=0)
    for labels, bound in zip(inputs(), bounds, strict=True):
        found = certify(labels, loss, a)
        assert found.by == "clusterings"
        assert found.bound <= bound + 1e-12


@pytest.mark.parametrize(("loss", "a"), LOSSES)
def test_few_objects_have_the_best_partition_as_bound(loss, a):
    for labels in inputs():
        found = certify(labels, loss, a)
        assert found.exact
        assert found.bound == pytest.approx(best_of(labels, loss, a), abs=1e-12)


@pytest.mark.parametrize(("loss", "a"), LOSSES)
def test_the_objective_is_that_of_median(loss, a):
    for missing in (0.0, 0.2):
        labels = random_labels(40, 5, (2, 5), distinct=25, missing=missing, seed=2)
        est = ge.Median(loss=loss, a=a, n_init=2).fit(labels)
        found = certify(labels, loss, a, est.labels_)
        assert found.objective == pytest.approx(est.objective_, abs=1e-12)
        assert found.bound <= found.objective
        assert found.gap == pytest.approx(1 - found.bound / found.objective, abs=1e-12)


# --- the proofs -------------------------------------------------------------------------------------------------------


def test_a_torn_triangle_raises_the_bound(bounded, sizes):
    """Two of three clusterings put 0 with 1, two put 1 with 2, and one puts 0 with 2."""
    labels = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 0]]).T
    assert certify(labels).bound == pytest.approx(2 / 9 * (3 / 3 + 1 / 3)) == best_of(labels, "binder", 1.0)
    sizes("evidence.certificate", MOST_TRIANGLE_ROWS={"binder": 0})
    assert certify(labels).bound == pytest.approx(2 / 9 * 3 / 3)  # the smaller cost of each pair is 1/3


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_clusterings_are_assigned_to_the_farthest(loss, missing, sizes, bounded):
    sizes("evidence.certificate", MOST_COMPARISONS=0)
    labels = random_labels(20, 5, (2, 5), missing=missing, seed=3)
    distances = np.array([[median_losses(labels[:, [i]], alone_as_partition(labels[:, j]), loss, 1.0)[0]
                           for j in range(5)] for i in range(5)])  # fmt: skip
    expected = max(np.mean(distances[range(5), list(order)]) for order in itertools.permutations(range(5))) / 2
    assert certify(labels, loss).bound == pytest.approx(expected)


def alone_as_partition(column):
    return np.where(column < 0, column.max() + 1 + np.arange(len(column)), column)[None]


def test_blocks_of_clusterings_are_a_permutation(sizes):
    labels = random_labels(30, 9, (2, 5), seed=4)
    whole = certify(labels, "vi")
    sizes("evidence.certificate", CLUSTERINGS=2)
    parts = certify(labels, "vi")
    assert 0 < parts.bound < whole.bound


def test_equal_clusterings_have_no_better_partition(bounded):
    labels = np.repeat(random_labels(30, 1, 4, seed=5), 6, axis=1)
    for loss, a in LOSSES:
        found = certify(labels, loss, a, labels[:, 0])
        assert (found.objective, found.gap, str(found)) == (0, 0, "no partition is better")


@pytest.mark.parametrize(("loss", "gap"), [("binder", 0.03), ("vi", 0.3), ("omari", 0.1)])
def test_noisy_copies_have_a_close_bound(loss, gap):
    labels, truth = structured_labels(200, 9, 4, noise=0.3, split=2, seed=6)
    est = ge.Median(loss=loss).fit(labels)
    found = certify(labels, loss, 1.0, est.labels_)
    assert 0 < found.gap < gap
    worse = certify(labels, loss, 1.0, np.where(np.arange(200) < 40, 0, truth))
    assert worse.gap > 0.2
    assert worse.bound == pytest.approx(found.bound)
    assert str(found).startswith("no partition is better by more than ")


# --- counts, inputs, refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("loss", ["binder", "vi", "omari"])
def test_counts_are_repetitions(loss, missing):
    labels = random_labels(20, 5, (2, 4), missing=missing, seed=7)
    rows, consensus = ge.Rows(labels, counts=np.arange(20) % 3 + 1), np.arange(20) % 3
    found = ge.evidence.certificate(rows, consensus, loss)
    expected = certify(np.repeat(labels, rows.counts, axis=0), loss, 1.0, np.repeat(consensus, rows.counts))
    assert found[1:3] == pytest.approx(expected[1:3])


def test_names_of_clusters_and_the_device_do_not_matter(where):
    labels = random_labels(40, 5, (2, 5), seed=8)
    for loss in ("binder", "vi", "omari"):
        found, renamed = certify(labels, loss, device=where), certify(7 - labels, loss)
        assert found[1:3] == pytest.approx(renamed[1:3], rel=0.01)  # rows with as many matches may change places


def test_objects_with_a_missing_label_are_compared_apart():
    """Equal rows may be divided by the best partition if they lack labels."""
    labels = np.array([[0, -1, -1]] * 5 + [[1, 0, 0]])
    together, best = median_losses(labels, np.array([[0] * 5 + [1]]), "binder", 0.4)[0], best_of(labels, "binder", 0.4)
    found = certify(labels, a=0.4)
    assert found.exact
    assert found.bound == pytest.approx(best)
    assert best < together
    assert not certify(np.repeat(labels, 2, axis=0)).exact
    assert certify(np.repeat(np.abs(labels), 2, axis=0)).exact


def test_evidence_of_a_fit_has_it():
    labels = random_labels(30, 5, (2, 4), seed=9)
    est = ge.Median(loss="vi").fit(labels)
    assert est.evidence().certificate("vi") == certify(labels, "vi", 1.0, est.labels_)


def test_a_single_object_has_one_partition():
    for loss in ("binder", "vi", "omari"):
        assert certify([[0]], loss)[1:] == (0, 0, "partitions")


def test_bad_input_is_refused(sizes, monkeypatch):
    labels = random_labels(60, 4, (2, 5), seed=1)
    refused(lambda: certify(labels, "mirkin"), ValueError, "loss must be one of 'binder', 'vi', 'omari'")
    refused(lambda: certify(labels, "omari", 0.5), ValueError, "leave it out")
    refused(lambda: certify(labels, a=3), ValueError, "a must be from 0 to 2")
    refused(lambda: certify(labels, consensus=[0, 1]), ValueError, "consensus")
    sizes("evidence.certificate", MOST_TRIANGLE_ROWS={"binder": 5, "omari": 5}, MOST_PAIR_ROWS=50)
    refused(lambda: certify(labels, "omari"), ValueError, "at most 50 distinct label rows, but labels have")
    assert certify(labels).by == "pairs"
    monkeypatch.setenv("GPUENS_MEMORY", "2 kB")
    sizes("evidence.certificate", MOST_TRIANGLE_ROWS={"binder": 100})
    refused(lambda: certify(labels), MemoryError, "distinct label rows", "loss='vi'")
