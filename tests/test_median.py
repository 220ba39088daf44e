"""The median partition compared with literal losses of pairs and tables, and with all partitions of few objects."""

import itertools

import numpy as np
import pytest
from conftest import random_labels, refused, structured_labels

import gpuens as ge
from gpuens import cli
from gpuens.labels.rows import Rows

LOSSES = [("binder", 1.0), ("binder", 0.5), ("binder", 1.4), ("vi", 1.0), ("vi", 0.6), ("vi", 1.3), ("omari", 1.0)]


# --- literal losses ---------------------------------------------------------------------------------------------------


def alone(column):
    """Return labels in which each object without a label has a label of its own."""
    return np.where(column < 0, column.max() + 1 + np.arange(len(column)), column)


def binder(column, found, a):
    """Sum the costs of all ordered pairs, divided by N²."""
    total = 0.0
    for x, y in itertools.permutations(range(len(found)), 2):
        truth, estimate = column[x] == column[y], found[x] == found[y]
        total += a * (truth and not estimate) + (2 - a) * (estimate and not truth)
    return total / len(found) ** 2


def entropy_given(of, given):
    """Return the conditional entropy H(of | given) in bits."""
    total = 0.0
    for g in set(given.tolist()):
        inside = of[given == g]
        shares = np.unique(inside, return_counts=True)[1] / len(inside)
        total -= len(inside) / len(of) * (shares * np.log2(shares)).sum()
    return total


def vi(column, found, a):
    return a * entropy_given(found, column) + (2 - a) * entropy_given(column, found)


def omari(column, found, a):
    """Return one minus the adjusted Rand index, from four numbers of pairs."""
    pairs = list(itertools.combinations(range(len(found)), 2))
    truth, estimate = (np.array([of[x] == of[y] for x, y in pairs], dtype=bool) for of in (column, found))
    both, either = (truth & estimate).sum(), (truth.sum() + estimate.sum()) / 2
    chance = truth.sum() * estimate.sum() / max(len(pairs), 1)
    return 1 - ((both - chance) / (either - chance) if either > chance else 1.0)


def literal(labels, found, loss, a):
    return np.mean([{"binder": binder, "vi": vi, "omari": omari}[loss](alone(c), found, a) for c in labels.T])


def partitions(n, first=()):
    """Yield all partitions of n objects."""
    if len(first) == n:
        yield np.array(first)
        return
    for label in range(max(first, default=-1) + 2):
        yield from partitions(n, (*first, label))


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


@pytest.mark.parametrize(("loss", "a"), LOSSES)
@pytest.mark.parametrize("n", [4, 8])
def test_few_objects_get_the_best_of_all_partitions(loss, a, n):
    for seed in range(3):
        labels = random_labels(n, 4, (2, 4), seed=seed)
        least = min(literal(labels, found, loss, a) for found in partitions(n)) if n < 6 else best_of(labels, loss, a)
        est = ge.Median(loss=loss, a=a).fit(labels)
        assert est.objective_ == pytest.approx(least, abs=1e-12)
        assert est.objective_ == pytest.approx(literal(labels, est.labels_, loss, a), abs=1e-12)


def best_of(labels, loss, a, k=None):
    """Return the smallest loss of all partitions of few objects, from tables of all their pairs and subsets."""
    every = np.array(list(partitions(labels.shape[0])))
    if k is not None:
        every = every[every.max(axis=1) == k - 1]
    return losses_of(labels, every, loss, a).min()


def losses_of(labels, every, loss, a):
    """Return the loss of each partition (P, N), by the same formulas for all of them."""
    total = np.zeros(len(every))
    n, together = every.shape[1], every[:, :, None] == every[:, None, :]  # (P, N, N)
    sizes = together.sum(axis=2)
    for column in labels.T:
        own = alone(column)
        same = own[:, None] == own[None]
        both, of_own = (together & same).sum(axis=2), same.sum(axis=1)
        if loss == "binder":
            total += (a * (of_own - both) + (2 - a) * (sizes - both)).sum(axis=1) / n**2
        elif loss == "vi":
            total += (a * np.log2(of_own / both) + (2 - a) * np.log2(sizes / both)).sum(axis=1) / n
        else:
            agreed, truth, estimate = (both - 1).sum(axis=1), (of_own - 1).sum(), (sizes - 1).sum(axis=1)
            chance = truth * estimate / (n * (n - 1))
            beyond = (truth + estimate) / 2 - chance
            total += 1 - np.where(beyond > 1e-9, (agreed - chance) / np.where(beyond > 1e-9, beyond, 1), 1.0)
    return total / labels.shape[1]
