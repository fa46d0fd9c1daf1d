"""The hearts of minimal filtering: patches of images, vectors of channels, go to what is multiplied and back.

Four results of a filter of 3x3 weights, two by two, need 36 multiplications by its definition, and 16 if sums of the patch that they see
are multiplied by sums of the weights.

Source: S. Winograd, "Arithmetic complexity of computations", 1980; A. Lavin, S. Gray, "Fast algorithms for convolutional neural networks",
CVPR 2016, whose names the matrices have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .language import means

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


def enter(source: int, row: int, pixel: int, target: int, step: int, like: Any) -> None:
    """Write the sums of a patch of 4x4 pixels; in compiled code only.

    Args:
        source: address of the first pixel's vector.
        row, pixel: bytes from a row to the next, and from a pixel to the next.
        target, step: address of the first of 16 sums, and the bytes from one to the next.
        like: an array of the type that all is in.
    """
    raise NotImplementedError("enter is called from compiled code only")


def leave(source: int, step: int, bias: int, least: int, target: int, row: int, pixel: int, like: Any) -> None:
    """Write the 2x2 results of 16 products; in compiled code only.

    Args:
        source, step: address of the first of 16 products, and the bytes from one to the next.
        bias: address of a vector that is added to each result.
        least: address of a vector below whose elements results do not fall.
        target: address of the first result.
        row, pixel, like: as for :func:`enter`.
    """
    raise NotImplementedError("leave is called from compiled code only")


def enter_gradient(source: int, row: int, pixel: int, target: int, step: int, like: Any) -> None:
    """Write the gradients of 16 products from those of 2x2 results; in compiled code only."""
    raise NotImplementedError("enter_gradient is called from compiled code only")


def enter_filters(source: int, stride: int, is_turned: bool, target: int, step: int, like: Any) -> None:
    """Write the sums of some filters' 3x3 weights for one channel, a vector of filters; in compiled code only.

    Args:
        source, stride: address of the first filter's weights, and the bytes from one filter's to the next.
        is_turned: whether weights are to be taken from last to first.
        target, step: address of the first of 16 sums, and the bytes from one to the next.
        like: an array of the type that all is in.
    """
    raise NotImplementedError("enter_filters is called from compiled code only")


def leave_filters(source: int, step: int, target: int, stride: int, like: Any) -> None:
    """Write the gradients of a filter's 3x3 weights for some channels, a vector of them; in compiled code only.

    Args:
        source, step: address of the first of the gradients of 16 sums, and the bytes from one to the next.
        target, stride: address of the first channel's weights, and the bytes from one channel's to the next.
        like: an array of the type that all is in.
    """
    raise NotImplementedError("leave_filters is called from compiled code only")


def spread(source: int, stride: int, target: int, places: int, like: Any) -> None:
    """Transpose a square with as many rows as a vector has elements: its columns come here and there; in compiled code only.

    Args:
        source, stride: address of the square, and the bytes from one row to the next.
        target: an address.
        places: address of a table that tells for each column how many bytes behind *target* it comes.
        like: an array of the type that all is in.
    """
    raise NotImplementedError("spread is called from compiled code only")


def collect(source: int, places: int, target: int, stride: int, like: Any) -> None:
    """The reverse: write a square whose columns lie here and there; in compiled code only."""
    raise NotImplementedError("collect is called from compiled code only")


@means(enter)
def _enter(source: Any, row: Any, pixel: Any, target: Any, step: Any, like: Any) -> Callable[..., Any]:
    from .patch_code import enter

    return lambda source, row, pixel, target, step, like: enter(source, row, pixel, target, step, like)


@means(leave)
def _leave(source: Any, step: Any, bias: Any, least: Any, target: Any, row: Any, pixel: Any, like: Any) -> Callable[..., Any]:
    from .patch_code import leave

    return lambda source, step, bias, least, target, row, pixel, like: leave(source, step, bias, least, target, row, pixel, like)


@means(enter_gradient)
def _enter_gradient(source: Any, row: Any, pixel: Any, target: Any, step: Any, like: Any) -> Callable[..., Any]:
    from .patch_code import enter_gradient

    return lambda source, row, pixel, target, step, like: enter_gradient(source, row, pixel, target, step, like)


@means(enter_filters)
def _enter_filters(source: Any, stride: Any, is_turned: Any, target: Any, step: Any, like: Any) -> Callable[..., Any]:
    from .patch_code import enter_filters

    return lambda source, stride, is_turned, target, step, like: enter_filters(source, stride, is_turned, target, step, like)


@means(leave_filters)
def _leave_filters(source: Any, step: Any, target: Any, stride: Any, like: Any) -> Callable[..., Any]:
    from .patch_code import leave_filters

    return lambda source, step, target, stride, like: leave_filters(source, step, target, stride, like)


@means(spread)
def _spread(source: Any, stride: Any, target: Any, places: Any, like: Any) -> Callable[..., Any]:
    from .patch_code import spread

    return lambda source, stride, target, places, like: spread(source, stride, target, places, like)


@means(collect)
def _collect(source: Any, places: Any, target: Any, stride: Any, like: Any) -> Callable[..., Any]:
    from .patch_code import collect

    return lambda source, places, target, stride, like: collect(source, places, target, stride, like)
