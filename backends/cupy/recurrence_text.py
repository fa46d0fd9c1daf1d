"""The text of a recurrence: all steps in one kernel, whose blocks wait for each other in between.

Of each step's rows a block takes every so many tiles, and of the columns its share of the units (:mod:`.recurrence_plan`).  Formulas that
follow one another go through an element in registers.  Products go through shared memory by tiles of ``ROWS`` rows, ``SLOTS`` columns and
``TERMS`` terms: a thread adds the terms of a tile one after another for four rows, and then the sums of tiles, so that the order depends
on nothing but the number of terms.

Blocks wait by a counter in the device's memory: the last one to come resets it and begins another generation, which the others watch.
That needs all blocks on the device at once, which a cooperative launch ensures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np

from ...core.formulas.c_source import values_in_c
from .compiler import THREADS
from .prelude import REAL, prelude
from .recurrence_lines import Formula, Product
from .recurrence_plan import Columns, Member, Phase, Plan, Wait

ROWS = 64
"""Rows of a tile."""

SLOTS = 16
"""Columns of a tile of products: with four rows each, as many as all threads have."""

TERMS = 64
"""Terms of a tile of products."""

TEXT = f"""
#define ROWS {ROWS}u
#define SLOTS {SLOTS}u
#define TERMS {TERMS}u
#define THREADS {THREADS}u

__device__ __forceinline__ unsigned least(unsigned x, unsigned y) {{ return x < y ? x : y; }}

/* All blocks of a row of the grid come here before any goes on; what they have written is seen then. */
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

/* The units of a block. */
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
    """The text of a plan; its kernel is called ``recurrence``.

    Its arguments are the plan's memories, the first row of each step, two counters for each row of the grid, which are 0 at first, how
    many steps there are, the first and the last one to be done, and whether they come in the order of time.

    Args:
        dtype: element type of all memories but offsets and counters.
        plan: the plan.
        passing: memories that nothing else reads, so that they are written only if the kernel reads them.
    """
    real = REAL[np.dtype(dtype).name]
    read = {one.memory for member in plan.members if isinstance(member.operation, Product) for one in member.reads}
    for phase in plan.phases:
        read |= _loaded(phase, real)
    has_products = any(isinstance(one.operation, Product) for one in plan.members)
    memories = "".join(f"stored *x{number}, " for number in range(len(plan.addresses)))
    lines = [*_steps(plan), *(line for phase in plan.phases for line in _phase(phase, real, passing - read))]
    body = "\n".join(f"        {line}" for line in lines)
    return f"""{prelude(dtype, "unsigned long long")}{TEXT}{PRODUCTS if has_products else ""}
extern "C" __global__ void __launch_bounds__({THREADS}, 1)
recurrence({memories}const long long *offsets, unsigned *counters, long long steps, long long begin, long long end, int rising) {{
    {"__shared__ Tiles tiles;" if has_products else ""}
    for (long long n = 0; n < end - begin; ++n) {{
        const long long step = rising ? begin + n : end - 1 - n;
        const size row0 = offsets[step];
        const unsigned count = offsets[step + 1] - row0;
{body}
    }}
}}
"""


def _steps(plan: Plan) -> Iterator[str]:
    """The first rows of the other steps that are touched, and how many of a step's sequences they have."""
    shifts = {one.shift for member in plan.members for one in (member.target, *member.reads)} - {0}
    for shift in sorted(shifts):
        name = _name(shift)
        yield f"const long long step{name} = rising ? step + ({shift}) : step - ({shift});"
        yield f"const bool is{name} = step{name} >= 0 && step{name} < steps;"
        yield f"const size row{name} = is{name} ? offsets[step{name}] : 0;"
        yield f"const unsigned near{name} = is{name} ? least(count, (unsigned)(offsets[step{name} + 1] - row{name})) : 0;"


def _phase(phase: Phase, real: str, unread: Set[int]) -> Iterator[str]:
    yield from {Wait.NOBODY: (), Wait.BLOCK: ("__syncthreads();",), Wait.GRID: ("wait_for_grid(counters);",)}[phase.wait]
    first = phase.members[0]
    yield from _product(first, first.operation) if isinstance(first.operation, Product) else _formulas(phase.members, real, unread)


