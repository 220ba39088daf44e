"""Outputs replace only files that gpuens wrote, and never an input. Results are kept even if a later step fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import call  # noqa: F401
from conftest import refused, structured_labels

from gpuens import batch, evidence, io, report
from gpuens.methods import EM, LWGP
from gpuens.workflows import results

LABELS, TRUTH = structured_labels(60, 6, 3, seed=0)
NEW = np.arange(60) % 3


def tree(folder):
    """Return a dict from paths to the contents of all files in a folder and the targets of all links."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_symlink():
            found[str(path)] = os.readlink(path)
        elif path.is_file():
            found[str(path)] = path.read_bytes()
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(LABELS, columns=list("abcdef")).to_csv("labels.csv", index=False)
    return tmp_path


# --- folders ----------------------------------------------------------------------------------------------------------


def a_user_s_folder():
    os.mkdir("out.zarr")
    Path("out.zarr/thesis.tex").write_text("years of work")


def a_group():
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group("out.zarr", mode="w")
    group.create_array("others", data=np.arange(5))


def an_array_with_a_file_in_it():
    io.write_labels("out.zarr", NEW)
    Path("out.zarr/notes.txt").write_text("of a user")


def numbered_files():
    os.mkdir("out.zarr")
    Path("out.zarr/1").write_text("like a chunk, but without metadata")


def a_link_to_a_folder():
    os.mkdir("elsewhere")
    Path("elsewhere/thesis.tex").write_text("years of work")
    os.symlink("elsewhere", "out.zarr")


@pytest.mark.parametrize(
    "made", [a_user_s_folder, a_group, an_array_with_a_file_in_it, numbered_files, a_link_to_a_folder]
)
def test_a_folder_that_is_no_array_is_not_replaced(folder, call, made):
    pytest.importorskip("zarr")
    made()
    before = tree(".")
    code, out, (error,) = call("run labels.csv -k 3 -o out.zarr")
    assert (code, out) == (3, [])
    assert "only an empty folder or a zarr array may be replaced" in error
    refused(lambda: io.write_labels("out.zarr", NEW), FileExistsError, "out.zarr", "move the folder away")
    assert tree(".") == before


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("chunks", [(7,), (100,)])
def test_an_array_is_replaced_whatever_its_format(folder, zarr_format, chunks):
    zarr = pytest.importorskip("zarr")
    zarr.create_array("out.zarr", data=np.arange(100, 0, -1), chunks=chunks, zarr_format=zarr_format)
    io.write_labels("out.zarr", NEW)
    np.testing.assert_array_equal(zarr.open_array("out.zarr", mode="r")[:], NEW)
    os.mkdir("empty.zarr")
    io.write_labels("empty.zarr", NEW)
    np.testing.assert_array_equal(zarr.open_array("empty.zarr", mode="r")[:], NEW)


def test_a_folder_that_fills_while_the_work_goes_on_is_not_replaced(folder, monkeypatch):
    zarr = pytest.importorskip("zarr")
    io.write_labels("out.zarr", NEW)
    saved = zarr.save_array

    def slow(place, labels):
        saved(place, labels)
        Path("out.zarr/thesis.tex").write_text("years of work")

    monkeypatch.setattr(zarr, "save_array", slow)
    refused(lambda: io.write_labels("out.zarr", NEW[::-1]), FileExistsError, "thesis.tex")
    assert Path("out.zarr/thesis.tex").read_text() == "years of work"
    np.testing.assert_array_equal(zarr.open_array("out.zarr", mode="r")[:], NEW)


# --- inputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("run store.zarr/labels.zarr -k 3 -o store.zarr", "holds the input"),
        ("run labels.zarr -k 3 -o labels.zarr/out.npy", "is inside the input"),
        ("run labels.zarr -k 3 -o labels.zarr/more.zarr", "is inside the input"),
        ("run link.zarr -k 3 -o labels.zarr", "is the input itself"),
        ("run link.zarr -k 3 -o link.zarr/out.npy", "is inside the input"),
        ("generate labels.zarr -k 3 -o labels.zarr/out.npy", "is inside the input"),
        ("cluster labels.zarr -k 3 -o labels.zarr/out.npy", "is inside the input"),
        ("evidence labels.zarr labels.csv -o labels.zarr/out.csv", "is inside the input"),
        ("compare labels.zarr -k 3 --report labels.zarr/out.html", "is inside the input"),
        ("choose labels.zarr --report labels.zarr/out.html", "is inside the input"),
    ],
)
def test_an_output_and_an_input_are_apart(folder, call, line, said):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group("store.zarr", mode="w")
    group.create_array("labels.zarr", data=LABELS)
    io.write_labels("labels.zarr", LABELS)
    os.symlink("labels.zarr", "link.zarr")
    before = tree(".")
    code, out, err = call(line)
    assert (code in (2, 3), out, len(err)) == (True, [], 1)
    assert said in err[0]
    assert tree(".") == before


