"""The report page about a fitted estimator: result, certainty, number of clusters, and the record of the run."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gpuens import plotting
from gpuens.evidence import Evidence, Joins
from gpuens.labels.ensemble import Ensemble
from gpuens.methods import ESTIMATORS
from gpuens.report.front import picture_of_sizes, pictures_of_evidence, pictures_of_places
from gpuens.report.numbers import Share, percent
from gpuens.report.page import WIDE, Answer, Picture, Section, Table, render, side_of
from gpuens.report.sureness import LEAST_CONSENSUS, Sureness, doubt_of_number, mean_consensus
from gpuens.runtime import device as devices
from gpuens.runtime.checks import counted, listed
from gpuens.runtime.registry import summary
from gpuens.workflows.modes import Modes, modes

# maximum number of label comparisons to find the distribution over all pairs of objects, which take about 2 seconds
EXACT_COMPARISONS = 2 * 10**10
SAMPLED_PAIRS = 10**6  # number of pairs of objects drawn at random if all pairs would need more comparisons
MOST_CLUSTERINGS = 100  # maximum number of clusterings for which the agreement of each pair is computed
MODES_CLUSTERINGS = range(3, 501)  # numbers of clusterings that are divided into modes
# most cells of the table of all clusters and those of a clustering for clusterings that are divided into modes
MODES_CELLS = 2**26
MOST_TOLD_MODES = 3  # maximum number of modes that the first text mentions
MOST_CORRESPONDENCES = 12  # maximum number of pictures of correspondences
MOST_LEVELS = 12  # maximum number of cuts of a tree that are drawn, one cut for each number of clusters
MOST_NAMES = 12  # maximum number of names of a shared vocabulary in a table
MOST_PAIRS = 66  # maximum number of pairs of annotators in a table, those of 12 annotators
LEAST_CERTAIN = 20  # number of objects in the list of the least certain objects
READING_WARNINGS = ("path ", "labels: ", "adata")  # beginnings of the warnings about how the label columns were read
MOST_NAMED = 3  # maximum number of clusters or objects that the text names
MOST_CATEGORIES = 12  # maximum number of categories of an h5ad file for which the text gives the numbers of clusters
# a clustering is named if its share of missing labels is more than this multiple of the mean share
MISSING_RATIO = 2.0


def render_fit(
    title: str, estimator: Any, facts: dict[str, Any], ids: Any = None, *, coordinates: Any = None, shape: Any = None
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

    Raises
    ------
    ImportError
        Without matplotlib or jinja2.
    """
    graph = getattr(estimator, "graph_", None)
    if graph is not None and coordinates is None and shape is None:
        coordinates, shape = graph.layout
    evidence, names = _evidence(estimator), facts.get("cluster_names")
    found_modes, joins = _modes(estimator, evidence), getattr(estimator, "joins_", None)
    sections = [
        *(_clusters(evidence, names) if evidence else _sizes(facts)),
        *(_annotators(estimator) if estimator.parts().gives_names else ()),
        *(_certainty(evidence) if evidence else ()),
        *(_doubtful(evidence, ids, names) if evidence else ()),
        *_levels(estimator),
        *_clusterings(estimator, evidence, found_modes),
        *(_neighbors(joins) if joins else ()),
        Section("How it was made", [Table("facts of the run", ("what", "value"), list(_list_facts(facts)))]),
    ]
    counts = evidence.clusters.sizes if evidence else np.asarray(facts.get("cluster_sizes", ()))
    if evidence:
        pictures = pictures_of_evidence(evidence)
    else:
        pictures = [picture_of_sizes(counts)] if len(counts) else []
    paragraphs = [*_answer(estimator, counts, evidence, facts, ids), *_sentences_about_modes(found_modes)]
    if joins:
        paragraphs.insert(1, _domains(estimator, joins))
    if coordinates is not None or shape is not None:
        pictures = [*pictures_of_places(estimator, coordinates=coordinates, shape=shape), *pictures]
    answer = Answer(paragraphs, list(_doubts(estimator, evidence, facts)), pictures)
    return render(title, answer, sections)


def _evidence(estimator: Any) -> Evidence | None:
    """Return the evidence for the labels of a fitted estimator.

    Return None if the labels are in chunks, if the base clusterings are soft, or if there is a single object.
    """
    try:
        evidence: Evidence = estimator.evidence()
    except TypeError:
        return None
    return evidence if len(evidence.labels) > 1 else None


