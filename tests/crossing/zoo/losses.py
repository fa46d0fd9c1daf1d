"""Losses, metrics, and what is sampled for them."""

import cntk as C

from .model import classes, model, numbers, sparse, steps


def scores():
    data = {"x": numbers(2, 4), "y": classes(4, [1, 0])}
    return C.input_variable(4, name="x"), C.input_variable(4, name="y"), data


@model
def classification():
    x, y, data = scores()
    z = C.layers.Dense(4)(x)
    return C.combine([C.cross_entropy_with_softmax(z, y), C.classification_error(z, y), C.classification_error(z, y, topN=2)]), data


@model
def entropies():
    x, y = C.input_variable(1, name="x"), C.input_variable(1, name="y")
    p = C.sigmoid(x)
    losses = [C.binary_cross_entropy(p, y), C.weighted_binary_cross_entropy(p, y, C.abs(x)), C.squared_error(x, y)]
    return C.combine(losses), {"x": numbers(3, 1), "y": [[0], [1], [1]]}


@model
def along_an_axis():
    x, y = C.input_variable((3, 4), name="x"), C.input_variable((3, 4), name="y")
    data = {"x": numbers(2, 3, 4), "y": classes(3, [0, 1, 2, 0, 2, 1, 0, 0]).reshape(2, 4, 3).transpose(0, 2, 1).copy()}
    return C.combine([C.cross_entropy_with_softmax(x, y, axis=0), C.classification_error(x, y, axis=0)]), data


@model
def f_measure():
    x, y, data = scores()
    return C.losses.fmeasure(C.sigmoid(x), y), data


@model
def ranking():
    output, gain, group = (C.input_variable(1, name=name) for name in ("x", "y", "group"))
    data = {"x": numbers(4, 1), "y": [[2], [0], [3], [1]], "group": [[1], [1], [2], [2]]}
    return C.combine([C.lambda_rank(output, gain, group), C.ndcg_at_1(output, gain, group)]), data


@model
def similarities():
    x, y, data = scores()
    return C.combine([C.cosine_distance(x, y), C.cosine_distance_with_negative_samples(x, y, 1, 2)]), data


@model
def edit_distance():
    x, y = C.sequence.input_variable(4, name="x"), C.sequence.input_variable(4, name="y")
    data = {"x": [classes(4, [0, 1, 2]), classes(4, [3])], "y": [classes(4, [0, 2, 2]), classes(4, [1])]}
    return C.edit_distance_error(x, y, 1, 2, 3, True, [3]), data


@model
def sampled_softmax():
    """Scores of a few classes that are drawn, corrected by how often they are."""
    x, y = C.input_variable(3, name="x"), C.input_variable(6, name="y")
    weights = C.parameter((6, 3), init=numbers(6, 3), name="W")
    frequencies = numbers(6, low=1, high=3)
    drawn = C.random_sample(frequencies, 4, True, seed=3)
    often = C.random_sample_inclusion_frequency(frequencies, 4, True, seed=5)
    correction = C.times_transpose(C.log(often), drawn)
    noise = C.times_transpose(x, C.times(drawn, weights)) - correction
    true = C.reduce_sum(C.element_times(C.times(y, weights), x)) - C.reduce_sum(C.element_times(y, C.log(often)))
    return C.log_add_exp(true, C.reduce_log_sum_exp(noise)) - true, {"x": numbers(2, 3), "y": classes(6, [2, 5])}


@model
def noise_contrastive():
    x, y = C.input_variable(3, name="x"), C.input_variable(5, is_sparse=True, name="y")
    W, b = C.parameter((5, 3), init=numbers(5, 3), name="W"), C.parameter((5, 1), init=numbers(5, 1), name="b")
    loss = C.nce_loss(W, b, x, y, numbers(5, low=1, high=2), num_samples=4, seed=3)
    return loss, {"x": numbers(2, 3), "y": sparse(5, [3, 0])}


@model
def per_step():
    x, y = C.sequence.input_variable(3, name="x"), C.sequence.input_variable(3, name="y")
    loss = C.cross_entropy_with_softmax(C.layers.Dense(3)(x), y)
    return C.reduce_sum(loss, axis=C.Axis.all_axes()), {"x": steps(3), "y": [abs(part) for part in steps(3)]}
