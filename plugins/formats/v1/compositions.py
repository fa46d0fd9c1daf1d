"""Nodes that are several operators here: criteria, which sum over the minibatch, and nodes of networks of the first CNTK."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..attributes import ALL, ALL_STATIC, static
from ..wire import FileAxis

_NEGATE, _LOG, _PLUS, _MINUS, _TIMES, _NOT_EQUAL, _REDUCE = 0, 5, 19, 20, 21, 23, 39
_SAMPLE, _BATCH = FileAxis(ALL_STATIC, "AllStaticAxes", False), FileAxis(ALL, "AllAxes", False)


class Graph(Protocol):
    """What operators are added to; operands and results are uids."""

    def add(self, number: int, operands: Sequence[str], attributes: dict[str, Any] | None = None) -> str:
        """Add an operator by its number in the current format."""
        ...

    def number(self, value: float) -> str:
        """Add a constant number."""
        ...


def _reduce(graph: Graph, name: str, x: str, axis: FileAxis) -> str:
    return graph.add(_REDUCE, [x], {"reductionOpName": name, "reductionKeepDimensions": False, "axis": axis})


def _log_softmax(graph: Graph, x: str) -> str:
    return graph.add(_MINUS, [x, _reduce(graph, "LogSum", x, _SAMPLE)])


def _cross_entropy(graph: Graph, labels: str, z: str) -> str:
    unlikely = graph.add(_MINUS, [_reduce(graph, "LogSum", z, _SAMPLE), z])
    return _reduce(graph, "Sum", graph.add(_TIMES, [labels, unlikely]), _BATCH)


def _errors(graph: Graph, labels: str, z: str) -> str:
    best = [_reduce(graph, "Argmax", x, _SAMPLE) for x in (labels, z)]
    return _reduce(graph, "Sum", graph.add(_NOT_EQUAL, best), _BATCH)


def _squared_error(graph: Graph, one: str, other: str) -> str:
    difference = graph.add(_MINUS, [one, other])
    return _reduce(graph, "Sum", graph.add(_TIMES, [difference, difference]), _BATCH)


def _logistic(graph: Graph, labels: str, chances: str) -> str:
    one = graph.number(1.0)
    yes = graph.add(_TIMES, [chances, labels])
    no = graph.add(_TIMES, [graph.add(_MINUS, [one, chances]), graph.add(_MINUS, [one, labels])])
    return _reduce(graph, "Sum", graph.add(_NEGATE, [graph.add(_LOG, [graph.add(_PLUS, [yes, no])])]), _BATCH)


def _normalized(graph: Graph, x: str, mean: str, scale: str) -> str:
    return graph.add(_TIMES, [graph.add(_MINUS, [x, mean]), scale])


def _columns(graph: Graph, x: str) -> str:
    return graph.add(_REDUCE, [x], {"reductionOpName": "Sum", "reductionKeepDimensions": True, "axis": static(0)})


def _product(graph: Graph, one: str, other: str) -> str:
    return graph.add(_TIMES, [one, other])


COMPOSITIONS: dict[str, tuple[int, Callable[..., str]]] = {
    "LogSoftmax": (1, _log_softmax),
    "CrossEntropyWithSoftmax": (2, _cross_entropy),
    "ErrorPrediction": (2, _errors),
    "ClassificationError": (2, _errors),
    "SquareError": (2, _squared_error),
    "Logistic": (2, _logistic),
    "SumElements": (1, lambda graph, x: _reduce(graph, "Sum", x, _BATCH)),
    "SumColumnElements": (1, _columns),
    "PerDimMeanVarNormalization": (3, _normalized),
    "Scale": (2, _product),
    "RowElementTimes": (2, _product),
    "ColumnElementTimes": (2, _product),
}
"""The number of operands of a node, and the function that makes its graph from them; with other numbers it is a node of ``nodes.ROWS``."""
