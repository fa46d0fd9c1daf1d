"""Pictures of graphs as SVG, for browsers, which need nothing else to show them."""

from __future__ import annotations

from itertools import pairwise
from xml.sax.saxutils import escape

from cntk.logging.figure import COLOURS, ROUND
from cntk.logging.layered import Place, place
from cntk.logging.picture import Arrow, Box, Picture

SIZE = 12
"""Size of the text in pixels; that of arrows is smaller."""
LETTER = 6.8
LINE = 15
GAP = 28
LAYER = 84
ASIDE = 14
"""Pixels by which arrows that point up stand beside those that point down."""

HEAD = 7
"""Length of an arrow's head."""
INK = "#767676"
"""Grey that is read on white and on black."""

TEXT = f'font-family="sans-serif" font-size="{SIZE}" text-anchor="middle" fill="#111"'


def draw(picture: Picture, title: str = "Graph of the model", ink: str = INK) -> bytes:
    """Draw the picture.

    Args:
        picture: boxes and arrows.
        title: what it shows, in words.
        ink: colour of arrows and of what stands beside boxes: ``currentColor`` is that of the text around the picture.

    Returns:
        Content of a file.

    >>> from cntk.logging.picture import picture_of
    >>> from cntk.logging.svg import draw
    >>> draw(picture_of(C.relu(C.input_variable(2, name='x'))))[:4]
    b'<svg'
    """
    widths = [_width(box) for box in picture.boxes]
    places, paths = place(widths, [(arrow.start, arrow.end) for arrow in picture.arrows], GAP)
    edges = [at.x + side * width / 2 for at, width in zip(places, widths, strict=True) for side in (-1, 1)]
    edges += [at.x + ASIDE for path in paths for at in path]
    left, right = min(edges) - GAP, max(edges) + GAP
    height = (max(at.layer for at in places) + 1) * LAYER
    drawn: set[tuple[float, ...]] = set()
    arrows = [_arrow(arrow, path, picture.boxes, drawn) for arrow, path in zip(picture.arrows, paths, strict=True)]
    boxes = [_box(box, at) for box, at in zip(picture.boxes, places, strict=True)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{right - left:.0f}" height="{height}" '
        f'viewBox="{left:.1f} {-LAYER / 2:.1f} {right - left:.1f} {height}"><title>{escape(title)}</title>'
    )
    return "\n".join([head, f'<g {TEXT} color="{ink}">', *arrows, *boxes, "</g>", "</svg>"]).encode()


def _width(box: Box) -> float:
    return (max(map(len, box.text.split("\n"))) + 2) * LETTER * (1.2 if box.kind in ROUND else 1)


def _height(box: Box) -> float:
    return (box.text.count("\n") + 1) * LINE + (14 if box.kind in ROUND else 8)


def _box(box: Box, at: Place) -> str:
    width, height, y = _width(box), _height(box), at.layer * LAYER
    bold = 1.8 if box.kind in ("block", "output") else 0.8
    look = f'fill="{COLOURS[box.kind]}" stroke="#333" stroke-width="{bold}"' + (
        ' stroke-dasharray="4 3"' if box.kind == "placeholder" else ""
    )
    if box.kind in ROUND:
        shape = f'<ellipse cx="{at.x:.1f}" cy="{y}" rx="{width / 2:.1f}" ry="{height / 2:.1f}" {look}/>'
    elif box.kind == "number":
        shape = ""
    else:
        round_ = 6 if box.kind == "function" else 0
        corner = f'x="{at.x - width / 2:.1f}" y="{y - height / 2:.1f}"'
        shape = f'<rect {corner} width="{width:.1f}" height="{height:.1f}" rx="{round_}" {look}/>'
    lines, colour = box.text.split("\n"), ' fill="currentColor"' if box.kind == "number" else ""
    first = y - (len(lines) - 1) * LINE / 2 + SIZE * 0.35
    texts = [f'<text x="{at.x:.1f}" y="{first + i * LINE:.1f}"{colour}>{escape(line)}</text>' for i, line in enumerate(lines)]
    return f"<g>{shape}{''.join(texts)}</g>"


def _arrow(arrow: Arrow, path: list[Place], boxes: list[Box], drawn: set[tuple[float, ...]]) -> str:
    """A curve from box to box, upright at each bend; arrows from one box share bends, and what they share is drawn once."""
    up = 1 if path[-1].layer <= path[0].layer else -1
    points = [(at.x + (ASIDE if up > 0 else 0), float(at.layer * LAYER)) for at in path]
    points[0] = points[0][0], points[0][1] - up * _height(boxes[arrow.start]) / 2
    points[-1] = points[-1][0], points[-1][1] + up * _height(boxes[arrow.end]) / 2
    parts = []
    for i, ((x, y), (next_x, next_y)) in enumerate(pairwise(points)):
        middle, is_last = (y + next_y) / 2, i == len(points) - 2
        key = (x, y, next_x, next_y)
        if key in drawn and not is_last:
            continue
        if i == 0 and key not in drawn:
            parts.append(f'<text font-size="9" fill="currentColor" x="{(x + next_x) / 2:.1f}" y="{middle:.1f}">{escape(arrow.text)}</text>')
        drawn.add(key)
        curve = f"M{x:.1f} {y:.1f}C{x:.1f} {middle:.1f} {next_x:.1f} {middle:.1f} {next_x:.1f} {next_y:.1f}"
        parts.append(f'<path fill="none" stroke="currentColor" d="{curve}"/>')
        if is_last:
            back = next_y + (-HEAD if next_y > y else HEAD)
            parts.append(f'<path class="head" fill="currentColor" d="M{next_x:.1f} {next_y:.1f}L{next_x - 3:.1f} {back:.1f}h6z"/>')
    return "".join(parts)
