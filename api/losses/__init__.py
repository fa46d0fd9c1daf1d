"""Losses: what training makes small."""

from __future__ import annotations

from typing import Any

from cntk.core import plugins

__all__ = ["binary_cross_entropy", "cross_entropy_with_softmax", "squared_error"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return plugins.ops.get(name)
    raise AttributeError(f"module 'cntk.losses' has no loss '{name}'")
