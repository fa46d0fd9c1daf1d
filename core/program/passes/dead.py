"""Dead code elimination: removes instructions whose results are no longer read after other passes.

Gradients that were not requested need no pass: the backward pass computes only requested ones.
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
        for part in reversed(program.parts()):
            if any(not instruction.is_pure or not read.isdisjoint(instruction.outputs) for instruction in part):
                kept += reversed(part)
                read.update(index for instruction in part for index in instruction.inputs)
            else:
                for instruction in part:
                    program.drop(instruction.outputs)
        program.instructions = kept[::-1]
