"""Results and gradients in the memory of what they are computed from, and gradients that are added without copies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.core.extension.device import backend_named
from cntk.core.operators.elementwise import Elementwise
from cntk.core.operators.op import Op, Which, includes
from cntk.core.operators.samples import Operand
from cntk.core.program.program import Program
from cntk.core.run.evaluate import feeds_for
from cntk.core.run.workspace import start
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout

NUMPY = backend_named("numpy")


def training_program(loss: Any, names: list[str] | None = None) -> Program:
    C.debugging.set_passes(names)
    return Program(loss.outputs, NUMPY, wrt=loss.parameters, gradient_roots=loss.outputs, training=True)


def pieces(program: Program, gradients: bool) -> int:
    """How many values, or gradients, with rows have memory of their own."""
    slots = enumerate(program.slots)
    return sum(
        slot.base == i and slot.kind == "computed" and (slot.like is not None) == gradients and bool(slot.spec.axes) for i, slot in slots
    )


def test_product_bias_and_activation_have_one_array() -> None:
    x = C.input_variable(3)
    loss = C.reduce_sum(C.layers.Dense(4, activation=C.relu)(x), 0)
    fused, plain = training_program(loss), training_program(loss, [])
    assert (pieces(plain, False), pieces(fused, False)) == (4, 2)
    assert (pieces(plain, True), pieces(fused, True)) == (3, 2)
    assert [i.reuses is not None for i in fused.instructions] == [False, True, True, False]


def test_what_backward_reads_is_not_written_over() -> None:
    x = C.input_variable(3)
    loss = C.reduce_sum(C.sin(C.tanh(C.times(x, C.parameter((3, 2))))), 0)
    assert not any(i.reuses for i in training_program(loss).instructions if i.op.op_name == "Sin")


@pytest.mark.parametrize("both", [lambda x: C.relu(C.exp(x)) + C.exp(x), lambda x: C.combine([C.relu(C.exp(x)), C.exp(x)])])
def test_what_others_read_later_or_asked_for_is_not_written_over(both: Any) -> None:
    x = C.input_variable(2)
    row = np.array([[1, 2]], np.float32)
    found = both(x).eval({x: row})
    for value in found.values() if isinstance(found, dict) else [found / 2]:
        np.testing.assert_allclose(value, np.exp(row), rtol=1e-6)


def test_inputs_and_parameters_keep_their_values() -> None:
    x, w = C.input_variable(2), C.parameter(2, init=-1)
    row = np.array([[-1, 2]], np.float32)
    f = C.combine([C.relu(x), C.relu(w)])
    for _ in range(2):
        f.eval({x: row})
    np.testing.assert_equal([w.value, row[0]], [[-1, -1], [-1, 2]])


def test_a_gradient_is_added_to_others_from_where_it_lies() -> None:
    x = C.input_variable(2)
    hidden = C.times(x, C.parameter((2, 2)))
    loss = C.reduce_sum(C.sin(hidden + 1) + C.tanh(hidden), 0)
    with_copies, without = (training_program(loss, names) for names in ([], ["accumulation"]))
    counts = [sum(grad is not None for i in program.instructions for grad in i.grads) for program in (with_copies, without)]
    assert counts[1] == counts[0] - 1


def test_gradients_of_one_operand_used_three_times() -> None:
    x = C.input_variable(2, needs_gradient=True)
    row = np.array([[1, 2]], np.float32)
    for f, slope in [((x + x) + x, 3), (x + (x - x), 1), ((x + x) * (x + x), 8 * row), (-(x + x) - x, -3)]:
        np.testing.assert_allclose(f.grad({x: row}), slope * np.ones((1, 2)))
        np.testing.assert_allclose((f + x).grad({x: row}), slope * np.ones((1, 2)) + 1)


MODULES = {"activation", "arithmetic", "dropout", "elementary", "maximum", "scaling", "trigonometry"}
"""Modules of ``cntk.plugins.ops`` with operators that may compute in place."""


def cases() -> list[Any]:
    """Each way of calling an operator that may compute in place, in its samples."""
    found = []
    for name in plugins.ops.names():
        function = plugins.ops.get(name)
        for number, sample in enumerate(function.samples if function.__module__.split(".")[-1] in MODULES else ()):
            variables = [C.input_variable(np.shape(operand.shape) if is_fixed(operand) else operand.shape) for operand in sample.operands]
            node = sample.build(function, variables).root_function
            if not node.is_block and not any(v.is_output for v in node.inputs) and (node.op.in_place or gradient_in_place(type(node.op))):
                drawn = dict(zip(variables, sample.operands, strict=True))
                operands = [drawn.get(variable) or Operand(variable.value) for variable in node.inputs]
                found.append(pytest.param(node.op, operands, id=f"{name}-{number}"))
    return found


def gradient_in_place(kind: type[Op]) -> Which:
    return kind.gradient_in_place if issubclass(kind, Elementwise) else ()


def is_fixed(operand: Any) -> bool:
    """Whether a sample's operand is an array itself."""
    return isinstance(operand.shape, np.ndarray)


