"""Model files: a fitted method without its objects, in an npz file without pickles.

model     the description of method, parameters, versions, clusterings and rule, as an array of the bytes of UTF-8 JSON
rows      the distinct label rows of the fit (G, M), as codes that number the label values of each clustering
counts    the number of objects with each distinct row (G,)
labels    the consensus cluster of each distinct row (G,)
rule_0 …  the arrays of the rule that labels rows that did not occur in the fit

If the distinct rows of a fit in chunks were not merged, the file does not contain rows, counts and labels; nor does it
after a fit with a graph, where objects of equal rows may have different labels.
"""

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuens import __version__
from gpuens.evidence import Evidence, NewObjects
from gpuens.evidence.inputs import CONVENTIONS
from gpuens.io import atomic, paths
from gpuens.io.arrays import Archive
from gpuens.labels.codes import codes_dtype
from gpuens.labels.encoding import label_values
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Rows, Rule
from gpuens.methods.stored_rules import Reading, Writing
from gpuens.reduction import Reduction, core_groups
from gpuens.reduction.find import find_rows
from gpuens.runtime import checks, record
from gpuens.runtime import device as devices
from gpuens.runtime.device import Array

FORMAT, VERSION = "gpuens model", 1
ENDINGS = (".npz",)
LABELS = (int, bool, str)  # types of label values that can be stored as JSON
ARRAYS_OF_ROWS = ("rows", "counts", "labels")


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted method without its objects, which labels new objects; `gpuens.load` reads it from a file.

    Attributes
    ----------
    method : str
        The class of the estimator, such as "LWEA".
    parameters : dict
        The parameters of the estimator as JSON values; other values than numbers, texts and lists become texts.
    columns : list of str or int
        The names of the base clusterings, or their numbers from 0, in the order of the fit.
    n_clusters : int
        The number of clusters of the consensus.
    n_objects : int or None
        The number of objects of the fit, or their weight, or None for a fit in chunks without common rows.
    versions : dict of str to str
        The versions of the packages used by the fit.
    missing : {"zero", "ignore"}
        The default treatment of missing labels in `evidence`.
    """

    method: str
    parameters: dict[str, Any]
    n_clusters: int
    versions: dict[str, str]
    missing: str
    numbering: Ensemble
    rows: Rows | None  # the distinct rows of the fit, in lexicographic order
    labels: np.ndarray | None  # labels of the rows
    covers_all: bool  # whether the rows and their counts cover all objects of the fit
    rule: Rule
    device: str = "auto"
    unit: int = 1  # weight of a count of 1

    @property
    def columns(self) -> list[Any]:
        return self.numbering.names

    @property
    def n_objects(self) -> int | None:
        return self.rows.n_objects * self.unit if self.covers_all and self.rows is not None else None

    def predict(self, X: Any) -> Array:
        """Return the labels (n_objects,), int64, of new objects; the estimator's `predict` returns the same labels.

        Parameters
        ----------
        X : labels of new objects (n_objects, n_clusterings)
            Anything that `gpuens.Ensemble` accepts. Named columns are matched by name, in any order; other columns are
            ignored. A number and its text are the same label, because a file of few objects may contain only numbers
            where the file of the fit also had texts. Label values unknown at fit count as missing.

        Raises
        ------
        ValueError
            For other clusterings than those of the fit, and for objects without a label known from the fit.
        """
        ensemble = self._encode_all(X)
        groups = self._groups(ensemble)
        return devices.give_back(self._labels_of(groups.rows)[devices.to_host(groups.row_of)], ensemble.device_kind)

    def evidence(self, X: Any, *, missing: str | None = None) -> NewObjects:
        """Return the labels of new objects, and the evidence for these labels (`gpuens.evidence.NewObjects`).

        Parameters
        ----------
        X : labels of new objects, as in `predict`
        missing : {"zero", "ignore"}, optional
            By default, as in the method.

        Raises
        ------
        ValueError
            As `predict`.
        TypeError
            For a model of a fit in chunks without common rows.
        """
        if (why := self.lacks_evidence()) is not None:
            raise TypeError(why)
        groups = self._groups(self._encode_all(X))
        rows, labels = self.rows, self.labels
        assert rows is not None
        assert labels is not None
        evidence = Evidence.of_groups(rows, labels, np.arange(len(labels)), missing or self.missing, unit=self.unit)
        return evidence.describe_new(groups.rows, self._labels_of(groups.rows), groups.row_of)

    def lacks_evidence(self) -> str | None:
        """Return the reason why the model has no evidence for new objects, or None if it has evidence."""
        if self.covers_all:
            return None
        return (
            "evidence needs the label rows of all objects, which the model of a fit in chunks, with a graph, or with "
            "fractions as weights, does not hold; fit labels in memory, with whole numbers as weights."
        )

    def encode(self, X: Any) -> tuple[Ensemble, np.ndarray]:
        """Return the labels of new objects in the numbering of the fit, and a mask (n_objects,).

        The mask is true for objects with at least one label that occurred in the fit.
        """
        return self.numbering.encoded_in_part(X, as_written=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file for `gpuens.load`; parameters and errors are those of `gpuens.Consensus.save`."""
        paths.file_kind(path, ENDINGS)
        writing = Writing()
        described = {
            "format": FORMAT,
            "version": VERSION,
            "gpuens": __version__,
            "method": self.method,
            "parameters": self.parameters,
            "n_clusters": self.n_clusters,
            "versions": self.versions,
            "missing": self.missing,
            "columns": self.columns,
            "categories": [
                _json_values(values, name) for values, name in zip(self.numbering.categories, self.columns, strict=True)
            ],
            "counted": self.covers_all,
            "unit": self.unit,
            "rule": writing.rule(self.rule),
        }
        arrays: dict[str, Any] = {} if self.rows is None else _arrays_of(self.rows, self.labels)
        arrays |= {f"rule_{number}": values for number, values in enumerate(writing.arrays)}
        text = np.frombuffer(atomic.encoded(described), dtype=np.uint8)
        with atomic.replacing(path) as file:
            np.savez_compressed(file, model=text, **arrays)

    def _encode_all(self, X: Any) -> Ensemble:
        """Return the labels of new objects in the numbering of the fit.

        Raise an error if no label of an object occurred in the fit.
        """
        ensemble, labelled = self.encode(X)
        if not labelled.all():
            raise ValueError(
                f"X has {np.count_nonzero(~labelled)} object(s) without a label that the model knows, the first is "
                f"object {int(labelled.argmin())}; leave them out."
            )
        return ensemble

    def _groups(self, ensemble: Ensemble) -> Reduction:
        return core_groups(Rows(ensemble, device=devices.resolve(self.device, ensemble.device_kind)))

    def _labels_of(self, rows: Rows) -> np.ndarray:
        """Return the consensus labels of rows; rows that occurred in the fit keep their labels."""
        if self.rows is None or self.labels is None:
            return self.rule(rows)
        places = devices.to_host(find_rows(rows.codes, self.rows.ensemble.codes_on(rows.device), device=rows.device))
        labels: np.ndarray = self.labels[places]
        if len(unknown := np.flatnonzero(places < 0)):
            labels[unknown] = self.rule(rows.take(unknown))
        return labels

    def __repr__(self) -> str:
        about = f"{self.method}, {self.n_clusters} clusters by {len(self.columns)} clusterings"
        return f"Model({about}{'' if self.n_objects is None else f' of {self.n_objects} objects'})"


