"""Reductions over axes: sums, extremes, sums of exponentials and positions of extremes, in an order that depends on the sizes alone.

A team of threads computes each result; long reductions with few results are split into pieces, which a second kernel combines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.common.shape import size_of
from .compiler import INDEX_NAMES, THREADS, compile, index_type
from .places import Along, merged, place_of
from .prelude import REAL, STORED, prelude

AT_WORK = 65536
"""Threads that keep a large GPU busy."""

SHORTEST = 16
"""Minimum number of terms per thread of a piece."""

MOST_PIECES = 1024
MOST_BLOCKS = 65535


class Rule(NamedTuple):
    """A reduction, as fragments of C.

    Attributes:
        state: members of the accumulator.
        start: initial value of the accumulator.
        take: accumulates the term *x*, number *at*, into *state*.
        merge: combines the accumulator *other* into *state*.
        result: expression for the result; *scale* is an argument of the kernel.
        nbytes: size of an accumulator.
    """

    state: str
    start: str
    take: str
    merge: str
    result: str
    nbytes: int = 8


def _extreme(sign: str) -> Rule:
    take = f"if (state.best == state.best && (x {sign} state.best || x != x)) state.best = x;"
    start = "-INFINITY" if sign == ">" else "INFINITY"
    return Rule("real best;", start, take, f"const real x = other.best; {take}", "state.best")


TOTAL = Rule("double total;", "0", "state.total += x;", "state.total += other.total;", "state.total * scale")
GREATEST, LEAST = _extreme(">"), _extreme("<")
LOG_TOTAL = Rule(
    "double total; real edge;",
    "0, -INFINITY",
    """if (x > state.edge) {
        state.total = state.total * power_of_e(state.edge - x) + 1;
        state.edge = x;
    } else {
        state.total += x == state.edge ? 1 : power_of_e(x - state.edge);
    }""",
    """if (other.edge > state.edge) {
        state.total = state.total * power_of_e(state.edge - other.edge) + other.total;
        state.edge = other.edge;
    } else {
        state.total += other.edge == state.edge ? other.total : other.total * power_of_e(other.edge - state.edge);
    }""",
    "state.edge + logarithm((real)state.total)",
    16,
)
"""Logarithm of the sum of exponentials, each relative to the largest so far."""

PLACE_OF_GREATEST = Rule(
    "real best; size at;",
    "-INFINITY, (size)-1",
    """if (state.at == (size)-1 || state.best == state.best && (x > state.best || x != x)) {
        state.best = x;
        state.at = at;
    }""",
    """const bool is_first = other.at < state.at, is_number = state.best == state.best;
    if (other.best != other.best ? is_number || is_first : is_number && (other.best > state.best || other.best == state.best && is_first))
        state = other;""",
    "state.at",
    16,
)
"""Position of the first of the greatest elements; NaN compares greater than any number."""


class Shape(NamedTuple):
    """Distribution of a reduction over threads.

    Attributes:
        team: number of threads per result.
        neighbours: whether adjacent threads belong to one team; otherwise they take the same term of several results.
        pieces: number of pieces into which the terms of a result are split.
        length: number of terms per piece.
    """

    team: int
    neighbours: bool
    pieces: int
    length: int


def shape_of(outputs: int, terms: int, neighbours: bool) -> Shape:
    """Return the distribution of a reduction with *outputs* results of *terms* terms each.
    >>> from cntk.backends.cupy.folds import shape_of
    >>> shape_of(1000, 10, True), shape_of(1, 1000000, True)
    (Shape(team=16, neighbours=True, pieces=1, length=10), Shape(team=256, neighbours=True, pieces=245, length=4082))
    """
    columns = _power_of_two(min(outputs, 1 if neighbours else 32))
    team = min(THREADS // columns, _power_of_two(max(terms, 1)))
    wanted = AT_WORK // (max(outputs, 1) * team)
    pieces = max(1, min(wanted, -(-terms // (team * SHORTEST)), MOST_PIECES))
    length = -(-terms // pieces)
    return Shape(team, neighbours, max(1, -(-terms // max(length, 1))), length)


def bound(
    backend: Any, rule: Rule, x: Any, out: Any, outputs: Sequence[Along], terms: Sequence[Along], scale: float = 1.0
) -> list[Callable[[], None]]:
    """Return functions that, called in order, reduce an array.

    Args:
        backend: allocates memory for the accumulators of pieces.
        rule: the reduction.
        x: the array.
        out: contiguous array for the results, which may have another element type.
        outputs, terms: the axes of *x* that are kept, and those that are reduced.
        scale: factor of a total.
    """
    count, length = (_count(axes) for axes in (outputs, terms))
    if not count:
        return []
    size = index_type(max(count, length, _reach((*outputs, *terms))))
    inner = merged(terms)[-1].stride <= 1 or count == 1
    shape = shape_of(count, length, inner)
    made = text(x.dtype, out.dtype, INDEX_NAMES[size], rule, outputs, terms, shape)
    numbers = size(count), size(length), size(shape.length), np.float64(scale)
    tiles = min(-(-count * shape.team // THREADS), MOST_BLOCKS)
    if shape.pieces == 1:
        return [compile(made, "fold").bound(tiles, THREADS, x, out, *numbers)]
    states = backend.empty((shape.pieces * count * rule.nbytes // 8,), np.float64)
    last = shape_of(count, shape.pieces, False)
    finish = last_text(x.dtype, out.dtype, INDEX_NAMES[size], rule, last)
    numbers_of_last = size(count), size(shape.pieces), size(shape.pieces), np.float64(scale)
    return [
        compile(made, "fold_pieces").bound((tiles, shape.pieces), THREADS, x, states, *numbers),
        compile(finish, "fold_states").bound(-(-count * last.team // THREADS), THREADS, states, out, *numbers_of_last),
    ]


def narrowing(backend: Any, terms: Any, target: Any) -> list[Callable[[], None]]:
    """Return functions that sum *terms*, ``(rows, *static)``, over the static axes along which the target has one element."""
    own = terms.shape[0], *_aligned(target.shape[1:], terms.shape[1:])
    along = [Along(length, stride // terms.dtype.itemsize) for length, stride in zip(terms.shape, terms.strides, strict=True)]
    outputs = [axis for axis, length in zip(along, own, strict=True) if axis.length == length]
    summed = [axis for axis, length in zip(along, own, strict=True) if axis.length != length]
    return bound(backend, TOTAL, terms, target, outputs, summed)


def adding_up(backend: Any, parts: Any, target: Any, space: Sequence[int]) -> list[Callable[[], None]]:
    """Return functions that add up partial sums, and sum over the axes along which the target is broadcast.

    Args:
        backend: allocates memory for the accumulators of pieces.
        parts: the partial sums, ``(parts, places)``, for all places.
        target: contiguous array for the totals, which broadcasts to *space*.
        space: the shape of the places.
    """
    outputs: list[Along] = []
    terms = [Along(len(parts), size_of(space))]
    stride = size_of(space)
    for length, of_target in zip(space, _aligned(target.shape, space), strict=True):
        stride //= max(length, 1)
        (outputs if of_target == length else terms).append(Along(length, stride))
    return bound(backend, TOTAL, parts, target, outputs or [Along(1, 0)], terms)


def _aligned(dims: Sequence[int], space: Sequence[int]) -> tuple[int, ...]:
    """Return a shape with ones in front, as many axes as the space has."""
    return (1,) * (len(space) - len(dims)) + tuple(dims)


def text(dtype: Any, result: Any, index: str, rule: Rule, outputs: Sequence[Along], terms: Sequence[Along], shape: Shape) -> str:
    """Return the source of a kernel that reduces elements to results, or to accumulators of pieces."""
    take = f"const real x = value_of(given[{place_of('output', outputs)} + {place_of('at', terms)}]); {rule.take}"
    whole = _kernel("fold", "stored", STORED[np.dtype(result).name], take, _end(rule, result))
    piece = _kernel("fold_pieces", "stored", "State", take, "made[blockIdx.y * outputs + output] = state;")
    return _beginning(dtype, index, rule, shape) + (whole if shape.pieces == 1 else piece)


def last_text(dtype: Any, result: Any, index: str, rule: Rule, shape: Shape) -> str:
    """Return the source of a kernel that combines accumulators into results."""
    take = f"const State other = given[at * outputs + output]; {rule.merge}"
    return _beginning(dtype, index, rule, shape) + _kernel("fold_states", "State", STORED[np.dtype(result).name], take, _end(rule, result))


def _end(rule: Rule, result: Any) -> str:
    return f"store(made[output], ({REAL[np.dtype(result).name]})({rule.result}));"


def _beginning(dtype: Any, index: str, rule: Rule, shape: Shape) -> str:
    lane, column, step = f"threadIdx.x % {shape.team}", f"threadIdx.x / {shape.team}", 1
    if not shape.neighbours:
        step = THREADS // shape.team
        lane, column = f"threadIdx.x / {step}", f"threadIdx.x % {step}"
    return f"""{prelude(dtype, index)}
