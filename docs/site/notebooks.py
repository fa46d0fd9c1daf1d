"""Notebooks that are kept as programs, for where they have no results."""

from __future__ import annotations

from typing import Any

import jupytext


def read(text: str) -> Any:
    """A notebook of a program in cells, with Python's colours."""
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata.setdefault("language_info", {"name": "python", "pygments_lexer": "ipython3"})
    return notebook
