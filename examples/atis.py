"""Understanding what travellers ask: label each word of a query with the role it plays, such as the city a flight leaves from.

    python examples/atis.py FOLDER    the folder holds atis.train.ctf and atis.test.ctf

Prints the share of wrong labels after each pass.  The learning rate is as high as the first minibatches can do with: after four passes
3 to 6 % of the labels are wrong, with some seeds more; --rate 0.02 gives 4 to 6 % with all that were tried.

The queries are those of the Air Travel Information System (ATIS), in CNTK's text format: words in stream S0, labels in stream S2.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ctf import minibatches, read_ctf

import cntk as C

WORDS, LABELS = 943, 129
EMBEDDING, HIDDEN = 150, 300
MINIBATCH = 500
"""Words that a minibatch holds at most."""


class Queries(NamedTuple):
    """One-hot words and labels of each query, ``(words, WORDS)`` and ``(words, LABELS)``."""

    words: list[Any]
    labels: list[Any]


def load(path: Path) -> Queries:
    """Read queries from a file."""
    streams = read_ctf(path, S0=WORDS, S2=LABELS)
    return Queries(streams["S0"], streams["S2"])


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


def batches(queries: Queries, seed: int) -> Iterator[tuple[int, list[Any], list[Any]]]:
    """Number of words, words and labels of one minibatch after another."""
    lengths = [words.shape[0] for words in queries.words]
    for chosen in minibatches(lengths, MINIBATCH, seed):
        yield sum(lengths[i] for i in chosen), [queries.words[i] for i in chosen], [queries.labels[i] for i in chosen]


def train(trainer: Any, inputs: tuple[Any, Any], data: Iterator[tuple[int, list[Any], list[Any]]], count: int) -> tuple[float, float]:
    """Train on at least so many words; return the mean loss and the share of wrong labels meanwhile."""
    seen, loss, wrong = 0, 0.0, 0.0
    while seen < count:
        size, words, labels = next(data)
        trainer.train_minibatch(dict(zip(inputs, (words, labels), strict=True)))
        seen += size
        loss += trainer.previous_minibatch_loss_average * size
        wrong += trainer.previous_minibatch_evaluation_average * size
    return loss / seen, wrong / seen


def test(trainer: Any, inputs: tuple[Any, Any], queries: Queries) -> float:
    """The share of wrong labels."""
    wrong, count = 0.0, sum(words.shape[0] for words in queries.words)
    for start in range(0, len(queries.words), 64):
        part = [stream[start : start + 64] for stream in queries]
        wrong += trainer.test_minibatch(dict(zip(inputs, part, strict=True))) * sum(words.shape[0] for words in part[0])
    return wrong / count


def main(arguments: Sequence[str] | None = None) -> float:
    """Run the example; return the share of wrong labels in the test set."""
    parser = argparse.ArgumentParser(description="Label the words of travellers' queries.")
    parser.add_argument("data", type=Path, help="folder with atis.train.ctf and atis.test.ctf")
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--words", type=int, default=36000, help="words a pass")
    parser.add_argument("--rate", type=float, default=0.03, help="learning rate a word")
    parser.add_argument("--seed", type=int, default=3, help="chooses initial values and the order of the queries")
    options = parser.parse_args(arguments)

    C.cntk_py.set_fixed_random_seed(options.seed)
    training, held_out = (load(options.data / f"atis.{part}.ctf") for part in ("train", "test"))
    trainer, inputs = create_trainer(options.rate)
    data = batches(training, options.seed)
    for number in range(1, options.passes + 1):
        start = time.perf_counter()
        loss, wrong = train(trainer, inputs, data, options.words)
        speed = options.words / (time.perf_counter() - start)
        error = test(trainer, inputs, held_out)
        print(f"pass {number}: loss {loss:.4f}, wrong labels {wrong:.2%}, in the test set {error:.2%}; {speed:.0f} words/s")
    return error


if __name__ == "__main__":
    main()
