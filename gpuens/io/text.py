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
from gpuens.io.columns import NO_OPTIONS, UNTITLED, Opened, TextOptions, missing_words
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
    path: str | os.PathLike[str], usual_separator: str, options: TextOptions = NO_OPTIONS, *, features: bool = False
) -> Opened:
    """Open a text table and detect its layout; ``usual_separator`` is that of the ending of the file name.

    Columns of labels are read as Categoricals of integers, floats or strings; features are read as numbers.

    Raises
    ------
    ValueError, TypeError, MemoryError
        For text that is neither UTF-8 nor UTF-16, NUL bytes, rows of different lengths (with the line's number),
        ambiguous separators or names, and more text than memory.
    """
    layout = find_layout(path, usual_separator, options.sep, options.header)
    table = _TextTable(path, layout, _names_of(layout), options)
    read = table.read_features if features else table.read_labels
    return Opened(table.names, read, table.read_ids, layout.first_line)


class _TextTable(NamedTuple):
    """A text table of which single columns are read; they are given by their positions among ``names``."""

    path: str | os.PathLike[str]
    layout: Layout
    names: list[Any]
    options: TextOptions

    def read_labels(self, positions: list[int]) -> Any:
        """Return a DataFrame of Categoricals."""
        import pandas as pd

        # texts are read as strings in pieces, because some versions of pandas convert categories to numbers
        with self._parse(positions, 4, dtype=object, na_filter=False, chunksize=PIECE) as pieces:
            columns = _read_texts(pieces, [position + self.layout.row_names for position in positions])
        names = [self.names[m] for m in positions]
        if self.layout.guessed:
            _refuse_names_among_labels(self.path, self.layout, names, columns)
        unnamed = self.options.header is None and self.layout.names is None
        if unnamed and len(columns) > 1 and self.layout.n_rows > FEWEST:
            _warn_of_strange_first(self.path, columns)
        words = Words(self.options.missing, self.options.no_missing)
        labels = [_parse_column(*column, words, self.layout, name) for column, name in zip(columns, names, strict=True)]
        words.warn_of_na(self.path)
        return pd.DataFrame(dict(enumerate(labels))).set_axis(pd.Index(names, dtype=object), axis=1)

    def read_features(self, positions: list[int]) -> Any:
        """Return a DataFrame of numbers."""
        import pandas as pd

        # since pandas 3.1, numbers are exact by default, and the option float_precision causes a warning
        exact = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
        options: dict[str, Any] = {"low_memory": False, "decimal": self.layout.decimal}
        if self.options.missing is not None:
            options["na_values"] = missing_words(self.options.missing)
        if not exact:
            options["float_precision"] = "round_trip"
        with self._parse(positions, 8, **options) as table:
            columns = table[[position + self.layout.row_names for position in positions]]
        return columns.set_axis(pd.Index([self.names[m] for m in positions], dtype=object), axis=1)

    def read_ids(self, position: int | None) -> Any:
        """Return the names of the objects in a column, or the names of the rows (None), as a pandas Index or None."""
        import pandas as pd

        if position is None and not self.layout.row_names:
            return None
        # whole, because a name seldom occurs twice
        with self._parse([-1 if position is None else position], 4, dtype=object, na_filter=False) as table:
            texts = table.iloc[:, 0].tolist()
        index = pd.Index([unescaped(name) if name[:1] == "'" else name for name in texts], dtype=object)
        if position is None:
            return with_row_numbers(index)
        return index.rename(self.names[position] if isinstance(self.names[position], str) else UNTITLED)

    @contextmanager
    def _parse(self, positions: list[int], field_bytes: int, **options: Any) -> Iterator[Any]:
        """Yield the columns as pandas' parser returns them; a field takes ``field_bytes`` in memory."""
        import pandas as pd

        text, layout = self.layout.text, self.layout
        text_bytes = len(text) if isinstance(text, bytes) else 0
        needed = text_bytes + layout.n_rows * len(positions) * field_bytes
        description = f"reading {os.fspath(self.path)!r}"
        checks.check_memory(needed, device.memory_budget(), description, "read fewer of its columns")
        with paths.reading(self.path), io.BytesIO(text) if text_bytes else open(self.path, "rb") as file:
            file.seek(layout.begin)
            yield pd.read_csv(
                file,
                sep=layout.separator,
                header=None,
                usecols=sorted({position + layout.row_names for position in positions}),
                nrows=layout.n_rows,
                skip_blank_lines=False,  # a blank line is an object without labels
                skipinitialspace=layout.separator != " ",
                **options,
            )


