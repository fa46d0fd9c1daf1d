"""The engine's dictionaries: the form of configurations, files and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from cntk.core.storage.files import write_file
from cntk.core.types.axis import Axis
from cntk.core.values.value import NDArrayView
from cntk.learners.schedules import TrainingParameterSchedule
from cntk.plugins.formats import wire


class ValueType(IntEnum):
    """Numbers that CNTK's engine gives to the types of values."""

    _none = 0
    Bool = 1
    Int = 2
    SizeT = 3
    Float = 4
    Double = 5
    String = 6
    NDShape = 7
    Axis = 8
    Vector = 9
    Dictionary = 10
    NDArrayView = 11
    TrainingParameterSchedule = 12


_VALUE_TYPES: dict[type, ValueType] = {
    bool: ValueType.Bool,
    int: ValueType.Int,
    float: ValueType.Double,
    str: ValueType.String,
    tuple: ValueType.NDShape,
    list: ValueType.Vector,
    dict: ValueType.Dictionary,
    Axis: ValueType.Axis,
    NDArrayView: ValueType.NDArrayView,
    np.ndarray: ValueType.NDArrayView,
    TrainingParameterSchedule: ValueType.TrainingParameterSchedule,
}


class DictionaryValue:
    """The value of an entry of a :class:`Dictionary`: a bool, number, string, list, dictionary, array or None.

    >>> value = C.cntk_py.DictionaryValue(3)
    >>> value.value, value.has_value(), C.cntk_py.DictionaryValue().has_value()
    (3, True, False)
    """

    __slots__ = ("value",)

    Type__none = ValueType._none
    Type_Bool = ValueType.Bool
    Type_Int = ValueType.Int
    Type_SizeT = ValueType.SizeT
    Type_Float = ValueType.Float
    Type_Double = ValueType.Double
    Type_String = ValueType.String
    Type_NDShape = ValueType.NDShape
    Type_Axis = ValueType.Axis
    Type_Vector = ValueType.Vector
    Type_Dictionary = ValueType.Dictionary
    Type_NDArrayView = ValueType.NDArrayView
    Type_TrainingParameterSchedule = ValueType.TrainingParameterSchedule

    def __init__(self, value: Any = None) -> None:
        self.value: Any = value.value if isinstance(value, DictionaryValue) else value

    def has_value(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    def value_type(self) -> ValueType:
        """Number of the value's type, ``DictionaryValue.Type_Int`` and the like.

        Raises:
            TypeError: dictionaries do not hold such values.

        >>> C.cntk_py.DictionaryValue('text').value_type() == C.cntk_py.DictionaryValue.Type_String
        True
        """
        if self.value is None:
            return ValueType._none
        for kind, number in _VALUE_TYPES.items():
            if isinstance(self.value, kind):
                return number
        raise TypeError(f"DictionaryValue: dictionaries do not hold values of type {type(self.value).__name__}, such as {self.value!r:.80}")

    @staticmethod
    def type_name(value_type: int) -> str:
        """Name of a type's number.

        Raises:
            ValueError: there is no such type.

        >>> C.cntk_py.DictionaryValue.type_name(C.cntk_py.DictionaryValue.Type_Double)
        'Double'
        """
        kind = ValueType(value_type)
        return "None" if kind == ValueType._none else kind.name

    def save(self, filename: Any) -> None:
        """Write it to a file, as CNTK does.

        Raises:
            TypeError: it holds something that files do not have.
        """
        write_file(filename, wire.write_value(self.value))

    @staticmethod
    def load(filename: Any) -> DictionaryValue:
        """The value in a file.

        Raises:
            RuntimeError: the file is damaged, or holds something else.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, 'value')
        ...     C.cntk_py.DictionaryValue([1, 2]).save(path)
        ...     C.cntk_py.DictionaryValue_load(path)
        DictionaryValue([1, 2])
        """
        with open(filename, "rb") as file:
            return DictionaryValue(wire.plain(wire.read_value(file.read())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DictionaryValue) and _equal(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"DictionaryValue({self.value!r})"


class Dictionary(dict[str, Any]):
    """Entries by name, as in the engine's configurations; missing ones are None.

    >>> config = C.cntk_py.Dictionary()
    >>> config['traceLevel'] = 1
    >>> config['traceLevel'], config['frameMode']
    (1, None)

    Raises:
        TypeError: the key is not a string.
    """

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"Dictionary: keys are strings, got {type(key).__name__} {key!r:.80}")
        super().__setitem__(key, value.value if isinstance(value, DictionaryValue) else value)

    def __missing__(self, key: str) -> None:
        return None

    def save(self, filename: Any) -> None:
        """Write it to a file, as CNTK does.

        Raises:
            TypeError: it holds something that files do not have.
        """
        write_file(filename, wire.write_dictionary(self))

    @staticmethod
    def load(filename: Any) -> Dictionary:
        """The dictionary in a file, such as a model or checkpoint.

        Raises:
            RuntimeError: the file is damaged, or holds something else.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     C.plus(C.input_variable(2), 1).save(os.path.join(folder, 'model'))
        ...     model = C.cntk_py.Dictionary.load(os.path.join(folder, 'model'))
        >>> model['type'], len(model['inputs'])
        ('CompositeFunction', 2)
        """
        with open(filename, "rb") as file:
            return Dictionary(wire.plain(wire.read_dictionary(file.read())))

    def add(self, other: Mapping[str, Any]) -> None:
        """Take the entries of another dictionary."""
        for key, value in other.items():
            self[key] = value

    def contains(self, key: str) -> bool:
        """Whether there is such an entry."""
        return key in self

    def size(self) -> int:
        """Number of entries."""
        return len(self)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return getattr(left, "dtype", None) == getattr(right, "dtype", None) and np.array_equal(left, right)
    return type(left) is type(right) and bool(left == right)
