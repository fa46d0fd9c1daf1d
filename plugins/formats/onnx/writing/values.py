"""What values are in a graph that is being written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .....core.common.shape import Shape
from .....core.types.axis import Axes


@dataclass(frozen=True)
class Value:
    """A value of the graph.  Its dynamic axes come first, each as one axis: ``[batch, time, ...]``.

    Attributes:
        name: name in the file.
        shape: sizes of the static axes; -3 for those that are known with the data.
        dtype: element type.
        axes: the dynamic axes that it has in the file.  In the body of a recurrence the steps are not among them.
        indices: whether it holds the number of the one element that is 1 in place of ``shape``'s last axis; a number that is none of an
            element stands for zeros.
    """

    name: str
    shape: Shape
    dtype: Any
    axes: Axes
    indices: bool = False

    @property
    def leading(self) -> int:
        """How many dynamic axes there are."""
        return len(self.axes)

    @property
    def rank(self) -> int:
        """Number of all axes."""
        return len(self.axes) + len(self.shape)

    def called(self, name: str) -> Value:
        """A value of the same type under another name."""
        return replace(self, name=name)

    def as_indices(self) -> Value:
        """A value of the same type that holds numbers of elements."""
        return replace(self, indices=True)

    def axis(self, number: int) -> int:
        """The number in the file of a static axis, which may be counted from the end."""
        return self.leading + (number if number >= 0 else number + len(self.shape))
