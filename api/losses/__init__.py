"""Losses: what training makes small."""

from __future__ import annotations

from typing import Any

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


def __getattr__(name: str) -> Any:
    if name in _OPERATORS:
        return plugins.ops.get(name)
    raise AttributeError(f"module 'cntk.losses' has no loss '{name}'")
