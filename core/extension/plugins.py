"""The plugin manager: finds plugins by entry point, lets each register its objects, and keeps a record of every one.

Built-in parts are plugins too: the ``opencntk`` distribution lists them under the same entry-point group, and they go through
the same manager and hooks, before all others.  Two environment variables control what is loaded:

* ``CNTK_PLUGINS=a,b`` loads, of the plugins of other distributions, only these (none when empty); ``-c`` leaves out plugin *c*,
  which may be a built-in one;
* ``CNTK_STRICT_PLUGINS=1`` raises the error of a broken plugin instead of going on without it.

An error in one distribution affects nothing else: the plugin, or the file that lists its plugins, is left out and named.
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
from importlib.util import find_spec
from inspect import Parameter, Signature
from keyword import iskeyword
from types import ModuleType
from typing import Any

import pluggy

from ..common.environment import switch_in
from . import hookspecs
from .identity import Identity, identity_of, stand_ins
from .registry import CLASS, FUNCTION, INSTANCE, Registry, TakenError, one_line

GROUP = "cntk"
DISTRIBUTION = "opencntk"
ENTRY_POINTS = "entry_points.txt"
HOOK_PREFIX = "cntk_register_"

SLOW = 2.0
"""Seconds after which a plugin that is still loading is named, so that users know what ``import cntk`` waits for."""

ops = Registry("op", FUNCTION, shown_in=("cntk", "cntk.ops"))
operator_rows = Registry("operator row")
kernels = Registry("kernel", keys=("operator", "backend"), stacked=True)
engines = Registry("engine", keys=("name", "backend"), stacked=True)
native_functions = Registry("native function", FUNCTION, keys=("module_name", "factory_method_name"))
passes = Registry("pass", INSTANCE)
backends = Registry("backend", FUNCTION)
learners = Registry("learner", FUNCTION, shown_in=("cntk", "cntk.learners"))
distributed_strategies = Registry("distributed strategy", CLASS)
deserializers = Registry("deserializer", FUNCTION, shown_in=("cntk.io",))
progress_writers = Registry("progress writer", FUNCTION, shown_in=("cntk.logging",))
model_formats = Registry("model format")
onnx_writers = Registry("ONNX writer", FUNCTION, keys=("operator",), stacked=True)
onnx_readers = Registry("ONNX reader", FUNCTION, keys=("op_type", "domain"), stacked=True)
launchers = Registry("launcher", FUNCTION)
commands = Registry("command", FUNCTION)

REGISTRIES: dict[str, Registry] = {
    "cntk_register_ops": ops,
    "cntk_register_operator_rows": operator_rows,
    "cntk_register_backends": backends,
    "cntk_register_kernels": kernels,
    "cntk_register_engines": engines,
    "cntk_register_native_functions": native_functions,
    "cntk_register_passes": passes,
    "cntk_register_learners": learners,
    "cntk_register_distributed_strategies": distributed_strategies,
    "cntk_register_deserializers": deserializers,
    "cntk_register_progress_writers": progress_writers,
    "cntk_register_model_formats": model_formats,
    "cntk_register_onnx_writers": onnx_writers,
    "cntk_register_onnx_readers": onnx_readers,
    "cntk_register_launchers": launchers,
    "cntk_register_commands": commands,
}


def kernel_place(cls: type, backend: str) -> tuple[Identity, str] | None:
    """The key in :data:`kernels` of the kernel of an operator's or learner's class on a backend; None if there is none."""
    places = ((identity, backend) for identity in stand_ins(cls))
    return next((place for place in places if place in kernels), None)


def onnx_writer_of(cls: type) -> Any:
    """The ONNX writer of an operator's class; None if there is none."""
    places = (identity for identity in stand_ins(cls) if identity in onnx_writers)
    return next((onnx_writers.get(place) for place in places), None)


