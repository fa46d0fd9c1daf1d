"""The table of sizes from which on another way of computing pays, and the file that changes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common import thresholds as module
from cntk.core.common.thresholds import NEVER, TABLE, VARIABLE, Thresholds, all_set_to, overridden, own_file, read_file, thresholds
from cntk.testing import assert_close

PROGRAM = "import cntk; from cntk.core.common.thresholds import thresholds; print(thresholds.softmax_compiled, thresholds.dropout_compiled)"


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Any], Path]:
    """Writes a file of thresholds that the user alone may write to."""

    def write(content: Any) -> Path:
        path = tmp_path / "opencntk" / "thresholds.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        path.chmod(0o600)
        return path

    return write


def printed(cache: Path, chosen: str | None = None) -> tuple[str, str]:
    """What a process whose caches are in a folder prints of two thresholds, and its warnings."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop(VARIABLE, None)
    if chosen is not None:
        environment[VARIABLE] = chosen
    ended = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return ended.stdout.strip(), ended.stderr


DEFAULTS = f"{TABLE['softmax_compiled'].default} {TABLE['dropout_compiled'].default}"


@pytest.mark.skipif(sys.platform != "linux", reason="caches are elsewhere")
def test_the_users_file_takes_the_place_of_defaults(written: Callable[[Any], Path], tmp_path: Path) -> None:
    assert printed(tmp_path) == (DEFAULTS, "")
    written({"thresholds": {"softmax_compiled": 7}})
    assert printed(tmp_path) == (f"7 {TABLE['dropout_compiled'].default}", "")


@pytest.mark.skipif(sys.platform != "linux", reason="caches are elsewhere")
def test_the_environment_names_another_file_or_none(written: Callable[[Any], Path], tmp_path: Path) -> None:
    path = written({"thresholds": {"softmax_compiled": 7}})
    assert printed(tmp_path, "0") == (DEFAULTS, "")
    other = tmp_path / "other.json"
    other.write_text('{"thresholds": {"dropout_compiled": 8}}')
    other.chmod(0o600)
    assert printed(tmp_path, str(other)) == (f"{TABLE['softmax_compiled'].default} 8", "")
    assert own_file({VARIABLE: str(path)}) == path
    assert own_file({VARIABLE: "0"}) is None
    found, said = printed(tmp_path, str(tmp_path / "missing.json"))
    assert found == DEFAULTS
    assert "missing.json holds no thresholds" in said


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"softmax": 1}, "there is no threshold 'softmax'"),
        ({"softmax_compiled": -1}, "expected a whole number from 0 to 2\\*\\*62 for 'softmax_compiled', got -1"),
        ({"softmax_compiled": 1.5}, "got 1.5"),
        ({"softmax_compiled": True}, "got True"),
        ({"softmax_compiled": "x" * 1000}, "got 'x{79}$"),
        ({"softmax_compiled": NEVER + 1}, "2\\*\\*62"),
    ],
)
def test_wrong_entries_are_named_and_left_out(entries: dict[str, Any], message: str, written: Callable[[Any], Path]) -> None:
    with pytest.warns(RuntimeWarning, match=message):
        assert read_file(written({"thresholds": {**entries, "dropout_compiled": 5}})) == {"dropout_compiled": 5}


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"thresholds": 3}', "[" * 10**5, "__import__('os')"])
def test_damaged_files_are_left_out(content: str, written: Callable[[Any], Path]) -> None:
    with pytest.warns(RuntimeWarning, match="thresholds.json holds no thresholds"):
        assert read_file(written(content)) == {}


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system does not tell owners")
def test_what_others_may_have_written_is_left_out(written: Callable[[Any], Path]) -> None:
    path = written({"thresholds": {"softmax_compiled": 7}})
    path.chmod(0o666)
    with pytest.warns(RuntimeWarning, match="is not trusted"):
        assert read_file(path) == {}


def test_thresholds_are_others_for_a_while() -> None:
    before = thresholds.softmax_compiled
    with suppress(KeyError), overridden(softmax_compiled=1):
        assert thresholds.softmax_compiled == 1
        raise KeyError
    assert thresholds.softmax_compiled == before
    with all_set_to(3):
        assert {getattr(thresholds, name) for name in TABLE} == {3}
    assert thresholds == Thresholds()
    with pytest.raises(ValueError, match="there is no threshold softmax; there are attention_apart"), overridden(softmax=1):
        pass


