"""Makes models, saves them in the format of CNTK's first version, and says whether saved ones compute what these do.

    python make.py write FOLDER [name ...]     saves models, and expected.json with their outputs
    python make.py check FOLDER [name ...]     loads models, and compares their outputs with expected.json

It runs under CNTK 2.7 (Python 3.6) as under this package, so that models cross over in both directions.
"""

import json
import os
import sys

import numpy as np

import cntk as C

MODELS = {}


def model(build):
    MODELS[build.__name__.strip("_")] = build
    return build


def x(*shape, **more):
    return C.input_variable(shape, name="x", **more)


def y(*shape, **more):
    return C.input_variable(shape, name="y", **more)


def sequence(*shape, **more):
    return C.sequence.input_variable(shape, name="x", **more)


def values(*shape):
    return np.sin(1 + np.arange(np.prod(shape))).reshape(shape).astype(np.float32)


def parameter(*shape, **more):
    return C.parameter(init=values(*shape), **more)


@model
def unary():
    v = x(3)
    names = "sigmoid tanh relu exp log sqrt floor abs reciprocal sin cos sinh cosh asin acos negate softplus softsign round ceil square"
    return C.splice(*[getattr(C, name)(v) for name in names.split()], axis=0)


@model
def leaky():
    v = x(4) - 0.5
    return C.splice(C.leaky_relu(v), C.param_relu(parameter(4), v), C.hard_sigmoid(v, 0.4, 0.3), axis=0)


@model
def binary():
    v, w = x(3), y(3)
    names = "plus minus element_times element_divide log_add_exp element_max element_min equal not_equal less less_equal greater"
    return C.splice(*[getattr(C, name)(v, w) for name in names.split()], C.greater_equal(v, w), axis=0)


@model
def broadcasting():
    return x(2, 3) * parameter(3) + C.constant([[1.0], [2.0]]) - 0.25


@model
def dense():
    h = C.relu(C.times(x(3), parameter(3, 4, name="W1")) + parameter(4, name="b1"), name="h")
    return C.plus(C.times(h, parameter(4, 2, name="W2")), parameter(2, name="b2"), name="z")


@model
def shared():
    W = parameter(3, 3, name="W")
    return C.tanh(C.times(C.tanh(C.times(x(3), W)), W) + C.times(y(3), W))


@model
def double():
    v = C.input_variable(2, dtype=np.float64, name="x")
    return C.times(v, C.parameter(init=np.float64([[1, 2], [3, 1 / 3.0]]))) + C.constant(np.float64([0.1, 0.7]))


@model
def sparse():
    return C.times(C.input_variable(4, is_sparse=True, name="x"), parameter(4, 3))


@model
def products():
    return C.splice(
        C.reshape(C.times(x(4, 2), parameter(2, 3, 5), output_rank=2), (-1,)),
        C.reshape(C.times(parameter(2, 4), x(4, 2)), (-1,)),
        C.reshape(C.times(x(4, 2), parameter(2, 3), infer_input_rank_to_map=1), (-1,)),
        axis=0,
    )


@model
def times_transpose():
    return C.times_transpose(x(2), parameter(3, 2))


@model
def softmaxes():
    v = x(2, 3)
    return C.splice(C.softmax(v), C.softmax(v, axis=0), C.hardmax(v), C.log_softmax(v), C.log_softmax(v, axis=0), axis=0)


@model
def cross_entropy():
    return C.cross_entropy_with_softmax(x(3), y(3))


@model
def cross_entropy_axis():
    return C.cross_entropy_with_softmax(x(2, 3), y(2, 3), axis=0)


@model
def classification_error():
    return C.classification_error(x(3), y(3))


@model
def squared_error():
    return C.squared_error(x(2, 3), y(2, 3))


@model
def binary_cross_entropy():
    return C.binary_cross_entropy(x(3), y(3))


@model
def reshapes():
    v = x(2, 3, 4)
    return C.splice(C.reshape(v, (4, -1)), C.reshape(C.reshape(v, (6,), 0, 2), (4, 6)), C.reshape(C.flatten(v, 2), (4, 6)), axis=0)


@model
def squeezes():
    return C.squeeze(x(1, 3, 1)) + C.expand_dims(parameter(3), 0)


@model
def slices():
    v = x(4, 5)
    cuts = C.slice(v, 1, 1, 3), C.slice(v, [0, 1], [0, -2], [4, 0]), C.slice(v, -1, -3, -1)
    return C.splice(*cuts, axis=0)


@model
def splices():
    inner = C.splice(x(2, 3), y(2, 3), axis=-1)
    return C.splice(inner, C.splice(y(2, 3), x(2, 3), axis=1), axis=-3)


@model
def swapped():
    return C.swapaxes(x(2, 3, 4), 0, 2)


@model
def permuted():
    return C.transpose(x(2, 3, 4), (1, 2, 0))


