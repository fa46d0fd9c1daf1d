"""Metrics: what training reports."""

from __future__ import annotations

from typing import Any

from cntk.core import plugins

__all__ = ["classification_error", "edit_distance_error", "ndcg_at_1"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return plugins.ops.get(name)
    raise AttributeError(f"module 'cntk.metrics' has no metric '{name}'")
