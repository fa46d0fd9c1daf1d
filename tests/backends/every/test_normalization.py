"""Batch normalisation in training and out of it, and the normalisations of single samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cntk as C
from cntk.testing import assert_close
from cntk.testing.tolerances import GRADIENTS, SINGLE

DATA = np.array([[1, 2], [3, 5], [5, 5], [7, 8]], dtype=np.float32)


class Layer:
    """Batch normalisation of an input with parameters and statistics of its own."""

    def __init__(self, shape: Any, features: int, spatial: bool, dtype: Any = np.float32, **attributes: Any) -> None:
        self.x = C.input_variable(shape, dtype, needs_gradient=True)
        wide = np.float64 if dtype == np.float64 else np.float32
        self.scale = C.parameter((features,), init=1, dtype=dtype)
        self.bias = C.parameter((features,), init=0, dtype=dtype)
        self.mean = C.constant(0, (features,), dtype=wide)
        self.variance = C.constant(0, (features,), dtype=wide)
        self.count = C.constant(0.0)
        self.function = C.batch_normalization(
            self.x, self.scale, self.bias, self.mean, self.variance, spatial, running_count=self.count, **attributes
        )

    def train(self, data: Any) -> Any:
        """Result of a training pass."""
        output = self.function.output
        _, found = self.function.forward({self.x: data}, [output], {output})
        return found[output]


def test_training_uses_the_minibatch_and_remembers_it() -> None:
    layer = Layer(2, 2, spatial=False, normalization_time_constant=10)
    found = layer.train(DATA)
    assert_close(found, (DATA - DATA.mean(0)) / np.sqrt(DATA.var(0) + 1e-5))
    assert_allclose(layer.mean.value, DATA.mean(0))
    assert_close(layer.variance.value, DATA.var(0, ddof=1), tolerance=SINGLE)
    assert layer.count.value == 4


@pytest.mark.parametrize(("time_constant", "share"), [(10, 1 - math.exp(-0.4)), (0, 1.0), (-1, 0.5)])
def test_later_minibatches_move_the_statistics_by_their_share(time_constant: float, share: float) -> None:
    layer = Layer(2, 2, spatial=False, normalization_time_constant=time_constant)
    layer.train(DATA)
    layer.train(DATA + 10)
    assert_close(layer.mean.value, DATA.mean(0) + share * 10, tolerance=SINGLE)
    assert_close(layer.variance.value, DATA.var(0, ddof=1))
    assert layer.count.value == 8


def test_evaluation_uses_and_leaves_the_running_statistics() -> None:
    layer = Layer(2, 2, spatial=False)
    assert_close(layer.function.eval({layer.x: DATA}), DATA / np.sqrt(1e-5))
    assert layer.count.value == 0
    layer.train(DATA)
    expected = (DATA - DATA.mean(0)) / np.sqrt(DATA.var(0, ddof=1) + 1e-5)
    assert_close(layer.function.eval({layer.x: DATA}), expected)
    assert layer.count.value == 4


def test_places_of_a_channel_share_statistics_but_count_by_sample() -> None:
    layer = Layer((2, 3), 2, spatial=True)
    data = np.arange(24, dtype=np.float32).reshape(4, 2, 3) ** 1.5
    found = layer.train(data)
    mean, variance = data.mean((0, 2)), data.var((0, 2))
    assert_close(found, (data - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5))
    assert_close(layer.variance.value, data.var((0, 2), ddof=1))
    assert layer.count.value == 4


def test_gradients_flow_through_the_statistics() -> None:
    layer = Layer(2, 2, spatial=False, dtype=np.float64)
    weights = np.array([[1.0, -2.0]])
    weighted = C.reduce_sum(layer.function * C.square(layer.x) * C.constant(weights[0], dtype=np.float64))
    data = DATA.astype(np.float64)
    found = weighted.grad({layer.x: data}, wrt=[layer.x, layer.scale, layer.bias])

    def total(x: Any) -> float:
        return float(((x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * x**2 * weights).sum())

    numeric = np.zeros_like(data)
    for place in np.ndindex(data.shape):
        step = np.zeros_like(data)
        step[place] = 1e-5
        numeric[place] = (total(data + step) - total(data - step)) / 2e-5
    assert_close(found[layer.x], numeric, tolerance=GRADIENTS)
    normal = (data - data.mean(0)) / np.sqrt(data.var(0) + 1e-5)
    assert_close(found[layer.scale], (normal * data**2 * weights).sum(0))
    assert_close(found[layer.bias], (data**2 * weights).sum(0))


def test_half_precision_keeps_statistics_in_single() -> None:
    layer = Layer(2, 2, spatial=False, dtype=np.float16)
    data = (DATA * 300).astype(np.float16)
    found = layer.train(data)
    assert found.dtype == np.float16
    wide = data.astype(np.float32)
    assert_close(found, (wide - wide.mean(0)) / wide.std(0))
    assert_close(layer.variance.value, wide.var(0, ddof=1))


@pytest.mark.parametrize(("spatial", "features"), [(True, 2), (False, 6)])
def test_inferred_dimensions_are_filled_in(spatial: bool, features: int) -> None:
    vectors = [C.parameter((C.InferredDimension,), init=value) for value in (1, 0)]
    vectors += [C.constant(0, (C.InferredDimension,)) for _ in range(2)]
    C.batch_normalization(C.input_variable((2, 3)), *vectors, spatial, running_count=C.constant(0.0))
    assert [vector.shape for vector in vectors] == [(features,)] * 4


def test_the_size_of_parameters_is_checked() -> None:
    with pytest.raises(ValueError, match="one number for each channel"):
        Layer((2, 3), 3, spatial=True)


def test_a_missing_count_is_made_with_a_warning() -> None:
    zeros, ones = np.zeros(2, np.float32), np.ones(2, np.float32)
    with pytest.warns(UserWarning, match="running_count"):
        C.batch_normalization(C.input_variable(2), ones, zeros, C.constant(zeros), C.constant(ones), True)


def test_constant_samples_stay_finite() -> None:
    x = C.input_variable((2, 3), needs_gradient=True)
    data = np.ones((1, 2, 3), dtype=np.float32)
    f = C.mean_variance_normalization(x, epsilon=0)
    assert_array_equal(f.eval({x: data}), np.zeros_like(data))
    assert np.isfinite(f.grad({x: data})).all()


def test_single_samples_refuse_bad_attributes() -> None:
    with pytest.raises(ValueError, match="epsilon"):
        C.mean_variance_normalization(C.input_variable(3), epsilon=-1)
    with pytest.raises(ValueError, match="depth_radius"):
        C.local_response_normalization(C.input_variable(3), -1, 1, 1, 1)
