"""Rules that label rows that did not occur in the fit, stored in a model file as JSON and arrays.

    rule ─▶ {"is": its kind, field: value or number of an array, …} and a list of arrays ─▶ an equal rule

Only rules of the kinds listed in this file are read. Each kind declares the type, the shape and the range of its
arrays, what must hold between them, and the labels that its rules give. Reading a file therefore runs no code of the
file, and whatever the numbers of the file are, no loop reads outside an array, and each label that is predicted is one
of 0 … n_clusters - 1.
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

LARGEST_REAL = 1e150  # a sum of squares of such numbers is finite


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

    def array(self, number: Any, dtype: type, dims: str, sizes: dict[str, int]) -> np.ndarray:
        """Return an array; raise an error if its dtype, or the size of a dimension, is wrong, or if it is empty.

        ``dims`` has a letter for each dimension, or 1 for the size 1. ``sizes`` are the sizes of the letters that are
        already known.
        """
        array: np.ndarray = self.arrays[number]
        if (
            not np.issubdtype(array.dtype, dtype)
            or not array.dtype.isnative
            or array.ndim != len(dims)
            or not array.size
        ):
            raise ValueError(
                f"array {number} has shape {array.shape} and dtype {array.dtype}, but must have {len(dims)} "
                f"dimension(s) of {dtype.__name__}."
            )
        for dim, size in zip(dims, array.shape, strict=True):
            expected = 1 if dim == "1" else sizes.setdefault(dim, size)
            if expected != size:
                raise ValueError(f"array {number} has shape {array.shape}, but {dim} is {expected}.")
        return array

    def sizes(self) -> dict[str, int]:
        return {"c": self.numbering.n_clusters, "m": self.numbering.n_clusterings}

    def rule(self, described: Any) -> Any:
        """Return the rule that `Writing.rule` described as JSON."""
        name, sizes = described["is"], self.sizes()
        kind = _KINDS[name]
        values = {field: how.read(described[field], self, sizes) for field, how in kind.fields.items()}
        rule = kind.make(self, **values)
        if not kind.is_sound(rule):
            raise ValueError(f"the parts of a rule of the kind {name!r} do not fit each other.")
        return rule

    def labelling(self, described: Any, n_labels: int) -> Any:
        """Return the rule that `Writing.rule` described; raise an error if it may give other labels than 0 … n - 1."""
        rule = self.rule(described)
        if (labels := labels_of(rule)).min() < 0 or labels.max() >= n_labels:
            raise ValueError(f"the rule gives a label that is not one of 0 … {n_labels - 1}.")
        return rule

    def rows(self, codes: np.ndarray, counts: np.ndarray) -> Rows:
        """Return label rows with the given codes; raise an error if a code is not the number of a cluster."""
        numbering = self.numbering
        sizes = np.diff(numbering.offsets)
        missing = np.iinfo(codes.dtype).max if codes.dtype.kind == "u" else -1
        numbers_clusters = codes.dtype == codes_dtype(int(sizes.max())) and ((codes < sizes) | (codes == missing)).all()
        if not numbers_clusters:
            raise ValueError("a row has an unknown cluster.")
        if counts.dtype != np.int64 or (counts < 1).any() or counts.sum(dtype=np.float64) >= 2.0**63:
            raise ValueError("a row has an impossible number of objects.")
        rows = Ensemble.of_codes(np.asfortranarray(codes), numbering.categories, numbering.names)
        return Rows.of(rows, counts.astype(np.int64), self.device)


# --- fields -----------------------------------------------------------------------------------------------------------


def _array(
    dtype: type, dims: str, sound: Callable[[np.ndarray, dict[str, int]], bool], optional: bool = False
) -> Field:
    """Return a field that is an array, for which ``sound`` must hold.

    ``dims`` has a letter for each dimension. Dimensions with the same letter must have the same size in all arrays of a
    rule. The size is N_c for the letter c, M for the letter m, and that of a field `_size` for its letter.
    """

    def write(value: Any, writing: Writing) -> Any:
        return None if optional and value is None else writing.array(value)

    def read(number: Any, reading: Reading, sizes: dict[str, int]) -> Any:
        if optional and number is None:
            return None
        values = reading.array(number, dtype, dims, sizes)
        if not sound(values, sizes):
            raise ValueError(f"array {number} has numbers beyond its range.")
        return values

    return Field(write, read)


def _tuples(*fields: Field) -> Field:
    """Return a field that is a tuple of tuples; each inner tuple has a value for each of ``fields``."""

    def write(value: Any, writing: Writing) -> Any:
        return [[how.write(part, writing) for how, part in zip(fields, parts, strict=True)] for parts in value]

    def read(described: Any, reading: Reading, sizes: dict[str, int]) -> Any:
        rows = []
        for parts in described:
            sizes_of_parts = reading.sizes()
            rows.append(tuple(how.read(part, reading, sizes_of_parts) for how, part in zip(fields, parts, strict=True)))
        return tuple(rows)

    return Field(write, read)


def _reals(dims: str, smallest: float = -LARGEST_REAL) -> Field:
    """Return a field of real numbers that are not below ``smallest``."""
    return _array(np.float64, dims, lambda values, _: bool(((values >= smallest) & (values <= LARGEST_REAL)).all()))


def _counts(dims: str) -> Field:
    """Return a field of whole numbers from 0 on."""
    return _array(np.int64, dims, lambda values, _: bool(values.min() >= 0))


def _labels(
    dims: str, n: str | None = None, *, smallest: int = 0, distinct: bool = False, optional: bool = False
) -> Field:
    """Return a field of labels from ``smallest`` on, below the size of the letter ``n``."""

    def sound(values: np.ndarray, sizes: dict[str, int]) -> bool:
        below = n is None or bool(values.max() < sizes[n])
        return bool(values.min() >= smallest) and below and not (distinct and len(np.unique(values)) < values.size)

    return _array(np.int64, dims, sound, optional)


def _size(letter: str, at_most: str) -> Field:
    """Return a field that is a whole number from 1 to the size of a letter: the size of ``letter`` in later fields."""

    def read(value: Any, _: Reading, sizes: dict[str, int]) -> int:
        sizes[letter] = checks.check_integer(value, "a number", minimum=1, maximum=sizes[at_most])
        return sizes[letter]

    return Field(lambda value, _: int(value), read)


WHOLE = Field(lambda value, _: int(value), lambda value, *_: checks.check_integer(value, "a number", minimum=0))
REAL = Field(lambda value, _: float(value), lambda value, *_: checks.check_number(value, "a number"))
AVERAGE = Field(lambda value, _: str(value), lambda value, *_: checks.check_choice(value, "by", ("mean", "sum")))
RULE = Field(lambda value, writing: writing.rule(value), lambda value, reading, _: reading.rule(value))


# --- kinds of rules ---------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A kind of rule: its class, its fields, and functions that convert a rule to the values of its fields and back."""

    cls: type
    fields: dict[str, Field]
    labels: Callable[[Any], np.ndarray]  # the labels that a rule may give, or the numbers of the columns of its sums
    is_sound: Callable[[Any], bool]  # whether the values of the fields fit each other
    values: Callable[[Any], dict[str, Any]]
    make: Callable[..., Any]


