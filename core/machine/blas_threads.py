"""NumPy's BLAS on the threads that share loops.

OpenBLAS has threads of its own, which spin for up to a tenth of a second after each product and keep others from the processors meanwhile.
But it lets others run the jobs that a product is divided into: here those of the pool do.  Results do not depend on which threads run the
jobs.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from functools import lru_cache, partial
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from ..extension.compiled import compiling, switch_off
from .assembly import assembled
from .blas import PTHREADS, Blas, find

THREADS = "products on the threads of compiled loops"
"""What :func:`~cntk.core.extension.compiled.switch_off` calls them."""

SIDE = 256
"""Rows and columns of a product that the BLAS shares between its threads."""

QUIET_LOOKS, LOOKS, LOOK_MICROSECONDS = 3, 2000, 250
"""A process is forked when so many looks, one after another, have found no product under way, or after so many, half a second."""

CODE = """
%jobs = type {{ptr, i64, ptr, i32}}  ; what to call, the size of a job, the first, an option

@inside = global i32 0  ; callers that run jobs, or wait for their turn

declare i32 @cntk_number()
declare i1 @cntk_is_inside()
declare void @cntk_share_in_turn(ptr, ptr, i32, i32)
declare void @cntk_blas_set_callback(ptr)
declare i32 @cntk_blas_run(i64, ptr)

define void @run_one(ptr %jobs) {{
  %number = call i32 @cntk_number()
  %call = load ptr, ptr %jobs
  %size_at = getelementptr %jobs, ptr %jobs, i32 0, i32 1
  %size = load i64, ptr %size_at
  %first_at = getelementptr %jobs, ptr %jobs, i32 0, i32 2
  %first = load ptr, ptr %first_at
  %option_at = getelementptr %jobs, ptr %jobs, i32 0, i32 3
  %option = load i32, ptr %option_at
  %index = sext i32 %number to i64
  %offset = mul i64 %index, %size
  %job = getelementptr i8, ptr %first, i64 %offset
  %place = add i32 %number, {places}
  call void %call(i32 %place, ptr %job, i32 %option)
  ret void
}}

; Products of several callers take turns, since jobs of a number have one memory.  Jobs wait for one another, so that there must be a
; thread for each.  More jobs than that, or than there are places for, as there are where the BLAS is told later to use more threads, go
; back to it, and so do those of a product within a shared call.
define void @callback(i32 %waits, ptr %call, i32 %number, i64 %size, ptr %first, i32 %option) {{
  %jobs = alloca %jobs
  %parts.0 = insertvalue %jobs zeroinitializer, ptr %call, 0
  %parts.1 = insertvalue %jobs %parts.0, i64 %size, 1
  %parts.2 = insertvalue %jobs %parts.1, ptr %first, 2
  %parts.3 = insertvalue %jobs %parts.2, i32 %option, 3
  store %jobs %parts.3, ptr %jobs
  %others = sub i32 %number, 1
  %helpers = load atomic i32, ptr inttoptr (i64 {helpers} to ptr) monotonic, align 4
  %before = atomicrmw add ptr @inside, i32 1 seq_cst
  %fit = icmp sle i32 %number, {places}
  %are_enough = icmp sle i32 %others, %helpers
  %can_share = and i1 %fit, %are_enough
  %is_inside = call i1 @cntk_is_inside()
  %is_outside = xor i1 %is_inside, true
  %shares = and i1 %can_share, %is_outside
  br i1 %shares, label %share, label %give_back
share:
  call void @cntk_share_in_turn(ptr @run_one, ptr %jobs, i32 %number, i32 %others)
  br label %end
give_back:
  %jobs_left = sext i32 %number to i64
  call void @cntk_blas_set_callback(ptr null)
  call i32 @cntk_blas_run(i64 %jobs_left, ptr %first)
  call void @cntk_blas_set_callback(ptr @callback)
  br label %end
end:
  %after = atomicrmw sub ptr @inside, i32 1 seq_cst
  ret void
}}
"""
"""The callback.  Jobs have other places in the BLAS's tables than its own threads, which would otherwise take them for theirs."""


