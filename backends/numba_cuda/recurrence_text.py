"""The kernel of a recurrence: a block takes four sequences through all steps, and threads wait for those of their block alone.

Formulas that follow one another go through an element in registers.  In products a thread computes a column for the four rows, so that each
number of a matrix is read once; it adds terms in order, in pieces of ``TERMS``.  An array is 56 bytes of arguments, so that more than 73
arrays need a driver of CUDA 12.1, which takes 32 KiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from typing import Any

from numba import cuda

from ...core.formulas.formula import Symbol, Term
from ...core.formulas.source import values_in
from ...core.machine.language import jittable
from ..recurrences.element import Element, shifts, suffix, unwritten
from ..recurrences.operations import Product
from ..recurrences.plan import Member, Phase, Plan, Wait
from .compiler import Kernel
from .formulas import LANGUAGE, names_for

ROWS = 4
"""Sequences of a block."""

TERMS = 64
"""Terms of a product that are added up by themselves."""


def kernel(dtype: Any, plan: Plan, passing: Set[int] = frozenset()) -> Kernel:
    """The kernel of a plan.

    It takes the plan's memories, the first row of each step, the first and the last step to be done, and whether they come in the order of
    time; an iteration is ``ROWS`` sequences.

    Args:
        dtype: element type of all memories.
        plan: the plan.
        passing: memories that nothing else reads, so that they are written only if the kernel reads them.
    """
    return _compiled(text(plan, passing), len(plan.memories), dtype)


@cache
def _compiled(text: str, memories: int, dtype: Any) -> Kernel:
    names = {"cuda": cuda, "multiply": multiply, **names_for(dtype)}
    exec(text, names)
    return Kernel(names["recurrence"], f"{'R1 ' * memories}I1 q q q", by_blocks=True)


def text(plan: Plan, passing: Set[int] = frozenset()) -> str:
    """The kernel as Python, see :func:`kernel`."""
    unread = unwritten(plan, passing, _Syntax())
    memories = "".join(f"x{number}, " for number in range(len(plan.memories)))
    lines = [*_steps(plan), *(line for phase in plan.phases for line in _phase(phase, unread))]
    body = "\n".join(f"            {line}" for line in lines)
    return f"""def recurrence({memories}offsets, begin, end, rising):
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    for tile in range({ROWS} * cuda.blockIdx.x, offsets[1] - offsets[0], {ROWS} * cuda.gridDim.x):
        for number in range(end - begin):
            step = begin + number if rising else end - 1 - number
            row0 = offsets[step]
            count = offsets[step + 1] - row0
            rows = min(count - tile, {ROWS})
            if rows <= 0:
                continue
{body}
"""


def _steps(plan: Plan) -> Iterator[str]:
    """The first rows of the other steps that are touched, and how many of a step's sequences they have."""
    for shift in shifts(plan):
        name = suffix(shift)
        yield f"step{name} = step + ({shift}) if rising else step - ({shift})"
        yield f"is{name} = step{name} >= 0 and step{name} < len(offsets) - 1"
        yield f"row{name} = offsets[step{name}] if is{name} else 0"
        yield f"near{name} = min(count, offsets[step{name} + 1] - row{name}) if is{name} else 0"


def _phase(phase: Phase, unread: Set[int]) -> Iterator[str]:
    if phase.wait != Wait.NOBODY:  # a block has all columns
        yield "cuda.syncthreads()"
    first = phase.members[0]
    yield from _product(first, first.operation) if isinstance(first.operation, Product) else _formulas(phase.members, unread)


def _product(member: Member, product: Product) -> Iterator[str]:
    left, matrix = member.reads
    operands = (f"x{one.memory}, (row0 + tile) * {one.stride} + {one.offset}, {one.stride}" for one in (left, member.target))
    sizes = product.depth, member.target.width
    yield f"multiply({', '.join(operands)}, x{matrix.memory}, {matrix.offset}, {', '.join(map(str, sizes))}, rows, thread, threads)"


def _formulas(members: Sequence[Member], unread: Set[int]) -> Iterator[str]:
    units = members[0].unit
    yield f"for at in range(thread, rows * {units}, threads):"
    yield f"    i, u = tile + at // {units}, at % {units}"
    yield from (f"    {line}" for line in Element(_Syntax(), unread).lines(members))


class _Syntax:
    """The syntax of Python."""

    def value(self, term: Term, names: Mapping[Symbol, str]) -> tuple[Sequence[str], str]:
        statements, (value,) = values_in(LANGUAGE, (term,), names)
        return statements, value

    def loaded(self, place: str) -> str:
        return place

    def chosen(self, condition: str, value: str, other: str) -> str:
        return f"({value}) if {condition} else {'zero' if other == '0' else other}"

    def named(self, name: str, statements: Sequence[str], value: str) -> Iterator[str]:
        yield from statements
        yield f"{name} = {value}"

    def stored(self, place: str, name: str, condition: str) -> str:
        return f"{f'if {condition}: ' if condition else ''}{place} = {name}"


@jittable
def multiply(
    left: Any, left_at: int, left_stride: int, target: Any, target_at: int, target_stride: int, matrix: Any, matrix_at: int, depth: int,
    width: int, rows: int, thread: int, threads: int,
) -> None:  # fmt: skip
    """Multiply up to four rows of *left*, of *depth* elements each, by a matrix whose rows follow one another, ``(depth, width)``.

    Args:
        left, left_at, left_stride: memory that has the rows, the place of the first one, and how far it is to the next.
        target, target_at, target_stride: the same of the result.
        matrix, matrix_at: memory that has the matrix, and its place.
        depth, width: its size.
        rows: how many rows there are.
        thread, threads: number of this thread, and how many share the columns.
    """
    zero = target.dtype.type(0)
    row0 = left_at
    row1 = left_at + min(1, rows - 1) * left_stride
    row2 = left_at + min(2, rows - 1) * left_stride
    row3 = left_at + min(3, rows - 1) * left_stride
    for column in range(thread, width, threads):
        total0 = total1 = total2 = total3 = zero
        for start in range(0, depth, TERMS):
            piece0 = piece1 = piece2 = piece3 = zero
            for k in range(start, min(start + TERMS, depth)):
                y = matrix[matrix_at + k * width + column]
                piece0 += left[row0 + k] * y
                piece1 += left[row1 + k] * y
                piece2 += left[row2 + k] * y
                piece3 += left[row3 + k] * y
            total0 += piece0
            total1 += piece1
            total2 += piece2
            total3 += piece3
        at = target_at + column
        target[at] = total0
        if rows > 1:
            target[at + target_stride] = total1
        if rows > 2:
            target[at + 2 * target_stride] = total2
        if rows > 3:
            target[at + 3 * target_stride] = total3
