"""Consensus of features or of a graph in one call: few objects, chunks, files, Leiden, and error messages."""

import inspect
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, peak_of, refused
from scipy.sparse import coo_array, csc_array, csr_array, eye_array, save_npz
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

import gpuens as ge
from gpuens import cli, generate
from gpuens.generate import kmeans, landmarks, leiden_ensemble, mixed_ensemble
from gpuens.report import fit as report_of_fit
from gpuens.runtime import installing
from gpuens.runtime.checks import recorded

X, y = make_blobs(200, 3, centers=4, cluster_std=0.7, random_state=0)
NEAR = kneighbors_graph(X, 15)
GRAPH = csr_array(NEAR.maximum(NEAR.T))


# --- few objects ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["landmark", "kmeans"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 19, 59])
def test_few_objects_are_clustered(kind, n):
    points = np.random.default_rng(n).normal(size=(n, 2)) + 9 * (np.arange(n) % 2)[:, None]
    found = ge.cluster(points, 2, kind=kind, n_clusterings=5)
    assert found.n_clusters_ == 2
    ks = np.diff(found.ensemble_.offsets)
    assert ks.min() >= 2
    assert ks.max() <= max(2, n // 2)


def test_ranges_of_few_objects_grow_into_the_defaults(monkeypatch):
    asked = []

    def recorded(n_clusters, *_):
        asked.append(n_clusters)
        raise KeyError

    for module, sizes, expected in (
        (landmarks, (1, 2, 6, 60, 119, 120, 9999), [(1, 1), (2, 2), (2, 3), (20, 30), (20, 59), (20, 60), (20, 60)]),
        (kmeans, (1, 3, 4, 9999), [1, 2, (2, "sqrt"), (2, "sqrt")]),
    ):
        monkeypatch.setattr(module, "check_k_range", recorded)
        for n in sizes:
            with pytest.raises(KeyError):
                ge.cluster(np.zeros((n, 2)), 1, kind="landmark" if module is landmarks else "kmeans")
        assert asked == expected
        asked.clear()


@pytest.mark.parametrize("kind", ["landmark", "kmeans"])
def test_the_command_line_makes_base_clusterings_of_few_objects(kind, tmp_path):
    np.save(tmp_path / "X.npy", X[:3])
    assert cli.main(["generate", str(tmp_path / "X.npy"), "--kind", kind, "-o", str(tmp_path / "labels.npy")]) == 0
    labels = np.load(tmp_path / "labels.npy")
    assert labels.shape == (3, 20)
    assert labels.max() == 1


# --- error messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kind", "mentioned"),
    [
        ({"n_clusters": 201}, ValueError, "n_clusters=201 is more than the 200 object(s) of X"),
        ({"X": csr_array(X), "method": "tome"}, TypeError, "X must be dense features for method 'tome', not csr_array"),
        ({"X": GRAPH, "method": "ecrmc", "kind": "leiden"}, TypeError, "X must be dense features for method 'ecrmc'"),
        ({"kind": "leiden", "n_clusterings": 20}, ValueError, "n_clusterings=20 is not for kind='leiden'"),
        ({"kind": "leiden", "resume": "kept"}, ValueError, "resume='kept' is for kind='mixed' and kind='landmark'"),
        ({"kind": "best"}, ValueError, "kind must be one of 'kmeans', 'landmark', 'leiden', 'mixed', not 'best'"),
    ],
)
def test_what_is_refused_before_base_clusterings_are_made(given, kind, mentioned, monkeypatch):
    for name in generate.KINDS:
        monkeypatch.setitem(generate.KINDS, name, None)
    refused(lambda: ge.cluster(**{"X": X, "n_clusters": 4, **given}), kind, mentioned)


@pytest.mark.parametrize("kind", ["landmark", "kmeans", "leiden"])
def test_what_is_no_features_is_refused(kind):
    for given in (None, "iris", 5, {}):
        refused(lambda given=given: ge.cluster(given, 4, kind=kind), TypeError, "X must be an array")
    refused(lambda: ge.cluster([[1, 2], [3]], 4, kind=kind), ValueError, "differ in length")


