"""Layers that pool over windows of an image, and undo it."""

from __future__ import annotations

from typing import Any

from cntk import ops
from cntk.core.common.shape import UnknownDimension
from cntk.core.graph.arguments import Flags, ShapeLike
from cntk.core.types.arguments import checked
from cntk.default_options import default_override_or, get_default_override
from cntk.layers.arguments import per_axis
from cntk.ops.functions import BlockFunction, Function


@checked
def MaxPooling(filter_shape: tuple[int, ...], strides: ShapeLike = 1, pad: Flags = default_override_or(False), name: str = "") -> Function:
    """A layer that takes the largest value of each window.

    Args:
        filter_shape: window, a tuple with a size for each spatial axis.
        strides: steps between windows, one for all axes or one for each.
        pad: whether windows may reach over the edge, one for all axes or one for each.
        name: name of the block.

    Returns:
        A function of an input (channels, *spatial); channels are pooled each by itself.

    Raises:
        TypeError: *filter_shape* is not a tuple.
        ValueError: *strides* or *pad* has the wrong number of values.

    >>> from cntk.layers import MaxPooling
    >>> x = C.input_variable((1, 4, 4))
    >>> MaxPooling((2, 2), strides=2)(x).eval({x: np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)})
    array([[[[ 5.,  7.],
             [13., 15.]]]], dtype=float32)
    """
    return _pool(ops.MAX_POOLING, "MaxPooling", filter_shape, strides, get_default_override(MaxPooling, pad=pad), name)


@checked
def AveragePooling(
    filter_shape: tuple[int, ...], strides: ShapeLike = 1, pad: Flags = default_override_or(False), name: str = ""
) -> Function:
    """A layer that takes the mean of each window; padding does not count.

    Args:
        filter_shape: window, a tuple with a size for each spatial axis.
        strides: steps between windows, one for all axes or one for each.
        pad: whether windows may reach over the edge, one for all axes or one for each.
        name: name of the block.

    Returns:
        A function of an input (channels, *spatial); channels are pooled each by itself.

    Raises:
        TypeError: *filter_shape* is not a tuple.
        ValueError: *strides* or *pad* has the wrong number of values.

    >>> from cntk.layers import AveragePooling
    >>> x = C.input_variable((1, 4, 4))
    >>> AveragePooling((2, 2), strides=2)(x).eval({x: np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)})
    array([[[[ 2.5,  4.5],
             [10.5, 12.5]]]], dtype=float32)
    """
    return _pool(ops.AVG_POOLING, "AveragePooling", filter_shape, strides, get_default_override(AveragePooling, pad=pad), name)


@checked
def GlobalMaxPooling(name: str = "") -> Function:
    """A layer that takes the largest value of each channel.

    Args:
        name: name of the block.

    Returns:
        A function of an input (channels, *spatial); the spatial axes of the result have the size 1.

    >>> from cntk.layers import GlobalMaxPooling
    >>> x = C.input_variable((1, 4, 4))
    >>> GlobalMaxPooling()(x).eval({x: np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)})
    array([[[[15.]]]], dtype=float32)
    """
    return _pool(ops.MAX_POOLING, "GlobalMaxPooling", (UnknownDimension,), 1, False, name)


@checked
def GlobalAveragePooling(name: str = "") -> Function:
    """A layer that takes the mean of each channel.

    Args:
        name: name of the block.

    Returns:
        A function of an input (channels, *spatial); the spatial axes of the result have the size 1.

    >>> from cntk.layers import GlobalAveragePooling
    >>> x = C.input_variable((1, 4, 4))
    >>> GlobalAveragePooling()(x).eval({x: np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)})
    array([[[[7.5]]]], dtype=float32)
    """
    return _pool(ops.AVG_POOLING, "GlobalAveragePooling", (UnknownDimension,), 1, False, name)


def _pool(kind: Any, op_name: str, filter_shape: tuple[int, ...], strides: Any, pad: Any, name: str) -> Function:
    strides, pad = _window(op_name, filter_shape, strides, pad)

    @BlockFunction(op_name, name)
    def pool(x: Any) -> Any:
        return ops.pooling(x, kind, filter_shape, strides=strides, auto_padding=pad)

    return pool


def _window(layer: str, filter_shape: tuple[int, ...], strides: Any, pad: Any) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Strides and padding of each axis of the window."""
    if not isinstance(filter_shape, (tuple, list)):
        raise TypeError(f"{layer}: filter_shape must be a tuple with a size for each spatial axis, got {filter_shape!r}")
    rank = len(filter_shape)
    return per_axis(layer, "strides", strides, rank), per_axis(layer, "pad", pad, rank)


@checked
def MaxUnpooling(filter_shape: tuple[int, ...], strides: ShapeLike = 1, pad: Flags = False, name: str = "") -> Function:
    """A layer that undoes max pooling: puts each value where the maximum of its window was, 0 elsewhere.

    Args:
        filter_shape, strides, pad: as given to :func:`MaxPooling`.
        name: name of the block.

    Returns:
        A function of two inputs: the pooled values, and what was pooled, which tells places and shape.

    Raises:
        TypeError: *filter_shape* is not a tuple.
        ValueError: *strides* or *pad* has the wrong number of values.

    >>> from cntk.layers import MaxPooling, MaxUnpooling
    >>> x = C.input_variable((1, 2, 4))
    >>> y = MaxUnpooling((2, 2), strides=2)(MaxPooling((2, 2), strides=2)(x), x)
    >>> y.eval({x: np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)})
    array([[[[0., 0., 0., 0.],
             [0., 5., 0., 7.]]]], dtype=float32)
    """
    strides, pad = _window("MaxUnpooling", filter_shape, strides, pad)

    @BlockFunction("MaxUnpooling", name)
    def unpool(x: Any, y: Any) -> Any:
        return ops.unpooling(x, y, ops.MAX_POOLING, filter_shape, strides=strides, auto_padding=pad)

    return unpool
