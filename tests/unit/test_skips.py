"""Skips are counted against a list in continuous integration, and are free elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import skips

TESTS = """
import pytest

def test_that_passes():
    pass

@pytest.mark.skip(reason="{reason}")
def test_that_is_skipped():
    pass
"""


def run(root: Path, folder: Path, reason: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a module with a test that is skipped."""
    (folder / "conftest.py").write_text("import skips\n\ndef pytest_configure(config):\n    skips.begin(config)\n")
    (folder / "test_module.py").write_text(TESTS.format(reason=reason))
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {root / 'tests'}\n")
    inherited = {name: value for name, value in os.environ.items() if name != "CNTK_CI"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, cwd=folder, env=inherited | environment, capture_output=True, text=True, check=False)


def test_a_skip_that_is_not_listed_fails_the_run(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "the moon is full", CNTK_CI="1")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "1 skipped, 1 of them in no part of skips.toml" in done.stdout
    assert "test_module.py::test_that_is_skipped: Skipped: the moon is full" in done.stdout


def test_it_is_free_elsewhere(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "the moon is full")
    assert done.returncode == 0
    assert "skips.toml" not in done.stdout


def test_parts_of_the_list_are_named() -> None:
    known = skips.allowed("1,without-numba")
    assert ("tests/backends/fused/", "compiled loops are switched off") in known
    assert ("tests/backends/fused/", "compiled loops are switched off") not in skips.allowed("1")
    with pytest.raises(ValueError, match=r"CNTK_CI: skips\.toml has no part full-moon; it has always, "):
        skips.allowed("full-moon")


def test_both_place_and_reason_count() -> None:
    known = [("tests/unit/test_a.py", "no dot")]
    wrong = [("tests/unit/test_b.py::t", "no dot"), ("tests/unit/test_a.py::u", "other")]
    assert list(skips.unlisted([("tests/unit/test_a.py::t", "Skipped: no dot here"), *wrong], known)) == wrong
