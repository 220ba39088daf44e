"""Reading of text tables, such as csv and tsv: labels, missing fields and the names of objects.

Labels are read as text: a column is numeric only if every field is written as a number. So 01 differs from 1, and long
integers stay exact. Empty fields, the words of `NA_WORDS` and those in ``missing`` mean missing labels; in a numeric
column, -1 and nan do too.
"""

import codecs
import csv
import io
import operator
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from gpuens.io import paths
from gpuens.io.columns import UNTITLED, Opened, missing_words
from gpuens.io.content import open_unpacked, unpacked_bytes
from gpuens.io.formulas import unescaped
from gpuens.io.layout import DECIMAL_COMMA, FEWEST, Layout, all_differ, counts_columns, find_layout
from gpuens.labels.object_names import with_row_numbers
from gpuens.labels.odd_labels import LOOKS_MISSING, WHOLE, is_number
from gpuens.runtime import checks, device

BEGINNING = 2**20  # number of bytes from which the number of rows is estimated
PIECE = 2**16  # number of rows that are read at a time
# words by which programs write a missing value: R, pandas, Excel and NumPy; pandas and R read them as missing, too
NA_WORDS = ("NA", "<NA>", "N/A", "#N/A", "NaN", "nan")


class Texts(NamedTuple):
    """The fields of one column: the distinct texts, and for each row the index of its text in ``distinct``."""

    distinct: list[str]
    codes: np.ndarray  # (n_rows,) int32


def open_text(
    path: str | os.PathLike[str],
    usual: str,
    *,
    sep: str | None = None,
    header: bool | None = None,
    missing: Sequence[str] | None = None,
    no_missing: Sequence[str] | None = None,
    features: bool = False,
) -> Opened:
    """Open a text table and detect its layout; ``usual`` is the usual separator for the ending of the file name.

    Columns of labels are read as Categoricals of integers, floats or strings; features are read as numbers.

    Raises
    ------
    ValueError, TypeError, MemoryError
        For text that is neither UTF-8 nor UTF-16, NUL bytes, rows of different lengths (with the line's number),
        ambiguous separators or names, and more text than memory.
    """
    layout = find_layout(path, usual, sep, header)
    text, n_rows, first = layout.text, layout.n_rows, int(layout.row_names)
    names = _names_of(layout)

    @contextmanager
    def parsed(positions: list[int], **options: Any) -> Iterator[Any]:
        import pandas as pd

        held = len(text) if isinstance(text, bytes) else 0
        needed = held + n_rows * len(positions) * (8 if features else 4)
        checks.check_memory(needed, device.memory_budget(), f"reading {os.fspath(path)!r}", "read fewer of its columns")
        with paths.reading(path), io.BytesIO(text) if held else open(path, "rb") as file:
            file.seek(layout.begin)
            yield pd.read_csv(
                file,
                sep=layout.separator,
                header=None,
                usecols=sorted({position + first for position in positions}),
                nrows=n_rows,
                skip_blank_lines=False,  # a blank line is an object without labels
                skipinitialspace=layout.separator != " ",
                **options,
            )

    def texts(positions: list[int]) -> list[Texts]:
        # texts are read as strings in pieces, because some versions of pandas convert categories to numbers
        with parsed(positions, dtype=object, na_filter=False, chunksize=PIECE) as pieces:
            return _read_texts(pieces, [position + first for position in positions])

    def labels(positions: list[int]) -> Any:
        import pandas as pd

        found = texts(positions)
        chosen = [names[m] for m in positions]
        if layout.guessed:
            _names_or_labels(path, layout, chosen, found)
        if header is None and layout.names is None and len(found) > 1 and n_rows > FEWEST:
            _warn_of_strange_first(path, found)
        words = Words(missing, no_missing)
        meant = [_parse_column(*column, words, layout, name) for column, name in zip(found, chosen, strict=True)]
        words.warn_of_na(path)
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
        with parsed(positions, **options) as table:
            found = table[[position + first for position in positions]]
        return found.set_axis(pd.Index([names[m] for m in positions], dtype=object), axis=1)

    def ids(position: int | None) -> Any:
        import pandas as pd

        if position is None and not layout.row_names:
            return None
        # whole, because a name seldom occurs twice
        with parsed([-first if position is None else position], dtype=object, na_filter=False) as table:
            found = table.iloc[:, 0]
        of_rows = [unescaped(name) if name[:1] == "'" else name for name in found.tolist()]
        index = pd.Index(of_rows, dtype=object)
        if position is None:
            return with_row_numbers(index)
        return index.rename(names[position] if isinstance(names[position], str) else UNTITLED)

    return Opened(names, numbers if features else labels, ids, layout.first_line)


