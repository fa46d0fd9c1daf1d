"""What computes in the place of an operator on one backend.

A kernel is a class with static methods, which are given the operator first and then what the operator's own are given.  What it can do
besides is asked by ``issubclass`` when programs are made, the answer to which is known for a class that has been asked about before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from ..operators.epilogue import Step
    from ..types.context import Context


class Kernel(Protocol):
    """What every kernel has: static methods.

    One with ``in_place = True`` besides may be given a result that lies in an operand's memory, where the operator may; one with
    ``recordable = True`` hands a device the same work whenever it is called with the same arrays.
    """

    def forward(self, op: Any, ctx: Context, out: Any, /, *inputs: Any) -> None:
        """Compute the result, as :meth:`~cntk.core.operators.op.Op.forward` does.

        Args:
            op: the operator.
            ctx: the context.
            out: array to write the result to, ``(rows, *static)``.
            inputs: the operands, ``(rows, *static)`` each, or ``static`` without dynamic axes.
        """

    def backward(self, op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, /, *inputs: Any) -> None:
        """Compute gradients, as :meth:`~cntk.core.operators.op.Op.backward` does.

        Args:
            op: the operator.
            ctx: the context.
            grad: the result's gradient, ``(rows, *static)``.
            grads: arrays to write the operands' gradients to, ``(rows, *static)`` each, None where none is wanted.
            out: the result, ``(rows, *static)``, where the operator keeps it, else None.
            inputs: the operands that the operator keeps, ``(rows, *static)`` each; None for the others.
        """


@runtime_checkable
class Binds(Protocol):
    """A kernel that finds out once what to do with arrays that it is given again and again."""

    def bind(self, op: Any, ctx: Context, out: Any, /, *inputs: Any) -> Callable[[], None] | None:
        """A function to call in place of ``forward`` whenever the program runs with these arrays; None to have ``forward`` called.

        It looks at shapes, types and places, and not at what the arrays hold.  It has ``epilogue=`` where the kernel takes steps.

        Args:
            op: the operator.
            ctx: the context.
            out: array to write the result to, ``(rows, *static)``.
            inputs: the operands, ``(rows, *static)`` each, or ``static`` without dynamic axes.
        """


@runtime_checkable
class Declines(Protocol):
    """A kernel that leaves some work to the operator."""

    def declines(self, op: Any, ctx: Context, out: Any, /, *inputs: Any) -> bool:
        """Whether the operator's own methods are to be called with these arrays; asked when they are bound.

        Args:
            op: the operator.
            ctx: the context.
            out: array to write the result to, ``(rows, *static)``.
            inputs: the operands, ``(rows, *static)`` each, or ``static`` without dynamic axes.
        """


@runtime_checkable
class TakesSteps(Protocol):
    """A kernel that applies element-wise operators to its result while it is at hand.

    Its other methods are called with ``epilogue=`` then, an :class:`~cntk.core.operators.epilogue.Epilogue`.
    """

    def takes(self, op: Any, steps: Sequence[Step], /) -> int:
        """How many of the steps that follow, from the first on, it applies; asked when a program is made.

        Args:
            op: the operator.
            steps: the element-wise operators that follow one another; their operands are ``(rows, *static)``, or without dynamic axes.
        """


@runtime_checkable
class Repeatable(Protocol):
    """A function from :meth:`Binds.bind` that hands a device the same work whenever it is called."""

    def prepare(self) -> None:
        """Put what differs from call to call into the device's memory: called in the function's place, before its work is repeated."""
