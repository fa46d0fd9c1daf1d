"""Sums of up to four million terms, in every operator that takes some: their errors do not grow with the number of terms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import paths

import cntk as C
from cntk.core.common.dtypes import limits_of

LIMIT, MEMORY = 120, 6

CLOSE = {C.bfloat16: 8 * 3e-3, np.float16: 3e-3, np.float32: 1e-5, np.float64: 1e-13}
"""Relative errors of sums of numbers that are not negative; bfloat16 has three bits fewer than float16."""

LOOSER = {"gradients_of_a_convolution": 4, "log_softmax over the first axis": 4}
"""Factors of the errors: blocks have some thousand terms in each lane; results of 16 bits are rounded before they are exponents."""

MOST = {C.bfloat16: 4_000_000, np.float16: 100_000, np.float32: 4_000_000, np.float64: 4_000_000}
"""Terms that are tried; the sum of more is beyond float16."""

Law = Callable[[Any], tuple[Any, Any]]
LAWS: dict[str, Law] = {}
"""What takes terms, ``(n, k)``, and gives what it computes from them, and what that must be."""

BATCH = C.Axis.default_batch_axis()


def trial(random: np.random.Generator) -> str:
    """A law on a number of terms, on one of the paths."""
    name, dtype = str(random.choice(list(LAWS))), tuple(CLOSE)[random.integers(4)]
    count = int(10 ** random.uniform(2, math.log10(MOST[dtype])))
    path = str(random.choice(paths.PATHS))
    with paths.on(path):
        check(name, drawn(random, count, int(random.choice([1, 2, 3, 7, 40])), dtype))
    return path


def drawn(random: np.random.Generator, count: int, columns: int, dtype: Any) -> Any:
    """So many equal numbers, or random ones."""
    count = max(count // max(columns // 4, 1), 1)
    return np.full((count, columns), 0.1, dtype) if random.random() < 0.5 else random.random((count, columns)).astype(dtype)


def check(name: str, terms: Any) -> None:
    """Require that a law holds, of results that the type has room for."""
    dtype = terms.dtype.type
    close = CLOSE[dtype] * LOOSER.get(name, 1)
    found, expected = (np.asarray(numbers, np.float64).ravel() for numbers in LAWS[name](terms))
    assert found.shape == expected.shape, f"{name}: got {found.shape} numbers, expected {expected.shape}"
    errors = np.abs(found - expected) / np.abs(expected)
    errors = np.where(np.abs(expected) > float(limits_of(dtype).max) * (1 - close), 0, np.where(np.isnan(errors), np.inf, errors))
    worst = int(errors.argmax())
    assert errors[worst] <= close, (
        f"{name} of {terms.shape} terms of {dtype.__name__}: got {found[worst]}, expected {expected[worst]}, {errors[worst]:.2g} off"
    )


def sums(terms: Any, by: Callable[[Any], Any] = lambda x: x) -> Any:
    """The exact sum of each column, of the terms themselves or of what they become in double precision."""
    wide = by(np.asarray(terms, np.float64))
    same = (terms == terms[0]).all()
    return np.array([len(terms) * column[0] if same else math.fsum(column.tolist()) for column in wide.T])


def law(function: Law) -> Law:
    """Enter a law under the name of its function."""
    LAWS[function.__name__.strip("_")] = function
    return function


def parameter(shape: Any, terms: Any, value: float = 1) -> Any:
    return C.parameter(shape, init=value, dtype=terms.dtype)


# ---- reductions ----------------------------------------------------------------------------------

REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "reduce_sum": sums,
    "reduce_mean": lambda terms: sums(terms) / len(terms),
    "reduce_l1": sums,
    "reduce_l2": lambda terms: np.sqrt(sums(terms, np.square)),
    "reduce_sum_square": lambda terms: sums(terms, np.square),
    "reduce_log_sum_exp": lambda terms: np.log(sums(terms, np.exp)),
}


def _over(name: str, expected: Callable[[Any], Any]) -> None:
    def over_batch(terms: Any) -> tuple[Any, Any]:
        x = C.input_variable(terms.shape[1], terms.dtype)
        return getattr(C, name)(x, axis=BATCH).eval({x: terms}), expected(terms)

    def over_all(terms: Any) -> tuple[Any, Any]:
        x = C.input_variable(terms.shape[1], terms.dtype)
        return getattr(C, name)(x, axis=C.Axis.all_axes()).eval({x: terms}), expected(terms.reshape(-1, 1))

    def over_axis(axis: int, order: tuple[int, ...]) -> Law:
        def reduced(terms: Any) -> tuple[Any, Any]:
            array = np.stack([terms, terms]).transpose(order)
            x = C.input_variable(array.shape, terms.dtype)
            each = [expected(terms)] * 2
            return getattr(C, name)(x, axis=axis).eval({x: array[None]}), np.ravel(each if order[0] != 2 else np.transpose(each))

        return reduced

    def over_two(terms: Any) -> tuple[Any, Any]:
        array = np.stack([terms, terms], axis=2)
        x = C.input_variable(array.shape, terms.dtype)
        return getattr(C, name)(x, axis=(0, 2)).eval({x: array[None]}), expected(np.concatenate([terms, terms]))

    LAWS[f"{name} over the batch"], LAWS[f"{name} over all axes"] = over_batch, over_all
    LAWS[f"{name} over an axis in the middle"] = over_axis(1, (0, 1, 2))
    LAWS[f"{name} over the last axis"] = over_axis(-1, (0, 2, 1))
    LAWS[f"{name} over the first axis"] = over_axis(0, (1, 0, 2))
    LAWS[f"{name} over two axes"] = over_two


for _name, _expected in REDUCTIONS.items():
    _over(_name, _expected)


# ---- gradients of what is the same for all rows --------------------------------------------------

SCALED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "times": (lambda p, x: p * x, lambda x: x),
    "plus": (lambda p, x: (p + x) * x, lambda x: x),
    "minus": (lambda p, x: (x - p) * x, lambda x: -x),
    "divide": (lambda p, x: x / p, lambda x: -x),
    "relu": (lambda p, x: C.relu(p * x + 1) * x, lambda x: x * x),
    "pow": (lambda p, x: C.pow(p, x), lambda x: x),
    "element_max": (lambda p, x: C.element_max(p + 5, x) * x, lambda x: x),
    "element_select": (lambda p, x: C.element_select(x + 1, p, x) * x, lambda x: x),
    "log_add_exp": (lambda p, x: C.log_add_exp(p, x), lambda x: 1 / (1 + np.exp(x - 1))),
    "param_relu": (lambda p, x: C.param_relu(p, -x), lambda x: -x),
    "abs": (lambda p, x: C.abs(p) * x, lambda x: x),
    "reconcile_dynamic_axes": (lambda p, x: C.reconcile_dynamic_axes(p, x) * x, lambda x: x),
    "splice": (lambda p, x: C.splice(p, x) * C.splice(x, x), lambda x: x),
    "three factors": (lambda p, x: C.element_times(p, x, x), lambda x: x * x),
}


def _scaled(name: str, build: Callable[[Any, Any], Any], by: Callable[[Any], Any]) -> None:
    def gradient(terms: Any) -> tuple[Any, Any]:
        x, p = C.input_variable(terms.shape[1], terms.dtype), parameter(terms.shape[1], terms)
        return build(p, x).grad({x: terms}, wrt=[p]), sums(terms, by)

    LAWS[f"gradient of {name}"] = gradient


for _name, (_build, _by) in SCALED.items():
    _scaled(_name, _build, _by)


@law
def gradient_of_a_bias(terms: Any) -> tuple[Any, Any]:
    x, b = C.input_variable(terms.shape[1], terms.dtype), parameter(terms.shape[1], terms)
    return (x + b).grad({x: terms}, wrt=[b]), np.full(terms.shape[1], float(len(terms)))


@law
def gradient_of_a_number(terms: Any) -> tuple[Any, Any]:
    x, p = C.input_variable(terms.shape[1], terms.dtype), parameter((), terms)
    return (x * p).grad({x: terms}, wrt=[p]), sums(terms.reshape(-1, 1))


@law
def gradients_of_a_layer(terms: Any) -> tuple[Any, Any]:
    x, w, b = C.input_variable(terms.shape[1], terms.dtype), parameter((terms.shape[1], 3), terms), parameter(3, terms)
    found = C.relu(C.times(x, w) + b).grad({x: terms}, wrt=[w, b])
    return np.concatenate([found[w].ravel(), found[b]]), np.concatenate([np.repeat(sums(terms), 3), np.full(3, float(len(terms)))])


@law
def gradients_of_a_recurrence(terms: Any) -> tuple[Any, Any]:
    terms = terms[: len(terms) // 50 * 50] if len(terms) >= 50 else terms
    sequences = list(terms.reshape(-1, min(50, len(terms)), terms.shape[1]))
    x, w, b = C.sequence.input_variable(terms.shape[1], terms.dtype), parameter((terms.shape[1], 2), terms), parameter(2, terms)
    step = C.layers.Recurrence(lambda h, row: h * 0 + C.times(row, w) + b)
    with C.default_options(dtype=terms.dtype):
        found = step(x).grad({x: sequences}, wrt=[w, b])
    return np.concatenate([found[w].ravel(), found[b]]), np.concatenate([np.repeat(sums(terms), 2), np.full(2, float(len(terms)))])


@law
def gradient_of_an_embedding(terms: Any) -> tuple[Any, Any]:
    classes = C.Value.one_hot([0] * len(terms), 5, dtype=terms.dtype)
    x, y = C.input_variable(5, terms.dtype, is_sparse=True), C.input_variable(terms.shape[1], terms.dtype)
    w = parameter((5, terms.shape[1]), terms)
    found = (C.times(x, w) * y).grad({x: classes, y: terms}, wrt=[w])
    found = found.to_ndarray() if hasattr(found, "to_ndarray") else np.asarray(found)
    return found[0], sums(terms)


@law
def gradient_of_gather(terms: Any) -> tuple[Any, Any]:
    x, p = C.input_variable(terms.shape[1], terms.dtype), parameter((3, terms.shape[1]), terms)
    place = C.input_variable(1, terms.dtype)
    picked = C.reshape(C.gather(p, place), terms.shape[1])
    return (picked * x).grad({x: terms, place: np.ones((len(terms), 1), terms.dtype)}, wrt=[p])[1], sums(terms)


@law
def gradients_of_a_convolution(terms: Any) -> tuple[Any, Any]:
    side = 40
    terms = terms[: len(terms) // terms.shape[1] or 1]
    images = np.resize(terms, (max(terms.size // side**2, 1), 1, side, side))
    x, w, b = C.input_variable((1, side, side), terms.dtype), parameter((2, 1, 1, 1), terms), parameter((2, 1, 1), terms)
    found = (C.convolution(w, x) + b).grad({x: images}, wrt=[w, b])
    return np.concatenate([found[w].ravel(), found[b].ravel()]), np.repeat([sums(images.reshape(-1, 1))[0], images.size], 2)


# ---- products ------------------------------------------------------------------------------------


@law
def product_over_many_elements(terms: Any) -> tuple[Any, Any]:
    x = C.input_variable(len(terms), terms.dtype)
    return C.times(x, C.constant(terms)).eval({x: np.ones((1, len(terms)), terms.dtype)}), sums(terms)


@law
def product_over_many_rows_of_a_sparse_operand(terms: Any) -> tuple[Any, Any]:
    from scipy.sparse import csr_matrix

    x = C.input_variable(len(terms), terms.dtype, is_sparse=True)
    data = np.ones(len(terms), np.float32 if terms.dtype == np.float16 else terms.dtype)
    rows = csr_matrix((data, np.arange(len(terms)), np.array([0, len(terms)])), shape=(1, len(terms)))
    return C.times(x, C.parameter(init=terms)).eval({x: rows}), sums(terms)


# ---- sequences -----------------------------------------------------------------------------------


@law
def sequence_reduce_sum(terms: Any) -> tuple[Any, Any]:
    x, some = C.sequence.input_variable(terms.shape[1], terms.dtype), terms[: len(terms) // 3 + 1]
    return C.sequence.reduce_sum(x).eval({x: [terms, some]}), np.concatenate([sums(terms), sums(some)])


@law
def sequence_softmax(terms: Any) -> tuple[Any, Any]:
    x = C.sequence.input_variable(terms.shape[1], terms.dtype)
    (shares,) = C.sequence.softmax(x).eval({x: [terms]})
    return sums(shares.astype(np.float64)), np.ones(terms.shape[1])


@law
def gradient_of_sequence_broadcast_as(terms: Any) -> tuple[Any, Any]:
    x = C.sequence.input_variable(terms.shape[1], terms.dtype)
    y = C.input_variable(terms.shape[1], terms.dtype, needs_gradient=True)
    return (C.sequence.broadcast_as(y, x) * x).grad({x: [terms], y: np.ones((1, terms.shape[1]), terms.dtype)}, wrt=[y]), sums(terms)


# ---- shares, statistics and losses ---------------------------------------------------------------


def _shares(axis: int | None, order: tuple[int, int], function: Callable[..., Any], back: Callable[[Any], Any]) -> Law:
    def shares(terms: Any) -> tuple[Any, Any]:
        array = terms.transpose(order)
        x = C.input_variable(array.shape, terms.dtype)
        found = back(function(x, axis).eval({x: array[None]})[0].astype(np.float64)).transpose(order)
        of = found.reshape(-1, 1) if axis is None else found
        return sums(of), np.ones(of.shape[1])

    return shares


LAWS["softmax over the first axis"] = _shares(0, (0, 1), C.softmax, lambda y: y)
LAWS["softmax over the last axis"] = _shares(1, (1, 0), C.softmax, lambda y: y)
LAWS["softmax over all axes"] = _shares(None, (0, 1), C.softmax, lambda y: y)
LAWS["log_softmax over the first axis"] = _shares(0, (0, 1), C.log_softmax, np.exp)


@law
def cross_entropy(terms: Any) -> tuple[Any, Any]:
    z, y = C.input_variable(terms.T.shape, terms.dtype), C.input_variable(terms.T.shape, terms.dtype)
    first = np.zeros((1, *terms.T.shape), terms.dtype)
    first[..., 0] = 1
    found = C.cross_entropy_with_softmax(z, y, axis=1).eval({z: terms.T[None], y: first})
    return found, np.log(sums(terms, np.exp)) - terms[0].astype(np.float64)


@law
def squared_error(terms: Any) -> tuple[Any, Any]:
    x, y = (C.input_variable(terms.shape, terms.dtype) for _ in range(2))
    return C.squared_error(x, y).eval({x: terms[None], y: terms[None] * 0}), sums(terms.reshape(-1, 1), np.square)


@law
def cosine_distance(terms: Any) -> tuple[Any, Any]:
    x, y = (C.input_variable(terms.size, terms.dtype) for _ in range(2))
    return C.cosine_distance(x, y).eval({x: terms.reshape(1, -1), y: terms.reshape(1, -1)}), 1


@law
def average_of_losses(terms: Any) -> tuple[Any, Any]:
    x, w = C.input_variable(1, terms.dtype), parameter(1, terms)
    loss = C.reduce_sum(x * w)
    trainer = C.Trainer(loss, (loss, loss), [C.sgd([w], C.learning_parameter_schedule_per_sample(0))])
    rows = terms.reshape(-1, 1)
    tested = trainer.test_minibatch({x: rows})
    trainer.train_minibatch({x: rows})
    return [tested, trainer.previous_minibatch_loss_average, trainer.previous_minibatch_evaluation_average], np.repeat(
        sums(rows) / rows.size, 3
    )


def _statistics(by_feature: bool) -> Law:
    def running_mean(terms: Any) -> tuple[Any, Any]:
        array = terms if by_feature else terms.reshape(1, 1, -1)
        features, wide = (terms.shape[1] if by_feature else 1), np.float32 if terms.dtype == np.float16 else terms.dtype
        x = C.input_variable(array.shape[1:], terms.dtype)
        scale, bias = C.parameter(features, init=1, dtype=wide), C.parameter(features, init=0, dtype=wide)
        mean, variance, count = (C.constant(0, shape, dtype=wide) for shape in (features, features, ()))
        z = C.batch_normalization(x, scale, bias, mean, variance, not by_feature, running_count=count)
        gradient = z.grad({x: array}, wrt=[bias])
        means = sums(terms) / len(terms) if by_feature else sums(terms.reshape(-1, 1)) / terms.size
        return np.append(mean.value, gradient), np.append(means, np.full(features, float(array.size // features)))

    return running_mean


LAWS["batch normalisation of features"], LAWS["batch normalisation of a plane"] = _statistics(True), _statistics(False)


@law
def pooling(terms: Any) -> tuple[Any, Any]:
    x = C.input_variable((1, *terms.shape), terms.dtype)
    return C.pooling(x, C.AVG_POOLING, terms.shape).eval({x: terms[None, None]}), sums(terms.reshape(-1, 1)) / terms.size
