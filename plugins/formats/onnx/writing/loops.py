"""Writes recurrences as ``Scan``: one state for each step that a delay goes back, and the operators of a step as its body."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .....core.common.shape import FreeDimension, format_shape
from .....core.graph.inference import named
from .....core.graph.nodes import Primitive
from .....core.graph.variable import Variable
from .....core.operators.delay import Delay
from .....core.program.ordering import Cycle
from .....core.types.axis import Axis
from ..messages import ValueInfo
from .delays import first_steps, initial_steps
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def write_loop(to: ModelWriter, cycle: Cycle) -> None:
    """Write the operators of a recurrence."""
    _Loop(to, cycle).write()


def initial_states(to: ModelWriter, node: Primitive, like: Value) -> list[str]:
    """The states of a delay before the first step of a recurrence, the newest first.

    Args:
        to: the model.
        node: the delay.
        like: the type of a state.
    """
    initial, back = to.dense(to.value(node.inputs[1])), node.op.steps_back
    if FreeDimension in like.shape and initial.shape != like.shape:
        raise ValueError(
            f"save: the states of {named(node)} have free dimensions, which ONNX files need to know before the first step; give it an "
            f"initial state of the shape {format_shape(like.shape)} [built at {node.line}]"
        )
    if len(initial.axes) < 2:
        return [to.repeated(initial, like)] * abs(back)
    steps = initial_steps(to, initial, back) if back > 0 else first_steps(to, initial, -back)
    order = range(back - 1, -1, -1) if back > 0 else range(-back)
    single = replace(initial, axes=like.axes)
    return [to.repeated(single.called(to.node("Gather", steps.name, to.constant(number, np.int64), axis=1)), like) for number in order]


class _Loop:
    def __init__(self, to: ModelWriter, cycle: Cycle) -> None:
        self.to, self.cycle = to, cycle
        self.delays = [node for node in cycle.nodes if isinstance(node.op, Delay)]
        self.results = [output for node in cycle.nodes for output in node.outputs]
        self.types = {output: to.value_like(output) for output in self.results}
        self.axis: Axis = self.types[self.delays[0].outputs[0]].axes[1]
        self.axes = {axis for like in self.types.values() for axis in like.axes[1:]}
        self.label = ", ".join(node.name or node.uid for node in self.delays)

    def write(self) -> None:
        to = self.to
        to.label = self.label
        before = {variable: to.value(variable) for variable in self._operands()}
        scanned = [v for v, value in before.items() if self.axes.intersection(value.axes)]
        states = {node: initial_states(to, node, self._of_step(self.types[node.outputs[0]])) for node in self.delays}
        initial = [name for names in states.values() for name in names]
        results = [v for v in self.results if to.is_read_outside(v, self.cycle.nodes)]
        masked = not self.cycle.forward and to.has_lengths(self.axis)
        inputs = [before[v].name for v in scanned] + ([to.mask(self.axis)] if masked else [])
        if not inputs:
            inputs = [self._some_steps()]

        with to.inside("step") as body, to.step_by_step(self.axes):
            kept: dict[Primitive, list[str]] = {node: [to.unique("state") for _ in names] for node, names in states.items()}
            for node, own in kept.items():
                to.note(node.outputs[0], self._of_step(self.types[node.outputs[0]]).called(own[-1]))
            for v in scanned:
                to.note(v, self._of_step(before[v]).called(to.unique("step")))
            rest = [to.unique("mask") for _ in inputs[len(scanned) :]]
            body.input = [ValueInfo(name) for names in kept.values() for name in names]
            body.input += [ValueInfo(name) for name in (*(to.value(v).name for v in scanned), *rest)]
            for node in self.cycle.nodes:
                if not isinstance(node.op, Delay):
                    to.write(node)
            to.label = self.label
            body.output = [info for node in self.delays for info in self._next(node, kept[node], rest[0] if masked else "")]
            stepped = [to.value(v) for v in results]
            body.output += [self._own(value) for value in stepped]

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
        for v in self.results:
            to.forget(v)
        left = (made if isinstance(made, tuple) else (made,))[len(initial) :]
        for v, value, name in zip(results, stepped, left, strict=True):
            to.note(v, replace(value, name=name, axes=self.types[v].axes))

    def _operands(self) -> list[Variable]:
        """Values from outside that the body reads, or that say where it begins."""
        inside = set(self.results)
        read = (
            self.to.resolved(v)
            for node in self.cycle.nodes
            for i, v in enumerate(node.inputs)
            if i not in node.op.traits.layout_inputs and not (isinstance(node.op, Delay) and i == 1)
        )
        return [v for v in dict.fromkeys(read) if v not in inside]

    def _some_steps(self) -> str:
        """Something with as many steps, for a recurrence that reads no sequence."""
        to = self.to
        return str(to.node("Expand", to.constant(0, np.int64), to.shape([1, to.steps(self.axis)])))

    def _of_step(self, value: Value) -> Value:
        """A value as it is within a step."""
        return replace(value, axes=tuple(axis for axis in value.axes if axis not in self.axes))

    def _next(self, node: Primitive, kept: list[str], mask: str) -> list[ValueInfo]:
        """The states of a delay after a step: the newest first."""
        to = self.to
        like = to.value(node.outputs[0])
        newest = to.repeated(to.dense(to.value(node.inputs[0])), like)
        following = [newest, *kept[:-1]]
        if mask:
            there = to.unsqueeze(mask, list(range(1, like.rank)))
            following = [to.node("Where", there, new, old) for new, old in zip(following, kept, strict=True)]
        return [self._own(like.called(name)) for name in following]

    def _own(self, value: Value) -> ValueInfo:
        """A result of the body, which is to be a value that the body made; programs ask for its type."""
        return self.to.declared(value.called(self.to.node("Identity", value.name)))
