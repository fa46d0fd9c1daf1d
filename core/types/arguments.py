"""Checks arguments of public functions against their annotations."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..common.options import is_default_override
from ..common.phrasebook import METHODS, advice
from ..common.tracebacks import end_at_user, is_raised
from ..common.user_frame import is_ours
from ..extension.device import DeviceDescriptor
from .axis import Axis

F = TypeVar("F", bound=Callable[..., Any])

Seed = int
"""A seed of random numbers: any whole number from 0 to 2**128 - 1."""

Count = int
"""A number of samples or the like: any whole number from 0 to 2**64 - 1, which stands for infinitely many."""

_ALIASES = {"AxisLike": "int | Axis", "Axes": "int | Axis | Sequence[int | Axis] | None"}
_PART = re.compile(r"Sequence\[([^]]*\]?)\]|[^|\s]+")


def checked(function: F) -> F:
    """Decorator for a public function: check arguments that are annotated as numbers, flags, texts, axes or sequences of these.

    Arguments with other annotations are the function's own to check; errors that do not name the function get its name, and those that
    explain a mistake end at the line that calls it.  Numbers of NumPy and floats without fraction are accepted as the numbers that they
    equal; arguments are passed on unchanged.

    Raises:
        TypeError: raised by the function made, for a value of another type; it names function and argument.
        ValueError: likewise, for a number that is not whole, or too large.

    >>> from cntk.core.types.arguments import checked
    >>> @checked
    ... def repeated(x, count: int):
    ...     return [x] * int(count)
    >>> repeated('a', 2.0)
    ['a', 'a']
    >>> repeated('a', 2.5)
    Traceback (most recent call last):
    ValueError: repeated: count must be a whole number, got 2.5
    """
    named, by_position = _arguments(function)
    annotations = {name: _text_of(annotation) for name, annotation in function.__annotations__.items()}
    wanted = [
        (place if place < by_position else _BY_NAME_ONLY, name, kind)
        for place, name in enumerate(named)
        if (kind := kind_of(annotations.get(name, "Any"))) is not None
    ]
    who = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = len(args)
        try:
            for place, name, kind in wanted:
                if place < given:
                    value = args[place]
                elif name in kwargs:
                    value = kwargs[name]
                else:
                    continue
                if type(value) not in kind.plain and not is_default_override(value):
                    kind.require(who, name, value)
            return function(*args, **kwargs)
        except Exception as error:
            _explain(error, who, named)
            raise

    return call  # type: ignore[return-value]


_BY_NAME_ONLY = 2**31


def _arguments(function: Callable[..., Any]) -> tuple[Sequence[str], int]:
    """The names of a function's arguments, and how many of them may be given by position."""
    signature = getattr(function, "__signature__", None)
    if signature is not None:  # a decorator has given it arguments
        return tuple(signature.parameters), len(signature.parameters)
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], code.co_argcount


def _text_of(annotation: Any) -> str:
    """An evaluated annotation, whether or not the program imports ``annotations`` from ``__future__``."""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation).replace("collections.abc.", "")


def _explain(error: Exception, who: str, named: Sequence[str]) -> None:
    """Have an error name the function that the program called, and end at the line that called it.

    Where arguments do not match the function's, which Python tells before it is entered, the error lists these.
    """
    mismatched = _is_of_call(error)
    if mismatched:
        listed = ", ".join(name for name in named if name != "self")
        error.args = (f"{error}; its arguments are {listed}{advice(METHODS, who.rpartition('.')[2] + '()')}",)
    if isinstance(error, (TypeError, ValueError, RuntimeError)):
        _name(error, who)
    end_at_user(error, is_explained=mismatched)


def _is_of_call(error: Exception) -> bool:
    """Whether it was a program's call of the function itself that failed."""
    entered = error.__traceback__
    if not isinstance(error, TypeError) or entered is None or entered.tb_next is not None or is_raised(entered):
        return False
    caller = entered.tb_frame.f_back
    return caller is not None and not is_ours(caller.f_globals.get("__name__", ""))


def _name(error: Exception, who: str) -> None:
    """Prefix a message with the function that the program called, if it names only functions behind it."""
    if len(error.args) == 1 and isinstance(error.args[0], str) and _plain(who.rpartition(".")[2]) not in _plain(error.args[0]):
        error.args = (f"{who}: {error.args[0]}",)


def _plain(text: str) -> str:
    return text.replace("_", "").lower()


