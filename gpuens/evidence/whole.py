"""All evidence for one consensus; each part is computed when it is first accessed."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gpuens.evidence.agreement import Agreement, measure_agreement
from gpuens.evidence.beyond_chance import BeyondChance, beyond_chance
from gpuens.evidence.certificate import Certificate, certify
from gpuens.evidence.clusters import Clusters, measure_clusters
from gpuens.evidence.consistency import Consistency, consistency
from gpuens.evidence.inputs import CONVENTIONS, read_consensus
from gpuens.evidence.objects import NewObjects, Objects, VotedObjects, measure_objects
from gpuens.evidence.overlaps import Overlaps
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
        self._rows, self._labels = read_consensus(labels, consensus, device)
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
        evidence = object.__new__(cls)
        evidence._certainty, evidence._unit = certainty, unit
        evidence.missing = checks.check_choice(missing, "missing", CONVENTIONS)
        evidence._rows, evidence._labels, evidence._row_of = rows, labels, devices.to_host(row_of)
        return evidence

    @cached_property
    def objects(self) -> Objects:
        by_row = self._row_objects
        return by_row if self._row_of is None else type(by_row)(*(values[self._row_of] for values in by_row))

    @cached_property
    def _overlaps(self) -> Overlaps:
        return Overlaps.of(self._rows, self._labels)

    @cached_property
    def _row_objects(self) -> Objects:
        """The evidence for an object of each row."""
        objects = measure_objects(self._overlaps, self._rows, self._labels, self.missing)
        return objects if self._certainty is None else VotedObjects(*objects._replace(**self._certainty))

    @cached_property
    def clusters(self) -> Clusters:
        clusters = measure_clusters(self._overlaps, self.missing)
        return replace(clusters, sizes=clusters.sizes * self._unit)

    @cached_property
    def agreement(self) -> Agreement:
        return measure_agreement(self._overlaps)

    @cached_property
    def consistency(self) -> Consistency:
        by_row = consistency(self._rows)
        return by_row if self._row_of is None else replace(by_row, ecc=by_row.ecc[self._row_of])

    @cached_property
    def beyond_chance(self) -> BeyondChance:
        return beyond_chance(self._rows)

    def __repr__(self) -> str:
        n, k = len(self.labels), int(self._labels.max()) + 1
        answer = f"{n:,} objects in {k:,} clusters, by {self.shape[1]:,} clusterings"
        try:
            objects, clusters, agreement = self._row_objects, self.clusters, self.agreement
        except MemoryError as error:
            return checks.summary(self, answer, left_out=str(error))
        shares, weights = (0.25, 0.5, 0.75), self._rows.counts
        quartiles = np.quantile(objects.certainty, shares, weights=weights, method="inverted_cdf")
        has_margin = ~np.isnan(objects.margin)
        doubtful = np.sum(weights[has_margin & (objects.margin <= 0)]) / max(np.sum(weights[has_margin]), 1)
        sizes = [f"{n:,} ({c:.2f})" for n, c in zip(clusters.sizes[:5], clusters.consensus[:5], strict=True)]
        return checks.summary(
            self,
            answer,
            certainty="{1:.2f} is the median, half of the objects are from {0:.2f} to {2:.2f}".format(*quartiles),
            doubtful=f"{doubtful:.1%} of the objects, whose margin is not above 0" if has_margin.any() else "",
            sizes_and_consensus=", ".join(sizes) + " …" * (k > len(sizes)),
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

    def describe_new(self, rows: Rows, labels: np.ndarray, row_of: Any) -> NewObjects:
        """Return the evidence for the labels of new objects.

        The clusters are numbered as in the fit. ``row_of[i]`` is the position of the label row of object i in ``rows``.
        """
        row_of = devices.to_host(row_of)
        objects = measure_objects(self._overlaps, rows, labels, self.missing, new=True)
        return NewObjects(labels[row_of], Objects(*(values[row_of] for values in objects)))

    def pairs(self, **choices: Any) -> Pairs:
        """Return the result of `gpuens.evidence.pairs` for the base clusterings; the parameters are the same."""
        return pairs(self._rows, **({"missing": self.missing} | choices))

    def certificate(self, loss: str = "binder", a: float = 1.0) -> Certificate:
        """Return the result of `gpuens.evidence.certificate` for the consensus; the parameters are the same."""
        return certify(self._rows, self._labels, loss, a)
