"""Batch normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import is_half
from ...core.common.shape import InferredDimension, Shape, size_of
from ...core.common.user_frame import warn_user
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.graph.variable import Constant
from ...core.operators.abilities import AsAffine
from ...core.operators.effects import Assignment
from ...core.operators.op import Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.spec import Spec, merge_dtypes
from .arithmetic import ElementTimes, Plus


class BatchNormalization(Assignment):
    """Each channel less its mean over the minibatch, divided by its deviation, then scaled and shifted."""

    op_name = "BatchNormalization"
    assigns = (3, 4, 5)
    in_place = (0,)
    by_rows = False
    keep_inputs = (0, 1)
    gradient_inputs = (0, 1, 2)
    traits = Traits(uniform_inputs=(0, 1, 2), varies_in_training=True)

    def infer(self, *inputs: Spec) -> Spec:
        operand, *vectors = inputs[:-1]
        # Statistics of float16 operands are kept in float32.
        merge_dtypes(inputs[1:3] if operand.dtype is not None and is_half(operand.dtype) else inputs[:3])
        features = self._features(operand)
        for spec, what in zip(vectors, ("scale", "bias", "running_mean", "running_inv_std"), strict=True):
            if spec.is_concrete and features >= 0 and size_of(spec.dims) != features:
                unit = "channel" if self.spatial else "element"
                raise ValueError(f"{what} needs one number for each {unit} of the operand, {features} in all; got shape {spec.dims}")
        return self.common(operand).but(shape=operand.shape)

    def resolve(self, *inputs: Spec) -> Sequence[Shape]:
        features = self._features(inputs[0])
        return [inputs[0].dims, *(_fill(spec.dims, features, inputs[0].dims) for spec in inputs[1:])]

    def _features(self, operand: Spec) -> int:
        """How many numbers are normalised apart; -1 while unknown."""
        if operand.rank == 0:
            return 1
        if self.spatial:
            return operand.dims[0]
        return size_of(operand.dims) if operand.is_concrete else InferredDimension

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """For each element a product and a sum; in training a sum, a difference, a square and a sum before, for mean and variance."""
        return (6 if ctx.training else 2) * size_of(out.shape)

    def forward(self, ctx: Context, out: Any, *inputs: Any, loops: Any = None) -> None:
        """Normalise, in training with a kernel's *loops* where there are some."""
        if ctx.training:
            self._forward_training(ctx, out, inputs[:3], loops)
            self._remember(ctx, *inputs)
        else:
            self._forward_inference(ctx, out, *inputs[:5])

    def _forward_training(self, ctx: Context, out: Any, inputs: Sequence[Any], loops: Any) -> None:
        xp = ctx.xp
        operand, scale, bias = inputs
        x, y = self.by_feature(ctx, operand, scale.size), self.by_feature(ctx, out, scale.size)
        mean, variance, inverse = self.statistics(ctx, x)
        if loops is not None:
            statistics = (of[:, 0] for of in (mean, variance, inverse))
            loops.normalise(x, y, scale.reshape(-1), bias.reshape(-1), *statistics, self.epsilon)
            return
        centred, squares = _wide(ctx, y, mean.dtype), ctx.scratch("wide", x.shape, mean.dtype)
        _write_mean(ctx, x, mean)
        xp.subtract(x, mean, out=centred)
        xp.multiply(centred, centred, out=squares)
        _write_mean(ctx, squares, variance)
        self._invert(xp, variance, inverse)
        factor = ctx.scratch("factor", mean.shape, mean.dtype)
        xp.multiply(inverse, scale.reshape(-1, 1), out=factor)
        xp.multiply(centred, factor, out=centred)
        xp.add(centred, bias.reshape(-1, 1), out=y, casting="same_kind")

    def _remember(
        self, ctx: Context, operand: Any, scale: Any, _: Any, running_mean: Any, running_variance: Any, running_count: Any
    ) -> None:
        """Move the running statistics towards those of the minibatch."""
        x = self.by_feature(ctx, operand, scale.size)
        mean, variance, _ = self.statistics(ctx, x)
        samples = x.shape[0]
        share = self.share(samples, float(running_count.reshape(-1)[0]))
        values = samples * x.shape[2]
        _approach(ctx, running_mean, mean, 1, share)
        _approach(ctx, running_variance, variance, values / max(values - 1, 1), share)
        ctx.xp.add(running_count, samples, out=running_count)

    def _forward_inference(
        self, ctx: Context, out: Any, operand: Any, scale: Any, bias: Any, running_mean: Any, running_variance: Any
    ) -> None:
        xp = ctx.xp
        x, y = self.by_feature(ctx, operand, scale.size), self.by_feature(ctx, out, scale.size)
        mean, variance, inverse = self.statistics(ctx, x)
        xp.copyto(mean, running_mean.reshape(-1, 1))
        xp.copyto(variance, running_variance.reshape(-1, 1))
        self._invert(xp, variance, inverse)
        factor = ctx.scratch("factor", mean.shape, mean.dtype)
        shift = ctx.scratch("shift", mean.shape, mean.dtype)
        xp.multiply(inverse, scale.reshape(-1, 1), out=factor)
        xp.multiply(mean, factor, out=shift)
        xp.subtract(bias.reshape(-1, 1), shift, out=shift)
        scaled = _wide(ctx, y, mean.dtype)
        xp.multiply(x, factor, out=scaled)
        xp.add(scaled, shift, out=y, casting="same_kind")

    def as_affine(self, *inputs: Spec) -> AsAffine | None:
        operand, *vectors = inputs[:5]
        if not operand.is_concrete or operand.dtype is None or is_half(operand.dtype) or any(v.dtype != operand.dtype for v in vectors):
            return None
        shape = (*operand.dims[:1], *(1,) * (operand.rank - 1)) if self.spatial else operand.dims
        return AsAffine(ElementTimes(), Plus(), shape, (1, 2, 3, 4))

    def write_affine(self, xp: Any, numbers: Sequence[Any], sources: Sequence[Any]) -> None:
        factor, shift = (array.reshape(-1) for array in numbers)
        scale, bias, mean, variance = (array.reshape(-1) for array in sources)
        self._invert(xp, variance, factor)
        xp.multiply(factor, scale, out=factor)
        xp.multiply(mean, factor, out=shift)
        xp.subtract(bias, shift, out=shift)

    def by_feature(self, ctx: Context, array: Any, features: int) -> Any:
        """The array as ``(rows, features, places)``; without dynamic axes it is one row."""
        rows, static = (1, array.shape) if ctx.layouts[0] is None else (array.shape[0], array.shape[1:])
        return array.reshape(rows, features, size_of(static) // features)

    def _invert(self, xp: Any, variance: Any, inverse: Any) -> None:
        xp.add(variance, self.epsilon, out=inverse)
        xp.sqrt(inverse, out=inverse)
        xp.divide(1, inverse, out=inverse)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any, loops: Any = None) -> None:
        """Compute the gradients, with a kernel's *loops* where there are some."""
        operand, scale, *_ = inputs
        dx, dscale, dbias, *_ = grads
        x, dy = self.by_feature(ctx, operand, scale.size), self.by_feature(ctx, grad, scale.size)
        mean, _, inverse = self.statistics(ctx, x)
        slope = ctx.scratch("slope", mean.shape, mean.dtype)
        offset = ctx.scratch("offset", mean.shape, mean.dtype)
        if dx is not None:
            dx = self.by_feature(ctx, dx, scale.size)
        if loops is not None:
            vectors = (vector[:, 0] for vector in (mean, inverse, slope, offset))
            loops.differentiate(x, dy, scale.reshape(-1), *vectors, dx)
        else:
            normal = self._sums(ctx, x, dy, slope, offset)
        if dscale is not None:
            ctx.xp.copyto(dscale.reshape(-1, 1), slope, casting="same_kind")
        if dbias is not None:
            ctx.xp.copyto(dbias.reshape(-1, 1), offset, casting="same_kind")
        if dx is not None and loops is None:
            self._gradient(ctx, x, dy, scale, normal, slope, offset, dx)

    def _sums(self, ctx: Context, x: Any, dy: Any, slope: Any, offset: Any) -> Any:
        """Write the gradients of scale and bias; return the normalised operand."""
        xp = ctx.xp
        mean, _, inverse = self.statistics(ctx, x)
        normal = ctx.scratch("wide", x.shape, mean.dtype)
        products = ctx.scratch("products", x.shape, mean.dtype)
        xp.subtract(x, mean, out=normal)
        xp.multiply(normal, inverse, out=normal)
        xp.multiply(dy, normal, out=products)
        ctx.sum_to(products, slope)
        ctx.sum_to(dy, offset)
        return normal

    def _gradient(self, ctx: Context, x: Any, dy: Any, scale: Any, normal: Any, slope: Any, offset: Any, dx: Any) -> None:
        xp = ctx.xp
        mean, _, inverse = self.statistics(ctx, x)
        if ctx.training:  # the statistics depend on the operand too
            count = x.shape[0] * x.shape[2]
            xp.divide(slope, count, out=slope)
            xp.divide(offset, count, out=offset)
            xp.multiply(normal, slope, out=normal)
            xp.subtract(dy, normal, out=normal)
            xp.subtract(normal, offset, out=normal)
        else:
            xp.copyto(normal, dy)
        factor = ctx.scratch("factor", mean.shape, mean.dtype)
        xp.multiply(inverse, scale.reshape(-1, 1), out=factor)
        xp.multiply(normal, factor, out=dx)

    def share(self, samples: int, seen: float) -> float:
        """The weight of a minibatch in the running statistics.

        Args:
            samples: the minibatch's samples.
            seen: samples seen before.
        """
        time_constant = self.normalization_time_constant
        if seen == 0 or time_constant == 0:
            return 1.0
        if time_constant < 0:
            return samples / (samples + seen)
        return -math.expm1(-samples / time_constant)

    def statistics(self, ctx: Context, x: Any) -> tuple[Any, Any, Any]:
        """Mean, variance and inverse deviation of the features of *x*, ``(rows, features, places)``: ``(features, 1)`` each, in float32 at
        least, kept from forward to backward."""
        shape, dtype = (x.shape[1], 1), np.promote_types(x.dtype, np.float32)
        return ctx.keep("mean", shape, dtype), ctx.keep("variance", shape, dtype), ctx.keep("inverse", shape, dtype)


