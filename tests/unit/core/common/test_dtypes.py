"""Element types: what is meant by what programs say."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cntk as C
from cntk.core.common.dtypes import (
    FLOAT_TYPES,
    DataType,
    as_dtype,
    as_stored_dtype,
    computing_type,
    data_type_of,
    dtype_name,
    dtype_named,
    float_types,
    is_bfloat16,
    is_float,
    is_float_type,
    is_half,
    is_real,
    limits_of,
)

bfloat16 = ml_dtypes.bfloat16
OTHERS = [getattr(ml_dtypes, name) for name in ("float8_e5m2", "float8_e4m3fn", "int4", "uint4")]


@pytest.mark.parametrize("dtype", ["bfloat16", bfloat16, np.dtype(bfloat16), DataType.BFloat16])
def test_bfloat16_is_that_of_ml_dtypes(dtype: Any) -> None:
    assert as_dtype(dtype) is as_stored_dtype(dtype) is C.bfloat16 is bfloat16
    assert C.parameter(2, dtype=dtype).dtype is C.input_variable(2, dtype=dtype).dtype is bfloat16


@pytest.mark.parametrize(
    "ask", [lambda: as_dtype("bfloat16"), lambda: C.input_variable(2, dtype="bfloat16"), lambda: dtype_named("bfloat16")]
)
def test_without_its_package_whoever_asks_for_bfloat16_is_told_what_to_install(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ValueError, match=r"bfloat16 needs the package ml_dtypes.*pip install 'opencntk\[bfloat16\]'.* loss scale"):
        ask()
    with pytest.raises(AttributeError, match=r"cntk.bfloat16: .*pip install 'opencntk\[bfloat16\]'"):
        _ = C.bfloat16
    assert float_types() == FLOAT_TYPES


def test_its_package_is_imported_when_a_program_asks_for_the_type() -> None:
    program = "import sys, cntk; before = 'ml_dtypes' in sys.modules; cntk.bfloat16; print(before, 'ml_dtypes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False True\n"


@pytest.mark.parametrize("dtype", ["complex64", np.int32, object, "nothing", *OTHERS])
def test_other_types_are_refused(dtype: Any) -> None:
    with pytest.raises(ValueError, match="use bfloat16, float16, float32 or float64"):
        as_dtype(dtype)


def test_what_is_asked_of_types() -> None:
    types = [bfloat16, np.float16, np.float32, np.float64, np.int16, np.bool, np.complex64, *OTHERS[1:]]
    dtypes = [np.dtype(one) for one in types]
    assert [one for one in types if is_bfloat16(one)] == types[:1]
    assert [one for one in types if is_half(one)] == types[:2]
    assert [one for one in types if is_float_type(one)] == types[:4] == list(float_types())
    assert [one for one in dtypes if is_float(one)] == dtypes[:4]
    assert [one for one in dtypes if is_real(one)] == dtypes[:6]
    assert [computing_type(one) for one in types[:5]] == [np.float32, np.float32, np.float32, np.float64, np.int16]
    assert [dtype_named(dtype_name(one)) for one in types[:6]] == dtypes[:6]
    assert not is_float_type(dtypes[0])


def test_numbers_of_types() -> None:
    types = [bfloat16, np.float16, np.float32, np.float64, np.int8, np.int16]
    numbers = [data_type_of(one) for one in types]
    assert numbers == [7, 4, 1, 2, 5, 6]
    assert [as_stored_dtype(number) for number in numbers] == types


def test_limits() -> None:
    assert float(limits_of(bfloat16).max) == 2.0**127 * (2 - 2**-7)
    assert limits_of(np.float32) is np.finfo(np.float32)
