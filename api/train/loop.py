"""Training and testing on arrays and minibatch sources: what ``Function.train`` and ``Function.test`` do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cntk.core.function import Function
from cntk.core.progress import NEVER, ProgressWriter
from cntk.core.value import is_csr
from cntk.io import MinibatchSource, UserMinibatchSource
from cntk.learners.schedules import minibatch_size_schedule
from cntk.train.data_unit import DataUnit
from cntk.train.trainer import Trainer
from cntk.variables import Record


class ArrayData:
    """Arrays, CSR matrices and lists of samples of equal length, served in order; minibatches end where the data ends.

    A sequence counts for as many samples as it has steps; of several at one place the longest counts.

    Args:
        data: one array, or a tuple or list of them, one for each argument of the criterion.
        arguments: the criterion's arguments.

    Raises:
        ValueError: a wrong number of arrays, arrays without samples, or sparse ones that are not CSR.
        TypeError: something that is no data, or arrays of different lengths.
    """

    def __init__(self, data: Any, arguments: Sequence[Any]) -> None:
        arrays = list(data) if isinstance(data, (tuple, list)) else [data]
        if len(arrays) != len(arguments):
            raise ValueError(f"the criterion takes one array for each of {list(arguments)}, in this order; got {len(arrays)} arrays")
        for array in arrays:
            if not (hasattr(array, "shape") or isinstance(array, list)):
                raise TypeError(f"train and test take NumPy arrays, CSR matrices and lists of samples, got {type(array).__name__}")
            if hasattr(array, "tocsr") and not is_csr(array):
                raise ValueError(f"train and test take sparse matrices in CSR format, got {type(array).__name__}; convert it with .tocsr()")
        lengths = [array.shape[0] if hasattr(array, "shape") else len(array) for array in arrays]
        if len(set(lengths)) != 1:
            raise TypeError(f"the arrays must hold the same number of samples; they hold {lengths}")
        if not lengths[0]:
            raise ValueError("the arrays must hold at least one sample; they are empty")
        self._arrays = dict(zip(arguments, arrays, strict=True))
        steps = [_steps_of(variable, array) for variable, array in self._arrays.items() if variable.has_sequence_axis()]
        self._ends = np.cumsum(np.max([np.ones(lengths[0], np.int64), *steps], axis=0))
        self.length = int(self._ends[-1])
        self._position = 0

    def next(self, size: int) -> tuple[dict[Any, Any], bool]:
        """At most *size* samples, or one longer sequence, and whether they end a pass over the data."""
        start = self._position
        before = self._ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(self._ends, before + size, side="right")), start + 1)
        ended = stop == len(self._ends)
        self._position = 0 if ended else stop
        return {variable: array[start:stop] for variable, array in self._arrays.items()}, ended


class SourceData:
    """Minibatches of a minibatch source, by argument.

    Args:
        source: a ``MinibatchSource`` or ``UserMinibatchSource``.
        arguments: the criterion's arguments.
        streams: the stream for each argument, in their order; or
        inputs_to_streams: the stream by argument.

    Raises:
        ValueError: an argument has no stream, or both are given.
    """

    def __init__(self, source: Any, arguments: Sequence[Any], streams: Any, inputs_to_streams: Any) -> None:
        if (streams is None) == (inputs_to_streams is None):
            raise ValueError("a minibatch source needs streams, one for each argument, or model_inputs_to_streams, and not both")
        if inputs_to_streams is None:
            listed = list(streams) if isinstance(streams, (list, tuple)) else [streams]
            if len(listed) != len(arguments):
                raise ValueError(f"streams: the criterion takes one stream for each of {list(arguments)}; got {len(listed)} streams")
            inputs_to_streams = dict(zip(arguments, listed, strict=True))
        self._source = source
        self._streams = dict(inputs_to_streams)

    def next(self, size: int) -> tuple[dict[Any, Any], bool]:
        """A minibatch of about *size* samples, and whether a sweep over the data ends in it; nothing at the end."""
        workers = () if isinstance(self._source, MinibatchSource) else (1, 0)
        found = self._source.next_minibatch(size, *workers)
        arguments = {variable: found[stream] for variable, stream in self._streams.items()} if found else {}
        return arguments, any(data.end_of_sweep for data in arguments.values())


def _steps_of(variable: Any, sequences: Any) -> Any:
    """Numbers of steps; what has no axis for them is one step."""
    rank = len(variable.shape)
    if hasattr(sequences, "shape"):
        return np.full(sequences.shape[0], sequences.shape[1] if len(sequences.shape) > rank + 1 else 1)
    shapes = [sequence.shape if hasattr(sequence, "shape") else np.shape(sequence) for sequence in sequences]
    return [shape[0] if len(shape) > rank else 1 for shape in shapes]


def _is_source(data: Any) -> bool:
    return isinstance(data, (MinibatchSource, UserMinibatchSource))


class _Collector(ProgressWriter):
    """Keeps what ``train`` and ``test`` return."""

    def __init__(self, frequency: int) -> None:
        super().__init__(frequency)
        self.updates: list[Record] = []
        self.summaries: list[Record] = []
        self.tests: list[Record] = []

    def on_write_training_update(self, samples: Any, updates: Any, aggregate_loss: Any, aggregate_metric: Any) -> None:
        count = samples[1] - samples[0]
        self.updates.append(_averages(count, loss=aggregate_loss[1] - aggregate_loss[0], metric=aggregate_metric[1] - aggregate_metric[0]))

    def on_write_training_summary(
        self, samples: int, updates: int, summaries: int, aggregate_loss: float, aggregate_metric: float, elapsed_milliseconds: float
    ) -> None:
        self.summaries.append(_averages(samples, loss=aggregate_loss, metric=aggregate_metric))

    def on_write_test_summary(
        self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: float
    ) -> None:
        self.tests.append(_averages(samples, metric=aggregate_metric))


def _averages(samples: int, **sums: float) -> Record:
    return Record(**{name: value / (samples or 1) for name, value in sums.items()}, samples=samples)


def train(
    self: Function,
    minibatch_source: Any,
    minibatch_size: Any = 32,
    streams: Any = None,
    model_inputs_to_streams: Any = None,
    parameter_learners: Any = (),
    callbacks: Any = (),
    progress_frequency: Any = None,
    max_epochs: float | None = None,
    epoch_size: int | None = None,
    max_samples: int | None = None,
) -> Record:
    """Train this criterion on arrays or on a minibatch source.

    Args:
        minibatch_source: an array, CSR matrix or list of samples for each argument, in the order of the arguments; or a
            ``MinibatchSource`` or ``UserMinibatchSource``.
        minibatch_size: samples, of sequences steps, in a minibatch, a number or a schedule (``minibatch_size_schedule``).
        streams: with a minibatch source, the stream for each argument, in their order.
        model_inputs_to_streams: the same as a dictionary, in place of *streams*.
        parameter_learners: learners of the parameters.
        callbacks: progress writers.
        progress_frequency: after how many samples a summary is written, or ``(number, DataUnit)``; *epoch_size* by default.
        max_epochs: epochs to train, 1 by default; 1.5 is one and a half.
        epoch_size: samples in an epoch; by default all, and with *max_samples* as many as these. A minibatch source does not tell how
            many it has, so that one of the two must be given.
        max_samples: samples to train in all, in place of *max_epochs*. Either counts those that the first learner saw in earlier calls.

    Returns:
        A Record: ``epoch_summaries``, a record with ``loss``, ``metric`` and ``samples`` for each summary, and ``updates``, the same
        for other spans: those that the first progress writer with a ``freq`` writes; without one, *progress_frequency* or
        *epoch_size* samples in whole minibatches, where one of the two is given.

    Raises:
        ValueError: both *max_epochs* and *max_samples*, nothing to train, no minibatch size, or data that does not fit the arguments.
        TypeError: arrays of different lengths.

    >>> x, y = C.input_variable(1), C.input_variable(1)
    >>> loss = C.squared_error(C.layers.Dense(1, init=0)(x), y)
    >>> X = np.ones((64, 1), np.float32)
    >>> progress = loss.train((X, 2 * X), parameter_learners=[C.sgd(loss.parameters, 0.1)], max_epochs=2)
    >>> [round(summary.loss, 3) for summary in progress.epoch_summaries]
    [2.72, 0.353]
    """
    if minibatch_size is None:
        raise ValueError("train: a minibatch_size is needed: a number of samples or a minibatch_size_schedule")
    if max_epochs is not None and max_samples is not None:
        raise ValueError("train: give max_epochs or max_samples, not both")
    data = _data_of("train", minibatch_source, self.arguments, streams, model_inputs_to_streams)
    writers = _writers_of(callbacks)
    if max_samples is None:
        if epoch_size is None:
            if isinstance(data, SourceData):
                raise ValueError("train: a minibatch source does not tell how many samples it has; give epoch_size or max_samples")
            epoch_size = data.length
        epoch_size = int(epoch_size)
        max_samples = int((1 if max_epochs is None else max_epochs) * epoch_size)
    if max_samples <= 0:
        raise ValueError(f"train: max_epochs or max_samples must be positive; they leave {max_samples} samples to train")
    sizes = minibatch_size_schedule(minibatch_size)
    frequency = epoch_size if progress_frequency is None else progress_frequency
    collector = _Collector(_frequency_of(writers, frequency, sizes[0]))
    trainer = Trainer(None, self, parameter_learners, [*writers, collector])
    _run(trainer, data, sizes, max_samples, _Boundary(max_samples if frequency is None else frequency))
    if not collector.summaries:
        collector.summaries.append(Record(loss=0.0, metric=0.0, samples=0))
    return Record(updates=collector.updates, epoch_summaries=collector.summaries)


def test(
    self: Function,
    minibatch_source: Any,
    minibatch_size: Any = 32,
    streams: Any = None,
    model_inputs_to_streams: Any = None,
    callbacks: Any = None,
) -> Record:
    """Average this criterion's metric, or loss where it has no metric, over arrays or a minibatch source.

    Args:
        minibatch_source: an array, CSR matrix or list of samples for each argument, in the order of the arguments; or a
            ``MinibatchSource`` or ``UserMinibatchSource`` that ends.
        minibatch_size: samples, of sequences steps, in a minibatch.
        streams: with a minibatch source, the stream for each argument, in their order.
        model_inputs_to_streams: the same as a dictionary, in place of *streams*.
        callbacks: progress writers.

    Returns:
        A Record with ``metric`` and ``samples``.

    Raises:
        ValueError: data that does not fit the arguments, or a minibatch source that never ends.
        TypeError: arrays of different lengths.

    >>> x, y = C.input_variable(1), C.input_variable(1)
    >>> X = np.ones((64, 1), np.float32)
    >>> C.squared_error(2 * x, y).test((X, X))
    {'metric': 1.0, 'samples': 64}
    """
    from cntk.eval import Evaluator

    data = _data_of("test", minibatch_source, self.arguments, streams, model_inputs_to_streams)
    if isinstance(data, SourceData) and minibatch_source.is_infinite():
        raise ValueError("test: the minibatch source never ends; make it with max_sweeps=1 or max_samples")
    collector = _Collector(NEVER)
    evaluator = Evaluator(self.outputs[-1] if len(self.outputs) > 1 else self.output, [*_writers_of(callbacks or ()), collector])
    needed = set(evaluator._function.arguments)
    for minibatch in _one_pass(data, minibatch_size_schedule(minibatch_size)):
        evaluator.test_minibatch({variable: part for variable, part in minibatch.items() if variable in needed})
    evaluator.summarize_test_progress()
    return collector.tests[0]


def extend_function() -> None:
    """Give functions their training methods, which the kernel knows nothing of."""
    Function.train = train
    Function.test = test


# ---- inside ----


def _data_of(where: str, data: Any, arguments: Sequence[Any], streams: Any, inputs_to_streams: Any) -> ArrayData | SourceData:
    if _is_source(data):
        return SourceData(data, arguments, streams, inputs_to_streams)
    if streams is not None or inputs_to_streams is not None:
        raise ValueError(f"{where}: arrays are matched with arguments by position; streams and model_inputs_to_streams belong to readers")
    return ArrayData(data, arguments)


class _Boundary:
    """Tells where summaries are due: every so many samples, minibatches or passes."""

    def __init__(self, frequency: Any) -> None:
        number, unit = frequency if isinstance(frequency, tuple) else (frequency, DataUnit.sample)
        if number <= 0:
            raise ValueError(f"progress_frequency must be a positive number of samples or (number, DataUnit), got {frequency!r}")
        self._every, self._unit = number, DataUnit(unit)
        self._due = number
        self._minibatches = self._sweeps = 0

    def passed(self, samples: int, sweep_ended: bool) -> bool:
        """Note a minibatch after which *samples* have been seen in all; whether a summary is due."""
        self._minibatches += 1
        self._sweeps += sweep_ended
        count = {DataUnit.sample: samples, DataUnit.minibatch: self._minibatches, DataUnit.sweep: self._sweeps}[self._unit]
        if count < self._due:
            return False
        self._due = (count // self._every + 1) * self._every
        return True

    @property
    def summarizes_rest(self) -> bool:
        """Whether what remains after the last boundary gets a summary of its own."""
        return self._unit is not DataUnit.sweep


def _run(trainer: Trainer, data: ArrayData | SourceData, sizes: Any, end: int, boundary: _Boundary) -> None:
    pending = False
    while trainer.total_number_of_samples_seen < end:
        seen = trainer.total_number_of_samples_seen
        arguments, sweep_ended = data.next(min(sizes[seen], end - seen))
        if not arguments:
            break
        trainer.train_minibatch(arguments, is_sweep_end=sweep_ended)
        pending = True
        if boundary.passed(trainer.total_number_of_samples_seen, sweep_ended):
            trainer.summarize_training_progress()
            pending = False
    if pending and boundary.summarizes_rest:
        trainer.summarize_training_progress()


def _one_pass(data: ArrayData | SourceData, sizes: Any) -> Iterator[dict[Any, Any]]:
    """Arrays once, a source to its end."""
    seen, ended = 0, False
    while not ended:
        size = sizes[seen]
        arguments, sweep_ended = data.next(size)
        ended = sweep_ended if isinstance(data, ArrayData) else not arguments
        seen += size
        if arguments:
            yield arguments


def _writers_of(callbacks: Any) -> list[ProgressWriter]:
    listed = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for callback in listed:
        if not isinstance(callback, ProgressWriter):
            raise ValueError(f"callbacks: expected progress writers, got {type(callback).__name__} {callback!r:.80}")
    return listed


def _frequency_of(writers: Sequence[ProgressWriter], summaries: Any, minibatch_size: int) -> int:
    """Minibatches between two updates: as the first writer has it, else about those between two summaries."""
    for writer in writers:
        if hasattr(writer, "freq"):
            return NEVER if writer.freq is None else int(writer.freq)
    number, unit = summaries if isinstance(summaries, tuple) else (summaries, DataUnit.sample)
    if number is None or unit is DataUnit.sweep:
        return NEVER
    if unit is DataUnit.sample:
        return max(int(number) // minibatch_size, 1)
    return int(number)


__all__ = ["ArrayData", "SourceData", "extend_function", "test", "train"]
