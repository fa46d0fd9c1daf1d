"""Kernel source of a recurrence: one kernel runs all steps, with barriers between its blocks.

Of each step's rows a block takes every so many tiles, and of the columns its share of the units
(:mod:`~cntk.backends.recurrences.plan`).  Formulas that follow one another go through an element in registers.  Products go through shared
memory by tiles of ``ROWS`` rows, ``SLOTS`` columns and ``TERMS`` terms: a thread adds the terms of a tile one after another for four rows,
and then the sums of tiles, so that the order depends on nothing but the number of terms.

A barrier is a counter in device memory: the last block to arrive resets it and increments a generation number, for which the others poll.
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
from .compiler import THREADS
from .prelude import REAL, prelude

ROWS = 64
"""Rows per tile."""

SLOTS = 16
"""Columns per tile of a product; a tile has four rows and one column for each thread."""

TERMS = 64
"""Terms per tile of a product."""

TEXT = f"""
#define ROWS {ROWS}u
#define SLOTS {SLOTS}u
#define TERMS {TERMS}u
#define THREADS {THREADS}u

__device__ __forceinline__ unsigned least(unsigned x, unsigned y) {{ return x < y ? x : y; }}

/* Barrier for the blocks of a row of the grid; what they have written before is visible to all of them afterwards. */
__device__ __forceinline__ void wait_for_grid(unsigned *counters) {{
    __syncthreads();
    if (gridDim.x > 1) {{
        if (threadIdx.x == 0) {{
            unsigned *const arrived = counters + 2 * blockIdx.y;
            volatile unsigned *const generation = arrived + 1;
            const unsigned before = *generation;
            __threadfence();
            if (atomicAdd(arrived, 1u) == gridDim.x - 1) {{
                *(volatile unsigned *)arrived = 0;
                __threadfence();
                *generation = before + 1;
            }} else {{
                while (*generation == before) {{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
                    __nanosleep(20);
#endif
                }}
            }}
            __threadfence();
        }}
        __syncthreads();
    }}
}}

/* The range of units that a block computes. */
struct Share {{
    unsigned begin, count;
    __device__ __forceinline__ explicit Share(unsigned units) {{
        const unsigned most = (units + gridDim.x - 1) / gridDim.x;
        begin = least(blockIdx.x * most, units);
        count = least(units - begin, most);
    }}
}};
"""

PRODUCTS = """
struct alignas(4 * sizeof(real)) Four {
    real of[4];
};

struct Tiles {
    Four left[TERMS][ROWS / 4 + 1];
    real right[TERMS][SLOTS];
};

template <unsigned DEPTH, unsigned WIDTH, unsigned UNITS, unsigned LEFT, unsigned TARGET, unsigned BY_TERM, unsigned BY_COLUMN>
__device__ __forceinline__ void multiply(const stored *left, const stored *matrix, stored *target, unsigned count, Tiles &tiles) {
    const Share share(UNITS);
    const unsigned columns = share.count * (WIDTH / UNITS), slot = threadIdx.x % SLOTS, four = threadIdx.x / SLOTS;
    for (unsigned tile = blockIdx.y * ROWS; tile < count; tile += gridDim.y * ROWS)
        for (unsigned from = 0; from < columns; from += SLOTS) {
            real total[4] = {0, 0, 0, 0};
            for (unsigned term = 0; term < DEPTH; term += TERMS) {
                const unsigned terms = least(DEPTH - term, TERMS);
                __syncthreads();
                for (unsigned at = threadIdx.x; at < ROWS * TERMS; at += THREADS) {
                    const unsigned k = at % TERMS, i = at / TERMS;
                    if (k < terms)
                        tiles.left[k][i / 4].of[i % 4] = tile + i < count ? value_of(left[(size)(tile + i) * LEFT + term + k]) : (real)0;
                }
                for (unsigned at = threadIdx.x; at < TERMS * SLOTS; at += THREADS) {
                    const unsigned k = BY_TERM == 1 ? at % TERMS : at / SLOTS, place = BY_TERM == 1 ? at / TERMS : at % SLOTS;
                    const unsigned mine = from + place;
                    if (k < terms && mine < columns) {
                        const unsigned column = mine / share.count * UNITS + share.begin + mine % share.count;
                        tiles.right[k][place] = value_of(matrix[(size)(term + k) * BY_TERM + (size)column * BY_COLUMN]);
                    }
                }
                __syncthreads();
                if (tile + 4 * four < count && from + slot < columns) {
                    real piece[4] = {0, 0, 0, 0};
#pragma unroll 8
                    for (unsigned k = 0; k < terms; ++k) {
                        const Four x = tiles.left[k][four];
                        const real y = tiles.right[k][slot];
#pragma unroll
                        for (int j = 0; j < 4; ++j)
                            piece[j] = fma(x.of[j], y, piece[j]);
                    }
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        total[j] += piece[j];
                }
            }
            if (from + slot < columns) {
                const unsigned mine = from + slot, column = mine / share.count * UNITS + share.begin + mine % share.count;
#pragma unroll
                for (unsigned j = 0; j < 4; ++j)
                    if (tile + 4 * four + j < count)
                        store(target[(size)(tile + 4 * four + j) * TARGET + column], total[j]);
            }
        }
}
"""


def text(dtype: Any, plan: Plan, passing: Set[int] = frozenset()) -> str:
    """Return the source of a plan's kernel, which is called ``recurrence``.

    The kernel takes the plan's memories, the number of steps with the first row of each, two counters per row of the grid, which must be 0
    before the first launch, the range of steps to run, whose end may lie behind the last one, and whether they run forward in time.

    Args:
        dtype: element type of all memories but first rows and counters.
        plan: the plan.
        passing: memories that nothing else reads; they are written only if the kernel itself reads them.
    """
    real = REAL[np.dtype(dtype).name]
    syntax = _Syntax(real)
    unread = unwritten(plan, passing, syntax)
    has_products = any(isinstance(one.operation, Product) for one in plan.members)
    memories = "".join(f"stored *x{number}, " for number in range(len(plan.memories)))
    lines = [*_steps(plan), *(line for phase in plan.phases for line in _phase(phase, syntax, unread))]
    body = "\n".join(f"        {line}" for line in lines)
    return f"""{prelude(dtype, "unsigned long long")}{TEXT}{PRODUCTS if has_products else ""}
