"""A description of base clusterings, with the time and memory that each method would need to find their consensus."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.contingency.scores import agreements_of
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.odd_columns import equal_columns, odd_columns
from gpuens.labels.rows import Rows
from gpuens.reduction import core_groups
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.workflows.compare import chosen, default_estimator
from gpuens.workflows.forecast import Forecast, foresee


@dataclass
class Description:
    """The result of `describe`.

    Attributes
    ----------
    n_objects, n_clusterings, n_clusters : int
    ``n_clusters`` counts the clusters of all clusterings.
    n_distinct : int
        The number of distinct label rows, on which methods work.
    missing : float
        The share of missing labels.
    columns : list of dict
        For each clustering: "name", "n_clusters", "smallest" and "largest" cluster, the share "missing", "agreement"
        (mean NMI with the others; None for a single clustering), "odd" (why the column is probably no clustering, or
        None) and "same_as" (the name of an earlier, equal clustering, or None).
    methods : dict of str to Forecast
        The estimated time and memory of each method for ``k`` clusters, without reading and encoding.
    k : int
    """

    n_objects: int
    n_clusterings: int
    n_clusters: int
    n_distinct: int
    missing: float
    columns: list[dict[str, Any]]
    methods: dict[str, Forecast]
    k: int

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as a dict of JSON values; an unknown time or memory (NaN) becomes None."""
        methods = {
            name: {key: None if value != value else value for key, value in forecast._asdict().items()}
            for name, forecast in self.methods.items()
        }
        return {**vars(self), "methods": methods}


def describe(
    labels: Any, n_clusters: int | None = None, *, forecasts: bool = True, device: str = "auto"
) -> Description:
    """Describe base clusterings, and estimate the time and memory that each method needs for their consensus.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        (n_objects, n_clusterings).
    n_clusters : int, optional
        The number of clusters of the consensus, for the estimates; by default the median over the clusterings.
    forecasts : bool
        Whether to estimate costs, by the model of each method (`gpuens.workflows.forecast`) and without fitting.
    device : {"auto", "cpu", "cuda"}

    Raises
    ------
    ValueError, TypeError
        For labels that Ensemble refuses.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.describe([[0, 0, 0, 1, 1], [0, 0, 1, 2, None]], forecasts=False)
    >>> found.n_distinct, round(found.missing, 3), [column["n_clusters"] for column in found.columns]
    (4, 0.1, [2, 3])
    """
    ensemble = Ensemble(labels)
    rows = core_groups(Rows(ensemble, device=devices.resolve(device, ensemble.device_kind))).rows
    sizes = np.split(rows.cluster_sizes(), ensemble.offsets[1:-1])
    k = n_clusters
    if k is None:
        k = min(max(1, int(np.median([len(each) for each in sizes]))), rows.n_rows)
    checks.check_n_clusters(k, rows.n_rows)
    labelled = np.array([each.sum() for each in sizes])
    return Description(
        n_objects=ensemble.n_objects,
        n_clusterings=ensemble.n_clusterings,
        n_clusters=ensemble.n_clusters,
        n_distinct=rows.n_rows,
        missing=float(1 - labelled.mean() / ensemble.n_objects),
        columns=_columns(ensemble, rows, sizes),
        methods=_forecasts(rows, k, device) if forecasts else {},
        k=int(k),
    )


def _columns(ensemble: Ensemble, rows: Rows, sizes: list[np.ndarray]) -> list[dict[str, Any]]:
    n_clusters = np.diff(ensemble.offsets)
    odd = odd_columns(ensemble.codes, n_clusters, ensemble.names)
    same = equal_columns(rows.ensemble.codes, n_clusters)
    scores = agreements_of(rows)
    n_others = scores.known() - 1.0  # without the clustering itself, with which its score is 1
    mean = (scores.sums(np.ones(len(n_clusters))) - 1.0) / np.maximum(n_others, 1.0)
    return [
        {
            "name": name,
            "n_clusters": len(own),
            "smallest": int(own.min()),
            "largest": int(own.max()),
            "missing": float(1 - own.sum() / ensemble.n_objects),
            "agreement": float(mean[m]) if n_others[m] else None,
            "odd": "it puts all objects together" if len(own) == 1 else odd.get(m),
            "same_as": ensemble.names[same[m]] if m in same else None,
        }
        for m, (name, own) in enumerate(zip(ensemble.names, sizes, strict=True))
    ]


def _forecasts(rows: Rows, k: int, device: str) -> dict[str, Forecast]:
    return {name: foresee(default_estimator(name, k, 0, device), rows.ensemble) for name in chosen("all")}
