"""Convolution and its transpose: geometry, errors, and values and gradients against PyTorch."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import DeviceDescriptor
from cntk.testing import assert_close

RNG = np.random.default_rng(7)


def random(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def compute(function: Any, filters: Any, images: Any, weights: Any, device: DeviceDescriptor) -> tuple[Any, Any, Any]:
    """Value, and gradients of filters and images, of the sum over the result times *weights*."""
    map_, x = C.parameter(init=filters, dtype=np.float64), C.input_variable(images.shape[1:], np.float64, needs_gradient=True)
    result = function(map_, x)
    weighted = C.input_variable(result.shape, np.float64)
    gradients = C.element_times(result, weighted).grad({x: images, weighted: weights}, wrt=[map_, x], device=device)
    return result.eval({x: images}, device=device), gradients[map_], gradients[x]


def padding_of(dim: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Automatic padding before and behind an axis; negative where elements are left out."""
    out = -(-dim // stride)
    span = (kernel - 1) * dilation + 1
    before = (span - 1) // 2 - (dim - 1 - (out - 1) * stride) // 2
    return before, (out - 1) * stride + span - before - dim


CASES = [
    pytest.param(*case, id="-".join(map(str, case)))
    for case in product(((9,), (8, 7), (6, 7, 5)), (1, 2, 3), (1, 2, 3), (1, 2), (1, 2), (False, True))
    if (case[1] - 1) * case[3] < min(case[0])
]


@pytest.mark.parametrize(("dims", "kernel", "stride", "dilation", "groups", "padded"), CASES)
def test_convolution_agrees_with_torch(
    dims: tuple[int, ...], kernel: int, stride: int, dilation: int, groups: int, padded: bool, device: DeviceDescriptor
) -> None:
    torch = pytest.importorskip("torch")
    rank = len(dims)
    filters, images = random(4, 6 // groups, *[kernel] * rank), random(3, 6, *dims)
    map_, x = torch.tensor(filters, requires_grad=True), torch.tensor(images, requires_grad=True)
    pads = [pad for dim in reversed(dims) for pad in padding_of(dim, kernel, stride, dilation)] if padded else [0, 0]
    torch_convolution = (torch.conv1d, torch.conv2d, torch.conv3d)[rank - 1]
    expected = torch_convolution(torch.nn.functional.pad(x, pads), map_, stride=stride, dilation=dilation, groups=groups)
    weights = random(*expected.shape)
    expected.backward(torch.tensor(weights))

    def function(map_: Any, x: Any) -> Any:
        flags = (False, *[padded] * rank)
        return C.convolution(map_, x, strides=stride, dilation=(1, *[dilation] * rank), auto_padding=flags, groups=groups)

    for found, wanted in zip(compute(function, filters, images, weights, device), (expected.detach(), map_.grad, x.grad), strict=True):
        assert_close(found, wanted)


@pytest.mark.parametrize(("dims", "kernel", "stride"), [(d, k, s) for d in ((9,), (4, 5), (3, 2, 4)) for k in (1, 2, 3) for s in (1, 2, 3)])
def test_transposed_convolution_agrees_with_torch(dims: tuple[int, ...], kernel: int, stride: int, device: DeviceDescriptor) -> None:
    torch = pytest.importorskip("torch")
    rank = len(dims)
    filters, images = random(6, 4, *[kernel] * rank), random(3, 6, *dims)
    map_, x = torch.tensor(filters, requires_grad=True), torch.tensor(images, requires_grad=True)
    expected = (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)[rank - 1](x, map_, stride=stride)
    weights = random(*expected.shape)
    expected.backward(torch.tensor(weights))

    def function(map_: Any, x: Any) -> Any:
        return C.convolution_transpose(map_, x, strides=stride, auto_padding=[False])

    for found, wanted in zip(compute(function, filters, images, weights, device), (expected.detach(), map_.grad, x.grad), strict=True):
        assert_close(found, wanted)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    from cntk.plugins.ops import correlation

    monkeypatch.setattr(correlation, "BLOCK_BYTES", 2000)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("stride", [1, 2])
def test_blocks_of_lines_give_what_whole_images_give(stride: int, device: DeviceDescriptor) -> None:
    def function(map_: Any, x: Any) -> Any:
        return C.convolution(map_, x, strides=stride, auto_padding=(False, True, True))

    filters, images = random(3, 2, 3, 3), random(2, 2, 9, 8)
    weights = random(*function(C.constant(filters), C.input_variable((2, 9, 8), np.float64)).eval(images).shape)
    in_lines = compute(function, filters, images, weights, device)
    one_by_one = [compute(function, filters, images[i : i + 1], weights[i : i + 1], device) for i in range(2)]
    assert_close(in_lines[0], np.concatenate([value for value, _, _ in one_by_one]))
    assert_close(in_lines[1], sum(gradient for _, gradient, _ in one_by_one))
    assert_close(in_lines[2], np.concatenate([gradient for _, _, gradient in one_by_one]))


def shape_of(map_shape: tuple[int, ...], operand_shape: tuple[int, ...], **arguments: Any) -> tuple[int, ...]:
    return C.convolution(C.parameter(map_shape), C.input_variable(operand_shape), **arguments).shape


def test_default_padding_slides_filters_over_the_channels() -> None:
    assert shape_of((5, 3, 3, 2), (3, 8, 9)) == (15, 8, 9)
    assert shape_of((5, 3, 3, 2), (3, 8, 9), auto_padding=[False, True, True]) == (5, 8, 9)
    assert shape_of((5, 2, 3, 2), (3, 8, 9), auto_padding=[False]) == (10, 6, 8)


def test_shorter_lists_are_filled_up_in_front() -> None:
    assert shape_of((5, 3, 3, 2), (3, 8, 9), strides=(2, 3), auto_padding=[False, True, True]) == (5, 4, 3)
    assert shape_of((5, 3, 3, 2), (3, 8, 9), auto_padding=[True, False]) == (15, 8, 8)


@pytest.mark.parametrize(
    ("padding", "places"),
    [([True], (8, 8)), ([True, True], (8, 8)), ([True, False], (8, 6)), ([False, True, True], (8, 8)), ([True, True, True], (8, 8))],
)
@pytest.mark.parametrize("sequential", [False, True])
def test_filters_whose_channels_are_inferred_span_them(padding: list[bool], places: tuple[int, ...], sequential: bool) -> None:
    def build(operand: Any) -> Any:
        filters = C.parameter((5, C.InferredDimension, 3, 3), init=C.glorot_uniform())
        return C.convolution(filters, operand, auto_padding=padding, sequential=sequential)

    x = C.sequence.input_variable((3, 8)) if sequential else C.input_variable((3, 8, 8))
    expected = (5, *places[sequential:])
    assert build(x).shape == expected
    layer = build(C.placeholder())
    assert layer(x).shape == expected
    assert layer(x).shape == expected  # the channels are known now
    assert sequential or layer(x).root_function.attributes["autoPadding"] == [False, *(padding[:1] + padding)[-2:]]
    late = C.placeholder()
    assert build(late).replace_placeholders({late: x}).shape == build(x).clone("clone").shape == expected


@pytest.mark.parametrize("strides", [(1, 2), (1, 1, 2), (3, 1, 2)])
@pytest.mark.parametrize("padding", [[True, False], [False, True, False], [True, True, False]])
def test_a_value_for_channels_that_are_not_there_makes_no_difference(strides: tuple[int, ...], padding: list[bool]) -> None:
    f = C.convolution(C.parameter((4, 3, 2)), C.input_variable((8, 8)), strides=strides, auto_padding=padding, reduction_rank=0)
    assert f.shape == (4, 8, 4)


def test_filters_without_an_axis_of_maps_are_one_filter() -> None:
    assert shape_of((3, 3, 2), (3, 8, 9), auto_padding=[False]) == (1, 6, 8)
    assert shape_of((3, 3), (8, 9), reduction_rank=0, auto_padding=[False]) == (1, 6, 7)
    assert shape_of((4, 3, 3), (8, 9), reduction_rank=0, auto_padding=[False]) == (4, 6, 7)


def test_channels_of_filters_are_inferred() -> None:
    map_ = C.parameter((4, -1, 3, 3))
    C.convolution(map_, C.input_variable((6, 8, 8)), auto_padding=[False])
    assert map_.shape == (4, 6, 3, 3)
    map_ = C.parameter((-1, 4, 3, 3))
    C.convolution_transpose(map_, C.input_variable((6, 8, 8)), auto_padding=[False])
    assert map_.shape == (6, 4, 3, 3)


def test_free_dimensions_stay_free_until_there_is_data(device: DeviceDescriptor) -> None:
    x = C.input_variable((1, C.FreeDimension, 4))
    y = C.convolution(C.constant(np.ones((1, 1, 2, 2), np.float32)), x, auto_padding=[False])
    assert y.shape == (1, C.FreeDimension, 3)
    for height in (2, 5):
        value = y.eval({x: np.ones((1, 1, height, 4), np.float32)}, device=device)
        np.testing.assert_array_equal(value, np.full((1, 1, height - 1, 3), 4.0))


def test_strides_that_leave_elements_at_both_ends(device: DeviceDescriptor) -> None:
    x = C.input_variable((1, 6))
    identity, signal = C.constant(np.ones((1, 1, 1), np.float32)), np.arange(6, dtype=np.float32).reshape(1, 1, 6)
    for stride, expected in ((4, [0, 4]), (6, [2])):
        y = C.convolution(identity, x, strides=stride, auto_padding=[False, True])
        np.testing.assert_array_equal(y.eval({x: signal}, device=device), [[expected]])


@pytest.mark.parametrize(
    ("map_shape", "operand_shape", "arguments", "message"),
    [
        ((5, 4, 3, 2), (3, 8, 9), {}, "window of 4 elements does not fit an axis of 3"),
        ((5, 3, 9, 2), (3, 8, 9), {"auto_padding": [False, True, True]}, "does not fit an axis of 8"),
        ((3, 2), (3, 8, 9), {}, "fewer axes"),
        ((3, 2), (3,), {}, "no axis to slide"),
        ((5, 3, 3, 2), (3, 8, 9), {"strides": 0}, "must be positive"),
        ((5, 3, 3, 2), (3, 8, 9), {"strides": (1, 1, 1, 1)}, "4 values for 3 axes"),
        ((6, 3, 3, 2), (3, 8, 9), {"groups": 3}, "groups of filters of 3 channels need 9 channels, but the operand has 3"),
        ((7, 1, 3, 2), (3, 8, 9), {"groups": 3}, "must be positive and divide"),
        ((5, 3, 3, 2), (3, 8, 9), {"reduction_rank": 2}, "reduction_rank=2"),
        ((5, 3, 3, 2), (3, 8, 9), {"sharing": [False]}, "differ from place to place"),
        ((5, 3, 3, 2), (3, 8, 9), {"sequential": True}, "sequential"),
    ],
)
def test_what_does_not_go_together_is_an_error(map_shape: Any, operand_shape: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shape_of(map_shape, operand_shape, **arguments)


@pytest.mark.parametrize("output_shape", [(5, 16, 18), (5, 20, 18), (4, 17, 18), (17, 18)])
def test_an_output_shape_that_convolution_does_not_bring_back_is_an_error(output_shape: tuple[int, ...]) -> None:
    map_, x = C.parameter((3, 5, 3, 2)), C.input_variable((3, 8, 9))
    assert C.convolution_transpose(map_, x, strides=2, auto_padding=[False], output_shape=(5, 17, 19)).shape == (5, 17, 19)
    with pytest.raises(ValueError, match=r"output_shape|convolving an output"):
        C.convolution_transpose(map_, x, strides=2, auto_padding=[False], output_shape=output_shape)
