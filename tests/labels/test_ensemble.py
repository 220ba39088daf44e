"""The label matrix: every kind of input becomes the same compact codes, and missing labels stay missing."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused

import gpuens as ge
from gpuens.labels.encoding import encode_columns
from gpuens.runtime import device

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
NAN = float("nan")


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


# --- kinds of labels and containers -----------------------------------------------------------------------------------


def matrices(columns, *dtypes):
    """Return label matrices (N, M) of several types, in both orders, each beside its columns."""
    return [(np.array(columns, dtype=dtype).T.copy(order=order), columns) for dtype in dtypes for order in "CF"]


def frames(columns, *dtypes):
    """Return frames of several types, each beside its columns."""
    if "int64[pyarrow]" in dtypes:
        pytest.importorskip("pyarrow")
    return [(pd.DataFrame({m: pd.Series(c, dtype=t) for m, c in enumerate(columns)}), columns) for t in dtypes]


def numbers():
    """Yield numbers of every width, huge ones, and those on either side of the switch from tables to sorting."""
    yield from matrices([[3, 0, 3, 100, 7], [9, 9, 9, 2, 2]], *INTEGERS, ">i4", "f2", "f4", "f8", "g")
    yield from matrices([[3, -1, 3, 0], [-1, 5, 5, 6]], "i1", "i2", "i4", "i8", "f4", "f8")
    for dtype in INTEGERS[4:]:
        largest = int(np.iinfo(dtype).max)
        yield from matrices([[largest, 0, largest, 1], [0, 1, largest - 1, largest]], dtype)
    for dtype in ("i8", "u8"):
        largest = int(np.iinfo(dtype).max)
        yield from matrices([[largest, 10**15, largest, 0, 10**15 + 1], [1, 2**53, 2**53 + 1, 2**53, 2**53]], dtype)
    yield from matrices([[2**62, -1, 2**62 + 1, -1], [-1, 0, 10**12, 10**12]], "i8")
    for top in (6 + 255, 6 + 256, 6 + 257, 4095, 4096):
        yield from matrices([[top, -1, 3, 3, 0, top - 1], [0, 1, 2, top, top, -1]], "i8")
    yield from matrices([[True, False, True], [False, False, True]], "?")
    yield from matrices([[3.0, NAN, 0.0, 3.0], [1.0, 1.0, 2.0, NAN]], "f2", "f4", "f8")
    yield np.array([[7]]), [[7]]


def texts_and_objects():
    columns = [["b", "a", "ccc", "b"], ["10", "9", "9", "10"]]
    yield from matrices(columns, "U3", "O", *([np.dtypes.StringDType()] if hasattr(np.dtypes, "StringDType") else []))
    yield from matrices([[text.encode() for text in column] for column in columns], "S3")
    yield from matrices([["b", None, "a", "b"], [3, 3, pd.NA, 4], ["x", NAN, "x", "y"]], "O")
    yield from matrices([[10, 9, None, -1], [2.0, 3, 2, NAN], [True, False, None, True]], "O")


def lists():
    columns = [[0, 0, 1, 2], ["a", None, "b", "b"], [5.0, NAN, 5.0, 7.0]]
    yield columns, columns
    yield tuple(map(tuple, columns)), columns
    columns = [["a", NAN, "b"], [None, "a", "c"], ["x", pd.NA, "y"]]
    yield columns, columns
    columns = [[2**63, 2**63 + 1, -1, None], [2**70, 5, 5, 2**70 + 1], [2**62, -1, None, 2**62 + 1]]
    yield columns, columns
    yield [np.array(column) for column in ([0, 1], [1, 0], [5, 6])], [[0, 1], [1, 0], [5, 6]]
    columns = [[0, 1, 2, 300], ["b", "a", "a", "b"], [1, None, 1, 0], ["u", "v", None, "u"], [True, False, True, True]]
    types = [np.uint16, None, pd.Series([1, None, 1, 0], index=[9, 9, 8, 7]), pd.Categorical(columns[3]), bool]
    yield [np.array(columns[0], types[0]), columns[1], *types[2:4], np.array(columns[4])], columns


def data_frames():
    """Yield frames; they may have more clusterings than objects, and several columns of one name."""
    yield from frames([[3, 100, None, 3], [2, 2, 7, 7]], "Int64", "Int8", "UInt16", "Float64", "int64[pyarrow]")
    yield from frames([["b", "a", None, "b"], ["x", "y", "y", "x"]], "category", "string", "object")
    yield from frames([[True, False, None, True], [False, False, True, True]], "boolean")
    yield from frames([[3, -1, None, 4], [-1, 5, 6, 6]], "Int64")
    yield from frames([[0, 1], [1, 0], [2, 3]], "i8")
    yield pd.DataFrame([[0, 1, 2], [1, 1, 3]], columns=list("abc")).drop(columns="b"), [[0, 1], [2, 3]]
    rows = [[0, "a", None], [1, "b", 2.0], [1, "a", 2.0], [5, "b", 4.0]]
    yield pd.DataFrame(rows, columns=["x", "x", "y"]), [list(column) for column in zip(*rows, strict=True)]
    # categories are ordered by value, and unused ones are left out
    text = pd.Categorical(["lo", "hi", "lo", None], categories=["lo", "never", "hi"], ordered=True)
    number = pd.Categorical([7, -1, 5, 7], categories=[9, 7, 5, -1])
    for labels in (pd.DataFrame({"text": text, "number": number}), [text, number]):
        yield labels, [["lo", "hi", "lo", None], [7, -1, 5, 7]]


@pytest.mark.parametrize("forms", [numbers, texts_and_objects, lists, data_frames])
def test_labels_of_any_type_in_any_container_are_numbered_by_value(forms):
    for labels, columns in forms():
        ens = ge.Ensemble(labels)
        check(ens, columns)
        assert ens.names == list(getattr(labels, "columns", range(len(columns))))


def test_categories_have_the_narrowest_kind_of_number():
    columns = [np.array([True, False, True]), [2**63, -1, 1], np.array([3.0, NAN, 0.0]), np.array([1, 2, 2], np.int8)]
    assert [c.dtype for c in ge.Ensemble(columns).categories] == [bool, np.uint64, np.int64, np.int8]


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 1 has no StringDType")
def test_numpy_variable_strings():
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


def test_tuples_dates_and_intervals_are_labels_too():
    days = np.array(["2024-01-03", "NaT", "2024-01-02", "2024-01-03"], dtype="datetime64[ns]")
    pairs = np.empty(4, dtype=object)
    pairs[:] = [(1, 2), (0, 9), (1, 2), None]
    ens = ge.Ensemble([days, pairs, [Fraction(1, 2), Fraction(1, 3), Fraction(1, 2), None]])
    assert ens.to_array().tolist() == [[1, 1, 1], [-1, 0, 0], [0, 1, 1], [1, -1, -1]]
    assert list(ens.categories[1]) == [(0, 9), (1, 2)]
    bins = ge.Ensemble(pd.DataFrame({"bin": pd.cut([1.0, 9.0, 5.0, np.nan], 2), "other": [0, 1, 1, 0]}))
    assert bins.to_array()[:, 0].tolist() == [0, 1, 0, -1]


def test_masked_entries_are_missing_and_matrices_are_taken():
    labels = np.ma.masked_equal(np.array([[4, 2], [-999, 2], [5, -999], [4, 3]]), -999)
    check(ge.Ensemble(labels), [[4, None, 5, 4], [2, 2, None, 3]])
    check(ge.Ensemble(np.ma.array([[4, 2], [5, 3]])), [[4, 5], [2, 3]])
    with pytest.warns(PendingDeprecationWarning):
        check(ge.Ensemble(np.matrix([[0, 1], [0, 2], [1, 2]])), [[0, 0, 1], [1, 2, 2]])


def test_the_caller_s_array_is_left_alone(tmp_path):
    columns = [[3, 0, 3, 100, 7], [9, 9, -1, 2, 10**9]]
    np.save(tmp_path / "labels.npy", np.array(columns).T)
    ens = ge.Ensemble(np.load(tmp_path / "labels.npy", mmap_mode="r"))
    check(ens, columns)
    assert not any(isinstance(array, np.memmap) for array in [ens.codes, *ens.categories])
    for labels in (np.array([[1, 2], [-1, 2], [3, 4]]), np.array([[1, 2], [np.nan, 2], [3, 4]])):
        before = labels.copy()
        labels.flags.writeable = False
        ge.Ensemble(labels)
        np.testing.assert_array_equal(labels, before)


def test_objects_without_any_label_are_left_out_as_the_refusal_says():
    labels = [[0, -1, 1, 0], ["a", None, None, "b"]]
    refused(lambda: ge.Ensemble(labels), ValueError, "1 object(s)", "object 1", "Ensemble.of_labelled")
    ens, labelled = ge.Ensemble.of_labelled(labels)
    assert (ens.to_array().tolist(), labelled.tolist()) == ([[0, 0], [1, -1], [0, 1]], [True, False, True, True])


def test_polars():
    polars = pytest.importorskip("polars")
    columns = [[3, None, 0, 3], ["b", "a", None, "a"], ["u", "v", "v", "u"]]
    categorical = polars.Series(columns[2], dtype=polars.Categorical)
    frame = polars.DataFrame({"n": columns[0], "s": columns[1], "c": categorical})
    check(ge.Ensemble(frame), columns)
    assert ge.Ensemble(frame).names == ["n", "s", "c"]
    check(ge.Ensemble([frame["n"], frame["s"]]), columns[:2])


class OnlyDLPack:
    """An array that supports DLPack only."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


