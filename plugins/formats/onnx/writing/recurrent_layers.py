"""Recurrences that compute what ONNX's LSTM, GRU and RNN do, found by the form of their graphs, and written as these.

A form is a graph of our own operators with placeholders for weights, states and operand.  A recurrence that is the same graph, operator
by operator, is the layer; any other stays a ``Scan``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.common.shape import Shape
from .....core.graph.nodes import Primitive
from .....core.graph.variable import Constant, Output, Placeholder, Variable
from .....core.operators.delay import Delay
from .....core.operators.op import Op
from .....core.program.ordering import Cycle
from .....core.types.spec import Spec
from ....ops.activation import ReLU, Sigmoid, Softplus, Softsign, Tanh, relu, sigmoid, softplus, softsign, tanh
from ....ops.identity import Cast
from ....ops.product import times
from ....ops.slicing import slice as cut
from ...reader import same_operator
from .loops import initial_states
from .recurrent_operators import in_order, layer
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter

ACTIVATIONS: dict[type[Op], tuple[Any, str]] = {
    Tanh: (tanh, "Tanh"),
    ReLU: (relu, "Relu"),
    Softsign: (softsign, "Softsign"),
    Softplus: (softplus, "Softplus"),
    Sigmoid: (sigmoid, "Sigmoid"),
}
"""Activation functions of layers: by operator our function, and ONNX's name; what gates have as well comes last."""


@dataclass(frozen=True)
class Form:
    """The graph of a layer.

    Attributes:
        op_type: ONNX's operator.
        states: what the delays give, the visible state first.
        results: the new states in the same order.
        leaves: what weights, scales and the operand are called.
        shapes: shapes that weights must have, where a width of the operand is -1.
    """

    op_type: str
    states: tuple[Placeholder, ...]
    results: tuple[Variable, ...]
    leaves: dict[Placeholder, str]
    shapes: dict[str, Shape]


@dataclass(frozen=True)
class Layer:
    """A recurrence that has a form.

    Attributes:
        form: the form.
        activation: ONNX's name of the activation function.
        delays: the delays, in the order of the form's states.
        leaves: what the form's leaves are here, by their names.
        nodes: the operators of the graph that the layer stands for, delays included.
        result: the visible state.
    """

    form: Form
    activation: str
    delays: tuple[Primitive, ...]
    leaves: dict[str, Variable]
    nodes: frozenset[Primitive]
    result: Variable


# ---- forms ---------------------------------------------------------------------------------------


class _Leaves:
    """Placeholders by name, with the shapes that they are to have."""

    def __init__(self) -> None:
        self.made: dict[str, Placeholder] = {}
        self.shapes: dict[str, Shape] = {}

    def __call__(self, name: str, *shape: int) -> Any:
        if name not in self.made:
            self.made[name], self.shapes[name] = Placeholder(Spec(tuple(abs(size) for size in shape), axes=())), shape
        return self.made[name]

    def form(self, op_type: str, states: Sequence[Any], results: Sequence[Any]) -> Form:
        """The form of the graph that computes *results*."""
        names = {leaf: name for name, leaf in self.made.items()}
        return Form(op_type, tuple(states), tuple(result.output for result in results), names, self.shapes)

    def scaled(self, name: str, x: Any, stabilized: bool) -> Any:
        """A value times a learned number, in layers that are stabilised."""
        return self(name) * x if stabilized else x


def _states(size: int, count: int) -> list[Any]:
    return [Placeholder(Spec((size,), axes=())) for _ in range(count)]


def _part(stacked: Any, number: int, size: int) -> Any:
    return cut(stacked, -1, number * size, (number + 1) * size)


@lru_cache(maxsize=256)
def _lstm(size: int, activation: Any, stabilized: bool, peepholes: bool) -> Form:
    leaf, (dh, dc) = _Leaves(), _states(size, 2)
    W, R, b, x = leaf("W", -1, 4 * size), leaf("R", size, 4 * size), leaf("b", 4 * size), leaf("x", -1)
    gates = b + times(x, W) + times(leaf.scaled("scale of R", dh, stabilized), R)
    i, g, f, o = (_part(gates, number, size) for number in range(4))

    def peep(gate: Any, name: str, c: Any) -> Any:
        return gate + leaf(name, size) * leaf.scaled(f"scale of {name}", c, stabilized) if peepholes else gate

    forget, take = sigmoid(peep(f, "Cf", dc)), sigmoid(peep(i, "Ci", dc))
    c = forget * dc + take * activation(g)
    h = sigmoid(peep(o, "Co", c)) * activation(c)
    return leaf.form("LSTM", (dh, dc), (h, c))


