"""The command line: its output and its messages. An error message is one sentence, and no file is left behind."""

import argparse
import hashlib
import importlib
import inspect
import itertools
import json
import os
import platform
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import NOT_HERE, raising, structured_labels

import gpuens
from gpuens import cli, datasets, generate, io, metrics
from gpuens.cli import run
from gpuens.cli.files import clusters_of
from gpuens.methods import EAC, EM, HBGF, LWEA, LWGP, methods
from gpuens.runtime import device, failures, installing, kernels, native, progress, record

K = 4
LABELS, TRUTH = structured_labels(120, 6, K, noise=0.15, missing=0.05, seed=1)
FORMATS = ("npy", "npz", "csv", "tsv", "csv.gz", "tsv.gz", "parquet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Provide a working directory with labels.csv, features.npy and truth.csv."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUENS_DATA", raising=False)
    pd.DataFrame(LABELS, columns=list("abcdef")).to_csv("labels.csv", index=False)
    pd.DataFrame({"class": TRUTH}).to_csv("truth.csv", index=False)
    np.save("features.npy", np.random.default_rng(0).normal(5 * TRUTH[:, None], size=(len(TRUTH), 3)))
    return tmp_path


@pytest.fixture
def call(capsys):
    """Run a command in this process; return the exit code and the lines on stdout and stderr."""

    def run(line, *more):
        code = cli.main([*line.split(), *map(str, more)])
        out, err = capsys.readouterr()
        return code, out.splitlines(), err.splitlines()

    return run


def files(folder):
    return sorted(path.name for path in folder.iterdir())


GIVEN = ["features.npy", "labels.csv", "truth.csv"]

READ = {
    "npy": np.load,
    "npz": lambda path: np.load(path)["labels"],
    "csv": lambda path: pd.read_csv(path)["label"].to_numpy(),
    "tsv": lambda path: pd.read_csv(path, sep="\t")["label"].to_numpy(),
    "csv.gz": lambda path: pd.read_csv(path)["label"].to_numpy(),
    "tsv.gz": lambda path: pd.read_csv(path, sep="\t")["label"].to_numpy(),
    "parquet": lambda path: pd.read_parquet(path)["label"].to_numpy(),
}


# --- run --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
def test_run_writes_every_format_and_a_record(folder, call, suffix):
    code, out, err = call(f"run labels.csv -k {K} -o out.{suffix}")
    assert (code, err) == (0, [])
    assert files(folder) == sorted([*GIVEN, f"out.{suffix}", f"out.{suffix}.json"])
    expected = LWGP(K).fit(LABELS).labels_
    np.testing.assert_array_equal(READ[suffix](f"out.{suffix}"), expected)
    assert json.loads(Path(f"out.{suffix}.json").read_text())["cluster_sizes"] == np.bincount(expected).tolist()
    assert f"written: out.{suffix}, and out.{suffix}.json" in out


@pytest.mark.usefixtures("unpainted")
def test_a_lopsided_consensus_is_in_doubt_wherever_it_is_written(folder, call):
    """The warning of a lopsided consensus appears on stderr, in the record, on the page, and in results of a batch."""
    np.save("noisy.npy", structured_labels(600, 10, 5, noise=0.35, split=2, seed=1)[0])
    code, out, err = call("run noisy.npy -k 5 --method oc-h --report out.npy.html -o out.npy")
    assert code == 0
    assert "OCH: 5 clusters" in "\n".join(out)
    (said,) = (line for line in err if "one of 5 clusters has" in line)
    (kept,) = json.loads(Path("out.npy.json").read_text())["warnings"]
    assert said == f"gpuens: warning: {kept}"
    assert f"{kept[:1].upper()}{kept[1:].split(', while')[0]}" in Path("out.npy.html").read_text()
    Path("jobs.json").write_text(
        '[{"id": "a", "input": "noisy.npy", "method": "oc-h", "n_clusters": 5, "report": true}]'
    )
    assert call("batch jobs.json --out done")[0] == 0
    assert json.loads(Path("done/a.json").read_text())["warnings"] == [kept]
    assert f"{kept[:1].upper()}{kept[1:].split(', while')[0]}" in Path("done/a.html").read_text()


def test_record_says_what_was_done_with_what(folder, call):
    _, out, _ = call(f"run labels.csv -k {K} --theta 0.7 --device cpu -o out.npy")
    record = json.loads(Path("out.npy.json").read_text())
    est = LWGP(K, theta=0.7, device="cpu").fit(LABELS)
    ens = gpuens.Ensemble(LABELS)
    assert record.pop("command") == f"gpuens run labels.csv -k {K} --theta 0.7 --device cpu -o out.npy".split()
    assert record.pop("parameters") == est.get_params()
    versions = record.pop("versions")
    assert versions["numpy"] == np.__version__
    assert versions["pandas"] == pd.__version__
    assert {"numpy", "scipy", "scikit-learn", "pandas"} <= versions.keys()
    seconds = record.pop("seconds")
    assert list(seconds) == ["start", "read", "fit", "write", "other", "total"]
    assert all(spent >= 0 for spent in seconds.values())
    total = seconds.pop("total")
    assert sum(seconds.values()) == pytest.approx(total, abs=1e-9)
    assert record.pop("warnings") == []
    if sys.platform != "win32":
        import psutil

        assert psutil.Process().memory_info().rss / 4 < record["peak_memory_bytes"] < psutil.virtual_memory().total
    del record["peak_memory_bytes"]
    assert record.pop("sha256") == hashlib.sha256(Path("out.npy").read_bytes()).hexdigest()
    assert record == {
        "gpuens": gpuens.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "method": "lwgp",
        "device": "cpu",
        "input": "labels.csv",
        "output": "out.npy",
        "n_objects": 120,
        "n_clusterings": 6,
        "columns": list("abcdef"),
        "n_base_clusters": ens.n_clusters,
        "n_core_groups": len(np.unique(LABELS, axis=0)),
        "n_clusters": K,
        "cluster_sizes": np.bincount(est.labels_).tolist(),
        "ties": "decided by the order of the clusterings and of their label values, not by that of the objects",
    }
    assert out[0] == (
        f"labels.csv: 120 objects, 6 clusterings with {ens.n_clusters} clusters, "
        f"{len(np.unique(LABELS, axis=0))} distinct label rows"
    )
    assert out[1] == "columns: a, b, c, d, e, f"
    assert out[2].startswith("LWGP: 4 clusters, of ")


def test_without_an_output_the_consensus_goes_beside_the_input(folder, call):
    (folder / "sub").mkdir()
    pd.DataFrame(LABELS).to_csv("sub/some.labels.csv.gz", index=False)
    code, out, _ = call(f"run sub/some.labels.csv.gz --method hbgf -k {K}")
    assert code == 0
    assert files(folder / "sub") == [
        "some.labels.csv.gz",
        "some.labels.csv.gz.hbgf.csv.gz",
        "some.labels.csv.gz.hbgf.csv.gz.json",
    ]
    assert any(
        "written: sub/some.labels.csv.gz.hbgf.csv.gz (beside the input, as there is no -o)" in line for line in out
    )
    assert "work" not in json.loads(Path("sub/some.labels.csv.gz.hbgf.csv.gz.json").read_text())


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        ("--method eac", EAC()),
        ("--method eac -k 3 --linkage single", EAC(3, linkage="single")),
        ("--method eac -k 3 --missing-labels ignore", EAC(3, missing="ignore")),
        ("--method eac --distance-threshold 0.8", EAC(distance_threshold=0.8)),
        ("--method eac -k 3 --min-size 5", EAC(3, min_size=5)),
        ("--method lwea -k 3 --min-size 0.05", LWEA(3, min_size=0.05)),
        ("--method lwea -k 3 --min-size auto", LWEA(3, min_size="auto")),
        ("--n-clusters 9 --theta 0.2", LWGP(9, theta=0.2)),
        ("--method lwgp -k 5 --theta 1 --n-init 2 --seed 3", LWGP(5, theta=1.0, n_init=2, random_state=3)),
        ("--method hbgf -k 5 --n-init 3 --device auto", HBGF(5, n_init=3)),
    ],
)
def test_options_reach_the_method(folder, call, options, estimator):
    code, _, err = call(f"run labels.csv {options} -o out.npy --quiet")
    assert (code, err) == (0, [])
    np.testing.assert_array_equal(np.load("out.npy"), estimator.fit(LABELS).labels_)
    assert json.loads(Path("out.npy.json").read_text())["parameters"] == estimator.get_params()


def test_every_parameter_of_every_method_is_an_option_of_its_own_and_explained():
    parser = argparse.ArgumentParser()
    run.add(lambda *_, **__: parser)
    shared = {"-k", "--seed", "--reduce", "--device"}
    for kind in methods().values():
        own = cli.options.flags(kind)
        assert [option.name for option in own.values()] == list(inspect.signature(kind).parameters)
        assert own.keys() & parser._option_string_actions.keys() == own.keys() & shared
        assert all(option.type_text or option.meaning for option in own.values())


def test_methods_are_listed_and_their_options_told(folder, call):
    _, out, _ = call("methods")
    names = [line.split()[0] for line in out]
    assert names == [
        *("--method", *sorted(methods())),
        *("--similarity", *gpuens.similarities()),
        *("--partitioner", *gpuens.partitioners()),
    ]
    assert all(len(line.split()) > 3 for line in out if not line.startswith("--"))
    code, out, err = call("methods lwgp scec")
    assert (code, err) == (0, [])
    text = " ".join(" ".join(out).split())
    assert "LWGP. Locally weighted graph partitioning: transfer cut" in text
    assert re.search(r"--theta VALUE Temperature of ECI: .* uses 0\.4\. \(float > 0; 0\.4 if not given\)", text)
    _, out, _ = call("methods lwca")
    assert "  theta=VALUE " in "\n".join(out)
    assert call("run labels.csv -k 3 --similarity lwca:theta=0.3 --partitioner average -o out.npy")[0] == 0
    np.testing.assert_array_equal(np.load("out.npy"), LWEA(3, theta=0.3).fit(LABELS).labels_)
    facts = json.loads("".join(call("methods --json")[1]))
    assert facts.keys() == methods().keys()
    assert facts["eac"]["options"]["--linkage"]["type"] == '{"average", "single", "complete"}'
    assert facts["eac"]["options"]["--linkage"]["default"] == "average"
    code, _, err = call("methods nothing")
    assert (code, len(err)) == (2, 1)
    assert err[0].startswith("gpuens: method must be one of ")


def test_help_has_the_options_of_the_method_that_is_named(capsys):
    for line, there in (("run --help", False), ("run --method=scec -h", True)):
        with pytest.raises(SystemExit) as end:
            cli.main(line.split())
        assert end.value.code == 0
        assert ("--alpha VALUE" in capsys.readouterr().out) == there
    assert cli.main(["run", "--method", "nothing", "--help"]) == 2


def test_options_come_before_or_after_what_they_are_about(folder, call):
    expected = LWGP(5, theta=1.0, n_init=2, random_state=3).fit(LABELS).labels_
    assert call("run --theta 1 --n-init=2 labels.csv --method lwgp -k 5 --seed 3 -o out.npy")[0] == 0
    np.testing.assert_array_equal(np.load("out.npy"), expected)


