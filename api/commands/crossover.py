"""Finds the size from which on the second of two implementations is faster, by measuring both at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from statistics import median
from time import perf_counter

from cntk.core.common import threads
from cntk.core.common.thresholds import NEVER, Threshold, overridden

FACTOR, STEPS = 4, 2
"""Sizes that are tried: the default, and so many on either side of it, each so many times the one before."""

SECONDS, FEWEST, MOST = 0.1, 7, 100
"""How long both ways are called at a size, and how often at least and at most."""

GAIN = 0.05
"""The mean saving of time, over the sizes, that another threshold than the default must bring."""

Call = Callable[[], object]
Make = Callable[[int], Call]
"""Makes a call of about so large a size, in the threshold's unit."""


def why_not() -> str:
    """Why there are no compiled loops to compare with; empty if there are."""
    try:
        from cntk.core.machine.self_check import why_not as why
    except ImportError as error:
        return f"compiled loops are not there ({error})"
    return why()


def is_measurable(name: str) -> bool:
    """Whether the ways differ here: threads share nothing where there is one."""
    return not name.endswith("_shared") or threads.max_threads() > 1


def found(threshold: Threshold, make: Make) -> int:
    """The size from which on the second way pays, among those tried; the default where no other is clearly better.

    Args:
        threshold: a line of the table.
        make: makes what to call.
    """
    sizes = [max(1, round(threshold.default * float(FACTOR) ** step)) for step in range(-STEPS, STEPS + 1)]
    return chosen(sizes, STEPS, [timed(threshold.name, make, size) for size in sizes])


def timed(name: str, make: Make, size: int) -> tuple[float, float]:
    """Median seconds of a call below the threshold and from it on, called in turn."""
    ways = (NEVER, 0)
    calls = []
    for way in ways:
        with overridden(**{name: way}):
            calls.append(make(size))
            calls[-1]()
    seconds: tuple[list[float], list[float]] = ([], [])
    end = perf_counter() + SECONDS
    while len(seconds[0]) < FEWEST or (perf_counter() < end and len(seconds[0]) < MOST):
        for way, call, times in zip(ways, calls, seconds, strict=True):
            with overridden(**{name: way}):
                start = perf_counter()
                call()
                times.append(perf_counter() - start)
    return median(seconds[0]), median(seconds[1])


def chosen(sizes: Sequence[int], usual: int, seconds: Sequence[tuple[float, float]]) -> int:
    """The threshold that costs least in all: one of the sizes, or what lies as far beyond them.

    Args:
        sizes: those that were tried, in ascending order.
        usual: which of them is the default.
        seconds: of a call of each size, below the threshold and from it on.

    >>> from cntk.commands.crossover import chosen
    >>> chosen([1, 4, 16], 1, [(1.0, 3.0), (2.0, 3.0), (9.0, 3.0)])
    16
    >>> chosen([1, 4, 16], 1, [(1.0, 3.0), (3.0, 3.01), (9.0, 3.0)])
    4
    """
    costs = [sum(log(below) for below, _ in seconds[:cut]) + sum(log(above) for _, above in seconds[cut:]) for cut in range(len(sizes) + 1)]
    best = min(range(len(costs)), key=costs.__getitem__)
    if costs[usual] - costs[best] < GAIN * len(sizes):
        best = usual
    return sizes[best] if best < len(sizes) else sizes[-1] * FACTOR
