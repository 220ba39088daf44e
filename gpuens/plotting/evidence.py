"""Pictures of evidence: the certainty of pairs, objects, clusters and base clusterings."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.plotting.drawing import (
    INK,
    MARK,
    SHADE,
    SHARES,
    WIDEST,
    axes,
    color_bar,
    color_clusters,
    entitle,
    hide_spines,
    label_axes,
    largest_clusters,
    order_by_distance,
    quantiles_by_cluster,
    type_name,
    write_legend,
    write_names,
    write_shares,
)
from gpuens.runtime import checks

if TYPE_CHECKING:  # importing these modules is slow
    from matplotlib.axes import Axes

    from gpuens.evidence import Evidence, Pairs

CLUSTERS_NAMED = 30  # maximum number of clusters named at an axis, so that names do not overlap
MOST_DRAWN = 1000  # maximum number of clusters in a picture; bars of more clusters would be finer than a pixel
SHARE_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # ticks of shares
STEPS = 600  # maximum number of steps in a drawn silhouette; more steps would be finer than a pixel
SEQUENCE = "viridis"  # colour map in which each number of clusters has a colour


def cdf(pairs: Any, *, lower: float = 0.1, upper: float = 0.9, ax: "Axes | None" = None) -> "Axes":
    """Draw the distribution of C over all pairs of objects; if clusterings agree, it is flat between two steps.

    Parameters
    ----------
    pairs : gpuens.evidence.Pairs, dict {number of clusters: Pairs}, or what `gpuens.choose_k` returns
        A single distribution is drawn together with that of independent clusterings (dashed). Of a choice, the
        distribution for each number of clusters is drawn; if all numbers have the same clusterings, a single
        distribution, of the at most 500 objects that the choice keeps.
    lower, upper : float
        The range of C whose pairs are ambiguous, for PAC.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        For anything else.

    References
    ----------
    Monti et al., "Consensus clustering", Machine Learning 52 (2003) 91-118; Şenbabaoğlu et al., Scientific Reports 4
    (2014), for PAC.

    Examples
    --------
    >>> import gpuens as ge
    >>> pairs = ge.evidence.pairs([[0, 0, 0, 1, 1], [0, 0, 1, 2, 2]])
    >>> ge.plotting.cdf(pairs).get_title()
    'PAC .20; independent clusterings have .44'
    """
    from gpuens.evidence import Pairs

    suggested = getattr(pairs, "suggested", None)
    several = _pairs_of(pairs) if suggested is not None else pairs if isinstance(pairs, Mapping) else {None: pairs}
    for distribution in several.values():
        if not isinstance(distribution, Pairs):
            raise TypeError(
                "pairs must be what ge.evidence.pairs(labels) or ge.choose_k(…) returns, or a dict of pairs, not "
                f"{type_name(distribution)}."
            )
    ax = axes(ax, (6.4, 4.2))
    ax.axvspan(lower, upper, color=SHADE, alpha=0.12, linewidth=0)
    colors = _colors_of_sequence(len(several)) if len(several) > 1 else [INK]
    for (k, distribution), color in zip(several.items(), colors, strict=True):
        if k is not None and k == suggested:
            _draw_steps(ax, distribution, MARK, label=f"k = {k}, suggested", linewidth=2.2, zorder=3)
        else:
            _draw_steps(ax, distribution, color, label="these clusterings" if k is None else f"k = {k}")
    if len(several) == 1:
        (distribution,) = several.values()
        chance = distribution.chance()
        _draw_steps(ax, chance, MARK, label="independent clusterings", linestyle="--")
        pac, by_chance = distribution.pac(lower, upper), chance.pac(lower, upper)
        title = f"Consensus of pairs of {distribution.n_objects:,} objects, the same for all k"
        by_pac = f"PAC {_format_share(pac)}; independent clusterings have {_format_share(by_chance)}"
        entitle(ax, by_pac if suggested is None else title)
    else:
        entitle(ax, f"Consensus of all pairs, for {len(several)} numbers of clusters")
    write_legend(ax)
    ax.set(xlim=(-0.01, 1.01), ylim=(0, 1.01), yticks=SHARE_TICKS)
    label_axes(ax, "C: share of the clusterings that put two objects together", "share of the pairs")
    return hide_spines(ax)


def item_consensus(evidence: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the certainty of the objects of each cluster: the 5, 25, 50, 75 and 95 % quantiles of item consensus.

    Parameters
    ----------
    evidence : gpuens.evidence.Evidence
        Such as ``estimator.evidence()``.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        For anything but Evidence.

    Examples
    --------
    >>> import gpuens as ge
    >>> est = ge.EAC(2).fit([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]])
    >>> ge.plotting.item_consensus(est.evidence()).get_title()
    'Item consensus of 6 objects in 2 clusters'
    """
    evidence = _check_evidence(evidence)
    values, labels = evidence.objects.item_consensus, evidence.labels
    order, k = largest_clusters(evidence.clusters.sizes, MOST_DRAWN), len(evidence.clusters.sizes)
    spread = quantiles_by_cluster(values, labels, k)[order]
    ax = axes(ax, (7.2, 3.8))
    x, width = np.arange(len(order)), 0.7 if len(order) <= 60 else 1.0
    ax.vlines(x, spread[:, 0], spread[:, 4], color=SHADE, linewidth=1.0, label="90 % of the objects")
    ax.bar(x, spread[:, 3] - spread[:, 1], width, bottom=spread[:, 1], color=SHADE, label="half of them")
    ax.hlines(spread[:, 2], x - width / 2, x + width / 2, color=INK, linewidth=1.6, label="median")
    _name_clusters(ax, order, k)
    ax.set(ylim=(0, 1.02), yticks=SHARE_TICKS)
    label_axes(ax, ax.get_xlabel(), "mean C to the other members")
    entitle(ax, f"Item consensus of {len(labels):,} objects in {k:,} clusters")
    write_legend(ax)
    return hide_spines(ax)


