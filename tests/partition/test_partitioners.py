"""Clusters of a minimum size equal those of a literal search over all cuts.

The remaining objects join similar clusters.
"""

import numpy as np
import oracles
import pytest
from conftest import random_labels, refused, structured_labels
from sklearn.base import clone

import gpuens as ge
from gpuens.cli import main
from gpuens.partition import Dendrogram
from gpuens.partition.linkage.dendrogram import coarsest
from gpuens.partition.linkage.partitioners import least_objects
from gpuens.runtime import device as devices

TIE = 1e-9  # two similarities with a smaller difference may differ only by rounding

pytestmark = pytest.mark.filterwarnings("ignore:n_clusters=. merges", "ignore:constant clusterings")


def ensembles(n):
    """Yield n small label matrices: noise, or groups with single objects beside them.

    Some have repeated rows or missing labels.
    """
    for seed in range(n):
        rng = np.random.default_rng(seed)
        n_objects, m = int(rng.integers(8, 36)), int(rng.integers(2, 8))
        if seed % 2:
            distinct = int(rng.integers(4, n_objects)) if seed % 3 else None
            yield random_labels(n_objects, m, (2, 6), distinct=distinct, missing=(seed % 4) / 10, seed=seed)
        else:
            labels = structured_labels(n_objects, m, 3, noise=0.2, split=2, missing=(seed % 3) / 10, seed=seed)[0]
            odd = rng.random((n_objects // 5, m)) < 0.6
            labels[: n_objects // 5][odd] = 10 + rng.integers(0, 4, odd.sum())
            yield labels


def tree_of(est, labels, weights):
    """Return the merges and the core groups of a fit. For average linkage, the merges are the literal ones."""
    if est.linkage == "average":
        tree = oracles.greedy_average_linkage(labels, weights)
        merges = [(a, b, s) for (a, b, _), s in zip(tree.merges, tree.heights.tolist(), strict=True)]
        return merges, tree.groups
    return merges_of(est.fit(labels)), oracles.core_groups(labels)


def merges_of(est):
    tree = est.dendrogram_
    return list(zip(tree.kept.tolist(), tree.absorbed.tolist(), tree.similarities.tolist(), strict=True))


@pytest.mark.parametrize("linkage", ["average", "single", "complete"])
@pytest.mark.parametrize("kind", [ge.EAC, ge.LWEA])
def test_the_cut_is_that_of_a_literal_search_over_all_cuts(kind, linkage):
    n_cut = n_rest = n_repeated = n_refused = 0
    for seed, labels in enumerate(ensembles(200 if linkage == "average" else 80)):
        k, least = 2 + seed % 3, 2 + seed % 4
        weights = None if kind is ge.EAC else oracles.eci(labels, 0.4)
        merges, groups = tree_of(kind(1, linkage=linkage), labels, weights)
        together = oracles.coassociation(labels, weights) * labels.shape[1]
        expected = oracles.cut_of_large(merges, groups, k, least, together)
        est = kind(k, linkage=linkage, min_size=least)
        if expected is None or k > len(groups.counts):
            refused(lambda est=est, labels=labels: est.fit(labels), ValueError)
            n_refused += 1
            continue
        est.fit(labels)
        wanted, rest = expected
        wanted = as_numbered(wanted, rest, est.labels_)
        np.testing.assert_array_equal(est.rest_, rest)
        assert est.n_clusters_ == k == len(set(est.labels_.tolist()))
        differ = np.flatnonzero(est.labels_ != wanted)
        if kind is ge.EAC:  # the similarities of EAC are whole numbers, so that no result depends on rounding
            assert len(differ) == 0
        for x in differ:
            own, other = (together[x, ~rest & (wanted == t)].mean() for t in (est.labels_[x], wanted[x]))
            assert rest[x]
            assert abs(own - other) < TIE
        np.testing.assert_array_equal(est.predict(labels), est.labels_)
        n_cut, n_rest, n_repeated = n_cut + 1, n_rest + rest.any(), n_repeated + (groups.counts.max() > 1)
    assert min(n_cut, n_rest, n_repeated, n_refused) >= 8


@pytest.mark.parametrize("options", [{}, {"min_size": 2}, {"min_size": 5}, {"min_size": "auto"}])
def test_one_tree_has_the_labels_of_other_numbers_of_clusters(options):
    est = ge.LWEA(3, **options).fit(LABELS)
    for k in range(1, min(len(est.lifetimes_), 60) + 1):
        again = ge.LWEA(k, **options).fit(LABELS)
        np.testing.assert_array_equal(est.cut_rows(k)[est.reduction_.row_of], again.labels_)
        np.testing.assert_array_equal(est.cut(k), again.labels_)


@pytest.mark.filterwarnings("ignore:n_clusters is not given")
@pytest.mark.parametrize("kind", [ge.EAC, ge.LWEA])
def test_lifetimes_are_those_of_clusters_of_that_size(kind):
    numbers = set()
    for seed, labels in enumerate(ensembles(60)):
        least = 1 + seed % 6
        if least > len(labels):
            continue
        est = kind(min_size=least).fit(labels)
        counts = est.reduction_.counts
        within = est.fit_.partition.self_similarities[counts > 1]
        expected = oracles.large_lifetimes(merges_of(est), counts, least, 1 - within.min() if len(within) else None)
        assert [lifetime for lifetime in expected if lifetime is not None] == est.lifetimes_.tolist()
        again = kind(est.n_clusters_, min_size=least).fit(labels)
        np.testing.assert_array_equal(again.labels_, est.labels_)
        numbers.add(est.n_clusters_)
    assert len(numbers) > 2


def test_single_objects_no_longer_eat_k():
    """Two groups share three of eight labels. Each of two single objects shares one label with one of the groups."""
    labels = np.repeat([[0, 0, 0, 0, 0, 0, 0, 0], [1, 0, 1, 0, 1, 0, 1, 1]], [20, 10], axis=0)
    labels = np.concatenate([labels, [[0] + [3] * 7, [1] + [4] * 7]])
    plain, est = ge.EAC(2).fit(labels), ge.EAC(2, min_size=2).fit(labels)
    assert np.bincount(plain.labels_).tolist() == [31, 1]
    assert est.labels_.tolist() == [0] * 20 + [1] * 10 + [0, 1]
    np.testing.assert_array_equal(est.children_, plain.children_)
    np.testing.assert_array_equal(est.distances_, plain.distances_)
    assert [np.flatnonzero(fit.rest_).tolist() for fit in (plain, est)] == [[], [30, 31]]
    assert (plain.n_branches_, est.n_branches_) == (2, 4)
    assert (ge.EAC(min_size=2).fit(labels).n_clusters_, ge.EAC(min_size=1).fit(labels).n_clusters_) == (2, 4)


def test_a_shrinking_number_of_large_branches_is_found_from_the_top():
    """Along the merges, the number of large branches rises and falls.

    The first suitable cut from the top must be taken.
    """
    kept, absorbed = np.array([0, 2, 4, 0, 6, 0, 0]), np.array([1, 3, 5, 2, 7, 4, 6])
    tree = Dendrogram(kept, absorbed, np.array([0.9, 0.8, 0.7, 0.5, 0.4, 0.2, 0.1]))
    n_large = tree.n_large(np.ones(8, dtype=np.int64), 2)
    assert n_large.tolist() == [0, 1, 2, 3, 2, 3, 2, 1]
    assert coarsest(n_large).tolist() == [0, 7, 6, 5]
    # Three clusters last from the merge at .4 to .2, and two clusters from .2 to .1. The two from .5 to .4 do not
    # count.
    np.testing.assert_allclose(tree.lifetimes(None, n_large), [0.1, 0.2], atol=1e-12)
    np.testing.assert_array_equal(tree.lifetimes(0.05), tree.lifetimes(0.05, tree.n_large(np.ones(8, np.int64), 1)))


def with_strays():
    """Return labels of four groups, with repeated rows, missing labels, and 40 objects with mostly unique labels."""
    labels = structured_labels(200, 8, 4, noise=0.3, split=2, missing=0.1, seed=4)[0]
    labels[:30] = labels[60:90]
    rng = np.random.default_rng(0)
    odd = rng.random((40, 8)) < 0.75
    labels[160:][odd] = 20 + rng.integers(0, 12, odd.sum())
    return labels


LABELS = with_strays()
HEIGHT = 0.998
FEATURES = np.random.default_rng(3).normal(size=(200, 3))
LINKAGES = {
    "eac": ge.EAC(3, min_size=9),
    "eac, single": ge.EAC(2, linkage="single", min_size=3),
    "eac, complete": ge.EAC(4, linkage="complete", min_size=12),
    "eac, ignore": ge.EAC(3, missing="ignore", min_size=9),
    "eac, weights": ge.EAC(3, weights=[1, 2, 1, 3, 1, 1, 2, 1], min_size=9),
    "lwea": ge.LWEA(4, min_size=0.075),
    "weac": ge.WEAC(3, min_size=9),
    "lce": ge.LCE(3, min_size=9),
    "ecpcs-hc": ge.ECPCSHC(3, min_size=9),
    "ecrmc": ge.ECRMC(3, n_neighbors=9, min_size=15),
    "pta": ge.PTA(5, min_size=9),
    "any": ge.Consensus(3, similarity="coupled", partitioner="average:min_size=9"),
    "pairs": ge.Consensus(4, similarity="common-neighbors", partitioner="single:min_size=2"),
}


def similarities(est):
    """Return the similarities (G, G) of all rows of a fit. These similarities assign the remaining objects."""
    if isinstance(est, ge.PTA):  # PTA's own similarities exist only for the fitted rows
        return oracles.coassociation(np.asarray(est.reduction_.ensemble.to_array()))
    return est.similarity_.tile(est.reduction_.rows, 0, len(est.reduction_.rows))


def as_numbered(labels, rest, numbered):
    """Return labels with the cluster numbers that ``numbered`` has, which are those of the objects outside the rest."""
    return numbered[[np.flatnonzero(~rest & (labels == t))[0] for t in range(labels.max() + 1)]][labels]


def check(est, k, least):
    """Check the cut of a fit by a literal search. Check that each remaining object joined its most similar cluster."""
    rows = est.reduction_.rows
    row_of = np.repeat(np.arange(len(rows)), rows.counts)
    labels, similar = devices.to_host(est.fit_.partition.labels)[row_of], similarities(est)[np.ix_(row_of, row_of)]
    groups = oracles.CoreGroups(None, rows.counts, row_of)
    wanted, rest = oracles.cut_of_large(merges_of(est), groups, k, least, similar)
    assert rest.any()
    np.testing.assert_array_equal(est.fit_.partition.rest[row_of], rest)
    wanted = as_numbered(wanted, rest, labels)
    np.testing.assert_array_equal(labels[~rest], wanted[~rest])
    members = np.column_stack([~rest & (wanted == t) for t in range(k)])
    assert members.sum(axis=0).min() >= least
    compared = np.ones_like(similar)
    if isinstance(est, ge.EAC) and est.missing == "ignore":  # means of EAC(missing="ignore") are ratios of sums
        similar, compared, _ = oracles.pairs_together(rows.ensemble.to_array()[row_of], "ignore")
    means = similar @ members / np.maximum(compared @ members, 1)
    np.testing.assert_allclose(means[np.flatnonzero(rest), labels[rest]], means[rest].max(axis=1), rtol=0, atol=TIE)


@pytest.mark.parametrize("name", LINKAGES)
def test_every_linkage_has_it_on_every_device(name, where):
    est = clone(LINKAGES[name]).set_params(device=where)
    est.fit(LABELS, features=FEATURES if est.parts().needs_features else None)
    least = {"lwea": 15, "ecrmc": 15, "pairs": 2, "eac, single": 3, "eac, complete": 12}.get(name, 9)
    check(est, est.n_clusters, least)
    np.testing.assert_array_equal(devices.to_host(est.predict(LABELS)), est.labels_)
    np.testing.assert_array_equal(est.rest_, est.fit_.partition.rest[devices.to_host(est.reduction_.row_of)])
    np.testing.assert_array_equal(est.evidence().labels, est.labels_)


@pytest.mark.parametrize("by", ["mean", "sum"])
@pytest.mark.parametrize("kind", [ge.EAC, ge.LWEA])
def test_objects_beyond_the_sample_are_compared_with_the_clusters_alone(kind, by):
    sample = ge.Sample(80, by=by)
    est = kind(3, min_size=12, reduction=sample).fit(LABELS)
    check(est, 3, 12)
    drawn = sample.draw(len(LABELS))
    core = drawn[~est.rest_[drawn]]
    objects = ge.Rows(est.reduction_.ensemble.encoded(LABELS))
    similar = est.similarity_.tile(objects, 0, len(LABELS))
    scores = oracles.similarity_to_clusters(similar, core, est.labels_[core], mean=by == "mean")
    others = np.flatnonzero(est.reduction_.row_of >= len(est.reduction_.rows))
    assert len(others) > 50
    assert not est.rest_[others].any()
    np.testing.assert_allclose(scores[others, est.labels_[others]], scores[others].max(axis=1), rtol=0, atol=TIE)


@pytest.mark.parametrize("kind", [ge.EAC, ge.LWEA])
def test_nodes_of_a_tree_count_their_objects(kind):
    est = kind(4, min_size=12, reduction=ge.CATree(0.3)).fit(LABELS)
    assert est.reduction_.counts.max() > 2
    check(est, 4, 12)
    np.testing.assert_array_equal(est.rest_, est.fit_.partition.rest[est.reduction_.row_of])


def test_unknown_rows_are_compared_with_the_clusters_without_the_rest():
    """The new object is equally similar to both clusters.

    The remaining objects must not count in the mean of the larger one.
    """
    labels = [[0, 0, 0, 0, 0, 0]] * 6 + [[0, 0, 0, 1, 1, 1]] * 7
    labels = np.array([*labels, [2, 2, 2, 1, 2, 2], [3, 3, 3, 1, 3, 3], [4, 4, 4, 1, 4, 4]])
    est = ge.EAC(2, min_size=5).fit(labels)
    assert est.labels_.tolist() == [1] * 6 + [0] * 10
    assert np.flatnonzero(est.rest_).tolist() == [13, 14, 15]
    new = np.array([[0, -1, -1, -1, -1, -1], [0, -1, -1, 0, -1, -1], [9, 9, 9, 1, 9, 9]])
    assert est.predict(new).tolist() == [0, 1, 0]


def test_a_height_gives_clusters_of_that_size():
    est = ge.LWEA(distance_threshold=HEIGHT, min_size=8).fit(LABELS)
    plain = ge.LWEA(distance_threshold=HEIGHT).fit(LABELS)
    sizes = np.bincount(plain.labels_)
    assert est.n_clusters_ == np.count_nonzero(sizes >= 8) == 5
    assert est.n_branches_ == plain.n_clusters_ == 17
    np.testing.assert_array_equal(est.rest_, (sizes < 8)[plain.labels_])


@pytest.mark.parametrize(
    ("share", "n", "least"), [(0.1, 30, 3), (0.1, 31, 4), (0.35, 20, 7), (1e-9, 30, 1), (0.29, 100, 29)]
)
def test_a_share_is_of_all_objects_without_rounding_up(share, n, least):
    assert least_objects(share, n, 2) == least
    sizes = [least, n - least] if least > 1 else [n // 2, n - n // 2]
    labels = np.repeat([[0, 0], [1, 1]], sizes, axis=0)
    assert ge.EAC(2, min_size=share).fit(labels).n_clusters_ == 2
    if least > 1:
        more = np.repeat([[0, 0], [1, 1]], [least - 1, n - least + 1], axis=0)
        refused(lambda: ge.EAC(2, min_size=share).fit(more), ValueError, "min_size", "more than 1 cluster(s)")


UNEQUAL = [(60, 1, 1, 1), (50, 2, 3, 2), (2, 40, 1, 1), (1, 2, 3, 50), (20, 20, 1, 1), (1, 30, 2, 2)]


@pytest.mark.parametrize("kind", [ge.EAC, ge.LWEA])
def test_auto_is_a_fifth_of_the_mean_size_or_the_most_that_the_tree_has(kind):
    fewer = 0
    unequal = [np.repeat([[0, 0, 0], [1, 1, 1], [2, 2, 2], [2, 2, 3]], sizes, axis=0) for sizes in UNEQUAL]
    for seed, labels in enumerate([*ensembles(60), *unequal]):
        labels, k = np.repeat(labels, 4, axis=0), 2 + seed % 3
        fifth = len(labels) // (5 * k)
        est = kind(k, min_size="auto")
        if k > len(np.unique(labels, axis=0)):
            continue
        est.fit(labels)
        for size in range(fifth, 0, -1):
            try:
                expected = kind(k, min_size=size).fit(labels)
                break
            except ValueError:
                fewer += 1
        np.testing.assert_array_equal(est.labels_, expected.labels_)
        np.testing.assert_array_equal(est.rest_, expected.rest_)
        np.testing.assert_array_equal(est.lifetimes_, kind(k).fit(labels).lifetimes_)
    assert fewer > 3


@pytest.mark.parametrize(
    ("value", "error", "sentence"),
    [
        (0, ValueError, " must be at least 1, but is 0."),
        (-2, ValueError, " must be at least 1, but is -2."),
        (1.0, ValueError, " must be a whole number of objects or a share between 0 and 1, but is 1.0."),
        (2.5, ValueError, " must be a whole number of objects or a share between 0 and 1, but is 2.5."),
        (0.0, ValueError, " must be a whole number of objects or a share between 0 and 1, but is 0.0."),
        (np.nan, ValueError, " must be a whole number of objects or a share between 0 and 1, but is nan."),
        ("5", TypeError, " must be a whole number of objects, a share below 1, or 'auto', not '5'."),
        (True, TypeError, " must be a whole number, not True."),
        (70, ValueError, "=70: 3 cluster(s) of 70 objects are more than the 200 objects;"),
        (0.4, ValueError, "=0.4: 3 cluster(s) of 80 objects are more than the 200 objects;"),
        (66, ValueError, "=66: no cut of the tree has more than "),
    ],
)
@pytest.mark.parametrize("kind", [ge.EAC, ge.LWEA, ge.WEAC, ge.LCE, ge.ECPCSHC])
def test_sizes_that_cannot_be_are_refused(kind, value, error, sentence):
    assert refused(lambda: kind(3, min_size=value).fit(LABELS), error).startswith("min_size" + sentence)


def test_what_has_no_tree_has_no_smallest_size():
    for est, *parts in (
        (ge.LCE(3, post="pam", min_size=5), "min_size=5", "post='pam'"),
        (ge.EAC(distance_threshold=0.01, min_size=90), "min_size=90", "0.01"),
        (ge.EAC(min_size=201), "min_size=201", "200 objects"),
    ):
        refused(lambda est=est: est.fit(LABELS), ValueError, *parts)
    refused(lambda: ge.LWGP(3).fit(LABELS).rest_, AttributeError, "no rest_")


@pytest.mark.parametrize(
    "options", ["--method lwea --min-size 9", "--similarity lwca --partitioner average:min_size=9"]
)
def test_the_command_line_has_it(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    main(["run", "labels.npy", "-k", "3", *options.split(), "-o", "out.npy"])
    np.testing.assert_array_equal(np.load("out.npy"), ge.LWEA(3, min_size=9).fit(LABELS).labels_)
