"""Readers of losses."""

from __future__ import annotations

import numpy as np

from ....ops import comparison
from .activation import log_softmax_over
from .arrays import Array, Unsupported, cast, elementwise, known, reshape
from .importer import Operator
from .reductions import sum_over
from .selections import one_hot


def _loss(node: Operator, scores: Array, labels: Array, weight: Array | None) -> Array:
    """The scores of the labels, with the other sign, weighed; their sum or mean where that is wanted."""
    classes = scores.dims[1]
    if not isinstance(classes, int):
        raise Unsupported(f"{classes} classes, a number that depends on the data")
    chosen = sum_over(scores * one_hot(labels, classes, 1, scores.dtype), [1])
    loss = -reshape(chosen, labels.dims)
    weights = None
    if weight is not None:
        weights = _by_label(weight, labels, classes)
    if node.has("ignore_index"):
        ignored = known(np.array(node.attribute("ignore_index"), labels.dtype))
        counted = cast(elementwise(np.not_equal, comparison.not_equal, labels, ignored, dtype=np.bool_), scores.dtype)
        weights = counted if weights is None else weights * counted
    if weights is not None:
        loss = loss * weights
    how = node.attribute("reduction", "mean")
    if how == "none":
        return loss
    axes = list(range(loss.rank))
    total = reshape(sum_over(loss, axes), [])
    if how == "sum":
        return total
    if weights is None:
        weights = cast(elementwise(np.equal, comparison.equal, labels, labels, dtype=np.bool_), scores.dtype)
    return total / reshape(sum_over(weights, axes), [])


def _by_label(weight: Array, labels: Array, classes: int) -> Array:
    """The weight of each label; 0 of one that is no class."""
    hot = one_hot(labels, classes, 1, weight.dtype)
    line = reshape(weight, [-1, *[1] * (labels.rank - 1)])
    return reshape(sum_over(hot * line, [1]), labels.dims)


def read_negative_log_likelihood_loss(node: Operator, x: Array, labels: Array, weight: Array | None = None) -> Array:
    return _loss(node, x, labels, weight)


def read_softmax_cross_entropy_loss(node: Operator, x: Array, labels: Array, weight: Array | None = None) -> tuple[Array, Array]:
    scores = log_softmax_over(x, 1)
    return _loss(node, scores, labels, weight), scores
