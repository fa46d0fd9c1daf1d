"""Compiled loops are tried before they are trusted; what fails is switched off, told once, and the results stay the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cntk.core.extension import compiled
from cntk.core.machine import array_layout, numba_version, self_check

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)

TRAINING = """
import warnings
import numpy as np
import cntk as C
from cntk.core.machine import {module}

{fault}
x, y = C.input_variable((3, 16, 16)), C.input_variable(10)
layers = [C.layers.Convolution2D((3, 3), 16, C.relu, init=C.glorot_uniform(seed=1)), C.layers.MaxPooling((2, 2)),
          C.layers.Dense(10, init=C.glorot_uniform(seed=2))]
model = C.layers.Sequential(layers)(x)
loss = C.cross_entropy_with_softmax(model, y)
random = np.random.default_rng(1)
pixels, classes = random.normal(size=(32, 3, 16, 16)).astype(np.float32), np.eye(10, dtype=np.float32)[np.arange(32) % 10]
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    trainer = C.Trainer(model, (loss, loss), [C.sgd(model.parameters, 0.1)])
    for _ in range(3):
        trainer.train_minibatch({{x: pixels, y: classes}})
print(f"{{trainer.previous_minibatch_loss_average:.4f}}")
print(*(message.message for message in told), sep="|")
"""


@pytest.fixture
def unchecked() -> Iterator[None]:
    """The check is run again, and nothing is switched off before and after."""
    self_check.why_not.cache_clear()
    noted = dict(compiled.switched_off)
    compiled.switched_off.clear()
    yield
    self_check.why_not.cache_clear()
    compiled.switched_off.clear()
    compiled.switched_off.update(noted)


def trained(fault: str, module: str = "self_check") -> list[str]:
    """The loss of a training in which something is wrong, and what is told."""
    program = TRAINING.format(fault=fault, module=module)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture(scope="module")
def loss() -> str:
    """The loss when all is well."""
    loss, told = trained("")
    assert not told
    return loss


@pytest.mark.parametrize("offset", ["DATA", "SHAPE", "STRIDES"])
def test_arrays_that_are_laid_out_otherwise_are_known(monkeypatch: pytest.MonkeyPatch, offset: str) -> None:
    assert array_layout.is_known()
    monkeypatch.setattr(array_layout, offset, getattr(array_layout, offset) + array_layout.WORD)
    assert not array_layout.is_known()


def test_arrays_that_are_too_small_for_the_layout_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_layout, "STRIDES", np.ndarray.__basicsize__)
    assert not array_layout.is_known()


def test_another_layout_switches_loops_off_and_is_told_once(loss: str) -> None:
    found, told = trained("array_layout.DATA += 8", "array_layout")
    assert found == loss
    assert told.startswith(f"compiled loops are switched off: NumPy {np.__version__} lays out arrays in a way that they do not support;")
    assert "|" not in told


def test_code_that_reads_something_else_switches_loops_off(loss: str) -> None:
    found, told = trained("self_check._numbers = lambda arrays: [0] * 12")
    assert found == loss
    assert told.startswith(f"compiled loops are switched off: machine code does not read the arrays of NumPy {np.__version__};")


def test_threads_that_do_not_share_work_switch_threads_off(loss: str) -> None:
    fault = "from cntk.core.common.threads import set_max_threads; set_max_threads(2); pool._shares_work = lambda: False"
    found, told = trained(fault, "pool")
    assert found == loss
    assert told in ("", "threads of compiled loops are switched off: threads of this system do not share work as they should; "
                    "results are the same, but take longer")  # fmt: skip
    assert told or sys.platform != "linux"


def test_threads_share_work() -> None:
    from cntk.core.machine import pool

    if not pool.threads_available():
        pytest.skip(pool.why_alone())
    assert pool._shares_work()


def test_a_blas_that_multiplies_wrongly_keeps_its_threads(loss: str) -> None:
    fault = """
from cntk.core.machine import pool
from cntk.core.common.threads import set_max_threads
set_max_threads(2)
numbers = iter(range(9))
blas_threads._product = lambda: np.array(next(numbers))
"""
    found, told = trained(fault, "blas_threads")
    assert found == loss
    if blas_threads_may_be_lent():
        assert told.startswith("products on the threads of compiled loops are switched off: NumPy's OpenBLAS multiplies wrongly")


def blas_threads_may_be_lent() -> bool:
    program = "from cntk.core.machine import blas_threads as b, pool as p; print(p.threads_available() and b.share_threads(p.pool()))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "True"


@pytest.mark.parametrize("version", ["0.61.2", "9.0", "1.0rc1", "of an unknown version"])
def test_an_unknown_numba_compiles_nothing(monkeypatch: pytest.MonkeyPatch, unchecked: None, tmp_path: Path, version: str) -> None:
    from cntk.core.machine import machine_code

    monkeypatch.setattr(numba_version, "version", lambda name: version)
    numba_version.why_not.cache_clear()
    monkeypatch.setattr(machine_code, "PREBUILT", tmp_path)
    try:
        with pytest.warns(RuntimeWarning, match="loops are switched off: there is no machine code"):
            assert f"Numba {version} is not known to compile loops; numba>=" in self_check.why_not()
        with pytest.raises(compiled.Unusable, match="compiled loops are switched off"):
            self_check.require()
    finally:
        numba_version.why_not.cache_clear()


def test_versions_for_builds_are_those_that_are_known(root: Path) -> None:
    assert f'COMPILER = "{numba_version.COMPILER};' in (root / "packaging" / "opencntk_build.py").read_text("utf-8")


def test_the_switch_turns_loops_off(loss: str) -> None:
    program = "import os; os.environ['CNTK_FUSED'] = '0'\n" + TRAINING.format(fault="", module="self_check")
    program += "\nimport sys; print('llvmlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [loss, "", "False"]


def test_an_empty_switch_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled.SWITCH, "")
    assert compiled.is_wanted()


@pytest.mark.parametrize("said", ["no", "-1", "2"])
def test_the_switch_is_0_or_1(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv(compiled.SWITCH, said)
    with pytest.raises(ValueError, match=f"the environment variable CNTK_FUSED must be 0 or 1, got '{said}'"):
        compiled.is_wanted()
