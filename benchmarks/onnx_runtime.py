"""Inference beside ONNX Runtime, on a quiet machine and on a busy one: ``eval``, a bound function, and the ONNX file in ONNX Runtime.

    python benchmarks/onnx_runtime.py [--rounds 5] [--only "dense, 1"] [--busy 2] [--threads 2]

Each measurement is taken in a process of its own, in turns, so that whatever else the machine does strikes all alike; the table tells
medians over rounds of the fastest tenth of the calls.  All ways get the same number of threads.  With ``--busy N`` so many processes
that never wait for anything run beside it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import embedding as words
import gru as wide_gru
import numpy as np
import onnxruntime
import resnet50
import wide_transformer
from convolution import SIDE, cntk_model
from resnet50_inference import set_statistics
from transformer import cntk_model as encoder_model
from worker import WARM_UP, timed

import cntk as C

EXACT = 1e-4
WAYS = ("eval", "bound", "onnxruntime")
WORDS, LABELS, UNITS, STEPS = 50, 20, 150, 20


class Row(NamedTuple):
    """A network, the shape of what it is given, and how many words that is numbers of, 0 where it is anything else."""

    build: Callable[[], Any]
    shape: tuple[int, ...]
    vocabulary: int = 0

    def data(self, seed: int) -> Any:
        """What it is given."""
        drawn = np.random.default_rng(seed).random(self.shape, np.float32)
        return np.floor(drawn * self.vocabulary) if self.vocabulary else drawn


def dense() -> Any:
    hidden = C.layers.For(range(2), lambda: C.layers.Dense(400, activation=C.relu))
    return C.layers.Sequential([hidden, C.layers.Dense(10)])(C.input_variable(784, name="x"))


def convolution() -> Any:
    return cntk_model(C.input_variable((SIDE, SIDE), name="x"))


def tagger() -> Any:
    return C.layers.Sequential([C.layers.Recurrence(C.layers.LSTM(UNITS)), C.layers.Dense(LABELS)])(
        C.sequence.input_variable(WORDS, name="x")
    )


def residual() -> Any:
    model = resnet50.cntk_model(C.input_variable((3, resnet50.SIDE, resnet50.SIDE), name="x"))
    set_statistics(model)
    return model


def encoder() -> Any:
    shape = wide_transformer.SHAPE
    return encoder_model(C.input_variable((shape.steps, shape.width), name="x"), shape)


def gru() -> Any:
    return wide_gru.cntk_model(C.sequence.input_variable(wide_gru.INPUTS, name="x"))


def embedding() -> Any:
    """Numbers of words, of which the vectors are looked up and added."""
    vectors = C.parameter((words.VOCABULARY, words.EMBEDDING), init=C.glorot_uniform())
    numbers = C.input_variable(STEPS, name="x")
    return C.layers.Dense(words.CLASSES)(C.reduce_sum(C.gather(vectors, numbers), axis=0))


ROWS = {
    "dense, 1": Row(dense, (1, 784)),
    "dense, 256": Row(dense, (256, 784)),
    "convolution, 1": Row(convolution, (1, SIDE, SIDE)),
    "convolution, 256": Row(convolution, (256, SIDE, SIDE)),
    "LSTM, 1 x 20": Row(tagger, (1, STEPS, WORDS)),
    "LSTM, 32 x 20": Row(tagger, (32, STEPS, WORDS)),
    "ResNet-50, 1": Row(residual, (1, 3, resnet50.SIDE, resnet50.SIDE)),
    "ResNet-50, 16": Row(residual, (16, 3, resnet50.SIDE, resnet50.SIDE)),
    "Transformer, 1": Row(encoder, (1, *wide_transformer.SHAPE[:2])),
    "Transformer, 8": Row(encoder, (8, *wide_transformer.SHAPE[:2])),
    "GRU, 1 x 20": Row(gru, (1, STEPS, wide_gru.INPUTS)),
    "GRU, 32 x 20": Row(gru, (32, STEPS, wide_gru.INPUTS)),
    "embedding, 1 x 20": Row(embedding, (1, STEPS), words.VOCABULARY),
    "embedding, 32 x 20": Row(embedding, (32, STEPS), words.VOCABULARY),
}


def call(row: Row, way: str, threads: int) -> Callable[[Any], Any]:
    """What computes the row's network in one of the ways."""
    os.environ["CNTK_WAIT_FOR_LOOPS"] = "1"
    C.device.set_threads(threads)
    function = row.build()
    if way == "eval":
        return lambda data: function.eval({function.arguments[0]: data})
    if way == "bound":
        return function.bind(row.shape)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model.onnx"))
        function.save(path, "onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds: dict[str, Any] = {}
    for wanted in session.get_inputs():  # the lengths of sequences, beside the data
        feeds[wanted.name] = np.full(row.shape[:1], STEPS, np.int64)

    def run(data: Any) -> Any:
        feeds["x"] = data
        return session.run(None, feeds)[0]

    compare(run, function, row)
    return run


def compare(run: Callable[[Any], Any], function: Any, row: Row) -> None:
    """See that ONNX Runtime computes what the function does."""
    data = row.data(1)
    ours = np.array(function.eval({function.arguments[0]: data}))
    np.testing.assert_allclose(run(data).reshape(ours.shape), ours, rtol=EXACT, atol=EXACT)


def measure(name: str, way: str, threads: int) -> None:
    """Print seconds of the fastest tenth of calls, and the median."""
    row = ROWS[name]
    run = call(row, way, threads)
    data = [(row.data(i),) for i in range(4)]
    minibatches = (data[i % 4] for i in iter(int, 1))
    timed(run, minibatches, WARM_UP)
    print(*np.percentile(timed(run, minibatches, 1.0), [10, 50]))


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that never wait."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Inference beside ONNX Runtime.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--busy", type=int, default=0, help="processes beside it that never wait")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--measure", nargs=2, metavar=("ROW", "WAY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(*options.measure, options.threads)
        return
    print(f"ms a call, fastest tenth / median; {options.threads} threads; {options.busy} busy processes")
    print(f"{'row':18}" + "".join(f"{way:>22}" for way in WAYS) + "   ONNX Runtime's over the bound function's")
    with busy(options.busy):
        for name in options.only:
            found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
            for _ in range(options.rounds):
                for way in WAYS:
                    command = [sys.executable, __file__, "--threads", str(options.threads), "--measure", name, way]
                    done = subprocess.run(command, capture_output=True, text=True, check=True)
                    found[way].append([float(number) for number in done.stdout.split()])
            medians = {way: [1e3 * statistics.median(column) for column in zip(*found[way], strict=True)] for way in WAYS}
            shown = "".join(f"{medians[way][0]:13.3f} /{medians[way][1]:7.3f}" for way in WAYS)
            print(f"{name:18}{shown}   {medians['onnxruntime'][0] / medians['bound'][0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
