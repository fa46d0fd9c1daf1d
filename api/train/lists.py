"""Arguments of which there may be none, one or several."""

from __future__ import annotations

from typing import Any


def as_list(items: Any) -> list[Any]:
    """A list of what is given as None, one item or several."""
    if items is None:
        return []
    return list(items) if isinstance(items, (list, tuple)) else [items]
