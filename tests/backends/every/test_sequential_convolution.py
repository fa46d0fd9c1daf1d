"""Convolution along the sequence axis: values and gradients against the definition, lengths, axes, errors, layers."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import DeviceDescriptor
from cntk.layers import Convolution, Sequential, SequentialConvolution, default_options
from cntk.testing import assert_close

RNG = np.random.default_rng(11)
LENGTHS = (5, 9, 6, 5)


def random(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def sequences(lengths: Any, *shape: int) -> list[Any]:
    return [random(length, *shape) for length in lengths]


def direct(filters: Any, steps: Any, strides: Any = 1, dilation: Any = 1, padding: Any = False) -> Any:
    """One sequence, (time, channels, *d), convolved with filters (maps, channels, time, *k) straight from the definition."""
    image = np.moveaxis(steps, 0, 1)
    axes = image.ndim - 1
    strides, dilation, padding = (np.broadcast_to(values, axes) for values in (strides, dilation, padding))
    places, taps = [], []
    for axis in range(axes):
        size, span = image.shape[axis + 1], (filters.shape[axis + 2] - 1) * dilation[axis] + 1
        count = -(-size // strides[axis]) if padding[axis] else (size - span) // strides[axis] + 1
        beside = size - 1 - (count - 1) * strides[axis]
        before = (span - 1) // 2 - beside // 2 if padding[axis] else 0
        places.append([place * strides[axis] - before for place in range(count)])
        taps.append(range(0, span, dilation[axis]))
    result = np.zeros((len(filters), *map(len, places)))
    for at, tap in product(np.ndindex(*result.shape[1:]), product(*map(enumerate, taps))):
        where = tuple(places[axis][at[axis]] + tap[axis][1] for axis in range(axes))
        if all(0 <= index < size for index, size in zip(where, image.shape[1:], strict=True)):
            result[(slice(None), *at)] += filters[(..., *(number for number, _ in tap))] @ image[(slice(None), *where)]
    return np.moveaxis(result, 1, 0)


def gradient(function: Any, at: Any) -> Any:
    """Gradient of a linear function by differences, which are exact for it."""
    result = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        unit = np.zeros_like(at)
        unit[place] = 1
        result[place] = function(unit)
    return result


def assert_all_close(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other)


CASES = [
    pytest.param((), 3, 1, 1, False, id="valid"),
    pytest.param((), 3, 1, 1, True, id="padded"),
    pytest.param((), 4, 1, 1, True, id="padded even"),
    pytest.param((), 2, 2, 1, False, id="stride 2"),
    pytest.param((), 2, 3, 1, True, id="padded stride 3"),
    pytest.param((), 1, 4, 1, True, id="stride beyond the filters"),
    pytest.param((), 3, 1, 2, False, id="dilation"),
    pytest.param((), 3, 2, 3, True, id="padded dilation"),
    pytest.param((4,), (3, 2), (2, 1), 1, (True, False), id="one static axis"),
    pytest.param((4,), (2, 3), (1, 2), 1, (False, True), id="one static axis, padded"),
    pytest.param((3, 4), (2, 2, 3), (2, 1, 2), (2, 1, 1), True, id="two static axes"),
]


@pytest.mark.parametrize(("dims", "kernel", "strides", "dilation", "padding"), CASES)
def test_values_and_gradients_follow_the_definition(
    dims: tuple[int, ...], kernel: Any, strides: Any, dilation: Any, padding: Any, device: DeviceDescriptor
) -> None:
    axes = len(dims) + 1
    steps, filters = sequences(LENGTHS, 2, *dims), random(3, 2, *np.broadcast_to(kernel, axes))
    x = C.sequence.input_variable((2, *dims), np.float64, needs_gradient=True)
    w = C.parameter(init=filters, dtype=np.float64)

    def per_axis(values: Any, channels: Any) -> Any:
        return (channels, *np.broadcast_to(values, axes).tolist())

    arguments = {"strides": per_axis(strides, 1), "dilation": per_axis(dilation, 1), "auto_padding": per_axis(padding, False)}
    y = C.convolution(w, x, sequential=True, **arguments)
    expected = [direct(filters, one, strides, dilation, padding) for one in steps]
    assert y.shape == expected[0].shape[1:]
    assert_all_close(y.eval({x: steps}, device=device), expected)

    factors = C.sequence.input_variable(y.shape, np.float64, sequence_axis=y.dynamic_axes[1])
    weights = [random(*one.shape) for one in expected]
    gradients = (y * factors).grad({x: steps, factors: weights}, wrt=[w, x], device=device)

    def weighted(filters: Any, steps: Any, weights: Any) -> Any:
        return np.sum(direct(filters, steps, strides, dilation, padding) * weights)

    pairs = list(zip(steps, weights, strict=True))
    assert_all_close(gradients[x], [gradient(lambda at, by=by: weighted(filters, at, by), one) for one, by in pairs])
    by_filters = gradient(lambda at: sum(weighted(at, one, by) for one, by in pairs), filters)
    assert_close(gradients[w], by_filters)


@pytest.mark.parametrize("shape", [(3, 2), (4, 3, 2)], ids=["one filter", "four filters"])
def test_operands_without_channels(shape: tuple[int, ...], device: DeviceDescriptor) -> None:
    steps, filters = sequences(LENGTHS, 5), random(*shape)
    x = C.sequence.input_variable(5, np.float64)
    y = C.convolution(C.constant(filters), x, sequential=True, reduction_rank=0, strides=(2, 1), auto_padding=[True, False])
    stacked = filters.reshape(-1, 1, 3, 2)
    expected = [direct(stacked, one[:, np.newaxis], (2, 1), 1, (True, False)) for one in steps]
    assert_all_close(y.eval({x: steps}, device=device), expected)


def test_sequences_of_numbers(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(())
    y = C.convolution(C.constant(np.float32([4, 2, 1])), x, sequential=True, reduction_rank=0, auto_padding=[False])
    (found,) = y.eval({x: [np.float32([2, 6, 4, 8, 6])]}, device=device)
    np.testing.assert_array_equal(found, [[24], [40], [38]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_element_type(dtype: Any, device: DeviceDescriptor) -> None:
    steps, filters = [one.astype(dtype) for one in sequences((3, 5), 2)], random(3, 2, 3).astype(dtype)
    x = C.sequence.input_variable(2, dtype)
    y = C.convolution(C.constant(filters), x, sequential=True, auto_padding=[False, True])
    for found, one in zip(y.eval({x: steps}, device=device), steps, strict=True):
        assert found.dtype == dtype
        assert_close(found, direct(filters, one, padding=True))


@pytest.mark.parametrize("strides", [1, 2, 3, 4])
def test_a_sequence_alone_gives_what_it_gives_among_others(strides: int, device: DeviceDescriptor) -> None:
    steps = sequences((7, 4, 6, 1, 5, 7), 2)
    x = C.sequence.input_variable(2, np.float64)
    y = C.convolution(C.constant(random(3, 2, 3)), x, sequential=True, strides=(1, strides), auto_padding=[False, True])
    together = y.eval({x: steps}, device=device)
    assert [len(one) for one in together] == [-(-length // strides) for length in (7, 4, 6, 1, 5, 7)]
    assert_all_close(together, [y.eval({x: [one]}, device=device)[0] for one in steps])
    assert_all_close(together[::-1], y.eval({x: steps[::-1]}, device=device))


def test_minibatches_of_equal_size_with_results_of_different_sizes(device: DeviceDescriptor) -> None:
    filters = random(1, 1, 1)
    x, w = C.sequence.input_variable(1, np.float64, needs_gradient=True), C.parameter(init=filters, dtype=np.float64)
    y = C.convolution(w, x, sequential=True, strides=(1, 2), auto_padding=[False])
    for lengths in ((5, 3), (4, 4), (3, 5), (7, 1), (6, 2)):
        steps = sequences(lengths, 1)
        assert_all_close(y.eval({x: steps}, device=device), [filters[0, 0, 0] * one[::2] for one in steps])
        gradients = y.grad({x: steps}, wrt=[w, x], device=device)
        np.testing.assert_allclose(gradients[w], np.full((1, 1, 1), sum(one[::2].sum() for one in steps)))
        for found in gradients[x]:
            np.testing.assert_array_equal(found[::2], np.full_like(found[::2], filters[0, 0, 0]))
            np.testing.assert_array_equal(found[1::2], 0)


def test_strided_convolutions_one_upon_the_other(device: DeviceDescriptor) -> None:
    first, second, steps = random(3, 2, 2), random(1, 3, 3), sequences((9, 4, 12), 2)
    x = C.sequence.input_variable(2, np.float64)
    y = C.convolution(C.constant(first), x, sequential=True, strides=(1, 2), auto_padding=[False])
    y = C.convolution(C.constant(second), y, sequential=True, strides=(1, 2), auto_padding=[False, True])
    expected = [direct(second, direct(first, one, 2), 2, padding=True) for one in steps]
    assert_all_close(y.eval({x: steps}, device=device), expected)


def test_a_padded_convolution_of_stride_1_stays_on_the_sequence_axis(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(2, np.float64)
    y = C.convolution(C.constant(random(2, 2, 3)), x, sequential=True, auto_padding=[False, True])
    assert y.dynamic_axes == x.dynamic_axes
    steps = sequences((2, 5), 2)
    assert_all_close((x + y).eval({x: steps}, device=device), [a + b for a, b in zip(steps, y.eval({x: steps}), strict=True)])


@pytest.mark.parametrize("arguments", [{"auto_padding": [False]}, {"auto_padding": [False, True], "strides": (1, 2)}])
def test_other_lengths_are_on_a_sequence_axis_of_their_own(arguments: dict[str, Any]) -> None:
    x = C.sequence.input_variable(2)
    y, z = (C.convolution(C.constant(np.ones((2, 2, 3))), x, sequential=True, **arguments) for _ in range(2))
    assert len({x.dynamic_axes[1], y.dynamic_axes[1], z.dynamic_axes[1]}) == 3
    assert y.dynamic_axes[0] == x.dynamic_axes[0]
    with pytest.raises(ValueError, match="do not combine"):
        x + y


def test_a_sequence_too_short_for_the_filters_is_an_error() -> None:
    x = C.sequence.input_variable(1)
    y = C.convolution(C.constant(np.ones((1, 1, 3))), x, sequential=True, dilation=(1, 2), auto_padding=[False])
    with pytest.raises(ValueError, match=r"SequenceWindows.*sequence 1 of the minibatch has 4 steps.*window of 3 steps, 2 apart"):
        y.eval([np.ones((6, 1), np.float32), np.ones((4, 1), np.float32)])
    with pytest.raises(ValueError, match="sequence 0 of the minibatch has 3 steps"):
        y.eval([np.ones((3, 1), np.float32), np.ones((7, 1), np.float32)])
    assert [len(one) for one in y.eval([np.ones((5, 1), np.float32)] * 2)] == [1, 1]


@pytest.mark.parametrize(
    ("shape", "map_shape", "arguments", "message"),
    [
        ((), (1, 1, 3), {}, "scalar"),
        ((2, 3), (2, 3), {}, "too few axes"),
        ((2,), (1, 2, 3), {"strides": 0}, "must be positive"),
        ((2,), (1, 2, 3), {"strides": (1, 1, 1)}, "3 values for 2 axes"),
    ],
)
def test_what_does_not_go_together_is_an_error(shape: Any, map_shape: Any, arguments: Any, message: str) -> None:
    x = C.sequence.input_variable(shape)
    with pytest.raises(ValueError, match=message):
        C.convolution(C.parameter(map_shape), x, sequential=True, **arguments)


@pytest.mark.parametrize("x", [C.input_variable((2, 5)), C.parameter((2, 5))], ids=["batch", "parameter"])
def test_an_operand_without_sequence_axis_is_an_error(x: Any) -> None:
    with pytest.raises(ValueError, match="no sequence axis"):
        C.convolution(C.parameter((3, 2, 3, 2)), x, sequential=True, auto_padding=[False])


# ---- layers ----


@pytest.mark.parametrize(("layer", "bias_shape"), [(SequentialConvolution, (4, 1)), (Convolution, (4, 1, 1))])
def test_layers_add_a_bias_and_apply_the_activation(layer: Any, bias_shape: tuple[int, ...], device: DeviceDescriptor) -> None:
    options = {"sequential": True} if layer is Convolution else {}
    bias = random(*bias_shape)
    x = C.sequence.input_variable((2, 5))
    y = layer((3, 2), 4, activation=C.relu, pad=(True, False), strides=(2, 1), init_bias=bias, **options)(x)
    assert (y.shape, y.W.shape, y.b.shape) == ((4, 4), (4, 2, 3, 2), bias_shape)
    steps = [one.astype(np.float32) for one in sequences(LENGTHS, 2, 5)]
    expected = [np.maximum(direct(y.W.value, one, (2, 1), 1, (True, False)) + bias.reshape(4, 1), 0) for one in steps]
    for found, wanted in zip(y.eval({x: steps}, device=device), expected, strict=True):
        assert_close(found, wanted)


@pytest.mark.parametrize(("layer", "options"), [(SequentialConvolution, {}), (Convolution, {"sequential": True})])
def test_layers_on_numbers(layer: Any, options: dict[str, Any]) -> None:
    c = layer(3, init=np.float32([4, 2, 1]), reduction_rank=0, bias=False, **options)
    y = c(C.sequence.input_variable(()))
    assert y.shape == ()
    np.testing.assert_array_equal(y.eval([np.float32([2, 6, 4, 8, 6])]), [[24, 40, 38]])


def test_filters_of_scalars_and_steps_without_channels() -> None:
    x = C.sequence.input_variable(6)
    assert SequentialConvolution((3, 2), reduction_rank=0)(x).shape == (5,)
    assert SequentialConvolution((3, 2), 7, reduction_rank=0)(x).shape == (7, 5)


def test_defaults_of_the_layer() -> None:
    with default_options(pad=True), default_options(bias=False, pad=False):
        y = SequentialConvolution(3, 4)(C.sequence.input_variable(2))
    assert [parameter.name for parameter in y.parameters] == ["W"]
    with default_options(pad=True):
        x = C.sequence.input_variable(2)
        assert SequentialConvolution(3, 4)(x).dynamic_axes == x.dynamic_axes


@pytest.mark.parametrize(
    "options",
    [{"strides": (1, 2, 3)}, {"reduction_rank": 2}, {"transpose_weight": True}, {"groups": 2}, {"init": np.ones(3)}],
    ids=lambda options: next(iter(options)),
)
def test_the_layer_refuses_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="SequentialConvolution"):
        SequentialConvolution((3, 3), 4, **options)


def test_a_stack_of_layers_learns(device: DeviceDescriptor) -> None:
    """What is learned is a moving difference; lengths change from step to step."""
    x = C.sequence.input_variable(1)
    model = Sequential([SequentialConvolution(1, 1, bias=False), SequentialConvolution(2, 1, strides=2, pad=True)])(x)
    target = C.sequence.input_variable(1, sequence_axis=model.dynamic_axes[1])
    loss = C.squared_error(model, target)
    learner = C.sgd(model.parameters, C.learning_parameter_schedule_per_sample(0.02))
    trainer = C.Trainer(model, (loss, loss), [learner])
    losses = []
    for lengths in [(5, 3), (4, 4), (6, 2)] * 60:
        steps = [one.astype(np.float32) for one in sequences(lengths, 1)]
        wanted = [direct(np.float32([[[1, -1]]]), one, 2, padding=True).astype(np.float32) for one in steps]
        trainer.train_minibatch({x: steps, target: wanted}, device=device)
        losses.append(trainer.previous_minibatch_loss_average)
    assert np.mean(losses[-10:]) < 0.05 * np.mean(losses[:10])
