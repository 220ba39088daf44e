"""The choice of the number of clusters: criteria by definition, planted clusters, noise, and error messages."""

import json

import numpy as np
import pytest
from conftest import refused, structured_labels
from scipy.sparse import csr_array

import gpuens as ge
from gpuens import report
from gpuens.evidence.suggestion import Suggestion
from gpuens.runtime.defaults import METHOD
from gpuens.workflows import choose_k as choosing

FEW = {"n_clusterings": 10, "ks": range(2, 7)}


def blobs(k, n=80, seed=0):
    rng = np.random.default_rng(seed)
    return 9 * rng.standard_normal((k, 5))[np.arange(n) % k] + rng.standard_normal((n, 5))


@pytest.mark.parametrize("k", [2, 4, 5])
def test_planted_numbers_are_suggested(k):
    found = ge.choose_k(features=blobs(k, 160, seed=k), **FEW)
    assert found.suggested == k == found.table.support.idxmax()
    assert found.reasons[k].startswith(
        f"the clusterings share {k} groups, and no further one as clearly; by chooseR's "
    )
    assert found.reasons[k].endswith(f"those of any number (median silhouette {found.table.silhouette[k]:.2f})")
    assert found.structure is None
    assert len(np.unique(found.labels[k])) == k


def test_criteria_are_those_of_the_clusterings_of_each_k():
    labels = {k: ge.generate.kmeans_ensemble(blobs(3), 10, (k, k), objects=0.8, random_state=1) for k in (2, 3, 5)}
    found = ge.choose_k(labels, method="eac")
    assert found.suggested == 3
    good = found.table.index[found.table.silhouette >= found.table.silhouette_low.max()].tolist()
    assert [found.suggested, *found.runners_up] == good[::-1]
    for row, before in zip(found.rows, [None, *found.rows], strict=False):
        k, ensemble = row["k"], labels[row["k"]]
        est = ge.EAC(k).fit(ensemble)
        np.testing.assert_array_equal(found.labels[k], est.labels_)
        pairs, evidence = ge.evidence.pairs(ensemble), est.evidence(missing="ignore")
        expected = [pairs.pac(), pairs.rpac(), pairs.corrected_pac(), pairs.area()]
        assert [row[name] for name in ("pac", "rpac", "corrected_pac", "area")] == expected
        assert row["delta_area"] == (row["area"] if before is None else row["area"] / before["area"] - 1)
        assert row["inconsistency"] == evidence.consistency.inconsistency
        means = [evidence.objects.silhouette[est.labels_ == t].mean() for t in range(k)]
        np.testing.assert_allclose(row["silhouette"], np.median(means))
        np.testing.assert_allclose(row["mean_silhouette"], evidence.objects.silhouette.mean())
        np.testing.assert_allclose(row["cluster_consensus"], np.nanmean(evidence.clusters.consensus))
        assert row["silhouette_low"] <= row["silhouette"] <= row["silhouette_high"]
        assert (row["anmi"], row["smallest"]) == (evidence.agreement.anmi, np.bincount(est.labels_).min())


def noise(kind, rng):
    """Return data without clusters."""
    return rng.random((60, 3)) if kind == "cube" else rng.standard_normal((60, 5)) * [9, 3, 1, 1, 1]


@pytest.mark.parametrize("kind", ["long", "cube"])
def test_noise_has_no_structure_beyond_chance(kind):
    """With 19 null data sets, one in twenty sets of noise appears to have structure by chance."""
    found = []
    for seed in range(4):
        X = noise(kind, np.random.default_rng(seed))
        found.append(ge.choose_k(features=X, n_clusterings=4, ks=[3], null=19))
    assert sum(choice.structure for choice in found) <= 1
    for choice in found:
        said = any("no structure beyond chance: reference data" in sentence for sentence in choice.caveats)
        assert said == (choice.structure is False)


@pytest.mark.parametrize("method", ["eac", "lwgp"])
def test_labels_drawn_at_random_agree_no_more_than_chance(method):
    draw = np.random.default_rng(2)
    labels = draw.integers(0, 3, (60, 8))
    found = ge.choose_k(labels, ks=[2, 3, 4], method=method)
    assert found.structure is False
    assert found.reasons[found.suggested].endswith(f"; {ge.evidence.beyond_chance(labels)}")
    assert "There is no structure beyond chance: independent clusterings might do as well." in found.caveats
    assert next(iter(found.reasons)) == found.suggested
    each = ge.choose_k({k: draw.integers(0, k, (60, 8)) for k in (2, 3)}, method=method)
    assert each.structure is False
    assert "There is no structure beyond chance" in each.caveats[0]
    assert ge.choose_k(structured_labels(60, 8, 3, noise=0.3, seed=1)[0], ks=[2, 3], method=method).structure is None


