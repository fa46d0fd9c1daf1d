"""Compilation for GPUs that are not there."""

from __future__ import annotations

import os
from importlib.util import find_spec
from types import SimpleNamespace

import pytest


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba compiles for a GPU that is not there."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" or find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda, without its simulator, is what compiles for GPUs")
    pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
    dispatcher = pytest.importorskip("numba.cuda.dispatcher")
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=(9, 0)))
