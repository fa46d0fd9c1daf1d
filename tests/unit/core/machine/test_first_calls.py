"""On a machine without machine code NumPy serves evaluation until another process has compiled loops; training waits for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.commands.compile import run
from cntk.core.common.thresholds import all_set_to
from cntk.core.machine import first_calls as module
from cntk.core.machine import self_check
from cntk.core.machine.first_calls import SWITCH, FirstCalls
from cntk.core.run import evaluate, workspace

pytestmark = pytest.mark.skipif(not self_check.are_usable(), reason="compiled loops are switched off")

FIRST_CALL = """
import os, signal, sys
import numpy as np
import cntk as C
from cntk.core.machine.first_calls import first_calls

x = C.input_variable((3, 16, 16))
f = C.layers.Convolution2D(3, 8, activation=C.relu, init=C.glorot_uniform(seed=1))(x)
found = f.eval({x: np.random.default_rng(0).random((4, 3, 16, 16), np.float32)})
print("numba" in sys.modules, first_calls._compiler is not None, repr(float(found.sum())))
if first_calls._compiler is not None:
    os.killpg(first_calls._compiler.pid, signal.SIGTERM)
"""


class Compiler:
    """Stands in for the process that compiles."""

    has_ended = False

    def poll(self) -> int | None:
        return 0 if self.has_ended else None


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """A process that compiles what is said to be missing."""
    compiler, calls = Compiler(), FirstCalls()
    monkeypatch.setattr(module, "_is_code_missing", lambda: True)
    monkeypatch.setattr(module, "_compile_beside", lambda: compiler)
    for user in (self_check, workspace, evaluate):
        monkeypatch.setattr(user, "first_calls", calls)
    return compiler


def network() -> tuple[Any, Any]:
    x = C.input_variable(30)
    return x, C.softmax(x)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who has computed each softmax."""
    from cntk.backends.fused.softmax import SoftmaxKernel
    from cntk.core.machine.loops import Loop

    found: list[str] = []
    loop, kernel = Loop.run, SoftmaxKernel.forward
    monkeypatch.setattr(Loop, "run", lambda self, *given, **options: (found.append("loop"), loop(self, *given, **options))[1])
    monkeypatch.setattr(SoftmaxKernel, "forward", staticmethod(lambda *given: (found.append("softmax"), kernel(*given))[1]))
    return found


def test_numpy_serves_evaluation_until_loops_are_there(compiler: Compiler, calls: list[str]) -> None:
    x, f = network()
    data = np.random.default_rng(0).random((40, 30), np.float32)
    with all_set_to(0):
        first = f.eval({x: data})
        assert "loop" not in calls
        compiler.has_ended = True
        second = f.eval({x: data})
    assert "loop" in calls
    np.testing.assert_allclose(first, second, rtol=1e-5)


def test_training_and_gradients_wait_for_loops(compiler: Compiler, calls: list[str]) -> None:
    x, f = network()
    data = np.random.default_rng(0).random((40, 30), np.float32)
    with all_set_to(0):
        f.eval({x: data})
        assert "loop" not in calls
        y = C.input_variable(30, needs_gradient=True)
        C.softmax(y).grad({y: data})
    assert "loop" in calls


def test_two_evaluations_start_one_compiler(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Compiler] = []
    monkeypatch.setattr(module, "_compile_beside", lambda: (started.append(compiler), compiler)[1])
    x, f = network()
    with all_set_to(0):
        for rows in (2, 3):
            f.eval({x: np.ones((rows, 30), np.float32)})
    assert len(started) == 1


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["0", "1"])
def test_the_first_evaluation_imports_no_compiler_unless_it_is_to_wait(tmp_path: Path, wait: str) -> None:
    environment = {**os.environ, SWITCH: wait, "NUMBA_CACHE_DIR": str(tmp_path), "CNTK_PLUGINS": ""}
    done = subprocess.run([sys.executable, "-c", FIRST_CALL], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported, started, total = done.stdout.split()
    assert (imported, started) == (("False", "True") if wait == "0" else ("True", "False"))
    x = C.input_variable((3, 16, 16))
    f = C.layers.Convolution2D(3, 8, activation=C.relu, init=C.glorot_uniform(seed=1))(x)
    here = f.eval({x: np.random.default_rng(0).random((4, 3, 16, 16), np.float32)})
    assert float(total) == pytest.approx(float(here.sum()), rel=1e-5)


def test_processes_are_a_positive_number() -> None:
    with pytest.raises(ValueError, match="--processes: expected a whole number, 1 or more, got 0"):
        run(["--processes", "0"])
