"""Writes operators on images: padding, cutting, blocks of pixels, and pooling of regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....ops.spatial import CONSTANT_PAD, REFLECT_PAD
from .shaping import FIRST
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def pad(op: Any, to: ModelWriter, x: Value) -> str:
    """Write elements in front of and behind static axes."""
    if op.padding_mode in (CONSTANT_PAD, REFLECT_PAD):
        dynamic = (0,) * x.leading
        pads = to.integers(*dynamic, *op.padding_head, *dynamic, *op.padding_foot)
        if op.padding_mode == REFLECT_PAD:
            return str(to.node("Pad", x.name, pads, mode="reflect"))
        return str(to.node("Pad", x.name, pads, to.constant(op.padding_constant_value, x.dtype)))
    made = x.name
    for axis, (head, foot) in enumerate(zip(op.padding_head, op.padding_foot, strict=True), x.leading):
        front = [_part(to, made, axis, head - 1, FIRST)] if head else []
        behind = [_part(to, made, axis, -1, -foot - 1)] if foot else []
        if front or behind:
            made = str(to.node("Concat", *front, made, *behind, axis=axis))
    return made


def _part(to: ModelWriter, x: str, axis: int, start: int, end: int) -> str:
    """A part of an axis, backwards."""
    return str(to.node("Slice", x, to.integers(start), to.integers(end), to.integers(axis), to.integers(-1)))


def depth_to_space(op: Any, to: ModelWriter, x: Value) -> str:
    """Write groups of channels as blocks of pixels."""
    return _blocks("DepthToSpace", op, to, x)


def space_to_depth(op: Any, to: ModelWriter, x: Value) -> str:
    """Write blocks of pixels as groups of channels."""
    return _blocks("SpaceToDepth", op, to, x)


def _blocks(op_type: str, op: Any, to: ModelWriter, x: Value) -> str:
    made = str(to.node(op_type, to.merged(x), blocksize=op.block_size))
    return made if x.leading == 1 else to.split(made, x, to.result.shape)


def crop(op: Any, to: ModelWriter, image: Value, referent: Value) -> str:
    """Write an image cut to the size of another."""
    offsets = op.offset[::-1]
    sizes = to.static_sizes(referent)[-2:]
    ends = [
        begin + size if isinstance(size, int) else to.node("Add", size, to.integers(begin))
        for begin, size in zip(offsets, sizes, strict=True)
    ]
    cut = str(to.node("Slice", image.name, to.integers(*offsets), to.shape(ends), to.integers(image.rank - 2, image.rank - 1)))
    return to.spread(image.called(cut), to.result.axes).name


def region_pooling(op: Any, to: ModelWriter, x: Value, regions: Value) -> str:
    """Write the maxima of the parts of regions.

    Each part is written as a region of its own, of which the maximum is one number: its edges are whole pixels then, where programs
    divide regions in floating point.
    """
    result = to.result
    x, regions = (to.spread(one, result.axes) for one in (x, regions))
    channels, (height, width) = x.shape[0], op.roi_output_shape
    corners = to.cast(to.merged(regions), np.float64)
    scaled = to.node("Mul", corners, to.constant(op.spatial_scale, np.float64))
    half = to.node("Mul", to.node("Sign", scaled), to.constant(0.5, np.float64))
    pixels = to.cast(to.node("Add", scaled, half), np.int64)  # halves away from zero
    left, top, right, bottom = to.node("Split", pixels, to.integers(1, 1, 1, 1), outputs=4, axis=2)
    columns, rows = _edges(to, left, right, width), _edges(to, top, bottom, height)
    parts = [
        to.unsqueeze(columns[0], [2]),
        to.unsqueeze(rows[0], [3]),
        to.unsqueeze(columns[1], [2]),
        to.unsqueeze(rows[1], [3]),
    ]  # samples, regions, rows, columns
    images = to.merged(x)
    numbers = to.unsqueeze(to.numbers(to.size(images, 0)), [1, 2, 3])
    grid = to.node("Shape", to.node("Add", to.node("Add", parts[0], parts[1]), numbers))
    five = [to.unsqueeze(str(to.node("Expand", part, grid)), [4]) for part in (numbers, *parts)]
    boxes = to.cast(to.reshape(str(to.node("Concat", *five, axis=4)), [-1, 5]), x.dtype)
    made = to.single("MaxRoiPool", x.dtype, images, boxes, pooled_shape=[1, 1], spatial_scale=1.0)
    whole = to.reshape(made, [to.size(images, 0), to.size(regions.name, regions.rank - 2), height, width, channels])
    return to.split(to.transpose(whole, [0, 1, 4, 2, 3]), x, result.shape)


def _edges(to: ModelWriter, first: str, last: str, parts: int) -> tuple[str, str]:
    """The first and last pixels of the parts of regions along one axis."""
    one, count = to.constant(1, np.int64), to.constant(parts, np.int64)
    extent = to.node("Max", to.node("Add", to.node("Sub", last, first), one), one)
    lower = to.node("Div", to.node("Mul", extent, to.constant(np.arange(parts), np.int64)), count)
    reach = to.node("Mul", extent, to.constant(np.arange(1, parts + 1), np.int64))
    upper = to.node("Div", to.node("Add", reach, to.constant(parts - 1, np.int64)), count)
    return str(to.node("Add", first, lower)), str(to.node("Sub", to.node("Add", first, upper), one))
