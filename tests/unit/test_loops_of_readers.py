"""The compiled loops of readers: which machine code they run, and where it comes from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)

from cntk.commands.compile import PACKAGES
from cntk.core.common.thresholds import thresholds
from cntk.core.machine import precompile
from cntk.core.machine.loops import Loop
from cntk.readers.compiled import loops
from cntk.readers.ctf.document import Document
from cntk.readers.ctf.index import Settings
from cntk.readers.deserializer import Errors
from cntk.readers.image.resize import resize
from cntk.readers.shuffle import shuffle
from cntk.readers.streams import StreamConfiguration

LOOPS = precompile.loops([package for package in PACKAGES if ".readers" in package])


def read_all(folder: Path) -> None:
    """Have every loop run."""
    thresholds.shuffle_compiled = 1
    (folder / "text").write_text("|a 1 2 |b 3:4\n|a 5 6 |b 7:8 9:1\n")
    for dim in (10, 2**31):
        streams = [StreamConfiguration("a", 2, False, "a"), StreamConfiguration("b", dim, True, "b")]
        for dtype in (np.float32, np.float64):
            list(Document(str(folder / "text"), streams, np.dtype(dtype), Settings(), keep=False).read(0, 2, Errors(), True))
    image: Any = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    for given, how in ((image[1:, 1:], "linear"), (image, "cubic"), (image.astype(np.float32), "linear")):
        resize(given, 7, 6, how)
    shuffle(np.arange(9), 1)


def test_each_gets_the_arguments_that_it_is_compiled_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    met: dict[Loop, list[list[str]]] = {}
    made_for = Loop._made_for

    def noted(loop: Loop, kinds: list[str]) -> Any:
        met.setdefault(loop, []).append(kinds)
        return made_for(loop, kinds)

    monkeypatch.setattr(Loop, "_made_for", noted)
    for module in ("ctf.compiled", "image.kernel", "compiled_shuffle"):
        assert loops(module) is not None
    for loop in LOOPS.values():
        monkeypatch.setattr(loop, "_compiled", {})
    read_all(tmp_path)
    assert set(met) == set(LOOPS.values())
    for loop, found in met.items():
        assert [kinds for kinds in found if kinds not in (loop.kinds(False), loop.kinds(True))] == [], loop.function.__name__


PROGRAM = """
import sys, json
import numpy as np
from cntk.readers.compiled import loops
found = loops("compiled_shuffle")
order = np.arange(3)
found.swap.run(False, order, 0, np.array([2]))
print(json.dumps([order.tolist(), "numba" in sys.modules]))
"""


def test_code_that_is_kept_needs_no_numba(tmp_path: Path) -> None:
    assert loops("compiled_shuffle") is not None  # it is kept by now
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=os.environ, cwd=tmp_path)
    assert json.loads(done.stdout) == [[2, 1, 0], False]


def test_none_are_used_where_there_is_no_code(monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> None:
    from cntk.core.extension.compiled import Unusable
    from cntk.readers import compiled_shuffle

    def none() -> None:
        raise Unusable("there is no machine code")

    monkeypatch.setattr(compiled_shuffle, "try_out", none)
    assert loops.__wrapped__("compiled_shuffle") is None
    assert not recwarn.list
