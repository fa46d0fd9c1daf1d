"""Type checkers know the public names: they find what is wrong in calls, and nothing where they are right."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.slow

PARTS = ("core", "plugins", "backends", "readers", "learners")
EXPECTED = re.compile(r"# (error|gives (\w+))$")


class Found(NamedTuple):
    """Lines with errors, with the messages, and the types that were asked for by line."""

    errors: dict[int, str]
    types: dict[int, str]


@pytest.fixture(scope="module")
def tree(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package under its import name, of links to the checkout."""
    folder = tmp_path_factory.mktemp("tree")
    (folder / "cntk").mkdir()
    for part in [*(root / "api").iterdir(), *(root / part for part in PARTS)]:
        (folder / "cntk" / part.name).symlink_to(part)
    return folder


def asking(source: str) -> str:
    """The program with ``reveal_type`` of each value whose type is expected."""
    lines = []
    for line in source.splitlines():
        expected = EXPECTED.search(line)
        code = line[: expected.start()].rstrip() if expected else line
        if expected is None or expected[2] is None:
            lines.append(line)
            continue
        name = re.match(r"(\w+) = ", code)
        lines.append(f"{code}; reveal_type({name[1]})" if name else f"reveal_type({code})")
    return "\n".join(lines) + "\n"


def by_mypy(program: Path, tree: Path, cache: Path) -> Found:
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    command += ["--cache-dir", str(cache), program.name]
    environment = os.environ | {"MYPYPATH": str(tree)}
    done = subprocess.run(command, cwd=program.parent, env=environment, capture_output=True, text=True, check=False)
    found = Found({}, {})
    for line, kind, text in re.findall(rf"^{program.name}:(\d+): (error|note): (.*)$", done.stdout, re.MULTILINE):
        revealed = re.fullmatch(r'Revealed type is "(?:[\w.]+\.)?(\w+)"', text)
        if kind == "error":
            found.errors[int(line)] = text
        elif revealed:
            found.types[int(line)] = revealed[1]
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return found


def by_pyright(program: Path, tree: Path, cache: Path) -> Found:
    executable = shutil.which("pyright", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if executable is None:
        pytest.skip("pyright is not installed")
    settings = {"include": [program.name], "extraPaths": [str(tree)], "pythonVersion": "3.11", "reportUnusedExpression": False}
    (program.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [executable, "--outputjson", "--pythonpath", sys.executable]
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


CHECKERS = pytest.mark.parametrize("check", [by_mypy, by_pyright])


@CHECKERS
def test_right_calls_pass_and_wrong_ones_do_not(check: object, root: Path, tree: Path, tmp_path: Path) -> None:
    source = (root / "tests" / "typing" / "calls.py").read_text("utf-8")
    program = tmp_path / "calls.py"
    program.write_text(asking(source), "utf-8")
    found = check(program, tree, root / "build" / "mypy-calls")  # type: ignore[operator]
    marked = {number: EXPECTED.search(line) for number, line in enumerate(source.splitlines(), 1)}
    wrong = {number for number, expected in marked.items() if expected and expected[1] == "error"}
    types = {number: expected[2] for number, expected in marked.items() if expected and expected[2]}
    assert {number: text for number, text in found.errors.items() if number not in wrong} == {}
    assert wrong - set(found.errors) == set()
    assert found.types == types
