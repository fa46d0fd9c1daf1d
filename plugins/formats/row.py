"""An operator of CNTK's file format: its number, and the names and kinds under which the file keeps its attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.graph.nodes import Primitive
from ...core.graph.variable import Variable
from ...core.operators.op import Op
from .attributes import SEED, STREAM, WORDS, Kind, operand_of


class Given(dict[str, Any]):
    """Attributes from a file, read by kind."""

    def read(self, name: str, kind: Kind, *default: Any) -> Any:
        """The value of an attribute.

        Raises:
            ValueError: it is missing, or of another kind.
        """
        if name not in self:
            if default:
                return default[0]
            raise ValueError(f"expected the attribute '{name}', found {sorted(self)}")
        try:
            return kind.read(self[name])
        except ValueError as error:
            raise ValueError(f"attribute '{name}': {error}") from None


def _given(value: Any) -> Given:
    if not isinstance(value, dict):
        raise ValueError(f"expected a dictionary, found {value!r:.60}")
    return Given(value)


RECORD = Kind(lambda value, x: value, _given)
"""A dictionary in a dictionary."""


@dataclass
class Row:
    """One operator of the file format.

    Attributes:
        number: CNTK's number of the operator.
        cls: our operator.
        kinds: kinds of its attributes by the names of our fields; the file's names are these in camel case.
        defaults: values of attributes that older files leave out, by our names.
        names: the file's names where they are others.
        backwards: whether files list the operands last first.
    """

    number: int
    cls: type[Op]
    kinds: dict[str, Kind] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    backwards: bool = False

    def handles(self, node: Primitive) -> bool:
        """Whether *node* is written by this row."""
        return type(node.op) is self.cls

    def write(self, node: Primitive) -> dict[str, Any]:
        """Attributes in the file."""
        found = {self.file_name(name): kind.write(getattr(node.op, name), operand_of(node)) for name, kind in self.kinds.items()}
        return {**found, **progress_of(node.op)}

    def reads(self, given: Given, inputs: Sequence[Variable]) -> bool:
        """Whether what a file has under this number is this operator."""
        return True

    def make(self, given: Given, inputs: Sequence[Variable]) -> Op:
        """The operator of a node in a file."""
        read = {
            name: given.read(self.file_name(name), kind, *([self.defaults[name]] if name in self.defaults else []))
            for name, kind in self.kinds.items()
        }
        return go_on(self.cls(**read), given)

    def file_name(self, name: str) -> str:
        """Name of a field of ours in the file."""
        head, *rest = name.split("_")
        return self.names.get(name) or head + "".join(word.capitalize() for word in rest)

    def operands(self, node: Primitive) -> list[Any]:
        """Operands in the file: variables, and numbers for those that are attributes here."""
        return list(reversed(node.inputs)) if self.backwards else list(node.inputs)

    def inputs(self, given: Given, operands: list[Variable]) -> list[Variable]:
        """Our operands of those in a file."""
        return operands[::-1] if self.backwards else operands


def progress_of(op: Op) -> dict[str, Any]:
    """The position of a random operator: the numbers it has drawn and, for a sequential generator, the words that it made them of."""
    stream = getattr(op, "_stream", None)
    if stream is None:
        return {}
    words = {WORDS: np.uint64(stream.words)} if hasattr(stream, "words") else {}
    return {STREAM: np.uint64(stream.draws), **words}


def go_on(op: Op, given: Given) -> Op:
    """Restore the position of a random operator; files of CNTK assume one word for each number."""
    stream = getattr(op, "_stream", None)
    if stream is not None:
        stream.draws = given.read(STREAM, SEED, 0)
        if hasattr(stream, "words"):
            stream.skip(given.read(WORDS, SEED, stream.draws))
    return op
