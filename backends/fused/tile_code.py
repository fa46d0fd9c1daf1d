"""LLVM code of tiles, since Numba gives no control over registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import Parameter, Signature, signature
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .tile import DOT_COLUMNS, DOT_ROWS, MOST_ROWS, PANEL_BYTES, PANEL_COUNTS, PANELS, VECTOR_BYTES, WIDE_BYTES, WIDE_ROWS


def _pointer(typing: Any, address: Any, like: Any) -> Any:
    """A pointer to elements of the type of an array, from an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like.dtype)(types.intp, like), generate


def _fetching(is_written: bool) -> Any:
    """The function that prefetches an address."""

    def prefetch(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _prefetch(builder, arguments[0], is_written)
            return context.get_dummy_value()

        return types.void(types.intp), generate

    return intrinsic(prefetch)


def _prefetch(builder: Any, address: Any, is_written: bool) -> None:
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [byte] + [number] * 3), "llvm.prefetch.p0")
    stays, is_data = number(3), number(1)
    builder.call(function, [builder.inttoptr(address, byte), number(int(is_written)), stays, is_data])


AHEAD = 32 * PANEL_BYTES
"""Bytes of a single panel by which it is fetched into the cache ahead; of several, processors do so themselves."""

Finish = Callable[[list[list[Any]], list[list[Any]], list[Any]], None]


