"""Devices, streams, events and memory: ``cupy.cuda``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy as np

ALIGNMENT = 512
"""Of CuPy's memory."""


class _Thread(threading.local):
    """Where a thread's work goes."""

    def __init__(self) -> None:
        self.streams: list[Stream] = [Stream.null]
        self.warnings: list[Any] = []


class Stream:
    """Has done its work as soon as it has it.  Within one NumPy's warnings are silent, as a device has none."""

    null: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, *, priority: int | None = None) -> None:
        self.ptr = 0 if null else id(self)
        self.captured: list[Callable[[], Any]] | None = None

    def __enter__(self) -> Stream:
        _thread.streams.append(self)
        silent = np.errstate(all="ignore")
        silent.__enter__()
        _thread.warnings.append(silent)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _thread.warnings.pop().__exit__(kind, error, trace)
        _thread.streams.pop()

    def synchronize(self) -> None:
        self.require_free()

    def require_free(self) -> None:
        """Refuse what cannot be captured.

        Raises:
            CUDARuntimeError: the stream is capturing.
        """
        if self.captured is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing")

    def begin_capture(self, mode: int | None = None) -> None:
        if self.captured is not None or self is Stream.null:
            raise CUDARuntimeError("cudaErrorIllegalState: the stream is capturing, or the null stream")
        self.captured = []

    def end_capture(self) -> Graph:
        if self.captured is None:
            raise CUDARuntimeError("cudaErrorIllegalState: the stream is not capturing")
        captured, self.captured = self.captured, None
        return Graph(captured)

    def record(self, event: Event | None = None) -> Event:
        return event or Event()


class Graph:
    """Work that has been captured.

    Args:
        works: the work.
    """

    def __init__(self, works: Sequence[Callable[[], Any]]) -> None:
        self.works = list(works)

    def upload(self, stream: Stream | None = None) -> None:
        pass

    def launch(self, stream: Stream | None = None) -> None:
        for work in self.works:
            work()


class MemoryPool:
    """Memory of a graph's own."""

    def malloc(self, size: int) -> Any:
        return memory(size)


@contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    yield


class Event:
    """Has happened."""

    done = True

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        pass

    def record(self, stream: Stream | None = None) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Device:
    """The one device."""

    def __init__(self, device: int | None = None) -> None:
        self.id = device or 0
        if self.id:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def synchronize(self) -> None:
        pass


class MemoryPointer:
    """A place in memory.

    Args:
        mem: the memory, as bytes.
        offset: the place.
    """

    __slots__ = ("mem", "offset")

    def __init__(self, mem: np.ndarray[Any, Any], offset: int) -> None:
        self.mem, self.offset = mem, offset

    @property
    def ptr(self) -> int:
        start: int = self.mem.ctypes.data
        return start + self.offset

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + offset)


class CUDARuntimeError(RuntimeError):
    """What the runtime of CUDA raises."""


def get_current_stream(device_id: int = -1) -> Stream:
    return _thread.streams[-1]


def alloc_pinned_memory(size: int) -> Any:
    return np.full(size, 0xFF, np.uint8).data


def memory(nbytes: int) -> np.ndarray[Any, Any]:
    """Memory as a device's is: aligned, and not zero."""
    raw = np.full(nbytes + ALIGNMENT, 0xFF, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes]


def launch() -> None:
    """Work is handed to the device that this stand-in does at once, and so cannot capture: reads, and what has a result of its own.

    Raises:
        RuntimeError: not on the stream that has the work before it.
        CUDARuntimeError: the stream is capturing.
    """
    _require_stream()
    _thread.streams[-1].require_free()


def work(do: Callable[[], Any]) -> None:
    """Work is handed to the device: it is done, or captured."""
    _require_stream()
    captured = _thread.streams[-1].captured
    if captured is None:
        do()
    else:
        captured.append(do)


def _require_stream() -> None:
    if _thread.streams[-1] is Stream.null:
        raise RuntimeError("work outside of the backend's guard: on the null stream, which does not wait for the backend's own")


runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    driverGetVersion=lambda: 13000,
    runtimeGetVersion=lambda: 13000,
    getDeviceCount=lambda: 1,
    getDeviceProperties=lambda device: {
        "name": b"stand-in",
        "major": 9,
        "minor": 0,
        "multiProcessorCount": 132,
        "cooperativeLaunch": 1,
        "totalGlobalMem": 1 << 36,
    },
)

Stream.null = Stream(null=True)
_thread = _Thread()
