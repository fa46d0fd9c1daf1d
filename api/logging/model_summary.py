"""Summaries of functions: their layers, with shapes, parameters and operations, as a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from cntk.core.common.shape import FreeDimension, InferredDimension, Shape
from cntk.core.graph import graph
from cntk.core.graph.block import Block, Combine
from cntk.core.graph.function import Function
from cntk.core.graph.nodes import Primitive
from cntk.core.graph.variable import Parameter
from cntk.core.run import profiling
from cntk.core.types.spec import Spec
from cntk.core.values.random_data import random_data

__all__ = ["Layer", "layers_of", "summary"]


class Layer(NamedTuple):
    """A row of a summary.

    Attributes:
        name: name of the layer; that of its operator where it has none.
        kind: the operator, or the block that it is.
        shape: static shapes of its results, with ``batch`` and ``sequence`` for dynamic axes.
        parameters: how many numbers its parameters have that no layer before it has.
        flop: floating-point operations for a sample, of one step if it is a sequence; None where that is not known.
    """

    name: str
    kind: str
    shape: str
    parameters: int
    flop: int | None


def summary(function: Function) -> str:
    """A table of the layers of a function: names, operators, shapes of results, parameters, operations.

    Args:
        function: the function.

    >>> x = C.input_variable(4, name='x')
    >>> z = C.layers.Dense(3, activation=C.relu, name='z')(x)
    >>> print(C.logging.summary(z))
    layer  kind   result      parameters  FLOP a sample
    z      Dense  [batch, 3]          15             30
    <BLANKLINE>
    inputs: x [batch, 4]
    outputs: z [batch, 3]
    15 parameters (60 bytes), 0 constants
    """
    layers = layers_of(function)
    rows = [
        ("layer", "kind", "result", "parameters", "FLOP a sample"),
        *((one.name, one.kind, one.shape, f"{one.parameters:,}", "?" if one.flop is None else f"{one.flop:,}") for one in layers),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_line(row, widths) for row in rows]
    parameters = list(function.parameters)
    sizes = [math.prod(p.shape) for p in parameters if all(size >= 0 for size in p.shape)]
    nbytes = sum(p.value.nbytes for p in parameters if all(size >= 0 for size in p.shape))
    return "\n".join(
        [
            *lines,
            "",
            f"inputs: {', '.join(f'{v.name or v.uid} {shown(v.spec)}' for v in function.arguments) or 'none'}",
            f"outputs: {', '.join(f'{v.name or v.uid} {shown(v.spec)}' for v in function.outputs)}",
            f"{sum(sizes):,} parameters ({nbytes:,} bytes), {len(function.constants)} constants",
        ]
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [text.ljust(width) if i < 3 else text.rjust(width) for i, (text, width) in enumerate(zip(row, widths, strict=True))]
    return "  ".join(cells).rstrip()


def layers_of(function: Function) -> list[Layer]:
    """The layers of a function, in the order in which they run; a block is one layer."""
    flop = _operations(function)
    seen: set[Any] = set()
    found = []
    for node in graph.primitives_of([function.root_function]):
        if isinstance(node, Combine):
            continue
        own = [p for p in _parameters(node) if p not in seen]
        seen.update(own)
        numbers = sum(math.prod(p.shape) for p in own if all(size >= 0 for size in p.shape))
        shape = ", ".join(shown(v.spec) for v in node.outputs)
        operations = None if flop is None else sum(flop.get(uid, 0) for uid in _uids(node))
        found.append(Layer(node.name or node.op_name, node.op_name, shape, numbers, operations))
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
    """A type as ``[batch, sequence, 4]``."""
    names = {FreeDimension: "free", InferredDimension: "inferred"}
    shape: Shape = spec.shape or ()
    dynamic = ["batch" if axis.is_batch_axis else "sequence" for axis in spec.axes or ()]
    return f"[{', '.join([*dynamic, *(names.get(size, str(size)) for size in shape)])}]"
