"""Configuration of training sessions: frequencies, checkpoints, data for validation and test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cntk.core.common.user_frame import warn_user
from cntk.core.types.arguments import checked
from cntk.learners.schedules import TrainingParameterSchedule, minibatch_size_schedule
from cntk.train.data import Data, SourceData, data_of, is_source
from cntk.train.data_unit import DataUnit

UNLIMITED = sys.maxsize
"""Number of samples, or frequency, from which on there is no limit, or nothing before the end."""


class Frequency(NamedTuple):
    """Every so many samples, minibatches or sweeps; every ``UNLIMITED`` means at the end."""

    every: int
    unit: DataUnit


def frequency_of(given: Any, what: str) -> Frequency:
    """A frequency that is given as a number of samples, as ``(number, DataUnit)``, or None for at the end.

    Raises:
        ValueError: it is given as something else.
    """
    number, unit = given if isinstance(given, tuple) and len(given) == 2 else (given, DataUnit.sample)
    number = UNLIMITED if number is None else number
    if not _is_whole(number) or number < 0 or not isinstance(unit, DataUnit):
        raise ValueError(f"{what}: expected a number of samples or (number, DataUnit), such as (2, DataUnit.sweep); got {given!r:.80}")
    return Frequency(min(int(number), UNLIMITED), unit)


class CheckpointConfig:
    """Says where and how often a training session saves what it needs to go on later.

    Args:
        filename: path of the model's file; the state of training is beside it, with ``.ckp`` appended. None for no checkpoints.
        frequency: after how many samples a checkpoint is due, or ``(number, DataUnit)``; by default there is one at the end.
        restore: whether training goes on from a checkpoint that is there already.
        preserve_all: whether all checkpoints are kept: ``<filename>0``, ``<filename>1``, …, and in the end ``<filename>``.

    Raises:
        ValueError: a *frequency* without *filename*, or one that is none.

    >>> config = C.CheckpointConfig("model", frequency=(1, C.train.DataUnit.sweep))
    >>> config
    CheckpointConfig('model', (1, DataUnit.sweep), restore=True, preserve_all=False)
    """

    @checked
    def __init__(self, filename: Any, frequency: Any = None, restore: bool = True, preserve_all: bool = False) -> None:
        if filename is None and frequency:
            raise ValueError("CheckpointConfig: a frequency needs a filename, where checkpoints go")
        self.filename = filename
        self.frequency = frequency_of(frequency, "CheckpointConfig: frequency")
        self.restore = restore
        self.preserve_all = preserve_all

    def __repr__(self) -> str:
        every, unit = self.frequency
        return f"CheckpointConfig({self.filename!r}, ({every}, {unit}), restore={self.restore}, preserve_all={self.preserve_all})"


class _Evaluation:
    """Data to evaluate on."""

    def __init__(self, minibatch_source: Any, minibatch_size: Any, model_inputs_to_streams: Any, criterion: Any) -> None:
        name = type(self).__name__
        if minibatch_source is not None and not is_source(minibatch_source):
            if criterion is None:
                raise ValueError(f"{name}: data that is not a minibatch source needs a criterion, which tells the order of its arguments")
            if model_inputs_to_streams is not None:
                raise ValueError(f"{name}: arrays go to the criterion's arguments by position; model_inputs_to_streams is for sources")
        self.minibatch_source = minibatch_source
        self.sizes = sizes_of(minibatch_size, f"{name}: minibatch_size")
        self.model_inputs_to_streams = model_inputs_to_streams
        self.criterion = criterion

    def data(self, streams: Mapping[Any, Any] | None) -> Data | None:
        """The data, once; *streams* says which stream is for which argument where the configuration does not."""
        if self.minibatch_source is None:
            return None
        if not is_source(self.minibatch_source):
            given, criterion = self.minibatch_source, self.criterion
            return data_of(type(self).__name__, given, criterion.arguments, criterion.outputs[-1], 1, 1, False)
        mapping = self.model_inputs_to_streams or streams
        if not mapping:
            raise ValueError(f"{type(self).__name__}: a minibatch source needs model_inputs_to_streams: a stream for each argument")
        return SourceData(self.minibatch_source, mapping)


class CrossValidationConfig(_Evaluation):
    """Says how often a training session measures the metric on data of its own, and what is made of the result.

    Args:
        minibatch_source: a minibatch source that ends, or a tuple of arrays; it is read from its start every time. None leaves it to the
            *callback* to measure something.
        frequency: after how many samples it is due, or ``(number, DataUnit)``; by default at the end.
        minibatch_size: samples in a minibatch, a number or a schedule.
        callback: called as ``callback(index, average_error, num_samples, num_minibatches)`` with the number of the validation from 0, the
            average of the metric, and of how many samples and minibatches it is, all 0 without data.  False ends training.
        max_samples: samples to measure on at most.
        model_inputs_to_streams: the stream for each argument, as a dictionary; by default as in training.
        criterion: for arrays, the criterion whose arguments they are, in their order.
        source, mb_size: older names of *minibatch_source* and *minibatch_size*.

    Raises:
        ValueError: neither data nor callback, arrays without *criterion*, or a size or frequency that is none.

    >>> stop = C.CrossValidationConfig(frequency=100, callback=lambda index, error, samples, minibatches: False)
    """

    @checked
    def __init__(
        self,
        minibatch_source: Any = None,
        frequency: Any = None,
        minibatch_size: Any = 32,
        callback: Callable[[int, float, int, int], bool] | None = None,
        max_samples: int | None = None,
        model_inputs_to_streams: Any = None,
        criterion: Any = None,
        source: Any = None,
        mb_size: Any = None,
    ) -> None:
        minibatch_source, minibatch_size = _newer(minibatch_source, minibatch_size, source, mb_size)
        super().__init__(minibatch_source, minibatch_size, model_inputs_to_streams, criterion)
        if minibatch_source is None and callback is None and frequency:
            raise ValueError("CrossValidationConfig: a frequency needs something to do: a minibatch_source, or a callback")
        self.callback = callback
        self.frequency = frequency_of(frequency, "CrossValidationConfig: frequency")
        self.max_samples = UNLIMITED if max_samples is None else int(max_samples)


class TestConfig(_Evaluation):
    """Says on what a training session measures the metric when it has ended.

    Args:
        minibatch_source: a minibatch source that ends, or a tuple of arrays.
        minibatch_size: samples in a minibatch, a number or a schedule.
        model_inputs_to_streams: the stream for each argument, as a dictionary; by default as in training.
        criterion: for arrays, the criterion whose arguments they are, in their order.
        source, mb_size: older names of *minibatch_source* and *minibatch_size*.

    Raises:
        ValueError: arrays without *criterion*, or a size that is none.

    >>> x, y = C.input_variable(1), C.input_variable(1)
    >>> X = np.ones((4, 1), np.float32)
    >>> config = C.TestConfig((X, X), criterion=C.squared_error(x, y))
    """

    __test__ = False  # no test of pytest's

    @checked
    def __init__(
        self,
        minibatch_source: Any = None,
        minibatch_size: Any = 32,
        model_inputs_to_streams: Any = None,
        criterion: Any = None,
        source: Any = None,
        mb_size: Any = None,
    ) -> None:
        minibatch_source, minibatch_size = _newer(minibatch_source, minibatch_size, source, mb_size)
        super().__init__(minibatch_source, minibatch_size, model_inputs_to_streams, criterion)


def sizes_of(given: Any, what: str) -> TrainingParameterSchedule[int]:
    """A schedule of minibatch sizes that may be given as a number.

    Raises:
        ValueError: it is something else.
    """
    if _is_whole(given):
        return minibatch_size_schedule(int(given))
    if not isinstance(given, TrainingParameterSchedule):
        raise ValueError(f"{what}: expected a number of samples or a minibatch_size_schedule, got {type(given).__name__} {given!r:.80}")
    return given


def is_unlimited(max_samples: int) -> bool:
    """Whether a number of samples stands for all there are, such as ``INFINITELY_REPEAT``."""
    return max_samples >= UNLIMITED


def _is_whole(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def _newer(minibatch_source: Any, minibatch_size: Any, source: Any, mb_size: Any) -> tuple[Any, Any]:
    """Source and size, which older programs give under other names."""
    for older, newer, given in (("source", "minibatch_source", source), ("mb_size", "minibatch_size", mb_size)):
        if given is not None:
            warn_user(f"{older} is deprecated; say {newer}", DeprecationWarning)
    return minibatch_source if source is None else source, minibatch_size if mb_size is None else mb_size
