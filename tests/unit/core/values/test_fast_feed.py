"""Plain minibatches: which data needs no conversion, and that it gives what the same data gives in other clothes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix

import cntk as C
from cntk.core.extension.device import backend_named
from cntk.core.program.program import Program
from cntk.core.run.workspace import KEPT, start
from cntk.core.values.fast_feed import FastInputs
from cntk.core.values.feed import feed, match_arguments

X, Y = C.input_variable((2, 3), name="x"), C.input_variable(4, is_sparse=True, name="y")
DENSE, SPARSE = np.ones((3, 2, 3), np.float32), csr_matrix(np.eye(3, 4, dtype=np.float32))


def outside(column: int) -> Any:
    return csr_matrix((np.ones(3, np.float32), np.array([0, column, 1], np.int32), np.arange(4)), shape=(3, 4), copy=False)


def test_arrays_and_matrices_of_the_inputs_types_are_plain() -> None:
    feeds = FastInputs([X, Y]).feeds({Y: SPARSE, X: DENSE})
    assert feeds is not None
    assert feeds.samples == 3
    assert all(fed.data is data for fed, data in zip(feeds, (DENSE, SPARSE), strict=True))
    assert [(fed.shape, fed.layout.samples) for fed in feeds if fed.layout] == [((2, 3), 3), ((4,), 3)]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        None,
        {X: DENSE},
        {X: DENSE, Y: SPARSE, "other": DENSE},
        {"x": DENSE, "y": SPARSE},
        {X: DENSE[0], Y: SPARSE},
        {X: DENSE[:2], Y: SPARSE},
        {X: DENSE[:0], Y: SPARSE[:0]},
        {X: DENSE.astype(np.float64), Y: SPARSE},
        {X: DENSE.astype(">f4"), Y: SPARSE},
        {X: DENSE.tolist(), Y: SPARSE},
        {X: C.Value(DENSE), Y: SPARSE},
        {X: np.ma.masked_array(DENSE), Y: SPARSE},
        {X: DENSE, Y: SPARSE.toarray()},
        {X: DENSE, Y: SPARSE.tocsc()},
        {X: DENSE, Y: SPARSE.astype(np.float64)},
        {X: DENSE, Y: SPARSE[:, :3]},
        {X: DENSE, Y: outside(4)},
        {X: DENSE, Y: outside(-1)},
    ],
)
def test_other_data_is_not(arguments: Any) -> None:
    assert FastInputs([X, Y]).feeds(arguments) is None


@pytest.mark.parametrize(
    "variable",
    [C.sequence.input_variable(2), C.input_variable((C.FreeDimension, 2)), C.input_variable(2, dynamic_axes=[])],
)
def test_inputs_whose_minibatches_differ_in_more_than_their_samples_are_not(variable: Any) -> None:
    assert not FastInputs([variable]).all_plain


S, T = C.sequence.input_variable((2, 3), name="s"), C.sequence.input_variable((), name="t")
RECURRENT = C.layers.Recurrence(C.plus, initial_state=0)(S)
STEPS = np.arange(2 * 4 * 6, dtype=np.float32).reshape(2, 4, 2, 3)


def test_arrays_of_sequences_are_plain_and_come_step_by_step() -> None:
    feeds = FastInputs([S, X]).feeds({S: STEPS, X: DENSE[:2]})
    assert feeds is not None
    sequences, samples = feeds
    assert_array_equal(sequences.data, STEPS.swapaxes(0, 1).reshape(8, 2, 3))
    assert sequences.layout is not None
    assert (sequences.shape, sequences.layout.lengths.tolist()) == ((2, 3), [4, 4])
    assert samples.layout is not None
    assert not samples.layout.is_sequence


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {S: STEPS, T: STEPS[:, :, 0, 0], "other": DENSE},
        {S: STEPS, T: STEPS[:1, :, 0, 0]},
        {S: STEPS, T: STEPS[0, :, 0, 0]},
        {S: STEPS, T: STEPS[0, 0, 0, 0]},
        {S: STEPS[0], T: STEPS[:, :, 0, 0]},
        {S: STEPS[:, :0], T: STEPS[:, :0, 0, 0]},
        {S: STEPS[:0], T: STEPS[:0, :, 0, 0]},
        {S: list(STEPS), T: STEPS[:, :, 0, 0]},
        {S: STEPS.astype(np.float64), T: STEPS[:, :, 0, 0]},
        {S: (STEPS, [True, False]), T: STEPS[:, :, 0, 0]},
    ],
)
def test_other_data_with_sequences_is_not(arguments: Any) -> None:
    assert FastInputs([S, T]).feeds(arguments) is None


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), min_size=1, max_size=8))
def test_arrays_of_sequences_give_what_lists_of_sequences_give(sizes: list[tuple[int, int]]) -> None:
    for samples, steps in sizes:
        rows = np.sin(np.arange(samples * steps * 6, dtype=np.float32)).reshape(samples, steps, 2, 3)
        arrays, lists = RECURRENT.eval({S: rows}), RECURRENT.eval({S: list(rows)})
        assert len(arrays) == len(lists) == samples
        for array, other, given_steps in zip(arrays, lists, rows, strict=True):
            assert_array_equal(array, other)
            assert_array_equal(array, np.cumsum(given_steps, axis=0))


def test_no_inputs_are_not_plain() -> None:
    assert not FastInputs([]).all_plain


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_minibatches_of_all_sizes_give_what_lists_of_samples_give(sizes: list[int]) -> None:
    function = C.reduce_sum(X, 0) * 2
    for size in sizes:
        rows = np.arange(size * 6, dtype=np.float32).reshape(size, 2, 3)
        plain = function.eval({X: rows})
        assert_array_equal(plain, function.eval({"x": rows}))
        assert_array_equal(plain, 2 * rows.sum(axis=1, keepdims=True))


def test_a_size_has_one_binding_however_it_is_given() -> None:
    program = Program((X * 2).outputs, backend_named("numpy"))
    bindings = []
    for arguments in ({X: DENSE}, {"x": DENSE}, {X: DENSE}):
        run = start(program, program.fast_inputs.feeds(arguments) or _fed(arguments))
        bindings.append(run.binding)
        run.close()
    assert bindings[0] is bindings[1] is bindings[2]


@pytest.mark.parametrize("name", [X, "x"])
def test_a_size_that_is_used_again_and_again_keeps_its_binding(name: Any) -> None:
    program = Program((X * 2).outputs, backend_named("numpy"))

    def bound(samples: int) -> Any:
        arguments = {name: np.ones((samples, 2, 3), np.float32)}
        run = start(program, program.fast_inputs.feeds(arguments) or _fed(arguments))
        run.close()
        return run.binding

    bound(2 * KEPT)  # the largest, so that memory does not grow, which ends all bindings
    first = bound(50)
    for samples in range(1, 2 * KEPT):
        bound(samples)
        assert bound(50) is first


def _fed(arguments: Any) -> Any:
    return [feed(X, match_arguments([X], arguments)[X])]


def test_indices_of_any_width_are_looked_at() -> None:
    for kind in (np.int32, np.int64):
        matrix = outside(3)
        matrix.indices = matrix.indices.astype(kind)
        assert FastInputs([Y]).feeds({Y: matrix}) is not None
        matrix.indices[1] = -1
        assert FastInputs([Y]).feeds({Y: matrix}) is None
