"""Common subexpressions and dead code: what is shared and what goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.core.run.evaluate import program_for

ROW = np.array([[1, 2]], np.float32)


def names(f: Any, training: bool = False) -> list[str]:
    return [instruction.op.op_name for instruction in program_for(f, f.outputs, training=training).instructions]


def test_equal_results_are_computed_once() -> None:
    x = C.input_variable(2, needs_gradient=True)
    f = C.tanh(C.exp(x)) * C.tanh(C.exp(x))
    assert names(f) == ["Exp", "Tanh", "ElementTimes"]
    value, slope = np.tanh(np.exp(ROW)), np.exp(ROW) / np.cosh(np.exp(ROW)) ** 2
    np.testing.assert_allclose(f.eval({x: ROW}), value**2, rtol=1e-6)
    np.testing.assert_allclose(f.grad({x: ROW}), 2 * value * slope, atol=1e-6)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda x: C.leaky_relu(x, 0.1), lambda x: C.leaky_relu(x, 0.2)),
        (lambda x: C.reduce_sum(x, 0), lambda x: C.reduce_mean(x, 0)),
        (lambda x: C.minus(x, 1), lambda x: C.minus(1, x)),
        (lambda x: C.dropout(x, 0.5), lambda x: C.dropout(x, 0.5)),
        (lambda x: C.dropout(x, 0.5, seed=1), lambda x: C.dropout(x, 0.5, seed=1)),
        (lambda x: C.random.uniform_like(x, seed=1), lambda x: C.random.uniform_like(x, seed=1)),
        (lambda x: x * C.parameter(2, init=1), lambda x: x * C.parameter(2, init=1)),
    ],
    ids=["attributes", "operators", "order", "dropout", "dropout with a seed", "random", "parameters"],
)
def test_what_differs_is_computed_apart(first: Any, second: Any) -> None:
    x = C.input_variable(2)
    f = first(x) + second(x)
    with_passes = names(f, training=True)
    C.debugging.set_passes([])
    assert len(with_passes) == len(names(f, training=True))


def test_a_user_function_runs_as_often_as_the_graph_says() -> None:
    calls: list[int] = []

    class Counting(C.ops.functions.UserFunction):
        def __init__(self, x: Any, name: str = "") -> None:
            super().__init__([x], name=name)

        def infer_outputs(self) -> Any:
            return [C.output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes)]

        def forward(self, x: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
            calls.append(1)
            return None, x

    x = C.input_variable(2)
    f = C.user_function(Counting(x)) + C.user_function(Counting(x))
    np.testing.assert_equal(f.eval({x: ROW}), 2 * ROW)
    assert len(calls) == 2


def test_assignments_are_all_carried_out() -> None:
    a, b = C.parameter(2, init=0), C.parameter(2, init=0)
    one = C.constant([1, 1])
    C.combine([C.assign(a, one), C.assign(b, one), C.assign(a, one)]).eval()
    np.testing.assert_equal([a.value, b.value], np.ones((2, 2)))


def test_roots_and_what_is_differentiated_by_keep_their_own_values() -> None:
    x = C.input_variable(2, needs_gradient=True)
    first, second = C.exp(x), C.exp(x)
    f = C.reduce_sum(first + 3 * second)
    np.testing.assert_allclose(f.grad({x: ROW}, wrt=[first.output, second.output])[second.output], [[3, 3]])
    found = f.forward({x: ROW}, [second.output, f.output])[1]
    np.testing.assert_allclose(found[second.output], np.exp(ROW), rtol=1e-6)


def test_a_part_found_by_name_can_be_evaluated_from_the_whole() -> None:
    x = C.input_variable(2)
    f = C.exp(x, name="first") + C.exp(x, name="second")
    f.eval({x: ROW})
    part = f.find_by_name("second")
    np.testing.assert_allclose(f.forward({x: ROW}, [part.output])[1][part.output], np.exp(ROW), rtol=1e-6)


def test_what_a_loop_reads_from_outside_is_shared_and_the_loop_left_alone() -> None:
    x = C.sequence.input_variable(2)
    f = C.layers.Recurrence(lambda s, x: C.tanh(s + C.exp(x)) + C.tanh(s + C.exp(x)))(x)
    steps = [np.array([[1, 2], [0, 1]], np.float32)]
    expected = np.zeros(2)
    for row in steps[0]:
        expected = 2 * np.tanh(expected + np.exp(row))
    assert names(f).count("Exp") == 1
    np.testing.assert_allclose(f.eval(steps)[0][-1], expected, rtol=1e-6)


def test_dead_code_goes_once_another_pass_has_made_it_needless() -> None:
    x, links = C.input_variable(2), C.constant(csr_matrix(np.float32([[0, 1], [1, 0]])))
    f = C.times(x, C.exp(links))
    assert names(f) == ["Times"]
    C.debugging.set_passes(["constants"])
    assert names(f) == ["Densify", "Times"]
    np.testing.assert_allclose(f.eval({x: ROW}), ROW @ np.exp([[0, 1], [1, 0]]), rtol=1e-6)


def test_without_other_passes_no_code_is_dead() -> None:
    x = C.input_variable(2)
    f = C.combine([C.exp(x), C.assign(C.parameter(2), C.constant([1, 1]) * 2), C.dropout(x, 0.5)])
    C.debugging.set_passes([])
    everything = names(f)
    C.debugging.set_passes(["dead"])
    assert names(f) == everything