def test_columns_and_key_choose_what_is_read(folder, call):
    np.savez("both.npz", first=LABELS[:, :3], second=LABELS[:, 3:])
    call(f"run labels.csv --columns d,e,5 -k {K} -o columns.npy")
    call(f"run both.npz --key second -k {K} -o key.npy")
    expected = LWGP(K).fit(LABELS[:, 3:]).labels_
    np.testing.assert_array_equal(np.load("columns.npy"), expected)
    np.testing.assert_array_equal(np.load("key.npy"), expected)


CELLS = [f"=c{i}" for i in range(len(LABELS))]


@pytest.fixture
def cells(folder):
    """Write the labels as an h5ad file and as a table.

    The table has ids, a batch column and an object without labels.
    """
    anndata = pytest.importorskip("anndata")
    frame = pd.DataFrame(LABELS.copy(), columns=[f"leiden_{m}" for m in range(6)])
    frame.iloc[7] = -1
    frame["batch"] = 0
    frame.insert(0, "cell", CELLS)
    frame.to_csv("cells.csv", index=False, sep=";")
    obs = frame.set_index("cell").astype("category").assign(depth=0.5)
    anndata.AnnData(X=np.load("features.npy").astype(np.float32), obs=obs).write_h5ad("cells.h5ad")
    return frame


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "h5ad"])
def test_ids_are_carried_to_the_output(folder, call, cells, suffix):
    options = "--id-column cell --columns leiden_* --missing ?,-1 --drop-unlabelled"
    code, out, err = call(f"run cells.csv -k {K} {options} -o out.{suffix}")
    assert (code, err) == (0, [])
    assert "columns: leiden_0, leiden_1, leiden_2, leiden_3, leiden_4, leiden_5" in out
    assert "unlabelled: 1 object, left out and -1 in the output" in out
    expected = np.insert(LWGP(K).fit(np.delete(LABELS, 7, axis=0)).labels_, 7, -1)
    found = io.read_label_file(f"out.{suffix}", drop_unlabelled=True, columns="label", **ids_of(suffix))
    assert found.ids.tolist() == CELLS
    np.testing.assert_array_equal(np.flatnonzero(~found.labelled), [7])
    np.testing.assert_array_equal(found.ensemble.codes[:, 0], np.delete(expected, 7))
    record = json.loads(Path(f"out.{suffix}.json").read_text())
    assert (record["n_unlabelled"], record["columns"]) == (1, [f"leiden_{m}" for m in range(6)])


def ids_of(suffix):
    return {} if suffix == "h5ad" else {"id_column": "cell"}


def test_names_of_cells_are_carried_to_the_output(folder, call, cells):
    code, out, _ = call(f"run cells.h5ad -k {K} --exclude batch --missing=-1 --drop-unlabelled -o out.csv")
    assert code == 0
    assert "columns: leiden_0, leiden_1, leiden_2, leiden_3, leiden_4, leiden_5" in out
    table = pd.read_csv("out.csv")
    assert list(table.columns) == ["cell", "label"]
    assert table["cell"].tolist() == [f"'{cell}" for cell in CELLS]
    assert call("score out.csv truth.csv --columns-a label --by-position")[0] == 0


def test_an_id_and_a_batch_are_named(folder, call, cells):
    _, out, err = call(f"run cells.csv -k {K} --drop-unlabelled -o out.npy")
    assert "columns: leiden_0, leiden_1, leiden_2, leiden_3, leiden_4, leiden_5" in out
    said = " ".join(err)
    assert "names: 'cell'" in out
    assert "'cell'" not in said
    assert "'batch' (by its name) is left out, as it is unlike the clusterings" in said
    assert "constant" not in said  # the message on constant columns concerns only clusterings
    _, out, err = call(f"run cells.csv -k {K} --drop-unlabelled --columns leiden_*,batch -o out.npy")
    assert "columns: leiden_0, leiden_1, leiden_2, leiden_3, leiden_4, leiden_5, batch" in out
    assert "left out" not in " ".join(err)


def test_features_of_cells_are_clustered(folder, call, cells):
    code, _, err = call("generate cells.h5ad -k 3 --n-clusterings 4 -o made.h5ad")
    assert (code, err) == (0, [])
    made = io.read_label_file("made.h5ad")
    assert made.ids.tolist() == CELLS
    expected = generate.kmeans_ensemble(np.load("features.npy").astype(np.float32), 4, 3, random_state=0)
    np.testing.assert_array_equal(made.ensemble.codes, expected.codes)
    for method in ("ecrmc", "tome"):
        assert call(f"run labels.csv --method {method} -k 4 --features cells.h5ad --by-position -o out.npy")[0] == 0
        record = json.loads(Path("out.npy.json").read_text())
        assert (record["features"], "n_neighbors" in record) == ("cells.h5ad", method == "ecrmc")
    code, _, err = call("generate cells.h5ad --key X_pca -o made.npy")
    assert (code, err[0].count("key='X_pca'")) == (3, 1)


def test_a_zarr_output_is_replaced_too(folder, call):
    zarr = pytest.importorskip("zarr")
    for k, slash in ((2, ""), (3, "/")):  # shells complete a folder's name with a slash
        assert call(f"run labels.csv -k {k} -o out.zarr{slash}")[0] == 0
        np.testing.assert_array_equal(zarr.open_array("out.zarr", mode="r")[:], LWGP(k).fit(LABELS).labels_)
    assert files(folder) == sorted([*GIVEN, "out.zarr", "out.zarr.json"])
    assert call("run labels.csv -k 3 -o out.npy/")[0] == 2
    Path("file.zarr").write_text("")
    assert call("run labels.csv -k 3 -o file.zarr")[0] == 3


def test_files_that_differ_in_their_ending_have_outputs_of_their_own(folder, call):
    pd.DataFrame(LABELS).to_parquet("labels.parquet")
    for suffix in ("csv", "parquet"):
        assert call(f"run labels.{suffix} -k {K}")[0] == 0
    assert {"labels.csv.lwgp.csv", "labels.parquet.lwgp.parquet"} < set(files(folder))


@pytest.mark.parametrize("numbers", ["", " --evidence"])
def test_an_output_that_is_not_named_is_like_the_input_and_keeps_the_ids(folder, call, numbers):
    """A column that names the objects is recognised even without --id-column."""
    frame = pd.DataFrame(LABELS.copy(), columns=list("abcdef"))
    frame.insert(0, "cell", CELLS)
    frame.to_csv("named.csv", index=False)
    frame.to_csv("named.tsv.gz", index=False, sep="\t")
    frame.set_index("cell").to_parquet("named.parquet")
    for kind, option in (("csv", ""), ("csv", " --id-column cell"), ("tsv.gz", ""), ("parquet", "")):
        code, out, _ = call(f"run named.{kind} -k {K}{option}{numbers}")
        assert code == 0
        written = f"named.{kind}.lwgp.{kind}"
        assert f"written: {written} (beside the input, as there is no -o), and {written}.json" in out
        ids = io.read_ids(written, id_column="cell")
        assert ids.tolist() == CELLS
        assert ids.name == "cell"
    pytest.importorskip("anndata")
    code, out, _ = call("run named.csv -k 3 --columns a,b,c --id-column cell -o named.h5ad")
    assert call(f"run named.h5ad --columns label -k 2{numbers}")[0] == 0
    assert io.read_ids("named.h5ad.lwgp.csv").tolist() == CELLS
    np.save("plain.npy", LABELS)
    assert call(f"run plain.npy -k {K}{numbers}")[0] == 0
    assert Path(f"plain.npy.lwgp.{'npz' if numbers else 'npy'}").exists()


def test_an_npz_file_keeps_the_ids_and_is_read_back_with_them(folder, call):
    pd.DataFrame(LABELS, index=CELLS, columns=list("abcdef")).to_csv("named.csv", index_label="cell")
    assert call(f"run named.csv -k {K} --id-column cell --evidence --membership --method voting -o out.npz")[0] == 0
    with np.load("out.npz", allow_pickle=False) as out:
        assert out.files == ["labels", "ids", "certainty", "confidence", "margin", "membership"]
        assert out["ids"].tolist() == CELLS
    pd.Series(TRUTH, CELLS, name="of").iloc[::-1].to_csv("of.csv", index_label="cell")
    scores = metrics.scores(np.load("out.npz")["labels"], TRUTH)
    found = json.loads("".join(call("score out.npz of.csv --id-column cell --json")[1]))
    assert found == pytest.approx(scores)
    assert call("evidence named.csv out.npz --id-column cell")[0] == 0


@pytest.mark.parametrize("scheduler", ["", "--scheduler threads --chunk-rows 50"])
def test_clusterings_that_are_there_twice_are_named(folder, call, scheduler):
    if scheduler:
        pytest.importorskip("dask")
    np.save("twice.npy", np.column_stack([LABELS, np.where(LABELS[:, 2] >= 0, 9 - LABELS[:, 2], -1)]))
    code, _, err = call(f"run twice.npy -k {K} -o out.npy {scheduler}")
    assert (code, len(err)) == (0, 1)
    assert "1 of 7 clusterings repeat another (6 as 2)" in err[0]
    assert "6 equals 2, so this clustering counts more than once" in "\n".join(
        call("describe twice.npy --no-forecasts")[1]
    )


@pytest.mark.parametrize("suffix", ["npy", "csv", "zarr"])
def test_more_clusterings_than_objects_are_read_where_that_is_said(folder, call, suffix):
    if suffix == "zarr":
        pytest.importorskip("zarr")
    labels = np.random.default_rng(0).integers(0, 3, (8, 30))
    io.write_labels(f"wide.{suffix}", labels)
    io.write_labels("consensus.npy", np.arange(8) % 2)
    commands = [
        "run wide.S -k 2 -o out.npy", "describe wide.S --no-forecasts", "compare wide.S -k 2 --methods eac",
        "choose wide.S --ks 2:3", "evidence wide.S consensus.npy",
    ]  # fmt: skip
    for line in (command.replace("wide.S", f"wide.{suffix}") for command in commands):
        code, _, err = call(line)
        assert (code, len(err)) == (3, 1)
        assert "30 clusterings of 8 object(s), or, transposed, 8 clusterings of 30" in err[0]
        assert "--wide" in err[0]
        assert "--transpose" in err[0]
        assert call(f"{line} --wide")[0] == 0
    np.testing.assert_array_equal(np.load("out.npy"), LWGP(2).fit(list(labels.T)).labels_)
    code, _, err = call(f"run wide.{suffix} -k 2 -o out.npy --wide --scheduler threads")
    assert (code, "--wide is for files that are read in one piece" in err[0]) == (2, True)


def test_an_output_is_replaced(folder, call):
    for k in (2, 3):
        assert call(f"run labels.csv -k {k} -o out.npy")[0] == 0
        assert np.load("out.npy").max() == k - 1
        assert json.loads(Path("out.npy.json").read_text())["n_clusters"] == k


def test_quiet_says_nothing_whatever_the_environment_says(folder, call, own_method, monkeypatch):
    seen = []
    own_method("own", lambda _: seen.append(progress._shown("auto")))
    monkeypatch.setenv("GPUENS_PROGRESS", "1")
    assert call(f"run labels.csv -k {K} --method own --quiet") == (0, [], [])
    assert call(f"run labels.csv -k {K} --method own")[0] == 0
    assert seen == [False, True]


