"""Whether arrays are equal, and graphs of one kind, as CNTK's native engine compares them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntk.core.graph.function import Function
from cntk.core.graph.variable import Variable


def are_equal(left: Any, right: Any, relative_tolerance: float = 0.0, absolute_tolerance: float = 0.0) -> bool:
    """Whether two values are equal: shape, element type, and all elements within the larger of two tolerances.

    Args:
        left, right: both an ``NDArrayView`` or both a ``Value``.
        relative_tolerance: of an element, as a part of *left*'s.
        absolute_tolerance: of an element.

    >>> ones = C.NDArrayView.from_dense(np.ones(2, np.float32))
    >>> C.cntk_py.are_equal(ones, C.NDArrayView.from_dense(np.array([1, 1.01], np.float32)))
    False
    """
    first, second = left.asarray(), right.asarray()
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    with np.errstate(invalid="ignore"):  # infinities less infinities
        allowed = np.maximum(np.abs(relative_tolerance * first), absolute_tolerance)
        close = np.abs(first - second) <= allowed
    return bool(np.all(close | (first == second) | (np.isnan(first) & np.isnan(second))))


def are_equivalent(left: Function, right: Function) -> bool:
    """Whether two graphs are of one kind: operators and variables with the same names and types, connected alike.

    Attributes of operators and values of parameters are not compared.

    >>> x = C.input_variable(3)
    >>> C.cntk_py.are_equivalent(C.dropout(x, 0.1), C.dropout(x, 0.2)), C.cntk_py.are_equivalent(x + x, x + C.input_variable(3))
    (True, False)
    """
    partner: dict[Any, Any] = {}
    partner_back: dict[Any, Any] = {}
    pairs: list[tuple[Any, Any]] = [(left.root_function, right.root_function)]
    while pairs:
        first, second = pairs.pop()
        if first in partner or second in partner_back:
            if partner.get(first) is not second or partner_back.get(second) is not first:
                return False
            continue
        partner[first], partner_back[second] = second, first
        if _kind(first) != _kind(second):
            return False
        pairs.extend(zip(_operands(first), _operands(second), strict=True))
    return True


def _kind(part: Variable | Function) -> tuple[Any, ...]:
    """What two parts of a graph must have in common."""
    if isinstance(part, Function):
        return part.op_name, part.name, len(part.outputs), len(part.inputs)
    role = part.is_input, part.is_output, part.is_parameter, part.is_constant, part.is_placeholder
    return role, part.name, part.shape, part.dtype, part.is_sparse, len(part.dynamic_axes), part.needs_gradient


def _operands(part: Variable | Function) -> list[Any]:
    """Where a part's data come from."""
    if isinstance(part, Function):
        return list(part.inputs)
    return [part.owner] if part.is_output else []
