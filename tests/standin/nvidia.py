"""Installation of stand-ins for NVIDIA's libraries in the whole process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from cntk.backends.cupy import libraries

from . import cuda
from .cublaslt import Cublaslt
from .cudnn import Cudnn


def loading(**standins: Any) -> Callable[[libraries.Library], libraries.Loaded]:
    """Return a replacement for ``libraries.load`` that returns stand-ins by name; other libraries are missing."""

    def load(library: libraries.Library) -> libraries.Loaded:
        if library.name not in standins:
            raise libraries.Missing(f"there is no {library.name}")
        return libraries.Loaded(library, standins[library.name], f"standin/{library.name}")

    return load


def install() -> None:
    """Install the stand-ins in this process; they record only their most recent calls."""
    standins = Cublaslt(), Cudnn()
    for standin in standins:
        standin.calls = deque(maxlen=100)  # type: ignore[assignment]
        standin.hand_over = cuda.work
    libraries.load = loading(cublasLt=standins[0], cudnn=standins[1])
