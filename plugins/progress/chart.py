"""Charts of curves as SVG, in the colours of the page that they are on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 44, 34
TICKS = 5
COLOURS = ("#3b82f6", "#f97316", "#10a37f", "#d946ef", "#eab308", "#ef4444", "#06b6d4", "#8b8b8b")
"""Colours that are seen on white and on black."""


class Line(NamedTuple):
    """A curve of a chart.

    Attributes:
        name: what stands in the legend; nothing where empty.
        points: places and values; NaN is a gap.
        colour: its number.
        is_faint: whether it stands behind the others.
        has_dots: whether each point is marked.
    """

    name: str
    points: Sequence[tuple[float, float]]
    colour: int = 0
    is_faint: bool = False
    has_dots: bool = False


class Panel(NamedTuple):
    """Curves with a common vertical axis, below a title, which is text."""

    title: str
    lines: Sequence[Line]


def chart(panels: Sequence[Panel], along: str) -> str:
    """SVG of panels, one above the other.

    Args:
        panels: what is drawn.
        along: what the horizontal axes count.

    >>> from cntk.plugins.progress.chart import Line, Panel, chart
    >>> chart([Panel("loss", [Line("training", [(1, 2.0), (2, 1.0)])])], "minibatches")[:4]
    '<svg'
    """
    height = HEIGHT * len(panels)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="11" fill="currentColor">'
        f"<title>{escape('; '.join(map(_told, panels)))}</title>"
    )
    moved = (f'<g transform="translate(0 {i * HEIGHT})">{_panel(panel, along)}</g>' for i, panel in enumerate(panels))
    return "".join([head, *moved, "</svg>"])


def _panel(panel: Panel, along: str) -> str:
    lines = panel.lines
    known = [y for line in lines for _, y in line.points if math.isfinite(y)]
    low_x, high_x = _range([x for line in lines for x, _ in line.points])
    low_y, high_y = _range(known)

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = share(x, low_x, high_x), share(y, low_y, high_y)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    title = f'<text x="{LEFT}" y="14" font-size="13" font-weight="bold">{escape(panel.title)}</text>'
    grid = [_tick(LEFT - 6, place(low_x, y)[1] + 4, "end", y) + _rule(place(low_x, y)[1]) for y in _ticks(low_y, high_y)]
    grid += [_tick(place(x, low_y)[0], HEIGHT - BOTTOM + 14, "middle", x) for x in _ticks(low_x, high_x)]
    label = f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 4}" text-anchor="end">{escape(along)}</text>'
    empty = "" if known else f'<text x="{WIDTH / 2}" y="{HEIGHT / 2}" text-anchor="middle">no values yet</text>'
    drawn = [_drawn(line, [place(x, y) if math.isfinite(y) else None for x, y in line.points]) for line in lines]
    return "".join([title, *grid, label, *drawn, _legend(lines), empty])


def _drawn(line: Line, places: Sequence[tuple[float, float] | None]) -> str:
    """Pieces between gaps, of which single points are dots."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for at in places:
        if at is None:
            pieces.append([])
        else:
            pieces[-1].append(at)
    look = f'stroke="{COLOURS[line.colour % len(COLOURS)]}" opacity="{0.35 if line.is_faint else 1}"'
    text = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in piece) for piece in pieces if len(piece) > 1)
    path = f'<path fill="none" stroke-width="{1 if line.is_faint else 2}" stroke-linejoin="round" {look} d="{text}"/>' if text else ""
    dots = [at for piece in pieces if line.has_dots or len(piece) == 1 for at in piece]
    circles = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{COLOURS[line.colour % len(COLOURS)]}"/>' for x, y in dots)
    return path + circles


def _legend(lines: Sequence[Line]) -> str:
    """Names with the last values, side by side."""
    made, x = [], float(LEFT)
    for line in lines:
        if line.name and x < WIDTH - RIGHT:
            text = f"{line.name} {last_of(line.points)}"
            colour = COLOURS[line.colour % len(COLOURS)]
            made.append(f'<rect x="{x:.0f}" y="22" width="10" height="10" fill="{colour}"/>')
            made.append(f'<text x="{x + 14:.0f}" y="31">{escape(text)}</text>')
            x += 30 + 6.2 * len(text)
    return "".join(made)


def last_of(points: Sequence[tuple[float, float]]) -> str:
    """The last value of a curve, as text."""
    if not points:
        return ""
    return f"{points[-1][1]:.4g}" if math.isfinite(points[-1][1]) else "not finite"


def _told(panel: Panel) -> str:
    return f"{panel.title}: " + ", ".join(f"{line.name} {last_of(line.points)}" for line in panel.lines if line.name)


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if high > low:
        return low, high
    room = abs(low) / 2 or 0.5
    return low - room, low + room


def share(value: float, low: float, high: float) -> float:
    """Where a value is between two, from 0 to 1; halves, since differences may be too large for a number."""
    return (value / 2 - low / 2) / (high / 2 - low / 2)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers in a range."""
    rough = high / TICKS - low / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((power * factor for factor in (1, 2, 5) if power * factor >= rough), power * 10)
    first = math.ceil(low / step)
    return [i * step for i in range(first, math.floor(high / step) + 1)]


def _rule(y: float) -> str:
    return f'<path stroke="currentColor" opacity="0.15" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'


def _tick(x: float, y: float, anchor: str, number: float) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{short(number)}</text>'


def short(number: float) -> str:
    """A round number in few letters: ``20k``."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= max(size, 1e4):
            return f"{number / size:.6g}{letter}"
    return f"{number:.6g}"
