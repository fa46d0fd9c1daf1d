"""Recurrences at work: a loop's instructions bound once for each step.

Rows are packed by step, so that a step of a value is one contiguous slice of its array and a delay copies one slice into another.
What operands from outside a loop are due is computed after it, for all steps at once: the weights of a recurrent network get
their gradient from one product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .context import Context
from .layout import Layout

if TYPE_CHECKING:
    from .binding import Binding
    from .slots import Instruction, Loop


class Unrolling:
    """A loop bound to the lengths of the sequences at hand.

    Args:
        binding: the arrays of the program.
        loop: the recurrence.
    """

    def __init__(self, binding: Binding, loop: Loop) -> None:
        self.binding, self.loop = binding, loop
        layout = binding.layouts[loop.body[0].outputs[0]]
        assert layout is not None
        self.alive = layout.alive.tolist()
        self.starts = layout.offsets.tolist()
        self.steps = list(range(len(self.alive)))
        if not loop.forward:
            self.steps.reverse()
        self._one_step: dict[int, Layout] = {}
        self._contexts: dict[tuple[int, int], Context] = {}

    def bind_forward(self) -> None:
        """Append the steps that compute the loop."""
        binding, computed = self.binding, [instruction for instruction in self.loop.body if not instruction.is_view]
        for instruction in computed:
            if instruction.op.shift:
                out, initial = binding.result(instruction), binding.arrays[instruction.inputs[1]]
                step = (instruction.op.fill, (binding.contexts[instruction], out, initial))
                binding.append(binding.forward_steps, step, instruction)
        for step in self.steps:
            for instruction in computed:
                if instruction.op.shift:
                    self._shift(instruction, step)
                else:
                    self._compute(instruction, step)

    def bind_backward(self) -> None:
        """Append the steps that go back through the loop."""
        binding, arrays = self.binding, self.binding.arrays
        for index in self.loop.zeros:
            binding.append(binding.backward_steps, (arrays[index].fill, (0,)), self.loop.body[0])
        body = [instruction for instruction in reversed(self.loop.body) if instruction.grad is not None]
        for step in reversed(self.steps):
            for instruction in body:
                if instruction.carried is not None:
                    self._shift_back(instruction, step)
                if any(index is not None for index in instruction.grads):
                    self._differentiate(instruction, step)
                for total, term in instruction.sums:
                    sliced = self._slice(total, step), self._slice(term, step)
                    binding.append(binding.backward_steps, (binding.backend.xp.add, (*sliced, sliced[0])), instruction)

    # ---- one instruction at one step ----

    def _compute(self, instruction: Instruction, step: int) -> None:
        binding = self.binding
        result = self._result(instruction, step)
        operands = self._operands(instruction, step)
        binding.append(binding.forward_steps, (instruction.forward, (self._context(instruction, step), result, *operands)), instruction)
        binding.check(result, instruction)

    def _differentiate(self, instruction: Instruction, step: int) -> None:
        binding = self.binding
        grad = [None if index is None else self._slice(index, step) for index in instruction.grad or ()]
        grads = [None if index is None else self._slice(index, step) for index in instruction.grads]
        context, result = self._context(instruction, step), self._result(instruction, step)
        made = binding.backward_step(instruction, context, grad, grads, result, self._operands(instruction, step))
        binding.append(binding.backward_steps, made, instruction)

    def _shift(self, instruction: Instruction, step: int) -> None:
        rows = self._rows_shifted(instruction, step)
        if rows is not None:
            to, source = rows
            out, x = self.binding.arrays[instruction.outputs[0]], self.binding.arrays[instruction.inputs[0]]
            self.binding.append(self.binding.forward_steps, (self.binding.backend.xp.copyto, (out[to], x[source])), instruction)

    def _shift_back(self, instruction: Instruction, step: int) -> None:
        rows = self._rows_shifted(instruction, step)
        if rows is not None:
            to, source = rows
            assert instruction.grad is not None and instruction.grad[0] is not None and instruction.carried is not None
            total, term = self.binding.arrays[instruction.carried][source], self.binding.arrays[instruction.grad[0]][to]
            self.binding.append(self.binding.backward_steps, (self.binding.backend.xp.add, (total, term, total)), instruction)

    def _rows_shifted(self, instruction: Instruction, step: int) -> tuple[slice, slice] | None:
        """Rows of a step that a delay writes, and those it reads; None where it reads outside all sequences."""
        source = step - instruction.op.shift
        if not 0 <= source < len(self.alive):
            return None
        count = min(self.alive[step], self.alive[source])
        to, first = self.starts[step], self.starts[source]
        return slice(to, to + count), slice(first, first + count)

    # ---- arrays and layouts of a step ----

    def _operands(self, instruction: Instruction, step: int) -> list[Any]:
        operands = [self._slice(index, step) for index in instruction.inputs]
        if not instruction.op.aligned:
            return operands
        return [self.binding.aligned(x, i, instruction) for i, x in zip(instruction.inputs, operands, strict=True)]

    def _result(self, instruction: Instruction, step: int) -> Any:
        parts = tuple(self._slice(index, step) for index in instruction.outputs)
        return parts[0] if instruction.op.outputs == 1 else parts

    def _slice(self, index: int, step: int) -> Any:
        array = self.binding.arrays[index]
        if self.binding.layouts[index] is None:
            return array
        return array[self.starts[step] : self.starts[step + 1]]

    def _context(self, instruction: Instruction, step: int) -> Context:
        key = (instruction.outputs[0], step)
        context = self._contexts.get(key)
        if context is None:
            binding, layout = self.binding, self._layout(self.alive[step])
            context = self._contexts[key] = Context(binding.backend, binding.program.training, binding.pool)
            context.layouts = [None if binding.layouts[i] is None else layout for i in instruction.inputs]
            context.layout = layout
        return context

    def _layout(self, count: int) -> Layout:
        """The layout of a step: *count* sequences of one step."""
        if count not in self._one_step:
            self._one_step[count] = Layout(count, np.ones(count, dtype=np.intp))
        return self._one_step[count]

