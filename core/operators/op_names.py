"""Names of operators, which prints and files show: each belongs to the distribution, or program, that defines it first."""

from __future__ import annotations

from ..extension import plugins

OURS = __name__.partition(".")[0]

_classes: dict[str, type] = {}


def claim(cls: type, op_name: str) -> None:
    """Note that a class is the operator of this name.

    Within a package names may be shared, and a subclass may have its base's.

    Raises:
        ValueError: a class of another package has the name.
    """
    if _package(cls) != OURS:
        _know_built_in_names()
    first = _classes.setdefault(op_name, cls)
    if _package(cls) not in (OURS, _package(first)) and not issubclass(cls, first):
        raise ValueError(f"operator name '{op_name}': {_described(cls)} has the name of {_described(first)}; change its op_name")


def _know_built_in_names() -> None:
    """Import the built-in operators, so that a clash is found where the other one is defined and not in the middle of something else."""
    for name in plugins.ops:
        if plugins.ops.owner(name).partition(":")[0] == plugins.DISTRIBUTION:
            plugins.ops.get(name)


def _package(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def _described(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
