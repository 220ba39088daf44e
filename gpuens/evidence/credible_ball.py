"""The credible ball of a partition among the draws of a Bayesian model, and the posterior of the number of clusters.

With a distance d of partitions, the credible ball around a partition c* at a level of 95 % is the smallest ball
{c: d(c*, c) ≤ ε} that holds at least 95 % of the draws. Three kinds of its draws, of which there may be several, show
how far it reaches:

    upper vertical bounds    the most distant of the draws with the fewest clusters
    lower vertical bounds    the most distant of the draws with the most clusters
    horizontal bounds        the most distant draws

Wade & Ghahramani, "Bayesian cluster analysis: point estimation and credible balls", Bayesian Analysis 13 (2018),
section 4.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpuens.contingency.losses import losses_to, read_draws
from gpuens.labels.ensemble import Ensemble
from gpuens.runtime import checks

# 1 - ARI is missing, because it violates the triangle inequality
DISTANCES = {"vi": "a VI of {:.3g} bits", "binder": "a Binder's loss of {:.3g}"}
ROUNDING = 1e-12  # relative difference below which two distances are equal


class BallBounds(NamedTuple):
    """The draws that bound a credible ball in one direction.

    Attributes
    ----------
    draws : ndarray (n,), int64
        Their positions, ascending.
    distance : float
        Their distance from the partition.
    n_clusters : ndarray (n,), int64
        Their numbers of clusters, equal for vertical bounds.
    """

    draws: np.ndarray
    distance: float
    n_clusters: np.ndarray


class NumberPosterior(NamedTuple):
    """The posterior distribution of the number of clusters.

    Attributes
    ----------
    values : ndarray (n,), int64
        The numbers that occur, ascending.
    shares : ndarray (n,), float64
        The share of the draws with each number.
    """

    values: np.ndarray
    shares: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.values @ self.shares)

    @property
    def mode(self) -> int:
        """The most frequent number, the smallest of several."""
        return int(self.values[self.shares.argmax()])

    def interval(self, level: float = 0.95) -> tuple[int, int]:
        """Return the central credible interval: at most (1 - level) / 2 of the draws are below it, or above it."""
        tail = (1 - checks.check_between(level, "level", 0.0, 1.0)) / 2 + ROUNDING
        low = int(np.searchsorted(np.cumsum(self.shares), tail, side="right"))
        high = len(self.values) - 1 - int(np.searchsorted(np.cumsum(self.shares[::-1]), tail, side="right"))
        return int(self.values[low]), int(self.values[high])


@dataclass(repr=False)
class CredibleBall:
    """The result of `credible_ball`.

    Attributes
    ----------
    loss : str
    level : float
    n_clusters : int
        The number of clusters of the partition in the centre.
    distances : ndarray (n_draws,), float64
        The distance of each draw from the partition, in bits for "vi", as a share of N² pairs for "binder".
    radius : float
        The smallest distance within which there are at least ``level`` of the draws.
    members : ndarray (n_members,), int64
        The positions of the draws in the ball, ascending.
    upper, lower, horizontal : BallBounds
        The most distant members: of those with the fewest clusters, of those with the most clusters, and of all.
    posterior : NumberPosterior
        The distribution of the number of clusters of all draws.
    names : list
        The names of the draws.
    """

    loss: str
    level: float
    n_clusters: int
    distances: np.ndarray
    radius: float
    members: np.ndarray
    upper: BallBounds
    lower: BallBounds
    horizontal: BallBounds
    posterior: NumberPosterior
    names: list[Any]

    @property
    def expected_loss(self) -> float:
        """The mean distance of the draws, as by `gpuens.metrics.expected_loss`."""
        return float(self.distances.mean())

    @property
    def _bounds(self) -> dict[str, BallBounds]:
        return {"upper": self.upper, "lower": self.lower, "horizontal": self.horizontal}

    @property
    def story(self) -> str:
        """The result as a sentence."""
        low, high = int(self.upper.n_clusters[0]), int(self.lower.n_clusters[0])
        numbers = f"{low:,} to {high:,} clusters" if low < high else checks.counted(high, "cluster")
        return (
            f"The {100 * self.level:.3g} % credible ball holds {len(self.members):,} of {len(self.distances):,} draws, "
            f"with {numbers}, within {DISTANCES[self.loss].format(self.radius)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values, without the distances of the draws."""
        low, high = self.posterior.interval(self.level)
        bounds = {
            name: {
                "draws": [str(self.names[m]) for m in bound.draws],
                "distance": bound.distance,
                "n_clusters": bound.n_clusters.tolist(),
            }
            for name, bound in self._bounds.items()
        }
        posterior = {
            "values": self.posterior.values.tolist(),
            "shares": self.posterior.shares.tolist(),
            "mean": self.posterior.mean,
            "mode": self.posterior.mode,
            "interval": [low, high],
        }
        return {
            "story": self.story,
            "loss": self.loss,
            "level": self.level,
            "n_clusters": self.n_clusters,
            "expected_loss": self.expected_loss,
            "radius": self.radius,
            "n_draws": len(self.distances),
            "n_members": len(self.members),
            **bounds,
            "posterior": posterior,
        }

    def __repr__(self) -> str:
        low, high = self.posterior.interval(self.level)
        facts = {
            name: f"draw {self.names[bound.draws[0]]} at {bound.distance:.3g}, "
            f"{checks.counted(int(bound.n_clusters[0]), 'cluster')}"
            for name, bound in self._bounds.items()
        }
        number = f"{self.posterior.mode} most often, {low} to {high} in {100 * self.level:.3g} % of the draws"
        center = f"{checks.counted(self.n_clusters, 'cluster')}, expected loss {self.expected_loss:.3g}"
        return checks.summary(self, self.story, center=center, **facts, k=number)


