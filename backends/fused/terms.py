"""Products with the sums that follow them: what is added to a product is added while it is in registers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from . import opcodes as op
from .lines import NOTHING, Line, Rows


def with_terms(lines: Sequence[Line], passing: Collection[int]) -> list[Line]:
    """The lines, with one in place of a product and the sum that alone reads it.

    Args:
        lines: the lines of a tape.
        passing: addresses of arrays of which a step's rows are read in that step only.
    """
    merged: list[Line] = []
    for line in lines:
        before = merged[-1] if merged else None
        if before is not None and before.kind == op.PRODUCT and before.term == NOTHING and before.z.address in passing:
            term = _term(line, before.z)
            if term is not None and _is_only_reader(line, before, lines) and not _overlap(line.z, before.x, line):
                merged[-1] = before._replace(z=line.z, term=term)
                continue
        merged.append(line)
    return merged


def _term(line: Line, product: Rows) -> Rows | None:
    """What a line adds to a product, if that is all it does."""
    if line.kind == op.ADD_TO and line.back == 0 and line.x == product != line.z:
        return line.z
    if line.kind == op.ADD and product in (line.x, line.y) and line.x != line.y:
        return line.y if line.x == product else line.x
    return None


def _is_only_reader(line: Line, product: Line, lines: Sequence[Line]) -> bool:
    readers = [one for one in lines for rows in (one.x, one.y) if rows.size and _overlap(rows, product.z, one)]
    return len(readers) == 1 and readers[0] is line


def _overlap(one: Rows, other: Rows, line: Line) -> bool:
    """Whether operands share memory, where a line has as many rows of them."""
    (begin, end), (start, stop) = (_extent(rows, line) for rows in (one, other))
    return begin < stop and start < end


def _extent(rows: Rows, line: Line) -> tuple[int, int]:
    """The addresses of the first byte and of the one behind the last."""
    return rows.address, rows.address + max(line.rows - 1, 0) * rows.stride + rows.size * line.dtype.itemsize
