"""What tests of compiled loops share."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cntk.core.extension.device import backend_named
from cntk.core.types.context import Context

NO_ACCESS = 0


@pytest.fixture
def unchanging() -> Context:
    """The context of an operator whose operands seldom change."""

    def prepare(array: Any, name: str, shape: Any, dtype: Any, make: Any) -> Any:
        made = np.full(shape, np.nan, dtype)
        make(made, array)
        return made

    made = Context(backend_named("numpy"), training=False)
    made.prepare = (prepare, prepare)
    return made


@pytest.fixture
def bytes_with_an_end() -> Callable[[int], Any]:
    """Memory behind which there is none: a process that reads further ends."""
    protect = getattr(ctypes.CDLL(None), "mprotect", None)
    if protect is None:
        pytest.skip("memory cannot be protected on this system")

    def reserved(count: int) -> Any:
        size = -(-count // mmap.PAGESIZE) * mmap.PAGESIZE
        whole = np.frombuffer(mmap.mmap(-1, size + mmap.PAGESIZE), np.uint8)
        assert protect(ctypes.c_void_p(whole.ctypes.data + size), ctypes.c_size_t(mmap.PAGESIZE), NO_ACCESS) == 0
        return whole[size - count : size]

    return reserved
