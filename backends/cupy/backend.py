"""The CuPy backend: one NVIDIA GPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from ...core.common.cached_property import cached_property
from ...core.common.dtypes import float_types
from ...core.extension.backend import Need
from ...core.extension.device import DeviceKind
from ...core.types.layout import Layout
from . import needs

INSTALL = "install it for the CUDA version of your driver: pip install 'opencntk[gpu]' for CUDA 13, or pip install 'cupy-cuda12x[ctk]'"

CORES = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
"""CUDA cores per multiprocessor by compute capability; 128 for those not listed."""


class GpuProperties(NamedTuple):
    """The properties of a GPU that CNTK reports; ``total_memory`` is in MiB."""

    device_id: int
    name: str
    version_major: int
    version_minor: int
    cuda_cores: int
    total_memory: int


class CupyBackend:
    """Backend for arrays in the memory of an NVIDIA GPU.

    All work is enqueued in order on a single stream of the device. It runs asynchronously; only reads of results wait for it.

    Args:
        device_id: index of the GPU.
    """

    name = "cupy"
    kind: int = DeviceKind.GPU
    sparse = True
    alignment = 256
    block_bytes = None
    fewest_for_learners = 0

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id

    @property
    def dtypes(self) -> tuple[Any, ...]:
        return float_types()

    @cached_property
    def xp(self) -> Any:
        """The array namespace."""
        from . import namespace

        return namespace

    @cached_property
    def stream(self) -> Any:
        """The non-blocking stream on which all work of the device is enqueued."""
        import cupy

        with cupy.cuda.Device(self.device_id):
            return cupy.cuda.Stream(non_blocking=True)

    @cached_property
    def blocks_together(self) -> int:
        """Maximum number of blocks that may wait for each other: one per multiprocessor; 0 if the device has no cooperative launches."""
        import cupy

        known = cupy.cuda.runtime.getDeviceProperties(self.device_id)
        return int(known["multiProcessorCount"]) if known["cooperativeLaunch"] else 0

    @cached_property
    def shared_memory(self) -> int:
        """Maximum number of bytes of shared memory of a block."""
        import cupy

        return int(cupy.cuda.runtime.getDeviceProperties(self.device_id)["sharedMemPerBlockOptin"])

    @cached_property
    def _guard(self) -> Guard:
        import cupy

        return Guard(cupy.cuda.Device(self.device_id), self.stream, cupy.cuda.get_current_stream)

    @cached_property
    def _staging(self) -> Any:
        from .memory import Staging

        return Staging()

    @cached_property
    def _fetching(self) -> Any:
        from .memory import Fetching

        return Fetching(self._staging)

    # ---- availability and properties ----

    def unavailable(self) -> str:
        try:
            import cupy
        except ModuleNotFoundError:
            return f"CuPy is not installed; {INSTALL}"
        except ImportError as error:
            return f"CuPy cannot be imported: {error}; {INSTALL}"
        runtime = cupy.cuda.runtime
        driver, built = runtime.driverGetVersion(), runtime.runtimeGetVersion()
        if not driver:
            return "there is no NVIDIA driver: install one from https://www.nvidia.com/drivers; `nvidia-smi` then lists the GPUs"
        if driver // 1000 < built // 1000:
            return (
                f"the NVIDIA driver is too old: it runs CUDA {_version(driver)}, and CuPy {cupy.__version__} needs {_version(built)}; "
                f"update the driver, or {INSTALL}"
            )
        try:
            count = runtime.getDeviceCount()
        except RuntimeError as error:
            return f"there is no GPU that CUDA can use: {error}{_hidden()}"
        return "" if count else f"there is no GPU that CUDA can use{_hidden()}"

    def needs(self) -> list[Need]:
        """Return the components that the backend requires, for ``cntk doctor``."""
        return needs.needs()

    def device_count(self) -> int:
        import cupy

        count: int = cupy.cuda.runtime.getDeviceCount()
        return count

    def properties(self) -> GpuProperties:
        import cupy

        known = cupy.cuda.runtime.getDeviceProperties(self.device_id)
        version = known["major"], known["minor"]
        cores = known["multiProcessorCount"] * CORES.get(version, 128)
        return GpuProperties(self.device_id, known["name"].decode(), *version, cores, known["totalGlobalMem"] >> 20)

    def describe(self) -> str:
        import cupy

        runtime = _version(cupy.cuda.runtime.runtimeGetVersion())
        return f"CuPy {cupy.__version__} on {self.properties().name}, GPU {self.device_id}, CUDA {runtime}"

    # ---- memory ----

    def nbytes(self, shape: Sequence[int], dtype: Any) -> int:
        size = np.dtype(dtype).itemsize
        for dim in shape:
            size *= dim
        return size

    def allocate(self, nbytes: int) -> Any:
        return self.empty((nbytes,), np.uint8)

    def view(self, memory: Any, offset: int, shape: Sequence[int], dtype: Any) -> Any:
        return self.xp.ndarray(tuple(shape), dtype, memory.data + offset)

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        with self._guard:
            return self.xp.empty(shape, dtype)

    # ---- data in and out ----

    def asarray(self, data: Any, dtype: Any) -> Any:
        with self._guard:
            if isinstance(data, self.xp.ndarray):
                return data.astype(dtype, "C")
            host = np.asarray(data, dtype)
            array = self.xp.empty(host.shape, host.dtype)
            self._staging.send(array, host, self.stream)
            return array

    def load(self, array: Any, data: Any) -> None:
        with self._guard:
            if isinstance(data, (bool, int, float, np.generic)):
                array.fill(data)
            elif array.flags.c_contiguous and not isinstance(data, self.xp.ndarray):
                self._staging.send(array, data, self.stream)
            else:
                self.xp.copyto(array, self.asarray(data, array.dtype))

    def on_device(self, *data: Any) -> Any:
        return tuple([self.asarray(part, part.dtype) for part in data])

    def refuse_to_record(self, what: str) -> None:
        """Raise an error while work is recorded that may be repeated with other data.

        Raises:
            RuntimeError: work is being recorded.
        """
        if self._staging.is_recording:
            raise RuntimeError(f"{what} cannot be part of recorded work, which may be repeated with other data")

    def index(self, layout: Layout, name: str) -> Any:
        self.refuse_to_record(f"the index array '{name}'")
        mirrors = layout.__dict__.setdefault("mirrors", {})  # dropped when the layout is resized
        key = name, self.device_id
        if key not in mirrors:
            (mirrors[key],) = self.on_device(getattr(layout, name))
        return mirrors[key]

    def to_numpy(self, array: Any) -> Any:
        with self._guard:
            return array.get()

    # ---- computing ----

    def take(self, array: Any, places: Any, axis: int | None, out: Any, mode: str, /) -> Any:
        return self.xp.take(array, places, axis, out, mode)

    @cached_property
    def _draw_number(self) -> Any:
        """Device memory from which kernels read the number of a draw; reusable because the stream runs work in order."""
        return self.empty((1,), np.float64)

    def uniform(self, out: Any, seed: int, draw: int) -> None:
        from .philox import uniform

        self._draw(uniform, out, seed, draw)

    def normal(self, out: Any, seed: int, draw: int) -> None:
        from .philox import normal

        self._draw(normal, out, seed, draw)

    def _draw(self, bound: Callable[[Any, int, Any], Callable[[], None]], out: Any, seed: int, draw: int) -> None:
        """Draw random numbers with a kernel that fills a contiguous array and reads the number of the draw from device memory."""
        with self._guard:
            drawn = out if out.flags.c_contiguous else self.xp.empty(out.shape, out.dtype)
            self.load(self._draw_number, np.array([draw], np.float64))
            bound(drawn, seed, self._draw_number)()
            if drawn is not out:
                self.xp.copyto(out, drawn)

    def summing(self, full: Any, axes: tuple[int, ...], target: Any) -> Callable[[], Any]:
        return partial(full.sum, axes, target.dtype, target, target.ndim == full.ndim)

    def later(self, *numbers: Any) -> Callable[[], list[float]]:
        return self._fetching.begin(numbers, self.stream)

    def record(self, calls: Callable[[], None]) -> Callable[[], None] | None:
        from .graphs import record

        self._staging.is_recording = True
        try:
            return record(calls, self.stream)
        finally:
            self._staging.is_recording = False

    @property
    def is_recording(self) -> bool:
        """Whether work is being captured, of which nothing is done yet."""
        return bool(self._staging.is_recording)

    def duration(self, call: Callable[[], None]) -> float:
        """Return the milliseconds that the device takes for the work of a call; infinity if it cannot be recorded."""
        from .graphs import duration

        return duration(call, self)

    def synchronize(self) -> None:
        self.stream.synchronize()

    def guard(self) -> Any:
        return self._guard


class Guard:
    """Reentrant context manager that makes a device and its stream current, for one thread at a time.

    Args:
        device, stream: what becomes current.
        current: returns the stream that is current.
    """

    __slots__ = ("_current", "_device", "_has_entered", "_lock", "_stream")

    def __init__(self, device: Any, stream: Any, current: Callable[[], Any]) -> None:
        self._device, self._stream, self._current, self._lock = device, stream, current, RLock()
        self._has_entered: list[bool] = []

    def __enter__(self) -> None:
        self._lock.acquire()  # otherwise another thread's work would be captured in a recording
        enters = not self._has_entered or self._current() is not self._stream
        if enters:
            self._device.__enter__()
            self._stream.__enter__()
        self._has_entered.append(enters)

    def __exit__(self, *raised: object) -> None:
        if self._has_entered.pop():
            self._stream.__exit__(*raised)
            self._device.__exit__(*raised)
        self._lock.release()


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _hidden() -> str:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if visible is None else f"; CUDA_VISIBLE_DEVICES is '{visible}', which hides those that it does not name"
