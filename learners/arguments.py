"""Checks of the parameters and gradients that users pass to a learner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..core.graph.foreign import as_data
from ..core.types.arguments import shown
from ..core.types.sparse import RowSparse

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter


def checked_parameters(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """The parameters of a learner.

    Raises:
        TypeError: they are not a list of parameters.
        ValueError: the list is empty, has one twice, or the shape of one is not known.
    """
    if hasattr(parameters, "shape"):
        raise TypeError(f"parameters: expected a list of parameters, got {parameters!r}; put it in a list")
    if not isinstance(parameters, Iterable):
        raise TypeError(f"parameters: expected a list of parameters, such as model.parameters, got {shown(parameters)}")
    found = tuple(parameters)
    if not found:
        raise ValueError("parameters: expected at least one parameter, got none")
    for parameter in found:
        if not getattr(parameter, "is_parameter", False):
            raise TypeError(f"parameters: expected Parameters, such as model.parameters, got {type(parameter).__name__} {parameter!r:.80}")
    if len({id(parameter) for parameter in found}) < len(found):
        raise ValueError(f"parameters: expected distinct parameters, got one twice in {found!r}")
    for parameter in found:
        if any(dim < 0 for dim in parameter.shape):
            raise ValueError(f"parameters: the shape of {parameter!r} is not known yet; create the learner after the model has its input")
    return found


def checked_gradient(parameter: Parameter, gradient_values: Mapping[Parameter, Any]) -> Any:
    """A copy of a parameter's gradient, in its type.

    Raises:
        ValueError: it is missing, or of another shape.
    """
    if parameter not in gradient_values:
        raise ValueError(f"update: the gradient of {parameter!r} is missing; expected one for each parameter of the learner")
    gradient = gradient_values[parameter]
    if isinstance(gradient, RowSparse):
        own = RowSparse(gradient.shape, parameter.dtype)
        own.set(gradient.rows, parameter.backend.asarray(gradient.values, parameter.dtype))
        return own
    array = parameter.backend.asarray(as_data(f"update: the gradient of {parameter!r}", gradient), parameter.dtype)
    given = tuple(array.shape)
    while len(given) > len(parameter.shape) and given[0] == 1:
        given = given[1:]
    if given != tuple(parameter.shape):
        raise ValueError(f"update: the gradient of {parameter!r} has shape {tuple(array.shape)}; expected {tuple(parameter.shape)}")
    return array.reshape(given)
