"""Checkpoint files: ``<name>`` holds the model, ``<name>.ckp`` the state of everything else.

The two are written so that a process may be killed, or the power may fail, at any instant.  The state has a digest of its own and names
the model that it belongs to by another.  A new model is first written beside the old one, as ``<name>.<digest>.new``; then the new state
takes the place of the old one, which is the instant at which the checkpoint becomes the new one; then the new model takes its place.
Whoever reads finds the model that the state names under one of the two names.

Both files are dictionaries in the format of CNTK 2's model files.  What these do not have is written as a dictionary with one key: an
array of another element type under ``@array``, an integer beyond 64 bits or below -2**31 under ``@integer``.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from cntk.core.function import Function
from cntk.core.model_files import ModelFormat, format_of, write_file
from cntk.plugins.formats.wire import DamagedFile, read_dictionary, write_dictionary

VERSION = 1
KIND = "opencntk checkpoint"
ARRAY, INTEGER = "@array", "@integer"
_BEGUN = time.time()
NATIVE = tuple(map(np.dtype, (np.float16, np.float32, np.float64)))
"""Element types of arrays that the format has."""


def write_checkpoint(filename: Any, model: Function, state: Mapping[str, Any]) -> None:
    """Write a model and a state as the checkpoint called *filename*.

    Args:
        filename: path of the model's file; the state's gets ``.ckp`` appended.
        model: what is saved.
        state: dictionaries with strings as keys, lists, strings, numbers, bools, None and NumPy arrays.

    Raises:
        TypeError: the state holds something else.
        OSError: a file cannot be written.
    """
    path = os.path.realpath(filename)
    content = to_bytes(state)
    pieces = list(format_of(ModelFormat.CNTKv2).write(model))
    digest = _digest(pieces)
    header = {"kind": KIND, "version": VERSION, "model": digest, "digest": _digest([content])}
    if os.path.isdir(path):
        raise OSError(f"cannot write a checkpoint to {path!r}: it is a folder")
    pending = _pending(path, digest)
    try:
        write_file(pending, pieces)
        write_file(path + ".ckp", write_dictionary({**header, "state": np.frombuffer(content, np.int8)}))
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(pending)
        raise
    _sync_folder(path)
    os.replace(pending, path)
    _remove_leftovers(path)


def read_checkpoint(filename: Any) -> tuple[bytes, dict[str, Any]]:
    """The bytes of the model's file and the state of the checkpoint called *filename*.

    Raises:
        RuntimeError: there is none, a file is damaged, or the model's file is not the one that the state belongs to.
    """
    path = os.path.realpath(filename)
    data = _bytes_of(path + ".ckp")
    while True:
        try:
            return _read(data, path)
        except RuntimeError:
            before, data = data, _bytes_of(path + ".ckp")
            if data == before:  # else another process has written a new checkpoint meanwhile
                raise


def _read(data: bytes, path: str) -> tuple[bytes, dict[str, Any]]:
    where = path + ".ckp"
    found = _dictionary(data, where)
    if not isinstance(kind := found.get("kind"), str) or kind != KIND:
        raise DamagedFile(f"{where} is no checkpoint of opencntk. Of a checkpoint of CNTK 2, the model, {path}, can be loaded")
    if not isinstance(version := found.get("version"), int) or version != VERSION:
        raise DamagedFile(f"{where} is a checkpoint of version {version!r:.80}; this is opencntk for version {VERSION}")
    model, digest, state = (found.get(name) for name in ("model", "digest", "state"))
    if not isinstance(model, str) or not isinstance(digest, str) or not isinstance(state, np.ndarray):
        raise DamagedFile(f"{where}: expected the digests of a model and of a state, and the state; it has {sorted(found)}")
    content = state.tobytes()
    if _digest([content]) != digest:
        raise DamagedFile(f"{where} is damaged: the state in it is not the one that was written")
    return _model_with(model, path), _natural(_dictionary(content, where), where)


def _dictionary(data: bytes, where: str) -> dict[str, Any]:
    try:
        return read_dictionary(data)
    except DamagedFile as error:
        raise DamagedFile(f"{where} is no checkpoint, or damaged: {error}") from None


def to_bytes(state: Mapping[str, Any]) -> bytes:
    """A state as :func:`write_checkpoint` takes it, for another process.

    Raises:
        TypeError: it holds something else.
    """
    return b"".join(write_dictionary(_plain(state, "the state")))


def require_plain(value: Any, name: str) -> None:
    """Refuse what a state may not hold; *name* is what errors call the value.

    Raises:
        TypeError: there is something else in it.
    """
    _plain(value, name)


def require_parts(state: Mapping[str, Any], where: Any, **kinds: type) -> None:
    """Refuse a state without some parts, or with parts of another kind.

    Raises:
        RuntimeError: it is so.
    """
    for name, kind in kinds.items():
        if not isinstance(state.get(name), kind):
            raise DamagedFile(f"{where}.ckp: expected a {kind.__name__} called '{name}' in it, got {type(state.get(name)).__name__}")


def from_bytes(data: bytes) -> Any:
    """What :func:`to_bytes` was given."""
    return _natural(read_dictionary(data), "the state of a worker")


def has_checkpoint(filename: Any) -> bool:
    """Whether there is a checkpoint called *filename*."""
    return os.path.isfile(os.path.realpath(filename) + ".ckp")


def latest_numbered(filename: Any) -> str | None:
    """The checkpoint called *filename* with the highest number appended, or None; whether it is whole is seen when it is read."""
    folder, name = os.path.split(os.path.realpath(filename))
    numbered = re.compile(re.escape(name) + r"(\d+)\.ckp")
    entries = os.listdir(folder) if os.path.isdir(folder) else []
    numbers = [int(match[1]) for entry in entries if (match := numbered.fullmatch(entry))]
    return f"{os.fspath(filename)}{max(numbers)}" if numbers else None


# ---- files ---------------------------------------------------------------------------------------


def _digest(pieces: Iterable[Any]) -> str:
    made = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        made.update(piece)
    return made.hexdigest()


def _pending(path: str, digest: str) -> str:
    return f"{path}.{digest}.new"


def _bytes_of(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise RuntimeError(f"the checkpoint cannot be read: {error}") from error


def _model_with(digest: str, path: str) -> bytes:
    """The bytes of the model that a state belongs to: in its place, or where it waited when writing was broken off."""
    for name in (path, _pending(path, digest)):
        if os.path.isfile(name) and _digest([data := _bytes_of(name)]) == digest:
            return data
    raise RuntimeError(f"{path}.ckp belongs to another model than the one in {path}: one of the two files was damaged, removed or replaced")


def _sync_folder(path: str) -> None:
    """Have the renaming of the state on disk before that of the model, where the system can tell."""
    if os.name == "posix":
        descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_leftovers(path: str) -> None:
    """Remove what processes were killed over that had begun to write before this one was there."""
    folder, name = os.path.split(path)
    digits = "[0-9a-f]{32}"
    leftover = re.compile(rf"{re.escape(name)}(\.{digits}\.new)?(\.{digits}\.tmp)?|{re.escape(name)}\.ckp\.{digits}\.tmp")
    for entry in os.listdir(folder or "."):
        if entry != name and leftover.fullmatch(entry):
            with suppress(FileNotFoundError):
                if os.path.getmtime(os.path.join(folder, entry)) < _BEGUN:
                    os.unlink(os.path.join(folder, entry))


# ---- values that the format does not have --------------------------------------------------------


def _plain(value: Any, place: str) -> Any:
    """A value in terms of what the format has."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or key in (ARRAY, INTEGER):
                raise TypeError(f"a checkpoint has strings as keys, but not '{ARRAY}' or '{INTEGER}'; got {key!r:.80} in {place}")
        return {key: _plain(item, f"{place}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, f"{place}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, np.generic) and not isinstance(value, np.float32):
        value = value.item()
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**31) <= value < 2**64:
        return {INTEGER: str(value)}
    if isinstance(value, np.ndarray) and value.dtype not in NATIVE:
        if value.dtype.kind not in "biufc":
            raise TypeError(f"a checkpoint holds arrays of numbers, got one of {value.dtype} in {place}")
        kind = value.dtype.newbyteorder("<")
        return {ARRAY: [kind.str, list(value.shape), np.frombuffer(value.astype(kind).tobytes(), np.int8)]}
    if value is None or isinstance(value, (bool, int, float, str, np.float32, np.ndarray)):
        return value
    raise TypeError(
        "a checkpoint holds dictionaries, lists, strings, numbers, bools, None and NumPy arrays, "
        f"got {type(value).__name__} {value!r:.80} in {place}; convert it first"
    )


def _natural(value: Any, where: str) -> Any:
    """The value that was written."""
    if isinstance(value, dict):
        if INTEGER in value:
            return _integer(value[INTEGER], where)
        if ARRAY in value:
            return _array(value[ARRAY], where)
        return {key: _natural(item, where) for key, item in value.items()}
    if isinstance(value, list):
        return [_natural(item, where) for item in value]
    return int(value) if isinstance(value, np.uint64) else value


def _integer(text: Any, where: str) -> int:
    if not isinstance(text, str) or not re.fullmatch(r"-?\d{1,1000}", text):
        raise DamagedFile(f"{where}: expected the digits of an integer, got {text!r:.80}")
    return int(text)


def _array(parts: Any, where: str) -> Any:
    try:
        kind, shape, raw = parts
        if not re.fullmatch("[<|][biufc][0-9]{1,2}", kind):
            raise ValueError(f"{kind!r:.80} is no type of numbers")
        return np.frombuffer(raw.tobytes(), kind).reshape(shape).copy()
    except (TypeError, ValueError, AttributeError) as error:
        raise DamagedFile(f"{where}: expected element type, shape and bytes of an array ({error})") from None
