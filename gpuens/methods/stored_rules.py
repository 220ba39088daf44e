"""Rules that label rows that did not occur in the fit, stored in a model file as JSON and arrays.

    rule ─▶ {"is": its kind, field: value or number of an array, …} and a list of arrays ─▶ an equal rule

Only rules of the kinds listed in this file are read, and the types and shapes of their arrays are checked. Reading a
file therefore runs no code of the file, and no number of the file makes a compiled loop read outside an array.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpuens.labels.codes import codes_dtype
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.rows import Numbered, Rows
from gpuens.partition.base import MostSimilar
from gpuens.partition.label_kmeans import Nearest
from gpuens.partition.meta_clustering import FirstChoice
from gpuens.partition.soft_correspondence import LargestMembership
from gpuens.partition.transfer_cut import NearestCenter
from gpuens.runtime import checks
from gpuens.runtime import device as devices
from gpuens.similarity.base import LookedUp, SummedUp
from gpuens.similarity.blocks import Blocks
from gpuens.similarity.neighborhood import CommonSums, Neighborhoods
from gpuens.similarity.observed import Ratios


class Field(NamedTuple):
    """The functions that write a field of a rule to a file and read it back."""

    write: Callable[[Any, "Writing"], Any]  # value of the field → JSON
    read: Callable[[Any, "Reading", dict[str, int]], Any]  # JSON and the sizes of dimensions → value of the field


class Writing:
    """The list of the arrays of all rules that are written to a file."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []

    def array(self, values: Any) -> int:
        """Add an array to the list, and return its position in the list."""
        self.arrays.append(np.asarray(devices.to_host(values)))
        return len(self.arrays) - 1

    def rule(self, rule: Any) -> dict[str, Any]:
        """Return the JSON of a rule, and add its arrays to the list; raise an error for rules of other packages."""
        name = _NAMES.get(type(rule))
        if name is None:
            raise TypeError(
                f"the method labels new objects by a {type(rule).__name__}, which a model file cannot hold; pickle the "
                "estimator instead."
            )
        kind = _KINDS[name]
        values = kind.values(rule)
        return {"is": name, **{field: how.write(values[field], self) for field, how in kind.fields.items()}}


class Reading:
    """The arrays of a file, and the numbering of clusters that its rules use."""

    def __init__(self, arrays: list[np.ndarray], numbering: Ensemble, device: str) -> None:
        self.arrays, self.numbering, self.device = arrays, numbering, device

    def array(self, number: Any, kinds: str, dims: str, sizes: dict[str, int]) -> np.ndarray:
        """Return an array; raise an error if its dtype is not in ``kinds`` or the size of a dimension is wrong.

        ``dims`` has a letter for each dimension. ``sizes`` are the sizes of the letters that are already known.
        """
        found: np.ndarray = self.arrays[number]
        if found.dtype.kind not in kinds or found.ndim != len(dims):
            raise ValueError(
                f"array {number} is {found.ndim}-D of {found.dtype}, but must have {len(dims)} dimensions."
            )
        for dim, size in zip(dims, found.shape, strict=True):
            if sizes.setdefault(dim, size) != size:
                raise ValueError(f"array {number} has shape {found.shape}, but {dim} is {sizes[dim]}.")
        return found

    def sizes(self) -> dict[str, int]:
        return {"c": self.numbering.n_clusters, "m": self.numbering.n_clusterings}

    def rule(self, described: Any) -> Any:
        """Return the rule that `Writing.rule` described as JSON."""
        kind, sizes = _KINDS[described["is"]], self.sizes()
        values = {field: how.read(described[field], self, sizes) for field, how in kind.fields.items()}
        return kind.make(self, **values)

    def rows(self, codes: np.ndarray, counts: np.ndarray) -> Rows:
        """Return label rows with the given codes; raise an error if a code is not the number of a cluster."""
        numbering = self.numbering
        sizes = np.diff(numbering.offsets)
        missing = np.iinfo(codes.dtype).max if codes.dtype.kind == "u" else -1
        there = codes.dtype == codes_dtype(int(sizes.max())) and ((codes < sizes) | (codes == missing)).all()
        if not there or (counts < 1).any():
            raise ValueError("a row has an unknown cluster.")
        rows = Ensemble.of_codes(np.asfortranarray(codes), numbering.categories, numbering.names)
        return Rows.of(rows, counts.astype(np.int64), self.device)


# --- fields -----------------------------------------------------------------------------------------------------------


