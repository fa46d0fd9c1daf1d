"""Views, and the HTML that they are made of: headings and tables, in the colours of the page that they are on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

ROWS = 40
"""Rows of a table at most; what is left out is counted."""
LETTERS = 200
"""Letters of a cell at most."""

CELL = "padding:0.15em 0.8em 0.15em 0;border-bottom:1px solid #8886;vertical-align:top;white-space:nowrap;text-align:"


class View(NamedTuple):
    """What is shown of an object: as text, and where there are, as HTML and as a picture."""

    text: str
    html: str = ""
    svg: str = ""


def page(title: str, *parts: str) -> str:
    """HTML of a title, which is text, and of parts, which are HTML."""
    return f'<div style="overflow-x:auto"><p><code>{escape(cut(title))}</code></p>{"".join(parts)}</div>'


def table(caption: str, heading: Sequence[str], rows: Sequence[Sequence[Any]], most: int = ROWS) -> str:
    """A table of texts and numbers; rows in the middle are left out where there are more than *most*, with a row that counts them.

    Args:
        caption: what it shows, as text; none where empty.
        heading: a text for each column.
        rows: cells of each row.
        most: how many of them are shown.
    """
    head = "".join(f'<th scope="col" style="{CELL}left">{escape(name)}</th>' for name in heading)
    first, last = most - most // 4, most // 4
    if len(rows) <= most:
        body = [_row(row) for row in rows]
    else:
        more = f'<tr><td colspan="{len(heading)}" style="{CELL}left">… {len(rows) - first - last:,} more …</td></tr>'
        body = [*map(_row, rows[:first]), more, *map(_row, rows[len(rows) - last :])]
    title = f'<caption style="text-align:left">{escape(caption)}</caption>' if caption else ""
    top = f"<thead><tr>{head}</tr></thead>" if any(heading) else ""
    return f'<table style="border-collapse:collapse;margin:0.5em 0">{title}{top}<tbody>{"".join(body)}</tbody></table>'


def facts(pairs: Iterable[tuple[str, Any]]) -> str:
    """A table of names and what they stand for."""
    return table("", ("", ""), [(name, _text(held)) for name, held in pairs])


def folded(title: str, content: str) -> str:
    """HTML that is shown on demand, below its title, which is text."""
    return f'<details><summary style="cursor:pointer">{escape(title)}</summary>{content}</details>'


def note(text: str) -> str:
    """A sentence."""
    return f"<p>{escape(text)}</p>"


def cut(text: str, most: int = LETTERS) -> str:
    """A text of so many letters at most; a longer one says how many are left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more letters)"


def _row(cells: Sequence[Any]) -> str:
    return f"<tr>{''.join(map(_cell, cells))}</tr>"


def _cell(held: Any) -> str:
    side = "right" if isinstance(held, (int, float)) else "left"
    return f'<td style="{CELL}{side}">{escape(cut(_text(held)))}</td>'


def _text(held: Any) -> str:
    return f"{held:,}" if isinstance(held, int) else f"{held:.6g}" if isinstance(held, float) else str(held)
