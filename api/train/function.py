"""Training and testing a criterion: what ``Function.train`` and ``Function.test`` do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cntk.core.common.user_frame import warn_user
from cntk.core.graph.function import Function
from cntk.core.types.arguments import checked
from cntk.learners.loss_scale import LossScale
from cntk.plugins.progress.base import NEVER, ProgressWriter
from cntk.train.data import ArrayData, Data, SourceData, data_of, is_source
from cntk.train.data_unit import DataUnit
from cntk.train.lists import as_list
from cntk.train.progress import writers_of
from cntk.train.session_config import UNLIMITED, CheckpointConfig, CrossValidationConfig, TestConfig, sizes_of
from cntk.train.trainer import Trainer
from cntk.train.training_session import TrainingSession
from cntk.variables import Record, Variable


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
        self, samples: int, updates: int, summaries: int, aggregate_loss: float, aggregate_metric: float, elapsed_milliseconds: int
    ) -> None:
        self.summaries.append(_averages(samples, loss=aggregate_loss, metric=aggregate_metric))

    def on_write_test_summary(self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: int) -> None:
        self.tests.append(_averages(samples, metric=aggregate_metric))


def _averages(samples: int, **sums: float) -> Record:
    return Record(**{name: value / (samples or 1) for name, value in sums.items()}, samples=samples)


@checked
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
    loss_scale: float | str | LossScale | None = None,
) -> Record:
    """Train this criterion on arrays or on a minibatch source.

    Args:
        minibatch_source: an array, CSR matrix or list of samples for each argument, in the order of the arguments; or a
            ``MinibatchSource`` or ``UserMinibatchSource``.
        minibatch_size: samples in a minibatch, a number or a schedule (``minibatch_size_schedule``). A sequence among arrays is one sample
            where the loss has one value for it, and as many as it has steps where the loss has a value for each; of a minibatch source
            steps are counted.
        streams: with a minibatch source, the stream for each argument, in their order.
        model_inputs_to_streams: the same as a dictionary, in place of *streams*.
        parameter_learners: learners of the parameters.
        callbacks: progress writers, and a ``CheckpointConfig``, ``CrossValidationConfig`` and ``TestConfig``, one of each at most; None
            among them, or one alone, will do.
        progress_frequency: after how many samples a summary is written, or ``(number, DataUnit)``; *epoch_size* by default.
        max_epochs: epochs to train, 1 by default; 1.5 is one and a half. One epoch of arrays is one pass over them.
        epoch_size: samples in an epoch; by default all, and with *max_samples* as many as these. A minibatch source does not tell how
            many it has, so that one of the two must be given.
        max_samples: samples to train in all, in place of *max_epochs*. Either counts those that the first learner saw in earlier calls, but
            for *max_epochs* of arrays whose sequences have other numbers of steps in the loss, such as those of a slice.
        loss_scale: for float16, as :class:`~cntk.train.trainer.Trainer` takes it.

    Returns:
        A Record: ``epoch_summaries``, a record with ``loss``, ``metric`` and ``samples`` for each summary, and ``updates``, the same
        for other spans: those that the first progress writer with a ``freq`` writes; without one, *progress_frequency* or
        *epoch_size* samples in whole minibatches, where one of the two is given. With a ``TestConfig`` also ``test_summary``, a record
        with ``metric`` and ``samples``. Where nothing was left to train, the only summary is of zeros, and there is a warning.

    Raises:
        RuntimeError: a checkpoint cannot be restored.
        ValueError: both *max_epochs* and *max_samples*, nothing to train, no minibatch size, or data that does not fit the arguments.
        TypeError: arrays of different lengths; or a model that cannot be saved, with a ``CheckpointConfig``.

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
    epochs = 1 if max_epochs is None else max_epochs
    sweeps = epochs if max_samples is None and epoch_size is None else math.inf
    data = _data_of("train", self, self.outputs[0], minibatch_source, streams, model_inputs_to_streams, sweeps=sweeps)
    parts = _Callbacks("train", callbacks)
    frequency = progress_frequency
    if max_samples is None and epoch_size is None and isinstance(data, ArrayData) and not data.counts_alike:
        data.end_after(epochs)
        max_samples = UNLIMITED if epochs > 0 else 0
        if frequency is None and epochs >= 1:
            frequency = (1, DataUnit.sweep)
    elif max_samples is None and epoch_size is None and isinstance(data, SourceData) and data.sweeps is not None and data.length is None:
        if data.sweeps != epochs:
            raise ValueError(f"train: max_epochs must be whole for data that does not tell how many samples it has, got {max_epochs}")
        max_samples = UNLIMITED
        frequency = (1, DataUnit.sweep) if frequency is None else frequency
    elif max_samples is None:
        if epoch_size is None:
            if data.length is None:
                raise ValueError("train: a minibatch source does not tell how many samples it has; give epoch_size or max_samples")
            epoch_size = data.length
        epoch_size = int(epoch_size)
        max_samples = int(epochs * epoch_size)
    if max_samples <= 0:
        raise ValueError(f"train: max_epochs or max_samples must be positive; they leave {max_samples} samples to train")
    frequency = epoch_size if frequency is None else frequency
    sizes = sizes_of(minibatch_size, "train: minibatch_size")
    collector = _Collector(_frequency_of(parts.writers, frequency, sizes[0]))
    trainer = Trainer(None, self, parameter_learners, [*parts.writers, collector], loss_scale)
    seen = trainer.total_number_of_samples_seen
    if seen >= max_samples:
        warn_user(
            f"train: the learner has seen {seen} samples, and {max_samples} were to be trained in all: nothing is left; ask for more "
            "epochs or samples, or make a new learner"
        )
    mapping = data.streams if isinstance(data, SourceData) else None
    TrainingSession(trainer, data, sizes, mapping, max_samples, frequency, parts.checkpoint, parts.cross_validation, parts.test).train()
    seen = trainer.total_number_of_samples_seen
    if isinstance(data, SourceData) and data.is_single_pass and seen < max_samples < UNLIMITED:
        warn_user(
            f"train: the data ended after {seen} samples, and {max_samples} were to be trained; it can be iterated over once. Give the "
            "function that makes the iterator, or a list of what it gives"
        )
    summaries = collector.summaries or [Record(loss=0.0, metric=0.0, samples=0)]
    tested = {} if parts.test is None else {"test_summary": collector.tests[-1]}
    return Record(updates=collector.updates, epoch_summaries=summaries, **tested)


