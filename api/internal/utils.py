"""Helpers that CNTK programs and tests import from its internals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cntk.core.dtypes import FLOAT_TYPES, as_dtype
from cntk.core.function import Function
from cntk.core.value import NDArrayView, Value
from cntk.core.variable import Variable


def get_data_type(*args: Any) -> Any:
    """The widest floating-point type among the arguments; variables count before arrays.  None when nothing has a type.

    Raises:
        ValueError: an array does not hold floating-point numbers.
    """
    declared: list[Any] = []
    held: list[Any] = []
    for arg in args:
        if isinstance(arg, Function):
            declared.append(arg.output.dtype)
        elif isinstance(arg, (Variable, Value, NDArrayView)):
            declared.append(arg.dtype)
        elif isinstance(arg, (np.ndarray, np.generic)):
            if arg.dtype.type not in FLOAT_TYPES:
                raise ValueError(f"data type {arg.dtype} is not supported; use float16, float32 or float64")
            held.append(arg.dtype.type)
    known = [dtype for dtype in declared if dtype is not None] or held
    return max(known, key=lambda dtype: np.dtype(dtype).itemsize, default=None)


def _ones_like(batch: Sequence[Any], precision: Any) -> list[Any]:
    """Arrays of ones in the shapes of *batch*."""
    return [np.ones_like(sample, dtype=as_dtype(precision)) for sample in batch]


def eval(
    op: Function,
    arguments: Any = None,
    precision: Any = None,
    device: Any = None,
    backward_pass: bool = False,
    expected_backward: Any = None,
) -> tuple[dict[Variable, Any], dict[Variable, Any] | None]:
    """Evaluate a function and, where *backward_pass*, its gradients from ones.

    Returns:
        Values by output; gradients by variable, or None.
    """
    if not backward_pass:
        return op.forward(arguments, op.outputs, None, device=device)[1], None
    state, values = op.forward(arguments, op.outputs, op.outputs, device=device)
    ones = {output: _ones_like(value, precision) for output, value in values.items()}
    wanted = arguments if expected_backward is None else expected_backward
    return values, op.backward(state, ones, wanted)


__all__ = ["eval", "get_data_type"]
