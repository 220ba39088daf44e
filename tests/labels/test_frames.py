"""Frames and Series of several libraries, at every door of the package."""

import importlib
from functools import partial

import numpy as np
import pandas as pd
import pytest
from conftest import refused

import gpuens as ge
from gpuens.labels.frames import as_pandas

TABLE = {
    "n": [3, None, 0, 3],
    "s": ["b", "a", None, "a"],
    "b": [True, False, True, True],
    "big": [2**60, 2**60 + 1] * 2,
}
OF_TABLE = [[1, -1, 0, 1], [1, 0, -1, 0], [1, 0, 1, 1], [0, 1, 0, 1]]


KINDS = ["arrow", "arrow batch", "arrow dictionary", "polars", "polars lazy", "duckdb", "modin"]


def frame_of(kind, columns):
    """Return {name: list} as a kind of frame; skip the test without its library."""
    if kind == "pandas":
        return pd.DataFrame(columns)
    if kind == "modin":
        modin = pytest.importorskip("modin.pandas")
        importlib.import_module("modin.config").Backend.put("Pandas")  # else Modin starts processes
        return modin.DataFrame(columns)
    if kind.startswith("polars"):
        frame = pytest.importorskip("polars").DataFrame(columns)
        return frame.lazy() if kind.endswith("lazy") else frame
    arrow = pytest.importorskip("pyarrow")
    if kind == "arrow batch":
        return arrow.RecordBatch.from_pydict(columns)
    table = arrow.table(columns)
    if kind == "duckdb":
        return pytest.importorskip("duckdb").from_arrow(table)
    if kind == "arrow dictionary" and "s" in columns:
        table = table.set_column(1, "s", table["s"].dictionary_encode())
    return table


def series_of(kind, values):
    """Return a list as a Series of the library of a kind of frame; DuckDB has none, and gives Arrow's."""
    if kind in ("pandas", "modin"):
        return frame_of(kind, {"values": values})["values"]
    if kind.startswith("polars"):
        return pytest.importorskip("polars").Series(values)
    arrow = pytest.importorskip("pyarrow")
    return arrow.array(values) if kind == "arrow batch" else arrow.chunked_array([values])


@pytest.mark.parametrize("kind", KINDS)
def test_frames(kind):
    ens = ge.Ensemble(frame_of(kind, TABLE))
    assert ens.to_array().T.tolist() == OF_TABLE
    assert ens.names == list(TABLE)
    assert ens.index is None or kind == "modin"
    assert ens.categories[3].tolist() == [2**60, 2**60 + 1]


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_columns_of_frames_are_left_out_by_name(library):
    frame = {"batch": list("xyxyxx"), "p": [0, 0, 0, 1, 1, 1], "q": [0, 0, 1, 1, 1, 1]}
    module = pytest.importorskip(library)
    frame = module.table(frame) if library == "pyarrow" else module.LazyFrame(frame)
    with pytest.warns(UserWarning, match="'batch' .by its name. is left out"):
        est = ge.LWEA(2).fit(frame)
    assert est.feature_names_in_.tolist() == ["p", "q"]
    assert est.predict(frame).tolist() == est.labels_.tolist() == [1, 1, 0, 0, 0, 0]
    assert ge.Ensemble(frame, names=["batch", "p", "q"]).n_clusterings == 3


def test_frames_of_answers():
    arrow = pytest.importorskip("pyarrow")
    answers = arrow.table({"anna": ["T", "B", "B"], "ben": ["T", "B", None], "carl": ["B", "T", "B"]})
    assert ge.Voting(vocabulary="shared").fit(answers).labels_.tolist() == ["T", "B", "B"]


def test_other_tables_are_refused():
    class Table:
        columns, shape = ("a", "b"), (3, 2)

    refused(lambda: ge.Ensemble(Table()), TypeError, "labels", "a table that is not known", "to_pandas")


# --- doors ------------------------------------------------------------------------------------------------------------

DRAWN = np.random.default_rng(0)
N = 24
LABELS = {f"c{m}": DRAWN.integers(0, 3, N).tolist() for m in range(4)}
TRUTH = (np.arange(N) % 3).tolist()
WEIGHTS = DRAWN.integers(1, 4, N).tolist()
PLACES = {"x": DRAWN.normal(size=N).tolist(), "y": (10 * np.arange(N) % 7.0).tolist()}
EDGES = {"a": list(range(N - 1)), "b": list(range(1, N))}
LONG = {"task": [0, 0, 1, 1], "worker": ["u", "v", "u", "v"], "label": ["p", "q", "q", "q"]}
SHARES = {"first": [0.25] * 8 + [1.0] * (N - 8), "second": [0.75] * 8 + [0.0] * (N - 8)}

