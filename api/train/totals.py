"""Sums over a minibatch, of training and of tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cntk.core.common.dtypes import computing_type
from cntk.core.extension.backend import Asynchronous
from cntk.core.graph.variable import Variable
from cntk.core.program.program import Program
from cntk.core.run.workspace import Run
from cntk.core.values.minibatch import Sum


class Total:
    """Adds up the values of a root of a program, and counts the samples that it has values for.

    Args:
        program: computes it.
        root: the root.
    """

    def __init__(self, program: Program, root: Variable) -> None:
        self._root, self._slot, self._dtype = root, program.root_slots[root], computing_type(root.dtype)
        self._add_up = program.backend.xp.add.reduce
        self._later: Callable[[Any], Sum] | None = program.backend.later if isinstance(program.backend, Asynchronous) else None
        program.totals[self._slot] = self._dtype

    def begin(self, run: Run) -> Sum:
        """The sum over the minibatch of a run, or what waits for it where a device is at work on it."""
        slot, binding = self._slot, run.binding
        if self._later is None:
            return float(self._add_up(binding.arrays[slot], None, self._dtype))
        total = binding.totals.get(slot)
        return self._later(self._add_up(binding.arrays[slot], None, self._dtype) if total is None else total)

    def of(self, run: Run) -> float:
        """The sum over the minibatch of a run."""
        found = self.begin(run)
        return found() if callable(found) else found

    def samples(self, run: Run) -> int:
        """How many samples, or steps of sequences, these are; without dynamic axes the most that an input has."""
        layout = run.binding.sizes.layouts[self._slot]
        return run.count(self._root) if layout is None else layout.rows
