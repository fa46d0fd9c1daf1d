"""Helpers of CNTK's other modules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4
from warnings import warn

import numpy as np

from cntk import ops
from cntk.core.graph.function import Function
from cntk.core.graph.variable import Variable
from cntk.internal.sanitize import bounded_cache, sanitize_shape
from cntk.logging.graph import depth_first_search
from cntk.misc.optimized_rnnstack_converter import convert_optimized_rnnstack
from cntk.ops.functions import UserFunction
from cntk.train.session_config import frequency_of

AVAILABLE_TENSOR_OPS = [
    *("abs", "add", "div", "getitem", "matmul", "mul", "neg", "radd", "rdiv"),
    *("rmatmul", "rmul", "rsub", "rtruediv", "sub", "truediv"),
]
"""Python's operators that variables and functions take part in, without their underscores."""

_VARIABLE_OR_FUNCTION = (Variable, Function)
_serialization_version = 1
_typemap = None
"""CNTK casts the engine's objects by a table; here they are of their public classes from the start."""


def _input_spec(
    shape: Any, dtype: Any = np.float32, needs_gradient: bool = False, is_sparse: bool = False, dynamic_axes: Any = None, name: str = ""
) -> None:
    """The signature of ``input``, for ``get_default_override``."""


# ---- data ----


def _is_c_contiguous(data: Any) -> bool:
    """Whether an array, or the first one in nested lists, lies in memory row by row."""
    while isinstance(data, list):
        data = data[0]
    return bool(data.flags.c_contiguous)


@bounded_cache(maxsize=32)
def _sparse_to_dense_network_cache(input_shape: Any, is_sequence: bool, device: Any) -> Function:
    """A function that makes sparse data dense."""
    make_input = ops.sequence.input_variable if is_sequence else ops.input_variable
    return ops.times(make_input(input_shape, is_sparse=True), np.eye(input_shape[-1], dtype=np.float32))


def _dense_to_str(data: Any) -> str:
    """The numbers of an array as CNTK's text format has them."""
    return " ".join(map(str, np.ravel(data).tolist()))


def _sparse_to_str(data: Mapping[int, float]) -> str:
    """Numbers by index as CNTK's text format has them."""
    return " ".join(f"{index}:{value}" for index, value in sorted(data.items()))


def _process_image_deserializer_args(filename: str, streams: Mapping[str, Any], deserializer: str) -> tuple[str, str, int, str, Any]:
    """File, name and size of the stream of labels, name and transforms of the stream of images.

    Raises:
        ValueError: there is no stream of images, or one of something else.
    """
    by_field = {stream.stream_alias: name for name, stream in streams.items()}
    unknown = sorted(set(by_field) - {"image", "label"})
    if unknown:
        raise ValueError(f"{deserializer}: streams are of the field 'image' or 'label', got {unknown}")
    if "image" not in by_field:
        raise ValueError(f"{deserializer}: a stream of the field 'image' is missing; there are {sorted(streams)}")
    image, label = by_field["image"], by_field.get("label", f"_ignore_labels_{uuid4()}")
    classes = streams[label].dim if label in streams else 2
    return filename, label, classes, image, getattr(streams[image], "transforms", [])


def _sanitize_common_conv_args(strides: Any, auto_padding: Sequence[bool]) -> tuple[Any, list[bool]]:
    """Strides as a tuple, padding flags in the engine's order."""
    return sanitize_shape(strides), list(reversed(auto_padding))


# ---- user functions ----


def _serialize(udf: UserFunction) -> dict[str, Any]:
    """What a file says of a user function: class, module, name of the operator, state and version."""
    return {
        "class": type(udf).__name__,
        "module": type(udf).__module__,
        "op_name": udf.op_name,
        "state": udf.serialize(),
        "version": _serialization_version,
    }


class _UDFDeserializeCallbackWrapper:
    """Makes user functions of what files say of them, by callbacks; classes without one are not looked for.

    Args:
        factory_callback_map: callbacks by name of the operator.
    """

    def __init__(self, factory_callback_map: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self.factory_callback_map = factory_callback_map or {}

    def __call__(self, inputs: Iterable[Variable], name: str, dictionary: Mapping[str, Any]) -> Any:
        op_name = dictionary["op_name"]
        if op_name not in self.factory_callback_map:
            raise ValueError(f"no callback makes the user function '{op_name}'; call Function.register_udf_deserialize_callback")
        return self.factory_callback_map[op_name](list(inputs), name, dictionary["state"])


class _DeserializerFactory:
    """Makes deserializers by number.

    Args:
        callback: called with the number.
    """

    def __init__(self, callback: Callable[[int], Any]) -> None:
        self.callback = callback

    def __call__(self, id: int) -> Any:
        return self.callback(id)


# ---- training, logging and debugging ----


def _unpack_parameter_frequency(frequency: Any) -> tuple[Any, Any]:
    """A frequency as number and unit; a number alone counts samples.

    Raises:
        ValueError: it is neither a number nor ``(number, DataUnit)``.
    """
    found = frequency_of(frequency, "frequency")
    return None if frequency is None else found[0], found[1]


def _avg(numerator: Any, denominator: Any) -> float:
    """A quotient; of a pair the difference counts; 0 over nothing."""
    above, below = (part[1] - part[0] if isinstance(part, tuple) else part for part in (numerator, denominator))
    return above / below if below > 0 else 0.0


def _warn_deprecated(message: str) -> None:
    """Warn of something that has a newer form."""
    warn(f"DEPRECATED: {message}", DeprecationWarning, stacklevel=2)


class _DebugState:
    """Functions of a model by name, and the commands of a debugging session.

    Attributes:
        all_nodes, name_to_node: the functions.
        commands, last_pass: what is still to be done, and the pass that was last.
    """

    def __init__(self, all_nodes: Iterable[Any]) -> None:
        self.commands: list[Any] = []
        self.last_pass = "<start>"
        self.all_nodes = list(all_nodes)
        self.name_to_node: dict[str, list[Any]] = defaultdict(list)
        for node in self.all_nodes:
            self.name_to_node[node.name].append(node)


def _nodes_to_debug(model: Function) -> list[Any]:
    """The functions that :func:`cntk.debugging.debug_model` stops at: everything but user functions and what they are applied to."""
    nodes = set(depth_first_search(model, lambda node: True))
    watching = [node for node in nodes if getattr(node, "op_name", "") == "UserFunction"]
    watched = [node.inputs[0].owner if node.inputs[0].is_output else node.inputs[0] for node in watching]
    left_out = {node.uid for node in (*watching, *watched)}
    return [node for node in nodes if node.uid not in left_out]


_from_optimized_rnnstack = convert_optimized_rnnstack
