"""Saves that fail, are interrupted, killed, or lose power at every step leave the old or the new file whole, and nothing else for long."""

from __future__ import annotations

import errno
import gc
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from faults import Calls, Fault, Image, Instructions, PowerLoss, failing, image_of, interrupt, killed, lay_out, once

import cntk as C
from cntk.core.storage import file_lock, files
from cntk.core.storage.file_lock import FileLock
from cntk.plugins.formats.cntk_v2 import CNTKv2
from cntk.plugins.formats.wire import write_dictionary
from cntk.plugins.models import files as model_files
from cntk.train import checkpoint

FAULTS = {
    "EIO": (failing(errno.EIO), False),
    "ENOSPC": (failing(errno.ENOSPC), False),
    "interrupted before": (interrupt, False),
    "interrupted after": (interrupt, True),
}
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of files that an interrupt left open


class Training:
    """A trainer of a single number, which is known by it."""

    def __init__(self) -> None:
        x = C.input_variable(1)
        self.x, self.w = x, C.parameter(1, name="w")
        self.z = self.w * x
        self.trainer = C.Trainer(self.z, C.reduce_sum(self.z), C.momentum_sgd([self.w], 0.1, 0.9))

    def save(self, path: Path, number: int) -> None:
        self.w.value = np.array([number], np.float32)
        self.trainer.save_checkpoint(path, {"number": number})

    def save_model(self, path: Path, number: int) -> None:
        self.w.value = np.array([number], np.float32)
        self.z.save(path)

    def restore(self, path: Path) -> int:
        """The number of the checkpoint, the same in model and state; training goes on from it."""
        number: int = self.trainer.restore_from_checkpoint(path)["number"]
        assert self.w.value == [number]
        assert self.trainer.train_minibatch({self.x: [[1]]})
        return number


def load_model(path: Path) -> int:
    return int(C.load_model(path).parameters[0].value[0])


@pytest.fixture(scope="module")
def one() -> Training:
    return Training()


