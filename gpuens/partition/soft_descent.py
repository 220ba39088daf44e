"""Descent of soft correspondence from a start until memberships no longer change, and the choice of starts.

The equations are in `gpuens.partition.soft_correspondence`.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from gpuens.contingency import intersections
from gpuens.labels.incidence import cluster_sums
from gpuens.labels.rows import Rows
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.partition.label_kmeans import centred_indicators, label_kmeans
from gpuens.partition.soft_memberships import (
    BLOCK_ROWS,
    label_correspondences,
    memberships_of,
    soft_correspondences,
    some_rows,
)
from gpuens.runtime import device as devices
from gpuens.runtime.native import cpu

STEPS = 50  # largest number of steps of eq 10 in an iteration; a step costs O(N_c k) and reads no object
LOOK_UPS = 2  # look-ups of a label when all rows are read: one to compute M and one to add it up
WATCHED = 256  # number of pieces into which rows are divided to look for a membership that still changes
FINER = 0.1  # tolerance of the steps, divided by the tolerance of the iterations
STARTS_ON = 20_000  # objects drawn for the k-means of a start if there are more rows
BLURRED = 0.1  # share of random numbers in the first correspondences, because an entry of 0 would stay 0
VANISHED = 1e-100  # a smaller correspondence becomes 0, because arithmetic with subnormal numbers is slow


class Problem:
    """The rows and the terms of eq 3 on a device; a table (N_c, k) has the correspondences of all clusterings."""

    def __init__(
        self, ensemble: SoftEnsemble, weights: np.ndarray, n_clusters: int, alpha: float, beta: float, device: str
    ) -> None:
        self.ensemble, self.n_clusters, self.device = ensemble, n_clusters, device
        self.xp = devices.namespace(device)
        self.weights = weights
        self.counts = self.xp.asarray(weights, dtype=np.float64)[:, None]
        self.n_objects = int(weights.sum())
        self.bounds = np.append(ensemble.starts, ensemble.n_clusters)
        self.sizes = np.ones(ensemble.n_clusters)  # number of labelled objects in each cluster
        n_labels = len(ensemble.offsets) - 1
        if n_labels:
            codes = ensemble.codes_on(device)
            objects = devices.to_host(cluster_sums(codes, ensemble.offsets, weights, device=device))
            self.sizes[: len(objects)] = objects
        self._compute_grams()
        self.k_h = np.add.reduceat(self.sizes > 0, ensemble.starts, dtype=np.int64)
        # a clustering without any labelled row keeps all its clusters, with all objects missing
        self.in_use = (self.sizes > 0) | np.repeat(self.k_h == 0, np.diff(self.bounds))
        self.k_h = np.where(self.k_h == 0, np.diff(self.bounds), self.k_h)
        labelled = np.add.reduceat(self.sizes, ensemble.starts)
        labelled[n_labels:] = self.n_objects
        missing = self.n_objects - labelled
        self.shared = missing / self.k_h**2  # the part of every entry of A_hᵀ A_h that is due to missing labels
        mass = self.sizes + np.repeat(missing / self.k_h, np.diff(self.bounds))  # column sums of A_h
        self.mass = np.where(self.in_use, mass, 1.0)
        self.terms = cpu.SoftTerms(
            self.bounds, self.in_use, self.sizes, self.shared, self.grams, self.gram_starts,
            alpha * self.n_objects, beta * self.n_objects,
        )  # fmt: skip
        self.blocks = self._blocks()
        self.watched = deque(_slices(len(weights), max(BLOCK_ROWS, len(weights) // WATCHED)))
        self.pairs = self._count_pairs() if self._uses_pairs() else None

    def _blocks(self) -> list[slice]:
        """Return slices of rows to process at a time; with soft clusterings, multiples of `BLOCK_ROWS`."""
        n_rows, k, n_soft = self.ensemble.n_objects, self.n_clusters, int(self.ensemble.soft_offsets[-1])
        step = devices.scratch(self.device) // (32 * k + 8 * k * n_soft // BLOCK_ROWS)
        if self.device == "cpu":  # rows that fit a cache are faster, unless the sums (N_c, k) are larger than the rows
            step = min(step, max(devices.n_threads() * BLOCK_ROWS, self.ensemble.n_clusters))
        step = max(BLOCK_ROWS, step // BLOCK_ROWS * BLOCK_ROWS) if n_soft or step > BLOCK_ROWS else max(256, step)
        return _slices(n_rows, step)

    def _compute_grams(self) -> None:
        """Compute A_hᵀ A_h (k_h, k_h) of all soft clusterings, in one array, and the masses of their clusters."""
        ensemble, n_labels = self.ensemble, len(self.ensemble.offsets) - 1
        self.gram_starts = np.full(ensemble.n_clusterings, -1, dtype=np.int64)
        grams = [np.empty(0)]
        if ensemble.soft_offsets[-1]:
            soft, weights = devices.to_host(ensemble.soft_on(self.device)), self.weights[:, None]
            reached = 0
            for m, (first, last) in enumerate(pairwise(ensemble.soft_offsets.tolist())):
                columns = np.ascontiguousarray(soft[:, first:last])
                gram = columns.T @ (weights * columns)
                gram = (gram + gram.T) / 2
                self.gram_starts[n_labels + m] = reached
                self.sizes[self.bounds[n_labels + m] : self.bounds[n_labels + m + 1]] = (weights * columns).sum(axis=0)
                reached += gram.size
                grams.append(gram.ravel())
        self.grams = np.concatenate(grams)

    def memberships(self, table: np.ndarray, piece: slice) -> Any:
        return memberships_of(self.ensemble, table, piece, self.device)

    def _uses_pairs(self) -> bool:
        """Return whether products with the table of all pairs of clusters cost less than reading all rows."""
        n_rows, n_labels = len(self.weights), len(self.ensemble.offsets) - 1
        if n_labels < self.ensemble.n_clusterings:
            return False  # soft clusterings
        return (self.ensemble.n_clusters + n_labels) ** 2 <= LOOK_UPS * n_rows * n_labels

    def _count_pairs(self) -> np.ndarray:
        """Return AᵀA in numbers of objects, float64; missing labels of each clustering are a further cluster."""
        rows = Rows.of(self.ensemble.labels, self.weights, self.device)
        first, shared = self.ensemble.starts, intersections(rows, layout="dense", device=self.device)
        labelled = np.add.reduceat(shared, first, axis=1)  # labelled objects of each cluster in each clustering
        if (labelled == shared.diagonal()[:, None]).all():
            return shared.astype(np.float64)
        missing = shared.diagonal()[:, None] - labelled
        in_both = np.add.reduceat(labelled, first, axis=0)
        in_one = in_both.diagonal()
        neither = self.n_objects - in_one[:, None] - in_one + in_both
        return np.block([[shared, missing], [missing.T, neither]]).astype(np.float64)

    def products_of(self, table: np.ndarray) -> np.ndarray:
        """Return A_hᵀ M of all clusterings (N_c, k), host, for M = A S / r."""
        if self.pairs is None:
            return self.products(lambda piece: self.memberships(table, piece), float(table.max()))
        sizes = np.diff(self.bounds)
        means = np.add.reduceat(table, self.bounds[:-1], axis=0) / sizes[:, None]
        products = _multiply_pairs(self.pairs, np.concatenate([table, means])[: len(self.pairs)])
        products /= self.ensemble.n_clusterings
        of_labels, of_missing = np.split(products, [len(table)])
        return of_labels + np.repeat(of_missing / self.k_h[:, None], sizes, axis=0) if len(of_missing) else of_labels

    def settled(self, change: np.ndarray, tol: float) -> bool:
        """Return whether this change of the table changes no membership by more than ``tol``.

        Pieces of rows are read until a membership changes by more than ``tol``. The first piece read is the piece in
        which the previous call found such a membership.
        """
        for _ in range(len(self.watched)):
            moved = self.memberships(change, self.watched[0])
            if float(np.abs(moved, out=moved).max()) > tol:
                return False
            self.watched.rotate(-1)
        return True

    def products(self, membership_of: Callable[[slice], Any], largest: float) -> np.ndarray:
        """Return A_hᵀ M of all clusterings (N_c, k), host; ``membership_of`` returns M of a slice of rows.

        ``largest`` is an upper bound of the entries of M.
        """
        ensemble, device, k = self.ensemble, self.device, self.n_clusters
        codes, offsets = ensemble.codes_on(device), ensemble.offsets
        of_labels = np.zeros((int(offsets[-1]), k), dtype=np.int64)
        of_missing = np.zeros((len(offsets) - 1, k), dtype=np.int64)
        soft = np.zeros((int(ensemble.soft_offsets[-1]), k))
        unit = 2.0 ** (math.frexp(largest * self.n_objects)[1] - 62)
        for piece in self.blocks:
            values = membership_of(piece) * self.counts[piece]
            if len(soft):
                sums = soft_correspondences(ensemble.soft_on(device)[piece], values, BLOCK_ROWS, device=device)
                for of_block in devices.to_host(sums):
                    soft += of_block
            if len(of_missing):
                values /= unit
                units = self.xp.rint(values, out=values).astype(np.int64)
                sums_of_piece = label_correspondences(some_rows(codes, piece), offsets, units, device=device)
                for total, of_block in zip((of_labels, of_missing), sums_of_piece, strict=True):
                    total += devices.to_host(of_block)
        shared = of_missing * unit / self.k_h[: len(of_missing), None]
        return np.concatenate([of_labels * unit + np.repeat(shared, np.diff(offsets), axis=0), soft])

    def filled(self, table: np.ndarray, unless: np.ndarray) -> np.ndarray:
        """Return the table in which each cluster outside the mask ``unless`` has the mean row of its clustering."""
        if not unless.all():
            sums = np.add.reduceat(np.where(self.in_use[:, None], table, 0.0), self.bounds[:-1], axis=0)
            means = np.repeat(sums / self.k_h[:, None], np.diff(self.bounds), axis=0)
            table = np.where(unless[:, None], table, means)
        return table

    def stepped(self, table: np.ndarray, products: np.ndarray, tol: float, n_steps: int) -> np.ndarray:
        """Return the table after steps of eq 10 on all S_h with a fixed M."""
        stepped = table.copy()
        cpu.step_correspondences(self.terms, products, stepped, cpu.Stepping(tol, n_steps, VANISHED))
        return self.filled(stepped, self.in_use)

    def objective(self, table: np.ndarray, products: np.ndarray) -> float:
        """Return eq 3 for M = A S / r, where Σ_h |M - A_h S_h|² = Σ_h <S_h, A_hᵀ A_h S_h> - <S_h, A_hᵀ M>."""
        parts = np.empty(self.ensemble.n_clusterings)
        cpu.soft_objectives(self.terms, products, table, parts)
        return math.fsum(parts)


def _slices(n: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def descend(
    problem: Problem, table: np.ndarray, max_iter: int, tol: float, n_steps: int
) -> tuple[np.ndarray, list[float], bool]:
    """Run iterations from ``table``; return the correspondences, f after each iteration, and whether they converged."""
    objective: list[float] = []
    products = problem.products_of(table)
    for _ in range(max_iter):
        before, table = table, problem.stepped(table, products, FINER * tol, n_steps)
        products = problem.products_of(table)
        objective.append(problem.objective(table, products))
        if problem.settled(table - before, tol):
            return table, objective, True
    return table, objective, False


# --- starts -----------------------------------------------------------------------------------------------------------


def first_tables(
    problem: Problem, init: str | Sequence[np.ndarray], n_init: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the table of each start, with positive entries."""
    ensemble, k = problem.ensemble, problem.n_clusters
    if not isinstance(init, str):
        yield problem.filled(ensemble.joined(init), problem.in_use)
        return
    for _ in range(n_init):
        by_lot = rng.dirichlet(np.ones(k), size=ensemble.n_clusters)
        if init != "random":
            members_of = partial(_to_memberships, problem.xp, _first_labels(problem, init, rng), k)
            shares = problem.products(members_of, 1.0) / problem.mass[:, None]
            by_lot = (1 - BLURRED) * shares + BLURRED * by_lot
        yield problem.filled(by_lot, problem.in_use)


