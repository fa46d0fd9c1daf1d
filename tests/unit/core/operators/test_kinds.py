"""What authors of operators have to learn: a small base class, and kinds for what is rare."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk import extend
from cntk.core.extension.device import backend_named
from cntk.core.extension.hookspecs import RegisterKernel
from cntk.core.extension.identity import still_holds
from cntk.core.operators.effects import Assignment, Effect, Finishing
from cntk.core.operators.op import Op, Traits
from cntk.core.operators.sequence_op import SequenceOp
from cntk.core.operators.view import GradientView, View
from cntk.core.program.program import Program
from cntk.plugins.ops.identity import NoOp, StopGradient
from cntk.plugins.ops.shaping import Reshape


def test_an_author_has_nine_attributes_and_five_methods_of_op_to_learn() -> None:
    public = {name: member for name, member in vars(Op).items() if not name.startswith("_")}
    methods = {name for name, member in public.items() if inspect.isroutine(member) or isinstance(member, property)}
    assert methods == {"infer", "resolve", "common", "forward", "backward"}
    assert len(public.keys() - methods) <= 9


class Column(View, GradientView):
    """The operand with one axis more."""

    def infer(self, x: Any) -> Any:
        return x.but(shape=(*x.dims, 1))

    def view(self, x: Any, out_shape: Any) -> Any:
        return x.reshape(out_shape)

    def grad_view(self, grad: Any, in_shape: Any) -> Any:
        return grad.reshape(in_shape)


class DoubleColumn(Column):
    """What is computed in another way is no view any more."""

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        ctx.xp.multiply(inputs[0].reshape(out.shape), 2, out=out)


class Borrowed(Op):
    """No view, for it is none of the kind, whatever its methods are called."""

    def infer(self, x: Any) -> Any:
        return x.but()

    def view(self, x: Any, out_shape: Any) -> Any:
        raise AssertionError

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        ctx.xp.copyto(out, inputs[0])


@pytest.mark.parametrize(
    ("op", "is_view", "has_gradient_view"),
    [
        (NoOp(), True, True),
        (StopGradient(), True, False),
        (Column(), True, True),
        (DoubleColumn(), False, True),
        (Borrowed(), False, False),
    ],
)
def test_views_are_of_their_kind_and_have_no_step_of_their_own(op: Op, is_view: bool, has_gradient_view: bool) -> None:
    x = C.input_variable(2, needs_gradient=True)
    program = Program(op(x * 2).outputs, backend_named("numpy"))
    (found,) = [instruction for instruction in program.instructions if type(instruction.op) is type(op)]
    assert (found.is_view, found.has_gradient_view) == (is_view, has_gradient_view)


def test_a_view_needs_no_methods_beside() -> None:
    x = C.input_variable(2, needs_gradient=True)
    column = C.reduce_sum(Column()(x * 3) * [[1], [2]])
    assert Column()(x).eval({x: [[1, 2]]}).tolist() == [[[1], [2]]]
    assert column.grad({x: [[1, 2]]}).tolist() == [[3, 6]]
    out = np.empty((1, 2, 1))
    Column().forward(_Plain, out, np.ones((1, 2)))  # type: ignore[arg-type]
    assert out.tolist() == [[[1], [1]]]


class _Plain:
    xp = np


def test_a_subclass_with_methods_of_its_own_has_none_of_the_kinds() -> None:
    assert still_holds(Reshape, "view", "forward")
    assert still_holds(Reshape, "grad_view", "backward")
    assert not still_holds(DoubleColumn, "view", "forward")


class Told(SequenceOp):
    """Says nothing of rows."""

    def infer(self, x: Any) -> Any:
        return x.but()

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        ctx.xp.copyto(out, inputs[0])


class Deciding(Told):
    """Takes values to know how its rows lie."""

    def decide_layout(self, ctx: Any, *inputs: Any) -> Any:
        return ctx.layouts[0]


def test_rows_lie_as_those_of_operands_where_a_sequence_operator_says_nothing() -> None:
    x = C.sequence.input_variable(1)
    given = [np.float32([[1], [2]]), np.float32([[3]])]
    for op, stages in ((Told(), 1), (Deciding(), 2)):
        assert [value.tolist() for value in op(x).eval(given)] == [value.tolist() for value in given]
        assert Program(op(x).outputs, backend_named("numpy")).stages == stages


class Checkpointed(Told):
    def create_checkpoint(self) -> dict[str, Any]:
        return {"state": 1}


@pytest.mark.parametrize(
    ("kind", "has_effects"), [(Told, False), (Checkpointed, True), (Effect, True), (Assignment, True), (Finishing, True)]
)
def test_what_has_effects_is_known_by_its_kind_or_its_checkpoints(kind: type[Op], has_effects: bool) -> None:
    assert kind().has_effects is has_effects


def test_traits_are_said_together() -> None:
    with pytest.raises(TypeError, match=r"Wrong: compares is one of the traits; write traits = Traits\(compares=\.\.\.\)"):
        type("Wrong", (Op,), {"compares": True})
    assert type("Right", (Op,), {"traits": Traits(compares=True)}).traits.compares


def test_what_authors_import_is_at_most_twenty_names_and_all_are_there() -> None:
    assert len(extend.__all__) <= 20
    assert all(hasattr(extend, name) for name in extend.__all__)
    kinds = {kind for kind in (extend.Elementwise, extend.View, extend.Delay, extend.SequenceOp) if issubclass(kind, extend.Op)}
    assert len(kinds) == 4


class Whole:
    """A kernel that can do all."""

    @staticmethod
    def forward(op: Any, ctx: Any, out: Any, x: Any) -> None:
        op.forward(ctx, out, x)

    @staticmethod
    def backward(op: Any, ctx: Any, grad: Any, grads: Any, out: Any, x: Any) -> None:
        op.backward(ctx, grad, grads, out, x)

    @staticmethod
    def bind(op: Any, ctx: Any, out: Any, x: Any) -> Callable[[], None] | None:
        return None

    @staticmethod
    def declines(op: Any, ctx: Any, out: Any, x: Any) -> bool:
        return False


class Plain:
    forward, backward = Whole.forward, Whole.backward


class Kernels:
    def __init__(self, kernel: extend.Kernel) -> None:
        self.kernel = kernel

    @extend.hookimpl
    def cntk_register_kernels(self, register: RegisterKernel) -> None:
        register(Borrowed, "numpy", self.kernel)


@pytest.mark.parametrize(("kernel", "is_asked"), [(Whole, True), (Plain, False)])
def test_what_a_kernel_can_do_besides_is_told_by_its_methods(kernel: Any, is_asked: bool) -> None:
    extend.register_plugin(Kernels(kernel), "kinds")
    try:
        (instruction,) = Program(Borrowed()(C.input_variable(1)).outputs, backend_named("numpy")).instructions
        assert instruction.kernel is kernel
        assert (instruction.bind is not None, instruction.declines is not None) == (is_asked, is_asked)
        assert Borrowed()(C.input_variable(1)).eval([[5]]).tolist() == [[5]]
    finally:
        extend.unregister_plugin("kinds")
