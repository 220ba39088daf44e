"""Scores compared with scikit-learn and with literal searches over all renamings of labels."""

import itertools
import math

import numpy as np
import pandas
import pytest
from conftest import refused
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from gpuens import Ensemble, contingency, metrics

AVERAGES = ["geometric", "max", "arithmetic", "min"]


def cases():
    rng = np.random.default_rng(0)
    for n, k_a, k_b in [(10, 2, 3), (100, 5, 5), (300, 40, 7), (1000, 300, 400)]:
        yield f"random-{n}", rng.integers(0, k_a, n), rng.integers(0, k_b, n)
    noisy = rng.integers(0, 6, 200)
    yield "alike", noisy, np.where(rng.random(200) < 0.1, rng.integers(0, 6, 200), noisy)
    yield "equal", noisy, (noisy + 2) % 6
    yield "one-object", [3], [5]
    yield "two-apart", [0, 1], [0, 0]
    yield "one-cluster-each", np.zeros(9, int), np.ones(9, int)
    yield "one-cluster-against-many", np.zeros(50, int), rng.integers(0, 4, 50)
    yield "singletons-each", np.arange(30), np.arange(30)[::-1]
    yield "singletons-against-one", np.arange(30), np.zeros(30, int)
    yield "singletons-against-some", np.arange(30), rng.integers(0, 4, 30)
    yield "independent", np.repeat([0, 1, 2], 20), np.tile([0, 1], 30)


CASES = [pytest.param(a, b, id=name) for name, a, b in cases()]


def best_renaming(a, b):
    """Return the best accuracy over all one-to-one renamings of the labels of partition a.

    Surplus labels match no label.
    """
    labels_a, labels_b = sorted(set(a)), sorted(set(b))
    labels_b += [object()] * len(labels_a)
    return max(
        sum(dict(zip(labels_a, names, strict=True))[x] == y for x, y in zip(a, b, strict=True)) / len(a)
        for names in itertools.permutations(labels_b, len(labels_a))
    )


@pytest.mark.parametrize(("a", "b"), CASES)
def test_nmi_and_ari_are_scikit_learns(a, b):
    for average in AVERAGES:
        wanted = normalized_mutual_info_score(a, b, average_method=average)
        assert metrics.nmi(a, b, average) == pytest.approx(wanted, rel=0, abs=1e-12)
        assert metrics.nmi(b, a, average=average) == pytest.approx(wanted, rel=0, abs=1e-12)
    assert metrics.ari(a, b) == pytest.approx(adjusted_rand_score(a, b), rel=0, abs=1e-12)
    assert metrics.ari(a, b) == metrics.ari(b, a)
    single = metrics.nmi(a, b), metrics.nmi(a, b, "max"), metrics.ari(a, b), metrics.accuracy(a, b)
    scores = metrics.scores(a, b)
    assert scores == dict(zip(("nmi", "nmi_max", "ari", "accuracy"), single, strict=True))
    assert all(type(value) is float for value in scores.values())


@pytest.mark.parametrize("seed", range(8))
def test_accuracy_is_that_of_the_best_renaming(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 1 + seed % 4, 15).tolist(), rng.integers(0, 4 - seed // 3, 15).tolist()
    assert metrics.accuracy(a, b) == pytest.approx(best_renaming(a, b), abs=1e-15)


@pytest.mark.parametrize("shape", [(30, 30), (12, 40), (40, 12)])
def test_accuracy_from_a_sparse_table_is_that_from_a_dense_one(shape):
    rng = np.random.default_rng(1)
    for _ in range(20):
        counts = rng.integers(1, 9, shape) * (rng.random(shape) < 0.08)
        if counts.any():
            assert metrics._accuracy_of(sparse.csr_array(counts)) == metrics._accuracy_of(counts)


def test_clusters_as_many_as_objects_stay_sparse():
    n = 5000
    names = np.random.default_rng(2).permutation(n)
    assert sparse.issparse(contingency.table(np.arange(n), names))
    assert metrics.scores(np.arange(n), names) == {"nmi": 1, "nmi_max": 1, "ari": 1, "accuracy": 1}


def test_missing_labels_are_left_out_of_labels_of_any_kind():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 4, 80), rng.integers(0, 3, 80)
    keep = rng.random(80) < 0.7
    in_a, in_b = keep | (rng.random(80) < 0.5), np.ones(80, bool)
    in_b[in_a & ~keep] = False
    texts = [f"class {x}" if known else None for x, known in zip(a, in_a, strict=True)]
    numbers = np.where(in_b, b, np.nan)
    expected = metrics.scores(a[in_a & in_b], b[in_a & in_b])
    for labels in (texts, tuple(texts), pandas.Series(texts), pandas.Categorical(texts), np.where(in_a, a, -1)):
        assert metrics.scores(labels, numbers) == expected


