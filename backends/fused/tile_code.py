"""LLVM's code of tiles: Numba gives no hold on registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .tile import DOT_COLUMNS, DOT_ROWS, MOST_ROWS, PANEL_BYTES, VECTOR_BYTES


def _pointer(typing: Any, address: Any, like: Any) -> Any:
    """A pointer to elements of the type of an array, from an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like.dtype)(types.intp, like), generate


def _tile(
    typing: Any, rows: Any, a: Any, a_stride: Any, a_step: Any, b: Any, depth: Any, c: Any, c_stride: Any, like: Any
) -> Any:  # fmt: skip
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, a, a_stride, a_step, b, depth, c, c_stride, _ = arguments
        code = _Code(context, builder, like)
        code.multiply(rows, a, a_stride, a_step, lambda number: code.place(b, number, PANEL_BYTES), depth, c, c_stride)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 8, like), generate


def _gathered_tile(
    typing: Any, is_half: Any, rows: Any, a: Any, a_stride: Any, b: Any, places: Any, depth: Any, c: Any, c_stride: Any, like: Any
) -> Any:  # fmt: skip
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        is_half, rows, a, a_stride, b, places, depth, c, c_stride, _ = arguments
        code = _Code(context, builder, like)

        def line(number: Any) -> Any:
            return builder.add(b, code.entry(places, number))

        with builder.if_else(is_half) as (half, whole):
            with half:
                code.multiply(rows, a, a_stride, code.itemsize, line, depth, c, c_stride, vectors=1)
            with whole:
                code.multiply(rows, a, a_stride, code.itemsize, line, depth, c, c_stride)
        return context.get_dummy_value()

    return types.void(types.boolean, *[types.intp] * 8, like), generate


