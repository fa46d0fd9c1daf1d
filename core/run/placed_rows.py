"""Sparse inputs at places that stay, so that recorded work may read them.

Minibatches of one size have as many rows, but not as many entries.  Kernels find the entries of a row through the rows' starts; where there
is room for more entries than most minibatches have, the arrays of CSR seldom move.  They lie side by side, so that one copy brings them.
What a gradient needs besides, the entries in the order of their columns, is found on the host and comes with the same copy, so that the
device neither sorts nor tells how many columns there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..types.columns import Columns, columns_of
from ..types.sparse import Parts, SparseRows

if TYPE_CHECKING:
    from ..common.shape import Shape
    from ..extension.backend import Backend


class PlacedRows(SparseRows):
    """A sparse input whose arrays begin where those of earlier minibatches did, as long as they find room there.

    Args:
        shape, dtype, xp: as of all sparse rows.
        room: the memory, which inputs of other sizes share.
    """

    __slots__ = ("_columns", "room")

    def __init__(self, shape: Shape, dtype: Any, xp: Any, room: Room) -> None:
        super().__init__(shape, dtype, xp)
        self.room = room
        self._columns: Columns | None = None

    @property
    def places(self) -> Places | None:
        """Where the arrays are: another object for other places."""
        return self.room.places

    @property
    def has_columns(self) -> bool:
        return True

    @property
    def columns(self) -> Columns:
        """The columns that hold values; they are brought with each minibatch from when they are first asked for."""
        if self._columns is None:
            assert self._host is not None
            self.room.has_columns = True
            self.load(self._host)
        assert self._columns is not None
        return self._columns

    def load(self, parts: Parts) -> None:
        """Copy the data of a minibatch: data, indices and indptr on the host."""
        columns = columns_of(*parts) if self.room.has_columns else None
        places = self.room.load(parts, columns)
        data, indices, indptr = (place[: len(part)] for place, part in zip(places.rows, parts, strict=True))
        self.set(data, indices, indptr, parts)
        self._columns = None
        if columns is not None:
            numbers, starts, rows, values, length = places.columns
            self._columns = Columns(numbers, starts, rows, values, length, columns.present)


class Places(NamedTuple):
    """Arrays for sparse rows, side by side.

    Attributes:
        memory: the memory.
        rows: data, indices and indptr, with room for more.
        columns: the arrays of their columns, with room for more; none where nobody has asked for columns.
        offsets: where each of these arrays begins.
    """

    memory: Any
    rows: Sequence[Any]
    columns: Sequence[Any]
    offsets: Sequence[int]


class Room:
    """The memory of a sparse input.

    Args:
        backend: where it is.

    Attributes:
        places: the arrays; other memory, and another object, after data that took more room or had other types.
        has_columns: whether columns are brought, too.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._host = np.empty(0, np.uint8)
        self.places: Places | None = None
        self.has_columns = False

    def load(self, rows: Parts, columns: Columns | None) -> Places:
        """Copy arrays of the host to their places, which move if there is too little room."""
        parts = [*rows, *(() if columns is None else columns[:-1])]
        places = self.places
        if places is None or not _fit(parts, [*places.rows, *places.columns]):
            places = self.places = self._reserve(parts)
        for part, offset in zip(parts, places.offsets, strict=True):
            self._host[offset : offset + part.nbytes].view(part.dtype)[...] = part
        self._backend.load(places.memory, self._host)
        return places

    def _reserve(self, parts: Sequence[Any]) -> Places:
        """Other memory, in which no array has less room than it had."""
        backend, held = self._backend, self.places
        before = [] if held is None else [len(place) for place in (*held.rows, *held.columns)]
        wanted = [_room_for(len(part)) for part in parts]
        rooms = list(map(max, wanted, [*before, *[0] * (len(parts) - len(before))]))
        offsets, end = [], 0
        for part, room in zip(parts, rooms, strict=True):
            offsets.append(end)
            end += -(-room * part.itemsize // backend.alignment) * backend.alignment
        self._host, memory = np.zeros(end, np.uint8), backend.allocate(end)
        arrays = [backend.view(memory, offset, (room,), part.dtype) for offset, room, part in zip(offsets, rooms, parts, strict=True)]
        return Places(memory, arrays[:3], arrays[3:], offsets)


def _fit(parts: Sequence[Any], places: Sequence[Any]) -> bool:
    """Whether arrays find their places."""
    return len(parts) == len(places) and all(
        len(part) <= len(place) and part.dtype == place.dtype for part, place in zip(parts, places, strict=True)
    )


def _room_for(count: int) -> int:
    """The next power of two."""
    return 1 << max(count - 1, 0).bit_length()
