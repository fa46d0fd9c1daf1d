"""The ``cntk`` program."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from time import sleep

import pytest

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.cli import main
from cntk.commands.completion import command_of
from cntk.commands.doctor import PARTS
from cntk.core.extension import plugins
from cntk.core.extension.backend import Need
from cntk.core.extension.hookspecs import Register, hookimpl


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    for name in plugins.commands:
        assert f"  {name} " in printed


def test_an_unknown_command_lists_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docter"]) == 2
    assert f"no command 'docter'; did you mean doctor? there are {', '.join(plugins.commands)}\n" in capsys.readouterr().err


def test_an_interrupted_command_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("cntk.commands.plugins.run", interrupted)
    monkeypatch.setattr(plugins.commands, "get", lambda name: interrupted)
    assert main(["plugins"]) == 130
    assert capsys.readouterr().err == "cntk plugins: interrupted\n"


def test_doctor_tells_programs_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {backend["name"] for backend in said["backends"]} == set(plugins.backends)
    assert next(backend for backend in said["backends"] if backend["name"] == "numpy")["usable"] is True
    assert {part["module"] for part in said["optional_parts"]} == {part.module for part in PARTS}
    assert said["machine"]["cores"] >= 1


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = str(tmp_path / "model.dnn")
    C.layers.Dense(2, name="z")(C.input_variable(3, name="x")).save(path)
    return path


def test_show_predict_and_convert_tell_programs(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", model, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["format"], shown["inputs"], shown["outputs"], shown["parameters"]) == (
        "CNTKv2",
        {"x": "[batch, 3]"},
        {"z": "[batch, 2]"},
        8,
    )
    assert shown["layers"][0]["kind"] == "Dense"
    (tmp_path / "data.csv").write_text("x_0,x_1,x_2\n1,2,3\n")
    assert main(["predict", model, str(tmp_path / "data.csv"), str(tmp_path / "out.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1
    assert main(["convert", model, str(tmp_path / "model.onnx"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inputs"] == ["x [batch, 3]"]


@pytest.mark.parametrize("content", [None, b"", b"\x00\xff" * 200])
@pytest.mark.parametrize("command", ["show FILE", "show FILE --json", "convert FILE out.onnx", "predict FILE data.csv out.csv"])
def test_a_missing_or_damaged_file_is_one_line(
    command: str, content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("x\n1\n")
    if content is not None:
        (tmp_path / "a.dnn").write_bytes(content)
    assert main(command.replace("FILE", "a.dnn").split()) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"cntk {command.split()[0]}: ")
    assert said.count("\n") == 1
    assert "a.dnn" in said


@pytest.mark.parametrize("arguments", [["show"], ["new", "a", "--kind", "b"], ["completion", "csh"], ["doctor", "--loud"]])
def test_wrong_arguments_end_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert f"usage: cntk {arguments[0]}" in capsys.readouterr().err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("opencntk ")


def test_plugins_shows_what_each_registers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "--all"]) == 0
    printed = capsys.readouterr().out
    assert "numpy (opencntk" in printed
    assert "backends: numpy" in printed


def test_plugins_shows_those_of_others_first_and_built_in_ones_by_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = plugins.PluginRecord("zebra", "third-party", "1.0", "third_party", "loaded", provides={"cntk_register_ops": ["stripes"]})
    monkeypatch.setattr("cntk.commands.plugins.records", [*plugins.records, other])
    assert main(["plugins"]) == 0
    first, second, *others = capsys.readouterr().out.splitlines()
    assert (first, second) == ("zebra (third-party 1.0, third_party): loaded", "    ops: stripes")
    assert others[-1].startswith("built in: ")
    assert "numpy, ops" in others[-1]


def test_plugins_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "--json"]) == 0
    records = {record["name"]: record for record in json.loads(capsys.readouterr().out)}
    assert records["ops"]["state"] == "loaded"
    assert "relu" in records["ops"]["provides"]["cntk_register_ops"]


def test_broken_plugins_set_the_exit_status(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    broken = plugins.PluginRecord("extras", "third-party", "1.0", "third_party", "broken", "ImportError: no")
    monkeypatch.setattr("cntk.commands.plugins.records", [*plugins.records, broken])
    assert main(["plugins", "--broken"]) == 1
    assert capsys.readouterr().out == "extras (third-party 1.0, third_party): broken\n    ImportError: no\n"


def test_doctor_names_every_part_and_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    for part in PARTS:
        assert f"  {part.module} " in printed
    assert "numpy: ready" in printed
    assert "cores" in printed


class Graphics(NumpyBackend):
    """A backend for GPUs that this machine has not."""

    name = "graphics"

    def unavailable(self) -> str:
        return "there is no driver"

    def needs(self) -> list[Need]:
        return [
            Need("driver", "", "everything", "install one from example.com"),
            Need("cuFast", "9.1", "convolutions", "pip install cufast"),
        ]


class Provider:
    """A plugin with this backend."""

    @hookimpl
    def cntk_register_backends(self, register: Register) -> None:
        register("graphics", Graphics)


@pytest.mark.parametrize(("module", "status"), [("cntk.backends.graphics", 0), ("third_party", 1)])
def test_doctor_lists_the_pieces_of_a_backend(
    module: str, status: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that comes with this package is no fault where there is no GPU."""
    monkeypatch.setattr(Graphics, "__module__", module)
    plugins.register_plugin(Provider(), "graphics")
    try:
        assert main(["doctor"]) == status
    finally:
        plugins.unregister_plugin("graphics")
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("  graphics: there is no driver")
    assert lines[start + 1] == "    driver: missing, for everything; install one from example.com"
    assert lines[start + 2] == "    cuFast: 9.1, for convolutions"