def test_each_threshold_decides_something() -> None:
    folder = Path(module.__file__).parents[2]
    parts = [folder / name for name in ("core", "backends", "plugins", "readers", "learners")]
    source = "".join(file.read_text("utf-8") for part in parts for file in part.rglob("*.py"))
    assert [name for name in TABLE if f"thresholds.{name}" not in source] == []


def images() -> tuple[Any, Any, Any]:
    x = C.input_variable((3, 12, 12))
    layers = C.layers.Sequential(
        [
            C.layers.Convolution((3, 3), 16, pad=True, init=C.glorot_uniform(seed=1)),
            C.layers.BatchNormalization(map_rank=1),
            C.relu,
            C.layers.Convolution((5, 5), 16, init=C.glorot_uniform(seed=2)),
            C.layers.MaxPooling((2, 2), strides=2),
            C.layers.AveragePooling((2, 2)),
            C.layers.Dropout(0.3, seed=5),
            C.layers.Dense(70, activation=C.sigmoid, init=C.glorot_uniform(seed=3)),
            C.layers.Dense(5, init=C.glorot_uniform(seed=4)),
        ]
    )
    return layers(x), x, np.random.default_rng(1).normal(size=(9, 3, 12, 12)).astype(np.float32)


def sequences() -> tuple[Any, Any, Any]:
    x = C.sequence.input_variable(8)
    layers = C.layers.Sequential(
        [
            C.layers.Recurrence(C.layers.LSTM(33, init=C.glorot_uniform(seed=1))),
            C.layers.Recurrence(C.layers.GRU(32, init=C.glorot_uniform(seed=2)), go_backwards=True),
            C.sequence.last,
            C.layers.Dense(5, init=C.glorot_uniform(seed=3)),
        ]
    )
    random = np.random.default_rng(1)
    return layers(x), x, [random.normal(size=(length, 8)).astype(np.float32) for length in (4, 1, 7, 7, 2, 3, 5, 1, 6)]


def words() -> tuple[Any, Any, Any]:
    x = C.input_variable(50, is_sparse=True)
    layers = C.layers.Sequential([C.layers.Embedding(32, init=C.glorot_uniform(seed=1)), C.layers.Dense(5, init=C.glorot_uniform(seed=2))])
    return C.reduce_max(C.softmax(layers(x)), axis=0) * layers(x), x, C.Value.one_hot([3, 0, 3, 49, 1, 1, 2, 3, 4], 50)


def chains() -> tuple[Any, Any, Any]:
    x = C.input_variable(5)
    w = C.parameter(5, init=0.3)
    return C.tanh(C.exp(x * w) - C.square(x)) + C.log(C.abs(x) + 1), x, np.random.default_rng(1).normal(size=(9, 5)).astype(np.float32)


def trained(make: Callable[[], tuple[Any, Any, Any]]) -> list[Any]:
    """Losses of some updates, then the result and the parameters."""
    z, x, data = make()
    y = C.input_variable(5)
    loss = C.cross_entropy_with_softmax(z, y) + C.reduce_mean(C.log_softmax(z))
    trainer = C.Trainer(z, (loss, None), C.momentum_sgd(z.parameters, 0.01, 0.9, minibatch_size=C.learners.IGNORE))
    labels = np.eye(5, dtype=np.float32)[[0, 1, 2, 3, 4, 0, 1, 2, 3]]
    losses = []
    for _ in range(3):
        trainer.train_minibatch({x: data, y: labels})
        losses.append(trainer.previous_minibatch_loss_average)
    return [np.array(losses, np.float32), z.eval({x: data}), *(parameter.value for parameter in z.parameters)]


NETWORKS = (images, sequences, words, chains)
SHARED = [name for name in TABLE if name.endswith("_shared")]


@pytest.mark.parametrize("make", NETWORKS, ids=lambda make: str(make.__name__))
def test_results_do_not_depend_on_thresholds(make: Any) -> None:
    expected = trained(make)
    for size in (0, NEVER):
        with all_set_to(size):
            for found, usual in zip(trained(make), expected, strict=True):
                assert_close(found, usual)


@pytest.mark.parametrize("make", NETWORKS, ids=lambda make: str(make.__name__))
@pytest.mark.usefixtures("three_threads")
def test_threads_share_without_changing_a_bit(make: Any) -> None:
    with all_set_to(0):
        shared = trained(make)
        with overridden(**dict.fromkeys(SHARED, NEVER)):
            for found, expected in zip(trained(make), shared, strict=True):
                np.testing.assert_array_equal(found, expected)