def _loaded(phase: Phase, real: str) -> Set[int]:
    """The memories that formulas read, not having written them before."""
    element = _Element(real, set())
    if not isinstance(phase.members[0].operation, Product):
        list(element.lines(phase.members))
    return element.loaded


def _product(member: Member, product: Product) -> Iterator[str]:
    left, matrix = member.reads
    sizes = product.depth, member.target.width, member.unit, left.stride, member.target.stride, product.by_term, product.by_column
    places = [f"x{left.memory} + row0 * {left.stride} + {left.offset}", f"x{matrix.memory} + {matrix.offset}"]
    places.append(f"x{member.target.memory} + row0 * {member.target.stride} + {member.target.offset}")
    yield f"multiply<{', '.join(map(str, sizes))}>({', '.join(places)}, count, tiles);"


def _formulas(members: Sequence[Member], real: str, unread: Set[int]) -> Iterator[str]:
    yield "{"
    yield f"    const Share share({members[0].unit});"
    yield "    for (unsigned tile = blockIdx.y * ROWS; tile < count; tile += gridDim.y * ROWS)"
    yield "        for (unsigned at = threadIdx.x; at < ROWS * share.count; at += THREADS) {"
    yield "            const unsigned i = tile + at / share.count, u = share.begin + at % share.count;"
    yield "            if (i >= count)"
    yield "                break;"
    yield from (f"            {line}" for line in _Element(real, unread).lines(members))
    yield "        }"
    yield "}"


class _Element:
    """Writes what formulas do with an element of row i and unit u; what has been read or written stays in registers.

    Args:
        real: the type of registers.
        unread: memories that are not written.

    Attributes:
        loaded: memories that are read.
    """

    def __init__(self, real: str, unread: Set[int]) -> None:
        self.loaded: set[int] = set()
        self._real, self._unread = real, unread
        self._count = 0
        self._known: dict[tuple[int, int], str] = {}

    def lines(self, members: Sequence[Member]) -> Iterator[str]:
        """The statements of all members."""
        for member in members:
            for group in range(member.columns_of_unit):
                yield from self._formula(member, member.operation, group * member.unit)  # type: ignore[arg-type]

    def _formula(self, member: Member, formula: Formula, first: int) -> Iterator[str]:
        target, width = member.target, member.target.width
        names = {}
        for symbol, read in zip(formula.reads, member.reads, strict=True):
            is_wide = read.width == width
            key = read.memory, read.offset + first
            if key not in self._known or read.shift or not is_wide:
                name = self._new()
                yield f"const {self._real} {name} = {self._load(read, first, is_wide)};"
                if is_wide and not read.shift:
                    self._known[key] = name
                names[symbol] = name
            else:
                names[symbol] = self._known[key]
        statements, (value,) = values_in_c((formula.term,), names, self._real)
        key, name = (target.memory, target.offset + first), self._new()
        if formula.exists and not target.shift:  # elsewhere the initial state stays
            value = f"{_exists(formula.exists)} ? {value} : {self._known.get(key) or self._load(target, first, True)}"
        yield f"{self._real} {name};"
        yield "{"
        yield from (f"    {statement}" for statement in (*statements, f"{name} = {value};"))
        yield "}"
        if target.memory not in self._unread:
            condition = f"if ({_exists(formula.exists)}) " if formula.exists else ""
            yield f"{condition}store({_place(target, first, True)}, {name});"
        if not target.shift:
            self._known[key] = name

    def _load(self, columns: Columns, first: int, is_wide: bool) -> str:
        """An expression for an element, 0 in rows of another step that it has not."""
        self.loaded.add(columns.memory)
        value = f"value_of({_place(columns, first, is_wide)})"
        return f"{_exists(columns.shift)} ? {value} : 0" if columns.shift else value

    def _new(self) -> str:
        self._count += 1
        return f"v{self._count}"


def _exists(shift: int) -> str:
    """Whether another step has a row i."""
    return f"i < near{_name(shift)}"


def _place(columns: Columns, first: int, is_wide: bool) -> str:
    """The element of some columns that a thread has."""
    row = f"(row{_name(columns.shift)} + i) * {columns.stride} + " if columns.stride else ""
    return f"x{columns.memory}[{row}{columns.offset + first} + u]" if is_wide else f"x{columns.memory}[{row}{columns.offset}]"


def _name(shift: int) -> str:
    """What names of things of another step end in."""
    return str(shift) if shift >= 0 else f"_{-shift}"