@lru_cache(maxsize=256)
def _gru(size: int, activation: Any) -> Form:
    leaf, (dh,) = _Leaves(), _states(size, 1)
    W, R, b, x = leaf("W", -1, 3 * size), leaf("R", size, 2 * size), leaf("b", 3 * size), leaf("x", -1)
    x_part, h_part = b + times(x, W), times(dh, R)
    z = sigmoid(_part(x_part, 0, size) + _part(h_part, 0, size))
    r = sigmoid(_part(x_part, 1, size) + _part(h_part, 1, size))
    candidate = activation(_part(x_part, 2, size) + times(dh * r, leaf("R1", size, size)))
    return leaf.form("GRU", (dh,), ((1 - z) * candidate + z * dh,))


@lru_cache(maxsize=256)
def _rnn(size: int, activation: Any, stabilized: bool) -> Form:
    leaf, (dh,) = _Leaves(), _states(size, 1)
    W, R, b, x = leaf("W", -1, size), leaf("R", size, size), leaf("b", size), leaf("x", -1)
    return leaf.form("RNN", (dh,), (activation(times(x, W) + times(leaf.scaled("scale of R", dh, stabilized), R) + b),))


def _forms(size: int, activation: Any, states: int) -> Iterator[Form]:
    """Forms of layers with so many states."""
    if states == 2:
        yield from (_lstm(size, activation, stabilized, peepholes) for stabilized in (False, True) for peepholes in (False, True))
    elif states == 1:
        yield from (_rnn(size, activation, stabilized) for stabilized in (False, True))
        yield _gru(size, activation)


# ---- finding them --------------------------------------------------------------------------------


def find_layers(to: ModelWriter, cycles: Sequence[Cycle]) -> dict[Cycle, Layer]:
    """The recurrences that ONNX has operators for."""
    found = ((cycle, _found(to, cycle)) for cycle in cycles)
    return {cycle: layer for cycle, layer in found if layer is not None}


def _found(to: ModelWriter, cycle: Cycle) -> Layer | None:
    delays = [node for node in cycle.nodes if isinstance(node.op, Delay)]
    like = to.value_like(delays[0].outputs[0])
    if any(abs(node.op.steps_back) != 1 for node in delays) or len(like.shape) != 1 or like.dtype == np.float64 or len(delays) > 2:
        return None
    kinds = {type(node.op) for node in cycle.nodes}
    for cls, (activation, name) in ACTIVATIONS.items():
        if cls in kinds:
            for form in _forms(like.shape[0], activation, len(delays)):
                for ordered in permutations(delays):
                    layer = _match(to, cycle, form, name, ordered)
                    if layer is not None:
                        return layer
    return None


def _match(to: ModelWriter, cycle: Cycle, form: Form, activation: str, delays: tuple[Primitive, ...]) -> Layer | None:
    pairs: dict[Variable, Variable] = dict(zip(form.states, (node.outputs[0] for node in delays), strict=True))
    results = [to.resolved(node.inputs[0]) for node in delays]
    if not all(_alike(to, one, other, pairs) for one, other in zip(form.results, results, strict=True)):
        return None
    leaves = {form.leaves[one]: other for one, other in pairs.items() if isinstance(one, Placeholder) and one in form.leaves}
    nodes = frozenset(other.owner for one, other in pairs.items() if isinstance(one, Output) and isinstance(other, Output)) | set(delays)
    hidden = [output for node in nodes for output in node.outputs if output is not results[0]]
    if not set(cycle.nodes) <= nodes or any(to.is_read_outside(variable, nodes) for variable in hidden):
        return None
    inside = {output for node in nodes for output in node.outputs}
    if inside.intersection(leaves.values()) or not all(_fits(to, form.shapes[name], name, leaf) for name, leaf in leaves.items()):
        return None
    if any(to.value_like(node.outputs[0]).shape != to.value_like(results[0]).shape for node in delays):
        return None
    return Layer(form, activation, delays, leaves, nodes, results[0])


def _alike(to: ModelWriter, one: Variable, other: Variable, pairs: dict[Variable, Variable]) -> bool:
    """Whether a value is computed as that of a form; *pairs* says which belong together, and is added to."""
    waiting = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        right = to.resolved(right)
        if left in pairs:
            if pairs[left] is not right:
                return False
        elif isinstance(left, Constant):
            number = _uncast(to, right)
            if not isinstance(number, Constant) or not np.array_equal(left.value, number.value):
                return False
        elif isinstance(left, Output):
            if not isinstance(right, Output) or left.index != right.index or not same_operator(left.owner, right.owner):
                return False
            waiting.extend(zip(left.owner.inputs, right.owner.inputs, strict=True))
        pairs[left] = right
    return True


