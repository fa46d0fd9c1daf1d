"""Kernels: what plugins have registered to do the steps of learners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core import plugins
from ..core.compiled import Unusable
from ..core.shape import size_of
from ..core.source import warn_user

if TYPE_CHECKING:
    from ..core.variable import Parameter

FUSED_FROM = 2**17
"""Elements of a learner's parameters from which on kernels save more time than it takes to load them."""


def kernel_of(learner: type, parameters: Sequence[Parameter]) -> Any:
    """What does a learner's steps where its parameters are; None if they are small, or there is nothing."""
    backends = {parameter.backend.name for parameter in parameters}
    place = plugins.kernel_place(learner, *backends) if len(backends) == 1 else None
    if place is None or sum(size_of(parameter.shape) for parameter in parameters) < FUSED_FROM:
        return None
    try:
        return plugins.kernels.get(place)
    except Unusable:
        return None
    except ImportError as error:
        warn_user(f"{learner.__name__} is slower than it could be: its kernel cannot be imported, {error}", RuntimeWarning)
        return None
