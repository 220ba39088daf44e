"""Refinement of classes: a mixture of label rows whose classes follow a Potts model on a graph of the objects.

Object i is in class z_i. In class r, clustering m gives label l with probability θ_rm(l), as in
`gpuens.partition.mixture`; neighbours i and j tend to be in the same class. With w_ij the weight of an edge,

    log P(z, x) = τ Σ_i Σ_{m: i has a label} log θ_{z_i m}(x_im) + β Σ_edges w_ij [z_i = z_j] + const

Mean field replaces P(z | x) by independent memberships q_i(r), the minimum of the free energy Σ_ir q log q minus the
expectation of the above:

    q_i(r) ∝ exp(τ Σ_m log θ_rm(x_im) + β Σ_j w_ij q_j(r))

Memberships start from classes, a little softened. A sweep updates the colours of the graph one after the other. Objects
of a colour are not neighbours, so that the free energy falls at each colour, and neither threads nor their order
matter. Each round estimates

- θ: the distribution of the labels in each class, weighted by the memberships;
- τ = Σ_m var(ℓ_m) / var(Σ_m ℓ_m), from 1 / M to 1, where ℓ_m is log θ_rm(x_im) minus its mean in class r, or 0 for a
  missing label: 1 if the clusterings err independently, 1 / M if they are copies. τ M clusterings count;
- β: the maximum of the pseudo-likelihood Σ_i Σ_r q_i(r) log P(z_i = r | neighbours), which is concave, by Newton's
  method.

Numbers are base 2 and sums over objects are whole, so that all devices and numbers of threads give the same bits.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.graph import Graph
from gpuens.labels.rows import Rows
from gpuens.partition.mixture import FLOOR, SOFTENED
from gpuens.partition.soft_memberships import label_correspondences
from gpuens.partition.utilities import Utility
from gpuens.runtime import checks, kernels
from gpuens.runtime import device as devices
from gpuens.runtime.exponentials import logarithms
from gpuens.runtime.native import cpu

MAX_ROUNDS = 20
SETTLED = 1e-3  # largest share of the objects that the last round moves to another class
STEADY = 0.05  # largest relative change of β in the last round
MOST_BETA = 10.0  # upper bound of β; one neighbour in a class then makes it e^10 times as likely
BETA_TOLERANCE = 1e-2  # largest change of β in the last Newton step, whose error is the square of that
MOST_STEPS = 20  # largest number of Newton steps in a round
LONGEST_STEP = 1.0  # largest change of β in a Newton step: from beyond the maximum, longer ones may overshoot
MOST_SAMPLED = 2**16  # largest number of objects whose pseudo-likelihood gives β; its error is then about 1 %
SMALLEST = 1e-300  # smallest sum of squares, in place of 0
BYTES_OF_A_MEMBERSHIP = 8  # bytes of a membership, and of each of three numbers of a row and class


class Refinement(NamedTuple):
    """Memberships of N objects in k classes, and the strengths with which they were found."""

    membership: np.ndarray  # (N, k), rows sum to 1
    labels: np.ndarray  # (N,), int64: the class of the largest membership, the first of equal ones
    beta: float
    tau: float
    n_rounds: int
    converged: bool


def refine(
    rows: Rows, row_of: np.ndarray, graph: Graph, labels: np.ndarray, k: int, *, max_rounds: int = MAX_ROUNDS
) -> Refinement:
    """Return the classes of objects from their labels and their neighbours, starting from given classes.

    Parameters
    ----------
    rows : Rows
        G distinct label rows.
    row_of : ndarray (N,), int64
        The row of each object.
    graph : Graph
        The neighbours of the N objects.
    labels : ndarray (N,), int64
        The class of each object, 0 … k - 1, at the start.
    k : int
        The number of classes; a class that loses all objects stays empty.
    max_rounds : int

    Raises
    ------
    MemoryError
        If memberships and look-ups are beyond the memory budget.

    Examples
    --------
    >>> import numpy as np
    >>> from gpuens import Graph, Rows
    >>> from gpuens.neighbors.refinement import refine
    >>> classes = np.arange(100) // 50  # a picture of 10 × 10 pixels, its upper half of one class
    >>> labels = classes[:, None] ^ (np.random.default_rng(0).random((100, 5)) < 0.2)  # five clusterings
    >>> refinement = refine(Rows(labels), np.arange(100), Graph.grid((10, 10)), labels[:, 0], 2)
    >>> [int((of_pixels != classes).sum()) for of_pixels in (labels[:, 0], refinement.labels)]
    [15, 0]
    """
    checks.check_memory(
        BYTES_OF_A_MEMBERSHIP * k * (len(row_of) + 3 * len(rows)),
        devices.memory_budget(rows.device),
        f"the memberships of {len(row_of):,} objects in {k:,} classes",
        "ask for fewer clusters",
    )
    field, model = _Field(graph, labels, k, rows.device), _LabelModel(rows, row_of)
    beta, converged, n_rounds = 0.0, False, 0
    while not converged and n_rounds < max_rounds:
        n_rounds += 1
        lookups, tau = model.fit(field.memberships)
        before, beta = beta, field.strongest_beta(beta)
        n_moved = field.sweep(lookups, model.row_of, tau, beta)
        converged = n_moved <= SETTLED * len(row_of) and abs(beta - before) <= STEADY * beta
    membership, classes = devices.to_host(field.memberships), devices.to_host(field.labels)
    return Refinement(membership, classes, beta, float(devices.to_host(tau)[0]), n_rounds, converged)


class _Field:
    """The memberships (N, k) of the objects, on the device, and the graph whose colours update them in turn."""

    def __init__(self, graph: Graph, labels: np.ndarray, k: int, device: str) -> None:
        xp = devices.namespace(device)
        self.device = device
        self.graph = cpu.GraphArrays(*map(xp.asarray, (graph.starts, graph.heads, graph.weights)))
        self.colors = [xp.asarray(objects) for objects in objects_by_color(graph)]
        self.labels = xp.asarray(labels, dtype=np.int64).copy()
        # a part of each object is shared among the classes like all objects are: else a start that equals a clustering
        # would be kept for ever, because labels that a class lacks are all but impossible in it
        sizes = np.bincount(labels, minlength=k) / len(labels)
        certain = (self.labels[:, None] == xp.arange(k)).astype(np.float64)
        self.memberships = (1 - SOFTENED) * certain + SOFTENED * xp.asarray(sizes)
        # binary places of the derivatives: so few that sums over all objects stay below 2^62
        degrees = np.diff(np.concatenate([[0.0], np.cumsum(graph.weights)])[graph.starts])
        self.places = 60 - math.frexp(np.maximum(degrees, degrees * degrees).sum() + len(degrees))[1]
        objects = np.arange(len(labels))
        if len(labels) > MOST_SAMPLED:
            objects = np.sort(np.random.default_rng(0).choice(objects, MOST_SAMPLED, replace=False))
        self.sample = xp.asarray(objects)

    def strongest_beta(self, beta: float) -> float:
        """Return the β of the largest pseudo-likelihood of the memberships, by Newton steps from ``beta``."""
        for _ in range(MOST_STEPS):
            derivatives = pseudo_likelihood(
                self.graph, self.sample, self.memberships, beta / math.log(2), 2.0**self.places, device=self.device
            )
            slope, curvature = devices.to_host(derivatives).tolist()
            step = max(-LONGEST_STEP, min(slope / curvature, LONGEST_STEP)) if curvature > 0 else 0.0
            before, beta = beta, max(0.0, min(beta + step, MOST_BETA))
            if abs(beta - before) <= BETA_TOLERANCE:
                break
        return beta

    def sweep(self, lookups: Any, row_of: Any, tau: Any, beta: float) -> int:
        """Update the memberships of all objects, colour by colour; return the number of objects that change class."""
        before, terms = self.labels.copy(), cpu.RowTerms(lookups, row_of, tau)
        for objects in self.colors:
            update_memberships(
                self.graph, objects, terms, beta / math.log(2), self.memberships, self.labels, device=self.device
            )
        return int((self.labels != before).sum())


class _LabelModel:
    """The distributions θ of labels in classes, fitted to memberships."""

    def __init__(self, rows: Rows, row_of: np.ndarray) -> None:
        self.rows, xp = rows, rows.xp
        self.row_of = xp.asarray(row_of, dtype=np.int64)
        self.members = xp.asarray(np.argsort(row_of, kind="stable"))
        self.starts = xp.asarray(np.concatenate([[0], np.cumsum(np.bincount(row_of, minlength=len(rows)))]))
        self.labels = Utility.of(rows)
        n_bits = rows.n_objects.bit_length()
        # binary places of memberships and of squares: so few that sums over all objects stay below 2^62
        self.places = min(52, 61 - n_bits)
        self.square_places = 61 - n_bits - ((34 * rows.n_clusterings) ** 2).bit_length()

    def fit(self, memberships: Any) -> tuple[Any, Any]:
        """Return log2-likelihoods (G, k) of the rows in the classes, and τ (1,), both on the device."""
        rows, xp, device = self.rows, self.rows.xp, self.rows.device
        shares = sum_memberships(memberships, self.members, self.starts, 2.0**self.places, device=device)
        sums, _ = label_correspondences(rows.codes, rows.offsets, shares, device=device)
        weight = devices.to_host(sums) * 2.0**-self.places
        theta = np.maximum(self.labels.distributions(weight), FLOOR)
        table = logarithms(theta)
        residuals = table - np.repeat(np.add.reduceat(theta * table, rows.offsets[:-1]), np.diff(rows.offsets), axis=0)
        independent = math.fsum((weight * residuals * residuals).flat)
        joint = sum_squares(
            rows.row_lookups(residuals), shares, 2.0 ** (self.square_places - self.places), device=device,
        )  # fmt: skip
        # without residuals, copies cannot be told from independent clusterings: together they count as one
        tau = independent / xp.maximum(joint * 2.0**-self.square_places, SMALLEST)
        tau = xp.minimum(xp.maximum(tau, 1 / rows.n_clusterings), 1.0)
        return rows.row_lookups(table), tau


def objects_by_color(graph: Graph) -> list[np.ndarray]:
    """Return the objects of each colour, ascending: in their order, objects take the first colour of no neighbour."""
    colors = np.empty(graph.n_objects, dtype=np.int32)
    n_colors = cpu.color_objects(graph.starts, graph.heads, colors)
    ends = np.cumsum(np.bincount(colors, minlength=n_colors))
    return np.split(np.argsort(colors, kind="stable"), ends[:-1])


# --- primitives -------------------------------------------------------------------------------------------------------


@kernels.primitive
def update_memberships(
    graph: cpu.GraphArrays,
    objects: np.ndarray,
    terms: cpu.RowTerms,
    beta: float,
    memberships: np.ndarray,
    labels: np.ndarray,
) -> None:
    """Update ``memberships`` (N, k) and ``labels`` (N,) of ``objects``, none of which is a neighbour of another.

    ``terms`` are look-ups (G, k), rows of objects (N,) and τ (1,). Look-ups and β are in bits.
    """
    cpu.update_memberships(graph, objects, terms, beta, memberships, labels)


@kernels.primitive
def sum_memberships(memberships: np.ndarray, members: np.ndarray, starts: np.ndarray, scale: float) -> np.ndarray:
    """Return the summed memberships (G, k) of the objects of each row, int64 times ``scale``.

    ``members`` (N,) are the objects of row 0, of row 1, …, which begin at ``starts`` (G + 1,).
    """
    shares = np.empty((len(starts) - 1, memberships.shape[1]), dtype=np.int64)
    cpu.sum_memberships(memberships, members, starts, scale, shares)
    return shares


@kernels.primitive
def pseudo_likelihood(
    graph: cpu.GraphArrays, objects: np.ndarray, memberships: np.ndarray, beta: float, scale: float
) -> np.ndarray:
    """Return the slope in β of the log pseudo-likelihood of ``objects``, and minus its curvature, (2,).

    The numbers are int64 times ``scale``, of natural logarithms; ``beta`` is in bits.
    """
    derivatives = np.zeros(2, dtype=np.int64)
    cpu.pseudo_likelihood(graph, objects, memberships, beta, scale, derivatives)
    return derivatives


@kernels.primitive
def sum_squares(residuals: np.ndarray, shares: np.ndarray, scale: float) -> np.ndarray:
    """Return the sum (1,) of ``shares`` times the squares of ``residuals``, both (G, k), int64 times ``scale``."""
    squares = np.zeros(1, dtype=np.int64)
    cpu.sum_squares(residuals, shares, scale, squares)
    return squares


# --- kernels/potts.cu -------------------------------------------------------------------------------------------------


@update_memberships.kernel
def _(graph: Any, objects: Any, terms: Any, beta: float, memberships: Any, labels: Any, *, device: str) -> None:
    kernels.launch(
        "update_memberships", kernels.blocks(len(objects), 256), 256,
        (objects, *graph, terms.row_of, terms.lookups, terms.tau, np.float64(beta), memberships, labels, len(objects),
         memberships.shape[1]),
        device=device,
    )  # fmt: skip


@sum_memberships.kernel
def _(memberships: Any, members: Any, starts: Any, scale: float, *, device: str) -> Any:
    shares = devices.namespace(device).empty((len(starts) - 1, memberships.shape[1]), dtype=np.int64)
    kernels.launch(
        "sum_memberships", kernels.blocks(shares.size, 256), 256,
        (memberships, members, starts, np.float64(scale), shares, *shares.shape), device=device,
    )  # fmt: skip
    return shares


@pseudo_likelihood.kernel
def _(graph: Any, objects: Any, memberships: Any, beta: float, scale: float, *, device: str) -> Any:
    xp = devices.namespace(device)
    derivatives, fields = xp.zeros(2, dtype=np.uint64), xp.empty((len(objects), 2 * memberships.shape[1]))
    kernels.launch(
        "pseudo_likelihood", kernels.blocks(len(objects), 256), 256,
        (objects, *graph, memberships, np.float64(beta), np.float64(scale), fields, derivatives, len(objects),
         memberships.shape[1]),
        device=device, shared=16,
    )  # fmt: skip
    return derivatives.view(np.int64)


@sum_squares.kernel
def _(residuals: Any, shares: Any, scale: float, *, device: str) -> Any:
    squares = devices.namespace(device).zeros(1, dtype=np.uint64)
    kernels.launch(
        "sum_squares", kernels.blocks(shares.size, 256 * 64), 256,
        (residuals, shares, np.float64(scale), squares, shares.size), device=device, shared=8,
    )  # fmt: skip
    return squares.view(np.int64)
