"""Values that no parameter expects."""

import fractions
from decimal import Decimal

import numpy as np
import pandas as pd

import gpuens as ge


class BadRepr:
    def __repr__(self):
        raise RuntimeError("no repr")


HOSTILE = {
    "None": None,
    "True": True,
    "numpy True": np.bool_(True),
    "0": 0,
    "-1": -1,
    "1.5": 1.5,
    "2": 2,
    "int8": np.int8(3),
    "uint64": np.uint64(2),
    "2**31": 2**31,
    "2**63": 2**63,
    "-2**63": -(2**63),
    "largest uint64": np.uint64(2**64 - 1),
    "10**400": 10**400,
    "10**5000": 10**5000,
    "-10**400": -(10**400),
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "-0.0": -0.0,
    "float16": np.float16(0.5),
    "float32": np.float32(0.25),
    "longdouble": np.longdouble("1e4000"),
    "smallest": 5e-324,
    "largest": 1.7e308,
    "Fraction": fractions.Fraction(1, 3),
    "huge Fraction": fractions.Fraction(10**5000, 3),
    "Decimal": Decimal("0.4"),
    "complex": 1 + 2j,
    "timedelta": np.timedelta64(3, "s"),
    "datetime": np.datetime64("2026-01-01"),
    "text": "three",
    "digits": "2",
    "empty text": "",
    "NUL": "a\0b\nc",
    "long text": "x" * 10_000,
    "numpy text": np.str_("auto"),
    "bytes": b"auto",
    "0-d": np.array(3),
    "0-d text": np.array("auto"),
    "1-d": np.array([1.0, 2.0]),
    "texts": np.array(["auto", "cpu"]),
    "2-d": np.eye(20),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "nested": [1, [2]],
    "empty list": [],
    "pair": (2, 3),
    "mixed": [1, "a", None, 2.5, 3, 4],
    "huge inside": [10**400] * 6,
    "negative inside": [1, 1, 1, 1, 1, -1],
    "NaN inside": [1, 1, 1, 1, 1, float("nan")],
    "largest inside": [1.7e308] * 6,
    "complex inside": [1j] * 6,
    "dict": {"a": 1},
    "set": {1, 2},
    "generator": (i for i in range(3)),
    "range": range(6),
    "slice": slice("a", "b"),
    "series": pd.Series([1, 2, 3]),
    "frame": pd.DataFrame({"a": [1, 2]}),
    "class": ge.CATree,
    "function": len,
    "lambda": lambda *a, **k: None,
    "ufunc": np.add,
    "module": np,
    "object": object(),
    "bad repr": BadRepr(),
    "estimator": ge.LWEA(2),
    "RandomState": np.random.RandomState(0),
    "Generator": np.random.default_rng(0),
    "SeedSequence": np.random.SeedSequence(0),
    "PCG64": np.random.PCG64(0),
}
