"""Variables, parameters, constants, and the record that training returns."""

from __future__ import annotations

from typing import Any

from cntk.core.common.tracebacks import answers
from cntk.core.graph.variable import Constant, Parameter, Variable


class Record(dict[str, Any]):
    """A dictionary whose entries are attributes, which cannot be assigned.

    >>> r = C.variables.Record(loss=0.5, samples=10)
    >>> r.loss
    0.5
    >>> r.updated_with(loss=0.25)
    {'loss': 0.25, 'samples': 10}
    """

    def __init__(self, **entries: Any) -> None:
        super().__init__(**entries)

    @answers
    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the record has no '{name}'; it has {list(self)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a record cannot be changed; use updated_with({name}=...)")

    def updated_with(self, **changes: Any) -> Record:
        """A new record with some entries changed or added."""
        return Record(**{**self, **changes})


VariableMixin = Variable
"""CNTK's name for what variables, parameters and constants have in common."""

__all__ = ["Constant", "Parameter", "Record", "Variable", "VariableMixin"]
