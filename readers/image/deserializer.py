"""The deserializer of lists of images."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, ClassVar

import numpy as np

from ...core.common.cached_property import cached_property
from ...core.common.shape import FreeDimension, Shape
from ...core.types.arguments import mapping
from ...core.types.csr import csr_matrix_of
from ..deserializer import Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos, StreamData
from ..streams import StreamInformation
from .crop import Crop
from .decode import decode
from .files import Files
from .records import Records, read_records

CHUNK = 256
"""Images in a chunk.  It is small since a chunk holds no pixels: an image is read when it goes into a minibatch."""

BYTES = 64
"""Bytes of a chunk for an image: its number and its label."""

NEXT_TO_LIST = ".../"
"""Beginning of a path that starts in the folder of the list."""

FIELDS = ("image", "label")


class ImageDeserializer(Deserializer):
    """Reads images that a file lists, with the number of the class of each: ``path<TAB>label`` or ``key<TAB>path<TAB>label`` a line.

    Paths start in the current folder, or in that of the list if they begin with ``.../``; ``archive.zip@/path`` is a file in an archive.
    Samples are float32 of shape ``(channels, height, width)``, the channels blue, green and red, values 0 … 255 before transforms.  Labels
    are sparse, one-hot.  Images are decoded with Pillow, in threads, as they go into minibatches.  A transform's random numbers depend on
    the source's seed, the sweep and the image's key alone, so that images with the same key in two deserializers are cropped alike.

    Args:
        filename: the list.
        streams: by the stream's name a ``StreamDef`` with the field ``'image'`` and its ``transforms``, and perhaps another with the field
            ``'label'`` and the number of classes as ``shape``.

    Raises:
        ValueError: no file name, no stream of images, or a stream of something else.  Errors in the files are raised when a
            ``MinibatchSource`` is made, or reads.

    >>> from cntk.io import transforms
    >>> streams = C.io.StreamDefs(
    ...     features=C.io.StreamDef(field="image", transforms=[transforms.scale(width=32, height=24, channels=3)]),
    ...     labels=C.io.StreamDef(field="label", shape=10))
    >>> C.io.ImageDeserializer("train_map.txt", streams).stream_infos()
    [features([3, 24, 32]), labels([10])]
    """

    multithreaded = True
    _image_first: ClassVar[bool] = True

    def __init__(self, filename: str, streams: Mapping[str, Mapping[str, Any]]) -> None:
        self._path = os.fspath(filename)
        if not self._path:
            raise ValueError(f"{self._name}: no file name is given")
        fields = {name: stream.get("stream_alias") for name, stream in mapping("ImageDeserializer", "streams", streams).items()}
        for name, field in fields.items():
            if field not in FIELDS:
                raise ValueError(f"{self._name}: stream '{name}' must have the field 'image' or 'label', got {field!r}")
        if list(fields.values()).count("image") != 1 or len(fields) > len(set(fields.values())):
            raise ValueError(f"{self._name}: expected one stream of the field 'image', and one of 'label' at most; got {fields}")
        self._streams: dict[Any, tuple[str, Any]] = {field: (name, streams[name]) for name, field in fields.items()}
        self._transforms: Sequence[Any] = list(self._streams["image"][1].get("transforms") or ())
        self._classes = self._label_dim() if "label" in self._streams else None
        views = max((getattr(one, "views", 1) for one in self._transforms), default=1)
        grayscale = any(getattr(one, "channels", 3) == 1 for one in self._transforms)
        self._settings: dict[str, Any] = {"grayscale": grayscale, "multiViewCrop": views > 1}
        self.is_primary = any(stream.get("is_primary") for stream in streams.values())
        self._files = Files()

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _label_dim(self) -> int:
        name, stream = self._streams["label"]
        dim = stream.get("dim")
        if isinstance(dim, (tuple, list)) and len(dim) == 1:
            dim = dim[0]
        if not isinstance(dim, int) or dim < 1:
            raise ValueError(f"{self._name}: stream '{name}' needs a shape, the number of classes, got {dim!r}")
        return dim

    def __setitem__(self, setting: str, value: Any) -> None:
        """Change a setting of the engine's: ``grayscale``, which a scale to one channel implies, or ``multiViewCrop``, whether each image
        makes ten samples, which a crop of type multiview10 implies.

        Raises:
            KeyError: there is no such setting.
        """
        if setting not in self._settings:
            raise KeyError(f"{self._name} has no setting '{setting}'; it has {', '.join(self._settings)}")
        self._settings[setting] = bool(value)

    def files(self) -> list[str]:
        return [self._path]

    def describe(self) -> dict[str, Any]:
        described = [transform.config() for transform in self._transforms if hasattr(transform, "config")]
        inputs: dict[str, Any] = {"image": {"transforms": [*described, {"type": "Transpose"}]}, "label": {"labelDim": self._classes}}
        return {"type": self._name, "file": self._path, "input": {self._streams[field][0]: inputs[field] for field in self._streams}}

    # ---- the list ----

    def stream_infos(self) -> list[StreamInformation]:
        shape: Shape = (1 if self._settings["grayscale"] else 3, FreeDimension, FreeDimension)
        for transform in self._transforms:
            shape = transform.shape(shape) if hasattr(transform, "shape") else (FreeDimension,) * 3
        described = {"image": ("dense", shape), "label": ("sparse", (self._classes or 0,))}
        found = [(self._streams[field], *described[field]) for field in FIELDS if field in self._streams]
        return [
            StreamInformation(name, i, storage, np.float32, shape, stream.get("defines_mb_size", False))
            for i, ((name, stream), storage, shape) in enumerate(found)
        ]

    def chunk_infos(self) -> list[ChunkInfo]:
        sizes = [len(self._samples(chunk)) for chunk in range(-(-len(self._records.lines) // CHUNK))]
        return [ChunkInfo(size, size, size * BYTES) for size in sizes]

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        samples = self._samples(chunk)
        return SequenceInfos(np.ones(len(samples), np.int64), self._records.keys[samples // self._views])

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        samples = self._samples(chunk)
        records = samples // self._views
        lengths = np.ones(len(samples), np.int64)
        for number in sorted(set(records.tolist()) & self._records.faults.keys()):
            errors.leave_out(ValueError(f"{self._where(number)}: {self._records.faults[number]}"))
            lengths[records == number] = 0
        kept = lengths.astype(bool)
        found = {self._streams["image"][0]: StreamData.of_lengths(samples[kept].astype(object), lengths)}
        if self._classes is not None:
            found[self._streams["label"][0]] = StreamData.of_lengths(self._one_hot(self._records.labels[records[kept]]), lengths)
        return found

    @cached_property
    def _records(self) -> Records:
        for transform in self._transforms:
            if isinstance(transform, Crop):
                transform.check()
        try:
            with self._list() as file:
                records = read_records(file, self._image_first, self._classes)
        except OSError as error:
            raise RuntimeError(f"cannot read the list of images '{self._path}': {error.strerror or error}") from None
        if not len(records.lines):
            raise RuntimeError(f"the list of images '{self._path}' is empty; expected a line for each image")
        return records

    def _list(self) -> BinaryIO:
        """The file that lists the images; it stays open, since it holds the paths."""
        with open(self._path, "rb") as file:
            self._text = file.read()
        return io.BytesIO(self._text)

    @property
    def _views(self) -> int:
        return 10 if self._settings["multiViewCrop"] else 1

    def _samples(self, chunk: int) -> Any:
        """Number of each sample of a chunk, which stands for its pixels until they are needed."""
        last = min((chunk + 1) * CHUNK, len(self._records.lines))
        return np.arange(chunk * CHUNK * self._views, last * self._views)

    def _one_hot(self, labels: Any) -> Any:
        return csr_matrix_of(np.ones(len(labels), np.float32), labels, np.arange(len(labels) + 1), self._classes or 0)

    def _where(self, record: int) -> str:
        return f"{self._path}, line {self._records.lines[record]}"

    # ---- the images ----

    def transform(self, sequence: dict[str, Any], key: int, seed: int) -> dict[str, Any]:
        name = self._streams["image"][0]
        record, view = divmod(int(sequence[name][0]), self._views)
        try:
            image = decode(self._read(record), self._settings["grayscale"])
            for transform, draws in self._drawing:
                image = transform(image, np.random.default_rng([seed, key, view, draws]), view)
        except ValueError as error:
            raise ValueError(f"{self._where(record)}: cannot read the image{self._named(record)}: {error}") from None
        return {**sequence, name: np.ascontiguousarray(image.transpose(2, 0, 1), np.float32)[None]}

    @cached_property
    def _drawing(self) -> list[tuple[Any, int]]:
        """The transforms, each with how many of those before it draw random numbers."""
        draws = np.cumsum([0] + [getattr(transform, "draws", True) for transform in self._transforms]).tolist()
        return list(zip(self._transforms, draws, strict=False))

    def _read(self, record: int) -> bytes:
        """The bytes of an image file."""
        return self._files.read(self._image_path(record))

    def _image_path(self, record: int) -> str:
        path = os.fsdecode(self._text[self._records.starts[record] : self._records.stops[record]])
        return os.path.join(os.path.dirname(self._path), path.removeprefix(NEXT_TO_LIST)) if path.startswith(NEXT_TO_LIST) else path

    def _named(self, record: int) -> str:
        return f" '{self._image_path(record)}'"