def test_doctor_tells_of_a_piece_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The two backends for NVIDIA GPUs compute with the same libraries."""
    main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("    cuDNN: ") for line in lines) == 1
    assert "    with the pieces of cupy" in lines


def test_doctor_says_how_to_mend_a_missing_part(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cntk.commands.doctor.find_spec", lambda module: None)
    main(["doctor"])
    said = capsys.readouterr().out
    assert "pip install 'opencntk[mpi]'" in said
    assert not any(name in said for name in ("fastapi", "spark"))  # there is nothing here yet that would use them


def test_doctor_offers_the_extras_that_there_are(root: Path) -> None:
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    offered = {part.install for part in PARTS}
    assert offered == {"scipy", "numba", *(f"opencntk[{extra}]" for extra in extras if extra not in ("demo", "dev", "docs"))}


def test_doctor_offers_what_is_used(root: Path) -> None:
    """Each part is imported somewhere, or what is written for it is."""
    parts = ("api", "backends", "core", "examples", "learners", "plugins", "readers")
    source = "\n".join(file.read_text("utf-8") for part in parts for file in sorted((root / part).rglob("*.py")))
    used = {part.module for part in PARTS if re.search(rf"^ *(import|from) {part.module}\b", source, re.MULTILINE)}
    assert used | {"tensorboard"} == {part.module for part in PARTS}
    assert "cntk.plugins.progress:tensorboard_plugin" in (root / "pyproject.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("said", "line"), [("0", "off: CNTK_FUSED is 0"), ("no", "off: the environment variable CNTK_FUSED must be 0 or 1")]
)
def test_doctor_says_that_loops_are_off(said: str, line: str) -> None:
    command = [sys.executable, "-m", "cntk", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"CNTK_FUSED": said})
    assert line in done.stdout


@pytest.mark.parametrize(
    ("error", "said"),
    [(ValueError("no\nnumber: x"), "no number: x"), (FileNotFoundError(2, "No such file", "a.txt"), "'a.txt': No such file")],
)
def test_an_error_of_a_command_is_one_line(
    error: Exception, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def peek(arguments: list[str]) -> int:
        raise error

    class Plugin:
        @hookimpl
        def cntk_register_commands(self, register: Register) -> None:
            register("peek", peek)

    plugins.register_plugin(Plugin(), "peeking")
    try:
        assert main(["peek"]) == 1
        assert capsys.readouterr().err == f"cntk peek: {said}\n"
        monkeypatch.setenv("CNTK_STRICT_PLUGINS", "1")
        with pytest.raises(type(error)):
            main(["peek"])
    finally:
        plugins.unregister_plugin("peeking")


def test_nobody_needs_to_read_on() -> None:
    """The list of plugins is longer than a pipe holds, so that writing it fails once the reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "cntk", "plugins", "--json"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "cntk", "plugins", "--broken"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no plugin is broken\n", "")


