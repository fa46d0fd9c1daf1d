"""Pages of the reference, made from what the package offers when it is imported: operators and learners come from plugins."""

from __future__ import annotations

import inspect
import pkgutil
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import cntk
from cntk.compatibility import offered
from cntk.core.extension.plugins import DISTRIBUTION, ops

NOT_FOR_USERS = ("backends", "commands", "compatibility", "core.", "learners.", "plugins", "readers", "tests")
INSIDE = tuple(f"cntk.{name}" for name in NOT_FOR_USERS)
"""Beginnings of the names of modules that users have no reason to import."""

ALSO = ("cntk", "cntk.core", "cntk.learners")
"""Modules whose names are public although others beside or below them are not."""

FIRST = ("cntk.learners", "cntk.ops.functions")
"""Modules where things are described that others offer, too."""

OLD_NAMES = ("cntk.cntk_py_init", "cntk.distributed", "cntk.internal", "cntk.learner", "cntk.sample_installer", "cntk.utils")
"""Modules that have names for the sake of old programs; what is elsewhere too is described there."""

ENGINE = ("cntk.cntk_py.settings", "cntk.cntk_py.dictionary", "cntk.core.common.random", "cntk.plugins.progress.base")
"""Where those names of CNTK's native engine come from that have no other public name."""


class Entry(NamedTuple):
    """Something the package offers: the name under which it is described, what it is, and the other names that it has."""

    name: str
    value: Any
    others: frozenset[str]


@cache
def pages() -> dict[str, tuple[str, str, list[Entry]]]:
    """For each page, by its name: a title, a sentence and what is described there, each thing on one page only."""
    found = {f"operators/{family}": (family.replace("_", " ").capitalize(), *rest) for family, *rest in _families()}
    taken = {_identity(entry.name, entry.value) for *_, entries in found.values() for entry in entries}
    for module in _modules():
        described = []
        for name in _names_of(module):
            value = getattr(module, name)
            if _is_ours(value, module) and _identity(name, value) not in taken:
                taken.add(_identity(name, value))
                described.append(_entry(f"{module.__name__}.{name}", name, value))
        if described:
            found[module.__name__] = (module.__name__, _sentence(module), sorted(described, key=lambda entry: entry.name.lower()))
    return found


def entries() -> list[Entry]:
    return [entry for *_, described in pages().values() for entry in described]


def aliases() -> dict[str, frozenset[str]]:
    """The other names of each thing, by the name under which it is described."""
    return {entry.name: entry.others for entry in entries()}


def sources() -> Iterator[tuple[str, str]]:
    """The pages in reStructuredText, as docstrings are, by their paths."""
    for page, (title, sentence, described) in pages().items():
        is_module = not page.startswith("operators/") and title not in {entry.name for entry in described}
        module = f".. py:module:: {title}\n\n" if is_module else ""
        yield f"reference/{page}.rst", _titled(title) + f"{module}{sentence}\n\n" + "\n".join(_directive(entry) for entry in described)
    families = [page for page in pages() if page.startswith("operators/")]
    modules = sorted(page for page in pages() if page not in families)
    yield "reference/operators.rst", _titled("Operators by family") + (
        "Every operator is ``cntk.<name>`` and ``cntk.ops.<name>``. :doc:`All operators in one table </operators>`.\n\n"
    ) + _table(families) + _toctree([f"/reference/{page}" for page in families])
    yield "reference/index.rst", _titled("API reference") + (
        "What the package offers, from its docstrings. Things have the shortest name that leads to them: ``cntk.Trainer`` is\n"
        "``cntk.train.Trainer``, too. Every example is run by the tests, after ``import cntk as C`` and ``import numpy as np``.\n\n"
    ) + _table(["operators", *modules]) + _toctree([f"/reference/{page}" for page in ["operators", *modules]])


def _families() -> Iterator[tuple[str, str, list[Entry]]]:
    """Operators by the file that has them, a file a family."""
    families = defaultdict(list)
    for name in ops:
        if ops.owner(name).startswith(f"{DISTRIBUTION}:"):
            families[ops.get(name).__module__].append(_entry(f"cntk.{name}", name, ops.get(name)))
    for module in sorted(families):
        yield module.rpartition(".")[2], _sentence(import_module(module)), families[module]


def _modules() -> list[ModuleType]:
    """The public modules: those that say what they offer, those nearer to the top and those of today first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        named = [found.name for found in pkgutil.walk_packages(cntk.__path__, "cntk.") if not found.name.startswith(INSIDE)]
        modules = [import_module(name) for name in {*named, *ALSO} if not name.endswith("__main__")]
    public = [module for module in modules if hasattr(module, "__all__")]
    return sorted(public, key=_rank)


def _rank(module: ModuleType) -> tuple[bool, bool, bool, int, str]:
    name = module.__name__
    is_old = any(f"{name}.".startswith(f"{old}.") for old in OLD_NAMES)
    return is_old, module is cntk, name not in FIRST, name.count("."), name


def _names_of(module: ModuleType) -> list[str]:
    if module.__name__ != "cntk.cntk_py":
        return offered(module)
    return [name for name in module.__all__ if getattr(getattr(module, name), "__module__", None) in ENGINE]


def _identity(name: str, value: Any) -> Any:
    """What tells one thing from another: constants are told by their names, since equal numbers are one object.

    A thing that has two names, as a record of streams has, is described under each.
    """
    return (id(value) if callable(value) else None), name.rpartition(".")[2]


def _is_ours(value: Any, module: ModuleType) -> bool:
    """Whether it is described here: not what modules of Python and of other libraries have, but for what plugins are written with."""
    if inspect.ismodule(value):
        return False
    return module.__name__ == "cntk.extend" or not callable(value) or str(getattr(value, "__module__", "cntk")).startswith("cntk")


def _entry(path: str, name: str, value: Any) -> Entry:
    names = [f"cntk.{name}", path.replace("cntk.ops.", "cntk."), path]
    shortest = next(candidate for candidate in names if _at(cntk, candidate.removeprefix("cntk.")) is value or candidate == path)
    others = {path, f"cntk.ops.{name}" if path == f"cntk.{name}" else path, f"{getattr(value, '__module__', None)}.{name}"}
    return Entry(shortest, value, frozenset(others - {shortest}))


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _sentence(module: ModuleType) -> str:
    return " ".join((module.__doc__ or "").strip().partition("\n\n")[0].split())


def _titled(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n\n"


def _table(names: list[str]) -> str:
    rows = "".join(f"   * - :doc:`/reference/{name}`\n     - {pages()[name][1] if name in pages() else 'Operators.'}\n" for name in names)
    return f".. list-table::\n   :widths: 30 70\n\n{rows}\n"


def _toctree(paths: list[str]) -> str:
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {path}\n" for path in paths)


def _directive(entry: Entry) -> str:
    if inspect.isclass(entry.value):
        return (
            f".. autoclass:: {entry.name}\n   :members:\n   :special-members: __call__, __getitem__, __len__\n"
            "   :inherited-members: object, type, str, int, dict, tuple, Exception\n"
        )
    if callable(entry.value):
        return f".. autofunction:: {entry.name}\n"
    return f".. py:data:: {entry.name}\n   :value: {entry.value!r}\n"
