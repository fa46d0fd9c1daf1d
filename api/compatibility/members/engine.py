"""Members that objects of the engine have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def only_in_the_engine(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__}.{name} is part of CNTK's native engine, which is not here; {instead}")

    refuse.__name__ = name
    refuse.__doc__ = f"Part of the native engine; {instead}."
    return refuse


def as_string(self: Any) -> str:
    """The object as it is printed."""
    return repr(self)
