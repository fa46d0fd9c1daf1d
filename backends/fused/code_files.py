"""Files of machine code, each a loop for arguments of some kinds.

What a file was made of and by is noted in it, and it is read only where that is what is asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent

Maker = Sequence[str]
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
    source = _source() if Path(code.co_filename).parent == HERE else _digest(Path(code.co_filename).read_text("utf-8"))
    return Key([function.__module__, function.__qualname__, *kinds], [source, code.co_firstlineno])


@lru_cache(maxsize=1)
def _source() -> str:
    """Digest of the source text that loops are made of: this folder's, and that of constants from elsewhere."""
    files = [*sorted(HERE.glob("*.py")), HERE.parents[1] / "core" / "sums.py"]
    return hashlib.sha256(b"\0".join([file.read_bytes() for file in files])).hexdigest()


def read(folder: Path, key: Key, maker: Maker) -> Code | None:
    """Code out of a folder; None if there is none, or it is outdated or damaged."""
    try:
        head, code = _file(folder, key, maker).read_bytes().split(b"\n", 1)
        notes = json.loads(head)
    except (OSError, ValueError):
        return None
    if not isinstance(notes, dict) or notes != _notes(key, maker, Code(code, notes.get("wanted", []))):
        return None
    return Code(code, notes["wanted"])


def write(folder: Path, key: Key, maker: Maker, code: Code) -> None:
    """Write a file as a whole.

    Raises:
        OSError: the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number, temporary = tempfile.mkstemp(dir=folder)
    try:
        with open(number, "wb") as file:
            file.write(json.dumps(_notes(key, maker, code)).encode() + b"\n" + code.code)
        os.chmod(temporary, 0o644)  # others may use what an administrator has installed
        os.replace(temporary, _file(folder, key, maker))
    except OSError:
        os.unlink(temporary)
        raise


def _file(folder: Path, key: Key, maker: Maker) -> Path:
    return folder / f"loop.{key.loop[1].rpartition('.')[2]}-{_digest(key.loop)[:20]}-{_digest(maker)[:12]}"


def _notes(key: Key, maker: Maker, code: Code) -> dict[str, Any]:
    """What is noted in a file."""
    digest = hashlib.sha256(code.code).hexdigest()
    return {"loop": key.loop, "source": key.source, "maker": list(maker), "wanted": code.wanted, "digest": digest}


def _digest(what: Any) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()
