"""Identity is the class: an operator with methods of its own gets nothing that was made for another, whatever it is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.core.extension.compiled import is_wanted
from cntk.core.extension.device import backend_named
from cntk.core.extension.identity import ByClass, identity_of, still_holds
from cntk.core.operators.elementwise import Elementwise
from cntk.core.program.program import Program
from cntk.plugins.ops.activation import ReLU, Tanh
from cntk.plugins.ops.pooling import Pooling
from cntk.plugins.ops.shaping import Reshape
from cntk.plugins.ops.slicing import Slice
from cntk.plugins.ops.softmax import Softmax

ROWS = [2, 64, 1024, 4096]


class Doubled(Tanh):
    """Twice the operand, whatever it is called."""

    op_name = "Tanh"

    def forward(self, ctx: Any, y: Any, x: Any) -> None:
        ctx.xp.multiply(x, 2, out=y)

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, x: Any) -> None:
        ctx.xp.multiply(dy, 2, out=dx)


class Half(Softmax):
    """Half the softmax."""

    def forward(self, ctx: Any, out: Any, x: Any) -> None:
        super().forward(ctx, out, x)
        out *= 0.5


class Renamed(Softmax):
    """The softmax under another name."""

    op_name = "Renamed"

    def __init__(self) -> None:
        super().__init__(axis=-1)


def data(rows: int, width: int = 1024) -> Any:
    return np.random.default_rng(rows).normal(size=(rows, width)).astype(np.float32)


def kernel_for(cls: type) -> Any:
    place = plugins.kernel_place(cls, "numpy")
    return None if place is None else plugins.kernels.get(place)


@pytest.mark.parametrize("rows", ROWS)
def test_an_operator_called_like_another_computes_itself(rows: int) -> None:
    x, values = C.input_variable(1024, needs_gradient=True), data(rows)
    result = Doubled()(x) + 1
    np.testing.assert_array_equal(result.eval({x: values}), values * 2 + 1)
    np.testing.assert_array_equal(result.grad({x: values}, wrt=[x]), np.full_like(values, 2))


def test_an_operator_called_like_another_computes_itself_in_recurrences() -> None:
    x, before = C.sequence.input_variable(64), C.placeholder()
    state = Doubled()(x + C.times(C.sequence.past_value(before), np.eye(64, dtype=np.float32) / 4))
    state = state.replace_placeholders({before: state.output})
    values = data(3 * 256, 64).reshape(256, 3, 64)
    expected = np.zeros((256, 64), np.float32)
    for step in range(3):
        expected = 2 * (values[:, step] + expected / 4)
    np.testing.assert_allclose(C.sequence.last(state).eval({x: list(values)}), expected, rtol=1e-5)


@pytest.mark.parametrize("rows", ROWS)
def test_a_subclass_computes_by_its_own_forward(rows: int) -> None:
    x = C.input_variable(100)
    np.testing.assert_allclose(Half(axis=-1)(x).eval({x: data(rows, 100)}).sum(axis=1), np.full(rows, 0.5), rtol=1e-5)


@pytest.mark.skipif(not is_wanted(), reason="compiled loops are switched off")
def test_a_subclass_that_does_the_same_has_the_kernel() -> None:
    assert kernel_for(Softmax) is not None
    assert kernel_for(Renamed) is kernel_for(Softmax)
    assert kernel_for(Half) is None
    assert kernel_for(type("Twice", (Half,), {})) is None


def test_a_mixin_counts_where_it_comes_first() -> None:
    class Mixin:
        def forward(self, ctx: Any, out: Any, x: Any) -> None:
            out[...] = 7

    assert kernel_for(type("Before", (Mixin, Softmax), {})) is None
    assert kernel_for(type("Behind", (Softmax, Mixin), {})) is kernel_for(Softmax)


def test_a_class_of_the_same_import_string_is_another() -> None:
    other = type("Softmax", (Softmax,), {"__module__": Softmax.__module__, "forward": Half.forward})
    assert identity_of(Softmax) == "cntk.plugins.ops.softmax:Softmax"
    assert identity_of(other) is other
    assert kernel_for(other) is None


def test_what_belongs_to_classes() -> None:
    table = ByClass({"cntk.plugins.ops.softmax:Softmax": 0})
    assert (table[Softmax], table[Renamed], table.get(Half)) == (0, 0, None)
    assert Half not in table
    with pytest.raises(KeyError, match=r"there is no entry for .*Half"):
        table[Half]


@pytest.mark.skipif(not is_wanted(), reason="compiled loops are switched off")
def test_engines_are_no_kernels() -> None:
    for name in ("Chain", "Csr", "Products", "Recurrence"):
        assert (name, "numpy") in plugins.engines
        assert kernel_for(type(name, (Tanh,), {"op_name": name, "forward": Doubled.forward})) is None


class Negative(ReLU):
    """Does not keep the order, though its base does."""

    def forward(self, ctx: Any, y: Any, x: Any) -> None:
        ctx.xp.negative(x, out=y)


def test_what_a_class_says_of_its_methods_is_not_said_of_those_of_a_subclass() -> None:
    assert still_holds(ReLU, "keeps_order", "forward")
    assert not still_holds(Negative, "keeps_order", "forward")
    x = C.input_variable((1, 4, 4))
    values = np.random.default_rng(1).normal(size=(2, 1, 4, 4)).astype(np.float32)
    result = C.pooling(Negative()(x), C.MAX_POOLING, (2, 2), (2, 2)).eval({x: values})
    np.testing.assert_array_equal(result, (-values).reshape(2, 1, 2, 2, 2, 2).max(axis=(3, 5)))


def test_a_maximum_of_its_own_comes_where_it_is() -> None:
    class Smallest(Pooling):
        def forward(self, ctx: Any, out: Any, x: Any) -> None:
            out.fill(-3)

    x = C.input_variable((1, 4, 4))
    found = C.pooling(C.relu(x), C.MAX_POOLING, (2, 2), (2, 2)).root_function.op
    mine = Smallest(**{name: getattr(found, name) for name in found._attribute_names})
    assert mine(C.relu(x)).eval({x: np.ones((2, 1, 4, 4), np.float32)}).max() == -3


class Shifted(Slice):
    """A slice, with one added."""

    def forward(self, ctx: Any, out: Any, x: Any) -> None:
        ctx.xp.add(self.view(x, out.shape), 1, out=out)


class Turned(Reshape):
    """The elements last first."""

    def forward(self, ctx: Any, out: Any, x: Any) -> None:
        out.reshape(len(x), -1)[...] = x.reshape(len(x), -1)[:, ::-1]

    def backward(self, ctx: Any, grad: Any, grads: Any, out: Any, x: Any) -> None:
        grads[0].reshape(len(grad), -1)[...] = grad.reshape(len(grad), -1)[:, ::-1]


def test_a_subclass_of_a_view_with_a_forward_is_none() -> None:
    x, values = C.input_variable(4, needs_gradient=True), data(3, 4)
    shifted = Shifted(axis=C.Axis(0), begin_index=1, end_index=3, slice_strides=1)
    np.testing.assert_array_equal(C.abs(shifted(x)).eval({x: values}), np.abs(values[:, 1:3] + 1))
    turned = Turned(**{name: getattr(C.reshape(x, (2, 2)).root_function.op, name) for name in ("new_shape", "begin_axis", "end_axis")})
    weights = np.float32([[1, 2], [3, 4]])
    result = turned(x) * weights
    np.testing.assert_array_equal(result.eval({x: values}), values[:, ::-1].reshape(3, 2, 2) * weights)
    np.testing.assert_array_equal(result.grad({x: values}, wrt=[x]), np.tile(np.float32([4, 3, 2, 1]), (3, 1)))


def test_operators_that_are_inserted_are_told_apart_by_class() -> None:
    x, y = C.input_variable(3), C.sequence.input_variable(3)
    program = Program((y * x + x * y).outputs, backend_named("numpy"))
    assert [instruction.op.op_name for instruction in program.instructions].count("Expand") == 1


def test_a_name_that_another_package_has_is_refused() -> None:
    expected = r"operator name 'Tanh': other\.Mine has the name of cntk\.plugins\.ops\.activation\.Tanh; change its op_name"
    with pytest.raises(ValueError, match=expected):
        type("Mine", (Elementwise,), {"op_name": "Tanh", "__module__": "other"})
    for _ in range(2):
        type("Mine", (Elementwise,), {"op_name": "Third", "__module__": "other.ops"})
    with pytest.raises(ValueError, match=r"operator name 'Third': another\.Mine has the name of other\.ops\.Mine"):
        type("Mine", (Elementwise,), {"op_name": "Third", "__module__": "another"})
