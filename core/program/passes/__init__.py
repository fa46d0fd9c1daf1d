"""Passes: rewriting a program while it is compiled, so that it computes the same in less time or memory.

A pass sees the program twice and overrides the method that it needs: :meth:`Pass.rewrite` when the forward instructions are
complete, :meth:`Pass.arrange` when views, stages, backward pass and lifetimes are determined as well.  Programs are correct without
any pass; :func:`set_passes` selects some, to compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...common import switches
from ...extension import plugins
from ...extension.registry import one_line
from .accumulation import Accumulation
from .base import Pass
from .common import CommonSubexpressions
from .constants import ConstantFolding
from .dead import DeadCode
from .epilogues import Epilogues
from .fuse_expressions import Expressions
from .fuse_pairs import Joining
from .identities import Identities
from .in_place import InPlace
from .row_blocking import Blocks
from .scaling import Scaling
from .swap_max import Maxima

if TYPE_CHECKING:
    from ..program import Program

_REWRITING = (
    Identities(),
    CommonSubexpressions(),
    Joining(),
    ConstantFolding(),
    Scaling(),
    DeadCode(),
    Expressions(),
    Maxima(),
    Epilogues(),
)
_ARRANGING = (Accumulation(), InPlace(), Blocks())

BUILT_IN: tuple[Pass, ...] = (*_REWRITING, *_ARRANGING)
"""In the order in which they run; those of plugins follow, by name."""


def available() -> dict[str, Pass]:
    """All passes by name, in the order in which they run."""
    return {made.name: made for made in (*BUILT_IN, *map(_of_plugin, plugins.passes))}


def _of_plugin(name: str) -> Pass:
    """A registered pass.

    Raises:
        TypeError: the registered object is not a pass.
    """
    made = plugins.passes.get(name)
    if not isinstance(made, Pass):
        raise TypeError(f"pass '{name}' of {plugins.passes.owner(name)}: expected an object of a subclass of Pass, got {made!r:.80}")
    return made


def set_passes(names: Iterable[str] | None = None) -> None:
    """Choose the passes for programs compiled from now on; those compiled before come back when their passes are chosen again.

    Programs give the same results with and without each pass, within rounding.  The environment variable ``CNTK_PASSES`` holds names
    separated by commas, none where it is empty, and chooses before the first program is compiled.

    Args:
        names: names of passes, ``[]`` for none; None for all.

    Raises:
        ValueError: there is no pass of a name.

    >>> from cntk.core.program import passes
    >>> list(passes.available())[:4]
    ['identities', 'common', 'fuse_pairs', 'constants']
    >>> C.debugging.set_passes(['common', 'dead'])
    >>> C.debugging.set_passes()
    """
    wanted = None if names is None else tuple(names)
    _check(wanted or ())
    switches.passes.value = wanted


def chosen() -> list[Pass]:
    """The passes that run, in order."""
    selected = switches.passes.value
    _check(selected or ())
    return [made for name, made in available().items() if selected is None or name in selected]


def run(one: Pass, moment: Callable[[Program], None], program: Program) -> None:
    """Run one of a pass's methods.

    Raises:
        RuntimeError: a pass of a plugin failed; the message says which, and how programs do without it.
    """
    try:
        moment(program)
    except Exception as error:
        owner = next((plugins.passes.owner(name) for name in plugins.passes if plugins.passes.get(name) is one), None)
        if owner is None:
            raise
        left_out = f"CNTK_PLUGINS=-{owner.rpartition(':')[2]}, or choose passes by CNTK_PASSES"
        raise RuntimeError(f"pass '{one.name}' of {owner} failed: {one_line(error)}; fix it, or leave it out with {left_out}") from error


def _check(names: Iterable[str]) -> None:
    known = available()
    for name in names:
        if name not in known:
            raise ValueError(f"no pass is called {name!r}; there are {', '.join(known)}")


__all__ = ["BUILT_IN", "Pass", "available", "chosen", "run", "set_passes"]
