"""Vectors for compiled functions: they add up rows of tables in registers.

A table has one row per cluster and one column per lane; a lane is a query, or a row with which queries are compared.
There are `LANES` lanes of integers or `FLOAT_LANES` lanes of floats.

    nothing(table)                               a vector of zeros
    plus(total, table, i)                        total + row i of the table
    plus_times(total, table, i, factor)          total + factor · row i of the table
    plus_where(total, labels, i, label, unit)    total + unit in each lane where row i of ``labels`` is the label
    store(total, out, i)                         write total to row i of ``out``
    at_least(out, i, limit)                      the lanes of row i that reach a limit
    reaching(out, i, limits, l)                  the lanes of row i that reach row l of ``limits``

The loops around these calls are plain loops. LLVM keeps a vector in registers of any width that the processor has,
which it cannot do with an array. Indices are not checked.
"""

from typing import Any

import numpy as np
from llvmlite import ir

from gpuens.runtime.compiled import extending, intrinsic, njit, types

LANES = 64
FLOAT_LANES = 16
TAKEN = 16  # length of the sorted list of scores into which one instruction inserts a score


class Vector(types.Type):
    """The type of a row of a table."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.lanes = FLOAT_LANES if isinstance(dtype, types.Float) else LANES
        super().__init__(f"Vector({dtype}, {self.lanes})")


@extending.register_model(Vector)
class _Model(extending.models.PrimitiveModel):
    def __init__(self, manager: Any, of: Vector) -> None:
        super().__init__(manager, of, ir.VectorType(manager.lookup(of.dtype).get_value_type(), of.lanes))


def _row(context: Any, builder: Any, array_type: Any, array: Any, index: Any, vector: Vector) -> Any:
    """Return a pointer to a row of an array (n, lanes)."""
    data = context.make_array(array_type)(context, builder, array).data
    first = builder.gep(data, [builder.mul(index, ir.Constant(index.type, vector.lanes))])
    return builder.bitcast(first, context.get_value_type(vector).as_pointer())


def _loaded(context: Any, builder: Any, table_type: Any, table: Any, index: Any, vector: Vector) -> Any:
    row = builder.load(_row(context, builder, table_type, table, index, vector))
    row.align = 1  # bytes; NumPy guarantees no larger alignment
    return row


def _all_lanes(builder: Any, value: Any, kind: Any) -> Any:
    unknown = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(unknown, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, unknown, ir.Constant(ir.VectorType(ir.IntType(32), kind.count), None))


@intrinsic
def nothing(typing: Any, table: Any) -> Any:
    """Return a vector of zeros with the type of a table's rows."""
    vector = Vector(table.dtype)
    return vector(table), lambda context, *_: ir.Constant(context.get_value_type(vector), None)


@intrinsic
def plus(typing: Any, vector: Any, table: Any, index: Any) -> Any:
    """Return a vector plus a row of a table of whole numbers; sums wrap around."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.add(args[0], _loaded(context, builder, table, args[1], args[2], vector))

    return vector(vector, table, types.intp), generate


@intrinsic
def plus_vector(typing: Any, one: Any, other: Any) -> Any:
    """Return the sum of two vectors of whole numbers, which wraps around."""
    return one(one, other), lambda context, builder, signature, args: builder.add(*args)


@intrinsic
def plus_times(typing: Any, vector: Any, table: Any, index: Any, factor: Any) -> Any:
    """Return a vector plus ``factor`` times a row of a table of real numbers, rounded once or twice."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _loaded(context, builder, table, args[1], args[2], vector)
        product = builder.fmul(_all_lanes(builder, args[3], row.type), row, flags=["contract"])
        return builder.fadd(product, args[0], flags=["contract"])

    return vector(vector, table, types.intp, vector.dtype), generate


@intrinsic
def plus_where(typing: Any, vector: Any, labels: Any, index: Any, label: Any, unit: Any) -> Any:
    """Return a vector plus ``unit`` in each lane where a row of ``labels``, an array (n, lanes), is ``label``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        own = _loaded(context, builder, labels, args[1], args[2], Vector(labels.dtype))
        equal = builder.icmp_unsigned("==", own, _all_lanes(builder, args[3], own.type))
        none = ir.Constant(args[0].type, None)
        return builder.add(args[0], builder.select(equal, _all_lanes(builder, args[4], args[0].type), none))

    return vector(vector, labels, types.intp, labels.dtype, vector.dtype), generate


@intrinsic
def plus_bytes(typing: Any, vector: Any, numbers: Any, m: Any, at: Any, factor: Any) -> Any:
    """Return a vector of reals plus, in each lane i, ``factor`` times the whole number ``numbers[m, at + i]``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(numbers)(context, builder, args[1])
        width = builder.extract_value(array.shape, 1)
        first = builder.gep(array.data, [builder.add(builder.mul(args[2], width), args[3])])
        own = builder.load(builder.bitcast(first, ir.VectorType(first.type.pointee, vector.lanes).as_pointer()))
        own.align = 1
        real = builder.uitofp(own, args[0].type)
        product = builder.fmul(_all_lanes(builder, args[4], real.type), real, flags=["contract"])
        return builder.fadd(product, args[0], flags=["contract"])

    return vector(vector, numbers, types.intp, types.intp, vector.dtype), generate


