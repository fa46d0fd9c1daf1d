"""NVIDIA's libraries as functions of Python: where they are, whether their version will do, and errors in place of a status.

They are looked for where their pip packages put them: by cuda-pathfinder where that is installed, else in the folder ``nvidia`` of
Python's packages, and at last where the system's loader looks.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...core.common.switches import math
from ...core.extension.compiled import Unusable


class Missing(Unusable):
    """A library is not there, cannot be loaded, or has another version than one that is known."""


@dataclass(frozen=True)
class Library:
    """What is known of a library.

    Attributes:
        title: what people call it.
        name: what cuda-pathfinder calls it.
        files: names of its file, the best first.
        folders: where pip packages have it, below the folder ``nvidia``.
        packages: the pip packages that bring it, for CUDA 13 and 12.
        versions: the first version that will do, and the first that may not.
        purpose: what it is for.
        asks: the function that tells the version; empty where only CuPy calls the library.
        names: the function that names a status; likewise.
        by_pointer: whether the version is written where the function is told to, and not returned.
    """

    title: str
    name: str
    files: tuple[str, ...]
    folders: tuple[str, ...]
    packages: tuple[str, str]
    versions: tuple[int, int]
    purpose: str
    asks: str = ""
    names: str = ""
    by_pointer: bool = False

    @property
    def package(self) -> str:
        """What to install, in words."""
        return f"{self.packages[0]} (for CUDA 13) or {self.packages[1]}"


CUBLASLT = Library(
    "cuBLASLt",
    "cublasLt",
    ("libcublasLt.so.13", "libcublasLt.so.12"),
    ("cu13/lib", "cublas/lib"),
    ("nvidia-cublas", "nvidia-cublas-cu12"),
    (120000, 140000),
    "products of matrices",
    "cublasLtGetVersion",
    "cublasLtGetStatusName",
)
CUDNN = Library(
    "cuDNN",
    "cudnn",
    ("libcudnn.so.9",),
    ("cudnn/lib",),
    ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"),
    (90000, 100000),
    "convolutions, pooling, normalisation, recurrent layers",
    "cudnnGetVersion",
    "cudnnGetErrorString",
)
NVRTC = Library(
    "NVRTC",
    "nvrtc",
    ("libnvrtc.so.13", "libnvrtc.so.12"),
    ("cu13/lib", "cuda_nvrtc/lib"),
    ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"),
    (120000, 140000),
    "compiling kernels",
)
NCCL = Library(
    "NCCL",
    "nccl",
    ("libnccl.so.2",),
    ("nccl/lib",),
    ("nvidia-nccl-cu13", "nvidia-nccl-cu12"),
    (21800, 30000),
    "sums over several GPUs",
    "ncclGetVersion",
    "ncclGetErrorString",
    by_pointer=True,
)


class Loaded:
    """A library that is there.

    Args:
        library: which it is.
        functions: what has its functions as attributes.
        path: its file.

    Attributes:
        library, path: as given.
        version: its version.

    Raises:
        Missing: the version is not one that is known.
    """

    def __init__(self, library: Library, functions: Any, path: str) -> None:
        self.library, self.path, self._functions = library, path, functions
        self.version = self._asked()
        least, end = library.versions
        if not least <= self.version < end:
            raise Missing(
                f"{path} has version {dotted(self.version)}; one from {dotted(least)} on and before {dotted(end)} is needed: "
                f"pip install --upgrade {library.package}"
            )

    def _asked(self) -> int:
        ask = getattr(self._functions, self.library.asks)
        if not self.library.by_pointer:
            ask.restype = ctypes.c_size_t
            return int(ask())
        version = ctypes.c_int()
        ask(ctypes.byref(version))
        return version.value

    def function(self, name: str, types: Sequence[Any]) -> Callable[..., None]:
        """A function that returns a status, with errors in its place.

        Args:
            name: its name.
            types: ctypes of its arguments.

        Returns:
            A function of these arguments, which raises RuntimeError where the status is not that of success.

        Raises:
            Missing: this version has no such function.
        """
        found = getattr(self._functions, name, None)
        if found is None:
            raise Missing(
                f"{self.path}, version {dotted(self.version)}, has no function {name}: pip install --upgrade {self.library.package}"
            )
        found.argtypes, found.restype = tuple(types), ctypes.c_int

        def call(*arguments: Any) -> None:
            status = found(*arguments)
            if status:
                raise RuntimeError(f"{name} failed with {self.name_of(status)} ({status}) when given {_shown(arguments)}")

        return call

    def name_of(self, status: int) -> str:
        """What the library calls a status."""
        name = getattr(self._functions, self.library.names)
        name.argtypes, name.restype = (ctypes.c_int,), ctypes.c_char_p
        text: bytes | None = name(status)
        return "a status without a name" if text is None else text.decode()


@lru_cache(maxsize=len((CUBLASLT, CUDNN, NCCL)))
def _attempt(library: Library) -> Loaded | Missing:
    reasons: list[str] = []
    for path in _places(library):
        try:
            return Loaded(library, ctypes.CDLL(path), path)
        except (OSError, Missing) as error:
            reasons.append(str(error))
    return Missing(f"{library.files[0]} cannot be used: {reasons[0]}; to have it: pip install {library.package}")


def load(library: Library) -> Loaded:
    """A library, which is looked for the first time that it is asked for.

    Raises:
        Missing: it is not there; the message says why, and what to install.
    """
    found = _attempt(library)
    if isinstance(found, Missing):
        raise found
    return found


def dotted(version: int) -> str:
    """A version as people write it.

    >>> from cntk.backends.cupy.libraries import dotted
    >>> dotted(91900), dotted(131000), dotted(22707)
    ('9.19.0', '13.10.0', '2.27.7')
    """
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def _places(library: Library) -> Iterator[str]:
    """Where the library may be, the likeliest place first."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        yield load_nvidia_dynamic_lib(library.name).abs_path
    except Exception:  # it is not installed, too old to know the library, or does not find it
        pass
    for folder in dict.fromkeys(sys.path):
        for inner in library.folders:
            for file in library.files:
                path = Path(folder) / "nvidia" / inner / file
                if path.exists():
                    yield str(path)
    yield from library.files


def _shown(arguments: Sequence[Any]) -> str:
    return f"({', '.join(map(_shown_one, arguments))})"


def _shown_one(argument: Any) -> str:
    if isinstance(argument, ctypes.Array):
        return str(list(argument))
    target = getattr(argument, "_obj", argument)  # of what byref gives
    return str(getattr(target, "value", target))


def current_stream() -> Callable[[], int]:
    """A function that gives the address of the stream that work goes to now."""
    from cupy.cuda import get_current_stream

    return lambda: get_current_stream().ptr


def allows_tf32() -> bool:
    """Whether float32 numbers may lose bits of their fraction before they are multiplied."""
    return math.value == "tf32"
