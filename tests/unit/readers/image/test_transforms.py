"""What is done to images.  Sizes, places and numbers were measured on CNTK 2.7."""

from __future__ import annotations

import colorsys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntk.io import transforms
from cntk.readers.image import resize as resizing
from cntk.readers.image.resize import INTERPOLATIONS, resize

IMAGE = ((np.arange(36).reshape(3, 4, 3) * 67 + 11 * np.arange(3)) % 256).astype(np.uint8)
RESIZED = {
    "nearest": [[0, 0, 201, 146, 91], [36, 36, 237, 182, 127]],
    "linear": [[9, 150, 182, 138, 100], [63, 69, 140, 192, 154]],
    "cubic": [[0, 165, 210, 130, 95], [65, 51, 145, 211, 153]],
    "lanczos": [[0, 170, 220, 118, 97], [70, 47, 146, 215, 151]],
}
ENLARGED = {
    "nearest": [0, 0, 201, 146, 146, 91],
    "linear": [14, 115, 206, 169, 133, 105],
    "cubic": [0, 128, 240, 177, 123, 98],
    "lanczos": [0, 131, 248, 181, 108, 102],
}


def apply(transform: Any, image: Any, seed: int = 0, view: int = 0) -> Any:
    return transform(image, np.random.default_rng(seed), view)


def grid(width: int, height: int) -> Any:
    """An image that says of each pixel where it is."""
    image = np.zeros((height, width, 3), np.float32)
    image[:, :, 0], image[:, :, 1] = np.arange(width), np.arange(height)[:, None]
    return image


def rectangle(transform: Any, width: int, height: int, seed: int = 0, view: int = 0) -> tuple[int, int, int, int, bool]:
    """Width, height, left and upper edge of what is cut out, and whether it is mirrored."""
    cut = apply(transform, grid(width, height), seed, view)
    across, down = cut[0, :, 0], cut[:, 0, 1]
    mirrored = len(across) > 1 and across[1] < across[0]
    assert (np.diff(across) == (-1 if mirrored else 1)).all()
    assert (np.diff(down) == 1).all()
    return len(across), len(down), int(across.min()), int(down[0]), bool(mirrored)


# ---- crop ----


@pytest.mark.parametrize(
    ("width", "height", "settings", "expected"),
    [
        (40, 20, {}, (40, 20, 0, 0)),
        (40, 20, {"crop_size": 10}, (10, 10, 15, 5)),
        (29, 37, {"crop_size": (10, 11)}, (10, 11, 9, 13)),
        (29, 37, {"crop_size": (200, 3)}, (29, 3, 0, 17)),
        (40, 20, {"crop_size": (0, 10)}, (40, 20, 0, 0)),
        (40, 20, {"crop_size": 8, "side_ratio": 0.9}, (8, 8, 16, 6)),
        (40, 20, {"side_ratio": 0.33}, (7, 7, 16, 6)),
        (40, 20, {"side_ratio": (0.2, 0.5)}, (4, 4, 18, 8)),
        (40, 20, {"area_ratio": 0.33}, (16, 16, 12, 2)),
        (40, 20, {"area_ratio": 0.7777}, (40, 20, 0, 0)),
        (40, 20, {"area_ratio": 0.5, "aspect_ratio": 0.64}, (25, 15, 7, 2)),
        (150, 200, {"side_ratio": 0.9, "aspect_ratio": 0.64}, (107, 168, 21, 16)),
        (40, 20, {"side_ratio": 0.7, "aspect_ratio": 0.05}, (40, 20, 0, 0)),
    ],
)
def test_the_centre_is_cut_out(width: int, height: int, settings: dict[str, Any], expected: tuple[int, ...]) -> None:
    assert rectangle(transforms.crop(**settings), width, height) == (*expected, False)


def test_which_side_is_the_longer_one_is_left_to_chance() -> None:
    crop = transforms.crop(side_ratio=0.5, aspect_ratio=0.5)
    assert {rectangle(crop, 40, 20, seed)[:2] for seed in range(20)} == {(14, 7), (7, 14)}


