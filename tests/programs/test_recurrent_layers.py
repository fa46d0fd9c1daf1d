"""Recurrent layers: against numbers of CNTK 2.7, against loops written out in NumPy, and against finite differences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import cntk as C
from cntk.layers import (
    GRU,
    LSTM,
    AttentionModel,
    Delay,
    Dense,
    Fold,
    ForwardDeclaration,
    PastValueWindow,
    Recurrence,
    RecurrenceFrom,
    RNNStep,
    RNNUnit,
    Sequential,
    UnfoldFrom,
)
from cntk.layers.typing import Sequence, Tensor
from cntk.testing import assert_close
from cntk.testing.tolerances import GRADIENTS, Tolerance

MEASURED = json.loads((Path(__file__).resolve().parents[1] / "data" / "recurrent_layers.json").read_text(encoding="utf-8"))
"""What CNTK 2.7 computes in float32 for the layers of :data:`LAYERS`, with data and parameters that :func:`waves` makes.

Gradients are those of the sum of squares: in full for inputs, for parameters their product with a wave.
"""
SIX_DIGITS = Tolerance(1e-5, 5e-6)
LENGTHS = (2, 4, 1)
OTHER_LENGTHS = (3, 1, 2)


def waves(*shape: int, k: int = 0) -> Any:
    """Numbers between -1 and 1, others for each *k*."""
    return np.sin(0.7 * np.arange(np.prod(shape, dtype=int)) + 1.3 * k + 0.4).reshape(shape)


def sequences(dim: int, lengths: Any, k: int) -> list[Any]:
    return [waves(length, dim, k=k + 10 * i) for i, length in enumerate(lengths)]


class Inputs:
    """Variables, and data for them: two kinds of sequences, and two values without a sequence axis."""

    def __init__(self, dtype: Any = np.float64) -> None:
        other = C.Axis("other")
        self.x = C.sequence.input_variable(3, dtype, needs_gradient=True, name="x")
        self.y = C.sequence.input_variable(2, dtype, needs_gradient=True, sequence_axis=other, name="y")
        self.s = C.input_variable(2, dtype, needs_gradient=True, name="s")
        self.t = C.input_variable(2, dtype, needs_gradient=True, name="t")
        values = {
            self.x: sequences(3, LENGTHS, 1),
            self.y: sequences(2, OTHER_LENGTHS, 4),
            self.s: waves(3, 2, k=2),
            self.t: waves(3, 2, k=3),
        }
        self.data = {variable: [np.asarray(item, dtype) for item in items] for variable, items in values.items()}

    def feed(self, function: Any, of: Any = range(3)) -> dict[Any, Any]:
        """Data for the arguments of a function: the samples numbered in *of*."""
        chosen = {variable: [self.data[variable][i] for i in of] for variable in function.arguments}
        return {variable: items if len(variable.dynamic_axes) == 2 else np.stack(items) for variable, items in chosen.items()}


def set_parameters(function: Any) -> None:
    for k, parameter in enumerate(function.parameters):
        value = 0.8 * waves(*parameter.shape, k=k) if parameter.shape else parameter.value * (1 + 0.1 * k)
        parameter.value = np.asarray(value, parameter.dtype)


def made(layer: Callable[[Inputs], Any], dtype: Any = np.float64) -> tuple[Any, Inputs]:
    """A layer applied to inputs, with parameters that are waves."""
    inputs = Inputs(dtype)
    with C.default_options(dtype=dtype):
        function = layer(inputs)
    set_parameters(function)
    return function, inputs


def flat(value: Any) -> Any:
    return np.concatenate([np.ravel(item) for item in value])


def masked_window(x: Any) -> Any:
    value, valid = PastValueWindow(3, axis=-2)(x).outputs
    return value * valid


LAYERS: dict[str, Callable[[Inputs], Any]] = {
    "rnn": lambda of: Recurrence(RNNStep(2))(of.x),
    "rnn tanh, backwards": lambda of: Recurrence(RNNStep(2, activation=C.tanh), go_backwards=True)(of.x),
    "rnn projected, stabilized": lambda of: Recurrence(RNNStep(2, cell_shape=3, enable_self_stabilization=True))(of.x),
    "lstm": lambda of: Recurrence(LSTM(2))(of.x),
    "lstm backwards": lambda of: Recurrence(LSTM(2), go_backwards=True)(of.x),
    "lstm with peepholes": lambda of: Recurrence(LSTM(2, use_peepholes=True))(of.x),
    "lstm stabilized": lambda of: Recurrence(LSTM(2, enable_self_stabilization=True))(of.x),
    "lstm projected": lambda of: Recurrence(LSTM(2, cell_shape=3))(of.x),
    "lstm with everything": lambda of: Recurrence(
        LSTM(2, cell_shape=3, use_peepholes=True, enable_self_stabilization=True, activation=C.softsign)
    )(of.x),
    "lstm from constants": lambda of: Recurrence(LSTM(2), initial_state=(0.5, -0.25))(of.x),
    "lstm, both states": lambda of: C.splice(*Recurrence(LSTM(2), return_full_state=True)(of.x).outputs),
    "lstm both ways": lambda of: Sequential([(Recurrence(LSTM(2)), Recurrence(LSTM(2), go_backwards=True)), C.splice])(of.x),
    "two layers of lstm": lambda of: Sequential([Recurrence(LSTM(2)), Recurrence(LSTM(3))])(of.x),
    "gru": lambda of: Recurrence(GRU(2))(of.x),
    "gru backwards": lambda of: Recurrence(GRU(2), go_backwards=True)(of.x),
    "gru stabilized": lambda of: Recurrence(GRU(2, enable_self_stabilization=True))(of.x),
    "lstm from data": lambda of: RecurrenceFrom(LSTM(2))(of.s, of.t, of.x),
    "lstm backwards from data": lambda of: RecurrenceFrom(LSTM(2), go_backwards=True)(of.s, of.t, of.x),
    "gru from the end of a sequence": lambda of: RecurrenceFrom(GRU(2))(of.y, of.x),
    "gru backwards from the start of a sequence": lambda of: RecurrenceFrom(GRU(2), go_backwards=True)(of.y, of.x),
    "fold of lstm": lambda of: Fold(LSTM(2))(of.x),
    "fold of lstm, both states, backwards": lambda of: C.splice(*Fold(LSTM(2), go_backwards=True, return_full_state=True)(of.x).outputs),
    "fold of gru": lambda of: Fold(GRU(2), initial_state=0.3)(of.x),
    "delay": lambda of: Delay(2, initial_state=0.5)(of.x),
    "delay into the future": lambda of: Delay(-1)(of.x),
    "window": lambda of: masked_window(of.x),
    "unfold": lambda of: UnfoldFrom(lambda h: C.tanh(h + 0.5))(of.s, of.x),
    "unfold of an output and a state": lambda of: UnfoldFrom(lambda h: (h * 2, h * 0.5))(of.s, of.x),
    "unfold to the end": lambda of: UnfoldFrom(
        lambda h: h * 1.5 + 0.2, until_predicate=lambda h: C.greater(C.reduce_max(C.abs(h)), 2), length_increase=1.5
    )(of.s, of.x),
    "attention": lambda of: AttentionModel(4)(of.x, of.y),
    "attention without stabilizers": lambda of: AttentionModel(4, enable_self_stabilization=False)(of.x, of.y),
    "attention to a window": lambda of: C.reshape(attention_to_a_window(of), 3),
    # CNTK 2.7 cannot compute these.
    "gru projected": lambda of: Recurrence(GRU(2, cell_shape=3, enable_self_stabilization=True))(of.x),
    "unfold of two states": lambda of: UnfoldFrom(lambda h, c: (C.tanh(h + 0.5 * c), C.sin(c - h)))(of.s, of.t, of.x),
}


def attention_to_a_window(of: Inputs) -> Any:
    with pytest.warns(DeprecationWarning, match="attention_span"):
        model = AttentionModel(4, attention_span=3, attention_axis=-2)
    return model(of.x, of.y)


# ---- numbers of CNTK ----


@pytest.mark.parametrize("name", MEASURED)
def test_parameters_values_and_gradients_are_those_of_cntk(name: str) -> None:
    expected = MEASURED[name]
    function, inputs = made(LAYERS[name])
    parameters, feed = function.parameters, inputs.feed(function)
    assert [f"{p.name} {list(p.shape)}" for p in parameters] == expected["parameters"]
    assert_close(flat(function.eval(feed)), expected["value"], "value", SIX_DIGITS)
    wanted = [*feed, *parameters]
    gradients = C.square(function).grad(feed, wrt=wanted)
    found = gradients if isinstance(gradients, dict) else {wanted[0]: gradients}
    for variable in feed:
        assert_close(flat(found[variable]), expected["gradients"][variable.name], f"gradient of {variable.name}", SIX_DIGITS)
    for parameter, projected in zip(parameters, expected["projected"], strict=True):
        gradient = np.ravel(found[parameter])
        assert_close(gradient @ waves(gradient.size), projected, f"gradient of {parameter.name}", Tolerance(1e-5, 3e-5))


# ---- loops written out ----


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def run(step: Callable[..., Any], sequence: Any, *states: Any, backwards: bool = False) -> Any:
    """The first state after each step, in the order of the steps."""
    found = []
    for x in sequence[::-1] if backwards else sequence:
        states = step(*states, x)
        found.append(states[0])
    return np.stack(found[::-1] if backwards else found)


def rnn_step(b: Any, W: Any, H: Any) -> Callable[..., Any]:
    return lambda h, x: (np.tanh(x @ W + h @ H + b),)


def gru_step(b: Any, W: Any, H: Any, H1: Any, P: Any = None) -> Callable[..., Any]:
    def step(*args: Any) -> Any:
        h, c, x = args if P is not None else (args[0], *args)
        z, r, candidate = np.split(x @ W + b, 3)
        hz, hr = np.split(h @ H, 2)
        z, r = sigmoid(z + hz), sigmoid(r + hr)
        c = (1 - z) * np.tanh(candidate + (r * c) @ H1) + z * c
        return (c,) if P is None else (c @ P, c)

    return step


def lstm_step(b: Any, W: Any, H: Any, Ci: Any = 0, Cf: Any = 0, Co: Any = 0, P: Any = None) -> Callable[..., Any]:
    def step(h: Any, c: Any, x: Any) -> Any:
        i, g, f, o = np.split(b + x @ W + h @ H, 4)
        new = sigmoid(f + Cf * c) * c + sigmoid(i + Ci * c) * np.tanh(g)
        result = sigmoid(o + Co * new) * np.tanh(new)
        return (result if P is None else result @ P), new

    return step


STEPS: dict[str, tuple[Callable[[], Any], Callable[..., Any], tuple[int, ...]]] = {
    "rnn": (lambda: RNNStep(4, activation=C.tanh), rnn_step, (4,)),
    "gru": (lambda: GRU(4), gru_step, (4,)),
    "gru projected": (lambda: GRU(4, cell_shape=5), gru_step, (4, 5)),
    "lstm": (lambda: LSTM(4), lstm_step, (4, 4)),
    "lstm with peepholes": (lambda: LSTM(4, use_peepholes=True), lstm_step, (4, 4)),
    "lstm projected": (lambda: LSTM((4,), cell_shape=(5,), use_peepholes=True), lstm_step, (4, 5)),
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_recurrence_is_the_loop_written_out(name: str, backwards: bool, dtype: Any) -> None:
    block, step, sizes = STEPS[name]
    function, inputs = made(lambda of: Recurrence(block(), go_backwards=backwards)(of.x), dtype)
    loop = step(**{p.name: p.value.astype(np.float64) for p in function.parameters})
    found = function.eval(inputs.feed(function))
    for actual, sequence in zip(found, inputs.data[inputs.x], strict=True):
        expected = run(loop, sequence.astype(np.float64), *(np.zeros(size) for size in sizes), backwards=backwards)
        assert_close(actual, expected, name)


@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_weights_multiply_sparse_steps(name: str) -> None:
    block = STEPS[name][0]()
    dense, sparse = C.sequence.input_variable(6), C.sequence.input_variable(6, is_sparse=True)
    fold = Fold(block)
    expected = fold(dense)
    set_parameters(expected)
    items = [np.eye(6, dtype=np.float32)[[2, 0, 5]], np.eye(6, dtype=np.float32)[[1]], np.eye(6, dtype=np.float32)[[3, 3]]]
    rows = [scipy.sparse.csr_matrix(item) for item in items]
    of_sparse = fold(sparse)
    assert_close(of_sparse.eval({sparse: rows}), expected.eval({dense: items}), name)
    parameters = expected.parameters
    found, wanted = of_sparse.grad({sparse: rows}, wrt=parameters), expected.grad({dense: items}, wrt=parameters)
    for parameter in parameters:
        gradient = found[parameter]
        assert_close(gradient.toarray() if scipy.sparse.issparse(gradient) else gradient, wanted[parameter], parameter.name)


# ---- gradients ----


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_agree_with_finite_differences(name: str) -> None:
    function, inputs = made(LAYERS[name])
    loss = C.square(function)
    feed = inputs.feed(function)
    wanted = [*feed, *function.parameters]
    gradients = loss.grad(feed, wrt=wanted)
    found = gradients if isinstance(gradients, dict) else {wanted[0]: gradients}
    random, step = np.random.default_rng(1), 1e-5
    for variable in wanted:
        if variable.is_parameter:
            start, direction = variable.value, random.normal(size=variable.shape)
            slope = _parameter_slope(loss, feed, variable, start, step * direction) / step
            assert_close(np.vdot(found[variable], direction), slope, f"{name}: {variable.name}", GRADIENTS)
            continue
        moves = [random.normal(size=np.shape(item)) for item in feed[variable]]
        sums = [flat(loss.eval(feed | {variable: _moved(feed[variable], moves, size)})).sum() for size in (step, -step)]
        assert_close(flat(found[variable]) @ flat(moves), (sums[0] - sums[1]) / (2 * step), f"{name}: {variable.name}", GRADIENTS)


def _moved(data: Any, moves: Any, size: float) -> Any:
    moved = [item + size * move for item, move in zip(data, moves, strict=True)]
    return moved if isinstance(data, list) else np.stack(moved)


def _parameter_slope(loss: Any, feed: Any, parameter: Any, start: Any, change: Any) -> float:
    sums = []
    for sign in (1, -1):
        parameter.value = np.asarray(start + sign * change)
        sums.append(flat(loss.eval(feed)).sum())
    parameter.value = np.asarray(start)
    return (sums[0] - sums[1]) / 2


# ---- minibatches ----


@pytest.mark.parametrize("name", LAYERS)
def test_a_minibatch_computes_what_its_samples_do_alone(name: str) -> None:
    function, inputs = made(LAYERS[name])
    loss, parameters = C.square(function), function.parameters
    together = function.eval(inputs.feed(function))
    whole = _gradients(loss, inputs.feed(function), parameters)
    parts = []
    for part in ([1], [2, 0]):
        alone = function.eval(inputs.feed(function, part))
        for i, value in zip(part, alone, strict=True):
            assert_close(value, together[i], f"{name}: sample {i}")
        parts.append(_gradients(loss, inputs.feed(function, part), parameters))
    for parameter in parameters:
        assert_close(parts[0][parameter] + parts[1][parameter], whole[parameter], f"{name}: gradient of {parameter.name}")


def _gradients(loss: Any, feed: Any, parameters: Any) -> Any:
    return loss.grad(feed, wrt=parameters) if parameters else {}


# ---- what users see ----


def test_blocks_print_their_arguments() -> None:
    assert str(LSTM(3, name="cell")) == (
        "cell: LSTM(dh: Sequence[tensor], dc: Sequence[tensor], x: Sequence[tensor]) -> Tuple[Sequence[tensor], Sequence[tensor]]"
    )
    assert str(GRU(3)) == "GRU(dh: Sequence[tensor], x: Sequence[tensor]) -> Sequence[tensor]"
    assert str(RNNStep(3)) == "RNNStep(dh: Sequence[tensor], x: Sequence[tensor]) -> Sequence[tensor]"


def test_recurrences_print_their_arguments() -> None:
    assert str(Recurrence(LSTM(3))) == "Composite(x: Sequence[tensor]) -> Sequence[tensor]"
    assert str(RecurrenceFrom(LSTM(3))) == "Composite(h: Sequence[tensor], c: Sequence[tensor], x: Sequence[tensor]) -> Sequence[tensor]"
    assert str(Recurrence(LSTM(3), return_full_state=True, name="both")) == (
        "both: Composite(x: Sequence[tensor]) -> Tuple[Sequence[tensor], Sequence[tensor]]"
    )
    x = C.sequence.input_variable(2)
    assert str(Recurrence(GRU(3))(x)) == "Composite(Sequence[Tensor[2]]) -> Sequence[Tensor[3]]"
    assert str(Fold(GRU(3), name="end")(x)) == "end: Composite(Sequence[Tensor[2]]) -> Tensor[3]"
    assert str(Delay(2, name="late")(x)) == "late: Delay(Sequence[Tensor[2]]) -> Sequence[Tensor[2]]"
    assert str(UnfoldFrom(lambda s: s * 2, name="u")) == (
        "u: Composite(initial_state: Sequence[tensor], dynamic_axes_like: Sequence[tensor]) -> Sequence[tensor]"
    )


def test_nodes_of_a_recurrence() -> None:
    x = C.sequence.input_variable(2)
    model = Recurrence(LSTM(3, name="cell"), return_full_state=True, name="rnn")(x)
    nodes = C.logging.depth_first_search(model, lambda node: isinstance(node, C.Function))
    assert [(node.op_name, node.name) for node in nodes] == [("Combine", "rnn"), ("LSTM", "cell"), ("PastValue", ""), ("PastValue", "")]
    assert [output.shape for output in model.outputs] == [(3,), (3,)]
    assert model.cell.W.shape == (2, 12)


def test_attention_weights_are_found_and_sum_to_one() -> None:
    function, inputs = made(lambda of: AttentionModel(4, name="attention")(of.x, of.y))
    assert function.name == "attention"
    weights = C.combine([function.attention_weights])
    for value in weights.eval(inputs.feed(function)):
        assert_close(value.sum(axis=1), np.ones((len(value), 1)), "sum of weights")


def test_options_of_the_scope_reach_the_blocks() -> None:
    with C.default_options(init=0.5, init_bias=0.25, use_peepholes=True, enable_self_stabilization=True, activation=C.relu):
        block = LSTM(2)
        recurrence = Recurrence(RNNStep(2))(C.sequence.input_variable(3))
    assert [p.name for p in block.parameters] == ["b", "W", "H", "alpha", "Co", "alpha", "Cf", "alpha", "Ci"]
    assert (block.b.value == 0.25).all()
    assert (block.Ci.value == 0.5).all()
    assert C.logging.depth_first_search(recurrence, lambda node: isinstance(node, C.Function) and node.op_name == "ReLU", depth=-1)
    with C.default_options(go_backwards=True, initial_state=1):
        backwards = Recurrence(C.plus)(C.sequence.input_variable(1))
    assert_close(backwards.eval([np.array([[1], [2]], np.float32)])[0], [[4], [3]])


def test_rnn_unit_is_the_old_name_of_rnn_step() -> None:
    with pytest.warns(DeprecationWarning, match="RNNStep"):
        block = RNNUnit(2)
    assert str(block) == str(RNNStep(2))


def test_initial_states_may_be_arrays_and_parameters() -> None:
    x, start = C.sequence.input_variable(2), C.Parameter(2, init=3)
    data = [np.array([[1, 2], [3, 4]], np.float32)]
    assert_close(Recurrence(C.plus, initial_state=np.array([0, 0.5], np.float32))(x).eval(data)[0], [[1, 2.5], [4, 6.5]])
    learned = Fold(C.plus, initial_state=start)(x)
    assert_close(learned.eval(data), [[7, 9]])
    assert_close(learned.grad(data, wrt=[start]), [1, 1])


def test_a_state_may_be_what_another_one_was_before() -> None:
    # CNTK 2.7: 7, 6, 9.
    x = C.sequence.input_variable(1)
    swapped = Recurrence(lambda p, q, x: (q, p + x), initial_state=(C.constant([5]), C.constant([7])))(x)
    assert_close(swapped.eval([np.float32([[1], [2], [3]])])[0].ravel(), [7, 6, 9])


def test_a_loop_closed_by_hand() -> None:
    x = C.sequence.input_variable(2)
    before = ForwardDeclaration()
    count = C.sequence.past_value(before, initial_state=0) + C.sequence.broadcast_as(1, x)
    before.resolve_to(count)
    length = C.sequence.last(count)
    assert_close(length.eval([np.zeros((3, 2), np.float32), np.zeros((1, 2), np.float32)]).ravel(), [3, 1])


def test_layers_in_a_chain_share_parameters_between_calls() -> None:
    model = Sequential([Recurrence(LSTM(2)), Dense(1)])
    model.update_signature(Sequence[Tensor[3]])
    x = C.sequence.input_variable(3)
    assert model(x).parameters == model.parameters
    assert model.shape == (1,)


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (ValueError, lambda: LSTM((2, 3))),
        (ValueError, lambda: GRU(2, cell_shape=(2, 2))),
        (ValueError, lambda: RNNStep(())),
        (TypeError, lambda: Recurrence(lambda h, c, x: h * c * x)),
        (TypeError, lambda: RecurrenceFrom(lambda h, x: (h * x, h + x))),
        (TypeError, lambda: Recurrence(3)),
        (TypeError, lambda: Recurrence(LSTM(2), initial_state=(1, 2, 3))),
        (TypeError, lambda: Recurrence(lambda h, x: h * x * C.input_variable(1))),
        (TypeError, lambda: Recurrence(lambda h, x: h * x * C.Parameter(1))),
        (TypeError, lambda: UnfoldFrom(lambda s, t: s * t)),
        (TypeError, lambda: UnfoldFrom(lambda s: (s, s * 2, s * 3))),
        (ValueError, lambda: AttentionModel(4, attention_span=3)),
        (ValueError, lambda: AttentionModel(4, attention_axis=-2)),
        (ValueError, lambda: AttentionModel(4, attention_span=0, attention_axis=-2)),
    ],
)
def test_wrong_arguments_are_refused(error: type[Exception], make: Callable[[], Any]) -> None:
    with pytest.raises(error):
        make()
