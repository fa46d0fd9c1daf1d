"""The plugin manager: what it loads, what it leaves out, and what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from cntk.core.extension import plugins
from cntk.core.extension.compiled import is_wanted
from cntk.core.extension.hookspecs import Register, RegisterKernel, hookimpl


class FakeDistribution:
    """As much of an installed distribution as the manager asks for."""

    def __init__(self, name: str, version: str = "1.0") -> None:
        self.metadata = {"Name": name, "Version": version}


def entry_point(name: str, value: str, distribution: str = "third-party") -> EntryPoint:
    point = EntryPoint(name, value, plugins.GROUP)
    vars(point)["dist"] = FakeDistribution(distribution)
    return point


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Take back what a test has loaded."""
    before = list(plugins.records)
    yield
    for record in plugins.records[len(before) :]:
        plugins.unregister_plugin(f"{record.distribution}:{record.name}")
    plugins.records[:] = before


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An importable module called ``third_party``, to which a test adds hook implementations."""
    made = ModuleType("third_party")
    monkeypatch.setitem(sys.modules, "third_party", made)
    return made


def providing(*names: str) -> object:
    @hookimpl
    def cntk_register_ops(register: Register) -> None:
        for name in names:
            register(name, "third_party:function")

    return cntk_register_ops


def last() -> plugins.PluginRecord:
    return plugins.records[-1]


def test_a_plugin_registers_names(module: ModuleType) -> None:
    module.cntk_register_ops = providing("third_party_op")
    module.function = abs
    plugins.load_plugins([entry_point("extras", "third_party")])
    assert last().state == "loaded"
    assert (last().distribution, last().version, last().provides) == ("third-party", "1.0", {"cntk_register_ops": ["third_party_op"]})
    assert plugins.ops.get("third_party_op") is abs
    assert plugins.ops.owner("third_party_op") == "third-party:extras"


def test_a_plugin_is_loaded_once(module: ModuleType) -> None:
    module.cntk_register_ops = providing("third_party_op")
    point = entry_point("once", "third_party")
    plugins.load_plugins([point, point])
    plugins.load_plugins([point])
    assert [record.name for record in plugins.records].count("once") == 1


def test_an_object_registers_what_it_has_at_hand() -> None:
    class Plugin:
        @hookimpl
        def cntk_register_ops(self, register: Register) -> None:
            register("third_party_op", len)

    plugins.register_plugin(Plugin(), "at hand")
    try:
        assert plugins.ops.get("third_party_op") is len
    finally:
        plugins.unregister_plugin("at hand")
    assert "third_party_op" not in plugins.ops


def test_a_plugin_that_does_not_import_is_recorded_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    plugins.load_plugins([entry_point("extras", "no_such_module")])
    assert last().state == "broken"
    assert "no_such_module" in last().error
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    for part in ("third-party", "extras", "no_such_module", "ModuleNotFoundError"):
        assert part in lines[0]


def test_a_plugin_that_fails_half_way_is_rolled_back(module: ModuleType) -> None:
    @hookimpl
    def cntk_register_ops(register: Register) -> None:
        register("third_party_op", "third_party:function")
        raise RuntimeError("half way")

    module.cntk_register_ops = cntk_register_ops
    plugins.load_plugins([entry_point("extras", "third_party")])
    assert (last().state, last().error, last().provides) == ("broken", "RuntimeError: half way", {})
    assert "third_party_op" not in plugins.ops
    assert not plugins.manager.has_plugin("third-party:extras")


def test_what_a_failing_plugin_registered_by_an_earlier_hook_is_rolled_back_too(module: ModuleType) -> None:
    @hookimpl
    def cntk_register_learners(register: Register) -> None:
        raise RuntimeError("later hook")

    module.cntk_register_ops = providing("third_party_op")
    module.cntk_register_learners = cntk_register_learners
    plugins.load_plugins([entry_point("extras", "third_party")])
    assert (last().state, last().provides) == ("broken", {})
    assert "third_party_op" not in plugins.ops


def test_a_name_that_is_taken_is_left_out_and_both_plugins_named(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    module.cntk_register_ops = providing("third_party_op", "relu")
    plugins.load_plugins([entry_point("extras", "third_party")])
    assert (last().state, last().provides) == ("loaded", {"cntk_register_ops": ["third_party_op"]})
    (warning,) = last().warnings
    for part in ("'relu'", "opencntk:ops", "third-party:extras", "left out"):
        assert part in warning
    assert warning in capsys.readouterr().err
    assert plugins.ops.owner("relu") == "opencntk:ops"
    assert plugins.ops.owner("third_party_op") == "third-party:extras"


def test_a_name_that_is_taken_is_an_error_where_plugins_are_strict(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CNTK_STRICT_PLUGINS", "1")
    module.cntk_register_ops = providing("third_party_op", "relu")
    with pytest.raises(ValueError, match=r"op 'relu' is registered by opencntk:ops and by third-party:extras"):
        plugins.load_plugins([entry_point("extras", "third_party")])
    assert "third_party_op" not in plugins.ops


def test_kernels_stand_before_those_registered_sooner(module: ModuleType) -> None:
    place = "cntk.plugins.ops.product:Times", "numpy"
    built_in = plugins.kernels.get(place)
    kernel = type("Kernel", (), {})

    @hookimpl
    def cntk_register_kernels(register: RegisterKernel) -> None:
        register(*place, kernel)

    module.cntk_register_kernels = cntk_register_kernels
    plugins.load_plugins([entry_point("extras", "third_party")])
    assert (last().state, last().provides) == ("loaded", {"cntk_register_kernels": ["cntk.plugins.ops.product:Times on numpy"]})
    assert plugins.kernels.get(place) is kernel
    assert plugins.kernels.owner(place) == "third-party:extras"
    assert plugins.kernels.behind(place, kernel) is built_in
    assert plugins.kernels.behind(place, built_in) is None
    with pytest.raises(ValueError, match=r"kernel .*:Times', 'numpy'\) is registered by third-party:extras and by third-party:extras"):
        plugins.kernels.add(place, kernel, "third-party:extras")

    plugins.unregister_plugin("third-party:extras")
    assert plugins.kernels.get(place) is built_in


def test_an_unknown_hook_is_an_error(module: ModuleType) -> None:
    @hookimpl
    def cntk_register_opps(register: Register) -> None:
        """Misspelt."""

    module.cntk_register_opps = cntk_register_opps
    plugins.load_plugins([entry_point("extras", "third_party")])
    assert last().state == "broken"
    assert "cntk_register_opps" in last().error


def test_a_target_that_is_no_import_string_is_an_error(module: ModuleType) -> None:
    @hookimpl
    def cntk_register_ops(register: Register) -> None:
        register("third_party_op", "third_party.function")

    module.cntk_register_ops = cntk_register_ops
    plugins.load_plugins([entry_point("extras", "third_party")])
    assert "module:object" in last().error


def test_strict_plugins_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CNTK_STRICT_PLUGINS", "1")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        plugins.load_plugins([entry_point("extras", "no_such_module")])
    assert (last().state, last().error[:19]) == ("broken", "ModuleNotFoundError")


def test_a_second_plugin_of_one_name_leaves_the_first_alone(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    module.cntk_register_ops = providing("third_party_op")
    monkeypatch.setitem(sys.modules, "second", ModuleType("second"))
    plugins.load_plugins([entry_point("extras", "third_party")])
    plugins.load_plugins([entry_point("extras", "second")])
    assert last().state == "broken"
    assert plugins.records[-2].state == "loaded"
    assert "a plugin called 'third-party:extras' is registered already" in last().error
    assert "third_party_op" in plugins.ops


def test_what_is_said_of_a_broken_plugin_is_one_line(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    @hookimpl
    def cntk_register_ops(register: Register) -> None:
        raise RuntimeError("one\n  two")

    module.cntk_register_ops = cntk_register_ops
    plugins.load_plugins([entry_point("extras", "third_party")])
    assert last().error == "RuntimeError: one two"
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(("allowed", "state"), [("extras", "loaded"), ("other, extras", "loaded"), ("other", "blocked"), ("", "blocked")])
def test_cntk_plugins_allows_only_those_it_names(module: ModuleType, monkeypatch: pytest.MonkeyPatch, allowed: str, state: str) -> None:
    monkeypatch.setenv("CNTK_PLUGINS", allowed)
    module.cntk_register_ops = providing("third_party_op")
    plugins.load_plugins([entry_point("extras", "third_party")])
    assert last().state == state
    assert ("third_party_op" in plugins.ops) == (state == "loaded")


@pytest.mark.parametrize(("steering", "state"), [("", "loaded"), ("other", "loaded"), ("-more", "blocked"), ("other, -more", "blocked")])
def test_built_in_parts_are_blocked_by_a_minus_alone(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, steering: str, state: str
) -> None:
    monkeypatch.setenv("CNTK_PLUGINS", steering)
    module.cntk_register_ops = providing("third_party_op")
    plugins.load_plugins([entry_point("more", "third_party", plugins.DISTRIBUTION)])
    assert last().state == state
    assert ("third_party_op" in plugins.ops) == (state == "loaded")


def test_a_misspelt_name_that_is_to_be_left_out_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CNTK_PLUGINS", "-fuzed,-fused")
    plugins.warn_of_unknown_names()
    (told,) = capsys.readouterr().err.splitlines()
    assert "CNTK_PLUGINS leaves out 'fuzed', but there is no such plugin; there are checking, commands, " in told


@pytest.mark.skipif(not is_wanted(), reason="compiled loops are switched off")
@pytest.mark.parametrize(("left_out", "is_there"), [("-fused", "kernels"), ("-tensorboard", "progress_writers")])
def test_built_in_parts_can_be_left_out_of_a_program(left_out: str, is_there: str) -> None:
    names = {"kernels": ("cntk.plugins.ops.softmax:Softmax", "numpy"), "progress_writers": "TensorBoardProgressWriter"}
    program = f"import cntk; print([n in getattr(cntk.core.extension.plugins, r) for r, n in {names}.items()])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ | {"CNTK_PLUGINS": left_out}
    )
    assert (done.stdout, done.stderr) == (f"{[kind != is_there for kind in names]}\n", "")


def test_hooks_are_called_in_the_order_of_pluggy(monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, those first that say so, and those last; with what wraps hooks around each call, and a name's owner as ever."""
    called: list[str] = []
    for name, how in {"b": {}, "a": {"trylast": True}, "d": {}, "c": {"tryfirst": True}, "w": {"wrapper": True}}.items():
        module = ModuleType(f"third_{name}")
        module.cntk_register_ops = hookimpl(noting(name, called) if name != "w" else wrapping(called), **how)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
    plugins.load_plugins([entry_point(name, f"third_{name}") for name in "wabcd"])
    assert [record.state for record in plugins.records[-5:]] == ["loaded"] * 5
    assert called == ["(", "c", ")", "(", "b", ")", "(", "d", ")", "(", "a", ")"]
    assert [plugins.ops.owner(f"third_{name}_op") for name in "abcd"] == [f"third-party:{name}" for name in "abcd"]


def noting(name: str, called: list[str]) -> Callable[[Register], None]:
    def cntk_register_ops(register: Register) -> None:
        called.append(name)
        register(f"third_{name}_op", len)

    return cntk_register_ops


def wrapping(called: list[str]) -> Callable[[Register], Iterator[None]]:
    def cntk_register_ops(register: Register) -> Iterator[None]:
        called.append("(")
        result = yield
        called.append(")")
        return result

    return cntk_register_ops


def test_one_plugin_that_fails_takes_nothing_of_another_along(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = ModuleType("failing")
    failing.cntk_register_learners = hookimpl(lambda register: 1 / 0)  # type: ignore[attr-defined]
    failing.cntk_register_ops = providing("failing_op")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "failing", failing)
    module.cntk_register_ops = providing("third_party_op")
    plugins.load_plugins([entry_point("a", "failing"), entry_point("b", "third_party")])
    assert [record.state for record in plugins.records[-2:]] == ["broken", "loaded"]
    assert ("failing_op" in plugins.ops, "third_party_op" in plugins.ops) == (False, True)


def test_a_missing_name_lists_those_there_are() -> None:
    with pytest.raises(KeyError, match=r"no backend is called 'abacus'; registered are .*numpy"):
        plugins.backends.get("abacus")
