"""Damaged and hostile files for the readers of models, checkpoints, safetensors and ONNX.

A reader may give a result or raise a documented error that names the file and a place.  It may not take more than 50 times the file's
size in memory, 16 MiB aside, nor 5 seconds; it may import, run and write nothing.
"""

from __future__ import annotations

import codecs
import random as chances
import resource
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from guard import TIMES, Outcome, watched
from mutations import mutated
from targets import TARGETS, Target

from cntk.core.extension import plugins

ROOM = 2**30
"""Bytes of address space that the process may take beyond what it has at first."""


def begin() -> None:
    """Prepare all readers, and let the process grow by :data:`ROOM` from then on at most."""
    for name in TARGETS:
        prepared(name)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def trial(random: np.random.Generator) -> str:
    """Have a file read that is wrong in one to a few ways."""
    target, path = prepared(str(random.choice(["models", "models", "operators", "checkpoints", "tensors", "onnx"])))
    outcome = read_damaged(target, path, random)
    assert not outcome.wrong, f"{target.name}: {outcome.wrong}"
    return f"{target.name}: {type(outcome.error).__name__ if outcome.error else 'read'}"


def read_damaged(target: Target, path: Path, random: np.random.Generator) -> Outcome:
    """Make a file, and have it read; memory, which takes time, is measured for one in ten."""
    data = mutated(target.seeds, chances.Random(int(random.integers(2**63))), target.structured)
    path.with_name(path.name + target.suffix).write_bytes(data)
    return watched(lambda: target.read(str(path)), str(path), len(data) + target.room // TIMES, random.random() < 0.1, target.documented)


@cache
def prepared(name: str) -> tuple[Target, Path]:
    """A reader, and the path of its files; everything that reading takes has been imported."""
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    target = TARGETS[name](folder)
    path = folder / ("checkpoint" if target.suffix else "file")
    for format_name in plugins.model_formats:
        plugins.model_formats.get(format_name)
    codecs.lookup("utf-16-le")
    for seed in target.seeds:
        path.with_name(path.name + target.suffix).write_bytes(seed)
        target.read(str(path))
    return target, path