def outline(
    path: str | os.PathLike[str], usual: str, *, sep: str | None = None, header: bool | None = None
) -> tuple[list[Any], int, int, bool] | None:
    """Return the column names, the estimated numbers of rows and bytes, and whether rows have names, of a text table.

    Only its first lines are read; None if the beginning of the file does not contain a whole line, or if the size of
    the unpacked text is unknown.
    """
    with paths.reading(path), open_unpacked(path) as file:
        text = file.read(BEGINNING)
    whole = len(text) < BEGINNING
    n_bytes = len(text) if whole else unpacked_bytes(path)
    text = text if whole else text[: text.rfind(b"\n") + 1]
    if n_bytes is None or not text.strip() or text[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return None
    layout = find_layout(path, usual, sep, header, text=text)
    n_rows = layout.n_rows if whole else round(layout.n_rows / len(text) * n_bytes)
    return _names_of(layout), n_rows, n_bytes, layout.row_names


def _names_of(layout: Layout) -> list[Any]:
    return layout.names if layout.names is not None else list(range(layout.n_fields - layout.row_names))


class TextLines(NamedTuple):
    """The lines of a text table, for tables in which each line is a clustering."""

    names: list[Any]  # names or numbers of the columns, without the column of row names
    row_names: bool
    records: Iterator[list[str]]  # the fields of each line of data, which begin with the row name if there are any
    parse: Callable[[list[str], Any], Any]  # function: fields of a line, its name → a Categorical of labels
    words: "Words"


def text_lines(
    path: str | os.PathLike[str],
    usual: str,
    *,
    sep: str | None = None,
    header: bool | None = None,
    missing: Sequence[str] | None = None,
    no_missing: Sequence[str] | None = None,
) -> TextLines:
    """Open a text table as `open_text` does, and return its lines, which are read one after the other."""
    import pandas as pd

    layout, words = find_layout(path, usual, sep, header), Words(missing, no_missing)
    needed = len(layout.text) + 8 * layout.n_rows * layout.n_fields
    checks.check_memory(needed, device.memory_budget(), f"reading {os.fspath(path)!r}", "write it as npy")
    names = _names_of(layout)

    def records() -> Iterator[list[str]]:
        lines = io.TextIOWrapper(io.BytesIO(layout.text[layout.begin :]), encoding="utf-8-sig", newline="")
        reader = csv.reader(lines, delimiter=layout.separator, skipinitialspace=layout.separator != " ")
        for _ in range(layout.n_rows):
            with paths.reading(path):
                fields = [field.strip() for field in next(reader)][: layout.n_fields]
            labels = fields[int(layout.row_names) :]
            if layout.guessed and any(map(operator.eq, names, labels)):
                _names_or_labels(path, layout, names, [Texts([label], np.zeros(1, np.int32)) for label in labels])
            yield fields

    def parse(fields: list[str], name: Any) -> Any:
        codes, distinct = pd.factorize(np.fromiter(fields, object, len(fields)))
        return _parse_column([str(text) for text in distinct], codes, words, layout, name)

    return TextLines(names, layout.row_names, records(), parse, words)


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


# --- labels in the fields ---------------------------------------------------------------------------------------------


class Words:
    """The words for missing labels in the fields of a table, and how many fields hold those of `NA_WORDS`."""

    def __init__(self, missing: Sequence[str] | None, no_missing: Sequence[str] | None) -> None:
        named, self.labels = set(missing_words(missing)), set(missing_words(no_missing))
        if both := named & self.labels:
            raise ValueError(f"missing and no_missing both have {min(both)!r}; leave it out of one (--no-missing).")
        self.are_given = missing is not None
        self.missing = ({"", *NA_WORDS} - self.labels) | named
        self._unnamed = set(NA_WORDS) - named
        self._counts: Counter[str] = Counter()
        self._columns: list[str] = []

    def count(self, text: str, n_fields: int, name: object) -> None:
        """Count the fields of a column with a word for missing, if it is one of `NA_WORDS` and not in ``missing``."""
        if text in self._unnamed and n_fields:
            self._counts[text] += n_fields
            if str(name) not in self._columns:
                self._columns.append(str(name))

    def warn_of_na(self, path: str | os.PathLike[str]) -> None:
        """Warn about the counted fields."""
        if self._counts:
            words = list(self._counts)
            checks.warn(
                f"path {os.fspath(path)!r}: {self._counts.total():,} field(s) {' or '.join(words)} in "
                f"{checks.listed(self._columns)} are missing labels; say no_missing={words!r} (--no-missing "
                f"{','.join(words)!r}) if a cluster is called so."
            )


def _parse_column(
    distinct: list[str],
    codes: np.ndarray,
    words: Words,
    layout: Layout,
    name: object,
) -> Any:
    """Convert a column of texts to a Categorical of labels, with missing labels as missing values."""
    import pandas as pd

    texts = [text.strip() for text in distinct]
    absent = {text for text in texts if text in words.missing or unescaped(text) in words.missing}
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
        suspects = [text for text in known if text.lower() in LOOKS_MISSING and text not in words.labels]
        if not words.are_given and suspects and len(strange) < len(known) and set(strange) <= set(suspects):
            raise ValueError(
                f"labels of clustering {name!r} are numbers except {suspects[0]!r}; say missing={suspects!r} "
                f"(--missing {','.join(suspects)!r}) if this means missing, or missing=[] if it is a cluster."
            )
        values = [unescaped(text) for text in known]
        values = values if len(set(values)) == len(set(known)) else list(known)
    counts = np.bincount(codes, minlength=len(texts))
    for text, n_fields in zip(texts, counts.tolist(), strict=True):
        if text in absent and (strange or not is_number(text)):  # nan among numbers is no surprise
            words.count(text, n_fields, name)
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
    if len(numbers) > 2 and counts_columns(numbers):  # these fields are numbers of columns, not labels
        names = ["" if name in numbers else name for name in names]
    for name, column in zip(names, columns, strict=True):
        if name and name in map(str.strip, column.distinct):
            raise ValueError(
                f"path {os.fspath(path)!r}: {name!r} in the first line is a label of its column too; say header=True "
                "(--header) if the first line holds names, or header=False (--no-header) if it is an object."
            )


def _warn_of_strange_first(path: str | os.PathLike[str], columns: list[Texts]) -> None:
    """Warn if no label of the first line occurs in another line, because then the first line may hold column names."""
    n_rows = len(columns[0].codes)
    if all(2 * len(column.distinct) > n_rows for column in columns):  # numbers such as memberships, and no labels
        return
    first = [column.distinct[0] for column in columns]
    if all_differ(first) and all(np.count_nonzero(column.codes == 0) == 1 for column in columns):
        checks.warn(
            f"path {os.fspath(path)!r}: the first line ({', '.join(first[:3])}{', …' * (len(first) > 3)}) has labels "
            "of no other object; say header=True (--header) if it names the columns, or header=False (--no-header) if "
            "it does not."
        )
