"""The mean image, subtracted."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ...core.common.cached_property import cached_property
from .transform import Transform

LARGEST = float(np.finfo(np.float32).max)


class Mean(Transform):
    """Subtracts the mean image of a file from each image.

    The file is XML as OpenCV writes matrices: numbers ``Channel``, ``Row`` and ``Col``, and a matrix ``MeanImg`` of their product of
    numbers, row by row, the channels of a pixel together.  It is read when it is first needed.

    Args:
        filename: the file.
    """

    def __init__(self, filename: str) -> None:
        self.filename = os.fspath(filename)

    def __call__(self, image: Any, random: np.random.Generator, view: int) -> Any:
        if image.shape != self._mean.shape:
            raise RuntimeError(
                f"mean: the image in '{self.filename}' has {_size(self._mean)}, the one it is to be taken from {_size(image)}; "
                "scale to that size before"
            )
        return image - self._mean

    @cached_property
    def _mean(self) -> Any:
        return read_mean(self.filename)

    def config(self) -> dict[str, Any]:
        return {"type": "Mean", "meanFile": self.filename}


def read_mean(path: str) -> Any:
    """The mean image of a file.

    Args:
        path: the file.

    Returns:
        Array ``(height, width, channels)`` of float32.

    Raises:
        RuntimeError: there is no such file, or it is of another format.
    """
    from xml.etree import ElementTree

    try:
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise RuntimeError(f"cannot read the mean file '{path}': {error.strerror or error}") from None
    except ElementTree.ParseError as error:
        raise RuntimeError(f"mean file '{path}': it is not XML: {error}") from None
    channels, rows, columns = (int(_numbers(root, name, path)[0]) for name in ("Channel", "Row", "Col"))
    numbers = _numbers(root, "MeanImg/data", path)
    if len(numbers) != channels * rows * columns or min(channels, rows, columns) < 1:
        size = f"{rows} rows of {columns} pixels of {channels} channels"
        raise RuntimeError(f"mean file '{path}': {size}, but {len(numbers)} numbers in MeanImg")
    return np.array(numbers, np.float32).reshape(rows, columns, channels)


def _numbers(root: Any, name: str, path: str) -> list[float]:
    text = root.findtext(name)
    try:
        numbers = [float(word) for word in (text or "").split()]
    except ValueError as error:
        raise RuntimeError(f"mean file '{path}': {name}: {error}") from None
    if not all(abs(number) <= LARGEST for number in numbers):
        raise RuntimeError(f"mean file '{path}': {name} has a number that is infinite, not a number or too large for float32")
    if not numbers:
        raise RuntimeError(f"mean file '{path}': {name} is missing or empty; expected <Channel>, <Row>, <Col> and <MeanImg><data>")
    return numbers


def _size(image: Any) -> str:
    height, width, channels = image.shape
    return f"{width} x {height} pixels of {channels} channels"
