"""Names that CNTK's modules show beside their own.

CNTK's modules leak what they import, and programs import it from there: ``from cntk.layers import placeholder``, ``np`` after a star
import.  Each module of this package finds such names when they are asked for (``__getattr__``), lists them (``__dir__``) and brings
them along in star imports (``__all__``), as the tables in :mod:`cntk.compatibility.names` say.  They are there for programs that were
written for CNTK; new ones import a name from the module that offers it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from types import ModuleType
from typing import Any

from cntk.compatibility.names import MODULES, NAMES
from cntk.core.common.tracebacks import answers

OPTIONAL = ("scipy",)
"""Distributions without which this package works; names of one that is not installed are not shown."""

Origin = tuple[str, str]
"""Module that has a name, and the name there; the module itself has no name."""


def origins(module: str) -> dict[str, Origin]:
    """Where the names come from that a module shows beside its own.

    >>> from cntk.compatibility import origins
    >>> origins('cntk.layers')['np'], origins('cntk.layers')['placeholder']
    (('numpy', ''), ('cntk.ops', 'placeholder'))
    """
    found: dict[str, Origin] = {}
    for home, names in NAMES[module].items():
        for entry in names.split():
            name, _, there = entry.partition("=")
            found[name] = (there or name, "") if home == MODULES else (home, there or name)
    return found


def offered(module: ModuleType) -> list[str]:
    """The public names of a module without those that it shows for compatibility only.

    >>> from cntk.compatibility import offered
    >>> 'Dense' in offered(C.layers), 'placeholder' in offered(C.layers), 'placeholder' in dir(C.layers)
    (True, False, True)
    """
    beside = origins(module.__name__) if module.__name__ in NAMES else {}
    return [name for name in module.__all__ if name not in beside]


def complete_modules() -> None:
    """Let every module in the tables that has been imported find its names."""
    for name in NAMES:
        if name in sys.modules:
            complete(sys.modules[name])


def complete(module: ModuleType) -> None:
    """Let a module find the names that it shows beside its own."""
    beside = {name: origin for name, origin in origins(module.__name__).items() if _is_installed(origin[0])}

    @answers
    def find(name: str) -> Any:
        if name in beside:
            home, there = beside[name]
            found = import_module(home)
            return attrgetter(there)(found) if there else found
        if name == "__all__" and own_getattr is not None:
            return [*own_getattr(name), *brought]
        if own_getattr is not None:
            return own_getattr(name)
        raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")

    def list_names() -> list[str]:
        return sorted({*(own_dir() if own_dir is not None else vars(module)), *beside})

    namespace = vars(module)
    own_getattr, own_dir = namespace.get("__getattr__"), namespace.get("__dir__")
    brought = [name for name in beside if not name.startswith("_")]
    namespace.update(__getattr__=find, __dir__=list_names)
    if "__all__" in namespace:
        namespace["__all__"] = [*namespace["__all__"], *brought]


def _is_installed(home: str) -> bool:
    distribution = home.partition(".")[0]
    return distribution not in OPTIONAL or find_spec(distribution) is not None
