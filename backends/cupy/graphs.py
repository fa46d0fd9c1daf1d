"""CUDA graphs: work that a stream has been given once, and is given again by one call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import cupy


def record(calls: Callable[[], None], stream: Any) -> Callable[[], None] | None:
    """A function that has a stream do the work that *calls* gives it; None if some of it cannot be in a graph.

    Memory that is allocated meanwhile comes from a pool of the graph's own, so that nobody else is given it while the graph exists.

    Args:
        calls: gives work to the stream, which is the current one.
        stream: the stream.
    """
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        stream.begin_capture()
        try:
            calls()
        except BaseException as error:
            with suppress(RuntimeError):  # what is refused ends the capture
                stream.end_capture()
            if isinstance(error, (NotImplementedError, RuntimeError)):  # CuPy's own calls of libraries; reads of the device
                return None
            raise
        graph = stream.end_capture()
    graph.upload(stream)
    return partial(_launch, graph, stream, pool)


def _launch(graph: Any, stream: Any, pool: Any) -> None:
    """Launch a graph; the pool is an argument so that it lives as long as what launches."""
    graph.launch(stream)
