"""Recurrences at work: a loop's instructions bound once for each step.

Rows are packed by step, so that a step of a value is one contiguous slice of its array and a delay copies one slice into another.
What operands from outside a loop are due is computed after it, for all steps at once: the weights of a recurrent network get
their gradient from one product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .context import Context, StepContext
from .layout import Layout

if TYPE_CHECKING:
    from .binding import Binding, Step
    from .function import Primitive
    from .sizes import Sizes
    from .slots import Instruction, Loop

StepContexts = MutableMapping[tuple["Instruction", int], StepContext]
"""Contexts of instructions in loops, by the number of sequences that are alive."""

At = Callable[[int], "Iterable[Step]"]
"""Makes the calls of one step of a loop, given its number."""


class Unrolling:
    """A loop bound to the lengths of the sequences at hand.

    Args:
        binding: the arrays of the program.
        loop: the recurrence.
        contexts: contexts of unrollings that are in use; new ones are added.
    """

    def __init__(self, binding: Binding, loop: Loop, contexts: StepContexts) -> None:
        self.binding, self.loop = binding, loop
        layout = binding.layouts[loop.body[0].outputs[0]]
        assert layout is not None
        self.alive = layout.alive.tolist()
        self.starts = layout.offsets.tolist()
        self.steps = list(range(len(self.alive)))
        if not loop.forward:
            self.steps.reverse()
        self._contexts = contexts
        self._own_contexts: dict[Any, Context] = {}
        self._layouts: dict[int, Layout] = {}
        self._fixed = _without_rows(binding)

    def bind_forward(self) -> None:
        """Append the steps that compute the loop."""
        binding, steps = self.binding, self.binding.forward_steps
        delays = [instruction for instruction in self.loop.body if instruction.op.shift]
        for delay in delays:
            arguments = (binding.contexts[delay], binding.result(delay), binding.arrays[delay.inputs[1]])
            steps.append((delay.op.fill, arguments, delay.node))
        calls = _Calls(self)
        for instruction in self.loop.body:
            if instruction.op.shift:
                calls.add(self._shifted(instruction))
            else:
                calls.repeat(binding.forward_step(instruction), instruction)
        calls.unroll(steps, self.steps)
        for delay in delays:
            steps.append((delay.op.remember, (binding.contexts[delay], binding.arrays[delay.inputs[0]]), delay.node))

    def suits(self, sizes: Sizes) -> bool:
        """Whether as many sequences are alive at each step of the loop for a minibatch of these sizes."""
        layout = sizes.layouts[self.loop.body[0].outputs[0]]
        return layout is not None and layout.alive.tolist() == self.alive

    def bind_backward(self, binding: Binding) -> None:
        """Append the steps that go back through the loop to the binding of the last stage, which has the gradients."""
        self.binding, self._fixed = binding, _without_rows(binding)
        steps = binding.backward_steps
        steps.extend((binding.arrays[index].fill, (0,), self.loop.body[0].node) for index in self.loop.zeros)
        calls = _Calls(self)
        for instruction in reversed(self.loop.body):
            if instruction.grad is None:
                continue
            if instruction.carried is not None:
                calls.add(self._shifted_back(instruction))
            calls.repeat(binding.backward_step(instruction, instruction.grads, instruction.sums), instruction)
        calls.unroll(steps, reversed(self.steps))

    def has_rows(self, argument: Any) -> bool:
        """Whether an argument of a call for all rows is an array of which each step sees its rows."""
        return hasattr(argument, "nbytes") and id(argument) not in self._fixed

    def context(self, instruction: Instruction, time: int) -> Context:
        """The context of an instruction at a step; steps share it where nothing is kept in it for the way back."""
        count, by_rows = self.alive[time], instruction.op.by_rows
        contexts: Any = self._contexts if by_rows else self._own_contexts
        key = (instruction, count if by_rows else time)
        context: Context | None = contexts.get(key)
        if context is None:
            binding, kind, layout = self.binding, StepContext if by_rows else Context, self._layout(count)
            context = contexts[key] = kind(binding.backend, binding.program.training, binding.pool)
            context.layouts = [None if known is None else layout for known in binding.sizes.layouts_of(instruction.inputs)]
            context.layout = layout
        return context

    def _layout(self, count: int) -> Layout:
        """The layout of a step: *count* sequences of one step."""
        if count not in self._layouts:
            self._layouts[count] = Layout(count, np.broadcast_to(np.intp(1), count))
        return self._layouts[count]

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


def _without_rows(binding: Binding) -> set[int]:
    """Identities of the arrays that are the same at every step."""
    return {id(array) for array, layout in zip(binding.arrays, binding.layouts, strict=True) if layout is None}


class _Calls:
    """Calls for all rows, to be repeated for the rows of each step.

    A step's arguments are picked from a pool of objects: rows of arrays, contexts, what is the same at every step, and tuples of these.
    Picking is all that is done for each call, since minibatches of other lengths bind thousands of them anew.
    """

    def __init__(self, unrolling: Unrolling) -> None:
        self.unrolling = unrolling
        self._arrays: list[Any] = []
        self._instructions: list[Instruction] = []
        self._objects: list[Any] = []
        self._tuples: list[list[_Place]] = []
        self._place_of: dict[tuple[str, int], int] = {}
        self._runs: list[At | list[_Call]] = []
        self._contexts: dict[int, list[Context]] = {}

    def add(self, at: At) -> None:
        """Add calls that are made for each step in a way of their own."""
        self._runs.append(at)

    def repeat(self, steps: Iterable[Step], instruction: Instruction) -> None:
        """Add calls for all rows."""
        run = self._runs[-1] if self._runs else None
        if not isinstance(run, list):
            run = []
            self._runs.append(run)
        for method, arguments, node in steps:
            run.append((method, [self._place(argument, instruction) for argument in arguments], node))

    def unroll(self, steps: list[Step], times: Iterable[int]) -> None:
        """Append the calls of each step, one step after another."""
        begins = self._begins()
        tuples = [_picker(places, begins) for places in self._tuples]
        runs = [run if callable(run) else [(method, _picker(places, begins), node) for method, places, node in run] for run in self._runs]
        starts = self.unrolling.starts
        for time in times:
            first, last = starts[time], starts[time + 1]
            pool = [array[first:last] for array in self._arrays]
            pool += self._contexts_at(time)
            pool += self._objects
            for pick in tuples:
                pool.append(pick(pool))
            for run in runs:
                if callable(run):
                    steps.extend(run(time))
                else:
                    steps += [(method, pick(pool), node) for method, pick, node in run]

    def _contexts_at(self, time: int) -> list[Context]:
        """Contexts of the instructions at a step; those of steps with as many sequences are the same."""
        count = self.unrolling.alive[time]
        if count not in self._contexts:
            contexts = [self.unrolling.context(instruction, time) for instruction in self._instructions]
            if any(not instruction.op.by_rows for instruction in self._instructions):
                return contexts
            self._contexts[count] = contexts
        return self._contexts[count]

    def _begins(self) -> dict[str, int]:
        """Where each kind of object begins in the pool."""
        arrays, instructions, objects = len(self._arrays), len(self._instructions), len(self._objects)
        return {"rows": 0, "context": arrays, "object": arrays + instructions, "tuple": arrays + instructions + objects}

    def _place(self, argument: Any, instruction: Instruction) -> _Place:
        if isinstance(argument, (tuple, list)):
            self._tuples.append([self._place(item, instruction) for item in argument])
            return "tuple", len(self._tuples) - 1
        if isinstance(argument, Context):
            return self._held("context", instruction, self._instructions)
        if self.unrolling.has_rows(argument):
            return self._held("rows", argument, self._arrays)
        return self._held("object", argument, self._objects)

    def _held(self, kind: str, item: Any, items: list[Any]) -> _Place:
        number = self._place_of.setdefault((kind, id(item)), len(items))
        if number == len(items):
            items.append(item)
        return kind, number


_Place = tuple[str, int]
"""Where an argument lies in the pool: its kind, and its number among those."""
_Call = tuple[Callable[..., None], list[_Place], "Primitive"]
"""A call: the method, where its arguments lie, and the function of the graph that it works for."""


def _picker(places: list[_Place], begins: dict[str, int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """A function that picks the objects at these places out of the pool, as a tuple."""
    indices = [begins[kind] + number for kind, number in places]
    if len(indices) == 1:
        return lambda pool: (pool[indices[0]],)
    return itemgetter(*indices)
