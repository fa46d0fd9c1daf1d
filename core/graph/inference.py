"""Building graphs: operands become variables, an op applied to them becomes a function with inferred types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.dtypes import as_dtype, is_float
from ..common.options import option
from ..common.shape import is_concrete
from ..common.user_frame import warn_at
from ..extension import plugins
from ..operators.abilities import AssumesShapes
from ..operators.delay import Delay
from ..operators.elementwise import Elementwise
from ..operators.op import Op, includes
from ..types.arguments import shown
from ..types.spec import DynamicAxesError, Spec
from ..types.types import VariableType
from . import graph
from .foreign import as_data
from .tensor import ArrayMixin
from .variable import Constant, Input, Literal, Output, Parameter, Placeholder, Variable, has_inferred_dimensions

if TYPE_CHECKING:
    from .nodes import Composite, Primitive


class Assuming(IntEnum):
    """How inference proceeds with unknown operands, such as those in a recurrence that depend on its result."""

    NOTHING = 0
    """Results of unknown operands are unknown."""
    KNOWN_OPERANDS = 1
    """Results have the types that follow from the known operands."""
    INITIAL_STATES = 2
    """The same; and an unknown value has the shape of the initial state of its delay."""
    CONSTANTS = 3
    """Nothing but the element type of constants beside operands of unknown type."""
    ELEMENTWISE = 4
    """Results of element-wise operators have the types that their known operands tell; from these, layers take their widths."""


def apply(op: Op, operands: Sequence[Any], name: str = "") -> Composite:
    """Apply *op* to operands of any accepted kind and return the function.

    Raises:
        ValueError, TypeError: an operand is of no accepted kind, or the operands are incompatible.
    """
    from .nodes import Composite, Primitive

    return Composite(Primitive(op, as_variables(op.op_name, operands, op.traits.array_types), name))


def as_variables(op_name: str, operands: Sequence[Any], array_types: Sequence[int] = (2,)) -> list[Variable]:
    """Turn operands into variables.

    Numbers, lists and arrays take the element type of the variables, or are left open while that is unknown.

    Args:
        op_name: the operator's name in errors.
        operands: variables, functions, numbers, lists and arrays.
        array_types: see :class:`~cntk.core.operators.op.Traits`.

    Raises:
        ValueError, TypeError: as for :func:`as_variable`.
    """
    variables = [_variable_of(operand) for operand in operands]
    found = [v for v in variables if v is not None]
    if len(found) == len(operands):
        return found
    operands = [as_data(f"{op_name}, operand {place}", operand) for place, operand in enumerate(operands, 1)]
    keeps_types = len(operands) in array_types
    if not keeps_types:
        operands = [x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype.kind in "iub" else x for x in operands]
    wanted = option("dtype", None)
    dtype = _firm_dtype(found)
    if dtype is None and wanted is None and any(not isinstance(v, Constant) for v in found):
        return [
            Literal(_number_or_array(x, f"{op_name}, operand {place}")) if v is None else v
            for place, (x, v) in enumerate(zip(operands, variables, strict=True), 1)
        ]
    if dtype is None and keeps_types:
        dtype = _widest_dtype(operands)
    dtype = dtype or as_dtype(wanted or np.float32)
    return [as_variable(operand, dtype, f"{op_name}, operand {place}") for place, operand in enumerate(operands, 1)]


def _firm_dtype(variables: Sequence[Variable]) -> Any:
    """The common element type of operands: that of variables, or else that of constants; None if none has one."""
    others = [v for v in variables if not isinstance(v, Constant)]
    return next((v.spec.dtype for v in others or variables if v.spec.dtype is not None), None)


def _widest_dtype(operands: Sequence[Any]) -> Any:
    """The most precise type of NumPy operands, with float32 for what has no type; None where there is none of them.

    Raises:
        ValueError: there is none that holds all of them, as of float16 and bfloat16.
    """
    arrays = [x.dtype for x in operands if isinstance(x, (np.ndarray, np.generic)) and is_float(x.dtype)]
    if not arrays:
        return None
    try:
        return np.result_type(*arrays, *([np.float32] if len(arrays) < len(operands) else [])).type
    except TypeError:
        names = " and ".join(sorted({dtype.name for dtype in arrays}))
        raise ValueError(f"operands have the data types {names}; bring them to one type with .astype") from None


def as_variable(operand: Any, dtype: Any = None, op_name: str = "operand") -> Variable:
    """Turn a variable, function, number, list or array into a variable.

    Raises:
        ValueError: an empty list, or an array that does not hold floating-point numbers.
        TypeError: something else.
    """
    variable = _variable_of(operand)
    if variable is not None:
        return variable
    given = _number_or_array(operand, op_name)
    own = given.dtype.type if isinstance(given, np.ndarray) and not isinstance(operand, (list, tuple)) else None
    return Constant(given, dtype=dtype or own)


def _number_or_array(operand: Any, op_name: str) -> Any:
    """Types from which constants are made."""
    if isinstance(operand, ArrayMixin):
        operand = operand.asarray()
    operand = as_data(op_name, operand)
    if isinstance(operand, np.generic):
        operand = operand.item()
    if isinstance(operand, np.ndarray):
        if not is_float(operand.dtype):
            raise ValueError(
                f"{op_name}: an array operand must hold floating-point numbers, got {operand.dtype}; convert it with .astype(np.float32)"
            )
        return operand
    if isinstance(operand, VariableType):
        raise ValueError(f"{op_name}: the operand is a type object, {operand}; did you mean to pass 'input_variable(**{operand})'?")
    if isinstance(operand, (bool, float)):
        return operand
    if isinstance(operand, int):
        return operand if abs(operand) < _BEYOND_INTEGERS else _as_float(operand, op_name)
    if isinstance(operand, (list, tuple)):
        try:
            array = np.asarray(operand, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{op_name}: cannot make a constant of {operand!r}; expected numbers in rows of equal length") from None
        if array.size == 0:
            raise ValueError(f"{op_name}: an empty list is not an operand")
        return array
    raise TypeError(f"{op_name}: expected a variable, function, number, list or array as operand, got {shown(operand)}")


_BEYOND_INTEGERS = 2**63


def _as_float(number: int, op_name: str) -> float:
    try:
        return float(number)
    except OverflowError:
        raise ValueError(f"{op_name}: {shown(number)} is too large for a floating-point number") from None


def _variable_of(operand: Any) -> Variable | None:
    from .function import Function

    if isinstance(operand, Variable):
        return operand
    if isinstance(operand, Function):
        return operand.output
    return None


def infer(node: Primitive, assuming: Assuming = Assuming.NOTHING) -> tuple[Spec, ...]:
    """Types of a primitive's results; fills in the inferred dimensions of its parameters.

    Args:
        node: the primitive.
        assuming: how to go on where operands are unknown, as they are in a recurrence at first.

    Raises:
        ValueError: its operands are incompatible; the message names op, operands and the user's line.
    """
    specs = _operand_specs(node, assuming)
    if assuming not in (Assuming.NOTHING, Assuming.CONSTANTS):
        fixed = [isinstance(v, (Input, Parameter, Constant)) and not v.in_block for v in node.inputs]
        results = assume(node.op, specs, fixed, assuming)
        if assuming is Assuming.ELEMENTWISE and results[0].shape is not None and all(spec.shape is not None for spec in specs):
            node.first_seen = specs
        return results
    if any(spec.shape is None for spec in specs):
        return (Spec(),) * node.op.outputs
    try:
        if any(has_inferred_dimensions(variable) for variable in node.inputs):
            specs = _resolve(node, specs)
        result = node.op.infer(*specs)
    except (ValueError, TypeError, RuntimeError) as error:
        raise explained(error, node) from None
    return result if isinstance(result, tuple) else (result,)


def _operand_specs(node: Primitive, assuming: Assuming) -> list[Spec]:
    """Types of the operands; constants and parameters without one get the element type of the others, and have none while that is open."""
    specs = [variable.spec for variable in node.inputs]
    constants = {i: v for i, v in enumerate(node.inputs) if isinstance(v, Constant)}
    untyped = {i: v for i, v in enumerate(node.inputs) if isinstance(v, Parameter) and v.spec.dtype is None}
    if not constants and not untyped:
        return specs
    dtype = _firm_dtype(node.inputs)
    if dtype is None and constants and len(constants) + len(untyped) == len(specs):
        dtype = next(iter(constants.values())).dtype
    for i, parameter in untyped.items():
        parameter.take_type(dtype)
        specs[i] = parameter.spec
    if dtype is None and assuming is Assuming.CONSTANTS:
        dtype = next(iter(constants.values())).dtype
    for i, constant in constants.items():
        if isinstance(constant, Literal) and dtype is not None:
            constant.take_type(dtype)
        if constant.spec.dtype is not dtype and includes(node.op.traits.uniform_inputs, i):
            if dtype is not None:
                node.replace_inputs({constant: _cast(constant, dtype)})
            specs[i] = replace(constant.spec, dtype=dtype)
        else:
            specs[i] = constant.spec
    return specs


def _cast(constant: Constant, dtype: Any) -> Variable:
    return plugins.ops.get("cast")(constant, dtype).output


def assumed_dtype(variables: Sequence[Variable]) -> Any:
    """The element type that operands seem to have while placeholders leave it open, constants coming last; None for none."""
    ordered = sorted(variables, key=lambda variable: (isinstance(variable, Constant), variable.spec.dtype is None))
    return next((variable.dtype for variable in ordered if variable.dtype is not None), None)


def assume(op: Op, specs: Sequence[Spec], fixed: Sequence[bool], assuming: Assuming) -> tuple[Spec, ...]:
    """Types of an operator's results as far as the known operands tell; the inference proper that follows checks them.

    Args:
        op: the operator.
        specs: types of the operands; those on a cycle may be unknown, or only a part of what they will be (the shape of one factor).
        fixed: which of the operands do not change any more.
        assuming: how to treat unknown operands.
    """
    if assuming is Assuming.ELEMENTWISE and any(spec.shape is None for spec in specs):
        tells = isinstance(op, Elementwise) and any(spec.shape is not None and spec.dims != (1,) * spec.rank for spec in specs)
        if not tells:
            return (Spec(),) * op.outputs
    if assuming is Assuming.INITIAL_STATES and isinstance(op, Delay) and specs[0].shape is None:
        specs = [specs[0].but(shape=specs[1].shape), *specs[1:]]
    open_ones = [spec if is_fixed else spec.but(shape=None) for spec, is_fixed in zip(specs, fixed, strict=True)]
    for operands in (specs, open_ones):
        try:
            return _from_known(op, operands)
        except (ValueError, TypeError, RuntimeError):
            continue
    return (Spec(),) * op.outputs


def _from_known(op: Op, specs: Sequence[Spec]) -> tuple[Spec, ...]:
    assumed: Sequence[Spec] | None = specs
    if any(spec.shape is None for spec in specs):
        assumed = op.assume(*specs) if issubclass(type(op), AssumesShapes) else None
    if assumed is None:
        return (Spec(),) * op.outputs
    widest = next((spec.axes for spec in specs if spec.axes is not None and len(spec.axes) > 1), None)
    result = op.infer(*(spec if spec.axes is not None else spec.but(axes=widest) for spec in assumed))
    results = result if isinstance(result, tuple) else (result,)
    telling = (
        (0, *op.traits.layout_inputs) if isinstance(op, Delay) else op.traits.layout_inputs
    )  # the dynamic axes of the result are theirs
    if any(spec.axes is None for i, spec in enumerate(specs) if i in telling):
        return tuple(spec.but(axes=None) for spec in results)
    return results


def infer_again(order: Sequence[Primitive], assuming: Assuming = Assuming.NOTHING) -> bool:
    """Infer the types of a graph whose leaves or edges have changed; says whether any type did.

    Args:
        order: its primitives, or those whose operands have changed and all that depend on them, each after those it needs unless they
            are parts of a cycle.
        assuming: as for :func:`infer`.
    """
    if not _has_cycle(order):
        return _refresh_all(order, assuming)
    if not assuming and any(has_inferred_dimensions(variable) for node in order for variable in node.inputs):
        _look_first(order)
    changed = _settle(order, assuming or Assuming.KNOWN_OPERANDS)
    if assuming:
        return changed
    if not _all_known(order):
        changed = _settle(order, Assuming.INITIAL_STATES) or changed
    changed = _settle(order, Assuming.NOTHING) or changed
    if not _all_typed(order):
        changed = _settle(order, Assuming.CONSTANTS) or changed
    _tell_what_is_wrong(order)
    _check_sequences(order)
    return changed


def _all_known(order: Sequence[Primitive]) -> bool:
    return all(output.spec.shape is not None for node in order for output in node.outputs)


def _look_first(order: Sequence[Primitive]) -> None:
    """Let primitives note the operands' types that show before anything is known of the recurrences, and forget these types."""
    before = [(output, output.spec) for node in order for output in node.outputs]
    _refresh_all(order, Assuming.ELEMENTWISE)
    for output, spec in before:
        output.spec = spec


