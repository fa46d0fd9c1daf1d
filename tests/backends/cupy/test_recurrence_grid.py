"""How blocks share columns and sequences of a recurrence, and what they have in shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from standin import nvrtc
from standin.host_backend import array

import cntk as C
from cntk.backends.cupy import recurrence_text
from cntk.backends.cupy.compiler import OPTIONS
from cntk.backends.cupy.recurrence_grid import Grid, grid_for, grids_for
from cntk.backends.recurrences.operations import Formula, Operand, Operation, Product
from cntk.backends.recurrences.plan import Plan
from cntk.core.common.dtypes import is_half
from cntk.core.formulas.formula import operands, tanh

BLOCKS, MEMORY = 132, 232448
"""Multiprocessors of an H100, and bytes of shared memory that a block may have there."""

SMALLEST = 48 << 10
"""Bytes of shared memory that a block may have on any GPU."""


def rows(width: int, dtype: Any = np.float32) -> Operand:
    """Rows of their own."""
    data = array(np.zeros((2, width)), dtype)
    return Operand(data, data.data.ptr, width, width)


def cell(width: int, gates: int, dtype: Any = np.float32) -> Plan:
    """A recurrence with one product, of states and a matrix for some gates."""
    h, sums = rows(width, dtype), rows(gates * width, dtype)
    (symbol,) = operands(1)
    matrix = array(np.zeros((width, gates * width)), dtype)
    whole = Operand(matrix, matrix.data.ptr, 0, matrix.size)
    first = Operand(sums.array, sums.address, sums.stride, width)
    operations: tuple[Operation, ...] = Product(sums, h, whole, width, gates * width, 1), Formula(h, tanh(symbol), {symbol: first})
    return Plan(operations)


def launched(width: int, sequences: int, **given: Any) -> Grid:
    chosen = {"size": 4, "together": BLOCKS, "memory": MEMORY, "is_long": True, **given}
    return grid_for(cell(width, 3), sequences=sequences, **chosen)


def test_blocks_with_room_for_all_columns_wait_for_nobody() -> None:
    grid = launched(128, 64)
    assert (grid.blocks, grid.groups, grid.rows, grid.holds) == (1, 64, 1, True)


def test_blocks_share_the_columns_of_large_matrices() -> None:
    grid = launched(1024, 32)
    assert (grid.blocks, grid.groups, grid.holds) == (128, 1, True)
    assert not launched(4096, 32).holds


def test_columns_that_serve_one_step_are_brought_once_for_many_sequences() -> None:
    assert launched(128, 64, is_long=False).blocks > launched(128, 64).blocks


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("memory", [SMALLEST, MEMORY])
@pytest.mark.parametrize("together", [1, 3, BLOCKS])
@pytest.mark.parametrize("sequences", [1, 33, 1000])
@pytest.mark.parametrize("width", [1, 37, 2000])
def test_launches_are_possible(width: int, sequences: int, together: int, memory: int, size: int) -> None:
    found = grids_for(cell(width, 4), size, sequences, together, memory, True)
    assert found
    for grid in found:
        assert 0 < grid.blocks <= width
        assert 0 < grid.groups <= sequences
        assert grid.blocks * grid.groups <= together
        assert grid.shared <= memory
        assert all(grid.rows % each == 0 for each in grid.each)
        assert grid.holds == (grid.width == 0)


@pytest.mark.slow
@pytest.mark.skipif(bool(nvrtc.unavailable()), reason=nvrtc.unavailable())
@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("width", [1024, 4096])
def test_threads_with_many_rows_do_not_spill(width: int, dtype: Any) -> None:
    size = 4 if is_half(dtype) else np.dtype(dtype).itemsize
    plan = cell(width, 4, dtype)
    grid = grid_for(plan, size, 32, BLOCKS, MEMORY, True)
    assert max(grid.each) == 32 // size
    for report in nvrtc.reports(recurrence_text.text(dtype, plan, grid), OPTIONS):
        assert report.spills == 0, report.text
