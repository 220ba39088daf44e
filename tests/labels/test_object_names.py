"""Labels of the same objects are matched by their index names or refused; without names, by their positions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused, structured_labels

import gpuens as ge
from gpuens import io
from gpuens.io.joining import read_joined
from gpuens.labels.soft_ensemble import SoftEnsemble

N = 60
LABELS, TRUTH = structured_labels(N, 5, 3, noise=0.1, missing=0.05, seed=2)
# no missing labels in these columns, so that each object has a label in them
LABELS[:, :2] = np.maximum(LABELS[:, :2], 0)
INDEXES = {
    "texts": pd.Index([f"s{i}" for i in range(N)]),
    "numbers": pd.Index(7 * np.arange(N) + 3),
    "dates": pd.date_range("2024-01-01", periods=N),
    "pairs": pd.MultiIndex.from_arrays([np.arange(N) % 6, np.arange(N) // 6]),
}


@pytest.fixture(params=INDEXES)
def frame(request):
    return pd.DataFrame(LABELS, columns=list("abcde"), index=INDEXES[request.param])


def shuffled(named, seed=0):
    return named.iloc[np.random.default_rng(seed).permutation(len(named))]


def same(ensemble, expected):
    np.testing.assert_array_equal(ensemble.codes, expected.codes)
    np.testing.assert_array_equal(ensemble.sizes, expected.sizes)


def test_series_in_other_orders_go_together_by_names(frame):
    columns = [shuffled(frame[name], seed) if seed else frame[name] for seed, name in enumerate(frame)]
    ens = ge.Ensemble(columns)
    same(ens, ge.Ensemble(frame))
    assert ens.index.equals(ge.Ensemble(frame).index)
    assert ens.index.equals(frame.index)
    assert ens.take(np.arange(0, N, 2)).index is ge.Ensemble(LABELS).index is None
    assert ge.LWEA(3).fit(columns).labels_.tolist() == ge.LWEA(3).fit(frame).labels_.tolist()
    assert ge.consensus(columns, 3).tolist() == ge.consensus(frame, 3).tolist()
    apart = ge.Ensemble([column.to_numpy() for column in columns])  # NumPy arrays have no object names
    assert ge.metrics.ari(TRUTH, ge.consensus(apart, 3)) < 0.7 < 0.9 < ge.metrics.ari(TRUTH, ge.consensus(columns, 3))


def test_clusterings_that_come_later_go_by_names(frame):
    expected = ge.Ensemble(frame)
    first = ge.Ensemble(frame[["a", "b"]])
    same(first.with_(shuffled(frame[["c", "d", "e"]])), expected)
    same(first.with_({name: shuffled(frame[name], seed) for seed, name in enumerate("cde")}), expected)
    same(first.with_(ge.Ensemble(shuffled(frame[["c", "d", "e"]]))), expected)
    again = pickle.loads(pickle.dumps(expected.without("e")))
    same(again.with_(shuffled(frame[["e"]])), expected)
    of_some, labelled = ge.Ensemble.of_labelled(frame[["c"]])
    assert of_some.index.equals(frame.index[labelled])
    same(expected.without("e").encoded(frame[["a", "b", "c", "d"]]), expected.without("e"))


def test_truth_consensus_features_and_weights_go_by_names(frame):
    truth, weights = pd.Series(TRUTH, index=frame.index), pd.Series(np.arange(1, N + 1), index=frame.index)
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 3)) + 5 * TRUTH[:, None], index=frame.index)
    for score in (ge.metrics.ari, ge.metrics.nmi, ge.metrics.accuracy):
        assert score(truth, shuffled(frame["a"])) == score(TRUTH, LABELS[:, 0])
    assert ge.metrics.scores(shuffled(truth), frame["a"]) == ge.metrics.scores(TRUTH, LABELS[:, 0])
    np.testing.assert_array_equal(ge.contingency.table(truth, shuffled(truth)), np.diag(np.bincount(TRUTH)))
    assert ge.metrics.stability([frame["a"], shuffled(frame["b"])]) == ge.metrics.stability(LABELS[:, :2])

    def results(labels, truth, X, weights):
        return (
            ge.evidence.Evidence(labels, truth(0)).objects.confidence.tolist(),
            [(row["ari"], row["anmi"]) for row in ge.compare(labels, 3, methods=["eac", "tome"], truth=truth(0),
                                                             features=X(1)).rows],
            ge.TOME(3).fit(labels, features=X(2)).labels_.tolist(),
            ge.contingency.agreement(labels, weights=weights(0)).tolist(),
        )  # fmt: skip

    expected = results(LABELS, *(lambda seed, v=values: v for values in (TRUTH, X.to_numpy(), weights.to_numpy())))
    for labels in (frame, ge.Ensemble(frame)):
        assert results(labels, *(lambda seed, v=v: shuffled(v, seed) for v in (truth, X, weights))) == expected


def test_clusterings_for_each_k_and_soft_clusterings_go_by_names(frame):
    by_name, expected = ({2: frame, 3: shuffled(frame)}, {2: LABELS, 3: LABELS})
    by_name, expected = (ge.choose_k(labels, method="eac").labels for labels in (by_name, expected))
    np.testing.assert_equal(by_name, expected)
    shares = np.random.default_rng(0).dirichlet(np.ones(3), N)
    soft = SoftEnsemble([frame["a"], shuffled(pd.DataFrame(shares, index=frame.index)), shuffled(frame["b"], 1)])
    expected = SoftEnsemble([LABELS[:, 0], shares, LABELS[:, 1]])
    np.testing.assert_array_equal(soft.soft_on("cpu"), expected.soft_on("cpu"))
    np.testing.assert_array_equal(soft.codes_on("cpu"), expected.codes_on("cpu"))


def test_other_objects_are_refused(frame):
    other = frame["b"].copy()
    other.index = INDEXES["texts"][:-1].append(pd.Index(["new"]))
    truth = other.rename("truth")
    calls = [
        lambda: ge.Ensemble([frame["a"], other]),
        lambda: ge.Ensemble(frame[["a"]]).with_({"b": other}),
        lambda: ge.metrics.ari(frame["a"], truth),
        lambda: ge.evidence.Evidence(frame, pd.Series(TRUTH, index=other.index)),
        lambda: ge.compare(frame, 3, methods=["eac"], truth=truth),
        lambda: ge.TOME(3).fit(frame, features=pd.DataFrame(LABELS, index=other.index)),
    ]
    for call in calls:
        refused(call, ValueError, " has an object ", "fills what is missing", ".to_numpy()")
    refused(calls[0], ValueError, "gpuens.Ensemble.join")
    refused(lambda: ge.Ensemble([frame["a"], frame["b"].iloc[1:]]), ValueError, "has 59", "gpuens.Ensemble.join")
    refused(lambda: ge.Ensemble(frame[["a"]]).with_(frame[["b"]].iloc[1:]), ValueError, "gpuens.Ensemble.join")


def test_names_that_are_there_twice_go_by_places_in_one_order_only():
    twice = pd.Index([f"s{i // 2}" for i in range(N)])
    frame = pd.DataFrame(LABELS, index=twice, columns=list("abcde"))
    same(ge.Ensemble([frame["a"], frame["b"]]), ge.Ensemble(LABELS[:, :2]))
    refused(lambda: ge.Ensemble([frame["a"], frame["b"][::-1]]), ValueError, "labels[0] names several objects 's0'")
    unique = pd.Series(LABELS[:, 0], index=INDEXES["texts"])
    refused(lambda: ge.metrics.ari(unique, frame["b"]), ValueError, "b names several objects")


def test_without_names_places_count():
    fresh, named = pd.Series(LABELS[:, 0]), pd.Series(LABELS[:, 1], index=INDEXES["texts"])
    expected = ge.Ensemble(LABELS[:, :2])
    for columns in ([LABELS[:, 0], named], [fresh, pd.Series(LABELS[:, 1])], [list(LABELS[:, 0]), named]):
        same(ge.Ensemble(columns), expected)
    mixed = [LABELS[:, 0], named, shuffled(named)]
    refused(lambda: ge.Ensemble(mixed), ValueError, "labels[0] has no names", "labels[2]", "labels[1]")


@pytest.mark.parametrize("index", ["texts", "numbers"])
def test_a_count_of_rows_beside_names_is_refused(index):
    fresh, named = pd.Series(LABELS[:, 0]), pd.Series(LABELS[:, 1], index=INDEXES[index])
    for call in (
        lambda: ge.Ensemble([fresh, named]),
        lambda: ge.Ensemble([fresh, named, shuffled(named)]),
        lambda: ge.metrics.ari(fresh, named),
        lambda: ge.EAC(3).fit(named.to_frame().assign(b=LABELS[:, 2]), sample_weight=fresh + 1),
    ):
        refused(call, ValueError, "names the objects", "only counts them", ".to_numpy()")
    assert ge.metrics.ari(fresh.to_numpy(), named) == ge.metrics.ari(LABELS[:, 0], LABELS[:, 1])


def test_numbers_of_rows_in_another_order_are_names_with_a_warning():
    frame = pd.DataFrame(LABELS, columns=list("abcde"))
    with pytest.warns(UserWarning, match=r"labels\[1\] has the index of labels\[0\] in another order") as caught:
        found = ge.Ensemble([frame["a"], shuffled(frame["b"])])
    assert ".to_numpy()" in one_sentence(caught[0].message)
    same(found, ge.Ensemble(LABELS[:, :2]))
    with pytest.warns(UserWarning, match="b has the index of a in another order"):
        assert ge.metrics.ari(frame["a"], shuffled(frame["b"])) == ge.metrics.ari(LABELS[:, 0], LABELS[:, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(ge.Ensemble([shuffled(frame["a"]), shuffled(frame["b"])]), ge.Ensemble(shuffled(frame)[["a", "b"]]))


# --- numbers that float64 or int64 would change -----------------------------------------------------------------------

BIG = 2**53  # float64 holds BIG and BIG + 2, and rounds BIG + 1 to BIG
LARGE = [2**63 + 11 * i for i in range(6)]
INTEGERS = [BIG + i for i in range(6)]
VAST = [2**70, 2**70 + 1, -5, BIG + 1, 2**63, 3]
NUMBERS = {  # index of the names → their exact values
    "uint64": (pd.Index(np.array(LARGE, np.uint64)), LARGE),
    "UInt64": (pd.Index(LARGE, dtype="UInt64"), LARGE),
    "int64": (pd.Index(INTEGERS), INTEGERS),
    "int64[pyarrow]": (pd.Index(INTEGERS, dtype="int64[pyarrow]"), INTEGERS),
    "negative": (pd.Index([BIG + 1, -1, -2, -3, BIG + 3, 0]), [BIG + 1, -1, -2, -3, BIG + 3, 0]),
    "float64": (pd.Index([1e19, 2e19, 0.0, 3.0, float(BIG), 5.5]), [10**19, 2 * 10**19, 0, 3, BIG, 5.5]),
    "whole": (pd.Index([0.0, 7.0, 6.0, 5.0, 3.0, 9.0]), [0, 7, 6, 5, 3, 9]),
    "objects": (pd.Index(VAST, dtype=object), VAST),
}


@pytest.mark.parametrize("other", NUMBERS)
@pytest.mark.parametrize("one", NUMBERS)
@pytest.mark.filterwarnings("ignore")  # some pairs share no object
def test_names_are_equal_only_if_their_values_are(one, other):
    """Compares joins of indexes of two types with a dict of Python's exact numbers."""
    (first, first_values), (second, second_values) = NUMBERS[one], NUMBERS[other]
    names = list(dict.fromkeys([*first_values, *second_values]))
    labels = np.arange(6) // 2
    series = pd.Series(labels, first, name="p"), pd.Series(labels, second, name="q")
    joined = ge.Ensemble.join(series)
    assert [int(name) if name == int(name) else name for name in joined.index.tolist()] == names
    for column, values in zip(joined.to_array().T, (first_values, second_values), strict=True):
        of_values = dict(zip(values, labels, strict=True))
        assert column.tolist() == [of_values.get(name, -1) for name in names]
    if set(first_values) != set(second_values):
        refused(lambda: ge.Ensemble(list(series)), ValueError, "has an object")


