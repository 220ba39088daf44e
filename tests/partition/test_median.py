"""The median partition compared with literal losses of pairs and tables, and with all partitions of few objects."""

import numpy as np
import pytest
from conftest import random_labels, refused, structured_labels
from oracles import alone, median_losses, must_groups, partitions

import gpuens as ge
from gpuens import cli
from gpuens.labels.rows import Rows

LOSSES = [("binder", 1.0), ("binder", 0.5), ("binder", 1.4), ("vi", 1.0), ("vi", 0.6), ("vi", 1.3), ("omari", 1.0)]


# --- literal losses ---------------------------------------------------------------------------------------------------


def binder(column, estimate, a):
    """Sum the costs of all ordered pairs, divided by N²."""
    truth, together = column[:, None] == column, estimate[:, None] == estimate
    return (a * (truth & ~together) + (2 - a) * (together & ~truth)).mean()


def entropy_given(of, condition):
    """Return the conditional entropy H(of | condition) in bits."""
    total = 0.0
    for value in set(condition.tolist()):
        inside = of[condition == value]
        shares = np.unique(inside, return_counts=True)[1] / len(inside)
        total -= len(inside) / len(of) * (shares * np.log2(shares)).sum()
    return total


def vi(column, estimate, a):
    return a * entropy_given(estimate, column) + (2 - a) * entropy_given(column, estimate)


def omari(column, estimate, a):
    """Return one minus the adjusted Rand index, from four numbers of pairs."""
    pairs = np.triu_indices(len(column), 1)
    truth, together = ((of[:, None] == of)[pairs] for of in (column, estimate))
    both, either = (truth & together).sum(), (truth.sum() + together.sum()) / 2
    chance = truth.sum() * together.sum() / max(len(truth), 1)
    return 1 - ((both - chance) / (either - chance) if either > chance else 1.0)


def literal(labels, found, loss, a):
    return np.mean([{"binder": binder, "vi": vi, "omari": omari}[loss](alone(c), found, a) for c in labels.T])


def median(rows, k=None, **given):
    """Return the partition of rows (Rows or labels), without core groups."""
    _, partitioner = ge.Median(**given)._parts()
    return partitioner(None, rows if isinstance(rows, Rows) else Rows(rows), k)


@pytest.mark.parametrize(("loss", "a"), LOSSES)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_objective_is_the_literal_loss(loss, a, missing):
    labels = random_labels(30, 5, (2, 5), distinct=18, missing=missing, seed=1)
    est = ge.Median(loss=loss, a=a, n_init=2).fit(labels)
    assert est.objective_ == pytest.approx(literal(labels, est.labels_, loss, a), abs=1e-12)


ALL_OF = {n: np.array(list(partitions(n))) for n in (5, 8)}


def best_of(labels, loss, a, k=None):
    """Return the smallest loss of all partitions of few objects, or of those with k clusters."""
    every = ALL_OF[len(labels)]
    return median_losses(labels, every if k is None else every[every.max(axis=1) == k - 1], loss, a).min()


@pytest.mark.parametrize(("loss", "a"), LOSSES)
def test_the_losses_of_many_partitions_are_the_literal_ones(loss, a):
    labels = random_labels(5, 3, (2, 3), missing=0.2, seed=5)
    expected = [literal(labels, found, loss, a) for found in ALL_OF[5]]
    np.testing.assert_allclose(median_losses(labels, ALL_OF[5], loss, a), expected, atol=1e-12)


# --- the best partition -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize(("loss", "a"), LOSSES)
def test_few_objects_get_the_best_of_all_partitions(loss, a, k):
    for seed in range(3):
        labels = random_labels(8, 4, (2, 4), seed=seed)
        est = ge.Median(k, loss=loss, a=a).fit(labels)
        assert est.objective_ == pytest.approx(best_of(labels, loss, a, k), abs=1e-12)
        assert k in (None, est.n_clusters_)


