"""A choice among numbers of clusters: the criteria of each number, and the suggestion with its reasons.

The smallest PAC alone is no evidence for a number, because PAC falls as k grows even if the data have no clusters.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.evidence import ConsensusMatrix, Suggestion, beyond_chance
from gpuens.runtime import checks
from gpuens.runtime.defaults import LEVEL, METHOD

if TYPE_CHECKING:
    import pandas as pd

ABOUT_AS_WELL = "about as well"  # reason for the numbers that suit the clusterings nearly as well as the suggested one
LEAST_GAIN = 0.01  # smaller relative gains of area are raised to this limit, because the elbow divides by them
Criteria = dict[str, Any]  # the row of a number of clusters in `Choice.rows`


@dataclass(repr=False)
class Choice:
    """The result of `choose_k`.

    Attributes
    ----------
    rows : list of dict
        One for each number of clusters "k", ascending. "silhouette": the median over the clusters of their mean
        silhouette on 1 - C, with "silhouette_low" and "silhouette_high", its bootstrap interval of 95 %;
        "mean_silhouette" and "certainty": means over the objects; "cluster_consensus": the mean over the clusters;
        "anmi"; "smallest": objects of the smallest cluster. From one ensemble "support" (of the groups that the
        clusterings share), "nearness" (to their own numbers) and "score", which combines them
        (`gpuens.evidence.Suggestion`), and from a tree "lifetime"; from clusterings for each k "pac",
        "rpac", "corrected_pac", "area", "delta_area" (relative to the area of the k before, at the first k the area)
        and "inconsistency"; from reference data "rcsi" and "p" (M3C). None where a number is not defined.
    labels : dict of int to ndarray (n_objects,)
        The consensus for each number of clusters.
    suggested : int
    reasons : dict of int to str
        The reason for the suggestion and for each close alternative, without the doubt.
    structure : bool or None
        With reference data: whether the PAC of the suggestion is smaller than theirs. Without reference data: False if
        the clusterings agree no more than independent clusterings might (`gpuens.evidence.beyond_chance`), otherwise
        None, because agreement does not show that the data have clusters.
    doubt : str or None
        The reason for a doubt about the suggestion: other numbers suit the clusterings about as well, or these share no
        clear groups. None without a doubt.
    consensus : dict of int to gpuens.evidence.ConsensusMatrix
        For each k, the distribution of the pairs of objects and the consensus matrix of at most 500 objects. If all k
        have the same clusterings, all entries are equal.
    method : str
        The method that found `labels`.
    lopsided : dict of int to str
        For each number whose consensus has far less even sizes than the base clusterings, for example clusters of
        single objects: a description and advice. If the suggestion is such a number, there is also a warning.
    """

    rows: list[dict[str, Any]]
    labels: dict[int, np.ndarray]
    suggested: int
    reasons: dict[int, str]
    structure: bool | None
    doubt: str | None = None
    consensus: dict[int, ConsensusMatrix] = field(default_factory=dict, repr=False)
    method: str = METHOD
    lopsided: dict[int, str] = field(default_factory=dict)

    def plot(self, k: int | None = None) -> np.ndarray:
        """Draw the pictures of ConsensusClusterPlus: consensus matrix, CDF, delta area and tracking plot.

        If the clusterings are the same for all k, the score replaces the delta area. To draw a single picture into an
        Axes, use `gpuens.plotting.consensus_matrix`, `cdf`, `criterion` or `tracking`.

        Parameters
        ----------
        k : int, optional
            The number of clusters whose consensus orders the matrix; the suggested one by default.

        Returns
        -------
        ndarray (2, 2) of matplotlib Axes
            Of a new figure; ``axes[0, 0].figure.savefig("picture.png")`` writes it.

        Raises
        ------
        ValueError
            For a number that was not compared.

        Examples
        --------
        >>> import gpuens as ge
        >>> found = ge.choose_k([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]], ks=[2, 3])
        >>> found.plot()[0, 0].get_title()
        'Consensus of 6 objects in 3 clusters'
        """
        from gpuens.plotting.choice import overview

        return overview(self, k)

    @property
    def runners_up(self) -> list[int]:
        return [k for k in self.reasons if k != self.suggested]

    @property
    def alternatives(self) -> dict[str, list[int]]:
        """The numbers in `runners_up` as {reason: its numbers}, the best first."""
        numbers: dict[str, list[int]] = {}
        for k in self.runners_up:
            numbers.setdefault(self.reasons[k], []).append(k)
        return numbers

    @property
    def caveats(self) -> list[str]:
        """Sentences about missing structure and a doubtful number; an empty list without them."""
        sentences = []
        if self.structure is False:
            as_well = "reference data without clusters" if "p" in self.rows[0] else "independent clusterings"
            sentences.append(f"There is no structure beyond chance: {as_well} might do as well.")
        if self.doubt is not None:
            sentences.append(f"The number is in doubt: {self.doubt}.")
        return sentences

    @property
    def by_criterion(self) -> dict[str, int]:
        """The suggestion of each criterion alone, as {criterion: number of clusters with the best value}.

        For "delta_area" the best value is the elbow, after which it falls by the largest factor. In data without
        clusters, "pac" often suggests the largest number. Criteria whose numbers give worse answers on real data than
        always 8 clusters are left out, such as the support of the spectrum alone.
        """
        return {name: best for name, rule in SINGLE.items() if (best := rule(self.rows, name)) is not None}

    @property
    def table(self) -> "pd.DataFrame":
        """The list `rows` as a DataFrame indexed by k."""
        import pandas as pd

        return pd.DataFrame(self.rows).set_index("k")

    def __repr__(self) -> str:
        single: dict[int, list[str]] = {}
        for name, k in self.by_criterion.items():
            single.setdefault(k, []).append(name.replace("_", " "))
        return checks.summary(
            self,
            f"{self.suggested} clusters are suggested, of the numbers {min(self.labels)} to {max(self.labels)}",
            why=self.reasons[self.suggested],
            but=" ".join(self.caveats),
            **{why: ", ".join(map(str, numbers)) for why, numbers in self.alternatives.items()},
            single_criteria="; ".join(f"{k} by {', '.join(names)}" for k, names in sorted(single.items())),
            see="table, labels, reasons, plot()",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON values with everything except the labels and the consensus matrices."""
        return {
            "suggested": self.suggested,
            "reasons": {str(k): why for k, why in self.reasons.items()},
            "structure": self.structure,
            "doubt": self.doubt,
            "method": self.method,
            "lopsided": {str(k): why for k, why in self.lopsided.items()},
            "by_criterion": self.by_criterion,
            "ks": self.rows,
        }


