"""Programs: a function compiled for its roots and the gradients wanted, as a flat list of instructions.

Compiling inlines blocks, orders the operators, chooses their kernels, writes the backward pass, and finds out when each value
is needed.  Sizes come later: a :class:`~cntk.core.workspace.Workspace` binds a program to arrays for the minibatch at hand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from . import plugins
from .backend import Backend
from .block import Block, Combine
from .build import explained
from .feed import Feed
from .function import Primitive
from .op import Elementwise, Op, includes
from .spec import Spec
from .structure import Densify, Expand
from .variable import Constant, Input, Output, Parameter, Placeholder, Variable
from .workspace import Run, Workspace

INPUT, HELD, COMPUTED, ZERO, ROWS = "input", "held", "computed", "zero", "rows"
FOREVER = 2**62


@dataclass(slots=True)
class Slot:
    """A value of a program.

    Attributes:
        spec: its type.
        kind: fed data, a parameter's or constant's own array, something computed, a gradient that is zero, or a row-sparse one.
        variable: the variable it belongs to.
        like: for a gradient, the slot whose gradient it is.
        base: the slot whose memory it shares, itself when it has its own.
        birth, death: first and last moment at which it is needed.
    """

    spec: Spec
    kind: str
    variable: Variable
    like: int | None
    base: int
    birth: int = FOREVER
    death: int = -1


@dataclass(slots=True)
class Instruction:
    """One operator at work: forward, and in a training program backward.

    Attributes:
        op, node: the operator, and the function of the graph it stands for.
        forward, backward: the methods to call, of the operator or of a kernel.
        inputs, outputs: slots of operands and results.
        grad: slots of the results' gradients, None where none arrives; set when a gradient passes.
        grads: slots of the operands' gradients, None where none is wanted.
        sums: pairs (gradient, term to add to it) that follow the backward step.
        is_view: whether the result is a view of the first operand, so that nothing runs forward.
        passed: pairs (operand, slot) of gradients that share the memory of the result's gradient, for which nothing runs.
    """

    op: Op
    node: Primitive
    forward: Callable[..., None]
    backward: Callable[..., None]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    grad: tuple[int | None, ...] | None = None
    grads: tuple[int | None, ...] = ()
    sums: tuple[tuple[int, int], ...] = ()
    is_view: bool = False
    passed: tuple[tuple[int, int], ...] = ()


class Program:
    """A compiled function.

    Args:
        roots: variables to compute.
        wrt: variables to differentiate by; empty for a program without backward pass.
        gradient_roots: those of the roots that gradients start from.
        training: whether operators behave as in training.
        backend: what it runs on.
        checked: whether every result is checked for NaN.

    Attributes:
        slots: all values.
        instructions: operators in the order of the forward pass; the backward pass goes the other way.
        inputs, arguments: slots that data is fed to, and their variables.
        is_static: whether all shapes are known without data.
        makes_layouts: whether operators decide how rows lie.
        root_slots, gradient_slots, seed_slots: where roots, gradients and the roots' own gradients are.
    """

    def __init__(
        self,
        roots: Sequence[Variable],
        backend: Backend,
        wrt: Sequence[Variable] = (),
        gradient_roots: Sequence[Variable] = (),
        training: bool = False,
        checked: bool = False,
    ) -> None:
        self.backend, self.training, self.checked = backend, training, checked
        self.slots: list[Slot] = []
        self.instructions: list[Instruction] = []
        self._slot_of: dict[Variable, int] = {}
        self._bound: dict[Variable, Variable] = {}
        self._inserted: dict[tuple[str, tuple[int, ...]], int] = {}
        for node in self._ordered(roots):
            self._emit(node)
        self.root_slots = {root: self._slot(self._resolved(root)) for root in roots}
        self.inputs = [index for index, slot in enumerate(self.slots) if slot.kind == INPUT]
        self.arguments = [self.slots[index].variable for index in self.inputs]
        self.seed_slots: dict[Variable, int] = {}
        self.gradient_slots: dict[Variable, int] = {}
        if wrt:
            _Differentiator(self, gradient_roots, wrt).run()
        self._find_lifetimes()
        self.is_static = all(slot.spec.is_concrete for slot in self.slots)
        self.makes_layouts = any(hasattr(instruction.op, "make_layout") for instruction in self.instructions)
        self._idle: list[Workspace] = []

    # ---- running ----

    def start(self, feeds: Sequence[Feed]) -> Run:
        """Take a workspace and load data into it, one feed for each argument; the caller closes the run to give it back.

        Raises:
            ValueError: the inputs' minibatches do not go together.
        """
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = Workspace(self)
        return Run(self, workspace, workspace.load(feeds))

    def release(self, workspace: Workspace) -> None:
        """Take back a workspace whose run is over."""
        self._idle.append(workspace)

    # ---- forward ----

    def _resolved(self, variable: Variable) -> Variable:
        """The variable itself, seen through blocks: what computes it, or where its data comes from."""
        while True:
            if variable in self._bound:
                variable = self._bound[variable]
            elif isinstance(variable, Output) and isinstance(variable.owner, Block):
                block = variable.owner
                self._bound.update(block.block_arguments_mapping)
                variable = block.composite.outputs[variable.index]
            else:
                return variable

    def _ordered(self, roots: Iterable[Variable]) -> list[Primitive]:
        """The operators to run, each after those it needs, blocks inlined."""
        order: list[Primitive] = []
        done: set[Primitive] = set()
        waiting: set[Primitive] = set()
        stack: list[tuple[Primitive | None, Iterator[Variable]]] = [(None, iter(roots))]
        while stack:
            node, pending = stack[-1]
            child = self._next_undone(pending, done)
            if child is not None:
                if child in waiting:
                    raise explained(ValueError("the graph has a cycle here that goes through no delay (past_value or future_value)"), child)
                waiting.add(child)
                stack.append((child, iter(child.inputs)))
                continue
            stack.pop()
            if node is not None:
                done.add(node)
                order.append(node)
        return order

    def _next_undone(self, pending: Iterator[Variable], done: set[Primitive]) -> Primitive | None:
        """The first operator behind *pending* variables that is not in order yet."""
        for variable in map(self._resolved, pending):
            if isinstance(variable, Output) and variable.owner not in done:
                return variable.owner
        return None

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

    def _kind_of(self, variable: Variable) -> str:
        if isinstance(variable, Input):
            return INPUT
        if isinstance(variable, (Parameter, Constant)):
            return HELD
        if isinstance(variable, Placeholder):
            raise ValueError(f"{variable!r} is an unbound placeholder; call the function on an input or use replace_placeholders")
        raise ValueError(f"{variable!r} is computed by nothing in this graph")

    def _emit(self, node: Primitive) -> None:
        if isinstance(node, Combine):
            return
        op = node.op
        inputs = [self._slot(self._resolved(v)) for v in node.inputs]
        takes_sparse = op.sparse_inputs if self.backend.sparse else ()
        inputs = [slot if i in takes_sparse else self._dense(slot, node) for i, slot in enumerate(inputs)]
        inputs = self._on_common_axes(inputs, node)
        outputs = tuple(self._add(v.spec, COMPUTED, v) for v in node.outputs)
        self._slot_of.update(zip(node.outputs, outputs, strict=True))
        self._append(op, node, tuple(inputs), outputs)

    def _append(self, op: Op, node: Primitive, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        forward, backward = op.forward, op.backward
        place = (op.op_name, self.backend.name)
        if place in plugins.kernels:
            kernel = plugins.kernels.get(place)
            forward, backward = partial(kernel.forward, op), partial(kernel.backward, op)
        is_view = hasattr(op, "view")
        if is_view:
            self.slots[outputs[0]].base = self.slots[inputs[0]].base
        self.instructions.append(Instruction(op, node, forward, backward, inputs, outputs, is_view=is_view))

    def _dense(self, slot: int, node: Primitive) -> int:
        return self._insert(Densify(), (slot,), node) if self.slots[slot].spec.sparse else slot

    def _on_common_axes(self, inputs: list[int], node: Primitive) -> list[int]:
        """Expand operands that have only some of the dynamic axes that others have."""
        axes = {i: self.slots[i].spec.axes or () for i in inputs}
        widest = max(inputs, key=lambda i: len(axes[i]), default=0)
        if not node.op.expands_operands:
            return inputs
        return [
            self._insert(Expand(), (self._dense(i, node), widest), node) if 0 < len(axes[i]) < len(axes[widest]) else i for i in inputs
        ]

    def _insert(self, op: Op, inputs: tuple[int, ...], node: Primitive) -> int:
        """Put an operator of our own before *node*; operands that need the same one share it."""
        key = (op.op_name, inputs)
        if key not in self._inserted:
            spec = op.infer(*(self.slots[i].spec for i in inputs))
            assert isinstance(spec, Spec)
            made = self._add(spec, COMPUTED, self.slots[inputs[0]].variable)
            self._append(op, node, inputs, (made,))
            self._inserted[key] = made
        return self._inserted[key]

    # ---- lifetimes ----

    def _find_lifetimes(self) -> None:
        """Note when each piece of memory is first and last needed: forward steps come first, then the seeds, then backward steps."""
        for index in self.inputs:
            self._use(index, -1)
        for index in self.root_slots.values():
            self._use(index, FOREVER)
        count = len(self.instructions)
        for time, instruction in enumerate(self.instructions):
            for index in (*instruction.inputs, *instruction.outputs):
                self._use(index, time)
            if hasattr(instruction.op, "finish"):
                for index in (*instruction.inputs, *instruction.outputs):
                    self._use(index, FOREVER)
            if instruction.grad is not None:
                self._use_backward(instruction, 2 * count - time)
        for index in self.seed_slots.values():
            self._use(index, count)
        for index in self.gradient_slots.values():
            self._use(index, FOREVER)

    def _use_backward(self, instruction: Instruction, time: int) -> None:
        op = instruction.op
        kept = [slot for i, slot in enumerate(instruction.inputs) if includes(op.keep_inputs, i)]
        kept += instruction.outputs if op.keep_output else ()
        sums = [slot for pair in instruction.sums for slot in pair]
        passed = [slot for _, slot in instruction.passed]
        for index in (*kept, *(instruction.grad or ()), *instruction.grads, *sums, *passed):
            if index is not None:
                self._use(index, time)

    def _use(self, index: int, time: int) -> None:
        base = self.slots[self.slots[index].base]
        base.birth = min(base.birth, time)
        base.death = max(base.death, time)


class _Differentiator:
    """Writes the backward pass of a program: which gradients flow where, and in which memory."""

    def __init__(self, program: Program, roots: Sequence[Variable], wrt: Sequence[Variable]) -> None:
        self.program = program
        self.slots = program.slots
        self.wrt = {program._slot_of[v]: v for v in map(program._resolved, wrt) if v in program._slot_of}
        self.names = {v: program._slot_of.get(program._resolved(v)) for v in wrt}
        self.roots = roots
        self.gradient: dict[int, int] = {}
        self.arrived: dict[int, int] = defaultdict(int)

    def run(self) -> None:
        program = self.program
        active = self._depends_on_wrt()
        reached = self._reached_from_roots(active)
        expected = self._count_contributions(active, reached)
        for root in self.roots:
            slot = program.root_slots[root]
            if slot in active:
                program.seed_slots[root] = self._gradient_of(slot)
                self.arrived[slot] = 1
        for instruction in reversed(program.instructions):
            if any(slot in reached for slot in instruction.outputs):
                self._differentiate(instruction, active, expected)
        for variable, index in self.names.items():
            if index is not None:
                program.gradient_slots[variable] = self.gradient[index] if index in self.gradient else self._zero(index)

    def _depends_on_wrt(self) -> set[int]:
        active = set(self.wrt)
        for instruction in self.program.instructions:
            flows = (slot in active and includes(instruction.op.gradient_inputs, i) for i, slot in enumerate(instruction.inputs))
            if any(flows):
                active.update(instruction.outputs)
        return active

    def _reached_from_roots(self, active: set[int]) -> set[int]:
        reached = {self.program.root_slots[root] for root in self.roots} & active
        for instruction in reversed(self.program.instructions):
            if any(slot in reached for slot in instruction.outputs):
                reached.update(self._wanted(instruction, active))
        return reached

    def _wanted(self, instruction: Instruction, active: set[int]) -> list[int]:
        return [slot for i, slot in enumerate(instruction.inputs) if slot in active and includes(instruction.op.gradient_inputs, i)]

    def _count_contributions(self, active: set[int], reached: set[int]) -> dict[int, int]:
        """How many terms the gradient of each value is the sum of."""
        expected: dict[int, int] = defaultdict(int)
        for root in self.roots:
            expected[self.program.root_slots[root]] += 1
        for instruction in self.program.instructions:
            if any(slot in reached for slot in instruction.outputs):
                for slot in self._wanted(instruction, active):
                    expected[slot] += 1
        return expected

    def _gradient_of(self, slot: int) -> int:
        if slot not in self.gradient:
            of = self.slots[slot]
            self.gradient[slot] = self.program._add(of.spec.but(sparse=False), COMPUTED, of.variable, like=slot)
        return self.gradient[slot]

    def _zero(self, slot: int) -> int:
        of = self.slots[slot]
        return self.program._add(of.spec.but(sparse=False), ZERO, of.variable, like=slot)

    def _differentiate(self, instruction: Instruction, active: set[int], expected: dict[int, int]) -> None:
        instruction.grad = tuple(self.gradient.get(slot) for slot in instruction.outputs)
        wanted = self._wanted(instruction, active)
        if all(slot is None for slot in instruction.grad) or not wanted:
            instruction.grad = None
            return
        grads: list[int | None] = []
        sums: list[tuple[int, int]] = []
        passed: list[tuple[int, int]] = []
        for i, slot in enumerate(instruction.inputs):
            if slot not in active or not includes(instruction.op.gradient_inputs, i):
                grads.append(None)
                continue
            target = self._gradient_of(slot)
            self.arrived[slot] += 1
            if expected[slot] == 1 and self._passes(instruction, i):
                self._share(target, instruction.grad[0])
                passed.append((i, target))
                grads.append(None)
                continue
            if self.arrived[slot] > 1:
                term = self.program._add(self.slots[target].spec, COMPUTED, self.slots[slot].variable, like=slot)
                sums.append((target, term))
                grads.append(term)
                continue
            if expected[slot] == 1 and self.slots[slot].kind == HELD and self._is_row_sparse(instruction, i):
                self.slots[target].kind = ROWS
            grads.append(target)
        instruction.grads, instruction.sums, instruction.passed = tuple(grads), tuple(sums), tuple(passed)

    def _share(self, target: int, source: int | None) -> None:
        """Let one gradient lie in the memory of another."""
        if source is not None:
            self.slots[target].base = self.slots[source].base

    def _is_row_sparse(self, instruction: Instruction, i: int) -> bool:
        return instruction.op.row_sparse(i, [self.slots[slot].spec for slot in instruction.inputs])

    def _passes(self, instruction: Instruction, i: int) -> bool:
        """Whether the gradient of operand *i* is that of the result, in the same memory."""
        if isinstance(self.wrt.get(instruction.inputs[i]), Parameter):
            return False  # learners write into the gradients of parameters
        if hasattr(instruction.op, "grad_view"):
            return True
        op, before, after = instruction.op, self.slots[instruction.inputs[i]].spec, self.slots[instruction.outputs[0]].spec
        unchanged = isinstance(op, Elementwise) and i in op.passes_gradient
        return unchanged and before.is_concrete and (before.shape, before.axes) == (after.shape, after.axes)
