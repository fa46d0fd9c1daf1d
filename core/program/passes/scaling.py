"""Scaling: normalisation with fixed statistics becomes a product and a sum, and the factors go into weights before it.

Factors, terms and weights are computed again when a parameter or a running average has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.shape import Shape
from ...extension.identity import still_holds
from ...operators.abilities import Affine, TakesFactors
from ...types.spec import Spec
from ..slots import COMPUTED, FOLDED, HELD, Instruction
from .base import Pass
from .constants import Derived, FoldedConstants

if TYPE_CHECKING:
    from ..program import Program


class Scaling(Pass):
    """Rewrite operators that are affine outside training, in programs without gradients.

    Not in checked mode, in which messages tell which operator made a NaN.
    """

    name = "scaling"

    def rewrite(self, program: Program) -> None:
        if not program.is_inference or program.checked:
            return
        readers = Counter(index for instruction in program.instructions for index in instruction.inputs)
        made: dict[int, Instruction] = {}
        kept: list[Instruction] = []
        for instruction in program.instructions:
            written = _as_pair(program, instruction) or (instruction,)
            if len(written) > 1:
                multiply, add = written
                readers.update((multiply.inputs[1], *add.inputs))
                gone = _moved_back(program, multiply, add, made, readers)
                kept = [one for one in kept if one not in gone] if gone else kept
                written = tuple(one for one in written if one not in gone)
            kept += written
            made.update((index, one) for one in written for index in one.outputs)
        program.instructions = kept


def _as_pair(program: Program, instruction: Instruction) -> tuple[Instruction, ...] | None:
    """A product and a sum in place of an instruction; None if it is none."""
    op, slots = instruction.op, program.slots
    if (
        instruction.loop is not None
        or not issubclass(type(op), Affine)
        or not still_holds(type(op), "as_affine", "write_affine", "forward")
    ):
        return None
    affine = op.as_affine(*(slots[index].spec for index in instruction.inputs))
    if affine is None:
        return None
    sources = [instruction.inputs[position] for position in affine.sources]
    if not all(_is_fixed(program, index) for index in sources):
        return None
    result = slots[instruction.outputs[0]]
    factor, term = (_folded(program, affine.shape, like=sources[0]) for _ in range(2))
    _derive(program, (factor, term), sources, op.write_affine)
    between = program._add(result.spec, COMPUTED, result.variable)
    multiply = program.instruction(affine.multiply, instruction.node, (instruction.inputs[0], factor), (between,))
    return multiply, program.instruction(affine.add, instruction.node, (between, term), instruction.outputs)


def _moved_back(
    program: Program, multiply: Instruction, add: Instruction, made: dict[int, Instruction], readers: Counter[int]
) -> list[Instruction]:
    """Move factors into the weights of what makes the product's operand, and terms into the sum between; the instructions that are gone."""
    operand, factor = multiply.inputs
    before, between, bias = made.get(operand), None, -1
    is_sum = before is not None and type(before.op) is type(add.op) and _is_fixed(program, before.inputs[1])
    if before is not None and is_sum and _is_alone(program, operand, readers):
        between, (operand, bias) = before, before.inputs
        before = made.get(operand)
    if before is None or not _is_alone(program, operand, readers) or not _takes(program, before, factor):
        return []
    if between is None:
        before.outputs = multiply.outputs
        program.drop((operand,))
        made[multiply.outputs[0]] = before
        return [multiply]
    term = add.inputs[1]
    shape = np.broadcast_shapes(program.slots[bias].spec.dims, program.slots[factor].spec.dims)
    total = _folded(program, shape, like=term)
    _derive(program, (total,), (bias, factor, term), _write_total)
    program.drop((multiply.inputs[0], multiply.outputs[0]))
    add.inputs = (operand, total)
    return [between, multiply]


def _takes(program: Program, instruction: Instruction, factor: int) -> bool:
    """Whether factors can be multiplied into the weights of an instruction, which then reads the product."""
    op, slots = instruction.op, program.slots
    if instruction.loop is not None or not issubclass(type(op), TakesFactors) or not still_holds(type(op), "factored", "forward"):
        return False
    specs = [slots[index].spec for index in instruction.inputs]
    where = None if any(spec.sparse or not spec.is_concrete for spec in specs) else op.factored(slots[factor].spec.dims, *specs)
    if where is None or not _is_fixed(program, instruction.inputs[where[0]]):
        return False
    position, shape = where
    weights = instruction.inputs[position]
    scaled = _folded(program, slots[weights].spec.dims, like=weights)
    _derive(program, (scaled,), (weights, factor), partial(_write_scaled, shape))
    instruction.inputs = (*instruction.inputs[:position], scaled, *instruction.inputs[position + 1 :])
    return True


def _write_scaled(shape: Shape, xp: Any, targets: Sequence[Any], sources: Sequence[Any]) -> None:
    weights, factor = sources
    xp.multiply(weights, factor.reshape(shape), out=targets[0])


def _write_total(xp: Any, targets: Sequence[Any], sources: Sequence[Any]) -> None:
    bias, factor, term = sources
    xp.multiply(bias, factor, out=targets[0])
    xp.add(targets[0], term, out=targets[0])


def _is_fixed(program: Program, index: int) -> bool:
    """Whether a value is dense and the same for all samples, run after run."""
    slot = program.slots[index]
    return slot.kind in (HELD, FOLDED) and slot.spec.axes == () and not slot.spec.sparse


def _is_alone(program: Program, index: int, readers: Counter[int]) -> bool:
    """Whether a result is read once, and not asked for."""
    return readers[index] == 1 and index not in program.asked


def _folded(program: Program, shape: Shape, like: int) -> int:
    """A value that is computed when what it depends on has changed."""
    slot = program.slots[like]
    if program.folded is None:
        program.folded = FoldedConstants(program)
    return program._add(Spec(tuple(shape), slot.spec.dtype, ()), FOLDED, slot.variable)


def _derive(program: Program, targets: Sequence[int], sources: Sequence[int], write: Any) -> None:
    assert program.folded is not None
    program.folded.derive(program, Derived(targets, sources, write))
