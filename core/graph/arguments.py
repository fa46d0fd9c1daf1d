"""What public functions take, as their annotations name it; arguments are checked where they are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..types.axis import Axis
from .initial_values import Initializer
from .tensor import ArrayMixin, TensorOps


class SupportsArray(Protocol):
    """An array of NumPy or of another library, such as a tensor of PyTorch or a series of pandas."""

    def __array__(self) -> Any: ...


class SupportsDLPack(Protocol):
    """An array that hands over its memory by DLPack."""

    def __dlpack__(self) -> Any: ...


class SupportsCSR(Protocol):
    """A sparse matrix, such as SciPy's."""

    def tocsr(self) -> Any: ...


Numbers = float | list[Any] | tuple[Any, ...] | SupportsArray | SupportsDLPack
"""Numbers: one of them, rows of equal length, or an array."""

TensorLike = TensorOps | ArrayMixin | Numbers
"""What operators take: a variable, a function with one result, or numbers, which become a constant."""

ShapeLike = int | Sequence[int]
"""A static shape; a number is that of one axis."""

DTypeLike = str | type[Any] | np.dtype[Any]
"""An element type: ``np.float32``, ``'float32'``, ``np.dtype('float32')`` and so on."""

InitLike = Initializer | Numbers
"""Initial values of a parameter: a number, an array, or an initialiser."""

FunctionLike = Callable[..., Any]
"""A Function, such as a layer, or a Python function of variables."""

Flags = bool | Sequence[bool]
"""True or False for all axes, or for each of them."""

ValueLike = ArrayMixin | Numbers | SupportsCSR
"""Values of a constant: a number, an array or a sparse matrix."""

AxesLike = Axis | Sequence[Axis]
"""Dynamic axes."""
