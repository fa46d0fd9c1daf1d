"""Connectionist temporal classification: against sums over all alignments, against CNTK's numbers and against PyTorch."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest
from hostile.alignments import in_time

import cntk as C
from cntk.core.common.dtypes import FLOAT_TYPES
from cntk.core.extension.device import DeviceDescriptor
from cntk.testing import assert_close
from cntk.testing.tolerances import VALUES

FEATURES = np.array(
    [
        [1.76, 0.40, 0.98, 2.24],
        [1.87, -0.98, 0.95, -0.15],
        [-0.10, 0.41, 0.14, 1.45],
        [0.76, 0.12, 0.44, 0.33],
        [1.49, -0.21, 0.31, -0.85],
        [-2.55, 0.65, 0.86, -0.74],
        [2.27, -1.45, 0.05, -0.19],
        [1.53, 1.47, 0.15, 0.38],
        [-0.89, -1.98, -0.35, 0.16],
        [1.23, 1.20, -0.39, -0.30],
        [-1.05, -1.42, -1.71, 1.95],
        [-0.51, -0.44, -1.25, 0.78],
    ]
)
CLASSES = 4
BLANK = 3

Labels = list[tuple[int, int]]
"""Step at which each label begins, and its class."""


def encoded(steps: int, labels: Labels, classes: int = CLASSES) -> Any:
    """What labels_to_graph takes: 2 where a label begins, 1 as long as it goes on."""
    array = np.zeros((steps, classes))
    begins = dict(labels)
    current = 0
    for step in range(steps):
        current = begins.get(step, current)
        array[step, current] = 2 if step in begins else 1
    return array


def criterion(dtype: Any = np.float64, classes: int = CLASSES, blank: int = BLANK, delay: int = -1) -> tuple[Any, Any, Any]:
    features = C.sequence.input_variable(classes, dtype, needs_gradient=True)
    labels = C.sequence.input_variable(classes, dtype)
    return labels, features, C.forward_backward(C.labels_to_graph(labels), features, blank, delay)


def cost(device: DeviceDescriptor, minibatch: list[tuple[Any, Labels]], dtype: Any = np.float64, **arguments: Any) -> float:
    labels, features, value = criterion(dtype, **arguments)
    return float(value.eval(fed(labels, features, minibatch, dtype), device=device))


def fed(labels: Any, features: Any, minibatch: list[tuple[Any, Labels]], dtype: Any) -> Any:
    return {
        features: [scores.astype(dtype) for scores, _ in minibatch],
        labels: [encoded(len(scores), found, scores.shape[1]).astype(dtype) for scores, found in minibatch],
    }


def log_softmax(scores: Any) -> Any:
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def summed(scores: Any, labels: Labels, blank: int, delay: int = -1) -> float:
    """Minus the logarithm of a sum over all ways to give each step a class."""
    logarithms, right = log_softmax(scores), [label for _, label in labels]
    paths = product(range(scores.shape[1]), repeat=len(scores))
    fitting = [path for path in paths if [c for c, _ in groupby(path) if c != blank] == right]
    allowed = [path for path in fitting if delay < 0 or in_time(path, labels, blank, delay)]
    return -np.log(sum(np.exp(sum(logarithms[step, c] for step, c in enumerate(path))) for path in allowed))


# ---- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        [],
        [(0, 0)],
        [(0, 0), (1, 1)],
        [(0, 0), (1, 0)],
        [(0, 1), (2, 0), (3, 1)],
        [(1, 0), (2, 0), (4, 0)],
        [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0)],
    ],
)
@pytest.mark.parametrize("blank", [0, 2])
def test_the_cost_is_that_of_all_alignments(labels: Labels, blank: int, device: DeviceDescriptor) -> None:
    moved = [(step, (label + blank + 1) % 3) for step, label in labels]
    scores = FEATURES[:5, :3]
    assert cost(device, [(scores, moved)], classes=3, blank=blank) == pytest.approx(summed(scores, moved, blank), rel=1e-10)


@pytest.mark.parametrize("delay", [0, 1, 2, 3, 10])
@pytest.mark.parametrize("labels", [[(0, 0)], [(0, 0), (2, 1)], [(1, 0), (3, 0)], [(0, 0), (1, 1), (3, 0)], [(0, 1), (1, 0), (2, 1)]])
def test_a_delay_constraint_leaves_out_late_alignments(labels: Labels, delay: int, device: DeviceDescriptor) -> None:
    scores = FEATURES[3:9, :3]
    right = summed(scores, labels, 2, delay)
    assert cost(device, [(scores, labels)], classes=3, blank=2, delay=delay) == pytest.approx(right, rel=1e-10)


@pytest.mark.parametrize(
    ("steps", "labels", "delay", "right"),
    [
        (12, [(0, 0), (2, 1), (6, 2)], -1, 9.31279),
        (12, [(0, 0), (2, 1), (6, 2)], 0, 10.05495),
        (12, [(0, 0), (2, 1), (6, 2)], 20, 9.31279),
        (12, [(0, 0), (3, 0), (6, 1)], -1, 7.61964),
        (12, [(0, 0), (3, 0), (6, 1)], 0, 8.96955),
        (12, [(2, 0), (5, 1), (9, 2)], 0, 9.44535),
        (12, [(4, 1)], -1, 14.58856),
        (12, [(0, 0), (1, 1)], 0, 12.09248),
        (8, [(0, 0), (1, 1), (2, 0), (3, 1)], -1, 4.75771),
        (8, [(0, 0), (1, 1), (2, 0), (3, 1)], 0, 9.68764),
        (6, [], -1, 10.42689),
    ],
)
def test_costs_are_cntks(steps: int, labels: Labels, delay: int, right: float, device: DeviceDescriptor) -> None:
    assert cost(device, [(FEATURES[:steps], labels)], delay=delay) == pytest.approx(right, abs=2e-5)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_costs_of_a_minibatch_add_up(dtype: Any, device: DeviceDescriptor) -> None:
    """Of sequences and labels of any lengths, in any order."""
    minibatch = [
        (FEATURES[:4] * 2, [(0, 1), (1, 0)]),
        (FEATURES, [(0, 0), (2, 1), (6, 2)]),
        (FEATURES[2:3], [(0, 2)]),
        (FEATURES[5:9], []),
        (FEATURES[:6], [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]),
    ]
    found = cost(device, minibatch, dtype)
    assert_close(dtype(found), sum(cost(device, [one]) for one in minibatch), tolerance=VALUES[dtype])


def test_samples_are_sequences_of_one_step(device: DeviceDescriptor) -> None:
    features, labels = C.input_variable(CLASSES, np.float64, needs_gradient=True), C.input_variable(CLASSES, np.float64)
    value = C.forward_backward(C.labels_to_graph(labels), features, BLANK)
    data = {features: FEATURES[:2], labels: np.array([[2.0, 0, 0, 0], [0, 2, 0, 0]])}
    gradient, found = value.grad(data, wrt=[features], outputs=[value.output], device=device)
    chosen = log_softmax(FEATURES[:2])
    assert float(found) == pytest.approx(-chosen[0, 0] - chosen[1, 1])
    np.testing.assert_allclose(gradient, np.exp(chosen) - np.eye(4)[:2], atol=1e-12)


def test_large_scores_do_not_overflow(device: DeviceDescriptor) -> None:
    """The number is CNTK's; all but one alignment are as good as impossible."""
    scores = [
        [227, -145, 5, -19],
        [153, 147, 15, 38],
        [-89, -198, -35, 16],
        [123, 120, -39, -30],
        [-105, -142, -171, 195],
        [-51, -44, -125, 78],
    ]
    assert cost(device, [(np.array(scores), [(0, 0), (2, 1), (4, 2)])], np.float32) == pytest.approx(168.05106, rel=1e-5)


