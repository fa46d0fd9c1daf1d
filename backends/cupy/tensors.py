"""Descriptions of tensors for those functions of cuDNN that are not graphs."""

from __future__ import annotations

from ctypes import POINTER, c_int, c_void_p
from typing import Any

from .cudnn import TYPES, Cudnn

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cudnnCreateTensorDescriptor": (POINTER(c_void_p),),
    "cudnnDestroyTensorDescriptor": (c_void_p,),
    "cudnnSetTensorNdDescriptor": (c_void_p, c_int, c_int, c_void_p, c_void_p),
}
"""The functions that are used, and what they take."""


def described(library: Cudnn, array: Any) -> c_void_p:
    """A description of an array, of two axes beside rows and channels at least."""
    functions = library.functions(SIGNATURES)
    made = library.made(functions["cudnnCreateTensorDescriptor"], functions["cudnnDestroyTensorDescriptor"])
    dims, strides = whole(array.shape, 4), whole(tuple([stride // array.itemsize for stride in array.strides]), 4)
    functions["cudnnSetTensorNdDescriptor"](made, TYPES[array.dtype.name], len(dims), ints(dims), ints(strides))
    return made


def whole(values: tuple[int, ...], count: int, rest: int = 1) -> tuple[int, ...]:
    """So many values at least, filled up."""
    return values + (rest,) * (count - len(values))


def ints(values: Any) -> Any:
    """Values as an array of C."""
    return (c_int * len(values))(*values)
