"""Layers on every backend: shapes of parameters and results, values, names, options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import DeviceDescriptor
from cntk.layers import (
    Activation,
    AveragePooling,
    BatchNormalization,
    Convolution,
    Convolution1D,
    Convolution2D,
    Convolution3D,
    ConvolutionTranspose,
    ConvolutionTranspose1D,
    ConvolutionTranspose2D,
    ConvolutionTranspose3D,
    Dense,
    Dropout,
    Embedding,
    For,
    GlobalAveragePooling,
    GlobalMaxPooling,
    Label,
    LayerNormalization,
    MaxPooling,
    MaxUnpooling,
    ResNetBlock,
    Sequential,
    SequentialClique,
    Stabilizer,
    identity,
)
from cntk.layers.typing import Sequence, Tensor
from cntk.testing import assert_close

pytestmark = pytest.mark.usefixtures("default_device")


@pytest.fixture
def default_device(device: DeviceDescriptor) -> DeviceDescriptor:
    """Create parameters on each device in turn."""
    assert C.try_set_default_device(device)
    return device


def data(*shape: int) -> Any:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def evaluate(layer: Any, x: Any) -> Any:
    """Apply a layer to a minibatch."""
    return layer(C.input_variable(x.shape[1:])).eval(x)


# ---- Dense, Embedding ----------------------------------------------------------------------------


def test_dense_contracts_all_axes() -> None:
    x = data(5, 2, 3)
    layer = Dense((4, 6), activation=C.tanh, init_bias=0.5, name="d")
    y = evaluate(layer, x)
    assert layer.W.shape == (2, 3, 4, 6)
    assert_close(y, np.tanh(np.tensordot(x, layer.W.value, 2) + 0.5))


@pytest.mark.parametrize(("options", "kept"), [({"map_rank": 1}, 1), ({"input_rank": 1}, 1), ({"input_rank": 2}, 0)])
def test_dense_keeps_leading_axes(options: dict[str, int], kept: int) -> None:
    x = data(5, 2, 3)
    layer = Dense(4, **options)
    y = evaluate(layer, x)
    assert layer.W.shape == (*(2, 3)[kept:], 4)
    assert_close(y, np.tensordot(x, layer.W.value, 2 - kept))


def test_dense_without_bias_has_one_parameter() -> None:
    assert [p.name for p in Dense(2, bias=False)(C.input_variable(3)).parameters] == ["W"]


def test_dense_takes_defaults_from_options() -> None:
    with C.default_options(activation=C.relu, init=1), C.default_options_for(Dense, init_bias=-3):
        layer = Dense(1)
    assert evaluate(layer, np.ones((1, 4), np.float32)) == [[1]]
    assert evaluate(layer, np.zeros((1, 4), np.float32)) == [[0]]


def test_dense_computes_in_the_type_of_options() -> None:
    with C.default_options(dtype=np.float64):
        assert Dense(2)(C.input_variable(3)).dtype == np.float64


def test_dense_refuses_arrays_and_contradictions() -> None:
    with pytest.raises(TypeError, match="initializer"):
        Dense(2, init=np.ones((3, 2)))
    with pytest.raises(ValueError, match="init is None"):
        Dense(2, init=None)
    with pytest.raises(ValueError, match="input_rank"):
        Dense(2, input_rank=1, map_rank=1)


def test_layer_is_shared_by_its_calls() -> None:
    layer = Dense(2)
    x, y = C.input_variable(3), C.input_variable(3)
    assert layer(x).parameters == layer(y).parameters
    with pytest.raises(ValueError, match=r"."):
        layer(C.input_variable(4))


def test_layer_prints_as_a_block() -> None:
    assert str(Dense(3)) == "Dense(x: Sequence[tensor]) -> Sequence[tensor]"
    assert str(Dense(3, name="dd")(C.input_variable(2))) == "dd: Dense(Tensor[2]) -> Tensor[3]"


def test_embedding_is_a_product_without_bias() -> None:
    x = data(4, 5)
    layer = Embedding(3)
    assert_close(evaluate(layer, x), x @ layer.E.value)


def test_embedding_looks_up_fixed_weights() -> None:
    layer = Embedding(weights=[[1, 2], [3, 4]])(C.input_variable(2))
    np.testing.assert_array_equal(layer.eval(np.eye(2, dtype=np.float32)), [[1, 2], [3, 4]])
    assert layer.parameters == ()
    assert Embedding(2, init=[[1, 2], [3, 4]])(C.input_variable(2)).parameters[0].value.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("options", [{}, {"shape": 2, "weights": [[1]]}, {"init": 1, "weights": [[1]]}])
def test_embedding_refuses_contradictions(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Embedding"):
        Embedding(**options)


# ---- convolution ---------------------------------------------------------------------------------


def correlate(x: Any, w: Any) -> Any:
    """Correlation without padding of (n, channels, h, w) with (maps, channels, k, l)."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwkl,mckl->nmhw", windows, w)


