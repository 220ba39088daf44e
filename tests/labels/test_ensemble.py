"""The label matrix: every kind of input becomes the same compact codes, and missing labels stay missing."""

import time
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused

import gpuens as ge
from gpuens.labels.encoding import encode_columns
from gpuens.runtime import device

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def naive_codes(column):
    """Number the labels of one column by ascending value, in a slow and obvious way; a missing label gets -1."""
    missing = [v is None or v is pd.NA or (isinstance(v, float) and v != v) or v == -1 for v in column]
    distinct = sorted({v for v, gone in zip(column, missing, strict=True) if not gone})
    return [-1 if gone else distinct.index(v) for v, gone in zip(column, missing, strict=True)], distinct


def check(ensemble, columns):
    """Compare an ensemble with the slow numbering of its columns, given as lists of Python values."""
    expected = [naive_codes(column) for column in columns]
    assert ensemble.to_array().tolist() == [list(row) for row in zip(*(codes for codes, _ in expected), strict=True)]
    assert [c.tolist() for c in ensemble.categories] == [distinct for _, distinct in expected]
    counts = [[codes.count(code) for code in range(len(distinct))] for codes, distinct in expected]
    assert ensemble.sizes.tolist() == [count for of_one in counts for count in of_one]
    assert ensemble.offsets.tolist() == np.cumsum([0] + [len(distinct) for _, distinct in expected]).tolist()
    assert (ensemble.n_objects, ensemble.n_clusterings) == (len(columns[0]), len(columns))
    assert ensemble.n_clusters == sum(len(distinct) for _, distinct in expected)
    assert ensemble.has_missing == any(-1 in codes for codes, _ in expected)
    assert ensemble.offsets.dtype == ensemble.sizes.dtype == np.int64
    assert ensemble.codes.flags.f_contiguous


# --- kinds of labels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*INTEGERS, ">i4", "float16", "float32", "float64", "longdouble"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_of_every_width(dtype, order):
    columns = [[3, 0, 3, 100, 7], [9, 9, 9, 2, 2]]
    check(ge.Ensemble(np.array(columns, dtype=dtype).T.copy(order=order)), columns)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float32", "float64"])
def test_minus_one_is_missing(dtype):
    columns = [[3, -1, 3, 0], [-1, 5, 5, 6]]
    check(ge.Ensemble(np.array(columns, dtype=dtype).T), columns)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_the_largest_unsigned_value_is_a_label(dtype):
    largest = int(np.iinfo(dtype).max)
    columns = [[largest, 0, largest, 1], [0, 1, largest - 1, largest]]
    check(ge.Ensemble(np.array(columns, dtype=dtype).T), columns)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_huge_values_with_gaps(dtype):
    largest = int(np.iinfo(dtype).max)
    columns = [[largest, 10**15, largest, 0, 10**15 + 1], [1, 2**53, 2**53 + 1, 2**53, 2**53]]
    check(ge.Ensemble(np.array(columns, dtype=dtype).T), columns)


def test_huge_values_and_missing():
    columns = [[2**62, -1, 2**62 + 1, -1], [-1, 0, 10**12, 10**12]]
    check(ge.Ensemble(np.array(columns).T), columns)


def test_either_side_of_the_switch_from_table_to_sorting():
    for top in (6 + 255, 6 + 256, 6 + 257, 4095, 4096):
        columns = [[top, -1, 3, 3, 0, top - 1], [0, 1, 2, top, top, -1]]
        check(ge.Ensemble(np.array(columns).T), columns)


def test_booleans():
    columns = [[True, False, True], [False, False, True]]
    ens = ge.Ensemble(np.array(columns).T)
    check(ens, columns)
    assert ens.categories[0].dtype == bool


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_nan_is_missing(dtype):
    columns = [[3.0, float("nan"), 0.0, 3.0], [1.0, 1.0, 2.0, float("nan")]]
    ens = ge.Ensemble(np.array(columns, dtype=dtype).T)
    check(ens, columns)
    assert ens.categories[0].dtype == np.int64


@pytest.mark.parametrize("dtype", ["U3", "O", "S3"])
def test_strings(dtype):
    columns = [["b", "a", "ccc", "b"], ["10", "9", "9", "10"]]
    ens = ge.Ensemble(np.array(columns, dtype=dtype).T)
    if dtype == "S3":
        columns = [[v.encode() for v in column] for column in columns]
    check(ens, columns)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 1 has no StringDType")
def test_numpy_variable_strings():
    columns = [["b", "a", "ccc", "b"], ["x", "y", "y", "x"]]
    check(ge.Ensemble(np.array(columns, dtype=np.dtypes.StringDType()).T), columns)
    matrix = np.array([["b", "x"], [None, "x"], ["c", "y"]], dtype=np.dtypes.StringDType(na_object=None))
    assert ge.Ensemble(list(matrix.T)).to_array().tolist() == [[0, 0], [-1, 0], [1, 1]]


def texts(*columns, dtype="U5"):
    """Return columns of texts in every kind of container that can hold texts."""
    frame = pd.DataFrame({f"c{m}": column for m, column in enumerate(columns)})
    matrix = np.array(columns, dtype=dtype).T
    return [list(columns), matrix, matrix.astype(object), frame, frame.astype("category"), frame.astype("string")]


def test_the_text_minus_one_is_missing_among_texts_that_are_numbers():
    numbers, others = ["-1", "10", "2", "-1.0", "nan"], ["0", "1", "0", "0", "1"]
    for labels in texts(numbers, others):
        ens = ge.Ensemble(labels)
        assert ens.to_array().tolist() == [[-1, 0], [0, 1], [1, 0], [-1, 0], [-1, 1]]
        assert ens.categories[0].tolist() == ["10", "2"]  # labels keep their text
    mixed = np.array([["-1", 0], [3, 1], ["4", 0], [None, 1]], dtype=object)
    assert ge.Ensemble(mixed).to_array().tolist() == [[-1, 0], [0, 1], [1, 0], [-1, 1]]


