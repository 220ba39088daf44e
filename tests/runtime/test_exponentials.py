"""Exponentials, logarithms and powers: compared with arithmetic of 40 digits, and the same bits on every processor."""

import hashlib
import math
import os
import subprocess
import sys
from decimal import Decimal, localcontext

import numpy as np
import pytest

import gpuens as ge
from gpuens.runtime.exponentials import exponentials, logarithms, natural_logarithms, powers


def errors(found, exact):
    """Return by how many units in the last place numbers differ from exact ones."""
    return [
        abs(float((Decimal(x) - y) / Decimal(math.ulp(float(y))))) for x, y in zip(found.tolist(), exact, strict=True)
    ]


@pytest.fixture
def digits():
    with localcontext() as context:
        context.prec = 40
        yield


@pytest.mark.usefixtures("digits")
@pytest.mark.parametrize("least", [-740.0, -230.0, -1.0, -1e-9, 700.0])
def test_exponentials_are_within_a_unit_in_the_last_place(least, where):
    x = np.random.default_rng(0).uniform(least, least + 9 if least > 0 else 0.0, 500)
    found = exponentials(ge.runtime.device.namespace(where).asarray(x), device=where)
    assert max(errors(ge.runtime.device.to_host(found), [Decimal(v).exp() for v in x.tolist()])) <= 1.0


@pytest.mark.usefixtures("digits")
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-300, 1e9])
def test_logarithms_are_within_three_units_in_the_last_place(scale):
    x = scale * np.random.default_rng(1).uniform(0, 2, 500)
    assert max(errors(logarithms(x), [Decimal(v).ln() / Decimal(2).ln() for v in x.tolist()])) <= 3.0
    assert max(errors(natural_logarithms(x), [Decimal(v).ln() for v in x.tolist()])) <= 4.0


@pytest.mark.usefixtures("digits")
@pytest.mark.parametrize("exponent", [0.2, 0.5, 1.0, 2.0, 2.5, 4.0, 5.0, 65.0])
def test_powers(exponent):
    x = np.random.default_rng(2).uniform(0, 1, 200)
    exact = [Decimal(v) ** Decimal(exponent) for v in x.tolist()]
    np.testing.assert_allclose(powers(x, exponent), np.array(exact, dtype=float), rtol=1e-13, atol=0)
    assert powers(np.array([0.0, 1.0]), exponent).tolist() == [0.0, 1.0]


def test_exact_results_and_limits():
    assert exponentials(np.array([0.0, -0.0, -math.inf, math.inf, -746.0, 710.0])).tolist() == [
        1.0, 1.0, 0.0, math.inf, 0.0, math.inf,
    ]  # fmt: skip
    assert np.isnan(exponentials(np.array([math.nan]))).all()
    assert exponentials(np.array([-744.0, 709.7])) == pytest.approx([math.exp(-744.0), math.exp(709.7)], rel=1e-15)
    whole = np.arange(-1074, 1024)
    np.testing.assert_array_equal(logarithms(np.ldexp(1.0, whole)), whole)
    assert logarithms(0.0) == -math.inf
    assert logarithms(math.inf) == math.inf
    assert np.isnan(logarithms(np.array([math.nan, -1.0]))).all()
    for function in (exponentials, logarithms):
        assert function(np.ones((2, 0, 3))).shape == (2, 0, 3)
        assert function(np.ones((4, 3)).T[1:]).shape == (2, 4)


def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in arrays)).hexdigest()[:16]


def test_bits_are_those_of_all_processors():
    x = np.arange(-3000, 3000) / 8.0
    assert digest(exponentials(x)) == "8c1c35e55f9d7d08"
    assert digest(logarithms(np.abs(x)), powers(np.abs(x), 0.3)) == "ca5f033c1ccf3c21"


FITS = """
import hashlib, warnings
import numpy as np
import gpuens as ge
warnings.simplefilter("ignore")
rng = np.random.default_rng(5)
truth = rng.integers(4, size=400)
labels = np.column_stack([np.where(rng.random(400) < 0.4, rng.integers(k, size=400), truth % k) for k in range(3, 12)])
results = {f"eci {theta}": ge.similarity.eci(labels, theta) for theta in (0.2, 0.4, 1.0)}
results["nmi"] = ge.contingency.agreement(labels)
results["vi"] = [np.array(ge.contingency.vi_of(ge.contingency.table(truth, column))) for column in labels.T]
for name, given in {"lwea": {}, "kcc": {"utility": "ulp"}, "limbo": {}, "em": {}, "median": {"loss": "vi"}}.items():
    fit = ge.methods()[name](4, **given).fit(labels)
    results[name] = [fit.labels_, *[getattr(fit, part) for part in ("distances_", "objective_") if hasattr(fit, part)]]
results["confidence"] = fit.confidence_
for name, value in results.items():
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in value)).hexdigest()
    print(name, digest[:16])
"""


def settings_of_an_old_processor():
    """Return environment variables by which NumPy and glibc take functions for processors without AVX2 and FMA."""
    from numpy._core._multiarray_umath import __cpu_dispatch__

    hwcaps = "-AVX512F,-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-FMA4"
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__), "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={hwcaps}"}


@pytest.mark.thorough
def test_results_do_not_depend_on_the_functions_of_a_processor():
    def run(settings):
        done = subprocess.run(
            [sys.executable, "-c", FITS], env=os.environ | settings, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    here = run({})
    assert len(here) == 11
    assert run(settings_of_an_old_processor()) == here
