"""Readers of attention, and of what belongs to it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .....core.common.dtypes import limits_of
from ....ops import activation
from .activation import softmax_over
from .arrays import (
    Array,
    Unsupported,
    cast,
    concat,
    counting,
    elementwise,
    known,
    matmul,
    numbers_to,
    of_sizes,
    reshape,
    slice_,
    take,
    transpose,
    unsqueeze,
)
from .elementary import read_greater, read_less, read_less_or_equal, select
from .importer import Operator
from .shapes import padded
from .sizes import Size


def _heads(x: Array, count: int) -> Array:
    """The array with an axis of heads behind the first."""
    if x.rank == 4:
        return x
    split = reshape(x, [x.dims[0], x.dims[1], count, x.dims[2] // count])
    return transpose(split, [0, 2, 1, 3])


def _numbered(size: Any) -> Array:
    return numbers_to(size) if isinstance(size, Size) else counting(size)


def read_attention(
    node: Operator,
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    lengths: Array | None = None,
) -> tuple[Array | None, ...]:
    flat = q.rank == 3
    if flat:
        queries, keys = node.required("q_num_heads"), node.required("kv_num_heads")
        q, k, v = _heads(q, queries), _heads(k, keys), _heads(v, keys)
    past = 0 if past_key is None else past_key.dims[2]
    if past_key is not None and past_value is not None:
        k, v = concat([past_key, k], 2), concat([past_value, v], 2)
    present_key, present_value = k, v
    heads, shared = q.dims[1], k.dims[1]
    if heads != shared:
        k, v = (_repeated(one, heads // shared) for one in (k, v))
    scale = node.attribute("scale", 1 / math.sqrt(q.dims[-1]))
    scores = matmul(q * math.sqrt(scale), transpose(k, [0, 1, 3, 2]) * math.sqrt(scale))
    mode, stages = node.attribute("qk_matmul_output_mode", 0), {0: scores}
    cap = node.attribute("softcap", 0.0)
    capped = elementwise(np.tanh, activation.tanh, scores / cap) * cap if cap else scores
    biased = _biased(node, capped, mask, lengths, past, q.dims[2], k.dims[2])
    soft = softmax_over(biased, -1)
    windowed = node.attribute("left_window_size", -1) >= 0 or node.attribute("right_window_size", -1) >= 0
    if (
        mask is not None or lengths is not None or node.attribute("is_causal", 0) or windowed
    ):  # nothing is seen of what is masked as a whole
        seen = read_greater(node, biased, known(np.array(limits_of(q.dtype).min / 8, q.dtype)))
        soft = soft * cast(seen, q.dtype)
    stages |= {1: capped, 2: biased, 3: soft}
    result = matmul(soft, v)
    if flat:
        result = transpose(result, [0, 2, 1, 3])
        result = reshape(result, [result.dims[0], result.dims[1], result.dims[2] * result.dims[3]])
    return result, present_key, present_value, stages[mode]


def _repeated(x: Array, count: int) -> Array:
    """Each head as often as several queries share it."""
    return take(x, known(np.repeat(np.arange(int(x.dims[1])), count)), 1)


def _biased(node: Operator, scores: Array, mask: Array | None, lengths: Array | None, past: Any, rows: Any, columns: Any) -> Array:
    """The scores with what must not be seen very small."""
    lowest = known(np.array(-np.inf if scores.is_known else limits_of(scores.dtype).min / 4, scores.dtype))
    if mask is not None:
        if isinstance(columns, int) and isinstance(mask.dims[-1], int) and mask.dims[-1] < columns:
            fill: Any = False if mask.dtype.kind == "b" else float(lowest.numbers)
            mask = padded(mask, [0] * mask.rank, [0] * (mask.rank - 1) + [columns - mask.dims[-1]], fill)
        scores = select(mask, scores, lowest) if mask.dtype.kind == "b" else scores + mask
    left, right = node.attribute("left_window_size", -1), node.attribute("right_window_size", -1)
    if node.attribute("is_causal", 0):
        right = 0 if right < 0 else min(right, 0)
    if left >= 0 or right >= 0:
        row, column = unsqueeze(_numbered(rows), [1]), _numbered(columns)
        if lengths is not None:
            row = row + (reshape(lengths, [lengths.dims[0], 1, 1, 1]) - known(np.array(rows)))
        else:
            row = row + of_sizes([past]) if isinstance(past, Size) else row + known(np.array(past))
        if right >= 0:
            scores = select(read_less_or_equal(node, column, row + right), scores, lowest)
        if left >= 0:
            scores = select(read_less_or_equal(node, row, column + left), scores, lowest)
    if lengths is not None:
        within = read_less(node, _numbered(columns), reshape(lengths, [lengths.dims[0], 1, 1, 1]))
        scores = select(within, scores, lowest)
    return scores


def read_rotary_embedding(node: Operator, x: Array, cosines: Array, sines: Array, places: Array | None = None) -> Array:
    flat = x.rank == 3
    if flat:
        count = node.attribute("num_heads", 0)
        if not count:
            raise Unsupported("num_heads is missing")
        x = reshape(x, [x.dims[0], x.dims[1], count, x.dims[2] // count])
    else:
        x = transpose(x, [0, 2, 1, 3])
    width = node.attribute("rotary_embedding_dim", 0) or int(x.dims[-1])
    turned, rest = slice_(x, 3, 0, width), slice_(x, 3, width, x.dims[3])
    if places is not None:
        cosines, sines = take(cosines, places, 0), take(sines, places, 0)
    cosines, sines = (unsqueeze(slice_(one, one.rank - 1, 0, width // 2), [2]) for one in (cosines, sines))
    if node.attribute("interleaved", 0):
        first, second = slice_(turned, 3, 0, width, 2), slice_(turned, 3, 1, width, 2)
    else:
        first, second = slice_(turned, 3, 0, width // 2), slice_(turned, 3, width // 2, width)
    real, imaginary = first * cosines - second * sines, first * sines + second * cosines
    if node.attribute("interleaved", 0):
        pairs = concat([unsqueeze(real, [4]), unsqueeze(imaginary, [4])], 4)
        turned = reshape(pairs, [*turned.dims[:3], width])
    else:
        turned = concat([real, imaginary], 3)
    result = concat([turned, rest], 3) if width < x.dims[3] else turned
    return reshape(result, [result.dims[0], result.dims[1], result.dims[2] * result.dims[3]]) if flat else transpose(result, [0, 2, 1, 3])
