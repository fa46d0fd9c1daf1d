"""Writes recurrences as ``Scan``: one state for each step that a delay goes back, and the operators of a step as its body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .....core.graph.nodes import Primitive
from .....core.graph.variable import Variable
from .....core.operators.delay import Delay
from .....core.program.ordering import Cycle
from .....core.types.axis import Axis
from ..messages import ValueInfo
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def write_loop(to: ModelWriter, cycle: Cycle) -> None:
    """Write the operators of a recurrence."""
    _Loop(to, cycle).write()


class _Loop:
    def __init__(self, to: ModelWriter, cycle: Cycle) -> None:
        self.to, self.cycle = to, cycle
        self.delays = [node for node in cycle.nodes if isinstance(node.op, Delay)]
        self.axis: Axis = next(axis for axis in to.value_like(self.delays[0].outputs[0]).axes[1:])
        self.inside = {output for node in cycle.nodes for output in node.outputs}
        self.label = ", ".join(node.name or node.uid for node in self.delays)

    def write(self) -> None:
        to = self.to
        to.label = self.label
        outside = self._operands()
        before = {variable: to.value(variable) for variable in outside}
        scanned = [v for v, value in before.items() if self.axis in value.axes]
        states = {node: [self._initial(node)] * abs(node.op.steps_back) for node in self.delays}
        initial = [name for names in states.values() for name in names]
        results = [output for node in self.cycle.nodes for output in node.outputs]
        masked = not self.cycle.forward and to.has_lengths(self.axis)
        mask = to.mask(self.axis) if masked else ""
        inputs = [before[v].name for v in scanned] + ([mask] if masked else [])

        with to.inside("step") as body:
            to.stepping.add(self.axis)
            kept: dict[Primitive, list[str]] = {node: [to.unique("state") for _ in names] for node, names in states.items()}
            for node, names in kept.items():
                to.note(node.outputs[0], self._of_step(to.value_like(node.outputs[0])).called(names[-1]))
            for v in scanned:
                to.note(v, self._of_step(before[v]).called(to.unique("step")))
            own_mask = to.unique("mask") if masked else ""
            body.input = [ValueInfo(name) for names in kept.values() for name in names]
            body.input += [ValueInfo(to.value(v).name) for v in scanned] + ([ValueInfo(own_mask)] if masked else [])
            for node in self.cycle.nodes:
                if not isinstance(node.op, Delay):
                    to.write(node)
            to.label = self.label
            body.output = [ValueInfo(name) for node in self.delays for name in self._next(node, kept[node], own_mask)]
            body.output += [ValueInfo(self._own(to.value(v).name)) for v in results]
            stepped = {v: to.value(v) for v in results}
        to.stepping.remove(self.axis)

        directions = [0 if self.cycle.forward else 1]
        made = to.node(
            "Scan",
            *initial,
            *inputs,
            outputs=len(initial) + len(results),
            body=body,
            num_scan_inputs=len(inputs),
            scan_input_axes=[1] * len(inputs),
            scan_output_axes=[1] * len(results),
            scan_input_directions=directions * len(inputs),
            scan_output_directions=directions * len(results),
        )
        for v, value in before.items():
            to.note(v, value)
        for v, name in zip(results, (made if isinstance(made, tuple) else (made,))[len(initial) :], strict=True):
            axes = (stepped[v].axes[0], self.axis, *stepped[v].axes[1:])
            to.note(v, Value(name, stepped[v].shape, stepped[v].dtype, axes))

    def _operands(self) -> list[Variable]:
        """Values from outside that the body reads."""
        read = (self.to.resolved(v) for node in self.cycle.nodes for v in node.inputs)
        return [v for v in dict.fromkeys(read) if v not in self.inside]

    def _of_step(self, value: Value) -> Value:
        """A value as it is within a step."""
        return Value(value.name, value.shape, value.dtype, tuple(axis for axis in value.axes if axis != self.axis), value.indices)

    def _initial(self, node: Primitive) -> str:
        """The initial state of a delay, for each sample."""
        to = self.to
        initial = to.dense(to.value(node.inputs[1]))
        like = self._of_step(to.value_like(node.outputs[0]))
        lined_up = to.lined_up_with(initial, like.axes, len(like.shape))
        return str(to.node("Expand", lined_up, to.shape([to.batch(), *like.shape])))

    def _next(self, node: Primitive, kept: list[str], mask: str) -> list[str]:
        """The states of a delay after a step: the newest first."""
        to = self.to
        like, value = to.value(node.outputs[0]), to.value(node.inputs[0])
        newest = to.lined_up_with(value, like.axes, len(like.shape))
        if value.shape != like.shape:
            newest = to.node("Expand", newest, to.shape([to.batch(), *like.shape]))
        following = [newest, *kept[:-1]]
        if mask:
            there = to.unsqueeze(mask, list(range(1, like.rank)))
            following = [to.node("Where", there, new, old) for new, old in zip(following, kept, strict=True)]
        return [self._own(str(name)) for name in following]

    def _own(self, name: str) -> str:
        """A result of the body, which is to be a value that the body made."""
        return str(self.to.node("Identity", name))
