"""What a pass is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ..program import Program


class Pass:
    """One way of making programs better.

    Results that somebody asked for, ``program.asked``, keep slots of their own, and recurrences (``instruction.loop``) keep their
    instructions.
    """

    name: ClassVar[str] = ""
    """What :func:`~cntk.core.program.passes.set_passes` calls it."""

    def rewrite(self, program: Program) -> None:
        """Change ``program.instructions`` and the operands they read, before views are chosen and the backward pass is written."""

    def arrange(self, program: Program) -> None:
        """Change where results and gradients lie, once it is known when each is needed."""
