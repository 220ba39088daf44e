"""The numbers of clusters: 0 is the largest; of equal sizes, the cluster of the first object comes first."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import oracles
import pytest
from conftest import METHODS, random_labels, structured_labels

import gpuens as ge
from gpuens.cli import main
from gpuens.labels.codes import number_labels
from gpuens.labels.rows import Numbered, Rows
from gpuens.partition import Partition, Partitioner
from gpuens.runtime import device as devices

pytestmark = pytest.mark.filterwarnings("ignore:found only . of . clusters", "ignore:n_clusters=. merges")

SIZES = [6, 40, 6, 25, 40]  # two pairs of equal sizes
K = len(SIZES)


def planted(seed=0, n_clusterings=5):
    """Return labels (N, M) in which all clusterings have the same clusters of the `SIZES`, under different labels."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(K), SIZES))
    labels = np.column_stack([rng.permutation(K)[truth] for _ in range(n_clusterings)])
    return np.where(np.arange(len(labels))[:, None] % n_clusterings == np.arange(n_clusterings), -1, labels), truth


LABELS, TRUTH = planted()
NUMBERS = oracles.by_size(TRUTH)
NOISE = random_labels(160, 5, (3, 6), missing=0.1, seed=3)


def assert_by_size(labels, weights=None):
    labels = devices.to_host(labels)
    np.testing.assert_array_equal(labels, oracles.by_size(labels, weights))


# --- the rule ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_labels_are_numbered_as_by_the_oracle(seed):
    labels = np.random.default_rng(seed).integers(-1, 9, 30)
    np.testing.assert_array_equal(number_labels(labels), oracles.by_size(labels))


def test_the_oracle_on_a_case_by_hand():
    assert oracles.by_size([3, 5, -1, 5, 3, 8, 7, 7]).tolist() == [0, 1, -1, 1, 0, 3, 2, 2]
    assert oracles.by_size([3, 5, -1, 5, 3, 8], [1, 1, 9, 1, 1, 5]).tolist() == [1, 2, -1, 2, 1, 0]
    assert number_labels(np.array([-1, -1])).tolist() == [-1, -1]


# --- fits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method, where):
    """The planted clusters have ties, which most methods find; noise has other sizes in each method."""
    for labels in (LABELS, NOISE):
        est = METHODS[method](K).set_params(device=where).fit(labels)
        assert_by_size(est.labels_)
        if not est.parts().needs_features:
            np.testing.assert_array_equal(devices.to_host(est.predict(labels)), devices.to_host(est.labels_))
        if est.fit_.gives_membership:
            membership = devices.to_host(est.membership_)
            own = membership[np.arange(len(labels)), devices.to_host(est.labels_)]
            assert np.mean(own == membership.max(axis=1)) > 0.9
        sizes = est.evidence().clusters.sizes
        assert sizes.tolist() == np.bincount(devices.to_host(est.labels_)).tolist() == sorted(sizes, reverse=True)


def test_methods_that_find_planted_clusters_agree_on_every_label():
    agreeing = [name for name in METHODS if np.array_equal(METHODS[name](K).fit(LABELS).labels_, NUMBERS)]
    assert len(agreeing) > len(METHODS) / 2


@pytest.mark.parametrize("estimator", [ge.EAC(K), ge.LWGP(K), ge.Voting(K), ge.MCLA(K), ge.EM(K), ge.SCEC(K)])
def test_weights_are_copies(estimator):
    """The weights reverse the order of the sizes."""
    weights = np.array([20, 1, 20, 3, 1])[TRUTH]
    labels = estimator.fit_predict(LABELS, sample_weight=weights)
    np.testing.assert_array_equal(labels, oracles.by_size(TRUTH, weights))
    again = estimator.fit_predict(np.repeat(LABELS, weights, axis=0))
    np.testing.assert_array_equal(again, np.repeat(labels, weights))


@pytest.mark.parametrize("method", ["eac", "lwgp", "voting", "kcc"])
def test_fractions_as_weights(method):
    weights = np.array([2.0, 0.1, 2.0, 0.3, 0.1])[TRUTH]
    assert_by_size(ge.methods()[method](K).fit(LABELS, sample_weight=weights).labels_, weights)


