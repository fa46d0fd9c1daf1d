"""Recurrences at work: a loop's instructions called once for each step.

Rows are packed by step, so that a step of a value is one contiguous slice of its array and a delay copies one slice into another.
Gradients of operands from outside a loop are computed after it, for all steps at once: the weights of a recurrent network get theirs from
one product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..common.switches import recorders
from ..extension import plugins
from ..extension.kernel import Fills
from ..operators.delay import Delay
from ..program.slots import COMPUTED, FOLDED, HELD, ROWS
from ..types.context import Context, StepContext
from ..types.layout import Index, Layout
from .memory import padded_rows

if TYPE_CHECKING:
    from ..common.shape import Shape
    from ..program.slots import Instruction, Loop
    from .binding import Binding, Schedule, Step


class Call(NamedTuple):
    """A call for all rows, which a loop repeats for the rows of each step."""

    method: Callable[..., None]
    arguments: Sequence[Any]
    instruction: Instruction


class DelayCopy(NamedTuple):
    """The copy of a delay at a step: a row of *z* becomes the row of *x* so many steps back; or *x* is *added* to that row of *z*."""

    z: Any
    x: Any
    back: int
    adds: bool
    instruction: Instruction


class Fused(Protocol):
    """Several calls of a loop as one, which a kernel of recurrences puts in their place.

    Attributes:
        calls: the calls.
        instruction: the instruction of the first of them.
    """

    calls: Sequence[Call | DelayCopy]

    @property
    def instruction(self) -> Instruction: ...

    def begin(self) -> None:
        """Prepare for a run through the steps."""

    def run(self, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Do all calls for the steps from *begin* to *end*, given the first row of each step, and whether they are in the order of time."""

    def run_one(self, number: int, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """The same for one of the calls."""


@runtime_checkable
class RepeatableFused(Fused, Protocol):
    """Several calls as one that give a device the same work for all minibatches of as many sequences and rows.

    It finds steps through :attr:`LoopSchedule.first_rows`, and goes through all of them if told to go further than the last.
    """

    def current(self) -> object:
        """What does the work: another object as soon as attributes of operators are others."""


class BoundLoop:
    """A loop at work on the arrays of a binding.

    Args:
        binding: the arrays of the program.
        loop: the recurrence.

    Attributes:
        samples: how many sequences there are.
        padded_rows: how many there may be in minibatches that come later.
        alive, starts: how many of them each step has, and its first row.
        whole: the layout of all steps.
        offsets: the first row of each step, and the number of rows, as an array.
        ones: as many ones as any step has sequences.
    """

    def __init__(self, binding: Binding, loop: Loop) -> None:
        self.loop = loop
        self.layout = Layout(0, np.zeros(0, np.intp))
        self._forward_schedule: LoopSchedule | None = None
        self._backward_schedule: LoopSchedule | None = None
        self._contexts: dict[Instruction, Context] = {}
        self._contexts_at: dict[tuple[Instruction, int], Context] = {}
        self.take_over(binding)
        self.padded_rows = padded_rows(self.samples)
        slots = binding.program.slots
        is_sparse = any(slots[index].spec.sparse or slots[index].kind == ROWS for index in loop.touched)
        self._is_lasting = binding.program.stages == 1 and not is_sparse
        self._shapes = {index: binding.sizes.shapes[index] for index in loop.touched}
        self._held = {index: binding.arrays[index] for index in loop.touched if slots[index].kind in (HELD, FOLDED)}

    def fits(self, binding: Binding) -> bool:
        """Whether the loop can be reused for arrays of another size in the same places, which may have fewer rows."""
        sizes = binding.sizes
        return (
            self._is_lasting
            and sizes.layouts[self.loop.body[0].outputs[0]].samples <= self.padded_rows  # type: ignore[union-attr]
            and all(_within(sizes.shapes[i], shape, sizes.layouts[i] is not None) for i, shape in self._shapes.items())
            and all(array is binding.arrays[i] for i, array in self._held.items())
        )

    def take_over(self, binding: Binding) -> None:
        """Step over the sequences of another minibatch from now on."""
        self.binding = binding
        layout = binding.sizes.layouts[self.loop.body[0].outputs[0]]
        assert layout is not None
        self.whole = layout
        self.samples: int = layout.samples
        self.offsets: Index = layout.offsets
        self.alive: list[int] = layout.alive.tolist()
        self.starts: list[int] = layout.offsets.tolist()
        self.ones: Index = np.ones(max(self.alive), np.intp)
        self._contexts_at.clear()

    def bind_forward(self) -> None:
        """Append the steps that compute the loop."""
        binding, before, after = self.binding, [], []
        delays = [instruction for instruction in self.loop.body if isinstance(instruction.op, Delay)]
        for delay in delays:
            arguments = (binding.contexts[delay], binding.result(delay), binding.arrays[delay.inputs[1]])
            fill = partial(delay.kernel.fill, delay.op) if _fills(delay) else delay.op.fill
            before.append((fill, arguments, delay.node, None, arguments))
            remembered = binding.contexts[delay], binding.arrays[delay.inputs[0]]
            after.append((delay.op.remember, remembered, delay.node, None, remembered))
        if self._forward_schedule is None:
            self._forward_schedule = self._new_forward_schedule()
        binding.forward_steps += self._with_schedule(self._forward_schedule, before, after)

    def _with_schedule(self, schedule: LoopSchedule, before: Sequence[Step], after: Sequence[Step]) -> Sequence[Step | Schedule]:
        """The steps with what comes before and after them: as one, where it can be repeated as one."""
        if schedule.is_repeatable and all(_fills(instruction) for instruction in self.loop.body if isinstance(instruction.op, Delay)):
            return [LoopPass(schedule, before, after)]
        return [*before, schedule, *after]

    def _new_forward_schedule(self) -> LoopSchedule:
        binding, schedule = self.binding, LoopSchedule(self, rising=self.loop.forward)
        for instruction in self.loop.body:
            if isinstance(instruction.op, Delay):
                out, x = binding.arrays[instruction.outputs[0]], binding.arrays[instruction.inputs[0]]
                x = x.reshape(len(x), *(1,) * (out.ndim - x.ndim), *x.shape[1:])
                schedule.add(DelayCopy(out, x, instruction.op.steps_back, False, instruction))
            else:
                schedule.repeat(binding.forward_step(instruction), instruction)
        schedule.close(self._passing_values())
        return schedule

    def bind_backward(self, binding: Binding) -> None:
        """Append the steps that go back through the loop to the binding of the last stage, which has the gradients."""
        self.binding = binding
        zeros: list[Step] = [(binding.arrays[index].fill, (0,), self.loop.body[0].node, None, ()) for index in self.loop.zeros]
        if self._backward_schedule is None or not self._is_lasting:
            self._backward_schedule = self._new_backward_schedule()
        binding.backward_steps += self._with_schedule(self._backward_schedule, zeros, ())

    def _new_backward_schedule(self) -> LoopSchedule:
        binding, schedule = self.binding, LoopSchedule(self, rising=not self.loop.forward)
        for instruction in reversed(self.loop.body):
            if instruction.grad is None:
                continue
            if instruction.carried is not None:
                assert instruction.grad is not None and instruction.grad[0] is not None
                total, term = binding.arrays[instruction.carried], binding.arrays[instruction.grad[0]]
                schedule.add(DelayCopy(total, term, instruction.op.steps_back, True, instruction))
            schedule.repeat(binding.backward_step(instruction, instruction.grads, instruction.sums), instruction)
        schedule.close(self._passing_gradients())
        return schedule

    def _passing_values(self) -> list[Any]:
        """Arrays that are not read after the step in which they are written, except those of delays."""
        start = self._start()
        delays = [instruction for instruction in self.loop.body if isinstance(instruction.op, Delay)]
        apart = [index for delay in delays for index in (delay.inputs[0], *delay.outputs)]
        return self._alive_within(start, start + len(self.loop.body) - 1, self.loop.slots, apart)

    def _passing_gradients(self) -> list[Any]:
        """The same of the way back: gradients that are not carried, and that nothing is computed from after the loop."""
        body, end = self.loop.body, 2 * len(self.binding.program.instructions) - self._start()
        written = [index for i in body for index in (*(i.grad or ()), *i.grads, *(term for _, term in i.sums))]
        late = [i for i in body if any(index is not None for index in i.late_grads)]
        apart = [*self.loop.zeros, *(i.carried for i in body), *(index for i in late for index in (*(i.grad or ()), *i.late_grads))]
        return self._alive_within(end - len(body) + 1, end, written, apart)

    def _start(self) -> int:
        """The number of the loop's first instruction: the time at which what a delay writes is first needed."""
        slots = self.binding.program.slots
        return next(slots[i.outputs[0]].birth for i in self.loop.body if isinstance(i.op, Delay))

    def _alive_within(self, begin: int, end: int, among: Iterable[int | None], apart: Iterable[int | None]) -> list[Any]:
        """Arrays of slots that are needed from *begin* to *end* at most, without those that share memory with slots set *apart*."""
        slots = self.binding.program.slots
        bases = {slots[index].base for index in among if index is not None}
        bases -= {slots[index].base for index in apart if index is not None}
        bases = {base for base in bases if slots[base].kind == COMPUTED and begin <= slots[base].birth and slots[base].death <= end}
        return [self.binding.arrays[base] for base in sorted(bases)]

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

    def shifted(self, shift: DelayCopy, time: int) -> Iterator[Step]:
        """The call that a delay makes at a step; none where it reads outside all sequences."""
        source = time - shift.back
        if not 0 <= source < len(self.alive):
            return
        count = min(self.alive[time], self.alive[source])
        here = slice(self.starts[time], self.starts[time] + count)
        there = slice(self.starts[source], self.starts[source] + count)
        z, x, xp = shift.z, shift.x, self.binding.backend.xp
        call: Callable[..., None]
        arguments: tuple[Any, ...]
        if not shift.adds:
            call, arguments = xp.copyto, (z[here], x[there])
        elif z.shape[1:] == x.shape[1:]:
            call, arguments = xp.add, (z[there], x[here], z[there])
        else:
            call, arguments = _add_sum, (self.binding.contexts[shift.instruction], z[there], x[here])
        yield call, arguments, shift.instruction.node, None, arguments


def _within(shape: Shape, bound: Shape, has_rows: bool) -> bool:
    return shape == bound or (has_rows and shape[0] <= bound[0] and shape[1:] == bound[1:])


def _add_sum(context: Context, total: Any, term: Any) -> None:
    """Add a term of a larger shape, summed over the axes along which *total* was broadcast."""
    summed = context.scratch("summed", total.shape, total.dtype)
    context.sum_to(term, summed.reshape(len(summed), *(1,) * (term.ndim - total.ndim), *total.shape[1:]))
    context.xp.add(total, summed, out=total)


def _fills(delay: Instruction) -> bool:
    """Whether a delay's kernel writes initial states."""
    return delay.kernel is not None and issubclass(delay.kernel, Fills)


class LoopSchedule:
    """The calls of a loop in one direction: calls for all rows, repeated for the rows of each step.

    A kernel of recurrences, if there is one, puts several calls into one.

    Args:
        bound_loop: the loop.
        rising: whether steps come in the order of time.

    Attributes:
        calls: what each step does, in order.
        passing: arrays of which a step's rows are read in that step only.
    """

    def __init__(self, bound_loop: BoundLoop, *, rising: bool) -> None:
        self.bound_loop, self.rising = bound_loop, rising
        binding = bound_loop.binding
        self._fixed = {id(binding.arrays[index]) for index in bound_loop.loop.touched if binding.layouts[index] is None}
        self.calls: list[Call | DelayCopy] = []

    def add(self, shift: DelayCopy) -> None:
        """Add the copy of a delay."""
        self.calls.append(shift)

    def repeat(self, steps: Iterable[Step], instruction: Instruction) -> None:
        """Add calls for all rows."""
        self.calls.extend(Call(method, arguments, instruction) for method, arguments, *_ in steps)

    def close(self, passing: list[Any]) -> None:
        """Finish the schedule, once all calls are added."""
        self.passing = passing
        place = "Recurrence", self.bound_loop.binding.backend.name
        parts: Sequence[Call | DelayCopy | Fused] = self.calls
        if place in plugins.engines:
            parts = plugins.engines.get(place)(self)
        self._fused = [part for part in parts if not isinstance(part, (Call, DelayCopy))]
        self._pool = Pool(self.bound_loop, self.is_fixed, [part for part in parts if isinstance(part, Call)])
        pickers = iter(self._pool.pickers)
        self._parts = [(part, next(pickers) if isinstance(part, Call) else None, part.instruction.node) for part in parts]

    def steps(self) -> Iterator[Step]:
        """The calls of each step, one step after another."""
        for fused in self._fused:
            yield _begin, (fused,), fused.instruction.node, None, ()
        if self._fused and recorders.value:
            yield from self._single_steps()
        elif len(self._fused) == len(self._parts):
            yield from (self._fused_step(fused, 0, len(self.bound_loop.alive)) for fused in self._fused)
        else:
            yield from self._steps()

    def _steps(self) -> Iterator[Step]:
        for time in self._times():
            pool = self._pool.at(time)
            for part, pick, node in self._parts:
                if pick is not None:
                    arguments = pick(pool)
                    yield part.method, arguments, node, part.instruction.op, arguments  # type: ignore[union-attr]
                elif isinstance(part, DelayCopy):
                    yield from self.bound_loop.shifted(part, time)
                else:
                    yield self._fused_step(part, time, time + 1)  # type: ignore[arg-type]

    def _single_steps(self) -> Iterator[Step]:
        """The same for the profiler: calls that have been fused into one are made one by one."""
        place = {id(call): (fused, number) for fused in self._fused for number, call in enumerate(fused.calls)}
        pool = Pool(self.bound_loop, self.is_fixed, [call for call in self.calls if isinstance(call, Call)])
        for time in self._times():
            objects, pickers = pool.at(time), iter(pool.pickers)
            for call in self.calls:
                if isinstance(call, DelayCopy):
                    steps = self.bound_loop.shifted(call, time)
                else:
                    arguments = next(pickers)(objects)
                    steps = iter([(call.method, arguments, call.instruction.node, call.instruction.op, arguments)])
                for method, arguments, node, op, works_on in steps:
                    if id(call) in place:
                        fused, number = place[id(call)]
                        method, arguments = fused.run_one, (number, self.bound_loop.offsets, time, time + 1, self.rising)
                    yield method, arguments, node, op, works_on

    def _fused_step(self, fused: Fused, begin: int, end: int) -> Step:
        return fused.run, (self.bound_loop.offsets, begin, end, self.rising), fused.instruction.node, None, ()

    @property
    def is_repeatable(self) -> bool:
        """Whether a run gives a device the same work for all minibatches of as many sequences and rows."""
        return len(self._fused) == len(self._parts) and all(isinstance(fused, RepeatableFused) for fused in self._fused)

    def current(self) -> list[object]:
        """What does the work, where that is repeatable."""
        return [fused.current() for fused in self._fused if isinstance(fused, RepeatableFused)]

    def work(self) -> None:
        """Do that work: for as many steps as there may be, since a recording stands for other minibatches too."""
        for fused in self._fused:
            fused.run(self.bound_loop.offsets, 0, self.bound_loop.whole.rows, self.rising)

    def _times(self) -> Iterable[int]:
        times = range(len(self.bound_loop.alive))
        return times if self.rising else reversed(times)

    def is_fixed(self, array: Any) -> bool:
        """Whether an array is the same at all steps."""
        return id(array) in self._fixed

    @property
    def sequences(self) -> int:
        """How many sequences there may be."""
        return self.bound_loop.padded_rows

    @property
    def offsets(self) -> Any:
        """The first row of each step, and the number of rows, where the backend's arrays are."""
        return self.bound_loop.binding.backend.index(self.bound_loop.whole, "offsets")

    @property
    def first_rows(self) -> Any:
        """:attr:`Layout.first_rows` where the backend's arrays are."""
        bound_loop = self.bound_loop
        delay = next(instruction for instruction in bound_loop.loop.body if isinstance(instruction.op, Delay))
        return bound_loop.binding.contexts[delay].index(bound_loop.whole, "first_rows")

    def allocate(self, nbytes: int) -> Any:
        """So many bytes of memory for the duration of a run."""
        context = self.bound_loop.binding.contexts[self.bound_loop.loop.body[0]]
        return context.scratch("recurrence", (nbytes,), np.uint8)


def _begin(fused: Fused) -> None:
    fused.begin()


class LoopPass:
    """A loop in one direction with the arrays of a binding: what comes before its steps, the steps, and what comes after.

    It is :class:`~cntk.core.extension.kernel.Repeatable`.  Repeated, it remembers nothing: sequences go on in none of its minibatches.

    Args:
        schedule: the steps, which are repeatable.
        before, after: the calls around them.

    Attributes:
        node: the function of the graph that the first call works for.
    """

    def __init__(self, schedule: LoopSchedule, before: Sequence[Step], after: Sequence[Step]) -> None:
        self._schedule, self._before, self._after = schedule, before, after
        self.node = schedule.bound_loop.loop.body[0].node
        self._done_by: list[object] = []

    def steps(self) -> Iterator[Step]:
        """The calls."""
        yield from self._before
        yield from self._schedule.steps()
        self._done_by = self._schedule.current()
        yield from self._after

    def holds(self) -> bool:
        """Whether the operators' attributes are what they were; other minibatches, which share the schedule, may have seen them change."""
        current = self._schedule.current()
        return len(current) == len(self._done_by) and all(map(is_, current, self._done_by))

    def prepare(self) -> None:
        """Do nothing; how sequences lie is in index arrays."""

    def work(self) -> None:
        """Make the calls."""
        for call, arguments, *_ in self._before:
            call(*arguments)
        self._schedule.work()


class Pool:
    """The objects of a step that arguments are picked from: rows of arrays, contexts, what is the same at every step, and tuples of these.

    A call only picks arguments, since there are thousands of calls, and minibatches rarely have the same lengths twice.

    Args:
        bound_loop: the loop.
        is_fixed: tells whether an array is the same at all steps.
        calls: calls for all rows.

    Attributes:
        pickers: for each call what picks its arguments.
    """

    def __init__(self, bound_loop: BoundLoop, is_fixed: Callable[[Any], bool], calls: Sequence[Call]) -> None:
        self.bound_loop, self._is_fixed = bound_loop, is_fixed
        self._arrays: list[Any] = []
        self._instructions: list[Instruction] = []
        self._objects: list[Any] = []
        self._place_of: dict[tuple[str, int], int] = {}
        tuples: list[list[_Place]] = []
        places = [[self._place(argument, call.instruction, tuples) for argument in call.arguments] for call in calls]
        begins = self._begins()
        self._tuples = [_picker(of_tuple, begins) for of_tuple in tuples]
        self.pickers = [_picker(of_call, begins) for of_call in places]

    def at(self, time: int) -> list[Any]:
        """The objects of a step."""
        bound_loop = self.bound_loop
        first, last = bound_loop.starts[time], bound_loop.starts[time + 1]
        bound_loop.layout.resize(last - first, bound_loop.ones)
        pool = [array[first:last] for array in self._arrays]
        pool += [bound_loop.context(instruction, time) for instruction in self._instructions]
        pool += self._objects
        for pick in self._tuples:
            pool.append(pick(pool))
        return pool

    def _begins(self) -> dict[str, int]:
        """Where each kind of object begins in the pool."""
        arrays, instructions, objects = len(self._arrays), len(self._instructions), len(self._objects)
        return {"rows": 0, "context": arrays, "object": arrays + instructions, "tuple": arrays + instructions + objects}

    def _place(self, argument: Any, instruction: Instruction, tuples: list[list[_Place]]) -> _Place:
        if isinstance(argument, (tuple, list)):
            tuples.append([self._place(item, instruction, tuples) for item in argument])
            return "tuple", len(tuples) - 1
        if isinstance(argument, Context):
            if instruction.op.by_rows:
                return self._held("object", self.bound_loop.context(instruction, 0), self._objects)
            return self._held("context", instruction, self._instructions)
        if hasattr(argument, "nbytes") and not self._is_fixed(argument):
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
