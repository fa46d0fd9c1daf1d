"""What all texts begin with: the types of elements in memory and of numbers that are computed with, and functions of them.

Elements are loaded and stored in the array's own type, ``stored``, and computed with as ``real``: float16 as float.  Numbers that change
from step to step are doubles in the device's memory, rounded to ``real`` once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STORED = {np.dtype(np.float16): "half", np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
"""Element types in memory."""

REAL = {np.dtype(np.float16): "float", np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
"""What they are computed with as."""

COMPUTED = {np.dtype(np.float16): np.float32, np.dtype(np.float32): np.float32, np.dtype(np.float64): np.float64}
"""The same, in NumPy's types: those of partial results."""

TEXT = """
#ifdef __CUDACC_RTC__
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif
#define ALL 0xffffffffu

struct half {
    unsigned short bits;
};

__device__ __forceinline__ float value_of(float x) { return x; }
__device__ __forceinline__ double value_of(double x) { return x; }
__device__ __forceinline__ void store(float &place, float x) { place = x; }
__device__ __forceinline__ void store(double &place, double x) { place = x; }

#ifdef __CUDACC_RTC__
__device__ __forceinline__ float value_of(half x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
__device__ __forceinline__ void store(half &place, float x) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(place.bits) : "f"(x));
}
#else
inline float value_of(half x) {
    _Float16 y;
    memcpy(&y, &x, sizeof x);
    return y;
}
inline void store(half &place, float x) {
    const _Float16 y = x;
    memcpy(&place, &y, sizeof y);
}
#endif

__device__ __forceinline__ float root(float x) { return sqrtf(x); }
__device__ __forceinline__ double root(double x) { return sqrt(x); }
__device__ __forceinline__ float power_of_e(float x) { return expf(x); }
__device__ __forceinline__ double power_of_e(double x) { return exp(x); }
__device__ __forceinline__ float logarithm(float x) { return logf(x); }
__device__ __forceinline__ double logarithm(double x) { return log(x); }
__device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
__device__ __forceinline__ double magnitude(double x) { return fabs(x); }
"""


def prelude(dtype: Any, index: str = "unsigned int") -> str:
    """The beginning of a text for arrays of *dtype* and indices of a type."""
    kind = np.dtype(dtype)
    return f"{TEXT}\ntypedef {STORED[kind]} stored;\ntypedef {REAL[kind]} real;\ntypedef {index} size;\n"
