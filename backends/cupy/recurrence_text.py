"""Kernel source of a recurrence: one kernel runs all steps, with barriers between its blocks.

Of each step's rows a block takes every so many tiles, and of the columns its share of the units
(:mod:`~cntk.backends.recurrences.plan`).  Formulas that follow one another go through an element in registers.  Products go through shared
memory (:mod:`.recurrence_product`).

At a barrier, one thread of each block adds to a counter in device memory, and polls it until all have.
All blocks must therefore be resident at once, which a cooperative launch guarantees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from ...core.formulas.c_source import values_in_c
from ...core.formulas.formula import Symbol, Term
from ..recurrences.element import Element, shifts, suffix, unwritten
from ..recurrences.operations import Product
from ..recurrences.plan import Member, Phase, Plan, Wait
from . import recurrence_product
from .compiler import THREADS
from .prelude import REAL, prelude
from .recurrence_grid import Grid

APART = 32
"""Distance between counters, so that each has a cache line of its own."""

SIZE = {"float": 4, "double": 8}
"""Bytes of an element in registers, by its type in C."""

TEXT = f"""
#define THREADS {THREADS}u

__device__ __forceinline__ unsigned least(unsigned x, unsigned y) {{ return x < y ? x : y; }}

/* A counter in device memory for the blocks of a row of the grid.  What all of them add is 2**31, so that the last one turns its highest
   bit; it is never reset.  What blocks have written before is visible to all of them afterwards. */
struct Barrier {{
    unsigned *const counter;
    unsigned before;

    __device__ __forceinline__ explicit Barrier(unsigned *counters)
        : counter(counters + {APART}u * blockIdx.y), before(*(volatile unsigned *)counter) {{}}

    __device__ __forceinline__ void wait() {{
        __syncthreads();
        if (gridDim.x > 1) {{
            before ^= 1u << 31;
            if (threadIdx.x == 0) {{
                add(blockIdx.x == 0 ? (1u << 31) - (gridDim.x - 1) : 1u);
                while ((value() ^ before) >> 31)
                    pause();
            }}
            __syncthreads();
        }}
    }}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    __device__ __forceinline__ void add(unsigned x) {{
        asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(x) : "memory");
    }}
    __device__ __forceinline__ unsigned value() {{
        unsigned x;
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(counter) : "memory");
        return x;
    }}
    __device__ __forceinline__ void pause() {{}}
#else
    __device__ __forceinline__ void add(unsigned x) {{
        __threadfence();
        atomicAdd(counter, x);
    }}
    __device__ __forceinline__ unsigned value() {{
        const unsigned x = *(volatile unsigned *)counter;
        __threadfence();
        return x;
    }}
#ifdef __CUDACC_RTC__
    __device__ __forceinline__ void pause() {{}}
#else
    void pause() {{ __nanosleep(20); }}
#endif
#endif
}};

/* The rows of a step: none where there is no such step. */
struct Rows {{
    size first;
    unsigned count;
}};

__device__ __forceinline__ Rows rows_of(const long long *offsets, long long steps, long long step) {{
    const bool exists = step >= 0 && step < steps;
    const size first = exists ? offsets[step] : 0;
    return {{first, exists ? (unsigned)(offsets[step + 1] - first) : 0}};
}}

/* The range of units that a block computes. */
struct Share {{
    unsigned most, begin, count;
    __device__ __forceinline__ explicit Share(unsigned units) {{
        most = (units + gridDim.x - 1) / gridDim.x;
        begin = least(blockIdx.x * most, units);
        count = least(units - begin, most);
    }}
}};
"""


def text(dtype: Any, plan: Plan, grid: Grid, passing: Set[int] = frozenset()) -> str:
    """Return the source of a plan's kernel, which is called ``recurrence``.

    The kernel takes the plan's memories; the number of steps with the first row of each; counters, one of :data:`APART` for each row of the
    grid, which must be 0 before the first launch; the range of steps to run, whose end may lie behind the last one, and whether they run
    forward in time; the number of rows of a tile, and how many times four columns a block brings at a time.

    Args:
        dtype: element type of all memories but first rows and counters.
        plan: the plan.
        grid: what it is launched with, of whose numbers of blocks the source is independent.
        passing: memories that nothing else reads; they are written only if the kernel itself reads them.
    """
    real = REAL[np.dtype(dtype).name]
    syntax = _Syntax(real)
    unread = unwritten(plan, passing, syntax)
    products = [phase.members[0] for phase in plan.phases if isinstance(phase.members[0].operation, Product)]
    of_products = recurrence_product.text(SIZE[real], THREADS * max(grid.each), grid.holds) if products else ""
    memories = "".join(f"stored *x{number}, " for number in range(len(plan.memories)))
    start = "\n".join(f"    {line}" for line in _start(products, grid))
    lines = [*_steps(plan), *(line for phase in plan.phases for line in _phase(phase, syntax, unread, products))]
    body = "\n".join(f"        {line}" for line in lines)
    following = "\n".join(f"    Rows {line}" for line in _rows(plan))
    return f"""{prelude(dtype, "unsigned long long")}{TEXT}{of_products}
