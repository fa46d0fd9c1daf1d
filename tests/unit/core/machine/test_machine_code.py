"""Machine code that a package brings along serves the processors that it is for, comes before other code, and is used for nothing else."""

from __future__ import annotations

import ast
import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)

from cntk.backends.fused import sgd
from cntk.commands.compile import PACKAGES
from cntk.core.extension.compiled import warn_not_cached
from cntk.core.machine import code_files, machine_code, precompile, processor
from cntk.core.machine.code_files import Code
from cntk.core.machine.loops import Loop
from cntk.core.storage import trusted

V3, V4 = "x86-64-v3", "x86-64-v4"
PREBUILT, KEPT, COMPILED = (Code(code, ["sqrtf"]) for code in (b"prebuilt", b"kept", b"compiled"))
KINDS = sgd.descend.kinds(False)
DESCEND = sgd.descend.function

Place = Callable[[str], Any]


def features(level: str, *missing: str) -> dict[str, bool]:
    return {name: name not in missing for name in processor.LEVELS[level].split()}


@pytest.mark.parametrize(
    ("has", "level"),
    [
        (features(V4), V4),
        (features(V4) | {"avx512fp16": True}, V4),
        (features(V4, "avx512vl"), V3),
        (features(V3), V3),
        (features(V3, "fma"), None),
        (features(V4, "avx2"), None),
        ({"neon": True}, None),
        ({}, None),
    ],
    ids=["v4", "more", "part of v4", "v3", "part of v3", "v4 without v3", "another system", "unknown"],
)
def test_the_highest_level_is_chosen_that_a_processor_has_as_a_whole(has: dict[str, bool], level: str | None) -> None:
    assert processor.level_of(has) == level


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a package has brought code for a loop, for processors with AVX-512, of which this one is said to be."""
    monkeypatch.setattr(processor, "level", lambda: V4)
    monkeypatch.setattr(machine_code, "_settings", list)
    monkeypatch.setattr(machine_code, "_folders", lambda: [tmp_path / "kept"])
    monkeypatch.setattr(machine_code, "PREBUILT", tmp_path / "prebuilt")
    monkeypatch.setattr(machine_code, "_compiled", lambda *_: PREBUILT)
    machine_code.prebuild(DESCEND, KINDS, tmp_path / "prebuilt")
    monkeypatch.setattr(machine_code, "_compiled", lambda *_: COMPILED)
    return tmp_path


def keep(folder: Path) -> None:
    code_files.keep(folder / "kept", code_files.key_of(DESCEND, KINDS), machine_code._toolchain(), KEPT)


def test_code_that_is_brought_along_comes_first(folder: Path) -> None:
    keep(folder)
    assert machine_code.code_of(DESCEND, KINDS) == PREBUILT


def test_code_for_other_arguments_is_compiled_and_kept(folder: Path) -> None:
    double = sgd.descend.kinds(True)
    assert machine_code.code_of(DESCEND, double) == COMPILED
    assert len(list((folder / "kept").iterdir())) == 1


def test_code_for_another_level_is_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in (V3, None):
        monkeypatch.setattr(processor, "level", lambda level=level: level)
        assert machine_code.code_of(DESCEND, KINDS) == COMPILED
    (folder / "prebuilt" / V3).symlink_to(folder / "prebuilt" / V4)
    monkeypatch.setattr(processor, "level", lambda: V3)
    assert machine_code.code_of(DESCEND, KINDS) == COMPILED


@pytest.mark.parametrize("change", ["source", "system", "objects", "settings"])
def test_code_for_something_else_is_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    keep(folder)
    if change == "source":
        monkeypatch.setattr(code_files, "_source", lambda *_: "another")
    elif change == "system":
        monkeypatch.setattr(machine_code.sys, "platform", "win32")
    elif change == "objects":
        monkeypatch.setattr(machine_code, "_toolchain_of", lambda level: (sys.platform, level, "32"))
    else:
        monkeypatch.setattr(machine_code, "_settings", lambda: ["NUMBA_OPT=1"])
    assert machine_code.code_of(DESCEND, KINDS) == (COMPILED if change == "source" else KEPT)


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "another", "no notes"])
def test_damaged_code_is_passed_over(folder: Path, damage: str) -> None:
    keep(folder)
    (file,) = (folder / "prebuilt" / V4).iterdir()
    code = file.read_bytes()
    changed = code[:-3] + bytes([code[-3] ^ 1]) + code[-2:]
    file.write_bytes({"cut": code[:-1], "empty": b"", "changed": changed, "another": b"[1]\n" + code, "no notes": b"{}\n" + code}[damage])
    assert machine_code.code_of(DESCEND, KINDS) == KEPT


@pytest.mark.parametrize(
    "head",
    [
        b"[" * 100_000,
        b'{"wanted":' * 50_000,
        b"null",
        b"7" * 10_000,
        b"1e999",
        b'"\\ud800"',
        b"\xff\xfe",
        b'{"wanted": 5}',
        b'{"wanted": [1]}',
        b'{"wanted": null}',
        b'{"wanted": {"a": 1}}',
    ],
    ids=lambda head: head[:12].decode(errors="replace"),
)
def test_a_head_of_any_kind_is_passed_over(folder: Path, head: bytes) -> None:
    keep(folder)
    (file,) = (folder / "prebuilt" / V4).iterdir()
    file.write_bytes(head + b"\n" + file.read_bytes().split(b"\n", 1)[1])
    assert machine_code.code_of(DESCEND, KINDS) == KEPT


@pytest.mark.parametrize("field", ["loop", "source", "maker", "wanted", "digest"])
def test_notes_that_have_changed_are_passed_over(folder: Path, field: str) -> None:
    keep(folder)
    (file,) = (folder / "prebuilt" / V4).iterdir()
    head, code = file.read_bytes().split(b"\n", 1)
    notes = json.loads(head)
    for changed in (["abort"], "", None, 7):
        file.write_bytes(json.dumps(notes | {field: changed}).encode() + b"\n" + code)
        assert machine_code.code_of(DESCEND, KINDS) == KEPT


@pytest.mark.skipif(not trusted.TELLS_OWNERS, reason="this system does not tell who owns a file")
@pytest.mark.parametrize("place", ["file", "folder"])
def test_code_that_others_may_have_written_is_passed_over_with_a_warning(folder: Path, place: str) -> None:
    keep(folder)
    (file,) = (folder / "prebuilt" / V4).iterdir()
    found = file if place == "file" else file.parent
    found.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=rf"{found} is not trusted: .* Machine code in that folder is ignored, and compiled again"):
        assert machine_code.code_of(DESCEND, KINDS) == KEPT


def test_where_code_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    own, inside = tmp_path / "own" / "opencntk", code_files.HERE / "__pycache__"
    for given, folders in (("", [inside, own]), (str(tmp_path / "given"), [tmp_path / "given"])):
        monkeypatch.setenv("NUMBA_CACHE_DIR", given)
        assert list(machine_code._folders()) == folders
    if trusted.TELLS_OWNERS:
        (tmp_path / "given").mkdir()
        (tmp_path / "given").chmod(0o777)
        with pytest.warns(RuntimeWarning, match="given is not trusted"):
            assert list(machine_code._folders()) == [own]


def test_functions_that_depend_on_values_of_others_are_compiled(folder: Path) -> None:
    rate = 2

    def descend(w: Any) -> None:
        w[0] -= rate

    assert machine_code.code_of(descend, ["<f4:1:C"]) == COMPILED
    with pytest.raises(ValueError, match="expected a function of a file"):
        machine_code.prebuild(descend, ["<f4:1:C"], folder)


def test_no_code_is_brought_along_that_would_import_numba(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "_compiled", lambda *_: Code(b"", ["sqrt", "NRT_Allocate"]))
    with pytest.raises(RuntimeError, match=r"'descend' wants NRT_Allocate of Numba"):
        machine_code.prebuild(DESCEND, KINDS, folder)


def test_all_loops_have_a_signature() -> None:
    found = {
        f"{package}.{file.stem}:{node.name}"
        for package in PACKAGES
        for file in Path(import_module(package).__path__[0]).glob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and any("loop" in ast.unparse(decorator).lower() for decorator in node.decorator_list)
    }
    listed = precompile.loops(PACKAGES)
    assert set(listed) == found
    assert [name for name, loop in listed.items() if len(loop.kinds(False)) != loop.function.__code__.co_argcount] == []


def test_a_loop_without_a_signature_is_compiled_when_it_is_needed() -> None:
    with pytest.raises(ValueError, match=r"loop 'descend' has no signature"):
        Loop(DESCEND).kinds(False)


def test_code_does_not_depend_on_what_was_compiled_before() -> None:
    from cntk.core.machine.compiler import compiled

    assert compiled(DESCEND, KINDS, V4) == compiled(DESCEND, KINDS, V4)


DESCENT = """
import sys
from pathlib import Path
import numpy as np
from cntk.core.machine import machine_code, processor

