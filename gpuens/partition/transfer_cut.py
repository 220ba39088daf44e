"""The transfer cut of the bipartite graph of objects and clusters (Li, Wu & Chang, CVPR 2012).

Let X = B diag(w), D_X its row sums, W = Xᵀ D_X⁻¹ X and D the row sums of W. With V the k leading eigenvectors of
D^-½ W D^-½, objects are embedded as the rows of D_X⁻¹ X D^-½ V, scaled to length 1 and clustered by k-means. Since
D_c = w_c n_c, with s_c = w_c D_c^-½ the matrix is

    (D^-½ W D^-½)[c, d] = s_c s_d Σ_{objects g in c and d} n_g / (D_X)_g

For few clusters, this matrix is built from the weighted intersections of clusters. For more clusters, Lanczos's
iterations find the eigenvectors by hundreds of products with the matrix. Each product is a sum over labels; if few
clusters intersect, as in most ensembles of large clusterings, it is a product with a sparse matrix. With few rows and
many clusters, the matrix is Aᵀ A for A = diag(n / D_X)^½ B diag(s), and its eigenvectors are Aᵀ u / √λ for the
eigenvectors u of the small matrix A Aᵀ. In all cases no dense array of size N × N_c is built.

If the clusters have a graph A (N_c, N_c) of their own, clusters are on both sides of the bipartite graph: X has the
rows of A below the rows of the objects, W gains Aᵀ D_A⁻¹ A, and D gains the column sums of A.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from gpuens.contingency.clusters import dense_intersections, few_intersections
from gpuens.kmeans import lloyd
from gpuens.kmeans.weighted import RESTARTS_ON, restarts
from gpuens.labels.incidence import cluster_sums, scaled_columns, scaled_rows, sparse_incidence
from gpuens.labels.rows import Rows, numbered
from gpuens.partition.base import ANY, DIAGONAL, Partition, Partitioner
from gpuens.partition.embeddings import (
    inverse_roots,
    kmeans,
    leading_eigenvectors,
    unit_length,
    unit_points,
    unit_points32,
    where_eigenvectors_are,
    with_direction,
)
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng

Product: TypeAlias = Callable[[np.ndarray], np.ndarray]  # product of a matrix (N_c, N_c) with vectors

DENSE_UP_TO = 2000  # largest number of clusters for dense eigenvectors, which cost O(N_c³)
# largest number of clusters for dense eigenvectors of rows in host memory, where a product of Lanczos's iterations
# needs neither launches nor a pass over pieces
DENSE_IN_MEMORY_UP_TO = 400
FEW_ROWS = 300  # largest number of rows for eigenvectors of the dense matrix of rows, in place of Lanczos's iterations
TOLERANCE = 1e-9  # error of eigenvalues by Lanczos's iterations; the largest eigenvalue is 1
ROUNDING = 1e-12  # eigenvalues of the matrix of rows up to this are 0
ROUGH = 1e-2  # tolerance for eigenvalues that are far below the eigenvalues already found
# largest number of cluster intersections per label for which products with the sparse matrix are faster than sums
FILLED = 0.25
SPARSE = 0.3  # largest share of non-zero entries for which a sparse matrix is faster than a dense matrix
INTERSECTION_BYTES = 40  # memory for an intersection while a sparse matrix is built
BLOCK = 512  # rows of a similarity matrix computed at a time
STEP_BYTES = 2**26  # bytes of the points and distances that are computed together


@dataclass(frozen=True, eq=False)
class TransferCut(Partitioner):
    """The transfer cut of the bipartite graph of objects and clusters, with the diagonal of S as edge weights.

    Parameters
    ----------
    n_init : int
        Starts of the final k-means.
    random_state : int, None or numpy.random.Generator
        For the final k-means; the same seed gives the same labels.
    """

    n_init: int = 10
    random_state: Any = 0
    takes: ClassVar[tuple[str, ...]] = DIAGONAL
    learns_by_sums = True
    takes_shares = True
    real_weights = True

    def __post_init__(self) -> None:
        checks.check_runs(self.n_init)
        checks.make_generator(self.random_state)

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        if rows.here:
            _check_point_memory(rows, n_clusters, self.n_init)

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        weights, graph = similarity.weights.astype(np.float64), getattr(similarity, "graph", None)
        return transfer_cut(rows, weights, n_clusters, graph=graph, n_init=self.n_init, random_state=self.random_state)


@dataclass(frozen=True, eq=False)
class MeanTransferCut(TransferCut):
    """The transfer cut of the graph whose edges are the mean similarities of a row to the rows of a cluster.

    All pairs of rows and clusters are held in memory. A row counts once, whatever its number of objects. Parameters are
    those of `TransferCut`.
    """

    takes = ANY
    learns_by_sums = False
    takes_shares = False

    def refuse_too_many(self, rows: Rows, n_clusters: int, kind: str) -> None:
        checks.check_memory(
            16 * rows.n_rows * rows.n_clusters + 32 * rows.n_clusters**2,
            devices.memory_budget(),
            f"the graph of {rows.n_rows:,} rows and {rows.n_clusters:,} clusters",
            "reduce the rows first, reduction=CATree(…) or Sample(…)",
        )

    def __call__(self, similarity: Any, rows: Rows, n_clusters: int) -> Partition:
        edges = mean_similarities(similarity, rows)
        of_rows = _zeros_to_ones(edges.sum(axis=1))
        degree = edges.sum(axis=0)
        scale = inverse_roots(degree)
        edges /= np.sqrt(of_rows)[:, None]
        edges *= scale
        _, vectors = leading_eigenvectors(edges.T @ edges, min(n_clusters, int(np.count_nonzero(degree))))
        points, _ = unit_length((edges @ vectors) / np.sqrt(of_rows)[:, None])
        rng, ones = checks.make_generator(self.random_state), np.ones(len(points), dtype=np.int64)
        return kmeans(points, ones, n_clusters, self.n_init, rng, "cpu")


def mean_similarities(similarity: Any, rows: Rows) -> np.ndarray:
    """Return the mean similarity of each row to the rows in each cluster, (G, N_c), host; 0 for empty clusters."""
    incidence = sparse_incidence(rows)
    shares = scaled_columns(incidence, 1.0 / _zeros_to_ones(np.asarray(incidence.sum(axis=0)).ravel()))
    means = np.empty(incidence.shape)
    for start in range(0, len(rows), BLOCK):
        stop = min(start + BLOCK, len(rows))
        means[start:stop] = similarity.tile(rows, start, stop) @ shares
    return means


def _zeros_to_ones(values: np.ndarray) -> np.ndarray:
    """Return the ``values`` ≥ 0 with 1 in place of 0, for use as divisors."""
    return np.where(values > 0, values, 1.0)


@takes_rng
def transfer_cut(
    rows: Rows,
    cluster_weights: np.ndarray,
    n_clusters: int,
    *,
    graph: np.ndarray | None = None,
    n_init: int = 10,
    random_state: int | np.random.Generator | None = 0,
    rng: Any = NOT_GIVEN,
) -> Partition:
    """Return the partition of rows, in memory or in pieces, with labels in the order of the clusters' first rows.

    Starts of k-means use at most 10,000 rows, or k if that is more; for rows in pieces 10,000 objects, or 4 k. For rows
    in pieces, further iterations are sums over the pieces; points are computed again in each iteration.

    Parameters
    ----------
    rows : Rows
    cluster_weights : ndarray (N_c,), float64
        The positive weight w of the edges of each cluster.
    n_clusters : int
    graph : ndarray (N_c, N_c), symmetric, ≥ 0, optional
        A, the edges between clusters; zeros for clusters without objects.
    n_init : int
        The number of starts of k-means.
    """
    n_clusters = checks.check_n_clusters(n_clusters, rows.n_rows)
    checks.check_runs(n_init)
    rng = checks.make_generator(random_state)
    if not rows.here:
        sample = rows.draw_for(n_clusters, RESTARTS_ON, rng)
        table, _ = _embedding_table(rows, cluster_weights, n_clusters, graph)
        return _cut_in_pieces(rows, sample, table, n_clusters, n_init, rng)
    _check_point_memory(rows, n_clusters, n_init)
    table, _ = _embedding_table(rows, cluster_weights, n_clusters, graph)
    return kmeans(_embed_rows(rows, table), rows.counts, n_clusters, n_init, rng, rows.device)


def embedding(
    rows: Rows, cluster_weights: np.ndarray, n_dimensions: int, graph: np.ndarray | None = None
) -> tuple[Any, np.ndarray]:
    """Return points (G, n_dimensions), float64, of length 1, on the device, and the eigenvalues, largest first.

    There are fewer dimensions if there are fewer clusters.
    """
    table, values = _embedding_table(rows, cluster_weights, n_dimensions, graph)
    return unit_points(rows, table)[0], values


def eigenvalues(rows: Rows, cluster_weights: np.ndarray, n: int) -> np.ndarray:
    """Return the n largest eigenvalues (n,), largest first, of rows in memory or in pieces; if n > N_c, add zeros."""
    padded = np.zeros(n)
    values = _embedding_table(rows, cluster_weights, min(n, rows.n_clusters))[1]
    padded[: len(values)] = values.clip(0.0, 1.0)
    return padded


def _embedding_table(
    rows: Rows, cluster_weights: np.ndarray, n_dimensions: int, graph: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return a table (N_c, d), host, and the eigenvalues; a row's point is the sum of the table over its clusters."""
    gram: Callable[..., Any] = partial(rows.sum, _gram, cluster_weights)
    products: Callable[[], Product] = partial(partial, rows.sum, _product, cluster_weights)
    dense = all_at_once(rows.n_clusters, n_dimensions, _in_memory(rows))
    if rows.here:  # shares are computed once for all products
        share = _weight_per_degree(rows, cluster_weights)
        is_small = rows.of_labels and rows.n_rows <= FEW_ROWS and not dense
        if is_small and rows.device == "cpu" and graph is None:
            return _leading_of_few(rows, share, cluster_weights, n_dimensions)
        gram = partial(dense_intersections, rows, share)
        products = partial(_products, rows, share)
    return _leading(rows.cluster_sizes(), cluster_weights, n_dimensions, gram, products, dense, rows.device, graph)