def _modes(estimator: Any, evidence: Evidence | None) -> Modes | None:
    """Return the modes of the base clusterings, or None without several modes.

    For few or many clusterings, or for very many clusters, they are not searched.
    """
    if evidence is None or evidence.shape[1] not in MODES_CLUSTERINGS:
        return None
    sizes = np.diff(evidence.rows.offsets)
    if sizes.sum() * sizes.max() > MODES_CELLS:
        return None
    found_modes = modes(estimator.reduction_.ensemble, device=evidence.rows.device)
    return found_modes if len(found_modes.modes) > 1 else None


# --- the result in words ----------------------------------------------------------------------------------------------


def _answer(
    estimator: Any, counts: np.ndarray, evidence: Evidence | None, facts: dict[str, Any], ids: Any
) -> Iterator[str]:
    """Yield paragraphs about the clusters and the method, the certainty of the objects, and the missing labels."""
    sentences = _count_clusters(estimator, counts), _how_many(estimator), _made_by(estimator, evidence, facts)
    yield " ".join(filter(None, sentences))
    if evidence is not None and len(counts) > 1 and not np.isnan(evidence.objects.margin).all():
        yield _how_certain(evidence, _reason_against_sure(estimator, evidence), ids)
    if about := " ".join(filter(None, (_votes(facts), _left_unknown(facts)))):
        yield about
    ensemble = estimator.reduction_.ensemble
    if evidence is not None and isinstance(ensemble, Ensemble):
        yield _missing(evidence, ensemble.names, facts.get("n_unlabelled", 0))


def _count_clusters(estimator: Any, counts: np.ndarray) -> str:
    clusters = counted(estimator.n_clusters_, "cluster")
    if not len(counts):
        return f"The objects make {clusters}."
    n, largest, smallest = int(counts.sum()), int(counts.max()), int(counts.min())
    if len(counts) == 1:
        return f"The {counted(n, 'object')} make a single cluster."
    ends = f"the largest has {_count_share(largest, n)}, the smallest {_count_share(smallest, n)}"
    return f"The {counted(n, 'object')} make {clusters}: {ends}."


def _votes(facts: dict[str, Any]) -> str:
    """Return a text about shared names: ties, objects that nobody named, and the numbers in pictures."""
    if "n_unanswered" not in facts:
        return ""
    silent = counted(facts["n_unanswered"], "object")
    numbers = [f"{number} is {name}" for number, name in enumerate(facts["cluster_names"][:MOST_CATEGORIES])]
    ellipsis = ", …" * (len(facts["cluster_names"]) > MOST_CATEGORIES)
    text = f"The clusters are names that the clusterings share: {', '.join(numbers)}{ellipsis}."
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
    label = '"Unknown"' if "cluster_names" in facts else "-1"
    because = f"because confidence is below {threshold:g}"
    return f"In the output, the label of {n} is {label}, {because}; this page has all labels."


def _domains(estimator: Any, joins: Joins) -> str:
    """Return a text about domains, and about the coherence of the base clusterings among neighbours."""
    text = (
        "Domains, not types: an object whose labels leave a doubt gets the domain of its surroundings, and clusters "
        "that are mixed in space, such as cell types, are lost."
    )
    if not np.isnan(joins.coherence).all():
        text += f" The base clusterings have a mean coherence of {np.nanmean(joins.coherence):.2f} among neighbours"
        if n_blind := len(joins.blind):
            text += f"; {n_blind:,} of {len(joins.members):,} hardly know of them ({listed(joins.blind)})"
        text += "."
    if (count := getattr(estimator, "effective_members_", None)) is not None:
        text += f" Their errors are those of {count:.1f} independent ones."
    return text


def _how_many(estimator: Any) -> str:
    suggestion = getattr(estimator, "suggestion_", None)
    return "" if suggestion is None else f"How many was not asked: {suggestion.reason()}."


