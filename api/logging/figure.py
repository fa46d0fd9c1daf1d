"""Pictures of graphs, drawn by matplotlib: for computers without Graphviz."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

from cntk.logging.layered import Place, place
from cntk.logging.picture import Box, Picture

SIZE = 9
"""Size of the text in points; that of arrows is smaller."""
INCHES_PER_LETTER = 0.085
INCHES_PER_LINE = 0.17
GAP = 0.35
LAYER = 1.0
"""Inches from layer to layer."""
ASIDE = 0.15
"""Inches by which arrows that point up stand beside those that point down."""
DPI = 120
LARGEST = 30_000
"""Pixels along an edge of a bitmap, at most."""

COLOURS = {
    "block": "#d8d8d8",
    "constant": "#cfe4f5",
    "function": "#eeeeee",
    "input": "#ffe9a8",
    "number": "none",
    "output": "#ffffff",
    "parameter": "#cdeccd",
    "placeholder": "#eeeeee",
}
ROUND = ("input", "output", "placeholder")


def draw(picture: Picture, kind: str) -> bytes:
    """Draw the picture.

    Args:
        kind: ``'svg'``, ``'png'`` or ``'pdf'``.

    Returns:
        Content of a file of that kind.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    places, paths = place([_width(box) for box in picture.boxes], [(arrow.start, arrow.end) for arrow in picture.arrows], GAP)
    ends = [(at.x + side * _width(box) / 2) for box, at in zip(picture.boxes, places, strict=True) for side in (-1, 1)]
    ends += [at.x for path in paths for at in path]
    left, right, layers = min(ends) - GAP, max(ends) + GAP, max(at.layer for at in places) + 1
    figure = Figure(figsize=(right - left, layers * LAYER))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(left, right), ylim=((0.5 - layers) * LAYER, 0.5 * LAYER))
    axes.axis("off")
    drawn: set[Any] = set()
    for arrow, path in zip(picture.arrows, paths, strict=True):
        _add_arrow(axes, path, arrow.text, picture.boxes[arrow.start], picture.boxes[arrow.end], drawn)
    for box, at in zip(picture.boxes, places, strict=True):
        _add_box(axes, box, at)
    file = io.BytesIO()
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format=kind, dpi=min(DPI, LARGEST / max(right - left, layers * LAYER)))
    return file.getvalue()


def _width(box: Box) -> float:
    return (max(len(line) for line in box.text.split("\n")) + 2) * INCHES_PER_LETTER * (1.2 if box.kind in ROUND else 1)


def _height(box: Box) -> float:
    return (box.text.count("\n") + 1) * INCHES_PER_LINE + (0.2 if box.kind in ROUND else 0.1)


def _add_box(axes: Any, box: Box, at: Place) -> None:
    from matplotlib.patches import Ellipse, FancyBboxPatch

    width, height, y = _width(box), _height(box), -at.layer * LAYER
    look: dict[str, Any] = {
        "facecolor": COLOURS[box.kind],
        "edgecolor": "none" if box.kind == "number" else "#333333",
        "linewidth": 1.8 if box.kind in ("block", "output") else 0.8,
        "linestyle": "--" if box.kind == "placeholder" else "-",
    }
    if box.kind in ROUND:
        axes.add_artist(Ellipse((at.x, y), width, height, **look))
    else:
        style = "round,pad=0,rounding_size=0.08" if box.kind == "function" else "square,pad=0"
        axes.add_artist(FancyBboxPatch((at.x - width / 2, y - height / 2), width, height, boxstyle=style, **look))
    axes.text(at.x, y, box.text, ha="center", va="center", fontsize=SIZE, parse_math=False)


def _add_arrow(axes: Any, path: list[Place], text: str, start: Box, end: Box, drawn: set[Any]) -> None:
    """A curve from box to box, upright at each bend; arrows from one box share bends, and what they share is drawn once."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    up = 1 if path[-1].layer <= path[0].layer else -1
    aside = ASIDE if up > 0 else 0.0
    points = [(at.x + aside, -at.layer * LAYER) for at in path]
    points[0] = (points[0][0], points[0][1] + up * _height(start) / 2)
    points[-1] = (points[-1][0], points[-1][1] - up * _height(end) / 2)
    last = len(points) - 2
    for i, ((x, y), (next_x, next_y)) in enumerate(pairwise(points)):
        middle = (y + next_y) / 2
        is_new = (x, y, next_x, next_y) not in drawn
        drawn.add((x, y, next_x, next_y))
        if i == 0 and is_new:
            axes.text((x + next_x) / 2, middle, text, ha="center", fontsize=SIZE - 3, color="#555555", parse_math=False)
        if i == last or is_new:
            curve = Path([(x, y), (x, middle), (next_x, middle), (next_x, next_y)], [Path.MOVETO, *[Path.CURVE4] * 3])
            head = "-|>" if i == last else "-"
            axes.add_artist(FancyArrowPatch(path=curve, arrowstyle=head, mutation_scale=8, color="#555555", linewidth=0.8, zorder=0))
