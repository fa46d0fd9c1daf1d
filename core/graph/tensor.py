"""Python's operators on variables and functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.displayed import Displayed
from ..common.options import get_global_option, option
from ..common.tracebacks import answers
from ..extension import plugins
from .numpy_calls import call_function, call_ufunc

if TYPE_CHECKING:
    from .arguments import TensorLike
    from .function import Function

_DLPACK_CPU = 1, 0


def _op(name: str) -> Any:
    return plugins.ops.get(name)


class TensorOps(Displayed):
    """Arithmetic and indexing for everything that denotes one value of a graph.

    >>> x = C.input_variable(3)
    >>> (2 * x[1:] - 1).eval([[1, 2, 3]])
    array([[3., 5.]], dtype=float32)
    >>> (np.float32([[1, 0, 2]]) @ C.reshape(x, (3, 1))).eval([[1, 2, 3]])
    array([[[7.]]], dtype=float32)
    """

    if TYPE_CHECKING:
        shape: Any

    __pandas_priority__ = 10_000  # so that `series * variable` comes to us, as `ndarray * variable` does by __array_ufunc__
    __hash__ = object.__hash__

    @answers
    def __eq__(self, other: object) -> Any:
        """Whether it is the same object: values are compared by ``C.equal``.

        Raises:
            TypeError: *other* is a number or an array.
        """
        if isinstance(other, (int, float, np.ndarray, np.generic)) and not isinstance(other, bool):
            raise TypeError(f"{self!r} == {other!r:.40} asks whether these are one object; C.equal(x, y) compares values in the graph")
        return NotImplemented

    @answers
    def __bool__(self) -> bool:
        """Refused: a graph has no values, and so no branches; parameters, constants and layers that are not applied are there, thus True.

        Raises:
            TypeError: it stands for a value in a graph.
        """
        raise TypeError(
            f"{self!r} is not a condition: it has no value while the graph is built. C.element_select(condition, x, y) chooses between "
            "values, and x is not None asks whether there is one"
        )

    @answers
    def __lt__(self, other: Any) -> Any:
        return _no_order("<", "less")

    @answers
    def __le__(self, other: Any) -> Any:
        return _no_order("<=", "less_equal")

    @answers
    def __gt__(self, other: Any) -> Any:
        return _no_order(">", "greater")

    @answers
    def __ge__(self, other: Any) -> Any:
        return _no_order(">=", "greater_equal")

    @answers
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's operators, so that ``array + x`` comes to us instead of becoming an array of objects."""
        return call_ufunc(ufunc, method, inputs, kwargs)

    @answers
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's functions, which compute arrays: refused except for objects with a value, parameters and constants."""
        return call_function(function, types, args, kwargs, ArrayMixin)

    @answers
    def __iter__(self) -> Iterator[Any]:
        """Parts along the first static axis, of which each keeps the axis with length 1.

        Raises:
            TypeError: there is no such axis, or its length is not known.
        """
        shape = self.shape
        if not shape or shape[0] < 0:
            axis = "a first static axis of known length" if shape else "a static axis"
            raise TypeError(
                f"{self!r} has not {axis} to iterate over; samples and steps are in the data, which Recurrence, Fold and the operators of "
                "C.sequence go through"
            )
        return (_select(self, 0, i) for i in range(shape[0]))

    @answers
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(
            f"{self!r} stands for values that are computed later, not an array; evaluate it (eval), or apply CNTK's operators to it in "
            "place of NumPy's"
        )

    @answers
    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError(
            f"{self!r} cannot be changed in places; parameter.value = array sets a parameter, C.splice and C.element_select make values of "
            "parts, and C.assign(parameter, x) sets one in a graph"
        )

    @answers
    def __add__(self, other: TensorLike) -> Function:
        return _op("plus")(self, other)

    @answers
    def __radd__(self, other: TensorLike) -> Function:
        return _op("plus")(other, self)

    @answers
    def __sub__(self, other: TensorLike) -> Function:
        return _op("minus")(self, other)

    @answers
    def __rsub__(self, other: TensorLike) -> Function:
        return _op("minus")(other, self)

    @answers
    def __mul__(self, other: TensorLike) -> Function:
        return _op("element_times")(self, other)

    @answers
    def __rmul__(self, other: TensorLike) -> Function:
        return _op("element_times")(other, self)

    @answers
    def __truediv__(self, other: TensorLike) -> Function:
        return _op("element_divide")(self, other)

    @answers
    def __rtruediv__(self, other: TensorLike) -> Function:
        return _op("element_divide")(other, self)

    @answers
    def __matmul__(self, other: TensorLike) -> Function:
        return _op("times")(self, other)

    @answers
    def __rmatmul__(self, other: TensorLike) -> Function:
        return _op("times")(other, self)

    @answers
    def __pow__(self, other: TensorLike) -> Function:
        return _op("pow")(self, other)

    @answers
    def __rpow__(self, other: TensorLike) -> Function:
        return _op("pow")(other, self)

    @answers
    def __neg__(self) -> Function:
        return _op("negate")(self)

    @answers
    def __abs__(self) -> Function:
        return _op("abs")(self)

    @answers
    def __getitem__(self, key: Any) -> Any:
        """Slice along static axes: an int keeps its axis with length 1, a list selects, ``...`` skips to the last axes.

        With the global option ``align_axis`` the dynamic axes come first and take ``:``, as in arrays.
        """
        keys = list(key) if isinstance(key, tuple) else [key]
        if any(part is Ellipsis for part in keys):
            at = next(i for i, part in enumerate(keys) if part is Ellipsis)
            keys = keys[:at] + keys[at + 1 :]
            axes = [*range(at), *range(at - len(keys), 0)]
        else:
            keys = keys[_dynamic_keys(self, keys) :]
            axes = list(range(len(keys)))
        result: Any = self
        for axis, part in zip(axes, keys, strict=True):
            result = _select(result, axis, part)
        return result


