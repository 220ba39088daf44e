"""The tables of the page of quality.py: statistics over sets, tests against the default, and goals."""

from collections.abc import Callable, Iterator

import common
import numpy as np
import report

GROUPS = {"shapes": "shapes", "real": "real sets", "pools": "published pools"}
MATRICES = {  # groups of label matrices
    "space": "tissues by ten spatial programs", "hetero": "real sets by ten algorithms",
    "pool": "published pools, 10 of 100 clusterings", "real_km": "real sets by 20 k-means",
    "text_km": "texts by 20 k-means",
}  # fmt: skip
KINDS = {
    "kmeans": ": 20 k-means", "landmark": ": 20 landmark clusterings", "cluster": ": those of ge.cluster",
    "pool": ": 10 of 100 clusterings", "features": "", "labels": "",
}  # fmt: skip
NEAR = 1.5  # largest ratio of the number of clusters to the true one, or of the true one to it, that counts as near
BASE = "ge.cluster"  # the function with which anchors are compared
MEAN_ARI = 0.76  # goal for the mean ARI of ge.cluster on the shapes
OF_A_THIRD = 0.70  # ARI; no random third of the shapes may have a significantly smaller mean
THIRDS = 1000
NUMBER_GOALS = {"consensus, k-means": (0.50, 0.68), "ge.cluster": (0.50, 0.68)}
# goals: shares of the shapes for which the number must be exact, and must differ by at most one
SILENT = 100  # number of clusters from which a result without a warning is a fault
LARGE_GOALS = {"pd": 0.86, "usps": 0.726, "mnist": 0.75, "covtype": 0.09}  # goals for NMI
CHOSEN_AMONG = {
    "lwgp and lwea": ("lwgp", "lwea"),
    "methods without trees": ("lwgp", "gp-mgla", "hbgf", "mcla", "ecpcs-mc", "em"),
    "all candidates": ("lwgp", "lwea", "gp-mgla", "hbgf", "mcla", "ecpcs-mc", "ecpcs-hc", "weac", "em", "eac"),
}
EVIDENCE = (
    "anmi", "ecs", "item consensus", "margin", "silhouette", "silhouette by cluster", "confidence", "halves",
    "halves and whole", "modularity", "cut", "balance", "smallest", "others",
)  # fmt: skip


# --- sets, seeds and methods ------------------------------------------------------------------------------------------


def ensembles_of(rows: common.Record) -> dict[str, str]:
    """Return {"group, kind": its name on the page} for all groups and kinds with rows."""
    sets: dict[str, set[str]] = {}
    for key, row in rows.items():
        sets.setdefault(ensemble_of(key, row), set()).add(key.split(", ")[0])
    return {
        ensemble: f"{len(sets[ensemble])} {title}{kind}"
        for group, title in {**MATRICES, **GROUPS}.items() for name, kind in KINDS.items()
        if (ensemble := f"{group}, {name}") in sets
    }  # fmt: skip


def ensemble_of(key: str, row: common.Record) -> str:
    return f"{row['group']}, {key.split(', ')[1]}"


def part_values(name: str, rows: common.Record, record: common.Record) -> common.Record:
    setting = record["parts"][name]["setting"]
    if name == "large":
        return {"setting": setting}
    keys = {key for key, row in rows.items() if row["group"] not in MATRICES}  # label matrices are the same for all
    seeds = sorted({int(key.split(", ")[2]) for key in keys or rows})
    among = {group: f"Picked among {', '.join(names)}" for group, names in CHOSEN_AMONG.items()}
    return {
        "seeds": seeds, "limit": setting["limits"][name],
        "lists": {"ensemble": ensembles_of(rows), "among": among},
    }  # fmt: skip


def by_set(rows: common.Record, ensemble: str) -> dict[str, list[common.Record]]:
    """Return the rows of each set of one group and kind, one for each seed."""
    runs: dict[str, list[common.Record]] = {}
    for key, row in rows.items():
        if ensemble_of(key, row) == ensemble:
            runs.setdefault(key.split(", ")[0], []).append(row)
    return runs


def scores_of(rows: common.Record, ensemble: str, score: str) -> dict[str, dict[str, float]]:
    """Return {method: {set: mean over the seeds}}, without sets on which the method was left out."""
    means: dict[str, dict[str, float]] = {}
    for name, runs in by_set(rows, ensemble).items():
        for method in runs[0]["methods"]:
            values = [run["methods"].get(method, {}).get(score) for run in runs]
            if None not in values:
                means.setdefault(method, {})[name] = float(np.mean(values))
    return means


