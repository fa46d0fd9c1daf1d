"""Stacks of recurrent layers on NumPy arrays: the steps of each layer in one compiled call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import is_half
from ...core.run.memory import padded_rows
from ...core.types.context import Context
from . import recurrence
from .cells import STEPS
from .lines import Writer


class OptimizedRNNStackKernel:
    """``optimized_rnnstack`` with its steps on tapes, where there is enough to multiply."""

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any, weights: Any) -> None:
        op.forward(ctx, out, x, weights, _steps_for(op, ctx, out))

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any, weights: Any) -> None:
        op.backward(ctx, grad, grads, out, x, weights, _steps_for(op, ctx, out))


def _steps_for(op: Any, ctx: Context, out: Any) -> Steps | None:
    layout = ctx.layouts[0]
    if layout is None or not layout.is_sequence or is_half(out.dtype):
        return None
    return Steps(op.recurrent_op, ctx, layout)


class Steps:
    """Computes the steps of a cell.

    Args:
        kind: of cell.
        ctx, layout: surroundings of the stack, and how its rows lie.
    """

    def __init__(self, kind: str, ctx: Context, layout: Any) -> None:
        self._steps, self._ctx, self._offsets = STEPS[kind], ctx, layout.offsets

    def suit(self, cell: Any) -> bool:
        """Whether there is enough to multiply."""
        return recurrence.is_worthwhile(padded_rows(cell.rows) * cell.of_h.size)

    def forward(self, cell: Any) -> None:
        """Compute all states."""
        self._run(cell, 0, not cell.scan.backwards)

    def backward(self, cell: Any) -> None:
        """Compute the gradients of all gates and states."""
        self._run(cell, 1, cell.scan.backwards)

    def _run(self, cell: Any, direction: int, rising: bool) -> None:
        back = -1 if cell.scan.backwards else 1
        tape = recurrence.Tape(list(self._steps[direction](Writer(lambda array: False), cell, back)))
        passing = [cell.work] if direction else [cell.work, cell.products]
        tape.place(self._ctx.scratch("tape", (tape.memory_needed(passing, cell.widest),), np.uint8), passing, cell.widest)
        tape.begin()
        tape.run(self._offsets, 0, len(self._offsets) - 1, rising)
