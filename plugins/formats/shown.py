"""Attributes of functions as CNTK's Python shows them: as files keep them, with flags in the order of Python's axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.graph.nodes import Primitive
from ..ops.extremum import ArgMax, ArgMin
from .attributes import DYNAMIC, WORDS
from .expansions import EXPANSIONS, REDUCTIONS
from .opcodes import BLOCK
from .operators import row_for
from .row import Row
from .wire import FileAxis

_FLAGS = ("autoPadding", "sharing")
_BLOCKS = tuple(cls for cls in REDUCTIONS if cls not in (ArgMax, ArgMin))
"""Operators of files that CNTK's Python shows as blocks."""


def shown_attributes(node: Primitive) -> dict[str, Any]:
    """The value of ``Function.attributes`` for a node.

    Values are plain; an axis is ``('ordered', 'static', 0)``, static ones counted from the last, or ``('ordered', 'dynamic', 'name')``.
    Operators that CNTK does not have show their own attributes as they are.
    """
    row = None if isinstance(node.op, _BLOCKS) else row_for(node)
    if row is None:
        expansion = EXPANSIONS.get(type(node.op))
        if expansion is None or not expansion.kinds:
            return node.op.attributes
        row = Row(BLOCK, type(node.op), expansion.kinds, names=expansion.names)
    found = row.write(node)
    if isinstance(node.op, _BLOCKS):
        found["reductionOpName"] = node.op.reduction_op_name
    return {name: _plain(value[::-1] if name in _FLAGS else value) for name, value in found.items() if name != WORDS}


def _plain(value: Any) -> Any:
    if isinstance(value, FileAxis):
        order = "ordered" if value.ordered else "unordered"
        return (order, "dynamic", value.name) if value.number == DYNAMIC else (order, "static", value.number)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value] if isinstance(value, list) else tuple(value)
    return value
