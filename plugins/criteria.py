"""Losses and metrics among the results of a function, which those who apply a model have no use for."""

from __future__ import annotations

from collections.abc import Callable

from ..core.graph.block import Block
from ..core.graph.nodes import Primitive
from ..core.graph.variable import Output, Variable
from .ops.ctc import ForwardBackward
from .ops.edit_distance import EditDistanceError
from .ops.logistic import Logistic
from .ops.loss import BinaryCrossEntropy, CrossEntropyWithSoftmax, SquaredError
from .ops.metric import ClassificationError, MeanClassificationError, TopNClassificationError
from .ops.noise_contrastive import NoiseContrastiveEstimation
from .ops.ranking import LambdaRank, Ndcg
from .ops.reduction import ReduceMean, ReduceSum
from .ops.reduction_base import ALL_AXES

CRITERIA = (
    CrossEntropyWithSoftmax,
    SquaredError,
    BinaryCrossEntropy,
    ClassificationError,
    MeanClassificationError,
    TopNClassificationError,
    Logistic,
    NoiseContrastiveEstimation,
    ForwardBackward,
    EditDistanceError,
    LambdaRank,
    Ndcg,
)


def owner_of(variable: Variable) -> Primitive | None:
    """The operator that computes a variable, inside of blocks; None for a leaf."""
    while isinstance(variable, Output) and isinstance(variable.owner, Block):
        variable = variable.owner.composite.outputs[variable.index]
    return variable.owner if isinstance(variable, Output) else None


def is_criterion(variable: Variable, owner_of: Callable[[Variable], Primitive | None] = owner_of) -> bool:
    """Whether a result is a loss or metric, or the sum or mean of one over all samples.

    >>> from cntk.plugins.criteria import is_criterion
    >>> x, y = C.input_variable(2), C.input_variable(2)
    >>> is_criterion(C.squared_error(x, y).output), is_criterion(C.plus(x, y).output)
    (True, False)
    """
    owner = owner_of(variable)
    while owner is not None and isinstance(owner.op, (ReduceSum, ReduceMean)) and owner.op.axis_vec == ALL_AXES:
        owner = owner_of(owner.inputs[0])
    return owner is not None and isinstance(owner.op, CRITERIA)
