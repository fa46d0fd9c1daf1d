"""Functions: a picture of the graph with layers folded, a table of layers and one of parameters; as text the summary."""

from __future__ import annotations

from cntk.core.common.shape import is_concrete, size_of
from cntk.core.graph.function import Function
from cntk.core.graph.variable import Parameter
from cntk.logging import svg
from cntk.logging.model_summary import layers_of, named_parameters, shown, summary, totals_of
from cntk.logging.picture import picture_of
from cntk.views.arrays import STATISTICS, statistics
from cntk.views.view import View, folded, note, page, table

BOXES = 60
"""Functions in the picture; one box stands for those that are left out."""
LINES = 60
"""Lines of the text."""
NUMBERS = 2**24
"""Of models with more numbers in parameters there are no statistics."""


def view(function: Function) -> View:
    """The view of a function."""
    picture, title = picture_of(function, BOXES), str(function)
    layers = layers_of(function, operations=False)
    rows = [(layer.path, layer.kind, layer.shape, layer.size) for layer in layers]
    parameters = named_parameters(function)
    parts = [
        f'<div style="overflow:auto;max-height:40em">{svg.draw(picture, title, ink="currentColor").decode()}</div>',
        table("", ("layer", "kind", "result", "parameters"), rows),
        *map(note, totals_of(function)),
    ]
    if parameters:
        parts.append(folded(f"{len(parameters):,} parameters", _table_of(parameters)))
    return View(_text(function, len(layers)), page(title, *parts), svg.draw(picture, title).decode())


def _table_of(parameters: dict[str, Parameter]) -> str:
    known = sum(size_of(p.shape) for p in parameters.values() if is_concrete(p.shape))
    if known > NUMBERS:
        return table(f"No statistics of {known:,} numbers", ("path", "shape"), [(path, shown(p.spec)) for path, p in parameters.items()])
    rows = []
    for path, p in parameters.items():
        is_known = is_concrete(p.shape) and p.dtype is not None
        rows.append((path, shown(p.spec), size_of(p.shape) if is_known else "", *(statistics(p.value) if is_known else [""] * 5)))
    return table("", ("path", "shape", "numbers", *STATISTICS), rows)


def _text(function: Function, layers: int) -> str:
    """The summary of what has layers, else the ``repr``."""
    if function.is_primitive or (layers < 2 and not function.root_function.is_block):
        return repr(function)
    lines = summary(function, operations=False).split("\n")
    if len(lines) > LINES:
        first, last = LINES * 3 // 4, LINES // 4
        lines = [*lines[:first], f"… {len(lines) - first - last:,} more lines; print(C.logging.summary(model)) has all", *lines[-last:]]
    return "\n".join(lines)
