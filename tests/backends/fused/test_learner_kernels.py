"""Kernels of learners: the same numbers, to the bit, as the learners' own steps, whatever the number of threads."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from learner_rules import RULES

import cntk as C
from cntk.core.common import threads
from cntk.core.common.sums import BLOCK
from cntk.core.common.thresholds import thresholds
from cntk.core.extension import plugins
from cntk.core.extension.identity import identity_of
from cntk.core.types.sparse import RowSparse
from cntk.learners import IGNORE

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
loops = pytest.importorskip("cntk.core.machine.loops")
pytestmark = pytest.mark.usefixtures("three_threads")

all_rules = pytest.mark.parametrize("rule", RULES)

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "mean": {"minibatch_size": IGNORE},
    "clipped, l2": {"gradient_clipping_threshold_per_sample": 0.2, "l2_regularization_weight": 0.1},
    "scaled to a norm, mean": {
        "gradient_clipping_threshold_per_sample": 0.01,
        "gradient_clipping_with_truncation": False,
        "minibatch_size": IGNORE,
    },
    "l1, noise": {"l1_regularization_weight": 0.01, "gaussian_noise_injection_std_dev": 0.1},
}
SHAPES = ((100, 70), (3,), (), (BLOCK,), (3 * BLOCK + 65,))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays in place of large ones."""
    pytest.importorskip("cntk.backends.fused.kernel")
    monkeypatch.setattr(thresholds, "elements_shared", 1)
    monkeypatch.setattr(thresholds, "learner_shared", 1)
    monkeypatch.setattr(thresholds, "rows_shared", 1)
    monkeypatch.setattr(thresholds, "learner_compiled", 1)


