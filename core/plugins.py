"""The plugin manager: finds plugins by entry point, lets each register what it has, keeps a record of every one.

Built-in parts are plugins too: the ``opencntk`` distribution lists them under the same entry-point group, and they go through
the same hooks.  Two environment variables steer the others:

* ``CNTK_PLUGINS=a,b`` loads, of the plugins of other distributions, only these (none when empty);
* ``CNTK_STRICT_PLUGINS=1`` raises the error of a broken plugin instead of going on without it.

What is wrong with one distribution stops nothing else: it is left out and named, be it a plugin or the file that lists its plugins.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from typing import Any

import pluggy

from . import hookspecs
from .environment import switch_in
from .identity import Identity, identity_of, stand_ins
from .registry import Registry

GROUP = "cntk"
DISTRIBUTION = "opencntk"
ENTRY_POINTS = "entry_points.txt"

SLOW = 2.0
"""Seconds after which a plugin that is being loaded is named, as nobody could tell else what ``import cntk`` waits for."""

ops = Registry("op")
kernels = Registry("kernel", stacked=True)
engines = Registry("engine", stacked=True)
native_functions = Registry("native function")
passes = Registry("pass")
backends = Registry("backend")
learners = Registry("learner")
distributed_strategies = Registry("distributed strategy")
deserializers = Registry("deserializer")
progress_writers = Registry("progress writer")
model_formats = Registry("model format")
commands = Registry("command")

REGISTRIES: dict[str, Registry] = {
    "cntk_register_ops": ops,
    "cntk_register_kernels": kernels,
    "cntk_register_engines": engines,
    "cntk_register_native_functions": native_functions,
    "cntk_register_passes": passes,
    "cntk_register_backends": backends,
    "cntk_register_learners": learners,
    "cntk_register_distributed_strategies": distributed_strategies,
    "cntk_register_deserializers": deserializers,
    "cntk_register_progress_writers": progress_writers,
    "cntk_register_model_formats": model_formats,
    "cntk_register_commands": commands,
}


def kernel_place(cls: type, backend: str) -> tuple[Identity, str] | None:
    """Under what :data:`kernels` has the kernel of an operator's or learner's class on a backend; None where there is none."""
    places = ((identity, backend) for identity in stand_ins(cls))
    return next((place for place in places if place in kernels), None)


@dataclass
class PluginRecord:
    """What became of one plugin.

    Attributes:
        name: name of its entry point.
        distribution, version: the installed package it comes from.
        value: the entry point's import string.
        state: ``'loaded'``, ``'broken'`` or ``'blocked'`` (by ``CNTK_PLUGINS``).
        error: what went wrong, for a broken one.
        provides: names it registered, by hook.
        seconds: how long it took to load.

    A distribution whose plugins cannot be listed has a record too, under the name of the file, with its folder as *value*.
    """

    name: str
    distribution: str
    version: str
    value: str
    state: str
    error: str = ""
    provides: dict[str, list[str]] = field(default_factory=dict)
    seconds: float = 0.0


records: list[PluginRecord] = []
manager = pluggy.PluginManager("cntk")
manager.add_hookspecs(hookspecs)


def load_plugins(found: Iterable[EntryPoint] | None = None) -> None:
    """Load the plugins of all installed distributions that are not loaded yet.

    Args:
        found: entry points to load instead of the installed ones.
    """
    points = _installed() if found is None else found
    known = {(record.name, record.value) for record in records}
    for point in sorted(points, key=lambda p: (_distribution(p)[0] != DISTRIBUTION, p.name)):
        if (point.name, point.value) not in known:
            known.add((point.name, point.value))
            _load(point)


def _installed() -> Iterable[EntryPoint]:
    try:
        return entry_points(group=GROUP)
    except Exception:
        return list(_readable())


def _readable() -> Iterator[EntryPoint]:
    """The plugins of those distributions whose plugins can be listed; the others are recorded and named."""
    for distribution in distributions():
        try:
            yield from distribution.entry_points.select(group=GROUP)
        except Exception as error:
            name, version = _name_and_version(distribution)
            folder = str(getattr(distribution, "_path", "an unknown place"))
            records.append(PluginRecord(ENTRY_POINTS, name, version, folder, "broken", _said(error)))
            _tell(f"{ENTRY_POINTS} of {name} {version} in {folder} cannot be read: {_said(error)}; {_remedy(name)}")
            if _strict():
                raise


def _load(point: EntryPoint) -> None:
    distribution, version = _distribution(point)
    record = PluginRecord(point.name, distribution, version, point.value, "loaded")
    records.append(record)
    if distribution != DISTRIBUTION and not _allowed(point.name):
        record.state = "blocked"
        return
    named = f"plugin '{point.name}' of {distribution} {version} ({point.value})"
    try:
        with _timed(record, named):
            register_plugin(point.load(), point.name, record)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin that says sys.exit() ends itself and not the program that imports cntk
        record.state, record.error = "broken", _said(error)
        if _strict() and isinstance(error, Exception):
            raise
        if _strict():
            raise ImportError(f"{named} is broken: {record.error}") from error
        _tell(f"{named} is broken and left out: {record.error}; {_remedy(distribution)}")


@contextmanager
def _timed(record: PluginRecord, named: str) -> Iterator[None]:
    """Note how long a plugin takes, and name it while it is slow; built-in ones have no need of it."""
    if record.distribution == DISTRIBUTION:
        yield
        return
    begun = time.perf_counter()
    watch = threading.Timer(SLOW, _tell, [f"{named} takes more than {SLOW:g} seconds to load; CNTK_PLUGINS= loads none of others"])
    watch.daemon = True
    with suppress(RuntimeError):  # no further thread may be started
        watch.start()
    try:
        yield
    finally:
        watch.cancel()
        record.seconds = time.perf_counter() - begun


def _said(error: BaseException) -> str:
    """An error in one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(its message cannot be had)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _remedy(distribution: str) -> str:
    return f"mend it, or remove it with: pip uninstall {distribution}"


