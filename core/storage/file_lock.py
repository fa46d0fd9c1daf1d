"""Locks between processes: a file that one writer at a time holds."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
"""Error numbers of file systems without locks."""
MARK = "opencntk"
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def open_carefully(name: str, flags: int) -> int:
    """Open a file without following a link, and without waiting if it is a pipe."""
    return os.open(name, flags | _CAREFULLY, 0o666)


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file, until it is closed or the process ends: whether that was possible, None where the file system has no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in NO_LOCKS:
            return None
        raise
    return True


class _Hold:
    """A held lock: the open file, and whether it is locked."""

    descriptor = -1
    is_locked = False


_holds: dict[str, _Hold] = {}
"""The locks of this process by name; some file systems let a process lock a file twice."""


class FileLock:
    """A lock for the duration of a ``with`` block, which fails if the lock is held.

    The system opens it when the process ends, however it ends.  The file is removed afterwards, by the next one who locks it if the process
    was killed.  On file systems without locks it says who holds it, which is believed as long as that process is there.

    Args:
        name: path of the file.
        guarded: the path that errors name as being written.

    Raises:
        BlockingIOError: another holds it; the error names the process.
        OSError: the file cannot be created, or is not a lock file.
    """

    def __init__(self, name: str, guarded: str) -> None:
        self._name, self._guarded, self._hold = name, guarded, _Hold()

    def __enter__(self) -> None:
        try:
            self._acquire()
        except OSError as error:
            self._release()
            if error.filename == self._guarded:
                raise
            raise OSError(error.errno, f"{error.strerror} (it is locked by {self._name!r} while it is written)", self._guarded) from None
        except BaseException:
            self._release()
            raise

    def __exit__(self, *_: Any) -> None:
        try:
            self._release()
        except BaseException:  # by a signal
            self._release()
            raise

    def __del__(self) -> None:
        self._release()

    def _acquire(self) -> None:
        hold = self._hold
        if _holds.setdefault(self._name, hold) is not hold:
            raise self._refusal("another thread or trainer of this process")
        while not hold.is_locked:
            hold.descriptor, is_ours = self._open()
            is_locked = try_lock(hold.descriptor)
            holder = _Holder.of(hold.descriptor, self._name)
            if is_locked is False or (is_locked is None and holder is not None and holder.is_alive()):
                raise self._refusal(str(holder or "another process"))
            if is_ours and is_in_place(hold.descriptor, self._name):
                hold.is_locked = True
            else:  # the file was removed meanwhile, or belongs to another user whose process was killed
                with suppress(FileNotFoundError):
                    self._remove_if_in_place(hold.descriptor)
                os.close(hold.descriptor)
                hold.descriptor = -1
        with suppress(OSError):  # such as a full disk: then the holder is unknown
            os.lseek(hold.descriptor, 0, os.SEEK_SET)
            os.ftruncate(hold.descriptor, 0)
            os.write(hold.descriptor, _Holder.here().text())

    def _open(self) -> tuple[int, bool]:
        """The open file, and whether it may be written to."""
        try:
            return open_carefully(self._name, os.O_RDWR | os.O_CREAT), True
        except PermissionError:
            if not os.path.exists(self._name):
                raise
            return open_carefully(self._name, os.O_RDONLY), False

    def _remove_if_in_place(self, descriptor: int) -> None:
        if is_in_place(descriptor, self._name):
            os.unlink(self._name)

    def _release(self) -> None:
        """Release the lock, even if it was acquired only in part."""
        hold = self._hold
        if hold.descriptor >= 0:
            with suppress(OSError):  # a file that stays does no harm
                if hold.is_locked:
                    self._remove_if_in_place(hold.descriptor)
            descriptor, hold.descriptor = hold.descriptor, -1
            with suppress(OSError):  # it is closed all the same
                os.close(descriptor)
        if _holds.get(self._name) is hold:
            del _holds[self._name]

    def _refusal(self, holder: str) -> BlockingIOError:
        text = f"{holder} is writing it, and holds the lock {self._name!r}; give the checkpoint another name, or save it there alone"
        return BlockingIOError(errno.EAGAIN, text, self._guarded)


class _Holder:
    """The process that a lock file names."""

    def __init__(self, process: int, begun: str, host: str) -> None:
        self.process, self.begun, self.host = process, begun, host

    @classmethod
    def here(cls) -> _Holder:
        return cls(os.getpid(), _begun(os.getpid()), socket.gethostname())

    @classmethod
    def of(cls, descriptor: int, name: str) -> _Holder | None:
        """The named process; None if none is named.

        Raises:
            OSError: it is not a lock file.
        """
        text = "no file"
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.lseek(descriptor, 0, os.SEEK_SET)
            text = os.read(descriptor, 500).decode(errors="replace").strip("\0")
        mark, *words = text.split(" ")
        if mark != MARK and not MARK.startswith(text):
            raise FileExistsError(errno.EEXIST, "it should be a lock file but is not; move it away", name)
        if len(words) != 3 or not words[0].isdecimal():
            return None  # such as after a power failure
        return cls(int(words[0]), words[1], words[2])

    def text(self) -> bytes:
        return f"{MARK} {self.process} {self.begun} {self.host}".encode()

    def is_alive(self) -> bool:
        """Whether the process is certainly alive: on this computer, and not another process that has got its number."""
        here = _Holder.here()
        return self.host == here.host and self.process != here.process and self.begun == _begun(self.process) != ""

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"


def _begun(process: int) -> str:
    """When a process began, in ticks; empty if there is none, or the system does not provide it."""
    try:
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def is_in_place(descriptor: int, name: str) -> bool:
    """Whether an open file is the one that has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(name))
    except FileNotFoundError:
        return False


def _forget() -> None:
    """Forget locks in a forked process: its parent holds them."""
    for hold in _holds.values():
        descriptor, hold.descriptor = hold.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
    _holds.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
