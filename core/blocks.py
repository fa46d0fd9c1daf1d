"""Chains of element-wise instructions at work: calls for all rows, repeated for blocks of rows that fit into the cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .context import Context, StepContext
from .layout import Layout

if TYPE_CHECKING:
    from .binding import Binding, Step
    from .slots import Instruction

LARGE = 4 << 20
"""Bytes of an array from which blocks gain; smaller ones stay in cache as they are."""

BLOCK = 1 << 19
"""Bytes of an array in a block: less makes more calls, more leaves the cache."""


@dataclass(eq=False, slots=True)
class Chain:
    """Instructions that may run block by block, in the order in which they run."""

    members: list[Instruction]


def in_blocks(binding: Binding, chain: Chain, steps: Iterable[Step]) -> Iterator[Step]:
    """The calls of a chain: as they are for small arrays, else those for the first block of rows, for the second, and so on."""
    layout = binding.layouts[chain.members[0].outputs[0]]
    results = [binding.arrays[instruction.outputs[0]].nbytes for instruction in chain.members]
    if layout is None or max(results) < LARGE:
        yield from steps
        return
    count = max(1, layout.rows * BLOCK // max(results))
    rows = _Rows(binding)
    calls = list(steps)
    for first in range(0, layout.rows, count):
        last = min(first + count, layout.rows)
        for method, arguments, node in calls:
            yield method, rows.of(arguments, first, last), node


class _Rows:
    """Cuts rows out of the arguments of calls."""

    def __init__(self, binding: Binding) -> None:
        self._whole = {id(array) for array, layout in zip(binding.arrays, binding.layouts, strict=True) if layout is None}
        self._contexts: dict[tuple[int, int], Context] = {}

    def of(self, argument: Any, first: int, last: int) -> Any:
        """The argument for some rows: parts of arrays, a context of their number, and what has no rows as it is."""
        if isinstance(argument, (tuple, list)):
            return tuple(self.of(item, first, last) for item in argument)
        if isinstance(argument, Context):
            return self._context(argument, last - first)
        if hasattr(argument, "nbytes") and id(argument) not in self._whole:
            return argument[first:last]
        return argument

    def _context(self, whole: Context, count: int) -> Context:
        key = id(whole), count
        if key not in self._contexts:
            context = self._contexts[key] = StepContext(whole.backend, whole.training, whole._pool)
            context.layout = layout = Layout(count, np.ones(count, np.intp))
            context.layouts = [None if known is None else layout for known in whole.layouts]
        return self._contexts[key]
