"""The functions of an array library, with sums of runs of rows by a kernel."""

from __future__ import annotations

from typing import Any

from . import segments


class Namespace:
    """The names of an array library, in which ``add`` is an :class:`Add`.

    Args:
        library: the library.
    """

    def __init__(self, library: Any) -> None:
        self._library, self.add = library, Add(library)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(self._library, name)
        return found


class Add:
    """An array library's ``add``, of which ``reduceat`` of floating-point numbers adds in a fixed order, as float64.

    Args:
        library: the library.
    """

    def __init__(self, library: Any) -> None:
        self._library, self._add = library, library.add

    def __call__(self, *operands: Any, **options: Any) -> Any:
        return self._add(*operands, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._add, name)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Return the sums of runs along an axis, each from one index up to the next; indices must be increasing."""
        xp = self._library
        if array.dtype.kind != "f":
            return self._add.reduceat(array, indices, axis, dtype, out)
        rows = xp.ascontiguousarray(xp.moveaxis(array, axis, 0))
        sums = xp.empty((len(indices), *rows.shape[1:]), array.dtype if dtype is None else dtype)
        segments.add_up(rows, xp.concatenate((indices, xp.full(1, len(rows), indices.dtype))), sums)
        result = xp.moveaxis(sums, 0, axis)
        if out is None:
            return result
        xp.copyto(out, result)
        return out