DOORS = {
    "consensus": lambda frame, series: ge.consensus(frame(LABELS), 2, method="eac", sample_weight=series(WEIGHTS)),
    "a frame of weights": lambda frame, series: message(
        lambda: ge.consensus(frame(LABELS), 2, sample_weight=frame({"w": WEIGHTS}))
    ),
    "features of a fit": lambda frame, series: ge.ECRMC(2).fit(frame(LABELS), features=frame(PLACES)).labels_,
    "a graph": lambda frame, series: ge.EAC(2).fit(frame(LABELS), graph=frame(EDGES)).labels_,
    "coordinates": lambda frame, series: ge.Graph.neighbors(frame(PLACES), 2, groups=series(TRUTH)).heads,
    "predict": lambda frame, series: ge.EAC(2).fit(frame(LABELS)).predict(frame(LABELS)),
    "clusterings in a list": lambda frame, series: ge.Ensemble([series(one) for one in LABELS.values()]).to_array(),
    "more clusterings": lambda frame, series: ge.Ensemble(frame(LABELS)).with_({"new": series(TRUTH)}).to_array(),
    "names": lambda frame, series: ge.Ensemble([TRUTH, WEIGHTS], names=series(["p", "q"])).names,
    "long form": lambda frame, series: ge.Ensemble.from_long(frame(LONG)).to_array(),
    "a join": lambda frame, series: ge.Ensemble.join([frame(LABELS), series(TRUTH)]).to_array(),
    "memberships": lambda frame, series: ge.SCEC(2).fit([frame(SHARES), series(TRUTH)]).labels_,
    "modes": lambda frame, series: ge.modes([frame(SHARES), series(TRUTH)], 1).modes[0].consensus,
    "features": lambda frame, series: ge.generate.kmeans_ensemble(frame(PLACES), 2, 3).to_array(),
    "features of Leiden": lambda frame, series: message(lambda: ge.generate.leiden_ensemble(frame(EDGES))),
    "clusterers": lambda frame, series: ge.generate.from_estimators(
        [("a", First()), ("b", First())], frame(PLACES)
    ).to_array(),
    "features to cluster": lambda frame, series: message(lambda: ge.cluster(frame(PLACES), N + 1)),
    "a choice": lambda frame, series: ge.choose_k(frame(LABELS), ks=[2], sample_weight=series(WEIGHTS)).labels[2],
    "features to choose by": lambda frame, series: ge.choose_k(
        features=frame(PLACES), ks=[2], n_clusterings=2, n_init=1
    ).labels[2],
    "a comparison": lambda frame, series: [
        ge.compare(frame(LABELS), 2, methods=["ecrmc"], truth=series(TRUTH), features=frame(PLACES)).rows[0][score]
        for score in ("ari", "anmi")
    ],
    "edges": lambda frame, series: (
        ge.graph_consensus(frame(EDGES), frame(LABELS), threshold=0.1, final="components").labels
    ),
    "scores": lambda frame, series: ge.metrics.vi(series(TRUTH), series(LABELS["c0"]), sample_weight=series(WEIGHTS)),
    "evidence": lambda frame, series: ge.evidence.objects(frame(LABELS), series(TRUTH)).confidence,
    "an alignment": lambda frame, series: ge.align(frame(LABELS), series(TRUTH)).codes,
    "counts": lambda frame, series: ge.Rows(frame(LABELS), counts=series(WEIGHTS)).counts,
}


class First:
    """A clusterer by the first feature."""

    def get_params(self, deep=True):
        return {}

    def fit_predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)


def message(call):
    """Return the message of a refusal."""
    with pytest.raises(ValueError, match=r"\w") as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", DOORS)
def test_doors(door, kind):
    if door == "features of Leiden":
        pytest.importorskip("igraph")
    wanted, found = (
        DOORS[door](partial(frame_of, library), partial(series_of, library)) for library in ("pandas", kind)
    )
    assert type(found) is type(wanted)
    assert np.asarray(found).tolist() == np.asarray(wanted).tolist()


@pytest.mark.parametrize("kind", ["arrow", "polars", "duckdb"])
def test_a_frame_without_index_goes_by_position(kind):
    """An index 0, 1, 2, … beside names would be refused, because it may be another order."""
    named = pd.DataFrame(LABELS, index=[f"n{i}" for i in range(N)])
    for given in (frame_of(kind, PLACES), pd.DataFrame(PLACES).to_numpy()):
        labels = ge.ECRMC(2).fit(named, features=given).labels_
    assert labels.tolist() == ge.ECRMC(2).fit(frame_of(kind, LABELS), features=pd.DataFrame(PLACES)).labels_.tolist()
    refused(lambda: ge.ECRMC(2).fit(named, features=pd.DataFrame(PLACES)), ValueError, "only counts them")


@pytest.mark.parametrize("kind", KINDS)
def test_frames_in_a_file(kind, tmp_path):
    ids = [f"n{i}" for i in range(N)]
    ge.io.write_labels(tmp_path / "labels.csv", frame_of(kind, LABELS), ids=series_of(kind, ids))
    read = pd.read_csv(tmp_path / "labels.csv", index_col=0)
    assert (read.index.tolist(), read.to_numpy().T.tolist()) == (ids, list(LABELS.values()))


def test_values_of_arrow():
    arrow = pytest.importorskip("pyarrow")
    decimals = arrow.table({"a": arrow.array([1.5, 2.0]).cast(arrow.decimal128(5, 1)), "b": ["x", None]})
    assert as_pandas(decimals).to_numpy().tolist() == [[1.5, "x"], [2.0, None]]
    assert (
        as_pandas(arrow.table({name: arrow.array([1, 2**63 + 1], arrow.uint64()) for name in "ab"})).dtypes.tolist()
        == [np.uint64] * 2
    )
    whole = as_pandas(arrow.table({"a": [2**60 + 1, None], "b": [1, 2]}))
    assert (whole["a"][0], whole["a"].isna().tolist()) == (2**60 + 1, [False, True])
    missing = arrow.table({"a": [1, None], "b": [1, 2]})
    refused(lambda: ge.cluster(missing, 2), ValueError, "X must be finite", "row 1, column 'a'")


def test_other_objects_are_no_frames():
    for other in (None, "text", np.eye(2), [1], pd.DataFrame({"a": [1]}), pd.Series([1])):
        assert as_pandas(other) is other
