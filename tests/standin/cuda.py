"""Devices, streams, events and memory: ``cupy.cuda``."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy as np

from .rules import UPLOAD, note

ALIGNMENT = 512
"""Alignment of CuPy's memory in bytes."""


class _Thread(threading.local):
    """The stack of current streams of a thread."""

    def __init__(self) -> None:
        self.streams: list[Stream] = [Stream.null]
        self.warnings: list[Any] = []


class Stream:
    """A stream that runs work immediately.  NumPy's warnings are disabled while it is current, as a device raises none."""

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
        """Refuse an operation that cannot be captured.

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
    """A graph of captured work.

    Args:
        works: the captured functions.
    """

    def __init__(self, works: Sequence[Callable[[], Any]]) -> None:
        self.works = list(works)

    def upload(self, stream: Stream | None = None) -> None:
        pass

    def launch(self, stream: Stream | None = None) -> None:
        for work in self.works:
            work()


class MemoryPool:
    """The private memory pool of a graph."""

    def malloc(self, size: int) -> Any:
        return memory(size)


@contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    yield


class Event:
    """An event, which is always done.

    Attributes:
        seconds: when it was recorded; None before.
    """

    done = True

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.seconds: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        self.seconds = perf_counter()

    def synchronize(self) -> None:
        pass


def get_elapsed_time(start: Event, end: Event) -> float:
    """Return the milliseconds between two recorded events."""
    if start.seconds is None or end.seconds is None:
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: an event has not been recorded")
    return 1000 * (end.seconds - start.seconds)


class Device:
    """The only device."""

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
    """A pointer into device memory.

    Args:
        mem: the memory, as bytes.
        offset: offset in the memory in bytes.
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
    """Error raised by the CUDA runtime."""


def get_current_stream(device_id: int = -1) -> Stream:
    return _thread.streams[-1]


def alloc_pinned_memory(size: int) -> Any:
    return np.full(size, 0xFF, np.uint8).data


def _memcpy_async(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    """Copy from pinned memory to the device or back; data of the host cannot be captured."""
    _thread.streams[-1].require_free()
    if kind == 1:
        note(UPLOAD)
    ctypes.memmove(dst, src, size)


def memory(nbytes: int) -> np.ndarray[Any, Any]:
    """Allocate memory like a device's: aligned, and not zeroed."""
    raw = np.full(nbytes + ALIGNMENT, 0xFF, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes]


def launch() -> None:
    """Check that work can run that the stand-in does immediately and cannot capture: reads, and functions that allocate their result.

    Raises:
        RuntimeError: the current stream is the null stream, which does not wait for the backend's.
        CUDARuntimeError: the stream is capturing.
    """
    _require_stream()
    _thread.streams[-1].require_free()


def work(do: Callable[[], Any]) -> None:
    """Enqueue work on the current stream, which runs or captures it."""
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
    memcpyAsync=_memcpy_async,
    getDeviceProperties=lambda device: {
        "name": b"stand-in",
        "major": 9,
        "minor": 0,
        "multiProcessorCount": 132,
        "cooperativeLaunch": 1,
        "sharedMemPerBlockOptin": 232448,
        "totalGlobalMem": 1 << 36,
    },
)

Stream.null = Stream(null=True)
_thread = _Thread()
