"""Bindings: a program's instructions with their arrays, for one size of minibatch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from . import memory
from .build import explained
from .context import Context
from .feed import Feed
from .layout import Layout
from .op import includes
from .shape import Shape
from .sparse import RowSparse, SparseRows
from .spec import Spec

if TYPE_CHECKING:
    from .function import Primitive
    from .program import Instruction
    from .workspace import Workspace

Step = tuple[Callable[..., None], tuple[Any, ...]]


class Binding:
    """A program's instructions with their arrays, for one size of minibatch.

    Attributes:
        specs, shapes, layouts: type, full array shape and layout of each slot.
        arrays: array of each slot.
        forward_steps, backward_steps, finish_steps: what to call, in order.
        has_sequences: whether layouts differ between minibatches of this size.
    """

    def __init__(self, workspace: Workspace, feeds: Sequence[Feed]) -> None:
        self.program = workspace.program
        self.backend = self.program.backend
        self.pool = workspace.pool
        self.has_sequences = any(fed.layout is not None and fed.layout.is_sequence for fed in feeds)
        self._contexts: list[tuple[Context, Instruction]] = []
        self._nodes: dict[int, Primitive] = {}
        self.layouts: list[Layout | None] = []
        self.specs = self._concrete_specs(feeds)
        self.shapes = _shapes(self.specs, self.layouts)
        self.arrays: list[Any] = self._place(workspace)
        self.forward_steps: list[Step] = []
        self.backward_steps: list[Step] = []
        self.finish_steps: list[Step] = []
        self._bind_instructions()

    # ---- data in ----

    def load(self, feeds: Sequence[Feed]) -> None:
        """Copy data into the inputs' arrays; sparse inputs refer to it."""
        for index, fed in zip(self.program.inputs, feeds, strict=True):
            array = self.arrays[index]
            if type(array) is SparseRows:
                array.set(fed.data.data, fed.data.indices, fed.data.indptr)
            else:
                array[...] = fed.data

    def suits(self, feeds: Sequence[Feed]) -> bool:
        """Take over the layouts of this minibatch, whose lengths may be others than the last one's.

        False when the arrays do not fit: lengths may tell how many rows the layouts have that operators make.
        """
        if not self.has_sequences:
            return True
        specs = self._concrete_specs(feeds)
        if self.program.makes_layouts and self.shapes != _shapes(specs, self.layouts):
            return False
        for context, instruction in self._contexts:
            context.layouts = [self.layouts[i] for i in instruction.inputs]
            context.layout = self.layouts[instruction.outputs[0]]
        return True

    # ---- sizes ----

    def _concrete_specs(self, feeds: Sequence[Feed]) -> list[Spec]:
        """Types of all slots for the sizes at hand; the slots' layouts are found on the way."""
        slots = self.program.slots
        specs = [slot.spec for slot in slots]
        self.layouts = [None] * len(slots)
        for index, fed in zip(self.program.inputs, feeds, strict=True):
            specs[index] = specs[index].but(shape=fed.shape, sparse=specs[index].sparse)
            self.layouts[index] = fed.layout
        for instruction in self.program.instructions:
            if not self.program.is_static:
                for index, spec in zip(instruction.outputs, self._infer(instruction, specs), strict=True):
                    specs[index] = spec
            layout = self._layout_after(instruction, specs)
            for index in instruction.outputs:
                self.layouts[index] = layout if specs[index].axes else None
        for index, slot in enumerate(slots):
            if slot.like is not None:
                specs[index], self.layouts[index] = specs[slot.like], self.layouts[slot.like]
        return specs

    def _infer(self, instruction: Instruction, specs: Sequence[Spec]) -> tuple[Spec, ...]:
        op = instruction.op
        try:
            made = op.infer(*(specs[i] for i in instruction.inputs))
        except (ValueError, TypeError, RuntimeError) as error:
            raise explained(error, instruction.node) from None
        if hasattr(op, "array_shape"):
            assert isinstance(made, Spec)
            made = made.but(shape=op.array_shape(*self._shapes_of(instruction, specs)))
        return made if isinstance(made, tuple) else (made,)

    def _layout_after(self, instruction: Instruction, specs: Sequence[Spec]) -> Layout | None:
        """How the rows of an instruction's result lie: as its operands' rows, or as the operator says."""
        op, axes = instruction.op, specs[instruction.outputs[0]].axes
        if hasattr(op, "make_layout"):
            return self._made_layout(instruction, specs)
        if not axes:
            return None
        alike = [layout for i in instruction.inputs if specs[i].axes == axes and (layout := self.layouts[i]) is not None]
        if not alike:
            return next(layout.batch for i in instruction.inputs if (layout := self.layouts[i]) is not None)
        for other in alike[1:]:
            if other is not alike[0] and other != alike[0]:
                why = f"operands on the same dynamic axes have different samples or sequence lengths: {alike[0]} and {other}"
                raise explained(ValueError(why), instruction.node)
        return alike[0]

    def _made_layout(self, instruction: Instruction, specs: Sequence[Spec]) -> Layout:
        try:
            return instruction.op.make_layout([self.layouts[i] for i in instruction.inputs], self._shapes_of(instruction, specs))
        except ValueError as error:
            raise explained(error, instruction.node) from None

    def _shapes_of(self, instruction: Instruction, specs: Sequence[Spec]) -> list[Shape]:
        return [_with_rows(specs[i], self.layouts[i]) for i in instruction.inputs]

    # ---- memory ----

    def _place(self, workspace: Workspace) -> list[Any]:
        backend, slots = self.backend, self.program.slots
        own = [i for i, slot in enumerate(slots) if self._needs_memory(i) and slot.base == i]
        sizes = [backend.nbytes(self.shapes[i], self.specs[i].dtype) for i in own]
        offsets, total = memory.plan(sizes, [slots[i].birth for i in own], [slots[i].death for i in own])
        workspace.reserve(total)
        where = dict(zip(own, offsets, strict=True))
        return [self._array(index, where.get(index), workspace) for index in range(len(slots))]

    def _needs_memory(self, index: int) -> bool:
        slot = self.program.slots[index]
        return slot.kind == "computed" or (slot.kind == "input" and not slot.spec.sparse)

    def _array(self, index: int, offset: int | None, workspace: Workspace) -> Any:
        slot, shape, dtype = self.program.slots[index], self.shapes[index], self.specs[index].dtype
        if offset is not None:
            return self.backend.view(workspace.arena, offset, shape, dtype)
        if slot.kind == "held":
            return slot.variable.array  # type: ignore[attr-defined]
        if slot.kind == "input":
            return SparseRows(shape, dtype)
        if slot.kind == "rows":
            return RowSparse(shape, dtype)
        if slot.kind == "zero":
            return self.backend.xp.zeros(shape, dtype)
        return None  # a view, made from its base when the instructions are bound

    # ---- instructions ----

    def _bind_instructions(self) -> None:
        bound = [(instruction, self._context(instruction)) for instruction in self.program.instructions]
        for instruction, context in bound:
            self._bind_forward(instruction, context)
        for instruction, context in reversed(bound):
            if instruction.grad is not None:
                self._bind_backward(instruction, context)
        for instruction, context in bound:
            if hasattr(instruction.op, "finish"):
                step = (instruction.op.finish, (context, self._result(instruction), *self._operands(instruction)))
                self._append(self.finish_steps, step, instruction)

    def _context(self, instruction: Instruction) -> Context:
        context = Context(self.backend, self.program.training, self.pool)
        context.layouts = [self.layouts[i] for i in instruction.inputs]
        context.layout = self.layouts[instruction.outputs[0]]
        self._contexts.append((context, instruction))
        return context

    def _bind_forward(self, instruction: Instruction, context: Context) -> None:
        arrays = self.arrays
        if instruction.is_view:
            target = instruction.outputs[0]
            arrays[target] = instruction.op.view(arrays[instruction.inputs[0]], self.shapes[target])
            return
        result = self._result(instruction)
        self._append(self.forward_steps, (instruction.forward, (context, result, *self._operands(instruction))), instruction)
        if self.program.checked:
            self._append(self.forward_steps, (_check_for_nan, (self.backend.xp, result)), instruction)

    def _bind_backward(self, instruction: Instruction, context: Context) -> None:
        arrays = self.arrays
        grad = tuple(None if i is None else arrays[i] for i in instruction.grad or ())
        for position, target in instruction.passed:
            shape = self.shapes[instruction.inputs[position]]
            view = getattr(instruction.op, "grad_view", None)
            arrays[target] = grad[0] if view is None else view(grad[0], shape)
        if any(i is not None for i in instruction.grads):
            self._append(self.backward_steps, self._backward_step(instruction, context, grad), instruction)
        for total, term in instruction.sums:
            self._append(self.backward_steps, (_add, (self.backend.xp, arrays[total], arrays[term])), instruction)

    def _backward_step(self, instruction: Instruction, context: Context, grad: tuple[Any, ...]) -> Step:
        op = instruction.op
        if hasattr(op, "grad_view"):
            target = self.arrays[instruction.grads[0]]  # type: ignore[index]
            return self.backend.xp.copyto, (target, op.grad_view(grad[0], target.shape))
        operands = [x if includes(op.keep_inputs, i) else None for i, x in enumerate(self._operands(instruction))]
        result = self._result(instruction) if op.keep_output else None
        grads = [None if i is None else self.arrays[i] for i in instruction.grads]
        if op.aligned:
            grads = [None if g is None else self._aligned(g, i, instruction) for i, g in zip(instruction.inputs, grads, strict=True)]
        return instruction.backward, (context, grad[0] if op.outputs == 1 else grad, grads, result, *operands)

    def _operands(self, instruction: Instruction) -> list[Any]:
        operands = [self.arrays[i] for i in instruction.inputs]
        if not instruction.op.aligned:
            return operands
        return [self._aligned(x, i, instruction) for i, x in zip(instruction.inputs, operands, strict=True)]

    def _result(self, instruction: Instruction) -> Any:
        outputs = instruction.outputs
        return self.arrays[outputs[0]] if instruction.op.outputs == 1 else tuple(self.arrays[i] for i in outputs)

    def _aligned(self, array: Any, slot: int, instruction: Instruction) -> Any:
        """The array with static axes lined up with the result's: after the rows, leading axes of length 1 are put in."""
        spec, rank = self.specs[slot], self.specs[instruction.outputs[0]].rank
        missing = rank - spec.rank
        if not spec.axes or missing <= 0 or isinstance(array, SparseRows):
            return array
        return array.reshape(array.shape[0], *(1,) * missing, *array.shape[1:])

    def _append(self, steps: list[Step], step: Step, instruction: Instruction) -> None:
        steps.append(step)
        self._nodes[id(step)] = instruction.node

    def run(self, steps: Iterable[Step]) -> None:
        """Call the steps; an error names the operator at fault."""
        step: Any = None
        try:
            for step in steps:
                step[0](*step[1])
        except Exception as error:
            raise explained(error, self._nodes[id(step)]) from error


def _shapes(specs: Sequence[Spec], layouts: Sequence[Layout | None]) -> list[Shape]:
    return [_with_rows(spec, layout) for spec, layout in zip(specs, layouts, strict=True)]


def _with_rows(spec: Spec, layout: Layout | None) -> Shape:
    return spec.dims if layout is None else (layout.rows, *spec.dims)


def _add(xp: Any, total: Any, term: Any) -> None:
    xp.add(total, term, out=total)


def _check_for_nan(xp: Any, result: Any) -> None:
    for array in result if isinstance(result, tuple) else (result,):
        if not isinstance(array, SparseRows) and xp.isnan(array).any():
            first = tuple(int(i) for i in xp.argwhere(xp.isnan(array))[0])
            raise ValueError(f"produced NaN, first at index {first} of its result of shape {array.shape}")
