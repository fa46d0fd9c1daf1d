"""What this machine can do at best, to judge times by."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable

import numpy as np

SIDE = 1536
"""Side of the square matrices that are multiplied."""

COPIED = 2**28
"""Bytes that are copied, more than caches hold."""


def multiplication_rate() -> float:
    """Floating-point operations a second of a product of large float32 matrices."""
    left, right, product = (np.random.default_rng(0).random((SIDE, SIDE), np.float32) for _ in range(3))
    return 2 * SIDE**3 / _best(lambda: np.matmul(left, right, out=product))


def copy_rate() -> float:
    """Bytes a second read and written while memory is copied."""
    source, target = np.ones(COPIED, np.uint8), np.zeros(COPIED, np.uint8)
    return 2 * COPIED / _best(lambda: np.copyto(target, source))


def description() -> str:
    """The machine in a few words, with how busy it is."""
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{platform.system()} on {platform.machine()}, {os.cpu_count()} processors{load}"


def _best(action: Callable[[], object], repetitions: int = 10) -> float:
    """The shortest time that the action takes, in seconds."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)
