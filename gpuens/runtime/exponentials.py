"""Exponentials, logarithms and powers with the same bits on every processor and device (kernels/common/exponentials.h).

Those of NumPy, CuPy and C libraries differ in their last bits from one processor to another, so that results whose last
bits decide (a tie, a cut) would differ, too. Errors are at most 1 unit in the last place for exponentials, and 4 for
logarithms; `powers` says its own.
"""

import math
from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu

MOST_PRODUCTS = 64  # largest whole exponent for which a power is a product


@kernels.primitive
def exponentials(x: np.ndarray) -> np.ndarray:
    """Return e^x of an array of any shape, float64."""
    x = np.asarray(x, dtype=np.float64, order="C")
    powers = np.empty_like(x)
    cpu.exponentials(x.reshape(-1), powers.reshape(-1))
    return powers


@exponentials.kernel
def _(x: Any, *, device: str) -> Any:
    xp = devices.namespace(device)
    x = xp.asarray(x, dtype=np.float64, order="C")
    powers = xp.empty_like(x)
    kernels.launch("exponentials", kernels.blocks(x.size, 256), 256, (x, powers, x.size), device=device)
    return powers


def logarithms(x: Any) -> np.ndarray:
    """Return log2 x of a number or a host array of any shape, numbers >= 0, as a float64 array of that shape."""
    x = np.asarray(x, dtype=np.float64, order="C")
    bits: np.ndarray = np.empty_like(x)
    cpu.logarithms(x.reshape(-1), bits.reshape(-1))
    return bits


def natural_logarithms(x: Any) -> np.ndarray:
    """Return ln x of a number or a host array of any shape, numbers >= 0, as a float64 array of that shape."""
    return math.log(2) * logarithms(x)


def powers(x: np.ndarray, exponent: float) -> np.ndarray:
    """Return x^exponent of a host array with numbers >= 0, for an exponent > 0.

    A whole exponent gives a product; any other one gives e^(exponent ln x), whose relative error grows with the
    exponent of e.
    """
    assert exponent > 0
    if exponent == int(exponent) <= MOST_PRODUCTS:
        return _product(x, int(exponent))
    return np.sqrt(x) if exponent == 0.5 else exponentials(exponent * natural_logarithms(x))


def _product(x: np.ndarray, n_factors: int) -> np.ndarray:
    product = x
    for bit in f"{n_factors:b}"[1:]:  # squares, and once more x for each bit that is set
        product = product * product
        if bit == "1":
            product = product * x
    return product