@pytest.mark.parametrize(("loss", "a"), LOSSES)
def test_the_search_finds_the_best_of_all_partitions(loss, a, sizes):
    """With the default number of starts; a search of one start misses it in one of eight ensembles."""
    sizes("partition.median", FEW=0)
    found = []
    for seed in range(12):
        labels = structured_labels(8, 7, 3, noise=0.4, seed=seed)[0]
        for k in (None, 3):
            objective = median(labels, k, loss=loss, a=a).results["objective"]
            found.append(objective == pytest.approx(best_of(labels, loss, a, k), abs=1e-12))
    assert np.mean(found) > 0.95


@pytest.mark.parametrize("loss", ["binder", "vi", "omari"])
def test_objects_with_equal_labels_stay_together_in_the_best_partition(loss):
    """Core groups lose nothing, unless labels are missing."""
    for seed in range(4):
        labels = random_labels(8, 4, (2, 3), distinct=5, seed=seed)
        est = ge.Median(loss=loss).fit(labels)
        assert len(est.reduction_.counts) < 8
        assert est.objective_ == pytest.approx(best_of(labels, loss, 1.0), abs=1e-12)


@pytest.mark.parametrize("k", [None, 4, 9])
@pytest.mark.parametrize(("loss", "a"), [("binder", 1.0), ("binder", 1.4), ("vi", 1.0), ("omari", 1.0)])
def test_no_move_of_a_row_makes_it_better(loss, a, k):
    labels = random_labels(40, 5, (2, 5), distinct=25, missing=0.1, seed=1)
    est = ge.Median(k, loss=loss, a=a, n_init=3).fit(labels)
    assert est.converged_
    assert k in (None, est.n_clusters_)
    moved = []
    for group in ((labels == row).all(axis=1) for row in np.unique(labels, axis=0)):
        if k is None or (est.labels_[~group] == est.labels_[group][0]).any():  # or its cluster would be empty
            moved += [np.where(group, s, est.labels_) for s in range(est.n_clusters_ + (k is None))]
    assert median_losses(labels, np.array(moved), loss, a).min() >= est.objective_ - 1e-9


@pytest.mark.parametrize("loss", ["binder", "vi", "omari"])
def test_the_objective_never_rises(loss):
    labels = random_labels(300, 6, (2, 6), seed=4)
    found = [ge.Median(loss=loss, n_init=1, max_iter=n).fit(labels) for n in (1, 2, 3, 5, 100)]
    objectives = [est.objective_ for est in found]
    assert (np.diff(objectives) < 1e-12).all()  # but for rounding
    assert [est.converged_ for est in found][::4] == [False, True]
    assert found[0].n_iter_ == 1


def test_it_is_no_worse_than_pd():
    labels, truth = structured_labels(300, 9, 5, noise=0.3, split=2, seed=2)
    est, free = ge.Median(5).fit(labels), ge.Median(loss="vi").fit(labels)
    # Σ_c n_c², which PD leaves out of its objective
    sizes_squared = np.mean([(np.bincount(column[column >= 0]) ** 2).sum() for column in labels.T])
    assert 300**2 * est.objective_ <= ge.PD(5).fit(labels).objective_ + sizes_squared + 1e-6
    assert free.n_clusters_ == 5
    assert min(ge.metrics.ari(fit.labels_, truth) for fit in (est, free)) > 0.9
    # omari's rule for new objects is linear in the sums of pairs, and so differs from the index by second-order terms
    est = ge.Median(loss="omari").fit(labels[:200])
    assert ge.metrics.ari(est.predict(labels[200:]), truth[200:]) > 0.9


