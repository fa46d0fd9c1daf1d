"""Training sessions: the loop over minibatches, with progress, checkpoints, cross validation and a test at the end."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from cntk.learners.schedules import minibatch_size_schedule
from cntk.train.checkpoint import furthest, progress_of, require_parts
from cntk.train.data import ArrayData, Data, SourceData, data_of, is_source
from cntk.train.data_unit import DataUnit
from cntk.train.session_config import (
    UNLIMITED,
    CheckpointConfig,
    CrossValidationConfig,
    Frequency,
    TestConfig,
    frequency_of,
    is_unlimited,
    sizes_of,
)
from cntk.train.trainer import Trainer

NEVER = Frequency(0, DataUnit.sample)

logger = logging.getLogger("cntk.train")


class Counts(NamedTuple):
    """How far training has come, in every unit."""

    sweep: int
    sample: int
    minibatch: int


class Timer:
    """Tells when something is due that is done every so often, and once more at the end where that lies between two times.

    Args:
        frequency: how often; every 0 means never.

    Attributes:
        every, unit: how often.
        index: how many frequencies had passed when it was done last.
        reached: the count when it was done last.
    """

    def __init__(self, frequency: Frequency) -> None:
        self.every, self.unit = frequency
        self.index = self.reached = 0

    def is_due(self, counts: Counts) -> bool:
        """Whether it is time."""
        return self.every > 0 and counts[self.unit] // self.every > self.index

    def remains(self, counts: Counts) -> bool:
        """Whether it is to be done at the end; what counts sweeps is not."""
        return self.every > 0 and self.unit is not DataUnit.sweep and counts[self.unit] > self.reached

    def set(self, counts: Counts) -> int:
        """Take it for done now; the index until now."""
        index = self.index
        self.reached = counts[self.unit]
        self.index = self.reached // self.every if self.every else 0
        return index

    def create_checkpoint(self) -> dict[str, Any]:
        """Frequency, index and count."""
        return {"every": self.every, "unit": int(self.unit), "index": self.index, "reached": self.reached}

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any], counts: Counts) -> None:
        """Go on from :meth:`create_checkpoint`, where the frequency is the same: what was due then is due again."""
        self.set(counts)
        if (checkpoint["every"], checkpoint["unit"]) == (self.every, int(self.unit)):
            self.index, self.reached = checkpoint["index"], checkpoint["reached"]


class TrainingSession:
    """A training loop, made by :func:`training_session`.

    A subclass may override :meth:`get_minibatch_size` and the methods whose names begin with ``on_``.

    When several things fall on one minibatch, the order is: checkpoint, summary of training, cross validation.

    Args:
        trainer: the trainer.
        mb_source: a minibatch source, or a tuple of arrays for the loss's arguments.
        mb_size: samples in a minibatch, a number or a schedule.
        model_inputs_to_streams: with a minibatch source, the stream for each argument, as a dictionary.
        max_samples: samples of the trainer, with those it has seen before, after which training ends; None for as many as the source has.
        progress_frequency: after how many samples the progress writers write a summary, or ``(number, DataUnit)``; None for at the end.
        checkpoint_config, cv_config, test_config: what else is to be done, or None.

    Raises:
        ValueError: there is no trainer, no source or no mapping, a size or frequency is none, a source never ends, or no checkpoint can
            hold the model.
        TypeError: an operator of the model has an argument, or a user function a state, that no checkpoint can hold.

    >>> x, w = C.input_variable(1), C.parameter(1)
    >>> loss = C.squared_error(x * w, 1)
    >>> trainer = C.Trainer(None, loss, C.sgd([w], C.learning_parameter_schedule_per_sample(0.25)))
    >>> class Announced(C.train.TrainingSession):
    ...     def on_minibatch_end(self):
    ...         print(trainer.total_number_of_samples_seen, w.value)
    >>> ones = np.ones((2, 1), np.float32)
    >>> Announced(trainer, (ones,), 1, None, 2, None, None, None, None).train()
    1 [0.5]
    2 [0.75]
    """

    def __init__(
        self,
        trainer: Trainer,
        mb_source: Any,
        mb_size: Any,
        model_inputs_to_streams: Mapping[Any, Any] | None,
        max_samples: int | None,
        progress_frequency: Any,
        checkpoint_config: CheckpointConfig | None,
        cv_config: CrossValidationConfig | None,
        test_config: TestConfig | None,
    ) -> None:
        if trainer is None:
            raise ValueError("training_session: a trainer is needed, got None")
        self._trainer = trainer
        self._data = _data_of(trainer, mb_source, model_inputs_to_streams)
        self._sizes = sizes_of(mb_size, "training_session: mb_size")
        self._max_samples = UNLIMITED if max_samples is None else max_samples
        self._checkpoints = checkpoint_config or CheckpointConfig(None)
        self._validation = cv_config or CrossValidationConfig()
        self._validation_data = self._validation.data(model_inputs_to_streams)
        self._test = test_config or TestConfig()
        self._test_data = self._test.data(model_inputs_to_streams)
        self._check_ends()
        if self._checkpoints.filename is not None:
            trainer.require_savable()
        if self._validation_data is not None:
            self._validation_start = self._validation_data.get_checkpoint_state()
        self._minibatches = self._sweeps = self._begun_anew = 0
        self._goes_on, self._is_saved = True, False
        validates = self._validation_data is not None or self._validation.callback is not None
        self._timers = {
            "progress": Timer(frequency_of(progress_frequency, "training_session: progress_frequency")),
            "checkpoint": Timer(self._checkpoints.frequency if self._checkpoints.filename is not None else NEVER),
            "cross_validation": Timer(self._validation.frequency if validates else NEVER),
        }

    # ---- for users ----

    def train(self, device: Any = None) -> None:
        """Train, from the last checkpoint where there is one.

        Args:
            device: where to compute; the default device where None.

        Raises:
            RuntimeError: a checkpoint cannot be restored.
            TypeError: a callback of cross validation returns something else than True or False.
        """
        self._device = device
        if self._trainer.team is not None:
            self._trainer.team.agree(self._settings())
        for timer in self._timers.values():
            timer.set(self._counts())
        self._restore()
        self._do(Timer.is_due)
        while self._goes_on and (left := self._max_samples - self._trainer.total_number_of_samples_seen) > 0:
            if not self._train_minibatch(left):
                break
            self._do(Timer.is_due)
        self._do(Timer.remains)
        if self._checkpoints.filename is not None and not self._is_saved:
            self._save(self._checkpoints.filename)
        if self._trainer.team is not None:
            self._trainer.team.synchronize()
        if self._test_data is not None:
            self._evaluate(self._test_data, self._test.sizes, UNLIMITED)

    def _settings(self) -> dict[str, Any]:
        """What workers that train together must have in common."""
        checkpoints, validation = self._checkpoints, self._validation
        return {
            "minibatch size": self._sizes,
            "max_samples": self._max_samples,
            "checkpoints": checkpoints.filename is not None,
            "restore": checkpoints.restore,
            "preserve_all": checkpoints.preserve_all,
            **{f"frequency of {name}": f"{timer.every} ({timer.unit.name})" for name, timer in self._timers.items() if name != "progress"},
            "cross validation on data": self._validation_data is not None,
            "cross validation's minibatch size": validation.sizes,
            "cross validation's max_samples": validation.max_samples,
            "test": self._test_data is not None,
            "test's minibatch size": self._test.sizes,
        }

    def restore_from_checkpoint(self, filename: Any) -> None:
        """Go on from a checkpoint that a training session has written.

        Raises:
            RuntimeError: there is none, or another trainer wrote it.
        """
        state, take_over = self._trainer.checked_checkpoint(filename)
        if "session" not in state or "source" not in state:
            raise RuntimeError(f"{filename}: the checkpoint was not written by a training session; it has {sorted(state)}")
        session, where = state["session"], f"{os.fsdecode(filename)}.ckp, session"
        require_parts(session, where, minibatches=int, sweeps=int, timers=dict)
        require_parts({"begun_anew": 0, **session}, where, begun_anew=int)
        for name in self._timers:
            require_parts(session["timers"].get(name), f"{where}, timer {name}", every=int, unit=int, index=int, reached=int)
        self._data.restore_from_checkpoint(state["source"])
        take_over()
        self._minibatches, self._sweeps = session["minibatches"], session["sweeps"]
        self._begun_anew = session.get("begun_anew", 0)
        for name, timer in self._timers.items():
            timer.restore_from_checkpoint(session["timers"][name], self._counts())

    def get_minibatch_size(self) -> int:
        """How many samples the next minibatch is to have: what the schedule says."""
        return self._sizes[self._trainer.total_number_of_samples_seen]

    def on_minibatch_start(self) -> None:
        """Called before each minibatch."""

    def on_minibatch_end(self) -> bool | None:
        """Called after each minibatch; False ends training."""
        return True

    def on_checkpoint_start(self, index: int) -> None:
        """Called before a checkpoint is written; *index* is its number."""

    def on_checkpoint_end(self, index: int) -> None:
        """Called when a checkpoint has been written."""

    def on_cross_validation_start(self, index: int) -> None:
        """Called before a cross validation; *index* is its number."""

    def on_cross_validation_end(self, index: int, average_error: float, num_samples: int, num_minibatches: int) -> bool:
        """Called after a cross validation; whether training goes on: what the configuration's callback says.

        Args:
            index: number of the validation.
            average_error: average of the metric; 0 without data.
            num_samples, num_minibatches: of how many it is the average.
        """
        callback = self._validation.callback
        return callback is None or callback(index, average_error, num_samples, num_minibatches)

    # ---- the loop ----

    def _counts(self) -> Counts:
        return Counts(self._sweeps, self._trainer.total_number_of_samples_seen, self._minibatches)

    def _do(self, is_wanted: Callable[[Timer, Counts], bool]) -> None:
        """Do what is wanted beside training.

        A checkpoint has the counts of progress as they are after the summary, and knows that a validation is due: a run that goes on from
        there validates first.
        """
        counts, timers = self._counts(), self._timers
        write_summary = None
        if is_wanted(timers["progress"], counts):
            timers["progress"].set(counts)
            self._is_saved = False
            write_summary = self._trainer.take_training_summary()
        if is_wanted(timers["checkpoint"], counts):
            self._save_numbered(timers["checkpoint"].set(counts))
        if write_summary is not None:
            write_summary()
        if is_wanted(timers["cross_validation"], counts):
            self._validate(timers["cross_validation"].set(counts))

    def _train_minibatch(self, left: int) -> bool:
        """Train on at most *left* samples; whether there was data to learn from."""
        self.on_minibatch_start()
        size = min(self.get_minibatch_size(), left)
        team = self._trainer.team
        partition = team.partition if team is not None and team.is_distributed else (1, 0)
        arguments, ends_sweep = self._data.next(size, *partition)
        told = None if isinstance(self._data, SourceData) else ends_sweep
        if not self._trainer.train_minibatch(arguments, device=self._device, is_sweep_end=told):
            return False
        self._minibatches += 1
        self._sweeps += self._trainer.previous_minibatch_ended_sweep
        self._is_saved = False
        goes_on = self.on_minibatch_end()
        self._goes_on = goes_on is None or _as_bool("on_minibatch_end", goes_on)
        if type(self).on_minibatch_end is not TrainingSession.on_minibatch_end:
            self._goes_on = self._all_go_on()
        return True

    # ---- checkpoints ----

    def _save_numbered(self, index: int) -> None:
        self.on_checkpoint_start(index)
        name = os.fsdecode(self._checkpoints.filename)
        self._save(f"{name}{index}" if self._checkpoints.preserve_all else name)
        self._is_saved = not self._checkpoints.preserve_all
        self.on_checkpoint_end(index)

    def _save(self, filename: Any) -> None:
        timers = {name: timer.create_checkpoint() for name, timer in self._timers.items()}
        session = {"minibatches": self._minibatches, "sweeps": self._sweeps, "timers": timers, "begun_anew": self._begun_anew}
        self._trainer.save_checkpoint(filename, {"source": self._data.get_checkpoint_state(), "session": session})

    def _restore(self) -> None:
        """Restore the furthest checkpoint; or record that training was restarted, so that later checkpoints count as further."""
        config, team = self._checkpoints, self._trainer.team
        if config.filename is None:
            return
        found = furthest(config.filename, config.preserve_all or not config.restore)
        if team is not None:
            found = team.broadcast_from_root(found or "") or None
        if found is None:
            return
        if not config.restore:
            with suppress(RuntimeError):  # what cannot be read is as good as not there
                self._begun_anew = progress_of(found)[0] + 1
            return
        self.restore_from_checkpoint(found)
        self._is_saved = found == os.fsdecode(config.filename)
        logger.info("training goes on from the checkpoint %s, after %d samples", found, self._counts().sample)

    # ---- evaluation ----

    def _validate(self, index: int) -> None:
        self.on_cross_validation_start(index)
        found = (0.0, 0, 0)
        if self._validation_data is not None:
            self._validation_data.restore_from_checkpoint(self._validation_start)
            found = self._evaluate(self._validation_data, self._validation.sizes, self._validation.max_samples)
        goes_on = self.on_cross_validation_end(index, *found)
        self._goes_on = _as_bool("a cross validation's callback", goes_on) and self._goes_on
        self._goes_on = self._all_go_on()
        self._is_saved = False

    def _all_go_on(self) -> bool:
        """Whether no worker wants to end training."""
        team = self._trainer.team
        return self._goes_on if team is None else team.sum_up(not self._goes_on) == [0.0]

    def _evaluate(self, data: Data, sizes: Any, max_samples: int) -> tuple[float, int, int]:
        """Average of the metric, and of how many samples and minibatches, of all workers."""
        team = self._trainer.team
        if team is not None:
            team.synchronize()
        total, samples, minibatches = 0.0, 0, 0
        while samples < max_samples:
            arguments, _ = data.next(min(sizes[samples], max_samples - samples), *((1, 0) if team is None else team.partition))
            if team is None and not arguments:
                break
            average, count = self._trainer.measure_minibatch(arguments, self._device, None if team is None else team.transport)
            if not count:
                break
            total += average * count
            samples += count
            minibatches += 1
        self._trainer.summarize_test_progress()
        return total / samples if samples else 0.0, samples, minibatches

    def _check_ends(self) -> None:
        """That everything ends; the beginnings of the messages are CNTK's."""
        limited = "minibatch source must have a limited number of samples or sweeps"
        if is_unlimited(self._max_samples) and self._data.is_infinite:
            raise ValueError(f"Train {limited}; give max_samples")
        if self._test_data is not None and self._test_data.is_infinite:
            raise ValueError(f"Test {limited}; make it with max_sweeps=1 or max_samples")
        if self._validation_data is not None and self._validation_data.is_infinite and is_unlimited(self._validation.max_samples):
            raise ValueError(f"Cross validation {limited}; make it with max_sweeps=1 or max_samples")


