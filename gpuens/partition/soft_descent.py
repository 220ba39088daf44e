"""Descent of soft correspondence from one start to where memberships no longer change, and its starts.

The equations are in `gpuens.partition.soft_correspondence`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.ensemble import Ensemble
from gpuens.incidence import cluster_sums
from gpuens.partition.label_kmeans import centred_indicators, label_kmeans
from gpuens.partition.soft_memberships import (
    BLOCK_ROWS,
    label_correspondences,
    memberships_of,
    soft_correspondences,
    some_rows,
)
from gpuens.rows import Rows
from gpuens.soft_ensemble import SoftEnsemble

STEPS = 50  # the most steps of eq 10 in an iteration; they cost O(N_c k) and visit no object
FINER = 0.1  # tolerance of the steps relative to that of the iterations
BLURRED = 0.1  # random share of the correspondences at the start, because an entry of 0 stays 0
VANISHED = 1e-100  # smaller correspondences become 0, because arithmetic with subnormal numbers is slow


class Problem:
    """The rows on a device and the terms of eq 3; tables (N_c, k) are correspondences in joined order."""

    def __init__(
        self, ensemble: SoftEnsemble, weights: np.ndarray, n_clusters: int, alpha: float, beta: float, device: str
    ) -> None:
        self.ensemble, self.n_clusters, self.device = ensemble, n_clusters, device
        self.xp = devices.namespace(device)
        self.weights = weights
        self.counts = self.xp.asarray(weights, dtype=np.float64)[:, None]
        self.n_objects = int(weights.sum())
        self.bounds = np.append(ensemble.starts, ensemble.n_clusters)
        self.held = np.ones(ensemble.n_clusters)  # objects in each cluster, without missing ones
        n_labels = len(ensemble.offsets) - 1
        if n_labels:
            codes = ensemble.codes_on(device)
            objects = devices.to_host(cluster_sums(codes, ensemble.offsets, weights, device=device))
            self.held[: len(objects)] = objects
        self._gram()
        self.k_h = np.add.reduceat(self.held > 0, ensemble.starts, dtype=np.int64)
        # a clustering without any labelled row keeps all its clusters, with all objects missing
        self.there = (self.held > 0) | np.repeat(self.k_h == 0, np.diff(self.bounds))
        self.k_h = np.where(self.k_h == 0, np.diff(self.bounds), self.k_h)
        labelled = np.add.reduceat(self.held, ensemble.starts)
        labelled[n_labels:] = self.n_objects
        missing = self.n_objects - labelled
        self.shared = missing / self.k_h**2  # added by missing labels to every entry of A_hᵀ A_h
        mass = self.held + np.repeat(missing / self.k_h, np.diff(self.bounds))  # Σ A_h over the rows
        self.mass = np.where(self.there, mass, 1.0)
        self.alphas, self.betas = (factor * self.n_objects / self.k_h for factor in (alpha, beta))
        self.blocks = self._blocks()
        n_rows, held_at_once = len(weights), 4  # memberships of two iterations, times the counts, and as integers
        self.has_room = 8 * held_at_once * n_rows * n_clusters <= devices.memory_budget(device)

    def _blocks(self) -> list[slice]:
        """Return slices of rows to process at once; with soft clusterings multiples of `BLOCK_ROWS`."""
        n_rows, k, n_soft = self.ensemble.n_objects, self.n_clusters, int(self.ensemble.soft_offsets[-1])
        step = devices.scratch(self.device) // (32 * k + 8 * k * n_soft // BLOCK_ROWS)
        step = max(BLOCK_ROWS, step // BLOCK_ROWS * BLOCK_ROWS) if n_soft or step > BLOCK_ROWS else max(256, step)
        return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

    def _gram(self) -> None:
        """Compute A_hᵀ A_h (k_h, k_h) of the soft clusterings, joined in one array, and their clusters' masses."""
        ensemble, n_labels = self.ensemble, len(self.ensemble.offsets) - 1
        self.gram_starts = np.full(ensemble.n_clusterings, -1, dtype=np.int64)
        grams = [np.empty(0)]
        if ensemble.soft_offsets[-1]:
            soft, weights = devices.to_host(ensemble.soft_on(self.device)), self.weights[:, None]
            reached = 0
            for m, (first, last) in enumerate(pairwise(ensemble.soft_offsets.tolist())):
                own = np.ascontiguousarray(soft[:, first:last])
                gram = own.T @ (weights * own)
                gram = (gram + gram.T) / 2
                self.gram_starts[n_labels + m] = reached
                self.held[self.bounds[n_labels + m] : self.bounds[n_labels + m + 1]] = (weights * own).sum(axis=0)
                reached += gram.size
                grams.append(gram.ravel())
        self.grams = np.concatenate(grams)

    def memberships(self, table: np.ndarray, some: slice) -> Any:
        return memberships_of(self.ensemble, table, some, self.device)

    def products(self, membership_of: Callable[[slice], Any], largest: float) -> np.ndarray:
        """Return A_hᵀ M of all clusterings (N_c, k), host; ``membership_of`` returns M of a slice of rows.

        ``largest`` is an upper bound of the entries of M.
        """
        ensemble, device, k = self.ensemble, self.device, self.n_clusters
        codes, offsets = ensemble.codes_on(device), ensemble.offsets
        known = np.zeros((int(offsets[-1]), k), dtype=np.int64)
        unknown = np.zeros((len(offsets) - 1, k), dtype=np.int64)
        soft = np.zeros((int(ensemble.soft_offsets[-1]), k))
        unit = 2.0 ** (math.frexp(largest * self.n_objects)[1] - 62)
        for some in self.blocks:
            values = membership_of(some) * self.counts[some]
            if len(soft):
                sums = soft_correspondences(ensemble.soft_on(device)[some], values, BLOCK_ROWS, device=device)
                for of_block in devices.to_host(sums):
                    soft += of_block
            if len(unknown):
                values /= unit
                whole = self.xp.rint(values, out=values).astype(np.int64)
                found = label_correspondences(some_rows(codes, some), offsets, whole, device=device)
                for total, of_block in zip((known, unknown), found, strict=True):
                    total += devices.to_host(of_block)
        shared = unknown * unit / self.k_h[: len(unknown), None]
        return np.concatenate([known * unit + np.repeat(shared, np.diff(offsets), axis=0), soft])

    def filled(self, table: np.ndarray, unless: np.ndarray) -> np.ndarray:
        """Return the table with the mean row of its clustering for each cluster not in the mask ``unless``."""
        if not unless.all():
            sums = np.add.reduceat(np.where(self.there[:, None], table, 0.0), self.bounds[:-1], axis=0)
            means = np.repeat(sums / self.k_h[:, None], np.diff(self.bounds), axis=0)
            table = np.where(unless[:, None], table, means)
        return table

    def stepped(self, table: np.ndarray, products: np.ndarray, tol: float, n_steps: int) -> np.ndarray:
        """Return the table after steps of eq 10 on all S_h with fixed M."""
        then = table.copy()

        def work(start: int, stop: int) -> None:
            _steps(
                start, stop, self.bounds, self.there, self.k_h, self.held, self.shared, self.grams, self.gram_starts,
                self.alphas, self.betas, products, then, tol, n_steps, VANISHED,
            )  # fmt: skip

        devices.over_ranges(work, self.ensemble.n_clusterings)
        return self.filled(then, self.there)

    def objective(self, table: np.ndarray, products: np.ndarray) -> float:
        """Return eq 3 for M = A S / r, where Σ_h |M - A_h S_h|² = Σ_h <S_h, A_hᵀ A_h S_h> - <S_h, A_hᵀ M>."""
        parts = np.empty(self.ensemble.n_clusterings)

        def work(start: int, stop: int) -> None:
            _objectives(
                start, stop, self.bounds, self.there, self.k_h, self.held, self.shared, self.grams, self.gram_starts,
                self.alphas, self.betas, products, table, parts,
            )  # fmt: skip

        devices.over_ranges(work, len(parts))
        return math.fsum(parts)


