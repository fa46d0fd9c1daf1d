"""Evaluation on a machine that has no machine code yet: NumPy serves it while another process compiles the loops.

Training, and functions that are bound, wait for the loops instead: NumPy rounds differently, and which steps it served would follow from
the time that compiling takes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from typing import Any

from ..common.environment import switch_in
from ..common.threads import processors
from ..extension.compiled import compiling
from .numba_version import why_not

SWITCH = "CNTK_WAIT_FOR_LOOPS"
"""The environment variable that lets evaluation wait for loops as well, if it is 1."""

MOST = 4
"""Processes that compile beside the program at most; each takes 200 MB."""

NICENESS = 10
"""Of these processes: the program goes first."""


class _Caller(threading.local):
    evaluations = 0


class FirstCalls:
    """Who serves evaluations; each is a ``with`` block, entered as often as one is within another.

    Attributes:
        version: changes when loops take over from NumPy, so that what was bound to NumPy is bound anew.
    """

    def __init__(self) -> None:
        self.version = 0
        self._caller = _Caller()
        self._is_decided = False
        self._compiler: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> None:
        self._caller.evaluations += 1
        compiler = self._compiler
        if compiler is not None and compiler.poll() is not None:
            with compiling:
                if self._compiler is compiler:
                    self._compiler = None
                    self.version += 1

    def __exit__(self, *_: Any) -> None:
        self._caller.evaluations -= 1

    def are_numpys(self) -> bool:
        """Whether NumPy serves the call at hand; the first time this may start a process that compiles."""
        if not self._caller.evaluations:
            return False
        if not self._is_decided:
            with compiling:
                if not self._is_decided:
                    self._compiler = _compile_beside() if _is_code_missing() else None
                    self._is_decided = True
        return self._compiler is not None


def _is_code_missing() -> bool:
    """Whether loops have yet to be compiled on this machine, another process can do so, and what it compiles is kept."""
    has_no_interpreter = not sys.executable or getattr(sys, "frozen", False)
    if switch_in(SWITCH, False) or has_no_interpreter or why_not() or find_spec("llvmlite") is None:
        return False
    from . import machine_code

    return not machine_code.is_complete() and machine_code.folder_to_keep() is not None


def _compile_beside() -> subprocess.Popen[bytes]:
    """A process that compiles all loops, and ends with that and not with this process."""
    count = max(1, min(MOST, processors() // 2))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "cntk", "compile", "--processes", str(count)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
    return process


first_calls = FirstCalls()
