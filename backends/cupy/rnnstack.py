"""Stacks of recurrent layers by cuDNN, whose packed sequence layout and weight layout are the same as the operator's.

Falls back to the operator if cuDNN is missing, or expects the weights in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import POINTER, byref, c_float, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple

import numpy as np

from ...core.common.shape import size_of
from ...core.types.context import Context
from ...core.types.layout import Layout
from . import libraries, tensors
from .calls import Call
from .cudnn import TYPES, Cudnn, computing_type, cudnn_of
from .tensors import ints

CELLS = {"rnnReLU": 0, "rnnTanh": 1, "lstm": 2, "gru": 3}
"""Cell types by name: cudnnRNNMode_t."""

STANDARD, DOUBLE_BIAS, LINEAR_INPUT, NO_PADDING = 0, 2, 0, 0
ONE_WAY, BOTH_WAYS = 0, 1
PACKED = 1
INFERENCE, TRAINING = 0, 1
ADD = 0
DEFAULT_MATH, TENSOR_CORES, FMA_ALONE = 0, 1, 3

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cudnnCreateDropoutDescriptor": (POINTER(c_void_p),),
    "cudnnDestroyDropoutDescriptor": (c_void_p,),
    "cudnnSetDropoutDescriptor": (c_void_p, c_void_p, c_float, c_void_p, c_size_t, c_uint64),
    "cudnnCreateRNNDescriptor": (POINTER(c_void_p),),
    "cudnnDestroyRNNDescriptor": (c_void_p,),
    "cudnnSetRNNDescriptor_v8": (c_void_p, *(c_int,) * 12, c_void_p, c_uint32),
    "cudnnCreateRNNDataDescriptor": (POINTER(c_void_p),),
    "cudnnDestroyRNNDataDescriptor": (c_void_p,),
    "cudnnSetRNNDataDescriptor": (c_void_p, *(c_int,) * 5, c_void_p, c_void_p),
    "cudnnGetRNNWeightSpaceSize": (c_void_p, c_void_p, POINTER(c_size_t)),
    "cudnnGetRNNWeightParams": (
        c_void_p,
        c_void_p,
        c_int,
        c_size_t,
        c_void_p,
        c_int,
        c_void_p,
        POINTER(c_void_p),
        c_void_p,
        POINTER(c_void_p),
    ),
    "cudnnGetRNNTempSpaceSizes": (c_void_p, c_void_p, c_int, c_void_p, POINTER(c_size_t), POINTER(c_size_t)),
    "cudnnRNNForward": (c_void_p, c_void_p, c_int, *(c_void_p,) * 11, *(c_size_t, c_void_p) * 3),
    "cudnnRNNBackwardData_v8": (*(c_void_p,) * 16, *(c_size_t, c_void_p) * 3),
    "cudnnRNNBackwardWeights_v8": (c_void_p, c_void_p, c_int, *(c_void_p,) * 7, *(c_size_t, c_void_p) * 3),
}
"""Argument types of the library functions that are used."""


class OptimizedRNNStackKernel:
    """Kernel for ``optimized_rnnstack``."""

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, x: Any, weights: Any) -> bool:
        """Whether to fall back to the operator."""
        return _stack_for(op, ctx, out, x, weights) is None

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any, weights: Any) -> None:
        stack = _stack_for(op, ctx, out, x, weights)
        if stack is None:
            op.forward(ctx, out, x, weights)
        elif len(x):
            stack.forward(ctx, x, weights, out)()

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any, weights: Any) -> None:
        stack = _stack_for(op, ctx, out, x, weights)
        if stack is None:
            op.backward(ctx, grad, grads, out, x, weights)
            return
        if grads[1] is not None:
            grads[1].fill(0)
        if len(x):
            for call in stack.backward(ctx, grad, grads, out, x, weights):
                call()


class _Sequences(NamedTuple):
    """cuDNN's descriptors of a batch of sequences.

    Attributes:
        layout: the layout that they describe.
        below, above: descriptors of the operand and the result.
        states: descriptor of the hidden states.
    """

    layout: Layout
    below: c_void_p
    above: c_void_p
    states: c_void_p


class _Stack:
    """A stack of recurrent layers.

    Args:
        library: cuDNN.
        op: the operator.
        dtype: name of the element type.
        width: size of the operand's vectors.
        weights: the weights of all layers.
    """

    def __init__(self, library: Cudnn, op: Any, dtype: str, width: int, weights: Any) -> None:
        self._library, self._op, self._dtype, self._width = library, op, dtype, width
        self._functions = library.functions({**tensors.SIGNATURES, **SIGNATURES})
        self._directions = 2 if op.bidirectional else 1
        self._nbytes = weights.nbytes
        self._description = self._described()
        self._sequences: _Sequences | None = None
        self._reserve: Any = None
        self.fits = self._lie_alike(weights)

    def forward(self, ctx: Context, x: Any, weights: Any, out: Any, mode: int | None = None) -> Call:
        """Return the call that computes the result; in training, or if *mode* is TRAINING, it keeps what the gradients need."""
        mode = (TRAINING if ctx.training else INFERENCE) if mode is None else mode
        sequences = self._told(ctx)
        spaces = self._spaces(ctx, sequences, mode)
        given = (self._description, mode, None, sequences.below, x.data.ptr, sequences.above, out.data.ptr)
        states = (sequences.states, None, None) * 2
        return self._library.launching(self._functions["cudnnRNNForward"], *given, *states, self._nbytes, weights.data.ptr, *spaces)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any, weights: Any) -> Iterator[Call]:
        """Yield the calls that compute the gradients, in order; that of the weights is accumulated."""
        dx, dweights = grads
        if not ctx.training:
            out = ctx.scratch("result", out.shape, out.dtype)
            yield self.forward(ctx, x, weights, out, TRAINING)
        sequences = self._told(ctx)
        spaces = self._spaces(ctx, sequences, TRAINING)
        dx = ctx.scratch("gradient", x.shape, x.dtype) if dx is None else dx
        given = (self._description, None, sequences.above, out.data.ptr, grad.data.ptr, sequences.below, dx.data.ptr)
        states = (sequences.states, None, None, None) * 2
        known = self._nbytes, weights.data.ptr
        yield self._library.launching(self._functions["cudnnRNNBackwardData_v8"], *given, *states, *known, *spaces)
        if dweights is not None:
            read = sequences.below, x.data.ptr, sequences.states, None, sequences.above, out.data.ptr
            target = self._nbytes, dweights.data.ptr
            add = self._functions["cudnnRNNBackwardWeights_v8"]
            yield self._library.launching(add, self._description, ADD, None, *read, *target, *spaces)

    # ---- descriptors ----

    def _described(self) -> c_void_p:
        op, functions = self._op, self._functions
        dropout = self._made("Dropout")
        functions["cudnnSetDropoutDescriptor"](dropout, self._library.handle, 0.0, None, 0, 0)
        made = self._made("RNN", dropout)
        functions["cudnnSetRNNDescriptor_v8"](
            made,
            STANDARD,
            CELLS[op.recurrent_op],
            DOUBLE_BIAS,
            BOTH_WAYS if op.bidirectional else ONE_WAY,
            LINEAR_INPUT,
            TYPES[self._dtype],
            TYPES[computing_type(self._dtype)],
            _math(self._dtype),
            self._width,
            op.hidden_size,
            op.hidden_size,
            op.num_layers,
            dropout,
            NO_PADDING,
        )
        return made

    def _told(self, ctx: Context) -> _Sequences:
        """Return the descriptors of the sequences, created anew when the layout has changed."""
        layout = ctx.layouts[0]
        assert layout is not None
        if self._sequences is None or self._sequences.layout is not layout:
            lengths = _lengths(layout)
            below, above = (self._rows(lengths, size) for size in (self._width, self._op.hidden_size * self._directions))
            states = self._tensor((self._op.num_layers * self._directions, len(lengths), self._op.hidden_size))
            self._sequences = _Sequences(layout, below, above, states)
        return self._sequences

    def _rows(self, lengths: Sequence[int], size: int) -> c_void_p:
        made = self._made("RNNData")
        dtype = TYPES[self._dtype]
        self._functions["cudnnSetRNNDataDescriptor"](made, dtype, PACKED, lengths[0], len(lengths), size, ints(lengths), None)
        return made

    def _tensor(self, dims: tuple[int, ...]) -> c_void_p:
        made = self._made("Tensor")
        strides = [size_of(dims[axis + 1 :]) for axis in range(len(dims))]
        self._functions["cudnnSetTensorNdDescriptor"](made, TYPES[self._dtype], len(dims), ints(dims), ints(strides))
        return made

    def _spaces(self, ctx: Context, sequences: _Sequences, mode: int) -> tuple[Any, ...]:
        """Return size and address of the workspace, and of the reserve space, which is kept for the gradients."""
        work, reserve = c_size_t(), c_size_t()
        ask = self._functions["cudnnGetRNNTempSpaceSizes"]
        ask(self._library.handle, self._description, mode, sequences.below, byref(work), byref(reserve))
        if mode == INFERENCE:
            return work.value, self._library.space(work.value).data.ptr, 0, None
        if self._reserve is None or self._reserve.nbytes < reserve.value:
            self._reserve = ctx.backend.allocate(reserve.value)
        return work.value, self._library.space(work.value).data.ptr, reserve.value, self._reserve.data.ptr

    def _made(self, kind: str, *needs: Any) -> c_void_p:
        create, destroy = (self._functions[f"cudnn{verb}{kind}Descriptor"] for verb in ("Create", "Destroy"))
        return self._library.made(create, destroy, *needs)

    # ---- weights ----

    def _lie_alike(self, weights: Any) -> bool:
        """Whether cuDNN has each matrix and bias at the same offset as the operator."""
        size = c_size_t()
        ask = self._functions["cudnnGetRNNWeightSpaceSize"]
        ask(self._library.handle, self._description, byref(size))
        return size.value == self._nbytes and list(self._found(weights)) == list(self._expected(weights.itemsize))

    def _expected(self, itemsize: int) -> Iterator[tuple[int, int]]:
        """Yield the operator's byte offsets of the matrix and the bias of each gate, layer by layer."""
        hidden, layers = self._op.hidden_size, self._op.num_layers * self._directions
        gates = _gates(self._op)
        matrix, sizes = 0, []
        for layer in range(layers):
            below = self._width if layer < self._directions else hidden * self._directions
            for columns in (below, hidden):
                for _ in range(gates):
                    sizes.append(matrix)
                    matrix += columns * hidden
        for number, place in enumerate(sizes):
            yield place * itemsize, (matrix + number * hidden) * itemsize

    def _found(self, weights: Any) -> Iterator[tuple[int, int]]:
        """Yield cuDNN's byte offsets of the matrix and the bias of each gate, layer by layer."""
        ask, first = self._functions["cudnnGetRNNWeightParams"], weights.data.ptr
        of_matrix, of_bias = self._made("Tensor"), self._made("Tensor")
        for layer in range(self._op.num_layers * self._directions):
            for gate in range(2 * _gates(self._op)):
                matrix, bias = c_void_p(), c_void_p()
                places = of_matrix, byref(matrix), of_bias, byref(bias)
                ask(self._library.handle, self._description, layer, self._nbytes, first, gate, *places)
                yield (matrix.value or 0) - first, (bias.value or 0) - first


def _stack_for(op: Any, ctx: Context, out: Any, x: Any, weights: Any) -> _Stack | None:
    """Return the stack, created on first use; None to fall back to the operator."""
    if type(ctx.state) is _Stack:
        return ctx.state
    backend: Any = ctx.backend
    library = cudnn_of(backend) if all(array.flags.c_contiguous for array in (out, x, weights)) and weights.size else None
    if library is None:
        return None
    stack = _Stack(library, op, x.dtype.name, x.shape[1], weights)
    if stack.fits:
        ctx.state = stack
        return stack
    return None


def _lengths(layout: Layout) -> list[int]:
    """Return the lengths of the non-empty sequences, longest first; samples that are not sequences have length 1."""
    if layout.lengths is None:
        return [1] * layout.samples
    return [int(length) for length in np.sort(layout.lengths)[::-1] if length]


def _gates(op: Any) -> int:
    return {"lstm": 4, "gru": 3}.get(op.recurrent_op, 1)


def _math(dtype: str) -> int:
    if dtype == "float32":
        return DEFAULT_MATH if libraries.allows_tf32() else FMA_ALONE
    return DEFAULT_MATH if dtype == "float64" else TENSOR_CORES
