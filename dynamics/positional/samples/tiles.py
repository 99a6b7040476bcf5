"""Sums of products kept in vector registers, written out as vector instructions.

A loop over the columns of a small matrix spends more time on checking that its arrays do not
overlap, and on its ends, than on arithmetic. These functions leave nothing to check: a tile of
results stays in registers while the data pass by, in an order that nothing can change.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

LINE = 64  # bytes of a cache line and of a vector; one that is too long for a processor is split
_AHEAD = 2**15  # bytes between the data that are read and those that are prefetched

_INDEX, _FLAG, _PLACE = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()


def lanes(dtype: Any) -> int:
    """Return how many numbers of this type make a vector."""
    return LINE // int(np.dtype(dtype).itemsize)


def fresh(columns: int, dtype: Any) -> np.ndarray:
    """Return which entries of the vectors that cover a row of so many columns are no repetition.

    Vectors follow each other, but the last ends at the last column and may repeat some of those
    before. Fewer columns than a vector has are taken to be filled up at the end.
    """
    count = lanes(dtype)
    entries = np.ones(-(-columns // count) * count, bool)
    repeated = entries.size - columns
    if columns < count:
        entries[columns:] = False
    else:
        entries[-count:][:repeated] = False
    return entries


class _Emitter:
    """Vector instructions on two-dimensional arrays, whose last axis is contiguous or read only."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.context, self.builder = context, builder

    def constant(self, value: int) -> Any:
        return ir.Constant(_INDEX, value)

    def array(self, kind: Any, value: Any) -> tuple[Any, list[Any], Any, int]:
        """Return base address, strides, type and size of the entries."""
        table = self.context.make_array(kind)(self.context, self.builder, value)
        base = self.builder.ptrtoint(table.data, _INDEX)
        strides = cgutils.unpack_tuple(self.builder, table.strides, kind.ndim)
        entry = self.context.get_data_type(kind.dtype)
        return base, strides, entry, kind.dtype.bitwidth // 8

    def address(self, array: Any, *place: Any) -> Any:
        result = array[0]
        for index, stride in zip(place, array[1]):
            result = self.builder.add(result, self.builder.mul(index, stride))
        return result

    def load(self, array: Any, address: Any, count: int) -> Any:
        kind = ir.VectorType(array[2], count) if count > 1 else array[2]
        pointer = self.builder.inttoptr(address, kind.as_pointer())
        return self.builder.load(pointer, align=array[3])

    def store(self, array: Any, address: Any, value: Any) -> None:
        pointer = self.builder.inttoptr(address, value.type.as_pointer())
        self.builder.store(value, pointer, align=array[3])

    def spread(self, value: Any, count: int) -> Any:
        """Return a vector of equal entries."""
        kind = ir.VectorType(value.type, count)
        nothing, first = ir.Constant(kind, ir.Undefined), ir.Constant(_FLAG, 0)
        single = self.builder.insert_element(nothing, value, first)
        every = ir.Constant(ir.VectorType(_FLAG, count), [0] * count)
        return self.builder.shuffle_vector(single, nothing, every)

    def multiply_add(self, x: Any, y: Any, into: Any) -> None:
        """Add ``x * y`` to a variable."""
        builder, kind = self.builder, x.type
        letter = "f64" if isinstance(kind.element, ir.DoubleType) else "f32"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fmuladd.v{kind.count}{letter}"
        )
        builder.store(builder.call(function, [x, y, builder.load(into)]), into)

    def prefetch(self, address: Any) -> None:
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(ir.VoidType(), [_PLACE, _FLAG, _FLAG, _FLAG]),
            "llvm.prefetch.p0",
        )
        read, second_cache, data = (ir.Constant(_FLAG, value) for value in (0, 2, 1))
        place = self.builder.inttoptr(address, _PLACE)
        self.builder.call(function, [place, read, second_cache, data])

    def zeros(self, kind: Any, number: int) -> list[Any]:
        """Return variables; they end in registers."""
        zero = ir.Constant(kind, [0.0] * kind.count)
        variables = [cgutils.alloca_once(self.builder, kind) for _ in range(number)]
        for variable in variables:
            self.builder.store(zero, variable)
        return variables

    def halves(self, x: Any, y: Any) -> Any:
        """Return the sums of neighbours of x, then those of y, as one vector."""
        count = x.type.count
        even, odd = (
            self.builder.shuffle_vector(
                x, y, ir.Constant(ir.VectorType(_FLAG, count), list(range(start, 2 * count, 2)))
            )
            for start in (0, 1)
        )
        return self.builder.fadd(even, odd)


