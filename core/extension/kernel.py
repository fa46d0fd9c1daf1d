"""Kernels, which compute operators on one backend in place of their own methods.

A kernel is a class with static methods, which take the operator followed by the arguments of the operator's own method.  Its further
abilities are found by ``issubclass`` when programs are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from ..operators.epilogue import Step
    from ..types.context import Context


class Kernel(Protocol):
    """The static methods of every kernel.

    One with ``in_place = True`` may get a result that lies in an operand's memory, if the operator may.  One with
    ``recordable = True`` gives a device the same work whenever it is called with the same arrays, and takes index arrays from ``ctx.index``
    and ``ctx.index_from`` alone, in ``forward`` and ``backward``.  ``recordable_sparse = True`` says besides that the work is the same for
    sparse operands of as many rows whose arrays begin at the same places, whatever they hold and however many entries there are; gradients
    that are sparse by rows are written at a place that stays (:class:`~cntk.core.types.sparse.RowsPlace`).

    >>> from cntk.extend import Elementwise, Kernel, hookimpl, register_plugin, unregister_plugin
    >>> class Cube(Elementwise):
    ...     op_name = 'Cube'
    ...
    ...     @staticmethod
    ...     def formula(x):
    ...         return x * x * x
    >>> class CubeKernel:
    ...     @staticmethod
    ...     def forward(op, ctx, out, x):
    ...         print('forward of', out.shape)
    ...         ctx.xp.power(x, 3, out=out)
    ...
    ...     @staticmethod
    ...     def backward(op, ctx, grad, grads, out, x):
    ...         ctx.xp.multiply(3 * x * x, grad, out=grads[0])
    >>> class Plugin:
    ...     @hookimpl
    ...     def cntk_register_kernels(self, register):
    ...         register(Cube, 'numpy', CubeKernel)
    >>> register_plugin(Plugin(), 'cube')
    >>> Cube()(C.input_variable(2)).eval([[2, 3]])
    forward of (1, 2)
    array([[ 8., 27.]], dtype=float32)
    >>> unregister_plugin('cube')
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
    """A kernel that is bound once to arrays that it computes with repeatedly."""

    def bind(self, op: Any, ctx: Context, out: Any, /, *inputs: Any) -> Callable[[], None] | None:
        """A function to call in place of ``forward`` whenever the program runs with these arrays; None to have ``forward`` called.

        It may look at shapes, types and addresses, but not at the contents of arrays.  It has ``epilogue=`` if the kernel takes steps.

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
class Fills(Protocol):
    """A kernel of a delay that also writes the initial states of recurrences.

    Its index arrays are those of ``ctx.index_from``, which cannot be made where sequences continue others or may be continued, so that
    recorded work leaves nothing to be remembered.
    """

    def fill(self, op: Any, ctx: Context, out: Any, initial: Any, /) -> None:
        """Write the initial state, as :meth:`~cntk.core.operators.delay.Delay.fill` does.

        Args:
            op: the delay.
            ctx: the context.
            out: the result, ``(rows, *static)``.
            initial: the second operand, ``(rows, *static)``, or ``static`` without dynamic axes.
        """


@runtime_checkable
class TakesSteps(Protocol):
    """A kernel that applies element-wise operators to its result while that is in registers or cache.

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
    """A function from :meth:`Binds.bind`, or a pass through a loop, that gives a device the same work at each call, so that a recording
    can stand for it."""

    def holds(self) -> bool:
        """Whether the work is still what it was when it was last done or recorded; attributes of operators may have changed."""

    def prepare(self) -> None:
        """Write what differs from call to call into the device's memory."""

    def work(self) -> None:
        """Give the device the work, which is the same at each call; a call of the function is :meth:`prepare` and then this."""
