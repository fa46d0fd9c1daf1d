"""What the kernels of learners have in common: how they are compiled, and how they are run.

A kernel's ``update`` stands in for a learner's ``prepare`` and ``step``.  It computes what these compute, to the bit: the same
operations in the same order and in the parameter's type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numba
import numpy as np

from ...core import threads


class Part(Protocol):
    """A parameter, or some of its rows, in an update.

    Attributes:
        w, g: parameter and summed gradient, of one shape.
        states: the smoothed gradients that the learner keeps for it.
        work: as many temporary arrays as the kernel's ``work_arrays`` says.
        coefficients: the numbers of the learner's formula.
        preparation: what makes the gradient that the update sees: factor, bound on its elements, weight with which *w* is added.
    """

    w: Any
    g: Any
    states: Sequence[Any]
    work: Sequence[Any]
    coefficients: Sequence[float]
    preparation: Sequence[float]


def compiled(loop: Callable[..., None]) -> Callable[..., None]:
    """Compile a loop over flat arrays, when it is first called with arrays of a type; the result is kept on disk.

    Numba looks for a change in the loop's own file only: after one in :func:`prepared`, its cached results must be removed.
    """
    try:
        return numba.njit(loop, cache=True, nogil=True, error_model="numpy")
    except RuntimeError:  # no folder that Numba keeps results in can be written to
        return numba.njit(loop, nogil=True, error_model="numpy")


@numba.njit(inline="always", error_model="numpy")
def prepared(g: Any, w: Any, scale: Any, threshold: Any, weight: Any) -> Any:
    """An element of the gradient that the update sees."""
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


def run(loop: Callable[..., None], calls: Sequence[Call]) -> None:
    """Run a compiled loop, with numbers in the type of the arrays; threads share the arrays' elements."""
    bound = [_bind(loop, call) for call in calls]
    threads.for_pieces(lambda call, begin, end: bound[call](begin, end), [arrays[0].size for arrays, _ in calls])


def run_and_average(loop: Callable[..., None], calls: Sequence[Call]) -> list[float]:
    """As :func:`run`; also the mean of each call's last array, as ``core.threads.mean`` computes it."""
    bound = [_bind(loop, call) for call in calls]
    written = [arrays[-1].reshape(-1) for arrays, _ in calls]
    sums = [[0.0] * -(-array.size // threads.PIECE) for array in written]

    def work(call: int, begin: int, end: int) -> None:
        for first in range(begin, end, threads.PIECE):
            last = min(first + threads.PIECE, end)
            bound[call](first, last)
            sums[call][first // threads.PIECE] = float(np.sum(written[call][first:last]))

    threads.for_pieces(work, [array.size for array in written])
    return [sum(parts) / array.size for parts, array in zip(sums, written, strict=True)]


def _bind(loop: Callable[..., None], call: Call) -> Callable[[int, int], None]:
    arrays, numbers = call
    flat = [array.reshape(-1) for array in arrays]
    typed = _typed(flat[0].dtype.type, tuple(numbers))
    return lambda begin, end: loop(*[array[begin:end] for array in flat], *typed)


@lru_cache(maxsize=64)
def _typed(kind: Callable[[float], Any], numbers: tuple[float, ...]) -> tuple[Any, ...]:
    return tuple(kind(number) for number in numbers)


class Elementwise:
    """The kernel of a learner that treats all elements alike and by themselves.

    Args:
        loop: compiled loop over parameter, gradient and states; then come the learner's coefficients and what prepares gradients.
    """

    work_arrays = 0

    def __init__(self, loop: Callable[..., None]) -> None:
        self.loop = loop

    def update(self, parts: Sequence[Part]) -> None:
        """Update parameters and states in place; gradients stay as they are."""
        run(self.loop, [((p.w, p.g, *p.states), (*p.coefficients, *p.preparation)) for p in parts])
