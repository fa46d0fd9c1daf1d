"""The steps of the cells of recurrent layers, as lines of a tape.

Each function takes the writer of lines, the cell, and how many steps back the previous state is: −1 in a layer that goes backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import opcodes as op
from .lines import Line, Writer

Steps = Callable[[Writer, Any, int], Iterator[Line]]


def _product(w: Writer, cell: Any, back: int) -> Iterator[Line]:
    """The product with the previous state."""
    yield w.copy(cell.earlier, cell.h)._replace(back=back)
    yield w.product(cell.products, cell.earlier, cell.of_h.T)


def _activation(kind: int) -> Steps:
    def forward(w: Writer, cell: Any, back: int) -> Iterator[Line]:
        yield from _product(w, cell, back)
        yield w.copy(cell.gates, cell.products, op.ADD_TO)
        yield w.line(kind, cell.h, cell.gates)

    return forward


def _lstm(w: Writer, cell: Any, back: int) -> Iterator[Line]:
    i, f, g, o = (cell.part(cell.gates, gate) for gate in range(4))
    yield from _product(w, cell, back)
    yield w.copy(cell.gates, cell.products, op.ADD_TO)
    for gate, kind in ((cell.part(cell.gates, 0, 2), op.SIGMOID), (g, op.TANH), (o, op.SIGMOID)):
        yield w.line(kind, gate, gate)
    yield w.copy(cell.cells_earlier, cell.cells)._replace(back=back)
    yield w.line(op.MULTIPLY, cell.cells, i, g)
    yield w.line(op.MULTIPLY, cell.work, f, cell.cells_earlier)
    yield w.copy(cell.cells, cell.work, op.ADD_TO)
    yield w.line(op.TANH, cell.work, cell.cells)
    yield w.line(op.MULTIPLY, cell.h, cell.work, o)


def _gru(w: Writer, cell: Any, back: int) -> Iterator[Line]:
    both, r, z, n = cell.part(cell.gates, 0, 2), *(cell.part(cell.gates, gate) for gate in range(3))
    yield from _product(w, cell, back)
    yield w.copy(both, cell.part(cell.products, 0, 2), op.ADD_TO)
    yield w.copy(cell.inner, cell.part(cell.products, 2), op.ADD_TO)
    yield w.line(op.SIGMOID, both, both)
    yield w.line(op.MULTIPLY, cell.work, r, cell.inner)
    yield w.copy(n, cell.work, op.ADD_TO)
    yield w.line(op.TANH, n, n)
    yield w.line(op.SUBTRACT, cell.work, cell.earlier, n)
    yield w.line(op.MULTIPLY, cell.work, cell.work, z)
    yield w.line(op.ADD, cell.h, cell.work, n)


def _product_back(w: Writer, cell: Any, back: int) -> Iterator[Line]:
    """The gradient of the previous state from the gates."""
    yield w.product(cell.work, cell.dgates, cell.of_h)
    yield w.copy(cell.dh, cell.work, op.ADD_TO)._replace(back=back)


def _gates_back(w: Writer, cell: Any, back: int) -> Iterator[Line]:
    for gate in range(cell.vectors):
        slope = cell.part(cell.dgates, gate)
        yield w.line(op.MULTIPLY, slope, slope, cell.dh)
    yield from _product_back(w, cell, back)


def _lstm_back(w: Writer, cell: Any, back: int) -> Iterator[Line]:
    yield w.line(op.MULTIPLY, cell.work, cell.dh, cell.through)
    yield w.copy(cell.dcells, cell.work, op.ADD_TO)
    for gate, of in enumerate((cell.dcells, cell.dcells, cell.dcells, cell.dh)):
        slope = cell.part(cell.dgates, gate)
        yield w.line(op.MULTIPLY, slope, slope, of)
    yield w.line(op.MULTIPLY, cell.work, cell.dcells, cell.part(cell.gates, 1))
    yield w.copy(cell.dcells, cell.work, op.ADD_TO)._replace(back=back)
    yield from _product_back(w, cell, back)


def _gru_back(w: Writer, cell: Any, back: int) -> Iterator[Line]:
    yield w.line(op.MULTIPLY, cell.work, cell.dh, cell.part(cell.gates, 1))
    yield w.copy(cell.dh, cell.work, op.ADD_TO)._replace(back=back)
    yield from _gates_back(w, cell, back)


STEPS: dict[str, tuple[Steps, Steps]] = {
    "lstm": (_lstm, _lstm_back),
    "gru": (_gru, _gru_back),
    "rnnTanh": (_activation(op.TANH), _gates_back),
    "rnnReLU": (_activation(op.RELU), _gates_back),
}
"""The steps of each kind of cell, and those back."""
