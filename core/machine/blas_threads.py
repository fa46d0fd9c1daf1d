"""NumPy's BLAS on the threads that share loops.

OpenBLAS has threads of its own, which spin for up to a tenth of a second after each product and keep those of OpenMP from the processors
meanwhile.  But it lets others run the jobs that a product is divided into: here a parallel region of OpenMP does.  Results do not depend on
which threads run the jobs.
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
from .blas import PTHREADS, Blas, find

THREADS = "products on the threads of compiled loops"
"""What :func:`~cntk.core.extension.compiled.switch_off` calls them."""

SIDE = 256
"""Rows and columns of a product that the BLAS shares between its threads."""

QUIET_LOOKS, LOOKS, LOOK_MICROSECONDS = 3, 2000, 250
"""A process is forked when so many looks, one after another, have found no product under way, or after so many, half a second."""

OPAQUE_POINTERS = 17
"""The version of LLVM from which on pointers have no types."""

CODE = """
%jobs = type {{ptr, i32, i64, ptr, i32, i1}}  ; what to call, number of jobs, size of one, the first, an option, whether they ran

@busy = global ptr null
@inside = global i32 0  ; callers that run jobs, or wait for their turn

declare void @cntk_omp_parallel(ptr, ptr, i32, i32)
declare i32 @cntk_omp_thread()
declare i32 @cntk_omp_team()
declare void @cntk_omp_lock(ptr)
declare void @cntk_omp_unlock(ptr)
declare i32 @cntk_blas_threads()
declare void @cntk_blas_set_callback(ptr)
declare i32 @cntk_blas_run(i64, ptr)

; A thread's part of the region.  Jobs wait for one another, so none may begin where there are fewer threads, as in a nested region.
define void @turn(ptr %jobs) {{
  %thread = call i32 @cntk_omp_thread()
  %team = call i32 @cntk_omp_team()
  %number_at = getelementptr %jobs, ptr %jobs, i32 0, i32 1
  %number = load i32, ptr %number_at
  %are_enough = icmp sge i32 %team, %number
  %has_job = icmp slt i32 %thread, %number
  %begins = and i1 %are_enough, %has_job
  br i1 %begins, label %run, label %end
run:
  %call = load ptr, ptr %jobs
  %size_at = getelementptr %jobs, ptr %jobs, i32 0, i32 2
  %size = load i64, ptr %size_at
  %first_at = getelementptr %jobs, ptr %jobs, i32 0, i32 3
  %first = load ptr, ptr %first_at
  %option_at = getelementptr %jobs, ptr %jobs, i32 0, i32 4
  %option = load i32, ptr %option_at
  %index = sext i32 %thread to i64
  %offset = mul i64 %index, %size
  %job = getelementptr i8, ptr %first, i64 %offset
  %place = add i32 %thread, {places}
  call void %call(i32 %place, ptr %job, i32 %option)
  %is_first = icmp eq i32 %thread, 0
  br i1 %is_first, label %note, label %end
note:
  %done_at = getelementptr %jobs, ptr %jobs, i32 0, i32 5
  store i1 true, ptr %done_at
  br label %end
end:
  ret void
}}

; Products of several callers take turns, since jobs of a number have one memory.  Regions have as many threads as those of loops, because
; OpenMP ends the threads that a smaller region has no use for.  More jobs than there are places for, as there are where the BLAS is told
; later to use more threads, go back to it.
define void @callback(i32 %waits, ptr %call, i32 %number, i64 %size, ptr %first, i32 %option) {{
  %jobs = alloca %jobs
  %parts.0 = insertvalue %jobs zeroinitializer, ptr %call, 0
  %parts.1 = insertvalue %jobs %parts.0, i32 %number, 1
  %parts.2 = insertvalue %jobs %parts.1, i64 %size, 2
  %parts.3 = insertvalue %jobs %parts.2, ptr %first, 3
  %parts.4 = insertvalue %jobs %parts.3, i32 %option, 4
  store %jobs %parts.4, ptr %jobs
  %threads = call i32 @cntk_blas_threads()
  %is_more = icmp sgt i32 %threads, %number
  %team = select i1 %is_more, i32 %threads, i32 %number
  %before = atomicrmw add ptr @inside, i32 1 seq_cst
  call void @cntk_omp_lock(ptr @busy)
  %fit = icmp sle i32 %number, {places}
  br i1 %fit, label %share, label %give_back
share:
  call void @cntk_omp_parallel(ptr @turn, ptr %jobs, i32 %team, i32 0)
  %done_at = getelementptr %jobs, ptr %jobs, i32 0, i32 5
  %done = load i1, ptr %done_at
  br i1 %done, label %end, label %give_back
give_back:
  %jobs_left = sext i32 %number to i64
  call void @cntk_blas_set_callback(ptr null)
  call i32 @cntk_blas_run(i64 %jobs_left, ptr %first)
  call void @cntk_blas_set_callback(ptr @callback)
  br label %end
end:
  call void @cntk_omp_unlock(ptr @busy)
  %after = atomicrmw sub ptr @inside, i32 1 seq_cst
  ret void
}}
"""
"""The callback.  Jobs have other places in the BLAS's tables than its own threads, which would otherwise take them for theirs."""


