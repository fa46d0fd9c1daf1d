"""Which class computes: whatever belongs to a class, such as a kernel or a formula, is found by the class and never by a name.

A class that should not be imported yet is named by its import string, ``'module:Class'``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Generic, TypeVar

T = TypeVar("T")

Identity = str | type
"""The import string of a class or, if importing that does not give the class, the class itself."""

SAYS_NOTHING = ("op_name", "__init__", "copy")
"""What a subclass may define, beside what Python defines in every class, and still compute what its base does."""


def identity_of(cls: type) -> Identity:
    """A class by its import string, if that is where it is found.

    >>> from cntk.core.extension.identity import identity_of
    >>> from cntk.core.operators.op import Op
    >>> identity_of(Op)
    'cntk.core.operators.op:Op'
    """
    found = reduce(lambda holder, name: getattr(holder, name, None), cls.__qualname__.split("."), sys.modules.get(cls.__module__))
    return f"{cls.__module__}:{cls.__qualname__}" if found is cls else cls


def stand_ins(cls: type) -> Iterator[Identity]:
    """Identities of the classes that compute what *cls* does."""
    return map(identity_of, what_computes(cls))


def what_computes(cls: type) -> Iterator[type]:
    """The classes that compute what *cls* does, itself first: its bases, up to the first class that does something in its own way."""
    for base in cls.__mro__:
        yield base
        if any(name not in SAYS_NOTHING and not _is_of_python(name) for name in vars(base)):
            return


def _is_of_python(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in ("__getattr__", "__getattribute__")


def still_holds(cls: type, attribute: str, *methods: str) -> bool:
    """Whether an attribute still describes a class's methods: no subclass has redefined the methods without the attribute.

    Args:
        cls: the class.
        attribute: the attribute.
        methods: the methods that it describes.
    """
    definer = next(base for base in cls.__mro__ if attribute in vars(base) or any(method in vars(base) for method in methods))
    return attribute in vars(definer)


class ByClass(Generic[T]):
    """A mapping from classes, and subclasses that compute what these do.

    Args:
        entries: what belongs to each class, by its import string.
    """

    def __init__(self, entries: Mapping[str, T]) -> None:
        self._entries = entries
        self._found: dict[type, T | None] = {}

    def get(self, cls: type) -> T | None:
        """The entry of a class; None if it has none."""
        if cls not in self._found:
            entries = (self._entries[identity] for identity in stand_ins(cls) if identity in self._entries)  # type: ignore[index]
            self._found[cls] = next(entries, None)
        return self._found[cls]

    def __getitem__(self, cls: type) -> T:
        found = self.get(cls)
        if found is None:
            raise KeyError(f"there is no entry for {cls!r}")
        return found

    def __contains__(self, cls: type) -> bool:
        return self.get(cls) is not None