def _made_by(estimator: Any, evidence: Evidence | None, facts: dict[str, Any]) -> str:
    kind = type(estimator)
    name = facts.get("method") or ESTIMATORS.get(kind.__name__, kind.__name__)
    words = summary(kind).partition(":")[0].rstrip(".")
    method = f"The method {name} ({words[:1].lower()}{words[1:]})" if words else f"The method {name}"
    if (fallback := getattr(estimator, "fallback_", None)) is not None:
        sentence = f"{fallback.capitalize()} found them, because the consensus by the method {name}"
        return f"{sentence} agrees with none of the base clusterings (mean ARI {estimator.mean_ari_:.2f})."
    if evidence is None:
        return f"{method} found them."
    sentence = f"{method} found them in {counted(evidence.shape[1], 'base clustering')}"
    return f"{sentence}, with which they have a mean agreement of {evidence.agreement.anmi:.2f} (ANMI)."


def _how_certain(evidence: Evidence, reason: str | None, ids: Any) -> str:
    """Return a text about the certainty of the objects, which counts doubtful objects and names the least certain ones.

    It counts sure objects unless there is a ``reason`` not to call any object sure.
    """
    masks, n = Sureness.of(evidence), len(evidence.labels)
    sure, fairly_sure, in_doubt = (_count_share(int(mask.sum()), n) for mask in masks)
    if reason is None:
        text = f"Of the objects {sure} are sure, {fairly_sure} fairly sure, and {in_doubt} in doubt"
    else:
        low, high = np.quantile(evidence.objects.certainty, (0.25, 0.75))
        text = (
            f"{reason}, so certainty only compares the objects with each other: half of them have a certainty from "
            f"{low:.2f} to {high:.2f}, and {in_doubt} are in doubt"
        )
    where = np.bincount(evidence.labels[masks.in_doubt], minlength=len(evidence.clusters.sizes))
    largest = np.argsort(-where, kind="stable")[:2]
    if np.count_nonzero(where) > 2 and where[largest].sum() > where.sum() / 2:
        text += f", most of these in clusters {' and '.join(map(str, largest))}"
    names = [_name_object(ids, i) for i in _least_certain(evidence)[:MOST_NAMED]]
    return f"{text}. The least certain are {', '.join(names)}; more are listed below."


def _reason_against_sure(estimator: Any, evidence: Evidence) -> str | None:
    """Return the reason why no object of a fit is called sure, the beginning of a sentence; None without a reason."""
    if doubt_of_number(estimator) is not None:
        return "The number of clusters is in doubt"
    if (consensus := mean_consensus(evidence)) >= LEAST_CONSENSUS:
        return None
    return f"On average only {percent(consensus)} of the clusterings put two objects of a cluster together"


def _count_share(n: int, total: int) -> str:
    return f"{n:,} ({percent(n / total)})" if n else "none"


def _missing(evidence: Evidence, names: list[Any], n_unlabelled: int) -> str:
    """Return a text about the share of missing labels; it names the clustering that misses far more than the mean."""
    labelled, n = evidence.agreement.n_labelled, len(evidence.labels)
    absent, cells = n * len(labelled) - int(labelled.sum()), n * len(labelled)
    text = f"{percent(absent / cells)} of the labels are missing ({absent:,} of {cells:,})" if absent else ""
    if len(labelled) > 1 and absent:
        worst = int(labelled.argmin())
        share = 1 - labelled[worst] / n
        if share > MISSING_RATIO * absent / cells:
            text += f", of clustering {names[worst]} {percent(share)}"
    text = f"{text}." if text else "No label is missing."
    if n_unlabelled:
        text += f" {counted(n_unlabelled, 'object')} without any label were left out."
    return text


def _doubts(estimator: Any, evidence: Evidence | None, facts: dict[str, Any]) -> Iterator[str]:
    """Yield sentences about the doubts in the result, including the warnings of the run."""
    if (doubt := doubt_of_number(estimator)) is not None:
        yield f"The number of clusters is in doubt: {doubt}."
    if evidence is not None and evidence.beyond_chance.doubtful:
        yield f"{str(evidence.beyond_chance).capitalize()}: there may be nothing to find in them."
    for warned in facts.get("warnings", ()):
        # a warning about the number of clusters is left out, because the first paragraph explains this number
        if not warned.startswith(("n_clusters is not given", *READING_WARNINGS)):
            yield f"{warned[:1].upper()}{warned[1:]}"


