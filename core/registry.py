"""Registries: names with objects that are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any


class Registry:
    """What plugins have registered of one kind.

    Attributes:
        kind: what the entries are, for messages: ``'op'``, ``'learner'``, …
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._targets: dict[Any, object] = {}
        self._owners: dict[Any, str] = {}
        self._loaded: dict[Any, Any] = {}

    def add(self, name: Any, target: object, owner: str) -> None:
        """Enter *target*, an object or an import string ``'module:object'``, under *name* for the plugin *owner*.

        Raises:
            ValueError: another plugin has registered the name.
        """
        if name in self._targets:
            raise ValueError(f"{self.kind} {name!r} is registered by {self._owners[name]} and by {owner}; a name belongs to one plugin")
        if isinstance(target, str) and ":" not in target:
            raise ValueError(f"{self.kind} {name!r} of {owner}: expected an import string 'module:object', got {target!r}")
        self._targets[name] = target
        self._owners[name] = owner

    def get(self, name: Any) -> Any:
        """The object registered under *name*, imported now if it has not been.

        Raises:
            KeyError: nothing has this name.
        """
        try:
            return self._loaded[name]
        except KeyError:
            pass
        if name not in self._targets:
            raise KeyError(f"no {self.kind} is called {name!r}; registered are {', '.join(map(str, self.names()))}")
        target = self._targets[name]
        if isinstance(target, str):
            module, _, attribute = target.partition(":")
            target = getattr(import_module(module), attribute)
        self._loaded[name] = target
        return target

    def names(self) -> list[Any]:
        """Registered names, sorted."""
        return sorted(self._targets)

    def owner(self, name: Any) -> str:
        """Name of the plugin that registered *name*."""
        return self._owners[name]

    def remove_all_of(self, owner: str) -> None:
        """Take back what *owner* has registered."""
        for name in [name for name, held in self._owners.items() if held == owner]:
            del self._targets[name], self._owners[name]
            self._loaded.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self._targets)
