"""Kernels that plugins have registered for the steps of learners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.common.shape import size_of
from ..core.common.thresholds import thresholds
from ..core.common.user_frame import warn_user
from ..core.extension import plugins
from ..core.extension.compiled import Unusable

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter


def kernel_of(learner: type, parameters: Sequence[Parameter]) -> Any:
    """The kernel for a learner's steps on its parameters' backend; None if they are small, or there is no kernel."""
    backends = {parameter.backend.name for parameter in parameters}
    place = plugins.kernel_place(learner, *backends) if len(backends) == 1 else None
    fewest = getattr(parameters[0].backend, "fewest_for_learners", thresholds.learner_compiled)
    if place is None or sum(size_of(parameter.shape) for parameter in parameters) < fewest:
        return None
    try:
        return plugins.kernels.get(place)
    except Unusable:
        return None
    except ImportError as error:
        warn_user(f"{learner.__name__} is slower than it could be: its kernel cannot be imported, {error}", RuntimeWarning)
        return None
