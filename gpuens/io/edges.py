"""Reading of graphs: text with an edge in each line, sparse matrices, and the graphs of annotated matrices."""

import io
import os
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from gpuens.io import paths
from gpuens.io.content import read_text
from gpuens.io.layout import SAMPLE
from gpuens.io.paths import ANNOTATED, INPUTS, TEXTS, Path_
from gpuens.io.reading import read_features, read_graph, read_ids
from gpuens.labels.edges import Edges, matrix_to_edges, number_names, pairs_to_edges
from gpuens.labels.object_names import names_of_objects
from gpuens.labels.odd_labels import WHOLE, is_number
from gpuens.runtime import checks, device

LINES = 2**20  # number of lines with names that are read at a time
BYTES_OF_A_LINE = 100  # host memory for each line of text while the edges are sorted
COMMENTS = (b"#", b"%")  # first characters of lines before the edges that are no edges
SEPARATORS = {b"\t": "\t", b",": ",", b";": ";"}  # separators of fields besides blanks, the first in a line counts
LEADING_ZERO = re.compile(rb"0(?<![^\s,;]0)[0-9]")  # name such as 01, which is another name than 1


def read_edges(path: Path_, *, header: bool | None = None) -> Edges:
    """Read the edges of an undirected graph from a file.

    Parameters
    ----------
    path : str or path
        - Text, with any other ending than those below, also with ``.gz``: in each line the names of two objects and,
          if the first line has three fields, a weight ≥ 0. Fields are separated by tabs, commas, semicolons or blanks.
          Lines that begin with # and the rest of a line after # are comments, and % begins comments before the first
          edge. If all names are integers of 64 bits as they are usually written, they are numbers, in the order of
          their values; otherwise names are texts, in the order of their first lines.
        - ``.npz``: a sparse symmetric matrix of `scipy.sparse.save_npz`.
        - ``.h5ad``: the graph of the cells, ``obsp["connectivities"]``.
    header : bool, optional
        Whether the first line of text holds the names of the columns. By default, it does if its weight is not a
        number, or if its objects are no integers and all others are.

    Returns
    -------
    Edges
        With the names of the objects (``names``). Loops are left out. An edge in several lines, in any direction,
        counts once with its largest weight.

    Raises
    ------
    OSError, ValueError, TypeError, ImportError, MemoryError
        For missing or unreadable files, other kinds of files, lines with too few or too many fields, weights that are
        not numbers ≥ 0, graphs that are not symmetric, and edges beyond the memory budget.

    Examples
    --------
    >>> import gpuens as ge, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "friends.txt")
    ...     n_letters = path.write_text("# who knows whom\\nann bob\\nbob cem\\ncem ann\\nbob ann\\n")
    ...     edges = ge.io.read_edges(path)
    >>> edges, list(edges.names)
    (Edges(n_objects=3, n_edges=3), ['ann', 'bob', 'cem'])
    """
    if header is not None and not isinstance(header, bool):
        raise TypeError(f"header must be True if the first line holds names, False if not, or None, not {header!r}.")
    return _read(path, header, (2, 3))


def read_pairs(path: Path_) -> Edges:
    """Read pairs of objects as `read_edges` reads edges; lines of text have no weight."""
    return _read(path, None, (2,))


def _read(path: Path_, header: bool | None, n_fields: tuple[int, ...]) -> Edges:
    name = os.fspath(path).lower()
    if name.endswith(ANNOTATED):
        return replace(
            matrix_to_edges(read_graph(path), f"path {os.fspath(path)!r}"), names=names_of_objects(read_ids(path))
        )
    if name.endswith(".npz"):
        graph = read_features(path)
        if not hasattr(graph, "tocsr"):
            raise ValueError(f"path {os.fspath(path)!r} holds no sparse matrix; write one by scipy.sparse.save_npz.")
        return matrix_to_edges(graph, f"path {os.fspath(path)!r}")
    if name.endswith(INPUTS) and not name.endswith(TEXTS):
        raise ValueError(
            f"path {os.fspath(path)!r} must be a text with an edge in each line, or a graph in npz or h5ad; write the "
            "edges as text."
        )
    paths.check_readable(path)
    return _read_text(path, header, n_fields)


