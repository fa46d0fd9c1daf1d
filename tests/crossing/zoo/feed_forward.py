"""Layers, blocks, sharing, names, constants, element types and placeholders."""

import numpy as np

import cntk as C

from .model import classes, model, numbers, sparse


@model
def dense_softmax():
    x = C.input_variable((2, 3), name="x")
    layers = [C.layers.Dense(4, activation=C.tanh, name="hidden"), C.layers.Dense(2, activation=C.softmax)]
    z = C.layers.Sequential(layers)(x)
    z.custom_attributes = {"author": "me", "epochs": 3, "rates": [0.5, 0.25], "nested": {"none": None, "flag": True}}
    return z, {"x": numbers(2, 2, 3)}


@model
def shared_parameters():
    x = C.input_variable(3, name="x")
    W, b = C.parameter((3, 3), init=numbers(3, 3), name="W"), C.parameter(3, init=0.5, name="b")
    once = C.sigmoid(C.times(x, W) + b, name="once")
    return C.sigmoid(C.times(once, W) + b, name="twice"), {"x": numbers(4, 3)}


@model
def applied_twice():
    x, y = C.input_variable(3, name="x"), C.input_variable(3, name="y")
    tower = C.layers.Sequential([C.layers.Dense(4, activation=C.relu), C.layers.Dense(2, name="code")])
    return C.cosine_distance(tower(x), tower(y), name="alike"), {"x": numbers(3, 3), "y": numbers(3, 3)[::-1].copy()}


@model
def named_nodes():
    x = C.input_variable(2, name="x")
    a = C.alias(C.plus(x, 1, name="plus one"), name="an alias")
    b = C.element_times(a, 2, name="grün / 緑")
    return C.combine([a, b], name="both"), {"x": numbers(2, 2)}


@model
def several_outputs():
    x = C.input_variable(3, name="x")
    z = C.layers.Dense(2, name="z")(x)
    return C.combine([C.softmax(z), C.reduce_sum(z), z]), {"x": numbers(2, 3)}


@model
def residual():
    x = C.input_variable(4, name="x")
    for k in range(3):
        x = x + C.layers.Dense(4, activation=C.relu, name=f"step{k}")(x)
    return C.layers.LayerNormalization(name="norm")(x), {"x": numbers(2, 4)}


@model
def stabilised():
    x = C.input_variable(3, name="x")
    return C.layers.Sequential([C.layers.Stabilizer(), C.layers.Dense(2), C.layers.Activation(C.softplus)])(x), {"x": numbers(2, 3)}


@model
def block_function():
    W = C.parameter((2, 3), init=numbers(2, 3), name="W")

    @C.BlockFunction("Affine", "affine block")
    def affine(a, b):
        return C.times(a, W) * 0.5 + b

    x, y = C.input_variable(2, name="x"), C.input_variable(3, name="y")
    return C.tanh(affine(x, y)), {"x": numbers(2, 2), "y": numbers(2, 3)}


@model
def nested_blocks():
    inner = C.placeholder(name="inner")
    scaled = C.as_block(inner * C.parameter((), init=3.0, name="s"), [(inner, C.placeholder())], "Scale", "the inner one")
    outer = C.placeholder(name="outer")
    whole = C.as_block(scaled(outer) + scaled(outer + 1), [(outer, C.input_variable(2, name="x"))], "Both", "the outer one")
    return whole, {"x": numbers(2, 2)}


@model
def constants():
    x = C.input_variable((2, 2), name="x")
    held = C.constant(numbers(2, 2), name="held")
    return C.minus(held, C.times(x, C.constant([[1, 2], [3, 4]], name="M"))) / 4 - C.constant(0.25), {"x": numbers(3, 2, 2)}


@model
def nothing_but_constants():
    return C.times(C.constant(numbers(2, 3)), C.parameter((3, 2), init=numbers(3, 2), name="W")), {}


