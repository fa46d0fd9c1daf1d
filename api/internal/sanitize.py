"""Converters of arguments.

CNTK's engine counts axes from the last and lists dynamic axes from the innermost; the converters of axes, permutations and flags per
axis turn them round as CNTK's do, for programs that were written with it.  The operators of this package take them unconverted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from cntk.core.common.dtypes import DataType, as_dtype, as_stored_dtype, data_type_of
from cntk.core.common.options import option
from cntk.core.common.shape import as_shape
from cntk.core.graph.block import combine
from cntk.core.graph.function import Function
from cntk.core.graph.tensor import ArrayMixin
from cntk.core.graph.variable import Constant, Variable
from cntk.core.types.axis import Axis
from cntk.core.types.types import VariableType
from cntk.core.values.feed import match_name
from cntk.core.values.value import NDArrayView, Value

R = TypeVar("R")

_INTEGER_TYPES = {"int8": np.int8, "int16": np.int16}
_NUMBERED = (DataType.Float, DataType.Double, DataType.Float16, DataType.BFloat16, DataType.Int8, DataType.Int16)

# ---- element types ----


def sanitize_dtype_numpy(dtype: Any) -> Any:
    """The NumPy type meant by a type or a name: ``int`` and NumPy's integers mean float32, ``float`` means float64.

    Raises:
        ValueError: there is no such element type.

    >>> C.internal.sanitize_dtype_numpy('float16'), C.internal.sanitize_dtype_numpy(int)
    (<class 'numpy.float16'>, <class 'numpy.float32'>)
    """
    if dtype is None:
        raise ValueError("data type None is not supported; use bfloat16, float16, float32 or float64")
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name if isinstance(dtype, type) and dtype is not int else ""
    if name in _INTEGER_TYPES:
        return _INTEGER_TYPES[name]
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return np.float32
    return as_dtype(dtype)


def sanitize_dtype_cntk(dtype: Any) -> DataType:
    """The number of an element type, as ``cntk_py.DataType_Float`` and the like; None is unknown.

    >>> C.internal.sanitize_dtype_cntk(np.float32) == C.cntk_py.DataType_Float
    True

    Raises:
        ValueError: there is no such element type.
    """
    if dtype is None:
        return DataType.Unknown
    return DataType(dtype) if isinstance(dtype, int) else data_type_of(sanitize_dtype_numpy(dtype))


def sanitize_precision(precision: Any) -> Any:
    """The NumPy type meant by a number, type or name of an element type; None for the unknown one.

    Raises:
        ValueError: there is no such element type.

    >>> C.internal.sanitize_precision('float'), C.internal.sanitize_precision(C.cntk_py.DataType_Unknown)
    (<class 'numpy.float32'>, None)
    """
    if isinstance(precision, int):
        return None if precision == DataType.Unknown else data_type_to_dtype(precision)
    if precision is int:
        raise ValueError("precision: expected a floating-point type, got int")
    return sanitize_dtype_numpy(precision.removesuffix("_t") if isinstance(precision, str) else precision)


def data_type_to_dtype(data_type: int) -> Any:
    """The NumPy type of an element type's number; ``object`` for the unknown one.

    Raises:
        ValueError: there is none.

    >>> C.internal.data_type_to_dtype(C.cntk_py.DataType_Double)
    <class 'numpy.float64'>
    """
    if data_type == DataType.Unknown:
        return object
    if data_type not in _NUMBERED:
        raise ValueError(f"data_type {data_type!r} has no NumPy type; use {', '.join(map(repr, _NUMBERED))}")
    return as_stored_dtype(DataType(data_type))


# ---- numbers and shapes ----


def is_string(s: Any) -> bool:
    """Whether *s* is a string.

    >>> C.internal.is_string('x'), C.internal.is_string(b'x')
    (True, False)
    """
    return isinstance(s, str)


def is_byte_buffer(s: Any) -> bool:
    """Whether *s* is a buffer of bytes.

    >>> C.internal.is_byte_buffer(b'x'), C.internal.is_byte_buffer('x')
    (True, False)
    """
    return isinstance(s, (bytes, bytearray))


def _as_tuple(x: Any) -> tuple[Any, ...]:
    """A tuple of a scalar or an iterable."""
    return (x,) if np.isscalar(x) else tuple(x)


def sanitize_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints.

    Raises:
        TypeError: it is neither an int nor a sequence of these.

    >>> C.internal.sanitize_shape(3), C.internal.sanitize_shape([2, 3])
    ((3,), (2, 3))
    """
    return as_shape(shape)


