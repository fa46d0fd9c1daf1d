"""Swish: an operator of our own."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntk.extend import Elementwise, Operand, operator, sample
from cntk.extend import formula as f


class Swish(Elementwise):
    """``x * sigmoid(beta * x)``."""

    op_name = "Swish"

    def formula(self, x: Any) -> Any:
        return x * f.sigmoid(self.beta * x)


def _expected(x: Any, beta: float = 1.0) -> Any:
    return x / (1 + np.exp(-beta * x))


@operator(
    sample((3, 2), expected=_expected),
    sample(Operand((4,), low=-6, high=6), beta=2.0, expected=lambda x: _expected(x, 2.0)),
    sample(Operand((2,), kind="parameter"), expected=_expected),
)
def swish(x: Any, beta: float = 1.0, name: str = "") -> Any:
    """Swish activation, ``x * sigmoid(beta * x)``, element by element.

    Source: Ramachandran, Zoph, Le: Searching for Activation Functions, 2017.

    Args:
        x: any value.
        beta: steepness of the sigmoid.
        name: name of the function in the network.

    Returns:
        A Function with the shape and dynamic axes of *x*.

    >>> C.swish([0., 1.]).eval()
    array([0.      , 0.731059], dtype=float32)
    """
    return Swish(beta=float(beta))(x, name=name)
