"""cuDNN's graphs over NumPy: what is set of descriptors is kept and checked, and an executed plan computes what its graph says."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from ctypes import c_void_p
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from cntk.backends.cupy.cudnn import ELEMENTS, SIGNATURES, Attribute, Kind, Note, Pointwise, Type

from .library import Names, Refused, StandIn, Version, memory, numbers_at, strided

VERSION = 90900
BAD_PARAM, NOT_SUPPORTED = 2000, 3000
NAMES = {BAD_PARAM: b"CUDNN_STATUS_BAD_PARAM", NOT_SUPPORTED: b"CUDNN_STATUS_NOT_SUPPORTED", 14: b"CUDNN_STATUS_INTERNAL_ERROR"}
TYPES = {0: np.float32, 1: np.float64, 2: np.float16}
ENGINES: tuple[tuple[Note, ...], ...] = ((Note.TENSOR_CORE, Note.DOWN_CONVERT_INPUTS), (Note.NONDETERMINISTIC,), (Note.TENSOR_CORE,), ())
"""What the engines that there are do to numbers, the fastest first."""

WORKSPACE = 1000


@dataclass
class Descriptor:
    """A descriptor: its kind and what was set of it."""

    kind: Kind
    values: dict[Attribute, list[Any]] = field(default_factory=dict)
    is_finished: bool = False
    engine: int = -1


class Cudnn(StandIn):
    """The library.

    Args:
        refuses: tells of the kinds of a graph's operations whether no engine has them.

    Attributes:
        executed: the engine of each plan that was executed, and the kinds of its operations.
        streams: those that were set.
    """

    def __init__(self, refuses: Callable[[list[Kind]], bool] = lambda kinds: False) -> None:
        self.refuses = refuses
        self.executed: list[tuple[int, list[Kind]]] = []
        self.streams: list[int] = []
        self.cudnnGetVersion = Version(VERSION)
        self.cudnnGetErrorString = Names(NAMES)
        super().__init__(SIGNATURES)

    def on_cudnnCreate(self, target: Any) -> None:
        self.handle(target, "handle")

    def on_cudnnDestroy(self, handle: int) -> None:
        self.forget(handle)

    def on_cudnnSetStream(self, handle: int, stream: int) -> None:
        assert self.objects[handle] == "handle"
        self.streams.append(stream)

    # ---- descriptors ----

    def on_cudnnBackendCreateDescriptor(self, kind: int, target: Any) -> None:
        self.handle(target, Descriptor(Kind(kind)))

    def on_cudnnBackendDestroyDescriptor(self, descriptor: int) -> None:
        self.forget(descriptor)

    def on_cudnnBackendSetAttribute(self, descriptor: int, name: int, type_: int, count: int, address: int) -> None:
        made = self.objects[descriptor]
        assert not made.is_finished
        values = numbers_at(address, ELEMENTS.get(Type(type_), ctypes.c_int), count)
        if type_ == Type.BACKEND_DESCRIPTOR:
            values = [self.objects[value] for value in values]
            assert all(value.is_finished for value in values)
        made.values[Attribute(name)] = values

    def on_cudnnBackendFinalize(self, descriptor: int) -> None:
        made = self.objects[descriptor]
        if made.kind is Kind.TENSOR:
            assert len(made.values[Attribute.TENSOR_DIMENSIONS]) == len(made.values[Attribute.TENSOR_STRIDES])
            if not all(dim > 0 for dim in made.values[Attribute.TENSOR_DIMENSIONS]):
                raise Refused(BAD_PARAM)
        if made.kind in (Kind.OPERATIONGRAPH, Kind.EXECUTION_PLAN):
            handle = Attribute.OPERATIONGRAPH_HANDLE if made.kind is Kind.OPERATIONGRAPH else Attribute.EXECUTION_PLAN_HANDLE
            assert self.objects[made.values[handle][0]] == "handle"
        if made.kind is Kind.ENGINEHEUR and self.refuses(kinds_of(made.values[Attribute.ENGINEHEUR_OPERATION_GRAPH][0])):
            raise Refused(NOT_SUPPORTED)
        if made.kind in BY_KIND:
            operation_of(made)  # what does not go together is refused
        made.is_finished = True

    def on_cudnnBackendGetAttribute(self, descriptor: int, name: int, type_: int, room: int, count: Any, address: int | None) -> None:
        made, kind = self.objects[descriptor], ELEMENTS.get(Type(type_), ctypes.c_int)
        assert made.is_finished
        match Attribute(name):
            case Attribute.ENGINEHEUR_RESULTS:
                count[0] = len(ENGINES)
                for number, handle in enumerate(numbers_at(address, c_void_p, room) if address else ()):
                    config = self.objects[handle]
                    config.engine, config.is_finished = number, True
                    config.values[Attribute.ENGINEHEUR_OPERATION_GRAPH] = made.values[Attribute.ENGINEHEUR_OPERATION_GRAPH]
            case Attribute.ENGINECFG_ENGINE:
                (handle,) = numbers_at(_there(address), c_void_p, room)
                engine = self.objects[handle]
                engine.engine, engine.is_finished = made.engine, True
                count[0] = 1
            case Attribute.ENGINE_NUMERICAL_NOTE:
                notes = ENGINES[made.engine]
                (kind * room).from_address(_there(address))[: len(notes)] = notes
                count[0] = len(notes)
            case Attribute.EXECUTION_PLAN_WORKSPACE_SIZE:
                kind.from_address(_there(address)).value = WORKSPACE
                count[0] = 1
            case _:
                raise Refused(BAD_PARAM)

    # ---- computing ----

    def on_cudnnBackendExecute(self, handle: int, plan: int, pack: int) -> None:
        assert self.objects[handle] == "handle"
        (config,) = self.objects[plan].values[Attribute.EXECUTION_PLAN_ENGINE_CONFIG]
        (graph,) = config.values[Attribute.ENGINEHEUR_OPERATION_GRAPH]
        self.executed.append((config.engine, kinds_of(graph)))
        values = self.objects[pack].values
        (workspace,) = values[Attribute.VARIANT_PACK_WORKSPACE]
        memory(workspace, WORKSPACE)[...] = 0xFF
        numbers, pointers = values[Attribute.VARIANT_PACK_UNIQUE_IDS], values[Attribute.VARIANT_PACK_DATA_POINTERS]
        given = dict(zip(numbers, pointers, strict=True))
        made: dict[int, Any] = {}
        for operation in graph.values[Attribute.OPERATIONGRAPH_OPS]:
            compute, inputs, target = operation_of(operation)
            result = compute(*(_read(tensor, given, made) for tensor in inputs))
            number = target.values[Attribute.TENSOR_UNIQUE_ID][0]
            if target.values[Attribute.TENSOR_IS_VIRTUAL][0]:
                made[number] = result
            else:
                _array(target, given[number])[...] = result
        assert not any(pointer % _alignment(graph, number) for number, pointer in given.items())


def kinds_of(graph: Descriptor) -> list[Kind]:
    """Kinds of a graph's operations."""
    return [operation.kind for operation in graph.values[Attribute.OPERATIONGRAPH_OPS]]


