"""Stand-ins for operators of another engine, and operators of two operands made ones of many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C


def test_a_stand_in_has_the_type_it_is_given() -> None:
    x, one, other = C.input_variable((1, 42), np.float64), C.Parameter((1, 42)), C.Parameter((3,))
    proxy = C.custom_proxy_op("times", (21, 2), np.int8, x, one, other, name="proxy")
    assert proxy.shape == (21, 2)
    assert proxy.output.dtype == np.int8
    assert proxy.dynamic_axes == x.dynamic_axes
    assert proxy.name == "proxy"
    assert proxy.inputs == (x, one, other)
    assert proxy.root_function.op_name == "CustomProxyOp"
    assert proxy.root_function.attributes == {"customOp": "times", "outputShape": (21, 2), "newDataType": C.cntk_py.DataType_Int8}


def test_operands_may_come_as_a_list_and_with_several_results() -> None:
    x, y = C.input_variable(2), C.input_variable(3)
    both = C.combine([x + 1, y + 1])
    proxy = C.custom_proxy_op("f", 2, np.float32, [x, both])
    assert [v.shape for v in proxy.root_function.inputs] == [(2,), (2,), (3,)]
    assert (proxy + x).shape == (2,)
    assert C.custom_proxy_op("f", 2, np.float32, C.Parameter(2)).dynamic_axes == ()


def test_a_stand_in_can_be_cloned_but_not_evaluated() -> None:
    x = C.input_variable(2)
    proxy = C.custom_proxy_op("f", 2, np.float32, x).clone("share")
    with pytest.raises(RuntimeError, match="'f' is an operator of another engine"):
        proxy.eval(np.ones((1, 2), np.float32))


@pytest.mark.parametrize("dtype", [np.int32, "text"])
def test_other_element_types_are_refused(dtype: Any) -> None:
    with pytest.raises(ValueError, match="is not supported"):
        C.custom_proxy_op("f", 2, dtype, C.Parameter(2))


def test_operands_are_combined_by_a_balanced_tree() -> None:
    made = []

    @C.associative_multi_arg
    def joined(left: Any, right: Any, name: str = "") -> Any:
        """Text."""
        made.append((left, right, name))
        return left + right

    assert joined.__name__ == "joined"
    assert joined.__doc__ == "Text."
    assert joined((1,), (2,)) == (1, 2)
    made.clear()
    assert joined((1,), (2,), (3,), (4,), (5,), name="all") == (1, 2, 3, 4, 5)
    assert made == [((1,), (2,), ""), ((4,), (5,), ""), ((3,), (4, 5), ""), ((1, 2), (3, 4, 5), "all")]


def test_a_last_operand_that_is_a_string_is_the_name() -> None:
    total = C.associative_multi_arg(lambda left, right, name="": C.plus(left, right, name))
    named = total([1], [2], [3], "total")
    assert named.name == "total"
    np.testing.assert_array_equal(named.eval(), [6])
    assert total([1], [2], "pair").name == "pair"
