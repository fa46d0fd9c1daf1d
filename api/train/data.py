"""Data for training and testing: arrays and minibatch sources behind one face."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cntk.core.graph.foreign import as_data
from cntk.core.graph.variable import Variable
from cntk.core.types.csr import is_csr, require_whole
from cntk.io import MinibatchSource, UserMinibatchSource
from cntk.readers.streams import MinibatchData


class ArrayData:
    """Arrays, CSR matrices and lists of samples of equal length, served in order; minibatches end where the data ends.

    Samples are counted as *counted*, a loss or metric, counts them: a sequence is one sample where that has one value for it, and as many
    as it has steps where that has a value for each. Where it lies on an axis that no argument has, such as that of a slice of sequences,
    the steps of the longest argument are counted; it has other numbers of samples then.

    Args:
        data: one array, or a tuple or list of them, one for each argument of the criterion.
        arguments: the criterion's arguments.
        counted: what is summed over the data.
        passes: how often the data is served, such as 1.5 times.

    Attributes:
        length: samples in a pass.
        counts_alike: whether *counted* has as many.

    Raises:
        ValueError: a wrong number of arrays, arrays without samples, or sparse ones that are not CSR.
        TypeError: something that is no data, or arrays of different lengths.
    """

    def __init__(self, data: Any, arguments: Sequence[Any], counted: Variable, passes: float = math.inf) -> None:
        arrays = [as_data("train and test", one) for one in (data if isinstance(data, (tuple, list)) else [data])]
        if len(arrays) != len(arguments):
            hint = (
                "; a loss or metric has the labels as an argument, a model has not: train and test the former"
                if len(arguments) == 1
                else ""
            )
            raise ValueError(f"the criterion takes one array for each of {list(arguments)}, in this order; got {len(arrays)} arrays{hint}")
        for array in arrays:
            if not (hasattr(array, "shape") or isinstance(array, list)):
                raise TypeError(f"train and test take NumPy arrays, CSR matrices and lists of samples, got {type(array).__name__}")
            if hasattr(array, "tocsr") and not is_csr(array):
                raise ValueError(f"train and test take sparse matrices in CSR format, got {type(array).__name__}; convert it with .tocsr()")
            if is_csr(array):
                require_whole("train and test", array)
        lengths = [array.shape[0] if hasattr(array, "shape") else len(array) for array in arrays]
        if len(set(lengths)) != 1:
            raise TypeError(f"the arrays must hold the same number of samples; they hold {lengths}")
        if not lengths[0]:
            raise ValueError("the arrays must hold at least one sample; they are empty")
        self._arrays = dict(zip(arguments, arrays, strict=True))
        sequences = [variable for variable in self._arrays if variable.has_sequence_axis()]
        alike = [variable for variable in sequences if variable.dynamic_axes == counted.dynamic_axes]
        by_sequence = counted.has_batch_axis() and not counted.has_sequence_axis()
        self.counts_alike = by_sequence or bool(alike) or not sequences
        steps = [] if by_sequence else [_steps_of(variable, self._arrays[variable]) for variable in alike or sequences]
        self._ends = np.cumsum(np.max([np.ones(lengths[0], np.int64), *steps], axis=0))
        self.length = int(self._ends[-1])
        self.end_after(passes)
        self._passes = self._position = 0

    def end_after(self, passes: float) -> None:
        """Serve the data so often, counted from the start."""
        self.is_infinite = math.isinf(passes)
        self._end = math.inf if self.is_infinite else int(passes * self.length)

    def next(self, size: int, workers: int = 1, rank: int = 0) -> tuple[dict[Any, Any], bool]:
        """At most *size* samples, or one longer sequence, and whether they end a pass over the data; nothing at the end.

        Args:
            size: samples for all workers together.
            workers: how many deal out each minibatch between them, one sample or sequence after another.
            rank: the worker whose part to return; there may be nothing in it.
        """
        start = self._position
        before = int(self._ends[start - 1]) if start else 0
        left = self._end - self._passes * self.length - before
        if left < 1:
            return {}, False
        stop = max(int(np.searchsorted(self._ends, before + min(size, left), side="right")), start + 1)
        ends = stop == len(self._ends)
        self._position = 0 if ends else stop
        self._passes += ends
        if start + rank >= stop:
            return {}, ends
        return {variable: array[start + rank : stop : workers] for variable, array in self._arrays.items()}, ends

    def get_checkpoint_state(self) -> dict[str, Any]:
        """The place in the arrays, and the passes before."""
        return {"position": self._position, "passes": self._passes}

    def restore_from_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Go on where arrays as long as these stood.

        Raises:
            RuntimeError: there is no such place in them.
        """
        position, passes = state.get("position"), state.get("passes", 0)
        if not isinstance(position, int) or not isinstance(passes, int) or not 0 <= position <= len(self._ends) or passes < 0:
            raise RuntimeError(f"checkpoint of other data: expected a position in arrays of {len(self._ends)}, got {position!r:.80}")
        more, self._position = divmod(position, len(self._ends))
        self._passes = passes + more


