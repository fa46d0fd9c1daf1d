"""Workspaces: the memory that a program runs in, and the run of one call.

A workspace serves one call at a time; calls on several threads use several.  Whatever depends on sizes is worked out once for
each size of minibatch and kept as a :class:`~cntk.core.binding.Binding`, so that a step of training looks nothing up and
allocates nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import proxy

from .binding import Binding
from .feed import Feed
from .layout import Layout

if TYPE_CHECKING:
    from .program import Program
    from .variable import Variable

KEPT_BINDINGS = 16


class Workspace:
    """Memory of one call at a time: an arena for the program's values, scratch space, and bindings by size of minibatch."""

    def __init__(self, program: Program) -> None:
        self.program: Program = proxy(program)  # the program holds its workspaces; a cycle would keep the arena until it is collected
        self.arena: Any = program.backend.allocate(0)
        self.pool: dict[str, Any] = {}
        self._bindings: dict[Any, Binding] = {}

    def load(self, feeds: Sequence[Feed]) -> Binding:
        """Bind the program to the sizes of *feeds*, one for each input, and load them."""
        self._check(feeds)
        key = tuple([(fed.shape, None if fed.layout is None else (fed.layout.samples, fed.layout.rows)) for fed in feeds])
        binding = self._bindings.get(key)
        if binding is None or not binding.suits(feeds):
            binding = self._bind(key, feeds)
        binding.load(feeds)
        return binding

    def _bind(self, key: Any, feeds: Sequence[Feed]) -> Binding:
        while len(self._bindings) >= KEPT_BINDINGS:
            self._bindings.pop(next(iter(self._bindings)))
        binding = self._bindings[key] = Binding(self, feeds)
        return binding

    def reserve(self, nbytes: int) -> None:
        """Make the arena at least *nbytes* large; bindings to a smaller one are forgotten."""
        if nbytes > self.arena.nbytes:
            self.arena = self.program.backend.allocate(nbytes)
            self._bindings.clear()

    def _check(self, feeds: Sequence[Feed]) -> None:
        """Refuse minibatches of different sizes."""
        first: Layout | None = None
        for fed in feeds:
            if fed.layout is None:
                continue
            if first is None:
                first = fed.layout
            elif fed.layout.samples != first.samples:
                given = [f"{v!r}: {f.layout.samples}" for v, f in zip(self.program.arguments, feeds, strict=True) if f.layout]
                raise ValueError(f"the inputs' minibatches have different numbers of samples: {', '.join(given)}")


class Run:
    """One call of a program: data is loaded, passes are made, values are read, and the workspace goes back."""

    __slots__ = ("binding", "program", "workspace")

    def __init__(self, program: Program, workspace: Workspace, binding: Binding) -> None:
        self.program, self.workspace, self.binding = program, workspace, binding

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
        binding, slot_of = self.binding, self.program.seed_slots
        given = None if seeds is None else {slot_of[root]: seed for root, seed in seeds.items() if root in slot_of}
        for slot in slot_of.values():
            binding.arrays[slot][...] = 1 if given is None else given.get(slot, 0)
        binding.run(binding.backward_steps)

    def finish(self) -> None:
        """Carry out what waits for the end of the pass: assignments."""
        self.binding.run(self.binding.finish_steps)

    def value(self, root: Variable) -> Any:
        """Array of a root, in the workspace's memory."""
        return self.binding.arrays[self.program.root_slots[root]]

    def gradient(self, variable: Variable) -> Any:
        """Gradient of a variable, in the workspace's memory: an array or a RowSparse."""
        return self.binding.arrays[self.program.gradient_slots[variable]]

    def layout(self, variable: Variable) -> Layout | None:
        """Layout of a root, or of a variable whose gradient is computed; None without dynamic axes."""
        slot = self.program.root_slots.get(variable)
        return self.binding.layouts[self.program.gradient_slots[variable] if slot is None else slot]

    def count(self, root: Variable) -> int:
        """Samples, or steps of sequences, that a root has values for; without dynamic axes the most that an input has."""
        layout = self.layout(root)
        if layout is not None:
            return layout.rows
        return max((known.rows for known in self.binding.layouts if known is not None), default=1)

    def close(self) -> None:
        """Give the workspace back; arrays read from it are invalid from now on."""
        self.program.release(self.workspace)
