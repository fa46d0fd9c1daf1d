"""Compares what type checkers see of the package with what there is when it is imported, by mypy's stubtest.

    PYTHONPATH=. MYPYPATH=. python check_stubs.py SETTINGS

runs where the package lies, with the path of mypy's settings.  It prints the differences that are not in the list of what cannot be
otherwise, and what of this list there is no more.
"""

from __future__ import annotations

import ctypes
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from enum import Enum
from functools import reduce
from importlib import import_module
from io import StringIO
from types import ModuleType
from typing import Any, NamedTuple

from mypy import stubtest

import cntk
from cntk.compatibility import origins
from cntk.compatibility.members import data, graph, training
from cntk.compatibility.names import NAMES
from cntk.core.machine.loops import Loop
from cntk.internal.stubs import NAMESPACES, is_built_in

FOUND = re.compile(r"(cntk[\w.]*(?:\.<[^>]+>)?) (.+)")
NOT_IMPORTED = "failed to import"
OLD_NAMES = {"cntk.distributed": "cntk.train.distributed", "cntk.learner": "cntk.learners"}
MEMBERS = {
    f"{target.__module__}.{target.__qualname__}.{name}"
    for table in (graph.MEMBERS, data.MEMBERS, training.MEMBERS)
    for target, members in table.items()
    for name in vars(members)
}


class Difference(NamedTuple):
    """A difference, as stubtest tells it, and the object that has the name; None where there is none."""

    name: str
    text: str
    found: Any

    @property
    def owner(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def last(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def is_missing(self) -> bool:
        return self.text == "is not present in stub"


def is_for_compatibility(one: Difference) -> bool:
    owner = OLD_NAMES.get(one.owner, one.owner)
    return one.name in MEMBERS or (one.is_missing and owner in NAMES and one.last in origins(owner))


def begins(*names: str) -> Callable[[Difference], bool]:
    return lambda one: any(f"{one.name}.".startswith(f"{name}.") for name in names)


def is_private(one: Difference) -> bool:
    return any(part.startswith("_") and not part.endswith(("__", "_names")) for part in one.name.split("."))


def is_field(one: Difference) -> bool:
    owner = object_called(one.owner)
    return isinstance(owner, type) and (issubclass(owner, ctypes.Structure) or hasattr(owner, "__struct_fields__"))


ACCEPTED: dict[str, Callable[[Difference], bool]] = {
    # what is there, and not for type checkers
    "programs of old have them from modules and classes that checkers are not to propose them for": is_for_compatibility,
    "names of the engine are looked up when they are asked for": lambda one: one.is_missing and begins("cntk.cntk_py")(one),
    "star imports bring what plugins register": lambda one: one.last == "__all__" and "_names." not in one.name,
    "modules have the modules in their folder once these are imported": lambda one: one.is_missing and isinstance(one.found, ModuleType),
    "scikit-learn makes setters": lambda one: one.is_missing and re.fullmatch("set_.*_request", one.last) is not None,
    # what is not there, and for type checkers alone
    "the program ends when it is imported": lambda one: one.name == "cntk.__main__",
    "the metaclass takes Function's arguments; fields of operators are set by name": begins(
        "cntk.core.graph.function.Function.__init__", "cntk.core.operators.base.OpBase.__getattr__"
    ),
    "annotations have these aliases": begins(
        "cntk.core.operators.samples.Sequences", "cntk.learners.cntk_py_factories.Parameters", "cntk.learners.schedules.ScheduleLike"
    ),
    "they are the program's": begins(*(f"cntk.plugins.launchers.worker.{name}" for name in ("name", "number", "rest"))),
    # what mypy cannot tell
    "they are NumPy's and CuPy's": begins("cntk.DATATYPE", "cntk.backends.numpy.backend.NumpyBackend.xp", "cntk.backends.cupy.namespace"),
    "nobody but this package uses private names": is_private,
    "Python's own types describe a function that keeps results as taking anything": lambda one: hasattr(one.found, "cache_info"),
    "compiled loops are objects": lambda one: isinstance(one.found, Loop) and one.text == "is not a function",
    "default_options may override a default": lambda one: "core.common.options.Overridable" in one.text,
    "default_override_or is a class, whose objects stand for values": begins("cntk.core.common.options.default_override_or"),
    "a formula tells what an operator keeps": lambda one: isinstance(one.found, property) and "read-only" in one.text,
    "C structures and messages have fields": is_field,
    "members of enumerations are given as numbers": lambda one: isinstance(one.found, Enum),
    "static methods are also given as functions": lambda one: isinstance(one.found, staticmethod),
    "learners have options where they are defined, and declarations in the stub": lambda one: (
        hasattr(one.found, "__signature__") and one.text.endswith("is not keyword-only")
    ),
    "mypy names a type for a branch": lambda one: "<" in one.name,
}
"""Why a difference cannot be otherwise, and which differences these are."""


def object_called(name: str) -> Any:
    """The object that a module or class has under a name, or None."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        with suppress(ImportError):
            found = import_module(".".join(parts[:count]))
            return reduce(lambda owner, part: vars(owner).get(part, getattr(owner, part, None)), parts[count:], found)
    return None


def differences(text: str) -> list[Difference]:
    """The differences in what stubtest has printed."""
    found = [match.groups() for match in map(FOUND.fullmatch, text.splitlines()) if match]
    return [Difference(name, what, None if what.startswith(NOT_IMPORTED) else object_called(name)) for name, what in found]


def stand_in(name: str, names: dict[str, Any]) -> None:
    """Let a stub be compared with a module that has what the module beside the stub finds when it is asked for it."""
    module = ModuleType(name)
    vars(module).update(names)
    sys.modules[name] = module


def main(settings: str) -> int:
    stand_in("cntk._names", {name: getattr(cntk, name) for name in cntk._HOMES})
    for space in NAMESPACES:
        home = import_module(space.module)
        names = {name: getattr(home, name) for name, registered in space.names() if is_built_in(space.registry, registered)}
        stand_in(f"cntk.{space.file.removesuffix('.pyi').replace('/', '.')}", {**names, "__all__": [*names]})
    printed = StringIO()
    with redirect_stdout(printed):
        stubtest.test_stubs(stubtest.parse_options(["cntk", "--concise", "--mypy-config-file", settings]))
    found = differences(printed.getvalue())
    if not found:  # there are always some, unless mypy finds errors before
        print(printed.getvalue())
        return 1
    left = [one for one in found if not any(accepts(one) for accepts in ACCEPTED.values())]
    for one in left:
        print(one.name, one.text)
    unused = [why for why, accepts in ACCEPTED.items() if not any(map(accepts, found))]
    for why in unused:
        print("stubtest finds no more:", why)
    return 1 if left or unused else 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main(sys.argv[1]))
