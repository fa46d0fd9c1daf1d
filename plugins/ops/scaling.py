"""Shifting and scaling by known statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.graph.arguments import TensorLike
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import ALL
from ...core.operators.samples import Operand, operator, sample
from ...core.types.spec import Spec

if TYPE_CHECKING:
    from ...core.graph.function import Function
    from ...core.types.context import Context


class PerDimMeanVarianceNormalize(Elementwise):
    """``(x - mean) * inv_stddev``."""

    op_name = "PerDimMeanVarianceNormalize"
    in_place = (0,)
    keep_inputs = ALL

    def formula(self, x: Any, mean: Any, inv_stddev: Any) -> Any:
        return (x - mean) * inv_stddev

    def forward(self, ctx: Context, y: Any, x: Any, mean: Any, inv_stddev: Any) -> None:
        ctx.xp.subtract(x, mean, out=y)
        ctx.xp.multiply(y, inv_stddev, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        x, mean, inv_stddev = inputs
        if i == 2:
            ctx.xp.subtract(x, mean, out=dx)
            ctx.xp.multiply(dx, dy, out=dx)
            return
        ctx.xp.multiply(dy, inv_stddev, out=dx)
        if i == 1:
            ctx.xp.negative(dx, out=dx)


class ImageScaler(Elementwise):
    """An image times a number, plus a bias for each channel."""

    op_name = "ImageScaler"
    in_place = (0,)
    gradient_in_place = (0,)
    scaler: float
    biases: Sequence[float]
    gradient_inputs = (0,)

    @property
    def attributes(self) -> dict[str, Any]:
        return {"Scaler": self.scaler, "Biases": self.biases}

    def infer(self, *inputs: Spec) -> Spec:
        image, biases = inputs
        if image.rank != 3 or image.dims[0] not in (biases.dims[0], -1, -3):
            raise ValueError(f"expected an image of shape (channels, height, width) with {biases.dims[0]} channels, one for each bias")
        return super().infer(*inputs)

    def formula(self, x: Any, biases: Any) -> Any:
        return x * self.scaler + biases

    def forward(self, ctx: Context, y: Any, x: Any, biases: Any) -> None:
        ctx.xp.multiply(x, self.scaler, out=y)
        ctx.xp.add(y, biases, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.multiply(dy, self.scaler, out=dx)


# ---- public operators ----------------------------------------------------------------------------


@operator(
    sample(
        (2, 3),
        Operand((3,), kind="parameter"),
        Operand((3,), 1, 2, kind="parameter"),
        expected=lambda x, mean, inv_stddev: (x - mean) * inv_stddev,
    ),
    sample((3,), (2, 3), (2, 1), expected=lambda x, mean, inv_stddev: (x - mean) * inv_stddev),
)
def per_dim_mean_variance_normalize(operand: TensorLike, mean: TensorLike, inv_stddev: TensorLike, name: str = "") -> Function:
    """``(operand - mean) * inv_stddev``, element by element, broadcast as in :func:`plus`.

    Args:
        operand: what to normalise.
        mean: mean of each element.
        inv_stddev: one over the standard deviation of each element.
        name: name of the Function.

    Example:
        >>> C.per_dim_mean_variance_normalize([1, 5], [1, 3], [2, 0.5]).eval()
        array([0., 1.], dtype=float32)
    """
    return PerDimMeanVarianceNormalize()(operand, mean, inv_stddev, name=name)


@operator(
    sample((3, 2, 2), scalar=0.5, biases=[1, 2, 3], expected=lambda x: 0.5 * x + np.array([[[1]], [[2]], [[3]]])),
)
def image_scaler(x: TensorLike, scalar: float, biases: Sequence[float], name: str = "") -> Function:
    """``x * scalar + biases[c]`` for channel *c* of an image.

    Args:
        x: image of shape (channels, height, width); the result's shape and dynamic axes are the same.
        scalar: factor.
        biases: one number for each channel.
        name: name of the Function.

    Raises:
        ValueError: *x* is not an image, or the number of biases is not that of its channels.

    Example:
        >>> C.image_scaler(np.ones((2, 1, 1), np.float32), 0.5, [1, 2]).eval()
        array([[[1.5]],
        <BLANKLINE>
               [[2.5]]], dtype=float32)
    """
    biases = [float(bias) for bias in biases]
    return ImageScaler(scaler=scalar, biases=biases)(x, [[[bias]] for bias in biases], name=name)
