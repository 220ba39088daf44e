"""Consensus of factors: programs of many runs of a matrix factorisation become k programs, as cNMF defines them.

A run gives programs, rows of weights ≥ 0 of features: spectra of NMF, topics, ancestral populations. Programs of all
runs are points of length 1. The steps are those of cNMF (Kotliar et al. 2019):

    programs ─▶ without those far from their neighbours ─▶ k-means into k groups ─▶ median of each group, of sum 1

A program's density is its mean distance to the L nearest others, L = ``local_neighborhood_size`` × number of runs. The
silhouette of the groups of all programs, before any is left out, is the stability of k. Distances of all pairs are
computed in strips, so that 10⁵ programs need no square matrix.

A run may give several programs to a group. Groups with at most one program of each run, by the Hungarian method, were
not better: over 30 ensembles of NMF runs, the mean cosine of medians and planted programs was .980 for both.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.kmeans.distances import distances_and_silhouettes
from gpuens.kmeans.weighted import labels_of_restarts
from gpuens.labels.codes import first_objects_of, label_sizes, numbers_by_size
from gpuens.labels.features import as_features
from gpuens.labels.frames import as_pandas
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng
from gpuens.workflows.usages import fit_usages

if TYPE_CHECKING:
    import pandas as pd

COPIES = 4  # arrays as large as all programs that are in memory at the same time
LARGEST_SEED = 2**32 - 1  # largest seed of the draws of scikit-learn's KMeans


@dataclass(repr=False)
class Factors:
    """The result of `factors`: consensus programs, that of the largest group first.

    Attributes
    ----------
    programs : array (k, n_features), float64
        The median of each group of programs of length 1, divided by its sum. In the memory of the runs.
    labels : ndarray (n_programs,), int64
        The group of each program of all runs, in the order of the runs; -1 if it was left out.
    of_run : ndarray (n_programs,), int64
        The run of each program.
    densities : ndarray (n_programs,), float64
        The mean distance of each program to its nearest ones, from 0 to √2; large for a program without near
        neighbours.
    silhouette : float or None
        The mean silhouette of all programs, before any is left out, in the groups of k-means. The larger, the more
        stable are programs of this k; None for a single program.
    features : pandas.Index or None
        The names of the features, if the runs are DataFrames.
    usages : array (n_objects, k), float64, or None
        With data: non-negative weights of the programs in each object, by least squares. In the memory of the runs.
    error : float or None
        With data: the sum of the squared differences of the data and usages times programs.
    """

    programs: Any
    labels: np.ndarray
    of_run: np.ndarray
    densities: np.ndarray
    silhouette: float | None
    features: Any = None
    usages: Any = None
    error: float | None = None

    @property
    def sizes(self) -> np.ndarray:
        """The number of programs in each group, (k,) int64."""
        return np.bincount(self.labels[self.labels >= 0], minlength=len(self.programs))

    @property
    def n_programs_used(self) -> int:
        """The number of programs of all runs that are in a group."""
        return int(self.sizes.sum())

    @property
    def table(self) -> "pd.DataFrame":
        """The programs as a DataFrame (k, n_features)."""
        import pandas as pd

        return pd.DataFrame(devices.to_host(self.programs), columns=self.features)

    def __repr__(self) -> str:
        sizes, n_programs = self.sizes, len(self.labels)
        return checks.summary(
            self,
            f"{checks.counted(len(sizes), 'program')} of {self.programs.shape[1]:,} features, from {n_programs:,} "
            f"programs of {self.of_run[-1] + 1:,} runs",
            groups=f"{', '.join(map(str, sizes.tolist()))} programs",
            left_out=f"{n_programs - self.n_programs_used:,}" * (self.n_programs_used < n_programs),
            silhouette="" if self.silhouette is None else f"{self.silhouette:.3f}",
            error="" if self.error is None else f"{self.error:.5g}",
            see="programs, labels, densities, table",
        )


@takes_rng
def factors(
    runs: Any,
    k: int | None = None,
    *,
    density_threshold: float = 0.5,
    local_neighborhood_size: float = 0.3,
    data: Any = None,
    n_init: int = 10,
    random_state: Any = 1,
    rng: Any = NOT_GIVEN,
    device: str = "auto",
) -> Factors:
    """Combine the programs of several runs of NMF, a topic model or the like into k consensus programs, as cNMF does.

    All defaults are those of cNMF, and up to rounding so are the results, but for two things: program 0 is that of the
    largest group, and the starts of k-means use 10,000 programs drawn at random if there are more. Time grows with the
    square of the number of programs, memory with their number.

    Parameters
    ----------
    runs : list of arrays, DataFrames or SciPy sparse matrices (k_m, n_features)
        The programs of each run, weights ≥ 0; their scale does not matter. DataFrames are matched by the names of their
        columns. Of shares (n_objects, k_m) pass the transpose; for one partition of the objects see `gpuens.modes`.
    k : int, optional
        The number of consensus programs; None is that of the runs if all have the same.
    density_threshold : float
        Programs whose density is not below are left out; 2 keeps all. `Factors.densities` shows where outliers begin.
    local_neighborhood_size : float in (0, 1]
        Share of the number of runs: so many nearest programs, at least one, make the density.
    data : array, DataFrame or SciPy sparse matrix (n_objects, n_features), optional
        The factorised data, for `Factors.usages` and `Factors.error`.
    n_init : int
        Number of starts of k-means.
    random_state : int, None or numpy.random.Generator
        For k-means. The same seed gives the same result.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    Factors

    Raises
    ------
    ValueError, TypeError
        For fewer than two runs, runs of different features, negative weights, programs without any weight, shares that
        are not transposed, and a threshold that leaves fewer than k programs.
    MemoryError
        If four copies of all programs do not fit the memory.

    References
    ----------
    Kotliar et al., "Identifying gene expression programs of cell-type identity and cellular activity with single-cell
    RNA-Seq", eLife 8 (2019).

    Examples
    --------
    >>> import gpuens as ge
    >>> runs = [[[6, 3, 1, 0], [0, 1, 2, 7]], [[0, 1, 2, 7], [5, 3, 2, 0]], [[7, 2, 1, 0], [0, 2, 2, 6]]]
    >>> result = ge.factors(runs)
    >>> result.labels.tolist(), result.programs.round(2).tolist()
    ([0, 1, 1, 0, 0, 1], [[0.6, 0.3, 0.1, 0.0], [0.0, 0.1, 0.2, 0.7]])
    """
    threshold = checks.check_real(density_threshold, "density_threshold", above=0.0)
    share = checks.check_real(local_neighborhood_size, "local_neighborhood_size", above=0.0, at_most=1.0)
    checks.check_runs(n_init)
    generator = checks.make_generator(random_state)
    matrices, features, home, where = _read_runs(runs, device)
    sizes, n_features = [matrix.shape[0] for matrix in matrices], matrices[0].shape[1]
    n, k = sum(sizes), _resolve_k(k, sizes)
    if k > n:
        raise ValueError(f"k={k} is more than the {n} programs of all runs; ask for fewer, or pass more runs.")
    checks.check_memory(
        8 * n * (COPIES * n_features + 2 * k),
        devices.memory_budget(where),
        f"the consensus of {n:,} programs of {n_features:,} features",
        "pass fewer runs, or fewer features",
    )
    if data is not None:
        data = _read_data(data, features, n_features, where)
    points = _unit_rows(matrices, where)
    is_seed = isinstance(random_state, (int, np.integer)) and random_state <= LARGEST_SEED
    seed = int(random_state) if is_seed else int(generator.integers(2**31))

    def group(points: Any) -> Any:
        counts = np.ones(len(points), dtype=np.int64)
        return labels_of_restarts(points, counts, k, n_init, seed, generator, device=where)

    n_nearest = min(n - 1, max(1, int(share * n / (n / len(sizes)))))  # cNMF's order of operations, for equal rounding
    groups = group(points)
    densities, silhouettes = distances_and_silhouettes(points, groups, k, n_nearest, device=where)
    kept = np.flatnonzero(densities < threshold)
    if len(kept) < k:
        raise ValueError(
            f"density_threshold={threshold:g} leaves {len(kept)} of {n:,} programs, fewer than k={k}; raise it (2 "
            f"keeps all, and the densities are {densities.min():.2f} to {densities.max():.2f})."
        )
    if len(kept) < n:
        points = points[devices.namespace(where).asarray(kept)]
        groups = group(points)
    groups, programs = _medians(points, groups, k, where)
    usages, error = (None, None) if data is None else fit_usages(data, programs, device=where)
    labels = np.full(n, checks.MISSING)
    labels[kept] = groups
    return Factors(
        devices.give_back(programs, home),
        labels,
        np.repeat(np.arange(len(sizes)), sizes),
        densities,
        float(silhouettes.mean()) if k > 1 else None,
        features,
        None if usages is None else devices.give_back(usages, home),
        error,
    )


def _read_runs(runs: Any, device: str) -> tuple[list[Any], Any, devices.Home, str]:
    """Return the programs (k_m, d) of each run on the device, names of features or None, the runs' memory, the device.

    Sparse programs are CSR matrices.
    """
    if isinstance(runs, (dict, str, bytes)) or not hasattr(runs, "__iter__") or getattr(runs, "ndim", 3) != 3:
        raise TypeError(
            f"runs must be a list with the programs (k, n_features) of each run, not {type(runs).__name__}; for "
            "several k make a call for each."
        )
    runs = [as_pandas(run) for run in runs]
    if len(runs) < 2:
        raise ValueError(f"runs must be two or more, but {len(runs)} was found; a consensus needs runs to compare.")
    names = [f"run {m}" for m in range(len(runs))]
    home = devices.home_of_all(runs, names)
    where = devices.resolve(device, home)
    features = next((run.columns for run in runs if hasattr(run, "columns")), None)
    matrices: list[Any] = []
    for run, name in zip(runs, names, strict=True):
        matrix = as_features(_in_order(run, features, name), where, name=name, part=True)
        n_programs, n_features = matrix.shape
        if n_programs > n_features:
            raise ValueError(
                f"{name} has {n_programs} programs of {n_features} features; programs are rows, so pass its transpose "
                "(or, for a partition of objects by their shares, use gpuens.modes)."
            )
        if matrices and n_features != matrices[0].shape[1]:
            raise ValueError(
                f"{name} has {n_features} features and run 0 has {matrices[0].shape[1]}; all programs must be of the "
                "same features."
            )
        matrices.append(matrix)
    return matrices, features, home, where


def _in_order(values: Any, features: Any, name: str) -> Any:
    """Return a DataFrame with its columns in the order of ``features``; other values, or without names, unchanged."""
    columns = getattr(values, "columns", features)
    if features is None or columns.equals(features):
        return values
    if not (columns.is_unique and len(columns) == len(features) and columns.isin(features).all()):
        raise ValueError(
            f"{name} has other features than the runs before it; make its columns theirs, such as by "
            "DataFrame.reindex(columns=…, fill_value=0)."
        )
    return values[features]


def _read_data(data: Any, features: Any, n_features: int, where: str) -> Any:
    """Return the data (n_objects, n_features) on the device; a sparse matrix is CSR."""
    matrix = as_features(_in_order(as_pandas(data), features, "data"), where, name="data", part=True)
    if matrix.shape[1] != n_features:
        raise ValueError(
            f"data have {matrix.shape[1]} features and the programs have {n_features}; pass the same ones."
        )
    return matrix


def _resolve_k(k: Any, sizes: list[int]) -> int:
    """Return the number of consensus programs; ``sizes`` are the numbers of programs of the runs."""
    if k is not None:
        return checks.check_integer(k, "k", minimum=1)
    if len(set(sizes)) > 1:
        raise ValueError(f"k is not given, and the runs have {min(sizes)} to {max(sizes)} programs; pass k=….")
    return sizes[0]


def _unit_rows(runs: list[Any], device: str) -> Any:
    """Return the programs of all runs, each of length 1, as an array (n, d), float64, on the device."""
    starts = np.cumsum([0] + [run.shape[0] for run in runs])
    points = devices.namespace(device).empty((int(starts[-1]), runs[0].shape[1]))
    for run, start in zip(runs, starts.tolist(), strict=False):
        points[start : start + run.shape[0]] = run.toarray() if hasattr(run, "tocsr") else run
    smallest, largest = points.min(axis=1), points.max(axis=1)
    for is_bad, fault in (
        (smallest < 0, "negative weights; programs have weights ≥ 0, as those of NMF and topic models do"),
        (largest == 0, "no weight other than 0; leave it out"),
    ):
        bad = np.flatnonzero(devices.to_host(is_bad))
        if len(bad):
            run = int(np.searchsorted(starts, bad[0], side="right")) - 1
            raise ValueError(f"run {run}, program {bad[0] - starts[run]} (and {len(bad) - 1} more) has {fault}.")
    points /= largest[:, None]  # squares neither overflow nor vanish
    points /= np.sqrt((points * points).sum(axis=1))[:, None]
    return points


def _medians(points: Any, groups: Any, k: int, device: str) -> tuple[np.ndarray, Any]:
    """Return the groups (n,), host, numbered by size, and the medians (k, d) of their points, divided by their sums."""
    xp = devices.namespace(device)
    numbers = numbers_by_size(label_sizes(groups, k), lambda: first_objects_of(groups, k))
    labels: np.ndarray = numbers[devices.to_host(groups)]
    programs = xp.zeros((k, points.shape[1]))
    n_groups = int(labels.max()) + 1
    if n_groups < k:
        checks.warn(f"only {n_groups} of k={k} groups have programs, as the others would be equal; ask for fewer.")
    for j in range(n_groups):
        programs[j] = xp.median(points[xp.asarray(np.flatnonzero(labels == j))], axis=0)
    sums = programs.sum(axis=1, keepdims=True)
    programs /= xp.where(sums > 0, sums, 1.0)
    return labels, programs
