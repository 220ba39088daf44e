"""A GPU and the CPU agree: on the result of each call of a primitive in real runs, and on the results of the runs.

    pytest -m gpu tests/kernels/test_gpu_parity.py   on a machine with a GPU; `python bench/gpu.py` makes a table of it

During a run, every primitive that is called for the device is called for the CPU too, on copies of its arguments, and
the results and changed arguments are compared; so are the results of whole linkages, estimators, scores and base
clusterings, for sizes with incomplete blocks, all dtypes of codes, unit weights and real weights. All comparisons are
exact, except sums of real weights over objects (rounding) and results of k-means with many objects.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
from conftest import METHODS, structured_labels, thorough
from scipy.sparse import diags_array

import gpuens as ge
from gpuens.kmeans.weighted import lloyd, restarts
from gpuens.labels import incidence
from gpuens.labels.codes import cast_codes
from gpuens.labels.encoding import encode_columns, mark_labels, write_codes
from gpuens.labels.incidence import label_histograms
from gpuens.labels.rows import Rows, as_rows, by_first_row
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.neighbors.refinement import refine
from gpuens.neighbors.walk import walk
from gpuens.partition import Work, average_linkage, single_linkage
from gpuens.partition.embeddings import unit_points32
from gpuens.partition.label_kmeans import nearest_centroids
from gpuens.partition.linkage import few_rows
from gpuens.partition.linkage.nearest import Shortlists, nearest_index, nearest_lists
from gpuens.partition.linkage.partitioners import Linkage
from gpuens.partition.mixture import posteriors
from gpuens.partition.soft_memberships import memberships
from gpuens.reduction.ca_tree import grow
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime import device as devices
from gpuens.runtime import kernels
from gpuens.runtime.exponentials import exponentials
from gpuens.similarity.coupled import coupling
from gpuens.similarity.diagonal import Diagonal, coassociation_tile
from gpuens.similarity.full import Full
from gpuens.similarity.neighborhood import Neighborhoods
from gpuens.similarity.observed import Observed
from gpuens.similarity.ranks import rank_correlation
from gpuens.similarity.reference_sets import reference_sets

DTYPES = ("uint8", "uint16", "uint32")
SIZES = {"emulated": (1, 33, 120), "cuda": (1, 31, 33, 1000, 100_003)}
MANY = 1000  # with this number of objects or more, clusterings with uint16 codes have more than 255 clusters
# up to this number of objects, every step of the linkage is compared; for more objects, only the result
LOCKSTEP_UP_TO = 2000
ALL_PAIRS_UP_TO = 1000  # up to this number of objects, checks use matrices of all pairs
ROUNDING = {  # tolerances of means, exponentials and float32, for any number of objects
    "begin": 1e-9, "landmark_shares": 1e-5, "mean_variance": 1e-5, "unit_points32": 1e-7,
}  # fmt: skip
ROUNDING_OF_SUMS = {  # tolerance for each added object, if sums are in another order
    "landmark_products": 1e-13, "nearest_by_shares": 1e-13,
}  # fmt: skip
# this share of labels may differ, because rounding decides between two centers at nearly equal distances
NEAR_TIES = 1e-4

Record = dict[str, Any]


@pytest.mark.parametrize("dtype", ["uint8", *thorough(*DTYPES[1:])])
@pytest.mark.parametrize("device", [*thorough("emulated", "stand-in"), pytest.param("cuda", marks=pytest.mark.gpu)])
def test_parity(device, dtype, request):
    if device == "stand-in":
        request.getfixturevalue("fake_cupy")
    sizes = SIZES["cuda" if device == "cuda" else "emulated"]
    if "gpu_stack" in sys.modules:  # the CPU takes the place of the GPU
        sizes = [n for n in sizes if n < MANY] + [MANY if dtype == "uint16" else 500]
    rows = check(list(CHECKS), sizes, "emulated" if device == "emulated" else "cuda", dtypes=[dtype])["rows"]
    assert [row for row in rows if not row["held"]] == []
    if dtype == DTYPES[0]:  # checks that use no codes run once, with the first dtype
        assert {kernel for row in rows for kernel in row["kernels"]} == set(kernels.functions())
        assert {row["what"] for row in rows} >= set(kernels.primitives())


def check(
    groups: list[str], sizes: Any, device: str, *, dtypes: Any = DTYPES, allowance: float = float("inf")
) -> Record:
    """Run groups of `CHECKS` for all sizes, dtypes and weights. After ``allowance`` seconds, no new comparison begins.

    Each row names the comparison, how often it was made, the launched kernels, and whether it held. The CPU links few
    rows by lists, as the device does, because linkage by all pairs counts rounds and searches differently.
    """
    rows: dict[tuple, Record] = {}
    end = time.monotonic() + allowance
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # tiny ensembles have constant clusterings and few clusters
        patch.setattr(few_rows, "MOST_ROWS", 0)
        for n_objects, dtype, weights in ((n, dtype, w) for n in sizes for dtype in dtypes for w in ("ones", "real")):
            case = Case(device, n_objects, dtype, weights, rows, end)
            for run in (run for group in groups for run in CHECKS[group]):
                case.attempt(run)
    return {"rows": list(rows.values())}


class OutOfTime(Exception):
    """The time for comparisons is over."""


class Case:
    """One combination of size, dtype and kind of weights.

    Until the time ``end``, each comparison adds a row to ``rows``.
    """

    def __init__(
        self, device: str, n_objects: int, dtype: str, weights: str, rows: dict[tuple, Record], end: float
    ) -> None:
        self.device, self.n_objects, self.dtype, self.weights, self.rows = device, n_objects, dtype, weights, rows
        self.end = end
        self.rng = np.random.default_rng(n_objects)
        self.launched: list[str] = []
        classes = min(n_objects, 200 if dtype == "uint16" and n_objects >= MANY else 5)
        self.labels, _ = structured_labels(n_objects, 5, classes, missing=0.1, seed=n_objects)
        self.ensemble = recoded(ge.Ensemble(list(self.labels.T)), dtype)

    def of_fewer_rows(self) -> Any:
        """Return labels with less noise, so that 100,003 objects have 3,302 distinct rows instead of 11,427.

        The check of linkages links the many rows, with unit weights and real weights. If every estimator did so, a
        processor in place of a GPU would need minutes, without launching any other kernel.
        """
        labels, _ = structured_labels(self.n_objects, 5, 5, noise=0.05, missing=0.1, seed=self.n_objects)
        return recoded(ge.Ensemble(list(labels.T)), self.dtype)

    @property
    def small(self) -> bool:
        return self.n_objects <= LOCKSTEP_UP_TO

    def attempt(self, run: Callable[["Case"], None]) -> None:
        self.launched.clear()
        with lockstep(self):
            try:
                self.in_time()
                run(self)
            except OutOfTime:
                key = run.__name__, self.dtype, self.n_objects, self.weights
                self.rows[key] = self.named(key) | {"skipped": "left out, as a whole or in part: no time was left"}
            except Exception as error:
                reason = (str(error).strip().splitlines() or ["no message"])[0]
                self.note(run.__name__, set(self.launched), f"{type(error).__name__}: {reason}")

    def in_time(self) -> None:
        if time.monotonic() > self.end:
            raise OutOfTime

    def note(self, what: str, launched: set[str], why: str | None) -> None:
        key = what, self.dtype, self.n_objects, self.weights
        row = self.rows.setdefault(key, self.named(key) | {"kernels": [], "compared": 0, "held": True})
        row["compared"] += 1
        row["kernels"] = sorted({*row["kernels"], *launched})
        if why is not None:
            row |= {"held": False, "why": why}

    @staticmethod
    def named(key: tuple) -> Record:
        return dict(zip(("what", "dtype", "size", "weights"), key, strict=True))

    def same(self, what: str, of: Callable[[str], Any], tolerance: float = 0.0, share: float = 0.0) -> None:
        """Compare ``of(device)`` with ``of("cpu")`` and record the result; see `difference`."""
        self.in_time()
        before = len(self.launched)
        found = of(self.device)
        launched = set(self.launched[before:])
        self.note(what, launched, difference(found, of("cpu"), tolerance, share))

    def of_clusters(self, n_clusters: int) -> np.ndarray:
        """Return the cluster weights of the case: all ones, or random real numbers."""
        if self.weights == "ones":
            return np.ones(n_clusters, dtype=np.int64)
        return np.random.default_rng(5).uniform(0.01, 1.0, n_clusters)

    def groups(self) -> tuple[Any, np.ndarray]:
        """Return the distinct rows, with codes of the case's dtype, and their sizes."""
        reduced = core_groups(Rows(list(self.labels.T)))
        return recoded(reduced.ensemble, self.dtype), reduced.counts


