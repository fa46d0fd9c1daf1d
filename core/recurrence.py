"""Recurrences at work: a loop's instructions called once for each step.

Rows are packed by step, so that a step of a value is one contiguous slice of its array and a delay copies one slice into another.
What operands from outside a loop are due is computed after it, for all steps at once: the weights of a recurrent network get
their gradient from one product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .context import Context, StepContext
from .layout import Index, Layout

if TYPE_CHECKING:
    from .binding import Binding, Step
    from .sizes import Sizes
    from .slots import Instruction, Loop

At = Callable[[int], "Iterable[Step]"]
"""Makes the calls of one step of a loop that are no repetition of one for all rows, given the step's number."""


class Unrolling:
    """A loop at work on the arrays of a binding.

    Args:
        binding: the arrays of the program.
        loop: the recurrence.

    Attributes:
        alive, starts: how many sequences each step has, and its first row.
        ones: as many ones as any step has sequences.
    """

    def __init__(self, binding: Binding, loop: Loop) -> None:
        self.binding, self.loop = binding, loop
        self.layout = Layout(0, np.zeros(0, np.intp))
        self._contexts: dict[Instruction, Context] = {}
        self._contexts_at: dict[tuple[Instruction, int], Context] = {}
        self.take_over(binding.sizes)

    def take_over(self, sizes: Sizes) -> None:
        """Step over the sequences of another minibatch from now on, which may have other lengths in as many rows."""
        layout = sizes.layouts[self.loop.body[0].outputs[0]]
        assert layout is not None
        self.alive: list[int] = layout.alive.tolist()
        self.starts: list[int] = layout.offsets.tolist()
        self.ones: Index = np.ones(max(self.alive), np.intp)
        self._contexts_at.clear()

    def bind_forward(self) -> None:
        """Append the steps that compute the loop."""
        binding, steps = self.binding, self.binding.forward_steps
        delays = [instruction for instruction in self.loop.body if instruction.op.steps_back]
        for delay in delays:
            arguments = (binding.contexts[delay], binding.result(delay), binding.arrays[delay.inputs[1]])
            steps.append((delay.op.fill, arguments, delay.node))
        sweep = Sweep(self, rising=self.loop.forward)
        for instruction in self.loop.body:
            if instruction.op.steps_back:
                sweep.add(self._shifted(instruction))
            else:
                sweep.repeat(binding.forward_step(instruction), instruction)
        sweep.close()
        steps.append(sweep)
        for delay in delays:
            steps.append((delay.op.remember, (binding.contexts[delay], binding.arrays[delay.inputs[0]]), delay.node))

    def bind_backward(self, binding: Binding) -> None:
        """Append the steps that go back through the loop to the binding of the last stage, which has the gradients."""
        self.binding, steps = binding, binding.backward_steps
        steps.extend((binding.arrays[index].fill, (0,), self.loop.body[0].node) for index in self.loop.zeros)
        sweep = Sweep(self, rising=not self.loop.forward)
        for instruction in reversed(self.loop.body):
            if instruction.grad is None:
                continue
            if instruction.carried is not None:
                sweep.add(self._shifted_back(instruction))
            sweep.repeat(binding.backward_step(instruction, instruction.grads, instruction.sums), instruction)
        sweep.close()
        steps.append(sweep)

    def context(self, instruction: Instruction, time: int) -> Context:
        """The context of an instruction at a step; one serves all steps where nothing is kept in it for the way back."""
        if instruction.op.by_rows:
            if instruction not in self._contexts:
                self._contexts[instruction] = self._new_context(StepContext, instruction, self.layout)
            return self._contexts[instruction]
        if (instruction, time) not in self._contexts_at:
            count = self.alive[time]
            self._contexts_at[instruction, time] = self._new_context(Context, instruction, Layout(count, self.ones[:count]))
        return self._contexts_at[instruction, time]

    def _new_context(self, kind: type[Context], instruction: Instruction, layout: Layout) -> Context:
        binding = self.binding
        context = kind(binding.backend, binding.program.training, binding.pool)
        context.layouts = [None if known is None else layout for known in binding.sizes.layouts_of(instruction.inputs)]
        context.layout = layout
        return context

    # ---- delays ----

    def _shifted(self, instruction: Instruction) -> At:
        copyto = self.binding.backend.xp.copyto
        out, x = self.binding.arrays[instruction.outputs[0]], self.binding.arrays[instruction.inputs[0]]
        x = x.reshape(len(x), *(1,) * (out.ndim - x.ndim), *x.shape[1:])

        def at(time: int) -> Iterable[Step]:
            for to, source in self._rows_shifted(instruction, time):
                yield copyto, (out[to], x[source]), instruction.node

        return at

    def _shifted_back(self, instruction: Instruction) -> At:
        context, add = self.binding.contexts[instruction], self.binding.backend.xp.add
        assert instruction.grad is not None and instruction.grad[0] is not None and instruction.carried is not None
        total, term = self.binding.arrays[instruction.carried], self.binding.arrays[instruction.grad[0]]

        def at(time: int) -> Iterable[Step]:
            for to, source in self._rows_shifted(instruction, time):
                if total.shape[1:] == term.shape[1:]:
                    yield add, (total[source], term[to], total[source]), instruction.node
                else:
                    yield _add_sum, (context, total[source], term[to]), instruction.node

        return at

    def _rows_shifted(self, instruction: Instruction, time: int) -> Iterable[tuple[slice, slice]]:
        """Rows of a step that a delay writes, and those it reads; none where it reads outside all sequences."""
        source = time - instruction.op.steps_back
        if 0 <= source < len(self.alive):
            count = min(self.alive[time], self.alive[source])
            to, first = self.starts[time], self.starts[source]
            yield slice(to, to + count), slice(first, first + count)