NOT_COMPARABLE = [
    ([0, 1, 1], [0, 1], ValueError, "a has 3 labels and b has 2"),
    ([0, 1], np.zeros((2, 1), int), ValueError, "b must be 1-D"),
    ([], [], ValueError, "a is empty"),
    ("abc", [0, 1, 1], TypeError, "a must be a list, array or Series of labels, one per object, not str"),
    ([0, 1, 1], None, TypeError, "b must be a list, array or Series of labels, one per object, not NoneType"),
    ([0, -1], [None, 3], ValueError, "no object has a label in both"),
    ([0, 1], [0.5, 1.5], ValueError, "'b' are not whole numbers"),
]


@pytest.mark.parametrize("call", [metrics.nmi, metrics.ari, metrics.accuracy, metrics.vi, metrics.scores])
def test_what_cannot_be_compared_is_refused_in_one_sentence(call):
    for a, b, kind, sentence in NOT_COMPARABLE:
        refused(lambda a=a, b=b: call(a, b), kind, sentence)


def test_unknown_names_are_refused():
    refused(lambda: metrics.nmi([0, 1], [0, 1], "mean"), ValueError, "average must be one of 'geometric'")
    refused(lambda: metrics.stability([[0, 1], [0, 1]], "rand"), ValueError, "score must be one of 'ari'")


