"""Query of the real cuDNN, without a GPU or a driver, for the plans that it would choose on an H100.

cuDNN plans for a device described by its properties.  It requires a driver library, for which a dummy is compiled whose functions all fail.
The program prints a line for each graph, with its name and whether cuDNN has an acceptable plan for it, without and with TF32; and a line
for stacks of recurrent layers, with whether their weights are laid out like the operator's.  As other processes should not load the dummy
driver, this is a separate program: ``python -m standin.planned FOLDER``, with a folder in which to compile the driver.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Iterator
from ctypes import byref, c_void_p
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from cntk.backends.cupy import libraries, rnnstack
from cntk.backends.cupy.cudnn import (
    SIGNATURES,
    Attribute,
    Convolution,
    Cudnn,
    Direction,
    Each,
    Graph,
    Kind,
    Pointwise,
    Tensor,
    Type,
    between,
    computing_type,
)
from cntk.plugins.ops.rnnstack import OptimizedRNNStack

from .host_backend import HostArray

DRIVER = """
    cuCtxGetCurrent cuCtxGetLimit cuCtxPopCurrent cuCtxPushCurrent cuDeviceGet cuDeviceGetCount cuGetErrorName cuGetErrorString
    cuKernelGetAttribute cuKernelGetFunction cuKernelSetAttribute cuLaunchCooperativeKernel cuLaunchKernel cuLaunchKernelEx
    cuLibraryGetKernel cuLibraryLoadData cuLibraryLoadFromFile cuLibraryUnload cuLinkAddData cuLinkComplete cuLinkCreate cuLinkDestroy
    cuModuleGetFunction cuModuleLoadData cuModuleUnload cuOccupancyMaxPotentialClusterSize cuStreamGetCtx cuTensorMapEncodeIm2col
    cuTensorMapEncodeTiled
"""
"""Functions of the driver that cuDNN looks up."""

DEVICE = {
    "deviceName": "NVIDIA H100 80GB HBM3",
    "deviceVer": 900,
    "deviceVersion": 900,
    "driverVer": 13000,
    "runtimeVer": 13000,
    "smVersion": 900,
    "driverVersion": 13000,
    "runtimeVersion": 13000,
    "nvrtcVersion": 13050,
    "schemaVersion": 1,
    "version": 1,
    "deviceId": 0,
    "cudaDeviceId": 0,
    "pciDeviceId": 590348510,
    "isTccDriver": 0,
    "supportCoopLaunch": 1,
    "totalGlobalMem": 85_000_000_000,
    "multiProcessorCount": 132,
    "smCountOrigin": 0,
    "maxGridSize": [2147483647, 65535, 65535],
    "maxBlockSize": [1024, 1024, 64],
    "warpSize": 32,
    "regsPerBlock": 65536,
    "maxRegistersPerSM": 65536,
    "maxCtasPerSM": 32,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048,
    "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448,
    "oversizedSharedMemoryPerBlock": 0,
    "reservedSharedMemoryPerBlock": 1024,
    "smClockRateKHz": 1980000,
    "memClockRateKHz": 2619000,
    "memoryBusWidth": 5120,
    "l2CacheSize": 52428800,
}
"""Properties of an H100, in cuDNN's serialised form."""

DEVICEPROP, DEVICEPROP_TEXT, CHARACTERS, OF_HEURISTICS, OF_PLAN = 38, 2702, 24, 204, 407
"""cuDNN's numbers of the device descriptor, its serialised text, the type of the text, and the attributes that take the descriptor."""


class Planner(Cudnn):
    """cuDNN for planning without a device."""

    def __init__(self, library: libraries.Loaded) -> None:
        self._call = {name: library.function(name, types) for name, types in SIGNATURES.items()}
        self.handle = c_void_p()
        self._plan = lru_cache(maxsize=None)(self._planned)
        text, self._device = json.dumps({**DEVICE, "cudnnVersion": library.version}).encode(), c_void_p()
        self._call["cudnnBackendCreateDescriptor"](DEVICEPROP, byref(self._device))
        self._call["cudnnBackendSetAttribute"](self._device, DEVICEPROP_TEXT, CHARACTERS, len(text) + 1, text)
        self._call["cudnnBackendFinalize"](self._device)

    def _descriptor(self, kind: Kind, *attributes: Any, needs: tuple[Any, ...] = ()) -> c_void_p:
        handles = Attribute.OPERATIONGRAPH_HANDLE, Attribute.EXECUTION_PLAN_HANDLE
        given = [attribute for attribute in attributes if attribute[0] not in handles]
        place = {Kind.ENGINEHEUR: OF_HEURISTICS, Kind.EXECUTION_PLAN: OF_PLAN}.get(kind)
        if place is not None:
            given.append((place, Type.BACKEND_DESCRIPTOR, [self._device.value]))
        return super()._descriptor(kind, *given, needs=needs)

    def has_plan(self, graph: Graph, allows_tf32: bool) -> bool:
        """Whether there is a plan with an acceptable engine."""
        return self._plan(graph, allows_tf32) is not None


