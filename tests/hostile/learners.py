"""Learners at random: fused kernels, the steps without them and the formulas in double precision agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from bounds import DISTURBED, disturbed
from learner_formulas import RULES, Options, Schedule, by_formula

import cntk as C
from cntk.core.common.thresholds import overridden
from cntk.core.types.sparse import RowSparse

ULPS_PER_STEP = 16
"""How many units of the last place an update may add to the error, of the largest number that the parameter comes by; with L2 weights
large steps feed errors back."""

SPREADS = 2
"""So many times as far off may results be as disturbed numbers take them."""

NEVER = 2**62


def trial(random: np.random.Generator) -> str:
    """One learner with options, sizes, types and gradients at random."""
    rule = str(random.choice(list(RULES)))
    options = some_options(random)
    dtype = random.choice([np.float32, np.float64])
    large = random.random() < 0.2
    shape = some_shape(random, large)
    steps = int(random.integers(1, 8 if large else 120))
    sparse = len(shape) > 1 and random.random() < 0.4
    start = random.normal(size=shape).astype(dtype)
    gradients = [some_gradient(random, shape, dtype, sparse) for _ in range(steps)]
    counts = [int(count) for count in random.integers(1, 20, steps)]
    compare(random, rule, options, start, gradients, counts)
    return f"{rule}{', sparse' if sparse else ''}"


def compare(random: np.random.Generator, rule: str, options: Options, start: Any, gradients: list[Any], counts: list[int]) -> None:
    """Train by kernels, without them and by formula."""
    plain = trained(rule, options, start, gradients, counts, NEVER)
    fused = trained(rule, options, start, gradients, counts, 1)
    assert np.array_equal(plain, fused), f"{rule}, {options}: kernels and steps differ by {np.abs(plain - fused).max()}"
    expected, largest = by_formula(rule, options, start, gradients, counts)
    eps = float(np.finfo(start.dtype).eps)
    allowed = ULPS_PER_STEP * (len(counts) + 4) * eps * max(largest, 1)
    errors = np.abs(plain - expected)
    if not (errors <= allowed).all():  # where a gradient all but vanishes roundings decide its sign, and some learners know little else
        for _ in range(DISTURBED):
            other, _ = by_formula(rule, options, start, gradients, counts, lambda numbers: disturbed(random, numbers, eps))
            allowed = np.maximum(allowed, SPREADS * np.abs(other - expected))
    worst = np.unravel_index(int((errors - allowed).argmax()), errors.shape) if errors.size else ()
    assert (errors <= allowed).all(), (
        f"{rule}, {options}: {errors[worst]:.3g} from the formula after {len(counts)} updates, "
        f"allowed are {np.broadcast_to(allowed, errors.shape)[worst]:.3g}"
    )


def trained(rule: str, options: Options, start: Any, gradients: list[Any], counts: list[int], fused_from: int) -> Any:
    """The parameter after all updates; kernels do them for learners of *fused_from* elements or more."""
    with overridden(learner_compiled=fused_from):
        parameter = C.parameter(init=start)
        learner = options.learner(rule, [parameter])
    for gradient, count in zip(gradients, counts, strict=True):
        learner.update({parameter: gradient}, count)
    return parameter.value


def some_options(random: np.random.Generator) -> Options:
    """Options at random, each of which is its default half of the time."""

    def maybe(value: Any, default: Any) -> Any:
        return value if random.random() < 0.5 else default

    threshold = maybe(float(random.choice([0.05, 0.5, 5])), np.inf)
    return Options(
        rate=some_schedule(random, [0.01, 0.1, 0.3]),
        momentum=some_schedule(random, [0.0, 0.5, 0.9, 0.99]),
        variance_momentum=some_schedule(random, [0.9, 0.99, 0.999, 0.9999986111120757]),
        unit_gain=bool(random.random() < 0.5),
        mean=bool(random.random() < 0.5),
        l1=maybe(0.01, 0.0),
        l2=maybe(0.01, 0.0),
        threshold=threshold,
        truncates=threshold == np.inf or bool(random.random() < 0.5),
    )


def some_schedule(random: np.random.Generator, values: list[float]) -> Schedule:
    """Up to three values, that refer to a minibatch, a sample or some samples."""
    chosen = random.choice(values, int(random.integers(1, 4)))
    return Schedule([float(value) for value in chosen], int(random.integers(1, 100)), int(random.choice([0, 1, 7])))


def some_shape(random: np.random.Generator, large: bool) -> tuple[int, ...]:
    """No axes to three; large ones are those that several threads share."""
    if large:
        return int(random.integers(2**9, 2**10)), int(random.integers(2**9, 2**10 + 300))
    return tuple(int(size) for size in random.integers(1, 12, int(random.integers(0, 4))))


def some_gradient(random: np.random.Generator, shape: tuple[int, ...], dtype: Any, sparse: bool) -> Any:
    """A gradient of some size, away from 0, where its sign would be that of a rounding."""
    scale = 10.0 ** random.integers(-3, 3)
    if not sparse:
        return np.array(scale * away_from_0(random.normal(size=shape))).astype(dtype)
    rows = np.flatnonzero(random.random(shape[0]) < 0.4)
    gradient = RowSparse(shape, dtype)
    gradient.set(rows, (scale * away_from_0(random.normal(size=(len(rows), *shape[1:])))).astype(dtype))
    return gradient


def away_from_0(numbers: Any) -> Any:
    return numbers + np.copysign(0.1, numbers)