@model
def reductions():
    v = x(2, 3)
    kinds = C.reduce_sum, C.reduce_max, C.reduce_min, C.reduce_mean, C.reduce_prod, C.reduce_log_sum_exp, C.argmax, C.argmin
    along = [reduce(v, axis=0) for reduce in kinds]
    return C.splice(*along, C.reduce_sum(v, axis=0) + C.reduce_mean(v), C.reduce_max(v, axis=0, keepdims=False), axis=0)


@model
def reduced_axes():
    return C.reduce_sum(x(2, 3, 4), axis=(0, 1))


@model
def reduced_batch():
    return C.reduce_sum(x(1), axis=C.Axis.all_axes())


@model
def convolution():
    return C.convolution(parameter(3, 2, 3, 3), x(2, 4, 5), auto_padding=[False, True, True])


@model
def strided_convolution():
    return C.convolution(parameter(3, 2, 3, 2), x(2, 7, 5), strides=(2, 1), auto_padding=[False, False, True])


@model
def convolution_1d():
    return C.convolution(parameter(3, 2, 3), x(2, 6), auto_padding=[False, True])


@model
def deconvolution():
    filters, padded = parameter(2, 3, 3, 3), [False, True, True]
    return C.convolution_transpose(filters, x(2, 3, 4), strides=(2, 2), auto_padding=padded, output_shape=(3, 6, 8))


@model
def max_pooling():
    return C.pooling(x(2, 5, 6), C.MAX_POOLING, (3, 2), (2, 1))


@model
def average_pooling():
    return C.pooling(x(2, 5, 6), C.AVG_POOLING, (3, 3), (2, 2), auto_padding=[True])


@model
def pooling_with_padding():
    return C.pooling(x(2, 5, 6), C.AVG_POOLING, (3, 3), (2, 2), auto_padding=[False, True], ceil_out_dim=True, include_pad=True)


@model
def unpooling():
    v = x(2, 4, 6)
    return C.unpooling(C.pooling(v, C.MAX_POOLING, (2, 2), (2, 2)), v, C.MAX_UNPOOLING, (2, 2), (2, 2))


@model
def roi_pooling():
    corners = C.constant(np.float32([[[1, 0, 5, 4], [0, 2, 3, 5]]][0]))
    return C.roipooling(x(2, 6, 6), C.element_times(y(2, 4), 0) + corners, C.MAX_POOLING, (2, 2), 0.5)


def normalized(v, count, spatial):
    scale, bias = parameter(count, name="scale"), parameter(count, name="bias")
    mean, variance = C.constant(values(count), name="mean"), C.constant(values(count) ** 2 + 0.5, name="variance")
    return C.batch_normalization(v, scale, bias, mean, variance, spatial, 100, 3, 0.001, running_count=C.constant(7.0))


@model
def batch_normalization():
    return normalized(x(3), 3, False)


@model
def spatial_batch_normalization():
    return normalized(x(2, 3, 4), 2, True)


@model
def dropout():
    return C.dropout(x(4), 0.3, seed=5) * 2


@model
def clip_and_select():
    return C.element_select(C.greater(x(4), 0.5), C.clip(y(4), 0.2, 0.6), C.constant([1.0, 2.0, 3.0, 4.0]))


@model
def past_value():
    return C.sequence.past_value(sequence(2), initial_state=0.5, time_step=2)


@model
def future_value():
    return C.sequence.future_value(sequence(2), C.constant([1.0, 2.0]))


@model
def recurrence():
    v, before = sequence(2), C.placeholder()
    h = C.tanh(C.times(v, parameter(2, 3)) + C.times(C.sequence.past_value(before), parameter(3, 3)), name="h")
    return h.replace_placeholders({before: h.output})


def initialized(f):
    for p in f.parameters:
        p.value = values(*p.shape) * 0.5 if p.shape else np.float32(0.3)
    return f


@model
def lstm():
    return initialized(C.layers.Recurrence(C.layers.LSTM(2))(sequence(3)))


@model
def gru():
    return initialized(C.layers.Recurrence(C.layers.GRU(2))(sequence(3)))


@model
def bidirectional():
    v = sequence(2)
    forward, back = C.layers.Recurrence(C.layers.RNNStep(2)), C.layers.Recurrence(C.layers.RNNStep(2), go_backwards=True)
    return initialized(C.splice(C.sequence.last(forward(v)), C.sequence.first(back(v)), axis=0))


@model
def ends():
    v = sequence(2)
    return C.sequence.broadcast_as(C.sequence.first(v), v) * C.sequence.is_first(v) + C.sequence.broadcast_as(C.sequence.last(v), v)


@model
def sequence_slice():
    return C.sequence.slice(sequence(2), 1, 0) * 2


@model
def gathered():
    v = sequence(2)
    return C.sequence.gather(v, C.greater(C.slice(v, 0, 0, 1), 0.4)) + 1


