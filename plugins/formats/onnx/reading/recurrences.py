"""Readers of ONNX's recurrences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....ops import activation, arithmetic, comparison, delay, elementary, slicing
from ....ops.product import times
from .arrays import (
    Array,
    Unsupported,
    batched,
    cast,
    concat,
    counting,
    made,
    numbers_to,
    reshape,
    slice_,
    static,
    transpose,
    unsqueeze,
)
from .elementary import read_less
from .importer import Operator
from .sequences import Steps, end_of, from_steps
from .sizes import Size

Function1 = Callable[[Any], Any]

ACTIVATIONS: dict[str, Callable[[float | None, float | None], Function1]] = {
    "affine": lambda a, b: lambda x: arithmetic.plus(arithmetic.element_times(x, 1 if a is None else a), b or 0),
    "elu": lambda a, b: lambda x: activation.elu(x, 1.0 if a is None else a),
    "hardsigmoid": lambda a, b: lambda x: activation.hard_sigmoid(x, 0.2 if a is None else a, 0.5 if b is None else b),
    "leakyrelu": lambda a, b: lambda x: activation.leaky_relu(x, 0.01 if a is None else a),
    "relu": lambda a, b: activation.relu,
    "scaledtanh": lambda a, b: (
        lambda x: arithmetic.element_times(activation.tanh(arithmetic.element_times(x, b or 1)), 1 if a is None else a)
    ),
    "sigmoid": lambda a, b: activation.sigmoid,
    "softplus": lambda a, b: activation.softplus,
    "softsign": lambda a, b: activation.softsign,
    "tanh": lambda a, b: activation.tanh,
    "thresholdedrelu": lambda a, b: lambda x: arithmetic.element_times(x, comparison.greater(x, 1 if a is None else a)),
}
"""Activations by name, made from alpha and beta."""


class Cell(NamedTuple):
    """What the step of a recurrence is computed with, of one direction.

    Attributes:
        w, r: the weights of the operand and of the state, transposed.
        wb, rb: their biases; None where there are none.
        p: the weights of peepholes; None where there are none.
        functions: the activations.
        hidden: size of the state.
        node: the node.
    """

    w: Any
    r: Any
    wb: Any
    rb: Any
    p: Any
    functions: Sequence[Function1]
    hidden: int
    node: Operator

    def operand(self, x: Any) -> Any:
        """The operand's share of what is computed for all gates at once."""
        return _plus(times(x, self.w), self.wb)

    def clipped(self, x: Any) -> Any:
        """What goes into an activation, within the bounds that the node has."""
        bound = self.node.attribute("clip")
        return x if bound is None else elementary.clip(x, -bound, bound)

    def part(self, x: Any, number: int) -> Any:
        """A gate's share of what is computed for all gates at once."""
        return slicing.slice(x, -1, number * self.hidden, (number + 1) * self.hidden)


Step = Callable[[Cell, Any, Sequence[Any]], list[Any]]


def _rnn_step(cell: Cell, x: Any, states: Sequence[Any]) -> list[Any]:
    (h,) = states
    return [cell.functions[0](cell.clipped(_plus(_plus(cell.operand(x), times(h, cell.r)), cell.rb)))]


def _gru_step(cell: Cell, x: Any, states: Sequence[Any]) -> list[Any]:
    (h,) = states
    f, g = cell.functions
    size, x = cell.hidden, cell.operand(x)
    gates, new = slicing.slice(cell.r, -1, 0, 2 * size), slicing.slice(cell.r, -1, 2 * size, 3 * size)
    bias = [None] * 3 if cell.rb is None else [cell.part(cell.rb, number) for number in range(3)]
    both = times(h, gates)
    z = f(cell.clipped(_plus(_plus(cell.part(x, 0), cell.part(both, 0)), bias[0])))
    r = f(cell.clipped(_plus(_plus(cell.part(x, 1), cell.part(both, 1)), bias[1])))
    if cell.node.attribute("linear_before_reset", 0):
        state = arithmetic.element_times(r, _plus(times(h, new), bias[2]))
    else:
        state = _plus(times(arithmetic.element_times(r, h), new), bias[2])
    n = g(cell.clipped(arithmetic.plus(cell.part(x, 2), state)))
    return [arithmetic.plus(arithmetic.element_times(arithmetic.minus(1, z), n), arithmetic.element_times(z, h))]