def _all_typed(order: Sequence[Primitive]) -> bool:
    """Whether element types are known, or cannot be, as operands from outside have none."""
    if any(v.spec.dtype is None for v in _given(order) if not isinstance(v, Literal)):
        return True
    return all(output.spec.dtype is not None for node in order for output in node.outputs)


def _given(order: Sequence[Primitive]) -> Iterator[Variable]:
    """Operands from outside."""
    members = set(order)
    return (v for node in order for v in node.inputs if not isinstance(v, Output) or v.owner not in members)


def _tell_what_is_wrong(order: Sequence[Primitive]) -> None:
    """Raise the error behind types that are still unknown, though those of all operands from outside are known."""
    if any(variable.spec.shape is None for variable in _given(order)):
        return
    for node in order:
        if any(output.spec.shape is None for output in node.outputs):
            try:
                _from_known(node.op, [variable.spec for variable in node.inputs])
            except (ValueError, TypeError, RuntimeError) as error:
                raise explained(error, node) from None


def _check_sequences(order: Sequence[Primitive]) -> None:
    """Refuse a recurrence that runs along no sequence, since all of its operands with dynamic axes have only a batch axis."""
    if any(variable.spec.axes is None for variable in _given(order)):
        return
    along = [node for node in order if any(output.spec.axes is None for output in node.outputs)]
    delay = next((node for node in along if isinstance(node.op, Delay)), None)
    no_sequences: list[Variable] = list(dict.fromkeys(v for node in along for v in node.inputs if v.spec.axes))
    if delay is None or not no_sequences:
        return
    inputs = [v for v in graph.leaves_behind(no_sequences) if isinstance(v, (Input, Placeholder))]
    found: Sequence[Variable]
    if any(v.has_sequence_axis() for v in inputs):
        found, remedy = no_sequences, "repeat it along a sequence with sequence.broadcast_as, or keep the sequence axis that it had"
    else:
        found, remedy = inputs, "declare it with sequence.input_variable"
    names = ", ".join(map(repr, found))
    raise explained(RuntimeError(f"a recurrence runs along sequences, but {names} has no sequence axis; {remedy}"), delay)


