"""Switches: settings of the whole process.

Those of the kernel are here.  Parts above it define theirs in the same way, beside the code that uses them.  All are registered by name,
so that :func:`isolated` can restore them.

Code that depends on a switch reads its value as an attribute.  Values are not changed in place: a switch is set by giving it another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from .environment import names_in, processors
from .lock import ForkSafeLock

T = TypeVar("T")

_all: dict[str, Switch[Any]] = {}

registered: Mapping[str, Switch[Any]] = MappingProxyType(_all)
"""All switches by name, also those of the parts that have been imported since."""


class Switch(Generic[T]):
    """A setting of the whole process.

    Args:
        name: its name, which is unique.
        value: its initial value.

    Attributes:
        value: its current value.
        first: its initial value.

    Raises:
        ValueError: another switch has this name.
    """

    __slots__ = ("first", "name", "value")

    def __init__(self, name: str, value: T) -> None:
        if name in _all:
            raise ValueError(f"a switch '{name}' exists already; give this one another name")
        self.name, self.value = name, value
        self.first = self.get()
        _all[name] = self

    def get(self) -> T:
        """The value in the form that :meth:`put_back` takes."""
        return self.value

    def put_back(self, value: T) -> None:
        """Restore the value that :meth:`get` returned."""
        self.value = value

    def __repr__(self) -> str:
        return f"Switch({self.name!r}, {self.value!r})"


# ---- of the kernel ----

max_threads = Switch("max_threads", processors())
"""The largest number of threads that share the work of one call."""

seed_is_fixed = Switch("seed_is_fixed", False)
"""Whether every choice of a seed gives the same one."""

next_seed = Switch("next_seed", 0)
"""The seed that is chosen next."""

global_options: Switch[Mapping[str, Any]] = Switch("global_options", MappingProxyType({}))
"""Options of the whole process by name."""

default_device: Switch[Any] = Switch("default_device", None)
"""The device of whatever names no device; None for the CPU."""

default_device_is_in_use = Switch("default_device_is_in_use", False)
"""Whether the default device is in use, after which it cannot be changed."""

default_device_may_change = Switch("default_device_may_change", False)
"""Whether the default device may be set although it is in use."""

excluded_devices: Switch[tuple[Any, ...]] = Switch("excluded_devices", ())
"""Devices that must not become the default."""

functions_may_be_renamed = Switch("functions_may_be_renamed", False)
"""Whether functions that have a name may be given another."""

passes: Switch[tuple[str, ...] | None] = Switch("passes", names_in("CNTK_PASSES"))
"""Names of the passes that run, None for all; programs are kept apart by it."""

checked_mode = Switch("checked_mode", False)
"""Whether every result is checked for NaN; programs are kept apart by it."""

math: Switch[str] = Switch("math", "ieee")
"""How GPUs multiply float32 numbers: 'ieee' as they are, or 'tf32', rounded to ten bits of fraction; programs are kept apart by it."""

benchmark = Switch("benchmark", False)
"""Whether GPUs time the algorithms for a convolution and take the fastest; programs are kept apart by it."""

deterministic_algorithms = Switch("deterministic_algorithms", False)
"""Whether results must not depend on the order of threads, nor on times; programs are kept apart by it."""

recorders: Switch[tuple[Any, ...]] = Switch("recorders", ())
"""The recorders that take the time of operators."""


# ---- restoring them ----


class _Found:
    """The values that an open block found, to be restored."""

    def __init__(self) -> None:
        self.values = {switch: switch.get() for switch in _all.values()}

    def put_back(self) -> None:
        for switch in list(_all.values()):
            switch.put_back(self.values.get(switch, switch.first))


_open: list[_Found] = []
_lock = ForkSafeLock()


@contextmanager
def isolated() -> Iterator[None]:
    """Restore all switches on leaving a ``with`` block, whatever it has set, in any thread, and however it is left.

    A switch of a module that is imported in the block gets its initial value.  Blocks may lie within one another.  Those of several
    threads may also overlap, though all see what each sets: the last to be left puts back what the first found.

    Example:
        >>> from cntk.testing import isolated
        >>> with isolated():
        ...     C.logging.set_trace_level(0)
        ...     C.cntk_py.set_max_num_cputhreads(1)
        >>> C.logging.get_trace_level()
        1
    """
    with _lock:
        found = _Found()
        _open.append(found)
    try:
        yield
    finally:
        with _lock:
            place = _open.index(found)
            if found is _open[-1]:
                found.put_back()
            else:
                _open[place + 1].values = found.values
            del _open[place]
