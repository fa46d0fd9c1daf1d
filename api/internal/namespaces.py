"""Namespaces: modules that show the operators which plugins register with a dotted name, ``layers.x`` as ``cntk.layers.x``."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from cntk.core.common.phrasebook import NAMES, lacking
from cntk.core.common.tracebacks import answers
from cntk.core.extension import plugins


def open_to_plugins(namespace: Iterable[object]) -> None:
    """Let each module of this package that is found among objects show operators, but for those that look them up themselves."""
    for found in list(namespace):
        if isinstance(found, ModuleType) and found.__name__.startswith("cntk.") and not plugins.names_shown(plugins.ops, _prefix(found)):
            _open(found)


def _prefix(module: ModuleType) -> str:
    return f"{module.__name__.removeprefix('cntk.')}."


def _open(module: ModuleType) -> None:
    """Let a module show operators beside what it shows already."""
    namespace, prefix = vars(module), _prefix(module)
    own_getattr, own_dir, own_names = (namespace.get(name) for name in ("__getattr__", "__dir__", "__all__"))

    @answers
    def find(name: str) -> Any:
        if name == "__all__" and (own_names is not None or own_getattr is not None):
            own = own_names if own_names is not None else own_getattr(name)  # type: ignore[misc]
            return [*own, *plugins.names_to_import(plugins.ops, module.__name__, prefix)]
        if prefix + name in plugins.ops:
            return plugins.shown(plugins.ops, prefix + name, module.__name__)
        if own_getattr is not None:
            return own_getattr(name)
        raise lacking(f"module '{module.__name__}' has no attribute '{name}'", NAMES, name)

    def list_names() -> list[str]:
        return sorted({*(vars(module) if own_dir is None else own_dir()), *plugins.names_shown(plugins.ops, prefix)})

    namespace.pop("__all__", None)
    namespace.update(__getattr__=find, __dir__=list_names)
