"""Recurrences of all kinds that kernels do in one launch, whose values and gradients are compared with those of the backend ``numpy``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cntk as C
from cntk.core.extension.device import default_device, device
from cntk.layers import GRU, LSTM, Recurrence, RNNStep

Model = Callable[[Any], Any]
LENGTHS = (4, 1, 9, 2, 9, 3, 5)
ROUNDING = {C.bfloat16: 8 * 2e-2, np.float16: 2e-2, np.float32: 2e-5, np.float64: 1e-12}


def sequences(width: int, dtype: Any = np.float32, lengths: tuple[int, ...] = LENGTHS) -> list[Any]:
    random = np.random.default_rng(5)
    return [random.standard_normal((length, width)).astype(dtype) for length in lengths]


def looped(step: Model, **delay: Any) -> Any:
    """The recurrence h = step(h'), with h' the value a step before."""
    before = C.placeholder()
    h = step(C.sequence.delay(before, **delay))
    return h.replace_placeholders({before: h.output})


def weights(*shape: int) -> Any:
    return C.parameter(shape, init=C.glorot_uniform())


def delayed(steps: int) -> Model:
    def gated(x: Any, R: Any, first: int) -> Any:
        return looped(lambda h: C.sigmoid(x - C.slice(C.times(h, R), 0, first, first + 3)), time_step=steps)

    def model(x: Any) -> Any:
        R = weights(3, 4)
        return gated(x, R, 0) * gated(x, R, 1)

    return model


def twice_delayed(x: Any) -> Any:
    R, S, end = weights(3, 3), weights(3, 3), C.placeholder()
    before, earlier = C.sequence.past_value(end, 0.25), C.sequence.past_value(end, C.parameter(3, init=0.1), 2)
    h = C.tanh(x + C.times(before, R) + C.times(earlier, S))
    return h.replace_placeholders({end: h.output})


def spliced(x: Any) -> Any:
    R, b = weights(6, 3), C.parameter((), init=0.3)
    return looped(lambda h: C.relu(0.5 - C.times(C.splice(h - b, b - x), R)), initial_state=C.parameter(3, init=0.1))


def attending(x: Any) -> Any:
    R, S = weights(3, 3), weights(3, 3)
    return looped(lambda h: C.tanh(x + C.times(C.softmax(C.times(h, R)), S)))


def of_two_widths(x: Any) -> Any:
    R, S = weights(3, 37), weights(37, 3)
    return looped(lambda h: C.tanh(x + C.times(C.sigmoid(C.times(h, R)), S)))


def scaled_by_a_number_of_each_row(x: Any) -> Any:
    R, s = weights(3, 3), weights(3, 1)
    return looped(lambda h: C.tanh(x + C.times(h, R) * C.sigmoid(C.times(h, C.stop_gradient(s)))))


def reshaped(x: Any) -> Any:
    R, s, t = weights(3, 8), weights(2, 3), C.parameter(3, init=0.5)

    def step(h: Any) -> Any:
        part = C.reshape(C.slice(C.times(h, R), 0, 1, 7), (2, 3))
        return C.tanh(x + C.slice(C.reshape(part * s + part * t, (6,)), 0, 2, 5))

    return looped(step)


def powers(x: Any) -> Any:
    """A step with functions that have conditions in C."""
    s = C.parameter(3, init=0.75)
    return looped(lambda h: C.softplus(C.element_max(s * C.abs(h), C.sqrt(C.abs(x)) + 0.1) / (1 + h * h)) - C.log(1 + C.exp(x)))


MODELS: dict[str, Model] = {
    "LSTM": lambda x: Recurrence(LSTM(37))(x),
    "LSTM backwards": lambda x: Recurrence(LSTM(5), go_backwards=True)(x),
    "LSTM with everything": lambda x: Recurrence(LSTM(5, cell_shape=6, use_peepholes=True, enable_self_stabilization=True))(x),
    "GRU": lambda x: Recurrence(GRU(37))(x),
    "GRU backwards": lambda x: Recurrence(GRU(5), go_backwards=True)(x),
    "plain": lambda x: Recurrence(RNNStep(5, activation=C.relu))(x),
    "plain with an initial state": lambda x: Recurrence(RNNStep(5), initial_state=C.parameter(5, init=0.2))(x),
    "both directions": lambda x: C.splice(Recurrence(LSTM(5))(x), Recurrence(LSTM(5), go_backwards=True)(x)),
    "layers": lambda x: Recurrence(GRU(6))(Recurrence(LSTM(4))(x)),
    "transposed": lambda x: looped(lambda h: C.tanh(x + C.times_transpose(h, weights(3, 3)))),
    "two steps back": delayed(2),
    "three steps ahead": delayed(-3),
    "two delays": twice_delayed,
    "side by side": spliced,
    "two widths": of_two_widths,
    "other shapes": reshaped,
    "many functions": powers,
    "a number for each row": scaled_by_a_number_of_each_row,
    "what the kernel cannot do between": attending,
}


def gradients(model: Model, data: list[Any], dtype: Any) -> dict[str, Any]:
    """The sums of squares of a model's values, and their gradients."""
    C.cntk_py.set_fixed_random_seed(3)
    with C.default_options(dtype=dtype):
        x = C.sequence.input_variable(3, dtype=dtype, needs_gradient=True, name="x")
        h = model(x)
        loss = C.sequence.reduce_sum(C.reduce_sum(h * h))
    found, value = loss.grad({x: data}, wrt=[x, *loss.parameters], outputs=[loss.output])
    named = {f"{i} {v.name}": found[v] for i, v in enumerate((x, *loss.parameters))}
    return {"value": value, **{name: np.concatenate(g) if isinstance(g, list) else g for name, g in named.items()}}


def compare(model: Model, data: list[Any], dtype: Any) -> None:
    """Compare values and gradients with those of the backend ``numpy``."""
    found = gradients(model, data, dtype)
    with default_device(device("numpy")):
        expected = gradients(model, data, dtype)
    assert found.keys() == expected.keys()
    for name, one in found.items():
        right = np.asarray(expected[name], np.float64)
        np.testing.assert_allclose(one, right, ROUNDING[dtype], ROUNDING[dtype] * max(1, abs(right).max()), err_msg=name)
