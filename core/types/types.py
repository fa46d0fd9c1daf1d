"""Types of variables as objects: what ``Tensor[2,3]`` and ``Sequence[SparseTensor[9]]`` stand for, and how types print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..common.dtypes import is_float_type
from ..common.shape import Shape, UnknownDimension, is_concrete
from .axis import Axes, Axis
from .spec import BATCH, Spec

UNKNOWN_SHAPE: Shape = (UnknownDimension,)
"""Shape of a type of which no dimension is known; such a type prints as ``tensor``."""


@dataclass(frozen=True, slots=True)
class VariableType:
    """The properties that say which values a variable takes; a property that is left open is None.

    ``input_variable(**type)`` makes an input of the type: the given properties serve as keyword arguments.

    Attributes:
        shape: static shape, ``(-2,)`` when nothing is known of it.
        dtype: NumPy scalar type.
        needs_gradient: whether gradients are computed for the variable.
        is_sparse: whether data comes as CSR rows.
        dynamic_axes: dynamic axes, batch first.

    >>> from cntk.layers.typing import Tensor
    >>> kind = Tensor[2]
    >>> print(kind, kind.shape, list(kind.keys()))
    Tensor[2] (2,) ['shape', 'is_sparse', 'dynamic_axes']
    >>> C.input_variable(**kind)
    Input('Input...', [#], [2])
    """

    shape: Shape | None = None
    dtype: type[np.generic] | None = None
    needs_gradient: bool | None = None
    is_sparse: bool | None = None
    dynamic_axes: Axes | None = None

    def keys(self) -> Iterator[str]:
        """Names of the properties that are given."""
        return (field.name for field in fields(self) if getattr(self, field.name) is not None)

    __iter__ = None  # attributes are looked up by name

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def updated_with(self, **changes: Any) -> VariableType:
        """The same type with some properties changed."""
        return replace(self, **changes)

    @property
    def shape_is_known(self) -> bool:
        """Whether the shape is given; single dimensions may still be free or inferred."""
        return self.shape is not None and self.shape != UNKNOWN_SHAPE

    @property
    def is_concrete(self) -> bool:
        """Whether every dimension is a number."""
        return is_concrete(self.shape)

    def __call__(self) -> None:
        raise TypeError(f"abstract type {self} cannot be instantiated; use 'input_variable(**{self})' instead")

    def __str__(self) -> str:
        text = self._item()
        for axis in reversed(self.dynamic_axes or ()):
            if not axis.is_batch_axis:
                text = f"{_sequence_name(axis)}[{text}]"
        return text

    def _item(self) -> str:
        """The type without its sequence axes."""
        if not self.shape_is_known:
            return "tensor"
        if self.shape == ():
            return "float" if self.dtype is None else f"np.{self.dtype.__name__}"
        kind = "Sparse" if self.is_sparse else "" if self.dynamic_axes else "Parameter"
        dtype = "" if self.dtype in (None, np.float32) else f"np.{self.dtype.__name__},"
        return f"{kind}Tensor[{dtype}{','.join(map(str, self.shape or ()))}]"


def _sequence_name(axis: Axis) -> str:
    plain = axis == Axis.default_dynamic_axis() or not axis.is_dynamic_axis
    return "Sequence" if plain else f"SequenceOver[{axis.name}]"


def type_of(spec: Spec, needs_gradient: bool | None = None) -> VariableType:
    """The type of a value that the graph describes by *spec*."""
    return VariableType(
        shape=UNKNOWN_SHAPE if spec.shape is None else spec.shape,
        dtype=spec.dtype,
        needs_gradient=needs_gradient,
        is_sparse=spec.sparse,
        dynamic_axes=Axis.unknown_dynamic_axes() if spec.axes is None else spec.axes,
    )


def as_type(annotation: Any) -> VariableType | None:
    """Read an annotation: a type as it is, ``float`` and the NumPy float types as scalars; None for anything else."""
    if isinstance(annotation, VariableType):
        return annotation
    if annotation is float:
        return VariableType(shape=(), is_sparse=False, dynamic_axes=BATCH)
    if is_float_type(annotation):
        return VariableType(shape=(), dtype=annotation, is_sparse=False, dynamic_axes=BATCH)
    return None