def test_convolution_slides_its_filters() -> None:
    x = data(2, 3, 6, 5)
    layer = Convolution((3, 2), 4, init_bias=0.5)
    y = evaluate(layer, x)
    assert layer.W.shape == (4, 3, 3, 2)
    assert layer.b.shape == (4, 1, 1)
    assert_close(y, correlate(x, layer.W.value) + 0.5)


def test_convolution_pads_and_strides_each_axis() -> None:
    x = C.input_variable((1, 7, 8))
    assert Convolution((3, 3), 2, pad=True, strides=2)(x).shape == (2, 4, 4)
    assert Convolution((3, 3), 2, pad=[True, False], strides=(2, 1))(x).shape == (2, 4, 6)
    assert Convolution((3, 3), 2, dilation=2)(x).shape == (2, 3, 4)


def test_convolution_without_channels() -> None:
    layer = Convolution1D(3, init=np.array([4, 2, 1]), pad=True, reduction_rank=0, bias=False)
    np.testing.assert_array_equal(evaluate(layer, np.array([[2, 6, 4, 8, 6]], np.float32)), [[10, 24, 40, 38, 44]])
    assert Convolution((3, 3), 5, reduction_rank=0)(C.input_variable((4, 4))).shape == (5, 2, 2)
    assert Convolution((3, 3))(C.input_variable((2, 4, 4))).shape == (2, 2)


def test_convolution_spreads_its_filters_by_their_fans() -> None:
    layer = Convolution((3, 3), 50)(C.input_variable((40, 5, 5)))
    assert abs(layer.W.value).max() == pytest.approx(0.0861, rel=1e-2)


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (Convolution1D, (2, 6), (3, 4)),
        (Convolution2D, (2, 6, 7), (3, 4, 5)),
        (Convolution3D, (2, 6, 7, 8), (3, 4, 5, 6)),
        (ConvolutionTranspose1D, (2, 6), (3, 8)),
        (ConvolutionTranspose2D, (2, 6, 7), (3, 8, 9)),
        (ConvolutionTranspose3D, (2, 6, 7, 8), (3, 8, 9, 10)),
    ],
)
def test_convolution_of_fixed_rank(layer: Any, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    with C.default_options_for(layer, init_bias=2):
        y = layer(3, 3)(C.input_variable(shape))
    assert y.shape == expected
    assert y.b.value.ravel().tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match=layer.__name__):
        layer((3,) * 4, 3)


@pytest.mark.parametrize(
    "options",
    [
        {"strides": (1, 2, 3)},
        {"pad": [True] * 3},
        {"dilation": (1, 2, 3)},
        {"reduction_rank": 2},
        {"sharing": False},
        {"transpose_weight": True},
        {"groups": 2},
        {"init": np.ones((4, 3, 3))},
        {"init": np.ones((3, 3)), "reduction_rank": 0},
    ],
    ids=lambda options: next(iter(options)),
)
def test_convolution_refuses_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Convolution"):
        Convolution((3, 3), 4, **options)


def test_convolution_transpose_is_the_gradient_of_a_convolution() -> None:
    x = data(1, 2, 3, 3)
    layer = ConvolutionTranspose((2, 2), 3, bias=False)
    y = evaluate(layer, x)
    w = layer.W.value
    assert w.shape == (2, 3, 2, 2)
    expected = np.zeros((1, 3, 4, 4))
    for i, j in np.ndindex(3, 3):
        expected[:, :, i : i + 2, j : j + 2] += np.einsum("nc,cmkl->nmkl", x[:, :, i, j], w)
    assert_close(y, expected)


