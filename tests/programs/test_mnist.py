"""The digit example: its reader, and a whole run on each kind of data."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest


def idx_bytes(array: Any) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files_are_read(example: Callable[[str], ModuleType], tmp_path: Path, suffix: str) -> None:
    array = np.arange(24).reshape(2, 3, 4)
    data = idx_bytes(array)
    path = tmp_path / f"images{suffix}"
    path.write_bytes(gzip.compress(data) if suffix else data)
    np.testing.assert_array_equal(example("idx").read_idx(path, 3), array)


GOOD = idx_bytes(np.arange(6).reshape(1, 2, 3))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "begins with the bytes"),
        (idx_bytes(np.arange(6)), "an IDX file of 3 axes begins with 00 00 08 03"),
        (GOOD[:10], "ends at byte 10, within the sizes of its 3 axes"),
        (GOOD[:-1], "needs 6 bytes of data, the file holds only 5"),
        (GOOD + b"x", "needs 6 bytes of data, the file holds more"),
        (GOOD[:4] + b"\xff" * 12, "are not read"),
    ],
    ids=["empty", "labels", "no header", "too short", "too long", "too large"],
)
def test_what_is_no_idx_file_is_refused(example: Callable[[str], ModuleType], tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "images"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as caught:
        example("idx").read_idx(path, 3)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("data", [b"no gzip file", gzip.compress(GOOD)[:-12]], ids=["other", "cut"])
def test_a_damaged_gzip_file_is_refused(example: Callable[[str], ModuleType], tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="damaged gzip file"):
        example("idx").read_idx(path, 3)


def test_a_folder_without_mnist_says_what_is_missing(example: Callable[[str], ModuleType], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file called t10k-images-idx3-ubyte or"):
        example("mnist").load(str(tmp_path))


@pytest.mark.slow
def test_bundled_digits_are_recognised(example: Callable[[str], ModuleType], tmp_path: Path) -> None:
    picture = tmp_path / "pictures" / "digits.png"
    assert example("mnist").main(["--epochs", "4", "--output", str(picture)]) < 0.06
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_mnist_is_recognised(example: Callable[[str], ModuleType], tmp_path: Path, real_data: Path) -> None:
    error = example("mnist").main(["--epochs", "2", "--data", str(real_data), "--output", str(tmp_path / "digits.png")])
    assert error < 0.055