processor.choose(sys.argv[1])
machine_code.PREBUILT = Path(sys.argv[2])
from cntk.backends.fused import sgd

w, g = np.arange(1000, dtype=np.float32), np.full(1000, 2, np.float32)
sgd.descend.run(True, w, g, *map(np.float32, (0.5, 1, np.inf, 0)))
print(np.array_equal(w, np.arange(1000) - 1), "numba" in sys.modules)
"""


@pytest.mark.skipif(processor.level() is None, reason="this processor has no level of x86-64")
def test_code_for_levels_is_made_anywhere_and_runs_without_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompile, "_names", lambda *_: {"cntk.backends.fused.sgd:descend": [False, True]})
    for level in processor.LEVELS:
        made = [f"cntk.backends.fused.sgd:descend, {dtype}" for dtype in ("float32", "float64")] + [precompile.CHECK]
        assert list(precompile.compile_for_package(PACKAGES, level, tmp_path)) == made
        assert len(list((tmp_path / level).iterdir())) == len(made)
    program = tmp_path / "program.py"
    program.write_text(DESCENT)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    for level in list(processor.LEVELS)[list(processor.LEVELS).index(processor.level()) :]:
        command = [sys.executable, str(program), level, str(tmp_path)]
        assert subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout == "True False\n"


@pytest.mark.usefixtures("folder")
def test_code_that_cannot_be_kept_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "file")

    warn_not_cached.cache_clear()
    monkeypatch.setattr(machine_code, "keep", full)
    double = sgd.descend.kinds(True)
    with pytest.warns(RuntimeWarning, match=f"every process compiles it again: {tmp_path}/kept: {os.strerror(errno.ENOSPC)}"):
        assert machine_code.code_of(DESCEND, double) == COMPILED
    assert machine_code.code_of(DESCEND, double) == COMPILED


@pytest.mark.usefixtures("folder")
def test_code_is_kept_in_the_next_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(machine_code, "_folders", lambda: [tmp_path / "file", tmp_path / "kept"])
    assert machine_code.code_of(DESCEND, sgd.descend.kinds(True)) == COMPILED
    assert len(list((tmp_path / "kept").iterdir())) == 1
