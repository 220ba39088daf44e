"""The report page about a fitted estimator: result, certainty, number of clusters, and the record of the run."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpuens import plotting
from gpuens.evidence import Evidence, Joins
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.features import as_numbers
from gpuens.methods import ESTIMATORS
from gpuens.plotting.profiles import profile_of
from gpuens.report.byline import byline
from gpuens.report.clusterings import find_modes, sections_of_clusterings, sentences_about_modes, tell_other_stories
from gpuens.report.front import (
    MOST_ROWS,
    picture_of_sizes,
    pictures_of_embeddings,
    pictures_of_evidence,
    pictures_of_places,
)
from gpuens.report.naming import name_clusters
from gpuens.report.numbers import number, percent
from gpuens.report.page import WIDE, Answer, Picture, Section, Table, render, side_of
from gpuens.report.profile import section_of_profile
from gpuens.report.sureness import LEAST_CONSENSUS, Sureness, doubt_of_number, mean_consensus
from gpuens.runtime import device as devices
from gpuens.runtime.checks import counted, listed
from gpuens.runtime.registry import summary

# maximum number of label comparisons to find the distribution over all pairs of objects, which take about 2 seconds
EXACT_COMPARISONS = 2 * 10**10
SAMPLED_PAIRS = 10**6  # number of pairs of objects drawn at random if all pairs would need more comparisons
MOST_LEVELS = 12  # maximum number of cuts of a tree that are drawn, one cut for each number of clusters
MOST_NAMES = 12  # maximum number of names of a shared vocabulary in a table
MOST_PAIRS = 66  # maximum number of pairs of annotators in a table, those of 12 annotators
LEAST_CERTAIN = 20  # number of objects in the list of the least certain objects
SHOWN_ABOVE = ("suggestion", "cluster_sizes")  # entries of the record whose contents the page shows elsewhere
# beginnings of the warnings about how labels and features were read
READING_WARNINGS = ("path ", "labels: ", "adata", "column ")
MOSTLY_IN_DOUBT = 1 / 3  # share of doubtful objects from which they are among the doubts of a page
# a clustering is named if its share of missing labels is more than this multiple of the mean share
MISSING_RATIO = 2.0


def render_fit(
    title: str,
    estimator: Any,
    facts: dict[str, Any],
    ids: Any = None,
    *,
    coordinates: Any = None,
    shape: Any = None,
    features: Any = None,
    embeddings: Mapping[str, Any] | None = None,
    names: Mapping[int, str] | None = None,
) -> bytes:
    """Return an HTML page, in one file, about a fitted estimator.

    Parameters
    ----------
    title : str
    estimator : a fitted estimator
    facts : dict
        The record of the run, shown at the end of the page. Its "warnings" appear among the doubts, "n_unlabelled" is
        the number of objects left out, and "method" is the name of the method.
    ids : sequence (n_objects,), optional
        The names of the objects; by default their positions.
    coordinates, shape : optional
        The places of the objects, or the shape of a grid, as in `gpuens.plotting.domains`: the page begins with maps.
        By default those of the graph of the fit, if it knows them.
    features : array or DataFrame (n_objects, n_features), optional
        The features by which the page describes the clusters; missing values are left out.
    embeddings : dict {str: array (n_objects, n_dimensions)}, optional
        Embeddings on which the clusters are drawn, such as "X_umap".
    names : dict {int: str}, optional
        The names of the clusters, by their numbers.

    Raises
    ------
    ImportError
        Without matplotlib or jinja2.
    """
    graph = getattr(estimator, "graph_", None)
    if graph is not None and coordinates is None and shape is None:
        coordinates, shape = graph.layout
    evidence, texts = _evidence(estimator), _cluster_names(estimator, facts, names)
    groups, joins = find_modes(estimator, evidence), getattr(estimator, "joins_", None)
    profile = None if features is None else _profile(estimator, features, ids, texts)
    sections = [
        *([] if profile is None else [replace(profile, pictures=())]),
        *(_clusters(evidence, texts) if evidence else _sizes(facts)),
        *(_annotators(estimator) if estimator.parts().gives_names else ()),
        *(_certainty(evidence) if evidence else ()),
        *(_doubtful(evidence, ids, texts) if evidence else ()),
        *_levels(estimator),
        *sections_of_clusterings(estimator, evidence, groups),
        *(_neighbors(joins) if joins else ()),
        Section("How it was made", [Table("facts of the run", ("what", "value"), list(_list_facts(facts)))]),
    ]
    counts = evidence.clusters.sizes if evidence else np.asarray(facts.get("cluster_sizes", ()))
    if evidence:
        pictures = pictures_of_evidence(evidence)
    else:
        pictures = [picture_of_sizes(counts)] if len(counts) else []
    if profile is not None:
        pictures = [*profile.pictures, *pictures]
    if embeddings:
        pictures = [*pictures_of_embeddings(devices.to_host(estimator.labels_), embeddings), *pictures]
    if coordinates is not None or shape is not None:
        pictures = [*pictures_of_places(estimator, coordinates=coordinates, shape=shape), *pictures]
    mixed = list(sentences_about_modes(groups, evidence))
    doubts = list(_doubts(estimator, evidence, facts))
    if groups is not None and tell_other_stories(groups):
        doubts += mixed
    answer = Answer(
        [_answer(estimator, counts, evidence, texts)],
        doubts,
        name_clusters(pictures, texts),
        _byline(estimator, facts),
        [*_further(estimator, evidence, joins, facts, texts), *(text for text in mixed if text not in doubts)],
    )
    named_sections = [replace(section, pictures=name_clusters(section.pictures, texts)) for section in sections]
    return render(title, answer, named_sections)


def _cluster_names(estimator: Any, facts: dict[str, Any], names: Mapping[int, str] | None) -> list[str] | None:
    """Return the names (k,) of the clusters, those without a name by their numbers; None if no cluster has one."""
    if names is None:
        voted = facts.get("cluster_names")
        return None if voted is None else [str(name) for name in voted]
    return [names.get(c, str(c)) for c in range(estimator.n_clusters_)]


def _evidence(estimator: Any) -> Evidence | None:
    """Return the evidence for the labels of a fitted estimator.

    Return None if the labels are in chunks, if the base clusterings are soft, or if there is a single object.
    """
    try:
        evidence: Evidence = estimator.evidence()
    except TypeError:
        return None
    return evidence if len(evidence.labels) > 1 else None


# --- the result in words ----------------------------------------------------------------------------------------------


def _answer(estimator: Any, counts: np.ndarray, evidence: Evidence | None, names: list[str] | None) -> str:
    """Return the result, the reason for the number of clusters, and the agreement with the base clusterings."""
    suggestion = getattr(estimator, "suggestion_", None)
    reason = "" if suggestion is None else f"Reason for this number: {suggestion.reason()}."
    result = _count_clusters(estimator, counts, evidence, names)
    return " ".join(filter(None, (result, reason, _agreement(estimator, evidence))))


def _count_clusters(estimator: Any, counts: np.ndarray, evidence: Evidence | None, names: list[str] | None) -> str:
    clusters = counted(estimator.n_clusters_, "cluster")
    if not len(counts):
        return f"The objects make {clusters}."
    n = int(counts.sum())
    source = "" if evidence is None else f"{counted(evidence.shape[1], 'base clustering')} of "
    combined = f"This result combines {source}{counted(n, 'object')}"
    if len(counts) == 1:
        return f"{combined} into a single cluster."
    ends = [
        f"the {end}{_apposition(names, counts, int(c))} of {_count_share(int(counts[c]), n)}"
        for end, c in (("largest", counts.argmax()), ("smallest", counts.argmin()))
    ]
    return f"{combined} into {clusters}, {', '.join(ends)}."


def _apposition(names: list[str] | None, counts: np.ndarray, cluster: int) -> str:
    """Return the name of a cluster between commas, if it has one and no other cluster is as large."""
    if names is None or names[cluster] == str(cluster) or np.count_nonzero(counts == counts[cluster]) > 1:
        return ""
    return f", {names[cluster]},"


def _agreement(estimator: Any, evidence: Evidence | None) -> str:
    if (fallback := getattr(estimator, "fallback_", None)) is not None:
        return (
            f"{fallback.capitalize()} found them, because the consensus agrees with none of the base clusterings "
            f"(mean ARI {estimator.mean_ari_:.2f})."
        )
    if evidence is None:
        return ""
    agreement = f"{evidence.agreement.anmi:.2f} on average (ANMI; 0: not at all, 1: the same)"
    return f"It agrees with the base clusterings at {agreement}."


def _byline(estimator: Any, facts: dict[str, Any]) -> str:
    """Return the method in words, the date and the version, as far as they are known."""
    kind = type(estimator)
    name = facts.get("method") or ESTIMATORS.get(kind.__name__, kind.__name__)
    words = summary(kind).partition(":")[0].rstrip(".")
    return byline(f"Method {name} ({words[:1].lower()}{words[1:]})" if words else f"Method {name}", facts)


def _further(
    estimator: Any, evidence: Evidence | None, joins: Joins | None, facts: dict[str, Any], names: list[str] | None
) -> Iterator[str]:
    """Yield paragraphs about the certainty of the objects, domains, votes, and missing labels."""
    if evidence is not None and _knows_certainty(evidence):
        yield _how_certain(estimator, evidence, names)
    if joins:
        yield _domains(estimator, joins)
    if about := " ".join(filter(None, (_votes(facts), _left_unknown(facts)))):
        yield about
    if missing := _missing(estimator.reduction_.ensemble, evidence, facts.get("n_unlabelled", 0)):
        yield missing


def _votes(facts: dict[str, Any]) -> str:
    """Return a text about shared names: ties, and objects that nobody named."""
    if "n_unanswered" not in facts:
        return ""
    silent = counted(facts["n_unanswered"], "object")
    text = "The clusters are names that the clusterings share."
    if "skills" in facts:
        skills = facts["skills"]
        best, worst = max(skills, key=skills.__getitem__), min(skills, key=skills.__getitem__)
        return (
            f"{text} Each annotator counts by skill, the probability of a right answer, from {skills[best]:.2f} "
            f"({best}) to {skills[worst]:.2f} ({worst}); {silent} got no answer. Certainty is the probability of the "
            "name, and the margin its lead."
        )
    ties = counted(facts["n_ties"], "object")
    return (
        f"{text} The votes for {ties} are tied, and {silent} got no vote. Certainty is the share of the votes for the "
        "name, and the margin its lead."
    )


def _left_unknown(facts: dict[str, Any]) -> str:
    if facts.get("n_doubtful") is None:
        return ""
    n, threshold = counted(facts["n_doubtful"], "object"), facts["min_confidence"]
    label = '"Unknown"' if "n_unanswered" in facts else "-1"
    because = f"because confidence is below {threshold:g}"
    return f"In the output, the label of {n} is {label}, {because}; this page has all labels."


def _domains(estimator: Any, joins: Joins) -> str:
    """Return a text about domains, and about the coherence of the base clusterings among neighbours."""
    text = (
        "The clusters are domains: an object in doubt gets the domain around it. Clusters that are mixed in space, "
        "such as cell types, are not found in this way."
    )
    if not np.isnan(joins.coherence).all():
        text += f" The base clusterings have a mean coherence of {np.nanmean(joins.coherence):.2f} among neighbours"
        if n_blind := len(joins.blind):
            text += f"; {n_blind:,} of {len(joins.members):,} hardly know of them ({listed(joins.blind)})"
        text += "."
    if (count := getattr(estimator, "effective_members_", None)) is not None:
        text += f" They resemble each other, and count as {count:.1f} independent ones."
    return text


def _how_certain(estimator: Any, evidence: Evidence, names: list[str] | None) -> str:
    """Return a text about the certainty of the objects.

    It counts sure objects, unless the number of clusters is in doubt or the clusters hardly hold together.
    """
    masks, n = Sureness.of(evidence), len(evidence.labels)
    sure, fairly_sure, in_doubt = (_count_share(int(mask.sum()), n) for mask in masks)
    is_loose = (consensus := mean_consensus(evidence)) < LEAST_CONSENSUS
    if not is_loose and doubt_of_number(estimator) is None:
        text = f"Of the objects {sure} are sure, {fairly_sure} fairly sure, and {in_doubt} in doubt"
    else:
        low, high = np.quantile(evidence.objects.certainty, (0.25, 0.75))
        together = (
            f"Only {percent(consensus)} of the base clusterings put two objects of a cluster together on average."
        )
        text = (
            f"{f'{together} ' * is_loose}Use certainty to order the objects, not as the chance that a label is right: "
            f"half of them have a certainty from {low:.2f} to {high:.2f}, and {in_doubt} are in doubt"
        )
    where = np.bincount(evidence.labels[masks.in_doubt], minlength=len(evidence.clusters.sizes))
    largest = np.argsort(-where, kind="stable")[:2]
    if np.count_nonzero(where) > 2 and where[largest].sum() > where.sum() / 2:
        text += f", most of these in clusters {' and '.join(str(_name_cluster(names, c)) for c in largest)}"
    return f"{text}."


def _count_share(n: int, total: int) -> str:
    return f"{n:,} ({percent(n / total)})" if n else "none"


def _missing(ensemble: Any, evidence: Evidence | None, n_unlabelled: int) -> str:
    """Return a text about the share of missing labels; it names the clustering that misses far more than the mean."""
    if evidence is None or not isinstance(ensemble, Ensemble):
        return ""
    labelled, n = evidence.agreement.n_labelled, len(evidence.labels)
    absent, cells = n * len(labelled) - int(labelled.sum()), n * len(labelled)
    text = f"{percent(absent / cells)} of the labels are missing ({absent:,} of {cells:,})" if absent else ""
    if len(labelled) > 1 and absent:
        worst = int(labelled.argmin())
        share = 1 - labelled[worst] / n
        if share > MISSING_RATIO * absent / cells:
            text += f", of clustering {ensemble.names[worst]} {percent(share)}"
    left_out = f"{counted(n_unlabelled, 'object')} without any label were left out." if n_unlabelled else ""
    return " ".join(filter(None, (text and f"{text}.", left_out)))


def _doubts(estimator: Any, evidence: Evidence | None, facts: dict[str, Any]) -> Iterator[str]:
    """Yield sentences about the doubts in the result, including the warnings of the run."""
    if (doubt := doubt_of_number(estimator)) is not None:
        yield f"The number of clusters is in doubt: {doubt}."
    if evidence is not None and _knows_certainty(evidence):
        share = float(Sureness.of(evidence).in_doubt.mean())
        if share > MOSTLY_IN_DOUBT:
            settled = ", by their labels alone; neighbours decide" if hasattr(estimator, "joins_") else ""
            yield f"{percent(share)} of the objects are in doubt{settled}."
    if evidence is not None and evidence.beyond_chance.doubtful:
        yield f"{str(evidence.beyond_chance).capitalize()}: there may be nothing to find in them."
    for warned in facts.get("warnings", ()):
        # a warning about the number of clusters is left out, because the first paragraph explains this number
        if not warned.startswith(("n_clusters is not given", *READING_WARNINGS)):
            yield f"{warned[:1].upper()}{warned[1:]}"


def _knows_certainty(evidence: Evidence) -> bool:
    """Return whether there are several clusters, and one with several members."""
    return len(evidence.clusters.sizes) > 1 and not np.isnan(evidence.objects.margin).all()


def _name_object(ids: Any, place: int) -> str:
    return f"object {place}" if ids is None else str(ids[place])


def _least_certain(evidence: Evidence) -> list[int]:
    """Return the positions of the objects with the lowest certainty, the lowest first."""
    return np.argsort(evidence.objects.certainty, kind="stable")[:LEAST_CERTAIN].tolist()


# --- sections ---------------------------------------------------------------------------------------------------------


def _profile(estimator: Any, features: Any, ids: Any, names: list[str] | None) -> Section | None:
    """Return a section about the features of the clusters; None if labels are in chunks or features sparse."""
    if devices.chunked(estimator.labels_) or hasattr(features, "tocsr"):
        return None
    profile = profile_of(features, devices.to_host(estimator.labels_))
    texts = [_name_cluster(names, cluster) for cluster in profile.clusters]
    return section_of_profile(profile, as_numbers(features), partial(_name_object, ids), texts)


def _sizes(facts: dict[str, Any]) -> Iterator[Section]:
    if "cluster_sizes" in facts:
        rows = list(enumerate(facts["cluster_sizes"]))
        yield Section("The clusters", [Table("clusters", ("cluster", "objects"), rows)])


def _name_cluster(names: list[str] | None, cluster: int) -> Any:
    """Return the name of a cluster in a table: its name if labels are names, otherwise its number."""
    return int(cluster) if names is None else names[cluster]


def _clusters(evidence: Evidence, names: list[str] | None) -> Iterator[Section]:
    clusters = evidence.clusters
    means = np.bincount(evidence.labels, weights=evidence.objects.certainty) / np.bincount(evidence.labels)
    columns = np.column_stack([clusters.consensus, clusters.stability, means]).tolist()
    rows = [[_name_cluster(names, c), int(clusters.sizes[c]), *numbers] for c, numbers in enumerate(columns)]
    titles = ("cluster", "objects", "consensus", "stability", "mean certainty")
    yield Section(
        "The clusters",
        [Table("clusters", titles, rows)],
        [Picture("Consensus and stability of the clusters", partial(plotting.cluster_consensus, evidence))],
    )


def _annotators(estimator: Any) -> Iterator[Section]:
    """Yield a section with the agreement of the annotators with the consensus, and with each other, for each name."""
    agreement = estimator.agreement_
    annotators = [str(name) for name in agreement.annotators]
    classes = np.argsort(-agreement.votes.sum(axis=0), kind="stable")[:MOST_NAMES]
    rows = [
        [name, int(votes.sum()), _format_number(overall), *map(_format_number, shares[classes])]
        for name, votes, overall, shares in zip(
            annotators, agreement.votes, agreement.overall, agreement.with_consensus, strict=True
        )
    ]
    titles = ("annotator", "votes", "all", *(str(agreement.classes[c]) for c in classes))
    tables = [Table("share of the votes that are the consensus", titles, rows)]
    pairs = [(m, h) for m in range(len(annotators)) for h in range(m)]
    if len(pairs) <= MOST_PAIRS:
        rows = [
            [f"{annotators[h]}, {annotators[m]}", *map(_format_number, agreement.between[m, h, classes])]
            for m, h in pairs
        ]
        tables.append(Table("specific agreement of two annotators", ("annotators", *titles[3:]), rows))
    note = "The first table has the share of an annotator's votes for a name that are the consensus."
    if len(tables) > 1:
        note += " The second has the specific agreement of two annotators on a name, from 0 to 1."
    if len(classes) < len(agreement.classes):
        note += f" These are the {MOST_NAMES} names with most votes, of {len(agreement.classes)}."
    yield Section("The annotators", tables, note=note)


def _format_number(value: float) -> Any:
    return "–" if np.isnan(value) else float(value)


def _certainty(evidence: Evidence) -> Iterator[Section]:
    n_rows, n_clusterings = evidence.shape
    exact = n_rows * n_rows * n_clusterings <= 2 * EXACT_COMPARISONS
    pairs = evidence.pairs(exact=exact, n_pairs=SAMPLED_PAIRS)
    ambiguous = f"PAC {number(pairs.pac())}, and {number(pairs.chance().pac())} for independent clusterings"
    pictures = [
        Picture("Item consensus of the objects of each cluster", partial(plotting.item_consensus, evidence)),
        Picture(f"C of all pairs of objects: {ambiguous}", partial(plotting.cdf, pairs)),
    ]
    k = len(evidence.clusters.sizes)
    if k > 1:
        mean = number(float(evidence.objects.silhouette.mean()))
        pictures.append(
            Picture(f"Silhouettes of all objects, on average {mean}", partial(plotting.silhouettes, evidence))
        )
    if k > MOST_ROWS:  # the picture of their nearness at the beginning has the largest clusters alone
        pictures.append(
            Picture("C within and between the clusters", partial(plotting.between_clusters, evidence), side_of(k))
        )
    n_pairs = f"The pairs are {SAMPLED_PAIRS:,} drawn ones: "
    error = "" if exact else f"{n_pairs}shares have a standard error of 0.0005 at most."
    yield Section("How certain is it?", pictures=pictures, note=error)


def _levels(estimator: Any) -> Iterator[Section]:
    if not hasattr(estimator, "dendrogram_"):
        return
    pictures = [
        Picture("The top of the tree", partial(plotting.dendrogram, estimator), WIDE),
        Picture("The lifetime of each number of clusters", partial(plotting.lifetimes, estimator)),
    ]
    end = min(MOST_LEVELS + 1, estimator.dendrogram_.n_leaves, len(estimator.lifetimes_) + 2)
    if end > 3 and not devices.chunked(estimator.labels_):
        row_of = devices.to_host(estimator.reduction_.row_of)
        rows = {k: estimator.cut_rows(k) for k in range(2, end)}
        levels = {k: labels[row_of] for k, labels in rows.items()} if estimator.reduction_.covers_all else rows
        pictures += [
            Picture(
                "The objects at each number of clusters",
                partial(
                    plotting.tracking,
                    levels,
                    reference=estimator.n_clusters_ if estimator.n_clusters_ in levels else None,
                ),
            ),
            Picture("How the clusters divide", partial(plotting.clustree, levels)),
        ]
    yield Section("How many clusters?", pictures=pictures)


def _neighbors(joins: Joins) -> Iterator[Section]:
    """Yield a section with the joins of the base clusterings, the one with the least coherence first."""
    rows = [
        [
            str(joins.members[m]),
            *map(_format_number, (joins.joins[m], joins.expected[m], joins.coherence[m])),
            int(joins.steps[m]),
        ]
        for m in np.argsort(joins.coherence, kind="stable")
    ]
    note = (
        "Steps are those of a walk to neighbours, at most 16, after which most of the labels around an object, beyond "
        "chance, are still its own."
    )
    titles = ("base clustering", "joins", "expected", "coherence", "steps")
    yield Section("The neighbours", [Table("joins of the base clusterings", titles, rows)], note=note)


def _doubtful(evidence: Evidence, ids: Any, names: list[str] | None) -> Iterator[Section]:
    objects, labels = evidence.objects, evidence.labels
    if np.isnan(objects.margin).all():
        return
    rows = [
        [
            _name_object(ids, i),
            _name_cluster(names, labels[i]),
            *(float(of[i]) for of in (objects.certainty, objects.item_consensus, objects.margin)),
        ]
        for i in _least_certain(evidence)
    ]
    columns = ("object", "cluster", "certainty", "item consensus", "margin")
    yield Section("The least certain objects", [Table("least certain objects", columns, rows)])


def _list_facts(facts: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if name == "command":
            yield name, shlex.join(value)
        elif name == "warnings":  # most warnings are shown above, except those about reading
            yield from (("note", warned) for warned in value if warned.startswith(READING_WARNINGS))
        elif name not in SHOWN_ABOVE:
            yield name.removeprefix("n_").replace("_", " "), value