def operation_of(operation: Descriptor) -> tuple[Callable[..., Any], list[Descriptor], Descriptor]:
    """What an operation computes, from which tensors, and the tensor that it writes."""
    return BY_KIND[operation.kind](operation)


def _of_convolution(name: str, inputs: str, target: str, compute: Callable[..., Any]) -> Callable[[Descriptor], Any]:
    def found(operation: Descriptor) -> Any:
        def value(what: str) -> Any:
            return operation.values[Attribute[f"OPERATION_CONVOLUTION_{name}_{what}"]][0]

        described = value("CONV_DESC").values
        assert (value("ALPHA"), value("BETA")) == (1, 0)
        assert described[Attribute.CONVOLUTION_CONV_MODE] == [1]
        before, behind, strides, dilation = (
            described[Attribute[f"CONVOLUTION_{what}"]] for what in ("PRE_PADDINGS", "POST_PADDINGS", "FILTER_STRIDES", "DILATIONS")
        )
        assert described[Attribute.CONVOLUTION_SPATIAL_DIMS] == [len(strides)]
        tensors = {what: value(what) for what in (*inputs.split(), target)}
        x, w, y = (next(_dims(tensors[what]) for what in tensors if what.endswith(letter)) for letter in "XWY")
        spans = [(kernel - 1) * apart + 1 for kernel, apart in zip(w[2:], dilation, strict=True)]
        expected = [
            (dim + first + last - span) // stride + 1
            for dim, first, last, span, stride in zip(x[2:], before, behind, spans, strides, strict=True)
        ]
        if len(strides) not in (2, 3) or y[2:] != expected or min(*before, *behind) < 0 or x[1] % w[1] or (x[0], w[0]) != (y[0], y[1]):
            raise Refused(BAD_PARAM)
        windows = Windows(x, w, before, behind, strides, dilation, expected)
        return (lambda *arrays: compute(windows, *arrays)), [tensors[what] for what in inputs.split()], tensors[target]

    return found


