"""Chains: instructions that follow one another and work row by row, so that some rows may go through all of them before the next do.

A kernel may run a chain as one call.  It is registered as the engine ``Chain`` and follows :class:`Kernel`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..extension import plugins
from ..extension.kernel import Repeatable

if TYPE_CHECKING:
    from ..extension.backend import Backend
    from ..run.binding import Step
    from ..run.sizes import Sizes
    from ..types.context import Context
    from .slots import Instruction, Slot


@dataclass(eq=False, slots=True)
class Chain:
    """Instructions that may run together.

    Attributes:
        members: the instructions, in the order in which they run.
        goes_back: whether their gradients are computed.
        stage: the stage of the program they run in.
        begin, end: the moments at which the first and the last of them run.
        has_kernel: whether a kernel knows all of them.
        has_blocks: whether each of their calls may be made for some rows at a time.
        touched: slots whose memory they read or write, which they need from begin to end when they run together.
        local: those of them that nothing else needs.
        known: the kernel's cache for sizes and attributes.
    """

    members: list[Instruction]
    goes_back: bool
    stage: int
    begin: int
    end: int
    has_kernel: bool
    has_blocks: bool
    touched: set[int] = field(default_factory=set)
    local: set[int] = field(default_factory=set)
    known: dict[Any, Any] = field(default_factory=dict)


class Kernel(Protocol):
    """Runs chains on a backend as one call each.

    Attributes:
        shortest: how many instructions gain by running in a chain of this kernel.
        of_one_shape: whether the results of all members must have the same static shape.
    """

    shortest: int
    of_one_shape: bool

    def takes(self, instruction: Instruction, slots: Sequence[Slot], goes_back: bool) -> bool:
        """Whether an instruction may be a member of its chains.  Its operands are dense, with rows in one order or without any."""

    def plan(self, chain: Chain, slots: Sequence[Slot], sizes: Sizes) -> Plan | None:
        """How to run a chain of such members for some sizes; None if single calls are faster."""


class Plan(Protocol):
    """How a kernel runs a chain."""

    def bind(self, arrays: Sequence[Any], context: Context) -> Fused:
        """The chain bound to the arrays of slots, without those that are local to the chain."""


class Fused(Protocol):
    """A chain on arrays.

    One that gives a device the same work whenever it runs is :class:`~cntk.core.extension.kernel.Repeatable` besides.

    Attributes:
        groups: how many groups of rows go through it one after another.
    """

    @property
    def groups(self) -> int: ...

    def run(self) -> None:
        """Run the chain."""

    def run_one(self, member: int, group: int) -> None:
        """Run one of its members for a group of rows; groups come in order, and for each the members."""


def kernel_of(backend: Backend) -> Kernel | None:
    """The kernel of a backend that runs chains, None if there is none."""
    place = "Chain", backend.name
    return plugins.engines.get(place) if place in plugins.engines else None


class CallOfSeveral(ABC):
    """A single call that stands for several."""

    @abstractmethod
    def __call__(self) -> None:
        """Make it."""

    @abstractmethod
    def single_steps(self) -> Iterator[Step]:
        """The calls one by one, for the profiler."""


class FusedCall(CallOfSeveral):
    """The single call of a chain, and the calls that it stands for.

    Args:
        fused: the chain on its arrays.
        members: its members.
        steps: the calls.
    """

    def __init__(self, fused: Fused, members: Sequence[Instruction], steps: Iterable[Step]) -> None:
        self._fused = fused
        number = {instruction.node: place for place, instruction in enumerate(members)}
        self._calls: dict[int, Step] = {}
        for step in steps:
            self._calls.setdefault(number[step[2]], step)

    @property
    def repeatable(self) -> Repeatable | None:
        """What runs the chain, if a recording can stand for it."""
        return self._fused if isinstance(self._fused, Repeatable) else None

    def step(self) -> Step:
        """The call."""
        node = next(step[2] for step in self._calls.values())
        return self, (), node, None, ()

    def __call__(self) -> None:
        self._fused.run()

    def single_steps(self) -> Iterator[Step]:
        """The calls one by one, for the profiler; their work is counted with the first group of rows."""
        for group in range(self._fused.groups):
            for number, (_, _, node, _, arguments) in self._calls.items():
                op, works_on = (node.op, arguments) if group == 0 else (None, ())
                yield self._fused.run_one, (number, group), node, op, works_on


def one_by_one(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, with those in place of each call that stands for several."""
    for step in steps:
        if isinstance(step[0], CallOfSeveral):
            yield from step[0].single_steps()
        else:
            yield step
