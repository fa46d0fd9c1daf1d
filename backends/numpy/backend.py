"""NumPy as a backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import float_types
from ...core.common.random import philox_normal, philox_uniform
from ...core.extension.device import DeviceKind
from . import sums
from .silence import silence


class NumpyBackend:
    """Arrays in the host's memory, computed by NumPy; the base of backends whose arrays are NumPy's.

    Args:
        device_id: number of the device; there is one.
    """

    name = "numpy"
    kind: int = DeviceKind.CPU
    xp = np
    sparse = True
    alignment = 64
    block_bytes: int | None = 1 << 19  # less makes more calls, more leaves the cache
    index = staticmethod(getattr)
    summing = staticmethod(sums.summing)
    take = staticmethod(np.ndarray.take)

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id

    @property
    def dtypes(self) -> tuple[Any, ...]:
        return float_types()

    def unavailable(self) -> str:
        return ""

    def device_count(self) -> int:
        return 1

    def properties(self) -> Any:
        raise ValueError(f"backend '{self.name}': the CPU has no GPU properties")

    def describe(self) -> str:
        return f"NumPy {np.__version__} on the CPU"

    def nbytes(self, shape: Sequence[int], dtype: Any) -> int:
        size = np.dtype(dtype).itemsize
        for dim in shape:
            size *= dim
        return size

    def allocate(self, nbytes: int) -> Any:
        raw = np.empty(nbytes + self.alignment, dtype=np.uint8)
        start = -raw.ctypes.data % self.alignment
        return raw[start : start + nbytes]

    def view(self, memory: Any, offset: int, shape: Sequence[int], dtype: Any) -> Any:
        return np.ndarray(shape, dtype, memory, offset)

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        return np.empty(shape, dtype)

    def asarray(self, data: Any, dtype: Any) -> Any:
        return np.array(data, dtype=dtype, order="C")

    def load(self, array: Any, data: Any) -> None:
        array[...] = data

    def on_device(self, *data: Any) -> Any:
        return data

    def to_numpy(self, array: Any) -> Any:
        return array.copy()

    def uniform(self, out: Any, seed: int, draw: int) -> None:
        philox_uniform(out, seed, draw)

    def normal(self, out: Any, seed: int, draw: int) -> None:
        philox_normal(out, seed, draw)

    def synchronize(self) -> None:
        return None

    def guard(self) -> Any:
        return silence()