def _uncast(to: ModelWriter, variable: Variable) -> Variable:
    """What a cast is of."""
    return to.resolved(variable.owner.inputs[0]) if isinstance(variable, Output) and isinstance(variable.owner.op, Cast) else variable


def _fits(to: ModelWriter, shape: Shape, name: str, leaf: Variable) -> bool:
    """Whether a leaf has the shape that it must have, and can be an operand of the layer: only the operand has dynamic axes."""
    like = to.value_like(leaf)
    fits = len(like.shape) == len(shape) and all(wanted in (-1, size) for wanted, size in zip(shape, like.shape, strict=True))
    if name != "x":
        return fits and not like.axes
    chosen = to.sparse == "indices" and bool(leaf.spec.sparse)  # a product with one element looks up a row of the weights
    return fits and len(like.axes) == 2 and not chosen


# ---- writing them --------------------------------------------------------------------------------


def write_layer(to: ModelWriter, found: Layer) -> None:
    """Write the operators of a recurrence as one."""
    to.label = ", ".join(node.name or node.uid for node in found.delays)
    result = to.value_like(found.result)
    size = result.shape[0]
    write = {"LSTM": _write_lstm, "GRU": _write_gru, "RNN": _write_rnn}[found.form.op_type]
    leaves = {name: to.value(leaf) for name, leaf in found.leaves.items()}
    weights, attributes = write(to, leaves, size)
    W, R, B, *more = weights
    states = [_initial(to, node) for node in found.delays]
    gates = 1 + (found.form.op_type == "GRU") + 2 * (found.form.op_type == "LSTM")
    direction = "forward" if found.delays[0].op.steps_back > 0 else "reverse"
    made = layer(
        to,
        found.form.op_type,
        to.dense(leaves["x"]),
        size,
        (W, R, B, *states, *more),
        direction=direction,
        activations=(["Sigmoid"] + [found.activation] * (gates - 1))[-gates:] if gates > 1 else [found.activation],
        **attributes,
    )
    to.note(found.result, result.called(made))


def _initial(to: ModelWriter, node: Primitive) -> str:
    """The state before the first step, ``[1, batch, size]``; nothing for zeros."""
    initial = to.resolved(node.inputs[1])
    if isinstance(initial, Constant) and not np.any(initial.value):
        return ""
    like = to.value_like(node.outputs[0])
    (state,) = initial_states(to, node, Value("", like.shape, like.dtype, like.axes[:1]))
    return to.unsqueeze(state, [0])


def _gates(to: ModelWriter, stacked: str, order: Sequence[int]) -> str:
    """Weights ``[1, gates * size, width]`` of those side by side."""
    return to.unsqueeze(in_order(to, to.transpose(stacked, [1, 0]), order), [0])


def _scaled(to: ModelWriter, leaves: dict[str, Value], name: str) -> str:
    """Weights times the number by which what they are multiplied with is scaled."""
    weights, scale = leaves[name].name, leaves.get(f"scale of {name}")
    return weights if scale is None else str(to.node("Mul", weights, scale.name))


def _biases(to: ModelWriter, biases: str, dtype: Any, size: int) -> str:
    """Biases of the operand, and of the state, which are 0: ``[1, 2 * size]``."""
    return to.unsqueeze(to.node("Concat", biases, to.constant(np.zeros(size), dtype), axis=0), [0])


def _write_lstm(to: ModelWriter, leaves: dict[str, Value], size: int) -> tuple[list[str], dict[str, Any]]:
    order = (0, 3, 2, 1)
    W, R = _gates(to, leaves["W"].name, order), _gates(to, _scaled(to, leaves, "R"), order)
    weights = [W, R, _biases(to, in_order(to, leaves["b"].name, order), leaves["b"].dtype, 4 * size)]
    if "Ci" in leaves:
        peepholes = (_scaled(to, leaves, name) for name in ("Ci", "Co", "Cf"))
        weights.append(to.unsqueeze(to.node("Concat", *peepholes, axis=0), [0]))
    return weights, {}


def _write_gru(to: ModelWriter, leaves: dict[str, Value], size: int) -> tuple[list[str], dict[str, Any]]:
    R = to.node("Concat", leaves["R"].name, leaves["R1"].name, axis=1)
    B = _biases(to, leaves["b"].name, leaves["b"].dtype, 3 * size)
    return [_gates(to, leaves["W"].name, (0,)), _gates(to, R, (0,)), B], {"linear_before_reset": 0}


def _write_rnn(to: ModelWriter, leaves: dict[str, Value], size: int) -> tuple[list[str], dict[str, Any]]:
    R = _gates(to, _scaled(to, leaves, "R"), (0,))
    return [_gates(to, leaves["W"].name, (0,)), R, _biases(to, leaves["b"].name, leaves["b"].dtype, size)], {}