def test_warnings_are_one_line_each(folder, call):
    pd.DataFrame(LABELS).assign(same=1).to_csv("labels.csv", index=False)
    code, _, err = call(f"run labels.csv -k {K} --quiet")
    assert code == 0
    assert err == [
        "gpuens: warning: constant clusterings carry no information: same (1 of 7) put every object into one cluster."
    ]


# --- evidence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "tsv.gz", "parquet", "npz"])
def test_run_writes_evidence_beside_the_labels(folder, call, suffix):
    labels = pd.read_csv("labels.csv")
    labels.iloc[3] = -1
    labels.to_csv("labels.csv", index=False)
    code, out, err = call(f"run labels.csv -k {K} --evidence --drop-unlabelled -o out.{suffix}")
    assert (code, err) == (0, [])
    kept = np.arange(len(labels)) != 3
    est = LWGP(K).fit(labels.to_numpy()[kept])
    np.testing.assert_array_equal(READ[suffix](f"out.{suffix}")[kept], est.labels_)
    read = {"npz": np.load, "parquet": pd.read_parquet, "csv": pd.read_csv}.get(suffix, pd.read_table)
    found = read(f"out.{suffix}")
    for name in ("certainty", "confidence", "margin"):
        assert np.isnan(found[name][3])
        np.testing.assert_allclose(np.asarray(found[name])[kept], getattr(est.evidence().objects, name))
    record = json.loads(Path(f"out.{suffix}.json").read_text())["evidence"]
    np.testing.assert_allclose(record["confidence"], est.confidence_.mean())
    np.testing.assert_allclose(record["certainty"], est.evidence().objects.certainty.mean())
    assert record["anmi"] == est.evidence().agreement.anmi
    assert f"evidence: certainty {record['certainty']:.3f}, agreement with the clusterings {record['anmi']:.3f}" in out


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_evidence_marks_the_rest_where_clusters_have_a_smallest_size(folder, call, suffix):
    labels = pd.read_csv("labels.csv")
    labels.iloc[-4:-1] = 90 + np.arange(3)[:, None]
    labels.iloc[3] = -1
    labels.to_csv("labels.csv", index=False)
    code, _, err = call(f"run labels.csv --method eac -k {K} --min-size 4 --evidence --drop-unlabelled -o out.{suffix}")
    assert (code, err) == (0, [])
    found = {"npz": np.load, "parquet": pd.read_parquet, "csv": pd.read_csv}[suffix](f"out.{suffix}")["rest"]
    assert found.dtype == bool
    assert np.flatnonzero(np.asarray(found)).tolist() == [len(labels) - 4, len(labels) - 3, len(labels) - 2]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--evidence -o out.npy", "which 'out.npy' cannot hold; name a csv, tsv, parquet or npz file."),
        ("--evidence --scheduler threads", "--evidence is for files that are read in one piece"),
        ("--membership --method em -o out.h5ad", "--membership is written beside the labels, which 'out.h5ad' cannot"),
        ("--membership", "--membership needs a method with shares in clusters, but 'lwgp' has none; leave it out."),
    ],
)
def test_run_refuses_numbers_beside_the_labels_that_cannot_be(folder, call, options, sentence):
    np.save("labels.npy", LABELS)
    code, _, err = call(f"run labels.npy -k {K} {options}")
    assert code == 2
    assert sentence in err[0]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_run_writes_memberships_beside_the_labels(folder, call, suffix):
    labels = pd.read_csv("labels.csv")
    labels.iloc[3] = -1
    labels.to_csv("labels.csv", index=False)
    options = f"--method em -k {K} --membership --evidence --drop-unlabelled"
    assert call(f"run labels.csv {options} -o out.{suffix}")[::2] == (0, [])
    est = EM(K).fit(np.delete(labels.to_numpy(), 3, axis=0))
    found = {"npz": np.load, "parquet": pd.read_parquet, "csv": pd.read_csv}[suffix](f"out.{suffix}")
    if suffix == "npz":
        membership = found["membership"]
    else:
        columns = [f"membership_{k}" for k in range(K)]
        assert list(found.columns) == ["label", "certainty", "confidence", "margin", *columns]
        membership = found[columns].to_numpy()
    assert np.isnan(membership[3]).all()
    np.testing.assert_allclose(np.delete(membership, 3, axis=0), est.membership_)


def test_evidence_of_a_consensus_in_a_file(folder, call):
    assert call(f"run labels.csv -k {K} --evidence -o out.csv")[0] == 0
    assert call("evidence labels.csv out.csv") == call("evidence labels.csv out.csv --columns-consensus label")
    code, _, err = call("evidence labels.csv out.csv --columns-consensus label,margin")
    assert code == 3
    assert "has 2 columns where one is needed; choose one by --columns-consensus." in err[0]
    command = "evidence labels.csv out.csv --columns-consensus label"
    code, out, err = call(f"{command} -o each.csv")
    assert (code, err) == (0, [])
    assert re.sub(" +", " ", out[1]) == "cluster objects consensus stability item certainty silhouette nearest"
    assert (len([line for line in out if re.match(r"\d ", line)]), out[-1]) == (K, "written: each.csv")
    each, est = pd.read_csv("each.csv"), LWGP(K).fit(LABELS)
    assert any(line.endswith(f"; {est.evidence().beyond_chance}") for line in out)
    for name in ("certainty", "confidence"):
        np.testing.assert_allclose(each[name], getattr(est.evidence().objects, name))
    np.testing.assert_allclose(each["ecc"], est.evidence().consistency.ecc)
    record = json.loads("\n".join(call(f"{command} --ignore-missing --json")[1]))
    found = est.evidence(missing="ignore")
    np.testing.assert_allclose([row["consensus"] for row in record["clusters"]], found.clusters.consensus)
    assert record["pairs"]["pac"] == found.pairs().pac()
    assert record["beyond_chance"] == {"z": found.beyond_chance.z, "p": found.beyond_chance.p}


def test_evidence_of_a_consensus_of_names(folder, call):
    names = np.array(["B cell", "T cell", "NK", "other"], dtype=object)[TRUTH]
    pd.DataFrame({"type": names}).to_csv("types.csv", index=False)
    code, out, err = call("evidence labels.csv types.csv -o each.csv")
    assert (code, err, out[-1]) == (0, [], "written: each.csv")
    assert pd.read_csv("each.csv")["label"].tolist() == names.tolist()


# --- choose -----------------------------------------------------------------------------------------------------------


def test_choose_suggests_a_number_of_clusters(folder, call):
    code, out, err = call("choose labels.csv --ks 2:6")
    assert (code, err) == (0, [])
    assert [line.split()[0] for line in out[:6]] == ["k", "2", "3", "4", "5", "6"]
    found = gpuens.choose_k(LABELS, ks=range(2, 7))
    assert out[6] == f"suggested: {found.suggested} clusters ({found.reasons[found.suggested]})"
    record = json.loads("\n".join(call("choose labels.csv --ks 2:6 --json")[1]))
    assert (record["suggested"], [row["k"] for row in record["ks"]]) == (K, [2, 3, 4, 5, 6])
    few = "choose --features features.npy --ks 3:4 --n-clusterings 5"
    assert json.loads("\n".join(call(f"{few} --json")[1]))["ks"][1]["pac"] >= 0
    assert call("choose labels.csv --features features.npy")[0] == 2
    code, _, err = call("choose labels.csv --n-init 3")
    assert (code, err) == (2, ["gpuens: --n-init applies to --features; leave it out with LABELS."])
    code, _, err = call("choose labels.csv --ks 2-6")
    assert (code, "numbers of clusters are written 2:20, not '2-6'" in err[0]) == (2, True)


# --- error messages ---------------------------------------------------------------------------------------------------

