"""Abilities are methods: a class that has the method has the ability, and no other one."""

from __future__ import annotations

from typing import Any

import pytest

from cntk.core.operators.abilities import (
    AcceptsStrided,
    AssumesShapes,
    CommutesWithMonotone,
    CountsOperations,
    Follows,
    GivesRowSparse,
)
from cntk.core.operators.op import Op
from cntk.plugins.ops.arithmetic import Plus
from cntk.plugins.ops.pooling import Pooling
from cntk.plugins.ops.product import Times

METHODS = {
    AcceptsStrided: "accepts_strided",
    AssumesShapes: "assume",
    CommutesWithMonotone: "commutes_with_monotone",
    CountsOperations: "flop",
    Follows: "after",
    GivesRowSparse: "row_sparse",
}


@pytest.mark.parametrize("ability", METHODS, ids=lambda ability: ability.__name__)
def test_the_method_alone_is_the_ability(ability: Any) -> None:
    assert not issubclass(Op, ability)
    made = type("Able", (Op,), {METHODS[ability]: lambda *_: None})
    assert issubclass(made, ability)
    assert [other for other in METHODS if other is not ability and issubclass(made, other)] == []


def test_operators_have_the_abilities_that_go_with_what_they_do() -> None:
    assert issubclass(Plus, (AcceptsStrided, AssumesShapes, CountsOperations))
    assert issubclass(Times, GivesRowSparse)
    assert issubclass(Pooling, CommutesWithMonotone)
    assert not issubclass(Plus, GivesRowSparse)
    assert not issubclass(Plus, CommutesWithMonotone)
