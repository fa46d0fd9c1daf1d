"""Building graphs: operands become variables, an op applied to them becomes a function with inferred types."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from . import plugins
from .dtypes import as_dtype
from .foreign import as_data
from .op import ALL, Op, Which, includes
from .options import option
from .shape import is_concrete
from .spec import DynamicAxesError, Spec
from .tensor import ArrayMixin
from .types import VariableType
from .variable import Constant, Input, Number, Output, Parameter, Variable, has_inferred_dimensions

if TYPE_CHECKING:
    from .nodes import Composite, Primitive


class Presuming(IntEnum):
    """How inference goes on where operands are unknown, as those are in a recurrence that depend on its result."""

    NOTHING = 0
    """Results of unknown operands are unknown."""
    KNOWN_OPERANDS = 1
    """Results have the types that the known operands tell."""
    INITIAL_STATES = 2
    """The same; and an unknown value has the shape of the initial state of its delay."""


def apply(op: Op, operands: Sequence[Any], name: str = "") -> Composite:
    """Apply *op* to operands of any accepted kind and return the function.

    Raises:
        ValueError, TypeError: an operand is of no accepted kind, or the operands do not go together.
    """
    from .nodes import Composite, Primitive

    return Composite(Primitive(op, as_variables(op.op_name, operands, op.uniform_inputs), name))


def as_variables(op_name: str, operands: Sequence[Any], uniform: Which = ALL) -> list[Variable]:
    """Turn operands into variables; numbers, arrays and the *uniform* constants take the element type of the other operands."""
    operands = [as_data(op_name, operand) for operand in operands]
    if len(operands) == 1 and isinstance(operands[0], np.ndarray) and operands[0].dtype.kind in "iub":
        operands = [operands[0].astype(np.float32)]
    variables = [_variable_of(operand) for operand in operands]
    dtype = _common_dtype(operands, variables)
    if dtype is None and any(v is not None for v in variables) and option("dtype", None) is None:
        return [Number(x) if isinstance(x, (bool, int, float)) else as_variable(x, None, op_name) for x in operands]
    dtype = dtype or as_dtype(option("dtype", np.float32))
    found = [as_variable(operand, dtype, op_name) for operand in operands]
    return [
        _cast(v, dtype) if isinstance(v, Constant) and v.dtype is not dtype and includes(uniform, i) else v for i, v in enumerate(found)
    ]


def _common_dtype(operands: Sequence[Any], variables: Sequence[Variable | None]) -> Any:
    """Element type of the first operand that has one: variables count before constants, constants before arrays; None if none has."""
    typed = [v for v in variables if v is not None and v.dtype is not None]
    fixed = [v.dtype for v in typed if not isinstance(v, Constant)] or [v.dtype for v in typed]
    arrays = [x.dtype.type for x in operands if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "f"]
    return (fixed or arrays or [None])[0]


def _cast(constant: Constant, dtype: Any) -> Variable:
    return plugins.ops.get("cast")(constant, dtype).output


def as_variable(operand: Any, dtype: Any = None, op_name: str = "operand") -> Variable:
    """Turn a variable, function, number, list or array into a variable.

    Raises:
        ValueError: an empty list, or an array that does not hold floating-point numbers.
        TypeError: something else.
    """
    variable = _variable_of(operand)
    if variable is not None:
        return variable
    if isinstance(operand, ArrayMixin):
        operand = operand.asarray()
    operand = as_data(op_name, operand)
    if isinstance(operand, (np.ndarray, np.generic)):
        if operand.dtype.kind != "f":
            raise ValueError(
                f"{op_name}: an array operand must hold floating-point numbers, got {operand.dtype}; convert it with .astype(np.float32)"
            )
        return Constant(operand, dtype=dtype or operand.dtype.type)
    if isinstance(operand, VariableType):
        raise ValueError(f"{op_name}: the operand is a type object, {operand}; did you mean to pass 'input_variable(**{operand})'?")
    if isinstance(operand, (bool, int, float)):
        return Constant(operand, dtype=dtype)
    if isinstance(operand, (list, tuple)):
        try:
            array = np.asarray(operand, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{op_name}: cannot make a constant of {operand!r}; expected numbers in rows of equal length") from None
        if array.size == 0:
            raise ValueError(f"{op_name}: an empty list is no operand")
        return Constant(array, dtype=dtype)
    raise TypeError(
        f"{op_name}: expected a variable, function, number, list or array as operand, got {type(operand).__name__} {operand!r:.80}"
    )


def _variable_of(operand: Any) -> Variable | None:
    from .function import Function

    if isinstance(operand, Variable):
        return operand
    if isinstance(operand, Function):
        return operand.output
    return None


def infer(node: Primitive, presuming: Presuming = Presuming.NOTHING) -> tuple[Spec, ...]:
    """Types of a primitive's results; fills in the inferred dimensions of its parameters.

    Args:
        node: the primitive.
        presuming: how to go on where operands are unknown, as they are in a recurrence at first.

    Raises:
        ValueError: its operands do not go together; the message names op, operands and the user's line.
    """
    _type_numbers(node)
    specs = [variable.spec for variable in node.inputs]
    if presuming:
        return presume(node.op, specs, [isinstance(v, (Input, Parameter, Constant)) and not v.in_block for v in node.inputs], presuming)
    if any(spec.shape is None for spec in specs):
        return (Spec(),) * node.op.outputs
    try:
        if any(has_inferred_dimensions(variable) for variable in node.inputs):
            specs = _resolve(node, specs)
        result = node.op.infer(*specs)
    except (ValueError, TypeError, RuntimeError) as error:
        raise explained(error, node) from None
    return result if isinstance(result, tuple) else (result,)


def _type_numbers(node: Primitive) -> None:
    """Let numbers take the element type of the other operands, as soon as that is known."""
    numbers = [v for v in node.inputs if isinstance(v, Number) and v.spec.dtype is None]
    if numbers:
        known = next((v.spec.dtype for v in node.inputs if v.spec.dtype is not None), None)
        for number in numbers:
            number.take_type(known)


def presume(op: Op, specs: Sequence[Spec], fixed: Sequence[bool], presuming: Presuming) -> tuple[Spec, ...]:
    """Types of an operator's results as far as the known operands tell; the inference proper that follows checks them.

    Args:
        op: the operator.
        specs: types of the operands; those on a cycle may be unknown, or only a part of what they will be (the shape of one factor).
        fixed: which of the operands do not change any more.
        presuming: what to go by.
    """
    if presuming is Presuming.INITIAL_STATES and op.steps_back and specs[0].shape is None:
        specs = [specs[0].but(shape=specs[1].shape), *specs[1:]]
    open_ones = [spec if is_fixed else spec.but(shape=None) for spec, is_fixed in zip(specs, fixed, strict=True)]
    for operands in (specs, open_ones):
        try:
            return _from_known(op, operands)
        except (ValueError, TypeError, RuntimeError):
            continue
    return (Spec(),) * op.outputs


def _from_known(op: Op, specs: Sequence[Spec]) -> tuple[Spec, ...]:
    presumed = op.presume(*specs) if any(spec.shape is None for spec in specs) else specs
    if presumed is None:
        return (Spec(),) * op.outputs
    widest = next((spec.axes for spec in specs if spec.axes is not None and len(spec.axes) > 1), None)
    result = op.infer(*(spec if spec.axes is not None else spec.but(axes=widest) for spec in presumed))
    results = result if isinstance(result, tuple) else (result,)
    telling = (0, *op.layout_inputs) if op.steps_back else op.layout_inputs  # the dynamic axes of the result are theirs
    if any(spec.axes is None for i, spec in enumerate(specs) if i in telling):
        return tuple(spec.but(axes=None) for spec in results)
    return results


def infer_again(order: Sequence[Primitive], presuming: Presuming = Presuming.NOTHING) -> bool:
    """Infer the types of a graph whose leaves or edges have changed; says whether any type did.

    Args:
        order: its primitives, or those whose operands have changed and all that depend on them, each after those it needs unless they
            are parts of a cycle.
        presuming: as for :func:`infer`.
    """
    if not _has_cycle(order):
        return _sweep(order, presuming)
    changed = _settle(order, presuming or Presuming.KNOWN_OPERANDS)
    if presuming:
        return changed
    if not _all_known(order):
        changed = _settle(order, Presuming.INITIAL_STATES) or changed
    changed = _settle(order, Presuming.NOTHING) or changed
    _tell_what_is_wrong(order)
    return changed


def _all_known(order: Sequence[Primitive]) -> bool:
    return all(output.spec.shape is not None for node in order for output in node.outputs)


def _tell_what_is_wrong(order: Sequence[Primitive]) -> None:
    """Raise the error behind types that are still unknown, though those of all operands from outside are known."""
    members = set(order)
    given = (v for node in order for v in node.inputs if not isinstance(v, Output) or v.owner not in members)
    if any(variable.spec.shape is None for variable in given):
        return
    for node in order:
        if any(output.spec.shape is None for output in node.outputs):
            try:
                _from_known(node.op, [variable.spec for variable in node.inputs])
            except (ValueError, TypeError, RuntimeError) as error:
                raise explained(error, node) from None


def _sweep(order: Sequence[Primitive], presuming: Presuming) -> bool:
    changed = [node.refresh(presuming) for node in order]
    return any(changed)


def _settle(order: Sequence[Primitive], presuming: Presuming) -> bool:
    """Sweep until nothing changes, which takes about as many rounds as delays follow one another on a cycle."""
    changed = False
    for _ in range(len(order) + 2):
        if not _sweep(order, presuming):
            return changed
        changed = True
    raise explained(ValueError("the types in this recurrence do not settle: each step changes them again"), order[-1])


def _places_of(variables: Sequence[Variable]) -> str:
    """Where the variables were made whose dynamic axes are at odds."""
    places = {v: v.line for v in variables if v.line and len(v.spec.axes or ()) > 1}
    return "".join(f"; {v.name or v.uid} made at {line}" for v, line in places.items())


def _has_cycle(order: Sequence[Primitive]) -> bool:
    ahead = set(order)
    for node in order:
        ahead.remove(node)
        if any(isinstance(variable, Output) and variable.owner in ahead for variable in node.inputs):
            return True
    return False


def _resolve(node: Primitive, specs: list[Spec]) -> list[Spec]:
    shapes = node.op.resolve(*specs)
    for variable, shape in zip(node.inputs, shapes, strict=True):
        if isinstance(variable, (Parameter, Constant)) and has_inferred_dimensions(variable) and is_concrete(shape):
            variable.set_shape(tuple(shape))
    return [variable.spec for variable in node.inputs]


def explained(error: Exception, node: Primitive) -> Exception:
    """The same kind of error, saying which op failed, on which operands, and where the user built it."""
    operands = ", ".join(map(repr, node.inputs))
    named = f"{node.op_name} '{node.name}'" if node.name else node.op_name
    made = _places_of(node.inputs) if isinstance(error, DynamicAxesError) else ""
    try:
        return type(error)(f"{named}({operands}): {error} [built at {node.line}{made}]")
    except TypeError:
        return RuntimeError(f"{named}({operands}): {type(error).__name__}: {error} [built at {node.line}]")
