"""Element-wise operators that go to the kernel before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.core.extension.device import backend_named
from cntk.core.extension.hookspecs import hookimpl
from cntk.core.operators.epilogue import Epilogue, Step
from cntk.core.operators.op import ALL, Op
from cntk.core.program.program import Program
from cntk.core.types.spec import Spec
from cntk.testing import assert_close

NUMPY = backend_named("numpy")


class Project(Op):
    """Rows times a matrix."""

    op_name = "Project"
    keep_inputs = ALL
    sparse_inputs = (0,)

    def infer(self, *inputs: Spec) -> Spec:
        return self.common(*inputs).but(shape=inputs[1].dims[1:])

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        ctx.xp.matmul(*inputs, out=out)

    def backward(self, ctx: Any, grad: Any, grads: Any, out: Any, *inputs: Any) -> None:
        x, w = inputs
        if grads[0] is not None:
            ctx.xp.matmul(grad, w.T, out=grads[0])
        if grads[1] is not None:
            ctx.xp.matmul(x.T, grad, out=grads[1])


class Taking:
    """A kernel of products that takes all it is offered, or some, and leaves it to the steps themselves."""

    most = 9
    offered: ClassVar[list[list[str]]] = []

    @classmethod
    def takes(cls, op: Any, steps: Sequence[Step]) -> int:
        cls.offered.append([step.op.op_name for step in steps])
        return min(cls.most, len(steps))

    @staticmethod
    def forward(op: Any, ctx: Any, out: Any, *inputs: Any, epilogue: Epilogue | None = None) -> None:
        op.forward(ctx, out, *inputs)
        if epilogue is not None:
            epilogue.forward(ctx, out)

    @staticmethod
    def backward(op: Any, ctx: Any, grad: Any, grads: Any, out: Any, *inputs: Any, epilogue: Epilogue | None = None) -> None:
        if epilogue is not None:
            grad = epilogue.backward(ctx, grad, out)
        op.backward(ctx, grad, grads, None, *inputs)


class TakingPlugin:
    @hookimpl
    def cntk_register_kernels(self, register: Any) -> None:
        register(Project, "numpy", Taking)


@pytest.fixture(autouse=True)
def taking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Taking, "offered", [])
    monkeypatch.setattr(Taking, "most", 9)
    plugins.register_plugin(TakingPlugin(), "taking")
    yield
    plugins.unregister_plugin("taking")
    C.debugging.set_passes()


def product(x: Any) -> Any:
    return Project()(x, C.parameter((3, 4), init=np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)))


def bias() -> Any:
    return C.parameter((4,), init=np.array([0.5, -0.5, 0, 1], np.float32))


def rectified(x: Any) -> Any:
    return C.relu(product(x) + bias())


def residual(x: Any) -> Any:
    return C.relu(C.sin(C.slice(x, 0, 0, 1)) * [1, 2, 3, 4] - product(x))


def shifted_twice(x: Any) -> Any:
    return C.tanh(bias() + product(x) + bias()) * 2


def recurrent(x: Any) -> Any:
    before = C.placeholder()
    matrix = C.parameter((4, 4), init=np.eye(4, dtype=np.float32))
    h = C.tanh(product(x) + C.tanh(Project()(C.sequence.past_value(before), matrix) + bias()))
    return C.sequence.last(h.replace_placeholders({before: h.output}))


def mirrored(x: Any) -> Any:
    return C.tanh(bias() - (bias() - product(x)))


TAKEN = {
    rectified: ["Plus", "ReLU"],
    residual: ["Minus", "ReLU"],
    mirrored: ["Minus", "Minus", "Tanh"],
    shifted_twice: ["Plus", "Plus", "Tanh"],
}


def operators(root: Any, **options: Any) -> list[str]:
    return [instruction.op.op_name for instruction in Program(root.outputs, NUMPY, **options).instructions]


@pytest.mark.parametrize("model", TAKEN, ids=lambda model: str(model.__name__))
def test_a_kernel_is_offered_what_follows(model: Any) -> None:
    names = operators(model(C.input_variable(3)))
    assert Taking.offered == [TAKEN[model]]
    assert "Project" in names
    assert not set(names) & set(TAKEN[model])


def test_none_is_offered_what_follows_a_product_of_sparse_rows() -> None:
    assert operators(rectified(C.input_variable(3, is_sparse=True))) == ["Project", "Plus", "ReLU"]
    assert Taking.offered == []


def test_it_may_take_some() -> None:
    Taking.most = 1
    assert operators(rectified(C.input_variable(3))) == ["Project", "ReLU"]
    Taking.most = 0
    assert operators(rectified(C.input_variable(3))) == ["Project", "Plus", "ReLU"]


def test_it_is_offered_nothing_without_the_pass_or_where_messages_tell_the_operator() -> None:
    y = rectified(C.input_variable(3))
    operators(y, checked=True)
    C.debugging.set_passes(["common", "in_place"])
    assert operators(y) == ["Project", "Plus", "ReLU"]
    assert Taking.offered == []


def of_two_readers(x: Any) -> Any:
    y = product(x)
    return C.relu(y) + C.sin(y)


def of_two_roots(x: Any) -> Any:
    y = product(x)
    return C.combine([C.relu(y), y])


def multiplied(x: Any) -> Any:
    return C.element_times(product(x), bias())  # the gradient of the factor needs the product


def dropped(x: Any) -> Any:
    return C.dropout(product(x), 0.5)


def widened(x: Any) -> Any:
    return product(x) + np.ones((2, 4), np.float32)


@pytest.mark.parametrize("model", [of_two_readers, of_two_roots, multiplied, dropped, widened], ids=lambda model: str(model.__name__))
def test_it_is_not_offered_what_cannot_be_done_in_place(model: Any) -> None:
    operators(model(C.input_variable(3)))
    assert Taking.offered == []


@pytest.mark.parametrize("model", [*TAKEN, recurrent], ids=lambda model: str(model.__name__))
def test_results_and_gradients_are_the_same(model: Any) -> None:
    is_sequence = model is recurrent
    x = C.sequence.input_variable(3, needs_gradient=True) if is_sequence else C.input_variable(3, needs_gradient=True)
    random = np.random.default_rng(1)
    data = [random.normal(size=(n, 3)).astype(np.float32) for n in (2, 3)] if is_sequence else random.normal(size=(5, 3)).astype(np.float32)
    y = model(x)
    found = []
    for names in (None, []):
        C.debugging.set_passes(names)
        gradients, result = y.grad({x: data}, wrt=[x, *y.parameters], outputs=[y])
        evaluated = y.eval({x: data})
        found.append([*np.atleast_2d(result), *np.atleast_2d(evaluated), *(g for of in y.parameters for g in gradients[of]), *gradients[x]])
    for one, other in zip(*found, strict=True):
        assert_close(one, other)