def test_texts_that_look_missing_among_others_are_clusters_with_a_warning():
    for labels in texts(["-1", "a", "a", "NA"], ["0", "01", "01", "-1"], ["x", "x", "y", "y"]):
        with pytest.warns(UserWarning, match="'-1', 'NA' in 'c?0', 'c?1' count as clusters") as caught:
            ens = ge.Ensemble(labels)
        assert "replace them by None" in one_sentence(caught[0].message)
        assert ens.to_array().tolist() == [[0, 1, 0], [2, 2, 0], [2, 2, 1], [1, 0, 1]]
    unused = pd.Categorical(["a", "b"], categories=["NA", "a", "b"])
    assert ge.Ensemble(pd.DataFrame({"p": unused, "q": [0, 1]})).n_clusters == 4
    with pytest.warns(UserWarning, match="'-1' in 'r' count as clusters"):
        ge.Ensemble([[0, 1]]).with_({"r": ["-1", "b"]})
    with pytest.warns(UserWarning, match="'none' in '0' count as clusters"):
        ge.Ensemble.of_labelled([["none", "b", None]])


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        ([1, "1", 2, 2], "1 and '1'"),
        (["1", 2, 1, 2], "1 and '1'"),
        (["1.0", "1", "a", "a"], "'1' and '1.0'"),
        ([2.0, "2.0", "b", "b"], "2 and '2.0'"),
    ],
)
def test_numbers_that_are_there_in_two_ways_are_named(column, shown):
    matrix = np.array([column, [0, 1, 1, 1]], dtype=object).T
    with pytest.warns(UserWarning, match="count as two clusters, though equal as numbers") as caught:
        ens = ge.Ensemble(pd.DataFrame(matrix, columns=["p", "q"]))
    assert f"{shown} in 'p'" in one_sentence(caught[0].message)
    assert len(ens.categories[0]) == 3
    assert ge.Ensemble([["01", "1", "a"], [True, 1, 2.0], [2**53, 2**53 + 1, "x"]]).n_clusters == 8


def test_new_objects_keep_the_meaning_that_minus_one_had():
    with pytest.warns(UserWarning, match="'-1' in '0'"):
        ens = ge.Ensemble([["-1", "a", "0"], [0, 1, 0]])
    assert ens.encoded([["-1", "0"], [1, 1]]).to_array().tolist() == [[0, 1], [1, 1]]
    numbers = ge.Ensemble([["-1", "1", "0"], [0, 1, 0]])
    assert numbers.encoded([["-1", "0", "a"], [1, 1, 0]]).to_array().tolist() == [[-1, 1], [0, 1], [-1, 0]]


def test_the_largest_integers_in_a_list_stay_exact():
    """NumPy makes floats of a list with integers below and above 2^63.

    Then the label of a new object would not be found.
    """
    ens = ge.Ensemble([[2**64 - 1, 2**64 - 2, 3, 3], [0, 0, 1, 1]])
    assert ens.categories[0].tolist() == [3, 2**64 - 2, 2**64 - 1]
    assert ens.encoded([[2**64 - 2, 3], [0, 1]]).to_array().tolist() == [[1, 0], [0, 1]]


def test_objects_with_none_nan_and_na():
    columns = [["b", None, "a", "b"], [3, 3, pd.NA, 4], ["x", float("nan"), "x", "y"]]
    check(ge.Ensemble(np.array(columns, dtype=object).T), columns)


def test_numbers_among_objects_are_numbers():
    columns = [[10, 9, None, -1], [2.0, 3, 2, float("nan")], [True, False, None, True]]
    check(ge.Ensemble(np.array(columns, dtype=object).T), columns)


def test_huge_numbers_among_objects():
    columns = [[2**63, 2**63 + 1, -1, None], [2**70, 5, 5, 2**70 + 1], [2**62, -1, None, 2**62 + 1]]
    check(ge.Ensemble(columns), columns)
    assert ge.Ensemble(columns).categories[0].dtype == np.uint64


def test_strings_and_numbers_in_one_column():
    with pytest.warns(UserWarning, match="2 and '2' in '0' count as two clusters"):
        ens = ge.Ensemble([["a", 2, -1, 10, "2"], [0, 0, 1, 1, 1]])
    assert ens.categories[0].tolist() == [2, 10, "2", "a"]
    assert ens.to_array()[:, 0].tolist() == [3, 0, -1, 1, 2]


def test_equal_labels_of_different_types_are_one_cluster():
    a, b = [1, 1.0, "s", np.str_("s"), np.int8(2), 2], [2, np.int8(2), np.str_("s"), "s", 1.0, 1]
    for column, expected in ((a, [0, 0, 2, 2, 1, 1]), (b, [1, 1, 2, 2, 0, 0])):
        matrix = np.empty((6, 1), dtype=object)
        matrix[:, 0] = column
        assert ge.Ensemble(matrix).to_array()[:, 0].tolist() == expected


def test_tuples_and_dates_are_labels_too():
    days = np.array(["2024-01-03", "NaT", "2024-01-02", "2024-01-03"], dtype="datetime64[ns]")
    pairs = np.empty(4, dtype=object)
    pairs[:] = [(1, 2), (0, 9), (1, 2), None]
    ens = ge.Ensemble([days, pairs, [Fraction(1, 2), Fraction(1, 3), Fraction(1, 2), None]])
    assert ens.to_array().tolist() == [[1, 1, 1], [-1, 0, 0], [0, 1, 1], [1, -1, -1]]
    assert list(ens.categories[1]) == [(0, 9), (1, 2)]


def test_masked_entries_are_missing():
    labels = np.ma.masked_equal(np.array([[4, 2], [-999, 2], [5, -999], [4, 3]]), -999)
    check(ge.Ensemble(labels), [[4, None, 5, 4], [2, 2, None, 3]])
    check(ge.Ensemble(np.ma.array([[4, 2], [5, 3]])), [[4, 5], [2, 3]])