BEFORE_READING = {
    "run labels.csv --method kmeans": (
        "method must be one of the names that gpuens.methods() (gpuens methods) lists, such as 'median', 'eac', "
        "'weac', not 'kmeans'."
    ),
    "run labels.csv --method eac --theta 1 -k 3": (
        "--theta is no option of method 'eac'; its options are -k, --linkage, --weights, --missing-labels, "
        "--distance-threshold, --min-size, --reduce, --device."
    ),
    "run labels.csv --seed -1": "random_state must be at least 0, but is -1.",
    "run labels.csv -k 3 --method LWEA": "method must be one of *, not 'LWEA' (did you mean 'lwea'?).",
    "run labels.csv -k 3 --method crc_c": "method must be one of *, not 'crc_c' (did you mean 'crc-c'?).",
    "run labels.csv -k 0": "n_clusters must be at least 1, but is 0.",
    "run labels.csv -k 3 --theta 0": "theta must be above 0 and finite, but is 0.0.",
    "run labels.csv -k 3 --theta nan": "theta must be above 0 and finite, but is nan.",
    "run labels.csv -k 3 --theta 1e400": "theta must be above 0 and finite, but is inf.",
    "run labels.csv -k 99999999999999999999": (
        "n_clusters must be from 1 to 9223372036854775807, but is 99999999999999999999."
    ),
    f"run labels.csv -k {'9' * 5000}": "argument -k/--n-clusters: invalid int value: '9999* …; see gpuens run --help.",
    "run labels.csv --method hbgf -k 3 --n-init 9223372036854775808": (
        "n_init must be from 1 to 10000, but is 9223372036854775808."
    ),
    "run labels.csv --method cgc -k 3 --max-iter 9223372036854775807": (
        "max_iter must be from 1 to 1000000, but is 9223372036854775807."
    ),
    "run labels.csv --method scec -k 3 --alpha 1e400": "alpha must be from 0 to 1e+09, but is inf.",
    "run labels.csv --method scec -k 3 --beta 1e300": "beta must be above 0 and at most 1e+09, but is 1e+300.",
    "run labels.csv --method scec -k 3 --tol -1": "tol must be from 0 to 1, but is -1.0.",
    "run labels.csv --method oc-ia -k 3 --imbalance nan": "imbalance must be above 0 and finite, but is nan.",
    f"run labels.csv --seed {10**400}": "random_state must be from 0 to *, but is a whole number of about 401 digits.",
    "run labels.csv --reduce sample:1e400": "size must be above 0 and at most 1, but is inf.",
    "run labels.csv --method eac -k 3 --distance-threshold inf": "n_clusters and distance_threshold are both given; *",
    "run labels.csv --method eac --distance-threshold inf": "distance_threshold must be above 0 and finite, but is *",
    "run labels.csv --method eac -k 3 --distance-threshold 1": "n_clusters and distance_threshold are both given; *",
    "run labels.csv --method eac --linkage ward": "linkage must be one of 'average', 'complete', 'single', not 'ward'.",
    "run labels.csv --method oc-h -k 3 --threshold 2": "threshold must be from 0 to 1, or None for the mean *",
    "run labels.csv -k 3 --similarity coupled --partitioner transfer-cut": "TransferCut needs a weight of *",
    "run labels.csv -k 3 --similarity lwca:tau=1": "similarity 'lwca' cannot take 'tau=1'; it has theta, weights, *",
    "run labels.csv -k 3 --partitioner best": "partitioner must be one of *",
    "run labels.csv -k 3 --method eac --partitioner metis": "--method=eac has a similarity and a partitioner of its *",
    "run labels.csv --method s-cce -k 3 --mu -1": "mu must be from 0 to 1, or None for the consistency of the *",
    "run labels.csv --method cgc -k 3 --max-iter 0": "max_iter must be from 1 to 1000000, but is 0.",
    "run labels.csv -k 3 --reduce halves": "reduction must be one of 'catree', 'core-groups', 'sample', not 'halves'.",
    "run labels.csv -k 3 --reduce sample": "reduction 'sample' needs size: write sample:size=VALUE.",
    "run labels.csv -k 3 --reduce sample:5,sise=3": "reduction 'sample' cannot take 'sise=3'; it has size, *",
    "run labels.csv -k 3 --reduce core-groups:5": "reduction 'core-groups' cannot take '5'; it has no parameters, *",
    "run labels.csv -k 3 --reduce sample:0": "size must be at least 1, but is 0.",
    "run labels.csv --method hbgf -k 3 --n-init 0": "n_init must be from 1 to 10000, but is 0.",
    "run labels.csv --method hbgf -k 3 --seed -1": "random_state must be at least 0, but is -1.",
    "run labels.csv -k 3 --device tpu": "device must be one of 'auto', 'cpu', 'cuda', 'emulated', not 'tpu'.",
    "run labels.csv -k 3 -o out.txt": "path 'out.txt' has no known ending; it must end in *",
    "run labels.csv -k 3 -o ../{here}/labels.csv": "output '../{here}/labels.csv' is the input itself; *",
    "run labels.csv -k 3 -o pipe.csv": "path 'pipe.csv' is a pipe or a device, which a file would replace; *",
    "run labels.csv -k 3 -o {long}.npy": "record '{long}.npy.json' cannot be written (File name too long); choose *",
    "run labels.csv -k 3 -o {longer}.csv.gz": "path '{longer}.csv.gz' cannot be written (File name too long); *",
    "generate features.npy -o {long}.npy": "record '{long}.npy.json' cannot be written (File name too long); choose *",
    "run labels.csv -k three": "argument -k/--n-clusters: invalid int value: 'three'; see gpuens run --help.",
    "run labels.csv --fast": "--fast is no option of method 'lwgp'; its options are -k, --theta, --weights, *",
    "run --fast labels.csv": "the following arguments are required: LABELS (--fast: options of a method *",
    "run labels.csv --theta": "--theta must be a number, not ''.",
    "run labels.csv --theta mild": "--theta must be a number, not 'mild'.",
    "run labels.csv --method eac --distance-threshold far": "--distance-threshold must be a number or none, not 'far'.",
    "run labels.csv --method hbgf -k 3 --n-init 2.5": "--n-init must be a whole number, not '2.5'.",
    "run": "the following arguments are required: LABELS; see gpuens run --help.",
    "": "the following arguments are required: COMMAND; see gpuens --help.",
    "clutser": "argument COMMAND: invalid choice: 'clutser' (choose from *",
    "run labels.csv -k 3 --header --no-header": "argument --no-header: not allowed with argument --header; *",
    "run labels.npy -k 3 --scheduler threads --sep ;": "--sep is for files that are read in one piece; *",
    "run labels.npy -k 3 --scheduler threads --long": "--long is for files that are read in one piece; *",
    "run labels.npy -k 3 --scheduler threads --no-missing NA": "--no-missing is for files that are read in *",
    "run labels.csv -k 3 --long --one-hot": "argument --one-hot: not allowed with argument --long; *",
    "run labels.npy -k 3 --scheduler threads --id-column a": "--id-column is for files that are read in one piece; *",
    "generate features.npy --objects half -o out.npy": "--objects must be a whole number or a number, not 'half'.",
    "generate features.npy": "the following arguments are required: -o/--output; see gpuens generate --help.",
    "generate features.npy -o features.npy": "output 'features.npy' is the input itself; choose another name.",
    "generate features.npy -o out.h5": "path 'out.h5' has no known ending; it must end in *",
    "demo --seed -1": "random_state must be at least 0, but is -1.",
}
AFTER_READING = {
    "run labels.csv -k 3 -o nowhere/out.npy": "path 'nowhere/out.npy' is in a directory that does not exist; make *",
    "run nothing.csv -k 3": "path 'nothing.csv' does not exist; check the name.",
    "run broken.npy -k 3": "path 'broken.npy' cannot be read as a file of the kind that its ending names (*",
    "run features.npy -k 3": "labels of clustering 0 are not whole numbers (* was found): pass cluster labels, not *",
    "run labels.csv -k 121": "n_clusters=121 is more than the * distinct label row(s): objects with equal labels *",
    "run labels.csv -k 3 --columns z": "columns: there is no column 'z'; there are 'a', 'b', 'c', 'd', 'e', 'f'.",
    "run labels.csv -k 3 --columns x_*": "columns: there is no column 'x_*'; there are 'a', 'b', 'c', 'd', 'e', 'f'.",
    "run labels.csv -k 3 --exclude z": "exclude: there is no column 'z'; there are 'a', 'b', 'c', 'd', 'e', 'f'.",
    "run labels.csv -k 3 --id-column z": "id_column: there is no column 'z'; there are 'a', 'b', 'c', 'd', 'e', 'f'.",
    "run labels.csv -k 3 --sep ab": "sep must be one character that separates fields, such as ';' or *",
    "run features.npy -k 3 --sep ;": "sep=';' applies to text, but this is a .npy file; leave it out.",
    "run . -k 3": "path '.' is a directory; name a file.",
    "run labels.csv -k 3 --long": "a long table has a column of objects, one of clusterings and one of labels, but *",
    "run labels.csv -k 3 --one-hot": "path 'labels.csv': column * has other values than 0 and 1, but each one-hot *",
    "run labels.csv -k 3 --missing NA --no-missing NA": "missing and no_missing both have 'NA'; leave it out of one *",
    "run labels.csv -k 3 --key X": "key='X' names an array in an npz file, but this is a .csv file; leave it out.",
    "generate nothing -o out.npy": "data set 'nothing' is unknown; there are *",
    "generate nothing.npy -o out.npy": "path 'nothing.npy' does not exist; check the name.",
    "generate features.npy -k 500 -o out.npy": "n_clusters=500 asks for up to 500 clusters of 120 object(s); *",
    "generate features.npy -k 2:3:4 -o out.npy": "n_clusters must be a number, 'sqrt' or a pair (lowest, highest), *",
    "generate features.npy -k few -o out.npy": "n_clusters must be a number, 'sqrt' or a pair (lowest, highest), not *",
    "generate features.npy --objects 1.5 -o out.npy": "objects must be above 0 and at most 1, but is 1.5.",
    "generate features.npy --n-init 9223372036854775808 -o out.npy": "n_init must be from 1 to 10000, but is *",
    "generate features.npy --projection 99999999999999999999 -o out.npy": "projection must be from 1 to *",
    "generate features.npy -k 2:99999999999999999999 -o out.npy": "n_clusters must be from 1 to *",
    "generate features.npy --algorithm fast -o out.npy": "algorithm must be one of *",
    "generate features.npy --seed -1 -o out.npy": "random_state must be at least 0, but is -1.",
    "score labels.csv labels.csv": "path 'labels.csv' has 6 columns where one is needed; choose one by --columns-b.",
    "score labels.csv short.csv": "labelings must label the same objects, but a has 120 labels and b has 2; *",
    "score labels.csv nothing.csv": "path 'nothing.csv' does not exist; check the name.",
    "demo --data nothing": "data set 'nothing' is unknown; there are *",
    "demo --data features.npy": "data set 'features' has no classes to compare results with; add them as y.",
}


def spoil(folder):
    """Overwrite all files of a folder with unreadable bytes, so that a command that reads one fails."""
    for path in folder.iterdir():
        if path.is_file():
            path.write_bytes(b"\xff\x00\n")


@pytest.mark.parametrize("line", [*BEFORE_READING, *AFTER_READING])
def test_refusals_are_one_sentence_and_leave_nothing(folder, call, line):
    names = {"here": folder.name, "long": "n" * 250, "longer": "n" * 255}
    expected = {**BEFORE_READING, **AFTER_READING}[line].format(**names)
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe.csv")
    Path("broken.npy").write_bytes(b"\x93NUMPY")
    Path("short.csv").write_text("x\n1\n2\n")
    before = files(folder)
    if line in BEFORE_READING:
        spoil(folder)
    code, out, err = call(line.format(**names))
    assert (code, out, len(err)) == (2 if line in BEFORE_READING else 3, [], 1)
    assert re.fullmatch("gpuens: " + re.escape(expected).replace(r"\*", ".*") + "$", err[0]), err[0]
    assert err[0].endswith((".", ")"))
    assert files(folder) == before


def test_an_output_without_a_name_is_refused(folder, call):
    code, _, err = call("run labels.csv -k 3 -o", "")
    assert (code, len(err)) == (2, 1)
    assert err[0].startswith("gpuens: path '' has no known ending; it must end in ")
    assert files(folder) == GIVEN


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")
@pytest.mark.usefixtures("unpainted")
def test_names_of_any_bytes_are_inputs_outputs_and_in_records(folder, call):
    name = os.fsdecode(b"\xff\xfe")
    os.rename("labels.csv", f"{name}.csv")
    for line in (
        f"run {name}.csv -k 3 -o {name}.npy --report {name}.html",
        f"generate features.npy -k 3 -o {name}.npy",
    ):
        code, _, err = call(line)
        assert (code, err) == (0, [])
        assert json.loads(Path(f"{name}.npy.json").read_text())["output"] == f"{name}.npy"


def test_a_directory_that_may_not_be_written_to_is_refused_first(folder, call, nothing_may_be_written):
    spoil(folder)
    code, _, err = call("run labels.csv -k 3 -o out.npy")
    assert code == 3
    assert err == ["gpuens: path 'out.npy' is in a directory that this user may not write to; choose another place."]


def test_parquet_without_pyarrow_is_refused_first(folder, call, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    spoil(folder)
    code, _, err = call("run labels.csv -k 3 -o out.parquet")
    assert code == 2
    assert err == [f"gpuens: path: parquet files need pyarrow, which is not installed: {installing.command('io')}."]


# --- failures while working -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (MemoryError("that needs 3 TB;\n take less."), 3, "that needs 3 TB; take less."),
        (MemoryError(), 3, "out of memory; take fewer objects or clusterings, or a machine with more."),
        (PermissionError(13, "Permission denied", "disk"), 3, "disk: Permission denied."),
        (OSError(30, "Read-only file system", "disk"), 3, "disk: Read-only file system."),
        (OSError(28, "No space left on device", "disk"), 75, "disk: No space left on device."),
        (ConnectionError("the scheduler went away."), 75, "the scheduler went away."),
        (failures.OutOfGPUMemory("that does not fit the GPU."), 75, "that does not fit the GPU."),
        (failures.LostWorkers("workers died."), 75, "workers died."),
        (type("CUDARuntimeError", (RuntimeError,), {})("fault"), 75, "CUDARuntimeError: fault (--debug shows where)."),
        (RuntimeError("the roof is\non fire"), 1, "RuntimeError: the roof is on fire (--debug shows where)."),
        (AssertionError(), 1, "AssertionError: no details (--debug shows where)."),
    ],
)
def test_failures_are_one_sentence_and_an_exit_code(folder, call, own_method, error, code, sentence):
    own_method("own", raising(error))
    assert call("run labels.csv -k 3 --method own -o out.npy") == (code, [], [f"gpuens: {sentence}"])
    assert files(folder) == GIVEN


