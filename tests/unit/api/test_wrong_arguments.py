"""Every argument of public functions with every value that it should not have: an error names the function, or there is a result."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hostile.arguments import WRONG, calls, complaint

import cntk as C
from cntk.core.types.arguments import Count, Seed, checked

CALLS = calls()


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_told(name: str) -> None:
    function, arguments = CALLS[name]()
    repeated = {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_POSITIONAL}
    found = []
    for argument in arguments:
        for what, make in WRONG.items():
            value = (make(),) if argument in repeated else make()
            told = complaint(name, function, {**arguments, argument: value})
            if told is not None:
                found.append(f"{argument}={what}: {told:.200}")
    assert found == []


def test_right_arguments_give_results() -> None:
    for name, make in CALLS.items():
        function, arguments = make()
        bound = inspect.BoundArguments(inspect.signature(function), arguments)  # type: ignore[arg-type]
        assert function(*bound.args, **bound.kwargs) is not None, name


@checked
def example(
    x: Any, count: int, rate: float = 0.5, flag: bool = True, seed: Seed = 1, most: Count = 0, places: int | list[int] = 0, name: str = ""
) -> str:
    return "made"


@pytest.mark.parametrize("count", [3, 3.0, True, -(2**63)])
def test_whole_numbers(count: Any) -> None:
    assert example(0, count) == "made"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"count": 2.5}, ValueError, "example: count must be a whole number, got 2.5"),
        ({"count": float("inf")}, ValueError, "example: count must be a whole number, got inf"),
        ({"count": 2**63}, ValueError, "example: count must be a whole number, got 9223372036854775808"),
        ({"count": 10**400}, ValueError, "example: count must be a whole number, got a number of 1329 bits"),
        ({"count": None}, TypeError, "example: count must be a whole number, got NoneType None"),
        ({"count": "3"}, TypeError, "example: count must be a whole number, got str '3'"),
        ({"count": 1, "rate": "x"}, TypeError, "example: rate must be a number, got str 'x'"),
        ({"count": 1, "rate": 10**400}, ValueError, "example: rate must be a number, got a number of 1329 bits"),
        ({"count": 1, "flag": "yes"}, TypeError, "example: flag must be True or False, got str 'yes'"),
        ({"count": 1, "flag": 2}, ValueError, "example: flag must be True or False, got 2"),
        ({"count": 1, "seed": -1}, ValueError, "example: seed must be a whole number from 0"),
        ({"count": 1, "name": 5}, TypeError, "example: name must be a text, got 5"),
    ],
)
def test_a_message_names_function_and_argument(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        example(0, **arguments)
    assert str(caught.value).startswith(message)


def test_options_stand_for_what_they_will_be() -> None:
    assert example(0, C.default_override_or(3)) == "made"


@pytest.mark.parametrize("endless", [lambda: itertools.count(), lambda: range(10**12)])
def test_shapes_and_axes_without_end_are_refused(endless: Any) -> None:
    x = C.input_variable((2, 3))
    for call in (C.input_variable, C.parameter, lambda given: C.reshape(x, given), lambda given: C.transpose(x, given)):
        with pytest.raises((TypeError, ValueError)):
            call(endless())


def test_errors_behind_a_function_get_its_name() -> None:
    with pytest.raises(TypeError, match=r"random\.uniform|uniform: a shape is an int"):
        C.random.uniform(C.placeholder())
    with pytest.raises(ValueError, match=r"^Plus\("):
        C.plus(C.input_variable(2), C.input_variable(3))


def test_annotations_may_be_types() -> None:
    """Modules of plugins need not import annotations from __future__."""

    def scaled(x: Any, factor: Any, axes: Any = None) -> Any:
        return x

    scaled.__annotations__ |= {"x": Any, "factor": int | None, "axes": Sequence[int], "return": Any}
    made = checked(scaled)
    assert made("anything", None) == "anything"
    with pytest.raises(ValueError, match=r"scaled: factor must be a whole number or None, got 2.5"):
        made("anything", 2.5)
    with pytest.raises(TypeError, match=r"scaled: axes must be a sequence of these: a whole number, got"):
        made("anything", 1, ["first"])
