"""Clusterings with overlapping clusters: sets of members and long tables, compared with literal dicts of shares."""

import numpy as np
import pandas as pd
import pytest
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuens as ge


def literal_shares(lines, *, weighted=False):
    """Return {clustering: {object: {label: share}}} of lines (object, clustering, label, weight), one at a time."""
    weights = {}
    for name, clustering, label, weight in lines:
        if label is None or (weighted and weight == 0):
            continue
        of_object = weights.setdefault(clustering, {}).setdefault(name, {})
        of_object[label] = of_object.get(label, 0) + weight if weighted else 1
    return {
        clustering: {
            name: {label: weight / sum(of_object.values()) for label, weight in of_object.items()}
            for name, of_object in objects.items()
        }
        for clustering, objects in weights.items()
    }


def explicit(shares, names):
    """Return a clustering as memberships (n_objects, k), or as a column if no object has two labels."""
    labels = sorted({label for of_object in shares.values() for label in of_object})
    if all(len(of_object) == 1 for of_object in shares.values()):
        return [next(iter(shares[name])) if name in shares else None for name in names]
    matrix = np.full((len(names), len(labels)), np.nan)
    for row, name in enumerate(names):
        if name in shares:
            matrix[row] = [shares[name].get(label, 0.0) for label in labels]
    return matrix


def as_frame(lines):
    return pd.DataFrame(lines, columns=["object", "clustering", "label", "hours"])


def assert_equal(ens, wanted):
    assert (ens.n_objects, ens.n_clusterings, ens.n_clusters) == (
        wanted.n_objects,
        wanted.n_clusterings,
        wanted.n_clusters,
    )
    np.testing.assert_array_equal(ens.soft_offsets, wanted.soft_offsets)
    for m in range(ens.n_clusterings):
        np.testing.assert_allclose(ens.memberships_of(m, "cpu"), wanted.memberships_of(m, "cpu"), rtol=1e-15)


LINES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "d"]),
        st.sampled_from(["p", "q", "r"]),
        st.sampled_from(["x", "y", "z", None]),
        st.sampled_from([0, 1, 2, 0.5]),
    ),
    min_size=1,
    max_size=30,
)


@pytest.mark.filterwarnings("ignore")
@given(LINES, st.booleans())
@settings(max_examples=200, deadline=None)
def test_long_tables_are_literal_shares(lines, weighted):
    shares = literal_shares(lines, weighted=weighted)
    known = {name for objects in shares.values() for name in objects}
    names = [name for name in dict.fromkeys(line[0] for line in lines) if name in known]
    frame, share = as_frame(lines), {"share": "hours"} if weighted else {}
    if not names:
        refused(lambda: ge.SoftEnsemble.from_long(frame.drop(columns=[] if weighted else "hours"), **share), ValueError)
        return
    ens = ge.SoftEnsemble.from_long(frame.drop(columns=[] if weighted else "hours"), drop_unlabelled=True, **share)
    order = [clustering for clustering in dict.fromkeys(line[1] for line in lines) if clustering in shares]
    assert (list(ens.index), ens.names) == (names, order)
    assert_equal(ens, ge.SoftEnsemble([explicit(shares[clustering], names) for clustering in order]))
    for m, clustering in enumerate(order):
        labels = {label for of_object in shares[clustering].values() for label in of_object}
        assert ens.categories[m].tolist() == sorted(labels)


MEMBERS = st.lists(st.sets(st.sampled_from("abcdef"), min_size=1), min_size=1, max_size=4)


