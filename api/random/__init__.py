"""Random numbers as values of a graph, drawn anew at every evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntk.core.extension import plugins

_PREFIX = "random."


if TYPE_CHECKING:
    from cntk.random._names import *
else:

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return plugins.names_to_import(plugins.ops, __name__, _PREFIX)
        if _PREFIX + name in plugins.ops:
            return plugins.shown(plugins.ops, _PREFIX + name, __name__)
        there = ", ".join(plugins.names_shown(plugins.ops, _PREFIX))
        raise AttributeError(f"module 'cntk.random' has no operator '{name}'; it has {there}")


def __dir__() -> list[str]:
    return sorted({*globals(), *plugins.names_shown(plugins.ops, _PREFIX)})
