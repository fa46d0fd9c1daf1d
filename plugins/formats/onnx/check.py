"""Compares functions with the ONNX models that are written of them: both compute the same random data, the models in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.common.shape import FreeDimension
from ....core.graph.block import combine
from ....core.graph.function import Function
from ....core.types.axis import Axis
from .writing.model import ModelWriter

LENGTHS = (4, 1, 3)
"""Steps of the sequences that models are tried with."""
FREE = 8
"""Size of axes that have none of their own."""


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


def differences(function: Function, path: str, seed: int = 0, **options: Any) -> list[Difference]:
    """The differences between the results of a function and of the model in a file that was written of it.

    Args:
        function: the function.
        path: the file.
        seed: of the random data.
        options: the options it was written with.

    Raises:
        ImportError: ONNX Runtime is not installed.
    """
    try:
        import onnxruntime
    except ImportError:
        raise ImportError("comparing a model with its ONNX file takes ONNX Runtime; install it with: pip install onnxruntime") from None
    writer = ModelWriter(function, **options)
    data = _Data(writer, np.random.default_rng(seed))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = session.run(None, {name: data.fed[name] for name in (given.name for given in session.get_inputs())})
    names = [given.name for given in session.get_outputs()]
    by_name = dict(zip(names, found, strict=True))
    roots = list(dict.fromkeys(writer.roots))
    expected = combine(roots).eval(data.arguments) if roots else {}
    results = [expected] if len(roots) == 1 else [expected[root] for root in roots]
    own = [name for name in names if not name.endswith("_lengths")]
    return [_compared(name, by_name[name], result) for name, result in zip(own, results, strict=True)]


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
    """Results of ONNX Runtime and ours, of each sequence its own steps."""
    if isinstance(expected, list):
        for padded, own in zip(found, expected, strict=True):
            own = np.asarray(own)
            yield padded[: len(own)], own
    else:
        yield found, np.asarray(expected)


class _Data:
    """Random data for all arguments, as the function takes it and as the model does."""

    def __init__(self, writer: ModelWriter, random: np.random.Generator) -> None:
        self.random = random
        self.arguments: dict[Any, Any] = {}
        self.fed: dict[str, Any] = {}
        lengths: dict[Axis, Any] = {}
        for argument, value in writer.inputs().items():
            axes = argument.spec.axes or ()
            kept = len(value.axes)
            for axis in axes[1:]:
                lengths.setdefault(axis, np.roll(LENGTHS, len(lengths)) if kept > 1 else np.ones(len(LENGTHS), int))
            if not axes:
                own = self._values(argument, ())
                self.arguments[argument], self.fed[value.name] = own, self._as_fed(argument, writer, own)
            elif len(axes) == 1 or kept == 1:
                rows = self._values(argument, (len(LENGTHS),))
                self.arguments[argument] = rows if len(axes) == 1 else [row[np.newaxis] for row in rows]
                self.fed[value.name] = self._as_fed(argument, writer, rows)
            else:
                steps = lengths[axes[1]] if writer.with_lengths else np.full(len(LENGTHS), max(LENGTHS))
                sequences = [self._values(argument, (count,)) for count in steps]
                padded = np.zeros((len(steps), max(steps), *sequences[0].shape[1:]), sequences[0].dtype)
                for own, sequence in zip(padded, sequences, strict=True):
                    own[: len(sequence)] = sequence
                self.arguments[argument] = sequences
                self.fed[value.name] = self._as_fed(argument, writer, padded)
                self.fed[f"{writer.axis_name(axes[1])}_lengths"] = np.asarray(steps, np.int64)

    def _values(self, argument: Any, rows: Sequence[int]) -> Any:
        shape = tuple(FREE if size == FreeDimension else size for size in argument.spec.shape)
        if argument.spec.sparse:
            return np.eye(shape[-1], dtype=argument.spec.dtype)[self.random.integers(shape[-1], size=(*rows, *shape[:-1]))]
        return self.random.uniform(-1, 1, (*rows, *shape)).astype(argument.spec.dtype)

    @staticmethod
    def _as_fed(argument: Any, writer: ModelWriter, values: Any) -> Any:
        return values.argmax(-1) if argument.spec.sparse and writer.sparse == "indices" else values


def largest_relative(found: Sequence[Difference]) -> float:
    """The largest of differences, relative to the scale of its output where that is more than 1."""
    return max((one.largest / max(one.scale, 1.0) for one in found), default=0.0)
