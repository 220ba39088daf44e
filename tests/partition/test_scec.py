"""The estimator SCEC: accepted and refused input, soft clusterings, samples, chunks, the command line, pictures."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import random_labels, refused, structured_labels
from sklearn.base import clone
from test_soft_correspondence import ENSEMBLES, literal, mixed, softened

import gpuens as ge
from gpuens.cli import main
from gpuens.labels.soft_ensemble import SoftEnsemble

LABELS, TRUTH = structured_labels(200, 8, 4, noise=0.15, split=3, missing=0.05, seed=11)

pytestmark = pytest.mark.filterwarnings("ignore:found only . of . clusters")


def three_parties():
    """Return the truth, and the labels of 100 objects by three owners, who each label 60 to 80 objects."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 100)
    # the third owner has only two clusters
    names = np.array(["low", "mid", "high"]), np.array([30, 10, 20]), np.array([1, 0, 1])
    return truth, [[own[t] if x % 5 != i else None for x, t in enumerate(truth)] for i, own in enumerate(names)]


# --- results ----------------------------------------------------------------------------------------------------------


def test_three_owners_get_the_consensus_and_their_own_correspondence():
    truth, owners = three_parties()
    est = ge.SCEC(3).fit(owners)
    assert ge.metrics.ari(est.labels_, truth) == 1.0
    for column, s, names in zip(owners, est.correspondence_, est.reduction_.ensemble.categories, strict=True):
        assert s.shape == (len(names), 3)
        for label, cluster in zip(column, est.labels_, strict=True):
            if label is not None:
                assert s[list(names).index(label), cluster] > (0.3 if len(names) == 2 else 0.9)
    assert est.converged_
    assert est.n_iter_ == len(est.objective_)
    assert (np.diff(est.objective_) <= 1e-9).all()


