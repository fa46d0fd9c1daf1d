"""The progress writer for TensorBoard: what TensorBoard itself reads from the files."""

from __future__ import annotations

import io
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import cntk as C
from cntk.logging import TensorBoardProgressWriter
from cntk.plugins.progress import crc32c as checksums
from cntk.plugins.progress.event_file import EventFile, histogram, scalar
from cntk.plugins.protobuf import varint
from cntk.testing import check_progress_writer

pytest.importorskip("tensorboard", reason="tensorboard is not installed")

from tensorboard import data_compat
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event

EVERYTHING = dict.fromkeys(("scalars", "images", "histograms", "tensors"), 0)


def files(folder: Path) -> list[str]:
    return sorted(map(str, folder.glob("events.out.tfevents.*")))


def events(name: str) -> list[Any]:
    return [Event.FromString(record) for record in RawEventFileLoader(name).Load()]


def scalars(folder: Path) -> list[tuple[str, int, float]]:
    """Tags, steps and values of all numbers, in the order of writing."""
    return [(v.tag, e.step, v.simple_value) for name in files(folder) for e in events(name) for v in e.summary.value]


def board(folder: Path) -> Any:
    """The folder as TensorBoard takes it in."""
    read = EventAccumulator(str(folder), size_guidance=EVERYTHING)
    read.Reload()
    return read


# ---- records -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "checksum"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E)],
)
def test_checksums_of_the_standard(data: bytes, checksum: int) -> None:
    assert checksums.crc32c(data) == checksum


@given(st.binary(max_size=64), st.integers(1, 300))
def test_checksums_all_at_once_are_those_one_by_one(data: bytes, times: int) -> None:
    data = (data or b"x") * times
    if len(data) >= checksums.WORD:
        assert checksums._all_at_once(data) == checksums._one_by_one(data)


@given(st.integers(-(2**63), 2**64 - 1))
def test_numbers_are_written_as_protobuf_reads_them(number: int) -> None:
    read = sum((byte & 127) << 7 * place for place, byte in enumerate(varint(number)))
    assert read == number % 2**64
    assert [byte > 127 for byte in varint(number)] == [True] * (len(varint(number)) - 1) + [False]


def test_a_file_begins_with_its_version(tmp_path: Path) -> None:
    file = EventFile(str(tmp_path))
    assert [event.file_version for event in events(file.name)] == ["brain.Event:2"]


@pytest.mark.parametrize("cut", [1, 11, 12, 13, 25])
def test_a_file_cut_short_gives_the_events_before(cut: int, tmp_path: Path) -> None:
    file = EventFile(str(tmp_path))
    for step in range(3):
        file.add_summary(step, scalar("a", step))
    whole = Path(file.name).read_bytes()
    Path(file.name).write_bytes(whole[:-cut])
    assert [step for _, step, _ in scalars(tmp_path)] == [0, 1]


def test_a_killed_program_leaves_what_it_wrote(tmp_path: Path) -> None:
    program = (
        "import os, sys, cntk as C\n"
        "writer = C.logging.TensorBoardProgressWriter(log_dir=sys.argv[1])\n"
        "for step in range(20): writer.write_value('a', step, step)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode != 0
    assert scalars(tmp_path) == [("a", step, step) for step in range(20)]


def test_what_is_written_is_seen_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "first"
    writer = TensorBoardProgressWriter(log_dir=str(folder))
    assert not folder.exists()
    read = EventAccumulator(str(folder))
    for step in range(3):
        writer.write_value("loss", step / 2, step)
        read.Reload()
        assert [(s.step, s.value) for s in read.Scalars("loss")] == [(i, i / 2) for i in range(step + 1)]
    writer.close()


def test_writers_that_start_at_the_same_time_have_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1.5e9)
    writers = [TensorBoardProgressWriter(log_dir=str(tmp_path)) for _ in range(3)]
    for number, writer in enumerate(writers):
        writer.write_value("number", number, number)
    for writer in writers:
        writer.close()
    assert len(files(tmp_path)) == 3
    assert all(os.path.basename(name).startswith("events.out.tfevents.1500000000.") for name in files(tmp_path))
    assert sorted(scalars(tmp_path)) == [("number", number, number) for number in range(3)]


# ---- progress ------------------------------------------------------------------------------------


