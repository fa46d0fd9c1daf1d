"""Checkpoints of a trainer: exactly what was saved comes back, and damaged files are refused."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_array_equal

import cntk as C
from cntk.core.storage import file_lock
from cntk.core.storage.files import NewFile
from cntk.train import checkpoint

RNG = np.random.default_rng(0)
DATA = [(RNG.standard_normal((4, 3)).astype(np.float32), np.eye(2, dtype=np.float32)[RNG.integers(0, 2, 4)]) for _ in range(12)]


class Classifier:
    """A network that draws random numbers and keeps statistics, with its trainer."""

    def __init__(self, learner: Any = None, writers: Any = None, width: int = 5) -> None:
        self.x, self.y = C.input_variable(3), C.input_variable(2)
        hidden = C.layers.Dropout(0.3)(C.layers.Dense(width, activation=C.relu)(self.x))
        self.z = C.layers.Dense(2)(C.layers.BatchNormalization()(hidden) + C.random.normal_like(hidden, scale=0.1))
        loss = C.cross_entropy_with_softmax(self.z, self.y)
        make = learner or (lambda parameters: C.adam(parameters, 0.1, 0.9))
        self.trainer = C.Trainer(self.z, (loss, C.classification_error(self.z, self.y)), make(self.z.parameters), writers)

    def train(self, data: Any) -> Any:
        for x, y in data:
            self.trainer.train_minibatch({self.x: x, self.y: y})
        return self

    def values(self) -> list[Any]:
        return [variable.value for variable in (*self.z.parameters, *self.z.constants)]


def noisy(parameters: Any) -> Any:
    return C.sgd(parameters, 0.1, gaussian_noise_injection_std_dev=0.1, l1_regularization_weight=0.01)


def scheduled(parameters: Any) -> Any:
    return C.momentum_sgd(parameters, C.learning_parameter_schedule([0.2, 0.1, 0.05], epoch_size=16), C.momentum_schedule([0.5, 0.9], 20))


def two(parameters: Any) -> Any:
    return [C.adagrad(parameters[:2], 0.1), C.rmsprop(parameters[2:], 0.01, 0.9, 1.1, 0.9, 10, 0.1)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "model")


@pytest.mark.parametrize("learner", [None, noisy, scheduled, two])
def test_going_on_is_like_never_having_stopped(path: str, learner: Any) -> None:
    first = Classifier(learner).train(DATA[:5])
    first.trainer.save_checkpoint(path)
    first.train(DATA[5:])
    C.cntk_py.generate_random_seed()
    second = Classifier(learner)  # with other initial values, masks and noise
    second.trainer.restore_from_checkpoint(path)
    assert second.trainer.total_number_of_samples_seen == 20
    second.train(DATA[5:])
    for mine, other in zip(first.values(), second.values(), strict=True):
        assert_array_equal(mine, other)


def test_the_model_can_be_loaded(path: str) -> None:
    model = Classifier().train(DATA[:2])
    model.trainer.save_checkpoint(path)
    loaded = C.load_model(path)
    assert [output.shape for output in loaded.outputs] == [(2,), (1,), (1,)]


def test_seeds_that_are_chosen_later_are_the_same(path: str) -> None:
    model = Classifier()
    C.cntk_py.reset_random_seed(5)
    model.trainer.save_checkpoint(path)
    expected = C.parameter(4, init=C.glorot_uniform()).value
    C.cntk_py.reset_random_seed(99)
    model.trainer.restore_from_checkpoint(path)
    assert_array_equal(C.parameter(4, init=C.glorot_uniform()).value, expected)


def test_progress_goes_on_counting(path: str) -> None:
    class Totals(C.cntk_py.ProgressWriter):
        def on_write_training_summary(self, samples: int, updates: int, summaries: int, *rest: Any) -> None:
            self.seen = samples, updates, summaries

    first = Classifier(writers=Totals()).train(DATA[:3])
    first.trainer.summarize_training_progress()
    first.train(DATA[:2]).trainer.save_checkpoint(path)
    writer = Totals()
    second = Classifier(writers=writer)
    second.trainer.restore_from_checkpoint(path)
    second.train(DATA[:1]).trainer.summarize_training_progress()
    assert writer.seen == (12, 3, 2)
    assert writer.total_training_updates() == 6


# ---- external state ----

NUMBERS = st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.text())
KINDS = st.sampled_from(["f2", "f4", "f8", "i1", "i2", "i8", "u8", "?", "c16", ">f4", ">i4"])
ARRAYS = KINDS.flatmap(lambda kind: arrays.arrays(np.dtype(kind), arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)))
STATES = st.dictionaries(
    st.text(),
    st.recursive(NUMBERS | ARRAYS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8),
    max_size=4,
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        alike = one.shape == other.shape and one.dtype.newbyteorder("=") == other.dtype
        return alike and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    return type(one) is type(other) and (one == other or one != one)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Classifier, str]:
    return Classifier(), str(tmp_path_factory.mktemp("state") / "model")


@settings(max_examples=60, deadline=None)
@given(state=STATES)
def test_any_state_comes_back(saved: tuple[Classifier, str], state: dict[str, Any]) -> None:
    model, path = saved
    if any(key in (checkpoint.ARRAY, checkpoint.INTEGER) for key in state):
        return
    model.trainer.save_checkpoint(path, state)
    assert same(state, model.trainer.restore_from_checkpoint(path))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({1: 2}, "strings as keys"),
        ({"a": {"@array": 1}}, r"got '@array' in external_state\['a'\]"),
        ({"a": [1, (1, 2)]}, r"got tuple \(1, 2\) in external_state\['a'\]\[1\]"),
        ({"a": np.array([object()])}, "arrays of numbers, got one of object"),
        ({"a": b"bytes"}, "got bytes"),
    ],
)
def test_what_a_state_may_not_hold(path: str, state: Any, message: str) -> None:
    model = Classifier()
    with pytest.raises(TypeError, match=message):
        model.trainer.save_checkpoint(path, state)
    assert not os.path.exists(path)


# ---- files ----


def test_writing_may_be_broken_off_anywhere(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever renaming is the last before the process ends, the old or the new checkpoint is there."""
    model = Classifier().train(DATA[:2])
    model.trainer.save_checkpoint(path, {"number": 0})
    old = model.values()
    replace = os.replace
    for allowed in range(4):
        copy = str(tmp_path / f"copy{allowed}")
        shutil.copy(path, copy)
        shutil.copy(path + ".ckp", copy + ".ckp")
        left = [allowed]

        def limited(source: Any, target: Any, left: list[int] = left) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            replace(source, target)

        changed = Classifier()
        changed.trainer.restore_from_checkpoint(path)
        changed.train(DATA[2:4])
        monkeypatch.setattr(os, "replace", limited)
        try:
            changed.trainer.save_checkpoint(copy, {"number": 1})
        except KeyboardInterrupt:
            assert allowed < 3
        monkeypatch.setattr(os, "replace", replace)
        found = Classifier()
        number = found.trainer.restore_from_checkpoint(copy)["number"]
        assert number == (allowed >= 2)
        for mine, other in zip(found.values(), changed.values() if number else old, strict=True):
            assert_array_equal(mine, other)
        found.trainer.save_checkpoint(copy)
        assert sorted(file.name for file in tmp_path.glob(f"copy{allowed}*")) == [f"copy{allowed}", f"copy{allowed}.ckp"]


