"""A stand-in for CuPy over NumPy, with which the GPU backend is tested on machines without a GPU.

It implements the part of CuPy's API that the project uses, and raises where CuPy raises.  ``CNTK_TEST_BACKEND=standin`` runs tests on it;
``CNTK_STANDIN`` sets its strictness, see :mod:`standin.rules`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cntk.backends.cupy.backend import CupyBackend
from cntk.core.extension import plugins

from . import module, rules

LISTS = Path(__file__).parent


def install() -> None:
    """Install the stand-in as the module ``cupy`` of this process; from strictness 2 on, watch the operators of the backend."""
    made = module.make()
    sys.modules["cupy"] = made
    sys.modules["cupy.cuda"] = made.cuda
    from . import nvidia
    from .watch import Watch, prepared, watch_engines

    nvidia.install()
    if rules.STRICTNESS > 1:
        CupyBackend.passes = (Watch(),)  # type: ignore[attr-defined]
        watch_engines()
    for name in ("empty", "on_device"):  # memory that is kept, and index arrays, which come with a minibatch
        setattr(CupyBackend, name, prepared(getattr(CupyBackend, name)))


def expect_refusals(items: list[pytest.Item]) -> None:
    """Mark the tests listed for this strictness as expected to fail, because an operator does something that is refused.

    Operators with kernels have lists of their own, in which each line that begins with ``#`` is the reason for the tests that follow.
    """
    if rules.STRICTNESS == 1:
        return
    kind = "_kernels" if ("Chain", CupyBackend.name) in plugins.engines else ""
    listed = set((LISTS / f"refused_{rules.STRICTNESS}{kind}.txt").read_text("utf-8").splitlines())
    for item in items:
        if item.name in listed:
            reason = f"an operator does what strictness {rules.STRICTNESS} refuses"
            item.add_marker(pytest.mark.xfail(raises=(rules.Refused, AssertionError), strict=True, reason=reason))
