"""The workloads of ``cntk tune``: for each threshold a small network, or a learner, of about any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cntk as C
from cntk.core.common.thresholds import overridden

from .crossover import Call, Make


def _numbers(*shape: int) -> Any:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def _rows(size: int, of_row: int) -> int:
    return max(1, size // of_row)


def _evaluated(make: Callable[[Any], Any], dims: tuple[int, ...], size_of_row: int | None = None) -> Make:
    """Evaluation of a function of rows of some shape; its size is the number of elements, unless given."""

    def made(size: int) -> Call:
        x = C.input_variable(dims)
        function, data = make(x), {x: _numbers(_rows(size, size_of_row or int(np.prod(dims))), *dims)}
        return lambda: function.eval(data)

    return made


def _differentiated(make: Callable[[Any], Any], dims: tuple[int, ...], size_of_row: int | None = None, of_input: bool = True) -> Make:
    """The same with gradients, as in training: of the rows, or of the parameters."""

    def made(size: int) -> Call:
        x = C.input_variable(dims, needs_gradient=of_input)
        function, data = make(x), {x: _numbers(_rows(size, size_of_row or int(np.prod(dims))), *dims)}
        wrt = [x] if of_input else list(function.parameters)
        return lambda: function.grad(data, wrt=wrt)

    return made


def _within(make: Make, **values: int) -> Make:
    """What *make* makes, where other thresholds have some values: the loops that threads may share are used."""

    def made(size: int) -> Call:
        with overridden(**values):
            call = make(size)
            call()

        def called() -> None:
            with overridden(**values):
                call()

        return called

    return made


def _updated(size: int) -> Call:
    w = C.parameter(size)
    learner = C.momentum_sgd([w], 1e-6, 0.9, minibatch_size=C.learners.IGNORE)
    gradients = {w: _numbers(size)}
    return lambda: learner.update(gradients, 1)


def _multiplied(size: int) -> Call:
    side = max(32, round(size ** (1 / 3) / 32) * 32)
    x, matrix = C.input_variable(side), C.input_variable((side, side), dynamic_axes=[])
    product, data = C.times(x, matrix), {x: _numbers(side, side), matrix: _numbers(side, side)}
    return lambda: product.eval(data)


def _multiplied_packed(size: int) -> Call:
    width = 32
    x = C.input_variable(width)
    product, data = C.times(x, C.parameter((width, width))), {x: _numbers(_rows(size, width * width), width)}
    return lambda: product.eval(data)


def _multiplied_sparse(size: int) -> Call:
    width = _rows(size, 64)
    x = C.input_variable(width, is_sparse=True)
    product = C.times(x, C.parameter((width, 64)))
    data = {x: C.Value.one_hot([number % width for number in range(0, 7 * 1000, 7)], width)}
    return lambda: product.grad(data, wrt=product.parameters)


def _recurred(size: int) -> Call:
    width, steps = 32, 10
    x = C.sequence.input_variable(width)
    last = C.sequence.last(C.layers.Recurrence(C.layers.GRU(width))(x))
    sequences = _rows(size, steps * width * 3 * width)
    data = {x: [_numbers(steps, width) for _ in range(sequences)]}
    return lambda: last.grad(data, wrt=last.parameters)


def _normalised(x: Any) -> Any:
    return C.layers.BatchNormalization(map_rank=1)(x)


def _convolved(side: int) -> Callable[[Any], Any]:
    return lambda x: C.layers.Convolution((side, side), 16, pad=True)(x)


def _pooled(x: Any) -> Any:
    return C.layers.MaxPooling((2, 2), strides=2)(x)


def _chained(x: Any) -> Any:
    return C.sqrt(C.square(x * 2) + 1) - C.abs(x)


def _attended(x: Any) -> Any:
    return C.times(C.softmax(C.times(x, C.transpose(x, (1, 0))), axis=-1), x)


_CONVOLVED = 16 * 16 * 16 * 16
"""Multiplications of an image, for each element of a filter's side by side."""

_ATTENDED = _evaluated(_attended, (16, 16), 16 * 16)
_NORMALISED = _differentiated(_normalised, (8, 16, 16), of_input=False)
_POOLED = _evaluated(_pooled, (4, 16, 16))
_DROPPED = _differentiated(lambda x: C.dropout(x, 0.5), (64,))
_SUMMED = _evaluated(lambda x: C.reduce_sum(x, axis=0), (64,))
_SOFTMAX = _evaluated(C.softmax, (64,))


def _cross_entropy(size: int) -> Call:
    z, y = C.input_variable(64), C.input_variable(64)
    loss, rows = C.cross_entropy_with_softmax(z, y), _rows(size, 64)
    data = {z: _numbers(rows, 64), y: np.eye(64, dtype=np.float32)[np.arange(rows) % 64]}
    return lambda: loss.eval(data)


def _gathered(size: int) -> Call:
    numbers, rows = C.input_variable(()), _rows(size, 64)
    gathered, data = C.gather(C.parameter((1000, 64)), numbers), np.arange(rows, dtype=np.float32) % 1000
    return lambda: gathered.eval({numbers: data})


def _summed_steps(size: int) -> Call:
    x, count = C.sequence.input_variable(64), _rows(size, 20 * 64)
    summed, data = C.sequence.reduce_sum(x), [np.ones((20, 64), np.float32)] * count
    return lambda: summed.eval({x: data})


WORKLOADS: dict[str, Make] = {
    "attention_compiled": _ATTENDED,
    "attention_shared": _within(_ATTENDED, attention_compiled=0),
    "softmax_compiled": _SOFTMAX,
    "cross_entropy_compiled": _cross_entropy,
    "gather_compiled": _gathered,
    "sequence_sum_compiled": _summed_steps,
    "exponentials_shared": _within(_SOFTMAX, softmax_compiled=0),
    "reduction_compiled": _SUMMED,
    "reduction_shared": _within(_SUMMED, reduction_compiled=0),
    "dropout_compiled": _DROPPED,
    "dropout_bits_shared": _within(_DROPPED, dropout_compiled=0),
    "dropout_shared": _within(_DROPPED, dropout_compiled=0),
    "batch_normalization_compiled": _NORMALISED,
    "batch_normalization_shared": _within(_NORMALISED, batch_normalization_compiled=0),
    "pooling_compiled": _POOLED,
    "pooling_shared": _within(_POOLED, pooling_compiled=0),
    "convolution_compiled": _evaluated(_convolved(5), (16, 16, 16), _CONVOLVED * 25),
    "convolution_shared": _within(_evaluated(_convolved(5), (16, 16, 16), _CONVOLVED * 25), convolution_compiled=0),
    "winograd_shared": _within(_evaluated(_convolved(3), (16, 16, 16), _CONVOLVED * 9), convolution_compiled=0),
    "chain_compiled": _evaluated(_chained, (64,), 5 * 64),
    "recurrence_compiled": _recurred,
    "learner_compiled": _updated,
    "learner_shared": _within(_updated, learner_compiled=0, elements_shared=0),
    "elements_shared": _within(_updated, learner_compiled=0, learner_shared=0),
    "sparse_product_compiled": _multiplied_sparse,
    "product_compiled": _within(_multiplied, product_considered=0),
    "product_packed": _within(_multiplied_packed, product_considered=0),
    "product_gradient_direct": _differentiated(lambda x: C.times(x, C.parameter((256, 256))), (256,), 1),
}
"""By threshold.  Those of files, and those that only say what kind of data loops are for, have none."""
