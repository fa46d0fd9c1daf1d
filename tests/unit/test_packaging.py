"""What pyproject.toml says of the package agrees with the folders and with what is installed."""

from __future__ import annotations

import tomllib
from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def packages_in(root: Path, folders: dict[str, str]) -> set[str]:
    """Import names of all folders with an ``__init__.py`` below the mapped *folders*."""
    found = set()
    for name, folder in folders.items():
        for init in (root / folder).rglob("__init__.py"):
            found.add(".".join((name, *init.parent.relative_to(root / folder).parts)))
    return found


def test_every_package_is_listed(project: dict[str, Any], root: Path) -> None:
    setuptools = project["tool"]["setuptools"]
    assert packages_in(root, setuptools["package-dir"]) == set(setuptools["packages"])


def test_the_package_says_that_it_is_typed() -> None:
    assert (files("cntk") / "py.typed").is_file()


def test_the_wheel_has_every_template(project: dict[str, Any], root: Path) -> None:
    folder = root / "api" / "commands"
    patterns = project["tool"]["setuptools"]["package-data"]["cntk.commands"]
    for templates in ("plugin-templates", "project-templates"):
        there = {path for path in (folder / templates).rglob("*") if path.is_file()}
        assert there
        assert {path for pattern in patterns for path in folder.glob(pattern) if templates in path.parts} == there


def test_the_wheel_has_the_page_of_the_server(project: dict[str, Any], root: Path) -> None:
    folder = root / "api" / "serving"
    (pattern,) = project["tool"]["setuptools"]["package-data"]["cntk.serving"]
    assert set(folder.glob(pattern)) - {folder / "page.py"} == {folder / name for name in ("page.html", "page.css", "page.js")}


def test_installed_entry_points_are_those_of_the_project(project: dict[str, Any]) -> None:
    installed = {point.name: point for point in entry_points(group="cntk") if point.dist is not None and point.dist.name == "opencntk"}
    assert {name: point.value for name, point in installed.items()} == project["project"]["entry-points"]["cntk"]
    for point in installed.values():
        point.load()


@pytest.mark.parametrize("compiles", [True, False])
def test_numba_is_needed_to_build_wheels_with_machine_code_only(root: Path, monkeypatch: pytest.MonkeyPatch, compiles: bool) -> None:
    pytest.importorskip("setuptools", reason="packages are built by setuptools")
    monkeypatch.syspath_prepend(root / "packaging")
    monkeypatch.chdir(root)
    builder = import_module("opencntk_build")
    monkeypatch.setattr(builder, "COMPILES", compiles)
    monkeypatch.setattr(builder.build_meta, "get_requires_for_build_wheel", lambda settings: ["wheel"])
    assert any(name.startswith("numba") for name in builder.get_requires_for_build_wheel()) == compiles
    assert "wheel" in builder.get_requires_for_build_wheel()
    assert builder.get_requires_for_build_editable is builder.build_meta.get_requires_for_build_editable
