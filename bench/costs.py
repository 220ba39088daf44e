"""The cost model of `gpuens.workflows.forecast`: CPU seconds and memory of every method on ensembles of many shapes.

    python bench/costs.py [--methods eac lwea …] [--limit 12]

Each method is fitted, with one thread in a process of its own, to ensembles that are drawn at random: 300 to 30,000
objects, 3 to 300 clusterings of up to 2√N clusters, 1 to 30 % of the labels at random, 2 to 50 clusters wanted. Its
seconds and its bytes are then taken to be

    a + b · rows^p · clusterings^q · base clusters^r · clusters wanted^s

with coefficients ≥ 0 that least squares of logarithms find from these samples and those of results/methods.json. The
model goes to gpuens/workflows/costs.json, with the seconds that `gpuens.workflows.costs.standard_seconds` took here;
the samples, and the factors by which the model misses them, go to results/costs.json. Three quarters of an hour on an
idle core.
"""

import argparse
import json
import multiprocessing
import os
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

import common
import numpy as np
from methods import MEMORY
from parts import SINGLE
from scipy.optimize import least_squares
from sklearn.base import clone
from threadpoolctl import threadpool_limits
from vs_peers import N_CLASSES, N_CLUSTERINGS, mixture

from gpuens import Ensemble

N_SHAPES = 16
AGAIN = 20.0  # a fit of fewer CPU seconds is repeated, because the first fit may import packages
FEW = 300  # objects of the first fit, which imports packages
MOST_POWERS = {"seconds": (3.0, 2.0, 2.0, 2.0), "memory": (2.0, 1.0, 2.0, 1.0)}  # largest exponents of the four sizes
LEAST = {"seconds": 1e-4, "memory": 1e7}  # smallest cost in seconds and bytes; smaller costs count as this cost
RESULTS = Path(__file__).parent / "results" / "costs.json"
MODEL = Path(__file__).parent.parent / "gpuens" / "workflows" / "costs.json"


def main() -> None:
    import gpuens as ge
    from gpuens.workflows import costs

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [name for name in ge.methods() if name != "auto"]  # "auto" runs several of the other methods
    parser.add_argument("--methods", nargs="+", choices=names, default=names)
    parser.add_argument("--limit", type=float, default=12.0, help="seconds after which a fit is given up (12)")
    options = parser.parse_args()
    os.environ.update(SINGLE, GPUENS_MEMORY=str(MEMORY))
    samples = json.loads(RESULTS.read_text())["samples"] if RESULTS.exists() else {}
    for name in options.methods:
        if name not in samples:
            samples[name] = measured(name, options.limit)
            RESULTS.write_text(json.dumps({"samples": samples}, indent=1))
    larger = of_methods()
    models_of = {name: rows + larger.get(name, []) for name, rows in samples.items()}
    classes = {name: kind.__name__ for name, kind in ge.methods().items()}
    models = {
        name: {"estimator": classes[name], **{what: fitted(rows, what) for what in LEAST}}
        for name, rows in models_of.items()
    }
    missed = {name: misses(rows, models[name]) for name, rows in models_of.items()}
    RESULTS.write_text(json.dumps({"commit": common.commit(), "samples": samples, "missed": missed}, indent=1))
    standard = min(costs.standard_seconds() for _ in range(5))
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(model)}" for name, model in models.items())
    MODEL.write_text(f'{{"standard_seconds": {standard:.4g}, "methods": {{\n{lines}\n}}}}\n')
    for name, factors in missed.items():
        print(
            f"{name:12} {len(models_of[name]):3} samples, missed by {' '.join(f'{factor:.1f}' for factor in factors)}"
        )


def shapes() -> list[tuple[int, int, int, float, int]]:
    """Return (objects, clusterings, largest k, noise, requested clusters) of each ensemble, the cheapest first."""
    rng = np.random.default_rng(7)
    found = []
    while len(found) < N_SHAPES:
        n, m, wanted = (int(np.exp(rng.uniform(*np.log(ends)))) for ends in ((300, 30_000), (3, 300), (2, 50)))
        most = int(np.exp(rng.uniform(np.log(5), np.log(min(250, 2 * n**0.5)))))
        if n * m < 1_500_000:
            found.append((n, m, most, float(rng.choice([0.01, 0.05, 0.3])), wanted))
    return sorted(found, key=lambda shape: shape[0] * shape[1])


