"""Ask the processor for data ahead of their use, from compiled code."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload


def prefetch(array: Any, row: int, column: int) -> None:
    """Start to bring the cache line of ``array[row, column]`` closer; not compiled, do nothing.

    A hint and no access: no index is out of range.
    """


@intrinsic
def _hint(context, array, row, column):
    def emit(context, builder, signature, arguments):
        table = context.make_array(signature.args[0])(context, builder, arguments[0])
        word = ir.IntType(64)
        address = builder.ptrtoint(table.data, word)
        for axis in (0, 1):
            stride = builder.extract_value(table.strides, axis)
            address = builder.add(address, builder.mul(arguments[1 + axis], stride))
        flag, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        hint = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag]),
            "llvm.prefetch.p0",
        )
        read, second_cache, data = (ir.Constant(flag, value) for value in (0, 2, 1))
        builder.call(hint, [builder.inttoptr(address, pointer), read, second_cache, data])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), emit


@overload(prefetch)
def _compiled(array, row, column):
    return lambda array, row, column: _hint(array, row, column)  # type: ignore[call-arg]
