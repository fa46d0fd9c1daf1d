"""Default options: which value wins, and for whom."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import cntk as C
from cntk.core.common.options import option
from cntk.default_options import (
    default_options,
    default_options_for,
    default_override_or,
    get_default_override,
    get_global_option,
    is_default_override,
    set_global_option,
)


def layer(size: Any = default_override_or(13)) -> Any:
    return get_default_override(layer, size=size)


def other() -> None: ...


def test_default_is_the_one_of_the_signature() -> None:
    assert layer() == 13
    assert layer(42) == 42


def test_innermost_scope_wins_and_an_argument_beats_all() -> None:
    with default_options(size=1):
        assert layer() == 1
        assert layer(size=2) == 2
        with default_options_for(layer, size=3):
            assert layer() == 3
            assert layer(size=4) == 4
        assert layer() == 1
    assert layer() == 13


def test_options_for_other_functions_do_not_matter() -> None:
    with default_options_for(other, size=1):
        assert layer() == 13
    with default_options_for([other, layer], size=1):
        assert layer() == 1


def test_none_is_a_value() -> None:
    with default_options(size=None):
        assert layer() is None


def test_lookup_without_a_function_sees_every_scope() -> None:
    with default_options_for(layer, dtype="here"):
        assert get_default_override(None, dtype=default_override_or("default")) == "here"
        assert option("dtype", "default") == "here"
    assert option("dtype", "default") == "default"


def test_scope_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), default_options(size=1):
        raise KeyError
    assert layer() == 13


def test_scope_can_be_entered_again_inside_itself() -> None:
    options = default_options(size=1)
    with options, default_options(size=2), options:
        assert layer() == 1
    assert layer() == 13


def test_scope_belongs_to_its_thread() -> None:
    seen: list[Any] = []
    with default_options(size=1):
        thread = threading.Thread(target=lambda: seen.append(layer()))
        thread.start()
        thread.join()
    assert seen == [13]


def test_scope_belongs_to_its_task() -> None:
    async def build(size: int) -> Any:
        with default_options(size=size):
            await asyncio.sleep(0)
            return layer()

    async def build_all() -> list[Any]:
        return await asyncio.gather(*(build(size) for size in range(5)))

    assert asyncio.run(build_all()) == [0, 1, 2, 3, 4]


def test_class_asks_for_an_argument_of_its_constructor() -> None:
    class Thing:
        def __init__(self, size: Any = default_override_or(1)) -> None:
            self.size = get_default_override(Thing, size=size)

    with default_options_for(Thing, size=2):
        assert Thing().size == 2


@pytest.mark.parametrize("name", ["_scope", "_outer"])
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        default_options(**{name: 1})


def test_exactly_one_argument_is_resolved() -> None:
    with pytest.raises(TypeError, match="one keyword argument"):
        get_default_override(layer, size=1, shape=2)
    with pytest.raises(TypeError, match="one keyword argument"):
        get_default_override(layer)


def test_argument_must_be_one_of_the_function() -> None:
    with pytest.raises(TypeError, match="no argument 'shape'"):
        get_default_override(layer, shape=1)
    with pytest.raises(ValueError, match="Python function or class"):
        get_default_override("layer", size=1)


def test_marker_is_recognised() -> None:
    assert is_default_override(default_override_or(1))
    assert not is_default_override(1)
    assert repr(default_override_or(1)) == "1"


def test_global_option_keeps_its_value() -> None:
    assert get_global_option("test_option", "default") == "default"
    set_global_option("test_option", "set")
    assert get_global_option("test_option", "default") == "set"


@pytest.fixture
def global_option() -> Iterator[Callable[..., None]]:
    before = {key: get_global_option(key, default) for key, default in (("align_axis", 0), ("python_operand_order", True))}
    yield set_global_option
    for key, value in before.items():
        set_global_option(key, value)


def test_aligned_indices_begin_with_the_dynamic_axes(global_option: Any) -> None:
    x, s, w = C.input_variable((3, 4)), C.sequence.input_variable((3, 4)), C.parameter((3, 4))
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert_array_equal(x[:, 1:2].eval(data), data[:, :, 1:2])
    global_option("align_axis", 1)
    assert_array_equal(x[:, 1:2].eval(data), data[:, 1:2])
    assert_array_equal(x[:, [0, 2], 3].eval(data), data[:, [0, 2], 3:4])
    assert_array_equal(x[..., 1:2].eval(data), data[:, :, 1:2])
    assert_array_equal(s[:, :, 1].eval(data)[0], data[:, 1:2])
    with default_options(axis_offset=1):
        assert_array_equal(s[:, 1].eval(data)[0], data[:, 1:2])
    assert w[1:2].shape == (1, 4)
    with default_options(axis_offset=1):
        assert w[1:2].shape == (1, 4)
    with pytest.raises(ValueError, match=r"with the option 'align_axis' axis 0 of Input\(.*\) is dynamic and takes ':' alone"):
        x[0]


def test_arguments_may_come_as_in_the_engine(global_option: Any) -> None:
    a, b, e = C.input_variable((3, 4), name="a"), C.input_variable((4, 5), name="b"), C.input_variable((3, 5), name="e")
    product = C.times(a, b)
    total = C.times(product + e, C.input_variable((5, 2), name="g"))
    declared = C.Function(lambda x, y: C.times(x, y))
    assert names(total) == ["a", "b", "e", "g"]
    global_option("python_operand_order", False)
    assert names(total) == ["g", "b", "a", "e"]
    assert names(product.root_function) == ["b", "a"]
    assert [v.name for v in product.inputs] == ["a", "b"]
    assert names(declared) == ["x", "y"]


def names(function: Any) -> list[str]:
    return [variable.name for variable in function.arguments]
