"""The heart of a product of matrices: a few rows times a panel of columns, with sums in registers.

Numba gives no hold on registers, so these few lines write LLVM's code themselves, for vectors as wide as the processor's.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _has_wide_vectors() -> bool:
    try:
        return bool(binding.get_host_cpu_features().get("avx512f"))
    except RuntimeError:  # LLVM does not know how to ask this system
        return False


_IS_WIDE = _has_wide_vectors()

VECTOR_BYTES = 64 if _IS_WIDE else 32
PANEL_BYTES = 2 * VECTOR_BYTES
"""Bytes of a row of a panel: two vectors."""

MOST_ROWS = 8 if _IS_WIDE else 6
"""Rows that are multiplied at once: as many as there are registers for their sums."""


def _pointer(typing: Any, address: Any, like: Any) -> Any:
    """A pointer to elements of the type of an array, from an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like.dtype)(types.intp, like), generate


def _tile(typing: Any, rows: Any, a: Any, a_stride: Any, b: Any, depth: Any, c: Any, c_stride: Any, like: Any) -> Any:
    """Multiply rows by a panel.

    Each element of the result is a sum in the order of the operands' elements, whatever the number of rows.

    Args:
        rows: how many, from 1 to :data:`MOST_ROWS`.
        a, a_stride: address of the rows' first element, and the bytes from one row to the next.
        b: address of the panel.
        depth: how many products are added up.
        c, c_stride: address of the result, whose rows are as long as the panel's, and the bytes from one row to the next.
        like: an array of the type that all is in.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scalar, itemsize = context.get_value_type(like.dtype), like.dtype.bitwidth // 8
        done = builder.append_basic_block("done")
        choice = builder.switch(arguments[0], done)
        for count in range(1, MOST_ROWS + 1):
            block = builder.append_basic_block(f"rows.{count}")
            choice.add_case(count, block)
            builder.position_at_end(block)
            _generate(builder, count, scalar, itemsize, *arguments[1:7])
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 7, like), generate


def _generate(
    builder: Any, rows: int, scalar: Any, itemsize: int, a: Any, a_stride: Any, b: Any, depth: Any, c: Any, c_stride: Any
) -> None:
    lanes = VECTOR_BYTES // itemsize
    vector = ir.VectorType(scalar, lanes)
    name = f"llvm.fmuladd.v{lanes}{'f32' if itemsize == 4 else 'f64'}"
    multiply_add = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)

    def at(address: Any, stride: Any, number: Any, of: Any) -> Any:
        return builder.inttoptr(builder.add(address, builder.mul(stride, number)), ir.PointerType(of))

    def number(value: int) -> Any:
        return ir.Constant(a.type, value)

    sums = [[cgutils.alloca_once(builder, vector) for _ in range(2)] for _ in range(rows)]
    for total in (total for row in sums for total in row):
        builder.store(ir.Constant(vector, None), total)
    with cgutils.for_range(builder, depth) as loop:
        line = builder.add(b, builder.mul(loop.index, number(PANEL_BYTES)))
        parts = [builder.load(at(line, number(VECTOR_BYTES), number(part), vector), align=itemsize) for part in range(2)]
        for row in range(rows):
            start = builder.add(a, builder.mul(a_stride, number(row)))
            one = builder.load(at(start, number(itemsize), loop.index, scalar))
            many = builder.insert_element(ir.Constant(vector, ir.Undefined), one, ir.Constant(ir.IntType(32), 0))
            many = builder.shuffle_vector(many, many, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None))
            for part, total in zip(parts, sums[row], strict=True):
                builder.store(builder.call(multiply_add, (many, part, builder.load(total))), total)
    for row in range(rows):
        start = builder.add(c, builder.mul(c_stride, number(row)))
        for part, total in enumerate(sums[row]):
            builder.store(builder.load(total), at(start, number(VECTOR_BYTES), number(part), vector), align=itemsize)


pointer: Any = intrinsic(_pointer)
tile: Any = intrinsic(_tile)