def _in_memory(rows: Rows) -> bool:
    """Return whether products with the rows are computed in host memory."""
    return rows.here and rows.device == "cpu"


def _check_point_memory(rows: Rows, n_dimensions: int, n_init: int) -> None:
    """Raise MemoryError if the points of rows, or the eigenvectors or intersections of clusters, do not fit."""
    n_rows, n_clusters = rows.n_rows, rows.n_clusters
    if n_rows <= RESTARTS_ON:
        points, copies = 8 * n_dimensions * n_rows, 16 * n_dimensions * n_rows
    else:  # float32; copies of the points drawn for starts, centers of all starts, and sums of the running starts
        points, copies = 4 * n_dimensions * n_rows, 4 * n_dimensions * (n_rows + 2 * RESTARTS_ON)
        copies += 8 * n_dimensions * min(n_dimensions, n_clusters) * (n_init + 4 * min(n_init, devices.n_threads()))
    labels = 64 * n_rows  # labels and their new numbers, after the copies are gone
    eigenvectors = 40 * n_clusters * (n_dimensions + 8)
    if not all_at_once(n_clusters, n_dimensions, _in_memory(rows)):
        eigenvectors += INTERSECTION_BYTES * min(_most_intersections(rows), n_clusters**2)
    needed = max(points + max(copies, labels), eigenvectors)
    checks.check_memory(
        needed,
        devices.memory_budget(rows.device, needed),
        f"the transfer cut of {n_rows:,} rows and {n_clusters:,} clusters into {n_dimensions}",
        "ask for fewer clusters or reduce the rows first, reduction=CATree(…) or Sample(…)",
    )


