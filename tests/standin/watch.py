"""Enforcement of the rules while operators' methods compute."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cntk.core.program.passes import Pass

from . import rules


class Watch(Pass):
    """Pass that wraps operators' methods to note which operator computes."""

    name = "watch"

    def arrange(self, program: Any) -> None:
        for instruction in program.instructions:
            name = instruction.op.op_name
            instruction.forward = partial(_watched, name, instruction.forward)
            instruction.backward = partial(_watched, name, instruction.backward)


def prepared(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a backend's allocation method for memory that operators keep, which is allocated before any capture."""

    def call(*arguments: Any) -> Any:
        with rules.preparing():
            return method(*arguments)

    return call


def _watched(name: str, method: Callable[..., None], *arguments: Any) -> None:
    with rules.computing(name):
        method(*arguments)