@dataclass
class PluginRecord:
    """The outcome of loading one plugin.

    Attributes:
        name: name of its entry point.
        distribution, version: the installed package it comes from.
        value: the entry point's import string.
        state: ``'loaded'``, ``'broken'`` or ``'blocked'`` (by ``CNTK_PLUGINS``).
        error: the error of a broken one.
        provides: names it registered, by hook.
        warnings: the parts of a loaded one that are left out, and why.
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
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def owner(self) -> str:
        """The plugin's name as the owner of registered names."""
        return f"{self.distribution}:{self.name}"

    @property
    def is_built_in(self) -> bool:
        """Whether it comes with this package."""
        return self.distribution == DISTRIBUTION

    @property
    def title(self) -> str:
        """The plugin's name in messages."""
        return f"plugin '{self.name}' of {self.distribution} {self.version} ({self.value})"


records: list[PluginRecord] = []
manager = pluggy.PluginManager("cntk")
manager.add_hookspecs(hookspecs)


def load_plugins(found: Iterable[EntryPoint] | None = None) -> None:
    """Load the plugins of installed distributions that are not loaded yet, in the order that pluggy calls their hooks in.

    Args:
        found: entry points to load instead of all installed ones; see :func:`installed`.
    """
    known = {(record.name, record.value) for record in records}
    waiting: list[tuple[EntryPoint, PluginRecord]] = []
    for point in sorted(installed() if found is None else found, key=lambda point: point.name):
        if (point.name, point.value) not in known:
            known.add((point.name, point.value))
            waiting.append((point, PluginRecord(point.name, *_distribution(point), point.value, "loaded")))
    records.extend(record for _, record in waiting)
    _load([one for one in waiting if one[1].is_built_in])
    _load([one for one in waiting if not one[1].is_built_in])


def installed() -> list[EntryPoint]:
    """The entry points that are installed."""
    try:
        return list(entry_points(group=GROUP))
    except Exception:
        return list(_readable())


def is_built_in(point: EntryPoint) -> bool:
    """Whether an entry point comes with this package."""
    return _distribution(point)[0] == DISTRIBUTION


def warn_of_unknown_names() -> None:
    """Warn of plugins to be left out that do not exist: their names may be misspelt."""
    there = {record.name for record in records}
    for name in sorted(_steering()[1] - there):
        _tell(f"CNTK_PLUGINS leaves out '{name}', but there is no such plugin; there are {', '.join(sorted(there))}")


def _readable() -> Iterator[EntryPoint]:
    """The plugins of those distributions whose plugins can be listed; the others are recorded and named, once."""
    for distribution in distributions():
        try:
            yield from distribution.entry_points.select(group=GROUP)
        except Exception as error:
            name, version = _name_and_version(distribution)
            folder = str(getattr(distribution, "_path", "an unknown place"))
            if any((record.name, record.value) == (ENTRY_POINTS, folder) for record in records):
                continue
            records.append(PluginRecord(ENTRY_POINTS, name, version, folder, "broken", one_line(error)))
            _tell(f"{ENTRY_POINTS} of {name} {version} in {folder} cannot be read: {one_line(error)}; {_remedy(name)}")
            if is_strict():
                raise


def _load(waiting: Iterable[tuple[EntryPoint, PluginRecord]]) -> None:
    """Import plugins, and call one hook after another of all that could be imported."""
    there: dict[str, PluginRecord] = {}
    for point, record in reversed(list(waiting)):  # pluggy calls first what was registered last
        if not _allowed(record):
            record.state = "blocked"
            continue
        with _guarded(record):
            plugin = point.load()
            _join(plugin, record.owner)
            _warn_of_hooks(plugin, record)
            there[record.owner] = record
    for hook, registry in REGISTRIES.items():
        for owner in _callers(hook, there):
            with _guarded(there[owner]):
                _call(hook, registry, owner, there[owner])
    _refuse_lost_kernels(there.values())


@contextmanager
def _guarded(record: PluginRecord) -> Iterator[None]:
    """Leave out a plugin that fails, with a warning."""
    try:
        with _timed(record):
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin that says sys.exit() ends itself and not the program that imports cntk
        record.provides.clear()
        record.state, record.error = "broken", one_line(error)
        if is_strict() and isinstance(error, Exception):
            raise
        if is_strict():
            raise ImportError(f"{record.title} is broken: {record.error}") from error
        _tell(f"{record.title} is broken and left out: {record.error}; {_remedy(record.distribution)}")


