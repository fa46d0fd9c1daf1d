"""The options that the functions of all learners take, so that each declares only its own arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from inspect import Parameter
from typing import Any, TypeVar

from .options import LearnerOptions, Options

F = TypeVar("F", bound=Callable[..., Any])

BY_POSITION = Parameter.POSITIONAL_OR_KEYWORD

PLACE = "options: those that every learner takes."
"""The line of a docstring that is replaced by the description of the options."""

_LAST = 2
"""The number of options, *minibatch_size* and *epoch_size*, that come after all other arguments in CNTK."""


def takes_options(function: F) -> F:
    """Decorator: the learner's function takes each of :class:`Options` as an argument, by position or by name.

    In the order of its arguments, which is CNTK's, they come after those of *function* by position; those that it takes by name alone come
    before the last two options, and may be given by position as well.

    Args:
        function: makes the learner, with ``**options``.

    Raises:
        TypeError: raised by the function made, for an argument that is missing, unknown or given twice.
    """
    own = inspect.signature(function)
    first = [one for one in own.parameters.values() if one.kind is BY_POSITION]
    later = [one.replace(kind=BY_POSITION) for one in own.parameters.values() if one.kind is Parameter.KEYWORD_ONLY]
    options = [Parameter(one.name, BY_POSITION, default=one.default, annotation=one.type) for one in fields(LearnerOptions)]
    signature = own.replace(parameters=[*first, *options[:-_LAST], *later, *options[-_LAST:]])

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{function.__name__}: {error}; its arguments are {', '.join(signature.parameters)}") from None
        return function(**arguments)

    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {**{one.name: one.annotation for one in signature.parameters.values()}, "return": signature.return_annotation}
    call.__doc__ = inspect.cleandoc(function.__doc__ or "").replace(f"    {PLACE}", _described())
    return call  # type: ignore[return-value]


@functools.cache
def _described() -> str:
    """The descriptions of all options in :class:`Options`, as the end of a list of arguments."""
    return inspect.cleandoc(Options.__doc__ or "").partition("Keys:\n")[2]