def descend(
    problem: Problem, table: np.ndarray, max_iter: int, tol: float, n_steps: int
) -> tuple[np.ndarray, list[float], bool]:
    """Return the correspondences after iterations from given ones, f after each, and whether they converged."""
    objective: list[float] = []
    before = _Pass(problem, table)
    products, _ = before.products()
    for _ in range(max_iter):
        table = problem.stepped(table, products, FINER * tol, n_steps)
        now = _Pass(problem, table)
        products, moved = now.products(before)
        objective.append(problem.objective(table, products))
        if moved <= tol:
            return table, objective, True
        before = now
    return table, objective, False


class _Pass:
    """Memberships from one table, in pieces of rows, kept for the next pass if they fit in memory."""

    def __init__(self, problem: Problem, table: np.ndarray) -> None:
        self.problem, self.table = problem, table
        self.held: dict[int, Any] = {}

    def products(self, before: "_Pass | None" = None) -> tuple[np.ndarray, float]:
        """Return A_hᵀ M, and the largest change of a membership since the pass ``before``, whose memory is freed."""
        moved = 0.0

        def membership_of(some: slice) -> Any:
            nonlocal moved
            found = self.problem.memberships(self.table, some)
            if before is not None:
                change = before.held.pop(some.start, None)
                change = before.problem.memberships(before.table, some) if change is None else change
                change -= found
                moved = max(moved, float(np.abs(change, out=change).max()))
            if self.problem.has_room:
                self.held[some.start] = found
            return found

        return self.problem.products(membership_of, float(self.table.max())), moved


# --- starts -----------------------------------------------------------------------------------------------------------


