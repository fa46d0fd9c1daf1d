"""How close numbers must be: the one table of tolerances that all tests use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cntk.core.common.dtypes import float_types


class Tolerance(NamedTuple):
    """A difference may be as large as ``absolute + relative * |expected|``."""

    relative: float
    absolute: float


_BY_NAME = {
    "bfloat16": Tolerance(8 * 1e-2, 8 * 1e-2),  # three bits fewer than float16
    "float16": Tolerance(1e-2, 1e-2),
    "float32": Tolerance(1e-5, 2e-6),
    "float64": Tolerance(1e-12, 1e-13),
}
VALUES: dict[Any, Tolerance] = {dtype: _BY_NAME[np.dtype(dtype).name] for dtype in float_types()}
"""For results against the right ones, by element type."""

SINGLE = Tolerance(1e-6, 0)
"""For float32 results that only a rounding or two separate from the right ones."""

GRADIENTS = Tolerance(1e-5, 1e-7)
"""For gradients against central finite differences, in float64."""


def assert_close(actual: Any, expected: Any, message: str = "", tolerance: Tolerance | None = None) -> None:
    """Require that two arrays have one shape and agree as closely as the element type of *actual* lets them.

    Raises:
        AssertionError: they do not; it starts with *message* and shows where they differ most.

    >>> from cntk.testing import assert_close
    >>> assert_close(np.float32(1) / 3, 1 / 3)
    """
    actual = np.asarray(actual)
    relative, absolute = tolerance or VALUES[actual.dtype.type]
    if actual.shape != np.shape(expected):
        raise AssertionError(f"{message}: got an array of shape {actual.shape}, expected {np.shape(expected)}")
    np.testing.assert_allclose(actual, expected, rtol=relative, atol=absolute, err_msg=message)
