"""What element-wise operators do at special points, where the random samples of the generic tests never come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import DeviceDescriptor
from cntk.testing import assert_close
from cntk.testing.tolerances import SINGLE

nan, inf = float("nan"), float("inf")
LEAST = float(np.exp(85.1))


def values_and_gradients(function: Any, operands: list[Any], device: DeviceDescriptor, dtype: Any = np.float32) -> tuple[Any, list[Any]]:
    """Apply *function* to one sample of each operand; return the result and the operands' gradients."""
    arrays = [np.array([operand], dtype) for operand in operands]
    inputs = [C.input_variable(array.shape[1:], dtype, needs_gradient=True) for array in arrays]
    result = function(*inputs)
    gradients, value = result.grad(dict(zip(inputs, arrays, strict=True)), wrt=inputs, outputs=[result.output], device=device)
    found = [gradients[x][0] for x in inputs] if len(inputs) > 1 else [gradients[0]]
    return value[0], found


UNARY = [
    ("log", C.log, [1, 0, -1, 1e-38, 2], [0, -85.1, -85.1, -85.1, np.log(2)], [1, LEAST, LEAST, LEAST, 0.5]),
    ("sqrt", C.sqrt, [4, 0, -1], [2, 0, 0], [0.25, inf, inf]),
    ("reciprocal", C.reciprocal, [2, 0, -0.5], [0.5, 0, -2], [-0.25, 0, -4]),
    ("abs", C.abs, [2, 0, -2], [2, 0, 2], [1, 0, -1]),
    ("square", C.square, [2, 0, -3], [4, 0, 9], [4, 0, -6]),
    ("floor", C.floor, [1.5, -1.5, 2], [1, -2, 2], [0, 0, 0]),
    ("ceil", C.ceil, [1.5, -1.5, 2], [2, -1, 2], [0, 0, 0]),
    ("round", C.round, [0.5, -0.5, -2.5, 1.5, 2.49], [1, 0, -2, 2, 2], [0, 0, 0, 0, 0]),
    ("tan", C.tan, [0, 1], np.tan([0, 1]), 1 / np.cos([0, 1]) ** 2),
    ("asin", C.asin, [1, -1, 2], [np.pi / 2, -np.pi / 2, nan], [inf, inf, nan]),
    ("acos", C.acos, [1, -1, 2], [0, np.pi, nan], [-inf, -inf, nan]),
    ("atanh", C.atanh, [1, -1, 2], [inf, -inf, nan], [inf, inf, -1 / 3]),
    ("asinh", C.asinh, [0, 1e30], [0, np.arcsinh(1e30)], [1, 1e-30]),
    ("clip", lambda x: C.clip(x, -1, 1), [-2, -1, 0, 1, 2], [-1, -1, 0, 1, 1], [0, 1, 1, 1, 0]),
    ("clip, bounds crossed", lambda x: C.clip(x, 5, 0.5), [1, 7], [0.5, 0.5], [0, 0]),
    ("relu", C.relu, [-1, 0, 1, nan], [0, 0, 1, nan], [0, 0, 1, 0]),
    ("leaky_relu", C.leaky_relu, [-1, 0, 1], [-0.01, 0, 1], [0.01, 1, 1]),
    ("leaky_relu, negative slope", lambda x: C.leaky_relu(x, -0.5), [-1, 0, 1], [0.5, 0, 1], [-0.5, 1, 1]),
    ("elu", lambda x: C.elu(x, 0.5), [-1, 0, 100], [0.5 * np.expm1(-1), 0, 100], [0.5 * np.exp(-1), 1, 1]),
    ("selu", C.selu, [0, 1, 100], [0, 1.0507010, 105.07010], [1.0507010, 1.0507010, 1.0507010]),
    ("sigmoid", C.sigmoid, [0, 1000, -1000, -20], [0.5, 1, 0, 2.0611537e-9], [0.25, 0, 0, 2.0611537e-9]),
    ("softplus", C.softplus, [0, 1000, -1000, -20], [np.log(2), 1000, 0, 2.0611537e-9], [0.5, 1, 0, 2.0611537e-9]),
    ("softplus, steep", lambda x: C.softplus(x, 4), [0, 1, 100], [np.log(2) / 4, 1.0045375, 100], [0.5, 0.98201376, 1]),
    ("softsign", C.softsign, [-1, 0, 1], [-0.5, 0, 0.5], [0.25, 1, 0.25]),
    ("softsign, steep", lambda x: C.softsign(x, 3), [-1, 0, 1], [-0.75, 0, 0.75], [3 / 16, 3, 3 / 16]),
    ("hard_sigmoid", lambda x: C.hard_sigmoid(x, 0.5, 0.5), [-2, -1, 0, 1, 2], [0, 0, 0.5, 1, 1], [0, 0, 0.5, 0, 0]),
    ("straight_through_impl", C.straight_through_impl, [-2, -1, 0, 0.5, 1, 2], [-1, -1, -1, 1, 1, 1], [0, 1, 1, 1, 1, 0]),
    ("element_not", C.element_not, [1, -1, 0, 0.5], [0, 1, 1, 0], [0, 0, 0, 0]),
    ("zeros_like", C.zeros_like, [1, nan], [0, 0], [0, 0]),
    ("ones_like", C.ones_like, [1, nan], [1, 1], [0, 0]),
    ("stop_gradient", C.stop_gradient, [1, 2], [1, 2], [0, 0]),
    ("alias", C.alias, [1, 2], [1, 2], [1, 1]),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(("function", "x", "y", "dx"), [case[1:] for case in UNARY], ids=[case[0] for case in UNARY])
def test_one_operand(function: Any, x: Any, y: Any, dx: Any, dtype: Any, device: DeviceDescriptor) -> None:
    value, (gradient,) = values_and_gradients(function, [x], device, dtype)
    assert value.dtype == gradient.dtype == dtype
    np.testing.assert_allclose(value, y, rtol=2e-5)
    np.testing.assert_allclose(gradient, dx, rtol=2e-5)


BINARY = [
    ("element_divide", C.element_divide, [1, 0, -2, 3], [0, 0, 0, 2], [0, 0, 0, 1.5], [0, 0, 0, 0.5], [0, 0, 0, -0.75]),
    ("pow of 0", C.pow, [0, 0, 0, 0, 0], [0, -1, 0.5, 1, 2], [1, 0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]),
    ("pow of negative", C.pow, [-2, -2, -2, -2], [0.5, 2, 3, -1], [nan, 4, -8, -0.5], [nan, -4, 12, -0.25], [0, 0, 0, 0]),
    ("element_max", C.element_max, [1, 2, 3], [2, 2, 1], [2, 2, 3], [0, 0, 1], [1, 1, 0]),
    ("element_min", C.element_min, [1, 2, 3], [2, 2, 1], [1, 2, 1], [1, 0, 0], [0, 1, 1]),
    ("log_add_exp", C.log_add_exp, [1000, 0, inf], [0, 0, 1], [1000, np.log(2), inf], [1, 0.5, 1], [0, 0.5, 0]),
    ("log_add_exp of large numbers", C.log_add_exp, [1e8, 1e8], [1e8, -1e8], [1e8 + np.log(2), 1e8], [0.5, 1], [0.5, 0]),
    ("param_relu", C.param_relu, [0.5, 0.5, 0.5], [-1, 0, 1], [-0.5, 0, 1], [-1, 0, 0], [0.5, 1, 1]),
    ("element_and", C.element_and, [1, -1, 0, 0.5, -1], [1, 1, 1, 0.5, -1], [1, 0, 0, 1, 0], [0] * 5, [0] * 5),
    ("element_or", C.element_or, [1, -1, 0, 0.5, -1], [1, 1, 0, 0.5, -1], [1, 1, 0, 1, 0], [0] * 5, [0] * 5),
    ("element_xor", C.element_xor, [1, -1, 0, 0.5, 2], [1, 1, 0, 0.5, 0], [0, 1, 0, 0, 1], [0] * 5, [0] * 5),
    ("less", C.less, [1, 2, 3], [2, 2, 2], [1, 0, 0], [0, 0, 0], [0, 0, 0]),
    ("less_equal", C.less_equal, [1, 2, 3], [2, 2, 2], [1, 1, 0], [0, 0, 0], [0, 0, 0]),
    ("equal", C.equal, [1, 2, 3], [2, 2, 2], [0, 1, 0], [0, 0, 0], [0, 0, 0]),
    ("not_equal", C.not_equal, [1, 2, 3], [2, 2, 2], [1, 0, 1], [0, 0, 0], [0, 0, 0]),
    ("greater", C.greater, [1, 2, 3], [2, 2, 2], [0, 0, 1], [0, 0, 0], [0, 0, 0]),
    ("greater_equal", C.greater_equal, [1, 2, 3], [2, 2, 2], [0, 1, 1], [0, 0, 0], [0, 0, 0]),
    ("element_select", lambda x, y: C.element_select([1, 0, -1], x, y), [1, 2, 3], [4, 5, 6], [1, 5, 3], [1, 0, 1], [0, 1, 0]),
    ("element_select of nan", lambda x, y: C.element_select([1, 0], x, y), [1, nan], [nan, 2], [1, 2], [1, 0], [0, 1]),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(("function", "x", "y", "z", "dx", "dy"), [case[1:] for case in BINARY], ids=[case[0] for case in BINARY])
def test_two_operands(function: Any, x: Any, y: Any, z: Any, dx: Any, dy: Any, dtype: Any, device: DeviceDescriptor) -> None:
    value, gradients = values_and_gradients(function, [x, y], device, dtype)
    assert value.dtype == dtype
    np.testing.assert_allclose(value, z, rtol=2e-5)
    np.testing.assert_allclose(gradients[0], dx, rtol=2e-5)
    np.testing.assert_allclose(gradients[1], dy, rtol=2e-5)


def test_half_precision_stays_finite(device: DeviceDescriptor) -> None:
    value, (gradient,) = values_and_gradients(C.sigmoid, [[20, -14, -20]], device, np.float16)
    np.testing.assert_allclose(value, [1, 8.345e-07, 0], rtol=0.1)
    assert np.isfinite(gradient).all()
    value, (gradient,) = values_and_gradients(lambda x: 0 * C.log(x), [[0, -1]], device, np.float16)
    np.testing.assert_array_equal(value, [0, 0])
    np.testing.assert_array_equal(gradient, [0, 0])


def test_bounds_of_clip_get_no_gradient(device: DeviceDescriptor) -> None:
    x = C.input_variable(3, needs_gradient=True)
    low, high = C.parameter(3, init=-0.5), C.parameter(3, init=0.5)
    gradients = C.clip(x, low, high).grad({x: np.float32([[-1, 0, 1]])}, wrt=[x, low, high], device=device)
    np.testing.assert_array_equal(gradients[x], [[0, 1, 0]])
    np.testing.assert_array_equal(gradients[low], [0, 0, 0])
    np.testing.assert_array_equal(gradients[high], [0, 0, 0])


def test_gradients_are_summed_over_broadcast_axes(device: DeviceDescriptor) -> None:
    x = C.input_variable((2, 3), needs_gradient=True)
    column, row, number = C.parameter((2, 1), init=2), C.parameter(3, init=3), C.parameter((), init=4)
    data = np.ones((5, 2, 3), np.float32)
    gradients = C.element_times(x, column, row, number).grad({x: data}, wrt=[x, column, row, number], device=device)
    np.testing.assert_array_equal(gradients[x], 24 * data)
    np.testing.assert_array_equal(gradients[column], [[5 * 3 * 12]] * 2)
    np.testing.assert_array_equal(gradients[row], [5 * 2 * 8] * 3)
    assert gradients[number] == 5 * 6 * 6


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (C.plus, 15),
        (C.element_times, 120),
        (C.element_max, 5),
        (C.element_min, 1),
        (C.log_add_exp, np.log(np.sum(np.exp(np.arange(1, 6))))),
    ],
)
def test_many_operands(function: Any, expected: float, device: DeviceDescriptor) -> None:
    result = function([1], [2], [3], [4], [5], "named")
    assert result.name == "named"
    assert_close(result.eval(device=device), [expected], tolerance=SINGLE)


