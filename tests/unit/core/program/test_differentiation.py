"""The backward pass as it is written: which gradients flow, how often they are added up, and whose memory they share.

What the gradients are is held by the tests of operators and of random graphs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import backend_named
from cntk.core.operators.op import Op
from cntk.core.operators.view import View
from cntk.core.program.program import Program
from cntk.core.program.slots import COMPUTED, ROWS, ZERO
from cntk.core.types.spec import Spec


def program(f: Any, *wrt: Any) -> Program:
    return Program(f.outputs, backend_named("numpy"), wrt, f.outputs, training=True, passes=[])


def differentiated(made: Program) -> list[str]:
    """Operators that have a backward step."""
    return [instruction.op.op_name for instruction in made.instructions if instruction.grad is not None]


def arrays() -> tuple[Any, Any]:
    return C.input_variable(4, needs_gradient=True), C.parameter(4, init=2)


def test_gradients_flow_between_what_is_asked_for_and_the_root_alone() -> None:
    x, w = arrays()
    f = C.tanh(w * C.exp(x)) + C.sin(x)
    assert differentiated(program(f, w)) == ["ElementTimes", "Tanh", "Plus"]
    assert sorted(differentiated(program(f, x))) == ["ElementTimes", "Exp", "Plus", "Sin", "Tanh"]
    assert differentiated(program(f)) == []


def test_stop_gradient_stops_it() -> None:
    x, w = arrays()
    f = w * C.stop_gradient(C.exp(x))
    made = program(f, x, w)
    assert differentiated(made) == ["ElementTimes"]
    assert made.slots[made.gradient_slots[x]].kind == ZERO
    assert made.slots[made.gradient_slots[w]].kind == COMPUTED


def test_what_is_not_in_the_program_has_no_gradient() -> None:
    x, w = arrays()
    other = C.parameter(4, init=1)
    assert other not in program(C.exp(x) * w, x, other).gradient_slots


@pytest.mark.parametrize("uses", [1, 2, 5])
def test_terms_are_added_up_from_the_second_on(uses: int) -> None:
    _, w = arrays()
    f = C.exp(w)
    for _ in range(uses - 1):
        f = f * C.exp(w)
    made = program(f, w)
    totals = [total for instruction in made.instructions for total, _ in instruction.sums]
    assert totals == [made.gradient_slots[w]] * (uses - 1)


def test_the_gradient_of_a_sum_is_that_of_its_terms_in_the_same_memory() -> None:
    x, y = (C.input_variable(4, needs_gradient=True) for _ in range(2))
    f = C.exp(C.exp(x) + C.exp(y))
    made = program(f, x, y)
    plus = next(instruction for instruction in made.instructions if instruction.op.op_name == "Plus")
    assert [i for i, _ in plus.passed] == [0, 1]
    assert plus.grad is not None
    assert plus.grad[0] is not None
    assert {made.slots[slot].base for _, slot in plus.passed} == {made.slots[plus.grad[0]].base}


def test_gradients_of_parameters_have_memory_of_their_own() -> None:
    """Learners write into them."""
    v, w = C.parameter(4, init=1), C.parameter(4, init=2)
    made = program(C.exp(v + w), v, w)
    bases = [made.slots[made.gradient_slots[parameter]].base for parameter in (v, w)]
    assert bases == [made.gradient_slots[v], made.gradient_slots[w]]


def test_parts_that_make_up_a_whole_have_their_gradients_in_its_own() -> None:
    x = C.input_variable(4, needs_gradient=True)
    whole = C.exp(x)
    halves = [C.slice(whole, 0, 0, 2), C.slice(whole, 0, 2, 4)]
    made = program(C.sin(halves[0]) * C.cos(halves[1]), x)
    slices = [instruction for instruction in made.instructions if instruction.op.op_name == "Slice"]
    assert [instruction.placed for instruction in slices] == [True, True]
    places = {made.slots[index].base for index, slot in enumerate(made.slots) if slot.like in {s.outputs[0] for s in slices}}
    assert places == {made.slots[next(i for i, s in enumerate(made.slots) if s.like == slices[0].inputs[0])].base}


class Half(View):
    """Half of a row, from a place on; rows and elements are counted from the front."""

    op_name = "Half"
    is_slice = True
    begin: int

    def infer(self, x: Spec) -> Spec:
        return x.but(shape=(x.dims[0] // 2,))

    def view(self, x: Any, out_shape: Any) -> Any:
        """The half, in the operand's memory."""
        return x[:, self.begin : self.begin + out_shape[1]]


def test_parts_that_a_view_of_ones_own_selects_are_found_to_make_up_a_whole_too() -> None:
    x = C.input_variable(4, needs_gradient=True)
    whole = C.exp(x)
    first, second = Half(begin=0)(whole), Half(begin=2)(whole)
    f = first * first * second
    halves = [instruction for instruction in program(f, x).instructions if instruction.op.op_name == "Half"]
    assert [instruction.placed for instruction in halves] == [True, True]
    assert f.grad({x: np.zeros((3, 4), np.float32)}).tolist() == [[2, 2, 1, 1]] * 3


@pytest.mark.parametrize("bounds", [((0, 2), (1, 4)), ((0, 2), (2, 3))], ids=["overlap", "gap"])
def test_parts_that_do_not_have_gradients_of_their_own(bounds: Any) -> None:
    x = C.input_variable(4, needs_gradient=True)
    whole = C.exp(x)
    parts = [C.reduce_sum(C.sin(C.slice(whole, 0, *bound))) for bound in bounds]
    made = program(parts[0] * parts[1], x)
    assert not any(instruction.placed for instruction in made.instructions)


