"""The results of a fit for all objects of a file or an AnnData: labels, evidence, memberships, record."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gpuens.io import annotated
from gpuens.io.annotated import BESIDE, REST
from gpuens.labels.codes import factorize
from gpuens.labels.name_tree import NamesInTree
from gpuens.labels.vocabulary import as_texts, nameless
from gpuens.runtime import checks
from gpuens.runtime.device import to_host


class FitResults(NamedTuple):
    """The results of a fit for all objects of a file."""

    labels: Any  # array (n_objects,); -1 for objects that were left out because they have no label
    # name → array of numbers, one row for each object, such as the confidence (n_objects,); NaN for objects left out
    beside: dict[str, Any]
    evidence: dict[str, Any] | None  # means of the evidence over the objects, for the record of the run
    n_doubtful: int | None = None  # number of objects of the fit that have no label because of their confidence


def results_of(
    estimator: Any,
    labelled: Any,
    evidence: bool = False,
    membership: bool = False,
    min_confidence: float | None = None,
    weights: Any = None,
    in_tree: NamesInTree | None = None,
) -> FitResults:
    """Return the labels of a fitted estimator; on request, also the evidence and the membership.

    ``labelled`` (n_objects,) is the mask of the objects in the fit; None means that all objects were in the fit. An
    object whose confidence is below ``min_confidence`` has the label -1, or "Unknown" among names. ``weights`` are
    those of the objects in the fit; None means that each object counts once. ``in_tree`` are names in a tree, which are
    the labels in place of those of the estimator, and whose support belongs to the evidence.
    """
    labels, n_doubtful = estimator.labels_ if in_tree is None else in_tree.labels, None
    if min_confidence is not None:
        labels = estimator.confident_labels(min_confidence)
        n_doubtful = int((to_host(estimator.confidence_) < min_confidence).sum())
    means, beside = _evidence(estimator, weights) if evidence else (None, {})
    if evidence and in_tree is not None:
        beside["support"] = in_tree.support
    if membership:
        beside["membership"] = to_host(estimator.membership_)
    beside = {
        name: expand(values, labelled, False if values.dtype == bool else float("nan"))
        for name, values in beside.items()
    }
    return FitResults(expand(labels, labelled, nameless(labels)), beside, means, n_doubtful)


def all_results_of(
    estimator: Any,
    labelled: Any,
    min_confidence: float | None = None,
    weights: Any = None,
    in_tree: NamesInTree | None = None,
) -> FitResults:
    """Return labels, evidence and membership for an AnnData.

    If the evidence does not fit the memory, or if weights have fractions, it is left out with a warning.
    """
    try:
        return results_of(estimator, labelled, True, estimator.fit_.gives_membership, min_confidence, weights, in_tree)
    except (MemoryError, TypeError) as error:
        if min_confidence is not None or (isinstance(error, TypeError) and estimator.fit_.lacks_evidence() is None):
            raise
        checks.warn(f"certainty, confidence and margin are left out: {error}")
        return results_of(estimator, labelled, False, estimator.fit_.gives_membership, in_tree=in_tree)


def annotated_entries(
    key: str, results: FitResults, method: str, estimator: Any, names: list[Any], neighbors: Mapping[str, Any]
) -> Any:
    """Return the entries that the results of a fit add to an AnnData; see `gpuens.io.annotated.entries`.

    ``neighbors`` are the settings of the graph of the cells, which join the parameters.
    """
    parameters = {"method": method, **estimator.get_params(), **neighbors, "clusterings": names}
    labels, facts = to_host(results.labels), {**(results.evidence or {}), **potts_of(estimator)}
    if estimator.parts().gives_names:  # texts, because numbers in h5ad files are clusters by size
        labels = as_texts(labels)
        facts = {**facts, "classes": estimator.classes_}  # columns of the membership
    return annotated.entries(key, labels, results.beside, parameters, **facts)


def expand(values: Any, labelled: Any, fill: Any) -> Any:
    """Expand the values of the fitted objects to all objects of the file; the others get the value ``fill``.

    ``labelled`` is the mask of the fitted objects; None means that all objects were fitted.
    """
    if labelled is None:
        return values
    expanded = np.full((len(labelled), *values.shape[1:]), fill, dtype=object if values.dtype == object else None)
    expanded[labelled] = values
    return expanded


def _evidence(estimator: Any, weights: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the means of the evidence for the record, and the evidence of each object for the output file."""
    evidence, means = estimator.evidence(), {}
    for name in (*BESIDE, "item_consensus", "silhouette"):
        values = getattr(evidence.objects, name)
        defined = ~np.isnan(values)
        weights_of_defined = None if weights is None else weights[defined]
        means[name] = float(np.average(values[defined], weights=weights_of_defined)) if defined.any() else None
    beside = {name: getattr(evidence.objects, name) for name in BESIDE}
    if estimator.parts().marks_rest:
        beside[REST] = to_host(estimator.rest_)
    return {"anmi": evidence.agreement.anmi, "ecs": evidence.agreement.mean_ecs, **means}, beside


# --- facts for a record -----------------------------------------------------------------------------------------------


def cluster_sizes(labels: Any) -> list[int]:
    """Return the number of objects in each cluster, as a list in the order of the labels 0, 1, 2, …"""
    return np.bincount(to_host(labels)).tolist()


def suggestion_facts(estimator: Any) -> dict[str, Any]:
    """Return the entry of the record about a number of clusters that the user did not give."""
    suggestion = getattr(estimator, "suggestion_", None)
    return {} if suggestion is None else {"suggestion": suggestion.to_dict()}


def potts_of(estimator: Any) -> dict[str, float]:
    """Return the entries of the record about the Potts prior of `gpuens.Spatial`; {} for fits without one."""
    values = {name: getattr(estimator, f"{name}_", None) for name in ("potts", "effective_members")}
    return {name: float(value) for name, value in values.items() if value is not None and math.isfinite(value)}


def vote_facts(estimator: Any) -> dict[str, Any]:
    """Return the facts about a consensus of shared names for the record of a run."""
    agreement = estimator.agreement_
    names = list(map(str, agreement.annotators))
    shares = zip(names, agreement.overall.tolist(), strict=True)
    skills = getattr(estimator, "skills_", None)
    judged = (
        {"n_ties": estimator.n_ties_}
        if skills is None
        else {"skills": dict(zip(names, skills["skill"].tolist(), strict=True))}
    )
    return {
        "cluster_names": estimator.cluster_names_.tolist(),
        **judged,
        "n_unanswered": estimator.n_unanswered_,
        "agreement_with_consensus": {name: None if share != share else share for name, share in shares},
    }


def tree_sizes(in_tree: NamesInTree) -> dict[str, int]:
    """Return the number of objects of each name in a tree, the most frequent name first."""
    codes, names = factorize(in_tree.labels)
    sizes = np.bincount(codes)
    order = np.argsort(-sizes, kind="stable")
    return dict(zip(np.asarray(names)[order].tolist(), sizes[order].tolist(), strict=True))
