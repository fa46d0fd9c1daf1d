"""Writes docs/operators.md, the table of all operators, from their docstrings: ``python docs/operators.py``."""

from __future__ import annotations

from pathlib import Path

import cntk  # noqa: F401  (loads the plugins)
from cntk.core.extension.plugins import DISTRIBUTION, ops

PAGE = Path(__file__).with_suffix(".md")

HEAD = """# Operators

Every operator is both `cntk.<name>` and `cntk.ops.<name>`; those on sequences are `cntk.sequence.<name>`. `help(cntk.<name>)` tells its
arguments, shapes and source, with an example. This page is made by `python docs/operators.py` from the beginning of each docstring.

| operator | what it computes |
| --- | --- |
"""


def page() -> str:
    """The page as it should be: the operators of this distribution, those of installed plugins left out."""
    names = [name for name in ops if ops.owner(name).startswith(f"{DISTRIBUTION}:")]
    return HEAD + "".join(f"| `{name}` | {_first_paragraph(ops.get(name).__doc__)} |\n" for name in names)


def _first_paragraph(docstring: str) -> str:
    paragraph = " ".join(docstring.strip().partition("\n\n")[0].split())
    return paragraph.replace(":math:", "").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
