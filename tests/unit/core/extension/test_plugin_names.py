"""Names of plugins: where they are seen, which are refused, and what becomes of those that cannot be imported."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.core.extension.hookspecs import hookimpl

Registration = Callable[..., None]


@pytest.fixture
def plugged() -> Iterator[Callable[..., None]]:
    """Registers at run time what a test gives, by kind, and takes it back."""

    def plug(**registrations: Any) -> None:
        made = {f"cntk_register_{kind}": hookimpl(_registering(arguments)) for kind, arguments in registrations.items()}
        plugins.register_plugin(type("Plugin", (), made)(), "plugged")

    yield plug
    plugins.unregister_plugin("plugged")


def _registering(arguments: tuple[Any, ...]) -> Callable[[Any, Registration], None]:
    def hook(self: Any, register: Registration) -> None:
        register(*arguments)

    return hook


class Installed:
    """A folder with plugins, as ``pip install`` would leave them, and programs that run beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, code: str) -> None:
        """Install a distribution that has one plugin, of its own name, with a module."""
        module = name.replace("-", "_")
        (self.folder / f"{module}.py").write_text(code, encoding="utf-8")
        info = self.folder / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[cntk]\n{name} = {module}\n", encoding="utf-8")

    def run(self, program: str, **variables: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CNTK_PLUGINS")}
        command = [sys.executable, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=kept | {"PYTHONPATH": path} | variables)


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


HOOKS = "from cntk.core.extension.hookspecs import hookimpl\n"
CLI = "import sys; from cntk.cli import main; sys.exit(main({}))"


def hook(kind: str, *registered: str) -> str:
    return "\n".join(["@hookimpl", f"def cntk_register_{kind}(register):", *(f"    register({one})" for one in registered), ""])


def double(x: Any) -> Any:
    return x + x


def test_an_operator_of_run_time_is_seen_wherever_operators_are(plugged: Callable[..., None]) -> None:
    assert not hasattr(C, "double_it")
    plugged(ops=("double_it", double))
    assert C.double_it is C.ops.double_it is double
    for module in (C, C.ops):
        assert "double_it" in dir(module)
        assert "double_it" in module.__all__
    from cntk.ops import double_it

    assert double_it(C.input_variable(1)).eval([[2]]).tolist() == [[4]]
    space: dict[str, Any] = {}
    exec("from cntk import *", space)
    assert space["double_it"] is double
    plugins.unregister_plugin("plugged")
    assert not hasattr(C, "double_it")
    assert "double_it" not in dir(C)


def test_a_learner_of_run_time_is_seen_too(plugged: Callable[..., None]) -> None:
    plugged(learners=("my_learner", C.sgd))
    assert C.my_learner is C.learners.my_learner is C.sgd
    assert "my_learner" in dir(C)
    assert "my_learner" in C.__all__


@pytest.mark.parametrize("namespace", ["sequence", "random", "layers", "metrics", "losses", "logging"])
def test_dotted_names_are_seen_in_the_namespace_they_name(namespace: str, plugged: Callable[..., None]) -> None:
    plugged(ops=(f"{namespace}.double_it", double))
    module = getattr(C, namespace)
    assert module.double_it is double
    assert "double_it" in dir(module)
    assert "double_it" in module.__all__
    assert not hasattr(C, "double_it")


def test_what_modules_offer_is_what_they_offered_before() -> None:
    assert C.layers.Dense is not None
    assert "Dense" in C.layers.__all__
    with pytest.raises(AttributeError, match=r"module 'cntk.layers' has no attribute 'Dens'"):
        _ = C.layers.Dens


@pytest.mark.parametrize(
    ("kind", "name", "taken"),
    [
        ("ops", "adam", "cntk.adam is the learner of opencntk:learners"),
        ("learners", "relu", "cntk.relu is the op of opencntk:ops"),
        ("ops", "Trainer", "cntk.Trainer belongs to opencntk itself"),
        ("ops", "layers", "cntk.layers belongs to opencntk itself"),
        ("ops", "sequence", "cntk.sequence belongs to opencntk itself"),
        ("ops", "input_variable", "cntk.input_variable belongs to opencntk itself"),
        ("ops", "testing", "cntk.testing belongs to opencntk itself"),
        ("ops", "sequence.input_variable", "cntk.sequence.input_variable belongs to opencntk itself"),
        ("ops", "layers.Dense", "cntk.layers.Dense belongs to opencntk itself"),
        ("learners", "UserLearner", "cntk.UserLearner belongs to opencntk itself"),
        ("learners", "Learner", "cntk.Learner belongs to opencntk itself"),
        ("deserializers", "MinibatchSource", "cntk.io.MinibatchSource belongs to opencntk itself"),
        ("progress_writers", "TraceLevel", "cntk.logging.TraceLevel belongs to opencntk itself"),
        ("ops", "relu", "op 'relu' is registered by opencntk:ops and by plugged"),
        ("ops", "sequence.first", "op 'sequence.first' is registered by opencntk:ops and by plugged"),
    ],
)
def test_a_name_belongs_to_one(kind: str, name: str, taken: str, plugged: Callable[..., None]) -> None:
    with pytest.raises(ValueError, match=taken) as raised:
        plugged(**{kind: (name, "third_party:function")})
    assert "plugged" in str(raised.value)
    assert not plugins.manager.has_plugin("plugged")


@pytest.mark.parametrize("name", ["swish-2", "2nd", "", "lambda", "a b", "sequence.2nd", "nosuch.x", "layers.Dense.x", ".x"])
def test_what_is_no_name_is_refused(name: str, plugged: Callable[..., None]) -> None:
    with pytest.raises((ValueError, TypeError), match=f"op '{name}' of plugged: (expected a name|there is no namespace)"):
        plugged(ops=(name, double))
    assert name not in plugins.ops


class ItsClass:
    """What is registered where an object is wanted."""


@pytest.mark.parametrize(
    ("kind", "arguments", "error", "match"),
    [
        ("kernels", ("Swish2", "third_party:K"), TypeError, r"kernel of plugged: expected register\(operator, backend, target\), missing"),
        (
            "kernels",
            ("third_party:Swish2", "cuda", "third_party:K"),
            ValueError,
            "kernel third_party:Swish2 of plugged: no backend is called 'cuda'; there are",
        ),
        (
            "kernels",
            ("Swish2", "numpy", "third_party:K"),
            TypeError,
            "kernel 'Swish2' of plugged: expected the class of an operator or learner, or its import string 'module:Class'",
        ),
        ("engines", ("Chain", "cuda", "third_party:K"), ValueError, "engine Chain of plugged: no backend is called 'cuda'; there are"),
        ("ops", ("swish2",), TypeError, r"op of plugged: expected register\(name, target\), missing"),
        ("ops", ("swish2", "numpy", "third_party:f"), TypeError, r"op of plugged: expected register\(name, target\), too many"),
        ("ops", (double, "swish2"), TypeError, "op <function double at .*> of plugged: expected a name"),
        ("ops", ("swish2", 3), TypeError, "op 'swish2' of plugged: expected a function, got 3"),
        ("ops", ("swish2", "third_party.f"), ValueError, "op 'swish2' of plugged: expected an import string 'module:object'"),
        ("ops", ("swish2", "third_party:"), ValueError, "op 'swish2' of plugged: expected an import string 'module:object'"),
        ("passes", ("census2", ItsClass), TypeError, "pass 'census2' of plugged: expected an object and not its class, got <class"),
        ("distributed_strategies", ("mine", ItsClass()), TypeError, "distributed strategy 'mine' of plugged: expected a class"),
        ("backends", ("abacus", ItsClass()), TypeError, "backend 'abacus' of plugged: expected a function"),
        ("commands", ("peek", "third_party:run", 1), TypeError, r"command of plugged: expected register\(name, target\)"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    kind: str, arguments: tuple[Any, ...], error: type[Exception], match: str, plugged: Callable[..., None]
) -> None:
    with pytest.raises(error, match=match):
        plugged(**{kind: arguments})
    assert not plugins.manager.has_plugin("plugged")


def test_what_is_imported_must_be_of_the_right_kind_too(plugged: Callable[..., None]) -> None:
    plugged(passes=("census2", f"{__name__}:ItsClass"))
    sys.modules.setdefault(__name__, inspect.getmodule(ItsClass))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pass 'census2' of plugged: expected an object and not its class"):
        plugins.passes.get("census2")


def test_what_cannot_be_imported_is_no_attribute(plugged: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    plugged(ops=("swish_of_nowhere", "no_such_module:swish"))
    assert not hasattr(C, "swish_of_nowhere")
    (told,) = capsys.readouterr().err.splitlines()
    for part in ("'swish_of_nowhere'", "plugged", "no_such_module:swish", "ModuleNotFoundError"):
        assert part in told
    with pytest.raises(AttributeError, match=r"op 'swish_of_nowhere' of plugged cannot be imported from 'no_such_module:swish'"):
        _ = C.ops.swish_of_nowhere
    exec("from cntk import *\nfrom cntk.ops import *", {})
    assert "relu" in dict(inspect.getmembers(C))
    assert "swish_of_nowhere" in dir(C)
    assert capsys.readouterr().err == ""


def test_programs_go_on_beside_targets_that_cannot_be_imported(installed: Installed) -> None:
    installed.add("other-swish", HOOKS + hook("ops", "'swish2', 'other_swish.nowhere:swish2'", "'swish3', 'other_swish:gone'"))
    done = installed.run("import cntk; print(hasattr(cntk, 'swish2')); exec('from cntk import *'); help(cntk); print(relu([-1.0]).eval())")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("False\n")
    assert len(done.stderr.splitlines()) == 2

    for arguments in (["plugins"], ["plugins", "--broken"], ["doctor"]):
        listed = installed.run(CLI.format(arguments))
        assert listed.returncode == (0 if arguments == ["plugins"] else 1)
        assert "op 'swish2' of other-swish:other-swish cannot be imported from 'other_swish.nowhere:swish2'" in listed.stdout
        assert "AttributeError: module 'other_swish' has no attribute 'gone'" in listed.stdout


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("raise RuntimeError('out of order')", "RuntimeError: out of order"),
        ("raise AttributeError(\"partially initialized module 'x' has no attribute 'y'\")", "hand over import strings"),
        (HOOKS + "@hookimpl\ndef cntk_register_ops(register):\n    import sys; sys.exit(3)\n", "SystemExit: 3"),
    ],
)
def test_a_broken_plugin_stops_nothing(code: str, why: str, installed: Installed) -> None:
    installed.add("other", code)
    done = installed.run("import cntk; print(cntk.relu([-1.0, 2.0]).eval())")
    assert done.stdout == "[0. 2.]\n"
    (told,) = done.stderr.splitlines()
    assert "plugin 'other' of other 1.0 (other) is broken and left out: " in told
    assert why in told
    for arguments in (["plugins"], ["plugins", "--broken"], ["doctor"]):
        assert why in installed.run(CLI.format(arguments)).stdout


def test_a_plugin_may_use_what_cntk_offers_while_it_is_imported(installed: Installed) -> None:
    installed.add("eager", "import cntk as C\n" + HOOKS + "activation = C.relu\n" + hook("ops", "'eager_relu', activation"))
    done = installed.run("import cntk; print(cntk.eager_relu([-1.0, 2.0]).eval())")
    assert (done.stdout, done.stderr) == ("[0. 2.]\n", "")


def test_a_plugin_that_is_imported_before_cntk_is_told_why_it_may_register_nothing(installed: Installed) -> None:
    installed.add("eager", HOOKS + hook("ops", "'double_it', abs"))
    done = installed.run("import eager")
    assert "plugin 'eager' of eager 1.0 (eager): it is imported by the program and imports cntk itself" in done.stderr
    assert installed.run("import cntk, eager; print(cntk.double_it is abs)").stdout == "True\n"


def test_hooks_that_are_not_marked_are_named(installed: Installed) -> None:
    installed.add("unmarked", HOOKS + hook("ops", "'double_it', abs").replace("@hookimpl\n", ""))
    warning = "cntk_register_ops is not called: it is not marked with @hookimpl"
    assert warning in installed.run("import cntk").stderr
    assert warning in installed.run(CLI.format(["plugins", "--broken"])).stdout


def test_of_two_plugins_with_one_name_the_later_does_without_it(installed: Installed) -> None:
    installed.add("swish-a", HOOKS + hook("ops", "'swish', 'swish_a:first'") + "first = abs\n")
    installed.add("swish-b", HOOKS + hook("ops", "'swish', abs", "'swish_b', abs") + hook("learners", "'lion', abs"))
    done = installed.run("import cntk; print(cntk.swish is abs, cntk.swish_b is abs, cntk.lion is abs)")
    assert done.stdout == "True True True\n"
    (told,) = done.stderr.splitlines()
    assert "op 'swish' is registered by swish-a:swish-a and by swish-b:swish-b; a name belongs to one plugin; it is left out" in told
    assert "is left out" in installed.run(CLI.format(["plugins"])).stdout
    strict = installed.run("import cntk", CNTK_STRICT_PLUGINS="1")
    assert "TakenError" in strict.stderr
    assert installed.run("import cntk", CNTK_PLUGINS="-swish-a").stderr == ""


def test_kernels_for_backends_of_nobody_are_left_out(installed: Installed) -> None:
    installed.add("kernels", HOOKS + hook("kernels", "'k:Swish', 'cuda', 'k:K'", "'k:Swish', 'mine', 'k:K'", "'k:Swish', 'numpy', 'k:K'"))
    installed.add("later", HOOKS + hook("backends", "'mine', 'later:Mine'"))
    program = "import cntk; from cntk.core.extension import plugins; print(plugins.kernels.names_of('kernels:kernels'))"
    done = installed.run(program)
    assert done.stdout == "[('k:Swish', 'mine'), ('k:Swish', 'numpy')]\n"
    (told,) = done.stderr.splitlines()
    assert "kernel k:Swish is left out: no backend is called 'cuda'; there are checking, cupy, mine, numpy" in told


def test_no_built_in_name_is_taken_twice() -> None:
    names = [name for registry in (plugins.ops, plugins.learners) for name in registry if "." not in name]
    assert len(names) == len(set(names))
    assert all(name.isidentifier() for name in names)
    assert np.all([name not in vars(C) for name in names])
