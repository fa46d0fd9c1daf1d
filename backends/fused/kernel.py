"""What the kernels of learners have in common: the preparation of gradients, and running loops.

A kernel's ``update`` stands in for a learner's ``prepare`` and ``step``.  It computes what these compute, to the bit: the same
operations in the same order and in the parameter's type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from ...core.common import sums
from ...core.common.thresholds import thresholds
from ...core.machine.language import jittable, prange
from ...core.machine.loops import Loop, loop


class Part(Protocol):
    """A parameter, or some of its rows, in an update.

    Attributes:
        w, g: parameter and summed gradient, of one shape, but of *g* there are only the *rows*.
        rows: numbers of the rows that are updated, distinct; None for the whole parameter.
        states: the smoothed gradients that the learner keeps for it.
        work: as many temporary arrays as the kernel's ``work_arrays`` says.
        coefficients: the numbers of the learner's formula.
        preparation: how the gradient is prepared: factor, bound on its elements, weight with which *w* is added.
    """

    w: Any
    g: Any
    rows: Any
    states: Sequence[Any]
    work: Sequence[Any]
    coefficients: Sequence[float]
    preparation: Sequence[float]


@jittable
def prepared(g: Any, w: Any, scale: Any, threshold: Any, weight: Any) -> Any:
    """An element of the prepared gradient."""
    x = g * scale
    if x > threshold:
        x = threshold
    elif x < -threshold:
        x = -threshold
    if weight != 0:
        x += w * weight
    return x


Call = tuple[Sequence[Any], Sequence[float]]
"""Arrays of one size, and numbers, that a loop is called with."""


def run(loop: Loop, calls: Sequence[Call]) -> None:
    """Run a loop over flat arrays, with numbers in the type of the arrays."""
    shared = _are_worth_sharing(calls)
    for arrays, numbers in calls:
        flat = [array.reshape(-1) for array in arrays]
        loop.run(shared and flat[0].size >= thresholds.elements_shared, *flat, *_typed(flat[0].dtype.type, tuple(numbers)))


def run_rows(loop: Loop, part: Part) -> None:
    """Run a loop over some rows of matrices, with numbers in the type of the matrices."""
    matrices = [array.reshape(len(array), -1) for array in (part.w, part.g, *part.states)]
    numbers = _typed(part.w.dtype.type, (*part.coefficients, *part.preparation))
    loop.run(part.g.size >= thresholds.rows_shared, *matrices, part.rows, *numbers)


def run_and_average(loop: Loop, calls: Sequence[Call]) -> list[float]:
    """As :func:`run`; also the mean of each call's last array, as ``core.sums.mean`` computes it.

    The loop goes through blocks of the arrays, and writes the sums of each block's lanes to a further array.
    """
    means = []
    shared = _are_worth_sharing(calls)
    for arrays, numbers in calls:
        written = arrays[-1].reshape(-1)
        lanes = np.empty((written.size // sums.BLOCK, sums.LANES), written.dtype)
        flat = [array.reshape(-1) for array in arrays]
        loop.run(shared and written.size >= thresholds.elements_shared, *flat, lanes, *_typed(written.dtype.type, tuple(numbers)))
        means.append(sums.sum_from_lanes(np, lanes, written) / written.size)
    return means


def _are_worth_sharing(calls: Sequence[Call]) -> bool:
    return sum(arrays[0].size for arrays, _ in calls) >= thresholds.learner_shared


@jittable
def add_lanes(array: Any, block: int, lanes: Any) -> None:
    """Write the sums of a block's lanes, if the block is complete."""
    if block < len(lanes):
        for lane in range(sums.LANES):
            lanes[block, lane] = array[block * sums.BLOCK + lane]
        for row in range(1, sums.ROWS):
            for lane in range(sums.LANES):
                lanes[block, lane] += array[block * sums.BLOCK + row * sums.LANES + lane]


@loop("R1 R1 R1 r r r r")
def move(w: Any, g: Any, multiplier: Any, rate: Any, scale: Any, threshold: Any, weight: Any) -> None:
    """Step along gradients, each multiplied by a number of its own."""
    for i in prange(w.size):
        w[i] -= prepared(g[i], w[i], scale, threshold, weight) * multiplier[i] * rate


@lru_cache(maxsize=64)
def _typed(kind: Callable[[float], Any], numbers: tuple[float, ...]) -> tuple[Any, ...]:
    return tuple(kind(number) for number in numbers)


class Elementwise:
    """The kernel of a learner that treats all elements alike and by themselves.

    Args:
        loop: compiled loop over parameter, gradient and states; then come the learner's coefficients and what prepares gradients.
        rows_loop: the same over some rows, whose numbers come after the states; None if the learner has nothing for rows.
    """

    work_arrays = 0

    def __init__(self, loop: Loop, rows_loop: Loop | None = None) -> None:
        self.loop, self.rows_loop = loop, rows_loop

    @property
    def takes_rows(self) -> bool:
        """Whether an update may be of some rows of a parameter."""
        return self.rows_loop is not None

    def update(self, parts: Sequence[Part]) -> None:
        """Update parameters and states in place; gradients stay as they are."""
        run(self.loop, [((p.w, p.g, *p.states), (*p.coefficients, *p.preparation)) for p in parts if p.rows is None])
        for p in parts:
            if self.rows_loop is not None and p.rows is not None:
                run_rows(self.rows_loop, p)
