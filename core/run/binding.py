"""Bindings: a program's instructions with their arrays, for one size of minibatch.

A program in stages has a binding for each, as sizes become known; the last one holds the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any
from weakref import proxy

from ..common.shape import Shape
from ..common.switches import recorders
from ..extension.backend import Asynchronous, DType
from ..graph.inference import explained
from ..operators.effects import Finishing
from ..operators.elementwise import Broadcasting
from ..operators.op import Op, includes
from ..operators.sequence_op import SequenceOp
from ..program.chains import Chain, FusedCall, kernel_of, one_by_one
from ..program.slots import COMPUTED, FOLDED, HELD, INPUT, ROWS, UNUSED, ZERO
from ..types.context import Context
from ..types.layout import Layout
from ..types.sparse import RowSparse, SparseRows
from . import memory, out_of_memory, profiling
from .in_turn import in_turn
from .index_buffers import IndexBuffers, RecordableContext
from .placed_rows import PlacedRows
from .recorded import Recording, is_repeatable, recorded, repeatable_calls
from .recurrence import BoundLoop, LoopPass, LoopSchedule
from .row_blocks import in_blocks, rows_of_block
from .seeding import Seeding
from .sizes import Sizes

if TYPE_CHECKING:
    from ..graph.nodes import Primitive
    from ..graph.variable import Variable
    from ..program.slots import Instruction, Loop
    from .workspace import Workspace

Step = tuple[Callable[..., None], tuple[Any, ...], "Primitive", Op | None, tuple[Any, ...]]
"""A call: what is called, its arguments, and the function of the graph that it works for; beside, for those who take its time, the operator
whose work it does, None for copies and the like, and what that works on: the arguments, or what stands for them in a call that has none.

It is a plain tuple: a loop makes one for each call, and one with named fields takes many times as long to make.
"""


Schedule = LoopSchedule | LoopPass | Recording
"""What stands for several calls, which it tells whenever they are to be made."""


def step_beside(call: Callable[..., None], arguments: tuple[Any, ...], node: Primitive) -> Step:
    """A step that does no operator's work: a copy, a sum of gradients, a check."""
    return call, arguments, node, None, arguments