def sanitize_2d_number(x: Any) -> tuple[Any, Any]:
    """A pair of numbers, of a number or a pair.

    Raises:
        ValueError: it is something else.

    >>> C.internal.sanitize_2d_number(3), C.internal.sanitize_2d_number((2, 3))
    ((3, 3), (2, 3))
    """
    pair = (x, x) if isinstance(x, (int, float, np.number)) else x
    if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(part, (int, float, np.number)) for part in pair):
        raise ValueError(f"expected a number or a tuple of two numbers, got {x!r}")
    return pair


def sanitize_range(x: Any) -> tuple[Any, Any]:
    """A pair of numbers of which the first is not the larger one.

    Raises:
        ValueError: it is something else.

    >>> C.internal.sanitize_range((0.5, 2))
    (0.5, 2)
    """
    low, high = sanitize_2d_number(x)
    if low > high:
        raise ValueError(f"expected a number or a range from the smaller to the larger number, got {x!r}")
    return low, high


def sanitize_random_args(shape: Any, dtype: Any) -> tuple[tuple[int, ...], DataType]:
    """Shape and element type of random numbers; the default type is that of ``default_options``, else float32.

    >>> shape, dtype = C.internal.sanitize_random_args(3, None)
    >>> shape, dtype == C.cntk_py.DataType_Float
    ((3,), True)
    """
    return sanitize_shape(shape), sanitize_dtype_cntk(dtype or option("dtype", np.float32))


# ---- operands ----


def sanitize_input(arg: Any, fallback_dtype: Any = np.float32, reshape: Any = None) -> Any:
    """An operand: variables and functions as they are; a constant of type *fallback_dtype* of anything else.

    Args:
        arg: variable, function, number, list, array, NDArrayView or Value.
        fallback_dtype: element type of the constant.
        reshape: shape of the constant, where it is not that of *arg*.

    Raises:
        ValueError: *arg* is an empty list or a type.

    >>> C.internal.sanitize_input([1, 2]).value
    array([1., 2.], dtype=float32)
    """
    if isinstance(arg, (Variable, Function)):
        return arg
    if isinstance(arg, VariableType):
        raise ValueError(f"the operand is a type object, {arg}; did you mean to pass 'input_variable(**{arg})'?")
    if isinstance(arg, list) and not arg:
        raise ValueError("an empty list is not an operand")
    data = np.asarray(arg.asarray() if isinstance(arg, ArrayMixin) else arg, dtype=as_dtype(fallback_dtype))
    return Constant(data if reshape is None else data.reshape(reshape), dtype=fallback_dtype)


