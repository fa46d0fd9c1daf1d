"""Arrays in views: statistics and first numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cntk.views.view import table

MOST = 2**24
"""Numbers that statistics are computed of; of larger arrays each so manieth is taken."""
ROWS = 6
COLUMNS = 8

STATISTICS = ("mean", "deviation", "smallest", "largest", "not finite")


def statistics(array: Any) -> tuple[Any, ...]:
    """Mean, standard deviation, smallest and largest of the finite numbers, and how many are not finite.

    Args:
        array: an array of any shape and real element type. Of one with more than 2**24 numbers only some are looked at.
    """
    flat = np.asarray(array).reshape(-1)
    flat = flat[:: -(-flat.size // MOST) or 1].astype(np.float64)
    finite = flat[np.isfinite(flat)]
    if not finite.size:
        return "", "", "", "", int(flat.size)
    return float(finite.mean()), float(finite.std()), float(finite.min()), float(finite.max()), int(flat.size - finite.size)


def few(array: Any) -> str:
    """An array as NumPy prints it, cut in the middle of each axis."""
    return np.array2string(np.asarray(array), threshold=60, edgeitems=3, precision=5, max_line_width=100)


def first_rows(array: Any, row: str = "") -> str:
    """HTML of the first numbers of a dense array, a row for each element of its first axis.

    Args:
        array: the array.
        row: what an element of the first axis is, such as ``"sample"``.
    """
    array = np.asarray(array)
    if array.ndim < 2:
        return _rows([("", array.reshape(-1))], 0)
    return _rows([(f"{row} {i:,}".strip(), held) for i, held in enumerate(array[:ROWS])], len(array) - ROWS)


def first_sequences(array: Any, lengths: Sequence[int]) -> str:
    """HTML of the first numbers of sequences, whose steps are along the second axis and have no padding in the table.

    Args:
        array: sequences, padded to one length.
        lengths: steps of each.
    """
    sequences = zip(lengths[:ROWS], array, strict=False)
    return _rows([(f"sequence {i:,}, {steps:,} steps", held[:steps]) for i, (steps, held) in enumerate(sequences)], len(lengths) - ROWS)


def first_entries(matrix: Any) -> str:
    """HTML of the first entries of a CSR matrix, as ``column: number``."""
    rows = []
    for i in range(min(matrix.shape[0], ROWS)):
        begin, end = matrix.indptr[i], matrix.indptr[i + 1]
        places = range(begin, min(end, begin + COLUMNS))
        rows.append((f"row {i:,}", *(f"{matrix.indices[k]}: {_shown(matrix.data[k])}" for k in places), *_more(end - begin - COLUMNS)))
    return _table(rows, matrix.shape[0] - ROWS)


def _rows(rows: Sequence[tuple[str, Any]], left_out: int) -> str:
    cells = [(name, *map(_shown, held.reshape(-1)[:COLUMNS]), *_more(held.size - COLUMNS)) for name, held in rows]
    return _table(cells, left_out)


def _table(rows: Sequence[Sequence[str]], left_out: int) -> str:
    width = max(map(len, rows), default=1)
    even = [[*row, *[""] * (width - len(row))] for row in [*rows, *([_more(left_out)] if left_out > 0 else [])]]
    return table("", [""] * width, even, most=ROWS + 1)


def _more(left_out: int) -> list[str]:
    return [f"… {left_out:,} more"] if left_out > 0 else []


def _shown(number: Any) -> str:
    return f"{float(number):.5g}"
