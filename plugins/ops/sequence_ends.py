"""Marks of the first and the last step of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op, Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.layout import Index, Layout
from ...core.types.spec import Spec
from .sequence_rows import sequence_axes, sequences, shaped


class _End(Op):
    """1 at one end of each sequence, 0 at the other steps."""

    gradient_inputs = ()
    traits = Traits(layout_inputs=(0,))
    sparse_inputs: ClassVar[tuple[int, ...]] = (0,)
    by_rows = False

    def infer(self, *inputs: Spec) -> Spec:
        (x,) = inputs
        return x.but(shape=(), axes=sequence_axes(x))

    def assume(self, *inputs: Spec) -> Sequence[Spec] | None:
        return [shaped(x) for x in inputs]

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        self.mark(ctx, out, 1)

    def mark(self, ctx: Context, out: Any, one: Any) -> None:
        """Write *one*, a number or an array without axes, to one end and 0 to the other steps."""
        out.fill(0)
        out[ctx.index_from(self._marked)] = one

    def _marked(self, ctx: Context) -> Index:
        return self.rows(*sequences(ctx.layouts[0]))

    def rows(self, layout: Layout, lengths: Index) -> Index:
        """The row of the marked step of each sequence."""
        raise NotImplementedError(f"{type(self).__name__}.rows")


class IsFirst(_End):
    """1 at the first step."""

    op_name = "Sequence::IsFirst"

    def rows(self, layout: Layout, lengths: Index) -> Index:
        return layout.rows_at(np.zeros_like(lengths))


class IsLast(_End):
    """1 at the last step."""

    op_name = "Sequence::IsLast"

    def rows(self, layout: Layout, lengths: Index) -> Index:
        return layout.rows_at(lengths - 1)


def _marked(place: int) -> Any:
    def expected(x: Any) -> Any:
        marks = np.zeros(len(x))
        marks[place] = 1
        return marks

    return expected


@operator(
    sample(Operand((2, 3), kind="sequence", gradient=False), expected=_marked(0)),
    sample(Operand((4,), kind="sequence", sparse=True, gradient=False), expected=_marked(0)),
)
def is_first(seq: TensorLike, name: str = "") -> Function:
    """1 at the first step of each sequence, 0 at the others.  No gradient flows through it.

    Args:
        seq: sequence of any static shape; may be sparse.
        name: name of the function.

    Returns:
        scalars on the operand's dynamic axes.

    Raises:
        ValueError: *seq* is not a sequence.

    >>> x = C.sequence.input_variable(2)
    >>> C.sequence.is_first(x).eval([np.float32([[1, 2], [3, 4], [5, 6]])])
    [array([1., 0., 0.], dtype=float32)]
    """
    return IsFirst()(seq, name=name)


@operator(
    sample(Operand((2, 3), kind="sequence", gradient=False), expected=_marked(-1)),
    sample(Operand((4,), kind="sequence", sparse=True, gradient=False), expected=_marked(-1)),
)
def is_last(seq: TensorLike, name: str = "") -> Function:
    """1 at the last step of each sequence, 0 at the others.  No gradient flows through it.

    Args:
        seq: sequence of any static shape; may be sparse.
        name: name of the function.

    Returns:
        scalars on the operand's dynamic axes.

    Raises:
        ValueError: *seq* is not a sequence.

    >>> x = C.sequence.input_variable(2)
    >>> C.sequence.is_last(x).eval([np.float32([[1, 2], [3, 4], [5, 6]])])
    [array([0., 0., 1.], dtype=float32)]
    """
    return IsLast()(seq, name=name)
