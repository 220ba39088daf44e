"""Weights of objects: an object of weight 3 counts as three objects; weights with fractions go by their ratios."""

import contextlib
import re
from pathlib import Path

import numpy as np
import oracles
import pandas as pd
import pytest
from conftest import BY_FEATURES, METHODS, random_labels, refused, structured_labels
from sklearn.base import clone

import gpuens as ge
from gpuens.labels.weights import copies_of
from gpuens.partition.linkage.single import single_linkage
from gpuens.reduction import core_groups

OF_LABELS = sorted([*(METHODS.keys() - BY_FEATURES.keys()), "best-of-k"])
LABELS = {
    "structured": structured_labels(60, 6, 4, noise=0.3, seed=1)[0],
    "missing": structured_labels(70, 5, 4, missing=0.2, seed=2)[0],
    "repeated rows": random_labels(80, 5, (2, 4), distinct=25, seed=3),
}
BY_RATIOS = [name for name in OF_LABELS if ge.methods()[name](4).parts().real_weights]


def method(name, n_clusters=4, **parameters):
    """Return an estimator; best-of-k takes the number of clusters of one of the clusterings."""
    return ge.methods()[name](None if name == "best-of-k" else n_clusters, **parameters)


def weights_of(labels, seed=0):
    return np.random.default_rng(seed).integers(1, 6, len(labels))


def in_chunks(values, size=17):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    return da.from_array(values, chunks=(size if isinstance(size, int) else tuple(size), *values.shape[1:]))


def repeated(values, weights):
    return np.repeat(values, weights, axis=0)


def assert_like_repetition(weighted, plain, weights, unit=1):
    """Assert that the evidence of a weighted fit is that of the fit of repeated objects."""
    found, expected = weighted.evidence(), plain.evidence()
    for mine, its in zip(found.objects, expected.objects, strict=True):
        np.testing.assert_array_equal(repeated(mine, weights), its)
    np.testing.assert_array_equal(found.clusters.sizes, expected.clusters.sizes * unit)
    for name in ("consensus", "stability", "between"):
        np.testing.assert_array_equal(getattr(found.clusters, name), getattr(expected.clusters, name))
    assert found.agreement.anmi == expected.agreement.anmi
    np.testing.assert_array_equal(repeated(found.consistency.ecc, weights), expected.consistency.ecc)
    np.testing.assert_equal(found.beyond_chance, expected.beyond_chance)
    assert found.pairs().area() == expected.pairs().area()
    if unit == 1:
        assert repr(found).split("\n")[1:] == repr(expected).split("\n")[1:]  # the first line counts the objects


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("of", OF_LABELS)
def test_whole_weights_are_repetition(of, name):
    labels = LABELS[name]
    weights = weights_of(labels)
    estimators = [method(of)]
    if of == "eac":
        estimators.append(ge.EAC(4, missing="ignore"))
    if of in ("eac", "lwgp", "em") and name == "structured":
        estimators.append(method(of, None))
    for est in estimators:
        weighted, plain = clone(est).fit(labels, sample_weight=weights), est.fit(repeated(labels, weights))
        np.testing.assert_array_equal(repeated(weighted.labels_, weights), plain.labels_)
        np.testing.assert_array_equal(weighted.reduction_.counts, plain.reduction_.counts)
        if weighted.fit_.gives_membership:
            np.testing.assert_array_equal(repeated(weighted.membership_, weights), plain.membership_)
        assert weighted.weight_unit_ == 1.0
        assert_like_repetition(weighted, plain, weights)


@pytest.mark.parametrize("reduction", ["sample:40", "sample:0.3", "sample:100000", "catree:tau=0.4,gamma=0.8"])
def test_reductions_count_weights(reduction):
    labels = LABELS["missing"]
    weights = weights_of(labels)
    weighted = method("lwea", 3, reduction=reduction).fit(labels, sample_weight=weights)
    plain = method("lwea", 3, reduction=reduction).fit(repeated(labels, weights))
    np.testing.assert_array_equal(repeated(weighted.labels_, weights), plain.labels_)
    assert_like_repetition(weighted, plain, weights)


