"""``cntk stubs``, and the stubs of the checkout."""

from __future__ import annotations

import inspect
import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import cntk as C
from cntk.cli import main
from cntk.core.extension import plugins
from cntk.core.extension.hookspecs import Register, hookimpl
from cntk.internal.stubs import NAMESPACES, OF_PACKAGE, is_built_in, stubs


class Plugin:
    @hookimpl
    def cntk_register_ops(self, register: Register) -> None:
        register("softcap", "cntk.plugins.ops.activation:tanh")
        register("debugging.seen", "cntk.plugins.ops.identity:alias")
        register("losses.half", lambda x: x)

    @hookimpl
    def cntk_register_learners(self, register: Register) -> None:
        register("missing_learner", "not_installed.learners:missing_learner")


@pytest.fixture
def plugin() -> object:
    plugins.register_plugin(Plugin(), "stubbed")
    yield
    plugins.unregister_plugin("stubbed")


def test_those_of_the_checkout_are_current(root: Path) -> None:
    spec = spec_from_file_location("stubs_of_checkout", root / "packaging" / "stubs.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    for path, text in module.files().items():
        assert path.read_text("utf-8") == text, f"{path} is out of date; make stubs brings it up to date"


def test_learners_are_declared_with_the_options_of_all() -> None:
    text = stubs(OF_PACKAGE, is_built_in)["learners/_names.pyi"]
    declared = text[text.index("def adam(") : text.index("def fsadagrad(")]
    names = re.findall(r"^    (\w+): .*,$", declared.partition(") -> Learner:")[0], re.MULTILINE)
    assert names == list(inspect.signature(C.adam).parameters)
    assert "    minibatch_size: int | None = None,\n" in declared
    assert "    gradient_clipping_threshold_per_sample: float = ...,\n" in declared
    assert inspect.getdoc(C.adam).partition("\n")[0] in declared
    assert "from cntk.learners.universal_learner import universal as universal\n" in text


def test_each_namespace_shows_what_its_stub_has() -> None:
    for space in NAMESPACES:
        assert {name for name, _ in space.names()} <= set(dir(__import__(space.module, fromlist=["x"]))), space.module


def test_plugins_names_are_in_stubs(plugin: object, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["stubs", "--into", str(tmp_path), "--json"]) == 0
    out, err = capfd.readouterr()
    said = json.loads(out)
    assert said["names"] == ["softcap", "losses.half", "missing_learner"]
    assert said["left_out"] == ["debugging.seen"]
    assert "no stub has debugging.seen" in err
    made = tmp_path / "cntk-stubs"
    ops = (made / "ops" / "_names.pyi").read_text("utf-8")
    assert "from cntk.plugins.ops.activation import tanh as softcap\n" in ops
    assert "from cntk.plugins.ops.activation import relu as relu\n" in ops
    assert "half: Any\n" in (made / "losses" / "_names.pyi").read_text("utf-8")
    assert "missing_learner" not in (made / "learners" / "_names.pyi").read_text("utf-8")  # it cannot be imported
    assert (made / "py.typed").read_text("utf-8") == "partial\n"
    compile(ops, "_names.pyi", "exec")


def test_check_tells_whether_stubs_are_current(plugin: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stubs", "--into", str(tmp_path), "--check"]) == 1
    assert "are not up to date; cntk stubs makes them anew" in capsys.readouterr().out
    assert not (tmp_path / "cntk-stubs").exists()
    main(["stubs", "--into", str(tmp_path)])
    assert main(["stubs", "--into", str(tmp_path), "--check"]) == 0
    plugins.unregister_plugin("stubbed")
    assert main(["stubs", "--into", str(tmp_path), "--check"]) == 1


def test_stubs_can_be_removed(tmp_path: Path) -> None:
    main(["stubs", "--into", str(tmp_path)])
    assert main(["stubs", "--into", str(tmp_path), "--remove"]) == 0
    assert list(tmp_path.iterdir()) == []
    assert main(["stubs", "--into", str(tmp_path), "--remove"]) == 0


@pytest.mark.parametrize("option", ["--check", "--remove", "--json"])
def test_what_others_have_made_is_left_alone(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "cntk-stubs" / "__init__.pyi"
    own.parent.mkdir()
    own.write_text("x: int\n")
    assert main(["stubs", "--into", str(tmp_path), option]) == 1
    assert "was not made by this command" in capsys.readouterr().err
    assert own.read_text() == "x: int\n"


def test_they_lie_beside_installed_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: {"purelib": str(tmp_path)}[name])
    assert main(["stubs"]) == 0
    assert (tmp_path / "cntk-stubs" / "ops" / "_names.pyi").is_file()
    assert str(tmp_path) not in sys.path
