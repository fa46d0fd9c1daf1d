"""The docs are true: every example in them and in docstrings runs, and nothing that is registered is missing from them."""

from __future__ import annotations

import doctest
import pkgutil
import re
import runpy
from collections.abc import Iterator
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import hookspecs, plugins

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "examples" / "cntk-extras" / "README.md"]
PARTS = ("cntk", "cntk.core", "cntk.plugins", "cntk.backends", "cntk.readers", "cntk.learners")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FILES = re.compile(r"^```python\n(?!>>>).*?^```$", re.DOTALL | re.MULTILINE)
"""Modules that pages show as a whole; an example in one runs where the module is."""
OF_EXAMPLES = {"softcap"}
"""Names that only the plugins of examples have."""

HOOKS = [name for name in vars(hookspecs) if name.startswith("cntk_register_")]

OF_CUPY = {"cntk.backends.cupy.memory", "cntk.backends.cupy.namespace"}
"""Modules that import CuPy, and are imported where a GPU is asked for."""

_MLFLOW = "it needs MLflow, which is not installed with what tests need"
WITHOUT_EXAMPLE = {
    "cntk.extend.hookimpl": "it is pluggy's, and documented there",
    "cntk.io.ParquetDeserializer": "it needs pyarrow, which is not installed with what tests need",
    "cntk.layers.identity": "it is a function of a graph, whose docstring is that of its class",
    "cntk.logging.MLflowProgressWriter": _MLFLOW,
    "cntk.mlflow.load_model": _MLFLOW,
    "cntk.mlflow.log_model": _MLFLOW,
    "cntk.mlflow.model_signature": _MLFLOW,
    "cntk.mlflow.save_model": _MLFLOW,
}
"""Names of the reference without an example that is run, and why; there may be fewer of them, but not more."""


def modules() -> Iterator[str]:
    for part in PARTS:
        yield part
        for module in pkgutil.walk_packages(import_module(part).__path__, f"{part}."):
            if not module.name.endswith("__main__"):
                yield module.name


def run(test: doctest.DocTest) -> None:
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append)
    if report:
        pytest.fail("".join(report), pytrace=False)


@pytest.mark.parametrize("name", sorted(set(modules())))
def test_docstrings(name: str) -> None:
    if name in OF_CUPY:
        pytest.importorskip("cupy", reason="CuPy is not installed")
    if name.startswith("cntk.sklearn"):
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    for test in doctest.DocTestFinder(exclude_empty=True).find(import_module(name), extraglobs={"C": C, "np": np}):
        run(test)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_of_a_page_gives_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = FILES.sub("", page.read_text(encoding="utf-8"))
    text = re.sub("^```.*$", "", text, flags=re.MULTILINE)
    run(doctest.DocTestParser().get_doctest(text, {"C": C, "np": np}, page.name, str(page), 0))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_sentences_are_there(page: Path) -> None:
    sentences = re.sub("^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    names = re.findall(r"`C\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)", sentences)
    assert [name for name in names if name not in OF_EXAMPLES and not _is_there(name)] == []


def _is_there(name: str) -> bool:
    try:
        attrgetter(name)(C)
    except AttributeError:
        return False
    return True


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "index.md" and f"]({page.name})" not in index] == []


def test_the_tutorial_shows_the_hooks_of_the_example() -> None:
    """What the tutorial shows of the file is in the file, line for line."""
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    _, hooks = (ROOT / "examples" / "cntk-extras" / "src" / "cntk_extras" / "__init__.py").read_text(encoding="utf-8").split("\n\n", 1)
    assert f"```python\n{hooks}```\n" in page


@pytest.mark.parametrize("name", ["operators.py", "onnx_operators.py"])
def test_tables_of_operators_are_up_to_date(name: str) -> None:
    if name == "onnx_operators.py":
        pytest.importorskip("onnx", reason="onnx is not installed")
    maker = runpy.run_path(str(ROOT / "docs" / name))
    assert maker["PAGE"].read_text(encoding="utf-8") == maker["page"](), f"run python docs/{name}"


def test_pictures_of_axes_are_up_to_date() -> None:
    pictures = runpy.run_path(str(ROOT / "docs" / "axes.py"))
    drawn = {name: draw().svg() for name, draw in pictures["PICTURES"].items()}
    assert {path.stem: path.read_text(encoding="utf-8") for path in pictures["FOLDER"].glob("*.svg")} == drawn, "run python docs/axes.py"


def test_pictures_of_the_gallery_are_there_and_small() -> None:
    gallery = runpy.run_path(str(ROOT / "docs" / "gallery.py"))
    names = {name for page in gallery["PAGES"] for name in gallery["shown"](page)}
    assert {path.name for path in gallery["FOLDER"].iterdir()} == names
    assert [name for name in names if (gallery["FOLDER"] / name).stat().st_size > gallery["LARGEST"]] == []


def test_every_example_of_the_reference_is_run() -> None:
    """What the reference describes has its examples where ``test_docstrings`` looks for them."""
    reference = runpy.run_path(str(ROOT / "docs" / "site" / "reference.py"))
    finder = doctest.DocTestFinder(exclude_empty=True)
    run = {test.docstring for name in set(modules()) - OF_CUPY for test in finder.find(import_module(name))}
    described = [(entry.name, entry.value.__doc__ or "") for entry in reference["entries"]() if callable(entry.value)]
    assert [name for name, text in described if ">>>" in text and text not in run] == []
    assert [name for name, text in described if not text] == []


def test_everything_that_the_reference_describes_has_an_example_that_runs() -> None:
    reference = runpy.run_path(str(ROOT / "docs" / "site" / "reference.py"))
    without = {entry.name for entry in reference["entries"]() if callable(entry.value) and not _has_example(entry.value.__doc__ or "")}
    assert without == set(WITHOUT_EXAMPLE)


def _has_example(text: str) -> bool:
    return any(not example.options.get(doctest.SKIP) for example in doctest.DocTestParser().get_examples(text))


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_in_the_docs(hook: str) -> None:
    assert f"## `{hook}(register)`" in (ROOT / "docs" / "plugin_reference.md").read_text(encoding="utf-8")


def test_every_hook_has_a_registry() -> None:
    assert sorted(HOOKS) == sorted(plugins.REGISTRIES)


@pytest.mark.parametrize("command", plugins.commands.names())
def test_every_command_is_in_the_docs(command: str) -> None:
    assert f"`cntk {command}" in (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "part", [plugins.learners, plugins.progress_writers, plugins.backends, plugins.deserializers], ids=lambda registry: registry.kind
)
def test_every_other_name_is_in_the_docs(part: plugins.Registry) -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    ours = [name for name in part if part.owner(name).startswith(f"{plugins.DISTRIBUTION}:")]
    assert ours
    assert [name for name in ours if f"`{name}`" not in pages] == []
