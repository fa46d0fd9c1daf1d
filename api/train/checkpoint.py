"""Checkpoint files: ``<name>`` holds the model, ``<name>.ckp`` the state of everything else.

The two are written so that a process may be interrupted or killed, or the power may fail, at any instant.  The state has a digest of its
own and names the model that it belongs to by another.  A new model is first written beside the old one, as ``<name>.<digest>.new``; then
the new state takes the place of the old one, which is the instant at which the checkpoint becomes the new one; then the new model takes
its place.  Whoever reads finds the model that the state names under one of the two names.  Each step is on the disk before the next one
begins.  One process at a time writes: it holds the lock ``<name>.ckp.lock``.

Both files are dictionaries in the format of CNTK 2's model files.  What these do not have is written as a dictionary with one key: an
array of another element type under ``@array``, an integer beyond 64 bits or below -2**31 under ``@integer``.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from cntk.core.common.shape import is_concrete
from cntk.core.common.user_frame import warn_user
from cntk.core.graph.function import Function
from cntk.core.storage.file_lock import FileLock
from cntk.core.storage.files import TEMPORARY, NewFile, make_folders, remove_leftovers, replace_file, siblings, status_of, sync_folder
from cntk.plugins.formats.values import ARRAY, INTEGER, array_of, integer_of, is_native, tagged_array, tagged_integer
from cntk.plugins.formats.wire import read_dictionary, view_dictionary, write_dictionary
from cntk.plugins.models.files import written_whole
from cntk.plugins.protobuf import DamagedFile

VERSION = 1
KIND = "opencntk checkpoint"
PENDING = r"\.[0-9a-f]{32}\.new"
"""The suffix of the name of a model that waits to replace the old one."""
UNKNOWN = "unknown"
"""In place of a digest: the state that is there cannot be read."""


def write_checkpoint(filename: Any, model: Function, state: Mapping[str, Any]) -> None:
    """Write a model and a state as the checkpoint called *filename*.

    Args:
        filename: path of the model's file; the state's gets ``.ckp`` appended.
        model: the model to save.
        state: dictionaries with strings as keys, lists, strings, numbers, bools, None and NumPy arrays.

    Raises:
        TypeError: the state holds something else.
        ValueError, TypeError: no format holds the model.
        OSError: a file cannot be written, or another process or thread is writing this checkpoint; the one before is there still.
    """
    given, path = os.fsdecode(filename), _path_of(filename)
    content = to_bytes(state)
    pieces = written_whole(model)
    digest = _digest(pieces)
    header = {"kind": KIND, "version": VERSION, "model": digest, "digest": _digest([content])}
    status_of(path, given)
    make_folders(os.path.dirname(path))
    with FileLock(path + ".ckp.lock", given):
        _remove_leftovers(path)
        _commit(path, given, digest, pieces, write_dictionary({**header, "state": np.frombuffer(content, np.int8)}))
        for waiting in siblings(path, PENDING):
            with suppress(OSError):  # the next checkpoint removes them
                os.unlink(waiting)


def require_savable(model: Function) -> None:
    """Refuse a model that no checkpoint can hold, before anything is learned that would be lost.

    One with parameters whose shapes are not known before there is data is let pass.

    Raises:
        ValueError, TypeError: it cannot be saved; the message says which operator or value stands in the way.
    """
    if not all(is_concrete(parameter.shape) for parameter in model.parameters):
        return
    try:
        written_whole(model)
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"nothing has been trained, since no checkpoint could hold the model: {error}") from error


def _commit(path: str, given: str, digest: str, model: Any, state: Any) -> None:
    """Write the new model beside the old one, then replace the state, then the model."""
    pending = _pending(path, digest)
    waiting, new = NewFile(pending, like=path, shown=given), NewFile(path + ".ckp", shown=given + ".ckp")
    try:
        waiting.write(model)
        waiting.take_place()
        new.write(state)
        waiting.sync()
        new.take_place()
        new.sync()
        replace_file(pending, path, given)
    except BaseException:
        if _named_model(path) not in (digest, UNKNOWN):
            with suppress(FileNotFoundError):
                os.unlink(pending)
        raise
    finally:
        waiting.discard()
        new.discard()


def read_checkpoint(filename: Any) -> tuple[bytes, dict[str, Any]]:
    """The bytes of the model's file and the state of the checkpoint called *filename*.

    Raises:
        RuntimeError: there is none, a file is damaged, or the model's file is not the one that the state belongs to.
    """
    path = _path_of(filename)
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
    model, digest, state = _header(_dictionary(data, where), where)
    content = state.tobytes()
    if _digest([content]) != digest:
        raise DamagedFile(f"{where} is damaged: the state in it is not the one that was written")
    return _model_with(model, path), _natural(_dictionary(content, where, read_dictionary), where)


def _header(found: dict[str, Any], where: str) -> tuple[str, str, Any]:
    """The digests of model and state, and the bytes of the state."""
    if not isinstance(kind := found.get("kind"), str) or kind != KIND:
        raise DamagedFile(f"{where} is not a checkpoint of opencntk. Of a checkpoint of CNTK 2, the model, {where[:-4]}, can be loaded")
    if not isinstance(version := found.get("version"), int) or version != VERSION:
        raise DamagedFile(f"{where} is a checkpoint of version {version!r:.80}; this is opencntk for version {VERSION}")
    model, digest, state = (found.get(name) for name in ("model", "digest", "state"))
    if not isinstance(model, str) or not isinstance(digest, str) or not isinstance(state, np.ndarray):
        raise DamagedFile(f"{where}: expected the digests of a model and of a state, and the state; it has {sorted(found)}")
    return model, digest, state


def _dictionary(data: Any, where: str, read: Callable[[Any], dict[str, Any]] = view_dictionary) -> dict[str, Any]:
    try:
        return read(data)
    except DamagedFile as error:
        raise DamagedFile(f"{where} is not a checkpoint, or damaged: {error}") from None


def to_bytes(state: Mapping[str, Any]) -> bytes:
    """A state as :func:`write_checkpoint` takes it, for another process.

    Raises:
        TypeError: it holds something else.
    """
    return b"".join(write_dictionary(_plain(state, "the state")))


def require_plain(value: Any, name: str) -> None:
    """Check that a state holds only allowed values; *name* is the value's name in errors.

    Raises:
        TypeError: there is something else in it.
    """
    _plain(value, name)


def require_parts(state: Any, where: str, **kinds: type) -> None:
    """Refuse a state without some parts, or with parts of another kind.

    Raises:
        RuntimeError: it is so.
    """
    for name, kind in kinds.items():
        found: Any = state.get(name) if isinstance(state, Mapping) else None
        if not isinstance(found, kind) or (kind is int and not _is_count(found)):
            raise DamagedFile(f"{where}: expected a {kind.__name__} called '{name}' in it, got {type(found).__name__} {found!r:.80}")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@contextmanager
def part_of(where: str, part: str) -> Iterator[None]:
    """Have errors say which part of a state is none.

    Raises:
        RuntimeError: something in it is wrong.
    """
    try:
        yield
    except KeyError as error:
        raise DamagedFile(f"{where}, {part}: {error} is missing") from None
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise DamagedFile(f"{where}, {part}: {error}") from None


def from_bytes(data: bytes) -> Any:
    """The state that :func:`to_bytes` encoded."""
    return _natural(read_dictionary(data), "the state of a worker")


def has_checkpoint(filename: Any) -> bool:
    """Whether there is a checkpoint called *filename*."""
    return os.path.isfile(_path_of(filename) + ".ckp")


def furthest(filename: Any, with_numbered: bool) -> str | None:
    """The checkpoint that has come furthest: *filename* or, if wanted, one with a number appended; None where there is none.

    A checkpoint written after a restart of training counts as further than any before.  Where there are several, those that cannot
    be read are skipped with a warning.
    """
    names = [os.fsdecode(filename)] if has_checkpoint(filename) else []
    names += numbered(filename) if with_numbered else []
    if len(names) < 2:
        return names[0] if names else None
    reached = {}
    for name in names:
        try:
            reached[name] = progress_of(name)
        except RuntimeError as error:
            warn_user(f"a checkpoint is skipped: {error}", RuntimeWarning)
    return max(reached, key=lambda name: reached[name]) if reached else names[0]


def progress_of(filename: Any) -> tuple[int, int]:
    """How often training had been restarted when a checkpoint was written, and samples seen; the arrays in the file are not read.

    Raises:
        RuntimeError: the file cannot be read.
    """
    where = _path_of(filename) + ".ckp"
    try:
        with open(where, "rb") as file:
            _, _, content = _header(_dictionary(_mapped(file), where), where)
            state = _dictionary(memoryview(content), where)
    except OSError as error:
        raise _unreadable(error, where) from None
    external = workers[0].get("external") if isinstance(workers := state.get("workers"), list) and workers else None
    session = external.get("session") if isinstance(external, dict) else None
    begun = session.get("begun_anew", 0) if isinstance(session, dict) else 0
    samples = state.get("samples")
    if not isinstance(samples, (int, np.uint64)) or not isinstance(begun, (int, np.uint64)):
        raise DamagedFile(f"{where}: expected a number of samples, got {samples!r:.80}")
    return int(begun), int(samples)


def numbered(filename: Any) -> list[str]:
    """The checkpoints called *filename* with a number appended; whether they are whole is seen when they are read."""
    path, given = _path_of(filename), os.fsdecode(filename)
    return [given + found.removeprefix(path).removesuffix(".ckp") for found in siblings(path, r"[0-9]+\.ckp")]


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
        raise _unreadable(error, path) from None


def _unreadable(error: OSError, path: str) -> RuntimeError:
    model = path.removesuffix(".ckp")
    alone = f"; {model} is a model alone, which C.load_model and Function.restore read" if model != path and os.path.exists(model) else ""
    return RuntimeError(f"the checkpoint cannot be read: {error}{alone}")


def _model_with(digest: str, path: str) -> bytes:
    """The bytes of the model that a state belongs to: in its place, or where it waited when writing was broken off."""
    for name in (path, _pending(path, digest)):
        if os.path.isfile(name) and _digest([data := _bytes_of(name)]) == digest:
            return data
    raise RuntimeError(f"{path}.ckp belongs to another model than the one in {path}: one of the two files was damaged, removed or replaced")


def _path_of(filename: Any) -> str:
    """The path of the model's file, without links."""
    return os.path.realpath(os.fsdecode(filename))


