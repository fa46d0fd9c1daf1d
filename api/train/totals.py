"""Sums over a minibatch, of training and of tests."""

from __future__ import annotations

from typing import Any

from cntk.core.common.dtypes import computing_type
from cntk.core.extension.backend import Asynchronous
from cntk.core.graph.variable import Variable
from cntk.core.program.program import Program
from cntk.core.run.workspace import Run


class Total:
    """Adds up the values of a root of a program, and counts the samples that it has values for.

    Args:
        program: computes it.
        root: the root.
    """

    def __init__(self, program: Program, root: Variable) -> None:
        self._root, self._slot, self._dtype = root, program.root_slots[root], computing_type(root.dtype)
        self._add_up = program.backend.xp.add.reduce
        self._later = program.backend.later if isinstance(program.backend, Asynchronous) else None
        program.totals[self._slot] = self._dtype

    def array(self, run: Run) -> Any:
        """The sum over the minibatch of a run, on its device."""
        total = run.binding.totals.get(self._slot)
        return self._add_up(run.binding.arrays[self._slot], None, self._dtype) if total is None else total

    def of(self, run: Run) -> float:
        """The sum over the minibatch of a run."""
        total = self.array(run)
        return float(total) if self._later is None else self._later(total)()[0]

    def samples(self, run: Run) -> int:
        """How many samples, or steps of sequences, these are; without dynamic axes the most that an input has."""
        layout = run.binding.sizes.layouts[self._slot]
        return run.count(self._root) if layout is None else layout.rows
