"""Random numbers as values of a graph, drawn anew at every evaluation."""

from __future__ import annotations

from typing import Any

from cntk.core import plugins

_PREFIX = "random."

__all__ = [name.removeprefix(_PREFIX) for name in plugins.ops.names() if name.startswith(_PREFIX)]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return plugins.ops.get(_PREFIX + name)
    raise AttributeError(f"module 'cntk.random' has no operator '{name}'; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
