"""Loops of attention that go through blocks of keys, so that the matrix of scores never lies in memory as a whole.

The sums of exponentials are relative to the greatest score so far; where a later block has a greater one, what has been added up shrinks.
The way back computes the scores again, from the greatest score and the sum of each row.

Source: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018; M. Rabe, C. Staats, "Self-attention does not need
O(n²) memory", 2021; T. Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness", NeurIPS 2022.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import carray, jittable, prange, slot
from ...core.machine.loops import loop
from .exponential import exp
from .lanes import highest, inner, write_powers
from .panels import pack
from .pieces import address
from .tile import MOST_ROWS, PANEL_BYTES, pointer, strided_tile

QUERY, KEY, VALUE, BIAS, EDGE, TOTAL, WEIGHTS, RESULT, QUERY_GRAD, KEY_GRAD, VALUE_GRAD, SCORE_GRAD, RESULT_GRAD = range(13)
"""Rows of a table of matrices, of which there is one for each entry."""

ADDRESS, NEXT, STRIDE, STEP = range(4)
"""Its columns: where the first matrix begins, 0 for none; how many bytes lie between matrices, rows and elements of a row."""

FIRST_QUERY, QUERIES, FIRST_KEY, KEYS = range(4)
"""Columns of the table of entries: the rows of each that are its queries, and its keys and values."""


@loop("R2 I2 I2 I2 R1 (6)", takes_long=True)
def attend(work: Any, operands: Any, entries: Any, pieces: Any, scale: Any, sizes: Any) -> None:
    """Write averages of values, with the greatest score of each row and the sum of the exponentials of the distances from it.

    These exponentials are written as well where they are wanted, for which all keys must be in one block.

    Args:
        work: a row for each thread.
        operands, entries: the tables.
        pieces: entry, first query and last query of what a thread does at a time.
        scale: a number.
        sizes: elements of a query, and of a value; 1 where scores are divided by the number, not multiplied; keys of a block; most
            queries of a piece; bytes between rows of scores.
    """
    depth, columns, divides, block, most, line = sizes
    itemsize = work.itemsize
    width, lowest = PANEL_BYTES // itemsize, work.dtype.type(-np.inf)
    wide = (columns + width - 1) // width * PANEL_BYTES
    key_panels = address(work, slot() * work.shape[1])
    value_panels = key_panels + (block + width - 1) // width * depth * PANEL_BYTES
    sums = value_panels + block * wide
    scores = sums + most * wide
    powers = scores + MOST_ROWS * line
    factor = _factor(scale, divides)
    for number in prange(len(pieces)):
        entry, begin, end = pieces[number]
        first, keys = entries[entry, FIRST_KEY], entries[entry, KEYS]
        begin, end = begin + entries[entry, FIRST_QUERY], end + entries[entry, FIRST_QUERY]
        for at in range(0, keys, block):
            known = min(block, keys - at)
            key, value = _place(operands, KEY, entry, first + at), _place(operands, VALUE, entry, first + at)
            _pack_scaled(key_panels, key, operands[KEY, STEP], operands[KEY, STRIDE], depth, known, factor, work)
            pack(value_panels, value, operands[VALUE, STRIDE], operands[VALUE, STEP], known, 0, columns, work)
            for row in range(begin, end, MOST_ROWS):
                rows, to = min(MOST_ROWS, end - row), sums + (row - begin) * wide
                weights, apart = powers, line
                if operands[WEIGHTS, ADDRESS]:
                    weights, apart = _place(operands, WEIGHTS, entry, row), operands[WEIGHTS, STRIDE]
                query, stride, step = _place(operands, QUERY, entry, row), operands[QUERY, STRIDE], operands[QUERY, STEP]
                _multiply(False, rows, query, stride, step, key_panels, depth, known, scores, line, work)
                for i in range(rows):
                    of, target = carray(pointer(scores + i * line, work), known), carray(pointer(weights + i * apart, work), known)
                    _add_bias(of, operands, entry, row + i, at, work)
                    edge = carray(pointer(_place(operands, EDGE, entry, row + i), work), 1)
                    total = carray(pointer(_place(operands, TOTAL, entry, row + i), work), 1)
                    before, found = edge[0] if at > 0 else lowest, highest(of)
                    edge[0] = found if found > before else before
                    level = edge[0] if edge[0] > lowest else work.dtype.type(0)
                    added = work.dtype.type(write_powers(of, level, target))
                    total[0] = total[0] * exp(before - level) + added if at > 0 else added
                    if at > 0 and before != edge[0]:
                        _scale_row(to + i * wide, columns, exp(before - level), work)
                _multiply(at > 0, rows, weights, apart, itemsize, value_panels, known, columns, to, wide, work)
        for row in range(begin, end):
            total = carray(pointer(_place(operands, TOTAL, entry, row), work), 1)[0]
            of = carray(pointer(sums + (row - begin) * wide, work), columns)
            target = carray(pointer(_place(operands, RESULT, entry, row), work), columns)
            share = work.dtype.type(1 / total)
            for i in range(columns):
                target[i] = of[i] * share


@loop("R2 R2 I2 I2 I2 R1 (7)", takes_long=True)
def attend_gradient(work: Any, parts: Any, operands: Any, entries: Any, pieces: Any, scale: Any, sizes: Any) -> None:
    """Write the gradients of queries, keys and values, and those of scores where they are wanted.

    Args:
        work: a row for each thread.
        parts: a row for each piece, or for each thread where an entry is one piece: its part of the gradients of all queries.
        operands, entries, scale: as for :func:`attend`; weights are computed again unless their exponentials are there.
        pieces: entry, first key and last key of what a thread does at a time.
        sizes: elements of a query, and of a value; 1 where scores are divided by the number, not multiplied; keys of a block, and
            queries that are looked at together; bytes between rows of scores; 1 where entries are divided into pieces.
    """
    depth, columns, divides, block, group, line, divided = sizes
    itemsize = work.itemsize
    width = PANEL_BYTES // itemsize
    deep, wide = (depth + width - 1) // width * PANEL_BYTES, (columns + width - 1) // width * PANEL_BYTES
    padded = (block + width - 1) // width * PANEL_BYTES
    turned_keys = address(work, slot() * work.shape[1])
    turned_values = turned_keys + padded * depth
    key_panels = turned_values + padded * columns
    query_panels = key_panels + block * deep
    grad_panels = query_panels + group * deep
    key_sums = grad_panels + group * wide
    value_sums = key_sums + block * deep
    weights = value_sums + block * wide
    score_grads = weights + group * line
    factor, kept = _factor(scale, divides), operands[WEIGHTS, ADDRESS] != 0
    for number in prange(len(pieces)):
        entry, begin, end = pieces[number]
        first_query, queries, first = entries[entry, FIRST_QUERY], entries[entry, QUERIES], entries[entry, FIRST_KEY]
        query_sums = address(parts, (number if divided else slot()) * parts.shape[1])
        for at in range(begin, end, block):
            known = min(block, end - at)
            key, value = _place(operands, KEY, entry, first + at), _place(operands, VALUE, entry, first + at)
            if not kept:
                _pack_scaled(turned_keys, key, operands[KEY, STEP], operands[KEY, STRIDE], depth, known, factor, work)
            pack(turned_values, value, operands[VALUE, STEP], operands[VALUE, STRIDE], columns, 0, known, work)
            pack(key_panels, key, operands[KEY, STRIDE], operands[KEY, STEP], known, 0, depth, work)
            for row in range(0, queries, group):
                count, of = min(group, queries - row), first_query + row
                query, query_stride, query_step = _place(operands, QUERY, entry, of), operands[QUERY, STRIDE], operands[QUERY, STEP]
                grad, grad_stride = _place(operands, RESULT_GRAD, entry, of), operands[RESULT_GRAD, STRIDE]
                pack(query_panels, query, query_stride, query_step, count, 0, depth, work)
                pack(grad_panels, grad, grad_stride, itemsize, count, 0, columns, work)
                if not kept:
                    _multiply(False, count, query, query_stride, query_step, turned_keys, depth, known, weights, line, work)
                _multiply(False, count, grad, grad_stride, itemsize, turned_values, columns, known, score_grads, line, work)
                for i in range(count):
                    given = carray(pointer(grad + i * grad_stride, work), columns)
                    result = carray(pointer(_place(operands, RESULT, entry, of + i), work), columns)
                    edge = carray(pointer(_place(operands, EDGE, entry, of + i), work), 1)[0]
                    total = carray(pointer(_place(operands, TOTAL, entry, of + i), work), 1)[0]
                    weight, share = carray(pointer(weights + i * line, work), known), work.dtype.type(1 / total)
                    mean = work.dtype.type(inner(given, result))
                    if kept:
                        powers = carray(pointer(_place(operands, WEIGHTS, entry, of + i) + at * itemsize, work), known)
                        _send_back_kept(powers, weight, share, mean, score_grads + i * line, work)
                    else:
                        _add_bias(weight, operands, entry, of + i, at, work)
                        _send_back(weight, edge, share, mean, score_grads + i * line, work)
                    if operands[SCORE_GRAD, ADDRESS]:
                        to = _place(operands, SCORE_GRAD, entry, of + i) + at * itemsize
                        _write(to, 0, itemsize, score_grads + i * line, 0, 1, known, work.dtype.type(1), work)
                _multiply(row > 0, known, weights, itemsize, line, grad_panels, count, columns, value_sums, wide, work)
                _multiply(row > 0, known, score_grads, itemsize, line, query_panels, count, depth, key_sums, deep, work)
                _multiply(at > begin, count, score_grads, line, itemsize, key_panels, known, depth, query_sums + row * deep, deep, work)
            key_grad, value_grad = _place(operands, KEY_GRAD, entry, first + at), _place(operands, VALUE_GRAD, entry, first + at)
            _write(key_grad, operands[KEY_GRAD, STRIDE], operands[KEY_GRAD, STEP], key_sums, deep, known, depth, factor, work)
            one, stride = work.dtype.type(1), operands[VALUE_GRAD, STRIDE]
            _write(value_grad, stride, operands[VALUE_GRAD, STEP], value_sums, wide, known, columns, one, work)
        if not divided:
            to, stride = _place(operands, QUERY_GRAD, entry, first_query), operands[QUERY_GRAD, STRIDE]
            _write(to, stride, operands[QUERY_GRAD, STEP], query_sums, deep, queries, depth, factor, work)


@loop("R2 I2 I2 I2 R1 (2)")
def add_parts(parts: Any, operands: Any, entries: Any, firsts: Any, scale: Any, sizes: Any) -> None:
    """Write the gradients of queries, the sums of those of pieces.

    Args:
        parts, operands, entries, scale: as for :func:`attend_gradient`.
        firsts: first and last piece of each entry.
        sizes: elements of a query; 1 where scores are divided by the number, not multiplied.
    """
    depth, divides = sizes
    factor = _factor(scale, divides)
    width = PANEL_BYTES // parts.itemsize
    wide = (depth + width - 1) // width * width
    for entry in prange(len(entries)):
        first, last = firsts[entry]
        for row in range(entries[entry, QUERIES]):
            total = parts[first, row * wide : row * wide + depth]
            for number in range(first + 1, last):
                for i in range(depth):
                    total[i] += parts[number, row * wide + i]
            to = _place(operands, QUERY_GRAD, entry, entries[entry, FIRST_QUERY] + row)
            _write(to, 0, operands[QUERY_GRAD, STEP], address(parts[first], row * wide), 0, 1, depth, factor, parts)


@jittable
def _place(operands: Any, which: int, entry: int, row: int) -> int:
    """The address of a row of an entry's matrix."""
    return operands[which, ADDRESS] + entry * operands[which, NEXT] + row * operands[which, STRIDE]


