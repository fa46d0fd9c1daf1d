"""Code written in LLVM's own language, for what neither Python nor loops can say: threads, and functions that libraries call back."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

OPAQUE_POINTERS = 17
"""The version of LLVM from which on pointers have no types, as in the code here."""


def why_not() -> str:
    """Why such code cannot be used; empty where it can."""
    version = llvm.llvm_version_info[0]
    return "" if version >= OPAQUE_POINTERS else f"LLVM {version} is older than {OPAQUE_POINTERS}; Numba has a newer one from 0.62 on"


@lru_cache
def assembled(code: str) -> Any:
    """The engine that holds some code, compiled; it stays loaded as long as the process runs."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(opt=1, jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(code), target)
    engine.finalize_object()
    return engine
