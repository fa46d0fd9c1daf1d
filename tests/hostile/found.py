"""The trials of this folder: every module that defines a function ``trial``."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Trial:
    """A module whose ``trial`` tries one case.

    Attributes:
        name: of the module.
        folder: that it lies in.
        what: the first line of its docstring.
        needs: packages without which it is left out (``NEEDS``).
        share: how many parts of the time it gets (``SHARE``, 1).
        limit: seconds after which a case counts as hanging (``LIMIT``, 60).
        memory: GiB that its process may hold (``MEMORY``, 3).
    """

    name: str
    folder: Path
    what: str
    needs: tuple[str, ...] = ()
    share: float = 1
    limit: float = 60
    memory: float = 3

    def missing(self) -> list[str]:
        """The packages that it needs and that are not installed."""
        return [package for package in self.needs if find_spec(package) is None]


SETTINGS = {"NEEDS": "needs", "SHARE": "share", "LIMIT": "limit", "MEMORY": "memory"}


def find_trials(folder: Path = HERE) -> dict[str, Trial]:
    """The trials of a folder by name; nothing is imported for it.

    Raises:
        ValueError: a trial is called as a module of Python, in whose place it would be imported.
    """
    trials = {}
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "trial" for node in tree.body):
            if path.stem in sys.stdlib_module_names:
                raise ValueError(f"{path}: Python has a module {path.stem}; call the trial otherwise")
            what = (ast.get_docstring(tree) or "").partition("\n")[0]
            trials[path.stem] = Trial(path.stem, folder, what, **_settings(tree))
    return trials


def _settings(tree: ast.Module) -> dict[str, Any]:
    """What a module says of itself by constants."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in SETTINGS:
            found[SETTINGS[node.targets[0].id]] = ast.literal_eval(node.value)
    return found
