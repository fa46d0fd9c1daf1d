"""The notebooks of examples/notebooks run, hold what they claim, and lead on; as scripts, and in a Jupyter kernel.

A notebook states its claims as sentences, each with an assertion below it, so that one that runs to its end has held them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shares import share

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
SCRIPTS = sorted(FOLDER.glob("[0-9]*.py"))
NAMES = [script.stem for script in SCRIPTS]
TIMEOUT = 600
"""Seconds after which a notebook hangs; it takes some ten on a machine that has nothing else to do."""

NEEDS = {"matplotlib": "plot", "sklearn": "demo", "onnxruntime": "onnx", "uvicorn": "serve"}
"""Packages that notebooks need, and the extra that brings each."""

CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)


def cells(script: Path) -> list[tuple[str, str]]:
    """Kind (``markdown`` or ``code``) and text of each cell of a script."""
    _, *parts = CELL.split(script.read_text(encoding="utf-8"))
    kinds = ["markdown" if "[markdown]" in mark else "code" for mark in parts[::2]]
    return list(zip(kinds, parts[1::2], strict=True))


def require(script: Path) -> None:
    """Skip where what a notebook needs is not installed."""
    text = script.read_text(encoding="utf-8")
    needed = [package for package in NEEDS if re.search(rf"^(?:import|from) {package}\b", text, re.MULTILINE)]
    for package in [*needed, *(["uvicorn"] if '"serve"' in text else [])]:
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'opencntk[{NEEDS[package]}]'")


def environment() -> dict[str, str]:
    """That of this process, with pictures drawn nowhere and one thread for each product, as several tests run at once."""
    return {**os.environ, "MPLBACKEND": "agg", "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore:FigureCanvasAgg:UserWarning"}


def test_there_are_twelve_at_least() -> None:
    assert [name[:2] for name in NAMES] == [f"{number:02}" for number in range(1, len(NAMES) + 1)]
    assert len(NAMES) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("script", share(SCRIPTS, 2), ids=share(NAMES, 2))
def test_what_it_claims_holds(script: Path, tmp_path: Path) -> None:
    require(script)
    command = [sys.executable, str(script)]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert "Warning" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_it_begins_with_what_is_learnt_and_ends_with_what_to_try(script: Path) -> None:
    (first, opening), *_, (last, closing) = cells(script)
    assert (first, last) == ("markdown", "markdown")
    assert opening.startswith(f"# # {script.stem[:2]} ")
    assert "# You will learn\n" in opening
    assert "# ## What to try next\n" in closing
    links = re.findall(r"\]\(([^)#]+)(?:#([^)]*))?\)", closing)
    assert any(link.startswith("../../docs/") for link, _ in links)


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_it_claims_something_and_shows_something(script: Path) -> None:
    code = "\n".join(text for kind, text in cells(script) if kind == "code")
    assert re.search(r"^ *(?:assert |np\.testing\.assert)", code, re.MULTILINE)
    assert "plt.show()" in code
    assert re.search(r"label[=(]", code)


@pytest.mark.parametrize("page", [*SCRIPTS, FOLDER / "README.md"], ids=lambda page: page.name)
def test_its_links_lead_somewhere(page: Path) -> None:
    for link, heading in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        target = page.parent / link
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, f"{link}#{heading}"


def test_the_index_has_them_all() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"]({name}.py)" not in index] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["01_tour", "11_your_own"])
def test_it_runs_in_a_jupyter_kernel(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ``.ipynb`` itself: its classes are those of a kernel's ``__main__``, and pictures come out of the cells."""
    for package in ("jupytext", "nbclient", "ipykernel"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'opencntk[notebooks]'")
    script = FOLDER / f"{name}.py"
    require(script)
    notebook = tmp_path / f"{name}.ipynb"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    made = subprocess.run(
        [sys.executable, str(FOLDER / "make.py"), str(script), str(notebook)], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert made.returncode == 0, made.stderr[-4000:]

    import nbformat

    executed = nbformat.read(notebook, as_version=4)
    outputs = [output for cell in executed.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output for output in outputs if output.output_type == "error"] == []
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert all(cell.execution_count for cell in executed.cells if cell.cell_type == "code")
