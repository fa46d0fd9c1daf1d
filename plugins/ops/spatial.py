"""Ops on images: padding, and moving blocks of pixels into the channels and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core.common.shape import Shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op, Traits
from ...core.operators.samples import operator, sample
from ...core.types.context import Context
from ...core.types.spec import Spec

CONSTANT_PAD, REFLECT_PAD, SYMMETRIC_PAD = 0, 1, 2


class Pad(Op):
    """Adds elements in front of and behind static axes."""

    op_name = "Pad"
    traits = Traits(recordable=True)
    padding_mode: int
    padding_head: tuple[int, ...]
    padding_foot: tuple[int, ...]
    padding_constant_value: float

    def infer(self, x: Spec) -> Spec:
        pads = list(zip(self.padding_head, self.padding_foot, strict=True))
        if len(pads) != x.rank:
            raise RuntimeError(f"the pattern has {len(pads)} pairs, but the operand {x.rank} axes; give a pair for each")
        for axis, (dim, pad) in enumerate(zip(x.dims, pads, strict=True)):
            room = dim - 1 if self.padding_mode == REFLECT_PAD else dim
            if self.padding_mode != CONSTANT_PAD and dim >= 0 and max(pad) > room:
                raise RuntimeError(f"axis {axis} of {dim} elements mirrors at most {room}, not {max(pad)}")
        return x.but(shape=tuple(dim if dim < 0 else dim + sum(pad) for dim, pad in zip(x.dims, pads, strict=True)))

    def forward(self, ctx: Context, out: Any, x: Any) -> None:
        if self.padding_mode == CONSTANT_PAD:
            out.fill(self.padding_constant_value)
        ctx.xp.copyto(out[self._inside(out.shape)], x)
        if self.padding_mode != CONSTANT_PAD:
            for edge, mirrored in self._mirrors(out.shape):
                ctx.xp.copyto(out[edge], out[mirrored])

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if self.padding_mode != CONSTANT_PAD:
            folded = ctx.scratch("folded", grad.shape, grad.dtype)
            ctx.xp.copyto(folded, grad)
            for edge, mirrored in reversed(list(self._mirrors(grad.shape))):
                folded[mirrored] += folded[edge]
            grad = folded
        ctx.xp.copyto(grads[0], grad[self._inside(grad.shape)])

    def _inside(self, shape: Shape) -> tuple[Any, ...]:
        """Index of the operand's elements in the result."""
        static = shape[len(shape) - len(self.padding_head) :]
        pads = zip(self.padding_head, self.padding_foot, static, strict=True)
        return (..., *(slice(head, dim - foot) for head, foot, dim in pads))

    def _mirrors(self, shape: Shape) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Indices of each strip of the padding and of the strip that it mirrors, axis by axis."""
        skip = 1 if self.padding_mode == REFLECT_PAD else 0
        rank = len(self.padding_head)
        for axis, (head, foot) in enumerate(zip(self.padding_head, self.padding_foot, strict=True)):
            behind = (slice(None),) * (rank - axis - 1)
            end = shape[len(shape) - rank + axis] - foot
            if head:
                yield (..., slice(head - 1, None, -1), *behind), (..., slice(head + skip, 2 * head + skip), *behind)
            if foot:
                yield (..., slice(end + foot - 1, end - 1, -1), *behind), (..., slice(end - skip - foot, end - skip), *behind)


class DepthToSpace(Op):
    """Spreads groups of channels over blocks of pixels."""

    op_name = "DepthToSpace"
    traits = Traits(recordable=True)
    block_size: int

    def infer(self, x: Spec) -> Spec:
        size = self.block_size
        channels, height, width = image_shape(x)
        if channels % (size * size) and channels >= 0:
            raise RuntimeError(f"the {channels} channels must be a multiple of {size * size} for blocks of {size} x {size} pixels")
        return x.but(shape=where_known(x.dims, (channels // size**2, height * size, width * size)))

    def forward(self, ctx: Context, out: Any, x: Any) -> None:
        ctx.xp.copyto(pixel_blocks(out, self.block_size), depth_blocks(x, self.block_size))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        ctx.xp.copyto(depth_blocks(grads[0], self.block_size), pixel_blocks(grad, self.block_size))


class SpaceToDepth(Op):
    """Gathers blocks of pixels in groups of channels."""

    op_name = "SpaceToDepth"
    traits = Traits(recordable=True)
    block_size: int

    def infer(self, x: Spec) -> Spec:
        size = self.block_size
        channels, height, width = image_shape(x)
        if any(dim >= 0 and dim % size for dim in (height, width)):
            raise RuntimeError(f"the {height} x {width} pixels must be multiples of the block size {size}")
        return x.but(shape=where_known(x.dims, (channels * size**2, height // size, width // size)))

    def forward(self, ctx: Context, out: Any, x: Any) -> None:
        ctx.xp.copyto(depth_blocks(out, self.block_size), pixel_blocks(x, self.block_size))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        ctx.xp.copyto(pixel_blocks(grads[0], self.block_size), depth_blocks(grad, self.block_size))


def image_shape(x: Spec) -> Shape:
    """Channels, height and width of an image operand.

    Raises:
        RuntimeError: it has not three axes.
    """
    if x.rank != 3:
        raise RuntimeError(f"the operand must be an image (channels, height, width), it has {x.rank} axes")
    return x.dims


def where_known(old: Shape, new: Shape) -> Shape:
    """The new dimensions, but for those that were computed from unknown ones."""
    return tuple(dim if dim < 0 else computed for dim, computed in zip(old, new, strict=True))


def pixel_blocks(image: Any, size: int) -> Any:
    """View an image as (channels, rows of blocks, row in block, columns of blocks, column in block)."""
    *rows, channels, height, width = image.shape
    return image.reshape(*rows, channels, height // size, size, width // size, size)


def depth_blocks(image: Any, size: int) -> Any:
    """View an image whose channels hold blocks the way :func:`pixel_blocks` views the image that is spread out."""
    *rows, depth, height, width = image.shape
    blocks = image.reshape(*rows, size, size, depth // size**2, height, width)
    first = len(rows)
    return blocks.transpose(*range(first), *(first + axis for axis in (2, 3, 0, 4, 1)))


# ---- public functions ----------------------------------------------------------------------------


@operator(
    sample((2, 3), pattern=[(1, 1), (2, 0)], expected=lambda x: np.pad(x, [(1, 1), (2, 0)])),
    sample((2, 3), pattern=[(0, 1), (0, 0)], constant_value=3, expected=lambda x: np.pad(x, [(0, 1), (0, 0)], constant_values=3)),
    sample((2, 3), pattern=[(1, 1), (2, 2)], mode=REFLECT_PAD, expected=lambda x: np.pad(x, [(1, 1), (2, 2)], "reflect")),
    sample((2, 3), pattern=[(1, 0), (2, 3)], mode=SYMMETRIC_PAD, expected=lambda x: np.pad(x, [(1, 0), (2, 3)], "symmetric")),
    sample((1,), pattern=[(0, 1)], mode=SYMMETRIC_PAD, expected=lambda x: np.pad(x, [(0, 1)], "symmetric")),
)
def pad(x: TensorLike, pattern: Sequence[Sequence[int]], mode: int = CONSTANT_PAD, constant_value: float = 0, name: str = "") -> Function:
    """Add elements in front of and behind each static axis.

    Args:
        x: operand of any static shape and dynamic axes.
        pattern: for each static axis, how many elements go in front and behind.
        mode: ``C.ops.CONSTANT_PAD`` (0) adds *constant_value*; ``REFLECT_PAD`` (1) mirrors the operand at its first and last
            element, ``SYMMETRIC_PAD`` (2) at its border, which repeats those elements.
        constant_value: the value that constant padding adds.
        name: name of the function.

    Returns:
        Function whose dimensions are the operand's plus the padding.

    Raises:
        ValueError: *pattern* does not hold pairs of numbers that are 0 or more, or *mode* is none of the three.
        RuntimeError: *pattern* does not have a pair for every axis, or an axis is too short to mirror so many elements.

    >>> C.pad(np.float32([1, 2, 3]), [(2, 1)]).eval()
    array([0., 0., 1., 2., 3., 0.], dtype=float32)
    >>> C.pad(np.float32([1, 2, 3]), [(2, 1)], mode=C.ops.REFLECT_PAD).eval()
    array([3., 2., 1., 2., 3., 2.], dtype=float32)
    """
    pairs = [tuple(pair) for pair in pattern]
    if any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ValueError(f"pad: pattern must hold a pair (in front, behind) of numbers >= 0 for each axis, got {pattern}")
    if mode not in (CONSTANT_PAD, REFLECT_PAD, SYMMETRIC_PAD):
        raise ValueError(f"pad: mode must be 0 (constant), 1 (reflect) or 2 (symmetric), got {mode!r}")
    head, foot = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    return Pad(padding_mode=mode, padding_head=head, padding_foot=foot, padding_constant_value=float(constant_value))(x, name=name)


@operator(
    sample((4, 2, 3), block_size=2, expected=lambda x: x.reshape(2, 2, 1, 2, 3).transpose(2, 3, 0, 4, 1).reshape(1, 4, 6)),
    sample((18, 1, 2), block_size=3, expected=lambda x: x.reshape(3, 3, 2, 1, 2).transpose(2, 3, 0, 4, 1).reshape(2, 3, 6)),
)
def depth_to_space(operand: TensorLike, block_size: int, name: str = "") -> Function:
    """Spread groups of channels over blocks of pixels, which makes an image larger (sub-pixel convolution).

    Args:
        operand: image of static shape ``(B * B * channels, height, width)`` for a block size ``B``; the first ``channels`` go to
            the upper left pixel of each block, the next to the pixel on its right, and so on.
        block_size: width and height of a block, in pixels.
        name: name of the function.

    Returns:
        Function of static shape ``(channels, B * height, B * width)``.

    Raises:
        ValueError: *block_size* is not a positive integer.
        RuntimeError: the operand has not three axes, or its channels do not make blocks.

    Source: Shi et al., "Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel Convolutional Neural
    Network", CVPR 2016.

    >>> x = np.arange(4, dtype=np.float32).reshape(4, 1, 1)
    >>> C.depth_to_space(x, 2).eval()
    array([[[0., 1.],
            [2., 3.]]], dtype=float32)
    """
    return DepthToSpace(block_size=_block_size("depth_to_space", block_size))(operand, name=name)


@operator(
    sample((1, 4, 6), block_size=2, expected=lambda x: x.reshape(1, 2, 2, 3, 2).transpose(2, 4, 0, 1, 3).reshape(4, 2, 3)),
    sample((2, 3, 6), block_size=3, expected=lambda x: x.reshape(2, 1, 3, 2, 3).transpose(2, 4, 0, 1, 3).reshape(18, 1, 2)),
)
def space_to_depth(operand: TensorLike, block_size: int, name: str = "") -> Function:
    """Gather blocks of pixels in groups of channels: the inverse of :func:`depth_to_space`.

    Args:
        operand: image of static shape ``(channels, B * height, B * width)`` for a block size ``B``.
        block_size: width and height of a block, in pixels.
        name: name of the function.

    Returns:
        Function of static shape ``(B * B * channels, height, width)``.

    Raises:
        ValueError: *block_size* is not a positive integer.
        RuntimeError: the operand has not three axes, or its height or width is not a multiple of the block size.

    >>> x = np.arange(4, dtype=np.float32).reshape(1, 2, 2)
    >>> C.space_to_depth(x, 2).eval().ravel()
    array([0., 1., 2., 3.], dtype=float32)
    """
    return SpaceToDepth(block_size=_block_size("space_to_depth", block_size))(operand, name=name)


def _block_size(op: str, size: float) -> int:
    if not float(size).is_integer() or size < 1:
        raise ValueError(f"{op}: block_size must be a positive integer, got {size}")
    return int(size)