@contextmanager
def _timed(record: PluginRecord) -> Iterator[None]:
    """Measure how long a plugin takes to load, and name it if it is slow; not for built-in ones."""
    if record.is_built_in:
        yield
        return
    begun = time.perf_counter()
    watch = threading.Timer(SLOW, _tell, [f"{record.title} takes more than {SLOW:g} seconds to load; CNTK_PLUGINS= loads none of others"])
    watch.daemon = True
    with suppress(RuntimeError):  # no further thread may be started
        watch.start()
    try:
        yield
    finally:
        watch.cancel()
        record.seconds += time.perf_counter() - begun


def _remedy(distribution: str) -> str:
    return f"fix it, or remove it with: pip uninstall {distribution}"


def is_strict() -> bool:
    """Whether errors of plugins are raised rather than reported as warnings."""
    return switch_in("CNTK_STRICT_PLUGINS", False)


def _tell(what: str) -> None:
    with suppress(OSError, ValueError):  # a pipe without a reader, or a closed stream
        if sys.stderr is not None:
            print(f"cntk: {what}", file=sys.stderr)


def register_plugin(plugin: Any, name: str) -> None:
    """Let *plugin* (a module or object with hook implementations) register its objects: all of them or, on error, none.

    Args:
        plugin: the module or object.
        name: the plugin's name, which :func:`unregister_plugin` takes.

    Raises:
        ValueError: a name is taken or is not a name, or an implementation matches no hook.
        TypeError: an object is registered that is not of the hook's kind.
    """
    _join(plugin, name)
    for hook, registry in REGISTRIES.items():
        if _callers(hook, (name,)):
            _call(hook, registry, name, None)
    for registry, place in _lost_kernels(name):
        unregister_plugin(name)
        raise ValueError(f"{registry.kind} {_shown(place[0])} of {name}: {_no_backend(place[1])}")


def record_of(module: str) -> PluginRecord | None:
    """The plugin that a module belongs to, by its name: that whose own module has most of it in common; None where none has any."""
    parts = module.split(".")

    def in_common(record: PluginRecord) -> int:
        own = record.value.partition(":")[0].split(".")
        return next((i for i, (a, b) in enumerate(zip(parts, own, strict=False)) if a != b), min(len(parts), len(own)))

    return max((record for record in records if in_common(record)), key=in_common, default=None)


def unregister_plugin(owner: str) -> None:
    """Remove everything that the plugin called *owner* has registered."""
    for registry in REGISTRIES.values():
        registry.remove_all_of(owner)
    if manager.has_plugin(owner):
        manager.unregister(name=owner)


def _join(plugin: Any, owner: str) -> None:
    """Register a plugin and its hooks with pluggy."""
    if manager.has_plugin(owner):
        raise ValueError(f"a plugin called '{owner}' is registered already; each plugin of a distribution has a name of its own")
    try:
        manager.register(_hashable(plugin), name=owner)
        manager.check_pending()
    except BaseException:
        unregister_plugin(owner)
        raise


class _Hooks:
    """The hooks of a plugin that has no hash, in whose place pluggy, which puts plugins into sets, gets them."""


def _hashable(plugin: Any) -> Any:
    try:
        hash(plugin)
    except TypeError:
        held = _Hooks()
        vars(held).update({name: getattr(plugin, name) for name in dir(plugin) if name.startswith(HOOK_PREFIX)})
        return held
    return plugin


def _warn_of_hooks(plugin: Any, record: PluginRecord) -> None:
    """Warn of hooks that are not marked, and of a plugin whose hooks are not defined yet."""
    for name in dir(plugin):
        if name.startswith(HOOK_PREFIX) and manager.parse_hookimpl_opts(plugin, name) is None and not _is_spec(plugin, name):
            _warn(record, f"{name} is not called: it is not marked with @hookimpl of cntk.core.extension.hookspecs")
    if getattr(getattr(plugin, "__spec__", None), "_initializing", False):
        _warn(record, "it is imported by the program and imports cntk itself: only hooks above that line are called; import cntk first")


def _is_spec(plugin: Any, name: str) -> bool:
    return getattr(plugin, name, None) is getattr(hookspecs, name, plugin)


