"""Sums with a residual, which convolutions and products add in evaluation: the bits of sums of their own, and in training none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import cntk as C
from cntk.core.common import threads
from cntk.core.common.thresholds import all_set_to
from cntk.core.run.evaluate import program_for

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
pytestmark = pytest.mark.usefixtures("three_threads")

TYPES = [np.float32, np.float64]


class Case(NamedTuple):
    """A layer, the shape of what it is given, the numbers of samples."""

    layer: Callable[[], Any]
    shape: Sequence[int]
    rows: Sequence[int]


def convolution(kernel: Any, filters: int, **more: Any) -> Callable[[], Any]:
    return lambda: C.layers.Convolution(kernel, filters, pad=True, init=C.normal(0.3, seed=1), init_bias=C.normal(1, seed=2), **more)


def grouped(filters: int, channels: int) -> Any:
    """A convolution in two groups, with strides."""
    weights = C.parameter((filters, channels // 2, 3, 3), init=C.normal(0.3, seed=1))
    return lambda x: (
        C.convolution(weights, x, strides=(2, 2), auto_padding=(False, True, True), groups=2)
        + C.parameter((filters, 1, 1), init=C.normal(1, seed=2))
    )


def dense(width: int, **more: Any) -> Callable[[], Any]:
    return lambda: C.layers.Dense(width, init=C.normal(0.3, seed=1), init_bias=C.normal(1, seed=2), **more)


CASES = {
    "1x1": Case(convolution((1, 1), 50), (40, 9, 7), (1, 3)),
    "1x1, whose filters threads share": Case(convolution((1, 1), 300), (64, 7, 7), (1, 4)),
    "1x1, strides": Case(convolution((1, 1), 64, strides=2), (33, 10, 11), (1, 2)),
    "1x1, many terms": Case(convolution((1, 1), 40), (1100, 6, 7), (1, 2)),
    "3x3": Case(convolution((3, 3), 20), (5, 9, 8), (1, 5)),
    "3x3, lines": Case(convolution((3, 3), 9), (5, 12, 41), (1, 3)),
    "3x3, groups and strides": Case(lambda: grouped(10, 6), (6, 21, 19), (1, 5)),
    "3x3, few pixels": Case(convolution((3, 3), 96, bias=False), (16, 5, 5), (1,)),
    "3x3, many terms": Case(convolution((3, 3), 66), (230, 5, 6), (1, 3)),
    "3x3, minimal filtering": Case(convolution((3, 3), 20), (24, 12, 11), (1, 6)),
    "3x3, minimal filtering, shared": Case(convolution((3, 3), 128), (64, 14, 14), (1, 2)),
    "3x3x3": Case(convolution((3, 3, 3), 4), (3, 6, 5, 7), (1, 2)),
    "of one axis": Case(convolution((5,), 40), (30, 33), (1, 3)),
    "dense": Case(dense(96), (70,), (1, 2, 3, 5, 40, 200)),
    "dense without bias": Case(dense(96, bias=False), (70,), (1, 4, 200)),
    "dense, many terms": Case(dense(64), (2500,), (1, 3, 50)),
    "dense, several axes": Case(dense((6, 32), bias=False), (50,), (2, 70)),
}
CASE = pytest.mark.parametrize("name", CASES)


class Block:
    """A block with a residual, and what it is made of."""

    def __init__(self, case: Case, dtype: Any, rectify: bool, order: int = 1) -> None:
        with C.default_options(dtype=dtype):
            self.x = C.input_variable(case.shape, dtype, needs_gradient=True, name="x")
            self.inner = case.layer()(self.x)
            self.residual = C.input_variable(self.inner.shape, dtype, name="residual")
            total = C.plus(*[self.inner, self.residual][::order])
            self.whole = C.relu(total) if rectify else total

    def data(self, rows: int) -> dict[Any, Any]:
        random, dtype = np.random.default_rng(rows), self.x.dtype
        return {of: random.standard_normal((rows, *of.shape)).astype(dtype) for of in (self.x, self.residual)}


@CASE
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rectify", [False, True])
def test_sums_have_the_bits_of_sums_of_their_own(name: str, dtype: Any, rectify: bool) -> None:
    case = CASES[name]
    block = Block(case, dtype, rectify, order=-1 if rectify else 1)
    assert operators(block.whole).count("Plus") == 0
    with all_set_to(0):
        for rows in case.rows:
            data = block.data(rows)
            wanted = block.inner.eval({block.x: data[block.x]}) + data[block.residual]
            wanted = np.maximum(wanted, 0) if rectify else wanted
            bound = block.whole.bind({of: array.shape for of, array in data.items()})
            for number in (1, 3):
                threads.set_max_threads(number)
                for _ in range(2):
                    np.testing.assert_array_equal(block.whole.eval(data), wanted)
                    np.testing.assert_array_equal(bound(data), wanted)


def operators(function: Any, **more: Any) -> list[str]:
    """Names of the operators that a program has on their own."""
    return [type(instruction.op).__name__ for instruction in program_for(function, function.outputs, **more).instructions]


@CASE
def test_results_are_those_without_passes(name: str) -> None:
    case = CASES[name]
    block = Block(case, np.float32, rectify=True)
    for rows in (*case.rows, 7):
        data = block.data(rows)
        found = block.whole.eval(data)
        C.debugging.set_passes([])
        np.testing.assert_allclose(found, block.whole.eval(data), rtol=1e-4, atol=1e-3)
        C.debugging.set_passes()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (convolution((1, 1), 40), (40, 9, 7)),
        (convolution((3, 3), 9), (9, 12, 41)),
        (convolution((3, 3), 24), (24, 12, 11)),
        (dense(64), (64,)),
    ],
)
def test_a_block_adds_what_it_is_given_and_nobody_may_write(layer: Callable[[], Any], shape: Sequence[int]) -> None:
    x = C.input_variable(shape)
    inner = layer()(x)
    y = C.relu(inner + x)
    data = np.random.default_rng(3).standard_normal((2, *shape)).astype(np.float32)
    data.flags.writeable = False
    with all_set_to(0):
        np.testing.assert_array_equal(y.eval({x: data}), np.maximum(inner.eval({x: data}) + data, 0))
        np.testing.assert_array_equal(y.bind(data.shape)(data), y.eval({x: data}))


@CASE
def test_training_leaves_the_sum_alone(name: str) -> None:
    block = Block(CASES[name], np.float32, rectify=True)
    names = operators(block.whole, wrt=block.whole.parameters, gradient_roots=block.whole.outputs, training=True)
    assert names.count("Plus") == 1


@pytest.mark.parametrize("kernel", [(1, 1), (3, 3)], ids=str)
def test_a_number_for_each_filter_and_sample_is_not_a_residual(kernel: Any) -> None:
    x, y = C.input_variable((40, 8, 9)), C.input_variable((64, 1, 1))
    inner = convolution(kernel, 64)()(x)
    z = C.relu(inner + y)
    random = np.random.default_rng(4)
    data = {x: random.standard_normal((3, *x.shape)).astype(np.float32), y: random.standard_normal((3, *y.shape)).astype(np.float32)}
    with all_set_to(0):
        np.testing.assert_array_equal(z.eval(data), np.maximum(inner.eval({x: data[x]}) + data[y], 0))


def test_a_residual_without_a_batch_axis_is_left_alone() -> None:
    x = C.input_variable((40, 8, 9))
    constant = C.constant(np.random.default_rng(5).standard_normal((64, 8, 9)).astype(np.float32))
    inner = convolution((1, 1), 64)()(x)
    data = np.random.default_rng(6).standard_normal((3, *x.shape)).astype(np.float32)
    with all_set_to(0):
        np.testing.assert_array_equal((inner + constant).eval({x: data}), inner.eval({x: data}) + constant.value)


def test_sequences_have_residuals() -> None:
    x = C.sequence.input_variable(48)
    inner = dense(48)()(x)
    random = np.random.default_rng(7)
    sequences = [random.standard_normal((length, 48)).astype(np.float32) for length in (3, 17, 1, 40)]
    with all_set_to(0):
        for found, before, own in zip(C.relu(inner + x).eval({x: sequences}), inner.eval({x: sequences}), sequences, strict=True):
            np.testing.assert_array_equal(found, np.maximum(before + own, 0))
