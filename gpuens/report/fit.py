"""The page of a fitted estimator: the answer, how sure it is, how many clusters, where it comes from."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gpuens import device as devices
from gpuens import plotting
from gpuens.evidence import Evidence
from gpuens.report.page import Picture, Section, Table, render

EXACT_COMPARISONS = 2 * 10**10  # of labels, for the distribution over all pairs: a second or two
DRAWN = 10**6  # pairs beyond that
MOST_CLUSTERINGS = 100  # whose agreement is found pair by pair
MOST_CORRESPONDENCES = 12  # pictures
LEVELS = 12  # numbers of clusters whose cuts are drawn
LEAST_CERTAIN = 20  # objects listed


def of_fit(title: str, estimator: Any, facts: dict[str, Any], ids: Any = None) -> bytes:
    """Return an HTML page, in one file, about a fitted estimator.

    Parameters
    ----------
    title : str
    estimator : a fitted estimator
    facts : dict
        What a record says of the run: shown at the end.
    ids : sequence (n_objects,), optional
        The names of the objects; by default their positions.

    Raises
    ------
    ImportError
        Without matplotlib or jinja2.
    """
    evidence = _evidence(estimator)
    sections = [
        *(_clusters(evidence) if evidence else _sizes(facts)),
        *(_certainty(evidence) if evidence else ()),
        *_levels(estimator),
        *_clusterings(estimator, evidence),
        *(_doubtful(evidence, ids) if evidence else ()),
        Section("How it was made", [Table("facts of the run", ("what", "value"), list(_flat(facts)))]),
    ]
    warned = [f"Warning: {sentence}" for sentence in facts.get("warnings", ())]
    return render(title, [*_answer(estimator, evidence), *warned], sections)


def _evidence(estimator: Any) -> Evidence | None:
    """Return the evidence for the labels, None for labels in chunks, soft clusterings and a single object."""
    try:
        found: Evidence = estimator.evidence()
    except TypeError:
        return None
    return found if len(found.labels) > 1 else None


def _answer(estimator: Any, evidence: Evidence | None) -> Iterator[str]:
    name, k = type(estimator).__name__, estimator.n_clusters_
    if evidence is None:
        yield f"{name} found {k:,} cluster{'s' * (k != 1)}."
        return
    sizes = evidence.clusters.sizes
    yield (
        f"{name} found {k:,} cluster{'s' * (k != 1)} of {sizes.sum():,} objects; the largest has {sizes.max():,}, "
        f"the smallest {sizes.min():,}."
    )
    found = getattr(estimator, "spectrum_", None)
    if found is not None:
        doubt = found.doubt()
        yield "How many was not asked: it is what the clusterings support best" + (f", but {doubt}." if doubt else ".")
    agreement, objects = evidence.agreement, evidence.objects
    yield f"Its agreement with the {len(agreement.nmi)} base clusterings is {agreement.anmi:.2f} (mean NMI)."
    if evidence.beyond_chance.doubtful:
        yield f"But {evidence.beyond_chance}: there may be nothing to find in them."
    if k > 1 and not np.isnan(objects.margin).all():
        doubtful = np.count_nonzero(objects.margin <= 0) / len(objects.margin)
        yield (
            f"The mean confidence is {objects.confidence.mean():.2f}; {100 * doubtful:.1f} % of the objects are "
            "together with another cluster as often as with their own, or more often."
        )


def _sizes(facts: dict[str, Any]) -> Iterator[Section]:
    if "cluster_sizes" in facts:
        rows = list(enumerate(facts["cluster_sizes"]))
        yield Section("The clusters", [Table("clusters", ("cluster", "objects"), rows)])


def _clusters(evidence: Evidence) -> Iterator[Section]:
    found = evidence.clusters
    means = np.bincount(evidence.labels, weights=evidence.objects.confidence) / found.sizes
    order = np.argsort(-found.sizes, kind="stable")
    columns = np.column_stack([found.consensus, found.stability, means])[order].tolist()
    rows = [[int(c), int(found.sizes[c]), *numbers] for c, numbers in zip(order, columns, strict=True)]
    names = ("cluster", "objects", "consensus", "stability", "mean confidence")
    note = (
        "Consensus: the mean share of the clusterings that put two members together. Stability: the Jaccard index with "
        "the most similar cluster of a clustering, on average. Confidence: how far the clusterings speak for an "
        "object's label rather than for others, from 0 to 1."
    )
    yield Section(
        "The clusters", [Table("clusters", names, rows)],
        [Picture("Sizes of the clusters", partial(plotting.sizes, evidence.labels))], note,
    )  # fmt: skip


def _certainty(evidence: Evidence) -> Iterator[Section]:
    n_rows, n_clusterings = evidence.shape
    exact = n_rows * n_rows * n_clusterings <= 2 * EXACT_COMPARISONS
    pairs = evidence.pairs(exact=exact, n_pairs=DRAWN)
    pictures = [
        Picture("How sure the objects of each cluster are", partial(plotting.item_consensus, evidence)),
        Picture("How sure the clusters are", partial(plotting.cluster_consensus, evidence)),
        Picture("Consensus of all pairs of objects", partial(plotting.cdf, pairs)),
    ]
    if len(evidence.clusters.sizes) > 1:
        pictures[2:2] = [
            Picture("Silhouettes", partial(plotting.silhouettes, evidence)),
            Picture("Within and between the clusters", partial(plotting.between_clusters, evidence)),
        ]
    error = "" if exact else f" The pairs are {DRAWN:,} drawn ones: shares have a standard error of .0005 at most."
    note = "C is the share of the clusterings that put two objects together; 0 and 1 are certain." + error
    yield Section("How sure is it?", pictures=pictures, note=note)


def _levels(estimator: Any) -> Iterator[Section]:
    if not hasattr(estimator, "dendrogram_"):
        return
    pictures = [
        Picture("The top of the tree", partial(plotting.dendrogram, estimator)),
        Picture("How long each number of clusters lasts", partial(plotting.lifetimes, estimator)),
    ]
    most = min(LEVELS + 1, estimator.dendrogram_.n_leaves, len(estimator.lifetimes_) + 2)
    if most > 3 and not devices.chunked(estimator.labels_):
        row_of = devices.to_host(estimator.reduction_.row_of)
        rows = {k: estimator.cut_rows(k) for k in range(2, most)}
        levels = {k: labels[row_of] for k, labels in rows.items()} if estimator.reduction_.covers_all else rows
        pictures += [
            Picture("The objects at each number of clusters", partial(plotting.tracking, levels)),
            Picture("How the clusters divide", partial(plotting.clustree, levels)),
        ]
    yield Section("How many clusters?", pictures=pictures)


def _clusterings(estimator: Any, evidence: Evidence | None) -> Iterator[Section]:
    pictures, note = [], ""
    if evidence is not None and 1 < evidence.shape[1] <= MOST_CLUSTERINGS:
        names = estimator.reduction_.ensemble.names
        draw = partial(plotting.clusterings, evidence.consistency, names=names)
        pictures.append(Picture("Agreement of the base clusterings with each other", draw))
    if hasattr(estimator, "correspondence_"):
        n = len(estimator.correspondence_)
        pictures += [
            Picture(f"Where the clusters of clustering {h} go", partial(plotting.correspondence, estimator, h))
            for h in range(min(n, MOST_CORRESPONDENCES))
        ]
        note = f"The first {MOST_CORRESPONDENCES} of {n} correspondences." if n > MOST_CORRESPONDENCES else ""
    if pictures:
        yield Section("The base clusterings", pictures=pictures, note=note)


def _doubtful(evidence: Evidence, ids: Any) -> Iterator[Section]:
    objects, labels = evidence.objects, evidence.labels
    if np.isnan(objects.margin).all():
        return
    some = np.argsort(objects.margin, kind="stable")[:LEAST_CERTAIN].tolist()
    names = range(len(labels)) if ids is None else ids
    rows = [
        [
            str(names[i]),
            int(labels[i]),
            *(float(of[i]) for of in (objects.item_consensus, objects.margin, objects.confidence)),
        ]
        for i in some
    ]
    columns = ("object", "cluster", "item consensus", "margin", "confidence")
    note = "Margin: the item consensus less the mean C with the members of the next cluster."
    yield Section("The least certain objects", [Table("least certain objects", columns, rows)], note=note)


def _flat(facts: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if name != "warnings":  # which stand above
            yield name.replace("_", " "), value
