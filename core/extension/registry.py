"""Registries: objects by name, which are imported on first use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple


class Wanted(NamedTuple):
    """The kind of a registry's objects: in words, for messages, and as a test."""

    words: str
    fits: Callable[[Any], bool]


ANYTHING = Wanted("an object", lambda target: True)
FUNCTION = Wanted("a function", callable)
CLASS = Wanted("a class", inspect.isclass)
INSTANCE = Wanted("an object and not its class", lambda target: not inspect.isclass(target))


class Registry:
    """The objects of one kind that plugins have registered.

    Args:
        kind: what the entries are, for messages: ``'op'``, ``'learner'``, …
        wanted: what may be registered.
        keys: the names by which an entry is found.
        stacked: whether several plugins may register a name; the last one has precedence.
        shown_in: modules that show the entries as their attributes.
    """

    def __init__(
        self,
        kind: str,
        wanted: Wanted = ANYTHING,
        keys: tuple[str, ...] = ("name",),
        stacked: bool = False,
        shown_in: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.keys = keys
        self.stacked = stacked
        self.shown_in = shown_in
        self._wanted = wanted
        self._entries: dict[Any, list[_Entry]] = {}

    def add(self, name: Any, target: object, owner: str) -> None:
        """Enter *target*, an object or an import string ``'module:object'``, under *name* for the plugin *owner*.

        Raises:
            TakenError: another plugin has registered the name, or, where names are stacked, this one has.
            ValueError: *target* is a text that is not an import string.
            TypeError: *target* is not what this registry holds.
        """
        held = [entry.owner for entry in self._entries.get(name, ())]
        if owner in held or (held and not self.stacked):
            raise TakenError(f"{self.kind} {name!r} is registered by {held[-1]} and by {owner}; a name belongs to one plugin")
        if isinstance(target, str) and not all(target.partition(":")):
            raise ValueError(f"{self.kind} {name!r} of {owner}: expected an import string 'module:object', got {target!r}")
        entry = _Entry(f"{self.kind} {name!r} of {owner}", target, owner, self._wanted)
        self._entries.setdefault(name, []).append(entry)

    def get(self, name: Any) -> Any:
        """The object registered under *name*, imported now if it has not been.

        Raises:
            KeyError: there is no such name.
            ImportError: it cannot be imported; the message names the plugin and says why.
            TypeError: what is imported is not what this registry holds.
        """
        if name not in self._entries:
            raise KeyError(f"no {self.kind} is called {name!r}; registered are {', '.join(map(str, self.names()))}")
        return self._entries[name][-1].get()

    def behind(self, name: Any, first: object) -> Any:
        """The object under *name* that *first* has precedence over; None if there is none."""
        pairs = pairwise(self._entries.get(name, ()))
        return next((second.get() for second, other in pairs if other.get() is first), None)

    def import_from(self, place: str) -> None:
        """Import the objects that are registered from a module, or from the modules of a package, and not imported yet."""
        for entries in self._entries.values():
            for entry in entries:
                if f"{entry.module}.".startswith(f"{place}."):
                    entry.get()

    def names(self) -> list[Any]:
        """Registered names, sorted."""
        return sorted(self._entries, key=str)

    def owner(self, name: Any) -> str:
        """Name of the plugin that registered *name*, the last one to do so."""
        return self._entries[name][-1].owner

    def origin(self, name: Any) -> str:
        """Where the object under *name* is defined, as an import string ``'module:object'``; imports nothing."""
        return self._entries[name][-1].origin

    def names_of(self, owner: str) -> list[Any]:
        """Names that *owner* has registered."""
        return [name for name, entries in self._entries.items() if any(entry.owner == owner for entry in entries)]

    def problems(self, owner: str) -> list[str]:
        """The objects that *owner* has registered but that cannot be imported, and why; imports all."""
        found = []
        for entry in [entry for entries in self._entries.values() for entry in entries if entry.owner == owner]:
            try:
                entry.get()
            except Exception as error:
                found.append(str(error))
        return found

    def remove(self, name: Any, owner: str) -> None:
        """Remove what *owner* has registered under *name*."""
        left = [entry for entry in self._entries.pop(name, ()) if entry.owner != owner]
        if left:
            self._entries[name] = left

    def remove_all_of(self, owner: str) -> None:
        """Remove everything that *owner* has registered."""
        for name in self.names_of(owner):
            self.remove(name, owner)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._entries)


class TakenError(ValueError):
    """A name is registered already by another plugin."""


def one_line(error: BaseException) -> str:
    """An error as one line, with advice for the most frequent one."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(without a message)"
    if "partially initialized module" in text:
        text += "; a plugin is imported while cntk is: hand over import strings, and import what uses cntk inside functions"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _origin_of(target: object) -> str:
    """The import string of an object, or that of its class."""
    named = target if hasattr(target, "__qualname__") else type(target)
    return f"{named.__module__}:{getattr(named, '__qualname__', '')}"


class _Entry:
    """The object that one plugin has registered under a name."""

    def __init__(self, title: str, target: object, owner: str, wanted: Wanted) -> None:
        self.owner = owner
        self.origin = target if isinstance(target, str) else _origin_of(target)
        self._title, self._target, self._wanted = title, target, wanted
        if not isinstance(target, str):
            self._check(target)

    @property
    def module(self) -> str:
        """The module that it will be imported from; empty if it is imported already, or was registered as an object."""
        return self._target.partition(":")[0] if isinstance(self._target, str) else ""

    def get(self) -> Any:
        """The object, imported now if it has not been."""
        if isinstance(self._target, str):
            found = self._imported(self._target)
            self._check(found)
            self._target = found
        return self._target

    def _imported(self, target: str) -> Any:
        module, _, attribute = target.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except (Exception, SystemExit) as error:
            if isinstance(error, ImportError) and type(error) not in (ImportError, ModuleNotFoundError):
                raise  # a part raises a subclass if it cannot be used here, which callers handle
            raise ImportError(f"{self._title} cannot be imported from '{target}': {one_line(error)}") from error

    def _check(self, found: object) -> None:
        if not self._wanted.fits(found):
            raise TypeError(f"{self._title}: expected {self._wanted.words}, got {found!r:.80}")
