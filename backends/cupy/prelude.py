"""Common beginning of all kernel sources: the storage and compute types, and functions of them.

Elements are loaded and stored in the array's type, ``stored``, and computed in ``real``, which is float for float16.  Numbers that change
from step to step are doubles in device memory, rounded to ``real`` once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STORED = {np.dtype(np.float16): "half", np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
"""C storage types by element type."""

REAL = {np.dtype(np.float16): "float", np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
"""C compute types by element type."""

COMPUTED = {np.dtype(np.float16): np.float32, np.dtype(np.float32): np.float32, np.dtype(np.float64): np.float64}
"""NumPy compute types by element type, used for partial results."""

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
    """Return the beginning of a kernel source for arrays of *dtype* and indices of the C type *index*."""
    kind = np.dtype(dtype)
    return f"{TEXT}\ntypedef {STORED[kind]} stored;\ntypedef {REAL[kind]} real;\ntypedef {index} size;\n"