def test_a_folder_named_like_a_data_set_may_hold_the_output(folder, call):
    os.mkdir("digits")
    assert call("generate digits -k 3 --n-clusterings 2 -o digits/out.npy")[0] == 0


# --- records and pages ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['{"name": "of a web page"}', "[1, 2]", "no JSON", ""])
def test_a_record_replaces_no_other_file(folder, call, text):
    Path("out.npy.json").write_text(text)
    code, out, (error,) = call("run labels.csv -k 3 -o out.npy")
    assert (code, out) == (3, [])
    assert "record 'out.npy.json' would replace a file that gpuens did not write" in error
    assert Path("out.npy.json").read_text() == text
    assert not Path("out.npy").exists()


# --- batches ----------------------------------------------------------------------------------------------------------


def job(name="a", **more):
    return {"id": name, "input": "labels.csv", "n_clusters": 3, "format": "npy", **more}


@pytest.mark.parametrize(
    ("jobs", "out", "said"),
    [
        ([job(input="a.labels.npy")], ".", "a result would replace"),
        ([job(), job("b", input="a.json.csv")], ".", ""),
        ([job(input="summary.csv")], ".", "a result would replace"),
        ([job(input="labels.zarr")], "labels.zarr", "is inside the input"),
        ([job(input="labels.zarr")], "labels.zarr/results", "is inside the input"),
    ],
)
def test_results_of_a_batch_replace_no_input(folder, jobs, out, said):
    pytest.importorskip("zarr")
    for name in ("a.labels.npy", "a.json.csv", "summary.csv", "labels.zarr"):
        if any(job["input"] == name for job in jobs):
            io.write_labels(name, LABELS)
    before = tree(".")
    if not said:
        assert batch.run(jobs, out).failed == 0
        return
    refused(lambda: batch.run(jobs, out), ValueError, said, "name another folder")
    assert tree(".") == before


def test_a_manifest_is_not_replaced_by_the_marker_of_its_job(folder):
    Path("a.json").write_text(json.dumps({"jobs": [job()]}))
    refused(lambda: batch.run("a.json", "."), ValueError, "'a.json', which a result would replace")
    assert batch.run("a.json", "out").done == 1


def test_a_batch_leaves_files_that_it_did_not_write(folder):
    os.mkdir("out")
    for name in ("a.html", "a.labels.csv", "a.labels.parquet"):
        Path("out", name).write_text("of a user")
    for n_clusters in (3, 2):
        assert batch.run([job(n_clusters=n_clusters)], "out").done == 1
    Path("labels.csv").write_text("a,b\n.5,.5\n.2,.1\n.1,.5\n")
    assert batch.run([job(n_clusters=2)], "out").failed == 1
    assert {path.name for path in Path("out").iterdir() if path.read_bytes() == b"of a user"} == {
        "a.html", "a.labels.csv", "a.labels.parquet",
    }  # fmt: skip


OF_OTHERS = {"b.json": '{"name": "of a user"}', "summary.csv": "name,price\nbread,3\n", "b.html": "<p>of a user</p>"}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_a_batch_does_not_begin_where_it_would_replace_files_of_others(folder, name):
    pytest.importorskip("jinja2")
    os.mkdir("out")
    Path("out", name).write_text(OF_OTHERS[name])
    jobs = [job(), job("b", report=True)]
    refused(lambda: batch.run(jobs, "out"), FileExistsError, name, "not from a batch")
    assert tree("out") == {f"out/{name}": OF_OTHERS[name].encode()}
    if name == "b.json":  # job b is in another shard, so that shard 1 can run
        outcome = batch.run(jobs, "out", shard="1/2")
        assert (outcome.done, outcome.exit_code) == (1, 0)
        assert Path("out", name).read_text() == OF_OTHERS[name]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
