"""The base clusterings on the page of a fit: their agreement with the result and with each other, and their modes.

Thousands of base clusterings, such as draws of a Bayesian model, are told by two distributions instead of a table.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens import plotting
from gpuens.evidence import Evidence
from gpuens.plotting.drawing import MARK, SHADE, hide_spines
from gpuens.report.numbers import Share, number
from gpuens.report.page import Picture, Section, Table, side_of
from gpuens.runtime import device as devices
from gpuens.workflows.modes import Mode, Modes, modes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CLUSTERINGS = 100  # maximum number of clusterings in a table and in the matrix of their agreement
MODES_CLUSTERINGS = range(3, 501)  # numbers of clusterings that are divided into modes
# most cells of the table of all clusters and those of a clustering for clusterings that are divided into modes
MODES_CELLS = 2**26
MOST_TOLD_MODES = 3  # maximum number of modes that the text mentions
MOST_CORRESPONDENCES = 12  # maximum number of pictures of correspondences
MOST_BINS = 40  # maximum number of bars of a distribution
MIXED_ARI = 0.5  # modes whose ARI is smaller tell different stories, which a consensus mixes
LEAST_PURITY = 0.8  # least share of the objects of fine clusters that are in one coarse cluster, for resolutions


def find_modes(estimator: Any, evidence: Evidence | None) -> Modes | None:
    """Return the modes of the base clusterings, or None without several modes.

    For few or many clusterings, or for very many clusters, they are not searched.
    """
    if evidence is None or evidence.shape[1] not in MODES_CLUSTERINGS:
        return None
    sizes = np.diff(evidence.rows.offsets)
    if sizes.sum() * sizes.max() > MODES_CELLS:
        return None
    groups = modes(estimator.reduction_.ensemble, device=evidence.rows.device)
    return groups if len(groups.modes) > 1 else None


def tell_other_stories(groups: Modes) -> bool:
    """Return whether the modes hardly agree, so that a consensus mixes them."""
    return bool(groups.ari[np.triu_indices(len(groups.modes), 1)].max() < MIXED_ARI)


def describe_modes(groups: Modes, evidence: Evidence) -> str:
    """Return a sentence about the modes: groups by their numbers of clusters, or groups that differ otherwise."""
    numbers = np.diff(evidence.rows.offsets)
    by_fineness = sorted(groups.modes, key=lambda mode: mode.n_clusters)
    neighbors = list(pairwise(by_fineness))
    text = f"The base clusterings form {len(groups.modes)} modes"
    if all(_ends(fine, numbers)[0] > _ends(coarse, numbers)[1] for coarse, fine in neighbors):
        parts = [f"{len(mode.members):,} with {_range(*_ends(mode, numbers))}" for mode in by_fineness]
        divided = all(_refines(fine, coarse) for coarse, fine in neighbors)
        return (
            f"{text} by their numbers of clusters: {', '.join(parts[:-1])} and {parts[-1]}."
            f"{' The finer ones divide the clusters of the coarser ones.' if divided else ''}"
        )
    sizes = [f"{len(mode.members):,}" for mode in groups.modes]
    alike = groups.ari[np.triu_indices(len(sizes), 1)]
    mixed = "; the result is a compromise" if tell_other_stories(groups) else ""
    return f"{text}, of {', '.join(sizes[:-1])} and {sizes[-1]}, with an ARI of {_range_of(alike)} between them{mixed}."


def sentences_about_modes(groups: Modes | None, evidence: Evidence | None) -> Iterator[str]:
    """Yield a sentence about few modes; many are usual for clusterings that differ in their numbers of clusters."""
    if groups is not None and evidence is not None and len(groups.modes) <= MOST_TOLD_MODES:
        yield describe_modes(groups, evidence)


def sections_of_clusterings(estimator: Any, evidence: Evidence | None, groups: Modes | None) -> Iterator[Section]:
    pictures, tables, notes = [], [], []
    names = estimator.reduction_.ensemble.names
    if groups is not None:
        tables.append(_table_of_modes(groups))
        notes.append("Each mode is a group of base clusterings that agree.")
    if evidence is not None and evidence.shape[1] > MOST_CLUSTERINGS:
        pictures += _distributions(estimator, evidence)
    elif evidence is not None:
        tables.append(_table_of_clusterings(evidence, names))
        if evidence.shape[1] > 1:
            consistency = evidence.consistency
            pictures.append(
                Picture(
                    f"Agreement of the base clusterings with each other (ECS); IC {number(consistency.inconsistency)}",
                    partial(plotting.clusterings, consistency, names=names),
                    side_of(evidence.shape[1]),
                )
            )
    if hasattr(estimator, "correspondence_"):
        n = len(estimator.correspondence_)
        pictures += [
            Picture(
                f"Where the clusters of clustering {names[h]} go (S)", partial(plotting.correspondence, estimator, h)
            )
            for h in range(min(n, MOST_CORRESPONDENCES))
        ]
        if n > MOST_CORRESPONDENCES:
            notes.append(f"The first {MOST_CORRESPONDENCES} of {n} correspondences.")
    if pictures or tables:
        yield Section("The base clusterings", tables, pictures, " ".join(notes))


def draw_distribution(
    values: np.ndarray, label: str, mark: float | None = None, *, integers: bool = False, ax: "Axes"
) -> "Axes":
    """Draw the distribution of a value of the base clusterings, such as a whole number, and a line at ``mark``."""
    if integers:
        step = -(-int(np.ptp(values) + 1) // MOST_BINS)
        edges = np.arange(values.min(), values.max() + step + 1, step) - 0.5
    else:
        edges = np.linspace(values.min(), max(values.max(), values.min() + 1e-6), MOST_BINS + 1)
    ax.hist(values, edges.tolist(), color=SHADE, rwidth=0.9)
    if mark is not None:
        ax.axvline(mark, color=MARK, linewidth=1.5, linestyle="--", label="result")
        ax.legend(frameon=False)
    ax.set(xlabel=label, ylabel="base clusterings")
    ax.locator_params("both", integer=True) if integers else ax.locator_params("y", integer=True)
    return hide_spines(ax)


def _distributions(estimator: Any, evidence: Evidence) -> list[Picture]:
    numbers, nmi = np.diff(evidence.rows.offsets), evidence.agreement.nmi
    low, high = np.quantile(numbers, (0.05, 0.95))
    lower, upper = np.quantile(nmi, (0.05, 0.95))
    return [
        Picture(
            f"Number of clusters of the {len(numbers):,} base clusterings: {low:.0f} to {high:.0f} in 90 % of them",
            partial(draw_distribution, numbers, "number of clusters", estimator.n_clusters_, integers=True),
        ),
        Picture(
            f"Their NMI with the result: {number(lower)} to {number(upper)} in 90 % of them",
            partial(draw_distribution, nmi, "NMI with the result"),
        ),
    ]


def _ends(mode: Mode, numbers: np.ndarray) -> tuple[int, int]:
    """Return the smallest and the largest number of clusters of the members of a mode."""
    return int(numbers[mode.members].min()), int(numbers[mode.members].max())


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


def _range_of(values: np.ndarray) -> str:
    low, high = (f"{value.round(2) + 0.0:.2f}" for value in (values.min(), values.max()))  # -0.0 + 0.0 is 0.0
    return low if low == high else f"{low} to {high}"


def _refines(fine: Mode, coarse: Mode) -> bool:
    """Return whether most objects of each cluster of a fine mode are in one cluster of the coarse mode."""
    a, b = devices.to_host(fine.consensus), devices.to_host(coarse.consensus)
    labelled = (a >= 0) & (b >= 0)
    table = np.bincount(a[labelled] * coarse.n_clusters + b[labelled], minlength=fine.n_clusters * coarse.n_clusters)
    in_one = table.reshape(fine.n_clusters, coarse.n_clusters).max(axis=1).sum()
    return fine.n_clusters > coarse.n_clusters and in_one >= LEAST_PURITY * labelled.sum()


def _table_of_modes(groups: Modes) -> Table:
    """Return a table with the size of each mode, its agreement, and its distance from the largest mode."""
    rows = [
        [
            i,
            len(mode.members),
            Share(mode.share),
            mode.n_clusters,
            mode.agreement,
            float(groups.ari[0, i]),
            float(groups.vi[0, i]),
            str(groups.names[mode.medoid]),
        ]
        for i, mode in enumerate(groups.modes)
    ]
    columns = ("mode", "base clusterings", "share", "clusters", "ARI within", "ARI with mode 0", "VI", "medoid")
    return Table("modes", columns, rows)


def _table_of_clusterings(evidence: Evidence, names: list[Any]) -> Table:
    """Return a table of the base clusterings and their agreement with the result, the one with the least first.

    Shares of missing labels are left out if no label is missing.
    """
    agreement, n, numbers = evidence.agreement, len(evidence.labels), np.diff(evidence.rows.offsets)
    columns = ["base clustering", "clusters", "NMI with the result", "ECS", "missing labels"]
    rows = [
        [
            str(names[h]), int(numbers[h]), float(agreement.nmi[h]), float(agreement.ecs[h]),
            Share(1 - int(agreement.n_labelled[h]) / n),
        ]
        for h in np.argsort(agreement.nmi, kind="stable")
    ]  # fmt: skip
    if (agreement.n_labelled == n).all():
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return Table("agreement with the result", columns, rows)
