"""What a trainer, an evaluator and ``Function.train`` tell of themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_matrix

import cntk as C
from cntk.train import DataUnit

X, Y = np.ones((4, 2), np.float32), np.full((4, 1), 3, np.float32)


class Network:
    """Linear regression, with its loss, a metric and a learner."""

    def __init__(self) -> None:
        self.x, self.y = C.input_variable(2, name="x"), C.input_variable(1, name="y")
        self.z = C.layers.Dense(1, init=0)(self.x)
        self.loss = C.squared_error(self.z, self.y)
        self.metric = C.reduce_sum(C.abs(self.z - self.y))
        self.learner = C.sgd(self.z.parameters, C.learning_parameter_schedule(0.125))
        self.data = {self.x: X, self.y: Y}

    def trainer(self) -> C.Trainer:
        return C.Trainer(self.z, (self.loss, self.metric), [self.learner])


@pytest.fixture
def network() -> Network:
    return Network()


# ---- trainer and evaluator ----


def test_a_trainer_shows_what_it_was_made_of(network: Network) -> None:
    trainer = network.trainer()
    assert trainer.model is network.z
    assert trainer.parameter_learners == (network.learner,)
    assert str(trainer.loss_function) == "Composite(x: Tensor[2], y: Tensor[1]) -> np.float32"
    assert trainer.loss_function.root_function is network.loss.root_function
    assert trainer.evaluation_function.root_function is network.metric.root_function
    assert C.Evaluator(network.metric).evaluation_function.root_function is network.metric.root_function


@pytest.mark.parametrize("criterion", [lambda n: n.loss, lambda n: (n.loss,), lambda n: (n.loss, None)])
def test_a_criterion_may_lack_a_metric(network: Network, criterion: Any) -> None:
    trainer = C.Trainer(None, criterion(network), network.learner)
    assert trainer.evaluation_function is None
    trainer.train_minibatch(network.data)
    for ask in (lambda: trainer.previous_minibatch_evaluation_average, lambda: trainer.test_minibatch(network.data)):
        with pytest.raises(ValueError, match="no metric"):
            ask()


@pytest.mark.parametrize("criterion", [lambda n: None, lambda n: (None, n.metric), lambda n: "loss"])
def test_a_criterion_has_a_loss(network: Network, criterion: Any) -> None:
    with pytest.raises(TypeError, match="a criterion consists of functions"):
        C.Trainer(None, criterion(network), network.learner)


def test_the_last_minibatch_is_reported(network: Network) -> None:
    trainer = network.trainer()
    assert trainer.previous_minibatch_sample_count == 0
    with pytest.raises(RuntimeError, match="no minibatch has been trained yet"):
        trainer.previous_minibatch_loss_average  # noqa: B018
    assert trainer.train_minibatch(network.data) is True
    assert trainer.previous_minibatch_loss_average == 9
    assert trainer.previous_minibatch_evaluation_average == 3
    assert trainer.previous_minibatch_sample_count == 4
    assert trainer.total_number_of_samples_seen == 4


def test_outputs_of_training_come_by_what_was_asked_for(network: Network) -> None:
    z, loss, metric = network.z, network.loss, network.metric
    both = C.combine([loss, metric])
    updated, values = network.trainer().train_minibatch(network.data, outputs=[z, loss.output, both])
    assert updated
    assert list(values) == [z, loss.output, metric.output]
    assert_allclose(values[z], np.zeros((4, 1)))
    assert_allclose(values[loss.output], [9, 9, 9, 9])


def test_nothing_is_learnt_from_no_data(network: Network) -> None:
    trainer = network.trainer()
    assert trainer.train_minibatch({}) is False
    assert trainer.train_minibatch({}, outputs=[network.z]) == (False, {})
    assert trainer.total_number_of_samples_seen == 0


class Losses(C.cntk_py.ProgressWriter):
    """Keeps the losses that it is told."""

    def __init__(self) -> None:
        super().__init__(1)
        self.seen: list[float] = []

    def on_write_training_update(self, samples: Any, updates: Any, aggregate_loss: Any, aggregate_metric: Any) -> None:
        self.seen.append(aggregate_loss[1] - aggregate_loss[0])


def test_progress_writers_come_and_go(network: Network) -> None:
    trainer, first, second = network.trainer(), Losses(), Losses()
    for writers in ([first], [second], None):
        trainer.train_minibatch(network.data)
        if writers:
            trainer.add_progress_writers(writers)
    trainer.remove_progress_writers(first)
    trainer.train_minibatch(network.data)
    assert [len(first.seen), len(second.seen)] == [2, 2]
    assert first.seen[1] == second.seen[0]
    with pytest.raises(ValueError, match="none of this trainer's progress writers"):
        trainer.remove_progress_writers([first])
    with pytest.raises(TypeError, match="expected progress writers"):
        trainer.add_progress_writers("printer")  # type: ignore[arg-type]


# ---- Function.train ----


def samples(records: list[Any]) -> list[int]:
    return [record.samples for record in records]


@pytest.mark.parametrize(
    ("options", "summaries"),
    [
        ({}, [4]),
        ({"max_epochs": 2}, [4, 4]),
        ({"max_epochs": 1.5}, [4, 2]),
        ({"max_samples": 7}, [7]),
        ({"max_samples": 7, "epoch_size": 3}, [4, 2, 1]),
        ({"epoch_size": 6, "max_epochs": 2}, [6, 6]),
        ({"progress_frequency": 2}, [2, 2]),
        ({"progress_frequency": (2, DataUnit.minibatch), "max_epochs": 1.5}, [4, 2]),
        ({"progress_frequency": (2, DataUnit.sweep), "max_epochs": 3}, [8]),
    ],
)
def test_summaries_come_when_they_are_due(network: Network, options: dict[str, Any], summaries: list[int]) -> None:
    progress = network.loss.train((X, Y), minibatch_size=2, parameter_learners=[network.learner], **options)
    assert samples(progress.epoch_summaries) == summaries


@pytest.mark.parametrize(
    ("options", "updates"),
    [
        ({}, [4]),
        ({"progress_frequency": 2}, [2, 2]),
        ({"max_samples": 3}, []),
        ({"minibatch_size": 3}, [3, 1]),
        ({"minibatch_size": 32}, [4]),
        ({"callbacks": [C.logging.ProgressPrinter]}, []),
        ({"callbacks": [C.cntk_py.ProgressWriter, lambda: C.logging.ProgressPrinter(3)]}, [3]),
        ({"callbacks": [lambda: C.logging.ProgressPrinter(0), lambda: C.logging.ProgressPrinter(2)]}, [1, 2]),
        ({"progress_frequency": (2, DataUnit.minibatch)}, [2, 2]),
        ({"progress_frequency": (1, DataUnit.sweep)}, []),
    ],
)
def test_updates_are_as_frequent_as_those_of_the_first_writer(network: Network, options: dict[str, Any], updates: list[int]) -> None:
    callbacks = [make() for make in options.get("callbacks", [])]
    settings = {"minibatch_size": 1, **options, "callbacks": callbacks}
    progress = network.loss.train((X, Y), parameter_learners=[network.learner], **settings)
    assert samples(progress.updates) == updates


def test_samples_that_the_learner_has_seen_count(network: Network) -> None:
    criterion, learners = network.loss, [network.learner]
    criterion.train((X, Y), parameter_learners=learners)
    assert network.trainer().total_number_of_samples_seen == 4
    with pytest.warns(UserWarning, match="has seen 4 samples, .* nothing is left; ask for more epochs") as seen:
        nothing = criterion.train((X, Y), parameter_learners=learners)
    assert seen[0].filename == __file__
    assert (nothing.updates, nothing.epoch_summaries) == ([], [C.variables.Record(loss=0, metric=0, samples=0)])
    assert samples(criterion.train((X, Y), parameter_learners=learners, max_epochs=3).epoch_summaries) == [4, 4]


def test_testing_averages_the_last_output(network: Network) -> None:
    assert network.loss.test((X, Y)) == {"metric": 9, "samples": 4}
    criterion = C.combine([network.loss, network.metric])
    assert criterion.test((X, Y), minibatch_size=3) == {"metric": 3, "samples": 4}


def test_a_record_holds_what_it_was_made_with() -> None:
    record = C.variables.Record(loss=1)
    assert record.updated_with(samples=2) == {"loss": 1, "samples": 2}
    with pytest.raises(AttributeError, match=r"no 'metric'; it has \['loss'\]"):
        record.metric  # noqa: B018
    with pytest.raises(AttributeError, match="cannot be changed"):
        record.loss = 2
    with pytest.raises(TypeError):
        C.variables.Record({"loss": 1})


SEQUENCES = [np.float32([[1, 0], [2, 0], [4, 0]]), np.float32([[8, 0]]), np.float32([[16, 0], [32, 0]])]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 32])
def test_testing_on_sequences_averages_over_all_steps(size: int) -> None:
    x, y = C.sequence.input_variable(2), C.sequence.input_variable(2)
    result = C.reduce_sum(x + y).test((SEQUENCES, [0 * sequence for sequence in SEQUENCES]), minibatch_size=size)
    assert (result.metric, result.samples) == (10.5, 6)


@pytest.mark.parametrize(("size", "samples"), [(32, [6, 6]), (4, [4, 2, 4, 2]), (2, [3, 1, 2, 3, 1, 2])])
@pytest.mark.parametrize("sparse", [False, True])
def test_minibatches_of_sequences_are_as_many_steps(size: int, samples: list[int], sparse: bool) -> None:
    x, weight = C.sequence.input_variable(2, is_sparse=sparse), C.parameter((2, 1), init=0)
    loss = C.reduce_sum(C.times(x, weight))
    data = [csr_matrix(sequence) for sequence in SEQUENCES] if sparse else SEQUENCES
    learner = C.sgd([weight], C.learning_parameter_schedule_per_sample(0.01))
    each = (1, DataUnit.minibatch)
    progress = loss.train((data,), parameter_learners=[learner], minibatch_size=size, max_epochs=2, progress_frequency=each)
    assert [summary.samples for summary in progress.epoch_summaries] == samples
    assert_allclose(weight.value, [[-1.26], [0]], rtol=1e-6)
