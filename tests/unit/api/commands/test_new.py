"""``cntk new``: programs that train, run as they are made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cntk.cli import main
from cntk.commands.new import KINDS, made


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_is_complete(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my $HOME project"
    assert main(["new", str(folder), "--kind", kind, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == set(said["files"])
    assert (folder / "README.md").read_text("utf-8").startswith("# my $HOME project\n")
    for path, content in made("x", kind).items():
        if path.endswith(".py"):
            compile(content, path, "exec")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_it_runs_at_once_and_passes_its_test(kind: str, tmp_path: Path) -> None:
    if kind == "images":
        pytest.importorskip("PIL")
    folder = tmp_path / "made"
    main(["new", str(folder), "--kind", kind])
    done = subprocess.run([sys.executable, "train.py", "--epochs", "3"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kept aside are right" in done.stdout
    assert (folder / "model.dnn").is_file()
    tested = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=folder, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout
    if kind == "classifier":  # it tells the command that applies the model
        command = done.stdout.splitlines()[-1].split()
        assert command[:2] == ["cntk", "predict"]
        applied = [sys.executable, "-m", *command]
        subprocess.run(applied, cwd=folder, capture_output=True, text=True, check=True)
        header, *rows = (folder / "results.csv").read_text().splitlines()
        assert header.startswith("probabilities_0,")
        assert len(rows) == 150


@pytest.mark.parametrize("kind", KINDS)
def test_what_else_is_needed_is_installed_first(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["new", str(tmp_path / "made"), "--kind", kind])
    _, then = capsys.readouterr().out.split("next:\n")
    assert ("pip install -r requirements.txt" in then) == (kind == "images")


def test_images_say_how_to_install_what_reads_them(tmp_path: Path) -> None:
    main(["new", str(tmp_path / "made"), "--kind", "images"])
    program = "import runpy, sys; sys.modules['PIL'] = None; runpy.run_path('train.py')"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path / "made", capture_output=True, text=True, check=False)
    assert done.stderr.endswith("install it with: pip install -r requirements.txt\n")


def test_what_is_there_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["new", str(tmp_path)]) == 1
    assert "exists and is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
