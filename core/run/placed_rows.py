"""Sparse inputs at places that stay, so that recorded work may read them.

Minibatches of one size have as many rows, but not as many entries.  Kernels find the entries of a row through the rows' starts; where there
is room for more entries than most minibatches have, the three arrays of CSR seldom move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..types.sparse import Parts, SparseRows

if TYPE_CHECKING:
    from ..common.shape import Shape
    from ..extension.backend import Backend


class PlacedRows(SparseRows):
    """A sparse input whose arrays begin where those of earlier minibatches did, as long as they find room there.

    Attributes:
        places: the memory; other memory, and another object, after data that took more room or had other types.
    """

    __slots__ = ("places",)

    def __init__(self, shape: Shape, dtype: Any, xp: Any) -> None:
        super().__init__(shape, dtype, xp)
        self.places: Parts | None = None

    def load(self, backend: Backend, parts: Parts) -> None:
        """Copy the data of a minibatch.

        Args:
            backend: where the arrays are.
            parts: data, indices and indptr on the host.
        """
        held = self.places
        if held is None or any(len(place) < len(part) or place.dtype != part.dtype for place, part in zip(held, parts, strict=True)):
            data, indices, indptr = (backend.empty((_room_for(len(part)),), part.dtype) for part in parts)
            held = self.places = data, indices, indptr
        data, indices, indptr = (place[: len(part)] for place, part in zip(held, parts, strict=True))
        for place, part in zip((data, indices, indptr), parts, strict=True):
            backend.load(place, part)
        self.set(data, indices, indptr, parts)


def _room_for(count: int) -> int:
    """The next power of two."""
    return 1 << max(count - 1, 0).bit_length()
