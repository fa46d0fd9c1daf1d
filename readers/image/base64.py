"""The deserializer of images encoded as text."""

from __future__ import annotations

import base64
import binascii
from typing import BinaryIO, ClassVar

from .deserializer import ImageDeserializer


class Base64ImageDeserializer(ImageDeserializer):
    """Reads images from one file, base64 text with the number of the class of each: ``label<TAB>base64`` or
    ``key<TAB>label<TAB>base64`` a line.

    The rest is as for :class:`ImageDeserializer`.

    Args:
        filename: the file.
        streams: by the stream's name a ``StreamDef`` with the field ``'image'`` and its ``transforms``, and perhaps another with the field
            ``'label'`` and the number of classes as ``shape``.

    Raises:
        ValueError: no file name, no stream of images, or a stream of something else.  Errors in the file are raised when a
            ``MinibatchSource`` is made, or reads.

    >>> C.io.Base64ImageDeserializer("train.txt", C.io.StreamDefs(images=C.io.StreamDef(field="image"))).stream_infos()
    [images([3, -3, -3])]
    """

    _image_first: ClassVar[bool] = False

    def _list(self) -> BinaryIO:
        return open(self._path, "rb")

    def _read(self, record: int) -> bytes:
        start, stop = int(self._records.starts[record]), int(self._records.stops[record])
        try:
            with open(self._path, "rb") as file:
                file.seek(start)
                return base64.b64decode(file.read(stop - start), validate=True)
        except OSError as error:
            raise ValueError(error.strerror or str(error)) from None
        except binascii.Error as error:
            raise ValueError(f"it is not base64 text: {error}") from None

    def _named(self, record: int) -> str:
        return ""
