"""Other installed distributions, damaged in every way there is: ``import cntk`` goes on and names them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ENTRY = "[cntk]\nneighbour = neighbour\n"
METADATA = "Metadata-Version: 2.1\nName: neighbour\nVersion: 1.5\n"


def neighbour(folder: Path, code: str = "", entry_points: bytes = ENTRY.encode(), metadata: bytes | None = METADATA.encode()) -> None:
    """Install a distribution into a folder."""
    (folder / "neighbour.py").write_text(code)
    info = folder / "neighbour-1.5.dist-info"
    info.mkdir()
    for name, content in (("entry_points.txt", entry_points), ("METADATA", metadata)):
        if content is not None:
            (info / name).write_bytes(content)


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python beside the neighbour."""
    environment = {**os.environ, "PYTHONPATH": str(folder), **variables}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=60, check=False)


def imported(folder: Path) -> list[str]:
    """Lines on standard error of a program that imports cntk and trains a step."""
    done = run(folder, "-c", "import cntk as C; C.sgd([C.parameter(2)], 0.1); print('in', C.plus(1, 2).eval())")
    assert (done.returncode, done.stdout) == (0, "in 3.0\n"), done.stderr
    return done.stderr.splitlines()


BROKEN_CODE = {
    "ends the program": ("import sys; sys.exit()", "SystemExit"),
    "ends it with a status": ("raise SystemExit(3)", "SystemExit: 3"),
    "raises what is no Exception": ("class Odd(BaseException): pass\nraise Odd('why')", "Odd: why"),
    "raises GeneratorExit": ("raise GeneratorExit", "GeneratorExit"),
    "raises a group": ("raise BaseExceptionGroup('all', [SystemExit()])", "BaseExceptionGroup: all (1 sub-exception)"),
    "raises what has no message": ("class Mute(Exception):\n    def __str__(self): 1/0\nraise Mute", "Mute: (without a message)"),
    "goes on for ever": ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
    "is no Python": ("def", "SyntaxError"),
    "lacks memory": ("raise MemoryError", "MemoryError"),
    "registers what is not there": (
        "from cntk.core.extension.hookspecs import hookimpl\n@hookimpl\ndef cntk_register_ops(register):\n    raise SystemExit",
        "SystemExit",
    ),
}


@pytest.mark.parametrize("how", BROKEN_CODE)
def test_plugins_that_break_are_left_out(how: str, tmp_path: Path) -> None:
    code, error = BROKEN_CODE[how]
    neighbour(tmp_path, code)
    (line,) = imported(tmp_path)
    assert line.startswith("cntk: plugin 'neighbour' of neighbour 1.5 (neighbour) is broken and left out: ")
    assert error in line
    assert line.endswith("pip uninstall neighbour")


DAMAGED_LISTS = {
    "other encoding": b"\xff\xfe[cntk]\n",
    "no value": b"[cntk]\nneighbour\n",
    "NUL": b"\x00\xff",
}


@pytest.mark.parametrize("how", DAMAGED_LISTS)
def test_lists_of_plugins_that_are_damaged_are_left_out(how: str, tmp_path: Path) -> None:
    neighbour(tmp_path, entry_points=DAMAGED_LISTS[how])
    (line,) = imported(tmp_path)
    assert line.startswith(f"cntk: entry_points.txt of neighbour 1.5 in {tmp_path / 'neighbour-1.5.dist-info'} cannot be read: ")


def test_a_damaged_list_leaves_other_plugins_alone(tmp_path: Path) -> None:
    neighbour(tmp_path, "print('loaded')")
    (tmp_path / "another-2.dist-info").mkdir()
    (tmp_path / "another-2.dist-info" / "entry_points.txt").write_bytes(b"\xff")
    done = run(tmp_path, "-c", "import cntk")
    assert done.stdout == "loaded\n"
    assert "entry_points.txt of another" in done.stderr


@pytest.mark.parametrize("metadata", [None, b"", b"\xff\xfe", b"Name\n", b"Version: 1\n"])
def test_metadata_may_be_damaged(metadata: bytes | None, tmp_path: Path) -> None:
    neighbour(tmp_path, "print('loaded')", metadata=metadata)
    done = run(tmp_path, "-c", "import cntk")
    assert (done.returncode, done.stdout, done.stderr) == (0, "loaded\n", "")


def test_folders_and_files_may_be_exchanged(tmp_path: Path) -> None:
    (tmp_path / "file-1.dist-info").write_text("no folder")
    (tmp_path / "folder-1.dist-info" / "entry_points.txt").mkdir(parents=True)
    (tmp_path / "egg.egg-info").write_bytes(b"\xff")
    assert imported(tmp_path) == []
    (tmp_path / "link-1.dist-info").symlink_to(tmp_path / "link-1.dist-info")
    (line,) = imported(tmp_path)
    assert line.startswith("cntk: entry_points.txt of link ? in ")


def test_doctor_names_what_is_damaged(tmp_path: Path) -> None:
    neighbour(tmp_path, entry_points=b"\xff")
    (tmp_path / "neighbour-1.5.dist-info" / "RECORD").write_bytes(b"\xff")
    done = run(tmp_path, "-m", "cntk", "doctor")
    assert done.returncode == 1, done.stderr
    assert f"entry_points.txt of neighbour ({tmp_path / 'neighbour-1.5.dist-info'}): UnicodeDecodeError" in done.stdout


def test_a_slow_plugin_is_named_while_it_is_slow_and_by_doctor(tmp_path: Path) -> None:
    neighbour(tmp_path, "import time; time.sleep(2.5)")
    done = run(tmp_path, "-m", "cntk", "doctor")
    assert "plugin 'neighbour' of neighbour 1.5 (neighbour) takes more than 2 seconds to load" in done.stderr
    assert "neighbour of neighbour 1.5: loaded in 2." in done.stdout


@pytest.mark.parametrize(("code", "error"), [("raise SystemExit", "ImportError"), ("raise ValueError('why')", "ValueError: why")])
def test_strictness_raises_whatever_it_is(code: str, error: str, tmp_path: Path) -> None:
    neighbour(tmp_path, code)
    done = run(tmp_path, "-c", "import cntk", CNTK_STRICT_PLUGINS="1")
    assert done.returncode == 1
    assert error in done.stderr.splitlines()[-1]


def test_an_interrupt_still_ends_the_program(tmp_path: Path) -> None:
    neighbour(tmp_path, "raise KeyboardInterrupt")
    assert "KeyboardInterrupt" in run(tmp_path, "-c", "import cntk").stderr
