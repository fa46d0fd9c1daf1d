"""Recurrences: cycles through delays, checked against loops written in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import DeviceDescriptor
from cntk.plugins.ops.product import Times
from cntk.testing import assert_close
from cntk.testing.tolerances import GRADIENTS

LENGTHS = (3, 1, 7, 2, 7, 4)
RNG = np.random.default_rng(5)


def sequences(*shape: int, lengths: Sequence[int] = LENGTHS) -> list[Any]:
    return [RNG.uniform(-1, 1, (steps, *shape)) for steps in lengths]


def recurrence(step: Callable[..., Any], **delay: Any) -> Any:
    """The function ``h`` for which ``h = step(delayed h)``."""
    end = C.placeholder()
    h = step(C.sequence.delay(end, **delay))
    return h.replace_placeholders({end: h.output})


def unrolled(step: Callable[[Any, int], Any], x: Any, initial: Callable[[int], Any], shift: int) -> Any:
    """The same for one sequence, *initial* telling the states before (or behind) it by their distance from it."""
    h: dict[int, Any] = {}
    for t in range(len(x)) if shift > 0 else reversed(range(len(x))):
        earlier = t - shift
        h[t] = step(h[earlier] if earlier in h else initial(earlier if shift > 0 else earlier - len(x)), t)
    return np.array([h[t] for t in range(len(x))])


def close(found: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other)


def check_gradients(function: Any, feed: dict[Any, Any], wrt: Sequence[Any], device: DeviceDescriptor) -> None:
    """Compare gradients of the weighted sum of the outputs with central differences, in float64."""
    loss = C.reduce_sum(function * C.sin(function))
    found = loss.grad(feed, wrt=list(wrt), device=device)
    found = found if isinstance(found, dict) else {wrt[0]: found}

    def total() -> float:
        values = loss.eval(feed, device=device)
        return float(sum(np.sum(value) for value in values))

    for variable in wrt:
        data = variable.value if variable.is_parameter else feed[variable]
        parts = [data] if isinstance(data, np.ndarray) else data
        gradients = [found[variable]] if isinstance(data, np.ndarray) else found[variable]
        for part, gradient in zip(parts, gradients, strict=True):
            for place in np.ndindex(part.shape):
                ends = []
                for change in (1e-6, -1e-6):
                    kept = part[place]
                    part[place] = kept + change
                    if variable.is_parameter:
                        variable.value = part
                    ends.append(total())
                    part[place] = kept
                if variable.is_parameter:
                    variable.value = part
                assert_close(gradient[place], (ends[0] - ends[1]) / 2e-6, tolerance=GRADIENTS)


@pytest.mark.parametrize("shift", [1, 2, 3, -1, -2, -3])
@pytest.mark.parametrize("kind", ["number", "parameter", "batch", "sequence"])
def test_every_initial_state_and_time_step(kind: str, shift: int, device: DeviceDescriptor) -> None:
    with C.default_options(dtype=np.float64):
        x = C.sequence.input_variable(2, needs_gradient=True)
        states = C.input_variable(2, needs_gradient=True)
        before = C.sequence.input_variable(2, needs_gradient=True, sequence_axis=C.Axis("before"))
        weight = C.parameter((2,), init=[0.5, -0.25])
        initial = {"number": 0.75, "parameter": C.parameter((2,), init=[0.3, 0.6]), "batch": states, "sequence": before}[kind]
        h = recurrence(lambda h: weight * h + C.sin(x), initial_state=initial, time_step=shift)
    data = sequences(2)
    feed: dict[Any, Any] = {x: data}
    if kind == "batch":
        feed[states] = RNG.uniform(-1, 1, (len(data), 2))
    if kind == "sequence":
        feed[before] = sequences(2, lengths=(5, 3, 4, 8, 3, 6))

    def state(i: int) -> Callable[[int], Any]:
        if kind == "number":
            return lambda at: np.full(2, 0.75)
        if kind == "parameter":
            return lambda at: initial.value
        return lambda at: feed[states][i] if kind == "batch" else feed[before][i][at]

    expected = [unrolled(lambda h, t, part=part: weight.value * h + np.sin(part[t]), part, state(i), shift) for i, part in enumerate(data)]
    close(h.eval(feed, device=device), expected)
    variables = [x, weight] + ([] if kind == "number" else [initial])
    check_gradients(h, feed, variables, device)


def test_several_delays_in_one_recurrence(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable((), dtype=np.float64, needs_gradient=True)
    end = C.placeholder()
    h = 0.5 * C.sequence.past_value(end) - 0.25 * C.sequence.past_value(end, time_step=2) * C.sequence.past_value(end, 1.5, 3) + x
    h.replace_placeholders({end: h.output})
    data = sequences()
    expected = []
    for part in data:
        states = [0.0, 0.0, 0.0]
        h3 = [1.5] * 3
        out: list[float] = []
        for t, value in enumerate(part):
            third = out[t - 3] if t >= 3 else h3[t]
            out.append(0.5 * (out[t - 1] if t else states[0]) - 0.25 * (out[t - 2] if t >= 2 else states[1]) * third + value)
        expected.append(np.array(out))
    close(h.eval({x: data}, device=device), expected)
    check_gradients(h, {x: data}, [x], device)


def test_states_that_depend_on_one_another(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(2, dtype=np.float64, needs_gradient=True)
    first, second = C.placeholder(), C.placeholder()
    a = C.tanh(C.sequence.past_value(second) + x)
    b = C.sin(C.sequence.past_value(first) * a)
    both = C.combine(a, b).replace_placeholders({first: a.output, second: b.output})
    data = sequences(2)
    expected: dict[Any, list[Any]] = {a.output: [], b.output: []}
    for part in data:
        one, other = np.zeros(2), np.zeros(2)
        ones, others = [], []
        for value in part:
            now = np.tanh(other + value)
            one, other = now, np.sin(one * now)
            ones.append(one)
            others.append(other)
        expected[a.output].append(np.array(ones))
        expected[b.output].append(np.array(others))
    found = both.eval({x: data}, device=device)
    for output in both.outputs:
        close(found[output], expected[output])
    check_gradients(C.splice(a, b), {x: data}, [x], device)


def test_a_recurrence_over_the_results_of_two_others(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(2, dtype=np.float64, needs_gradient=True)
    with C.default_options(dtype=np.float64):
        weight = C.parameter((2, 2), init=[[0.5, -0.5], [0.25, 0.75]])
    forward = recurrence(lambda h: C.tanh(C.times(h, weight) + x))
    backward = recurrence(lambda h: C.tanh(C.times(h, weight) - x), time_step=-1)
    top = recurrence(lambda h: C.sin(h + forward * backward))
    data, w = sequences(2), weight.value
    expected = []
    for part in data:
        f = unrolled(lambda h, t, part=part: np.tanh(h @ w + part[t]), part, lambda at: np.zeros(2), 1)
        b = unrolled(lambda h, t, part=part: np.tanh(h @ w - part[t]), part, lambda at: np.zeros(2), -1)
        expected.append(unrolled(lambda h, t, f=f, b=b: np.sin(h + f[t] * b[t]), part, lambda at: np.zeros(2), 1))
    close(top.eval({x: data}, device=device), expected)
    check_gradients(top, {x: data}, [x, weight], device)


def test_states_that_are_only_passed_on(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(())
    data = [np.zeros(3, np.float32), np.zeros(2, np.float32)]
    same = C.layers.UnfoldFrom(lambda state: state)(C.constant([1, 2]), x)
    close(same.eval({x: data}, device=device), [np.float32([[1, 2]] * 3), np.float32([[1, 2]] * 2)])
    swapped = C.layers.UnfoldFrom(lambda one, other: (other, one))(C.constant([1]), C.constant([5]), x)
    close(swapped.eval({x: data}, device=device), [np.float32([[5], [1], [5]]), np.float32([[5], [1]])])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_recurrence_is_its_steps_in_every_type(dtype: Any, device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(3, dtype=dtype)
    h = recurrence(lambda h: C.tanh(0.5 * h + x))
    data = [part.astype(dtype) for part in sequences(3)]
    found = h.eval({x: data}, device=device)
    assert all(part.dtype == dtype for part in found)
    close(found, [unrolled(lambda h, t, part=part: np.tanh(0.5 * h + part[t]), part, lambda at: np.zeros(3, dtype), 1) for part in data])


def test_a_minibatch_may_be_split_merged_and_permuted(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(4, dtype=np.float64)
    with C.default_options(dtype=np.float64):
        model = C.layers.Sequential([C.layers.Recurrence(C.layers.LSTM(3)), C.layers.Recurrence(C.layers.GRU(2), go_backwards=True)])(x)
    loss = C.reduce_sum(C.square(model))
    data = sequences(4, lengths=(2, 9, 1, 30, 5, 5))
    whole, gradients = model.eval({x: data}, device=device), loss.grad({x: data}, wrt=model.parameters, device=device)
    for groups in ([[0], [1], [2], [3], [4], [5]], [[3, 1, 5], [0, 4, 2]], [[5, 4, 3, 2, 1, 0]]):
        summed: dict[Any, Any] = dict.fromkeys(model.parameters, 0.0)
        for group in groups:
            part = [data[i] for i in group]
            close(model.eval({x: part}, device=device), [whole[i] for i in group])
            for parameter, gradient in loss.grad({x: part}, wrt=model.parameters, device=device).items():
                summed[parameter] = summed[parameter] + gradient
        for parameter in model.parameters:
            np.testing.assert_allclose(summed[parameter], gradients[parameter], rtol=1e-10, atol=1e-12)


class CountedTimes(Times):
    """A product that counts its steps."""

    forwards = 0
    weight_gradients = 0

    def forward(self, ctx: Any, out: Any, left: Any, right: Any) -> None:
        CountedTimes.forwards += 1
        super().forward(ctx, out, left, right)

    def backward(self, ctx: Any, grad: Any, grads: Any, out: Any, left: Any, right: Any) -> None:
        CountedTimes.weight_gradients += grads[1] is not None
        super().backward(ctx, grad, grads, out, left, right)


def test_what_does_not_depend_on_the_state_is_computed_for_all_steps_at_once(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(2, dtype=np.float64)
    with C.default_options(dtype=np.float64):
        w, r = (C.parameter((2, 2), init=C.glorot_uniform()) for _ in range(2))
    h = recurrence(lambda h: C.tanh(CountedTimes(output_rank=1)(x, w) + CountedTimes(output_rank=1)(h, r)))
    data = sequences(2)
    CountedTimes.forwards = CountedTimes.weight_gradients = 0
    h.eval({x: data}, device=device)
    assert CountedTimes.forwards == 1 + max(LENGTHS)
    h.grad({x: data}, wrt=[w, r], device=device)
    assert CountedTimes.weight_gradients == 2


def test_dropout_in_a_recurrence_has_a_mask_for_each_step(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(50, dtype=np.float64, needs_gradient=True)
    h = recurrence(lambda h: C.dropout(0.5 * h + x, 0.3))
    data = sequences(50)
    gradient, value = h.grad({x: data}, wrt=[x], outputs=[h.output], device=device)
    for part, slope, result in zip(data, gradient, value, strict=True):  # the function is linear, so its sum is the slope times x
        np.testing.assert_allclose((slope * part).sum(), result.sum(), rtol=1e-10)
        assert all((step == 0).any() for step in result)
    assert len({tuple(step == 0) for part in value for step in part}) == sum(LENGTHS)


def test_sequences_go_on_in_the_next_minibatch(device: DeviceDescriptor) -> None:
    x, state = C.sequence.input_variable((), dtype=np.float64), C.input_variable((), dtype=np.float64, needs_gradient=True)
    h = recurrence(lambda h: 0.5 * h + x, initial_state=state)
    whole = sequences(lengths=(6, 4))
    begin = {x: ([whole[0][:3], whole[1][:2]], [True, True]), state: np.array([2.0, 3.0])}
    rest = {x: ([whole[0][3:], whole[1][2:]], [False, False]), state: np.array([7.0, 7.0])}
    parts = [h.eval(feed, device=device) for feed in (begin, rest)]
    expected = h.eval({x: whole, state: np.array([2.0, 3.0])}, device=device)
    close([np.concatenate(pair) for pair in zip(*parts, strict=True)], expected)
    half = {x: ([whole[0][3:], whole[1][2:]], [False, True]), state: np.array([7.0, 7.0])}
    h.grad(begin, wrt=[state], device=device)
    np.testing.assert_allclose(h.grad(half, wrt=[state], device=device), [0, 0.75])


def test_a_sequence_cannot_go_on_that_was_not_there() -> None:
    x = C.sequence.input_variable((), name="x")
    with pytest.raises(ValueError, match="continues one of the previous minibatch, which had no such sequence"):
        C.sequence.past_value(x).eval({x: ([np.float32([1, 2])], [False])})


def test_sequences_that_came_without_flags_cannot_go_on() -> None:
    x = C.sequence.input_variable((), name="x")
    y = C.sequence.past_value(x)
    y.eval({x: ([np.float32([7, 8])], [True])})
    y.eval({x: [np.float32([1, 2])]})
    with pytest.raises(ValueError, match=r"came with flags of new sequences too: \(data, \[True, \.\.\.\]\)"):
        y.eval({x: ([np.float32([3])], [False])})


def test_a_delay_of_several_steps_needs_as_many_to_go_on() -> None:
    x = C.sequence.input_variable(())
    y = C.sequence.past_value(x, time_step=2)
    close(y.eval({x: ([np.float32([1]), np.float32([2, 3])], [True, True])}), [np.float32([0]), np.float32([0, 0])])
    close(y.eval({x: ([np.float32([5]), np.float32([4])], [True, False])}), [np.float32([0]), np.float32([2])])
    with pytest.raises(ValueError, match="sequence 0 continues one of the previous minibatch, which had fewer than the 2 steps"):
        y.eval({x: ([np.float32([5]), np.float32([4])], [False, True])})


def test_sparse_values_within_a_recurrence(device: DeviceDescriptor) -> None:
    x, end = C.sequence.input_variable(5, dtype=np.float64), C.placeholder()
    chosen = C.one_hot(C.reshape(C.argmax(C.sequence.past_value(end)), ()), 5, sparse_output=True)
    h = C.tanh(chosen + 0.5 * C.sequence.past_value(chosen) + x)
    h.replace_placeholders({end: h.output})
    for lengths in ((4, 1), (4, 1), (2, 5)):
        data = sequences(5, lengths=lengths)
        expected = []
        for part in data:
            before, earlier, states = np.zeros(5), np.zeros(5), []
            for value in part:
                now = np.eye(5)[np.argmax(before)]
                before, earlier = np.tanh(now + 0.5 * earlier + value), now
                states.append(before)
            expected.append(np.array(states))
        close(h.eval({x: data}, device=device), expected)


def test_minibatches_of_many_sizes_share_the_memory(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(2, dtype=np.float64)
    h = recurrence(lambda h: C.tanh(h + x))
    for count in (3, 1, 8, 2, 8, 3):
        data = sequences(2, lengths=RNG.integers(1, 12, count).tolist())
        expected = [unrolled(lambda h, t, part=part: np.tanh(h + part[t]), part, lambda at: np.zeros(2), 1) for part in data]
        close(h.eval({x: data}, device=device), expected)


def test_threads_do_not_disturb_one_another(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(2, dtype=np.float64)
    h = recurrence(lambda h: C.tanh(h + x))
    minibatches = [sequences(2, lengths=RNG.integers(1, 9, 4).tolist()) for _ in range(24)]
    expected = [h.eval({x: data}, device=device) for data in minibatches]
    with ThreadPoolExecutor(4) as pool:
        for found, wanted in zip(pool.map(lambda data: h.eval({x: data}, device=device), minibatches), expected, strict=True):
            close(found, wanted)


def test_parts_of_a_state_that_are_put_together_in_another_order(device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable(4, dtype=np.float64, needs_gradient=True)
    first, second = C.placeholder(), C.placeholder()
    h = C.tanh(x + C.splice(C.sequence.past_value(second), C.sequence.past_value(first)))
    one, other = h[0:1], h[1:4]
    h.replace_placeholders({first: one.output, second: other.output})
    data = sequences(4)

    def step(before: Any, t: int, part: Any) -> Any:
        return np.tanh(part[t] + np.concatenate([before[1:], before[:1]]))

    expected = [unrolled(lambda before, t, part=part: step(before, t, part), part, lambda at: np.zeros(4), 1) for part in data]
    close(h.eval({x: data}, device=device), expected)
    check_gradients(h, {x: data}, [x], device)


def test_a_value_of_each_sequence_beside_steps_that_data_choose(device: DeviceDescriptor) -> None:
    x, b = C.sequence.input_variable((), dtype=np.float64, needs_gradient=True), C.input_variable((), dtype=np.float64, needs_gradient=True)
    kept = C.sequence.gather(x, C.greater(x, 0))
    h = recurrence(lambda h: 0.5 * h + kept * b)
    data, scale = [np.array([1.0, -2, 3]), np.array([4.0]), np.array([-1.0, 5, -6, 7])], np.array([1.0, 2, 3])
    close(h.eval({x: data, b: scale}, device=device), [np.array([1, 3.5]), np.array([8.0]), np.array([15, 28.5])])
    check_gradients(h, {x: data, b: scale}, [x, b], device)


# ---- what is refused ----


def test_an_initial_state_comes_from_outside() -> None:
    x, end = C.sequence.input_variable(1), C.placeholder()
    h = x + C.sequence.past_value(end, initial_state=C.sequence.past_value(end) + x * 3)
    h.replace_placeholders({end: h.output})
    with pytest.raises(ValueError, match="initial state depends on the recurrence that it begins"):
        h.eval({x: [np.ones((2, 1), np.float32)]})


def test_a_cycle_needs_a_delay() -> None:
    x, end = C.sequence.input_variable(2), C.placeholder()
    h = end + x
    h.replace_placeholders({end: h.output})
    with pytest.raises(ValueError, match=r"Plus.*cycle.*no delay \(past_value or future_value\).*test_recurrence.py"):
        h.eval({x: [np.ones((2, 2), np.float32)]})


def test_a_recurrence_steps_one_way() -> None:
    x, end = C.sequence.input_variable(2), C.placeholder()
    h = C.sequence.past_value(end) + C.sequence.future_value(end) + x
    h.replace_placeholders({end: h.output})
    with pytest.raises(ValueError, match="must step one way"):
        h.eval({x: [np.ones((2, 2), np.float32)]})


def test_whole_sequences_cannot_be_seen_from_within() -> None:
    x = C.sequence.input_variable(2)
    h = recurrence(lambda h: C.sequence.softmax(h + x))
    with pytest.raises(ValueError, match=r"Softmax.*cannot be a part of a recurrence"):
        h.eval({x: [np.ones((2, 2), np.float32)]})


def test_a_recurrence_runs_along_a_sequence_axis() -> None:
    x = C.sequence.input_variable(2)
    h = recurrence(lambda h: C.sequence.broadcast_as(C.sequence.last(h), x) + x)
    with pytest.raises(ValueError, match=r"\[#\].*cannot be a part of a recurrence"):
        h.eval({x: [np.ones((2, 2), np.float32)]})


def test_types_that_do_not_fit_are_told_when_the_cycle_closes() -> None:
    x, end = C.sequence.input_variable(2), C.placeholder()
    h = C.splice(C.sequence.past_value(end), x) * C.constant([1, 2, 3])
    with pytest.raises(ValueError, match="do not"):
        h.replace_placeholders({end: h.output})


@pytest.mark.parametrize("go_backwards", [False, True])
def test_the_shape_of_initial_states_is_inferred(go_backwards: bool) -> None:
    """Tokens that a network learns to begin its sequences with."""
    x, cell = C.sequence.input_variable(3), C.parameter((-1,), init=1, name="cell")
    hidden = C.parameter((-1,), init=1, name="hidden")
    result = C.layers.Recurrence(C.layers.LSTM(5), go_backwards, initial_state=(cell, hidden))(x)
    assert cell.shape == hidden.shape == (5,)
    assert result.eval({x: [np.ones((2, 3), np.float32)]})[0].shape == (2, 5)
    token = C.parameter((-1, -1), init=1)
    C.sequence.future_value(C.sequence.input_variable((2, 3)), token)
    assert token.shape == (2, 3)
