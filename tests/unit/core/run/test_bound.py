"""Functions bound to sizes give what ``eval`` gives, in arrays of their own."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest

import cntk as C

RNG = np.random.default_rng(5)


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def dense() -> Any:
    return C.layers.Sequential([C.layers.Dense(7, activation=C.relu), C.layers.Dropout(0.5), C.layers.Dense(3)])(C.input_variable(5))


def convolution() -> Any:
    network = [C.layers.Convolution2D(3, 4, activation=C.relu, pad=True), C.layers.BatchNormalization(), C.layers.MaxPooling((2, 2), 2)]
    return C.layers.Sequential(network)(C.input_variable((2, 8, 6)))


def tagger() -> Any:
    both_ways = C.splice(
        C.layers.Recurrence(C.layers.LSTM(4))(x := C.sequence.input_variable(5)), C.layers.Recurrence(C.layers.GRU(3), True)(x)
    )
    return C.layers.Dense(2)(both_ways)


def last_step() -> Any:
    return C.sequence.last(C.layers.Recurrence(C.layers.RNNStep(4))(C.sequence.input_variable(5)))


CASES = {
    "dense": (dense, (6, 5)),
    "one sample": (dense, (1, 5)),
    "convolution": (convolution, (3, 2, 8, 6)),
    "sequences": (tagger, (3, 7, 5)),
    "one sequence": (tagger, (1, 4, 5)),
    "steps of length one": (tagger, (4, 1, 5)),
    "last of sequences": (last_step, (3, 6, 5)),
    "its own input": (lambda: C.combine([C.alias(C.input_variable(3))]), (2, 3)),
    "a free size": (lambda: C.reduce_sum(C.input_variable((C.FreeDimension, 2)), 0) * 2, (2, 5, 2)),
}


@pytest.mark.parametrize(("build", "shape"), CASES.values(), ids=CASES)
def test_results_are_those_of_eval(build: Any, shape: tuple[int, ...]) -> None:
    function = build()
    bound = function.bind(shape)
    for _ in range(3):
        data = numbers(*shape)
        np.testing.assert_array_equal(bound(data), np.array(function.eval(data)))


@pytest.mark.parametrize(("build", "shape"), CASES.values(), ids=CASES)
def test_it_is_pickled_with_its_shapes(build: Any, shape: tuple[int, ...]) -> None:
    bound = build().bind(shape)
    data = numbers(*shape)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(bound))(data), bound(data))


def test_inputs_are_filled_and_outputs_stay_the_same_arrays() -> None:
    x = C.input_variable(2, name="x")
    function = x + 1
    bound = function.bind({"x": (1, 2)})
    bound.inputs[x][:] = 4
    first = bound()
    assert first is bound.outputs[function]
    np.testing.assert_array_equal(first, [[5, 5]])
    np.testing.assert_array_equal(bound.inputs[x], [[4, 4]])
    assert bound(np.array([[1, 2]])) is first
    np.testing.assert_array_equal(first, [[2, 3]])


def test_sequences_are_filled_where_they_lie() -> None:
    x = C.sequence.input_variable(1)
    bound = C.sequence.reduce_sum(x).bind((2, 3, 1))
    bound.inputs[x][1] = [[1], [2], [4]]
    np.testing.assert_array_equal(bound(), [[0], [7]])


def test_several_inputs_and_outputs() -> None:
    x, y, scale = C.input_variable(3, name="x"), C.sequence.input_variable(3, name="y"), C.input_variable((), dynamic_axes=[], name="scale")
    function = C.combine([x * scale, y + C.sequence.broadcast_as(x, y)])
    data = {"x": numbers(2, 3), "y": numbers(2, 4, 3), "scale": np.float32(3)}
    found = function.bind({name: array.shape for name, array in data.items()})(data)
    wanted = function.eval({x: data["x"], y: list(data["y"]), scale: data["scale"]})
    for output in function.outputs:
        np.testing.assert_array_equal(found[output], np.array(wanted[output]))


def test_parameters_are_followed() -> None:
    x = C.input_variable(2)
    weights = C.parameter((2, 1), init=1)
    bound = C.times(x, weights).bind((1, 2))
    assert bound([[1, 2]])[0, 0] == 3
    weights.value = np.array([[2], [5]], np.float32)
    assert bound([[1, 2]])[0, 0] == 12


def test_assignments_are_made() -> None:
    x = C.input_variable((1,), dynamic_axes=[])
    total = C.parameter((1,), init=0)
    bound = C.assign(total, total + x).bind((1,))
    bound([2])
    bound([3])
    assert total.value == [5]


def test_a_function_without_arguments() -> None:
    assert (C.constant(2) * 3).bind({})() == 6


def test_one_thread_at_a_time() -> None:
    entered, leave = threading.Event(), threading.Event()

    class Waiting(C.ops.functions.UserFunction):  # type: ignore[misc]
        def __init__(self, x: Any) -> None:
            super().__init__([x], as_numpy=True)

        def forward(self, argument: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
            entered.set()
            assert leave.wait(30)
            return None, argument

        def backward(self, state: Any, root_gradients: Any) -> Any:
            return root_gradients

        def infer_outputs(self) -> Any:
            return [C.output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes)]

    bound = C.user_function(Waiting(C.input_variable(1))).bind((1, 1))
    thread = threading.Thread(target=bound, args=([[1]],))
    thread.start()
    try:
        assert entered.wait(30)
        with pytest.raises(RuntimeError, match="at work in another thread; bind the function once for each thread"):
            bound([[2]])
    finally:
        leave.set()
        thread.join()
    assert bound([[3]]) == [[3]]


@pytest.mark.parametrize("shape", [(1, 4), (1, 2, 5), 5, (0, 5)])
def test_shapes_that_do_not_fit(shape: Any) -> None:
    with pytest.raises(
        ValueError, match=r"bind: the shape of Input\('.*'\S* \[#\], \[5\]\) is to be \(samples, 5\), of positive sizes; got"
    ):
        dense().bind(shape)


def test_what_is_no_shape() -> None:
    with pytest.raises(ValueError, match=r"expected the shape of .* with its samples, such as .*, got 'many'"):
        dense().bind("many")


def test_data_of_another_shape_is_not_broadcast() -> None:
    with pytest.raises(ValueError, match=r"is bound to the shape \(3, 5\), got \(5,\); bind the function to that, too, or use eval"):
        dense().bind((3, 5))(numbers(5))


def test_numbers_of_another_kind() -> None:
    with pytest.raises(TypeError, match="complex"):
        dense().bind((1, 5))(np.ones((1, 5), complex))


def test_what_cannot_be_bound() -> None:
    x = C.sequence.input_variable(1)
    with pytest.raises(ValueError, match=r"how many steps .* has depends on its data"):
        C.sequence.where(x).bind((1, 3, 1))
    sparse = C.input_variable(10, is_sparse=True)
    with pytest.raises(ValueError, match=r"bind: .* is sparse, .* use eval"):
        C.times(sparse, C.parameter((10, 2))).bind((1, 10))


def test_memory_that_was_given_back_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    function = dense()
    bound, data = function.bind((4, 5)), numbers(4, 5)
    with monkeypatch.context() as patch:
        patch.setattr(type(bound._run), "forward", lambda run: run.workspace.release() or _raise())
        with pytest.raises(MemoryError):
            bound(data)
    np.testing.assert_array_equal(bound(data), function.eval(data))


def _raise() -> None:
    raise MemoryError
