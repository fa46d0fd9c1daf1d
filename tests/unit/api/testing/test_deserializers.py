"""The conformance kit passes deserializers that keep their contract, and finds what the others do wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntk.io import CTFDeserializer, StreamDef, StreamDefs, StreamInformation
from cntk.readers.bundle import Bundle
from cntk.readers.deserializer import Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos, StreamData
from cntk.testing import check_deserializer

LABELS = "".join(f"{i} |y {i % 3}:1\n" for i in range(0, 20, 2))
TEXT = "".join(f"{i} |x {i} {j}{f' |y {j}:1' if not j else ''}\n" for i in range(20) for j in range(i % 3 + 1))


class Good(Deserializer):
    """Chunks of three sequences, of two steps each."""

    name, count, lengths, dtype, rows = "n", 4, 2, np.float32, 6

    def stream_infos(self) -> list[StreamInformation]:
        return [StreamInformation(self.name, 0, "dense", np.float32, (1,))]

    def chunk_infos(self) -> list[ChunkInfo]:
        return [ChunkInfo(3, 6)] * self.count

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        return SequenceInfos(np.full(3, self.lengths), np.arange(3) + 3 * chunk)

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        return {"n": StreamData.of_lengths(np.arange(self.rows, dtype=self.dtype)[:, None] + 6 * chunk, [2, 2, 2])}


class Fickle(Good):
    """Is never the same."""

    reads = 0

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        self.reads += 1
        return super().get_chunk(chunk + self.reads, errors)


def ctf(folder: Path, text: str, chunk: int, **streams: Any) -> CTFDeserializer:
    file = folder / f"{len(text)}.ctf"
    file.write_text(text)
    deserializer = CTFDeserializer(str(file), StreamDefs(**streams))
    deserializer["chunkSizeInBytes"] = chunk
    return deserializer


@pytest.mark.parametrize("chunk", [1, 100, 10000])
@pytest.mark.parametrize("defining", [False, True])
def test_built_in_deserializers_conform(tmp_path: Path, chunk: int, defining: bool) -> None:
    x, y = StreamDef(field="x", shape=2), StreamDef(field="y", shape=3, is_sparse=True, defines_mb_size=defining)
    check_deserializer(lambda: ctf(tmp_path, TEXT, chunk, x=x, y=y))
    with pytest.warns(UserWarning, match="10 sequences of the leading deserializer are left out"):
        check_deserializer(lambda: Bundle([ctf(tmp_path, TEXT, chunk, x=x), ctf(tmp_path, LABELS, 20, y=y)]))


def test_one_that_conforms() -> None:
    check_deserializer(Good)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 0}, "there must be a chunk"),
        ({"lengths": 3}, "said to have 3 sequences with 6 samples; sequence_infos gives 3 lengths that add up to 9"),
        ({"dtype": np.float64}, "expected dense float32 of shape"),
        ({"rows": 7}, "expected samples of 3 sequences"),
        ({"name": "m"}, "must have the streams"),
    ],
)
def test_what_is_wrong_is_found(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_deserializer(type("Bad", (Good,), changes))


def test_data_that_changes_is_found() -> None:
    with pytest.raises(AssertionError, match="read twice, the data differs"):
        check_deserializer(Fickle)


def test_what_is_no_deserializer_is_found() -> None:
    with pytest.raises(AssertionError, match="this is a dict"):
        check_deserializer(dict)
