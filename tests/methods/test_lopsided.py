"""The warning about results far less balanced than the base clusterings, and cases without the warning."""

import re
import sys
import warnings

import numpy as np
import pytest
from conftest import one_sentence, structured_labels

import gpuens as ge
from gpuens.labels.rows import Rows
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.methods.lopsided import remedy_of, warn_of_lopsided, without_lopsided_warnings
from gpuens.partition import AverageLinkage, Partition, label_kmeans
from gpuens.partition.label_kmeans import centred_indicators

pytestmark = pytest.mark.filterwarnings("error")  # pyproject.toml ignores the warnings about lopsided results

# with these labels, OC-H finds one large cluster
LABELS, TRUTH = structured_labels(600, 10, 5, noise=0.35, split=2, seed=1)


def warned(call):
    """Return the text of the only warning of a call, which must be one sentence."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    (warning,) = found
    one_sentence(str(warning.message))
    return str(warning.message)


def advice():
    return "take another method"


def of_sizes(*sizes):
    return Partition.of_labels(np.repeat(np.arange(len(sizes)), sizes))


def even(n_objects, k=8, n_clusterings=5):
    """Return rows whose clusterings have k clusters of equal sizes."""
    return Rows(np.random.default_rng(0).permuted(np.arange(n_objects)[:, None] % np.full(n_clusterings, k), axis=0))


# --- results with a warning -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_chunks", [False, True])
def test_one_cluster_of_nearly_everything(in_chunks):
    labels = LABELS
    if in_chunks:
        labels = pytest.importorskip("dask.array").from_array(LABELS, chunks=(200, 10))
    est = ge.OCH(5)
    said = warned(lambda: est.fit(labels))
    largest = np.bincount(np.asarray(est.labels_)).max()
    assert largest > 540
    assert f"one of 5 clusters has {largest} of 600 objects" in said
    assert "take another method, such as lwgp" in said
    ge.EAC(5).fit(LABELS)  # with these labels, EAC gives no warning


def test_clusters_of_single_objects():
    said = warned(lambda: warn_of_lopsided(even(800), of_sizes(300, 250, 247, 1, 1, 1), advice))
    assert "clusters of at most 1 of 800 objects are 3 of 6, which is rare in the base clusterings" in said
    said = warned(lambda: warn_of_lopsided(even(6000), of_sizes(2990, 2990, 20), advice))
    assert "clusters of at most 20 of 6000 objects are 1 of 3" in said


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        (
            (14_778, 9_000, 8_000, 7_000, 4_889, 2),
            "one of 6 clusters has 2 of 43669 objects, and the others at least 4889",
        ),
        ((9_000,) * 8 + (20, 30), "2 of 10 clusters have at most 30 of 72050 objects, and the others at least 9000"),
    ],
)
def test_a_cluster_of_next_to_nothing_beside_large_ones(sizes, sentence):
    """Most clusters are large, and less than a quarter of the clusters is tiny."""
    n = sum(sizes)
    assert sentence in warned(lambda: warn_of_lopsided(even(n), of_sizes(*sizes), advice))
    warn_of_lopsided(
        even(n), of_sizes(*sizes[:3], n - sum(sizes[:3]) - 100, 100), str
    )  # this cluster is small, but not tiny
    alike = Rows(np.repeat(np.arange(len(sizes)), sizes)[:, None].repeat(3, axis=1))
    warn_of_lopsided(alike, of_sizes(*sizes), str)  # the base clusterings have the same sizes


def test_objects_are_counted_not_rows():
    counts, labels = [60, 50, 49, 1], Partition.of_labels(np.array([0, 0, 0, 1]))
    rows = Rows([[0, 1, 2, 3], [0, 1, 2, 3]], counts=counts)
    assert "has 159 of 160" in warned(lambda: warn_of_lopsided(rows, labels, advice))
    # the base clusterings have a cluster of a single object too
    warn_of_lopsided(Rows([[0, 0, 0, 1], [0, 0, 1, 2]], counts=counts), labels, str)


def test_rows_in_pieces_are_counted_by_their_rule():
    """A partition of rows in pieces has a rule instead of an array of labels; the rule gives the cluster sizes."""
    rows = Rows(LABELS)
    found = label_kmeans(rows, centred_indicators(rows.offsets), 5, rng=np.random.default_rng(0))
    lopsided = of_sizes(590, 10)
    found.rule = lambda rows, labels=lopsided.labels: labels
    found.labels, found.n_clusters = None, 2
    assert "has 590 of 600" in warned(lambda: warn_of_lopsided(rows, found, advice))


def test_soft_clusterings():
    soft = np.eye(5)[TRUTH] * 0.8 + 0.04
    rows = Rows.of(SoftEnsemble([soft, LABELS[:, 0]]), np.ones(600, dtype=np.int64), "cpu")
    assert "has 590 of 600" in warned(lambda: warn_of_lopsided(rows, of_sizes(590, 10), advice))


def test_a_worker_s_warnings_are_the_caller_s(fake_cupy, monkeypatch):
    da = pytest.importorskip("dask.array")
    from gpuens import distributed
    from gpuens.distributed import graph

    fitting = sys.modules["gpuens.distributed.fitting"]
    chunks = distributed.Chunks(distributed.on_gpus(da.from_array(LABELS, chunks=(200, 10))))
    monkeypatch.setattr(chunks, "somewhere", graph.embed)
    est = ge.OCH(5)
    said = warned(lambda: fitting._learn_there(est, chunks, est.checked_parts(), chunks.groups.rows))
    assert "one of 5 clusters has" in said


# --- the advice in the warning ----------------------------------------------------------------------------------------


class Sized(AverageLinkage):
    """A linkage with the parameter min_size."""

    min_size = None


class SizedEAC(ge.EAC):
    """EAC with the parameter min_size."""

    def __init__(self, n_clusters=None, *, min_size=None):
        self.n_clusters, self.min_size = n_clusters, min_size


@pytest.mark.parametrize("written", ["average", "complete", "single"])
def test_a_partitioner_with_a_smallest_size_is_told_as_it_is_written(written):
    """The advice quotes the partitioner as the user wrote it, and a user can follow the advice."""
    est = ge.Consensus(2, partitioner=written)
    said = remedy_of(est, est.parts().partitioner, 30, 2)
    better = re.match(r"pass partitioner='(.*)' \(--partitioner \1\) for larger ones, or take another", said)[1]
    assert better.endswith("min_size=2")
    assert est.set_params(partitioner=better).parts().partitioner.min_size == 2


def test_methods_with_a_smallest_size_are_told_so():
    assert remedy_of(SizedEAC(3), Sized(), 3000, 3) == (
        "pass min_size=100 (--min-size 100) for larger ones, or take another method, such as lwgp"
    )
    assert "pass Sized(min_size=2) " in remedy_of(ge.Consensus(3, partitioner=Sized()), Sized(), 30, 3)
    for estimator in (ge.OCH(3), ge.Consensus(3, partitioner="rock")):  # estimators without the parameter min_size
        assert remedy_of(estimator, estimator._parts()[1], 3000, 3) == "take another method, such as lwgp"
    assert remedy_of(ge.LWGP(3), ge.LWGP(3)._parts()[1], 3000, 3) == "take another method"
    given = Sized()
    object.__setattr__(given, "min_size", 5)
    assert "min_size" not in remedy_of(SizedEAC(3, min_size=5), given, 3000, 3)


# --- results without a warning ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        (even(800), (800,)),
        (even(800), (700, 100)),
        (even(140), (139, 1)),  # there are too few objects
        (even(800, 40), (20,) * 38 + (39, 1)),
        (even(800, 40), (25,) * 30 + (1,) * 50),  # there are too few objects for each cluster
    ],
)
def test_ordinary_sizes(rows, sizes):
    warn_of_lopsided(rows, of_sizes(*sizes), str)


def test_classes_that_are_unequal_in_the_base_clusterings_too():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [960, 30, 10])
    labels = np.where(rng.random((1000, 6)) < 0.002, rng.integers(0, 3, (1000, 6)), truth[:, None])
    assert ge.metrics.ari(ge.EAC(3).fit_predict(labels), truth) > 0.9
    outliers = np.repeat([0, 1, 2, 3], [499, 499, 1, 1])
    warn_of_lopsided(Rows(np.repeat(outliers[:, None], 5, axis=1)), of_sizes(499, 499, 1, 1), str)


def test_answers_that_are_thrown_away():
    choices = []
    assert "clusters by oc-h: one of" in warned(
        lambda: choices.append(ge.choose_k(LABELS, ks=[5, 6], method="oc-h"))
    )  # the result that choose_k suggests
    assert choices[0].lopsided.keys() == {5, 6}
    with without_lopsided_warnings():
        ge.OCH(5).fit(LABELS)


def test_without_a_number_of_clusters_nothing_is_said():
    """A linkage that is cut at a distance has no requested number of clusters, and gives no warning."""
    single = ge.EAC(linkage="single", distance_threshold=0.9).fit(LABELS)
    assert single.n_clusters_ >= 1
