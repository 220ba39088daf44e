"""Functions that workers run as tasks; their input is a chunk, or the distinct rows of one or more chunks."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpuens import contingency
from gpuens.labels.codes import first_objects_of, label_sizes, renumber_codes, unlabelled_objects
from gpuens.labels.encoding import encode_columns
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.orientation import OF_CHUNKS, refuse_draws
from gpuens.labels.rows import Rows
from gpuens.labels.weights import copies_of, integer_unit
from gpuens.reduction import Reduction, core_groups, find_rows
from gpuens.runtime import checks
from gpuens.runtime import device as devices


class Numbering(NamedTuple):
    """The numbering of the clusters that all chunks share."""

    categories: list[np.ndarray]  # label values of the clusters of each clustering
    names: list[Any]
    dtype: Any  # dtype of the codes


class Part(NamedTuple):
    """The distinct rows of one chunk, in a numbering of the clusters of this chunk only.

    The rows are always in host memory, because workers send them to each other.
    """

    codes: np.ndarray  # (g, M)
    counts: np.ndarray  # (g,) int64: the sums of the weights of the objects
    n_objects: np.ndarray  # (g,) int64
    categories: list[np.ndarray]
    kind: str  # kind of memory of the chunk (`gpuens.runtime.device.kind_of`)
    unit: int = 1  # weight of a count of 1


class Distinct(NamedTuple):
    """Distinct rows in lexicographic order, in the numbering that all chunks share."""

    codes: Any  # (g, M), in host memory, or in GPU memory (`on_gpu`)
    counts: np.ndarray  # (g,) int64


class Sampled(NamedTuple):
    """The values of the rows of a sample, and a function that computes values for rows that are not in the sample."""

    ensemble: Ensemble
    values: np.ndarray
    rule: Callable[[Rows], np.ndarray]
    device: str


def encoded(block: Any) -> Ensemble:
    """Return a chunk as an ensemble, which numbers the clusters of this chunk only."""
    checks.refuse_sparse(block)
    kind, matrix = devices.kind_of(block), devices.native(block)
    names = list(range(matrix.shape[1]))
    codes, categories = encode_columns(matrix.T, names, in_part=True)
    return Ensemble.of_codes(codes, categories, names, kind)


def own_groups(block: Any) -> Reduction:
    return core_groups(Rows(encoded(block)))


def reduce_chunk(block: Any, start: int, weights: Any = None) -> Part:
    ensemble = encoded(block)
    refuse_draws(devices.native(block).T, OF_CHUNKS)
    checks.refuse_unlabelled(unlabelled_objects(ensemble.codes_on(ensemble.device_kind)), start)
    copies, unit = (None, 1) if weights is None else _integer_counts(weights, ensemble)
    groups = core_groups(Rows(ensemble, copies))
    n_objects = groups.counts
    if weights is not None:
        n_objects = np.bincount(devices.to_host(groups.row_of), minlength=groups.n_rows)
    return Part(groups.ensemble.codes, groups.counts, n_objects, ensemble.categories, ensemble.device_kind, unit)


def _integer_counts(weights: Any, ensemble: Ensemble) -> tuple[np.ndarray, int]:
    counts, weight_unit = copies_of(weights, ensemble.n_objects, ensemble.n_clusterings)
    if (unit := integer_unit(weight_unit)) is None:
        raise ValueError(
            "sample_weight has fractions, but labels in chunks need whole numbers of objects as weights; scale and "
            "round them."
        )
    return counts, unit


def described(part: Part) -> tuple[list[np.ndarray], str, float, int, int]:
    """Return a chunk's label values, kind of memory, bytes left on its GPU, sum of counts, and unit of the counts."""
    left = devices.memory_budget("cuda") if part.kind == "cuda" else math.inf
    return part.categories, part.kind, left, int(part.counts.sum()), part.unit


def count_rows(rows: Distinct) -> int:
    return len(rows.codes)


def count_objects(rows: Distinct) -> int:
    return int(rows.counts.sum())


def count_unlabelled(part: Part, dtype: np.dtype, tables: list[np.ndarray]) -> int:
    """Return the number of objects of a chunk that have no label in the numbering that all chunks share."""
    unlabelled: np.ndarray = unlabelled_objects(renumber_codes(part.codes, dtype, tables))
    return int(part.n_objects[unlabelled].sum())


