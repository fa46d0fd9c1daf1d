"""The checking backend finds operators that do not keep their promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.checking.backend import CheckingBackend
from cntk.backends.checking.checks import _backward, _forward
from cntk.core.graph.inference import apply
from cntk.core.program.program import Program
from cntk.core.run.evaluate import feeds_for
from cntk.core.run.workspace import start
from cntk.core.types.context import Context
from cntk.plugins.ops.activation import Tanh
from cntk.testing import check_backend


class Accumulating(Tanh):
    """Adds to what is in the result, and in the gradient."""

    def forward(self, ctx: Any, y: Any, x: Any) -> None:
        y += x

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, x: Any) -> None:
        dx += dy


class Overwriting(Tanh):
    """Writes to what it reads."""

    def forward(self, ctx: Any, y: Any, x: Any) -> None:
        y[...] = x
        x += 1

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, x: Any) -> None:
        dx[...] = dy
        dy += 1


class Remembering(Tanh):
    """Takes scratch space for a place to keep things."""

    def forward(self, ctx: Any, y: Any, x: Any) -> None:
        ctx.scratch("kept", x.shape, x.dtype)[...] = x
        y[...] = x

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, x: Any) -> None:
        dx[...] = ctx.scratch("kept", dx.shape, dx.dtype)


class Careful(Tanh):
    in_place = ()
    gradient_in_place = ()


def arrays(count: int) -> list[Any]:
    return [np.ones((2, 3), np.float32) for _ in range(count)]


def context() -> Context:
    return Context(CheckingBackend(), training=True)


def test_it_is_a_backend() -> None:
    check_backend(CheckingBackend)
    backend = CheckingBackend()
    assert np.isnan(backend.empty((2,), np.float32)).all()
    assert np.isnan(backend.view(backend.allocate(64), 0, (4,), np.float64)).all()


def test_results_and_gradients_are_nan_before() -> None:
    op, (x, y, dx, dy) = Accumulating(), arrays(4)
    _forward(op, op.forward, context(), y, x)
    _backward(op, op.backward, context(), dy, [dx], y, x)
    assert np.isnan(y).all()
    assert np.isnan(dx).all()


def test_operands_are_not_written_to() -> None:
    op, (x, y, dx, dy) = Overwriting(), arrays(4)
    with pytest.raises(RuntimeError, match=r"Tanh: forward has written to an array of shape \(2, 3\) that it is to read"):
        _forward(op, op.forward, context(), y, x)
    with pytest.raises(RuntimeError, match="Tanh: backward has written to an array"):
        _backward(op, op.backward, context(), dy, [dx], y, x)


def test_scratch_space_is_not_kept() -> None:
    op, ctx, (x, y, dx, dy) = Remembering(), context(), arrays(4)
    _forward(op, op.forward, ctx, y, x)
    _backward(op, op.backward, ctx, dy, [dx], y, x)
    assert np.isnan(dx).all()


def test_results_lie_over_operands_where_the_operator_says_so() -> None:
    (x, y, dy), op = arrays(3), Tanh()
    _forward(op, op.forward, context(), x, x)
    np.testing.assert_allclose(x, np.tanh(np.float32(1)), rtol=1e-6)
    careful = Careful()
    with pytest.raises(RuntimeError, match="Tanh: the result lies in the memory of operand 0"):
        _forward(careful, careful.forward, context(), x, x)
    with pytest.raises(RuntimeError, match="Tanh: the gradient of operand 0 lies in that of the result"):
        _backward(careful, careful.backward, context(), dy, [dy], y, None)
    with pytest.raises(RuntimeError, match="Tanh: the gradient of operand 0 lies in the memory of operand 0"):
        _backward(careful, careful.backward, context(), dy, [y], y, None)


class Undeclared(Tanh):
    """Reads its operand on the way back, and does not say so."""

    def forward(self, ctx: Any, y: Any, x: Any) -> None:
        super().forward(ctx, y, x)
        self.read = x

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, x: Any) -> None:
        dx[...] = dy * (1 - np.tanh(self.read) ** 2)


class Declared(Undeclared):
    keep_inputs = (0,)


@pytest.mark.parametrize(("kind", "is_read"), [(Undeclared, False), (Declared, True)])
def test_operands_are_nan_after_their_last_use(kind: type[Tanh], is_read: bool) -> None:
    x = C.input_variable(2, needs_gradient=True)
    inner = C.sin(x)
    outer = apply(kind(), [inner])
    program = Program(outer.outputs, CheckingBackend(), wrt=[x], gradient_roots=outer.outputs, training=True, passes=())
    data = np.array([[0.5, -1]], np.float32)
    run = start(program, feeds_for(program, {x: data}))
    run.forward()
    read = program.instructions[-1].op.read  # type: ignore[attr-defined]
    np.testing.assert_allclose(read, np.sin(data) if is_read else np.full_like(data, np.nan), rtol=1e-6)
    run.backward()
    found = run.binding.arrays[program.gradient_slots[x]]
    assert np.allclose(found, (1 - np.tanh(np.sin(data)) ** 2) * np.cos(data)) == is_read