def recoded(ensemble: Any, dtype: str) -> Any:
    """Return an ensemble with codes of a given dtype, even if a smaller dtype would do."""
    codes = ensemble.codes.astype(dtype, order="F")
    codes[ensemble.codes == ensemble.missing_code] = np.iinfo(dtype).max
    ensemble._copies = {"cpu": codes}
    return ensemble


def leaves(value: Any) -> Iterator[Any]:
    """Yield the arrays and numbers of nested tuples, lists and dicts, as host arrays."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)
    else:
        yield devices.to_host(value) if hasattr(value, "shape") else value


def difference(found: Any, expected: Any, tolerance: float = 0.0, share: float = 0.0) -> str | None:
    """Return a description of the difference between two results, or None if they agree.

    Values may differ by ``tolerance``, and in each array a ``share`` of the values may be different.
    """
    pairs = list(zip(leaves(found), leaves(expected), strict=True))
    for a, b in pairs:
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return f"shape {a.shape} instead of {b.shape}"
        if tolerance == 0.0:
            apart = int(np.count_nonzero(~((a == b) | ((a != a) & (b != b)))))
            if apart > share * a.size:
                return f"{apart:,} of {a.size:,} values differ"
        elif not np.allclose(a, b, rtol=0, atol=tolerance, equal_nan=True):
            return f"values differ by up to {np.abs(a - b).max():.1e}"
    return None


# --- both versions of every primitive, on the same arguments ----------------------------------------------------------


@contextmanager
def lockstep(case: Case) -> Iterator[None]:
    """Inside the context, record launches and compare each primitive called for a device with its CPU version."""
    real, function = kernels.Primitive.__call__, kernels.function

    def noted(name: str, device: str, **macros: str) -> Callable:
        case.launched.append(name)
        return function(name, device, **macros)

    def call(self: Any, *args: Any, device: str = "cpu", **options: Any) -> Any:
        name = self.__name__
        drawn = name == "begin" and args[0].dtype == np.float32  # rounding may decide which point is drawn
        if device == "cpu" or drawn or name in ("nearest_index", "reference_sets"):
            return real(self, *args, device=device, **options)
        if name in IN_LINKAGE and not case.small:
            return real(self, *args, device=device, **options)
        given = host_copy(args)
        expected = real(self, *given, **options)
        before = len(case.launched)
        result = real(self, *args, device=device, **options)
        launched = set(case.launched[before:])
        seen = COMPARED.get(name, lambda result, *args: result)
        tolerance = rounding_of_cluster_sums(*given) if name == "cluster_sums" else ROUNDING.get(name, 0.0)
        tolerance += len(given[0]) * ROUNDING_OF_SUMS[name] if name in ROUNDING_OF_SUMS else 0.0
        share = NEAR_TIES if name in ("nearest_centers", "restarts") else 0.0
        why = difference(seen(result, *host_copy(args)), seen(expected, *given), tolerance, share)
        case.note(name, launched, why)
        return result

    kernels.Primitive.__call__, kernels.function = call, noted
    try:
        yield
    finally:
        kernels.Primitive.__call__, kernels.function = real, function


def host_copy(value: Any) -> Any:
    if isinstance(value, tuple):
        copies = [host_copy(item) for item in value]
        return type(value)(*copies) if hasattr(value, "_fields") else tuple(copies)
    if not hasattr(value, "shape") or isinstance(value, (np.generic, type)):
        return value
    # keep the columns of codes contiguous
    return np.array(devices.to_host(value.T)).T if value.ndim == 2 and value.flags.f_contiguous else own(value)


def own(value: Any) -> np.ndarray:
    return np.array(devices.to_host(value))


def rounding_of_cluster_sums(codes: Any, offsets: Any, values: np.ndarray) -> float:
    return 0.0 if values.dtype.kind in "iu" else values.size * float(np.abs(values).max(initial=0.0)) * 1e-15


def listed(lists: Any) -> tuple:
    """Return lists of neighbours with 0 in place of the similarities behind the last entry, which are undefined."""
    return lists.ids, np.where(lists.ids >= 0, lists.similarities, 0.0), lists.bound, lists.bound_hash


def listed_for(queries: np.ndarray, lists: Any, compared: Any, numbers: np.ndarray) -> tuple:
    """Return the lists of the queries of a search, the first numbers[1] of ``queries``."""
    return listed(type(lists)(*(array[queries[: numbers[1]]] for array in lists)))


def united(kept: np.ndarray, absorbed: Any, n_pairs: Any, n_merges: Any, most: int) -> np.ndarray:
    """Return the unions of a round: the last n_pairs[0] of the first n_merges[0] merges."""
    return kept[n_merges[0] - n_pairs[0] : n_merges[0]]


def found_in(state: Any) -> tuple:
    """Return the nearest regions of active regions, and the sorted regions without a known nearest one."""
    active, counts = state.active[: state.counts[0]], state.counts[:5]  # the count of comparisons is not compared
    nearest = state.nearest[active]
    similarity = np.where(nearest >= 0, state.nearest_similarity[active], 0.0)
    return nearest, similarity, np.sort(state.unknown[: state.counts[1]]), state.partner[active], counts


def paired_in(state: Any) -> tuple:
    merges, survivors = state.counts[4], state.survivors[: state.counts[0]]
    return state.kept[:merges], state.absorbed[:merges], state.merged_at[:merges], survivors, state.into


def histograms(regions: Any, some: np.ndarray) -> tuple:
    """Return the histograms of the given regions in a common layout, because each device has a layout of its own."""
    starts, lengths = regions.start[some].tolist(), regions.length[some].tolist()
    places = [np.arange(start, start + length) for start, length in zip(starts, lengths, strict=True)]
    at = np.concatenate([np.empty(0, dtype=np.int64), *places])
    return regions.clusters[at], regions.counts[at], regions.length[some], regions.size[some]


IN_LINKAGE = ("look_up", "take_first_listed", "pair_up", "update_lists", "merge_histograms", "move_histograms",
              "search", "offer_listed", "contract", "search_general", "search_observed",
              "merge_affinities")  # fmt: skip
COMPARED: dict[str, Callable] = {
    "nearest_centers": lambda _, points, counts, centers, labels: labels,  # devices sum in float32
    "landmark_shares": lambda _, ids, squares, *args: squares,
    "nearest_by_shares": lambda found, *args: (found, args[-1]),
    "update_memberships": lambda _, graph, objects, terms, beta, *args: args,
    "look_up": lambda _, state, *args: found_in(state),
    "take_first_listed": lambda _, rows, n_rows, state, lists, *args: (found_in(state), listed(lists)),
    "pair_up": lambda _, state, *args: (found_in(state), paired_in(state)),
    "update_lists": lambda _, state, regions, weights, lists, *args: (found_in(state), listed(lists)),
    "merge_histograms": lambda _, regions, kept, *args: histograms(regions, united(kept, *args)),
    "move_histograms": lambda _, regions, roomy, live: histograms(roomy, live),
    "search": lambda _, queries, *args: listed_for(queries, *args[-3:]),
    "search_general": lambda _, queries, *args: listed_for(queries, *args[-3:]),
    "search_observed": lambda _, queries, *args: listed_for(queries, *args[-3:]),
    "merge_affinities": lambda _, affinities, kept, *args: affinities[united(kept, *args)],
    "offer_listed": lambda unsure, component, lists, rows, edges: (unsure, edges),
    # centers have the rounding errors of the points
    "restarts": lambda found, *args: by_first_row(devices.to_host(found[0])),
    "soft_memberships": lambda _, soft, table, sums: sums,
    # if an edge is chosen twice, a device may omit either of the two copies
    "contract": lambda result, *_: (result[0], int(result[1].sum())),
}


# --- runs that call the primitives ------------------------------------------------------------------------------------


def products(case: Case) -> None:
    ens, device = case.ensemble, case.device
    codes, offsets, n = ens.codes_on(device), ens.offsets, case.n_objects
    incidence.row_sums(codes, offsets, case.rng.standard_normal(ens.n_clusters), device=device)
    incidence.row_lookups(codes, offsets, case.rng.standard_normal((ens.n_clusters, 3)), device=device)
    of_rows = case.rng.integers(1, 100, n) if case.weights == "ones" else case.rng.standard_normal(n)
    incidence.cluster_sums(codes, offsets, of_rows, device=device)


def intersections(case: Case) -> None:
    w = None if case.weights == "ones" else case.rng.random(case.n_objects) + 0.1
    tolerance = 0.0 if w is None else 1e-14 * case.n_objects
    count = ge.contingency.intersections
    case.same("contingency.intersections", lambda device: count(case.ensemble, w, device=device), tolerance)
    entropy = ge.contingency.entropy
    case.same("contingency.entropy", lambda device: entropy(case.ensemble, w, device=device), 100 * tolerance)


def pairs(case: Case) -> None:
    if case.n_objects < 2:
        return
    rows, exact = Rows.of(*case.groups(), "cpu"), case.small
    for missing in ("ignore", "zero"):
        for some in (True, False) if exact else (False,):

            def counts(device: str, missing: str = missing, some: bool = some) -> Any:
                return ge.evidence.pairs(rows, missing=missing, exact=some, n_pairs=3000, device=device).counts

            case.same("evidence.pairs", counts)


def encoded(case: Case) -> None:
    def codes(device: str) -> Any:
        if device == "cpu":
            columns = list(np.ascontiguousarray(case.labels.T))
            return cast_codes(encode_columns(columns, list(range(len(columns))))[0], np.dtype(case.dtype))
        labels = devices.namespace(device).asarray(case.labels if case.weights == "ones" else case.labels.T.copy())
        labels = labels.T if case.weights == "ones" else labels
        tables, ranks = mark_labels(labels, 32, device=device)
        return write_codes(labels, tables, ranks, case.dtype, device=device)

    case.same("encode_columns", codes)


def tiles(case: Case) -> None:
    codes = case.ensemble.codes_on(case.device)
    weights = case.of_clusters(case.ensemble.n_clusters)
    coassociation_tile(codes[:70], codes[:3000], case.ensemble.offsets, weights, device=case.device)


def coupled_blocks(case: Case) -> None:
    w = None if case.weights == "ones" else case.of_clusters(case.ensemble.n_clusterings)
    case.same("coupled_clusters", lambda device: ge.similarity.coupled_clusters(case.ensemble, w, device=device))

    def tile(device: str) -> Any:
        rows = as_rows(case.ensemble, device)
        return ge.similarity.Coupled(w)(rows).tile(rows, 0, 70)

    case.same("a tile of coupled similarities", tile)


def neighborhoods(case: Case) -> None:
    rows, sizes = case.groups()
    blocks, some = coupling(Rows.of(rows, sizes, "cpu"), None), np.arange(len(rows))[:70]

    def counted(device: str) -> Any:
        on = Rows.of(rows, sizes, device)
        near = Neighborhoods(on, blocks, None)
        bits = near.bits(rows.codes_on(device)[: len(some)])
        common = near.common(some, bits, some, near.planes(bits))
        return near.threshold, near.own, common, near.counts_in(some, bits), near.sums(on, np.arange(len(rows)) % 3)(on)

    case.same("Neighborhoods", counted)


def label_space(case: Case) -> None:
    ens, device, xp = case.ensemble, case.device, devices.namespace(case.device)
    cost, const = case.rng.standard_normal((ens.n_clusters, 9)), case.rng.standard_normal(9)
    nearest, _ = nearest_centroids(ens.codes_on(device), ens.offsets, cost, const, device=device)
    counts = xp.asarray(case.rng.integers(1, 100, case.n_objects))
    label_histograms(ens.codes_on(device), ens.offsets, counts, nearest, 9, device=device)
    sums, likely = -40 * case.rng.random((case.n_objects, 9)), -case.rng.random(9)

    def shares(device: str) -> Any:
        return posteriors(devices.namespace(device).asarray(sums.copy()), likely, 2.0**50, device=device)

    case.same("posteriors", shares)
    exponents = -40 * case.rng.random(case.n_objects)
    case.same("exponentials", lambda device: exponentials(devices.namespace(device).asarray(exponents), device=device))


def neighbors(case: Case) -> None:
    """Compare the walk, and the refinement of random classes, of a chain of objects; a row has one or several."""
    rows, sizes = case.groups()
    weights = np.ones(case.n_objects - 1) if case.weights == "ones" else case.rng.random(case.n_objects - 1) + 0.1
    chain = diags_array([weights, weights], offsets=[-1, 1], shape=(case.n_objects, case.n_objects)).tocsr()
    graph, row_of = ge.Graph.of(chain), np.repeat(np.arange(len(sizes)), sizes)
    classes = case.rng.integers(3, size=case.n_objects)
    ones = np.ones(case.n_objects, dtype=np.int64)
    case.same("walk", lambda device: walk(Rows.of(rows.take(row_of), ones, device), graph))
    case.same(
        "refinement", lambda device: refine(Rows.of(rows, sizes, device), row_of, graph, classes, 3, max_rounds=3)
    )


def soft_correspondence(case: Case) -> None:
    """Compare soft correspondence on weighted label rows, and on soft clusterings beside labels."""
    from gpuens.partition.soft_correspondence import soft_correspondence

    rows, sizes = case.groups()
    if case.weights == "real":
        soft = [np.random.default_rng(7).dirichlet(np.ones(k), size=case.n_objects) for k in (2, 5)]
        rows, sizes = SoftEnsemble([*case.labels.T[:2], *soft]), np.ones(case.n_objects, dtype=np.int64)

    def found(device: str) -> Any:
        rng = np.random.default_rng(8)
        on = Rows.of(rows, sizes, device)
        reached = soft_correspondence(on, 3, n_init=2, max_iter=5, rng=rng)
        return memberships(reached.table, on), reached.table, reached.objective

    case.same("soft_correspondence", found)


def mapping(case: Case) -> None:
    from gpuens.similarity.mapping import mapping_coefficients, points_of

    n, n_neighbors = case.n_objects, min(9, case.n_objects - 1)
    if n_neighbors < 1 or not case.small:
        return
    # with small whole numbers as coordinates, some distances are equal
    x = case.rng.integers(0, 50, (n, 3)).astype(np.float64)
    counts = None if case.weights == "ones" else case.rng.integers(1, 100, n)

    def found(device: str) -> Any:
        return reference_sets(points_of(x, n, device), n_neighbors, device=device).nearest(0, n)

    def mapped(device: str) -> Any:
        coefficients = mapping_coefficients(case.ensemble, x, n_neighbors, device=device)
        similarity = rank_correlation(coefficients, counts, device=device)
        return coefficients.indptr, coefficients.indices, coefficients.data, similarity

    case.same("reference_sets", found)
    case.same("mapping_coefficients, rank_correlation", mapped)


def groups(case: Case) -> None:
    def reduced(device: str) -> Any:
        found = core_groups(Rows(case.ensemble, device=device))
        return found.counts, found.row_of, found.ensemble.codes, found.find(Rows(case.ensemble, device=device))

    case.same("core_groups", reduced)


def nearest(case: Case) -> None:
    (rows, sizes), w = case.groups(), case.of_clusters(case.ensemble.n_clusters)

    def found(device: str) -> Any:
        index = nearest_index(rows.codes_on(device), rows.offsets, w, sizes, device=device)
        # the count of comparisons is not compared, because it depends on the device
        return tuple(nearest_lists(index, 16))

    case.same("nearest_index", found)


def linked(case: Case, name: str, similarity: Any, link: Callable = average_linkage) -> None:
    """Compare the merges and the work of a linkage of the case's core groups."""
    rows, sizes = case.groups()

    def tree(device: str) -> Any:
        work = Work()
        found = link(Rows.of(rows, sizes, device), similarity, work=work)
        return found.kept, found.absorbed, found.similarities, work.rounds, work.searches

    case.same(name, tree)


