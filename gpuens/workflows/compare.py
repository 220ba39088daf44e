"""A comparison of many methods on the same base clusterings: labels, agreement with the ensemble, time and memory."""

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens import metrics
from gpuens.evidence.agreement import measure_agreement
from gpuens.evidence.objects import measure_objects
from gpuens.evidence.overlaps import Overlaps
from gpuens.labels.encoding import encode_vector
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.object_names import in_order_of
from gpuens.labels.rows import Rows
from gpuens.methods import REGISTRY
from gpuens.reduction import core_groups
from gpuens.runtime import checks, failures, progress, record
from gpuens.runtime import device as devices
from gpuens.runtime.checks import counted
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng
from gpuens.runtime.time_limit import OutOfTime, time_limit
from gpuens.similarity.mapping import points_of
from gpuens.workflows.comparison import SCORES, SCORES_OF_TRUTH, Comparison, Row, add_tests

if TYPE_CHECKING:
    from gpuens.methods.base import Method


@takes_rng
def compare(
    labels: Any,
    n_clusters: int,
    *,
    methods: Any = "all",
    truth: Any = None,
    features: Any = None,
    max_seconds: float | None = 60.0,
    repeat: int = 1,
    share: float = 1.0,
    random_state: Any = 0,
    rng: Any = NOT_GIVEN,
    device: str = "auto",
) -> Comparison:
    """Run many methods on the same base clusterings, and compare their results, time and memory.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        (n_objects, n_clusterings).
    n_clusters : int
    methods : {"all", "fast"}, or names in a list or with commas
        "fast" means the methods that also work in chunks, whose cost grows in proportion to the number of objects. Each
        method has its default parameters.
    truth : array (n_objects,), optional
        Known classes, for scores; they do not affect the order. If truth, features and labels are pandas objects, they
        are matched by their indexes.
    features : array (n_objects, n_features), optional
        For the methods that need features; without features these methods are left out.
    max_seconds : float or None
        Methods that take longer are ended and left out, in the main thread of Linux and macOS. A call of another
        library is ended when it returns. None: no limit.
    repeat : int
        Runs of each method, with the seeds random_state, random_state + 1, …; the scores are means with standard
        deviations (of the sample, ddof=1), and a paired t-test compares the best method with each other
        (`gpuens.workflows.comparison`). Seeds vary methods with randomness alone; the others run once.
    share : float
        The share of the base clusterings in each run. Below 1, each run draws so many of them, the same for all
        methods, and the scores are those with the drawn ones: means, deviations and tests then say what other base
        clusterings would change, also for methods without randomness. It needs ``repeat``.
    random_state : int, None or numpy.random.Generator
        Seed of all draws.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For invalid labels, names or numbers, and if no method is left.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> found = ge.compare(labels, 2, methods=["eac", "lwgp"])
    >>> found.best, found.labels["eac"].tolist(), found.table.columns.tolist()[:2]
    ('eac', [0, 0, 0, 1, 1, 1], ['anmi', 'ecs'])
    """
    ensemble = Ensemble(labels)
    if max_seconds is not None:
        checks.check_real(max_seconds, "max_seconds", above=0.0)
    checks.check_integer(repeat, "repeat", minimum=1)
    draws = _draws(ensemble, share, repeat, random_state)
    truth, features = in_order_of(ensemble.index, truth, "truth"), in_order_of(ensemble.index, features, "features")
    classes = None if truth is None else _encode_truth(truth, ensemble.n_objects)
    names = select_methods(methods)
    if features is not None:
        features = _check_features(features, names, ensemble.n_objects)
    objects = Rows(ensemble, device=devices.resolve(device, ensemble.device_kind))
    checks.check_n_clusters(n_clusters, core_groups(objects).rows.n_rows)
    rows: list[Row] = []
    runs: dict[str, list[Row]] = {}
    answers: dict[str, np.ndarray] = {}
    left_out: dict[str, str] = {}
    with progress.bar(len(names), "methods") as bar:
        for name in names:
            results = []
            try:
                for seed, draw in zip(_seeds(name, random_state, repeat, share), draws, strict=False):
                    estimator = default_estimator(name, n_clusters, seed, device)
                    if estimator.parts().needs_features and features is None:
                        raise ValueError("needs features of the objects.")
                    run_rows = Rows(ensemble.without(draw), device=objects.device) if draw else objects
                    with time_limit(max_seconds):
                        answer, cost = _timed_fit(estimator, run_rows.ensemble, features)
                    answer = devices.to_host(answer)
                    results.append((answer, {"method": name, **_scores(run_rows, answer, classes), **cost}))
            except (*failures.OF_ONE_METHOD, OutOfTime) as error:
                left_out[name] = failures.describe(error)
            else:
                answers[name], row = max(results, key=lambda result: result[1]["anmi"])
                runs[name] = [row for _, row in results]
                rows.append(row if repeat == 1 else row | _summary(runs[name]))
            bar.update(1)
    if not rows:
        name, why = next(iter(left_out.items()))
        raise ValueError(f"methods: no method is left to compare, because {name} is left out: {why.rstrip('.')}.")
    rows.sort(key=lambda row: -row["anmi"])
    if repeat > 1:
        add_tests(rows, runs, share)
    return Comparison(rows, answers, left_out, runs, _scores_of_truth(ensemble, classes, objects.device), repeat, share)


