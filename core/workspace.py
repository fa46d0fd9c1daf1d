"""Workspaces: the memory a program runs in, and its instructions bound to arrays of the minibatch's size.

A workspace serves one call at a time; calls on several threads use several.  Whatever depends on sizes is worked out once for
each size of minibatch and kept, so that a step of training looks nothing up and allocates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import memory
from .axis import Axes
from .build import explained
from .context import Context
from .layout import Layout
from .op import includes
from .shape import Shape
from .sparse import RowSparse, SparseRows
from .spec import Spec

if TYPE_CHECKING:
    from .function import Primitive
    from .program import Instruction, Program
    from .variable import Variable

KEPT_BINDINGS = 16
Step = tuple[Callable[..., None], tuple[Any, ...]]


class Workspace:
    """Memory of one call at a time: an arena for the program's values, scratch space, and bindings by size of minibatch."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.arena: Any = program.backend.allocate(0)
        self.pool: dict[str, Any] = {}
        self._bindings: dict[Any, Binding] = {}

    def start(self, feeds: dict[Variable, Any]) -> Run:
        """Bind the program to the sizes of *feeds* and load them."""
        slots = self.program.slots
        shapes = []
        layouts: dict[Axes, Layout] = {}
        for index in self.program.inputs:
            variable = slots[index].variable
            fed = feeds[variable]
            shapes.append(fed.shape)
            if fed.layout is not None:
                known = layouts.setdefault(variable.spec.axes, fed.layout)
                if known is not fed.layout and known != fed.layout:
                    self._refuse(feeds)
        key = (tuple(shapes), *(layout.rows for layout in layouts.values()), *(layout.samples for layout in layouts.values()))
        binding = self._bindings.get(key)
        if binding is None:
            _check_batch_sizes(layouts, lambda: self._refuse(feeds))
            binding = self._bind(key, shapes, layouts)
        elif binding.has_sequences:
            _check_batch_sizes(layouts, lambda: self._refuse(feeds))
            binding.set_layouts(layouts)
        binding.load(feeds)
        return Run(self, binding)

    def _bind(self, key: Any, shapes: Sequence[Shape], layouts: dict[Axes, Layout]) -> Binding:
        while len(self._bindings) >= KEPT_BINDINGS:
            self._bindings.pop(next(iter(self._bindings)))
        binding = self._bindings[key] = Binding(self, shapes, layouts)
        return binding

    def reserve(self, nbytes: int) -> None:
        """Make the arena at least *nbytes* large; bindings to a smaller one are forgotten."""
        if nbytes > self.arena.nbytes:
            self.arena = self.program.backend.allocate(nbytes)
            self._bindings.clear()

    def _refuse(self, feeds: dict[Variable, Any]) -> None:
        given = ", ".join(f"{v!r}: {feeds[v].layout}" for v in self.program.arguments if feeds[v].layout is not None)
        raise ValueError(f"the inputs' minibatches differ in their number of samples or in the lengths of their sequences: {given}")


def _check_batch_sizes(layouts: dict[Axes, Layout], refuse: Callable[[], None]) -> None:
    if len({layout.samples for axes, layout in layouts.items() if axes[0].is_batch_axis}) > 1:
        refuse()