@intrinsic(prefer_literal=True)
def _emitted_tile(typing, a, b, c, i, j, into, begin, end, high, wide, deep, ahead):
    """Add ``a[i:i+high, begin:end] @ b[begin:end, j:]`` to ``c[i:i+high, into:]``.

    ``j`` and ``into`` are columns; ``high``, ``wide`` and ``deep`` are literal numbers: ``wide``
    counts the vectors of columns, and ``deep`` terms are taken at a time, each into a sum of its
    own (``end - begin`` is a multiple of it). ``c`` may be of higher precision. Rows of b that lie
    ``ahead`` rows further on are prefetched unless ``ahead`` is the literal 0.
    """
    shape = (high, wide, deep)
    if not all(isinstance(number, types.IntegerLiteral) for number in shape):
        raise TypingError("high, wide and deep must be literal")
    R, W, Q = (number.literal_value for number in shape)
    hinted = not (isinstance(ahead, types.IntegerLiteral) and ahead.literal_value == 0)
    count = LINE * 8 // b.dtype.bitwidth

    def emit(context, builder, signature, arguments):
        do = _Emitter(context, builder)
        A, B, C = (do.array(signature.args[n], arguments[n]) for n in range(3))
        i, j, into, begin, end = arguments[3:8]
        kind = ir.VectorType(B[2], count)
        sums = do.zeros(kind, R * W * Q)
        step = builder.mul(B[1][0], arguments[11]) if hinted else None
        with cgutils.for_range_slice(builder, begin, end, do.constant(Q)) as (k, _):
            for q in range(Q):
                term = builder.add(k, do.constant(q))
                start = do.address(B, term, j)
                rows = []
                for w in range(W):
                    address = builder.add(start, do.constant(w * LINE))
                    if step is not None:
                        do.prefetch(builder.add(address, step))
                    rows.append(do.load(B, address, count))
                for r in range(R):
                    place = do.address(A, builder.add(i, do.constant(r)), term)
                    factor = do.spread(do.load(A, place, 1), count)
                    for w in range(W):
                        do.multiply_add(factor, rows[w], sums[(r * W + w) * Q + q])
        for r in range(R):
            for w in range(W):
                total = builder.load(sums[(r * W + w) * Q])
                for q in range(1, Q):
                    total = builder.fadd(total, builder.load(sums[(r * W + w) * Q + q]))
                if C[2] != B[2]:
                    total = builder.fpext(total, ir.VectorType(C[2], count))
                column = builder.add(into, do.constant(w * count))
                place = do.address(C, builder.add(i, do.constant(r)), column)
                do.store(C, place, builder.fadd(do.load(C, place, count), total))
        return context.get_dummy_value()

    word = types.int64
    return types.void(a, b, c, word, word, word, word, word, high, wide, deep, word), emit


@intrinsic
def _emitted_rows(typing, X, first, v, out, place):
    """Set ``out[place + r]`` to the inner product of row ``first + r`` of X and v.

    For as many rows as a vector holds. ``v`` is in the vectors of `fresh`.
    """
    count = LINE * 8 // X.dtype.bitwidth

    def emit(context, builder, signature, arguments):
        do = _Emitter(context, builder)
        rows, weights, result = (do.array(signature.args[n], arguments[n]) for n in (0, 2, 3))
        shape = context.make_array(signature.args[0])(context, builder, arguments[0]).shape
        columns = builder.extract_value(shape, 1)
        last = builder.sub(columns, do.constant(count))
        kind = ir.VectorType(rows[2], count)
        (total,), sums = do.zeros(kind, 1), cgutils.alloca_once(builder, kind, size=count)
        zero, full = do.constant(0), do.constant(count)
        with cgutils.for_range(builder, full) as row:  # one after another: in the order of memory
            start = do.address(rows, builder.add(arguments[1], row.index))
            builder.store(ir.Constant(kind, [0.0] * count), total)
            with cgutils.for_range_slice(builder, zero, columns, full) as (k, _):
                weight = do.load(weights, do.address(weights, k), count)
                column = builder.select(builder.icmp_signed("<", k, last), k, last)
                place = builder.add(start, builder.mul(column, rows[1][1]))
                do.multiply_add(do.load(rows, place, count), weight, total)
                do.prefetch(builder.add(place, do.constant(_AHEAD)))
            builder.store(builder.load(total), builder.gep(sums, [row.index]))
        level = [builder.load(builder.gep(sums, [do.constant(r)])) for r in range(count)]
        while len(level) > 1:
            level = [do.halves(x, y) for x, y in zip(level[::2], level[1::2])]
        do.store(result, do.address(result, arguments[4]), level[0])
        return context.get_dummy_value()

    return types.void(X, types.int64, v, out, types.int64), emit


def _plain_tile(a, b, c, i, j, into, begin, end, high, wide, deep, ahead):
    width = wide * lanes(b.dtype)
    c[i : i + high, into : into + width] += a[i : i + high, begin:end] @ b[begin:end, j : j + width]


def _plain_rows(X, first, v, out, place):
    count = lanes(X.dtype)
    last = X.shape[1] - count
    weights = v.reshape(-1, count)
    out[place : place + count] = sum(
        X[first : first + count, start : start + count] @ weights[t]
        for t, start in enumerate(min(k, last) for k in range(0, X.shape[1], count))
    )


# set from the environment when Numba is imported, which its stubs do not show
_plain = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
add_tile: Any = _plain_tile if _plain else _emitted_tile
dot_rows: Any = _plain_rows if _plain else _emitted_rows
