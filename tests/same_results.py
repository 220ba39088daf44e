"""A comparison of this commit with another commit: the results of all methods on ten ensembles.

    python tests/same_results.py COMMIT

prints every label, height or objective that differs in a single bit, and exits with 1 if there is any. No test: it is
for whoever moves code about.
"""

import hashlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve()
FOUND = ("labels_", "distances_", "children_", "lifetimes_", "objective_", "meta_clusters_", "eci_", "mu_")


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    if sys.argv[1] == "-":
        import gpuens

        # the import hook of an editable installation would come before PYTHONPATH
        if Path(gpuens.__file__).parents[1] != Path(os.environ["PYTHONPATH"]).resolve():
            raise SystemExit(f"gpuens was imported from {gpuens.__file__}, not from PYTHONPATH.")
        json.dump(dict(results()), sys.stdout)
        return
    with tempfile.TemporaryDirectory() as folder:
        there = f"{folder}/there"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", there, sys.argv[1]], check=True)
        try:
            if Path(there, "kernels/CMakeLists.txt").exists():
                subprocess.run(["make", "native", f"BIN={Path(sys.executable).parent}"], cwd=there, check=True)
            then, now = (digests_of(checkout) for checkout in (there, HERE.parents[1]))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", there], check=True)
    differing = sorted(case for case in then.keys() | now.keys() if then.get(case) != now.get(case))
    print(*(f"{case}: {then.get(case)} then, {now.get(case)} now" for case in differing), sep="\n")
    print(f"{len(then)} results, {len(differing)} of which differ")
    sys.exit(bool(differing))


def digests_of(checkout: Any) -> dict[str, str]:
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    found = subprocess.run([sys.executable, HERE, "-"], env=environment, capture_output=True, check=True)
    digests: dict[str, str] = json.loads(found.stdout)
    return digests


def results() -> Iterator[tuple[str, str]]:
    """Yield the results of each method on each ensemble: a name of the result, and a digest of its bits."""
    import gpuens as ge

    warnings.simplefilter("ignore")
    for name, (labels, features) in ensembles().items():
        for method, estimator in sorted(ge.methods().items()):
            for reduction in (None, "catree:0.2,gamma=0.9", "sample:150"):
                for given in settings(method):
                    case = f"{name} {method} {reduction} {given}"
                    try:
                        est = estimator(3, reduction=reduction, **given)
                        est.fit(labels, **given_features(est, features))
                    except ValueError as error:  # an error message counts as a result
                        yield case, type(error).__name__
                        continue
                    for found in FOUND:
                        try:
                            value = np.asarray(getattr(est, found, None))
                        except ValueError:  # a fit of a sample has no tree of all objects
                            continue
                        if value.dtype != object:
                            yield f"{case} {found}", hashlib.sha256(np.ascontiguousarray(value)).hexdigest()[:16]


def settings(method: str) -> list[dict[str, Any]]:
    if method == "eac":
        return [{"linkage": linkage} for linkage in ("average", "single", "complete")]
    if method in ("lwea", "lwgp"):
        return [{}, {"theta": 0.2}]
    return [{}]


def given_features(est: Any, features: np.ndarray) -> dict[str, np.ndarray]:
    if type(est).__name__ not in ("ECRMC", "TOME"):
        return {}
    has = inspect.signature(est.fit).parameters
    return {"features" if "features" in has else "X": features}


def ensembles() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return ten ensembles by name: labels (n_objects, n_clusterings) and features."""
    from sklearn import datasets

    found = {}
    for name in ("iris", "wine", "breast_cancer", "digits"):
        features = getattr(datasets, f"load_{name}")().data
        found[name] = nearest_of_some(features, 12, 0), features
    rng = np.random.default_rng(1)
    for n_classes, noise, missing in ((3, 0.1, 0.0), (5, 0.3, 0.1), (8, 0.02, 0.3), (2, 0.6, 0.0)):
        truth = rng.integers(n_classes, size=600)
        features = rng.standard_normal((600, 4)) + 4 * truth[:, None] * np.array([1, -1, 0.5, 0])
        labels = np.column_stack([rng.permutation(n_classes + m % 3)[truth] for m in range(9)])
        changed = rng.random(labels.shape) < noise
        labels[changed] = rng.integers(n_classes, size=int(changed.sum()))
        labels[(rng.random(labels.shape) < missing) & (np.arange(9) > 0)] = -1
        found[f"{n_classes} classes, {noise} noise, {missing} missing"] = labels, features
    features = rng.standard_normal((300, 3))
    found["all random"] = rng.integers(6, size=(300, 10)), features
    found["many clusters"] = np.column_stack([rng.integers(300, size=300) for _ in range(4)]), features
    return found


def nearest_of_some(features: np.ndarray, n_clusterings: int, seed: int) -> np.ndarray:
    """Return clusterings: each object joins the nearest of some random objects. All arithmetic is in integers."""
    rng = np.random.default_rng(seed)
    scaled = np.rint(100 * (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-9)).astype(np.int64)
    columns = []
    for _ in range(n_clusterings):
        centers = scaled[rng.choice(len(scaled), int(rng.integers(3, 13)), replace=False)]
        columns.append(((scaled[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1))
    return np.column_stack(columns)


if __name__ == "__main__":
    main()