def trained(folder: Path, freq: int | None, with_metric: bool = True) -> None:
    """Two epochs of five minibatches, and a test; losses and metrics are sums over ten samples."""
    writer = TensorBoardProgressWriter(freq, log_dir=str(folder))
    for epoch in range(2):
        for number in range(5):
            writer.update_training(10, 10.0 * (5 * epoch + number), 20.0 if with_metric else 0.0)
        writer.summarize_training()
    writer.update_test(10, 5.0)
    writer.summarize_test()
    writer.close()


@pytest.mark.parametrize(
    ("freq", "updates"),
    [
        (None, []),
        (0, [(1, 0.0), (3, 1.5), (6, 5.0), (8, 6.5)]),
        (2, [(2, 0.5), (4, 2.5), (7, 5.5), (9, 7.5)]),
        (5, [(5, 2.0), (10, 7.0)]),
    ],
)
def test_losses_of_minibatches_and_summaries(freq: int | None, updates: list[tuple[int, float]], tmp_path: Path) -> None:
    trained(tmp_path, freq)
    read = board(tmp_path)
    found = {tag: [(s.step, s.value) for s in read.Scalars(tag)] for tag in read.Tags()["scalars"]}
    expected: dict[str, list[tuple[int, float]]] = {
        "summary/avg_loss": [(1, 2.0), (2, 7.0)],
        "summary/avg_metric": [(1, 2.0), (2, 2.0)],
        "minibatch/test_avg_metric": [(10, 0.5)],
    }
    if updates:
        expected |= {"minibatch/avg_loss": updates, "minibatch/avg_metric": [(step, 2.0) for step, _ in updates]}
    assert found == expected


def test_without_training_a_test_counts_tests(tmp_path: Path) -> None:
    writer = TensorBoardProgressWriter(log_dir=str(tmp_path))
    for metric in (4.0, 8.0):
        writer.update_test(4, metric)
        writer.summarize_test()
    writer.summarize_test()
    writer.close()
    assert scalars(tmp_path) == [
        ("summary/test_avg_metric", 1, 1.0),
        ("summary/test_avg_metric", 2, 2.0),
        ("summary/test_avg_metric", 3, 0.0),
    ]


def test_numbers_beyond_float32_are_written(tmp_path: Path) -> None:
    writer = TensorBoardProgressWriter(1, log_dir=str(tmp_path))
    with pytest.warns(UserWarning, match="the loss is nan"):
        writer.update_training(1, float("nan"), float("inf"))
    writer.write_value("large", -1e300, 2**63 - 1)
    writer.close()
    (_, _, loss), (_, _, metric), (_, step, large) = scalars(tmp_path)
    assert math.isnan(loss)
    assert (metric, step, large) == (math.inf, 2**63 - 1, -math.inf)


def test_steps_go_on_after_a_restart(tmp_path: Path) -> None:
    first = TensorBoardProgressWriter(2, log_dir=str(tmp_path))
    for _ in range(3):
        first.update_training(1, 1.0, 0.0)
    first.summarize_training()
    first.update_training(1, 5.0, 0.0)
    second = TensorBoardProgressWriter(2, log_dir=str(tmp_path))
    second.restore_from_checkpoint(first.create_checkpoint())
    second.update_training(1, 3.0, 0.0)
    second.summarize_training()
    second.close()
    read = board(tmp_path)
    assert [(s.step, s.value) for s in read.Scalars("minibatch/avg_loss")] == [(2, 1.0), (5, 4.0)]
    assert [(s.step, s.value) for s in read.Scalars("summary/avg_loss")] == [(1, 1.0), (2, 4.0)]


def test_only_the_first_worker_writes(tmp_path: Path) -> None:
    for rank in (0, 1):
        writer = TensorBoardProgressWriter(
            1, log_dir=str(tmp_path / str(rank)), rank=rank, model=C.layers.Dense(1)(C.input_variable(2)), parameter_histograms=True
        )
        writer.update_training(1, 1.0, 1.0)
        writer.summarize_training()
        writer.write_image("a", {"x": np.zeros((1, 1, 2, 2))}, 0)
        writer.write_histogram("a", [1.0], 0)
        writer.flush()
        writer.close()
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


