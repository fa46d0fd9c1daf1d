"""A softmax in two levels: first the group of a class, then the class within its group."""

from __future__ import annotations

import math
from typing import Any

from cntk import ops
from cntk.core.graph.inference import as_variables
from cntk.core.types.arguments import checked
from cntk.initializer import glorot_normal
from cntk.ops.functions import Function
from cntk.variables import Parameter, Variable


@checked
def hierarchical_softmax_layer(
    input_var: Any, label_index: Any, label_dim: int, label_classes: int | None = None
) -> tuple[Function, Function, list[Function]]:
    r"""Probability of a label in two levels, which costs about :math:`2 \sqrt n` products for n labels in place of n.

    Labels are put in groups of equal size, in order; the last one may have fewer.  A softmax tells the group, and another one, with
    weights of the group's own, the label in it.  The layer has the parameters ``hsoftmax_w1`` and ``hsoftmax_b1`` for the groups,
    ``hsoftmax_w2s`` and ``hsoftmax_b2s`` for the labels in them.

    Args:
        input_var: vector for each sample (or step), of a known dimension.
        label_index: number of each label, of shape (1,).
        label_dim: how many labels there are.
        label_classes: how many groups; by default :math:`\lceil\sqrt n\rceil`.

    Returns:
        the probability of the given label, shape (1, 1); the probabilities of the groups, shape (label_classes,); and for each group
        the probabilities of the labels in it, which together are those of all labels.

    Source: F. Morin, Y. Bengio, "Hierarchical probabilistic neural network language model", AISTATS 2005.

    >>> x, label = C.input_variable(2), C.input_variable(1)
    >>> probability, groups, labels = C.hierarchical_softmax_layer(x, label, 4)
    >>> feed = {x: np.array([[1, 2]], dtype=np.float32), label: np.array([[3]], dtype=np.float32)}
    >>> all_labels = C.splice(*labels)
    >>> bool(np.isclose(all_labels.eval({x: feed[x]}).sum(), 1) and np.isclose(probability.eval(feed), all_labels.eval({x: feed[x]})[0, 3]))
    True
    """
    input_var, label_index = as_variables("hierarchical_softmax_layer", (input_var, label_index))
    if len(input_var.shape) != 1:
        raise ValueError(f"hierarchical_softmax_layer: input_var must be a vector of known dimension, got {input_var!r}")
    if not 1 <= (label_classes or 1) <= label_dim:
        raise ValueError(f"hierarchical_softmax_layer: {label_dim} labels do not fall into {label_classes} groups")
    groups = label_classes or math.ceil(math.sqrt(label_dim))
    members = math.ceil(label_dim / groups)
    dim, dtype = input_var.shape[0], input_var.dtype

    w1 = _parameter((dim, groups), dtype, "hsoftmax_w1")
    b1 = _parameter((groups,), dtype, "hsoftmax_b1")
    w2s = _parameter((groups, dim, members), dtype, "hsoftmax_w2s")
    b2s = _parameter((groups, members), dtype, "hsoftmax_b2s")

    group_probs = ops.softmax(ops.plus(b1, ops.times(input_var, w1)))

    group = ops.floor(ops.element_divide(ops.plus(label_index, 0.5), members))
    member = ops.round(ops.minus(label_index, ops.element_times(group, members)))
    group_one_hot, member_one_hot = _one_hot(group, groups), _one_hot(member, members)
    weights = ops.reshape(ops.times(group_one_hot, w2s, output_rank=2), (dim, members))
    biases = ops.reshape(ops.times(group_one_hot, b2s), (members,))
    member_probs = ops.softmax(ops.plus(biases, ops.times(input_var, weights)))
    prob = ops.element_times(ops.times_transpose(member_one_hot, member_probs), ops.times_transpose(group_one_hot, group_probs))

    return prob, group_probs, [_members_of(i, input_var, w2s, b2s, group_probs) for i in range(groups)]


def _members_of(group: int, x: Variable, w2s: Parameter, b2s: Parameter, group_probs: Function) -> Function:
    """Probabilities of the labels in one group."""
    weights = ops.reshape(ops.slice(w2s, 0, group, group + 1), w2s.shape[1:])
    biases = ops.reshape(ops.slice(b2s, 0, group, group + 1), b2s.shape[1:])
    chances = ops.softmax(ops.plus(biases, ops.times(x, weights)))
    return ops.element_times(chances, ops.slice(group_probs, 0, group, group + 1))


def _one_hot(number: Any, classes: int) -> Function:
    return ops.one_hot(number, classes, sparse_output=False)


def _parameter(shape: tuple[int, ...], dtype: Any, name: str) -> Parameter:
    return ops.parameter(shape, init=glorot_normal(), dtype=dtype, name=name)
