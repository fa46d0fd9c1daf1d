"""The one place that knows who does what the kernel only asks for: see :mod:`cntk.core.common.services`."""

from __future__ import annotations

from typing import Any

from cntk.core.common.services import services
from cntk.core.graph.inference import apply
from cntk.core.run import evaluate
from cntk.core.run.bound import BoundFunction
from cntk.core.run.workspace import start
from cntk.core.values import value
from cntk.plugins.models import files, pickling


def _displayed(item: Any) -> dict[str, str]:
    """What notebooks show of an object; imported where there is a notebook."""
    from cntk.views import bundle_of

    return bundle_of(item)


services.provide(
    apply=apply,
    start=start,
    evaluate=evaluate.evaluate,
    forward=evaluate.forward,
    backward=evaluate.backward,
    grad=evaluate.grad,
    bind=BoundFunction,
    held_by=value.held_by,
    view_of=value.view_of,
    save=files.save,
    load=files.load,
    restore=files.restore,
    register_callback=files.register_udf_deserialize_callback,
    reduce=pickling.reduce,
    shallow_copy=pickling.shallow_copy,
    deep_copy=pickling.deep_copy,
    displayed=_displayed,
)
