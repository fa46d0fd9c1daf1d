"""The transforms of minimal filtering (Winograd): from patches of images, in vectors of channels, to the factors of products and back.

Four results of a filter of 3x3 weights, two by two, need 36 multiplications by its definition, and 16 if sums of the patch that they see
are multiplied by sums of the weights.

Source: S. Winograd, "Arithmetic complexity of computations", 1980; A. Lavin, S. Gray, "Fast algorithms for convolutional neural networks",
CVPR 2016, whose names the matrices have.
"""

from __future__ import annotations

from typing import Any

from ...core.machine.language import lowered_in

SIZE = 3
"""Weights of a filter along each axis."""

TAPS = SIZE * SIZE
"""Weights of a filter for a channel."""

Matrix = tuple[tuple[float, ...], ...]

B: Matrix = ((1, 0, 0, 0), (0, 1, -1, -1), (-1, 1, 1, 0), (0, 0, 0, 1))
"""What makes the sums of a patch of 4x4: the transposed matrix from the left, and the matrix from the right."""

G: Matrix = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))
"""What makes those of 3x3 weights: the matrix from the left, and the transposed one from the right."""

A: Matrix = ((1, 0), (1, 1), (1, -1), (0, 1))
"""What makes 2x2 results of the products: the transposed matrix from the left, and the matrix from the right."""


@lowered_in("patch_code")
def enter(source: int, row: int, pixel: int, target: int, step: int, like: Any) -> None:
    """Write the sums of a patch of 4x4 pixels.

    Args:
        source: address of the first pixel's vector.
        row, pixel: bytes from a row to the next, and from a pixel to the next.
        target, step: address of the first of 16 sums, and the bytes from one to the next.
        like: an array of the common element type.
    """


@lowered_in("patch_code")
def leave(source: int, step: int, bias: int, least: int, target: int, row: int, pixel: int, like: Any) -> None:
    """Write the 2x2 results of 16 products.

    Args:
        source, step: address of the first of 16 products, and the bytes from one to the next.
        bias: address of a vector that is added to each result.
        least: address of a vector below whose elements results do not fall.
        target: address of the first result.
        row, pixel, like: as for :func:`enter`.
    """


@lowered_in("patch_code")
def enter_gradient(source: int, row: int, pixel: int, target: int, step: int, like: Any) -> None:
    """Write the gradients of 16 products from those of 2x2 results."""


@lowered_in("patch_code")
def enter_filters(source: int, stride: int, is_turned: bool, target: int, step: int, like: Any) -> None:
    """Write the sums of some filters' 3x3 weights for one channel, a vector of filters.

    Args:
        source, stride: address of the first filter's weights, and the bytes from one filter's to the next.
        is_turned: whether weights are to be taken from last to first.
        target, step: address of the first of 16 sums, and the bytes from one to the next.
        like: an array of the common element type.
    """


@lowered_in("patch_code")
def leave_filters(source: int, step: int, target: int, stride: int, like: Any) -> None:
    """Write the gradients of a filter's 3x3 weights for some channels, a vector of them.

    Args:
        source, step: address of the first of the gradients of 16 sums, and the bytes from one to the next.
        target, stride: address of the first channel's weights, and the bytes from one channel's to the next.
        like: an array of the common element type.
    """


@lowered_in("patch_code")
def spread(source: int, stride: int, target: int, places: int, like: Any) -> None:
    """Transpose a square with as many rows as a vector has elements: its columns come here and there.

    Args:
        source, stride: address of the square, and the bytes from one row to the next.
        target: an address.
        places: address of a table that tells for each column how many bytes behind *target* it comes.
        like: an array of the common element type.
    """


@lowered_in("patch_code")
def collect(source: int, places: int, target: int, stride: int, like: Any) -> None:
    """The reverse: write a square whose columns lie here and there."""
