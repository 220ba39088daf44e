"""The commands ``info``, ``warm`` and ``demo``."""

import importlib
import json
import os
import platform
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import GIVEN, K, call, done, files, folder  # noqa: F401
from conftest import NOT_HERE, raising

import gpuens
from gpuens import datasets, generate, metrics
from gpuens.methods import EAC, HBGF, LWEA, LWGP, methods
from gpuens.runtime import device, installing, kernels, native, record

# --- info -------------------------------------------------------------------------------------------------------------


def test_info_is_one_screen_with_what_to_type_for_what_is_missing(folder, done, monkeypatch):
    monkeypatch.setattr(record, "_version", lambda package: None if package in ("zarr", "igraph") else "1.2")
    out = done("info")
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


def test_check_finds_planted_clusters_on_every_device(folder, call, done, fake_cupy):
    out = done("info --check")
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


def test_demo_scores_four_consensuses_and_draws_one(folder, done):
    out = done("demo --data wine --output-dir pictures --seed 3")
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


def test_demo_without_matplotlib_has_its_table_all_the_same(folder, done, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"] + ["matplotlib.figure"]:
        monkeypatch.setitem(sys.modules, name, None)
    out = done("demo --data iris")
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
