"""The benchmarks run: each on tiny data, as a program of its own. What they measure is for people to look at."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import structured_labels

BENCH = Path(__file__).parents[1] / "bench"


def run(script, *arguments):
    command = [sys.executable, BENCH / script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_covtype_measures_every_method_on_a_label_file(tmp_path):
    labels, _ = structured_labels(400, 6, 4, noise=0.1)
    np.save(tmp_path / "labels.npy", labels.astype(np.uint8))
    printed = run(
        "covtype.py", "--labels", tmp_path / "labels.npy", "-k", 4, "--quick", "--output", tmp_path / "found.json"
    )
    found = json.loads((tmp_path / "found.json").read_text())["ensembles"]["given"]
    assert found["n_objects"] == 400
    assert found["n_core_groups"] == len(np.unique(labels, axis=0))
    assert set(found["methods"]) == {"eac", "lwea", "lwgp", "hbgf"}
    for row in [*found["methods"].values(), *found["command"].values()]:
        assert "failed" not in row
        assert row["peak"] > 2**20
    assert sum(found["methods"]["eac"]["largest"]) == 400
    assert 0 < found["methods"]["lwea"]["comparisons"] < 2
    assert (tmp_path / "found.md").read_text() == printed


@pytest.mark.parametrize("part", ["linkage", "graph", "kmeans"])
def test_peers_and_ours_agree_on_a_mixture(part, tmp_path):
    run("vs_peers.py", "--quick", "--only", part, "--output", tmp_path / "found.json")
    rows = json.loads((tmp_path / "found.json").read_text())["parts"][part]["rows"]
    for row in rows:
        assert row.get("failed", "not installed") == "not installed"
        assert row.get("nmi", 1.0) > 0.7
        if row.get("similarity") == "locally weighted":
            assert row.get("largest_difference", 0.0) < 1e-9
    ours = {row["who"]: row for row in rows if row["who"] in ("EAC", "LWEA", "HBGF", "LWGP")}
    assert ours
    assert not any("failed" in row for row in ours.values())


def test_lwec_tables_are_made_of_one_draw(shared_data, tmp_path):
    if not (shared_data / "pools" / "lwec_VS.npz").exists():
        pytest.skip("needs pools/lwec_VS.npz among the data sets")
    printed = run(
        "reproduce_lwec.py", "--data", shared_data, "--only", "VS", "--draws", 1, "--output", tmp_path / "found.json"
    )
    assert "| VS | LWEA |" in printed


def test_every_part_of_the_cce_script_runs_on_made_up_data(tmp_path):
    printed = run("reproduce_cce.py", "--quick", "--output", tmp_path / "found.json")
    parts = json.loads((tmp_path / "found.json").read_text())["parts"]
    assert set(parts) == {"small", "documents", "scaling", "large", "sampling", "groups"}
    assert "failed" not in json.dumps(parts)
    separable = parts["small"]["rows"]["Sy1"]
    assert len(separable["methods"]) == 9
    for scores in separable["methods"].values():
        assert min(scores["AC"]) > 0.9
    assert (tmp_path / "found.md").read_text() == printed
    assert (tmp_path / "found.png").stat().st_size > 0


def test_every_part_of_the_ecrmc_script_runs_on_data_that_comes_with_scikit_learn(tmp_path):
    printed = run("reproduce_ecrmc.py", "--quick", "--output", tmp_path / "found.json")
    parts = json.loads((tmp_path / "found.json").read_text())["parts"]
    assert set(parts) == {"sets", "self", "covtype"}
    assert "failed" not in json.dumps(parts)
    iris = parts["sets"]["rows"]["iris"]
    assert min(iris["methods"]["T 10 %"]["AC"]) > 0.85
    assert len(iris["methods"]) == 9
    assert [row["T"] for row in parts["covtype"]["rows"].values()] == [18]
    assert (tmp_path / "found.md").read_text() == printed
    assert (tmp_path / "found.png").stat().st_size > 0


def test_every_part_of_the_ca_tree_script_runs_on_made_up_data(tmp_path):
    printed = run("catree.py", "--quick", "--output", tmp_path / "found.json")
    parts = json.loads((tmp_path / "found.json").read_text())["parts"]
    assert set(parts) == {"nodes", "accuracy", "defaults", "times", "image", "million"}
    assert "failed" not in json.dumps(parts)
    spheres = parts["accuracy"]["rows"]["Spherical5"]
    assert all(np.diff(spheres["cells"]["given 1"]["nodes"]["mean"]) <= 0)
    (row,) = parts["times"]["rows"].values()
    assert len(row["ways"]) == 4 * (4 + 3) + 1
    assert min(np.mean(row["ways"][f"EAC {setting} size"]["accuracy"]) for setting in ("dense", *"ABCD")) > 0.8
    assert (tmp_path / "found.md").read_text() == printed
    assert (tmp_path / "found.png").stat().st_size > 0
    assert (tmp_path / "found_landscape.png").stat().st_size > 0


def test_every_part_of_the_scec_script_runs_on_few_digits(tmp_path):
    printed = run("reproduce_scec.py", "--quick", "--output", tmp_path / "found.json")
    parts = json.loads((tmp_path / "found.json").read_text())["parts"]
    assert set(parts) == {"defaults", "tables", "covtype"}
    assert "failed" not in json.dumps(parts)
    for cell in parts["tables"]["rows"]["digits, RN"]["cells"].values():
        assert min(cell["SCEC"]) > 0.4
    assert (tmp_path / "found.md").read_text() == printed
    assert (tmp_path / "found.png").stat().st_size > 0


def test_every_part_of_the_script_about_chunks_runs_on_few_objects(tmp_path):
    pytest.importorskip("distributed")
    printed = run("chunks.py", "--quick", "--scratch", tmp_path, "--output", tmp_path / "found.json")
    parts = json.loads((tmp_path / "found.json").read_text())["parts"]
    assert set(parts) == {"same", "scaling", "ten", "hundred", "pieces"}
    assert [("rows in pieces" in row) for row in parts["pieces"]["rows"].values()] == [False, True]
    assert "failed" not in json.dumps(parts)
    compared = [row for row in parts["same"]["rows"].values() if "same" in row]
    assert len(compared) == 2
    assert all(row["same"] for row in compared)
    assert sum(row.get("killed", False) for row in compared) == 1
    for part in parts.values():
        for row in part["rows"].values():
            assert row["peak"] > 2**20
            assert row.get("ari", 1.0) > 0.5
    assert (tmp_path / "found.md").read_text() == printed
    assert {path.name for path in tmp_path.iterdir()} == {"found.json", "found.md", "found.png"}


def test_every_shape_is_given_to_every_method(tmp_path):
    printed = run("shapes.py", "--quick", "--only", "wide", "ids", "--methods", "lwgp", "eac", "--output",
                  tmp_path / "found.json")  # fmt: skip
    parts = json.loads((tmp_path / "found.json").read_text())["parts"]
    assert set(parts) == {"wide", "ids"}
    for part in parts.values():
        assert list(part["rows"]) == ["lwgp", "eac"]
        for row in part["rows"].values():
            assert row["refusal"] is None
            assert row["peak"] > 2**20
    assert (tmp_path / "found.md").read_text() == printed


# --- bench/gpu.py -----------------------------------------------------------------------------------------------------


def every_kernel_is_compared_and_timed(record):
    from gpuens import kernels

    parts, everything = record["parts"], set(kernels.functions())
    assert all(row["held"] for row in parts["parity"]), [row for row in parts["parity"] if not row["held"]]
    assert {kernel for row in parts["parity"] for kernel in row["kernels"]} == everything
    assert {row["kernel"] for row in parts["kernels"]} == everything
    for row in parts["kernels"]:
        assert min(row["seconds"], row["bytes"], row["operations"]) > 0, row
    assert all(row["rate"] > 0 for row in parts["ceilings"])
    for row in parts["end-to-end"]:
        assert row["device"]["first"] > 0
        assert row["cpu"]["first"] > 0


def test_gpu_bench_on_the_emulated_device(tmp_path):
    from gpuens import kernels

    np.save(tmp_path / "labels.npy", structured_labels(400, 6, 4, noise=0.1)[0])
    labels = ["--labels", tmp_path / "labels.npy"]
    printed = run("gpu.py", "--quick", "--device", "emulated", "--output", tmp_path / "found.json", *labels)
    record = json.loads((tmp_path / "found.json").read_text())
    every_kernel_is_compared_and_timed(record)
    assert {row["what"] for row in record["parts"]["parity"]} >= set(kernels.primitives())
    assert "tiny: labels.npy" in {row["ensemble"] for row in record["parts"]["end-to-end"]}
    assert (tmp_path / "found.md").read_text() == printed


@pytest.fixture
def gpu_bench(fake_cupy, monkeypatch, capsys):
    """bench/gpu.py as a module, where CuPy is its stand-in."""
    monkeypatch.syspath_prepend(BENCH)
    for name in ("common", *(path.stem for path in BENCH.glob("gpu*.py"))):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("gpu")


def test_gpu_bench_on_a_device(gpu_bench, tmp_path):
    """Events, memory and the description of the device, on the stand-in's."""
    assert gpu_bench.main(["--quick", "--output", str(tmp_path / "found.json")]) == 0
    record = json.loads((tmp_path / "found.json").read_text())
    every_kernel_is_compared_and_timed(record)
    assert record["device"]["cupy"] == "13.3.0"
    assert all(row["device"]["device_peak"] > 0 for row in record["parts"]["end-to-end"])
    assert (tmp_path / "found.md").read_text().startswith("# stand-in for a GPU")


def test_gpu_bench_says_what_does_not_hold_and_what_was_left_out(gpu_bench, tmp_path, monkeypatch):
    from gpuens import incidence

    real = incidence.row_sums._kernel
    monkeypatch.setattr(incidence.row_sums, "_kernel", lambda *args, **options: real(*args, **options) + 1e-9)
    output = tmp_path / "found.json"
    command = ["--quick", "--output", str(output), "--only"]
    assert gpu_bench.main([*command, "parity"]) == 1
    wrong = [row for row in json.loads(output.read_text())["parts"]["parity"] if not row["held"]]
    assert "row_sums" in {row["what"] for row in wrong}
    assert "values differ" in output.with_suffix(".md").read_text()
    assert gpu_bench.main([*command, "ceilings", "kernels", "--limit", "0"]) == 1  # parity is remembered
    assert "left out: 0 s of the limit were left" in output.with_suffix(".md").read_text()
