"""Labels of the same objects are matched by their index names or refused; without names, by their positions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused, structured_labels

import gpuens as ge
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


def same(found, expected):
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_array_equal(found.sizes, expected.sizes)


def test_series_in_other_orders_go_together_by_names(frame):
    expected = ge.Ensemble(frame)
    columns = [shuffled(frame[name], seed) if seed else frame[name] for seed, name in enumerate(frame)]
    found = ge.Ensemble(columns)
    same(found, expected)
    assert found.index.equals(expected.index)
    assert found.index.equals(frame.index)
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
    truth = pd.Series(TRUTH, index=frame.index)
    ens = ge.Ensemble(frame)
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 3)) + 5 * TRUTH[:, None], index=frame.index)
    for score in (ge.metrics.ari, ge.metrics.nmi, ge.metrics.accuracy):
        assert score(truth, shuffled(frame["a"])) == score(TRUTH, LABELS[:, 0])
    assert ge.metrics.scores(shuffled(truth), frame["a"]) == ge.metrics.scores(TRUTH, LABELS[:, 0])
    np.testing.assert_array_equal(ge.contingency.table(truth, shuffled(truth)), np.diag(np.bincount(TRUTH)))
    assert ge.metrics.stability([frame["a"], shuffled(frame["b"])]) == ge.metrics.stability(LABELS[:, :2])
    for labels in (frame, ens):
        found = ge.evidence.Evidence(labels, shuffled(truth))
        np.testing.assert_array_equal(found.objects.confidence, ge.evidence.Evidence(LABELS, TRUTH).objects.confidence)
        rows = ge.compare(labels, 3, methods=["eac", "tome"], truth=shuffled(truth), features=shuffled(X, 1)).rows
        others = ge.compare(LABELS, 3, methods=["eac", "tome"], truth=TRUTH, features=X.to_numpy()).rows
        assert [(row["ari"], row["anmi"]) for row in rows] == [(row["ari"], row["anmi"]) for row in others]
        fitted = ge.TOME(3).fit(labels, features=shuffled(X, 2))
        np.testing.assert_array_equal(fitted.labels_, ge.TOME(3).fit(LABELS, features=X.to_numpy()).labels_)
        weights = pd.Series(np.arange(1, N + 1), index=frame.index)
        found = ge.contingency.agreement(labels, weights=shuffled(weights))
        np.testing.assert_array_equal(found, ge.contingency.agreement(LABELS, weights=weights.to_numpy()))


def test_clusterings_for_each_k_and_levels_go_by_names(frame):
    names = list("abcde")
    found = ge.choose_k({2: frame[names], 3: shuffled(frame[names])}, method="eac")
    expected = ge.choose_k({2: LABELS, 3: LABELS}, method="eac")
    assert {k: labels.tolist() for k, labels in found.labels.items()} == {
        k: labels.tolist() for k, labels in expected.labels.items()
    }


def test_soft_clusterings_go_by_names(frame):
    shares = np.random.default_rng(0).dirichlet(np.ones(3), N)
    soft = pd.DataFrame(shares, index=frame.index)
    found = SoftEnsemble([frame["a"], shuffled(soft), shuffled(frame["b"], 1)])
    expected = SoftEnsemble([LABELS[:, 0], shares, LABELS[:, 1]])
    np.testing.assert_array_equal(found.soft_on("cpu"), expected.soft_on("cpu"))
    np.testing.assert_array_equal(found.codes_on("cpu"), expected.codes_on("cpu"))


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
    for columns in (
        [fresh, named],
        [LABELS[:, 0], named],
        [fresh, pd.Series(LABELS[:, 1])],
        [list(LABELS[:, 0]), named],
    ):
        same(ge.Ensemble(columns), expected)
    mixed = [LABELS[:, 0], named, shuffled(named)]
    refused(lambda: ge.Ensemble(mixed), ValueError, "labels[0] has no names", "labels[2]", "labels[1]")
    refused(lambda: ge.Ensemble([fresh, named, shuffled(named)]), ValueError, "labels[0] has no names")


def test_other_numbers_of_rows_go_by_places_with_a_warning():
    fresh, selected = pd.Series(LABELS[:, 0]), pd.Series(LABELS[:, 1], index=INDEXES["numbers"])
    with pytest.warns(UserWarning, match=r"labels\[1\] and labels\[0\] have different numbers as an index") as caught:
        same(ge.Ensemble([fresh, selected]), ge.Ensemble(LABELS[:, :2]))
    assert "by position" in one_sentence(caught[0].message)
    with pytest.warns(UserWarning, match="go by position"):
        assert ge.metrics.ari(fresh, selected) == ge.metrics.ari(LABELS[:, 0], LABELS[:, 1])


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


def test_objects_that_were_taken_have_no_names(frame):
    rows = np.arange(0, N, 2)
    assert ge.Ensemble(frame).take(rows).index is None
    assert ge.Ensemble(LABELS).index is None
