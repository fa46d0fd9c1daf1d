"""Recurrences at work: a loop's instructions bound once for each step.

Rows are packed by step, so that a step of a value is one contiguous slice of its array and a delay copies one slice into another.
What operands from outside a loop are due is computed after it, for all steps at once: the weights of a recurrent network get
their gradient from one product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .context import Context, StepContext
from .layout import Layout

if TYPE_CHECKING:
    from .binding import Binding, Step
    from .slots import Instruction, Loop

FIXED, ROWS, CONTEXT, LIST = range(4)
Pattern = tuple[int, Any]
"""An argument of a step's call: a fixed object, rows of an array (by its number), the step's context, or several arguments."""


class Unrolling:
    """A loop bound to the lengths of the sequences at hand.

    Args:
        binding: the arrays of the program.
        loop: the recurrence.
        contexts: contexts of earlier unrollings of the loop, by instruction and number of sequences; new ones are added.
    """

    def __init__(self, binding: Binding, loop: Loop, contexts: dict[Any, Context]) -> None:
        self.binding, self.loop = binding, loop
        layout = binding.layouts[loop.body[0].outputs[0]]
        assert layout is not None
        self.alive = layout.alive.tolist()
        self.starts = layout.offsets.tolist()
        self.steps = list(range(len(self.alive)))
        if not loop.forward:
            self.steps.reverse()
        self._shared_contexts = contexts
        self._own_contexts: dict[Any, Context] = {}
        self._fixed = {id(array) for array, known in zip(binding.arrays, binding.layouts, strict=True) if known is None}
        self._sources: list[Any] = []
        self._number_of: dict[int, int] = {}

    def bind_forward(self) -> None:
        """Append the steps that compute the loop."""
        binding, steps = self.binding, self.binding.forward_steps
        patterns: list[Callable[[int, list[Any]], Iterable[Step]]] = []
        for instruction in self.loop.body:
            if instruction.op.shift:
                result, initial = binding.result(instruction), binding.arrays[instruction.inputs[1]]
                steps.append((instruction.op.fill, (binding.contexts[instruction], result, initial), instruction.node))
                patterns.append(self._shifted(instruction))
            elif not instruction.is_view:
                patterns.extend(self._repeated(step, instruction) for step in binding.forward_step(instruction))
        self._unroll(steps, self.steps, patterns)
        for instruction in self.loop.body:
            if instruction.op.shift:
                arguments = (binding.contexts[instruction], binding.arrays[instruction.inputs[0]])
                steps.append((instruction.op.remember, arguments, instruction.node))

    def bind_backward(self, binding: Binding) -> None:
        """Append the steps that go back through the loop to the binding of the last stage, which has the gradients."""
        self.binding, self._sources, self._number_of = binding, [], {}
        steps = binding.backward_steps
        steps.extend((binding.arrays[index].fill, (0,), self.loop.body[0].node) for index in self.loop.zeros)
        patterns: list[Callable[[int, list[Any]], Iterable[Step]]] = []
        for instruction in reversed(self.loop.body):
            if instruction.grad is None:
                continue
            if instruction.carried is not None:
                patterns.append(self._shifted_back(instruction))
            made = binding.backward_step(instruction, instruction.grads, instruction.sums)
            patterns.extend(self._repeated(step, instruction) for step in made)
        self._unroll(steps, reversed(self.steps), patterns)

    def _unroll(self, steps: list[Step], times: Iterable[int], patterns: list[Callable[[int, list[Any]], Iterable[Step]]]) -> None:
        starts, sources = self.starts, self._sources
        for time in times:
            first, last = starts[time], starts[time + 1]
            rows = [array[first:last] for array in sources]
            for pattern in patterns:
                steps.extend(pattern(time, rows))

    # ---- a call for all rows, repeated for the rows of each step ----

    def _repeated(self, step: Step, instruction: Instruction) -> Callable[[int, list[Any]], Iterable[Step]]:
        method, arguments, node = step
        patterns = [self._pattern(argument) for argument in arguments]

        def at(time: int, rows: list[Any]) -> Iterable[Step]:
            context = self._context(instruction, time)
            return ((method, tuple([_filled(pattern, rows, context) for pattern in patterns]), node),)

        return at

    def _pattern(self, argument: Any) -> Pattern:
        if isinstance(argument, (tuple, list)):
            return LIST, [self._pattern(item) for item in argument]
        if isinstance(argument, Context):
            return CONTEXT, None
        if not hasattr(argument, "nbytes") or id(argument) in self._fixed:
            return FIXED, argument
        number = self._number_of.setdefault(id(argument), len(self._sources))
        if number == len(self._sources):
            self._sources.append(argument)
        return ROWS, number

    def _context(self, instruction: Instruction, time: int) -> Context:
        """The context of an instruction at a step; steps share it where nothing is kept in it for the way back."""
        count, by_rows = self.alive[time], instruction.op.by_rows
        contexts, key = (self._shared_contexts, (instruction, count)) if by_rows else (self._own_contexts, (instruction, time))
        context = contexts.get(key)
        if context is None:
            binding, kind = self.binding, StepContext if by_rows else Context
            context = contexts[key] = kind(binding.backend, binding.program.training, binding.pool)
            layout = Layout(count, np.ones(count, dtype=np.intp))
            context.layouts = [None if binding.layouts[i] is None else layout for i in instruction.inputs]
            context.layout = layout
        return context

    # ---- delays ----

    def _shifted(self, instruction: Instruction) -> Callable[[int, list[Any]], Iterable[Step]]:
        copyto = self.binding.backend.xp.copyto
        out, x = self.binding.arrays[instruction.outputs[0]], self.binding.arrays[instruction.inputs[0]]
        x = x.reshape(len(x), *(1,) * (out.ndim - x.ndim), *x.shape[1:])

        def at(time: int, rows: list[Any]) -> Iterable[Step]:
            for to, source in self._rows_shifted(instruction, time):
                yield copyto, (out[to], x[source]), instruction.node

        return at

    def _shifted_back(self, instruction: Instruction) -> Callable[[int, list[Any]], Iterable[Step]]:
        context, add = self.binding.contexts[instruction], self.binding.backend.xp.add
        assert instruction.grad is not None and instruction.grad[0] is not None and instruction.carried is not None
        total, term = self.binding.arrays[instruction.carried], self.binding.arrays[instruction.grad[0]]

        def at(time: int, rows: list[Any]) -> Iterable[Step]:
            for to, source in self._rows_shifted(instruction, time):
                if total.shape[1:] == term.shape[1:]:
                    yield add, (total[source], term[to], total[source]), instruction.node
                else:
                    yield _add_sum, (context, total[source], term[to]), instruction.node

        return at

    def _rows_shifted(self, instruction: Instruction, time: int) -> Iterable[tuple[slice, slice]]:
        """Rows of a step that a delay writes, and those it reads; none where it reads outside all sequences."""
        source = time - instruction.op.shift
        if 0 <= source < len(self.alive):
            count = min(self.alive[time], self.alive[source])
            to, first = self.starts[time], self.starts[source]
            yield slice(to, to + count), slice(first, first + count)


def _add_sum(context: Context, total: Any, term: Any) -> None:
    """Add a term of a larger shape, summed over the axes along which *total* was broadcast."""
    summed = context.scratch("summed", total.shape, total.dtype)
    context.sum_to(term, summed.reshape(len(summed), *(1,) * (term.ndim - total.ndim), *total.shape[1:]))
    context.xp.add(total, summed, out=total)


def _filled(pattern: Pattern, rows: list[Any], context: Context) -> Any:
    kind, what = pattern
    if kind == ROWS:
        return rows[what]
    if kind == FIXED:
        return what
    if kind == CONTEXT:
        return context
    return [_filled(item, rows, context) for item in what]
