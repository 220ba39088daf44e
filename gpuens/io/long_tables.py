"""Tables in long form that are read without a matrix of labels: as shares of objects, or as answers of annotators."""

import os
from typing import Any

import numpy as np

from gpuens.io.columns import Opened, warn_of_odd_texts
from gpuens.io.content import input_kind
from gpuens.io.paths import Path_
from gpuens.io.reading import LabelFile, LabelOptions, open_labels, read_label_file, read_opened
from gpuens.labels.answers import Answers
from gpuens.labels.long_form import Triples
from gpuens.labels.soft_ensemble import SoftEnsemble
from gpuens.runtime.checks import counted


def read_soft_file(path: Path_, *, drop_unlabelled: bool = False, wide: bool = False, **options: Any) -> LabelFile:
    """Read base clusterings as `read_label_file`, and a table in long form, whose clusters may overlap, as shares.

    ``share_column`` is the column of shares. ``ensemble`` is a SoftEnsemble if the table has such a column, or if an
    object has several labels in a clustering, otherwise an Ensemble.
    """
    label_options = LabelOptions(**options)
    if not label_options.long:
        return read_label_file(path, drop_unlabelled=drop_unlabelled, wide=wide, **options)
    opening = open_labels(path, input_kind(path), label_options)
    opened, triples = opening[0], _triples_of(opening[0])
    n_shared = len(np.unique(triples.lines.rows[triples.lines.same_pair]))
    if triples.weights is None and not n_shared:
        return read_opened(path, opening, label_options, drop_unlabelled=drop_unlabelled)
    _warn_of_odd_labels(path, triples, label_options)
    ensemble, labelled = SoftEnsemble.of_triples(triples, drop_unlabelled=drop_unlabelled)
    form = opened.form.replace("a label", "a share", 1)
    form = f"{form}, {counted(n_shared, 'object')} in several clusters of a clustering"
    return LabelFile(ensemble, opened.ids(None), None if labelled.all() else labelled, form)


def read_answers_file(path: Path_, no_answer: Any, **options: Any) -> LabelFile:
    """Read a table in long form as `Answers` of annotators; ``no_answer`` are the words for no answer."""
    label_options = LabelOptions(**{name: options[name] for name in options if name in LabelOptions._fields})
    opened, _ = open_labels(path, input_kind(path), label_options)
    triples = _triples_of(opened)
    _warn_of_odd_labels(path, triples, label_options)
    return LabelFile(Answers.of_triples(triples, no_answer), opened.ids(None), None, opened.form)


def _triples_of(opened: Opened) -> Triples:
    assert opened.triples is not None
    return opened.triples


def _warn_of_odd_labels(path: Path_, triples: Triples, options: LabelOptions) -> None:
    """Warn about labels that may be misread, as of a column of a table."""
    labels = triples.label_values.to_frame()
    warn_of_odd_texts(labels, ["label"], options.missing, f"path {os.fspath(path)!r}", no_missing=options.no_missing)