def outline(
    path: str | os.PathLike[str], usual_separator: str, options: TextOptions
) -> tuple[list[Any], int, int, bool] | None:
    """Return the column names, the estimated numbers of rows and bytes, and whether rows have names, of a text table.

    Only its first lines are read; None if the beginning of the file does not contain a whole line, or if the size of
    the unpacked text is unknown.
    """
    with paths.reading(path), open_unpacked(path) as file:
        text = file.read(BEGINNING)
    is_whole = len(text) < BEGINNING
    n_bytes = len(text) if is_whole else unpacked_bytes(path)
    text = text if is_whole else text[: text.rfind(b"\n") + 1]
    if n_bytes is None or not text.strip() or text[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return None
    layout = find_layout(path, usual_separator, options.sep, options.header, text=text)
    n_rows = layout.n_rows if is_whole else round(layout.n_rows / len(text) * n_bytes)
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


def text_lines(path: str | os.PathLike[str], usual_separator: str, options: TextOptions = NO_OPTIONS) -> TextLines:
    """Open a text table as `open_text` does, and return its lines, which are read one after the other."""
    import pandas as pd

    layout = find_layout(path, usual_separator, options.sep, options.header)
    words = Words(options.missing, options.no_missing)
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
                _refuse_names_among_labels(
                    path, layout, names, [Texts([label], np.zeros(1, np.int32)) for label in labels]
                )
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

    numbers_of_texts: list[dict[str, int]] = [{} for _ in columns]
    codes: list[list[np.ndarray]] = [[] for _ in columns]
    for piece in pieces:
        for numbers, column_codes, column in zip(numbers_of_texts, codes, columns, strict=True):
            piece_codes, distinct = pd.factorize(piece[column].to_numpy(dtype=object))
            places = [numbers.setdefault(str(text), len(numbers)) for text in distinct]
            column_codes.append(np.array(places, dtype=np.int32)[piece_codes])
    return [
        Texts(list(numbers), np.concatenate(column_codes))
        for numbers, column_codes in zip(numbers_of_texts, codes, strict=True)
    ]


# --- labels in the fields ---------------------------------------------------------------------------------------------


class Words:
    """The words for missing labels in the fields of a table, and how many fields hold those of `NA_WORDS`."""

    def __init__(self, missing: Sequence[str] | None, no_missing: Sequence[str] | None) -> None:
        named, self.labels = set(missing_words(missing)), set(missing_words(no_missing))
        if contradictory := named & self.labels:
            raise ValueError(
                f"missing and no_missing both have {min(contradictory)!r}; leave it out of one (--no-missing)."
            )
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
    labels = [text for text in texts if text not in absent]
    if layout.decimal == ",":
        labels = [text.replace(",", ".") if DECIMAL_COMMA.fullmatch(text) else text for text in labels]
    strange = [text for text in labels if not is_number(text)]
    values: list[Any]
    if not strange:
        values = [int(text) if WHOLE.fullmatch(text) else float(text) for text in labels]
        if any(isinstance(value, float) for value in values):
            values = list(map(float, values))
    else:
        suspects = [text for text in labels if text.lower() in LOOKS_MISSING and text not in words.labels]
        if not words.are_given and suspects and len(strange) < len(labels) and set(strange) <= set(suspects):
            raise ValueError(
                f"labels of clustering {name!r} are numbers except {suspects[0]!r}; say missing={suspects!r} "
                f"(--missing {','.join(suspects)!r}) if this means missing, or missing=[] if it is a cluster."
            )
        values = [unescaped(text) for text in labels]
        values = values if len(set(values)) == len(set(labels)) else list(labels)
    counts = np.bincount(codes, minlength=len(texts))
    for text, n_fields in zip(texts, counts.tolist(), strict=True):
        if text in absent and (strange or not is_number(text)):  # nan among numbers is no surprise
            words.count(text, n_fields, name)
    places: dict[Any, int] = {}
    code_of = np.full(len(texts), checks.MISSING)
    next_values = iter(values)
    for code, text in enumerate(texts):
        if text not in absent:
            value = next(next_values)
            if value == value:  # this is false only for NaN, which is a missing label
                code_of[code] = places.setdefault(value, len(places))
    return pd.Categorical.from_codes(code_of[codes], pd.Index(list(places), dtype=object if strange else None))


def _refuse_names_among_labels(
    path: str | os.PathLike[str], layout: Layout, names: list[Any], columns: list[Texts]
) -> None:
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
