"""Constant folding: what is folded, and that changes of constants are seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.core.extension.device import backend_named
from cntk.core.program.program import Program
from cntk.core.run.evaluate import program_for

ROW = np.array([[1, 2]], np.float32)


def names(f: Any, training: bool = False) -> list[str]:
    return [instruction.op.op_name for instruction in program_for(f, f.outputs, training=training).instructions]


def test_what_depends_on_constants_alone_is_no_instruction() -> None:
    x, c = C.input_variable(2), C.constant([3, 4])
    f = x * C.exp(c * 2 + 1)
    assert names(f) == ["ElementTimes"]
    np.testing.assert_allclose(f.eval({x: ROW}), ROW * np.exp([7, 9]), rtol=1e-6)


def test_parameters_are_constants_outside_training_alone() -> None:
    x, w = C.input_variable(2), C.parameter(2, init=1)
    f = x * C.exp(w)
    assert names(f, training=True) == ["Exp", "ElementTimes"]
    assert names(f) == ["ElementTimes"]
    np.testing.assert_allclose(f.grad({x: ROW}, wrt=[w]), ROW[0] * np.e, rtol=1e-6)


def test_updates_of_parameters_are_seen_at_the_next_call() -> None:
    x, w = C.input_variable(2), C.parameter(2, init=1)
    f = x * C.exp(w)
    learner = C.sgd([w], 1.0)
    for step in range(4):
        np.testing.assert_allclose(f.eval({x: ROW}), ROW * np.exp(w.value), rtol=1e-6)
        if step % 2:
            w.value = w.value + 1
        else:
            learner.update({w: np.ones(2, np.float32)}, 1)


def test_views_of_parameters_are_not_copied() -> None:
    x, w = C.input_variable(2), C.parameter((2, 1), init=1)
    f = x * C.reshape(w, (2,)) + C.exp(C.reshape(w, (2,)))
    program = program_for(f, f.outputs)
    assert [instruction.op.op_name for instruction in program.instructions] == ["Reshape", "ElementTimes", "Plus"]
    np.testing.assert_allclose(f.eval({x: ROW}), ROW + np.e, rtol=1e-6)


def test_a_new_value_of_a_constant_is_seen_at_the_next_call() -> None:
    x, c = C.input_variable(2), C.constant([3, 4])
    f = x + C.negate(c)
    np.testing.assert_equal(f.eval({x: ROW}), [[-2, -2]])
    c.value = np.array([1, 1], np.float32)
    np.testing.assert_equal(f.eval({x: ROW}), [[0, 1]])
    c.set_value(np.array([0, 0], np.float32))
    np.testing.assert_equal(f.eval({x: ROW}), [[1, 2]])


@pytest.mark.parametrize("assigned_first", [True, False])
def test_a_constant_that_another_program_assigns_to_is_read_anew(assigned_first: bool) -> None:
    x, c = C.input_variable(2), C.constant([3, 4])
    f, count = x + C.negate(c), C.assign(c, c + 1)
    if assigned_first:
        count.eval()
    f.eval({x: ROW})
    before = c.value
    for step in range(1, 4):
        count.eval()
        np.testing.assert_equal(f.eval({x: ROW}), ROW - (before + step))


def test_running_statistics_of_batch_normalization_are_read_anew() -> None:
    x = C.input_variable(2, needs_gradient=True)
    mean, variance, count = C.constant([0, 0]), C.constant([1, 1]), C.constant(0, shape=(1,))
    normal = C.batch_normalization(x, C.parameter(2, init=1), C.parameter(2, init=0), mean, variance, False, 0, 0, running_count=count)
    f = x + C.negate(mean)
    f.eval({x: ROW})
    normal.grad({x: np.array([[0, 2], [2, 6]], np.float32)})
    np.testing.assert_allclose(f.eval({x: ROW}), ROW - mean.value)
    assert mean.value.any()


def test_a_constant_that_is_differentiated_by_stays_in_the_graph() -> None:
    x, c = C.input_variable(2), C.constant([3, 4])
    f = C.reduce_sum(x * C.square(c))
    np.testing.assert_allclose(f.grad({x: ROW}, wrt=[c]), [6, 16])


def test_a_root_is_computed_by_the_program_itself() -> None:
    x, c = C.input_variable(2), C.constant([3, 4])
    inner = C.negate(c)
    f = x + inner
    found = f.forward({x: ROW}, [inner.output, f.output])[1]
    np.testing.assert_equal(found[inner.output], [-3, -4])
    np.testing.assert_equal(found[f.output], [[-2, -2]])


def test_a_sparse_constant_made_dense_on_the_way() -> None:
    x, c = C.input_variable(2), C.constant(csr_matrix(np.float32([[0, 5], [7, 0]])))
    f = C.times(x, C.negate(c))
    np.testing.assert_equal(f.eval({x: ROW}), [[-14, -5]])
    c.value = csr_matrix(np.float32([[1, 0], [0, 1]]))
    np.testing.assert_equal(f.eval({x: ROW}), -ROW)


def test_random_values_of_constants_are_drawn_each_time() -> None:
    x, c = C.input_variable(2), C.constant([3, 4])
    f = x + C.random.uniform_like(c)
    assert not np.array_equal(f.eval({x: ROW}), f.eval({x: ROW}))


def test_an_error_names_the_operator_and_the_line() -> None:
    x, c = C.input_variable(2), C.constant([0, 1])
    f = x + C.custom_proxy_op("quantized", (2,), np.float32, c)
    with pytest.raises(RuntimeError, match=r"(?s)CustomProxyOp.*test_constants\.py"):
        f.eval({x: ROW})


def test_checked_mode_sees_a_nan_of_constants() -> None:
    x, c = C.input_variable(2), C.constant([np.inf, 1])
    f = x + (c - c)
    C.debugging.set_checked_mode(True)
    try:
        with pytest.raises(ValueError, match=r"(?s)Minus.*NaN"):
            f.eval({x: ROW})
    finally:
        C.debugging.set_checked_mode(False)


def test_values_serve_training_as_well() -> None:
    w, c = C.parameter(2, init=1), C.constant([3, 4])
    loss = C.reduce_sum(w * C.square(c))
    program = Program(loss.outputs, backend_named("numpy"), wrt=[w], gradient_roots=loss.outputs, training=True)
    assert [instruction.op.op_name for instruction in program.instructions] == ["ElementTimes", "ReduceElements"]
    np.testing.assert_allclose(loss.grad({}, wrt=[w]), [9, 16])
