"""Metrics: what training reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntk.core.extension import plugins

_OPERATORS = ("classification_error", "edit_distance_error", "ndcg_at_1")

__all__ = [*_OPERATORS]


if TYPE_CHECKING:
    from cntk.metrics import _names
    from cntk.metrics._names import *
    from cntk.ops._names import classification_error as classification_error
    from cntk.ops._names import edit_distance_error as edit_distance_error
    from cntk.ops._names import ndcg_at_1 as ndcg_at_1

    __all__ += _names.__all__
else:

    def __getattr__(name: str) -> Any:
        if name in _OPERATORS:
            return plugins.ops.get(name)
        raise AttributeError(f"module 'cntk.metrics' has no metric '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_OPERATORS})
