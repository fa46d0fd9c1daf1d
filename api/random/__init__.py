"""Random numbers as values of a graph, drawn anew at every evaluation."""

from __future__ import annotations

from typing import Any

from cntk.core import plugins

_PREFIX = "random."

_OPERATORS = [name.removeprefix(_PREFIX) for name in plugins.ops.names() if name.startswith(_PREFIX)]

__all__ = [*_OPERATORS]


def __getattr__(name: str) -> Any:
    if name in _OPERATORS:
        return plugins.ops.get(_PREFIX + name)
    raise AttributeError(f"module 'cntk.random' has no operator '{name}'; it has {', '.join(_OPERATORS)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_OPERATORS})
