"""k-means of objects with features on nested samples; each sample has twice as many objects as the previous sample.

    4,096 objects ─▶ k-means++ ─▶ Lloyd ─▶ 8,192 (with those 4,096) ─▶ Lloyd ─▶ … ─▶ 65,536 ─▶ Lloyd ─▶ all objects

If there are at most 20,000 objects, the only sample has all objects, which is plain k-means. If there are more objects,
most iterations use small samples and are therefore fast, and each larger sample moves the centroids only slightly. The
inertia of all objects is larger by a share of about k / s if the centroids are fitted to a sample of s objects instead
of all objects. Therefore, the last sample has at least `PER_CLUSTER` objects for each centroid.

On the CPU, the nearest centroid is found by scores, which are float32 products of shifted and scaled points. If several
centroids may have the best score within the bound on rounding errors, squared distances in float64 decide. A label
therefore does not depend on the rounding errors of products, which change with the number of threads and with the other
objects of a block.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from gpuens.kmeans import lloyd
from gpuens.kmeans.plus_plus import n_trials, plus_plus
from gpuens.kmeans.points import MOST, power
from gpuens.labels.features import largest_size
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.native import cpu

ALL_UP_TO = 20_000  # largest number of objects that are clustered without samples
FIRST = 2**12  # smallest number of objects in the first sample
LAST = 2**16  # smallest number of objects in the last sample
FIRST_PER_CLUSTER = 2**5  # smallest number of objects per cluster in the first sample
PER_CLUSTER = 2**8  # smallest number of objects per cluster in the last sample
TOLERANCE = 1e-3  # replaces `lloyd.TOLERANCE` for samples; larger, because a sample has a sampling error
# largest number of iterations on each sample after the first sample; with 40 iterations instead of 20, the inertia of
# the data set Covtype decreases only by a few thousandths
ITERATIONS = 20
# a larger sample has objects unlike the previous sample if its inertia per object is this many times larger
RISE = 1.1
TURNED = 2**11  # number of points transposed at a time, which fit the cache


# products and squares may overflow for an object far outside the first sample; then distances in float64 decide
far_objects = np.errstate(over="ignore", invalid="ignore")


class Frame(NamedTuple):
    """The scale and the mean of coordinates, which are the features times ``scale``, a power of 2.

    ``mean`` (d,) is the mean of the coordinates, which is subtracted before products are computed. ``spread`` is the
    mean variance of the coordinates.
    """

    scale: float
    mean: Any
    spread: float

    @classmethod
    def of(cls, points: Any) -> "Frame":
        """Return the frame in which no coordinate of the given points (n, d) is above 1."""
        scale = power(largest_size(points))
        frame = cls(scale, points.mean(axis=0, dtype=np.float64) * scale, 0.0)
        reach, squares = 0.0, 0.0
        for start in range(0, len(points), lloyd.CHUNK):
            moved = frame.moved(points[start : start + lloyd.CHUNK])
            largest, added = devices.floats(abs(moved).max(), (moved * moved).sum())
            reach, squares = max(reach, largest), squares + added
        factor = min(power(reach), 2.0**MOST / scale)
        return cls(scale * factor, frame.mean * factor, squares / points.size * factor * factor)

    def moved(self, points: Any, dtype: Any = np.float64) -> Any:
        """Return the points (n, d) times the scale minus the mean; the precision is at least that of ``dtype``."""
        wide = np.result_type(points.dtype, dtype)
        moved = points * wide.type(self.scale)
        moved -= self.mean.astype(wide)
        return moved

    def around_mean(self, points: Any, dtype: Any) -> Any:
        """Return the transposed points (d, n), scaled and minus the mean."""
        turned = devices.namespace(devices.kind_of(points)).empty(points.shape[::-1], dtype=dtype)
        step = TURNED if isinstance(points, np.ndarray) else lloyd.CHUNK
        for start in range(0, len(points), step):
            turned[:, start : start + step] = self.moved(points[start : start + step], dtype).T
        return turned


class Centroids(NamedTuple):
    """Centroids (k, d), float64, in the coordinates of the frame; the mean is not subtracted."""

    centers: Any
    frame: Frame
    device: str = "cpu"

    @property
    def positions(self) -> Any:
        """The centroids (k, d), float64, in the coordinates of the points."""
        return self.centers / self.frame.scale

    @far_objects
    def predict(self, points: Any) -> Any:
        """Return the number (n,) of the centroid that is nearest to each point (n, d).

        If several centroids are equally near, return the first of them.
        """
        points = dense(points)
        labels = devices.namespace(self.device).full(len(points), -1, dtype=np.int64)
        around = self.frame.around_mean(points, precision(self.device))
        nearest_of(points, around, self.centers, self.frame, labels, device=self.device)
        return labels


def dense(points: Any) -> Any:
    """Return sparse or dense points (n, d) as a dense C-contiguous array."""
    points = points.toarray() if hasattr(points, "toarray") else points
    return devices.namespace(devices.kind_of(points)).ascontiguousarray(points)


def precision(device: str) -> Any:
    """Return the dtype in which products of points and centroids are computed.

    It is float32 on the CPU, where distances in float64 decide doubtful cases, and float64 on a GPU.
    """
    return np.float32 if device == "cpu" else np.float64


def sample_sizes(n: int, k: int) -> list[int]:
    """Return the sizes of the samples of n objects for k clusters; each except the last is twice the previous size."""
    if n <= ALL_UP_TO:
        return [n]
    last = min(n, max(LAST, PER_CLUSTER * k))
    sizes = [min(last, max(FIRST, FIRST_PER_CLUSTER * k))]
    while sizes[-1] < last:
        sizes.append(min(last, 2 * sizes[-1]))
    return sizes


def needed(n: int, q: int, itemsize: int, k: int, *, sizes: list[int], copied: bool, device: str = "cpu") -> int:
    """Return the bytes of memory that k-means of n objects with q features needs.

    ``copied`` says whether the samples are copies of the features.
    """
    n_bytes: int = sizes[-1] * (q * (itemsize * copied + np.dtype(precision(device)).itemsize) + 8)
    n_bytes += 8 * n * (sizes[-1] < n)  # the array of object indices that a sample is drawn from
    begun = sizes[-1] * (8 * q + (40 if device == "cpu" else 18 * n_trials(k)))
    return n_bytes + max(begun, needed_at_once(n, q, k, device))


def needed_at_once(n: int, q: int, k: int, device: str) -> int:
    """Return the bytes of memory that finding the nearest centroids of one block of n objects needs."""
    return min(lloyd.CHUNK, n) * (12 * q if device == "cpu" else 24 * q + 16 * k)


@far_objects
def fit(
    at: Callable[[Any], Any],
    n: int,
    k: int,
    rng: np.random.Generator,
    *,
    n_init: int,
    max_iter: int,
    init: str,
    sizes: list[int] | None = None,
    device: str = "cpu",
) -> Centroids:
    """Fit k centroids to n objects, and return the centroids.

    ``at`` returns the features of the objects with the given positions, or in the given slice. ``sizes`` are the sizes
    of the samples; the default is `sample_sizes`. k-means is started ``n_init`` times on the first sample, and the best
    result continues on the larger samples. If a larger sample has objects far from all objects of the first sample,
    iterations do not move centroids to these objects. Then, k-means is started ``n_init`` times on this sample, too.
    """
    sizes = sizes or sample_sizes(n, k)
    points = dense(at(slice(None) if sizes == [n] else rng.choice(n, sizes[-1], replace=False)))
    frame = Frame.of(points[: sizes[0]])
    enough = frame.spread * (lloyd.TOLERANCE if sizes == [n] else TOLERANCE)
    largest = _Sample(points, frame.around_mean(points, precision(device)), frame, enough, device)

    def starts(sample: _Sample) -> list[_Fit]:
        return [sample.fitted(sample.begun(k, rng, init), max_iter) for _ in range(n_init)]

    best = min(starts(largest.first_points(sizes[0])), key=attrgetter("after"))
    for size in sizes[1:]:
        sample = largest.first_points(size)
        fits = [sample.fitted(best.centers, min(max_iter, ITERATIONS))]
        if not fits[0].before <= RISE * best.after:
            fits += starts(sample)
        best = min(fits, key=attrgetter("after"))
    return Centroids(best.centers, frame, device)


class _Fit(NamedTuple):
    """The centroids, and the inertia per object before and after the iterations."""

    centers: Any
    before: float
    after: float


class _Sample(NamedTuple):
    """A sample of points (n, d), its transposed points minus the mean, and the shift below which iterations end.

    The transposed points (d, n or more) begin with those of the sample.
    """

    points: Any
    around: Any
    frame: Frame
    enough: float
    device: str

    def first_points(self, size: int) -> "_Sample":
        """Return the sample that consists of the first ``size`` points of this sample."""
        return self._replace(points=self.points[:size])

    def begun(self, k: int, rng: np.random.Generator, init: str) -> Any:
        """Choose k points as initial centroids, by k-means++ or at random; return their coordinates in the frame."""
        xp, n = devices.namespace(self.device), len(self.points)
        if init == "random":
            places = xp.asarray(rng.choice(n, k, replace=False))
        else:
            first, uniform = rng.integers(n, size=1), rng.random((1, k - 1, n_trials(k)))
            turned = self.frame.around_mean(self.points, np.float64)
            places = plus_plus(turned, xp.ones(n), first, uniform, device=self.device)[0]
        return self.points[places] * np.float64(self.frame.scale)

    def fitted(self, centers: Any, max_iter: int) -> _Fit:
        """Run Lloyd's iterations from the given initial centroids; return the final centroids."""
        if self.device != "cpu":
            return self._fitted_on_gpu(centers, max_iter)
        points, n = self.points, len(self.points)
        centers = np.array(centers, dtype=np.float64, order="C")
        before, after = cpu.fit_sample(points, self.around, self.frame[:2], self.enough, max_iter, centers)
        return _Fit(centers, before / n, after / n)

    def _fitted_on_gpu(self, centers: Any, max_iter: int) -> _Fit:
        points, frame, device = self.points, self.frame, self.device
        labels = devices.namespace(device).full(len(points), -1, dtype=np.int64)
        spent: list[Any] = []

        def moved(rows: Any) -> Any:
            return frame.moved(points[rows])

        def inertia(centers: Any) -> Any:
            return _squares(points, frame, centers, labels).sum()

        def sums_of(centers: Any) -> tuple[Any, Any, Any]:
            changed = nearest_of(points, self.around, centers, frame, labels, device=device)
            if not spent:
                spent.append(inertia(centers))
            return *lloyd.sums_by_label(labels, len(centers), moved, device=device), changed

        def refilled(centers: Any, total: Any, weight: Any, empty: np.ndarray) -> None:
            lloyd.refill(
                labels[None], total[None], weight[None], empty[None],
                lambda _: _squares(points, frame, centers, labels), lambda x: (moved(x), 1.0),
            )  # fmt: skip

        centers, _ = lloyd.descend_on_gpu(centers, self.enough, sums_of, refilled, max_iter, frame.mean, device=device)
        before, after = devices.floats(spent[0], inertia(centers))
        return _Fit(centers, before / len(points), after / len(points))