def test_files_may_be_renamed_together(path: str) -> None:
    model = Classifier()
    model.trainer.save_checkpoint(path, {"a": 1})
    os.rename(path, path + "9")
    os.rename(path + ".ckp", path + "9.ckp")
    assert model.trainer.restore_from_checkpoint(path + "9") == {"a": 1}


def broken(path: str, how: str) -> None:
    state = Path(path + ".ckp")
    content = state.read_bytes()
    if how == "no state":
        state.unlink()
    elif how == "no model":
        os.unlink(path)
    elif how == "another model":
        Classifier().z.save(path)
    elif how == "cut":
        state.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        state.write_bytes(b"")
    elif how == "of CNTK":
        state.write_bytes(Path(path).read_bytes())
    elif how == "flipped":
        place = content.index(b"samples") + 12
        state.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    elif how == "of tomorrow":
        version = b"\x0a\x07version\x12\x06\x08\x02\x10\x02\x20"
        state.write_bytes(content.replace(version + b"\x01", version + b"\x02"))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("no state", "the checkpoint cannot be read"),
        ("no model", "belongs to another model"),
        ("another model", "belongs to another model"),
        ("cut", "is not a checkpoint, or damaged: byte"),
        ("empty", "is not a checkpoint"),
        ("flipped", "the state in it is not the one that was written"),
        ("of CNTK", "is not a checkpoint of opencntk"),
        ("of tomorrow", "is a checkpoint of version 2"),
    ],
)
def test_broken_files_are_refused(path: str, how: str, message: str) -> None:
    model = Classifier()
    model.trainer.save_checkpoint(path)
    broken(path, how)
    with pytest.raises(RuntimeError, match=message):
        model.trainer.restore_from_checkpoint(path)


