"""The ``cntk`` program."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cntk.cli import main
from cntk.commands.doctor import PARTS
from cntk.core import plugins


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    for name in plugins.commands:
        assert f"  {name} " in printed


def test_an_unknown_command_lists_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docter"]) == 2
    assert "no command 'docter'; there are compile, ctf2bin, doctor, launch, plugins" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("opencntk ")


def test_plugins_shows_what_each_registers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins"]) == 0
    printed = capsys.readouterr().out
    assert "numpy (opencntk" in printed
    assert "backends: numpy" in printed


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


def test_doctor_says_how_to_mend_a_missing_part(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cntk.commands.doctor.find_spec", lambda module: None)
    main(["doctor"])
    assert "pip install 'opencntk[gpu]'" in capsys.readouterr().out


def test_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "cntk", "plugins", "--broken"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no plugin is broken\n", "")
