"""Mistakes: each is answered with an error that names what is at fault, what was given, what was expected, and where it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix

import cntk as C
from cntk.layers import Convolution2D, Dense, Dropout, Sequential

Mistake = Callable[[], Any]


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def one_hot(samples: int, width: int) -> Any:
    return csr_matrix(np.eye(samples, width, dtype=np.float32))


x = C.input_variable(2, name="x")
y = C.input_variable(3, name="y")
image = C.input_variable((1, 4, 4), name="image")
labels = C.input_variable(3, is_sparse=True, name="labels")
W = C.parameter((2, 3), init=1, name="W")
z = C.times(x, W)
loss, metric = C.cross_entropy_with_softmax(z, labels), C.classification_error(z, labels)
criterion = C.combine([loss, metric])
rate = C.learning_parameter_schedule(0.1)


def answered(mistake: Mistake, error: type[Exception], *parts: str) -> str:
    """Make the mistake; require an error of this type whose message has these parts."""
    with pytest.raises(error) as caught:
        mistake()
    message = str(caught.value)
    assert [part for part in parts if part not in message] == [], message
    return message


def normalized(operand: Any) -> Any:
    """Batch normalisation with a scale of the wrong shape."""
    return C.batch_normalization(operand, 1, 0, 0, 0, False, running_count=C.constant(0))


# ---- building graphs: the message names operator, operands, and the user's line ----


@pytest.mark.parametrize(
    ("mistake", "parts"),
    [
        (lambda: x + y, ["Plus", "Input('x', [#], [2])", "Input('y', [#], [3])", "do not broadcast"]),
        (lambda: x * ones(3), ["ElementTimes", "Input('x', [#], [2])", "[3]"]),
        (lambda: C.times(y, W, name="layer"), ["Times 'layer'", "Input('y', [#], [3])", "Parameter('W', [], [2 x 3])", "must agree"]),
        (lambda: C.reshape(x, (3,)), ["Reshape", "[2] have 2 elements, [3] has 3"]),
        (lambda: C.splice(C.input_variable((2, 3)), C.input_variable((3, 3)), axis=1), ["Splice", "[2 x 3]", "[3 x 3]", "axis 1"]),
        (lambda: C.transpose(x, (0, 1)), ["TransposeAxes", "(0, 1)", "1 axes"]),
        (lambda: C.reduce_sum(x, axis=3), ["ReduceElements", "axis 3", "1 axes"]),
        (lambda: C.cross_entropy_with_softmax(x, y), ["CrossEntropyWithSoftmax", "[2]", "[3]", "same static shape"]),
        (lambda: C.cross_entropy_with_softmax(x, labels), ["CrossEntropyWithSoftmax", "Input('labels', [#], [3])", "as many outputs as"]),
        (lambda: C.classification_error(x, labels), ["ClassificationError", "same static shape"]),
        (lambda: x + C.input_variable(2, dtype=np.float64), ["Plus", "float32 and float64", "use cast"]),
        (lambda: C.times(x, C.parameter((2, 2), dtype=np.float64)), ["Times", "float32 and float64", "use cast"]),
        (lambda: C.pooling(x, C.MAX_POOLING, (2, 2)), ["Pooling", "(2, 2)", "(2,)"]),
        (lambda: Convolution2D((3, 3), 4)(x), ["Convolution", "[4 x ? x 3 x 3]", "(2,)", "(channels, *axes)"]),
        (lambda: Convolution2D((9, 9), 4)(image), ["Convolution", "a window of 9", "an axis of 4"]),
        (lambda: normalized(x), ["BatchNormalization", "scale", "2 in all", "shape ()"]),
        (lambda: C.times(C.placeholder(), W).replace_placeholder(y), ["Times", "Input('y', [#], [3])", "must agree"]),
        (lambda: z.clone("share", {x: y}), ["Times", "Input('y', [#], [3])", "must agree"]),
        (lambda: [layer(v) for layer in [Dense(4)] for v in (x, y)], ["Times", "[2 x 4]", "must agree"]),
        (lambda: C.sequence.input_variable(2, sequence_axis=C.Axis("a")) + C.sequence.input_variable(2), ["Plus", "[#, a]", "[#, *]"]),
    ],
)
def test_operands_that_do_not_go_together(mistake: Mistake, parts: list[str]) -> None:
    message = answered(mistake, ValueError, *parts)
    assert f"[built at {__file__}:" in message


@pytest.mark.parametrize("mistake", [lambda: x[5], lambda: C.slice(x, 0, 1, 5)])
def test_slices_outside_an_operand(mistake: Mistake) -> None:
    message = answered(mistake, RuntimeError, "Slice", "Input('x', [#], [2])", "outside an axis of 2")
    assert f"[built at {__file__}:" in message


@pytest.mark.parametrize(
    ("operand", "error", "parts"),
    [
        ("text", TypeError, ["Plus, operand 2: expected", "as operand", "got str 'text'"]),
        (None, TypeError, ["Plus, operand 2: expected", "got NoneType"]),
        (1j, TypeError, ["Plus, operand 2: expected", "got complex"]),
        ([[1], [2, 3]], TypeError, ["Plus, operand 2: cannot make a constant", "rows of equal length"]),
        ([], ValueError, ["Plus, operand 2: an empty list"]),
        (np.array([1, 2]), ValueError, ["Plus", "floating-point numbers, got int64", ".astype(np.float32)"]),
        (np.array([None, 1]), ValueError, ["Plus, operand 2: expected numbers", "got NoneType None at [0]"]),
        (C.layers.Tensor[2], ValueError, ["Plus", "Tensor[2]", "did you mean"]),
        (C.combine([x + 1, x * 2]), RuntimeError, ["has 2 outputs; choose one"]),
    ],
)
def test_operands_that_are_none(operand: Any, error: type[Exception], parts: list[str]) -> None:
    answered(lambda: C.plus(x, operand), error, *parts)


@pytest.mark.parametrize(
    ("mistake", "error", "parts"),
    [
        (lambda: C.input_variable("ab"), TypeError, ["a shape is an int or a tuple of ints, got 'ab'"]),
        (lambda: C.input_variable(-5), ValueError, ["-5 is not a dimension"]),
        (lambda: C.input_variable((2, -5)), ValueError, ["-5 is not a dimension"]),
        (lambda: C.input_variable(2, dtype=np.int32), ValueError, ["int32", "use bfloat16, float16, float32 or float64"]),
        (lambda: C.input_variable(2, dtype="number"), ValueError, ["'number'", "use bfloat16, float16, float32 or float64"]),
        (lambda: C.input_variable(2, dynamic_axes=["time"]), TypeError, ["dynamic_axes must be an Axis or a sequence of these, got list"]),
        (lambda: C.parameter(2, init="glorot"), TypeError, ["'glorot'", "initializer"]),
        (lambda: C.parameter((C.InferredDimension, 2), name="V").value, ValueError, ["Parameter('V', [], [? x 2])", "not known yet"]),
        (lambda: setattr(C.parameter(2, name="V"), "value", ones(3)), RuntimeError, ["Parameter('V'", "shape (2,), got (3,)"]),
        (lambda: setattr(C.parameter(2), "value", [1, 2]), TypeError, ["expected a NumPy array", "got list"]),
        (lambda: C.pooling(image, 7, (2, 2)), ValueError, ["pooling_type=7", "MAX_POOLING (0)"]),
        (lambda: C.dropout(x, 1.5), ValueError, ["dropout", "[0, 1), got 1.5"]),
        (lambda: Dropout(), ValueError, ["Dropout: give one of dropout_rate and keep_prob"]),
        (lambda: Dense(3, activation="relu"), TypeError, ["Dense: activation must be a function such as relu, got str 'relu'"]),
        (lambda: Convolution2D(3, 4, activation="relu"), TypeError, ["Convolution: activation must be a function", "'relu'"]),
        (lambda: Sequential([Dense(3), "relu"]), TypeError, ["can be followed by functions only, got str 'relu'"]),
        (lambda: Dense(None), TypeError, ["a shape is an int or a tuple of ints"]),
        (lambda: C.combine(["a"]), TypeError, ["combine: expected functions and variables, got str 'a'"]),
        (lambda: C.plus(x), TypeError, ["plus", "missing"]),
        (lambda: C.relu(x, "name", 3), TypeError, ["relu", "3"]),
        (lambda: C.relu(x, alpha=3), TypeError, ["relu", "'alpha'"]),
    ],
)
def test_arguments_of_builders(mistake: Mistake, error: type[Exception], parts: list[str]) -> None:
    answered(mistake, error, *parts)


def unused(a: Any, b: Any) -> Any:
    return a + 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda a: a * C.Parameter(2), "parameters cannot be created inside a Python function that becomes a Function"),
        (lambda a: Dense(2)(a), "create them outside and refer to them"),
        (unused, "'unused' does not use its arguments ['b']; leave them out"),
        (lambda a: a + x, "uses the variables ['x'], which are not among its arguments; pass them in"),
        (lambda a: None, "must return a Function, a Variable or a tuple of these, got NoneType"),
        (lambda *a: a[0], "takes a variable number of arguments; name each of them"),
        (3, "expected a Python function, got int 3"),
    ],
)
def test_python_functions_that_cannot_be_converted(given: Any, message: str) -> None:
    answered(lambda: C.Function(given), TypeError, message)


# ---- evaluating ----


@pytest.mark.parametrize(
    ("mistake", "error", "parts"),
    [
        (lambda: (C.placeholder(name="p") + 1).eval(ones(1, 2)), ValueError, ["Placeholder('p'", "unbound", "replace_placeholders"]),
        (lambda: Dense(2).eval(ones(1, 2)), ValueError, ["Placeholder('x'", "unbound"]),
        (lambda: Dense(2)(ones(1, 2)), ValueError, ["Placeholder('x'", "unbound"]),
        (lambda: z(ones(1, 2), ones(1, 2)), TypeError, ["Times(x: Tensor[2]) -> Tensor[3] expected 1 arguments, got 2"]),
        (lambda: z(), TypeError, ["expected 1 arguments, got 0"]),
        (lambda: z(w=ones(1, 2)), TypeError, ["no argument called 'w'; it has ['x']"]),
        (lambda: z(y), TypeError, ["argument 'x' has the type Tensor[2]", "Input('y', [#], [3])"]),
        (lambda: z.grad({x: ones(1, 2)}), ValueError, ["no input", "needs_gradient=True", "wrt="]),
        (lambda: z.grad({x: ones(1, 2)}, wrt=[C.parameter(2, name="V")]), ValueError, ["Parameter('V'", "does not depend on it"]),
        (lambda: z.backward(None, ones(1, 3), {x}), ValueError, ["call forward with keep_for_backward first"]),
        (lambda: z.eval({x: ones(1, 2)}, outputs=["y"]), TypeError, ["expected a Variable or Function, got str 'y'"]),
        (lambda: z.eval({x: ones(1, 2)}, device="cpu"), TypeError, ["device: expected a device such as cntk.device.cpu(), got str"]),
        (lambda: z.find_by_name(3), ValueError, ["expected a name (str), got int"]),
        (lambda: z.set_attribute("width", 1), RuntimeError, ["'width' cannot be changed"]),
    ],
)
def test_evaluating(mistake: Mistake, error: type[Exception], parts: list[str]) -> None:
    answered(mistake, error, *parts)


def test_shapes_that_only_data_tells_are_checked_when_it_comes() -> None:
    free = C.input_variable((C.FreeDimension, 2), name="free")
    product = C.times_transpose(C.reshape(free, (-1, 2)), C.constant(ones(4, 2))) + C.constant(ones(3, 4))
    assert product.eval(ones(1, 3, 2)).shape == (1, 3, 4)
    message = answered(lambda: product.eval(ones(1, 5, 2)), ValueError, "Plus", "do not broadcast")
    assert f"[built at {__file__}:" in message


def test_a_state_serves_one_backward_pass() -> None:
    root = C.square(C.input_variable(2, needs_gradient=True, name="v"))
    v = root.arguments[0]
    state, _ = root.forward({v: ones(1, 2)}, [root.output], {root.output})
    answered(lambda: root.backward(state, {root.output: ones(1, 3)}, {v}), ValueError, "(1, 2)", "(1, 3)")
    answered(lambda: root.backward(state, {root.output: ones(1, 2)}, {v}), ValueError, "call forward again")


@pytest.mark.skipif(len(C.device.all_devices()) > 1, reason="there is a GPU")
def test_a_missing_gpu_says_why() -> None:
    answered(lambda: C.device.gpu(0), ValueError, "gpu(0)", "backend 'cupy' cannot be used here", "install")


# ---- training ----


def trainer(**changes: Any) -> Any:
    """A trainer, right but for the changes."""
    arguments = {"model": z, "criterion": (loss, metric), "parameter_learners": [C.sgd([W], rate)], **changes}
    return C.Trainer(**arguments)


@pytest.mark.parametrize(
    ("changes", "error", "parts"),
    [
        ({"criterion": (loss, metric, loss)}, ValueError, ["a loss and at most one metric, got 3"]),
        ({"criterion": C.combine([loss, metric, z])}, ValueError, ["a loss and at most one metric, got 3"]),
        ({"criterion": ()}, ValueError, ["got 0"]),
        ({"criterion": "loss"}, TypeError, ["a criterion consists of functions, got str 'loss'"]),
        ({"model": "model"}, TypeError, ["the model must be a Function or None, got str"]),
        ({"parameter_learners": []}, ValueError, ["at least one learner"]),
        ({"parameter_learners": [C.sgd]}, TypeError, ["expected learners", "got function"]),
        ({"parameter_learners": [C.sgd([W], rate), C.sgd([W], rate)]}, ValueError, ["Parameter('W'", "belongs to two learners"]),
        ({"parameter_learners": [C.sgd([C.parameter(2, name="V")], rate)]}, ValueError, ["Parameter('V'", "not a parameter of the loss"]),
        ({"progress_writers": ["print"]}, TypeError, ["expected progress writers, got str 'print'"]),
    ],
)
def test_a_wrong_trainer_is_refused_by_name(changes: dict[str, Any], error: type[Exception], parts: list[str]) -> None:
    answered(lambda: trainer(**changes), error, "Trainer" if "progress_writers" not in changes else "progress_writers", *parts)


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ({x: ones(4, 3), labels: one_hot(4, 3)}, ["Input('x', [#], [2])", "('batch', 2)", "(4, 3)"]),
        ({x: ones(4, 2), labels: one_hot(4, 5)}, ["Input('labels', [#], [3])", "CSR rows 3 wide", "(4, 5)"]),
        ({x: ones(4, 2), labels: ones(4, 3)}, ["Input('labels'", "takes CSR matrices, got ndarray", "convert it with"]),
        ({x: ones(4, 2), labels: csc_matrix(ones(4, 3))}, ["Input('labels'", "got csc_matrix", "convert it with"]),
        ({x: ones(4, 2), labels: coo_matrix(ones(4, 3))}, ["Input('labels'", "got coo_matrix", "convert it with"]),
        ({x: ones(4, 2), labels: one_hot(3, 3)}, ["different numbers of samples", "4", "3"]),
        ({x: ones(0, 2), labels: csr_matrix((0, 3), dtype=np.float32)}, ["the minibatch is empty"]),
        ({x: ones(4, 2)}, ["no data for Input('labels'"]),
        ({"x": ones(4, 2), "label": one_hot(4, 3)}, ["no input has the name 'label'", "Input('labels'"]),
        ([ones(4, 2), one_hot(4, 3)], ["2 inputs", "dictionary"]),
        (None, ["expects 2 arguments, got none"]),
    ],
)
def test_a_wrong_minibatch_is_refused_and_changes_nothing(data: Any, parts: list[str]) -> None:
    before = W.value
    for take in (trainer().train_minibatch, trainer().test_minibatch):
        answered(lambda take=take: take(data), ValueError, *parts)
    np.testing.assert_array_equal(W.value, before)


@pytest.mark.parametrize(
    ("mistake", "error", "parts"),
    [
        (lambda: trainer().previous_minibatch_loss_average, RuntimeError, ["no minibatch has been trained yet"]),
        (lambda: trainer(criterion=loss).test_minibatch({x: ones(1, 2)}), ValueError, ["no metric", "second output"]),
        (lambda: trainer().train_minibatch({x: ones(3, 2), labels: one_hot(3, 3)}, outputs=["z"]), TypeError, ["got str 'z'"]),
        (lambda: C.Evaluator("metric"), TypeError, ["Evaluator: expected", "got str 'metric'"]),
        (lambda: C.Evaluator(criterion), RuntimeError, ["has 2 outputs; choose one"]),
        (lambda: C.Evaluator(metric, ["print"]), TypeError, ["expected progress writers, got str 'print'"]),
        (lambda: C.sgd(Dense(3).parameters, rate), ValueError, ["Parameter('W', [], [? x 3])", "not known yet"]),
        (lambda: C.sgd([W, W], rate), ValueError, ["distinct parameters", "Parameter('W'"]),
        (lambda: C.sgd([], rate), ValueError, ["at least one parameter"]),
        (lambda: C.sgd(W, rate), TypeError, ["put it in a list"]),
        (lambda: C.sgd([W], "fast"), ValueError, ["lr: expected a number, a list or a schedule, got str"]),
        (lambda: C.momentum_sgd([W], rate), TypeError, ["momentum"]),
        (lambda: C.sgd([W], rate).reset_learning_rate(0.1), ValueError, ["expected a schedule, got float", "learning_parameter_schedule"]),
    ],
)
def test_a_mistake_in_training_is_told(mistake: Mistake, error: type[Exception], parts: list[str]) -> None:
    answered(mistake, error, *parts)


@pytest.mark.parametrize(
    ("data", "changes", "error", "parts"),
    [
        ((ones(8, 2),), {}, ValueError, ["Input('x'", "Input('labels'", "got 1"]),
        ((ones(8, 2), one_hot(4, 3)), {}, TypeError, ["the same number of samples", "[8, 4]"]),
        ((ones(0, 2), csr_matrix((0, 3))), {}, ValueError, ["at least one sample"]),
        ((ones(8, 2), "labels"), {}, TypeError, ["NumPy arrays, CSR matrices and lists", "got str"]),
        ((ones(8, 2), csc_matrix(ones(8, 3))), {}, ValueError, ["CSR format, got csc_matrix; convert it with .tocsr()"]),
        ((ones(8, 2), coo_matrix(ones(8, 3))), {}, ValueError, ["CSR format, got coo_matrix; convert it with .tocsr()"]),
        ((one_hot(8, 3), ones(8, 2)), {}, ValueError, ["Input('x', [#], [2])", "(8, 3)"]),
        (None, {"minibatch_size": 0}, ValueError, ["minibatch_size", "at least 1, got 0"]),
        (None, {"minibatch_size": None}, ValueError, ["minibatch_size"]),
        (None, {"minibatch_size": "all"}, ValueError, ["minibatch_size", "got str"]),
        (None, {"parameter_learners": []}, ValueError, ["at least one learner"]),
        (None, {"callbacks": ["print"]}, ValueError, ["callbacks", "got str 'print'"]),
        (None, {"max_epochs": 1, "max_samples": 3}, ValueError, ["max_epochs or max_samples, not both"]),
        (None, {"max_epochs": 0}, ValueError, ["max_epochs or max_samples must be positive", "0 samples"]),
        (None, {"progress_frequency": -1}, ValueError, ["progress_frequency: expected a number of samples"]),
    ],
)
def test_criteria_are_trained_on(data: Any, changes: dict[str, Any], error: type[Exception], parts: list[str]) -> None:
    given = (ones(8, 2), one_hot(8, 3)) if data is None else data
    answered(lambda: criterion.train(given, **{"parameter_learners": [C.sgd([W], rate)], **changes}), error, *parts)


# ---- NaN ----


@pytest.fixture
def checked_mode() -> Iterator[None]:
    C.debugging.set_checked_mode(True)
    yield
    C.debugging.set_checked_mode(False)


@pytest.mark.usefixtures("checked_mode")
def test_checked_mode_names_the_operator_that_made_the_first_nan() -> None:
    angle = C.acos(x, name="angle") + 1
    assert angle.eval(ones(1, 2)).shape == (1, 2)
    bad = np.array([[0, 1], [1, 2]], np.float32)
    message = answered(lambda: angle.eval(bad), ValueError, "Acos 'angle'", "Input('x'", "NaN", "(1, 1)")
    assert f"[built at {__file__}:" in message


@pytest.mark.usefixtures("checked_mode")
def test_checked_mode_watches_training_too() -> None:
    before = W.value
    bad = np.array([[np.nan, 1]], np.float32)
    answered(lambda: trainer().train_minibatch({x: bad, labels: one_hot(1, 3)}), ValueError, "Times", "NaN")
    np.testing.assert_array_equal(W.value, before)


def test_without_checked_mode_nan_passes() -> None:
    assert np.isnan(C.acos(x).eval(2 * ones(1, 2))).all()
