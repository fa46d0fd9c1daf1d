"""Tensor descriptors for cuDNN functions outside its graph API."""

from __future__ import annotations

from ctypes import POINTER, c_int, c_void_p
from typing import Any

from .cudnn import TYPES, Cudnn

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cudnnCreateTensorDescriptor": (POINTER(c_void_p),),
    "cudnnDestroyTensorDescriptor": (c_void_p,),
    "cudnnSetTensorNdDescriptor": (c_void_p, c_int, c_int, c_void_p, c_void_p),
}
"""Argument types of the library functions that are used."""


def described(library: Cudnn, array: Any) -> c_void_p:
    """Return a tensor descriptor of an array, padded to at least two axes besides rows and channels."""
    functions = library.functions(SIGNATURES)
    made = library.made(functions["cudnnCreateTensorDescriptor"], functions["cudnnDestroyTensorDescriptor"])
    dims, strides = whole(array.shape, 4), whole(tuple([stride // array.itemsize for stride in array.strides]), 4)
    functions["cudnnSetTensorNdDescriptor"](made, TYPES[array.dtype.name], len(dims), ints(dims), ints(strides))
    return made


def whole(values: tuple[int, ...], count: int, rest: int = 1) -> tuple[int, ...]:
    """Return values padded with *rest* to at least *count* of them."""
    return values + (rest,) * (count - len(values))


def ints(values: Any) -> Any:
    """Return values as a C array of ints."""
    return (c_int * len(values))(*values)
