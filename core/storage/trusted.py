"""Files that no other user can have written: machine code is loaded from no others, and caches are read from no others.

A file is trusted where its owner is, nobody else may write to it, and nobody else can put another in its place: all folders up to the root
are trusted as well.  Trusted owners are the user, the superuser, and whoever owns Python itself, whose code runs already.  What the owner
of a folder may write to, members of a group that has nobody else in it may.  Systems without owners of files, such as Windows, protect the
folders of users themselves.
"""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from .files import write_file

TELLS_OWNERS = hasattr(os, "geteuid")
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
NOBODY_KNOWN = Path("/proc/sys/kernel/overflowuid")
"""The file in which Linux has the number of owners that are unknown here, as in user namespaces."""

AS_IT_IS = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
"""How files are opened, so that links are not followed, pipes not waited for and bytes not translated."""

PRIVATE, SHARED = 0o700, 0o755
"""Modes of folders that are made: for the user alone, and of a package that several users have."""


READABLE = 0o644
"""The mode of files that are made: others may read them as far as the user's mask lets them."""


class Untrusted(OSError):
    """Somebody else may have written a file.

    Attributes:
        place: the file, or the folder through which it is reached.
        why: who may have.
    """

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place}: {why}")
        self.place, self.why = place, why


def open_trusted(path: Path, beside: Path | None = None) -> BinaryIO:
    """Open a file that nobody else can have written.

    Args:
        path: the file.
        beside: a file that is trusted in any case: files in its folder, or below, need no better protection than it has.

    Raises:
        Untrusted: somebody else may have written it.
        OSError: it cannot be read, or is a link or not a regular file.
    """
    folder = os.path.realpath(path.parent)
    believed = _Believed(beside)
    is_shared = believed.check(folder)
    number = os.open(os.path.join(folder, path.name), os.O_RDONLY | AS_IT_IS)
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        believed.check_one(os.path.join(folder, path.name), status, is_file=True)
        if is_shared and status.st_nlink > 1:
            raise Untrusted(str(path), f"it has several names, and others may give names in {folder}")
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def require_trusted(folder: Path, beside: Path | None = None, alone: bool = False) -> None:
    """Check that nobody else can replace files of trusted owners in a folder; one that does not exist is treated as its parent.

    Args:
        folder: the folder.
        beside: see :func:`open_trusted`.
        alone: whether nobody else may even put files of theirs beside those.

    Raises:
        Untrusted: somebody else can.
    """
    is_shared = _Believed(beside).check(os.path.realpath(folder))
    if alone and is_shared:
        raise Untrusted(str(folder), "others may put files into it")


def make_folder(folder: Path, mode: int = PRIVATE) -> None:
    """Make a folder and those above it where they are missing, with a mode from which the user's mask takes what it does.

    Raises:
        OSError: it cannot be made.
    """
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        with suppress(FileExistsError):
            missing.mkdir(mode)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder")


def write_trusted(path: Path, pieces: Iterable[Any], beside: Path | None = None) -> None:
    """Write a file that :func:`open_trusted` opens; folders that are not there are made for the user alone.

    Args:
        path: the file.
        pieces: its bytes.
        beside: see :func:`open_trusted`.

    Raises:
        Untrusted: somebody else could put another file in its place.
        OSError: it cannot be written.
    """
    make_folder(path.parent)
    require_trusted(path.parent, beside)
    write_file(path, pieces, READABLE)


@cache
def warn_of(place: str, why: str, instead: str) -> None:
    """Warn, once, that something is not trusted."""
    warnings.warn(f"{place} is not trusted: {why}. {instead}", RuntimeWarning, stacklevel=3)


class _Believed:
    """Which owners and folders to trust.

    Args:
        beside: see :func:`open_trusted`.
    """

    def __init__(self, beside: Path | None) -> None:
        self._owners, self._allowed, self._base = _owners(), 0, ""
        if beside is not None and TELLS_OWNERS:
            file, folder = beside.stat(), beside.parent.stat()
            self._owners |= {file.st_uid}
            self._allowed = (file.st_mode | (0 if folder.st_mode & stat.S_ISVTX else folder.st_mode)) & OTHERS_WRITE
            self._base = os.path.realpath(beside.parent)

    def check(self, folder: str) -> bool:
        """Check that a folder is trusted, from the root on: then its entries can be relied upon.

        Returns:
            whether others may put files into it, though not in the place of those of others.
        """
        status = None
        for path in self._parts(folder) if TELLS_OWNERS else ():
            try:
                status = os.lstat(path)
            except OSError:
                break  # nothing can be opened there either
            self.check_one(path, status)
        return status is not None and bool(status.st_mode & OTHERS_WRITE) and bool(status.st_mode & stat.S_ISVTX)

    def check_one(self, path: str, status: os.stat_result, is_file: bool = False) -> None:
        """Check that a file or folder belongs to a trusted owner, and that nobody else may write to it."""
        if not TELLS_OWNERS:
            return
        if status.st_uid not in self._owners:
            raise Untrusted(path, f"it belongs to {_user(status.st_uid)}")
        others = stat.S_IMODE(status.st_mode) & OTHERS_WRITE & ~self._allowed
        if not others or (not is_file and status.st_mode & stat.S_ISVTX):
            return
        if others & stat.S_IWOTH or not _is_alone(path, status):
            raise Untrusted(path, f"others than {_user(status.st_uid)} may write to it (mode {stat.S_IMODE(status.st_mode):04o})")

    def _parts(self, folder: str) -> Iterator[str]:
        """The folders from the root on, or those below the trusted one."""
        found = [folder, *map(str, Path(folder).parents)]
        if self._base in found:
            found = found[: found.index(self._base)]
        return reversed(found)


def _owners() -> frozenset[int]:
    """The numbers of trusted owners."""
    if not TELLS_OWNERS:
        return frozenset()
    return frozenset({0, os.geteuid()}) | _owner_of_python()


@cache
def _owner_of_python() -> frozenset[int]:
    try:
        owner = os.stat(sys.executable).st_uid
    except (OSError, TypeError):
        return frozenset()
    try:
        return frozenset({owner}) - {int(NOBODY_KNOWN.read_text("ascii"))}
    except (OSError, ValueError):
        return frozenset({owner})


def _is_alone(path: str, status: os.stat_result) -> bool:
    """Whether the group of a file is its owner's alone, as many systems make one for each user, and no list of others is beside it."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    has_list = hasattr(os, "listxattr") and "system.posix_acl_access" in _attributes(path)
    return group.gr_gid == owner.pw_gid and group.gr_name == owner.pw_name and set(group.gr_mem) <= {owner.pw_name} and not has_list


def _attributes(path: str) -> list[str]:
    try:
        return os.listxattr(path, follow_symlinks=False)
    except OSError:
        return []


def _user(number: int) -> str:
    import pwd

    try:
        return f"user {number} ({pwd.getpwuid(number).pw_name})"
    except KeyError:
        return f"user {number}"
