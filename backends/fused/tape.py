"""The machine that runs tapes: a recurrence's operations as a table of numbers, which one compiled function goes through.

A row of the table is an operation on the rows of a step (:mod:`~cntk.backends.fused.opcodes`).  Between two products a row of values goes
through all operations while it is in the processor's cache.  Sequences are independent, so each thread takes some of them
through all steps and never waits.  Results do not depend on how sequences are divided.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import carray, copy_bytes, jittable, prange, share
from ...core.machine.loops import loop
from ...core.machine.pool import helpers_of as helpers_of
from ...core.types.context import Context
from . import opcodes as op
from .elements import compute
from .tile import MOST_ROWS, PANEL_BYTES, PANELS, panels_at_once, panels_tile, pointer

AT_ONCE = 4096
"""Elements of a value that go through operations together: as many as lie in the nearer caches with all other values."""

PACKED_AT_ONCE = 16
"""Rows of a matrix that are packed together."""

PACKED_SHARED = 2**18
"""Elements from which on threads share the packing of matrices; fewer are copied before a thread that has slept is awake."""

LINE, FIRST, LAST, BEGIN = range(4)
"""What is told of a product whose columns threads share: its line of the tape, its first row and the one behind the last, and the step's
first row."""

FROM, ROW_STRIDE, COLUMN_STRIDE, ROWS, COLUMNS, TO, PANEL_STRIDE = range(7)
"""Columns of a table of blocks: where a part of a matrix is, its strides and size, where it goes in a panel, and how far it is to the
next."""


def packed_bytes(matrix: Any) -> int:
    """Memory that a matrix takes once it is packed."""
    return -(-matrix.shape[1] * matrix.itemsize // PANEL_BYTES) * len(matrix) * PANEL_BYTES


def blocks_of(matrix: Any, address: int) -> Any:
    """The table of the blocks of a matrix that is packed at an address, small enough to be read from cache."""
    rows, columns = matrix.shape
    panel, width = rows * PANEL_BYTES, PANEL_BYTES // matrix.itemsize
    table = []
    if matrix.strides[1] == matrix.itemsize:
        parts = [(matrix[row : row + PACKED_AT_ONCE], address + row * PANEL_BYTES) for row in range(0, rows, PACKED_AT_ONCE)]
    else:
        parts = [(matrix[:, column : column + width], address + column // width * panel) for column in range(0, columns, width)]
    for part, to in parts:
        table.append((part.ctypes.data, *part.strides, *part.shape, to, panel))
    return np.array(table, np.intp)


def panels(ctx: Context, operand: int, matrix: Any) -> Any:
    """A packed matrix that seldom changes, an array; None if it is another in each run.

    Args:
        operand: which of the operator's operands it is.
    """
    size = packed_bytes(matrix) // matrix.itemsize
    return ctx.prepared(operand, matrix, f"panels of steps {matrix.strides}", (size,), matrix.dtype, _fill)


def _fill(target: Any, matrix: Any) -> None:
    pack.run(matrix.size >= PACKED_SHARED, blocks_of(matrix, target.ctypes.data), target[:0])


@loop("I2 R1")
def pack(blocks: Any, like: Any) -> None:
    """Copy matrices to where products read them: panel by panel, each with its rows one after another and filled up with zeros."""
    width = PANEL_BYTES // like.itemsize
    for number in prange(len(blocks)):
        rows, row_stride, column_stride = blocks[number, ROWS], blocks[number, ROW_STRIDE], blocks[number, COLUMN_STRIDE]
        for first in range(0, blocks[number, COLUMNS], width):
            place = blocks[number, TO] + first // width * blocks[number, PANEL_STRIDE]
            start, known = blocks[number, FROM] + first * column_stride, min(width, blocks[number, COLUMNS] - first)
            if column_stride == like.itemsize and known == width:
                for row in range(rows):
                    copy_bytes(place + row * PANEL_BYTES, start + row * row_stride, PANEL_BYTES)
                continue
            to = carray(pointer(place, like), rows * width)
            for row in range(rows):
                for column in range(width):
                    element = start + row * row_stride + column * column_stride
                    to[row * width + column] = carray(pointer(element, like), 1)[0] if column < known else 0


@loop("q I2 I1 q q ? I1 (5) R1", takes_long=True)
def run(
    parts: int, tape: Any, offsets: Any, begin: int, end: int, rising: bool, product: Any, sharing: Any, like: Any
) -> None:  # fmt: skip
    """Run a tape for the rows of some steps.

    Args:
        parts: how many parts the sequences are divided into.
        tape: the operations.
        offsets: first row of each of all steps, and the number of rows.
        begin, end: the steps to run.
        rising: whether they come in the order of time.
        product: where :func:`multiply_columns` is told of the product.
        sharing: the address of that function's code and of its arguments, how many helpers there are, from how many multiplications on they
            share a product, and from how many those do that look for work anyway.
        like: an array of the common element type.
    """
    for part in prange(parts):
        low, high = _cut(part, parts, offsets, begin, end), _cut(part + 1, parts, offsets, begin, end)
        _run(tape, offsets, begin, end, rising, low, high, product, sharing, like)


@loop("I2 I1 R1", takes_long=True)
def multiply_columns(tape: Any, product: Any, like: Any) -> None:
    """Run a product of a tape; threads share the columns.

    Args:
        tape: the operations.
        product: tells which, and for what rows.
        like: an array of the common element type.
    """
    line, first, last = product[LINE], product[FIRST], product[LAST]
    size, group = tape[line, op.SIZE], _columns_at_once(last - first, like)
    for number in prange((size + group - 1) // group):
        _multiply(tape, line, first, last, product[BEGIN], number * group, min((number + 1) * group, size), like)


@jittable
def _cut(part: int, parts: int, offsets: Any, begin: int, end: int) -> int:
    """Where to cut the sequences so that each part has about as many rows: the first sequence whose middle would be in a part."""
    rows, sequence, step, wanted = 0, 0, end, 2 * (offsets[end] - offsets[begin]) * part
    while step > begin:
        if sequence < offsets[step] - offsets[step - 1]:
            length = step - begin
            if (2 * rows + length) * parts >= wanted:
                return sequence
            rows += length
            sequence += 1
        else:
            step -= 1
    return sequence


@jittable
def _run(
    tape: Any, offsets: Any, begin: int, end: int, rising: bool, low: int, high: int, product: Any, sharing: Any, like: Any
) -> None:  # fmt: skip
    code, arguments, helpers, least, offered = sharing
    largest = 1
    for line in range(len(tape)):
        largest = max(largest, tape[line, op.SIZE])
    at_once = max(1, AT_ONCE // largest)
    for number in range(end - begin):
        time = begin + number if rising else end - 1 - number
        first, last = offsets[time] + low, min(offsets[time] + high, offsets[time + 1])
        start = 0
        while start < len(tape) and first < last:
            stop = start
            while stop < len(tape) and tape[stop, op.KIND] != op.PRODUCT:
                stop += 1
            for row in range(first, last, at_once):
                for line in range(start, stop):
                    _operate(tape, line, row, min(at_once, last - row), time, offsets, like)
            if stop < len(tape):
                size = tape[stop, op.SIZE]
                multiplications = (last - first) * size * tape[stop, op.DEPTH]
                if helpers > 0 and multiplications >= offered:
                    product[LINE], product[FIRST], product[LAST], product[BEGIN] = stop, first, last, offsets[time]
                    share(code, arguments, helpers, multiplications < least)
                else:
                    _multiply(tape, stop, first, last, offsets[time], 0, size, like)
            start = stop + 1


@jittable
def _operate(tape: Any, line: int, row: int, rows: int, time: int, offsets: Any, like: Any) -> None:
    """Run an operation for rows of a step; a delay for those of sequences in which it does not look outside."""
    z_row = x_row = row
    if tape[line, op.BACK] != 0:
        source = time - tape[line, op.BACK]
        if source < 0 or source >= len(offsets) - 1:
            return
        other = offsets[source] + row - offsets[time]
        rows = min(rows, offsets[source + 1] - other)
        if tape[line, op.KIND] == op.COPY:
            x_row = other
        else:
            z_row = other
    z_stride, x_stride, y_stride = tape[line, op.Z_STRIDE], tape[line, op.X_STRIDE], tape[line, op.Y_STRIDE]
    z = tape[line, op.Z] + (z_row - tape[line, op.Z_PASSES] * offsets[time]) * z_stride
    x = tape[line, op.X] + (x_row - tape[line, op.X_PASSES] * offsets[time]) * x_stride
    y = tape[line, op.Y] + (row - tape[line, op.Y_PASSES] * offsets[time]) * y_stride
    size = tape[line, op.SIZE]
    nbytes = size * like.itemsize
    if z_stride == nbytes and x_stride == nbytes and (y_stride == nbytes or tape[line, op.Y] == 0):
        rows, size = 1, rows * size
    compute(tape[line, op.KIND], (rows, size, z, z_stride, x, x_stride, y, y_stride), like)


@jittable
def _columns_at_once(rows: int, like: Any) -> int:
    """Columns of the panels that so many rows, or the first block of them, are multiplied by at once."""
    return PANELS[rows // ((rows + MOST_ROWS - 1) // MOST_ROWS) - 1] * (PANEL_BYTES // like.itemsize)


@jittable
def _multiply(tape: Any, line: int, first: int, last: int, begin: int, begin_column: int, end_column: int, like: Any) -> None:
    """Run a product for rows: as many at a time as there are registers for, and some panels of the packed matrix after the others."""
    x = tape[line, op.X] + (first - tape[line, op.X_PASSES] * begin) * tape[line, op.X_STRIDE]
    z = tape[line, op.Z] + (first - tape[line, op.Z_PASSES] * begin) * tape[line, op.Z_STRIDE]
    term = tape[line, op.TERM] + (first - tape[line, op.TERM_PASSES] * begin) * tape[line, op.TERM_STRIDE]
    x_stride, z_stride, term_stride = tape[line, op.X_STRIDE], tape[line, op.Z_STRIDE], tape[line, op.TERM_STRIDE]
    adds, depth = tape[line, op.TERM] != 0, tape[line, op.DEPTH]
    width, panel_step = PANEL_BYTES // like.itemsize, depth * PANEL_BYTES
    blocks = (last - first + MOST_ROWS - 1) // MOST_ROWS
    group = _columns_at_once(last - first, like)
    for begin_of_group in range(begin_column, end_column, group):
        end_of_group = min(begin_of_group + group, end_column)
        for block in range(blocks):
            start, stop = (last - first) * block // blocks, (last - first) * (block + 1) // blocks
            column = begin_of_group
            while column < end_of_group:
                panels = panels_at_once(stop - start, end_of_group - column, width)
                known = min(panels * width, end_of_group - column)
                panel, behind = tape[line, op.Y] + column // width * panel_step, column * like.itemsize
                panels_tile(
                    adds, stop - start, panels, x + start * x_stride, x_stride, panel, panel_step, depth, known,
                    term + start * term_stride + behind, term_stride, z + start * z_stride + behind, z_stride, like,
                )  # fmt: skip
                column += panels * width
