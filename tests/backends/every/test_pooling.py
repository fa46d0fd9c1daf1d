"""Pooling and unpooling: geometry, errors, and values and gradients against PyTorch."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import DeviceDescriptor
from cntk.testing import assert_close
from cntk.testing.tolerances import SINGLE

RNG = np.random.default_rng(7)


def pooled(images: Any, device: DeviceDescriptor, kind: int, window: Any, *arguments: Any, **more: Any) -> tuple[Any, Any, Any]:
    """Value of pooling, random weights, and the gradient of the sum over the result times the weights."""
    x = C.input_variable(images.shape[1:], images.dtype, needs_gradient=True)
    y = C.pooling(x, kind, window, *arguments, **more)
    weights = RNG.integers(-5, 5, (len(images), *y.shape)).astype(images.dtype)
    weighted = C.input_variable(y.shape, images.dtype)
    gradient = C.element_times(y, weighted).grad({x: images, weighted: weights}, wrt=[x], device=device)
    return y.eval({x: images}, device=device), weights, gradient


CASES = [
    pytest.param(*case, id="-".join(map(str, case)))
    for case in product((C.MAX_POOLING, C.AVG_POOLING), ((9,), (8, 7), (5, 6, 7)), (1, 2, 3), (1, 2), (False, True), (False, True))
    if case[2] % 2 or not case[4]
]


@pytest.mark.parametrize(("kind", "dims", "window", "stride", "padded", "include_pad"), CASES)
def test_pooling_agrees_with_torch(
    kind: int, dims: tuple[int, ...], window: int, stride: int, padded: bool, include_pad: bool, device: DeviceDescriptor
) -> None:
    functional = pytest.importorskip("torch").nn.functional
    import torch

    rank = len(dims)
    images = RNG.integers(-3, 3, (3, 2, *dims)).astype(np.float64)
    x = torch.tensor(images, requires_grad=True)
    pad = window // 2 if padded else 0
    if kind == C.MAX_POOLING:
        expected = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[rank - 1](x, window, stride, pad)
    else:
        pool = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[rank - 1]
        expected = pool(x, window, stride, pad, count_include_pad=include_pad)
    value, weights, gradient = pooled(images, device, kind, (window,) * rank, stride, [padded], include_pad=include_pad)
    expected.backward(torch.tensor(weights))
    assert_close(value, expected.detach())
    assert_close(gradient, x.grad)


def test_the_gradient_goes_to_the_first_of_equal_maxima(device: DeviceDescriptor) -> None:
    image = np.array([[[[1, 1, 1], [1, 1, 1], [0, 2, 2]]]], np.float32)
    _, weights, gradient = pooled(image, device, C.MAX_POOLING, (2, 2), 1)
    places = np.zeros((1, 1, 3, 3))
    for row, column, weight in ((0, 0, weights[0, 0, 0, 0]), (0, 1, weights[0, 0, 0, 1]), (2, 1, weights[0, 0, 1].sum())):
        places[0, 0, row, column] += weight
    np.testing.assert_array_equal(gradient, places)


def test_a_window_of_more_than_256_elements(device: DeviceDescriptor) -> None:
    image = RNG.permutation(40 * 40).reshape(1, 1, 40, 40).astype(np.float64)
    value, weights, gradient = pooled(image, device, C.MAX_POOLING, (20, 20), 20)
    np.testing.assert_array_equal(value[0, 0], image.reshape(2, 20, 2, 20).max(axis=(1, 3)))
    for maximum, weight in zip(value.ravel(), weights.ravel(), strict=True):
        assert gradient[image == maximum] == weight
    assert np.count_nonzero(gradient) == np.count_nonzero(weights)


def test_a_window_of_unknown_size_covers_all_axes_but_the_first(device: DeviceDescriptor) -> None:
    images = RNG.standard_normal((2, 3, 4, 5))
    for kind, reduce in ((C.MAX_POOLING, np.max), (C.AVG_POOLING, np.mean)):
        value, _, _ = pooled(images, device, kind, (-2,))
        np.testing.assert_allclose(value, reduce(images, axis=(2, 3), keepdims=True))


def test_windows_that_reach_over_the_end(device: DeviceDescriptor) -> None:
    image = np.arange(1, 65, dtype=np.float32).reshape(1, 1, 8, 8)
    value, _, _ = pooled(image, device, C.MAX_POOLING, (3, 3), 2, ceil_out_dim=True)
    np.testing.assert_array_equal(value[0, 0, 0], [19, 21, 23, 24])
    value, _, _ = pooled(image, device, C.AVG_POOLING, (3, 3), 2, ceil_out_dim=True)
    np.testing.assert_array_equal(value[0, 0, 0], [10, 12, 14, 15.5])
    value, _, _ = pooled(image, device, C.AVG_POOLING, (3, 3), 2, ceil_out_dim=True, include_pad=True)
    assert_close(value[0, 0, 0], [10, 12, 14, 31 / 3], tolerance=SINGLE)


def test_windows_of_padding_alone_have_no_maximum_and_no_average(device: DeviceDescriptor) -> None:
    image = np.ones((1, 1, 8, 8), np.float32)
    value, _, _ = pooled(image, device, C.MAX_POOLING, (1, 1), 3, ceil_out_dim=True)
    np.testing.assert_array_equal(value[0, 0, 0], [1, 1, 1, -np.inf])
    value, _, _ = pooled(image, device, C.AVG_POOLING, (1, 1), 3, ceil_out_dim=True)
    np.testing.assert_array_equal(value[0, 0, 0], [1, 1, 1, np.nan])


def test_padding_centres_windows_when_strides_are_large(device: DeviceDescriptor) -> None:
    image = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6)
    value, _, _ = pooled(image, device, C.MAX_POOLING, (5, 5), 3, [True])
    np.testing.assert_array_equal(value, [[[[21, 23], [33, 35]]]])
    value, weights, gradient = pooled(image[:, :, 0], device, C.AVG_POOLING, 1, 6, [True])
    np.testing.assert_array_equal(value, [[[2]]])
    np.testing.assert_array_equal(gradient, [[[0, 0, weights.item(), 0, 0, 0]]])


def test_unpooling_puts_the_last_value_where_windows_share_a_maximum(device: DeviceDescriptor) -> None:
    places, values = C.input_variable((1, 5, 5)), C.input_variable((1, 2, 2), needs_gradient=True)
    image = np.zeros((1, 1, 5, 5), np.float32)
    image[..., 2, 2] = 9
    y = C.unpooling(values, places, C.MAX_UNPOOLING, (3, 3), strides=2)
    feed = {places: image, values: np.array([[[[1, 2], [3, 4]]]], np.float32)}
    np.testing.assert_array_equal(y.eval(feed, device=device), np.where(image == 9, 4, 0))
    np.testing.assert_array_equal(y.grad(feed, wrt=[values], device=device), np.ones((1, 1, 2, 2)))


def test_pooling_what_was_unpooled_gives_it_back(device: DeviceDescriptor) -> None:
    x = C.input_variable((2, 6, 7))
    y = C.pooling(x, C.MAX_POOLING, (2, 3), strides=2, auto_padding=[False, True, True])
    z = C.unpooling(y, x, C.MAX_UNPOOLING, (2, 3), strides=2, auto_padding=[False, True, True])
    again = C.pooling(z, C.MAX_POOLING, (2, 3), strides=2, auto_padding=[False, True, True])
    feed = {x: RNG.uniform(1, 2, (3, 2, 6, 7)).astype(np.float32)}
    np.testing.assert_array_equal(again.eval(feed, device=device), y.eval(feed, device=device))


def test_regions_outside_the_feature_map_give_zero(device: DeviceDescriptor) -> None:
    x, rois = C.input_variable((1, 8, 9), needs_gradient=True), C.input_variable((3, 4))
    y = C.roipooling(x, rois, C.MAX_POOLING, (2, 3), 1.0)
    regions = np.array([[[-2, -2, 2, 2], [7, 6, 12, 12], [20, 20, 30, 30]]], np.float32)
    feed = {x: np.arange(72, dtype=np.float32).reshape(1, 1, 8, 9), rois: regions}
    value = y.eval(feed, device=device)
    np.testing.assert_array_equal(value[0, :, 0], [[[0, 1, 2], [0, 19, 20]], [[71, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]])
    gradient = y.grad(feed, wrt=[x], device=device)
    assert gradient.sum() == np.count_nonzero(value)


def test_regions_of_each_sample_are_its_own(device: DeviceDescriptor) -> None:
    x, rois = C.input_variable((2, 4, 4)), C.input_variable((1, 4))
    images = RNG.standard_normal((2, 2, 4, 4)).astype(np.float32)
    regions = np.array([[[0, 0, 1, 1]], [[2, 2, 3, 3]]], np.float32)
    value = C.roipooling(x, rois, C.MAX_POOLING, (1, 1), 1.0).eval({x: images, rois: regions}, device=device)
    np.testing.assert_array_equal(value[0, 0, :, 0, 0], images[0, :, :2, :2].max(axis=(1, 2)))
    np.testing.assert_array_equal(value[1, 0, :, 0, 0], images[1, :, 2:, 2:].max(axis=(1, 2)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: C.pooling(x, C.MAX_POOLING, (9, 3)), "does not fit an axis of 8"),
        (lambda x: C.pooling(x, C.MAX_POOLING, (9, 3), auto_padding=[True]), "does not fit an axis of 8"),
        (lambda x: C.pooling(x, C.MAX_POOLING, (1, 1, 3, 3)), "covers the trailing axes"),
        (lambda x: C.pooling(x, C.MAX_POOLING, (3, 3), strides=0), "must be positive"),
        (lambda x: C.pooling(x, 7, (3, 3)), "pooling_type=7"),
        (lambda x: C.unpooling(C.input_variable((3, 4, 4)), x, C.MAX_UNPOOLING, (3, 3), 2), "not the values' shape"),
        (lambda x: C.unpooling(C.constant(np.ones((3, 3, 4), np.float32)), x, C.MAX_UNPOOLING, (3, 3), 2), "the same samples"),
        (lambda x: C.unpooling(C.input_variable((3, 3, 4)), x, C.AVG_POOLING, (3, 3), 2), "must be MAX_UNPOOLING"),
        (lambda x: C.roipooling(x, C.input_variable((5, 3)), C.MAX_POOLING, (2, 3), 0.5), "regions"),
        (lambda x: C.roipooling(x, C.input_variable((5, 4)), C.AVG_POOLING, (2, 3), 0.5), "must be MAX_POOLING"),
    ],
)
def test_what_does_not_go_together_is_an_error(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(C.input_variable((3, 8, 9)))


def test_shorter_lists_are_filled_up_in_front() -> None:
    x = C.input_variable((3, 8, 9))
    assert C.pooling(x, C.MAX_POOLING, (3, 3), 2).shape == (3, 3, 4)
    assert C.pooling(x, C.MAX_POOLING, 3, 2).shape == (3, 8, 4)
    assert C.pooling(x, C.MAX_POOLING, (3, 3), (2, 2, 2)).shape == (2, 3, 4)
    assert C.pooling(x, C.MAX_POOLING, (3, 3), 2, auto_padding=[True, False]).shape == (3, 4, 4)
    assert C.pooling(x, C.MAX_POOLING, (3, 3), 2, auto_padding=[True], ceil_out_dim=True).shape == (3, 5, 5)
    assert C.pooling(C.input_variable((3, C.FreeDimension, 9)), C.MAX_POOLING, (3, 3), 2).shape == (3, C.FreeDimension, 4)
