"""Lloyd's iterations on a GPU and of points that are not stored, the rule for empty clusters, and sums over clusters.

Iterations of stored points on the CPU are compiled, and follow the same rules (kernels/cpu/kmeans/lloyd.h).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpuens.runtime import device as devices
from gpuens.runtime import kernels

CHUNK = 2**14  # number of points in one matrix product on a GPU; constant, because rounding errors depend on it
BLOCK = 2**10  # number of points in host memory whose distances to their own centers are computed at a time
MOST_ITERATIONS = 100
TOLERANCE = 1e-4  # centers have converged if their squared shift is at most this share of the variance of the points
# squared distance that may be only a rounding error, if no coordinate of the points is above 1 (as in lloyd.h)
NOTHING = 1e-24


def descend(
    centers: Any, enough: Any, sums_of: Callable[[Any], tuple[Any, Any] | None], max_iter: int = MOST_ITERATIONS,
    device: str = "cpu",
) -> Any:  # fmt: skip
    """Run Lloyd's iterations from the given initial centers; return the final centers (…, k, d).

    The iterations stop by scikit-learn's rules.

    ``sums_of(centers)`` returns the sum of the points nearest to each center (…, k, d) and their weight (…, k, 1), or
    None if no point has changed its center. Several starts are iterated together; a start that has converged keeps its
    centers. A cluster that is empty even after `refill` keeps its center.
    """
    settled = devices.namespace(device).zeros((*centers.shape[:-2], 1, 1), dtype=bool)
    for _ in range(max_iter):
        sums = sums_of(centers)
        if sums is None:
            break
        centers, settled = step(centers, *sums, settled, enough, device)
        if devices.to_host(settled).all():
            break
    return centers


def descend_on_gpu(
    centers: Any, enough: Any, sums_of: Callable[[Any], tuple[Any, Any, Any]], refilled: Callable[..., None],
    max_iter: int = MOST_ITERATIONS, origin: Any = None, *, device: str,
) -> tuple[Any, bool]:  # fmt: skip
    """Run `descend`, with one host wait per iteration; return the centers, and whether the last pass changed no label.

    ``sums_of(centers)`` labels the points, and returns the sums and weights that `descend` needs, and the number of
    labels that changed, all on the device. ``refilled(centers, total, weight, empty)`` calls `refill`. ``origin`` (d,)
    was subtracted from the points that were added.
    """
    xp = devices.namespace(device)
    settled = xp.zeros((*centers.shape[:-2], 1, 1), dtype=bool)

    def stepped(centers: Any, total: Any, weight: Any, settled: Any) -> tuple[Any, Any]:
        total = total if origin is None else total + weight * origin
        return step(centers, total, weight, settled, enough, device)

    for _ in range(max_iter):
        total, weight, changed = sums_of(centers)
        # the step is taken before the host knows whether a cluster is empty
        moved, after = stepped(centers, total, weight, settled)
        numbers = devices.to_host(np.concatenate([xp.asarray(changed).reshape(1), weight.ravel(), after.ravel()]))
        if not numbers[0]:
            return centers, True
        empty, are_settled = numbers[1 : 1 + weight.size].reshape(weight.shape[:-1]) == 0, numbers[1 + weight.size :]
        if empty.any():
            refilled(centers, total, weight, empty)
            moved, after = stepped(centers, total, weight, settled)
            are_settled = devices.to_host(after)
        centers, settled = moved, after
        if are_settled.all():
            break
    return centers, False


def step(centers: Any, total: Any, weight: Any, settled: Any, enough: Any, device: str) -> tuple[Any, Any]:
    """Return the next centers (…, k, d), and whether each start has settled (…, 1, 1), bool.

    The parameters are those of `descend`; ``settled`` says which starts have settled before.
    """
    moved, squares = move_centers(centers, total, weight, settled, device=device)
    return moved, settled | (squares.sum(axis=(-2, -1), keepdims=True) <= enough)


@kernels.primitive
def move_centers(
    centers: np.ndarray, total: np.ndarray, weight: np.ndarray, settled: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of clusters (…, k, d), and the squared shift of each coordinate from ``centers`` (…, k, d).

    A cluster without weight, and all clusters of a start that has ``settled`` (…, 1, 1), keep their centers.
    """
    moved = np.where((weight > 0) & ~settled, total / np.maximum(weight, 1.0), centers)
    return moved, (moved - centers) ** 2


@move_centers.kernel
def _(centers: Any, total: Any, weight: Any, settled: Any, *, device: str) -> tuple[Any, Any]:
    xp, (n_centers, n_features) = devices.namespace(device), centers.shape[-2:]
    centers, total, weight = (
        xp.ascontiguousarray(array.astype(np.float64, copy=False)) for array in (centers, total, weight)
    )
    moved, squares = xp.empty(centers.shape), xp.empty(centers.shape)
    kernels.launch(
        "move_centers", kernels.blocks(moved.size, 256), 256,
        (centers, total, weight, settled.view(np.uint8), moved, squares, settled.size, n_centers, n_features),
        device=device, REAL="f64",
    )  # fmt: skip
    return moved, squares


