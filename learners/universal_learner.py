"""A learner whose rule is a graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.graph.function import Function
from ..core.graph.graph import depth_first_search
from ..core.graph.nodes import Primitive
from ..core.graph.operator_states import check_operator_states, operator_states, restore_operator_states
from ..core.graph.variable import Constant
from ..core.operators.effects import Assignment
from ..core.run.evaluate import feeds_for, program_for
from ..core.run.workspace import start
from ..core.types.sparse import RowSparse
from .checkpoint import require
from .learner import Learner
from .options import LearnerOptions

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter


class Universal(Learner):
    """Evaluates a function that assigns to parameters; learning rates play no part.

    Args:
        parameters: the parameters that it updates.
        gradients: for each a constant of its shape, which *update* reads; before each update it takes the gradient.
        update: the function to evaluate; it takes no arguments.

    Raises:
        ValueError: *update* has arguments, or *gradients* do not match *parameters*.
    """

    def __init__(self, parameters: Iterable[Parameter], gradients: Sequence[Constant], update: Function) -> None:
        super().__init__(parameters, 1.0, LearnerOptions())
        if [g.shape for g in gradients] != [p.shape for p in self.parameters]:
            raise ValueError(f"universal: expected gradients of the shapes of {self.parameters}, got {tuple(gradients)}")
        if update.arguments:
            raise ValueError(f"universal: the update {update} needs data for {list(update.arguments)}; it must depend on no inputs")
        self._gradients, self._update = tuple(gradients), update
        for held in self._gradients:
            held.is_volatile = True
        self._kept = [variable for variable in _assigned(update) if variable not in self.parameters]

    def update_arrays(self, gradients: Sequence[Any], count: int, is_sweep_end: bool = False) -> bool:
        self.announce("Learning rate", self._learning_rate_schedule, self.learning_rate())
        for parameter, held, gradient in zip(self.parameters, self._gradients, gradients, strict=True):
            held.array[...] = gradient.to_dense(parameter.backend.xp) if isinstance(gradient, RowSparse) else gradient
        program = program_for(self._update, self._update.outputs, self.parameters[0].device)
        run = start(program, feeds_for(program, {}))
        try:
            run.forward()
            run.finish()
        finally:
            run.close()
        self._count(count, is_sweep_end)
        return True

    def create_checkpoint(self) -> dict[str, Any]:
        """As every learner's, with the state that the graph keeps between updates: values that it assigns, and random numbers."""
        kept = [variable.backend.to_numpy(variable.array) for variable in self._kept]
        return {**super().create_checkpoint(), "kept": kept, "operators": operator_states(self._update)}

    def check_checkpoint(self, checkpoint: Any) -> None:
        require(checkpoint, ("kept", "operators"), type(self).__name__)
        shapes = [tuple(variable.shape) for variable in self._kept]
        kept = [np.asarray(value).shape for value in checkpoint["kept"]]
        if kept != shapes:
            raise RuntimeError(
                f"checkpoint of a universal learner that assigns to shapes {kept} beside its parameters "
                f"given to one that assigns to {shapes}"
            )
        super().check_checkpoint(checkpoint)
        check_operator_states(self._update, checkpoint["operators"])

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        self.check_checkpoint(checkpoint)
        super().restore_from_checkpoint(checkpoint)
        restore_operator_states(self._update, checkpoint["operators"])
        for variable, value in zip(self._kept, checkpoint["kept"], strict=True):
            variable.backend.load(variable.array, np.asarray(value))
            variable.updates += 1


def _assigned(update: Function) -> list[Any]:
    """The variables that a graph assigns to, each once."""
    found = depth_first_search(update, lambda node: isinstance(node, Primitive) and isinstance(node.op, Assignment), -1)
    return list(dict.fromkeys(node.inputs[operand] for node in found for operand in node.op.assigns))


def universal(update_func: Callable[[Sequence[Parameter], Sequence[Constant]], Function], parameters: Iterable[Parameter]) -> Learner:
    """A learner whose rule is a graph: what *update_func* returns is evaluated once for each minibatch.

    Args:
        update_func: called once with the parameters and as many constants, which hold the gradients, summed over the minibatch, when
            the graph is evaluated; returns a function that updates parameters, and any state of its own, by ``assign``.
        parameters: the parameters.

    Returns:
        The learner, for a :class:`~cntk.train.trainer.Trainer`.

    Raises:
        TypeError: *update_func* does not return a function.
        ValueError: it does not take two arguments, its graph needs data, or the shape of a parameter is not known yet.

    Example:
        >>> def momentum(parameters, gradients):
        ...     velocities = [C.constant(0, shape=p.shape) for p in parameters]
        ...     moved = [C.assign(v, 0.9 * v + g) for v, g in zip(velocities, gradients)]
        ...     return C.combine([C.assign(p, p - 0.1 * v) for p, v in zip(parameters, moved)])
        >>> w = C.parameter(2, init=1)
        >>> learner = C.universal(momentum, [w])
        >>> learner.update({w: np.array([1, 2], dtype=np.float32)}, 1)
        True
        >>> w.value
        array([0.9, 0.8], dtype=float32)
    """
    if not _takes_two(update_func):
        raise ValueError("universal: update_func must be a function of two arguments, the parameters and their gradients")
    held = tuple(parameters)
    for parameter in held:
        if any(dim < 0 for dim in parameter.shape):
            raise ValueError(f"universal: the shape of {parameter!r} is not known yet; create the learner after the model has its input")
    gradients = [Constant(0, p.shape, p.dtype, p.device, "grad") for p in held]
    update = update_func(held, gradients)
    if not isinstance(update, Function):
        raise TypeError(f"universal: update_func must return a Function, got {type(update).__name__} {update!r:.80}")
    return Universal(held, gradients, update)


def _takes_two(f: Callable[..., Any]) -> bool:
    needed = [p for p in inspect.signature(f).parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
    return len(needed) == 2