def test_convolution_transpose_has_the_shape_it_is_told() -> None:
    x = C.input_variable((3, 4, 4))
    assert ConvolutionTranspose((3, 3), 2, strides=2)(x).shape == (2, 9, 9)
    assert ConvolutionTranspose((3, 3), 2, strides=2, pad=True)(x).shape == (2, 7, 7)
    assert ConvolutionTranspose((3, 3), 2, strides=2, pad=True, output_shape=(8, 8))(x).shape == (2, 8, 8)
    assert ConvolutionTranspose((3, 3), 2, reduction_rank=0)(C.input_variable((4, 4))).shape == (2, 6, 6)


# ---- pooling -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layer", "reduce"), [(MaxPooling, np.max), (AveragePooling, np.mean)])
def test_pooling_reduces_windows(layer: Any, reduce: Any) -> None:
    x = data(2, 3, 4, 6)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(2, 3))[:, :, ::2, ::2]
    assert_close(evaluate(layer((2, 2), strides=2), x), reduce(windows, axis=(-2, -1)))
    assert layer((3, 3), pad=True)(C.input_variable((3, 4, 6))).shape == (3, 4, 6)
    with C.default_options(pad=True):
        assert layer((3, 3))(C.input_variable((3, 4, 6))).shape == (3, 4, 6)


@pytest.mark.parametrize(("layer", "reduce"), [(GlobalMaxPooling, np.max), (GlobalAveragePooling, np.mean)])
@pytest.mark.parametrize("spatial", [(4,), (4, 6), (2, 3, 4)])
def test_global_pooling_reduces_all_spatial_axes(layer: Any, reduce: Any, spatial: tuple[int, ...]) -> None:
    x = data(2, 3, *spatial)
    axes = tuple(range(2, x.ndim))
    assert_close(evaluate(layer(), x), reduce(x, axis=axes, keepdims=True))


def test_max_unpooling_puts_values_back() -> None:
    x = C.input_variable((1, 2, 4))
    y = MaxUnpooling((2, 2), strides=2)(MaxPooling((2, 2), strides=2)(x), x)
    np.testing.assert_array_equal(y.eval(np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)), [[[[0, 0, 0, 0], [0, 5, 0, 7]]]])


@pytest.mark.parametrize("layer", [MaxPooling, AveragePooling, MaxUnpooling])
def test_pooling_wants_a_tuple(layer: Any) -> None:
    with pytest.raises(TypeError, match=layer.__name__):
        layer(2)


# ---- normalisation, activation -------------------------------------------------------------------


def test_batch_normalization_uses_running_statistics_outside_training() -> None:
    x = data(3, 2, 4, 4)
    layer = BatchNormalization(map_rank=1, init_scale=2)(C.input_variable((2, 4, 4)))
    assert {p.name: p.shape for p in layer.parameters} == {"scale": (2,), "bias": (2,)}
    assert {c.name: c.shape for c in layer.constants} == {"aggregate_mean": (2,), "aggregate_variance": (2,), "aggregate_count": ()}
    assert_close(layer.eval(x), 2 * x / np.sqrt(1e-5))


def test_batch_normalization_keeps_float32_statistics_for_float16() -> None:
    with C.default_options(dtype=np.float16):
        layer = BatchNormalization()(C.input_variable(3))
    assert {p.dtype for p in layer.parameters} == {np.float32}
    with pytest.raises(ValueError, match="map_rank"):
        BatchNormalization(map_rank=2)


def test_layer_normalization_normalises_each_sample() -> None:
    x = data(3, 2, 4)
    layer = LayerNormalization(initial_scale=2, initial_bias=1)
    centred = x - x.mean((1, 2), keepdims=True)
    expected = centred / (np.sqrt((centred**2).mean((1, 2), keepdims=True)) + 1e-5) * 2 + 1
    assert_close(evaluate(layer, x), expected)
    assert layer.scale.shape == (4,)


