"""Readers of operators that were experimental until ONNX 1.4, and that converters of that time have written."""

from __future__ import annotations

import numpy as np

from .activation import read_softplus, read_tanh
from .arrays import Array, Unsupported, known
from .importer import Operator
from .shapes import cut


def read_affine(node: Operator, x: Array) -> Array:
    return x * node.attribute("alpha", 1.0) + node.attribute("beta", 0.0)


def read_scale(node: Operator, x: Array) -> Array:
    return x * node.attribute("scale", 1.0)


def read_image_scaler(node: Operator, x: Array) -> Array:
    bias = node.attribute("bias", [0.0])
    return x * node.attribute("scale", 1.0) + known(np.array(bias, x.dtype).reshape([-1, *[1] * (x.rank - 2)]))


def read_scaled_tanh(node: Operator, x: Array) -> Array:
    return read_tanh(node, x * node.required("beta")) * node.required("alpha")


def read_parametric_softplus(node: Operator, x: Array) -> Array:
    return read_softplus(node, x * node.required("beta")) * node.required("alpha")


def read_crop(node: Operator, x: Array) -> Array:
    """An image without its borders, or of the size that *scale* says from its left and upper border on."""
    left, top, right, bottom = node.required("border")
    height, width = x.dims[2:]
    ends = [top + node.attribute("scale")[0], left + node.attribute("scale")[1]] if node.has("scale") else [height - bottom, width - right]
    return cut(x, [top, left], ends, [2, 3], [1, 1])


def read_dynamic_slice(node: Operator, x: Array, starts: Array, ends: Array, axes: Array | None = None) -> Array:
    begins = starts.sizes
    places = list(range(len(begins))) if axes is None else axes.sizes
    if len(places) != len(begins):
        raise Unsupported(f"{len(begins)} bounds for {len(places)} axes")
    return cut(x, begins, ends.sizes, places, [1] * len(begins))