def first_tables(
    problem: Problem, init: str | Sequence[np.ndarray], n_init: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the table of each start, with positive entries."""
    ensemble, k = problem.ensemble, problem.n_clusters
    if not isinstance(init, str):
        yield problem.filled(ensemble.joined(init), problem.there)
        return
    for _ in range(n_init):
        by_lot = rng.dirichlet(np.ones(k), size=ensemble.n_clusters)
        if init != "random":
            members_of = partial(_members, problem.xp, _first_labels(problem, init, rng), k)
            shares = problem.products(members_of, 1.0) / problem.mass[:, None]
            by_lot = (1 - BLURRED) * shares + BLURRED * by_lot
        yield problem.filled(by_lot, problem.there)


def _members(xp: Any, labels: Any, k: int, some: slice) -> Any:
    """Return labels as memberships (rows, k), uniform for -1."""
    own = labels[some, None]
    return xp.where(own < 0, 1.0 / k, (own == xp.arange(k)).astype(np.float64))


def _first_labels(problem: Problem, init: str, rng: np.random.Generator) -> Any:
    """Return the cluster of each row at the start, on the device; -1 if it is unknown."""
    ensemble, xp, k = problem.ensemble, problem.xp, problem.n_clusters
    codes, sizes = ensemble.hardened_on(problem.device), np.diff(problem.bounds)
    if init == "kmeans":
        names = range(len(sizes))
        hardened = Ensemble.of_codes(codes, [np.arange(size) for size in sizes], list(names))
        rows = Rows.of(hardened, problem.weights, problem.device)
        return xp.asarray(label_kmeans(rows, centred_indicators(problem.bounds), k, n_init=1, rng=rng).labels)
    m = int(rng.integers(ensemble.n_clusterings))
    lots = np.append(rng.permutation(max(k, sizes[m]))[: sizes[m]] % k, -1)
    return xp.asarray(lots)[np.minimum(codes[:, m].astype(np.int64), sizes[m])]


# --- steps of eq 10, and eq 3, one clustering after the other ---------------------------------------------------------


@njit(cache=True, nogil=True)
def _gram_times(h, first, table, held, shared, grams, gram_starts, column_sums, result):
    """Write A_hᵀ A_h S_h into ``result`` (k_h, k)."""
    k_h, k = result.shape
    for c in range(k_h):
        if gram_starts[h] < 0:
            for d in range(k):
                result[c, d] = held[first + c] * table[first + c, d] + shared[h] * column_sums[d]
        else:
            for d in range(k):
                result[c, d] = 0.0
            for i in range(k_h):
                entry = grams[gram_starts[h] + c * k_h + i]
                for d in range(k):
                    result[c, d] += entry * table[first + i, d]


@njit(cache=True, nogil=True)
def _column_sums(first, last, table, there, sums):
    for d in range(len(sums)):
        sums[d] = 0.0
    for c in range(first, last):
        if there[c]:
            for d in range(len(sums)):
                sums[d] += table[c, d]


@njit(cache=True, nogil=True)
def _steps(
    start, stop, bounds, there, k_h, held, shared, grams, gram_starts, alphas, betas, products, table, tol, n_steps,
    vanished,
):  # fmt: skip
    k = table.shape[1]
    column_sums = np.empty(k)
    for h in range(start, stop):
        first, last = bounds[h], bounds[h + 1]
        alpha, penalty = alphas[h], betas[h] * k
        gram_times = np.empty((last - first, k))
        for _ in range(n_steps):
            _column_sums(first, last, table, there, column_sums)
            _gram_times(h, first, table, held, shared, grams, gram_starts, column_sums, gram_times)
            moved = 0.0
            for c in range(first, last):
                if not there[c]:
                    continue
                row_sum = 0.0
                for d in range(k):
                    row_sum += table[c, d]
                for d in range(k):
                    before = table[c, d]
                    if before == 0.0:
                        continue
                    below = gram_times[c - first, d] - alpha * before
                    below += alpha / k_h[h] * column_sums[d]
                    below += penalty * row_sum
                    after = before * (products[c, d] + penalty) / below
                    if after < vanished:
                        after = 0.0
                    moved = max(moved, abs(after - before))
                    table[c, d] = after
            if moved <= tol:
                break


@njit(cache=True, nogil=True)
def _objectives(
    start, stop, bounds, there, k_h, held, shared, grams, gram_starts, alphas, betas, products, table, parts
):
    k = table.shape[1]
    column_sums = np.empty(k)
    for h in range(start, stop):
        first, last = bounds[h], bounds[h + 1]
        gram_times = np.empty((last - first, k))
        _column_sums(first, last, table, there, column_sums)
        _gram_times(h, first, table, held, shared, grams, gram_starts, column_sums, gram_times)
        apart, sparse, off = 0.0, 0.0, 0.0
        for c in range(first, last):
            if not there[c]:
                continue
            row_sum = 0.0
            for d in range(k):
                entry = table[c, d]
                row_sum += entry
                apart += entry * (gram_times[c - first, d] - products[c, d])
                sparse += (entry - column_sums[d] / k_h[h]) ** 2
            off += (row_sum - 1.0) ** 2
        parts[h] = apart - alphas[h] * sparse + betas[h] * k * off
