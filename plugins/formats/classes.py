"""Operators without a number in CNTK's format: files store their class, and the arguments of its constructor.

A file contains no code.  Its names of classes are compared with the classes of operators that the program has.  If none has the name,
objects that plugins have registered from the same module or package are imported; no other module is imported because a file names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import signature
from typing import Any

from ...core.extension import plugins
from ...core.extension.identity import identity_of
from ...core.operators.abilities import (
    AcceptsStrided,
    AssumesShapes,
    CommutesWithMonotone,
    CountsOperations,
    EndsExpression,
    Follows,
    GivesRowSparse,
)
from ...core.operators.delay import Delay
from ...core.operators.effects import Assignment, Finishing
from ...core.operators.elementwise import Elementwise
from ...core.operators.native import NativeOp
from ...core.operators.op import Op
from ...core.operators.sequence_op import SequenceOp
from ...core.operators.view import GradientView, View
from .attributes import TEXT
from .row import RECORD, Given
from .values import read, written
from .wire import write_value

KIND, VERSION = "opencntk operator", 0
"""Type and version of the record of such a function; CNTK knows no functions of this type, and refuses them."""

_KINDS = (Assignment, Delay, Elementwise, Finishing, GradientView, SequenceOp, View)
_ABILITIES = (AcceptsStrided, AssumesShapes, CommutesWithMonotone, CountsOperations, EndsExpression, Follows, GivesRowSparse)
_NOT_IN_CNTK = ("cntk.plugins.ops.sequence_attention:SequenceAttention",)
"""Built-in operators that have no number of CNTK's."""
_OF_OPERATORS = frozenset(name for of in (*_KINDS, *_ABILITIES) for name in dir(of))
"""Attributes that operators define in their classes, which arguments must not change."""
_MAY_CHANGE = ("dropout_rate", "rng_seed")
"""Arguments in which two operators that are the same may differ, as in the rows of those that CNTK has."""
_DISTRIBUTION = re.compile("[A-Za-z0-9]([A-Za-z0-9._-]{0,100}[A-Za-z0-9])?")


def describe(op: Op) -> dict[str, Any]:
    """The record from which a file's operator is recreated.

    Raises:
        TypeError: files cannot store an argument of its constructor.
        ValueError: its constructor takes an attribute that operators define in their classes, or it is a built-in operator that is
            written by CNTK's numbers.
    """
    cls = type(op)
    _check_class(cls)
    known = plugins.record_of(cls.__module__)
    state = op.create_checkpoint()
    return {
        "module": cls.__module__,
        "class": cls.__qualname__,
        **({"distribution": known.distribution, "distribution_version": known.version} if known else {}),
        "arguments": _arguments_of(op),
        **({"state": {key: written(value, f"state[{key!r}]") for key, value in state.items()}} if state else {}),
    }


def make(record: Given) -> Op:
    """The operator that :func:`describe` described.

    Raises:
        ValueError: there is no such operator, or it cannot be made from the record.
    """
    cls = _class_of(record)
    arguments = {name: read(value) for name, value in record.read("arguments", RECORD).items()}
    state = {name: read(value) for name, value in record.read("state", RECORD, {}).items()}
    _check_names(cls, arguments)
    try:
        op = cls.made_of(arguments)
        if state:
            op.restore_from_checkpoint(state)
    except Exception as error:
        made_of = f"{_called(cls)} cannot be made of {arguments!r:.200}"
        raise ValueError(f"{made_of}: {type(error).__name__}: {error}{_other_version(record, cls)}") from error
    return op


def are_alike(one: Op, other: Op) -> bool:
    """Whether two operators of one class do the same, but for seeds and rates of dropout."""
    first, second = ({name: v for name, v in op.constructor_arguments().items() if name not in _MAY_CHANGE} for op in (one, other))
    return first.keys() == second.keys() and all(_are_equal(value, second[name]) for name, value in first.items())


