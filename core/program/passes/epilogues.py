"""Epilogues: element-wise operators go to the kernel whose result they read, if it accepts them.

A kernel that does so has a method ``takes(op, steps)``: given its operator and a list of :class:`~cntk.core.operators.epilogue.Step`
that follow, it returns how many of them, from the first on, its methods apply; they are then called with ``epilogue=``, an
:class:`~cntk.core.operators.epilogue.Epilogue`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...extension.kernel import TakesSteps
from ...operators.delay import Delay
from ...operators.effects import Finishing
from ...operators.elementwise import Broadcasting, Elementwise
from ...operators.epilogue import Step, WithEpilogue
from ...operators.op import Op, includes
from ...operators.sequence_op import SequenceOp
from ...operators.view import GradientView, View
from ..slots import COMPUTED, Instruction
from .base import Pass

if TYPE_CHECKING:
    from ..program import Program


class Epilogues(Pass):
    """Merge an instruction with the element-wise operators on its result that follow it directly.

    Not in checked mode, in which messages tell which operator made a NaN.
    """

    name = "epilogues"

    def rewrite(self, program: Program) -> None:
        if program.checked:
            return
        readers = Counter(index for instruction in program.instructions for index in instruction.inputs)
        kept: list[Instruction] = []
        place = 0
        while place < len(program.instructions):
            instruction = program.instructions[place]
            takes = instruction.kernel is not None and issubclass(instruction.kernel, TakesSteps)
            followers = _taken(program, place, readers) if takes else []
            kept.append(_merged(program, instruction, followers) if followers else instruction)
            place += 1 + len(followers)
        program.instructions = kept


def _taken(program: Program, place: int, readers: Counter[int]) -> list[Instruction]:
    """The instructions that follow the one at this place and that its kernel takes."""
    first = program.instructions[place]
    result = first.outputs[0]
    if first.loop is not None or not _may_begin(first.op) or not program.slots[result].spec.is_concrete:
        return []
    if any(program.slots[index].spec.sparse for index in first.inputs):  # sums of few terms are never all in registers
        return []
    found: list[Instruction] = []
    for follower in program.instructions[place + 1 :]:
        if readers[result] != 1 or result in program.asked or not _is_step(program, follower, result):
            break
        found.append(follower)
        result = follower.outputs[0]
        if follower.op.keep_output:
            break
    count = first.kernel.takes(first.op, _steps(program, first, found)) if found else 0
    return found[:count]


def _may_begin(op: Op) -> bool:
    """Whether an operator does nothing but compute one dense result, which its gradient does not need."""
    more = isinstance(op, (Broadcasting, Delay, Finishing, GradientView, SequenceOp, View))
    return op.outputs == 1 and not (more or op.keep_output or op.keeps_state)


def _is_step(program: Program, instruction: Instruction, result: int) -> bool:
    """Whether it can be applied to *result* in place, and needs at most its own result for the gradient."""
    op, slots = instruction.op, program.slots
    if not isinstance(op, Elementwise) or instruction.inputs.count(result) != 1 or instruction.loop is not None:
        return False
    spec = slots[result].spec
    others = [slots[index].spec for index in instruction.inputs if index != result]
    return (
        includes(op.in_place, instruction.inputs.index(result))
        and instruction.is_pure
        and op.by_rows
        and op.keep_inputs == ()
        and slots[instruction.outputs[0]].spec == spec
        and slots[instruction.outputs[0]].kind == COMPUTED
        and all(not other.sparse and (other.axes == () or (other.axes, other.rank) == (spec.axes, spec.rank)) for other in others)
    )


def _steps(program: Program, first: Instruction, followers: list[Instruction]) -> list[Step]:
    steps, result = [], first.outputs[0]
    for follower in followers:
        position = follower.inputs.index(result)
        others = tuple(program.slots[index].spec for i, index in enumerate(follower.inputs) if i != position)
        assert isinstance(follower.op, Elementwise)
        steps.append(Step(follower.op, position, others, goes_back=not program.is_inference))
        result = follower.outputs[0]
    return steps


def _merged(program: Program, first: Instruction, followers: list[Instruction]) -> Instruction:
    """One instruction in place of several, whose intermediate results are dropped."""
    op = WithEpilogue(first.op, first.kernel, len(first.inputs), _steps(program, first, followers))
    inner = {first.outputs[0], *(follower.outputs[0] for follower in followers[:-1])}
    others = [index for follower in followers for index in follower.inputs if index not in inner]
    program.drop(inner)
    bind = None if first.bind is None else op.bind
    return Instruction(op, first.node, first.kernel, op.forward, op.backward, (*first.inputs, *others), followers[-1].outputs, bind=bind)
