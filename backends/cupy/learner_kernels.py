"""Learner updates of all parameters in one launch, with kernels generated from a table of formulas.

A kernel's ``update`` replaces a learner's ``prepare`` and ``step`` and gives the same results, to the bit: the same operations in the same
order and in the parameter's type.  If steps are divided by the mean of their multipliers, a first kernel writes these and their sums, and a
second one updates the parameters; the mean stays on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core.common.shape import size_of
from ...core.common.sums import BLOCK, LANES, ROWS
from ...core.types.sparse import RowsPlace
from .compiler import BLOCKS, THREADS, compile
from .prelude import prelude

CHUNK = BLOCK
"""Elements of a parameter that a thread block updates: one block of the summation in ``core.common.sums``."""


class Part(Protocol):
    """A parameter to update, or some of its rows; see :mod:`~cntk.learners.parameter_state`."""

    xp: Any
    w: Any
    g: Any
    rows: Any
    place: RowsPlace | None
    states: Sequence[Any]
    work: Sequence[Any]
    coefficients: Sequence[float]
    preparation: Sequence[float]


class Rule(NamedTuple):
    """A learner's update formula, in C.

    Attributes:
        states: names of an element's state variables, such as smoothed gradients.
        numbers: names of the coefficients in the formula.
        step: updates *w*, an element of the parameter, by *x*, an element of the prepared gradient; or computes the *multiplier* of *x*.
        leaves_multiplier: whether the step computes the multiplier.  The learner's last coefficient then tells whether steps are divided
            by the mean of all multipliers.
        moves_if: condition under which such a step is applied.
    """

    states: tuple[str, ...]
    numbers: tuple[str, ...]
    step: str
    leaves_multiplier: bool = False
    moves_if: str = "true"


SGD_RULE = Rule((), ("rate",), "w -= x * rate;")
MOMENTUM = Rule(("velocity",), ("momentum", "rate"), "velocity = velocity * momentum + x * rate; w -= velocity;")
MOMENTUM_OF_ROWS = Rule(("velocity",), ("momentum", "gain", "rate"), "velocity = velocity * momentum + x * gain; w -= velocity * rate;")
NESTEROV = Rule(
    ("velocity",),
    ("momentum", "rate"),
    "const real move = x * rate; velocity = velocity * momentum + move; w = w - velocity * momentum - move;",
)
ADAGRAD = Rule(("squares",), ("floor", "rate"), "squares += x * x; multiplier = 1 / root(squares + floor);", True)
ADADELTA = Rule(
    ("squares", "steps"),
    ("rho", "fresh", "epsilon", "rate"),
    """squares = squares * rho + x * x * fresh;
    const real move = x / root(squares + epsilon) * root(steps + epsilon);
    steps = steps * rho + move * move * fresh;
    w -= move * rate;""",
)
ADAM = Rule(
    ("mean", "variance"),
    ("momentum", "gain", "decay", "fresh", "epsilon", "rate"),
    """variance = variance * decay + x * x * fresh;
    mean = mean * momentum + x * gain;
    w -= mean / (root(variance) + epsilon) * rate;""",
)
ADAMAX = Rule(
    ("mean", "largest"),
    ("momentum", "gain", "decay", "fresh", "epsilon", "rate"),
    """const real decayed = largest * decay, size_of_x = magnitude(x);
    largest = decayed >= size_of_x || decayed != decayed ? decayed : size_of_x;
    mean = mean * momentum + x * gain;
    w -= mean / (largest + epsilon) * rate;""",
)
FSADAGRAD = Rule(
    ("mean_square", "velocity"),
    ("momentum", "gain", "decay", "fresh", "length", "largest_scale", "rate"),
    """mean_square = mean_square * decay + x * x * fresh;
    real factor = length / root(mean_square);
    if (factor > largest_scale)
        factor = largest_scale;
    velocity = velocity * momentum + x * factor * gain;
    w -= velocity * rate;""",
)
RMSPROP = Rule(
    ("squares", "sign", "length"),
    ("first_step", "gamma", "fresh", "floor", "inc", "dec", "largest", "smallest", "rate"),
    """const real square = x * x, new_sign = x > 0 ? 1 : x < 0 ? -1 : x != x ? x : 0;
    if (first_step != 0) {
        squares = square;
        length = first_step;
    }
    if (sign * new_sign > 0) {
        length *= inc;
        if (length > largest)
            length = largest;
    } else {
        length *= dec;
        if (length < smallest)
            length = smallest;
    }
    squares = squares * gamma + square * fresh;
    sign = new_sign;
    multiplier = length / root(squares + floor);""",
    True,
    "rate != 0",  # an overflowed step size makes the mean infinite: parameters stay unchanged
)

FIXED = ("w", "g", "rows", "row_bytes", "row_count", "multipliers", "sums", "width", "elements", "first_chunk")
"""Fields of a part in the table, followed by the addresses of its states."""


class LearnerKernel:
    """The kernel of a learner.

    Args:
        rule: formula of the update.
        rule_of_rows: formula of updates of some rows of a parameter; None if rows are passed as copies.
    """

    def __init__(self, rule: Rule, rule_of_rows: Rule | None = None) -> None:
        self._rule, self._rule_of_rows = rule, rule_of_rows
        self.work_arrays = int(rule.leaves_multiplier)
        self._known: dict[Any, Bound] = {}

    @property
    def takes_rows(self) -> bool:
        """Whether a part may be some rows of a parameter, updated in place."""
        return self._rule_of_rows is not None

    def update(self, parts: Sequence[Part]) -> None:
        """Update parameters and states in place; gradients are not modified."""
        for dtype in dict.fromkeys(part.w.dtype for part in parts):
            same = [part for part in parts if part.w.dtype == dtype]
            if self._rule_of_rows is None or self._rule_of_rows is self._rule:
                self._update(self._rule, same)
            else:
                self._update(self._rule, [part for part in same if part.rows is None])
                self._update(self._rule_of_rows, [part for part in same if part.rows is not None])

    def _update(self, rule: Rule, parts: Sequence[Part]) -> None:
        parts = [part for part in parts if size_of(part.g.shape)]
        if not parts:
            return
        key = tuple(array.data.ptr for part in parts for array in _arrays(part, self.takes_rows))
        averaged = rule.leaves_multiplier and bool(parts[0].coefficients[-1])
        key = (rule, averaged, parts[0].w.dtype, *(_gradient(part).shape for part in parts), *key)
        bound = self._known.get(key)
        if bound is None:
            if len(self._known) == MOST_KNOWN:
                del self._known[next(iter(self._known))]
            bound = self._known[key] = Bound(rule, parts, self.takes_rows, averaged)
        bound.run([(*part.coefficients, *part.preparation) for part in parts])


MOST_KNOWN = 64
"""Number of cached tables of parts: gradients have the same addresses again for minibatches of the same size."""


class Bound:
    """A rule bound to the arrays of parts.

    Args:
        rule: the rule.
        parts: non-empty parts of one element type.
        takes_rows: whether parts with rows are updated in the parameter.
        averaged: whether steps are divided by the mean of multipliers.
    """

    def __init__(self, rule: Rule, parts: Sequence[Part], takes_rows: bool, averaged: bool) -> None:
        xp, self._averaged = parts[0].xp, averaged
        sizes = [size_of(_gradient(part).shape) for part in parts]
        counts = [-(-size // CHUNK) for size in sizes]
        firsts = np.cumsum([0, *counts])
        self._sums = xp.empty((int(firsts[-1]), 2), np.float64) if averaged else None
        table = [self._line(part, size, first, takes_rows) for part, size, first in zip(parts, sizes, firsts, strict=False)]
        self._numbers = xp.empty((len(parts), len(rule.numbers) + 3), np.float64)
        self._host = np.full(self._numbers.shape, np.nan)  # equal to nothing
        self._table, self._chunks = xp.empty((len(parts), len(table[0])), np.int64), xp.empty((int(firsts[-1]),), np.int32)
        self._table.set(np.array(table, np.int64))
        self._chunks.set(np.repeat(np.arange(len(parts), dtype=np.int32), counts))
        made = text(rule, parts[0].w.dtype, averaged)
        arguments = self._table, self._chunks, self._numbers
        names = ("gather", "average", "move") if averaged else ("step",)
        blocks = {"gather": int(firsts[-1]), "average": len(parts), "move": int(firsts[-1]), "step": int(firsts[-1])}
        self._calls: list[Callable[[], None]] = [compile(made, name).bound(blocks[name], THREADS, *arguments) for name in names]

    def _line(self, part: Part, size: int, first: int, takes_rows: bool) -> list[int]:
        rows = _rows(part) if takes_rows else None
        fixed: dict[str, int] = {
            "w": part.w.data.ptr,
            "g": _gradient(part).data.ptr,
            "rows": 0 if rows is None else rows.data.ptr,
            "row_bytes": 0 if rows is None else rows.itemsize,
            "row_count": 0 if rows is None or part.place is None else part.place.columns.length.data.ptr,
            "multipliers": part.work[0].data.ptr if self._averaged else 0,
            "sums": self._sums.data.ptr if self._sums is not None else 0,
            "width": size_of(part.w.shape[1:]) if rows is not None else 1,
            "elements": size,
            "first_chunk": int(first),
        }
        return [*(fixed[name] for name in FIXED), *(state.data.ptr for state in part.states)]

    def run(self, numbers: Sequence[Sequence[float]]) -> None:
        """Update the parts with the coefficients of the formula and of the preparation of gradients, one sequence per part."""
        count = self._host.shape[1]
        lines = np.array([given if len(given) == count else (*given[: count - 3], *given[-3:]) for given in numbers])
        if not np.array_equal(lines, self._host):
            self._host = lines
            self._numbers.set(lines)
        for call in self._calls:
            call()


def _arrays(part: Part, takes_rows: bool) -> list[Any]:
    """Return the arrays of a part whose addresses are in the table."""
    rows = [_rows(part)] if takes_rows and part.rows is not None else []
    counts = [part.place.columns.length] if rows and part.place is not None else []
    return [part.w, _gradient(part), *part.states, *part.work, *rows, *counts]


def _gradient(part: Part) -> Any:
    """Return the gradient, with room for more rows where it stays at its place."""
    return part.g if part.place is None else part.place.room


def _rows(part: Part) -> Any:
    """Return the indices of rows, likewise; None for the whole parameter."""
    return part.rows if part.place is None else part.place.columns.numbers


def text(rule: Rule, dtype: Any, averaged: bool) -> str:
    """Return the source of a rule's kernels for a parameter type: ``step``, or ``gather``, ``average`` and ``move`` if *averaged*."""
    states = [f"real &{name} = ((real *)part[{len(FIXED) + i}])[place];" for i, name in enumerate(rule.states)]
    numbers = [f"const real {name} = (real)number[{i}];" for i, name in enumerate(rule.numbers)]
    numbers += [f"const real {name} = (real)number[{len(rule.numbers) + i}];" for i, name in enumerate(("scale", "threshold", "weight"))]
    load = ["real &w = ((real *)part[W])[place];", "real x = prepared(((const real *)part[G])[at], w, scale, threshold, weight);"]
    step = [*load, *states, *(["real multiplier;"] if rule.leaves_multiplier else []), rule.step]
    if not rule.leaves_multiplier:
        return _beginning(rule, dtype) + _kernel("step", numbers, step)
    if not averaged:
        return _beginning(rule, dtype) + _kernel("step", numbers, [*step, f"if ({rule.moves_if}) w -= x * multiplier * rate;"])
    gather = [*step, "((real *)part[MULTIPLIERS])[at] = multiplier;"]
    rate = rule.numbers.index("rate")
    average = [line for line in numbers if "rate" not in line] + [f"const real rate = (real)(number[{rate}] / mean_of(part));"]
    move = [*load, f"if ({rule.moves_if}) w -= x * ((const real *)part[MULTIPLIERS])[at] * rate;"]
    return (
        _beginning(rule, dtype)
        + MEANS
        + _kernel("gather", numbers, gather, "leave_sums(part, chunk, first, after);")
        + AVERAGE
        + _kernel("move", average, move)
    )


