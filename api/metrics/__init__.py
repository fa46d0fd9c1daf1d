"""Metrics: what training reports."""

from __future__ import annotations

from typing import Any

from cntk.core.extension import plugins

_OPERATORS = ("classification_error", "edit_distance_error", "ndcg_at_1")

__all__ = [*_OPERATORS]


def __getattr__(name: str) -> Any:
    if name in _OPERATORS:
        return plugins.ops.get(name)
    raise AttributeError(f"module 'cntk.metrics' has no metric '{name}'")
