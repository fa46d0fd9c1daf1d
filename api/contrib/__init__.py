"""Contributions to CNTK.  Of these :mod:`cntk.contrib.netopt.factorization` is here."""

from __future__ import annotations

from cntk.contrib import netopt

__all__ = ["netopt"]


def __getattr__(name: str) -> None:
    if name in ("crosstalk", "crosstalkcaffe", "deeprl"):
        raise AttributeError(f"cntk.contrib.{name} is not part of this package, which has cntk.contrib.netopt.factorization only")
    raise AttributeError(f"module 'cntk.contrib' has no attribute '{name}'")
