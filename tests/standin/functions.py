"""CuPy's functions over NumPy's, with CuPy's arguments and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import cuda
from .array import allocated, ndarray, operand, wrapped, written
from .rules import OVERLAP, READ, UPLOAD, note


class ufunc:
    """An element-wise function."""

    def __init__(self, name: str) -> None:
        self._compute = getattr(np, name)
        self.name, self.nin = f"cupy_{name}", self._compute.nin

    def __repr__(self) -> str:
        return f"<ufunc '{self.name}'>"

    def __call__(self, *args: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind") -> ndarray:
        operands, behind = args[: self.nin], args[self.nin :]
        if behind:
            (out,) = behind
        if isinstance(out, tuple):
            (out,) = out
        options = {} if dtype is None else {"dtype": dtype}
        values = [operand(value) for value in operands]
        if out is None:
            return allocated(np.asarray(self._compute(*values, casting=casting, **options)))
        if not isinstance(out, ndarray):
            raise TypeError("Output arguments type must be cupy.ndarray")
        shape = out.host.shape
        if any(each.shape != shape and np.broadcast_shapes(each.shape, shape) != shape for each in values if isinstance(each, np.ndarray)):
            raise ValueError("Out shape is mismatched")
        _note_overlap(operands, out)
        cuda.work(lambda: self._compute(*values, out=out.host, casting=casting, **options))
        return out

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        if self.name not in ("cupy_add", "cupy_multiply"):
            raise NotImplementedError(f"`{self.name}.reduce` is not supported yet")
        return (array.sum if self.name == "cupy_add" else array.prod)(axis, dtype, out, keepdims)

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        raise RuntimeError(f"{self.name}.at adds in whatever order")

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> ndarray:
        raise RuntimeError(f"{self.name}.reduceat is a difference of running sums")


def _note_overlap(operands: Sequence[Any], out: ndarray) -> None:
    """Note the copies that CuPy makes of operands that overlap the result, unless they are the same object."""
    for value in operands:
        if isinstance(value, ndarray) and value is not out and value.size and out.size and np.may_share_memory(value.host, out.host):
            note(OVERLAP)


# ---- new arrays ----


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return ndarray(shape, dtype, order=order)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return allocated(np.zeros(shape, dtype))


def ones(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return allocated(np.ones(shape, dtype))


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    return allocated(np.full(shape, operand(fill_value), dtype))


def empty_like(prototype: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    return allocated(np.empty_like(prototype.host, dtype, shape=shape))


def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    return allocated(np.zeros_like(a.host, dtype, shape=shape))


def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    return allocated(np.ones_like(a.host, dtype, shape=shape))


def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    return allocated(np.full_like(a.host, operand(fill_value), dtype, shape=shape))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    return allocated(np.arange(*((0, start) if stop is None else (start, stop)), step, dtype))


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False) -> ndarray:
    if isinstance(a, ndarray):
        return a if dtype is None or a.dtype == np.dtype(dtype) else a.astype(dtype)
    note(UPLOAD)
    return allocated(np.array(a, dtype))


def array(
    obj: Any, dtype: Any = None, copy: bool = True, order: str = "K", subok: bool = False, ndmin: int = 0, *, blocking: bool = False
) -> ndarray:
    if isinstance(obj, ndarray):
        return obj.astype(obj.dtype if dtype is None else dtype)
    note(UPLOAD)
    return allocated(np.array(obj, dtype))


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    contiguous = np.ascontiguousarray(operand(a), dtype)
    return a if contiguous is a.host else allocated(contiguous)


# ---- views and rearrangements ----


def broadcast_to(array: Any, shape: Any) -> ndarray:
    return wrapped(np.broadcast_to(operand(array), shape))


def broadcast_arrays(*args: Any) -> list[ndarray]:
    return [wrapped(each) for each in np.broadcast_arrays(*map(operand, args))]


def moveaxis(a: Any, source: Any, destination: Any) -> ndarray:
    return wrapped(np.moveaxis(operand(a), source, destination))


def expand_dims(a: Any, axis: Any) -> ndarray:
    return wrapped(np.expand_dims(operand(a), axis))


def as_strided(x: Any, shape: Any = None, strides: Any = None) -> ndarray:
    return wrapped(np.lib.stride_tricks.as_strided(x.host, shape, strides))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    return [wrapped(part) for part in np.split(operand(ary), indices_or_sections, axis)]


def concatenate(tup: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    return written(out, np.concatenate([operand(each) for each in tup], axis, dtype=dtype))


def stack(tup: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    return written(out, np.stack([operand(each) for each in tup], axis, dtype=dtype))


def tile(A: Any, reps: Any) -> ndarray:
    return allocated(np.tile(operand(A), reps))


def repeat(a: Any, repeats: Any, axis: Any = None) -> ndarray:
    return a.repeat(repeats, axis)


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    if not isinstance(dst, ndarray):
        raise TypeError(f"Unsupported type {type(dst)}")
    if isinstance(src, np.ndarray):
        if src.size != 1:
            raise ValueError("non-scalar numpy.ndarray cannot be used for copyto")
        src = src.reshape(())[()]
    value, chosen = operand(src), True if where is None else operand(where)
    cuda.work(lambda: np.copyto(dst.host, value, casting=casting, where=chosen))  # type: ignore[arg-type]


# ---- places ----


def take(a: Any, indices: Any, axis: Any = None, out: Any = None) -> ndarray:
    return a.take(indices, axis, out)


def put(a: Any, ind: Any, v: Any, mode: str = "wrap") -> None:
    a.put(ind, v, mode)


def take_along_axis(a: Any, indices: Any, axis: Any) -> ndarray:
    return allocated(np.take_along_axis(operand(a), operand(indices), axis))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    cuda.launch()
    np.put_along_axis(operand(arr), operand(indices), operand(values), axis)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None:
        return condition.nonzero()
    return allocated(np.asarray(np.where(*map(operand, (condition, x, y)))))


def argwhere(a: Any) -> ndarray:
    note(READ)
    return allocated(np.argwhere(operand(a)))


def flatnonzero(a: Any) -> ndarray:
    note(READ)
    return allocated(np.flatnonzero(operand(a)))


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> ndarray:
    return a.searchsorted(v, side)


def argsort(a: Any, axis: Any = -1, kind: Any = None) -> ndarray:
    return a.argsort(axis, kind)


def sort(a: Any, axis: Any = -1, kind: Any = None) -> ndarray:
    return allocated(np.sort(operand(a), axis))


def lexsort(keys: Any) -> ndarray:
    if not isinstance(keys, ndarray):
        raise TypeError(f"Unsupported type {type(keys)}")
    return allocated(np.lexsort(keys.host))


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
) -> Any:
    note(READ)
    found = np.unique(operand(ar), return_index, return_inverse, return_counts, axis)
    return tuple(map(allocated, found)) if isinstance(found, tuple) else allocated(found)


# ---- sums, extrema and counts ----


def sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    return a.sum(axis, dtype, out, keepdims)


def max(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    return a.max(axis, out, keepdims)


def min(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    return a.min(axis, out, keepdims)


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
    return a.cumsum(axis, dtype, out)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
    if a.dtype.itemsize == 2:
        raise RuntimeError("temp[index_block + i] *= temp[index_block] does not match")  # as NVRTC says of CuPy's kernel
    return written(out, np.cumprod(operand(a), axis, dtype))


def clip(a: Any, a_min: Any, a_max: Any, out: Any = None) -> ndarray:
    return a.clip(a_min, a_max, out)


def count_nonzero(a: Any, axis: Any = None) -> ndarray:
    return allocated(np.asarray(np.count_nonzero(operand(a), axis)))


def bincount(x: Any, weights: Any = None, minlength: Any = None) -> ndarray:
    note(READ)
    return allocated(np.bincount(operand(x), operand(weights), minlength or 0))


# ---- products ----


def dot(a: Any, b: Any, out: Any = None) -> ndarray:
    product = np.dot(operand(a), operand(b))
    if out is None:
        return allocated(np.asarray(product))
    if out.dtype != product.dtype:
        raise ValueError("Not supported dtype combination.")
    if not out.host.flags.c_contiguous:
        raise ValueError("Output array must be C-contiguous")
    if out.size != product.size:
        raise ValueError("Output array has an invalid size")
    return written(out, product.reshape(out.shape))


def matmul(
    *args: Any,
    axes: Any = None,
    axis: Any = None,
    keepdims: bool = False,
    casting: str = "same_kind",
    dtype: Any = None,
    signature: Any = None,
    order: str = "K",
    out: Any = None,
) -> ndarray:
    a, b, *behind = args
    product = np.matmul(operand(a), operand(b))
    return written(behind[0] if behind else out, product)


def functions() -> dict[str, Callable[..., Any]]:
    """Return all functions by name."""
    return {name: value for name, value in globals().items() if getattr(value, "__module__", None) == __name__ and name[0] != "_"}