class Binding:
    """A stage of a program with its arrays, for one size of minibatch.

    Args:
        workspace: where the memory is.
        sizes: sizes of the program's values, as far as known in this stage.
        before: binding of the stage before, None for the first.

    Attributes:
        is_last: whether the whole program is bound.
        arrays: array of each slot, those of earlier stages included.
        forward_steps: what to call, in order.
        backward_steps, finish_steps: the same; only in the last stage, for the whole program.
        whole_backward: the backward steps where nobody is told of gradients on the way.
        totals: by slot, the sums that the forward steps end with; none where each is computed when it is wanted.
    """

    def __init__(self, workspace: Workspace, sizes: Sizes, before: Binding | None = None) -> None:
        self.program = workspace.program
        self.backend = self.program.backend
        self._workspace = proxy(workspace)  # the workspace holds its bindings
        self.pool, self._given = workspace.pool, workspace.given
        self.stage: int = 0 if before is None else before.stage + 1
        self.is_last = self.stage == self.program.stages - 1
        self.sizes = sizes
        self._buffers: IndexBuffers | None = None
        if isinstance(self.backend, Asynchronous):
            earlier = None if before is None else before._buffers
            self._buffers = IndexBuffers(self.backend, () if earlier is None else earlier.stages)
        self.contexts: dict[Instruction, Context] = {} if before is None else dict(before.contexts)
        self.bound_loops: dict[Loop, BoundLoop] = {} if before is None else dict(before.bound_loops)
        self.arrays: list[Any] = [None] * len(self.program.slots) if before is None else list(before.arrays)
        chains = [chain for chain in self.program.chains if chain.stage == self.stage]
        kernel, slots = kernel_of(self.backend), self.program.slots
        plans = {chain: kernel.plan(chain, slots, sizes) for chain in chains if chain.has_kernel and kernel is not None}
        self.plans = {chain: plan for chain, plan in plans.items() if plan is not None}
        rows = {chain: rows_of_block(chain, sizes, self.backend) for chain in chains if chain not in self.plans}
        self.block_rows = {chain: count for chain, count in rows.items() if count is not None}
        self._place(workspace)
        self._inputs = [self.arrays[index] for index in self.program.inputs]
        self.forward_steps: list[Step | Schedule] = []
        self.backward_steps: list[Step | Schedule] = []
        self.finish_steps: list[Step | Schedule] = []
        self._backward_ends: list[tuple[int, Instruction]] = []
        self._instructions = [instruction for instruction in self.program.instructions if instruction.stage == self.stage]
        self._bind_instructions()
        self._record()

    @property
    def layouts(self) -> list[Layout | None]:
        """Layout of each slot."""
        return self.sizes.layouts

    # ---- data in ----

    def load(self, data: Iterable[Any]) -> None:
        """Copy data into the inputs' arrays; sparse inputs refer to it."""
        if self._buffers is None:
            self._load(data)
        else:
            with self.backend.guard():  # once, and not for each input
                self._load(data)

    def _load(self, data: Iterable[Any]) -> None:
        load = self.backend.load
        for array, given in zip(self._inputs, data, strict=True):
            if type(array) is PlacedRows:
                array.load((given.data, given.indices, given.indptr))
            elif type(array) is SparseRows:
                parts = given.data, given.indices, given.indptr
                values, columns, starts = self.backend.on_device(*parts)
                array.set(values, columns, starts, parts)
            else:
                load(array, given)

    def fits(self, sizes: Sizes) -> bool:
        """Whether the arrays fit these sizes, which are taken over then: sequences may lie otherwise in as many rows."""
        if self.sizes.shapes != sizes.shapes:
            return False
        self.sizes = sizes
        for bound_loop in self.bound_loops.values():
            bound_loop.take_over(self)
        for instruction in self._instructions:
            self._tell_layouts(self.contexts[instruction], instruction)
        if self._buffers is not None:
            self._buffers.outdate()
        return True

    def resolve_layouts(self) -> dict[Instruction, Layout]:
        """The layouts that operators of the next stage compute from results of this one."""
        decided: dict[Instruction, Layout] = {}
        for instruction in self.program.instructions:
            op = instruction.op
            if instruction.stage == self.stage + 1 and isinstance(op, SequenceOp) and op.decides_layout:
                context = self._context(instruction)
                try:
                    decided[instruction] = op.decide_layout(context, *self.operands(instruction))
                except (ValueError, RuntimeError) as error:
                    raise explained(error, instruction.node) from None
        return decided

    # ---- memory ----

    def _place(self, workspace: Workspace) -> None:
        backend, slots, sizes = self.backend, self.program.slots, self.sizes
        here = self.program.slots_of_stage[self.stage]
        own = [i for i in here if self._needs_memory(i) and slots[i].base == i]
        shapes = {i: sizes.shapes[i] for i in own}
        lives = {i: (slots[i].birth, slots[i].death) for i in own}
        for chain in (*self.plans, *self.block_rows):
            rows = self.block_rows.get(chain, 0)
            shapes.update((i, (rows, *shapes[i][1:])) for i in chain.local)
            lives.update((i, (min(lives[i][0], chain.begin), max(lives[i][1], chain.end))) for i in chain.touched if i in lives)
        nbytes = tuple([backend.nbytes(self._with_room(shapes[i], i), sizes.specs[i].dtype) for i in own])
        try:
            self.placement = workspace.place(self.stage, nbytes, tuple([lives[i] for i in own]))
        except MemoryError as error:
            raise out_of_memory.too_large(self, own, nbytes, error) from None
        arena = self.placement.arena
        for index, offset in zip(own, self.placement.offsets, strict=True):
            self.arrays[index] = backend.view(arena, offset, shapes[index], sizes.specs[index].dtype)
        for index in (index for chain in self.plans for index in chain.local):
            self.arrays[index] = backend.xp.broadcast_to(self._zeros((), sizes.specs[index].dtype), sizes.shapes[index])
        for index in here:
            if not self._needs_memory(index):
                self.arrays[index] = self._without_memory(index)

    def _with_room(self, shape: Shape, index: int) -> Shape:
        layout = self.layouts[index]
        return shape if layout is None or not layout.is_sequence else (memory.padded_rows(shape[0]), *shape[1:])

    def _needs_memory(self, index: int) -> bool:
        slot = self.program.slots[index]
        return slot.kind in (COMPUTED, INPUT) and not slot.spec.sparse and index not in self._given

    def _without_memory(self, index: int) -> Any:
        slot, shape, dtype = self.program.slots[index], self.sizes.shapes[index], self.sizes.specs[index].dtype
        if index in self._given:
            return self._given[index]
        if slot.kind == HELD:
            return slot.variable.array  # type: ignore[attr-defined]
        if slot.kind == ROWS:
            # Recorded work writes to a place of its own; others need the gradient of the latest minibatch alone.
            return self._workspace.row_sparse(index, shape, dtype) if self._buffers is None else RowSparse(shape, dtype)
        if slot.kind == FOLDED:
            return self.program.folded.arrays[index]  # type: ignore[union-attr]
        if slot.kind == UNUSED:
            return None
        if slot.kind == ZERO:
            return self._zeros(shape, dtype)
        if self._buffers is None or slot.kind != INPUT:
            return SparseRows(shape, dtype, self.backend.xp)
        return PlacedRows(shape, dtype, self.backend.xp, self._workspace.room(index))

    def _zeros(self, shape: Shape, dtype: DType) -> Any:
        with self.backend.guard():
            return self.backend.xp.zeros(shape, dtype)

    # ---- instructions ----

    def _bind_instructions(self) -> None:
        for instruction in self._instructions:
            self.contexts[instruction] = self._context(instruction)
        for loop, body in groupby(self._instructions, key=lambda instruction: instruction.loop):
            if loop is None:
                for chain, members in groupby(body, key=attrgetter("chain")):
                    steps = self._forward_steps(members, is_repeated=chain not in self.plans and chain not in self.block_rows)
                    self.forward_steps.extend(self._together(chain, steps))
            else:
                self._bind_views(body)
                bound_loop = self.bound_loops[loop] = self._workspace.bound_loop(loop, self)
                bound_loop.bind_forward()
        if not self.is_last:
            return
        self._place_gradients()
        for loop, body in groupby(reversed(self.program.instructions), key=lambda instruction: instruction.loop):
            group = [instruction for instruction in body if instruction.grad is not None]
            for instruction in group:
                self._pass_gradients(instruction)
            if loop is not None and group:
                self.bound_loops[loop].bind_backward(self)
            going_back = [instruction for instruction in group if not instruction.placed]
            for chain, members in groupby(going_back, key=attrgetter("backward_chain")):
                in_one = chain in self.plans or chain in self.block_rows
                for together in [list(members)] if in_one else [[instruction] for instruction in members]:
                    steps = self._backward_steps(together)
                    self.backward_steps.extend(self._together(chain, steps))
                    self._backward_ends.extend((len(self.backward_steps), instruction) for instruction in together)
        for instruction in self.program.instructions:
            if isinstance(instruction.op, Finishing):
                arguments = (self.contexts[instruction], self.result(instruction), *self.operands(instruction))
                self.finish_steps.append((instruction.op.finish, arguments, instruction.node, instruction.op, arguments))

    def _record(self) -> None:
        """Have the backend record what it can; checks read what has been computed, and are not recorded."""
        self.whole_backward = self.backward_steps
        self.totals: dict[int, Any] = {}
        self.seeding: Seeding | None = None
        self._has_schedules = self.program.has_loops or self._buffers is not None
        if self._buffers is None:
            self.forward_steps = in_turn(self.forward_steps)
        if self._buffers is None or not isinstance(self.backend, Asynchronous) or self.program.checked:
            return
        xp, starts = self.backend.xp, []
        repeatable = {**repeatable_calls(self.program.instructions), add: False, add_up: False, xp.copyto: False}
        if self.is_last and self.program.instructions:
            node = self.program.instructions[-1].node
            self.totals = self._places_of_totals()
            self.forward_steps += [step_beside(add_up, (xp, self.arrays[slot], total), node) for slot, total in self.totals.items()]
            self.seeding = Seeding([self.arrays[slot] for slot in self.program.seed_slots.values()])
            starts = [step_beside(self.seeding, (), node)]
        self.forward_steps = recorded(self.backend, self.forward_steps, repeatable, self._buffers)
        self.whole_backward = recorded(self.backend, [*starts, *self.backward_steps], repeatable, self._buffers)

    def _places_of_totals(self) -> dict[int, Any]:
        """An array without axes for each sum, side by side where their types are the same, so that they can be fetched together."""
        by_type: dict[Any, list[int]] = {}
        for slot, dtype in self.program.totals.items():
            by_type.setdefault(dtype, []).append(slot)
        places: dict[int, Any] = {}
        for dtype, slots in by_type.items():
            line = self.backend.empty((len(slots),), dtype)
            places.update((slot, line[at : at + 1].reshape(())) for at, slot in enumerate(slots))
        return places

    def _together(self, chain: Chain | None, steps: Iterable[Step]) -> Iterable[Step]:
        """The calls of a chain: one of its kernel, those for a block of rows after another, or as they are."""
        if chain in self.plans:
            calls = list(steps)
            fused = self.plans[chain].bind(self.arrays, self.contexts[chain.members[0]])
            return [FusedCall(fused, chain.members, calls).step()] if calls else []
        return in_blocks(self, chain, steps) if chain in self.block_rows else steps

    def _context(self, instruction: Instruction) -> Context:
        arguments = self.backend, self.program.training, self.pool
        if self._buffers is not None and is_repeatable(instruction):
            context: Context = RecordableContext(self._buffers, *arguments)
        else:
            context = Context(*arguments)
        if self.program.prepared is not None:
            context.prepare = self.program.prepared.of(self.program, instruction)
        self._tell_layouts(context, instruction)
        return context

    def _tell_layouts(self, context: Context, instruction: Instruction) -> None:
        context.layouts = self.sizes.layouts_of(instruction.inputs)
        context.layout = self.layouts[instruction.outputs[0]]

    def _bind_views(self, instructions: Iterable[Instruction]) -> None:
        arrays = self.arrays
        for instruction in instructions:
            if instruction.is_view:
                target = instruction.outputs[0]
                arrays[target] = instruction.op.view(arrays[instruction.inputs[0]], self.sizes.shapes[target])
            elif instruction.reuses is not None:
                arrays[instruction.outputs[0]] = arrays[instruction.reuses]

    def forward_step(self, instruction: Instruction, is_repeated: bool = False) -> Iterator[Step]:
        """The calls that compute an instruction for all rows: one, none for a view, one more in checked mode.

        Args:
            is_repeated: whether they are made with these very arrays, again and again.
        """
        if instruction.is_view:
            return
        result = self.result(instruction)
        arguments = self.contexts[instruction], result, *self.operands(instruction)
        if self._is_declined(instruction):
            yield instruction.op.forward, arguments, instruction.node, instruction.op, arguments
        elif is_repeated and instruction.bind is not None and (bound := self._bound(instruction, arguments)) is not None:
            yield bound, (), instruction.node, instruction.op, arguments
        else:
            yield instruction.forward, arguments, instruction.node, instruction.op, arguments
        if self.program.checked:
            yield step_beside(_check_for_nan, (self.backend.xp, result), instruction.node)

    def _is_declined(self, instruction: Instruction) -> bool:
        """Whether its kernel leaves the arrays that are bound to the operator's own methods; in loops, other arrays come with each step."""
        declines = None if instruction.loop is not None else instruction.declines
        return declines is not None and declines(self.contexts[instruction], self.result(instruction), *self.operands(instruction))

    def _bound(self, instruction: Instruction, arguments: tuple[Any, ...]) -> Callable[[], None] | None:
        try:
            return instruction.bind(*arguments)  # type: ignore[misc]
        except (ValueError, RuntimeError) as error:
            raise explained(error, instruction.node) from None
        except MemoryError as error:
            raise out_of_memory.in_a_step(self, instruction.node, error) from None

    def _forward_steps(self, instructions: Iterable[Instruction], is_repeated: bool) -> Iterator[Step]:
        for instruction in instructions:
            self._bind_views((instruction,))
            yield from self.forward_step(instruction, is_repeated)

    def _backward_steps(self, instructions: Iterable[Instruction]) -> Iterator[Step]:
        """The calls for all rows: of a loop's instructions, those that follow it."""
        for instruction in instructions:
            late = instruction.loop is not None
            grads, sums = (instruction.late_grads, instruction.late_sums) if late else (instruction.grads, instruction.sums)
            yield from self.backward_step(instruction, grads, sums)

    def _place_gradients(self) -> None:
        """Let gradients of parts lie in the memory of those of the whole."""
        gradient_of = {slot.like: index for index, slot in reversed(list(enumerate(self.program.slots))) if slot.like is not None}
        for instruction in self.program.instructions:
            if instruction.placed:
                whole, part = gradient_of[instruction.inputs[0]], gradient_of[instruction.outputs[0]]
                self.arrays[part] = instruction.op.view(self.arrays[whole], self.sizes.shapes[part])

    def _pass_gradients(self, instruction: Instruction) -> None:
        """Let gradients that are the result's lie in its memory."""
        arrays, grad = self.arrays, (instruction.grad or (None,))[0]
        for position, target in instruction.passed:
            if instruction.has_gradient_view:
                arrays[target] = instruction.op.grad_view(arrays[grad], self.sizes.shapes[instruction.inputs[position]])  # type: ignore[index]
            else:
                arrays[target] = arrays[grad]  # type: ignore[index]
        if instruction.reuses_gradient is not None:
            arrays[instruction.reuses_gradient] = arrays[grad]  # type: ignore[index]

    def backward_step(self, instruction: Instruction, targets: Sequence[int | None], sums: Sequence[tuple[int, int]]) -> Iterator[Step]:
        """The calls that compute the gradients of operands for all rows, and add terms to their totals."""
        op, arrays = instruction.op, self.arrays
        grads = [None if i is None else arrays[i] for i in targets]
        grad = tuple(None if i is None else arrays[i] for i in instruction.grad or ())
        if any(g is not None for g in grads):
            if instruction.has_gradient_view:
                target: Any = grads[0]
                yield step_beside(self.backend.xp.copyto, (target, op.grad_view(grad[0], target.shape)), instruction.node)
            else:
                kept = [x if includes(op.keep_inputs, i) else None for i, x in enumerate(self.operands(instruction))]
                result = self.result(instruction) if op.keep_output else None
                if isinstance(op, Broadcasting):
                    operands = zip(instruction.inputs, grads, strict=True)
                    grads = [None if g is None else self._aligned(g, slot, instruction) for slot, g in operands]
                arguments = (self.contexts[instruction], grad[0] if op.outputs == 1 else grad, grads, result, *kept)
                backward = op.backward if self._is_declined(instruction) else instruction.backward
                yield backward, arguments, instruction.node, op, arguments
        for total, term in sums:
            yield step_beside(add, (self.backend.xp, arrays[total], arrays[term]), instruction.node)

    def operands(self, instruction: Instruction) -> list[Any]:
        """The operands' arrays, aligned if the operator wants them so."""
        operands = [self.arrays[i] for i in instruction.inputs]
        if not isinstance(instruction.op, Broadcasting):
            return operands
        return [self._aligned(x, i, instruction) for i, x in zip(instruction.inputs, operands, strict=True)]

    def result(self, instruction: Instruction) -> Any:
        """The result's array, a tuple of them for an operator with several."""
        outputs = instruction.outputs
        return self.arrays[outputs[0]] if instruction.op.outputs == 1 else tuple(self.arrays[i] for i in outputs)

    def _aligned(self, array: Any, slot: int, instruction: Instruction) -> Any:
        """The array with static axes lined up with the result's: after the rows, leading axes of length 1 are put in."""
        spec, rank = self.sizes.specs[slot], self.sizes.specs[instruction.outputs[0]].rank
        missing = rank - spec.rank
        if not spec.axes or missing <= 0 or isinstance(array, SparseRows):
            return array
        return array.reshape(array.shape[0], *(1,) * missing, *array.shape[1:])

    def final_gradients(self) -> list[tuple[int, list[Variable]]]:
        """Variables whose gradients are final after so many of the backward steps, in this order; all steps are covered."""
        slots = self.program.slots
        last: dict[int, int] = {}
        for end, instruction in self._backward_ends:
            last.update((slots[index].base, end) for index in instruction.used_gradients())
        found: dict[int, list[Variable]] = {len(self.backward_steps): []}
        for variable, index in self.program.gradient_slots.items():
            found.setdefault(last.get(slots[index].base, 0), []).append(variable)
        return sorted(found.items(), key=itemgetter(0))

    def run(self, steps: Sequence[Step | Schedule], pass_name: str = profiling.FORWARD) -> None:
        """Call the steps; an error names the operator at fault."""
        calls: Iterable[Any] = _with_schedules(steps) if self._has_schedules else steps
        if recorders.value:
            calls = profiling.timed(one_by_one(calls), pass_name)
        step: Any = None
        try:
            for step in calls:
                step[0](*step[1])
            return
        except MemoryError as error:
            failed = out_of_memory.in_a_step(self, step[2], error)
        except Exception as error:
            raise explained(error, getattr(step[0], "at_fault", step[2])) from error
        del steps, step, calls
        self._workspace.release()
        raise failed

    def release(self) -> None:
        """Let go of all arrays; nothing can be run any more."""
        for held in (self.arrays, self._inputs, self.forward_steps, self.backward_steps, self.whole_backward, self.finish_steps):
            held.clear()
        self.contexts.clear()
        self.bound_loops.clear()
        self.totals.clear()
        self.seeding = None
        if self._buffers is not None:
            self._buffers.clear()
        del self.placement


def _with_schedules(steps: Sequence[Step | Schedule]) -> Iterator[Step]:
    """The steps, with the calls that schedules stand for in their place."""
    for step in steps:
        if isinstance(step, Schedule):
            yield from step.steps()
        else:
            yield step


def add(xp: Any, total: Any, term: Any) -> None:
    """Add a term to a gradient."""
    if isinstance(total, RowSparse):
        total.add(xp, term)
    else:
        xp.add(total, term, out=total)


def add_up(xp: Any, values: Any, total: Any) -> None:
    """Sum all values."""
    xp.add.reduce(values, None, total.dtype, total)


def _check_for_nan(xp: Any, result: Any) -> None:
    for array in result if isinstance(result, tuple) else (result,):
        if not isinstance(array, SparseRows) and xp.isnan(array).any():
            first = tuple(int(i) for i in xp.argwhere(xp.isnan(array))[0])
            raise ValueError(f"produced NaN, first at index {first} of its result of shape {array.shape}")
