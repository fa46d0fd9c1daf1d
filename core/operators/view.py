"""Operators that only reinterpret memory: nothing is computed if results can share that of the first operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..common.shape import Shape
from .op import Op

if TYPE_CHECKING:
    from ..types.context import Context


class View(Op):
    """An operator whose result is a view of the first operand's memory; it needs no forward step.

    >>> from cntk.extend import View
    >>> class Column(View):
    ...     op_name = "Column"
    ...
    ...     def infer(self, x):
    ...         return x.but(shape=(*x.dims, 1))
    ...
    ...     def view(self, x, out_shape):
    ...         return x.reshape(out_shape)
    >>> Column()(C.input_variable(2)).eval([[1, 2]]).shape
    (1, 2, 1)
    """

    is_slice: ClassVar[bool] = False
    """Whether the view is a part of the operand, which need not be contiguous; used if all operators that read it accept such parts."""

    def view(self, x: Any, out_shape: Shape) -> Any:
        """The result in the operand's memory.

        Args:
            x: the operand, ``(rows, *static)``; a gradient of this shape where the result's gradient lies in that of the operand.
            out_shape: shape of the result, ``(rows, *static)``.
        """
        raise NotImplementedError(f"{type(self).__name__}.view")

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        """Copy the view, where the result cannot share memory."""
        ctx.xp.copyto(out, self.view(inputs[0], out.shape))


class GradientView(Op):
    """An operator of one operand, whose gradient is a view of the result's; it needs no backward step."""

    def grad_view(self, grad: Any, in_shape: Shape) -> Any:
        """The operand's gradient in the memory of the result's.

        Args:
            grad: the result's gradient, ``(rows, *static)``.
            in_shape: shape of the operand, ``(rows, *static)``.
        """
        raise NotImplementedError(f"{type(self).__name__}.grad_view")

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        """Copy the view, where the gradients cannot share memory."""
        ctx.xp.copyto(grads[0], self.grad_view(grad, grads[0].shape))


def is_slice(op: Op) -> bool:
    """Whether an operator is a view that gives a part of its operand."""
    return isinstance(op, View) and op.is_slice