class OnlyInterface:
    """An array that supports NumPy's array interface, or that of CUDA, only."""

    def __init__(self, array):
        self._array = array  # this reference keeps alive the memory that the interface describes
        name = "__cuda_array_interface__" if hasattr(array, "__cuda_array_interface__") else "__array_interface__"
        setattr(self, name, getattr(array, name))


class OnlyArray:
    """An array that supports ``__array__`` only."""

    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return self._array.astype(dtype or self._array.dtype)


@pytest.mark.parametrize("wrap", [OnlyDLPack, OnlyInterface, OnlyArray])
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
    codes = ens.codes_on("cuda")
    assert isinstance(codes, fake_cupy.ndarray)
    assert codes.flags.f_contiguous
    # A table of labels, label values and cluster sizes are copied to the host, but never a column of labels.
    table, widest = labels.shape[1] * (len(labels) + 1056) // 8, max(len(c) for c in expected.categories)
    assert fake_cupy.traffic.to_host.largest <= max(table, 8 * widest, 8 * expected.n_clusters)
    assert fake_cupy.traffic.to_device.bytes == 0
    same(ens, expected, "cuda")
    np.testing.assert_array_equal(fake_cupy.asnumpy(on_gpu), labels)  # the caller's array is unchanged


@pytest.mark.parametrize("wrap", [lambda array: array, OnlyDLPack, OnlyInterface])
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
    same(ens, ge.Ensemble(columns), "cuda")
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
    for dtype in (np.int64, np.int32):
        on_gpu = fake_cupy.asarray(rows.astype(dtype))
        fake_cupy.reset()
        subset = ens.take(on_gpu)
        assert isinstance(subset.codes_on("cuda"), fake_cupy.ndarray)
        assert subset.codes_on("cuda").flags.f_contiguous
        assert fake_cupy.traffic.to_host.largest <= 8 * ens.n_clusters
        same(subset, expected, "cuda")
    mask = np.isin(np.arange(2000), rows)
    same(ens.take(fake_cupy.asarray(mask)), ge.Ensemble(labels).take(mask), "cuda")
    same(ens.take(rows), expected, "cuda")  # the indices may be in host memory, although the codes are on the device


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
    for on_host in ([0, 1, 1], np.array([0, 1, 1])):
        mixture = "labels mix arrays in GPU memory with arrays in host memory", "cupy.asarray or cupy.asnumpy"
        refused(lambda on_host=on_host: ge.Ensemble([a, on_host]), TypeError, *mixture)
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
    many = np.arange(n_clusters + 3) % n_clusters
    few = np.arange(n_clusters + 3) % 2
    if missing:
        many[-3], few[-2] = -1, -1
    columns = [many, few, few] if wide_first else [few, few, many]
    ens = ge.Ensemble(columns)
    assert (ens.codes.dtype, ens.missing_code, ens.has_missing) == (dtype, np.iinfo(dtype).max, missing)
    np.testing.assert_array_equal(ens.to_array(), np.column_stack(columns))
    assert (ens.codes == ens.missing_code).sum() == 3 * missing
    counts = np.concatenate([np.bincount(column[column >= 0]) for column in columns])
    np.testing.assert_array_equal(ens.sizes, counts)


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


