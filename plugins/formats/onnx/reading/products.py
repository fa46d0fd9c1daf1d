"""Readers of products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import Array, Unsupported, check_room, known, matmul, reshape, transpose
from .importer import Operator
from .sizes import product


def read_mat_mul(node: Operator, a: Array, b: Array) -> Array:
    return matmul(a, b)


def read_gemm(node: Operator, a: Array, b: Array, c: Array | None = None) -> Array:
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    left = transpose(a, [1, 0]) if node.attribute("transA", 0) else a
    right = transpose(b, [1, 0]) if node.attribute("transB", 0) else b
    result = matmul(left, right)
    if alpha != 1:
        result = result * alpha
    if c is None or beta == 0:
        return result
    return result + (c if beta == 1 else c * beta)


def read_einsum(node: Operator, *operands: Array) -> Array:
    left, arrow, result = node.required("equation").replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise Unsupported(f"the equation has {len(terms)} terms, for {len(operands)} operands")
    free = max((one.rank - len(term.replace("...", "")) for term, one in zip(terms, operands, strict=True) if "..." in term), default=0)
    labels = [_spelt(term, one.rank - len(term.replace("...", "")), free) for term, one in zip(terms, operands, strict=True)]
    if arrow:
        wanted = _spelt(result, free, free)
    else:
        counts = [label for term in labels for label in term]
        wanted = [*(f".{at}" for at in range(free)), *sorted({one for one in counts if counts.count(one) == 1 and one[0] != "."})]
    pairs = [_diagonal(one, term) for one, term in zip(operands, labels, strict=True)]
    value, term = pairs[0]
    for at, (other, theirs) in enumerate(pairs[1:], 1):
        later = {label for _, labels in pairs[at + 1 :] for label in labels} | set(wanted)
        value, term = _pair(value, term, other, theirs, later)
    value, term = _summed(value, term, set(wanted))
    return transpose(value, [term.index(label) for label in wanted])


def _spelt(term: str, own: int, free: int) -> list[str]:
    """The labels of a term, with one for each axis that the dots stand for."""
    before, dots, after = term.partition("...")
    return [*before, *(f".{at}" for at in range(free - own, free)), *after] if dots else list(before)


def _diagonal(x: Array, labels: list[str]) -> tuple[Array, list[str]]:
    """The elements whose places are equal on axes of the same label."""
    from .reductions import sum_over

    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            size = x.dims[first]
            if not isinstance(size, int) or x.dims[second] != size:
                raise Unsupported(f"the diagonal of an array of the shape {list(x.dims)}")
            check_room([size, size])
            eye = np.eye(size, dtype=x.dtype).reshape([size if axis in (first, second) else 1 for axis in range(x.rank)])
            x = reshape(sum_over(x * known(eye), [second]), [dim for axis, dim in enumerate(x.dims) if axis != second])
            del labels[second]
    return x, labels


def _summed(x: Array, labels: list[str], kept: set[str]) -> tuple[Array, list[str]]:
    """The array summed over the axes whose labels are not kept."""
    from .reductions import sum_over

    gone = [axis for axis, label in enumerate(labels) if label not in kept]
    if not gone:
        return x, labels
    left = [axis for axis in range(x.rank) if axis not in gone]
    return reshape(sum_over(x, gone), [x.dims[axis] for axis in left]), [labels[axis] for axis in left]


def _pair(a: Array, left: list[str], b: Array, right: list[str], later: set[str]) -> tuple[Array, list[str]]:
    """The product of two operands, summed over the labels that both have and nothing else does."""
    a, left = _summed(a, left, later | set(right))
    b, right = _summed(b, right, later | set(left))
    both = [label for label in left if label in right and label in later]
    summed = [label for label in left if label in right and label not in later]
    rows, columns = [label for label in left if label not in right], [label for label in right if label not in left]

    def arranged(x: Array, labels: list[str], *groups: Sequence[str]) -> Array:
        moved = transpose(x, [labels.index(label) for group in groups for label in group])
        dims = dict(zip(labels, x.dims, strict=True))
        return reshape(moved, [*(dims[label] for label in groups[0]), *(product(dims[label] for label in group) for group in groups[1:])])

    first, second = arranged(a, left, both, rows, summed), arranged(b, right, both, summed, columns)
    dims: dict[str, Any] = dict(zip(left, a.dims, strict=True)) | dict(zip(right, b.dims, strict=True))
    for label in both:  # one of them may be stretched
        sizes = (a.dims[left.index(label)], b.dims[right.index(label)])
        dims[label] = sizes[0] if sizes[1] == 1 else sizes[1]
    labels = [*both, *rows, *columns]
    return reshape(matmul(first, second), [dims[label] for label in labels]), labels
