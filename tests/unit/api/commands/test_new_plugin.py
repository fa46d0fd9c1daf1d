"""``cntk new-plugin``: what it writes, and what it refuses."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from cntk.cli import main
from cntk.commands.new_plugin import FILES, KINDS, names_of, rendered
from cntk.core.extension import hookspecs


@pytest.mark.parametrize("kind", KINDS)
def test_a_package_is_complete(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "made"
    assert main(["new-plugin", "cntk-made.up", "--kind", kind, "--folder", str(folder)]) == 0
    assert "    src/cntk_made_up/made_up.py\n" in capsys.readouterr().out
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["name"], project["entry-points"]["cntk"]) == ("cntk-made.up", {"made_up": "cntk_made_up"})
    hooks = (folder / "src" / "cntk_made_up" / "__init__.py").read_text(encoding="utf-8")
    assert f"def {KINDS[kind].hook}(" in hooks
    assert KINDS[kind].hook in vars(hookspecs)
    for path, text in rendered("cntk-made.up", kind).items():
        assert (folder / path).read_text(encoding="utf-8") == text
        if path.endswith(".py"):
            compile(text, path, "exec")
            assert text.startswith('"""')


def test_the_operator_is_the_default_and_the_folder_has_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-plugin", "softcap"]) == 0
    assert capsys.readouterr().out.startswith("An operator, softcap, in softcap:\n")
    assert (tmp_path / "softcap" / ".github" / "workflows" / "test.yml").is_file()
    assert len([path for path in (tmp_path / "softcap").rglob("*") if path.is_file()]) == len(FILES) + 1


@pytest.mark.parametrize(
    ("distribution", "why"),
    [
        ("", "cannot be the name of a package: expected small letters"),
        ("Softcap", "cannot be the name of a package: expected small letters"),
        ("soft cap", "cannot be the name of a package: expected small letters"),
        ("-softcap", "cannot be the name of a package: expected small letters"),
        ("softcap-", "cannot be the name of a package: expected small letters"),
        ("soft--cap", "cannot be the name of a package: expected small letters"),
        ("../softcap", "cannot be the name of a package: expected small letters"),
        ("söftcap", "cannot be the name of a package: expected small letters"),
        ("softcap\n", "cannot be the name of a package: expected small letters"),
        ("2softcap", "cannot be the name of a package: expected small letters"),
        ("cntk-2softcap", "'2softcap' is no name in Python"),
        ("cntk-lambda", "'lambda' is no name in Python"),
        ("lambda", "'lambda' is no name in Python"),
        ("string", "there is a module string already; try cntk-string"),
        ("cntk", "there is a module cntk already"),
        ("opencntk", "there is a module opencntk already"),
        ("numpy", "there is a module numpy already"),
        ("cntk-relu", "its operator would be called relu, which cntk has already"),
        ("cntk-layers", "its operator would be called layers, which cntk has already"),
        ("cntk-adam", "its operator would be called adam, which cntk has already"),
        ("cntk-fused", "the plugin would be called fused, as a built-in one is"),
        ("cntk-cap", "cap is a name that the plugin's own code uses"),
        ("cntk-context", "Context is a name that the plugin's own code uses"),
    ],
)
def test_names_that_are_refused(distribution: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "made"
    arguments = ["--folder", str(folder), "--", distribution]
    assert main(["new-plugin", *arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    assert not folder.exists()


@pytest.mark.parametrize(
    ("distribution", "kind", "name"),
    [
        ("cntk-checking", "backend", "checking"),
        ("cntk-adam", "learner", "adam"),
        ("cntk-user-deserializer", "deserializer", "UserDeserializer"),
        ("cntk-progress-printer", "progress-writer", "ProgressPrinter"),
        ("cntk-data-parallel", "strategy", "data_parallel"),
        ("cntk-safetensors", "model-format", "safetensors"),
        ("cntk-doctor", "command", "doctor"),
    ],
)
def test_names_that_are_registered_are_refused(distribution: str, kind: str, name: str) -> None:
    with pytest.raises(ValueError, match=rf"would be called {name}, which cntk has already"):
        rendered(distribution, kind)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("operator", "learner")])
def test_a_name_of_an_operator_is_free_for_others(kind: str) -> None:
    assert rendered("cntk-square", kind)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("mine")
    assert main(["new-plugin", "cntk-softcap", "--folder", str(tmp_path)]) == 1
    assert f"'{tmp_path}' exists and is not empty; choose another folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert main(["new-plugin", "cntk-softcap", "--folder", str(tmp_path / "mine")]) == 1
    assert (tmp_path / "mine").read_text() == "mine"


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    assert main(["new-plugin", "cntk-softcap", "--folder", str(tmp_path)]) == 0
    assert (tmp_path / "pyproject.toml").is_file()


def test_a_package_is_named_after_its_distribution() -> None:
    assert names_of("opencntk-top_k.two") == {
        "distribution": "opencntk-top_k.two",
        "package": "opencntk_top_k_two",
        "name": "top_k_two",
        "Class": "TopKTwo",
    }