def _are_equal(one: Any, other: Any) -> bool:
    """Whether two values are the same in files; values that files cannot store equal only themselves."""
    try:
        first, second = (b"".join(write_value(written(value, ""))) for value in (one, other))
    except TypeError:
        return one is other
    return first == second


def _arguments_of(op: Op) -> dict[str, Any]:
    given = op.constructor_arguments()
    _check_names(type(op), given)
    return {name: written(value, f"the argument '{name}' of {type(op).__name__}") for name, value in given.items()}


def _check_names(cls: type[Op], arguments: dict[str, Any]) -> None:
    """Check the arguments of a constructor that takes any: none may have the name of an attribute of operators."""
    for name in arguments.keys() - signature(cls.__init__).parameters.keys():
        if name.startswith("_") or name in _OF_OPERATORS or callable(getattr(cls, name, None)):
            raise ValueError(f"the argument '{name}' of {_called(cls)} has the name of an attribute that all operators have; rename it")


# ---- classes -------------------------------------------------------------------------------------


def _class_of(record: Given) -> type[Op]:
    """The class that a file means.

    Raises:
        ValueError: there is none; the message says how to get it.
    """
    module, name = record.read("module", TEXT), record.read("class", TEXT)
    found = _known(module, name)
    for place in (module, module.partition(".")[0]):
        if found is None:
            _import_from(place)
            found = _known(module, name)
    if found is None:
        raise ValueError(f"there is no operator {name:.80} of the module {module:.80}; {_remedy(record, module)}")
    _check_class(found)
    return found


def _check_class(cls: type[Op]) -> None:
    """Check that a class is stored by its name; others have arguments that are checked elsewhere."""
    known = plugins.record_of(cls.__module__)
    is_built_in = known is not None and known.distribution == plugins.DISTRIBUTION and identity_of(cls) not in _NOT_IN_CNTK
    if issubclass(cls, NativeOp) or is_built_in:
        raise ValueError(f"{_called(cls)} is none of the operators that a file has by their class: those of plugins and programs")


def _known(module: str, name: str) -> type[Op] | None:
    """The class of this name that the program has; the last one, where a notebook has defined it again."""
    found = [cls for cls in _subclasses(Op) if (cls.__module__, cls.__qualname__) == (module, name)]
    return found[-1] if found else None


def _subclasses(cls: type[Op]) -> Iterator[type[Op]]:
    for derived in cls.__subclasses__():
        yield derived
        yield from _subclasses(derived)


def _import_from(place: str) -> None:
    try:
        plugins.ops.import_from(place)
    except Exception as error:
        raise ValueError(f"what plugins have registered from {place:.80} cannot be imported: {type(error).__name__}: {error}") from error


def _remedy(record: Given, module: str) -> str:
    """Advice on how to get a missing operator, from the unverified names in the file."""
    distribution = record.read("distribution", TEXT, "")
    version = record.read("distribution_version", TEXT, "")
    known = next((one for one in plugins.records if one.distribution == distribution), None) or plugins.record_of(module)
    if known is not None and known.state == "blocked":
        return f"it belongs to the plugin '{known.name}' of {known.distribution}, which CNTK_PLUGINS leaves out"
    if known is not None and known.state == "broken":
        return f"it belongs to the plugin '{known.name}' of {known.distribution} {known.version}, which is broken: {known.error}"
    if known is not None:
        return f"{known.distribution} {known.version} is installed, and the file was saved with version {version:.20}"
    if not _DISTRIBUTION.fullmatch(distribution):
        return "it belongs to no plugin, and loading a file imports nothing: import the module that defines it first"
    return f"the file says that it comes with {distribution} {version:.20}; if you trust that: pip install {distribution}"


def _other_version(record: Given, cls: type[Op]) -> str:
    """A note for errors if a file was saved with another version of a plugin."""
    known, saved = plugins.record_of(cls.__module__), record.read("distribution_version", TEXT, "")
    if known is None or known.version == saved:
        return ""
    return f"; the file was saved with version {saved:.20} of {known.distribution}, there is {known.version}"


def _called(cls: type[Op]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
