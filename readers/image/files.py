"""Files that hold images: on their own, or in a zip archive."""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from contextlib import suppress

from ...core.common.lock import ForkSafeLock

IN_ARCHIVE = "@/"
"""What stands between an archive and the name of a file in it: ``pictures.zip@/cats/1.jpg``."""

DAMAGED: tuple[type[Exception], ...] = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""Errors of damaged members of archives."""
with suppress(ImportError):  # Python may have been built without
    from lzma import LZMAError

    DAMAGED += (LZMAError,)

LARGEST = 1 << 29
"""Bytes of a file: as many as the largest image that Pillow opens, of 178 million pixels, takes without compression."""

_EXPECTED = f"expected an image, of {LARGEST >> 20} MiB at most"


class Files:
    """Reads files, from several threads at once; archives stay open."""

    def __init__(self) -> None:
        self._archives: dict[str, zipfile.ZipFile] = {}
        self._lock = ForkSafeLock()

    def read(self, path: str) -> bytes:
        """The bytes of a file.

        Args:
            path: the file, or an archive and a file in it.

        Raises:
            ValueError: it cannot be read, is not a regular file, or is larger than :data:`LARGEST`.
        """
        archive, inside, name = path.partition(IN_ARCHIVE)
        try:
            return self._member(archive, name) if inside else _content(path)
        except OSError as error:
            raise ValueError(error.strerror or str(error)) from None
        except KeyError:
            raise ValueError(f"the archive '{archive}' has no file '{name}'") from None
        except DAMAGED as error:
            raise ValueError(f"the archive '{archive}' cannot be read: {error}") from None

    def _member(self, archive: str, name: str) -> bytes:
        opened = self._archive(archive)
        size = opened.getinfo(name).file_size
        if size > LARGEST:
            raise ValueError(f"'{name}' in the archive '{archive}' unpacks to {size} bytes; {_EXPECTED}")
        return opened.read(name)

    def _archive(self, path: str) -> zipfile.ZipFile:
        with self._lock:
            if path not in self._archives:
                self._archives[path] = zipfile.ZipFile(path)
            return self._archives[path]


def _content(path: str) -> bytes:
    """The bytes of a regular file; others, such as pipes and devices, may never end."""
    with open(path, "rb", opener=_opened) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"it is not a regular file; {_EXPECTED}")
        if status.st_size > LARGEST:
            raise ValueError(f"it has {status.st_size} bytes; {_EXPECTED}")
        return file.read(LARGEST)


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # does not wait for what writes to a pipe
