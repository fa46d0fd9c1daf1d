"""Recurrences: steps, layers of them, attention, and decoders that go on from what they have said."""

import cntk as C

from .model import classes, model, numbers, steps


def sequence(width=3):
    return C.sequence.input_variable(width, name="x"), {"x": steps(width)}


@model
def plain_recurrence():
    x, data = sequence()
    return C.layers.Recurrence(C.layers.RNNStep(2))(x), data


@model
def lstm():
    x, data = sequence()
    return C.sequence.last(C.layers.Recurrence(C.layers.LSTM(2), name="memory")(x)), data


@model
def lstm_with_everything():
    x, data = sequence()
    return C.layers.Recurrence(C.layers.LSTM(3, 2, use_peepholes=True, enable_self_stabilization=True), initial_state=0.1)(x), data


@model
def lstm_with_both_states():
    x, data = sequence()
    h, c = C.layers.Recurrence(C.layers.LSTM(2), return_full_state=True)(x).outputs
    return C.combine([h, C.sequence.last(c)]), data


@model
def gru():
    x, data = sequence()
    return C.layers.Sequential([C.layers.Recurrence(C.layers.GRU(2), go_backwards=True), C.layers.Stabilizer()])(x), data


@model
def bidirectional():
    x, data = sequence()
    both = (C.layers.Recurrence(C.layers.LSTM(2)), C.layers.Recurrence(C.layers.LSTM(2), go_backwards=True))
    return C.layers.Sequential([both, C.splice, C.layers.Dense(2)])(x), data


@model
def stacked():
    x, data = sequence()
    layers = [C.layers.Recurrence(C.layers.GRU(3)), C.layers.Recurrence(C.layers.RNNStep(2)), C.sequence.last, C.layers.Dense(2)]
    return C.layers.Sequential(layers)(x), data


@model
def folded():
    x, data = sequence()
    return C.combine([C.layers.Fold(C.plus)(x), C.layers.Fold(C.element_max, initial_state=-5)(x)]), data


@model
def delays():
    x, data = sequence()
    far = C.sequence.past_value(x, initial_state=0.5, time_step=2)
    near = C.sequence.future_value(x, initial_state=C.constant([1, 2, 3]))
    return C.combine([far, near, C.sequence.delay(x, initial_state=0, time_step=-1), C.layers.Delay(2)(x)]), data


@model
def running_sum():
    x, data = sequence()
    total = C.placeholder(name="total")
    sums = C.plus(x, C.sequence.past_value(total), name="sums")
    return sums.replace_placeholder(sums.output), data


@model
def recurrence_by_hand():
    x, data = sequence(2)
    W, R = C.parameter((2, 3), init=numbers(2, 3), name="W"), C.parameter((3, 3), init=numbers(3, 3), name="R")
    before = C.placeholder(3, dynamic_axes=x.dynamic_axes, name="before")
    h = C.tanh(C.times(x, W) + C.times(C.sequence.past_value(before), R))
    return h.replace_placeholders({before: h.output}), data


@model
def tagger():
    x = C.sequence.input_variable(6, is_sparse=False, name="x")
    layers = [C.layers.Embedding(3), C.layers.Recurrence(C.layers.LSTM(3)), C.layers.Dense(4, name="tags")]
    return C.layers.Sequential(layers)(x), {"x": [classes(6, [0, 5, 2]), classes(6, [3])]}


@model
def attention():
    encoder = C.sequence.input_variable(3, name="x", sequence_axis=C.Axis("source"))
    decoder = C.sequence.input_variable(2, name="y", sequence_axis=C.Axis("target"))
    attend = C.layers.AttentionModel(4, name="attend")
    memory = C.layers.Recurrence(C.layers.GRU(3))(encoder)
    return attend(memory, decoder), {"x": steps(3), "y": steps(2, lengths=(2, 4, 1))}


@model
def sequence_to_sequence():
    source = C.sequence.input_variable(4, name="x", sequence_axis=C.Axis("source"))
    target = C.sequence.input_variable(5, name="y", sequence_axis=C.Axis("target"))
    thought = C.layers.Fold(C.layers.LSTM(3), return_full_state=True)(source)
    decode = C.layers.RecurrenceFrom(C.layers.LSTM(3))
    h = decode(thought.outputs[0], thought.outputs[1], C.layers.Delay()(target))
    return C.layers.Dense(5)(h), {"x": steps(4), "y": steps(5, lengths=(2, 4, 1))}


@model
def decoder_with_attention():
    source = C.sequence.input_variable(3, name="x", sequence_axis=C.Axis("source"))
    target = C.sequence.input_variable(2, name="y", sequence_axis=C.Axis("target"))
    encode, cell, attend = C.layers.Recurrence(C.layers.GRU(3)), C.layers.GRU(3), C.layers.AttentionModel(2)

    @C.Function
    def decode(heard, said):
        memory = encode(heard)

        @C.Function
        def step(h, word):
            return cell(h, C.splice(word, attend(memory, h)))

        return C.layers.Recurrence(step)(said)

    return decode(source, target), {"x": steps(3), "y": steps(2, lengths=(2, 4, 1))}


@model
def unfolded():
    source = C.sequence.input_variable(2, name="x")
    start = C.sequence.last(source)
    cell = C.layers.Dense(2, activation=C.tanh)
    grow = C.layers.UnfoldFrom(lambda s: cell(s))
    return grow(start, source), {"x": steps(2)}


@model
def windows():
    x, data = sequence(2)
    value, valid = C.layers.PastValueWindow(2, axis=-2)(x).outputs
    return C.combine([value, valid]), data


@model
def optimised_stack():
    """A stack of LSTMs for cuDNN: CNTK computes it on a GPU only, so that the right values come from the graph it converts it to."""
    x, data = sequence()
    W = C.parameter(_weights(3, 2, 2), init=numbers(_weights(3, 2, 2), 1)[:, 0], name="W")
    return C.optimized_rnnstack(x, W, 2, 2, bidirectional=False, recurrent_op="lstm", name="stack"), data


def _weights(width, hidden, layers):
    """Number of an LSTM stack's weights."""
    return sum(4 * hidden * (below + hidden + 2) for below in [width] + [hidden] * (layers - 1))
