"""Blocks without recurrence: small functions that layers are made of."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from cntk import ops
from cntk.core.graph.nodes import Composite
from cntk.core.types.arguments import checked
from cntk.default_options import default_override_or, get_default_override
from cntk.ops.functions import BlockFunction, Function
from cntk.variables import Parameter


@Function
def identity(keep: Any) -> Any:
    """The function that returns its argument: an activation that is none.

    >>> from cntk.layers import Dense, identity
    >>> linear = Dense(5, activation=identity)
    """
    return ops.combine([keep])


identity.__name__ = "identity"  # type: ignore[attr-defined]  # in signatures


@checked
def ForwardDeclaration(name: str = "forward_declaration") -> Any:
    """Declare a variable that is defined further on, to close a loop by hand.

    Args:
        name: name of the placeholder.

    Returns:
        A placeholder with a method ``resolve_to(variable)``, which puts *variable* in its place wherever it has been used.

    >>> from cntk.layers import ForwardDeclaration
    >>> ForwardDeclaration('state')
    Placeholder('state', [???], [???])
    """
    variable = ops.placeholder(name=name)

    def resolve_to(definition: Any) -> None:
        ops.as_composite(definition.owner).replace_placeholders({variable: definition})

    variable.resolve_to = resolve_to  # type: ignore[attr-defined]
    return variable


@checked
def Stabilizer(steepness: float = 4, enable_self_stabilization: bool = default_override_or(True), name: str = "") -> Function:
    """A layer that multiplies its input by one learned, positive number, 1 at first.

    The factor is softplus(steepness·alpha) / steepness with the parameter ``alpha``.  It lets a network scale its signals, and
    so in effect its learning rates, layer by layer.

    Args:
        steepness: how sharply the factor bends near 0.
        enable_self_stabilization: False makes the layer the identity; meant for ``default_options``.
        name: name of the block.

    Returns:
        A function of an input of any shape and dynamic axes; the result has the same.

    Source: P. Ghahremani, J. Droppo, "Self-stabilized deep neural network", ICASSP 2016.

    >>> from cntk.layers import Stabilizer
    >>> x = C.input_variable(2)
    >>> Stabilizer()(x).eval({x: np.array([[3, -4]], dtype=np.float32)}).round(4)
    array([[ 3., -4.]], dtype=float32)
    """
    if not get_default_override(Stabilizer, enable_self_stabilization=enable_self_stabilization):
        return identity
    alpha = Parameter((), init=float(np.log(np.expm1(steepness)) / steepness), name="alpha")

    @BlockFunction("Stabilizer", name)
    def stabilize(x: Any) -> Any:
        return ops.softplus(alpha, steepness=steepness) * x

    return stabilize


def UntestedBranchError(name: str) -> NoReturn:
    """Raise an error for an untested combination of options.

    Raises:
        NotImplementedError: always.

    >>> from cntk.layers.blocks import UntestedBranchError
    >>> UntestedBranchError('map_rank 3')
    Traceback (most recent call last):
    NotImplementedError: untested: map_rank 3
    """
    raise NotImplementedError(f"untested: {name}")


def named(function: Any, name: str) -> Function:
    """The function under a name of its own, where there is one to give, with its arguments in their order."""
    if not isinstance(function, Function):
        function = Function(function)
    if not name:
        return function
    outputs = function.outputs
    made = ops.alias(function, name=name) if len(outputs) == 1 else ops.combine(outputs, name=name)
    return Composite(made.root_function, name, function.arguments)


__all__ = ["ForwardDeclaration", "Stabilizer", "UntestedBranchError", "identity"]
