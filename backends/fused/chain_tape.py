"""The machine that runs chains: element-wise operations as a table of numbers, which one compiled function goes through.

Rows lie along up to three axes.  Each group of them goes through all operations, so that results stay in the processor's cache.  Groups
are divided into parts, whose number does not depend on the number of threads; sums over rows are computed for each part.
"""

from __future__ import annotations

from typing import Any

from ...core.machine.language import jittable, prange, slot
from ...core.machine.loops import loop
from . import opcodes as op
from .chain_elements import compute_any


@loop("q (4) (2) (2) I2 R1", takes_long=True)
def run(parts: int, extents: tuple[int, ...], lines: tuple[int, int], groups: tuple[int, int], tape: Any, like: Any) -> None:
    """Run a tape.

    Args:
        parts: how many parts the groups are divided into.
        extents: how many rows there are along each of three axes, and how many rows of the last one are a group.
        lines: the operations to run: the first, and the one behind the last.
        groups: the groups to run.
        tape: the operations.
        like: an array of the common element type.
    """
    chunks = (extents[2] + extents[3] - 1) // extents[3]
    total = extents[0] * extents[1] * chunks
    thread = slot()
    for part in prange(parts):
        for group in range(max(total * part // parts, groups[0]), min(total * (part + 1) // parts, groups[1])):
            row = group % chunks * extents[3]
            rows = min(extents[3], extents[2] - row)
            middle, outer = group // chunks % extents[1], group // chunks // extents[1]
            for line in range(lines[0], lines[1]):
                _operate(tape, line, (outer, middle, row, thread, part), rows, like)


@jittable
def _operate(tape: Any, line: int, at: Any, rows: int, like: Any) -> None:
    """Run an operation for the rows of a group."""
    z, x, y = _address(tape, line, op.Z_AT, at), _address(tape, line, op.X_AT, at), _address(tape, line, op.Y_AT, at)
    z_stride, x_stride = tape[line, op.Z_AT + op.STRIDE], tape[line, op.X_AT + op.STRIDE]
    y_stride, size = tape[line, op.Y_AT + op.STRIDE], tape[line, op.SIZE]
    if tape[line, op.JOINED] != 0:
        rows, size = 1, rows * size
    compute_any(tape[line, op.KIND], (rows, size, z, z_stride, x, x_stride, y, y_stride), like)


@jittable
def _address(tape: Any, line: int, begin: int, at: Any) -> int:
    outer, middle, row, thread, part = at
    address = tape[line, begin + op.PLACE] + outer * tape[line, begin + op.OUTER] + middle * tape[line, begin + op.MIDDLE]
    address += row * tape[line, begin + op.ROW] + thread * tape[line, begin + op.THREAD] + part * tape[line, begin + op.PART]
    return address