def linkage(case: Case) -> None:
    rows, _ = case.groups()
    for link in (average_linkage, single_linkage):
        linked(case, link.__name__, Diagonal(case.of_clusters(case.ensemble.n_clusters), rows.offsets), link)


def general_linkage(case: Case) -> None:
    rows, _ = case.groups()
    if not case.small:
        return
    similarity = np.random.default_rng(6).integers(-3, 4, (rows.n_clusters, rows.n_clusters)).astype(np.float64)
    if case.weights == "real":
        similarity += np.random.default_rng(7).random(similarity.shape)
    linked(case, "average_linkage, any similarity", Full(similarity + similarity.T, rows.offsets))


def observed_linkage(case: Case) -> None:
    rows, _ = case.groups()
    if case.small:
        linked(case, "average_linkage, observed", Observed(case.of_clusters(rows.n_clusterings), rows.offsets))


def moves(case: Case) -> None:
    rows, sizes = case.groups()
    move_histograms(rows, sizes, case.device)
    search_few(rows, sizes, case.of_clusters(rows.n_clusters), case.device)


def move_histograms(rows: Any, sizes: Any, device: str) -> None:
    """Fill the arena of histograms, so that the histograms of every other row must move. In real runs this is rare."""
    from gpuens.partition.linkage.regions import make_room, regions_of

    regions = regions_of(rows.codes_on(device), rows.offsets, sizes, device=device)
    some = devices.namespace(device).arange(len(rows))[::2].copy()
    make_room(regions, some, 2 * len(regions.clusters), device=device)


