"""A check that each row of a text table has the expected number of fields, before the table is parsed."""

import numpy as np

from gpuens.runtime.compiled import njit

# values that `find_irregular_row` returns instead of a number of fields: for a NUL byte, and for a quotation mark that
# is never closed
NUL, UNPAIRED = -1, -2


@njit(cache=True, nogil=True)
def find_irregular_row(text: np.ndarray, separator: int, n_first: int, n_fields: int) -> tuple[int, int, int]:
    """Find the first row that has a wrong number of fields; return its line, its number of fields, and the rows before.

    The first row must have ``n_first`` fields, and every other row ``n_fields``. Lines are counted from 1; the returned
    line is 0 if all rows are regular. The returned number of fields is ``NUL`` if the line has a NUL byte, and
    ``UNPAIRED`` if it has a quotation mark that is never closed. The third returned number counts the rows before the
    irregular row. ``text`` is an array of bytes (uint8), ``separator`` a byte. Rows end and fields are quoted as in
    pandas' parser: a quotation mark at the beginning of a field opens a quoted field; elsewhere it is an ordinary
    character.
    """
    quote, newline, carriage, blank = ord('"'), ord("\n"), ord("\r"), ord(" ")
    at_start, in_field, in_quotes, after_quote = 0, 1, 2, 3
    state, line, begun, fields, rows, expected = at_start, 1, 1, 1, 0, n_first
    n = len(text)
    for i in range(n):
        byte = text[i]
        if byte == 0:
            return line, NUL, rows
        ends = byte == newline or (byte == carriage and (i + 1 == n or text[i + 1] != newline))
        line += ends
        if state == in_quotes:
            if byte == quote:
                state = after_quote
        elif ends:
            if fields != expected:
                return begun, fields, rows
            state, begun, fields, rows, expected = at_start, line, 1, rows + 1, n_fields
        elif byte == separator:
            state, fields = at_start, fields + 1
        elif byte == quote and state != in_field:
            state = in_quotes
        elif not (byte == carriage or (byte == blank and state == at_start)):
            state = in_field
    if state == in_quotes:
        return begun, UNPAIRED, rows
    if n and text[n - 1] != newline and text[n - 1] != carriage:  # the last line has no newline at its end
        if fields != expected:
            return begun, fields, rows
        rows += 1
    return 0, 0, rows
