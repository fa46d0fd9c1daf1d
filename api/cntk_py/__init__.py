"""Names of CNTK's native engine that programs use.

Modules here have what is made for it; other names are looked up in their modules by :mod:`cntk.compatibility.names`.
"""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'cntk.cntk_py' has no '{name}'")
