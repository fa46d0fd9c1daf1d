"""Initialisers as the engine makes them, with their arguments in its order."""

from __future__ import annotations

from typing import Any

from cntk.plugins.initializers import (
    INFER_RANK,
    Initializer,
    bilinear,
    constant,
    glorot_normal,
    glorot_uniform,
    he_normal,
    he_uniform,
    initializer_with_rank,
    normal,
    truncated_normal,
    uniform,
    xavier,
)

constant_initializer = constant
uniform_initializer = uniform
normal_initializer = normal
truncated_normal_initializer = truncated_normal
bilinear_initializer = bilinear
xavier_initializer = xavier
glorot_normal_initializer = glorot_normal
glorot_uniform_initializer = glorot_uniform
he_normal_initializer = he_normal
he_uniform_initializer = he_uniform


def random_initializer_with_rank(initializer: Any, output_rank: int = INFER_RANK, filter_rank: int = INFER_RANK) -> Initializer:
    """See :func:`cntk.initializer.initializer_with_rank`."""
    return initializer_with_rank(initializer, output_rank, filter_rank)
