"""``import cntk`` is light: it imports nothing heavy and does little more than NumPy alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HEAVY = ("numba", "cupy", "scipy", "mpi4py", "onnx", "matplotlib", "sklearn", "PIL", "tensorboard", "mlflow", "rich", "pandas", "pyarrow")
ALLOWED_CALLS = 230_000


def run(program: str, **settings: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=kept | settings).stdout


def test_nothing_heavy_is_imported() -> None:
    loaded = run(f"import sys, cntk; print([name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded.strip() == "[]"


def calls_of_import(module: str, compiled: Path) -> int:
    """How many functions are called to import a module whose code has been compiled before, as on any second start."""
    program = (
        "import sys, importlib\ncalls = 0\n"
        "def count(frame, event, argument):\n    global calls\n    calls += event in ('call', 'c_call')\n"
        f"sys.setprofile(count); importlib.import_module({module!r}); sys.setprofile(None)\nprint(calls)"
    )
    run(f"import {module}", PYTHONPYCACHEPREFIX=str(compiled))
    return int(run(program, PYTHONPYCACHEPREFIX=str(compiled)))


def test_importing_does_little_more_than_numpy(tmp_path: Path) -> None:
    """Counted in calls, since clocks of a busy machine differ by more than an import that became heavier."""
    assert calls_of_import("cntk", tmp_path) - calls_of_import("numpy", tmp_path) < ALLOWED_CALLS
