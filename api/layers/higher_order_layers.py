"""Layers made of layers: chains, loops and skip connections."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import reduce
from types import FunctionType
from typing import Any, TypeVar, overload

from cntk.core.common.tracebacks import answers
from cntk.core.graph.arguments import FunctionLike
from cntk.core.types.arguments import checked, shown
from cntk.layers.basic_blocks import identity, named
from cntk.ops.functions import Function

Layer = TypeVar("Layer", bound=FunctionLike)


@overload
def Sequential(layers: list[Any], name: str = "") -> Function: ...


@overload
def Sequential(layers: Layer, name: str = "") -> Layer: ...


@answers
def Sequential(layers: list[Any] | Layer, name: str = "") -> Function | Layer:
    """Chain functions: ``Sequential([f, g, h])(x)`` is ``h(g(f(x)))``.

    Args:
        layers: list of functions. A list inside is a chain of its own; a tuple stands for functions side by side, whose results
            become the arguments of the next one.
        name: name of the result.

    Returns:
        The chain, a function of one argument; anything but a list is returned unchanged.

    >>> from cntk.layers import Dense, Sequential
    >>> x = C.input_variable(3)
    >>> Sequential([Dense(4, activation=C.relu), Dense(2)])(x).shape
    (2,)
    >>> f = Sequential([(C.square, lambda x: x), C.splice])
    >>> f.update_signature(1)
    >>> f(np.array([[3]], dtype=np.float32))
    array([[9., 3.]], dtype=float32)
    """
    if callable(name):
        raise TypeError(f"Sequential: layers come in a list, as in Sequential([f, g]); behind it comes a name, got {type(name).__name__}")
    if not isinstance(name, str):
        raise TypeError(f"Sequential: name must be a text, got {shown(name)}")
    if not isinstance(layers, (list, tuple)) and not callable(layers):
        raise TypeError(f"Sequential: layers must be a list of layers and functions, got {shown(layers)}")
    if not isinstance(layers, list):
        return layers
    chain = reduce(lambda f, g: f >> g, [Sequential(layer) if isinstance(layer, list) else layer for layer in layers], identity)
    return named(chain, name)


@checked
def For(what_range: Iterable[object], constructor: FunctionLike, name: str = "") -> Function:
    """Chain the layers that a Python function makes, one for each item of a range.

    Args:
        what_range: the items.
        constructor: function of the item, or of nothing, that returns a layer or a list of layers.
        name: name of the result.

    Returns:
        The chain, a function of one argument.

    Raises:
        ValueError: *constructor* is not a Python function.

    >>> from cntk.layers import Dense, For
    >>> model = For(range(3), lambda i: Dense([8, 4, 2][i], activation=C.relu))
    >>> model(C.input_variable(5)).shape
    (2,)
    """
    if not isinstance(constructor, FunctionType):
        raise ValueError(f"For: constructor must be a Python function or lambda that makes a layer, got {type(constructor).__name__}")
    takes_item = bool(inspect.signature(constructor).parameters)
    return Sequential([constructor(item) if takes_item else constructor() for item in what_range], name)


@checked
def SequentialClique(functions: Iterable[FunctionLike], name: str = "") -> Function:
    """Chain functions, each of which gets the sum of the input and all results before it.

    Args:
        functions: functions whose results have the shape of their input.
        name: name of the result.

    Returns:
        A function of one argument, which gives the last function's result.

    Raises:
        ValueError: there are no functions.

    >>> from cntk.layers import SequentialClique
    >>> f = SequentialClique([C.square, C.square])
    >>> f(C.input_variable(1)).eval([[2]])
    array([[36.]], dtype=float32)
    """
    functions = list(functions)
    if not functions:
        raise ValueError("SequentialClique: give at least one function")

    def clique(x: Any) -> Any:
        for f in functions[:-1]:
            x = x + f(x)
        return functions[-1](x)

    return named(clique, name)


@checked
def ResNetBlock(f: FunctionLike, name: str = "") -> Function:
    """Add a skip connection to a function: f(x) + x.

    Args:
        f: function whose result has the shape of its input.
        name: name of the result.

    Returns:
        A function of one argument.

    Source: K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR 2016.

    >>> from cntk.layers import ResNetBlock
    >>> ResNetBlock(C.square)(C.input_variable(1)).eval([[3]])
    array([[12.]], dtype=float32)
    """

    def skip(x: Any) -> Any:
        return f(x) + x

    return named(skip, name)


__all__ = ["For", "ResNetBlock", "Sequential", "SequentialClique"]
