"""Dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.common.random import AUTO_SEED, Stream, choose_seed
from ...core.graph.arguments import TensorLike
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.types.arguments import Seed
from .drawing import Drawing

if TYPE_CHECKING:
    from ...core.graph.function import Function
    from ...core.types.context import Context


class Dropout(Drawing, Elementwise):
    """In training the operand times a random mask of 0 and ``1 / (1 - dropout_rate)``, otherwise the operand."""

    op_name = "Dropout"
    traits = Traits(varies_in_training=True)
    in_place = (0,)
    gradient_in_place = (0,)
    by_rows = False
    dropout_rate: float
    stream_type = Stream

    def __init__(self, dropout_rate: float, rng_seed: int) -> None:
        super().__init__(dropout_rate=_checked(dropout_rate), rng_seed=rng_seed)

    def copy(self) -> Dropout:
        return Dropout(self.dropout_rate, self.rng_seed)

    def create_checkpoint(self) -> dict[str, Any]:
        return {**super().create_checkpoint(), "rate": self.dropout_rate}

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        super().restore_from_checkpoint(checkpoint)
        self.dropout_rate = _checked(checkpoint["rate"])

    def is_identity(self, training: bool) -> bool:
        return not training

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        if not ctx.training:
            ctx.xp.copyto(y, x)
            return
        noise = ctx.scratch("noise", x.shape, np.float32)
        mask = ctx.keep("mask", x.shape, x.dtype)
        rate, seed, draw = self.begin_draw()
        ctx.backend.uniform(noise, seed, draw)
        ctx.xp.greater_equal(noise, rate, out=mask)
        ctx.xp.multiply(mask, 1 / (1 - rate), out=mask)
        ctx.xp.multiply(x, mask, out=y)

    def begin_draw(self) -> tuple[float, int, int]:
        """The rate, and the seed and number of the next draw, which is one of float32 numbers for each element."""
        return _checked(self.dropout_rate), self._stream.seed, self._stream.next()

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        if ctx.training:
            ctx.xp.multiply(dy, ctx.keep("mask", dy.shape, dy.dtype), out=dx)
        else:
            ctx.xp.copyto(dx, dy)


def _checked(rate: float) -> float:
    if not 0 <= rate < 1:
        raise ValueError(f"dropout: expected a dropout rate in [0, 1), got {rate}")
    return rate


@operator(
    sample((2, 3), expected=lambda x: x),
    sample((), expected=lambda x: x),
    sample(Operand((2, 3), gradient=False), dropout_rate=0.5, seed=1, expected=lambda x: x),
)
def dropout(x: TensorLike, dropout_rate: float = 0.0, seed: Seed = AUTO_SEED, name: str = "") -> Function:
    """In training, set a random part of the elements to 0 and scale the others up so that the mean stays.

    Passes that compute gradients are training; plain evaluation gives *x* unchanged.  Every training pass draws a new mask,
    which its gradient is multiplied by too.

    Args:
        x: operand; the result's shape and dynamic axes are the same.
        dropout_rate: probability in [0, 1) that an element is set to 0; the others are divided by ``1 - dropout_rate``.
        seed: seed of the masks; by default one is chosen.
        name: name of the Function.

    Raises:
        ValueError: the rate is outside [0, 1).

    Source:
        Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov, *Dropout*, 2014.

    Example:
        >>> C.dropout([1, 2, 3], dropout_rate=0.5).eval()
        array([1., 2., 3.], dtype=float32)
    """
    return Dropout(dropout_rate, choose_seed(seed, per_worker=True))(x, name=name)
