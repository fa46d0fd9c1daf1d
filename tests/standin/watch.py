"""Enforcement of the rules while operators compute, by their own methods or by kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cntk.backends.cupy import chains, recurrence
from cntk.core.extension.kernel import Repeatable
from cntk.core.program.passes import Pass

from . import rules


class Watch(Pass):
    """Pass that wraps the methods and bound calls of operators to note which operator computes."""

    name = "watch"

    def arrange(self, program: Any) -> None:
        for instruction in program.instructions:
            name = instruction.op.op_name
            instruction.forward = partial(_watched, name, instruction.forward)
            instruction.backward = partial(_watched, name, instruction.backward)
            if instruction.bind is not None:
                instruction.bind = partial(_bound, name, instruction.bind)


class Work:
    """A watched :class:`~cntk.core.extension.kernel.Repeatable`."""

    def __init__(self, name: str, work: Any) -> None:
        self._name, self._work = name, work
        self.holds = work.holds

    def __call__(self) -> None:
        _watched(self._name, self._work)

    def prepare(self) -> None:
        _watched(self._name, self._work.prepare)

    def work(self) -> None:
        _watched(self._name, self._work.work)


def watch_engines() -> None:
    """Watch the calls that are not of one operator: those of chains and of recurrences."""
    for owner, method in ((chains.Fused, "work"), (recurrence.Machine, "run")):
        setattr(owner, method, _method(owner.__name__, getattr(owner, method)))


def prepared(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a backend's method that allocates memory outside of captures, so that no strictness refuses it."""

    def call(*arguments: Any) -> Any:
        with rules.preparing():
            return method(*arguments)

    return call


def _bound(name: str, bind: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    bound = bind(*arguments, **options)
    if bound is None:
        return None
    return Work(name, bound) if isinstance(bound, Repeatable) else partial(_watched, name, bound)


def _method(name: str, method: Callable[..., None]) -> Callable[..., None]:
    return lambda *arguments: _watched(name, method, *arguments)


def _watched(name: str, method: Callable[..., None], *arguments: Any) -> None:
    with rules.computing(name):
        method(*arguments)
