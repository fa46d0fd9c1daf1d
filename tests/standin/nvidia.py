"""NVIDIA's libraries for a whole process: stand-ins in the place of those that are not there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from cntk.backends.cupy import libraries

from . import cuda
from .cublaslt import Cublaslt
from .cudnn import Cudnn


def loading(**standins: Any) -> Callable[[libraries.Library], libraries.Loaded]:
    """What loads stand-ins, by their names; the others are missing."""

    def load(library: libraries.Library) -> libraries.Loaded:
        if library.name not in standins:
            raise libraries.Missing(f"there is no {library.name}")
        return libraries.Loaded(library, standins[library.name], f"standin/{library.name}")

    return load


def install() -> None:
    """Let this process have the stand-ins from now on; they remember their last calls alone."""
    standins = Cublaslt(), Cudnn()
    for standin in standins:
        standin.calls = deque(maxlen=100)  # type: ignore[assignment]
        standin.hand_over = cuda.work
    libraries.load = loading(cublasLt=standins[0], cudnn=standins[1])
