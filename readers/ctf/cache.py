"""The folder for files that are made from other files and reused the next time."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

from ...core.storage.cache_folder import user_cache

FOLDER = "CNTK_CACHE"
"""Environment variable that names the folder, in place of the user's cache folder."""

ENDS = 1 << 16
"""Bytes at a file's beginning and end that tell it from others."""


def cache_folder() -> Path | None:
    """The folder for files that can be recreated, which need not exist; None if the user has none."""
    given = os.environ.get(FOLDER)
    return Path(given) if given else user_cache("cntk")


def stamp_of(file: BinaryIO) -> tuple[int, int]:
    """Size of a file, and when it was changed."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def fingerprint(file: BinaryIO, *settings: object) -> bytes:
    """A fingerprint of 32 bytes, which changes with the file and the settings."""
    size, changed = stamp_of(file)
    digest = hashlib.blake2b(repr((size, changed, settings)).encode(), digest_size=32)
    for place in (0, max(size - ENDS, 0)):
        file.seek(place)
        digest.update(file.read(ENDS))
    return digest.digest()
