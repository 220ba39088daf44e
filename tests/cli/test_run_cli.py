"""The command ``run``: its outputs, records, options and weights."""

import argparse
import hashlib
import inspect
import json
import platform
import re
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import FORMATS, GIVEN, LABELS, READ, TRUTH, K, call, done, files, folder  # noqa: F401
from conftest import structured_labels

import gpuens
from gpuens import cli, generate, io, metrics
from gpuens.cli import run
from gpuens.cli.files import clusters_of
from gpuens.methods import EAC, HBGF, LWEA, LWGP, methods
from gpuens.runtime import progress

# --- run --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
def test_run_writes_every_format_and_a_record(folder, done, suffix):
    out = done(f"run labels.csv -k {K} -o out.{suffix}")
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
    assert abs(datetime.now() - datetime.fromisoformat(record.pop("date")[:16])).total_seconds() < 3600
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
def test_options_reach_the_method(folder, done, options, estimator):
    done(f"run labels.csv {options} -o out.npy --quiet")
    np.testing.assert_array_equal(np.load("out.npy"), estimator.fit(LABELS).labels_)
    assert json.loads(Path("out.npy.json").read_text())["parameters"] == estimator.get_params()


def test_every_parameter_of_every_method_is_an_option_of_its_own_and_explained():
    parser = argparse.ArgumentParser()
    run.add(parser)
    shared = {"-k", "--seed", "--reduce", "--device"}
    for kind in methods().values():
        own = cli.options.flags(kind)
        assert [option.name for option in own.values()] == list(inspect.signature(kind).parameters)
        assert own.keys() & parser._option_string_actions.keys() == own.keys() & shared
        assert all(option.type_text or option.meaning for option in own.values())


def test_methods_are_listed_and_their_options_told(folder, call, done):
    _, out, _ = call("methods")
    names = [line.split()[0] for line in out]
    assert names == [
        *("--method", *sorted(methods())),
        *("--similarity", *gpuens.similarities()),
        *("--partitioner", *gpuens.partitioners()),
    ]
    assert all(len(line.split()) > 3 for line in out if not line.startswith("--"))
    out = done("methods lwgp scec")
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
def test_ids_are_carried_to_the_output(folder, done, cells, suffix):
    options = "--id-column cell --columns leiden_* --missing ?,-1 --drop-unlabelled"
    out = done(f"run cells.csv -k {K} {options} -o out.{suffix}")
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


def test_features_of_cells_are_clustered(folder, call, done, cells):
    done("generate cells.h5ad -k 3 --n-clusterings 4 -o made.h5ad")
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


def test_quiet_says_nothing_whatever_the_environment_says(folder, call, own_method, monkeypatch):
    seen = []
    own_method("own", lambda _: seen.append(progress._shown("auto")))
    monkeypatch.setenv("GPUENS_PROGRESS", "1")
    assert call(f"run labels.csv -k {K} --method own --quiet") == (0, [], [])
    assert call(f"run labels.csv -k {K} --method own")[0] == 0
    assert seen == [False, True]


def test_warnings_are_one_line_each(folder, call):
    pd.DataFrame(LABELS).assign(same=1).to_csv("labels.csv", index=False)
    warning = "constant clusterings carry no information: same (1 of 7) put every object into one cluster."
    assert call(f"run labels.csv -k {K} --quiet") == (0, [], [f"gpuens: warning: {warning}"])


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
    assert call(f"{line} --weight-column length --columns c,a,b,d,e,f")[0] == 0
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
    assert call(line)[0] == 0
    record = json.loads(Path("out.csv.json").read_text())
    assert sum(record["cluster_weights"]) == int(lengths.sum()) * factor
    assert min(record["cluster_weights"]) > 0
    Path("out.csv").unlink()
    contigs(folder, lengths * (factor + 1))
    code, _, err = call(line)
    assert code != 0
    assert "counts at most 9.2234e+18 exactly; divide the weights by a common unit" in err[-1]
    assert not Path("out.csv").exists()


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


# --- links ------------------------------------------------------------------------------------------------------------


def test_links_are_files_of_named_pairs(folder, call):
    table = pd.DataFrame({"a": [0, 0, 0, 1, 1, 2], "b": [0, 0, 0, 1, 1, 1], "c": [0, 0, 1, 1, 1, 1]})
    table.index = pd.Index(["x1", "x2", "x3", "x4", "x5", "x6"], name="cell")
    table.to_csv("cells.csv")
    Path("must.txt").write_text("x3 x4\n")
    Path("cannot.txt").write_text("x4,x5\nx1,x6\n")
    code, out, _ = call("run cells.csv -k 2 --must-link must.txt --cannot-link cannot.txt -o out.csv")
    assert code == 0
    assert "LWEA: 2 clusters" in "\n".join(out)
    links = {"must_link": [["x3", "x4"]], "cannot_link": [["x4", "x5"], ["x1", "x6"]]}
    assert pd.read_csv("out.csv")["label"].tolist() == LWEA(2).fit(table, **links).labels_.tolist()
    record = json.loads(Path("out.csv.json").read_text())
    assert (record["must_link"], record["cannot_link"]) == ("must.txt", "cannot.txt")
    Path("weighed.txt").write_text("x3 x4 1\nx1 x2 0\n")
    Path("must.txt").write_text("x4 x9\n")
    for options, words in (
        ("--must-link must.txt", "path 'must.txt': labels have no object 'x9'"),
        ("--must-link weighed.txt", "path 'weighed.txt' has 3 field(s) in its first line, where a pair has two"),
        ("--must-link cannot.txt --cannot-link cannot.txt", "must_link and cannot_link contradict each other"),
        ("--must-link cannot.txt --method lwgp", "LWGP (LWCA and TransferCut) does not use them"),
        ("--must-link nowhere.txt", "path 'nowhere.txt' does not exist"),
    ):
        code, _, err = call(f"run cells.csv -k 2 {options} -o other.csv")
        assert code != 0
        assert words in err[-1]
        assert not Path("other.csv").exists()
