"""The loops of readers that Numba compiles, where there is one that does."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..core.extension.compiled import is_wanted, switch_off, warn_unkept
from ..core.storage.cache_folder import home_folder
from ..core.storage.trusted import Untrusted, open_trusted, require_trusted, warn_of

WITHOUT = "Loops of readers that are there are passed over, and compiled anew"
"""What becomes of what Numba has kept in a folder that is not trusted."""


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


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: Numba compiles the function, and keeps what it makes where nobody else can write, if there is such a place.

    Numba loads whatever is in its folder, pickles among it.

    Args:
        options: Numba's.
    """
    from numba import njit
    from numba.core.caching import NullCache

    def compile_lazily(function: Callable[..., Any]) -> Any:
        made = njit(nogil=True, **options)(function)
        if os.environ.get("NUMBA_CACHE_DIR") or home_folder() is not None:
            try:
                made.enable_caching()
            except RuntimeError:
                warn_unkept("Numba finds no folder that it can write to")
            else:
                made._cache = _Kept(made._cache) if _is_trusted(made.stats.cache_path) else NullCache()
        return made

    return compile_lazily


class _Kept:
    """What Numba has kept of a function; where that is damaged the function is compiled anew.

    Args:
        kept: Numba's.
    """

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept, name)

    def load_overload(self, *what: Any) -> Any:
        try:
            return self._kept.load_overload(*what)
        except Exception:  # whatever a damaged pickle may lead to
            with suppress(Exception):
                self._kept.flush()
            return None

    def save_overload(self, *what: Any) -> None:
        try:
            self._kept.save_overload(*what)
        except OSError as error:
            warn_unkept(f"{self._kept.cache_path}: {error.strerror or error}")


@cache
def _is_trusted(place: str) -> bool:
    """Whether nobody else can have written what is in a folder of Numba's; warns where somebody can."""
    folder, beside = Path(place), Path(__file__)
    if not (folder.is_absolute() or os.environ.get("NUMBA_CACHE_DIR")):
        return False  # another folder in each: what is there has come with other files
    try:
        require_trusted(folder, beside, alone=True)
        for file in folder.glob("*.nb[ic]"):
            open_trusted(file, beside).close()
    except Untrusted as error:
        warn_of(error.place, error.why, WITHOUT)
        return False
    except OSError:
        return False
    return True
