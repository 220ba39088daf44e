"""A mixture of multinomials over label rows, fitted by EM (Topchy, Jain & Punch, SDM 2004).

Component r has the share α_r of the objects. In component r, clustering m gives label l with probability θ_rm(l),
independently of the other clusterings. With x_gm the label of row g in m, and without missing labels, the likelihood is

    log2 L = Σ_g n_g log2 Σ_r α_r Π_{m: g has a label} θ_rm(x_gm)

An E step looks up log2 θ and takes a log-sum-exp. An M step adds up the posteriors over the rows of each cluster.
Posteriors are whole multiples of a power of two, so their sums do not depend on the order, the device or the division
into pieces. No probability is below 1e-10.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.rows import Rows, numbered
from gpuens.partition.base import OrderedColumns, Partition, Partitioner
from gpuens.partition.label_kmeans import Nearest, count_labels, nearest_centroids
from gpuens.partition.soft_memberships import sums_of_labels
from gpuens.partition.utilities import Utility, category_kmeans
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import logarithms
from gpuens.runtime.native import cpu

# largest number of rows for which starts use all rows. If there are more rows, each start uses a sample of so many
# objects, and only the best start continues with all rows
RESTARTS_ON = 10_000
SHORT = 20  # number of iterations of each start, after which only the best start continues
MOST_CLUSTERS = 20  # if the number of components is not given: the largest number that is tried
FLOOR = 1e-10  # lower bound on probabilities
SOFTENED = 0.1  # in a start from k-means: the share of the overall label distribution in each component
AT_ONCE = 2**22  # largest number of posteriors in memory


@dataclass(frozen=True, eq=False)
class Mixture(Partitioner):
    """A mixture of multinomials; the parameters are those of `gpuens.EM`."""

    criterion: str = "icl"
    n_init: int = 10
    max_iter: int = 100
    tol: float = 1e-4
    random_state: Any = 0
    takes = ("labels",)
    gives_membership = True
    learns_by_sums = True
    real_weights = True

    @property
    def chooses_n_clusters(self) -> bool:
        return True

    def __post_init__(self) -> None:
        checks.check_choice(self.criterion, "criterion", ("bic", "icl"))
        checks.check_runs(self.n_init, self.max_iter)
        checks.check_between(self.tol, "tol", 0.0, 1.0)
        checks.make_generator(self.random_state)

    def counts_objects(self, n_clusters: int | None) -> str | None:
        return f"criterion={self.criterion!r} for the number of clusters" if n_clusters is None else None

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        if rows.here:
            at_once = min(len(rows), _rows_at_once(rows, n_clusters))
            checks.check_memory(
                at_once * (16 * n_clusters + rows.n_clusterings * rows.codes.itemsize + 8),
                devices.memory_budget(rows.device),
                f"the posteriors of {at_once:,} rows and {n_clusters:,} clusters",
                "ask for fewer clusters",
            )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int | None) -> Partition:
        rng = checks.make_generator(self.random_state)
        uses_all_rows = rows.here and rows.n_rows <= RESTARTS_ON
        search = _EMRun(rows if uses_all_rows else rows.draw(RESTARTS_ON, rng), self.max_iter, self.tol / math.log(2))
        results: dict[str, Any] = {}
        if n_clusters is None:
            tried = [search.best(k, self.n_init, rng) for k in range(2, min(MOST_CLUSTERS, search.rows.n_rows) + 1)]
            tried = tried or [search.best(1, 1, rng)]
            scores = {len(fit.alpha): search.score(fit, self.criterion) for fit in tried}
            best = max(tried, key=lambda fit: scores[len(fit.alpha)])
            results["scores"] = scores
        else:
            best = search.best(n_clusters, self.n_init, rng)
        if not uses_all_rows:
            best = _EMRun(rows, self.max_iter, search.tol).climb(best.alpha, best.theta)
        return self._partition(best, rows, results)

    def _partition(self, fit: "_Fit", rows: Rows, results: dict[str, Any]) -> Partition:
        k = len(fit.alpha)
        rule, labels = numbered(Nearest(-fit.table, -fit.const, np.arange(k)), k, rows)
        checks.warn_of_fewer(rule.n_labels, k)
        order = np.argsort(rule.number)
        results |= {
            "log_likelihood": fit.bits * math.log(2),
            "proportions": fit.alpha[order],
            "n_iter": fit.n_iter,
            "converged": fit.converged,
        }
        membership = OrderedColumns(partial(memberships, fit.table, fit.const), order)
        return Partition(labels, rule.n_labels, rule, results, ("proportions",), membership=membership)


class _Fit(NamedTuple):
    alpha: np.ndarray  # (K,)
    theta: np.ndarray  # (N_c, K)
    bits: float  # log2 L
    n_iter: int
    converged: bool

    @property
    def table(self) -> np.ndarray:
        return logarithms(np.maximum(self.theta, FLOOR))

    @property
    def const(self) -> np.ndarray:
        return logarithms(np.maximum(self.alpha, FLOOR))


class _EMRun:
    """EM on rows, in memory or in pieces."""

    def __init__(self, rows: Rows, max_iter: int, tol: float) -> None:
        self.rows, self.max_iter, self.tol = rows, max_iter, tol
        self.labels = Utility.of(rows)  # used for distributions of labels
        self.places, self.bit_places = binary_places(rows)

    def best(self, k: int, n_init: int, rng: np.random.Generator) -> _Fit:
        """Return the fit that continues the start with the largest likelihood, of ``n_init`` short starts."""
        starts = [self.start(k, softened=i % 2 == 0, rng=rng) for i in range(n_init)]
        short = min(SHORT, self.max_iter)
        fit = max((self.climb(*start, max_iter=short) for start in starts), key=lambda fit: fit.bits)
        if fit.converged or short == self.max_iter:
            return fit
        continued = self.climb(fit.alpha, fit.theta, max_iter=self.max_iter - short + 1)
        return continued._replace(n_iter=continued.n_iter + short - 1)

    def start(self, k: int, softened: bool, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return α and θ for a start: softened k-means clusters, or the overall distribution times random numbers."""
        theta = self.labels.distributions(
            self.labels.sizes[:, None] * rng.exponential(size=(len(self.labels.sizes), k))
        )
        alpha = np.full(k, 1 / k)
        if softened:
            partition = category_kmeans(self.rows, k, rng, n_init=1)
            assert partition.rule is not None
            shared, objects = count_labels(self.rows, partition.rule, partition.n_clusters)
            of_all = self.labels.distributions(self.labels.sizes[:, None])
            blurred = (1 - SOFTENED) * self.labels.distributions(shared) + SOFTENED * of_all
            theta[:, : partition.n_clusters] = blurred
            alpha[: partition.n_clusters] *= objects * (partition.n_clusters / objects.sum())
        return alpha, theta

    def climb(self, alpha: np.ndarray, theta: np.ndarray, max_iter: int | None = None) -> _Fit:
        """Run EM iterations from α and θ as long as they raise the likelihood; return the fit."""
        best, n_objects = None, self.rows.n_objects
        for n_iter in range(1, (max_iter or self.max_iter) + 1):
            fit = _Fit(alpha, theta, 0.0, n_iter, False)
            summed = self.rows.sum(sum_posteriors, fit.table, fit.const, self.places, self.bit_places)
            fit = fit._replace(bits=int(summed[-1, 0]) * 2.0**-self.bit_places)
            if best is not None and fit.bits - best.bits <= self.tol * n_objects:
                return max(fit, best, key=lambda fit: fit.bits)._replace(n_iter=n_iter, converged=True)
            best = fit
            members = summed[:-1] * 2.0**-self.places
            alpha, theta = members[-1] / n_objects, self.labels.distributions(members[:-1])
        assert best is not None
        return best

    def score(self, fit: _Fit, criterion: str) -> float:
        """Return BIC or ICL in natural units; a larger value is better."""
        bits = fit.bits
        if criterion == "icl":  # ICL uses the likelihood of the rows together with their components
            bits = int(self.rows.sum(_classified, fit.table, fit.const, self.bit_places)) * 2.0**-self.bit_places
        k, n_free = len(fit.alpha), int(np.maximum(self.rows.clusters_in_use() - 1, 0).sum())
        return bits * math.log(2) - (k - 1 + k * n_free) / 2 * math.log(self.rows.n_objects)


