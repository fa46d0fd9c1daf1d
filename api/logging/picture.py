"""The contents of a drawing of a graph: boxes and the arrows between them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cntk.core.graph.function import Function
from cntk.core.graph.graph import depth_first_search
from cntk.core.graph.variable import Constant, Output, Parameter, Placeholder, Variable


class Box(NamedTuple):
    """A node of the picture: lines of text, and the kind of object, which decides its shape."""

    text: str
    kind: str


class Arrow(NamedTuple):
    """From one box to another, by number, with a text beside it."""

    start: int
    end: int
    text: str


class Picture(NamedTuple):
    """Boxes and arrows."""

    boxes: list[Box]
    arrows: list[Arrow]


def functions_of(root: Function) -> list[Any]:
    """The functions behind *root*, each before those it depends on; blocks count as one."""
    return depth_first_search(root, lambda node: not isinstance(node, Variable))


def shown_inputs(function: Any) -> list[Variable]:
    """Operands of a function, without the constants of a block, which are its own affair."""
    return [v for v in function.inputs if not (function.is_block and v.is_constant)]


def picture_of(root: Function, most: int | None = None) -> Picture:
    """The picture of the graph behind *root*: functions, leaves and the outputs of *root*.

    Args:
        root: a function.
        most: how many functions are drawn, those met first on the way back from the result; one box counts the others.  All where None.
    """
    picture = Picture([], [])
    numbers: dict[Any, int] = {}
    functions = functions_of(root)
    drawn, rest = functions[:most], set(functions[most:] if most else ())

    def number(node: Any) -> int:
        node = None if node in rest else node
        if node is None and node not in numbers:
            numbers[node] = len(picture.boxes)
            picture.boxes.append(Box(f"{len(rest):,} more functions", "placeholder"))
        if node not in numbers:
            numbers[node] = len(picture.boxes)
            picture.boxes.append(_leaf(node) if isinstance(node, Variable) else _function(node))
        return numbers[node]

    for function in drawn:
        end = number(function)
        for variable in shown_inputs(function):
            start = number(variable.owner if isinstance(variable, Output) else variable)
            picture.arrows.append(Arrow(start, end, _type(variable)))
    last = root.root_function
    for output in last.outputs:
        picture.arrows.append(Arrow(number(last), len(picture.boxes), _type(output)))
        picture.boxes.append(Box(_lines("Output", output.name, _type(output)), "output"))
    return picture


def _function(function: Any) -> Box:
    return Box(_lines(function.op_name, function.name), "block" if function.is_block else "function")


def _leaf(variable: Variable) -> Box:
    if isinstance(variable, Constant) and not variable.name and variable.shape in ((), (1,)):
        return Box(f"{np.asarray(variable.value).item():g}", "number")
    kinds = {Constant: "constant", Parameter: "parameter", Placeholder: "placeholder"}
    kind = next((name for of, name in kinds.items() if isinstance(variable, of)), "input")
    return Box(_lines(kind.capitalize(), variable.name, _type(variable)), kind)


def _type(variable: Variable) -> str:
    """Dynamic axes, ``#`` for the batch and ``*`` for each other one, and shape."""
    axes = ", ".join("#" if axis.is_batch_axis else "*" for axis in variable.dynamic_axes or ())
    return (f"[{axes}]" if axes else "") + str(variable.shape)


def _lines(*texts: str) -> str:
    return "\n".join(text for text in texts if text)
