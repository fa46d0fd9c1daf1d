"""Losses: what training makes small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntk.core.extension import plugins
from cntk.losses.hierarchical_softmax import hierarchical_softmax_layer
from cntk.losses.lattice import lattice_sequence_with_softmax
from cntk.losses.overlap import fmeasure

_OPERATORS = (
    "binary_cross_entropy",
    "cosine_distance",
    "cosine_distance_with_negative_samples",
    "cross_entropy_with_softmax",
    "lambda_rank",
    "nce_loss",
    "squared_error",
    "weighted_binary_cross_entropy",
)

__all__ = [*_OPERATORS, "fmeasure", "hierarchical_softmax_layer", "lattice_sequence_with_softmax"]


if TYPE_CHECKING:
    from cntk.losses import _names
    from cntk.losses._names import *
    from cntk.ops._names import binary_cross_entropy as binary_cross_entropy
    from cntk.ops._names import cosine_distance as cosine_distance
    from cntk.ops._names import cosine_distance_with_negative_samples as cosine_distance_with_negative_samples
    from cntk.ops._names import cross_entropy_with_softmax as cross_entropy_with_softmax
    from cntk.ops._names import lambda_rank as lambda_rank
    from cntk.ops._names import nce_loss as nce_loss
    from cntk.ops._names import squared_error as squared_error
    from cntk.ops._names import weighted_binary_cross_entropy as weighted_binary_cross_entropy

    __all__ += _names.__all__
else:

    def __getattr__(name: str) -> Any:
        if name in _OPERATORS:
            return plugins.ops.get(name)
        raise AttributeError(f"module 'cntk.losses' has no loss '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_OPERATORS})
