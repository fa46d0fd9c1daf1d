"""The base class of passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ..program import Program


class Pass:
    """An optimisation of programs.

    Requested results, ``program.asked``, keep slots of their own, and recurrences (``instruction.loop``) keep their
    instructions.
    """

    name: ClassVar[str] = ""
    """Its name for :func:`~cntk.core.program.passes.set_passes`."""

    def rewrite(self, program: Program) -> None:
        """Change ``program.instructions`` and the operands they read, before views are chosen and the backward pass is written."""

    def arrange(self, program: Program) -> None:
        """Change where results and gradients lie, once it is known when each is needed."""