@model
def double_precision():
    with C.default_options(dtype=np.float64):
        x = C.input_variable(3, dtype=np.float64, name="x")
        z = C.layers.Sequential([C.layers.Dense(4, activation=C.tanh), C.layers.Dense(2)])(x)
    return C.log_softmax(z), {"x": numbers(3, 3, dtype=np.float64)}


@model
def cast_between():
    x = C.input_variable(3, name="x")
    W = C.parameter((3, 2), init=numbers(3, 2, dtype=np.float64), dtype=np.float64, name="W")
    return C.cast(C.times(C.cast(x, np.float64), W), np.float32), {"x": numbers(2, 3)}


@model
def half_precision():
    x = C.input_variable(3, dtype=np.float16, name="x")
    W = C.parameter((3, 2), init=np.float16([[1, 2], [3, 4], [0.5, -1]]), dtype=np.float16, name="W")
    return C.times(x, W), {"x": np.float16([[1, 2, 4]])}


@model
def dropout():
    x = C.input_variable(6, name="x")
    return C.layers.Dropout(0.4, seed=7, name="drop")(C.layers.Dense(4)(x)), {"x": numbers(2, 6)}


@model
def batch_normalised():
    """Whose statistics have seen data."""
    x, y = C.input_variable(3, name="x"), C.input_variable(2, name="y")
    z = C.layers.Sequential([C.layers.Dense(4), C.layers.BatchNormalization(name="norm"), C.layers.Dense(2)])(x)
    trainer = C.Trainer(z, (C.squared_error(z, y), None), [C.sgd(z.parameters, C.learning_parameter_schedule(0.01))])
    for k in range(5):
        trainer.train_minibatch({x: numbers(8, 3) + k, y: numbers(8, 2)})
    return z, {"x": numbers(2, 3)}


@model
def dense_embedding():
    x = C.input_variable(5, name="x")
    return C.layers.Embedding(3, name="embed")(x), {"x": classes(5, [4, 0, 2])}


@model
def sparse_embedding():
    x = C.input_variable(5, is_sparse=True, name="x")
    return C.layers.Embedding(3, name="embed")(x), {"x": sparse(5, [4, 0, 2])}


@model
def given_embedding():
    x = C.input_variable(4, is_sparse=True, name="x")
    return C.layers.Embedding(weights=numbers(4, 2))(x), {"x": sparse(4, [1, 3])}


@model
def sparse_input_in_double_precision():
    x = C.sequence.input_variable(5, is_sparse=True, name="x", dtype=np.float64)
    W = C.parameter((5, 2), init=numbers(5, 2, dtype=np.float64), name="W", dtype=np.float64)
    return C.plus(C.times(x, W), C.reduce_sum(W, axis=0)), {"x": [sparse(5, [0, 3, 1], np.float64), sparse(5, [4], np.float64)]}


@model
def free_dimension():
    x = C.input_variable((C.FreeDimension, 2), name="x")
    return C.reduce_max(C.times(x, C.parameter((2, 3), init=numbers(2, 3), name="W")), axis=0), {"x": numbers(2, 4, 2)}


@model
def with_a_placeholder():
    """Which is filled after loading."""
    x = C.input_variable(2, name="x")
    return C.times(x, C.parameter((2, 2), init=numbers(2, 2))) + C.placeholder(name="open"), {"x": numbers(2, 2)}


@model
def highway():
    x = C.input_variable(3, name="x")
    gate = C.layers.Dense(3, activation=C.sigmoid, name="gate")(x)
    return gate * C.layers.Dense(3, activation=C.relu)(x) + (1 - gate) * x, {"x": numbers(2, 3)}


@model
def deep():
    x = C.input_variable(2, name="x")
    z = x
    for _ in range(150):
        z = C.tanh(z + 0.01)
    return z, {"x": numbers(1, 2)}


@model
def mapped_over_tensors():
    x = C.input_variable((2, 3, 4), name="x")
    mapped = C.layers.Dense((5, 2), map_rank=1, name="map")(x)
    return C.layers.Label("flat")(C.flatten(mapped, 1)), {"x": numbers(2, 2, 3, 4)}