@intrinsic
def scaled_sum(typing: Any, one: Any, other: Any, factor: Any) -> Any:
    """Return ``factor`` times the sum of two vectors of real numbers."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(_all_lanes(builder, args[2], args[0].type), builder.fadd(args[0], args[1]))

    return one(one, one, one.dtype), generate


@intrinsic
def widened(typing: Any, vector: Any, out: Any) -> Any:
    """Return a vector of whole numbers in the dtype of ``out``, which has at least as many bits."""
    wide = Vector(out.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0] if wide == vector else builder.zext(args[0], context.get_value_type(wide))

    return wide(vector, out), generate


@intrinsic
def store(typing: Any, vector: Any, out: Any, index: Any) -> Any:
    """Write a vector to a row of an array (n, lanes) of its dtype."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[0], _row(context, builder, out, args[1], args[2], vector)).align = 1
        return context.get_dummy_value()

    return types.void(vector, out, types.intp), generate


@intrinsic
def at_least(typing: Any, out: Any, index: Any, limit: Any) -> Any:
    """Return a uint64 whose bit j is set where ``out[index, j] >= limit``; the array is unsigned or real."""
    vector = Vector(out.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _loaded(context, builder, out, args[0], args[1], vector)
        return _bits(builder, vector, row, _all_lanes(builder, args[2], row.type))

    return types.uint64(out, types.intp, vector.dtype), generate


@intrinsic
def reaching(typing: Any, out: Any, index: Any, limits: Any, their: Any) -> Any:
    """Return a uint64 whose bit j is set where ``out[index, j] >= limits[their, j]``, both unsigned or real."""
    vector = Vector(out.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _loaded(context, builder, out, args[0], args[1], vector)
        limit = _loaded(context, builder, limits, args[2], args[3], vector)
        return _bits(builder, vector, row, limit)

    return types.uint64(out, types.intp, limits, types.intp), generate


def _bits(builder: Any, vector: Vector, row: Any, limit: Any) -> Any:
    """Return 64 bits; a bit is set where that lane of ``row`` is at least ``limit``."""
    compare = builder.fcmp_ordered if isinstance(vector.dtype, types.Float) else builder.icmp_unsigned
    bits = builder.bitcast(compare(">=", row, limit), ir.IntType(vector.lanes))
    return bits if vector.lanes == 64 else builder.zext(bits, ir.IntType(64))


@intrinsic
def take_among(typing: Any, sorted_: Any, j: Any, at: Any, before: Any, score: Any) -> Any:
    """Insert a score into the `TAKEN` entries ``sorted_[j, at:]``, highest first, and drop the last entry.

    ``before`` is the entry in front of them. If the score is higher than ``before``, all entries move down by one and
    ``before`` becomes the first.
    """
    kind, intp = sorted_.dtype, types.intp

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(sorted_)(context, builder, args[0])
        width = builder.extract_value(array.shape, 1)
        first = builder.gep(array.data, [builder.add(builder.mul(args[1], width), args[2])])
        vector = ir.VectorType(first.type.pointee, TAKEN)
        place = builder.bitcast(first, vector.as_pointer())
        own = builder.load(place)
        own.align = 1
        moved = builder.shuffle_vector(
            own, _all_lanes(builder, args[3], vector),
            ir.Constant(ir.VectorType(ir.IntType(32), TAKEN), [TAKEN, *range(TAKEN - 1)]),
        )  # fmt: skip
        given = _all_lanes(builder, args[4], vector)
        lower = builder.select(builder.icmp_unsigned("<", moved, given), moved, given)
        builder.store(builder.select(builder.icmp_unsigned(">", own, lower), own, lower), place).align = 1
        return context.get_dummy_value()

    return types.void(sorted_, intp, intp, kind, kind), generate


@intrinsic
def lowest(typing: Any, bits: Any) -> Any:
    """Return the number of the lowest bit that is set in ``bits``, uint64 and not 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.intp(types.uint64), generate


@njit(makes_arrays=False)
def popcount(x):
    """Return the number of bits set; compilers recognise this sequence and emit one instruction."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