@pytest.mark.parametrize("name", ["a.json", "summary.csv", "events.jsonl"])
def test_a_pipe_among_the_results_is_not_waited_for(folder, name):
    os.mkdir("out")
    os.mkfifo(f"out/{name}")
    refused(lambda: batch.run([job()], "out"), ValueError, f"out/{name}", "is a pipe")


def test_a_marker_cannot_have_files_of_others_removed(folder):
    batch.run([job()], "out")
    Path("out/notes.txt").write_text("of a user")
    marker = json.loads(Path("out/a.json").read_text())
    Path("out/a.json").write_text(json.dumps({**marker, "output": "notes.txt", "report": "../labels.csv"}))
    assert batch.run([job(n_clusters=2)], "out").done == 1
    assert Path("out/notes.txt").exists()
    assert Path("labels.csv").exists()


# --- results kept after a failure -------------------------------------------------------------------------------------


TOO_LARGE = MemoryError("evidence for 43,000 clusters needs 333 GB and 20 GB may be used.")


@pytest.fixture
def nothing_after_labels(monkeypatch):
    """Return a function that makes evidence, memberships and pages fail."""
    results_of = results.results_of

    def put(error=TOO_LARGE):
        def fail(*_, **__):
            raise error

        def labels_alone(estimator, labelled, evidence=False, membership=False, *_, **__):
            return fail() if evidence or membership else results_of(estimator, labelled)

        monkeypatch.setattr(results, "results_of", labels_alone)
        monkeypatch.setattr(report, "render_fit", fail)

    return put


@pytest.mark.parametrize("option", ["--evidence", "--report out.html", "--membership --method em"])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, ZeroDivisionError])
def test_labels_outlive_a_failure_of_what_comes_after_them(folder, call, nothing_after_labels, option, error):
    pytest.importorskip("jinja2")
    nothing_after_labels(error("it does not fit."))
    code, out, (first, second) = call(f"run labels.csv -k 3 -o out.csv {option}")
    assert (code, out) == ({MemoryError: 3, KeyboardInterrupt: 130, ZeroDivisionError: 1}[error], [])
    assert first == "gpuens: out.csv and out.csv.json are written; only a later step failed."
    assert second.startswith("gpuens: ")
    method = EM(3) if "membership" in option else LWGP(3)
    np.testing.assert_array_equal(pd.read_csv("out.csv")["label"], method.fit(LABELS).labels_)
    record = json.loads(Path("out.csv.json").read_text())
    assert (record["n_clusters"], record["output"], "evidence" in record) == (3, "out.csv", False)


@pytest.mark.parametrize("option", ["--evidence", "--report out.html"])
def test_labels_of_features_outlive_a_failure_too(folder, call, nothing_after_labels, option):
    pytest.importorskip("jinja2")
    np.save("features.npy", np.random.default_rng(0).normal(5 * TRUTH[:, None], size=(60, 3)))
    assert call("cluster features.npy -k 3 --kind kmeans -o expected.csv")[0] == 0
    nothing_after_labels()
    code, _, (first, _) = call(f"cluster features.npy -k 3 --kind kmeans -o out.csv {option}")
    assert (code, "out.csv.json are written" in first) == (3, True)
    assert Path("out.csv").read_bytes() == Path("expected.csv").read_bytes()
    assert json.loads(Path("out.csv.json").read_text())["n_clusters"] == 3


def test_an_annotated_copy_goes_without_evidence_that_does_not_fit(folder, call, nothing_after_labels):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame(LABELS, columns=list("abcdef"), index=[f"cell{i}" for i in range(60)])
    anndata.AnnData(np.zeros((60, 1), np.float32), obs=obs).write_h5ad("cells.h5ad")
    nothing_after_labels()
    code, _, err = call("run cells.h5ad -k 3 -o out.h5ad")
    assert code == 0
    assert any("certainty, confidence and margin are left out: evidence for 43,000 clusters" in line for line in err)
    made = anndata.read_h5ad("out.h5ad").obs
    expected = LWGP(3).fit(LABELS).labels_
    np.testing.assert_array_equal(made["consensus"].astype(int), expected)
    assert "consensus_confidence" not in made


