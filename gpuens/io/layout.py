"""The layout of a text table: comments before it, its separator, its column names, and the lines with data.

The separator and the column names are given by the caller or detected from the first lines.

The first line names the columns if one of its fields is no number, or if it has one field less than the next line, as R
writes it. Two kinds of lines with texts are objects nevertheless: one whose numbers, above numbers, repeat or have many
decimals, and one of two fields that are like the name of an object and its label below. A first line of numbers is an
object, unless it counts the columns, 0, 1, 2, … or 1, 2, 3, …, or begins with an empty field above names of rows.
Doubtful names are a warning, and so is a count that is taken for an object.
"""

import codecs
import csv
import io
import operator
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from gpuens.io.content import read_text
from gpuens.io.formulas import unescaped
from gpuens.io.paths import Path_
from gpuens.labels.odd_labels import WHOLE, is_number
from gpuens.runtime import checks, device
from gpuens.runtime.native import cpu

SEPARATORS = (",", ";", "\t", "|")
FEWEST = 10  # smallest number of lines by which a first line of numbers, or an odd one, is judged
SAMPLE = 2**16  # number of bytes, from the first line of a table, from which the layout is detected
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
MANY_DECIMALS = re.compile(r"[+-]?[0-9]*\.[0-9]{3,}(e[+-]?[0-9]+)?", re.IGNORECASE)
EXCEL_SEPARATOR = re.compile(
    rb'"?sep=([,;\t| ])"?', re.IGNORECASE
)  # first line by which a table tells Excel its separator
Q2_TYPES = b"#q2:"  # beginning of QIIME 2's line of column types, after the names
QUOTED_OR_BLANKS = re.compile(rb'("[^"\n]*")|[ \t]+')
# values that `find_irregular_row` returns instead of a number of fields: for a NUL byte, and for a quotation mark that
# is never closed
NUL, UNPAIRED = -1, -2
SURPLUS_BLANKS = (b"  ", b"\t", b"\n ", b" \n", b" \r")


class Layout(NamedTuple):
    """The layout of a text table."""

    text: Any  # bytes or a memory map; between fields that blanks separate, it has single blanks
    separator: str
    begin: int  # offset of the first line with data
    first_line: int  # number of this line in the file
    n_rows: int
    n_fields: int  # number of fields in each line with data, without an empty one after a trailing separator
    # names of the columns, except the column of row names; None if they are not named
    names: list[Any] | None
    guessed: bool  # whether the first line was taken for names without certainty, so that it may hold labels
    row_names: bool  # whether the first column holds names or numbers of the rows
    decimal: str  # decimal separator, "." or ","


def find_layout(path: Path_, usual_separator: str, sep: str | None, header: bool | None, *, text: Any = None) -> Layout:
    """Return the layout of a text table; ``usual_separator`` is the usual separator for the ending of the file name.

    ``text`` is the text of the file, or its first lines, if it has been read.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `text.open_text`.
    """
    _check_options(sep, header)
    text = read_text(path) if text is None else text
    comments, begin, of_excel = _lines_before(text)
    n_before = _count_lines(text, begin)
    sample = _sample(path, text, begin)
    sep = of_excel if sep is None else sep
    separator = _separator(path, sample.records, usual_separator) if sep is None else sep
    if separator == " " and any(text.find(blanks, begin) >= 0 for blanks in SURPLUS_BLANKS):
        needed = len(text) - begin
        checks.check_memory(needed, device.memory_budget(), f"the text of {os.fspath(path)!r}", "write it as csv")
        text, begin = _with_single_blanks(text[begin:]), 0
        sample = _sample(path, text, begin)
    first, *rows = sample.records(separator)
    trailing = _has_trailing_separators(text, begin, separator, first, rows)
    if trailing:
        n_fields = len(rows[0]) - 1
        first, rows = first[:n_fields], [row[:n_fields] for row in rows]
    names = None if header is False or not comments else _names_in_comment(comments[-1], separator, first, rows)
    if names is not None:
        header_names = _Names(names, len(first), False)
    else:
        header_names = _names_in_first(
            path, first, rows, certain=sep is not None or separator in (usual_separator, " "), header=header
        )
        if header_names.names is not None:
            length = sample.first_bytes(separator)
            if b"\0" in text[begin : begin + length]:
                _refuse_nul(path, n_before + 1)
            begin, n_before = begin + length, n_before + _count_lines(text[begin : begin + length], length)
            if text[begin : begin + len(Q2_TYPES)] == Q2_TYPES and (end := text.find(b"\n", begin)) >= 0:
                begin, n_before = end + 1, n_before + 1
    names = header_names.names
    row_names = names is not None and len(names) > 1 and names[0] == ""
    if row_names and names is not None:
        names = names[1:]
    numeric = header is None and all(map(_is_number, first))
    if numeric and names and _counts_from_0(names):  # pandas writes the numbers of columns that have no names
        names = list(range(len(names)))
    n_rows = _check_rows(path, text, begin, n_before, separator, header_names.n_fields + trailing)
    n_rows -= _n_empty_at_end(path, text, begin, separator, rows)
    comma = separator != "," and any(DECIMAL_COMMA.fullmatch(cell) for row in (first, *rows) for cell in row)
    guessed = header_names.guessed and not numeric
    return Layout(
        text,
        separator,
        begin,
        n_before + 1,
        n_rows,
        header_names.n_fields,
        names,
        guessed,
        row_names,
        "," if comma else ".",
    )


