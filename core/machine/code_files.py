"""Files of machine code, each of a loop for arguments of some kinds.

Each file records its source and its toolchain.  It is read only if they are those asked for, and if nobody else can have written it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..common import sums
from ..storage.files import write_file
from ..storage.trusted import PRIVATE, READABLE, SHARED, Untrusted, make_folder, open_trusted, require_trusted, warn_of

HERE = Path(__file__).parent

OURS = f"{__name__.partition('.')[0]}."
"""The prefix of this package's module names."""

WITHOUT = "Machine code in that folder is ignored, and compiled again"
"""What happens without code that is not trusted; part of warnings."""

Toolchain = Sequence[str]
"""What compiled machine code, and for which processor."""


class Code(NamedTuple):
    """Machine code.

    Attributes:
        code: an object file, which LLVM loads.
        wanted: names of the external functions that it calls.
    """

    code: bytes
    wanted: list[str]


class Key(NamedTuple):
    """What machine code was compiled from.

    Attributes:
        loop: module, name and kinds of arguments.
        source: digest of the source text, and where in its file the loop is.
    """

    loop: list[str]
    source: list[Any]


def key_of(function: Any, kinds: Sequence[str]) -> Key | None:
    """A loop's key.

    None if it is unknown what its code depends on, since it is in no file, or is a closure.
    """
    code = function.__code__
    if function.__closure__ or not os.path.exists(code.co_filename):
        return None
    file = Path(code.co_filename)
    source = _source(file.parent) if function.__module__.startswith(OURS) else _digest(file.read_text("utf-8"))
    return Key([function.__module__, function.__qualname__, *kinds], [source, code.co_firstlineno])


@cache
def _source(folder: Path) -> str:
    """Digest of the source that a folder's loops are compiled from: its own files, those of this folder, and the constants of sums."""
    files = [*sorted(HERE.glob("*.py")), *(sorted(folder.glob("*.py")) if folder != HERE else []), Path(sums.__file__)]
    return hashlib.sha256(b"\0".join([file.read_bytes() for file in files])).hexdigest()


def read(folder: Path, key: Key, toolchain: Toolchain) -> Code | None:
    """Code out of a folder; None if there is none, it is outdated or damaged, or somebody else may have written it, of which this warns."""
    try:
        with open_trusted(_file(folder, key, toolchain), _beside(folder)) as file:
            head, code = file.read().split(b"\n", 1)
        notes = json.loads(head)
    except Untrusted as error:
        warn_of(error.place, error.why, WITHOUT)
        return None
    except (OSError, ValueError, RecursionError, MemoryError):
        return None
    wanted = notes.get("wanted") if isinstance(notes, dict) else None
    if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
        return None
    found = Code(code, wanted)
    return found if notes == _notes(key, toolchain, found) else None


def keep(folder: Path, key: Key, toolchain: Toolchain, code: Code) -> None:
    """Write a file for :func:`read`.

    Raises:
        OSError: the folder cannot be written to, or others may write to it.
    """
    beside = _beside(folder)
    make_folder(folder, SHARED if beside else PRIVATE)
    require_trusted(folder, beside)
    write(folder, key, toolchain, code)


def can_keep(folder: Path) -> bool:
    """Whether :func:`keep` can write to a folder, which is made."""
    beside = _beside(folder)
    try:
        make_folder(folder, SHARED if beside else PRIVATE)
        require_trusted(folder, beside)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def complete_file(folder: Path, toolchain: Toolchain) -> Path:
    """The file that says that a folder has the code of all loops, for a toolchain."""
    return folder / f"loops-{_digest(toolchain)[:12]}"


def write(folder: Path, key: Key, toolchain: Toolchain, code: Code) -> None:
    """Write a file atomically into a folder, which must exist.

    Raises:
        OSError: it cannot be written to.
    """
    write_file(_file(folder, key, toolchain), (json.dumps(_notes(key, toolchain, code)).encode(), b"\n", code.code), READABLE)


def _beside(folder: Path) -> Path | None:
    """What is trusted in any case if the folder is in the package: its source, which is running already."""
    return Path(__file__) if HERE in folder.parents else None


def _file(folder: Path, key: Key, toolchain: Toolchain) -> Path:
    return folder / f"loop.{key.loop[1].rpartition('.')[2]}-{_digest(key.loop)[:20]}-{_digest(toolchain)[:12]}"


def _notes(key: Key, toolchain: Toolchain, code: Code) -> dict[str, Any]:
    """The header of a file."""
    notes = {"loop": key.loop, "source": key.source, "toolchain": list(toolchain), "wanted": code.wanted}
    return {**notes, "digest": hashlib.sha256(json.dumps(notes).encode() + code.code).hexdigest()}


def _digest(what: Any) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()
