"""Names that CNTK programs import from its internals."""

from __future__ import annotations

from typing import Any

from cntk.core.graph.variable import Variable
from cntk.core.values.value import Value
from cntk.internal import sanitize, utils
from cntk.internal.sanitize import *
from cntk.internal.sanitize import _as_tuple
from cntk.internal.swig_helper import map_if_possible, typemap


def _value_as_sequence(val: Value, var: Variable) -> list[Any]:
    """The sequences of a value for *var*, without padding."""
    return val.as_sequences(var)


def _value_as_sequence_or_array(val: Value, var: Variable) -> Any:
    """The sequences of a value where *var* has a sequence axis, else its array."""
    return val.as_sequences(var) if len(var.dynamic_axes) > 1 else val.asarray()


__all__ = [*sanitize.__all__, "map_if_possible", "typemap"]
