"""Clocks that jump hours and years back and forth while networks train and files are written: nothing is measured by them or decided."""

from __future__ import annotations

import io
import itertools
import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import cntk as C
from cntk.core.common.thresholds import overridden
from cntk.io import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs

SAMPLES = 300
JUMPS = (0, 1e-6, 1, -1, 3600, -3600, -7200, 86400, -86400, 3e7, -3e7)
CLOCKS = ("time", "time_ns", "localtime", "gmtime", "strftime", "ctime")


def trial(random: np.random.Generator) -> str:
    """Do one thing while the clock jumps, as it is done where the clock goes on."""
    what = TRIED[random.integers(len(TRIED))]
    with tempfile.TemporaryDirectory() as folder, jumping(random):
        what(random, Path(folder))
    return what.__name__


@contextmanager
def jumping(random: np.random.Generator) -> Iterator[None]:
    """Whoever asks what time of day it is, gets another answer each time.  Clocks that measure go on."""
    real = {name: getattr(time, name) for name in CLOCKS}
    off = [0.0]

    def now() -> float:
        off[0] += float(random.choice(JUMPS))
        return max(real["time"]() + off[0], 0.0)

    def at(name: str) -> Any:
        return lambda *moment: real[name](*(moment or (now(),)))

    false = {"time": now, "time_ns": lambda: int(now() * 1e9), **{name: at(name) for name in ("localtime", "gmtime", "ctime")}}
    false["strftime"] = lambda form, moment=None: real["strftime"](form, moment or real["localtime"](now()))
    with mock.patch.multiple(time, **false):
        yield


def small_training(writers: list[Any], more: Callable[[Any], list[Any]] = lambda loss: []) -> list[float]:
    """The losses of the minibatches of a training in a session; *more* makes other callbacks for its loss."""
    x, y = C.input_variable(4), C.input_variable(2)
    model = C.layers.Dense(2, init=C.glorot_uniform(seed=1))(x)
    loss = C.cross_entropy_with_softmax(model, y)
    random = np.random.default_rng(0)
    data = random.standard_normal((SAMPLES, 4), np.float32), np.eye(2, dtype=np.float32)[random.integers(2, size=SAMPLES)]
    losses: list[float] = []

    class Losses(C.cntk_py.ProgressWriter):
        def on_write_training_update(self, samples: Any, updates: Any, aggregate_loss: Any, aggregate_metric: Any) -> None:
            losses.append(aggregate_loss[1] - aggregate_loss[0])

        def on_write_training_summary(self, samples: Any, updates: Any, summaries: Any, loss: Any, metric: Any, milliseconds: Any) -> None:
            assert 0 <= milliseconds < 60_000, f"{milliseconds} ms for an epoch"

    callbacks = [*writers, Losses(1), *more(loss)]
    loss.train(data, minibatch_size=20, max_epochs=2, parameter_learners=[C.sgd(model.parameters, 0.1)], callbacks=callbacks)
    return losses


@cache
def right_losses() -> list[float]:
    """The losses where no clock jumps."""
    return small_training([])


def printing(random: np.random.Generator, folder: Path) -> None:
    """Lines on epochs have times and rates that can be; signs of life come at once, and then after ten seconds."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        losses = small_training([C.logging.ProgressPrinter(5, gen_heartbeat=True)])
    assert losses == right_losses()
    text = printed.getvalue()
    measured = re.findall(r"(\S+)s \( *(\S+) samples/s\)", text)
    assert len(measured) == 2, text
    for seconds, rate in measured:
        assert 0 <= float(seconds) < 60, text
        assert (float(rate) > 0) == (float(seconds) > 0), text  # a rate is that of the time as it is shown
    assert text.count("PROGRESS") == 1, f"{text.count('PROGRESS')} signs of life within a second"


def printing_by_hand(random: np.random.Generator, folder: Path) -> None:
    """The same by the deprecated methods."""
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        printer = C.logging.ProgressPrinter(2)
        for _ in range(3):
            printer.update(0.5, 10, 0.1)
            printer.epoch_summary(with_metric=True)
    for seconds in re.findall(r"(\S+)s \(", printed.getvalue()):
        assert 0 <= float(seconds) < 60, printed.getvalue()


def writing_events(random: np.random.Generator, folder: Path) -> None:
    """Each writer for TensorBoard has a file of its own, with all that it was given."""
    for _ in range(3):
        losses = small_training([C.logging.TensorBoardProgressWriter(1, str(folder))])
        assert losses == right_losses()
    files = [path.stat().st_size for path in folder.iterdir()]
    assert len(files) == 3, files
    assert len(set(files)) == 1, files


def taking_checkpoints(random: np.random.Generator, folder: Path) -> None:
    """As many checkpoints and validations as the counts of samples say, at the same moments."""
    validated: list[int] = []
    data = np.ones((20, 4), np.float32), np.ones((20, 2), np.float32)

    def more(loss: Any) -> list[Any]:
        validation = C.CrossValidationConfig(
            data, frequency=100, callback=lambda i, e, n, m: bool(validated.append(n) or True), criterion=loss
        )
        return [C.CheckpointConfig(str(folder / "checkpoint"), 100, preserve_all=True), validation]

    losses = small_training([], more)
    assert losses == right_losses(), "validation changed the training"
    numbered = sorted(path.name for path in folder.iterdir() if path.suffix == ".ckp")
    assert len(numbered) == 2 * SAMPLES // 100 + 1, numbered
    assert len(validated) >= 2 * SAMPLES // 100, validated


def profiling(random: np.random.Generator, folder: Path) -> None:
    """Each profile has files of its own, and no event lasts less than no time."""
    for number in range(1, 4):
        C.debugging.start_profiler(str(folder))
        C.debugging.enable_profiler()
        losses = small_training([])
        C.debugging.stop_profiler()
        assert losses == right_losses()
        assert len([*folder.glob("*_summary_*")]) == number, [*folder.iterdir()]
    for path in folder.glob("*_detail_*"):
        assert not re.search(r'"dur": -', path.read_text()), path


def reading(random: np.random.Generator, folder: Path) -> None:
    """A text that is replaced by another, older or newer than the index that was made of it, is read anew."""
    path = folder / "text.ctf"
    with mock.patch.dict(os.environ, {"CNTK_CACHE": str(folder / "cache")}), overridden(ctf_index_kept=100):
        for number, moment in zip(itertools.count(), random.choice(JUMPS, size=4).cumsum()):
            path.write_text("".join(f"{line} |a {number} {line}\n" for line in range(50)))
            os.utime(path, (1.5e9 + moment, 1.5e9 + moment))
            source = MinibatchSource(CTFDeserializer(str(path), StreamDefs(a=StreamDef("a", 2))), randomize=False, max_sweeps=1)
            values = source.next_minibatch(100)[source.streams.a].asarray()[:, 0, 0]
            assert (values == number).all(), f"the numbers of text {values[0]:g} instead of {number}"


TRIED = (printing, printing_by_hand, writing_events, taking_checkpoints, profiling, reading)


def begin() -> None:
    """Compute what is right while the clock is."""
    right_losses()
