"""Images from files into minibatches.  Layout, formats of the lists and what they mean were measured on CNTK 2.7."""

from __future__ import annotations

import base64
import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.io import Base64ImageDeserializer, ImageDeserializer, MinibatchSource, StreamDef, StreamDefs, transforms
from cntk.readers.deserializer import Errors
from cntk.testing import check_deserializer

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

SCALE = transforms.scale(width=6, height=5, channels=3)
JITTER = [transforms.crop("randomside", side_ratio=(0.4, 1), jitter_type="uniratio"), SCALE, transforms.color(0.3, 0.3, 0.3)]


def pixels(number: int, height: int = 5, width: int = 7) -> Any:
    """Red, green and blue of some image."""
    return np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8)


def encoded(image: Any, format: str = "PNG", **settings: Any) -> bytes:
    file = io.BytesIO()
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(file, format, **settings)
    return file.getvalue()


def served(image: Any) -> Any:
    """Red, green, blue as a sample has them."""
    return image[:, :, ::-1].transpose(2, 0, 1).astype(np.float32)


def folder_of(path: Path, images: dict[str, bytes], lines: str) -> str:
    for name, data in images.items():
        (path / name).write_bytes(data)
    (path / "map.txt").write_text(lines)
    return str(path / "map.txt")


def streams(*done: Any, classes: int = 4) -> Any:
    return StreamDefs(f=StreamDef(field="image", transforms=list(done)), l=StreamDef(field="label", shape=classes))


def sweep(deserializers: Any, size: int = 1, **settings: Any) -> list[Any]:
    source = MinibatchSource(deserializers, **{"max_sweeps": 1, "randomize": False, **settings})
    found = []
    while minibatch := source.next_minibatch(size):
        found.append({info.name: data for info, data in minibatch.items()})
    return found


def samples(deserializers: Any, name: str = "f", **settings: Any) -> list[Any]:
    return [sample for minibatch in sweep(deserializers, **settings) for sample in minibatch[name].asarray()[:, 0]]


def labels(minibatch: Any) -> list[list[float]]:
    return [part.toarray()[0].tolist() for part in minibatch["l"].as_sequences(C.sequence.input_variable(4, is_sparse=True))]


@pytest.fixture
def many(tmp_path: Path) -> str:
    """A list of 30 images."""
    return folder_of(tmp_path, {f"{i}.png": encoded(pixels(i)) for i in range(30)}, "".join(f".../{i}.png\t{i % 4}\n" for i in range(30)))


# ---- what is served ----


def test_samples_have_the_channels_blue_green_red(tmp_path: Path) -> None:
    path = folder_of(tmp_path, {"a.png": encoded(pixels(0))}, ".../a.png\t2\n")
    (minibatch,) = sweep(ImageDeserializer(path, streams()))
    assert minibatch["f"].asarray().dtype == np.float32
    np.testing.assert_array_equal(minibatch["f"].asarray(), served(pixels(0))[None, None])
    assert labels(minibatch) == [[0, 0, 1, 0]]
    assert minibatch["f"].end_of_sweep


def test_streams_have_the_shape_that_the_transforms_make(tmp_path: Path) -> None:
    crop, free = transforms.crop(crop_size=(4, 3)), C.FreeDimension
    for done, shape in [
        ([], (3, free, free)),
        ([SCALE], (3, 5, 6)),
        ([SCALE, crop], (3, 3, 4)),
        ([crop], (3, free, free)),
        ([transforms.scale(6, 5, 1)], (1, 5, 6)),
        ([SCALE, lambda image, random, view: image[::2]], (free, free, free)),
    ]:
        features, label = ImageDeserializer("map.txt", streams(*done)).stream_infos()
        assert (features.sample_shape, features.is_sparse, label.sample_shape, label.is_sparse) == (shape, False, (4,), True)


def test_paths_begin_in_the_current_folder_or_in_that_of_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    folder_of(tmp_path / "sub", {"a.png": encoded(pixels(0))}, ".../a.png\t0\nsub/a.png\t1\n")
    monkeypatch.chdir(tmp_path)
    assert len(samples(ImageDeserializer("sub/map.txt", streams()))) == 2
    monkeypatch.chdir(tmp_path / "sub")
    with pytest.raises(RuntimeError, match=r"map.txt, line 2: cannot read the image 'sub/a.png': No such file"):
        samples(ImageDeserializer("map.txt", streams()))