def _no_order(sign: str, name: str) -> Any:
    raise TypeError(f"x {sign} y is not defined for values of a graph; use C.{name}(x, y)")


class ArrayMixin(Displayed):
    """Base of objects that convert to arrays: values, views, parameters and constants.

    ``np.asarray`` takes it, as do others that know the protocols ``__array__`` or ``__dlpack__``.

    >>> np.asarray(C.Parameter((2,), init=1))
    array([1., 1.], dtype=float32)
    """

    def asarray(self) -> Any:
        """The data as an array of the caller's own; sparse data of one or two axes come as a CSR matrix."""
        return self._to_array()

    def _to_array(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define its data")

    def _shown(self) -> tuple[Any, bool]:
        """The dense data, and whether that is a copy; TypeError for sparse ones."""
        array = self._to_array()
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{self!r} is sparse and not a NumPy array; asarray() gives a CSR matrix, asarray().toarray() an array of it")
        return array, True

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array, is_copy = self._shown()
        if copy is False and (is_copy or (dtype is not None and dtype != array.dtype)):
            raise ValueError(f"{self!r} cannot be converted to an array without a copy; leave out copy=False")
        if dtype is not None and dtype != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy and not is_copy else array

    def __dlpack__(self, **options: Any) -> Any:
        array, is_copy = self._shown()
        if is_copy and options.get("copy") is False:
            raise BufferError(f"{self!r} cannot be converted to an array without a copy; leave out copy=False")
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_CPU


class SharedArrayMixin(ArrayMixin):
    """Base of objects that share their memory: values, views and minibatches."""

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self._shown()[0])


def _dynamic_keys(x: Any, keys: list[Any]) -> int:
    """How many of the first keys are for dynamic axes, which cannot be sliced: none without the global option ``align_axis``."""
    if get_global_option("align_axis", 0) != 1 or not x.dynamic_axes:
        return 0
    count: int = option("axis_offset", len(x.dynamic_axes))
    for axis, key in enumerate(keys[:count]):
        if key != slice(None):
            raise ValueError(f"index {key!r}: with the option 'align_axis' axis {axis} of {x!r} is dynamic and takes ':' alone")
    return count


def _select(x: Any, axis: int, part: Any) -> Any:
    if isinstance(part, slice):
        start, stop, step = part.start or 0, part.stop or 0, part.step or 1
        if (start, stop, step) == (0, 0, 1):
            return x
        return _op("slice")(x, axis, start, stop, step)
    if isinstance(part, (list, tuple)):
        picked = [_select(x, axis, index) for index in part]
        return _op("splice")(*picked, axis=axis) if len(picked) > 1 else picked[0]
    if isinstance(part, int):
        return _op("slice")(x, axis, part, part + 1)
    raise TypeError(f"index {part!r}: expected an int, a slice, a list of these, or ...")