def _dots(typing: Any, a: Any, a_places: Any, b: Any, b_places: Any, runs: Any, count: Any, c: Any, c_stride: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _Code(context, builder, like).dots(*arguments[:8])
        return context.get_dummy_value()

    return types.void(*[types.intp] * 8, like), generate


def _turn(typing: Any, source: Any, stride: Any, target: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _Code(context, builder, like).turn(*arguments[:3])
        return context.get_dummy_value()

    return types.void(*[types.intp] * 3, like), generate


def _fetch(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [byte] + [number] * 3), "llvm.prefetch.p0")
        is_written, stays, is_data = number(1), number(3), number(1)
        builder.call(function, [builder.inttoptr(arguments[0], byte), is_written, stays, is_data])
        return context.get_dummy_value()

    return types.void(types.intp), generate


def _spare(typing: Any, like: Any) -> Any:
    """The address of memory on the stack of the function that asks."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scalar = context.get_value_type(like.dtype)
        memory = cgutils.alloca_once(builder, ir.ArrayType(scalar, MOST_ROWS * PANEL_BYTES * 8 // like.dtype.bitwidth))
        return builder.ptrtoint(memory, context.get_value_type(types.intp))

    return types.intp(like), generate


class _Code:
    """Writes code for elements of the type of an array."""

    def __init__(self, context: Any, builder: Any, like: Any) -> None:
        self.builder, self.itemsize = builder, like.dtype.bitwidth // 8
        self.scalar = context.get_value_type(like.dtype)
        self.lanes = VECTOR_BYTES // self.itemsize
        self.vector = ir.VectorType(self.scalar, self.lanes)
        self.word = context.get_value_type(types.intp)
        self._suffix = f"v{self.lanes}f{8 * self.itemsize}"

    def multiply(
        self, rows: Any, a: Any, a_stride: Any, a_step: Any, line: Callable[[Any], Any], depth: Any, c: Any, c_stride: Any, vectors: int = 2
    ) -> None:  # fmt: skip
        """Multiply by a panel so many vectors wide, whose row of some number lies at the address that *line* tells."""
        builder = self.builder
        done = builder.append_basic_block("done")
        choice = builder.switch(rows, done)
        for count in range(1, MOST_ROWS + 1):
            block = builder.append_basic_block(f"rows.{count}")
            choice.add_case(count, block)
            builder.position_at_end(block)
            starts = [self.place(a, self._number(row), a_stride) for row in range(count)]
            sums = [[self._zero() for _ in range(vectors)] for _ in range(count)]
            with cgutils.for_range(builder, depth) as loop:
                panel = line(loop.index)
                parts = [self._load(self.place(panel, self._number(part), VECTOR_BYTES)) for part in range(vectors)]
                for start, totals in zip(starts, sums, strict=True):
                    many = self._spread(self.place(start, loop.index, a_step))
                    for part, total in zip(parts, totals, strict=True):
                        self._add_product(many, part, total)
            for row, totals in enumerate(sums):
                start = self.place(c, self._number(row), c_stride)
                for part, total in enumerate(totals):
                    self._store(builder.load(total), self.place(start, self._number(part), VECTOR_BYTES))
            builder.branch(done)
        builder.position_at_end(done)

    def dots(self, a: Any, a_places: Any, b: Any, b_places: Any, runs: Any, count: Any, c: Any, c_stride: Any) -> None:
        """Add dots of rows to a matrix."""
        builder = self.builder
        rows = [builder.add(a, self.entry(a_places, self._number(row))) for row in range(DOT_ROWS)]
        columns = [builder.add(b, self.entry(b_places, self._number(column))) for column in range(DOT_COLUMNS)]
        sums = [[self._zero() for _ in columns] for _ in rows]
        with cgutils.for_range(builder, count) as run:
            first = builder.mul(run.index, self._number(2))
            start = self.entry(runs, first)
            with cgutils.for_range(builder, self.entry(runs, builder.add(first, self._number(1)))) as loop:
                at = self.place(start, loop.index, VECTOR_BYTES)
                met = [self._load(builder.add(column, at)) for column in columns]
                for row, totals in zip(rows, sums, strict=True):
                    one = self._load(builder.add(row, at))
                    for other, total in zip(met, totals, strict=True):
                        self._add_product(one, other, total)
        name = f"llvm.vector.reduce.fadd.{self._suffix}"
        reduce = cgutils.get_or_insert_function(builder.module, ir.FunctionType(self.scalar, [self.scalar, self.vector]), name)
        for row, totals in enumerate(sums):
            start = self.place(c, self._number(row), c_stride)
            for column, total in enumerate(totals):
                to = self._as_pointer(self.place(start, self._number(column), self.itemsize), self.scalar)
                builder.store(builder.call(reduce, (builder.load(to), builder.load(total)), fastmath=("reassoc",)), to)

    def turn(self, source: Any, stride: Any, target: Any) -> None:
        """Transpose a square: exchange, of pairs of vectors, ever larger parts."""
        rows = [self._load(self.place(source, self._number(row), stride)) for row in range(self.lanes)]
        part = 1
        while part < self.lanes:
            lower = [lane if not lane & part else self.lanes + lane - part for lane in range(self.lanes)]
            upper = [lane + part for lane in lower]
            for row in range(self.lanes):
                if not row & part:
                    pair = rows[row], rows[row + part]
                    rows[row], rows[row + part] = (self._picked(*pair, lanes) for lanes in (lower, upper))
            part *= 2
        for row, value in enumerate(rows):
            self._store(value, self.place(target, self._number(row), PANEL_BYTES))

    def place(self, address: Any, number: Any, stride: Any) -> Any:
        """The address of one of several things that lie *stride* bytes apart."""
        return self.builder.add(address, self.builder.mul(number, self._number(stride) if isinstance(stride, int) else stride))

    def entry(self, table: Any, number: Any) -> Any:
        """An entry of a table of numbers."""
        return self.builder.load(self._as_pointer(self.place(table, number, self.word.width // 8), self.word))

    def _number(self, value: int) -> Any:
        return ir.Constant(self.word, value)

    def _as_pointer(self, address: Any, of: Any) -> Any:
        return self.builder.inttoptr(address, ir.PointerType(of))

    def _zero(self) -> Any:
        total = cgutils.alloca_once(self.builder, self.vector)
        self.builder.store(ir.Constant(self.vector, None), total)
        return total

    def _load(self, address: Any) -> Any:
        return self.builder.load(self._as_pointer(address, self.vector), align=self.itemsize)

    def _store(self, value: Any, address: Any) -> None:
        self.builder.store(value, self._as_pointer(address, self.vector), align=self.itemsize)

    def _spread(self, address: Any) -> Any:
        """A vector of the same number everywhere."""
        one = self.builder.load(self._as_pointer(address, self.scalar))
        many = self.builder.insert_element(ir.Constant(self.vector, ir.Undefined), one, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(many, many, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), None))

    def _picked(self, left: Any, right: Any, lanes: list[int]) -> Any:
        """A vector of lanes of two others."""
        number = ir.IntType(32)
        return self.builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(number, len(lanes)), [number(lane) for lane in lanes]))

    def _add_product(self, left: Any, right: Any, total: Any) -> None:
        function = ir.FunctionType(self.vector, [self.vector] * 3)
        multiply_add = cgutils.get_or_insert_function(self.builder.module, function, f"llvm.fmuladd.{self._suffix}")
        self.builder.store(self.builder.call(multiply_add, (left, right, self.builder.load(total))), total)


pointer: Any = intrinsic(_pointer)
tile: Any = intrinsic(_tile)
gathered_tile: Any = intrinsic(_gathered_tile)
dots: Any = intrinsic(_dots)
turn: Any = intrinsic(_turn)
fetch: Any = intrinsic(_fetch)
spare: Any = intrinsic(_spare)