def _to_memberships(xp: Any, labels: Any, k: int, piece: slice) -> Any:
    """Return labels of the rows ``piece`` as memberships (rows, k), where label -1 has the uniform row 1 / k."""
    piece_labels = labels[piece, None]
    return xp.where(piece_labels < 0, 1.0 / k, (piece_labels == xp.arange(k)).astype(np.float64))


def _first_labels(problem: Problem, init: str, rng: np.random.Generator) -> Any:
    """Return the cluster of each row at the start, on the device; -1 if it is unknown."""
    ensemble, xp, k = problem.ensemble, problem.xp, problem.n_clusters
    if init == "kmeans":
        rows = Rows.of(ensemble, problem.weights, problem.device).hardened()
        sample = rows if rows.n_rows <= STARTS_ON else rows.draw(STARTS_ON, rng)
        partition = label_kmeans(sample, centred_indicators(problem.bounds), k, n_init=1, rng=rng)
        assert partition.rule is not None
        return xp.asarray(partition.labels if sample is rows else partition.rule(rows))
    codes, sizes = ensemble.hardened_on(problem.device), np.diff(problem.bounds)
    m = int(rng.integers(ensemble.n_clusterings))
    lots = np.append(rng.permutation(max(k, sizes[m]))[: sizes[m]] % k, -1)
    return xp.asarray(lots)[np.minimum(codes[:, m].astype(np.int64), sizes[m])]


# --- products with the table of all pairs of clusters -----------------------------------------------------------------


def _multiply_pairs(pairs: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the product of ``pairs`` (n, n) and ``table`` (n, k), with terms added in the order of the clusters."""
    products = np.zeros(table.shape)
    cpu.add_products(pairs, table, products)
    return products
