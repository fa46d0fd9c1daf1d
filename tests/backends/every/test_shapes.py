"""Ops that change shapes: axes and their errors, free dimensions, geometry of crops, and the batch axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import DeviceDescriptor

LEADING = C.Axis.new_leading_axis()
Build = Callable[[Any], Any]


@pytest.mark.parametrize(
    ("operand", "build", "shape"),
    [
        ((2, 3), lambda x: C.reshape(x, 1, 0, 0), (1, 2, 3)),
        ((2, 3), lambda x: C.reshape(x, (1, 1), LEADING, LEADING), (2, 3, 1, 1)),
        ((2, 3, 5), lambda x: C.reshape(x, -1, C.Axis(-3), -1), (6, 5)),
        ((-3, 2, 3), lambda x: C.reshape(x, -1, 0, 2), (-3, 3)),
        ((-3, 2, 3), lambda x: C.reshape(x, -1, 1, 3), (-3, 6)),
        ((-3, 2, 3), lambda x: C.reshape(x, 4, 0, 2), (4, 3)),
        ((-1, 2, 3), lambda x: C.reshape(x, (-1, 3)), (-1, 3)),
        ((1, -3, 1), C.squeeze, (-3,)),
        ((2, 3), lambda x: C.expand_dims(x, 1), (2, 3, 1)),
        ((2, 3), lambda x: C.expand_dims(x, -2), (2, 1, 3)),
        ((), lambda x: C.expand_dims(x, -1), (1,)),
        ((2, 3, 4), lambda x: C.flatten(x, -4), (1, 24)),
        ((2, 3, 4), lambda x: C.flatten(x, 3), (24, 1)),
        ((-3, 4), lambda x: C.slice(x, 0, 0, 2), (2, 4)),
        ((-3, 4), lambda x: C.slice(x, 0, 1, 0), (-3, 4)),
        ((-3, 4), lambda x: C.splice(x, C.input_variable((2, 4)), axis=0), (-3, 4)),
        ((-1, 4), lambda x: C.splice(x, C.input_variable((3, 2)), axis=1), (3, 6)),
        ((3, 4), lambda x: C.splice(x, x, axis=-4), (2, 1, 3, 4)),
        ((-3, 4), lambda x: C.pad(x, [(1, 1), (1, 2)]), (-3, 7)),
        ((8, -3, 3), lambda x: C.depth_to_space(x, 2), (2, -3, 6)),
        ((2, 3), C.unpack_batch, (-3, 2, 3)),
    ],
)
def test_shapes_are_inferred(operand: tuple[int, ...], build: Build, shape: tuple[int, ...]) -> None:
    assert build(C.input_variable(operand)).shape == shape


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda x: C.reshape(x, (5, 3)), ValueError, "12 elements"),
        (lambda x: C.reshape(x, (5, -1)), ValueError, "does not divide"),
        (lambda x: C.reshape(x, (-1, -1)), ValueError, "more than one"),
        (lambda x: C.reshape(x, 1, 1, 0), ValueError, "begin_axis"),
        (lambda x: C.reshape(x, 1, 3, 4), ValueError, "outside"),
        (lambda x: C.squeeze(x, 1), RuntimeError, "only an axis of size 1"),
        (lambda x: C.expand_dims(x, 2), ValueError, "outside"),
        (lambda x: C.expand_dims(x, -4), ValueError, "outside"),
        (lambda x: C.transpose(x, 1), TypeError, "swapaxes"),
        (lambda x: C.transpose(x, (1, 1)), ValueError, "twice"),
        (lambda x: C.transpose(x, (0,)), ValueError, "each of the 2 axes"),
        (lambda x: C.swapaxes(x, 0, 5), ValueError, "outside"),
        (lambda x: C.slice(x, 1, 1, 5), RuntimeError, "outside an axis of 4"),
        (lambda x: C.slice(x, 1, 2, 2), RuntimeError, "empty"),
        (lambda x: C.slice(x, 1, -5, 0), RuntimeError, "outside"),
        (lambda x: C.slice(x, 1, 0, 3, 0), RuntimeError, "stride"),
        (lambda x: C.slice(x, 2, 0, 1), ValueError, "axis 2"),
        (lambda x: C.slice(x, [0, 1], [0], [1]), ValueError, "as many of each"),
        (lambda x: C.slice(x, [0, 0], [0, 0], [1, 1]), ValueError, "an axis twice"),
        (lambda x: C.slice(x, C.Axis.default_batch_axis(), 0, 1), RuntimeError, "static axes"),
        (lambda x: C.splice(x, x, axis=2), ValueError, "axis 2"),
        (lambda x: C.splice(x, C.input_variable((3, 5)), axis=0), ValueError, "equal or 1"),
        (lambda x: C.splice(), ValueError, "at least one"),
        (lambda x: C.gather(x, np.float32([0])), RuntimeError, "no dynamic axes"),
        (lambda x: C.pad(x, [(1, 1)]), RuntimeError, "pair for each"),
        (lambda x: C.pad(x, [(1,), (1,)]), ValueError, "pattern"),
        (lambda x: C.pad(x, [(3, 0), (0, 0)], mode=C.ops.REFLECT_PAD), RuntimeError, "mirrors at most 2"),
        (lambda x: C.pad(x, [(4, 0), (0, 0)], mode=C.ops.SYMMETRIC_PAD), RuntimeError, "mirrors at most 3"),
        (lambda x: C.pad(x, [(0, 0), (0, 0)], mode=3), ValueError, "mode"),
        (lambda x: C.one_hot(x, 0), ValueError, "positive"),
        (lambda x: C.depth_to_space(x, 2), RuntimeError, "image"),
        (lambda x: C.depth_to_space(C.reshape(x, (3, 2, 2)), 2), RuntimeError, "multiple of 4"),
        (lambda x: C.space_to_depth(C.reshape(x, (1, 3, 4)), 2), RuntimeError, "multiples"),
        (lambda x: C.space_to_depth(x, 1.5), ValueError, "whole number"),
        (lambda x: C.crop_manual(x, np.zeros((2, 2), np.float32), 3, 0), RuntimeError, "do not lie within 4"),
        (lambda x: C.crop_manual(x, np.zeros(2, np.float32), 0, 0), RuntimeError, "same number of axes"),
        (lambda x: C.crop_manual(x, x, -1, 0), ValueError, "negative"),
        (lambda x: C.crop_automatic(x, C.input_variable((3, 4))), RuntimeError, "common ancestor"),
        (C.to_batch, RuntimeError, "no dynamic axes"),
        (lambda x: C.to_batch(C.constant(1)), RuntimeError, "scalar"),
        (lambda x: C.unpack_batch(C.constant([1, 2])), RuntimeError, "batch axis"),
    ],
)
def test_errors(build: Build, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build(C.input_variable((3, 4)))


def test_reshape_checks_a_free_dimension_when_data_arrives(device: DeviceDescriptor) -> None:
    x = C.input_variable((C.FreeDimension, 2))
    reshaped = C.reshape(x, 4)
    np.testing.assert_array_equal(reshaped.eval({x: np.ones((3, 2, 2), np.float32)}, device=device), np.ones((3, 4)))
    with pytest.raises(ValueError, match="6 elements"):
        reshaped.eval({x: np.ones((3, 3, 2), np.float32)}, device=device)


def test_gradients_that_come_through_several_views_add_up(device: DeviceDescriptor) -> None:
    x = C.input_variable((2, 3), needs_gradient=True)
    twice = C.reshape(x, 6) + C.reshape(x, (1, 6))
    data = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    np.testing.assert_array_equal(twice.grad({x: data}, wrt=[x], device=device), np.full((1, 2, 3), 2))


def test_splice_repeats_operands_without_rows(device: DeviceDescriptor) -> None:
    x, p = C.input_variable((2, 1), needs_gradient=True), C.parameter(init=np.float32([7, 8]))
    joined = C.splice(p, x)
    data = np.arange(6, dtype=np.float32).reshape(3, 2, 1)
    expected = np.concatenate((np.broadcast_to(np.float32([7, 8]), (3, 2, 2)), data), axis=2)
    np.testing.assert_array_equal(joined.eval({x: data}, device=device), expected)
    gradients = joined.grad({x: data}, wrt=[x, p], device=device)
    np.testing.assert_array_equal(gradients[p], [6, 6])
    np.testing.assert_array_equal(gradients[x], np.ones_like(data))


def test_splice_of_one_operand_is_that_operand() -> None:
    x = C.input_variable(2)
    assert C.splice(x).outputs == (x,)


def test_gather_adds_up_the_gradient_of_repeated_elements(device: DeviceDescriptor) -> None:
    table, i = C.parameter(init=np.zeros((4, 2), np.float32)), C.input_variable(3)
    grad = C.gather(table, i).grad({i: np.float32([[0, 3, 3], [3, 1, 0]])}, wrt=[table], device=device)
    np.testing.assert_array_equal(grad, np.float32([2, 1, 0, 3])[:, None] * np.ones((1, 2)))


@pytest.mark.parametrize("index", [-1, 4])
def test_gather_refuses_an_index_outside(index: int, device: DeviceDescriptor) -> None:
    with pytest.raises(ValueError, match="outside 0 … 3"):
        C.gather(C.parameter((4, 2)), np.float32([index])).eval(device=device)


@pytest.mark.parametrize(
    ("kernel", "stride", "padded", "upsampling", "offset"),
    [
        (3, 2, True, 4, 1),
        (3, 2, True, 5, 2),
        (3, 2, True, 6, 2),
        (3, 2, True, 7, 3),
        (3, 2, False, 8, 2),
        (2, 2, False, 7, 3),
        (4, 2, True, 7, 3),
    ],
)
def test_crop_automatic_puts_the_images_over_one_another(kernel: int, stride: int, padded: bool, upsampling: int, offset: int) -> None:
    x = C.input_variable((1, 12, 12))
    smaller = C.convolution(C.parameter((1, 1, kernel, kernel)), x, strides=stride, auto_padding=[False, padded, padded])
    larger = C.convolution_transpose(C.parameter((1, 1, upsampling, upsampling)), smaller, strides=stride, auto_padding=[False])
    assert C.crop_automatic(larger, x).root_function.attributes["offset"] == [offset, offset]
    assert C.crop_automatic(C.relu(larger) + 1, x).root_function.attributes["offset"] == [offset, offset]


def test_crop_automatic_refuses_pixels_of_different_size() -> None:
    x = C.input_variable((1, 12, 12))
    smaller = C.convolution(C.parameter((1, 1, 3, 3)), x, strides=2, auto_padding=[False, True, True])
    with pytest.raises(RuntimeError, match="spans 2 pixels"):
        C.crop_automatic(smaller, x)


def test_the_batch_axis_becomes_static_and_back(device: DeviceDescriptor) -> None:
    x = C.input_variable((2, 3), needs_gradient=True)
    turned = C.to_batch(C.swapaxes(C.unpack_batch(x), 1, 2))
    assert turned.shape == (3, 2)
    assert turned.dynamic_axes == x.dynamic_axes
    data = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    np.testing.assert_array_equal((turned * 2).eval({x: data}, device=device), 2 * data.swapaxes(1, 2))
    np.testing.assert_array_equal((turned * 2).grad({x: data}, device=device), np.full_like(data, 2))


def test_a_parameter_becomes_a_batch(device: DeviceDescriptor) -> None:
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    x, p = C.input_variable(2), C.parameter(init=values)
    product = x * C.to_batch(p)
    data = np.ones((4, 2), np.float32)
    np.testing.assert_array_equal(product.eval({x: data}, device=device), values)
    np.testing.assert_array_equal(product.grad({x: data}, wrt=[p], device=device), data)


def test_columns_of_any_operators_are_put_side_by_side(device: DeviceDescriptor) -> None:
    """Of operators with one operand, with two, of inputs and parameters, as heads of attention are."""
    x = C.input_variable((2, 3))
    w = C.parameter((2, 3), init=0.5)
    y = C.splice(C.sigmoid(x), x * w, x, w, C.times(C.softmax(C.times(x, np.ones((3, 2), np.float32)), axis=-1), w), axis=-1)
    data = np.random.default_rng(1).standard_normal((4, 2, 3)).astype(np.float32)
    found = y.eval({x: data}, device=device)
    assert found.shape == (4, 2, 15)
    np.testing.assert_allclose(found[..., :3], 1 / (1 + np.exp(-data)), rtol=1e-5)
    np.testing.assert_array_equal(found[..., 6:9], data)
    np.testing.assert_allclose(found[..., 12:], 0.5, rtol=1e-5)
