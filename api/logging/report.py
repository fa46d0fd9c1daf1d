"""The trace level, and summaries of models."""

from __future__ import annotations

from enum import Enum, IntEnum

from cntk.core.common.shape import is_concrete, size_of
from cntk.core.common.switches import Switch
from cntk.core.graph.function import Function


class TraceLevel(IntEnum):
    """How much programs print while they run.

    >>> C.logging.TraceLevel.Info > C.logging.TraceLevel.Warning
    True
    """

    Error = 0
    Warning = 1
    Info = 2

    __str__ = Enum.__str__


_level = Switch("trace_level", TraceLevel.Warning)


def set_trace_level(value: TraceLevel | int) -> None:
    """Set the trace level.

    Raises:
        ValueError: *value* is not a level.

    >>> C.logging.set_trace_level(C.logging.TraceLevel.Error)
    >>> C.logging.get_trace_level()
    0
    >>> C.logging.set_trace_level(C.logging.TraceLevel.Warning)
    """
    _level.value = TraceLevel(value)


def get_trace_level() -> int:
    """The trace level as a number; warnings by default.

    >>> C.logging.get_trace_level() == C.logging.TraceLevel.Warning
    True
    """
    return _level.value.value


def log_number_of_parameters(model: Function, trace_level: TraceLevel | int = TraceLevel.Error) -> None:
    """Print how many parameters a model has; from *trace_level* 1 on also an empty line and the shape of each.

    >>> C.logging.log_number_of_parameters(C.layers.Dense(3)(C.input_variable(2)))
    Training 9 parameters in 2 parameter tensors.
    """
    shapes = [parameter.shape for parameter in model.parameters]
    known = all(is_concrete(shape) for shape in shapes)
    total = str(sum(size_of(shape) for shape in shapes)) if known else "so far unspecified number of"
    print(f"Training {total} parameters in {len(shapes)} parameter tensors.")
    if trace_level > 0:
        print()
        for shape in shapes:
            print(f"\t{shape}")
