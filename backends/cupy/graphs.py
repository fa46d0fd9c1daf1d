"""CUDA graphs: capture work that is enqueued on a stream, and replay it with one launch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import cupy


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
