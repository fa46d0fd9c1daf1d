"""Casting of engine objects, which CNTK programs decorate functions with; here every object is of its public class from the start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def typemap(f: F) -> F:
    """Decorator of functions that return engine objects; nothing is to be cast here, so it returns *f*.

    >>> @C.internal.typemap
    ... def double(x):
    ...     return x * 2
    >>> double(2)
    4
    """
    return f


def map_if_possible(obj: Any) -> None:
    """Cast an engine object in place; nothing is to be cast here.

    >>> C.internal.map_if_possible(C.input_variable(2))
    """


__all__ = ["map_if_possible", "typemap"]
