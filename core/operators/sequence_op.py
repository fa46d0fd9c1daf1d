"""Operators whose results have other rows than their operands, or that look at other steps of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..common.shape import Shape
from .op import Op

if TYPE_CHECKING:
    from ..types.context import Context
    from ..types.layout import Layout


class SequenceOp(Op):
    """An operator on sequences, or from and to the batch axis, that defines the layout of its result.

    If it overrides none of the three methods, that is the operands' layout.

    >>> from cntk.extend import SequenceOp
    >>> class Steps(SequenceOp):
    ...     op_name = 'Steps'
    ...     gradient_inputs = ()
    ...
    ...     def infer(self, x):
    ...         return x.but(shape=())
    ...
    ...     def forward(self, ctx, out, x):
    ...         out[...] = ctx.index(ctx.layout, 'step_of_row')
    >>> Steps()(C.sequence.input_variable(1)).eval([[[5], [6], [7]], [[8], [9]]])
    [array([0., 1., 2.], dtype=float32), array([0., 1.], dtype=float32)]
    """

    whole_sequences: ClassVar[bool] = False
    """Whether a row of the result depends on other steps of the operands, so that it cannot be a part of a recurrence."""

    def array_shape(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Any:
        """Static shape of the result, where it depends on rows or lengths, a tuple of them for several results; None where it does not.

        ``infer`` gives ``FreeDimension`` for such dimensions.

        Args:
            layouts: the operands' layouts, None for one without dynamic axes.
            shapes: shapes of the operands' arrays, ``(rows, *static)``, or ``static`` without dynamic axes.
        """
        return None

    def make_layout(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Layout | None:
        """How the result's rows lie; None where they lie as those of an operand on the same dynamic axes.

        Args:
            layouts: the operands' layouts, None for one without dynamic axes.
            shapes: shapes of the operands' arrays, ``(rows, *static)``, or ``static`` without dynamic axes.
        """
        return None

    def decide_layout(self, ctx: Context, *inputs: Any) -> Layout:
        """How the result's rows lie, where it takes the operands' values to know; the program goes on in a new stage.

        Args:
            ctx: the context.
            inputs: the operands, ``(rows, *static)`` each.
        """
        raise NotImplementedError(f"{type(self).__name__}.decide_layout")

    @property
    def decides_layout(self) -> bool:
        """Whether it defines :meth:`decide_layout`."""
        return type(self).decide_layout is not SequenceOp.decide_layout


def decides_layout(op: Op) -> bool:
    """Whether an operator takes the values of its operands to know how the rows of its result lie."""
    return isinstance(op, SequenceOp) and op.decides_layout
