"""Values and views: what they make of data, what they show, and how long they last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix

import cntk as C
from cntk.core.values.feed import feed


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def csr(*rows: Any) -> Any:
    return csr_matrix(np.array(rows, np.float32))


def of(axes: int, shape: Any = 2, **options: Any) -> Any:
    """An input with so many dynamic axes."""
    return C.input_variable(shape, dynamic_axes=C.Axis.default_input_variable_dynamic_axes()[:axes], name="x", **options)


# ---- from data to values; the shapes are those of CNTK 2.7 ----


@pytest.mark.parametrize(
    ("axes", "data", "shape", "sequences"),
    [
        (2, [ones(3, 2), ones(1, 2)], (2, 3, 2), [(3, 2), (1, 2)]),
        (2, [[ones(2)], [ones(2), ones(2)]], (2, 2, 2), [(1, 2), (2, 2)]),
        (2, [ones(2), ones(2)], (2, 1, 2), [(1, 2), (1, 2)]),
        (2, ones(2), (2,), [(), ()]),
        (2, ones(3, 2), (3, 2), [(2,), (2,), (2,)]),
        (2, ones(4, 3, 2), (4, 3, 2), [(3, 2)] * 4),
        (1, [ones(2)], (1, 1, 2), [(1, 2)]),
        (1, ones(3, 2), (3, 2), [(2,), (2,), (2,)]),
        (0, [ones(2), ones(2)], (2, 2), [(2,), (2,)]),
        (0, ones(2), (2,), [(), ()]),
        (2, [csr([1, 0], [0, 2]), csr([0, 3])], (2, 2, 2), [(2, 2), (1, 2)]),
        (2, csr([1, 0], [0, 2]), (2, 2), [(2, 2)]),
        (1, csr([1, 0], [0, 2]), (2, 2), [(2, 2)]),
        (0, csr([1, 0]), (1, 2), [(1, 2)]),
    ],
)
def test_the_shape_of_a_value_and_of_its_sequences(axes: int, data: Any, shape: Any, sequences: Any) -> None:
    x = of(axes, is_sparse=isinstance(data, csr_matrix) or isinstance(data[0], csr_matrix)) if axes else of(0)
    value = C.asvalue(x, data)
    assert value.shape == shape
    assert [np.shape(part) for part in value.as_sequences(x)] == sequences


@pytest.mark.parametrize(
    ("axes", "data", "message"),
    [
        (2, [], "the minibatch is empty"),
        (2, [ones(3, 2), ones(0, 2)], r"takes sequences of shape \('steps', 2\), got \(0, 2\) at position 1"),
        (2, [ones(3, 4)], r"got \(3, 4\) at position 0"),
        (2, ones(3, 4), r"static shape \(2,\), with which data of shape \(3, 4\) does not end"),
        (2, [ones(3, 2), csr([1, 0])], "takes a list of CSR matrices, got ndarray at position 0"),
        (2, [csr([1, 0, 0])], r"takes CSR rows 2 wide, got a matrix of shape \(1, 3\) at position 0"),
        (1, csr([1, 0, 0]), r"data of shape \(1, 3\) does not end"),
        (0, [[ones(2)], [ones(2), ones(2)]], "cannot make an array"),
        (0, [csr([1, 0])], "cannot make an array"),
        (1, 1, "got the number 1"),
        (1, np.array([["a", "b"]]), "got dtype <U1"),
    ],
)
def test_data_that_makes_no_value(axes: int, data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        C.Value.create(of(axes), data)
    assert "Input('x'" in str(caught.value)


def test_a_value_is_for_a_variable() -> None:
    with pytest.raises(TypeError, match="expected the variable that the data is for, got int 2"):
        C.Value.create(2, ones(2))  # type: ignore[arg-type]


def test_lists_for_the_batch_axis_alone_and_other_types_warn() -> None:
    with pytest.warns(UserWarning, match="a list of 2 samples"):
        C.Value.create(of(1), [ones(2), ones(2)])
    with pytest.warns(UserWarning, match="given int64 data"):
        assert C.Value.create(of(2), [np.ones((3, 2), np.int64)]).dtype == np.float32
    with pytest.warns(RuntimeWarning, match="position 0 is not C-contiguous"):
        C.Value.create(of(2, (2, 3)), [ones(3, 2).T])


@pytest.mark.parametrize(
    ("data", "starts", "mask"),
    [
        ([ones(3, 2), ones(1, 2)], None, [[2, 1, 1], [2, 0, 0]]),
        ([ones(3, 2), ones(1, 2)], [True, False], [[2, 1, 1], [1, 0, 0]]),
        ([ones(1, 2), ones(1, 2)], [True, False], [[2], [1]]),
        (ones(2, 2), [False, True], [[1], [2]]),
    ],
)
def test_masks_tell_sequences_and_those_that_continue(data: Any, starts: Any, mask: Any) -> None:
    given = C.Value.create(of(2), data, starts).mask
    assert_array_equal(given, mask)
    assert given.dtype == np.int8


def test_there_is_no_mask_without_padding() -> None:
    with pytest.raises(AttributeError, match="none of its sequences is padded"):
        assert C.Value.create(of(2), [ones(3, 2), ones(3, 2)]).mask


@pytest.mark.parametrize(
    ("axes", "data", "message"),
    [
        (1, ones(2, 2), "has no sequence axis"),
        (2, [ones(3, 2)], "1 sequences are given, but 2 flags"),
        (2, csr([1, 0], [0, 1]), "go with a list or an array, got csr_matrix"),
        (2, C.Value.one_hot([[0, 1], [1]], 2), "go with a list or an array, got Value"),
    ],
)
def test_flags_that_do_not_go_with_the_data(axes: int, data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        C.Value.create(of(axes), data, [True, False])


def test_which_sequences_continue_reaches_the_program() -> None:
    x, data = of(2), [ones(3, 2), ones(1, 2)]
    assert feed(x, data).continues is None
    assert feed(x, (data, [True, False])).continues.tolist() == [-1, 1]
    assert feed(x, C.Value.create(x, data, [False, True])).continues.tolist() == [0, -1]
    fed = feed(x, (ones(4, 2), [True] * 4))
    assert fed.layout is not None
    assert fed.layout.lengths.tolist() == [1, 1, 1, 1]  # type: ignore[union-attr]


def test_views_of_sparse_sequences() -> None:
    first = C.NDArrayView.from_csr(csr([0, 1, 1], [0, 1, 0], [1, 0, 0], [1, 0, 1]), shape=(2, 2, 3))
    second = C.NDArrayView.from_csr(csr([0, 1, 1], [1, 1, 0]), shape=(1, 2, 3))
    value = C.Value.create(of(2, (2, 3)), [first, second])
    assert value.is_sparse
    expected = [[[[0, 1, 1], [0, 1, 0]], [[1, 0, 0], [1, 0, 1]]], [[[0, 1, 1], [1, 1, 0]], [[0, 0, 0], [0, 0, 0]]]]
    with pytest.warns(UserWarning, match="ignores the mask"):
        assert_array_equal(value.asarray(), expected)
    assert_array_equal(value.data.asarray(), expected)


def test_views_are_data() -> None:
    x = of(1)
    view = C.NDArrayView.from_dense(ones(3, 2))
    assert_array_equal((x * 2).eval({x: view}), 2 * ones(3, 2))
    assert_array_equal((x * 2).eval({x: C.NDArrayView.from_dense(ones(2))}), 2 * ones(1, 2))
    s = of(1, 3, is_sparse=True)
    eye = np.eye(3, dtype=np.float32)
    assert_array_equal(C.times(s, eye).eval({s: C.NDArrayView.from_csr(csr_matrix(eye))}), eye)


@pytest.mark.parametrize("index", [3, 7, -1])
@pytest.mark.parametrize("axes", [1, 2])
def test_indices_outside_a_sparse_row_are_refused(axes: int, index: int) -> None:
    matrix = csr([1, 0, 0], [0, 1, 0])
    matrix.indices[1] = index
    x = of(axes, 3, is_sparse=True)
    f = C.times(x, np.eye(3, dtype=np.float32))
    for data in (matrix, [matrix]) if axes == 2 else (matrix,):
        with pytest.raises(ValueError, match=r"Input\('x'.*indices of a CSR matrix must lie in 0 … 2"):
            f.eval({x: data})


# ---- what values and views show ----


def test_an_engine_object_s_methods_are_there() -> None:
    value = C.Value(csr([1, 0], [0, 2]))
    for held in (value, value.data):
        assert isinstance(held, C.tensor.ArrayMixin)
        assert held.get_data_type() == C.cntk_py.DataType_Float
        assert_array_equal(held.asarray().toarray(), [[1, 0], [0, 2]])
    assert_array_equal(super(C.Value, value).asarray().toarray(), [[1, 0], [0, 2]])
    assert C.input_variable(1, np.float64).get_data_type() == C.cntk_py.DataType_Double
    assert C.placeholder().get_data_type() == C.cntk_py.DataType_Unknown
    assert_array_equal(C.parameter(2, init=3).asarray(), [3, 3])


def test_a_read_only_value_refuses_changes() -> None:
    value = C.Value.create(of(1), ones(3, 2), read_only=True)
    assert value.is_read_only
    with pytest.raises(ValueError, match="read-only"):
        value.data.copy_from(ones(3, 2))


@pytest.mark.parametrize("kind", [np.array, lambda held: C.NDArrayView.from_dense(np.array(held))])
def test_a_parameter_without_axes_takes_one_number(kind: Any) -> None:
    p = C.parameter(())
    for held in (np.float32(2), np.full(1, 3, np.float32), np.full((1, 1), 4, np.float32)):
        p.set_value(kind(held))
        assert p.value == held.item()
    with pytest.raises(RuntimeError, match=r"expected an array of shape \(\), got \(2,\)"):
        p.value = ones(2)
    with pytest.raises(RuntimeError, match=r"expected an array of shape \(1,\), got \(\)"):
        C.parameter(1).value = np.float32(1)


# ---- how long results last ----


def test_a_value_lasts_until_its_function_is_evaluated_again() -> None:
    x = of(1, needs_gradient=True)
    f, g = x * 2, x * 3
    first = f.eval({x: ones(1, 2)}, as_numpy=False)
    g.eval({x: ones(1, 2)}, as_numpy=False)
    copied = first.deep_clone()
    assert first.is_valid
    f.eval({x: ones(3, 2)})
    assert not first.is_valid
    assert copied.is_valid
    for access in (first.asarray, first.as_sequences, first.deep_clone, lambda: first.data, lambda: g.eval({x: first})):
        with pytest.raises(RuntimeError, match=r"Value\(\[1 x 2\], CPU\) was a function's result, which lasts until"):
            access()
    assert_array_equal(copied.asarray(), 2 * ones(1, 2))


def test_gradients_and_values_of_one_call_last_as_long() -> None:
    x = of(1, needs_gradient=True)
    f = x * x
    gradient, value = f.grad({x: ones(1, 2)}, wrt=[x], outputs=[f], as_numpy=False)
    assert gradient.is_valid
    assert value.is_valid
    f.grad({x: ones(1, 2)}, wrt=[x])
    assert not gradient.is_valid
    assert not value.is_valid


# ---- results by function, and of which functions ----


def test_results_are_found_by_function_and_by_variable() -> None:
    x = of(1, needs_gradient=True)
    f, other = x * 2, x * 3
    values = f.forward({x: ones(1, 2)}, [f])[1]
    assert values[f] is values[f.output]
    assert f in values
    assert values.get(f) is values[f.output]
    assert other not in values
    assert values.get(other, "none") == "none"
    with pytest.raises(KeyError):
        values[other]


@pytest.mark.parametrize("outputs", ["on top", "beside", "input"])
def test_only_what_is_in_the_graph_can_be_asked_for(outputs: str) -> None:
    x, y = of(1), C.input_variable(2, name="y")
    f = C.layers.Dense(2, init=1)(x) + y
    wanted = {"on top": f + 1, "beside": x + 1, "input": C.input_variable(2)}[outputs]
    with pytest.raises(ValueError, match=r"is not part of .*; evaluate the function it comes from"):
        f.eval({x: ones(1, 2), y: ones(1, 2)}, outputs=[wanted])


def test_inner_outputs_of_blocks_can_be_asked_for() -> None:
    x = of(1)
    f = C.layers.Dense(3, init=1, activation=C.relu)(x)
    inner = C.logging.find_all_with_name(f, "", -1)
    times = next(node for node in inner if getattr(node, "op_name", "") == "Times")
    assert_array_equal(f.eval({x: ones(1, 2)}, outputs=[times.output]), [[2, 2, 2]])


def test_a_function_keeps_few_programs() -> None:
    x = of(1)
    nodes = [x + 0]
    for _ in range(100):
        nodes.append(nodes[-1] + 1)
    f = nodes[-1]
    for number, node in enumerate(nodes):
        assert_array_equal(f.eval({x: ones(1, 2)}, outputs=[node]), (1 + number) * ones(1, 2))
        assert_array_equal(f.eval({x: ones(1, 2)}), 101 * ones(1, 2))
        programs = f.__dict__["_programs"]
        assert len(programs) <= 32
        assert any(f.output in key[0] for key in programs)


def test_binding_placeholders_elsewhere_leaves_programs_alone() -> None:
    x = of(1)
    f = x + 1
    f.eval({x: ones(1, 2)})
    (before,) = f.__dict__["_programs"].values()
    C.relu(C.placeholder()).replace_placeholder(x)
    f.eval({x: ones(1, 2)})
    (after,) = f.__dict__["_programs"].values()
    assert after is before


# ---- printing ----


@pytest.mark.parametrize("member", [C.device.DeviceKind.CPU, C.logging.TraceLevel.Info, C.train.DataUnit.sweep])
def test_enumerations_print_with_their_names(member: Any) -> None:
    assert str(member) == f"{type(member).__name__}.{member.name}"
    assert member == member.value


def test_a_string_instead_of_a_shape_names_a_placeholder() -> None:
    assert repr(C.placeholder("p")) == "Placeholder('p', [???], [???])"


def test_a_missing_gpu_is_answered_with_the_line_that_asked() -> None:
    with pytest.raises(ValueError, match=r"gpu\(99999\)[^\n]*\n\[CALL STACK\]\n.*test_value.py:\d+"):
        C.device.gpu(99999)


def test_values_without_axes_have_the_shape_of_a_number() -> None:
    x = C.sequence.input_variable(2)
    total = C.reduce_sum(x, axis=C.Axis.all_axes())
    value = total.eval({x: np.ones((2, 3, 2), np.float32)}, as_numpy=False)
    assert value.shape == value.asarray().shape == ()
    assert value.asarray() == 12
    _, values = total.forward({x: np.ones((2, 3, 2), np.float32)}, [total.output], {total.output}, as_numpy=False)
    assert values[total.output].shape == ()
    assert C.Value(np.array(3, np.float32)).shape == ()
