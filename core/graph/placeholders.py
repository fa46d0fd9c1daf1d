"""Which primitives still depend on placeholders: noted in the primitives, so that closing one recurrence does not walk over all others.

Each primitive knows the latest placeholder behind it, or a later one, as of the last walk over it; one that is to be bound is looked
for only behind primitives whose latest is as late.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .graph import primitives_of
from .variable import Literal, Output, Placeholder, Variable

if TYPE_CHECKING:
    from .nodes import Primitive

_era = 0
"""Counts bindings that brought in placeholders later than those they bound, which invalidate what primitives have noted."""


def latest_behind(variable: Variable) -> float:
    """The number of the latest placeholder behind a variable: 0 for none, infinity where that or a type is not known."""
    if isinstance(variable, Output):
        era, latest = variable.owner.latest_placeholder
        return latest if era == _era else math.inf
    if isinstance(variable, Placeholder):
        return variable.number
    return 0 if isinstance(variable, Literal) or variable.spec.is_known else math.inf


def open_primitives(root: Primitive, since: float = 1) -> list[Primitive]:
    """The primitives behind *root* that may depend on placeholders made *since*, each after those it needs; all know their latest then."""
    order = primitives_of([root], stop=lambda variable: latest_behind(variable) < since)
    among = set(order)
    from_outside = {
        node: max((latest_behind(v) for v in node.inputs if not isinstance(v, Output) or v.owner not in among), default=0) for node in order
    }
    readers = _readers(order)
    known: set[Primitive] = set()
    for start in sorted(order, key=from_outside.__getitem__, reverse=True):
        for node in _reached([start], readers, known):
            node.latest_placeholder = _era, from_outside[start]
    return order


def depending_on(order: Iterable[Primitive], changed: Iterable[Primitive]) -> set[Primitive]:
    """Those primitives that have *changed*, and all of *order* that depend on them."""
    return set(_reached(changed, _readers(order), set()))


def note_bound(replacements: Mapping[Variable, Variable]) -> None:
    """Invalidate what primitives have noted, if later placeholders have come behind primitives that depended on earlier ones."""
    global _era
    if any(latest_behind(new) > latest_behind(old) for old, new in replacements.items()):
        _era += 1


def _readers(order: Iterable[Primitive]) -> dict[Primitive, list[Primitive]]:
    readers: dict[Primitive, list[Primitive]] = defaultdict(list)
    for node in order:
        for variable in node.inputs:
            if isinstance(variable, Output):
                readers[variable.owner].append(node)
    return readers


def _reached(starts: Iterable[Primitive], readers: Mapping[Primitive, list[Primitive]], seen: set[Primitive]) -> list[Primitive]:
    """The starts, and all that read them, that have not been *seen*; adds them to *seen*."""
    found = [node for node in starts if node not in seen]
    seen.update(found)
    for node in found:
        fresh = [reader for reader in dict.fromkeys(readers[node]) if reader not in seen]
        seen.update(fresh)
        found.extend(fresh)
    return found
