"""Event files read: while they grow, cut off, damaged, and those of TensorBoard's own writer."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from cntk.plugins.progress import event_reader
from cntk.plugins.progress.event_file import EventFile, histogram, scalar
from cntk.plugins.progress.event_reader import EventReader, Number

STEPS = 40


@pytest.fixture
def written(tmp_path: Path) -> EventFile:
    file = EventFile(str(tmp_path))
    for step in range(1, STEPS + 1):
        file.add_summary(step, scalar("loss", step / 2) + histogram("weights", [1.0, 2.0]) + scalar("metric", -step))
    return file


def numbers(steps: range) -> list[Number]:
    return [number for step in steps for number in (Number("loss", step, step / 2), Number("metric", step, -step))]


def test_numbers_come_once_and_those_that_are_added_the_next_time(written: EventFile) -> None:
    reader = EventReader(written.name)
    assert list(reader.read()) == numbers(range(1, STEPS + 1))
    assert list(reader.read()) == []
    written.add_summary(99, scalar("loss", math.nan))
    (number,) = reader.read()
    assert number.step == 99
    assert math.isnan(number.value)
    assert reader.damaged == 0


def test_a_file_that_grows_byte_by_byte(written: EventFile, tmp_path: Path) -> None:
    data, path, found = Path(written.name).read_bytes(), tmp_path / "growing", []
    path.touch()
    reader = EventReader(str(path))
    for at in range(len(data)):
        with path.open("ab") as file:
            file.write(data[at : at + 1])
        found += reader.read()
    assert found == numbers(range(1, STEPS + 1))
    assert reader.damaged == 0


def test_a_file_that_begins_again(written: EventFile, tmp_path: Path) -> None:
    data, path = Path(written.name).read_bytes(), tmp_path / "again"
    path.write_bytes(data)
    reader = EventReader(str(path))
    list(reader.read())
    path.write_bytes(data[: len(data) // 2])
    again = list(reader.read())
    assert again == numbers(range(1, STEPS + 1))[: len(again)]
    assert len(again) >= STEPS - 2


@pytest.mark.parametrize("seed", range(40))
def test_what_is_whole_around_damage_is_read(written: EventFile, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    data = bytearray(Path(written.name).read_bytes())
    at = draw.randrange(len(data))
    if seed % 2:
        data[at] ^= 1 << draw.randrange(8)
    else:
        data[at:at] = bytes(3000) if seed % 4 else draw.randbytes(3000)
    path = tmp_path / "damaged"
    path.write_bytes(data)
    reader = EventReader(str(path))
    found = list(reader.read())
    assert [number for number in numbers(range(1, STEPS + 1)) if number in found] == found
    assert len(found) >= 2 * (STEPS - 1)
    assert reader.damaged >= 1 or len(found) == 2 * STEPS


@pytest.mark.parametrize("content", [b"", b"\0", bytes(10_000), b"text" * 10_000, random.Random(1).randbytes(200_000)])
def test_other_files_have_no_numbers(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    assert list(EventReader(str(path)).read()) == []


def test_large_records_are_passed_over(written: EventFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_reader, "LARGEST", 500)
    written.add_summary(50, scalar("x" * 1000, 1.0))
    written.add_summary(51, scalar("x", 1.0))
    assert list(EventReader(written.name).read())[-1] == Number("x", 51, 1.0)


def test_files_of_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path))
    values = [Summary.Value(tag="loss", simple_value=0.5), Summary.Value(tag="text")]
    writer.add_event(Event(step=7, wall_time=1.0, summary=Summary(value=values)))
    writer.close()
    (path,) = tmp_path.iterdir()
    assert list(EventReader(str(path)).read()) == [Number("loss", 7, 0.5)]