def _as_bool(what: str, goes_on: Any) -> bool:
    if not isinstance(goes_on, (bool, np.bool_)):
        raise TypeError(f"{what} must return True, or False to end training; got {goes_on!r:.80}")
    return bool(goes_on)


def training_session(
    trainer: Trainer,
    mb_source: Any,
    mb_size: Any,
    model_inputs_to_streams: Mapping[Any, Any] | None = None,
    progress_frequency: Any = None,
    max_samples: int | None = None,
    checkpoint_config: CheckpointConfig | None = None,
    cv_config: CrossValidationConfig | None = None,
    test_config: TestConfig | None = None,
) -> TrainingSession:
    """Make a training session; its ``train`` method trains.

    Args:
        trainer: the trainer.
        mb_source: a minibatch source, or a tuple of arrays for the loss's arguments.
        mb_size: samples in a minibatch, a number or a schedule.
        model_inputs_to_streams: with a minibatch source, the stream for each argument, as a dictionary.
        progress_frequency: after how many samples the progress writers write a summary, or ``(number, DataUnit)``; None for at the end.
        max_samples: samples of the trainer, with those it has seen before, after which training ends; the last minibatch is made smaller
            to meet it. None for as many as the source has.
        checkpoint_config: where and how often to save what is needed to go on later.
        cv_config: how often to validate.
        test_config: on what to test in the end.

    Raises:
        ValueError: there is no trainer, no source or no mapping, a size or frequency is none, a source never ends, or no checkpoint can
            hold the model.
        TypeError: an operator of the model has an argument, or a user function a state, that no checkpoint can hold.

    >>> x, y = C.input_variable(1), C.input_variable(1)
    >>> loss = C.squared_error(C.layers.Dense(1, init=0)(x), y)
    >>> trainer = C.Trainer(None, loss, C.sgd(loss.parameters, 0.1))
    >>> X = np.ones((64, 1), np.float32)
    >>> C.training_session(trainer, (X, 2 * X), 32, max_samples=128).train()
    >>> trainer.total_number_of_samples_seen
    128
    """
    return TrainingSession(
        trainer, mb_source, mb_size, model_inputs_to_streams, max_samples, progress_frequency, checkpoint_config, cv_config, test_config
    )


def _data_of(trainer: Trainer, mb_source: Any, model_inputs_to_streams: Any) -> Data:
    if mb_source is None:
        raise ValueError("training_session: a minibatch source is needed, got None")
    if isinstance(mb_source, (ArrayData, SourceData)):
        return mb_source
    if not is_source(mb_source):
        if model_inputs_to_streams is not None:
            raise ValueError("training_session: arrays go to the loss's arguments by position; model_inputs_to_streams is for sources")
        return data_of("training_session", mb_source, trainer.loss_function.arguments, trainer.loss_function.output)
    if not model_inputs_to_streams:
        raise ValueError("training_session: model_inputs_to_streams must say which stream is for which argument: it is empty")
    return SourceData(mb_source, model_inputs_to_streams)


__all__ = [
    "CheckpointConfig",
    "CrossValidationConfig",
    "DataUnit",
    "TestConfig",
    "TrainingSession",
    "minibatch_size_schedule",
    "training_session",
]
