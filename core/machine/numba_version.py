"""The versions of Numba that compile loops.

The compiler uses internals of Numba, which may change, so versions that it has not been tested with are not used.  Machine code that is
already compiled needs no Numba.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

FIRST, LAST = (0, 62), (0, 68)
"""The versions that it has been tested with."""

COMPILER = f"numba>={FIRST[0]}.{FIRST[1]},<{LAST[0]}.{LAST[1] + 1}"
"""The same versions as a requirement for pip."""


@lru_cache(maxsize=1)
def why_not() -> str:
    """Why loops cannot be compiled by the Numba that is installed; empty where they can."""
    if find_spec("numba") is None:
        return "Numba is not installed"
    try:
        installed = version("numba")
    except PackageNotFoundError:
        installed = "of an unknown version"
    return "" if is_known(installed) else f"Numba {installed} is not known to compile loops; {COMPILER} is"


def is_known(installed: str) -> bool:
    """Whether loops are known to be compiled by a version.

    >>> from cntk.core.machine.numba_version import is_known
    >>> is_known("0.68.1"), is_known("0.61.2"), is_known("1.0rc1")
    (True, False, False)
    """
    found = re.match(r"(\d+)\.(\d+)", installed)
    return found is not None and FIRST <= (int(found[1]), int(found[2])) <= LAST
