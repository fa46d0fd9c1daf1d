"""Layers without parameters that act on each element: activation functions, dropout, and a name for a value."""

from __future__ import annotations

from typing import Any, cast

from cntk import ops
from cntk.core.common.random import AUTO_SEED
from cntk.core.graph.arguments import FunctionLike
from cntk.core.types.arguments import Seed, checked
from cntk.default_options import default_override_or, get_default_override
from cntk.layers.arguments import activation_for
from cntk.layers.basic_blocks import identity
from cntk.ops.functions import BlockFunction, Function


@checked
def Activation(activation: FunctionLike = default_override_or(identity), name: str = "") -> Function:
    """A layer that applies an activation function.

    Args:
        activation: function of one argument.
        name: name of the block.

    Returns:
        A function of an input of any shape and dynamic axes.

    >>> from cntk.layers import Activation
    >>> x = C.input_variable(2)
    >>> Activation(C.relu)(x).eval({x: [[-1, 2]]})
    array([[0., 2.]], dtype=float32)
    """
    activation = activation_for("Activation", get_default_override(Activation, activation=activation))

    @BlockFunction("Activation", name)
    def activate(x: Any) -> Any:
        return activation(x)

    return activate


@checked
def Dropout(dropout_rate: float | None = None, keep_prob: float | None = None, seed: Seed = AUTO_SEED, name: str = "") -> Function:
    """A layer that, in training, sets elements to 0 at random and scales the others up to make good for them.

    Args:
        dropout_rate: probability that an element is dropped, in [0, 1).
        keep_prob: probability that it is kept, in [0, 1), given instead.
        seed: seed of the random numbers.
        name: name of the block.

    Returns:
        A function of an input of any shape and dynamic axes; outside training it is the identity.

    Raises:
        ValueError: not exactly one of *dropout_rate* and *keep_prob* is given, or it is out of range.

    >>> from cntk.layers import Dropout
    >>> x = C.input_variable(2)
    >>> Dropout(0.5)(x).eval({x: [[1, 2]]})
    array([[1., 2.]], dtype=float32)
    """
    if (dropout_rate is None) == (keep_prob is None):
        raise ValueError(f"Dropout: give one of dropout_rate and keep_prob, got {dropout_rate} and {keep_prob}")
    if keep_prob is not None and not 0 <= keep_prob < 1:
        raise ValueError(f"Dropout: keep_prob must lie in [0, 1), got {keep_prob}")
    rate = cast(float, dropout_rate) if keep_prob is None else 1 - keep_prob

    @BlockFunction("Dropout", name)
    def drop(x: Any) -> Any:
        return ops.dropout(x, dropout_rate=rate, seed=seed)

    return drop


@checked
def Label(name: str) -> Function:
    """A layer that passes its input on and names it, so that ``model.<name>`` finds it.

    Args:
        name: the name.

    Returns:
        A function of an input of any shape and dynamic axes.

    >>> from cntk.layers import Dense, Label, Sequential
    >>> model = Sequential([Dense(3), Label('hidden'), Dense(1)])
    >>> model.update_signature(2)
    >>> model.hidden.shape
    (3,)
    """

    @Function
    def label(x: Any) -> Any:
        return ops.alias(x, name=name)

    return label