def _sentences_about_modes(found_modes: Modes | None) -> Iterator[str]:
    """Yield a sentence about few modes; many are usual for clusterings that differ in their numbers of clusters."""
    if found_modes is not None and len(found_modes.modes) <= MOST_TOLD_MODES:
        yield f"{found_modes.story} The consensus mixes them; the section on the base clusterings tells them apart."


def _name_object(ids: Any, place: int) -> str:
    return f"object {place}" if ids is None else str(ids[place])


def _least_certain(evidence: Evidence) -> list[int]:
    """Return the positions of the objects with the lowest certainty, the lowest first."""
    return np.argsort(evidence.objects.certainty, kind="stable")[:LEAST_CERTAIN].tolist()


# --- sections ---------------------------------------------------------------------------------------------------------


def _sizes(facts: dict[str, Any]) -> Iterator[Section]:
    if "cluster_sizes" in facts:
        rows = list(enumerate(facts["cluster_sizes"]))
        yield Section("The clusters", [Table("clusters", ("cluster", "objects"), rows)])


def _name_cluster(names: list[Any] | None, cluster: int) -> Any:
    """Return the name of a cluster in a table: its name if labels are names, otherwise its number."""
    return int(cluster) if names is None else str(names[cluster])


def _clusters(evidence: Evidence, names: list[Any] | None) -> Iterator[Section]:
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
    pictures = [
        Picture("Item consensus of the objects of each cluster", partial(plotting.item_consensus, evidence)),
        Picture("C of all pairs of objects, and their PAC", partial(plotting.cdf, pairs)),
    ]
    if len(evidence.clusters.sizes) > 1:
        pictures.append(Picture("Silhouettes of all objects", partial(plotting.silhouettes, evidence)))
        side = side_of(len(evidence.clusters.sizes))
        pictures.append(
            Picture("C within and between the clusters", partial(plotting.between_clusters, evidence), side)
        )
    n_pairs = f"The pairs are {SAMPLED_PAIRS:,} drawn ones: "
    error = "" if exact else f"{n_pairs}shares have a standard error of .0005 at most."
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


def _clusterings(estimator: Any, evidence: Evidence | None, found_modes: Modes | None) -> Iterator[Section]:
    pictures, tables, notes = [], [], []
    names = estimator.reduction_.ensemble.names
    if evidence is not None:
        tables = [_table_of_clusterings(evidence, names)]
    if found_modes is not None:
        tables.insert(0, _table_of_modes(found_modes))
        notes.append(f"{found_modes.story} Each mode is a group of base clusterings that agree.")
    if evidence is not None and 1 < evidence.shape[1] <= MOST_CLUSTERINGS:
        draw = partial(plotting.clusterings, evidence.consistency, names=names)
        title = "Agreement of the base clusterings with each other (ECS), and their inconsistency (IC)"
        pictures.append(Picture(title, draw, side_of(evidence.shape[1])))
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


def _table_of_modes(found_modes: Modes) -> Table:
    """Return a table with the size of each mode, its agreement, and its distance from the largest mode."""
    rows = [
        [
            i,
            len(mode.members),
            Share(mode.share),
            mode.n_clusters,
            mode.agreement,
            float(found_modes.ari[0, i]),
            float(found_modes.vi[0, i]),
            str(found_modes.names[mode.medoid]),
        ]
        for i, mode in enumerate(found_modes.modes)
    ]
    columns = ("mode", "base clusterings", "share", "clusters", "ARI within", "ARI with mode 0", "VI", "medoid")
    return Table("modes", columns, rows)


def _table_of_clusterings(evidence: Evidence, names: list[Any]) -> Table:
    """Return a table with the agreement of each base clustering with the result, and its share of missing labels.

    The clustering with the least agreement is first.
    """
    agreement, n = evidence.agreement, len(evidence.labels)
    rows = [
        [str(names[h]), float(agreement.nmi[h]), float(agreement.ecs[h]), Share(1 - int(agreement.n_labelled[h]) / n)]
        for h in np.argsort(agreement.nmi, kind="stable")
    ]
    return Table("base clusterings", ("base clustering", "NMI with the result", "ECS", "missing labels"), rows)


def _doubtful(evidence: Evidence, ids: Any, names: list[Any] | None) -> Iterator[Section]:
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
        if name == "warnings":  # most warnings are shown above, except those about reading
            yield from (("note", warned) for warned in value if warned.startswith(READING_WARNINGS))
        else:
            yield name.replace("_", " "), value
