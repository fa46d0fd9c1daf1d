"""Checks whether compiled loops can be used on this machine, before the first of them is called.

Machine code reads NumPy's arrays by address.  If arrays were laid out differently it would overwrite other memory.  So the layout of
arrays is checked first, and then what machine code reads from three of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..extension import compiled
from . import array_layout
from .first_calls import first_calls

PART = "compiled loops"

READ = "<f8:1:A", "<f8:2:A", "<f8:3:A", "<f8:1:C"
"""Kinds of the arrays that are read, and of the array of results."""


def require() -> None:
    """Check that compiled loops can be used.

    Raises:
        Unusable: they cannot be; there has been a warning, unless the user has chosen so.
    """
    why = why_not()
    if why:
        raise compiled.Unusable(f"{PART} are switched off: {why}")


def are_usable() -> bool:
    """Whether compiled loops can be used for the call at hand."""
    return not first_calls.are_numpys() and not why_not()


@lru_cache(maxsize=1)
def why_not() -> str:
    """Why compiled loops cannot be used; empty where they can.  Warns unless the user has chosen so."""
    if not compiled.is_wanted():
        return f"{compiled.SWITCH} is 0"
    try:
        if find_spec("llvmlite") is None:
            return "llvmlite, which comes with Numba, is not installed"
        why = _fault()
    except Exception as error:  # other versions of Numba or LLVM may raise anything
        why = str(error) if isinstance(error, compiled.Unusable) else f"{type(error).__name__}: {error}"
    if why:
        compiled.switch_off(PART, why)
    return why


def _fault() -> str:
    """What is wrong, empty if nothing is; no code is run if it is compiled for other processors."""
    from . import processor

    if processor.is_another():
        return ""
    if not array_layout.is_known():
        return f"NumPy {np.__version__} lays out arrays in a way that they do not support"
    return "" if _reads_arrays() else f"machine code does not read the arrays of NumPy {np.__version__}"


def read(first: Any, second: Any, third: Any, out: Any) -> None:
    """Write the shapes and strides of three arrays, and their elements, to *out*."""
    out[0], out[1] = first.shape[0], first.strides[0]
    at = 2
    for i in range(2):
        out[at], out[at + 1] = second.shape[i], second.strides[i]
        at += 2
    for i in range(3):
        out[at], out[at + 1] = third.shape[i], third.strides[i]
        at += 2
    for i in range(first.shape[0]):
        out[at] = first[i]
        at += 1
    for i in range(second.shape[0]):
        for j in range(second.shape[1]):
            out[at] = second[i, j]
            at += 1
    for i in range(third.shape[0]):
        for j in range(third.shape[1]):
            for k in range(third.shape[2]):
                out[at] = third[i, j, k]
                at += 1


def _reads_arrays() -> bool:
    """Whether machine code reads three arrays correctly."""
    from .machine_code import address_of

    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address_of(read, READ))
    whole = np.arange(60, dtype=np.float64)
    arrays = whole[7:12], whole.reshape(5, 12).T[::3], whole.reshape(3, 4, 5)[::-1, 1:, ::2]
    wanted = np.array([*_numbers(arrays), *(element for array in arrays for element in array.flat)])
    out = np.zeros_like(wanted)
    call((ctypes.c_size_t * 5)(0, *map(id, (*arrays, out))))
    return bool(np.array_equal(out, wanted))


def _numbers(arrays: Sequence[Any]) -> list[int]:
    """Length and stride of each axis."""
    return [number for array in arrays for axis in zip(array.shape, array.strides, strict=True) for number in axis]