@pytest.mark.filterwarnings("ignore")
@given(st.lists(MEMBERS, min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_overlapping_sets_are_literal_shares(clusterings):
    lines = [
        (name, m, c, 1) for m, sets in enumerate(clusterings) for c, members in enumerate(sets) for name in members
    ]
    shares, names = literal_shares(lines), sorted({line[0] for line in lines})
    matrices = [np.full((len(names), len(sets)), np.nan) for sets in clusterings]
    for m, objects in shares.items():
        for name, of_object in objects.items():
            matrices[m][names.index(name)] = [of_object.get(c, 0.0) for c in range(len(clusterings[m]))]
    ens = ge.SoftEnsemble(clusterings)
    assert list(ens.index) == names
    for m, matrix in enumerate(matrices):
        found, missing = ens.memberships_of(m, "cpu"), np.isnan(matrix).all(axis=1)
        np.testing.assert_array_equal(found[~missing], matrix[~missing])
        is_soft = (np.nansum(matrix > 0, axis=1) > 1).any()
        np.testing.assert_array_equal(found[missing], 1 / matrix.shape[1] if is_soft else 0.0)


def overlapping_runs(n=300, k=4, n_runs=5, seed=0):
    """Return runs of k sets each, in which some objects are in two sets, and the right set of each object."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    runs = []
    for _ in range(n_runs):
        sets = [set(np.flatnonzero(truth == c).tolist()) for c in range(k)]
        for name in rng.choice(n, n // 5, replace=False).tolist():
            sets[rng.integers(k)].add(name)
        runs.append(sets)
    return runs, truth


def test_methods_of_soft_clusterings_take_overlaps():
    runs, truth = overlapping_runs()
    explicit_runs = []
    for sets in runs:
        matrix = np.array([[name in members for members in sets] for name in range(len(truth))], dtype=float)
        explicit_runs.append(matrix / matrix.sum(axis=1, keepdims=True))
    frame = pd.DataFrame(
        [
            (name, f"run{m}", c)
            for m, sets in enumerate(runs)
            for c, members in enumerate(sets)
            for name in sorted(members)
        ],
        columns=["object", "clustering", "label"],
    )
    in_lines = ge.SoftEnsemble.from_long(frame)
    places = in_lines.index.get_indexer(range(len(truth)))
    est, wanted = ge.SCEC(4).fit(runs), ge.SCEC(4).fit(explicit_runs)
    np.testing.assert_array_equal(est.membership_, wanted.membership_)
    assert ge.metrics.ari(est.labels_, truth) == 1.0
    assert ge.metrics.ari(ge.SCEC(4).fit(in_lines).labels_[places], truth) == 1.0
    assert ge.SCEC(4).fit(in_lines).feature_names_in_.tolist() == [f"run{m}" for m in range(5)]
    for labels, of_all in ((runs, slice(None)), (dict(enumerate(runs)), slice(None)), (in_lines, places)):
        aligned = ge.align(labels, "first")
        np.testing.assert_array_equal(aligned.membership(3)[of_all], ge.align(explicit_runs, "first").membership(3))
        assert ge.modes(labels).story == ge.modes(explicit_runs).story
    generated = [iter(sets) for sets in runs]  # as networkx gives k_clique_communities
    np.testing.assert_array_equal(ge.SCEC(4).fit(generated).membership_, wanted.membership_)
    parted = [[sorted(members) for members in run] for run in runs]  # as the communities of cdlib
    np.testing.assert_array_equal(ge.SCEC(4).fit(parted).membership_, wanted.membership_)


def test_overlaps_stand_beside_memberships_and_labels():
    shares = pd.DataFrame([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], index=["c", "a", "b"])
    ens = ge.SoftEnsemble({"soft": shares, "sets": [{"a", "b"}, {"b", "c"}], "labels": {"a": 1, "b": 1, "d": 2}})
    assert (ens.names, list(ens.index)) == (["soft", "sets", "labels"], ["c", "a", "b", "d"])
    wanted = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.5, 0.5]]
    assert ens.memberships_of(0, "cpu").tolist() == wanted
    assert ens.memberships_of(1, "cpu").tolist() == [[0, 1], [1, 0], [0.5, 0.5], [0.5, 0.5]]
    assert ens.memberships_of(2, "cpu").tolist() == [[0, 0], [1, 0], [1, 0], [0, 1]]
    by_position = ge.SoftEnsemble([[{0, 1}, {1, 2}], [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]])
    assert by_position.index is None
    assert by_position.memberships_of(1, "cpu").tolist() == wanted[:3]


RUN = [{"a", "b"}, {"b", "c"}]
FRAME = as_frame([("t", "w", "x", 1), ("t", "w", "y", 3), ("u", "w", "x", 1)])
TAKERS = ["gpuens.SCEC", "gpuens.align", "gpuens.modes"]
REFUSED = {
    "sets for another method": (lambda: ge.LWGP(2).fit([RUN, RUN]), ValueError, ["'b' in 2 clusters", *TAKERS]),
    "a table for another method": (
        lambda: ge.Ensemble.from_long(FRAME.drop(columns="hours")),
        ValueError,
        ["two labels", "SoftEnsemble.from_long", *TAKERS, "--method scec"],
    ),
    "shares for another method": (
        lambda: ge.LWGP(2).fit(ge.SoftEnsemble([RUN, RUN])),
        TypeError,
        ["soft clusterings", *TAKERS],
    ),
    "answers for another method": (
        lambda: ge.LWGP(2).fit(ge.Answers(FRAME.drop(columns="hours").iloc[1:])),
        TypeError,
        ["answers in long form", "gpuens.EM(vocabulary='shared')"],
    ),
    "a negative share": (
        lambda: ge.SoftEnsemble.from_long(FRAME.assign(hours=[1, -2, 1]), share="hours"),
        ValueError,
        ["share -2 in row 1"],
    ),
    "a missing share": (
        lambda: ge.SoftEnsemble.from_long(FRAME.assign(hours=[1, 2, None]), share="hours"),
        ValueError,
        ["share nan in row 2"],
    ),
    "no column of labels": (lambda: ge.SoftEnsemble.from_long(FRAME, share="label"), ValueError, ["than numbers"]),
    "words as shares": (
        lambda: ge.SoftEnsemble.from_long(FRAME.assign(hours=["a", "b", "c"]), share="hours"),
        ValueError,
        ["other values than numbers"],
    ),
    "no such column": (lambda: ge.SoftEnsemble.from_long(FRAME, share="days"), ValueError, ["'days' of shares"]),
    "an object without a label": (
        lambda: ge.SoftEnsemble.from_long(FRAME.assign(label=["x", "y", None]), share="hours"),
        ValueError,
        ["1 object(s)", "object 1"],
    ),
    "a name twice in an index": (
        lambda: ge.SoftEnsemble([RUN, pd.Series([1, 2, 2], index=["a", "a", "b"])]),
        ValueError,
        ["labels[1]", "'a' in 2 clusters"],
    ),
    "one clustering": (lambda: ge.SoftEnsemble(RUN), TypeError, ["one clustering", "[labels]"]),
    "an array": (lambda: ge.SoftEnsemble(np.eye(3)), TypeError, ["a list or a dict"]),
    "nothing": (lambda: ge.SoftEnsemble([]), ValueError, ["labels"]),
    "rows of other objects": (
        lambda: ge.SoftEnsemble([[{0, 1}, {1}], [[0.5, 0.5]]]),
        ValueError,
        ["labels[1] has 1 labels without names"],
    ),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_refused_shares(case):
    call, kind, mentioned = REFUSED[case]
    refused(call, kind, *mentioned)


def test_too_many_memberships_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "1MB")
    sets = [{i, i + 1} for i in range(2000)]
    refused(lambda: ge.SoftEnsemble([sets]), MemoryError, "2,001 objects in 2,000 clusters")
