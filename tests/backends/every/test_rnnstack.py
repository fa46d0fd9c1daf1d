"""optimized_rnnstack: values and gradients against formulas and against PyTorch, which has cuDNN's gates and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common.dtypes import FLOAT_TYPES
from cntk.core.extension.device import DeviceDescriptor
from cntk.testing import assert_close

GATES = {"lstm": 4, "gru": 3, "rnnReLU": 1, "rnnTanh": 1}
LENGTHS = [3, 1, 5, 2, 5]
INPUT, HIDDEN = 3, 4


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def step(kind: str, x: Any, h: Any, c: Any, of_x: Any, of_h: Any, bias_x: Any, bias_h: Any) -> tuple[Any, Any]:
    """State and cell after one step of one sequence."""
    given, kept = np.split(of_x @ x + bias_x, GATES[kind]), np.split(of_h @ h + bias_h, GATES[kind])
    if kind == "lstm":
        i, f, g, o = (a + b for a, b in zip(given, kept, strict=True))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if kind == "gru":
        r, z = sigmoid(given[0] + kept[0]), sigmoid(given[1] + kept[1])
        return (1 - z) * np.tanh(given[2] + r * kept[2]) + z * h, c
    total = given[0] + kept[0]
    return (np.tanh(total) if kind == "rnnTanh" else np.maximum(total, 0)), c


def reference(kind: str, layers: int, directions: int, flat: Any, sequence: Any) -> Any:
    """States of the last layer for one sequence."""
    rows, begin, parts = GATES[kind] * HIDDEN, 0, []
    matrices = [(rows, INPUT if layer == 0 else HIDDEN * directions) for layer in range(layers) for _ in range(directions)]
    for shape in [s for of_x in matrices for s in (of_x, (rows, HIDDEN))] + [(rows,)] * (2 * len(matrices)):
        size = int(np.prod(shape))
        parts.append(flat[begin : begin + size].reshape(shape))
        begin += size
    assert begin == flat.size
    for layer in range(layers):
        results = []
        for direction in range(directions):
            number = layer * directions + direction
            biases = 2 * len(matrices) + 2 * number
            weights = (*parts[2 * number : 2 * number + 2], *parts[biases : biases + 2])
            h, c, states = np.zeros(HIDDEN), np.zeros(HIDDEN), []
            for x in sequence[::-1] if direction else sequence:
                h, c = step(kind, x, h, c, *weights)
                states.append(h)
            results.append(np.array(states[::-1] if direction else states))
        sequence = np.concatenate(results, axis=1)
    return sequence


def stack(kind: str, layers: int, bidirectional: bool, dtype: Any) -> tuple[Any, Any, Any]:
    x = C.sequence.input_variable(INPUT, dtype, needs_gradient=True)
    weights = C.parameter((C.InferredDimension, INPUT), init=C.uniform(0.6, seed=1), dtype=dtype)
    return x, weights, C.optimized_rnnstack(x, weights, HIDDEN, layers, bidirectional, kind)


def sequences(width: int, dtype: Any, lengths: Any = LENGTHS) -> list[Any]:
    generator = np.random.default_rng(1)
    return [generator.normal(size=(steps, width)).astype(dtype) for steps in lengths]


every_stack = pytest.mark.parametrize(
    ("kind", "layers", "bidirectional"), [(kind, layers, both) for kind in GATES for layers in (1, 2, 3) for both in (False, True)]
)


@every_stack
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_a_stack_computes_what_its_formulas_say(kind: str, layers: int, bidirectional: bool, dtype: Any, device: DeviceDescriptor) -> None:
    x, weights, states = stack(kind, layers, bidirectional, dtype)
    data = sequences(INPUT, dtype)
    found = states.eval({x: data}, device=device)
    flat = weights.value.astype(np.float64).ravel()
    for sequence, actual in zip(data, found, strict=True):
        assert_close(actual, reference(kind, layers, 1 + bidirectional, flat, sequence.astype(np.float64)))


@every_stack
def test_gradients_are_those_of_pytorch(kind: str, layers: int, bidirectional: bool, device: DeviceDescriptor) -> None:
    torch = pytest.importorskip("torch", reason="gradients are compared with PyTorch's")
    x, weights, states = stack(kind, layers, bidirectional, np.float64)
    data, seeds = sequences(INPUT, np.float64), sequences(states.shape[0], np.float64)
    y = C.sequence.input_variable(states.shape, np.float64)
    found = (states * y).grad({x: data, y: seeds}, wrt=[x, weights], device=device)

    kinds = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
    options = {} if kind in kinds else {"nonlinearity": kind[3:].lower()}
    model = kinds.get(kind, torch.nn.RNN)(INPUT, HIDDEN, layers, bidirectional=bidirectional, dtype=torch.float64, **options)
    parameters = dict(model.named_parameters())
    suffixes = [f"l{layer}{way}" for layer in range(layers) for way in ("", "_reverse")[: 1 + bidirectional]]
    names = [f"{part}_{suffix}" for parts in (("weight_ih", "weight_hh"), ("bias_ih", "bias_hh")) for suffix in suffixes for part in parts]
    sizes = [parameters[name].numel() for name in names]
    with torch.no_grad():
        for name, values in zip(names, np.split(weights.value.ravel(), np.cumsum(sizes)[:-1]), strict=True):
            parameters[name].copy_(torch.tensor(values).reshape(parameters[name].shape))
    tensors = [torch.tensor(sequence, requires_grad=True) for sequence in data]
    packed, _ = model(torch.nn.utils.rnn.pack_sequence(tensors, enforce_sorted=False))
    padded, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    sum((padded[i, : len(seed)] * torch.tensor(seed)).sum() for i, seed in enumerate(seeds)).backward()

    for actual, tensor in zip(found[x], tensors, strict=True):
        np.testing.assert_allclose(actual, tensor.grad, atol=1e-12)
    right = np.concatenate([parameters[name].grad.numpy().ravel() for name in names])
    np.testing.assert_allclose(found[weights].ravel(), right, atol=1e-12)


@pytest.mark.parametrize("wanted", ["operand", "weights"])
def test_one_gradient_alone_is_the_same(wanted: str, device: DeviceDescriptor) -> None:
    x, weights, states = stack("gru", 2, True, np.float64)
    data = sequences(INPUT, np.float64)
    both = states.grad({x: data}, wrt=[x, weights], device=device)
    one = x if wanted == "operand" else weights
    alone = states.grad({x: data}, wrt=[one], device=device)
    for actual, right in zip(alone, both[one], strict=True):
        np.testing.assert_allclose(actual, right, rtol=1e-12, atol=1e-14)


def test_minibatches_of_other_lengths_follow_each_other(device: DeviceDescriptor) -> None:
    """Also ones with as many rows, and training passes in between."""
    x, weights, states = stack("lstm", 2, True, np.float64)
    flat = weights.value.ravel()
    for lengths in ([4, 2], [3, 3], [1, 5], [6], [4, 2]):
        data = sequences(INPUT, np.float64, lengths)
        gradient, value = states.grad({x: data}, wrt=[weights], outputs=[states.output], device=device)
        assert np.isfinite(gradient).all()
        for found in (value, states.eval({x: data}, device=device)):
            for sequence, actual in zip(data, found, strict=True):
                np.testing.assert_allclose(actual, reference("lstm", 2, 2, flat, sequence), atol=1e-12)


def test_samples_are_sequences_of_one_step(device: DeviceDescriptor) -> None:
    x = C.input_variable(INPUT, np.float64)
    weights = C.parameter((-1, -1), init=C.uniform(0.6, seed=1), dtype=np.float64)
    states = C.optimized_rnnstack(x, weights, HIDDEN, 2, True)
    data = np.random.default_rng(1).normal(size=(3, INPUT))
    found = states.eval({x: data}, device=device)
    for row, actual in zip(data, found, strict=True):
        np.testing.assert_allclose(actual, reference("lstm", 2, 2, weights.value.ravel(), row[None])[0], atol=1e-12)


# ---- types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [
        ((8, 2), (128, 8)),
        ((8, 2, True), (320, 8)),
        ((8, 1, False, "gru"), (42, 8)),
        ((8, 2, False, "rnnReLU"), (32, 8)),
    ],
)
@pytest.mark.parametrize("given", [(C.InferredDimension, 4), (C.InferredDimension, C.InferredDimension), (C.InferredDimension, 8)])
def test_the_shape_of_the_weights_is_inferred(given: Any, arguments: Any, shape: Any) -> None:
    """As CNTK infers it, whatever was given."""
    weights = C.parameter(given, init=C.glorot_uniform())
    states = C.optimized_rnnstack(C.sequence.input_variable(4), weights, *arguments)
    assert weights.shape == shape
    assert states.shape == (16 if arguments[2:3] == (True,) else 8,)
    assert weights.value.shape == shape


def test_the_shape_of_the_weights_is_inferred_when_the_operand_is_known() -> None:
    weights = C.parameter((C.InferredDimension, 4))
    states = C.optimized_rnnstack(C.placeholder(), weights, 8, 2, name="states")
    assert weights.shape == (-1, 4)
    assert states(C.sequence.input_variable(4)).shape == (8,)
    assert weights.shape == (128, 8)


def test_weights_of_any_shape_and_the_right_size_do() -> None:
    states = C.optimized_rnnstack(C.sequence.input_variable(4), C.parameter((256, 4)), 8, 2)
    assert states.root_function.op_name == "OptimizedRNNStack"
    assert states.root_function.attributes == {"bidirectional": False, "numLayers": 2, "hiddenSize": 8, "recurrentOp": "lstm"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x, w: C.optimized_rnnstack(x, w, 8, 1, recurrent_op="relu"), "unknown recurrent_op 'relu'"),
        (lambda x, w: C.optimized_rnnstack(x, w, 8, 0), "num_layers must be positive, got 0"),
        (lambda x, w: C.optimized_rnnstack(x, w, 0, 1), "hidden_size must be positive, got 0"),
        (lambda x, w: C.optimized_rnnstack(x, C.parameter((3, 3)), 8, 1), "but 448 numbers are needed"),
        (lambda x, w: C.optimized_rnnstack(C.sequence.input_variable((2, 3)), w, 8, 1), "must be a vector at each step"),
        (lambda x, w: C.optimized_rnnstack(C.constant([1, 2, 3, 4]), w, 8, 1), "must be sequences"),
    ],
)
def test_wrong_arguments_are_refused_by_name(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(C.sequence.input_variable(4), C.parameter((-1, -1)))
