"""Availability of the backend, determined without importing Numba."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec

from ...core.common.environment import switch_in
from ...core.extension import compiled

SIMULATOR = "NUMBA_ENABLE_CUDASIM"
"""Numba's environment variable that, set to 1, enables the simulator: kernels run in Python, with a Python thread for each CUDA thread."""

INSTALL = "pip install 'numba-cuda[cu13]' (cu12 for drivers of CUDA 12)"

DRIVERS = "libcuda.so.1", "nvcuda.dll"


def is_simulated() -> bool:
    """Whether Numba's simulator replaces the GPU.
    Raises:
        ValueError: the environment variable is neither 0 nor 1.
    """
    return switch_in(SIMULATOR, False)


def why_not() -> str:
    """Return what is missing and how to get it; empty if nothing is."""
    if not compiled.is_wanted():
        return f"{compiled.SWITCH} is 0, which turns compiled code off; set it to 1 or unset it"
    if find_spec("numba") is None:
        return f"Numba is not installed; install it and numba-cuda: {INSTALL}"
    if find_spec("numba_cuda") is None:
        return f"numba-cuda, which compiles for GPUs, is not installed beside Numba: {INSTALL}"
    return "" if is_simulated() else _why_no_card()


def _why_no_card() -> str:
    driver = _driver()
    if driver is None:
        return (
            f"there is no driver of NVIDIA's ({' or '.join(DRIVERS)}); install the one for the card, or, to try kernels without a card, "
            f"set {SIMULATOR}=1"
        )
    count = ctypes.c_int(0)
    error = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if error:
        return f"the driver cannot be used (CUDA error {error}); `nvidia-smi` may tell more"
    return "" if count.value else "the driver finds no card; `nvidia-smi` shows those that there are, CUDA_VISIBLE_DEVICES hides some"


def _driver() -> ctypes.CDLL | None:
    for name in DRIVERS:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