@jittable
def _multiply(
    adds: bool, rows: int, a: int, a_stride: int, a_step: int, panels: int, depth: int, columns: int, c: int, c_stride: int, like: Any
) -> None:  # fmt: skip
    """Write or add the product of rows and packed columns."""
    width = PANEL_BYTES // like.itemsize
    for column in range(0, columns, width):
        panel, to = panels + column * depth * like.itemsize, c + column * like.itemsize
        is_half = 2 * (columns - column) <= width
        for row in range(0, rows, MOST_ROWS):
            count, left = min(MOST_ROWS, rows - row), a + row * a_stride
            strided_tile(is_half, adds, count, left, a_stride, a_step, panel, PANEL_BYTES, depth, to + row * c_stride, c_stride, like)


@jittable
def _factor(scale: Any, divides: int) -> Any:
    return scale.dtype.type(1) / scale[0] if divides else scale[0]


@jittable
def _pack_scaled(panels: int, b: int, stride: int, step: int, depth: int, columns: int, factor: Any, like: Any) -> None:
    """Copy columns of a matrix, times a factor, to panels."""
    pack(panels, b, stride, step, depth, 0, columns, like)
    width = PANEL_BYTES // like.itemsize
    _scale_row(panels, (columns + width - 1) // width * width * depth, factor, like)


@jittable
def _add_bias(scores: Any, operands: Any, entry: int, row: int, at: int, like: Any) -> None:
    """Add the bias to the scores of a query and some keys, from the key *at* on."""
    if operands[BIAS, ADDRESS] == 0:
        return
    bias, step = _place(operands, BIAS, entry, row) + at * operands[BIAS, STEP], operands[BIAS, STEP]
    if step == 0:
        added = carray(pointer(bias, like), 1)[0]
        for i in range(scores.size):
            scores[i] += added
    else:
        more = carray(pointer(bias, like), scores.size)
        for i in range(scores.size):
            scores[i] += more[i]


@jittable
def _scale_row(row: int, size: int, factor: Any, like: Any) -> None:
    target = carray(pointer(row, like), size)
    for i in range(size):
        target[i] *= factor


@jittable
def _send_back(scores: Any, edge: Any, share: Any, mean: Any, grads: int, like: Any) -> None:
    """Turn scores to weights, and the gradients of weights to those of scores."""
    target = carray(pointer(grads, like), scores.size)
    for i in range(scores.size):
        weight = exp(scores[i] - edge) * share
        scores[i] = weight
        target[i] = (target[i] - mean) * weight


@jittable
def _send_back_kept(powers: Any, weights: Any, share: Any, mean: Any, grads: int, like: Any) -> None:
    """The same from exponentials, which stay as they are."""
    target = carray(pointer(grads, like), powers.size)
    for i in range(powers.size):
        weight = powers[i] * share
        weights[i] = weight
        target[i] = (target[i] - mean) * weight


@jittable
def _write(to: int, stride: int, step: int, source: int, line: int, rows: int, columns: int, factor: Any, like: Any) -> None:
    """Write rows times a factor to where they belong."""
    for row in range(rows):
        of = carray(pointer(source + row * line, like), columns)
        if step == like.itemsize:
            target = carray(pointer(to + row * stride, like), columns)
            for i in range(columns):
                target[i] = of[i] * factor
        else:
            for i in range(columns):
                carray(pointer(to + row * stride + i * step, like), 1)[0] = of[i] * factor
