"""The compiled loops of readers, if they can be used."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from ..core.extension.compiled import Unusable, switch_off
from ..core.machine import self_check


@cache
def loops(module: str) -> Any:
    """A module of compiled loops, after a trial; None if they are switched off, there is no machine code for them, or it does not run.

    Args:
        module: its name in this package; its function ``try_out`` calls the loops with little data.
    """
    if not self_check.are_usable():
        return None
    try:
        found = import_module(f".{module}", __package__)
        found.try_out()
    except Unusable:
        return None
    except Exception as error:  # other versions of Numba may raise anything
        switch_off(f"compiled loops of readers ({module})", f"{type(error).__name__}: {' '.join(str(error).split()):.200}")
        return None
    return found
