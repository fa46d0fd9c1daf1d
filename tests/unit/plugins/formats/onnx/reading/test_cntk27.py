"""ONNX files that CNTK 2.7 has written compute what the models did there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cntk as C

FILES = Path(__file__).resolve().parents[5] / "data" / "onnx27"
VALUES = np.load(FILES / "values.npz")


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.onnx")))
def test_files_agree(name: str) -> None:
    function = C.load_model(FILES / f"{name}.onnx")
    (x,) = function.arguments
    data, right = VALUES[f"{name}/in0"].astype(x.dtype), VALUES[f"{name}/out"]
    steps_first = bool(x.shape) and x.shape[0] == C.FreeDimension and not x.dynamic_axes
    found = function.eval({x: np.swapaxes(data, 0, 1) if steps_first else data})
    values = [np.asarray(value) for value in (found.values() if isinstance(found, dict) else [found])]
    candidates = [value.reshape(right.shape) for value in _laid_out(values, right.shape)]
    assert any(np.allclose(value, right, rtol=1e-3, atol=2e-5) for value in candidates), (values, right)


def _laid_out(values: list[np.ndarray], shape: tuple[int, ...]) -> list[np.ndarray]:
    """The results with as many elements as the right one, of sequences with the steps behind the samples."""
    same = [value for value in values if value.size == np.prod(shape)]
    swapped = [np.swapaxes(value, 0, 1) for value in same if value.ndim > 2]
    return swapped if swapped and swapped[0].shape == shape else same