def renumber(part: Part, dtype: np.dtype, tables: list[np.ndarray], unit: int) -> Distinct:
    """Return the rows of a chunk in the numbering and in the unit of weights that all chunks share."""
    codes, of_part = renumber_codes(part.codes, dtype, tables), part.counts * (part.unit // unit)
    if not lose_labels(tables):  # the rows stay sorted, because both numberings ascend with the label value
        return Distinct(codes, of_part)
    codes, row_of = np.unique(codes, axis=0, return_inverse=True)
    counts = np.zeros(len(codes), dtype=np.int64)
    np.add.at(counts, row_of.ravel(), of_part)
    return Distinct(np.asfortranarray(codes), counts)


def lose_labels(tables: list[np.ndarray]) -> bool:
    """Return whether the shared numbering treats any labels of a chunk, such as the text "-1", as missing."""
    return any(bool((table < 0).any()) for table in tables)


def merge(parts: list[Distinct], numbering: Numbering, device: str) -> Distinct:
    if len(parts) == 1:
        return parts[0]
    codes, counts = (np.concatenate(of_parts) for of_parts in zip(*parts, strict=True))
    try:
        groups = core_groups(_to_rows(codes, counts, numbering, device))
    except MemoryError:  # includes CuPy's error; then rows are merged in host memory, which is larger
        if device == "cpu":
            raise
        groups = core_groups(_to_rows(codes, counts, numbering))
    return Distinct(groups.ensemble.codes, groups.counts)


def _to_rows(codes: Any, counts: np.ndarray | None, numbering: Any, device: str = "cpu") -> Rows:
    """Return codes as `Rows` in the numbering that all chunks share; if ``counts`` is None, each row counts once."""
    codes = devices.namespace(devices.kind_of(codes)).asfortranarray(codes)
    ensemble = Ensemble.of_codes(codes, numbering.categories, numbering.names)
    if counts is None:
        counts = np.ones(len(codes), dtype=np.int64)
    return Rows.of(ensemble, counts, devices.resolve(device, "cpu"))


def _distinct_rows(block: Any, dtype: np.dtype, tables: list[np.ndarray]) -> tuple[Any, Reduction]:
    """Return the distinct rows of a chunk in the shared numbering, and the reduction that expands values of them."""
    groups = own_groups(block)
    return renumber_codes(groups.rows.codes, dtype, tables), groups


def _find_places(rows: Any, groups: np.ndarray) -> np.ndarray:
    """Find the positions of distinct rows among groups on the device of the rows; return them in host memory."""
    kind = devices.kind_of(rows)
    return devices.to_host(find_rows(rows, devices.move(groups, kind), device=kind))


def take_rows(block: Any, dtype: np.dtype, tables: list[np.ndarray], objects: np.ndarray) -> np.ndarray:
    """Return the rows of the ``objects`` objects of a chunk, in host memory."""
    ensemble = encoded(block)
    xp = devices.namespace(ensemble.device_kind)
    codes = ensemble.codes_on(ensemble.device_kind)[xp.asarray(objects)]
    return devices.to_host(renumber_codes(codes, dtype, tables))


def values_by_sample(block: Any, dtype: np.dtype, tables: list[np.ndarray], sampled: Sampled) -> Any:
    """Return the value of each object's row; if the row is not in the sample, compute its value by a function."""
    rows, groups = _distinct_rows(block, dtype, tables)
    places = _find_places(rows, sampled.ensemble.codes)
    values, unsampled = sampled.values[places], np.flatnonzero(places < 0)
    if len(unsampled):
        unsampled_rows = devices.to_host(rows)[unsampled]
        values[unsampled] = sampled.rule(_to_rows(unsampled_rows, None, sampled.ensemble, sampled.device))
    return groups.look_up(values)


def apply_to_objects(
    block: Any,
    dtype: np.dtype,
    tables: list[np.ndarray],
    function: Callable[[Rows], np.ndarray],
    numbering: Numbering,
    device: str,
) -> Any:
    """Apply a function to the distinct rows of a chunk, and return the value of each object's row."""
    rows, groups = _distinct_rows(block, dtype, tables)
    return groups.look_up(function(_to_rows(rows, None, numbering, device)))


def apply_to_piece(function: Callable[..., Any], device: str, piece: Distinct, numbering: Numbering, *args: Any) -> Any:
    """Return the result of a function of a piece; rows are returned in host memory, because the caller has no GPU."""
    result = function(_to_rows(*piece, numbering, device), *args)
    return _to_rows(result.ensemble.codes, result.counts, numbering) if isinstance(result, Rows) else result


def on_gpu(piece: Distinct) -> Distinct:
    """Return the rows of a piece in GPU memory, so that many functions can be applied to them without further copies.

    If less than three times their size would be left for the work on them, the rows stay in host memory, from which
    each function copies them.
    """
    if 4 * piece.codes.nbytes > devices.memory_budget("cuda"):
        return piece
    return piece._replace(codes=devices.move(piece.codes.T, "cuda").T)


def look_up(block: Any, dtype: np.dtype, tables: list[np.ndarray], groups: np.ndarray, values: np.ndarray) -> Any:
    """Return, for each object of a chunk, the row of ``values`` that belongs to the core group of the object."""
    rows, groups_of_chunk = _distinct_rows(block, dtype, tables)
    return groups_of_chunk.look_up(values[_find_places(rows, groups)])


def tally(labels: Any, start: int, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of objects (k,) of a chunk in each cluster, and the first object (k,), counted from all chunks.

    The chunk begins with the object ``start``; the first object of a cluster without objects is `checks.LARGEST`.
    """
    sizes, first = label_sizes(labels, n_clusters), first_objects_of(labels, n_clusters)
    return sizes, np.where(sizes > 0, start + first, checks.LARGEST)


def learn(estimator: Any, parts: Any, rows: Distinct, numbering: Numbering) -> tuple[Any, list[str]]:
    """Return the partition of rows found on the GPU of this worker, with labels in host memory, and the warnings."""

    def work() -> Any:
        learned = estimator.learn(parts, _to_rows(*rows, numbering, "cuda"))
        learned.partition.labels = devices.to_host(learned.partition.labels)
        return learned

    with checks.recorded() as warned:
        learned = estimator.within_memory(work, *rows.codes.shape)
    return learned, list(warned)


def count_intersections(rows: Distinct, numbering: Numbering, layout: str) -> Any:
    return contingency.intersections(_to_rows(*rows, numbering), layout=layout)


def add(parts: list[Any]) -> Any:
    return sum(parts[1:], start=parts[0])
