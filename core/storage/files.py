"""Files that are written atomically: at every instant there is either the old one or the new one, whatever happens."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from .file_lock import is_in_place, open_carefully, try_lock

TEMPORARY = r"\.[0-9a-f]{32}\.tmp"
"""The suffix of a file's name while its content is being written."""
OLD = 24 * 60 * 60
"""Seconds without a change after which a file counts as abandoned, on file systems without locks."""
NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF)
"""Error numbers of file systems that cannot sync a folder."""


def write_file(filename: Any, pieces: Iterable[Any], mode: int = 0o666) -> None:
    """Write a file atomically: whatever happens, there is either all of it or the file from before.  It is on the disk afterwards.

    Folders are made, links followed; the file that is replaced keeps its mode and, where that is permitted, its owner.

    Args:
        filename: its path: a string, bytes or ``os.PathLike``.
        pieces: bytes, one after another.
        mode: mode of a new file, subject to the user's mask.

    Raises:
        OSError: it cannot be written, or there is something else than a file in its place.
    """
    new = NewFile(filename, mode=mode)
    try:
        new.write(pieces)
        new.take_place()
        new.sync()
    finally:
        new.discard()


class NewFile:
    """The new content of a file, in a temporary file beside it until it replaces the file.

    Args:
        filename: path of the file: a string, bytes or ``os.PathLike``.
        like: path of the file whose mode and owner it gets, if that exists; None for the file that it replaces.
        shown: the name that errors show; None for its path.
        mode: mode of the file if there is none to copy it from.

    Raises:
        OSError: there is something else than a file in its place.
    """

    def __init__(self, filename: Any, like: str | None = None, shown: str | None = None, mode: int = 0o666) -> None:
        self._shown = shown or os.fsdecode(filename)
        self._path = os.path.realpath(os.fsdecode(filename))
        self._mode, self._temporary = mode, ""
        self._file: Any = None
        replaced = status_of(self._path, self._shown)
        self._like = replaced if like is None else status_of(like, self._shown)

    def write(self, pieces: Iterable[Any]) -> None:
        """Write the content, and sync it to the disk.

        Raises:
            OSError: it cannot be written; the error says how many bytes were wanted.
        """
        written = 0
        try:
            make_folders(os.path.dirname(self._path))
            remove_leftovers(self._path)
            file = self._file = self._begun()
            self._take_over(file.fileno())
            for piece in pieces:
                file.write(piece)
                written += len(piece)
            file.flush()
            os.fsync(file.fileno())
            if os.name != "posix":  # for systems on which an open file cannot be renamed
                file.close()
        except OSError as error:
            if error.filename not in (None, self._temporary):
                raise
            wanted = f"{sum(map(len, pieces))} bytes were wanted" if isinstance(pieces, Sequence) else f"behind byte {written}"
            raise OSError(error.errno, f"{error.strerror} ({wanted})", self._shown) from None

    def take_place(self) -> None:
        """Replace the file.

        Raises:
            OSError: it cannot be replaced.
        """
        replace_file(self._temporary, self._path, self._shown)

    def sync(self) -> None:
        """Sync the replacement to the disk.

        Raises:
            OSError: that cannot be written.
        """
        sync_folder(self._path)

    def discard(self) -> None:
        """Remove a temporary file that has not replaced the file, and close it."""
        with suppress(FileNotFoundError):
            os.unlink(self._temporary)
        if self._file is not None:
            with suppress(OSError):  # the content has been synced
                self._file.close()

    def _begun(self) -> Any:
        """The temporary file, locked until it is closed, so that no other process takes it for a leftover."""
        while True:
            self._temporary = f"{self._path}.{uuid.uuid4().hex}.tmp"
            file = open(self._temporary, "xb", opener=self._opened)  # noqa: SIM115  (discard closes it)
            if try_lock(file.fileno()) is not False and is_in_place(file.fileno(), self._temporary):
                return file
            file.close()

    def _opened(self, name: str, flags: int) -> int:
        return os.open(name, flags, self._mode if self._like is None else 0o600)

    def _take_over(self, descriptor: int) -> None:
        """Give the new file mode and owner of the old one, as far as that is permitted."""
        if self._like is None or os.name != "posix":
            return
        made = os.fstat(descriptor)
        with suppress(OSError):
            if made.st_gid != self._like.st_gid:
                os.fchown(descriptor, -1, self._like.st_gid)
            if made.st_uid != self._like.st_uid:
                os.fchown(descriptor, self._like.st_uid, -1)
        with suppress(PermissionError):
            os.fchmod(descriptor, stat.S_IMODE(self._like.st_mode))


def replace_file(source: str, target: str, shown: str) -> None:
    """Replace one file by another, or create it.

    Args:
        source, target: paths without links.
        shown: the target's name in errors.

    Raises:
        OSError: there is something else than a file in its place, or it cannot be replaced.
    """
    status_of(target, shown)
    try:
        os.replace(source, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, shown) from None


def status_of(path: str, shown: str) -> os.stat_result | None:
    """The status of a file that is to be written; None if it does not exist.

    Args:
        path: its path without links.
        shown: its name in errors.

    Raises:
        OSError: it is not a regular file.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "cannot be written to: it is a folder", shown)
    if not stat.S_ISREG(status.st_mode):
        raise FileExistsError(errno.EEXIST, "cannot be written to: it exists and is not a regular file", shown)
    return status


def make_folders(folder: str) -> None:
    """Make a folder and its parents, and sync them to the disk.

    Raises:
        OSError: one cannot be made.
    """
    if os.path.isdir(folder):
        return
    make_folders(os.path.dirname(folder))
    try:
        os.mkdir(folder)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, "is a file; expected a folder", folder) from None
    sync_folder(folder)


def sync_folder(path: str) -> None:
    """Sync the folder of *path* to the disk, if the system can do that and the folder may be read.

    Raises:
        OSError: it cannot be written.
    """
    if os.name != "posix":
        return
    try:
        descriptor = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except PermissionError:
        return
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise OSError(error.errno, error.strerror, path) from None


def siblings(path: str, pattern: str) -> list[str]:
    """Paths of the files beside a file that have its name followed by *pattern*; none if the folder cannot be read."""
    folder, name = os.path.split(path)
    wanted = re.compile(re.escape(name) + pattern)
    try:
        return [os.path.join(folder, entry) for entry in os.listdir(folder) if wanted.fullmatch(entry)]
    except OSError:
        return []


def remove_leftovers(path: str, pattern: str = TEMPORARY) -> None:
    """Remove temporary files of killed processes beside a file, but none that a running process is writing."""
    for leftover in siblings(path, pattern):
        with suppress(OSError), open(leftover, "r+b", buffering=0, opener=open_carefully) as file:
            status, is_ours = os.fstat(file.fileno()), try_lock(file.fileno())
            is_old = status.st_mtime < time.time() - OLD
            if stat.S_ISREG(status.st_mode) and (is_old if is_ours is None else is_ours):
                os.unlink(leftover)