def _check_options(sep: Any, header: Any) -> None:
    if sep is not None and not (isinstance(sep, str) and len(sep) == 1 and sep.isascii() and sep not in '"\r\n\0'):
        raise ValueError(f"sep must be one character that separates fields, such as ';' or '\\t', not {sep!r}.")
    if header is not None and not isinstance(header, bool):
        raise TypeError(f"header must be True if the first line holds names, False if not, or None, not {header!r}.")


# --- lines before the table -------------------------------------------------------------------------------------------


def _lines_before(text: Any) -> tuple[list[bytes], int, str | None]:
    """Return the comment lines before a table, the offset of the line after them, and the separator named for Excel.

    Lines that begin with # are comments, unless all do.
    """
    start = len(codecs.BOM_UTF8) if text[:3] == codecs.BOM_UTF8 else 0
    newline = b"\n" if text.find(b"\n", 0, SAMPLE) >= 0 else b"\r"
    comments, separator, begin = [], None, start
    while begin < len(text):
        end = text.find(newline, begin)
        end = end if end >= 0 else len(text)
        line = text[begin:end].strip(b"\r\n")
        if begin == start and (named := EXCEL_SEPARATOR.fullmatch(line)):
            separator = named[1].decode()
        elif line.startswith(b"#"):
            comments.append(line)
        elif line.strip() or not comments:
            return comments, begin, separator
        begin = end + 1
    return [], start, None


def _count_lines(text: Any, end: int) -> int:
    """Return the number of lines in the first ``end`` bytes of a text."""
    return len(bytes(text[:end]).splitlines())


def _names_in_comment(comment: bytes, separator: str, first: list[str], rows: list[list[str]]) -> list[Any] | None:
    """Return the names of the columns in the last comment line, or None.

    It holds them if it has as many fields as the table, and the line after it holds data: a number, or a text that is
    there again below.
    """
    line = comment.decode(errors="replace").lstrip("#").strip(" ")
    with _reader(line, separator) as (reader, _):
        names = [unescaped(cell.strip()) for cell in next(reader, [])]
    below = [{row[m] for row in rows if m < len(row)} for m in range(len(first))]
    is_data = any(map(_is_number, first)) or any(map(operator.contains, below, first))
    return names if len(names) == len(first) and all_differ(names) and is_data else None


# --- separators -------------------------------------------------------------------------------------------------------


class _Sample(NamedTuple):
    """The first lines of a table."""

    text: str
    is_whole: bool  # whether the table has no further lines

    def records(self, separator: str) -> list[list[str]]:
        """Return the fields of each line."""
        text = self.text
        if separator == " ":
            text = _with_single_blanks(text.encode()).decode()
        with _reader(text, separator) as (rows, _):
            fields = [[cell.strip() for cell in row] or [""] for row in rows]
        # the last line of the sample is dropped, because it may be incomplete
        return fields if self.is_whole or len(fields) == 1 else fields[:-1]

    def first_bytes(self, separator: str) -> int:
        """Return the number of bytes of the first record, which has several lines if a quoted field has."""
        with _reader(self.text, separator) as (rows, lines):
            next(rows)
            return len(self.text[: lines.tell()].encode())