def _weight_per_degree(rows: Rows, cluster_weights: np.ndarray) -> Any:
    """Return n_g / (D_X)_g of each row (G,), on the device."""
    degree = rows.row_sums(cluster_weights)
    return rows.xp.asarray(rows.counts) / degree


def _gram(rows: Rows, cluster_weights: np.ndarray) -> np.ndarray:
    return devices.to_host(dense_intersections(rows, _weight_per_degree(rows, cluster_weights)))


def _product(rows: Rows, cluster_weights: np.ndarray, v: np.ndarray) -> np.ndarray:
    return _gram_product(rows, _weight_per_degree(rows, cluster_weights), v)


def _most_intersections(rows: Rows) -> int:
    """Return the largest number of intersections for which products with them are faster than sums over labels."""
    return int(FILLED * rows.codes.size) if rows.device == "cpu" and rows.of_labels else 0


def _products(rows: Rows, share: Any) -> Product:
    """Return a function of v that computes the result of `_gram_product`; on the CPU, by the faster of two ways."""
    if rows.device == "cpu" and rows.of_labels:
        shared = few_intersections(rows, share, _most_intersections(rows))
        if shared is not None:
            return partial(operator.matmul, shared)
    return partial(_gram_product, rows, share)


def _gram_product(rows: Rows, share: Any, v: np.ndarray) -> np.ndarray:
    """Return Bᵀ diag(share) B v (N_c,), host, for v (N_c,)."""
    return devices.to_host(rows.cluster_sums(share * rows.row_sums(v)))


