"""Dense layers whose weights are products of two smaller matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cntk import ops
from cntk.default_options import default_override_or, get_default_override
from cntk.layers import Dense
from cntk.layers.arguments import INFERRED, activation_for, as_tuple
from cntk.layers.basic_blocks import identity
from cntk.misc import convert
from cntk.ops.functions import BlockFunction, Function
from cntk.variables import Parameter


def svd_subprojection(matrix: Any, k: int) -> tuple[Any, Any]:
    """Two matrices whose product is the matrix of rank *k* that is nearest to the given one.

    Args:
        matrix: array of shape (n, m).
        k: rank, the number of columns of the first result and of rows of the second.

    Returns:
        Arrays of shapes (n, k) and (k, m).

    >>> from cntk.contrib.netopt.factorization import svd_subprojection
    >>> left, right = svd_subprojection(np.outer([1., 2.], [3., 4., 5.]), 1)
    >>> (left @ right).round(6)
    array([[ 3.,  4.,  5.],
           [ 6.,  8., 10.]])
    """
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    return np.ascontiguousarray(u[:, :k]), s[:k, None] * v[:k]


def factor_dense(
    model: Function,
    projection_function: Callable[[Any], int] | None = None,
    filter_function: Callable[[Any], bool] | None = None,
    factor_function: Callable[[Any, int], tuple[Any, Any]] | None = None,
) -> Function:
    """Copy a model and replace its ``Dense`` layers by factorised ones.

    As in CNTK, activations of the layers are left out.

    Args:
        model: the model.
        projection_function: the rank for a matrix of weights; may be left out where *factor_function* has a view of its own.
        filter_function: called with each dense layer; tells whether to factorise it.
        factor_function: called with a matrix and the rank; gives the two factors. By default :func:`svd_subprojection`.

    Raises:
        ValueError: nothing says which rank is wanted.

    >>> from cntk.contrib.netopt.factorization import factor_dense
    >>> model = C.layers.Dense(8)(C.input_variable(6))
    >>> small = factor_dense(model, projection_function=lambda W: 2)
    >>> sorted((p.name, p.shape) for p in small.parameters)
    [('W1', (6, 2)), ('W2', (2, 8)), ('b', (8,))]
    """
    if factor_function is None and projection_function is None:
        raise ValueError("factor_dense: give a projection_function that tells the rank for a matrix, or a factor_function")

    def is_wanted(node: Any) -> bool:
        return node.is_block and node.op_name == "Dense" and (filter_function is None or filter_function(node))

    def factored(layer: Any) -> Function:
        weights, bias = layer.W.value, layer.b.value
        rank = min(weights.shape) if projection_function is None else int(projection_function(weights))
        left, right = (factor_function or svd_subprojection)(weights, rank)
        made = dense_factored((rank, weights.shape[1]), None, {"W1": left, "W2": right}, init_bias=bias, name="DenseFactored")
        return made(next(variable for variable in layer.inputs if not (variable.is_parameter or variable.is_constant)))

    return convert(model, is_wanted, factored)


def dense_factored(
    shapes: Sequence[int],
    activation: Any = default_override_or(identity),
    init: Mapping[str, Any] | None = None,
    input_rank: None = None,
    map_rank: None = None,
    bias: Any = default_override_or(True),
    init_bias: Any = default_override_or(0),
    name: str = "",
) -> Function:
    """A dense layer whose weights are a product: activation(x · W1 · W2 + b).

    Args:
        shapes: columns of the first factor, and of the second.
        activation: a function, or None for none.
        init: by the names ``'W1'`` and ``'W2'`` initialisers or arrays of the factors.
        input_rank, map_rank: must be left out: the input is a vector.
        bias: whether there is a bias.
        init_bias: what it begins with.
        name: name of the block.

    Raises:
        ValueError: the factors have no initial values, the shapes are no two numbers, or a rank is given.

    >>> from cntk.contrib.netopt.factorization import dense_factored, svd_subprojection
    >>> left, right = svd_subprojection(np.outer([1., 2.], [3., 4., 5.]), 1)
    >>> layer = dense_factored((1, 3), init={'W1': left, 'W2': right})
    >>> layer(C.input_variable(2)).eval([[1, 1]]).round(4)
    array([[ 9., 12., 15.]], dtype=float32)
    """
    if input_rank is not None or map_rank is not None:
        raise ValueError(f"dense_factored: input_rank and map_rank must be None, got {input_rank!r} and {map_rank!r}; flatten the input")
    if len(shapes) != 2 or not all(isinstance(size, int) for size in shapes):
        raise ValueError(f"dense_factored: shapes are the numbers of columns of two factors, got {shapes!r}")
    if init is None or any(init.get(factor) is None for factor in ("W1", "W2")):
        raise ValueError(f"dense_factored: init gives both factors, as {{'W1': ..., 'W2': ...}}, got {init!r:.80}")
    act = activation_for("dense_factored", get_default_override(Dense, activation=activation))
    inner, outer = map(as_tuple, shapes)
    W1 = Parameter(INFERRED + inner, init=init["W1"], name="W1")
    W2 = Parameter(inner + outer, init=init["W2"], name="W2")
    has_bias = get_default_override(Dense, bias=bias)
    b = Parameter(outer, init=get_default_override(Dense, init_bias=init_bias), name="b") if has_bias else None

    @BlockFunction("DenseFactored", name)
    def dense(x: Any) -> Any:
        product = ops.times(ops.times(x, W1), W2)
        return act(product if b is None else product + b)

    return dense


__all__ = ["dense_factored", "factor_dense", "svd_subprojection"]
