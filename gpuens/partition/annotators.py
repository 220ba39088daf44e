"""Dawid & Skene's model of annotators: a mixture whose components are the names that the annotators share.

An object has the true name c with probability π_c. Annotator m answers l with probability θ_m(l | c), independently of
the others. An E step computes the probabilities q_gc of the names of each row g, as `gpuens.partition.mixture` does.
With C_m(l, c) = Σ n_g q_gc over the rows g that m answered by l, an M step sets

    θ_m(l | c) ∝ C_m(l, c) + S μ_m(l | c),    π_c ∝ Σ_g n_g q_gc + 1,

where μ_m is a confusion matrix of one number, the skill a_m: a_m for l = c, and (1 - a_m) / (k - 1) for each other l.
The a_m are the shares of right answers, drawn by T answers towards the share of all annotators. So an annotator of few
answers is judged like the others, and one of many answers by these alone. The start are the shares of the votes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpuens.labels.answers import AnswerRows
from gpuens.labels.rows import Rows
from gpuens.partition.base import Partition, Partitioner, shares_of
from gpuens.partition.mixture import FLOOR, binary_places, memberships, sum_posteriors
from gpuens.partition.naming import name_shares, partition_of_names
from gpuens.partition.soft_memberships import sums_of_labels
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import logarithms

# S and T, chosen by experiment (bench/annotators.py)
ANSWERS_FOR_A_NAME = 4.0
ANSWERS_FOR_A_SKILL = 2.0
INTERVAL = 0.025, 0.975  # quantiles at the ends of the interval of a skill


@dataclass(frozen=True, eq=False)
class AnnotatorModel(Partitioner):
    """Dawid & Skene's model, for rows of one vocabulary; the parameters are those of `gpuens.EM`.

    Rows without an answer are a cluster of the partition.
    """

    max_iter: int = 100
    tol: float = 1e-4
    takes = ("labels",)
    gives_membership = True
    gives_names = True
    chooses_n_clusters = True

    def __post_init__(self) -> None:
        checks.check_runs(1, self.max_iter)
        checks.check_between(self.tol, "tol", 0.0, 1.0)

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        n_names = len(rows.ensemble.categories[0])
        checks.check_memory(
            40 * rows.n_clusterings * n_names**2,
            devices.memory_budget(rows.device),
            f"the confusion matrices of {rows.n_clusterings:,} annotators and {n_names:,} names",
            "merge rare names",
        )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int | None) -> Partition:
        names = rows.ensemble.categories[0]
        skills = _Skills.learn(rows, len(names), self.max_iter, self.tol)
        membership = skills.probabilities
        probabilities = membership(rows)
        row_codes = likeliest_names(probabilities, rows)
        unanswered = row_codes < 0
        first, second = _two_largest(probabilities)
        return partition_of_names(
            names,
            row_codes,
            {"n_unanswered": int(rows.counts[unanswered].sum()), **skills.results(rows)},
            membership=membership,
            certainty={
                "confidence": np.where(unanswered, 0.0, first),
                "margin": np.where(unanswered, 0.0, first - second),
            },
        )


def likeliest_names(probabilities: np.ndarray, rows: Rows) -> np.ndarray:
    """Return the code (G,) of the likeliest name of each row; -1 for rows without an answer."""
    n_answers = devices.to_host(rows.row_sums(np.ones(rows.n_clusters)))
    return np.where(n_answers == 0, checks.MISSING, probabilities.argmax(axis=1))


@dataclass(frozen=True)
class _Skills:
    """The parameters of the model after its last iteration."""

    shares: np.ndarray  # π (k,)
    confusions: np.ndarray  # θ (M, k, k): annotator, answer, true name
    answers: np.ndarray  # Σ_l C_m(l, c) (M, k): expected answers for objects of a true name
    log_likelihood: float
    n_iter: int
    converged: bool

    @classmethod
    def learn(cls, rows: Rows, n_names: int, max_iter: int, tol: float) -> "_Skills":
        """Return the parameters after iterations until log L changes by at most ``tol`` per object."""
        places, bit_places = binary_places(rows)
        members = _vote_sums(rows, n_names, places)
        skills: _Skills | None = None
        for n_iter in range(1, max_iter + 1):
            before, (shares, confusions, answers) = skills, _maximize(members * 2.0**-places, n_names)
            table, const = _logarithms(confusions, shares)
            sums = sum_posteriors(rows, table, const, places, bit_places)
            members, bits = sums[:-1], int(sums[-1, 0]) * 2.0**-bit_places
            skills = cls(shares, confusions, answers, bits * np.log(2), n_iter, False)
            if before and abs(skills.log_likelihood - before.log_likelihood) <= tol * rows.n_objects:
                return cls(shares, confusions, answers, skills.log_likelihood, n_iter, True)
        assert skills is not None
        return skills

    @property
    def probabilities(self) -> Callable[[Rows], np.ndarray]:
        """The function of rows that returns the probabilities (G, k) of their names, host."""
        return partial(memberships, *_logarithms(self.confusions, self.shares))

    def results(self, rows: Rows) -> dict[str, Any]:
        """Return the results for the estimator."""
        import pandas as pd
        from scipy.special import betaincinv

        right = np.diagonal(self.confusions, axis1=1, axis2=2)  # θ_m(c | c), (M, k)
        skill = right @ self.shares
        # a beta distribution of the mean and the variance of Σ_c π_c θ_m(c | c), whose parts are independent
        variance = (self.shares**2 * right * (1 - right) / (self.answers + ANSWERS_FOR_A_NAME + 1)).sum(axis=1)
        strength = np.maximum(skill * (1 - skill) / np.maximum(variance, FLOOR) - 1, FLOOR)
        low, high = betaincinv(
            np.maximum(skill * strength, FLOOR), np.maximum((1 - skill) * strength, FLOOR), np.array(INTERVAL)[:, None]
        )
        n_answers = rows.cluster_sizes().reshape(len(skill), -1).sum(axis=1)
        table = {"answers": n_answers, "skill": skill, "low": low, "high": high}
        return {
            "proportions": self.shares,
            "confusions": self.confusions.transpose(0, 2, 1),
            "skills": pd.DataFrame(table, index=pd.Index(rows.ensemble.names, name="annotator")),
            "log_likelihood": self.log_likelihood,
            "n_iter": self.n_iter,
            "converged": self.converged,
        }


def _maximize(members: np.ndarray, n_names: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return π (k,), θ (M, k, k) and the answers for each true name (M, k), from expected numbers of answers.

    ``members`` (M k + 1, k) are C_m(l, c), and in the last row the expected numbers of objects of each name.
    """
    counts = members[:-1].reshape(-1, n_names, n_names)
    right, answers = np.trace(counts, axis1=1, axis2=2), counts.sum(axis=(1, 2))
    skill_of_all = (right.sum() + 1) / (answers.sum() + 2)
    skill = (right + ANSWERS_FOR_A_SKILL * skill_of_all) / (answers + ANSWERS_FOR_A_SKILL)
    wrong = (1 - skill) / max(1, n_names - 1)
    expected = wrong[:, None, None] + (skill - wrong)[:, None, None] * np.eye(n_names)
    confusions = counts + ANSWERS_FOR_A_NAME * expected
    confusions /= confusions.sum(axis=1, keepdims=True)
    shares = (members[-1] + 1) / (members[-1] + 1).sum()
    return shares, confusions, counts.sum(axis=1)


def _logarithms(confusions: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log2 θ (M k, k) and log2 π (k,)."""
    table = confusions.reshape(-1, len(shares))
    return logarithms(np.maximum(table, FLOOR)), logarithms(np.maximum(shares, FLOOR))


def _vote_sums(rows: Rows, n_names: int, places: int) -> np.ndarray:
    """Return the sums (M k + 1, k), int64, of `sum_posteriors`, with shares of votes for probabilities."""
    shares = shares_of(rows.votes()) if isinstance(rows, AnswerRows) else name_shares(n_names, rows)
    units = np.rint(shares * 2.0**places).astype(np.int64) * rows.counts[:, None]
    of_labels = devices.to_host(sums_of_labels(rows, rows.xp.asarray(units)))
    return np.concatenate([of_labels, units.sum(axis=0)[None]])


def _two_largest(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest and the second largest value of each row (G, k); the second is 0 for k = 1."""
    if values.shape[1] == 1:
        return values[:, 0], np.zeros(len(values))
    top = np.partition(values, -2, axis=1)
    return top[:, -1], top[:, -2]