def cluster_consensus(evidence: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the certainty of each cluster: the mean C of the pairs of its members, and its stability.

    Parameters
    ----------
    evidence : gpuens.evidence.Evidence
        Such as ``estimator.evidence()``.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        For anything but Evidence.

    Examples
    --------
    >>> import gpuens as ge
    >>> est = ge.EAC(2).fit([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]])
    >>> ax = ge.plotting.cluster_consensus(est.evidence())
    >>> [round(float(bar.get_height()), 2) for bar in ax.patches]
    [0.78, 0.78]
    """
    clusters = _check_evidence(evidence).clusters
    order, k = largest_clusters(clusters.sizes, MOST_DRAWN), len(clusters.sizes)
    ax = axes(ax, (7.2, 3.8))
    x, consensus = np.arange(len(order)), clusters.consensus[order]
    ax.bar(x, np.nan_to_num(consensus), 0.8 if len(x) <= 60 else 1.0, color=SHADE, label="consensus of its pairs")
    ax.scatter(x, clusters.stability[order], 14, MARK, label="stability: Jaccard index", zorder=3)
    _name_clusters(ax, order, k)
    ax.set(ylim=(0, 1.02), yticks=SHARE_TICKS)
    label_axes(ax, ax.get_xlabel(), "mean over the clusterings")
    entitle(ax, f"Consensus and stability of {k:,} clusters")
    write_legend(ax)
    return hide_spines(ax)


def silhouettes(evidence: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the silhouettes of all objects for the distance 1 - C, with the most certain objects of a cluster on top.

    Parameters
    ----------
    evidence : gpuens.evidence.Evidence
        Such as ``estimator.evidence()``.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        For anything but Evidence.
    ValueError
        For a consensus of one cluster, which has no silhouettes.

    References
    ----------
    Rousseeuw, "Silhouettes", Journal of Computational and Applied Mathematics 20 (1987) 53-65.

    Examples
    --------
    >>> import gpuens as ge
    >>> est = ge.EAC(2).fit([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]])
    >>> ge.plotting.silhouettes(est.evidence()).get_title()
    'Silhouettes of 6 objects in 2 clusters, on average .74'
    """
    evidence = _check_evidence(evidence)
    values, labels = evidence.objects.silhouette, evidence.labels
    sizes = np.bincount(labels)  # each object is one bar, whatever its weight
    if len(sizes) == 1:
        raise ValueError("evidence has one cluster, but silhouettes need two; ask for more clusters.")
    order, k = largest_clusters(sizes, MOST_DRAWN), len(sizes)
    n_drawn = int(sizes[order].sum())
    by_cluster = np.split(values[np.lexsort([-values, labels])], np.cumsum(sizes)[:-1])
    gap = 0.01 * n_drawn if len(order) <= CLUSTERS_NAMED else 0.0
    ax = axes(ax, (6.4, 5.2))
    below, middles = 0.0, []
    for cluster, color in zip(order, color_clusters(order), strict=False):
        bars = by_cluster[cluster]
        # each object is a bar of height 1; in a cluster of more than `STEPS` objects, only `STEPS` objects are drawn
        steps = np.unique(np.linspace(0, len(bars) - 1, min(len(bars), STEPS)).round().astype(np.int64))
        edges = below + np.append(steps, len(bars))
        ax.stairs(bars[steps], edges, orientation="horizontal", fill=True, color=color, linewidth=0)
        middles.append(below + len(bars) / 2)
        below += len(bars) + gap
    mean, is_named = float(values.mean()), len(order) <= CLUSTERS_NAMED
    ax.axvline(mean, color=INK, linewidth=1, linestyle="--")
    ax.set(xlim=(min(-0.05, float(values.min())), 1.0), ylim=(below, -gap))
    if is_named:
        readable = sizes[order] >= 0.02 * n_drawn
        write_names(ax.yaxis, np.array(middles)[readable], order[readable])
    else:
        ax.set_yticks([])
    label_axes(ax, "silhouette of the distance 1 - C", "cluster" if is_named else _count_drawn(order, k))
    entitle(ax, f"Silhouettes of {len(values):,} objects in {k:,} clusters, on average {_format_share(mean)}")
    return hide_spines(ax)