class Code:
    """Writes code for elements of the type of an array."""

    def __init__(self, context: Any, builder: Any, like: Any) -> None:
        self.builder, self.itemsize = builder, like.dtype.bitwidth // 8
        self.scalar = context.get_value_type(like.dtype)
        self.lanes = VECTOR_BYTES // self.itemsize
        self.vector = ir.VectorType(self.scalar, self.lanes)
        self.word = context.get_value_type(types.intp)
        self.zeros = ir.Constant(self.vector, None)
        self._suffix = f"v{self.lanes}f{8 * self.itemsize}"

    def multiply(
        self, rows: Any, a: Any, a_stride: Any, a_step: Any, line: Callable[[Any], Any], depth: Any, c: Any, c_stride: Any,
        vectors: int = 2, adds: bool = False, most_rows: int = MOST_ROWS, columns: Any = None, is_filled: bool = False,
        finish: Finish | None = None, apart: Any = VECTOR_BYTES, residual: Any = None,
    ) -> None:  # fmt: skip
        """Multiply by a panel so many vectors wide, whose row of some number lies at the address that *line* tells.

        Args:
            adds: whether the product is added to what is there.
            most_rows: the most rows that there are.
            columns: how many there are; None for all that the vectors hold.
            is_filled: whether the panel is filled up with zeros behind them.
            finish: generates what is done to the sums before they are written, given also where they go and the flags.
            apart: the bytes from one vector to the next.
            residual: how many bytes behind each result lies what *finish* adds to it, and is fetched into the cache; 0 for nothing.
        """
        known = [None if columns is None else self.before(columns, part) for part in range(vectors)]
        places = [self.times(part, apart) for part in range(vectors)]
        for count in self.cases(rows, range(1, most_rows + 1)):
            ends = self.vectors_of(count, c, c_stride, vectors, apart)
            if residual is not None:
                with self.builder.if_then(self.is_there(residual)):
                    for place in (place for of_row in ends for place in of_row):
                        _prefetch(self.builder, self.builder.add(place, residual), is_written=False)
            sums = [[self.load(place) if adds else self.zeros for place in to] for to in ends]
            read = [None] * vectors if is_filled else known
            totals = self.products(self.starts(a, count, a_stride), self.every(a_step), line, places, depth, sums, read)
            if finish is not None:
                finish(totals, ends, known)
            self.store_all(totals, ends, known)

    def multiply_panels(
        self, adds: Any, rows: Any, panels: Any, a: Any, a_stride: Any, b: Any, b_step: Any, depth: Any, columns: Any, added: Any,
        added_stride: Any, c: Any, c_stride: Any,
    ) -> None:  # fmt: skip
        """Multiply by several panels, and add terms; arguments as for :func:`~cntk.backends.fused.tile.panels_tile`."""
        builder = self.builder
        shapes = [(count, of_count) for count, most in enumerate(PANELS, 1) for of_count in PANEL_COUNTS if of_count <= most]
        more = 2 * max(PANEL_COUNTS)
        number = builder.add(self.times(rows, more), panels)
        for value in self.cases(number, [count * more + of_count for count, of_count in shapes]):
            count, of_count = divmod(value, more)
            vectors = 2 * of_count
            places = [self.place(self.times(part // 2, b_step), part % 2, VECTOR_BYTES) for part in range(vectors)]
            ends = self.vectors_of(count, c, c_stride, vectors)
            terms = self.vectors_of(count, added, added_stride, vectors)
            with builder.if_then(adds):
                for place in (place for of_row in terms for place in of_row):
                    _prefetch(builder, place, is_written=False)
            sums = [[self.zeros] * vectors for _ in range(count)]
            ahead = [self.number(AHEAD)] if of_count == 1 else []
            totals = self.products(
                self.starts(a, count, a_stride), self.every(self.itemsize), lambda row: self.place(b, row, PANEL_BYTES), places, depth,
                sums, [None] * vectors, ahead,
            )  # fmt: skip
            are_all = builder.icmp_signed("==", columns, self.number(vectors * self.lanes))
            with builder.if_else(are_all) as (whole, part):
                for is_whole, block in ((True, whole), (False, part)):
                    with block:
                        known = [None if is_whole else self.before(columns, number) for number in range(vectors)]
                        with builder.if_then(adds):
                            self.add_all(totals, terms, known)
                        self.store_all(totals, ends, known)

    def cases(self, number: Any, values: Iterable[Any]) -> Iterator[Any]:
        """Code for each value of a number: what is written after a value was given is for that one."""
        builder = self.builder
        done = builder.append_basic_block("done")
        choice = builder.switch(number, done)
        for value in values:
            block = builder.append_basic_block("case")
            choice.add_case(value, block)
            builder.position_at_end(block)
            yield value
            builder.branch(done)
        builder.position_at_end(done)

    def vectors_of(self, rows: int, address: Any, stride: Any, vectors: int, apart: Any = VECTOR_BYTES) -> list[list[Any]]:
        """Where the vectors of some rows lie."""
        return [[self.place(start, part, apart) for part in range(vectors)] for start in self.starts(address, rows, stride)]

    def starts(self, address: Any, rows: int, stride: Any) -> list[Any]:
        """Where some rows begin."""
        return [self.place(address, row, stride) for row in range(rows)]

    def every(self, step: Any) -> Callable[[Any], Any]:
        """A function that tells how many bytes behind the first of elements that lie *step* bytes apart one of them lies."""
        return lambda number: self.times(number, step)

    def products(
        self, starts: list[Any], behind: Callable[[Any], Any], line: Callable[[Any], Any], places: list[Any], depth: Any,
        sums: list[list[Any]], known: list[Any], ahead: Sequence[Any] = (),
    ) -> list[list[Any]]:  # fmt: skip
        """Variables for sums of rows times vectors, beginning with *sums*.

        Args:
            starts, behind: where rows begin, and what tells how many bytes behind that an element of each lies.
            line, places: what tells an address for an element, and how many bytes behind it its vectors lie.
            depth: elements of a row.
            known: flags of the elements that each vector has; None for all.
            ahead: bytes behind the address that *line* tells, of what is fetched into the cache.
        """
        totals = [[self._variable(value) for value in of_row] for of_row in sums]
        with cgutils.for_range(self.builder, depth) as loop:
            first, offset = line(loop.index), behind(loop.index)
            for place in ahead:
                _prefetch(self.builder, self.builder.add(first, place), is_written=False)
            parts = [self.load(self.place(first, 1, place), flags) for place, flags in zip(places, known, strict=True)]
            for start, of_row in zip(starts, totals, strict=True):
                many = self.spread(self.builder.add(start, offset))
                for part, total in zip(parts, of_row, strict=True):
                    self._add_product(many, part, total)
        return totals

    def add_all(self, totals: list[list[Any]], terms: list[list[Any]], known: list[Any]) -> None:
        """Add what lies in memory to variables."""
        for of_row, of_terms in zip(totals, terms, strict=True):
            for total, place, flags in zip(of_row, of_terms, known, strict=True):
                self.builder.store(self.builder.fadd(self.builder.load(total), self.load(place, flags)), total)

    def add_to_rows(self, totals: list[list[Any]], numbers: Any) -> None:
        """Add a number for each row, which lie in memory, to variables."""
        for row, of_row in enumerate(totals):
            number = self.spread(self.place(numbers, row, self.itemsize))
            for total in of_row:
                self.builder.store(self.builder.fadd(self.builder.load(total), number), total)

    def add_residual(self, totals: list[list[Any]], ends: list[list[Any]], known: list[Any], residual: Any) -> None:
        """Add to variables what lies so many bytes behind where they go, unless the number is 0."""
        with self.builder.if_then(self.is_there(residual)):
            self.add_all(totals, [[self.builder.add(place, residual) for place in of_row] for of_row in ends], known)

    def rectify(self, totals: list[list[Any]]) -> None:
        """Put zeros in place of what is negative in variables."""
        for total in (total for of_row in totals for total in of_row):
            self.builder.store(self.at_least(self.zeros, self.builder.load(total)), total)

    def is_there(self, address: Any) -> Any:
        """Whether an address is not 0."""
        return self.builder.icmp_signed("!=", address, self.number(0))

    def store_all(self, totals: list[list[Any]], ends: list[list[Any]], known: list[Any]) -> None:
        """Write variables to memory."""
        for of_row, to in zip(totals, ends, strict=True):
            for total, place, flags in zip(of_row, to, known, strict=True):
                self.store(self.builder.load(total), place, flags)

    def dots(self, a: Any, a_places: Any, b: Any, b_places: Any, runs: Any, count: Any, c: Any, c_stride: Any) -> None:
        """Add dots of rows to a matrix."""
        builder = self.builder
        rows = [builder.add(a, self.entry(a_places, row)) for row in range(DOT_ROWS)]
        columns = [builder.add(b, self.entry(b_places, column)) for column in range(DOT_COLUMNS)]
        sums = [[self._variable(self.zeros) for _ in columns] for _ in rows]
        with cgutils.for_range(builder, count) as run:
            first = self.times(run.index, 2)
            start = self.entry(runs, first)
            with cgutils.for_range(builder, self.entry(runs, builder.add(first, self.number(1)))) as loop:
                at = self.place(start, loop.index, VECTOR_BYTES)
                met = [self.load(builder.add(column, at)) for column in columns]
                for row, totals in zip(rows, sums, strict=True):
                    one = self.load(builder.add(row, at))
                    for other, total in zip(met, totals, strict=True):
                        self._add_product(one, other, total)
        name = f"llvm.vector.reduce.fadd.{self._suffix}"
        reduce = cgutils.get_or_insert_function(builder.module, ir.FunctionType(self.scalar, [self.scalar, self.vector]), name)
        for row, totals in enumerate(sums):
            start = self.place(c, row, c_stride)
            for column, total in enumerate(totals):
                to = self._as_pointer(self.place(start, column, self.itemsize), self.scalar)
                builder.store(builder.call(reduce, (builder.load(to), builder.load(total)), fastmath=("reassoc",)), to)

    def turned(self, rows: list[Any]) -> list[Any]:
        """The columns of a square: of pairs of vectors ever larger parts are exchanged."""
        part = 1
        while part < self.lanes:
            lower = [lane if not lane & part else self.lanes + lane - part for lane in range(self.lanes)]
            upper = [lane + part for lane in lower]
            for row in range(self.lanes):
                if not row & part:
                    pair = rows[row], rows[row + part]
                    rows[row], rows[row + part] = (self.picked(*pair, lanes) for lanes in (lower, upper))
            part *= 2
        return rows

    def place(self, address: Any, number: Any, stride: Any) -> Any:
        """The address of one of several things that lie *stride* bytes apart."""
        return self.builder.add(address, self.times(number, stride))

    def times(self, left: Any, right: Any) -> Any:
        """A product of whole numbers."""
        return self.builder.mul(*(self.number(factor) if isinstance(factor, int) else factor for factor in (left, right)))

    def entry(self, table: Any, number: Any) -> Any:
        """An entry of a table of numbers."""
        return self.builder.load(self._as_pointer(self.place(table, number, self.word.width // 8), self.word))

    def number(self, value: int) -> Any:
        return ir.Constant(self.word, value)

    def _as_pointer(self, address: Any, of: Any) -> Any:
        return self.builder.inttoptr(address, ir.PointerType(of))

    def _variable(self, value: Any) -> Any:
        variable = cgutils.alloca_once(self.builder, self.vector)
        self.builder.store(value, variable)
        return variable

    def load(self, address: Any, known: Any = None) -> Any:
        """A vector from memory, or those elements that flags name, with zeros in place of others."""
        if known is None:
            return self.load_of(self.vector, address)
        return self._masked("load", self.vector, [address], known, [self.zeros])

    def load_of(self, kind: Any, address: Any) -> Any:
        """A number or a vector from memory."""
        return self.builder.load(self._as_pointer(address, kind), align=self.itemsize)

    def store(self, value: Any, address: Any, known: Any = None) -> None:
        """Write a number or a vector to memory, or those elements of one that flags name."""
        if known is None:
            self.builder.store(value, self._as_pointer(address, value.type), align=self.itemsize)
        else:
            self._masked("store", ir.VoidType(), [value, address], known, [])

    def many(self, value: float) -> Any:
        """A vector of a number."""
        return ir.Constant(self.vector, [ir.Constant(self.scalar, value)] * self.lanes)

    def at_least(self, low: Any, value: Any) -> Any:
        """The elements of *low* in place of those that are less."""
        return self.builder.select(self.builder.fcmp_ordered("<", value, low), low, value)

    def _masked(self, name: str, result: Any, first: list[Any], known: Any, rest: list[Any]) -> Any:
        *values, address = first
        arguments = [*values, self._as_pointer(address, self.vector), ir.IntType(32)(self.itemsize), known, *rest]
        function = ir.FunctionType(result, [argument.type for argument in arguments])
        full = f"llvm.masked.{name}.{self._suffix}.p0"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, function, full), arguments)

    def first(self, count: int) -> Any:
        """Flags for the first lanes of a vector; None for all."""
        return None if count == self.lanes else self._flags([lane < count for lane in range(self.lanes)])

    def before(self, count: Any, part: int = 0) -> Any:
        """Flags for those lanes of a vector, or of one behind it, that are among the first so many."""
        numbers = list(range(part * self.lanes, (part + 1) * self.lanes))
        return self.builder.icmp_signed("<", ir.Constant(ir.VectorType(self.word, self.lanes), numbers), self._repeated(count))

    def _flags(self, values: list[bool]) -> Any:
        return ir.Constant(ir.VectorType(ir.IntType(1), self.lanes), [ir.IntType(1)(value) for value in values])

    def spread(self, address: Any) -> Any:
        """A vector of the same number everywhere."""
        return self._repeated(self.load_of(self.scalar, address))

    def _repeated(self, one: Any) -> Any:
        vector, number = ir.VectorType(one.type, self.lanes), ir.IntType(32)
        first = self.builder.insert_element(ir.Constant(vector, ir.Undefined), one, number(0))
        return self.builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(number, self.lanes), None))

    def picked(self, left: Any, right: Any, lanes: list[int]) -> Any:
        """A vector of lanes of two others."""
        number = ir.IntType(32)
        return self.builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(number, len(lanes)), [number(lane) for lane in lanes]))

    def _add_product(self, left: Any, right: Any, total: Any) -> None:
        function = ir.FunctionType(self.vector, [self.vector] * 3)
        multiply_add = cgutils.get_or_insert_function(self.builder.module, function, f"llvm.fmuladd.{self._suffix}")
        self.builder.store(self.builder.call(multiply_add, (left, right, self.builder.load(total))), total)


