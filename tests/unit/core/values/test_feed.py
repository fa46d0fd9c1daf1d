"""What users may feed: every kind of data, the result it gives, or the error it is answered with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix

import cntk as C

ONES = np.ones((3, 2), np.float32)


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def doubled(shape: Any, data: Any, **options: Any) -> Any:
    x = C.input_variable(shape, name="x", **options)
    return (x * 2).eval({x: data})


@pytest.mark.parametrize(
    ("shape", "data", "expected"),
    [
        (2, ones(2), (1, 2)),
        (2, [[1, 1]], (1, 2)),
        (2, ones(3, 2), (3, 2)),
        (2, ones(3, 1, 2), (3, 2)),
        (2, [ones(1, 2)], (1, 2)),
        (2, (ones(2),), (1, 2)),
        (2, np.asfortranarray(ones(3, 2)), (3, 2)),
        (2, ones(6, 2)[::2], (3, 2)),
        (2, C.Value(ones(3, 2)), (3, 2)),
        (2, csr_matrix(ones(3, 2)), (3, 2)),
        ((), ones(3), (3,)),
        ((), np.float32(1), (1,)),
        ((), np.array(1, np.float32), (1,)),
        (1, ones(3, 1), (3, 1)),
        ((2, 3), ones(2, 3), (1, 2, 3)),
        ((2, 3), ones(4, 2, 3), (4, 2, 3)),
        ((2, 3), ones(4, 1, 2, 3), (4, 2, 3)),
        ((C.FreeDimension, 2), ones(4, 5, 2), (4, 5, 2)),
    ],
)
def test_data_of_the_right_type(shape: Any, data: Any, expected: tuple[int, ...]) -> None:
    result = doubled(shape, data)
    assert result.dtype == np.float32
    assert_array_equal(result, np.full(expected, 2))


@pytest.mark.parametrize("data", [[[1, 1], [1, 1]], [ones(2), ones(2)], [ones(1, 2), ones(1, 2)]])
def test_lists_of_samples_are_accepted_with_a_warning(data: Any) -> None:
    with pytest.warns(UserWarning, match="a list of 2 samples; one array with a leading batch axis is faster"):
        assert_array_equal(doubled(2, data), np.full((2, 2), 2))


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8, bool])
def test_other_numbers_are_converted_with_a_warning(dtype: Any) -> None:
    with pytest.warns(UserWarning, match=r"converted to float32 on every call; convert it once with \.astype\(np\.float32\)"):
        result = doubled(2, np.ones((3, 2), dtype))
    assert result.dtype == np.float32
    assert_array_equal(result, np.full((3, 2), 2))


@pytest.mark.parametrize(
    ("shape", "data", "message"),
    [
        (2, ones(1, 3, 2), r"takes an array of shape \('batch', 2\), got one of shape \(1, 3, 2\)"),
        (2, ones(4, 3), r"takes an array of shape \('batch', 2\), got one of shape \(4, 3\)"),
        (2, np.float32(1), r"takes an array of shape \('batch', 2\), got one of shape \(\)"),
        (1, ones(3), r"takes an array of shape \('batch', 1\), got one of shape \(3,\)"),
        ((2, 3), ones(3, 2), "got one of shape"),
        ((C.FreeDimension, 2), ones(4, 5, 3), "got one of shape"),
        (2, [ones(2, 2)], r"takes a list of samples of shape \(2,\), got \(2, 2\) at position 0"),
        (2, [1, 2], r"takes a list of samples of shape \(2,\), got \(\) at position 0"),
        (2, [[1, 2], [3]], r"takes samples of shape \(2,\), got shapes \[\(1,\), \(2,\)\]"),
        (2, [[[1], [2, 3]]], "cannot make an array"),
        (2, 1, "takes a minibatch: a list or an array with a leading batch axis, got the number 1"),
        (2, [], "the minibatch is empty"),
        (2, ones(0, 2), "the minibatch is empty"),
        (2, "text", "takes NumPy arrays, lists, CSR matrices and Values, got str"),
        (2, None, "got NoneType"),
        (2, csr_matrix(ones(4, 3)), r"takes CSR rows 2 wide, got a matrix of shape \(4, 3\)"),
        (2, csc_matrix(ones(4, 2)), r"got csc_matrix; convert it with \.tocsr\(\)"),
        (2, coo_matrix(ones(4, 2)), r"got coo_matrix; convert it with \.tocsr\(\)"),
        (2, np.ones((4, 2), complex), "takes float32 data, got dtype complex128; give an array of real numbers"),
        (2, np.array([[None, 1]]), r"expected numbers, got NoneType None at \[0, 0\]"),
        (2, np.array([["a", "b"]]), "takes float32 data, got dtype <U1"),
        (2, (ones(3, 2), [True, False, True]), "has no sequence axis"),
    ],
)
def test_data_that_does_not_fit(shape: Any, data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        doubled(shape, data)
    assert "Input('x'" in str(caught.value)


def selected(data: Any) -> Any:
    s = C.input_variable(3, is_sparse=True, name="s")
    return C.times(s, np.eye(3, dtype=np.float32)).eval({s: data})


@pytest.mark.parametrize("data", [csr_matrix(np.eye(3, dtype=np.float32)), [csr_matrix(row) for row in np.eye(3, dtype=np.float32)]])
def test_sparse_data(data: Any) -> None:
    assert_array_equal(selected(data), np.eye(3))


def test_sparse_data_of_another_type_is_converted_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="given float64 data"):
        assert_array_equal(selected(csr_matrix(np.eye(3))), np.eye(3))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (ones(4, 3), "takes CSR matrices, got ndarray; convert it with scipy.sparse.csr_matrix"),
        ([[1, 0, 0]], "takes CSR matrices, got list"),
        ([ones(1, 3)], "takes CSR matrices, got ndarray"),
        (csc_matrix(ones(4, 3)), "takes CSR matrices, got csc_matrix"),
        (coo_matrix(ones(4, 3)), "takes CSR matrices, got coo_matrix"),
        (csr_matrix(ones(4, 5)), r"takes CSR rows 3 wide, got a matrix of shape \(4, 5\)"),
        (csr_matrix((0, 3), dtype=np.float32), "the minibatch is empty"),
        (csr_matrix(np.ones((4, 3), complex)), "takes float32 data, got dtype complex128"),
        ([csr_matrix(ones(1, 3)), ones(1, 3)], "takes a list of CSR matrices, got ndarray at position 1"),
        ([ones(1, 3), csr_matrix(ones(1, 3))], "takes a list of CSR matrices, got ndarray at position 0"),
        ([csr_matrix(ones(1, 3)), csr_matrix(ones(1, 4))], r"takes CSR rows 3 wide, got a matrix of shape \(1, 4\) at position 1"),
    ],
)
def test_sparse_data_that_does_not_fit(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        selected(data)
    assert "Input('s'" in str(caught.value)


@pytest.mark.parametrize("data", [ones(2), ones(1, 2), [1, 1]])
def test_without_dynamic_axes_a_value_is_passed_as_it_is(data: Any) -> None:
    assert_array_equal(doubled(2, data, dynamic_axes=[]), [2, 2])


def test_without_dynamic_axes_a_batch_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has no dynamic axes and takes an array of shape \(2,\), got \(3, 2\)"):
        doubled(2, ones(3, 2), dynamic_axes=[])


@pytest.mark.parametrize("data", [csr_matrix(np.eye(3, dtype=np.float32)[:1]), ones(3)])
def test_sparse_data_needs_a_batch_axis(data: Any) -> None:
    x = C.input_variable(3, is_sparse=True, dynamic_axes=[], name="x")
    with pytest.raises(ValueError, match=r"Input.'x'.* is sparse and has no dynamic axes"):
        C.times(x, np.eye(3, dtype=np.float32)).eval({x: data})


def test_a_graph_without_inputs_needs_no_data() -> None:
    constant = C.constant([1, 2]) * 2
    for arguments in (None, {}):
        assert_array_equal(constant.eval(arguments), [2, 4])


# ---- sequences ----


@pytest.mark.parametrize(
    ("data", "lengths"),
    [
        ([ones(3, 2), ones(1, 2)], [3, 1]),
        ([[[1, 1], [1, 1]], [[1, 1]]], [2, 1]),
        (ones(3, 2), [3]),
        (ones(1, 3, 2), [3]),
        (ones(4, 3, 2), [3, 3, 3, 3]),
        (ones(2), [1]),
        ([[1, 1]], [1]),
    ],
)
def test_sequences_are_fed_as_they_lie(data: Any, lengths: list[int]) -> None:
    x = C.sequence.input_variable(2)
    if not lengths[1:] and isinstance(data, list):
        data = [data]
    result = (x * 2).eval({x: data})
    assert [part.shape for part in result] == [(length, 2) for length in lengths]
    for part in result:
        assert_array_equal(part, np.full(part.shape, 2))


@pytest.mark.parametrize("is_list", [True, False])
def test_sequences_of_one_length_lie_step_by_step(is_list: bool) -> None:
    x = C.sequence.input_variable(2)
    given = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    result = C.sequence.past_value(x).eval({x: list(given) if is_list else given})
    assert_array_equal(result, np.concatenate([np.zeros((3, 1, 2)), given[:, :-1]], axis=1))


def test_sequences_come_back_in_the_order_they_were_given() -> None:
    x = C.sequence.input_variable(1)
    given = [np.full((length, 1), length, np.float32) for length in (2, 5, 1, 3, 5)]
    for sequence, result in zip(given, (x + 0).eval({x: given}), strict=True):
        assert_array_equal(result, sequence)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "the minibatch is empty"),
        ([ones(3, 2), ones(0, 2)], "sequence 1 has no steps; every sequence needs at least one"),
        ([ones(3, 2), ones(3, 4)], r"takes sequences of shape \('steps', 2\), got \(3, 4\) at position 1"),
        ((ones(3, 2), [True, False]), "3 sequences are given, but 2 flags"),
        ([1, 2], r"takes sequences of shape \('steps', 2\), got \(\) at position 0"),
        (np.float32(1), r"takes sequences of shape \('steps', 2\), got \(\) at position 0"),
        ([csr_matrix(ones(2, 2)), ones(2, 2)], "takes a list of CSR matrices, got ndarray at position 1"),
    ],
)
def test_sequences_that_do_not_fit(data: Any, message: str) -> None:
    x = C.sequence.input_variable(2, name="x")
    with pytest.raises(ValueError, match=message):
        (x * 2).eval({x: data})


@pytest.mark.parametrize("sparse", [True, False])
def test_sequences_are_no_samples(sparse: bool) -> None:
    x = C.input_variable(3, is_sparse=sparse)
    f = C.times(x, np.eye(3, dtype=np.float32))
    assert_array_equal(f.eval({x: C.Value.one_hot([[2], [0]], 3)}), np.eye(3)[[2, 0]])
    with pytest.raises(ValueError, match=r"has no sequence axis and takes one step a sample, got sequences of \[2, 1\] steps"):
        f.eval({x: C.Value.one_hot([[0, 1], [2]], 3)})


def test_a_changed_value_shows_in_its_sequences_and_not_in_its_copy() -> None:
    x = C.sequence.input_variable(2)
    value = C.Value.create(x, [ones(2, 2), ones(1, 2)])
    copied = value.deep_clone()
    value.data.copy_from(5 * ones(2, 2, 2))
    for held, number in ((value, 5), (copied, 1)):
        for part, result, steps in zip(held.as_sequences(), (x * 2).eval({x: held}), (2, 1), strict=True):
            assert_array_equal(part, number * ones(steps, 2))
            assert_array_equal(result, 2 * number * ones(steps, 2))


# ---- which data is for which input ----


@pytest.fixture
def pair() -> Any:
    """The difference of two inputs, called left and right."""
    return C.input_variable(2, name="left") - C.input_variable(2, name="right")


def test_data_is_given_by_variable_or_by_name(pair: Any) -> None:
    left, right = pair.arguments
    two = 2 * ONES
    for arguments in ({left: ONES, right: two}, {"left": ONES, "right": two}, {"left": ONES, right: two}):
        assert_array_equal(pair.eval(arguments), -ONES)


def test_data_for_other_variables_is_left_out_with_a_warning(pair: Any) -> None:
    other = C.input_variable(7, name="other")
    with pytest.warns(UserWarning, match=r"data for Input.'other'.* is not used: the arguments of .* are Input.'left'"):
        value = pair.eval({**dict.fromkeys(pair.arguments, ONES), other: ONES})
    assert_array_equal(value, 0 * ONES)


def test_warnings_show_the_line_of_the_program(pair: Any) -> None:
    with pytest.warns(UserWarning, match="float64 data") as warned:
        pair.eval(dict.fromkeys(pair.arguments, np.ones((3, 2))))
    assert {warning.filename for warning in warned} == {__file__}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (None, "the function expects 2 arguments, got none; give data for Input.'left'"),
        ({}, "the function expects 2 arguments, got none"),
        (ONES, "the function has 2 inputs, so data must come as a dictionary by input"),
        ({"left": ONES}, "no data for Input.'right'"),
        ({"left": ONES, "wrong": ONES}, "no input has the name 'wrong'; the inputs are Input.'left'"),
        ({"left": ONES, 1: ONES}, "data is given by variable or by name, got the key 1"),
    ],
)
def test_data_that_is_missing_or_for_no_input(pair: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pair.eval(arguments)


def test_a_name_must_be_unique_to_feed_by_it() -> None:
    total = C.input_variable(2, name="x") + C.input_variable(2, name="x")
    with pytest.raises(ValueError, match="2 inputs have the name 'x'"):
        total.eval({"x": ONES})


@pytest.mark.parametrize("sizes", [(2, 3), (1, 3), (3, 1)])
def test_all_inputs_have_as_many_samples(pair: Any, sizes: tuple[int, int]) -> None:
    left, right = pair.arguments
    with pytest.raises(ValueError, match=rf"different numbers of samples: .*'left'.*: {sizes[0]}, .*'right'.*: {sizes[1]}"):
        pair.eval({left: ones(sizes[0], 2), right: ones(sizes[1], 2)})


def test_sequences_of_one_axis_have_equal_lengths() -> None:
    x, y = C.sequence.input_variable(1, name="x"), C.sequence.input_variable(1, name="y")
    with pytest.raises(ValueError, match=r"'x'.* has sequences of 2, 1 steps and .*'y'.* has sequences of 1, 2 steps"):
        (x + y).eval({x: [ones(2, 1), ones(1, 1)], y: [ones(1, 1), ones(2, 1)]})


# ---- results ----


def test_several_outputs_come_as_a_dictionary_by_output(pair: Any) -> None:
    both = C.combine([pair, pair * 2])
    result = both.eval(dict.fromkeys(pair.arguments, ONES))
    assert list(result) == list(both.outputs)


def test_outputs_may_be_chosen_from_the_whole_graph(pair: Any) -> None:
    square = C.square(pair, name="square")
    arguments = dict(zip(pair.arguments, (3 * ONES, ONES), strict=True))
    assert_array_equal((square + 1).eval(arguments, outputs=[pair]), 2 * ONES)
    assert set((square + 1).eval(arguments, outputs=[pair, square])) == {pair.output, square.output}


def test_results_are_the_caller_s_own(pair: Any) -> None:
    arguments = dict(zip(pair.arguments, (3 * ONES, ONES), strict=True))
    first = pair.eval(arguments)
    pair.eval(dict.fromkeys(pair.arguments, ONES))
    assert_array_equal(first, 2 * ONES)


def test_values_are_given_where_no_arrays_are_wanted(pair: Any) -> None:
    value = pair.eval(dict.fromkeys(pair.arguments, ONES), as_numpy=False)
    assert isinstance(value, C.Value)
    assert_array_equal(value.asarray(), 0 * ONES)


def test_what_is_fed_is_left_alone() -> None:
    x = C.input_variable(2)
    data = ones(3, 2)
    C.relu(x - 3).eval({x: data})
    assert_array_equal(data, ones(3, 2))
