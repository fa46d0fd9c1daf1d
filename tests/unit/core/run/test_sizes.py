"""What a minibatch makes of a program's values: shapes, layouts, and data that are incompatible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.core.common.shape import FreeDimension
from cntk.core.extension.device import backend_named
from cntk.core.operators.op import Op
from cntk.core.operators.sequence_op import SequenceOp
from cntk.core.program.program import Program
from cntk.core.run.evaluate import feeds_for
from cntk.core.run.sizes import Sizes
from cntk.core.types.axis import Axis
from cntk.core.types.layout import ComputedLayout, Layout
from cntk.core.types.spec import BATCH, Spec


def sized(f: Any, data: Any) -> tuple[Sizes, list[Any]]:
    """Sizes of the first stage, and the shapes of the function's results."""
    program = Program(f.outputs, backend_named("numpy"), passes=[])
    sizes = Sizes(program, list(feeds_for(program, data)))
    return sizes, sizes.shapes_of(list(program.root_slots.values()))


def sequences(lengths: list[int], *shape: int) -> list[Any]:
    return [np.ones((length, *shape), np.float32) for length in lengths]


@settings(deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_rows_are_the_steps_of_all_sequences(lengths: list[int]) -> None:
    x, b = C.sequence.input_variable(2), C.input_variable(2)
    data = {x: sequences(lengths, 2), b: np.ones((len(lengths), 2), np.float32)}
    sizes, shapes = sized(C.combine(C.exp(x), b * x, C.sequence.first(x), C.exp(b)), data)
    steps, samples = sum(lengths), len(lengths)
    assert shapes == [(steps, 2), (steps, 2), (samples, 2), (samples, 2)]
    assert all(layout == Layout(samples, lengths) for layout in sizes.layouts if layout is not None and layout.is_sequence)


def test_values_without_dynamic_axes_have_no_rows() -> None:
    x, w = C.input_variable(3), C.parameter((3, 2), init=1)
    _, shapes = sized(C.combine(C.times(x, w), w * 2), {x: np.ones((5, 3), np.float32)})
    assert shapes == [(5, 2), (3, 2)]


@pytest.mark.parametrize("dims", [(2, 3), (7, 1)])
def test_each_minibatch_decides_free_dimensions(dims: tuple[int, int]) -> None:
    x = C.input_variable((C.FreeDimension, C.FreeDimension, 2))
    _, shapes = sized(C.combine(C.exp(x), C.reduce_sum(x, 0), C.transpose(x, (2, 0, 1))), {x: np.ones((4, *dims, 2), np.float32)})
    assert shapes == [(4, *dims, 2), (4, 1, dims[1], 2), (4, 2, *dims)]


def test_free_dimensions_go_round_in_recurrences() -> None:
    x, state = C.sequence.input_variable((C.FreeDimension,)), C.placeholder()
    total = x + C.sequence.past_value(state)
    total = total.replace_placeholders({state: total.output})
    _, shapes = sized(total, {x: sequences([2, 3], 4)})
    assert shapes == [(5, 4)]


@pytest.mark.parametrize("wide", [0, 4])
def test_a_width_that_one_recurrence_brings_reaches_all_that_it_is_tied_to(wide: int) -> None:
    inputs = [C.sequence.input_variable((C.FreeDimension,)) for _ in range(5)]
    states = [C.placeholder() for _ in inputs]
    cells = []
    for i, x in enumerate(inputs):
        beside = states[max(i - 1, 0) : i] + states[i + 1 : i + 2]
        cells.append(sum((C.sequence.past_value(state) for state in beside), x))
    row = C.combine(*cells).replace_placeholders({state: cell.output for state, cell in zip(states, cells, strict=True)})
    program = Program(row.outputs, backend_named("numpy"), passes=[])
    data = {x: sequences([2, 1], 3 if i == wide else 1) for i, x in enumerate(inputs)}
    sizes = Sizes(program, list(feeds_for(program, data)))
    assert {shape for instruction in program.instructions for shape in sizes.shapes_of(instruction.outputs)} == {(3, 3)}


def test_dimensions_of_a_minibatch_that_do_not_go_together_are_told_with_the_operator() -> None:
    x, y = C.input_variable((C.FreeDimension, 2)), C.input_variable((C.FreeDimension, 2))
    f = x + y
    assert sized(f, {x: np.ones((1, 3, 2), np.float32), y: np.ones((1, 1, 2), np.float32)})[1] == [(1, 3, 2)]
    with pytest.raises(ValueError, match=r"^Plus\(.*shapes do not broadcast.* \[built at .*test_sizes.py:\d+\]$"):
        sized(f, {x: np.ones((1, 3, 2), np.float32), y: np.ones((1, 4, 2), np.float32)})


def test_a_later_stage_knows_what_operators_have_decided_and_the_one_before_stays() -> None:
    x = C.sequence.input_variable(2)
    f = C.sequence.gather(2 * x, C.greater(C.reduce_sum(x), 0))
    program = Program(f.outputs, backend_named("numpy"), passes=[])
    assert program.stages == 2
    first = Sizes(program, list(feeds_for(program, {x: sequences([3, 1], 2)})))
    where = next(instruction for instruction in program.instructions if instruction.op.op_name == "Where")
    later = first.after(1, {where: Layout(2, lengths=[2, 1])})
    (root,) = program.root_slots.values()
    assert later.shapes[root] == (3, 2)
    assert later.layouts[root] == Layout(2, lengths=[2, 1])
    assert first.layouts_of([root]) == [None]


def test_sequences_on_one_axis_have_the_same_lengths() -> None:
    one, other = C.sequence.input_variable(2, name="one"), C.sequence.input_variable(2, name="other")
    told = "'one'.* has sequences of 2, 1 steps and .*'other'.* has sequences of 1, 2 steps, .*need a sequence axis of their own"
    with pytest.raises(ValueError, match=told) as caught:
        sized(one + other, {one: sequences([2, 1], 2), other: sequences([1, 2], 2)})
    assert str(caught.value).count(__file__) == 2


def test_samples_are_as_many_everywhere() -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    with pytest.raises(ValueError, match="have different"):
        sized(x + y, {x: np.ones((3, 2), np.float32), y: np.ones((4, 2), np.float32)})


def test_a_single_sequence_is_told_from_a_batch() -> None:
    x, b = C.sequence.input_variable(2, name="steps"), C.input_variable(2)
    with pytest.raises(ValueError, match=r"'steps'.* was given one sequence of 5 steps: an array without a batch axis is one sequence"):
        sized(x * b, {x: np.ones((5, 2), np.float32), b: np.ones((5, 2), np.float32)})


def test_several_sequences_are_not_told_to_be_one() -> None:
    x, b = C.sequence.input_variable(2), C.input_variable(2)
    with pytest.raises(ValueError, match="have different") as caught:
        sized(x * b, {x: sequences([3, 2], 2), b: np.ones((3, 2), np.float32)})
    assert "one sequence" not in str(caught.value)
    with pytest.raises(ValueError, match="have different") as caught:
        sized(x * b, {x: sequences([1], 2), b: np.ones((3, 2), np.float32)})
    assert "one sequence" not in str(caught.value)


def test_gradients_are_as_large_as_what_they_are_the_gradients_of() -> None:
    x, w = C.sequence.input_variable((C.FreeDimension,), needs_gradient=True), C.parameter(3, init=1)
    f = C.reduce_sum(C.exp(x) * w)
    program = Program(f.outputs, backend_named("numpy"), [x, w], f.outputs, training=True)
    sizes = Sizes(program, list(feeds_for(program, {x: sequences([2, 1], 3)})))
    for index, slot in enumerate(program.slots):
        if slot.like is not None:
            assert sizes.shapes[index] == sizes.shapes[slot.like]
    assert sizes.shapes[program.gradient_slots[x]] == (3, 3)


def flagged(lengths: list[int], flags: list[bool]) -> Any:
    return sequences(lengths, 2), flags


def test_inputs_on_one_axis_are_given_the_same_flags_of_new_sequences() -> None:
    one, other = C.sequence.input_variable(2, name="one"), C.sequence.input_variable(2, name="other")
    sizes, _ = sized(one + other, {one: flagged([2, 1, 1], [True, False, True]), other: flagged([2, 1, 1], [True, False, True])})
    assert {tuple((layout.continues < 0).tolist()) for layout in sizes.layouts if layout is not None} == {(True, False, True)}
    told = r"'other'.* was given flags \[True, True, False\] of new sequences, .* was given \[False, True, True\]"
    with pytest.raises(ValueError, match=told):
        sized(one + other, {one: flagged([2, 1, 1], [False, True, True]), other: flagged([2, 1, 1], [True, True, False])})


def test_an_operator_may_decide_shapes_with_its_layout() -> None:
    x = C.sequence.input_variable(2)
    f = C.sequence.gather(2 * x, C.greater(C.reduce_sum(x), 0))
    program = Program(f.outputs, backend_named("numpy"), passes=[])
    first = Sizes(program, list(feeds_for(program, {x: sequences([3, 1], 2)})))
    where = next(instruction for instruction in program.instructions if instruction.op.op_name == "Where")
    decided = ComputedLayout(Layout(2, lengths=[2, 1]), [(1, 1, 1)], None)
    assert first.after(1, {where: decided}).shapes_of(where.outputs) == [(3, 1, 1, 1)]


class Centred(Op):
    """The rows of a minibatch without their mean, and the mean, which has no dynamic axes."""

    op_name = "Centred"
    outputs = 2

    def infer(self, x: Spec) -> tuple[Spec, ...]:
        return x, x.but(axes=())


def test_a_result_without_dynamic_axes_has_no_rows_though_another_result_has() -> None:
    x = C.sequence.input_variable(2)
    sizes, shapes = sized(Centred()(x), {x: sequences([3, 2], 2)})
    assert shapes == [(5, 2), (2,)]
    assert sizes.layouts == [Layout(2, [3, 2]), Layout(2, [3, 2]), None]


class Histogram(SequenceOp):
    """Two results of sizes that data decide, and the shapes of as many as told."""

    op_name = "Histogram"
    outputs = 2
    told: int

    def infer(self, x: Spec) -> tuple[Spec, ...]:
        return (x.but(shape=(FreeDimension,)),) * 2

    def array_shape(self, layouts: Any, shapes: Any) -> Any:
        """Shapes of the results."""
        return ((4,), (5,), (6,))[: self.told]


def test_an_operator_tells_the_shapes_of_all_its_results() -> None:
    x = C.input_variable(2)
    data = {x: np.ones((3, 2), np.float32)}
    assert sized(Histogram(told=2)(x), data)[1] == [(3, 4), (3, 5)]
    for told in (1, 3):
        with pytest.raises(ValueError, match=r"^Histogram\(.*built at"):
            sized(Histogram(told=told)(x), data)


class Shortened(SequenceOp):
    """All but the last step, said to lie on the axis of them all."""

    op_name = "Shortened"

    def infer(self, x: Spec) -> Spec:
        return x

    def make_layout(self, layouts: Any, shapes: Any) -> Layout:
        """Layout of the result."""
        return Layout(layouts[0].samples, layouts[0].lengths - 1)


def test_sequences_that_an_operator_shortens_without_a_new_axis_do_not_go_with_the_whole_ones() -> None:
    x = C.sequence.input_variable(2)
    data = {x: sequences([3, 2], 2)}
    assert sized(Shortened()(x), data)[1] == [(3, 2)]
    told = r"^Plus\(.*operands on the same dynamic axes have different .* of 3, 2 steps and .* of 2, 1 steps"
    with pytest.raises(ValueError, match=told):
        sized(x + Shortened()(x), data)


class Moved(SequenceOp):
    """A value on dynamic axes that its operand is not on, and no layout that says how its rows lie."""

    op_name = "Moved"

    def __init__(self, axes: Any) -> None:
        super().__init__()
        self.axes = axes

    def infer(self, x: Spec) -> Spec:
        return x.but(axes=self.axes)


def test_values_on_the_batch_axis_of_sequences_are_one_for_each_of_them() -> None:
    x = C.sequence.input_variable(2)
    assert sized(Moved(BATCH)(x), {x: sequences([3, 2], 2)})[1] == [(2, 2)]


def test_values_on_an_axis_that_no_operand_is_on_have_the_rows_of_an_input_on_it_or_are_refused() -> None:
    x, w = C.input_variable(2), C.parameter(2, init=1)
    data = {x: np.ones((3, 2), np.float32)}
    told = r"^Moved\(.*nothing tells the lengths of sequences on the dynamic axes .*; an input on them must be involved \[built at"
    assert sized(C.combine(Moved(BATCH)(w), x * 2), data)[1] == [(3, 2), (3, 2)]
    with pytest.raises(ValueError, match=told):
        sized(Moved(BATCH)(w), {})
    with pytest.raises(ValueError, match=told):
        sized(Moved((*BATCH, Axis("made of nothing")))(x), data)


def test_only_what_free_dimensions_reach_is_inferred_for_each_size() -> None:
    seen: list[tuple[int, ...]] = []

    class Twice(Op):
        op_name = "Twice"

        def infer(self, x: Spec) -> Spec:
            seen.append(x.dims)
            return x.but()

        def forward(self, ctx: Any, out: Any, x: Any) -> None:
            np.add(x, x, out=out)

    fixed, free = C.input_variable(3), C.input_variable((C.FreeDimension,))
    f = C.combine(Twice()(fixed), Twice()(C.reduce_sum(fixed)), Twice()(free))
    seen.clear()
    for width in (2, 5):
        _, shapes = sized(f, {fixed: np.ones((4, 3), np.float32), free: np.ones((4, width), np.float32)})
        assert shapes == [(4, 3), (4,), (4, width)]
    assert seen == [(2,), (5,)]
