"""Switches: what programs set for the whole process, and that it is put back."""

from __future__ import annotations

import ast
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cntk as C
from cntk import cntk_py
from cntk.core.common import switches
from cntk.core.common.options import set_global_option
from cntk.core.common.switches import Switch, isolated, registered
from cntk.core.common.thresholds import thresholds
from cntk.core.graph.function import allow_renaming_functions
from cntk.core.run import profiling
from cntk.plugins.progress.not_finite import is_told

COUNTERS_AND_THE_LIKE = {
    "core/graph/placeholders.py": {"_era"},
    "core/machine/processor.py": {"_chosen"},  # of a process that compiles for others and does nothing else
}
"""Names of modules that functions set and that are no switches."""


def exclude_the_cpu() -> None:
    switches.default_device_is_in_use.value = False
    C.device.set_excluded_devices([C.cpu()])


def choose_another_device() -> None:
    cntk_py.always_allow_setting_default_device()
    C.device.try_set_default_device(C.device.DeviceDescriptor(C.device.DeviceKind.CPU, 0, "another"))


def start_the_profiler() -> None:
    C.debugging.start_profiler("nowhere")
    C.debugging.enable_profiler()


SETTERS: dict[str, Callable[[], Any]] = {
    "max_threads": lambda: cntk_py.set_max_num_cputhreads(17),
    "seed_is_fixed": lambda: cntk_py.set_fixed_random_seed(5),
    "next_seed": lambda: cntk_py.reset_random_seed(5),
    "global_options": lambda: set_global_option("align_axis", 1),
    "default_device": choose_another_device,
    "default_device_is_in_use": exclude_the_cpu,
    "default_device_may_change": choose_another_device,
    "excluded_devices": exclude_the_cpu,
    "functions_may_be_renamed": allow_renaming_functions,
    "passes": lambda: C.debugging.set_passes(["dead"]),
    "checked_mode": lambda: C.debugging.set_checked_mode(True),
    "full_tracebacks": lambda: C.debugging.set_full_tracebacks(True),
    "not_finite_is_told": lambda: setattr(is_told, "value", True),
    "math": lambda: C.device.set_math("tf32"),
    "benchmark": lambda: C.device.set_benchmark(True),
    "recorders": lambda: profiling.begin(profiling.Recorder()),
    "thresholds": lambda: setattr(thresholds, "softmax_compiled", 3),
    "default_unit_gain": lambda: C.set_default_unit_gain_value(False),
    "trace_level": lambda: C.logging.set_trace_level(2),
    "deterministic_algorithms": C.debugging.force_deterministic_algorithms,
    "mpipack_threshold": lambda: cntk_py.set_mpipack_threshold(3),
    "profile": start_the_profiler,
    "node_timing": lambda: C.debugging.set_node_timing(True),
}
"""What sets each switch, as programs do."""


@pytest.fixture(autouse=True)
def in_use() -> None:
    C.use_default_device()


def state() -> dict[str, Any]:
    return {name: switch.get() for name, switch in registered.items()}


@pytest.fixture
def scratch() -> Iterator[Switch[int]]:
    """A switch of this test's."""
    yield Switch("scratch", 0)
    del switches._all["scratch"]


def test_there_is_a_setter_for_every_switch() -> None:
    assert SETTERS.keys() == registered.keys()


@pytest.mark.parametrize("name", SETTERS)
def test_what_is_set_in_a_block_is_put_back(name: str) -> None:
    before = state()
    with isolated():
        SETTERS[name]()
        assert registered[name].get() != before[name]
    assert state() == before


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_what_is_set_does_not_matter(seed: int) -> None:
    before, order = state(), list(SETTERS)
    random.Random(seed).shuffle(order)
    with isolated():
        for name in order:
            SETTERS[name]()
    assert state() == before


def test_an_error_in_a_block_comes_out_and_switches_are_put_back(scratch: Switch[int]) -> None:
    @isolated()
    def fail() -> None:
        scratch.value = 1
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        fail()
    assert scratch.value == 0


def test_blocks_lie_within_one_another(scratch: Switch[int]) -> None:
    with isolated():
        scratch.value = 1
        with isolated():
            scratch.value = 2
        assert scratch.value == 1
    assert scratch.value == 0


def test_of_blocks_that_overlap_the_last_to_be_left_puts_back_what_the_first_found(scratch: Switch[int]) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def other() -> None:
        with isolated():
            scratch.value = 1
            begun.set()
            may_end.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    assert begun.wait(60)
    with isolated():
        scratch.value = 2
        may_end.set()
        thread.join()
        assert scratch.value == 2
    assert scratch.value == 0


def test_a_switch_that_came_in_a_block_is_as_it_was_at_first() -> None:
    try:
        with isolated():
            late = Switch("late", 5)
            late.value = 6
        assert late.value == 5
    finally:
        del switches._all["late"]


def test_no_two_switches_have_one_name(scratch: Switch[int]) -> None:
    with pytest.raises(ValueError, match=r"a switch 'scratch' exists already; give this one another name"):
        Switch("scratch", 1)


def test_values_do_not_change_in_place() -> None:
    before = switches.global_options.get()
    set_global_option("a program's own", 1)
    assert "a program's own" not in before


def test_what_is_set_for_the_process_is_a_switch(root: Path) -> None:
    """Nothing else that functions set is a name of a module, but counters."""
    found = {}
    for part in ("api", "core", "plugins", "backends", "readers", "learners"):
        for file in (root / part).rglob("*.py"):
            names = {name for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Global) for name in node.names}
            if names:
                found[file.relative_to(root).as_posix()] = names
    assert found == COUNTERS_AND_THE_LIKE
