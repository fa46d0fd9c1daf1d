"""The base class of passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ..program import Program


class Pass:
    """An optimisation of programs.

    Requested results, ``program.asked``, keep slots of their own, and recurrences (``instruction.loop``) keep their
    instructions.

    >>> from cntk.extend import Pass, hookimpl, register_plugin, unregister_plugin
    >>> class Listing(Pass):
    ...     name = 'listing'
    ...
    ...     def rewrite(self, program):
    ...         print([instruction.op.op_name for instruction in program.instructions])
    >>> class Plugin:
    ...     @hookimpl
    ...     def cntk_register_passes(self, register):
    ...         register('listing', Listing())
    >>> register_plugin(Plugin(), 'listing')
    >>> value = C.relu(C.input_variable(1) + 1).eval([[1]])
    ['Plus', 'ReLU']
    >>> unregister_plugin('listing')
    """

    name: ClassVar[str] = ""
    """Its name for :func:`~cntk.core.program.passes.set_passes`."""

    def rewrite(self, program: Program) -> None:
        """Change ``program.instructions`` and the operands they read, before views are chosen and the backward pass is written."""

    def arrange(self, program: Program) -> None:
        """Change where results and gradients lie, once it is known when each is needed."""
