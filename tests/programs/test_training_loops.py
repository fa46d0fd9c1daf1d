"""The programs of CNTK's tutorial on training loops: by hand, with checkpoints, with a distributed learner, and as a training session.

They learn the exclusive or from a file in CNTK's text format.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

import cntk
import cntk.io
import cntk.ops
import cntk.train
from cntk.io import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.layers import Dense, Sequential
from cntk.logging import ProgressPrinter

INPUT_DATA = """|xy 0 0	|r 0
|xy 1 0	|r 1
|xy 0 1	|r 1
|xy 1 1	|r 0
"""

minibatch_size = 4
max_samples = 800
checkpoint_frequency = 100

MINIBATCHES = r" Minibatch\[ *{}- *{}\]: loss = \d\.\d{{6}} \* 40, metric = \d+\.\d\d% \* 40;"


class Task:
    """The data, the network and the loss that all programs of the tutorial have."""

    def __init__(self) -> None:
        self.input_file = "input"
        with open(self.input_file, "w") as f:
            f.write(INPUT_DATA)

        self.xy = cntk.input_variable(2)
        self.label = cntk.input_variable(1)
        self.model = Sequential([Dense(2, activation=cntk.ops.tanh), Dense(1)])
        self.z = self.model(self.xy)
        self.loss = cntk.squared_error(self.z, self.label)
        self.streams = StreamDefs(xy=StreamDef(field="xy", shape=2), r=StreamDef(field="r", shape=1))

    def sgd(self) -> Any:
        return cntk.sgd(self.model.parameters, cntk.learning_rate_schedule(0.1, cntk.UnitType.sample))

    def trainer(self, learner: Any, freq: int = 10) -> Any:
        return cntk.train.Trainer(self.z, (self.loss, self.loss), learner, ProgressPrinter(freq=freq))

    def source(self) -> tuple[Any, dict[Any, Any]]:
        mb_source = MinibatchSource(CTFDeserializer(self.input_file, self.streams))
        return mb_source, {self.xy: mb_source["xy"], self.label: mb_source["r"]}

    def test_source(self) -> tuple[Any, dict[Any, Any]]:
        test_mb_source = MinibatchSource(CTFDeserializer(self.input_file, self.streams), randomize=False, max_samples=100)
        return test_mb_source, {self.xy: test_mb_source["xy"], self.label: test_mb_source["r"]}


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.chdir(tmp_path)
    return Task()


def parameters(task: Task) -> list[Any]:
    return [parameter.value.tolist() for parameter in task.model.parameters]


def test_a_loop(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    label, (mb_source, input_map) = task.label, task.source()
    trainer = task.trainer(task.sgd())

    train = True
    while train and trainer.total_number_of_samples_seen < max_samples:
        data = mb_source.next_minibatch(minibatch_size, input_map)
        train = trainer.train_minibatch(data)

    test_mb_source, test_input_map = task.test_source()
    total_samples = 0
    error = 0.0
    data = test_mb_source.next_minibatch(32, test_input_map)
    while data:
        total_samples += data[label].number_of_samples
        error += trainer.test_minibatch(data) * data[label].number_of_samples
        data = test_mb_source.next_minibatch(32, test_input_map)

    assert total_samples == 100
    assert trainer.total_number_of_samples_seen == 800
    rate, *lines = capsys.readouterr().out.splitlines()
    assert rate == "Learning rate per 1 samples: 0.1"
    assert len(lines) == 20
    for i, line in enumerate(lines):
        assert re.fullmatch(MINIBATCHES.format(10 * i + 1, 10 * i + 10), line)
    assert error / total_samples < float(lines[0].split()[5])


def run_with_checkpoints(task: Task, learner: Any, checkpoint: str, limit: int, **workers: Any) -> Any:
    """The tutorial's loop until *limit* samples; since it divides with a fraction, it saves after every minibatch."""
    mb_source, input_map = task.source()
    trainer = task.trainer(learner)

    if os.path.exists(checkpoint):
        print("Trying to restore from checkpoint")
        mb_source_state = trainer.restore_from_checkpoint(checkpoint)
        mb_source.restore_from_checkpoint(mb_source_state)
        print("Restore has finished successfully")
    else:
        print("No restore file found")

    last_checkpoint = 0
    train = True
    while train and trainer.total_number_of_samples_seen < limit:
        data = mb_source.next_minibatch(minibatch_size_in_samples=minibatch_size, input_map=input_map, **workers)
        train = trainer.train_minibatch(data)
        if trainer.total_number_of_samples_seen / checkpoint_frequency != last_checkpoint:
            mb_source_state = mb_source.get_checkpoint_state()
            trainer.save_checkpoint(checkpoint, mb_source_state)
            last_checkpoint = trainer.total_number_of_samples_seen / checkpoint_frequency
    return trainer


