"""Dead code: instructions go whose results nobody reads any more, once other passes have done their work.

Gradients that nobody asked for need no pass: the backward pass is written for those that were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Pass

if TYPE_CHECKING:
    from ..program import Program
    from ..slots import Instruction


class DeadCode(Pass):
    """Remove instructions whose results are neither read nor asked for."""

    name = "dead"

    def rewrite(self, program: Program) -> None:
        read = set(program.asked)
        kept: list[Instruction] = []
        for loop_or_none in reversed(program.parts()):
            if any(not i.is_pure or not read.isdisjoint(i.outputs) for i in loop_or_none):
                kept += reversed(loop_or_none)
                read.update(index for instruction in loop_or_none for index in instruction.inputs)
            else:
                for instruction in loop_or_none:
                    program.drop(instruction.outputs)
        program.instructions = kept[::-1]