class OneForEachRow:
    """A reduction whose rows count 1, whatever their number of objects."""

    def reduce(self, rows):
        groups = ge.CoreGroups().reduce(rows)
        return ge.Reduction(Rows.of(groups.ensemble, np.ones(len(groups.rows), dtype=np.int64), "cpu"), groups.row_of)


@pytest.mark.parametrize("reduction", ["sample:60", "sample:500", "catree:0.3", OneForEachRow()])
@pytest.mark.parametrize("method", ["eac", "lwgp", "mcla", "kcc", "em", "best-of-k"])
def test_reductions(method, reduction):
    """The sizes are those of all objects, also of those outside a sample."""
    est = ge.methods()[method](None if method == "best-of-k" else 4, reduction=reduction).fit(NOISE)
    assert_by_size(est.labels_)
    np.testing.assert_array_equal(est.predict(NOISE), est.labels_)


@pytest.mark.parametrize("reduction", [None, "sample:60", "catree:0.3"])
@pytest.mark.parametrize("weights", [None, np.arange(1, 161)], ids=["objects", "weights"])
def test_cuts_are_numbered_like_fits(reduction, weights):
    est = ge.LWEA(3, reduction=reduction).fit(NOISE, sample_weight=weights)
    for k in (2, 3, 5, 9):
        again = ge.LWEA(k, reduction=reduction).fit(NOISE, sample_weight=weights)
        np.testing.assert_array_equal(est.cut(k), again.labels_)
        np.testing.assert_array_equal(est.cut_rows(k), again.fit_.partition.labels)
        assert_by_size(est.cut(k), weights)


def test_small_branches_count_where_they_end():
    est = ge.EAC(3, min_size=9).fit(NOISE)
    assert est.rest_.any()
    assert_by_size(est.labels_)
    confident = est.confident_labels(0.5)
    kept = confident >= 0
    assert 0 < kept.sum() < len(kept)
    np.testing.assert_array_equal(confident[kept], est.labels_[kept])


def test_names_are_listed_by_size():
    answers = [["b", "a", "a", "c", "c"], ["b", "a", "a", "c", "c"]]
    est = ge.Voting(vocabulary="shared").fit(answers)
    assert est.labels_.tolist() == answers[0]
    assert est.cluster_names_.tolist() == ["a", "c", "b"]
    assert est.classes_.tolist() == ["a", "b", "c"]
    assert est.membership_.argmax(axis=1).tolist() == [1, 0, 0, 2, 2]
    assert est.evidence().clusters.sizes.tolist() == [2, 2, 1]


@dataclass(frozen=True)
class Backwards(Partitioner):
    """The clusters of the first clustering, numbered backwards, with a rule, memberships and results of clusters."""

    takes = ("labels",)

    def __call__(self, similarity, rows, n_clusters):
        def rule(rows):
            return n_clusters - 1 - rows.ensemble.codes[:, 0].astype(np.int64)

        def membership(rows):
            return (rule(rows)[:, None] == np.arange(n_clusters + 1)).astype(float)  # the last column is of no cluster

        results = {"sizes": np.bincount(rule(rows), rows.counts), "of": np.arange(-1, n_clusters), "other": [*range(9)]}
        kinds = {"per_cluster": ("sizes",), "as_labels": ("of",)}
        return Partition(rule(rows), n_clusters, rule, results, **kinds, membership=membership)


class PartitionerAlone(ge.Consensus):
    """A method without a similarity."""

    def _parts(self):
        return None, Backwards()


def test_all_results_of_a_partitioner_get_the_numbers():
    first = np.array([0, 1, 1, 2, 2, 2, 0, 0, 0])  # sizes 4, 2, 3; numbered backwards 2, 1, 0
    est = PartitionerAlone(3).fit([first, first])
    assert est.labels_.tolist() == est.membership_.argmax(axis=1).tolist() == [0, 2, 2, 1, 1, 1, 0, 0, 0]
    assert est.predict([[0, 1, 2], [2, 2, 1]]).tolist() == [0, 2, 1]
    assert est.membership_.shape == (9, 4)
    assert (est.sizes_.tolist(), est.of_.tolist(), est.other_) == ([4, 3, 2], [-1, 1, 2, 0], [*range(9)])
    numbered = Numbered(lambda rows: np.arange(3), np.array([2, 0, 1]), 2)  # the label 0 occurs in no row
    assert Partition(None, 2, numbered).renumbered(np.array([1, 0])).rule(None).tolist() == [2, 1, 0]


