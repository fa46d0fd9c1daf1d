"""A stand-in for CuPy over NumPy, by which the backend of GPUs is tested where there is none.

It has those of CuPy's names that the project uses, and refuses what CuPy refuses.  ``CNTK_TEST_BACKEND=standin`` runs tests on it;
``CNTK_STANDIN`` says how strict it is, see :mod:`standin.rules`.
"""

from __future__ import annotations

import sys

from . import module


def install() -> None:
    """Be what ``import cupy`` gives in this process."""
    made = module.make()
    sys.modules["cupy"] = made
    sys.modules["cupy.cuda"] = made.cuda
