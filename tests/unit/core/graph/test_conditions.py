"""Variables and functions where Python wants a value: conditions, comparisons, iteration, NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C

x, y = C.input_variable(3, name="x"), C.input_variable((2, 3), name="y")
f, W, two = C.relu(x), C.parameter(3, init=[1, 2, 3], name="W"), C.constant(2)
ALL = pytest.mark.parametrize("value", [x, C.placeholder(), f, f.output, f.root_function, W, two, C.combine(x, y)])


@pytest.mark.parametrize("value", [x, C.placeholder(), f.output, C.greater(x, 0), C.not_equal(W, 2), C.element_not(f)])
@pytest.mark.parametrize(
    "use", [lambda v: 1 if v else 2, lambda v: not v, lambda v: v or 1, lambda v: v and 1, lambda v: any([v]), lambda v: assert_(v), bool]
)
def test_a_condition_is_refused(use: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(TypeError, match=r"is not a condition: .*C.element_select.* x is not None"):
        use(value)


def assert_(value: Any) -> None:
    assert value


@pytest.mark.parametrize("value", [f, f.root_function, W * 2, C.combine(x, y), f.output.owner, C.less(x, 0).output.owner, C.less(x, 0) * 2])
def test_functions_are_there(value: Any) -> None:
    """As in CNTK, where programs ask whether there is a model, or something that makes a variable."""
    assert value
    assert (value or None) is value


@pytest.mark.parametrize("value", [W, two, C.layers.Dense(2), C.layers.Dropout(0.5), C.layers.Sequential([C.relu, C.layers.Dense(1)])])
def test_what_may_be_there_or_not_is_there(value: Any) -> None:
    """Layers of others ask whether there is a bias, or a dropout to apply."""
    assert value
    assert (value or None) is value


def test_values_of_a_function_that_is_being_made_are_no_conditions() -> None:
    def branch(v: Any) -> Any:
        return v if C.greater(v, 0) else -v

    for make in (C.Function, C.BlockFunction("Branch", "")):
        with pytest.raises(TypeError, match=r"Greater.* is not a condition"):
            make(branch)


@ALL
def test_equality_is_identity(value: Any) -> None:
    other = C.input_variable(3)
    same, different = [value], [other, None, "x", True]
    assert [value == item for item in same + different] == [True, False, False, False, False]
    assert [value != item for item in same + different] == [False, True, True, True, True]
    assert value in [other, value]
    assert value not in different
    assert [other, value].index(value) == 1
    assert {other: 1, value: 2, "x": 3}[value] == 2
    assert len({value, value, other}) == 2


@pytest.mark.parametrize("number", [0, 1.5, np.float32(1), np.zeros(3)])
@pytest.mark.parametrize("value", [x, f, W])
def test_comparing_with_numbers_says_how(value: Any, number: Any) -> None:
    for compare in (lambda: value == number, lambda: value != number, lambda: number == value, lambda: value in [number]):
        with pytest.raises(TypeError, match=r"C\.(not_)?equal"):
            compare()


@pytest.mark.parametrize(
    ("compare", "name"),
    [
        (lambda: x > 0, "greater"),
        (lambda: f >= x, "greater_equal"),
        (lambda: W < 1, "less"),
        (lambda: x <= 1, "less_equal"),
        (lambda: sorted([x, f]), "less"),
        (lambda: np.ones(3) < x, "less"),
        (lambda: max(x, f), "greater"),
    ],
)
def test_order_says_how(compare: Callable[[], Any], name: str) -> None:
    with pytest.raises(TypeError, match=rf"use C\.{name}\b"):
        compare()


@pytest.mark.parametrize("value", [x, f, W])
def test_iteration_ends(value: Any) -> None:
    a, b, c = value
    assert [part.shape for part in value] == [a.shape, b.shape, c.shape] == [(1,)] * 3
    assert C.splice(*value).eval({x: np.float32([[1, 2, 3]])} if value is not W else {}).reshape(-1).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="too many values"):
        a, b = value


def test_iteration_goes_along_the_first_axis() -> None:
    assert [part.shape for part in y] == [(1, 3), (1, 3)]
    assert [part.shape for part in C.sequence.input_variable((2, 3))] == [(1, 3), (1, 3)]


def test_iteration_over_several_outputs() -> None:
    assert list(C.combine(x, y)) == [x, y]


@pytest.mark.parametrize("value", [C.sequence.input_variable(()), C.placeholder(), C.input_variable(C.FreeDimension)])
def test_iteration_over_nothing_known(value: Any) -> None:
    with pytest.raises(TypeError, match="to iterate over; samples and steps are in the data"):
        iter(value)


@pytest.mark.parametrize(
    ("apply", "name"),
    [
        (lambda: np.exp(x), "exp"),
        (lambda: np.sqrt(f), "sqrt"),
        (lambda: np.exp(W), "exp"),
        (lambda: np.mean(x), "reduce_mean"),
        (lambda: np.sum(f), "reduce_sum"),
        (lambda: np.maximum(x, 0), "element_max"),
        (lambda: np.concatenate([x, x]), "splice"),
        (lambda: np.clip(x, 0, 1), "clip"),
        (lambda: np.mean([W, x], axis=0), None),
        (lambda: np.linalg.norm(x), None),
    ],
)
def test_numpy_functions_say_what_to_use(apply: Callable[[], Any], name: str | None) -> None:
    with pytest.raises(TypeError, match=rf"use C\.{name}," if name else "value"):
        apply()


def test_numpy_functions_of_what_has_a_value() -> None:
    assert np.mean(W) == 2
    assert np.concatenate([W, np.ones(1)]).tolist() == [1, 2, 3, 1]
    assert np.allclose(a=W, b=[1, 2, 3])


@pytest.mark.parametrize(
    ("apply", "expected"),
    [
        (lambda a: a * x, [1, 4, 12]),
        (lambda a: a - f, [0, 0, 1]),
        (lambda a: x / a, [1, 1, 0.75]),
        (lambda a: np.add(a, x), [2, 4, 7]),
        (lambda a: a @ C.reshape(x, (3, 1)), [17]),
        (lambda a: -np.negative(x) + 0 * a, [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_and_numpys_operators_make_functions(apply: Callable[[Any], Any], expected: Any, dtype: Any) -> None:
    result = apply(np.array([1, 2, 4], dtype))
    assert isinstance(result, C.Function)
    np.testing.assert_allclose(result.eval({x: np.float32([[1, 2, 3]])})[0], expected)


def test_adding_to_an_array_in_place() -> None:
    total: Any = np.ones(3)
    total += x
    assert total.eval([[1, 2, 3]]).tolist() == [[2, 3, 4]]


@pytest.mark.parametrize(
    ("power", "expected"), [(lambda v: v**2, [4, 1, 9]), (lambda v: 2**v, [0.25, 2, 8]), (lambda v: v**v, [0.25, 1, 27])]
)
def test_powers(power: Callable[[Any], Any], expected: Any) -> None:
    np.testing.assert_allclose(power(x).eval({x: [[-2, 1, 3]]})[0], expected, rtol=1e-6)


@pytest.mark.parametrize("value", [x, f, W])
def test_parts_are_not_assigned(value: Any) -> None:
    with pytest.raises(TypeError, match=r"cannot be changed in places; parameter\.value = array"):
        value[0] = 1