def load(path: str | os.PathLike[str], *, device: str = "auto") -> Model:
    """Read a fitted method from a file that ``estimator.save(path)`` or ``gpuens run --model`` wrote.

    The file contains no code, so that files from any source are safe to load.

    Parameters
    ----------
    path : str or path
    device : {"auto", "cpu", "cuda"}
        The device for labelling; "auto" means the device of the new labels.

    Returns
    -------
    Model
        With ``predict(X)`` and ``evidence(X)`` for new objects.

    Raises
    ------
    OSError, ValueError, MemoryError
        For a file that is missing, no model, damaged, or written by a newer gpuens.

    Examples
    --------
    >>> import gpuens as ge, pathlib, tempfile
    >>> est = ge.LWEA(2).fit([["a", "a", "a", "b", "b", "b"], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "customers.npz")
    ...     est.save(path)
    ...     model = ge.load(path)
    >>> model
    Model(LWEA, 2 clusters by 3 clusterings of 6 objects)
    >>> new = [["a", "b"], [1, 2], [1, 1]]
    >>> model.predict(new).tolist(), model.evidence(new).objects.confidence.round(2).tolist()
    ([0, 1], [0.62, 0.86])
    """
    paths.file_kind(path, ENDINGS)
    paths.check_readable(path)
    where = devices.resolve(device, "cpu")
    with paths.reading(path), Archive(path) as archive:
        described = _described(archive)
    refuse_foreign(path, described)
    with paths.reading(path), Archive(path) as archive:
        return _model_from(archive, described, device, where)


def refuse_foreign(path: str | os.PathLike[str], described: dict[str, Any]) -> None:
    """Raise an error if the file is not a model file, or was written by a newer version of gpuens."""
    if described.get("format") != FORMAT:
        raise ValueError(
            f"path {os.fspath(path)!r} is no model file; name one that estimator.save(path) or gpuens run --model "
            "wrote."
        )
    version = described.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(
            f"path {os.fspath(path)!r} is a model of version {version}, written by gpuens {described.get('gpuens')}, "
            f"but gpuens {__version__} reads versions up to {VERSION}; update gpuens, or save the model again."
        )


