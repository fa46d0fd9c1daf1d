"""Operators that mark steps, by the kernels of GPUs: the numbers of their own methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.cupy import marks
from cntk.core.extension import plugins
from cntk.testing.kernels import _compare_gradients, _compare_values
from cntk.testing.ops import samples_of
from cntk.testing.samples import describe

pytestmark = pytest.mark.usefixtures("host_gpu")

NAMES = ("sequence.is_first", "sequence.is_last", "sequence.unpack")
SAMPLES = [(name, sample) for name in NAMES for sample in samples_of(plugins.ops.get(name))]


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[describe(plugins.ops.get(name), sample) for name, sample in SAMPLES])
def test_samples(name: str, sample: Any) -> None:
    function = plugins.ops.get(name)
    _compare_values(function, sample, None, 5)
    _compare_gradients(function, sample, None, 5)


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)
def test_the_number_that_is_written_is_an_array(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    one = marks._one
    monkeypatch.setattr(marks, "_one", lambda *arguments: written.append(one(*arguments)) or written[-1])
    x = C.sequence.input_variable(2, dtype=dtype)
    data = [np.ones((3, 2), dtype), np.ones((1, 2), dtype)]
    ends = C.sequence.is_first(x) + 2 * C.sequence.is_last(x)
    assert [value.tolist() for value in ends.eval({x: data})] == [[1, 0, 2], [3]]
    mask = C.combine([C.sequence.unpack(x, 0).outputs[1]])
    assert mask.eval({x: data}).tolist() == [[1, 1, 1], [1, 0, 0]]
    assert [(value.shape, value.dtype) for value in written] == [((), dtype)] * 3