def test_linkages_cut_by_weight():
    labels = LABELS["structured"]
    weights = weights_of(labels)
    for min_size in (None, 20, 0.1, "auto"):
        weighted = ge.EAC(3, min_size=min_size).fit(labels, sample_weight=weights)
        plain = ge.EAC(3, min_size=min_size).fit(repeated(labels, weights))
        np.testing.assert_array_equal(repeated(weighted.labels_, weights), plain.labels_)
        np.testing.assert_array_equal(repeated(weighted.rest_, weights), plain.rest_)
        np.testing.assert_array_equal(repeated(weighted.cut(2), weights), plain.cut(2))
        assert weighted.cophenetic_correlation() == plain.cophenetic_correlation()
    assert len(weighted.children_) == len(labels) - 1  # the merges of the objects, each once
    assert not hasattr(weighted.fit(labels), "weight_unit_")


# --- weights with fractions -------------------------------------------------------------------------------------------


UNITS = (0.5, 0.01, 2.0**-20)
RATIOS = [("eac", UNITS[0]), ("eac", UNITS[1])]
RATIOS += [(of, UNITS[i % 3]) for i, of in enumerate(of for of in BY_RATIOS if of != "eac")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("of", "unit"), RATIOS)
def test_ratios_decide(of, unit):
    """Multiples of .5 and .01 are exact; those of 2⁻²⁰ are rounded, which decides EAC's many ties otherwise."""
    for labels in LABELS.values():
        weights = weights_of(labels)
        found = method(of).fit(labels, sample_weight=weights * unit)
        np.testing.assert_array_equal(found.labels_, method(of).fit_predict(labels, sample_weight=weights))


def pairs_by_ratios():
    """Yield each similarity and partitioner that accept each other and weights with fractions."""
    for similarity, measure in ge.similarities().items():
        for partitioner in ge.partitioners():
            est = ge.Consensus(3, similarity=similarity, partitioner=partitioner)
            if not measure.needs_features:
                with contextlib.suppress(ValueError):
                    if est.checked_parts().real_weights:
                        yield similarity, partitioner


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("similarity", "partitioner"), [*pairs_by_ratios()])
def test_ratios_decide_for_every_pair_of_parts(similarity, partitioner):
    labels = LABELS["missing"]
    weights = weights_of(labels)
    if similarity == "agreement":  # logarithms for a weight of at most 256 are looked up; their last bit decides ties
        weights *= 512
    est = ge.Consensus(4, similarity=similarity, partitioner=partitioner)
    expected = est.fit_predict(labels, sample_weight=weights)
    np.testing.assert_array_equal(est.fit_predict(labels, sample_weight=weights / 8), expected)
    np.testing.assert_array_equal(est.fit_predict(labels, sample_weight=weights * 1024), expected)


def test_evidence_needs_whole_weights(tmp_path):
    est = ge.LWGP(3).fit(LABELS["structured"], sample_weight=np.linspace(0.5, 2, 60))
    refused(est.evidence, TypeError, "needs whole numbers as sample_weight")
    assert not hasattr(est, "confidence_")
    est.save(tmp_path / "m.npz")
    model = ge.load(tmp_path / "m.npz")
    assert model.n_objects is None
    refused(lambda: model.evidence(LABELS["structured"]), TypeError, "with fractions as weights")
    np.testing.assert_array_equal(model.predict(LABELS["structured"]), est.labels_)
    assert ge.EAC(3, min_size=0.1).fit(LABELS["structured"], sample_weight=np.linspace(0.5, 2, 60)).n_clusters_ == 3


# --- refusals ---------------------------------------------------------------------------------------------------------


class FirstRows:
    """A reduction that forgets the counts."""

    def reduce(self, rows):
        return ge.Reduction(ge.Rows(rows.ensemble), np.arange(len(rows)))