def _sample(path: Path_, text: Any, begin: int) -> _Sample:
    length = SAMPLE
    while begin + length < len(text) and text[begin : begin + length].count(b"\n") < 3:
        length *= 4
    is_whole = begin + length >= len(text)
    try:
        return _Sample(codecs.getincrementaldecoder("utf-8")().decode(text[begin : begin + length], is_whole), is_whole)
    except UnicodeDecodeError:
        raise ValueError(
            f"path {os.fspath(path)!r} is not text in UTF-8 or UTF-16; save it in one of these encodings."
        ) from None


# lock for the csv module's limit for the length of a field, which all threads of the process share
_ONE_LIMIT = threading.Lock()


@contextmanager
def _reader(text: str, separator: str) -> Iterator[tuple[Any, io.StringIO]]:
    """Yield a reader of the fields of each line of a text, and the text as a file.

    The limit of the csv module for the length of a field is raised, because with a wrong separator the names of 20,000
    genes are a single field.
    """
    with _ONE_LIMIT:
        before = csv.field_size_limit(len(text) + 1)
        try:
            lines = io.StringIO(text, newline="")
            yield csv.reader(lines, delimiter=separator, skipinitialspace=separator != " "), lines
        finally:
            csv.field_size_limit(before)


def _separator(path: Path_, rows: Any, usual_separator: str) -> str:
    """Return the separator that gives rows with equal numbers of fields; raise an error if several separators do."""
    widths = {separator: [len(row) for row in rows(separator)] for separator in SEPARATORS}
    regular = [separator for separator, numbers in widths.items() if numbers[0] > 1 and _have_one_length(numbers)]
    present = [separator for separator, numbers in widths.items() if max(numbers) > 1]
    if len(regular) == 1:
        return regular[0]
    if not regular and (usual_separator in present or len(present) == 1):
        return usual_separator if usual_separator in present else present[0]
    if present:
        raise ValueError(
            f"path {os.fspath(path)!r} has an ambiguous separator, {' or '.join(map(repr, regular or present))}; "
            "say which, sep=… (--sep on the command line)."
        )
    return " " if _blanks_separate(rows(" ")) else usual_separator


def _blanks_separate(rows: list[list[str]]) -> bool:
    """Return whether blanks separate fields: numbers, or different row names before other fields."""
    below = rows[1:] or rows
    if len(below[0]) < 2 or not _have_one_length([len(row) for row in rows]):
        return False
    # whether the first line is one field shorter, as in a table written by R; then row names may be texts
    ragged = 2 < len(rows[0]) + 1 == len(below[0])
    numbers = [all(map(_is_number, column)) for column in zip(*below, strict=True)]
    names = all_differ([row[0] for row in below]) and (any(numbers[1:]) or len(below) >= FEWEST)
    return all(numbers[ragged:]) or names


def _with_single_blanks(text: bytes) -> bytes:
    """Return a text with a single blank for each run of blanks and tabs outside of quotes, and none around a line."""
    if b'"' in text:
        text = QUOTED_OR_BLANKS.sub(lambda match: match[1] or b" ", text)
    else:
        text = text.replace(b"\t", b" ")
        while b"  " in text:
            text = text.replace(b"  ", b" ")
    for end in (b"\n", b"\r"):
        text = text.replace(b" " + end, end).replace(end + b" ", end)
    return text.strip(b" ")


def _has_trailing_separators(text: Any, begin: int, separator: str, first: list[str], rows: list[list[str]]) -> bool:
    """Return whether each line ends with a separator that no field follows; the first line, of names, may lack it."""
    if separator == " " or not rows or any(len(row) < 3 or row[-1] for row in rows):
        return False
    named = len(first) == len(rows[0]) and first[-1] != ""
    if named or len(first) not in (len(rows[0]), len(rows[0]) - 1):
        return False
    second = text.find(b"\n", begin) + 1 if len(first) < len(rows[0]) else begin
    return re.compile(rb"[^\s" + re.escape(separator.encode()) + rb"][ \t]*(?:[\r\n]|\Z)").search(text, second) is None


# --- names of the columns ---------------------------------------------------------------------------------------------


class _Names(NamedTuple):
    """The names of the columns, "" for row names, or None; the number of fields; and whether the names are a guess."""

    names: list[Any] | None
    n_fields: int
    guessed: bool