def ranking(rows: common.Record, ensemble: str) -> list[common.Record]:
    """Return a line for each method, sorted by the mean difference from the base on the same sets, the best first."""
    ari, nmi, cpu = (scores_of(rows, ensemble, score) for score in ("ari", "nmi", "cpu"))
    base = base_of(rows)
    if base not in ari:
        return []
    n_sets = len(by_set(rows, ensemble))
    lines = [compared(ari, name, base) for name in ari]
    places = ranks({name: of for name, of in ari.items() if len(of) == n_sets})
    for line, p in zip(lines, holm([line["p"] for line in lines]), strict=True):
        name = line["key"]
        line["holm"] = None if name == base else p
        line["rank"], line["nmi"] = places.get(name), float(np.mean(list(nmi[name].values())))
        line["cpu"] = float(np.mean(list(cpu[name].values())))
        line["sets"] = len(ari[name])
    lines += members(rows, ensemble)
    return sorted(lines, key=lambda line: -line["gain"])


def base_of(rows: common.Record) -> str:
    """Return the base of comparisons: ge.cluster among the anchors, else the default method."""
    first = next(iter(rows.values()))
    return BASE if BASE in first["methods"] else str(first["default"])


def compared(ari: dict[str, dict[str, float]], name: str, base: str) -> common.Record:
    """Return the statistics of a method, and its wins and losses beside the base on the sets that both have."""
    sets = [set_name for set_name in ari[name] if set_name in ari[base]]
    scores, base_scores = (np.array([ari[method][set_name] for set_name in sets]) for method in (name, base))
    differences = scores - base_scores
    return {
        "key": name, "mean": scores.mean(), "median": float(np.median(scores)), "gain": differences.mean(),
        "wins": int((differences > 0.005).sum()), "losses": int((differences < -0.005).sum()),
        "p": signed_rank(differences),
    }  # fmt: skip


def members(rows: common.Record, ensemble: str) -> Iterator[common.Record]:
    """Yield the lines of the best and the mean base clustering, beside the base on the same sets."""
    of_sets, base = by_set(rows, ensemble), base_of(rows)
    base_scores = scores_of(rows, ensemble, "ari")[base]
    for how in ("best", "mean"):
        if "members" not in next(iter(rows.values())):
            continue
        means = {score: {name: float(np.mean([run["members"][f"{how} {score}"] for run in runs])) for name, runs in
                        of_sets.items()} for score in ("ari", "nmi")}  # fmt: skip
        line = compared({how: means["ari"], base: base_scores}, how, base)
        yield line | {
            "key": f"*{how} base clustering*", "nmi": float(np.mean(list(means["nmi"].values()))), "sets": len(of_sets)
        }  # fmt: skip


