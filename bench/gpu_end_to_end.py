"""Run times of estimators, in total and by stage, from base labels on the device to the labels of all objects."""

import hashlib
import importlib
import inspect
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import common
import numpy as np
from gpu_device import synchronize, tiny
from gpu_ensembles import FEW_ROWS, MILLION, ROWS, TINY, K, Mixture, groups_of, labels_of, points_of
from parts import Job

import gpuens as ge
from gpuens.runtime import device as devices

CPU_LIMIT = 60.0  # seconds after which the measurement on the CPU is given up


class Journey(NamedTuple):
    """The calls on one ensemble. Before any GPU, ``estimates`` (seconds) were made from counts of operations."""

    title: str
    # the base clusterings or features of a mixture, or a file of labels; None: the features of Covertype
    of: Mixture | str | None
    calls: tuple[str, ...]
    estimates: tuple[tuple[str, str, float], ...] = ()  # (call, a stage of the call, seconds)
    cold: tuple[str, ...] = ()

    @property
    def features(self) -> bool:
        """Whether the journey begins with features, not with labels."""
        return "features" in self.title


LIKE_COVERTYPE = "a mixture like Covertype"
# the most important run times, measured first
HEADLINE = [
    Journey(f"{LIKE_COVERTYPE} × 20", Mixture(581_012), ("lwea",)),
    Journey(f"{LIKE_COVERTYPE} × 100", Mixture(581_012, 100), ("lwea",)),
    Journey("10 M × 20", Mixture(10_000_000), ("hbgf",)),
    Journey(f"{LIKE_COVERTYPE}, features", Mixture(581_012, dimensions=54), ("landmarks, then hbgf",)),
]
ON_COVERTYPE = ("eac", "eac, single", "lwgp", "hbgf", "cgc", "crc-ia")
JOURNEYS = [
    Journey(f"{LIKE_COVERTYPE} × 20", Mixture(581_012), ON_COVERTYPE),
    Journey(
        "1 M × 20", MILLION, ("intersections", "core groups", "hbgf", "lwgp", "eac", "lwea"),
        (("intersections", "all", 0.005), ("hbgf", "transfer cut", 0.1), ("lwgp", "transfer cut", 0.1)),
        cold=("hbgf", "lwea"),
    ),
    Journey(
        "100,000 distinct rows × 20", ROWS, ("eac", "lwea"), (("eac", "linkage", 0.1), ("lwea", "linkage", 0.1))
    ),
    Journey(f"{LIKE_COVERTYPE} × 100", Mixture(581_012, 100), ("hbgf", "lwgp")),
    Journey(
        "1 M × 10 features", Mixture(1_000_000, dimensions=10), ("k-means, 20 clusterings", "landmarks, 20 clusterings")
    ),
    Journey("20,000 distinct rows × 20", FEW_ROWS, ("crc-c", "oc-h")),
    Journey("10 M × 20", Mixture(10_000_000), ("core groups", "lwgp", "eac")),
    Journey(
        "581,000 distinct rows × 20", Mixture(2_000_000, groups=581_000, dimensions=12), ("eac", "lwea"),
        (("eac", "linkage", 2.0), ("lwea", "linkage", 2.0)),
    ),
]  # fmt: skip


def headline(options: Any, do: Callable) -> Iterator[Job]:
    """Yield the jobs of the most important run times."""
    return rows_of(as_given(HEADLINE, options), options, do)


def end_to_end(options: Any, do: Callable) -> Iterator[Job]:
    """Yield all other journeys; if the headline part is not in the run, yield its journeys first."""
    first = [] if options.only is None or "headline" in options.only else HEADLINE
    journeys = as_given(JOURNEYS, options)
    sources = {journey.of for journey in journeys}
    further = [path for path in map(Path.resolve, options.labels) if str(path) not in sources]
    journeys_of_files = [Journey(path.name, str(path), ("lwea", *ON_COVERTYPE)) for path in further]
    return rows_of([*as_given(first, options), *journeys_of_files, *journeys], options, do)


def rows_of(journeys: list[Journey], options: Any, do: Callable) -> Iterator[Job]:
    """Yield the cost of each call of each journey: first the costs on the device, then the costs on the CPU."""
    if tiny(options.device, options.quick):
        journeys = each_call_once(journeys)
    rows: dict[str, common.Record] = options.made

    def place(journey: Journey) -> str:
        key = f"{journey.of} {'features' if journey.features else 'labels'}"
        return str(options.scratch / f"{zlib.crc32(key.encode())}.npy")

    def fitted(journey: Journey, call: str) -> common.Record:
        path, of = place(journey), journey.of
        if path not in rows:
            mixture, file = (of._asdict(), None) if isinstance(of, Mixture) else (None, of)
            rows[path] = do(
                make, least=10.0, mixture=mixture, file=file, path=path, features=journey.features, data=options.data
            )()
        row = {"ensemble": journey.title, "call": call, "objects": rows[path].get("shape"), "path": path}
        result = rows[path] if problem(rows[path]) else do(fit, most=60.0, least=8.0, path=path, call=call)()
        if call in journey.cold and not options.quick and not problem(result):
            cache = {"CUPY_CACHE_DIR": tempfile.mkdtemp(dir=options.scratch)}
            cold = do(fit, most=60.0, least=40.0, environment=cache, later=0, path=path, call=call)()
            result["cold"] = cold.get("first")
        for _, stage, seconds in (estimate for estimate in journey.estimates if estimate[0] == call):
            row |= {"stage": stage, "estimate": seconds}
        return row | {"device": result}

    for journey in journeys:
        for call in journey.calls:
            yield f"{journey.title}: {call}", partial(fitted, journey, call)
        for call in journey.calls:
            if not problem(rows.get(place(journey), {"failed": "not made"})):
                yield (
                    f"{journey.title}: {call}, CPU",
                    do(fit, most=CPU_LIMIT, least=8.0, path=place(journey), call=call, device="cpu", later=1),
                )


