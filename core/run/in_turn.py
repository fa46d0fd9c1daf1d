"""Bound loops that follow one another, in a single call: what Python does between them takes as long as the smallest ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..program.chains import CallOfSeveral

if TYPE_CHECKING:
    from ..graph.nodes import Primitive
    from ..machine.loops import Native
    from .binding import Schedule, Step


class InTurn(CallOfSeveral):
    """The single call of bound loops.

    Args:
        steps: the calls of the loops.
        run: calls them in machine code, and tells the number of the loop that has failed.
        natives: the loops, with the step that each belongs to.

    Attributes:
        at_fault: the function of the graph whose loop has failed last; the first one where none has.
    """

    def __init__(self, steps: Sequence[Step], run: Callable[[], int], natives: Sequence[tuple[Step, Native]]) -> None:
        self._steps, self._run, self._natives = steps, run, natives
        self.at_fault: Primitive = steps[0][2]

    def __call__(self) -> None:
        number = self._run()
        if number >= 0:
            step, native = self._natives[number]
            self.at_fault = step[2]
            raise native.failure()

    def single_steps(self) -> Iterator[Step]:
        yield from self._steps


def in_turn(steps: Iterable[Step | Schedule]) -> list[Step | Schedule]:
    """The steps, with one call in place of bound loops that follow one another."""
    joined: list[Step | Schedule] = []
    for is_native, group in groupby(steps, _is_native):
        together = list(group)
        joined += _joined(together) if is_native and len(together) > 1 else together  # type: ignore[arg-type]
    return joined


def _is_native(step: Any) -> bool:
    return isinstance(step, tuple) and hasattr(step[0], "natives")


def _joined(steps: Sequence[Step]) -> Sequence[Step]:
    from ..machine import in_turn  # needs LLVM, which is there where loops have been bound

    natives = [(step, native) for step in steps for native in step[0].natives]  # type: ignore[attr-defined]
    run = in_turn.in_turn([native for _, native in natives])
    return steps if run is None else [(InTurn(steps, run, natives), (), steps[0][2], None, ())]
