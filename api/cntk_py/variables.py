"""Variables as the engine makes them, with their arguments in its order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cntk import ops
from cntk.cntk_py.shapes import NDShape
from cntk.core.common.dtypes import DataType
from cntk.core.graph.variable import Constant as _Constant
from cntk.core.graph.variable import Input, Placeholder, Variable
from cntk.core.graph.variable import Parameter as _Parameter
from cntk.core.types.axis import Axis
from cntk.internal.sanitize import data_type_to_dtype, sanitize_dynamic_axes


class _EngineClass(type):
    """A class of the engine: made with its argument order, the result is an object of the public class, which counts as its instance."""

    public: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.public)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.public)


class Parameter(metaclass=_EngineClass):
    """``cntk_py.Parameter(shape, data_type, initial value, device, name)``; see :class:`cntk.Parameter`."""

    public = _Parameter

    def __new__(cls, shape: Any, data_type: Any, value: Any = 0, device: Any = None, name: str = "") -> Any:
        return _Parameter(shape, value, data_type, device, name)


class Constant(metaclass=_EngineClass):
    """``cntk_py.Constant(shape, data_type, value, device, name)``; see :class:`cntk.Constant`."""

    public = _Constant

    def __new__(cls, shape: Any, data_type: Any, value: Any = 0, device: Any = None, name: str = "") -> Any:
        return _Constant(value, shape, data_type, device, name)


def ParameterFloat(shape: Any, value: float = 0, device: Any = None, name: str = "") -> _Parameter:
    """A float32 parameter that begins as *value* everywhere."""
    return _Parameter(shape, value, np.float32, device, name)


def ParameterDouble(shape: Any, value: float = 0, device: Any = None, name: str = "") -> _Parameter:
    """A float64 parameter that begins as *value* everywhere."""
    return _Parameter(shape, value, np.float64, device, name)


def ConstantFloat(shape: Any, value: float = 0, device: Any = None, name: str = "") -> _Constant:
    """A float32 constant that is *value* everywhere."""
    return _Constant(value, shape, np.float32, device, name)


def ConstantDouble(shape: Any, value: float = 0, device: Any = None, name: str = "") -> _Constant:
    """A float64 constant that is *value* everywhere."""
    return _Constant(value, shape, np.float64, device, name)


def input_variable(shape: Any, *args: Any) -> Input:
    """``input_variable(shape, is sparse, data type, needs gradient, name, dynamic axes)``; the flags and the name may be left out.

    >>> C.cntk_py.input_variable((2,), C.cntk_py.DataType_Double, 'x', [C.Axis.default_batch_axis()])
    Input('x', [#], [2])
    """
    rest = list(args)
    is_sparse = _take(rest, bool, False)
    data_type = _take(rest, int, DataType.Float)
    needs_gradient = _take(rest, bool, False)
    name = _take(rest, str, "")
    axes = _axes(_take(rest, Iterable, (Axis.default_batch_axis(),)))
    _check_end("input_variable(shape, is sparse, data type, needs gradient, name, dynamic axes)", rest)
    return ops.input_variable(shape, data_type_to_dtype(data_type), needs_gradient, is_sparse, axes, name)


def placeholder_variable(*args: Any) -> Placeholder:
    """``placeholder_variable(shape, data type, name, dynamic axes)`` or ``placeholder_variable(name)``.

    >>> C.cntk_py.placeholder_variable((2,), [C.Axis.default_batch_axis()]).shape
    (2,)
    """
    rest = list(args)
    shape = _take(rest, (tuple, list, NDShape), None)
    _take(rest, int, DataType.Unknown)
    name = _take(rest, str, "")
    axes = _take(rest, Iterable, None)
    _check_end("placeholder_variable(shape, data type, name, dynamic axes)", rest)
    return ops.placeholder(shape, None if axes is None else _axes(axes), name)


def output_variable(shape: Any, data_type: int, dynamic_axes: Iterable[Axis], *args: Any) -> Variable:
    """``output_variable(shape, data type, dynamic axes, needs gradient, name)``; the flag and the name may be left out."""
    rest = list(args)
    needs_gradient, name = _take(rest, bool, True), _take(rest, str, "")
    _check_end("output_variable(shape, data type, dynamic axes, needs gradient, name)", rest)
    return ops.output_variable(shape, data_type_to_dtype(data_type), _axes(dynamic_axes), needs_gradient, name)


def _take(args: list[Any], kind: Any, default: Any) -> Any:
    """The next argument where it is one of this kind."""
    return args.pop(0) if args and isinstance(args[0], kind) else default


def _check_end(form: str, rest: list[Any]) -> None:
    if rest:
        raise TypeError(f"cntk_py: expected {form}, got {rest[0]!r:.80} where there is no place for it")


def _axes(dynamic_axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Dynamic axes from the outermost; the engine lists them from the innermost."""
    return sanitize_dynamic_axes(list(dynamic_axes))
