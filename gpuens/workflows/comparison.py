"""The result of a comparison of methods: their rows, the test of the best against each other, and the answer in words.

The test is Student's paired t-test of the ANMI of two methods over the runs of both. Two kinds of runs vary:

- seeds vary the randomness of a method alone. J runs are independent; the variance of their mean is v / J, where v is
  the variance of the differences. Two methods without randomness have one run each, and no test.
- draws of m of the M base clusterings, the same for all methods, vary what the methods are given. The draws overlap, so
  that the mean over many of them still has the error of the M clusterings. By the jackknife that deletes M - m of them
  (Shao & Wu, Annals of Statistics 17 (1989)), the variance is v (1 / J + m / (M - m)).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.contingency.labels import encode
from gpuens.contingency.scores import nmi_of, score_pairs
from gpuens.runtime import checks
from gpuens.runtime.checks import counted
from gpuens.runtime.defaults import LEVEL

if TYPE_CHECKING:
    import pandas as pd

SCORES_OF_TRUTH = ("nmi", "nmi_max", "ari", "accuracy")
SCORES = ("anmi", "ecs", "item_consensus", "silhouette", *SCORES_OF_TRUTH)
NEAR = 0.01  # largest difference in ANMI between the best method and those that the answer of single runs counts
MOST_NAMED = 8  # maximum number of methods that a sentence names
MB = 10**6  # bytes; less additional memory is "< 1 MB", because allocation by the system is not exact
SHORT = {"item_consensus": "item", "silhouette": "silh."}  # heads of scores in the printed table
Row = dict[str, Any]  # the entries of a method in `Comparison.rows`


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
        scores (all but the sizes of clusters) and the seconds are means, "memory" is the largest, and there are also
        "n_runs"; "anmi_std", …, the standard deviations of the scores, None after a single run; and of all but the best
        "difference", the ANMI of the best minus that of the method, with "difference_low" and "difference_high", its
        interval of 95 %, and "p" of a paired t-test, by Holm for all methods; these are None if neither method varies.
    labels : dict of str to ndarray (n_objects,)
        The labels found by each method; if it was repeated, those with the largest ANMI, whose sizes are in ``rows``.
    left_out : dict of str to str
        The methods that were not run, and the reasons.
    runs : dict of str to list of dict
        The rows of the runs of each method; a method that nothing varies has one run.
    truth : dict or None
        The scores of the truth in place of a method's labels, by its labelled objects: "anmi", "ecs", ….
    n_runs : int
        The runs of each method that varies.
    share : float
        The share of the base clusterings in each run; below 1, draws vary all methods.
    """

    rows: list[Row]
    labels: dict[str, np.ndarray]
    left_out: dict[str, str]
    runs: dict[str, list[Row]] = field(default_factory=dict)
    truth: Row | None = None
    n_runs: int = 1
    share: float = 1.0

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

    @property
    def varied(self) -> str:
        """The runs over which scores are means, such as "10 seeds"; "" if each method ran once."""
        if self.n_runs == 1:
            return ""
        draws = f"draws of {100 * self.share:.0f} % of the base clusterings"
        return f"{self.n_runs} {'seeds' if self.share == 1 else draws}"

    @property
    def answer(self) -> list[str]:
        """Sentences about the best method, and about those that differ from it."""
        anmi = f"{self.rows[0]['anmi']:.3f}"
        tail = f"its mean ANMI over {self.varied} is {anmi}" if self.varied else f"its ANMI is {anmi}"
        if self.varied and self.share == 1:
            tail += " (always of the same base clusterings)"
        sentences = [f"{self.best} agrees best with the base clusterings: {tail}."]
        if len(self.rows) > 1:
            sentences += _sentences_of_tests(self.rows) if self.varied else [_sentence_of_gaps(self.rows)]
        return sentences

    @property
    def answer_by_truth(self) -> list[str]:
        """Sentences about the method nearest to the truth, and about the truth's own ANMI; [] without a truth."""
        return _sentences_of_truth(self.rows, self.truth)

    def __repr__(self) -> str:
        first = self.rows[0]
        margin = f", by {self.margin:.4f}" if len(self.rows) > 1 else ""
        return checks.summary(
            self,
            f"{self.best} agrees best with the clusterings{margin}",
            agreement=", ".join(f"{row['method']} {row['anmi']:.3f}" for row in self.rows[:8]),
            runs=self.varied,
            sizes=f"{first['n_clusters']:,} clusters, of {first['smallest']:,} to {first['largest']:,} objects",
            left_out=", ".join(self.left_out),
            see="table, labels, agreement, answer",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON values with everything except the labels."""
        between = {name: dict(column) for name, column in self.agreement.to_dict().items()}
        margin = None if np.isnan(self.margin) else self.margin
        choice = {"best": self.best, "margin": margin, "answer": self.answer + self.answer_by_truth}
        how = {"n_runs": self.n_runs, "share": self.share, "truth": self.truth, "runs": self.runs}
        return {**choice, "methods": self.rows, "left_out": self.left_out, "agreement": between, **how}


# --- tests of the best method against the others ----------------------------------------------------------------------


def add_tests(rows: list[Row], runs: dict[str, list[Row]], share: float) -> None:
    """Add "difference", its interval and "p" to the row of each method but the first, which is the best."""
    anmi = {name: np.array([run["anmi"] for run in of_method]) for name, of_method in runs.items()}
    first, *rivals = rows
    first |= dict.fromkeys(("difference", "difference_low", "difference_high", "p"))
    for row in rivals:
        row |= _test_pair(anmi[first["method"]], anmi[row["method"]], share)
    largest = 0.0
    tested = sorted((row for row in rivals if row["p"] is not None), key=lambda row: row["p"])
    for i, row in enumerate(tested):  # by Holm, the p-values never fall in their order
        row["p"] = largest = max(largest, min(1.0, (len(tested) - i) * row["p"]))


def _test_pair(best: np.ndarray, rival: np.ndarray, share: float) -> Row:
    """Return the mean difference of two methods' runs, its interval and p; None in place of them without variation."""
    from scipy.special import stdtr, stdtrit

    differences = best - rival  # one run stands for all runs of a method that nothing varies
    n, mean = len(differences), float(differences.mean())
    deviation = float(differences.std(ddof=1)) if n > 1 else 0.0
    error = deviation * np.sqrt(1 / n + (share / (1 - share) if share < 1 else 0.0))
    if error == 0.0 and (mean != 0.0 or n == 1):
        return {"difference": mean, "difference_low": None, "difference_high": None, "p": None}
    half = float(stdtrit(n - 1, 1 - LEVEL / 2) * error)
    p = 1.0 if mean == 0.0 else float(2 * stdtr(n - 1, -abs(mean) / error))
    return {"difference": mean, "difference_low": mean - half, "difference_high": mean + half, "p": p}


# --- the answer in words ----------------------------------------------------------------------------------------------


def _sentences_of_tests(rows: list[Row]) -> list[str]:
    """Return sentences about the best method beside its rivals, by what the tests say of them."""
    rivals = rows[1:]
    worse_rows, equal_rows, open_rows, untested_rows = (
        [row for row in rivals if _verdict(row) == verdict] for verdict in ("less", "alike", "undecided", "untested")
    )
    sentences = []
    if n_tested := len(rivals) - len(untested_rows):
        better = f"It agrees better than {len(worse_rows) or 'none'} of {counted(n_tested, 'tested method')}"
        sentences.append(f"{better} (paired t-test, p < {LEVEL:g} by Holm).")
    if equal_rows:
        bound = max(map(_largest_difference, equal_rows))
        sentences.append(f"It does not differ by more than {bound:.3f} (95 %) from {_name_methods(equal_rows)}.")
    if open_rows:
        sentences.append(f"More runs could tell it from {_name_methods(open_rows)}.")
    if untested_rows:
        sentences.append(
            f"Seeds vary neither it nor {_name_methods(untested_rows)}; draws of the base clusterings would."
        )
    return sentences


def _verdict(row: Row) -> str:
    if row["p"] is None:
        return "untested"
    if row["p"] < LEVEL:
        return "less"
    return "alike" if _largest_difference(row) <= NEAR else "undecided"


def _largest_difference(row: Row) -> float:
    """Return the largest difference from the best method in the interval of 95 %."""
    return float(max(row["difference_high"], -row["difference_low"]))


def _sentence_of_gaps(rows: list[Row]) -> str:
    """Return a sentence about the methods near to the best, each of which ran once."""
    gaps = [rows[0]["anmi"] - row["anmi"] for row in rows[1:]]
    name, near = rows[1]["method"], sum(gap < NEAR for gap in gaps)
    sentence = f"The next, {name}, has {gaps[0]:.4f} less" if gaps[0] else f"{name} has the same"
    if near > 1:
        sentence += f", and {near} of the others have at most {NEAR:g} less"
    return f"{sentence}; each method ran once, so that this may be chance."


def _sentences_of_truth(rows: list[Row], truth: Row | None) -> list[str]:
    if "ari" not in rows[0]:
        return []
    first, nearest = rows[0], max(rows, key=lambda row: row["ari"])
    if nearest["ari"] == first["ari"]:
        sentences = [f"It also agrees best with the truth: its ARI is {first['ari']:.3f}."]
    else:
        both = f"its ARI is {nearest['ari']:.3f}, that of {first['method']} {first['ari']:.3f}"
        sentences = [f"With the truth, {nearest['method']} agrees best: {both}."]
    if truth is not None and (beyond := sum(row["anmi"] > truth["anmi"] for row in rows)):
        sentences.append(
            f"The truth's own ANMI is {truth['anmi']:.3f}, exceeded by {counted(beyond, 'method')}: more ANMI is not "
            "always nearer to the truth."
        )
    return sentences


def _name_methods(rows: Sequence[Row]) -> str:
    """Return the names of the first methods as part of a sentence, with the number of the others."""
    names = [row["method"] for row in rows]
    if len(names) > MOST_NAMED + 1:
        names[MOST_NAMED:] = [f"{len(names) - MOST_NAMED} others"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


# --- the table in rounded numbers -------------------------------------------------------------------------------------


def cells(rows: list[Row], scores: Sequence[str] = SCORES, costs: bool = True) -> list[list[str]]:
    """Return the table of a comparison as texts, its head first: the ``scores``, and sizes, p, time and memory.

    Numbers of one column are aligned at the point if their texts are aligned right.
    """
    names = [name for name in scores if name in rows[0]]
    columns = [[SHORT.get(name, name), *_shares(rows, name)] for name in names]
    if costs and any(row.get("p") is not None for row in rows):
        columns.append(["p", *("-" if row["p"] is None else _small(row["p"]) for row in rows)])
    if costs:
        sizes = {"clusters": "n_clusters", "smallest": "smallest", "largest": "largest"}
        columns += [[head, *(f"{row[name]:,}" for row in rows)] for head, name in sizes.items()]
        columns.append(["time", *(human_seconds(row["seconds"]) for row in rows)])
        columns.append(["memory", *(_memory(row["memory"]) for row in rows)])
    return [list(line) for line in zip(["", *(row["method"] for row in rows)], *columns, strict=True)]


def _shares(rows: list[Row], name: str) -> list[str]:
    """Return the texts of a score; one without a deviation has spaces in its place."""
    deviations = [row.get(f"{name}_std") for row in rows]
    texts = ["" if deviation is None else f" ± {deviation:.3f}" for deviation in deviations]
    width = max(map(len, texts))
    values = ["-" if row[name] is None else f"{row[name]:z.3f}" for row in rows]
    return [value + text.ljust(width) for value, text in zip(values, texts, strict=True)]


def _small(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _memory(n_bytes: int | None) -> str:
    return "-" if n_bytes is None else checks.human_bytes(n_bytes) if n_bytes >= MB else "< 1 MB"


def human_seconds(seconds: float) -> str:
    """Return a duration in seconds as a short text.

    >>> human_seconds(0.21), human_seconds(0.97), human_seconds(7.6), human_seconds(400), human_seconds(40_000)
    ('0.2 s', '1 s', '8 s', '7 min', '11 h')
    """
    if seconds < 0.95:
        return f"{max(seconds, 0.1):.1f} s"
    for unit, length in (("s", 1.0), ("min", 60.0)):
        if seconds < 100 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 3600:.0f} h"