@pytest.mark.parametrize("one", NUMBERS)
def test_other_objects_of_nearly_equal_numbers_are_refused(one):
    index, values = NUMBERS[one]
    last = next(value for value in (values[0] + 6, values[0] - 1) if value not in values)
    other = pd.Index([last, *values[1:]], dtype=object)
    frame = pd.DataFrame(LABELS[:6, :2], index=index)
    refused(lambda: ge.Ensemble([frame[0], pd.Series(LABELS[:6, 1], other)]), ValueError, "that labels[")
    order = [3, 1, 0, 5, 4, 2]
    moved = frame[1].iloc[order].set_axis(pd.Index([values[i] for i in order], dtype=object))
    same(ge.Ensemble([frame[0], moved]), ge.Ensemble(frame))


# --- files ------------------------------------------------------------------------------------------------------------


def test_names_in_parquet_beside_a_missing_name_are_not_rounded(tmp_path):
    labels = [0, 0, 1, 1]
    pd.DataFrame({"id": pd.array([BIG + 1, BIG, None, 7], "Int64"), "a": labels}).to_parquet(tmp_path / "a.parquet")
    assert io.read_ids(tmp_path / "a.parquet", id_column="id").tolist() == [BIG + 1, BIG, None, 7]
    frame = pd.DataFrame({"a": labels}, index=pd.Index([2**64 - 1, 2**63, 5, 7]))
    frame.to_parquet(tmp_path / "b.parquet")
    assert io.read_ids(tmp_path / "b.parquet").tolist() == [2**64 - 1, 2**63, 5, 7]