def assert_encoded_like_columns(matrix):
    """Assert that a label matrix is encoded like the list of its columns."""
    codes, categories = encode_columns(matrix.T, list(range(matrix.shape[1])))
    expected, others = encode_columns(list(matrix.T), list(range(matrix.shape[1])))
    assert codes.flags.f_contiguous
    np.testing.assert_array_equal(codes, expected, strict=True)
    for values, other in zip(categories, others, strict=True):
        np.testing.assert_array_equal(values, other, strict=True)


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
    matrix = np.asarray(labels.astype(dtype), order="F" if order == "F" else "C")
    if order == "neither":
        matrix = np.repeat(matrix, 2, axis=1)[:, ::2]
    elif order == "backwards":
        matrix = matrix[::-1].copy()[::-1]
    elif order == "of fields":  # whose steps are no multiples of their size
        records = np.zeros(matrix.shape, dtype=[("gap", np.uint8), ("label", matrix.dtype)])
        records["label"] = matrix
        matrix = records["label"]
    assert_encoded_like_columns(matrix)
    assert_encoded_like_columns(matrix[:300])  # few labels are encoded at once


@pytest.mark.parametrize("n_clusters", [255, 256, 4096, 4097, 65_535, 65_536])
def test_a_matrix_of_many_clusters_is_encoded_like_its_columns(n_clusters):
    rng = np.random.default_rng(n_clusters)
    labels = rng.integers(40, size=(70_000, 2))
    labels[:, 0] = rng.permutation(np.arange(70_000) % n_clusters)
    labels[::9, 1] = labels[1::9, 0] = -1
    assert_encoded_like_columns(labels)


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
        check(ge.Ensemble(list(labels.T)), labels.T.tolist())


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
    counts = [(expected[:, m] == code).sum() for m in range(3) for code in range(len(ens.categories[m]))]
    assert subset.sizes.tolist() == counts
    assert 0 in counts  # an empty cluster keeps its number
    assert subset.has_missing
    assert subset.codes.flags.f_contiguous
    assert (len(ens), ens.sizes.tolist()) == (4, [2, 1, 2, 2, 1, 2, 1])


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