def test_one_operand_is_too_few() -> None:
    with pytest.raises(TypeError):
        C.plus([1])


def test_sum_and_mean_take_lists_and_functions_with_several_outputs(device: DeviceDescriptor) -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    data = {x: np.float32([[1, 2]]), y: np.float32([[3, 6]])}
    both = C.combine(x + 0, y + 0)
    np.testing.assert_array_equal(C.sum([x, y, 1]).eval(data, device=device), [[5, 9]])
    np.testing.assert_array_equal(C.mean(both).eval(data, device=device), [[2, 4]])
    with pytest.raises(ValueError, match="at least one operand"):
        C.sum()


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        C.plus(C.input_variable((2, 3)), C.input_variable(2))


def test_image_scaler_wants_a_bias_for_each_channel() -> None:
    image = C.input_variable((3, 2, 2))
    assert C.image_scaler(image, 0.5, [1, 2, 3]).root_function.attributes == {"Scaler": 0.5, "Biases": [1, 2, 3]}
    with pytest.raises(ValueError, match="2 channels"):
        C.image_scaler(image, 0.5, [1, 2])


def test_assign_happens_after_the_pass(device: DeviceDescriptor) -> None:
    target, source = C.constant(1, shape=2), C.parameter(2, init=5)
    stored, reader = C.assign(target, source), target + 0
    results = C.combine(reader, stored).eval({}, device=device)
    np.testing.assert_array_equal(results[reader.output], [1, 1])
    np.testing.assert_array_equal(results[stored.output], [5, 5])
    np.testing.assert_array_equal(target.value, [5, 5])


