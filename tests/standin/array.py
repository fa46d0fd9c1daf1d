"""``cupy.ndarray`` over NumPy's, with the same attributes, methods and errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cntk.core.common.dtypes import computing_type, is_bfloat16, is_float

from . import cuda
from .rules import ALLOCATION, HOST_INDEX, READ, UPLOAD, note


class Flags:
    """The flags of CuPy's arrays."""

    def __init__(self, flags: Any) -> None:
        self.c_contiguous, self.f_contiguous, self.owndata = flags.c_contiguous, flags.f_contiguous, flags.owndata


class ndarray:
    """A device array.

    Args:
        shape, dtype, strides: its shape, element type and strides.
        memptr: pointer to its memory; new memory is allocated if it is omitted.
    """

    __slots__ = ("__weakref__", "host")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C") -> None:
        dtype = np.dtype(dtype)
        if memptr is None:
            allocated()
            size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
            memptr = cuda.MemoryPointer(cuda.memory(size), 0)
        self.host = np.ndarray(shape, dtype, memptr.mem, memptr.offset, strides, order)  # type: ignore[arg-type]

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly.")

    # ---- attributes ----

    @property
    def shape(self) -> tuple[int, ...]:
        return self.host.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self.host.strides

    @property
    def dtype(self) -> Any:
        return self.host.dtype

    @property
    def ndim(self) -> int:
        return self.host.ndim

    @property
    def size(self) -> int:
        return self.host.size

    @property
    def nbytes(self) -> int:
        return self.host.nbytes

    @property
    def itemsize(self) -> int:
        return self.host.itemsize

    @property
    def flags(self) -> Flags:
        return Flags(self.host.flags)

    @property
    def T(self) -> ndarray:
        return wrapped(self.host.T)

    @property
    def data(self) -> cuda.MemoryPointer:
        root = self.host
        while isinstance(root.base, np.ndarray):
            root = root.base
        flat = root.ravel("K").view(np.uint8)
        return cuda.MemoryPointer(flat, self.host.ctypes.data - flat.ctypes.data)

    def __len__(self) -> int:
        return len(self.host)

    # ---- reads, which wait for the device ----

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        if out is None:
            return self._read().copy()
        if (out.shape, out.dtype) != (self.shape, self.dtype):
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {out.shape}")
        out[...] = self._read()
        return out

    def item(self, *place: Any) -> Any:
        if place:
            raise TypeError("item() takes no arguments")
        return self._read().item()

    def tolist(self) -> Any:
        return self._read().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return self._read().tobytes()

    def nonzero(self) -> tuple[ndarray, ...]:
        return tuple(map(wrapped, self._read().nonzero()))

    def __bool__(self) -> bool:
        return bool(self._read())

    def __float__(self) -> float:
        return float(self._read())

    def __int__(self) -> int:
        return int(self._read())

    def __index__(self) -> int:
        return self._read().__index__()

    def __repr__(self) -> str:
        return repr(self.host)

    def _read(self) -> Any:
        cuda.launch()
        note(READ)
        return self.host

    # ---- views and copies ----

    def __iter__(self) -> Iterator[ndarray]:
        return (self[index] for index in range(len(self)))

    def view(self, dtype: Any = None, type: Any = None) -> ndarray:
        return wrapped(self.host.view() if dtype is None else self.host.view(dtype))

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> ndarray:
        return self._viewed(self.host.reshape(*shape))

    def ravel(self, order: str = "C") -> ndarray:
        return self.reshape(-1)

    def squeeze(self, axis: Any = None) -> ndarray:
        return wrapped(self.host.squeeze(axis))

    def swapaxes(self, axis1: int, axis2: int) -> ndarray:
        return wrapped(self.host.swapaxes(axis1, axis2))

    def transpose(self, *axes: Any) -> ndarray:
        return wrapped(self.host.transpose(*axes))

    def astype(self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True) -> ndarray:
        if not copy and self.dtype == np.dtype(dtype):
            return self
        return allocated(self.host.astype(dtype, order))  # type: ignore[call-overload]

    def copy(self, order: str = "C") -> ndarray:
        return allocated(self.host.copy())

    def _viewed(self, result: Any) -> ndarray:
        """Wrap a result that may be a view."""
        if result.size and not np.may_share_memory(result, self.host):
            return allocated(result)
        return wrapped(result)

    def __getitem__(self, place: Any) -> ndarray:
        if type(place) is slice:
            return wrapped(self.host[place])
        return self._viewed(np.asarray(self.host[index_of(place)]))

    def __setitem__(self, place: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        where, given = index_of(place), value.host if isinstance(value, ndarray) else value
        if isinstance(place, ndarray) and not isinstance(value, ndarray):
            cuda.launch()  # the number is sent to the device, as an array
            note(UPLOAD)
        cuda.work(lambda: self.host.__setitem__(where, given))

    # ---- writing ----

    def fill(self, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.shape != ():
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        given = value.host if isinstance(value, ndarray) else value
        cuda.work(lambda: self.host.fill(given))

    def set(self, arr: Any, stream: Any = None) -> None:
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not self.host.flags.c_contiguous:
            raise RuntimeError("Cannot set to non-contiguous array")
        note(UPLOAD)
        (stream or cuda.get_current_stream()).require_free()
        self.host[...] = arr

    def put(self, indices: Any, values: Any, mode: str = "wrap") -> None:
        cuda.launch()
        self.host.put(index_of(indices), values.host if isinstance(values, ndarray) else values, mode=mode)

    def sort(self, axis: int = -1, kind: Any = None) -> None:
        cuda.launch()
        self.host.sort(axis=axis, kind="stable")

    # ---- reading along axes ----

    def take(self, indices: Any, axis: Any = None, out: Any = None) -> ndarray:
        places = index_of(indices)
        taken = np.take(self.host, places, axis=axis, mode="wrap")
        if out is None:
            return allocated(np.asarray(taken))
        if out.dtype != self.dtype:
            raise TypeError("Output dtype mismatch")
        if out.shape != taken.shape:
            raise ValueError("Output shape mismatch")
        cuda.work(lambda: out.host.__setitem__(..., np.take(self.host, places, axis=axis, mode="wrap")))
        return out

    def repeat(self, repeats: Any, axis: Any = None) -> ndarray:
        if isinstance(repeats, np.ndarray):
            raise TypeError("'repeats' does not accept numpy.ndarray; convert with cupy.array() first")
        return allocated(self.host.repeat(repeats._read() if isinstance(repeats, ndarray) else repeats, axis))

    def argsort(self, axis: int = -1, kind: Any = None) -> ndarray:
        if is_bfloat16(self.dtype):
            raise TypeError(f"sorting arrays of {self.dtype} is not supported")
        return allocated(self.host.argsort(axis=axis, kind="stable"))

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> ndarray:
        return allocated(np.asarray(self.host.searchsorted(operand(v), side)))

    def dot(self, b: Any, out: Any = None) -> ndarray:
        from .functions import dot

        return dot(self, b, out)

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> ndarray:
        return written(out, np.clip(self.host, operand(min), operand(max)))

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
        return written(out, np.cumsum(self.host, axis, dtype))

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        if out is None:
            return allocated(_sum(self.host, axis, dtype, keepdims))
        cuda.work(lambda: written(out, _sum(self.host, axis, dtype, keepdims)))
        return out

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return self._reduced(np.prod, axis, out, keepdims, dtype)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        wanted = dtype or (self.dtype if is_float(self.dtype) else np.float64)
        total = _sum(self.host, axis, wanted, keepdims)
        return written(out, (total / (self.size / max(total.size, 1))).astype(wanted))

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return self._reduced(np.max, axis, out, keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        if out is not None:
            raise TypeError("operand type(s) all returned NotImplemented from __array_ufunc__")  # CuPy 14.2 takes it for the element type
        return self._reduced(np.min, axis, out, keepdims)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return self._reduced(np.all, axis, out, keepdims)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        return self._reduced(np.any, axis, out, keepdims)

    def argmax(self, axis: Any = None, out: Any = None, dtype: Any = None, keepdims: bool = False) -> ndarray:
        return self._reduced(np.argmax, axis, out, keepdims)

    def argmin(self, axis: Any = None, out: Any = None, dtype: Any = None, keepdims: bool = False) -> ndarray:
        return self._reduced(np.argmin, axis, out, keepdims)

    def _reduced(self, reduce: Callable[..., Any], axis: Any, out: Any, keepdims: bool, dtype: Any = None) -> ndarray:
        options = {} if dtype is None else {"dtype": dtype}
        return written(out, reduce(self.host, axis=axis, keepdims=keepdims, **options))

    # ---- Python's operators ----

    def __neg__(self) -> ndarray:
        return allocated(np.asarray(-self.host))

    def __abs__(self) -> ndarray:
        return allocated(np.asarray(abs(self.host)))

    def __invert__(self) -> ndarray:
        return allocated(np.asarray(~self.host))

    def __matmul__(self, other: Any) -> ndarray:
        from .functions import matmul

        return matmul(self, other)


def wrapped(host: Any) -> ndarray:
    """Return a device array that shares the memory of a NumPy array."""
    made = ndarray.__new__(ndarray)
    made.host = host
    return made


def allocated(host: Any = None) -> ndarray:
    """Return a device array for a result that allocates memory."""
    cuda.launch()
    note(ALLOCATION)
    return wrapped(np.asarray(host))


def written(out: Any, result: Any) -> ndarray:
    """Write the result of a reduction to *out*, or return it in a new array."""
    if out is None:
        return allocated(result)
    cuda.launch()
    if not isinstance(out, ndarray):
        raise TypeError("Output arguments type must be cupy.ndarray")
    if out.shape != np.shape(result):
        raise ValueError(f"Output array has wrong shape: {out.shape} for {np.shape(result)}")
    out.host[...] = result
    return out


def operand(value: Any) -> Any:
    """Return the NumPy value of an operand.

    Raises:
        TypeError: the operand is a host array, or another type that CuPy does not accept.
    """
    if isinstance(value, ndarray):
        return value.host
    if value is None or isinstance(value, (bool, int, float, np.generic)):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


def index_of(place: Any) -> Any:
    """Return the NumPy value of an index; as in CuPy, host arrays are copied to the device."""
    if isinstance(place, tuple):
        return tuple(map(index_of, place))
    if isinstance(place, ndarray):
        if place.dtype == bool:
            note(READ)  # of the number of True elements
        return place.host
    if isinstance(place, list) or (isinstance(place, np.ndarray) and place.ndim):
        note(HOST_INDEX)
        cuda.launch()
    return place


def _sum(host: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    """Return a sum as CuPy computes it: as a tree over all axes, in float32 for types of 16 bits, and rounded to the type asked for."""
    axes = tuple(range(host.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    moved = np.moveaxis(host, axes, range(-len(axes), 0))
    kept = moved.shape[: host.ndim - len(axes)]
    terms = np.ascontiguousarray(moved).reshape(*kept, math.prod(moved.shape[len(kept) :]))
    wanted = dtype or (None if host.dtype.kind in "biu" else host.dtype)
    total = terms.sum(-1, None if wanted is None else computing_type(wanted))
    if wanted is not None:
        total = total.astype(wanted)
    return np.expand_dims(total, axes) if keepdims else total


def _binary(compute: Callable[..., Any], swapped: bool = False) -> Callable[[ndarray, Any], ndarray]:
    def operator(self: ndarray, other: Any) -> ndarray:
        pair = operand(self), operand(other)
        return allocated(np.asarray(compute(*(pair[::-1] if swapped else pair))))

    return operator


def _in_place(compute: Callable[..., Any]) -> Callable[[ndarray, Any], ndarray]:
    def operator(self: ndarray, other: Any) -> ndarray:
        given = operand(other)
        cuda.work(lambda: compute(self.host, given, out=self.host, casting="same_kind"))
        return self

    return operator


for _name, _compute in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}.items():
    setattr(ndarray, f"__{_name}__", _binary(_compute))
    setattr(ndarray, f"__r{_name}__", _binary(_compute, swapped=True))
    setattr(ndarray, f"__i{_name}__", _in_place(_compute))
for _name, _compute in {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}.items():
    setattr(ndarray, f"__{_name}__", _binary(_compute))
