"""Training on minibatch sources: the same as training on the same data in arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.io import CTFDeserializer, MinibatchSource, MinibatchSourceFromData, StreamDef, StreamDefs

RNG = np.random.default_rng(1)
X = RNG.standard_normal((20, 3)).astype(np.float32)
Y = (X @ [[1], [2], [-1]]).astype(np.float32)


def criterion() -> tuple[Any, Any]:
    x, y = C.input_variable(3, name="x"), C.input_variable(1, name="y")
    loss = C.squared_error(C.layers.Dense(1, init=0)(x), y)
    return loss, C.sgd(loss.parameters, 0.1)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "data.ctf"
    samples = ({"x": x[None], "y": y[None]} for x, y in zip(X, Y, strict=True))
    path.write_text("\n".join(C.io.sequence_to_cntk_text_format(i, sample) for i, sample in enumerate(samples)))
    return str(path)


def source(file: str, **limits: Any) -> MinibatchSource:
    defs = StreamDefs(x=StreamDef(field="x", shape=3), y=StreamDef(field="y", shape=1))
    return MinibatchSource(CTFDeserializer(file, defs), randomize=False, **limits)


@pytest.mark.parametrize("by_name", [False, True])
def test_train_on_a_source(file: str, by_name: bool) -> None:
    expected, learner = criterion()
    wanted = expected.train((X, Y), minibatch_size=5, parameter_learners=[learner], max_epochs=3)
    loss, learner = criterion()
    data = source(file)
    streams = (data.streams.x, data.streams.y)
    how = {"model_inputs_to_streams": dict(zip(loss.arguments, streams, strict=True))} if by_name else {"streams": streams}
    progress = loss.train(data, minibatch_size=5, parameter_learners=[learner], max_epochs=3, epoch_size=20, **how)
    assert [summary.samples for summary in progress.epoch_summaries] == [20, 20, 20]
    np.testing.assert_allclose([s.loss for s in progress.epoch_summaries], [s.loss for s in wanted.epoch_summaries], rtol=1e-5)
    np.testing.assert_allclose(loss.parameters[0].value, expected.parameters[0].value, rtol=1e-5)


def test_training_stops_where_the_source_ends(file: str) -> None:
    loss, learner = criterion()
    data = source(file, max_samples=12)
    progress = loss.train(data, minibatch_size=5, parameter_learners=[learner], max_samples=100, streams=(data["x"], data["y"]))
    assert [summary.samples for summary in progress.epoch_summaries] == [12]


def test_the_trainer_takes_a_minibatch(file: str) -> None:
    loss, learner = criterion()
    trainer = C.Trainer(None, loss, learner)
    data = source(file, max_sweeps=2)
    inputs = dict(zip(loss.arguments, (data["x"], data["y"]), strict=True))
    counts = []
    while minibatch := data.next_minibatch(15, inputs):
        trainer.train_minibatch(minibatch)
        counts.append(trainer.previous_minibatch_sample_count)
    assert counts == [15, 15, 10]
    assert learner.total_number_of_sweeps_seen() == 2  # the minibatches know where sweeps end


def test_the_metric_over_a_source(file: str) -> None:
    loss, _ = criterion()
    data = source(file, max_sweeps=1)
    found = loss.test(data, minibatch_size=6, streams=(data["x"], data["y"]))
    assert found.samples == 20
    assert found.metric == pytest.approx(float((Y**2).mean()), rel=1e-5)


def test_sources_that_users_write_train_too() -> None:
    loss, learner = criterion()
    data = MinibatchSourceFromData({"x": X, "y": Y}, max_samples=20)
    progress = loss.train(data, minibatch_size=8, parameter_learners=[learner], max_samples=40, streams=(data["x"], data["y"]))
    assert [summary.samples for summary in progress.epoch_summaries] == [20]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epoch_size": 20, "streams": (1, 2), "model_inputs_to_streams": {}}, "a minibatch source needs streams"),
        ({"streams": (1, 2, 3), "epoch_size": 20}, "one stream for each of"),
        ({"streams": (1, 2)}, "give epoch_size or max_samples"),
    ],
)
def test_what_is_missing(file: str, arguments: dict[str, Any], message: str) -> None:
    loss, learner = criterion()
    with pytest.raises(ValueError, match=message):
        loss.train(source(file), parameter_learners=[learner], **arguments)


def test_a_source_without_end_cannot_be_tested(file: str) -> None:
    loss, _ = criterion()
    data = source(file)
    with pytest.raises(ValueError, match="the minibatch source never ends"):
        loss.test(data, streams=(data["x"], data["y"]))


def test_sequences_and_sparse_labels(tmp_path: Path) -> None:
    """A recurrent network learns on minibatches of ragged sequences, of which each has one label."""
    lines = []
    for i in range(30):
        words = RNG.integers(0, 8, RNG.integers(1, 6)).tolist()
        lines += [f"{i} |word {word}:1{f' |label {words[-1] % 2}:1' if not j else ''}" for j, word in enumerate(words)]
    file = tmp_path / "words.ctf"
    file.write_text("\n".join(lines) + "\n")
    defs = StreamDefs(word=StreamDef(field="word", shape=8, is_sparse=True), label=StreamDef(field="label", shape=2, is_sparse=True))
    data = MinibatchSource(CTFDeserializer(str(file), defs))
    word, label = C.sequence.input_variable(8, is_sparse=True), C.input_variable(2, is_sparse=True)
    model = C.layers.Sequential([C.layers.Embedding(4), C.layers.Fold(C.layers.RNNStep(8)), C.layers.Dense(2)])(word)
    loss = C.combine([C.cross_entropy_with_softmax(model, label), C.classification_error(model, label)])
    trainer = C.Trainer(model, (loss.outputs[0], loss.outputs[1]), C.adam(model.parameters, 0.1, 0.9, minibatch_size=C.learners.IGNORE))
    for _ in range(60):
        assert trainer.train_minibatch(data.next_minibatch(40, {word: data["word"], label: data["label"]}))
    assert trainer.previous_minibatch_evaluation_average == 0
