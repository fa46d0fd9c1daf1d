"""Functions, their conversion from Python functions, and their files."""

from __future__ import annotations

from typing import Any

from cntk.core.graph.function import CloneMethod, Function
from cntk.core.graph.python_function import BlockFunction
from cntk.core.operators.native import native_user_function, register_native_user_function
from cntk.core.storage.model_format import ModelFormat
from cntk.plugins.user_functions import UserFunction

load_model = Function.load


def _attributes(self: Function) -> dict[str, Any]:
    """Attributes of the operator, by CNTK's names, as model files keep them; an axis is ``('ordered', 'static', 0)``, counted back.

    >>> C.slice(C.input_variable((2, 3)), 0, 1, 2).attributes
    {'axis': ('ordered', 'static', 1), 'beginIndex': 1, 'endIndex': 2, 'sliceStrides': 1}
    """
    from cntk.plugins.formats.shown import shown_attributes  # which needs the operators

    return shown_attributes(self.root_function)


Function.attributes = property(_attributes)  # type: ignore[assignment]

__all__ = [
    "BlockFunction",
    "CloneMethod",
    "Function",
    "ModelFormat",
    "UserFunction",
    "load_model",
    "native_user_function",
    "register_native_user_function",
]
