"""Whole networks on sequences as ONNX models: taggers, classifiers, attention, convolution along sequences."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ragged_models import LENGTHS, agree, operators, samples, sequences

import cntk as C
from cntk import sequence as S
from cntk.layers import (
    GRU,
    LSTM,
    AttentionModel,
    BatchNormalization,
    Convolution,
    Delay,
    Dense,
    Dropout,
    Embedding,
    Fold,
    For,
    LayerNormalization,
    Recurrence,
    RecurrenceFrom,
    RNNStep,
    Sequential,
    SequentialConvolution,
    Stabilizer,
    UnfoldFrom,
)

WORDS = 7


def _bidirectional(step: Any, size: int) -> Any:
    return Sequential([(Recurrence(step(size)), Recurrence(step(size), go_backwards=True)), C.splice])


def _attention() -> Any:
    """A decoder whose steps look at all steps of the encoder."""
    encode, attend, step = Sequential([Dense(4), _bidirectional(GRU, 3)]), AttentionModel(5, name="attention"), GRU(4)
    first, out = Dense(4), Sequential([Stabilizer(), Dense(WORDS)])

    @C.Function
    def network(encoder: Any, decoder: Any) -> Any:
        states = encode(encoder)

        @C.Function
        def attending(h: Any, x: Any) -> Any:
            return step(h, C.splice(x, attend(states, h)))

        return out(RecurrenceFrom(attending)(first(S.last(states)), decoder))

    return network


DENSE: dict[str, Any] = {
    "tagger": Sequential([Embedding(4), Recurrence(LSTM(5)), Dense(3, activation=C.softmax)]),
    "classifier": Sequential([Embedding(4), Stabilizer(), Fold(LSTM(5)), Dropout(0.3), Dense(3)]),
    "stacked": Sequential(
        [Embedding(4), For(range(2), lambda: Sequential([Stabilizer(), Recurrence(LSTM(5, enable_self_stabilization=True))])), Dense(3)]
    ),
    "bidirectional": Sequential([Embedding(4), BatchNormalization(), _bidirectional(GRU, 3), LayerNormalization(), Dense(3)]),
    "bidirectional, deep": Sequential([Dense(4), _bidirectional(LSTM, 3), _bidirectional(RNNStep, 2), Dense(3)]),
    "convolution": Sequential([Embedding(4), Convolution(3, 5, sequential=True, pad=True, activation=C.relu), Dense(3)]),
    "convolution of other lengths": Sequential([Embedding(4), SequentialConvolution(2, 5, strides=2, pad=True), Recurrence(GRU(4))]),
    "convolution, folded": Sequential([Embedding(4), SequentialConvolution(3, 5, pad=True), C.relu, S.reduce_max, Dense(3)]),
    "language model": Sequential([Delay(1), Embedding(4), Recurrence(LSTM(5)), Dense(WORDS), C.log_softmax]),
    "neighbours": Sequential([Embedding(4), tuple(Delay(T) for T in (-2, -1, 0, 1, 2)), C.splice, Dense(3)]),
}
"""Networks on sequences of words."""


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", DENSE)
def test_networks(name: str, count: int) -> None:
    x = C.sequence.input_variable(WORDS, name="x")
    lengths = LENGTHS[:count]
    agree(DENSE[name](x), {x: sequences(WORDS, lengths)})
    agree(DENSE[name](x), {x: sequences(WORDS, (1,))})


@pytest.mark.parametrize("sparse", ["dense", "indices"])
@pytest.mark.parametrize("name", DENSE)
def test_networks_on_one_hot_words(name: str, sparse: str) -> None:
    x = C.sequence.input_variable(WORDS, is_sparse=True, name="x")
    numbers = [np.array(one, np.int64) for one in ([3, 0, 6, 3], [5], [1, 2, 1])]
    eye = np.eye(WORDS, dtype=np.float32)
    given = numbers if sparse == "indices" else [eye[one] for one in numbers]
    agree(DENSE[name](x), {x: given}, {x: C.Value.one_hot([one.tolist() for one in numbers], WORDS)}, sparse=sparse)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("name", ["tagger", "bidirectional, deep", "language model"])
def test_element_types(name: str, dtype: Any) -> None:
    with C.default_options(dtype=dtype):
        layers = {
            "tagger": lambda: Sequential([Embedding(4), Recurrence(LSTM(5)), Dense(3, activation=C.softmax)]),
            "bidirectional, deep": lambda: Sequential([Dense(4), _bidirectional(LSTM, 3), _bidirectional(RNNStep, 2), Dense(3)]),
            "language model": lambda: Sequential([Delay(1), Embedding(4), Fold(GRU(5)), Dense(WORDS), C.log_softmax]),
        }[name]()
        x = C.sequence.input_variable(WORDS, dtype=dtype, name="x")
        agree(layers(x), {x: sequences(WORDS, dtype=dtype)})


@pytest.mark.parametrize("lengths", [LENGTHS, (1,), (2, 5, 1)], ids=str)
def test_attention(lengths: Any) -> None:
    encoder = C.sequence.input_variable(WORDS, sequence_axis=C.Axis("source"), name="encoder")
    decoder = C.sequence.input_variable(WORDS, name="decoder")
    function = _attention()(encoder, decoder)
    feeds = {encoder: sequences(WORDS, [6 - one for one in lengths]), decoder: sequences(WORDS, lengths)}
    agree(function, feeds)
    agree(function, feeds, behind=2)


def test_attention_over_given_states() -> None:
    encoder = C.sequence.input_variable(3, sequence_axis=C.Axis("source"), name="encoder")
    decoder = C.sequence.input_variable(4, name="decoder")
    agree(AttentionModel(5)(encoder, decoder), {encoder: sequences(3, (2, 5, 1)), decoder: sequences(4)}, behind=3)


def test_generation_from_a_thought_vector() -> None:
    source = C.sequence.input_variable(WORDS, sequence_axis=C.Axis("source"), name="source")
    like = C.sequence.input_variable(WORDS, name="like")
    thought = Fold(GRU(4))(source)
    step, out = GRU(4), Dense(WORDS)

    @C.Function
    def generator(h: Any, word: Any) -> Any:
        state = step(h, word)
        return C.hardmax(out(state)), state, C.softmax(out(state))

    function = UnfoldFrom(generator)(thought, C.constant(np.eye(WORDS, dtype=np.float32)[0]), like)
    agree(function, {source: sequences(WORDS, (2, 3, 1)), like: sequences(WORDS)})


def test_slots_and_intent() -> None:
    words = C.sequence.input_variable(WORDS, name="words")
    states = _bidirectional(LSTM, 4)(Embedding(5)(words))
    slots = Dense(6, name="slots")(states)
    intent = Dense(3, name="intent")(C.splice(S.first(states), S.last(states)))
    agree(C.combine([slots.output, intent.output]), {words: sequences(WORDS)})


def test_values_of_samples_go_along_sequences() -> None:
    x, speaker = C.sequence.input_variable(3, name="x"), C.input_variable(2, name="speaker")
    function = Sequential([Recurrence(GRU(4)), Dense(2)])(C.splice(x, S.broadcast_as(Dense(3)(speaker), x))) * speaker
    agree(function, {x: sequences(3), speaker: samples(2)})


def _one_hot(size: int, lengths: Any) -> list[Any]:
    return [np.eye(size, dtype=np.float32)[np.random.default_rng(steps).integers(0, size, steps)] for steps in lengths]


@pytest.fixture
def examples(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a program of the folder of examples."""
    monkeypatch.syspath_prepend(root / "examples")
    return importlib.import_module


