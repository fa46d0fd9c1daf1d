"""The stand-in that runs texts of kernels on the host: it computes what CUDA does, and finds what would hang or corrupt a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from standin import host_cuda

pytestmark = pytest.mark.skipif(bool(host_cuda.unavailable()), reason=host_cuda.unavailable())

TEXT = r"""
#define ALL 0xffffffffu

extern "C" __global__ void __launch_bounds__(256) total(const float *x, double *y, int n) {
    __shared__ double parts[8];
    double sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += x[i];
    for (int k = 16; k; k /= 2)
        sum += __shfl_xor_sync(ALL, sum, k);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0;
        for (int i = 0; i < 8; ++i)
            sum += parts[i];
        y[blockIdx.x] = sum;
    }
}

extern "C" __global__ void places(int *y) {
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    y[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
}

extern "C" __global__ void votes(unsigned *y) {
    unsigned odd = __ballot_sync(ALL, threadIdx.x & 1);
    int next = __shfl_down_sync(ALL, threadIdx.x, 1) + 100 * __shfl_up_sync(ALL, threadIdx.x, 1);
    next += __shfl_sync(ALL, threadIdx.x, 3);
    bool any = __any_sync(ALL, threadIdx.x == 5), all = __all_sync(ALL, threadIdx.x == 5);
    y[threadIdx.x] = threadIdx.x == 0 ? odd : threadIdx.x == 1 ? any + 2 * all : next;
}

extern "C" __global__ void products(unsigned long long *y, unsigned long long x) { y[0] = __umul64hi(y[0], x); }

extern "C" __global__ void fixed(float *y) {
    __shared__ float shared[4];
    shared[threadIdx.x] = 1;
    __syncthreads();
    y[0] = shared[3];
}

extern "C" __global__ void unwritten(float *y) {
    __shared__ float shared[4];
    if (threadIdx.x)
        shared[threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = shared[0];
}

extern "C" __global__ void sized(float *y) {
    extern __shared__ float shared[];
    shared[threadIdx.x] = 1;
    __syncthreads();
    y[0] = shared[4];
}

extern "C" __global__ void diverged(float *y) {
    if (threadIdx.x == 1)
        __syncthreads();
    else {
        __syncthreads();
    }
}

extern "C" __global__ void half_of_a_warp(float *y) {
    if (threadIdx.x < 16)
        y[threadIdx.x] = __shfl_xor_sync(ALL, 1.0f, 1);
}
"""

TOGETHER = r"""
extern "C" __global__ void turns(volatile unsigned *counters, int *y, unsigned blocks) {
    __shared__ int mine[32];
    mine[threadIdx.x] = blockIdx.x;
    __syncthreads();
    for (int turn = 0; turn < 3; ++turn) {
        if (threadIdx.x == 0) {
            const unsigned before = counters[1];
            __threadfence();
            if (atomicAdd((unsigned *)counters, 1u) == blocks - 1) {
                counters[0] = 0;
                counters[1] = before + 1;
            } else
                while (counters[1] == before)
                    __nanosleep(20);
        }
        __syncthreads();
        y[(turn * gridDim.x + blockIdx.x) * 32 + threadIdx.x] = counters[1] * 10 + mine[threadIdx.x];
    }
}
"""


def run(name: str, grid: Any, block: Any, *arguments: Any, shared: int = 0) -> None:
    packed = [np.uintp(x.ctypes.data) if isinstance(x, np.ndarray) else x for x in arguments]
    host_cuda.RawModule(code=TEXT).get_function(name)(grid, block, packed, shared_mem=shared)


def test_a_block_sums_by_shuffles_and_shared_memory() -> None:
    x, y = np.random.default_rng(0).random(1000, np.float32), np.zeros(3)
    run("total", (3,), (256,), x, y, np.int32(1000))
    np.testing.assert_allclose(y, x.sum(dtype=np.float64), rtol=1e-12)


def test_every_thread_of_every_block_runs_once() -> None:
    y = np.zeros(2 * 3 * 4 * 5 * 2 * 3, np.int32)
    run("places", (2, 3, 4), (5, 2, 3), y)
    assert (y == 1).all()


def test_votes_and_shuffles() -> None:
    y, lanes = np.zeros(32, np.uint32), np.arange(32)
    run("votes", (1,), (32,), y)
    assert y[:2].tolist() == [0xAAAAAAAA, 1]
    expected = np.minimum(lanes + 1, 31) + 100 * np.maximum(lanes - 1, 0) + 3
    np.testing.assert_array_equal(y[2:], expected[2:])


def test_upper_half_of_a_product() -> None:
    y = np.array([0xD2E7470EE14C6C93], np.uint64)
    run("products", (1,), (1,), y, np.uint64(0xCA5A826395121157))
    assert y[0] == (0xD2E7470EE14C6C93 * 0xCA5A826395121157) >> 64


def test_shared_memory_that_nobody_wrote_is_nan_in_every_block() -> None:
    y = np.zeros(4, np.float32)
    for _ in range(2):
        run("unwritten", (2,), (4,), y)
        assert np.isnan(y).all()
    run("sized", (1,), (4,), y, shared=32)
    assert np.isnan(y[0])


@pytest.mark.parametrize(
    ("name", "threads", "message"),
    [
        ("fixed", 5, "an index is outside of its array; block .0, 0, 0., thread .4, 0, 0."),
        ("sized", 5, "written behind 16 bytes of dynamic shared memory, at byte 16"),
        ("diverged", 4, "wait at different barriers"),
        ("half_of_a_warp", 32, "waits for lanes that have ended"),
    ],
)
def test_what_would_corrupt_or_hang_is_found(name: str, threads: int, message: str) -> None:
    y = np.zeros(32, np.float32)
    with pytest.raises(RuntimeError, match=message):
        run(name, (1,), (threads,), y, shared=16)
    run("fixed", (1,), (4,), y)  # and the next kernel runs
    assert y[0] == 1


def test_blocks_that_wait_for_each_other_run_in_turns() -> None:
    counters, y = np.zeros(2, np.uint32), np.zeros((3, 4, 32), np.int32)
    turns = host_cuda.RawModule(code=TOGETHER).get_function("turns")
    places = np.uintp(counters.ctypes.data), np.uintp(y.ctypes.data)
    turns((4,), (32,), (*places, np.uint32(4)))
    assert counters.tolist() == [0, 3]
    assert (y % 10 == np.arange(4)[:, None]).all()  # shared memory is each block's own
    assert (y // 10 >= np.arange(1, 4)[:, None, None]).all()
    with pytest.raises(RuntimeError, match="turns: blocks wait for each other for ever"):
        turns((4,), (32,), (*places, np.uint32(5)))
    with pytest.raises(RuntimeError, match="more than a GPU has room for"):
        turns((200,), (32,), (*places, np.uint32(200)))


def test_arguments_are_the_kernels() -> None:
    y = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match=r"total: takes arguments of \[8, 8, 4\] bytes"):
        run("total", (1,), (32,), y, y, np.int64(4))
    with pytest.raises(TypeError, match="takes arguments"):
        run("fixed", (1,), (4,), y, y)
    with pytest.raises(ValueError, match="launched with a grid"):
        run("fixed", (0,), (4,), y)
    with pytest.raises(ValueError, match="no kernel called 'missing'"):
        run("missing", (1,), (4,), y)
    with pytest.raises(ValueError, match="cannot compile"):
        host_cuda.RawModule(code='extern "C" __global__ void wrong(float *y) { y = ; }').get_function("wrong")
