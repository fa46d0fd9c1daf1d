"""Sequences picked apart and put together, on one axis and on several."""

import numpy as np

import cntk as C

from .model import classes, model, numbers, sparse, steps


def sequence(width=2):
    return C.sequence.input_variable(width, name="x"), {"x": steps(width)}


@model
def ends_and_reductions():
    x, data = sequence()
    s = C.sequence
    return C.combine([s.first(x), s.last(x), s.reduce_max(x), s.reduce_sum(x), s.softmax(x), s.is_first(x), s.is_last(x)]), data


@model
def picked_steps():
    x = C.sequence.input_variable(2, name="x")
    positive = C.greater(C.slice(x, 0, 0, 1), -0.5)
    gathered = C.sequence.gather(x, positive)
    return C.combine([gathered, C.sequence.scatter(gathered, positive), C.sequence.where(positive)]), {"x": steps(2, lengths=(5, 3, 6))}


@model
def cut_steps():
    x = C.sequence.input_variable(2, name="x")
    cut = C.sequence.slice
    return C.combine([cut(x, 1, 0), cut(x, 0, 2), cut(x, -2, -1)]), {"x": steps(2, lengths=(3, 2, 4))}


@model
def broadcast():
    x, data = sequence()
    mean = C.sequence.reduce_sum(x) / C.sequence.reduce_sum(C.sequence.broadcast_as(1, x))
    return x - C.sequence.broadcast_as(mean, x), data


@model
def unpacked():
    x, data = sequence()
    values, mask = C.sequence.unpack(x, padding_value=-1).outputs
    return C.combine([values, mask, C.sequence.unpack(x, 0, no_mask_output=True)]), data


@model
def made_sequences():
    x, lengths = C.input_variable((4, 2), name="x"), C.input_variable((), name="lengths")
    made = C.to_sequence(x, lengths, sequence_axis_name_prefix="made_")
    return C.combine([made, C.sequence.reduce_sum(made)]), {"x": numbers(2, 4, 2), "lengths": np.float32([4, 2])}


@model
def made_like():
    x, data = sequence()
    there = C.sequence.unpack(x, 0, no_mask_output=True)
    return C.to_sequence_like(there * 2, x), data


@model
def two_axes():
    a = C.sequence.input_variable(2, name="x", sequence_axis=C.Axis("one"))
    b = C.sequence.input_variable(2, name="y", sequence_axis=C.Axis("other"))
    return C.combine([C.sequence.last(a) + C.sequence.first(b), a * 2, C.tanh(b)]), {"x": steps(2), "y": steps(2, lengths=(1, 5, 2))}


@model
def inner_unique_axis():
    axis = C.Axis.new_unique_dynamic_axis("mine")
    x = C.input_variable(2, dynamic_axes=[C.Axis.default_batch_axis(), axis], name="x")
    return C.sequence.past_value(x) + x, {"x": steps(2)}


@model
def sparse_words():
    x = C.sequence.input_variable(5, is_sparse=True, name="x")
    layers = [C.layers.Embedding(2), C.layers.Fold(C.layers.RNNStep(2)), C.layers.Dense(2)]
    return C.layers.Sequential(layers)(x), {"x": [sparse(5, [0, 3, 1]), sparse(5, [4])]}


@model
def reduced_over_axes():
    x, data = sequence()
    return C.combine([C.reduce_sum(x, axis=C.Axis.all_axes()), C.reduce_mean(C.sequence.first(x), axis=C.Axis.default_batch_axis())]), data


@model
def product_over_steps():
    x = C.sequence.input_variable(3, name="x")
    y = C.sequence.input_variable(3, is_sparse=False, name="y")
    return C.sequence.reduce_sum(C.times_transpose(C.reshape(x, (3, 1)), C.reshape(y, (3, 1)))), {"x": steps(3), "y": steps(3)}


@model
def labels_of_graph():
    x = C.sequence.input_variable(3, name="x")
    y = C.sequence.input_variable(3, name="y")
    data = {"x": [numbers(4, 3)], "y": [2 * classes(3, [1, 2, 1, 2])]}
    return C.forward_backward(C.labels_to_graph(y), C.log_softmax(x), 0, 3), data


@model
def without_shapes():
    x, y = C.placeholder(name="x"), C.placeholder(name="y")
    s = C.sequence
    mean = s.reduce_sum(x) / s.reduce_sum(s.is_first(x) + 2)
    shown = s.broadcast_as(mean, y) * s.softmax(y) + s.broadcast_as(s.last(x), y)
    shaped = C.reshape(C.expand_dims(C.softmax(C.element_max(shown, y)), 0), (-1,))
    return C.combine([shaped, C.squared_error(shown, y), s.reduce_max(C.reduce_l2(x, 0))]), {"x": steps(3), "y": steps(3)}
