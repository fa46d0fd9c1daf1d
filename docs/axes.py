"""Draws the pictures of docs/dynamic_axes.md, in docs/pictures: ``python docs/axes.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "pictures"
CELL, GAP, MARGIN = 52, 6, 18

STYLE = """
  .paper { fill: #ffffff; stroke: #d0d4da }
  text { font: 14px sans-serif; fill: #20242a; text-anchor: middle }
  .left { text-anchor: start }
  .small { font-size: 12px }
  .a { fill: #cfe3f8; stroke: #2f6fab } .b { fill: #fbe2b8; stroke: #a86a00 } .c { fill: #d5efd3; stroke: #2f7d32 }
  .none { fill: none; stroke: #8a929d; stroke-dasharray: 4 4 }
  .arrow { fill: none; stroke: #20242a; stroke-width: 1.5; marker-end: url(#tip) }
  #tip path { fill: #20242a }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #1b1f24; stroke: #3a414a }
    text { fill: #e6e9ed }
    .a { fill: #1d4468; stroke: #7db7ea } .b { fill: #5c430f; stroke: #e5b454 } .c { fill: #234d26; stroke: #83c986 }
    .arrow { stroke: #e6e9ed } #tip path { fill: #e6e9ed }
  }
"""
"""Each picture has a ground of its own and follows the reader's setting, so that it is legible on any page."""


class Picture(NamedTuple):
    """A picture: what it shows in a few words, the same for those who cannot see it, its size and what is drawn."""

    title: str
    description: str
    width: int
    height: int
    parts: list[str]

    def svg(self) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}" '
            f'role="img" aria-labelledby="title description">\n<title id="title">{self.title}</title>\n'
            f'<desc id="description">{self.description}</desc>\n<style>{STYLE}</style>\n'
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>\n'
            f'<rect class="paper" x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="8"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def cell(x: float, y: float, text: str, kind: str = "a") -> str:
    """A square with a text in it; its upper left corner is at (x, y)."""
    box = f'<rect class="{kind}" x="{x}" y="{y}" width="{CELL}" height="{CELL}" rx="4"/>'
    return box + (f'<text x="{x + CELL / 2}" y="{y + CELL / 2 + 5}">{text}</text>' if text else "")


def row(x: float, y: float, texts: list[str], kind: str = "a") -> Iterator[str]:
    for i, text in enumerate(texts):
        yield cell(x + i * (CELL + GAP), y, text, kind)


def words(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{text}</text>'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path class="arrow" d="M{x} {y} L{to_x} {to_y}"/>'


def batch() -> Picture:
    """Sequences of different lengths in a minibatch."""
    sentences = [["the", "cat", "sat"], ["hello"], ["we", "go"]]
    left, top, step = 150, 66, CELL + GAP
    parts = [words(left + 1.5 * step, 30, "sequence axis *: steps, as many as each sample has"), arrow(left, 44, left + 3 * step, 44)]
    for i, sentence in enumerate(sentences):
        y = top + i * step
        parts += [words(MARGIN, y + CELL / 2 + 5, f"sample {i}", "left"), *row(left, y, sentence)]
        parts += row(left + len(sentence) * step, y, [""] * (3 - len(sentence)), "none")
    parts += [arrow(left - 22, top, left - 22, top + 3 * step - GAP), words(left - 44, top + 3 * step + 18, "batch axis #")]
    parts += [words(left + 4.6 * step, top + 20, "a cell is one step:"), words(left + 4.6 * step, top + 40, "its static shape, say [300]")]
    parts += [words(left + 4.6 * step, top + 84, "dashed: nothing there,"), words(left + 4.6 * step, top + 104, "neither padding nor mask")]
    return Picture(
        "A minibatch of three sequences",
        "Three rows, one for each sample of the batch axis, with three, one and two cells along the sequence axis. Each cell is a step.",
        560,
        top + 3 * step + 34,
        parts,
    )


def broadcast() -> Picture:
    """A value on the batch axis meets a sequence."""
    left, top, step = 40, 52, CELL + GAP
    lengths = [3, 1, 2]
    heads = (1.5 * step - 3, "x  [#, *]"), (4.5 * step + 6, "b  [#]"), (8 * step, "x + b  [#, *]")
    parts = [words(left + x, 30, head) for x, head in heads]
    for i, length in enumerate(lengths):
        y = top + i * step
        parts += row(left, y, [f"x{i}{t}" for t in range(length)])
        parts.append(cell(left + 4 * step, y, f"b{i}", "b"))
        parts += row(left + 6.5 * step, y, [f"+b{i}"] * length, "c")
    parts += [words(left + 3.4 * step, top + 1.5 * step, "+"), words(left + 5.6 * step, top + 1.5 * step, "=")]
    return Picture(
        "A value of each sample is repeated along its sequence",
        "A sequence of three, one and two steps plus one value for each sample is a sequence with the value added at every step.",
        600,
        top + 3 * step + 14,
        parts,
    )


def reduction() -> Picture:
    """From sequences to one value a sample, and back."""
    left, top, step = 40, 52, CELL + GAP
    lengths = [3, 1, 2]
    heads = (1.5 * step - 3, "x  [#, *]"), (5.5 * step, "sequence.last(x)  [#]"), (9.3 * step, "broadcast_as(…, x)  [#, *]")
    parts = [words(left + x, 30, head) for x, head in heads]
    for i, length in enumerate(lengths):
        y, last = top + i * step, f"x{i}{length - 1}"
        parts += row(left, y, [f"x{i}{t}" for t in range(length)])
        parts.append(arrow(left + 3.1 * step, y + CELL / 2, left + 4.8 * step, y + CELL / 2))
        parts.append(cell(left + 5 * step, y, last, "b"))
        parts.append(arrow(left + 6.1 * step, y + CELL / 2, left + 7.7 * step, y + CELL / 2))
        parts += row(left + 7.9 * step, y, [last] * length, "c")
    return Picture(
        "From a sequence to its last step, and back to a sequence",
        "The last step of each of three sequences is a value on the batch axis; repeated for each step it is a sequence again.",
        690,
        top + 3 * step + 14,
        parts,
    )


def recurrence() -> Picture:
    """A recurrence, step by step."""
    left, top, step = 110, 50, 120
    middle = CELL / 2
    parts = [words(MARGIN, top + middle + 5, "state", "left"), words(MARGIN, top + 112 + middle + 5, "input", "left")]
    parts.append(cell(left, top, "0", "none"))
    for t in range(3):
        x = left + (t + 1) * step
        parts += [cell(x, top, f"h{t}", "c"), cell(x, top + 112, f"x{t}")]
        parts.append(arrow(x - step + CELL + 4, top + middle, x - 4, top + middle))
        parts.append(arrow(x + middle, top + 108, x + middle, top + CELL + 4))
        parts.append(words(x + CELL / 2, 30, f"step {t}", "small"))
    parts.append(words(left + CELL / 2, 30, "initial state", "small"))
    return Picture(
        "A recurrence",
        "Each state is computed from the state before it and the input of its step; the first one from the initial state 0.",
        left + 3 * step + CELL + 30,
        top + 112 + CELL + 20,
        parts,
    )


def packing() -> Picture:
    """How steps lie in memory."""
    left, top, step = 120, 58, CELL + GAP
    parts = [words(MARGIN, top + 30, "in memory", "left"), *row(left, top, ["the", "we", "hello"], "a")]
    parts += row(left + 3 * step + 12, top, ["cat", "go"], "b")
    parts += row(left + 5 * step + 24, top, ["sat"], "c")
    for x, width, name in ((left, 3, "first steps"), (left + 3 * step + 12, 2, "second steps"), (left + 5 * step + 24, 1, "third")):
        parts.append(words(x + width * step / 2 - 3, 36, name, "small"))
    return Picture(
        "Rows packed by steps",
        "The first steps of all sequences lie side by side, longest sequence first, then all second steps, then the only third one.",
        500,
        top + CELL + 20,
        parts,
    )


PICTURES = {picture.__name__: picture for picture in (batch, broadcast, reduction, recurrence, packing)}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")
