"""Operators that programs insert: rows that are repeated along sequences, and sparse rows made dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cntk as C
from cntk.core.operators.inserted_ops import Densify, Expand
from cntk.core.run.evaluate import program_for


def operators(f: Any) -> list[type]:
    return [type(instruction.op) for instruction in program_for(f, f.outputs).instructions]


@pytest.mark.parametrize("lengths", [[1], [2, 1, 3], [4, 4]])
def test_each_step_has_the_value_of_its_sequence_whose_gradient_is_their_sum(lengths: list[int]) -> None:
    x, b = C.sequence.input_variable(2), C.input_variable(2, needs_gradient=True)
    steps = [np.full((length, 2), place + 1.0, np.float32) for place, length in enumerate(lengths)]
    values = np.arange(2.0 * len(lengths), dtype=np.float32).reshape(-1, 2)
    f = x * b
    assert operators(f).count(Expand) == 1
    for place, result in enumerate(f.eval({x: steps, b: values})):
        assert_array_equal(result, steps[place] * values[place])
    gradient = f.grad({x: steps, b: values}, wrt=[b])
    assert_allclose(gradient, [step.sum(axis=0) for step in steps])


def test_a_value_is_repeated_once_for_all_that_want_it() -> None:
    x, b = C.sequence.input_variable(2), C.input_variable(2)
    assert operators(x * b + C.exp(b + x)).count(Expand) == 1


def test_sparse_rows_are_made_dense_where_an_operator_takes_none() -> None:
    x, w = C.input_variable(4, is_sparse=True), C.parameter((4, 2), init=1)
    assert Densify not in operators(C.times(x, w))
    f = C.exp(x)
    assert operators(f).count(Densify) == 1
    data = C.Value.one_hot([[1], [3]], 4)
    assert_allclose(np.reshape(f.eval({x: data}), (2, 4)), np.exp(np.eye(4, dtype=np.float32)[[1, 3]]), rtol=1e-6)
