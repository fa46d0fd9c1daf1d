"""NVIDIA's libraries: where they are looked for, which versions will do, and what is said where they are missing or fail."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from standin import nvidia
from standin.library import Refused, StandIn, Version

from cntk.backends.cupy import libraries
from cntk.backends.cupy.libraries import CUBLASLT, CUDNN, NCCL, Loaded, Missing


@pytest.fixture(autouse=True)
def nothing_is_known() -> None:
    libraries._attempt.cache_clear()


@pytest.fixture
def nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    monkeypatch.setattr(ctypes, "CDLL", _refuse)


def _refuse(path: str) -> Any:
    raise OSError(f"{path}: cannot open shared object file")


def library(version: int) -> Any:
    return SimpleNamespace(cublasLtGetVersion=Version(version), cublasLtGetStatusName=lambda status: b"BROKEN")


@pytest.mark.usefixtures("nothing_is_installed")
def test_what_is_missing_says_what_to_install() -> None:
    for _ in range(2):
        with pytest.raises(
            Missing, match=r"libcudnn\.so\.9 cannot be used: libcudnn\.so\.9: cannot open .*: pip install nvidia-cudnn-cu13"
        ):
            libraries.load(CUDNN)


@pytest.mark.usefixtures("nothing_is_installed")
@pytest.mark.parametrize("folder", ["cu13/lib/libcublasLt.so.13", "cublas/lib/libcublasLt.so.12"])
def test_libraries_are_found_where_their_packages_have_them(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "nvidia" / folder
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(ctypes, "CDLL", lambda path: library(130500) if path == str(file) else _refuse(path))
    found = libraries.load(CUBLASLT)
    assert (found.path, found.version) == (str(file), 130500)
    assert libraries.load(CUBLASLT) is found


@pytest.mark.usefixtures("nothing_is_installed")
def test_pathfinder_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pathfinder = ModuleType("cuda.pathfinder")
    pathfinder.load_nvidia_dynamic_lib = lambda name: SimpleNamespace(abs_path=f"/found/{name}")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", pathfinder)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: library(130500) if path == "/found/cublasLt" else _refuse(path))
    assert libraries.load(CUBLASLT).path == "/found/cublasLt"


@pytest.mark.usefixtures("nothing_is_installed")
@pytest.mark.parametrize("version", [110300, 140000])
def test_other_versions_will_not_do(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda path: library(version))
    with pytest.raises(Missing, match=rf"has version {version // 10000}\.\d\.0; one from 12\.0\.0 on and before 14\.0\.0 is needed"):
        libraries.load(CUBLASLT)


def test_a_version_that_is_written_where_it_is_told_to() -> None:
    def ask(target: Any) -> int:
        target._obj.value = 22707
        return 0

    assert Loaded(NCCL, SimpleNamespace(ncclGetVersion=ask), "libnccl.so.2").version == 22707


class Failing(StandIn):
    """A library with a function that fails with the status it is given."""

    def __init__(self) -> None:
        self.cublasLtGetVersion = Version(130500)
        self.cublasLtGetStatusName = lambda status: {7: b"INVALID"}.get(status)
        super().__init__({"fail": (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)})

    def on_fail(self, status: int, target: Any, array: Any) -> None:
        if status:
            raise Refused(status)


def test_a_status_that_is_not_success_is_an_error() -> None:
    call = Loaded(CUBLASLT, Failing(), "somewhere").function("fail", (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p))
    call(0, None, None)
    target, array = ctypes.c_float(1.5), (ctypes.c_int * 2)(3, 4)
    with pytest.raises(RuntimeError, match=r"^fail failed with INVALID \(7\) when given \(7, 1\.5, \[3, 4\]\)$"):
        call(7, ctypes.byref(target), array)
    with pytest.raises(RuntimeError, match=r"^fail failed with a status without a name \(8\)"):
        call(8, None, None)


def test_functions_that_a_version_lacks() -> None:
    with pytest.raises(Missing, match=r"somewhere, version 13\.5\.0, has no function new: pip install --upgrade nvidia-cublas"):
        Loaded(CUBLASLT, Failing(), "somewhere").function("new", ())


def test_a_whole_process_may_have_standins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "load", libraries.load)
    nvidia.install()
    assert [libraries.load(library).path for library in (CUBLASLT, CUDNN)] == ["standin/cublasLt", "standin/cudnn"]
    with pytest.raises(Missing, match="there is no nccl"):
        libraries.load(NCCL)