@pytest.mark.parametrize("names", [LARGE[:2], [2**63, -1], [2**70, 1], [(0, 1), (1, 2)], ["a", 1], [BIG + 1, BIG]])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz", "h5ad"])
def test_names_are_written_as_they_are(tmp_path, suffix, names):
    for ids in (names, pd.Index(names, dtype=object, name="object", tupleize_cols=False)):
        io.write_labels(tmp_path / f"out.{suffix}", [0, 1], ids=ids)
        column = {"csv": 0, "parquet": 0}.get(suffix) if getattr(ids, "name", None) else None
        found = io.read_ids(tmp_path / f"out.{suffix}", id_column=column)
        assert list(map(str, found.tolist())) == list(map(str, names))


def test_names_of_files_are_joined_as_numbers(tmp_path):
    for name, ids in (("a", np.array([2**63, 5], "u8")), ("b", np.array([5, 6]))):
        pd.DataFrame({"id": ids, name: [0, 1]}).to_parquet(tmp_path / f"{name}.parquet")
    found = read_joined([tmp_path / "a.parquet", tmp_path / "b.parquet"], id_column="id")
    assert found.ids.tolist() == [2**63, 5, 6]
    assert found.ensemble.to_array().tolist() == [[0, -1], [1, 0], [-1, 1]]