@pytest.mark.parametrize(
    ("given", "kind", "mentioned"),
    [
        ({"kind": "kmeans"}, TypeError, "X is in chunks, but kind='kmeans' needs features in one piece"),
        ({"kind": "leiden"}, TypeError, "X is in chunks, but kind='leiden' needs features in one piece"),
        ({"method": "ecrmc"}, TypeError, "X is in chunks, but method 'ecrmc' compares each object with all others"),
        ({"n_clusters": 201}, ValueError, "n_clusters=201 is more than the 200 object(s) of X"),
    ],
)
def test_chunks_are_refused_before_base_clusterings_are_made(given, kind, mentioned, in_chunks, monkeypatch):
    for name in generate.KINDS:
        monkeypatch.setitem(generate.KINDS, name, None)
    refused(lambda: ge.cluster(**{"X": in_chunks(X, chunks=(50, 3)), "n_clusters": 4, **given}), kind, mentioned)


def test_who_works_is_refused_where_nobody_can():
    refused(lambda: ge.cluster(X, 4, kind="leiden", client=object()), ValueError, "client is not for kind='leiden'")
    for kind in ("landmark", "kmeans"):
        refused(lambda kind=kind: ge.cluster(X, 4, kind=kind, client=object()), TypeError, "a distributed.Client")


def test_leiden_without_igraph_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "igraph", None)
    refused(lambda: ge.cluster(X, 4, kind="leiden"), ImportError, "igraph, which is not installed", "[leiden]")
    for command in ("cluster -k 3", "generate"):
        assert cli.main([*command.split(), "nothing", "--kind", "leiden", "-o", str(tmp_path / "out.npy")]) == 2
        # this error is raised before the data set is searched for
        assert installing.command("leiden") in capsys.readouterr().err


# --- features in chunks, and in files ---------------------------------------------------------------------------------


@pytest.fixture
def in_chunks():
    return pytest.importorskip("dask.array").from_array


def made_at(folder):
    """Return the modification time of each file in a folder."""
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


@pytest.mark.parametrize("method", ["hbgf", "lwea"])
def test_chunks_have_the_consensus_of_the_whole(method, in_chunks, tmp_path):
    whole = ge.cluster(X, 4, method=method, n_clusterings=6)
    for chunks in (200, 70):
        found = ge.cluster(
            in_chunks(X, chunks=(chunks, 2)), 4, method=method, n_clusterings=6, resume=tmp_path / f"{chunks}"
        )
        assert found.labels_.chunks == found.ensemble_.chunks[:1]
        assert found.ensemble_.shape == (200, 6)
        assert np.mean(found.ensemble_.compute() == whole.ensemble_.to_array()) > 0.99
        assert ge.metrics.nmi(found.labels_.compute(), whole.labels_) > 0.99
        assert found.n_clusters_ == 4
    kept = made_at(tmp_path / "70")
    again = ge.cluster(in_chunks(X, chunks=(70, 2)), 4, method=method, n_clusterings=6, resume=tmp_path / "70")
    np.testing.assert_array_equal(again.labels_.compute(), found.labels_.compute())
    assert made_at(tmp_path / "70") == kept


def test_chunks_of_unknown_sizes_and_frames(in_chunks):
    expected = ge.cluster(X, 4, n_clusterings=4).labels_
    chunks = in_chunks(X, chunks=(70, 3))
    kept = chunks[chunks[:, 0] < np.inf]
    assert np.isnan(kept.shape[0])
    found = ge.cluster(kept, 4, n_clusterings=4)
    assert ge.metrics.nmi(found.labels_.compute(), expected) > 0.99
    refused(lambda: ge.cluster(kept, 201, n_clusterings=2), ValueError, "n_clusters=201 is more than the")


def test_files_are_clustered_without_being_read_whole(tmp_path, monkeypatch, sizes, capsys):
    """The peak memory stays far below the size of the features: 24 MB as integers, 48 MB as float32."""
    sizes("kmeans.points", BLOCK_BYTES=2**20)
    big = np.random.default_rng(0).integers(0, 9, size=(15_000, 800), dtype=np.int16)
    np.save(tmp_path / "big.npy", big)
    generator = inspect.unwrap(mixed_ensemble)
    monkeypatch.setattr(generator, "__kwdefaults__", generator.__kwdefaults__ | {"n_landmarks": 30})
    file, out = np.load(tmp_path / "big.npy", mmap_mode="r"), tmp_path / "out.npy"
    found = []

    def on_the_command_line():
        words = ["cluster", str(tmp_path / "big.npy"), "-k", "2", "--n-clusterings", "1", "-o", str(out)]
        assert cli.main(words) == 0
        found.append(np.load(out))

    for work in (lambda: found.append(ge.cluster(file, 2, n_clusterings=1).labels_), on_the_command_line):
        work()
        assert peak_of(work) < 15e6
    for labels in found:
        np.testing.assert_array_equal(labels, found[0])


