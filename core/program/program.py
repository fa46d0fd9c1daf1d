"""Programs: a function compiled for its roots and the gradients wanted, as a flat list of instructions.

Compiling inlines blocks, orders the operators, chooses their kernels, writes the backward pass, and finds out when each value
is needed.  Sizes come later: a :class:`~cntk.core.run.workspace.Workspace` binds a program to arrays for the sizes of a minibatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..extension import plugins
from ..extension.backend import Backend
from ..extension.device import device_of
from ..extension.identity import still_holds
from ..extension.kernel import Binds, Declines
from ..graph.block import Block, Combine
from ..graph.inference import explained
from ..graph.nodes import Primitive
from ..graph.variable import Constant, Input, Output, Parameter, Placeholder, Variable
from ..operators.abilities import AcceptsStrided
from ..operators.delay import Delay
from ..operators.effects import Assignment, Finishing
from ..operators.inserted_ops import Densify, Expand
from ..operators.op import Op
from ..operators.sequence_op import SequenceOp, decides_layout
from ..operators.view import GradientView, View, is_slice
from ..types.axis import Axes, format_axes
from ..types.spec import Spec
from ..values.fast_feed import FastInputs
from .chains import Chain
from .differentiation import Differentiator
from .ordering import Cycle, in_order
from .passes import Pass, chosen
from .passes import run as run_pass
from .prepared import PreparedOperands
from .slots import COMPUTED, FOREVER, HELD, INPUT, UNUSED, Instruction, Loop, Slot

if TYPE_CHECKING:
    from .passes.constants import FoldedConstants


class Program:
    """A compiled function.

    Args:
        roots: variables to compute.
        wrt: variables to differentiate by; empty for a program without backward pass.
        gradient_roots: those of the roots that gradients start from.
        training: whether operators behave as in training.
        backend: what it runs on.
        checked: whether every result is checked for NaN.
        passes: passes to run while it is compiled; those that :func:`~cntk.core.program.passes.set_passes` chose where None.
        bound: by argument of a block what it stands for, where roots lie inside blocks.

    Attributes:
        slots: all values.
        bound: by argument of a block what it stands for, of all blocks met.
        instructions: operators in the order of the forward pass; the backward pass goes the other way.
        inputs, arguments: slots that data is fed to, and their variables.
        fast_inputs: the same, with the data that needs no conversion.
        sized_by_data: instructions with operands or results whose shapes are not known without data.
        stages: how many stages it runs in; between two of them operators compute layouts from data.
        slots_of_stage: slots whose arrays are placed in each stage.
        has_loops: whether there are recurrences.
        root_slots, gradient_slots, seed_slots: where roots, gradients and the roots' own gradients are.
        totals: slots of roots whose sums are wanted after forward passes, and the sums' types.
        asked: slots of the roots and of what is differentiated by, which passes leave alone.
        is_inference: whether results alone are wanted, outside training and without gradients.
        written: variables that it gives new values, where it has operators that do so.
        folded: values of constants alone, where a pass has made some.
        prepared: what kernels have made of operands that seldom change; None where parameters are being trained.
        chains: instructions that may run block by block of rows.
        idle: workspaces that no run is using.
    """

    def __init__(
        self,
        roots: Sequence[Variable],
        backend: Backend,
        wrt: Sequence[Variable] = (),
        gradient_roots: Sequence[Variable] = (),
        training: bool = False,
        checked: bool = False,
        passes: Sequence[Pass] | None = None,
        bound: Mapping[Variable, Variable] | None = None,
    ) -> None:
        self.backend, self.training, self.checked = backend, training, checked
        self.is_inference = not training and not wrt
        self.written: list[Parameter | Constant] = []
        self.slots: list[Slot] = []
        self.instructions: list[Instruction] = []
        self._slot_of: dict[Variable, int] = {}
        self.bound: dict[Variable, Variable] = dict(bound or {})
        self._inserted: dict[tuple[type[Op], tuple[int, ...], Axes | None], int] = {}
        for part in in_order(roots, self._owner_of):
            if isinstance(part, Cycle):
                self._emit_loop(part)
            else:
                self._emit(part)
        self.has_loops = any(instruction.loop is not None for instruction in self.instructions)
        self.root_slots = {root: self._slot(self._resolved(root)) for root in roots}
        self.totals: dict[int, Any] = {}
        self.asked = {*self.root_slots.values(), *(self._slot_of[v] for v in map(self._resolved, wrt) if v in self._slot_of)}
        self.folded: FoldedConstants | None = None
        self.prepared = PreparedOperands(backend) if self.is_inference else None
        self.chains: list[Chain] = []
        passes = (*(chosen() if passes is None else passes), *getattr(backend, "passes", ()))
        for one in passes:
            run_pass(one, one.rewrite, self)
        self._choose_views()
        stage_of = self._divide_into_stages()
        self.inputs = [index for index, slot in enumerate(self.slots) if slot.kind == INPUT]
        self.arguments = [self.slots[index].variable for index in self.inputs]
        self.fast_inputs = FastInputs(self.arguments)
        self.seed_slots: dict[Variable, int] = {}
        self.gradient_slots: dict[Variable, int] = {}
        if wrt:
            Differentiator(self, gradient_roots, wrt).run()
        self._find_lifetimes()
        for one in passes:
            run_pass(one, one.arrange, self)
        self.slots_of_stage = self._slots_by_stage(stage_of)
        self.sized_by_data = {instruction for instruction in self.instructions if self._is_sized_by_data(instruction)}
        self.idle: list[Any] = []

    def _is_sized_by_data(self, instruction: Instruction) -> bool:
        return not all(self.slots[index].spec.is_concrete for index in instruction.used_forward())

    # ---- forward ----

    def _resolved(self, variable: Variable) -> Variable:
        """The variable itself, seen through blocks: what computes it, or where its data comes from."""
        while True:
            if variable in self.bound:
                variable = self.bound[variable]
            elif isinstance(variable, Output) and isinstance(variable.owner, Block):
                block = variable.owner
                self.bound.update(block.block_arguments_mapping)
                variable = block.composite.outputs[variable.index]
            else:
                return variable

    def _owner_of(self, variable: Variable) -> Primitive | None:
        """The operator that computes a variable, seen through blocks; None for a leaf."""
        found = self._resolved(variable)
        return found.owner if isinstance(found, Output) else None

    def _slot(self, variable: Variable) -> int:
        """The slot of a resolved variable, made now for a leaf."""
        index = self._slot_of.get(variable)
        if index is None:
            index = self._slot_of[variable] = self._add(variable.spec, self._kind_of(variable), variable)
        return index

    def _add(self, spec: Spec, kind: str, variable: Variable, like: int | None = None, base: int | None = None) -> int:
        index = len(self.slots)
        self.slots.append(Slot(spec, kind, variable, like, index if base is None else base))
        return index

    def _require_here(self, held: Parameter | Constant) -> None:
        """Refuse what lives on another device than the program runs on."""
        if held.backend is not self.backend:
            raise ValueError(
                f"{held!r} lives on {held.device}, but the program is to run on {device_of(self.backend)}; "
                "run it where the model is (device=...), or make the model where it is to run: make that the default device first "
                "(cntk.device.try_set_default_device), or load the model there (cntk.load_model(file, device=...))"
            )

    def _kind_of(self, variable: Variable) -> str:
        if isinstance(variable, Input):
            return INPUT
        if isinstance(variable, (Parameter, Constant)):
            self._require_here(variable)
            return HELD
        if isinstance(variable, Placeholder):
            raise ValueError(
                f"{variable!r} is an unbound placeholder; call the function on an input or use replace_placeholders, "
                "as layer(C.input_variable(2)), before it gets data"
            )
        return COMPUTED

    def _emit(self, node: Primitive) -> None:
        if isinstance(node, Combine):
            return
        inputs = self._operands(node)
        self._append(node.op, node, inputs, self._results(node))

    def _emit_loop(self, cycle: Cycle) -> None:
        """Put the operators of a recurrence behind those that its operands need."""
        _check_in_loop(cycle)
        results = {index for node in cycle.nodes for index in self._results(node)}
        start = len(self.instructions)
        operands = [self._operands(node, in_loop=True) for node in cycle.nodes]
        inserted = self.instructions[start:]
        within = {instruction.inputs[0]: instruction for instruction in inserted if instruction.inputs[0] in results}
        self.instructions[start:] = [instruction for instruction in inserted if instruction.inputs[0] not in results]
        start = len(self.instructions)
        for node, inputs in zip(cycle.nodes, operands, strict=True):
            outputs = self._results(node)
            self._append(node.op, node, inputs, outputs)
            self.instructions.extend(within[index] for index in outputs if index in within)
        body = self.instructions[start:]
        loop = Loop(cycle.forward, body, {index for instruction in body for index in instruction.outputs}, [])
        _check_initial_states(loop)
        for instruction in body:
            instruction.loop = loop

    def _results(self, node: Primitive) -> tuple[int, ...]:
        return tuple(self._slot(v) for v in node.outputs)

    def _operands(self, node: Primitive, in_loop: bool = False) -> tuple[int, ...]:
        """Slots of the operands, made dense and expanded where the operator wants them so; loops expand all but initial states."""
        op = node.op
        inputs = [self._slot(self._resolved(v)) for v in node.inputs]
        unread = op.traits.layout_inputs
        takes_sparse = (*op.sparse_inputs, *unread) if self.backend.sparse else unread
        inputs = [slot if i in takes_sparse else self._dense(slot, node) for i, slot in enumerate(inputs)]
        expanded = not isinstance(op, Delay) and (op.traits.expands_operands or in_loop)
        return tuple(self._on_common_axes(inputs, node) if expanded else inputs)

    def _append(self, op: Op, node: Primitive, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        instruction = self.instruction(op, node, inputs, outputs)
        if not instruction.is_pure:
            self._note_written(op, inputs)
        self.instructions.append(instruction)

    def instruction(self, op: Op, node: Primitive, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Instruction:
        """An operator at work between slots, by its own methods or by those of a kernel."""
        place = plugins.kernel_place(type(op), self.backend.name)
        if place is None:
            return Instruction(op, node, None, op.forward, op.backward, inputs, outputs)
        kernel: Any = plugins.kernels.get(place)
        bind = partial(kernel.bind, op) if issubclass(kernel, Binds) else None
        declines = partial(kernel.declines, op) if issubclass(kernel, Declines) else None
        forward, backward = partial(kernel.forward, op), partial(kernel.backward, op)
        return Instruction(op, node, kernel, forward, backward, inputs, outputs, bind=bind, declines=declines)

    def _note_written(self, op: Op, inputs: Sequence[int]) -> None:
        """Note which constants and parameters an operator with effects may write to."""
        assigns = op.assigns if isinstance(op, Assignment) else None
        if assigns is not None and op.traits.varies_in_training and not self.training:
            return
        for position, index in enumerate(inputs):
            variable = self.slots[index].variable
            if not isinstance(variable, (Constant, Parameter)):
                continue
            if assigns is None:
                variable.is_volatile = True
            elif position in assigns:
                self.written.append(variable)

    def refresh(self) -> None:
        """Compute what depends on constants alone, or on parameters between their updates, where these have changed."""
        if self.folded is not None:
            self.folded.refresh()
        if self.prepared is not None:
            self.prepared.refresh()

    def _dense(self, slot: int, node: Primitive) -> int:
        return self._insert(Densify(), (slot,), node) if self.slots[slot].spec.sparse else slot

    def _on_common_axes(self, inputs: list[int], node: Primitive) -> list[int]:
        """Expand operands that have only some of the dynamic axes that others have."""
        axes = [self.slots[i].spec.axes or () for i in inputs]
        widest = max(axes, key=len, default=())
        return [
            self._insert(Expand(widest), (self._dense(i, node),), node) if 0 < len(own) < len(widest) else i
            for i, own in zip(inputs, axes, strict=True)
        ]

    def _insert(self, op: Op, inputs: tuple[int, ...], node: Primitive) -> int:
        """Put an operator of our own before *node*; operands that need the same one share it."""
        spec = op.infer(*(self.slots[i].spec for i in inputs))
        assert isinstance(spec, Spec)
        key = (type(op), inputs, spec.axes)
        if key not in self._inserted:
            made = self._add(spec, COMPUTED, self.slots[inputs[0]].variable)
            self._append(op, node, inputs, (made,))
            self._inserted[key] = made
        return self._inserted[key]

    def _choose_views(self) -> None:
        """Let results share memory with operands where the operators can, and those that read them can do with it."""
        selected: set[int] = {i.outputs[0] for i in self.instructions if is_slice(i.op) and not self.slots[i.inputs[0]].spec.sparse}
        for instruction in self.instructions:
            specs = [self.slots[index].spec for index in instruction.inputs]
            if not (issubclass(type(instruction.op), AcceptsStrided) and instruction.op.accepts_strided(*specs)):
                selected.difference_update(instruction.inputs)
        for instruction in self.instructions:
            target = instruction.outputs[0]
            op = instruction.op
            is_view = isinstance(op, View) and still_holds(type(op), "view", "forward")
            instruction.is_view = is_view and (target in selected or not is_slice(op))
            instruction.has_gradient_view = isinstance(op, GradientView) and still_holds(type(op), "grad_view", "backward")
            if instruction.is_view:
                self.slots[target].base = self.slots[instruction.inputs[0]].base

    # ---- stages ----

    def _divide_into_stages(self) -> dict[int, int]:
        """Put each instruction into the first stage in which the rows of its operands and results are known; say that of each slot."""
        stage_of: dict[int, int] = {}
        stage_of_axes: dict[Axes, int] = {}
        for part in self.parts():
            read = [stage_of.get(index, 0) for instruction in part for index in instruction.inputs]
            slots = [index for instruction in part for index in (*instruction.inputs, *instruction.outputs)]
            read += [stage_of_axes.get(self.slots[index].spec.axes or (), 0) for index in slots]
            stage = max(read, default=0) + any(decides_layout(instruction.op) for instruction in part)
            for instruction in part:
                instruction.stage = stage
                for index in instruction.outputs:
                    stage_of[index] = stage
                    axes = self.slots[index].spec.axes or ()
                    if len(axes) > 1:
                        stage_of_axes.setdefault(axes, stage)
        self.instructions.sort(key=lambda instruction: instruction.stage)
        self.stages = 1 + max((instruction.stage for instruction in self.instructions), default=0)
        return stage_of

    def _slots_by_stage(self, stage_of: dict[int, int]) -> list[list[int]]:
        """Slots whose arrays are placed in each stage: values where they are computed, gradients in the last one."""
        placed: list[list[int]] = [[] for _ in range(self.stages)]
        for index, slot in enumerate(self.slots):
            placed[self.stages - 1 if slot.like is not None else stage_of.get(index, 0)].append(index)
        return placed

    def parts(self) -> list[list[Instruction]]:
        """Single instructions, and whole loops."""
        groups = groupby(self.instructions, key=lambda instruction: instruction.loop or instruction)
        return [list(group) for _, group in groups]

    def drop(self, indices: Iterable[int]) -> None:
        """Forget slots that no instruction reads or writes any more."""
        for index in indices:
            self.slots[index].kind = UNUSED

    # ---- lifetimes ----

    def _find_lifetimes(self) -> None:
        """Note when each piece of memory is first and last needed: forward steps come first, then the seeds, then backward steps."""
        for index in self.inputs:
            self._use(index, -1)
        for index in self.root_slots.values():
            self._use(index, FOREVER)
        count, start = len(self.instructions), 0
        for part in self.parts():
            end = start + len(part) - 1
            for instruction in part:
                for index in instruction.used_forward():
                    self._use(index, start)
                    self._use(index, FOREVER if isinstance(instruction.op, Finishing) else end)
                for index in instruction.used_backward():
                    self._use(index, 2 * count - end)
                    self._use(index, 2 * count - start)
            start = end + 1
        for index in self.seed_slots.values():
            self._use(index, count)
        for index in self.gradient_slots.values():
            self._use(index, FOREVER)

    def _use(self, index: int, time: int) -> None:
        base = self.slots[self.slots[index].base]
        base.birth = min(base.birth, time)
        base.death = max(base.death, time)


def _check_in_loop(cycle: Cycle) -> None:
    """Check that the operators of a recurrence can run step by step."""
    axes_of = {node: node.outputs[0].spec.axes for node in cycle.nodes}
    along_sequences = all(axes is None or len(axes) > 1 for axes in axes_of.values())
    for node, axes in axes_of.items():
        if isinstance(node.op, SequenceOp) and (node.op.whole_sequences or node.op.decides_layout):
            why = "it looks at whole sequences and cannot be a part of a recurrence, which sees one step at a time"
        elif axes is not None and len(axes) < 2:
            found = f"its result has the dynamic axes {format_axes(axes)}"
            why = f"{found} and cannot be a part of a recurrence, which runs along a sequence axis"
        elif axes is None and along_sequences:
            why = "nothing in this recurrence tells its dynamic axes; an operand with a sequence axis must be involved"
        else:
            continue
        raise explained(ValueError(why), node)


def _check_initial_states(loop: Loop) -> None:
    """Refuse initial states that the recurrence would have to compute before it begins."""
    for instruction in loop.body:
        if isinstance(instruction.op, Delay) and instruction.inputs[1] in loop.slots:
            why = "its initial state depends on the recurrence that it begins; compute it from values outside"
            raise explained(ValueError(why), instruction.node)
