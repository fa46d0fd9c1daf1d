"""Converters of cntk.internal; what they give was measured on CNTK 2.7, but for the messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix

import cntk as C
from cntk import internal
from cntk.internal import utils

FLOAT, DOUBLE, HALF = C.cntk_py.DataType_Float, C.cntk_py.DataType_Double, C.cntk_py.DataType_Float16
BATCH, SEQUENCE = C.Axis.default_batch_axis(), C.Axis.default_dynamic_axis()


# ---- element types ----


@pytest.mark.parametrize(
    ("given", "dtype", "number"),
    [
        ("float", np.float32, FLOAT),
        ("float32", np.float32, FLOAT),
        (np.float32, np.float32, FLOAT),
        (int, np.float32, FLOAT),
        (float, np.float64, DOUBLE),
        ("double", np.float64, DOUBLE),
        (np.dtype(np.float64), np.float64, DOUBLE),
        ("float16", np.float16, HALF),
        (np.float16, np.float16, HALF),
        ("bfloat16", C.bfloat16, C.cntk_py.DataType_BFloat16),
        (C.bfloat16, C.bfloat16, C.cntk_py.DataType_BFloat16),
        ("int8", np.int8, C.cntk_py.DataType_Int8),
        (np.int16, np.int16, C.cntk_py.DataType_Int16),
        (np.dtype(np.int64), np.float32, FLOAT),
    ],
)
def test_element_types_are_told_by_any_name(given: Any, dtype: Any, number: int) -> None:
    assert internal.sanitize_dtype_numpy(given) is dtype
    assert internal.sanitize_dtype_cntk(given) == number
    assert internal.sanitize_dtype_cntk(number) == number
    assert internal.data_type_to_dtype(number) is dtype


@pytest.mark.parametrize("given", [np.int32, "int64", "text", np.complex64, None, bool])
def test_what_is_no_element_type(given: Any) -> None:
    with pytest.raises(ValueError, match="not supported"):
        internal.sanitize_dtype_numpy(given)


def test_the_numbers_are_those_of_the_engine_and_serve_as_types() -> None:
    assert (FLOAT, DOUBLE, HALF, C.cntk_py.DataType_Unknown) == (1, 2, 4, 0)
    assert internal.sanitize_dtype_cntk(None) == C.cntk_py.DataType_Unknown
    assert internal.data_type_to_dtype(0) is object
    with pytest.raises(ValueError, match="data_type 3 has no NumPy type"):
        internal.data_type_to_dtype(3)
    for number, dtype in ((FLOAT, np.float32), (DOUBLE, np.float64), (HALF, np.float16), (C.cntk_py.DataType_BFloat16, C.bfloat16)):
        assert C.input_variable(1, dtype=number).dtype is dtype
        assert C.parameter(1, dtype=number).value.dtype == dtype


@pytest.mark.parametrize(
    ("given", "expected"),
    [(1, np.float32), ("double", np.float64), (np.float16, np.float16), ("int8_t", np.int8), (0, None)],
)
def test_precisions_are_told_by_name(given: Any, expected: Any) -> None:
    assert internal.sanitize_precision(given) is expected


def test_int_is_no_precision() -> None:
    with pytest.raises(ValueError, match="got int"):
        internal.sanitize_precision(int)


# ---- numbers, shapes, strings ----


def test_numbers_shapes_and_strings() -> None:
    assert internal.sanitize_shape(3) == (3,)
    assert internal.sanitize_shape([1, 2]) == (1, 2)
    assert internal._as_tuple("ab") == ("ab",)
    assert internal._as_tuple([1, 2]) == (1, 2)
    assert internal.sanitize_2d_number(3) == (3, 3)
    assert internal.sanitize_2d_number((1, 2.5)) == (1, 2.5)
    assert internal.sanitize_range((1, 2)) == (1, 2)
    assert internal.sanitize_random_args(3, None) == ((3,), FLOAT)
    assert internal.sanitize_random_args((1, 2), np.float64) == ((1, 2), DOUBLE)
    assert (internal.is_string("s"), internal.is_string(b"s")) == (True, False)
    assert (internal.is_byte_buffer("s"), internal.is_byte_buffer(b"s"), internal.is_byte_buffer(bytearray())) == (False, True, True)


@pytest.mark.parametrize("given", [(1, 2, 3), "a", (1, "a"), [1, 2], None])
def test_what_is_no_pair_of_numbers(given: Any) -> None:
    with pytest.raises(ValueError, match="expected a number or a tuple of two numbers"):
        internal.sanitize_2d_number(given)


def test_a_range_goes_upwards() -> None:
    with pytest.raises(ValueError, match="from the smaller to the larger"):
        internal.sanitize_range((2, 1))


# ---- operands ----


@pytest.mark.parametrize(
    ("data", "dtype"),
    [([1], np.float32), ([[1, 2]], np.float64), (2, np.float64), (np.array([1, 2], np.float32), np.float64), (np.arange(3), np.float32)],
)
def test_data_become_constants_of_the_fallback_type(data: Any, dtype: Any) -> None:
    constant = internal.sanitize_input(data, dtype)
    assert constant.is_constant
    assert (constant.dtype, constant.shape) == (dtype, np.shape(data))
    assert_array_equal(constant.value, data)


def test_variables_and_functions_stay() -> None:
    x = C.input_variable(2)
    f = x + 1
    assert internal.sanitize_input(x) is x
    assert internal.sanitize_input(f) is f
    assert internal.sanitize_variable_or_function(f) is f
    assert internal.sanitize_variables_or_functions(f) == [f]
    assert internal.sanitize_variables_or_functions([x, f]) == [x, f]
    assert internal.sanitize_function(f) is f
    assert internal.sanitize_function(x).outputs[0].shape == (2,)


def test_reshaped_and_held_data() -> None:
    assert internal.sanitize_input([1, 2, 3, 4], reshape=(2, 2)).shape == (2, 2)
    assert_array_equal(internal.sanitize_input(C.NDArrayView.from_dense(np.ones(2, np.float32))).value, [1, 1])


def test_what_is_no_operand() -> None:
    with pytest.raises(ValueError, match="empty list"):
        internal.sanitize_input([])
    with pytest.raises(ValueError, match=r"type object, Tensor\[2\]; did you mean"):
        internal.sanitize_input(C.layers.typing.Tensor[2])
    for call in (internal.sanitize_function, internal.sanitize_variable_or_function, internal.sanitize_variables_or_functions):
        with pytest.raises(TypeError, match="got int 3"):
            call(3)
    with pytest.raises(TypeError, match="got int 1"):
        internal.sanitize_variables_or_functions([C.input_variable(1), 1])


@pytest.mark.parametrize(
    ("shape", "value", "expected"),
    [((2,), 3, [3, 3]), (None, [1, 2], [1, 2]), ((), 4, 4), ((2, 1), np.array([[5], [6]]), [[5], [6]])],
)
def test_values_become_views(shape: Any, value: Any, expected: Any) -> None:
    view = internal.sanitize_value(shape, value, np.float64, None)
    assert view.dtype == np.float64
    assert view.shape == np.shape(expected)
    assert_array_equal(view.asarray(), expected)


def test_a_view_needs_shape_or_value() -> None:
    assert internal.sanitize_value((2, 3), None, np.float32, C.cpu()).shape == (2, 3)
    with pytest.raises(ValueError, match="give a shape, a value or both"):
        internal.sanitize_value(None, None, np.float32, None)


def test_one_value_of_a_dictionary() -> None:
    assert internal.sanitize_variable_value_dict({"a": 1}) == 1
    assert internal.sanitize_variable_value_dict({"a": 1, "b": 2}) == {"a": 1, "b": 2}


# ---- data ----

S = C.sequence.input_variable(2, name="s")
STEPS = [np.ones((2, 2), np.float32), np.ones((1, 2), np.float32)]


def test_batches() -> None:
    assert internal.sanitize_batch(S, STEPS).shape == (2, 2, 2)
    assert_array_equal(internal.sanitize_batch(S, STEPS, [True, False]).mask, [[2, 1], [1, 0]])
    sparse = C.sequence.input_variable(3, is_sparse=True)
    assert internal.sanitize_batch(sparse, [csr_matrix([[1, 0, 2], [2, 3, 0]], dtype=np.float32)] * 2).shape == (2, 2, 3)


@pytest.mark.parametrize("arguments", [STEPS, {S: STEPS}, {"s": STEPS}, (STEPS, [True, True]), {S: (STEPS, [True, True])}])
def test_data_by_variable(arguments: Any) -> None:
    found = internal.sanitize_var_map([S], arguments, precision="float")
    assert list(found) == [S]
    assert isinstance(found[S], C.Value)
    assert_array_equal(found[S].mask, [[2, 1], [2, 0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expects 2 arguments, got none"),
        (None, "expects 2 arguments, got none"),
        (STEPS, "has 2 inputs, so data must come as a dictionary"),
        ({"q": STEPS}, "no input has the name 'q'"),
        (({S: (STEPS, [True, True])}, [True, True]), "for all inputs and for one of them"),
        ({S: (STEPS, [True])}, "2 sequences are given, but 1 flags"),
    ],
)
def test_data_that_cannot_be_told_apart(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        internal.sanitize_var_map([S, C.input_variable(1)], arguments)


def test_no_data_for_no_inputs() -> None:
    assert internal.sanitize_var_map([], None) == {}


class Minibatch:
    """What readers deliver."""

    value_to_feed = STEPS


def test_minibatch_data_may_stay() -> None:
    data = Minibatch()
    assert internal.sanitize_var_map([S], {S: data}, extract_values_from_minibatch_data=False)[S] is data
    assert internal.sanitize_var_map([S], {S: data})[S].shape == (2, 2, 2)


def test_sequences_or_array_of_a_value() -> None:
    value = C.Value.create(S, STEPS)
    assert [part.shape for part in internal._value_as_sequence(value, S)] == [(2, 2), (1, 2)]
    assert [part.shape for part in internal._value_as_sequence_or_array(value, S)] == [(2, 2), (1, 2)]
    plain = C.input_variable(2)
    assert internal._value_as_sequence_or_array(C.Value.create(plain, np.ones((3, 2), np.float32)), plain).shape == (3, 2)


# ---- axes ----


def test_axes_count_from_the_last() -> None:
    found = internal.sanitize_axis_list([0, -1, None, C.Axis(1), BATCH])
    assert found == [C.Axis(-1), C.Axis(0), C.Axis.all_static_axes(), C.Axis(-2), BATCH]
    assert internal.sanitize_axis(C.Axis.new_leading_axis()) == C.Axis.new_leading_axis()
    assert internal.sanitize_axis_list(0) == [C.Axis(-1)]
    assert internal.sanitize_multi_axis_reduction_list([0, BATCH]) == [C.Axis(-1), BATCH]
    with pytest.raises(ValueError, match="cannot contain the sequence axis"):
        internal.sanitize_multi_axis_reduction_list([0, SEQUENCE])


def test_dynamic_axes_are_turned_round() -> None:
    assert internal.sanitize_dynamic_axes([BATCH, SEQUENCE]) == (SEQUENCE, BATCH)
    assert internal.sanitize_dynamic_axes(BATCH) == (BATCH,)
    with pytest.raises(TypeError, match="must be Axis objects, got int 1"):
        internal.sanitize_dynamic_axes([1])


def test_permutations_are_turned_round_and_checked() -> None:
    assert internal.sanitize_permutation([3, 0, 2, 1]) == [2, 1, 3, 0]
    assert internal.sanitize_permutation([-1, 0]) == internal.sanitize_permutation([1, 0])
    for wrong in ([0, 0], [0, 2], [-3, 0]):
        with pytest.raises(ValueError, match="is not a permutation of 2 axes"):
            internal.sanitize_permutation(wrong)


def test_flags_per_axis_are_turned_round() -> None:
    assert internal.sanitize_pooling_args(2, (1, 1), [True, False]) == ((2,), (1, 1), [False, True])
    assert internal.sanitize_convolution_args(1, [True, False], [False, True]) == ((1,), [False, True], [True, False])
    attributes = {"sharing": [True, False], "autoPadding": [False, True], "strides": (1, 2)}
    assert internal.sanitize_Function_attributes(attributes) is attributes
    assert attributes == {"sharing": [False, True], "autoPadding": [True, False], "strides": (1, 2)}


# ---- the rest ----


def test_bounded_cache() -> None:
    calls = []

    @internal.bounded_cache(maxsize=2)
    def double(x: int) -> int:
        calls.append(x)
        return 2 * x

    assert [double(x) for x in (1, 2, 1, 2)] == [2, 4, 2, 4]
    assert calls == [1, 2]
    assert [double(x) for x in (3, 3, 1)] == [6, 6, 2]
    assert calls == [1, 2, 3, 1]


def test_typemap_hands_on() -> None:
    p = C.parameter(1)

    @internal.typemap
    def pair() -> Any:
        return "name", p

    assert pair() == ("name", p)
    internal.map_if_possible(p)


def test_data_types_of_several() -> None:
    p32, p64, pl = C.parameter(1), C.parameter(1, dtype=np.float64), C.placeholder()
    n16, n32, n64 = (np.ones(1, dtype) for dtype in (np.float16, np.float32, np.float64))
    for given, expected in (
        ((p32,), np.float32),
        ((p32, n64), np.float32),
        ((p64, n32), np.float64),
        ((p32, p64), np.float64),
        ((n32, n64), np.float64),
        ((n16,), np.float16),
        ((pl, n64), np.float64),
        ((pl, pl), None),
        ((np.float64(1),), np.float64),
        ((np.int64(1),), np.float32),
        ((1.0,), np.float32),
        (([1, 2],), np.float32),
        ((p64 + 1,), np.float64),
        ((C.Value(n64),), np.float64),
    ):
        assert utils.get_data_type(*given) is expected
    with pytest.raises(ValueError, match="int64 is not supported"):
        utils.get_data_type(np.ones(1, np.int64))
    with pytest.raises(ValueError, match="expected a function of one output"):
        utils.get_data_type(C.combine([p32 + 1, p32 + 2]))


def test_arguments_of_python_functions() -> None:
    def f(a: int, b, *more, c=1, name="") -> None:  # type: ignore[no-untyped-def]
        """Has all kinds of arguments."""

    assert utils.get_python_function_arguments(f) == (["a", "b"], f.__annotations__)
    assert utils.get_python_function_arguments(lambda a, b=1: a) == (["a"], {})


def test_arguments_are_matched_as_python_does() -> None:
    by_name = {"a": 1, "b": 2}
    assert utils.map_function_arguments([1, 2], by_name, "x", b="y") == {1: "x", 2: "y"}
    for error, args, kwargs in (
        (TypeError, ("x",), {"q": 1}),
        (SyntaxError, ("x", "y"), {"a": 1}),
        (TypeError, ("x",), {}),
        (TypeError, ("x", "y", "z"), {}),
    ):
        with pytest.raises(error):
            utils.map_function_arguments([1, 2], by_name, *args, **kwargs)


def test_evaluating_in_one_call() -> None:
    x = C.input_variable(2, needs_gradient=True)
    f, data = x * x, np.array([[1, 2]], np.float32)
    values, gradients = utils.eval(f, {x: data}, "float", backward_pass=True)
    assert_array_equal(values[f], [[1, 4]])
    assert gradients is not None
    assert_array_equal(gradients[x], [[2, 4]])
    assert utils.eval(f, {x: data})[1] is None


def test_dictionaries_of_the_engine() -> None:
    made = utils._py_dict_to_cntk_dict({"a": [1, 2], "n": np.ones((2, 2), np.float32), "d": {"q": 1}})
    assert isinstance(made, C.cntk_py.Dictionary)
    assert (made["a"], made["d"], made["missing"], made.size()) == ([1, 2], {"q": 1}, None, 3)
    assert (made.contains("a"), made.contains("b")) == (True, False)
    made["b"] = utils._to_cntk_dict_value(True)
    assert made["b"] is True
    with pytest.raises(TypeError, match="keys are strings"):
        made[1] = 2  # type: ignore[index]


@pytest.mark.parametrize("value", [1, 2.5, True, "s", [1, "a"], {"a": {"b": [1]}}, np.arange(6, dtype=np.int8).reshape(2, 3)])
def test_values_of_dictionaries_compare(value: Any) -> None:
    held = C._to_cntk_dict_value(value)
    assert held.has_value()
    assert held == C._to_cntk_dict_value(value)
    for other in (7, "other", None, np.arange(6).reshape(2, 3)):
        assert held != C._to_cntk_dict_value(other)


def test_classes_of_the_engine() -> None:
    made = C.cntk_py.Parameter((1, 2), FLOAT, 5.0)
    assert type(made) is C.variables.Parameter
    assert_array_equal(made.value, [[5, 5]])
    assert isinstance(made, C.cntk_py.Parameter)
    assert not isinstance(C.constant(1), C.cntk_py.Parameter)
    assert issubclass(C.Parameter, C.cntk_py.Parameter)
    fixed = C.cntk_py.Constant((2,), DOUBLE, 3)
    assert_array_equal(fixed.value, [3, 3])
    assert (fixed.dtype, isinstance(fixed, C.cntk_py.Constant)) == (np.float64, True)


def test_switches_of_the_engine() -> None:
    assert C.cntk_py.get_max_num_cputhreads() >= 1
    C.cntk_py.set_max_num_cputhreads(3)
    assert C.cntk_py.get_max_num_cputhreads() == 3
    assert C.cntk_py.is_native_user_function_registered("op") is False
    for switch in ("set_computation_network_trace_level", "use_sparse_gradient_aggregation_in_data_parallel_sgd", "print_built_info"):
        assert getattr(C.cntk_py, switch)(*[1] * ("print" not in switch)) is None
