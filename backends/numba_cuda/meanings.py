"""What Numba compiles for the CPU and has no CUDA code for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.cuda.extending import overload


@overload(np.sign)
def _sign_of(x: Any) -> Callable[[Any], Any]:
    real: Any = np.float32 if x.bitwidth == 32 else np.float64
    one, zero = real(1), real(0)
    return lambda x: one if x > zero else (-one if x < zero else x)
