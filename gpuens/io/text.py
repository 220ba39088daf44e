"""Reading and writing of text tables (csv and tsv): separators, column names, labels and missing fields.

The separator and the column names are given by the caller or detected from the first lines. Labels are read as text:
a column is numeric only if every field is written as a number. So 01 differs from 1, long integers stay exact, and a
cluster may be called NA. Empty fields and the words in ``missing`` mean missing labels; in a numeric column, -1 and nan
do too.
"""

import codecs
import csv
import gzip
import io
import mmap
import operator
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuens.io import paths
from gpuens.io.columns import UNTITLED, Opened, missing_words
from gpuens.labels.object_names import with_row_numbers
from gpuens.labels.odd_labels import LOOKS_MISSING, WHOLE, is_number
from gpuens.runtime import checks, device

SEPARATORS = (",", ";", "\t", "|")
BEGINNING = 2**20  # number of bytes from which the number of rows is estimated
PIECE = 2**16  # number of rows that are read at a time
SAMPLE = 2**16  # number of bytes, from the beginning of a file, from which the layout is detected
FEWEST = 10  # smallest number of lines by which a first line of numbers, or an odd one, is judged
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
FORMULA = re.compile(r"'*[=+\-@\t\r]")  # texts that a spreadsheet would run as formulas, with or without ' before them


class Texts(NamedTuple):
    """The fields of one column: the distinct texts, and for each row the index of its text in ``distinct``."""

    distinct: list[str]
    codes: np.ndarray  # (n_rows,) int32


class Layout(NamedTuple):
    """The layout of a text table."""

    separator: str
    n_first: int  # number of fields in the first line
    n_fields: int  # number of fields in each line after the first
    # names of the columns, except the column of row names; None if the first line holds data
    names: list[Any] | None
    guessed: bool  # whether the first line was taken for names without certainty, so that it may hold labels
    row_names: bool  # whether the first column holds names or numbers of the rows
    decimal: str  # decimal separator, "." or ","


def open_text(
    path: str | os.PathLike[str],
    own: str,
    *,
    sep: str | None = None,
    header: bool | None = None,
    missing: Sequence[str] | None = None,
    features: bool = False,
) -> Opened:
    """Open a text table and detect its layout; ``own`` is the usual separator for the ending of the file name.

    Columns of labels are read as Categoricals of integers, floats or strings; features are read as numbers.

    Raises
    ------
    ValueError, TypeError, MemoryError
        For text that is neither UTF-8 nor UTF-16, NUL bytes, rows of different lengths (with the line's number),
        ambiguous separators or names, and more text than memory.
    """
    _check(sep, header)
    text = content(path)
    layout = _layout(path, text, own, sep, header)
    n_rows = _rows(path, text, layout)
    first = int(layout.row_names)
    names = layout.names if layout.names is not None else list(range(layout.n_fields - first))

    def parsed(positions: list[int], **options: Any) -> Any:
        import pandas as pd

        held = len(text) if isinstance(text, bytes) else 0
        needed = held + n_rows * len(positions) * (8 if features else 4)
        checks.check_memory(needed, device.memory_budget(), f"reading {os.fspath(path)!r}", "read fewer of its columns")
        return pd.read_csv(
            io.BytesIO(text) if isinstance(text, bytes) else path,
            sep=layout.separator,
            header=None,
            skiprows=int(layout.names is not None),
            usecols=sorted({position + first for position in positions}),
            skip_blank_lines=False,  # a blank line is an object without labels
            skipinitialspace=layout.separator != " ",
            compression=None,
            **options,
        )

    def texts(positions: list[int]) -> list[Texts]:
        # texts are read as strings in pieces, because some versions of pandas convert categories to numbers
        options = {"dtype": object, "na_filter": False, "chunksize": PIECE}
        with paths.reading(path), parsed(positions, **options) as pieces:
            return _read_texts(pieces, [position + first for position in positions])

    def labels(positions: list[int]) -> Any:
        import pandas as pd

        found = texts(positions)
        chosen = [names[m] for m in positions]
        if layout.guessed:
            _names_or_labels(path, layout, chosen, found)
        if header is None and layout.names is None and len(found) > 1 and n_rows > FEWEST:
            _warn_of_strange_first(path, found)
        meant = [_parse_column(*column, missing, layout, name) for column, name in zip(found, chosen, strict=True)]
        return pd.DataFrame(dict(enumerate(meant))).set_axis(pd.Index(chosen, dtype=object), axis=1)

    def numbers(positions: list[int]) -> Any:
        import pandas as pd

        # since pandas 3.1, numbers are exact by default, and the option float_precision causes a warning
        exact = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
        options: dict[str, Any] = {"low_memory": False, "decimal": layout.decimal}
        if missing is not None:
            options["na_values"] = missing_words(missing)
        if not exact:
            options["float_precision"] = "round_trip"
        with paths.reading(path):
            found = parsed(positions, **options)[[position + first for position in positions]]
        return found.set_axis(pd.Index([names[m] for m in positions], dtype=object), axis=1)

    def ids(position: int | None) -> Any:
        import pandas as pd

        if position is None and not layout.row_names:
            return None
        with paths.reading(path):  # whole, because a name seldom occurs twice
            found = parsed([-first if position is None else position], dtype=object, na_filter=False).iloc[:, 0]
        of_rows = [unescaped(name) if name[:1] == "'" else name for name in found.tolist()]
        index = pd.Index(of_rows, dtype=object)
        if position is None:
            return with_row_numbers(index)
        return index.rename(names[position] if isinstance(names[position], str) else UNTITLED)

    return Opened(names, numbers if features else labels, ids, 1 + (layout.names is not None))