extern "C" __global__ void __launch_bounds__({THREADS}, 1)
recurrence({memories}const long long *first_rows, unsigned *counters, long long begin, long long end, int rising) {{
    {"__shared__ Tiles tiles;" if has_products else ""}
    const long long steps = first_rows[0], *const offsets = first_rows + 1, after = end < steps ? end : steps;
    for (long long n = 0; n < after - begin; ++n) {{
        const long long step = rising ? begin + n : after - 1 - n;
        const size row0 = offsets[step];
        const unsigned count = offsets[step + 1] - row0;
{body}
    }}
}}
"""


def _steps(plan: Plan) -> Iterator[str]:
    """The first rows of the other steps that are touched, and how many of a step's sequences they have."""
    for shift in shifts(plan):
        name = suffix(shift)
        yield f"const long long step{name} = rising ? step + ({shift}) : step - ({shift});"
        yield f"const bool is{name} = step{name} >= 0 && step{name} < steps;"
        yield f"const size row{name} = is{name} ? offsets[step{name}] : 0;"
        yield f"const unsigned near{name} = is{name} ? least(count, (unsigned)(offsets[step{name} + 1] - row{name})) : 0;"


def _phase(phase: Phase, syntax: _Syntax, unread: Set[int]) -> Iterator[str]:
    yield from {Wait.NOBODY: (), Wait.BLOCK: ("__syncthreads();",), Wait.GRID: ("wait_for_grid(counters);",)}[phase.wait]
    first = phase.members[0]
    yield from _product(first, first.operation) if isinstance(first.operation, Product) else _formulas(phase.members, syntax, unread)


def _product(member: Member, product: Product) -> Iterator[str]:
    left, matrix = member.reads
    sizes = product.depth, member.target.width, member.unit, left.stride, member.target.stride, product.by_term, product.by_column
    places = [f"x{left.memory} + row0 * {left.stride} + {left.offset}", f"x{matrix.memory} + {matrix.offset}"]
    places.append(f"x{member.target.memory} + row0 * {member.target.stride} + {member.target.offset}")
    yield f"multiply<{', '.join(map(str, sizes))}>({', '.join(places)}, count, tiles);"


def _formulas(members: Sequence[Member], syntax: _Syntax, unread: Set[int]) -> Iterator[str]:
    yield "{"
    yield f"    const Share share({members[0].unit});"
    yield "    for (unsigned tile = blockIdx.y * ROWS; tile < count; tile += gridDim.y * ROWS)"
    yield "        for (unsigned at = threadIdx.x; at < ROWS * share.count; at += THREADS) {"
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