def test_it_belongs_to_a_trainer(path: str) -> None:
    model = Classifier().train(DATA[:2])
    model.trainer.save_checkpoint(path)
    with pytest.raises(RuntimeError, match="checkpoint of 1 learners given to a trainer with 2"):
        Classifier(two).trainer.restore_from_checkpoint(path)
    with pytest.raises(RuntimeError, match="checkpoint of a learner of type 'Adam'"):
        Classifier(noisy).trainer.restore_from_checkpoint(path)
    with pytest.raises(ValueError, match="not equivalent"):
        Classifier(width=6).trainer.restore_from_checkpoint(path)


def test_folders_are_made_and_links_followed(tmp_path: Path) -> None:
    model = Classifier()
    model.trainer.save_checkpoint(tmp_path / "new" / "folder" / "model", {"a": 1})
    (tmp_path / "link").symlink_to(tmp_path / "new" / "folder" / "model")
    assert model.trainer.restore_from_checkpoint(tmp_path / "new" / "folder" / "model") == {"a": 1}
    model.z.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()


def test_what_is_no_file_is_not_written_to(tmp_path: Path) -> None:
    model = Classifier()
    (tmp_path / "model").mkdir()
    with pytest.raises(OSError, match="it is a folder"):
        model.trainer.save_checkpoint(tmp_path / "model")
    (tmp_path / "other.ckp").mkdir()
    with pytest.raises(OSError, match="it is a folder"):
        model.trainer.save_checkpoint(tmp_path / "other")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model", "other.ckp"]


def test_sequences_go_on_after_a_checkpoint(path: str) -> None:
    """What a recurrence keeps of a minibatch for the next one is in the checkpoint, and outputs= makes no difference to it."""

    def make() -> tuple[Any, Any, Any]:
        x = C.sequence.input_variable(2)
        z = C.layers.Recurrence(C.layers.RNNStep(3, init=0.5))(x)
        return x, z, C.Trainer(z, C.reduce_sum(z), C.sgd(z.parameters, 0.01))

    first, goes_on = np.ones((1, 3, 2), np.float32), (np.full((1, 2, 2), 2, np.float32), [False])
    x, z, trainer = make()
    trainer.train_minibatch({x: (first, [True])})
    trainer.save_checkpoint(path)
    expected = trainer.train_minibatch({x: goes_on}, outputs=[z])[1][z]
    x, z, trainer = make()
    trainer.restore_from_checkpoint(path)
    found = trainer.train_minibatch({x: goes_on}, outputs=[z])[1][z]
    assert_array_equal(found[0], expected[0])


def test_a_rate_that_was_changed_comes_back(path: str) -> None:
    first, second = Classifier(), Classifier()
    nodes = C.logging.depth_first_search(first.z, lambda node: isinstance(node, C.Function) and node.op_name == "Dropout", -1)
    dropout = next(node for node in nodes if not node.is_block)
    dropout.set_attribute("dropoutRate", 0.6)
    first.trainer.save_checkpoint(path)
    second.trainer.restore_from_checkpoint(path)
    for model in (first, second):
        model.train(DATA[:3])
    for mine, other in zip(first.values(), second.values(), strict=True):
        assert_array_equal(mine, other)


def test_a_checkpoint_that_does_not_fit_changes_nothing(path: str) -> None:
    Classifier().train(DATA[:2]).trainer.save_checkpoint(path)
    other = Classifier(noisy)
    before = other.values()
    with pytest.raises(RuntimeError, match="learner of type"):
        other.trainer.restore_from_checkpoint(path)
    for mine, value in zip(other.values(), before, strict=True):
        assert_array_equal(mine, value)


