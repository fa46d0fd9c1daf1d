"""Sums over steps by a compiled loop: the bits of adding one step after another, and what is left to the operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common import threads
from cntk.core.common.thresholds import NEVER, overridden, thresholds
from cntk.core.extension.device import backend_named
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.plugins.ops.sequence_reduction import SequenceReduceSum

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
kernel = pytest.importorskip("cntk.backends.fused.sequence_reduction").SequenceReduceSumKernel
pytestmark = pytest.mark.usefixtures("three_threads")

LENGTHS = ([1], [5, 1, 9, 9, 2], [1, 1, 1], [3] * 40, list(range(1, 60)))


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "sequence_sum_compiled", 0)
    monkeypatch.setattr(thresholds, "rows_shared", 1)


def context(layout: Layout) -> Context:
    made = Context(backend_named("numpy"), training=True)
    made.layouts, made.layout = [layout], layout.batch
    return made


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (33,), (4, 5)])
@pytest.mark.parametrize("lengths", LENGTHS, ids=lambda lengths: f"{len(lengths)} of {max(lengths)}")
def test_bits_are_the_operators(lengths: list[int], shape: Any, dtype: Any, number: int) -> None:
    threads.set_max_threads(number)
    layout, random = Layout(len(lengths), lengths), np.random.default_rng(3)
    steps = random.standard_normal((layout.rows, *shape)).astype(dtype)
    steps[0] = np.nan
    found, right = (np.full((layout.samples, *shape), 7, dtype) for _ in range(2))
    op = SequenceReduceSum()
    assert not kernel.declines(op, context(layout), found, steps)
    kernel.forward(op, context(layout), found, steps)
    op.forward(context(layout), right, steps)
    np.testing.assert_array_equal(found, right)


def test_what_the_loop_leaves_to_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(2, [3, 2])
    steps, out = np.ones((5, 4), np.float32), np.ones((2, 4), np.float32)
    op = SequenceReduceSum()
    assert kernel.declines(op, context(layout), out.astype(np.float16), steps.astype(np.float16))
    assert kernel.declines(op, context(layout), out, np.ones((5, 8), np.float32)[:, ::2])
    assert kernel.declines(op, context(layout), np.ones((2, 8), np.float32)[:, ::2], steps)
    long = Layout(1, [513])
    assert kernel.declines(op, context(long), out[:1], np.ones((513, 4), np.float32))
    monkeypatch.setattr(thresholds, "sequence_sum_compiled", 21)
    assert kernel.declines(op, context(layout), out, steps)


def test_training_is_that_of_the_operator() -> None:
    random = np.random.default_rng(1)
    data = [random.standard_normal((length, 6)).astype(np.float32) for length in (4, 1, 30, 7)]
    found = []
    for size in (0, NEVER):
        with overridden(sequence_sum_compiled=size):
            x = C.sequence.input_variable(6, needs_gradient=True)
            loss = C.reduce_sum(C.sin(C.sequence.reduce_sum(x * 2)))
            found.append(loss.grad({x: data}, outputs=[loss.output]))
    for one, other in zip(found[0][0], found[1][0], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found[0][1], found[1][1])
