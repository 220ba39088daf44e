"""Checks of CuPy before its use."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from conftest import refused
from packaging.requirements import Requirement

import gpuens as ge
from gpuens.runtime import device, gpu, installing


def unavailable(*_):
    raise RuntimeError("a page of text.\nAnother.")


@pytest.mark.parametrize("missing", [["NVRTC"], ["cuBLAS", "cuSOLVER"], ["NVRTC", "cuBLAS"]])
def test_a_cupy_without_libraries_of_cuda_is_refused_before_it_is_used(missing, fake_cupy, monkeypatch):
    fake_cupy.reset(missing=missing)
    for name in {"cuBLAS", "cuSOLVER"} & set(missing):
        monkeypatch.delattr(fake_cupy.cuda, name.lower())
    labels = [[0, 0, 1, 1], [0, 1, 1, 1]]
    said = [*missing, "CUDA 12", installing.command("cu12")]
    refused(lambda: ge.LWEA(2, device="cuda").fit(labels), ValueError, "device='cuda'", *said)
    refused(lambda: ge.LWEA(2).fit([fake_cupy.asarray(np.array(column)) for column in labels]), ImportError, *said)
    assert [name for name in ("NVRTC", "cuBLAS", "cuSOLVER") if name in refused(gpu.load_cupy, ImportError)] == missing


def test_libraries_of_cuda_are_looked_for_once(fake_cupy):
    device.namespace("cuda")
    fake_cupy.reset(missing=["NVRTC"])
    assert device.resolve("cuda") == "cuda"


@pytest.mark.parametrize("cuda", ["12", "13"])
def test_extras_bring_the_libraries_of_cuda(cuda):
    about = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (line,) = about["optional-dependencies"][f"cu{cuda}"]
    found = Requirement(line)
    assert (found.name, found.extras) == (f"cupy-cuda{cuda}x", {"ctk"})
    # CuPy 14.0.1 has no ctk for CUDA 13, and sorts wrongly when memory runs out
    assert not found.specifier.contains("14.0.1")


@pytest.mark.parametrize("labels", [[[0, 1], [0, 1], [1, 0]], [[0, 0, 1], [1, 1, 0]]], ids=["matrix", "columns"])
def test_arrays_that_cupy_could_not_sort_are_refused(labels, fake_cupy, sizes):
    given = labels if len(labels) == 2 else np.array(labels)
    on_gpu = [fake_cupy.asarray(np.array(c)) for c in labels] if len(labels) == 2 else fake_cupy.asarray(given)
    sizes("runtime.gpu", LONGEST=2)
    refused(lambda: ge.LWEA(2).fit(on_gpu), ValueError, "one GPU works on at most 2 objects", "Dask array")
    refused(lambda: ge.LWEA(2, device="cuda").fit(given), ValueError, "one GPU works on at most 2 objects")
