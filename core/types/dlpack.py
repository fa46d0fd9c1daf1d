"""Reads tensors of bfloat16 through the structures that array libraries exchange: NumPy takes its own types alone from them.

Source: DLPack, "C API (dlpack.h)", https://dmlc.github.io/dlpack/latest/c_api.html.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any

import numpy as np

from ..common.dtypes import bfloat16
from ..common.shape import size_of

_BFLOAT = 4, 16, 1
"""Code, bits and lanes of the type."""
_HOST = (1, 3)
"""Numbers of the host's memory, and of such that GPUs can read."""


class _Tensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        *(("device", c_int32), ("device_id", c_int32), ("ndim", c_int32)),
        *(("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)),
        *(("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("offset", c_uint64)),
    )


_pointer_in = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def bfloat16_of(given: Any) -> Any:
    """The numbers, copied, of an object with ``__dlpack__`` that holds bfloat16 in the host's memory; None of one that holds others.

    Raises:
        ValueError: the package that has the type is not installed.
    """
    capsule = given.__dlpack__()  # owns the tensor, and releases it when it goes
    tensor = _Tensor.from_address(_pointer_in(capsule, b"dltensor"))
    if (tensor.code, tensor.bits, tensor.lanes) != _BFLOAT or tensor.device not in _HOST:
        return None
    dtype, shape = np.dtype(bfloat16()), tuple(tensor.shape[: tensor.ndim])
    if 0 in shape:
        return np.empty(shape, dtype)
    compact = [size_of(shape[axis + 1 :]) for axis in range(tensor.ndim)]
    steps = tensor.strides[: tensor.ndim] if tensor.strides else compact
    if any(step < 0 for step in steps):
        return None
    size = 1 + sum(step * (dim - 1) for step, dim in zip(steps, shape, strict=True))
    memory = (c_uint16 * size).from_address(tensor.data + tensor.offset)
    return np.ndarray(shape, dtype, memory, 0, [2 * step for step in steps]).copy()
