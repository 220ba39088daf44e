"""How long estimators take from labels on the device to the labels of all objects, and where the time goes."""

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import common
import numpy as np
from gpu_device import synchronize, tiny
from gpu_ensembles import FEW_ROWS, MILLION, ROWS, TINY, K, Mixture, groups_of, labels_of, points_of
from parts import Job

import gpuens as ge
from gpuens import device as devices

CPU_LIMIT = 60.0  # seconds


class Journey(NamedTuple):
    """What is called on an ensemble; ``estimates`` (seconds) were made from counts of operations, before any GPU."""

    title: str
    ensemble: Mixture | None  # None: a file of labels
    calls: tuple[str, ...]
    estimates: tuple[tuple[str, str, float], ...] = ()  # (call, which of its stages, seconds)
    cold: tuple[str, ...] = ()
    file: str | None = None


ON_COVERTYPE = ("eac", "eac, single", "lwea", "lwgp", "hbgf", "cgc", "crc-ia")
JOURNEYS = [
    Journey("a mixture like Covertype × 20", Mixture(581_012), ON_COVERTYPE),
    Journey(
        "100,000 distinct rows × 20", ROWS, ("eac", "lwea"), (("eac", "linkage", 0.1), ("lwea", "linkage", 0.1))
    ),
    Journey(
        "1 M × 20", MILLION, ("intersections", "core groups", "hbgf", "lwgp", "eac", "lwea"),
        (("intersections", "all", 0.005), ("hbgf", "transfer cut", 0.1), ("lwgp", "transfer cut", 0.1)),
        cold=("hbgf", "lwea"),
    ),
    Journey("20,000 distinct rows × 20", FEW_ROWS, ("crc-c", "oc-h")),
    Journey("a mixture like Covertype × 100", Mixture(581_012, 100), ("hbgf", "lwgp", "lwea")),
    Journey(
        "581,000 distinct rows × 20", Mixture(2_000_000, groups=581_000, dimensions=12), ("eac", "lwea"),
        (("eac", "linkage", 2.0), ("lwea", "linkage", 2.0)),
    ),
    Journey("10 M × 20", Mixture(10_000_000), ("core groups", "hbgf", "lwgp", "eac")),
    Journey(
        "1 M × 10 features", Mixture(1_000_000, dimensions=10), ("k-means, 20 clusterings", "landmarks, 20 clusterings")
    ),
]  # fmt: skip


def end_to_end(options: Any, do: Callable) -> Iterator[Job]:
    """Yield the journeys: what each call takes on the device, then, as the device must not wait for it, on the CPU."""
    given = [Journey(path.name, None, ON_COVERTYPE, file=str(path.resolve())) for path in options.labels]
    journeys = [*given, *(journey for journey in JOURNEYS if not (given and "Covertype" in journey.title))]
    if tiny(options.device, options.quick):
        journeys = each_call_once(journeys)
    made: dict[str, common.Record] = {}

    def fitted(journey: Journey, call: str) -> common.Record:
        path = str(options.scratch / f"{journeys.index(journey)}.npy")
        if path not in made:
            made[path] = do(
                make, least=10.0, mixture=journey.ensemble and journey.ensemble._asdict(), file=journey.file,
                path=path, points="features" in journey.title,
            )()  # fmt: skip
        row = {"ensemble": journey.title, "call": call, "objects": made[path].get("shape"), "path": path}
        found = made[path] if problem(made[path]) else do(fit, most=60.0, least=8.0, path=path, call=call)()
        if call in journey.cold and not options.quick and not problem(found):
            empty = tempfile.mkdtemp(dir=options.scratch)
            caches = {"CUPY_CACHE_DIR": empty, "NUMBA_CACHE_DIR": empty}
            cold = do(fit, most=60.0, least=40.0, environment=caches, later=0, path=path, call=call)()
            found["cold"] = cold.get("first")
        for _, stage, seconds in (known for known in journey.estimates if known[0] == call):
            row |= {"stage": stage, "estimate": seconds}
        return row | {"device": found}

    calls = [(journey, call) for journey in journeys for call in journey.calls]
    for journey, call in calls:
        yield f"{journey.title}: {call}", partial(fitted, journey, call)
    for journey, call in calls:
        path = str(options.scratch / f"{journeys.index(journey)}.npy")
        if not problem(made.get(path, {"failed": "not made"})):
            yield (
                f"{journey.title}: {call}, CPU",
                do(fit, most=CPU_LIMIT, least=8.0, path=path, call=call, device="cpu", later=1),
            )


def problem(found: common.Record) -> str | None:
    return found.get("failed") or found.get("skipped")


def each_call_once(journeys: list[Journey]) -> list[Journey]:
    """Return what is left when no call is repeated and nothing is compared with what it was estimated to take."""
    made: set[str] = set()
    found = []
    for journey in journeys:
        if new := tuple(call for call in journey.calls if call not in made):
            found.append(journey._replace(title=f"tiny: {journey.title}", calls=new, estimates=()))
            made |= set(new)
    return found


