"""Element types by the names that the protocol has for them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from cntk.core.common.dtypes import as_dtype

_NUMPY = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
}
_NAMES = {np.dtype(kind): name for name, kind in _NUMPY.items()}

NAMES = (*_NUMPY, "BF16")
"""All that tensors of numbers may have."""


def dtype_of(name: str) -> np.dtype[Any]:
    """NumPy's type, in the byte order that binary tensors have.

    Raises:
        ValueError: there is none of that name.
    """
    if name == "BF16":
        return np.dtype(as_dtype("bfloat16"))
    if name not in _NUMPY:
        raise ValueError(f"there is no datatype {name!r:.80}; there are {', '.join(NAMES)}")
    return np.dtype(_NUMPY[name]).newbyteorder("<")


@cache
def name_of(dtype: Any) -> str:
    """The protocol's name of a type that values have."""
    kind = np.dtype(dtype)
    return "BF16" if kind.name == "bfloat16" else _NAMES[kind.newbyteorder("=")]