def _write_mean(ctx: Context, x: Any, mean: Any) -> None:
    """Write the mean of each feature of *x*, ``(rows, features, places)``."""
    ctx.sum_to(x, mean)
    ctx.xp.divide(mean, x.shape[0] * x.shape[2], out=mean)


def _wide(ctx: Context, like: Any, dtype: Any) -> Any:
    """Space for numbers of the statistics' type: the array itself where it has that type."""
    return like if like.dtype == dtype else ctx.scratch("normal", like.shape, dtype)


def _approach(ctx: Context, running: Any, statistic: Any, correction: float, share: float) -> None:
    step = ctx.scratch("factor", running.shape, statistic.dtype)
    ctx.xp.multiply(statistic.reshape(running.shape), correction, out=step)
    ctx.xp.subtract(step, running, out=step)
    ctx.xp.multiply(step, share, out=step)
    ctx.xp.add(running, step, out=running)


def _fill(dims: Shape, features: int, operand: Shape) -> Shape:
    """Replace inferred dimensions of a vector of statistics."""
    if InferredDimension not in dims or features < 0:
        return dims
    known = (features,) if len(dims) == 1 else operand
    return tuple(given if dim == InferredDimension else dim for dim, given in zip(dims, known, strict=True))


def _inference(epsilon: float, spatial: bool = True) -> Any:
    def expected(x: Any, scale: Any, bias: Any) -> Any:
        column = (-1, *(1,) * (x.ndim - 1)) if spatial else x.shape
        factor = scale.reshape(column) / np.sqrt(_VARIANCE + epsilon)
        return (x - _MEAN) * factor + bias.reshape(column)

    return expected