def test_images_in_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in/a.png", encoded(pixels(0)))
    lines = f".../all.zip@/in/a.png\t0\n{tmp_path}/all.zip@/in/a.png\t0\n"
    for sample in samples(ImageDeserializer(folder_of(tmp_path, {}, lines), streams())):
        np.testing.assert_array_equal(sample, served(pixels(0)))


def test_base64_text(tmp_path: Path) -> None:
    text = base64.b64encode(encoded(pixels(0))).decode()
    (tmp_path / "a.txt").write_bytes(f"3\t{text}\r\n\n7\t1\t{text}".encode())
    deserializer = Base64ImageDeserializer(str(tmp_path / "a.txt"), streams())
    (minibatch,) = sweep(deserializer, 2)
    assert labels(minibatch) == [[0, 0, 0, 1], [0, 1, 0, 0]]
    np.testing.assert_array_equal(minibatch["f"].asarray()[:, 0], [served(pixels(0))] * 2)
    assert deserializer.sequence_infos(0).keys.tolist() == [0, 7]


def test_grey_images(tmp_path: Path) -> None:
    path = folder_of(tmp_path, {"g.png": encoded(pixels(0)[:, :, 0])}, ".../g.png\t0\n")
    grey = pixels(0)[:, :, 0].astype(np.float32)
    np.testing.assert_array_equal(samples(ImageDeserializer(path, streams()))[0], [grey] * 3)
    np.testing.assert_array_equal(samples(ImageDeserializer(path, streams(transforms.scale(7, 5, 1))))[0], [grey])
    deserializer = ImageDeserializer(path, streams())
    deserializer["grayscale"] = True
    np.testing.assert_array_equal(samples(deserializer)[0], [grey])
    with pytest.raises(KeyError, match="ImageDeserializer has no setting 'colour'; it has grayscale, multiViewCrop"):
        deserializer["colour"] = True


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16"])
def test_images_of_every_kind_become_blue_green_red(tmp_path: Path, mode: str) -> None:
    grey = np.repeat(pixels(0, 4, 4)[:, :, :1] // 128 * 255, 3, axis=2)
    if mode == "I;16":
        data = encoded(Image.fromarray(grey[:, :, 0].astype(np.uint16) * 257))
    else:
        data = encoded(Image.fromarray(grey).convert(mode), "TIFF" if mode == "CMYK" else "PNG")
    path = folder_of(tmp_path, {"a": data}, ".../a\t0\n")
    np.testing.assert_array_equal(samples(ImageDeserializer(path, streams()))[0], served(grey))


def test_photographs_are_turned_as_the_camera_was(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path = folder_of(tmp_path, {"a.png": encoded(Image.fromarray(pixels(0)), exif=exif)}, ".../a.png\t0\n")
    np.testing.assert_array_equal(samples(ImageDeserializer(path, streams()))[0], served(np.rot90(pixels(0), -1)))


def test_ten_views_are_ten_samples_with_the_label_of_the_image(many: str) -> None:
    minibatches = sweep(ImageDeserializer(many, streams(transforms.crop("multiview10", crop_size=3))), 10)
    assert len(minibatches) == 30
    assert labels(minibatches[5]) == [[0, 1, 0, 0]] * 10
    np.testing.assert_array_equal(minibatches[5]["f"].asarray()[4, 0], served(pixels(5)[1:4, 2:5]))
    np.testing.assert_array_equal(minibatches[5]["f"].asarray()[9, 0], served(pixels(5)[1:4, 4:1:-1]))


def test_a_function_may_be_a_transform(many: str) -> None:
    found = samples(ImageDeserializer(many, streams(SCALE, lambda image, random, view: image * 0 + random.integers(100))))
    assert found[0].shape == (3, 5, 6)
    assert len({float(sample[0, 0, 0]) for sample in found}) > 10


def test_it_does_what_a_deserializer_says_it_does(many: str) -> None:
    check_deserializer(lambda: ImageDeserializer(many, streams(SCALE)))
    check_deserializer(lambda: ImageDeserializer(many, streams(*JITTER)))


def test_a_chunk_holds_no_pixels(many: str) -> None:
    deserializer = ImageDeserializer(many, streams(SCALE))
    (info,) = deserializer.chunk_infos()
    assert (info.sequences, info.samples, info.nbytes) == (30, 30, 30 * 64)
    assert deserializer.get_chunk(0, Errors())["f"].rows.nbytes == 30 * 8


def test_labels_may_be_left_out(many: str) -> None:
    minibatches = sweep(ImageDeserializer(many, StreamDefs(f=StreamDef(field="image", transforms=[SCALE]))), 30)
    assert [list(minibatch) for minibatch in minibatches] == [["f"]]


# ---- random numbers ----


def by_content(images: list[Any]) -> list[bytes]:
    return sorted(image.tobytes() for image in images)


def test_augmentation_depends_on_seed_sweep_and_key_alone(many: str) -> None:
    deserializer = ImageDeserializer(many, streams(*JITTER))
    plain = samples(deserializer)
    assert by_content(plain) == by_content(samples(deserializer, randomize=True, size=7))
    assert by_content(plain) == by_content(samples(deserializer, multithreaded_deserializer=False))
    np.testing.assert_array_equal(plain, samples(deserializer, size=11))
    two = samples(deserializer, max_sweeps=2)
    np.testing.assert_array_equal(two[:30], plain)
    assert not set(by_content(two[30:])) & set(by_content(plain))
    np.testing.assert_array_equal(two[30:], samples(deserializer, randomization_seed=1))


@pytest.mark.parametrize("workers", [2, 4])
def test_augmentation_does_not_depend_on_workers(many: str, workers: int) -> None:
    deserializer = ImageDeserializer(many, streams(*JITTER))
    found = []
    for worker in range(workers):
        source = MinibatchSource(deserializer, max_sweeps=1)
        for _ in range(30):
            minibatch = source.next_minibatch(8, num_data_partitions=workers, partition_index=worker)
            found += list(minibatch[source.streams.f].asarray()[:, 0]) if minibatch else []
    assert by_content(found) == by_content(samples(deserializer))


def test_images_with_the_same_key_are_cropped_alike(many: str) -> None:
    crop = transforms.crop("randomside", crop_size=3)
    first = ImageDeserializer(many, StreamDefs(a=StreamDef(field="image", transforms=[transforms.scale(7, 5, 3), crop])))
    second = ImageDeserializer(many, StreamDefs(b=StreamDef(field="image", transforms=[crop])))
    for minibatch in sweep([first, second], 4, randomize=True):
        np.testing.assert_array_equal(minibatch["a"].asarray(), minibatch["b"].asarray())


def test_images_meet_other_data_by_key(tmp_path: Path) -> None:
    path = folder_of(tmp_path, {f"{i}.png": encoded(pixels(i)) for i in range(3)}, "".join(f"{9 - i}\t.../{i}.png\t0\n" for i in range(3)))
    (tmp_path / "targets.ctf").write_text("7 |y 2.5\n8 |y 1.5\n9 |y 0.5\n")
    targets = C.io.CTFDeserializer(str(tmp_path / "targets.ctf"), StreamDefs(y=StreamDef(field="y", shape=1)))
    for i, minibatch in enumerate(sweep([ImageDeserializer(path, streams()), targets])):
        np.testing.assert_array_equal(minibatch["f"].asarray()[0, 0], served(pixels(i)))
        assert minibatch["y"].asarray().item() == i + 0.5


# ---- what is wrong ----


BAD_LINES = [
    (".../a.png\n", "expected image and label, or a sequence key and these, with tabs between them; got 1 columns"),
    ("1\t2\t.../a.png\t0\n", "got 4 columns"),
    (".../a.png\t4\n", "the label must be a whole number from 0 to 3, got '4'"),
    (".../a.png\t-1\n", "the label must be a whole number from 0 to 3, got '-1'"),
    (".../a.png\tdog\n", "got 'dog'"),
    ("x\t.../a.png\t0\n", "the sequence key must be a whole number from 0 to 18446744073709551615, got 'x'"),
    (".../none.png\t0\n", "cannot read the image '.*none.png': No such file or directory"),
    (".../text.png\t0\n", "cannot read the image '.*text.png': it is not an image of a format that Pillow reads"),
    (".../half.png\t0\n", "cannot read the image '.*half.png': it is not an image of a format that Pillow reads, or a damaged one: "),
    (".../none.zip@/a\t0\n", "cannot read the image '.*none.zip@/a': No such file or directory"),
    (".../text.png@/a\t0\n", "the archive '.*text.png' cannot be read: File is not a zip file"),
    (".../all.zip@/a\t0\n", "the archive '.*all.zip' has no file 'a'"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_what_cannot_be_read_is_named_with_its_line_and_may_be_left_out(tmp_path: Path, line: str, message: str) -> None:
    good = encoded(pixels(0, 40, 40))
    path = folder_of(tmp_path, {"a.png": good, "text.png": b"hello", "half.png": good[: len(good) // 2]}, ".../a.png\t1\n" + line)
    with zipfile.ZipFile(tmp_path / "all.zip", "w"):
        pass
    with pytest.raises(RuntimeError, match=f"map.txt, line 2: .*{message}"):
        samples(ImageDeserializer(path, streams()))
    (minibatch,) = sweep(ImageDeserializer(path, streams()), 2, max_errors=1)
    assert labels(minibatch) == [[0, 1, 0, 0]]


def test_an_image_that_vanishes_is_named(many: str) -> None:
    source = MinibatchSource(ImageDeserializer(many, streams(SCALE)), randomize=False)
    (Path(many).parent / "29.png").unlink()
    with pytest.raises(RuntimeError, match=r"map.txt, line 30: cannot read the image '.*29.png'"):
        source.next_minibatch(30)


@pytest.mark.parametrize("text", ["!!!", "aGVsbG8", "aGVsbG8="])
def test_bad_base64_text_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(f"0\t{base64.b64encode(encoded(pixels(0))).decode()}\n1\t{text}\n")
    message = "it is not an image" if text.endswith("=") else "it is not base64 text"
    with pytest.raises(RuntimeError, match=f"a.txt, line 2: cannot read the image: {message}"):
        samples(Base64ImageDeserializer(str(tmp_path / "a.txt"), streams()))


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot read the list of images '.*map.txt': No such file"), ("\n \n", "is empty")]
)
def test_a_list_must_be_there_and_list_something(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "map.txt").write_text(content)
    with pytest.raises(RuntimeError, match=message):
        MinibatchSource(ImageDeserializer(str(tmp_path / "map.txt"), streams()))


def test_two_ratios_are_refused_when_a_source_is_made(many: str) -> None:
    deserializer = ImageDeserializer(many, streams(transforms.crop(side_ratio=0.5, area_ratio=0.5)))
    with pytest.raises(ValueError, match="give side_ratio or area_ratio, not both"):
        MinibatchSource(deserializer)


@pytest.mark.parametrize(
    ("given_streams", "message"),
    [
        (StreamDefs(l=StreamDef(field="label", shape=4)), "expected one stream of the field 'image'"),
        (StreamDefs(a=StreamDef(field="image"), b=StreamDef(field="image")), "expected one stream of the field 'image'"),
        (StreamDefs(a=StreamDef(field="picture")), "stream 'a' must have the field 'image' or 'label', got 'picture'"),
        (StreamDefs(a=StreamDef(field="image"), l=StreamDef(field="label")), "stream 'l' needs a shape, the number of classes, got None"),
    ],
)
def test_streams_that_are_none_are_refused(given_streams: Any, message: str) -> None:
    for kind in (ImageDeserializer, Base64ImageDeserializer):
        with pytest.raises(ValueError, match=f"{kind.__name__}: {message}"):
            kind("map.txt", given_streams)


def test_an_image_of_the_wrong_kind_for_a_transform_is_named(many: str) -> None:
    deserializer = ImageDeserializer(many, streams(SCALE))
    deserializer["grayscale"] = True
    with pytest.raises(RuntimeError, match=r"map.txt, line 1: .*scale: expected an image of 3 channels, got 1"):
        samples(deserializer)


@settings(deadline=None)
@given(st.data())
def test_damaged_images_are_refused_or_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    format = data.draw(st.sampled_from(["PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP"]))
    damaged = bytearray(encoded(pixels(0, 16, 16), format))
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    text = base64.b64encode(damaged[: data.draw(st.integers(1, len(damaged)))]).decode()
    path = tmp_path_factory.getbasetemp() / "damaged.txt"
    path.write_text(f"0\t{text}\n")
    deserializer = Base64ImageDeserializer(str(path), streams(SCALE))
    sequence = {name: part.sequence(0) for name, part in deserializer.get_chunk(0, Errors()).items()}
    refused = ""
    try:
        assert deserializer.transform(sequence, 0, 0)["f"].shape == (1, 3, 5, 6)
    except ValueError as error:
        refused = str(error)
    assert not refused or "damaged.txt, line 1: cannot read the image" in refused


def test_without_pillow_it_says_how_to_get_it(many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = MinibatchSource(ImageDeserializer(many, streams(SCALE)), max_errors=30)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install 'opencntk\[image\]'"):
        source.next_minibatch(1)