def _callers(hook: str, owners: Iterable[str]) -> list[str]:
    """Those plugins that implement a hook, in pluggy's order; without those that wrap the calls of others."""
    called = [implementation.plugin_name for implementation in getattr(manager.hook, hook).get_hookimpls() if not _wraps(implementation)]
    return [name for name in reversed(called) if name in owners]


def _call(hook: str, registry: Registry, owner: str, record: PluginRecord | None) -> None:
    """Call a hook of one plugin, within all wrappers: so each name has its owner, and a plugin that fails is removed alone."""
    implementations = getattr(manager.hook, hook).get_hookimpls()
    others = [other.plugin for other in implementations if other.plugin_name != owner and not _wraps(other)]
    provided: list[str] = []
    try:
        manager.subset_hook_caller(hook, others)(register=_register_function(registry, owner, provided, record))
    except BaseException:
        unregister_plugin(owner)
        raise
    if provided and record is not None:
        record.provides[hook] = provided


def _wraps(implementation: pluggy.HookImpl) -> bool:
    return bool(implementation.wrapper or implementation.hookwrapper)


def _register_function(registry: Registry, owner: str, provided: list[str], record: PluginRecord | None) -> Callable[..., None]:
    places = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in (*registry.keys, "target")]
    signature = Signature(places)

    def register(*arguments: Any, **named: Any) -> None:
        if named or len(arguments) != len(places):
            try:
                arguments = signature.bind(*arguments, **named).args
            except TypeError as error:
                raise TypeError(f"{registry.kind} of {owner}: expected register{signature}, {error}") from None
        *keys, target = arguments
        keys = [identity_of(key) if isinstance(key, type) else key for key in keys]
        name = tuple(keys) if len(keys) > 1 else keys[0]
        try:
            if record is None or not record.is_built_in:
                _check_name(registry, name, owner)
            registry.add(name, target, owner)
        except TakenError as error:
            if record is None or is_strict() or registry.stacked:
                raise
            _warn(record, f"{error}; it is left out")
        else:
            provided.append(" on ".join(map(_shown, keys)))

    return register


def _check_name(registry: Registry, name: Any, owner: str) -> None:
    """Check that a name is valid and free in the modules that show a registry's entries as attributes."""
    if registry.keys[0] == "operator":
        cls = name[0] if isinstance(name, tuple) else name
        if not (isinstance(cls, type) or (isinstance(cls, str) and all(cls.partition(":")))):
            expected = "expected the class of an operator or learner, or its import string 'module:Class'"
            raise TypeError(f"{registry.kind} {cls!r} of {owner}: {expected}")
        return
    if len(registry.keys) > 1:
        return
    title = f"{registry.kind} {name!r} of {owner}"
    if not isinstance(name, str) or not name:
        raise TypeError(f"{title}: expected a name, a text")
    if not registry.shown_in:
        return
    *prefix, last = name.split(".")
    if not all(part.isidentifier() and not iskeyword(part) for part in (*prefix, last)):
        raise ValueError(f"{title}: expected a name that can be written in a program, {' and '.join(registry.shown_in)} show it")
    if prefix and (registry is not ops or not isinstance(_namespace(prefix), ModuleType)):
        raise ValueError(f"{title}: there is no namespace cntk.{'.'.join(prefix)} that it could be shown in")
    if name in registry:
        return  # which the registry reports
    for module in [f"cntk.{'.'.join(prefix)}"] if prefix else registry.shown_in:
        for other in REGISTRIES.values():
            if module in other.shown_in and name in other:
                raise TakenError(f"{title}: {module}.{last} is the {other.kind} of {other.owner(name)}; choose another name")
        place = _namespace(module.split(".")[1:])
        if last in dir(place) or (hasattr(place, "__path__") and find_spec(f"{place.__name__}.{last}")):
            raise TakenError(f"{title}: {module}.{last} belongs to {DISTRIBUTION} itself; choose another name")


def _namespace(path: Iterable[str]) -> Any:
    """The module of this package that programs know by this name; None if there is none."""
    found: Any = sys.modules.get("cntk")
    for name in path:
        found = getattr(found, name, None) if isinstance(found, ModuleType) else None
    return found


