"""What a worker does with a chunk, or with the distinct rows of some chunks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gpuens import checks, contingency
from gpuens import device as devices
from gpuens.compiled import njit
from gpuens.ensemble import Ensemble, _encode, _missing_everywhere
from gpuens.reduction import Reduction, core_groups


class Numbering(NamedTuple):
    """How the clusters of all chunks are numbered."""

    categories: list[np.ndarray]  # the label value of each cluster, clustering by clustering
    names: list
    dtype: Any  # of the codes


class Part(NamedTuple):
    """The distinct rows of one chunk, with the chunk's own numbering of the clusters."""

    codes: np.ndarray  # (g, M)
    counts: np.ndarray  # (g,) int64
    categories: list[np.ndarray]


class Rows(NamedTuple):
    """Distinct rows in lexicographic order, with the numbering of all chunks."""

    codes: np.ndarray  # (g, M)
    counts: np.ndarray  # (g,) int64


class Sampled(NamedTuple):
    """What is known of a sample's rows, and a function that gives the same for other rows."""

    reduced: Reduction
    values: np.ndarray
    others: Callable[[Ensemble], np.ndarray]


def _encoded(block: Any) -> Ensemble:
    """Return a chunk as an ensemble with a numbering of its own."""
    checks.refuse_sparse(block)
    kind, matrix = devices.kind_of(block), devices.native(block)
    names = list(range(matrix.shape[1]))
    codes, categories = _encode([matrix[:, m] for m in names], names)
    return Ensemble.of_codes(codes, categories, names, kind)


def own_groups(block: Any) -> Reduction:
    ensemble = _encoded(block)
    return core_groups(ensemble, device=ensemble.device_kind)


def reduce_chunk(block: Any, start: int) -> Part:
    ensemble = _encoded(block)
    checks.refuse_unlabelled(_missing_everywhere(ensemble.codes_on(ensemble.device_kind)), start)
    groups = core_groups(ensemble, device=ensemble.device_kind)
    return Part(groups.ensemble.codes, groups.weights, ensemble.categories)


def categories_of(part: Part) -> list[np.ndarray]:
    return part.categories


def count_rows(rows: Rows) -> int:
    return len(rows.codes)


def count_objects(rows: Rows) -> int:
    return int(rows.counts.sum())


def _renumbered(codes: Any, dtype: np.dtype, tables: list[np.ndarray]) -> Any:
    """Return a chunk's codes in the numbering of all chunks."""
    xp = devices.namespace(devices.kind_of(codes))
    found = xp.empty(codes.shape, dtype=dtype, order="F")
    for m, table in enumerate(tables):
        extended = xp.asarray(np.append(table, np.iinfo(dtype).max).astype(dtype))
        found[:, m] = extended[np.minimum(codes[:, m], codes.dtype.type(min(len(table), np.iinfo(codes.dtype).max)))]
    return found


def renumber(part: Part, dtype: np.dtype, tables: list[np.ndarray]) -> Rows:
    return Rows(_renumbered(part.codes, dtype, tables), part.counts)  # in order still: values are numbered by value


def merge(parts: list[Rows], numbering: Numbering) -> Rows:
    if len(parts) == 1:
        return parts[0]
    codes = np.concatenate([part.codes for part in parts])
    ensemble = Ensemble.of_codes(np.asfortranarray(codes), numbering.categories, numbering.names)
    groups = core_groups(ensemble, np.concatenate([part.counts for part in parts]))
    return Rows(groups.ensemble.codes, groups.weights)


def _distinct(block: Any, dtype: np.dtype, tables: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of a chunk, numbered as those of all chunks, and the one of each object (host)."""
    own = own_groups(block)
    return _renumbered(own.ensemble.codes, dtype, tables), devices.to_host(own.membership)


def _places(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the last of other rows, which are in lexicographic order, that does not come after each row; 0 if none."""
    places = np.empty(len(rows), dtype=np.int64)
    rows, others = np.ascontiguousarray(rows), np.ascontiguousarray(others)
    devices.over_ranges(lambda a, b: _search(rows[a:b], others, places[a:b]), len(rows), grain=4096)
    return places


def take_rows(block: Any, dtype: np.dtype, tables: list[np.ndarray], chosen: np.ndarray) -> np.ndarray:
    """Return the rows of some objects of a chunk."""
    ensemble = _encoded(block)
    xp = devices.namespace(ensemble.device_kind)
    codes = ensemble.codes_on(ensemble.device_kind)[xp.asarray(chosen)]
    return devices.to_host(_renumbered(codes, dtype, tables))


def of_sampled(block: Any, dtype: np.dtype, tables: list[np.ndarray], sampled: Sampled) -> Any:
    """Return what is known of each object's row if it is in a sample, and what a function makes of it elsewhere."""
    rows, membership = _distinct(block, dtype, tables)
    known = sampled.reduced.ensemble
    places = _places(rows, known.codes)
    found = sampled.values[places]
    other = np.flatnonzero((known.codes[places] != rows).any(axis=1))
    if len(other):
        found[other] = sampled.others(Ensemble.of_codes(rows[other].copy(order="F"), known.categories, known.names))
    return devices.move(found[membership], devices.kind_of(block))


def of_own_rows(
    block: Any, dtype: np.dtype, tables: list[np.ndarray], function: Callable[[Ensemble], np.ndarray], own: Numbering
) -> Any:
    """Return what a function makes of each object's row."""
    rows, membership = _distinct(block, dtype, tables)
    ensemble = Ensemble.of_codes(np.asfortranarray(rows), own.categories, own.names)
    return devices.move(function(ensemble)[membership], devices.kind_of(block))


def of_piece(function: Callable, device: str, piece: Rows, numbering: Numbering, *given: Any) -> Any:
    ensemble = Ensemble.of_codes(np.asfortranarray(piece.codes), numbering.categories, numbering.names)
    return function(ensemble, piece.counts, *given, device=devices.resolve(device, "cpu"))


def label_others(estimator: Any, reduced: Reduction, labels: np.ndarray, device: str, others: Ensemble) -> np.ndarray:
    return estimator._label_others(replace(reduced, others=others), labels, device)


def look_up(block: Any, dtype: np.dtype, tables: list[np.ndarray], groups: np.ndarray, values: np.ndarray) -> Any:
    """Return what belongs to the core group of each object of a chunk."""
    rows, membership = _distinct(block, dtype, tables)
    return devices.move(values[_places(rows, groups)][membership], devices.kind_of(block))


def count_intersections(rows: Rows, numbering: Numbering, layout: str) -> Any:
    ensemble = Ensemble.of_codes(rows.codes, numbering.categories, numbering.names)
    return contingency.intersections(ensemble, rows.counts, layout=layout)


def add(parts: list) -> Any:
    return sum(parts[1:], start=parts[0])


@njit(cache=True, nogil=True)
def _search(rows, groups, places):
    """Write down the last of the groups, in lexicographic order, that does not come after each row; 0 if none."""
    for i in range(len(rows)):
        low, high = 0, len(groups)
        while high - low > 1:
            middle = (low + high) // 2
            m = 0
            while m < rows.shape[1] and rows[i, m] == groups[middle, m]:
                m += 1
            if m == rows.shape[1] or rows[i, m] > groups[middle, m]:
                low = middle
            else:
                high = middle
        places[i] = low