def written(write: Callable[..., None]) -> Any:
    """An intrinsic for compiled code, from a function that generates it, given :class:`Code` and all arguments but the last, an array."""

    def typed(typing: Any, *arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            write(Code(context, builder, arguments[-1]), *values[:-1])
            return context.get_dummy_value()

        kinds = [types.boolean if isinstance(argument, types.Boolean) else types.intp for argument in arguments[:-1]]
        return types.void(*kinds, arguments[-1]), generate

    like = Parameter("like", Parameter.POSITIONAL_OR_KEYWORD)
    typed.__signature__ = Signature([*signature(write).parameters.values(), like])  # type: ignore[attr-defined]
    typed.__name__ = write.__name__
    return intrinsic(typed)


@written
def gathered_tile(
    code: Code, apart: Any, rows: Any, a: Any, a_stride: Any, b: Any, places: Any, depth: Any, c: Any, c_stride: Any, bias: Any,
    residual: Any, rectify: Any,
) -> None:  # fmt: skip
    def line(number: Any) -> Any:
        return code.builder.add(b, code.entry(places, number))

    def finish(totals: list[list[Any]], ends: list[list[Any]], known: list[Any]) -> None:
        with code.builder.if_then(code.is_there(bias)):
            code.add_to_rows(totals, bias)
        code.add_residual(totals, ends, known, residual)
        with code.builder.if_then(rectify):
            code.rectify(totals)

    with code.builder.if_else(code.is_there(apart)) as (two, one):
        for vectors, block in ((2, two), (1, one)):
            with block:
                code.multiply(
                    rows, a, a_stride, code.itemsize, line, depth, c, c_stride, vectors, finish=finish, apart=apart, residual=residual
                )


@written
def pixels_tile(code: Code, rows: Any, a: Any, a_places: Any, b: Any, places: Any, depth: Any, c: Any) -> None:
    for count in code.cases(rows, range(1, MOST_ROWS + 1)):
        starts = [code.builder.add(a, code.entry(a_places, row)) for row in range(count)]
        ends, known = code.vectors_of(count, c, PANEL_BYTES, 2), [None] * 2
        sums = [[code.load(place) for place in to] for to in ends]
        totals = code.products(
            starts, lambda number: code.entry(places, number), lambda number: code.place(b, number, PANEL_BYTES), [0, VECTOR_BYTES], depth,
            sums, known,
        )  # fmt: skip
        code.store_all(totals, ends, known)


@written
def strided_tile(
    code: Code, is_half: Any, adds: Any, rows: Any, a: Any, a_stride: Any, a_step: Any, b: Any, b_stride: Any, depth: Any,
    c: Any, c_stride: Any,
) -> None:  # fmt: skip
    def line(number: Any) -> Any:
        return code.place(b, number, b_stride)

    def multiply(vectors: int) -> None:
        with code.builder.if_else(adds) as (added, anew):
            for is_sum, block in ((True, added), (False, anew)):
                with block:
                    code.multiply(rows, a, a_stride, a_step, line, depth, c, c_stride, vectors, is_sum)

    with code.builder.if_else(is_half) as (half, whole):
        with half:
            multiply(1)
        with whole:
            multiply(2)


@written
def finished_tile(
    code: Code, rows: Any, a: Any, a_stride: Any, a_step: Any, b: Any, depth: Any, c: Any, c_stride: Any, columns: Any,
    is_sum: Any, bias: Any, of_rows: Any, residual: Any, rectify: Any,
) -> None:  # fmt: skip
    builder = code.builder

    def line(number: Any) -> Any:
        return code.place(b, number, PANEL_BYTES)

    def finish(totals: list[list[Any]], ends: list[list[Any]], known: list[Any]) -> None:
        with builder.if_then(is_sum):
            code.add_all(totals, ends, known)
        with builder.if_then(code.is_there(bias)), builder.if_else(of_rows) as (by_row, by_column):
            with by_row:
                code.add_to_rows(totals, bias)
            with by_column:
                code.add_all(totals, [[code.place(bias, part, VECTOR_BYTES) for part in range(len(known))]] * len(totals), known)
        code.add_residual(totals, ends, known, residual)
        with builder.if_then(rectify):
            code.rectify(totals)

    def multiply(vectors: int, known: Any) -> None:
        code.multiply(
            rows, a, a_stride, a_step, line, depth, c, c_stride, vectors, columns=known, is_filled=True, finish=finish, residual=residual
        )

    with builder.if_else(builder.icmp_signed("<=", columns, code.number(code.lanes))) as (half, more):
        with half:
            multiply(1, columns)
        with more, builder.if_else(builder.icmp_signed("==", columns, code.number(2 * code.lanes))) as (whole, part):
            with whole:
                multiply(2, None)
            with part:
                multiply(2, columns)


@written
def panels_tile(
    code: Code, adds: Any, rows: Any, panels: Any, a: Any, a_stride: Any, b: Any, b_step: Any, depth: Any, columns: Any, added: Any,
    added_stride: Any, c: Any, c_stride: Any,
) -> None:  # fmt: skip
    code.multiply_panels(adds, rows, panels, a, a_stride, b, b_step, depth, columns, added, added_stride, c, c_stride)


@written
def wide_tile(
    code: Code, rows: Any, a: Any, a_stride: Any, a_step: Any, b: Any, b_stride: Any, depth: Any, columns: Any, c: Any, c_stride: Any
) -> None:  # fmt: skip
    def line(number: Any) -> Any:
        return code.place(b, number, b_stride)

    vectors = WIDE_BYTES // VECTOR_BYTES
    are_all = code.builder.icmp_signed("==", columns, code.number(vectors * code.lanes))
    with code.builder.if_else(are_all) as (whole, part):
        for known, block in ((None, whole), (columns, part)):
            with block:
                code.multiply(rows, a, a_stride, a_step, line, depth, c, c_stride, vectors, False, WIDE_ROWS, known)


@written
def dots(code: Code, a: Any, a_places: Any, b: Any, b_places: Any, runs: Any, count: Any, c: Any, c_stride: Any) -> None:
    code.dots(a, a_places, b, b_places, runs, count, c, c_stride)


@written
def turn(code: Code, source: Any, stride: Any, target: Any) -> None:
    for column, value in enumerate(code.turned([code.load(code.place(source, row, stride)) for row in range(code.lanes)])):
        code.store(value, code.place(target, column, PANEL_BYTES))


@written
def take_alternate(code: Code, target: Any, source: Any, size: Any) -> None:
    for at, begin in _by_vectors(code, source, size):
        value = code.picked(*_spread(code, begin), [*range(0, code.lanes, 2), *range(code.lanes + 1, 2 * code.lanes, 2)])
        code.store(value, code.place(target, at, code.itemsize))
    for at in _singly(code, size):
        code.store(code.load_of(code.scalar, code.place(source, at, 2 * code.itemsize)), code.place(target, at, code.itemsize))


@written
def put_alternate(code: Code, target: Any, source: Any, size: Any) -> None:
    for at, begin in _by_vectors(code, target, size):
        value, lanes = code.load(code.place(source, at, code.itemsize)), range(code.lanes)
        for part, there in enumerate(_spread(code, begin)):
            picks = [code.lanes + (part * code.lanes + lane) // 2 if lane % 2 == part else lane for lane in lanes]
            code.store(code.picked(there, value, picks), code.place(begin, part, (code.lanes - 1) * code.itemsize))
    for at in _singly(code, size):
        code.store(code.load_of(code.scalar, code.place(source, at, code.itemsize)), code.place(target, at, 2 * code.itemsize))


def _by_vectors(code: Code, spread: Any, size: Any) -> Iterator[tuple[Any, Any]]:
    """A loop over vectors of elements, which lie in *spread* two apart, if there are enough: the first one's number, and where it lies.

    The last vector ends with the elements: processors of AMD's take long to store parts of vectors.
    """
    lanes = code.number(code.lanes)
    last = code.builder.sub(size, lanes)
    enough = code.builder.icmp_signed(">=", last, code.number(0))
    with code.builder.if_then(enough), cgutils.for_range_slice(code.builder, code.number(0), size, lanes) as (at, _):
        first = code.builder.select(code.builder.icmp_signed("<", at, last), at, last)
        yield first, code.place(spread, first, 2 * code.itemsize)


def _singly(code: Code, size: Any) -> Iterator[Any]:
    """A loop over elements of which there are not enough for a vector."""
    few = code.builder.icmp_signed("<", size, code.number(code.lanes))
    with code.builder.if_then(few), cgutils.for_range(code.builder, size) as loop:
        yield loop.index


def _spread(code: Code, begin: Any) -> tuple[Any, Any]:
    """Two vectors from an address on: the even lanes of the first, and the odd ones of the second, are every second element."""
    return code.load(begin), code.load(code.place(begin, 1, (code.lanes - 1) * code.itemsize))


pointer: Any = intrinsic(_pointer)
fetch: Any = _fetching(is_written=True)
fetch_to_read: Any = _fetching(is_written=False)