def test_the_page_on_owners_does_what_it_says(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "owners.md"
    (block,) = [part for part in page.read_text().split("```python\n") if "SCEC(" in part]
    code, space = block.split("```")[0], {"ge": ge}
    exec(code, space)
    est = space["est"]
    assert f"est.labels_  # {' '.join(map(str, est.labels_))}\n" in code
    assert f"est.membership_  # {est.membership_.shape}" in code
    assert est.reduction_.ensemble.categories[0].tolist() == ["bad", "good"]
    assert (tmp_path / "bank.png").stat().st_size > 0


@pytest.mark.parametrize("name", ENSEMBLES)
def test_memberships_are_those_of_the_correspondences(name, where):
    clusterings = ENSEMBLES[name]()
    est = ge.SCEC(3, device=where, n_init=2).fit(clusterings)
    expected = sum(a @ s for a, s in zip(literal(clusterings), est.correspondence_, strict=True)) / len(clusterings)
    assert est.membership_.shape == (len(expected), 3)
    np.testing.assert_allclose(est.membership_, expected, atol=1e-12)
    np.testing.assert_allclose(est.membership_.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(est.labels_, est.membership_.argmax(axis=1))
    assert est.labels_.dtype == np.int64
    assert est.n_features_in_ == len(clusterings)
    again = clone(est).set_params(device="cpu").fit(clusterings)
    np.testing.assert_array_equal(est.membership_, again.membership_)


def test_soft_clusterings_know_more_than_their_largest_entries():
    """Each clustering has uncertain objects, whose memberships are nearly equal; hard labels hide the doubt."""
    rng = np.random.default_rng(2)
    truth, soft = rng.integers(0, 3, 300), []
    for _ in range(5):
        unsure = rng.random((300, 1)) < 0.4
        wrong = np.eye(3)[rng.integers(0, 3, 300)]
        soft.append(np.where(unsure, 0.3 + 0.1 * wrong, np.eye(3)[truth] * 0.98 + 0.02 / 3))
    sharp = [matrix.argmax(axis=1) for matrix in soft]
    of_soft, of_sharp = (ge.metrics.ari(ge.SCEC(3).fit_predict(x), truth) for x in (soft, sharp))
    assert of_soft > of_sharp + 0.02 > 0.75


def test_soft_input_of_many_kinds():
    soft = softened(random_labels(40, 3, 3, seed=3))
    column = ["a", "b"] * 20
    expected = ge.SCEC(3).fit([*soft, column]).membership_
    by_columns = [np.asfortranarray(matrix) for matrix in soft]
    for device, form in (
        ("cpu", [soft[0].tolist(), pd.DataFrame(soft[1]), soft[2], pd.Series(column)]),
        ("cpu", (by_columns[0], soft[1], soft[2].astype(object).astype(float), np.array(column))),
        ("cpu", [*by_columns, column]),
        ("emulated", [*by_columns, column]),
    ):
        np.testing.assert_array_equal(ge.SCEC(3, device=device).fit(form).membership_, expected)
    single = [matrix.astype(np.float32) for matrix in soft]
    np.testing.assert_allclose(ge.SCEC(3).fit([*single, column]).membership_, expected, atol=1e-5)
    assert ge.consensus([*soft, column], 3, method="scec").shape == (40,)


def test_where_arrays_say_to_begin():
    first = ge.SCEC(4).fit(LABELS)
    onwards = ge.SCEC(4, init=[0.99 * s + 0.01 / 4 for s in first.correspondence_]).fit(LABELS)
    np.testing.assert_array_equal(onwards.labels_, first.labels_)
    clusterings = mixed(random_labels(40, 3, 3, seed=3))
    est = ge.SCEC(3).fit(clusterings)
    onwards = ge.SCEC(3, init=[0.99 * s + 0.01 / 3 for s in est.correspondence_]).fit(clusterings)
    assert onwards.objective_[-1] <= est.objective_[-1] + 0.05 * abs(est.objective_[-1])


def test_a_soft_ensemble_says_what_it_is():
    ens = SoftEnsemble(ENSEMBLES["mixed"]())
    assert repr(ens) == f"SoftEnsemble(n_objects=50, n_clusterings=5, n_clusters={ens.n_clusters})"
    table = np.arange(2 * ens.n_clusters).reshape(-1, 2)
    np.testing.assert_array_equal(ens.joined(ens.split(table)), table)
    assert [len(part) for part in ens.split(table)] == [len(own) for own in ens.categories]
    codes = ens.hardened_on("cpu")
    assert codes.shape == (50, 5)
    assert codes.flags.f_contiguous


@pytest.mark.parametrize("seed", range(3))
def test_the_example_of_section_3(seed):
    """There are three clusterings: λ, a renaming of λ's clusters, and a clustering that merges two of λ's clusters."""
    est = ge.SCEC(3, random_state=seed).fit([[1, 1, 2, 2, 3, 3], [3, 3, 1, 1, 2, 2], [1, 1, 1, 1, 2, 2]])
    assert est.labels_.tolist() == [0, 0, 1, 1, 2, 2]
    expected = [[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[0.5, 0.5, 0], [0, 0, 1]]
    for s, matrix in zip(est.correspondence_[1:], expected, strict=True):
        np.testing.assert_allclose(s, matrix, atol=0.02)


# --- reductions and chunks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["sample:60", "catree:tau=0.2,gamma=0.9"])
def test_other_rows_are_looked_up(reduction, where):
    est = ge.SCEC(4, reduction=reduction, device=where).fit(LABELS)
    assert ge.metrics.ari(est.labels_, TRUTH) > 0.8
    assert est.membership_.shape == (200, 4)
    if reduction.startswith("sample"):
        table = SoftEnsemble.of(est.reduction_.ensemble).joined(est.correspondence_)
        n = len(est.reduction_.counts)
        others = est.reduction_.unrepresented.ensemble.to_array()
        offsets = est.reduction_.ensemble.offsets
        means = [table[a:b].mean(axis=0) for a, b in pairwise(offsets)]
        m = np.mean([[table[offsets[h] + v] if v >= 0 else means[h] for h, v in enumerate(row)] for row in others], 1)
        by_row = dict(zip(est.reduction_.row_of.tolist(), est.labels_.tolist(), strict=True))
        assert [by_row[n + i] for i in range(len(others))] == m.argmax(axis=1).tolist()
        np.testing.assert_array_equal(est.labels_, est.membership_.argmax(axis=1))


@pytest.mark.parametrize("reduction", [None, "sample:80"])
def test_labels_in_chunks(reduction):
    da = pytest.importorskip("dask.array")
    est = ge.SCEC(4, reduction=reduction).fit(da.from_array(LABELS, chunks=(37, 3)))
    whole = ge.SCEC(4, reduction=reduction).fit(LABELS)
    np.testing.assert_array_equal(est.labels_.compute(), whole.labels_)
    assert est.membership_.chunks[0] == est.labels_.chunks[0]
    np.testing.assert_array_equal(est.membership_.compute(), whole.membership_)


# --- error messages ---------------------------------------------------------------------------------------------------

GOOD = np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])


def with_entry(value, row=1):
    matrix = GOOD.copy()
    matrix[row, 0] = value
    return matrix


@pytest.mark.parametrize(
    ("clusterings", "kind", "mentioned"),
    [
        ([with_entry(0.3), [0, 0, 1]], ValueError, ("clustering 0", "row 1", "1.2")),
        ([[0, 0, 1], with_entry(-0.1)], ValueError, ("clustering 1", "row 1", "negative")),
        ([with_entry(np.nan), GOOD], ValueError, ("clustering 0", "row 1", "NaN")),
        ([with_entry(np.inf), GOOD], ValueError, ("clustering 0", "row 1", "inf")),
        ([GOOD, GOOD[:2]], ValueError, ("clustering 1 has 2",)),
        ([GOOD, [0, 1]], ValueError, ("clustering 1 has 2",)),
        ([GOOD, np.ones((3, 2, 2))], ValueError, ("element 1", "(3, 2, 2)")),
        ([GOOD, np.ones((3, 0))], ValueError, ("element 1", "(3, 0)")),
        ([GOOD, np.full((3, 2), np.nan)], ValueError, ("clustering 1", "all missing")),
        ([GOOD.astype(str), GOOD], TypeError, ("clustering 0", "real numbers")),
        ([GOOD + 0j, GOOD], TypeError, ("clustering 0", "complex128")),
        ([[[0.5, 0.5], [1.0], [0, 1]], GOOD], ValueError, ("clustering 0", "differ in length")),
        ([np.where([[0], [1], [0]], np.nan, GOOD), [0, -1, 1]], ValueError, ("no label in any", "object 1")),
        ([GOOD, [0.5, 1, 1]], ValueError, ("clustering 1", "not whole numbers")),
        ([GOOD[:0], GOOD[:0]], ValueError, ("empty",)),
    ],
)
def test_what_is_no_clustering_is_refused(clusterings, kind, mentioned):
    refused(lambda: ge.SCEC(2).fit(clusterings), kind, *mentioned)


def test_soft_clusterings_have_no_label_rows():
    for est, kind, *parts in (
        (ge.SCEC(2, reduction="sample:2"), ValueError, "reduction=Sample(2", "soft"),
        (ge.LWEA(2), ValueError, "2-D"),
        (ge.SCEC(4), ValueError, "n_clusters=4"),
    ):
        refused(lambda est=est: est.fit([GOOD, GOOD]), kind, *parts)
    # the first object belongs equally to both clusters
    assert ge.SCEC().fit([GOOD, GOOD]).suggestion_.numbers.tolist() == []
    da = pytest.importorskip("dask.array")
    refused(lambda: ge.SCEC(2).fit([da.from_array(GOOD), GOOD]), TypeError, "Dask", "compute()")


ONES = [np.ones((size, 2)) for size in np.diff(ge.Ensemble(LABELS).offsets)]


@pytest.mark.parametrize(
    ("parameters", "kind", "mentioned"),
    [
        ({"alpha": -0.1}, ValueError, ("alpha", "-0.1")),
        ({"alpha": "x"}, TypeError, ("alpha",)),
        ({"beta": 0}, ValueError, ("beta", "above 0")),
        ({"alpha": 4.0, "beta": 2.0}, ValueError, ("alpha=4", "beta * n_clusters = 4")),
        ({"init": "kmean"}, ValueError, ("init", "'kmeans'")),
        ({"init": None}, TypeError, ("init", "not NoneType")),
        ({"init": 5}, TypeError, ("init", "not int")),
        ({"init": ONES[:1]}, ValueError, ("init", "1 were given for 8")),
        ({"init": [np.ones((2, 2))] * 8}, ValueError, ("init", "array 0", "(2, 2)")),
        ({"init": [[[1, 2], [3]], *ONES[1:]]}, ValueError, ("init", "lists of different lengths")),
        ({"init": [1e308 * ONES[0], *ONES[1:]]}, ValueError, ("init", "1e100")),
        ({"init": [5e-324 * ONES[0], *ONES[1:]]}, ValueError, ("init", "1e-100")),
        ({"init": [*ONES[:3], 0 * ONES[3], *ONES[4:]]}, ValueError, ("init", "array 3", "from 1e-100 to 1e100")),
        ({"n_init": 0}, ValueError, ("n_init",)),
        ({"max_iter": 0}, ValueError, ("max_iter",)),
        ({"tol": -1}, ValueError, ("tol", "-1")),
        ({"random_state": "x"}, TypeError, ("random_state",)),
    ],
)
def test_bad_parameters_are_refused(parameters, kind, mentioned):
    refused(lambda: ge.SCEC(2, **parameters).fit(LABELS), kind, *mentioned)


# --- the command line and pictures ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unpainted")
def test_report_draws_each_correspondence(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", LABELS)
    command = "run labels.npy --method scec -k 4 --alpha 0.4 --beta 3 --init random --tol 0.01 --n-init 2"
    assert main([*command.split(), "--columns", "0,3,5", "-o", "out.npy", "--report", "out.npy.html"]) == 0
    expected = ge.SCEC(4, alpha=0.4, beta=3.0, init="random", tol=0.01, n_init=2).fit(LABELS[:, [0, 3, 5]])
    np.testing.assert_array_equal(np.load("out.npy"), expected.labels_)
    page = Path("out.npy.html").read_text()
    assert [f"Where the clusters of clustering {h} go" in page for h in (0, 3, 5, 1)] == [True, True, True, False]
    assert "report: out.npy.html" in capsys.readouterr().out
    assert json.loads(Path("out.npy.json").read_text())["report"] == "out.npy.html"
    Path("third.npy.html").mkdir()  # where a page cannot be is said first
    assert main([*command.split(), "-o", "third.npy", "--report", "third.npy.html", "--quiet"]) == 3
    assert not Path("third.npy").exists()


def test_correspondence_pictures():
    pytest.importorskip("matplotlib")
    names = [f"run {m}" for m in range(8)]
    est = ge.SCEC(4).fit(pd.DataFrame(LABELS, columns=names))
    for clustering in (2, "run 2"):
        ax = ge.plotting.correspondence(est, clustering)
        rows = [int(tick.get_text()) for tick in ax.get_yticklabels()]
        np.testing.assert_array_equal(ax.images[0].get_array(), est.correspondence_[2][rows])
        assert (np.diff(est.correspondence_[2][rows].argmax(axis=1)) >= 0).all()
        assert "run 2" in ax.figure.get_suptitle()
    together = ge.plotting.correspondence(est)
    assert len({id(ax.figure) for ax in together}) == 1
    assert [ax.get_title() for ax in together] == [f"clustering {name}" for name in names]
    refused(lambda: ge.plotting.correspondence(est, 8), ValueError, "clustering", "8")
    refused(lambda: ge.plotting.correspondence(est, "run 9"), ValueError, "'run 9'")
    refused(lambda: ge.plotting.correspondence(est, ax=together[0]), ValueError, "ax", "there are 8")
    refused(lambda: ge.plotting.correspondence(ge.EAC(2)), TypeError, "estimator", "EAC")
    many = ge.SCEC(2).fit([np.arange(200), np.arange(200) // 100])
    many_rows, two_rows = ge.plotting.correspondence(many)
    assert len(many_rows.get_yticks()) <= 12 < len(many.correspondence_[0])
    assert len(two_rows.get_yticks()) == 2
    ge.plotting.correspondence(many, 0).figure.canvas.draw()


def test_memberships_as_tables_have_them():
    """Memberships may be as tables have them: with tiny negative values, or as pandas floats with missing values."""
    soft = np.array([[1.0, -1e-17], [0.3, 0.7], [0.2, 0.8]])
    nullable = pd.DataFrame(np.maximum(soft, 0)).astype("Float64")
    nullable.iloc[1] = pd.NA
    for table in (soft, nullable):
        for reduction in (None, "core-groups", ge.CoreGroups()):
            est = ge.SCEC(2, reduction=reduction).fit([table, [0, 0, 1]])
            assert est.membership_.min() >= 0
            assert est.labels_[0] != est.labels_[2]


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_shares_are_those_of_the_objects(missing, where):
    """The shares tell which part of a base cluster's objects is in each cluster; for soft ones, memberships count."""
    labels = structured_labels(90, 5, 3, noise=0.3, missing=missing, seed=5)[0]
    soft = np.random.default_rng(0).dirichlet(np.ones(4), size=90)
    one_hot = [(column[:, None] == np.arange(column.max() + 1)).astype(float) for column in labels.T]
    for clusterings, parts in ((labels, one_hot), ([soft, *labels.T], [soft, *one_hot])):
        est = ge.SCEC(3, device=where).fit(clusterings)
        for part, shares in zip(parts, est.shares_, strict=True):
            expected = part.T @ (est.labels_[:, None] == np.arange(3)) / part.sum(axis=0)[:, None]
            np.testing.assert_allclose(shares, expected, atol=1e-12)


def test_shares_of_a_sample_are_those_of_the_sample():
    labels = structured_labels(200, 5, 3, noise=0.2, seed=5)[0]
    est = ge.SCEC(3, reduction=ge.Sample(40)).fit(labels)
    for found in est.shares_:
        assert set(found.sum(axis=1).round(12)) <= {0.0, 1.0}
    for h, ax in enumerate(ge.plotting.correspondence(est)):
        assert ax.get_title() == f"clustering {h}"
    left, right = ge.plotting.correspondence(est, 0).figure.axes[:2]
    rows = [int(tick.get_text()) for tick in left.get_yticklabels()]
    np.testing.assert_array_equal(right.images[0].get_array(), est.shares_[0][rows])
    assert [left.get_title(), right.get_title()] == ["correspondence S", "where the objects went"]
