"""Readers of operators of ``ai.onnx.ml`` that prepare features, and of linear models."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ops import comparison
from .activation import read_sigmoid, read_softmax
from .arrays import Array, Unsupported, cast, elementwise, known, matmul, reshape, take
from .elementary import read_abs
from .importer import Operator
from .reductions import arg_extremum, max_over, sum_over


def read_scaler(node: Operator, x: Array) -> Array:
    offset, scale = (known(np.array(node.required(name), np.float32)) for name in ("offset", "scale"))
    return (cast(x, np.float32) - offset) * scale


def read_binarizer(node: Operator, x: Array) -> Array:
    limit = known(np.array(node.attribute("threshold", 0.0), x.dtype))
    return cast(elementwise(np.greater, comparison.greater, x, limit, dtype=np.bool_), x.dtype)


def read_normalizer(node: Operator, x: Array) -> Array:
    """Rows divided by their largest magnitude, or the sum or root of the squares of their elements."""
    rows, kind = cast(x, np.float32), node.attribute("norm", "MAX")
    if kind == "MAX":
        return rows / max_over(read_abs(node, rows), [1])
    if kind == "L1":
        return rows / sum_over(read_abs(node, rows), [1])
    from .elementary import read_sqrt

    if kind != "L2":
        raise Unsupported(f"the norm {kind!r}")
    return rows / read_sqrt(node, sum_over(rows * rows, [1]))


def read_array_feature_extractor(node: Operator, x: Array, places: Array) -> Array:
    return take(x, reshape(places, [-1]), x.rank - 1)


def read_linear_regressor(node: Operator, x: Array) -> Array:
    return _transformed(node, _linear(node, x, node.attribute("targets", 1), "intercepts"))


def read_linear_classifier(node: Operator, x: Array) -> list[Array]:
    """The label of the largest score of each row, and the scores."""
    if not node.has("classlabels_ints"):
        raise Unsupported("labels that are texts")
    labels = known(np.array(node.attribute("classlabels_ints"), np.int64))
    scores = _linear(node, x, len(node.required("coefficients")) // int(x.dims[1]), "intercepts")
    if scores.dims[1] != labels.dims[0]:
        raise Unsupported(f"{scores.dims[1]} scores for {labels.dims[0]} labels")
    best = arg_extremum(scores, 1, largest=True)
    return [take(labels, reshape(best, best.dims[:1]), 0), _transformed(node, scores)]


def _linear(node: Operator, x: Array, count: int, bias: str) -> Array:
    """The product with the coefficients, one row of them for each result."""
    rows = np.array(node.required("coefficients"), np.float32).reshape(count, -1)
    weights = Array(rows.T.shape, np.float32, rows.T.copy(), trainable=True, name=f"{node.name}.coefficients")
    found = matmul(cast(x, np.float32), weights)
    if not node.has(bias):
        return found
    added = np.array(node.attribute(bias), np.float32)
    return found + Array(added.shape, np.float32, added, trainable=True, name=f"{node.name}.{bias}")


def _transformed(node: Operator, scores: Array) -> Array:
    kind: Any = node.attribute("post_transform", "NONE")
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return read_sigmoid(node, scores)
    if kind == "SOFTMAX":
        return read_softmax(node, scores)
    raise Unsupported(f"the transform {kind!r} of scores")
