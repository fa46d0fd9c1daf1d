"""Layers that multiply by a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntk import ops
from cntk.core.graph.arguments import FunctionLike, InitLike, ShapeLike
from cntk.core.graph.foreign import as_data
from cntk.core.types.arguments import checked
from cntk.default_options import default_override_or, get_default_override, is_default_override
from cntk.initializer import glorot_uniform
from cntk.layers.arguments import INFERRED, activation_for, as_tuple, initializer_for
from cntk.layers.basic_blocks import identity
from cntk.ops.functions import BlockFunction, Function
from cntk.variables import Constant, Parameter


@checked
def Dense(
    shape: ShapeLike,
    activation: FunctionLike | None = default_override_or(identity),
    init: InitLike = default_override_or(glorot_uniform()),
    input_rank: int | None = None,
    map_rank: int | None = None,
    bias: bool = default_override_or(True),
    init_bias: InitLike = default_override_or(0),
    name: str = "",
) -> Function:
    """A fully connected layer: activation(x · W + b).

    All static axes of the input are contracted, whatever their number, unless *input_rank* or *map_rank* says otherwise.

    Args:
        shape: shape of the result, an int or a tuple of ints.
        activation: function applied to the result; None for none.
        init: initial value of ``W``, of shape input shape + *shape*: a number or an initialiser.
        input_rank: contract only this many static axes, the last; those before are kept.
        map_rank: keep this many static axes, the first; contract the others.
        bias: whether to add a parameter ``b`` of shape *shape*.
        init_bias: initial value of ``b``: a number, an array or an initialiser.
        name: name of the block.

    Returns:
        A function of a dense or sparse input; the result has its dynamic axes.

    Raises:
        ValueError: both *input_rank* and *map_rank* are given.
        TypeError: *init* is an array.

    >>> from cntk.layers import Dense
    >>> x = C.input_variable((2, 3))
    >>> y = Dense(4, activation=C.relu, name='hidden')(x)
    >>> y.shape, y.W.shape, y.b.shape
    ((4,), (2, 3, 4), (4,))
    >>> Dense(4, map_rank=1)(x).shape
    (2, 4)
    """
    activation = activation_for("Dense", get_default_override(Dense, activation=activation))
    init = get_default_override(Dense, init=init)
    bias = get_default_override(Dense, bias=bias)
    init_bias = get_default_override(Dense, init_bias=init_bias)
    if input_rank is not None and map_rank is not None:
        raise ValueError(f"Dense: input_rank {input_rank} and map_rank {map_rank} are both given; give at most one of them")

    output_shape = as_tuple(shape)
    output_rank = len(output_shape)
    axes_to_keep = -1 if input_rank is not None else map_rank or 0
    input_shape = INFERRED * (1 if input_rank is None else input_rank)
    W = Parameter(input_shape + output_shape, init=initializer_for(init, output_rank=output_rank), name="W")
    b = Parameter(output_shape, init=init_bias, name="b") if bias else None

    @BlockFunction("Dense", name)
    def dense(x: Any) -> Any:
        r = ops.times(x, W, output_rank=output_rank, infer_input_rank_to_map=axes_to_keep)
        if b is not None:
            r = r + b
        return activation(r)

    return dense


@checked
def Embedding(
    shape: ShapeLike | None = None, init: InitLike = default_override_or(glorot_uniform()), weights: InitLike | None = None, name: str = ""
) -> Function:
    """A layer that looks up vectors: x · E, for one-hot (or any) vectors x.

    Args:
        shape: shape of the vectors, an int or a tuple of ints; to be left out where *weights* are given.
        init: initial value of the parameter ``E``, of shape (input dimension,) + *shape*: a number, an array or an initialiser.
        weights: array of vectors to use as they are; ``E`` is a constant then.
        name: name of the block.

    Returns:
        A function of a dense or sparse vector; the result has its dynamic axes.

    Raises:
        ValueError: *weights* are given together with *shape* or *init*, or neither *shape* nor *weights* is.

    >>> from cntk.layers import Embedding
    >>> x = C.input_variable(3, is_sparse=True)
    >>> f = Embedding(weights=[[1, 2], [3, 4], [5, 6]])(x)
    >>> f.eval({x: C.Value.one_hot([2, 0], 3)})
    array([[5., 6.],
           [1., 2.]], dtype=float32)
    """
    if weights is None:
        if shape is None:
            raise ValueError("Embedding: give the shape of the vectors, or the vectors as weights")
        E: Parameter | Constant = Parameter(INFERRED + as_tuple(shape), init=get_default_override(Embedding, init=init), name="E")
    else:
        if shape is not None or not is_default_override(init):
            raise ValueError("Embedding: weights are given, which tell shape and values; leave shape and init out")
        E = Constant(np.asarray(as_data("Embedding", weights)), name="E")

    @BlockFunction("Embedding", name)
    def embed(x: Any) -> Any:
        return ops.times(x, E)

    return embed
