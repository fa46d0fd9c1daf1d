"""Transforms of images on their way into minibatches.

A list of transforms goes into the ``StreamDef`` of a stream of images, in the order in which they are done.  Instead of one of these it may
hold any function of an image, a random number generator and the number of the view: see ``cntk.readers.image.transform``.
"""

from __future__ import annotations

from typing import Any

from cntk.core.types.arguments import checked
from cntk.internal import sanitize_2d_number, sanitize_range
from cntk.readers.image.color import Color
from cntk.readers.image.crop import Crop
from cntk.readers.image.mean import Mean
from cntk.readers.image.scale import Scale

__all__ = ["color", "crop", "mean", "scale"]


@checked
def crop(
    crop_type: str = "center",
    crop_size: Any = 0,
    side_ratio: Any = 0.0,
    area_ratio: Any = 0.0,
    aspect_ratio: Any = 1.0,
    jitter_type: str = "none",
) -> Crop:
    """Cut a rectangle out of each image.

    A crop larger than the image is cut to the image if *crop_size* is given; otherwise the whole image is used.

    Args:
        crop_type: where the rectangle lies: ``'center'``; ``'randomside'`` or ``'randomarea'``, which are the same: anywhere, and mirrored
            half the time; ``'multiview10'``: ten samples of each image, from the corners and the centre, and these mirrored.
        crop_size: width and height in pixels, or one number for both; 0 for a size by ratio.
        side_ratio: side of a square, as ratio of the image's shorter side, or a range of it.
        area_ratio: its area, as ratio of the image's, or a range; not together with *side_ratio*.
        aspect_ratio: ratio of the sides, or a range; the area stays, and which side is the longer one is left to chance.
        jitter_type: ``'uniratio'`` draws from the ranges, ``'none'`` takes their smallest.

    Returns:
        The transform.

    Raises:
        ValueError: another type, a range from the larger to the smaller number, or a ratio that is not in (0, 1].

    >>> C.io.transforms.crop("randomside", side_ratio=(0.5, 1), jitter_type="uniratio").side_ratio
    (0.5, 1)
    """
    width, height = (_pixels(size) for size in sanitize_2d_number(crop_size))
    ranges = sanitize_range(side_ratio), sanitize_range(area_ratio), sanitize_range(aspect_ratio)
    return Crop(crop_type, (width, height), *ranges, jitter_type)


def _pixels(size: float) -> int:
    if not abs(size) < 2**31:
        raise ValueError(f"crop: crop_size must be a number of pixels, got {size!r}")
    return int(size)


@checked
def scale(width: int, height: int, channels: int, interpolations: str = "linear", scale_mode: str = "fill", pad_value: int = -1) -> Scale:
    """Bring each image to one size.

    Args:
        width: the new width in pixels.
        height: the new height.
        channels: 3, or 1 for images in shades of grey.
        interpolations: ``'nearest'``, ``'linear'``, ``'cubic'`` or ``'lanczos'``.
        scale_mode: ``'fill'`` stretches the image; ``'crop'`` covers the new size and cuts off what is too much; ``'pad'`` puts the whole
            image into the middle and fills up the rest.
        pad_value: the value of the padding; -1 for the pixels of the edge.

    Returns:
        The transform.

    Raises:
        ValueError: a size, mode or interpolation that is none.

    >>> C.io.transforms.scale(width=224, height=160, channels=3).shape((3, 100, 100))
    (3, 160, 224)
    """
    return Scale(width, height, channels, interpolations, scale_mode, pad_value)


@checked
def mean(filename: str) -> Mean:
    """Subtract a mean image from each image.

    Args:
        filename: XML file as OpenCV writes matrices, with ``Channel``, ``Row``, ``Col`` and the matrix ``MeanImg``.  It is read when it is
            first needed.

    Returns:
        The transform.

    >>> C.io.transforms.mean("mean.xml").config()
    {'type': 'Mean', 'meanFile': 'mean.xml'}
    """
    return Mean(filename)


@checked
def color(brightness_radius: float = 0.0, contrast_radius: float = 0.0, saturation_radius: float = 0.0) -> Color:
    """Change the colours of each image at random; values stay within 0 … 255.

    Args:
        brightness_radius: up to this part of the mean of the image is added to it or taken away.
        contrast_radius: its values are multiplied by up to so much more or less than 1.
        saturation_radius: the same for its saturation.

    Returns:
        The transform.

    Raises:
        ValueError: a radius outside 0 … 1.

    >>> C.io.transforms.color(brightness_radius=0.2).brightness_radius
    0.2
    """
    return Color(brightness_radius, contrast_radius, saturation_radius)
