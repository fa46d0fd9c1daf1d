"""The numba-cuda backend, whose memory and arrays are those of the backend ``cupy`` or, under Numba's simulator, NumPy's."""

from __future__ import annotations

import os
from typing import Any

from ...core.common.cached_property import cached_property
from ...core.extension import plugins
from ...core.extension.device import GPU_CHOICE, DeviceKind
from ..numpy.backend import NumpyBackend
from . import BACKEND
from .availability import is_simulated, why_not

ARRAYS = "cupy"
"""The backend whose memory and arrays are used if there is a GPU."""


def _arrays() -> Any:
    """Return the class of the backend that provides memory and arrays; NumPy's if no other is usable, which ``unavailable`` reports."""
    return NumpyBackend if is_simulated() or ARRAYS not in plugins.backends else plugins.backends.get(ARRAYS)


class NumbaCudaBackend(_arrays()):  # type: ignore[misc]
    """Backend for one GPU with kernels compiled by Numba; used only if selected by ``CNTK_GPU_BACKEND=numba-cuda``.

    Random numbers are drawn by kernels; operators without a kernel compute on the arrays, as on the backend that provides these.

    Args:
        device_id: index of the GPU.
    """

    name = BACKEND
    kind: int = DeviceKind.GPU
    for_tests = os.environ.get(GPU_CHOICE, "").strip() != BACKEND

    @property
    def xp(self) -> Any:
        """The array namespace, with a kernel for sums of runs of rows."""
        return self._namespace

    @cached_property
    def _namespace(self) -> Any:
        from .namespace import Namespace

        return Namespace(super().xp)

    def unavailable(self) -> str:
        why: str = why_not()
        if not why and not is_simulated() and ARRAYS not in plugins.backends:
            why = f"its arrays are those of the backend '{ARRAYS}', which is not registered; `cntk doctor` shows what there is"
        return why or super().unavailable()

    def describe(self) -> str:
        where = "Numba's simulator, in place of a GPU" if is_simulated() else super().describe()
        return f"kernels of Numba; {where}"

    def properties(self) -> Any:
        if is_simulated():
            raise ValueError(f"backend '{BACKEND}': Numba's simulator has no GPU properties")
        return super().properties()

    def uniform(self, out: Any, seed: int, draw: int) -> None:
        from .random import uniform

        with self.guard():
            uniform(out, seed, draw)

    def normal(self, out: Any, seed: int, draw: int) -> None:
        from .random import normal

        with self.guard():
            normal(self, out, seed, draw)
