"""Forecasts of memory from the shape of labels, and refusals before labels are read."""

import gzip
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused

import gpuens as ge
from gpuens import cli, io
from gpuens.io.shapes import NAME_BYTES, PANDAS_BYTES, label_shape
from gpuens.labels.shape import LabelShape, sample_rows
from gpuens.methods import forecast
from gpuens.methods.forecast import PROCESS_BYTES, foresee
from gpuens.runtime import checks
from gpuens.runtime.time_limit import OutOfTime, time_limit


def noise(n_objects, n_clusterings, seed=0):
    return np.random.default_rng(seed).integers(0, 30, (n_objects, n_clusterings), dtype=np.uint8)


# --- the forecast -----------------------------------------------------------------------------------------------------


def test_the_forecast_of_lwgp_is_the_sum_of_what_it_holds():
    n, m, k = 20_000_000, 30, 12
    codes, groups = n * m, 8 * n
    rows = n * (m + 8)  # codes and counts
    points_and_labels = n * (4 * k + 64)
    assert foresee(ge.LWGP(k), LabelShape(n, m)).memory == PROCESS_BYTES + codes + groups + rows + points_and_labels


def test_grouping_is_the_peak_of_methods_that_need_less():
    n, m = 1_000_000, 30
    words = 3  # 30 labels of 31 values each take 149 bits
    of_object, of_row = m + 8 * words + 16, m + 37
    grouping = [PROCESS_BYTES + n * of_object + n_rows * of_row for n_rows in (n, n // 10)]
    assert [foresee(ge.KCC(12), LabelShape(n, m, n_rows=n_rows)).memory for n_rows in (None, n // 10)] == grouping


def test_reading_counts_and_a_mapped_file_can_be_dropped():
    shape = LabelShape(1000, 5, read_bytes=10**9)
    assert foresee(ge.LWGP(3), shape)[:4] == (PROCESS_BYTES + 5000 + 10**9, None, PROCESS_BYTES + 5000 + 10**9,
                                              PROCESS_BYTES + 5000 + 10**9)  # fmt: skip
    mapped = foresee(ge.LWGP(3), LabelShape(1000, 5, mapped_bytes=10**9))
    assert mapped.memory == PROCESS_BYTES + 5000 + 10**9
    assert mapped.needed < PROCESS_BYTES + 10**6


def test_pairs_of_rows_are_foreseen_as_they_are_refused(monkeypatch):
    shape = LabelShape(3000, 5, [30] * 5)
    labels = noise(3000, 5)
    needed = {}
    for est in (ge.CSPA(3), ge.LIMBO(3), ge.EAC(3, linkage="complete"), ge.OCIa(3)):
        with checks.memory_asked() as asked:
            est.checked_parts().refuse_too_many(ge.Rows(labels), 3)
        needed[type(est).__name__] = foresee(est, shape).memory - max(asked)
    assert len(set(needed.values())) == 1  # codes and rows, the same for all
    monkeypatch.setenv("GPUENS_MEMORY", "10MB")
    refused(lambda: ge.EAC(3, linkage="complete").fit(labels), MemoryError, "36.0 MB", "10.0 MB may be used")


def test_a_sample_needs_less_where_all_pairs_are_held():
    shape = LabelShape(100_000, 20)
    whole, sampled = (foresee(ge.CSPA(5, reduction=how), shape).memory for how in (None, "sample:2000"))
    assert sampled < 10**9 < whole
    half = foresee(ge.CSPA(5, reduction=ge.Sample(0.5)), shape).memory
    assert whole / 4.1 < half < whole / 3.9


def test_what_cannot_be_foreseen_is_said():
    assert str(foresee(ge.ECRMC(3), LabelShape(100, 4))) == "needs features of the objects."
    assert foresee(ge.ECRMC(3), LabelShape(100, 4), features=True).refusal is None
    assert "min_size" in foresee(ge.EAC(3, min_size=50), LabelShape(100, 4)).refusal


def test_check_memory_refuses_nothing_while_it_is_asked():
    with checks.memory_asked() as asked:
        checks.check_memory(10, 5, "a", "b")
        with checks.memory_asked() as inner:
            checks.check_memory(7, 5, "a", "b")
    assert (asked, inner) == ([10], [7])
    refused(lambda: checks.check_memory(10, 5, "a", "b"), MemoryError, "a needs 10 bytes")


# --- distinct rows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [20, 5_000, 400_000, 2_000_000])
def test_a_sample_tells_the_number_of_distinct_rows(n_rows):
    n = 2_000_000
    of_objects = np.random.default_rng(0).permutation(n) % n_rows
    labels = np.column_stack([of_objects % 256, of_objects // 256 % 256, of_objects // 65536]).astype(np.uint8)
    found = LabelShape(n, 3, sample=lambda: sample_rows(labels)).with_rows_of_sample()
    if n_rows == n:
        assert found.n_rows is None
    else:
        assert 0.8 * n_rows < found.n_rows < 1.25 * n_rows
    assert LabelShape(n, 3).with_rows_of_sample() is None


@pytest.mark.parametrize("dtype", [np.uint8, ">i4"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [50, 400_000])
def test_a_sample_of_a_file_is_that_of_its_array(tmp_path, n, order, dtype):
    labels = np.asarray(noise(n, 3), dtype=dtype, order=order)
    np.save(tmp_path / "l.npy", labels)
    np.testing.assert_array_equal(label_shape(tmp_path / "l.npy").sample(), sample_rows(labels))
    np.testing.assert_array_equal(label_shape(tmp_path / "l.npy", exclude=1).sample(), sample_rows(labels)[:, [0, 2]])
    np.save(tmp_path / "l.npy", labels[:, 0])
    np.testing.assert_array_equal(label_shape(tmp_path / "l.npy").sample(), sample_rows(labels[:, :1]))


def test_few_objects_are_counted():
    labels = np.repeat(noise(100, 4), 3, axis=0)
    assert LabelShape(300, 4, sample=lambda: sample_rows(labels)).with_rows_of_sample().n_rows == 100


# --- files ------------------------------------------------------------------------------------------------------------


def write(path, labels, **more):
    frame = pd.DataFrame(labels).add_prefix("c")
    if path.endswith(".npy"):
        np.save(path, labels)
    elif path.endswith(".npz"):
        np.savez(path, **more or {"labels": labels})
    elif path.endswith(".parquet"):
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif path.endswith(".zarr"):
        pytest.importorskip("zarr").save_array(path, labels)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path else ",")


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "tsv", "csv.gz", "parquet", "zarr"])
def test_the_shape_of_a_file_is_that_of_its_labels(tmp_path, kind):
    path, labels = str(tmp_path / f"l.{kind}"), noise(500, 6).astype(np.int32)
    write(path, labels)
    shape = label_shape(path)
    assert shape[:4] == (500, 6, None, None)
    assert shape.read_bytes + shape.mapped_bytes >= 500 * 6 * (1 if "csv" in kind or "tsv" in kind else 4)
    names = ["c1", "c4"] if kind in ("csv", "tsv", "csv.gz", "parquet") else [1, 4]
    assert label_shape(path, columns=names)[:2] == (500, 2)
    assert label_shape(path, exclude=names, id_column=names[0])[:2] == (500, 4)
    refused(lambda: label_shape(path, columns=["nothing"]), ValueError, "nothing")


def test_a_column_of_names_takes_memory(tmp_path):
    path = str(tmp_path / "l.csv")
    write(path, noise(500, 6))
    without = label_shape(path, exclude="c0").read_bytes
    assert label_shape(path, id_column="c0").read_bytes == without + 500 * NAME_BYTES
    pd.DataFrame(noise(500, 5)).add_prefix("c").rename("cell{}".format).to_csv(path)
    assert label_shape(path).read_bytes == without + 500 * NAME_BYTES


def test_arrays_of_an_npz_file_are_clusterings(tmp_path):
    path = str(tmp_path / "l.npz")
    write(path, None, a=np.zeros(70, int), b=np.ones(70, int))
    assert label_shape(path)[:2] == (70, 2)
    write(path, None, a=np.zeros((70, 3), int), b=np.ones(70, int))
    assert label_shape(path, key="a")[:2] == (70, 3)
    refused(lambda: label_shape(path), ValueError, "key is needed")


def test_the_rows_of_a_long_text_are_estimated(tmp_path, monkeypatch):
    monkeypatch.setattr("gpuens.io.text.BEGINNING", 2000)
    path, labels = tmp_path / "l.csv", noise(5000, 6)
    write(str(path), labels)
    shape = label_shape(path)
    assert shape.n_objects == pytest.approx(5000, rel=0.05)
    assert (shape.mapped_bytes, shape.n_clusterings) == (os.path.getsize(path), 6)
    with gzip.open(f"{path}.gz", "wb") as file:
        file.write(path.read_bytes())
    packed = label_shape(f"{path}.gz")
    assert packed.n_objects == shape.n_objects
    assert (packed.mapped_bytes, packed.read_bytes - shape.read_bytes) == (0, os.path.getsize(path))
    path.write_text("x" * 5000)
    assert label_shape(path) is None


def test_a_parquet_file_takes_memory_by_its_types(tmp_path):
    pytest.importorskip("pyarrow")
    labels, found = noise(1000, 2), []
    texts = np.array([f"cluster {label}" for label in range(30)], dtype=object)[labels]
    for values in (labels, labels.astype(np.int64), texts):
        write(str(tmp_path / "l.parquet"), values)
        found.append(label_shape(tmp_path / "l.parquet").read_bytes - PANDAS_BYTES)
    assert found == [29_400, 67_200, 70_000]


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Provide a working directory with labels of 200,000 different rows, and of 200,000 rows of 10 kinds."""
    monkeypatch.chdir(tmp_path)
    np.save("noise.npy", noise(200_000, 20))
    np.save("plain.npy", np.repeat(noise(10, 20), 20_000, axis=0))
    return tmp_path


def read_nothing(*_, **__):
    raise AssertionError("labels are not read")


def told(capsys, words):
    code = cli.main(words.split())
    out, err = capsys.readouterr()
    return code, out, err.removeprefix("gpuens: ").rstrip("\n")


@pytest.mark.parametrize("budget", ["95MB", "110MB"])  # not enough to read, and not enough to fit
def test_run_refuses_before_it_reads_with_the_number_of_describe(folder, capsys, monkeypatch, budget):
    monkeypatch.setenv("GPUENS_MEMORY", budget)
    monkeypatch.setattr(io, "read_label_file", read_nothing)
    foreseen = json.loads(told(capsys, "describe noise.npy -k 7 --json")[1])["methods"]
    asked = json.loads(told(capsys, "describe --shape 200000x20 -k 7 --json")[1])["methods"]
    assert foreseen == asked
    for method in ("lwgp", "hbgf", "eac"):
        code, out, err = told(capsys, f"run noise.npy -k 7 -o out.npy --method {method}")
        assert (code, out) == (3, "")
        needed = checks.human_bytes(foreseen[method]["memory"])
        assert f"{method} of 200,000 objects and 20 clusterings needs {needed} and " in one_sentence(err)
        assert needed in told(capsys, "describe noise.npy -k 7")[1]
    assert sorted(os.listdir()) == ["noise.npy", "plain.npy"]


def test_few_distinct_rows_are_not_refused(folder, capsys, monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "110MB")
    assert told(capsys, "run plain.npy -k 7 -o out.npy --method eac")[0] == 0
    monkeypatch.setenv("GPUENS_MEMORY", "95MB")  # not enough to read
    assert told(capsys, "run plain.npy -k 7 -o out.npy --method eac")[0] == 3


def test_advice_names_what_the_user_would_type(folder, capsys, monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "110MB")
    assert "; read the labels in chunks, --scheduler threads (" in told(capsys, "run noise.npy -k 7 -o out.npy")[2]
    assert "; take fewer objects" in told(capsys, "run noise.npy -k 7 -o out.npz --evidence")[2]
    monkeypatch.setenv("GPUENS_MEMORY", "600MB")
    assert "; work on a sample, --reduce sample:5000 (" in told(capsys, "run noise.npy -k 7 -o o.npy --method lce")[2]
    pd.DataFrame(noise(6000, 4)).to_csv("few.csv", index=False)
    monkeypatch.setenv("GPUENS_MEMORY", "250MB")  # the rows of a text are counted when they have been read
    said = told(capsys, "run few.csv -k 7 -o out.csv --method limbo")[2]
    assert "; reduce the rows first, --reduce sample:5000 (" in said


def test_compare_and_choose_refuse_before_they_read(folder, capsys, monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "100MB")
    monkeypatch.setattr(io, "read_label_file", read_nothing)
    needed = checks.human_bytes(foresee(ge.Voting(1), label_shape("noise.npy")).memory)
    for words, work in {"compare noise.npy -k 3": "a comparison", "choose noise.npy": "a choice"}.items():
        code, _, err = told(capsys, words)
        assert code == 3
        assert f"{work} of 200,000 objects and 20 clusterings needs {needed} and 100.0 MB" in one_sentence(err)


def test_a_large_array_is_refused_before_it_is_encoded(monkeypatch):
    labels = noise(200_000, 20)
    monkeypatch.setattr(forecast, "MANY_LABELS", labels.size)
    monkeypatch.setenv("GPUENS_MEMORY", "20MB")
    monkeypatch.setattr(ge.LWGP, "_ensemble_of", read_nothing)
    needed = checks.human_bytes(foresee(ge.LWGP(7), LabelShape(200_000, 20), process=0).memory)
    refused(
        lambda: ge.LWGP(7).fit(labels), MemoryError, f"needs {needed} and 20.0 MB", "pass the labels as a Dask array"
    )
    refused(lambda: ge.LCE(7).fit(labels), MemoryError, "take fewer objects")
    monkeypatch.setenv("GPUENS_MEMORY", "400MB")
    refused(lambda: ge.LCE(7).fit(labels), MemoryError, "reduction='sample:5000'")


def test_a_shape_is_described(capsys):
    out = told(capsys, "describe --shape 20,000,000x30 -k 12")[1]
    lines = [line.split() for line in out.splitlines()]
    assert out.startswith("20,000,000 objects and 30 clusterings\n")
    assert ["lwgp", "3.9", "GB", "G", "M", "k"] in lines
    assert not re.search(r"\b1 clusters", told(capsys, "describe --shape 1000x1 -k 1")[1])


# --- measured peaks ---------------------------------------------------------------------------------------------------


def measured(path, method, tmp_path):
    """Return the peak memory of a run, from the record that the run writes."""
    out = tmp_path / "out.npy"
    words = [sys.executable, "-m", "gpuens", "run", path, "-k", "10", "--method", method, "-o", str(out), "--quiet"]
    subprocess.run(words, check=True, capture_output=True)
    return json.loads(Path(f"{out}.json").read_text())["peak_memory_bytes"]


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of a process is exact on Linux alone")
@pytest.mark.parametrize(
    ("n_objects", "kind", "methods"),
    [
        (100_000, "npy", ["lwgp", "kcc", "voting", "em", "mcla", "median"]),
        (100_000, "csv", ["lwgp"]),
        (1_000_000, "npy", ["lwgp", "kcc", "voting", "crc-ia"]),
        (1_000_000, "csv", ["lwgp"]),
        (1_000_000, "parquet", ["voting"]),
    ],
)
def test_the_peak_is_foreseen(tmp_path, n_objects, kind, methods):
    path = str(tmp_path / f"l.{kind}")
    write(path, noise(n_objects, 20))
    for method in methods:
        found = foresee(ge.methods()[method](10), label_shape(path)).memory
        # on a busy machine, parquet's columns are decoded one after the other and not at the same time
        assert 1 / 1.6 < measured(path, method, tmp_path) / found < 1.3, method


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of a process is exact on Linux alone")
@pytest.mark.parametrize("method", ["eac", "lwea"])
def test_the_peak_of_a_linkage_is_foreseen(tmp_path, method):
    """A linkage is fast enough here, because few labels are random."""
    rng = np.random.default_rng(0)
    labels = (rng.integers(0, 30, 300_000)[:, None] * np.arange(1, 41, 2) % 29).astype(np.uint8)
    labels[rng.random(labels.shape) < 0.05] = 30
    np.save(tmp_path / "l.npy", labels)
    found = ge.describe(labels, 10).methods[method].memory
    assert 1 / 1.3 < measured(str(tmp_path / "l.npy"), method, tmp_path) / found < 1.3


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of a process is exact on Linux alone")
def test_a_refusal_takes_no_memory(tmp_path):
    np.save(tmp_path / "l.npy", noise(3_000_000, 30))
    words = [sys.executable, "-c", "from gpuens.cli import main; from gpuens.runtime.record import peak_memory; "
             "print(main(), peak_memory())", "run",
             str(tmp_path / "l.npy"), "-k", "10", "-o", str(tmp_path / "o.npy")]  # fmt: skip
    done = subprocess.run(
        words, env=os.environ | {"GPUENS_MEMORY": "500MB"}, capture_output=True, text=True, check=True
    )
    code, peak = map(int, done.stdout.split())
    assert (code, "needs 6" in done.stderr) == (3, True)
    assert peak < PROCESS_BYTES + 50_000_000


# --- a limit of time --------------------------------------------------------------------------------------------------


def turn(seconds):
    started = time.perf_counter()
    while time.perf_counter() < started + seconds:
        pass


def limited(seconds, work, *given):
    with time_limit(seconds):
        work(*given)


def test_a_block_is_interrupted_at_its_limit():
    started = time.perf_counter()
    refused(lambda: limited(0.2, turn, 30), OutOfTime, "took more than 0.2 s.")
    assert time.perf_counter() - started < 20
    limited(0.05, turn, 0)
    time.sleep(0.1)  # the timer has ended with its block
    limited(None, turn, 0)


@pytest.mark.filterwarnings("ignore")
def test_a_fit_is_interrupted_at_its_limit():
    started = time.perf_counter()
    refused(lambda: limited(0.5, ge.EAC(5).fit, noise(100_000, 20)), OutOfTime, "took more than 0.5 s.")
    assert time.perf_counter() - started < 20


def test_other_threads_have_no_limit():
    done = []

    def work():
        with time_limit(1e-6):
            time.sleep(0.05)
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