_MEAN, _VARIANCE = 0.25, 0.5


def _call(features: int, spatial: bool, **attributes: Any) -> Any:
    """A call with running statistics of its own, which training passes change."""

    def call(function: Any, operand: Any, scale: Any, bias: Any) -> Any:
        mean, variance = (Constant(value, shape=(features,), dtype=operand.dtype) for value in (_MEAN, _VARIANCE))
        return function(operand, scale, bias, mean, variance, spatial, running_count=Constant(0.0), **attributes)

    return call


def _vector(features: int, low: float = -1.0) -> Operand:
    return Operand((features,), low, kind="parameter")


@operator(
    sample((3,), _vector(3, 0.5), _vector(3), call=_call(3, True), expected=_inference(1e-5)),
    sample((2, 2, 3), _vector(2, 0.5), _vector(2), call=_call(2, True), expected=_inference(1e-5)),
    sample((2, 3), _vector(6, 0.5), _vector(6), call=_call(6, False, epsilon=0.5), expected=_inference(0.5, spatial=False)),
)
def batch_normalization(
    operand: TensorLike,
    scale: TensorLike,
    bias: TensorLike,
    running_mean: TensorLike,
    running_inv_std: TensorLike,
    spatial: bool,
    normalization_time_constant: float = 5000,
    blend_time_constant: float = 0,
    epsilon: float = 0.00001,
    use_cudnn_engine: bool = False,
    disable_regularization: bool = False,
    name: str = "",
    running_count: TensorLike | None = None,
) -> Function:
    r"""Normalise each feature over the minibatch, then scale and shift it: :math:`s (x - \mu) / \sqrt{v + \epsilon} + b`.

    In training, :math:`\mu` and :math:`v` are the mean and the (biased) variance of the minibatch, over its samples and, when
    *spatial*, over all places of a channel.  Elsewhere they are the running statistics, which each training pass moves towards
    its own by the share :math:`1 - e^{-n/T}` for n samples; the running variance takes the unbiased one.  (Ioffe and Szegedy,
    "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift", 2015.)

    Args:
        operand: values of static shape (channels, ...).
        scale, bias: parameters s and b with one number a feature; a dimension -1 is filled in.
        running_mean: constant of the same size that holds the running mean.
        running_inv_std: constant of the same size that holds, in spite of its name, the running *variance*.
        spatial: whether the features are the channels, the operand's first static axis; if not, all its elements.
        normalization_time_constant: T in samples; 0 takes the last minibatch, a negative one the average of all so far.
        blend_time_constant: kept for old programs, without effect.
        epsilon: added to the variance.
        use_cudnn_engine: kept for old programs, without effect.
        disable_regularization: tells learners to leave *scale* and *bias* out of regularisation.
        name: name of the Function.
        running_count: constant scalar that counts the samples seen; the first minibatch finds it 0 and is taken whole.  A new one
            is made, with a warning, where it is missing.

    Returns:
        values of the operand's shape and dynamic axes.

    Raises:
        ValueError: the size of a parameter or statistic is not the number of features.

    >>> x = C.input_variable(2)
    >>> mean, variance = C.constant([1, 1]), C.constant([4, 4])
    >>> y = C.batch_normalization(x, [1, 2], [0, 0], mean, variance, spatial=False, epsilon=0, running_count=C.constant(8))
    >>> y.eval({x: np.array([[3, 3], [5, 5]], dtype=np.float32)})
    array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    if running_count is None:
        warn_user("batch_normalization: running_count is missing; pass constant(0) to share and save the number of samples seen")
        running_count = Constant(0.0)
    op = BatchNormalization(
        spatial=bool(spatial),
        normalization_time_constant=float(normalization_time_constant),
        blend_time_constant=float(blend_time_constant),
        epsilon=float(epsilon),
        use_cu_d_n_n_engine=bool(use_cudnn_engine),  # shows as useCuDNNEngine
        disable_regularization=bool(disable_regularization),
    )
    return op(operand, scale, bias, running_mean, running_inv_std, running_count, name=name)