def _refresh_all(order: Sequence[Primitive], assuming: Assuming) -> bool:
    changed = [node.refresh(assuming) for node in order]
    return any(changed)


def _settle(order: Sequence[Primitive], assuming: Assuming) -> bool:
    """Repeat until nothing changes, which takes about as many rounds as delays follow one another on a cycle."""
    changed = False
    for _ in range(len(order) + 2):
        if not _refresh_all(order, assuming):
            return changed
        changed = True
    raise explained(ValueError("the types in this recurrence do not settle: each step changes them again"), order[-1])


def _places_of(variables: Sequence[Variable]) -> str:
    """The lines that made the variables whose dynamic axes conflict."""
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
    """Fill in parameters' dimensions.

    As in CNTK, operands behind a recurrence count with the shape that they showed at first, if others have but come before its axes since.
    """
    for seen in (node.first_seen or specs, specs):
        if all(later.dims[later.rank - first.rank :] == first.dims for first, later in zip(seen, specs, strict=True)):
            for variable, shape in zip(node.inputs, node.op.resolve(*seen), strict=True):
                if isinstance(variable, (Parameter, Constant)) and has_inferred_dimensions(variable) and is_concrete(shape):
                    variable.set_shape(tuple(shape))
            specs = [variable.spec for variable in node.inputs]
    return specs


