"""Conversions of operators' attributes between files and our operators, by kinds of values.

CNTK's engine counts static axes from the last; ``-1 - axis`` turns a number of one side into one of the other, whatever the rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.common.dtypes import DataType, as_stored_dtype, data_type_of
from ...core.graph.nodes import Primitive
from ...core.types.axis import Axis
from ...core.types.spec import Spec
from .wire import FileAxis, NDShape

DYNAMIC, UNKNOWN, ALL_STATIC, BEHIND_ALL, ALL = 2**31 - 1, 2**31 - 3, 2**31 - 2, 2**31 - 4, 2**31 - 5
"""Numbers that files give to axes that are not static, and to the markers."""
_MARKERS = {ALL_STATIC: Axis.all_static_axes(), ALL: Axis.all_axes(), UNKNOWN: Axis.unknown_dynamic_axes()[0]}
_TYPES = (DataType.Float, DataType.Double, DataType.Float16, DataType.Int8, DataType.Int16, DataType.BFloat16)


class Kind(NamedTuple):
    """The conversions of a kind of value: to files, given the operator's first operand, and back."""

    write: Callable[[Any, Spec], Any]
    read: Callable[[Any], Any]


def static_axis(axis: Any, rank: int | None) -> FileAxis:
    """A static axis of ours in a file; counted from the front where the rank is known, as CNTK does."""
    index = axis.static_axis_index() if isinstance(axis, Axis) else int(axis)
    if axis == Axis.new_leading_axis():
        if rank is None:
            raise ValueError("an axis in front cannot be saved while the operand's shape is not known; give the placeholder a shape")
        index = -rank - 1
    if index >= 0 and rank is not None:
        index -= rank
    return static(-1 - index)


def static(index: int) -> FileAxis:
    """Static axis *index* of the engine."""
    return FileAxis(index, f"staticAxisIdx={index}", True)


def python_axis(axis: Any) -> Any:
    """The axis that a file's axis stands for."""
    if not isinstance(axis, FileAxis):
        raise ValueError(f"expected an axis, found {axis!r}")
    if axis.number in _MARKERS:
        return _MARKERS[axis.number]
    if axis.number == DYNAMIC:
        return Axis(axis.name, axis.ordered)
    return Axis(-1 - axis.number)


def file_axis(axis: Axis, rank: int | None = None) -> FileAxis:
    """The number of an axis in a file, dynamic ones and markers included."""
    for index, marker in _MARKERS.items():
        if axis == marker:
            return FileAxis(index, axis.name, False)
    return static_axis(axis, rank) if axis.is_static_axis else FileAxis(DYNAMIC, axis.name, axis.is_ordered)


def file_axes(axes: Sequence[Axis] | None) -> list[FileAxis]:
    """Dynamic axes in a file: the batch axis last."""
    return [file_axis(axis) for axis in reversed(Axis.unknown_dynamic_axes() if axes is None else axes)]


def python_axes(axes: Any) -> tuple[Axis, ...] | None:
    """Dynamic axes from a file."""
    found = tuple(python_axis(axis) for axis in reversed(_list(axes)))
    return None if found == Axis.unknown_dynamic_axes() else found


def file_type(dtype: Any) -> int:
    """Number of an element type."""
    return int(data_type_of(dtype))


def python_type(code: Any) -> Any:
    """Element type of a number; None for that of no type."""
    number = _number(code)
    if number == 0:
        return None
    if number not in _TYPES:
        raise ValueError(f"expected the number of an element type, one of {sorted(map(int, _TYPES))}, found {number}")
    return as_stored_dtype(DataType(number))


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"expected a whole number, found {value!r:.60}")
    if not -(2**31) <= int(value) < 2**31:
        raise ValueError(f"expected a number of 32 bits, found {value}")
    return int(value)


def _seed(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= int(value) < 2**64:
        raise ValueError(f"expected a whole number from 0 to 2**64 - 1, found {value!r:.60}")
    return int(value)


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ValueError(f"expected a number, found {value!r:.60}")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected a bool, found {value!r:.60}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a string, found {value!r:.60}")
    return value


def _shape(value: Any) -> tuple[int, ...]:
    if not isinstance(value, NDShape):
        raise ValueError(f"expected a shape, found {value!r:.60}")
    return tuple(value)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, found {value!r:.60}")
    return value


def _rank(spec: Spec) -> int | None:
    return None if spec.shape is None else spec.rank


def list_of(kind: Kind, backwards: bool = False) -> Kind:
    """A list; *backwards* where it goes along the axes."""
    step = -1 if backwards else 1
    return Kind(
        lambda values, x: [kind.write(value, x) for value in list(values)[::step]],
        lambda values: tuple(kind.read(value) for value in _list(values)[::step]),
    )


SIZE = Kind(lambda value, x: np.uint64(value), _number)
SEED = Kind(lambda value, x: np.uint64(value % 2**64), _seed)
INT = Kind(lambda value, x: np.int32(value), _number)
DOUBLE = Kind(lambda value, x: float(value), _real)
FLOAT = Kind(lambda value, x: np.float32(value), _real)
BOOL = Kind(lambda value, x: bool(value), _flag)
TEXT = Kind(lambda value, x: str(value), _text)
SHAPE = Kind(lambda value, x: NDShape(value), _shape)
FLAGS = list_of(BOOL, backwards=True)
SIZES = list_of(SIZE, backwards=True)
AXIS = Kind(lambda axis, x: static_axis(axis, _rank(x)), python_axis)
NEW_AXIS = Kind(lambda axis, x: static_axis(axis, None if x.shape is None else x.rank + 1), python_axis)
ANY_AXIS = Kind(lambda axis, x: file_axis(axis if isinstance(axis, Axis) else Axis(axis), _rank(x)), python_axis)
ANY_AXES = list_of(ANY_AXIS)
DTYPE = Kind(lambda dtype, x: np.int32(file_type(dtype)), python_type)
STREAM = "rngOffset"
"""Attribute that tells how many numbers a random operator has drawn."""
WORDS = "rngWords"
"""Attribute, which CNTK ignores, that tells how many words of a generator it has drawn them from."""


def operand_of(node: Primitive) -> Spec:
    """What is known of a node's first operand."""
    return node.inputs[0].spec if node.inputs else Spec(())