def test_a_loop_with_checkpoints(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = "manual_loop_checkpointed"
    initial = [parameter.value for parameter in task.model.parameters]
    trainer = run_with_checkpoints(task, task.sgd(), checkpoint, limit=200)
    assert trainer.total_number_of_samples_seen == 200
    uninterrupted = parameters(task)
    assert capsys.readouterr().out.splitlines()[0] == "No restore file found"

    trainer = run_with_checkpoints(task, task.sgd(), checkpoint, limit=200)
    assert trainer.total_number_of_samples_seen == 200
    assert parameters(task) == uninterrupted
    assert capsys.readouterr().out.splitlines() == ["Trying to restore from checkpoint", "Restore has finished successfully"]

    for file in (checkpoint, f"{checkpoint}.ckp"):
        os.remove(file)
    for parameter, value in zip(task.model.parameters, initial, strict=True):
        parameter.value = value
    run_with_checkpoints(task, task.sgd(), checkpoint, limit=100)
    trainer = run_with_checkpoints(task, task.sgd(), checkpoint, limit=200)
    assert trainer.total_number_of_samples_seen == 200
    assert parameters(task) == uninterrupted


def test_a_loop_with_a_distributed_learner(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = "manual_loop_distributed"
    partition = cntk.distributed.Communicator.rank()
    num_partitions = cntk.distributed.Communicator.num_workers()
    assert (partition, num_partitions) == (0, 1)
    workers = {"device": cntk.use_default_device(), "num_data_partitions": num_partitions, "partition_index": partition}

    for _ in range(2):
        learner = cntk.distributed.data_parallel_distributed_learner(task.sgd())
        trainer = run_with_checkpoints(task, learner, checkpoint, limit=100, **workers)
        assert trainer.total_number_of_samples_seen == 100
    cntk.distributed.Communicator.finalize()

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "No restore file found"
    assert lines[-2:] == ["Trying to restore from checkpoint", "Restore has finished successfully"]


def test_with_one_worker_a_distributed_learner_learns_the_same(task: Task) -> None:
    initial = [parameter.value for parameter in task.model.parameters]
    found = []
    for name, wrap in (("a", cntk.distributed.data_parallel_distributed_learner), ("b", lambda learner: learner)):
        for parameter, value in zip(task.model.parameters, initial, strict=True):
            parameter.value = value
        run_with_checkpoints(task, wrap(task.sgd()), name, limit=100)
        found.append(parameters(task))
    assert found[0] == found[1]


def test_a_training_session(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = "training_session"

    def run() -> Any:
        mb_source, input_map = task.source()
        test_mb_source, test_input_map = task.test_source()
        learner = cntk.distributed.data_parallel_distributed_learner(task.sgd())
        trainer = task.trainer(learner, freq=1)
        session = cntk.training_session(
            trainer=trainer,
            mb_source=mb_source,
            mb_size=minibatch_size,
            model_inputs_to_streams=input_map,
            max_samples=max_samples,
            checkpoint_config=cntk.CheckpointConfig(frequency=checkpoint_frequency, filename=checkpoint),
            test_config=cntk.TestConfig(
                minibatch_source=test_mb_source, minibatch_size=minibatch_size, model_inputs_to_streams=test_input_map
            ),
        )
        session.train()
        return trainer

    assert run().total_number_of_samples_seen == 800
    assert sorted(os.listdir()) == ["input", checkpoint, f"{checkpoint}.ckp"]
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"Finished Epoch\[1\]: loss = \d\.\d{6} \* 800, metric = .* \* 800 .*", lines[-2])
    evaluation = lines[-1]
    assert re.fullmatch(r"Finished Evaluation \[1\]: Minibatch\[1-25\]: metric = \d+\.\d\d% \* 100;", evaluation)

    assert run().total_number_of_samples_seen == 800  # nothing is left to train
    assert capsys.readouterr().out.splitlines() == [evaluation]
    cntk.distributed.Communicator.finalize()
