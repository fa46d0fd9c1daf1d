"""Convolution, pooling and what else is done with images, as ONNX, in every geometry."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from exported import Exported, check_function

import cntk as C

RNG = np.random.default_rng(3)
FREE = C.FreeDimension


def random(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


GEOMETRIES = [
    case
    for case in product(((9,), (8, 7), (6, 7, 5)), (1, 2, 3), (1, 2, 3), (1, 2), (1, 2), (False, True))
    if (case[1] - 1) * case[3] < min(case[0])
]


@pytest.mark.parametrize(("dims", "kernel", "stride", "dilation", "groups", "padded"), GEOMETRIES)
def test_convolution(dims: tuple[int, ...], kernel: int, stride: int, dilation: int, groups: int, padded: bool) -> None:
    rank = len(dims)
    filters = C.parameter(init=random(4, 6 // groups, *[kernel] * rank))
    settings = {"strides": stride, "dilation": (1, *[dilation] * rank), "auto_padding": (False, *[padded] * rank), "groups": groups}
    images = random(3, 6, *dims)
    check_function(C.convolution(filters, C.input_variable((6, *dims)), **settings), images)
    check_function(C.convolution(filters, C.input_variable((6, *[FREE] * rank)), **settings), images)


@pytest.mark.parametrize(("stride", "kernel"), [(6, 1), (5, 2), (4, 1)])
def test_strides_that_leave_out_first_elements(stride: int, kernel: int) -> None:
    x = C.input_variable((1, 6))
    check_function(C.convolution(C.constant(random(2, 1, kernel)), x, strides=stride, auto_padding=[False, True]), random(2, 1, 6))
    signal, filters = C.input_variable((2, 2)), C.constant(random(2, 3, kernel))
    made = C.convolution_transpose(filters, signal, strides=stride, auto_padding=[False, True], output_shape=(3, stride + 1))
    check_function(made, random(2, 2, 2))


@pytest.mark.parametrize("maps", [(5, 3, 3, 2), (5, 2, 3, 2), (3, 3, 2), (2, 1, 2, 2)])
@pytest.mark.parametrize("padding", [(True,), (False,), (True, False), (False, True, True)])
@pytest.mark.parametrize("strides", [(1,), (2, 3)])
def test_filters_may_slide_over_the_channels(maps: Any, padding: Any, strides: Any) -> None:
    x = C.input_variable((3, 8, 9))
    check_function(C.convolution(C.parameter(init=random(*maps)), x, auto_padding=padding, strides=strides), random(3, 3, 8, 9))


@pytest.mark.parametrize("filters", [(3, 2), (4, 3, 2)])
@pytest.mark.parametrize("padding", [(True,), (False,), (True, False)])
def test_operands_without_channels(filters: Any, padding: Any) -> None:
    made = C.convolution(C.parameter(init=random(*filters)), C.input_variable((8, 7)), auto_padding=padding, strides=2, reduction_rank=0)
    check_function(made, random(3, 8, 7))


@pytest.mark.parametrize(("dims", "kernel", "stride"), [(d, k, s) for d in ((9,), (4, 5), (3, 2, 4)) for k in (1, 2, 3) for s in (1, 2, 3)])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("dilation", [1, 2])
def test_transposed_convolution(dims: Any, kernel: int, stride: int, padded: bool, dilation: int) -> None:
    rank = len(dims)
    filters, images = C.parameter(init=random(6, 4, *[kernel] * rank)), random(3, 6, *dims)
    settings = {"strides": stride, "dilation": (1, *[dilation] * rank), "auto_padding": (False, *[padded] * rank)}
    span = (kernel - 1) * dilation + 1
    smallest = [(dim - 1) * stride + (1 if padded else span) for dim in dims]
    if not padded or span <= min(smallest):
        check_function(C.convolution_transpose(filters, C.input_variable((6, *dims)), **settings), images)
        check_function(C.convolution_transpose(filters, C.input_variable((6, *[FREE] * rank)), **settings), images)
    largest = [size + stride - 1 for size in smallest]
    if span <= min(largest):
        made = C.convolution_transpose(filters, C.input_variable((6, *dims)), output_shape=(4, *largest), **settings)
        check_function(made, images)


@pytest.mark.parametrize("kind", [C.MAX_POOLING, C.AVG_POOLING])
@pytest.mark.parametrize(
    "options", [{}, {"auto_padding": [False, True, True]}, {"ceil_out_dim": True}, {"auto_padding": [False, False, True]}]
)
@pytest.mark.parametrize("include_pad", [False, True])
@pytest.mark.parametrize(("window", "strides"), [((2, 2), 2), ((3, 2), (1, 3)), ((3, 3), 2), ((2, 4), 1), ((1, 2), (3, 5))])
def test_pooling(kind: int, options: dict[str, Any], include_pad: bool, window: Any, strides: Any) -> None:
    settings = {"strides": strides, "include_pad": include_pad, **options}
    for height, width in ((6, 7), (7, 8)):
        made = C.pooling(C.input_variable((2, height, width)), kind, window, **settings)
        check_function(made, random(3, 2, height, width))
    if not options.get("ceil_out_dim"):
        made = C.pooling(C.input_variable((2, FREE, FREE)), kind, window, **settings)
        check_function(made, random(3, 2, 7, 8))


@pytest.mark.parametrize("shape", [(6,), (2, 6), (2, 3, 6), (2, 3, 4, 6), (2, 2, 3, 4, 6)])
@pytest.mark.parametrize("window", [(2,), (2, 2), (2, 2, 2)])
def test_pooling_has_any_number_of_axes_in_front(shape: Any, window: Any) -> None:
    if len(window) <= len(shape):
        for kind in (C.MAX_POOLING, C.AVG_POOLING):
            check_function(C.pooling(C.input_variable(shape), kind, window), random(3, *shape))


@pytest.mark.parametrize(("window", "strides", "padding"), [((2, 2), 2, False), ((3, 2), (3, 4), True), ((2, 2), 5, True)])
def test_unpooling(window: Any, strides: Any, padding: bool) -> None:
    x = C.input_variable((2, 8, 11))
    settings = {"strides": strides, "auto_padding": [False, padding, padding]}
    pooled = C.pooling(x, C.MAX_POOLING, window, **settings)
    check_function(C.unpooling(2 * pooled, x, C.MAX_UNPOOLING, window, **settings), random(3, 2, 8, 11))


@pytest.mark.parametrize("grid", [(1, 1), (2, 3), (7, 7)])
@pytest.mark.parametrize("scale", [1.0, 0.5, 1 / 16])
def test_pooling_of_regions(grid: Any, scale: float) -> None:
    x, regions = C.input_variable((2, 13, 17)), C.input_variable((20, 4))
    corners = RNG.uniform(-3, 20, (3, 20, 4)).astype(np.float32) / np.float32(scale)
    corners[..., 2:] = corners[..., :2] + RNG.uniform(-1, 12, (3, 20, 2)).astype(np.float32) / np.float32(scale)
    corners[0, :5] = np.round(corners[0, :5] * 2) / 2
    check_function(C.roipooling(x, regions, C.MAX_POOLING, grid, scale), random(3, 2, 13, 17), corners)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_padding_of_free_dimensions(mode: int) -> None:
    check_function(C.pad(C.input_variable((FREE, 4)), [(2, 1), (0, 3)], mode), random(3, 5, 4))


def test_images_may_have_any_size() -> None:
    x = C.input_variable((4, FREE, FREE), name="x")
    made = C.depth_to_space(C.space_to_depth(x, 2), 4)
    assert Exported(made).inputs == {"x": ["batch", 4, "x_dim1", "x_dim2"]}
    check_function(made, random(3, 4, 6, 8))
    other = C.input_variable((4, FREE, FREE))
    check_function(C.crop_manual(x, other, 1, 2), random(2, 4, 6, 8), random(2, 4, 3, 5))


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 3, 2), (4, 3, 2, 2), (4, FREE), (4, FREE, FREE), (4, FREE, FREE, 2)])
def test_normalisation_of_any_number_of_axes(shape: Any) -> None:
    x = C.input_variable(shape)
    images = random(3, *(5 if size == FREE else size for size in shape))
    check_function(C.local_response_normalization(x, 1, 1.0, 0.5, 0.75), images)
    check_function(C.mean_variance_normalization(x), images)
