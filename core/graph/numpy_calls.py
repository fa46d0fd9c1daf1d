"""NumPy's functions and operators applied to variables and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..extension import plugins

OPERATORS = {
    "add": "plus",
    "subtract": "minus",
    "multiply": "element_times",
    "divide": "element_divide",
    "true_divide": "element_divide",
    "matmul": "times",
    "negative": "negate",
    "absolute": "abs",
}
"""Ufuncs behind Python's operators, and ours."""

COUNTERPARTS = OPERATORS | {
    "amax": "reduce_max",
    "amin": "reduce_min",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "concatenate": "splice",
    "dot": "times",
    "max": "reduce_max",
    "maximum": "element_max",
    "mean": "reduce_mean",
    "min": "reduce_min",
    "minimum": "element_min",
    "power": "pow",
    "prod": "reduce_prod",
    "rint": "round",
    "sum": "reduce_sum",
    "where": "element_select",
}
"""Functions of NumPy and ours that compute the same, where names differ."""


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Apply our operator in place of NumPy's; ``array += x`` makes a function as well.

    Raises:
        TypeError: it is another ufunc, or called with options.
    """
    in_place = list(kwargs) == ["out"] and kwargs["out"][0] is inputs[0]
    if method == "__call__" and ufunc.__name__ in OPERATORS and (in_place or not kwargs):
        return plugins.ops.get(OPERATORS[ufunc.__name__])(*inputs)
    raise no_array_function(ufunc)


def call_function(function: Any, types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any], array_like: type) -> Any:
    """Apply a NumPy function to objects that have values already, those of the type *array_like*.

    Raises:
        TypeError: others are among the arguments.
    """
    if not all(issubclass(t, array_like) or t.__module__.partition(".")[0] != "cntk" for t in types):
        raise no_array_function(function)

    def value(given: Any) -> Any:
        if isinstance(given, (list, tuple)):
            return type(given)(map(value, given))
        return np.asarray(given) if isinstance(given, array_like) else given

    return function(*map(value, args), **{name: value(given) for name, given in kwargs.items()})


def no_array_function(function: Any) -> TypeError:
    """The error that says what to use instead of a function of NumPy."""
    name = function.__name__
    ours = COUNTERPARTS.get(name, name)
    instead = f"use C.{ours}" if ours in plugins.ops else "use operators of cntk"
    return TypeError(f"np.{name} computes arrays, and this is a value of a graph, which has none yet; {instead}, or .eval() it first")
