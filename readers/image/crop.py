"""Crops."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.common.shape import FreeDimension, Shape
from .transform import Transform

CROP_TYPES = ("center", "randomside", "randomarea", "multiview10")
JITTER_TYPES = ("none", "uniratio")
VIEWS = 10
"""Views of ``multiview10``: four corners and the centre, and the same mirrored."""

Range = tuple[float, float]


@dataclass(frozen=True)
class Crop(Transform):
    """Cuts a rectangle out of an image; random ones are mirrored half the time.

    Its size is *crop_size*, or else a square as ratio of the shorter side or of the area, changed to *aspect_ratio* with the same area.
    What is larger than the image is cut to it, or the image left whole.

    Attributes:
        crop_type: where it lies: one of CROP_TYPES, in any case.
        crop_size: width and height in pixels, 0 for none.
        side_ratio: range of the square's side divided by the image's shorter side, 0 for none.
        area_ratio: range of its area divided by the image's, 0 for none.
        aspect_ratio: range of the ratio of its sides; which one is the longer is left to chance.
        jitter_type: what is taken of a range: the smallest (``'none'``) or any (``'uniratio'``).

    Raises:
        ValueError: another type, or a range outside (0, 1].
    """

    draws: ClassVar[bool] = True

    crop_type: str = "center"
    crop_size: tuple[int, int] = (0, 0)
    side_ratio: Range = (0.0, 0.0)
    area_ratio: Range = (0.0, 0.0)
    aspect_ratio: Range = (1.0, 1.0)
    jitter_type: str = "none"

    def __post_init__(self) -> None:
        for name, given, known in (("crop_type", self.crop_type, CROP_TYPES), ("jitter_type", self.jitter_type, JITTER_TYPES)):
            if given.lower() not in known:
                raise ValueError(f"crop: {name} must be one of {', '.join(known)}; got '{given}'")
        if min(self.crop_size) < 0:
            raise ValueError(f"crop: crop_size must not be negative, got {self.crop_size}")
        for name, (low, high) in (("side_ratio", self.side_ratio), ("area_ratio", self.area_ratio)):
            if high and not 0 < low <= high <= 1:
                raise ValueError(f"crop: {name} must lie in (0, 1], got {low} to {high}")
        if not 0 < self.aspect_ratio[0] <= self.aspect_ratio[1]:
            raise ValueError(f"crop: aspect_ratio must be positive, got {self.aspect_ratio[0]} to {self.aspect_ratio[1]}")

    @property
    def views(self) -> int:  # type: ignore[override]
        """Ten of ``multiview10``, else one."""
        return VIEWS if self.crop_type.lower() == "multiview10" else 1

    def check(self) -> None:
        """Raise ValueError if both ratios are given: a size that does not count excuses neither."""
        if self.side_ratio[1] and self.area_ratio[1]:
            raise ValueError(f"crop: give side_ratio or area_ratio, not both; got {self.side_ratio} and {self.area_ratio}")

    def __call__(self, image: Any, random: np.random.Generator, view: int) -> Any:
        height, width = image.shape[:2]
        across, down = self._size(width, height, random)
        x, y = self._place(width - across, height - down, random, view)
        cut = image[y : y + down, x : x + across]
        return cut[:, ::-1] if self._is_mirrored(random, view) else cut

    def _size(self, width: int, height: int, random: np.random.Generator) -> tuple[int, int]:
        """Width and height of the rectangle."""
        if all(self.crop_size):
            return min(self.crop_size[0], width), min(self.crop_size[1], height)
        if self.side_ratio[1]:
            side = min(width, height) * self._any_of(self.side_ratio, random)
        elif self.area_ratio[1]:
            side = math.sqrt(width * height * self._any_of(self.area_ratio, random))
        else:
            return width, height
        side = max(math.floor(side + 0.5), 1)
        aspect = self._any_of(self.aspect_ratio, random)
        if aspect == 1:
            sizes = [(side, side)]
        else:
            root = math.sqrt(aspect)
            sizes = [(max(int(side * root), 1), max(int(side / root), 1))]
            sizes.append(sizes[0][::-1])
            if random.random() < 0.5:
                sizes.reverse()
        return next(((across, down) for across, down in sizes if across <= width and down <= height), (width, height))

    def _any_of(self, given: Range, random: np.random.Generator) -> float:
        low, high = given
        ratio = random.uniform(low, high) if self.jitter_type.lower() == "uniratio" and low < high else low
        return float(np.float32(ratio))  # CNTK keeps ratios so, and cuts fractions of pixels off

    def _place(self, x_left: int, y_left: int, random: np.random.Generator, view: int) -> tuple[int, int]:
        """Left and upper edge, where so many pixels are left over."""
        kind = self.crop_type.lower()
        if kind.startswith("random"):
            return int(random.integers(x_left + 1)), int(random.integers(y_left + 1))
        if kind == "center" or view % 5 == 4:
            return x_left // 2, y_left // 2
        return x_left * (view % 5 % 2), y_left * (view % 5 // 2)

    def _is_mirrored(self, random: np.random.Generator, view: int) -> bool:
        if self.crop_type.lower().startswith("random"):
            return bool(random.random() < 0.5)
        return view >= VIEWS // 2

    def shape(self, shape: Shape) -> Shape:
        channels, *sides = shape
        if FreeDimension in sides:
            return (channels, FreeDimension, FreeDimension)
        if all(self.crop_size):
            return (channels, min(self.crop_size[1], sides[0]), min(self.crop_size[0], sides[1]))
        return shape if not (self.side_ratio[1] or self.area_ratio[1]) else (channels, FreeDimension, FreeDimension)

    def config(self) -> dict[str, Any]:
        ranges = {"cropSize": self.crop_size, "sideRatio": self.side_ratio, "areaRatio": self.area_ratio, "aspectRatio": self.aspect_ratio}
        told = {name: f"{low:g}:{high:g}" for name, (low, high) in ranges.items()}
        return {"type": "Crop", "cropType": self.crop_type, **told, "jitterType": self.jitter_type}
