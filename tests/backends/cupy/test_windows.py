"""Windows along sequences as CUDA texts: the numbers of the operator's own methods."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.plugins.ops.sequence_windows import SequenceWindows
from cntk.testing.kernels import without_kernels

pytestmark = pytest.mark.usefixtures("host_gpu")

LENGTHS = (5, 9, 6, 40, 5)
OPTIONS = list(product((1, 2, 3), (1, 2), (False, True)))


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("channels", [True, False], ids=["channels", "no channels"])
@pytest.mark.parametrize(("stride", "dilation", "padded"), OPTIONS)
def test_windows(stride: int, dilation: int, padded: bool, channels: bool, dtype: Any, on_host: list[str]) -> None:
    random = np.random.default_rng(0)
    shape, kernel = ((4, 3), (2, 4, 3, 1)) if channels else ((3,), (3, 1))
    filters = C.constant(np.zeros(kernel, dtype))
    x = C.sequence.input_variable(shape, dtype=dtype, needs_gradient=True)
    op = SequenceWindows((stride, 1), (dilation, 1), (padded, False), int(channels))
    f = op(filters, x)
    data = {x: [random.standard_normal((length, *shape)).astype(dtype) for length in LENGTHS]}
    weights = C.constant(random.standard_normal(f.shape).astype(dtype))

    def computed() -> list[Any]:
        gradient, value = (f * weights).grad(data, wrt=[x], outputs=[f.output])
        return [*value, *gradient]

    found = computed()
    assert any("pick(" in text for text in on_host)
    with without_kernels():
        expected = computed()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
