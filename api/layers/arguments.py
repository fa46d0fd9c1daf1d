"""Arguments of layers: expanding single values, choosing initialisers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cntk.core.common.shape import InferredDimension, Shape
from cntk.core.graph.tensor import TensorOps
from cntk.initializer import initializer_with_rank
from cntk.layers.basic_blocks import identity
from cntk.plugins.initializers import Initializer, constant

INFERRED: Shape = (InferredDimension,)
"""Shape of one axis whose dimension the layer's input tells."""


def as_tuple(value: Any) -> tuple[Any, ...]:
    """The value as a tuple; a single value, or a string, as a tuple of one."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, (str, TensorOps)) else (value,)


def per_axis(layer: str, argument: str, value: Any, rank: int) -> tuple[Any, ...]:
    """The value of each of *rank* axes; a single value is that of all.

    Raises:
        ValueError: the number of values is neither 1 nor *rank*.
    """
    values = as_tuple(value)
    if len(values) == 1:
        return values * rank
    if len(values) != rank:
        raise ValueError(
            f"{layer}: {argument} {value} has {len(values)} values; give one, or one for each of the {rank} axes of the filter"
        )
    return values


def shape_of_rank(layer: str, filter_shape: Any, rank: int) -> tuple[int, ...]:
    """The shape of a filter of *rank* axes; one size is that of all.

    Raises:
        ValueError: it has another number of axes.
    """
    return per_axis(layer, "filter_shape", filter_shape, rank)


def activation_for(layer: str, activation: Any) -> Any:
    """The function that an ``activation`` argument means; None is the identity.

    Raises:
        TypeError: it is not a function.
    """
    if activation is None:
        return identity
    if not callable(activation):
        raise TypeError(f"{layer}: activation must be a function such as relu, got {type(activation).__name__} {activation!r:.80}")
    return activation


def initializer_for(init: Any, **ranks: int) -> Initializer:
    """The initialiser that an ``init`` argument means, with the ranks of the layer's parameter.

    Raises:
        ValueError: *init* is None.
        TypeError: *init* is neither a number nor an initialiser.
    """
    if init is None:
        raise ValueError("init is None; give a number or an initializer such as glorot_uniform()")
    if np.isscalar(init):
        return constant(init)  # type: ignore[arg-type]
    return initializer_with_rank(init, **ranks)
