"""Primitives of oneDNN with their memory objects, and reorders of what they read and write where they want another format.

A primitive and its memory objects belong to one thread of Python: which arrays they work on is said just before they run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from cntk.core.common.shape import size_of
from cntk.core.common.threads import max_threads
from cntk.extend import Context

from . import library as dnn
from .library import Argument, Dims, created, load


class Handle:
    """An object of the library, which is destroyed with this one."""

    def __init__(self, kind: str, create: str, *arguments: Any) -> None:
        library = load()
        self._as_parameter_ = created(getattr(library, create), *arguments)
        self._destroy = getattr(library, f"dnnl_{kind}_destroy")

    def __del__(self) -> None:
        if hasattr(self, "_destroy"):  # creating it may have failed
            self._destroy(self)


class Descriptor(Handle):
    """What the library says of a primitive."""

    def __init__(self, create: str, *arguments: Any) -> None:
        super().__init__("primitive_desc", create, *arguments)

    def format(self, query: int, index: int) -> Any:
        """The format of an argument, or of the scratchpad."""
        return load().dnnl_primitive_desc_query_md(self, query, index)


@lru_cache(maxsize=1)
def engine() -> Any:
    """The processor."""
    return created(load().dnnl_engine_create, dnn.CPU, 0)


@lru_cache(maxsize=1)
def attributes() -> Any:
    """What all primitives have in common: they work in memory that they are handed."""
    made = created(load().dnnl_primitive_attr_create)
    load().dnnl_primitive_attr_set_scratchpad_mode(made, dnn.USER_SCRATCHPAD)
    return made


class _Stream(threading.local):
    """The stream of a thread of Python."""

    def __init__(self) -> None:
        self.handle = Handle("stream", "dnnl_stream_create", engine(), dnn.IN_ORDER)


@lru_cache(maxsize=1)
def _stream() -> _Stream:
    return _Stream()


@contextmanager
def threads_of_calls() -> Iterator[int]:
    """Tell OpenMP how many threads are to share the work: one in a process that was forked from the one which loaded the library."""
    library = load()
    number = max_threads() if os.getpid() == library.loaded_in else 1
    before = library.omp_get_max_threads()
    library.omp_set_num_threads(number)
    try:
        yield number
    finally:
        library.omp_set_num_threads(before)


def plain(shape: Sequence[int]) -> Handle:
    """The format of a contiguous array."""
    steps = [size_of(shape[axis + 1 :]) for axis in range(len(shape))]
    create = "dnnl_memory_desc_create_with_strides"
    return Handle("memory_desc", create, len(shape), Dims(*shape), dnn.FLOAT32, Dims(*steps))


def free(shape: Sequence[int]) -> Handle:
    """A format that a primitive may choose."""
    return Handle("memory_desc", "dnnl_memory_desc_create_with_tag", len(shape), Dims(*shape), dnn.FLOAT32, dnn.ANY)


class Primitive:
    """A primitive.

    Args:
        descriptor: the library's description of it.
        arguments: numbers of its arguments, in the order in which their arrays are given.
    """

    def __init__(self, descriptor: Descriptor, *arguments: int) -> None:
        self._descriptor = descriptor
        self._primitive = Handle("primitive", "dnnl_primitive_create", descriptor)
        formats = [*(self.format(number) for number in arguments), descriptor.format(dnn.SCRATCHPAD_FORMAT, 0)]
        self._scratchpad = load().dnnl_memory_desc_get_size(formats[-1])
        self._memories = [Handle("memory", "dnnl_memory_create", format, engine(), None) for format in formats]
        pairs = zip((*arguments, dnn.SCRATCHPAD), self._memories, strict=True)
        self._arguments = (Argument * len(formats))(*(Argument(number, memory._as_parameter_) for number, memory in pairs))

    def format(self, argument: int) -> Any:
        """The format that it wants of an argument; it lives as long as this primitive."""
        return self._descriptor.format(dnn.ARGUMENT_FORMAT, argument)

    def __call__(self, ctx: Context, *arrays: Any) -> None:
        """Run on *arrays*, one for each argument."""
        library = load()
        scratchpad = ctx.scratch("oneDNN's scratchpad", (self._scratchpad,), np.uint8)
        for memory, array in zip(self._memories, (*arrays, scratchpad), strict=True):
            library.dnnl_memory_set_data_handle(memory, array.__array_interface__["data"][0])
        library.dnnl_primitive_execute(self._primitive, _stream().handle, len(self._arguments), self._arguments)


class Border:
    """Where the arrays of one of a primitive's arguments come in or go out.

    Args:
        outer: the format of the arrays.
        primitive: what reads or writes them, in a format of its own.
        argument: number of the argument.
        is_result: whether arrays go out.
    """

    def __init__(self, outer: Handle, primitive: Primitive, argument: int, is_result: bool) -> None:
        library = load()
        self._primitive, self._argument = primitive, argument
        self._reorder = None
        inner = primitive.format(argument)
        if not library.dnnl_memory_desc_equal(outer, inner):
            self._size = library.dnnl_memory_desc_get_size(inner)
            read, written = (inner, outer) if is_result else (outer, inner)
            descriptor = Descriptor("dnnl_reorder_primitive_desc_create", read, engine(), written, engine(), attributes())
            self._reorder = Primitive(descriptor, dnn.SOURCE, dnn.RESULT)

    def agrees_with(self, other: Border) -> bool:
        """Whether the format inside is the same."""
        return bool(load().dnnl_memory_desc_equal(*(border._primitive.format(border._argument) for border in (self, other))))

    def inside(self, ctx: Context, name: str, array: Any) -> Any:
        """The array itself, or memory called *name* for its elements in the primitive's format."""
        return array if self._reorder is None else ctx.scratch(name, (self._size,), np.uint8)

    def enter(self, ctx: Context, name: str, array: Any) -> Any:
        """What the primitive is to read."""
        inner = self.inside(ctx, name, array)
        if self._reorder is not None:
            self._reorder(ctx, array, inner)
        return inner

    def leave(self, ctx: Context, inner: Any, array: Any) -> None:
        """Bring what the primitive has written to its place."""
        if self._reorder is not None:
            self._reorder(ctx, inner, array)