def warn_of_repetition(node: Primitive) -> None:
    """Warn at the user's line where a value without sequence axis is compared with every step of a sequence."""
    compared = [v for v in node.inputs if v.spec.axes]
    if len({len(v.dynamic_axes) for v in compared}) == 2:
        short, long = sorted(compared, key=lambda v: len(v.dynamic_axes))[:: len(compared) - 1]
        a, b = (f"{v.name or v.kind} ({v.spec})" for v in (short, long))  # without uids: the warning is the same for each copy
        warn_at(
            f"{node.op_name}: {a} has no sequence axis and is compared with every step of {b}; take one step of each sequence with "
            "sequence.last or a Fold, or say that this is meant with sequence.broadcast_as",
            node.line,
        )


def explained(error: Exception, node: Primitive) -> Exception:
    """The same kind of error, saying which op failed, on which operands, and where the user built it."""
    text = named(node)
    hint = _hint_of_none(error, node)
    made = _places_of(node.inputs) if isinstance(error, DynamicAxesError) else ""
    try:
        return type(error)(f"{text}: {error}{hint} [built at {node.line}{made}]")
    except TypeError:
        return RuntimeError(f"{text}: {type(error).__name__}: {error}{hint} [built at {node.line}]")


def named(node: Primitive) -> str:
    """An operator as errors show it: with its name, if it has one, and its operands."""
    operands = ", ".join(map(repr, node.inputs))
    return f"{node.op_name} '{node.name}'({operands})" if node.name else f"{node.op_name}({operands})"


def _hint_of_none(error: Exception, node: Primitive) -> str:
    """Advice for an operator that computes with None: backward gets only the arrays that the operator's class declares."""
    if not isinstance(error, (TypeError, AttributeError)) or not ("NoneType" in str(error) or "dtype('O')" in str(error)):
        return ""
    return f"; arrays that backward reads are None unless named: keep_inputs is {node.op.keep_inputs}, keep_output {node.op.keep_output}"
