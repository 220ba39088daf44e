"""A comparison of many methods on the same base clusterings: labels, agreement with the ensemble, time and memory."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens import metrics
from gpuens.contingency.labels import encode
from gpuens.contingency.scores import nmi_of, score_pairs
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
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng
from gpuens.runtime.time_limit import OutOfTime, time_limit
from gpuens.similarity.mapping import points_of

if TYPE_CHECKING:
    import pandas as pd

    from gpuens.methods.base import Method

SCORES_OF_TRUTH = ("nmi", "nmi_max", "ari", "accuracy")
SCORES = ("anmi", "ecs", "item_consensus", "silhouette", *SCORES_OF_TRUTH)


@dataclass(repr=False)
class Comparison:
    """The result of `compare`.

    Attributes
    ----------
    rows : list of dict
        One for each method, the best first: "method", "anmi" and "ecs" (agreement with the base clusterings, see
        `gpuens.evidence.agreement`), "item_consensus" and "silhouette" (means over the objects, see
        `gpuens.evidence.objects`), "n_clusters", "smallest" and "largest" cluster, "seconds", "memory" (additional
        bytes of host memory, which are fewer if an earlier method has left memory; None if the system does not provide
        the number), "warnings"; with a truth also "nmi", "nmi_max", "ari" and "accuracy". If methods were repeated, the
        scores (all but the sizes of clusters) and the seconds are means, "memory" is the largest, and "anmi_std", …
        are the standard deviations of the scores.
    labels : dict of str to ndarray (n_objects,)
        The labels found by each method; if it was repeated, those with the largest ANMI, whose sizes are in ``rows``.
    left_out : dict of str to str
        The methods that were not run, and the reasons.
    """

    rows: list[dict[str, Any]]
    labels: dict[str, np.ndarray]
    left_out: dict[str, str]

    @property
    def best(self) -> str:
        """The method whose labels have the largest ANMI (Strehl and Ghosh's supra-consensus)."""
        return str(self.rows[0]["method"])

    @property
    def margin(self) -> float:
        """The ANMI of the best method minus that of the second-best method; NaN if only one method was run."""
        return float(self.rows[0]["anmi"] - self.rows[1]["anmi"]) if len(self.rows) > 1 else float("nan")

    @property
    def table(self) -> "pd.DataFrame":
        """The list `rows` as a DataFrame indexed by method, without the warnings."""
        import pandas as pd

        return pd.DataFrame(self.rows).set_index("method").drop(columns="warnings")

    @property
    def agreement(self) -> "pd.DataFrame":
        """The NMI between the labels of each pair of methods: a square DataFrame, in the order of `rows`."""
        import pandas as pd

        names = [row["method"] for row in self.rows]
        answers = encode([self.labels[name] for name in names], names)
        return pd.DataFrame(score_pairs(answers, nmi_of).matrix(), names, names)

    def __repr__(self) -> str:
        first = self.rows[0]
        margin = f", by {self.margin:.4f}" if len(self.rows) > 1 else ""
        return checks.summary(
            self,
            f"{self.best} agrees best with the clusterings{margin}",
            agreement=", ".join(f"{row['method']} {row['anmi']:.3f}" for row in self.rows[:8]),
            sizes=f"{first['n_clusters']:,} clusters, of {first['smallest']:,} to {first['largest']:,} objects",
            left_out=", ".join(self.left_out),
            see="table, labels, agreement",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON values with everything except the labels."""
        between = {name: dict(column) for name, column in self.agreement.to_dict().items()}
        margin = None if np.isnan(self.margin) else self.margin
        choice = {"best": self.best, "margin": margin}
        return {**choice, "methods": self.rows, "left_out": self.left_out, "agreement": between}


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
        deviations (of the sample, ddof=1). A method without randomness runs once, and its deviations are 0.
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
    truth, features = in_order_of(ensemble.index, truth, "truth"), in_order_of(ensemble.index, features, "features")
    classes = None if truth is None else _encode_truth(truth, ensemble.n_objects)
    names = select_methods(methods)
    if features is not None:
        features = _check_features(features, names, ensemble.n_objects)
    objects = Rows(ensemble, device=devices.resolve(device, ensemble.device_kind))
    checks.check_n_clusters(n_clusters, core_groups(objects).rows.n_rows)
    rows: list[dict[str, Any]] = []
    answers: dict[str, np.ndarray] = {}
    left_out: dict[str, str] = {}
    with progress.bar(len(names), "methods") as bar:
        for name in names:
            runs = []
            try:
                for seed in _seeds(name, random_state, repeat):
                    estimator = default_estimator(name, n_clusters, seed, device)
                    if estimator.parts().needs_features and features is None:
                        raise ValueError("needs features of the objects.")
                    with time_limit(max_seconds):
                        answer, cost = _timed_fit(estimator, ensemble, features)
                    answer = devices.to_host(answer)
                    runs.append((answer, {"method": name, **_scores(objects, answer, classes), **cost}))
            except (*failures.OF_ONE_METHOD, OutOfTime) as error:
                left_out[name] = failures.describe(error)
            else:
                answers[name], row = max(runs, key=lambda run: run[1]["anmi"])
                rows.append(row if repeat == 1 else row | _summary([row for _, row in runs]))
            bar.update(1)
    if not rows:
        name, why = next(iter(left_out.items()))
        raise ValueError(f"methods: no method is left to compare, because {name} is left out: {why.rstrip('.')}.")
    rows.sort(key=lambda row: -row["anmi"])
    return Comparison(rows, answers, left_out)


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


def _seeds(name: str, random_state: Any, repeat: int) -> list[Any]:
    """Return one ``random_state`` for each run of a method; a method without randomness has one run."""
    if "random_state" not in REGISTRY.load(name)._get_param_names():
        return [random_state]
    if isinstance(random_state, (int, np.integer)):
        return [int(random_state) + run for run in range(repeat)]
    return [random_state] * repeat  # a generator continues from run to run, and None differs each time


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means and standard deviations of the scores of a method's runs, its mean seconds and most memory."""
    means: dict[str, float | None] = {}
    deviations: dict[str, float | None] = {}
    for name in (score for score in SCORES if score in runs[0]):
        values = [row[name] for row in runs if row[name] is not None]
        means[name] = float(np.mean(values)) if values else None
        deviations[f"{name}_std"] = (float(np.std(values, ddof=1)) if len(values) > 1 else 0.0) if values else None
    memory = [row["memory"] for row in runs if row["memory"] is not None]
    return {
        **means,
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
