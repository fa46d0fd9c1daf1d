"""Operators that CNTK composes of others: the graphs that files have instead, as blocks under the operator's name.

An expansion is given the operator and placeholders for its operands, and makes the graph.  A reader turns a block with exactly this
graph into the operator; any other block of such a name stays a block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.common.shape import Shape, size_of
from ...core.graph.block import combine
from ...core.graph.variable import Constant, Variable
from ...core.operators.op import Op
from ...core.types.axis import Axis
from ..ops import (
    activation,
    arithmetic,
    comparison,
    convolution,
    elementary,
    loss,
    maximum,
    metric,
    noise_contrastive,
    norm,
    normalization,
    scaling,
    sequence_broadcast,
    sequence_ends,
    sequence_reduction,
    sequence_slicing,
    sequence_softmax,
    shaping,
    slicing,
    softmax,
    sorting,
    spatial,
)
from ..ops.activation import ELU
from ..ops.arithmetic import abs as absolute
from ..ops.arithmetic import element_divide, element_times, minus, negate, plus, reciprocal
from ..ops.comparison import element_select, equal, greater, less, not_equal
from ..ops.convolution import convolution as convolve
from ..ops.convolution import convolution_transpose
from ..ops.delay import future_value, past_value
from ..ops.elementary import exp, floor, log, sqrt
from ..ops.extremum import ArgMax, ArgMin, ReduceMax, ReduceMin, argmax, reduce_max
from ..ops.identity import alias, cast
from ..ops.maximum import log_add_exp
from ..ops.product import times, times_transpose
from ..ops.reduction import ReduceLogSum, ReduceMean, ReduceProd, ReduceSum, reduce_log_sum_exp, reduce_mean, reduce_sum
from ..ops.sequence_broadcast import broadcast_as, reconcile_dynamic_axes
from ..ops.sequence_gathering import Gather as SequenceGather
from ..ops.sequence_gathering import Where
from ..ops.sequence_unpacking import UnpackSequence
from ..ops.shaping import reshape, transpose
from ..ops.slicing import gather
from .attributes import ANY_AXES, AXIS, BOOL, DOUBLE, FLOAT, INT, NEW_AXIS, SIZE, Kind, list_of


@dataclass
class Expansion:
    """The form of an operator in a file.

    Attributes:
        graph: makes the graph, of the operator and variables for its operands.
        kinds: kinds of the attributes that the block shows, by our names.
        names: their names in the file where they are not ours in camel case.
        recognised: whether a reader can tell the operator from the block.
        constants: for the same arguments as *graph*, how many numbers its constants have where that depends on shapes.
    """

    graph: Callable[..., Any]
    kinds: dict[str, Kind] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    recognised: bool = True
    constants: Callable[..., int] = lambda op, *operands: 0


def _number(value: float, like: Variable) -> Constant:
    return Constant(np.asarray(value, np.float64), dtype=like.dtype or np.float32)


def _numbers(x: Variable, *values: float) -> list[Any]:
    return [_number(value, x) for value in values]


def _shape(x: Variable) -> Shape:
    """The shape that a graph depends on; ValueError where a placeholder has none yet."""
    if x.spec.shape is None:
        raise ValueError("CNTK's format needs the shape of an operand that is not known yet; give the placeholders shapes, or replace them")
    return x.spec.shape


def _rank(x: Variable) -> int:
    return len(_shape(x))


# ---- element by element --------------------------------------------------------------------------


def _positive(op: Op, x: Any, y: Any, combine: Any) -> Any:
    (zero,) = _numbers(x, 0)
    return combine(greater(x, zero), greater(y, zero), zero)


def _not(op: Op, x: Any) -> Any:
    zero, one = _numbers(x, 0, 1)
    return plus(negate(greater(x, zero)), one)


def _leaky(op: Any, x: Any) -> Any:
    zero, alpha = _numbers(x, 0, op.alpha)
    return element_select(less(x, zero), element_times(alpha, x), x)


def _prelu(op: Any, alpha: Any, x: Any) -> Any:
    return element_select(less(x, *_numbers(x, 0)), element_times(alpha, x), x)


def _elu(op: Any, x: Any) -> Any:
    zero, alpha = _numbers(x, 0, op.alpha)
    return element_select(less(x, zero), element_times(alpha, ELU(alpha=1.0)(x)), x)


def _selu(op: Any, x: Any) -> Any:
    return element_times(*_numbers(x, op.gamma), _elu(op, x))


def _softplus(op: Any, x: Any) -> Any:
    if op.steepness == 1:
        return log_add_exp(x, *_numbers(x, 0))
    zero, steepness = _numbers(x, 0, op.steepness)
    return element_divide(log_add_exp(element_times(steepness, x), zero), steepness)


def _softsign(op: Any, x: Any) -> Any:
    if op.steepness == 1:
        return element_divide(x, plus(absolute(x), *_numbers(x, 1)))
    one, steepness = _numbers(x, 1, op.steepness)
    steep = element_times(steepness, x)
    return element_divide(steep, plus(absolute(steep), one))


def _hard_sigmoid(op: Any, x: Any) -> Any:
    alpha, beta, one, zero = _numbers(x, op.alpha, op.beta, 1, 0)
    line = plus(element_times(x, alpha), beta)
    bounded = element_select(less(line, one), line, one)
    return element_select(greater(bounded, zero), bounded, zero)


def _sum(op: Any, *xs: Any) -> Any:
    total = xs[0]
    for x in xs[1:]:
        total = plus(total, x)
    return total if len(xs) > 1 else alias(total)


def _mean(op: Any, *xs: Any) -> Any:
    return element_divide(_sum(op, *xs), *_numbers(xs[0], len(xs)))


def _image(op: Any, x: Any, biases: Any) -> Any:
    return plus(element_times(x, *_numbers(x, op.scaler)), biases)


# ---- reductions, normalisations and losses -------------------------------------------------------


def _reduced(op: Any, x: Any) -> Any:
    return reduce_sum(x, op.axis_vec if len(op.axis_vec) > 1 else op.axis_vec[0], keepdims=op.reduction_keep_dimensions)


def _reduction(op: Any, x: Any) -> Any:
    """Over static axes first, which stay as axes of length 1, then over the batch; then the axes of length 1 are taken away."""
    parts = [[axis for axis in op.axis_vec if axis.is_static_axis is static] for static in (True, False)]
    for axes in filter(None, parts):
        x = type(op)(axis_vec=tuple(axes), reduction_keep_dimensions=True)(x)
    if op.reduction_keep_dimensions:
        return x
    for place in sorted({shaping.index_of(axis) % _rank(x) for axis in parts[0]}, reverse=True):
        x = reshape(x, (), place, place + 1)
    return x


def _l1(op: Any, x: Any) -> Any:
    return _reduced(op, absolute(x))


def _sum_square(op: Any, x: Any) -> Any:
    return _reduced(op, element_times(x, x))


def _l2(op: Any, x: Any) -> Any:
    return sqrt(_sum_square(op, x))


def _softmax(op: Any, x: Any) -> Any:
    powers = exp(minus(x, reduce_max(x, op.axis)))
    return element_divide(powers, reduce_sum(powers, op.axis))


def _log_softmax(op: Any, x: Any) -> Any:
    axis = Axis.all_static_axes() if op.axis is None else op.axis
    lowered = minus(x, reduce_max(x, axis))
    return minus(lowered, log(reduce_sum(exp(lowered), axis)))


def _without_ones(y: Any, z: Any) -> Any:
    """A target without the axes of length 1 that it has in front beyond those of *z*."""
    if y.spec.shape is None or z.spec.shape is None:
        return y
    more = _rank(y) - _rank(z)
    return reshape(y, y.shape[more:]) if more > 0 and set(y.shape[:more]) == {1} else y


def _are_vectors(z: Any, y: Any) -> bool:
    """Whether a product makes a number of each sample, as it does of operands without shape, which are taken for vectors."""
    return z.dynamic_axes == y.dynamic_axes and all(v.spec.shape is None or _rank(v) == 1 for v in (z, y))


def _cross_entropy(op: Any, z: Any, y: Any) -> Any:
    y = _without_ones(y, z)
    if shaping.index_of(op.axis) == -1 and _are_vectors(z, y):
        return minus(reduce_log_sum_exp(z, -1), times_transpose(z, y))
    return minus(reduce_log_sum_exp(z, op.axis), reduce_sum(element_times(y, z), op.axis))


def _squared_error(op: Any, z: Any, y: Any) -> Any:
    difference = minus(z, y)
    return reduce_sum(element_times(difference, difference))


def _binary_cross_entropy(op: Any, p: Any, y: Any) -> Any:
    above, one, epsilon = _numbers(p, 1 + 1e-6, 1, 1e-6)
    yes, no = log(plus(epsilon, p)), log(minus(above, p))
    return negate(plus(element_times(y, yes), element_times(minus(one, y), no)))


def _classification_error(op: Any, z: Any, y: Any) -> Any:
    y = _without_ones(y, z)
    best = softmax.hardmax(z) if _rank(z) == 1 else _first_best(z)
    if _are_vectors(z, y):
        return minus(_number(1, z), times_transpose(y, best))
    return minus(_number(1, z), reduce_sum(element_times(best, y), -1))


def _first_best(z: Any) -> Any:
    classes = Constant(np.arange(z.shape[-1]), dtype=z.dtype)
    return equal(classes, argmax(z, -1))


def _mean_classification_error(op: Any, z: Any, y: Any) -> Any:
    at = shaping.index_of(op.axis)
    axis = at if at < 0 else at - _rank(z)
    return reduce_mean(not_equal(argmax(z, axis), argmax(y, axis)))


def _lrn(op: Any, x: Any) -> Any:
    width = 2 * op.depth_radius + 1
    channels = _shape(x)[0]
    squares = element_times(x, x)
    numbers = np.arange(channels)
    neighbours = abs(numbers - numbers[:, None]) <= op.depth_radius
    weights = Constant(neighbours * (op.alpha / width), dtype=x.dtype)
    near = reshape(times(weights, reshape(squares, (channels, -1))), x.shape)
    bias, beta = _numbers(x, op.bias, op.beta)
    return element_divide(x, exp(element_times(beta, log(plus(bias, near)))))


def _mvn(op: Any, x: Any) -> Any:
    rank = _rank(x)
    axes = list(range(rank)) if op.use_stats_across_channels or rank < 2 else list(range(1, rank))
    over: Any = [Axis(axis - rank) for axis in axes] or Axis.all_static_axes()
    lowered = minus(x, reduce_mean(x, over))
    if not op.do_variance_scaling:
        return lowered
    deviation = sqrt(reduce_mean(element_times(lowered, lowered), over))
    return element_divide(lowered, plus(deviation, *_numbers(x, op.epsilon)))


def _nce(op: Any, *operands: Any) -> Any:
    weights, biases, x, labels, sampled, log_share, factors, entropy = operands
    kind = weights.dtype
    values = [np.asarray(part.value) for part in (log_share, factors, entropy)]
    values[0] = np.maximum(values[0], -1e4)  # of classes that are never drawn; infinite ones times 0 would be NaN
    shares, parts, ending = (Constant(value, dtype=kind) for value in values)
    classes = _shape(sampled)[-1]
    sampled = sampled if sampled.dtype is kind else cast(sampled, kind)
    column = reshape(shares, (classes, 1))
    noise = plus(times_transpose(x, times(sampled, weights)), reshape(times(sampled, biases), (-1,)))
    noise_terms = log_add_exp(noise, reshape(times(sampled, column), (-1,)))
    weight = reshape(times(sampled, reshape(parts, (classes, 1))), (-1,))
    on_noise = reduce_sum(element_times(weight, noise_terms))
    label = plus(reduce_sum(element_times(x, times(labels, weights))), reshape(times(labels, biases), ()))
    on_label = minus(log_add_exp(label, reshape(times(labels, column), ())), label)
    return plus(on_label, plus(on_noise, ending))


# ---- shapes --------------------------------------------------------------------------------------


def _expand_dims(op: Any, x: Any) -> Any:
    behind_all: Any = Axis.new_leading_axis()
    if x.spec.shape is not None:
        at = op._place(_rank(x))
        at = behind_all if at == _rank(x) else at
    else:
        at = 0 if op.axis == Axis.new_leading_axis() else shaping.index_of(op.axis) + 1 or behind_all
    return reshape(x, (1,), at, at)


def _flatten(op: Any, x: Any) -> Any:
    index = shaping.index_of(op.axis)
    at = index if index >= 0 else index + _rank(x) + 1
    if not x.spec.is_concrete:
        raise ValueError("flatten cannot be saved with CNTK's format while dimensions are free; reshape can")
    return reshape(x, (size_of(x.shape[:at]), size_of(x.shape[at:])))


def _gather(op: Any, reference: Any, indices: Any) -> Any:
    rank, more = _rank(reference), _rank(indices)
    at = shaping.index_of(op.axis) % rank
    first = gather(transpose(reference, (at, *(axis for axis in range(rank) if axis != at))), indices)
    order = (*range(more, more + at), *range(more), *range(more + at, more + rank - 1))
    return transpose(first, order) if at else first


def _depth_to_space(op: Any, x: Any) -> Any:
    size = op.block_size
    channels, height, width = _shape(x)
    blocks = reshape(x, (size, size, channels // size**2, height, width))
    return reshape(transpose(blocks, (2, 3, 0, 4, 1)), (channels // size**2, height * size, width * size))


def _space_to_depth(op: Any, x: Any) -> Any:
    size = op.block_size
    channels, height, width = _shape(x)
    blocks = reshape(x, (channels, height // size, size, width // size, size))
    return reshape(transpose(blocks, (2, 4, 0, 1, 3)), (channels * size**2, height // size, width // size))


def _convolution(op: Any, filters: Any, x: Any) -> Any:
    rank = _rank(x)
    settings = {"strides": op.strides, "auto_padding": op.auto_padding, "dilation": op.dilation}
    settings = {name: with_channel(value, rank) for name, value in settings.items()}
    kernels = filters_with_channel(filters, rank)
    if isinstance(op, convolution.ConvolutionTranspose):
        shape = None if op.output_shape == (0,) else op.output_shape
        return convolution_transpose(_maps(kernels, rank), reshape(x, (1, *x.shape)), output_shape=shape, **settings)
    return convolve(kernels, reshape(x, (1, *x.shape)), groups=op.groups, **settings)


def _maps(kernels: Any, rank: int) -> Any:
    shape = _shape(kernels)
    return kernels if len(shape) > rank + 1 else reshape(kernels, (1,) * (rank + 2 - len(shape)) + shape)


def filters_with_channel(filters: Any, rank: int) -> Any:
    """Filters with an axis for one channel in front of the last *rank* axes."""
    place = _rank(filters) - rank
    return reshape(filters, (1,), place, place)


def with_channel(values: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    """Strides, dilation or padding of the last *rank* axes, with that of the channel in front."""
    filled = values[:1] * (rank - len(values)) + tuple(values)
    return (type(filled[0])(not isinstance(filled[0], bool)), *filled[-rank:])


def _top(op: Any, x: Any) -> Any:
    values, places = sorting.top_k(shaping.swapaxes(x, -1, op.axis), op.num_items).outputs
    return combine([shaping.swapaxes(one, -1, op.axis) for one in (values, places)])


# ---- along sequences -----------------------------------------------------------------------------


def _broadcast_as(op: Any, x: Any, like: Any) -> Any:
    return reconcile_dynamic_axes(x, like)


def _flag(x: Any, first: int, past: bool) -> Any:
    """1 in the first (or last) steps of each sequence."""
    zero, one = _numbers(x, 0, 1)
    return (past_value if past else future_value)(reconcile_dynamic_axes(zero, x), one, first)


def _is_first(op: Any, x: Any) -> Any:
    return _flag(x, 1, True)


def _is_last(op: Any, x: Any) -> Any:
    return _flag(x, 1, False)


def _slice(op: Any, x: Any) -> Any:
    begin, end = op.begin_index, op.end_index
    conditions = []
    if begin > 0:
        conditions.append(minus(_number(1, x), _flag(x, begin, True)))
    elif begin < 0:
        conditions.append(_flag(x, -begin, False))
    if end > 0:
        conditions.append(_flag(x, end, True))
    elif end < 0:
        conditions.append(minus(_number(1, x), _flag(x, -end, False)))
    condition = element_times(*conditions) if len(conditions) > 1 else conditions[0]
    same_end = (begin < 0) == (end <= 0)
    typeinfo = None if begin < 0 < end else (0 if same_end else 1, end - begin)
    if same_end and end - begin != 1:
        typeinfo = (0, end - begin)
    where = Where(f"slice_from_{begin}_to_{end}", typeinfo)(condition)
    return SequenceGather()(x, condition, where)


def _steps_of(x: Any) -> Axis:
    """The axis of steps of an unpacked sequence: the first."""
    return Axis(0 if x.spec.shape is None else -_rank(x) - 1)


def _sequence_sum(op: Any, x: Any) -> Any:
    return reduce_sum(UnpackSequence(sequence_unpack_padding_value=0.0)(x), _steps_of(x), keepdims=False)


def _sequence_max(op: Any, x: Any) -> Any:
    return reduce_max(UnpackSequence(sequence_unpack_padding_value=-np.inf)(x), _steps_of(x), keepdims=False)


def _sequence_softmax(op: Any, x: Any) -> Any:
    highest = sequence_reduction.reduce_max(x)
    powers = exp(minus(x, broadcast_as(highest, x)))
    return element_divide(powers, broadcast_as(sequence_reduction.reduce_sum(powers), x))


REDUCTIONS: tuple[type[Op], ...] = (ReduceSum, ReduceMean, ReduceProd, ReduceLogSum, ReduceMax, ReduceMin, ArgMax, ArgMin)
_AXIS = {"axis": AXIS}
_REDUCED = {"axis_vec": ANY_AXES, "reduction_keep_dimensions": BOOL}
_LRN = {"depth_radius": SIZE, "bias": DOUBLE, "alpha": DOUBLE, "beta": DOUBLE}
_MVN = {"epsilon": DOUBLE, "use_stats_across_channels": BOOL, "do_variance_scaling": BOOL}
_BOUNDS = {"begin_index": INT, "end_index": INT}

EXPANSIONS: dict[type[Op], Expansion] = {
    arithmetic.ElementDivide: Expansion(lambda op, x, y: element_times(x, reciprocal(y))),
    arithmetic.Sum: Expansion(_sum),
    arithmetic.Mean: Expansion(_mean),
    maximum.ElementMax: Expansion(lambda op, x, y: element_select(greater(x, y), x, y)),
    maximum.ElementMin: Expansion(lambda op, x, y: element_select(less(x, y), x, y)),
    elementary.Ceil: Expansion(lambda op, x: negate(floor(negate(x)))),
    elementary.Round: Expansion(lambda op, x: floor(plus(x, *_numbers(x, 0.5)))),
    comparison.And: Expansion(lambda op, x, y: _positive(op, x, y, lambda a, b, zero: greater(element_times(a, b), zero))),
    comparison.Or: Expansion(lambda op, x, y: _positive(op, x, y, lambda a, b, zero: greater(plus(a, b), zero))),
    comparison.Xor: Expansion(lambda op, x, y: _positive(op, x, y, lambda a, b, zero: not_equal(a, b))),
    comparison.Not: Expansion(_not),
    activation.LeakyReLU: Expansion(_leaky, {"alpha": DOUBLE}),
    activation.PReLU: Expansion(_prelu),
    activation.ELU: Expansion(_elu, {"alpha": DOUBLE}),
    activation.SELU: Expansion(_selu, {"gamma": DOUBLE, "alpha": DOUBLE}),
    activation.Softplus: Expansion(_softplus, {"steepness": DOUBLE}),
    activation.Softsign: Expansion(_softsign, {"steepness": DOUBLE}),
    activation.HardSigmoid: Expansion(_hard_sigmoid, {"alpha": FLOAT, "beta": FLOAT}),
    scaling.PerDimMeanVarianceNormalize: Expansion(lambda op, x, mean, scale: element_times(minus(x, mean), scale)),
    scaling.ImageScaler: Expansion(_image, {"scaler": FLOAT, "biases": list_of(FLOAT)}, {"scaler": "Scaler", "biases": "Biases"}, False),
    **dict.fromkeys(REDUCTIONS, Expansion(_reduction, _REDUCED)),
    norm.ReduceL1: Expansion(_l1, _REDUCED),
    norm.ReduceL2: Expansion(_l2, _REDUCED),
    norm.ReduceSumSquare: Expansion(_sum_square, _REDUCED),
    softmax.Softmax: Expansion(_softmax, _AXIS),
    softmax.LogSoftmax: Expansion(_log_softmax, _AXIS),
    loss.CrossEntropyWithSoftmax: Expansion(_cross_entropy, _AXIS),
    loss.SquaredError: Expansion(_squared_error),
    loss.BinaryCrossEntropy: Expansion(_binary_cross_entropy),
    metric.ClassificationError: Expansion(_classification_error, constants=lambda op, z, y: _shape(z)[-1] if _rank(z) > 1 else 0),
    metric.MeanClassificationError: Expansion(_mean_classification_error, _AXIS),
    normalization.LocalResponseNormalization: Expansion(_lrn, _LRN, constants=lambda op, x: _shape(x)[0] ** 2),
    normalization.MeanVarianceNormalization: Expansion(_mvn, _MVN),
    noise_contrastive.NoiseContrastiveEstimation: Expansion(_nce, recognised=False),
    shaping.ExpandDims: Expansion(_expand_dims, {"axis": NEW_AXIS}),
    shaping.Flatten: Expansion(_flatten, {"axis": NEW_AXIS}),
    slicing.Gather: Expansion(_gather, _AXIS),
    sorting.TopK: Expansion(_top, {"num_items": SIZE, "axis": AXIS}),
    spatial.DepthToSpace: Expansion(_depth_to_space, {"block_size": SIZE}),
    spatial.SpaceToDepth: Expansion(_space_to_depth, {"block_size": SIZE}),
    convolution.Convolution: Expansion(_convolution, recognised=False),
    convolution.ConvolutionTranspose: Expansion(_convolution, recognised=False),
    sequence_broadcast.BroadcastAs: Expansion(_broadcast_as),
    sequence_ends.IsFirst: Expansion(_is_first),
    sequence_ends.IsLast: Expansion(_is_last),
    sequence_slicing.SequenceSlice: Expansion(_slice, _BOUNDS),
    sequence_reduction.SequenceReduceSum: Expansion(_sequence_sum),
    sequence_reduction.SequenceReduceMax: Expansion(_sequence_max),
    sequence_softmax.SequenceSoftmax: Expansion(_sequence_softmax),
}
