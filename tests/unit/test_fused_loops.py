"""Compiled loops: they are shared where they should be, whatever Numba keeps on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="loops are compiled by Numba")

TURNS = """
import numba, numpy as np
from cntk.backends.fused import loops
from cntk.core import threads

@loops.Loop
def turns(out):
    for i in numba.prange(out.size):
        out[i] = numba.get_thread_id()

threads.set_max_threads(2)
out = np.empty(100, np.int64)
turns.run(False, out)
alone = len(set(out))
turns.run(True, out)
print(alone, len(set(out)) if loops.are_shared() else 2)
"""


def test_a_loop_is_shared_though_it_has_run_alone_before(tmp_path: Path) -> None:
    program = tmp_path / "turns.py"  # Numba keeps results only for functions in files
    program.write_text(TURNS)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, env=environment)
    assert (done.stdout.strip(), done.stderr) == ("1 2", "")