def between_clusters(evidence: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the mean C between the members of each pair of clusters, in an order where similar clusters are neighbours.

    Parameters
    ----------
    evidence : gpuens.evidence.Evidence
        Such as ``estimator.evidence()``.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        For anything but Evidence.

    Examples
    --------
    >>> import gpuens as ge
    >>> est = ge.EAC(2).fit([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]])
    >>> ge.plotting.between_clusters(est.evidence()).images[0].get_array().round(2).tolist()
    [[0.78, 0.11], [0.11, 0.78]]
    """
    clusters = _check_evidence(evidence).clusters
    numbers, k = largest_clusters(clusters.sizes, MOST_DRAWN), len(clusters.sizes)
    between = clusters.among(numbers)
    order = order_by_distance(1.0 - np.nan_to_num(between))
    ax = _draw_matrix(between, order, numbers[order], ax, "mean C of their pairs of objects")
    ax.set(xlabel="cluster", ylabel="cluster")
    entitle(ax, f"Consensus within and between {_count_drawn(numbers, k)}")
    return ax


def clusterings(consistency: Any, measure: str = "ecs", *, names: Any = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the agreement between each pair of base clusterings, in an order in which similar ones are neighbours.

    Parameters
    ----------
    consistency : gpuens.evidence.Consistency
        Such as ``estimator.evidence().consistency``.
    measure : {"ecs", "nmi", "ari"}
    names : sequence of length n_clusterings, optional
        By default their positions.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        For anything but Consistency, another measure, and another number of names.

    Examples
    --------
    >>> import gpuens as ge
    >>> found = ge.evidence.consistency([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 2]])
    >>> ge.plotting.clusterings(found).get_title()
    'Agreement of 3 base clusterings, IC 1.125'
    """
    from gpuens.evidence import Consistency

    if not isinstance(consistency, Consistency):
        raise TypeError(
            f"consistency must be what ge.evidence.consistency(labels) returns, not {type_name(consistency)}."
        )
    checks.check_choice(measure, "measure", ("ecs", "nmi", "ari"))
    values = getattr(consistency, measure)
    texts = np.arange(len(values)) if names is None else np.asarray(names, dtype=object)
    checks.check_one_per_row(texts, len(values), "names")
    order = order_by_distance(1.0 - np.nan_to_num(values))
    ax = _draw_matrix(values, order, texts[order], ax, {"ecs": "ECS", "nmi": "NMI", "ari": "ARI"}[measure])
    ax.set(xlabel="base clustering", ylabel="base clustering")
    entitle(ax, f"Agreement of {len(values)} base clusterings, IC {consistency.inconsistency:.3f}")
    return ax