def _squares(points: Any, frame: Frame, centers: Any, labels: Any) -> Any:
    """Return the squared distance (n,) of each labelled point to its centroid."""
    return lloyd.squares_to_own(lambda rows: points[rows] * np.float64(frame.scale), centers, labels)


# --- nearest centroids ------------------------------------------------------------------------------------------------


@kernels.primitive
def nearest_of(points: Any, around: Any, centers: Any, frame: Frame, labels: Any) -> int:
    """Label points (n, d) by their nearest centers (k, d); return the number of labels that changed.

    ``around`` (d, n or more), float32, are the transposed points minus the mean of the frame.
    """
    around = np.ascontiguousarray(around, dtype=precision("cpu"))
    return cpu.nearest_of_sample(dense(points), around, frame[:2], np.ascontiguousarray(centers), labels)


@nearest_of.kernel
def _(points: Any, around: Any, centers: Any, frame: Frame, labels: Any, *, device: str) -> Any:
    """Label the points by matrix products; the number of changed labels stays on the device."""
    offsets = centers - frame.mean
    half_squares, changed = (offsets * offsets).sum(axis=1) / 2, devices.namespace(device).zeros(1, dtype=np.uint64)
    for start in range(0, len(points), lloyd.CHUNK):
        products = offsets @ around[:, start : min(len(points), start + lloyd.CHUNK)]
        lloyd.label_by_products(products[None], half_squares, labels[None], start, changed, device)
    return changed[0]
