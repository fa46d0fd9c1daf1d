"""One check for plugins of every kind."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from cntk.learners import Learner
from cntk.plugins.distributed.base import Strategy
from cntk.plugins.progress.base import ProgressWriter
from cntk.readers.deserializer import Deserializer
from cntk.testing.backends import check_backend
from cntk.testing.deserializers import check_deserializer
from cntk.testing.learners import check_learner
from cntk.testing.ops import check_op
from cntk.testing.progress import check_progress_writer
from cntk.testing.strategies import check_strategy


def check(plugin: Callable[..., Any]) -> None:
    """Check that a plugin conforms to the contract of its kind.

    Args:
        plugin: the function of an operator, marked with ``operator``; a function ``(parameters, lr)`` that makes a learner; the class of a
            backend; the class of a strategy, or a function ``(learner, transport)`` that makes one; or a function of no arguments that
            makes a progress writer or deserializer.

    Raises:
        AssertionError: it does not conform.
        TypeError: it is none of these.

    >>> from cntk.extend import check
    >>> check(C.softplus)
    >>> check(C.adagrad)
    """
    _check_of(plugin)(plugin)


def _check_of(plugin: Any) -> Callable[[Any], None]:
    if hasattr(plugin, "samples"):
        return check_op
    if isinstance(plugin, type):
        bases: dict[type, Callable[[Any], None]] = {Strategy: check_strategy, Learner: check_learner}
        found = next((how for base, how in bases.items() if issubclass(plugin, base)), None)
        return found or (check_backend if hasattr(plugin, "on_device") else _by_what_is_made(plugin))
    names = _required(plugin)
    if len(names) == 2:
        return check_strategy if "transport" in names else check_learner
    return _by_what_is_made(plugin)


def _by_what_is_made(plugin: Any) -> Callable[[Any], None]:
    made = plugin() if callable(plugin) and not _required(plugin) else plugin
    if isinstance(made, ProgressWriter):
        return check_progress_writer
    if isinstance(made, Deserializer):
        return check_deserializer
    raise TypeError(
        f"check: expected the function of an operator, a class, or a function that makes a plugin, got {plugin!r}, "
        f"which is or makes a {type(made).__name__}; cntk.testing has a check for each kind"
    )


def _required(plugin: Any) -> list[str]:
    """Names of the arguments that must be given."""
    if not callable(plugin):
        return []
    parameters = signature(plugin).parameters.values()
    return [one.name for one in parameters if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