extern "C" __global__ void __launch_bounds__({THREADS}, 1)
recurrence({memories}const long long *first_rows, unsigned *counters, long long begin, long long end, int rising,
           unsigned rows, unsigned width) {{
    Barrier barrier(counters);
{start}
    const long long steps = first_rows[0], *const offsets = first_rows + 1, after = end < steps ? end : steps, ahead = rising ? 1 : -1;
    long long step = rising ? begin : after - 1;
{following}
    for (long long n = 0; n < after - begin; ++n, step += ahead) {{
{body}
    }}
}}
"""


def _start(products: Sequence[Member], grid: Grid) -> Iterator[str]:
    """Shared memory, and what is in it from the first step to the last."""
    if products:
        yield "extern __shared__ Four shared[];"
        yield "Space space(shared, rows, width);"
    for number, (member, each) in enumerate(zip(products, grid.each, strict=True)):
        operation: Any = member.operation
        left, matrix = member.reads
        sizes = operation.depth, member.target.width, member.unit, left.stride, member.target.stride, operation.by_term, operation.by_column
        parameters = ", ".join(map(str, (*sizes, recurrence_product.teams_of(operation.depth), each)))
        yield f"const Product<{parameters}> product{number}(x{matrix.memory} + {matrix.offset}, space);"


def _rows(plan: Plan, later: str = "") -> Iterator[str]:
    """Look up the rows of a step and of the others that are touched; what is looked up a step before is there when it is needed."""
    for shift in (0, *shifts(plan)):
        yield f"following{suffix(shift)} = rows_of(offsets, steps, step + ({shift}{later}) * ahead);"


def _steps(plan: Plan) -> Iterator[str]:
    """The first rows of the step and of the others that are touched, and how many of the step's sequences they have."""
    yield "const size row0 = following0.first;"
    yield "const unsigned count = following0.count;"
    for shift in shifts(plan):
        name = suffix(shift)
        yield f"const size row{name} = following{name}.first;"
        yield f"const unsigned near{name} = least(count, following{name}.count);"
    yield from _rows(plan, " + 1")


def _phase(phase: Phase, syntax: _Syntax, unread: Set[int], products: Sequence[Member]) -> Iterator[str]:
    yield from {Wait.NOBODY: (), Wait.BLOCK: ("__syncthreads();",), Wait.GRID: ("barrier.wait();",)}[phase.wait]
    first = phase.members[0]
    if isinstance(first.operation, Product):
        left, target = (f"x{one.memory} + row0 * {one.stride} + {one.offset}" for one in (first.reads[0], first.target))
        number = next(number for number, one in enumerate(products) if one is first)
        yield f"product{number}.multiply({left}, {target}, count, space);"
    else:
        yield from _formulas(phase.members, syntax, unread)


def _formulas(members: Sequence[Member], syntax: _Syntax, unread: Set[int]) -> Iterator[str]:
    yield "{"
    yield f"    const Share share({members[0].unit});"
    yield "    for (unsigned tile = blockIdx.y * rows; tile < count; tile += gridDim.y * rows)"
    yield "        for (unsigned at = threadIdx.x; at < rows * share.count; at += THREADS) {"
    yield "            const unsigned i = tile + at / share.count, u = share.begin + at % share.count;"
    yield "            if (i >= count)"
    yield "                break;"
    yield from (f"            {line}" for line in Element(syntax, unread).lines(members))
    yield "        }"
    yield "}"


class _Syntax:
    """The syntax of CUDA C++, with registers of the type *real*."""

    def __init__(self, real: str) -> None:
        self._real = real

    def value(self, term: Term, names: Mapping[Symbol, str]) -> tuple[Sequence[str], str]:
        statements, (value,) = values_in_c((term,), names, self._real)
        return statements, value

    def loaded(self, place: str) -> str:
        return f"value_of({place})"

    def chosen(self, condition: str, value: str, other: str) -> str:
        return f"{condition} ? {value} : {other}"

    def named(self, name: str, statements: Sequence[str], value: str) -> Iterator[str]:
        if not statements:
            yield f"const {self._real} {name} = {value};"
            return
        yield f"{self._real} {name};"
        yield "{"
        yield from (f"    {statement}" for statement in (*statements, f"{name} = {value};"))
        yield "}"

    def stored(self, place: str, name: str, condition: str) -> str:
        return f"{f'if ({condition}) ' if condition else ''}store({place}, {name});"