def test_assign_refuses_what_it_cannot_store() -> None:
    parameter = C.parameter(2)
    with pytest.raises(TypeError, match="Parameter or Constant"):
        C.assign(parameter + 1, parameter)
    with pytest.raises(ValueError, match="shape"):
        C.assign(parameter, C.parameter(3))
    with pytest.raises(ValueError, match="dynamic axes"):
        C.assign(parameter, C.input_variable(2))


def test_cast_converts_values_forward_and_gradients_back(device: DeviceDescriptor) -> None:
    x = C.input_variable(2, np.float64, needs_gradient=True)
    half = C.cast(x, np.float16)
    assert half.dtype == np.float16
    gradient, value = half.grad({x: np.array([[1 / 3, 1]])}, outputs=[half.output], device=device)
    np.testing.assert_array_equal(value, np.float16([[1 / 3, 1]]))
    assert (value.dtype, gradient.dtype) == (np.float16, np.float64)
    np.testing.assert_array_equal(gradient, [[1, 1]])
    with pytest.raises(ValueError, match="not supported"):
        C.cast(x, np.int32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", [5, 5000])
def test_relu_of_few_and_of_many_elements(size: int, dtype: Any, device: DeviceDescriptor) -> None:
    edges = np.array([nan, inf, -inf, -1, 2], dtype)
    value, (gradient,) = values_and_gradients(C.relu, [np.resize(edges, size)], device, dtype)
    np.testing.assert_array_equal(value, np.resize(np.array([nan, inf, 0, 0, 2], dtype), size))
    np.testing.assert_array_equal(gradient[1:], np.resize(np.array([1, 0, 0, 1, 0], dtype), size - 1))