def make(
    mixture: dict[str, Any] | None, file: str | None, path: str, points: bool, device: str, quick: bool
) -> common.Record:
    """Write the labels (or the features) of a journey, so that every call and the CPU get the same."""
    start = time.perf_counter()
    if mixture is None:
        assert file is not None
        matrix = np.load(file, mmap_mode="r")
        labels = np.asfortranarray(matrix[:: max(1, len(matrix) // 300)] if tiny(device, quick) else matrix)
    else:
        wanted = Mixture(**{**mixture, "k": tuple(mixture["k"])})
        if tiny(device, quick):
            few = min(wanted.n_objects, 300)
            wanted = TINY._replace(n_objects=few, groups=wanted.groups and 200)
        labels = points_of(wanted)[0] if points else devices.to_host(labels_of(wanted, device).T).T
    np.save(path, labels)
    return {"shape": list(labels.shape), "seconds": time.perf_counter() - start}


STAGES = [  # (module, what it calls, stage)
    ("methods.base", "core_groups", "groups"),
    ("similarity.coassociation", "eci", "weights"),
    ("partition.linkages", "average_linkage", "linkage"),
    ("partition.linkages", "single_linkage", "linkage"),
    ("partition.linkage.average", "nearest_lists", "nearest lists"),
    ("partition.linkage.average", "search", "searches"),
    ("partition.linkage.single", "nearest_lists", "nearest lists"),
    ("partition.transfer_cut", "transfer_cut", "transfer cut"),
    ("partition.transfer_cut", "_leading", "embedding"),
    ("partition.transfer_cut", "kmeans", "k-means"),
    ("similarity.coupled", "coupling", "coupling"),
    ("partition.label_kmeans", "label_kmeans", "k-means"),
    ("similarity.neighborhood", "neighborhood_bits", "neighbours"),
    ("similarity.neighborhood", "neighbor_counts", "in common"),
    ("similarity.neighborhood", "overlaps", "in common"),
    ("partition.meta_clustering", "metis", "METIS"),
    ("partition.rock", "rock", "ROCK"),
    ("generate.landmark_graph", "nearest_landmarks", "nearest landmarks"),
    ("generate.landmark_cut", "begin", "k-means"),
    ("generate.shares", "nearest_by_shares", "k-means"),
]


@contextmanager
def stages(device: str) -> Iterator[dict[str, float]]:
    """While entered, add up the seconds of `STAGES`, the device's work included."""
    found: dict[str, float] = {}
    replaced = []

    def timed(function: Callable, stage: str) -> Callable:
        def call(*args: Any, **options: Any) -> Any:
            synchronize(device)
            start = time.perf_counter()
            result = function(*args, **options)
            synchronize(device)
            found[stage] = found.get(stage, 0.0) + time.perf_counter() - start
            return result

        return call

    for module, name, stage in STAGES:
        if home := sys.modules.get(f"gpuens.{module}"):
            replaced.append((home, name, getattr(home, name)))
            setattr(home, name, timed(getattr(home, name), stage))
    try:
        yield found
    finally:
        for home, name, function in replaced:
            setattr(home, name, function)
        if "ROCK" in found:
            found["ROCK"] -= found.get("in common", 0.0)  # which it asks for as it goes
        if "linkage" in found:
            found["rounds"] = found["linkage"] - found.get("nearest lists", 0.0) - found.get("searches", 0.0)


def fit(path: str, call: str, device: str, quick: bool, later: int = 3) -> common.Record:
    """Measure a call from labels where the device works to its result; then once more, stage by stage."""
    xp = devices.namespace(device)
    matrix = np.load(path)
    labels = matrix if device == "cpu" else xp.asarray(matrix)
    synchronize(device)

    def generated(make: Callable[..., Any], k: tuple[int, int]) -> Any:
        many, k = (3, (2, 5)) if len(labels) < 1000 else (20, k)
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
    }
    if call in ("core groups", "intersections"):  # of an ensemble that is there already
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
            record["device_peak"] = pool.total_bytes()  # the pool keeps what it has taken
        if later and device != "cpu" and record["first"] < 20.0:
            with stages(device) as found:
                again = common.timed(run)[1]
            record["stages"] = found | {"all": again}
    record |= {"load": common.load(), "groups": number_of_groups(result)}
    if hasattr(result, "work_"):
        work = result.work_
        record |= {"comparisons": work.comparisons, "searches": work.searches, "rounds": work.rounds}
    return record


def number_of_groups(result: Any) -> int | None:
    reduction = result if hasattr(result, "row_of") else getattr(result, "reduction_", None)
    return None if reduction is None else len(reduction.counts)
