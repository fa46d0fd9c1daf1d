"""Operators that read another step than they write, and so may close a recurrence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .effects import Effect

if TYPE_CHECKING:
    from ..types.context import Context


class Delay(Effect):
    """An operator that gives the first operand of another step, and where a sequence has none the second operand, the initial state.

    Only a delay may close a cycle of a graph, which then runs step by step: :meth:`fill` is called before the steps, which are copied
    from one to the other, and :meth:`remember` behind them.  Outside a recurrence ``forward`` does it all.  An initial state on the batch
    axis alone is not repeated for each step.

    >>> from cntk.extend import Delay
    >>> x = C.sequence.input_variable(1)
    >>> delay = C.sequence.past_value(x, time_step=2).root_function.op
    >>> isinstance(delay, Delay), delay.steps_back
    (True, 2)
    """

    @property
    def steps_back(self) -> int:
        """How many steps earlier (positive) or later (negative) the first operand is read; never 0."""
        raise NotImplementedError(f"{type(self).__name__}.steps_back")

    def fill(self, ctx: Context, out: Any, initial: Any) -> None:
        """Write the initial state to the rows of the result that read outside their sequence.

        Args:
            ctx: the context.
            out: the result, ``(rows, *static)``.
            initial: the second operand, ``(rows, *static)``, or ``static`` without dynamic axes.
        """
        raise NotImplementedError(f"{type(self).__name__}.fill")

    def remember(self, ctx: Context, x: Any) -> None:
        """Keep the states of sequences that the next minibatch continues.

        Args:
            ctx: the context.
            x: the first operand, ``(rows, *static)``, when all its steps are computed.
        """
        raise NotImplementedError(f"{type(self).__name__}.remember")