@pytest.mark.parametrize("kind", ["randomside", "RandomArea"])
def test_random_crops_lie_anywhere_and_are_mirrored_half_the_time(kind: str) -> None:
    found = [rectangle(transforms.crop(kind, crop_size=8), 12, 10, seed) for seed in range(400)]
    assert {cut[:2] for cut in found} == {(8, 8)}
    assert {cut[2] for cut in found} == {0, 1, 2, 3, 4}
    assert {cut[3] for cut in found} == {0, 1, 2}
    assert 150 < sum(cut[4] for cut in found) < 250


def test_jitter_draws_from_the_whole_range() -> None:
    crop = transforms.crop(side_ratio=(0.3, 0.6), jitter_type="uniratio")
    assert {rectangle(crop, 40, 20, seed)[0] for seed in range(200)} == set(range(6, 13))


@settings(deadline=None)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from(["center", "randomside", "multiview10"]),
    st.floats(0.01, 1),
    st.floats(0.01, 20),
    st.booleans(),
    st.integers(0, 9),
)
def test_every_crop_is_a_part_of_the_image(
    width: int, height: int, kind: str, ratio: float, aspect: float, by_side: bool, view: int
) -> None:
    sizes: dict[str, Any] = {"side_ratio" if by_side else "area_ratio": (ratio / 2, ratio)}
    crop = transforms.crop(kind, aspect_ratio=aspect, jitter_type="uniratio", **sizes)
    across, down, x, y, _ = rectangle(crop, width, height, view, view)
    assert 0 < across <= width - x
    assert 0 < down <= height - y


def test_ten_views_are_the_corners_the_centre_and_the_same_mirrored() -> None:
    crop = transforms.crop("multiview10", crop_size=(8, 6))
    corners = [(8, 6, 0, 0), (8, 6, 32, 0), (8, 6, 0, 14), (8, 6, 32, 14), (8, 6, 16, 7)]
    found = [rectangle(crop, 40, 20, view=view) for view in range(crop.views)]
    assert found == [(*corner, mirrored) for mirrored in (False, True) for corner in corners]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"crop_type": "left"}, "crop_type must be one of center, randomside, randomarea, multiview10; got 'left'"),
        ({"jitter_type": "uniarea"}, "jitter_type must be one of none, uniratio; got 'uniarea'"),
        ({"crop_size": (-1, 3)}, "crop_size must not be negative"),
        ({"crop_size": "big"}, "expected a number"),
        ({"side_ratio": 1.5}, r"side_ratio must lie in \(0, 1\], got 1.5 to 1.5"),
        ({"area_ratio": (0, 0.5)}, r"area_ratio must lie in \(0, 1\], got 0 to 0.5"),
        ({"side_ratio": (0.5, 0.2)}, "from the smaller to the larger"),
        ({"aspect_ratio": 0.0}, "aspect_ratio must be positive"),
    ],
)
def test_crops_that_are_none_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        transforms.crop(**settings)


# ---- scale ----


