"""Curves in a terminal, as dots of Braille's letters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from cntk.plugins.progress.chart import last_of, share, short
from cntk.plugins.progress.curve import smoothed
from cntk.watching.runs import Runs

ROWS = 8
MARGIN = 11
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a letter's dots, by row and column."""
BRAILLE = 0x2800
COLOURS = ("blue", "yellow", "green", "magenta", "cyan", "red")


class Piece(NamedTuple):
    """Text of one colour, a number of a curve; None for that of the terminal."""

    text: str
    colour: int | None = None


def printable(text: str) -> str:
    """A text of files without what commands a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def drawn(runs: Runs, width: int, smoothing: float) -> list[list[Piece]]:
    """Lines of pieces that show all curves.

    Args:
        runs: what is shown.
        width: letters in a line.
        smoothing: as for :class:`~cntk.logging.LivePlot`.
    """
    names = runs.names()
    lines = [[Piece(f"{runs.folder}: no numbers yet")]] if not names else []
    for tag in sorted(runs.curves):
        curves = {names.index(run): smoothed(curve.points(), smoothing) for run, curve in sorted(runs.curves[tag].items())}
        lines.append([Piece(printable(tag)), *(piece for i, points in curves.items() for piece in _legend(names[i], points, i))])
        lines += [*_chart(curves, max(width - MARGIN - 1, 10)), []]
    return lines + [[Piece(printable(note))] for note in runs.notes]


def _legend(run: str, points: Sequence[tuple[float, float]], colour: int) -> list[Piece]:
    return [Piece("  "), Piece(f"{printable(run) + ' ' if run else ''}{last_of(points)}", colour)]


def _chart(curves: dict[int, list[tuple[float, float]]], width: int) -> list[list[Piece]]:
    xs = [x for points in curves.values() for x, _ in points]
    ys = [y for points in curves.values() for _, y in points if math.isfinite(y)]
    low_x, high_x = min(xs, default=0), max(xs, default=1)
    low_y, high_y = min(ys, default=0), max(ys, default=1)
    cells: list[list[tuple[int, int | None]]] = [[(0, None)] * width for _ in range(ROWS)]
    for colour, points in curves.items():
        for column, height in _dots(points, (low_x, high_x), (low_y, high_y), 2 * width, 4 * ROWS):
            row = 4 * ROWS - 1 - height
            bits, _ = cells[row // 4][column // 2]
            cells[row // 4][column // 2] = bits | DOTS[row % 4][column % 2], colour
    labels = {0: f"{high_y:.4g}", ROWS - 1: f"{low_y:.4g}"}
    lines = [[Piece(f"{labels.get(i, ''):>{MARGIN - 1}} "), *_pieces(row)] for i, row in enumerate(cells)]
    return [*lines, [Piece(f"{'':{MARGIN}}{short(low_x):<{width // 2}}{short(high_x):>{width - width // 2}}")]]


def _dots(
    points: Sequence[tuple[float, float]], across: tuple[float, float], up: tuple[float, float], width: int, height: int
) -> list[tuple[int, int]]:
    """Columns and heights of the dots of a curve: joined, but at gaps."""
    found: list[tuple[int, int]] = []
    before: tuple[int, int] | None = None
    for x, y in points:
        if not math.isfinite(y):
            before = None
            continue
        at = _scaled(x, across, width), _scaled(y, up, height)
        found.append(at)
        if before is not None:
            steps = max(abs(at[0] - before[0]), abs(at[1] - before[1]))
            found += [tuple(round(a + (b - a) * i / steps) for a, b in zip(before, at, strict=True)) for i in range(1, steps)]  # type: ignore[misc]
        before = at
    return found


def _scaled(value: float, ends: tuple[float, float], size: int) -> int:
    low, high = ends
    return round(share(value, low, high) * (size - 1)) if high > low else size // 2


def _pieces(row: Sequence[tuple[int, int | None]]) -> list[Piece]:
    letters = ((chr(BRAILLE + bits) if bits else " ", colour) for bits, colour in row)
    return [Piece("".join(letter for letter, _ in same), colour) for colour, same in groupby(letters, key=lambda one: one[1])]


def plain(lines: Sequence[Sequence[Piece]], encoding: str = "utf-8") -> str:
    """The lines as text; with stars for dots where an encoding has no Braille."""
    text = "\n".join("".join(piece.text for piece in line).rstrip() for line in lines)
    try:
        chr(BRAILLE).encode(encoding)
    except UnicodeEncodeError:
        text = "".join("*" if BRAILLE < ord(letter) < BRAILLE + 256 else letter for letter in text)
        return text.encode(encoding, "replace").decode(encoding)
    return text
