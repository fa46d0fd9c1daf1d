"""One training as long as the time that is given: memory, open files, threads, temporary files and objects stay as many as they were.

Each case goes on with the same training of two networks for some minibatches, and then saves, restores, evaluates, or makes and drops
networks, sources, trainers and writers.  After a third of it, when caches are full, nothing may grow.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from networks import LEARNERS, NETWORKS, Network, trained

import cntk as C
import cntk.layers as L
from cntk.io import MinibatchSource, StreamDef, StreamDefs

SHARE = 3
LIMIT = 120
MINIBATCHES = 20
"""Of each network, in a case."""
EVERY = 3
"""Cases between two looks at what the process holds."""
WARM = 0.35
"""Part of the looks after which nothing may grow."""
FILLED = 20
"""Looks after which caches hold as many objects as they may: some thousand plans of sums, and programs."""
FEWEST = 12
"""Looks from which on growth is told from chance."""
WORDS, CLASSES, SEQUENCES = 2000, 7, 3000
GROWTH = {"memory": 6 * 2**20, "files": 1, "threads": 1, "temporary": 1, "objects": 2000}
"""What the later looks may hold more than the earlier ones; memory is torn into pieces in time."""


class Look(NamedTuple):
    """What the process holds: bytes, open files, threads, temporary files, and objects of Python."""

    memory: int
    files: int
    threads: int
    temporary: int
    objects: int


looks: list[Look] = []


def trial(random: np.random.Generator) -> str:
    """Go on with the training, and do something beside it."""
    training().go_on(MINIBATCHES)
    cases = training().cases
    what = BESIDE[cases] if cases < len(BESIDE) else BESIDE[random.integers(len(BESIDE))]  # what is loaded on first use is loaded early
    with quiet():
        what(random)
    training().cases += 1
    if training().cases % EVERY == 0:
        looks.append(look())
    return what.__name__


def finish() -> str:
    """Nothing has grown."""
    if len(looks) < FEWEST:
        return f"{len(looks)} looks, too few"
    warm = int(len(looks) * WARM)
    counted, full = looks[warm:], looks[max(warm, FILLED) :]
    grown = {name: growth([getattr(one, name) for one in counted]) for name in Look._fields}
    grown["objects"] = growth([one.objects for one in full]) if len(full) >= FEWEST else 0.0
    table = "\n".join(" ".join(f"{name} {number}" for name, number in one._asdict().items()) for one in looks[:: max(len(looks) // 20, 1)])
    wrong = [f"{name} by {grown[name]:.0f}" for name in Look._fields if grown[name] > GROWTH[name]]
    assert not wrong, f"grown in {len(counted)} looks: {', '.join(wrong)}\n{table}"
    print(f"{training().minibatches} minibatches, {training().sweeps} sweeps\n{table}", file=sys.stderr)
    return f"{training().minibatches} minibatches; grown by {', '.join(f'{name} {grown[name]:.0f}' for name in Look._fields)}"


def growth(numbers: list[int]) -> float:
    """How much more there is at the end than at the beginning: the median slope between two looks (Theil and Sen), times their number.

    A single look that has caught something in the midst changes nothing.
    """
    values = np.array(numbers, np.float64)
    first, second = np.triu_indices(len(values), 1)
    return float(np.median((values[second] - values[first]) / (second - first))) * (len(values) - 1)


def look() -> Look:
    """What the process holds now, garbage aside."""
    gc.collect()
    memory = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    temporary = sum(len(files) for _, _, files in os.walk(tempfile.gettempdir()))
    return Look(memory, len(os.listdir("/proc/self/fd")), threading.active_count(), temporary, len(gc.get_objects()))


class Training:
    """Two networks, trained on a text in random order, with all writers that need nothing else, and checkpoints."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="training-"))
        self.cases = self.minibatches = self.sweeps = 0
        self.text = self.folder / "text.ctf"
        write_text(self.text)
        x, y = C.sequence.input_variable(WORDS, is_sparse=True), C.input_variable(CLASSES)
        hidden = L.Embedding(40)(x)
        both = C.splice(L.Fold(L.LSTM(48))(hidden), L.Fold(L.GRU(32), go_backwards=True)(hidden))
        model = L.Dense(CLASSES)(L.Dropout(0.2)(both))
        loss = C.cross_entropy_with_softmax(model, y)
        self.writers = [
            C.logging.ProgressPrinter(50, log_to_file=str(self.folder / "log")),
            C.logging.TensorBoardProgressWriter(200, str(self.folder / "events"), model=model),
        ]
        rate = C.learning_parameter_schedule([0.01, 0.003, 0.001], epoch_size=SEQUENCES)
        learner = C.adam(model.parameters, rate, 0.9, gradient_clipping_threshold_per_sample=2.0)
        self.trainer = C.Trainer(model, (loss, C.classification_error(model, y)), [learner], self.writers)
        self.source = source(self.text)
        self.streams = {x: self.source.streams.x, y: self.source.streams.y}
        self.images = NETWORKS["images"]()
        self.other = C.Trainer(self.images.model, (self.images.loss, None), [LEARNERS["momentum"](self.images.model.parameters)])
        self.random = np.random.default_rng(1)

    def go_on(self, minibatches: int) -> None:
        """Train both for some minibatches of all sizes."""
        with quiet():
            for _ in range(minibatches):
                data = self.source.next_minibatch(int(self.random.integers(20, 400)), self.streams)
                self.trainer.train_minibatch(data)
                self.other.train_minibatch(self.images.feed(self.random, int(self.random.integers(4, 120))))
                self.minibatches += 1
                assert np.isfinite(self.trainer.previous_minibatch_loss_average)
                if any(one.end_of_sweep for one in data.values()):
                    self.sweeps += 1
                    self.trainer.summarize_training_progress()


