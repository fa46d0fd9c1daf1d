"""Text files, read in parts; those that end in .gz are unpacked first."""

from __future__ import annotations

import gzip
import os
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...core.files import write_file
from .cache import FOLDER, cache_folder, fingerprint, stamp_of

NEWLINE = ord("\n")
UNPACKED = 1 << 20
"""Bytes that are unpacked in one go."""


class TextFile:
    """A text that is read in parts, and must not change meanwhile.

    Args:
        path: the file.
        keep: whether a .gz file is kept unpacked in the cache folder for the next time, or in a temporary file for now.

    Attributes:
        path: the file, as it is called in errors.
        plain: the file that holds the text itself.
        size: its bytes.

    Raises:
        RuntimeError: the file cannot be read, or is not what its name says.
    """

    def __init__(self, path: str, keep: bool = True) -> None:
        self.path = path
        try:
            self.plain = self._unpacked(keep) if path.endswith(".gz") else path
            with open(self.plain, "rb") as file:
                self._stamp = stamp_of(file)
        except OSError as error:
            raise self._unreadable(error) from None
        self.size = self._stamp[0]

    def read(self, start: int, stop: int) -> Any:
        """The bytes from *start* to *stop*, as an array, and a newline if they do not end with one.

        Raises:
            RuntimeError: the file cannot be read, or has changed.
        """
        text: Any = np.empty(stop - start + 1, np.uint8)
        rest = memoryview(text)[:-1]
        try:
            with open(self.plain, "rb", buffering=0) as file:
                if stamp_of(file) != self._stamp:
                    raise RuntimeError(f"the text file '{self.path}' has changed since it was first read; make a new deserializer")
                file.seek(start)
                while len(rest) and (count := file.readinto(rest)):
                    rest = rest[count:]
        except OSError as error:
            raise self._unreadable(error) from None
        if len(rest):
            raise RuntimeError(f"the text file '{self.path}' has become shorter since it was first read: it had {self.size} bytes")
        text[-1] = NEWLINE
        return text[:-1] if len(text) > 1 and text[-2] == NEWLINE else text

    def fingerprint(self, *settings: object) -> bytes:
        """32 bytes that are others when the text is another one, or with other settings."""
        with open(self.plain, "rb") as file:
            return fingerprint(file, *settings)

    def _unpacked(self, keep: bool) -> str:
        with open(self.path, "rb") as file:
            name = f"{Path(self.path).stem}.{fingerprint(file).hex()[:32]}"
        if not keep:
            handle, path = tempfile.mkstemp(suffix=f".{name}")
            os.close(handle)
            weakref.finalize(self, os.unlink, path)
            write_file(path, self._contents())
            return path
        folder = cache_folder()
        target = folder / name
        if not target.exists():
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_file(target, self._contents())
            except OSError as error:
                raise RuntimeError(
                    f"'{self.path}' cannot be unpacked into {folder}: {error.strerror or error}; "
                    f"say in the environment variable {FOLDER} where there is room"
                ) from None
        return str(target)

    def _contents(self) -> Iterator[bytes]:
        done = 0
        try:
            with gzip.open(self.path, "rb") as file:
                while block := file.read(UNPACKED):
                    done += len(block)
                    yield block
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise RuntimeError(f"'{self.path}' is no whole gzip file: {error}, behind byte {done} of its text") from None

    def _unreadable(self, error: OSError) -> RuntimeError:
        return RuntimeError(f"cannot read the text file '{self.path}': {error.strerror or error}")
