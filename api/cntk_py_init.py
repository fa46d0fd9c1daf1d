"""Checks that CNTK makes of the system before it loads its native engine; there is nothing to check here."""

from __future__ import annotations

import linecache
import os
import platform
import sys
import warnings
from subprocess import call


def cntk_check_distro_info() -> None:
    """Does nothing: any system that Python and NumPy run on is supported.

    >>> from cntk.cntk_py_init import cntk_check_distro_info
    >>> cntk_check_distro_info()
    """


def cntk_check_libs() -> None:
    """Does nothing: ``cntk doctor`` shows which optional packages are installed.

    >>> from cntk.cntk_py_init import cntk_check_libs
    >>> cntk_check_libs()
    """


__all__ = ["call", "cntk_check_distro_info", "cntk_check_libs", "linecache", "os", "platform", "sys", "warnings"]
