"""From the bytes of a file to pixels."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

ORIENTATION = 0x0112
"""EXIF's tag that says how a camera was held."""


def decode(data: bytes, grayscale: bool) -> Any:
    """Decode an image of any format that Pillow reads.

    Args:
        data: the bytes of the file.
        grayscale: whether to convert it to shades of grey.

    Returns:
        Array ``(height, width, channels)`` of uint8; channels are blue, green, red, or grey alone.

    Raises:
        ValueError: it is not an image, or a damaged one.
        ImportError: Pillow is not installed.
    """
    Image, ImageOps = _pillow()
    mode = "L" if grayscale else "RGB"
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.draft(mode, None)
            if image.getexif().get(ORIENTATION, 1) != 1:
                image = ImageOps.exif_transpose(image)
            if image.mode.startswith("I;16"):
                image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
            pixels = np.asarray(image if image.mode == mode else image.convert(mode))
    except Exception as error:  # decoders may raise anything for a damaged file
        unknown = type(error).__name__ == "UnidentifiedImageError"
        raise ValueError(f"it is not an image of a format that Pillow reads{'' if unknown else f', or a damaged one: {error}'}") from None
    return pixels[:, :, None] if grayscale else pixels[:, :, ::-1]


def _pillow() -> tuple[Any, Any]:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise ImportError("images are decoded with Pillow; install it with: pip install 'opencntk[image]'") from None
    return Image, ImageOps
