"""Build a folder that contains real CuPy and a stand-in for a GPU below it.

    python tests/gpu_stack/build.py FOLDER [--cupy 14.2.0]

After that every Python started with PYTHONPATH=FOLDER has CuPy and a GPU (see `gpu_stack`). Needed: g++ with its
binutils, Python's headers, and an index of packages, of which these are taken: CuPy's wheel and its source archive, the
Cython that it was built with, and the headers of CUDA. What exists is kept; a folder is finished when it holds "built".
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
RUNTIME = "cupy_backends/cuda/api/runtime"
BUILT_WITH = {  # for each version of CuPy, the versions of Cython and CUDA
    "14": (["cython>=3.2,<3.3"], 13),
    "13": (["cython>=3,<3.2"], 13),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cupy", default="14.2.0", metavar="VERSION")
    options = parser.parse_args()
    build(options.folder.resolve(), options.cupy)


def build(folder: Path, version: str) -> None:
    key = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(HERE.glob("*.[cp]*")))).hexdigest()
    done = folder / "built"
    if done.exists() and done.read_text() == key:
        return
    done.unlink(missing_ok=True)
    cython, cuda = BUILT_WITH[version.split(".")[0]]
    if not (folder / "cupy").exists():
        install(folder, [f"cupy-cuda{cuda}x=={version}"])
        # a dependency of CuPy; NumPy comes from the environment
        install(folder, ["cuda-pathfinder" if version >= "14" else "fastrlock"])
    with tempfile.TemporaryDirectory() as scratch:
        tools, source = Path(scratch) / "tools", Path(scratch) / "source"
        install(tools, [*cython, *(f"nvidia-cuda-{part}=={cuda}.0.*" for part in ("runtime", "crt"))])
        headers = next(tools.glob("nvidia/*/include"))
        archive(version, source)
        driver(folder)
        runtime(folder, source, tools, headers, cuda)
        libraries(folder, cuda)
    (folder / "sitecustomize.py").write_text(
        f"import sys\n\nsys.path.insert(0, {str(HERE.parent)!r})\nimport gpu_stack\n\ngpu_stack.install()\n"
    )
    done.write_text(key)


# --- what is taken ----------------------------------------------------------------------------------------------------


def install(folder: Path, requirements: list[str]) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--upgrade", "--target", folder, *requirements], check=True)


def archive(version: str, folder: Path) -> None:
    """Download and unpack CuPy's source archive without pip, because pip would try to build CuPy."""
    request = urllib.request.Request(f"{INDEX}/cupy/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(request) as answer:
        (found,) = (file for file in json.load(answer)["files"] if file["filename"] == f"cupy-{version}.tar.gz")
    with urllib.request.urlopen(found["url"]) as answer:
        data = answer.read()
    if hashlib.sha256(data).hexdigest() != found["hashes"]["sha256"]:
        sys.exit(f"{found['url']} is not what the index says.")
    packed = folder.with_suffix(".tar.gz")
    packed.write_bytes(data)
    with tarfile.open(packed) as tar:
        tar.extractall(folder, filter="data")


# --- what is built ----------------------------------------------------------------------------------------------------


def driver(folder: Path) -> None:
    compile_c((HERE / "libcuda.c").read_text(), folder / "libcuda.so.1", "-Wl,-soname,libcuda.so.1", "-ldl", "-pthread")


def libraries(folder: Path, cuda: int) -> None:
    library(folder, "cublas", cuda, (HERE / "cublas.c").read_text(), status=15)
    behind = cuda - 1  # the versions of cuSOLVER and cuSPARSE are one behind CUDA's
    library(folder, "cusolver", behind, (HERE / "cusolver.c").read_text(), status=9)
    library(folder, "cusparse", behind, "", status=10)
    for nothing in (f"libcublasLt.so.{cuda}", f"libnvJitLink.so.{cuda}"):  # CuPy checks that these libraries exist
        command = ["g++", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{nothing}", "-o", folder / nothing]
        subprocess.run(command, check=True)


def library(folder: Path, stem: str, version: int, text: str, status: int) -> None:
    """Build a stand-in for a library of CUDA. Functions that CuPy names but the stand-in lacks return ``status``."""
    (user,) = (folder / "cupy_backends/cuda/libs").glob(f"{stem}.*.so")
    name = f"lib{stem}.so.{version}"
    with tempfile.NamedTemporaryFile("w", suffix=".map") as versions:  # each symbol needs a version
        print(f"{name} {{ global: *; }};", file=versions, flush=True)
        link = [f"-Wl,-soname,{name}", f"-Wl,--version-script,{versions.name}"]
        compile_c(text, folder / name, *link, stubs_for=user, prefix=stem, status=status)


def runtime(folder: Path, source: Path, tools: Path, headers: Path, cuda: int) -> None:
    """Build CuPy's runtime module again from its source, with our runtime in place of NVIDIA's static library."""
    (root,) = source.iterdir()
    translate = f"""
import Cython
from Cython.Compiler import Options
from Cython.Compiler.Main import compile
settings = dict(CUPY_USE_CUDA_PYTHON=False, CUPY_CUFFT_STATIC=False, CUPY_CYTHON_VERSION=Cython.__version__,
                CUPY_CUDA_VERSION={cuda}000, CUPY_HIP_VERSION=0)
directives = {{"embedsignature": True, "c_api_binop_methods": True, "binding": False, "warn.deprecated.IF": False}}
made = compile("{RUNTIME}.pyx", cplus=True, language_level=3, compile_time_env=settings,
               compiler_directives=directives, full_module_name="{RUNTIME.replace("/", ".")}")
assert made.num_errors == 0
"""
    environment = os.environ | {"PYTHONPATH": str(tools)}
    subprocess.run([sys.executable, "-c", translate], cwd=root, env=environment, check=True, stderr=subprocess.DEVNULL)
    # the only header of CUDA that no package installs
    names = "cudaProfilerStart", "cudaProfilerStop"
    (root / "cuda_profiler_api.h").write_text("".join(f'extern "C" cudaError_t {name}();\n' for name in names))
    includes = [root, headers, root / "cupy/_core/include", root / "cupy_backends", sysconfig.get_paths()["include"]]
    flags = ["-O1", "-w", "-fPIC", *(f"-I{path}" for path in includes), "-D_FORCE_INLINES"]
    flags += ['-DCYTHON_EXTERN_C=extern "C"', "-DCUPY_CACHE_KEY=gpu_stack"]
    module, wrapper = root / "runtime.o", root / f"{RUNTIME}.cpp"
    subprocess.run(["g++", *flags, "-c", wrapper, "-o", module], check=True)
    (replaced,) = (folder / "cupy_backends/cuda/api").glob("runtime.*.so")
    # libcuda has been loaded before, so that the loader finds it by its name
    link = [str(module), f"-I{headers}", str(folder / "libcuda.so.1")]
    compile_c((HERE / "cudart.c").read_text(), replaced, *link, stubs_for=module, prefix="cuda", status=801)


def compile_c(
    text: str, result: Path, *flags: str, stubs_for: Path | None = None, prefix: str = "", status: int = 0
) -> None:
    """Compile C into a library.

    Functions that ``stubs_for`` needs and the library lacks become functions that return errors.
    """
    defined = set(re.findall(r"^\w[\w ]*\*? \**(\w+)\(", text, flags=re.MULTILINE))
    needed = undefined(stubs_for, prefix) if stubs_for else set()
    lines = [f"int {name}(void) {{ return {status}; }}" for name in sorted(needed - defined)]
    with tempfile.TemporaryDirectory() as scratch:
        stubs, ours, beside = Path(scratch) / "stubs.o", Path(scratch) / "ours.o", Path(scratch) / result.name
        includes = [flag for flag in flags if flag.startswith("-I")]
        for name, source in ((stubs, "\n".join(lines)), (ours, text)):
            command = ["gcc", "-O1", "-w", "-fPIC", *includes, "-x", "c", "-", "-c", "-o", name]
            subprocess.run(command, input=source, text=True, check=True)
        subprocess.run(["g++", "-shared", ours, stubs, *flags, "-o", beside], check=True)
        shutil.move(beside, result)


def undefined(library: Path, prefix: str) -> set[str]:
    listed = subprocess.run(["nm", "--undefined-only", library], capture_output=True, text=True, check=False)
    if listed.returncode or "no symbols" in listed.stderr:
        listed = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True)
    return {name for name in re.findall(r" U (\w+)", listed.stdout) if name.startswith(prefix)}


if __name__ == "__main__":
    main()