def test_a_closed_writer_refuses(tmp_path: Path) -> None:
    writer = TensorBoardProgressWriter(1, log_dir=str(tmp_path))
    writer.flush()
    writer.close()
    assert writer.closed
    uses = [
        writer.close,
        writer.flush,
        lambda: writer.write_value("a", 1.0, 1),
        lambda: writer.write_image("a", {}, 1),
        lambda: writer.write_histogram("a", [1.0], 1),
        lambda: writer.update_training(1, 1.0, 1.0),
        writer.summarize_test,
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="closed"):
            use()
    assert files(tmp_path) == []


def test_what_it_refuses(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="function, got str"):
        TensorBoardProgressWriter(model="model")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="model"):
        TensorBoardProgressWriter(parameter_histograms=True)
    with pytest.raises(ValueError, match="-1"):
        TensorBoardProgressWriter(-1)
    writer = TensorBoardProgressWriter(log_dir=str(tmp_path))
    with pytest.raises(NotImplementedError, match="whole tests"):
        writer.on_write_test_update((0, 1), (0, 1), (0.0, 1.0))
    for step in (-1, 2**63):
        with pytest.raises(ValueError, match=str(step)):
            writer.write_value("a", 1.0, step)
    with pytest.raises(TypeError, match="ndarray"):
        writer.write_image("a", np.zeros((1, 1, 2, 2)), 0)  # type: ignore[arg-type]
    for shape in ((1, 2, 2), (1, 2, 3, 3), (1, 1, 1, 2, 2)):
        with pytest.raises(ValueError, match=r"1, 3 or 4 channels.*got one of shape \("):
            writer.write_image("a", {"x": np.zeros(shape)}, 0)
    assert files(tmp_path) == []


def test_it_conforms() -> None:
    check_progress_writer(TensorBoardProgressWriter)
    z = C.layers.Dense(1)(C.input_variable(2))
    check_progress_writer(lambda: TensorBoardProgressWriter(1, log_dir="runs", model=z, parameter_histograms=True))


@pytest.mark.parametrize("lost", [{"training": {}}, {"count": np.float32(1)}, None])
def test_a_writer_that_loses_its_counts_does_not_conform(lost: Any) -> None:
    class Forgetful(C.cntk_py.ProgressWriter):  # type: ignore[name-defined,misc]
        def create_checkpoint(self) -> Any:
            return lost if lost is None or "count" in lost else super().create_checkpoint()

        def restore_from_checkpoint(self, checkpoint: Any) -> None:
            """Forget it."""

    with pytest.raises(AssertionError, match="checkpoint"):
        check_progress_writer(Forgetful)


# ---- pictures and histograms ---------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_pictures_are_written_as_they_are(channels: int, dtype: Any, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    data = np.random.default_rng(1).integers(0, 256, (2, channels, 5, 7)).astype(dtype)
    writer = TensorBoardProgressWriter(log_dir=str(tmp_path))
    writer.write_image("seen", {"x": data, "list": list(data[:1])}, 7)
    writer.close()
    read = board(tmp_path)
    assert read.Tags()["images"] == [f"seen/image/{number}" for number in range(3)]
    for number, expected in enumerate((*data, data[0])):
        (found,) = read.Images(f"seen/image/{number}")
        assert (found.step, found.height, found.width) == (7, 5, 7)
        pixels = np.asarray(image.open(io.BytesIO(found.encoded_image_string))).reshape(5, 7, channels)
        red_green_blue = expected if channels == 1 else expected[[2, 1, 0, 3][:channels]]
        np.testing.assert_array_equal(pixels, red_green_blue.transpose(1, 2, 0))


