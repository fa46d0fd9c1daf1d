"""Compiled loops: they are shared where they should be, and their machine code is kept, and used again only where it is what was meant."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)

LOOP = """
import sys
import numpy as np
from cntk.core.machine import machine_code, pool
from cntk.core.machine.intrinsics import _number
from cntk.core.machine.language import prange
from cntk.core.machine.loops import Loop
from cntk.core.common import threads

@Loop
def turns(out):
    for i in prange(out.size):
        out[i] = _number()

threads.set_max_threads(2)
out = np.empty(100, np.int64)
turns.run(False, out)
alone = len(set(out))
turns.run(True, out)
print(alone, len(set(out)) if pool.threads_available() else 2 * pool.PIECES)
"""

TWICE = """
import sys
import numpy as np
from cntk.core.machine.language import prange
from cntk.core.machine.loops import Loop

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

    def output(text: str, folder: Path = tmp_path / "kept", told: str = "", **environment: str) -> str:
        program.write_text(text)
        inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        environment = inherited | {"NUMBA_CACHE_DIR": str(folder)} | environment
        done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, env=environment)
        assert bool(done.stderr) == bool(told)
        assert told in done.stderr
        return done.stdout.strip()

    return output


def test_a_loop_is_shared_though_it_has_run_alone_before(run: Any) -> None:
    assert run(LOOP) == "1 8"


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
    (file,) = (tmp_path / "kept").glob("loop.multiply-*")
    code = file.read_bytes()
    changed = code[:-9] + bytes([code[-9] ^ 1]) + code[-8:]
    file.write_bytes({"cut": code[:-5], "empty": b"", "changed": changed, "another": b"[1]\n" + code}[damage])
    assert run(TWICE) == "6.0 True"
    assert run(TWICE) == "6.0 False"
    assert [kept.name for kept in (tmp_path / "kept").glob("loop.multiply-*")] == [file.name]


def test_a_folder_that_cannot_be_written_to_is_done_without(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    told = f"compiled code cannot be cached, so every process compiles it again: {file / 'kept'}: Not a directory"
    assert run(TWICE, folder=file / "kept", told=told) == "6.0 True"


def test_arguments_that_loops_do_not_take(run: Any) -> None:
    program = TWICE.replace("multiply.run(True, x, np.float32(2))", "")
    answer = run(program + "try:\n    multiply.run(True, x, 'two')\nexcept TypeError as error:\n    print(error)")
    assert answer.endswith("compiled loops take arrays, numbers and tuples of whole numbers, not a str")


def test_a_bound_loop_runs_again_with_what_its_arrays_hold_then(run: Any) -> None:
    bound = "call = multiply.bound(True, x, np.float32(2))\ncall()\nx[0] = 5\ncall()\nprint(x)"
    assert run(TWICE.replace("multiply.run(True, x, np.float32(2))", bound)).startswith("[10.  4.  4.]")


def test_the_arrays_of_a_bound_loop_go_with_it_at_once(run: Any) -> None:
    """Without a collection of cycles: these come so seldom that memory would grow with each size of minibatch."""
    bound = """
import gc, weakref
from cntk.core.common import threads
gc.disable()
threads.set_max_threads(2)
calls, arrays = [], []
for offered in (False, True):
    array = np.ones(3, np.float32)
    calls.append(multiply.bound(True, array, np.float32(2), offered=offered))
    calls[-1]()
    arrays.append(weakref.ref(array))
    del array
print([of() is not None for of in arrays])
calls.clear()
print([of() is not None for of in arrays])
"""
    text = TWICE[: TWICE.index("x = np.ones")] + bound
    assert run(text).split("\n")[:2] == ["[True, True]", "[False, False]"]


def test_a_bound_loop_that_failed_runs_again(run: Any) -> None:
    program = TWICE.replace("x[i] *= factor * 1", "x[:] = np.zeros(np.intp(x[0]), np.float32) + x[0]")
    fails = "call = multiply.bound(False, x, 2)\nx[0] = 5\ntry:\n    call()\nexcept RuntimeError as error:\n    print(error)\n"
    answer = run(program.replace("multiply.run(True, x, np.float32(2))", fails + "x[0] = 3\ncall()"))
    assert "compiled loop 'multiply' failed" in answer
    assert answer.endswith("9.0 True")


def test_a_loop_that_fails_says_so(run: Any) -> None:
    program = TWICE.replace("x[i] *= factor * 1", "x[:] = np.zeros(5, np.float32)")
    program = program.replace("multiply.run(True, x, np.float32(2))", "")
    answer = run(program + "try:\n    multiply.run(False, x, 2)\nexcept RuntimeError as error:\n    print(error)")
    assert "compiled loop 'multiply' failed" in answer


NETWORKS = """
import numpy as np, cntk as C
from cntk.core.machine import loops
from cntk.core.common.thresholds import thresholds

for name in ("batch_normalization", "convolution", "cross_entropy", "dropout", "pooling", "recurrence", "reduction", "softmax"):
    setattr(thresholds, f"{name}_compiled", 1)
used, made_for = {}, loops.Loop._made_for

def noted(loop, kinds):
    used[loop] = kinds
    return made_for(loop, kinds)

loops.Loop._made_for = noted

def train(z, x, data):
    z = C.reduce_sum(z * z)
    C.Trainer(z, z, [C.sgd(z.parameters, C.learning_parameter_schedule(0.01))]).train_minibatch({x: data})

image, words = C.input_variable((2, 12, 12)), C.sequence.input_variable(4)
first = C.layers.Convolution2D((3, 3), 4, pad=True, activation=C.relu)
rest = [C.layers.BatchNormalization(map_rank=1), C.layers.MaxPooling((2, 2), 2), C.layers.Convolution2D((3, 3), 4), C.layers.Dense(3)]
train(C.layers.Sequential([first, *rest])(image), image, np.ones((8, 2, 12, 12), np.float32))
train(C.layers.Recurrence(C.layers.LSTM(5))(words), words, [np.ones((n, 4), np.float32) for n in (3, 5, 2)])
row, right = C.input_variable(3), C.input_variable(3, is_sparse=True)
z = C.dropout(C.layers.Dense(3)(row), 0.5)
parts = [C.softmax(z), C.log_softmax(z), C.reduce_max(z), C.reduce_min(z), C.reduce_log_sum_exp(z)]
losses = [C.cross_entropy_with_softmax(z, target) for target in (row, right)]
loss = sum(map(C.reduce_sum, parts + losses))
loss.grad({row: np.ones((2, 3), np.float32), right: C.Value.one_hot([[0], [2]], 3)}, wrt=z.parameters)
for loop, kinds in used.items():
    if kinds != loop.kinds(False):
        print(loop.function.__module__, loop.function.__name__, kinds)
print(len(used))
"""


def test_loops_are_compiled_ahead_for_the_arguments_that_they_get() -> None:
    done = subprocess.run([sys.executable, "-c", NETWORKS], capture_output=True, text=True, check=True)
    *wrong, count = done.stdout.splitlines()
    assert wrong == []
    assert int(count) >= 25


def test_loops_compiled_ahead_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cntk.core.machine import precompile

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(precompile, "_names", lambda *_: {"cntk.backends.fused.sgd:descend": [False, True]})
    assert list(precompile.compile_ahead([])) == ["cntk.backends.fused.sgd:descend"]
    assert sorted(file.name.split("-")[0] for file in tmp_path.iterdir()) == ["loop.descend", "loop.read"]
