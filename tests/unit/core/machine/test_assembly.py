"""Code in LLVM's own language."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
assembly = pytest.importorskip("cntk.core.machine.assembly")

ADD = """
define i32 @add(i32 %a, i32 %b) {
  %sum = add i32 %a, %b
  ret i32 %sum
}
"""


def test_code_is_compiled_once_and_called() -> None:
    if assembly.why_not():
        pytest.skip(assembly.why_not())
    engine = assembly.assembled(ADD)
    add = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)(engine.get_function_address("add"))
    assert add(20, 22) == 42
    assert assembly.assembled(ADD) is engine


OLDER = "LLVM 15 is older than 17; Numba has a newer one from 0.62 on"


@pytest.mark.parametrize(("version", "told"), [((15, 0, 7), OLDER), ((20, 1, 8), "")])
def test_older_versions_of_llvm_are_told(monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], told: str) -> None:
    monkeypatch.setattr(assembly, "llvm", SimpleNamespace(llvm_version_info=version))
    assert assembly.why_not() == told