def select_methods(methods: Any) -> list[str]:
    """Return the names of the methods that ``methods`` selects: "all", "fast" or a list of names."""
    if isinstance(methods, str) and methods in ("all", "fast"):
        kinds = {name: kind() for name, kind in REGISTRY.all().items()}
        return [name for name, kind in kinds.items() if methods == "all" or kind.parts().learns_by_sums]
    parts = methods.split(",") if isinstance(methods, str) else methods
    try:
        names = list(dict.fromkeys(str(part).strip() if isinstance(part, str) else part for part in parts))
    except TypeError:
        names = []
    if not names:
        raise ValueError(f"methods must be names of methods, in a list or with commas, not {checks.shown(methods)}.")
    for name in names:
        REGISTRY.load(name)
    return names


def default_estimator(name: str, n_clusters: int | None, random_state: Any, device: str) -> "Method":
    """Return the estimator of the method ``name``, with the default parameters of the method."""
    kind = REGISTRY.load(name)
    names, parameters = kind._get_param_names(), {"random_state": random_state, "device": device}
    return kind(n_clusters, **{name: value for name, value in parameters.items() if name in names})


def _draws(ensemble: Ensemble, share: float, repeat: int, random_state: Any) -> list[list[Any]]:
    """Return the names of the clusterings that each run leaves out, drawn at random; none if ``share`` is 1."""
    if checks.check_real(share, "share", above=0.0, at_most=1.0) == 1.0:
        return [[]] * repeat
    n = ensemble.n_clusterings
    n_left_out = n - round(share * n)
    if repeat == 1:
        raise ValueError(f"share={share:g} draws base clusterings for each run; give repeat, such as repeat=10.")
    if not 0 < n_left_out < n - 1:
        raise ValueError(
            f"share={share:g} of {counted(n, 'clustering')} are {n - n_left_out}; a draw needs at least 2, and fewer "
            "than all."
        )
    rng = checks.make_generator(random_state)
    draws = [[ensemble.names[m] for m in rng.permutation(n)[:n_left_out]] for _ in range(repeat)]
    for draw in draws if ensemble.has_missing else ():
        try:
            ensemble.without(draw)
        except ValueError as error:
            raise ValueError(f"share={share:g}: a draw has no label for some object; take a larger share.") from error
    return draws


def _seeds(name: str, random_state: Any, repeat: int, share: float) -> list[Any]:
    """Return one ``random_state`` for each run of a method; a method that nothing varies has one run."""
    if "random_state" not in REGISTRY.load(name)._get_param_names():
        return [random_state] * (1 if share == 1 else repeat)
    if isinstance(random_state, (int, np.integer)):
        return [int(random_state) + run for run in range(repeat)]
    return [random_state] * repeat  # a generator continues from run to run, and None differs each time


def _summary(runs: list[Row]) -> Row:
    """Return the means and standard deviations of the scores of a method's runs, its mean seconds and most memory."""
    means: dict[str, float | None] = {}
    deviations: dict[str, float | None] = {}
    for name in (score for score in SCORES if score in runs[0]):
        values = [row[name] for row in runs if row[name] is not None]
        means[name] = float(np.mean(values)) if values else None
        deviations[f"{name}_std"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
    memory = [row["memory"] for row in runs if row["memory"] is not None]
    return {
        **means,
        "n_runs": len(runs),
        **deviations,
        "seconds": round(float(np.mean([row["seconds"] for row in runs])), 4),
        "memory": max(memory, default=None),
        "warnings": list(dict.fromkeys(text for row in runs for text in row["warnings"])),
    }


def _encode_truth(truth: Any, n_objects: int) -> np.ndarray:
    codes = encode_vector(truth, "truth", n_objects)
    if (codes < 0).all():
        raise ValueError("truth has no label for any object; give the known classes, or leave truth out.")
    return codes


def _check_features(features: Any, names: list[str], n_objects: int) -> Any:
    if not any(REGISTRY.load(name)().parts().needs_features for name in names):
        raise ValueError(f"features were given, but none of {', '.join(names)} needs them; leave them out.")
    return points_of(features, n_objects, "cpu")


def _scores_of_truth(ensemble: Ensemble, classes: np.ndarray | None, device: str) -> Row | None:
    """Return the scores of the known classes in place of a method's labels, by the objects whose class is known."""
    if classes is None:
        return None
    labelled = classes >= 0
    objects = Rows(ensemble if labelled.all() else ensemble.take(labelled), device=device)
    return _scores(objects, np.unique(classes[labelled], return_inverse=True)[1], None)


def _timed_fit(estimator: Any, ensemble: Ensemble, features: Any) -> tuple[Any, dict[str, Any]]:
    """Fit the estimator; return the labels, and a dict with the seconds, memory and warnings of the fit."""
    before = record.resident_memory()
    record.forget_peak_memory()
    parameters = {"features": features} if estimator.parts().needs_features else {}
    with checks.recorded() as warned:
        started = time.perf_counter()
        labels = estimator.fit(ensemble, **parameters).labels_
        seconds = time.perf_counter() - started
    peak = record.peak_memory()
    memory = None if peak is None else max(0, peak - before)
    return labels, {"seconds": round(seconds, 4), "memory": memory, "warnings": list(warned)}


def _scores(objects: Rows, labels: np.ndarray, truth: np.ndarray | None) -> dict[str, Any]:
    overlaps = Overlaps.of(objects, labels)
    agreement, evidence = measure_agreement(overlaps), measure_objects(overlaps, objects, labels)
    sizes = np.bincount(labels)
    scored = {} if truth is None else metrics.scores(labels, truth)
    return {
        "anmi": agreement.anmi,
        "ecs": agreement.mean_ecs,
        "item_consensus": float(np.nanmean(evidence.item_consensus)) if (sizes > 1).any() else None,
        "silhouette": float(evidence.silhouette.mean()) if len(sizes) > 1 else None,
        **{name: scored[name] for name in SCORES_OF_TRUTH if scored},
        "n_clusters": len(sizes),
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
    }