INVALID = [
    (np.zeros(60), "zero for 60 object(s)", "leave them out of fit", "predict"),
    (np.append(np.ones(59), 0), "zero for 1 object(s), the first is object 59"),
    *((np.append(np.ones(59), value), "positive and finite") for value in (-1, np.nan, np.inf)),
    (np.ones(59), "60 numbers, one per object", "(59,)"),
    (np.ones((60, 1)), "60 numbers, one per object", "(60, 1)"),
    (3, "60 numbers, one per object"),
    (["a"] * 60, "60 numbers, one per object"),
    (np.ones(60, dtype=bool), "60 numbers, one per object", "bool"),
    ([[1], [1, 2]], "lists of different lengths"),
    (2.0**50 + np.arange(60), "adds up to 6.7554e+16", "at most 9.0072e+15 exactly", "divide the weights"),
    (2**60 + np.arange(60), "adds up to", "by a common unit (for example, kilobases in place of bases)"),
    (2.0**100 * np.append(np.ones(59), 2.0**60), "adds up to", "divide the weights by a common unit"),
    (np.full(60, 1e-320), "adds up to 5.99993e-319, too little for exact shares"),
]
FRACTIONS = np.linspace(0.5, 2, 60)
WHOLE_NUMBERS = "sample_weight has fractions, but {} needs whole numbers of objects as weights"


@pytest.mark.parametrize(
    ("estimator", "weights", "kind", "parts"),
    [
        *((ge.EAC(3), weights, ValueError, ("sample_weight", *parts)) for weights, *parts in INVALID),
        *(
            (method(of), FRACTIONS, ValueError, (WHOLE_NUMBERS.format(ge.methods()[of].__name__),))
            for of in sorted(set(OF_LABELS) - set(BY_RATIOS))
        ),
        (ge.EAC(3, min_size=2), FRACTIONS, ValueError, ("but min_size=2",)),
        (ge.EM(), FRACTIONS, ValueError, ("but criterion='",)),
        (ge.LWGP(3, reduction="sample:20"), FRACTIONS, ValueError, ("but Sample",)),
        (ge.EAC(4, reduction=FirstRows()), range(1, 61), ValueError, ("adds up to", "rows.counts", "60 objects")),
    ],
)
def test_weights_that_a_fit_refuses(estimator, weights, kind, parts):
    refused(lambda: estimator.fit(LABELS["structured"], sample_weight=weights), kind, *parts)


def test_weights_are_refused_where_objects_are_taken_one_by_one():
    labels, ones = LABELS["structured"], np.ones(60)
    X = np.random.default_rng(0).normal(size=(60, 2))
    soft = [X.clip(0.01) / X.clip(0.01).sum(axis=1, keepdims=True), labels[:, 0]]
    one_by_one, of_labels = "sample_weight was given, but ECRMC compares each object", "sample_weight is for the labels"
    for call, kind, sentence in (
        (lambda: ge.ECRMC(3).fit(labels, features=X, sample_weight=ones), TypeError, one_by_one),
        (lambda: ge.SCEC(2).fit(soft, sample_weight=ones), ValueError, "sample_weight is for labels"),
        (lambda: ge.choose_k(features=X, sample_weight=ones), TypeError, of_labels),
        (lambda: ge.choose_k(labels={3: labels}, sample_weight=ones), TypeError, of_labels),
        (lambda: ge.choose_k(labels, sample_weight=ones / 2), ValueError, "choose_k needs whole numbers"),
    ):
        refused(call, kind, sentence)