def same(ens, expected, device_kind="cpu"):
    """Check that two ensembles are equal in all attributes, and that the first is where it should be."""
    for name in ("codes", "sizes", "offsets"):
        np.testing.assert_array_equal(getattr(ens, name), getattr(expected, name), strict=True)
    for values, others in zip(ens.categories, expected.categories, strict=True):
        np.testing.assert_array_equal(values, others, strict=True)
    attributes = ens.names, ens.has_missing, ens.missing_code, ens.device_kind
    assert attributes == (expected.names, expected.has_missing, expected.missing_code, device_kind)
    assert ens.codes.flags.f_contiguous


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
    for labels, kind, sentence, *names in (
        ([[0, 1, 0]], ValueError, "labels are of 3 objects and the ensemble has 4"),
        ({"p": [0, 1, 0, 1]}, ValueError, "there is a clustering 'p' already"),
        ({"s": [-1, -1, -1, -1]}, ValueError, "labels of clustering 's' are all missing"),
        ({"s": [0.5, 0, 0, 0]}, ValueError, "labels of clustering 's' are not whole numbers"),
        ([[0, 1, 0, 1]], ValueError, "names must be one for each clustering", "s", "t"),
        ({}, ValueError, "labels are empty"),
        (None, TypeError, "labels must be"),
    ):
        refused(lambda labels=labels, names=names: ens.with_(labels, names=names or None), kind, sentence)
    for names, kind, *sentences in (
        ("s", ValueError, "there is no 's'; there are 'p', 'q', 'r'"),
        ([0, 3], ValueError, "there is no 3; there are 'p', 'q', 'r'"),
        (-1, ValueError, "there is no -1"),
        ([True, False, True], TypeError, "must be names or indices, not True"),
        (["p", "q", 2], ValueError, "none would be left"),
        (["q", "r"], ValueError, "1 object(s) have a label in none of the others", "object 3"),
    ):
        refused(lambda names=names: ens.without(names), kind, *sentences)
    with pytest.warns(UserWarning, match="constant clusterings carry no information: s"):
        ens.with_({"s": [1, 1, 1, 1]})
    twice = ge.Ensemble(ens, names=["p", "p", "q"])
    refused(lambda: twice.without("p"), ValueError, "'p' is the name of several")
    assert twice.without(0).names == ["p", "q"]