def test_a_job_without_its_page_is_done(folder, nothing_after_labels):
    pytest.importorskip("jinja2")
    nothing_after_labels()
    outcome = batch.run([job(report=True)], "out")
    assert (outcome.done, outcome.failed, outcome.exit_code) == (1, 0, 0)
    assert outcome.jobs[0]["status"] == "done"
    assert outcome.jobs[0]["error"].startswith(
        "a.html could not be made (use --force to run the job again): evidence for"
    )
    marker = json.loads(Path("out/a.json").read_text())
    assert (marker["status"], marker["report"], len(marker["warnings"])) == ("ok", None, 1)
    np.testing.assert_array_equal(np.load("out/a.labels.npy"), LWGP(3).fit(LABELS).labels_)
    assert batch.run([job(report=True)], "out").already == 1


@pytest.mark.usefixtures("unpainted")
def test_a_job_that_was_stopped_before_its_page_is_done_again(folder, nothing_after_labels, monkeypatch):
    pytest.importorskip("jinja2")
    nothing_after_labels(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        batch.run([job(report=True)], "out")
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert np.load("out/a.labels.npy").shape == (60,)
    assert batch.run([job(report=True)], "out").done == 1
    assert Path("out/a.html").exists()
    assert batch.run([job(report=True)], "out").already == 1


# --- the memory of evidence -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["objects", "clusters", "agreement"])
def test_evidence_is_refused_by_bytes(monkeypatch, part):
    labels = np.random.default_rng(0).integers(0, 100, (400, 5))
    consensus = np.arange(400) % 200
    n_base = sum(len(np.unique(column)) for column in labels.T)
    needed = 64 * labels.size  # sparse tables are smaller than dense ones here
    monkeypatch.setenv("GPUENS_MEMORY", f"{needed - 1}")
    found = evidence.Evidence(labels, consensus)
    text = refused(lambda: getattr(found, part), MemoryError, "evidence for 200 clusters", "leave the evidence")
    assert f"from {n_base} base clusters" in text
    monkeypatch.setenv("GPUENS_MEMORY", f"{8 * needed}")
    getattr(evidence.Evidence(labels, consensus), part)


def test_evidence_that_cannot_fit_is_refused_before_the_fit(folder, call, own_method, monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "20kB")
    monkeypatch.setattr(sys.modules["gpuens.methods.forecast"], "refuse_beyond_memory", lambda *_, **__: None)
    own_method("own", lambda _: pytest.fail("the fit has begun"))
    for option in ("--evidence", "--report out.html"):
        code, out, (error,) = call(f"run labels.csv -k 60 --method own -o out.csv {option}")
        assert (code, out) == (3, [])
        assert error.startswith("gpuens: evidence for 60 clusters, from ")
    assert sorted(path.name for path in folder.iterdir()) == ["labels.csv"]


# --- full disks and closed streams ------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
import anndata, pyarrow, zarr
from gpuens import batch, cli
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for output in ("out.npy", "out.npz", "out.csv", "out.parquet", "out.h5ad", "out.zarr"):
    print(cli.main(["generate", "features.npy", "-k", "100", "--n-clusterings", "5", "-o", output]), flush=True)
print(cli.main(["batch", "jobs.jsonl", "--out", "out", "--quiet"]), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
def test_a_file_that_does_not_fit_is_named_with_what_to_do(folder):
    for package in ("anndata", "pyarrow", "zarr"):
        pytest.importorskip(package)
    np.save("features.npy", np.random.default_rng(0).random((2000, 3)))
    Path("jobs.jsonl").write_text("".join(json.dumps(job("j" * 120 + str(i))) + "\n" for i in range(9)))
    before = set(os.listdir())
    ran = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True)
    assert ran.stdout.split() == ["3"] * 7
    lines = [line for line in ran.stderr.splitlines() if line.startswith("gpuens: ")]
    for line, name in zip(lines, ("npy", "npz", "csv", "parquet", "h5ad", "zarr"), strict=False):
        assert line.startswith(f"gpuens: path 'out.{name}' cannot be written (")
        assert "ile too large" in line
        assert line.endswith("raise the limit of file sizes (ulimit -f), or choose another place.")
    assert "events.jsonl' cannot be written (File too large)" in lines[-1]
    assert set(os.listdir()) == before | {"out"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_output_is_a_sentence(folder):
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "gpuens", "methods"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    (line,) = ran.stderr.splitlines()
    assert line.startswith("gpuens: the output, or a temporary file in ")
    assert "cannot be written (No space left on device)" in line


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_not_missed(folder, closed):
    command = f"exec {sys.executable} -m gpuens run labels.csv -k 3 -o out.npy {closed}"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    np.testing.assert_array_equal(np.load("out.npy"), LWGP(3).fit(LABELS).labels_)