@pytest.fixture(scope="module")
def other() -> Training:
    return Training()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a folder: some ten thousand files are written."""
    if not os.path.isdir("/dev/shm"):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        yield Path(made)


def starts(training: Training, folder: Path) -> dict[str, tuple[Image, int | None]]:
    """What a save may find, and the number of the checkpoint there: nothing, a checkpoint, and half a one with what killed saves left."""
    found: dict[str, tuple[Image, int | None]] = {"nothing": ({}, None)}
    training.save(folder / "ck", 1)
    found["a checkpoint"] = image_of(folder), 1
    replaced = []

    def third(number: int, name: str, is_done: bool) -> None:
        replaced.extend([name] * (name == "replace" and not is_done))
        if len(replaced) == 3:
            replaced.append("")
            interrupt()

    with pytest.raises(KeyboardInterrupt), Calls(third):
        training.save(folder / "ck", 2)
    zeros, ones = "0" * 32, "1" * 32
    left = {f"ck.{zeros}.new": b"mo", f"ck.{zeros}.new.{ones}.tmp": b"m", f"ck.{ones}.tmp": b"", f"ck.ckp.{ones}.tmp": b"state"}
    found["half a checkpoint"] = {**image_of(folder), **left, "ck.ckp.lock": b"opencntk 4194305 1 elsewhere"}, 2
    assert len(found["half a checkpoint"][0]) == 8
    return found


START = pytest.mark.parametrize("start", ["nothing", "a checkpoint", "half a checkpoint"])


class Trial:
    """A save of number 3 in a folder that is laid out anew each time, and what is expected of it."""

    def __init__(self, folder: Path, saver: Training, reader: Training, start: str) -> None:
        self.image, self.old = starts(saver, folder)[start]
        self.folder, self.path, self.saver, self.reader = folder, folder / "ck", saver, reader
        self.checked: list[tuple[bool, Image]] = []

    def save(self) -> None:
        self.saver.save(self.path, 3)

    def begin(self) -> None:
        lay_out(self.folder, self.image)

    def check(self, has_succeeded: bool = False) -> None:
        """Nothing is locked; the old or the new is there, the next save leaves nothing else, and training goes on."""
        with FileLock(os.fspath(self.folder / "ck.ckp.lock"), ""):
            pass
        image = image_of(self.folder)
        if (found := (has_succeeded, image)) not in self.checked:
            self.check_image({3} if has_succeeded else {self.old, 3})
            self.checked.append(found)

    def check_image(self, expected: set[int | None]) -> None:
        if None not in expected or checkpoint.has_checkpoint(self.path):
            assert self.reader.restore(self.path) in expected
        with Calls():
            self.saver.save(self.path, 4)
        assert sorted(os.listdir(self.folder)) == ["ck", "ck.ckp"]
        assert self.reader.restore(self.path) == 4

    def calls(self) -> list[str]:
        self.begin()
        with Calls() as calls:
            self.save()
        self.check(has_succeeded=True)
        return calls.names


class ModelTrial(Trial):
    """The same of ``Function.save``."""

    def __init__(self, folder: Path, saver: Training, start: str) -> None:
        self.folder, self.path, self.saver = folder, folder / "model", saver
        self.checked = []
        saver.save_model(self.path, 1)
        self.image: Image = {} if start == "nothing" else image_of(folder)
        self.old = None if start == "nothing" else 1
        if start == "half a model":
            self.image[f"model.{'0' * 32}.tmp"] = b"mo"

    def save(self) -> None:
        self.saver.save_model(self.path, 3)

    def check_image(self, expected: set[int | None]) -> None:
        if None not in expected or self.path.exists():
            assert load_model(self.path) in expected
        with Calls():
            self.saver.save_model(self.path, 4)
        assert os.listdir(self.folder) == ["model"]
        assert load_model(self.path) == 4


@pytest.fixture(params=["nothing", "a checkpoint", "half a checkpoint", "a model", "half a model"])
def trial(request: Any, folder: Path, one: Training, other: Training) -> Trial:
    return ModelTrial(folder, one, request.param) if "model" in request.param else Trial(folder, one, other, request.param)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_call_fails_or_is_interrupted_once(trial: Trial, fault: str) -> None:
    happens, after = FAULTS[fault]
    names = trial.calls()
    assert {"open", "write", "fsync", "replace", "close", "flock", "listdir"} <= set(names)
    for at, name in enumerate(names):
        trial.begin()
        error = outcome(trial, once(at, happens, after))
        if "interrupted" in fault:
            assert isinstance(error, KeyboardInterrupt), (at, name)
        elif error is not None:
            assert isinstance(error, OSError), (at, name)
            assert os.fspath(trial.path) in os.fsdecode(error.filename or b""), (at, name)
        trial.check(has_succeeded=error is None)


def outcome(trial: Trial, *fault: Fault) -> BaseException | None:
    """What a save with a fault raises.  Meanwhile no garbage is collected: files that an earlier fault left open would give warnings, which
    make calls of their own."""
    gc.disable()
    try:
        with Calls(*fault):
            trial.save()
    except (KeyboardInterrupt, OSError) as error:
        return error
    finally:
        gc.enable()
    return None


HALF = pytest.mark.parametrize(
    "trial",
    [
        "half a checkpoint",
        "half a model",
        *(pytest.param(start, marks=pytest.mark.slow) for start in ("nothing", "a checkpoint", "a model")),
    ],
    indirect=True,
)
"""What most can happen to."""


@HALF
def test_every_call_is_the_last_one(trial: Trial) -> None:
    """A process that is killed after a call leaves what one leaves that is killed before the next."""
    for at in range(len(trial.calls())):
        trial.begin()
        assert killed(at, trial.save)
        trial.check()


SAVING = {"write_checkpoint", "_commit", "_remove_leftovers", "_named_model", "_mapped", "_pending", "_path_of"}


def is_saving(frame: FrameType) -> bool:
    """Whether a frame is of the code that handles files."""
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    return file in (files.__file__, file_lock.__file__) or (file == checkpoint.__file__ and name in SAVING)


@HALF
def test_every_instruction_is_interrupted(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[Any, list[bytes]] = {}  # in one piece, and once: neither is what is interrupted

    class OnePiece(CNTKv2):
        @staticmethod
        def write(function: Any) -> list[bytes]:
            return in_one_piece(CNTKv2.write, function, float(function.parameters[0].value[0]))

    def in_one_piece(write: Any, given: Any, key: Any) -> list[bytes]:
        if key not in written:
            written[key] = [b"".join(write(given))]
        return written[key]

    to_bytes = checkpoint.to_bytes
    monkeypatch.setattr(
        checkpoint, "to_bytes", lambda state: in_one_piece(lambda state: [to_bytes(state)], state, str(state["workers"]))[0]
    )
    monkeypatch.setattr(checkpoint, "write_dictionary", lambda entries: in_one_piece(write_dictionary, entries, str(entries)))
    monkeypatch.setattr(model_files, "format_of", lambda given: OnePiece())
    trial.begin()
    with Calls(), Instructions(None, is_saving) as instructions:
        trial.save()

    def save_interrupted(at: int) -> None:
        with Instructions(at, is_saving):
            outcome(trial)

    for at in range(instructions.count):
        trial.begin()
        # CPython forgets to end the handling of an exception that is interrupted at its edges: on a thread that ends, nobody notices
        saving = threading.Thread(target=save_interrupted, args=(at,))
        saving.start()
        saving.join()
        trial.check()


def test_the_power_fails_at_every_call(trial: Trial) -> None:
    trial.begin()
    power = PowerLoss(trial.folder)
    with Calls(power.fault, power.synced):
        trial.save()
    for image in power.found.values():
        lay_out(trial.folder, image)
        trial.check()
    assert len(power.found) >= 5


def test_what_was_saved_outlasts_the_power(trial: Trial) -> None:
    trial.begin()
    power = PowerLoss(trial.folder)
    with Calls(power.fault, power.synced):
        trial.save()
    for image in power.left().values():
        lay_out(trial.folder, image)
        trial.check(has_succeeded=True)


# ---- two writers ----


class Writer:
    """A save in a thread of its own, which stops before a call until it is told to go on."""

    def __init__(self, stop: int, save: Any) -> None:
        self._stop, self._goes_on, self.has_stopped = stop, threading.Event(), threading.Event()
        self.error: BaseException | None = None
        self.count = 0
        self._thread = threading.Thread(target=self._run, args=(save,))

    def start(self) -> None:
        self._thread.start()
        self.has_stopped.wait()

    def finish(self) -> None:
        self._goes_on.set()
        self._thread.join()

    def call(self) -> None:
        if threading.current_thread() is self._thread:
            self.count += 1
            if self.count > self._stop:
                self.has_stopped.set()
                self._goes_on.wait()

    def _run(self, save: Any) -> None:
        try:
            save()
        except OSError as error:
            self.error = error
        self.has_stopped.set()


def both(first: Writer, second: Writer) -> None:
    """The first stops, the second goes on until it stops, the first ends, the second ends."""

    def fault(number: int, name: str, is_done: bool) -> None:
        if not is_done:
            first.call()
            second.call()

    with Calls(fault):
        first.start()
        second.start()
        first.finish()
        second.finish()


def test_two_save_a_checkpoint_at_once(folder: Path, one: Training, other: Training) -> None:
    """One of the two, or both, succeed; the one that does not is told who holds the lock."""
    trial = Trial(folder, one, other, "a checkpoint")
    kinds = set()
    for stop in range(len(trial.calls())):
        for step in (1, 4, 16, 1000):
            trial.begin()
            one.w.value = other.w.value = np.array([3], np.float32)
            first = Writer(stop, lambda: one.trainer.save_checkpoint(trial.path, {"number": 3}))
            second = Writer(step, lambda: other.trainer.save_checkpoint(trial.path, {"number": 3}))
            both(first, second)
            errors = [writer.error for writer in (first, second) if writer.error is not None]
            assert len(errors) < 2
            for error in errors:
                assert isinstance(error, BlockingIOError)
                assert error.filename == str(trial.path)
                assert "another thread or trainer of this process" in str(error)
            kinds.add(len(errors))
            trial.check(has_succeeded=True)
    assert kinds == {0, 1}


def test_two_save_a_model_at_once(folder: Path, one: Training, other: Training) -> None:
    trial = ModelTrial(folder, one, "half a model")
    count = len(trial.calls())
    one.w.value, other.w.value = np.array([3], np.float32), np.array([5], np.float32)
    expected = [b"".join(CNTKv2.write(who.z)) for who in (one, other)]
    for stop in range(count):
        for step in range(count):
            trial.begin()
            first, second = (Writer(at, lambda who=who: who.z.save(trial.path)) for at, who in ((stop, one), (step, other)))
            both(first, second)
            assert (first.error, second.error) == (None, None), (stop, step)
            assert os.listdir(folder) == ["model"]
            assert trial.path.read_bytes() in expected
