"""What kernels make of operands that seldom change, such as a matrix packed for the loops that read it.

A program without gradients reads parameters that change between its runs at most.  What was made of one is made again once it has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..common.lock import ForkSafeLock
from ..common.shape import Shape
from .slots import FOLDED, HELD

if TYPE_CHECKING:
    from ..extension.backend import Backend, DType
    from ..types.context import Prepare
    from .program import Program
    from .slots import Instruction

Make = Callable[[Any, Any], None]


class _Made(NamedTuple):
    """An array made of an operand, and how."""

    array: Any
    operand: Any
    make: Make


class _Source:
    """A variable, or all folded constants, and what has been made of it."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.seen = variable.changes
        self.made: dict[Any, _Made] = {}


class PreparedOperands:
    """Arrays that a program's kernels have had made of operands; they are the same for all sizes of minibatch and all threads."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._sources: dict[Any, _Source] = {}
        self._watched: tuple[_Source, ...] = ()
        self._lock = ForkSafeLock()

    def of(self, program: Program, instruction: Instruction) -> Sequence[Prepare | None]:
        """For each operand of an instruction what makes arrays of it; None for one that comes new with each run."""
        return [self._preparing(program, index) for index in instruction.inputs]

    def _preparing(self, program: Program, index: int) -> Prepare | None:
        base = program.slots[program.slots[index].base]
        if base.spec.sparse or base.kind not in (HELD, FOLDED):
            return None
        return partial(self._prepare, program.folded if base.kind == FOLDED else base.variable, index)

    def _prepare(self, variable: Any, index: int, operand: Any, name: str, shape: Shape, dtype: DType, make: Make) -> Any:
        with self._lock:
            source = self._sources.get(variable)
            if source is None:
                source = self._sources[variable] = _Source(variable)
                self._watched = tuple(self._sources.values())
            key = index, name, shape, dtype
            if key not in source.made:
                made = source.made[key] = _Made(self._backend.empty(shape, dtype), operand, make)
                made.make(made.array, made.operand)
        return source.made[key].array

    def refresh(self) -> None:
        """Make anew what was made of operands that have changed since."""
        for source in self._watched:
            if source.variable.changes != source.seen or source.variable.is_volatile:
                self._make_anew(source)

    def _make_anew(self, source: _Source) -> None:
        with self._lock:
            seen = source.variable.changes
            for made in source.made.values():
                made.make(made.array, made.operand)
            source.seen = seen
