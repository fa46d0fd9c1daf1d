"""Instructions: whether they may run less often, and which values and gradients they work with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import cntk as C
from cntk.core.extension.device import backend_named
from cntk.core.program.program import Program
from cntk.core.program.slots import Instruction


def last(f: Any, *wrt: Any) -> tuple[Instruction, Program]:
    program = Program(f.outputs, backend_named("numpy"), wrt, f.outputs if wrt else (), bool(wrt), passes=[])
    return program.instructions[-1], program


@pytest.mark.parametrize(
    ("make", "pure"),
    [
        (C.exp, True),
        (lambda x: x + 1, True),
        (lambda x: C.times(x, C.parameter((3, 2))), True),
        (lambda x: C.dropout(x, 0.5), False),
        (lambda x: C.random.uniform_like(x), False),
        (C.layers.BatchNormalization(), False),
    ],
    ids=["exp", "plus", "times", "dropout", "random", "running statistics"],
)
def test_what_draws_or_keeps_something_is_not_pure(make: Callable[[Any], Any], pure: bool) -> None:
    assert last(make(C.input_variable(3)))[0].is_pure is pure


def test_a_gradient_is_that_of_the_result_where_shape_and_axes_are() -> None:
    x, w, row = (C.input_variable((2, 3), needs_gradient=True), C.parameter((2, 3), init=1), C.parameter(3, init=1))
    for f, kept in (
        (x + x, [True, True]),
        (x + w, [True, False]),
        (x + row, [True, False]),
        (x * x, [False, False]),
        (x - x, [True, False]),
    ):
        instruction, program = last(f)
        assert [instruction.keeps_gradient(i, program.slots) for i in range(2)] == kept, f


def test_steps_tell_all_slots_they_work_with() -> None:
    x, w = C.input_variable(3, needs_gradient=True), C.parameter(3, init=1)
    instruction, program = last(x * w, x, w)
    gradients = {program.seed_slots[next(iter(program.seed_slots))], *program.gradient_slots.values()}
    assert set(instruction.used_forward()) == {0, 1, 2}
    assert set(instruction.used_gradients()) == gradients
    assert set(instruction.touched()) == {0, 1, 2} | gradients
    assert set(instruction.used_backward()) == {0, 1} | gradients


def test_backward_reads_what_the_operator_keeps_and_no_more() -> None:
    x = C.input_variable(3, needs_gradient=True)
    kept, _ = last(C.exp(x), x)
    assert kept.outputs[0] in set(kept.used_backward())
    assert kept.inputs[0] not in set(kept.used_backward())
    cosine, _ = last(C.sin(x), x)
    assert cosine.inputs[0] in set(cosine.used_backward())
    assert cosine.outputs[0] not in set(cosine.used_backward())


def test_without_gradients_there_is_no_backward_step() -> None:
    instruction, _ = last(C.exp(C.input_variable(3)))
    assert list(instruction.used_backward()) == []
    assert list(instruction.used_gradients()) == []
