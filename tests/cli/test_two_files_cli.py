"""Two files of the same objects, which commands match by name."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import LABELS, TRUTH, K, call, done, folder  # noqa: F401

from gpuens.methods import LWGP
from gpuens.runtime import failures

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


def test_objects_that_both_files_name_go_together_by_their_names(named, call, done):
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
            out = done(f"{command.format(name)} {excluding}")
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
def test_a_zarr_array_is_read_as_an_npy_file_is(folder, done, line):
    zarr = pytest.importorskip("zarr")
    for name, array in {"labels": LABELS, "out": TRUTH, "features": np.load("features.npy")}.items():
        np.save(f"{name}.npy", array)
        zarr.save_array(f"{name}.zarr", array)
    printed = []
    for kind in ("npy", "zarr"):
        out = done(line.replace("{}", kind))
        text = "\n".join(out).replace(".npy", ".zarr").partition("estimated time")[0]
        printed.append(re.sub(r'seconds: .*|"(seconds|memory)": [\d.]+', "", text))
    assert printed[0] == printed[1]