@pytest.mark.filterwarnings("ignore:n_clusters is not given")
def test_other_functions():
    labels = structured_labels(160, 6, 4, noise=0.2, seed=1)[0]
    choices = [ge.choose_k(labels, ks=[2, 3, 5], method=method) for method in ("lwea", "lwgp")]
    np.testing.assert_array_equal(choices[0].labels[3], ge.LWEA(3).fit(labels).labels_)
    modes = [mode.consensus for mode in ge.modes(labels, 2).modes]
    edges = np.random.default_rng(0).integers(0, 160, (300, 2))
    graph = ge.graph_consensus(edges, labels, threshold=0.5, final="components")
    clusters = ge.cluster(np.random.default_rng(0).normal(size=(90, 2)) + 9 * np.arange(90)[:, None] % 4, 3)
    for found in [*choices[0].labels.values(), *choices[1].labels.values(), *modes, graph.labels, clusters.labels_]:
        assert_by_size(found)
    consensus = ge.consensus(LABELS, K)
    aligned = ge.align(LABELS, to=consensus)
    assert aligned.names == [str(c) for c in range(K)]
    for column in aligned.codes.T:
        np.testing.assert_array_equal(column[column >= 0], consensus[column >= 0])


# --- devices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [LABELS, NOISE], ids=["ties", "noise"])
def test_labels_on_a_gpu_are_numbered_there(fake_cupy, labels):
    """Only arrays of the number of clusters come to the host."""
    labels = np.tile(labels, (50, 1))
    given = devices.move(labels, "cuda")
    expected = ge.LWGP(K).fit(labels).labels_
    est = ge.LWGP(K).fit(given)
    np.testing.assert_array_equal(devices.to_host(est.labels_), expected)
    reduction, partition = est.reduction_, est.fit_.partition
    before = len(fake_cupy.traffic.to_host.sizes)
    numbers, found = reduction.by_size(devices.move(partition.labels, "cuda"), K)
    assert max(fake_cupy.traffic.to_host.sizes[before:]) <= 8 * K
    assert numbers.tolist() == list(range(K))
    np.testing.assert_array_equal(devices.to_host(found), expected)


# --- Dask -------------------------------------------------------------------------------------------------------------


def in_chunks(labels, rows=37):
    return pytest.importorskip("dask.array").from_array(labels, chunks=(rows, -1))


@pytest.mark.parametrize("reduction", [None, "sample:60", "sample:500", "catree:0.3"])
@pytest.mark.parametrize("method", ["eac", "lwgp", "kcc", "voting"])
def test_chunks(method, reduction):
    for labels in (LABELS, NOISE):
        est = ge.methods()[method](K, reduction=reduction).fit(in_chunks(labels))
        computed = est.labels_.compute()
        assert_by_size(computed)
        np.testing.assert_array_equal(est.predict(labels), computed)
        if reduction is None or reduction.startswith("catree"):
            np.testing.assert_array_equal(computed, ge.methods()[method](K, reduction=reduction).fit(labels).labels_)
        if method == "eac":
            assert_by_size(est.cut(3).compute())