class Binding:
    """A program's instructions with their arrays, for one size of minibatch.

    Attributes:
        arrays: array of each slot.
        forward_steps, backward_steps, finish_steps: what to call, in order.
        has_sequences: whether layouts differ between minibatches of this size.
    """

    def __init__(self, workspace: Workspace, shapes: Sequence[Shape], layouts: dict[Axes, Layout]) -> None:
        self.program = workspace.program
        self.backend = self.program.backend
        self.pool = workspace.pool
        self.layouts = dict(layouts)
        self.has_sequences = any(layout.is_sequence for layout in layouts.values())
        self._contexts: list[tuple[Context, tuple[Axes, ...], Axes]] = []
        self._nodes: dict[int, Primitive] = {}
        self._add_batch_layout()
        self.specs = self._concrete_specs(shapes)
        self.shapes = [self._with_rows(spec) for spec in self.specs]
        self.arrays: list[Any] = self._place(workspace)
        self.forward_steps: list[Step] = []
        self.backward_steps: list[Step] = []
        self.finish_steps: list[Step] = []
        self._bind_instructions()

    # ---- data in ----

    def load(self, feeds: dict[Variable, Any]) -> None:
        """Copy data into the inputs' arrays; sparse inputs refer to it."""
        slots = self.program.slots
        for index in self.program.inputs:
            array, fed = self.arrays[index], feeds[slots[index].variable]
            if type(array) is SparseRows:
                array.set(fed.data.data, fed.data.indices, fed.data.indptr)
            else:
                array[...] = fed.data

    def set_layouts(self, layouts: dict[Axes, Layout]) -> None:
        """Use the layouts of this minibatch."""
        self.layouts.update(layouts)
        self._add_batch_layout()
        for context, operands, result in self._contexts:
            context.layouts = tuple(self.layouts.get(axes) for axes in operands)
            context.layout = self.layouts.get(result)

    def _add_batch_layout(self) -> None:
        for axes, layout in list(self.layouts.items()):
            if len(axes) > 1:
                self.layouts[axes[:1]] = Layout(layout.samples)

    # ---- sizes ----

    def _concrete_specs(self, shapes: Sequence[Shape]) -> list[Spec]:
        """Types of all slots for the sizes at hand; layouts that ops make are entered on the way."""
        slots = self.program.slots
        specs = [slot.spec for slot in slots]
        for index, shape in zip(self.program.inputs, shapes, strict=True):
            specs[index] = specs[index].but(shape=shape, sparse=specs[index].sparse)
        for instruction in self.program.instructions:
            op, operands = instruction.op, [specs[i] for i in instruction.inputs]
            if not self.program.is_static:
                for index, spec in zip(instruction.outputs, self._infer(instruction, operands), strict=True):
                    specs[index] = spec
            if hasattr(op, "make_layout"):
                self.layouts[specs[instruction.outputs[0]].axes or ()] = op.make_layout(*map(self._with_rows, operands))
        for index, slot in enumerate(slots):
            if slot.like is not None:
                specs[index] = specs[slot.like]
        return specs

    def _infer(self, instruction: Instruction, operands: Sequence[Spec]) -> tuple[Spec, ...]:
        op = instruction.op
        try:
            made = op.infer(*operands)
        except (ValueError, TypeError, RuntimeError) as error:
            raise explained(error, instruction.node) from None
        if hasattr(op, "array_shape"):
            assert isinstance(made, Spec)
            made = made.but(shape=op.array_shape(*map(self._with_rows, operands)))
        return made if isinstance(made, tuple) else (made,)

    def _with_rows(self, spec: Spec) -> Shape:
        return (self.layouts[spec.axes].rows, *spec.dims) if spec.axes else spec.dims

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
        operands = tuple(self.specs[i].axes or () for i in instruction.inputs)
        result = self.specs[instruction.outputs[0]].axes or ()
        context.layouts = tuple(self.layouts.get(axes) for axes in operands)
        context.layout = self.layouts.get(result)
        self._contexts.append((context, operands, result))
        return context

    def _bind_forward(self, instruction: Instruction, context: Context) -> None:
        arrays = self.arrays
        if instruction.is_view:
            target = instruction.outputs[0]
            arrays[target] = instruction.op.view(arrays[instruction.inputs[0]], self.shapes[target])  # type: ignore[attr-defined]
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


class Run:
    """One call of a program: data is loaded, passes are made, values are read, and the workspace goes back."""

    __slots__ = ("binding", "workspace")

    def __init__(self, workspace: Workspace, binding: Binding) -> None:
        self.workspace, self.binding = workspace, binding

    def guard(self) -> Any:
        """Context in which to make the passes: the backend's floating-point warnings are silent."""
        return self.binding.backend.guard()

    def forward(self) -> None:
        """Compute the roots."""
        self.binding.run(self.binding.forward_steps)

    def backward(self, seeds: dict[Variable, Any] | None = None) -> None:
        """Compute the gradients.

        Args:
            seeds: gradients of the roots, zero for those not named; None starts each root from ones.
        """
        binding = self.binding
        for root, slot in binding.program.seed_slots.items():
            binding.arrays[slot][...] = 1 if seeds is None else seeds.get(root, 0)
        binding.run(binding.backward_steps)

    def finish(self) -> None:
        """Carry out what waits for the end of the pass: assignments."""
        self.binding.run(self.binding.finish_steps)

    def value(self, root: Variable) -> Any:
        """Array of a root, in the workspace's memory."""
        return self.binding.arrays[self.binding.program.root_slots[root]]

    def gradient(self, variable: Variable) -> Any:
        """Gradient of a variable, in the workspace's memory: an array or a RowSparse."""
        return self.binding.arrays[self.binding.program.gradient_slots[variable]]

    def layout(self, axes: Axes) -> Layout | None:
        """Layout of values on these dynamic axes; None without any."""
        return self.binding.layouts.get(axes)

    @property
    def samples(self) -> int:
        """The largest number of rows among the inputs; 1 without dynamic axes."""
        return max((layout.rows for layout in self.binding.layouts.values()), default=1)

    def close(self) -> None:
        """Give the workspace back; arrays read from it are invalid from now on."""
        self.workspace.program.release(self.workspace)


def _add(xp: Any, total: Any, term: Any) -> None:
    xp.add(total, term, out=total)


def _check_for_nan(xp: Any, result: Any) -> None:
    for array in result if isinstance(result, tuple) else (result,):
        if isinstance(array, np.ndarray) and xp.isnan(array).any():
            raise ValueError(f"produced NaN, first at index {tuple(int(i) for i in np.argwhere(np.isnan(array))[0])} of {array.shape}")
