"""Refusals and failures of commands: one sentence, an exit code, and no file that is left behind."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from commands import FORMATS, GIVEN, call, done, files, folder  # noqa: F401
from conftest import raising

from gpuens.runtime import failures, installing

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
    "run labels.csv -k 3 --long --one-hot": "argument --one-hot: not allowed with argument --long; *",
    "generate features.npy --objects half -o out.npy": "--objects must be a whole number or a number, not 'half'.",
    "generate features.npy": "the following arguments are required: -o/--output; see gpuens generate --help.",
    "generate features.npy -o features.npy": "output 'features.npy' is the input itself; choose another name.",
    "generate features.npy -o out.h5": "path 'out.h5' has no known ending; it must end in *",
    "demo --seed -1": "random_state must be at least 0, but is -1.",
    "run labels.csv -k 3 --evidence -o out.npy": "--evidence is written beside the labels, which 'out.npy' *",
    "run labels.csv -k 3 --membership --method em -o out.h5ad": "--membership is written beside the labels, which *",
    "run labels.csv -k 3 --membership": "--membership needs a method with shares in clusters, but 'lwgp' has none; *",
    "run labels.csv -k 3 --min-confidence 1.2": "--min-confidence must be from 0 to 1, but is 1.2.",
    "run labels.csv -k 3 -o out.npy --report": "argument --report: expected one argument; see gpuens run --help.",
    "run labels.csv -k 3 -o out.npy --report out.txt": "path 'out.txt' has no known ending; it must end in .html.",
    "run labels.csv -k 3 --method ecrmc": "--features is needed, because method 'ecrmc' compares the objects by *",
    "run labels.csv -k 3 --method ecrmc --features features.npy -o features.npy": "output 'features.npy' is *",
    "run labels.csv -k 3 --method lwea --features features.npy": "--features is no option of method 'lwea', which *",
    "choose labels.csv --features features.npy": "give either LABELS or --features FILE.",
    "choose labels.csv --n-init 3": "--n-init applies to --features; leave it out with LABELS.",
    "choose labels.csv --ks 2-6": "argument --ks: numbers of clusters are written 2:20, not '2-6'; see *",
    "cluster features.npy -k 3 -o out.npy --kind spectral": "argument --kind: invalid choice: 'spectral' (choose *",
    "cluster features.npy -k 3 -o out.npy --method hgbf": "method must be one of * (did you mean 'hbgf'?).",
    "cluster features.npy -k 0 -o out.npy": "n_clusters must be at least 1, but is 0.",
    "cluster features.npy -k 3 -o out.npy --kind leiden --n-clusterings 5": "n_clusterings=5 is not for kind=*",
    "cluster features.npy -k 3 -o out.npy --evidence": "--evidence is written beside the labels, which 'out.npy' *",
    "cluster nothing -k 3 -o out.npy --scheduler threads": "path 'nothing' has no known ending; it must end in .npy, *",
    "cluster features.npy -k 3 -o out.npy --chunk-rows 5": "--chunk-rows=5 is for work in chunks: add --scheduler, *",
    "cluster features.npy -k 3 -o out.npy --workers 2": "--workers=2 is for a cluster of this machine: add *",
    "cluster features.npy -k 3 -o out.npy --scheduler threads --workers 2": "--workers=2 is for a cluster of this *",
    "generate features.npy -o out.npy --kind leiden -k 3": "--kind leiden takes no -k; use it with --kind kmeans.",
    "generate features.npy -o out.npy --kind leiden --n-clusterings 3": "--kind leiden takes no --n-clusterings; *",
    "generate features.npy -o out.npy --resolutions 1": "--kind kmeans takes no --resolutions; use it with --kind *",
    "generate features.npy -o out.npy --kind leiden --resolutions high": "--resolutions must be a number or numbers *",
    "generate features.npy -o out.npy --kind leiden --n-seeds 1.5": "--n-seeds must be a whole number, not '1.5'.",
    "compare labels.csv": "the following arguments are required: -k/--n-clusters; see gpuens compare --help.",
    "compare labels.csv -k 4 --report page.txt": "path 'page.txt' has no known ending; it must end in .html.",
    "compare labels.csv -k 4 -o table.txt": "path 'table.txt' has no known ending; it must end in .csv, .tex.",
    "describe": "give either LABELS or --shape NxM.",
    "describe labels.csv --shape 10x3": "give either LABELS or --shape NxM.",
    "describe --shape 10x3": "--shape needs -k, the number of clusters of the consensus.",
    "describe --shape 10:3 -k 2": "argument --shape: * such as 20000000x30, not '10:3'; see gpuens describe --help.",
    "describe --shape 10x3 -k 2 --exclude a": "--exclude is for LABELS*",
}
IN_ONE_PIECE = {
    "run labels.npy -k 3": (
        *("--evidence", "--header", "--id-column a", "--long", "--min-confidence 0.5", "--no-missing NA", "--sep ;"),
        "--weight-column 0",
    ),
    "cluster features.npy -k 3 -o out.csv": (
        *("--evidence", "--header", "--id-column a", "--key X", "--missing ?", "--no-header", "--sep ;"),
    ),
}
BEFORE_READING |= {
    f"{command} --scheduler threads {option}": f"{option.split()[0]} is for files that are read in one piece; *"
    for command, options in IN_ONE_PIECE.items()
    for option in options
}
AFTER_READING = {
    "run labels.csv -k 3 -o out.npy --report nowhere/out.html": "path 'nowhere/out.html' is in a directory that *",
    "run labels.csv -k 3 --method ecrmc --features nothing.npy": "path 'nothing.npy' does not exist; check the name.",
    "compare labels.csv -k 4 --methods lwaa": "method must be one of * (did you mean 'lwea'?).",
    "compare labels.csv -k 4 --truth labels.csv --methods eac": "path * choose one by --truth FILE:COLUMN.",
    "compare labels.csv -k 4 --truth nothing --methods eac": "--truth=nothing is neither a label file nor a single *",
    "compare labels.csv -k 4 --truth labels.csv:nothing --methods eac": "columns: there is no column 'nothing'; *",
    "compare labels.csv -k 4 --methods eac --repeat 0": "repeat must be at least 1, but is 0.",
    "describe nowhere.csv": "path 'nowhere.csv' does not exist; check the name.",
    "describe labels.csv -k 1000": "n_clusters=1000 *",
    "align labels.csv --to labels.csv -o out.npy": "path 'labels.csv' has 6 columns where one is needed; write the *",
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
def test_names_of_any_bytes_are_inputs_outputs_and_in_records(folder, done):
    name = os.fsdecode(b"\xff\xfe")
    os.rename("labels.csv", f"{name}.csv")
    for line in (
        f"run {name}.csv -k 3 -o {name}.npy --report {name}.html",
        f"generate features.npy -k 3 -o {name}.npy",
    ):
        done(line)
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