@pytest.mark.parametrize("method", ["lwgp", "kcc", "voting", "mcla", "em", "pd"])
def test_core_groups_in_pieces(method, in_pieces):
    for labels in (LABELS, NOISE):
        est = ge.methods()[method](K).fit(in_chunks(labels))
        found = est.labels_.compute()
        assert_by_size(found)
        np.testing.assert_array_equal(est.predict(labels), found)
        if est.fit_.gives_membership:
            membership = est.membership_.compute()
            assert np.mean(membership[np.arange(len(labels)), found] == membership.max(axis=1)) > 0.9


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("labels.csv", LABELS, fmt="%d", delimiter=",", header="a,b,c,d,e", comments="")
    np.save("labels.npy", LABELS)
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "tsv", "npy", "npz", "zarr", "parquet"])
def test_files(folder, kind, capsys):
    if kind in ("zarr", "parquet"):
        pytest.importorskip({"parquet": "pyarrow"}.get(kind, kind))
    assert main(["run", "labels.csv", "-k", str(K), "-o", f"out.{kind}"]) == 0
    np.testing.assert_array_equal(ge.io.read_labels(f"out.{kind}").to_array()[:, 0], NUMBERS)
    assert f"{K} clusters, of {', '.join(map(str, sorted(SIZES, reverse=True)))} objects" in capsys.readouterr().out
    assert json.loads(Path(f"out.{kind}.json").read_text())["cluster_sizes"] == sorted(SIZES, reverse=True)


# --- pages and pictures -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unpainted")
def test_memberships_and_a_least_confidence_in_files(folder):
    main(["run", "labels.csv", "-k", "5", "--method", "em", "--membership", "--evidence", "-o", "out.npz"])
    with np.load("out.npz") as output:
        assert_by_size(output["labels"])
        np.testing.assert_array_equal(output["membership"].argmax(axis=1), output["labels"])
        limit = str(np.median(output["confidence"]))
    main(["run", "labels.csv", "-k", "5", "--method", "em", "--min-confidence", limit, "-o", "few.npy"])
    few = np.load("few.npy").ravel()
    assert 0 < (few >= 0).sum() < len(few)
    np.testing.assert_array_equal(few[few >= 0], NUMBERS[few >= 0])


def test_the_page_lists_clusters_by_number(folder):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    main(["run", "labels.csv", "-k", str(K), "-o", "out.csv", "--report", "out.csv.html", "--quiet"])
    page = Path("out.csv.html").read_text()
    (table,) = [part for part in re.findall(r"<table.*?</table>", page, re.DOTALL) if ">stability</a>" in part]
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)]
    assert [row[:2] for row in rows if row] == [[str(c), str(n)] for c, n in enumerate(sorted(SIZES, reverse=True))]


def test_colours_follow_the_numbers():
    pytest.importorskip("matplotlib")
    from matplotlib.colors import to_hex, to_rgb
    from matplotlib.figure import Figure

    from gpuens.plotting.drawing import CLUSTERS
    from gpuens.report import front

    est = ge.EAC(K).fit(LABELS)
    bars = front.sizes(est.evidence().clusters.sizes, ax=Figure().subplots())
    assert [tick.get_text() for tick in bars.get_yticklabels()] == [str(c) for c in range(K)]
    for ax in (bars, ge.plotting.silhouettes(est.evidence(), ax=Figure().subplots())):
        assert [to_hex(patch.get_facecolor()) for patch in ax.patches] == [to_hex(color) for color in CLUSTERS[:K]]
    image = ge.plotting.tracking({K: est.labels_}, ax=Figure().subplots()).images[0].get_array()[0]
    np.testing.assert_allclose(image, [to_rgb(CLUSTERS[c]) for c in np.sort(est.labels_)])


def test_branches_of_a_tree_have_the_colours_of_their_clusters():
    pytest.importorskip("matplotlib")
    from matplotlib.colors import to_hex
    from matplotlib.figure import Figure

    from gpuens.plotting.drawing import CLUSTERS, INK

    est = ge.EAC(3).fit(NOISE)
    ax = ge.plotting.dendrogram(est, p=12, ax=Figure().subplots())
    sizes = [int(tick.get_text()) for tick in ax.get_xticklabels()]
    under = dict.fromkeys(CLUSTERS[:3], 0)
    for collection in ax.collections:
        color = to_hex(collection.get_edgecolor()[0])
        for x, y in np.concatenate([path.vertices[[0, -1]] for path in collection.get_paths()]):
            if color != INK and y == 0 and x % 10 == 5:  # the place of a leaf
                under[color] += sizes[int(x // 10)]
    assert any(under.values())
    assert all(n in (0, size) for n, size in zip(under.values(), np.bincount(est.labels_), strict=True))