def test_stabilizer_begins_with_the_factor_1() -> None:
    layer = Stabilizer()
    x = data(3, 4)
    assert_close(evaluate(layer, x), x)
    assert layer.alpha.value == pytest.approx(0.99538, rel=1e-4)
    with C.default_options(enable_self_stabilization=False):
        assert Stabilizer() is identity


def test_activation_comes_from_options() -> None:
    x = data(3, 4)
    with C.default_options(activation=C.relu):
        np.testing.assert_array_equal(evaluate(Activation(), x), np.maximum(x, 0))
    np.testing.assert_array_equal(evaluate(Activation(), x), x)


def test_dropout_is_the_identity_outside_training() -> None:
    x = data(3, 4)
    np.testing.assert_array_equal(evaluate(Dropout(0.9), x), x)
    np.testing.assert_array_equal(evaluate(Dropout(keep_prob=0.1), x), x)


@pytest.mark.parametrize("options", [{}, {"dropout_rate": 0.5, "keep_prob": 0.5}, {"keep_prob": 1}, {"keep_prob": -0.1}])
def test_dropout_refuses_contradictions(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="Dropout"):
        Dropout(**options)


# ---- layers of layers ----------------------------------------------------------------------------


def test_sequential_chains() -> None:
    x = data(2, 3)
    model = Sequential([Dense(4, name="first"), [C.abs, C.sqrt], Label("middle"), lambda v: v + 1], name="chain")
    y = model(C.input_variable(3))
    assert y.name == "chain"
    assert y.middle.shape == (4,)
    assert_close(y.eval(x), np.sqrt(abs(x @ y.first.W.value)) + 1)


def test_sequential_applies_tuples_side_by_side() -> None:
    x = data(2, 3)
    assert_close(evaluate(Sequential([(C.square, identity), C.plus]), x), x * x + x)


def test_sequential_prints_its_argument() -> None:
    assert str(Sequential([Dense(2), Dense(3)])) == "Composite(keep: Sequence[tensor]) -> Sequence[tensor]"
    assert Sequential(C.relu) is C.relu


def test_sequential_of_nothing_is_the_identity() -> None:
    x = data(2, 3)
    np.testing.assert_array_equal(evaluate(Sequential([]), x), x)


def test_for_makes_a_layer_for_each_item() -> None:
    model = For(range(3), lambda i: Dense(i + 1), name="loop")
    assert model.name == "loop"
    assert model(C.input_variable(5)).shape == (3,)
    assert len(For(range(3), lambda: [Dense(2), Dropout(0.5)])(C.input_variable(5)).parameters) == 6


@pytest.mark.parametrize("constructor", [identity, len, 3])
def test_for_wants_a_python_function(constructor: Any) -> None:
    with pytest.raises(ValueError, match="For"):
        For(range(3), constructor)


def test_clique_adds_up_all_results() -> None:
    x = abs(data(2, 3))
    clique = SequentialClique([C.abs, C.sqrt, C.square], name="clique")
    assert clique.name == "clique"
    first = x + abs(x)
    assert_close(evaluate(clique, x), (first + np.sqrt(first)) ** 2)
    with pytest.raises(ValueError, match="SequentialClique"):
        SequentialClique([])


def test_res_net_block_skips() -> None:
    x = data(2, 3)
    assert_close(evaluate(ResNetBlock(C.square), x), x * x + x)


def test_signature_of_a_model_is_given_later() -> None:
    model = Dense(2)
    model.update_signature(Tensor[3])
    assert model.W.shape == (3, 2)
    model = Dense(2)
    model.update_signature(Sequence[Tensor[3]])
    assert str(model) == "Dense(x: Sequence[Tensor[3]]) -> Sequence[Tensor[2]]"


def test_cloned_model_begins_with_the_same_parameters() -> None:
    model = Sequential([Dense(4, activation=C.relu), Dense(3)])
    copy = model.clone("clone")
    x = C.input_variable(2)
    for left, right in zip(model(x).parameters, copy(x).parameters, strict=True):
        assert left is not right
        np.testing.assert_array_equal(left.value, right.value)