@pytest.mark.parametrize(
    ("error", "code"), [(ValueError("no."), 3), (RuntimeError("no."), 1), (KeyboardInterrupt(), 130)]
)
def test_debug_shows_the_traceback_and_keeps_the_exit_code(folder, call, own_method, error, code):
    own_method("own", raising(error, error))
    for line in ("run --debug labels.csv --method own -k 3", "run labels.csv --method own -k 3 --debug"):
        found, out, err = call(line)
        assert (found, out) == (code, [])
        assert err[0] == "Traceback (most recent call last):"
        assert "in fail" in "".join(err)
        assert err[-1].startswith("gpuens: ")


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_what_fails_while_it_writes_leaves_nothing(folder, call, monkeypatch, suffix, error):
    monkeypatch.setattr(os, "replace", raising(error))
    code, out, err = call(f"run labels.csv -k 3 -o out.{suffix}")
    if isinstance(error, KeyboardInterrupt):
        assert (code, out, err) == (130, [], ["gpuens: interrupted; no half-written file is left."])
    else:
        assert (code, out) == (75, [])
        assert err == [
            f"gpuens: path 'out.{suffix}' cannot be written (No space left on device); make room there, or choose "
            "another place."
        ]
    assert files(folder) == GIVEN


# --- generate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ("", {}),
        ("-k 10 --n-clusterings 3", {"n_clusters": 10, "n_clusterings": 3}),
        ("-k 3:7 --seed 5", {"n_clusters": (3, 7), "random_state": 5}),
        ("-k 2:sqrt --objects 0.5", {"n_clusters": (2, "sqrt"), "objects": 0.5}),
        ("-k sqrt --objects 60 --features 2", {"n_clusters": "sqrt", "objects": 60, "features": 2}),
        ("--projection 2 --algorithm minibatch", {"projection": 2, "algorithm": "minibatch"}),
        ("--algorithm nested", {"algorithm": "nested"}),
        ("--init random --n-init 2 --max-iter 5", {"init": "random", "n_init": 2, "max_iter": 5}),
    ],
)
def test_generate_is_kmeans_ensemble(folder, call, options, parameters):
    code, out, err = call(f"generate features.npy -o labels.npy {options}")
    assert (code, err) == (0, [])
    expected = generate.kmeans_ensemble(np.load("features.npy"), **parameters)
    np.testing.assert_array_equal(np.load("labels.npy"), expected.to_array())
    record = json.loads(Path("labels.npy.json").read_text())
    assert record["method"] == "kmeans_ensemble"
    assert (record["n_objects"], record["n_features"], record["n_clusterings"]) == (120, 3, expected.n_clusterings)
    assert record["clusters_of_each"] == np.diff(expected.offsets).tolist()
    for name, value in parameters.items():
        assert record["parameters"][name] == (list(value) if isinstance(value, tuple) else value)
    assert out[0] == "features.npy: 120 objects, 3 features"


def test_generate_takes_names_of_data_sets_and_parts_of_files(folder, call):
    np.savez("set.npz", X=np.load("features.npy"), other=np.load("features.npy")[:, ::-1])
    assert call("generate iris -o iris.csv --n-clusterings 2 -k 3")[0] == 0
    assert call("generate set.npz -o x.npy --n-clusterings 2 -k 3")[0] == 0
    assert call("generate set.npz --key other --columns 2,1,0 -o other.npy --n-clusterings 2 -k 3")[0] == 0
    iris = generate.kmeans_ensemble(datasets.load("iris").X, 2, 3)
    np.testing.assert_array_equal(pd.read_csv("iris.csv").to_numpy(), iris.to_array())
    np.testing.assert_array_equal(np.load("x.npy"), np.load("other.npy"))


def test_generate_then_run_then_score(folder, call):
    assert call("generate features.npy -o base.parquet -k 4:9")[0] == 0
    assert call("run base.parquet -k 4 -o consensus.csv")[0] == 0
    code, out, _ = call("score consensus.csv truth.csv --json")
    assert code == 0
    assert json.loads("".join(out))["ari"] > 0.9


# --- score ------------------------------------------------------------------------------------------------------------


def test_score_of_two_labelings(folder, call):
    pd.DataFrame({"other": TRUTH, "a": TRUTH // 2 + (np.arange(len(TRUTH)) % 3 == 0)}).to_csv("a.csv", index=False)
    expected = metrics.scores(pd.read_csv("a.csv")["a"], TRUTH)
    code, out, err = call("score a.csv truth.csv --columns-a a")
    assert (code, err) == (0, [])
    assert out[0].split() == ["nmi", "nmi_max", "ari", "accuracy"]
    assert out[1].split() == [f"{value:.4f}" for value in expected.values()]
    assert len(out) == 2
    assert json.loads("".join(call("score a.csv truth.csv --columns-a 1 --json")[1])) == expected


def test_score_of_several_columns_has_a_row_each_and_the_mean(folder, call):
    np.savez("truth.npz", X=LABELS, y=TRUTH)
    _, out, _ = call("score labels.csv truth.npz --key-b y")
    scores = pd.DataFrame([metrics.scores(column, TRUTH) for column in LABELS.T])
    rows = [line.split() for line in out[1:]]
    assert [row[0] for row in rows] == [*"abcdef", "mean"]
    printed = np.array([row[1:] for row in rows], dtype=float)
    np.testing.assert_allclose(printed, np.vstack([scores, scores.mean()]), atol=5.1e-5)
    facts = json.loads("".join(call("score labels.csv truth.npz --key-b y --json")[1]))
    assert [column.pop("name") for column in facts["columns"]] == list("abcdef")
    assert facts.pop("columns") == scores.to_dict("records")
    assert facts == pytest.approx(scores.mean().to_dict())


# --- align and modes --------------------------------------------------------------------------------------------------


def test_align_writes_names_to_tables_and_codes_to_arrays(folder, call):
    split = np.where((TRUTH == 1) & (np.arange(len(TRUTH)) % 3 == 0), K, TRUTH)
    pd.DataFrame({"object": [f"o{i}" for i in range(len(TRUTH))], "one": (TRUTH + 1) % K, "two": split}).to_csv(
        "runs.csv", index=False
    )
    code, out, err = call("align runs.csv --id-column object --to truth.csv --by-position -o aligned.csv")
    assert (code, err[:-1]) == (0, [])
    assert out[:2] == [
        f"runs.csv: {len(TRUTH)} objects, 2 clusterings",
        "reference: truth.csv, with 4 clusters; 1 more for their parts",
    ]
    table = pd.read_csv("aligned.csv", dtype=str)
    assert list(table) == ["object", "one", "two"]
    assert table["one"].tolist() == TRUTH.astype(str).tolist()
    assert table["two"].tolist() == [f"{t}.b" if s == K else str(t) for t, s in zip(TRUTH, split, strict=True)]
    assert json.loads(Path("aligned.csv.json").read_text())["names"] == [*"0123", "1.b"]
    assert io.read_labels("aligned.csv", id_column="object").n_clusterings == 2  # names are not read as numbers
    assert call("align runs.csv --to truth.csv --by-position -o aligned.npy")[0] == 0
    np.testing.assert_array_equal(np.load("aligned.npy"), np.column_stack([TRUTH, split]))
    assert call("align labels.csv --to first -o first.npy")[0] == 0
    np.testing.assert_array_equal(np.load("first.npy") < 0, LABELS < 0)
    code, out, err = call("align labels.csv --to labels.csv -o a.npy")
    assert code == failures.REFUSED
    assert "has 6 columns where one is needed; write the one to a file of its own" in err[0]


def test_modes_tells_the_stories_of_a_file(folder, call):
    rng = np.random.default_rng(0)
    other = rng.integers(0, 3, len(TRUTH))
    np.save("runs.npy", np.column_stack([rng.permutation(4)[TRUTH if m < 7 else other] for m in range(12)]))
    code, out, _ = call("modes runs.npy --quiet -o modes.npy")
    assert code == 0
    assert out[0] == "Your 12 clusterings are two stories: 7 and 5."
    assert out[2].split()[:5] == ["0", "7", "58%", "4", "1.00"]
    assert [
        metrics.ari(column, known) for column, known in zip(np.load("modes.npy").T, (TRUTH, other), strict=True)
    ] == [1, 1]
    told = json.loads("\n".join(call("modes runs.npy -n 1 --json --quiet")[1]))
    assert (len(told["modes"]), told["input"]) == (1, "runs.npy")


# --- two files of the same objects ------------------------------------------------------------------------------------

NAMED = [f"cell {x}" for x in range(len(LABELS))]


@pytest.fixture
def named(folder):
    """Write labels, a consensus and classes with object names, each in two orders of the objects.

    Return the second order.
    """
    order = np.random.default_rng(0).permutation(len(LABELS))
    frame = pd.DataFrame(LABELS, columns=list("abcdef"), index=pd.Index(NAMED, name="cell")).assign(batch=0)
    consensus = pd.DataFrame({"label": LWGP(K).fit(LABELS).labels_, "truth": TRUTH}, index=frame.index)
    for name, table in {"cells": frame, "out": consensus[["label"]], "classes": consensus[["truth"]]}.items():
        table.to_csv(f"{name}.csv")
        table.iloc[order].to_csv(f"{name}_mixed.csv")
    return order


def test_columns_that_are_chosen_leave_the_objects_their_names(folder, call):
    frame = pd.DataFrame(LABELS, columns=[f"run_{m}" for m in range(6)])
    frame.insert(0, "customer-id", NAMED)
    frame.to_csv("customers.csv", index=False)
    frame[:3].to_csv("new.csv", index=False)
    assert call(f"run customers.csv --columns run_* -k {K} -o out.csv --model model.npz --quiet")[0] == 0
    assert call("predict model.npz new.csv -o new_out.csv --quiet")[0] == 0
    for output, names in (("out.csv", NAMED), ("new_out.csv", NAMED[:3])):
        found = pd.read_csv(output)
        assert found.columns[0] == "customer-id"
        assert found["customer-id"].tolist() == list(names)
    frame["customer-id"] = 0  # a constant column cannot name the objects
    frame.to_csv("alike.csv", index=False)
    assert call(f"run alike.csv --columns run_* -k {K} -o alike_out.csv --quiet")[0] == 0
    assert pd.read_csv("alike_out.csv").columns.tolist() == ["label"]


def test_a_table_that_a_run_wrote_is_read_by_its_labels(named, call):
    assert call(f"run cells.csv --id-column cell --exclude batch -k {K} -o found.csv --evidence --quiet")[0] == 0
    assert pd.read_csv("found.csv").columns.tolist() == ["cell", "label", "certainty", "confidence", "margin"]
    ids = "--id-column cell"
    code, out, _ = call(f"evidence cells.csv found.csv --exclude batch {ids}")
    assert code == 0
    assert out[0] == f"cells.csv: {len(LABELS)} objects, 6 clusterings; found.csv: {K} clusters"
    assert call(f"score found.csv classes_mixed.csv {ids}") == call(f"score out.csv classes_mixed.csv {ids}")


def test_objects_that_both_files_name_go_together_by_their_names(named, call):
    ids = "--id-column cell"
    expected = call(f"score out.csv classes.csv {ids}")
    assert expected[0] == 0
    assert call(f"score out_mixed.csv classes.csv {ids}") == expected
    assert call(f"score out.csv classes_mixed.csv {ids}") == expected
    assert call("score out_mixed.csv classes.csv --id-column 0") == expected
    # the file truth.csv has no names of objects
    code, _, err = call("score out.csv truth.csv --columns-a label --id-column 0")
    assert code == failures.REFUSED
    assert "path 'truth.csv' does not" in err[0]
    assert "--by-position" in err[0]
    assert call("score out.csv truth.csv --columns-a label --by-position") == expected
    excluding = f"{ids} --exclude batch"
    for command in ("evidence cells.csv {}", f"compare cells.csv -k {K} --methods kcc,eac --truth {{}} --json"):
        texts = []
        for name in ("out.csv", "out_mixed.csv"):
            code, out, err = call(f"{command.format(name)} {excluding}")
            assert (code, err) == (0, [])
            texts.append([line for line in out if '"seconds"' not in line and '"memory"' not in line])
        assert "\n".join(texts[0]).replace("out.csv", "out_mixed.csv") == "\n".join(texts[1])


def test_columns_like_ids_name_the_objects_of_two_files(named, call):
    expected = call("score out.csv classes.csv --id-column cell")[1]
    for a, b in itertools.product(("out.csv", "out_mixed.csv"), ("classes.csv", "classes_mixed.csv")):
        assert call(f"score {a} {b}") == (0, expected, [])
    for command in ("evidence cells.csv {}", f"compare cells.csv -k {K} --methods kcc --truth {{}} --json"):
        found = [call(command.format(name) + " --exclude batch")[1] for name in ("out.csv", "out_mixed.csv")]
        one, other = ([line for line in out if "seconds" not in line and "memory" not in line] for out in found)
        assert "\n".join(one).replace("out.csv", "out_mixed.csv") == "\n".join(other)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "evidence cells.csv other.csv --exclude batch",
            "path 'cells.csv' has an object 'cell 7' that 'other.csv' lacks; both files must have",
        ),
        ("score out.csv alien.csv", "path 'out.csv' has an object 'cell 0' that 'alien.csv' lacks"),
        ("score out.csv twice.csv", "path 'twice.csv' gives several objects the name 'cell 3'"),
        ("evidence cells.csv short.csv --exclude batch", "path 'cells.csv' has an object 'cell 119' that 'short.csv'"),
        ("score out.csv classes.csv --exclude bach", "neither file has a column 'bach'"),
    ],
)
def test_files_of_other_objects_are_refused(named, call, line, expected):
    out = pd.read_csv("out.csv", index_col=0)
    alien = {x: f"gene {x}" for x in range(len(NAMED))}
    for name, cells in {"other": {7: "cell x"}, "twice": {7: "cell 3"}, "alien": alien}.items():
        out.set_axis([cells.get(x, cell) for x, cell in enumerate(NAMED)]).rename_axis("cell").to_csv(f"{name}.csv")
    out[:-1].to_csv("short.csv")
    code, _, err = call(f"{line} --id-column cell")
    assert (code, len(err)) == (3, 1 + ("twice" in line))
    assert expected in err[-1]


