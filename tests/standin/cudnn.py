"""cuDNN over NumPy: attributes of descriptors are stored and checked, and executing a plan computes its graph."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from ctypes import c_int, c_void_p
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from cntk.backends.cupy import cudnn, pooling, rnnstack, tensors
from cntk.backends.cupy.cudnn import ELEMENTS, Attribute, Kind, Note, Pointwise, Type
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.plugins.ops.rnnstack import OptimizedRNNStack

from .library import Names, Refused, StandIn, Version, memory, numbers_at, strided

VERSION = 90900
BAD_PARAM, NOT_SUPPORTED = 2000, 3000
NAMES = {BAD_PARAM: b"CUDNN_STATUS_BAD_PARAM", NOT_SUPPORTED: b"CUDNN_STATUS_NOT_SUPPORTED", 14: b"CUDNN_STATUS_INTERNAL_ERROR"}
TYPES = {0: np.float32, 1: np.float64, 2: np.float16, 9: ml_dtypes.bfloat16}
ENGINES: tuple[tuple[Note, ...], ...] = ((Note.TENSOR_CORE, Note.DOWN_CONVERT_INPUTS), (Note.NONDETERMINISTIC,), (Note.TENSOR_CORE,), ())
"""Numerical notes of the available engines, fastest first."""

WORKSPACE = 1000


@dataclass
class Descriptor:
    """A descriptor: its kind and its attributes."""

    kind: Kind
    values: dict[Attribute, list[Any]] = field(default_factory=dict)
    is_finished: bool = False
    engine: int = -1


class Cudnn(StandIn):
    """The stand-in for cuDNN.

    Args:
        refuses: predicate on the kinds of a graph's operations; if true, no engine supports them.
        gap: bytes between matrices and biases of recurrent layers.

    Attributes:
        executed: the engine of each executed plan, and the kinds of its operations.
        streams: the streams that were set.
        called: the functions called outside the graph API.
        kept: contents of reserve spaces, which are kept for gradients, by address.
    """

    launches = (
        "cudnnBackendExecute",
        "cudnnPoolingBackward",
        "cudnnPoolingForward",
        "cudnnRNNBackwardData_v8",
        "cudnnRNNBackwardWeights_v8",
        "cudnnRNNForward",
    )

    def __init__(self, refuses: Callable[[list[Kind]], bool] = lambda kinds: False, gap: int = 0) -> None:
        self.refuses, self.gap = refuses, gap
        self.executed: list[tuple[int, list[Kind]]] = []
        self.streams: list[int] = []
        self.called: list[str] = []
        self.kept: dict[int, Any] = {}
        self.cudnnGetVersion = Version(VERSION)
        self.cudnnGetErrorString = Names(NAMES)
        modules = cudnn, tensors, pooling, rnnstack
        super().__init__({name: types for module in modules for name, types in module.SIGNATURES.items()})

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
            operation_of(made)  # refuses inconsistent tensors
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

    # ---- tensors and pooling ----

    def on_cudnnCreateTensorDescriptor(self, target: Any) -> None:
        self.handle(target, Placed())

    def on_cudnnDestroyTensorDescriptor(self, tensor: int) -> None:
        self.forget(tensor)

    def on_cudnnSetTensorNdDescriptor(self, tensor: int, dtype: int, count: int, dims: int, strides: int) -> None:
        made = self.objects[tensor]
        made.dtype, made.dims, made.strides = TYPES[dtype], tuple(numbers_at(dims, c_int, count)), tuple(numbers_at(strides, c_int, count))
        if count < 3 or min(made.dims) < 1:
            raise Refused(BAD_PARAM)

    def on_cudnnCreatePoolingDescriptor(self, target: Any) -> None:
        self.handle(target, Pools())

    def on_cudnnDestroyPoolingDescriptor(self, pools: int) -> None:
        self.forget(pools)

    def on_cudnnSetPoolingNdDescriptor(self, pools: int, mode: int, nan: int, count: int, window: int, padding: int, strides: int) -> None:
        made = self.objects[pools]
        made.mode, made.window, made.padding, made.strides = mode, *(numbers_at(at, c_int, count) for at in (window, padding, strides))
        assert nan == 1
        if any(pad >= size for pad, size in zip(made.padding, made.window, strict=True)):
            raise Refused(BAD_PARAM)

    def on_cudnnPoolingForward(self, handle: int, pools: int, one: int, x: int, x_at: int, zero: int, y: int, y_at: int) -> None:
        assert self.objects[handle] == "handle"
        windows, operand, result = (self.objects[of] for of in (pools, x, y))
        _blends(one, zero, operand)
        result.array(y_at)[...] = windows.pooled(operand.array(x_at), result.dims)
        self.called.append("forward")

    def on_cudnnPoolingBackward(
        self, handle: int, pools: int, one: int, y: int, y_at: int, dy: int, dy_at: int, x: int, x_at: int, zero: int, dx: int, dx_at: int
    ) -> None:
        assert self.objects[handle] == "handle"
        windows, grad, target = (self.objects[of] for of in (pools, dy, dx))
        assert y == dy
        _blends(one, zero, grad)
        target.array(dx_at)[...] = windows.spread(grad.array(dy_at), self.objects[x].dims)
        self.called.append("backward")

    # ---- recurrent layers ----

    def on_cudnnCreateDropoutDescriptor(self, target: Any) -> None:
        self.handle(target, "dropout")

    def on_cudnnDestroyDropoutDescriptor(self, dropout: int) -> None:
        self.forget(dropout)

    def on_cudnnSetDropoutDescriptor(self, dropout: int, handle: int, share: float, states: int | None, size: int, seed: int) -> None:
        assert (self.objects[dropout], self.objects[handle], share, states, size) == ("dropout", "handle", 0, None, 0)

    def on_cudnnCreateRNNDescriptor(self, target: Any) -> None:
        self.handle(target, Layers())

    def on_cudnnDestroyRNNDescriptor(self, layers: int) -> None:
        self.forget(layers)

    def on_cudnnSetRNNDescriptor_v8(self, layers: int, *given: Any) -> None:
        algorithm, cell, bias, both, linear, dtype, compute, math, width, hidden, projected, count, dropout, flags = given
        assert (algorithm, bias, linear, flags, projected, self.objects[dropout]) == (0, 2, 0, 0, hidden, "dropout")
        assert TYPES[compute] is (np.float64 if TYPES[dtype] is np.float64 else np.float32)
        made = self.objects[layers]
        made.cell, made.both, made.dtype, made.math = ("rnnReLU", "rnnTanh", "lstm", "gru")[cell], bool(both), TYPES[dtype], math
        made.width, made.hidden, made.count = width, hidden, count

    def on_cudnnCreateRNNDataDescriptor(self, target: Any) -> None:
        self.handle(target, Packed())

    def on_cudnnDestroyRNNDataDescriptor(self, packed: int) -> None:
        self.forget(packed)

    def on_cudnnSetRNNDataDescriptor(
        self, packed: int, dtype: int, layout: int, longest: int, count: int, size: int, lengths: int, padding: int | None
    ) -> None:
        made = self.objects[packed]
        made.dtype, made.size, made.lengths = TYPES[dtype], size, numbers_at(lengths, c_int, count)
        assert (layout, padding, longest) == (1, None, made.lengths[0])
        if made.lengths != sorted(made.lengths, reverse=True) or made.lengths[-1] < 1:
            raise Refused(BAD_PARAM)

    def on_cudnnGetRNNWeightSpaceSize(self, handle: int, layers: int, size: Any) -> None:
        assert self.objects[handle] == "handle"
        size[0] = self.objects[layers].weights * np.dtype(self.objects[layers].dtype).itemsize + self.gap

    def on_cudnnGetRNNWeightParams(
        self, handle: int, layers: int, layer: int, size: int, first: int, gate: int, matrix: int, matrix_at: Any, bias: int, bias_at: Any
    ) -> None:
        matrices, biases = self.objects[layers].places()
        itemsize = np.dtype(self.objects[layers].dtype).itemsize
        number = layer * len(matrices) // (self.objects[layers].directions * self.objects[layers].count) + gate
        matrix_at[0], bias_at[0] = c_void_p(first + matrices[number] * itemsize), c_void_p(first + biases[number] * itemsize)

    def on_cudnnGetRNNTempSpaceSizes(self, handle: int, layers: int, mode: int, packed: int, work: Any, reserve: Any) -> None:
        work[0], reserve[0] = WORKSPACE, 8 * self.objects[packed].rows if mode == 1 else 0

    def on_cudnnRNNForward(self, handle: int, layers: int, mode: int, device_lengths: int | None, *given: Any) -> None:
        below, x, above, y, states, hx, hy, cells, cx, cy, size, weights, work_size, work, reserve_size, reserve = given
        assert {device_lengths, hx, hy, cx, cy} == {None}
        made, operand = self._layers(handle, layers, below, above, states, cells), self.objects[below]
        memory(work, work_size)[...] = 0xFF
        rows, known = operand.array(x), made.numbers(weights, size)
        self.objects[above].array(y)[...] = made.compute(rows, known, operand.lengths)
        if mode == 1:
            assert reserve_size == 8 * len(rows)
            memory(reserve, reserve_size)[...] = 1
            self.kept[reserve] = rows.copy(), known.copy()
        else:
            assert (reserve_size, reserve) == (0, None)
        self.called.append(("predict", "learn")[mode])

    def on_cudnnRNNBackwardData_v8(self, handle: int, layers: int, device_lengths: int | None, *given: Any) -> None:
        above, y, dy, below, dx, states, hx, dhy, dhx, cells, cx, dcy, dcx, size, weights, _, _, reserve_size, reserve = given
        assert {device_lengths, hx, dhy, dhx, cx, dcy, dcx} == {None}
        made, operand = self._layers(handle, layers, below, above, states, cells), self.objects[below]
        assert (memory(reserve, reserve_size) == 1).all()
        memory(reserve, reserve_size)[...] = 2
        rows, known = self.kept[reserve]
        assert (known == made.numbers(weights, size)).all()
        np.testing.assert_array_equal(self.objects[above].array(y), made.compute(rows, known, operand.lengths).astype(made.dtype))
        found = made.gradients(rows, known, operand.lengths, self.objects[above].array(dy))
        operand.array(dx)[...], self.kept[reserve] = found[0], (rows, found[1])
        self.called.append("operand")

    def on_cudnnRNNBackwardWeights_v8(self, handle: int, layers: int, adds: int, device_lengths: int | None, *given: Any) -> None:
        below, x, states, hx, above, _, size, gradient, _, _, reserve_size, reserve = given
        assert (adds, device_lengths, hx) == (0, None, None)
        made = self._layers(handle, layers, below, above, states, states)
        assert (memory(reserve, reserve_size) == 2).all()
        rows, found = self.kept[reserve]
        np.testing.assert_array_equal(rows, self.objects[below].array(x))
        made.numbers(gradient, size)[...] += found.astype(made.dtype)
        self.called.append("weights")

    def _layers(self, handle: int, layers: int, below: int, above: int, states: int, cells: int) -> Layers:
        assert self.objects[handle] == "handle"
        made, operand, result = self.objects[layers], self.objects[below], self.objects[above]
        assert (operand.size, result.size, operand.lengths) == (made.width, made.hidden * made.directions, result.lengths)
        assert self.objects[states].dims == (made.count * made.directions, len(operand.lengths), made.hidden)
        assert self.objects[cells].dims == self.objects[states].dims
        return made

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


@dataclass
class Placed:
    """Descriptor of a tensor in memory."""

    dtype: Any = None
    dims: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    def array(self, address: int) -> Any:
        return strided(address, self.dtype, self.dims, self.strides)


@dataclass
class Pools:
    """Pooling descriptor; modes are 0 for max pooling, 1 and 2 for average pooling including and excluding padding."""

    mode: int = 0
    window: list[int] = field(default_factory=list)
    padding: list[int] = field(default_factory=list)
    strides: list[int] = field(default_factory=list)

    def places(self, dims: tuple[int, ...], out: tuple[int, ...]) -> Iterable[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Yield each window's index in the result, and the slice of the operand that it covers."""
        axes = list(zip(dims[2:], self.window, self.padding, self.strides, strict=True))
        if out != (*dims[:2], *((dim + 2 * pad - size) // stride + 1 for dim, size, pad, stride in axes)):
            raise Refused(BAD_PARAM)
        every = slice(None), slice(None)
        for place in product(*map(range, out[2:])):
            starts = [at * stride - pad for at, (_, _, pad, stride) in zip(place, axes, strict=True)]
            ends = [start + size for start, (_, size, _, _) in zip(starts, axes, strict=True)]
            yield (*every, *place), (*every, *(slice(max(start, 0), end) for start, end in zip(starts, ends, strict=True)))

    def count(self, part: Any) -> int:
        return int(np.prod(self.window if self.mode == 1 else part.shape[2:]))

    def pooled(self, x: Any, out: tuple[int, ...]) -> Any:
        x = x.astype(np.promote_types(x.dtype, np.float32))
        result, axes = np.empty(out, x.dtype), tuple(range(2, x.ndim))
        for place, met in self.places(x.shape, out):
            part = x[met]
            result[place] = part.max(axes) if self.mode == 0 else part.sum(axes) / self.count(part)
        return result

    def spread(self, dy: Any, dims: tuple[int, ...]) -> Any:
        assert self.mode in (1, 2)
        dx = np.zeros(dims, np.promote_types(dy.dtype, np.float32))
        for place, met in self.places(dims, dy.shape):
            dx[met] += (dy[place] / self.count(dx[met]))[(..., *(None,) * (dx.ndim - 2))]
        return dx


@dataclass
class Packed:
    """Descriptor of packed sequences, longest first, stored step by step."""

    dtype: Any = None
    size: int = 0
    lengths: list[int] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(self.lengths)

    def array(self, address: int) -> Any:
        return strided(address, self.dtype, (self.rows, self.size), (self.size, 1))


@dataclass
class Layers:
    """Descriptor of recurrent layers, which are computed by the operator."""

    cell: str = ""
    both: bool = False
    dtype: Any = None
    math: int = -1
    width: int = 0
    hidden: int = 0
    count: int = 0

    @property
    def directions(self) -> int:
        return 2 if self.both else 1

    def places(self) -> tuple[list[int], list[int]]:
        """Return the offsets of the matrix and the bias of each gate, in elements."""
        gates, matrices, end = {"lstm": 4, "gru": 3}.get(self.cell, 1), [], 0
        for layer in range(self.count):
            for _ in range(self.directions):
                for columns in (self.hidden * self.directions if layer else self.width, self.hidden):
                    for _ in range(gates):
                        matrices.append(end)
                        end += columns * self.hidden
        return matrices, [end + number * self.hidden for number in range(len(matrices))]

    @property
    def weights(self) -> int:
        return self.places()[1][-1] + self.hidden

    def numbers(self, address: int, nbytes: int) -> Any:
        """Return the weights at an address."""
        assert nbytes == self.weights * np.dtype(self.dtype).itemsize
        return strided(address, self.dtype, (self.weights,), (1,))

    def compute(self, rows: Any, weights: Any, lengths: list[int]) -> Any:
        return self._computed(rows, weights, lengths)[-1]

    def gradients(self, rows: Any, weights: Any, lengths: list[int], grad: Any) -> tuple[Any, Any]:
        """Return the gradients of the operand and of the weights."""
        op, ctx, x, w, out = self._computed(rows, weights, lengths)
        grads = np.empty_like(x), np.empty_like(w)
        op.backward(ctx, grad.astype(x.dtype), grads, out, x, w)
        return grads

    def _computed(self, rows: Any, weights: Any, lengths: list[int]) -> tuple[Any, ...]:
        op = OptimizedRNNStack(bidirectional=self.both, num_layers=self.count, hidden_size=self.hidden, recurrent_op=self.cell)
        ctx, layout = Context(NumpyBackend(), True), Layout(len(lengths), lengths)
        ctx.layouts, ctx.layout = (layout, None), layout
        x, w = (of.astype(np.promote_types(of.dtype, np.float32)) for of in (rows, weights))
        out = np.empty((len(x), self.hidden * self.directions), x.dtype)
        op.forward(ctx, out, x, w)
        return op, ctx, x, w, out


def _blends(one: int, zero: int, tensor: Placed) -> None:
    """Check that the scaling factors are alpha = 1 and beta = 0, so that results are overwritten."""
    scalar = ctypes.c_double if tensor.dtype is np.float64 else ctypes.c_float
    assert (scalar.from_address(one).value, scalar.from_address(zero).value) == (1, 0)


def kinds_of(graph: Descriptor) -> list[Kind]:
    """Return the kinds of a graph's operations."""
    return [operation.kind for operation in graph.values[Attribute.OPERATIONGRAPH_OPS]]


def operation_of(operation: Descriptor) -> tuple[Callable[..., Any], list[Descriptor], Descriptor]:
    """Return the function that an operation computes, its operands, and its result."""
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
    """Geometry of a convolution: sizes of operand and filters, padding, strides, dilation, and number of windows along each axis."""

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
        """Yield each index in a filter, and the slice of the operand that it is multiplied with."""
        for tap in product(*map(range, self.w[2:])):
            starts = [at * apart for at, apart in zip(tap, self.dilation, strict=True)]
            parts = zip(starts, self.strides, self.out, strict=True)
            yield tap, tuple(slice(start, start + (count - 1) * stride + 1, stride) for start, stride, count in parts)

    def groups(self) -> Iterable[tuple[slice, slice]]:
        """Yield the channels and filters of each group."""
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
    """Return a tensor's values in float64; the stand-in does not model cuDNN's rounding errors."""
    number = tensor.values[Attribute.TENSOR_UNIQUE_ID][0]
    if number in made:
        return made[number]
    return _array(tensor, given[number]).astype(np.float64)


def _alignment(graph: Descriptor, number: int) -> int:
    """Return the alignment in bytes declared for a tensor."""
    for operation in graph.values[Attribute.OPERATIONGRAPH_OPS]:
        _, inputs, target = operation_of(operation)
        for tensor in (*inputs, target):
            if tensor.values[Attribute.TENSOR_UNIQUE_ID] == [number]:
                return int(tensor.values[Attribute.TENSOR_BYTE_ALIGNMENT][0])
    raise AssertionError(f"the graph has no tensor {number}")


def _there(address: int | None) -> int:
    assert address is not None
    return address
