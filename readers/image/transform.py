"""The protocol of transforms of images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from ...core.common.shape import Shape


class Transform(ABC):
    """Base class of transforms; they are called in several threads at once, so they keep nothing between calls.

    Attributes:
        draws: whether it draws random numbers.
        views: how many samples it makes from an image.
    """

    draws: ClassVar[bool] = False
    views: int = 1

    @abstractmethod
    def __call__(self, image: Any, random: np.random.Generator, view: int) -> Any:
        """Transform an image.

        Args:
            image: array ``(height, width, channels)``, not to be changed.
            random: the only source of random numbers; it depends on the source's seed, the sweep and the image's key.
            view: which of the views is wanted, from 0.

        Raises:
            ValueError: the image is not of the kind it needs.
        """

    def shape(self, shape: Shape) -> Shape:
        """Shape ``(channels, height, width)`` of its result for images of *shape*; a dimension may be free (-3)."""
        return shape

    def config(self) -> dict[str, Any]:
        """Its type and settings, as a reader's configuration has them."""
        return {"type": type(self).__name__}
