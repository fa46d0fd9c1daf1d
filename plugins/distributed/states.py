"""Checks of the states of strategies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import Shape


def require_arrays(what: str, arrays: Any, shapes: Sequence[Shape]) -> None:
    """Check that a state is a list of one floating-point array of each shape.

    Raises:
        RuntimeError: it is not; the message names the array.
    """
    if not isinstance(arrays, (list, tuple)) or len(arrays) != len(shapes):
        found = f"{len(arrays)}" if isinstance(arrays, (list, tuple)) else f"{type(arrays).__name__} {arrays!r:.80}"
        raise RuntimeError(f"{what}: expected {len(shapes)} arrays, one for each parameter, got {found}")
    for number, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or array.shape != shape:
            found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else f"{type(array).__name__} {array!r:.80}"
            raise RuntimeError(f"{what}, number {number}: expected floating-point numbers of shape {shape}, got {found}")
