"""Core groups compared with sorted(set(rows))."""

import numpy as np
import oracles
import pytest
from conftest import random_labels

import gpuens as ge
from gpuens.labels.rows import Rows
from gpuens.reduction import core_groups, find_rows
from gpuens.reduction.core_groups import distinct_rows, lexicographic, lexicographic_on_gpu, pack_rows
from gpuens.runtime.device import to_host

FIRST, SEEN = 2**12, 1 / 16  # slots of the first table, share of rows hashed first: kernels/cpu/labels/words.cpp


def literal_words(digits, radices):
    """Return the words of rows of digits (N, M) as lists of Python integers, which never overflow."""
    words, room = [], 2**64
    for radix, column in zip(radices, digits.T.tolist(), strict=True):
        if (room := room * radix) > 2**64:
            words.append([0] * len(digits))
            room = radix
        words[-1] = [word * radix + digit for word, digit in zip(words[-1], column, strict=True)]
    return words


def test_groups_are_the_distinct_rows_in_order(any_labels, where):
    _, counts, row_of = oracles.core_groups(any_labels)
    first = [list(row_of).index(g) for g in range(len(counts))]
    found = core_groups(Rows(any_labels, device=where))
    np.testing.assert_array_equal(found.ensemble.to_array(), ge.Ensemble(any_labels).to_array()[first])
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_array_equal(to_host(found.row_of), row_of)


def test_rows_that_stand_for_several_objects(any_labels, where):
    """Rows with counts have the same groups as rows that are repeated as often."""
    times = np.random.default_rng(0).integers(1, 5, len(any_labels))
    expected = core_groups(Rows(np.repeat(any_labels, times, axis=0)))
    found = core_groups(Rows(any_labels, counts=times, device=where))
    np.testing.assert_array_equal(found.ensemble.codes, expected.ensemble.codes)
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(np.repeat(to_host(found.row_of), times), expected.row_of)


def test_rows_of_many_words_compare_lexicographically(where):
    """Rows of 100 clusterings with up to 200 clusters need a dozen words."""
    labels = random_labels(500, 100, (150, 200), distinct=200, missing=0.1, seed=3)
    ensemble = ge.Ensemble(labels)
    assert len(pack_rows(ensemble.codes, np.diff(ensemble.offsets) + 1)) >= 12
    *_, row_of = oracles.core_groups(ensemble.to_array())
    found = core_groups(Rows(ensemble, device=where))
    np.testing.assert_array_equal(to_host(found.row_of), row_of)


