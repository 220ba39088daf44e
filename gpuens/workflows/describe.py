"""A description of base clusterings, with the memory that each method would need to find their consensus."""

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens.contingency.scores import row_agreement
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.odd_columns import equal_clusterings, find_odd_columns
from gpuens.labels.rows import Rows
from gpuens.labels.shape import LabelShape
from gpuens.methods.forecast import Forecast, foresee, refuse_beyond_memory
from gpuens.reduction import core_groups
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.workflows.compare import default_estimator, select_methods

WIDTH = 100  # characters in a line of a printed description
COLUMNS_SHOWN = 12  # clusterings in a printed description
NAME_WIDTH = 30  # characters of the name of a clustering there


@dataclass(repr=False)
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
        The forecast peak memory of a process that fits each method for ``k`` clusters, without the labels as given.
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

    @property
    def shape(self) -> LabelShape:
        """The sizes of the labels, for forecasts."""
        n_clusters = [column["n_clusters"] for column in self.columns]
        return LabelShape(self.n_objects, self.n_clusterings, n_clusters, self.n_distinct)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as a dict of JSON values."""
        return {**vars(self), "methods": values_of(self.methods)}

    def __repr__(self) -> str:
        """Return at most 40 lines of at most 100 characters."""
        lines = [f"Description: {self.summary}"]
        for column in self.columns[:COLUMNS_SHOWN]:
            agreement = "" if column["agreement"] is None else f", agreement {column['agreement']:.3f}"
            odd = ", odd" * (column["odd"] is not None) + ", a copy" * (column["same_as"] is not None)
            sizes = f"of {column['smallest']:,} to {checks.counted(column['largest'], 'object')}"
            name = textwrap.shorten(str(column["name"]), NAME_WIDTH, placeholder=" …")
            lines.append(f"  {name}: {checks.counted(column['n_clusters'], 'cluster')} {sizes}{agreement}{odd}")
        if len(self.columns) > COLUMNS_SHOWN:
            lines.append(f"  … and {len(self.columns) - COLUMNS_SHOWN:,} more in columns")
        if self.methods:
            memory = {name: forecast.memory for name, forecast in self.methods.items()}
            foreseen = sorted((n_bytes, name) for name, n_bytes in memory.items() if n_bytes is not None)
            peaks = ", ".join(f"{name} {checks.human_bytes(n_bytes)}" for n_bytes, name in foreseen)
            lines.append(f"  peak memory for {checks.counted(self.k, 'cluster')}: {peaks}")
            if unforeseen := [name for name, n_bytes in memory.items() if n_bytes is None]:
                lines.append(f"  not foreseen: {', '.join(unforeseen)}")
        return "\n".join(part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent="    "))

    @property
    def summary(self) -> str:
        """The sizes of the labels in words."""
        return (
            f"{checks.counted(self.n_objects, 'object')}, {checks.counted(self.n_clusterings, 'clustering')} with "
            f"{checks.counted(self.n_clusters, 'cluster')}, {checks.counted(self.n_distinct, 'distinct label row')}, "
            f"{self.missing:.1%} of the labels missing"
        )


def describe(
    labels: Any, n_clusters: int | None = None, *, forecasts: bool = True, device: str = "auto"
) -> Description:
    """Describe base clusterings, and foresee the memory that each method needs for their consensus.

    Parameters
    ----------
    labels : anything that `gpuens.Ensemble` takes
        (n_objects, n_clusterings).
    n_clusters : int, optional
        The number of clusters of the consensus, for the forecasts; by default the median over the clusterings.
    forecasts : bool
        Whether to foresee the memory of each method (`gpuens.methods.forecast`), without fitting.
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
        k = min(max(1, int(np.median([len(part) for part in sizes]))), rows.n_rows)
    checks.check_n_clusters(k, rows.n_rows)
    labelled = np.array([part.sum() for part in sizes])
    description = Description(
        n_objects=ensemble.n_objects,
        n_clusterings=ensemble.n_clusterings,
        n_clusters=ensemble.n_clusters,
        n_distinct=rows.n_rows,
        missing=float(1 - labelled.mean() / ensemble.n_objects),
        columns=_columns(ensemble, rows, sizes),
        methods={},
        k=int(k),
    )
    if forecasts:
        description.methods = foresee_methods(description.shape, description.k, device)
    return description


def foresee_methods(shape: LabelShape, n_clusters: int, device: str = "auto") -> dict[str, Forecast]:
    """Return the forecast of each method, with its default parameters, for labels of a shape."""
    return {name: foresee(default_estimator(name, n_clusters, 0, device), shape) for name in select_methods("all")}


def values_of(methods: dict[str, Forecast]) -> dict[str, dict[str, Any]]:
    """Return the forecasts of methods as JSON values."""
    return {name: {"memory": forecast.memory, "refusal": forecast.refusal} for name, forecast in methods.items()}


def refuse_to_group(shape: LabelShape | None, work: str) -> None:
    """Raise MemoryError, before labels are read, if reading them and finding their distinct rows takes too much.

    Every method does this, and voting needs the least memory beyond it. ``work`` is the work, such as "a comparison".
    """
    if shape is not None:
        refuse_beyond_memory(default_estimator("voting", 1, 0, "cpu"), shape, work, {})


def _columns(ensemble: Ensemble, rows: Rows, sizes: list[np.ndarray]) -> list[dict[str, Any]]:
    n_clusters = np.diff(ensemble.offsets)
    odd = find_odd_columns(ensemble.codes, n_clusters, ensemble.names)
    original = equal_clusterings(rows.ensemble.codes, n_clusters)
    scores = row_agreement(rows)
    n_others = scores.n_comparable() - 1.0  # without the clustering itself, with which its score is 1
    mean = (scores.sums(np.ones(len(n_clusters))) - 1.0) / np.maximum(n_others, 1.0)
    return [
        {
            "name": name,
            "n_clusters": len(clusters),
            "smallest": int(clusters.min()),
            "largest": int(clusters.max()),
            "missing": float(1 - clusters.sum() / ensemble.n_objects),
            "agreement": float(mean[m]) if n_others[m] else None,
            "odd": "it puts all objects together" if len(clusters) == 1 else odd.get(m),
            "same_as": ensemble.names[original[m]] if m in original else None,
        }
        for m, (name, clusters) in enumerate(zip(ensemble.names, sizes, strict=True))
    ]
