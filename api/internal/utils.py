"""Helpers that CNTK programs and tests import from its internals."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from cntk.cntk_py.dictionary import Dictionary, DictionaryValue
from cntk.core.common.dtypes import as_dtype, is_float_type
from cntk.core.graph.function import Function
from cntk.core.graph.variable import Variable
from cntk.core.values.value import NDArrayView, Value

K = TypeVar("K")


def get_data_type(*args: Any) -> Any:
    """The widest floating-point type among the arguments; variables count before data, of which numbers and lists are float32.

    Returns:
        A NumPy type; None where there are only placeholders.

    Raises:
        ValueError: an array does not hold floating-point numbers, or a function has several outputs.

    >>> C.internal.utils.get_data_type(C.parameter(2), np.ones(2, np.float64))
    <class 'numpy.float32'>
    >>> C.internal.utils.get_data_type(3, np.ones(2, np.float64))
    <class 'numpy.float64'>
    """
    declared: list[Any] = []
    held: list[Any] = []
    for arg in args:
        if isinstance(arg, Function):
            if len(arg.outputs) > 1:
                raise ValueError(f"get_data_type: expected a function of one output, got {arg}")
            declared.append(arg.output.dtype)
        elif isinstance(arg, (Variable, Value, NDArrayView)):
            declared.append(None if isinstance(arg, Variable) and arg.is_placeholder else arg.dtype)
        elif isinstance(arg, np.ndarray | np.inexact):
            if not is_float_type(arg.dtype.type):
                raise ValueError(f"data type {arg.dtype} is not supported; use bfloat16, float16, float32 or float64")
            held.append(arg.dtype.type)
        else:
            held.append(np.asarray(arg, dtype=np.float32).dtype.type)
    known = [dtype for dtype in declared if dtype is not None] or held
    return max(known, key=lambda dtype: np.dtype(dtype).itemsize, default=None)


def get_python_function_arguments(f: Callable[..., Any]) -> tuple[list[str], dict[str, Any]]:
    """Names of a Python function's arguments that have no default, and its annotations.

    >>> C.internal.utils.get_python_function_arguments(lambda x, y, scale=1: x)
    (['x', 'y'], {})
    """
    spec = inspect.getfullargspec(f)
    return spec.args[: len(spec.args) - len(spec.defaults or ())], spec.annotations


def map_function_arguments(params: Sequence[K], params_dict: Mapping[str, K], *args: Any, **kwargs: Any) -> dict[K, Any]:
    """Match positional and keyword arguments to parameters, as Python does.

    Args:
        params: the parameters in order.
        params_dict: the parameters by name.

    Raises:
        TypeError: a wrong number of arguments, or an unknown name.
        SyntaxError: an argument is given by position and by name.

    >>> C.internal.utils.map_function_arguments(['x', 'y'], {'x': 'x', 'y': 'y'}, 1, y=2)
    {'x': 1, 'y': 2}
    """
    found = dict(zip(params, args, strict=False))
    for name, value in kwargs.items():
        if name not in params_dict:
            raise TypeError(f"there is no argument called '{name}'; there are {sorted(params_dict)}")
        if params_dict[name] in found:
            raise SyntaxError(f"the argument '{name}' was given twice, by position and by name")
        found[params_dict[name]] = value
    if len(found) != len(params) or len(args) > len(params):
        raise TypeError(f"expected {len(params)} arguments, got {len(args) + len(kwargs)}")
    return found


def _ones_like(batch: Sequence[Any], precision: Any) -> list[Any]:
    """Arrays of ones in the shapes of *batch*."""
    return [np.ones_like(sample, dtype=as_dtype(precision)) for sample in batch]


def eval(
    op: Function,
    arguments: Any = None,
    precision: Any = None,
    device: Any = None,
    backward_pass: bool = False,
    expected_backward: Any = None,
) -> tuple[dict[Variable, Any], dict[Variable, Any] | None]:
    """Evaluate a function and, where *backward_pass*, its gradients from ones.

    Returns:
        Values by output; gradients by variable, or None.

    >>> x = C.input_variable(1, needs_gradient=True)
    >>> values, gradients = C.internal.utils.eval(C.square(x), {x: np.float32([[3]])}, np.float32, backward_pass=True)
    >>> [*values.values()], gradients[x]
    ([array([[9.]], dtype=float32)], array([[6.]], dtype=float32))
    """
    if not backward_pass:
        return op.forward(arguments, op.outputs, None, device=device)[1], None
    state, values = op.forward(arguments, op.outputs, op.outputs, device=device)
    ones = {output: _ones_like(value, precision) for output, value in values.items()}
    wanted = arguments if expected_backward is None else expected_backward
    return values, op.backward(state, ones, wanted)


def _to_cntk_dict_value(py_value: Any) -> DictionaryValue:
    """A Python value as the value of an entry of a Dictionary."""
    return DictionaryValue(py_value)


def _py_dict_to_cntk_dict(py_dict: Mapping[str, Any]) -> Dictionary:
    """A Python dictionary as a Dictionary."""
    made = Dictionary()
    for key, value in py_dict.items():
        made[key] = value
    return made


__all__ = ["eval", "get_data_type", "get_python_function_arguments", "map_function_arguments"]