@pytest.mark.parametrize("missing", [["9223372036854775808"], ["9223372036854775808", "-1", "x"], ["7"]])
@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_missing_numbers_beside_large_labels(tmp_path, suffix, missing):
    labels = np.array([2**63, 2**63 + 1, 2**64 - 1, 7, 2**63 + 1], np.uint64)
    path = tmp_path / f"labels.{suffix}"
    frame = pd.DataFrame({"a": labels, "b": np.array([0, 0, 1, 1, 1], np.uint64)})
    np.save(path, frame.to_numpy()) if suffix == "npy" else frame.to_parquet(path)
    found = io.read_labels(path, missing=missing)
    kept = sorted(label for label in set(labels.tolist()) if str(label) not in missing)
    assert found.categories[0].tolist() == kept
    assert found.to_array()[:, 0].tolist() == [kept.index(label) if label in kept else -1 for label in labels.tolist()]


def test_labels_of_several_types_are_written_as_texts(tmp_path):
    mixed = ge.Ensemble([["a", 5, 5, "b"], [0, 0, 1, 1]])
    for suffix in ("csv", "parquet", "h5ad"):
        io.write_labels(tmp_path / f"out.{suffix}", mixed, values=True)
        assert io.read_labels(tmp_path / f"out.{suffix}").categories[0].tolist() == ["5", "a", "b"]
    with pytest.warns(UserWarning, match="count as two clusters"):
        alike = ge.Ensemble([["5", 5, 5, "b"], [0, 0, 1, 1]])
    refused(lambda: io.write_labels(tmp_path / "out.csv", alike, values=True), ValueError, "include '5'")


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_ids_are_written_as_texts_unless_these_are_alike(tmp_path, kind):
    path = tmp_path / f"out{kind}"
    refused(lambda: io.write_labels(path, np.arange(3), ids=[1, "a", "1"]), ValueError, "ids", "1 and '1'")
    assert not list(tmp_path.iterdir())
    io.write_labels(path, np.arange(2), ids=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))
    assert io.read_ids(path).tolist() == ["('a', 1)", "('b', 2)"]