def outline(
    path: str | os.PathLike[str], own: str, *, sep: str | None = None, header: bool | None = None
) -> tuple[list[Any], int, int, bool] | None:
    """Return the column names, the estimated numbers of rows and bytes, and whether rows have names, of a text table.

    Only its first lines are read; None if the beginning of the file does not contain a whole line.
    """
    _check(sep, header)
    packed = os.fspath(path).lower().endswith(".gz")
    with paths.reading(path), gzip.open(path) if packed else open(path, "rb") as file:
        text = file.read(BEGINNING)
    n_bytes = _unpacked_bytes(path) if packed else os.path.getsize(path)
    whole = len(text) < BEGINNING
    text = text if whole else text[: text.rfind(b"\n") + 1]
    if not text.strip() or text[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return None
    layout = _layout(path, text, own, sep, header)
    n_lines = text.count(b"\n") + (not text.endswith(b"\n"))
    n_rows = n_lines if whole else round(n_lines / len(text) * n_bytes)
    names = layout.names if layout.names is not None else list(range(layout.n_fields - layout.row_names))
    return names, n_rows - (layout.names is not None), n_bytes, layout.row_names


def _unpacked_bytes(path: str | os.PathLike[str]) -> int:
    """Return the size of the text in a gzip file, which its last four bytes hold modulo 4 GiB."""
    with open(path, "rb") as file:
        file.seek(-4, os.SEEK_END)
        return max(int.from_bytes(file.read(4), "little"), os.path.getsize(path))


class TextLines(NamedTuple):
    """The lines of a text table, for tables in which each line is a clustering."""

    names: list[Any]  # names or numbers of the columns, without the column of row names
    row_names: bool
    records: Iterator[list[str]]  # the fields of each line of data, which begin with the row name if there are any
    parse: Callable[[list[str], Any], Any]  # function: fields of a line, its name → a Categorical of labels


def text_lines(
    path: str | os.PathLike[str],
    own: str,
    *,
    sep: str | None = None,
    header: bool | None = None,
    missing: Sequence[str] | None = None,
) -> TextLines:
    """Open a text table as `open_text` does, and return its lines, which are read one after the other."""
    import pandas as pd

    _check(sep, header)
    text = content(path)
    layout = _layout(path, text, own, sep, header)
    n_rows = _rows(path, text, layout)
    needed = len(text) + 8 * n_rows * layout.n_fields
    checks.check_memory(needed, device.memory_budget(), f"reading {os.fspath(path)!r}", "write it as npy")
    names = layout.names if layout.names is not None else list(range(layout.n_fields - layout.row_names))

    def records() -> Iterator[list[str]]:
        lines = io.TextIOWrapper(io.BytesIO(text[:]), encoding="utf-8-sig", newline="")
        reader = csv.reader(lines, delimiter=layout.separator, skipinitialspace=layout.separator != " ")
        if layout.names is not None:
            next(reader)
        for _ in range(n_rows):
            with paths.reading(path):
                fields = [field.strip() for field in next(reader)]
            labels = fields[int(layout.row_names) :]
            if layout.guessed and any(map(operator.eq, names, labels)):
                _names_or_labels(path, layout, names, [Texts([label], np.zeros(1, np.int32)) for label in labels])
            yield fields

    def parse(fields: list[str], name: Any) -> Any:
        codes, distinct = pd.factorize(np.fromiter(fields, object, len(fields)))
        return _parse_column([str(text) for text in distinct], codes, missing, layout, name)

    return TextLines(names, layout.row_names, records(), parse)


def _read_texts(pieces: Iterable[Any], columns: list[int]) -> list[Texts]:
    """Read the texts of ``columns`` from pieces of a table; return `Texts` for each column.

    The distinct texts of a column are in the order in which they first appear.
    """
    import pandas as pd

    known: list[dict[str, int]] = [{} for _ in columns]
    codes: list[list[np.ndarray]] = [[] for _ in columns]
    for piece in pieces:
        for numbers, found, column in zip(known, codes, columns, strict=True):
            of_piece, distinct = pd.factorize(piece[column].to_numpy(dtype=object))
            places = [numbers.setdefault(str(text), len(numbers)) for text in distinct]
            found.append(np.array(places, dtype=np.int32)[of_piece])
    return [Texts(list(numbers), np.concatenate(found)) for numbers, found in zip(known, codes, strict=True)]


def _check(sep: Any, header: Any) -> None:
    if sep is not None and not (isinstance(sep, str) and len(sep) == 1 and sep.isascii() and sep not in '"\r\n\0'):
        raise ValueError(f"sep must be one character that separates fields, such as ';' or '\\t', not {sep!r}.")
    if header is not None and not isinstance(header, bool):
        raise TypeError(f"header must be True if the first line holds names, False if not, or None, not {header!r}.")


# --- layout of the file -----------------------------------------------------------------------------------------------


def content(path: str | os.PathLike[str]) -> Any:
    """Return the text of a file in UTF-8: bytes if it was unpacked or converted, otherwise a memory map of the file."""
    with paths.reading(path):
        text = _unpacked(path) if os.fspath(path).lower().endswith(".gz") else _mapped(path)
        if text[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            text = text[:].decode("utf-16").encode()
    if not text[:SAMPLE].strip(b"\xef\xbb\xbf \r\n"):
        raise ValueError(f"path {os.fspath(path)!r} is empty; write the file again.")
    return text


def _mapped(path: str | os.PathLike[str]) -> Any:
    with open(path, "rb") as file:
        empty = os.fstat(file.fileno()).st_size == 0
        return b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _unpacked(path: str | os.PathLike[str]) -> bytes:
    pieces, size, budget = [], 0, device.memory_budget()
    with gzip.open(path) as packed:
        while piece := packed.read(2**20):
            pieces.append(piece)
            size += len(piece)
            what = f"the unpacked text of {os.fspath(path)!r} so far"
            checks.check_memory(size, budget, what, "write it as npy or parquet")
    return b"".join(pieces)


def _layout(path: str | os.PathLike[str], text: Any, own: str, sep: str | None, header: bool | None) -> Layout:
    end = SAMPLE
    while end < len(text) and text[:end].count(b"\n") < 3:
        end *= 4
    try:
        sample = codecs.getincrementaldecoder("utf-8-sig")().decode(text[:end], end >= len(text))
    except UnicodeDecodeError:
        raise ValueError(
            f"path {os.fspath(path)!r} is not text in UTF-8 or UTF-16; save it in one of these encodings."
        ) from None

    def rows(separator: str) -> list[list[str]]:
        found = [[cell.strip() for cell in row] or [""] for row in _records(sample, separator)]
        # the last line of the sample is dropped, because it may be incomplete
        return found if end >= len(text) or len(found) == 1 else found[:-1]

    separator = _separator(path, rows, own) if sep is None else sep
    found = rows(separator)
    first, others = found[0], found[1:]
    numeric = header is None and all(map(_is_number, first))
    n_empty = next((m for m, cell in enumerate(first) if cell), 0)
    if n_empty > 1 and header is not False and (not numeric or _counts_from_0(first[n_empty:])):
        raise ValueError(
            f"path {os.fspath(path)!r} has {n_empty} empty fields before the names in the first line, as pandas writes "
            "an index of several levels; write the file again with one (reset_index), or say header=False "
            "(--no-header) if that line is an object."
        )
    # whether the first line is one field shorter than the second; R writes tables without a name above the row names
    shorter = header is not False and bool(others) and len(others[0]) == len(first) + 1
    # if a short first line does not look like names of columns, it is incomplete or its labels contain the separator
    if shorter and (numeric or len(first) == 1):
        usual = len(first) > 1 or sep is not None or separator in (own, " ")
        shorter = usual and _all_differ(first) and _all_differ([row[0] for row in others])
    n_fields = len(first) + shorter
    texts = not numeric and not (n_fields == 2 and _is_long(first, others))
    named = header if header is not None else texts or shorter or _are_names(path, first, others)
    names: list[Any] | None = ["", *map(unescaped, first)][-n_fields:] if named else None
    row_names = named and n_fields > 1 and names is not None and names[0] == ""
    if row_names and names is not None:
        names = names[1:]
    if numeric and names and _counts_from_0(names):  # pandas writes the numbers of columns that have no names
        names = list(range(len(names)))
    comma = separator != "," and any(DECIMAL_COMMA.fullmatch(cell) for row in found for cell in row)
    guessed = header is None and not numeric
    return Layout(separator, len(first), n_fields, names, guessed, row_names, "," if comma else ".")


def _records(sample: str, separator: str) -> list[list[str]]:
    """Split each line of the sample into fields, and return the list of fields of each line.

    The limit of the csv module for the length of a field is raised, because with a wrong separator the names of 20,000
    genes are a single field.
    """
    with _ONE_LIMIT:
        before = csv.field_size_limit(len(sample) + 1)
        try:
            lines = io.StringIO(sample, newline="")
            return list(csv.reader(lines, delimiter=separator, skipinitialspace=separator != " "))
        finally:
            csv.field_size_limit(before)


# lock for the csv module's limit for the length of a field, which all threads of the process share
_ONE_LIMIT = threading.Lock()


def _separator(path: str | os.PathLike[str], rows: Any, own: str) -> str:
    """Return the separator that gives rows with equal numbers of fields; raise an error if several separators do."""
    widths = {separator: [len(row) for row in rows(separator)] for separator in SEPARATORS}
    regular = [separator for separator, found in widths.items() if found[0] > 1 and _of_one_length(found)]
    present = [separator for separator, found in widths.items() if max(found) > 1]
    if len(regular) == 1:
        return regular[0]
    if not regular and (own in present or len(present) == 1):
        return own if own in present else present[0]
    if present:
        raise ValueError(
            f"path {os.fspath(path)!r} has an ambiguous separator, {' or '.join(map(repr, regular or present))}; "
            "say which, sep=… (--sep on the command line)."
        )
    blank = rows(" ")
    # whether the first line is one field shorter, as in a table written by R; then row names may be texts
    ragged = 2 < len(blank[0]) + 1 == len(blank[-1])
    numbers = all(_is_number(cell) for row in blank[1:] or blank for cell in row[ragged:])
    return " " if numbers and len(blank[-1]) > 1 and _of_one_length([len(row) for row in blank]) else own


def _of_one_length(widths: list[int]) -> bool:
    """Return whether all rows have equal numbers of fields; the first row may lack the field above the row names."""
    return len(set(widths[1:])) <= 1 and widths[-1] - widths[0] in (0, 1)


def _is_number(cell: str) -> bool:
    """Return whether the text of a cell is a number, is empty, or is a word for a missing value, such as "NA"."""
    return cell.lower() in ("", "na", "n/a", "<na>", "none", "null") or is_number(cell)


def _all_differ(cells: list[str]) -> bool:
    """Return whether no cell is empty and no cell is repeated, so that the cells may be names or ids."""
    return "" not in cells and len(set(cells)) == len(cells)


def _counts_from_0(cells: list[Any]) -> bool:
    return cells == [str(m) for m in range(len(cells))]


def _counts(cells: list[str]) -> bool:
    return _counts_from_0(cells) or cells == [str(m + 1) for m in range(len(cells))]


def _are_names(path: str | os.PathLike[str], first: list[str], others: list[list[str]]) -> bool:
    """Return whether the numbers in the first line are names of columns; warn if this is doubtful."""
    if any(len(row) != len(first) for row in others):
        return False
    if first[0] == "" and len(first) > 1:
        named, certain = _are_beside_ids(first[1:], [row[0] for row in others])
        what = "has an empty first field"
    elif _counts_from_0(first) or (_counts(first) and len(first) != 2):
        # a first line "1,2" is not tested, because it holds labels more often than numbers of columns
        named, certain = _are_alone(first, others)
        what = "counts the columns"
    else:
        return False
    if not certain:
        taken, instead = (
            ("for the names of the columns", "header=False (--no-header) if it is an object")
            if named
            else ("for an object", "header=True (--header) if it names the columns")
        )
        shown = ", ".join(first[:3]) + ", …" * (len(first) > 3)
        checks.warn(f"path {os.fspath(path)!r}: the first line {what} ({shown}) and is taken {taken}; say {instead}.")
    return named


def _are_beside_ids(names: list[str], ids: list[str]) -> tuple[bool, bool]:
    """Return whether the numbers ``names`` are names of columns, and whether this decision is certain.

    The numbers are in a first line that begins with an empty field, as pandas writes it. If the numbers are names, the
    first fields of the other lines, ``ids``, are row names. Otherwise, the first line is an object that has no label in
    the first clustering.
    """
    counted, many, texts = _counts(names), len(ids) >= FEWEST, not all(map(_is_number, ids))
    like_ids = _all_differ(ids) and (texts or all(map(WHOLE.fullmatch, ids)))
    if not _all_differ(names) or not (counted or texts or like_ids):
        return False, True
    if counted and (texts or (like_ids and (many or len(names) > 1 or _counts_from_0(ids)))):
        return True, True
    return like_ids and (texts or many), False


def _are_alone(first: list[str], others: list[list[str]]) -> tuple[bool, bool]:
    """Return whether a first line 0, 1, 2, … (or 1, 2, …) names the columns, and whether this decision is certain.

    If the line were data, the first object would be in clusters 0, 1, 2, …, which mostly have other objects too.
    """
    many = len(others) >= FEWEST
    names = [first[0], *(row[0] for row in others)]
    if len(first) == 2 and _all_differ(names) and all(map(WHOLE.fullmatch, names)):
        return False, True  # numbers of objects beside their labels
    if len(first) > 1:
        alone = any(all(row[m] != cell for row in others) for m, cell in enumerate(first))
        return many and (alone or len(first) > 3), False
    named = many and not any(WHOLE.fullmatch(row[0]) for row in others)
    alone = many and all(row[0] != first[0] for row in others)
    return named, not (named or alone)  # names are never certain, because labels often begin with 0


def _is_long(first: list[str], others: list[list[str]]) -> bool:
    """Return whether the first of some lines, each the name of an object and its label, is such a line itself.

    It holds column names instead if its label occurs nowhere below, unless both fields have digits and are written like
    the fields below.
    """
    names, labels = [row[0] for row in others], [row[-1] for row in others]
    if len(others) < 2 or not _all_differ([first[0], *names]):
        return False
    alike = (
        any(map(str.isdigit, text)) and _form(text) in set(map(_form, below))
        for text, below in zip(first, (names, labels), strict=True)
    )
    return first[1] in labels or all(alike)


def _form(text: str) -> str:
    """Return a text with one letter for each run of letters, and 0 for each number: "bin.12" has the form "a.0"."""
    return re.sub(r"[0-9]+", "0", re.sub(r"[^\W\d_]+", "a", text))


def _rows(path: str | os.PathLike[str], text: Any, layout: Layout) -> int:
    """Return the number of objects in a text table; raise an error if a line has a wrong number of fields."""
    from gpuens.io.fields import NUL, UNPAIRED, find_irregular_row

    begin = len(codecs.BOM_UTF8) if text[:3] == codecs.BOM_UTF8 else 0
    letters = np.frombuffer(text, dtype=np.uint8, offset=begin)
    line, found, n_lines = find_irregular_row(letters, ord(layout.separator), layout.n_first, layout.n_fields)
    where = f"path {os.fspath(path)!r} has"
    if line and found == NUL:
        raise ValueError(f"{where} a NUL byte in line {line}; write the file again, as UTF-8 text without any.")
    if line and found == UNPAIRED:
        raise ValueError(f"{where} a quotation mark in line {line} that is never closed; write the file again.")
    if line and found == 1 and not _line(text, line).strip():
        raise ValueError(
            f"{where} nothing in line {line}, where {layout.n_fields} fields are expected; remove the line."
        )
    if line:
        raise ValueError(
            f"{where} {found} field(s) in line {line}, separated by {layout.separator!r}, where {layout.n_fields} are "
            "expected as in the first lines; correct that line, or give the separator, sep=… (--sep)."
        )
    n_rows: int = n_lines - (layout.names is not None)
    if not n_rows:
        raise ValueError(f"path {os.fspath(path)!r} has names but no objects; write the file again.")
    return n_rows


def _line(text: Any, number: int) -> bytes:
    """Return the line of a text with the given number; lines are counted from 1."""
    start = 0
    for _ in range(number - 1):
        start = text.find(b"\n", start) + 1
    end = text.find(b"\n", start)
    return bytes(text[start : end if end >= 0 else len(text)])


# --- labels in the fields ---------------------------------------------------------------------------------------------


def _parse_column(
    distinct: list[str],
    codes: np.ndarray,
    missing: Sequence[str] | None,
    layout: Layout,
    name: object,
) -> Any:
    """Convert a column of texts to a Categorical of labels, with missing labels as missing values."""
    import pandas as pd

    words = {"", *missing_words(missing)}
    texts = [text.strip() for text in distinct]
    absent = {text for text in texts if text in words or unescaped(text) in words}
    known = [text for text in texts if text not in absent]
    if layout.decimal == ",":
        known = [text.replace(",", ".") if DECIMAL_COMMA.fullmatch(text) else text for text in known]
    strange = [text for text in known if not is_number(text)]
    values: list[Any]
    if not strange:
        values = [int(text) if WHOLE.fullmatch(text) else float(text) for text in known]
        if any(isinstance(value, float) for value in values):
            values = list(map(float, values))
    else:
        suspects = [text for text in known if text.lower() in LOOKS_MISSING]
        if missing is None and suspects and len(strange) < len(known) and set(strange) <= set(suspects):
            raise ValueError(
                f"labels of clustering {name!r} are numbers except {suspects[0]!r}; say missing={suspects!r} "
                f"(--missing {','.join(suspects)!r}) if this means missing, or missing=[] if it is a cluster."
            )
        values = [unescaped(text) for text in known]
        values = values if len(set(values)) == len(set(known)) else list(known)
    places: dict[Any, int] = {}
    code_of = np.full(len(texts), checks.MISSING)
    found = iter(values)
    for code, text in enumerate(texts):
        if text not in absent:
            value = next(found)
            if value == value:  # this is false only for NaN, which is a missing label
                code_of[code] = places.setdefault(value, len(places))
    return pd.Categorical.from_codes(code_of[codes], pd.Index(list(places), dtype=object if strange else None))


def _names_or_labels(path: str | os.PathLike[str], layout: Layout, names: list[Any], columns: list[Texts]) -> None:
    """Raise an error if a field of the first line also occurs below it in its column.

    Then it is unclear whether the first line holds names of columns or labels.
    """
    if layout.names is None or not all(isinstance(name, str) for name in names):
        return
    numbers = [name for name in layout.names if WHOLE.fullmatch(name)]
    if len(numbers) > 2 and _counts(numbers):  # these fields are numbers of columns, not labels
        names = ["" if name in numbers else name for name in names]
    for name, column in zip(names, columns, strict=True):
        if name and name in map(str.strip, column.distinct):
            raise ValueError(
                f"path {os.fspath(path)!r}: {name!r} in the first line is a label of its column too; say header=True "
                "(--header) if the first line holds names, or header=False (--no-header) if it is an object."
            )


def _warn_of_strange_first(path: str | os.PathLike[str], columns: list[Texts]) -> None:
    """Warn if no label of the first line occurs in another line, because then the first line may hold column names."""
    first = [column.distinct[0] for column in columns]
    if _all_differ(first) and all(np.count_nonzero(column.codes == 0) == 1 for column in columns):
        checks.warn(
            f"path {os.fspath(path)!r}: the first line ({', '.join(first[:3])}{', …' * (len(first) > 3)}) has labels "
            "of no other object; say header=True (--header) if it names the columns, or header=False (--no-header) if "
            "it does not."
        )


# --- strings that a spreadsheet would run as formulas -----------------------------------------------------------------


def escaped(text: str) -> str:
    """Return a label with ' before it if a spreadsheet would run the label as a formula; `unescaped` removes the '."""
    return f"'{text}" if FORMULA.match(text) else text


def unescaped(text: str) -> str:
    return text[1:] if text[:1] == "'" and FORMULA.match(text) else text


def as_text(frame: Any) -> Any:
    """Return a table of labels in which strings and names are escaped for a text file.

    Raise an error for strings that a text file does not preserve, such as empty strings.
    """
    import pandas as pd

    def safe(values: Any) -> Any:
        strings = {value: escaped(value) for value in pd.unique(values) if isinstance(value, str)}
        for value in strings:
            if value != value.strip() or not value or "\0" in value:
                raise ValueError(
                    f"labels hold {value!r}, but text files do not preserve empty strings or blanks around them; "
                    "write parquet or npy."
                )
        return values.map(strings) if strings else values

    found = frame.set_axis(safe(frame.index), axis=0) if frame.index.dtype.kind == "O" else frame
    columns = {m: safe(frame.iloc[:, m]) for m in range(frame.shape[1])}
    ready = pd.DataFrame(columns).set_axis([escaped(str(name)) for name in frame.columns], axis=1)
    title = frame.index.name
    return ready.set_axis(found.index.rename(None if title is None else escaped(str(title))), axis=0)