def as_given(journeys: list[Journey], options: Any) -> list[Journey]:
    """Return the journeys; the given label files of as many clusterings take the place of mixtures like Covertype."""
    files = {f"{LIKE_COVERTYPE} × {np.load(path, mmap_mode='r').shape[1]}": path.resolve() for path in options.labels}
    replaced_journeys = []
    for journey in journeys:
        if path := files.get(journey.title):
            journey = journey._replace(title=path.name, of=str(path))
        elif journey.title == f"{LIKE_COVERTYPE}, features" and options.data is not None:
            journey = journey._replace(title="Covertype, features", of=None)
        replaced_journeys.append(journey)
    return replaced_journeys


def problem(row: common.Record) -> str | None:
    return row.get("failed") or row.get("skipped")


def each_call_once(journeys: list[Journey]) -> list[Journey]:
    """Return journeys without repeated calls and without estimates."""
    calls: set[str] = set()
    tiny_journeys = []
    for journey in journeys:
        if new := tuple(call for call in journey.calls if call not in calls):
            tiny_journeys.append(journey._replace(title=f"tiny: {journey.title}", calls=new, estimates=()))
            calls |= set(new)
    return tiny_journeys


def make(
    mixture: dict[str, Any] | None, file: str | None, path: str, features: bool, data: str | None, device: str,
    quick: bool,
) -> common.Record:  # fmt: skip
    """Write the labels (or the features) of a journey, so that all calls on device and CPU get the same input."""
    start = time.perf_counter()
    if mixture is None:
        matrix = np.load(file, mmap_mode="r") if file else ge.datasets.load("covtype", data=data).X.astype(np.float32)
        labels = np.asfortranarray(matrix[:: max(1, len(matrix) // 300)] if tiny(device, quick) else matrix)
    else:
        mixture_of_set = Mixture(**{**mixture, "k": tuple(mixture["k"])})
        if tiny(device, quick):
            n_few = min(mixture_of_set.n_objects, 300)
            mixture_of_set = TINY._replace(n_objects=n_few, groups=mixture_of_set.groups and 200)
        labels = points_of(mixture_of_set)[0] if features else devices.to_host(labels_of(mixture_of_set, device).T).T
    np.save(path, np.ascontiguousarray(labels) if features else labels)
    return {"shape": list(labels.shape), "seconds": time.perf_counter() - start}


STAGES = [  # (module; function, or method of a class, that the module calls; name of the stage)
    ("methods.parts", "core_groups", "groups"),
    ("similarity.coassociation", "entropy", "weights"),
    ("partition.linkage.partitioners", "average_linkage", "linkage"),
    ("partition.linkage.partitioners", "single_linkage", "linkage"),
    ("partition.linkage.average", "equal_leaves", "leaves"),
    ("partition.linkage.average", "nearest_lists", "nearest lists"),
    ("partition.linkage.rounds", "regions_of", "histograms"),
    ("partition.linkage.nearest", "locality_order", "order of rows"),
    ("partition.linkage.rounds", "nearest_lists", "nearest lists"),
    ("partition.linkage.rounds", "search", "searches"),
    ("partition.linkage.single", "nearest_lists", "nearest lists"),
    ("partition.linkage.dendrogram", "Dendrogram.from_merges", "dendrogram"),
    ("partition.linkage.dendrogram", "Dendrogram.lifetimes", "cut"),
    ("partition.linkage.dendrogram", "Dendrogram.cut", "cut"),
    ("partition.transfer_cut", "transfer_cut", "transfer cut"),
    ("partition.transfer_cut", "_leading", "embedding"),
    ("partition.transfer_cut", "leading_eigenvectors", "eigenvectors"),
    ("partition.transfer_cut", "kmeans", "k-means"),
    ("similarity.coupled", "coupling", "coupling"),
    ("partition.label_kmeans", "label_kmeans", "k-means"),
    ("similarity.neighborhood", "neighborhood_bits", "neighbours"),
    ("similarity.neighborhood", "neighbor_counts", "in common"),
    ("similarity.neighborhood", "overlaps", "in common"),
    ("partition.meta_clustering", "metis", "METIS"),
    ("partition.rock", "rock", "ROCK"),
    ("generate.landmark_graph", "nearest_landmarks", "nearest landmarks"),
    ("generate.landmark_cut", "leading_directions", "eigenvectors"),
    ("generate.landmark_cut", "restarts", "k-means"),
    ("generate.shares", "nearest_by_shares", "k-means"),
]


# for these stages, the seconds outside inner stages have a name of their own
OWN = {"linkage": "rounds", "ROCK": "ROCK"}


@contextmanager
def stages(device: str) -> Iterator[dict[str, float]]:
    """Within the context, add up the seconds of `STAGES`, including the work of the device.

    A stage that the library does not have is an ImportError or an AttributeError.
    """
    stage_seconds: dict[str, float] = {}
    seconds_of: dict[str, float] = {}
    inside: list[float] = []  # for each stage that has begun, the seconds of the stages inside it

    def timed(function: Callable, stage: str) -> Callable:
        def call(*args: Any, **options: Any) -> Any:
            synchronize(device)
            start = time.perf_counter()
            inside.append(0.0)
            result = function(*args, **options)
            synchronize(device)
            took = time.perf_counter() - start
            stage_seconds[stage] = stage_seconds.get(stage, 0.0) + took
            seconds_of[stage] = seconds_of.get(stage, 0.0) + took - inside.pop()
            if inside:
                inside[-1] += took
            return result

        return call

    with ExitStack() as replaced:
        for module, name, stage in STAGES:
            home: Any = importlib.import_module(f"gpuens.{module}")
            *owner, name = name.split(".")
            for part in owner:
                home = getattr(home, part)
            real = inspect.getattr_static(home, name)
            call = classmethod(timed(real.__func__, stage)) if isinstance(real, classmethod) else timed(real, stage)
            replaced.enter_context(mock.patch.object(home, name, call))
        yield stage_seconds
    stage_seconds |= {name: seconds_of[stage] for stage, name in OWN.items() if stage in seconds_of}


def fit(path: str, call: str, device: str, quick: bool, later: int = 3) -> common.Record:
    """Measure a call from labels in the device's memory to the result; then measure it again, stage by stage."""
    xp = devices.namespace(device)
    matrix = np.load(path)
    labels = matrix if device == "cpu" else xp.asarray(matrix)
    synchronize(device)

    is_small = len(labels) < 1000

    def generated(make: Callable[..., Any], k: tuple[int, int]) -> Any:
        many, k = (3, (2, 5)) if is_small else (20, k)
        return make(labels, many, k, progress=False, device=device)

    calls: dict[str, Callable[[], Any]] = {
        "eac": lambda: ge.EAC(K, device=device).fit(labels),
        "eac, single": lambda: ge.EAC(K, linkage="single", device=device).fit(labels),
        "lwea": lambda: ge.LWEA(K, device=device).fit(labels),
        "lwgp": lambda: ge.LWGP(K, device=device).fit(labels),
        "hbgf": lambda: ge.HBGF(K, device=device).fit(labels),
        "cgc": lambda: ge.CgC(K, device=device).fit(labels),
        "crc-ia": lambda: ge.CrCIa(K, device=device).fit(labels),
        "crc-c": lambda: ge.CrCC(K, device=device).fit(labels),
        "oc-h": lambda: ge.OCH(K, device=device).fit(labels),
        "k-means, 20 clusterings": lambda: generated(ge.generate.kmeans_ensemble, (7, 100)),
        "landmarks, 20 clusterings": lambda: generated(ge.generate.landmark_ensemble, (20, 60)),
        "landmarks, then hbgf": lambda: ge.HBGF(2 if is_small else K, device=device).fit(
            generated(ge.generate.landmark_ensemble, (20, 60))
        ),
    }
    if call in ("core groups", "intersections"):  # both calls take an ensemble that exists already
        ens = ge.Ensemble(labels)
        calls["core groups"] = lambda: groups_of(ens, device)
        calls["intersections"] = lambda: ge.contingency.intersections(ens, device=device)

    def run() -> Any:
        result = calls[call]()
        synchronize(device)
        return result

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, record = common.measured(run, later=1 if quick else later, allowance=10.0)
        if device == "cuda":
            pool = xp.get_default_memory_pool()
            # the pool keeps all memory that it has taken, so that this is the peak
            record["device_peak"] = pool.total_bytes()
        if later and device != "cpu" and record["first"] < 20.0:
            with stages(device) as stage_seconds:
                again = common.timed(run)[1]
            record["stages"] = stage_seconds | {"all": again}
    record |= {"load": common.load(), "groups": number_of_groups(result)}
    if hasattr(result, "dendrogram_"):
        record["heights"] = hashlib.sha256(result.dendrogram_.similarities.tobytes()).hexdigest()[:16]
    if hasattr(result, "work_"):
        work = result.work_
        record |= {"comparisons": work.comparisons, "searches": work.searches, "rounds": work.rounds}
    return record


def number_of_groups(result: Any) -> int | None:
    reduction = result if hasattr(result, "row_of") else getattr(result, "reduction_", None)
    return None if reduction is None else len(reduction.counts)
