"""What every operator has without its author: attributes, what it was made with, copies."""

from __future__ import annotations

from typing import Any

import pytest

from cntk.core.operators.base import OpBase
from cntk.core.operators.elementwise import Elementwise


class Sloped(Elementwise):
    op_name = "SlopedForBase"

    def __init__(self, slope: float, is_steep: bool = False, **others: Any) -> None:
        super().__init__(slope=slope, is_steep=is_steep, **others)


@pytest.fixture
def sloped() -> Any:
    return Sloped(2.0, turning_point=3)


def test_attributes_have_the_names_of_cntk(sloped: Any) -> None:
    assert sloped.attributes == {"slope": 2.0, "isSteep": False, "turningPoint": 3}


def test_an_operator_is_made_anew_of_what_its_constructor_was_given(sloped: Any) -> None:
    arguments = sloped.constructor_arguments()
    assert arguments == {"slope": 2.0, "turning_point": 3}  # not what has its default, which later versions may choose otherwise
    assert Sloped.made_of(arguments).attributes == sloped.attributes


@pytest.mark.parametrize(("name", "field"), [("slope", "slope"), ("isSteep", "is_steep"), ("turningPoint", "turning_point")])
def test_a_changed_attribute_is_what_it_was_made_with(sloped: Any, name: str, field: str) -> None:
    sloped.set_attribute(name, 7)
    assert sloped.attributes[name] == 7
    assert sloped.constructor_arguments()[field] == 7
    assert getattr(Sloped.made_of(sloped.constructor_arguments()), field) == 7


def test_a_copy_has_attributes_of_its_own(sloped: Any) -> None:
    other = sloped.copy()
    other.set_attribute("slope", 5.0)
    assert (sloped.slope, other.slope) == (2.0, 5.0)
    assert sloped.constructor_arguments()["slope"] == 2.0


def test_an_unknown_attribute_is_refused_with_those_that_there_are(sloped: Any) -> None:
    with pytest.raises(RuntimeError, match=r"SlopedForBase has no attribute 'steep'; it has \['isSteep', 'slope', 'turningPoint'\]"):
        sloped.set_attribute("steep", 1)


def test_an_operator_keeps_nothing_unless_it_says_so() -> None:
    assert OpBase().create_checkpoint() == {}
