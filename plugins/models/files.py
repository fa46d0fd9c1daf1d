"""Model files: functions saved, loaded, and restored in place, in the formats that plugins register."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from inspect import Parameter as Argument
from inspect import signature
from itertools import chain
from typing import TYPE_CHECKING, Any

from ...core.common.user_frame import warn_user
from ...core.extension import plugins
from ...core.graph.variable import Constant, Parameter, Variable
from ...core.storage.files import write_file
from ...core.storage.model_format import ModelFormat

if TYPE_CHECKING:
    from ...core.graph.function import Function
    from .format import Format

BEGINNING = 4096
"""Bytes of a file by which its format is told before the rest is read."""

Callback = Callable[[Sequence[Variable], str, Any], Any]
_callbacks: dict[str, Callback] = {}


def save(
    function: Function, filename: Any, model_format: ModelFormat | str, external: bool = False, options: Mapping[str, Any] | None = None
) -> None:
    """See :meth:`Function.save`."""
    known, options = format_of(model_format), options or {}
    _check_options(known.write, model_format, options)
    if hasattr(known, "write_files"):
        for path, pieces in known.write_files(function, os.fspath(filename), external, **options):
            write_file(path, pieces)
        return
    if external:
        warn_user("save: use_external_files_to_store_parameters has no effect: parameters are stored in the file itself", UserWarning)
    write_file(filename, known.write(function, **options))


def _check_options(write: Callable[..., Any], model_format: ModelFormat | str, options: Mapping[str, Any]) -> None:
    """Refuse options that a format has not."""
    known = [name for name, one in signature(write).parameters.items() if one.kind is Argument.KEYWORD_ONLY]
    unknown = [name for name in options if name not in known]
    if unknown:
        name = model_format.name if isinstance(model_format, ModelFormat) else model_format
        has = f"has the options {', '.join(known)}" if known else "has no options"
        raise TypeError(f"save: unknown option {unknown[0]!r}: the format {name!r} {has}")


def written_whole(function: Function) -> list[Any]:
    """The bytes of a file that the whole of a function can be read from, in pieces.

    It is in CNTK's format or, where that does not hold the function, in one of those that plugins have registered as ``holds_functions``.

    Raises:
        ValueError, TypeError: no format holds it; the message is that of CNTK's.
    """
    formats = (plugins.model_formats.get(name) for name in plugins.model_formats)
    others = [known for known in formats if getattr(known, "holds_functions", False)]
    try:
        return list(format_of(ModelFormat.CNTKv2).write(function))
    except (ValueError, TypeError):
        for known in others:
            with suppress(ValueError, TypeError):
                return list(known.write(function))
        raise


def load(model: Any, device: Any, model_format: ModelFormat | str) -> Function:
    """See :meth:`Function.load`."""
    known = format_of(model_format)
    if isinstance(model, (str, os.PathLike)) and os.path.isfile(model):  # others, such as pipes, are read once
        beginning, source = content_of(model, "load", BEGINNING)
        found = format_in(beginning, known)
        if hasattr(found, "read_file"):
            return found.read_file(source, device)
    data, source = content_of(model, "load")
    return format_in(data, known).read(data, device, source)


def restore(function: Function, filename: Any) -> None:
    """See :meth:`Function.restore`."""
    data, source = content_of(filename, "restore")
    known = format_in(data, format_of(ModelFormat.CNTKv2))
    if hasattr(known, "restore"):
        known.restore(function, data, source)
    else:
        restore_values(function, known.read(data, None, source), source)


def restore_values(function: Function, loaded: Function, source: str) -> None:
    """Give the parameters and constants of *function* the values that those of *loaded*, read from *source*, have.

    Raises:
        ValueError: the two are not the same graph.
    """
    for mine, saved in holders_of_both(function, loaded, source):
        mine.value = saved.value


def holders_of_both(function: Function, loaded: Function, source: str) -> list[tuple[Any, Any]]:
    """The parameters and constants of two functions that are the same graph, in pairs.

    Raises:
        ValueError: they are not.
    """
    pairs = format_of(ModelFormat.CNTKv2).pairs(function, loaded)
    if pairs is None:
        raise ValueError(
            f"restore: {function} is not equivalent (isomorphic) to the function in {source}, {loaded}; "
            "the operators, their attributes and the shapes must be the same. load makes a function of its own of any file"
        )
    return [(mine, saved) for mine, saved in pairs.items() if isinstance(mine, (Parameter, Constant))]


def content_of(model: Any, asked: str, most: int = -1) -> tuple[Any, str]:
    """The bytes of a file, which may be given themselves, and their name in errors.

    Args:
        model: path of the file, or its content.
        asked: the called function, for errors.
        most: how many bytes of a file at most; all of them where negative.

    Raises:
        ValueError: there is no such file.
    """
    if isinstance(model, (bytes, bytearray, memoryview)):
        return model, f"<{len(model)} bytes>"
    if not isinstance(model, (str, os.PathLike)):
        expected = "expected the path of a file, or its content as bytes or bytearray"
        raise ValueError(f"{asked}: cannot load {type(model).__name__} {model!r:.200}; {expected}")
    path = os.fspath(model)
    if os.path.isdir(path):
        raise ValueError(f"{asked}: {path!r} is a directory; expected the path of a file in it")
    try:
        with open(path, "rb") as file:
            return file.read(most), str(path)
    except OSError as error:
        raise ValueError(f"{asked}: cannot read the file {path!r}: {error.strerror}") from None


def format_in(data: Any, default: Format) -> Any:
    """The format that recognises the bytes of a file as its own; *default* where none does."""
    formats = (plugins.model_formats.get(name) for name in plugins.model_formats)
    others = (known for known in formats if hasattr(known, "recognises") and not getattr(known, "only_by_name", False))
    return next((known for known in chain((default,), others) if known.recognises(data)), default)


def format_of(model_format: ModelFormat | str) -> Any:
    """The object that reads and writes a format.

    Args:
        model_format: a member of :class:`ModelFormat`, or the name that a plugin has registered a format under.

    Raises:
        TypeError: *model_format* is neither.
        NotImplementedError: no plugin provides it.
    """
    if not isinstance(model_format, (ModelFormat, str)):
        raise TypeError(
            f"format must be {', '.join(map(str, ModelFormat))} or a name of {_registered()}, "
            f"got {type(model_format).__name__} {model_format!r:.80}"
        )
    name = model_format.name if isinstance(model_format, ModelFormat) else model_format
    if name not in plugins.model_formats:
        raise NotImplementedError(
            f"no plugin reads and writes the format {name!r}; there are plugins for {_registered()}. Others come with packages that "
            "pip installs; 'cntk doctor' shows the plugins that are there, and what is wrong with those that are broken"
        )
    return plugins.model_formats.get(name)


def _registered() -> str:
    return ", ".join(sorted(plugins.model_formats)) or "none"


# ---- user functions ------------------------------------------------------------------------------


def register_udf_deserialize_callback(op_name: str, callback: Callback) -> None:
    """See :meth:`Function.register_udf_deserialize_callback`."""
    if op_name in _callbacks:
        raise ValueError(f"register_udf_deserialize_callback: there is a callback for '{op_name}' already")
    _callbacks[op_name] = callback


def make_user_function(module: str, class_name: str, op_name: str, inputs: Sequence[Variable], name: str, state: Any) -> Function:
    """Recreate a user function: by the callback registered for it, else by ``deserialize`` of its class, if that has been imported.

    Raises:
        RuntimeError: there is neither, or what it gives is not a function.
    """
    callback = callback_of(op_name) or _deserializer_of(module, class_name, op_name)
    return checked_user_function(callback(inputs, name, state), op_name)


def callback_of(op_name: str) -> Callback | None:
    """The registered callbacks that recreate user functions."""
    return _callbacks.get(op_name)


def checked_user_function(made: Any, op_name: str) -> Function:
    """The user function that has been recreated, with its results.

    Raises:
        RuntimeError: it is not a function.
    """
    from ...core.graph.function import Function

    if not isinstance(made, Function):
        raise RuntimeError(f"the user function '{op_name}' was recreated as {type(made).__name__}; expected a Function")
    if made.root_function.op_name == op_name and hasattr(made.root_function, "refresh"):
        made.root_function.refresh()
    return made


def _deserializer_of(module: str, class_name: str, op_name: str) -> Callback:
    """``deserialize`` of a class that the program has imported: a file has nothing imported."""
    from ..user_functions import UserFunction

    def missing(reason: str) -> RuntimeError:
        return RuntimeError(
            f"the user function '{op_name}' cannot be recreated: {reason}. Loading a file imports nothing: import the module that defines "
            f"the class first, or register a callback with Function.register_udf_deserialize_callback({op_name!r}, ...)"
        )

    if sys.modules.get(module) is None:
        raise missing(f"the module '{module}' has not been imported")
    found = vars(sys.modules[module]).get(class_name)
    if not isinstance(found, type) or not issubclass(found, UserFunction):
        raise missing(f"'{module}' has no subclass of UserFunction called '{class_name}'")
    return found.deserialize
