"""Operators as the engine has them: ``cntk_py.times(right, left, 1, -1, 'name')``.

The engine counts static axes from the last, lists flags per axis and dynamic axes from the innermost, multiplies matrices the other way
round, and takes its arguments by position, the name last.  The table has the name of each operator here, and its arguments;
those called ``axis``, ``auto_padding`` or ``dtype`` and the like are converted.  The other operators are functions below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cntk import ops
from cntk import random as random
from cntk.core.graph.block import combine as _combine
from cntk.core.graph.function import Function
from cntk.core.types.axis import Axis
from cntk.internal.sanitize import data_type_to_dtype, sanitize_axis, sanitize_permutation
from cntk.ops import sequence

OPERATORS = {
    "abs": "x name",
    "acos": "x name",
    "alias": "x name",
    "argmax": "x axis name",
    "argmin": "x axis name",
    "as_block": "composite block_arguments_map block_op_name block_instance_name",
    "as_composite": "root_function name",
    "asin": "x name",
    "asinh": "x name",
    "assign": "ref input name",
    "atan": "x name",
    "atanh": "x name",
    "batch_normalization": (
        "operand scale bias running_mean running_inv_std running_count spatial normalization_time_constant blend_time_constant epsilon "
        "use_cudnn_engine disable_regularization name"
    ),
    "bernoulli_random=random.bernoulli": "shape dtype mean seed name",
    "bernoulli_random_like=random.bernoulli_like": "x mean seed name",
    "binary_cross_entropy": "output target name",
    "broadcast_as=sequence.broadcast_as": "operand broadcast_as_operand name",
    "cast": "node_input dtype name",
    "ceil": "arg name",
    "classification_error": "output_vector target_vector topN axis name",
    "clip": "x min_value max_value name",
    "convolution": (
        "convolution_map operand strides sharing auto_padding dilation reduction_rank groups max_temp_mem_size_in_samples sequential name"
    ),
    "convolution_transpose": (
        "convolution_map operand strides sharing auto_padding output_shape dilation reduction_rank max_temp_mem_size_in_samples name"
    ),
    "cos": "x name",
    "cosh": "x name",
    "cosine_distance": "x y name",
    "cosine_distance_with_negative_samples": "x y shift num_negative_samples name",
    "cross_entropy_with_softmax": "output_vector target_vector axis name",
    "depth_to_space": "operand block_size name",
    "dropout": "x dropout_rate seed name",
    "edit_distance_error": "input_a input_b subPen delPen insPen squashInputs tokensToIgnore name",
    "element_and": "x y name",
    "element_divide": "left right name",
    "element_max": "left right name",
    "element_min": "left right name",
    "element_not": "x name",
    "element_or": "x y name",
    "element_select": "flag value_if_true value_if_false name",
    "element_times": "left right name",
    "element_xor": "x y name",
    "elu": "x alpha name",
    "equal": "left right name",
    "exp": "x name",
    "expand_dims": "x axis name",
    "eye_like": "x sparse_output name",
    "first=sequence.first": "seq name",
    "flatten": "x axis name",
    "floor": "arg name",
    "forward_backward": "graph features blankTokenId delayConstraint name",
    "gather=sequence.gather": "seq condition new_sequence_axis_typeinfo name",
    "gather_op=gather": "indices reference axis name",
    "greater": "left right name",
    "greater_equal": "left right name",
    "gumbel_random=random.gumbel": "shape dtype loc scale seed name",
    "gumbel_random_like=random.gumbel_like": "x loc scale seed name",
    "hard_sigmoid": "x alpha beta name",
    "hardmax": "x name",
    "image_scaler": "x scalar biases name",
    "is_first=sequence.is_first": "seq name",
    "is_last=sequence.is_last": "seq name",
    "labels_to_graph": "labels name",
    "lambda_rank": "output gain group name",
    "last=sequence.last": "seq name",
    "leaky_re_lu=leaky_relu": "x alpha name",
    "less": "left right name",
    "less_equal": "left right name",
    "local_response_normalization": "operand depth_radius bias alpha beta name",
    "log": "x name",
    "log_add_exp": "left right name",
    "log_softmax": "x axis name",
    "minus": "left right name",
    "nce_loss": "weights biases inputs labels noise_distribution num_samples allow_duplicates seed name",
    "ndcg_at_1": "output gain group name",
    "negate": "x name",
    "normal_random=random.normal": "shape dtype mean scale seed name",
    "normal_random_like=random.normal_like": "x mean scale seed name",
    "not_equal": "left right name",
    "one_hot_op=one_hot": "x num_classes sparse_output axis name",
    "ones_like": "x name",
    "optimized_rnnstack": "operand weights hidden_size num_layers bidirectional recurrent_op name",
    "per_dim_mean_variance_normalize": "operand mean inv_stddev name",
    "plus": "left right name",
    "pooling": "operand pooling_type pooling_window_shape strides auto_padding ceil_out_dim include_pad name",
    "pow": "base exponent name",
    "pre_lu=param_relu": "alpha x name",
    "random_sample": "weights num_samples allow_duplicates seed name",
    "random_sample_inclusion_frequency": "weights num_samples allow_duplicates seed name",
    "re_lu=relu": "x name",
    "reciprocal": "x name",
    "reconcile_dynamic_axes": "x dynamic_axes_as name",
    "reduce_l1": "x axis keepdims name",
    "reduce_l2": "x axis keepdims name",
    "reduce_log_sum=reduce_log_sum_exp": "x axis keepdims name",
    "reduce_max": "x axis keepdims name",
    "reduce_mean": "x axis keepdims name",
    "reduce_min": "x axis keepdims name",
    "reduce_prod": "x axis keepdims name",
    "reduce_sum": "x axis keepdims name",
    "reduce_sum_square": "x axis keepdims name",
    "roipooling": "operand rois pooling_type roi_output_shape spatial_scale name",
    "round": "arg name",
    "scatter=sequence.scatter": "seq condition new_sequence_axis_typeinfo name",
    "selu": "x scale alpha name",
    "sequence_reduce_max=sequence.reduce_max": "seq name",
    "sequence_reduce_sum=sequence.reduce_sum": "seq name",
    "sequence_slice=sequence.slice": "seq begin_index end_index name",
    "sequence_softmax=sequence.softmax": "seq name",
    "sigmoid": "x name",
    "sin": "x name",
    "sinh": "x name",
    "slice": "x axis begin_index end_index strides name",
    "softmax": "x axis name",
    "softplus": "x name",
    "softsign": "x name",
    "space_to_depth": "operand block_size name",
    "sqrt": "x name",
    "square": "x name",
    "squared_error": "output target name",
    "squeeze": "x axes name",
    "stop_gradient": "input name",
    "straight_through=straight_through_impl": "x name",
    "tan": "x name",
    "tanh": "x name",
    "times": "right left output_rank infer_input_rank_to_map name",
    "to_batch": "x name",
    "to_sequence": "x sequence_lengths sequence_axis_name_prefix name",
    "to_sequence_like": "x dynamic_axes_like name",
    "top_k": "x k axis name",
    "transpose_axes=swapaxes": "x axis1 axis2 name",
    "uniform_random=random.uniform": "shape dtype low high seed name",
    "uniform_random_like=random.uniform_like": "x low high seed name",
    "unpack=sequence.unpack": "x padding_value no_mask_output name",
    "unpack_batch": "x name",
    "unpooling": "operand pooling_input unpooling_type unpooling_window_shape strides auto_padding name",
    "weighted_binary_cross_entropy": "output target weight name",
    "where=sequence.where": "condition name",
    "zeros_like": "x name",
}
"""Arguments of each operator by the names that they have here; ``name=other`` stands for the operator called ``other`` here."""

_TEXTS = ("block_op_name", "block_instance_name", "recurrent_op", "sequence_axis_name_prefix", "name")
_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "axis": lambda axis: [*map(_axis, axis)] if isinstance(axis, (list, tuple)) else _axis(axis),
    "axis1": lambda axis: _axis(axis),
    "axis2": lambda axis: _axis(axis),
    "axes": lambda axes: [*map(_axis, axes)],
    "auto_padding": lambda flags: list(reversed(flags)),
    "sharing": lambda flags: list(reversed(flags)),
    "dtype": data_type_to_dtype,
}


def _axis(axis: Axis) -> Axis | int:
    """An axis in the form used here: a static one by its number."""
    found = sanitize_axis(axis)
    return found.static_axis_index() if found.is_static_axis and found != Axis.new_leading_axis() else found


def _operator(entry: str, arguments: str) -> tuple[str, Callable[..., Function]]:
    name, _, public = entry.partition("=")
    home, _, last = (public or name).rpartition(".")
    module = {"": ops, "random": random, "sequence": sequence}[home]
    wanted = arguments.split()

    def call(*args: Any) -> Function:
        return getattr(module, last)(**_named(name, wanted, args))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``{name}({', '.join(wanted)})`` as the engine has it, by position; see ``cntk.{public or name}``."
    return name, call


def _named(operator: str, wanted: Sequence[str], args: Sequence[Any]) -> dict[str, Any]:
    """Arguments by name; a text goes to the next argument that is one, as those before it may be left out."""
    found: dict[str, Any] = {}
    rest = iter(wanted)
    for arg in args:
        name = next((name for name in rest if name in _TEXTS or not isinstance(arg, str)), None)
        if name is None:
            raise TypeError(f"cntk_py.{operator}: expected at most ({', '.join(wanted)}) by position, got {len(args)} arguments")
        found[name] = _CONVERTERS[name](arg) if name in _CONVERTERS else arg
    return found


globals().update(_operator(*row) for row in OPERATORS.items())


# ---- several operands ----


def combine(operands: Sequence[Any], name: str = "") -> Function:
    """A function of all outputs of the operands."""
    return _combine(*operands, name=name)


def mean(operands: Sequence[Any], name: str = "") -> Function:
    """The mean of the operands."""
    return ops.mean(*operands, name=name)


def sum(operands: Sequence[Any], name: str = "") -> Function:
    """The sum of the operands."""
    return ops.sum(*operands, name=name)


def splice(operands: Sequence[Any], axis: Axis, name: str = "") -> Function:
    """The operands one after another along an axis."""
    return ops.splice(*operands, axis=_axis(axis), name=name)


def custom_proxy_op(operands: Sequence[Any], custom_op: str, output_shape: Any, output_data_type: int, name: str = "") -> Function:
    """An operator of another engine; see ``cntk.custom_proxy_op``."""
    return ops.custom_proxy_op(custom_op, output_shape, data_type_to_dtype(output_data_type), *operands, name=name)


# ---- shapes ----


def reshape(x: Any, shape: Any, *args: Any) -> Function:
    """``reshape(x, shape, begin axis, end axis, name)``, the axes counted from the last, or without axes."""
    axes = [arg for arg in args if isinstance(arg, Axis)]
    names = [arg for arg in args if isinstance(arg, str)]
    if len(axes) not in (0, 2) or len(axes) + len(names) != len(args) or len(names) > 1:
        raise TypeError(f"cntk_py.reshape: expected (x, shape, name) or (x, shape, begin axis, end axis, name), got {(x, shape, *args)}")
    begin, end = (_bound(axis) for axis in reversed(axes)) if axes else (None, None)
    return ops.reshape(x, shape, begin, end, *names)


def _bound(axis: Axis) -> Axis:
    """A bound between axes, counted from the other side."""
    if axis == Axis.new_leading_axis():
        return Axis(0)
    return Axis.new_leading_axis() if axis == Axis(0) else Axis(-axis.static_axis_index())


def transpose(x: Any, *args: Any) -> Function:
    """``transpose(x, permutation, name)``; of a matrix the permutation may be left out.

    Raises:
        ValueError: it is left out, and *x* has not two axes.
    """
    permutation = args[0] if args and not isinstance(args[0], str) else None
    names = args if permutation is None else args[1:]
    if permutation is None:
        if len(x.shape) != 2:
            raise ValueError(f"cntk_py.transpose: {x!r} is no matrix; give a permutation of its {len(x.shape)} axes")
        return ops.swapaxes(x, 0, 1, *names)
    order = sanitize_permutation([axis.static_axis_index() if isinstance(axis, Axis) else axis for axis in permutation])
    return ops.transpose(x, order, *names)


def unsqueeze(x: Any, axes: Sequence[Axis], name: str = "") -> Function:
    """New axes of length 1, by their numbers in the result."""
    rank = len(x.shape) + len(axes)
    for place in sorted(rank - 1 - axis.static_axis_index() % rank for axis in axes):
        x = ops.expand_dims(x, place - 1 if place else Axis.new_leading_axis())
    return ops.alias(x, name)


def pad(x: Any, mode: int, head: Sequence[int], foot: Sequence[int], constant_value: float = 0, name: str = "") -> Function:
    """Padding, *head* and *foot* from the last axis to the first."""
    pattern = [[*pair] for pair in zip(reversed(head), reversed(foot), strict=True)]
    return ops.pad(x, pattern, mode, constant_value, name)


def crop(node_input: Any, node_referent: Any, *args: Any) -> Function:
    """``crop(x, y, offset x, offset y, name)``, ``crop(x, y, name)`` or ``crop(x, y, ancestor of x, ancestor of y, name)``."""
    if len(args) < 2:
        return ops.crop_automatic(node_input, node_referent, *args)
    by_offsets = not hasattr(args[0], "shape")
    return (ops.crop_manual if by_offsets else ops.crop_automatic_with_ancestors)(node_input, node_referent, *args)


# ---- reductions and products ----

_REDUCTIONS = {"Sum": "sum", "LogSum": "log_sum_exp", "Mean": "mean", "Max": "max", "Min": "min", "Prod": "prod"}


def reduce_elements(x: Any, operation: str, axis: Any, *args: Any) -> Function:
    """``reduce_elements(x, 'Sum', axis or axes, keep dimensions, name)``.

    Raises:
        ValueError: there is no such reduction.
    """
    if operation not in _REDUCTIONS:
        raise ValueError(f"cntk_py.reduce_elements: expected one of {', '.join(_REDUCTIONS)}, got {operation!r}")
    reduce = getattr(ops, f"reduce_{_REDUCTIONS[operation]}")
    return reduce(**_named("reduce_elements", ["x", "axis", "keepdims", "name"], (x, axis, *args)))


def mean_variance_normalization(operand: Any, *args: Any) -> Function:
    """``(operand, epsilon, use statistics across channels, do variance scaling, name)``; *epsilon* may be left out."""
    wanted = ["operand", "epsilon", "use_stats_across_channels", "do_variance_scaling", "name"]
    if args and isinstance(args[0], bool):
        wanted.remove("epsilon")
    return ops.mean_variance_normalization(**_named("mean_variance_normalization", wanted, (operand, *args)))


def times_transpose(right: Any, left: Any, *args: Any) -> Function:
    """``times_transpose(right, left, output rank, name)``: left times the transpose of right; the rank may be left out.

    Raises:
        ValueError: the rank of the output is not 1.
    """
    found = _named("times_transpose", ["output_rank", "name"], args)
    if found.get("output_rank", 1) != 1:
        raise ValueError(f"cntk_py.times_transpose: output_rank must be 1, got {found['output_rank']}; transpose and call times")
    return ops.times_transpose(left, right, found.get("name", ""))


def mat_mul(left: Any, right: Any, name: str = "") -> Function:
    """Products of matrices, which lie along the two last axes; the axes before them are those of both operands.

    Raises:
        ValueError: an operand has fewer than two axes.
    """
    if min(len(left.shape), len(right.shape)) < 2:
        raise ValueError(f"cntk_py.mat_mul: expected operands of two and more axes, got {left!r} and {right!r}")
    if len(left.shape) == len(right.shape) == 2:
        return ops.times(left, right, name=name)
    products = ops.element_times(ops.expand_dims(left, -1), ops.expand_dims(right, -3))
    return ops.squeeze(ops.reduce_sum(products, -2), -2, name)


def gemm(left: Any, right: Any, addend: Any, alpha: float, beta: float, *args: Any) -> Function:
    """``gemm(a, b, c, alpha, beta, transpose a, transpose b, name)``: alpha·b·a + beta·c."""
    found = _named("gemm", ["transpose_left", "transpose_right", "name"], args)
    a = ops.swapaxes(left, 0, 1) if found.get("transpose_left") else left
    b = ops.swapaxes(right, 0, 1) if found.get("transpose_right") else right
    return ops.plus(alpha * ops.times(b, a), beta * addend, name=found.get("name", ""))


def spatial_convolution(convolution_map: Any, operand: Any, *args: Any) -> Function:
    """``(map, operand, strides, sharing, auto padding, dilation, ..., name)``: convolution of an operand without axis of channels."""
    wanted = ["convolution_map", "operand", "strides", "sharing", "auto_padding", "dilation", "max_temp_mem_size_in_samples", "name"]
    return ops.convolution(reduction_rank=0, **_named("spatial_convolution", wanted, (convolution_map, operand, *args)))


# ---- sequences ----


def past_value(x: Any, *args: Any) -> Function:
    """``past_value(x, initial state, time step, name)``; the initial state may be left out."""
    return sequence.past_value(**_named("past_value", _delay(args), (x, *args)))


def future_value(x: Any, *args: Any) -> Function:
    """``future_value(x, initial state, time step, name)``; the initial state may be left out."""
    return sequence.future_value(**_named("future_value", _delay(args), (x, *args)))


def _delay(args: Sequence[Any]) -> list[str]:
    has_state = bool(args) and hasattr(args[0], "shape")
    return ["x", *(["initial_state"] if has_state else []), "time_step", "name"]


def zeroes_with_dynamic_axes_like(x: Any) -> Function:
    """A zero wherever *x* has a value."""
    return ops.reconcile_dynamic_axes(ops.constant(0), x)


def is_within(x: Any, offset: int, name: str = "") -> Function:
    """1 at the first *offset* steps of each sequence, or at the last ones where it is negative; 0 elsewhere."""
    delay = sequence.past_value if offset > 0 else sequence.future_value
    return delay(zeroes_with_dynamic_axes_like(x), ops.constant(1), max(offset, -offset), name)


def constant_like(x: Any, value: float, name: str = "") -> Function:
    """The number wherever *x* has one."""
    return ops.plus(ops.zeros_like(x), value, name=name)