def model_of(estimator: Any) -> Model:
    """Return the `Model` of an estimator that was fitted to labels."""
    fit = estimator.fit_
    reduction = fit.reduction
    numbering = reduction.ensemble.take(np.arange(0))
    rows, covers_all, labels, unit = None, False, None, fit.whole_unit
    if fit.partition.labels is not None and reduction.rows_decide:
        chunked = devices.chunked(fit.clusters)
        covers_all = reduction.covers_all or not chunked
        if not chunked:
            rows = reduction.groups().rows
        else:  # the numbers of objects of these rows are not known
            rows = reduction.rows if reduction.distinct is None else Rows(reduction.distinct)
            covers_all = covers_all and reduction.distinct is None
        labels = fit.labels_of(rows)
        covers_all = covers_all and unit is not None  # multiples of fractions are no objects
    parameters = json.loads(atomic.encoded(estimator.get_params(deep=False)))
    return Model(
        type(estimator).__name__,
        parameters,
        estimator.n_clusters_,
        record.surroundings()["versions"],
        fit.missing,
        numbering,
        rows,
        labels,
        covers_all,
        fit.rule,
        unit=unit if covers_all else 1,
    )


# --- label values in a file -------------------------------------------------------------------------------------------


def _described(archive: Archive) -> dict[str, Any]:
    if "model" not in archive.names:
        return {}
    text = archive.read("model")
    described = json.loads(text.tobytes()) if text.dtype == np.uint8 else {}
    return described if isinstance(described, dict) else {}


def _arrays_of(rows: Rows, labels: Any) -> dict[str, np.ndarray]:
    return dict(zip(ARRAYS_OF_ROWS, (rows.ensemble.codes, rows.counts, devices.to_host(labels)), strict=True))


def _model_from(archive: Archive, described: dict[str, Any], device: str, where: str) -> Model:
    names = [name if isinstance(name, str) else int(name) for name in described["columns"]]
    categories = [_categories(values) for values in described["categories"]]
    if len(names) != len(categories) or not all(map(len, categories)):
        raise ValueError("the clusterings have other names than labels.")
    largest = max(map(len, categories))
    numbering = Ensemble.of_codes(np.empty((0, len(names)), codes_dtype(largest), order="F"), categories, names)
    n_arrays = sum(name.startswith("rule_") for name in archive.names)
    reading = Reading([archive.read(f"rule_{number}") for number in range(n_arrays)], numbering, where)
    rows, labels, k = None, None, checks.check_integer(described["n_clusters"], "n_clusters", minimum=1)
    if "rows" in archive.names:
        codes, counts, labels = (archive.read(name) for name in ARRAYS_OF_ROWS)
        if codes.ndim != 2 or codes.shape[1] != len(names) or not counts.shape == labels.shape == codes.shape[:1]:
            raise ValueError("rows, counts and labels have other shapes than (G, M), (G,) and (G,).")
        in_use = np.unique(labels)
        if labels.dtype != np.int64 or not (len(in_use) == k and in_use[0] == 0 and in_use[-1] == k - 1):
            raise ValueError(f"the labels of rows are not 0 … {k - 1}, each in use.")
        rows = reading.rows(codes, counts)
        if not _ascend(codes):
            raise ValueError("the rows are not in lexicographic order, in which they are looked up.")
    return Model(
        str(described["method"]),
        dict(described["parameters"]),
        k,
        dict(described["versions"]),
        checks.check_choice(described["missing"], "missing", CONVENTIONS),
        numbering,
        rows,
        labels,
        bool(described["counted"]) and rows is not None,
        reading.labelling(described["rule"], k),
        device,
        checks.check_integer(described.get("unit", 1), "unit", minimum=1),
    )


def _ascend(codes: np.ndarray) -> bool:
    """Return whether each row of codes (G, M) is lexicographically above the one before."""
    before, after = codes[:-1], codes[1:]
    first = (before != after).argmax(axis=1)[:, None]  # the first column in which they differ
    return bool((np.take_along_axis(before, first, 1) < np.take_along_axis(after, first, 1)).all())


def _json_values(categories: np.ndarray, name: Any) -> list[Any]:
    """Return the label values of a clustering as a list that JSON can store.

    Raise an error if a value is neither a whole number nor a text.
    """
    values: list[Any] = categories.tolist()
    for value in values:
        if type(value) not in LABELS:
            raise TypeError(
                f"labels of clustering {name!r} include {checks.shown(value)}, but a model file holds whole numbers "
                "and texts; turn them into texts before the fit."
            )
    return values


def _categories(values: list[Any]) -> np.ndarray:
    """Return the label values of a clustering as an array, from a list that was read from JSON."""
    if not all(type(value) in LABELS for value in values):
        raise ValueError("a label is neither a whole number nor a text.")
    return label_values(values)
