"""Scans of packed sequences: which rows a recurrence computes at once, and where their states come from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.types.layout import Layout


class Step(NamedTuple):
    """Rows computed at once.  The first *carried* of them go on from the rows *before*; the others begin a sequence."""

    rows: slice
    carried: int
    before: slice


class Scan:
    """A scan of all steps of a minibatch's sequences, from first to last or, *backwards*, from last to first.

    Attributes:
        steps: the steps in the order of the scan.
    """

    def __init__(self, layout: Layout, backwards: bool = False) -> None:
        self.backwards = backwards
        self.steps = _backwards(layout) if backwards else _forwards(layout)
        self._begins = int(layout.alive[0])
        later = np.arange(self._begins, layout.rows)
        step = layout.step_of_row[later]
        self._earlier = later - layout.offsets[step] + layout.offsets[step - 1]

    def carry(self, xp: Any, states: Any, out: Any) -> None:
        """Write to each row of *out* the state that it goes on from, of all rows' *states*; 0 where a sequence begins."""
        out.fill(0)
        earlier = xp.asarray(self._earlier)
        if self.backwards:
            out[earlier] = states[self._begins :]
        else:
            xp.take(states, earlier, axis=0, out=out[self._begins :], mode="clip")


def of_sequences(layout: Layout | None) -> Layout:
    """The layout of an operand with dynamic axes; samples without a sequence axis are sequences of one step."""
    assert layout is not None
    return layout if layout.is_sequence else Layout(layout.samples, np.ones(layout.samples, np.intp))


def _forwards(layout: Layout) -> list[Step]:
    starts, alive = layout.offsets.tolist(), layout.alive.tolist()
    steps = [Step(slice(0, alive[0]), 0, slice(0, 0))]
    for step in range(1, len(alive)):
        begin, before, count = starts[step], starts[step - 1], alive[step]
        steps.append(Step(slice(begin, begin + count), count, slice(before, before + count)))
    return steps


def _backwards(layout: Layout) -> list[Step]:
    starts, alive = layout.offsets.tolist(), [*layout.alive.tolist(), 0]
    steps = []
    for step in range(len(alive) - 2, -1, -1):
        later, count = starts[step + 1], alive[step + 1]
        steps.append(Step(slice(starts[step], later), count, slice(later, later + count)))
    return steps
