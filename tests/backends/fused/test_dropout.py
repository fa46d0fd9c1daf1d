"""Loops for dropout: the very bits of the operator's own methods, whatever the number of threads."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.backends.fused import dropout
from cntk.core.common import threads
from cntk.core.common.random import philox_uniform

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)

from cntk.backends.fused.philox import philox
from cntk.core.common.thresholds import thresholds
from cntk.core.machine.loops import Loop

pytestmark = pytest.mark.usefixtures("three_threads", "always_loops")

SEEDS = [0, 1, 12345, 2**32 - 1, 2**64 - 1, 2**64 + 5, 2**128 - 1]


@pytest.fixture
def always_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "dropout_compiled", 1)


@Loop
def write_words(out: Any, key: Any, draw: int) -> None:
    for i in range(out.size // 4):
        words = philox((key[0], key[1]), np.uint64(i + 1), np.uint64(draw))
        for j in range(4):
            out[4 * i + j] = words[j]


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**128 - 1), draw=st.integers(0, 2**62))
def test_bits_are_those_of_numpys_generator(seed: int, draw: int) -> None:
    out = np.empty(40, np.uint64)
    write_words.run(False, out, dropout._key(seed), draw)
    np.testing.assert_array_equal(out, np.random.Philox(key=seed, counter=[0, draw, 0, 0]).random_raw(40))


def passes(values: Any, make: Any) -> list[Any]:
    """Results and gradients of some training passes, each of which draws a mask."""
    x = C.input_variable(values.shape[1:], values.dtype, needs_gradient=True)
    y = make(x)
    w = C.input_variable(y.shape, values.dtype)
    weighted = y * w
    data = {x: values, w: np.random.default_rng(2).normal(size=(len(values), *y.shape)).astype(values.dtype)}
    return [array for _ in range(3) for array in weighted.grad(data, wrt=[x], outputs=[y])]


def both(values: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = passes(values, make)
    with monkeypatch.context() as patch:
        patch.setattr(thresholds, "dropout_compiled", 2**62)
        for ours, own in zip(fused, passes(values, make), strict=True):
            np.testing.assert_array_equal(ours, own)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (7, 11), (2, 4096), (3, 5, 1000)], ids=str)
def test_results_are_the_operators(shape: tuple[int, ...], dtype: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(size=shape).astype(dtype)
    values.flat[:1] = np.nan
    both(values, lambda x: C.dropout(x, 0.3, seed=seed), monkeypatch)


@pytest.mark.parametrize("rate", [0.0, 2.0**-24, 0.1, 0.5, 1 - 2.0**-24, 1 - 2.0**-40])
def test_rates_are_the_operators(rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    both(np.ones((2, 5000), np.float32), lambda x: C.dropout(x, rate, seed=7), monkeypatch)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: C.sin(C.dropout(2 * x, 0.5, seed=7)),
        lambda x: C.splice(*[C.dropout(C.slice(2 * x, -1, 5 * i, 5 * i + 5), 0.5, seed=7) for i in range(3)]),
        lambda x: C.exp(C.slice(C.dropout(x, 0.5, seed=7), -1, 3, 9)),
    ],
    ids=["in place", "of parts", "part of it"],
)
def test_arrays_may_be_the_same_or_parts_of_others(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    both(np.random.default_rng(1).normal(size=(9, 4, 15)).astype(np.float32), make, monkeypatch)


def test_threads_change_no_bit() -> None:
    values, found = np.random.default_rng(1).normal(size=(300, 1001)).astype(np.float32), []
    for count in (1, 2, 3):
        threads.set_max_threads(count)
        found.append(passes(values, lambda x: C.dropout(x, 0.5, seed=7)))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_rate_that_is_changed_holds_from_the_next_pass_on() -> None:
    x = C.input_variable(1000, needs_gradient=True)
    y = C.dropout(x, 0.5, seed=7)
    ones = {x: np.ones((2, 1000), np.float32)}
    y.grad(ones)
    y.set_attribute("dropoutRate", 0.2)
    noise = np.empty((2, 1000), np.float32)
    philox_uniform(noise, 7, 1)
    np.testing.assert_array_equal(y.grad(ones), (noise >= np.float32(0.2)) * np.float32(1.25))


def test_evaluation_and_small_minibatches_load_no_loops() -> None:
    program = """
import sys, numpy as np, cntk as C
x = C.input_variable(1000, needs_gradient=True)
y = C.dropout(x, 0.5)
y.eval({x: np.ones((64, 1000), np.float32)})
y.grad({x: np.ones((8, 1000), np.float32)})
print('llvmlite' in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "False"