def gradient(random: Any, shape: Any, dtype: Any, step: int) -> Any:
    array = np.array(random.normal(size=shape)).astype(dtype)
    array.flat[: array.size // 8] = (0.0, -0.0, np.inf)[step % 2]
    return array


def sparse_gradient(random: Any, shape: Any, dtype: Any) -> RowSparse:
    rows = np.sort(random.choice(shape[0], shape[0] // 3, replace=False))
    made = RowSparse(shape, dtype)
    made.set(rows, random.normal(size=(len(rows), *shape[1:])).astype(dtype))
    return made


def train(make: Callable[..., Any], dtype: Any, options: dict[str, Any], sparse: bool = False, steps: int = 5) -> list[Any]:
    """Parameters and smoothed gradients after some steps."""
    random = np.random.default_rng(0)
    C.cntk_py.set_fixed_random_seed(1)
    parameters = [C.parameter(init=np.array(random.normal(size=shape)).astype(dtype)) for shape in SHAPES]
    learner = make(parameters, **options)
    for step in range(steps):
        gradients: dict[Any, Any] = {p: gradient(random, p.shape, dtype, step) for p in parameters}
        if sparse:
            gradients[parameters[0]] = sparse_gradient(random, parameters[0].shape, dtype)
        learner.update(gradients, 2 * step + 1)
    states = learner.create_checkpoint()["smoothed_gradients"]
    return [*(p.value for p in parameters), *(array for state in states for array in state.values())]


def assert_same_bits(given: list[Any], expected: list[Any]) -> None:
    for left, right in zip(given, expected, strict=True):
        assert left.tobytes() == right.tobytes()


def own_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "learner_compiled", 2**62)


@all_rules
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_kernels_compute_what_steps_compute(rule: str, options: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = train(RULES[rule], dtype, OPTIONS[options])
    threads.set_max_threads(1)
    assert_same_bits(train(RULES[rule], dtype, OPTIONS[options]), fused)
    own_steps(monkeypatch)
    assert_same_bits(train(RULES[rule], dtype, OPTIONS[options]), fused)


@all_rules
@pytest.mark.parametrize("options", ["plain", "clipped, l2"])
def test_row_sparse_gradients(rule: str, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = train(RULES[rule], np.float32, OPTIONS[options], sparse=True)
    own_steps(monkeypatch)
    assert_same_bits(train(RULES[rule], np.float32, OPTIONS[options], sparse=True), fused)


def test_gradients_that_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(rule: str) -> Any:
        w = C.parameter(init=np.ones(100, np.float32))
        learner = RULES[rule]([w])
        for value in (1e25, 1, np.inf, np.nan):
            learner.update({w: np.full(100, value, np.float32)}, 1)
        return w.value

    fused = {rule: trained(rule) for rule in RULES}
    own_steps(monkeypatch)
    for rule in RULES:
        np.testing.assert_array_equal(trained(rule), fused[rule])


def test_every_learner_that_has_a_step_has_a_kernel() -> None:
    made = [rule([C.parameter(1)]) for rule in RULES.values()]
    names = {identity_of(type(learner)) for learner in made}
    fused = {name for name, backend in plugins.kernels if plugins.kernels.owner((name, backend)) == "opencntk:fused"}
    assert names == {name for name in fused if name.startswith("cntk.learners.")}
    assert {rule.split()[0] for rule in RULES} - {"adamax"} == {*learner_names()} - {"universal"}


def learner_names() -> list[str]:
    return [name for name in plugins.learners if plugins.learners.owner(name) == "opencntk:learners"]


def test_a_learner_of_the_same_name_has_no_kernel() -> None:
    class SGD(type(C.sgd([C.parameter(1)], 1))):  # type: ignore[misc]
        def step(self, xp: Any, w: Any, g: Any, states: Any, work: Any) -> None:
            w[...] = 7

    w = C.parameter(100)
    learner = SGD([w], 0.1, C.learners.learner.LearnerOptions())
    learner.update({w: np.ones(100)}, 1)
    assert w.value.tolist() == [7] * 100


@all_rules
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("options", ["plain", "clipped, l2", "scaled to a norm, mean"])
def test_updates_allocate_nothing(rule: str, fused: bool, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 400_000  # beside which what Python allocates is small
    if not fused:
        own_steps(monkeypatch)
    w = C.parameter(init=np.ones(size, np.float32))
    learner = RULES[rule]([w], **OPTIONS[options])
    g = np.ones(size, np.float32)
    learner.update_arrays([g], 4)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(3):
            learner.update_arrays([g], 4)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < size / 4  # one array of the parameter's has 4 bytes an element


def test_small_learners_load_no_kernels() -> None:
    assert in_a_process(f"p = C.parameter({2**17 - 1}); C.adam([p], 1, 0.9); print('llvmlite' in sys.modules)") == "False"


def test_without_loops_the_numbers_are_the_same() -> None:
    program = """
p = C.parameter(init=np.linspace(-1, 1, 2**20, dtype=np.float32))
learner = C.adam([p], 0.1, 0.9)
for count in (3, 4):
    learner.update({p: np.linspace(1, 2, 2**20, dtype=np.float32)}, count)
print('cntk.core.machine.loops' in sys.modules, hashlib.sha256(p.value.tobytes()).hexdigest())
"""
    compiled, plain = (in_a_process(program, first).split() for first in ("", "os.environ['CNTK_FUSED'] = '0'"))
    assert (compiled[0], plain[0]) == ("True", "False")
    assert compiled[1] == plain[1]


def test_what_does_not_import_is_told_once_and_done_without() -> None:
    program = """
class Broken(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] == 'llvmlite':
            raise ImportError('llvmlite is of another time')
sys.meta_path.insert(0, Broken())
p = C.parameter(2**20)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter('always')
    learner = C.sgd([p], 1.0)
    C.adam([p], 1.0, 0.9)
learner.update({p: np.ones(2**20)}, 1)
print(len(told), told[0].message, p.value[0])
"""
    wanted = "1 compiled loops are switched off: ImportError: llvmlite is of another time; results are the same, but take longer -1.0"
    assert in_a_process(program) == wanted


def in_a_process(program: str, first: str = "") -> str:
    """What a program prints."""
    code = f"import hashlib, importlib.abc, os, sys, warnings\n{first}\nimport numpy as np\nimport cntk as C\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