def labels_of(rule: Any) -> np.ndarray:
    """Return the labels that a rule may give, or the numbers of the columns of the sums that it computes."""
    return _KINDS[_NAMES[type(rule)]].labels(rule)


def _kind(
    cls: type, labels: Callable[[Any], np.ndarray], is_sound: Callable[[Any], bool] = lambda _: True, **fields: Field
) -> Kind:
    return Kind(cls, fields, labels, is_sound, vars, lambda _, **values: cls(**values))


def _is_numbering(rule: Numbered) -> bool:
    """Return whether each label that the inner rule gives has a new number that is in use."""
    labels = labels_of(rule.rule)
    return bool(labels.max() < len(rule.number) and rule.number[labels].max() < rule.n_labels)


def _has_columns(sums: Any, n: int, n_further: int = 0) -> bool:
    """Return whether a rule computes sums for n columns, or for up to ``n_further`` further ones."""
    return n <= len(labels_of(sums)) <= n + n_further


def _values_of_common_sums(rule: CommonSums) -> dict[str, Any]:
    neighborhoods = rule.near
    return {
        **vars(neighborhoods),
        "codes": neighborhoods.codes,
        "blocks": neighborhoods.blocks.values,
        "members": rule.members,
    }


def _common_sums(
    reading: Reading,
    *,
    codes: np.ndarray,
    counts: np.ndarray,
    blocks: np.ndarray,
    threshold: float,
    members: np.ndarray,
) -> CommonSums:
    sizes = np.diff(reading.numbering.offsets)
    if len(blocks) != (sizes**2).sum():
        raise ValueError("the similarities of clusters do not fit the clusterings.")
    matrices = [part.reshape(k, k) for part, k in zip(np.split(blocks, np.cumsum(sizes**2)[:-1]), sizes, strict=True)]
    return CommonSums(Neighborhoods(reading.rows(codes, counts), Blocks(matrices), threshold), members)