def test_features_go_to_the_objects_of_their_names(named, call):
    frame = pd.DataFrame(np.load("features.npy"), index=NAMED).add_prefix("x")
    frame.to_parquet("x.parquet")
    frame.iloc[named].to_parquet("x_mixed.parquet")
    for name in ("x", "x_mixed"):
        line = f"run cells.csv --exclude batch -k 4 --method tome --features {name}.parquet -o {name}.csv --quiet"
        assert call(line)[0] == 0
    assert Path("x.csv").read_text() == Path("x_mixed.csv").read_text()


@pytest.mark.usefixtures("unpainted")
def test_a_consensus_in_an_annotated_file_is_what_is_scored(folder, call):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame(LABELS, columns=list("abcdef"), index=NAMED).astype("category")
    anndata.AnnData(obs=obs).write_h5ad("cells.h5ad")
    assert call(f"run cells.h5ad -k {K} -o out.h5ad")[0] == 0
    assert call(f"run cells.h5ad -k {K} -o out.npy")[0] == 0
    assert call(f"run cells.h5ad -k {K} -o told.h5ad --report told.html --quiet")[0] == 0
    labels = np.load("out.npy")
    np.testing.assert_array_equal(anndata.read_h5ad("told.h5ad").obs.consensus.cat.codes, labels)
    assert json.loads(Path("told.h5ad.json").read_text())["cluster_sizes"] == np.bincount(labels).tolist()
    expected = call("score out.npy truth.csv --by-position")
    assert expected[0] == 0
    assert call("score out.h5ad truth.csv --by-position") == expected
    assert len(call("score out.h5ad truth.csv --columns-a [a-f] --by-position")[1]) == 1 + 6 + 1
    of_array, of_cells = (call(f"evidence cells.h5ad out.{kind} --by-position") for kind in ("npy", "h5ad"))
    assert of_array[0] == of_cells[0] == 0
    assert of_array[1][1:] == of_cells[1][1:]


@pytest.mark.parametrize(
    "line",
    [
        "describe labels.{}",
        f"compare labels.{{}} -k {K} --methods tome --features features.{{}} --json",
        "choose labels.{} --json",
        "choose --features features.{} --n-clusterings 5 --ks 2:3 --json",
        "evidence labels.{} out.{} --json",
        "score labels.{} out.{}",
        "score out.{} truth.csv",
        "generate features.{} -k 3:5 --n-clusterings 4 -o base.npy",
    ],
)
def test_a_zarr_array_is_read_as_an_npy_file_is(folder, call, line):
    zarr = pytest.importorskip("zarr")
    for name, array in {"labels": LABELS, "out": TRUTH, "features": np.load("features.npy")}.items():
        np.save(f"{name}.npy", array)
        zarr.save_array(f"{name}.zarr", array)
    printed = []
    for kind in ("npy", "zarr"):
        code, out, err = call(line.replace("{}", kind))
        assert (code, err) == (0, [])
        text = "\n".join(out).replace(".npy", ".zarr").partition("estimated time")[0]
        printed.append(re.sub(r'seconds: .*|"(seconds|memory)": [\d.]+', "", text))
    assert printed[0] == printed[1]


# --- info -------------------------------------------------------------------------------------------------------------


def test_info_is_one_screen_with_what_to_type_for_what_is_missing(folder, call, monkeypatch):
    monkeypatch.setattr(record, "_version", lambda package: None if package in ("zarr", "igraph") else "1.2")
    code, out, err = call("info")
    assert (code, err) == (0, [])
    assert len(out) < 40
    text = "\n".join(out)
    assert out[0].startswith(f"gpuens {gpuens.__version__}, Python {platform.python_version()}, ")
    assert re.search(rf"^threads {{9}}{device.n_threads()}$", text, re.MULTILINE)
    assert re.search(rf"^processor .*, level {native.describe()['level']}", text, re.MULTILINE)
    assert re.search(r"^requires .*numpy 1\.2, ", text, re.MULTILINE)
    assert all(name in text for name in methods())
    assert re.search(r"^  cpu +the host, [\d.]+ [GT]B$", text, re.MULTILINE)
    assert re.search(r"^  plot +matplotlib 1\.2, jinja2 1\.2$", text, re.MULTILINE)
    assert "  leiden        without igraph" in out
    assert "  io            pyarrow 1.2, anndata 1.2, numcodecs 1.2; without zarr" in out
    assert out[-1] == f"  to add what is missing, such as io: {installing.command('io')}"


def test_info_as_json_has_the_facts_of_the_text(folder, call, monkeypatch):
    monkeypatch.setattr(record, "_version", lambda package: None if package == "zarr" else "1.2")
    facts = json.loads("".join(call("info --json")[1]))
    assert facts["devices"][0]["device"] == "cpu"
    assert facts["methods"].keys() == methods().keys()
    assert facts["extras"]["io"] == {"pyarrow": "1.2", "anndata": "1.2", "zarr": None, "numcodecs": "1.2"}
    assert facts["to_install"] == {"io": installing.command("io")}
    assert facts["extras"].keys().isdisjoint({"build", "check", "dev", "docs", "kernels", "suite", "test"})
    assert 0 < facts["memory"]["budget"] <= facts["memory"]["total"]
    assert facts["processor"]["level"] in facts["processor"]["compiled"]
    assert (facts["no_gpu"] is None) == (len(facts["devices"]) > 1)
    assert Path(facts["installed"]) == Path(gpuens.__file__).parent


