"""What a trainer makes small and what it measures."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

from cntk.core.graph.block import as_composite, as_outputs, combine
from cntk.core.graph.function import Function
from cntk.core.graph.variable import Output, Variable
from cntk.plugins.distributed.base import Transport
from cntk.train.measure import measure

Model = Function | Variable | None

CriterionLike = Model | Sequence[Model]
"""A function with the loss as its first and a metric as its optional second output, or a tuple of these."""
"""What may be given as a trainer's model."""


class Criterion:
    """Loss and metric, and the model that they are of.

    Args:
        model: the model; may be None.
        given: a function with the loss as its first and a metric as its optional second output, or a tuple of these.

    Attributes:
        loss: what is to be made small.
        metric: what is measured beside; may be None.
        roots: the two, as far as there are.
        function: outputs of the model, loss and metric in one, as a model's file has them.

    Raises:
        ValueError: a criterion of no parts, or of more than two.
        TypeError: the model or a part of the criterion is something else.
    """

    def __init__(self, model: Model, given: CriterionLike) -> None:
        if not isinstance(model, (Function, Variable, NoneType)):
            raise TypeError(f"Trainer: the model must be a Function or None, got {type(model).__name__} {model!r:.80}")
        self.model = model
        self.loss, self.metric = _parts_of(given)
        self.roots = [self.loss] if self.metric is None else [self.loss, self.metric]
        outputs = model.outputs if isinstance(model, Function) else [model] if isinstance(model, Variable) else []
        self.function = combine([*outputs, *self.roots])

    def measure(self, arguments: Any, device: Any, transport: Transport | None) -> tuple[float, int]:
        """Average of the metric, or of the loss where there is none, and the number of samples; see :func:`cntk.train.measure.measure`."""
        return measure(self.function, self.loss if self.metric is None else self.metric, arguments, device, transport)

    def require_metric(self) -> None:
        """Refuse to go on without a metric.

        Raises:
            ValueError: there is none.
        """
        if self.metric is None:
            raise ValueError("Trainer: the criterion has no metric; give it a second output, such as classification_error")


def function_of(variable: Variable) -> Function:
    """The function whose only output is *variable*."""
    if isinstance(variable, Output) and len(variable.owner.outputs) == 1:
        return as_composite(variable.owner)
    return combine([variable])


def _parts_of(criterion: Any) -> tuple[Variable, Variable | None]:
    """Loss and metric of a criterion; a metric of None is none."""
    given = list(criterion) if isinstance(criterion, (tuple, list)) else [criterion]
    if len(given) == 2 and given[1] is None:
        given.pop()
    parts = as_outputs(given, "Trainer: a criterion consists of functions")
    if not 1 <= len(parts) <= 2:
        raise ValueError(f"Trainer: the criterion must have a loss and at most one metric, got {len(parts)} outputs")
    return parts[0], parts[1] if len(parts) == 2 else None
