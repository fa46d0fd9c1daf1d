"""Watches a reader: what it raises, the memory and time it takes, and that it runs, imports and writes nothing."""

from __future__ import annotations

import re
import signal
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

SECONDS = 5.0
"""That a reader may take for one file."""
BYTES, TIMES = 16 * 2**20, 50
"""Memory that a reader may take for one file: so much, and so many times the size of the file."""
FORBIDDEN = re.compile(r"import|exec|compile|os\.|shutil\.|subprocess\.|socket\.|ctypes\.|pickle\.|winreg\.|pty\.|code\.|tempfile\.")
"""Audit events of what no reader does."""
HARMLESS = ("os.listdir", "os.scandir", "os.getxattr")
PLACE = re.compile(r"byte \d+|node|value|output|attribute|variable|function|model|tensor|dictionary|the file|state|version|array")
"""What a message has that says where."""

_watching = False
_seen: list[str] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if writes or (FORBIDDEN.match(event) and event not in HARMLESS):
        _seen.append(f"{event}{arguments!r:.200}")


_hooked = False


class Outcome(NamedTuple):
    """What became of a file.

    Attributes:
        error: what the reader raised, or None.
        seconds: that it took.
        wrong: what it should not have done; empty if all is well.
    """

    error: BaseException | None
    seconds: float
    wrong: str


def watched(read: Callable[[], Any], source: str, size: int, memory: bool, documented: tuple[type[Exception], ...]) -> Outcome:
    """Read a file of *size* bytes that errors call *source*; *memory* tells whether to measure what memory it takes."""
    global _watching, _hooked
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked = True
    _seen.clear()
    error: BaseException | None = None
    if memory:
        tracemalloc.start()
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    begin, _watching = time.perf_counter(), True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read()
    except BaseException as raised:
        error = raised
    finally:
        _watching = False
        seconds = time.perf_counter() - begin
        signal.setitimer(signal.ITIMER_REAL, 0)
        peak = tracemalloc.get_traced_memory()[1] if memory else 0
        tracemalloc.stop()
    if isinstance(error, KeyboardInterrupt):
        raise error
    return Outcome(error, seconds, _complaint(error, peak, size, source, documented))


def _complaint(error: BaseException | None, peak: int, size: int, source: str, documented: tuple[type[Exception], ...]) -> str:
    if _seen:
        return f"it did what no reader does: {_seen[0]}"
    if peak > BYTES + TIMES * size:
        return f"it took {peak / 2**20:.0f} MiB for {size} bytes"
    if error is None:
        return ""
    if not isinstance(error, documented) or isinstance(error, RecursionError):
        return f"it raised {type(error).__name__}: {error!s:.300}"
    if source not in str(error):
        return f"the message does not name the file: {error!s:.300}"
    return "" if PLACE.search(str(error)) else f"the message names no place: {error!s:.300}"


class TooLong(BaseException):
    """Raised in a reader that does not come to an end."""


def _too_long(signum: int, frame: Any) -> None:
    raise TooLong(f"{SECONDS} seconds")
