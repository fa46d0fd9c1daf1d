"""Places the boxes of a picture: in layers, so that arrows point down, side by side with few crossings.

Source: Sugiyama, Tagawa, Toda, Methods for Visual Understanding of Hierarchical System Structures (1981). Arrows that close a cycle are
turned round for the purpose, those over several layers get a bend in each; neighbours are ordered by their barycentres and then placed
as near to them as the room allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

SWEEPS = 8


class Place(NamedTuple):
    """Centre of a box or bend: *x* in the unit of the widths, *layer* counted from the top."""

    x: float
    layer: int


def place(widths: Sequence[float], arrows: Sequence[tuple[int, int]], gap: float) -> tuple[list[Place], list[list[Place]]]:
    """Place boxes.

    Args:
        widths: width of each box.
        arrows: pairs of boxes, by number.
        gap: room between neighbours.

    Returns:
        The place of each box, and for each arrow the places it passes, from the box it starts at to the box it ends at.
    """
    turned = _closing(len(widths), arrows)
    down = [(end, start) if back else (start, end) for (start, end), back in zip(arrows, turned, strict=True)]
    layer = _layers(len(widths), down)
    sizes = list(widths)
    bends: dict[tuple[int, int], int] = {}
    routes = []
    for start, end in down:
        route = [start]
        for passed in range(layer[start] + 1, layer[end]):
            if (start, passed) not in bends:
                bends[start, passed] = len(sizes)
                sizes.append(0.0)
                layer.append(passed)
            route.append(bends[start, passed])
        routes.append([*route, end])
    x = _across(sizes, layer, sorted({pair for route in routes for pair in pairwise(route)}), gap)
    places = [Place(*pair) for pair in zip(x, layer, strict=True)]
    return places[: len(widths)], [
        [places[i] for i in reversed(r)] if back else [places[i] for i in r] for r, back in zip(routes, turned, strict=True)
    ]


def _closing(count: int, arrows: Sequence[tuple[int, int]]) -> list[bool]:
    """For each arrow whether it closes a cycle in a walk down from the boxes that nothing leads to, then from all others."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    for i, (start, _) in enumerate(arrows):
        leaving[start].append(i)
    led_to = {end for _, end in arrows}
    closing = [False] * len(arrows)
    entered, left = [False] * count, [False] * count
    for first in sorted(range(count), key=lambda box: box in led_to):
        stack = [] if entered[first] else [(first, iter(leaving[first]))]
        entered[first] = True
        while stack:
            box, pending = stack[-1]
            for i in pending:
                end = arrows[i][1]
                closing[i] = entered[end] and not left[end]
                if not entered[end]:
                    entered[end] = True
                    stack.append((end, iter(leaving[end])))
                    break
            else:
                left[box] = True
                stack.pop()
    return closing


def _layers(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """A layer for each box, below all that lead to it; a box that nothing leads to stands right above the first it leads to."""
    following: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for start, end in arrows:
        if start != end:
            following[start].append(end)
            waiting[end] += 1
    sources = [box for box in range(count) if not waiting[box]]
    layer = [0] * count
    ready = list(sources)
    while ready:
        box = ready.pop()
        for end in following[box]:
            layer[end] = max(layer[end], layer[box] + 1)
            waiting[end] -= 1
            if not waiting[end]:
                ready.append(end)
    for box in sources:
        layer[box] = min((layer[end] for end in following[box]), default=1) - 1
    return layer


def _across(widths: Sequence[float], layer: Sequence[int], pairs: Sequence[tuple[int, int]], gap: float) -> list[float]:
    """Horizontal places: sweeps down and up first order the boxes of each layer, then move them without changing the order."""
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for box, number in enumerate(layer):
        rows[number].append(box)
    above: list[list[int]] = [[] for _ in layer]
    below: list[list[int]] = [[] for _ in layer]
    for start, end in pairs:
        above[end].append(start)
        below[start].append(end)
    x = [0.0] * len(layer)
    for row in rows:
        _set(x, row, [0.0] * len(row), widths, gap)
    for sweep in range(4 * SWEEPS):
        neighbours, order = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        for row in order:
            wished = {box: _mean([x[i] for i in neighbours[box]], x[box]) for box in row}
            if sweep < 2 * SWEEPS:
                row.sort(key=wished.__getitem__)
            else:
                wished = {box: _mean([x[i] for i in above[box] + below[box]], x[box]) for box in row}
            _set(x, row, [wished[box] for box in row], widths, gap)
    return x


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _set(x: list[float], row: Sequence[int], wished: Sequence[float], widths: Sequence[float], gap: float) -> None:
    """Place the boxes of a row, in order and *gap* apart, with the least sum of squared distances from where they are wished.

    Boxes that would overlap form a group, which goes where its members wish it on average (pool adjacent violators).
    """
    offsets, offset = [], 0.0
    for before, box in zip([None, *row], row, strict=False):
        offset += 0.0 if before is None else (widths[before] + widths[box]) / 2 + gap
        offsets.append(offset)
    groups: list[tuple[float, int]] = []
    for wish, offset in zip(wished, offsets, strict=True):
        total, size = wish - offset, 1
        while groups and groups[-1][0] / groups[-1][1] >= total / size:
            before_total, before_size = groups.pop()
            total, size = total + before_total, size + before_size
        groups.append((total, size))
    starts = [total / size for total, size in groups for _ in range(size)]
    for box, start, offset in zip(row, starts, offsets, strict=True):
        x[box] = start + offset