# ---- gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, -2.5])
def test_costs_and_gradients_are_pytorchs(scale: float, device: DeviceDescriptor) -> None:
    torch = pytest.importorskip("torch", reason="costs and gradients are compared with PyTorch's")
    generator = np.random.default_rng(1)
    minibatch = []
    for steps, count in ((30, 6), (12, 0), (41, 12), (7, 3), (41, 1), (1, 1)):
        begins = sorted(generator.choice(steps, count, replace=False).tolist())
        minibatch.append((generator.normal(size=(steps, 6)) * 2, [(step, int(generator.integers(1, 4))) for step in begins]))
    labels, features, value = criterion(classes=6, blank=0)
    scaled = value * scale
    gradients, found = scaled.grad(fed(labels, features, minibatch, np.float64), wrt=[features], outputs=[scaled.output], device=device)

    tensors = [torch.tensor(scores, requires_grad=True) for scores, _ in minibatch]
    padded = torch.nn.utils.rnn.pad_sequence([torch.log_softmax(tensor, 1) for tensor in tensors])
    targets = torch.tensor([label for _, found in minibatch for _, label in found])
    lengths = [len(scores) for scores, _ in minibatch], [len(found) for _, found in minibatch]
    right = torch.nn.functional.ctc_loss(padded, targets, *lengths, blank=0, reduction="sum") * scale
    right.backward()
    assert float(found) == pytest.approx(right.item(), rel=1e-10)
    for actual, tensor in zip(gradients, tensors, strict=True):
        np.testing.assert_allclose(actual, tensor.grad, atol=1e-10)


