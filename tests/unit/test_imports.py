"""``import cntk`` is light: it imports nothing heavy and takes little longer than NumPy alone."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numba", "cupy", "scipy", "mpi4py", "onnx", "matplotlib", "sklearn", "PIL", "tensorboard", "mlflow")
ALLOWED_SECONDS = 0.150
ROUNDS = 7


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_nothing_heavy_is_imported() -> None:
    loaded = run(f"import sys, cntk; print([name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded.strip() == "[]"


def import_seconds(module: str) -> float:
    return float(run(f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"))


def test_import_time() -> None:
    """The best of several rounds: whatever else the machine does only ever adds to the time."""
    numpy = min(import_seconds("numpy") for _ in range(ROUNDS))
    cntk = min(import_seconds("cntk") for _ in range(ROUNDS))
    assert cntk - numpy < ALLOWED_SECONDS, f"import cntk took {cntk:.3f} s, import numpy {numpy:.3f} s"
