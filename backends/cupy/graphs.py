"""CUDA graphs: capture work that is enqueued on a stream, replay it with one launch, and time it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any

import cupy

REPEATS = 8
"""How often timed work is repeated in a graph, between whose launches the device may wait for the host."""

RUNS = 5
"""How often such a graph is timed; the least time counts."""


def record(calls: Callable[[], None], stream: Any) -> Callable[[], None] | None:
    """Capture the work that *calls* enqueues in a CUDA graph.

    Memory allocated during capture comes from a pool private to the graph, so that it is not reused while the graph exists.

    Args:
        calls: enqueues the work on the current stream, which is *stream*.
        stream: the stream to capture and to replay on.

    Returns:
        A function that replays the work; None if some of it cannot be captured.
    """
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        stream.begin_capture()
        try:
            calls()
        except BaseException as error:
            with suppress(RuntimeError):  # an operation that cannot be captured ends the capture
                stream.end_capture()
            if isinstance(error, (NotImplementedError, RuntimeError)):  # CuPy's own library calls; reads from the device
                return None
            raise
        graph = stream.end_capture()
    graph.upload(stream)
    return partial(_launch, graph, stream, pool)


def _launch(graph: Any, stream: Any, pool: Any) -> None:
    """Launch a graph; taking the pool as an argument keeps it alive as long as the launch function."""
    graph.launch(stream)


def duration(call: Callable[[], None], backend: Any) -> float:
    """Return the milliseconds that the device takes for the work of a call, without the host's share.

    Args:
        call: enqueues the work.
        backend: the backend, which is not recording; its device and stream are current.

    Returns:
        The time; infinity if the work cannot be recorded.
    """

    def repeated() -> None:
        for _ in range(REPEATS):
            call()

    call()  # loads kernels, which cannot be part of a capture
    replay = backend.record(repeated)
    if replay is None:
        return inf
    return min(_timed(replay, backend.stream) for _ in range(RUNS)) / REPEATS


def _timed(call: Callable[[], None], stream: Any) -> float:
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record(stream)
    call()
    end.record(stream)
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end))