@pytest.mark.parametrize("delay", [-1, 0, 1, 2])
def test_gradients_are_slopes(delay: int, device: DeviceDescriptor) -> None:
    labels, features, value = criterion(delay=delay)
    minibatch: list[tuple[Any, Labels]] = [(FEATURES[:8], [(0, 0), (1, 1), (5, 1)]), (FEATURES[8:], [(1, 2)])]
    gradients = value.grad(fed(labels, features, minibatch, np.float64), wrt=[features], device=device)
    direction, width = np.random.default_rng(1).normal(size=(8, CLASSES)), 1e-5
    moved = [[(FEATURES[:8] + move * direction, minibatch[0][1]), minibatch[1]] for move in (width, -width)]
    there, back = (cost(device, one, delay=delay) for one in moved)
    assert np.vdot(gradients[0], direction) == pytest.approx((there - back) / (2 * width), rel=1e-6)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_gradients_are_cntks(dtype: Any, device: DeviceDescriptor) -> None:
    labels, features, value = criterion(dtype)
    minibatch = [(FEATURES[:6], [(0, 0), (2, 1), (4, 2)])]
    (found,) = value.grad(fed(labels, features, minibatch, dtype), wrt=[features], device=device)
    assert found.dtype == dtype
    right = [
        [-0.10994, 0.07705, 0.13761, -0.10472],
        [-0.28373, 0.01474, 0.25080, 0.01819],
        [-0.03022, -0.15446, 0.14526, 0.03941],
        [0.28817, -0.37846, 0.13656, -0.04626],
        [0.63040, -0.24903, -0.32831, -0.05306],
        [0.01615, 0.39627, -0.41769, 0.00526],
    ]
    np.testing.assert_allclose(found, right, atol=2e-3 if dtype is np.float16 else 1e-5)


def test_labels_that_do_not_fit_cost_much_and_teach_nothing(device: DeviceDescriptor) -> None:
    """Three equal labels take five steps; the other sequence of the minibatch is learned from."""
    labels, features, value = criterion()
    fits: tuple[Any, Labels] = (FEATURES[:6], [(0, 0), (2, 1), (4, 2)])
    minibatch: list[tuple[Any, Labels]] = [(FEATURES[:4], [(0, 1), (1, 1), (2, 1)]), fits]
    gradients, found = value.grad(fed(labels, features, minibatch, np.float64), wrt=[features], outputs=[value.output], device=device)
    (alone,) = value.grad(fed(labels, features, [fits], np.float64), wrt=[features], device=device)
    assert float(found) == pytest.approx(1e11)
    np.testing.assert_array_equal(gradients[0], np.zeros((4, CLASSES)))
    np.testing.assert_allclose(gradients[1], alone, atol=1e-12)


def test_training_raises_the_probability_of_the_labels(device: DeviceDescriptor) -> None:
    features = C.sequence.input_variable(CLASSES)
    labels = C.sequence.input_variable(CLASSES)
    scores = C.times(features, C.parameter((CLASSES, CLASSES), init=C.uniform(0.1, seed=1), device=device))
    value = C.forward_backward(C.labels_to_graph(labels), scores, BLANK)
    trainer = C.Trainer(scores, (value, None), [C.sgd(scores.parameters, 0.1)])
    data = fed(labels, features, [(FEATURES[:6], [(0, 0), (2, 1), (4, 2)]), (FEATURES[6:], [(0, 1)])], np.float32)
    before = float(value.eval(data, device=device))
    for _ in range(20):
        trainer.train_minibatch(data, device=device)
    assert float(value.eval(data, device=device)) < before - 1.5


# ---- types -----------------------------------------------------------------------------------------


def test_the_loss_is_a_number_without_dynamic_axes() -> None:
    labels, _, value = criterion()
    assert value.shape == ()
    assert value.dynamic_axes == ()
    assert value.root_function.op_name == "ForwardBackward"
    assert value.root_function.attributes == {"BlankTokenId": BLANK, "DelayConstraint": -1}
    assert C.labels_to_graph(labels).root_function.op_name == "LabelsToGraph"


def test_sparse_labels_are_taken(device: DeviceDescriptor) -> None:
    from scipy.sparse import csr_matrix

    features, labels = C.sequence.input_variable(CLASSES), C.sequence.input_variable(CLASSES, is_sparse=True)
    value = C.forward_backward(C.labels_to_graph(labels), features, BLANK)
    sparse = csr_matrix(encoded(6, [(0, 0), (2, 1), (4, 2)]).astype(np.float32))
    found = value.eval({features: [FEATURES[:6].astype(np.float32)], labels: [sparse]}, device=device)
    assert float(found) == pytest.approx(3.54228, abs=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x, y: C.forward_backward(y, x, CLASSES), "the blank label must be one of the 4 classes, got 4"),
        (lambda x, y: C.forward_backward(y, x, -1), "the blank label must be one of the classes, got -1"),
        (lambda x, y: C.forward_backward(y, x, 0, -2), "the delay must be a number of steps, or -1"),
        (lambda x, y: C.forward_backward(C.sequence.input_variable(5), x, 0), "the same number of classes"),
        (lambda x, y: C.forward_backward(y, C.constant([1, 2, 3, 4]), 0), "labels and features must be sequences"),
        (lambda x, y: C.forward_backward(C.sequence.input_variable(4, sequence_axis=C.Axis("Q")), x, 0), "do not combine"),
    ],
)
def test_wrong_arguments_are_refused_by_name(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(C.sequence.input_variable(CLASSES), C.sequence.input_variable(CLASSES))