def test_numpy_matrix():
    with pytest.warns(PendingDeprecationWarning):
        labels = np.matrix([[0, 1], [0, 2], [1, 2]])
    check(ge.Ensemble(labels), [[0, 0, 1], [1, 2, 2]])


def test_memory_mapped(tmp_path):
    columns = [[3, 0, 3, 100, 7], [9, 9, -1, 2, 10**9]]
    np.save(tmp_path / "labels.npy", np.array(columns).T)
    ens = ge.Ensemble(np.load(tmp_path / "labels.npy", mmap_mode="r"))
    check(ens, columns)
    assert not any(isinstance(array, np.memmap) for array in [ens.codes, *ens.categories])


def test_the_caller_s_array_is_left_alone():
    for labels in (np.array([[1, 2], [-1, 2], [3, 4]]), np.array([[1, 2], [np.nan, 2], [3, 4]])):
        before = labels.copy()
        labels.flags.writeable = False
        ge.Ensemble(labels)
        np.testing.assert_array_equal(labels, before)


# --- kinds of containers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [list, tuple])
def test_nested_lists_are_columns(kind):
    columns = [[0, 0, 1, 2], ["a", None, "b", "b"], [5.0, float("nan"), 5.0, 7.0]]
    check(ge.Ensemble(kind(kind(column) for column in columns)), columns)


def test_missing_values_in_lists_of_strings_do_not_become_strings():
    columns = [["a", float("nan"), "b"], [None, "a", "c"], ["x", pd.NA, "y"]]
    check(ge.Ensemble(columns), columns)


def test_columns_of_different_types():
    columns = [[0, 1, 2, 300], ["b", "a", "a", "b"], [1, None, 1, 0], ["u", "v", None, "u"], [True, False, True, True]]
    ens = ge.Ensemble(
        [
            np.array(columns[0], dtype=np.uint16),
            columns[1],
            pd.Series(columns[2], index=[9, 9, 8, 7]),
            pd.Categorical(columns[3]),
            np.array(columns[4]),
        ]
    )
    check(ens, columns)


def test_objects_without_any_label_are_left_out_as_the_refusal_says():
    labels = [[0, -1, 1, 0], ["a", None, None, "b"]]
    refused(lambda: ge.Ensemble(labels), ValueError, "1 object(s)", "object 1", "Ensemble.of_labelled")
    ens, labelled = ge.Ensemble.of_labelled(labels)
    assert (ens.to_array().tolist(), labelled.tolist()) == ([[0, 0], [1, -1], [0, 1]], [True, False, True, True])


def test_a_list_of_arrays_may_have_more_clusterings_than_objects():
    columns = [[0, 1], [1, 0], [5, 6]]
    check(ge.Ensemble([np.array(column) for column in columns]), columns)


def test_one_object():
    assert ge.Ensemble(np.array([[7]])).n_clusters == 1


