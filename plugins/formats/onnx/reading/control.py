"""Readers of control flow: branches, and loops whose number of turns is known, which are written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..messages import Graph
from .arrays import Array, Unsupported, concat, known, normal, reshape, slice_, unsqueeze
from .elementary import select
from .importer import GraphReader, Operator
from .scans import scan_of_free_length
from .sizes import Size

MOST_TURNS = 2048


def body_of(node: Operator, graph: Graph, values: Sequence[Array | None]) -> list[Array | None]:
    """The results of a graph within a node."""
    return run(node.graph, graph, dict(zip([info.name or "" for info in graph.input], values, strict=True)))


def run(around: GraphReader, graph: Graph, values: Mapping[str, Array | None]) -> list[Array | None]:
    """The results of a graph within another one, for values of its inputs."""
    inner = around.inner()
    inner.values.update(around.initial(graph))
    inner.values.update({name: value for name, value in values.items() if value is not None})
    inner.read_nodes(graph.node)
    return [inner.value(info.name or "") for info in graph.output]


def read_if(node: Operator, condition: Array) -> list[Array | None]:
    """One of two branches; both, with a choice of each result, where the condition is computed from the data."""
    yes, no = node.required("then_branch"), node.required("else_branch")
    if condition.is_known:
        return body_of(node, yes if bool(condition.numbers.reshape(-1)[0]) else no, [])
    found = []
    for one, other in zip(body_of(node, yes, []), body_of(node, no, []), strict=True):
        if one is None or other is None or one.dims != other.dims:
            raise Unsupported("a condition that is computed from the data, of branches with results of different shapes")
        found.append(select(reshape(condition, []), one, other))
    return list(found)


def read_loop(node: Operator, turns: Array | None, condition: Array | None = None, *states: Array | None) -> list[Array | None]:
    body: Graph = node.required("body")
    count = MOST_TURNS + 1 if turns is None else int(turns.numbers.reshape(-1)[0])
    goes_on = condition if condition is not None else known(np.array(True))
    values, stacked = list(states), [[] for _ in range(len(body.output) - 1 - len(states))]  # type: ignore[var-annotated]
    for turn in range(count):
        if not bool(goes_on.numbers.reshape(-1)[0]):
            break
        if turn == MOST_TURNS:
            raise Unsupported(f"a loop of more than {MOST_TURNS} turns")
        decided, *results = body_of(node, body, [known(np.array(turn, np.int64)), goes_on, *values])
        if decided is None:
            raise Unsupported("a loop whose body does not say whether it goes on")
        goes_on = decided
        values = results[: len(states)]
        for rows, result in zip(stacked, results[len(states) :], strict=True):
            rows.append(result)
    return [*values, *(_stacked(rows, 0) for rows in stacked)]


def _stacked(rows: Sequence[Any], axis: int) -> Array:
    if not rows:
        raise Unsupported("a loop without turns, whose results have no rows")
    return concat([unsqueeze(row, [axis]) for row in rows], axis)


def read_scan(node: Operator, *operands: Array | None) -> list[Array | None]:
    if node.version < 9:
        return _scans_of_samples(node, *operands)
    return _scanned(node, operands, "scan_input_directions")


def _scans_of_samples(node: Operator, lengths: Array | None, *operands: Array | None) -> list[Array | None]:
    """Scan of version 8, which goes along the second axis for each sample on the first one."""
    if lengths is not None:
        raise Unsupported("Scan of version 8 with lengths of sequences")
    given = [one for one in operands if one is not None]
    count = given[0].dims[0] if given and given[0].rank else None
    if isinstance(count, Size) or not count or len(given) < len(operands):
        raise Unsupported("Scan of version 8 of a number of samples that is not known")
    results = [_scanned(node, [_sample(one, at) for one in given], "directions") for at in range(count)]
    return [_stacked(rows, 0) for rows in zip(*results, strict=True)]


def _sample(x: Array, at: int) -> Array:
    return reshape(slice_(x, 0, at, at + 1), x.dims[1:])


def _scanned(node: Operator, operands: Sequence[Array | None], directions: str) -> list[Array | None]:
    body: Graph = node.required("body")
    count = node.required("num_scan_inputs")
    states, scanned = list(operands[: len(operands) - count]), [one for one in operands[len(operands) - count :] if one is not None]
    if not scanned:
        raise Unsupported("nothing to scan")
    outputs = len(body.output) - len(states)
    axes = [normal(axis, one.rank) for axis, one in zip(node.attribute("scan_input_axes", [0] * count), scanned, strict=True)]
    backwards = node.attribute(directions, [0] * count)
    out_axes, out_backwards = node.attribute("scan_output_axes", [0] * outputs), node.attribute("scan_output_directions", [0] * outputs)
    turns = scanned[0].dims[axes[0]]
    if isinstance(turns, Size):
        return scan_of_free_length(node, body, states, scanned, axes, backwards, out_axes, out_backwards)
    if turns > MOST_TURNS:
        raise Unsupported(f"a loop of more than {MOST_TURNS} turns")
    rows: list[list[Any]] = [[] for _ in range(outputs)]
    for turn in range(turns):
        parts = []
        for one, axis, backward in zip(scanned, axes, backwards, strict=True):
            at = turns - 1 - turn if backward else turn
            parts.append(reshape(slice_(one, axis, at, at + 1), [dim for place, dim in enumerate(one.dims) if place != axis]))
        results = body_of(node, body, [*states, *parts])
        states = results[: len(states)]
        for row, result in zip(rows, results[len(states) :], strict=True):
            row.append(result)
    stacked = []
    for row, axis, backward in zip(rows, out_axes, out_backwards, strict=True):
        stacked.append(_stacked(row[::-1] if backward else row, axis if axis >= 0 else axis + row[0].rank + 1))
    return [*states, *stacked]
