"""Axes: static ones, known by number, and dynamic ones (batch, sequence), known by name."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

UNCHECKED_INDEX = 2**31 - 1
_NEW_LEADING = UNCHECKED_INDEX - 1


class Axis:
    """An axis of a tensor: ``Axis(1)`` is the second static axis, ``Axis('time')`` a named sequence axis.

    Axes compare by what they denote, so they serve as dictionary keys.

    >>> Axis(1)
    Axis('staticAxisIdx=1')
    >>> Axis.default_batch_axis()
    Axis('defaultBatchAxis')
    """

    __slots__ = ("_index", "_name", "_ordered")
    _BATCH: ClassVar[str] = "defaultBatchAxis"
    _SEQUENCE: ClassVar[str] = "defaultDynamicAxis"
    _MARKERS: ClassVar[tuple[str, ...]] = ("AllStaticAxes", "AllAxes", "UnknownAxes")
    _taken: ClassVar[set[str]] = set()

    def __init__(self, index_or_name: int | str, is_ordered: bool = True) -> None:
        if isinstance(index_or_name, str):
            self._name, self._index = index_or_name, None
            self._ordered = is_ordered and index_or_name != self._BATCH
            self._taken.add(index_or_name)
        elif isinstance(index_or_name, int) and not isinstance(index_or_name, bool):
            self._name, self._index, self._ordered = f"staticAxisIdx={index_or_name}", index_or_name, True
        else:
            raise TypeError(f"Axis: expected the number of a static axis or the name of a dynamic one, got {index_or_name!r}")

    @property
    def name(self) -> str:
        """Name of the axis; static axes are called ``staticAxisIdx=n``."""
        return self._name

    @property
    def is_static_axis(self) -> bool:
        """Whether this is an axis of the tensor's shape."""
        return self._index is not None

    @property
    def is_dynamic_axis(self) -> bool:
        """Whether this is a batch or sequence axis."""
        return self._index is None and self._name not in self._MARKERS

    @property
    def is_batch_axis(self) -> bool:
        """Whether this is the batch axis."""
        return self.is_dynamic_axis and not self._ordered

    @property
    def is_sequence_axis(self) -> bool:
        """Whether this is a sequence axis."""
        return self.is_dynamic_axis and self._ordered

    @property
    def is_ordered(self) -> bool:
        """Whether positions on the axis have an order: true for all but the batch axis."""
        return self._ordered

    def static_axis_index(self, checked: bool = True) -> int:
        """Number of a static axis.

        Raises:
            ValueError: the axis is not static and *checked* is true.
        """
        if self._index is None:
            if checked:
                raise ValueError(f"{self!r} is not a static axis and has no index")
            return UNCHECKED_INDEX
        return self._index

    @staticmethod
    def default_batch_axis() -> Axis:
        """The batch axis."""
        return _BATCH_AXIS

    @staticmethod
    def default_dynamic_axis() -> Axis:
        """The default sequence axis."""
        return _SEQUENCE_AXIS

    @staticmethod
    def default_input_variable_dynamic_axes() -> tuple[Axis, Axis]:
        """Axes of a sequence input: batch, then the default sequence axis."""
        return (_BATCH_AXIS, _SEQUENCE_AXIS)

    @staticmethod
    def all_static_axes() -> Axis:
        """Marker for reductions over every static axis."""
        return _ALL_STATIC

    @staticmethod
    def all_axes() -> Axis:
        """Marker for reductions over every axis, static and dynamic."""
        return _ALL

    @staticmethod
    def unknown_dynamic_axes() -> tuple[Axis]:
        """What a placeholder shows as its dynamic axes."""
        return (_UNKNOWN,)

    @staticmethod
    def new_leading_axis() -> Axis:
        """Marker for splice, reshape and expand_dims: a new first static axis."""
        return _LEADING

    @staticmethod
    def new_unique_dynamic_axis(name: str) -> Axis:
        """A new sequence axis called *name*, with a number appended when the name is taken.

        >>> source, target = (C.Axis.new_unique_dynamic_axis('steps') for _ in range(2))
        >>> source == target, C.sequence.input_variable(2, sequence_axis=source).dynamic_axes[1] == source
        (False, True)
        """
        if name not in Axis._taken:
            return Axis(name)
        return Axis(next(f"{name}{n}" for n in itertools.count(1) if f"{name}{n}" not in Axis._taken))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and (self._name, self._ordered) == (other._name, other._ordered)

    def __hash__(self) -> int:
        return hash(self._name)

    def __reduce__(self) -> Any:
        return Axis, (self._name, self._ordered) if self._index is None else (self._index,)

    def __repr__(self) -> str:
        return f"Axis('{self._name}')"

    __str__ = __repr__


_BATCH_AXIS = Axis(Axis._BATCH, is_ordered=False)
_SEQUENCE_AXIS = Axis(Axis._SEQUENCE)
_ALL_STATIC = Axis("AllStaticAxes")
_ALL = Axis("AllAxes")
_UNKNOWN = Axis("UnknownAxes")
_LEADING = Axis(_NEW_LEADING)

Axes = tuple[Axis, ...]


def format_axes(axes: Axes | None) -> str:
    """Print dynamic axes the way CNTK does: ``[#]``, ``[#, *]``, ``[#, name]``, ``[]``, ``[???]``."""
    if axes is None:
        return "[???]"

    def mark(axis: Axis) -> str:
        return "#" if axis.is_batch_axis else "*" if axis == _SEQUENCE_AXIS else axis.name

    return "[" + ", ".join(mark(axis) for axis in axes) + "]"


def static_axis_number(axis: int | Axis, rank: int, op: str, *, new: bool = False) -> int:
    """Turn an axis argument into a number in ``0 … rank-1`` (``… rank`` when it may name a *new* axis).

    Raises:
        ValueError: the axis is dynamic or outside the shape.
    """
    index = axis.static_axis_index() if isinstance(axis, Axis) else int(axis)
    if index == _NEW_LEADING:
        return -1 if new else 0
    positive = index + rank if index < 0 else index
    if not 0 <= positive < rank + new:
        raise ValueError(f"{op}: axis {index} is outside a shape of {rank} axes; they count from 0, without the batch axis")
    return positive
