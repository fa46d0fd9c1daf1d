"""CNTK's native engine under the name of its library; see :mod:`cntk.cntk_py`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from cntk import cntk_py

    return getattr(cntk_py, name)


def __dir__() -> list[str]:
    from cntk import cntk_py

    return dir(cntk_py)