def refill(
    labels: Any,
    total: Any,
    weight: Any,
    empty: np.ndarray,
    squares_of: Callable[[int], Any],
    weighted_point: Callable[[int], tuple[Any, float]],
) -> None:
    """Give each empty cluster the point that is farthest from its current center, as scikit-learn does.

    The labels (B, n) of B starts, the sums of the clusters (B, k, d) and their weights (B, k, 1) are changed in place.
    ``empty`` (B, k), on the host: whether a cluster has no point; a caller can get it together with other numbers.
    ``squares_of(b)`` returns the squared distances (n,) of the points to their centers in start b.
    ``weighted_point(x)`` returns point x times its weight, and the weight. A point at its center is never moved.
    """
    for b in np.flatnonzero(empty.any(axis=1)).tolist():
        squares, clusters = devices.to_host(squares_of(b)), np.flatnonzero(empty[b])
        farthest = np.argsort(-squares, kind="stable")[: len(clusters)]
        for cluster, x in zip(clusters.tolist(), farthest[squares[farthest] > NOTHING].tolist(), strict=False):
            before, (point, point_weight) = int(labels[b, x]), weighted_point(x)
            total[b, before] -= point
            weight[b, before] -= point_weight
            labels[b, x], total[b, cluster], weight[b, cluster] = cluster, point, point_weight


def label_by_products(products: Any, half_squares: Any, labels: Any, first: int, changed: Any, device: str) -> None:
    """Label n points by the nearest of k centers of each of B starts, from products of centers and points (B, k, n).

    The nearest center has the largest product minus half the square of its length, ``half_squares`` (B, k). If several
    centers are equally near, the first of them is taken. Points ``first`` … ``first`` + n - 1 of ``labels`` (B, N),
    int64, are set, and the number of labels that change is added to ``changed`` (1,), uint64. All arrays are on a GPU.
    """
    n_starts, n_centers, n_points = products.shape
    kernels.launch(
        "label_by_products", (kernels.blocks(n_points, 128), n_starts), 128,
        (products, half_squares, labels, changed, n_centers, n_points, first, labels.shape[1]),
        device=device, REAL=kernels.c_name(products.dtype),
    )  # fmt: skip


def squares_to_own(points_of: Callable[[slice], Any], centers: Any, labels: Any) -> Any:
    """Return the squared distance (n,), float64, of each point to its own center.

    ``points_of(rows)`` returns the points of a slice of rows.
    """
    xp, n = devices.namespace(devices.kind_of(labels)), len(labels)
    squares, step = xp.empty(n), BLOCK if isinstance(labels, np.ndarray) else CHUNK
    for start in range(0, n, step):
        rows = slice(start, start + step)
        apart = points_of(rows) - centers[labels[rows]]
        squares[rows] = (apart * apart).sum(axis=1)
    return squares


def sums_by_label(
    labels: Any, k: int, points_of: Callable[[slice], Any], weights: Any = None, *, device: str
) -> tuple[Any, Any]:
    """Return, for each label, the sum (…, k, d) and the weight (…, k, 1) of its points, both float64.

    They are computed by matrix products on a GPU.

    ``labels`` have shape (…, N). ``points_of(rows)`` returns the points (n, d) of a slice of rows, which are multiplied
    in their dtype. ``weights`` (N,), int64, are 1 if not given. Each product has `CHUNK` rows, and products are added
    in float64 and in order, because a single float32 product of half a million rows has an error of 7e-7. The number of
    rows does not depend on the free memory, so that the results do not depend on it either.
    """
    xp, n = devices.namespace(device), labels.shape[-1]
    n_weights, weights = (0, labels) if weights is None else (n, weights)
    total: Any = None
    weight: Any = None
    for start in range(0, n, CHUNK):
        points = points_of(slice(start, start + CHUNK))
        hot = xp.empty((*labels.shape[:-1], k, len(points)), dtype=points.dtype)
        kernels.launch(
            "weigh_labels", kernels.blocks(hot.size, 256), 256,
            (labels, weights, hot, labels.size // n, k, len(points), start, n, n_weights), device=device,
            REAL=kernels.c_name(hot.dtype),
        )  # fmt: skip
        products = (hot.reshape(-1, len(points)) @ points).reshape(*hot.shape[:-1], -1).astype(np.float64, copy=False)
        part = hot.sum(axis=-1, dtype=np.float64)
        total, weight = (products, part) if total is None else (total + products, weight + part)
    return total, weight[..., None]