def test_info_says_why_no_gpu_is_visible(folder, call, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    (line,) = (line for line in call("info")[1] if "GPU" in line and "visible" in line)
    why = "labels in GPU memory need CuPy, but CuPy is not installed"
    assert line.startswith(f"  no GPU is visible: {why}: {installing.command('cu12')} ")
    monkeypatch.setitem(sys.modules, "cupy", fake := importlib.import_module("fake_cupy"))
    fake.reset(gpus=0)
    assert "  no GPU is visible: the driver shows none." in call("info")[1]
    fake.reset(gpus=RuntimeError("cudaErrorNoDevice:\nnone"))
    assert "  no GPU is visible: cudaErrorNoDevice: none." in call("info")[1]
    assert call("info --check --device cuda")[2] == ["gpuens: cuda failed: cudaErrorNoDevice: none."]
    fake.reset(gpus=0)
    expected = "gpuens: device='cuda' needs CuPy and a GPU (the driver shows none); use device='auto' or 'cpu'."
    assert call(f"run labels.csv -k {K} --device cuda")[2] == [expected]


def test_check_finds_planted_clusters_on_every_device(folder, call, fake_cupy):
    code, out, err = call("info --check")
    assert (code, err) == (0, [])
    pattern = r"(.*): found the 5 planted clusters of 1,000 objects in \d+\.\d\d s"
    assert [re.fullmatch(pattern, line)[1] for line in out] == ["cpu", "cuda:0"]
    facts = json.loads("".join(call("info --check --device emulated --json")[1]))
    assert facts["seconds"].keys() == {"emulated"}


def dead(*_, **__):
    raise RuntimeError("cudaErrorECCUncorrectable: uncorrectable\nECC error encountered")


def wrong_at(device, change):
    """Return a replacement of LWEA.fit that gives wrong labels on one device."""
    fit = LWEA.fit

    def fitted(self, labels):
        fit(self, labels)
        if self.device == device:
            change(self)
        return self

    return fitted


@pytest.mark.parametrize(
    ("broken", "options", "sentence"),
    [
        (dead, "", "cpu failed: RuntimeError: cudaErrorECCUncorrectable: uncorrectable ECC error encountered ("),
        (
            lambda est: est.labels_.fill(0),
            "",
            "cuda:0 failed: it did not find the 5 planted clusters of 1,000 objects.",
        ),
        (
            lambda est: np.multiply.at(est.dendrogram_.similarities, -1, 1 + 1e-15),
            "--device cuda",
            "cuda:0 failed: its dendrogram of 1,000 objects differs from that of the CPU.",
        ),
    ],
    ids=["dead", "wrong labels", "wrong heights"],
)
def test_check_fails_in_one_sentence_on_a_broken_device(
    folder, call, fake_cupy, monkeypatch, broken, options, sentence
):
    monkeypatch.setattr(LWEA, "fit", broken if broken is dead else wrong_at("cuda", broken))
    code, out, (line,) = call(f"info --check {options}")
    assert code not in (0, 2)
    assert out == []
    assert line.startswith(f"gpuens: {sentence}")
    assert files(folder) == GIVEN


def test_check_of_a_gpu_fails_where_there_is_none(folder, call, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    code, out, (line,) = call("info --check --device cuda")
    assert (code in (0, 2), out) == (False, [])
    assert line.startswith("gpuens: cuda failed: labels in GPU memory need CuPy, but CuPy is not installed: ")
    assert call("info --check --device tpu")[2] == [
        "gpuens: device must be one of 'cpu', 'cuda', 'emulated', not 'tpu'."
    ]
    assert call("info --device cpu")[2] == [
        "gpuens: --device=cpu is the device that --check tests; add --check, or leave --device out."
    ]


def test_info_and_records_of_a_checkout_that_is_not_installed(folder, call, monkeypatch):
    from importlib import metadata

    monkeypatch.setattr(metadata, "requires", raising(metadata.PackageNotFoundError("gpuens")))
    facts = json.loads("".join(call("info --json")[1]))
    assert (facts["versions"], facts["extras"]) == ({}, {})
    assert call("info")[0] == 0


# --- warm -------------------------------------------------------------------------------------------------------------


def test_warm_compiles_every_variant(folder, call, monkeypatch):
    found = kernels.modules()
    assert len(found) == sum(len(kernels.variants(stem)) for stem in kernels.sources())
    assert {kernels.functions()[kernel] for kernel, _ in found} == kernels.sources().keys()
    monkeypatch.setattr(kernels, "modules", lambda: found[:3])
    kernels._module.cache_clear()
    line = "compiled 3 kernel modules for emulated"
    assert call("warm --device emulated") == (0, [line], [])
    assert kernels._module.cache_info().currsize == 3
    monkeypatch.setenv("GPUENS_PROGRESS", "1")
    assert "kernels:   0%|" in "".join(call("warm --device emulated")[2])


def test_warm_fits_each_method_on_the_gpu(folder, call, fake_cupy, monkeypatch, sizes):
    monkeypatch.setattr(kernels, "modules", list)
    sizes("cli.warm", N_OBJECTS=40, N_CLUSTERS=(4,))
    assert call("warm") == (
        0,
        [
            "compiled 0 kernel modules for cuda:0",
            f"fitted {len(methods()) - len(NOT_HERE)} small ensembles on cuda:0",
        ],
        [],
    )


def test_warm_fits_the_methods_that_are_named(folder, call, fake_cupy, monkeypatch, sizes):
    monkeypatch.setattr(kernels, "modules", list)
    sizes("cli.warm", N_OBJECTS=40, N_CLUSTERS=(4, 5))
    assert call("warm kcc lwgp")[1][1:] == ["fitted 4 small ensembles on cuda:0"]
    code, out, (line,) = call("warm lwae")
    assert (code, out) == (2, [])
    assert "lwae" in line
    assert "did you mean 'lwea'?" in line


def test_warm_is_refused_for_a_cpu_and_without_a_gpu(folder, call, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    code, out, (line,) = call("warm")
    assert (code, out) == (2, [])
    assert line.startswith("gpuens: device='cuda' needs CuPy and a GPU (")
    assert call("warm --device tpu")[2] == ["gpuens: device must be one of 'cuda', 'emulated', not 'tpu'."]
    expected = "gpuens: device must be 'cuda': all that runs on a CPU was compiled when gpuens was built."
    assert call("warm --device cpu") == (2, [], [expected])


# --- demo -------------------------------------------------------------------------------------------------------------


def rows_of(out):
    """Return the table of a demo, a dict from names to lists of numbers."""
    found = {}
    for line in out:
        if match := re.fullmatch(r"(\S.*?)((?: +-?\d+\.\d+)+)", line):
            found[match[1]] = [float(number) for number in match[2].split()]
    return found


def test_demo_scores_four_consensuses_and_draws_one(folder, call):
    code, out, err = call("demo --data wine --output-dir pictures --seed 3")
    assert (code, err) == (0, [])
    assert out[0] == "wine: 178 objects, 13 features, 3 classes (scikit-learn)"
    data = datasets.load("wine")
    ens = generate.kmeans_ensemble(data.X, 20, (2, "sqrt"), random_state=3)
    assert re.fullmatch(rf"base clusterings: 20 k-means with k from 2 to {np.diff(ens.offsets).max()}, .* s", out[1])
    base = pd.DataFrame([metrics.scores(column, data.y) for column in ens.to_array().T])
    names = ["nmi", "ari", "accuracy"]
    table = rows_of(out)
    expected = {
        "base clusterings, mean": base[names].mean(),
        "base clusterings, best": base[names].loc[base["nmi"].idxmax()],
    }
    for kind in (EAC(3), LWEA(3), LWGP(3, random_state=3), HBGF(3, random_state=3)):
        expected[type(kind).__name__] = pd.Series(metrics.scores(kind.fit(ens).labels_, data.y))[names]
    assert list(table) == list(expected)
    for name, scores in expected.items():
        np.testing.assert_allclose(table[name][:3], scores, atol=5.1e-4, err_msg=name)
        assert len(table[name]) == (3 if "base" in name else 4)
    picture = os.path.join("pictures", "gpuens-demo-wine.png")
    assert out[-1] == f"picture: {picture}"
    assert files(folder / "pictures") == ["gpuens-demo-wine.png"]
    from matplotlib.image import imread

    pixels = imread(picture)
    assert pixels.shape[0] > 600
    assert pixels.std() > 0.05


def test_demo_without_matplotlib_has_its_table_all_the_same(folder, call, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"] + ["matplotlib.figure"]:
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = call("demo --data iris")
    assert (code, err) == (0, [])
    assert {"EAC", "LWEA", "LWGP", "HBGF"} < rows_of(out).keys()
    assert out[-1] == f"pictures need matplotlib, which is not installed: {installing.command('plot')}."
    assert files(folder) == GIVEN


def test_demo_without_a_place_for_matplotlib_has_its_table_all_the_same(folder, call, monkeypatch):
    sentence = "Matplotlib requires access to a writable cache directory; set MPLCONFIGDIR."
    monkeypatch.setattr("gpuens.plotting.coassociation_heatmap", raising(OSError(sentence)))
    code, out, err = call("demo --data iris")
    assert (code, err, out[-1]) == (0, [], sentence)
    assert files(folder) == GIVEN


def test_demo_of_many_objects_has_more_clusters_and_draws_a_sample(folder, call, sizes):
    sizes("kmeans.nested", ALL_UP_TO=1000)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 1600)
    np.savez("many.npz", X=rng.normal(8 * np.eye(5, 4)[y], 1.0), y=y)
    code, out, _ = call("demo --data many.npz")
    assert code == 0
    low, high = map(int, re.search(r"20 k-means with k from (\d+) to (\d+)", out[1]).groups())
    assert 5 <= low <= high <= 100
    assert (folder / "gpuens-demo-many.png").read_bytes().startswith(b"\x89PNG")
    assert rows_of(out)["LWEA"][1] > 0.95


def test_demo_that_is_interrupted_leaves_no_picture(folder, call, monkeypatch):
    monkeypatch.setattr(os, "replace", raising(KeyboardInterrupt()))
    assert call("demo --data iris")[0] == 130
    assert files(folder) == GIVEN


# --- as a process of its own ------------------------------------------------------------------------------------------


def process(*command, **more):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120, **more)


def test_help_and_version_import_nothing_heavy():
    code = (
        "import sys\nfrom gpuens.cli import main\n"
        "for line in (['--help'], ['run', '--help'], ['--version'], ['run']):\n"
        "    try:\n        main(line)\n    except SystemExit as end:\n        assert end.code == 0\n"
        "print('modules', *sys.modules)"
    )
    ran = process("-c", code, check=True)
    assert "usage: gpuens [-h]" in ran.stdout
    assert f"gpuens {gpuens.__version__}" in ran.stdout
    loaded = {name.split(".")[0] for name in ran.stdout.splitlines()[-1].split()}
    assert loaded & {"numpy", "scipy", "sklearn", "pandas", "matplotlib", "cupy", "dask", "tqdm"} == set()


def test_a_mistyped_path_is_refused_before_what_takes_long_to_import(folder):
    lines = ["run nothing.csv -k 3", "run nothing.npy -k 3 --scheduler local", "score nothing.csv truth.csv"]
    lines += ["generate nothing.csv -o out.npy", "cluster nothing.csv -k 3 -o out.npy"]
    code = (
        "import sys\nfrom gpuens.cli import main\n"
        f"for line in {lines}:\n    assert main(line.split()) == 3\n"
        "print(*sys.modules)"
    )
    ran = process("-c", code, check=True)
    assert ran.stderr.count("does not exist; check the name.") == len(lines)
    assert not {"scipy", "sklearn", "pandas", "dask"} & {name.split(".")[0] for name in ran.stdout.split()}


def test_a_run_of_integers_loads_neither_pandas_nor_scipy_stats(folder):
    np.save("labels.npy", np.random.default_rng(0).integers(3, size=(2000, 4)))
    code = (
        "import sys\nfrom gpuens.cli import main\n"
        "sys.argv = 'gpuens run labels.npy -k 3 --quiet -o found.npy'.split()\nassert main() == 0\n"
        "print(*sys.modules)\n"
        "import pandas, scipy.stats, scipy.stats.qmc, sklearn.utils.fixes as fixes\n"
        "assert pandas.Series([1, 1]).nunique() == 1 and fixes.pd.Series is pandas.Series\n"
        "assert scipy.stats.rankdata([3, 1]).tolist() == [2, 1] and scipy.stats.qmc.Sobol(1).d == 1\n"
        "print(type(sys.modules['pandas']).__name__, type(scipy.stats).__name__)"
    )
    *_, loaded, kinds = process("-c", code, check=True).stdout.splitlines()
    assert not {"pandas.core", "scipy.stats._stats_py"} & {*loaded.split()}
    assert {"pandas", "scipy.stats", "sklearn.base"} <= {*loaded.split()}
    assert kinds == "module module"


def test_exit_codes_reach_the_shell(folder):
    ran = process("-m", "gpuens", "run", "nothing.csv", "-k", "3")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == "gpuens: path 'nothing.csv' does not exist; check the name.\n"
    script = Path(sys.executable).with_name("gpuens")
    if script.exists():
        ran = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=120)
        assert (ran.returncode, ran.stdout) == (0, f"gpuens {gpuens.__version__}\n")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_reader_that_has_seen_enough_is_no_error(folder):
    command = f"{sys.executable} -m gpuens info | true"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")


# a command that works for a minute and, when stopped, cleans up for a given time
PATIENT = """
import sys, time
from gpuens import cli
from gpuens.cli import info
seconds, how = float(sys.argv.pop()), sys.argv.pop()
def wait(args):
    try:
        print("working", flush=True)
        for _ in range(600):
            time.sleep(0.1)  # a signal just before a sleep is only answered after it
    finally:
        print("cleaning", flush=True)
        time.sleep(seconds)
        print("clean", flush=True)
info.info = wait
sys.argv.append("info")
sys.exit(cli.main(["info"] if how == "library" else None))
"""
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


def patient(cleaning, *signals, ignored=None, library=False):
    """Run `PATIENT`; send a signal during its work and one during its clean-up.

    Return exit code, words of stdout, and stderr.

    The child ignores the signal ``ignored``, which is sent before each other signal.
    """
    # a shell that runs tests in the background may make its children ignore Ctrl-C
    how = {**dict.fromkeys([*signals, signal.SIGINT], signal.SIG_DFL), **({ignored: signal.SIG_IGN} if ignored else {})}
    child = subprocess.Popen(
        [sys.executable, "-c", PATIENT, "library" if library else "program", str(cleaning)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: [signal.signal(number, action) for number, action in how.items()],
    )
    said = ""
    for number, until in zip(signals, ("working\n", "cleaning\n"), strict=False):
        while not said.endswith(until):
            line = child.stdout.readline()
            assert line, child.stderr.read()
            said += line
        if ignored:
            child.send_signal(ignored)
        child.send_signal(number)
    out, err = child.communicate(timeout=60)
    return child.returncode, (said + out).split(), err


@POSIX
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("number", "code", "how"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "stopped by SIGTERM"),
        (signal.SIGHUP, 129, "stopped by SIGHUP"),
    ],
)
def test_signals_stop_in_order_and_twice_at_once(number, code, how):
    whole = (code, ["working", "cleaning", "clean"], f"gpuens: {how}; no half-written file is left.\n")
    assert patient(0, number) == whole
    assert patient(60, number, number) == (-number, ["working", "cleaning"], "")
    assert patient(60, number, signal.SIGTERM) == (-signal.SIGTERM, ["working", "cleaning"], "")


