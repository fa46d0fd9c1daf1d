"""Initial values of parameters: the protocol of initialisers, and the kernel's own, a constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.shape import Shape

Array = np.ndarray[Any, np.dtype[Any]]


class Initializer:
    """A recipe for the values of a parameter."""

    def fill(self, shape: Shape, dtype: Any) -> Array:
        """A new array of values.

        Raises:
            ValueError: the initialiser cannot fill *shape*.
        """
        raise NotImplementedError(f"{type(self).__name__}.fill")

    def seeded(self) -> Initializer:
        """The same initialiser with its seed chosen: it fills every array of one shape with the same values."""
        return self

    def with_rank(self, output_rank: int, filter_rank: int) -> Initializer:
        """The same initialiser with ranks filled in where it has any; see :func:`initializer_with_rank`."""
        return self


@dataclass(frozen=True)
class ConstantInitializer(Initializer):
    """One number everywhere."""

    value: float

    def fill(self, shape: Shape, dtype: Any) -> Array:
        return np.full(shape, self.value, dtype)

    def __repr__(self) -> str:
        return f"constant({self.value})"
