"""Threads on processors of their own.

Linux may wake a thread where it ran last although the first thread of the same work runs there and another processor is idle, as in virtual
machines whose processors are not known to share a cache.  Both then take turns, for seconds.  So a thread that finds the first one on its
processor several times running moves to another.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import llvmlite.binding as llvm

MEETINGS = 4
"""How often running a thread finds the first one on its processor before it moves: another caller's work may have been there."""

OPAQUE_POINTERS = 17
"""The version of LLVM from which on pointers have no types."""

SYSTEM = "sched_getcpu", "sched_getaffinity", "sched_setaffinity"

CODE = """
@processor_of_first = global i32 -1
@meetings = global i32 0

declare i32 @cntk_omp_get_thread_num()
declare i32 @cntk_sched_getcpu()
declare i32 @cntk_sched_getaffinity(i32, i64, ptr)
declare i32 @cntk_sched_setaffinity(i32, i64, ptr)

define i32 @thread() {{
  %thread = call i32 @cntk_omp_get_thread_num()
  %here = call i32 @cntk_sched_getcpu()
  %is_first = icmp eq i32 %thread, 0
  br i1 %is_first, label %note, label %compare
note:
  store atomic i32 %here, ptr @processor_of_first monotonic, align 4
  ret i32 %thread
compare:
  %there = load atomic i32, ptr @processor_of_first monotonic, align 4
  %is_met = icmp eq i32 %here, %there
  br i1 %is_met, label %count, label %forget
forget:
  store atomic i32 0, ptr @meetings monotonic, align 4
  ret i32 %thread
count:
  %before = atomicrmw add ptr @meetings, i32 1 monotonic
  %is_often = icmp sge i32 %before, {meetings}
  br i1 %is_often, label %move, label %stay
stay:
  ret i32 %thread
move:
  store atomic i32 0, ptr @meetings monotonic, align 4
  call void @leave(i32 %here)
  ret i32 %thread
}}

; Without this processor among those that it may run on, the thread is moved at once.
define void @leave(i32 %here) {{
  %all = alloca [128 x i8], align 8
  %others = alloca [128 x i8], align 8
  %failed = call i32 @cntk_sched_getaffinity(i32 0, i64 128, ptr %all)
  %is_known = icmp sge i32 %failed, 0
  %is_small = icmp ult i32 %here, 1024
  %may = and i1 %is_known, %is_small
  br i1 %may, label %move, label %stay
move:
  %set = load [128 x i8], ptr %all, align 8
  store [128 x i8] %set, ptr %others, align 8
  %byte = lshr i32 %here, 3
  %place = getelementptr i8, ptr %others, i32 %byte
  %bits = load i8, ptr %place
  %low = and i32 %here, 7
  %shift = trunc i32 %low to i8
  %bit = shl i8 1, %shift
  %rest = xor i8 %bits, %bit
  store i8 %rest, ptr %place
  %ignored = call i32 @cntk_sched_setaffinity(i32 0, i64 128, ptr %others)
  %ignored.2 = call i32 @cntk_sched_setaffinity(i32 0, i64 128, ptr %all)
  br label %stay
stay:
  ret void
}}
"""
"""The number of the thread that calls, as OpenMP tells it."""


def thread_number(openmp: Any) -> Any:
    """The function that says which thread of a region calls, and keeps it away from the first one where the system lets it.

    Args:
        openmp: the library.
    """
    system = ctypes.CDLL(None)
    functions = {name: getattr(system, name, None) for name in SYSTEM}
    if None in functions.values() or llvm.llvm_version_info[0] < OPAQUE_POINTERS:
        return openmp.omp_get_thread_num
    for name, function in (*functions.items(), ("omp_get_thread_num", openmp.omp_get_thread_num)):
        llvm.add_symbol(f"cntk_{name}", ctypes.cast(function, ctypes.c_void_p).value)
    return ctypes.CFUNCTYPE(ctypes.c_int)(engine_of(CODE.format(meetings=MEETINGS)).get_function_address("thread"))


@cache
def engine_of(code: str) -> Any:
    """The code, compiled in the quickest way, for there is nothing to optimise; it is kept as long as the process runs."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(code), target)
    engine.finalize_object()
    return engine
