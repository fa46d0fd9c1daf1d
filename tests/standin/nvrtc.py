"""NVRTC, which compiles kernels without requiring a GPU, from the package ``nvidia-cuda-nvrtc`` or the system."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zlib import crc32

from shares import ALL

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")

SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


@cache
def library() -> Any:
    """Return the library; None if it is not installed."""
    nvidia = find_spec("nvidia")
    folders = [Path(folder) for folder in (nvidia.submodule_search_locations or [])] if nvidia else []
    found = [str(file) for folder in folders for file in sorted(folder.glob("*/lib/libnvrtc.so*"))]
    for place in [*found, ctypes.util.find_library("nvrtc")]:
        if place:
            return ctypes.CDLL(place)
    return None


def unavailable() -> str:
    """Return why kernels cannot be compiled; empty if they can."""
    return "" if library() is not None else "there is no NVRTC"


class Report:
    """The compiler's report on a source.

    Attributes:
        text: the compiler's report.
        spills: bytes of register spills over all kernels.
        registers: maximum number of registers of a kernel.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.spills = sum(int(stores) + int(loads) for stores, loads in SPILLS.findall(text))
        self.registers = max(map(int, REGISTERS.findall(text)), default=0)


def compiled(text: str, architecture: str, options: Sequence[str]) -> Report:
    """Compile a source to machine code, for example for ``sm_90``.

    Raises:
        ValueError: it cannot be compiled; the message contains the compiler's.
    """
    nvrtc, program = library(), ctypes.c_void_p()
    given = [*options, f"--gpu-architecture={architecture}", "--ptxas-options=-v"]
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"text.cu", 0, None, None))
    status = nvrtc.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*[option.encode() for option in given]))
    size = ctypes.c_size_t()
    _check(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
    log = ctypes.create_string_buffer(size.value)
    _check(nvrtc.nvrtcGetProgramLog(program, log))
    _check(nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
    if status:
        raise ValueError(f"NVRTC cannot compile the text for {architecture}:\n{log.value.decode()}")
    return Report(log.value.decode())


def reports(text: str, options: Sequence[str]) -> list[Report]:
    """Compile a source for an architecture, which its checksum chooses, or for all where that is wanted.

    Raises:
        ValueError: it cannot be compiled; the message contains the compiler's.
    """
    chosen = ARCHITECTURES if ALL else (ARCHITECTURES[crc32(text.encode()) % len(ARCHITECTURES)],)
    return [compiled(text, architecture, options) for architecture in chosen]


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"NVRTC failed with status {status}")