def both_ways(monkeypatch: pytest.MonkeyPatch, image: Any, width: int, height: int, interpolation: str) -> list[Any]:
    compiled = resize(image, width, height, interpolation)
    with monkeypatch.context() as patch:
        patch.setattr(resizing, "loops", lambda module: None)
        return [compiled, resize(image, width, height, interpolation)]


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_pixels_are_those_of_cntk(monkeypatch: pytest.MonkeyPatch, root: Path, interpolation: str, number: int) -> None:
    """To the last bit: the file holds what CNTK 2.7 read of images of random pixels."""
    with np.load(root / "tests" / "data" / "resized.npz") as file:
        image, expected = file[f"image{number}"], file[f"{interpolation}{number}"]
    for resized in both_ways(monkeypatch, image, expected.shape[1], expected.shape[0], interpolation):
        np.testing.assert_array_equal(resized, expected)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_pixels_are_those_of_opencv(monkeypatch: pytest.MonkeyPatch, interpolation: str) -> None:
    for resized in both_ways(monkeypatch, IMAGE, 5, 2, interpolation):
        assert resized.dtype == np.uint8
        np.testing.assert_allclose(resized[:, :, 0].astype(int), RESIZED[interpolation], atol=0)
    for resized in both_ways(monkeypatch, IMAGE[:, ::-1][:, ::-1], 6, 5, interpolation):
        np.testing.assert_allclose(resized[1, :, 0].astype(int), ENLARGED[interpolation], atol=0)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_the_compiled_way_and_numpy_agree(monkeypatch: pytest.MonkeyPatch, interpolation: str, dtype: Any) -> None:
    image = np.random.default_rng(0).integers(0, 256, (31, 17, 3)).astype(dtype)
    compiled, plain = both_ways(monkeypatch, image[3:, ::-1], 23, 40, interpolation)
    assert compiled.dtype == plain.dtype == dtype
    np.testing.assert_allclose(compiled.astype(float), plain.astype(float), atol=0 if dtype == np.uint8 else 1e-3)


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.sampled_from(INTERPOLATIONS))
def test_what_has_one_colour_keeps_it(rows: int, columns: int, width: int, height: int, interpolation: str) -> None:
    resized = resize(np.full((rows, columns, 1), 77, np.uint8), width, height, interpolation)
    assert resized.shape == (height, width, 1)
    assert (resized == 77).all()


def test_floats_are_not_rounded() -> None:
    image = np.array([[[-100.0], [300.0]]], np.float32)
    np.testing.assert_allclose(resize(image, 4, 1, "linear")[0, :, 0], [-100, 0, 200, 300])


def test_modes_cover_or_fill_up() -> None:
    cut = apply(transforms.scale(4, 4, 3, scale_mode="crop"), IMAGE)
    np.testing.assert_allclose(
        cut[:, :, 0].astype(int), [[0, 141, 173, 129], [23, 163, 196, 152], [50, 123, 175, 179], [72, 33, 117, 201]], atol=1
    )
    for value, last in ((-1, [72, 17, 218, 163]), (9, [9] * 4)):
        padded = apply(transforms.scale(4, 4, 3, scale_mode="pad", pad_value=value), IMAGE)
        assert padded[:, :, 0].tolist() == [*IMAGE[:, :, 0].tolist(), last]


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30), st.integers(1, 30), st.sampled_from(["fill", "crop", "pad"]))
def test_the_size_is_what_was_asked_for(rows: int, columns: int, width: int, height: int, mode: str) -> None:
    scale = transforms.scale(width, height, 3, "nearest", mode)
    assert apply(scale, np.zeros((rows, columns, 3), np.uint8)).shape == (height, width, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width and height must be positive"),
        ({"channels": 4}, "channels must be 3"),
        ({"interpolations": "linear:cubic"}, "interpolations must be one of nearest, linear, cubic, lanczos"),
        ({"scale_mode": "Fill"}, "scale_mode must be one of fill, crop, pad"),
    ],
)
def test_scales_that_are_none_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        transforms.scale(**{"width": 5, "height": 5, "channels": 3, **settings})


# ---- mean ----


def mean_file(folder: Path, sizes: tuple[int, int, int], numbers: str) -> str:
    path = folder / "mean.xml"
    channels, rows, columns = sizes
    path.write_text(
        f"""<?xml version="1.0"?>
<opencv_storage><Channel>{channels}</Channel><Row>{rows}</Row><Col>{columns}</Col>
<MeanImg type_id="opencv-matrix"><rows>1</rows><cols>9</cols><dt>f</dt><data>{numbers}</data></MeanImg></opencv_storage>"""
    )
    return str(path)


