"""The conformance kit finds operators that do not survive files, clones or pickles."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from cntk.core.operators.elementwise import Elementwise
from cntk.core.operators.samples import operator, sample
from cntk.testing import check_op


class Scaled(Elementwise):
    """``by * x``: right, but for what a subclass breaks."""

    op_name = "ScaledInFiles"
    by = 1.0

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        ctx.xp.multiply(inputs[0], self.by, out=out)

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.multiply(dy, self.by, out=dx)


class ByFunction(Scaled):
    def __init__(self, by: Any) -> None:
        super().__init__(by=by())


class Forgetful(Scaled):
    def copy(self) -> Scaled:
        return type(self)()


class Locked(Scaled):
    def __init__(self, by: float) -> None:
        super().__init__(by=by)
        self.lock = threading.Lock()

    def copy(self) -> Scaled:
        return type(self)(self.by)


class Resumed(Scaled):
    """Counts what it does, and takes another count for its own when it is loaded."""

    has_effects = True
    by_rows = False

    def create_checkpoint(self) -> dict[str, Any]:
        return {"by": self.by}

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.by = checkpoint["by"] + 1


def changed_later(by: float) -> Scaled:
    op = Scaled()
    op.by = by
    return op


def public(make: Any) -> Any:
    @operator(sample((3, 2)))
    def scaled(x: Any, name: str = "") -> Any:
        """Twice the operand.

        >>> scaled(1.0).eval()
        """
        return make()(x, name=name)

    return scaled


def test_an_operator_that_lasts_passes() -> None:
    check_op(public(lambda: Scaled(by=2.0)))


def test_one_of_a_class_that_cannot_be_imported_passes_without_pickles() -> None:
    class Local(Scaled):
        pass

    check_op(public(lambda: Local(by=2.0)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: changed_later(2.0), r"scaled\(\(3, 2\)\), saved and loaded"),
        (
            lambda: ByFunction(lambda: 2.0),
            r"scaled\(\(3, 2\)\) cannot be kept: ScaledInFiles .* cannot be saved: the argument 'by' of ByFunction",
        ),
        (lambda: Resumed(by=2.0), r"scaled\(\(3, 2\)\), saved and loaded"),
        (lambda: Forgetful(by=2.0), r"scaled\(\(3, 2\)\), cloned"),
        (lambda: Locked(2.0), r"scaled\(\(3, 2\)\) cannot be kept: cannot pickle '_thread.lock' object"),
    ],
    ids=["attribute", "argument", "state", "copy", "pickle"],
)
def test_what_does_not_last_is_found(make: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_op(public(make))