def _named_model(path: str) -> str:
    """The digest of the model that the state in place names, or :data:`UNKNOWN`; nothing where there is no state."""
    try:
        with open(path + ".ckp", "rb") as file:
            return str(view_dictionary(_mapped(file)).get("model"))
    except FileNotFoundError:
        return ""
    except (OSError, DamagedFile):
        return UNKNOWN


def _mapped(file: Any) -> Any:
    """The bytes of an open file, of which only those are read that are looked at."""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""


def _remove_leftovers(path: str) -> None:
    """Remove the leftovers of killed saves: temporary files, and models that no state names."""
    remove_leftovers(path, f"({PENDING})?{TEMPORARY}|\\.ckp{TEMPORARY}")
    waiting = siblings(path, PENDING)
    if waiting:
        sync_folder(path)  # or else the state on the disk might be an older one, which names another model
        named = _named_model(path)
        for one in waiting:
            if named != UNKNOWN and one != _pending(path, named):
                with suppress(OSError):
                    os.unlink(one)


# ---- values that the format does not have --------------------------------------------------------


def _plain(value: Any, place: str) -> Any:
    """A value in the types of the format."""
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
        return tagged_integer(value)
    if isinstance(value, np.ndarray) and not is_native(value.dtype):
        if value.dtype.kind not in "biufc":
            raise TypeError(f"a checkpoint holds arrays of numbers, got one of {value.dtype} in {place}")
        return tagged_array(value)
    if value is None or isinstance(value, (bool, int, float, str, np.float32, np.ndarray)):
        return value
    raise TypeError(
        "a checkpoint holds dictionaries, lists, strings, numbers, bools, None and NumPy arrays, "
        f"got {type(value).__name__} {value!r:.80} in {place}; convert it first"
    )


def _natural(value: Any, where: str) -> Any:
    """The value that was written."""
    if isinstance(value, dict):
        for tag, value_of in ((INTEGER, integer_of), (ARRAY, array_of)):
            if tag in value:
                try:
                    return value_of(value[tag])
                except ValueError as error:
                    raise DamagedFile(f"{where}: {error}") from None
        return {key: _natural(item, where) for key, item in value.items()}
    if isinstance(value, list):
        return [_natural(item, where) for item in value]
    return int(value) if isinstance(value, np.uint64) else value