@POSIX
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_signals_that_are_ignored_stay_so_and_a_library_takes_none():
    code, out, _ = patient(0, signal.SIGTERM, ignored=signal.SIGHUP)
    assert (code, out) == (143, ["working", "cleaning", "clean"])
    assert patient(0, signal.SIGTERM, library=True)[:2] == (-signal.SIGTERM, ["working"])


@POSIX
def test_a_signal_stops_the_work_and_leaves_nothing(folder):
    noise = np.random.default_rng(0).integers(0, 30, (30_000, 20), dtype=np.uint8)
    np.save("noise.npy", noise)
    environment = {**os.environ, "GPUENS_PROGRESS": "1"}
    command = [sys.executable, "-m", "gpuens", "run", "noise.npy"]
    command += ["--method", "lwea", "-k", "5", "-o", "out.npy"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as child:
        said = b""
        while b"average linkage" not in said:
            more = child.stderr.read(1)
            assert more, said  # an empty read would mean that the work has ended
            said += more
        child.terminate()
        said = child.stderr.read().decode()
        assert child.wait(60) == 143
    assert said.rstrip().splitlines()[-1].endswith("gpuens: stopped by SIGTERM; no half-written file is left.")
    assert "Traceback" not in said
    assert files(folder) == sorted([*GIVEN, "noise.npy"])


def test_a_process_of_its_own_seldom_collects_garbage_and_a_library_does_as_before():
    script = """
import gc, sys
from gpuens import cli
seen = []

class Listening:
    def __getattr__(self, name):
        return getattr(sys.__stdout__, name)
    def write(self, text):
        seen.append((gc.get_threshold()[0], gc.get_freeze_count()))

before, frozen = gc.get_threshold(), gc.get_freeze_count()  # Python 3.12 has frozen some itself
sys.argv, sys.stdout = ["gpuens", "methods"], Listening()
cli.main(sys.argv[1:])
library = seen[-1], gc.get_freeze_count()
cli.main()
sys.stdout = sys.__stdout__
print(library == ((before[0], frozen), frozen), seen[-1] == (20_000, frozen))
print(gc.get_threshold() == before, gc.get_freeze_count() > frozen)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 4


# --- weights ----------------------------------------------------------------------------------------------------------


def contigs(folder, lengths):
    frame = pd.DataFrame(np.where(LABELS < 0, "", LABELS.astype(str)), columns=list("abcdef"))
    frame.insert(0, "contig", [f"k_{i}" for i in range(len(frame))])
    frame.insert(1, "length", lengths)
    frame.to_csv("contigs.csv", index=False)


def test_a_column_of_weights(folder, call):
    lengths = np.random.default_rng(0).integers(500, 9000, len(LABELS))
    contigs(folder, lengths)
    line = f"run contigs.csv -k {K} --method lwea --id-column contig -o out.csv"
    code, out, _ = call(f"{line} --weight-column length --evidence --columns c,a,b,d,e,f")
    assert code == 0
    wanted = LWEA(K).fit(pd.DataFrame(LABELS, columns=list("abcdef"))[list("cabdef")], sample_weight=lengths)
    found, record = pd.read_csv("out.csv"), json.loads(Path("out.csv.json").read_text())
    np.testing.assert_array_equal(found["label"], wanted.labels_)
    np.testing.assert_allclose(found["confidence"], wanted.confidence_)
    sums = np.bincount(wanted.labels_, weights=lengths).astype(int)
    assert record["weight_column"] == "length"
    assert record["weight_unit"] == 1.0
    assert record["cluster_weights"] == sums.tolist()
    assert record["n_clusterings"] == 6
    assert record["evidence"]["confidence"] == pytest.approx(np.average(wanted.confidence_, weights=lengths))
    largest = ", ".join(f"{weight:,}" for weight in sorted(sums, reverse=True))
    assert f"weights by length: {lengths.sum():,}, in the clusters {largest}" in out
    code, _, _ = call(f"{line} --weight-column 1 --exclude f")  # by number, beside another column to leave out
    assert code == 0
    assert json.loads(Path("out.csv.json").read_text())["columns"] == list("abcde")
    contigs(folder, lengths * 10**6)  # in another unit, in which average linkage could not count them
    code, _, _ = call(f"{line} --weight-column length --columns c,a,b,d,e,f")
    assert code == 0
    record = json.loads(Path("out.csv.json").read_text())
    np.testing.assert_array_equal(pd.read_csv("out.csv")["label"], wanted.labels_)
    assert (record["weight_unit"], record["cluster_weights"]) == (10**6, (sums * 10**6).tolist())


def test_weights_of_labelled_objects(folder, call):
    lengths = np.arange(1, len(LABELS) + 1) / 2
    frame = pd.DataFrame(LABELS, columns=list("abcdef")).assign(seconds=lengths)
    frame.loc[3, list("abcdef")] = -1
    frame.to_csv("speech.csv", index=False)
    code, _, _ = call(f"run speech.csv -k {K} --weight-column seconds --drop-unlabelled -o out.npy")
    kept = np.arange(len(LABELS)) != 3
    assert code == 0
    wanted = LWGP(K).fit_predict(LABELS[kept], sample_weight=lengths[kept])
    np.testing.assert_array_equal(np.load("out.npy")[kept], wanted)
    assert json.loads(Path("out.npy.json").read_text())["weight_unit"] == 0.5


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("--weight-column nothing", ["--weight-column=nothing must name one column of numbers", "no column 'nothing'"]),
        ("--weight-column contig", ["--weight-column=contig must name one column of numbers"]),
        ("--weight-column [ab]", ["must name one column of numbers"]),
        ("--weight-column length --evidence", ["--evidence needs whole numbers", "'length' has fractions"]),
        ("--weight-column length --report out.html", ["--weight-column is no option of --report"]),
        ("--weight-column length --method ecrmc --features features.npy", ["no option of method 'ecrmc'"]),
        ("--weight-column length --method cspa", ["sample_weight has fractions, but CSPA"]),
    ],
)
def test_weights_that_the_command_refuses(folder, call, options, parts):
    contigs(folder, np.arange(1, len(LABELS) + 1) / 2)
    code, _, err = call(f"run contigs.csv -k {K} --id-column contig -o out.csv {options}")
    assert code != 0
    assert all(part in err[-1] for part in parts), err
    assert not Path("out.csv").exists()


def test_the_sum_of_a_column_of_weights_fits_int64(folder, call):
    lengths = np.arange(1, len(LABELS) + 1)
    factor = (2**63 - 1) // int(lengths.sum())  # the largest that is counted
    line = f"run contigs.csv -k {K} --method lwgp --id-column contig -o out.csv --weight-column length"
    contigs(folder, lengths * factor)
    code, _, _ = call(line)
    assert code == 0
    record = json.loads(Path("out.csv.json").read_text())
    assert sum(record["cluster_weights"]) == int(lengths.sum()) * factor
    assert min(record["cluster_weights"]) > 0
    Path("out.csv").unlink()
    contigs(folder, lengths * (factor + 1))
    code, _, err = call(line)
    assert code != 0
    assert "counts at most 9.2234e+18 exactly; divide the weights by a common unit" in err[-1]
    assert not Path("out.csv").exists()


def test_weights_are_refused_in_chunks(folder, call):
    np.save("labels.npy", LABELS)
    code, _, err = call(f"run labels.npy -k {K} --weight-column 0 --scheduler threads")
    assert code != 0
    assert "--weight-column is for files that are read in one piece" in err[-1]


# --- numbers in prints ------------------------------------------------------------------------------------------------


def test_clusters_are_counted_in_the_order_of_their_numbers(folder, call):
    """Numbers have separators of thousands, and 1 has a singular."""
    assert clusters_of([1200, 1]) == "2 clusters, of 1,200, 1 objects"
    assert clusters_of([1]) == "1 cluster, of 1 object"
    assert clusters_of([1200], "new object") == "1 cluster, of 1,200 new objects"
    pd.DataFrame({"a": [0] * 1500 + [1] * 300, "b": [0] * 1500 + [1] * 300}).to_csv("big.csv", index=False)
    code, out, _ = call("run big.csv -k 2 --method eac -o out.csv --model model.npz")
    assert code == 0
    assert out[0] == "big.csv: 1,800 objects, 2 clusterings with 4 clusters, 2 distinct label rows"
    assert "EAC: 2 clusters, of 1,500, 300 objects" in out
    code, out, _ = call("predict model.npz big.csv -o new.csv")
    assert code == 0
    assert out[:2] == [
        "big.csv: 1,800 objects, 2 clusterings",
        "model.npz: EAC, 2 clusters, of 1,500, 300 new objects",
    ]
    code, out, _ = call("run big.csv -k 1 --method eac -o one.csv")
    assert "EAC: 1 cluster, of 1,800 objects" in out
    code, out, _ = call("evidence big.csv one.csv")
    assert out[0] == "big.csv: 1,800 objects, 2 clusterings; one.csv: 1 cluster"
