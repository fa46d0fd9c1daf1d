"""Whether this program is a notebook."""

from __future__ import annotations

import sys
from typing import Any


def notebook_shell() -> Any:
    """IPython's shell where it is the kernel of a notebook, else None; IPython is not imported for it."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None
