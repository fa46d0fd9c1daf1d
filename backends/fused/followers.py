"""Element-wise operators that kernels apply to their results: a sum with a bias, a sum with a residual, and a rectifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import Any, NamedTuple

from ...core.extension.identity import ByClass
from ...core.operators.epilogue import Epilogue, Step
from ...core.types.spec import Spec


class Follower(Enum):
    """An element-wise operator that kernels apply to their result."""

    SUM = "sum"
    RECTIFIER = "rectifier"


FOLLOWERS = ByClass({"cntk.plugins.ops.arithmetic:Plus": Follower.SUM, "cntk.plugins.ops.activation:ReLU": Follower.RECTIFIER})


class Part(IntEnum):
    """What a step is to convolutions and products, in the order in which they apply such."""

    BIAS = 0
    RESIDUAL = 1
    RECTIFIER = 2


class After(NamedTuple):
    """What convolutions and products apply to their results.

    Attributes:
        bias: an array with a number for each filter or column that is added; None for none.
        residual: an array that lies in memory as the result does, and is added then; None for none.
        rectify: whether negative results then become zero.
    """

    bias: Any = None
    residual: Any = None
    rectify: bool = False

    def bias_or(self, nothing: Any) -> Any:
        """The bias, or an empty array for none."""
        return nothing if self.bias is None else self.bias

    def distance(self, out: Any) -> int:
        """How many bytes behind each result lies what is added to it; 0 for nothing."""
        return 0 if self.residual is None else int(self.residual.ctypes.data - out.ctypes.data)


NOTHING = After()


def followers(steps: Sequence[Step]) -> list[Follower | None]:
    """The kinds of the first two steps; None for a step that no kernel applies."""
    return [FOLLOWERS.get(type(step.op)) for step in steps[:2]]


def has_rectifier(steps: Sequence[Step]) -> bool:
    """Whether the last step is a rectifier."""
    return FOLLOWERS.get(type(steps[-1].op)) is Follower.RECTIFIER


def parts(steps: Sequence[Step], is_bias: Callable[[Spec], bool]) -> list[Part]:
    """What the first steps are, as far as they follow one another in the order of parts, of which some may be missing.

    Args:
        steps: the steps.
        is_bias: tells whether the other operand of a sum is a bias.
    """
    found: list[Part] = []
    for step in steps:
        part = _part(step, is_bias)
        if part is None or (found and part <= found[-1]):
            break
        found.append(part)
    return found


def _part(step: Step, is_bias: Callable[[Spec], bool]) -> Part | None:
    kind = FOLLOWERS.get(type(step.op))
    if kind is not Follower.SUM:
        return None if kind is None else Part.RECTIFIER
    (other,) = step.others
    if is_bias(other):
        return Part.BIAS
    return None if step.goes_back or other.axes == () or 1 in other.dims else Part.RESIDUAL  # what has a dimension of 1 may be repeated


def what_follows(epilogue: Epilogue | None, is_bias: Callable[[Spec], bool]) -> After:
    """The same with the arrays of one call."""
    if epilogue is None:
        return NOTHING
    found = parts(epilogue.steps, is_bias)
    arrays = dict(zip(found, epilogue.others, strict=False))
    bias = arrays.get(Part.BIAS)
    return After(None if bias is None else bias.reshape(-1), arrays.get(Part.RESIDUAL), Part.RECTIFIER in found)