def _strict() -> bool:
    return switch_in("CNTK_STRICT_PLUGINS", False)


def _tell(what: str) -> None:
    with suppress(OSError, ValueError):  # where nobody reads it, or the stream is closed
        if sys.stderr is not None:
            print(f"cntk: {what}", file=sys.stderr)


def register_plugin(plugin: Any, name: str, record: PluginRecord | None = None) -> None:
    """Let *plugin* (a module or object with hook implementations) register what it has; all of it or, on error, nothing.

    Raises:
        ValueError: a name is taken, or an implementation matches no hook.
    """
    owner = name if record is None else f"{record.distribution}:{name}"
    if manager.has_plugin(owner):
        raise ValueError(f"a plugin called '{owner}' is registered already; each plugin of a distribution has a name of its own")
    try:
        manager.register(plugin, name=owner)
        manager.check_pending()
        for hook, registry in REGISTRIES.items():
            provided: list[str] = []
            for implementation in getattr(manager.hook, hook).get_hookimpls():
                if implementation.plugin is plugin:
                    implementation.function(_register_function(registry, owner, provided))
            if provided and record is not None:
                record.provides[hook] = provided
    except BaseException:
        unregister_plugin(owner)
        if record is not None:
            record.provides.clear()
        raise


def unregister_plugin(owner: str) -> None:
    """Take back everything the plugin called *owner* has registered."""
    for registry in REGISTRIES.values():
        registry.remove_all_of(owner)
    if manager.has_plugin(owner):
        manager.unregister(name=owner)


def _register_function(registry: Registry, owner: str, provided: list[str]) -> Callable[..., None]:
    def register(name: str | type, *where_and_target: Any) -> None:
        *where, target = where_and_target
        named = identity_of(name) if isinstance(name, type) else name
        registry.add((named, *where) if where else named, target, owner)
        provided.append(" on ".join((str(named), *where)))

    return register


def _distribution(point: EntryPoint) -> tuple[str, str]:
    return ("unknown", "?") if point.dist is None else _name_and_version(point.dist)


@cache
def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    try:
        name, version = distribution.name, distribution.version  # each parses the metadata
    except Exception:
        name = version = ""
    folder = getattr(distribution, "_path", None)
    return name or (folder.name.partition("-")[0] if folder is not None else "unknown"), version or "?"


def _allowed(name: str) -> bool:
    allowed = os.environ.get("CNTK_PLUGINS")
    return allowed is None or name in [part.strip() for part in allowed.split(",")]