def sanitize_value(shape: Any, value: Any, dtype: Any, device: Any) -> NDArrayView:
    """An NDArrayView of a number (filling *shape*), a list or an array; of *shape* alone an uninitialised one.

    Raises:
        ValueError: there is neither shape nor value.

    >>> C.internal.sanitize_value((2, 2), 3, np.float32, None).asarray()
    array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    if value is None:
        if shape is None:
            raise ValueError("sanitize_value: give a shape, a value or both")
        return NDArrayView(shape, dtype, device)
    given = np.asarray(value, dtype=as_dtype(dtype))
    filled = np.broadcast_to(given, as_shape(shape)) if shape and given.ndim == 0 else given
    return NDArrayView.from_dense(np.ascontiguousarray(filled).reshape(filled.shape), device)


def sanitize_function(arg: Any) -> Function:
    """A function as it is, or one whose only output is the given variable.

    Raises:
        TypeError: it is neither.

    >>> C.internal.sanitize_function(C.input_variable(2, name='x')).op_name
    'CompositeFunctionOpName'
    """
    if isinstance(arg, Variable):
        return combine([arg])
    if not isinstance(arg, Function):
        raise TypeError(f"expected a Function or Variable, got {type(arg).__name__} {arg!r:.80}")
    return arg


def sanitize_variable_or_function(arg: Any) -> Variable | Function:
    """A variable or function as it is.

    Raises:
        TypeError: it is neither.

    >>> C.internal.sanitize_variable_or_function([1, 2])
    Traceback (most recent call last):
        ...
    TypeError: expected a Variable or a Function of one output, got list [1, 2]
    """
    if not isinstance(arg, (Variable, Function)):
        raise TypeError(f"expected a Variable or a Function of one output, got {type(arg).__name__} {arg!r:.80}")
    return arg


def sanitize_variables_or_functions(arg: Any) -> list[Variable | Function]:
    """A list of variables and functions, of one of them or several.

    Raises:
        TypeError: something else is among them.

    >>> C.internal.sanitize_variables_or_functions(C.input_variable(2, name='x'))
    [Input('x', [#], [2])]
    """
    items = [arg] if isinstance(arg, (Variable, Function)) or not isinstance(arg, Iterable) else arg
    return [sanitize_variable_or_function(item) for item in items]


def sanitize_variable_value_dict(var_value_dict: Mapping[Any, Any]) -> Any:
    """The only value of a dictionary; a dictionary of several as it is.

    >>> C.internal.sanitize_variable_value_dict({'x': 1}), C.internal.sanitize_variable_value_dict({'x': 1, 'y': 2})
    (1, {'x': 1, 'y': 2})
    """
    return var_value_dict if len(var_value_dict) > 1 else next(iter(var_value_dict.values()))


# ---- data ----


def sanitize_batch(var: Variable, batch: Any, seq_starts: Sequence[bool] | None = None, device: Any = None) -> Value:
    """Data for an input as a Value; see :meth:`Value.create <cntk.core.Value.create>`.

    Raises:
        ValueError: the data does not fit the input, or *seq_starts* not the data.

    >>> C.internal.sanitize_batch(C.sequence.input_variable(1), [[[1], [2]], [[3]]])
    Value([2 x 2 x 1], CPU)
    """
    return Value.create(var, batch, seq_starts, device)


def sanitize_var_map(
    op_arguments: Sequence[Variable],
    arguments: Any,
    precision: Any = None,
    device: Any = None,
    extract_values_from_minibatch_data: bool = True,
) -> dict[Variable, Any]:
    """A user's data by variable: Values, or with *extract_values_from_minibatch_data* off minibatch data as they are.

    Args:
        op_arguments: the inputs.
        arguments: data by input or name; or one input's data; or a pair of data and flags that say which sequences are new.
        precision: an element type, which is checked only: data take that of the inputs.
        device: where the values live.

    Raises:
        ValueError: data for no input, for no single one, for unknown or ambiguous names, or data that do not fit.

    >>> x = C.input_variable(2, name='x')
    >>> C.internal.sanitize_var_map([x], {'x': [[1, 2]]})
    {Input('x', [#], [2]): Value([1 x 1 x 2], CPU)}
    """
    if precision is not None:
        sanitize_precision(precision)
    starts = None
    if isinstance(arguments, tuple):
        arguments, starts = arguments
    if arguments is None or (isinstance(arguments, (dict, list)) and not arguments):
        if op_arguments:
            raise ValueError(f"the function expects {len(op_arguments)} arguments, got none")
        return {}
    if not isinstance(arguments, dict):
        if len(op_arguments) != 1:
            raise ValueError(f"the function has {len(op_arguments)} inputs, so data must come as a dictionary by input")
        arguments = {op_arguments[0]: arguments}
    found: dict[Variable, Any] = {}
    for key, batch in arguments.items():
        variable = key if isinstance(key, Variable) else match_name(op_arguments, key)
        if not extract_values_from_minibatch_data and hasattr(batch, "value_to_feed"):
            found[variable] = batch
            continue
        data, own_starts = batch if isinstance(batch, tuple) else (getattr(batch, "value_to_feed", batch), None)
        if own_starts is not None and starts is not None:
            raise ValueError("flags that say which sequences are new were given for all inputs and for one of them")
        found[variable] = sanitize_batch(variable, data, own_starts if own_starts is not None else starts, device)
    return found


# ---- axes, as the engine counts them ----


def sanitize_axis(axis: Any) -> Axis:
    """An axis by number, object or None (all static ones) as the engine counts it: static axes from the last.

    >>> C.internal.sanitize_axis(0), C.internal.sanitize_axis(-1), C.internal.sanitize_axis(None)
    (Axis('staticAxisIdx=-1'), Axis('staticAxisIdx=0'), Axis('AllStaticAxes'))
    """
    if axis is None:
        return Axis.all_static_axes()
    if not isinstance(axis, Axis):
        return Axis(-1 - operator.index(axis))
    if axis.is_static_axis and axis != Axis.new_leading_axis():
        return Axis(-1 - axis.static_axis_index())
    return axis


def sanitize_axis_list(axes: Any) -> list[Axis]:
    """:func:`sanitize_axis` of each of one or several axes.

    >>> C.internal.sanitize_axis_list([0, -1])
    [Axis('staticAxisIdx=-1'), Axis('staticAxisIdx=0')]
    """
    return [sanitize_axis(axis) for axis in (axes if isinstance(axes, (list, tuple)) else [axes])]


def sanitize_multi_axis_reduction_list(axes: Any) -> list[Axis]:
    """The same for a reduction.

    Raises:
        ValueError: a sequence axis is among them.

    >>> C.internal.sanitize_multi_axis_reduction_list([0, C.Axis.default_batch_axis()])
    [Axis('staticAxisIdx=-1'), Axis('defaultBatchAxis')]
    """
    found = sanitize_axis_list(axes)
    for axis in found:
        if axis.is_sequence_axis:
            raise ValueError(f"a reduction over several axes cannot contain the sequence axis {axis!r}; use the operators of cntk.sequence")
    return found


def sanitize_dynamic_axes(axes: Any) -> tuple[Axis, ...]:
    """Dynamic axes in the engine's order, the innermost first.

    Raises:
        TypeError: one is not an Axis.

    >>> [axis.name for axis in C.internal.sanitize_dynamic_axes(C.Axis.default_input_variable_dynamic_axes())]
    ['defaultDynamicAxis', 'defaultBatchAxis']
    """
    found = list(axes) if isinstance(axes, (list, tuple)) else [axes]
    for axis in found:
        if not isinstance(axis, Axis):
            raise TypeError(f"dynamic axes must be Axis objects, got {type(axis).__name__} {axis!r:.80}")
    return tuple(reversed(found))


def sanitize_permutation(perm: Sequence[int]) -> list[int]:
    """A permutation of axes as the engine counts them.

    Raises:
        ValueError: it is not a permutation.

    >>> C.internal.sanitize_permutation([3, 0, 2, 1])
    [2, 1, 3, 0]
    """
    rank = len(perm)
    positive = [axis + rank if -rank <= axis < 0 else axis for axis in perm]
    if sorted(positive) != list(range(rank)):
        raise ValueError(f"{list(perm)} is not a permutation of {rank} axes")
    return [rank - 1 - axis for axis in reversed(positive)]


def sanitize_pooling_args(pooling_window_shape: Any, strides: Any, auto_padding: Sequence[bool]) -> tuple[Any, Any, list[bool]]:
    """Window and strides as tuples, padding flags in the engine's order.

    >>> C.internal.sanitize_pooling_args((2, 3), 2, [True, False])
    ((2, 3), (2,), [False, True])
    """
    return sanitize_shape(pooling_window_shape), sanitize_shape(strides), list(reversed(auto_padding))


def sanitize_convolution_args(strides: Any, sharing: Sequence[bool], auto_padding: Sequence[bool]) -> tuple[Any, list[bool], list[bool]]:
    """Strides as a tuple, sharing and padding flags in the engine's order.

    >>> C.internal.sanitize_convolution_args((2, 1), [True, True], [True, False])
    ((2, 1), [True, True], [False, True])
    """
    return sanitize_shape(strides), list(reversed(sharing)), list(reversed(auto_padding))


def sanitize_Function_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes with flags per axis turned round, in place.

    >>> C.internal.sanitize_Function_attributes({'autoPadding': [True, False]})
    {'autoPadding': [False, True]}
    """
    for name in ("sharing", "autoPadding"):
        if name in attributes:
            attributes[name] = list(reversed(attributes[name]))
    return attributes


# ---- caching ----


def bounded_cache(maxsize: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorator: remember the results of a function by its positional arguments; at *maxsize* of them it is cleared.

    >>> @C.internal.bounded_cache(maxsize=2)
    ... def double(x):
    ...     print('computing')
    ...     return 2 * x
    >>> double(1), double(1)
    computing
    (2, 2)
    """

    def remembering(f: Callable[..., R]) -> Callable[..., R]:
        return _Remembered(f, maxsize)

    return remembering


class _Remembered(dict[tuple[Any, ...], Any]):
    def __init__(self, f: Callable[..., Any], maxsize: int) -> None:
        super().__init__()
        self._f, self._maxsize = f, maxsize

    def __call__(self, *args: Any) -> Any:
        return self[args]

    def __missing__(self, args: tuple[Any, ...]) -> Any:
        result = self._f(*args)
        if len(self) >= self._maxsize:
            self.clear()
        self[args] = result
        return result


__all__ = [
    "bounded_cache",
    "data_type_to_dtype",
    "is_byte_buffer",
    "is_string",
    "sanitize_2d_number",
    "sanitize_Function_attributes",
    "sanitize_axis",
    "sanitize_axis_list",
    "sanitize_batch",
    "sanitize_convolution_args",
    "sanitize_dtype_cntk",
    "sanitize_dtype_numpy",
    "sanitize_dynamic_axes",
    "sanitize_function",
    "sanitize_input",
    "sanitize_multi_axis_reduction_list",
    "sanitize_permutation",
    "sanitize_pooling_args",
    "sanitize_precision",
    "sanitize_random_args",
    "sanitize_range",
    "sanitize_shape",
    "sanitize_value",
    "sanitize_var_map",
    "sanitize_variable_or_function",
    "sanitize_variable_value_dict",
    "sanitize_variables_or_functions",
]