def _names_in_first(
    path: Path_, first: list[str], rows: list[list[str]], *, certain: bool, header: bool | None
) -> _Names:
    """Return the names of the columns if the first line holds them; ``certain``: the separator is certain."""
    numeric = header is None and all(map(_is_number, first))
    n_empty = next((m for m, cell in enumerate(first) if cell), 0)
    if n_empty > 1 and header is not False and (not numeric or _counts_from_0(first[n_empty:])):
        raise ValueError(
            f"path {os.fspath(path)!r} has {n_empty} empty fields before the names in the first line, as pandas writes "
            "an index of several levels; write the file again with one (reset_index), or say header=False "
            "(--no-header) if that line is an object."
        )
    # whether the first line is one field shorter than the second; R writes tables without a name above the row names
    shorter = header is not False and bool(rows) and len(rows[0]) == len(first) + 1
    # if a short first line does not look like names of columns, it is incomplete or its labels contain the separator
    if shorter and (numeric or len(first) == 1):
        shorter = (len(first) > 1 or certain) and all_differ(first) and all_differ([row[0] for row in rows])
    n_fields = len(first) + shorter
    data = (len(first) == n_fields == 2 and _is_long(first, rows)) or _has_data_numbers(first, rows)
    texts = not numeric and not data
    named = header if header is not None else texts or shorter or _are_numbers_names(path, first, rows)
    names: list[Any] | None = ["", *map(unescaped, first)][-n_fields:] if named else None
    return _Names(names, n_fields, header is None)


def _have_one_length(widths: list[int]) -> bool:
    """Return whether all rows have equal numbers of fields; the first row may lack the field above the row names."""
    return len(set(widths[1:])) <= 1 and widths[-1] - widths[0] in (0, 1)


def _is_number(cell: str) -> bool:
    """Return whether the text of a cell is a number, is empty, or is a word for a missing value, such as "NA"."""
    return cell.lower() in ("", "na", "n/a", "<na>", "none", "null") or is_number(cell)


def all_differ(cells: list[str]) -> bool:
    """Return whether no cell is empty and no cell is repeated, so that the cells may be names or ids."""
    return "" not in cells and len(set(cells)) == len(cells)


def _counts_from_0(cells: list[Any]) -> bool:
    return cells == [str(m) for m in range(len(cells))]


def counts_columns(cells: list[str]) -> bool:
    return _counts_from_0(cells) or cells == [str(m + 1) for m in range(len(cells))]


def _are_numbers_names(path: Path_, first: list[str], rows: list[list[str]]) -> bool:
    """Return whether the numbers in the first line are names of columns; warn if this is doubtful.

    Behind an empty field, which pandas writes above row names, they are if the first fields of the other lines are
    different texts or whole numbers; for numbers that count the columns, any texts are enough. Without it, they are if
    they count more than three columns, or if a count has a number that no other line has in this column, though the
    column repeats values or has others than whole numbers. A first line "1,2" holds labels more often.
    """
    if any(len(row) != len(first) for row in rows):
        return False
    columns = list(zip(*rows, strict=True))
    if first[0] == "" and len(first) > 1:
        names, ids = first[1:], list(columns[0]) if columns else []
        texts, counts = not all(map(_is_number, ids)), counts_columns(names)
        are_ids = all_differ(ids) and (texts or all(map(WHOLE.fullmatch, ids)))
        named = all_differ(names) and (are_ids or (texts and counts))
        if counts or not named:
            return named
        sign = "has an empty first field"
    elif _counts_from_0(first) or (counts_columns(first) and len(first) > 2):
        are_alone = [
            cell not in column and not (all_differ(list(column)) and all(map(WHOLE.fullmatch, column)))
            for cell, column in zip(first, columns, strict=True)
        ]
        named = len(first) > 3 or (any(are_alone) and len(rows) >= FEWEST)
        if len(first) == 1 and not named:  # labels often begin with 0
            return False
        sign = "counts the columns"
    else:
        return False
    role, advice = (
        ("for the names of the columns", "header=False (--no-header) if it is an object")
        if named
        else ("for an object", "header=True (--header) if it names the columns")
    )
    start = ", ".join(first[:3]) + ", …" * (len(first) > 3)
    checks.warn(f"path {os.fspath(path)!r}: the first line {sign} ({start}) and is taken {role}; say {advice}.")
    return named


def _is_long(first: list[str], rows: list[list[str]]) -> bool:
    """Return whether the first of some lines, each the name of an object and its label, is such a line itself.

    It holds column names instead if its label occurs nowhere below, unless both fields have digits and are written like
    the fields below.
    """
    names, labels = [row[0] for row in rows], [row[-1] for row in rows]
    if len(rows) < 2 or not all_differ([first[0], *names]):
        return False
    alike = (
        any(map(str.isdigit, text)) and _form(text) in set(map(_form, below))
        for text, below in zip(first, (names, labels), strict=True)
    )
    return first[1] in labels or all(alike)


