"""How words are pronounced: from letters to phonemes, sequence to sequence with attention.

    python examples/pronunciation.py FILE    the file is cmudict-0.7b.train-dev-1-21.ctf

Prints the loss as it falls, and how the network pronounces words that it was not trained on.  The file is in CNTK's text format, each
sequence between the symbols <s> and </s>: letters in stream S0, phonemes in stream S1, both of one alphabet.

Source: D. Bahdanau, K. Cho, Y. Bengio, "Neural machine translation by jointly learning to align and translate", ICLR 2015.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import cntk as C

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
PHONEMES = """
    AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH
"""
ALPHABET = ["'", "</s>", "<s/>", "<s>", *LETTERS, *PHONEMES.split()]
SYMBOLS = len(ALPHABET)
START, END = ALPHABET.index("<s>"), ALPHABET.index("</s>")
LAYERS, HIDDEN, ATTENTION = 2, 128, 128
MINIBATCH = 500
"""Letters that a minibatch holds at most."""

START_ROW = np.eye(SYMBOLS, dtype=np.float32)[START]


class Words(NamedTuple):
    """One-hot letters and phonemes of each word, ``(length, SYMBOLS)``, between <s> and </s>."""

    letters: list[Any]
    phonemes: list[Any]


def load(path: Path) -> tuple[Words, Words]:
    """Words to train on, and every tenth word apart from these."""
    fields = {"letters": "S0", "phonemes": "S1"}
    streams = C.io.StreamDefs(**{name: C.io.StreamDef(field=field, shape=SYMBOLS, is_sparse=True) for name, field in fields.items()})
    source = C.io.MinibatchSource(C.io.CTFDeserializer(str(path), streams), randomize=False, max_sweeps=1)
    every = source.next_minibatch(C.io.INFINITELY_REPEAT)
    symbol = C.sequence.input_variable(SYMBOLS, is_sparse=True)
    letters, phonemes = (every[source.streams[name]].as_sequences(symbol) for name in fields)
    held_out = Words(letters[::10], phonemes[::10])
    return Words(*([word for i, word in enumerate(stream) if i % 10] for stream in (letters, phonemes))), held_out


def minibatches(lengths: Sequence[int], size: int, seed: int) -> Iterator[list[int]]:
    """Numbers of the sequences of one minibatch after another, without end, in a new order in each sweep through the data.

    Args:
        lengths: number of samples of each sequence.
        size: samples that a minibatch holds at most; a sequence that is longer makes a minibatch of its own.
        seed: chooses the orders.
    """
    random = np.random.RandomState(seed)
    chosen: list[int] = []
    room = size
    while True:
        for number in random.permutation(len(lengths)):
            if chosen and lengths[number] > room:
                yield chosen
                chosen, room = [], size
            chosen.append(number)
            room -= lengths[number]


def create_model() -> Any:
    """The network: a function of the phonemes before and the letters, to scores of the next phoneme."""
    layers = C.layers
    with C.layers.default_options(enable_self_stabilization=True):
        encode = layers.Sequential(
            [layers.Stabilizer(), layers.For(range(LAYERS), lambda: layers.Recurrence(layers.LSTM(HIDDEN), go_backwards=True))]
        )
        stabilize_input, stabilize_output = layers.Stabilizer(), layers.Stabilizer()
        cells = [layers.LSTM(HIDDEN) for _ in range(LAYERS)]
        attend = layers.AttentionModel(ATTENTION)
        score = layers.Dense(SYMBOLS)

    @C.Function
    def decode(history: Any, letters: Any) -> Any:
        encoded = encode(letters)

        @C.Function
        def attending_cell(state: Any, cell: Any, symbol: Any) -> Any:
            return cells[0](state, cell, C.splice(symbol, attend(encoded, state)))

        values = layers.Recurrence(attending_cell)(stabilize_input(history))
        for cell in cells[1:]:
            values = layers.Recurrence(cell)(values)
        return score(stabilize_output(values))

    return decode


def create_criterion(model: Any, letters: Any, phonemes: Any) -> Any:
    """Loss and error where the network is told the right phonemes before each one."""
    following = C.sequence.slice(phonemes, 1, 0)
    before = C.layers.Delay(initial_state=C.constant(START_ROW))(following)
    scores = model(before, letters)
    return C.combine([C.cross_entropy_with_softmax(scores, following), C.classification_error(scores, following)])


def create_speaker(model: Any) -> Any:
    """The network put to use: it is told its own likeliest phonemes, and stops after </s>."""

    @C.Function
    @C.layers.Signature(C.layers.Sequence[C.layers.Tensor[SYMBOLS]])
    def speak(letters):
        unfold = C.layers.UnfoldFrom(
            lambda history: C.hardmax(model(history, letters)), until_predicate=lambda symbol: symbol[..., END], length_increase=1.5
        )
        return unfold(C.constant(START_ROW), letters)

    return speak


def spelled(rows: Any) -> str:
    """The symbols of one-hot rows, without those that stand for start and end."""
    return " ".join(ALPHABET[symbol] for symbol in np.asarray(rows).argmax(axis=1) if symbol not in (START, END))


def main(arguments: Sequence[str] | None = None) -> float:
    """Run the example; return the mean loss of the last 50 minibatches."""
    parser = argparse.ArgumentParser(description="Learn how words are pronounced.")
    parser.add_argument("data", type=Path, help="the file")
    parser.add_argument("--minibatches", type=int, default=1500)
    parser.add_argument("--words", type=int, default=8, help="words that are pronounced at the end")
    options = parser.parse_args(arguments)

    C.cntk_py.set_fixed_random_seed(1)
    training, held_out = load(options.data)
    letters = C.sequence.input_variable(SYMBOLS, name="letters")
    phonemes = C.sequence.input_variable(SYMBOLS, sequence_axis=C.Axis("phonemes"), name="phonemes")
    model = create_model()
    criterion = create_criterion(model, letters, phonemes)
    learner = C.fsadagrad(
        criterion.parameters,
        C.learning_parameter_schedule_per_sample(0.005),
        C.momentum_schedule(0.9),
        gradient_clipping_threshold_per_sample=2.3,
        gradient_clipping_with_truncation=True,
    )
    trainer = C.Trainer(None, criterion, [learner])

    losses = []
    for number, chosen in enumerate(minibatches([word.shape[0] for word in training.letters], MINIBATCH, seed=1), 1):
        rows = ([stream[i].toarray() for i in chosen] for stream in training)
        trainer.train_minibatch(dict(zip((letters, phonemes), rows, strict=True)))
        losses.append(trainer.previous_minibatch_loss_average)
        if number % 50 == 0:
            print(f"{number} minibatches: loss of the last 50 {np.mean(losses[-50:]):.4f}")
        if number == options.minibatches:
            break

    speaker = create_speaker(model)
    for word in held_out.letters[:: len(held_out.letters) // options.words][: options.words]:
        print(spelled(word.toarray()).replace(" ", ""), "-", spelled(speaker.eval([word.toarray()])[0]))
    return float(np.mean(losses[-50:]))


if __name__ == "__main__":
    main()
