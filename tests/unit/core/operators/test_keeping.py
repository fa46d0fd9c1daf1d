"""What backward reads must be kept; an operator that forgets to say so is told."""

from __future__ import annotations

from typing import Any

import pytest

import cntk as C
from cntk.core.operators.elementwise import Elementwise


class Square(Elementwise):
    """Reads its operand in backward, but does not say so."""

    op_name = "SquareThatKeepsNothing"

    def forward(self, ctx: Any, y: Any, x: Any) -> None:
        ctx.xp.multiply(x, x, out=y)

    def gradient(self, i: int, ctx: Any, dx: Any, dy: Any, y: Any, x: Any) -> None:
        ctx.xp.multiply(x, dy, out=dx)


def test_an_operand_that_is_not_kept_is_said_to_be_missing() -> None:
    x = C.input_variable(3, needs_gradient=True)
    with pytest.raises(
        RuntimeError, match=r"SquareThatKeepsNothing\(.*arrays that backward reads are None unless named: keep_inputs is \(\)"
    ):
        Square()(x).grad([[1, 2, 3]])


def test_other_errors_get_no_such_hint() -> None:
    class Wrong(Square):
        op_name = "WrongForward"

        def forward(self, ctx: Any, y: Any, x: Any) -> None:
            raise TypeError("something else")

    with pytest.raises(TypeError, match="something else") as raised:
        Wrong()(C.input_variable(3)).eval([[1, 2, 3]])
    assert "keep_inputs" not in str(raised.value)