def can_share_threads() -> bool:
    """Whether NumPy's BLAS is one that lets others run its jobs."""
    library = find()
    return library is not None and library.function("openblas_set_threads_callback_function") is not None


@lru_cache(maxsize=1)
def share_threads(name: str) -> bool:
    """Let NumPy's BLAS run its jobs on OpenMP's threads, in this process but not in processes forked from it.

    Args:
        name: the file of GNU's OpenMP library.

    Returns:
        whether it does; False if the BLAS is not an OpenBLAS with threads of its own and a callback for them, or there is another OpenMP.
    """
    try:
        openmp = ctypes.CDLL(name)
    except OSError:
        return False
    library = find()
    functions = None if library is None else _functions(library, openmp)
    if library is None or functions is None or llvm.llvm_version_info[0] < OPAQUE_POINTERS:
        return False
    places = _most_threads(library) // 2
    if library.get_threads() > places:
        return False
    for name, function in functions.items():
        llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    engine = _engine(CODE.format(places=places))
    set_callback = functions["cntk_blas_set_callback"]
    callback, busy = ctypes.c_void_p(engine.get_function_address("callback")), ctypes.c_void_p(engine.get_global_value_address("busy"))
    inside = ctypes.c_int32.from_address(engine.get_global_value_address("inside"))
    if hasattr(os, "register_at_fork"):
        _divide_at_fork(library, openmp, set_callback, busy, inside)
    before = _product()
    set_callback(callback)
    if not np.array_equal(_product(), before):
        set_callback(None)
        switch_off(THREADS, "NumPy's OpenBLAS multiplies wrongly on the threads of compiled loops, and keeps its own")
        return False
    return True


def _divide_at_fork(library: Blas, openmp: Any, set_callback: Any, busy: Any, inside: Any) -> None:
    """Let processes be forked between products, and leave the BLAS's own threads to them.

    The BLAS frees the memory of jobs before its process is forked, and its locks stay closed in the child where a product was under way.  A
    thread that forks keeps Python's lock while it waits, so that nobody begins another product; those under way end without it.  Where a
    product takes longer than it waits, the child multiplies on one thread, for which the BLAS locks nothing.
    """
    calls = (ctypes.cast(call, ctypes.c_void_p).value or 0 for call in (openmp.GOMP_critical_name_start, openmp.GOMP_critical_name_end))
    lock, unlock = (ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(call) for call in calls)
    sleep = ctypes.PyDLL(None).usleep

    def wait() -> None:
        with compiling:  # which may take seconds, in which others multiply
            pass
        quiet, looks = 0, 0
        while quiet < QUIET_LOOKS and looks < LOOKS and threading.active_count() > 1:
            sleep(LOOK_MICROSECONDS)
            quiet, looks = 0 if inside.value else quiet + 1, looks + 1
        lock(busy)

    def leave_to_child() -> None:
        set_callback(None)
        unlock(busy)
        if inside.value:
            library.function("openblas_set_num_threads")(1)
            inside.value = 0

    os.register_at_fork(before=wait, after_in_parent=partial(unlock, busy), after_in_child=leave_to_child)


def _product() -> Any:
    """A product of whole numbers, large enough to be shared, which is the same in whatever order terms are added."""
    numbers = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE) % 7
    return numbers @ numbers


def _functions(library: Blas, openmp: Any) -> dict[str, Any] | None:
    """The functions that the code calls, by their names in it; None if one is missing."""
    parallel = library.function("openblas_get_parallel")
    if parallel is None or parallel() != PTHREADS:
        return None
    functions = {
        "cntk_omp_parallel": getattr(openmp, "GOMP_parallel", None),
        "cntk_omp_thread": getattr(openmp, "omp_get_thread_num", None),
        "cntk_omp_team": getattr(openmp, "omp_get_num_threads", None),
        "cntk_omp_lock": getattr(openmp, "GOMP_critical_name_start", None),
        "cntk_omp_unlock": getattr(openmp, "GOMP_critical_name_end", None),
        "cntk_blas_threads": library.get_threads,
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


@lru_cache(maxsize=1)
def _engine(code: str) -> Any:
    """The code, compiled without optimisation; it stays loaded as long as the process runs."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(code), target)
    engine.finalize_object()
    return engine
