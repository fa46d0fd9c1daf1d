"""Random numbers on the device: Philox 4x64-10, as in :mod:`~cntk.core.common.random` on the host.

Uniform numbers are identical to the bit.  Normal numbers are computed from the same bits by the same formula, but with the device's
logarithm, sine and cosine, which differ from the host's by units in the last place.

The number of a draw is read from device memory, so that a captured graph can be replayed with the number of the next draw.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from .compiler import THREADS, blocks_for, compile
from .prelude import prelude

PHILOX = """
struct Words {
    unsigned long long x[4];
};

/* Returns block number *count* of a draw; NumPy's counter starts at 1. */
__device__ __forceinline__ Words philox(unsigned long long key0, unsigned long long key1, unsigned long long count, double draw) {
    const unsigned long long m0 = 0xD2E7470EE14C6C93ull, m1 = 0xCA5A826395121157ull;
    Words words = {{count + 1, (unsigned long long)draw, 0, 0}};
    for (int round = 0; round < 10; ++round) {
        const unsigned long long high = __umul64hi(m0, words.x[0]), low = m0 * words.x[0];
        const unsigned long long other_high = __umul64hi(m1, words.x[2]), other_low = m1 * words.x[2];
        words = {{other_high ^ words.x[1] ^ key0, other_low, high ^ words.x[3] ^ key1, low}};
        key0 += 0x9E3779B97F4A7C15ull;
        key1 += 0xBB67AE8584CAA73Bull;
    }
    return words;
}

/* Returns the 32 bits from which one of a block's eight float numbers is made. */
__device__ __forceinline__ unsigned bits_of(const Words &words, int number) {
    return (unsigned)(words.x[number / 2] >> (number % 2 * 32));
}

__device__ __forceinline__ float single_of(const Words &words, int number) {
    return (bits_of(words, number) >> 8) * 5.9604644775390625e-08f;
}

__device__ __forceinline__ double double_of(const Words &words, int number) {
    return (words.x[number] >> 11) * 1.1102230246251565e-16;
}
"""

NUMBER_OF_A_BLOCK = {
    "bfloat16": "(bits_of(words, number) >> 24) * 0.00390625f",
    "float16": "(bits_of(words, number) >> 21) * 0.00048828125f",
    "float32": "single_of(words, number)",
    "float64": "double_of(words, number)",
}
"""C expressions for a uniform number by the name of its element type."""


def uniform(out: Any, seed: int, numbers: Any) -> Callable[[], None]:
    """Return a function that fills a contiguous array with uniform numbers in [0, 1).

    Args:
        out: the array.
        seed: seed of the random stream.
        numbers: doubles in device memory, the first of which is the number of the draw.
    """
    size, of_block = size_of(out.shape), 4 if out.dtype == np.float64 else 8
    blocks = -(-size // of_block)
    return compile(uniform_text(out.dtype), "uniform").bound(blocks_for(blocks), THREADS, out, np.uint64(size), *key_of(seed), numbers)


def normal(out: Any, seed: int, numbers: Any) -> Callable[[], None]:
    """Return a function that fills a contiguous array with standard normal numbers; the arguments are those of :func:`uniform`."""
    size = size_of(out.shape)
    pairs = (size + 1) // 2
    return compile(normal_text(out.dtype), "normal").bound(blocks_for(pairs), THREADS, out, np.uint64(size), *key_of(seed), numbers)


@lru_cache(maxsize=256)
def key_of(seed: int) -> tuple[Any, Any]:
    """Return the key that NumPy's generator derives from a seed.
    >>> from cntk.backends.cupy.philox import key_of
    >>> [int(half) for half in key_of(2**64 + 5)]
    [5, 1]
    """
    low, high = np.random.Philox(key=seed).state["state"]["key"]
    return low, high


def uniform_text(dtype: Any) -> str:
    """Return the source of the kernel for uniform numbers of a type."""
    of_block = 4 if np.dtype(dtype) == np.float64 else 8
    return f"""{prelude(dtype, "unsigned long long")}
{PHILOX}
extern "C" __global__ void __launch_bounds__({THREADS})
uniform(stored *out, size count, unsigned long long key0, unsigned long long key1, const double *numbers) {{
    for (size block = blockIdx.x * (size)blockDim.x + threadIdx.x; block * {of_block} < count; block += (size)gridDim.x * blockDim.x) {{
        const Words words = philox(key0, key1, block, numbers[0]);
        for (int number = 0; number < {of_block}; ++number)
            if (block * {of_block} + number < count)
                store(out[block * {of_block} + number], {NUMBER_OF_A_BLOCK[np.dtype(dtype).name]});
    }}
}}
"""


def normal_text(dtype: Any) -> str:
    """Return the source of the kernel for normal numbers of a type, by the Box-Muller transform of pairs of uniform numbers."""
    return f"""{prelude(dtype, "unsigned long long")}
{PHILOX}
extern "C" __global__ void __launch_bounds__({THREADS})
normal(stored *out, size count, unsigned long long key0, unsigned long long key1, const double *numbers) {{
    const size pairs = (count + 1) / 2;
    for (size pair = blockIdx.x * (size)blockDim.x + threadIdx.x; pair < pairs; pair += (size)gridDim.x * blockDim.x) {{
        const size other = pairs + pair;
        const double u = double_of(philox(key0, key1, pair / 4, numbers[0]), pair % 4);
        const double v = double_of(philox(key0, key1, other / 4, numbers[0]), other % 4);
        const double radius = sqrt(-2.0 * log1p(-u)), angle = 6.283185307179586 * v;
        store(out[pair], (real)(radius * cos(angle)));
        if (other < count)
            store(out[other], (real)(radius * sin(angle)));
    }}
}}
"""
