"""Calling functions as Python functions: matching arguments, checking their types, evaluating or composing."""

from __future__ import annotations

from typing import Any

from ..common.services import services
from ..types.types import as_type
from .clone import clone
from .function import CloneMethod, Function
from .variable import Input, Variable, input_variable


def argument_map(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Variable, Any]:
    """See :meth:`Function.argument_map`."""
    wanted = function.signature
    if len(args) + len(kwargs) != len(wanted):
        raise TypeError(f"{function} expected {len(wanted)} arguments, got {len(args) + len(kwargs)}")
    bound: dict[Variable, Any] = dict(zip(wanted, args, strict=False))
    by_name = {variable.name: variable for variable in wanted if variable.name}
    for name, value in kwargs.items():
        if name not in by_name:
            raise TypeError(f"{function} has no argument called '{name}'; it has {sorted(by_name)}")
        if by_name[name] in bound:
            raise SyntaxError(f"{function} got the argument '{name}' twice, by position and by name")
        bound[by_name[name]] = value
    return bound


def call(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """See :meth:`Function.__call__`."""
    bound = argument_map(function, args, kwargs)
    if any(isinstance(value, (Variable, Function)) for value in bound.values()):
        for variable in function.arguments:
            bound.setdefault(variable, variable)
        check_types(bound)
        return clone(function, CloneMethod.share, bound)
    outputs = function.outputs
    _, values = services.forward(function, bound, outputs, None, None, True)
    results = [values[output] for output in outputs]
    return results[0] if len(results) == 1 else tuple(results)


def check_types(bound: dict[Variable, Any]) -> None:
    """Check that the value of each argument has a type that the argument accepts; placeholders accept anything.

    Raises:
        TypeError: one has another type.
    """
    for position, (parameter, given) in enumerate(bound.items()):
        who = f"argument '{parameter.name}'" if parameter.name else f"argument number {position + 1}"
        if not isinstance(given, (Variable, Function)):
            raise TypeError(f"{who}: data ({type(given).__name__}) and variables cannot be mixed in a call; turn data into a constant")
        variable = given.output if isinstance(given, Function) else given
        wanted, spec = parameter.spec, variable.spec
        if parameter.is_placeholder or wanted.shape is None:
            continue
        if spec.shape is None:
            raise TypeError(
                f"{who} has the type {parameter.type} and cannot take {variable!r}, whose shape is not known; "
                "compose layers before they are applied to an input"
            )
        tail = spec.shape[len(spec.shape) - len(wanted.shape) :]
        fits = len(spec.shape) >= len(wanted.shape) and all(a == b or a < 0 or b < 0 for a, b in zip(tail, wanted.shape, strict=True))
        if not fits or (spec.axes and spec.axes != wanted.axes) or spec.dtype is not wanted.dtype or spec.sparse != wanted.sparse:
            raise TypeError(f"{who} has the type {parameter.type} and cannot take {variable!r} of type {variable.type}")


def inputs_of_types(function: Function, types: tuple[Any, ...], named_types: dict[str, Any]) -> dict[Variable, Variable]:
    """New inputs for the arguments that are given a type."""
    bound = argument_map(function, types, named_types)
    made: dict[Variable, Variable] = {p: input_of_type(given, p.name) for p, given in bound.items() if given is not None}
    check_types(made)
    return made


def input_of_type(given: Any, name: str) -> Input:
    """An input of a type given as an int, a shape, or a type object.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(given, (int, tuple)):
        return input_variable(given, name=name)
    known = as_type(given)
    if known is not None:
        return input_variable(**known, name=name)
    raise TypeError(f"argument '{name}': expected an int, a shape or a type such as Tensor[3], got {given!r}")
