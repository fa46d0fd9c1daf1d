"""Components required to compute on NVIDIA GPUs: which of them are installed, and how to get the others.

Nothing is imported to find out, and GPUs are only counted and named, so that `cntk doctor` also works on machines without any of them.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from ...core.extension.backend import Need
from .libraries import CUBLASLT, CUDNN, NCCL, NVRTC, Library, dotted

EXTRA = "pip install 'opencntk[gpu]'"

DRIVER = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
"""File names of the driver library."""

FIRST_CUDA = 12000
"""Minimum CUDA version, as reported by the driver."""


def needs() -> list[Need]:
    """Return all components, the indispensable ones first."""
    return [_cupy(), *_driver_and_card(), *map(_library, (CUBLASLT, CUDNN, NVRTC, NCCL)), _numba()]


def _cupy() -> Need:
    packages = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
    found = _installed(packages) if find_spec("cupy") is not None else ""
    many = [package for package in packages if _version_of(package)]
    if len(many) > 1:
        return Need("CuPy", "", "arrays on GPUs", f"{' and '.join(many)} are installed, and disturb one another: pip uninstall all but one")
    return Need("CuPy", found, "arrays on GPUs", f"{EXTRA} for drivers of CUDA 13, pip install 'cupy-cuda12x[ctk]' for those of CUDA 12")


def _driver_and_card() -> tuple[Need, Need]:
    install = "install it from https://www.nvidia.com/drivers; nvidia-smi then lists the GPUs"
    no_card = Need("card", "", "computing", "there must be a driver first")
    driver = _loaded(DRIVER)
    if driver is None:
        return Need("driver", "", "the card", install), no_card
    number = ctypes.c_int()
    if driver.cuDriverGetVersion(ctypes.byref(number)) != 0:
        return Need("driver", "", "the card", f"it does not say its version: {install}"), no_card
    told = f"for CUDA {number.value // 1000}.{number.value % 1000 // 10}"
    if number.value < FIRST_CUDA:
        return Need("driver", "", "the card", f"the one that is there is {told}, 12 or later is needed: {install}"), no_card
    return Need("driver", told, "the card", install), _card(driver)


def _card(driver: ctypes.CDLL) -> Need:
    count, device = ctypes.c_int(), ctypes.c_int()
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    remedy = "this machine has none" if hidden is None else f"CUDA_VISIBLE_DEVICES={hidden} hides it: unset it or name others"
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        said = f"the driver finds none (status {status})" if status else "the driver finds none"
        return Need("card", "", "computing", f"{said}; {remedy}")
    name = ctypes.create_string_buffer(256)
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetName(name, len(name), device)
    more = f" and {count.value - 1} more" if count.value > 1 else ""
    return Need("card", name.value.decode(errors="replace") + more, "computing", remedy)


def _library(library: Library) -> Need:
    package = next((package for package in library.packages if _version_of(package)), "")
    found = _version_of(package) if package else ""
    least = dotted(library.versions[0])
    if found and _numbers(found) < _numbers(least):
        remedy = f"{package} {found} is too old, {least} or later is needed: pip install --upgrade {package}"
        return Need(library.title, "", library.purpose, remedy)
    found = next((file for file in library.files if _loaded((file,)) is not None), "") if not found else f"{found} of {package}"
    return Need(library.title, found, library.purpose, f"{EXTRA}, or pip install {library.packages[0]}")


def _numba() -> Need:
    return Need("numba-cuda", _version_of("numba-cuda"), "the backend numba-cuda, and kernels written in Python", f"{EXTRA} brings it")


def _installed(packages: Sequence[str]) -> str:
    """Return version and name of the first installed package; ``there`` if there is none, as with a build from source."""
    return next((f"{found} of {package}" for package in packages if (found := _version_of(package))), "there")


def _version_of(package: str) -> str:
    try:
        return version(package)
    except (PackageNotFoundError, KeyError, ValueError):  # damaged metadata
        return ""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _load(file: str) -> ctypes.CDLL:
    return ctypes.CDLL(file)


def _loaded(files: Sequence[str]) -> ctypes.CDLL | None:
    """Return the first of the libraries that the system's loader finds; None if it finds none."""
    for file in files:
        try:
            return _load(file)
        except OSError:
            continue
    return None