def _lstm_step(cell: Cell, x: Any, states: Sequence[Any]) -> list[Any]:
    h, c = states
    f, g, last = cell.functions
    total = _plus(_plus(cell.operand(x), times(h, cell.r)), cell.rb)
    i_in, o_in, f_in, c_in = (cell.part(total, number) for number in range(4))
    p = [None] * 3 if cell.p is None else [cell.part(cell.p, number) for number in range(3)]
    i = f(cell.clipped(_peeped(i_in, p[0], c)))
    forget = arithmetic.minus(1, i) if cell.node.attribute("input_forget", 0) else f(cell.clipped(_peeped(f_in, p[2], c)))
    new = arithmetic.plus(arithmetic.element_times(forget, c), arithmetic.element_times(i, g(cell.clipped(c_in))))
    o = f(cell.clipped(_peeped(o_in, p[1], new)))
    return [arithmetic.element_times(o, last(new)), new]


def _plus(x: Any, bias: Any) -> Any:
    return x if bias is None else arithmetic.plus(x, bias)


def _peeped(x: Any, weights: Any, state: Any) -> Any:
    return x if weights is None else arithmetic.plus(x, arithmetic.element_times(weights, state))


DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def _functions(node: Operator, directions: int) -> list[list[Function1]]:
    """The activations of each direction."""
    names = node.attribute("activations") or DEFAULTS[node.op_type] * directions
    each = len(DEFAULTS[node.op_type])
    if len(names) != each * directions:
        raise Unsupported(f"{len(names)} activations, expected {each * directions}")
    alphas, betas = list(node.attribute("activation_alpha", [])), list(node.attribute("activation_beta", []))
    made_of = []
    for name in names:
        key = name.lower()
        if key not in ACTIVATIONS:
            raise Unsupported(f"the activation {name!r:.40}")
        alpha = alphas.pop(0) if alphas and key in WITH_ALPHA else None
        beta = betas.pop(0) if betas and key in WITH_BETA else None
        made_of.append(ACTIVATIONS[key](alpha, beta))
    return [made_of[at * each : (at + 1) * each] for at in range(directions)]


WITH_ALPHA = {"affine", "elu", "hardsigmoid", "leakyrelu", "scaledtanh", "thresholdedrelu"}
WITH_BETA = {"affine", "hardsigmoid", "scaledtanh"}


