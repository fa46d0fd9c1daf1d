"""Layers, and networks of them, as ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exported import Exported, check_function

import cntk as C
from cntk.layers import (
    Activation,
    AveragePooling,
    BatchNormalization,
    Convolution,
    Convolution1D,
    Convolution2D,
    ConvolutionTranspose2D,
    Dense,
    Dropout,
    Embedding,
    For,
    GlobalAveragePooling,
    GlobalMaxPooling,
    LayerNormalization,
    MaxPooling,
    MaxUnpooling,
    ResNetBlock,
    Sequential,
    SequentialClique,
    Stabilizer,
)

RNG = np.random.default_rng(3)


def random(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def shaken(function: Any) -> Any:
    """The function with other parameters, and other running statistics, than those that it begins with."""
    for one in (*function.parameters, *function.constants):
        values = np.asarray(one.value)
        if values.dtype.kind == "f" and values.size > 1:
            one.value = np.abs(values + RNG.uniform(0.2, 0.6, values.shape).astype(values.dtype)) * 0.5
    return function


IMAGE, VECTOR = (3, 12, 10), (7,)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        pytest.param(layer, shape, id=name)
        for name, layer, shape in [
            ("Dense", Dense(4, activation=C.relu), VECTOR),
            ("Dense of images", Dense((4, 2)), IMAGE),
            ("Dense of the last axis", Dense(4, map_rank=2), IMAGE),
            ("Embedding", Embedding(5), VECTOR),
            ("Convolution", Convolution((3, 3), 4, activation=C.elu), IMAGE),
            ("Convolution padded", Convolution2D((5, 3), 4, pad=True, strides=(2, 1)), IMAGE),
            ("Convolution of signals", Convolution1D(3, 4, reduction_rank=0, pad=True), VECTOR),
            ("Convolution dilated", Convolution2D((3, 3), 4, dilation=2, pad=True), IMAGE),
            ("ConvolutionTranspose", ConvolutionTranspose2D((3, 3), 4, strides=2, pad=True, output_shape=(24, 20)), IMAGE),
            ("MaxPooling", MaxPooling((3, 3), strides=2, pad=True), IMAGE),
            ("AveragePooling", AveragePooling((3, 2), strides=2, pad=True), IMAGE),
            ("GlobalMaxPooling", GlobalMaxPooling(), IMAGE),
            ("GlobalAveragePooling", GlobalAveragePooling(), IMAGE),
            ("BatchNormalization", BatchNormalization(map_rank=1), IMAGE),
            ("BatchNormalization of vectors", BatchNormalization(), VECTOR),
            ("LayerNormalization", LayerNormalization(), VECTOR),
            ("LayerNormalization of images", LayerNormalization(), IMAGE),
            ("Stabilizer", Stabilizer(), VECTOR),
            ("Dropout", Dropout(0.5), VECTOR),
            ("Activation", Activation(C.softmax), VECTOR),
            ("ResNetBlock", ResNetBlock(Convolution2D((3, 3), 3, pad=True)), IMAGE),
            ("SequentialClique", SequentialClique([Dense(7), Dense(7)]), VECTOR),
        ]
    ],
)
@pytest.mark.parametrize("sequences", [False, True])
def test_layers(layer: Any, shape: tuple[int, ...], sequences: bool) -> None:
    declare = C.sequence.input_variable if sequences else C.input_variable
    function = shaken(layer(declare(shape, name="x")))
    check_function(function, [random(steps, *shape) for steps in (4, 1, 3)] if sequences else random(3, *shape))


def test_unpooling() -> None:
    x = C.input_variable(IMAGE)
    pooled = MaxPooling((2, 2), strides=2)(x)
    check_function(MaxUnpooling((2, 2), strides=2)(Convolution2D((3, 3), 3, pad=True)(pooled), x), random(3, *IMAGE))


def convolution(maps: int, kernel: int = 3, strides: int = 1, activation: Any = C.relu) -> Any:
    bare = Convolution2D((kernel, kernel), maps, strides=strides, pad=True, bias=False)
    return Sequential([bare, BatchNormalization(map_rank=1), Activation(activation)])


def residual(maps: int, x: Any) -> Any:
    return C.relu(Sequential([convolution(maps), convolution(maps, activation=C.alias)])(x) + x)


def wider(maps: int, x: Any) -> Any:
    narrow = Sequential([convolution(maps, strides=2), convolution(maps, activation=C.alias)])(x)
    return C.relu(narrow + convolution(maps, 1, 2, C.alias)(x))


def resnet(x: Any, blocks: int, maps: int = 4) -> Any:
    """A residual network of ``6 * blocks + 2`` layers."""
    made = convolution(maps)(x)
    for stage in range(3):
        for block in range(blocks):
            narrows = stage and not block
            made = wider(maps << stage, made) if narrows else residual(maps << stage, made)
    return Dense(10, name="classes")(GlobalAveragePooling()(made))


def test_resnet20() -> None:
    x = C.input_variable((3, 16, 16), name="images")
    network = shaken(resnet(x, 3))
    model = check_function(network, random(3, 3, 16, 16))
    assert model.inputs == {"images": ["batch", 3, 16, 16]}
    assert model.nodes.count("Conv") == 21
    assert not {"Pad", "Cast", "Shape"} & set(model.nodes)
    assert model.nodes.count("Reshape") <= 2  # before the last layer, of its operand and weights


def test_criteria_are_left_out() -> None:
    x, y = C.input_variable((3, 16, 16), name="images"), C.input_variable(10, name="labels")
    z = resnet(x, 1)
    both = C.combine([z, C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)])
    with pytest.warns(UserWarning, match="losses and metrics are left out"):
        assert list(Exported(both).inputs) == ["images"]
    loss = C.cross_entropy_with_softmax(z, y)
    check_function(loss, random(3, 3, 16, 16), np.eye(10, dtype=np.float32)[[1, 5, 0]])


def test_a_network_of_signals_and_losses_in_aggregate() -> None:
    x, y = C.input_variable((2, 12)), C.input_variable(4)
    z = Sequential([For(range(2), lambda i: Convolution1D(3, 4 + i, activation=C.tanh)), Dense(4, activation=C.softmax)])(x)
    for loss in (C.squared_error(z, y), C.binary_cross_entropy(z, y), C.cosine_distance(z, y)):
        check_function(loss, random(3, 2, 12), np.abs(random(3, 4)))
        model = Exported(C.reduce_mean(loss, C.Axis.all_axes()))
        assert [output.shape for output in model.session.get_outputs()] == [[]]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_element_types(dtype: Any) -> None:
    with C.default_options(dtype=dtype):
        x = C.input_variable((3, 16, 16), dtype=dtype)
        network = shaken(resnet(x, 1))
    for parameter in network.parameters:
        if parameter.value.ndim == 4:
            parameter.value = parameter.value / parameter.value[0].size ** 0.5  # results stay far from the largest float16
    images = random(3, 3, 16, 16).astype(dtype)
    model = Exported(network)
    (found,) = model.run({model.session.get_inputs()[0].name: images})
    wanted = network.eval(images)
    assert found.dtype == wanted.dtype == dtype
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(found, wanted, rtol=2e-2 if dtype == np.float16 else 1e-5, atol=2e-3 if dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("shape", [(4,), (2, 4), (C.FreeDimension,), (C.FreeDimension, 4)])
def test_losses_of_any_number_of_classes(shape: Any) -> None:
    z, y = C.input_variable(shape), C.input_variable(shape)
    sizes = [4 if size == C.FreeDimension else size for size in shape]
    outputs, targets = random(3, *sizes), np.eye(4, dtype=np.float32)[RNG.integers(4, size=(3, *sizes[:-1]))]
    for loss in (C.cross_entropy_with_softmax, C.squared_error, C.classification_error, C.cosine_distance):
        check_function(loss(z, y), outputs, targets)
    for k in (1, 2):
        (found,) = Exported(C.classification_error(z, y, topN=k)).session.get_outputs()
        assert found.shape == [] if k > 1 else found.shape[0] == "batch"


def test_native_user_functions() -> None:
    weights = C.parameter(init=random(4, 2))
    C.ops.register_native_user_function("times", "Cntk.ExtensibilityExamples-2.7", "CreateUserTimesFunction")
    made = C.ops.native_user_function("times", [weights, C.input_variable(4)], {}, "product")
    check_function(made, random(3, 4))


@pytest.mark.parametrize("steepness", [1, 4])
def test_large_numbers_of_float16_do_not_overflow(steepness: float) -> None:
    x = C.input_variable(5, dtype=np.float16)
    check_function(C.softplus(x, steepness), np.array([[-500, -1, 0, 12, 500]], np.float16))
    y = C.input_variable(5, dtype=np.float16)
    check_function(C.cross_entropy_with_softmax(x, y), np.array([[-500, -1, 0, 12, 500]], np.float16), np.eye(1, 5, dtype=np.float16))


def test_embeddings_of_numbers_are_rows_of_a_matrix() -> None:
    words = C.input_variable((), name="words")
    model = check_function(Embedding(5)(C.one_hot(words, 7)), np.array([3, 6, 0, -1, 7, 2.5], np.float32))
    assert "Gather" in model.nodes
    assert "MatMul" not in model.nodes


def test_a_number_that_is_none_of_a_class_stands_for_zeros() -> None:
    words = C.input_variable(7, is_sparse=True, name="words")
    embedded = Embedding(5)(words)
    for function in (embedded, words + 0):
        (found,) = Exported(function, sparse="indices").run({"words": np.array([3, -1, 7, 0], np.int64)})
        assert found[[0, 3]].any(axis=1).all()
        assert not found[[1, 2]].any()
