"""The loops of readers that Numba compiles, where there is one that does."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ..core.compiled import is_wanted, switch_off


@cache
def loops(module: str) -> Any:
    """A module of compiled loops, tried out; None where they are not wanted, Numba is not installed, or it does not compile them.

    Args:
        module: its name in this package; its function ``try_out`` calls the loops with little data.
    """
    if not is_wanted() or find_spec("numba") is None:
        return None
    try:
        found = import_module(f".{module}", __package__)
        found.try_out()
    except Exception as error:  # whatever another version of Numba may say
        switch_off(f"compiled loops of readers ({module})", f"{type(error).__name__}: {' '.join(str(error).split()):.200}")
        return None
    return found