def ranks(scores: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the mean rank over the sets of each method that has a score on all of them."""
    from scipy.stats import rankdata

    if not scores:
        return {}
    sets = list(next(iter(scores.values())))
    table = np.array([[-of[name] for name in sets] for of in scores.values()])
    return dict(zip(scores, rankdata(table, axis=0).mean(axis=1).tolist(), strict=True))


def signed_rank(differences: np.ndarray) -> float:
    """Return p of Wilcoxon's signed-rank test by the normal approximation; 1 if there are no differences."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(differences, method="approx").pvalue) if np.any(differences) else 1.0


def holm(ps: list[float]) -> list[float]:
    """Return p values with Holm's correction for the number of tests. The base is not tested with itself."""
    n_tests, largest = len(ps) - 1, 0.0
    corrected = np.ones(len(ps))
    for place, index in enumerate(np.argsort(ps, kind="stable")):
        largest = max(largest, min(1.0, max(1, n_tests - place) * ps[index]))
        corrected[index] = largest
    return corrected.tolist()


# --- what holds -------------------------------------------------------------------------------------------------------


def methods(rows: common.Record) -> Iterator[report.Found]:
    for ensemble, title in ensembles_of(rows).items():
        lines = [line for line in ranking(rows, ensemble) if "base clustering" not in line["key"]]
        base = base_of(rows)
        baseline = next((line for line in lines if line["key"] == base), None)
        if baseline is None:
            continue
        better = [
            f"{line['key']} ({line['mean']:.3f})" for line in lines
            if (line["holm"] or 1.0) < report.LEVEL and line["gain"] > 0
        ]  # fmt: skip
        yield "ranked", {
            "ensemble": title, "best": lines[0]["key"], "gain": lines[0]["gain"], "base": base, "own": baseline["mean"],
            "place": lines.index(baseline) + 1, "of": len(lines), "better": better,
        }  # fmt: skip


def anchors(rows: common.Record) -> Iterator[report.Found]:
    for ensemble, title in ensembles_of(rows).items():
        ari = scores_of(rows, ensemble, "ari")
        if BASE not in ari:
            continue
        rivals = sorted(((np.mean(list(of.values())), name) for name, of in ari.items() if name != BASE), reverse=True)
        texts = [f"{name} {mean:.3f}" for mean, name in rivals]
        base_scores = np.array(list(ari[BASE].values()))
        yield "beside", {"group": title, "own": base_scores.mean(), "others": texts}
        if ensemble.startswith("shapes"):
            yield "mean", {"own": base_scores.mean(), "goal": MEAN_ARI, "ok": bool(base_scores.mean() >= MEAN_ARI)}
            below = thirds_below(base_scores)
            yield "thirds", {"below": below, "goal": OF_A_THIRD, "ok": below <= report.LEVEL, "n": THIRDS}


def thirds_below(ari: np.ndarray) -> float:
    """Return the share of random thirds of the sets whose mean is below the goal by Student's t, one-sided."""
    from scipy.stats import t

    size, rng = len(ari) // 3, np.random.default_rng(0)
    if size < 2:
        return float(ari.mean() < OF_A_THIRD)
    samples = ari[np.argsort(rng.random((THIRDS, len(ari))), axis=1)[:, :size]]
    short = OF_A_THIRD - samples.mean(axis=1)
    return float(np.mean(short > t.ppf(1 - report.LEVEL, size - 1) * samples.std(axis=1, ddof=1) / np.sqrt(size)))


def number(rows: common.Record) -> Iterator[report.Found]:
    for ensemble, title in ensembles_of(rows).items():
        lines = {line["key"]: line for line in numbers(rows, ensemble)}
        for way, (exact, close) in NUMBER_GOALS.items():
            if (line := lines.get(way)) is None or not ensemble.startswith("shapes"):
                continue
            ok = bool(line["exact"] >= exact and line["close"] >= close)
            yield "found", {"way": way, "goal": exact, "goal_close": close, "ok": ok} | line
        silent = {way: line["silent"] for way, line in lines.items()}
        way = max(silent, key=silent.__getitem__, default=None)
        if way is not None:
            yield "silent", {"group": title, "way": way, "most": silent[way], "ok": silent[way] < SILENT}


def numbers(rows: common.Record, ensemble: str) -> list[common.Record]:
    """Return a line for each way to find the number of clusters."""
    runs = [run for runs in by_set(rows, ensemble).values() for run in runs]
    return [of_way(way, runs) for way in runs[0]["found"] if any("k" in run["found"][way] for run in runs)]


def of_way(way: str, runs: list[common.Record]) -> common.Record:
    answered = [run for run in runs if "k" in run["found"].get(way, {})]
    k, truth = (np.array([values for values in values_of_runs]) for values_of_runs in zip(*(
        (run["found"][way]["k"], run["k"]) for run in answered), strict=True))  # fmt: skip
    warned = np.array([bool(run["found"][way]["warned"]) for run in answered])
    off, is_small = np.abs(k - truth), truth <= 20
    silent = k[~warned]
    return {
        "key": way, "sets": len(answered), "exact": share(off == 0), "close": share(off <= 1),
        "exact_few": share(off[is_small] == 0), "close_few": share(off[is_small] <= 1), "median": float(np.median(k)),
        "off": float(np.median(off)), "warned": share(warned), "exact_silent": share(off[~warned] == 0),
        "silent": int(silent.max()) if len(silent) else 0,
        "cpu": float(np.mean([run["found"][way]["cpu"] for run in answered])),
    }  # fmt: skip


def share(flags: np.ndarray) -> float | None:
    return float(np.mean(flags)) if len(flags) else None


def without_k(rows: common.Record) -> Iterator[report.Found]:
    for line in unaided(rows):
        yield "unaided", line


def unaided(rows: common.Record) -> list[common.Record]:
    """Return a line for each group, and one for all label matrices: the consensus without k beside that with it."""
    lines = [of_group(title, by_set(rows, ensemble)) for ensemble, title in ensembles_of(rows).items()]
    matrices = {key: [row] for key, row in rows.items() if row["group"] in MATRICES}
    return [*lines, *([of_group(f"{len(matrices)} label matrices", matrices)] if matrices else [])]


def of_group(title: str, sets: dict[str, list[common.Record]]) -> common.Record:
    """Return the statistics of a group; each set counts once, as the mean over its seeds."""

    def mean(value: Callable[[common.Record], float | bool]) -> float:
        return float(np.mean([np.mean([value(run) for run in runs]) for runs in sets.values()]))

    def as_good(way: str) -> float:
        return mean(lambda run: run[way]["ari"] >= run["members"]["mean ari"])

    runs = [run for runs in sets.values() for run in runs]
    k, truth = (np.array(values) for values in zip(*((run["without"]["k"], run["k"]) for run in runs), strict=True))
    silent = np.array([not run["without"]["warned"] for run in runs])
    is_near, off = np.abs(np.log(k / truth)) <= np.log(NEAR) + 1e-12, np.abs(k - truth)
    ari, ari_with = (mean(lambda run, way=way: run[way]["ari"]) for way in ("without", "with"))
    return {
        "key": title, "sets": len(sets), "ari": ari, "ari_with": ari_with, "share": ari / ari_with,
        "members": mean(lambda run: run["members"]["mean ari"]), "as_good": as_good("without"),
        "as_good_with": as_good("with"), "largest": mean(lambda run: run["without"]["largest"]),
        "most": max(run["without"]["largest"] for run in runs), "warned": share(~silent), "near": share(is_near),
        "near_silent": share(is_near[silent]), "exact": share(off == 0), "exact_silent": share((off == 0)[silent]),
        "close": share(off <= 1), "cpu": mean(lambda run: run["without"]["cpu"]),
    }  # fmt: skip


def candidates(rows: common.Record) -> Iterator[report.Found]:
    first, *lines = beside(rows)
    for line in lines:
        if line["holm"] < report.LEVEL:
            yield "beside", {"first": first["key"]} | line
    for among in CHOSEN_AMONG:
        lines = {line["key"]: line for line in picked(rows, among)}
        single = {name: line for name, line in lines.items() if name in CHOSEN_AMONG[among]}
        by_evidence = {name: line for name, line in lines.items() if name in EVIDENCE}
        best, rule = (max(of.values(), key=lambda line: line["mean"]) for of in (single, by_evidence))
        yield "picked", {
            "among": among, "single": best["key"], "own": best["mean"], "rule": rule["key"], "by": rule["mean"],
            "oracle": lines["*the best*"]["mean"],
        }  # fmt: skip


def picked(rows: common.Record, among: str) -> list[common.Record]:
    """Return the mean ARI of each candidate, of the candidate with the most evidence, and of the best candidate."""
    names, sets = CHOSEN_AMONG[among], {ensemble: by_set(rows, ensemble) for ensemble in ensembles_of(rows)}

    def line(way: str, take: Callable[[dict[str, common.Record]], common.Record]) -> common.Record:
        def score(run: common.Record) -> float:
            results = {name: run["candidates"][name] for name in names if name in run["candidates"]}
            return float(take(results)["ari"])

        means = {
            ensemble: float(np.mean([np.mean([score(run) for run in runs]) for runs in of_sets.values()]))
            for ensemble, of_sets in sets.items()
        }
        return {"key": way, "picked": means, "mean": float(np.mean(list(means.values())))}

    lines = [line(name, lambda results, name=name: results.get(name, next(iter(results.values())))) for name in names]
    lines += [line(e, lambda results, e=e: max(results.values(), key=lambda row: as_number(row[e]))) for e in EVIDENCE]
    return [*lines, line("*the best*", lambda results: max(results.values(), key=lambda row: row["ari"]))]


def beside(rows: common.Record) -> list[common.Record]:
    """Return how each candidate does beside the first over all sets and kinds, and how far two seeds of it differ."""
    ari: dict[str, dict[str, float]] = {}
    spread = []
    for ensemble in ensembles_of(rows):
        for name, runs in by_set(rows, ensemble).items():
            for method in CHOSEN_AMONG["all candidates"]:
                values = [run["candidates"].get(method, {}).get("ari") for run in runs]
                if None not in values:
                    ari.setdefault(method, {})[f"{name}, {ensemble}"] = float(np.mean(values))
                    spread += [(method, abs(values[0] - values[1]))] if len(values) > 1 else []
    first, *rivals = ari
    lines = [compared(ari, name, first) for name in (first, *rivals)]
    for line, p in zip(lines, holm([line["p"] for line in lines]), strict=True):
        offsets = [off for name, off in spread if name == line["key"]]
        line |= {"holm": None if line["key"] == first else p, "seeds": float(np.mean(offsets)) if offsets else None}
        line["sets"] = len(ari[line["key"]])
    return lines


def as_number(value: float | None) -> float:
    """Return a value of evidence; an undefined value counts as the smallest value."""
    return -np.inf if value is None or np.isnan(value) else value


def large(rows: common.Record) -> Iterator[report.Found]:
    for name, goal in LARGE_GOALS.items():
        scores = [row["nmi"] for key, row in rows.items() if key.split(", ")[0] == name]
        if scores:
            mean = float(np.mean(scores))
            yield "large", {"name": name, "own": mean, "goal": goal, "ok": mean >= goal}
