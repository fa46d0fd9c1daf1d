"""Model files: functions saved, loaded, and restored in place, in the formats that plugins register."""

from __future__ import annotations

import importlib
import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from . import plugins
from .variable import Constant, Parameter, Variable

if TYPE_CHECKING:
    from .function import Function

Callback = Callable[[Sequence[Variable], str, Any], Any]
_callbacks: dict[str, Callback] = {}


class ModelFormat(Enum):
    """Formats of model files."""

    CNTKv2 = 0
    """CNTK's own."""
    ONNX = 1
    """Open Neural Network Exchange."""


def save(function: Function, filename: Any, model_format: ModelFormat) -> None:
    """See :meth:`Function.save`."""
    write_file(filename, format_of(model_format).write(function))


def load(model: Any, device: Any, model_format: ModelFormat) -> Function:
    """See :meth:`Function.load`."""
    known = format_of(model_format)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return known.read(model, device, f"<{len(model)} bytes>")
    if not isinstance(model, (str, os.PathLike)) or not os.path.isfile(model):
        raise ValueError(f"load: cannot load {model!r:.200}; expected the path of a file, or its content as bytes or bytearray")
    with open(model, "rb") as file:
        data = file.read()
    return known.read(data, device, os.fspath(model))


def restore(function: Function, filename: Any) -> None:
    """See :meth:`Function.restore`."""
    restore_values(function, load(filename, None, ModelFormat.CNTKv2), os.fspath(filename))


def restore_values(function: Function, loaded: Function, source: str) -> None:
    """Give the parameters and constants of *function* the values that those of *loaded*, read from *source*, have.

    Raises:
        ValueError: the two are not the same graph.
    """
    pairs = format_of(ModelFormat.CNTKv2).pairs(function, loaded)
    if pairs is None:
        raise ValueError(
            f"restore: {function} is not equivalent (isomorphic) to the function in {source}, {loaded}; "
            "the operators, their attributes and the shapes must be the same. load makes a function of its own of any file"
        )
    for mine, saved in pairs.items():
        if isinstance(mine, (Parameter, Constant)):
            mine.value = saved.value


def format_of(model_format: ModelFormat) -> Any:
    """What reads and writes a format.

    Raises:
        TypeError: *model_format* is no :class:`ModelFormat`.
        NotImplementedError: no plugin provides it.
    """
    if not isinstance(model_format, ModelFormat):
        raise TypeError(f"format must be one of {', '.join(map(str, ModelFormat))}, got {model_format!r:.80}")
    if model_format.name not in plugins.model_formats:
        known = ", ".join(sorted(plugins.model_formats)) or "none"
        raise NotImplementedError(f"no plugin reads and writes {model_format}; there are plugins for: {known}")
    return plugins.model_formats.get(model_format.name)


def write_file(filename: Any, pieces: Iterable[Any]) -> None:
    """Write a file so that there is either all of it or what was there before."""
    path = os.fspath(filename)
    temporary = f"{path}.{uuid.uuid4().hex}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


# ---- user functions ------------------------------------------------------------------------------


def register_udf_deserialize_callback(op_name: str, callback: Callback) -> None:
    """See :meth:`Function.register_udf_deserialize_callback`."""
    if op_name in _callbacks:
        raise ValueError(f"register_udf_deserialize_callback: there is a callback for '{op_name}' already")
    _callbacks[op_name] = callback


def make_user_function(module: str, class_name: str, op_name: str, inputs: Sequence[Variable], name: str, state: Any) -> Function:
    """Make a user function anew: by the callback registered for it, else by ``deserialize`` of its class.

    Raises:
        RuntimeError: there is neither, or what it gives is no function.
    """
    from .function import Function

    callback = _callbacks.get(op_name) or _deserializer(module, class_name, op_name)
    made = callback(inputs, name, state)
    if not isinstance(made, Function):
        raise RuntimeError(f"the user function '{op_name}' was made anew as {type(made).__name__}; expected a Function")
    if made.root_function.op_name == op_name and hasattr(made.root_function, "refresh"):
        made.root_function.refresh()
    return made


def _deserializer(module: str, class_name: str, op_name: str) -> Callback:
    try:
        found: Callback = getattr(importlib.import_module(module), class_name).deserialize
    except (ImportError, AttributeError, ValueError) as error:
        raise RuntimeError(
            f"the user function '{op_name}' cannot be made anew: {error}; put its module on the path, or register "
            "a callback with Function.register_udf_deserialize_callback"
        ) from error
    return found
