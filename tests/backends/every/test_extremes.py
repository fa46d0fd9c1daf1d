"""Numbers at the ends of their types: values and gradients are right wherever they can be, finite where CNTK keeps them so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common.dtypes import FLOAT_TYPES
from cntk.core.extension.device import DeviceDescriptor

SIZES = {
    np.float16: (6e-8, 1e-5, 1e-3, 1, 200, 300, 3e4),
    np.float32: (1e-45, 1e-40, 1e-30, 1e-20, 3e-16, 1, 1e18, 1.9e19, 1e30, 1e38),
    np.float64: (5e-324, 1e-310, 1e-200, 1e-150, 1, 1e150, 1e300),
}


def evaluated(function: Any, data: Any, device: DeviceDescriptor) -> tuple[Any, Any]:
    """Value of a function of one input, and the gradient of its sum."""
    x = C.input_variable(data.shape[1:], data.dtype.type, needs_gradient=True)
    y = function(x)
    gradient, value = y.grad({x: data}, wrt=[x], outputs=[y.output], device=device)
    return value, gradient


def right_norm(data: Any) -> tuple[Any, Any]:
    """The Euclidean norm of each row, and its gradient, of numbers that are scaled first."""
    wide = data.astype(np.longdouble)
    norm = np.sqrt((wide**2).sum(1, keepdims=True))
    return norm, np.divide(wide, norm, out=np.zeros_like(wide), where=norm > 0)


def smallest_number(dtype: Any, device: DeviceDescriptor) -> float:
    """The smallest positive number that a device computes with; CuPy has GPUs take smaller ones than the smallest normal one for 0."""
    limits, backend = np.finfo(dtype), device.backend
    with backend.guard():
        half = backend.to_numpy(backend.asarray([limits.tiny], dtype) * dtype(0.5))
    return float(limits.smallest_subnormal if half[0] else limits.tiny)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_norms_are_right_wherever_they_are_numbers(dtype: Any, device: DeviceDescriptor) -> None:
    data = np.outer(SIZES[dtype], [1, -0.5, 0.25, 0]).astype(dtype)
    value, gradient = evaluated(lambda x: C.reduce_l2(x, 0), data, device)
    norm, slope = right_norm(data)
    limits, least = np.finfo(dtype), smallest_number(dtype, device)
    np.testing.assert_allclose(value, norm.astype(np.float64), rtol=3 * limits.eps, atol=least)
    rounding = (limits.eps + least / data[:, :1].astype(np.float64)) * 3  # of a norm that is no normal number
    assert (np.abs(gradient - slope) <= rounding).all()


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_a_norm_of_nothing_has_no_gradient(dtype: Any, device: DeviceDescriptor) -> None:
    value, gradient = evaluated(lambda x: C.reduce_l2(x, 0), np.zeros((2, 3), dtype), device)
    np.testing.assert_array_equal(value, 0)
    np.testing.assert_array_equal(gradient, 0)


def test_norms_are_those_of_their_rows_alone(device: DeviceDescriptor) -> None:
    """Rows that are scaled leave the others as they are, to the last bit."""
    data = np.random.default_rng(1).standard_normal((50, 7)).astype(np.float32)
    alone, _ = evaluated(lambda x: C.reduce_l2(x, 0), data, device)
    beside, _ = evaluated(lambda x: C.reduce_l2(x, 0), np.concatenate([data, data[:1] * 1e-30, data[:1] * 1e30]), device)
    np.testing.assert_array_equal(beside[:-2], alone)


@pytest.mark.parametrize("axis", [None, 0, C.Axis.default_batch_axis(), C.Axis.all_axes()])
def test_norms_over_any_axis_are_scaled(axis: Any, device: DeviceDescriptor) -> None:
    x = C.input_variable((2, 2))
    found = C.reduce_l2(x, axis).eval({x: np.full((3, 2, 2), 1e30, np.float32)}, device=device)
    assert np.isfinite(found).all()
    assert (found >= 1e30).all()


def test_norms_of_infinities_and_what_is_no_number(device: DeviceDescriptor) -> None:
    value, _ = evaluated(lambda x: C.reduce_l2(x, 0), np.array([[np.inf, 1], [np.nan, 1], [3, 4]], np.float32), device)
    np.testing.assert_array_equal(value[:, 0], [np.inf, np.nan, 5])


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("size", [1, 5, 17, 1000, 5000, 200_000])
def test_no_negative_zero_comes_from_a_rectifier(size: int, dtype: Any, device: DeviceDescriptor) -> None:
    x = C.input_variable(size, dtype)
    data = np.full((1, size), -0.0, dtype)
    for y in (C.relu(x), C.relu(x * 1), C.relu(-C.abs(x))):
        assert not np.signbit(y.eval({x: data}, device=device)).any()


@pytest.mark.parametrize("size", [3, 300_000])
def test_a_choice_keeps_the_sign_of_zero(size: int, device: DeviceDescriptor) -> None:
    x = C.input_variable(size)
    y = C.element_select(C.greater(x, 0), x, -x)
    assert np.signbit(y.eval({x: np.zeros((1, size), np.float32)}, device=device)).all()


@pytest.mark.parametrize(("size", "dtype"), [(1e30, np.float32), (3000, np.float16), (1e-30, np.float32), (1e300, np.float64)])
def test_deviations_are_right_wherever_they_are_numbers(size: float, dtype: Any, device: DeviceDescriptor) -> None:
    data = (np.random.default_rng(1).standard_normal((2, 500)) * size).astype(dtype)
    epsilon = 0.0 if size < 1 else 1e-5
    weights = np.linspace(-1, 1, 500).astype(dtype)
    value, gradient = evaluated(lambda x: C.mean_variance_normalization(x, epsilon=epsilon) * weights, data, device)
    wide = data.astype(np.longdouble)
    normal = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    step = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(value, (normal * weights).astype(np.float64), rtol=0, atol=8 * step)
    slopes = weights - weights.mean(dtype=np.float64) - normal * (weights * normal).mean(1, keepdims=True)
    right = slopes / (wide.std(1, keepdims=True) / size)
    np.testing.assert_allclose(gradient.astype(np.float64) * size, right.astype(np.float64), rtol=0, atol=8 * step)


@pytest.mark.parametrize("rows", [2, 40_000])
def test_layer_normalisation_of_equal_numbers_has_a_gradient(rows: int, device: DeviceDescriptor) -> None:
    """As if the deviation were constant: (dy - mean(dy)) / epsilon."""
    layer = C.layers.LayerNormalization(epsilon=0.5)
    value, gradient = evaluated(lambda x: layer(x) * [1, 2, 3, 6], np.ones((rows, 4), np.float32), device)
    np.testing.assert_array_equal(value, 0)
    np.testing.assert_allclose(gradient, np.tile([[-4, -2, 0, 6]], (rows, 1)), rtol=1e-6)


@pytest.mark.parametrize("rows", [1, 100_000])
def test_a_root_of_nothing_has_an_infinite_gradient_unless_none_comes(rows: int, device: DeviceDescriptor) -> None:
    _, gradient = evaluated(lambda x: C.sqrt(x) * [1, 0, 2], np.tile(np.array([[0, 0, 4]], np.float32), (rows, 1)), device)
    np.testing.assert_array_equal(gradient, np.tile([[np.inf, 0, 0.5]], (rows, 1)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_binary_cross_entropies_keep_their_digits(dtype: Any, device: DeviceDescriptor) -> None:
    """Of answers that are all but certain, and right."""
    p, y = np.array([[1 - 2**-20, 2**-20, 0.999]], dtype), np.array([[1, 0, 1]], dtype)
    value, _ = evaluated(lambda x: C.binary_cross_entropy(x, y[0]), p, device)
    chance = np.where(y == 1, p, 1 - p).astype(np.float64)
    np.testing.assert_allclose(value, -np.log(chance + 1e-6), rtol=0, atol=2 * np.finfo(dtype).eps)


def test_batch_normalisation_of_float16_is_as_good_as_its_statistics(device: DeviceDescriptor) -> None:
    """Two samples are normalised to -1 and 1 whatever they are; hardly any gradient is left."""
    data = np.array([[1.0, 0.1, 3.0], [1.5, 0.7, 2.9]], np.float16)
    x, weight = C.input_variable(3, np.float16, needs_gradient=True), C.input_variable(3, np.float16)
    scale, bias, mean, variance = (C.constant(value, (3,)) for value in (1, 0, 0, 1))
    y = C.batch_normalization(x, scale, bias, mean, variance, True, running_count=C.constant(0), epsilon=1e-5)
    slopes = np.array([[1, 2, -1], [3, 1, 1]], np.float16)
    gradient = (y * weight).grad({x: data, weight: slopes}, wrt=[x], device=device)
    wide = data.astype(np.float64)
    centred, spread = wide - wide.mean(0), wide.var(0) + 1e-5
    up = slopes.astype(np.float64)
    right = (up - up.mean(0) - centred * (up * centred).mean(0) / spread) / np.sqrt(spread)
    np.testing.assert_allclose(gradient, right, rtol=2e-3, atol=1e-6)


def test_batch_normalisation_of_equal_numbers_is_finite(device: DeviceDescriptor) -> None:
    scale, bias, mean, variance = (C.constant(value, (3,)) for value in (2, 1, 0, 1))
    settings = {"running_count": C.constant(0), "epsilon": 1e-5}
    value, gradient = evaluated(
        lambda x: C.batch_normalization(x, scale, bias, mean, variance, True, **settings), np.full((7, 3), 0.25, np.float32), device
    )
    np.testing.assert_array_equal(value, 1)
    np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize("function", [C.sigmoid, C.tanh, C.softplus, C.reduce_log_sum_exp, C.softmax, C.log_softmax, C.elu])
@pytest.mark.parametrize("number", [1e4, -1e4, 3e38, -3e38])
def test_large_numbers_give_no_nan(function: Any, number: float, device: DeviceDescriptor) -> None:
    value, gradient = evaluated(function, np.array([[number, number / 2, 0]], np.float32), device)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
