"""Choosing passes, and passes of plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.core.extension.hookspecs import hookimpl
from cntk.core.program import passes
from cntk.core.run.evaluate import program_for


def test_all_passes_run_unless_some_are_chosen() -> None:
    everything = [one.name for one in passes.chosen()]
    rewriting = ["identities", "common", "fuse_pairs", "constants", "scaling", "dead", "fuse_expressions", "swap_max", "epilogues"]
    assert everything == [*rewriting, "accumulation", "in_place", "row_blocking"]
    C.debugging.set_passes(["dead", "common"])
    assert [one.name for one in passes.chosen()] == ["common", "dead"]  # the order is theirs
    C.debugging.set_passes([])
    assert passes.chosen() == []
    C.debugging.set_passes()
    assert [one.name for one in passes.chosen()] == everything


def test_a_name_that_no_pass_has_is_refused_and_changes_nothing() -> None:
    C.debugging.set_passes(["dead"])
    with pytest.raises(ValueError, match="no pass is called 'deed'; there are identities, common, fuse_pairs"):
        C.debugging.set_passes(["common", "deed"])
    assert [one.name for one in passes.chosen()] == ["dead"]


def test_programs_of_different_passes_are_kept_side_by_side() -> None:
    x = C.input_variable(2)
    f = C.plus(C.exp(x), C.exp(x))
    with_passes = program_for(f, f.outputs)
    C.debugging.set_passes([])
    without = program_for(f, f.outputs)
    assert (len(with_passes.instructions), len(without.instructions)) == (2, 3)
    C.debugging.set_passes()
    assert program_for(f, f.outputs) is with_passes


@pytest.mark.parametrize(("value", "expected"), [("", "[]"), ("common, dead", "['common', 'dead']")])
def test_an_environment_variable_chooses(value: str, expected: str) -> None:
    shown = "from cntk.core.program import passes; print([one.name for one in passes.chosen()])"
    environment = {**os.environ, "CNTK_PASSES": value}
    done = subprocess.run([sys.executable, "-c", shown], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


class Watching(passes.Pass):
    """Notes what it sees."""

    name = "watching"

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def rewrite(self, program: Any) -> None:
        self.seen.append([instruction.op.op_name for instruction in program.instructions])

    def arrange(self, program: Any) -> None:
        self.seen.append(len(program.gradient_slots))


def test_a_plugin_adds_a_pass_which_runs_after_the_built_in_ones() -> None:
    watching = Watching()

    @hookimpl
    def cntk_register_passes(register: Any) -> None:
        register("watching", watching)

    plugins.register_plugin(SimpleNamespace(cntk_register_passes=cntk_register_passes), "test_passes")
    try:
        assert list(passes.available())[-1] == "watching"
        x = C.input_variable(2, needs_gradient=True)
        f = C.plus(C.exp(x), C.exp(x))
        f.grad({x: np.zeros((1, 2), np.float32)})
        assert watching.seen == [["Exp", "Plus"], 1]
    finally:
        plugins.unregister_plugin("test_passes")
    assert "watching" not in passes.available()


class Failing(passes.Pass):
    """A pass that fails."""

    name = "failing"

    def rewrite(self, program: Any) -> None:
        raise KeyError("pass failed")


def registering(target: object) -> Any:
    @hookimpl
    def cntk_register_passes(register: Any) -> None:
        register("failing", target)

    return SimpleNamespace(cntk_register_passes=cntk_register_passes)


def test_a_pass_of_a_plugin_that_fails_is_named() -> None:
    plugins.register_plugin(registering(Failing()), "test_passes")
    try:
        with pytest.raises(
            RuntimeError, match=r"pass 'failing' of test_passes failed: KeyError: 'pass failed'; .* CNTK_PLUGINS=-test_passes"
        ):
            C.exp(C.input_variable(2)).eval([[0, 0]])
    finally:
        plugins.unregister_plugin("test_passes")
    assert C.exp(C.input_variable(2)).eval([[0, 0]]).tolist() == [[1, 1]]


def test_what_is_no_pass_is_named() -> None:
    with pytest.raises(TypeError, match="pass 'failing' of test_passes: expected an object and not its class"):
        plugins.register_plugin(registering(Failing), "test_passes")
    plugins.register_plugin(registering(SimpleNamespace(name="failing")), "test_passes")
    try:
        with pytest.raises(TypeError, match="pass 'failing' of test_passes: expected an object of a subclass of Pass"):
            passes.available()
    finally:
        plugins.unregister_plugin("test_passes")
