"""Labels of several sources are joined by the names of the objects: in memory, from files, and of modalities."""

import json
from pathlib import Path
from types import SimpleNamespace

import anndata
import numpy as np
import pandas as pd
import pytest
from commands import call, done  # noqa: F401
from conftest import one_sentence, refused, structured_labels

import gpuens as ge
from gpuens import io
from gpuens.io.joining import read_joined
from gpuens.labels.joining import distinct_names

N = 80
LABELS, TRUTH = structured_labels(N, 6, 4, noise=0.1, missing=0, seed=3)
NAMES = np.array([f"c{i}" for i in range(N)], dtype=object)
KINDS = ("csv", "tsv", "csv.gz", "parquet", "h5ad", "npz")


def join_by_dicts(sources, how):
    """The oracle: {object: {place of a clustering: label}} of sources, each a list of {object: label}."""
    found = {name: {} for source in sources for name in source[0]}
    m = 0
    for source in sources:
        for clustering in source:
            for name, label in clustering.items():
                found[name][m] = label
            m += 1
    if how == "inner":
        found = {name: labels for name, labels in found.items() if all(name in source[0] for source in sources)}
    return found, m


def drawn(rng, names=NAMES, columns=("a",)):
    """Draw a source: a frame with some objects in any order, and as a list of dicts."""
    rows = rng.permutation(len(names))[: rng.integers(len(names) // 2, len(names) + 1)]
    of_each = zip(columns, rng.permutation(6), strict=False)
    frame = pd.DataFrame({name: LABELS[rows, m] for name, m in of_each}, index=pd.Index(names[rows]))
    return frame, [dict(zip(frame.index, frame[name], strict=True)) for name in columns]


def values(ensemble):
    """Return the labels as {object: {place of a clustering: label}}."""
    frame = ensemble.to_frame()
    return {
        name: {m: label for m, label in enumerate(row) if label == label}
        for name, row in zip(frame.index, frame.to_numpy(object), strict=True)
    }


# --- in memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["outer", "inner"])
@pytest.mark.parametrize("kind", ["texts", "numbers", "dates", "pairs", "categories", "pyarrow"])
def test_joins_as_dicts_do(how, kind):
    rng = np.random.default_rng(5)
    indexes = {
        "texts": pd.Index(NAMES),
        "numbers": pd.Index(7 * np.arange(N) + 3),
        "dates": pd.date_range("2024-01-01", periods=N),
        "pairs": pd.MultiIndex.from_arrays([np.arange(N) % 6, np.arange(N) // 6]),
        "categories": pd.CategoricalIndex(NAMES),
        "pyarrow": pd.Index(NAMES, dtype="string[pyarrow]"),
    }
    frames, dicts = zip(*[drawn(rng, columns=f"{s}{'xyz'[: s % 3 + 1]}"[1:]) for s in range(4)], strict=True)
    rename = dict(zip(NAMES, indexes[kind], strict=True))
    named = [frame.set_axis(indexes[kind][[int(name[1:]) for name in frame.index]]) for frame in frames]
    found = ge.Ensemble.join(named, how)
    expected, m = join_by_dicts(dicts, how)
    assert found.n_clusterings == m
    assert values(found) == {rename[name]: labels for name, labels in expected.items()}
    assert list(values(found)) == [rename[name] for name in expected]
    assert (found.sizes > 0).all()
    assert len(set(found.names)) == m


def test_series_arrays_of_all_types_and_ensembles_are_sources():
    rng = np.random.default_rng(1)
    first, second = (drawn(rng)[0]["a"] for _ in range(2))
    as_texts = second.map(str).astype("category")
    ensemble = ge.Ensemble([second], names=["kept"])
    for other in (second, second.astype(float), as_texts, ensemble, second.to_frame()):
        found = ge.Ensemble.join([first, other])
        assert found.to_frame().iloc[:, 1].dropna().astype(float).to_dict() == second.to_dict()
    assert ge.Ensemble.join([first, ensemble]).names == ["a", "kept"]
    frame = first.to_frame()
    again = ge.Ensemble.join([frame])
    np.testing.assert_array_equal(again.codes, ge.Ensemble(frame).codes)


def test_missing_labels_of_a_source_stay_missing():
    a = pd.Series([0, -1, 1], index=["u", "v", "w"])
    b = pd.Series(["x", None, "x", "y"], index=["v", "x", "y", "w"])
    refused(lambda: ge.Ensemble.join([a, b]), ValueError, "1 object(s) have no label", "object 3", "drop_unlabelled")
    found = ge.Ensemble.join([a, b], drop_unlabelled=True)
    assert list(found.index) == ["u", "v", "w", "y"]
    assert found.to_array().tolist() == [[0, -1], [-1, 0], [1, 1], [-1, 0]]


def test_clusterings_get_distinct_names():
    assert distinct_names([["bin"], ["bin", "x"], [None], [None, "vamb"]], ["a", "b", "c", "vamb"]) == [
        ["a:bin"],
        ["b:bin", "x"],
        ["c"],
        ["vamb", "vamb"],
    ]
    rng = np.random.default_rng(2)
    frames = [drawn(rng, columns=("leiden", f"own{s}"))[0] for s in range(2)]
    assert ge.Ensemble.join(frames).names == ["0:leiden", "own0", "1:leiden", "own1"]
    assert ge.Ensemble.join(dict(zip(["rna", "atac"], frames, strict=True))).names[::2] == ["rna:leiden", "atac:leiden"]
    unnamed = [frame["leiden"].rename(None) for frame in frames]
    assert ge.Ensemble.join(unnamed).names == [0, 1]
    assert ge.Ensemble.join({"p": frames[0]["leiden"], "q": unnamed[1]}).names == ["p", "q"]


def test_columns_that_are_no_clusterings_are_left_out():
    frame, _ = drawn(np.random.default_rng(3), columns=("a", "b", "batch"))
    with pytest.warns(UserWarning, match=r"sources\[0\]: 'batch' \(by its name\)"):
        found = ge.Ensemble.join([frame, frame["a"].rename("c")])
    assert (found.names, found.left_out) == (["a", "b", "c"], ["batch"])
    assert ge.Ensemble.join([frame[["a", "b"]], frame["batch"]]).names == ["a", "b", "batch"]


def test_a_name_there_twice_is_refused():
    a = pd.Series([0, 1, 0, 1, 0], index=["v", "u", "w", "u", "v"], name="a")
    for sources in ([a, a.iloc[:2]], {"q": a.iloc[:2], "p": a}, [a]):
        text = refused(lambda sources=sources: ge.Ensemble.join(sources), ValueError, "several objects 'v'")
        assert text is None or "sources[" in text
    refused(lambda: ge.Ensemble.join([a.set_axis(["a", "b", None, "c", "d"])]), ValueError, "object 2 has no name")


def test_sources_without_names_go_by_position_only_together():
    a, b = pd.Series(LABELS[:, 0]), pd.Series(LABELS[:, 1])
    for pair in ([a, b], [a.to_numpy(), b], [a.to_numpy(), b.to_numpy()]):
        np.testing.assert_array_equal(ge.Ensemble.join(pair).codes, ge.Ensemble(LABELS[:, :2]).codes)
    named = b.set_axis(NAMES)
    for pair in ([a, named], [named, a], [named, a.to_numpy()]):
        refused(lambda pair=pair: ge.Ensemble.join(pair), ValueError, "has no names of objects", "--id-column")
    refused(lambda: ge.Ensemble.join([a, b.iloc[:-1]]), ValueError, f"has {N} objects", f"has {N - 1}")
    with pytest.warns(UserWarning, match=r"sources\[0\] has an index 0, 1, 2, …, which is taken for names"):
        found = ge.Ensemble.join([a, b.iloc[::3]])
    assert found.to_array()[:4].tolist() == [
        [LABELS[0, 0], LABELS[0, 1]],
        *([x, -1] for x in LABELS[1:3, 0]),
        [*LABELS[3, :2]],
    ]


def test_sources_without_common_objects():
    a, b = pd.Series([0, 1, 1], index=list("uvw")), pd.Series([1, 1, 0], index=list("xyz"))
    with pytest.warns(UserWarning, match="share no object") as caught:
        ge.Ensemble.join([a, b])
    assert str(caught[0].message).startswith(
        "sources[0] ('u', 'v', …) and sources[1] ('x', 'y', …) share no object with any other source; "
    )
    with pytest.warns(UserWarning, match="share no object") as among_others:
        ge.Ensemble.join([a, b, b.iloc[1:].rename("other")])
    assert str(among_others[0].message).startswith(
        "sources[0] ('u', 'v', …) share no object with any other source, such as sources[1] ('x', 'y', …); "
    )
    assert "spelled alike" in one_sentence(caught[0].message)
    refused(lambda: ge.Ensemble.join([a, b], how="inner"), ValueError, "no object is in all sources", "outer")


def test_files_of_one_name_are_called_by_the_folders_that_differ(tmp_path, monkeypatch):
    """The results of Cell Ranger: every clustering is in a file clusters.csv with a column Cluster."""
    monkeypatch.chdir(tmp_path)
    files = []
    for folder in ("gene_expression_graphclust", "gene_expression_kmeans_2_clusters", "more/kmeans_3"):
        place = tmp_path / "outs" / "analysis" / "clustering" / folder
        place.mkdir(parents=True)
        files.append(place / "clusters.csv")
        pd.DataFrame({"Barcode": list("uvwx"), "Cluster": [1, 1, 2, 2]}).to_csv(files[-1], index=False)
    expected = ["gene_expression_graphclust", "gene_expression_kmeans_2_clusters", "more/kmeans_3"]
    for paths in (files, [file.relative_to(tmp_path) for file in files]):
        assert io.read_joined(paths).ensemble.names == [f"{name}:Cluster" for name in expected]
    assert io.read_joined(files[:2]).ensemble.names == [f"{name}:Cluster" for name in expected[:2]]


def test_anything_else_is_refused():
    a = pd.Series([0, 1], index=list("uv"))
    adata = anndata.AnnData(np.zeros((2, 1), np.float32), obs=pd.DataFrame({"a": [0, 1]}, index=list("uv")))
    refused(lambda: ge.Ensemble.join(a), TypeError, "list", "Series")
    refused(lambda: ge.Ensemble.join([]), ValueError, "empty")
    refused(lambda: ge.Ensemble.join([a, [0, 1]]), TypeError, "sources[1]", "not list")
    refused(lambda: ge.Ensemble.join({"p": a, "q": adata}), TypeError, "sources['q']", "obs[columns]")
    refused(lambda: ge.Ensemble.join(SimpleNamespace(mod={})), TypeError, "gpuens.sc.join")
    refused(lambda: ge.Ensemble.join([a], how="left"), ValueError, "how", "'outer', 'inner'")
    refused(lambda: ge.Ensemble.join([a, a.astype(float) + 0.5]), ValueError, "not whole numbers")


def test_labels_in_gpu_memory_return_there(fake_cupy):
    a, b = (ge.Ensemble(fake_cupy.asarray(LABELS[:, m : m + 1])) for m in range(2))
    found = ge.Ensemble.join([fake_cupy.asarray(LABELS[:, :1]), fake_cupy.asarray(LABELS[:, 1])])
    assert (found.device_kind, a.device_kind, b.device_kind) == ("cuda", "cuda", "cuda")
    np.testing.assert_array_equal(found.codes, ge.Ensemble(LABELS[:, :2]).codes)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(kind, frame):
    path = f"{'_'.join(frame.columns)}.{kind}"
    io.write_labels(path, ge.Ensemble(frame, names=list(frame.columns)), ids=frame.index, values=True)
    return path


@pytest.mark.parametrize("how", ["outer", "inner"])
def test_files_of_all_kinds_join_as_dicts_do(folder, how):
    rng = np.random.default_rng(0)
    frames, dicts = zip(
        *[drawn(rng, columns=(f"m{s}",) if s % 2 else (f"m{s}", f"n{s}")) for s in range(len(KINDS))], strict=True
    )
    paths = [write(kind, frame) for kind, frame in zip(KINDS, frames, strict=True)]
    found = read_joined(paths, how)
    expected, m = join_by_dicts(dicts, how)
    ids = list(expected)
    assert list(found.ids) == ids
    for place in range(m):
        column = [expected[name].get(place, -1) for name in ids]
        assert ge.metrics.ari(column, found.ensemble.to_array()[:, place]) == 1
        assert ((np.array(column) < 0) == (found.ensemble.to_array()[:, place] < 0)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_join_is_read_back(folder, call, kind):
    rng = np.random.default_rng(7)
    for s, name in enumerate(("p", "q", "r")):
        frame = drawn(rng)[0].map(lambda label: f"={label}" if s else label).rename(columns={"a": "bin"})  # noqa: B023
        frame.rename_axis("contig").to_csv(f"{name}.csv")
    direct = read_joined(["p.csv", "q.csv", "r.csv"])
    assert call(f"join p.csv q.csv r.csv -o all.{kind}")[0] == 0
    read = io.read_label_file(f"all.{kind}")
    assert list(read.ids) == list(direct.ids)
    np.testing.assert_array_equal(read.ensemble.to_array(), direct.ensemble.to_array())
    if kind != "npz":
        assert read.ensemble.names == ["p:bin", "q:bin", "r:bin"]
        assert [v.tolist() for v in read.ensemble.categories] == [v.tolist() for v in direct.ensemble.categories]
    record = json.loads(Path(f"all.{kind}.json").read_text())
    assert (record["input"], record["how"]) == (["p.csv", "q.csv", "r.csv"], "outer")
    assert record["n_labels"] == int((direct.ensemble.to_array() >= 0).sum())


LONG = {
    "with a header": "contig\tbin\nk141_5\tbin.1\nk141_7\tbin.2\nk141_1\tbin.1\n",
    "without": "k141_5\tbin.1\nk141_7\tbin.2\nk141_1\tbin.1\n",
    "first label alone": "k141_7\tbin.2\nk141_5\tbin.1\nk141_1\tbin.1\n",
    "numbers as labels": "k141_5\t1\nk141_7\t2\nk141_1\t1\n",
    "a header above numbers": "name\tcluster\nk141_5\t1\nk141_7\t2\nk141_1\t1\n",
    "words": "ann\tred\nbob\tblue\ncarl\tred\n",
    "words with a header": "name\tcolour\nann\tred\nbob\tblue\ncarl\tred\n",
    "barcodes": "AAAC-1\t3\nCGTT-1\t4\nGGTA-1\t3\n",
    "numbers": "1001\t3\n1007\t4\n1003\t3\n",
    "numbers with a header": "id\tcluster\n1001\t3\n1007\t4\n1003\t5\n",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_files_are_read_with_and_without_a_header(folder, text):
    Path("long.tsv").write_text(text)
    found = read_joined(["long.tsv"])
    lines = [line.split("\t") for line in text.splitlines()][-3:]
    assert list(found.ids) == [name for name, _ in lines]
    assert found.ensemble.names == [text.split()[1] if len(text.splitlines()) == 4 else "long"]
    labels = [str(value) for value in found.ensemble.to_frame().iloc[:, 0]]
    assert labels == [label for _, label in lines]


def test_names_of_clusterings_in_files(folder):
    Path("sub").mkdir()
    for path in ("a.csv", "sub/a.csv", "b.tsv"):
        sep = "\t" if path.endswith("tsv") else ","
        Path(path).write_text(
            sep.join(["k1", "1"]) + "\n" + sep.join(["k2", "2"]) + "\n" + sep.join(["k3", "1"]) + "\n"
        )
    assert read_joined(["a.csv", "b.tsv"]).ensemble.names == ["a", "b"]
    assert read_joined(["a.csv", "sub/a.csv"]).ensemble.names == ["a", "sub/a"]
    refused(lambda: read_joined(["a.csv", "./a.csv"]), ValueError, "is given twice")
    refused(lambda: read_joined("a.csv"), TypeError, "list of paths")


def test_files_without_names(folder):
    np.save("p.npy", LABELS[:, :2])
    np.save("q.npy", LABELS[:, 2:4])
    pd.DataFrame(LABELS[:, 4:], columns=["x", "y"]).to_csv("r.csv", index=False)
    found = read_joined(["p.npy", "q.npy", "r.csv"])
    assert found.ids is None
    np.testing.assert_array_equal(found.ensemble.to_array(), ge.Ensemble(LABELS).to_array())
    assert found.ensemble.names == ["p:0", "p:1", "q:0", "q:1", "x", "y"]
    np.save("short.npy", LABELS[:-1, :2])
    refused(lambda: read_joined(["p.npy", "short.npy"]), ValueError, f"has {N} objects", f"has {N - 1}", "--id-column")
    pd.DataFrame(LABELS[:, :1], columns=["z"], index=NAMES).to_csv("named.csv")
    refused(lambda: read_joined(["p.npy", "named.csv"]), ValueError, "'p.npy' has no names", "'named.csv' has")


def test_names_that_a_file_has_twice_are_refused(folder):
    lines = [f"k{i},{i % 3}" for i in range(12)]
    Path("twice.csv").write_text("\n".join(["contig,bin", *lines, "k4,2", "k3,1"]) + "\n")
    Path("once.csv").write_text("\n".join(["contig,bin", *lines]) + "\n")
    with pytest.warns(UserWarning, match="'contig' names the objects, but repeats 'k4' in lines 6 and 14, and 1 more"):
        refused(
            lambda: read_joined(["once.csv", "twice.csv"]), ValueError, "path 'twice.csv' names several objects 'k3'"
        )


def test_options_fit_the_files_that_have_the_columns(folder):
    pd.DataFrame({"cell": NAMES, "x": LABELS[:, 0], "donor": 0}).to_csv("p.csv", index=False)
    pd.DataFrame({"y": LABELS[:, 1], "cell": NAMES[::-1], "leiden": LABELS[::-1, 2]}).to_parquet("q.parquet")
    pd.DataFrame({"leiden": LABELS[:, 3]}, index=NAMES).to_csv("r.tsv", sep="\t")
    found = read_joined(["p.csv", "q.parquet", "r.tsv"], id_column="cell", exclude=["donor", "y"])
    assert found.ensemble.names == ["x", "q:leiden", "r:leiden"]
    np.testing.assert_array_equal(found.ensemble.to_array()[:, 1], ge.Ensemble(LABELS[:, 2:3]).to_array()[:, 0])
    found = read_joined(["q.parquet", "r.tsv"], columns="leiden", id_column="cell")
    assert found.ensemble.names == ["q:leiden", "r:leiden"]
    refused(lambda: read_joined(["p.csv", "r.tsv"], columns="leiden"), ValueError, "'p.csv' has none of", "leiden")
    refused(lambda: read_joined(["p.csv", "r.tsv"], exclude=["nix"]), ValueError, "no file has a column 'nix'")


def test_unlabelled_objects_of_files(folder, call):
    Path("p.csv").write_text("n,l\na,1\nb,\nc,2\nd,1\n")
    Path("q.csv").write_text("n,l\na,1\nb,\nc,1\ne,3\n")
    code, _, err = call("join p.csv q.csv -o all.csv")
    assert (code, "--drop-unlabelled" in err[0]) == (3, True)
    assert call("join p.csv q.csv -o all.csv --drop-unlabelled")[0] == 0
    assert Path("all.csv").read_text() == ",p:l,q:l\na,1,1\nc,2,1\nd,1,\ne,,3\n"
    assert call("run p.csv q.csv -k 2 --drop-unlabelled -o out.csv")[0] == 0
    labels = pd.read_csv("out.csv", index_col=0)["label"]
    assert list(labels.index) == list("abcde")
    assert (labels == -1).tolist() == [False, True, False, False, False]


# --- the command line -------------------------------------------------------------------------------------------------


def test_run_joins_files_and_writes_names(folder, call, done):
    rng = np.random.default_rng(4)
    sources = {name: drawn(rng)[0]["a"] for name in ("p", "q", "r")}
    for name, labels in sources.items():
        labels.to_csv(f"{name}.tsv", sep="\t", header=False)
    out = done("run p.tsv q.tsv r.tsv -k 4 --method lwea --evidence")
    assert any(line.startswith("p.tsv and 2 more: ") for line in out)
    ens = ge.Ensemble.join(sources)
    found = pd.read_csv("p.tsv.joined.lwea.tsv", sep="\t", index_col=0)
    assert found.index.equals(ens.index)
    assert found["label"].tolist() == ge.LWEA(4).fit(ens).labels_.tolist()
    record = json.loads(Path("p.tsv.joined.lwea.tsv.json").read_text())
    assert (record["input"], record["columns"]) == (["p.tsv", "q.tsv", "r.tsv"], ["p", "q", "r"])
    assert call("join p.tsv q.tsv r.tsv -o all.parquet")[0] == 0
    assert call("run all.parquet -k 4 --method lwea -o out.csv")[0] == 0
    assert pd.read_csv("out.csv", index_col=0)["label"].equals(found["label"])
    assert call("score p.tsv.joined.lwea.tsv out.csv --columns-a label")[0] == 0


def test_commands_that_cannot_join_say_so(folder, call):
    for name in "pq":
        drawn(np.random.default_rng(4))[0].to_csv(f"{name}.csv")
    refusals = {
        "join p.csv q.csv -o out.npy": "cannot hold the names",
        "join p.csv q.csv -o p.csv": "is the input itself",
        "join p.csv none.csv -o out.csv": "none.csv",
        "join p.csv q.csv -o out.csv --how left": "--how",
        "run p.csv q.csv -k 2 --scheduler threads": "--scheduler is for one file",
        "run p.csv q.csv -k 2 --key-added x": "--key-added",
        "run p.csv q.csv -k 2 -o q.csv": "is the input itself",
    }
    for line, part in refusals.items():
        code, _, err = call(line)
        assert (code in (2, 3), part in err[0]) == (True, True), (line, err)
    assert not list(folder.glob("out*"))


# --- modalities -------------------------------------------------------------------------------------------------------


def modality(frame):
    obs = frame.astype("category").assign(score=0.5)
    adata = anndata.AnnData(np.zeros((len(frame), 1), np.float32), obs=obs)
    adata.var_names = [f"of_{frame.columns[-1]}"]
    return adata


def test_modalities_join_by_cells():
    rng = np.random.default_rng(9)
    frames = {name: drawn(rng, columns=("leiden", f"own_{name}"))[0] for name in ("rna", "atac")}
    mdata = SimpleNamespace(mod={name: modality(frame) for name, frame in frames.items()}, axis=0)
    found = ge.sc.join(mdata)
    assert found.names == ["rna:leiden", "own_rna", "atac:leiden", "own_atac"]
    expected = ge.Ensemble.join(frames)
    assert found.index.equals(expected.index)
    np.testing.assert_array_equal(found.codes, expected.codes)
    assert ge.sc.join(mdata, "own_rna", how="inner").names == ["own_rna"]
    assert ge.sc.join(mdata, ["leiden", "own_a*"]).names == ["rna:leiden", "atac:leiden", "own_atac"]
    refused(lambda: ge.sc.join(mdata, "nix"), ValueError, "no modality has a column of 'nix'", "rna:leiden")
    refused(lambda: ge.sc.join(SimpleNamespace(mod=mdata.mod, axis=1)), ValueError, "axis=1")
    refused(lambda: ge.sc.join(frames), TypeError, "MuData")
    refused(lambda: ge.sc.consensus(mdata), TypeError, "gpuens.sc.join")


def test_a_mudata_is_taken():
    mudata = pytest.importorskip("mudata")
    rng = np.random.default_rng(9)
    frames = {name: drawn(rng, columns=("leiden", f"own_{name}"))[0] for name in ("rna", "atac")}
    with mudata.set_options(pull_on_update=False):
        mdata = mudata.MuData({name: modality(frame) for name, frame in frames.items()})
    found = ge.sc.join(mdata)
    mdata.obs["consensus"] = pd.Series(ge.consensus(found, 3), found.index)
    assert not mdata.obs["consensus"].isna().any()