#define TEAM {shape.team}
#define LANE ({lane})
#define COLUMN ({column})
#define STEP {step}
#define COLUMNS {THREADS // shape.team}
#define START {rule.start}

struct State {{
    {rule.state}
}};

static __device__ __forceinline__ void merge(State &state, const State &other) {{
    {rule.merge}
}}
"""


def _kernel(name: str, given: str, made: str, take: str, end: str) -> str:
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS})
{name}(const {given} *given, {made} *made, size outputs, size terms, size length, double scale) {{
    __shared__ State states[{THREADS}];
    const size first = blockIdx.y * length, after = first + length < terms ? first + length : terms;
    for (size tile = blockIdx.x; tile * COLUMNS < outputs; tile += gridDim.x) {{
        const size output = tile * COLUMNS + COLUMN;
        State state = {{START}};
        if (output < outputs)
            for (size at = first + LANE; at < after; at += TEAM) {{
                {take}
            }}
        states[threadIdx.x] = state;
        __syncthreads();
        for (unsigned half_of = TEAM / 2; half_of; half_of /= 2) {{
            if (LANE < half_of)
                merge(states[threadIdx.x], states[threadIdx.x + half_of * STEP]);
            __syncthreads();
        }}
        if (LANE == 0 && output < outputs) {{
            const State state = states[threadIdx.x];
            {end}
        }}
        __syncthreads();
    }}
}}
"""


def _power_of_two(count: int) -> int:
    """Return the smallest power of 2 that is not less than *count*."""
    return 1 << max(count - 1, 0).bit_length()


def _count(axes: Sequence[Along]) -> int:
    count = 1
    for axis in axes:
        count *= axis.length
    return count


def _reach(axes: Sequence[Along]) -> int:
    return 1 + sum((axis.length - 1) * axis.stride for axis in axes)