# --- weights, counts, seeds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["binder", "vi", "omari"])
def test_repeated_clusterings_count_as_often(loss):
    """They are one clustering with a weight, whatever their clusters are called."""
    labels = random_labels(24, 4, (2, 4), seed=3)
    many = np.column_stack([labels, 7 - labels[:, 0], labels[:, 0], labels[:, 2] * 3])
    est = ge.Median(loss=loss).fit(many)
    assert est.objective_ == pytest.approx(literal(many, est.labels_, loss, 1.0), abs=1e-12)
    once, thrice = (ge.Median(loss=loss).fit(np.tile(labels, times)) for times in (1, 3))
    np.testing.assert_array_equal(once.labels_, thrice.labels_)
    assert once.objective_ == pytest.approx(thrice.objective_)


@pytest.mark.parametrize("loss", ["binder", "vi", "omari"])
@pytest.mark.parametrize("k", [None, 3])
def test_counts_are_repetitions(loss, k):
    labels = structured_labels(40, 8, 3, noise=0.1, seed=5)[0]
    rows = Rows(labels, counts=np.arange(len(labels)) % 3 + 1)
    partition, expected = (median(x, k, loss=loss) for x in (rows, Rows(np.repeat(labels, rows.counts, axis=0))))
    assert partition.results["objective"] == pytest.approx(expected.results["objective"])
    np.testing.assert_array_equal(np.repeat(partition.labels, rows.counts), expected.labels)


def test_seeds_matter():
    labels = random_labels(200, 6, (2, 9), seed=6)
    assert (
        ge.Median(max_iter=2, random_state=1).fit(labels).labels_ != ge.Median(max_iter=2).fit(labels).labels_
    ).any()


@pytest.mark.parametrize("loss", ["binder", "vi", "omari"])
def test_clusters_that_vanish_leave_the_loss_right(loss):
    """Noise begins as hundreds of clusters, whose columns the search drops when nearly all are empty."""
    labels = structured_labels(300, 40, 5, noise=0.35, split=2, missing=0.01, seed=3)[0]
    est = ge.Median(loss=loss, n_init=4).fit(labels)
    assert ge.metrics.expected_loss(labels, est.labels_, loss) == pytest.approx(est.objective_, abs=1e-12)


# --- the number of clusters -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_a_weighs_the_kinds_of_error():
    labels = random_labels(60, 6, (3, 5), seed=7)
    for loss in ("binder", "vi", "omari"):
        assert ge.Median(loss=loss).fit([[0, 0, 1, 1, 2]] * 4).labels_.tolist() == [0, 0, 1, 1, 2]
        assert ge.Median(loss=loss).fit([[0, 0, 0], [0, 0, 0]]).objective_ == 0
        if loss != "omari":
            numbers = [ge.Median(loss=loss, a=a).fit(labels).n_clusters_ for a in (0.0, 0.5, 1.0, 1.5, 2.0)]
            assert numbers == sorted(numbers, reverse=True)
            assert (numbers[0], numbers[-1]) == (len(np.unique(labels, axis=0)), 1)


def test_the_number_of_clusters_has_a_limit(sizes):
    labels = random_labels(60, 6, (3, 5), seed=7)
    free = ge.Median().fit(labels)
    assert ge.Median(max_clusters=4).fit(labels).n_clusters_ == 4 < free.n_clusters_
    sizes("partition.median", MOST_CLUSTERS=4)
    with pytest.warns(UserWarning, match="up to the limit of 5 clusters"):
        assert ge.Median().fit(labels).n_clusters_ == 5  # as many as the largest clustering has


# --- many rows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 5])
@pytest.mark.parametrize("loss", ["binder", "vi", "omari"])
def test_many_rows_begin_with_few_objects(loss, k, sizes):
    labels, truth = structured_labels(1000, 8, 5, noise=0.25, missing=0.02, seed=8)
    whole = ge.Median(k, loss=loss).fit(labels)
    sizes("partition.median", ROWS_OF_STARTS=200)
    est = ge.Median(k, loss=loss).fit(labels)
    assert est.objective_ < 1.02 * whole.objective_
    assert k in (None, est.n_clusters_)
    assert (loss, k) == ("binder", None) or ge.metrics.ari(est.labels_, truth) > 0.85  # binder has many small clusters


