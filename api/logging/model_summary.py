"""Summaries of functions: their layers, with shapes, parameters and operations, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cntk.core.common.shape import FreeDimension, InferredDimension, is_concrete, size_of
from cntk.core.graph import graph
from cntk.core.graph.block import Block, Combine
from cntk.core.graph.function import Function
from cntk.core.graph.node_paths import NodePaths
from cntk.core.graph.nodes import Primitive
from cntk.core.graph.variable import Parameter
from cntk.core.run import profiling
from cntk.core.types.spec import Spec
from cntk.core.values.random_data import random_data

__all__ = ["Layer", "layers_of", "named_parameters", "summary"]


class Layer(NamedTuple):
    """A row of a summary.

    Attributes:
        path: name of the layer; that of its operator where it has none, with a number where others before it have the same.
        kind: the operator, or the block that it is.
        shape: static shapes of its results, with ``batch`` and ``sequence`` for dynamic axes.
        parameters: by path those that no layer before it has.
        flop: floating-point operations for a sample, of one step if it is a sequence; None where they are not known or not asked for.

    >>> z = C.layers.Dense(3, name='hidden')(C.input_variable(2))
    >>> [layer] = C.logging.model_summary.layers_of(z)
    >>> layer.path, layer.kind, layer.shape, layer.size
    ('hidden', 'Dense', '[batch, 3]', 9)
    """

    path: str
    kind: str
    shape: str
    parameters: dict[str, Parameter]
    flop: int | None

    @property
    def size(self) -> int:
        """How many numbers the parameters have; those whose shape is not known yet do not count."""
        return sum(size_of(p.shape) for p in self.parameters.values() if is_concrete(p.shape))


def summary(function: Function, operations: bool = True) -> str:
    """A table of the layers of a function: names, operators, shapes of results, parameters, operations.

    Parameters are named by path, ``layer/W``; :func:`named_parameters` gives them by these names.

    Args:
        function: the function.
        operations: whether to count floating-point operations, for which the function is evaluated on a sample of random data.

    >>> x = C.input_variable(4, name='x')
    >>> z = C.layers.Dense(3, activation=C.relu, name='z')(x)
    >>> print(C.logging.summary(z))
    layer  kind   result      parameters  FLOP a sample  paths
    z      Dense  [batch, 3]          15             30  z/W [4, 3], z/b [3]
    <BLANKLINE>
    inputs: x [batch, 4]
    outputs: z [batch, 3]
    15 parameters (60 bytes), 0 constants
    """
    layers = layers_of(function, operations)
    columns = [
        ("layer", str.ljust, [layer.path for layer in layers]),
        ("kind", str.ljust, [layer.kind for layer in layers]),
        ("result", str.ljust, [layer.shape for layer in layers]),
        ("parameters", str.rjust, [f"{layer.size:,}" for layer in layers]),
        ("FLOP a sample", str.rjust, ["?" if layer.flop is None else f"{layer.flop:,}" for layer in layers]),
        ("paths", str.ljust, [", ".join(f"{path} {shown(p.spec)}" for path, p in layer.parameters.items()) for layer in layers]),
    ]
    shown_columns = [column for column in columns if operations or column[0] != "FLOP a sample"]
    return "\n".join([*_lines(shown_columns), "", *totals_of(function)])


def totals_of(function: Function) -> list[str]:
    """Lines on inputs, outputs and the number of parameters."""
    known = [p for p in function.parameters if is_concrete(p.shape)]
    count = sum(size_of(p.shape) for p in known)
    nbytes = sum(size_of(p.shape) * np.dtype(p.dtype or np.float32).itemsize for p in known)
    unknown = len(function.parameters) - len(known)
    rest = f", {unknown} arrays of unknown shape" if unknown else ""
    return [
        f"inputs: {', '.join(f'{v.name or v.uid} {shown(v.spec)}' for v in function.arguments) or 'none'}",
        f"outputs: {', '.join(f'{v.name or v.uid} {shown(v.spec)}' for v in function.outputs) or 'none'}",
        f"{count:,} parameters ({nbytes:,} bytes){rest}, {len(function.constants)} constants",
    ]


def named_parameters(function: Function) -> dict[str, Parameter]:
    """The parameters of a function by path, as :func:`summary` shows them, in the order in which layers run.

    The path of a parameter is its name behind those of the layers it is in: ``layer/W``. Where there is no name, it is that of the
    operator; second ones of a name have a number: ``Dense/W``, ``Dense_1/W``. One that several layers share has the path of the first.

    >>> x = C.input_variable(4)
    >>> model = C.layers.Sequential([C.layers.Dense(3, name='hidden'), C.layers.Dense(2), C.layers.Dense(2)])(x)
    >>> list(C.logging.named_parameters(model))
    ['hidden/W', 'hidden/b', 'Dense/W', 'Dense/b', 'Dense_1/W', 'Dense_1/b']
    """
    return {path: node for node, path in NodePaths(function).names.items() if isinstance(node, Parameter)}


def _lines(columns: Sequence[tuple[str, Callable[[str, int], str], list[str]]]) -> list[str]:
    """Columns of a heading, a way of adjusting and texts, side by side."""
    adjusted = []
    for heading, adjust, texts in columns:
        width = max(map(len, [heading, *texts]))
        adjusted.append([adjust(text, width) for text in (heading, *texts)])
    return ["  ".join(row).rstrip() for row in zip(*adjusted, strict=True)]


def layers_of(function: Function, operations: bool = True) -> list[Layer]:
    """The layers of a function, in the order in which they run; a block is one layer.

    Args:
        function: the function.
        operations: whether to count them, for which the function is evaluated.

    >>> z = C.layers.Sequential([C.layers.Dense(3, activation=C.relu), C.layers.Dense(1)])(C.input_variable(2))
    >>> [(layer.path, layer.size, layer.flop) for layer in C.logging.model_summary.layers_of(z)]
    [('Dense', 9, 18), ('Dense_1', 4, 7)]
    """
    flop = _operations(function) if operations else None
    paths = NodePaths(function)
    seen: set[Any] = set()
    found = []
    for node in graph.primitives_of([function.root_function]):
        if isinstance(node, Combine):
            continue
        own = [p for p in dict.fromkeys(_parameters(node)) if p not in seen]
        seen.update(own)
        shape = ", ".join(shown(v.spec) for v in node.outputs)
        count = None if flop is None else sum(flop.get(uid, 0) for uid in _uids(node))
        path = paths.blocks[node] if isinstance(node, Block) else paths.names[node]
        found.append(Layer(path, node.op_name, shape, {paths.names[p]: p for p in own}, count))
    return found


def _parameters(node: Primitive) -> Iterable[Parameter]:
    return (v for v in node.inputs if isinstance(v, Parameter))


def _uids(node: Primitive) -> Iterator[str]:
    """Uids of the operators that a node is made of."""
    if isinstance(node, Block):
        for inner in graph.primitives_of([node.composite.root_function]):
            yield from _uids(inner)
    else:
        yield node.uid


def _operations(function: Function) -> dict[str, int] | None:
    """By uid how many operations a sample takes, as counted on one sample of one step; None where it cannot be evaluated on random data."""
    recorder = profiling.Recorder()
    profiling.begin(recorder)
    try:
        function.eval(random_data(function.arguments, lengths=(1,)))
    except (ValueError, TypeError, RuntimeError):
        return None
    finally:
        profiling.end(recorder)
    return {uid: tally.flop for (uid, direction), tally in recorder.tallies.items() if direction == profiling.FORWARD}


def shown(spec: Spec) -> str:
    """A type as ``[batch, sequence, 4]``; ``?`` stands for what is not known yet."""
    names = {FreeDimension: "free", InferredDimension: "inferred"}
    dynamic = ["?"] if spec.axes is None else ["batch" if axis.is_batch_axis else "sequence" for axis in spec.axes]
    static = ["?"] if spec.shape is None else [names.get(size, str(size)) for size in spec.shape]
    return f"[{', '.join(['?'] if spec.axes is spec.shape is None else [*dynamic, *static])}]"
