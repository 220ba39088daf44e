"""Clusterings that share a vocabulary: a name means the same in all of them, and some words mean no answer.

The codes of all clusterings then number one list of names, so that equal codes are equal answers.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from gpuens.labels.codes import codes_dtype, renumber_codes
from gpuens.labels.encoding import label_values
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.odd_labels import LOOKS_MISSING
from gpuens.runtime import checks
from gpuens.runtime import device as devices

UNKNOWN = "Unknown"  # the label of an object without a name, if names are texts
# words for no answer, with commas between them
NO_ANSWER = ",".join(
    sorted(
        LOOKS_MISSING.union(
            ("unassigned", "unclassified", "undetermined", "undecided", "unlabeled", "unsure", "not sure", "no answer")
        )
    )
)


def answer_words(no_answer: Any) -> frozenset[str]:
    """Return the words for no answer in lower case, from a list of words or a text with commas between words.

    The empty text is always one of them.
    """
    answers = no_answer.split(",") if isinstance(no_answer, str) else no_answer
    words = list(answers) if isinstance(answers, Iterable) else [answers]
    if not all(isinstance(word, str) for word in words):
        raise TypeError(
            f"no_answer must be words, such as ['unknown', '?'] or 'unknown,?', not {checks.shown(no_answer)}."
        )
    return frozenset(map(_as_word, words)) | {""}


def ensemble_of_names(labels: Any, no_answer: Any, *, wide: bool = False) -> Ensemble:
    """Return the ensemble of clusterings that share a vocabulary, as `with_one_vocabulary`.

    Columns of a table that are no clusterings are left out with a warning. ``wide``: as in `Ensemble`.
    """
    words = answer_words(no_answer)
    if not isinstance(labels, Ensemble):
        labels, _ = Ensemble.from_labels(labels, None, shared_names=True, wide=wide)
    return with_one_vocabulary(labels, words)


def with_one_vocabulary(ensemble: Ensemble, no_answer: frozenset[str]) -> Ensemble:
    """Return the ensemble with one list of names, in ascending order, as the label values of all clusterings.

    Words for no answer become missing. Numbers become texts if other names are texts. Some objects may have no label,
    and some names no object.

    >>> import gpuens as ge
    >>> from gpuens.labels.vocabulary import with_one_vocabulary
    >>> found = with_one_vocabulary(ge.Ensemble([["b", "a", "x"], ["b", "c", "c"]]), frozenset("x"))
    >>> found.categories[1].tolist(), found.to_array().tolist()
    (['a', 'b', 'c'], [[1, 1], [0, 2], [-1, 2]])
    """
    vocabulary, numbers = shared_vocabulary([values.tolist() for values in ensemble.categories], no_answer)
    codes = renumber_codes(ensemble.codes_on(ensemble.device_kind), codes_dtype(len(vocabulary)), numbers)
    categories = [vocabulary] * ensemble.n_clusterings
    properties = {"index": ensemble.index, "left_out": ensemble.left_out}
    return Ensemble.of_codes(codes, categories, ensemble.names, ensemble.device_kind, **properties)


def shared_vocabulary(values: list[list[Any]], no_answer: frozenset[str]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return one ascending list of names for lists of label values, and the number of each value in it.

    The number of a word for no answer is -1. Numbers become texts if other names are texts.
    """
    clustering_names = [[_as_number_or_text(value) for value in names] for names in values]
    answers = {name for names in clustering_names for name in names if _as_word(name) not in no_answer}
    if not answers:
        raise ValueError(
            "labels hold no answer: all are missing or words of no_answer; pass the names that the clusterings gave."
        )
    if any(isinstance(name, str) for name in answers):
        clustering_names, answers = (
            [[str(name) for name in names] for names in clustering_names],
            set(map(str, answers)),
        )
    vocabulary = sorted(answers)
    code_of = dict(zip(vocabulary, range(len(vocabulary)), strict=True))
    numbers = [np.array([code_of.get(name, checks.MISSING) for name in names]) for names in clustering_names]
    return label_values(vocabulary), numbers


def name_codes(names: np.ndarray, codes: Any, kind: str) -> Any:
    """Return the name (n,) of each code, or "Unknown" (-1 if names are numbers) for negative codes.

    Texts are in host memory, and numbers in the memory ``kind``.
    """
    dtype = names.dtype if names.dtype == np.int64 else object  # dtype object for texts and for numbers ≥ 2⁶³
    named = np.array([*names.tolist(), nameless(names)], dtype=dtype)[devices.to_host(codes)]
    return devices.give_back(named, kind) if dtype == np.int64 else named


def nameless(labels: Any) -> Any:
    """Return the label for objects without a name, beside other labels: -1, or "Unknown" if they are texts."""
    texts = labels.dtype.kind in "OU" and any(isinstance(label, str) for label in labels[:1])
    return UNKNOWN if texts else checks.MISSING


def as_texts(labels: np.ndarray) -> np.ndarray:
    """Return labels that are names as an object array of texts, "Unknown" for -1."""
    return np.array([UNKNOWN if label == checks.MISSING else str(label) for label in labels.tolist()], dtype=object)


def _as_number_or_text(value: Any) -> int | str:
    """Return a label value as a whole number or a text."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _as_word(value: int | str) -> str:
    return str(value).strip().lower()
