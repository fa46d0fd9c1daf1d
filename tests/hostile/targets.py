"""Readers to try, each with files to begin from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cntk as C
from cntk.core.extension import plugins
from cntk.core.operators.elementwise import Elementwise
from cntk.plugins.formats.wire import read_dictionary, write_file
from cntk.plugins.protobuf import DamagedFile
from cntk.train.checkpoint import read_checkpoint, write_checkpoint

TESTS = Path(__file__).resolve().parents[1]
MODELS = TESTS / "data" / "models"
LARGEST = 12_000
"""Bytes of the models to begin from, at most."""


@dataclass
class Target:
    """A reader.

    Attributes:
        name: what it is called on the command line.
        seeds: files that it reads.
        read: reads the file of a path.
        structured: whether files are dictionaries of CNTK 2.
        suffix: what is added to the path for the file that is made wrong.
        documented: what it may raise.
    """

    name: str
    seeds: list[bytes]
    read: Callable[[str], Any]
    structured: bool = True
    suffix: str = ""
    documented: tuple[type[Exception], ...] = (DamagedFile, ValueError)


class OfPlugin(Elementwise):
    """An operator that CNTK does not have, with arguments and a state."""

    op_name = "OfPlugin"
    drawn = 0

    def __init__(self, first: Any, *others: Any, **attributes: Any) -> None:
        super().__init__(first=first, others=others, **attributes)

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        ctx.xp.copyto(out, inputs[0])

    def create_checkpoint(self) -> dict[str, Any]:
        return {"drawn": self.drawn}

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.drawn = int(checkpoint["drawn"])


def models(folder: Path) -> Target:
    """``load_model`` on models that CNTK 2.7 has saved."""
    sys.path.insert(0, str(TESTS / "crossing"))
    import zoo  # noqa: F401  (its user functions are recreated)

    whole = [path.read_bytes() for path in sorted(MODELS.glob("*.model"))]
    seeds = [seed for seed in whole if len(seed) <= LARGEST]
    large = [b"".join(write_file(read_dictionary(seed), largest=0)) for seed in seeds[:5]]
    return Target("models", seeds + large, C.load_model)


def operators(folder: Path) -> Target:
    """``load_model`` on a model with operators that CNTK does not have."""
    x = C.input_variable(3, name="x")
    arguments = {"table": np.arange(3), "kind": np.float32, "axis": C.Axis(-1), "nested": [{"@": (2**70, None)}, 0.5]}
    function = OfPlugin("text", 1, 2.5, **arguments)(OfPlugin(True)(x) * C.parameter(3))
    for name in plugins.ops:  # which is what a file may have imported
        plugins.ops.get(name)
    return Target("operators", [b"".join(map(bytes, plugins.model_formats.get("CNTKv2").write(function)))], C.load_model)


def checkpoints(folder: Path) -> Target:
    """The state of a checkpoint, beside a model that is whole."""
    model = C.layers.Dense(2)(C.input_variable(3))
    state = {
        "learners": [{"total_number_of_samples_seen": 7, "state": [np.ones((3, 2), np.float32), np.zeros(2, np.float64)]}],
        "random": {"words": np.arange(312, dtype=np.uint64), "seed": 2**63 + 5, "ratio": 0.5, "none": None, "flag": True},
        "reader": {"position": [1, 2, -3], "name": "x"},
    }
    write_checkpoint(str(folder / "checkpoint"), model, state)
    return Target(
        "checkpoints", [(folder / "checkpoint.ckp").read_bytes()], read_checkpoint, suffix=".ckp", documented=(RuntimeError, ValueError)
    )


def tensors(folder: Path) -> Target:
    """``restore`` from safetensors files."""
    function = C.layers.Sequential([C.layers.Dense(3, name="first"), C.layers.BatchNormalization(), C.layers.Dense(2)])(C.input_variable(4))
    function.save(folder / "tensors", format="safetensors")
    return Target("tensors", [(folder / "tensors").read_bytes()], function.restore, structured=False)


TARGETS = {"models": models, "operators": operators, "checkpoints": checkpoints, "tensors": tensors}
