"""Common beginning of all kernel sources: the storage and compute types, and functions of them.

Elements are loaded and stored in the array's type, ``stored``, and computed in ``real``, which is float for types of 16 bits.  Numbers
that change from step to step are doubles in device memory, rounded to ``real`` once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STORED = {"bfloat16": "bfloat16", "float16": "half", "float32": "float", "float64": "double"}
"""C storage types by the names of element types."""

REAL = {"bfloat16": "float", "float16": "float", "float32": "float", "float64": "double"}
"""C compute types by the names of element types."""

TEXT = """
#ifdef __CUDACC_RTC__
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif
#define ALL 0xffffffffu

struct half {
    unsigned short bits;
};
struct bfloat16 {
    unsigned short bits;
};

__device__ __forceinline__ float value_of(float x) { return x; }
__device__ __forceinline__ double value_of(double x) { return x; }
__device__ __forceinline__ void store(float &place, float x) { place = x; }
__device__ __forceinline__ void store(double &place, double x) { place = x; }

/* The upper bits of a float, rounded to the nearest, of two to the even one. */
__device__ __forceinline__ unsigned short upper_bits(float x, unsigned bits) {
    return x == x ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : bits >> 16 | 0x40;
}

#ifdef __CUDACC_RTC__
__device__ __forceinline__ float value_of(bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ __forceinline__ void store(bfloat16 &place, float x) { place.bits = upper_bits(x, __float_as_uint(x)); }
__device__ __forceinline__ float value_of(half x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
__device__ __forceinline__ void store(half &place, float x) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(place.bits) : "f"(x));
}
#else
inline float value_of(bfloat16 x) {
    const unsigned bits = (unsigned)x.bits << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}
inline void store(bfloat16 &place, float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    place.bits = upper_bits(x, bits);
}
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
    kind = np.dtype(dtype).name
    return f"{TEXT}\ntypedef {STORED[kind]} stored;\ntypedef {REAL[kind]} real;\ntypedef {index} size;\n"