@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".parquet"])
def test_files_are_clustered_in_chunks(suffix, in_chunks, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if suffix == ".npy":
        np.save("X.npy", X)
    elif suffix == ".zarr":  # a zarr array is stored in chunks, so that no option is needed
        pytest.importorskip("zarr").save_array("X.zarr", X)
    else:
        pytest.importorskip("dask.dataframe")
        pd.DataFrame(X, columns=["a", "b", "c"]).to_parquet("X.parquet", row_group_size=70)
    chunks = "" if suffix == ".zarr" else "--scheduler threads"
    words = f"cluster X{suffix} -k 4 --n-clusterings 6 --exclude 1 --chunk-rows 70 {chunks} -o out.npy".split()
    assert cli.main(words) == 0
    expected = ge.cluster(X[:, [0, 2]], 4, n_clusterings=6).labels_
    assert ge.metrics.nmi(np.load("out.npy"), expected) > 0.99
    record = json.loads(Path("out.npy.json").read_text())
    assert (record["n_objects"], record["n_features"], record["n_clusterings"]) == (200, 2, 6)
    assert record["cluster_sizes"] == np.bincount(np.load("out.npy")).tolist()
    assert record["ties"].startswith("decided by the order of the clusterings")
    assert capsys.readouterr().out.startswith(f"X{suffix}: 200 objects, 2 features\nmixed: 6 clusterings with ")


def test_columns_of_tables_in_chunks_are_numbers_as_in_one_piece(in_chunks, tmp_path, monkeypatch, capsys):
    pytest.importorskip("dask.dataframe")
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        d=X[:, 0] > 0, e=pd.array(np.arange(200) % 3, dtype="Int64")
    )
    frame.to_parquet("X.parquet", row_group_size=70)
    frame.assign(name="n").to_parquet("names.parquet")
    command = "cluster {} -k 4 --n-clusterings 3 -o {}.npy"
    for name, more in (("whole", []), ("chunks", ["--scheduler", "threads"])):
        assert cli.main([*command.format("X.parquet", name).split(), *more]) == 0
        capsys.readouterr()
        assert cli.main([*command.format("names.parquet", "none").split(), *more]) == 3
        assert "X must be real numbers, not of type" in (said := capsys.readouterr().err)
        assert "in column 'name': leave it out (--exclude), encode" in said
    assert ge.metrics.nmi(np.load("chunks.npy"), np.load("whole.npy")) > 0.99


def test_files_in_chunks_are_read_by_chunks_alone(in_chunks, tmp_path, monkeypatch):
    """No read is larger than a chunk, and all chunks are read."""
    from gpuens.distributed import files

    read = []

    def recorded(path, kind, start, stop, whole=files._read_rows):
        read.append((start, stop))
        return whole(path, kind, start, stop)

    monkeypatch.setattr(files, "_read_rows", recorded)
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", X)
    words = "cluster X.npy -k 4 --n-clusterings 2 --scheduler threads --chunk-rows 70 -o out.npy --quiet"
    assert cli.main(words.split()) == 0
    assert set(read) == {(0, 70), (70, 140), (140, 200)}


