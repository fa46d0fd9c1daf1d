"""Specs: what is known about values before there is data: shape, element type, dynamic axes, sparseness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.shape import InferredDimension, Shape, format_shape, is_concrete
from .axis import Axes, Axis, format_axes


@dataclass(frozen=True, slots=True)
class Spec:
    """Type of a value in a graph.

    Attributes:
        shape: static shape; None while nothing is known (placeholders). Dimensions may be -1 (inferred) or -3 (free).
        dtype: NumPy scalar type; None while unknown.
        axes: dynamic axes, batch first; None while unknown, ``()`` for a value that is the same for every sample.
        sparse: whether data comes as CSR rows.

    >>> from cntk.extend import Spec
    >>> spec = C.sequence.input_variable((2, 3)).spec
    >>> print(spec.but(shape=(6,)))
    [#, *], [6]
    >>> Spec().is_known, spec.is_known
    (False, True)
    """

    shape: Shape | None = None
    dtype: type[np.generic] | None = None
    axes: Axes | None = None
    sparse: bool = False

    @property
    def rank(self) -> int:
        """Number of static axes of a known shape."""
        assert self.shape is not None
        return len(self.shape)

    @property
    def dims(self) -> Shape:
        """The shape, where the caller knows it to be known (always so inside ``Op.infer``)."""
        assert self.shape is not None
        return self.shape

    @property
    def is_concrete(self) -> bool:
        """Whether every dimension is a number."""
        return is_concrete(self.shape)

    @property
    def is_known(self) -> bool:
        """Whether there is nothing left to infer; dimensions may be free."""
        return self.shape is not None and InferredDimension not in self.shape and self.dtype is not None and self.axes is not None

    def but(self, **changes: Any) -> Spec:
        """The same spec with some fields changed; the result is dense unless *sparse* is set.

        >>> from cntk.extend import Spec
        >>> print(C.input_variable((2, 3)).spec.but(shape=(6,)))
        [#], [6]
        """
        return Spec(**{"shape": self.shape, "dtype": self.dtype, "axes": self.axes, **changes})

    def __str__(self) -> str:
        kind = "sparse " if self.sparse else ""
        return f"{kind}{format_axes(self.axes)}, {format_shape(self.shape)}"


def merge_axes(specs: Iterable[Spec]) -> Axes | None:
    """Dynamic axes of a result computed from several operands: none < batch < batch and sequence.

    Raises:
        ValueError: two operands have different sequence axes.
    """
    merged: Axes = ()
    unknown = False
    for spec in specs:
        if spec.axes is None:
            unknown = True
        elif len(spec.axes) > len(merged):
            short, merged = merged, spec.axes
            _check_prefix(short, merged)
        else:
            _check_prefix(spec.axes, merged)
    return None if unknown else merged


class DynamicAxesError(ValueError):
    """Dynamic axes of operands are incompatible."""


def _check_prefix(short: Axes, long: Axes) -> None:
    if short != long[: len(short)] and short and not set(short) <= set(long):
        raise DynamicAxesError(
            f"operands have the dynamic axes {format_axes(short)} and {format_axes(long)}, which do not combine: sequences on them may "
            "have different lengths; where they have the same ones say so with reconcile_dynamic_axes(x, y), else reduce one of them "
            "with sequence.last, sequence.reduce_sum or the like and repeat it with sequence.broadcast_as(x, y)"
        )


def merge_dtypes(specs: Iterable[Spec]) -> type[np.generic] | None:
    """The element type that all operands share.

    Raises:
        ValueError: two operands have different element types.
    """
    found: type[np.generic] | None = None
    for spec in specs:
        if spec.dtype is None:
            continue
        if found is not None and found is not spec.dtype:
            raise ValueError(
                f"operands have the data types {found.__name__} and {spec.dtype.__name__}; use cast to bring them to one type, or make "
                "them of one, with dtype= of input_variable and parameter and C.default_options(dtype=...) for layers"
            )
        found = spec.dtype
    return found


BATCH: Axes = (Axis.default_batch_axis(),)
