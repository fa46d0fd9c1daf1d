"""Type checkers know the public names, also those of plugins: they find what is wrong in calls, and nothing where they are right."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.slow

PARTS = ("core", "plugins", "backends", "readers", "learners")
EXPECTED = re.compile(r"# (error|gives (\w+))$")
PLUGIN = {
    "cntk_extra/__init__.py": """
from cntk.extend import Register, hookimpl

@hookimpl
def cntk_register_ops(register: Register) -> None:
    register("softcap", "cntk_extra.things:softcap")
    register("sequence.halve", "cntk_extra.things:halved")
    register("layers.Halved", "cntk_extra.things:Halved")

@hookimpl
def cntk_register_deserializers(register: Register) -> None:
    register("TapeDeserializer", "cntk_extra.things:TapeDeserializer")
""",
    "cntk_extra/things.py": """
import cntk as C

def softcap(x: C.Variable, cap: float = 1.0) -> C.Function:
    return C.tanh(x / cap) * cap

def halved(x: C.Variable) -> C.Function:
    return x / 2

def Halved(shape: int) -> C.Function:
    return C.layers.Dense(shape) >> (lambda y: y / 2)

class TapeDeserializer:
    def __init__(self, filename: str) -> None:
        self.filename = filename
""",
    "cntk_extra/py.typed": "",
    "cntk_extra-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: cntk-extra\nVersion: 1.0\n",
    "cntk_extra-1.0.dist-info/entry_points.txt": "[cntk]\nextra = cntk_extra\n",
}


class Found(NamedTuple):
    """Lines with errors, with the messages, and the types that were asked for by line."""

    errors: dict[int, str]
    types: dict[int, str]


def environment(folder: Path, root: Path) -> Path:
    """The interpreter of an environment with the package, of links to the checkout, a plugin, and the stubs that ``cntk stubs`` makes."""
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    site = Path(subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], **READ).stdout.strip())
    (site / "cntk").mkdir()
    for part in [*(root / "api").iterdir(), *(root / part for part in PARTS)]:
        (site / "cntk" / part.name).symlink_to(part)
    for name, text in PLUGIN.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")
    (site / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    done = subprocess.run([python, "-m", "cntk", "stubs"], cwd=folder, **READ)
    assert "names of plugins of others: " in done.stdout
    assert "softcap" in done.stdout
    return python


READ = {"capture_output": True, "text": True, "check": True}


def asking(source: str) -> str:
    """The program with ``reveal_type`` of each value whose type is expected."""
    lines = []
    for line in source.splitlines():
        expected = EXPECTED.search(line)
        if expected is None or expected[2] is None:
            lines.append(line)
            continue
        code = line[: expected.start()].rstrip()
        name = re.match(r"(\w+) = ", code)
        lines.append(f"{code}; reveal_type({name[1]})" if name else f"reveal_type({code})")
    return "\n".join(lines) + "\n"


def by_mypy(program: Path, python: Path) -> Found:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--python-executable", str(python)]
    done = subprocess.run([*command, program.name], cwd=program.parent, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = Found({}, {})
    for line, kind, text in re.findall(rf"^{program.name}:(\d+): (error|note): (.*)$", done.stdout, re.MULTILINE):
        revealed = re.fullmatch(r'Revealed type is "(?:[\w.]+\.)?(\w+)"', text)
        if kind == "error":
            found.errors[int(line)] = text
        elif revealed:
            found.types[int(line)] = revealed[1]
    return found


def by_pyright(program: Path, python: Path) -> Found:
    executable = shutil.which("pyright", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if executable is None:
        pytest.skip("pyright is not installed")
    settings = {"include": [program.name], "reportUnusedExpression": False}
    (program.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [executable, "--outputjson", "--pythonpath", str(python)]
    done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False)
    found = Found({}, {})
    for said in json.loads(done.stdout)["generalDiagnostics"]:
        line = said["range"]["start"]["line"] + 1
        revealed = re.fullmatch(r'Type of ".*" is "(\w+)"', said["message"], re.DOTALL)
        if said["severity"] == "error":
            found.errors[line] = said["message"]
        elif revealed:
            found.types[line] = revealed[1]
    return found


@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_right_calls_pass_and_wrong_ones_do_not(check: Callable[[Path, Path], Found], root: Path) -> None:
    folder = root / "build" / "typing" / check.__name__  # a place that stays, for mypy's cache
    folder.mkdir(parents=True, exist_ok=True)
    source = (root / "tests" / "typing" / "calls.py").read_text("utf-8")
    program = folder / "calls.py"
    program.write_text(asking(source), "utf-8")
    found = check(program, environment(folder / "environment", root))
    marked = {number: EXPECTED.search(line) for number, line in enumerate(source.splitlines(), 1)}
    wrong = {number for number, expected in marked.items() if expected and expected[1] == "error"}
    types = {number: expected[2] for number, expected in marked.items() if expected and expected[2]}
    assert {number: text for number, text in found.errors.items() if number not in wrong} == {}
    assert wrong - set(found.errors) == set()
    assert found.types == types