def graphs() -> Iterator[tuple[str, Graph]]:
    """Yield graphs as the convolution kernel builds them."""
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        for name, operand, filters, result, pads, strides, dilation in (
            ("same", (64, 16, 32, 32), (32, 16, 3, 3), (64, 32, 32, 32), ((1, 1), (1, 1)), (1, 1), (1, 1)),
            ("one by one", (64, 16, 32, 32), (32, 16, 1, 1), (64, 32, 32, 32), ((0, 0), (0, 0)), (1, 1), (1, 1)),
            ("strides", (64, 16, 32, 32), (32, 16, 3, 3), (64, 32, 16, 16), ((1, 1), (0, 0)), (2, 2), (1, 1)),
            ("uneven", (64, 16, 32, 32), (32, 16, 2, 2), (64, 32, 32, 32), ((0, 0), (1, 1)), (1, 1), (1, 1)),
            ("dilated", (64, 16, 32, 32), (32, 16, 3, 3), (64, 32, 28, 28), ((0, 0), (0, 0)), (1, 1), (2, 2)),
            ("groups", (64, 16, 32, 32), (32, 4, 3, 3), (64, 32, 30, 30), ((0, 0), (0, 0)), (1, 1), (1, 1)),
            ("lines", (64, 16, 32, 1), (32, 16, 3, 1), (64, 32, 32, 1), ((1, 0), (1, 0)), (1, 1), (1, 1)),
            ("volumes", (8, 4, 9, 9, 9), (8, 4, 3, 3, 3), (8, 8, 9, 9, 9), ((1, 1, 1), (1, 1, 1)), (1, 1, 1), (1, 1, 1)),
            ("one channel", (64, 1, 28, 28), (32, 1, 5, 5), (64, 32, 28, 28), ((2, 2), (2, 2)), (1, 1), (1, 1)),
        ):
            tensors = tuple(_packed(dims, dtype) for dims in (operand, filters, result))
            for direction in Direction:
                operation = Convolution(direction, 0, 1, 2, *pads, strides, dilation)
                yield f"{dtype} {name} {direction.name}", Graph(tensors, (operation,), computing_type(dtype))
            bias = _packed((1, result[1], *(1,) * (len(result) - 2)), dtype)
            passed = between(tensors[2], computing_type(dtype))
            steps = Convolution(Direction.RESULT, 0, 1, 4, *pads, strides, dilation), Each(Pointwise.ADD, 4, 3, 5)
            cut = Each(Pointwise.RELU_FWD, 5, None, 2)
            yield f"{dtype} {name} with steps", Graph((*tensors, bias, passed, passed), (*steps, cut), computing_type(dtype))


def _packed(dims: tuple[int, ...], dtype: str) -> Tensor:
    strides = [1]
    for dim in reversed(dims[1:]):
        strides.insert(0, strides[0] * dim)
    return Tensor(dims, tuple(strides), dtype, 16)


class Handle(Cudnn):
    """cuDNN with a zeroed handle, which is sufficient for queries about weights."""

    def __init__(self, library: libraries.Loaded) -> None:
        self._library, self._zeros = library, ctypes.create_string_buffer(1 << 16)
        self.handle = c_void_p(ctypes.addressof(self._zeros))


def weights(library: libraries.Loaded) -> Iterator[tuple[str, bool]]:
    """Yield whether the weights of stacks of recurrent layers are laid out like the operator's."""
    for cell, both, layers, (width, hidden), dtype in product(
        rnnstack.CELLS, (False, True), (1, 3), ((3, 4), (150, 300), (7, 13)), ("bfloat16", "float16", "float32", "float64")
    ):
        op = OptimizedRNNStack(bidirectional=both, num_layers=layers, hidden_size=hidden, recurrent_op=cell)
        numbers = np.zeros(op._size(width), dtype).view(HostArray)
        name = f"{layers} layers {cell} {'both ways' if both else 'one way'} {width} x {hidden} {dtype}"
        yield name, rnnstack._Stack(Handle(library), op, dtype, width, numbers).fits


def main(folder: str) -> None:
    """Compile the driver, and print the results of the queries."""
    source, driver = Path(folder) / "driver.c", Path(folder) / "libcuda.so.1"
    source.write_text("".join(f"int {name}(void) {{ return 100; }}\n" for name in DRIVER.split()))
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(driver), str(source)], check=True)
    ctypes.CDLL(str(driver), mode=ctypes.RTLD_GLOBAL)
    libraries.load(libraries.CUBLASLT)
    library = libraries.load(libraries.CUDNN)
    planner = Planner(library)
    for name, graph in graphs():
        print(json.dumps([name, planner.has_plan(graph, False), planner.has_plan(graph, True)]))
    for name, are_alike in weights(library):
        print(json.dumps([name, are_alike, are_alike]))


if __name__ == "__main__":
    main(sys.argv[1])