@dataclass
class Windows:
    """How filters slide: sizes of operand and filters, padding, strides and dilation, and windows along each axis."""

    x: list[int]
    w: list[int]
    before: list[int]
    behind: list[int]
    strides: list[int]
    dilation: list[int]
    out: list[int]

    def padded(self, x: Any) -> Any:
        return np.pad(x, [(0, 0), (0, 0), *zip(self.before, self.behind, strict=True)])

    def taps(self) -> Iterable[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Each place in a filter, and what it meets."""
        for tap in product(*map(range, self.w[2:])):
            starts = [at * apart for at, apart in zip(tap, self.dilation, strict=True)]
            parts = zip(starts, self.strides, self.out, strict=True)
            yield tap, tuple(slice(start, start + (count - 1) * stride + 1, stride) for start, stride, count in parts)

    def groups(self) -> Iterable[tuple[slice, slice]]:
        """Channels and filters of each group."""
        count, channels = self.x[1] // self.w[1], self.w[1]
        maps = self.w[0] // count
        return [(slice(at * channels, (at + 1) * channels), slice(at * maps, (at + 1) * maps)) for at in range(count)]


def _forward(windows: Windows, x: Any, w: Any) -> Any:
    planes = windows.padded(x)
    y = np.zeros((x.shape[0], w.shape[0], *windows.out), planes.dtype)
    for tap, part in windows.taps():
        for channels, maps in windows.groups():
            y[:, maps] += np.einsum("nc...,kc->nk...", planes[(slice(None), channels, *part)], w[(maps, slice(None), *tap)])
    return y


def _backward_data(windows: Windows, w: Any, dy: Any) -> Any:
    planes = np.zeros_like(windows.padded(np.zeros(windows.x, dy.dtype)))
    for tap, part in windows.taps():
        for channels, maps in windows.groups():
            planes[(slice(None), channels, *part)] += np.einsum("nk...,kc->nc...", dy[:, maps], w[(maps, slice(None), *tap)])
    inside = zip(windows.before, windows.x[2:], strict=True)
    return planes[(slice(None), slice(None), *(slice(first, first + dim) for first, dim in inside))]


def _backward_filters(windows: Windows, x: Any, dy: Any) -> Any:
    planes, dw = windows.padded(x), np.zeros(windows.w, dy.dtype)
    for tap, part in windows.taps():
        for channels, maps in windows.groups():
            met, grad = planes[(slice(None), channels, *part)], dy[:, maps]
            dw[(maps, slice(None), *tap)] = np.einsum("ncp,nkp->kc", *(of.reshape(*of.shape[:2], -1) for of in (met, grad)))
    return dw


def _of_each(operation: Descriptor) -> Any:
    (described,) = operation.values[Attribute.OPERATION_POINTWISE_PW_DESCRIPTOR]
    inputs = [operation.values[Attribute.OPERATION_POINTWISE_XDESC][0], *operation.values.get(Attribute.OPERATION_POINTWISE_BDESC, [])]
    compute = {Pointwise.ADD: np.add, Pointwise.RELU_FWD: lambda x: np.maximum(x, 0)}[described.values[Attribute.POINTWISE_MODE][0]]
    return compute, inputs, operation.values[Attribute.OPERATION_POINTWISE_YDESC][0]


BY_KIND: dict[Kind, Callable[[Descriptor], Any]] = {
    Kind.OPERATION_CONVOLUTION_FORWARD: _of_convolution("FORWARD", "X W", "Y", _forward),
    Kind.OPERATION_CONVOLUTION_BACKWARD_DATA: _of_convolution("BWD_DATA", "W DY", "DX", _backward_data),
    Kind.OPERATION_CONVOLUTION_BACKWARD_FILTER: _of_convolution("BWD_FILTER", "X DY", "DW", _backward_filters),
    Kind.OPERATION_POINTWISE: _of_each,
}


def _dims(tensor: Descriptor) -> list[int]:
    return tensor.values[Attribute.TENSOR_DIMENSIONS]


def _array(tensor: Descriptor, address: int) -> Any:
    dtype = TYPES[tensor.values[Attribute.TENSOR_DATA_TYPE][0]]
    return strided(address, dtype, tuple(_dims(tensor)), tuple(tensor.values[Attribute.TENSOR_STRIDES]))


def _read(tensor: Descriptor, given: dict[int, int], made: dict[int, Any]) -> Any:
    """A tensor's numbers, in float32 at least."""
    number = tensor.values[Attribute.TENSOR_UNIQUE_ID][0]
    if number in made:
        return made[number]
    array = _array(tensor, given[number])
    return array.astype(np.promote_types(array.dtype, np.float32))


def _alignment(graph: Descriptor, number: int) -> int:
    """Bytes of which the address of a tensor is said to be a multiple."""
    for operation in graph.values[Attribute.OPERATIONGRAPH_OPS]:
        _, inputs, target = operation_of(operation)
        for tensor in (*inputs, target):
            if tensor.values[Attribute.TENSOR_UNIQUE_ID] == [number]:
                return int(tensor.values[Attribute.TENSOR_BYTE_ALIGNMENT][0])
    raise AssertionError(f"the graph has no tensor {number}")


def _there(address: int | None) -> int:
    assert address is not None
    return address
