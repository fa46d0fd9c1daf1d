"""Scaling to a size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.common.shape import Shape
from .resize import INTERPOLATIONS, resize
from .transform import Transform

SCALE_MODES = ("fill", "crop", "pad")


@dataclass(frozen=True)
class Scale(Transform):
    """Scales images to one size.

    Attributes:
        width: the new width.
        height: the new height.
        channels: 3, or 1 for images in shades of grey.
        interpolations: one of INTERPOLATIONS, in any case.
        scale_mode: stretch the image (``'fill'``), cut off what is too much (``'crop'``) or fill up what is missing (``'pad'``).
        pad_value: what it is filled up with; -1 for the pixels of the edge.

    Raises:
        ValueError: an invalid size, mode or interpolation.
    """

    width: int
    height: int
    channels: int
    interpolations: str = "linear"
    scale_mode: str = "fill"
    pad_value: int = -1

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise ValueError(f"scale: width and height must be positive, got {self.width} and {self.height}")
        if self.channels not in (1, 3):
            raise ValueError(f"scale: channels must be 3 (blue, green, red) or 1 (grey), got {self.channels}")
        if self.interpolations.lower() not in INTERPOLATIONS:
            raise ValueError(f"scale: interpolations must be one of {', '.join(INTERPOLATIONS)}; got '{self.interpolations}'")
        if self.scale_mode not in SCALE_MODES:
            raise ValueError(f"scale: scale_mode must be one of {', '.join(SCALE_MODES)}; got '{self.scale_mode}'")

    def __call__(self, image: Any, random: np.random.Generator, view: int) -> Any:
        height, width, channels = image.shape
        if channels != self.channels:
            raise ValueError(f"scale: expected an image of {self.channels} channels, got {channels}")
        ratios = self.width / width, self.height / height
        if self.scale_mode == "fill" or ratios[0] == ratios[1]:
            return self._resized(image, self.width, self.height)
        ratio = max(ratios) if self.scale_mode == "crop" else min(ratios)
        across = self.width if ratio == ratios[0] else _rounded(width * ratio)
        down = self.height if ratio == ratios[1] else _rounded(height * ratio)
        resized = self._resized(image, across, down)
        return self._cut(resized) if self.scale_mode == "crop" else self._padded(resized)

    def _resized(self, image: Any, width: int, height: int) -> Any:
        return resize(image, width, height, self.interpolations.lower())

    def _cut(self, image: Any) -> Any:
        y, x = (image.shape[0] - self.height) // 2, (image.shape[1] - self.width) // 2
        return image[y : y + self.height, x : x + self.width]

    def _padded(self, image: Any) -> Any:
        left_over = self.height - image.shape[0], self.width - image.shape[1]
        edges = [(n // 2, n - n // 2) for n in left_over] + [(0, 0)]
        if self.pad_value == -1:
            return np.pad(image, edges, mode="edge")
        return np.pad(image, edges, constant_values=self.pad_value)

    def shape(self, shape: Shape) -> Shape:
        return (self.channels, self.height, self.width)

    def config(self) -> dict[str, Any]:
        settings = {"width": self.width, "height": self.height, "channels": self.channels, "interpolations": self.interpolations}
        return {"type": "Scale", **settings, "scaleMode": self.scale_mode, "padValue": self.pad_value}


def _rounded(size: float) -> int:
    return max(int(np.floor(size + 0.5)), 1)
