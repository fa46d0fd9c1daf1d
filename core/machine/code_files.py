"""Files of machine code, each a loop for arguments of some kinds.

What a file was made of and by is noted in it, and it is read only where that is what is asked for, and nobody else can have written it.
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
"""How names of modules of this package begin."""

WITHOUT = "Machine code from there is passed over, and made anew"
"""What becomes of code that is not trusted."""

Toolchain = Sequence[str]
"""What made machine code, and for which processor."""


class Code(NamedTuple):
    """Machine code.

    Attributes:
        code: what LLVM reads.
        wanted: names of functions that it wants from elsewhere.
    """

    code: bytes
    wanted: list[str]


class Key(NamedTuple):
    """What machine code was made of.

    Attributes:
        loop: module, name and kinds of arguments.
        source: digest of the source text, and where in its file the loop is.
    """

    loop: list[str]
    source: list[Any]


def key_of(function: Any, kinds: Sequence[str]) -> Key | None:
    """A loop's key.

    None where it is not known what its code depends on: it is in no file, or uses values of the function that it was written in.
    """
    code = function.__code__
    if function.__closure__ or not os.path.exists(code.co_filename):
        return None
    file = Path(code.co_filename)
    source = _source(file.parent) if function.__module__.startswith(OURS) else _digest(file.read_text("utf-8"))
    return Key([function.__module__, function.__qualname__, *kinds], [source, code.co_firstlineno])


@cache
def _source(folder: Path) -> str:
    """Digest of the source text that loops of a folder are made of: its own, this folder's, and that of constants from elsewhere."""
    files = [*sorted(HERE.glob("*.py")), *(sorted(folder.glob("*.py")) if folder != HERE else []), Path(sums.__file__)]
    return hashlib.sha256(b"\0".join([file.read_bytes() for file in files])).hexdigest()


def read(folder: Path, key: Key, toolchain: Toolchain) -> Code | None:
    """Code out of a folder; None if there is none, it is outdated or damaged, or somebody else may have written it, of which it warns."""
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


def write(folder: Path, key: Key, toolchain: Toolchain, code: Code) -> None:
    """Write a file as a whole into a folder that is there.

    Raises:
        OSError: it cannot be written to.
    """
    write_file(_file(folder, key, toolchain), (json.dumps(_notes(key, toolchain, code)).encode(), b"\n", code.code), READABLE)


def _beside(folder: Path) -> Path | None:
    """What is believed anyway where a folder is in the package: its source, which runs already."""
    return Path(__file__) if HERE in folder.parents else None


def _file(folder: Path, key: Key, toolchain: Toolchain) -> Path:
    return folder / f"loop.{key.loop[1].rpartition('.')[2]}-{_digest(key.loop)[:20]}-{_digest(toolchain)[:12]}"


def _notes(key: Key, toolchain: Toolchain, code: Code) -> dict[str, Any]:
    """What is noted in a file."""
    notes = {"loop": key.loop, "source": key.source, "toolchain": list(toolchain), "wanted": code.wanted}
    return {**notes, "digest": hashlib.sha256(json.dumps(notes).encode() + code.code).hexdigest()}


def _digest(what: Any) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()
