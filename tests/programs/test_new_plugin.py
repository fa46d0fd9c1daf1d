"""The packages that ``cntk new-plugin`` makes: what the page for authors shows, and really installed, tested and checked for types."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from shares import share

from cntk.cli import main
from cntk.commands.new_plugin import KINDS, names_of, rendered

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ cntk new-plugin (\S+)(?: --kind (\S+))?$", PAGE, re.MULTILINE)
NAMES = {kind or "operator": name for name, kind in COMMANDS}
"""By kind the package that the page makes."""


def test_the_page_makes_a_package_of_every_kind() -> None:
    assert list(NAMES) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_shows_what_is_made(kind: str) -> None:
    name = names_of(NAMES[kind])["name"]
    package = rendered(NAMES[kind], kind)
    for path, text in package.items():
        if path.endswith((f"/{name}.py", f"/test_{name}.py")):
            assert f"```python\n{text}```\n" in PAGE, path


def test_the_page_shows_a_package_as_a_whole() -> None:
    for path, text in rendered(NAMES["operator"], "operator").items():
        if path.endswith((".toml", ".py")):
            assert f"\n{text}```\n" in PAGE, path


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-plugin", NAMES["operator"]]) == 0
    assert f"$ cntk new-plugin {NAMES['operator']}\n{capsys.readouterr().out}```\n" in PAGE


class Site:
    """A folder where packages are installed, in front of what the tests' own environment has.

    Args:
        folder: where to install them, and to put what is made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.installed = folder, folder / "site"

    def run(self, *arguments: str | Path, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python away from the checkout."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CNTK_", "PYTEST_"))}
        environment = kept | {"PYTHONPATH": str(self.installed), "PYTHONDONTWRITEBYTECODE": "1"} | variables
        command = [sys.executable, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd or self.folder, env=environment)

    def install(self, packages: Sequence[Path]) -> None:
        """Build and install packages from copies, with what is there, from no network."""
        copies = self.folder / "copies"
        for package in packages:
            shutil.copytree(package, copies / package.name, ignore=shutil.ignore_patterns(".*", "build", "__pycache__", "*.egg-info"))
        options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", self.installed)
        succeeded(self.run("-m", "pip", "install", *options, *copies.iterdir(), CNTK_BUILD_MACHINE_CODE="0"))
        shutil.rmtree(copies)


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    """Standard output of a program that must have ended well."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Opencntk and a package of every kind, made by what is installed and not by the checkout."""
    pytest.importorskip("setuptools", reason="packages are built by setuptools")
    made = Site(tmp_path_factory.mktemp("plugins"))
    made.install([ROOT])
    for kind, name in NAMES.items():
        succeeded(made.run("-m", "cntk", "new-plugin", name, "--kind", kind))
    made.install([made.folder / name for name in NAMES.values()])
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", share(tuple(KINDS), 3))
def test_its_test_passes(site: Site, kind: str) -> None:
    names = names_of(NAMES[kind])
    strict = {"CNTK_STRICT_PLUGINS": "1", "CNTK_PLUGINS": names["name"]}
    listed = succeeded(site.run("-m", "cntk", "plugins", **strict))
    assert f"{names['name']} ({NAMES[kind]} 0.1.0, {names['package']}): loaded\n" in listed
    tested = succeeded(site.run("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", cwd=site.folder / NAMES[kind], **strict))
    assert re.search(r"^\d passed in", tested, re.MULTILINE)


@pytest.mark.slow
def test_all_are_loaded_beside_one_another(site: Site) -> None:
    assert succeeded(site.run("-m", "cntk", "plugins", "--broken")) == "no plugin is broken\n"


@pytest.mark.slow
def test_its_types_are_right(site: Site) -> None:
    pytest.importorskip("mypy", reason="types are checked by mypy")
    sources = [path for name in NAMES.values() for path in (site.folder / name).rglob("*.py")]
    succeeded(site.run("-m", "cntk", "stubs", "--into", site.folder))
    shutil.copytree(site.folder / "cntk-stubs", site.installed / "cntk", dirs_exist_ok=True)  # as they complete an installed package
    options = ("--strict", "--follow-imports", "silent", "--cache-dir", site.folder / "mypy")
    succeeded(site.run("-m", "mypy", *options, *sources, MYPYPATH=str(site.installed)))


@pytest.mark.slow
def test_its_code_is_tidy(site: Site) -> None:
    pytest.importorskip("ruff", reason="style is checked by ruff")
    rules, length = ("--select", "E,F,W,I,B,UP,C4,SIM,RUF,PT,NPY,PIE"), ("--line-length", "140")
    for name in NAMES.values():
        for command in (("check", *rules), ("format", "--check")):
            succeeded(site.run("-m", "ruff", *command, "--isolated", "--no-cache", *length, ".", cwd=site.folder / name))