def test_the_mean_image_is_subtracted_pixel_by_pixel(tmp_path: Path) -> None:
    mean = transforms.mean(mean_file(tmp_path, (3, 1, 2), "1 2 3\n 40.5 5e1 60."))
    found = apply(mean, np.full((1, 2, 3), 100, np.uint8))
    assert found.tolist() == [[[99, 98, 97], [59.5, 50, 40]]]
    with pytest.raises(RuntimeError, match=r"has 2 x 1 pixels of 3 channels, the one it is to be taken from 3 x 1 pixels of 3 channels"):
        apply(mean, np.zeros((1, 3, 3), np.uint8))


@pytest.mark.parametrize(
    ("sizes", "numbers", "message"),
    [
        ((3, 1, 2), "1 2 3", "1 rows of 2 pixels of 3 channels, but 3 numbers in MeanImg"),
        ((3, 1, 2), "1 2 3 4 5 x", "MeanImg/data: could not convert string to float: 'x'"),
        ((3, 1, 2), "", "MeanImg/data is missing or empty"),
        ((-3, -1, 2), "1 2 3 4 5 6", "pixels of -3 channels"),
    ],
)
def test_what_is_wrong_with_a_mean_file_is_said(tmp_path: Path, sizes: tuple[int, int, int], numbers: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=f"mean file '.*mean.xml': .*{message}"):
        apply(transforms.mean(mean_file(tmp_path, sizes, numbers)), IMAGE)


def test_a_mean_file_must_be_there_and_be_xml(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"cannot read the mean file '.*none.xml': No such file"):
        apply(transforms.mean(str(tmp_path / "none.xml")), IMAGE)
    (tmp_path / "text.xml").write_text("1 2 3")
    with pytest.raises(RuntimeError, match=r"mean file '.*text.xml': it is not XML"):
        apply(transforms.mean(str(tmp_path / "text.xml")), IMAGE)


# ---- color ----


def test_brightness_adds_a_part_of_the_mean_and_contrast_multiplies() -> None:
    image = np.full((4, 4, 3), 100, np.float32)
    shifts = [apply(transforms.color(brightness_radius=0.2), image, seed)[0, 0, 0] for seed in range(100)]
    assert 80 <= min(shifts) < 84 < 116 < max(shifts) <= 120
    ratios = apply(transforms.color(contrast_radius=0.5), IMAGE) / np.maximum(IMAGE, 1.0)
    inside = ratios[(IMAGE > 0) & (ratios * IMAGE < 255)]
    assert np.ptp(inside) < 1e-6
    assert 0.5 <= inside[0] <= 1.5


def test_values_stay_within_a_byte() -> None:
    for seed in range(20):
        found = apply(transforms.color(1, 1, 1), IMAGE, seed)
        assert -1e-3 < found.min() <= found.max() < 255 + 1e-3


def test_saturation_keeps_hue_and_value() -> None:
    pale = IMAGE // 4 + 100
    for seed in range(10):
        found = apply(transforms.color(saturation_radius=0.9), pale, seed).reshape(-1, 3) / 255
        before = [colorsys.rgb_to_hsv(*pixel) for pixel in pale.reshape(-1, 3)[:, ::-1] / 255]
        after = [colorsys.rgb_to_hsv(*pixel) for pixel in found[:, ::-1].tolist()]
        assert np.ptp([new[1] / old[1] for old, new in zip(before, after, strict=True)]) < 1e-4
        for old, new in zip(before, after, strict=True):
            assert new[2] == pytest.approx(old[2], abs=1e-5)
            assert abs((new[0] - old[0] + 0.5) % 1 - 0.5) < 1e-3


def test_grey_images_have_no_saturation_and_are_left_alone() -> None:
    grey = IMAGE[:, :, :1]
    assert (apply(transforms.color(saturation_radius=0.9), grey) == grey).all()
    assert (apply(transforms.color(), IMAGE) == IMAGE).all()


@pytest.mark.parametrize("name", ["brightness_radius", "contrast_radius", "saturation_radius"])
def test_radii_lie_between_0_and_1(name: str) -> None:
    for radius in (-0.1, 1.5):
        with pytest.raises(ValueError, match=f"{name} must lie in 0 … 1, got {radius}"):
            transforms.color(**{name: radius})
