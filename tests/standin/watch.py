"""Operators' methods, held to the rules while they compute."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cntk.core.program.passes import Pass

from . import rules


class Watch(Pass):
    """Says which operator computes."""

    name = "watch"

    def arrange(self, program: Any) -> None:
        for instruction in program.instructions:
            name = instruction.op.op_name
            instruction.forward = partial(_watched, name, instruction.forward)
            instruction.backward = partial(_watched, name, instruction.backward)


def prepared(method: Callable[..., Any]) -> Callable[..., Any]:
    """A backend's method for memory that operators keep: what it allocates is there before anything is captured."""

    def call(*arguments: Any) -> Any:
        with rules.preparing():
            return method(*arguments)

    return call


def _watched(name: str, method: Callable[..., None], *arguments: Any) -> None:
    with rules.computing(name):
        method(*arguments)
