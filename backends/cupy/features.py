"""Normalisation of features: two kernels forward and two backward, the first of which adds up, the second normalises.

An array is seen as ``(rows, features, places)``.  Each feature's numbers are divided into pieces, one for a block; the second kernel adds
up the sums of a feature's pieces in each of its blocks.  How many pieces there are depends on sizes and alignment alone.

Squares are taken of differences from the feature's first number, so that the variance keeps its digits however large the mean is: as
the first number is one of n, the square of its distance from the mean is at most n times the variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .compiler import INDEX_NAMES, THREADS, Kernel, compile, index_type
from .features_text import backward_text, forward_text

AT_WORK = 1024
"""Blocks that keep a large GPU busy."""

SHORTEST = 2
"""Minimum number of packs per thread of a piece."""

PACK = 16
"""Bytes that a thread loads at once."""


class Shape(NamedTuple):
    """Distribution of the features over blocks.

    Attributes:
        columns: number of features that adjacent threads handle; 1 if a feature has several places, which then are adjacent.
        width: elements in a pack, which a thread loads at once.
        tiles: number of blocks that handle all features once.
        pieces: number of pieces into which the packs of a feature are divided.
        length: number of packs per piece.
    """

    columns: int
    width: int
    tiles: int
    pieces: int
    length: int


def shape_of(rows: int, features: int, places: int, width: int) -> Shape:
    """Return the distribution of an array ``(rows, features, places)`` in packs of *width* elements.

    >>> from cntk.backends.cupy.features import shape_of
    >>> shape_of(64, 16, 1024, 4)
    Shape(columns=1, width=4, tiles=16, pieces=32, length=512)
    >>> shape_of(256, 400, 1, 1)
    Shape(columns=32, width=1, tiles=13, pieces=16, length=16)
    """
    columns = 1 if places > 1 else min(32, 1 << (features - 1).bit_length())
    packs, tiles = rows * places // width, -(-features // columns)
    pieces = max(1, min(AT_WORK // tiles, packs // (THREADS // columns * SHORTEST)))
    length = -(-packs // pieces)
    return Shape(columns, width, tiles, -(-packs // length), length)


def width_of(places: int, *arrays: Any) -> int:
    """Return how many elements of a feature a thread can load at once from each of the arrays, which have one type."""
    width = PACK // arrays[0].dtype.itemsize
    is_aligned = all(array.data.ptr % PACK == 0 for array in arrays)
    return width if is_aligned and places % width == 0 else 1


class Forward(NamedTuple):
    """The arrays of a forward pass.

    Attributes:
        x, y: operand and result, ``(rows, features, places)``.
        scale, bias, running_mean, running_variance: a number for each feature.
        running_count: the number of samples seen.
        mean, inverse: mean and inverse deviation of each feature, kept for the gradients.
    """

    x: Any
    y: Any
    scale: Any
    bias: Any
    running_mean: Any
    running_variance: Any
    running_count: Any
    mean: Any
    inverse: Any


class Backward(NamedTuple):
    """The arrays of a backward pass.

    Attributes:
        x, dy, dx: the operand, and the gradients of result and operand, ``(rows, features, places)``; *dx* may be None.
        scale, mean, inverse: as in the forward pass.
        dscale, dbias: gradients of scale and bias, or None.
    """

    x: Any
    dy: Any
    dx: Any
    scale: Any
    mean: Any
    inverse: Any
    dscale: Any
    dbias: Any


class Weight(NamedTuple):
    """The weight of a minibatch in the running statistics.

    Attributes:
        place: a double in device memory that holds it.
        usual: what it is, except of the first minibatch, which is taken whole; None if all samples so far weigh the same.
    """

    place: Any
    usual: float | None


Pieces = Callable[[int], Any]
"""Returns device memory for so many sums, of two doubles each."""


def forward(arrays: Forward, pieces_for: Pieces, weight: Weight, epsilon: float) -> list[Callable[[], None]]:
    """Return functions that, called in order, normalise the operand and move the running statistics.

    Args:
        arrays: the arrays.
        pieces_for: returns memory for the sums of pieces.
        weight: the weight of the minibatch.
        epsilon: added to the variance.
    """
    x, y, *vectors, mean, inverse = arrays
    rows, _, places = x.shape
    split = _Split(x, width_of(places, x, y))
    scale, bias, running_mean, running_variance, count = vectors
    made = split.compiled(forward_text, vectors)
    pieces, real, values = pieces_for(split.sums), mean.dtype.type, rows * places
    counted = count, weight.place, np.float64(rows), np.float64(-1 if weight.usual is None else weight.usual)
    moved = scale, bias, running_mean, running_variance, mean, inverse, weight.place
    numbers = real(epsilon), real(values / max(values - 1, 1))
    return [
        made("measure").bound(split.grid, THREADS, x, *split.sizes, pieces, *counted),
        made("normalise").bound(split.grid, THREADS, x, y, *split.sizes, pieces, split.pieces, *moved, *numbers),
    ]


def backward(arrays: Backward, pieces_for: Pieces) -> list[Callable[[], None]]:
    """Return functions that, called in order, compute the gradients.

    Args:
        arrays: the arrays.
        pieces_for: returns memory for the sums of pieces.
    """
    x, dy, dx, scale, mean, inverse, dscale, dbias = arrays
    split = _Split(x, width_of(x.shape[2], *(array for array in (x, dy, dx) if array is not None)))
    made = split.compiled(backward_text, (scale, scale if dbias is None else dbias))
    pieces = pieces_for(split.sums)
    grid = split.grid if dx is not None else (split.grid[0], 1)
    vectors = scale, mean, inverse, dscale, dbias
    return [
        made("add_up").bound(split.grid, THREADS, x, dy, *split.sizes, mean, pieces),
        made("differentiate").bound(grid, THREADS, x, dy, dx, *split.sizes, pieces, split.pieces, *vectors),
    ]


class _Split:
    """An array ``(rows, features, places)`` divided over blocks, and that as arguments of kernels.

    Args:
        x: the array.
        width: elements in a pack.

    Attributes:
        grid: the blocks.
        sizes: packs of a feature, packs of a piece, and features.
        pieces: pieces of a feature.
        sums: number of sums of all pieces.
    """

    def __init__(self, x: Any, width: int) -> None:
        rows, features, places = x.shape
        shape = shape_of(rows, features, places, width)
        size = index_type(x.size)
        self.grid = shape.tiles, shape.pieces
        self.sizes = size(rows * places // width), size(shape.length), size(features)
        self.pieces, self.sums = size(shape.pieces), shape.pieces * features
        self._layout = x.dtype, INDEX_NAMES[size], shape.columns, width, places // width

    def compiled(self, text: Callable[..., str], vectors: Sequence[Any]) -> Callable[[str], Kernel]:
        """Return a function that returns the kernels of a text by name."""
        return partial(compile, text(*self._layout, [vector.dtype for vector in vectors]))
