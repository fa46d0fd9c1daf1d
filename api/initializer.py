"""Initialisers of parameters."""

from __future__ import annotations

from cntk.core.common.random import AUTO_SEED
from cntk.plugins.initializers import (
    INFER_RANK,
    bilinear,
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

DefaultParamInitScale = 1
"""Scale of a random initialiser that is not given one."""

SentinelValueForInferParamInitRank = INFER_RANK
"""Rank argument that means: the default."""

SentinelValueForAutoSelectRandomSeed = AUTO_SEED
"""Seed argument that means: choose one."""

__all__ = [
    "DefaultParamInitScale",
    "SentinelValueForAutoSelectRandomSeed",
    "SentinelValueForInferParamInitRank",
    "bilinear",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "initializer_with_rank",
    "normal",
    "truncated_normal",
    "uniform",
    "xavier",
]