@lru_cache(maxsize=1)
def share_threads(pool: Any) -> bool:
    """Let NumPy's BLAS run its jobs on the threads of a pool, in this process but not in processes forked from it.

    Returns:
        whether it does; False if the BLAS is not an OpenBLAS with threads of its own and a callback for them.
    """
    library = find()
    functions = None if library is None else _functions(library)
    if library is None or functions is None:
        return False
    places = _most_threads(library) // 2
    if library.get_threads() > places:
        return False
    of_pool = {f"cntk_{name}": address for name, address in pool.functions.items()}
    of_blas = {name: ctypes.cast(function, ctypes.c_void_p).value for name, function in functions.items()}
    for name, address in {**of_pool, **of_blas}.items():
        llvm.add_symbol(name, address)
    engine = assembled(CODE.format(places=places, helpers=ctypes.addressof(pool.helpers)))
    set_callback, callback = functions["cntk_blas_set_callback"], ctypes.c_void_p(engine.get_function_address("callback"))
    inside = ctypes.c_int32.from_address(engine.get_global_value_address("inside"))
    if hasattr(os, "register_at_fork"):
        _divide_at_fork(library, set_callback, ctypes.c_void_p(pool.turn), inside)
    before = _product()
    set_callback(callback)
    if not np.array_equal(_product(), before):
        set_callback(None)
        switch_off(THREADS, "NumPy's OpenBLAS multiplies wrongly on the threads of compiled loops, and keeps its own")
        return False
    return True


def _divide_at_fork(library: Blas, set_callback: Any, turn: Any, inside: Any) -> None:
    """Let processes be forked between products, and leave the BLAS's own threads to them.

    The BLAS frees the memory of jobs before its process is forked, and its locks stay closed in the child where a product was under way.  A
    thread that forks keeps Python's lock while it waits, so that nobody begins another product; those under way end without it.  Where a
    product takes longer than it waits, the child multiplies on one thread, for which the BLAS locks nothing.
    """
    system = ctypes.PyDLL(None)
    lock, unlock, sleep = system.pthread_mutex_lock, system.pthread_mutex_unlock, system.usleep

    def wait() -> None:
        with compiling:  # which may take seconds, in which others multiply
            pass
        quiet, looks = 0, 0
        while quiet < QUIET_LOOKS and looks < LOOKS and threading.active_count() > 1:
            sleep(LOOK_MICROSECONDS)
            quiet, looks = 0 if inside.value else quiet + 1, looks + 1
        lock(turn)

    def leave_to_child() -> None:
        set_callback(None)
        unlock(turn)
        if inside.value:
            library.function("openblas_set_num_threads")(1)
            inside.value = 0

    os.register_at_fork(before=wait, after_in_parent=partial(unlock, turn), after_in_child=leave_to_child)


def _product() -> Any:
    """A product of whole numbers, large enough to be shared, which is the same in whatever order terms are added."""
    numbers = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE) % 7
    return numbers @ numbers


def _functions(library: Blas) -> dict[str, Any] | None:
    """The functions of the BLAS that the code calls, by their names in it; None if one is missing."""
    parallel = library.function("openblas_get_parallel")
    if parallel is None or parallel() != PTHREADS:
        return None
    functions = {
        "cntk_blas_set_callback": library.function("openblas_set_threads_callback_function"),
        "cntk_blas_run": getattr(library.library, "exec_blas", None),
    }
    return None if None in functions.values() else functions


def _most_threads(library: Blas) -> int:
    """The maximum number of threads of the BLAS; 0 if it is unknown."""
    describe = library.function("openblas_get_config")
    if describe is None:
        return 0
    describe.restype = ctypes.c_char_p
    found = re.search(rb"MAX_THREADS=(\d+)", describe())
    return int(found[1]) if found else 0