def test_weights_that_are_refused_beside_labels_in_chunks():
    labels = LABELS["structured"]
    weights = weights_of(labels)
    for weight, kind, *parts in (
        (weights[:-1], ValueError, "sample_weight must be 60 numbers, one per object, not (59,)"),
        (weights / 7, ValueError, "chunk ", "sample_weight has fractions", "scale and round"),
        (np.where(np.arange(60) == 20, 0, weights), ValueError, "chunk 1", "sample_weight is zero for 1 object"),
        (2**57 + np.arange(60), ValueError, "sample_weight (or counts of Rows) adds up to", REMEDY),
    ):
        refused(lambda w=weight: ge.LWGP(3).fit(in_chunks(labels), sample_weight=w), kind, *parts)
    sampled, sentence = (
        ge.LWGP(3, reduction=ge.Sample(20)),
        "sample_weight was given, but the sample of labels in chunks",
    )
    refused(lambda: sampled.fit(in_chunks(labels), sample_weight=weights), TypeError, sentence)
    # objects without labels are counted once; chunk 0 has one text, "-1", which may be a label of this chunk alone
    texts, weights = np.array([["-1", "-1"], ["-1", "-1"], ["1", "2"], ["2", "3"]]), [5, 7, 1, 1]
    sentence = "2 object(s) have no label"
    refused(lambda: ge.LWGP(2).fit(in_chunks(texts, 2), sample_weight=weights), ValueError, sentence)


def test_a_model_counts_weights(tmp_path):
    labels = LABELS["structured"]
    weights = weights_of(labels)
    weighted = ge.LWEA(3).fit(labels, sample_weight=weights)
    plain = ge.LWEA(3).fit(repeated(labels, weights))
    for est, name in ((weighted, "w.npz"), (plain, "p.npz")):
        est.save(tmp_path / name)
    new = labels[:7]
    mine, its = (ge.load(tmp_path / name).evidence(new) for name in ("w.npz", "p.npz"))
    np.testing.assert_array_equal(mine.objects, its.objects)
    assert ge.load(tmp_path / "w.npz").n_objects == weights.sum()


@pytest.mark.parametrize("unit", [1, 1 / 2, 1 / 3, 1 / 4, 1 / 8, 0.1, 0.01, 1e-6])
def test_units_are_exact(unit):
    part = round(1 / unit)
    counts = np.append(np.random.default_rng(0).integers(1, 100, 50), 1)
    copies = copies_of(counts / part, 51, 20)
    np.testing.assert_array_equal(copies.counts, counts, strict=True)
    assert copies.unit == 1 / part


def test_other_weights_are_rounded_to_a_part_of_their_sum():
    weights = np.random.default_rng(0).lognormal(0, 3, 1000)
    weights = np.maximum(weights, 1e-3)
    weights[7] = weights.sum() * 1e-12  # less than half a unit
    for m in (1, 20, 5000):
        counts, unit = copies_of(weights, 1000, m)
        assert counts.min() == 1
        np.testing.assert_allclose(np.delete(counts, 7) * unit, np.delete(weights, 7), rtol=0, atol=unit / 2)
        assert m * (int(counts.sum()) - 1000) ** 2 < 2**62


def test_weights_have_many_forms():
    labels = LABELS["structured"]
    weights = weights_of(labels)
    expected = ge.EAC(3).fit_predict(labels, sample_weight=weights)
    for form in (weights.tolist(), weights.astype(np.float32), weights.astype(np.uint8), tuple(weights)):
        np.testing.assert_array_equal(ge.consensus(labels, 3, method="eac", sample_weight=form), expected)
    names = [f"contig_{i}" for i in range(60)]
    frame, series = pd.DataFrame(labels, index=names), pd.Series(weights, index=names)
    shuffled = series.sample(frac=1, random_state=0)  # matched by its index
    np.testing.assert_array_equal(ge.EAC(3).fit_predict(frame, sample_weight=shuffled), expected)


@pytest.mark.parametrize("reduction", [None, "sample:40", "catree:tau=0.4"])
@pytest.mark.parametrize("of", ["lwgp", "eac", "kcc"])
def test_weights_count_on_every_device(of, reduction):
    labels = LABELS["missing"]
    weights = weights_of(labels)
    found = method(of, reduction=reduction, device="emulated").fit(labels, sample_weight=weights)
    expected = method(of, reduction=reduction, device="cpu").fit(labels, sample_weight=weights)
    np.testing.assert_array_equal(found.reduction_.counts, expected.reduction_.counts)
    np.testing.assert_array_equal(found.labels_, expected.labels_)