class Kind:
    """The values that an annotation allows.

    Attributes:
        plain: types of which every value is allowed.
    """

    def __init__(self, parts: frozenset[str], items: Kind | None) -> None:
        self.parts, self.items = parts, items
        self.plain = frozenset(_PLAIN[part] for part in parts if part in _PLAIN)

    @property
    def described(self) -> str:
        """The allowed values in words."""
        words = [_WORDS[part] for part in _WORDS if part in self.parts and not (part == "int" and "float" in self.parts)]
        if self.items is not None:
            words.append(f"a sequence of these: {self.items.described}")
        return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else words[0]

    def require(self, who: str, what: str, value: Any) -> None:
        """Raise the error that names function and argument, unless *value* is allowed."""
        error = self.error(value)
        if error is not None:
            raise error(f"{who}: {what} must be {self.described}, got {shown(value)}")

    def error(self, value: Any) -> type[Exception] | None:
        """The kind of error that *value* is, None where it is allowed."""
        parts = self.parts
        if value is None:
            return None if "None" in parts else TypeError
        if isinstance(value, str):
            return None if "str" in parts else TypeError
        if isinstance(value, Axis):
            return None if "Axis" in parts else TypeError
        if isinstance(value, DeviceDescriptor):
            return None if "DeviceDescriptor" in parts else TypeError
        if isinstance(value, os.PathLike):
            return None if "os.PathLike[str]" in parts else TypeError
        if isinstance(value, (bool, np.bool_)):
            return None if parts & _NUMBERS else TypeError
        number = _number(value)
        if number is not None:
            return self._error_of_number(number)
        if self.items is not None and isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (bytes, bytearray)):
            if len(value) > _LONGEST:
                return ValueError
            return next((error for item in value if (error := self.items.error(item)) is not None), None)
        return TypeError

    def _error_of_number(self, number: float) -> type[Exception] | None:
        if "float" in self.parts:
            return ValueError if isinstance(number, int) and abs(number) >= _LARGEST else None
        if not self.parts & _NUMBERS:
            return TypeError
        lowest, highest = next(bounds for part, bounds in _BOUNDS.items() if part in self.parts)
        return None if lowest <= number < highest and int(number) == number else ValueError


def _number(value: Any) -> float | None:
    """A real number of Python's or NumPy's, None for anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (np.integer, np.floating)):
        return value.item() if isinstance(value, np.integer) else float(value)
    return value if isinstance(value, (int, float)) else None


def axes_in(who: str, dynamic_axes: Any) -> tuple[Axis, ...]:
    """Dynamic axes as users give them: one, or a sequence of them.

    Raises:
        TypeError: there is something else.
    """
    axes = (dynamic_axes,) if isinstance(dynamic_axes, Axis) else dynamic_axes
    if not isinstance(axes, (list, tuple)) or not all(isinstance(axis, Axis) for axis in axes):
        raise TypeError(f"{who}: dynamic_axes must be an Axis or a sequence of these, got {shown(dynamic_axes)}")
    return tuple(axes)


def mapping(who: str, what: str, value: Any) -> Mapping[str, Any]:
    """*value*, if it is a dictionary or the like.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{who}: {what} must be a dictionary, got {shown(value)}")
    return value


def shown(value: Any) -> str:
    """A value as errors show it, shortened."""
    if isinstance(value, int) and abs(value) >= 2**70:
        return f"a number of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:
        text = "<no representation>"
    kind = "" if isinstance(value, (bool, int, float)) else f"{type(value).__name__} "
    return f"{kind}{text:.80}"


@functools.cache
def kind_of(annotation: str) -> Kind | None:
    """The values that an annotation allows; None if it does not restrict them."""
    items: Kind | None = None
    parts = []
    for found in _PART.finditer(_ALIASES.get(annotation, annotation)):
        if found[1] is not None:
            items = kind_of(found[1])
            if items is None:
                return None
        else:
            parts += _ALIASES.get(found[0], found[0]).split(" | ")
    if not set(parts) <= set(_WORDS):
        return None
    return Kind(frozenset(parts), items)


_WORDS = {
    "bool": "True or False",
    "Seed": "a whole number from 0 to 2**128 - 1",
    "Count": "a whole number from 0 to 2**64 - 1",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "Axis": "an Axis",
    "os.PathLike[str]": "a path",
    "DeviceDescriptor": "a device such as cpu()",
    "None": "None",
}
_PLAIN: dict[str, type] = {"bool": bool, "float": float, "str": str, "None": type(None)}
_NUMBERS = frozenset(("bool", "Seed", "Count", "int", "float"))
_BOUNDS = {"Seed": (0, 2**128), "Count": (0, 2**64), "int": (-(2**63), 2**63), "bool": (0, 2)}
_LARGEST = 2**1023
_LONGEST = 2**20