_KINDS = {
    "numbered": _kind(
        Numbered,
        lambda rule: rule.number[labels_of(rule.rule)],
        _is_numbering,
        rule=RULE,
        number=_labels("j", "j", distinct=True),
        n_labels=WHOLE,
    ),
    "nearest": _kind(
        Nearest,
        lambda rule: np.array([*rule.number, *(label for *_, label in rule.apart)]),
        cost=_reals("cj"),
        const=_reals("j"),
        number=_labels("j", distinct=True),
        apart=_tuples(_reals("c1"), _reals("1"), REAL, WHOLE),
    ),
    "nearest-center": _kind(
        NearestCenter,
        lambda rule: rule.number,
        table=_reals("cd"),
        centers=_reals("jd"),
        towards=_reals("cj"),
        number=_labels("j", distinct=True),
    ),
    "first-choice": _kind(
        FirstChoice,
        lambda rule: np.arange(rule.n_clusters) if rule.in_use is None else rule.in_use,
        n_clusters=_size("n", at_most="c"),
        clusters=_labels("c", "n", smallest=checks.MISSING),  # a base cluster without objects has no meta-cluster
        in_use=_labels("j", "n", distinct=True, optional=True),
    ),
    "largest-membership": _kind(
        LargestMembership,
        lambda rule: np.arange(rule.n_clusters),
        table=_reals("cj", smallest=0.0),
        n_clusters=_size("n", at_most="j"),
    ),
    "most-similar": _kind(
        MostSimilar,
        lambda rule: np.arange(len(rule.members)),
        lambda rule: rule.members.min() > 0 and _has_columns(rule.sums, len(rule.members), n_further=1),
        sums=RULE,
        members=_reals("j"),
        by=AVERAGE,
    ),
    "looked-up": _kind(LookedUp, lambda rule: np.arange(rule.table.shape[1]), table=_reals("cj")),
    "ratios": _kind(
        Ratios,
        lambda rule: np.arange(len(rule.members)),
        lambda rule: _has_columns(rule.together, len(rule.members)),
        together=RULE,
        both=_reals("mj", smallest=0.0),
        members=_reals("j", smallest=0.0),
    ),
    "summed-up": _kind(
        SummedUp,
        lambda rule: labels_of(rule.terms[0][2]),
        lambda rule: len({len(labels_of(sums)) for *_, sums in rule.terms}) == 1 and all(s for _, s, _ in rule.terms),
        terms=_tuples(REAL, REAL, RULE),
    ),
    "common-sums": Kind(
        CommonSums,
        {
            "codes": _array(np.unsignedinteger, "gm", lambda *_: True),
            "counts": _counts("g"),
            "blocks": _reals("b", smallest=0.0),
            "threshold": REAL,
            "members": _counts("gj"),
        },
        lambda rule: np.arange(rule.members.shape[1]),
        lambda rule: bool((rule.members <= rule.near.counts[:, None] * float(rule.near.n_objects)).all()),
        _values_of_common_sums,
        _common_sums,
    ),
}
_NAMES = {kind.cls: name for name, kind in _KINDS.items()}