def test_clusters_are_more_than_chance():
    few = {"n_clusterings": 5, "ks": [3], "null": 19}
    clear = ge.choose_k(features=blobs(3, n=60), **few)
    assert (clear.suggested, clear.structure) == (3, True)
    assert clear.table.p[3] == 1 / 20
    assert clear.table.rcsi[3] > 0


@pytest.mark.parametrize("power", [-900, 800])
def test_the_size_of_features_changes_no_choice(power):
    few = {"n_clusterings": 3, "ks": [2, 3], "null": 19, "n_init": 1}
    expected = ge.choose_k(features=blobs(3, n=40), **few)
    assert ge.choose_k(features=blobs(3, n=40) * 2.0**power, **few).to_dict() == expected.to_dict()


def test_single_criteria_by_name():
    found = ge.choose_k(features=blobs(4, seed=4), **FEW)
    table = found.table
    assert found.by_criterion == {
        "mean_silhouette": table.mean_silhouette.idxmax(),
        **{name: table[name].idxmin() for name in ("pac", "corrected_pac", "inconsistency")},
        "delta_area": 4,
    }
    falls = table.delta_area.shift(1) / table.delta_area.clip(0.01)
    assert falls.idxmax() == 5
    assert found.to_dict()["by_criterion"] == found.by_criterion


def kinds_of_work():
    X = blobs(3, n=60)
    own = {k: ge.generate.kmeans_ensemble(X, 5, (k, k), random_state=1) for k in (2, 3, 4)}
    return {
        "features": {"features": X[:30], "n_clusterings": 2, "null": 2},
        "clusterings of each k": {"labels": own},
        "a tree": {"labels": structured_labels(60, 6, 3, noise=0.2, seed=3)[0]},
        "no tree": {"labels": structured_labels(60, 6, 3, noise=0.2, seed=3)[0], "method": "lwgp"},
    }


@pytest.mark.parametrize("kind", kinds_of_work())
def test_a_choice_that_was_stopped_goes_on(kind, tmp_path, monkeypatch, sizes):
    sizes("workflows.choose_k", LEAST_NULL=2)
    given = kinds_of_work()[kind]
    expected = ge.choose_k(ks=(2, 3, 4), **given)
    folder = tmp_path / "kept"
    # the folder keeps the results of an earlier run with other numbers of clusters
    ge.choose_k(ks=(4, 2), **given, resume=folder)
    done = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    found = ge.choose_k(ks=(2, 3, 4), **given, resume=folder)
    assert json.dumps(found.to_dict()) == json.dumps(expected.to_dict())
    for k, labels in expected.labels.items():
        np.testing.assert_array_equal(found.labels[k], labels)
    assert {name: (folder / name).stat().st_mtime_ns for name in done} == done
    if "tree" not in kind:
        done = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
        assert ge.choose_k(ks=(2, 3, 4), **given, resume=folder).to_dict() == found.to_dict()
        assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == done
    refused(lambda: ge.choose_k(ks=(2, 3), **given, random_state=5, resume=folder), ValueError, "seed differ")
    refused(lambda: ge.choose_k(np.arange(20).reshape(-1, 2) % 3, resume=folder), ValueError, "holds other work (data")
    numpy_numbers = {name: np.int64(n) if isinstance(n, int) else n for name, n in given.items()}
    ge.choose_k(ks=(2, 3), **numpy_numbers, resume=folder)  # the same call, but with NumPy integers as arguments
    (folder / "work.json").unlink()
    refused(lambda: ge.choose_k(ks=(2, 3), **given, resume=folder), ValueError, "holds other files")


@pytest.mark.filterwarnings("ignore:.*arbitrary")
def test_one_ensemble_is_cut_from_one_tree():
    labels, _ = structured_labels(150, 12, 4, noise=0.1, seed=3)
    found = ge.choose_k(labels, ks=(2, 4, 6), method="eac")
    est = ge.EAC(6).fit(labels)
    for row in found.rows:
        np.testing.assert_array_equal(found.labels[row["k"]], ge.EAC(row["k"]).fit(labels).labels_)
        assert row["lifetime"] == est.lifetimes_[row["k"] - 2]
    assert found.suggested == 4
    assert found.reasons == {4: "the clusterings share 4 groups, and no further one as clearly"}
    np.testing.assert_allclose(found.table.score, 0.5 * np.log(found.table.support + 0.03) + found.table.nearness)
    assert found.by_criterion["lifetime"] == 4
    assert "pac" not in found.table
    three_rows = [[0, 1, 2, 2], [0, 1, 2, 2], [0, 1, 1, 1]]
    assert ge.choose_k(three_rows).table.index.tolist() == [2, 3]


