"""Tests that run kernels under Numba's simulator, as ``make test-simulator`` does."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

on_the_simulator = pytest.mark.skipif(
    os.environ.get("NUMBA_ENABLE_CUDASIM") != "1" or os.environ.get("CNTK_TEST_BACKEND") != "numba-cuda" or find_spec("numba_cuda") is None,
    reason="make test-simulator runs it, where numba-cuda is installed",
)