def search_few(rows: Any, sizes: Any, cluster_weights: np.ndarray, device: str) -> None:
    """Search the nearest regions of three rows, in tiles so small that several blocks share them."""
    from gpuens.partition.linkage import regions

    xp, n = devices.namespace(device), len(rows)
    found = regions.regions_of(rows.codes_on(device), rows.offsets, sizes, device=device)
    lists, w = Shortlists.empty(n, 2, device), xp.asarray(cluster_weights)
    bounding = regions.bounding_weights(cluster_weights, device=device)
    with mock.patch.object(regions, "TILE", min(regions.TILE, 1 + n // 100)):
        queries, numbers = xp.arange(min(n, 3)), xp.asarray([n, min(n, 3)])
        task = regions.Search(queries, xp.arange(n), numbers, lists, xp.zeros(1, dtype=np.uint64))
        regions.search(task, found, w, bounding, rows.n_clusterings, False, device=device)


def k_means(case: Case) -> None:
    if case.weights == "real" or case.dtype != "uint8":
        return
    xp, sizes = devices.namespace(case.device), case.rng.integers(1, 5, case.n_objects)
    X, k = points_of(case.n_objects), min(case.n_objects, 4)
    lloyd(xp.asarray(X), sizes, X[:k].astype(np.float64), device=case.device)
    if case.small:
        restarts(xp.asarray(X.astype(np.float64)), sizes, k, 3, 0, device=case.device)
    table = case.rng.standard_normal((case.ensemble.n_clusters, 5))
    unit_points32(case.ensemble.codes_on(case.device), case.ensemble.offsets, table, device=case.device)


def estimators(case: Case) -> None:
    if case.weights == "real" or case.dtype not in (DTYPES if MANY <= case.n_objects <= LOCKSTEP_UP_TO else ("uint8",)):
        return  # these estimators compute their own weights, so that one kind of weights is enough
    k = min(4, len(case.groups()[1]))
    of_pairs = ("cspa", "oc-h", "oc-ia", "pta", "ptgp", "drec", "tome", "rock", "limbo")
    wanted = {name: (kind, {}) for name, kind in METHODS.items() if name not in (*of_pairs, "ecrmc")}
    wanted["eac, single"] = METHODS["eac"], {"linkage": "single"}
    if case.n_objects <= ALL_PAIRS_UP_TO:
        wanted["eac, complete"] = METHODS["eac"], {"linkage": "complete"}
        wanted |= {name: (METHODS[name], {}) for name in of_pairs}
    some = ge.Sample(0.3)
    if k <= len(some.reduce(case.ensemble).counts):
        wanted |= {f"{name}, sample": (METHODS[name], {"reduction": some}) for name in ("lwea", "crc-c", "scec")}
    if 1 < case.n_objects <= LOCKSTEP_UP_TO:
        wanted["ecrmc"] = METHODS["ecrmc"], {}
    for name, (kind, parameters) in wanted.items():
        ensemble = case.ensemble
        if not case.small and isinstance(kind(k, **parameters)._parts()[1], Linkage):
            ensemble = case.of_fewer_rows()

        def fitted(device: str, kind: Any = kind, parameters: Record = parameters, ensemble: Any = ensemble) -> Any:
            found = kind(k, device=device, **parameters).fit(ensemble)
            merges = (found.children_, found.distances_) if hasattr(found, "children_") else ()
            return found.labels_, found.n_clusters_, merges

        # k-means of more objects than its restarts use works in float32
        ends_in_float32 = name in ("gp-mgla", "lwgp", "hbgf") and not case.small
        case.same(name, fitted, share=NEAR_TIES if ends_in_float32 else 0.0)


def trees(case: Case) -> None:
    if case.weights == "real":
        return
    for n_des, order in ((32, "given"), (4, "coarse")):

        def grown(device: str, n_des: int = n_des, order: str = order) -> Any:
            tree = grow(Rows(case.ensemble, device=device), n_des, order)
            reduced = tree.reduce(0.4, 0.5)
            return tree.parents, tree.radii, tree.representatives, reduced.counts, reduced.row_of

        case.same("CATree", grown)


def metrics(case: Case) -> None:
    if case.weights == "real":
        return
    a, b = case.labels[:, 0], case.rng.integers(4, size=case.n_objects)

    def scores(device: str) -> Any:
        xp = devices.namespace(device)
        return ge.metrics.scores(xp.asarray(a), xp.asarray(b)), ge.metrics.ari(xp.asarray(a), xp.asarray(b))

    case.same("metrics.scores", scores)
    for score in ("nmi", "ari"):

        def agreement(device: str, score: str = score) -> Any:
            return ge.contingency.agreement(case.ensemble, score, device=device)

        case.same(f"contingency.agreement, {score}", agreement)


def generation(case: Case) -> None:
    """Compare base clusterings in float64. Points have no codes, so that one comparison for each size is enough."""
    if case.weights == "real" or case.dtype != "uint8" or case.n_objects < 2:
        return
    X = points_of(case.n_objects).astype(np.float64)
    for algorithm in ("full", "nested"):

        def generated(device: str, algorithm: str = algorithm) -> Any:
            found = ge.generate.kmeans_ensemble(
                X, 3, (2, min(8, case.n_objects)), algorithm=algorithm, max_iter=10, progress=False, device=device
            )
            return found.codes

        case.same(f"kmeans_ensemble, {algorithm}", generated, share=NEAR_TIES)
    for n_landmarks in (20, 300):  # landmark numbers of u8 and of u16

        def tied(device: str, n_landmarks: int = n_landmarks) -> Any:
            k = (2, min(8, case.n_objects))
            return ge.generate.landmark_ensemble(
                X, 2, k, n_landmarks=n_landmarks, n_neighbors=3, progress=False, device=device
            ).codes

        case.same("landmark_ensemble", tied, share=0.01)


def points_of(n_objects: int) -> np.ndarray:
    """Return points (n_objects, 3), float32, around the eight corners of a cube."""
    rng = np.random.default_rng(n_objects)
    return (4.0 * rng.integers(2, size=(n_objects, 3)) + rng.standard_normal((n_objects, 3))).astype(np.float32)


CHECKS: dict[str, list[Callable[[Case], None]]] = {
    "look-ups and counts": [encoded, products, intersections, pairs, tiles, groups, trees, metrics],
    "coupling": [coupled_blocks, neighborhoods, label_space, neighbors, soft_correspondence, mapping],
    "linkage": [nearest, linkage, general_linkage, observed_linkage, moves],
    "estimators": [estimators, k_means],
    "generation": [generation],
}