def test_values_of_pictures_are_rounded_to_bytes(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    values = [-10, -0.5, 0, 0.4, 0.5, 0.6, 1.5, 128.5, 255.4, 300, np.nan, np.inf, -np.inf]
    x = C.input_variable((1, 1, len(values)))
    writer = TensorBoardProgressWriter(log_dir=str(tmp_path))
    writer.write_image("a", {x: C.Value(np.array([[[values]]], np.float32))}, 0)
    writer.close()
    pixels = np.asarray(image.open(io.BytesIO(board(tmp_path).Images("a/image/0")[0].encoded_image_string)))
    assert pixels.tolist() == [[0, 0, 0, 0, 1, 1, 2, 129, 255, 255, 255, 255, 0]]  # as CNTK 2.7 does


FINITE_IN_FLOAT32 = st.floats(-(2.0**126), 2.0**126, width=32) | st.sampled_from([np.nan, np.inf, -np.inf])


@settings(deadline=None, max_examples=50)
@given(
    arrays.arrays(np.float64, arrays.array_shapes(min_side=0), elements=FINITE_IN_FLOAT32)
    | arrays.arrays(np.float16, arrays.array_shapes(min_side=0))
)
def test_histograms_count_every_finite_value(values: Any) -> None:
    held = Event.FromString(b"\x2a" + varint(len(histogram("a", values))) + histogram("a", values)).summary.value[0]
    finite = np.asarray(values, np.float64)[np.isfinite(values)]
    assert held.histo.num == finite.size == sum(held.histo.bucket)
    buckets = data_compat.tensor_util.make_ndarray(data_compat.migrate_value(held).tensor)
    assert buckets.shape == (np.count_nonzero(buckets[:, 2]) if finite.size == 0 else len(buckets), 3)
    if finite.size:
        assert (held.histo.min, held.histo.max) == (finite.min(), finite.max())
        assert buckets[:, 2].sum() == finite.size
        assert (buckets[:, 0] <= buckets[:, 1]).all()
        np.testing.assert_array_equal(buckets[1:, 0], buckets[:-1, 1])


def test_a_histogram_of_the_largest_numbers() -> None:
    most = np.finfo(np.float64).max
    held = Event.FromString(b"\x2a" + varint(len(made := histogram("a", [-most, most, most]))) + made).summary.value[0].histo
    assert (held.min, held.max, held.num, held.sum_squares) == (-most, most, 3, np.inf)
    assert (held.bucket[0], held.bucket[-1], held.bucket_limit[-1]) == (1, 2, most)


def test_parameters_at_each_summary(tmp_path: Path) -> None:
    x, y = C.input_variable(2), C.input_variable(1)
    z = C.layers.Dense(1, name="out")(x)
    trainer_writer = TensorBoardProgressWriter(log_dir=str(tmp_path), model=z, parameter_histograms=True)
    learner = C.sgd(z.parameters, C.learning_parameter_schedule(0.1))
    trainer = C.Trainer(z, (C.squared_error(z, y), None), [learner], [trainer_writer])
    values: dict[str, list[Any]] = {"W": [], "b": []}
    for _ in range(2):
        trainer.train_minibatch({x: np.ones((4, 2), np.float32), y: np.ones((4, 1), np.float32)})
        trainer.summarize_training_progress()
        for parameter in z.parameters:
            values[parameter.name].append(parameter.value)
    trainer_writer.close()
    read = board(tmp_path)
    assert sorted(read.Tags()["histograms"]) == ["parameters/out/W", "parameters/out/b"]
    for name, history in values.items():
        found = read.Histograms(f"parameters/out/{name}")
        assert [h.step for h in found] == [1, 2]
        for held, value in zip(found, history, strict=True):
            assert held.histogram_value.sum == pytest.approx(value.sum(dtype=np.float64))
            assert held.histogram_value.num == value.size


def test_as_a_callback_of_train(tmp_path: Path) -> None:
    x, y = C.input_variable(2), C.input_variable(1)
    z = C.layers.Dense(1)(x)
    criterion = C.combine(C.squared_error(z, y), C.squared_error(z, y))
    writer = TensorBoardProgressWriter(2, log_dir=str(tmp_path), model=criterion)
    learner = C.sgd(z.parameters, C.learning_parameter_schedule(0.1))
    data = np.ones((16, 2), np.float32), np.ones((16, 1), np.float32)
    progress = criterion.train(data, minibatch_size=4, max_epochs=2, parameter_learners=[learner], callbacks=[writer])
    result = criterion.test(data, minibatch_size=4, callbacks=[writer])
    writer.close()
    read = board(tmp_path)
    assert [(s.step, s.value) for s in read.Scalars("summary/avg_loss")] == [
        (number + 1, pytest.approx(summary.loss)) for number, summary in enumerate(progress.epoch_summaries)
    ]
    assert [s.step for s in read.Scalars("minibatch/avg_loss")] == [2, 4, 6, 8]
    assert [(s.step, s.value) for s in read.Scalars("minibatch/test_avg_metric")] == [(8, pytest.approx(result.metric))]
    assert read.Graph().node