def _array(kinds: str, dims: str, *, optional: bool = False) -> Field:
    """Return a field that is an array.

    ``dims`` has a letter for each dimension. Dimensions with the same letter must have the same size in all arrays of a
    rule. The size is N_c for the letter c, and M for the letter m.
    """

    def write(value: Any, to: Writing) -> Any:
        return None if optional and value is None else to.array(value)

    def read(number: Any, of: Reading, sizes: dict[str, int]) -> Any:
        return None if optional and number is None else of.array(number, kinds, dims, sizes)

    return Field(write, read)


def _several(*fields: Field) -> Field:
    """Return a field that is a tuple of tuples; each inner tuple has a value for each of ``fields``."""

    def write(value: Any, to: Writing) -> Any:
        return [[how.write(part, to) for how, part in zip(fields, parts, strict=True)] for parts in value]

    def read(described: Any, of: Reading, sizes: dict[str, int]) -> Any:
        found = []
        for parts in described:
            own = of.sizes()
            found.append(tuple(how.read(part, of, own) for how, part in zip(fields, parts, strict=True)))
        return tuple(found)

    return Field(write, read)


def _reals(dims: str) -> Field:
    return _array("iuf", dims)


def _whole_numbers(dims: str, *, optional: bool = False) -> Field:
    return _array("i", dims, optional=optional)


WHOLE = Field(lambda value, _: int(value), lambda value, *_: checks.check_integer(value, "a number", minimum=0))
REAL = Field(lambda value, _: float(value), lambda value, *_: checks.check_number(value, "a number"))
TEXT = Field(lambda value, _: str(value), lambda value, *_: str(value))
RULE = Field(lambda value, to: to.rule(value), lambda value, of, _: of.rule(value))


# --- kinds of rules ---------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A kind of rule: its class, its fields, and functions that convert a rule to the values of its fields and back."""

    of: type
    fields: dict[str, Field]
    values: Callable[[Any], dict[str, Any]]
    make: Callable[..., Any]


def _kind(of: type, **fields: Field) -> Kind:
    return Kind(of, fields, vars, lambda _, **values: of(**values))


def _of_common_sums(rule: CommonSums) -> dict[str, Any]:
    near = rule.near
    return {**vars(near), "codes": near.codes, "blocks": near.blocks.values, "members": rule.members}


def _common_sums(
    of: Reading, *, codes: np.ndarray, counts: np.ndarray, blocks: np.ndarray, threshold: float, members: np.ndarray
) -> CommonSums:
    sizes = np.diff(of.numbering.offsets)
    if len(blocks) != (sizes**2).sum():
        raise ValueError("the similarities of clusters do not fit the clusterings.")
    matrices = [part.reshape(k, k) for part, k in zip(np.split(blocks, np.cumsum(sizes**2)[:-1]), sizes, strict=True)]
    return CommonSums(Neighborhoods(of.rows(codes, counts), Blocks(matrices), threshold), members)


_KINDS = {
    "numbered": _kind(Numbered, rule=RULE, number=_whole_numbers("j"), n_labels=WHOLE),
    "nearest": _kind(
        Nearest,
        cost=_reals("cj"),
        const=_reals("j"),
        number=_whole_numbers("j"),
        apart=_several(_reals("cj"), _reals("j"), REAL, WHOLE),
    ),
    "nearest-center": _kind(
        NearestCenter, table=_reals("cd"), centers=_reals("jd"), towards=_reals("cj"), number=_whole_numbers("j")
    ),
    "first-choice": _kind(
        FirstChoice, clusters=_whole_numbers("c"), n_clusters=WHOLE, in_use=_whole_numbers("j", optional=True)
    ),
    "largest-membership": _kind(LargestMembership, table=_reals("cj"), n_clusters=WHOLE),
    "most-similar": _kind(MostSimilar, sums=RULE, members=_reals("j"), by=TEXT),
    "looked-up": _kind(LookedUp, table=_reals("cj")),
    "ratios": _kind(Ratios, together=RULE, both=_reals("mj"), members=_reals("j")),
    "summed-up": _kind(SummedUp, terms=_several(REAL, REAL, RULE)),
    "common-sums": Kind(
        CommonSums,
        {
            "codes": _array("u", "gm"),
            "counts": _whole_numbers("g"),
            "blocks": _reals("b"),
            "threshold": REAL,
            "members": _whole_numbers("gj"),
        },
        _of_common_sums,
        _common_sums,
    ),
}
_NAMES = {kind.of: name for name, kind in _KINDS.items()}