# --- the best number by a single criterion ----------------------------------------------------------------------------


def _extreme(optimum: Callable[..., Any]) -> Callable[[list[Criteria], str], int | None]:
    """Return a rule: the first number of clusters whose criterion has the ``min`` or the ``max`` value."""

    def rule(rows: list[Criteria], name: str) -> int | None:
        defined = _with_criterion(rows, name)
        return optimum(defined, key=lambda row: row[name])["k"] if defined else None

    return rule


def _elbow(rows: list[Criteria], name: str) -> int | None:
    """Return the number of clusters after which the criterion ``name`` falls by the largest factor."""
    defined = _with_criterion(rows, name)
    values = [max(row[name], LEAST_GAIN) for row in defined]
    falls = [before / after for before, after in pairwise(values)]
    return defined[int(np.argmax(falls))]["k"] if falls else None


def _with_criterion(rows: list[Criteria], name: str) -> list[Criteria]:
    return [row for row in rows if row.get(name) is not None]


# name of a criterion → rule that finds the best number of clusters by this criterion
SINGLE = {
    **dict.fromkeys(("lifetime", "mean_silhouette", "rcsi"), _extreme(max)),
    **dict.fromkeys(("pac", "corrected_pac", "inconsistency"), _extreme(min)),
    "delta_area": _elbow,
}


# --- suggestions ------------------------------------------------------------------------------------------------------


def choice_by_silhouette(rows: list[Criteria], labels: dict[int, np.ndarray]) -> Choice:
    """Return chooseR's choice: the most clusters whose median silhouette reaches the best lower limit."""
    defined = _with_criterion(rows, "silhouette")
    best = max(defined, key=lambda row: row["silhouette_low"])
    good = [row for row in defined if row["silhouette"] >= best["silhouette_low"]]
    reasons = {row["k"]: f"clusters that hold together as well as those of {best['k']}" for row in reversed(good)}
    suggested = good[-1]["k"]
    reasons[suggested] = (
        f"the most clusters that hold together as well as those of any number (median silhouette "
        f"{good[-1]['silhouette']:.2f})"
    )
    return Choice(rows, labels, suggested, reasons, None)


def choice_by_score(
    rows: list[Criteria], labels: dict[int, np.ndarray], suggestion: Suggestion, chooser: Choice | None = None
) -> Choice:
    """Return a choice that suggests the best of the compared numbers of clusters.

    Its reasons also name the numbers that suit nearly as well, and the suggestion of ``chooser``, if any.
    """
    numbers = list(labels)
    best = (suggestion.best(numbers) or [min(numbers)])[0]
    reasons = {best: suggestion.reason(numbers) if suggestion.best(numbers) else "no other number was compared"}
    reasons |= dict.fromkeys(suggestion.close(numbers), ABOUT_AS_WELL)
    if chooser is not None:
        k, why = chooser.suggested, f"by chooseR's rule, {chooser.reasons[chooser.suggested]}"
        reasons[k] = f"{reasons[k]}; {why}" if k in reasons else why
    return Choice(rows, labels, best, reasons, None, suggestion.doubt(numbers))


def compare_with_references(choice: Choice) -> Choice:
    """Return the choice with `structure` set by the PAC of reference data; unchanged without reference data."""
    p = next(row for row in choice.rows if row["k"] == choice.suggested).get("p")
    if p is None:
        return choice
    return _with_structure(choice, f"p = {p:.3f} by reference data", p <= LEVEL)


def compare_with_chance(choice: Choice, labels: Any, device: str) -> Choice:
    """Return the choice; set its `structure` to False if the clusterings ``labels`` agree no more than by chance."""
    agreement = beyond_chance(labels, device=device)
    return _with_structure(choice, str(agreement), False) if agreement.doubtful else choice


def _with_structure(choice: Choice, why: str, structure: bool) -> Choice:
    reasons = choice.reasons | {choice.suggested: f"{choice.reasons[choice.suggested]}; {why}"}
    return replace(choice, structure=structure, reasons=reasons)