def _read_text(path: Path_, header: bool | None, n_fields: tuple[int, ...]) -> Edges:
    """Return the edges of a text; ``n_fields`` are the possible numbers of fields in its first line."""
    text = read_text(path)
    lines, n_before = _first_lines(path, text)
    separator = next((mark for byte, mark in SEPARATORS.items() if byte in lines[0]), r"\s+")
    first = lines[0].decode(errors="replace").partition("#")[0].split(None if separator == r"\s+" else separator)
    if len(first) not in n_fields:
        contents = "an edge has two objects and, if you like, a weight" if 3 in n_fields else "a pair has two objects"
        raise ValueError(
            f"path {os.fspath(path)!r} has {len(first)} field(s) in its first line, where {contents}; write these "
            "columns alone."
        )
    n_lines = len(text) * len(lines) // sum(map(len, lines))
    needed = BYTES_OF_A_LINE * n_lines
    checks.check_memory(needed, device.memory_budget(), f"the edges of {os.fspath(path)!r}", "leave out weak edges")

    def parsed(kind: type, named: bool, **options: Any) -> Any:
        import pandas as pd

        return pd.read_csv(
            io.BytesIO(text) if isinstance(text, bytes) else path,
            sep=separator,
            header=None,
            names=range(len(first)),
            dtype={0: kind, 1: kind, 2: np.float64},
            skiprows=n_before + named,
            comment="#",
            skipinitialspace=True,
            keep_default_na=False,
            na_values=[""],
            compression=None,
            **options,
        )

    # the first line certainly names columns, and it does so if all other lines hold integers
    strange = len(first) == 3 and not is_number(first[2].strip())
    words = not any(WHOLE.fullmatch(end.strip()) for end in first[:2])
    if LEADING_ZERO.search(text) is None:
        # names that are no integers, lines that are no edges, or no line after the first (IndexError of pandas)
        with suppress(ValueError, OverflowError, IndexError):
            return _edges_of_numbers(parsed(np.int64, (strange or words) if header is None else header))
    try:
        return _edges_of_texts(parsed(object, strange if header is None else header, chunksize=LINES))
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"path {os.fspath(path)!r} has lines that are no edges ({checks.gist(error)}); write two objects in each, "
            f"{'and a weight from 0 on' if len(first) == 3 else 'without a weight, as in the first line'}."
        ) from error


def _first_lines(path: Path_, text: Any) -> tuple[list[bytes], int]:
    """Return some lines with edges from the beginning of a text, and the number of lines before them."""
    begin, n_before = 0, 0
    while (end := text.find(b"\n", begin)) >= 0 or begin < len(text):
        end = end if end >= 0 else len(text)
        line = text[begin:end].strip()
        if line and not line.startswith(COMMENTS):
            lines = text[begin : begin + SAMPLE].split(b"\n")
            return [lines[0].strip(b"\r"), *lines[1:-1]], n_before
        begin, n_before = end + 1, n_before + 1
    raise ValueError(f"path {os.fspath(path)!r} has no edges; write two objects in each line.")


def _edges_of_numbers(table: Any) -> Edges:
    """Return the edges of a table of integers and, if there are three columns, weights."""
    if not len(table):
        raise ValueError("the first line is an edge, not names of columns.")
    numbers, names = number_names(table[0].to_numpy(), table[1].to_numpy())
    if names.dtype.kind not in "iu":
        raise OverflowError("names are integers of more than 64 bits.")
    return pairs_to_edges(numbers, table[2].to_numpy() if 2 in table else None, len(names), names)


def _edges_of_texts(pieces: Any) -> Edges:
    """Return the edges of pieces of a table of texts and, if there are three columns, weights.

    The distinct texts of a piece are numbered before they are looked up, because most occur in several lines.
    """
    import pandas as pd

    number_of_text: dict[str, int] = {}
    ends, weights = [], []
    with pieces:
        for piece in pieces:
            if not len(piece):
                raise ValueError("the first line is names of columns, and no edge is below.")
            piece_numbers, distinct = pd.factorize(piece[[0, 1]].to_numpy(dtype=object).ravel())
            if piece_numbers.min() < 0:
                raise ValueError(f"edge {piece.iloc[int(piece_numbers.argmin()) // 2].tolist()} lacks an object.")
            numbers = np.array([number_of_text.setdefault(text.strip(), len(number_of_text)) for text in distinct])
            ends.append(numbers[piece_numbers].reshape(-1, 2))
            if 2 in piece:
                weights.append(piece[2].to_numpy())
    edge_weights = np.concatenate(weights) if weights else None
    return pairs_to_edges(
        np.concatenate(ends), edge_weights, len(number_of_text), pd.Index(number_of_text, dtype=object)
    )
