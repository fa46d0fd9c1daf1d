"""Values as CNTK's engine hands them to user functions, which ask ``value.shape()`` and ``value.data()``."""

from __future__ import annotations

from typing import Any

from .value import NDArrayView, Value


class AsMethods:
    """A value or view whose properties are methods; what these return of the two kinds is such an object, too.

    Attributes:
        value_to_feed: the value or view itself, which is accepted wherever data is.

    >>> from cntk.core.values.as_methods import AsMethods
    >>> value = AsMethods(C.Value(np.ones((2, 3), np.float32)))
    >>> value.shape(), value.data().as_shape((3, 2)).shape()
    ((2, 3), (3, 2))
    """

    __slots__ = ("value_to_feed",)

    def __init__(self, held: Value | NDArrayView) -> None:
        self.value_to_feed = held

    def mask(self) -> Any:
        """Array ``(sequences, longest)``: 2 at a sequence's start, 1 at its other steps, 0 for padding; None where nothing is padded."""
        return getattr(self.value_to_feed, "mask", None)

    def __getattr__(self, name: str) -> Any:
        held = self.value_to_feed
        if name.startswith("_"):
            raise AttributeError(name)
        if isinstance(getattr(type(held), name, None), property):
            return lambda: _as_methods(getattr(held, name))
        method = getattr(held, name)
        return lambda *args, **kwargs: _as_methods(method(*(getattr(arg, "value_to_feed", arg) for arg in args), **kwargs))

    def __len__(self) -> int:
        return len(self.value_to_feed)

    def __repr__(self) -> str:
        return repr(self.value_to_feed)


def _as_methods(found: Any) -> Any:
    return AsMethods(found) if isinstance(found, (Value, NDArrayView)) else found