def _beginning(rule: Rule, dtype: Any) -> str:
    names = "\n".join(f"#define {name.upper()} {i}" for i, name in enumerate(FIXED))
    return f"""{prelude(dtype)}
{names}
#define FIELDS {len(FIXED) + len(rule.states)}
#define NUMBERS {len(rule.numbers) + 3}
#define CHUNK {CHUNK}
#define LANES {LANES}
#define ROWS_OF_LANES {ROWS}

__device__ __forceinline__ long long row_at(const long long *part, long long at) {{
    return part[ROW_BYTES] == 4 ? ((const int *)part[ROWS])[at] : ((const long long *)part[ROWS])[at];
}}

/* Where rows stay at a place with room for more, how many there are is read from memory. */
__device__ __forceinline__ long long elements_of(const long long *part) {{
    if (!part[ROW_COUNT])
        return part[ELEMENTS];
    return part[WIDTH] * (part[ROW_BYTES] == 4 ? *(const int *)part[ROW_COUNT] : *(const long long *)part[ROW_COUNT]);
}}

__device__ __forceinline__ real prepared(real g, real w, real scale, real threshold, real weight) {{
    real x = g * scale;
    if (x > threshold)
        x = threshold;
    else if (x < -threshold)
        x = -threshold;
    if (weight != 0)
        x += w * weight;
    return x;
}}
"""


