"""What functions take and give by name, and data on its way in and out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.eval.signature import Signature, TensorInfo

STEPS = [np.arange(6.0).reshape(3, 2), np.arange(2.0).reshape(1, 2)]


def everything() -> Signature:
    x, p = C.input_variable(3, name="x"), C.input_variable(5, is_sparse=True, name="p")
    s, ids = C.sequence.input_variable(2, name="s"), C.sequence.input_variable(7, is_sparse=True, name="ids")
    outputs = [
        C.layers.Dense(2, name="of_x")(x),
        C.layers.Dense(2, name="of_p")(p),
        C.layers.Recurrence(C.layers.GRU(4), name="of_s")(s),
        C.layers.Embedding(3, name="of_ids")(ids),
    ]
    return Signature(C.combine(outputs))


@pytest.fixture(scope="module")
def signature() -> Signature:
    return everything()


GIVEN = {"x": [[1, 2, 3], [4, 5, 6]], "p": [1, 4], "s": STEPS, "ids": [[3, 1, 0], [6]]}


def test_it_says_names_types_and_axes(signature: Signature) -> None:
    assert signature.input("ids") == TensorInfo("ids", np.dtype(np.float32), (7,), "sequence", True)
    assert signature.output("of_s").dims == ("batch", "sequence", 4)
    assert str(signature.input("p")) == "p [batch, 5] sparse float32"
    with pytest.raises(ValueError, match=r"no input 'q'; it has x \[batch, 3\] float32"):
        signature.input("q")


def test_free_dimensions_are_none() -> None:
    image = C.input_variable((3, C.FreeDimension, C.FreeDimension), name="image")
    signature = Signature(C.reduce_sum(image, axis=(0, 1, 2), name="sum"))
    assert signature.inputs[0].shape == (3, None, None)
    assert str(signature.inputs[0]) == "image [batch, 3, free, free] float32"
    assert signature.eval({"image": np.ones((2, 3, 4, 5))})["sum"].ravel().tolist() == [60, 60]
    with pytest.raises(ValueError, match=r"given float64 data of shape \(2, 60\)"):
        signature.eval({"image": np.ones((2, 60))})


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("x", np.array([[1, 2, 3], [4, 5, 6]], np.int8)),
        ("x", [np.array([1, 2, 3]), np.array([4, 5, 6])]),
        ("x", csr_matrix([[1.0, 2, 3], [4, 5, 6]])),
        ("p", np.eye(5)[[1, 4]]),
        ("p", csr_matrix(np.eye(5)[[1, 4]])),
        ("p", np.array([1, 4], np.uint8)),
        ("s", [part.tolist() for part in STEPS]),
        ("s", [part.ravel() for part in STEPS]),
        ("s", [csr_matrix(part) for part in STEPS]),
        ("ids", [np.eye(7)[[3, 1, 0]], np.eye(7)[[6]]]),
        ("ids", [csr_matrix(np.eye(7)[[3, 1, 0]]), csr_matrix(np.eye(7)[[6]])]),
    ],
)
def test_the_same_data_may_come_in_many_forms(signature: Signature, name: str, same: Any) -> None:
    expected, found = signature.eval(GIVEN), signature.eval({**GIVEN, name: same})
    for output in expected:
        np.testing.assert_array_equal(np.concatenate(found[output]), np.concatenate(expected[output]))


def test_lengths_tell_where_sequences_end(signature: Signature) -> None:
    expected = signature.eval(GIVEN)
    padded = np.full((2, 3, 2), 9.0)
    padded[0], padded[1, :1] = STEPS
    for s, ids in ((padded, [[3, 1, 0], [6, 5, 5]]), (np.concatenate(STEPS), np.array([3, 1, 0, 6]))):
        found = signature.eval({**GIVEN, "s": s, "ids": ids, "sequence_lengths": [3, 1]})
        for output in ("of_s", "of_ids"):
            np.testing.assert_array_equal(np.concatenate(found[output]), np.concatenate(expected[output]))


def test_results_are_padded(signature: Signature) -> None:
    results = signature.eval(GIVEN)
    padded = signature.padded(results)
    assert padded["sequence_lengths"].tolist() == [3, 1]
    assert padded["of_s"].shape == (2, 3, 4)
    np.testing.assert_array_equal(padded["of_s"][1, :1], results["of_s"][1])
    assert not padded["of_s"][1, 1:].any()
    assert padded["of_x"] is results["of_x"]


def test_padded_results_may_be_fed_again() -> None:
    s = C.sequence.input_variable(2, name="s")
    signature = Signature(C.alias(s, name="s"))
    found = signature.eval(signature.padded(signature.eval({"s": STEPS})))
    for one, other in zip(found["s"], STEPS, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3), (2, 3, 4)])
def test_shapes_and_types(shape: tuple[int, ...], dtype: Any) -> None:
    x = C.input_variable(shape, dtype=dtype, name="x")
    s = C.sequence.input_variable(shape, dtype=dtype, name="s")
    signature = Signature(C.combine([C.alias(x, name="a"), C.alias(s, name="b")]))
    random = np.random.default_rng(0)
    rows, steps = (
        random.uniform(size=(5, *shape)).astype(dtype),
        [random.uniform(size=(n, *shape)).astype(dtype) for n in (1, 4, 2, 2, 1)],
    )
    size = math.prod(shape)
    for given in ({"x": rows, "s": steps}, {"x": rows.reshape(5, size), "s": [part.ravel().tolist() for part in steps]}):
        found = signature.eval(given)
        assert found["a"].dtype == dtype
        np.testing.assert_array_equal(found["a"], rows)
        for one, other in zip(found["b"], steps, strict=True):
            np.testing.assert_array_equal(one, other)


def test_sparse_data_of_several_axes() -> None:
    p = C.input_variable((2, 5), is_sparse=True, name="p")
    s = C.sequence.input_variable((2, 5), is_sparse=True, name="s")
    signature = Signature(C.combine([C.times(p, np.eye(5, dtype=np.float32), name="a"), C.times(s, np.eye(5, dtype=np.float32), name="b")]))
    dense = np.eye(5)[[[1, 2], [3, 4], [0, 0]]]
    for given in (dense, np.array([[1, 2], [3, 4], [0, 0]]), csr_matrix(dense.reshape(6, 5)), csr_matrix(dense.reshape(3, 10))):
        found = signature.eval({"p": given, "s": [dense[:2], dense[2:], [[1, 1]]]})
        np.testing.assert_array_equal(found["a"], dense)
        np.testing.assert_array_equal(found["b"][0], dense[:2])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"x": [[1, 2]]}, r"input x \[batch, 3\] float32 was given int64 data of shape \(1, 2\).*for example \{'x': np.zeros\(\(2, 3\)"),
        ({"x": [[1, 2, 3], [4]]}, "rows of unequal shapes"),
        ({"x": [["a", "b", "c"]]}, "which are no numbers"),
        ({"x": 3}, "the number 3, without an axis of rows"),
        ({"x": np.zeros((3, 3))}, "the inputs 'x' and 'p' have 3 and 2 rows"),
        ({"x": None}, "which are no numbers"),
        ({"p": [1, 5]}, r"input p .*expected class numbers from 0 to 4, got 5"),
        ({"p": csr_matrix((2, 4))}, r"a CSR matrix of shape \(2, 4\)"),
        ({"s": np.zeros((2, 2))}, r"without an axis of steps \(rows of one step each are array\[:, np\.newaxis\]\)"),
        ({"s": [[1, 2, 3], [1, 2]]}, "3 numbers, which are not whole steps of 2 in row 0"),
        ({"s": csr_matrix((4, 2))}, "does not tell where sequences end"),
        ({"ids": [[1, 2, 0], []]}, "a sequence without steps in row 1"),
        ({"ids": [[1, 2], [1]]}, "same sequence axis, but row 0 has 3 steps of the one and 2 of the other"),
        ({"ids": [[1, 2, 7], [1]]}, r"ids .* in row 0: expected class numbers from 0 to 6, got 7"),
        ({"s": np.zeros((2, 3, 2)), "sequence_lengths": [4, 1]}, "2 lengths up to 4"),
        ({"s": np.zeros((5, 2)), "sequence_lengths": [3, 1]}, "5 steps with lengths that add up to 4"),
        ({"s": np.zeros((2, 3, 2)), "sequence_lengths": [3, 0]}, "a sequence without steps in row 1"),
        ({"s": np.zeros((2, 3, 2)), "sequence_lengths": [1.5, 1]}, "lengths of the input 's' must be a whole number for each row"),
    ],
)
def test_errors_say_what_was_given_and_expected(signature: Signature, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        signature.eval({**GIVEN, **wrong})


def test_examples_fit(signature: Signature) -> None:
    signature.eval({**{info.name: info.example() for info in signature.inputs}})
    for info in signature.inputs:
        text = info.example_text().partition("}")[0] + "}"
        signature.eval({**{other.name: other.example() for other in signature.inputs}, **eval(text, {"np": np}), **GIVEN_SHORT})


GIVEN_SHORT = {"s": [np.zeros((1, 2)), np.zeros((2, 2))], "ids": [[0], [0, 0]]}


def test_missing_data_is_named(signature: Signature) -> None:
    with pytest.raises(ValueError, match=r"no data for the input x \[batch, 3\] float32; there is 'y'\. The model takes x"):
        signature.eval({"y": 1})


def test_losses_and_metrics_are_left_out() -> None:
    x, y = C.input_variable(2, name="x"), C.input_variable(3, name="y")
    z = C.layers.Dense(3, name="z")(x)
    loss, error = C.cross_entropy_with_softmax(z, y, name="loss"), C.classification_error(z, y, name="error")
    assert str(Signature(C.combine([loss, error, z]))) == "x [batch, 2] float32 -> z [batch, 3] float32"
    assert [info.name for info in Signature(C.combine([loss, error])).outputs] == ["loss", "error"]
    assert [info.name for info in Signature(C.combine([loss, error, z]), ["error", z]).outputs] == ["error", "z"]


def test_outputs_may_be_inside_of_the_graph() -> None:
    x = C.input_variable(3, name="x")
    inner = C.layers.Dense(4, activation=C.relu, name="hidden")
    model = C.layers.Sequential([inner, C.layers.Dense(2, name="z")])(x)
    found = Signature(model, ["hidden", "z"]).eval({"x": np.ones((2, 3))})
    np.testing.assert_allclose(found["hidden"], C.combine([model.hidden]).eval(np.ones((2, 3), np.float32)))
    with pytest.raises(ValueError, match="no result or node is called 'nothing'; the results of the model are 'z'"):
        Signature(model, "nothing")


def test_outputs_may_be_inside_of_a_block() -> None:
    x, arg = C.input_variable(3, name="x"), C.placeholder()
    inside = C.square(arg, name="inside")
    block = C.as_block(inside + 1, [(arg, x)], "Block", "block")
    np.testing.assert_array_equal(Signature(block, "inside").eval({"x": [[1, 2, 3]]})["inside"], [[1, 4, 9]])


def test_names_must_tell_inputs_apart() -> None:
    x, y = C.input_variable(2, name="x"), C.input_variable(2, name="x")
    with pytest.raises(ValueError, match="several are called 'x'"):
        Signature(x + y)
    unnamed = C.input_variable(2)
    assert Signature(unnamed + 1).inputs[0].name == unnamed.uid


def test_inputs_without_batch_axis_are_for_all_rows() -> None:
    x, scale = C.input_variable(2, name="x"), C.input_variable(2, dynamic_axes=[], name="scale")
    signature = Signature(C.element_times(x, scale, name="z"))
    np.testing.assert_array_equal(signature.eval({"x": [[1, 2], [3, 4]], "scale": [10, 100]})["z"], [[10, 200], [30, 400]])
    with pytest.raises(ValueError, match=r"scale \[2\] float32 was given int64 data of shape \(3,\); expected numbers of shape \(2\)"):
        signature.eval({"x": [[1, 2]], "scale": [1, 2, 3]})


def test_placeholders_have_no_signature() -> None:
    with pytest.raises(ValueError, match="replace the placeholders first"):
        Signature(C.layers.Dense(2)(C.placeholder()))
