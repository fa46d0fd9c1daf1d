"""Axes divided into several of sizes that depend on the data, which a reshape of ours, of one such size, does not do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import Array, counting, known, numbers_to, take, unsqueeze
from .sizes import Size, product


def divided(x: Array, axis: int, dims: Sequence[Any]) -> Array:
    """An axis as several: elements are taken by their numbers.

    Args:
        x: the array, without a batch axis.
        axis: the axis.
        dims: the sizes that it is divided into.
    """
    return take(x, flat_numbers([numbers_along(dim, len(dims) - place - 1) for place, dim in enumerate(dims)], dims), axis)


def numbers_along(size: Any, behind: int) -> Array:
    """The numbers up to a size, with so many axes of size 1 behind them."""
    numbers = numbers_to(size) if isinstance(size, Size) else counting(size)
    return unsqueeze(numbers, list(range(1, behind + 1)))


def flat_numbers(places: Sequence[Array], dims: Sequence[Any]) -> Array:
    """The numbers of elements in an array that is laid out in one axis.

    Args:
        places: for each axis the numbers along it; they broadcast.
        dims: the sizes of the axes.
    """
    total: Any = None
    for at, place in enumerate(places):
        stride = product(dims[at + 1 :])
        steps = Array(place.dims, np.float32, place.known, place.variable, place.batch) if isinstance(stride, Size) else place
        moved = steps * (known(np.array(stride, object)) if isinstance(stride, Size) else stride)
        moved = Array(moved.dims, np.int64, moved.known, moved.variable, moved.batch)
        total = moved if total is None else total + moved
    return total
