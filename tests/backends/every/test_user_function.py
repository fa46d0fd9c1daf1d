"""User functions: every arity of their methods, the data they see, what they may hand on, and what goes wrong in them."""

from __future__ import annotations

import re
import sys
import threading
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse

import cntk as C
from cntk.ops.functions import UserFunction

DATA = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
SEQUENCES = [np.array([[1, 2]], np.float32), np.array([[3, 4], [5, 6], [7, 8]], np.float32), np.array([[9, 1], [2, 3]], np.float32)]


def like(variable: Any, **changes: Any) -> Any:
    """An output of the variable's type."""
    return C.output_variable(variable.shape, variable.dtype, variable.dynamic_axes, **changes)


class Square(UserFunction):
    """One operand, one result; the state is the operand."""

    def __init__(self, x: Any, name: str = "square") -> None:
        super().__init__([x], name=name)

    def infer_outputs(self) -> Any:
        return [like(self.inputs[0])]

    def forward(self, x: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        return x, [part * part for part in x]

    def backward(self, x: Any, root_gradients: Any) -> Any:
        return [2 * part * gradient for part, gradient in zip(x, root_gradients, strict=True)]


class Product(UserFunction):
    """Two operands, one result; remembers what it was asked for."""

    def __init__(self, a: Any, b: Any, name: str = "product") -> None:
        super().__init__([a, b], name=name)
        self.asked: list[Any] = []
        self.retained: list[Any] = []

    def infer_outputs(self) -> Any:
        return [like(self.inputs[0])]

    def forward(self, arguments: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        self.retained.append(outputs_to_retain)
        a, b = arguments
        return arguments, a * b

    def backward(self, state: Any, root_gradients: Any, variables: Any) -> None:
        self.asked.append(dict(variables))
        for variable, other in zip(self.inputs, reversed(state), strict=True):
            if variable in variables:
                gradient = root_gradients * other
                variables[variable] = gradient if variable.dynamic_axes else gradient.sum(axis=0)


class Halves(UserFunction):
    """One operand, two results: its double and its triple, of which only some may need gradients."""

    def __init__(self, x: Any, needs: tuple[bool, bool] = (True, True), name: str = "halves") -> None:
        self.needs = needs
        super().__init__([x], name=name)

    def infer_outputs(self) -> Any:
        return [like(self.inputs[0], needs_gradient=need, name=f"out{i}") for i, need in enumerate(self.needs)]

    def forward(self, x: Any, outputs: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        outputs[self.outputs[0]], outputs[self.outputs[1]] = 2 * x, 3 * x

    def backward(self, state: Any, root_gradients: Any) -> Any:
        return 2 * root_gradients[self.outputs[0]] + 3 * root_gradients[self.outputs[1]]


class Cross(UserFunction):
    """Two operands, two results."""

    def __init__(self, a: Any, b: Any, name: str = "cross") -> None:
        super().__init__([a, b], name=name)

    def infer_outputs(self) -> Any:
        return [like(self.inputs[0]), like(self.inputs[0])]

    def forward(self, arguments: Any, outputs: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        a, b = arguments
        outputs[self.outputs[0]], outputs[self.outputs[1]] = a + 2 * b, 3 * a

    def backward(self, state: Any, root_gradients: Any, variables: Any) -> None:
        first, second = (root_gradients[output] for output in self.outputs)
        variables[self.inputs[0]] = first + 3 * second
        variables[self.inputs[1]] = 2 * first


class Faulty(UserFunction):
    """Does what a test says."""

    def __init__(self, x: Any, forward: Any = None, backward: Any = None, infer: Any = None, name: str = "faulty") -> None:
        self.on_forward, self.on_backward, self.on_infer = forward, backward, infer
        super().__init__([x], name=name)

    def infer_outputs(self) -> Any:
        return self.on_infer(self) if self.on_infer else [like(self.inputs[0])]

    def forward(self, x: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        return self.on_forward(x) if self.on_forward else (None, x)

    def backward(self, state: Any, root_gradients: Any) -> Any:
        return self.on_backward(root_gradients) if self.on_backward else root_gradients


def raising(error: Exception) -> Any:
    def fail(*_: Any) -> None:
        raise error

    return fail


# ---- arities ----


def test_one_operand_one_result() -> None:
    x = C.input_variable(2, needs_gradient=True)
    f = C.user_function(Square(x)) + 1
    np.testing.assert_array_equal(f.eval(DATA), DATA**2 + 1)
    np.testing.assert_array_equal(f.grad(DATA), 2 * DATA)


def test_two_operands_one_result() -> None:
    x, p = C.input_variable(2, needs_gradient=True), C.parameter(init=np.array([2, 3], np.float32))
    product = Product(x, p)
    f = C.user_function(product)
    gradients, value = f.grad({x: DATA}, wrt=[x, p], outputs=[f.output])
    np.testing.assert_array_equal(value, DATA * [2, 3])
    np.testing.assert_array_equal(gradients[x], np.broadcast_to([2, 3], (3, 2)))
    np.testing.assert_array_equal(gradients[p], [9, 12])
    assert product.asked == [{x: None, p: None}]


@pytest.mark.parametrize(("used", "expected"), [((0, 1), 5), ((0,), 2), ((1,), 3)])
def test_one_operand_two_results(used: tuple[int, ...], expected: float) -> None:
    x = C.input_variable(2, needs_gradient=True)
    f = C.user_function(Halves(x))
    root = C.plus(*(f.outputs[i] for i in used), C.constant(0)) if len(used) > 1 else f.outputs[used[0]] + 0
    np.testing.assert_array_equal(root.grad(DATA), np.full((3, 2), expected))
    assert [output.name for output in f.outputs] == ["out0", "out1"]


def test_two_operands_two_results() -> None:
    x, y = (C.input_variable(2, needs_gradient=True) for _ in range(2))
    f = C.user_function(Cross(x, y))
    values = f.eval({x: DATA, y: DATA})
    np.testing.assert_array_equal(values[f.outputs[0]], 3 * DATA)
    gradients = (f.outputs[0] + f.outputs[1]).grad({x: DATA, y: DATA}, wrt=[x, y])
    assert {float(g.mean()) for g in gradients.values()} == {4, 2}


def test_only_operands_that_need_a_gradient_are_asked_for_one() -> None:
    x = C.input_variable(2, needs_gradient=True)
    product = Product(x, C.constant(3))
    C.user_function(product).grad(DATA)
    assert product.asked == [{x: None}]


def test_an_operand_given_twice_has_one_gradient() -> None:
    x = C.input_variable(2, needs_gradient=True)
    np.testing.assert_array_equal(C.user_function(Product(x, x)).grad(DATA), DATA)


def test_a_gradient_left_out_is_zero() -> None:
    x = C.input_variable(2, needs_gradient=True)
    f = C.user_function(Faulty(x, backward=lambda gradient: None)) * 2
    np.testing.assert_array_equal(f.grad(DATA), np.zeros((3, 2)))


def test_backward_is_not_called_where_no_result_needs_a_gradient() -> None:
    x = C.input_variable(2, needs_gradient=True)
    f = C.user_function(Halves(x, (False, False)))
    f.root_function.backward = raising(AssertionError())
    np.testing.assert_array_equal((f.outputs[0] + f.outputs[1]).grad(DATA), np.zeros((3, 2)))


def test_a_result_without_gradient_beside_one_with() -> None:
    x = C.input_variable(2, needs_gradient=True)
    f = C.user_function(Halves(x, (False, True)))
    np.testing.assert_array_equal((f.outputs[0] + f.outputs[1]).grad(DATA), np.full((3, 2), 3))


# ---- data ----


def test_sequences_come_one_by_one_in_the_users_order() -> None:
    seen: list[Any] = []
    x = C.sequence.input_variable(2, needs_gradient=True)
    f = C.user_function(Faulty(x, forward=lambda data: seen.append(data) or (None, [2 * part for part in data])))
    values = f.eval(SEQUENCES)
    for given, shown, value in zip(SEQUENCES, seen[0], values, strict=True):
        np.testing.assert_array_equal(shown, given)
        np.testing.assert_array_equal(value, 2 * given)
    for given, gradient in zip(SEQUENCES, C.user_function(Square(x)).grad(SEQUENCES), strict=True):
        np.testing.assert_array_equal(gradient, 2 * given)


class Lengths(UserFunction):
    """How many steps each sequence has, times a weight that is the same for all."""

    def __init__(self, x: Any, weight: Any, name: str = "lengths") -> None:
        super().__init__([x, weight], name=name)

    def infer_outputs(self) -> Any:
        return [C.output_variable((), self.inputs[0].dtype, self.inputs[0].dynamic_axes[:1])]

    def forward(self, arguments: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        sequences, weight = arguments
        return None, weight * np.array([len(part) for part in sequences])

    def backward(self, state: Any, root_gradients: Any, variables: Any) -> None:
        variables[self.inputs[1]] = root_gradients.sum()


def test_a_result_may_drop_the_sequence_axis() -> None:
    x, w = C.sequence.input_variable(2), C.parameter((), init=2)
    f = C.user_function(Lengths(x, w)) + 0
    gradient, value = f.grad({x: SEQUENCES}, wrt=[w], outputs=[f.output])
    np.testing.assert_array_equal(value, [2, 6, 4])
    assert gradient == 3


def test_operands_keep_their_own_dynamic_axes() -> None:
    seen: list[Any] = []

    class See(Lengths):
        def forward(self, arguments: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
            seen.extend(arguments)
            return super().forward((arguments[0], 1))

    x, y = C.sequence.input_variable(2), C.input_variable(2)
    C.user_function(See(x, y)).eval({x: SEQUENCES, y: DATA})
    assert isinstance(seen[0], list)
    np.testing.assert_array_equal(seen[1], DATA)


def test_sparse_operands_come_as_csr() -> None:
    seen: list[Any] = []

    def forward(data: Any) -> Any:
        seen.append(data)
        return None, data

    x = C.input_variable(3, is_sparse=True)
    data = csr_matrix(np.eye(3, dtype=np.float32)[[2, 0]])
    np.testing.assert_array_equal(C.user_function(Faulty(x, forward=forward)).eval(data), data.toarray())
    assert issparse(seen[0])
    s = C.sequence.input_variable(3, is_sparse=True)
    values = C.user_function(Faulty(s, forward=forward)).eval([data[:1], data])
    assert [part.shape for part in seen[1]] == [(1, 3), (2, 3)]
    np.testing.assert_array_equal(values[1], data.toarray())


@pytest.mark.parametrize("sequence", [False, True])
def test_values_instead_of_arrays(sequence: bool) -> None:
    seen: list[Any] = []

    class Pass(UserFunction):
        def __init__(self, x: Any, name: str = "pass") -> None:
            super().__init__([x], as_numpy=False, name=name)

        def infer_outputs(self) -> Any:
            return [like(self.inputs[0])]

        def forward(self, x: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
            seen.append((x.shape(), x.data().shape(), x.device(), x.is_sparse(), x.data().asarray().sum()))
            reshaped = x.data().as_shape((1, *x.shape())).as_shape(x.shape())
            return x, x if sequence else C.Value(reshaped)

        def backward(self, state: Any, root_gradients: Any) -> Any:
            assert root_gradients.shape() == state.shape() == root_gradients.data().shape()
            return root_gradients if sequence else root_gradients.data()

    x = (C.sequence.input_variable if sequence else C.input_variable)(2, needs_gradient=True)
    data = SEQUENCES if sequence else DATA
    f = C.user_function(Pass(x)) * 3
    for gradient, value in zip(f.grad(data), f.eval(data), strict=True):
        assert (gradient == 3).all()
        assert value.max() in {6, 24, 27, 9, 12, 18}
    shape = (3, 3, 2) if sequence else DATA.shape
    assert seen == [(shape, shape, C.device.use_default_device(), False, seen[0][-1])] * 2


@pytest.mark.parametrize("state", [77, "text", (), None, {"a": [1]}, (np.ones(3),)])
def test_any_state_goes_from_forward_to_backward(state: Any) -> None:
    got: list[Any] = []

    class Keep(Square):
        def forward(self, x: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
            return state, x

        def backward(self, x: Any, root_gradients: Any) -> Any:
            got.append(x)
            return root_gradients

    C.user_function(Keep(C.input_variable(2, needs_gradient=True))).grad(DATA)
    assert len(got) == 1
    assert got[0] is state


def test_data_kept_or_changed_by_the_user_disturbs_nothing() -> None:
    x = C.input_variable(2, needs_gradient=True)

    def forward(data: Any) -> Any:
        data *= 10
        return None, data

    doubled = x * 2
    f = C.user_function(Faulty(doubled, forward=forward)) + doubled
    np.testing.assert_array_equal(f.eval(DATA), 22 * DATA)


def test_outputs_to_retain_tells_training_from_evaluation() -> None:
    x = C.input_variable(2, needs_gradient=True)
    product = Product(x, C.constant(1))
    f = C.user_function(product)
    f.eval(DATA)
    f.grad(DATA)
    assert product.retained == [[], [f.output]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_results_are_converted_to_the_declared_type(dtype: Any) -> None:
    x = C.input_variable(2, dtype=dtype)
    value = C.user_function(Faulty(x, forward=lambda data: (None, data.astype(np.int64)))).eval(DATA.astype(dtype))
    assert value.dtype == dtype


# ---- shapes ----


def test_free_dimensions_follow_the_data() -> None:
    x = C.input_variable((C.FreeDimension, 2), needs_gradient=True)
    f = C.user_function(Square(x))
    assert f.shape == (C.FreeDimension, 2)
    for size in (1, 4):
        data = np.full((3, size, 2), 2, np.float32)
        np.testing.assert_array_equal(f.grad(data), np.full((3, size, 2), 4))


def test_a_shape_computed_from_a_free_one() -> None:
    def twice(function: Any) -> Any:
        (n,) = function.inputs[0].shape
        return [C.output_variable((n if n < 0 else 2 * n,), np.float32, function.inputs[0].dynamic_axes)]

    x = C.input_variable((C.FreeDimension,))
    f = C.user_function(Faulty(x, forward=lambda data: (None, np.concatenate([data, data], axis=1)), infer=twice))
    assert f.eval(np.ones((2, 3), np.float32)).shape == (2, 6)


def test_a_free_result_is_as_large_as_the_operand() -> None:
    free = lambda function: [C.output_variable(C.FreeDimension, np.float32, function.inputs[0].dynamic_axes)]  # noqa: E731
    x = C.input_variable(2)
    np.testing.assert_array_equal(C.user_function(Faulty(x, infer=free)).eval(DATA), DATA)


def test_a_size_that_nothing_tells_is_refused() -> None:
    free = lambda function: [C.output_variable((C.FreeDimension, 7), np.float32, function.inputs[0].dynamic_axes)]  # noqa: E731
    f = C.user_function(Faulty(C.input_variable(2), infer=free))
    with pytest.raises(ValueError, match=r"faulty.*does not fit: expected samples of shape \(-3, 7\), got \(2,\)"):
        f.eval(DATA)
    f = C.user_function(Faulty(C.parameter(2), infer=free))
    with pytest.raises(ValueError, match=r"faulty.*output 0 has the shape \(-3, 7\).*infer_outputs"):
        f.eval()


class InGroups(UserFunction):
    """As many groups of samples as a second operand has samples: results with other samples, of shapes that only data tell."""

    def __init__(self, x: Any, groups: Any, as_numpy: bool = True, name: str = "groups") -> None:
        super().__init__([x, groups], as_numpy=as_numpy, name=name)

    def infer_outputs(self) -> Any:
        x = self.inputs[0]
        return [C.output_variable((C.FreeDimension, *x.shape), x.dtype, x.dynamic_axes)]

    def forward(self, arguments: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        x, groups = arguments
        if self.as_numpy:
            return None, x.reshape(len(groups), -1, *x.shape[1:])
        samples, count = x.shape()[0], groups.shape()[0]
        return None, C.Value(x.data().as_shape((count, samples / count, *self.inputs[0].shape)))

    def backward(self, state: Any, root_gradients: Any, variables: Any) -> None:
        if self.as_numpy:
            variables[self.inputs[0]] = root_gradients.reshape(-1, *self.inputs[0].shape)
        else:
            groups, size = root_gradients.shape()[:2]
            variables[self.inputs[0]] = root_gradients.data().as_shape((groups * size, *self.inputs[0].shape))


@pytest.mark.parametrize("as_numpy", [True, False])
def test_data_may_decide_the_shape_and_the_samples_of_a_result(as_numpy: bool) -> None:
    steps, groups = C.sequence.input_variable(2, needs_gradient=True), C.input_variable(())
    f = C.user_function(InGroups(C.sequence.last(steps) * 3, groups, as_numpy))
    assert f.shape == (C.FreeDimension, 2)
    total = C.reduce_sum(f * C.constant([1.0, 10.0]), axis=0)
    for samples, count in ((6, 2), (6, 3), (4, 4), (6, 2)):
        last = np.arange(2 * samples, dtype=np.float32).reshape(samples, 2)
        data = {steps: [np.stack([-row, row]) for row in last], groups: np.zeros(count, np.float32)}
        np.testing.assert_array_equal(f.eval(data), 3 * last.reshape(count, -1, 2))
        gradients, values = total.grad(data, wrt=[steps], outputs=[total])
        np.testing.assert_array_equal(values[:, 0], (3 * last * [1, 10]).reshape(count, -1, 2).sum(axis=1))
        np.testing.assert_array_equal(gradients, np.tile(np.float32([[0, 0], [3, 30]]), (samples, 1, 1)))


# ---- graphs ----


def test_clone_goes_through_the_constructor() -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    f = C.user_function(Square(x, name="mine")) + 1
    g = f.clone("share", {x: y})
    assert isinstance(g.find_by_name("mine"), Square)
    assert g.find_by_name("mine") is not f.find_by_name("mine")
    np.testing.assert_array_equal(g.eval({y: DATA}), DATA**2 + 1)
    np.testing.assert_array_equal(f(DATA), DATA**2 + 1)


def test_a_constructor_that_clone_cannot_call() -> None:
    class Scale(Square):
        def __init__(self, x: Any, factor: float, name: str = "scale") -> None:
            super().__init__(x, name)

    f = C.user_function(Scale(C.input_variable(2), 2))
    with pytest.raises(RuntimeError, match=r"scale.*clone raised TypeError.*override it"):
        f.clone("share")


def test_placeholders_are_bound_later() -> None:
    x, p = C.input_variable(2, needs_gradient=True), C.placeholder()
    f = C.user_function(Square(p)) + 1
    output = f.output
    f.replace_placeholder(x)
    assert f.output is output
    np.testing.assert_array_equal(f.eval(DATA), DATA**2 + 1)


def test_in_a_block() -> None:
    @C.BlockFunction("Squared", "squared")
    def squared(x: Any) -> Any:
        return C.user_function(Square(x))

    x = C.input_variable(2, needs_gradient=True)
    np.testing.assert_array_equal(squared(x).grad(DATA), 2 * DATA)


def test_how_it_prints() -> None:
    function = Square(C.input_variable(2, name="x"))
    assert str(C.user_function(function)) == "square: UserFunction(x: Tensor[2]) -> Tensor[2]"
    assert str(function) == f"square: {__name__}.Square(x: Tensor[2]) -> Tensor[2]"
    assert function.op_name == Square._op_name() == f"{__name__}.Square"
    assert function.serialize() == {}


def test_attributes_are_shown_as_they_were_given() -> None:
    class Named(Square):
        def __init__(self, x: Any) -> None:
            UserFunction.__init__(self, [x], attributes={"aB": 2, "c_d": "q"})

    assert C.user_function(Named(C.input_variable(2))).attributes == {"aB": 2, "c_d": "q"}


def test_a_step_of_training_calls_each_method_once() -> None:
    calls: list[str] = []

    class Count(Square):
        def forward(self, *arguments: Any) -> Any:
            calls.append("forward")
            return super().forward(*arguments)

        def backward(self, *arguments: Any) -> Any:
            calls.append("backward")
            return super().backward(*arguments)

    x, y = C.input_variable(2, needs_gradient=True), C.input_variable(2)
    w = C.parameter(init=np.array([1, 2], np.float32))
    z = C.user_function(Count(x * w))
    trainer = C.Trainer(z, C.squared_error(z, y), C.sgd([w], 0.02))
    losses = []
    for _ in range(20):
        trainer.train_minibatch({x: DATA / 3, y: np.ones_like(DATA)})
        losses.append(trainer.previous_minibatch_loss_average)
    assert losses[-1] < losses[0] / 4
    assert calls == ["forward", "backward"] * 20


def test_inputs_that_need_gradients_get_them_in_training() -> None:
    x, w = C.input_variable(2, needs_gradient=True), C.parameter(2)
    product = Product(x, C.constant(1))
    z = C.user_function(product) + w
    C.Trainer(z, C.reduce_sum(z), C.sgd([w], 0.1)).train_minibatch({x: DATA})
    assert product.asked == [{x: None}]


def test_calls_on_several_threads_keep_their_states_apart() -> None:
    x = C.input_variable(2, needs_gradient=True)
    f = C.user_function(Square(x)) * 1
    wrong: list[Any] = []

    def work(number: int) -> None:
        data = np.full((number + 1, 2), number, np.float32)
        wrong.extend(1 for _ in range(50) if (f.grad(data) != 2 * data).any())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_states_of_interleaved_passes() -> None:
    x = C.input_variable(2, needs_gradient=True)
    f = C.user_function(Square(x))
    first, _ = f.forward({x: DATA}, [f.output], {f.output})
    second, _ = f.forward({x: 2 * DATA}, [f.output], {f.output})
    ones = np.ones_like(DATA)
    np.testing.assert_array_equal(f.backward(first, {f.output: ones}, {x})[x], 2 * DATA)
    np.testing.assert_array_equal(f.backward(second, {f.output: ones}, {x})[x], 4 * DATA)


# ---- errors ----


@pytest.mark.parametrize("method", ["forward", "backward", "infer"])
def test_errors_of_the_user_are_the_cause(method: str) -> None:
    error = ZeroDivisionError("oh dear")
    x = C.input_variable(2, needs_gradient=True)
    with pytest.raises(RuntimeError, match=rf"Faulty 'faulty'.*{method}.* raised ZeroDivisionError: oh dear.*{__file__}") as caught:
        C.user_function(Faulty(x, **{method: raising(error)})).grad(DATA)
    causes = []
    cause: Any = caught.value
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__
    assert error in causes


@pytest.mark.parametrize(
    ("result", "kind", "why"),
    [
        ((None, None), RuntimeError, "forward gave no value for Output"),
        (np.ones((3, 2)), RuntimeError, r"must return \(state, result\), got ndarray"),
        ((None, np.ones((3, 4))), ValueError, r"does not fit: expected numbers in the shape \(3, 2\), got float64 data of shape \(3, 4\)"),
        ((None, np.ones((2, 3))), ValueError, r"does not fit"),
        ((None, "text"), ValueError, "does not fit: expected numbers"),
    ],
)
def test_results_that_do_not_fit(result: Any, kind: type[Exception], why: str) -> None:
    f = C.user_function(Faulty(C.input_variable(2), forward=lambda data: result))
    with pytest.raises(kind, match=f"faulty.*{why}"):
        f.eval(DATA)


def test_an_error_leads_to_the_line_where_the_function_is_used() -> None:
    line = sys._getframe().f_lineno + 1
    f = C.user_function(Faulty(C.input_variable(2), forward=lambda data: (None, "text")))
    with pytest.raises(ValueError, match=rf"built at {re.escape(__file__)}:{line}\]"):
        f.eval(DATA)


def test_sequences_of_other_lengths_do_not_fit() -> None:
    f = C.user_function(Faulty(C.sequence.input_variable(2), forward=lambda data: (None, data[::-1])))
    with pytest.raises(ValueError, match=r"lengths \[1, 3, 2\], got lengths \[2, 3, 1\]"):
        f.eval(SEQUENCES)


def test_gradients_that_do_not_fit() -> None:
    f = C.user_function(Faulty(C.input_variable(2, needs_gradient=True), backward=lambda gradient: gradient[:1]))
    with pytest.raises(ValueError, match=r"backward gave a gradient for Input.*does not fit.*\(3, 2\).*\(1, 2\)"):
        f.grad(DATA)


@pytest.mark.parametrize(
    ("infer", "why"),
    [
        (lambda function: [], "must return a list of output_variable"),
        (lambda function: [3], "must return a list of output_variable"),
        (lambda function: function.missing, "infer_outputs raised AttributeError: .*'missing'"),
        (lambda function: [C.output_variable(2, np.float32, C.sequence.input_variable(2).dynamic_axes)], "same dynamic axes"),
    ],
)
def test_outputs_that_cannot_be(infer: Any, why: str) -> None:
    with pytest.raises((RuntimeError, TypeError, ValueError), match=why):
        C.user_function(Faulty(C.input_variable(2), infer=infer))


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="UserFunction, got int"):
        C.user_function(3)


def test_output_variable_takes_dynamic_axes_only() -> None:
    with pytest.raises(ValueError, match="dynamic"):
        C.output_variable(2, np.float32, [C.Axis(0)])


# ---- recurrences ----


class Mix(UserFunction):
    """``a * b + p`` and ``a - b``, step by step; remembers what it was shown."""

    def __init__(self, a: Any, b: Any, p: Any, as_numpy: bool = True, name: str = "mix") -> None:
        super().__init__([a, b, p], as_numpy=as_numpy, name=name)
        self.shown: list[Any] = []

    def infer_outputs(self) -> Any:
        return [like(self.inputs[0]), like(self.inputs[0])]

    def clone(self, cloned_inputs: Any) -> Any:
        return Mix(*cloned_inputs, as_numpy=self.as_numpy, name=self.name)

    def forward(self, arguments: Any, outputs: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        a, b, p = (self._arrays(data) for data in arguments)
        self.shown.append([part.shape for part in a])
        outputs[self.outputs[0]] = [x * y + p for x, y in zip(a, b, strict=True)]
        outputs[self.outputs[1]] = [x - y for x, y in zip(a, b, strict=True)]
        return a, b

    def backward(self, state: Any, root_gradients: Any, variables: Any) -> None:
        first, second = (self._arrays(root_gradients[output]) for output in self.outputs)
        (a, b), (da, db, dp) = state, self.inputs
        variables[da] = [g * y + h for g, h, y in zip(first, second, b, strict=True)]
        variables[db] = [g * x - h for g, h, x in zip(first, second, a, strict=True)]
        variables[dp] = sum(g.sum(axis=0) for g in first)

    def _arrays(self, data: Any) -> Any:
        if self.as_numpy:
            return data
        return data.as_sequences() if len(data.shape()) == 3 else data.asarray()


@pytest.mark.parametrize("as_numpy", [True, False], ids=["arrays", "values"])
@pytest.mark.parametrize("delay", [C.sequence.past_value, C.sequence.future_value], ids=["past", "future"])
def test_in_a_recurrence(delay: Any, as_numpy: bool) -> None:
    """It is called once a step, with the sequences that are that long, and computes what built-in operators do."""
    x = C.sequence.input_variable(2, needs_gradient=True)
    made: list[Mix] = []

    def ours(a: Any, b: Any, p: Any) -> Any:
        made.append(Mix(a, b, p, as_numpy))
        return C.user_function(made[0]).outputs

    results = []
    for mix in (ours, lambda a, b, p: (a * b + p, a - b)):
        p, state = C.parameter(init=np.array([0.5, -1], np.float32)), C.placeholder((2,), x.dynamic_axes)
        first, second = mix(x, delay(state, initial_state=0.25), p)
        z = 0.25 * first + 0.5 * second
        z.replace_placeholders({state: z.output})
        gradients, value = z.grad({x: SEQUENCES}, [x, p], [z.output])
        results.append([gradients[p], *gradients[x], *value])
    for mine, right in zip(*results, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-5)
    counts = [3, 2, 1] if delay is C.sequence.past_value else [1, 2, 3]
    assert made[0].shown == [[(1, 2)] * count for count in counts]


@pytest.mark.parametrize("sparse", [True, False])
def test_sparse_operands_in_a_recurrence(sparse: bool) -> None:
    x = C.sequence.input_variable(2, is_sparse=sparse)
    state = C.placeholder((2,), x.dynamic_axes)
    seen: list[Any] = []

    class Add(Product):
        def forward(self, arguments: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
            seen.extend(map(issparse, arguments[0]))
            return None, [(a.toarray() if sparse else a) + b for a, b in zip(*arguments, strict=True)]

        def infer_outputs(self) -> Any:
            return [like(self.inputs[1])]

    z = C.user_function(Add(x, C.sequence.past_value(state))) * 1
    z.replace_placeholders({state: z.output})
    values = z.eval({x: [csr_matrix(part) if sparse else part for part in SEQUENCES]})
    for value, part in zip(values, SEQUENCES, strict=True):
        np.testing.assert_array_equal(value, part.cumsum(axis=0))
    assert seen == [sparse] * 6


def test_a_clone_of_a_recurrence_calls_a_function_of_its_own() -> None:
    x = C.sequence.input_variable(2)
    state = C.placeholder((2,), x.dynamic_axes)
    square = Square(C.sequence.past_value(state, initial_state=0.5))
    z = C.user_function(square) + x
    z.replace_placeholders({state: z.output})
    copied = z.clone("share")
    for value, other in zip(z.eval({x: SEQUENCES}), copied.eval({copied.arguments[0]: SEQUENCES}), strict=True):
        np.testing.assert_array_equal(value, other)


# ---- the document of CNTK ----


class Watch(UserFunction):
    """Hands its operand on, and calls a function when it looks a certain way."""

    def __init__(self, x: Any, when: Any, execute: Any, name: str = "watch") -> None:
        self.when, self.execute = when, execute
        super().__init__([x], name=name)

    def infer_outputs(self) -> Any:
        return [like(self.inputs[0])]

    def clone(self, cloned_inputs: Any) -> Any:
        return Watch(cloned_inputs[0], self.when, self.execute, self.name)

    def forward(self, argument: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        if self.when(argument):
            self.execute(argument)
        return None, argument

    def backward(self, state: Any, root_gradients: Any) -> Any:
        return root_gradients


def test_a_node_that_watches_values_while_a_model_is_trained() -> None:
    caught: list[float] = []
    x, y = C.input_variable(2), C.input_variable(1)
    dense = C.layers.Dense(1, init=0.5)(x)
    model = C.user_function(Watch(dense, lambda v: np.var(v) > 1, lambda v: caught.append(float(np.var(v))))) + 0
    plain = dense.clone("clone")
    trained = []
    for z in (model, plain):
        features = z.arguments[0]
        trainer = C.Trainer(z, (C.squared_error(z, y), None), [C.sgd(z.parameters, 0.01)])
        for scale in (1, 4, 1):
            trainer.train_minibatch({features: scale * DATA / 4, y: DATA[:, :1]})
        trained.append([parameter.value for parameter in z.parameters])
    for ours, theirs in zip(*trained, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert len(caught) == 1
    assert caught[0] > 1


def test_an_operand_on_the_batch_axis_in_a_recurrence() -> None:
    """It is an array with a row for each sequence that is still there."""
    x, b = C.sequence.input_variable(2, needs_gradient=True), C.input_variable(2, needs_gradient=True)
    shapes: list[Any] = []

    class Scaled(Product):
        def forward(self, arguments: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
            shapes.append(arguments[1].shape)
            return arguments, [a * scale for a, scale in zip(*arguments, strict=True)]

        def backward(self, state: Any, root_gradients: Any, variables: Any) -> None:
            a, scale = state
            variables[self.inputs[0]] = [g * row for g, row in zip(root_gradients, scale, strict=True)]
            variables[self.inputs[1]] = np.concatenate([g * part for g, part in zip(root_gradients, a, strict=True)])

    results = []
    for scaled in (lambda a, scale: C.user_function(Scaled(a, scale)), C.element_times):
        state = C.placeholder((2,), x.dynamic_axes)
        z = scaled(C.sequence.past_value(state, initial_state=1), b) + x
        z.replace_placeholders({state: z.output})
        gradients, value = z.grad({x: SEQUENCES, b: DATA}, [x, b], [z.output])
        results.append([*value, *gradients[x], gradients[b]])
    for mine, right in zip(*results, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-5)
    assert shapes == [(3, 2), (2, 2), (1, 2)]
