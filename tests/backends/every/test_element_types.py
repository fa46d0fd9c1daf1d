"""Element types of operands that have none of their own, or another: numbers, NumPy's arrays, constants, placeholders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import DeviceDescriptor
from cntk.layers import Dense, Fold, Recurrence, Sequential

ARRAY = np.array([1.0, 2.0, 4.0])
X = np.float32([[1, 2, 3]])
STEPS = [np.float32([[1, 2, 3], [4, 5, 6]])]


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda v: np.sqrt(2) * v, 8.485281),
        (lambda v: np.float64(0.5) - v, -4.5),
        (lambda v: v / np.float64(2), 3),
        (lambda v: np.int64(3) * v, 18),
        (lambda v: ARRAY * v, 17),
        (lambda v: v - ARRAY, -1),
        (lambda v: (v - ARRAY.mean()) / ARRAY.std(), -0.80178),
        (lambda v: [0.5, 0.5, 1] * v, 4.5),
        (lambda v: C.relu(C.constant(ARRAY) - v), 1),
        (lambda v: C.splice(v, ARRAY), 13),
        (lambda v: C.element_max(v, ARRAY), 7),
        (lambda v: C.times(v, np.eye(3)), 6),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operands_in_a_lambda_take_the_type_of_the_network(
    f: Callable[..., Any], expected: float, dtype: Any, device: DeviceDescriptor
) -> None:
    with C.default_options(dtype=dtype):
        project, x = Dense(1, init=1), C.input_variable(3)
    y = Sequential([f, project])(x)
    assert y.dtype is dtype
    np.testing.assert_allclose(y.eval({x: X.astype(dtype)}, device=device), [[expected]], rtol=1e-5)


@pytest.mark.parametrize(
    "step",
    [
        lambda h, v: np.float64(0.5) * h + v,
        lambda h, v: h * np.array([0.5, 0.5, 0.5]) + v,
        lambda h, v: h * C.constant(np.array([0.5, 0.5, 0.5])) + v,
        lambda h, v: h * 0.5 + v,
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_recurrences_take_the_type_of_their_input(step: Callable[..., Any], dtype: Any, device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(3, dtype=dtype)
    data = [STEPS[0].astype(dtype)]
    y = Recurrence(step)(x)
    assert y.dtype is dtype
    np.testing.assert_array_equal(y.eval(data, device=device)[0], [[1, 2, 3], [4.5, 6, 7.5]])
    np.testing.assert_array_equal(Fold(step)(x).eval(data, device=device), [[4.5, 6, 7.5]])


def test_numbers_keep_their_digits_until_their_type_is_known(device: DeviceDescriptor) -> None:
    p, x = C.placeholder(), C.input_variable(1, dtype=np.float64)
    f = (p + np.array([0.1])) * [0.3] + np.float64(0.7)
    f.replace_placeholders({p: x})
    assert f.eval([[0.0]], device=device)[0, 0] == np.float64(0.1) * 0.3 + 0.7


def test_an_array_that_is_changed_later_does_not_change_the_graph(device: DeviceDescriptor) -> None:
    p, x, array = C.placeholder(), C.input_variable(1), np.array([1.0])
    f = p + array
    array[:] = 5
    assert f.replace_placeholders({p: x}).eval([[0]], device=device) == 1


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda p: p + 1, np.float32),
        (lambda p: C.exp(p), None),
        (lambda p: C.exp(p) * 2, np.float32),
        (lambda p: C.times(p, C.parameter((3, 2))), np.float32),
        (lambda p: C.times(p, C.parameter((3, 2), dtype=np.float64)), np.float64),
        (lambda p: p + C.constant(ARRAY), np.float64),
        (lambda p: C.sequence.past_value(p, C.constant(0)), np.float32),
        (lambda p: 2 * C.sequence.past_value(p, 0) + C.sequence.input_variable(3, dtype=np.float64), np.float64),
    ],
)
def test_what_is_computed_from_a_placeholder_has_the_type_that_other_operands_tell(make: Callable[..., Any], dtype: Any) -> None:
    assert make(C.placeholder()).dtype is dtype


@pytest.mark.parametrize("make", [lambda p: p + 1, lambda p: C.relu(p) * C.constant(2), lambda p: C.sequence.past_value(p, C.constant(0))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_binding_a_placeholder_decides(make: Callable[..., Any], dtype: Any) -> None:
    p = C.placeholder()
    assert make(p).replace_placeholders({p: C.sequence.input_variable(3, dtype=dtype)}).dtype is dtype


def test_constants_of_another_type_in_a_recurrence_that_is_closed_late(device: DeviceDescriptor) -> None:
    p, x = C.placeholder(), C.sequence.input_variable(3, dtype=np.float64)
    h = C.sequence.past_value(p, C.constant(1)) + x
    h.replace_placeholders({p: h.output})
    np.testing.assert_array_equal(h.eval([STEPS[0].astype(np.float64)], device=device)[0], [[2, 3, 4], [6, 8, 10]])


def test_a_recurrence_that_only_constants_type() -> None:
    p, x = C.placeholder(), C.sequence.input_variable(1)
    count = C.reconcile_dynamic_axes(C.sequence.past_value(p, C.constant(0, dtype=np.float64)) + 1, x)
    count.replace_placeholders({p: count.output})
    assert count.dtype is np.float64
    np.testing.assert_array_equal(count.eval({x: [np.zeros((3, 1), np.float32)]})[0], [1, 2, 3])


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda: C.exp(ARRAY), np.float32),
        (lambda: C.splice(ARRAY, ARRAY), np.float32),
        (lambda: C.element_select(ARRAY, ARRAY, ARRAY), np.float32),
        (lambda: C.random_sample(ARRAY, 2, True), np.float32),
        (lambda: C.random_sample_inclusion_frequency(ARRAY, 2, True), np.float32),
        (lambda: C.plus(ARRAY, ARRAY), np.float64),
        (lambda: C.plus(ARRAY, ARRAY.astype(np.float32)), np.float64),
        (lambda: C.minus(ARRAY.astype(np.float32), ARRAY), np.float64),
        (lambda: C.times(ARRAY, [[1], [2], [3]]), np.float64),
        (lambda: C.cast(ARRAY, np.float64), np.float64),
        (lambda: C.exp(C.constant(ARRAY)), np.float64),
        (lambda: C.splice(np.array([1, 2]), C.input_variable(2)), np.float32),
        (lambda: C.random_sample(C.constant(ARRAY), 2, True), np.float64),
    ],
)
def test_arrays_alone(make: Callable[[], Any], dtype: Any) -> None:
    """A single array and several are float32, two have the more precise of their types, constants their own."""
    assert make().dtype is dtype


def test_a_sampled_vocabulary_whose_weights_are_float64(device: DeviceDescriptor) -> None:
    embedding = C.parameter(init=np.float32([[1, 2], [3, 4], [5, 6]]))
    expected_draws = C.times(C.random_sample_inclusion_frequency(ARRAY, 2, True), embedding)
    np.testing.assert_allclose(expected_draws.eval(device=device), [7.714286, 9.714286], rtol=1e-6)


def test_parameters_of_another_type_are_refused() -> None:
    with pytest.raises(ValueError, match="float32 and float64; use cast"):
        C.input_variable(3) + C.parameter(init=ARRAY)


UNKNOWN = C.cntk_py.DataType_Unknown


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_parameter_may_take_the_type_of_the_operand_beside_it(dtype: Any) -> None:
    weights, bias = C.parameter((C.InferredDimension, 1), C.glorot_uniform(), UNKNOWN), C.parameter(1, 3, UNKNOWN)
    assert (weights.dtype, weights.get_data_type()) == (None, UNKNOWN)
    x = C.input_variable(2, dtype=dtype)
    z = C.times(x, weights) + bias
    assert z.dtype is weights.dtype is bias.dtype is dtype
    np.testing.assert_allclose(z.eval(np.ones((1, 2), dtype))[0], weights.value.sum() + 3, rtol=1e-6)


def test_a_parameter_takes_the_type_of_constants_and_of_what_replaces_a_placeholder() -> None:
    first, second, u = C.parameter(2, 3, UNKNOWN), C.parameter(2, 3, UNKNOWN), C.placeholder()
    assert ((first * 2).eval() == 6).all()
    assert first.dtype is np.float32
    z = u * second
    assert second.dtype is None
    z.replace_placeholders({u: C.input_variable(2, dtype=np.float64)})
    assert z.dtype is second.dtype is np.float64


def test_a_parameter_without_type_has_no_value() -> None:
    p = C.parameter(2, 3, UNKNOWN)
    for asked in (lambda: p.value, lambda: (p + p).eval()):
        with pytest.raises(ValueError, match="has no element type yet; use it beside an operand that has one first"):
            asked()
