"""The nodes of a graph.

A :class:`Primitive` is one operator applied to variables.  A :class:`Composite` is everything behind a primitive, which is
what users hold.  Primitives that hold others are in ``block``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..common.user_frame import user_line
from ..operators.op import Op, includes
from ..types.spec import Spec
from . import graph
from .function import Function
from .inference import Assuming, assumed_dtype, infer, warn_of_repetition
from .placeholders import latest_behind
from .variable import Output, Variable, new_uid


class Primitive(Function):
    """One operator applied to variables.

    Attributes:
        op: the operator with its attributes.
        line: file and line where the user made it.
        latest_placeholder: the latest placeholder behind it, for :mod:`~cntk.core.graph.placeholders`.
        assumed_dtype: element type of its results while placeholders leave that open: that of some operand.
        first_seen: of one whose parameters have dimensions to be filled in, the operands' types that a recurrence showed first.
    """

    latest_placeholder: tuple[int, float] = (-1, 0)
    assumed_dtype: Any = None
    first_seen: list[Spec] | None = None

    def __init__(self, op: Op, inputs: Sequence[Variable], name: str = "", line: str | None = None) -> None:
        self.op = op
        self.uid = new_uid(op.op_name)
        self._name = name
        self._inputs = list(inputs)
        self._custom: dict[str, Any] = {}
        self.line = line or user_line()
        specs = infer(self)
        self._outputs = tuple(Output(self, i, Spec(), name) for i in range(len(specs)))
        self._take(specs)

    @property
    def root_function(self) -> Primitive:
        return self

    @property
    def is_primitive(self) -> bool:
        return True

    @property
    def op_name(self) -> str:
        return self.op.op_name

    @property
    def inputs(self) -> tuple[Variable, ...]:
        return tuple(self._inputs)

    def _engine_inputs(self) -> Sequence[Variable]:
        return tuple(reversed(self.inputs)) if self.op.traits.reversed_operands else self.inputs

    @property
    def outputs(self) -> tuple[Variable, ...]:
        return self._outputs

    def _leaves(self) -> Iterable[Variable]:
        return dict.fromkeys(self._inputs)

    def refresh(self, assuming: Assuming = Assuming.NOTHING) -> bool:
        """Infer the results' types again, after operands have changed; says whether a type did.

        Args:
            assuming: how to go on where operands are unknown, as they are in a recurrence at first.
        """
        return self._take(infer(self, assuming))

    def _take(self, specs: Sequence[Spec]) -> bool:
        """Give the results these types."""
        changed = False
        for output, spec in zip(self._outputs, specs, strict=True):
            changed = changed or output.spec != spec
            output.spec = spec
            if spec.dtype is None:
                self.assumed_dtype = assumed_dtype(self._inputs)
        if changed and self.op.traits.compares:
            warn_of_repetition(self)
        return self._pass_on_need() or changed

    def replace_inputs(self, replacements: dict[Variable, Variable]) -> None:
        """Put other variables in the place of operands; types are not inferred again."""
        self._inputs = [replacements.get(v, v) for v in self._inputs]
        graph.wiring.note_change()

    def copy_on(self, inputs: Sequence[Variable], memo: dict[Variable, Variable]) -> Primitive:
        """The same operator on other operands; *memo* maps the leaves of the copied graph."""
        made = Primitive(self.op.copy(), inputs, self._name, self.line)
        made._custom = dict(self._custom)
        return made

    def _pass_on_need(self) -> bool:
        need = any(v.needs_gradient for i, v in enumerate(self._inputs) if includes(self.op.gradient_inputs, i))
        changed = any(output.needs_gradient != need for output in self._outputs)
        for output in self._outputs:
            output.needs_gradient = need
        return changed


class Composite(Function):
    """The whole graph behind a primitive."""

    def __init__(self, root: Primitive, name: str = "", order: Sequence[Variable] = ()) -> None:
        self._root = root
        self.uid = new_uid("CompositeFunction")
        self._name = name or root.name
        self._order = tuple(order)

    @property
    def order(self) -> tuple[Variable, ...]:
        """Arguments in the order that a Python function declared them, or what took their place; others come after."""
        return self._order

    @order.setter
    def order(self, order: Sequence[Variable]) -> None:
        self._order = tuple(order)
        graph.wiring.note_change()

    @property
    def root_function(self) -> Primitive:
        return self._root

    @property
    def is_composite(self) -> bool:
        return True

    @property
    def op_name(self) -> str:
        return "CompositeFunctionOpName"

    @property
    @graph.read_off
    def inputs(self) -> tuple[Variable, ...]:
        return self._in_declared_order(graph.leaves_of(self._root))

    def _engine_inputs(self) -> Sequence[Variable]:
        return self._in_declared_order(graph.leaves_of(self._root, engine_order=True))

    @graph.read_off
    def _arguments(self, engine_order: bool) -> tuple[Variable, ...]:
        return super()._arguments(engine_order)

    @graph.read_off
    def _leaves(self) -> Iterable[Variable]:
        return super()._leaves()

    def _in_declared_order(self, leaves: Sequence[Variable]) -> tuple[Variable, ...]:
        if not self._order:
            return tuple(leaves)
        among = set(leaves)
        declared = [v for v in graph.leaves_behind(self._order) if v in among]
        waiting, places = iter(declared), set(declared)
        return tuple(next(waiting) if v in places else v for v in leaves)

    def fix_order(self) -> None:
        """Fix the current order of the arguments before the graphs behind them change."""
        parts = (graph.leaves_behind([v]) if latest_behind(v) else [v] for v in self._order)
        self.order = tuple(dict.fromkeys(v for part in parts for v in part))
