"""A layer between what writes files and the system: every call can fail, be interrupted or be the last one, and the power can fail.

``Calls`` stands for the duration of a ``with`` block in the place of what :mod:`cntk.core.storage.files`,
:mod:`cntk.core.storage.file_lock` and :mod:`cntk.train.checkpoint` call, numbers the calls, and asks *fault* before and after each.
"""

from __future__ import annotations

import fcntl
import io
import itertools
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import cntk.core.storage.file_lock
import cntk.core.storage.files
import cntk.train.checkpoint

MODULES = (cntk.core.storage.files, cntk.core.storage.file_lock, cntk.train.checkpoint)
NAMES = (
    *("open", "close", "read", "write", "lseek", "fsync", "replace", "unlink", "mkdir", "stat", "lstat", "fstat", "listdir", "ftruncate"),
    *("fchmod", "fchown", "readlink"),
)
Fault = Callable[[int, str, bool], None]
"""Called with a call's number, its name, and whether it has been done."""


class Calls:
    """Numbers the calls, from 0, and asks for a fault before and after each; *names* are their names.

    Nothing is synced, as no power fails really; *sync* is told of it.
    """

    def __init__(self, fault: Fault = lambda number, name, is_done: None, sync: Callable[[int], None] = lambda descriptor: None) -> None:
        self.names: list[str] = []
        self._fault, self._sync = fault, sync

    def __enter__(self) -> Calls:
        self._really: dict[str, Any] = {name: getattr(os, name) for name in NAMES}
        self._flock = fcntl.flock
        for name in NAMES:
            setattr(os, name, self._asking(name, self._sync if name == "fsync" else self._really[name]))
        fcntl.flock = self._asking("flock", self._flock)  # type: ignore[assignment]
        for module in MODULES:
            module.open = self._open  # type: ignore[attr-defined]
        return self

    def __exit__(self, *_: Any) -> None:
        for name in NAMES:
            setattr(os, name, self._really[name])
        fcntl.flock = self._flock
        for module in MODULES:
            del module.open  # type: ignore[attr-defined]

    def call(self, name: str, really: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        number = len(self.names)
        self.names.append(name)
        try:
            self._fault(number, name, False)
        except OSError as error:
            error.filename = next((one for one in arguments if isinstance(one, str)), None)  # as the system's errors have it
            raise
        try:
            return really(*arguments, **named)
        finally:
            self._fault(number, name, True)

    def _asking(self, name: str, really: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **named: self.call(name, really, *arguments, **named)

    def _open(self, name: Any, mode: str, buffering: int = -1, opener: Any = None) -> Any:
        raw = _Raw(self, name, mode.replace("b", ""), opener)
        return raw if buffering == 0 else io.BufferedReader(raw) if mode == "rb" else io.BufferedWriter(raw)


class _Raw(io.FileIO):
    """A file whose calls are counted."""

    def __init__(self, calls: Calls, name: Any, mode: str, opener: Any) -> None:
        self._calls = calls
        super().__init__(name, mode, opener=opener or (lambda path, flags: os.open(path, flags, 0o666)))

    def write(self, data: Any) -> Any:
        return self._calls.call("write", super().write, data)

    def close(self) -> None:
        if not self.closed:
            self._calls.call("close", super().close)


def once(at: int, fault: Callable[[], None], after: bool = False) -> Fault:
    """One fault, before or after the call of a number."""

    def happens(number: int, name: str, is_done: bool) -> None:
        if number == at and is_done == after:
            fault()

    return happens


def failing(code: int) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(code, os.strerror(code))

    return fail


def interrupt() -> None:
    raise KeyboardInterrupt


def killed(at: int, save: Callable[[], None]) -> bool:
    """Have a forked process save, which ends before a call as if it had been killed; whether it came to that call."""
    child = os.fork()
    if not child:
        end = os._exit
        try:
            with Calls(once(at, lambda: end(9))):
                save()
        finally:
            end(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


# ---- interrupts at every instruction -------------------------------------------------------------


class Instructions:
    """Counts the bytecode instructions that run in some functions, and raises KeyboardInterrupt before that of a number.

    Args:
        at: the number; none where None.
        is_meant: whether the instructions of a frame count.
    """

    def __init__(self, at: int | None, is_meant: Callable[[FrameType], bool]) -> None:
        self.at, self._is_meant, self.count = at, is_meant, 0

    def __enter__(self) -> Instructions:
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: Any) -> None:
        sys.settrace(self._before)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not self._is_meant(frame):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.count += 1
            if self.count - 1 == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._stepped


# ---- loss of power -------------------------------------------------------------------------------

Image = dict[str, bytes]
"""What a folder holds: by name the content of a file."""


def image_of(folder: Path) -> Image:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def lay_out(folder: Path, image: Image) -> None:
    """Have a folder hold this and nothing else."""
    for path in folder.iterdir():
        path.unlink()
    for name, content in image.items():
        (folder / name).write_bytes(content)


class PowerLoss:
    """Watches a folder call by call, and tells what may be left of it when the power fails in between.

    A file's content is certain to be on the disk when it has been synced, what the folder says when that has been.  Everything else is or
    is not: the last changes of the folder in any selection, content not at all, half or whole.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._ids, self._numbers = folder, {}, itertools.count()
        self._synced: dict[int, bytes] = {}
        self._content: dict[int, bytes] = {}
        self._now = self._look()
        self._disk = dict(self._now)
        self._changes: list[dict[str, int | None]] = []
        self._synced.update(self._content)
        self.found: dict[Any, Image] = {}
        """What may be left at any moment, without repetitions."""

    def fault(self, number: int, name: str, is_done: bool) -> None:
        """To be asked by :class:`Calls`."""
        if is_done:
            before, self._now = self._now, self._look()
            names = before.keys() | self._now.keys()
            change = {one: self._now.get(one) for one in names if before.get(one) != self._now.get(one)}
            if change:
                self._changes.append(change)
            self.found |= self.left()

    def synced(self, descriptor: int) -> None:
        """An open file or folder has been synced."""
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            self._disk, self._changes = dict(self._now), []
        else:
            number = self._ids[status.st_ino]
            self._synced[number] = self._content[number]

    def left(self) -> dict[Any, Image]:
        """What may be left now, without repetitions."""
        return {tuple(sorted(image.items())): image for image in self._images()}

    def _look(self) -> dict[str, int]:
        """What the folder says: by name the number of a file."""
        now, seen = {}, {}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                inode = entry.inode()
                seen[inode] = now[entry.name] = self._ids[inode] if inode in self._ids else next(self._numbers)
        self._ids = seen
        for name, number in now.items():
            self._content[number] = (self._folder / name).read_bytes()
        return now

    def _images(self) -> Iterator[Image]:
        for kept in itertools.product((False, True), repeat=len(self._changes)):
            names: dict[str, int | None] = dict(self._disk)
            for change in itertools.compress(self._changes, kept):
                names.update(change)
            for share in (0, 0.5, 1):
                yield {name: self._left(number, share) for name, number in names.items() if number is not None}

    def _left(self, number: int, share: float) -> bytes:
        content, synced = self._content[number], self._synced.get(number)
        return synced if synced == content else content[: int(len(content) * share)]
