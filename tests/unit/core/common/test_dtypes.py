"""Element types: what is meant by what programs say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common.dtypes import as_dtype

bfloat16 = type("bfloat16", (np.void,), {})
"""A stand-in for ``ml_dtypes.bfloat16``, which is no subclass of NumPy's numbers either."""


@pytest.mark.parametrize("dtype", ["bfloat16", bfloat16])
def test_bfloat16_is_refused_with_what_to_use(dtype: Any) -> None:
    with pytest.raises(ValueError, match=r"data type bfloat16 is not supported: no backend .* float16, .* loss scale"):
        as_dtype(dtype)
    with pytest.raises(ValueError, match="bfloat16"):
        C.parameter(2, dtype=dtype)


@pytest.mark.parametrize("dtype", ["complex64", np.int32, object, "nothing"])
def test_other_types_are_refused(dtype: Any) -> None:
    with pytest.raises(ValueError, match="use float16, float32 or float64"):
        as_dtype(dtype)
