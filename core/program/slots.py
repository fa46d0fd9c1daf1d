"""The parts of programs: slots for values, instructions, and loops of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..graph.variable import Variable
from ..operators.elementwise import Elementwise
from ..operators.op import Op, includes
from ..types.spec import Spec

if TYPE_CHECKING:
    from ..graph.nodes import Primitive
    from .chains import Chain

INPUT, HELD, FOLDED, COMPUTED, ZERO, ROWS, UNUSED = "input", "held", "folded", "computed", "zero", "rows", "unused"
FOREVER = 2**62


@dataclass(slots=True)
class Slot:
    """A value of a program.

    Attributes:
        spec: its type.
        kind: fed data, a parameter's or constant's own array, a value of constants alone, something computed, a gradient that is zero, a
            row-sparse one, or what no instruction makes any more.
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


@dataclass(eq=False, slots=True)
class Instruction:
    """One operator at work: forward, and in a training program backward.

    Attributes:
        op, node: the operator, and the function of the graph it stands for.
        kernel: the kernel that replaces the operator's methods, or None.
        forward, backward: the methods to call, of the operator or of the kernel.
        bind: a function that takes the arguments of *forward* and returns a function without arguments to call in its place, or None.
        declines: a function that tells, from the arguments of *forward*, whether the kernel leaves the call to the operator, or None.
        inputs, outputs: slots of operands and results.
        grad: slots of the results' gradients, None where none arrives; set when a gradient passes.
        grads: slots of the operands' gradients, None where none is wanted.
        sums: pairs (gradient, term to add to it) that follow the backward step.
        loop: the recurrence it is a part of.
        stage: the stage of the program it runs in.
        late_grads, late_sums: in a loop, gradients of operands from outside it, taken for all steps at once after the last one.
        carried: of a delay in a loop, slot of its operand's gradient, to which each step adds.
        reuses: the operand whose memory the result takes.
        reuses_gradient: the operand's gradient that takes the memory of the result's.
        chain, backward_chain: what it runs with, some rows at a time.
        is_view: whether the result is a view of the first operand, so that nothing runs forward.
        has_gradient_view: whether the first operand's gradient may be a view of the result's.
        passed: pairs (operand, slot) of gradients that share the memory of the result's gradient, for which nothing runs.
        placed: whether, the other way round, the result's gradient lies in a part of the operand's, so that nothing runs backward.
    """

    op: Op
    node: Primitive
    kernel: Any
    forward: Callable[..., None]
    backward: Callable[..., None]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    loop: Loop | None = None
    stage: int = 0
    grad: tuple[int | None, ...] | None = None
    grads: tuple[int | None, ...] = ()
    sums: tuple[tuple[int, int], ...] = ()
    is_view: bool = False
    has_gradient_view: bool = False
    passed: tuple[tuple[int, int], ...] = ()
    placed: bool = False
    late_grads: tuple[int | None, ...] = ()
    late_sums: tuple[tuple[int, int], ...] = ()
    carried: int | None = None
    reuses: int | None = None
    reuses_gradient: int | None = None
    chain: Chain | None = None
    backward_chain: Chain | None = None
    bind: Callable[..., Callable[[], None] | None] | None = None
    declines: Callable[..., bool] | None = None

    @property
    def is_pure(self) -> bool:
        """Whether running it does nothing but compute its results from its operands, so that it may run less often."""
        return not self.op.has_effects

    @property
    def may_overwrite(self) -> bool:
        """Whether what runs may write over operands and gradients where the operator says so: its own methods, or a kernel like them."""
        return self.kernel is None or getattr(self.kernel, "in_place", False)

    def keeps_gradient(self, i: int, slots: Sequence[Slot]) -> bool:
        """Whether the gradient of operand *i* is that of the result, element by element."""
        before, after = slots[self.inputs[i]].spec, slots[self.outputs[0]].spec
        unchanged = isinstance(self.op, Elementwise) and i in self.op.passes_gradient
        return unchanged and before.is_concrete and (before.shape, before.axes) == (after.shape, after.axes)

    def touched(self) -> Iterator[int]:
        """Slots of all values and gradients that it works with."""
        yield from self.used_forward()
        yield from self.used_gradients()

    def used_forward(self) -> tuple[int, ...]:
        """Slots that its forward step reads and writes."""
        return (*self.inputs, *self.outputs)

    def used_backward(self) -> Iterator[int]:
        """Slots that its backward step reads and writes; none where there is no such step."""
        if self.grad is None:
            return
        yield from (slot for i, slot in enumerate(self.inputs) if includes(self.op.keep_inputs, i))
        yield from self.outputs if self.op.keep_output else ()
        yield from (slot for pair in (*self.sums, *self.late_sums) for slot in pair)
        yield from (slot for _, slot in self.passed)
        yield from (slot for slot in (*self.grad, *self.grads, *self.late_grads, self.carried) if slot is not None)

    def used_gradients(self) -> Iterator[int]:
        """Slots of gradients that its backward step reads, writes or adds to."""
        zeros = () if self.loop is None else self.loop.zeros
        for index in (*(self.grad or ()), *self.grads, *self.late_grads, self.carried, *zeros):
            if index is not None:
                yield index
        for total, term in (*self.sums, *self.late_sums):
            yield total
            yield term
        for _, index in self.passed:
            yield index


@dataclass(eq=False)
class Loop:
    """A recurrence: instructions that run once a step.

    Attributes:
        forward: whether steps follow one another from the first to the last.
        body: its instructions, in the order of a step; they follow one another in the program.
        slots: results of the body.
        zeros: slots of gradients that are zero before steps add to them.
    """

    forward: bool
    body: list[Instruction]
    slots: set[int]
    zeros: list[int]

    @cached_property
    def touched(self) -> tuple[int, ...]:
        """Slots of all values and gradients that the body works with."""
        return tuple(sorted({index for instruction in self.body for index in instruction.touched()}))