# --- stability --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", ["ari", "nmi", "accuracy"])
def test_stability_is_the_mean_over_pairs_of_runs(score):
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 4, 60)
    runs = [np.where(rng.random(60) < 0.2, rng.integers(0, 5, 60), truth) for _ in range(6)]
    for average in AVERAGES if score == "nmi" else ("geometric",):
        options = {"average": average} if score == "nmi" else {}
        wanted = np.mean([getattr(metrics, score)(a, b, **options) for a, b in itertools.combinations(runs, 2)])
        assert metrics.stability(runs, score, average) == pytest.approx(wanted, abs=1e-15)
        for form in (np.column_stack(runs), Ensemble(runs)):
            assert metrics.stability(form, score, average) == metrics.stability(runs, score, average)
    # runs that never change; objects without a label in every run are left out
    assert metrics.stability([["a", "a", "b", None], [1, 1, 0, -1], [7, 7, 7.5 // 1 + 1, np.nan]], score) == 1


def test_stability_needs_runs_that_can_be_compared():
    for runs, sentence in (
        ([[0, 1, 1]], "at least 2 are needed for a comparison, but 1 was given"),
        ([[0, 1, -1, -1], [0, 0, 1, 1], [-1, -1, 0, 1]], "labelings[0] and labelings[2] cannot be compared"),
        ([np.array([0, 1]), np.array([0, 1, 1])], "clustering 0 has 2 labels and clustering 1 has 3"),
    ):
        refused(lambda runs=runs: metrics.stability(runs), ValueError, sentence)


def literal_vi(a, b, weights=None):
    """Return H(a|b) + H(b|a) in bits by a sum over the objects, each with the shares of its clusters."""
    a, b = np.asarray(a).tolist(), np.asarray(b).tolist()
    weights = [1.0] * len(a) if weights is None else weights
    of_a, of_b, of_both = {}, {}, {}
    for x, y, weight in zip(a, b, weights, strict=True):
        for shares, key in ((of_a, x), (of_b, y), (of_both, (x, y))):
            shares[key] = shares.get(key, 0.0) + weight
    terms = (w * math.log2(of_a[x] * of_b[y] / of_both[x, y] ** 2) for x, y, w in zip(a, b, weights, strict=True))
    return math.fsum(terms) / math.fsum(weights)


@pytest.mark.parametrize(("a", "b"), CASES)
def test_variation_of_information_is_that_of_the_formula(a, b):
    assert metrics.vi(a, b) == pytest.approx(literal_vi(a, b), rel=1e-12, abs=1e-12)
    assert metrics.vi(a, b) == pytest.approx(metrics.vi(b, a), rel=1e-14)
    assert metrics.vi(a, a) == 0.0
    weights = np.random.default_rng(2).random(len(a)) + 0.1
    assert metrics.vi(a, b, sample_weight=weights) == pytest.approx(literal_vi(a, b, weights), rel=1e-12, abs=1e-12)


def test_variation_of_information_is_a_metric_in_bits():
    """Known values, the triangle inequality, the largest value log2(n), and the relation to the mutual information."""
    assert metrics.vi(np.arange(8), np.zeros(8, int)) == 3.0
    assert metrics.vi([0, 0, 1, 1], [0, 1, 0, 1]) == 2.0
    rng = np.random.default_rng(3)
    for _ in range(50):
        a, b, c = (rng.integers(0, k, 30) for k in rng.integers(1, 8, 3))
        assert metrics.vi(a, c) <= metrics.vi(a, b) + metrics.vi(b, c) + 1e-12
        assert (metrics.vi(a, b) == 0) == (metrics.ari(a, b) == 1)
        assert 0 <= metrics.vi(a, b) <= math.log2(30)
        joined = literal_vi(a, np.zeros(30, int)) + literal_vi(b, np.zeros(30, int))  # H(a) + H(b)
        nmi = metrics.nmi(a, b, "arithmetic")
        assert metrics.vi(a, b) == pytest.approx(joined * (1 - nmi), abs=1e-9)
    assert metrics.vi([0, 0, 1, None], ["x", "x", "y", "y"]) == 0.0


@pytest.mark.parametrize(("a", "b"), CASES)
def test_weights_are_repetition(a, b):
    weights = np.random.default_rng(1).integers(1, 5, len(a))
    repeated = [np.repeat(labels, weights) for labels in (a, b)]
    for whole in (weights, weights.astype(float)):
        assert metrics.scores(a, b, sample_weight=whole) == metrics.scores(*repeated)
    assert metrics.ari(a, b, sample_weight=weights) == metrics.ari(*repeated)
    for score in (metrics.nmi, metrics.vi, metrics.accuracy):
        assert score(a, b, sample_weight=weights) == score(*repeated)
        assert score(a, b, sample_weight=weights / 7) == pytest.approx(score(*repeated))


def test_the_unit_of_fractions_has_no_influence():
    a, b, weights = [0, 0, 1, 1, 2], [0, 1, 1, 1, 2], np.array([0.5, 1.25, 3, 0.125, 2])
    expected = metrics.nmi(a, b, sample_weight=weights)
    for exponent in (-1000, -550, -400):
        assert metrics.nmi(a, b, sample_weight=weights * 2.0**exponent) == expected
    for exponent in (-1000, -550, 400, 550, 980):  # weights of a table may be whole numbers of any size
        table = contingency.table(a, b, weights * 2.0**exponent)
        assert contingency.nmi_of(table) == expected
    for least in (1e-160, 1e-300):  # two objects of nearly no weight
        light = [1, 3, 2, least, least]
        found = metrics.nmi([0, 0, 1, 2, 2], [0, 1, 1, 2, 3], sample_weight=[w + 0.25 * (w >= 1) for w in light])
        assert found == pytest.approx(metrics.nmi([0, 0, 1], [0, 1, 1], sample_weight=[1.25, 3.25, 2.25]))


def test_weights_that_scores_refuse():
    def weighted(score, weights):
        return lambda: score([0, 0, 1], [0, 1, 1], sample_weight=weights)

    for weights in ([], [1, 2], [1, 2, 0], [1, 2, -1], [1, 2, np.nan], ["a", "b", "c"], [[1], [2], [3]]):
        for score in (metrics.nmi, metrics.ari):
            refused(weighted(score, weights), ValueError, "sample_weight must be")
    for score in (metrics.ari, metrics.scores):
        refused(weighted(score, [0.5, 1, 1]), ValueError, "counts pairs of objects")


def test_weights_are_matched_by_the_index():
    a, b = pandas.Series([0, 0, 1, 1], index=list("wxyz")), pandas.Series([0, 1, 1, 0], index=list("zyxw"))
    weights = pandas.Series([4, 3, 2, 1], index=list("xwzy"))
    expected = metrics.nmi([0, 0, 1, 1], [0, 1, 1, 0], sample_weight=[3, 4, 1, 2])
    assert metrics.nmi(a, b, sample_weight=weights) == expected