def test_rows_are_found_among_groups(any_labels, where):
    """Half of the groups are removed, so that the rows of these groups are not found."""
    groups = core_groups(Rows(any_labels, device=where))
    codes, kept = groups.rows.codes, np.arange(0, len(groups.rows), 2)
    found = to_host(find_rows(codes, codes[groups.rows.xp.asarray(kept)], device=where))
    np.testing.assert_array_equal(found, np.where(np.arange(len(found)) % 2, -1, np.arange(len(found)) // 2))
    again = ge.Ensemble(any_labels).codes_on(where)
    np.testing.assert_array_equal(to_host(find_rows(again, codes, device=where)), to_host(groups.row_of))


@pytest.mark.parametrize("radix", [2, 255, 256, 2**16, 2**21, 2**22])
def test_words_do_not_overflow(radix):
    """All digits have the largest possible value. A word that overflows would become a small number."""
    codes = np.full((2, 9), radix - 2, dtype=np.uint32)
    codes[0, 8] -= radix > 2
    words = pack_rows(codes, np.full(9, radix))
    assert words.tolist() == literal_words(codes, [radix] * 9)
    first, second = map(tuple, words.T.tolist())
    assert (first < second) == (codes[0].tolist() < codes[1].tolist())


@pytest.mark.parametrize("n", [0, 1, 2, 1023, 1024, 1025, 40_000])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_rows_are_packed_by_any_number_of_threads(dtype, n, monkeypatch):
    """The largest code marks a missing label; its digit is the largest digit."""
    rng = np.random.default_rng(n)
    radices = np.array([3, 1, 200, np.iinfo(dtype).max, 2, 7, 255, 91])
    codes = rng.integers(radices - (radices > 1), size=(n, 8)).astype(dtype)
    codes[rng.random(codes.shape) < 0.1] = np.iinfo(dtype).max
    expected = literal_words(np.minimum(codes, radices - 1), radices.tolist())
    for threads in ("1", "3"):
        monkeypatch.setenv("GPUENS_THREADS", threads)
        for matrix in (codes, np.asfortranarray(codes)):
            assert pack_rows(matrix, radices).tolist() == expected


@pytest.mark.parametrize("largest", [1, 3, 10**6])
@pytest.mark.parametrize("n_words", [1, 2, 4])
@pytest.mark.parametrize("n", [0, 1, 2, 32, 33, 20_000])
def test_words_are_sorted(n, n_words, largest, fake_cupy):
    words = np.random.default_rng(0).integers(largest, size=(n_words, n)).astype(np.uint64)
    words[0] //= np.uint64(1 + largest // 10**5)
    words[-1] *= np.uint64(2**41 + 1)
    order, first = lexicographic(words)
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    ordered = words[:, np.lexsort(words[::-1])]
    np.testing.assert_array_equal(words[:, order], ordered)
    np.testing.assert_array_equal(first, np.any(np.diff(ordered, axis=1, prepend=2**63) != 0, axis=0))
    on_gpu = lexicographic_on_gpu(fake_cupy.asarray(words))
    np.testing.assert_array_equal(on_gpu.get(), np.lexsort(words[::-1]))  # equal columns keep their order


@pytest.mark.parametrize("largest", [1, 7, 2**14])
@pytest.mark.parametrize("n_words", [1, 3])
@pytest.mark.parametrize("n", [0, 1, FIRST // 2, FIRST // 2 + 1, 20_000])
def test_distinct_rows_are_found(n, n_words, largest):
    rng, different = np.random.default_rng(1), 1 + n // 4
    words = rng.integers(largest, size=(n_words, different)).astype(np.uint64)[:, rng.integers(different, size=n)]
    places, row_of = distinct_rows(words)
    assert (np.diff(places) > 0).all()
    assert len(set(map(tuple, words.T.tolist()))) == len(places)
    np.testing.assert_array_equal(words[:, places][:, row_of], words)
    assert (places[row_of] <= np.arange(n)).all()


def test_a_table_of_rows_that_all_differ_is_given_up():
    words = np.arange(4 * FIRST, dtype=np.uint64)[None]
    assert distinct_rows(words) is None
    words[0, int(SEEN * words.shape[1]) : 3 * FIRST] = 0
    assert distinct_rows(words) is not None


@pytest.mark.parametrize("distinct", [500, 30_000])
def test_many_groups_are_those_of_numpy(distinct):
    """The groups equal NumPy's, with and without a hash table, and for rows with counts."""
    rng = np.random.default_rng(distinct)
    labels = rng.integers(9, size=(distinct, 12))[rng.permutation(np.arange(30_000) % distinct)]
    labels[:, 0] %= 2
    rows, row_of, counts = np.unique(labels, axis=0, return_inverse=True, return_counts=True)
    row_of = row_of.ravel()  # NumPy 2.0 returns an array of shape (N, 1)
    found = core_groups(Rows(labels))
    np.testing.assert_array_equal(found.ensemble.to_array(), rows)
    np.testing.assert_array_equal(found.row_of, row_of)
    np.testing.assert_array_equal(found.counts, counts)
    assert (found.row_of.dtype, found.counts.dtype) == (np.int64, np.int64)
    times = rng.integers(1, 4, len(labels))
    np.testing.assert_array_equal(core_groups(Rows(labels, times)).counts, np.bincount(row_of, weights=times))


def test_expand_copies_labels_back_and_refuses_other_lengths():
    reduced = ge.CoreGroups().reduce(ge.Ensemble([[1, 0, 0, 1], [0, 0, 1, 0]]))
    assert reduced.expand([7, 8, 9]).tolist() == [9, 7, 8, 9]
    with pytest.raises(ValueError, match="labels must hold one value for each of the 3 row"):
        reduced.expand([1, 2])
