"""Saves every operator that there is, applied to each of its samples: ``python samples.py FOLDER``.

Beside ``NAME-NUMBER.model`` a file ``NAME-NUMBER.npz`` keeps data for the inputs, by uid and sample, and what the model computes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import cntk as C
from cntk.core.extension import plugins
from cntk.core.operators.samples import Sample
from cntk.testing.samples import Trial, by_sample


def save(folder: Path, name: str, function: Any, sample: Sample) -> None:
    """Save a sample of an operator, with data and values."""
    trial = Trial(function, sample, np.float32)
    trial.result.save(folder / f"{name}.model")
    kept: dict[str, Any] = {}
    for operand, variable, value in trial._operands():
        if operand.kind in ("batch", "sequence"):
            kept |= {f"in {variable.uid} {k}": part for k, part in enumerate(by_sample(operand, value))}
        elif operand.kind != "parameter":
            kept[f"in {variable.uid}"] = value
    for number, (value, output) in enumerate(zip(trial.evaluate(), trial.result.outputs, strict=True)):
        parts = value if output.dynamic_axes else [value]
        kept |= {f"out {number} {k}": np.asarray(part) for k, part in enumerate(parts)}
    np.savez(folder / f"{name}.npz", **kept)


def main() -> None:
    """Save them all; a line for each that cannot be saved."""
    folder = Path(sys.argv[1])
    for name in plugins.ops:
        function = plugins.ops.get(name)
        for number, sample in enumerate(getattr(function, "samples", ())):
            C.cntk_py.set_fixed_random_seed(1)
            try:
                save(folder, f"{name}-{number}", function, sample)
            except (ValueError, RuntimeError) as error:
                print(f"{name}-{number}", f"not saved: {' '.join(str(error).split())}", sep="\t")


if __name__ == "__main__":
    main()