def test_reading_while_another_writes(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model of the state that was read first is gone when it is looked for."""
    model = Classifier()
    model.trainer.save_checkpoint(path, {"number": 0})
    read, calls = checkpoint._bytes_of, [0]

    def slow(name: str) -> bytes:
        data = read(name)
        calls[0] += 1
        if calls[0] == 1:
            model.train(DATA[:1]).trainer.save_checkpoint(path, {"number": 1})
        return data

    reader = Classifier()
    monkeypatch.setattr(checkpoint, "_bytes_of", slow)
    assert reader.trainer.restore_from_checkpoint(path) == {"number": 1}


def test_names_may_be_bytes(tmp_path: Path) -> None:
    model = Classifier()
    name = os.fsencode(tmp_path / "model")
    model.trainer.save_checkpoint(name, {"a": 1})
    assert model.trainer.restore_from_checkpoint(name) == {"a": 1}
    assert sorted(os.listdir(tmp_path)) == ["model", "model.ckp"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.parametrize("name", ["model", "model.ckp", "model.ckp.lock"])
def test_pipes_are_not_replaced(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match=r"not a regular file|it should be a lock file but is not"):
        Classifier().trainer.save_checkpoint(tmp_path / "model")
    assert stat.S_ISFIFO(os.stat(tmp_path / name).st_mode)
    assert os.listdir(tmp_path) == [name]


def test_modes_are_kept(path: str) -> None:
    model = Classifier()
    model.trainer.save_checkpoint(path)
    os.chmod(path, 0o600)
    os.chmod(path + ".ckp", 0o640)
    model.trainer.save_checkpoint(path)
    assert [stat.S_IMODE(os.stat(name).st_mode) for name in (path, path + ".ckp")] == [0o600, 0o640]
    model.z.save(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="this system has no limit for files")
def test_an_error_names_the_file_and_what_it_wanted(path: str) -> None:
    import resource

    model = Classifier()
    model.trainer.save_checkpoint(path, {"a": 1})
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        for save in (model.z.save, model.trainer.save_checkpoint):
            with pytest.raises(OSError, match=r"\(\d{4,} bytes were wanted\)") as raised:
                save(path)
            assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert model.trainer.restore_from_checkpoint(path) == {"a": 1}
    assert sorted(os.listdir(os.path.dirname(path))) == ["model", "model.ckp"]


def test_another_process_that_saves_is_named(path: str) -> None:
    model = Classifier()
    model.trainer.save_checkpoint(path, {"a": 1})
    code = "import sys\nfrom cntk.core.storage.file_lock import FileLock\n"
    code += "with FileLock(sys.argv[1], ''):\n    print('held', flush=True)\n    input()"
    with subprocess.Popen([sys.executable, "-c", code, path + ".ckp.lock"], stdin=-1, stdout=-1) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(BlockingIOError, match=f"process {holder.pid} on .* is writing it.*model.ckp.lock"):
            model.trainer.save_checkpoint(path, {"a": 2})
        assert model.trainer.restore_from_checkpoint(path) == {"a": 1}
        holder.kill()
    model.trainer.save_checkpoint(path, {"a": 3})
    assert sorted(os.listdir(os.path.dirname(path))) == ["model", "model.ckp"]


def test_a_lock_on_a_file_system_without_locks(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that the file names is believed as long as it is there, on this computer."""
    monkeypatch.setattr(file_lock, "try_lock", lambda descriptor: None)
    model, lock = Classifier(), Path(path + ".ckp.lock")
    parent = os.getppid()
    lock.write_text(f"opencntk {parent} {file_lock._begun(parent)} {socket.gethostname()}")
    with pytest.raises(BlockingIOError, match=f"process {parent} on"):
        model.trainer.save_checkpoint(path)
    for dead in (
        f"opencntk {parent} 1 {socket.gethostname()}",
        f"opencntk {parent} 1 elsewhere",
        f"opencntk {os.getpid()} 1 here",
        "",
        "open",
    ):
        lock.write_text(dead)
        model.trainer.save_checkpoint(path)
        assert not lock.exists()


def test_what_a_live_process_writes_is_no_leftover(path: str) -> None:
    written = NewFile(path)
    written.write([b"new"])
    Classifier().z.save(path)
    written.take_place()
    written.discard()
    assert Path(path).read_bytes() == b"new"


# ---- states that were made by others ----


def places(value: Any, place: tuple[Any, ...] = ()) -> Any:
    """Where in a state something lies."""
    if place:
        yield place
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*place, key))


