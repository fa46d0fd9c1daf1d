"""Loading of NVIDIA's libraries with ctypes: search, version check, and conversion of status codes to exceptions.

Libraries are searched for in their pip packages, by cuda-pathfinder if it is installed, otherwise in the ``nvidia`` folder of
site-packages; and finally on the search path of the system's loader.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...core.common.switches import benchmark, deterministic_algorithms, math
from ...core.extension.compiled import Unusable


class Missing(Unusable):
    """Raised if a library is not installed, cannot be loaded, or has an unsupported version."""


@dataclass(frozen=True)
class Library:
    """Description of a library.

    Attributes:
        title: display name.
        name: name in cuda-pathfinder.
        files: file names, in order of preference.
        folders: folders in pip packages, relative to the ``nvidia`` folder.
        packages: pip packages that contain it, for CUDA 13 and 12.
        versions: first supported version, and first version no longer supported.
        purpose: what it is used for.
        asks: function that reports the version; empty if only CuPy calls the library.
        names: function that names a status code; empty if only CuPy calls the library.
        by_pointer: whether the version function writes to a pointer instead of returning the version.
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
        """The pip packages to install, as text for messages."""
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
    "convolutions, pooling, recurrent layers",
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
    """A loaded library.

    Args:
        library: its description.
        functions: object with its functions as attributes, such as a ``ctypes.CDLL``.
        path: path of its file.

    Attributes:
        library, path: as given.
        version: its version.

    Raises:
        Missing: the version is not supported.
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
        """Return a library function that raises an exception in place of returning a status code.

        Args:
            name: name of the function.
            types: ctypes of its arguments.

        Returns:
            A function of these arguments, which raises RuntimeError if the status is not success.

        Raises:
            Missing: this version of the library has no such function.
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
        """Return the library's name of a status code."""
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
    """Return a library, loaded on first use.

    Raises:
        Missing: the library cannot be used; the message says why, and what to install.
    """
    found = _attempt(library)
    if isinstance(found, Missing):
        raise found
    return found


def dotted(version: int) -> str:
    """Return a version number in dotted form.
    >>> from cntk.backends.cupy.libraries import dotted
    >>> dotted(91900), dotted(131000), dotted(22707)
    ('9.19.0', '13.10.0', '2.27.7')
    """
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def _places(library: Library) -> Iterator[str]:
    """Yield candidate paths of the library, the likeliest first."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        yield load_nvidia_dynamic_lib(library.name).abs_path
    except Exception:  # not installed, too old to know the library, or library not found
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
    target = getattr(argument, "_obj", argument)  # unwraps the result of byref
    return str(getattr(target, "value", target))


def current_stream() -> Callable[[], int]:
    """Return a function that returns the pointer of the current stream."""
    from cupy.cuda import get_current_stream

    return lambda: get_current_stream().ptr


def allows_tf32() -> bool:
    """Whether float32 operands may be rounded to TF32 before they are multiplied."""
    return math.value == "tf32"


def may_take_times() -> bool:
    """Whether algorithms may be chosen by the times that they take."""
    return benchmark.value and not deterministic_algorithms.value
