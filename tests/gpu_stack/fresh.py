"""The program of `make test-extras` in a new environment: it checks that CuPy finds CUDA's compiler and libraries.

No GPU is needed: NVRTC compiles the header that all of CuPy's kernels include, and cuBLAS is loaded.
"""

import cupy
from cupy._core import core
from cupy.cuda import compiler

from gpuens.runtime import device

SOURCE = """
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
extern "C" __global__ void one(CArray<float, 1, 1, 1> a) { a[0] = 1; }
"""

device.namespace("cuda")  # raises an error if a library is missing
options = core.assemble_cupy_compiler_options(("--std=c++17", "-arch=sm_90"))
compiled, _ = compiler._NVRTCProgram(SOURCE).compile(options)
print(f"CuPy {cupy.__version__}: NVRTC {cupy.cuda.nvrtc.getVersion()} made {len(compiled)} bytes, {cupy.cuda.cublas}")
