"""Memberships in files: rows of shares that sum to 1, as ADMIXTURE, fastStructure and CLUMPP write them."""

import io
import os
import re
from typing import Any

import numpy as np

from gpuens.io import paths
from gpuens.io.content import input_kind, read_text
from gpuens.io.paths import TEXT_INPUTS, Path_
from gpuens.io.reading import read_feature_file, read_features
from gpuens.labels.odd_labels import is_number
from gpuens.labels.soft_ensemble import HEAD_ROWS, LARGEST_ROUNDING, SUM_OF_ROWS, looks_like_memberships
from gpuens.runtime import checks

BEFORE_COLON = re.compile(rb"(?m)^[^:\n]*:[ \t]*")  # beginning of a line of CLUMPP: the object, its missing share, …
NUMBERS = re.compile(rb"[-+.0-9eE,;|\s]+")  # a line of numbers alone
SEPARATORS = re.compile(rb"[\s,;|]+")
SAMPLE = 2**16  # number of bytes from which the first rows are taken
BLANK_LINES = re.compile(rb"\n(?:[ \t\r]*\n)+")


def read_memberships(path: Path_) -> list[np.ndarray]:
    """Read memberships (n_objects, k) from a file.

    Parameters
    ----------
    path : str or path
        Text with a row for each object: its shares in k clusters, which sum to 1, such as ADMIXTURE's ``.Q`` or
        fastStructure's ``.meanQ``; an npy, parquet or other file as for `read_features`; or text of CLUMPP, where the
        shares follow a colon, and a blank line divides several runs. Rounded shares are divided by their sum.

    Returns
    -------
    list of ndarray (n_objects, k), float64
        One for each run in the file, for `gpuens.modes`, `gpuens.align` and `gpuens.SCEC`.

    Raises
    ------
    OSError, ValueError, TypeError, ImportError, MemoryError
        As `read_features`, and for rows that are negative or do not sum to 1.

    Examples
    --------
    >>> import gpuens as ge, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run1.2.Q")
    ...     n_letters = path.write_text("0.25 0.75\\n0.999990 0.000010\\n")
    ...     ge.io.read_memberships(path)[0].tolist()
    [[0.25, 0.75], [0.99999, 1e-05]]
    """
    runs = _runs_of_clumpp(path)
    return [_normalize(run, path) for run in ([_table(path)[0]] if runs is None else runs)]


def holds_memberships(path: Path_) -> bool:
    """Return whether the first rows of a text or an npy file are shares that sum to 1."""
    kind = input_kind(path)
    if kind == ".npy":
        head = read_features(path)[:HEAD_ROWS]
        return head.ndim == 2 and head.dtype.kind == "f" and looks_like_memberships(np.asarray(head, dtype=np.float64))
    if kind not in TEXT_INPUTS:
        return False
    *lines, last = BEFORE_COLON.sub(b"", bytes(read_text(path)[:SAMPLE])).splitlines()
    rows = [SEPARATORS.split(line.strip()) for line in lines or [last] if line.strip() and line[:1] != b"#"]
    if rows and not all(map(_is_number, rows[0][-2:])):  # names of the columns
        del rows[0]
    named = bool(rows) and not _is_number(rows[0][0])
    try:
        return bool(rows) and looks_like_memberships(np.array(rows[:HEAD_ROWS])[:, named:].astype(np.float64))
    except ValueError:  # texts, or lines of different lengths
        return False


def _is_number(field: bytes) -> bool:
    return is_number(field.decode(errors="replace"))


def read_membership_ids(path: Path_) -> Any:
    """Return the names of the objects of memberships as a pandas Index, or None."""
    return _table(path)[1] if _runs_of_clumpp(path) is None else None


def _table(path: Path_) -> tuple[np.ndarray, Any]:
    """Return the numbers in a table, and the names of the objects or None."""
    # otherwise a first line 0 1 would count as the numbers of the columns
    unnamed = input_kind(path) in TEXT_INPUTS and NUMBERS.fullmatch(_first_line(read_text(path))) is not None
    X, ids = read_feature_file(path, header=False if unnamed else None)
    try:
        return np.asarray(X, dtype=np.float64), ids
    except (ValueError, TypeError):
        raise ValueError(
            f"path {os.fspath(path)!r} has other columns than numbers, but memberships are the shares of each object "
            "in the clusters; leave other columns out."
        ) from None


def _first_line(text: Any) -> bytes:
    end = text.find(b"\n")
    return bytes(text[: end if end >= 0 else len(text)])


def _runs_of_clumpp(path: Path_) -> list[np.ndarray] | None:
    """Return the memberships of each run in a text of CLUMPP; None for other files."""
    if input_kind(path) not in TEXT_INPUTS:
        return None
    text = read_text(path)
    if b":" not in _first_line(text):
        return None
    import pandas as pd

    runs = BLANK_LINES.split(bytes(text[:]).strip())
    with paths.reading(path):
        tables = [pd.read_csv(io.BytesIO(BEFORE_COLON.sub(b"", run)), sep=r"\s+", header=None) for run in runs]
        return [table.to_numpy(dtype=np.float64) for table in tables]


def _normalize(run: np.ndarray, path: Path_) -> np.ndarray:
    where = f"path {os.fspath(path)!r}"
    sums = run.sum(axis=1)
    is_wrong = (run < 0).any(axis=1) | (np.abs(sums - 1.0) > LARGEST_ROUNDING)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise ValueError(
            f"{where} has no memberships in row {row}, but {checks.listed(run[row].tolist())}; shares are at least 0 "
            "and sum to 1 in each row."
        )
    return run / sums[:, None] if (np.abs(sums - 1.0) > SUM_OF_ROWS).any() else run
