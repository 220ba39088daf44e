"""A check that each row of a text table has the expected number of fields, before the table is parsed."""

import numpy as np

from gpuens.runtime.native import cpu

# values that `find_irregular_row` returns instead of a number of fields: for a NUL byte, and for a quotation mark that
# is never closed
NUL, UNPAIRED = -1, -2


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