@pytest.mark.filterwarnings("ignore:constant clusterings")  # all objects of a sample may have equal labels
@pytest.mark.parametrize("n", [2, 3, 4, 5, 9, 24])
def test_few_objects_get_numbers_that_their_clusterings_can_have(n):
    X = np.vstack([np.eye(3), np.random.default_rng(0).random((21, 3)) + 9])[:n]
    found = ge.choose_k(features=X, n_clusterings=3, n_init=1)
    assert [row["k"] for row in found.rows] == list(range(2, round(0.8 * n) + 1))
    twice = ge.choose_k(features=csr_array(np.repeat(X, 2, axis=0)[: 2 * n - 1]), n_clusterings=10, n_init=1)
    assert [row["k"] for row in twice.rows] == list(range(2, min(20, n, round(0.8 * (2 * n - 1))) + 1))


def test_a_suggestion_that_is_in_doubt_says_so():
    """k-means with random numbers of clusters on a single group: no number of clusters suits better than others."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    labels = ge.generate.kmeans_ensemble(X, 12, random_state=0)
    found, numbers = ge.choose_k(labels), ge.evidence.suggestion(labels)
    assert found.suggested == numbers.n_clusters
    assert found.doubt == numbers.doubt() == found.to_dict()["doubt"]
    low, high = min(numbers.sizes), max(numbers.sizes)
    assert found.doubt.startswith(f"the clusterings have {low} to {high} clusters, and {found.runners_up[0]}")
    assert found.caveats == [f"The number is in doubt: {found.doubt}."]
    assert found.alternatives == {"about as well": numbers.close(list(found.labels))}


def test_numbers_that_nothing_supports_are_told_apart_by_nothing():
    """Four clear clusters give no support to two clusters or to three."""
    found = ge.choose_k(features=5 * np.repeat(np.arange(4.0), 30)[:, None] + blobs(1, 120), ks=(2, 3), n_clusterings=5)
    assert max(found.table.support) < 0.05
    assert found.doubt == "the clusterings share no clear groups"


def test_methods_by_features_get_them():
    assert ge.choose_k(features=blobs(3, n=60), ks=(2, 3, 4), method="tome", n_clusterings=5, n_init=1).suggested == 3


def test_a_method_without_a_tree_is_fitted_for_each_number():
    """The default method is the default method of `gpuens.consensus`, and both give the same labels."""
    labels, _ = structured_labels(150, 12, 4, noise=0.1, seed=3)
    found = ge.choose_k(labels, ks=(3, 4, 5))
    assert found.suggested == 4
    assert found.reasons[4] == "the clusterings share 4 groups, and no further one as clearly"
    assert found.method == found.to_dict()["method"] == METHOD
    np.testing.assert_array_equal(found.labels[5], ge.consensus(labels, n_clusters=5))
    seeded = ge.choose_k(labels, ks=(3, 5), method="kcc", random_state=7)
    np.testing.assert_array_equal(seeded.labels[5], ge.KCC(5, random_state=7).fit(labels).labels_)


@pytest.mark.parametrize("method", ["eac", "lwgp"])  # EAC cuts a tree, LWGP fits each number
@pytest.mark.usefixtures("unpainted")
def test_a_suggestion_that_is_lopsided_is_warned_of(method, monkeypatch):
    labels, _ = structured_labels(150, 12, 4, noise=0.1, seed=3)

    def why_lopsided(rows, sizes, remedy, unit):
        return f"{rows.n_objects} objects in {sizes.tolist()}: {remedy()}." if len(sizes) > 3 else None

    monkeypatch.setattr(choosing, "why_lopsided", why_lopsided)
    with pytest.warns(UserWarning, match=f"^4 clusters by {method}: 150 objects in .* another method") as caught:
        found = ge.choose_k(labels, ks=(3, 4, 5), method=method)
    assert (found.suggested, found.lopsided.keys()) == (4, {4, 5})
    assert str(np.bincount(found.labels[4]).tolist()) in found.lopsided[4]
    assert str(caught[-1].message).endswith(found.lopsided[4])
    assert found.to_dict()["lopsided"] == {str(k): why for k, why in found.lopsided.items()}
    assert "lopsided" not in found.table
    assert f"150 objects in {np.bincount(found.labels[4]).tolist()}" in report.render_choice(found, "title").decode()
    monkeypatch.setattr(Suggestion, "best", lambda self, numbers=None: [3])
    ge.choose_k(labels, ks=(3, 4), method=method)  # no warning: only the suggested number is checked


SMALL, MANY = [[0, 0, 1], [0, 1, 1]], range(2, 10**12)
EYE, THREE = np.eye(8), np.eye(9)[[0, 1, 2] * 5]


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [
        ({}, ValueError, "labels, features: give either"),
        ({"labels": SMALL, "features": [[0.0], [1.0], [2.0]]}, ValueError, "give either"),
        ({"labels": SMALL, "null": 19}, ValueError, "null=19: reference data need features"),
        ({"features": np.eye(30), "null": 5}, ValueError, "at least 19 sets"),
        ({"labels": SMALL, "ks": []}, ValueError, "ks holds no number of clusters"),
        ({"labels": SMALL, "ks": [1]}, ValueError, "ks must be at least 2, but is 1"),
        ({"features": np.zeros((1, 2)), "ks": [2]}, ValueError, "objects that are all equal"),
        ({"labels": SMALL, "ks": 2}, TypeError, "ks must be some numbers of clusters"),
        ({"labels": SMALL, "ks": MANY}, ValueError, "because the objects have 3 distinct label rows, but is 4"),
        ({"features": np.eye(9), "ks": MANY}, ValueError, "ks must be at most 9, because there are 9 objects"),
        ({"features": EYE, "ks": [3, 7]}, ValueError, "ks must be at most 6, because each clustering has 6 of the 8"),
        ({"features": THREE, "ks": [4]}, ValueError, "at most 3, because 3 of the 15 objects differ, but is 4"),
        ({"features": np.ones((15, 2))}, ValueError, "ks: 1 of the 15 objects differ, so there is nothing to choose"),
        ({"features": np.eye(3), "objects": 0.3}, ValueError, "ks: each clustering has 1 of the 3 objects"),
        ({"labels": SMALL, "method": "tome"}, ValueError, "give features in place of"),
        ({"labels": {2: SMALL}, "ks": [2, 3]}, ValueError, "labels hold no clusterings for k=3"),
        ({"labels": SMALL, "missing": "omit"}, ValueError, "missing must be"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(given, kind, sentence):
    refused(lambda: ge.choose_k(**given), kind, sentence)


def test_what_pictures_show_is_kept_too(tmp_path):
    given = {"features": blobs(3), "n_clusterings": 10, "ks": (2, 3)}
    first = ge.choose_k(**given, resume=tmp_path / "kept")
    again = ge.choose_k(**given, resume=tmp_path / "kept")
    for k in (2, 3):
        found = again.consensus[k]
        np.testing.assert_array_equal(found.matrix(), first.consensus[k].matrix())
        np.testing.assert_array_equal(found.pairs.counts, first.consensus[k].pairs.counts)
        assert found.pairs.corrected_pac() == first.rows[k - 2]["corrected_pac"]
    assert "ConsensusMatrix" not in repr(first)


def ten_lines(found):
    """Return the lines that a result prints, and check that they are few and fit a terminal."""
    lines = repr(found).splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 120
    return lines


def test_results_show_their_answer_first():
    labels = np.random.default_rng(0).integers(0, 4, size=(300, 1)) + np.zeros((1, 8), dtype=int)
    labels[:40] = np.random.default_rng(1).integers(0, 4, size=(40, 8))
    choice = ge.choose_k(labels, ks=range(2, 7))
    first, *others = ten_lines(choice)
    assert first == f"Choice: {choice.suggested} clusters are suggested, of the numbers 2 to 6"
    assert others[0] == f"  why: {choice.reasons[choice.suggested]}"
    assert others[-1] == "  see: table, labels, reasons, plot()"
    assert ten_lines(ge.choose_k(features=blobs(3), ks=[2, 3], n_clusterings=5))
    evidence = ge.EAC(4).fit(labels).evidence()
    first, *others = ten_lines(evidence)
    assert first == "Evidence: 300 objects in 4 clusters, by 8 clusterings"
    low, median, high = np.quantile(evidence.objects.certainty, [0.25, 0.5, 0.75], method="inverted_cdf")
    assert others[0] == f"  certainty: {median:.2f} is the median, half of the objects are from {low:.2f} to {high:.2f}"
    assert ten_lines(ge.EAC(1).fit([[0, 1], [0, 1]]).evidence())
    assert ten_lines(ge.compare(labels, 4, methods="eac,lwgp"))[0].startswith("Comparison: ")
    assert ten_lines(ge.evidence.spectrum(labels))[0] == "Spectrum: 4 clusters have the most support"
    assert ten_lines(ge.evidence.Spectrum(*np.empty((5, 0))))[0] == "Spectrum: all objects are alike"
    first, *others = ten_lines(ge.evidence.suggestion(labels))
    assert (first, others[0]) == ("Suggestion: 4 clusters suggested", f"  why: {choice.reasons[4]}")
    with pytest.warns(UserWarning, match="constant clusterings"):
        alike = ge.evidence.suggestion(np.zeros((3, 2)))
    assert ten_lines(alike)[0] == "Suggestion: no number suggested"
