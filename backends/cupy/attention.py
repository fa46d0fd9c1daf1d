"""Kernels of attention, of matrices in each row of a minibatch and of sequences, which never store the matrix of scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core.common.dtypes import computing_type
from ...core.types.context import Context
from ...core.types.layout import Index, Layout
from .attention_text import SIZES, THREADS, Form, matrices_of, panels_of, text, vectors_of
from .calls import Call, Work, again
from .compiler import INDEX_NAMES, compile, index_type
from .prelude import REAL

BLOCKS_AT_WORK = 256
"""Blocks that keep a large GPU busy; tiles are smaller where there are not as many."""

LEAST_ROWS, ROWS_OF_LARGEST = 16, 32
"""Rows of a tile at least, and if indices have 64 bits, for which larger and smaller tiles lack registers."""


class Arrays(NamedTuple):
    """Matrices ``(entries, heads, rows, columns)``, those of the whole minibatch as one entry where rows belong to sequences.

    Vectors have a number for each query: its greatest score, the sum of exponentials, and the mean of the gradients of its weights.
    Numbers are those of heads: scales, and scores where the mask is 0.
    """

    query: Any
    key: Any
    value: Any
    result: Any
    edges: Any
    totals: Any
    numbers: Sequence[Any] = ()
    bias: Any = None
    mask: Any = None
    means: Any = None
    result_grad: Any = None
    query_grad: Any = None
    key_grad: Any = None
    value_grad: Any = None
    score_grad: Any = None


@dataclass(frozen=True)
class Tiles:
    """Makes a table of tiles of sequences: sequence and first row of each, and -1 for those that the longest table has beside them.

    Attributes:
        op: the operator, which says what the layouts are.
        of_keys: whether rows are keys.
        rows: rows of a tile.
    """

    op: Any
    of_keys: bool
    rows: int

    def __call__(self, ctx: Context) -> Index:
        layout = self.op.layouts(ctx)[self.of_keys]
        found = [(number, row) for number, length in enumerate(layout.lengths.tolist()) for row in range(0, length, self.rows)]
        table = np.full((most_tiles(layout, self.rows), 2), -1, np.intp)
        table[: len(found)] = np.reshape(found, (-1, 2))
        return table


def most_tiles(layout: Layout, rows: int) -> int:
    """How many tiles sequences have at most, however long each is."""
    return layout.rows // rows + layout.samples


def rows_of_tile(dtype: Any, rows: int, blocks: int) -> int:
    """Rows of a tile, if *blocks* blocks have tiles of the same *rows* rows."""
    most = SIZES[REAL[np.dtype(dtype).name]][0]
    while most > LEAST_ROWS and blocks * -(-rows // most) < BLOCKS_AT_WORK:
        most //= 2
    return most


class AttentionKernel:
    """Attention of matrices in each row, of one head or of several."""

    recordable = True

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, *inputs: Any) -> bool:
        """Whether to fall back to the operator: for empty arrays, and for such as lie backwards in memory."""
        return not all(map(_lies_forward, (out, *inputs)))

    @classmethod
    def bind(cls, op: Any, ctx: Context, out: Any, *inputs: Any) -> Callable[[], None] | None:
        """Return a function that computes with these arrays; None where the operator does."""
        if cls.declines(op, ctx, out, *inputs):
            return None
        return Work([forward_call(_form(op, inputs), _arrays(op, ctx, out, inputs))])

    @classmethod
    def forward(cls, op: Any, ctx: Context, out: Any, *inputs: Any) -> None:
        call = cls.bind(op, ctx, out, *inputs)
        if call is None:
            op.forward(ctx, out, *inputs)
        else:
            call()

    @classmethod
    def backward(cls, op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        if cls.declines(op, ctx, out, *inputs, grad, *(one for one in grads if one is not None)):
            op.backward(ctx, grad, grads, out, *inputs)
            return
        for call in again(ctx, "backward", (grad, *grads, out, *inputs), lambda: _backward(op, ctx, grad, grads, out, inputs)):
            call()


class SequenceAttentionKernel:
    """Attention of the steps of one sequence to those of another."""

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, *inputs: Any) -> None:
        sequences = Sequences(op, ctx)
        forward_call(_form_of_sequences(op, inputs), _arrays_of_sequences(ctx, out, inputs), sequences)()

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        sequences = Sequences(op, ctx)
        targets = [_target(ctx, i, x, dx)[None, None] for i, (x, dx) in enumerate(zip(inputs, grads, strict=True))]
        arrays = _with_gradients(ctx, _arrays_of_sequences(ctx, out, inputs), grad[None, None], targets)
        for call in backward_calls(_form_of_sequences(op, inputs), arrays, sequences):
            call()


# ---- launches ----


def forward_call(form: Form, arrays: Arrays, sequences: Sequences | None = None) -> Call:
    """Return the launch that writes the result, with what gradients need."""
    return _bound("attend", form, arrays, sequences)


def backward_calls(form: Form, arrays: Arrays, sequences: Sequences | None = None) -> list[Call]:
    """Return the launches that write the gradients."""
    queries = form._replace(keeps_scores=arrays.score_grad is not None)
    return [
        _bound("attend_gradient_of_queries", queries, arrays, sequences),
        _bound("attend_gradient_of_keys", form, arrays, sequences),
    ]


def _bound(name: str, form: Form, arrays: Arrays, sequences: Sequences | None) -> Call:
    entries, heads, queries, _ = arrays.query.shape
    keys = arrays.key.shape[2]
    of_keys = name == "attend_gradient_of_keys"
    columns = heads * panels_of(name, form)
    matrices = [getattr(arrays, one) for one in matrices_of(name, form)]
    size = index_type(max(map(_reach, matrices)))
    if sequences is None:
        rows = rows_of_tile(form.dtype, keys if of_keys else queries, entries * columns) if size is np.uint32 else ROWS_OF_LARGEST
        blocks = entries * -(-(keys if of_keys else queries) // rows)
        where: tuple[Any, ...] = ()
    else:
        layout = sequences.layouts[of_keys]
        rows = rows_of_tile(form.dtype, layout.rows, columns) if size is np.uint32 else ROWS_OF_LARGEST
        blocks = most_tiles(layout, rows)
        where = sequences.table(of_keys, rows), *sequences.rows
    form = form._replace(rows=rows)
    made = compile(text(name, form, INDEX_NAMES[size]), name)
    placed = [argument for matrix in matrices for argument in (matrix, *map(size, _steps(matrix)))]
    vectors = [getattr(arrays, one) for one in vectors_of(name)]
    sizes = size(heads), np.uint32(queries), np.uint32(keys)
    return made.bound((blocks, columns), THREADS, *placed, *vectors, *arrays.numbers, *sizes, *where)


def _steps(matrix: Any) -> list[int]:
    """Elements between entries, heads, rows and columns; 0 where there is one, which is that of all."""
    return [0 if length == 1 else stride // matrix.dtype.itemsize for length, stride in zip(matrix.shape, matrix.strides, strict=True)]


def _reach(matrix: Any) -> int:
    return 1 + sum((length - 1) * step for length, step in zip(matrix.shape, _steps(matrix), strict=True))


# ---- matrices in each row ----


def _form(op: Any, inputs: Sequence[Any]) -> Form:
    scale = {"none": "1", "times": "*scale", "divided": "1 / *scale"}[op.scaling]
    depth, width = (inputs[number].shape[2] // op.heads for number in (0, 2))
    return Form(inputs[0].dtype, depth, width, 0, scale, len(op.scales(inputs)), op.biased, op.heads * op.masked)


def _arrays(op: Any, ctx: Context, out: Any, inputs: Sequence[Any]) -> Arrays:
    matrices = inputs[0], op.keys(inputs).swapaxes(1, 2), inputs[2], out
    query, key, value, result = (_by_heads(one, op.heads) for one in matrices)
    last = _for_all_heads(op.lined_up(ctx, inputs[-1])) if op.biased or op.masked else None
    numbers = op.numbers(inputs) if op.masked else ()
    return Arrays(query, key, value, result, *_kept(ctx, query), (*op.scales(inputs), *numbers), last, last)


def _backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, inputs: Sequence[Any]) -> list[Call]:
    arrays = _arrays(op, ctx, out, inputs)
    dquery, dkey, dvalue = (_target(ctx, i, inputs[i], grads[i]) for i in range(3))
    targets = [_by_heads(one, op.heads) for one in (dquery, dkey.swapaxes(1, 2) if op.turned else dkey, dvalue)]
    arrays = _with_gradients(ctx, arrays, _by_heads(grad, op.heads), targets)
    if not op.biased or grads[-1] is None:
        return backward_calls(_form(op, inputs), arrays)
    score_grad = ctx.scratch("gradients of scores", (*arrays.query.shape[:3], arrays.key.shape[2]), out.dtype)
    calls = backward_calls(_form(op, inputs), arrays._replace(score_grad=score_grad))
    return [*calls, partial(ctx.sum_to, score_grad, _for_all_heads(op.lined_up(ctx, grads[-1])))]


def _by_heads(matrices: Any, heads: int) -> Any:
    """View ``(rows, steps, heads * columns)`` as ``(rows, heads, steps, columns)``."""
    rows, steps, columns = matrices.shape
    return matrices.reshape(rows, steps, heads, columns // heads).swapaxes(1, 2)


def _for_all_heads(bias: Any) -> Any:
    """View a bias, or its gradient, with all axes and one head."""
    return bias[(None,) * (3 - bias.ndim)][:, None]


def _lies_forward(array: Any) -> bool:
    return bool(array.size) and min(array.strides, default=0) >= 0


# ---- sequences ----


class Sequences:
    """The sequences that rows belong to.

    Args:
        op: the operator.
        ctx: its context, which gives index arrays.

    Attributes:
        layouts: of queries, and of keys.
        rows: where rows lie and where sequences start, of queries and of keys.
    """

    def __init__(self, op: Any, ctx: Context) -> None:
        self._op, self._ctx = op, ctx
        self.layouts = op.layouts(ctx)
        self.rows = [ctx.index(layout, name) for layout in self.layouts for name in ("unpack_index", "starts")]

    def table(self, of_keys: bool, rows: int) -> Any:
        """The table of tiles of so many rows."""
        return self._ctx.index_from(Tiles(self._op, of_keys, rows))


def _form_of_sequences(op: Any, inputs: Sequence[Any]) -> Form:
    query, _, value = inputs
    return Form(query.dtype, query.shape[1], value.shape[1], 0, repr(op.factor(query)), in_sequences=True)


def _arrays_of_sequences(ctx: Context, out: Any, inputs: Sequence[Any]) -> Arrays:
    query, key, value, result = (one[None, None] for one in (*inputs, out))
    return Arrays(query, key, value, result, *_kept(ctx, query))


# ---- both ----


def _kept(ctx: Context, query: Any) -> tuple[Any, Any]:
    """Places for the greatest score of each query, and the sum of its exponentials."""
    place, wide = ctx.keep if ctx.training else ctx.scratch, computing_type(query.dtype)
    return place("edge", query.shape[:3], wide), place("total", query.shape[:3], wide)


def _with_gradients(ctx: Context, arrays: Arrays, grad: Any, targets: Sequence[Any]) -> Arrays:
    means = ctx.scratch("means", arrays.edges.shape, arrays.edges.dtype)
    dquery, dkey, dvalue = targets
    return arrays._replace(means=means, result_grad=grad, query_grad=dquery, key_grad=dkey, value_grad=dvalue)


def _target(ctx: Context, number: int, operand: Any, grad: Any) -> Any:
    """The gradient of an operand, or scratch space for one that is not wanted."""
    return ctx.scratch(f"gradient {number}", operand.shape, operand.dtype) if grad is None else grad