@pytest.mark.parametrize("method", ["lwea", "voting"])
@pytest.mark.usefixtures("unpainted")
def test_a_page_of_files_in_chunks(method, in_chunks, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", X)
    words = f"cluster X.npy -k 4 --method {method} --n-clusterings 4 --scheduler threads --report page.html -o out.csv"
    assert cli.main(words.split()) == 0
    sizes = json.loads(Path("out.csv.json").read_text())["cluster_sizes"]
    assert sum(sizes) == 200
    assert f">{sizes[0]}<" in Path("page.html").read_text()


def test_what_chunks_cannot_be_is_refused_before_work(in_chunks, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", X)
    np.save("flat.npy", X[:, 0])
    np.save("wrong.npy", np.where(np.arange(600).reshape(200, 3) == 451, np.nan, X))
    np.save("words.npy", X.astype(str))
    chunks = "scheduler=threads is for work in chunks, but"
    for words, said in (
        ("X.npy --kind kmeans", f"{chunks} kind='kmeans' needs features in one piece"),
        ("X.npy --kind leiden", f"{chunks} kind='leiden' needs features in one piece"),
        ("X.npy --method ecrmc", f"{chunks} method 'ecrmc' compares each object"),
        ("X.npy --chunk-rows 0", "chunk_rows must be at least 1, but is 0."),
        ("X.npy --columns 3", "columns: there is no column '3'; there are 0 … 2."),
        ("nothing.npy", "path 'nothing.npy' does not exist; check the name."),
        ("flat.npy", "X must be 2-D, (n_objects, n_features), not of shape (200,)"),
        ("wrong.npy", "X must be finite, but 1 value(s) are NaN or infinite"),
        ("words.npy", "X must be real numbers, not of type <U"),
        ("X.npy -k 201", "n_clusters=201 is more than the 200 object(s) of X; ask for fewer."),
    ):
        assert cli.main(f"cluster -k 4 -o out.npy --scheduler threads {words}".split()) in (2, 3)
        line = capsys.readouterr().err
        assert said in line
        assert line.count("\n") == 1
        assert not Path("out.npy").exists()


# --- Leiden -----------------------------------------------------------------------------------------------------------


def test_the_consensus_of_leiden_clusterings():
    pytest.importorskip("igraph")
    found = ge.cluster(X, 4, kind="leiden", random_state=3)
    assert found.ensemble_.n_clusterings == 20
    assert ge.metrics.nmi(y, found.labels_) > 0.95
    of_graph = ge.cluster(GRAPH, 4, kind="leiden", random_state=3)
    np.testing.assert_array_equal(of_graph.labels_, found.labels_)
    features = ge.cluster(X, 4, kind="leiden", method="tome")
    assert features.n_clusters_ == 4


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Provide a working directory with features, a graph, and an h5ad file of both."""
    pytest.importorskip("igraph")
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", X)
    save_npz("graph.npz", GRAPH)
    return tmp_path


OPTIONS = "--kind leiden --resolutions 0.2,1 --n-seeds 2 --n-iterations -1 --seed 5"


def labels_and_record(words):
    assert cli.main([*words.split(), "-o", "out.npy"]) == 0
    return np.load("out.npy"), json.loads(Path("out.npy.json").read_text())


def test_the_command_line_makes_them(files, capsys):
    expected = leiden_ensemble(X, (0.2, 1.0), 2, n_iterations=-1, random_state=5).to_array()
    found, record = labels_and_record(f"generate X.npy {OPTIONS}")
    np.testing.assert_array_equal(found, expected)
    assert (record["method"], record["n_objects"], record["n_features"]) == ("leiden_ensemble", 200, 3)
    assert record["parameters"]["resolutions"] == [0.2, 1.0]
    assert "leiden: 4 clusterings" in capsys.readouterr().out
    found, record = labels_and_record(f"generate graph.npz {OPTIONS}")
    np.testing.assert_array_equal(found, expected)
    assert (record["n_objects"], record["n_edges"]) == (200, GRAPH.nnz // 2)
    assert f"graph.npz: 200 objects, {GRAPH.nnz // 2:,} edges" in capsys.readouterr().out
    with_loops = csr_array(GRAPH + eye_array(200))
    with_loops[0, 0] = 0.0  # a stored zero is no edge
    for kind in (csr_array, csc_array, coo_array):
        save_npz("graph.npz", kind(with_loops))
        found, record = labels_and_record(f"generate graph.npz {OPTIONS}")
        np.testing.assert_array_equal(found, expected)
        assert record["n_edges"] == GRAPH.nnz // 2
    found, _ = labels_and_record("generate X.npy --kind leiden --resolutions 0.5 --n-neighbors 30")
    np.testing.assert_array_equal(found, leiden_ensemble(X, 0.5, n_neighbors=30).to_array())


def test_the_command_line_reads_cells(files, capsys):
    anndata = pytest.importorskip("anndata")
    square = np.zeros((200, 200))
    square[:, :3] = X
    cells = anndata.AnnData(csr_array(square), obsm={"X_pca": X}, obsp={"connectivities": GRAPH})
    cells.obs_names = [f"c{i}" for i in range(200)]
    cells.write_h5ad("cells.h5ad")
    expected = leiden_ensemble(X, (0.2, 1.0), 2, n_iterations=-1, random_state=5).to_array()
    for key in ("", "--key X_pca", "--key X"):
        found, record = labels_and_record(f"generate cells.h5ad {OPTIONS} {key}")
        np.testing.assert_array_equal(found, expected)
        assert ("n_edges" in record) == (key == "")
    assert cli.main(f"generate cells.h5ad {OPTIONS} -o out.h5ad".split()) == 0
    made = anndata.read_h5ad("out.h5ad")
    assert made.obs_names.tolist() == cells.obs_names.tolist()
    assert list(made.obs) == ["leiden_0.2_0", "leiden_0.2_1", "leiden_1_0", "leiden_1_1"]
    found, record = labels_and_record("cluster cells.h5ad --kind leiden -k 4 --seed 3")
    np.testing.assert_array_equal(found, ge.cluster(GRAPH, 4, kind="leiden", random_state=3).labels_)
    assert (record["kind"], record["n_clusterings"]) == ("leiden", 20)
    del cells.obsp["connectivities"]
    cells.write_h5ad("cells.h5ad")
    capsys.readouterr()
    assert cli.main(f"generate cells.h5ad {OPTIONS} -o other.npy".split()) == 3
    assert (
        "has no graph in obsp['connectivities']; run scanpy.pp.neighbors, or name features" in capsys.readouterr().err
    )


def test_help_says_which_kinds_an_option_is_of(capsys):
    with pytest.raises(SystemExit):
        cli.main(["generate", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "kmeans, landmark, mixed: M, the number of clusterings. (int; 20 if not given)" in said
    assert "landmark: p, the number of landmarks; at most the number of objects. (int; 1000 if not given)" in said
    edges = "landmark, mixed: K, the number of landmarks to which each object has an edge. (int; 5 if not given); "
    assert edges + "leiden: For" in said
    assert "0.25,0.5,1.0,1.5,2.0 if not given" in said
    assert "VALUE Seed of all draws." in said


# --- unspecified number of clusters -----------------------------------------------------------------------------------


def test_the_number_of_clusters_may_be_left_open(in_chunks, tmp_path):
    found = ge.cluster(X)
    assert found.n_clusters_ == 4 == ge.choose_k(features=X, ks=range(2, 8), n_clusterings=3).suggested
    np.testing.assert_array_equal(found.labels_, ge.cluster(X, random_state=0).labels_)
    np.save(tmp_path / "X.npy", X)
    assert ge.cluster(np.load(tmp_path / "X.npy", mmap_mode="r")).n_clusters_ == 4
    assert ge.cluster(csr_array(X)).n_clusters_ == 4
    apart = ge.cluster(in_chunks(X, chunks=(70, 2)))
    assert apart.n_clusters_ == 4
    np.testing.assert_array_equal(apart.suggestion_.score, found.suggestion_.score)
    number = found.suggestion_
    # the next fit asks for 4 clusters, the number that the first fit found
    assert not hasattr(found.fit(found.ensemble_), "suggestion_")
    assert cli.main(["cluster", f"{tmp_path}/X.npy", "-o", f"{tmp_path}/out.npy", "--quiet"]) == 0
    record = json.loads((tmp_path / "out.npy.json").read_text())
    assert (record["n_clusters"], record["suggestion"]["n_clusters"]) == (4, 4)
    assert record["suggestion"]["reason"] == number.reason()


def test_a_number_in_doubt_is_said():
    with pytest.warns(UserWarning, match="n_clusters is not given, and the chosen number . is in doubt"):
        found = ge.cluster(np.random.default_rng(3).random((300, 3)))
    assert found.n_clusters_ == found.suggestion_.n_clusters
    assert f"The number of clusters is in doubt: {found.suggestion_.doubt()}." in report_of_fit._doubts(
        found, found.evidence(), {}
    )


def test_objects_that_are_all_alike_cause_one_warning():
    with recorded() as said:
        assert ge.cluster(np.ones((50, 3))).n_clusters_ == 1
    assert len(said) == 1
    assert "(20 of 20) put every object into one cluster" in one_sentence(*said)


def test_features_in_gpu_memory_are_clustered_there(fake_cupy):
    points = fake_cupy.asarray(X.astype(np.float32))
    for k in (4, None):
        found = ge.cluster(points, k, n_clusterings=4)
        assert isinstance(found.labels_, fake_cupy.ndarray)
        assert found.n_clusters_ == 4
