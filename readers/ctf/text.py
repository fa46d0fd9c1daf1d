"""Text files, read in parts; those that end in .gz are unpacked first."""

from __future__ import annotations

import gzip
import os
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from ...core.storage.trusted import Untrusted, open_trusted, require_trusted, warn_of, write_trusted
from .cache import FOLDER, cache_folder, fingerprint, stamp_of

NEWLINE = ord("\n")
UNPACKED = 1 << 20
"""Bytes that are unpacked in one go."""

MOST_UNPACKED, MOST_TIMES = 1 << 30, 100
"""A text may be so large, or so many times as large as the file that it is unpacked from; real ones are 3 to 30 times as large."""


class TextFile:
    """A text that is read in parts, and must not change meanwhile.

    Args:
        path: the file.
        keep: whether a .gz file is kept unpacked in the cache folder for the next time, or in a temporary file for now.

    Attributes:
        path: the file, as errors name it.
        plain: the file that holds the text itself.
        size: its bytes.

    Raises:
        RuntimeError: the file cannot be read, or is not a gzip file though its name ends so.
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
        """A fingerprint of 32 bytes, which changes with the text and the settings."""
        with open(self.plain, "rb") as file:
            return fingerprint(file, *settings)

    def _unpacked(self, keep: bool) -> str:
        with open(self.path, "rb") as file:
            name = f"{Path(self.path).stem}.{fingerprint(file).hex()[:32]}"
        folder = cache_folder() if keep else None
        if folder is None or not _may_keep(folder):
            return self._for_now(name)
        return self._kept(folder, name) or self._keep(folder, name)

    def _for_now(self, name: str) -> str:
        """The text in a temporary file."""
        handle, path = tempfile.mkstemp(suffix=f".{name}")
        weakref.finalize(self, os.unlink, path)
        with os.fdopen(handle, "wb") as file:
            file.writelines(self._contents())
        return path

    def _kept(self, folder: Path, name: str) -> str | None:
        """The text that has been kept, which has its size for an extension; None where there is none, or not all of it."""
        for path in folder.glob(f"{escape(name)}.*"):
            try:
                with open_trusted(path, Path(self.path)) as file:
                    if path.suffix == f".{stamp_of(file)[0]}":
                        return str(path)
            except Untrusted as error:
                warn_of(error.place, error.why, "The text is unpacked again")
            except OSError:
                continue
        return None

    def _keep(self, folder: Path, name: str) -> str:
        target = folder / name
        try:
            write_trusted(target, self._contents(), Path(self.path))
            return str(target.replace(f"{target}.{target.stat().st_size}"))
        except OSError as error:
            raise RuntimeError(
                f"'{self.path}' cannot be unpacked into {folder}: {error.strerror or error}; "
                f"set the environment variable {FOLDER} to a folder with enough space"
            ) from None

    def _contents(self) -> Iterator[bytes]:
        done, most = 0, max(MOST_UNPACKED, MOST_TIMES * os.path.getsize(self.path))
        try:
            with gzip.open(self.path, "rb") as file:
                while block := file.read(UNPACKED):
                    done += len(block)
                    if done > most:
                        raise RuntimeError(
                            f"'{self.path}' unpacks to more than {most >> 20} MiB, {MOST_TIMES} times its size or more, as no text of "
                            "samples does; if the file is right, unpack it with gunzip"
                        )
                    yield block
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise RuntimeError(f"'{self.path}' is not a complete gzip file: {error}, behind byte {done} of its text") from None

    def _unreadable(self, error: OSError) -> RuntimeError:
        place = "" if os.path.isabs(self.path) else f" in {os.getcwd()}"
        return RuntimeError(f"cannot read the text file '{self.path}': {error.strerror or error}{place}")


def _may_keep(folder: Path) -> bool:
    """Whether nobody else can replace files in a folder; warns if somebody can."""
    try:
        require_trusted(folder)
    except Untrusted as error:
        warn_of(error.place, error.why, "What is unpacked is not kept there")
        return False
    return True
