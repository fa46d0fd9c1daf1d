"""Chains of element-wise instructions at work: calls for all rows, repeated for blocks of rows that fit into the cache.

Results that only the members of a chain need have memory for one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.thresholds import thresholds
from ..types.context import Context, StepContext
from ..types.layout import Layout

if TYPE_CHECKING:
    from ..extension.backend import Backend
    from ..program.chains import Chain
    from .binding import Binding, Step
    from .sizes import Sizes


def rows_of_block(chain: Chain, sizes: Sizes, backend: Backend) -> int | None:
    """How many rows of a chain to do at a time; None where the arrays are small."""
    if not chain.has_blocks or backend.block_bytes is None:
        return None
    results = [instruction.outputs[0] for instruction in chain.members]
    layout, nbytes = sizes.layouts[results[0]], max(backend.nbytes(sizes.shapes[i], sizes.specs[i].dtype) for i in results)
    count = 0 if layout is None else max(1, layout.rows * backend.block_bytes // max(nbytes, 1))
    return count if layout is not None and nbytes >= thresholds.blocks_of_rows and count < layout.rows else None


def in_blocks(binding: Binding, chain: Chain, steps: Iterable[Step]) -> Iterator[Step]:
    """The calls of a chain for the first block of rows, for the second, and so on."""
    count, layout = binding.block_rows[chain], binding.layouts[chain.members[0].outputs[0]]
    assert layout is not None
    rows, calls = _Rows(binding, layout.rows), list(steps)
    for first in range(0, layout.rows, count):
        last = min(first + count, layout.rows)
        for method, arguments, node, op, _ in calls:
            cut = rows.of(arguments, first, last)
            yield method, cut, node, op, cut


class _Rows:
    """Cuts rows out of the arguments of calls for *count* rows."""

    def __init__(self, binding: Binding, count: int) -> None:
        self._count = count
        self._whole = {id(array) for array, layout in zip(binding.arrays, binding.layouts, strict=True) if layout is None}
        self._contexts: dict[tuple[int, int], Context] = {}

    def of(self, argument: Any, first: int, last: int) -> Any:
        """The argument for some rows: parts of arrays, a context of their number, and what has no rows as it is."""
        if isinstance(argument, (tuple, list)):
            return tuple(self.of(item, first, last) for item in argument)
        if isinstance(argument, Context):
            return self._context(argument, last - first)
        if not hasattr(argument, "nbytes") or id(argument) in self._whole:
            return argument
        return argument[first:last] if len(argument) == self._count else argument[: last - first]

    def _context(self, whole: Context, count: int) -> Context:
        key = id(whole), count
        if key not in self._contexts:
            self._contexts[key] = StepContext.for_rows(whole, Layout(count, np.ones(count, np.intp)))
        return self._contexts[key]
