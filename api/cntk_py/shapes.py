"""Shapes and masks as objects of the engine."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from cntk.core.common.shape import FreeDimension, InferredDimension, Shape, UnknownDimension, as_shape, format_shape, size_of
from cntk.core.extension.device import DeviceDescriptor, use_default_device


class NDShape(tuple[int, ...]):
    """A shape, made of its dimensions from the last to the first, as the engine counts them, and read from the first to the last.

    It is a tuple, accepted wherever a shape is.

    >>> C.cntk_py.NDShape((2, 3)).dimensions(), C.cntk_py.NDShape((2, 3)).as_string()
    ((3, 2), '[3 x 2]')
    >>> C.cntk_py.NDShape(2, 5).dimensions()
    (5, 5)

    Args:
        dimensions: dimensions, the last axis first; or the number of axes.
        dimension: of each axis, where their number is given.
    """

    __slots__ = ()

    def __new__(cls, dimensions: Any = (), dimension: int = InferredDimension) -> NDShape:
        if isinstance(dimensions, int):
            return super().__new__(cls, (dimension,) * dimensions)
        return super().__new__(cls, reversed([operator.index(size) for size in dimensions]))

    def __getnewargs__(self) -> tuple[Shape]:
        return (tuple(reversed(self)),)

    @classmethod
    def of(cls, shape: Any) -> NDShape:
        """Of a shape whose dimensions go from the first axis to the last."""
        return cls(tuple(reversed(as_shape(shape))))

    @staticmethod
    def unknown() -> NDShape:
        """The shape of which nothing is known."""
        return NDShape((UnknownDimension,))

    def dimensions(self) -> Shape:
        """The dimensions from the first axis to the last."""
        return tuple(self)

    def rank(self) -> int:
        """Number of axes."""
        return len(self)

    def total_size(self) -> int:
        """Number of elements.

        Raises:
            ValueError: a dimension is not known.
        """
        if self.has_unbound_dimension() or self.is_unknown():
            raise ValueError(f"NDShape {self.as_string()}: the number of elements is not known while a dimension is not")
        return size_of(self.dimensions())

    def sub_shape(self, begin_axis: int = 0, end_axis: int | None = None) -> Shape:
        """Dimensions of some axes, which are counted from the last.

        >>> C.cntk_py.NDShape((2, 3, 4)).sub_shape(1)
        (4, 3)
        """
        return tuple(reversed(tuple(reversed(self))[begin_axis:end_axis]))

    def is_unknown(self) -> bool:
        """Whether nothing is known of it."""
        return self == (UnknownDimension,)

    def is_scalar(self) -> bool:
        """Whether there are no axes."""
        return not self

    def has_inferred_dimension(self) -> bool:
        """Whether a dimension is to be filled in by the graph."""
        return InferredDimension in self

    def has_free_dimension(self) -> bool:
        """Whether a dimension is decided by each minibatch."""
        return FreeDimension in self

    def has_unbound_dimension(self) -> bool:
        """Whether a dimension is inferred or free."""
        return self.has_inferred_dimension() or self.has_free_dimension()

    def as_string(self) -> str:
        """The shape as it is printed."""
        return format_shape(None if self.is_unknown() else self.dimensions())

    __str__ = as_string


class NDMask:
    """Marks each step of each sequence: 2 for the first of its sequence, 1 for others, 0 for padding.

    Args:
        shape: number of sequences and of steps.
        device: where it lives.
    """

    def __init__(self, shape: Any, device: DeviceDescriptor | None = None) -> None:
        self._device = device or use_default_device()
        self._kinds = np.ones(as_shape(shape), np.uint8)

    def shape(self) -> NDShape:
        """Number of sequences and steps."""
        return NDShape.of(self._kinds.shape)

    def device(self) -> DeviceDescriptor:
        """Where it lives."""
        return self._device

    def masked_count(self) -> int:
        """How many steps are padding."""
        return int((self._kinds == 0).sum())

    def invalidate_section(self, section_offset: Sequence[int], section_shape: Sequence[int]) -> None:
        """Make a block of steps padding.

        Args:
            section_offset: where it begins: step and sequence, as the engine counts them.
            section_shape: number of sequences and of steps.

        Raises:
            ValueError: it reaches outside the mask.

        >>> mask = C.cntk_py.NDMask((2, 3))
        >>> mask.invalidate_section([0, 1], (1, 2))
        >>> mask.asarray()
        array([[1, 1, 1],
               [0, 0, 1]], dtype=uint8)
        """
        self._kinds[self._section(section_offset, section_shape)] = 0

    def mark_sequence_begin(self, offset: Sequence[int], section_shape: Sequence[int] = (1, 1)) -> None:
        """Make steps the first of their sequences; arguments as of :meth:`invalidate_section`."""
        self._kinds[self._section(offset, section_shape)] = 2

    def clear(self) -> None:
        """Mark no step as padding."""
        self._kinds[...] = 1

    def asarray(self) -> Any:
        """The numbers as an array of the caller's own."""
        return self._kinds.copy()

    to_ndarray = asarray

    def deep_clone(self, device: DeviceDescriptor | None = None) -> NDMask:
        """A copy of the mask."""
        made = NDMask(self._kinds.shape, device or self._device)
        made.copy_from(self)
        return made

    def alias(self) -> NDMask:
        """A mask that shares its numbers with this one."""
        made = NDMask((), self._device)
        made._kinds = self._kinds
        return made

    def copy_from(self, source: NDMask) -> None:
        """Take the numbers of another mask of the same shape.

        Raises:
            ValueError: it has another shape.
        """
        if source._kinds.shape != self._kinds.shape:
            raise ValueError(f"NDMask.copy_from: expected a mask of shape {self._kinds.shape}, got {source._kinds.shape}")
        self._kinds[...] = source._kinds

    def _section(self, offset: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
        begins = tuple(reversed(offset))
        ends = tuple(begin + length for begin, length in zip(begins, shape, strict=True))
        if len(begins) != self._kinds.ndim or any(end > size for end, size in zip(ends, self._kinds.shape, strict=True)):
            raise ValueError(f"NDMask: a block of shape {tuple(shape)} at {begins} reaches outside the mask of shape {self._kinds.shape}")
        return tuple(map(slice, begins, ends))