def changed(value: Any, place: tuple[Any, ...], other: Any) -> Any:
    if not place:
        return other
    copied = dict(value) if isinstance(value, dict) else list(value)
    if len(place) == 1 and other is KeyError:
        del copied[place[0]]
    else:
        copied[place[0]] = changed(value[place[0]], place[1:], other)
    return copied


def test_a_state_that_is_none_changes_nothing(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Each part of a state, in turn, is missing or something else: an error says so, or nothing that follows depends on it."""
    saved = Classifier(writers=C.logging.ProgressPrinter(freq=None)).train(DATA[:2])
    saved.trainer.save_checkpoint(path, {"mine": 1})
    model, state = checkpoint.read_checkpoint(path)
    trainer = Classifier(writers=C.logging.ProgressPrinter(freq=None))
    loaded = C.Function.load(model)
    monkeypatch.setattr(C.Function, "load", lambda data: loaded)
    before = [trainer.values(), trainer.trainer.parameter_learners[0].create_checkpoint()]
    refused = 0
    for place in places(state):
        for other in (KeyError, "text", [], -1.5):
            monkeypatch.setattr(
                "cntk.train.state.read_checkpoint", lambda name, other=other, place=place: (model, changed(state, place, other))
            )
            try:
                trainer.trainer.checked_checkpoint(path)
            except (RuntimeError, ValueError):
                refused += 1
            assert same([value.tolist() for value in trainer.values()], [value.tolist() for value in before[0]])
            assert same(trainer.trainer.parameter_learners[0].create_checkpoint(), before[1])
    assert refused > 100


# ---- sessions ----


def session(path: str, samples: int, **options: Any) -> list[int]:
    """Where a training began and ended; *stop* kills it after so many samples."""
    stop = options.pop("stop", None)
    x, y = C.input_variable(1), C.input_variable(1)
    loss = C.squared_error(C.layers.Dense(1)(x), y)
    trainer = C.Trainer(None, loss, C.sgd(loss.parameters, 0.01))
    seen: list[int] = []

    class Session(C.train.TrainingSession):
        def on_minibatch_start(self) -> None:
            seen.append(trainer.total_number_of_samples_seen)
            if seen[-1] == stop:
                raise KeyboardInterrupt

    config = C.CheckpointConfig(path, frequency=100, **options)
    X = np.ones((1000, 1), np.float32)
    made = Session(trainer, (X, X), 50, None, samples, None, config, None, None)
    if stop is None:
        made.train()
    else:
        with pytest.raises(KeyboardInterrupt):
            made.train()
    return [seen[0] if seen else trainer.total_number_of_samples_seen, trainer.total_number_of_samples_seen]


def test_a_session_goes_on_from_what_has_come_furthest(path: str) -> None:
    assert session(path, 300, preserve_all=True) == [0, 300]
    assert session(path, 900, preserve_all=True, stop=850) == [300, 850]
    assert session(path, 900, preserve_all=True) == [800, 900]
    assert session(path, 900, preserve_all=True) == [900, 900]


def test_a_session_that_began_anew_goes_on_from_its_own(path: str) -> None:
    session(path, 600, preserve_all=True)
    assert session(path, 600, preserve_all=True, restore=False, stop=250) == [0, 250]
    assert session(path, 600, preserve_all=True, stop=450) == [200, 450]
    assert session(path, 600, preserve_all=True) == [400, 600]


def test_a_damaged_one_of_several_is_passed_over(path: str) -> None:
    session(path, 600, preserve_all=True, stop=450)
    Path(path + "3.ckp").write_bytes(b"damaged")
    with pytest.warns(RuntimeWarning, match="a checkpoint is skipped: .*model3.ckp"):
        assert session(path, 600, preserve_all=True)[0] == 300
