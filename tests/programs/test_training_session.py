"""Training sessions: what is done when, what goes on after a checkpoint, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import cntk as C
from cntk.io import MinibatchSourceFromData
from cntk.layers.typing import Tensor
from cntk.train import DataUnit, TrainingSession

ITEMS = 40
X = ((np.arange(ITEMS, dtype=np.float32) % 7) / 7)[:, None]


class Events(C.cntk_py.ProgressWriter):
    """Notes what a session does."""

    def __init__(self, folder: Path) -> None:
        super().__init__(None)
        self.folder, self.seen = folder, []

    def note(self, *event: Any) -> None:
        self.seen.append((*event, self.files()))

    def files(self) -> str:
        return " ".join(sorted(file.name for file in self.folder.iterdir() if file.suffix != ".ckp"))

    def on_write_training_summary(
        self, samples: int, updates: int, summaries: int, loss: float, metric: float, elapsed_milliseconds: int
    ) -> None:
        self.note("summary", samples)

    def on_write_test_summary(self, samples: int, updates: int, summaries: int, metric: float, elapsed_milliseconds: int) -> None:
        self.note("test", samples)

    def on_validation(self, index: int, average_error: float, num_samples: int, num_minibatches: int) -> bool:
        self.note("validation", index)
        return True


class Regression:
    """A model of one weight with a trainer, and its data."""

    def __init__(self, folder: Path) -> None:
        self.x, self.y = C.input_variable(1), C.input_variable(1)
        self.w = C.parameter(1, init=0.5)
        z = self.x * self.w
        self.loss = C.squared_error(z, self.y)
        self.events = Events(folder)
        learner = C.momentum_sgd([self.w], C.learning_parameter_schedule_per_sample(0.01), 0.9)
        self.trainer = C.Trainer(z, (self.loss, self.loss), learner, self.events)
        self.source = MinibatchSourceFromData({"x": (X, Tensor[1]), "y": (2 * X, Tensor[1])})
        self.streams = {self.x: self.source.streams.x, self.y: self.source.streams.y}

    def session(self, size: Any = 8, max_samples: int = 80, kind: Any = C.training_session, **options: Any) -> TrainingSession:
        if "cv" in options:
            frequency = options.pop("cv")
            options["cv_config"] = C.CrossValidationConfig(
                (X[:8], 2 * X[:8]), frequency, callback=self.events.on_validation, criterion=self.loss
            )
        session: TrainingSession = kind(self.trainer, self.source, size, self.streams, max_samples=max_samples, **options)
        return session


@pytest.fixture
def regression(tmp_path: Path) -> Regression:
    return Regression(tmp_path)


def checkpoint(folder: Path, frequency: Any = None, **options: Any) -> C.CheckpointConfig:
    return C.CheckpointConfig(str(folder / "k"), frequency, **options)


# ---- what is done when ----


def test_checkpoint_then_summary_then_validation(regression: Regression, tmp_path: Path) -> None:
    test = C.TestConfig((X[:8], 2 * X[:8]), criterion=regression.loss)
    config = checkpoint(tmp_path, 40, preserve_all=True)
    regression.session(progress_frequency=40, checkpoint_config=config, cv=40, test_config=test).train()
    assert regression.events.seen == [
        ("summary", 40, "k0"),
        ("test", 8, "k0"),
        ("validation", 0, "k0"),
        ("summary", 40, "k0 k1"),
        ("test", 8, "k0 k1"),
        ("validation", 1, "k0 k1"),
        ("test", 8, "k k0 k1"),
    ]


def test_the_rest_is_done_at_the_end(regression: Regression, tmp_path: Path) -> None:
    regression.session(max_samples=70, progress_frequency=30, checkpoint_config=checkpoint(tmp_path, 30, preserve_all=True), cv=50).train()
    assert regression.events.seen == [
        ("summary", 32, "k0"),
        ("test", 8, "k0"),
        ("validation", 0, "k0"),
        ("summary", 32, "k0 k1"),
        ("summary", 6, "k0 k1 k2"),
        ("test", 8, "k0 k1 k2"),
        ("validation", 1, "k0 k1 k2"),
    ]
    assert regression.events.files() == "k k0 k1 k2"


@pytest.mark.parametrize(
    ("frequency", "summaries"),
    [
        ((4, DataUnit.minibatch), [32, 32, 24]),
        ((1, DataUnit.sweep), [40, 40]),  # what comes after the last sweep is not summed up
        (None, [88]),
        (0, []),
    ],
)
def test_frequencies(regression: Regression, frequency: Any, summaries: list[int]) -> None:
    regression.session(max_samples=88, progress_frequency=frequency).train()
    assert [event[1] for event in regression.events.seen] == summaries


def test_a_minibatch_may_pass_several_times(regression: Regression, tmp_path: Path) -> None:
    regression.session(32, 72, checkpoint_config=checkpoint(tmp_path, 10, preserve_all=True)).train()
    assert regression.events.files() == "k k0 k3 k4"


def test_without_data_the_callback_validates(regression: Regression) -> None:
    seen: list[tuple[Any, ...]] = []

    def callback(*arguments: Any) -> bool:
        seen.append(arguments)
        return len(seen) < 2

    regression.session(cv_config=C.CrossValidationConfig(frequency=16, callback=callback)).train()
    assert seen == [(0, 0.0, 0, 0), (1, 0.0, 0, 0)]
    assert regression.trainer.total_number_of_samples_seen == 32


def test_validation_of_some_samples(regression: Regression) -> None:
    found: list[tuple[Any, ...]] = []
    config = C.CrossValidationConfig(
        (X, 2 * X), 20, 8, callback=lambda *a: found.append(a) is None, max_samples=13, criterion=regression.loss
    )
    regression.session(max_samples=40, cv_config=config).train()
    assert [arguments[::2] for arguments in found] == [(0, 13), (1, 13)]
    assert found[0][3] == 2  # of 8 and 5


def test_validation_reads_its_source_from_the_start(regression: Regression) -> None:
    source = MinibatchSourceFromData({"x": (X, Tensor[1]), "y": (2 * X, Tensor[1])}, max_samples=ITEMS)
    counts: list[int] = []
    config = C.CrossValidationConfig(source, 20, 16, lambda i, error, samples, minibatches: counts.append(samples) is None)
    regression.session(max_samples=60, cv_config=config).train()
    assert counts == [ITEMS, ITEMS, ITEMS]


def test_a_subclass_is_told(regression: Regression, tmp_path: Path) -> None:
    told: list[tuple[Any, ...]] = []

    class Session(TrainingSession):
        def on_minibatch_end(self) -> bool:
            told.append(("minibatch",))
            return True

        def on_checkpoint_start(self, index: int) -> None:
            told.append(("checkpoint", index))

        def on_checkpoint_end(self, index: int) -> None:
            told.append(("saved", index))

        def on_cross_validation_start(self, index: int) -> None:
            told.append(("validation", index))

        def on_cross_validation_end(self, index: int, average_error: float, num_samples: int, num_minibatches: int) -> bool:
            told.append(("validated", index, num_samples))
            return False

    config = C.CrossValidationConfig((X[:8], 2 * X[:8]), 16, criterion=regression.loss)
    options = {"progress_frequency": None, "checkpoint_config": checkpoint(tmp_path, 16), "cv_config": config, "test_config": None}
    regression.session(16, kind=Session, **options).train()
    assert told == [("minibatch",), ("checkpoint", 0), ("saved", 0), ("validation", 0), ("validated", 0, 8)]


def test_a_subclass_may_end_training(regression: Regression) -> None:
    class Session(TrainingSession):
        def on_minibatch_end(self) -> bool:
            return regression.trainer.total_number_of_samples_seen < 24

    regression.session(kind=Session, progress_frequency=None, checkpoint_config=None, cv_config=None, test_config=None).train()
    assert [event[1] for event in regression.events.seen] == [24]


def test_training_goes_on_where_all_agree(regression: Regression) -> None:
    class Session(TrainingSession):
        def on_minibatch_end(self) -> bool:
            return False

    config = C.CrossValidationConfig(frequency=8, callback=regression.events.on_validation)
    regression.session(kind=Session, progress_frequency=None, checkpoint_config=None, cv_config=config, test_config=None).train()
    assert regression.trainer.total_number_of_samples_seen == 8


def test_numbers_of_numpy(regression: Regression) -> None:
    config = C.CrossValidationConfig(frequency=np.int64(16), callback=lambda *a: np.float32(1) < 0)  # type: ignore[arg-type,return-value]
    regression.session(np.int32(8), cv_config=config).train()
    assert regression.trainer.total_number_of_samples_seen == 16


def test_arrays_serve_as_source(regression: Regression) -> None:
    C.training_session(regression.trainer, (X, 2 * X), 12, max_samples=60).train()
    assert regression.trainer.total_number_of_samples_seen == 60


def test_callbacks_of_function_train(regression: Regression, tmp_path: Path) -> None:
    loss = regression.loss
    validated: list[int] = []
    progress = loss.train(
        (X, 2 * X),
        minibatch_size=8,
        max_epochs=3,
        parameter_learners=[C.sgd([regression.w], 0.01)],
        callbacks=[
            checkpoint(tmp_path, 40),
            C.CrossValidationConfig((X, 2 * X), 40, criterion=loss, callback=lambda i, *rest: validated.append(i) is None),
            C.TestConfig((X[:16], 2 * X[:16]), criterion=loss),
        ],
    )
    assert [summary.samples for summary in progress.epoch_summaries] == [40, 40, 40]
    assert progress.test_summary.samples == 16
    assert validated == [0, 1, 2]
    assert (tmp_path / "k.ckp").exists()


# ---- going on ----


@pytest.mark.parametrize("preserve_all", [False, True])
@pytest.mark.parametrize("stop", [30, 40, 64])
def test_going_on_is_like_never_having_stopped(tmp_path: Path, stop: int, preserve_all: bool) -> None:
    """The first session dies in the midst of a minibatch, the second one trains the rest."""

    class Dies(TrainingSession):
        def on_minibatch_end(self) -> None:
            if self._trainer.total_number_of_samples_seen >= stop:
                raise KeyboardInterrupt

    def run(folder: Path, kind: Any = C.training_session) -> Regression:
        folder.mkdir(exist_ok=True)
        model = Regression(folder)
        config = checkpoint(folder, (3, DataUnit.minibatch), preserve_all=preserve_all)
        cv = C.CrossValidationConfig(frequency=24, callback=model.events.on_validation)
        session = model.session(kind=kind, progress_frequency=20, checkpoint_config=config, cv_config=cv, test_config=None)
        try:
            session.train()
        except KeyboardInterrupt:
            assert kind is Dies
        return model

    alone = run(tmp_path / "alone")
    stopped = run(tmp_path / "stopped", Dies)
    assert stopped.trainer.total_number_of_samples_seen < 80
    resumed = run(tmp_path / "stopped")
    assert_array_equal(alone.w.value, resumed.w.value)
    assert alone.events.total_training_updates() == resumed.events.total_training_updates()
    assert alone.events.seen[-1] == resumed.events.seen[-1]
    assert alone.events.files() == resumed.events.files()


def test_nothing_is_left_of_a_finished_training(tmp_path: Path) -> None:
    for expected in (["summary", "test", "validation"], []):
        model = Regression(tmp_path)
        model.session(checkpoint_config=checkpoint(tmp_path, 40), cv=None).train()
        assert [event[0] for event in model.events.seen] == expected
        assert model.trainer.total_number_of_samples_seen == 80


def test_a_finished_training_is_summed_up_once(tmp_path: Path) -> None:
    """The last checkpoint falls on the last sample, and the summary of all comes after it."""
    for expected in ([80], []):
        model = Regression(tmp_path)
        model.session(checkpoint_config=checkpoint(tmp_path, 20)).train()
        assert [event[1] for event in model.events.seen] == expected


def test_a_validation_that_was_due_is_made_up_for(tmp_path: Path) -> None:
    """A checkpoint is written before the validation of the same minibatch, which may have changed learning rates."""
    first = Regression(tmp_path)

    def die(*arguments: Any) -> bool:
        raise KeyboardInterrupt

    config = C.CrossValidationConfig(frequency=40, callback=die)
    with pytest.raises(KeyboardInterrupt):
        first.session(checkpoint_config=checkpoint(tmp_path, 40), cv_config=config).train()
    second = Regression(tmp_path)
    second.session(checkpoint_config=checkpoint(tmp_path, 40), cv=40).train()
    assert [event[:2] for event in second.events.seen if event[0] == "validation"] == [("validation", 0), ("validation", 1)]


def test_the_latest_of_numbered_checkpoints(tmp_path: Path) -> None:
    Regression(tmp_path).session(checkpoint_config=checkpoint(tmp_path, 8, preserve_all=True), max_samples=96).train()
    for name in ("k", "k.ckp", "k11", "k11.ckp"):
        (tmp_path / name).unlink()
    model = Regression(tmp_path)
    minibatches: list[int] = []

    class Session(TrainingSession):
        def on_minibatch_end(self) -> None:
            minibatches.append(model.trainer.total_number_of_samples_seen)

    options = {"progress_frequency": None, "cv_config": None, "test_config": None}
    model.session(max_samples=104, kind=Session, checkpoint_config=checkpoint(tmp_path, 8, preserve_all=True), **options).train()
    assert minibatches == [96, 104]  # k10 had 88
    assert [event[1] for event in model.events.seen] == [104]  # no summary had been due before
    assert {"k", "k11", "k12"} <= set(model.events.files().split())


def test_starting_anew(tmp_path: Path) -> None:
    Regression(tmp_path).session(checkpoint_config=checkpoint(tmp_path)).train()
    model = Regression(tmp_path)
    model.session(checkpoint_config=checkpoint(tmp_path, restore=False)).train()
    assert [event[1] for event in model.events.seen] == [80]


def test_another_frequency_counts_from_where_it_is(tmp_path: Path) -> None:
    Regression(tmp_path).session(max_samples=40, progress_frequency=16, checkpoint_config=checkpoint(tmp_path)).train()
    model = Regression(tmp_path)
    model.session(progress_frequency=30, checkpoint_config=checkpoint(tmp_path)).train()
    assert [event[1] for event in model.events.seen] == [24, 16]


# ---- what is refused ----


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda r: C.training_session(None, r.source, 8, r.streams), "a trainer is needed"),
        (lambda r: C.training_session(r.trainer, None, 8, r.streams), "a minibatch source is needed"),
        (lambda r: C.training_session(r.trainer, r.source, 8, {}), "model_inputs_to_streams must say"),
        (lambda r: C.training_session(r.trainer, r.source, 8.5, r.streams, max_samples=8), "mb_size: expected a number of samples"),
        (lambda r: C.training_session(r.trainer, r.source, 0, r.streams, max_samples=8), "expected at least 1"),
        (lambda r: C.training_session(r.trainer, (X, X), 8), "Train minibatch source must have a limited number"),
        (lambda r: C.training_session(r.trainer, (X, X), 8, r.streams, max_samples=8), "model_inputs_to_streams is for sources"),
        (lambda r: r.session(progress_frequency=-1), "progress_frequency: expected a number of samples or"),
        (lambda r: r.session(progress_frequency=(1, 2)), "such as"),
        (lambda r: C.CheckpointConfig(None, 10), "a frequency needs a filename"),
        (lambda r: C.CheckpointConfig("a", "often"), "frequency: expected"),
        (lambda r: C.CrossValidationConfig(frequency=3), "needs something to do"),
        (lambda r: C.CrossValidationConfig((X, X)), "needs a criterion"),
        (lambda r: C.TestConfig((X, X)), "needs a criterion"),
        (lambda r: C.TestConfig((X, X), criterion=r.loss, model_inputs_to_streams=r.streams), "is for sources"),
        (lambda r: C.TestConfig((X, X), minibatch_size=None, criterion=r.loss), "minibatch_size: expected"),
        (lambda r: r.loss.train((X, X), callbacks=[3]), "callbacks are progress writers, a CheckpointConfig"),
        (lambda r: r.loss.train((X, X), callbacks=[C.CheckpointConfig(None)] * 2), "there may be one CheckpointConfig"),
    ],
)
def test_mistakes_are_refused_by_name(regression: Regression, make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(regression)


def test_a_callback_says_whether_to_go_on(regression: Regression) -> None:
    with pytest.raises(TypeError, match="must return True, or False to end training; got None"):
        regression.session(cv_config=C.CrossValidationConfig(frequency=8, callback=lambda *a: None)).train()  # type: ignore[arg-type,return-value]


def test_older_names(regression: Regression) -> None:
    with pytest.warns(DeprecationWarning, match="source is deprecated; say minibatch_source"):
        C.TestConfig(source=regression.source)
    with pytest.warns(DeprecationWarning, match="mb_size is deprecated; say minibatch_size"):
        assert C.TestConfig((X, X), mb_size=5, criterion=regression.loss).sizes[0] == 5


def test_a_checkpoint_of_a_loop_of_ones_own(regression: Regression, tmp_path: Path) -> None:
    regression.trainer.save_checkpoint(str(tmp_path / "k"), {"mine": 1})
    with pytest.raises(RuntimeError, match=r"was not written by a training session; it has \['mine'\]"):
        regression.session(checkpoint_config=checkpoint(tmp_path)).train()