# --- the unit of weights ----------------------------------------------------------------------------------------------

FACTORS = (10**3, 10**9, 10**16)
CLEAR = structured_labels(36, 6, 3, noise=0.05, seed=2)[0]
REMEDY = "divide the weights by a common unit"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("of", OF_LABELS)
def test_multiples_of_weights_are_the_same_input(of):
    """They give the same results to the bit, whatever the unit in which weights are given."""
    weights = weights_of(CLEAR)
    expected = method(of, 3).fit(CLEAR, sample_weight=weights)
    for factor in FACTORS:
        for given in (weights * factor, weights * float(factor)):
            found = method(of, 3).fit(CLEAR, sample_weight=given)
            np.testing.assert_array_equal(found.labels_, expected.labels_)
            np.testing.assert_array_equal(found.reduction_.counts, expected.reduction_.counts)
            assert found.weight_unit_ == factor
            assert isinstance(found.weight_unit_, int)
    assert_like_repetition(found, expected, np.ones(len(CLEAR), dtype=int), unit=factor)


WITH_LINKAGE = [of for of in OF_LABELS if "linkage" in method(of).get_params()]
ON_CPU = [(of, None, "cpu") for of in OF_LABELS]
ON_DEVICES = [(of, None, "emulated") for of in ("lwgp", "kcc", "hbgf", "sec", "oc-h", "cgc")]
LINKED = [(of, linkage, "cpu") for of in WITH_LINKAGE for linkage in ("single", "complete")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("of", "linkage", "device"), [*ON_CPU, *LINKED, *ON_DEVICES])
def test_weights_without_a_common_divisor(of, linkage, device):
    """A further unit in a few weights does not change clear clusters; average linkage refuses the largest weights."""
    est = method(of, 3, device=device, **({} if linkage is None else {"linkage": linkage}))
    weights, first = weights_of(CLEAR), None
    for factor in (10**3, 10**6, 10**9, 10**13):
        nearly = weights * factor + np.random.default_rng(1).integers(0, 2, len(CLEAR))
        assert np.gcd.reduce(nearly) == 1
        if factor > 10**6 and isinstance(est._parts()[1], ge.partition.AverageLinkage):
            refused(lambda nearly=nearly: est.fit(CLEAR, sample_weight=nearly), ValueError, "at most 2.1", REMEDY)
            continue
        found = est.fit(CLEAR, sample_weight=nearly)
        first = found.labels_ if first is None else first
        np.testing.assert_array_equal(found.labels_, first)
        if hasattr(found, "distances_"):
            assert found.distances_.min() >= -1e-12


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_single_linkage_does_not_depend_on_weights(missing, where):
    labels = random_labels(40, 5, 4, missing=missing, seed=4)
    weights = 10**9 + 10**6 * weights_of(labels)
    for similarity in ("coassociation", "agreement", "lwca", "links"):
        est = ge.Consensus(3, similarity=similarity, partitioner="single", device=where)
        rows = core_groups(ge.Rows(labels, counts=weights)).rows
        measured = est._parts()[0](rows)
        light = single_linkage(ge.Rows.of(rows.ensemble, np.ones(len(rows), dtype=int), where), measured)
        heavy = single_linkage(ge.Rows.of(rows.ensemble, rows.counts, where), measured)
        for part in ("kept", "absorbed", "similarities"):
            np.testing.assert_array_equal(getattr(light, part), getattr(heavy, part))