def test_gradients_of_rows_stay_rows_unless_a_term_is_dense() -> None:
    x, table = C.input_variable(50, is_sparse=True), C.parameter((50, 3), init=1)
    sparse = C.reduce_sum(C.times(x, table))
    made = program(sparse, table)
    assert made.slots[made.gradient_slots[table]].kind == ROWS
    both = program(sparse + C.reduce_sum(table * table), table)
    assert both.slots[both.gradient_slots[table]].kind == COMPUTED


def test_roots_are_seeded_with_gradients_of_their_own() -> None:
    x, w = arrays()
    f = C.combine(w * x, C.exp(w))
    made = program(f, w)
    assert set(made.seed_slots) == set(f.outputs)
    assert len(set(made.seed_slots.values())) == 2


def test_in_a_loop_what_comes_from_outside_is_taken_for_all_steps_at_once() -> None:
    x, w, state = C.sequence.input_variable(3), C.parameter((3, 3), init=0.1), C.placeholder()
    step = C.tanh(x + C.times(C.sequence.past_value(state), w))
    step.replace_placeholders({state: step.output})
    made = program(step, w)
    times = next(instruction for instruction in made.instructions if instruction.op.op_name == "Times")
    assert times.loop is not None
    assert times.late_grads == (None, made.gradient_slots[w])
    assert times.grads[1] is None
    delay = next(instruction for instruction in made.instructions if instruction.op.op_name == "PastValue")
    carried = delay.carried
    assert carried is not None
    assert made.slots[carried].like == delay.inputs[0]
    data = np.ones((1, 4, 3), np.float32)
    assert step.grad({x: data}, wrt=[w]).shape == (3, 3)


@pytest.mark.parametrize("delay", [C.sequence.past_value, C.sequence.future_value])
def test_a_delay_outside_recurrences_hands_gradients_to_the_step_it_read(delay: Any) -> None:
    x, w = C.sequence.input_variable(1, needs_gradient=True), C.parameter(1, init=3)
    found = C.reduce_sum(delay(x) * w).grad({x: [np.ones((3, 1), np.float32)]})
    wanted = [3, 3, 0] if delay is C.sequence.past_value else [0, 3, 3]
    assert found[0].ravel().tolist() == wanted


def test_one_result_of_several_is_enough_for_a_gradient() -> None:
    x, _ = arrays()
    largest, _ = C.top_k(x, 2).outputs
    f = C.reduce_sum(C.square(largest))
    assert differentiated(program(f, x)) == ["TopK", "ElementTimes", "ReduceElements"]
    assert f.grad({x: [[1, 4, 2, 3]]}).tolist() == [[0, 8, 0, 6]]


class ScaleAndShift(Op):
    """Rows times a vector, and plus it."""

    op_name = "ScaleAndShift"
    outputs = 2
    keep_inputs = (0, 1)
    by_rows = False

    def infer(self, x: Spec, w: Spec) -> tuple[Spec, ...]:
        return x, x

    def forward(self, ctx: Any, out: Any, x: Any, w: Any) -> None:
        ctx.xp.multiply(x, w, out=out[0])
        ctx.xp.add(x, w, out=out[1])

    def backward(self, ctx: Any, grad: Any, grads: Any, out: Any, x: Any, w: Any) -> None:
        product, total = (0 if g is None else g for g in grad)
        grads[0][...] = product * w + total
        grads[1][...] = (product * x + total).sum(axis=0)


@pytest.mark.parametrize(("used", "wanted"), [(0, 2 + 2 * 3), (1, 1 + 2 + 3)], ids=["product", "sum"])
def test_steps_of_a_recurrence_that_uses_one_result_of_several_add_up_for_what_comes_from_outside(used: int, wanted: float) -> None:
    x, w, state = C.sequence.input_variable(1), C.parameter(1, init=3), C.placeholder()
    step = x + ScaleAndShift()(C.sequence.past_value(state), w).outputs[used]
    step = step.replace_placeholders({state: step.output})
    assert step.grad({x: [np.ones((3, 1), np.float32)]}, wrt=[w]).tolist() == [wanted]


def test_parts_that_nobody_needs_do_not_count_among_those_of_a_whole() -> None:
    x, w = arrays()
    product = w * x
    first, second, unused = (C.slice(product, 0, *ends) for ends in ((0, 2), (2, 4), (1, 3)))
    joined = C.sin(first) * C.cos(second)
    found = []
    for others in ((), unused.outputs):
        made = Program([*joined.outputs, *others], backend_named("numpy"), [w], joined.outputs, training=True, passes=[])
        found.append(sorted(instruction.placed for instruction in made.instructions if instruction.op.op_name == "Slice"))
    assert found == [[True, True], [False, True, True]]


@pytest.mark.parametrize("steps", [1, 4])
def test_parts_of_a_value_whose_size_the_data_decide_have_gradients_of_their_own(steps: int) -> None:
    x = C.input_variable((C.FreeDimension, 2), needs_gradient=True)
    f = C.reduce_sum(C.square(C.slice(C.exp(x), 1, 0, 1)) + C.slice(C.exp(x), 1, 1, 2))
    data = np.zeros((3, steps, 2), np.float32)
    assert not any(instruction.placed for instruction in program(f, x).instructions)
    assert f.grad({x: data}).tolist() == [[[2, 1]] * steps] * 3
