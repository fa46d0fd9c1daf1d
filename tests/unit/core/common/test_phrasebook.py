"""Names of other libraries, and what is said about them."""

from __future__ import annotations

import re

import pytest

import cntk as C
from cntk.core.common.phrasebook import METHODS, NAMES, advice, lacking

x = C.input_variable((2, 3), name="x")
model = C.layers.Dense(2)(x)


@pytest.mark.parametrize("name", [name for name in METHODS if not name.endswith("()")])
@pytest.mark.parametrize("owner", [x, model, C.parameter(2)], ids=["input", "model", "parameter"])
def test_a_method_of_other_libraries_is_answered(owner: object, name: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(METHODS[name])):
        getattr(owner, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_other_libraries_is_answered(name: str) -> None:
    modules = [module for module in (C, C.layers) if not hasattr(module, name)]
    assert modules, "the name exists: nothing is to be said about it"
    for module in modules:
        with pytest.raises(AttributeError, match=re.escape(NAMES[name])):
            getattr(module, name)


@pytest.mark.parametrize("call", [name for name in METHODS if name.endswith("()")])
def test_a_call_as_in_other_libraries_is_answered(call: str) -> None:
    with pytest.raises(TypeError, match=re.escape(METHODS[call])):
        getattr(model, call.removesuffix("()"))()


@pytest.mark.parametrize("phrases", [METHODS, NAMES], ids=["methods", "names"])
def test_what_is_recommended_exists(phrases: dict[str, str]) -> None:
    for phrase in phrases.values():
        for path in re.findall(r"\bC((?:\.\w+)+)", phrase):
            found: object = C
            for part in path.split(".")[1:]:
                found = getattr(found, part)


def test_a_name_that_nobody_knows_gets_no_advice() -> None:
    assert advice(METHODS, "frobnicate") == ""
    assert str(lacking("there is no 'frobnicate'", METHODS, "frobnicate")) == "there is no 'frobnicate'"
    with pytest.raises(AttributeError, match=r"^'Input' object has no attribute 'frobnicate'$"):
        x.frobnicate  # noqa: B018


def test_a_copy_that_is_being_made_has_no_attributes_yet() -> None:
    assert not hasattr(object.__new__(type(x)), "__setstate_of_a_library__")
