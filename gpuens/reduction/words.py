"""Distinct rows and lexicographic order of label rows packed into columns of 64-bit words.

    words (n_words, N) ─▶ a hash table of those seen ─▶ distinct ones (n_words, D) ─▶ sorted, byte by byte

Rows repeat by the thousand or hardly at all. Those that repeat are found in a table, which is quicker than to sort
them; where nearly all differ, the table would be as long as the words, and is given up early.
"""

import numpy as np

from gpuens.runtime.compiled import njit

FIRST = 2**12  # slots of the first hash table, a power of two; each further table has twice as many
DISTINCT = 0.9  # share of different rows, among those seen, at which hashing is given up
SEEN = 1 / 16  # share of rows to be seen before that
AT_ONCE = 256  # rows hashed at a time
FEW = 32  # most rows sorted by insertion
# a slot holds 1 + the number of a distinct row, 0 if none, below the highest bits of the row's hash
NUMBER = np.uint64(2**40 - 1)


def distinct_rows(words: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the first of each set of equal rows (D,), ascending, and the set of each row (N,), int64.

    None if nearly all rows differ.
    """
    n_rows = words.shape[1]
    row_of = np.empty(n_rows, dtype=np.int64)
    table, places = np.zeros(FIRST, dtype=np.uint64), np.empty(FIRST // 2, dtype=np.int64)
    seen = n = 0
    while True:
        seen, n = _enter(words, seen, n, table, places, row_of)
        if seen == n_rows:
            return places[:n], row_of
        if seen >= SEEN * n_rows and n >= DISTINCT * seen:
            return None
        table = np.zeros(2 * len(table), dtype=np.uint64)
        places = np.concatenate([places, np.empty(len(table) // 2 - len(places), dtype=np.int64)])
        _enter_again(words, n, table, places)


def lexicographic(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the order (N,), int64, of the columns of words (n_words, N), and which there differ from those before.

    The first word counts first; equal columns are in any order.
    """
    n_rows = words.shape[1]
    order, first = np.arange(n_rows), np.zeros(n_rows, dtype=bool)
    first[:1] = True
    keys, spare_keys = np.empty((2, n_rows), dtype=np.uint64)
    _sort(words, order, first, keys, np.empty(n_rows, dtype=np.int64), spare_keys)
    return order, first


# --- the table of rows seen -------------------------------------------------------------------------------------------


@njit(makes_arrays=False)
def _hash(words, start, keys):
    """Hash as many rows as there are keys, from ``start`` on."""
    for j in range(len(keys)):
        keys[j] = 0
    for word in range(len(words)):
        of_rows = words[word, start : start + len(keys)]
        for j in range(len(keys)):
            key = (keys[j] ^ of_rows[j]) * np.uint64(0x9E3779B97F4A7C15)
            keys[j] = key ^ (key >> np.uint64(32))
    for j in range(len(keys)):
        key = keys[j] * np.uint64(0xBF58476D1CE4E5B9)
        keys[j] = key ^ (key >> np.uint64(32))


@njit(cache=True, nogil=True)
def _enter(words, start, n, table, places, row_of):
    """Enter rows from ``start`` on, of which n differed before; return where and with how many the table is full."""
    mask, n_words, keys = np.uint64(len(table) - 1), len(words), np.empty(AT_ONCE, dtype=np.uint64)
    for i in range(start, words.shape[1]):
        if (i - start) % AT_ONCE == 0:
            _hash(words, i, keys[: words.shape[1] - i])
        key = keys[(i - start) % AT_ONCE]
        slot, tag, found = key & mask, key & ~NUMBER, -1
        while found < 0:
            entry = table[slot]
            if entry == 0:
                if n == len(places):
                    return i, n
                places[n], found = i, n
                n += 1
                table[slot] = tag | np.uint64(n)
            elif entry & ~NUMBER == tag:
                number = places.dtype.type(entry & NUMBER) - 1
                like, word = places[number], 0
                while word < n_words and words[word, i] == words[word, like]:
                    word += 1
                found = number if word == n_words else -1
            slot = (slot + np.uint64(1)) & mask
        row_of[i] = found
    return words.shape[1], n


@njit(cache=True, nogil=True)
def _enter_again(words, n, table, places):
    """Enter n distinct rows into a new table."""
    mask, key = np.uint64(len(table) - 1), np.empty(1, dtype=np.uint64)
    for number in range(n):
        _hash(words, places[number], key)
        slot = key[0] & mask
        while table[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = (key[0] & ~NUMBER) | np.uint64(number + 1)


# --- sorting ----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _sort(words, order, first, keys, spare, spare_keys):
    """Sort ``order`` by the first word, then runs of equal rows by the next one, until there are no runs or words.

    Set ``first`` where a row differs from the one before.
    """
    if len(order) < 2:
        return
    runs = np.empty((1 + len(order) // FEW, 3), dtype=np.int64)  # start, stop and word of runs left to sort
    ends = np.empty(256, dtype=np.int64)
    runs[0, 0], runs[0, 1], runs[0, 2] = 0, len(order), 0
    left = 1
    while left > 0:
        left -= 1
        start, stop, word = runs[left, 0], runs[left, 1], runs[left, 2]
        for i in range(start, stop):
            keys[i] = words[word, order[i]]
        _sort_keys(keys[start:stop], order[start:stop], spare_keys[start:stop], spare[start:stop], ends)
        word += 1
        end = start
        while end < stop:
            begin = end
            first[begin] = True
            end += 1
            while end < stop and keys[end] == keys[begin]:
                end += 1
            if end - begin == 1 or word == len(words):
                continue
            if end - begin > FEW:
                runs[left, 0], runs[left, 1], runs[left, 2] = begin, end, word
                left += 1
            else:
                _insert(words, word, order[begin:end])
                for i in range(begin + 1, end):
                    first[i] = _after(words, word, order[i], order[i - 1])


@njit(makes_arrays=False)
def _sort_keys(keys, order, spare_keys, spare, ends):
    """Sort keys, and ``order`` with them, by each byte in which they differ, the lowest first."""
    all_of, any_of = keys[0], keys[0]
    for i in range(1, len(keys)):
        all_of &= keys[i]
        any_of |= keys[i]
    moved = False
    for byte in range(8):
        shift = np.uint64(8 * byte)
        if ((all_of ^ any_of) >> shift) & np.uint64(255) == 0:
            continue
        for digit in range(256):
            ends[digit] = 0
        for i in range(len(keys)):
            ends[(keys[i] >> shift) & np.uint64(255)] += 1
        end = 0
        for digit in range(256):
            end, ends[digit] = end + ends[digit], end
        for i in range(len(keys)):
            digit = (keys[i] >> shift) & np.uint64(255)
            place = ends[digit]
            ends[digit] = place + 1
            spare_keys[place], spare[place] = keys[i], order[i]
        keys, order, spare_keys, spare, moved = spare_keys, spare, keys, order, not moved
    if moved:
        for i in range(len(keys)):
            spare_keys[i], spare[i] = keys[i], order[i]


@njit(makes_arrays=False)
def _insert(words, word, order):
    """Sort ``order``, few rows, by their words from one on."""
    for i in range(1, len(order)):
        row, j = order[i], i
        while j > 0 and _after(words, word, order[j - 1], row):
            order[j] = order[j - 1]
            j -= 1
        order[j] = row


@njit(makes_arrays=False)
def _after(words, word, one, other):
    """Return whether a row comes after another by its words from one on."""
    while word < len(words) and words[word, one] == words[word, other]:
        word += 1
    return word < len(words) and words[word, one] > words[word, other]
