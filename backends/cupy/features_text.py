"""Texts of the kernels that normalise features, for :mod:`cntk.backends.cupy.features`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .compiler import BLOCKS, THREADS
from .prelude import STORED, prelude

COMMON = """
#define TEAM (THREADS / COLUMNS)
#define LANE (threadIdx.x / COLUMNS)
#define FEATURE (blockIdx.x * COLUMNS + threadIdx.x % COLUMNS)
#define AT(i) (((i) / PACKS * features + feature) * PACKS + (i) % PACKS)
#define EACH_PACK(i) for (size i = first + LANE; i < after; i += TEAM)
#define EACH_NUMBER(k) for (int k = 0; k < WIDTH; ++k)

struct alignas(WIDTH * sizeof(stored)) Pack {
    stored of[WIDTH];
};
struct alignas(16) Sums {
    double one, other;
};

/* Adds up the sums of a team's threads; every thread gets the totals. */
static __device__ __forceinline__ Sums total(Sums mine) {
    __shared__ Sums sums[THREADS];
    sums[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned half_of = TEAM / 2; half_of; half_of /= 2) {
        if (LANE < half_of) {
            sums[threadIdx.x].one += sums[threadIdx.x + half_of * COLUMNS].one;
            sums[threadIdx.x].other += sums[threadIdx.x + half_of * COLUMNS].other;
        }
        __syncthreads();
    }
    return sums[threadIdx.x % COLUMNS];
}

