"""Data for training and testing: arrays and minibatch sources behind one face."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cntk.core.common.shape import size_of
from cntk.core.graph.foreign import as_data
from cntk.core.graph.function import Function
from cntk.core.graph.variable import Variable
from cntk.core.types.csr import is_csr, require_whole
from cntk.io import INFINITELY_REPEAT, MinibatchSource, UserMinibatchSource
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
        given = data if isinstance(data, (tuple, list)) else [data]
        if len(given) != len(arguments):
            hint = (
                "; a loss or metric has the labels as an argument, a model has not: train and test the former"
                if len(arguments) == 1
                else ""
            )
            raise ValueError(f"the criterion takes one array for each of {list(arguments)}, in this order; got {len(given)} arrays{hint}")
        arrays = [as_data(f"train and test: {argument!r}", one) for argument, one in zip(arguments, given, strict=True)]
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
        return {variable: self.part(array, slice(start + rank, stop, workers)) for variable, array in self._arrays.items()}, ends

    def part(self, array: Any, places: slice) -> Any:
        """What is served for the rows at some places of a pass."""
        return array[places]

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
        sweeps: after how many sweeps the source was made to end, if it was made for this.

    Attributes:
        streams, sweeps: as above.
        length: samples in a sweep, None where the source does not tell.
        is_single_pass: whether the source has its data once.
    """

    def __init__(self, source: Any, streams: Mapping[Any, Any], sweeps: int | None = None) -> None:
        self._source = source
        self.streams, self.sweeps = dict(streams), sweeps
        self.length: int | None = getattr(source, "samples_in_sweep", None)
        self.is_single_pass = bool(getattr(source, "is_single_pass", False))

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


def data_of(
    where: str,
    data: Any,
    arguments: Sequence[Any],
    counted: Variable,
    passes: float = math.inf,
    sweeps: float = math.inf,
    randomize: bool | None = None,
) -> Data:
    """Data that a program gives without naming streams.

    Columns go to the arguments of their names, see :func:`cntk.io.from_data`; arrays to the arguments in their order.

    Args:
        where: the function that it is given to.
        data: the data.
        arguments, counted, passes: see :class:`ArrayData`.
        sweeps: how often columns are served.
        randomize: whether columns are shuffled; see :func:`cntk.io.from_data`.

    Raises:
        ValueError: it does not fit the arguments.
        TypeError: it is no data.
    """
    if isinstance(data, Mapping) and all(isinstance(key, Variable) for key in data):
        if missing := [argument for argument in arguments if argument not in data]:
            raise ValueError(f"{where}: no data for {missing[0]!r}; the criterion takes {list(arguments)}")
        data = [data[argument] for argument in arguments]
    if not _has_columns(data, len(arguments)):
        return ArrayData(data, arguments, counted, passes)
    from cntk.io.data.kinds import source_of  # which takes what only these need
    from cntk.io.data.recognition import Wishes

    names = {argument.name or f"argument {place}": argument for place, argument in enumerate(arguments)}
    inputs = {name: (argument.shape, argument.has_sequence_axis()) for name, argument in names.items()}
    limit = INFINITELY_REPEAT if math.isinf(sweeps) else max(math.ceil(sweeps), 1)
    wishes = Wishes(lambda found: _columns_of(where, names, found), dtype=arguments[0].dtype, inputs=inputs)
    source = source_of(data, wishes, False, randomize, (128 if randomize is None else 0, 0), INFINITELY_REPEAT, limit)
    return SourceData(source, {argument: source.stream_info(name) for name, argument in names.items()}, limit)


def _has_columns(data: Any, arguments: int) -> bool:
    """Whether it is data whose columns have names, or that has a row or minibatch after the other; else it is arrays."""
    if isinstance(data, (list, tuple)):
        return isinstance(data, list) and bool(data) and isinstance(data[0], Mapping)
    if isinstance(data, (Mapping, str, os.PathLike)):
        return True
    if hasattr(data, "columns") or hasattr(data, "column_names"):
        return arguments > 1 or not hasattr(data, "__arrow_c_stream__")
    if isinstance(data, Function) or any(hasattr(data, protocol) for protocol in _PROTOCOLS):
        return False
    return callable(data) or hasattr(data, "__iter__") or hasattr(data, "__getitem__")


_PROTOCOLS = ("__array__", "__array_interface__", "__dlpack__", "__arrow_c_array__", "__arrow_c_stream__", "__buffer__", "tocsr")


def _columns_of(where: str, names: Mapping[str, Any], found: Sequence[str]) -> dict[str, Any]:
    """By argument its column, or the columns of its elements, as ``name_0``."""
    from cntk.io.data.tables import names_of_places

    if list(found) == names_of_places(len(names)) and not set(names) <= set(found):
        return dict(zip(names, found, strict=True))
    chosen: dict[str, Any] = {}
    for name, argument in names.items():
        elements = [f"{name}_{place}" for place in range(max(size_of(argument.shape), 1))]
        chosen[name] = name if name in found or elements[0] not in found else elements
        if name not in found and elements[0] not in found:
            listed = ", ".join(map(repr, list(found)[:12])) + (", …" if len(found) > 12 else "")
            raise ValueError(
                f"{where}: there is no column for the argument {argument!r}; there are {listed}. Call inputs as the columns are called, "
                f"C.input_variable(..., name={found[0]!r}), or say which go where: "
                f"C.io.from_data(data, {{{name!r}: [{found[0]!r}, ...], ...}})"
            )
    return chosen


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