@checked
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
        minibatch_size: samples in a minibatch, counted as in training.
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
    from cntk.eval import Evaluator  # which is written in terms of the trainer

    metric = self.outputs[-1]
    data = _data_of("test", self, metric, minibatch_source, streams, model_inputs_to_streams, 1, 1, False)
    if data.is_infinite:
        raise ValueError("test: the minibatch source never ends; make it with max_sweeps=1 or max_samples")
    sizes = sizes_of(minibatch_size, "test: minibatch_size")
    collector = _Collector(NEVER)
    evaluator = Evaluator(metric, [*writers_of(callbacks), collector])
    needed = set(evaluator.evaluation_function.arguments)
    samples = 0
    while minibatch := data.next(size := sizes[samples])[0]:
        evaluator.test_minibatch({variable: part for variable, part in minibatch.items() if variable in needed})
        samples += size
    evaluator.summarize_test_progress()
    return collector.tests[0]


def extend_function() -> None:
    """Give functions their training methods, which the kernel knows nothing of."""
    Function.train = train
    Function.test = test


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


class _Callbacks:
    """The callbacks of a training, by what they are."""

    def __init__(self, where: str, callbacks: Any) -> None:
        self.writers: list[ProgressWriter] = []
        self.checkpoint: CheckpointConfig | None = None
        self.cross_validation: CrossValidationConfig | None = None
        self.test: TestConfig | None = None
        places = {CheckpointConfig: "checkpoint", CrossValidationConfig: "cross_validation", TestConfig: "test"}
        for callback in as_list(callbacks):
            if callback is None:
                continue
            if isinstance(callback, ProgressWriter):
                self.writers.append(callback)
                continue
            place = next((place for kind, place in places.items() if isinstance(callback, kind)), None)
            if place is None:
                raise ValueError(
                    f"{where}: callbacks are progress writers, a CheckpointConfig, a CrossValidationConfig and a TestConfig; "
                    f"got {type(callback).__name__} {callback!r:.80}"
                )
            if getattr(self, place) is not None:
                raise ValueError(f"{where}: there may be one {type(callback).__name__} among the callbacks, got another one")
            setattr(self, place, callback)


def _data_of(
    where: str,
    criterion: Function,
    counted: Variable,
    data: Any,
    streams: Any,
    inputs_to_streams: Any,
    passes: float = math.inf,
    sweeps: float = math.inf,
    randomize: bool | None = None,
) -> Data:
    arguments = criterion.arguments
    if not is_source(data):
        if streams is not None or inputs_to_streams is not None:
            raise ValueError(f"{where}: arrays are matched with arguments by position; streams and model_inputs_to_streams are for sources")
        return data_of(where, data, arguments, counted, passes, sweeps, randomize)
    if streams is None and inputs_to_streams is None:
        by_name = {info.name: info for info in data.stream_infos()}
        if all(argument.name in by_name for argument in arguments):
            inputs_to_streams = {argument: by_name[argument.name] for argument in arguments}
    if (streams is None) == (inputs_to_streams is None):
        raise ValueError(f"{where}: a minibatch source needs streams, one for each argument, or model_inputs_to_streams, and not both")
    if inputs_to_streams is None:
        listed = as_list(streams)
        if len(listed) != len(arguments):
            raise ValueError(f"{where}: expected one stream for each of {list(arguments)}, in this order; got {len(listed)}")
        inputs_to_streams = dict(zip(arguments, listed, strict=True))
    return SourceData(data, inputs_to_streams)
