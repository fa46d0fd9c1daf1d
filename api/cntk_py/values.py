"""Arrays and values as the engine makes them, with their arguments in its order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cntk.core.common.shape import as_shape
from cntk.core.values.value import NDArrayView, Value


def NDArrayViewFloat(value: float, shape: Any, device: Any = None, read_only: bool = False) -> NDArrayView:
    """A float32 view that is *value* everywhere."""
    return NDArrayView.from_dense(np.full(as_shape(shape), value, np.float32), device, read_only)


def NDArrayViewDouble(value: float, shape: Any, device: Any = None, read_only: bool = False) -> NDArrayView:
    """A float64 view that is *value* everywhere."""
    return NDArrayView.from_dense(np.full(as_shape(shape), value, np.float64), device, read_only)


def Value_create(shape: Any, sequences: Sequence[NDArrayView], *args: Any) -> Value:
    """``Value_create(shape, sequences, which of them are new, device, read only)``; the flags may be left out.

    >>> C.cntk_py.Value_create((2,), [C.NDArrayView.from_dense(np.ones((n, 2), np.float32)) for n in (1, 3)])
    Value([2 x 3 x 2], CPU)
    """
    starts = list(args[0]) if args and isinstance(args[0], (list, tuple)) else None
    device, read_only = (*args[int(starts is not None) :], None, False)[:2]
    return Value._of_sequences([view.asarray() for view in sequences], device, starts, as_shape(shape), bool(read_only))
