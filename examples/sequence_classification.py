"""Classifying sequences of words by where an LSTM ends up after the last.

    python examples/sequence_classification.py FILE    the file is sequence-classification.ctf

Prints loss and error of each pass.  The file is in CNTK's text format: words in stream x, the class of each sequence in stream y.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cntk as C

WORDS, CLASSES = 2000, 5
EMBEDDING, HIDDEN = 50, 25
MINIBATCH = 200
"""Words that a minibatch holds at most."""


def create_model() -> Any:
    """The network: a vector for each word, an LSTM, and a dense layer on its last state."""
    return C.layers.Sequential(
        [
            C.layers.Embedding(EMBEDDING),
            C.layers.Recurrence(C.layers.LSTM(HIDDEN, enable_self_stabilization=True)),
            C.sequence.last,
            C.layers.Dense(CLASSES),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Run the example; return loss and error of the last pass."""
    parser = argparse.ArgumentParser(description="Classify sequences of words.")
    parser.add_argument("data", type=Path, help="the file")
    parser.add_argument("--passes", type=int, default=10)
    options = parser.parse_args(arguments)

    C.cntk_py.set_fixed_random_seed(1)
    streams = C.io.StreamDefs(
        words=C.io.StreamDef(field="x", shape=WORDS, is_sparse=True), classes=C.io.StreamDef(field="y", shape=CLASSES)
    )
    source = C.io.MinibatchSource(C.io.CTFDeserializer(str(options.data), streams), randomization_seed=1)

    x, y = C.sequence.input_variable(WORDS, is_sparse=True), C.input_variable(CLASSES)
    model = create_model()(x)
    criterion = C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)
    trainer = C.Trainer(model, criterion, [C.sgd(model.parameters, C.learning_parameter_schedule_per_sample(0.05))])

    for number in range(1, options.passes + 1):
        seen, loss, wrong, is_end = 0, 0.0, 0.0, False
        while not is_end:
            minibatch = source.next_minibatch(MINIBATCH, {x: source.streams.words, y: source.streams.classes})
            is_end = minibatch[x].end_of_sweep
            trainer.train_minibatch(minibatch)
            size = trainer.previous_minibatch_sample_count
            seen += size
            loss += trainer.previous_minibatch_loss_average * size
            wrong += trainer.previous_minibatch_evaluation_average * size
        print(f"pass {number}: loss {loss / seen:.4f}, error {wrong / seen:.2%}")
    return loss / seen, wrong / seen


if __name__ == "__main__":
    main()