/* The sums of all pieces of a feature. */
static __device__ __forceinline__ Sums gathered(const Sums *pieces, size count, size features, size feature) {
    Sums sums = {0, 0};
    if (feature < features)
        for (size piece = LANE; piece < count; piece += TEAM) {
            sums.one += pieces[piece * features + feature].one;
            sums.other += pieces[piece * features + feature].other;
        }
    return total(sums);
}
"""

BLOCK = """const size feature = FEATURE, first = blockIdx.y * length, after = first + length < packs ? first + length : packs;"""
"""Beginning of each kernel: a feature, and the packs of a piece."""

FORWARD = """
template <class T> static __device__ void approach(T &running, real statistic, real share) {
    store(running, value_of(running) + (statistic - value_of(running)) * share);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
measure(const Pack *x, size packs, size length, size features, Sums *pieces, count_type *count, double *share, double samples,
        double usual) {
    BLOCK
    Sums sums = {0, 0};
    if (feature < features) {
        const double pivot = value_of(x[AT(0)].of[0]);
        EACH_PACK(i) {
            const Pack pack = x[AT(i)];
            EACH_NUMBER(k) {
                const double off = value_of(pack.of[k]) - pivot;
                sums.one += off;
                sums.other += off * off;
            }
        }
    }
    sums = total(sums);
    if (LANE == 0 && feature < features)
        pieces[blockIdx.y * features + feature] = sums;
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
        const double seen = value_of(*count);
        *share = seen == 0 ? 1 : usual < 0 ? samples / (samples + seen) : usual;
        store(*count, seen + samples);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
normalise(const Pack *x, Pack *y, size packs, size length, size features, const Sums *pieces, size count, const scale_type *scale,
          const bias_type *bias, mean_type *running_mean, variance_type *running_variance, real *means, real *inverses, const double *share,
          real epsilon, real correction) {
    BLOCK
    const Sums sums = gathered(pieces, count, features, feature);
    if (feature >= features)
        return;
    const double values = (double)packs * WIDTH, off = sums.one / values, spread = sums.other / values - off * off;
    const real mean = (real)(value_of(x[AT(0)].of[0]) + off), variance = (real)(spread < 0 ? 0 : spread);
    const real inverse = 1 / root(variance + epsilon);
    if (blockIdx.y == 0 && LANE == 0) {
        means[feature] = mean;
        inverses[feature] = inverse;
        approach(running_mean[feature], mean, (real)*share);
        approach(running_variance[feature], variance * correction, (real)*share);
    }
    const real factor = (real)(inverse * value_of(scale[feature])), shift = (real)value_of(bias[feature]);
    EACH_PACK(i) {
        Pack pack = x[AT(i)];
        EACH_NUMBER(k) store(pack.of[k], (value_of(pack.of[k]) - mean) * factor + shift);
        y[AT(i)] = pack;
    }
}
"""

BACKWARD = """
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
add_up(const Pack *x, const Pack *dy, size packs, size length, size features, const real *means, Sums *pieces) {
    BLOCK
    Sums sums = {0, 0};
    if (feature < features) {
        const double mean = means[feature];
        EACH_PACK(i) {
            const Pack pack = x[AT(i)], slopes = dy[AT(i)];
            EACH_NUMBER(k) {
                const double slope = value_of(slopes.of[k]);
                sums.one += slope;
                sums.other += slope * (value_of(pack.of[k]) - mean);
            }
        }
    }
    sums = total(sums);
    if (LANE == 0 && feature < features)
        pieces[blockIdx.y * features + feature] = sums;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
differentiate(const Pack *x, const Pack *dy, Pack *dx, size packs, size length, size features, const Sums *pieces, size count,
              const scale_type *scale, const real *means, const real *inverses, scale_type *dscale, bias_type *dbias) {
    BLOCK
    const Sums sums = gathered(pieces, count, features, feature);
    if (feature >= features)
        return;
    const real mean = means[feature], inverse = inverses[feature];
    const double of_scale = sums.other * inverse, of_bias = sums.one, values = (double)packs * WIDTH;
    if (blockIdx.y == 0 && LANE == 0) {
        if (dscale)
            store(dscale[feature], of_scale);
        if (dbias)
            store(dbias[feature], of_bias);
    }
    if (!dx)
        return;
    const real factor = (real)(inverse * value_of(scale[feature])), tilt = (real)(of_scale / values), level = (real)(of_bias / values);
    EACH_PACK(i) {
        Pack pack = x[AT(i)];
        const Pack slopes = dy[AT(i)];
        EACH_NUMBER(k)
            store(pack.of[k], (value_of(slopes.of[k]) - (value_of(pack.of[k]) - mean) * inverse * tilt - level) * factor);
        dx[AT(i)] = pack;
    }
}
"""


def forward_text(dtype: Any, index: str, columns: int, width: int, packs: int, vectors: Sequence[Any]) -> str:
    """Return the source of the kernels forward.

    Args:
        dtype: element type of the operand.
        index: C type of indices.
        columns, width: as in :class:`~cntk.backends.cupy.features.Shape`.
        packs: number of packs of a feature in a row.
        vectors: element types of scale, bias, running mean, running variance and running count.
    """
    return _text(FORWARD, dtype, index, (columns, width, packs), ("scale", "bias", "mean", "variance", "count"), vectors)


def backward_text(dtype: Any, index: str, columns: int, width: int, packs: int, vectors: Sequence[Any]) -> str:
    """Return the source of the kernels backward; *vectors* are the element types of scale and bias."""
    return _text(BACKWARD, dtype, index, (columns, width, packs), ("scale", "bias"), vectors)


def _text(body: str, dtype: Any, index: str, sizes: tuple[int, int, int], names: Sequence[str], vectors: Sequence[Any]) -> str:
    types = "".join(f"typedef {STORED[np.dtype(of).name]} {name}_type;\n" for name, of in zip(names, vectors, strict=True))
    known = {"THREADS": THREADS, "BLOCKS": BLOCKS, "BLOCK": BLOCK, **dict(zip(("COLUMNS", "WIDTH", "PACKS"), sizes, strict=True))}
    defined = "".join(f"#define {name} {value}\n" for name, value in known.items())
    return f"{prelude(dtype, index)}{types}{defined}{COMMON}{body}"
