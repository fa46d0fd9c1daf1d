"""Kernels: what plugins have registered to do the steps of learners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core import plugins
from ..core.compiled import Unusable
from ..core.shape import size_of
from ..core.source import warn_user
from ..core.thresholds import thresholds

if TYPE_CHECKING:
    from ..core.variable import Parameter


def kernel_of(learner: type, parameters: Sequence[Parameter]) -> Any:
    """What does a learner's steps where its parameters are; None if they are small, or there is nothing.

    Kernels are registered under a learner's module and class, so that none is taken for a class that only has the same name.
    """
    name = f"{learner.__module__}.{learner.__qualname__}", *{parameter.backend.name for parameter in parameters}
    if name not in plugins.kernels or sum(size_of(parameter.shape) for parameter in parameters) < thresholds.learner_compiled:
        return None
    try:
        return plugins.kernels.get(name)
    except Unusable:
        return None
    except ImportError as error:
        warn_user(f"{learner.__name__} is slower than it could be: its kernel cannot be imported, {error}", RuntimeWarning)
        return None
