"""Tracebacks of errors that explain a mistake end at the user's line.

Errors that we raise say what is wrong themselves, so frames of ours are left out of their tracebacks where a public function is left.
Whatever is raised elsewhere, or by accident, keeps all frames.  So do all errors with ``CNTK_FULL_TRACEBACKS=1`` in the environment, with
:func:`cntk.debugging.set_full_tracebacks`, and in checked mode.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dis import opmap
from types import FrameType, TracebackType
from typing import Any, TypeVar

from .environment import switch_in
from .switches import Switch, checked_mode
from .user_frame import is_ours

F = TypeVar("F", bound=Callable[..., Any])

full_tracebacks = Switch("full_tracebacks", switch_in("CNTK_FULL_TRACEBACKS", False))
"""Whether errors keep all frames."""


def set_full_tracebacks(enable: bool) -> None:
    """Keep all frames in the tracebacks of errors from now on, or leave out those of the package again where an error explains a mistake.

    ``CNTK_FULL_TRACEBACKS=1`` in the environment keeps them from the start, and checked mode keeps them, too.

    Args:
        enable: whether to keep them.

    >>> C.debugging.set_full_tracebacks(True)
    >>> C.debugging.set_full_tracebacks(False)
    """
    full_tracebacks.value = bool(enable)


def end_at_user(error: Exception, is_explained: bool = False) -> None:
    """Leave our frames out of an error's traceback, if it is one that explains a mistake.

    A public function calls it before it is left by ``raise`` without an argument, which adds no frame.

    Args:
        error: the error.
        is_explained: whether it is known to explain itself; otherwise it does if we have raised it.
    """
    if full_tracebacks.value or checked_mode.value:
        return
    _shorten(error, is_explained)
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        _shorten(cause)
        chain.append(cause)


def _shorten(error: BaseException, is_explained: bool = False) -> None:
    frames = []
    found = error.__traceback__
    while found is not None:
        frames.append(found)
        found = found.tb_next
    if not (is_explained or _EXPLAINED in error.__dict__ or (frames and _is_ours(frames[-1].tb_frame) and is_raised(frames[-1]))):
        return
    error.__dict__[_EXPLAINED] = True
    left: TracebackType | None = None
    for one in reversed(frames):
        if not _is_hidden(one.tb_frame):
            left = TracebackType(left, one.tb_frame, one.tb_lasti, one.tb_lineno)
    error.__traceback__ = left


def answers(function: F) -> F:
    """Decorator for a public function: errors that explain a mistake end at the line that calls it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            end_at_user(error)
            raise

    return call  # type: ignore[return-value]


_EXPLAINED = "_cntk_explained"
"""Marks errors whose tracebacks have been shortened, of which an outer function of ours sees its own frames alone."""


def is_raised(last: TracebackType) -> bool:
    """Whether the innermost entry of a traceback is a ``raise``, and not an operation that failed."""
    return last.tb_frame.f_code.co_code[last.tb_lasti] == opmap["RAISE_VARARGS"]


def _is_ours(frame: FrameType) -> bool:
    return is_ours(frame.f_globals.get("__name__", ""))


def _is_hidden(frame: FrameType) -> bool:
    """Whether a frame is ours, or of Python's library between ours and the user's."""
    return _is_ours(frame) or frame.f_globals.get("__name__", "").partition(".")[0] in sys.stdlib_module_names
