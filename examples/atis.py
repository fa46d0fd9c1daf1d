"""Understanding what travellers ask: label each word of a query with the role it plays, such as the city a flight leaves from.

    python examples/atis.py FOLDER    the folder holds atis.train.ctf and atis.test.ctf

Prints the share of wrong labels after each pass: about 5 % after four.  The learning rate is as high as the first minibatches can do
with; where initial values are unlucky, --rate 0.02 is safer.

The queries are those of the Air Travel Information System (ATIS), in CNTK's text format: words in stream S0, labels in stream S2.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cntk as C

WORDS, LABELS = 943, 129
EMBEDDING, HIDDEN = 150, 300
MINIBATCH = 500
"""Words that a minibatch holds at most."""


def reader(path: Path, **options: Any) -> Any:
    """A source of queries: streams ``words`` and ``labels``, one-hot."""
    streams = C.io.StreamDefs(
        words=C.io.StreamDef(field="S0", shape=WORDS, is_sparse=True), labels=C.io.StreamDef(field="S2", shape=LABELS, is_sparse=True)
    )
    return C.io.MinibatchSource(C.io.CTFDeserializer(str(path), streams), **options)


def create_model() -> Any:
    """The network: a vector for each word, an LSTM along the query, scores of all labels for each word."""
    return C.layers.Sequential(
        [
            C.layers.Embedding(EMBEDDING),
            C.layers.Recurrence(C.layers.LSTM(HIDDEN)),
            C.layers.Dense(LABELS),
        ]
    )


def create_trainer(rate: float) -> tuple[Any, tuple[Any, Any]]:
    """A trainer for a new network, and the variables for words and labels."""
    x, y = C.sequence.input_variable(WORDS, is_sparse=True), C.sequence.input_variable(LABELS, is_sparse=True)
    model = create_model()(x)
    criterion = C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)
    schedule = C.learning_parameter_schedule_per_sample(rate)
    learner = C.momentum_sgd(model.parameters, schedule, C.momentum_schedule_per_sample(0.9985))
    return C.Trainer(model, criterion, [learner]), (x, y)


def train(trainer: Any, inputs: tuple[Any, Any], source: Any, count: int) -> tuple[float, float]:
    """Train on at least so many words; return the mean loss and the share of wrong labels meanwhile."""
    x, y = inputs
    seen, loss, wrong = 0, 0.0, 0.0
    while seen < count:
        trainer.train_minibatch(source.next_minibatch(MINIBATCH, {x: source.streams.words, y: source.streams.labels}))
        size = trainer.previous_minibatch_sample_count
        seen += size
        loss += trainer.previous_minibatch_loss_average * size
        wrong += trainer.previous_minibatch_evaluation_average * size
    return loss / seen, wrong / seen


def test(trainer: Any, inputs: tuple[Any, Any], path: Path) -> float:
    """The share of wrong labels."""
    x, y = inputs
    source = reader(path, randomize=False, max_sweeps=1)
    wrong, count = 0.0, 0
    while minibatch := source.next_minibatch(MINIBATCH, {x: source.streams.words, y: source.streams.labels}):
        size = minibatch[x].num_samples
        wrong += trainer.test_minibatch(minibatch) * size
        count += size
    return wrong / count


def main(arguments: Sequence[str] | None = None) -> float:
    """Run the example; return the share of wrong labels in the test set."""
    parser = argparse.ArgumentParser(description="Label the words of travellers' queries.")
    parser.add_argument("data", type=Path, help="folder with atis.train.ctf and atis.test.ctf")
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--words", type=int, default=36000, help="words a pass")
    parser.add_argument("--rate", type=float, default=0.03, help="learning rate a word")
    parser.add_argument("--seed", type=int, default=1, help="chooses the order of the queries")
    options = parser.parse_args(arguments)

    C.cntk_py.set_fixed_random_seed(1)
    source = reader(options.data / "atis.train.ctf", randomization_seed=options.seed)
    trainer, inputs = create_trainer(options.rate)
    for number in range(1, options.passes + 1):
        start = time.perf_counter()
        loss, wrong = train(trainer, inputs, source, options.words)
        speed = options.words / (time.perf_counter() - start)
        error = test(trainer, inputs, options.data / "atis.test.ctf")
        print(f"pass {number}: loss {loss:.4f}, wrong labels {wrong:.2%}, in the test set {error:.2%}; {speed:.0f} words/s")
    return error


if __name__ == "__main__":
    main()
