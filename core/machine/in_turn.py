"""Bound loops that follow one another, called by machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..common.threads import max_threads
from . import assembly

if TYPE_CHECKING:
    from .loops import Native

CODE = """
define i64 @in_turn(ptr %table, i64 %count) {
entry:
  br label %next
next:
  %number = phi i64 [0, %entry], [%following, %went_well]
  %first = mul i64 %number, 3
  %entry_of = getelementptr i64, ptr %table, i64 %first
  %argument_at = getelementptr i64, ptr %entry_of, i64 1
  %row_at = getelementptr i64, ptr %entry_of, i64 2
  %function = load ptr, ptr %entry_of
  %argument = load ptr, ptr %argument_at
  %row = load ptr, ptr %row_at
  call void %function(ptr %argument)
  %state = load i8, ptr %row
  %has_failed = icmp eq i8 %state, 1
  br i1 %has_failed, label %failed, label %went_well
failed:
  store i8 0, ptr %row
  ret i64 %number
went_well:
  %following = add i64 %number, 1
  %more = icmp slt i64 %following, %count
  br i1 %more, label %next, label %done
done:
  ret i64 -1
}
"""
"""Calls functions with an argument each, as a table says, until the first byte of a row says that one has failed."""


def in_turn(natives: Sequence[Native]) -> Callable[[], int] | None:
    """A function that calls bound loops one after another, and tells which has failed, -1 for none; those after it are not called.

    None where such code cannot be made.
    """
    if assembly.why_not():
        return None
    run, count, known = _function(), len(natives), 0
    table: Any = None
    ways: tuple[Any, ...] = ()

    def call() -> int:
        nonlocal known, table, ways
        if known != max_threads():
            known, ways = max_threads(), tuple([native.way() for native in natives])  # the table refers to these by their addresses
            table = _table(natives, ways)
        number: int = run(table, count)
        return number

    return call


def _table(natives: Sequence[Native], ways: Sequence[Any]) -> Any:
    """The addresses of functions, of what they are called with, and of rows."""
    words: list[int] = []
    for native, (function, argument) in zip(natives, ways, strict=True):
        words += ctypes.cast(function, ctypes.c_void_p).value or 0, ctypes.addressof(argument), ctypes.addressof(native.row)
    return (ctypes.c_int64 * len(words))(*words)


@lru_cache(maxsize=1)
def _function() -> Any:
    address = assembly.assembled(CODE).get_function_address("in_turn")
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(address)
