"""The credible ball and expected losses compared with the published definitions, written literally with pairs."""

import json

import numpy as np
import pandas as pd
import pytest
from conftest import random_labels, refused, structured_labels

import gpuens as ge

# --- literal definitions ----------------------------------------------------------------------------------------------


def alone(draw):
    """Return labels in which each object without a label has a label of its own."""
    return np.where(draw < 0, draw.max() + 1 + np.arange(len(draw)), draw)


def pairs_of(draw):
    return draw[:, None] == draw[None]


def binder(estimate, draw, a=1.0):
    """Return the costs of all ordered pairs, divided by N²."""
    truth, together = pairs_of(draw), pairs_of(estimate)
    return (a * (truth & ~together) + (2 - a) * (together & ~truth)).mean()


def vi(estimate, draw, a=1.0):
    """Return the sum over the objects of the logarithms of their clusters' sizes, divided by N."""
    truth, together = pairs_of(draw), pairs_of(estimate)
    sizes = [of.sum(axis=1) for of in (truth, together, truth & together)]
    of_draw, of_estimate, of_both = map(np.log2, sizes)
    return (a * (of_draw - of_both) + (2 - a) * (of_estimate - of_both)).mean()


def omari(estimate, draw, a=1.0):
    return 1 - ge.metrics.ari(estimate, draw)


LITERAL = {"binder": binder, "vi": vi, "omari": omari}


def literal_ball(draws, estimate, loss, level):
    """Return radius, members, and the three bounds with their distances, from draws (S, N)."""
    distances = np.array([LITERAL[loss](estimate, alone(draw)) for draw in draws])
    numbers = np.array([len(set(alone(draw).tolist())) for draw in draws])
    within = [np.flatnonzero(distances <= epsilon + 1e-12) for epsilon in sorted(distances)]
    members = next(inside for inside in within if len(inside) / len(draws) >= level - 1e-12)
    found = {}
    for name, extreme in (("upper", min), ("lower", max), ("horizontal", None)):
        k = None if extreme is None else extreme(numbers[members])
        candidates = [m for m in members if k in (None, numbers[m])]
        farthest = max(distances[candidates])
        found[name] = [m for m in candidates if distances[m] > farthest - 1e-12], farthest
    return distances, max(distances[members]), members, found, numbers


def chain(n_draws, n_objects, seed, missing=0.0):
    """Return draws (S, N) of different numbers of clusters, with equal ones among them."""
    labels = structured_labels(n_objects, n_draws, 4, noise=0.15, missing=missing, seed=seed)[0].T
    labels[::5] = labels[0]
    labels[1::7] = (labels[1] + 1) % 9
    return labels


# --- losses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [1.0, 0.4, 1.7])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("loss", list(LITERAL))
def test_the_expected_loss_is_the_mean_over_the_draws(loss, missing, a):
    if loss == "omari" and a != 1:
        return
    draws = random_labels(30, 9, (2, 5), missing=missing, seed=3).T
    for estimate in (draws[0].clip(0), np.arange(30) // 4, np.zeros(30, dtype=int), np.arange(30)):
        expected = np.mean([LITERAL[loss](estimate, alone(draw), a) for draw in draws])
        assert ge.metrics.expected_loss(draws, estimate, loss, a) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("loss", "a"), [("binder", 1.0), ("binder", 0.5), ("vi", 1.0), ("vi", 1.4), ("omari", 1.0)])
def test_it_is_the_objective_of_the_median(loss, a):
    labels = random_labels(60, 8, (2, 6), missing=0.1, seed=5)
    est = ge.Median(loss=loss, a=a, n_init=2).fit(labels)
    assert ge.metrics.expected_loss(labels, est.labels_, loss, a) == pytest.approx(est.objective_, abs=1e-12)


