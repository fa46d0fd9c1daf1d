"""Writes losses and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.common.dtypes import limits_of
from .....core.types.axis import static_axis_number
from .reductions import count, reduced, total
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter

_EPSILON = 1e-6
"""What binary cross entropy adds below its logarithms."""
_LEAST = 1e-37
"""The least number that its weighted form takes the logarithm of."""


def cross_entropy(op: Any, to: ModelWriter, z: Value, y: Value) -> str:
    """Write the cross entropy with the softmax: what is large first, for the logarithm would be lost in it."""
    dtype = z.dtype
    z, y = (to.widened(one) for one in _pair(to, z, y))
    axis = z.axis(static_axis_number(op.axis, len(z.shape), op.op_name)) - z.rank
    edge = reduced(to, "ReduceMax", z, [axis], True)
    powers = z.called(str(to.node("Exp", to.node("Sub", z.name, edge))))
    level = to.node("Log", reduced(to, "ReduceSum", powers, [axis], True))
    left, right = to.lined_up(z, y)
    picked = reduced(to, "ReduceSum", z.called(str(to.node("Mul", left, right))), [axis], True)
    edge, level = to.lined_up(z.called(edge), z.called(str(level)), y)[:2]
    return to.narrowed(z.called(str(to.node("Add", to.node("Sub", edge, picked), level))), dtype)


def squared_error(op: Any, to: ModelWriter, x: Value, y: Value) -> str:
    """Write the sum of the squared differences."""
    difference = to.node("Sub", *to.lined_up(x, y))
    rank = max(len(x.shape), len(y.shape))
    squares = Value(str(to.node("Mul", difference, difference)), (1,) * rank, x.dtype, to.result.axes)
    return reduced(to, "ReduceSum", squares, list(range(squares.leading, squares.rank)), False) if rank else squares.name


def binary_cross_entropy(op: Any, to: ModelWriter, p: Value, y: Value) -> str:
    """Write the cross entropy of answers that are yes or no."""
    epsilon, one = to.constant(_EPSILON, p.dtype), to.constant(1, p.dtype)
    chance, answer = to.lined_up(p, y)
    yes = to.node("Max", to.node("Add", chance, epsilon), epsilon)
    no = to.node("Max", to.node("Add", to.node("Sub", one, chance), epsilon), epsilon)
    return _entropy(to, yes, no, answer, one)


def weighted_binary_cross_entropy(op: Any, to: ModelWriter, p: Value, y: Value, w: Value) -> str:
    """Write the weighted mean of cross entropies of a minibatch, times their number."""
    dtype = p.dtype
    least, one = to.constant(max(_LEAST, float(limits_of(dtype).tiny)), dtype), to.constant(1, dtype)
    chance, answer, weight = to.lined_up(p, y, w)
    yes, no = to.node("Max", chance, least), to.node("Max", to.node("Sub", one, chance), least)
    losses = to.node("Mul", _entropy(to, yes, no, answer, one), weight)
    axes = max((x.axes for x in (p, y, w)), key=len)
    of_all = Value(losses, (1,) * max(len(x.shape) for x in (p, y, w)), dtype, axes)
    weights = total(to, of_all.called(str(to.node("Expand", weight, to.node("Shape", losses)))))
    known = to.node("Where", to.node("Equal", weights, to.constant(0, dtype)), one, weights)
    mean = to.node("Div", total(to, of_all), known)
    return str(to.node("Mul", mean, to.cast(count(to, of_all), dtype)))


def _entropy(to: ModelWriter, yes: str, no: str, answer: str, one: str) -> str:
    there = to.node("Mul", answer, to.node("Log", yes))
    not_there = to.node("Mul", to.node("Sub", one, answer), to.node("Log", no))
    return str(to.node("Neg", to.node("Add", there, not_there)))


def classification_error(op: Any, to: ModelWriter, z: Value, y: Value) -> str:
    """Write one minus the target at the largest output."""
    z, y = _pair(to, z, y)
    guess = to.node("ArgMax", z.name, axis=-1, keepdims=1)
    chosen = z.called(to.cast(to.node("Equal", guess, _classes(to, z)), z.dtype))
    products = to.result.called(str(to.node("Mul", *to.lined_up(chosen, y))))
    return str(to.node("Sub", to.constant(1, z.dtype), reduced(to, "ReduceSum", products, [-1], True)))


def mean_classification_error(op: Any, to: ModelWriter, z: Value, y: Value) -> str:
    """Write the share of places where output and target are largest in different classes."""
    at = static_axis_number(op.axis, len(z.shape), op.op_name) - len(z.shape)
    guess, label = (x.called(str(to.node("ArgMax", to.dense(x).name, axis=at, keepdims=1))) for x in (z, y))
    same = to.node("Equal", *to.lined_up(guess, label))
    wrong = to.cast(to.node("Not", same), z.dtype)
    rank = max(len(z.shape), len(y.shape))
    of_all = Value(wrong, (1,) * rank, z.dtype, to.result.axes)
    return reduced(to, "ReduceMean", of_all, list(range(of_all.leading, of_all.rank)), False)


def top_classification_error(op: Any, to: ModelWriter, z: Value, y: Value) -> str:
    """Write how many classes of a minibatch are not among the largest outputs."""
    y = to.dense(y)
    axes = max(z.axes, y.axes, key=len)
    names = to.lined_up(z, y)
    size = to.node("Shape", to.node("Add", *names))
    outputs, target = (to.node("Expand", name, size) for name in names)
    label = to.node("ArgMax", target, axis=-1, keepdims=1)
    at_label = to.node("GatherElements", outputs, label, axis=-1)
    earlier = to.node("Less", _classes(to, z), label)
    tied = to.node("And", to.node("Equal", outputs, at_label), earlier)
    ahead = to.cast(to.node("Or", to.node("Greater", outputs, at_label), tied), np.float32)
    rank = max(len(z.shape), len(y.shape))
    number = reduced(to, "ReduceSum", Value(ahead, (1,) * rank, np.dtype(np.float32), axes), [-1], False)
    missed = to.cast(to.node("GreaterOrEqual", number, to.constant(op.top_n, np.float32)), np.float32)
    found = total(to, Value(missed, (1,) * (rank - 1), np.dtype(np.float32), axes))
    return found if z.dtype == np.float32 else to.cast(found, z.dtype)


def cosine(op: Any, to: ModelWriter, x: Value, y: Value) -> str:
    """Write the product of two vectors of length 1."""
    left, right = (one.called(_unit(to, one)) for one in (x, y))
    vectors = [Value(one.name, (1,), one.dtype, one.axes) for one in (left, right)]
    products = str(to.node("Mul", *to.lined_up(*vectors)))
    made = Value(products, (1,), x.dtype, to.result.axes)
    return reduced(to, "ReduceSum", made, [made.leading], False)


def cosine_with_others(op: Any, to: ModelWriter, x: Value, y: Value) -> str:
    """Write the cosines of samples, or steps, with their own and with later ones of the minibatch."""
    result = to.result
    left, right = (_unit(to, to.spread(one, result.axes)) for one in (x, y))
    if result.leading == 1:
        return _with_later_rows(op, to, left, right)
    # Steps in their order, and of one step the sequences that have it.
    there = to.node("NonZero", to.transpose(to.mask(result.axes[1]), [1, 0]))
    places = to.transpose(str(there), [1, 0])
    left, right = (str(to.node("GatherND", to.transpose(one, [1, 0, 2]), places)) for one in (left, right))
    made = _with_later_rows(op, to, left, right)
    size = to.shape([to.steps(result.axes[1]), to.batch(), *result.shape])
    nothing = to.node("Expand", to.constant(0, x.dtype), size)
    return to.transpose(str(to.node("ScatterND", nothing, places, made)), [1, 0, 2])


def _with_later_rows(op: Any, to: ModelWriter, left: str, right: str) -> str:
    """Products of the rows of two matrices, each with its own and with later rows; the first come after the last."""
    count = to.size(left, 0)
    rows = to.numbers(count)
    columns = []
    for shift in (0, *range(op.shift, op.shift + op.num_negative_samples)):
        partners = to.node("Mod", to.node("Add", rows, to.integers(shift)), count)
        products = to.node("Mul", left, to.node("Gather", right, partners, axis=0) if shift else right)
        columns.append(to.node("ReduceSum", products, to.integers(1), keepdims=1))
    return str(to.node("Concat", *columns, axis=1))


def _unit(to: ModelWriter, x: Value) -> str:
    """All elements as one vector of length 1; one of zeros stays what it is."""
    flat = Value(to.with_static(x, [-1]) if len(x.shape) != 1 else x.name, (1,), x.dtype, x.axes)
    zero, one = to.constant(0, x.dtype), to.constant(1, x.dtype)
    largest = reduced(to, "ReduceMax", flat.called(str(to.node("Abs", flat.name))), [flat.leading], True)
    scaled = flat.called(str(to.node("Div", flat.name, to.node("Where", to.node("Equal", largest, zero), one, largest))))
    length = reduced(to, "ReduceL2", scaled, [flat.leading], True)
    return str(to.node("Div", scaled.name, to.node("Where", to.node("Equal", length, zero), one, length)))


def _classes(to: ModelWriter, z: Value) -> str:
    """The numbers of the classes, which are the last axis."""
    if z.shape[-1] >= 0:
        return to.constant(np.arange(z.shape[-1]), np.int64)
    return to.numbers(to.size(z.name, -1))


def _pair(to: ModelWriter, z: Value, y: Value) -> tuple[Value, Value]:
    """Outputs and targets, without axes of length 1 that only the target has in front."""
    y = to.dense(y)
    shape = y.shape
    while len(shape) > len(z.shape) and shape[0] == 1:
        shape = shape[1:]
    return z, Value(to.with_static(y, shape), shape, y.dtype, y.axes)