def _has_data_numbers(first: list[str], rows: list[list[str]]) -> bool:
    """Return whether the numbers of the first line, in columns of numbers, are data: names differ and are short."""
    numbers = [
        cell
        for m, cell in enumerate(first)
        if is_number(cell) and all(len(row) > m and _is_number(row[m]) for row in rows)
    ]
    return bool(rows and numbers) and (not all_differ(numbers) or all(map(MANY_DECIMALS.fullmatch, numbers)))


def _form(text: str) -> str:
    """Return a text with one letter for each run of letters, and 0 for each number: "bin.12" has the form "a.0"."""
    return re.sub(r"[0-9]+", "0", re.sub(r"[^\W\d_]+", "a", text))


# --- rows -------------------------------------------------------------------------------------------------------------


def _check_rows(path: Path_, text: Any, begin: int, n_before: int, separator: str, n_fields: int) -> int:
    """Return the number of lines with data; raise an error if one has a wrong number of fields.

    ``n_before`` is the number of lines before those with data.
    """
    if begin >= len(text):
        raise ValueError(f"path {os.fspath(path)!r} has names but no objects; write the file again.")
    letters = np.frombuffer(text, dtype=np.uint8, offset=begin)
    line, n_found, n_rows = find_irregular_row(letters, ord(separator), n_fields, n_fields)
    where, number = f"path {os.fspath(path)!r} has", n_before + line
    if line and n_found == NUL:
        _refuse_nul(path, number)
    if line and n_found == UNPAIRED:
        raise ValueError(f"{where} a quotation mark in line {number} that is never closed; write the file again.")
    if line and n_found == 1 and not _line(text, begin, line).strip():
        raise ValueError(f"{where} nothing in line {number}, where {n_fields} fields are expected; remove the line.")
    if line:
        raise ValueError(
            f"{where} {n_found} field(s) in line {number}, separated by {separator!r}, where {n_fields} are "
            "expected as in the first lines; correct that line, or give the separator, sep=… (--sep)."
        )
    return n_rows


def find_irregular_row(text: np.ndarray, separator: int, n_first: int, n_fields: int) -> tuple[int, int, int]:
    """Find the first row that has a wrong number of fields; return its line, its number of fields, and the rows before.

    The first row must have ``n_first`` fields, and every other row ``n_fields``. Lines are counted from 1; the returned
    line is 0 if all rows are regular. The returned number of fields is ``NUL`` if the line has a NUL byte, and
    ``UNPAIRED`` if it has a quotation mark that is never closed. The third returned number counts the rows before the
    irregular row. ``text`` is an array of bytes (uint8), ``separator`` a byte. Rows end and fields are quoted as in
    pandas' parser: a quotation mark at the beginning of a field opens a quoted field; elsewhere it is an ordinary
    character.
    """
    return cpu.find_irregular_row(text, separator, n_first, n_fields)


def _refuse_nul(path: Path_, line: int) -> None:
    raise ValueError(
        f"path {os.fspath(path)!r} has a NUL byte in line {line}; write the file again, as UTF-8 text without any."
    )


def _line(text: Any, begin: int, number: int) -> bytes:
    """Return the line of a text with the given number; lines are counted from 1, from the offset ``begin`` on."""
    for _ in range(number - 1):
        begin = text.find(b"\n", begin) + 1
    end = text.find(b"\n", begin)
    return bytes(text[begin : end if end >= 0 else len(text)])


def _n_empty_at_end(path: Path_, text: Any, begin: int, separator: str, rows: list[list[str]]) -> int:
    """Return the number of rows without any field at the end of a table with row names, as Excel may leave them; warn.

    Without row names, such a row may be an object without labels.
    """
    names = [row[0] for row in rows if any(row)]
    if separator == " " or len(names) < 2 or not all_differ(names) or all(map(_is_number, names)):
        return 0
    n_empty = 0
    for line in reversed(bytes(text[max(begin, len(text) - SAMPLE) :]).splitlines()):
        if separator.encode() not in line or line.strip(separator.encode() + b' "\t'):
            break
        n_empty += 1
    if n_empty:
        checks.warn(
            f"path {os.fspath(path)!r}: {n_empty} row(s) at the end have no field, and are left out; remove the lines."
        )
    return n_empty