def _add_sum(context: Context, total: Any, term: Any) -> None:
    """Add a term of a larger shape, summed over the axes along which *total* was broadcast."""
    summed = context.scratch("summed", total.shape, total.dtype)
    context.sum_to(term, summed.reshape(len(summed), *(1,) * (term.ndim - total.ndim), *total.shape[1:]))
    context.xp.add(total, summed, out=total)


class Sweep:
    """The calls of a loop in one direction: calls for all rows, repeated for the rows of each step.

    A step's arguments are picked from a pool of objects: rows of arrays, contexts, what is the same at every step, and tuples of these.
    Picking is all that is done for a call, since there are thousands, and minibatches hardly ever have the same lengths twice.

    Args:
        unrolling: the loop.
        rising: whether steps come in the order of time.
    """

    def __init__(self, unrolling: Unrolling, *, rising: bool) -> None:
        self.unrolling, self.rising = unrolling, rising
        binding = unrolling.binding
        touched = {index for instruction in unrolling.loop.body for index in instruction.touched()}
        self._fixed = {id(binding.arrays[index]) for index in touched if binding.layouts[index] is None}
        self._arrays: list[Any] = []
        self._instructions: list[Instruction] = []
        self._objects: list[Any] = []
        self._tuples: list[Any] = []
        self._place_of: dict[tuple[str, int], int] = {}
        self._runs: list[Any] = []

    def add(self, at: At) -> None:
        """Add calls that are made for each step in a way of their own."""
        self._runs.append(at)

    def repeat(self, steps: Iterable[Step], instruction: Instruction) -> None:
        """Add calls for all rows."""
        if not self._runs or callable(self._runs[-1]):
            self._runs.append([])
        for method, arguments, node in steps:
            self._runs[-1].append((method, [self._place(argument, instruction) for argument in arguments], node))

    def close(self) -> None:
        """Settle where arguments are picked, once all calls are there."""
        begins = self._begins()
        self._tuples = [_picker(places, begins) for places in self._tuples]
        for run in self._runs:
            if not callable(run):
                run[:] = [(method, _picker(places, begins), node) for method, places, node in run]

    def steps(self) -> Iterator[Step]:
        """The calls of each step, one step after another."""
        unrolling, layout = self.unrolling, self.unrolling.layout
        starts, context, ones = unrolling.starts, unrolling.context, unrolling.ones
        count = len(unrolling.alive)
        for time in range(count) if self.rising else reversed(range(count)):
            first, last = starts[time], starts[time + 1]
            layout.resize(last - first, ones)
            pool = [array[first:last] for array in self._arrays]
            pool += [context(instruction, time) for instruction in self._instructions]
            pool += self._objects
            for pick in self._tuples:
                pool.append(pick(pool))
            for run in self._runs:
                if callable(run):
                    yield from run(time)
                else:
                    for method, pick, node in run:
                        yield method, pick(pool), node

    def _begins(self) -> dict[str, int]:
        """Where each kind of object begins in the pool."""
        arrays, instructions, objects = len(self._arrays), len(self._instructions), len(self._objects)
        return {"rows": 0, "context": arrays, "object": arrays + instructions, "tuple": arrays + instructions + objects}

    def _place(self, argument: Any, instruction: Instruction) -> _Place:
        if isinstance(argument, (tuple, list)):
            self._tuples.append([self._place(item, instruction) for item in argument])
            return "tuple", len(self._tuples) - 1
        if isinstance(argument, Context):
            if instruction.op.by_rows:
                return self._held("object", self.unrolling.context(instruction, 0), self._objects)
            return self._held("context", instruction, self._instructions)
        if hasattr(argument, "nbytes") and id(argument) not in self._fixed:
            return self._held("rows", argument, self._arrays)
        return self._held("object", argument, self._objects)

    def _held(self, kind: str, item: Any, items: list[Any]) -> _Place:
        number = self._place_of.setdefault((kind, id(item)), len(items))
        if number == len(items):
            items.append(item)
        return kind, number


_Place = tuple[str, int]
"""Where an argument lies in the pool: its kind, and its number among those."""


def _picker(places: list[_Place], begins: dict[str, int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """A function that picks the objects at these places out of the pool, as a tuple."""
    indices = [begins[kind] + number for kind, number in places]
    if len(indices) == 1:
        return lambda pool: (pool[indices[0]],)
    return itemgetter(*indices)
