"""Checkpoints of a trainer: exactly what was saved comes back, and damaged files are refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_array_equal

import cntk as C
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
        ("cut", "is no checkpoint, or damaged: byte"),
        ("empty", "is no checkpoint"),
        ("flipped", "the state in it is not the one that was written"),
        ("of CNTK", "is no checkpoint of opencntk"),
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