def _warn(record: PluginRecord, what: str) -> None:
    record.warnings.append(what)
    _tell(f"{record.title}: {what}")


def _refuse_lost_kernels(loaded: Iterable[PluginRecord]) -> None:
    """Leave out kernels for backends that no plugin has registered, once all plugins are loaded."""
    for record in loaded:
        for registry, place in _lost_kernels(record.owner):
            what = f"{registry.kind} {_shown(place[0])}"
            if is_strict():
                raise ValueError(f"{record.title}: {what}: {_no_backend(place[1])}")
            registry.remove(place, record.owner)
            record.provides[f"cntk_register_{registry.kind}s"].remove(" on ".join(map(_shown, place)))
            _warn(record, f"{what} is left out: {_no_backend(place[1])}")


def _lost_kernels(owner: str) -> list[tuple[Registry, tuple[Any, str]]]:
    return [(registry, place) for registry in (kernels, engines) for place in registry.names_of(owner) if place[1] not in backends]


def _shown(key: Any) -> str:
    return f"{key.__module__}:{key.__qualname__}" if isinstance(key, type) else str(key)


def _no_backend(name: str) -> str:
    return f"no backend is called {name!r}; there are {', '.join(backends) or 'none'}"


_told: set[str] = set()


def shown(registry: Registry, name: str, module: str) -> Any:
    """What a module shows of a registry under a name; see :meth:`Registry.get`.

    Raises:
        AttributeError: it cannot be imported; there is a warning as well, once, since callers often ignore missing attributes.
    """
    try:
        return registry.get(name)
    except (ImportError, TypeError) as error:
        if str(error) not in _told:
            _told.add(str(error))
            _tell(f"{module} is without '{name.rpartition('.')[2]}': {one_line(error)}")
        raise AttributeError(f"module '{module}' has no attribute '{name.rpartition('.')[2]}': {one_line(error)}") from error


def names_shown(registry: Registry, prefix: str = "") -> list[str]:
    """Names that a module shows of a registry: those without a dot, or those behind a prefix."""
    names = [name.removeprefix(prefix) for name in registry.names() if name.startswith(prefix)]
    return [name for name in names if "." not in name]


def names_to_import(registry: Registry, module: str, prefix: str = "") -> list[str]:
    """Those of :func:`names_shown` that can be imported, for ``from module import *``; imports those of other distributions."""
    names = names_shown(registry, prefix)
    own = f"{DISTRIBUTION}:"
    return [name for name in names if registry.owner(prefix + name).startswith(own) or can_be_had(registry, prefix + name, module)]


def can_be_had(registry: Registry, name: str, module: str) -> bool:
    """Whether a name can be imported that a module shows; see :func:`shown`."""
    with suppress(AttributeError):
        shown(registry, name, module)
        return True
    return False


def problems(record: PluginRecord) -> list[str]:
    """The objects of a loaded plugin that cannot be imported or are of the wrong kind; imports all of them."""
    return [problem for registry in REGISTRIES.values() for problem in registry.problems(record.owner)]


def _distribution(point: EntryPoint) -> tuple[str, str]:
    return ("unknown", "?") if point.dist is None else _name_and_version(point.dist)


@cache
def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    try:
        metadata = distribution.metadata  # parsed at each access
        name, version = metadata["Name"], metadata["Version"]
    except Exception:
        name = version = ""
    folder = getattr(distribution, "_path", None)
    return name or (folder.name.partition("-")[0] if folder is not None else "unknown"), version or "?"


def _allowed(record: PluginRecord) -> bool:
    only, without = _steering()
    return record.name not in without and (record.is_built_in or only is None or record.name in only)


def _steering() -> tuple[set[str] | None, set[str]]:
    """The contents of ``CNTK_PLUGINS``: the only plugins of other distributions to load, None for all, and the plugins to leave out."""
    steering = os.environ.get("CNTK_PLUGINS")
    if steering is None:
        return None, set()
    names = [part.strip() for part in steering.split(",") if part.strip()]
    without = {name[1:].strip() for name in names if name.startswith("-")}
    only = {name for name in names if not name.startswith("-")}
    return (None if without and not only else only), without