VAST = 2**63 - 1  # largest sum of weights
WHOLE = weights_of(CLEAR)
LIGHTEST = int(-(-(VAST + 1) // WHOLE.sum()))  # smallest factor with which the sum is above the largest


def in_every_place(weights):
    """Return a call that gives weights to each place that accepts them."""
    a, b = CLEAR[:, 0], CLEAR[:, 1]
    return {
        "fit": lambda: ge.EAC(3).fit(CLEAR, sample_weight=weights),
        "lwgp": lambda: ge.LWGP(3).fit(CLEAR, sample_weight=weights),
        "choose_k": lambda: ge.choose_k(CLEAR, ks=[3], sample_weight=weights),
        "metrics": lambda: ge.metrics.scores(a, b, sample_weight=weights),
        "chunks": lambda: ge.EAC(3).fit(in_chunks(CLEAR), sample_weight=weights),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", in_every_place(None))
def test_sums_above_int64_are_refused_in_every_place(place):
    for factor in (LIGHTEST, np.uint64(3 * 10**18), 2.0**63, 10.0**30):
        weights = WHOLE.astype(type(factor)) * factor
        total = f"adds up to {float(weights.sum(dtype=float)):.5g}, but "
        total = "adds up to" if place == "chunks" else total  # the first chunk with too large a sum is named
        message = refused(in_every_place(weights)[place], ValueError, f"sample_weight (or counts of Rows) {total}")
        assert "counts at most 9.2234e+18 exactly" in message
        assert REMEDY in message
    refused(in_every_place(WHOLE * 2.0**1020)[place], ValueError, "sample_weight add up to more than an array can hold")


@pytest.mark.filterwarnings("ignore")
def test_the_largest_sums_are_counted(tmp_path):
    plain = ge.EAC(3).fit(CLEAR, sample_weight=WHOLE).evidence().clusters.sizes
    given = WHOLE * (LIGHTEST - 1)
    for call in in_every_place(given).values():
        call()
    found = ge.EAC(3).fit(CLEAR, sample_weight=given)
    assert found.evidence().clusters.sizes.tolist() == [int(size) * (LIGHTEST - 1) for size in plain]
    assert ge.choose_k(CLEAR, ks=[3], sample_weight=given).table.smallest[3] == int(plain.min()) * (LIGHTEST - 1)
    found.save(tmp_path / "m.npz")
    assert ge.load(tmp_path / "m.npz").n_objects == int(WHOLE.sum()) * (LIGHTEST - 1)


def test_refusals_of_sums_are_in_the_unit_of_the_weights():
    weights, labels = [4, 8, 6, 12, 3 * 10**17, 10**17], CLEAR[:6, :3]
    heavy = [2 * (2 * 10**9 + i) for i in range(6)]
    of_three = "adds up to 4e+17, but a consensus of 3 clusterings", f"at most {min(2**53, 2**62 // 3) * 2:.5g} exactly"
    of_two = "adds up to 4e+17, but a comparison of two labelings counts at most"
    of_linkage = f"adds up to {sum(heavy):.5g}, but average linkage of 3 clusterings counts at most 4.295e+09"
    for call, *parts in (
        (lambda: ge.LWGP(2).fit(labels, sample_weight=weights), *of_three),
        (lambda: ge.EAC(2).fit(in_chunks(labels, 2), sample_weight=weights), *of_three),
        (lambda: ge.metrics.nmi(labels[:, 0], labels[:, 1], sample_weight=weights), of_two),
        (lambda: ge.EAC(2).fit(labels, sample_weight=heavy), of_linkage),
    ):
        refused(call, ValueError, *parts)


def test_what_people_read_is_in_their_unit(tmp_path):
    labels = LABELS["structured"]
    weights = weights_of(labels)
    expected = ge.EAC(3, min_size=20).fit(labels, sample_weight=weights)
    scaled = ge.EAC(3, min_size=20_000).fit(labels, sample_weight=weights * 1000)
    np.testing.assert_array_equal(scaled.rest_, expected.rest_)
    np.testing.assert_array_equal(scaled.cut(2), expected.cut(2))
    np.testing.assert_array_equal(scaled.evidence().clusters.sizes, 1000 * expected.evidence().clusters.sizes)
    total = int(weights.sum()) * 1000
    too_large, sentence = ge.EAC(3, min_size=90_000), f"3 cluster(s) of 90000 objects are more than the {total} objects"
    refused(lambda: too_large.fit(labels, sample_weight=weights * 1000), ValueError, sentence)
    scaled.save(tmp_path / "m.npz")
    model = ge.load(tmp_path / "m.npz")
    assert model.n_objects == total
    np.testing.assert_array_equal(model.evidence(labels).objects, expected.evidence(labels).objects)
    labels = random_labels(60, 5, 4, seed=1)
    weights = np.append(weights_of(labels)[1:] + 9, 10)
    for unit in (1, 1000):
        with pytest.warns(
            UserWarning, match=rf" of {weights.sum() * unit} objects,.* (which is rare|while the largest)"
        ):
            ge.EAC(3, linkage="single").fit(labels, sample_weight=weights * unit)


@pytest.mark.parametrize("score", ["nmi", "ari", "accuracy"])
def test_scores_do_not_depend_on_the_unit_of_weights(score):
    a, b = LABELS["structured"][:, :2].T
    score, weights = getattr(ge.metrics, score), weights_of(a)
    for factor in FACTORS:
        for scaled in (weights * factor, weights * float(factor)):
            assert score(a, b, sample_weight=scaled) == score(a, b, sample_weight=weights)
    refused(lambda: score(a, b, sample_weight=2**60 + np.arange(60)), ValueError, REMEDY)


def test_choose_k_does_not_depend_on_the_unit_of_weights(tmp_path):
    def choose(weights, resume=None):
        return ge.choose_k(CLEAR, ks=[2, 3, 4], sample_weight=weights, resume=resume)

    weights = weights_of(CLEAR)
    expected = choose(weights)
    for factor in FACTORS:
        choice = choose(weights * factor, tmp_path / str(factor))
        for mine, its in zip(choice.rows, expected.rows, strict=True):
            assert mine == its | {"smallest": factor * its["smallest"]}
        assert (choice.suggested, choice.structure, choice.reasons) == (3, None, expected.reasons)
    refused(lambda: choose(weights, tmp_path / "1000"), ValueError, "data")


# --- evidence of many objects -----------------------------------------------------------------------------------------

SHAPES = {"few clusters": (40, 3, 0.0), "missing": (40, 3, 0.2), "many clusters": (500, 250, 0.1)}


@pytest.mark.parametrize("each", [10**3, 10**8, 10**12])
@pytest.mark.parametrize("missing", ["zero", "ignore"])
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_of_many_objects_are_exact(shape, missing, each, where):
    n, k, share = SHAPES[shape]
    labels = random_labels(n, 4, k, missing=share, seed=3)
    counts = each * weights_of(labels) + np.arange(n)
    found = ge.evidence.pairs(core_groups(ge.Rows.of(ge.Ensemble(labels), counts, where)).rows, missing=missing)
    expected = oracles.pairs_by_matches(labels, counts, missing)
    bins = zip(found.copresent.tolist(), found.matches.tolist(), strict=True)
    assert dict(zip(bins, found.counts.tolist(), strict=True)) == {
        at: found.counts.dtype.type(n_pairs) for at, n_pairs in expected.items()
    }
    assert 0 <= found.pac() <= 1
    assert 0 <= found.area() <= 1
    assert found.counts.min() > 0


@pytest.mark.parametrize("each", [10**3, 10**8, 10**12])
@pytest.mark.parametrize("shape", SHAPES)
def test_agreement_beyond_chance_of_many_objects(shape, each):
    n, k, share = SHAPES[shape]
    labels = random_labels(n, 4, k, missing=share, seed=3)
    weights = weights_of(labels)
    many, fewer = each * weights + np.arange(n), weights * 10**5
    found, of_fewer = (ge.evidence.beyond_chance(ge.Rows(labels, counts=counts)) for counts in (many, fewer))
    together, expected = oracles.pairs_together_by_chance(labels, many)
    assert found.together == pytest.approx(together, rel=1e-14)
    assert found.expected == pytest.approx(expected, rel=1e-12)
    assert found.deviation / many.sum() ** 1.5 == pytest.approx(of_fewer.deviation / fewer.sum() ** 1.5, rel=0.05)


# --- the number of clusters -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("of", ["lwgp", "lwea"])
@pytest.mark.parametrize("name", LABELS)
def test_choose_k_counts_weights(of, name, tmp_path):
    labels = LABELS[name]
    weights = weights_of(labels)
    how = {"ks": range(2, 7), "method": of}
    weighted = ge.choose_k(labels, sample_weight=weights, resume=tmp_path, **how)
    plain = ge.choose_k(repeated(labels, weights), **how)
    assert weighted.suggested == plain.suggested
    assert weighted.rows == plain.rows  # to the bit
    for k in how["ks"]:
        np.testing.assert_array_equal(repeated(weighted.labels[k], weights), plain.labels[k])
        np.testing.assert_array_equal(weighted.consensus[k].matrix(), plain.consensus[k].matrix())
    refused(lambda: ge.choose_k(labels, resume=tmp_path, **how), ValueError, "weights")


def test_the_page_names_the_methods_that_need_whole_numbers():
    page = (Path(__file__).parents[2] / "docs" / "weights.md").read_text()
    listed = page.partition("partitioner of\ngraphs: ")[2].partition(".")[0]
    assert set(re.findall(r"`([a-z-]+)`", listed)) & set(OF_LABELS) == set(OF_LABELS) - set(BY_RATIOS)


# --- labels in chunks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["lwea", "lwgp", "hbgf", "mcla", "kcc", "median"])
def test_weights_of_labels_in_chunks_are_those_of_one_piece(of):
    labels = LABELS["repeated rows"]
    weights = weights_of(labels)
    expected = method(of).fit(labels, sample_weight=weights)
    for given in (weights, weights.astype(float), in_chunks(weights, 30)):
        found = method(of).fit(in_chunks(labels), sample_weight=given)
        np.testing.assert_array_equal(found.labels_.compute(), expected.labels_)
        np.testing.assert_array_equal(found.reduction_.counts, expected.reduction_.counts)
        assert found.weight_unit_ == 1.0


def test_the_unit_of_weights_is_that_of_all_chunks():
    """Chunks have other divisors."""
    labels = LABELS["repeated rows"]
    weights = weights_of(labels) * np.repeat([6, 4, 10, 14], 20)
    expected = ge.LWEA(4).fit(labels, sample_weight=weights)
    found = ge.LWEA(4).fit(in_chunks(labels, 20), sample_weight=in_chunks(weights * 10**6, 20))
    np.testing.assert_array_equal(found.labels_.compute(), expected.labels_)
    np.testing.assert_array_equal(found.reduction_.counts, expected.reduction_.counts)
    assert (expected.weight_unit_, found.weight_unit_) == (2, 2 * 10**6)


@pytest.mark.parametrize("of", ["lwgp", "hbgf"])
def test_weights_of_core_groups_in_pieces_are_repetition(of, in_pieces):
    labels = LABELS["repeated rows"]
    weights = weights_of(labels)
    found = method(of).fit_predict(in_chunks(labels, 40), sample_weight=weights)
    sizes = weights.reshape(2, 40).sum(axis=1).tolist()
    expected = method(of).fit_predict(in_chunks(repeated(labels, weights), sizes))
    np.testing.assert_array_equal(repeated(found.compute(), weights), expected.compute())


def test_weights_may_be_a_column_of_a_dask_dataframe():
    dd = pytest.importorskip("dask.dataframe", reason="dask[dataframe] is not installed")
    labels = LABELS["repeated rows"]
    frame = pd.DataFrame(labels, columns=list("abcde")).assign(copies=weights_of(labels))
    parts = dd.from_pandas(frame, npartitions=3)
    chunked = method("lwea").fit_predict(parts[list("abcde")], sample_weight=parts["copies"])
    np.testing.assert_array_equal(chunked.compute(), method("lwea").fit_predict(labels, sample_weight=frame["copies"]))
