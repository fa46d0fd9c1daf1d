"""Arrays that kernels have made of operands: when they are made, and for whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.operators.op import Op
from cntk.extend import hookimpl, register_plugin, unregister_plugin

MADE: list[str] = []
ROWS = np.float32([[1, 2], [3, 4]])


class ScaledByPrepared(Op):
    """The operand times twice the weights."""

    op_name = "ScaledByPrepared"
    keep_inputs = (0, 1)

    def infer(self, *inputs: Any) -> Any:
        return self.common(*inputs).but(shape=inputs[0].shape)

    def forward(self, ctx: Any, out: Any, x: Any, w: Any) -> None:
        np.multiply(x, 2 * w, out=out)

    def backward(self, ctx: Any, grad: Any, grads: Any, out: Any, x: Any, w: Any) -> None:
        for target, other in zip(grads, (2 * w, 2 * x), strict=True):
            if target is not None:
                ctx.sum_to(grad * other, target)


class Prepares:
    """Its kernel, which doubles the weights beforehand where it can."""

    @staticmethod
    def forward(op: Any, ctx: Any, out: Any, x: Any, w: Any) -> None:
        doubled = ctx.prepared(1, w, "doubled", w.shape, w.dtype, _double)
        assert ctx.prepared(0, x, "doubled", x.shape, x.dtype, _double) is None
        MADE.append("read" if doubled is not None else "computed")
        np.multiply(x, 2 * w if doubled is None else doubled, out=out)

    @staticmethod
    def backward(op: Any, ctx: Any, *arguments: Any) -> None:
        op.backward(ctx, *arguments)


def _double(made: Any, array: Any) -> None:
    MADE.append("made")
    np.multiply(array, 2, out=made)


class Plugin:
    @hookimpl
    def cntk_register_kernels(self, register: Any) -> None:
        register(ScaledByPrepared, "numpy", Prepares)


@pytest.fixture(autouse=True)
def kernel() -> Iterator[None]:
    register_plugin(Plugin(), "prepares")
    MADE.clear()
    yield
    unregister_plugin("prepares")


def scaled(w: Any) -> Any:
    return ScaledByPrepared()(C.input_variable(2, needs_gradient=True), w)


def test_it_is_made_once_for_all_sizes_and_again_when_the_operand_has_changed() -> None:
    w = C.parameter(2, init=1)
    f = scaled(w)
    for rows in (ROWS, ROWS[:1], ROWS):
        np.testing.assert_array_equal(f.eval(rows), 2 * rows)
    assert MADE == ["made", "read", "read", "read"]
    w.value = np.float32([3, 5])
    np.testing.assert_array_equal(f.eval(ROWS), ROWS * [6, 10])
    C.sgd([w], 1.0).update({w: np.ones(2, np.float32)}, 1)
    np.testing.assert_array_equal(f.eval(ROWS), ROWS * [4, 8])
    assert MADE[4:] == ["made", "read"] * 2


def test_it_is_made_of_what_is_folded_from_parameters() -> None:
    w = C.parameter(2, init=1)
    f = scaled(C.exp(w))
    np.testing.assert_allclose(f.eval(ROWS), 2 * np.e * ROWS, rtol=1e-6)
    w.value = np.float32([0, 0])
    np.testing.assert_allclose(f.eval(ROWS), 2 * ROWS, rtol=1e-6)
    f.eval(ROWS)
    assert MADE == ["made", "read", "made", "read", "read"]


def test_views_of_a_parameter_change_with_it() -> None:
    w = C.parameter((1, 2), init=1)
    f = scaled(C.reshape(w, (2,)))
    np.testing.assert_array_equal(f.eval(ROWS), 2 * ROWS)
    w.value = np.float32([[3, 5]])
    np.testing.assert_array_equal(f.eval(ROWS), ROWS * [6, 10])


def test_an_assignment_is_a_change() -> None:
    w = C.parameter(2, init=1)
    f, count = scaled(w), C.assign(w, w + 1)
    for step in range(1, 4):
        np.testing.assert_array_equal(f.eval(ROWS), 2 * step * ROWS)
        count.eval()


def test_training_prepares_nothing() -> None:
    w = C.parameter(2, init=1)
    f = scaled(w)
    np.testing.assert_array_equal(f.grad(ROWS, wrt=[w]), 2 * ROWS.sum(axis=0))
    assert MADE == ["computed"]