def test_a_warning_of_a_command_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def peek(arguments: list[str]) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            monkeypatch.setattr(warnings, "showwarning", lambda *told: sys.stderr.write(warnings.formatwarning(*told)))
            warnings.warn("too\nlong", stacklevel=1)
        return 0

    usual = warnings.formatwarning
    monkeypatch.setattr(plugins.commands, "get", lambda name: peek)
    assert main(["plugins"]) == 0
    assert capsys.readouterr().err == "cntk plugins: too long\n"
    assert warnings.formatwarning is usual


def test_a_closed_output_is_no_error() -> None:
    program = "import os, sys; sys.stdout = None; from cntk.cli import main; sys.exit(main(['plugins']))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("name", [name for name in plugins.commands if name not in ("completion", "launch")])
def test_a_misspelt_option_is_answered(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    right = next(option for option in command_of(name).options if option.words[-1] != "--help").words[-1]
    needed = {"convert": 2, "new": 1, "new-plugin": 1, "predict": 3, "serve": 1, "show": 1, "view": 1, "watch": 1}.get(name, 0)
    files = ["--input", "a", "--header", "b", "--output", "c"] if name == "ctf2bin" else ["a"] * needed
    with pytest.raises(SystemExit) as ended:
        main([name, *files, right + "z"])
    assert ended.value.code == 2
    assert f"there is no option {right}z; did you mean {right}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("convert a.dnn b.dnn --opset 20 --check", "--opset, --check: for ONNX only; the name of the new file is to end with .onnx"),
        ("predict a.dnn b.csv c.csv --batch_rows 0", "--batch_rows: expected a whole number from 1 on, got '0'"),
        ("predict a.dnn b.csv c.csv --columns x", "--columns: expected INPUT=COLUMN or INPUT=COLUMN,COLUMN,…, got 'x'"),
        ("serve a.dnn --port 99999", "--port: expected a number from 0 to 65535, got '99999'"),
        ("serve a.dnn --ssl-keyfile key.pem", "the other options of TLS need --ssl-certfile"),
        ("serve a.dnn --delay x", "--delay: expected a number from 0 on, got 'x'"),
        ("view a.dnn --port 1x", "--port: expected a number from 0 to 65535, got '1x'"),
        ("watch . --page --once", "--once: not allowed with argument --page"),
        ("watch . --width 0", "--width: expected a whole number from 1 on, got '0'"),
        ("bench --seconds x", "--seconds: expected a number from 0 on, got 'x'"),
        ("launch -n 1 --gpus -1 train.py", "--gpus: expected a whole number from 0 on, got '-1'"),
        ("ctf2bin --input a --header b --output c --max_errors -1", "--max_errors: expected a whole number from 0 on, got '-1'"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_done(
    command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_certificate_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "a.dnn", "--ssl-certfile", "none.pem"]) == 1
    assert capsys.readouterr().err == "cntk serve: --ssl-certfile: there is no file 'none.pem'\n"


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for command, said in {
        f"new {file}": "is a file; choose another folder",
        f"new {file}/flowers": "is a file; choose another folder",
        f"compile --into {file}": "is a file; expected a folder",
        f"watch {file}": "is a file; expected the folder that it is in",
    }.items():
        assert main(command.split()) == 1
        assert f"'{file}' {said}" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="there are no groups of processes to interrupt")
@pytest.mark.slow
@pytest.mark.parametrize("command", ["bench --seconds 60", "compile --into FOLDER"])
def test_an_interrupted_command_ends_with_its_processes(command: str, tmp_path: Path) -> None:
    """As by Ctrl-C in a terminal, which interrupts all of them."""
    if command.startswith("compile"):
        pytest.importorskip("numba", reason="Numba is not installed")
    arguments = [word.replace("FOLDER", str(tmp_path)) for word in command.split()]
    program = [sys.executable, "-m", "cntk", *arguments]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        sleep(5)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)  # which waits for all processes that could still write
    assert process.returncode == 130
    assert said.endswith(f"cntk {arguments[0]}: interrupted\n")
    assert "Traceback" not in said