@pytest.mark.parametrize("lengths", [(3, 6, 2), (1,)], ids=str)
def test_pronunciation(lengths: Any, examples: Any) -> None:
    """Sequence to sequence with attention; and what it says, where each symbol is its operand of the next step, up to the last one."""
    program = examples("pronunciation")
    size, network = program.SYMBOLS, program.create_model()
    letters = C.sequence.input_variable(size, sequence_axis=C.Axis("letters"), name="letters")
    before = C.sequence.input_variable(size, name="before")
    model = agree(network(before, letters), {letters: _one_hot(size, lengths), before: _one_hot(size, [7 - n for n in lengths])}, behind=1)
    assert [one for one in operators(model) if one in ("LSTM", "Scan")] == ["LSTM", "LSTM", "Scan", "LSTM"]
    spelled = C.sequence.input_variable(size, name="spelled")
    agree(program.create_speaker(network)(spelled), {spelled: _one_hot(size, lengths)}, behind=1)


def test_slots_of_queries(examples: Any) -> None:
    program = examples("atis")
    words = C.sequence.input_variable(program.WORDS, name="words")
    agree(program.create_model()(words), {words: _one_hot(program.WORDS, LENGTHS)})


def test_classes_of_sequences(examples: Any) -> None:
    program = examples("sequence_classification")
    x = C.sequence.input_variable(50, name="x")
    agree(program.create_model()(x), {x: _one_hot(50, LENGTHS)})
