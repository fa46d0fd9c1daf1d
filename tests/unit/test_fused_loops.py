"""Compiled loops: they are shared where they should be, and their machine code is kept, and used again only where it is what was meant."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba", reason="loops are compiled by Numba")

LOOP = """
import sys
import numpy as np
from cntk.backends.fused import machine_code, openmp
from cntk.backends.fused.intrinsics import _thread
from cntk.backends.fused.language import prange
from cntk.backends.fused.loops import Loop
from cntk.core import threads

@Loop
def turns(out):
    for i in prange(out.size):
        out[i] = _thread()

threads.set_max_threads(2)
out = np.empty(100, np.int64)
turns.run(False, out)
alone = len(set(out))
turns.run(True, out)
print(alone, len(set(out)) if openmp.are_shared() else 2)
"""

TWICE = """
import sys
import numpy as np
from cntk.backends.fused.language import prange
from cntk.backends.fused.loops import Loop

@Loop
def multiply(x, factor):
    for i in prange(x.size):
        x[i] *= factor * 1

x = np.ones(3, np.float32)
multiply.run(True, x, np.float32(2))
print(x.sum(), "numba" in sys.modules)
"""


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Runs a program, whose loops' machine code is kept in a folder of its own."""
    program = tmp_path / "program.py"

    def output(text: str, folder: Path = tmp_path / "kept", **environment: str) -> str:
        program.write_text(text)
        inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        environment = inherited | {"NUMBA_CACHE_DIR": str(folder)} | environment
        done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, env=environment)
        assert not done.stderr
        return done.stdout.strip()

    return output


def test_a_loop_is_shared_though_it_has_run_alone_before(run: Any) -> None:
    assert run(LOOP) == "1 2"


def test_machine_code_is_used_again_without_numba(run: Any) -> None:
    assert run(TWICE) == "6.0 True"
    assert run(TWICE) == "6.0 False"


def test_machine_code_is_not_used_for_another_source(run: Any) -> None:
    run(TWICE)
    assert run(TWICE.replace("factor * 1", "factor * 3")) == "18.0 True"
    assert run(TWICE) == "6.0 True"


def test_machine_code_is_not_used_with_other_settings(run: Any) -> None:
    run(TWICE)
    assert run(TWICE, NUMBA_ENABLE_AVX="0") == "6.0 True"


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "another"])
def test_damaged_machine_code_is_made_again(run: Any, tmp_path: Path, damage: str) -> None:
    run(TWICE)
    (file,) = (tmp_path / "kept").iterdir()
    code = file.read_bytes()
    changed = code[:-9] + bytes([code[-9] ^ 1]) + code[-8:]
    file.write_bytes({"cut": code[:-5], "empty": b"", "changed": changed, "another": b"[1]\n" + code}[damage])
    assert run(TWICE) == "6.0 True"
    assert run(TWICE) == "6.0 False"
    assert [kept.name for kept in (tmp_path / "kept").iterdir()] == [file.name]


def test_a_folder_that_cannot_be_written_to_is_done_without(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert run(TWICE, folder=file / "kept") == "6.0 True"


def test_arguments_that_loops_do_not_take(run: Any) -> None:
    program = TWICE.replace("multiply.run(True, x, np.float32(2))", "")
    answer = run(program + "try:\n    multiply.run(True, x, 'two')\nexcept TypeError as error:\n    print(error)")
    assert answer.endswith("compiled loops take arrays, numbers and tuples of whole numbers, not a str")


def test_a_loop_that_fails_says_so(run: Any) -> None:
    program = TWICE.replace("x[i] *= factor * 1", "x[:] = np.zeros(5, np.float32)")
    program = program.replace("multiply.run(True, x, np.float32(2))", "")
    answer = run(program + "try:\n    multiply.run(False, x, 2)\nexcept RuntimeError as error:\n    print(error)")
    assert "compiled loop 'multiply' failed" in answer