class SourceData:
    """Minibatches of a minibatch source, by argument.

    Args:
        source: a ``MinibatchSource`` or ``UserMinibatchSource``.
        streams: the stream by argument.
    """

    def __init__(self, source: Any, streams: Mapping[Any, Any]) -> None:
        self._source = source
        self.streams = dict(streams)

    @property
    def is_infinite(self) -> bool:
        """Whether it never ends."""
        return bool(self._source.is_infinite())

    def next(self, size: int, workers: int = 1, rank: int = 0) -> tuple[dict[Any, Any], bool]:
        """A minibatch of about *size* samples, and whether a sweep over the data ends in it; nothing at the end.

        Args:
            size: samples for all workers together.
            workers, rank: how many share the data, and which one's part is wanted; there may be nothing in it.
        """
        if isinstance(self._source, MinibatchSource):
            found = self._source.next_minibatch(size, num_data_partitions=workers, partition_index=rank)
        else:
            found = self._source.next_minibatch(size, workers, rank)
        if not found:
            return {}, False
        missing = [stream for stream in self.streams.values() if stream not in found]
        if missing:
            raise ValueError(f"the minibatch source has served {list(found)}; expected {missing[0]!r}, too")
        arguments = {variable: found[stream] for variable, stream in self.streams.items()}
        return arguments, any(data.end_of_sweep for data in arguments.values())

    def get_checkpoint_state(self) -> dict[str, Any]:
        """Where the source stands.

        Raises:
            TypeError: the source does not say it as a dictionary.
        """
        state = self._source.get_checkpoint_state()
        if not isinstance(state, Mapping):
            raise TypeError(f"get_checkpoint_state of {type(self._source).__name__} must return a dictionary, got {state!r:.80}")
        return dict(state)

    def restore_from_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Have the source go on where it stood."""
        self._source.restore_from_checkpoint(state)


Data = ArrayData | SourceData


def ends_sweep(arguments: Any) -> bool:
    """Whether data of a minibatch source says that a sweep ends in it."""
    for data in arguments.values() if isinstance(arguments, dict) else (arguments,):
        if isinstance(data, MinibatchData) and data.end_of_sweep:
            return True
    return False


def is_source(data: Any) -> bool:
    """Whether it is a minibatch source."""
    return isinstance(data, (MinibatchSource, UserMinibatchSource))


def _steps_of(variable: Any, sequences: Any) -> Any:
    """Numbers of steps; what has no axis for them is one step."""
    rank = len(variable.shape)
    if hasattr(sequences, "shape"):
        return np.full(sequences.shape[0], sequences.shape[1] if len(sequences.shape) > rank + 1 else 1)
    shapes = [sequence.shape if hasattr(sequence, "shape") else np.shape(sequence) for sequence in sequences]
    return [shape[0] if len(shape) > rank else 1 for shape in shapes]
