"""A partition with a small Mirkin distance to the clusterings, by local search (Li, Ogihara & Ma 2010).

The Mirkin distance counts the pairs of objects that are together in the partition or in a clustering, but not in both.
Its mean over the clusterings is, up to a constant, Σ_r [n_r² - (2/M) Σ_c n_rc²], with n_rc the number of objects of
cluster r in cluster c of the ensemble. Moving a row x of n objects from cluster r to cluster s lowers this mean if

    2 n [(n_s - n_r + n) - (2/M) Σ_m (n_s,x_m - n_r,x_m + n)] < 0

where a missing label adds nothing to the sum. (k-means on one-hot labels with equal weights would only repeat QMI.)
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuens.labels.rows import Rows, by_first_row, numbered
from gpuens.partition.base import Partition, Partitioner
from gpuens.partition.label_kmeans import RESTARTS_ON, Nearest, count_labels
from gpuens.partition.utilities import category_kmeans
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu


@dataclass(frozen=True, eq=False)
class MirkinSearch(Partitioner):
    """Local search from the result of k-means in label space; the parameters are those of `gpuens.PD`.

    For rows in pieces, the search uses a sample of objects. Then all rows of all pieces move at the same time,
    repeatedly, as long as this lowers the objective.
    """

    n_init: int = 5
    max_iter: int = 100
    random_state: Any = 0
    takes = ("labels",)
    learns_by_sums = True
    real_weights = True

    def __post_init__(self) -> None:
        checks.check_runs(self.n_init, self.max_iter)
        checks.make_generator(self.random_state)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        rng = checks.make_generator(self.random_state)
        if not rows.here:
            return self._in_pieces(rows, n_clusters, rng)
        start = category_kmeans(rows, n_clusters, rng, self.n_init)
        assert start.rule is not None
        # QMI leaves clusters empty if rows differ in missing labels only, because its distances ignore them
        shared, objects = count_labels(rows, start.rule, n_clusters)
        labels, shared, objects = start.labels.copy(), np.ascontiguousarray(shared), objects.astype(np.int64)
        # on the host, because rows move one after the other
        codes = np.ascontiguousarray(devices.to_host(rows.ensemble.codes).T)
        n_iter = cpu.descend_mirkin(codes, rows.offsets, rows.counts, labels, shared, objects, self.max_iter)
        in_use, first = np.unique(labels, return_index=True)
        order = in_use[np.argsort(first)]
        shared, objects = shared[:, order], objects[order]
        checks.warn_of_fewer(len(order), n_clusters)
        results = {
            "objective": _objective(shared, objects, rows.n_clusterings),
            "n_iter": abs(n_iter),
            "converged": n_iter > 0,
        }
        return Partition(by_first_row(labels), len(order), _least_change(shared, objects, rows.n_clusterings), results)

    def _in_pieces(self, rows: Rows, n_clusters: int, rng: np.random.Generator) -> Partition:
        sample = rows.draw_for(n_clusters, RESTARTS_ON, rng)
        with checks.recorded():  # no warnings about the sample; warnings about all rows follow below
            rule = replace(self, random_state=rng)(None, sample, n_clusters).rule
        assert isinstance(rule, Nearest)
        best_objective, converged, n_iter = np.inf, False, 0
        while n_iter < self.max_iter and not converged:
            n_iter += 1
            shared, objects = count_labels(rows, rule, len(rule.const))
            objective = _objective(shared, objects, rows.n_clusterings)
            converged = not objective < best_objective
            if not converged:
                best_objective, best_rule = objective, rule
                rule = _least_change(shared, objects, rows.n_clusterings)
        numbered_rule, labels = numbered(best_rule, len(best_rule.const), rows)
        checks.warn_of_fewer(numbered_rule.n_labels, n_clusters)
        return Partition.of_rule(numbered_rule, labels, objective=best_objective, n_iter=n_iter, converged=converged)


def _objective(shared: np.ndarray, objects: np.ndarray, n_clusterings: int) -> float:
    return float((objects.astype(np.float64) ** 2).sum() - 2 / n_clusterings * (shared.astype(np.float64) ** 2).sum())


def _least_change(shared: np.ndarray, objects: np.ndarray, n_clusterings: int) -> Nearest:
    """Return the rule that assigns a row unknown at fit to the cluster where it raises the objective least."""
    return Nearest(-2.0 * shared, n_clusterings * objects.astype(np.float64), np.arange(len(objects)))