# --- helpers ----------------------------------------------------------------------------------------------------------


def _check_evidence(evidence: Any) -> "Evidence":
    from gpuens.evidence import Evidence

    if not isinstance(evidence, Evidence):
        raise TypeError(f"evidence must be what estimator.evidence() returns, not {type_name(evidence)}.")
    return evidence


def _pairs_of(choice: Any) -> dict[int | None, "Pairs"]:
    """Return a dict {number of clusters: distribution of the pairs of objects} of a `Choice`.

    If the distribution is the same for all numbers of clusters, the only key is None.
    """
    distributions = {k: matrix.pairs for k, matrix in choice.consensus.items()}
    is_one = len(set(map(id, distributions.values()))) == 1
    return {None: next(iter(distributions.values()))} if is_one else distributions


def _draw_steps(ax: Any, pairs: "Pairs", color: Any, **how: Any) -> None:
    order = np.argsort(pairs.consensus, kind="stable")
    reached = np.cumsum(pairs.counts[order]) / pairs.n_pairs
    x = np.concatenate([[0.0], pairs.consensus[order], [1.0]])
    ax.step(x, np.concatenate([[0.0], reached, [1.0]]), where="post", color=color, **{"linewidth": 1.4, **how})


def _colors_of_sequence(n: int) -> Any:
    from matplotlib import colormaps

    return colormaps[SEQUENCE](np.linspace(0.0, 0.9, n))


def _draw_matrix(values: np.ndarray, order: np.ndarray, names: np.ndarray, ax: "Axes | None", label: str) -> "Axes":
    """Draw a matrix of shares with rows and columns in the given order; write the numbers into cells if they fit."""
    side = min(WIDEST, max(4.2, 1.6 + 0.34 * min(len(order), 24)))
    ax = axes(ax, (side + 1.0, side), square=True)
    table = values[np.ix_(order, order)]
    image = ax.imshow(table, cmap=SHARES, vmin=0.0, vmax=1.0, interpolation="nearest" if len(order) <= 400 else None)
    if len(order) <= CLUSTERS_NAMED:
        for axis in (ax.xaxis, ax.yaxis):
            write_names(axis, np.arange(len(order)), names)
    else:
        ax.set_xticks([])
        ax.set_yticks([])
    write_shares(ax, table)
    color_bar(image, ax, label)
    return ax


def _count_drawn(order: np.ndarray, k: int) -> str:
    """Return a text that says which of k clusters are drawn."""
    return f"{k:,} clusters" if len(order) == k else f"the {len(order)} largest of {k:,} clusters"


def _name_clusters(ax: Any, order: np.ndarray, k: int) -> None:
    if len(order) <= CLUSTERS_NAMED:
        write_names(ax.xaxis, np.arange(len(order)), order)
        ax.set_xlabel("cluster")
    else:
        ax.set_xticks([])
        ax.set_xlabel(_count_drawn(order, k))
    ax.set_xlim(-0.6, len(order) - 0.4)


def _format_share(value: float) -> str:
    """Return a number as text with two decimals and without a zero before the point, such as .30 or 1.08."""
    return f"{value:.2f}".replace("0.", ".", 1) if value < 1 else f"{value:.2f}"