def _leading(
    objects: np.ndarray,
    cluster_weights: np.ndarray,
    n_dimensions: int,
    gram: Callable[[], Any],
    products: Callable[[], Product],
    dense: bool,
    device: str,
    graph: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return D^-½ V diag(w) (N_c, d) and the eigenvalues, from a Gram matrix of clusters or from products with it."""
    degree, graph_terms = cluster_weights * objects, None  # D; 0 for clusters without objects
    if graph is not None:
        degree = degree + graph.sum(axis=0)
        graph_terms = graph, inverse_roots(degree)
    scale = np.zeros(len(degree))
    np.divide(cluster_weights, np.sqrt(degree), out=scale, where=degree > 0)
    n_dimensions = min(n_dimensions, int(np.count_nonzero(degree)))
    if not dense:
        from scipy.sparse.linalg import ArpackError

        try:
            values, vectors = _lanczos(products(), scale, n_dimensions, graph_terms and _graph_product(*graph_terms))
        except ArpackError:  # no convergence
            dense = True
    if dense:
        checks.check_memory(
            32 * len(degree) ** 2,  # the matrix, a copy of it, and LAPACK's or cuSOLVER's workspace
            devices.memory_budget(device),
            f"the transfer cut into {n_dimensions} clusters needs all eigenvectors of {len(degree)} clusters, which",
            "ask for fewer clusters, or take clusterings of fewer clusters",
        )
        values, vectors = _dense_eigenvectors(gram(), scale, n_dimensions, graph_terms and _squared_graph(*graph_terms))
    return scale[:, None] * with_direction(vectors, degree), values


def _leading_of_few(
    rows: Rows, share: np.ndarray, cluster_weights: np.ndarray, n_dimensions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of `_leading` from the rows, which are fewer than the clusters; at most as many dimensions."""
    degree = cluster_weights * rows.cluster_sizes()
    scale = cluster_weights * inverse_roots(degree)
    scaled = scaled_rows(scaled_columns(sparse_incidence(rows), scale), np.sqrt(share))
    values, of_rows = leading_eigenvectors((scaled @ scaled.T).toarray(), min(n_dimensions, rows.n_rows))
    vectors = (scaled.T @ of_rows) * inverse_roots(np.where(values > ROUNDING, values, 0.0))
    return scale[:, None] * with_direction(vectors, degree), values


def all_at_once(n_clusters: int, n_dimensions: int, in_memory: bool) -> bool:
    """Return whether eigenvectors are computed from a dense matrix; ``in_memory``: the rows are in host memory."""
    return n_clusters <= max(DENSE_IN_MEMORY_UP_TO if in_memory else DENSE_UP_TO, 4 * n_dimensions)


def _squared_graph(graph: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the matrix that a symmetric graph of the clusters adds to D^-½ W D^-½; ``scale`` is D^-½."""
    squared: np.ndarray = (graph * (1.0 / _zeros_to_ones(graph.sum(axis=1)))) @ graph
    squared *= scale[:, None]
    squared *= scale
    return squared


def _graph_product(graph: np.ndarray, scale: np.ndarray) -> Product:
    """Return a function that multiplies a vector with the result of `_squared_graph`, without building that matrix."""
    from scipy.sparse import csr_array

    inverse_degrees = 1.0 / _zeros_to_ones(graph.sum(axis=1))
    edges: Any = csr_array(graph) if np.count_nonzero(graph) < SPARSE * graph.size else graph
    return lambda v: scale * (edges @ (inverse_degrees * (edges @ (scale * v))))


def _embed_rows(rows: Rows, table: np.ndarray) -> Any:
    """Return points (G, d); above `RESTARTS_ON` rows as float32.

    float32 halves the memory, and points of length 1 lose no relevant precision.
    """
    if len(rows) <= RESTARTS_ON:
        return unit_points(rows, table)[0]
    if not rows.of_labels:
        return unit_points(rows, table)[0].astype(np.float32)
    return unit_points32(rows.codes, rows.offsets, table, device=rows.device)


def _dense_eigenvectors(
    gram: Any, scale: np.ndarray, n_dimensions: int, beside: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenvalues, largest first, and their vectors (n, n_dimensions), host.

    The matrix is the Gram matrix with rows and columns multiplied by ``scale``, and ``beside`` added.
    """
    gram = where_eigenvectors_are(gram)
    scale = devices.move(scale, devices.kind_of(gram))
    gram *= scale[:, None]
    gram *= scale
    if beside is not None:
        gram += devices.move(beside, devices.kind_of(gram))
    return leading_eigenvectors(gram, n_dimensions)


def _lanczos(
    product: Product,
    scale: np.ndarray,
    n_dimensions: int,
    beside: Product | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of `_dense_eigenvectors` by Lanczos's iterations; ``beside`` multiplies with the added matrix.

    Of a multiple eigenvalue, the iterations find one eigenvector; they find further eigenvectors only by rounding. So
    the space orthogonal to the vectors found is searched, too, until it has no eigenvalue above the smallest one found.
    """
    rng = np.random.default_rng(0)  # the seed is fixed, because eigenvectors do not depend on the start
    n = len(scale)

    def times(v: np.ndarray) -> np.ndarray:
        values_beside: np.ndarray = scale * product(scale * v)
        if beside is not None:
            values_beside += beside(v)
        return values_beside

    values, vectors = _run_lanczos(times, n, n_dimensions, rng)
    n_more = 1
    while True:
        rough, _ = _run_lanczos(times, n, 1, rng, vectors, ROUGH)
        if rough[0] < (1 - 10 * ROUGH) * values[-1]:
            return values, vectors
        values_beside, vectors_beside = _run_lanczos(times, n, n_more, rng, vectors)
        if not values_beside[0] > values[-1] + 10 * TOLERANCE:
            return values, vectors
        values = np.concatenate([values, values_beside])
        leading = np.argsort(-values, kind="stable")[:n_dimensions]
        values, vectors = values[leading], np.concatenate([vectors, vectors_beside], axis=1)[:, leading]
        n_more = min(2 * n_more, n_dimensions)


def _run_lanczos(
    times: Callable[[np.ndarray], np.ndarray],
    n: int,
    n_dimensions: int,
    rng: np.random.Generator,
    beside: np.ndarray | None = None,
    tol: float = TOLERANCE,
) -> tuple[np.ndarray, np.ndarray]:
    """Return leading eigenvalues, largest first, and eigenvectors; if given, orthogonal to the columns of ``beside``.

    Every call draws a new start, because the start that led to ``beside`` has no component along the missed vectors.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    start = rng.standard_normal(n)

    def apart(v: np.ndarray) -> np.ndarray:
        return v if beside is None else v - beside @ (beside.T @ v)

    operator = LinearOperator((n, n), matvec=lambda v: apart(times(apart(v.ravel()))), dtype=np.float64)
    values, vectors = eigsh(operator, k=n_dimensions, which="LA", v0=apart(start), tol=tol, maxiter=1000)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


# --- rows in pieces ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NearestCenter:
    """A rule that assigns each row to the center nearest to its point.

    Products with centers are sums over the row's labels, so the result does not depend on other rows.
    """

    table: np.ndarray  # (N_c, d): a row's point is the sum of its clusters' table rows, scaled to length 1
    centers: np.ndarray  # (k, d)
    towards: np.ndarray  # (N_c, k): the products of table rows and centers
    number: np.ndarray  # (k,): the label of each center

    @classmethod
    def of_centers(cls, centers: np.ndarray, table: np.ndarray) -> "NearestCenter":
        return cls(table, centers, table @ centers.T, np.arange(len(centers)))

    def __call__(self, rows: Rows) -> np.ndarray:
        return self.number[np.concatenate([devices.to_host(labels) for _, _, labels in self.nearest(rows)])]

    def among(self, labels: np.ndarray) -> "NearestCenter":
        is_among = np.isin(self.number, labels)
        return NearestCenter(
            self.table, self.centers[is_among], np.ascontiguousarray(self.towards[:, is_among]), self.number[is_among]
        )

    def nearest(self, rows: Rows) -> Iterator[tuple[Rows, Any, Any]]:
        """Yield rows in pieces, with their points and nearest centers."""
        half_square = rows.xp.asarray((self.centers * self.centers).sum(axis=1) / 2)
        at_once = max(1, STEP_BYTES // (16 * (self.table.shape[1] + len(self.centers))))
        for start in range(0, max(1, len(rows)), at_once):
            piece = rows.take(slice(start, start + at_once))
            points, length = unit_points(piece, self.table)
            nearness = piece.row_lookups(self.towards)
            nearness /= length
            nearness -= half_square
            yield piece, points, nearness.argmax(axis=1)


def _cut_in_pieces(
    rows: Rows, sample: Rows, table: np.ndarray, n_clusters: int, n_init: int, rng: np.random.Generator
) -> Partition:
    """Return the partition of rows in pieces; starts use the ``sample`` rows."""
    points = unit_points(sample, table)[0].astype(np.float32)
    with devices.library_threads(1):
        _, first = restarts(points, sample.counts, n_clusters, n_init, int(rng.integers(2**31)))
    first = first.astype(np.float64)

    def sums_of(centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums = rows.sum(_sums_of_points, NearestCenter.of_centers(centers, table))
        return sums[:, :-1], sums[:, -1:]

    centers = lloyd.descend(first, lloyd.TOLERANCE * float(points.var(axis=0).mean()), sums_of)
    partition = Partition.of_rule(*numbered(NearestCenter.of_centers(centers, table), len(centers), rows))
    checks.warn_of_fewer(partition.n_clusters, n_clusters)
    return partition


def _sums_of_points(rows: Rows, rule: NearestCenter) -> np.ndarray:
    """Return the sums (k, d + 1) of the points nearest to each center; the last column counts their objects."""
    k, d = rule.centers.shape
    sums = np.zeros((k, d + 1))
    for piece, points, labels in rule.nearest(rows):
        counts = piece.xp.asarray(piece.counts, dtype=np.float64)
        codes, offsets = labels.astype(np.uint32)[:, None], np.array([0, k])
        for j in range(d + 1):
            values = counts * points[:, j] if j < d else counts
            sums[:, j] += devices.to_host(cluster_sums(codes, offsets, values, device=piece.device))
    return sums
