"""The module that stands in for ``cupy``."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from . import cuda, functions, host_cuda
from .array import ndarray

VERSION = "14.2.0"
"""The version of CuPy whose rules the stand-in follows."""

UFUNCS = """
    abs absolute add arccos arccosh arcsin arcsinh arctan arctanh bitwise_and bitwise_or bitwise_xor ceil copysign cos cosh divide equal exp
    expm1 floor floor_divide fmax fmin greater greater_equal hypot isfinite isinf isnan left_shift less less_equal log log1p logaddexp
    logical_and logical_not logical_or maximum minimum mod multiply negative not_equal power reciprocal right_shift rint sign sin sinh sqrt
    square subtract tan tanh true_divide trunc
"""

CONSTANTS = "bool_ dtype finfo float16 float32 float64 inf int32 int64 int8 intp nan newaxis pi uint32 uint64 uint8"


class RawModule(host_cuda.RawModule):
    """A module of kernels whose launches can be captured."""

    def get_function(self, name: str) -> Any:
        function = super().get_function(name)
        return lambda *given, **options: cuda.work(lambda: function(*given, **options))


def make() -> ModuleType:
    """Return the module that ``import cupy`` gives."""
    made = ModuleType("cupy", __doc__)
    made.__dict__.update(functions.functions())
    made.__dict__.update({name: functions.ufunc(name) for name in UFUNCS.split()})
    made.__dict__.update({name: getattr(np, name) for name in CONSTANTS.split()})
    made.__version__ = VERSION
    made.ndarray = ndarray
    made.cuda = cuda
    made.RawModule = RawModule
    made.lib = SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=functions.as_strided))
    del made.functions, made.as_strided
    return made
