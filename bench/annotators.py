"""Print how many names are right by votes, by Dawid & Skene's model and by crowd-kit, on drawn answers.

    python bench/annotators.py [--repetitions 5] [--mace] [--large 1000000]

Eleven kinds of crowds, of which each annotator has a confusion matrix. "without prior" is the model of Dawid &
Skene (1979) as it is. With --large, CPU seconds and accuracy of so many objects with 5 answers each, from 20,000
annotators.
crowd-kit (pip install crowd-kit) is left out where it is missing.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pandas as pd

import gpuens as ge
from gpuens.partition import annotators


class Crowd(NamedTuple):
    n_objects: int
    n_annotators: int
    n_names: int
    answers: int | None  # answers for each object; None: each annotator answers most objects
    skill: Callable[[np.random.Generator, int], np.ndarray]
    shares: tuple[float, ...] | None = None  # shares of the names; None: drawn
    flaw: str = ""  # a merged pair of names, or a favourite name, of every second or third annotator
    activity: float | None = None  # exponent of a heavy tail of the annotators' numbers of answers


def of_beta(a: float, b: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: rng.beta(a, b, n)


def in_two_groups(low: float, n_low: float, high: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: np.where(np.arange(n) < round(n_low * n), low, high)


CROWDS = {
    "3 good, 8 guess": Crowd(1000, 11, 5, None, in_two_groups(0.2, 8 / 11, 0.9)),
    "2 names": Crowd(3000, 150, 2, 5, of_beta(6, 2), (0.7, 0.3)),
    "5 names": Crowd(3000, 150, 5, 5, of_beta(4, 2), (0.2,) * 5),
    "10 names": Crowd(3000, 200, 10, 5, of_beta(3, 2)),
    "rare names": Crowd(4000, 100, 4, 5, of_beta(6, 2), (0.9, 0.06, 0.03, 0.01)),
    "5 answers each": Crowd(4000, 4000, 4, 5, of_beta(4, 2), (0.4, 0.3, 0.2, 0.1)),
    "a third guesses": Crowd(4000, 2000, 4, 5, in_two_groups(0.25, 0.35, 0.85), (0.4, 0.3, 0.2, 0.1)),
    "heavy tail": Crowd(4000, 500, 4, 4, of_beta(4, 2), (0.4, 0.3, 0.2, 0.1), activity=1.2),
    "merged names": Crowd(2000, 10, 6, None, of_beta(8, 2), flaw="merge"),
    "favourite names": Crowd(3000, 100, 3, 4, of_beta(5, 2), (0.5, 0.3, 0.2), flaw="favourite"),
    "4 experts": Crowd(500, 4, 6, None, of_beta(8, 2)),
}
SEEN = 0.8  # share of the objects that an annotator answers where answers are not counted


def draw(crowd: Crowd, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table of answers (object, annotator, label), and the true names (n_objects,)."""
    rng = np.random.default_rng(seed)
    n, m, k = crowd.n_objects, crowd.n_annotators, crowd.n_names
    shares = rng.dirichlet(np.full(k, 3.0)) if crowd.shares is None else np.array(crowd.shares)
    truth = rng.choice(k, n, p=shares)
    skills = np.clip(crowd.skill(rng, m)[:, None] + rng.normal(0, 0.05, (m, k)), 0.02, 0.98)
    wrong = rng.dirichlet(np.ones(k - 1), size=(m, k)) * (1 - skills)[:, :, None]
    confusions = np.zeros((m, k, k))
    confusions[:, ~np.eye(k, dtype=bool)] = wrong.reshape(m, -1)
    confusions[:, np.arange(k), np.arange(k)] = skills
    if crowd.flaw == "merge":
        for annotator in range(0, m, 2):
            first, second = rng.choice(k, 2, replace=False)
            confusions[annotator, first] = confusions[annotator, second]
    if crowd.flaw == "favourite":
        favourites = np.eye(k)[rng.integers(k, size=m)]
        confusions[::3] = (confusions + favourites[:, None])[::3] / 2
    if crowd.answers is None:
        objects, annotators_of = np.nonzero(rng.random((n, m)) < SEEN)
        kept, objects = np.unique(objects, return_inverse=True)  # without objects that nobody answers
        truth = truth[kept]
    else:
        weights = np.ones(m) if crowd.activity is None else rng.pareto(crowd.activity, m) + 0.1
        draws = [rng.choice(m, crowd.answers, replace=False, p=weights / weights.sum()) for _ in range(n)]
        objects, annotators_of = np.repeat(np.arange(n), crowd.answers), np.concatenate(draws)
    limits = confusions[annotators_of, truth[objects]].cumsum(axis=1)
    answers = np.minimum((limits < rng.random((len(objects), 1))).sum(axis=1), k - 1)
    return pd.DataFrame({"task": objects, "worker": annotators_of, "label": answers}), truth