@pytest.mark.parametrize(
    "dtype", ["category", "Int64", "Int8", "UInt16", "Float64", "string", "boolean", "int64[pyarrow]", "object"]
)
def test_pandas_dtypes(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    numbers = dtype not in ("category", "string", "object", "boolean")
    if dtype == "boolean":
        columns = [[True, False, None, True], [False, False, True, True]]
    elif numbers:
        columns = [[3, 100, None, 3], [2, 2, 7, 7]]
    else:
        columns = [["b", "a", None, "b"], ["x", "y", "y", "x"]]
    frame = pd.DataFrame({"p": pd.Series(columns[0], dtype=dtype), "q": pd.Series(columns[1], dtype=dtype)})
    ens = ge.Ensemble(frame)
    check(ens, columns)
    assert ens.names == ["p", "q"]


def test_minus_one_in_nullable_integers():
    columns = [[3, -1, None, 4], [-1, 5, 6, 6]]
    check(ge.Ensemble(pd.DataFrame(dict(zip("ab", columns, strict=True)), dtype="Int64")), columns)


def test_categories_are_ordered_by_value_and_unused_ones_are_left_out():
    column = pd.Categorical(["lo", "hi", "lo", None], categories=["lo", "never", "hi"], ordered=True)
    numbers = pd.Categorical([7, -1, 5, 7], categories=[9, 7, 5, -1])
    ens = ge.Ensemble(pd.DataFrame({"text": column, "number": numbers}))
    check(ens, [["lo", "hi", "lo", None], [7, -1, 5, 7]])
    check(ge.Ensemble([column, numbers]), [["lo", "hi", "lo", None], [7, -1, 5, 7]])


def test_intervals_as_categories():
    ens = ge.Ensemble(pd.DataFrame({"bin": pd.cut([1.0, 9.0, 5.0, np.nan], 2), "other": [0, 1, 1, 0]}))
    assert ens.to_array()[:, 0].tolist() == [0, 1, 0, -1]


def test_frame_with_repeated_names_and_mixed_types():
    frame = pd.DataFrame([[0, "a", None], [1, "b", 2.0], [1, "a", 2.0], [5, "b", 4.0]], columns=["x", "x", "y"])
    ens = ge.Ensemble(frame)
    check(ens, [[0, 1, 1, 5], ["a", "b", "a", "b"], [None, 2.0, 2.0, 4.0]])
    assert ens.names == ["x", "x", "y"]


def test_frame_may_have_more_clusterings_than_objects():
    check(ge.Ensemble(pd.DataFrame([[0, 1, 2], [1, 1, 3]], columns=list("abc")).drop(columns="b")), [[0, 1], [2, 3]])
    check(ge.Ensemble(pd.DataFrame([[0, 1, 2], [1, 0, 3]])), [[0, 1], [1, 0], [2, 3]])


def test_polars():
    polars = pytest.importorskip("polars")
    columns = [[3, None, 0, 3], ["b", "a", None, "a"], ["u", "v", "v", "u"]]
    frame = polars.DataFrame(
        {"n": columns[0], "s": columns[1], "c": polars.Series(columns[2], dtype=polars.Categorical)}
    )
    ens = ge.Ensemble(frame)
    check(ens, columns)
    assert ens.names == ["n", "s", "c"]
    check(ge.Ensemble([frame["n"], frame["s"]]), columns[:2])


class OnlyDLPack:
    """An array that supports DLPack only."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **arguments):
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OnlyArrayInterface:
    """An array that supports NumPy's array interface only."""

    def __init__(self, array):
        self._array = array
        self.__array_interface__ = array.__array_interface__


class OnlyArray:
    """An array that supports ``__array__`` only."""

    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return self._array.astype(dtype or self._array.dtype)


@pytest.mark.parametrize("wrap", [OnlyDLPack, OnlyArrayInterface, OnlyArray])
def test_array_protocols(wrap):
    columns = [[3, 0, 3, 7], [-1, 9, 9, 2]]
    matrix = np.array(columns).T.copy()
    ens = ge.Ensemble(wrap(matrix))
    check(ens, columns)
    assert ens.device_kind == "cpu"
    check(ge.Ensemble([wrap(np.array(column)) for column in columns]), columns)


# --- arrays in GPU memory ---------------------------------------------------------------------------------------------


def blocky(n=2000, m=6, k=9, seed=0):
    return np.random.default_rng(seed).integers(0, k, (n, m))


class OnlyCudaArrayInterface:
    """An array in GPU memory that supports ``__cuda_array_interface__`` only."""

    def __init__(self, array):
        self._array = array  # this reference keeps alive the memory that the interface describes
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def with_missing(labels, value):
    labels = labels.copy()
    labels[::7, 0] = labels[3, 1:3] = value
    return labels


GPU_LABELS = {
    "integers": lambda: with_missing(blocky(), -1),
    "few bits": lambda: with_missing(blocky(), -1).astype(np.int8),
    "unsigned": lambda: blocky().astype(np.uint16),
    "unsigned, full width": lambda: blocky().astype(np.uint64) * np.uint64(2**60),
    "far apart": lambda: with_missing(blocky() * 10**12, -1),
    "more than 255 clusters": lambda: with_missing(np.arange(400)[:, None] // np.array([1, 2, 1]), -1),
    "floats": lambda: with_missing(blocky().astype(np.float64), np.nan),
    "short floats": lambda: with_missing(blocky().astype(np.float32), np.nan),
    "half floats": lambda: with_missing(blocky().astype(np.float16), np.nan),
    "booleans": lambda: blocky(k=2) > 0,
    "one column far apart": lambda: with_missing(blocky() * np.where(np.arange(blocky().shape[1]) == 1, 10**12, 1), -1),
    "every other column": lambda: np.repeat(blocky(), 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("case", GPU_LABELS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_labels_in_gpu_memory_are_encoded_there(fake_cupy, case, order):
    labels = GPU_LABELS[case]()
    expected = ge.Ensemble(labels)
    on_gpu = fake_cupy.asarray(labels, order=order)
    fake_cupy.reset()
    ens = ge.Ensemble(on_gpu)
    assert ens.device_kind == "cuda"
    codes = ens.codes_on("cuda")
    assert isinstance(codes, fake_cupy.ndarray)
    assert codes.flags.f_contiguous
    assert (ens.n_objects, ens.n_clusterings, ens.n_clusters) == (*labels.shape, expected.n_clusters)
    # A table of labels, label values and cluster sizes are copied to the host, but never a column of labels.
    table, widest = labels.shape[1] * (len(labels) + 1056) // 8, max(len(c) for c in expected.categories)
    assert fake_cupy.traffic.to_host.largest <= max(table, 8 * widest, 8 * expected.n_clusters)
    assert fake_cupy.traffic.to_device.bytes == 0
    check_equal(ens, expected)
    np.testing.assert_array_equal(fake_cupy.asnumpy(on_gpu), labels)  # the caller's array is unchanged


def check_equal(ens, expected):
    np.testing.assert_array_equal(ens.codes, expected.codes, strict=True)
    assert ens.codes.flags.f_contiguous
    np.testing.assert_array_equal(ens.sizes, expected.sizes, strict=True)
    np.testing.assert_array_equal(ens.offsets, expected.offsets, strict=True)
    for found, there in zip(ens.categories, expected.categories, strict=True):
        np.testing.assert_array_equal(found, there, strict=True)
    assert ens.has_missing == expected.has_missing
    assert ens.missing_code == expected.missing_code


@pytest.mark.parametrize("wrap", [lambda array: array, OnlyDLPack, OnlyCudaArrayInterface])
def test_gpu_in_gpu_out(fake_cupy, wrap):
    columns = [[3, 0, 3, 7], [-1, 9, 9, 2]]
    ens = ge.Ensemble(wrap(fake_cupy.asarray(np.array(columns).T)))
    check(ens, columns)
    assert ens.device_kind == "cuda"
    listed = ge.Ensemble([wrap(fake_cupy.asarray(column)) for column in columns])
    check(listed, columns)
    assert listed.device_kind == "cuda"
    assert ge.Ensemble(ens).device_kind == ens.take([0, 1]).device_kind == "cuda"
    result = device.move(np.arange(4), ens.device_kind)
    assert isinstance(result, fake_cupy.ndarray)
    assert device.to_host(wrap(result)).tolist() == [0, 1, 2, 3]
    assert device.move(np.arange(4), "cpu").tolist() == [0, 1, 2, 3]


def test_columns_of_different_types_in_gpu_memory(fake_cupy):
    columns = [
        np.array([0, 1, 2, 300], dtype=np.uint16),
        np.array([True, False, True, True]),
        np.array([2.0, np.nan, 0.0, 2.0], dtype=np.float32),
        np.arange(4) * 10**15,
    ]
    ens = ge.Ensemble([fake_cupy.asarray(column) for column in columns])
    check_equal(ens, ge.Ensemble(columns))
    assert isinstance(ens.codes_on("cuda"), fake_cupy.ndarray)


def test_labels_cross_once(fake_cupy):
    labels = with_missing(blocky(), -1)
    ens = ge.Ensemble(labels)
    for _ in range(2):
        assert isinstance(ens.codes_on("cuda"), fake_cupy.ndarray)
    assert fake_cupy.traffic.to_device.sizes == [labels.size]  # one byte for each label
    assert ens.codes_on("cuda").flags.f_contiguous
    np.testing.assert_array_equal(fake_cupy.asnumpy(ens.codes_on("cuda")), ens.codes)
    assert ens.device_kind == "cpu"  # results are in the same memory as the labels
    ens = ge.Ensemble(fake_cupy.asarray(labels))
    fake_cupy.reset()
    assert ens.codes is ens.codes
    assert fake_cupy.traffic.to_host.sizes == [labels.size]


def test_take_in_gpu_memory(fake_cupy):
    labels = with_missing(blocky(), -1)
    ens = ge.Ensemble(fake_cupy.asarray(labels))
    rows = np.array([5, 0, 7, 7, 1999])
    expected = ge.Ensemble(labels).take(rows)
    fake_cupy.reset()
    for chosen in (fake_cupy.asarray(rows), fake_cupy.asarray(rows.astype(np.int32))):
        subset = ens.take(chosen)
        assert isinstance(subset.codes_on("cuda"), fake_cupy.ndarray)
        assert subset.codes_on("cuda").flags.f_contiguous
        assert fake_cupy.traffic.to_host.largest <= 8 * ens.n_clusters
        fake_cupy.reset()
        check_equal(subset, expected)
    mask = np.zeros(2000, dtype=bool)
    mask[rows] = True
    check_equal(ens.take(fake_cupy.asarray(mask)), ge.Ensemble(labels).take(mask))
    check_equal(ens.take(rows), expected)  # the indices may be in host memory, although the codes are on the device


REFUSED_ANYWHERE = {
    "1-D": np.arange(4),
    "3-D": np.zeros((3, 2, 2), dtype=int),
    "empty": np.zeros((0, 3), dtype=int),
    "transposed": np.zeros((3, 20), dtype=int),
    "negative": np.array([[0, 1], [-2, 1], [1, 0]]),
    "fractional": np.array([[0, 1], [0.5, 1], [1, 0]]),
    "infinite": np.array([[0, 1], [np.inf, 1], [1, 0]]),
    "beyond 2**53": np.array([[0, 1], [2.0**54, 1], [1, 0]]),
    "complex": np.array([[0, 1], [1j, 1], [1, 0]]),
    "a clustering without labels": np.array([[0, -1], [1, -1], [1, -1]]),
    "objects without labels": np.array([[0, 1], [-1, -1], [1, 0], [-1, -1]]),
    "objects without labels, floats": np.array([[0, 1], [np.nan, np.nan], [1, 0]]),
}


@pytest.mark.parametrize("case", REFUSED_ANYWHERE)
def test_refusals_are_the_same_wherever_the_labels_are(fake_cupy, case):
    labels = REFUSED_ANYWHERE[case]
    with pytest.raises((TypeError, ValueError)) as error:
        ge.Ensemble(labels)
    assert refused(lambda: ge.Ensemble(fake_cupy.asarray(labels)), error.type) == str(error.value)


def test_refusals_of_lists_of_columns_in_gpu_memory(fake_cupy):
    a, b = fake_cupy.asarray([0, 1, 1]), fake_cupy.asarray([0, 1])
    refused(lambda: ge.Ensemble([a, b]), ValueError, "clustering 0 has 3 labels and clustering 1 has 2")
    refused(
        lambda: ge.Ensemble([a, [0, 1, 1]]), TypeError, "labels mix arrays in GPU memory with arrays in host memory"
    )
    refused(lambda: ge.Ensemble([a, np.array([0, 1, 1])]), TypeError, "cupy.asarray or cupy.asnumpy")


def test_constant_clusterings_in_gpu_memory_are_a_warning(fake_cupy):
    with pytest.warns(UserWarning, match="constant clusterings"):
        ge.Ensemble(fake_cupy.asarray([[0, 1], [0, 1], [0, 2]]))


def test_frame_on_the_gpu():
    class GPUFrame:
        """A data frame like cuDF's."""

        columns, shape, iloc = ("a", "b"), (3, 2), None  # columns of strings cannot be read in GPU memory

        def to_pandas(self):
            return pd.DataFrame({"a": ["x", None, "y"], "b": [4, 4, 5]})

    ens = ge.Ensemble(GPUFrame())
    check(ens, [["x", None, "y"], [4, 4, 5]])
    assert (ens.device_kind, ens.names) == ("cuda", ["a", "b"])


# --- numbering --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_clusters", "dtype"),
    [(255, np.uint8), (256, np.uint16), (65_535, np.uint16), (65_536, np.uint32)],
)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("wide_first", [False, True])
def test_compact_dtype(n_clusters, dtype, missing, wide_first):
    n = n_clusters + 3
    many = np.arange(n) % n_clusters
    few = np.arange(n) % 2
    if missing:
        many[-3], few[-2] = -1, -1
    columns = [many, few, few] if wide_first else [few, few, many]
    ens = ge.Ensemble(columns)
    assert ens.codes.dtype == dtype
    assert ens.missing_code == np.iinfo(dtype).max
    np.testing.assert_array_equal(ens.to_array(), np.column_stack(columns))
    assert ens.has_missing == missing
    assert (ens.codes == ens.missing_code).sum() == 3 * missing
    for m, column in enumerate(columns):
        counts = np.bincount(column[column >= 0])
        np.testing.assert_array_equal(ens.sizes[ens.offsets[m] : ens.offsets[m + 1]], counts)


@pytest.mark.parametrize("kind", ["integers", "sparse integers", "strings", "objects", "categories"])
def test_numbering_does_not_depend_on_the_order_of_the_objects(kind):
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 5, (40, 3))
    columns = {
        "integers": lambda c: c,
        "sparse integers": lambda c: c * 10**12,
        "strings": lambda c: np.array(list("edcba"))[c],
        "objects": lambda c: np.array([10, "ten", None, 9, "nine"], dtype=object)[c],
        "categories": lambda c: pd.Categorical(np.array(list("edcba"))[c], categories=list("cadbe")),
    }
    order = rng.permutation(len(labels))
    ens = ge.Ensemble([columns[kind](column) for column in labels.T])
    permuted = ge.Ensemble([columns[kind](column[order]) for column in labels.T])
    np.testing.assert_array_equal(permuted.codes, ens.codes[order])
    np.testing.assert_array_equal(permuted.sizes, ens.sizes)
    assert [c.tolist() for c in permuted.categories] == [c.tolist() for c in ens.categories]


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("order", ["C", "F", "neither", "backwards", "of fields"])
@pytest.mark.parametrize(
    "dtype", ["?", "i1", "i2", "i4", ">i4", "i8", ">i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g"]
)
def test_a_matrix_is_encoded_like_its_columns(dtype, order, threads, monkeypatch):
    """Labels within the range of a table are encoded by tables.

    Other labels, and columns in a list, are encoded by sorting.
    """
    monkeypatch.setenv("GPUENS_THREADS", threads)
    rng = np.random.default_rng(0)
    labels = rng.integers([2, 3, 120, 90, 5, 2], size=(15_000, 6)).astype(float)
    kind = np.dtype(dtype).kind
    if kind in "uif" and dtype not in ("i1", "u1"):
        labels[:, 1] *= 1000  # labels with gaps between them
        labels[5, 4] = 2047
    if dtype in ("i4", "i8", "f4", "f8", ">i8"):
        labels[:, 5] += 4095  # 4095 is the largest label that fits in a table; 4096 does not fit
        labels[:4200, 2] = np.arange(4200)
    if kind in "if":
        labels[rng.random(labels.shape) < 0.1] = -1
    if kind == "f":
        labels[:, 3][labels[:, 3] == 7] = np.nan
        labels[0] = -0.0
    given = np.asarray(labels.astype(dtype), order="F" if order == "F" else "C")
    if order == "neither":
        given = np.repeat(given, 2, axis=1)[:, ::2]
    elif order == "backwards":
        given = given[::-1].copy()[::-1]
    elif order == "of fields":  # whose steps are no multiples of their size
        records = np.zeros(given.shape, dtype=[("gap", np.uint8), ("label", given.dtype)])
        records["label"] = given
        given = records["label"]
    codes, categories = encode_columns(given.T, list(range(6)))
    expected, their_categories = encode_columns(list(given.T), list(range(6)))
    assert (codes.dtype, codes.flags.f_contiguous) == (expected.dtype, True)
    np.testing.assert_array_equal(codes, expected)
    for found, other in zip(categories, their_categories, strict=True):
        np.testing.assert_array_equal(found, other)
        assert found.dtype == other.dtype


@pytest.mark.parametrize("n_clusters", [255, 256, 4096, 4097, 65_535, 65_536])
def test_a_matrix_of_many_clusters_is_encoded_like_its_columns(n_clusters):
    rng = np.random.default_rng(n_clusters)
    labels = rng.integers(40, size=(70_000, 2))
    labels[:, 0] = rng.permutation(np.arange(70_000) % n_clusters)
    labels[::9, 1] = labels[1::9, 0] = -1
    codes, categories = encode_columns(labels.T, [0, 1])
    expected, their_categories = encode_columns(list(labels.T), [0, 1])
    assert codes.dtype == expected.dtype
    np.testing.assert_array_equal(codes, expected)
    assert [found.tolist() for found in categories] == [found.tolist() for found in their_categories]


@pytest.mark.parametrize(("label", "message"), [(-2.0, "contain -2"), (0.5, "not whole"), (np.inf, "infinity")])
def test_refusals_are_the_same_for_many_labels(label, message):
    labels = np.zeros((20_000, 5))
    labels[7, 3] = label
    with pytest.raises(ValueError, match=f"labels of clustering 3 .*{message}"):
        ge.Ensemble(labels)


def test_random_labels_against_the_slow_numbering():
    rng = np.random.default_rng(0)
    for n, m, k in [(1, 1, 3), (7, 3, 2), (50, 4, 60), (200, 5, 9)]:
        labels = rng.integers(-1, k, (n, m)) * rng.choice([1, 3, 10**9], m)
        labels[labels < 0] = -1
        labels[0] = labels[labels[:, 0].argmax()] = np.abs(labels[0])  # these objects have a label in every clustering
        labels[(labels == -1).all(axis=1)] = 0
        columns = list(labels.T)
        check(ge.Ensemble(columns), [column.tolist() for column in columns])


# --- methods ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ens():
    return ge.Ensemble([["b", "a", "a", None], [3, 3, 7, 7], [0, 1, 2, 1]], names=["p", "q", "r"])


@pytest.mark.parametrize(
    "rows", [[3, 0], np.array([3, 0], dtype=np.uint8), [-1, 0], np.array([True, False, False, True]), slice(0, 4, 3)]
)
def test_take_keeps_the_numbering(ens, rows):
    subset = ens.take(rows)
    expected = ens.to_array()[rows]
    np.testing.assert_array_equal(subset.to_array(), expected)
    assert subset.n_objects == len(subset) == 2
    assert subset.offsets.tolist() == ens.offsets.tolist()
    assert [c.tolist() for c in subset.categories] == [c.tolist() for c in ens.categories]
    assert subset.names == ["p", "q", "r"]
    counted = [(expected[:, m] == code).sum() for m in range(3) for code in range(len(ens.categories[m]))]
    assert subset.sizes.tolist() == counted
    assert 0 in counted  # an empty cluster keeps its number
    assert subset.has_missing
    assert subset.codes.flags.f_contiguous
    assert len(ens) == 4
    assert ens.sizes.tolist() == [2, 1, 2, 2, 1, 2, 1]


def test_take_nothing_and_everything(ens):
    assert ens.take([]).n_objects == 0
    assert ens.take([]).sizes.tolist() == [0] * ens.n_clusters
    np.testing.assert_array_equal(ens.take(slice(None)).codes, ens.codes)
    with pytest.raises(ValueError, match="rows contains an index outside 0 … 3"):
        ens.take([4])
    with pytest.raises(TypeError, match="rows must be"):
        ens.take([0.5])


SEVERAL = {  # 300 objects with codes of uint8 and uint16, texts, and missing labels
    "few": [m % 3 for m in range(300)],
    "text": ["ab"[m % 2] if m % 5 else None for m in range(300)],
    "many": list(range(299, -1, -1)),
    "gaps": [-1 if m < 20 else 10 * (m % 7) for m in range(300)],
    "full": [m % 255 for m in range(300)],  # as many clusters as uint8 has codes
}
CHOICES = [list(some) for n in range(1, 5) for some in combinations(SEVERAL, n) if {*some} - {"text", "gaps"}]


def same(found, expected):
    """Check that two ensembles are equal in all attributes, and that their codes are on the same device."""
    assert found.codes.dtype == expected.codes.dtype
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    assert found.names == expected.names
    assert [c.tolist() for c in found.categories] == [c.tolist() for c in expected.categories]
    assert (found.device_kind, found.has_missing) == (expected.device_kind, expected.has_missing)
    assert found.codes.flags.f_contiguous


def made_of(names):
    return ge.Ensemble([SEVERAL[name] for name in names], names=names)


@pytest.mark.parametrize("own", CHOICES)
def test_clusterings_come_and_go_as_if_all_were_encoded_at_once(own):
    ens, whole = made_of(own), made_of(SEVERAL)
    new = [name for name in SEVERAL if name not in own]
    before = ens.to_array()
    same(ens.with_({name: SEVERAL[name] for name in new}), made_of([*own, *new]))
    same(ens.with_([SEVERAL[name] for name in new], names=new), made_of([*own, *new]))
    np.testing.assert_array_equal(ens.to_array(), before)
    same(whole.without(new), ens)
    same(whole.without([list(SEVERAL).index(name) for name in new]), ens)


def test_clusterings_come_from_frames_and_ensembles(ens):
    frame = pd.DataFrame({"u": ["x", "x", None, "y"], "v": [1, 2, 3, -1]})
    expected = ge.Ensemble([["b", "a", "a", None], [3, 3, 7, 7], [0, 1, 2, 1], *(frame[name] for name in "uv")])
    expected = ge.Ensemble(expected, names=list("pqruv"))
    same(ens.with_(frame), expected)
    same(ens.with_(frame[["u"]]).with_({"v": frame["v"]}), expected)
    other = ge.Ensemble([[0, 0, 1, 1], [1, 2, 2, 2]], names=["s", "t"])
    same(ens.with_(other), ens.with_([[0, 0, 1, 1], [1, 2, 2, 2]], names=["s", "t"]))
    same(expected.without(["u", "v"]), ens)


def test_clusterings_without_names_are_numbered_on():
    labels = np.array([[0, 1, 1, 0], [0, 0, 1, 2], [1, 1, 0, 3], [1, 1, 0, 3]])
    whole = ge.Ensemble(labels)
    same(ge.Ensemble(labels[:, :1]).with_(labels[:, 1:3]).with_(ge.Ensemble(labels[:, 3:])), whole)
    fewer = whole.without(1)
    assert fewer.names == [0, 2, 3]
    assert fewer.without(3).names == [0, 2]  # 3 is the name, not the position, of a clustering
    assert fewer.with_(labels[:, :2]).names == [0, 2, 3, 4, 5]
    assert ge.Ensemble(labels, names=list("abcd")).with_(labels[:, :2]).names == [*"abcd", 0, 1]
    assert ge.Ensemble(labels, names=list("abcd")).without([0, "c", np.int64(3)]).names == ["b"]


def test_a_subset_keeps_its_numbering_when_clusterings_come_and_go():
    ens = made_of(SEVERAL).take([0, 1, 2, 30])
    found = ens.without("many").with_(ens.without(["few", "text", "gaps", "full"]))
    assert found.names == ["few", "text", "gaps", "full", "many"]
    assert found.sizes.sum() == 4 * 5 - 2 - 3  # 'text' has no label for two of the objects, 'gaps' for three
    assert len(found.categories[-1]) == 300


def test_what_cannot_come_or_go_is_refused(ens):
    refused(lambda: ens.with_([[0, 1, 0]]), ValueError, "labels are of 3 objects and the ensemble has 4")
    refused(lambda: ens.with_({"p": [0, 1, 0, 1]}), ValueError, "there is a clustering 'p' already")
    refused(lambda: ens.with_({"s": [-1, -1, -1, -1]}), ValueError, "labels of clustering 's' are all missing")
    refused(lambda: ens.with_({"s": [0.5, 0, 0, 0]}), ValueError, "labels of clustering 's' are not whole numbers")
    refused(lambda: ens.with_([[0, 1, 0, 1]], names=["s", "t"]), ValueError, "names must be one for each clustering")
    refused(lambda: ens.with_({}), ValueError, "labels are empty")
    refused(lambda: ens.with_(None), TypeError, "labels must be")
    with pytest.warns(UserWarning, match="constant clusterings carry no information: s"):
        ens.with_({"s": [1, 1, 1, 1]})
    refused(lambda: ens.without("s"), ValueError, "there is no 's'; there are 'p', 'q', 'r'")
    refused(lambda: ens.without([0, 3]), ValueError, "there is no 3; there are 'p', 'q', 'r'")
    refused(lambda: ens.without(-1), ValueError, "there is no -1")
    refused(lambda: ens.without([True, False, True]), TypeError, "must be names or indices, not True")
    refused(lambda: ens.without(["p", "q", 2]), ValueError, "none would be left")
    refused(lambda: ens.without(["q", "r"]), ValueError, "1 object(s) have a label in none of the others", "object 3")
    twice = ge.Ensemble(ens, names=["p", "p", "q"])
    refused(lambda: twice.without("p"), ValueError, "'p' is the name of several")
    assert twice.without(0).names == ["p", "q"]


def test_clusterings_come_and_go_in_gpu_memory(fake_cupy):
    on_gpu = ge.Ensemble([fake_cupy.asarray(SEVERAL[name]) for name in ("few", "gaps")], names=["few", "gaps"])
    found = on_gpu.with_({"many": fake_cupy.asarray(SEVERAL["many"])})
    assert device.kind_of(found.codes_on("cuda")) == "cuda"
    assert found._copies.keys() == {"cuda"}
    fewer = found.without("gaps")
    assert fewer._copies.keys() == {"cuda"}
    for ours, names in ((found, ["few", "gaps", "many"]), (fewer, ["few", "many"])):
        assert ours.device_kind == "cuda"
        ours.device_kind = "cpu"
        same(ours, made_of(names))
    refused(lambda: on_gpu.with_({"many": SEVERAL["many"]}), TypeError, "labels are in host memory", "in GPU memory")
    refused(lambda: made_of(["few"]).with_(on_gpu), TypeError, "labels are in GPU memory")


def test_to_array_is_the_callers_to_change(ens):
    array = ens.to_array()
    assert array.dtype == np.int64
    array[:] = 0
    assert ens.to_array()[3, 0] == -1


def test_to_array_reads_back(ens):
    again = ge.Ensemble(ens.to_array())
    np.testing.assert_array_equal(again.codes, ens.codes)
    np.testing.assert_array_equal(again.sizes, ens.sizes)


def test_an_ensemble_is_taken_as_it_is(ens):
    again = ge.Ensemble(ens)
    assert again.codes is ens.codes
    assert again.names == ["p", "q", "r"]
    renamed = ge.Ensemble(ens, names=["u", "v", "w"])
    assert (renamed.names, ens.names) == (["u", "v", "w"], ["p", "q", "r"])


def test_names():
    assert ge.Ensemble([[0, 1], [1, 0]]).names == [0, 1]
    assert ge.Ensemble([[0, 1], [1, 0]], names=("x", "y")).names == ["x", "y"]
    assert ge.Ensemble(pd.DataFrame({"a": [0, 1], "b": [0, 1]}), names=["x", "y"]).names == ["x", "y"]


def test_repr_and_length(ens):
    assert repr(ens) == "Ensemble(n_objects=4, n_clusterings=3, n_clusters=7)"
    assert len(ens) == 4


def test_large_label_matrices_are_encoded_in_a_moment():
    labels = np.random.default_rng(0).integers(0, 100, (581_012, 20), dtype=np.uint8)
    start = time.perf_counter()
    ens = ge.Ensemble(labels)
    seconds = time.perf_counter() - start
    assert ens.codes.dtype == np.uint8
    np.testing.assert_array_equal(ens.codes, labels)
    assert seconds < 3  # 0.06 s is normal; only a loop over objects takes 3 s


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool])
@pytest.mark.parametrize("largest", [1, 100, 2000])
def test_a_small_matrix_is_encoded_at_once_as_its_columns_are_one_by_one(largest, dtype):
    rng = np.random.default_rng(largest)
    labels = rng.integers(0, 1 + min(largest, np.iinfo(dtype).max if dtype is not bool else 1), (300, 4))
    if np.issubdtype(dtype, np.signedinteger):
        labels[:, 1:][rng.random((300, 3)) < 0.2] = -1
    found, expected = ge.Ensemble(labels.astype(dtype)), ge.Ensemble(list(labels.astype(dtype).T))
    assert (found.codes.dtype, found.codes.flags.f_contiguous) == (expected.codes.dtype, True)
    np.testing.assert_array_equal(found.codes, expected.codes)
    for one, other in zip(found.categories, expected.categories, strict=True):
        assert one.dtype == other.dtype == dtype
        np.testing.assert_array_equal(one, other)


def test_bytes_are_texts():
    codes = ge.Ensemble([np.array([b"0", b"-1", b"1", b"nan"]), np.array([1, 2, 2, 1])]).to_array()
    np.testing.assert_array_equal(codes[:, 0], [0, -1, 1, -1])


def test_texts_that_utf8_cannot_encode_are_told_apart():
    texts = np.array([f"é\ud800{number % 500}" for number in range(2000)], dtype=object)
    expected = np.unique(texts.astype(str), return_inverse=True)[1]
    names = {text: number for number, text in enumerate(sorted({*texts}))}
    ens = ge.Ensemble([texts.tolist(), expected])
    assert ens.n_clusters == 1000
    np.testing.assert_array_equal(ens.to_array()[:, 0], [names[text] for text in texts])


# --- many columns -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 10_000, 2**24])
def test_columns_of_all_types_are_encoded_alike_alone_and_together(at_once, sizes):
    """Compares with ensembles of one column each."""
    sizes("labels.encoding", BYTES_AT_ONCE=at_once)
    rng = np.random.default_rng(1)
    types = ("i8", "u1", "i8", "i8", "f4", "f4", "?", "?", "U", "f8", "f8", "f8", "u8", "u8", ">i4", "i8", "i8")
    columns = [rng.integers(0, 2 if dtype == "?" else 6, 40).astype(dtype) for dtype in types]
    columns[0] = columns[0] * 10**12  # too large for a table
    columns[2][:3], columns[4][3:6], columns[10][6:9] = -1, np.nan, -1
    columns[12][0] = 2**63
    columns += [columns[0][::-1], columns[3][::2].repeat(2), columns[5].tolist()]
    found = ge.Ensemble(columns)
    for m, column in enumerate(columns):
        alone = ge.Ensemble([column, np.arange(40) % 2])
        assert found.categories[m].dtype == alone.categories[0].dtype
        assert found.categories[m].tolist() == alone.categories[0].tolist()
        np.testing.assert_array_equal(found.to_array()[:, m], alone.to_array()[:, 0])


def test_odd_columns_among_many_are_named():
    columns = [np.zeros(30, int) + (np.arange(30) > m % 30) for m in range(2000)]
    columns[1234] = columns[1234] - 5
    refused(lambda: ge.Ensemble(columns), ValueError, "clustering 1234", "contain -5")