def _kernel(name: str, numbers: Sequence[str], body: Sequence[str], after: str = "") -> str:
    lines, given = "\n        ".join(body), "\n    ".join(numbers)
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS}, {BLOCKS})
{name}(const long long *table, const int *chunks, const double *all_numbers) {{
    const long long *part = table + chunks[blockIdx.x] * (long long)FIELDS, chunk = blockIdx.x;
    const double *number = all_numbers + chunks[blockIdx.x] * NUMBERS;
    {given}
    const long long first = (chunk - part[FIRST_CHUNK]) * CHUNK, end = first + CHUNK;
    const long long elements = elements_of(part), after = end < elements ? end : elements;
    for (long long at = first + threadIdx.x; at < after; at += {THREADS}) {{
        const long long place = part[ROWS] ? row_at(part, at / part[WIDTH]) * part[WIDTH] + at % part[WIDTH] : at;
        {lines}
    }}
    {after}
}}
"""


MEANS = """
/* Sums the multipliers of a chunk in the order of core.common.sums, so that the mean is the same: lanes in the parameter's type, the
   remainder in double. */
__device__ void leave_sums(const long long *part, long long chunk, long long first, long long after) {
    __shared__ double lanes[256];
    const real *multipliers = (const real *)part[MULTIPLIERS];
    __syncthreads();
    double sum = 0;
    if (after - first == CHUNK) {
        if (threadIdx.x < LANES) {
            real lane = multipliers[first + threadIdx.x];
            for (int row = 1; row < ROWS_OF_LANES; ++row)
                lane += multipliers[first + row * LANES + threadIdx.x];
            sum = lane;
        }
    } else {
        for (long long at = first + threadIdx.x; at < after; at += 256)
            sum += multipliers[at];
    }
    lanes[threadIdx.x] = sum;
    __syncthreads();
    for (int count = 128; count; count /= 2) {
        if (threadIdx.x < count)
            lanes[threadIdx.x] += lanes[threadIdx.x + count];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        ((double *)part[SUMS])[chunk * 2] = lanes[0];
}

__device__ __forceinline__ double mean_of(const long long *part) {
    const double mean = ((const double *)part[SUMS])[part[FIRST_CHUNK] * 2 + 1];
    return mean != 0 ? mean : NAN;
}
"""

AVERAGE = """
extern "C" __global__ void __launch_bounds__(256) average(const long long *table, const int *, const double *) {
    __shared__ double sums[256];
    const long long *part = table + blockIdx.x * (long long)FIELDS, count = (part[ELEMENTS] + CHUNK - 1) / CHUNK;
    double *chunks = (double *)part[SUMS] + part[FIRST_CHUNK] * 2, sum = 0;
    for (long long chunk = threadIdx.x; chunk < count; chunk += 256)
        sum += chunks[chunk * 2];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half_of = 128; half_of; half_of /= 2) {
        if (threadIdx.x < half_of)
            sums[threadIdx.x] += sums[threadIdx.x + half_of];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        chunks[1] = sums[0] / part[ELEMENTS];
}
"""

SGD = LearnerKernel(SGD_RULE, SGD_RULE)
MomentumSGD = LearnerKernel(MOMENTUM, MOMENTUM_OF_ROWS)
Nesterov = LearnerKernel(NESTEROV, NESTEROV)
AdaGrad = LearnerKernel(ADAGRAD)
AdaDelta = LearnerKernel(ADADELTA)
RMSProp = LearnerKernel(RMSPROP)
FSAdaGrad = LearnerKernel(FSADAGRAD)
Adam = LearnerKernel(ADAM)
Adamax = LearnerKernel(ADAMAX)