def binary_places(rows: Rows) -> tuple[int, int]:
    """Return the binary places of posteriors and of log2 L: so few that sums over all objects stay below 2^62."""
    objects = rows.n_objects.bit_length()
    return min(52, 61 - objects), 61 - objects - (34 * (rows.n_clusterings + 1)).bit_length()


def memberships(table: np.ndarray, const: np.ndarray, rows: Rows) -> np.ndarray:
    """Return the posterior probabilities (G, K) of K components for each row, host."""
    shares = np.empty((len(rows), len(const)))
    for piece in _row_slices(rows, len(const)):
        posteriors_of_piece, _ = _compute_posteriors(rows.take(piece), table, const, 52)
        shares[piece] = devices.to_host(posteriors_of_piece) * 2.0**-52
    return shares


def _rows_at_once(rows: Rows, k: int) -> int:
    return max(1024, min(AT_ONCE, devices.scratch(rows.device) // 32) // k)


def _row_slices(rows: Rows, k: int) -> list[slice]:
    step = _rows_at_once(rows, k)
    return [slice(start, start + step) for start in range(0, len(rows), step)]


def _compute_posteriors(rows: Rows, table: np.ndarray, const: np.ndarray, places: int) -> tuple[Any, Any]:
    return posteriors(rows.row_lookups(table), const, 2.0**places, device=rows.device)


def sum_posteriors(rows: Rows, table: np.ndarray, const: np.ndarray, places: int, bit_places: int) -> np.ndarray:
    """Return the sums of posteriors over each cluster (N_c, K) and over all objects (K,), and log2 L, in units."""
    total = np.zeros((len(table) + 2, len(const)), dtype=np.int64)
    for piece in _row_slices(rows, len(const)):
        part = rows.take(piece)
        counts = rows.xp.asarray(part.counts)
        shares, bits = _compute_posteriors(part, table, const, places)
        shares *= counts[:, None]
        total[:-2] += devices.to_host(sums_of_labels(part, shares))
        total[-2] += devices.to_host(shares.sum(axis=0))
        total[-1, 0] += int(np.rint(bits * 2.0**bit_places).astype(np.int64) @ counts)
    return total


def _classified(rows: Rows, table: np.ndarray, const: np.ndarray, bit_places: int) -> np.int64:
    """Return the log-likelihood of the rows together with their most likely components, in whole units."""
    _, bits = nearest_centroids(rows.codes, rows.offsets, -table, -const, device=rows.device)
    units = np.rint(bits * 2.0**bit_places).astype(np.int64) * rows.xp.asarray(rows.counts)
    return -devices.to_host(units).sum()


# --- primitives -------------------------------------------------------------------------------------------------------


@kernels.primitive
def posteriors(sums: np.ndarray, const: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares (G, K) of 2^(sums + const) in each row, int64 times ``scale``, and log2 of row sums (G,).

    ``sums`` (G, K) are overwritten.
    """
    shares, bits = np.empty(sums.shape, dtype=np.int64), np.empty(len(sums))
    cpu.posteriors(sums, const, scale, shares, bits)
    return shares, bits


# --- kernels/mixture.cu -----------------------------------------------------------------------------------------------


@posteriors.kernel
def _(sums: Any, const: Any, scale: float, *, device: str) -> tuple[Any, Any]:
    xp = devices.namespace(device)
    shares, bits = xp.empty(sums.shape, dtype=np.int64), xp.empty(len(sums))
    kernels.launch(
        "posteriors", kernels.blocks(len(sums), 256), 256,
        (sums, xp.asarray(const), np.float64(scale), shares, bits, *sums.shape), device=device,
    )  # fmt: skip
    return shares, bits
