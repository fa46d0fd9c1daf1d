"""Compares functions with the ONNX models that are written of them: both compute the same random data, the models in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ....core.graph.block import combine
from ....core.graph.function import Function
from ....core.graph.variable import Variable
from ....core.values.random_data import random_data
from .writing.model import ModelWriter

LENGTHS = (4, 1, 3), (9, 7, 8)
"""Steps of the sequences that models are tried with: those first, and longer ones if these are too short for an operator."""
TRIES = 8
"""How many seeds are tried: numbers may leave an operator nothing to do."""


class Difference(NamedTuple):
    """How far results of one output are from one another.

    Attributes:
        output: the output's name.
        largest: the largest difference of two numbers.
        scale: the largest of the function's numbers.
    """

    output: str
    largest: float
    scale: float


def differences(function: Function, path: str, **options: Any) -> list[Difference]:
    """The differences between the results of a function and of the model in a file that was written of it.

    Args:
        function: the function.
        path: the file.
        options: the options it was written with.

    Raises:
        ImportError: ONNX Runtime is not installed.
        ValueError: the function computes nothing of random data.
    """
    onnxruntime = runtime()
    writer = ModelWriter(function, **options)
    roots = list(dict.fromkeys(writer.roots))
    data, results = _tried(roots, writer.with_lengths)
    writer.model()
    own = fed(writer, data)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = session.run(None, {given.name: own[given.name] for given in session.get_inputs()})
    names = [given.name for given in session.get_outputs()]
    by_name = dict(zip(names, found, strict=True))
    named = [name for name in names if name not in writer.lengths_outputs]
    return [_compared(name, by_name[name], result) for name, result in zip(named, results, strict=True)]


def runtime() -> Any:
    """The module of ONNX Runtime.

    Raises:
        ImportError: it is not installed.
    """
    try:
        return import_module("onnxruntime")
    except ImportError:
        raise ImportError(
            "comparing a model with its ONNX file takes ONNX Runtime; install it with: pip install 'opencntk[onnx]'"
        ) from None


def _tried(roots: Sequence[Variable], with_lengths: bool) -> tuple[dict[Any, Any], list[Any]]:
    """Random data that the function can be evaluated on, and its results."""
    function = combine(roots)
    failure: Exception | None = None
    for lengths, seed in product(LENGTHS, range(TRIES)):
        data = random_data(function.arguments, lengths if with_lengths else [max(lengths)] * len(lengths), seed)
        try:
            found = function.eval(data)
        except (ValueError, RuntimeError) as error:
            failure = failure or error
        else:
            return data, [found] if len(roots) == 1 else [found[root] for root in roots]
    raise ValueError(f"the model cannot be evaluated on random data, so that there is nothing to compare: {failure}") from failure


def _compared(name: str, found: Any, expected: Any) -> Difference:
    pairs = list(_pairs(found, expected))
    for one, other in pairs:
        if one.shape != other.shape:
            raise ValueError(f"the output {name!r} has the shape {one.shape} in ONNX Runtime, and {other.shape} here")
    largest = max((_largest(one, other) for one, other in pairs), default=0.0)
    return Difference(name, largest, max((_largest(other, np.zeros_like(other)) for _, other in pairs), default=0.0))


def _largest(one: Any, other: Any) -> float:
    """The largest difference; 0 where both are the same infinity, or no number."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return float(np.max(np.where(same, 0, apart), initial=0))


def _pairs(found: Any, expected: Any) -> Iterator[tuple[Any, Any]]:
    """Results of ONNX Runtime and ours, of each sequence its own steps; a model without them has a row for each."""
    if isinstance(expected, list) and found.ndim == expected[0].ndim:
        yield found, np.concatenate(expected)
    elif isinstance(expected, list):
        for padded, own in zip(found, expected, strict=True):
            own = np.asarray(own)
            yield padded[: len(own)], own
    else:
        yield found, np.asarray(expected)


def fed(writer: ModelWriter, data: Mapping[Any, Any]) -> dict[str, Any]:
    """The data of a function's arguments as its model takes them, by input."""
    found: dict[str, Any] = {}
    for argument, value in writer.inputs().items():
        axes: Any = argument.spec.axes or ()
        parts = [_as_array(part, argument, value.indices) for part in (data[argument] if len(axes) > 1 else [data[argument]])]
        if len(value.axes) > 1:
            lengths = np.array([len(steps) for steps in parts])
            found[f"{writer.axis_name(axes[1])}_lengths"] = lengths
            padded = np.zeros((len(parts), max(lengths), *parts[0].shape[1:]), parts[0].dtype)
            for own, steps in zip(padded, parts, strict=True):
                own[: len(steps)] = steps
            found[value.name] = padded
        else:
            found[value.name] = np.concatenate(parts) if axes else parts[0]
    return found


def _as_array(part: Any, argument: Any, indices: bool) -> Any:
    """A part of the data as an array: of numbers of elements, or of the elements."""
    if not argument.spec.sparse:
        return part
    return part.indices.astype(np.int64) if indices else part.toarray().reshape(-1, *argument.spec.shape).astype(argument.spec.dtype)
