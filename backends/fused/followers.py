"""Element-wise operators that kernels apply to their results: which of them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from ...core.extension.identity import ByClass
from ...core.operators.epilogue import Step


class Follower(Enum):
    """An element-wise operator that kernels apply to their result."""

    SUM = "sum"
    RECTIFIER = "rectifier"


FOLLOWERS = ByClass({"cntk.plugins.ops.arithmetic:Plus": Follower.SUM, "cntk.plugins.ops.activation:ReLU": Follower.RECTIFIER})


def followers(steps: Sequence[Step]) -> list[Follower | None]:
    """The kinds of the first two steps; None for a step that no kernel applies."""
    return [FOLLOWERS.get(type(step.op)) for step in steps[:2]]


def has_rectifier(steps: Sequence[Step]) -> bool:
    """Whether the last step is a rectifier."""
    return FOLLOWERS.get(type(steps[-1].op)) is Follower.RECTIFIER
