"""Matrix products of small tiles, emitted as LLVM vector instructions.

In a compiled loop over the columns of a small matrix, checks for overlapping arrays and the
treatment of the last columns take longer than the arithmetic. These functions need no checks. A
tile of results stays in vector registers, and the order of the additions is fixed.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

#: Bytes of a cache line and of a vector. LLVM splits vectors that are too long for a processor.
LINE = 64
_PREFETCH = 2**15  # bytes between the data that are read and those that are prefetched

_INDEX, _FLAG, _POINTER = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()


def vector_size(dtype: Any) -> int:
    """Return the number of entries of a type in one vector."""
    return LINE // int(np.dtype(dtype).itemsize)


def unique_entries(columns: int, dtype: Any) -> np.ndarray:
    """Return which entries of the vectors that cover a row are not repetitions, boolean.

    The last vector ends at the last column and may repeat entries of the one before. A row shorter
    than a vector is padded at the end.
    """
    count = vector_size(dtype)
    entries = np.ones(-(-columns // count) * count, bool)
    repeated = entries.size - columns
    if columns < count:
        entries[columns:] = False
    else:
        entries[-count:][:repeated] = False
    return entries


class _Emitter:
    """Vector instructions on two-dimensional arrays with a contiguous last axis, or read-only."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.context, self.builder = context, builder

    def constant(self, value: int) -> Any:
        """Return an integer constant."""
        return ir.Constant(_INDEX, value)

    def array(self, array_type: Any, value: Any) -> tuple[Any, list[Any], Any, int]:
        """Return base address, strides, type and size of the entries."""
        table = self.context.make_array(array_type)(self.context, self.builder, value)
        base = self.builder.ptrtoint(table.data, _INDEX)
        strides = cgutils.unpack_tuple(self.builder, table.strides, array_type.ndim)
        entry = self.context.get_data_type(array_type.dtype)
        return base, strides, entry, array_type.dtype.bitwidth // 8

    def address(self, array: Any, *indices: Any) -> Any:
        """Return the address of an entry."""
        result = array[0]
        for index, stride in zip(indices, array[1]):
            result = self.builder.add(result, self.builder.mul(index, stride))
        return result

    def load(self, array: Any, address: Any, count: int) -> Any:
        """Load a number or a vector of ``count`` numbers."""
        llvm_type = ir.VectorType(array[2], count) if count > 1 else array[2]
        pointer = self.builder.inttoptr(address, llvm_type.as_pointer())
        return self.builder.load(pointer, align=array[3])

    def store(self, array: Any, address: Any, value: Any) -> None:
        """Store a number or a vector."""
        pointer = self.builder.inttoptr(address, value.type.as_pointer())
        self.builder.store(value, pointer, align=array[3])

    def broadcast(self, value: Any, count: int) -> Any:
        """Return a vector of equal entries."""
        llvm_type = ir.VectorType(value.type, count)
        undefined, first = ir.Constant(llvm_type, ir.Undefined), ir.Constant(_FLAG, 0)
        single = self.builder.insert_element(undefined, value, first)
        mask = ir.Constant(ir.VectorType(_FLAG, count), [0] * count)
        return self.builder.shuffle_vector(single, undefined, mask)

    def multiply_add(self, x: Any, y: Any, into: Any) -> None:
        """Add ``x * y`` to a variable."""
        builder, vector = self.builder, x.type
        suffix = "f64" if isinstance(vector.element, ir.DoubleType) else "f32"
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector] * 3),
            f"llvm.fmuladd.v{vector.count}{suffix}",
        )
        builder.store(builder.call(function, [x, y, builder.load(into)]), into)

    def prefetch(self, address: Any) -> None:
        """Prefetch a cache line into the second-level cache."""
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(ir.VoidType(), [_POINTER, _FLAG, _FLAG, _FLAG]),
            "llvm.prefetch.p0",
        )
        read, second_cache, data = (ir.Constant(_FLAG, value) for value in (0, 2, 1))
        pointer = self.builder.inttoptr(address, _POINTER)
        self.builder.call(function, [pointer, read, second_cache, data])

    def zeros(self, vector: Any, number: int) -> list[Any]:
        """Return variables of a vector type, initially 0; LLVM places them in registers."""
        zero = ir.Constant(vector, [0.0] * vector.count)
        variables = [cgutils.alloca_once(self.builder, vector) for _ in range(number)]
        for variable in variables:
            self.builder.store(zero, variable)
        return variables

    def pairwise_sums(self, x: Any, y: Any) -> Any:
        """Return the sums of adjacent entries of x, then those of y, as one vector."""
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

    ``j`` and ``into`` are columns; ``high``, ``wide`` and ``deep`` are literal integers. ``wide``
    is the number of vectors of columns. The terms are added to ``deep`` separate sums in turn, and
    ``end - begin`` is a multiple of ``deep``. ``c`` may have a higher precision. Rows of b are
    prefetched ``ahead`` rows in advance, unless ``ahead`` is the literal 0.
    """
    shape = (high, wide, deep)
    if not all(isinstance(number, types.IntegerLiteral) for number in shape):
        raise TypingError("high, wide and deep must be literal")
    R, W, Q = (number.literal_value for number in shape)
    prefetch = not (isinstance(ahead, types.IntegerLiteral) and ahead.literal_value == 0)
    count = LINE * 8 // b.dtype.bitwidth

    def emit(context, builder, signature, arguments):
        emitter = _Emitter(context, builder)
        A, B, C = (emitter.array(signature.args[n], arguments[n]) for n in range(3))
        i, j, into, begin, end = arguments[3:8]
        sums = emitter.zeros(ir.VectorType(B[2], count), R * W * Q)
        step = builder.mul(B[1][0], arguments[11]) if prefetch else None
        with cgutils.for_range_slice(builder, begin, end, emitter.constant(Q)) as (k, _):
            for q in range(Q):
                term = builder.add(k, emitter.constant(q))
                start = emitter.address(B, term, j)
                rows = []
                for w in range(W):
                    address = builder.add(start, emitter.constant(w * LINE))
                    if step is not None:
                        emitter.prefetch(builder.add(address, step))
                    rows.append(emitter.load(B, address, count))
                for r in range(R):
                    entry = emitter.address(A, builder.add(i, emitter.constant(r)), term)
                    factor = emitter.broadcast(emitter.load(A, entry, 1), count)
                    for w in range(W):
                        emitter.multiply_add(factor, rows[w], sums[(r * W + w) * Q + q])
        for r in range(R):
            for w in range(W):
                total = builder.load(sums[(r * W + w) * Q])
                for q in range(1, Q):
                    total = builder.fadd(total, builder.load(sums[(r * W + w) * Q + q]))
                if C[2] != B[2]:
                    total = builder.fpext(total, ir.VectorType(C[2], count))
                column = builder.add(into, emitter.constant(w * count))
                entry = emitter.address(C, builder.add(i, emitter.constant(r)), column)
                emitter.store(C, entry, builder.fadd(emitter.load(C, entry, count), total))
        return context.get_dummy_value()

    word = types.int64
    return types.void(a, b, c, word, word, word, word, word, high, wide, deep, word), emit


@intrinsic
def _emitted_rows(typing, X, first, v, out, position):
    """Set ``out[position + r]`` to the inner product of row ``first + r`` of X and v.

    The number of rows is the vector size. ``v`` is packed as described in `unique_entries`.
    """
    count = LINE * 8 // X.dtype.bitwidth

    def emit(context, builder, signature, arguments):
        emitter = _Emitter(context, builder)
        rows, weights, result = (emitter.array(signature.args[n], arguments[n]) for n in (0, 2, 3))
        shape = context.make_array(signature.args[0])(context, builder, arguments[0]).shape
        columns = builder.extract_value(shape, 1)
        last = builder.sub(columns, emitter.constant(count))
        vector = ir.VectorType(rows[2], count)
        (total,), sums = emitter.zeros(vector, 1), cgutils.alloca_once(builder, vector, size=count)
        zero, full = emitter.constant(0), emitter.constant(count)
        with cgutils.for_range(builder, full) as row:  # row by row, in the order of memory
            start = emitter.address(rows, builder.add(arguments[1], row.index))
            builder.store(ir.Constant(vector, [0.0] * count), total)
            with cgutils.for_range_slice(builder, zero, columns, full) as (k, _):
                weight = emitter.load(weights, emitter.address(weights, k), count)
                column = builder.select(builder.icmp_signed("<", k, last), k, last)
                entry = builder.add(start, builder.mul(column, rows[1][1]))
                emitter.multiply_add(emitter.load(rows, entry, count), weight, total)
                emitter.prefetch(builder.add(entry, emitter.constant(_PREFETCH)))
            builder.store(builder.load(total), builder.gep(sums, [row.index]))
        level = [builder.load(builder.gep(sums, [emitter.constant(r)])) for r in range(count)]
        while len(level) > 1:
            level = [emitter.pairwise_sums(x, y) for x, y in zip(level[::2], level[1::2])]
        emitter.store(result, emitter.address(result, arguments[4]), level[0])
        return context.get_dummy_value()

    return types.void(X, types.int64, v, out, types.int64), emit


def _plain_tile(a, b, c, i, j, into, begin, end, high, wide, deep, ahead):
    """Compute `_emitted_tile` without compiler."""
    width = wide * vector_size(b.dtype)
    c[i : i + high, into : into + width] += a[i : i + high, begin:end] @ b[begin:end, j : j + width]


def _plain_rows(X, first, v, out, position):
    """Compute `_emitted_rows` without compiler."""
    count = vector_size(X.dtype)
    last = X.shape[1] - count
    weights = v.reshape(-1, count)
    out[position : position + count] = sum(
        X[first : first + count, start : start + count] @ weights[t]
        for t, start in enumerate(min(k, last) for k in range(0, X.shape[1], count))
    )


# Numba sets it from the environment when it is imported; its stubs do not declare it.
_plain = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
add_tile: Any = _plain_tile if _plain else _emitted_tile
dot_rows: Any = _plain_rows if _plain else _emitted_rows