@model
def two_results():
    v = x(2)
    return C.combine([C.sin(v, name="a"), C.cos(v, name="b")])


@model
def names():
    return C.sin(C.input_variable(2, name="\u0451\u0436"), name="c.d/e[0] \u00e9")


@model
def needs_gradient():
    return C.square(x(2, needs_gradient=True))


@model
def cosine():
    return C.cosine_distance(x(3), y(3))


@model
def negative_samples():
    return C.cosine_distance_with_negative_samples(x(3), y(3), 1, 2)


@model
def edit_distance():
    return C.edit_distance_error(sequence(3), C.sequence.input_variable(3, name="y"), 1, 2, 3, True, [1])


@model
def ranks():
    return C.lambda_rank(x(1), y(1), C.input_variable(1, name="group"))


@model
def gain():
    return C.ndcg_at_1(x(1), y(1), C.input_variable(1, name="group"))


@model
def weighted():
    return C.weighted_binary_cross_entropy(x(1), y(1), C.input_variable(1, name="w"))


@model
def second_best():
    return C.classification_error(x(4), y(4), topN=2)


@model
def connectionist():
    return C.forward_backward(C.labels_to_graph(C.sequence.input_variable(3, name="y")), sequence(3), 2)


@model
def frequencies():
    return C.random_sample_inclusion_frequency(C.constant([1.0, 2.0, 3.0]), 2, True, seed=4) + C.reduce_sum(x(1), axis=C.Axis.all_axes())


@model
def response_normalization():
    return C.local_response_normalization(x(3, 2, 2), 1, 1, 0.5, 0.75)


@model
def image_network():
    h = C.relu(C.convolution(parameter(2, 1, 3, 3), x(1, 6, 6), auto_padding=[False, True, True]) + parameter(2, 1, 1))
    h = normalized(C.pooling(h, C.MAX_POOLING, (2, 2), (2, 2)), 2, True)
    return C.softmax(C.times(h, parameter(2, 3, 3, 4)) + parameter(4))


def feeds(f):
    """Numbers for each input, the same everywhere; those of 'y' name a class."""
    found = {}
    for i, v in enumerate(sorted(f.arguments, key=lambda v: v.name)):
        chance = np.random.RandomState(len(v.name) + i)
        lengths = [3, 2] if len(v.dynamic_axes) > 1 else [1, 1]
        rows = [chance.uniform(0.1, 0.9, (n, *v.shape)).astype(v.dtype) for n in lengths]
        if v.name in ("y", "group") or v.is_sparse:
            rows = [_classes(chance, row) for row in rows]
        if v.is_sparse:
            found[v] = _sparse(rows)
        else:
            found[v] = rows if len(v.dynamic_axes) > 1 else np.concatenate(rows)
    return found


def _classes(chance, row):
    flat = row.reshape(-1, row.shape[-1])
    return np.eye(flat.shape[1], dtype=row.dtype)[chance.randint(flat.shape[1], size=len(flat))].reshape(row.shape)


def _sparse(rows):
    from scipy.sparse import csr_matrix

    return csr_matrix(np.concatenate(rows))


def outputs_of(f):
    """The outputs by name, as flat lists."""
    found = f.eval(feeds(f))
    found = found if isinstance(found, dict) else {f.outputs[0]: found}
    names = {v: v.name if len(found) > 1 else "" for v in found}
    return {names[v]: flat(rows) for v, rows in found.items()}


def flat(rows):
    return [float(f"{n:.9g}") for row in (rows if isinstance(rows, list) else [rows]) for n in np.ravel(row)]


def write(folder, wanted):
    expected = {}
    for name in wanted:
        f = MODELS[name]()
        expected[name] = outputs_of(f)
        C.debugging.save_as_legacy_model(f, os.path.join(folder, name + ".model"))
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(expected, file, sort_keys=True)


def compare(found, expected):
    """The greatest relative error; infinite where the outputs are not the same ones."""
    if sorted(found) != sorted(expected) or any(len(found[name]) != len(expected[name]) for name in found):
        return float("inf")
    return max(np.max(np.abs(np.subtract(found[n], expected[n])) / np.maximum(np.abs(expected[n]), 1e-2)) for n in found)


def check(folder, wanted):
    with open(os.path.join(folder, "expected.json")) as file:
        expected = json.load(file)
    failed = 0
    for name in wanted:
        try:
            error = compare(outputs_of(C.Function.load(os.path.join(folder, name + ".model"))), expected[name])
            verdict = "" if error < 1e-5 else f"  differs by {error:g}"
        except Exception as problem:
            verdict = "  " + str(problem).split("\n")[0][:150]
        failed += verdict != ""
        print(name + verdict)
    print(f"{len(wanted) - failed} of {len(wanted)} models compute what they should")
    return failed


if __name__ == "__main__":
    command, folder = sys.argv[1:3]
    sys.exit({"write": write, "check": check}[command](folder, sys.argv[3:] or sorted(MODELS)))
