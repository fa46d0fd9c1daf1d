"""A stand-in for CuPy over NumPy, by which the backend of GPUs is tested where there is none.

It has those of CuPy's names that the project uses, and refuses what CuPy refuses.  ``CNTK_TEST_BACKEND=standin`` runs tests on it;
``CNTK_STANDIN`` says how strict it is, see :mod:`standin.rules`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from . import module, rules

LISTS = Path(__file__).parent


def install() -> None:
    """Be what ``import cupy`` gives in this process, for a backend whose operators are watched where that refuses more."""
    made = module.make()
    sys.modules["cupy"] = made
    sys.modules["cupy.cuda"] = made.cuda
    from cntk.backends.cupy.backend import CupyBackend

    from . import nvidia
    from .watch import Watch, prepared

    nvidia.install()
    if rules.STRICTNESS > 1:
        CupyBackend.passes = (Watch(),)  # type: ignore[attr-defined]
    CupyBackend.empty = prepared(CupyBackend.empty)  # type: ignore[method-assign]


def expect_refusals(items: list[pytest.Item]) -> None:
    """Have those tests fail that the list of this strictness names, because an operator does what is refused, and none else."""
    if rules.STRICTNESS == 1:
        return
    listed = set((LISTS / f"refused_{rules.STRICTNESS}.txt").read_text("utf-8").splitlines())
    for item in items:
        if item.name in listed:
            reason = f"an operator does what strictness {rules.STRICTNESS} refuses"
            item.add_marker(pytest.mark.xfail(raises=(rules.Refused, AssertionError), strict=True, reason=reason))