def test_it_knows_a_partition_of_more_clusters_than_codes_of_a_byte():
    """The table of 3,000 × 3,000 clusters is sparse."""
    draws = np.stack([np.arange(3000) % 3, np.arange(3000) // 2 % 7, np.zeros(3000, dtype=int)])
    with pytest.warns(UserWarning, match="constant"):
        found = ge.metrics.expected_loss(draws, np.arange(3000), "vi")
    entropy = [-(n / 3000 * np.log2(n / 3000)).sum() for n in map(np.bincount, draws)]
    assert found == pytest.approx(np.log2(3000) - np.mean(entropy))
    apart = np.stack([np.random.default_rng(0).permutation(3000), np.arange(3000)])
    assert ge.metrics.expected_loss(apart, np.arange(3000), "vi") == 0


# --- the ball ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.95, 0.5, 1.0, 0.1])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_the_ball_is_the_published_one(loss, missing, level):
    for seed in range(3):
        draws = chain(40, 25, seed, missing)
        estimate = ge.Median(loss=loss).fit(draws.T, wide=True).labels_
        ball = ge.evidence.credible_ball(draws, estimate, loss=loss, level=level)
        distances, radius, members, bounds, numbers = literal_ball(draws, estimate, loss, level)
        np.testing.assert_allclose(ball.distances, distances, atol=1e-12)
        assert ball.radius == pytest.approx(radius, abs=1e-12)
        assert ball.members.tolist() == members.tolist()
        for name, (positions, distance) in bounds.items():
            bound = getattr(ball, name)
            assert bound.draws.tolist() == positions
            assert bound.distance == pytest.approx(distance, abs=1e-12)
            assert bound.n_clusters.tolist() == numbers[positions].tolist()
        assert ball.expected_loss == pytest.approx(ge.metrics.expected_loss(draws, estimate, loss))


def test_a_level_is_a_whole_number_of_draws_despite_rounding():
    """.55 × 100 is more than 55 in floating point."""
    draws = np.array([[0] * i + [1] * (200 - i) for i in range(1, 101)])
    ball = ge.evidence.credible_ball(draws, draws[0], loss="binder", level=0.55)
    assert len(ball.members) == 55


def test_draws_are_rows_or_columns():
    draws = chain(30, 12, 1)
    estimate = draws[0].clip(0)
    names = [f"object {x}" for x in range(12)]
    frame = pd.DataFrame(draws, columns=names)
    shuffled = pd.Series(estimate, index=names).sample(frac=1, random_state=0)
    forms = [draws, draws.T, list(draws), draws.tolist(), ge.Ensemble(draws.T, wide=True)]
    expected = ge.evidence.credible_ball(draws, estimate).distances.tolist()
    assert len(set(expected)) > 10
    for form in forms:
        assert ge.evidence.credible_ball(form, estimate).distances.tolist() == expected
    names_of_draws = list(range(30))  # all columns, whether they look like clusterings or not
    ensemble = ge.Ensemble(frame.T, wide=True, names=names_of_draws)
    assert ge.evidence.credible_ball(ensemble, shuffled).distances.tolist() == expected
    assert ge.metrics.expected_loss(ensemble, shuffled, "vi") == pytest.approx(np.mean(expected))


# --- the number of clusters -------------------------------------------------------------------------------------------


def test_the_posterior_of_the_number_of_clusters():
    numbers = np.repeat([2, 3, 4, 7], [10, 60, 25, 5])
    draws = np.array([np.arange(20) % k for k in numbers])
    posterior = ge.evidence.credible_ball(draws, draws[0]).posterior
    assert (posterior.values.tolist(), posterior.shares.tolist()) == ([2, 3, 4, 7], [0.1, 0.6, 0.25, 0.05])
    assert (posterior.mean, posterior.mode) == (pytest.approx(numbers.mean()), 3)
    for level in (0.95, 0.9, 0.8, 0.5, 0.0, 1.0):
        low, high = posterior.interval(level)
        tail = (1 - level) / 2 + 1e-9
        assert (numbers < low).mean() <= tail < (numbers <= low).mean() or level == 0
        assert (numbers > high).mean() <= tail < (numbers >= high).mean() or level == 0
    assert posterior.interval(0.9) == (2, 4)
    assert posterior.interval(0.0) == (3, 3)


# --- words, and refusals ----------------------------------------------------------------------------------------------


def test_the_result_is_told():
    draws = [[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 2, 3]]
    ball = ge.evidence.credible_ball(draws, [0, 0, 1, 1], level=0.6)
    words = "The 60 % credible ball holds 3 of 5 draws, with 2 to 3 clusters, within a VI of 0.5 bits."
    assert ball.story == words
    assert repr(ball).splitlines()[:4] == [
        f"CredibleBall: {words}",
        "  center: 2 clusters, expected loss 0.538",
        "  upper: draw 0 at 0, 2 clusters",
        "  lower: draw 1 at 0.5, 3 clusters",
    ]
    told = json.loads(json.dumps(ball.to_dict()))
    assert told["upper"] == {"draws": ["0", "2"], "distance": 0.0, "n_clusters": [2, 2]}
    assert told["posterior"]["interval"] == [2, 3]
    assert (told["radius"], told["n_members"], told["n_draws"]) == (0.5, 3, 5)
    one = ge.evidence.credible_ball(draws, [0, 0, 1, 1], level=0.2)
    assert "holds 2 of 5 draws, with 2 clusters, within a VI of 0 bits" in one.story  # both draws at this distance


NAMED = pd.DataFrame(np.eye(6, 2, dtype=int), index=[*"abcdef"])


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"loss": "omari"}, ValueError, "loss must be one of 'vi', 'binder', not 'omari'"),
        ({"level": 95}, ValueError, "level must be above 0 and at most 1, but is 95"),
        ({"level": 0}, ValueError, "level must be above 0"),
        ({"labels": [0, 0, 1]}, ValueError, "labels must hold one value for each of the 6 row"),
        (
            {"draws": np.eye(5, 6, dtype=int), "labels": [0, 1, 1]},
            ValueError,
            "labels are of 3 objects, but draws of shape (5, 6)",
        ),
        (
            {"draws": NAMED, "labels": pd.Series(0, index=[*"uvwxyz"])},
            ValueError,
            "draws has an object 'a' that labels",
        ),
        ({"labels": 3}, TypeError, "labels must be a list, array or Series of labels"),
        ({"labels": [0, 0, 1, 1, -1, None]}, ValueError, "labels leave 2 object(s) without a cluster"),
    ],
)
def test_bad_input_is_refused(change, kind, words):
    given = {"draws": [[0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 0, 0]], "labels": [0, 0, 1, 1, 1, 1]} | change
    refused(lambda: ge.evidence.credible_ball(**given), kind, words)


def test_bad_losses_are_refused():
    draws, labels = [[0, 0, 1], [0, 1, 1]], [0, 0, 1]
    refused(lambda: ge.metrics.expected_loss(draws, labels, "mirkin"), ValueError, "loss must be one of 'binder'")
    refused(lambda: ge.metrics.expected_loss(draws, labels, "vi", a=3), ValueError, "a must be from 0 to 2")
    refused(lambda: ge.metrics.expected_loss(draws, labels, "omari", a=1.5), ValueError, "has no such weight")
