"""``cntk completion``: scripts for shells, run in those that this machine has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cntk.cli import main
from cntk.commands.completion import SCRIPTS, command_of
from cntk.core.extension import plugins
from cntk.core.extension.hookspecs import Register, hookimpl

ran: list[list[str]] = []


def plain(arguments: list[str]) -> int:
    """Says it's here, without argparse."""
    ran.append(arguments)
    print("usage: plain")
    return 0


class Plugin:
    @hookimpl
    def cntk_register_commands(self, register: Register) -> None:
        register("plain", plain)
        register("lost", "not_installed.commands:run")


@pytest.fixture(autouse=True)
def plugin() -> object:
    plugins.register_plugin(Plugin(), "completed")
    yield
    plugins.unregister_plugin("completed")


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_has_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in plugins.commands)
    assert "usage: plain" not in script


def test_commands_are_asked_for_help_alone() -> None:
    ran.clear()
    assert command_of("plain") == ("plain", "Says it's here, without argparse.", (), ())
    assert ran == [["--help"]]


def test_options_and_values_are_those_of_the_parser() -> None:
    found = command_of("new-plugin")
    kind = next(option for option in found.options if "--kind" in option.words)
    assert "operator" in kind.choices
    assert kind.summary == "what the plugin is, operator where nothing is said"
    assert command_of("completion").words == ("bash", "zsh", "fish")


def bash(script: Path, *words: str) -> list[str]:
    quoted = " ".join(f"'{word}'" for word in words)
    line = f'source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _cntk; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout.split()


def fish(script: Path, *words: str) -> list[str]:
    line = f"source {script}; complete -C '{' '.join(words)}'"
    done = subprocess.run(["fish", "--no-config", "-c", line], capture_output=True, text=True, check=True)
    return [found.partition("\t")[0] for found in done.stdout.splitlines()]


SHELLS = [shell for shell in (bash, fish) if shutil.which(shell.__name__)]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("cntk", "pred"), ["predict"]),
        (("cntk", "new-plugin", "--kind", "op"), ["operator"]),
        (("cntk", "predict", "--batch"), ["--batch_rows"]),
        (("cntk", "completion", "f"), ["fish"]),
    ],
)
def test_a_shell_completes(
    shell: object, words: tuple[str, ...], expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["completion", shell.__name__])
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    assert [word for word in shell(script, *words) if word.startswith(words[-1])] == expected