def large(n_objects: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = rng.choice(5, n_objects, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    skills, objects = rng.beta(4, 2, 20_000), np.repeat(np.arange(n_objects), 5)
    workers = (rng.integers(4000, size=(n_objects, 5)) + np.arange(5) * 4000).ravel()
    right = rng.random(len(objects)) < skills[workers]
    answers = np.where(right, truth[objects], rng.integers(5, size=len(objects)))
    return pd.DataFrame({"task": objects, "worker": workers, "label": answers}), truth


def by_model(table: pd.DataFrame) -> np.ndarray:
    answers = ge.Answers(table)
    labels = ge.EM(vocabulary="shared").fit_predict(answers)
    return pd.Series(labels, index=answers.index).sort_index().to_numpy()


def by_model_without_prior(table: pd.DataFrame) -> np.ndarray:
    constants = annotators.ANSWERS_FOR_A_NAME
    annotators.ANSWERS_FOR_A_NAME = 1e-9
    try:
        return by_model(table)
    finally:
        annotators.ANSWERS_FOR_A_NAME = constants


def by_votes(table: pd.DataFrame) -> np.ndarray:
    """Return the name with most votes of each object, the smallest of tied ones."""
    votes = table.groupby(["task", "label"]).size().unstack(fill_value=0)
    return votes.columns.to_numpy()[votes.to_numpy().argmax(axis=1)]


def by_crowd_kit(name: str) -> Callable[[pd.DataFrame], np.ndarray]:
    def aggregate(table: pd.DataFrame) -> np.ndarray:
        from crowdkit import aggregation

        return getattr(aggregation, name)().fit_predict(table).sort_index().to_numpy()

    return aggregate


METHODS = {"vote": by_votes, "model without prior": by_model_without_prior, "model": by_model}
PEERS = {"crowd-kit DawidSkene": by_crowd_kit("DawidSkene")}
SLOW_PEERS = {"crowd-kit MACE": by_crowd_kit("MACE")}  # a minute for 3,000 objects


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="crowds of each kind (5)")
    parser.add_argument("--large", type=int, default=0, metavar="N", help="also measure N objects")
    parser.add_argument("--mace", action="store_true", help="also run crowd-kit's MACE, half an hour of CPU")
    options = parser.parse_args()
    has_peers = find_spec("crowdkit") is not None
    methods = METHODS | (PEERS | (SLOW_PEERS if options.mace else {}) if has_peers else {})
    print(f"| crowd | {' | '.join(methods)} |\n|{'---|' * (len(methods) + 1)}")
    for name, crowd in CROWDS.items():
        drawn = [draw(crowd, seed) for seed in range(options.repetitions)]
        shares = [np.mean([(method(table) == truth).mean() for table, truth in drawn]) for method in methods.values()]
        print(f"| {name} | {' | '.join(f'{share:.3f}' for share in shares)} |", flush=True)
    if not has_peers:
        print("\ncrowd-kit is not installed")
    if options.large:
        table, truth = large(options.large)
        print(f"\n| {options.large:,} objects | CPU seconds | right |\n|---|---|---|")
        for name in ("vote", "model", *(["crowd-kit DawidSkene"] if has_peers else [])):
            start = time.process_time()
            right = (methods[name](table) == truth).mean()
            print(f"| {name} | {time.process_time() - start:.1f} | {right:.4f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
