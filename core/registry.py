"""Registries: names with objects that are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from typing import Any


class Registry:
    """What plugins have registered of one kind.

    Args:
        kind: what the entries are, for messages: ``'op'``, ``'learner'``, …
        stacked: whether several plugins may register a name; what was registered last stands before the others.
    """

    def __init__(self, kind: str, stacked: bool = False) -> None:
        self.kind = kind
        self.stacked = stacked
        self._entries: dict[Any, list[_Entry]] = {}

    def add(self, name: Any, target: object, owner: str) -> None:
        """Enter *target*, an object or an import string ``'module:object'``, under *name* for the plugin *owner*.

        Raises:
            ValueError: another plugin has registered the name, or, where names are stacked, this one has.
        """
        held = [entry.owner for entry in self._entries.get(name, ())]
        if owner in held or (held and not self.stacked):
            raise ValueError(f"{self.kind} {name!r} is registered by {held[-1]} and by {owner}; a name belongs to one plugin")
        if isinstance(target, str) and ":" not in target:
            raise ValueError(f"{self.kind} {name!r} of {owner}: expected an import string 'module:object', got {target!r}")
        self._entries.setdefault(name, []).append(_Entry(target, owner))

    def get(self, name: Any) -> Any:
        """The object registered under *name*, imported now if it has not been.

        Raises:
            KeyError: nothing has this name.
        """
        if name not in self._entries:
            raise KeyError(f"no {self.kind} is called {name!r}; registered are {', '.join(map(str, self.names()))}")
        return self._entries[name][-1].get()

    def behind(self, name: Any, first: object) -> Any:
        """The object that *first* stands before under *name*; None if there is none."""
        pairs = pairwise(self._entries.get(name, ()))
        return next((second.get() for second, other in pairs if other.get() is first), None)

    def names(self) -> list[Any]:
        """Registered names, sorted."""
        return sorted(self._entries, key=str)

    def owner(self, name: Any) -> str:
        """Name of the plugin that registered *name*, the last one to do so."""
        return self._entries[name][-1].owner

    def remove_all_of(self, owner: str) -> None:
        """Take back what *owner* has registered."""
        left = {name: [entry for entry in entries if entry.owner != owner] for name, entries in self._entries.items()}
        self._entries = {name: entries for name, entries in left.items() if entries}

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._entries)


class _Entry:
    """What one plugin has registered under a name."""

    def __init__(self, target: object, owner: str) -> None:
        self.owner = owner
        self._target = target

    def get(self) -> Any:
        """The object, imported now if it has not been."""
        if isinstance(self._target, str):
            module, _, attribute = self._target.partition(":")
            self._target = getattr(import_module(module), attribute)
        return self._target