@cache
def training() -> Training:
    """The training that all cases go on with."""
    return Training()


@contextmanager
def quiet() -> Iterator[None]:
    """What is printed is not shown."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        yield


def write_text(path: Path) -> None:
    """Sentences of sparse words, each with a class."""
    random = np.random.default_rng(3)
    with path.open("w", encoding="ascii") as file:
        for number, length in enumerate(random.integers(1, 40, SEQUENCES)):
            words = random.integers(WORDS, size=length)
            file.write(f"{number} |x {words[0]}:1 |y {words[0] % CLASSES}:1\n")
            file.writelines(f"{number} |x {word}:1\n" for word in words[1:])


def source(path: Path) -> MinibatchSource:
    """A source of a text, in random order."""
    streams = StreamDefs(x=StreamDef("x", WORDS, is_sparse=True), y=StreamDef("y", CLASSES, is_sparse=True))
    return MinibatchSource(C.io.CTFDeserializer(str(path), streams), randomization_window_in_chunks=4)


# ---- what is done beside it ----------------------------------------------------------------------


def save_and_restore(random: np.random.Generator) -> None:
    """Save a checkpoint, train on, and go back."""
    path = str(training().folder / "checkpoint")
    training().trainer.save_checkpoint(path, {"source": training().source.get_checkpoint_state()})
    training().go_on(3)
    training().source.restore_from_checkpoint(training().trainer.restore_from_checkpoint(path)["source"])


def evaluate(random: np.random.Generator) -> None:
    """Evaluate and test both networks, in sizes that have not been there before."""
    state = training()
    state.images.model.eval({state.images.model.arguments[0]: np.zeros((int(random.integers(1, 60)), 3, 20, 20), np.float32)})
    data = state.source.next_minibatch(int(random.integers(1, 500)), state.streams)
    state.trainer.test_minibatch(data)
    state.trainer.summarize_test_progress()


def drop_a_training(random: np.random.Generator) -> None:
    """Make a network, train it and drop it."""
    trained(
        NETWORKS[random.choice([*NETWORKS])](), str(random.choice([*LEARNERS])), int(random.integers(99)), 2, int(random.integers(1, 80))
    )


def drop_a_source(random: np.random.Generator) -> None:
    """Read a little with a source of its own, whose threads read ahead, and drop it."""
    other = source(training().text)
    for _ in range(int(random.integers(1, 30))):
        other.next_minibatch(int(random.integers(1, 200)))


def drop_a_session(random: np.random.Generator) -> None:
    """A session with checkpoints, cross validation and a writer of its own."""
    network: Network = NETWORKS["vectors"]()
    fed = network.feed(random, 200)
    writer = C.logging.ProgressPrinter(10)
    with tempfile.TemporaryDirectory() as folder:
        network.loss.train(
            tuple(fed[argument] for argument in network.loss.arguments),
            minibatch_size=int(random.integers(10, 60)), max_epochs=2,
            parameter_learners=[LEARNERS["sgd"](network.loss.parameters)], callbacks=[
                writer, C.CheckpointConfig(os.path.join(folder, "checkpoint"), 100, preserve_all=True),
            ],
        )  # fmt: skip


def drop_copies(random: np.random.Generator) -> None:
    """Clone, save and load; the copies are evaluated and dropped."""
    model = training().images.model
    path = training().folder / "copy"
    for copy in (model.clone("clone"), model.clone("freeze"), (model.save(str(path)), C.load_model(str(path)))[1]):
        copy.eval({copy.arguments[0]: np.zeros((int(random.integers(1, 40)), 3, 20, 20), np.float32)})


def fail(random: np.random.Generator) -> None:
    """Errors in the midst: wrong data, a network that cannot be, a file that is no model."""
    state = training()
    for wrong in (
        lambda: state.images.model.eval({state.images.model.arguments[0]: np.zeros((2, 3, 4), np.float32)}),
        lambda: C.times(C.input_variable(3), C.parameter((4, 5))),
        lambda: C.load_model(str(state.text)),
        lambda: source(state.folder / "no such file"),
    ):
        with suppress(ValueError, RuntimeError, OSError):
            wrong()
            raise AssertionError("what is wrong was taken")


def measure(random: np.random.Generator) -> None:
    """A profile of some minibatches."""
    with tempfile.TemporaryDirectory() as folder:
        C.debugging.start_profiler(folder)
        try:
            training().go_on(2)
        finally:
            C.debugging.stop_profiler()


def wait(random: np.random.Generator) -> None:
    """Leave the threads without work for a while."""
    time.sleep(0.2)


BESIDE = (save_and_restore, evaluate, drop_a_training, drop_a_source, drop_a_session, drop_copies, fail, measure, wait)
