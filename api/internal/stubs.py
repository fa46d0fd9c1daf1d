"""Stubs of what plugins register, for type checkers and editors.

Modules such as ``cntk.ops`` find registered names when they are asked for them, which no type checker sees.  Beside each such module lies
a stub, ``_names.pyi``, that imports these names from where they are defined; the module imports it where ``TYPE_CHECKING`` holds.  Built-in
learners are declared there, since their source does not tell checkers that options may be given by position.  Stubs in the package have
the names of built-in plugins.  A partial stub package, ``cntk-stubs``, replaces them by those of all that is installed.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import PurePosixPath
from textwrap import indent
from typing import Any, NamedTuple

from cntk.core.extension import plugins
from cntk.core.extension.plugins import DISTRIBUTION
from cntk.core.extension.registry import Registry

HEADING = "# Names that plugins register, for editors and type checkers; made by: "
OF_PACKAGE = "make stubs"
OF_ALL = "cntk stubs"
TYPES_OF_LEARNERS = [
    "from collections.abc import Iterable",
    "from cntk.core.graph.variable import Parameter",
    "from cntk.learners.learner import Learner",
    "from cntk.learners.schedules import ScheduleLike",
]
"""Imports of the types in declarations of learners."""


class Namespace(NamedTuple):
    """A module that shows names of a registry: those behind a prefix, or those without a dot; or only some of them."""

    module: str
    registry: Registry
    prefix: str = ""

    @property
    def file(self) -> str:
        """The stub's path in the package."""
        package, _, name = self.module.removeprefix("cntk.").rpartition(".")
        is_package = hasattr(import_module(self.module), "__path__")
        return str(PurePosixPath(package, name, "_names.pyi") if is_package else PurePosixPath(package, f"_{name}_names.pyi"))

    def names(self) -> Iterator[tuple[str, str]]:
        """What the module calls each name, and what the registry does."""
        for name in plugins.names_shown(self.registry, self.prefix):
            yield name, self.prefix + name


NAMESPACES = (
    Namespace("cntk.ops", plugins.ops),
    Namespace("cntk.ops.sequence", plugins.ops, "sequence."),
    Namespace("cntk.random", plugins.ops, "random."),
    Namespace("cntk.layers", plugins.ops, "layers."),
    Namespace("cntk.losses", plugins.ops, "losses."),
    Namespace("cntk.metrics", plugins.ops, "metrics."),
    Namespace("cntk.learners", plugins.learners),
    Namespace("cntk.io", plugins.deserializers),
    Namespace("cntk.logging", plugins.progress_writers),
)


def is_built_in(registry: Registry, name: str) -> bool:
    """Whether a plugin of this package has registered a name."""
    return registry.owner(name).startswith(f"{DISTRIBUTION}:")


def stubs(made_by: str, wanted: Callable[[Registry, str], bool]) -> dict[str, str]:
    """The stubs by their paths in the package.

    Args:
        made_by: the command that makes them, for the heading.
        wanted: whether the stubs have a name of a registry.

    >>> from cntk.internal.stubs import OF_PACKAGE, is_built_in, stubs
    >>> print(stubs(OF_PACKAGE, is_built_in)["learners/_names.pyi"])
    # Names that plugins register, for editors and type checkers; made by: make stubs
    <BLANKLINE>
    ...
    from cntk.learners.universal_learner import universal as universal
    ...
    """
    return {"_names.pyi": _root(made_by), **{space.file: _text(made_by, space, wanted) for space in NAMESPACES}}


def can_be_had(registry: Registry, name: str) -> bool:
    """Whether a name is built in, or can be imported."""
    return is_built_in(registry, name) or plugins.can_be_had(registry, name, "cntk")


def of_others() -> list[str]:
    """The names that plugins of other distributions add to those of the package."""
    return [registered for space in NAMESPACES for _, registered in space.names() if not is_built_in(space.registry, registered)]


def left_out() -> list[str]:
    """The operators that are shown in modules which have no stub."""
    prefixes = tuple(space.prefix for space in NAMESPACES if space.prefix)
    return [name for name in plugins.ops.names() if "." in name and not name.startswith(prefixes)]


def _root(made_by: str) -> str:
    """The stub of ``cntk`` itself, which shows what other modules offer."""
    import cntk

    registered = {*plugins.names_shown(plugins.ops), *plugins.names_shown(plugins.learners)}
    own = [f"from {home.__name__} import {name} as {name}" for name, home in cntk._HOMES.items() if name not in registered]
    stars = [f"from {module}._names import *" for module in ("cntk.learners", "cntk.ops")]
    return "\n".join([HEADING + made_by, "", *sorted(own), *stars]) + "\n"


def _text(made_by: str, space: Namespace, wanted: Callable[[Registry, str], bool]) -> str:
    names = {name: registered for name, registered in space.names() if wanted(space.registry, registered)}
    declared = {name: text for name, registered in names.items() if (text := _declaration(space.registry, registered))}
    lines = sorted(_line(name, space.registry.origin(registered)) for name, registered in names.items() if name not in declared)
    imported, unknown = ([line for line in lines if line.startswith("from ") is is_import] for is_import in (True, False))
    types = [*(["from typing import Any"] if unknown else []), *(TYPES_OF_LEARNERS if declared else [])]
    body = [*types, *([""] if types else []), *imported, *unknown, *([""] if lines else []), *declared.values()]
    listed = ["__all__ = [", *(f'    "{name}",' for name in names), "]"] if names else ["__all__: list[str] = []"]
    return "\n".join([HEADING + made_by, "", *body, *listed]) + "\n"


def _declaration(registry: Registry, name: str) -> str:
    """The declaration of a built-in learner that takes the options of all learners; empty for anything else."""
    function = registry.get(name) if registry is plugins.learners and is_built_in(registry, name) else None
    if function is None or not hasattr(function, "__signature__"):
        return ""
    signature = inspect.signature(function)
    arguments = [f"    {one.name}: {one.annotation}{_default(one.default)},\n" for one in signature.parameters.values()]
    text = indent(f'"""{inspect.getdoc(function)}\n"""', "    ")
    return f"def {name}(\n{''.join(arguments)}) -> {signature.return_annotation}:\n{text}\n"


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return ""
    is_short = value is None or (isinstance(value, (bool, int, float)) and math.isfinite(value))
    return f" = {value!r}" if is_short else " = ..."


def _line(name: str, origin: str) -> str:
    """The line of a stub that says where a name is from; of objects that are not found by name in a module nothing is known."""
    module, _, defined = origin.partition(":")
    if all(part.isidentifier() for part in (*module.split("."), defined)) and module != "__main__":
        return f"from {module} import {defined} as {name}"
    return f"{name}: Any"
