"""Brightness, contrast and saturation, changed at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .transform import Transform


@dataclass(frozen=True)
class Color(Transform):
    """Changes the colours of an image; values stay within 0 … 255.

    Attributes:
        brightness_radius: up to this part of the image's mean is added or taken away.
        contrast_radius: values are multiplied by up to so much more or less than 1.
        saturation_radius: the same for saturation; grey images have none.

    Raises:
        ValueError: a radius outside 0 … 1.
    """

    draws: ClassVar[bool] = True

    brightness_radius: float = 0.0
    contrast_radius: float = 0.0
    saturation_radius: float = 0.0

    def __post_init__(self) -> None:
        for name, radius in vars(self).items():
            if not 0 <= radius <= 1:
                raise ValueError(f"color: {name} must lie in 0 … 1, got {radius}")

    def __call__(self, image: Any, random: np.random.Generator, view: int) -> Any:
        brightness, contrast, saturation = (radius * random.uniform(-1, 1) for radius in vars(self).values())
        image = image.astype(np.float32, order="K")
        if self.brightness_radius or self.contrast_radius:
            shift = np.float32(brightness * image.mean())
            image *= np.float32(1 + contrast)
            image += shift
            np.clip(image, 0, 255, out=image)
        if self.saturation_radius and image.shape[2] == 3:
            _saturate(image, np.float32(1 + saturation))
        return image

    def config(self) -> dict[str, Any]:
        radii = {"brightnessRadius": self.brightness_radius, "contrastRadius": self.contrast_radius}
        return {"type": "Color", **radii, "saturationRadius": self.saturation_radius}


def _saturate(image: Any, ratio: Any) -> None:
    """The saturation in the model of hue, saturation and value is (largest - smallest) / largest; hue and value stay."""
    blue, green, red = (image[:, :, i] for i in range(3))
    largest = np.maximum(np.maximum(blue, green), red)
    spread = largest - np.minimum(np.minimum(blue, green), red)
    factor = np.divide(largest, spread, out=np.ones_like(spread), where=spread > 0)
    np.minimum(factor, ratio, out=factor)
    largest *= 1 - factor
    for channel in (blue, green, red):
        channel *= factor
        channel += largest
