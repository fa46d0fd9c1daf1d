"""Every learner with every option against its formula in double precision, over 200 updates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hostile.learner_formulas import RULES, Options, Schedule, by_formula

import cntk as C
from cntk.core.common.thresholds import thresholds
from cntk.core.extension import plugins
from cntk.core.types.sparse import RowSparse

STEPS = 200
SHAPE = (9, 5)
DEFAULT_VARIANCE_MOMENTUM = 0.9999986111120757

OPTIONS: dict[str, Options] = {
    "plain": Options(),
    "means": Options(mean=True),
    "without unit gain": Options(unit_gain=False, rate=Schedule([0.02])),
    "per sample": Options(rate=Schedule([0.01], reference=1), momentum=Schedule([0.99], reference=1)),
    "per seven samples": Options(rate=Schedule([0.1], reference=7), momentum=Schedule([0.9], reference=7), mean=True),
    "schedules": Options(rate=Schedule([0.1, 0.02, 0.05], 400), momentum=Schedule([0.9, 0.5, 0.99], 300)),
    "variance momentum close to 1": Options(variance_momentum=Schedule([DEFAULT_VARIANCE_MOMENTUM], reference=1)),
    "l1": Options(l1=0.01),
    "l2": Options(l2=0.01, mean=True),
    "clipped": Options(threshold=0.1),
    "clipped to a norm": Options(threshold=0.1, truncates=False),
    "clipped to a norm, means, l1, l2": Options(threshold=0.5, truncates=False, mean=True, l1=0.001, l2=0.01),
}


def gradients(dtype: Any, sparse: bool) -> list[Any]:
    random = np.random.default_rng(7)
    made: list[Any] = []
    for step in range(STEPS):
        numbers = random.normal(size=SHAPE)
        dense = ((numbers + np.copysign(0.1, numbers)) * (0.1, 1, 10)[step % 3]).astype(dtype)
        rows = np.flatnonzero(random.random(SHAPE[0]) < 0.4)
        gradient = RowSparse(SHAPE, dtype)
        gradient.set(rows, dense[rows])
        made.append(gradient if sparse else dense)
    return made


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("rule", RULES)
def test_learners_compute_their_formulas(rule: str, options: str, dtype: Any, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """float64 agrees to 1e-12; float32 loses no more than two units of the last place in an update."""
    start = np.random.default_rng(3).normal(size=SHAPE).astype(dtype)
    given = gradients(dtype, sparse)
    counts = [1 + step % 19 for step in range(STEPS)]
    expected, largest = by_formula(rule, OPTIONS[options], start, given, counts)
    allowed = (2 * STEPS * np.finfo(dtype).eps if dtype == np.float32 else 1e-12) * max(largest, 1)
    for fused_from in (2**62, 1):
        monkeypatch.setattr(thresholds, "learner_compiled", fused_from)
        parameter = C.parameter(init=start)
        learner = OPTIONS[options].learner(rule, [parameter])
        for gradient, count in zip(given, counts, strict=True):
            learner.update({parameter: gradient}, count)
        np.testing.assert_allclose(parameter.value, expected, rtol=0, atol=allowed)


@pytest.mark.parametrize("rule", RULES)
def test_half_precision_rounds_parameters_alone(rule: str) -> None:
    """One update from the same numbers: that of float32, rounded."""
    start, gradient = np.linspace(-1, 1, 12).astype(np.float16), np.linspace(0.5, 2, 12).astype(np.float16)
    expected, _ = by_formula(rule, Options(), start, [gradient], [4])
    parameter = C.parameter(init=start)
    Options().learner(rule, [parameter]).update({parameter: gradient}, 4)
    np.testing.assert_allclose(parameter.value, expected, rtol=np.finfo(np.float16).eps, atol=1e-7)


@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if rule.has_variance])
def test_float32_moves_as_float64_with_the_default_variance_momentum(rule: str) -> None:
    """1 - variance_momentum is 1.4e-6: as a difference of float32 it would be 1.3 % too small."""
    options = replace(Options(), unit_gain=False, variance_momentum=Schedule([DEFAULT_VARIANCE_MOMENTUM], reference=1))
    moved = []
    for dtype in (np.float32, np.float64):
        parameter = C.parameter(4, init=0, dtype=dtype)
        options.learner(rule, [parameter]).update({parameter: np.full(4, 0.5, dtype)}, 1)
        moved.append(parameter.value)
    np.testing.assert_allclose(*moved, rtol=2e-7)


def test_every_learner_has_its_formula() -> None:
    built_in = {name for name in plugins.learners if plugins.learners.owner(name) == "opencntk:learners"}
    assert built_in - {"universal"} == {name.split()[-1] for name in RULES} - {"adamax"}
