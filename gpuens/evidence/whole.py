"""All evidence for one consensus; each part is computed when it is first accessed."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gpuens.evidence.agreement import Agreement
from gpuens.evidence.agreement import of_rows as agreement_of_rows
from gpuens.evidence.beyond_chance import BeyondChance, beyond_chance
from gpuens.evidence.clusters import Clusters
from gpuens.evidence.clusters import of_rows as clusters_of_rows
from gpuens.evidence.consistency import Consistency, consistency
from gpuens.evidence.inputs import CONVENTIONS, checked_inputs
from gpuens.evidence.objects import NewObjects, Objects, VotedObjects, of_new_rows
from gpuens.evidence.objects import of_rows as objects_of_rows
from gpuens.evidence.pairs import Pairs, pairs
from gpuens.labels.rows import Rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices


class Evidence:
    """All evidence that base clusterings give for a consensus; estimators return it from ``evidence()``.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        The base clusterings (n_objects, n_clusterings).
    consensus : array (n_objects,)
        A label for every object. If it is a Series and the labels are pandas objects, they are matched by their
        indexes.
    missing : {"zero", "ignore"}
        The treatment of missing labels in `objects`, `clusters` and `pairs`.
    device : {"auto", "cpu", "cuda"}

    Attributes
    ----------
    objects : Objects
        Evidence for each object, see `gpuens.evidence.objects`.
    clusters : Clusters
    agreement : Agreement
    consistency : Consistency
    beyond_chance : BeyondChance

    Raises
    ------
    ValueError, TypeError
        For a consensus of another length, or a consensus with unlabelled objects.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> found = ge.EAC(2).fit(labels).evidence()
    >>> found.objects.confidence.round(2).tolist()
    [0.75, 0.75, 0.67, 0.6, 0.81, 0.81]
    >>> found.clusters.consensus.round(2).tolist(), round(found.agreement.anmi, 2), round(found.pairs().area(), 2)
    ([0.78, 0.78], 0.77, 0.62)
    """

    _certainty: dict[str, np.ndarray] | None = None  # fields of `objects` (G,) that are shares of votes
    _unit: int = 1  # weight of a count of 1; sizes of clusters are weights

    def __init__(self, labels: Any, consensus: Any, *, missing: str = "zero", device: str = "auto") -> None:
        checks.check_choice(missing, "missing", CONVENTIONS)
        self._rows, self._labels = checked_inputs(labels, consensus, device)
        self._row_of: np.ndarray | None = None
        self.missing = missing

    @classmethod
    def of_groups(
        cls,
        rows: Rows,
        labels: np.ndarray,
        row_of: Any,
        missing: str = "zero",
        certainty: dict[str, np.ndarray] | None = None,
        unit: int = 1,
    ) -> "Evidence":
        """Return the evidence for distinct label rows with the consensus labels ``labels`` (G,), 0 … k - 1.

        ``row_of`` (N,) is the position of each object's row. ``certainty`` holds fields of `Objects` (G,) from votes,
        which replace those computed here. ``unit`` is the weight of a count of 1.
        """
        found = object.__new__(cls)
        found._certainty, found._unit = certainty, unit
        found.missing = checks.check_choice(missing, "missing", CONVENTIONS)
        found._rows, found._labels, found._row_of = rows, labels, devices.to_host(row_of)
        return found

    @cached_property
    def objects(self) -> Objects:
        found = self._of_rows
        return found if self._row_of is None else type(found)(*(values[self._row_of] for values in found))

    @cached_property
    def _of_rows(self) -> Objects:
        found = objects_of_rows(self._rows, self._labels, self.missing)
        return found if self._certainty is None else VotedObjects(*found._replace(**self._certainty))

    @cached_property
    def clusters(self) -> Clusters:
        clusters = clusters_of_rows(self._rows, self._labels, self.missing)
        return replace(clusters, sizes=clusters.sizes * self._unit)

    @cached_property
    def agreement(self) -> Agreement:
        return agreement_of_rows(self._rows, self._labels)

    @cached_property
    def consistency(self) -> Consistency:
        found = consistency(self._rows)
        return found if self._row_of is None else replace(found, ecc=found.ecc[self._row_of])

    @cached_property
    def beyond_chance(self) -> BeyondChance:
        return beyond_chance(self._rows)

    def __repr__(self) -> str:
        n, k = len(self.labels), int(self._labels.max()) + 1
        answer = f"{n:,} objects in {k:,} clusters, by {self.shape[1]:,} clusterings"
        try:
            rows, clusters, agreement = self._of_rows, self.clusters, self.agreement
        except MemoryError as error:
            return checks.summary(self, answer, left_out=str(error))
        shares, weights = (0.25, 0.5, 0.75), self._rows.counts
        quartiles = np.quantile(rows.certainty, shares, weights=weights, method="inverted_cdf")
        known = ~np.isnan(rows.margin)
        doubtful = np.sum(self._rows.counts[known & (rows.margin <= 0)]) / max(np.sum(self._rows.counts[known]), 1)
        shown = [f"{n:,} ({c:.2f})" for n, c in zip(clusters.sizes[:5], clusters.consensus[:5], strict=True)]
        return checks.summary(
            self,
            answer,
            certainty="{1:.2f} is the median, half of the objects are from {0:.2f} to {2:.2f}".format(*quartiles),
            doubtful=f"{doubtful:.1%} of the objects, whose margin is not above 0" if known.any() else "",
            sizes_and_consensus=", ".join(shown) + " …" * (k > len(shown)),
            agreement=f"{agreement.anmi:.2f} (mean NMI with the clusterings)",
            see="objects, clusters, agreement, consistency, beyond_chance, pairs()",
        )

    @property
    def labels(self) -> np.ndarray:
        """The consensus label, 0 … k - 1, of each object (n_objects,), int64."""
        return self._labels if self._row_of is None else self._labels[self._row_of]

    @property
    def rows(self) -> Rows:
        """The distinct label rows of the base clusterings."""
        return self._rows

    @property
    def shape(self) -> tuple[int, int]:
        """The number of distinct label rows, and the number of clusterings."""
        return self._rows.n_rows, self._rows.n_clusterings

    def of_new(self, rows: Rows, labels: np.ndarray, row_of: Any) -> NewObjects:
        """Return the evidence for the labels of new objects.

        The clusters are numbered as in the fit. ``row_of[i]`` is the position of the label row of object i in ``rows``.
        """
        row_of = devices.to_host(row_of)
        found = of_new_rows(self._rows, self._labels, rows, labels, self.missing)
        return NewObjects(labels[row_of], Objects(*(values[row_of] for values in found)))

    def pairs(self, **choices: Any) -> Pairs:
        """Return the result of `gpuens.evidence.pairs` for the base clusterings; the parameters are the same."""
        return pairs(self._rows, **({"missing": self.missing} | choices))