def subclasses(kind: type[Op]) -> Iterator[type[Op]]:
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def test_all_operators_that_compute_in_place_are_tried() -> None:
    tried = {type(case.values[0]) for case in cases()}
    ours = {one for one in subclasses(Op) if _is_ours(one) and (one.in_place or gradient_in_place(one))}
    assert ours - tried == {type(normalized(C.input_variable(2)).root_function.op)}


def _is_ours(one: type) -> bool:
    """Whether a class is one of the package's modules, and not of an example in their docstrings, which tests run."""
    return one.__module__.startswith("cntk.") and getattr(sys.modules[one.__module__], one.__name__, None) is one


def normalized(x: Any) -> Any:
    mean, variance, count = C.constant([1, 2]), C.constant([4, 9]), C.constant(0, shape=(1,))
    return C.batch_normalization(x, C.parameter(2, init=3), C.parameter(2, init=1), mean, variance, False, running_count=count)


@pytest.mark.parametrize("training", [True, False])
def test_batch_normalization_may_write_over_its_operand(training: bool) -> None:
    x = C.input_variable(2)
    loss = C.combine([C.tanh(normalized(x * 2))])
    data = np.random.default_rng(1).uniform(-1, 1, (5, 2)).astype(np.float32)
    found = []
    for names in (None, []):
        C.debugging.set_passes(names)
        fresh = loss.clone("clone")
        program = Program(fresh.outputs, NUMPY, training=training)
        reuses = [i.reuses is not None for i in program.instructions]
        others = 2 if training or names == [] else 3  # outside training, a product and a sum
        assert reuses == [False, *[names is None] * others]
        run = start(program, feeds_for(program, {fresh.arguments[0]: data}))
        run.forward()
        found.append([run.value(fresh.output).copy(), *(constant.value for constant in fresh.constants)])
        run.close()
    for with_passes, without in zip(*found, strict=True):
        np.testing.assert_array_equal(with_passes, without)


@pytest.mark.parametrize(("op", "operands"), cases())
def test_operators_that_say_so_may_write_over_an_operand_and_the_gradient(op: Any, operands: list[Operand]) -> None:
    random = np.random.default_rng(1)
    static = [o.shape if is_fixed(o) else random.uniform(o.low, o.high, o.shape) for o in operands]
    rank = max(value.ndim for value in static)
    values = [np.stack([value] * 5).reshape(5, *(1,) * (rank - value.ndim), *value.shape) for value in static]
    shape = np.broadcast_shapes(*(value.shape for value in values))
    layout = Layout(5)

    def context() -> Context:
        made = Context(NUMPY, False)
        made.layouts, made.layout = [layout] * len(values), layout
        return made

    with NUMPY.guard():
        out = np.empty(shape)
        op.forward(context(), out, *values)
        for position, value in enumerate(values):
            if includes(op.in_place, position) and value.shape == shape:
                copies = [other.copy() for other in values]
                op.forward(context(), copies[position], *copies)
                np.testing.assert_array_equal(copies[position], out)
            if includes(gradient_in_place(type(op)), position) and includes(op.gradient_inputs, position) and value.shape == shape:
                grad = random.uniform(-1, 1, shape)
                separate = [np.empty(shape) if i == position else None for i in range(len(values))]
                op.backward(context(), grad, separate, out, *values)
                op.backward(context(), grad, [None if g is None else grad for g in separate], out, *values)
                np.testing.assert_array_equal(grad, separate[position])