def of_methods() -> dict[str, list[dict[str, float]]]:
    """Return the fits in results/methods.json (of up to a million objects) as samples of each method."""
    found: dict[str, list[dict[str, float]]] = {}
    base = Ensemble(mixture(10_000, 0.2, 0)[0]).n_clusters
    for part in json.loads((RESULTS.parent / "methods.json").read_text())["parts"].values():
        for name, row in part["rows"].items():
            found.setdefault(name, []).extend(
                {"rows": fit["rows"], "m": N_CLUSTERINGS, "base": base, "k": N_CLASSES, "seconds": fit["cpu"],
                 "memory": fit["memory"]}
                for fit in row["fits"]
            )  # fmt: skip
    return found


def measured(name: str, limit: float) -> list[dict[str, float]]:
    """Return the costs of fits to all shapes in turn, until a fit takes longer than the limit."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    child = fork.Process(target=fits, args=(name, theirs))
    child.start()
    theirs.close()
    rows = []
    try:
        while ours.poll(limit if rows else 2 * limit):  # the first answer waits for imports, too
            row = ours.recv()
            print(name, row, flush=True)
            if "failed" not in row:
                rows.append(row)
    except EOFError:
        pass
    finally:
        child.kill()
        child.join()
    return rows


def fits(name: str, answers: Connection) -> None:
    """Send the cost of a method's fit to each shape."""
    import gpuens as ge
    from gpuens.runtime import record
    from gpuens.workflows.compare import default_estimator

    warnings.simplefilter("ignore")
    for seed, (n, m, most, noise, wanted) in enumerate(shapes()):
        ensemble = ge.Ensemble(mixture(n, noise, seed, m, (2, most))[0])
        features = np.random.default_rng(seed).standard_normal((n, 4)).astype(np.float32)
        estimator = default_estimator(name, None if name == "best-of-k" else wanted, seed, "cpu")
        given, few = ({"features": features[:some]} if estimator.needs_features else {} for some in (n, FEW))
        try:
            with threadpool_limits(1):
                if not seed:  # this fit imports packages
                    clone(estimator).set_params(n_clusters=estimator.n_clusters and 2).fit(
                        ensemble.take(slice(0, FEW)), **few
                    )
                before = record.resident_memory()
                record.forget_peak_memory()
                found, _, cpu = common.timed(lambda: clone(estimator).fit(ensemble, **given))  # noqa: B023
                memory = max(0, common.peak_memory() - before)
                if cpu < AGAIN:  # another shape may need packages that were not imported before the first fit
                    cpu = min(cpu, common.timed(lambda: clone(estimator).fit(ensemble, **given))[2])  # noqa: B023
        except (ImportError, MemoryError, RuntimeError, ValueError) as error:
            answers.send({"failed": str(error)})
            continue
        rows = len(found.reduction_.counts)
        answers.send({"rows": rows, "m": m, "base": ensemble.n_clusters, "k": wanted, "seconds": cpu, "memory": memory})


# --- the model --------------------------------------------------------------------------------------------------------


def fitted(rows: list[dict[str, float]], what: str) -> list[float]:
    """Return the parameters (a, b, p, q, r, s) of the cost model, fitted to samples."""
    sizes = np.log([[row["rows"], row["m"], row["base"], row["k"]] for row in rows])
    costs = np.log([max(row[what], LEAST[what]) for row in rows])

    def errors(x: np.ndarray) -> np.ndarray:
        return np.logaddexp(x[0], x[1] + sizes @ x[2:]) - costs

    low = [np.log(LEAST[what] / 10), -60.0, 0.0, 0.0, 0.0, 0.0]
    high = [costs.min() + 0.01, 25.0, *MOST_POWERS[what]]
    found = []
    for powers in np.eye(4) * 0.9 + 0.1:
        start = [costs.min() - 0.1, costs.mean() - sizes.mean(axis=0) @ powers, *powers]
        found.append(least_squares(errors, np.clip(start, low, high), bounds=(low, high), loss="soft_l1"))
    x = min(found, key=lambda result: result.cost).x
    return [float(f"{value:.4g}") for value in (*np.exp(x[:2]), *x[2:])]


def misses(rows: list[dict[str, float]], model: dict[str, list[float]]) -> list[float]:
    """Return, for each sample of .05 s or more, the factor between the model's seconds and the measured seconds."""
    from gpuens.workflows import costs

    found = []
    for row in rows:
        if row["seconds"] >= 0.05:
            said = costs.of(model["seconds"], row["rows"], row["m"], row["base"], row["k"])
            found.append(max(said / row["seconds"], row["seconds"] / said))
    return found


if __name__ == "__main__":
    main()