def credible_ball(draws: Any, labels: Any, *, loss: str = "vi", level: float = 0.95) -> CredibleBall:
    """Return the credible ball around a partition, such as the point estimate of `gpuens.Median`, among draws.

    The bounds are those of Wade & Ghahramani, Bayesian Analysis 13 (2018), section 4, as in ``credibleball`` of R's
    mcclust.ext; all draws at the distance ``radius`` are members. Equal draws are compared once, in time proportional
    to the number of labels.

    Parameters
    ----------
    draws : anything that `gpuens.Ensemble` takes, or an array or DataFrame (n_draws, n_objects)
        The length of ``labels`` tells whether rows or columns are draws; a square array has draws in columns. An object
        without a label is alone in that draw.
    labels : array (n_objects,)
        The partition in the centre, with a label for every object.
    loss : {"vi", "binder"}
        The distance: the variation of information in bits, or the share of the N² pairs that are together in only one
        of the two partitions.
    level : float in (0, 1]
        The least share of the draws in the ball.

    Raises
    ------
    ValueError, TypeError
        For draws that Ensemble refuses, labels of another length or with missing ones, and another loss or level.

    Examples
    --------
    >>> import gpuens as ge
    >>> draws = [[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 2, 3]]
    >>> ball = ge.evidence.credible_ball(draws, [0, 0, 1, 1], level=0.8)
    >>> ball.radius, ball.members.tolist()
    (1.0, [0, 1, 2, 4])
    >>> ball.upper.draws.tolist(), ball.lower.draws.tolist(), ball.horizontal.draws.tolist()
    ([0, 2], [4], [4])
    >>> ball.posterior.values.tolist(), ball.posterior.mean, ball.posterior.interval(0.5)
    ([2, 3, 4], 2.6, (2, 3))
    """
    checks.check_choice(loss, "loss", DISTANCES)
    share = checks.check_real(level, "level", above=0.0, at_most=1.0)
    ensemble, codes = read_draws(draws, labels)
    distances, n_clusters = losses_to(ensemble, codes, loss), _count_clusters(ensemble)
    n_inside = int(np.ceil(share * len(distances) * (1 - ROUNDING)))
    radius = float(np.partition(distances, n_inside - 1)[n_inside - 1])
    members = np.flatnonzero(distances <= radius * (1 + ROUNDING))

    def bounds(candidates: np.ndarray) -> BallBounds:
        farthest = float(distances[candidates].max())
        at_bound = candidates[distances[candidates] >= farthest * (1 - ROUNDING)]
        return BallBounds(at_bound, farthest, n_clusters[at_bound])

    numbers = n_clusters[members]
    upper, lower = (bounds(members[numbers == k]) for k in (numbers.min(), numbers.max()))
    values, counts = np.unique(n_clusters, return_counts=True)
    return CredibleBall(
        loss=loss,
        level=share,
        n_clusters=int(codes.max()) + 1,
        distances=distances,
        radius=radius,
        members=members,
        upper=upper,
        lower=lower,
        horizontal=bounds(members),
        posterior=NumberPosterior(values, counts / counts.sum()),
        names=list(ensemble.names),
    )


def _count_clusters(ensemble: Ensemble) -> np.ndarray:
    """Return the numbers of clusters (M,) of the clusterings, with a cluster for each object without a label."""
    labelled, used = (
        np.add.reduceat(values.astype(np.int64), ensemble.offsets[:-1])
        for values in (ensemble.sizes, ensemble.sizes > 0)
    )
    counts: np.ndarray = used + ensemble.n_objects - labelled
    return counts