def test_clusterings_come_and_go_in_gpu_memory(fake_cupy):
    on_gpu = ge.Ensemble([fake_cupy.asarray(SEVERAL[name]) for name in ("few", "gaps")], names=["few", "gaps"])
    more = on_gpu.with_({"many": fake_cupy.asarray(SEVERAL["many"])})
    assert device.kind_of(more.codes_on("cuda")) == "cuda"
    for ens, names in ((more, ["few", "gaps", "many"]), (more.without("gaps"), ["few", "many"])):
        assert ens._copies.keys() == {"cuda"}
        same(ens, made_of(names), "cuda")
    refused(lambda: on_gpu.with_({"many": SEVERAL["many"]}), TypeError, "labels are in host memory", "in GPU memory")
    refused(lambda: made_of(["few"]).with_(on_gpu), TypeError, "labels are in GPU memory")


def test_ensembles_and_their_arrays_are_read_back(ens):
    array = ens.to_array()
    assert array.dtype == np.int64
    again = ge.Ensemble(array)
    np.testing.assert_array_equal(again.codes, ens.codes)
    np.testing.assert_array_equal(again.sizes, ens.sizes)
    array[:] = 0  # it is the caller's to change
    assert ens.to_array()[3, 0] == -1
    again = ge.Ensemble(ens)
    assert again.codes is ens.codes
    assert again.names == ens.names
    assert ge.Ensemble(ens, names=["u", "v", "w"]).names == ["u", "v", "w"]
    assert ge.Ensemble([[0, 1], [1, 0]], names=("x", "y")).names == ["x", "y"]
    assert ge.Ensemble(pd.DataFrame({"a": [0, 1], "b": [0, 1]}), names=["x", "y"]).names == ["x", "y"]
    assert repr(ens) == "Ensemble(n_objects=4, n_clusterings=3, n_clusters=7)"


def test_bytes_and_texts_that_utf8_cannot_encode_are_texts():
    codes = ge.Ensemble([np.array([b"0", b"-1", b"1", b"nan"]), np.array([1, 2, 2, 1])]).to_array()
    np.testing.assert_array_equal(codes[:, 0], [0, -1, 1, -1])
    texts = np.array([f"é\ud800{number % 500}" for number in range(2000)], dtype=object)
    expected = np.unique(texts.astype(str), return_inverse=True)[1]
    ens = ge.Ensemble([texts.tolist(), expected])
    assert ens.n_clusters == 1000
    np.testing.assert_array_equal(ens.to_array()[:, 0], [sorted({*texts}).index(text) for text in texts])


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
