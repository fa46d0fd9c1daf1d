"""Operators with effects beyond their results: each runs exactly as often as it is in the graph; none is removed and no two are merged.

An operator with checkpoints of its own counts as one, whatever its kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .op import Op

if TYPE_CHECKING:
    from ..types.context import Context


class Effect(Op):
    """An operator whose forward does more than compute the result, or gives another one each time."""

    has_effects = True


class Assignment(Effect):
    """An operator that gives parameters or constants new values."""

    assigns: ClassVar[tuple[int, ...]] = ()
    """Operands that it gives new values."""


class Finishing(Effect):
    """An operator with something left to do when the pass is over, backward included."""

    def finish(self, ctx: Context, out: Any, *inputs: Any) -> None:
        """Do it; the arrays are still valid.

        Args:
            ctx: the context.
            out: the result, ``(rows, *static)``.
            inputs: the operands, ``(rows, *static)`` each.
        """
        raise NotImplementedError(f"{type(self).__name__}.finish")