def read_recurrence(
    node: Operator,
    step: Step,
    gates: int,
    x: Array,
    w: Array,
    r: Array,
    bias: Array | None,
    lengths: Array | None,
    initial: Sequence[Array | None],
    peepholes: Array | None = None,
) -> tuple[Array, ...]:
    """All results of a recurrence: the states of all steps, and the last ones."""
    samples_first = bool(node.attribute("layout", 0))
    if samples_first:
        x = transpose(x, [1, 0, 2])
        initial = [None if one is None else transpose(one, [1, 0, 2]) for one in initial]
    how = node.attribute("direction", "forward")
    if how not in ("forward", "reverse", "bidirectional"):
        raise Unsupported(f"the direction {how!r:.40}")
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[how]
    hidden, dtype = int(r.dims[2]), x.dtype
    if w.dims[1] != gates * hidden or r.dims[1] != gates * hidden:
        raise Unsupported(
            f"weights of the shapes {list(w.dims)} and {list(r.dims)}; expected {gates} * {hidden} as the second size of both, "
            "since states are as wide as results: ONNX has no projections"
        )
    functions = _functions(node, len(backwards))
    if x.is_known:
        x = Array(x.dims, x.dtype, variable=x.held())
    x = batched(x, 1)
    steps = Steps(x, 0)
    mask = None
    if lengths is not None and not (lengths.is_known and isinstance(x.dims[0], int) and (lengths.numbers == x.dims[0]).all()):
        mask = _mask(node, x, lengths)
    mask_steps = None if mask is None else Steps(mask, 0, steps).variable
    outputs, ends = [], []
    for direction, reverse in enumerate(backwards):

        def own(array: Array | None, direction: int = direction) -> Array | None:
            return None if array is None else reshape(slice_(array, 0, direction, direction + 1), array.dims[1:])

        b, p = own(bias), own(peepholes)
        wide = gates * hidden
        cell = Cell(
            _weights(own(w), x),
            _weights(own(r), x),
            None if b is None else static(slice_(b, 0, 0, wide)).held(x.storage),
            None if b is None else static(slice_(b, 0, wide, 2 * wide)).held(x.storage),
            None if p is None else static(p).held(x.storage),
            functions[direction],
            hidden,
            node,
        )
        begin = [_begin(own(one), x.storage) for one in initial]
        states = _run(cell, step, steps, mask_steps, begin, reverse=reverse)
        shown = states[0] if mask_steps is None else arithmetic.element_times(states[0], mask_steps)
        outputs.append(from_steps(shown, [x.dims[0], x.dims[1], hidden], 0, dtype, steps, 1))
        ends.append([made(end_of(state, reverse=reverse), [x.dims[1], hidden], dtype, 0) for state in states])
    y = concat([unsqueeze(one, [1]) for one in outputs], 1)
    last = [concat([unsqueeze(one[at], [0]) for one in ends], 0) for at in range(len(initial))]
    if samples_first:
        y, last = transpose(y, [2, 0, 1, 3]), [transpose(one, [1, 0, 2]) for one in last]
    return y, *last


def _weights(array: Array | None, x: Array) -> Any:
    if array is None:
        raise Unsupported("the weights are missing")
    return transpose(static(array), [1, 0]).held(x.storage)


def _begin(state: Array | None, storage: Any) -> Any:
    """The state to begin with, of each sample or of all."""
    if state is None:
        return 0
    if state.is_known and state.known.shape[0] == 1:
        return reshape(Array(state.known.shape, state.dtype, state.known), [state.known.shape[1]]).held(storage)
    return batched(state).held(storage)


def _mask(node: Operator, x: Array, lengths: Array) -> Array:
    """1 for the steps that are within the length of a sample, 0 for those behind: [steps, samples, 1]."""
    count = x.dims[0]
    numbers = numbers_to(count) if isinstance(count, Size) else counting(count)
    within = read_less(node, reshape(numbers, [-1, 1]), reshape(lengths, [1, lengths.dims[0]]))
    mask = unsqueeze(cast(within, x.dtype), [2])
    if mask.is_known:
        mask = Array(mask.dims, mask.dtype, variable=mask.held(x.storage))
    return batched(mask, 1)


def _run(cell: Cell, step: Step, steps: Steps, mask: Any, begin: Sequence[Any], *, reverse: bool) -> list[Any]:
    """The states of all steps."""
    before = [steps.placeholder((cell.hidden,), steps.variable.dtype) for _ in begin]
    shift = delay.future_value if reverse else delay.past_value
    old = [shift(place, initial) for place, initial in zip(before, begin, strict=True)]
    new = step(cell, steps.variable, old)
    if mask is not None:
        new = [comparison.element_select(mask, one, was) for one, was in zip(new, old, strict=True)]
    pairs = {place: one.output for place, one in zip(before, new, strict=True)}
    for one in new:
        one.replace_placeholders({place: pairs[place] for place in before if place in one.placeholders})
    return [one.output for one in new]


def read_rnn(
    node: Operator, x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None, initial: Array | None = None
) -> tuple[Array, ...]:
    return read_recurrence(node, _rnn_step, 1, x, w, r, b, lengths, [initial])


def read_gru(
    node: Operator, x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None, initial: Array | None = None
) -> tuple[Array, ...]:
    return read_recurrence(node, _gru_step, 3, x, w, r, b, lengths, [initial])


def read_lstm(
    node: Operator,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    peepholes: Array | None = None,
) -> tuple[Array, ...]:
    return read_recurrence(node, _lstm_step, 4, x, w, r, b, lengths, [initial_h, initial_c], peepholes)