# --- new objects ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "a"), [("binder", 1.0), ("binder", 1.4), ("vi", 1.0), ("vi", 0.6)])
def test_new_objects_go_where_they_cost_least(loss, a, tmp_path):
    labels = random_labels(60, 5, (2, 5), distinct=40, seed=1)
    est = ge.Median(3, loss=loss, a=a).fit(labels)
    np.testing.assert_array_equal(est.predict(labels), est.labels_)
    est.save(tmp_path / "model.npz")
    model = ge.load(tmp_path / "model.npz")
    for row in random_labels(8, 5, (2, 5), seed=9):
        row = np.minimum(row, labels.max(axis=0))
        scale = 61**2 if loss == "binder" else 61
        costs = [scale * literal(np.vstack([labels, row]), np.append(est.labels_, s), loss, a) for s in range(3)]
        if not (row == labels).all(axis=1).any():
            assert costs[int(est.predict(row[None])[0])] == pytest.approx(min(costs))
        np.testing.assert_array_equal(model.predict(row[None]), est.predict(row[None]))


# --- refusals and the command line ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "kind", "words"),
    [
        ({"loss": "mirkin"}, ValueError, "loss must be one of 'binder', 'vi', 'omari', not 'mirkin'"),
        ({"a": 2.5}, ValueError, "a must be from 0 to 2, but is 2.5"),
        ({"a": "1"}, TypeError, "a must be a number, not '1'"),
        ({"a": 0.5, "loss": "omari"}, ValueError, "'omari' has no such weight; leave it out"),
        ({"max_clusters": 0}, ValueError, "max_clusters must be at least 1, but is 0"),
        ({"max_clusters": 4, "n_clusters": 3}, ValueError, "n_clusters=3 fixes the number of clusters"),
        ({"n_init": 0}, ValueError, "n_init must be from 1 to"),
        ({"n_clusters": 7}, ValueError, "n_clusters=7 is more than the 6 distinct label row"),
    ],
)
def test_bad_parameters_are_refused(parameters, kind, words, monkeypatch):
    refused(lambda: ge.Median(**parameters).fit(np.arange(6)[:, None] // [1, 2]), kind, words)
    monkeypatch.setenv("GPUENS_MEMORY", "100 MB")
    vast = np.arange(9000)[:, None] // [1, 2]
    refused(lambda: ge.Median().fit(vast), MemoryError, "up to 9000 clusters", "max_clusters=…")


def test_the_command_line_needs_no_number(tmp_path, monkeypatch, capsys):
    labels, _ = structured_labels(60, 5, 3, noise=0.2, seed=0)
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", labels)
    assert cli.main(["run", "labels.npy", "--method", "median", "--loss", "vi", "-o", "out.npy"]) == 0
    np.testing.assert_array_equal(np.load("out.npy"), ge.Median(loss="vi").fit_predict(labels))
    assert "Median: 3 clusters" in capsys.readouterr().out


# --- links ------------------------------------------------------------------------------------------------------------


def drawn_links(rng, n, n_must, n_cannot):
    """Draw links without contradictions."""
    must = [(i, j) for i, j in rng.integers(n, size=(n_must, 2)).tolist() if i != j]
    group = np.array(must_groups(n, must))
    cannot = {(min(pair), max(pair)) for pair in rng.integers(n, size=(n_cannot, 2)).tolist()}
    return must, sorted((i, j) for i, j in cannot if group[i] != group[j])


def n_violated(labels, cannot):
    return sum(labels[i] == labels[j] for i, j in cannot)


@pytest.mark.parametrize("few", [8, 0])
@pytest.mark.parametrize(("loss", "a"), [("binder", 1.0), ("binder", 1.4), ("vi", 0.6), ("omari", 1.0)])
def test_links_have_the_best_of_all_partitions(loss, a, few, sizes):
    """All partitions are tried (few), or the search finds the best one from enough starts."""
    sizes("partition.median", FEW=few)
    rng = np.random.default_rng(0)
    for seed in range(8):
        labels = random_labels(7, 4, (2, 3), distinct=5 if seed % 2 else None, missing=0.1, seed=seed)
        must, cannot = drawn_links(rng, 7, seed % 4, 8)
        k, penalty = (None, 3)[seed % 3 == 0], (None, 0.05, 0.3)[seed % 3]
        group = np.array(must_groups(7, must))
        allowed = [
            found for found in partitions(7) if (found == found[group]).all() and (k is None or found.max() + 1 == k)
        ]
        if not allowed:
            continue
        top = {"vi": 2 * np.log2(7)}.get(loss, 2.0) if penalty is None else penalty
        best = min(literal(labels, found, loss, a) + top * n_violated(found, cannot) for found in allowed)
        est = ge.Median(k, loss=loss, a=a, link_penalty=penalty, n_init=40)
        est.fit(labels, must_link=must, cannot_link=cannot)
        assert (est.labels_ == est.labels_[group]).all()
        assert est.n_violated_links_ == n_violated(est.labels_, cannot)
        assert est.objective_ == pytest.approx(literal(labels, est.labels_, loss, a), abs=1e-12)
        assert est.objective_ + top * est.n_violated_links_ == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("loss", ["binder", "vi", "omari"])
def test_no_move_of_a_block_makes_it_better(loss):
    n, rng = 40, np.random.default_rng(1)
    labels, _ = structured_labels(n, 5, 3, noise=0.5, seed=2)
    must, cannot = drawn_links(rng, n, 12, 30)
    est = ge.Median(loss=loss, link_penalty=0.01, n_init=4).fit(labels, must_link=must, cannot_link=cannot)
    group = np.array(must_groups(n, must))

    def cost(found):
        return literal(labels, found, loss, 1.0) + 0.01 * n_violated(found, cannot)

    least = cost(est.labels_)
    assert least == pytest.approx(est.objective_ + 0.01 * est.n_violated_links_)
    for g in np.unique(group):
        for label in range(est.n_clusters_ + 1):
            assert cost(np.where(group == g, label, est.labels_)) > least - 1e-9


def test_many_rows_keep_their_links(sizes):
    sizes("partition.median", ROWS_OF_STARTS=100)
    labels, truth = structured_labels(300, 6, 4, noise=0.4, seed=3)
    rng = np.random.default_rng(2)
    pairs = rng.permutation(300).reshape(-1, 2)
    together = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    est = ge.Median(4).fit(labels, must_link=pairs[together], cannot_link=pairs[~together])
    assert est.n_violated_links_ == 0
    assert (est.labels_[pairs[together, 0]] == est.labels_[pairs[together, 1]]).all()


def test_too_few_clusters_violate_as_few_links_as_possible():
    labels, _ = structured_labels(30, 12, 3, noise=0.3, seed=4)
    cannot = [(0, 1), (0, 2), (1, 2)]
    assert ge.Median(2).fit(labels, cannot_link=cannot).n_violated_links_ == 1
    assert ge.Median(3).fit(labels, cannot_link=cannot).n_violated_links_ == 0
    words = "n_clusters=29, but must_link leaves only 28 groups of objects; ask for at most 28 clusters"
    refused(lambda: ge.Median(29).fit(labels, must_link=cannot), ValueError, words)


def test_empty_links_change_no_bit_of_a_median():
    labels, _ = structured_labels(60, 5, 3, noise=0.4, seed=5)
    for loss in ("binder", "vi", "omari"):
        plain = ge.Median(loss=loss).fit(labels)
        linked = ge.Median(loss=loss).fit(labels, must_link=[])
        np.testing.assert_array_equal(plain.labels_, linked.labels_)
        assert plain.objective_ == linked.objective_
