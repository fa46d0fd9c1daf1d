"""Losses that are graphs of other operators."""

from __future__ import annotations

import numpy as np
import pytest

import cntk as C
from cntk.testing import assert_close


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize(("labels", "groups", "members"), [(4, None, 2), (7, None, 3), (7, 2, 4), (5, 5, 1)])
def test_hierarchical_softmax(labels: int, groups: int | None, members: int) -> None:
    x, label = C.input_variable(2, np.float64), C.input_variable(1, np.float64)
    probability, group_probs, label_probs = C.hierarchical_softmax_layer(x, label, labels, groups)
    parameters = {p.name: p.value for p in C.combine([probability]).parameters}
    assert set(parameters) == {"hsoftmax_w1", "hsoftmax_b1", "hsoftmax_w2s", "hsoftmax_b2s"}
    assert parameters["hsoftmax_w2s"].shape == (len(label_probs), 2, members)
    data = np.array([[0.5, -1], [2, 1], [-1, 0.3]])
    first = softmax(data @ parameters["hsoftmax_w1"] + parameters["hsoftmax_b1"])
    assert_close(group_probs.eval({x: data}), first)
    every = []
    for group, found in enumerate(label_probs):
        second = softmax(data @ parameters["hsoftmax_w2s"][group] + parameters["hsoftmax_b2s"][group])
        assert_close(found.eval({x: data}), second * first[:, group, None])
        every.append(second * first[:, group, None])
    for number in range(labels):
        found = probability.eval({x: data, label: np.full((3, 1), float(number))})
        assert found.shape == (3, 1, 1)
        assert_close(found[:, 0, 0], np.concatenate(every, axis=1)[:, number])


def test_hierarchical_softmax_learns() -> None:
    x, label = C.input_variable(3), C.input_variable(1)
    probability, _, _ = C.hierarchical_softmax_layer(x, label, 3)
    loss = -C.log(probability)
    feed = {x: np.eye(3, dtype=np.float32), label: np.array([[2], [0], [1]], np.float32)}
    trainer = C.Trainer(None, (loss, None), [C.sgd(loss.parameters, C.learning_parameter_schedule_per_sample(1))])
    for _ in range(100):
        trainer.train_minibatch(feed)
    assert (probability.eval(feed) > 0.9).all()


@pytest.mark.parametrize("beta", [0.5, 1, 2])
@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 3)])
def test_fmeasure_is_one_minus_its_definition(shape: tuple[int, ...], beta: float) -> None:
    o, t = C.input_variable(shape, np.float64), C.input_variable(shape, np.float64)
    generator = np.random.default_rng(2)
    output, target = generator.uniform(0.1, 1, (2, *shape)), generator.integers(0, 2, (2, *shape)).astype(np.float64)
    target[..., 0] = 1
    axes = (2, 3) if len(shape) == 3 else tuple(range(1, len(shape) + 1))
    hits = (output * target).sum(axes, keepdims=len(shape) == 3)
    precision = hits / output.sum(axes, keepdims=len(shape) == 3)
    recall = hits / target.sum(axes, keepdims=len(shape) == 3)
    right = 1 - (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    assert_close(C.fmeasure(o, t, beta).eval({o: output, t: target}), right)


def test_fmeasure_without_overlap_is_one() -> None:
    o = C.input_variable(2, needs_gradient=True)
    loss = C.fmeasure(o, [0, 1])
    assert_close(loss.eval({o: np.array([[1, 0]], np.float32)}), [1.0])
    assert_close(loss.grad({o: np.array([[1, 0]], np.float32)}), [[0.0, -1.0]])


def test_fmeasure_wants_equal_ranks() -> None:
    with pytest.raises(ValueError, match="as many axes"):
        C.fmeasure(C.input_variable(2), C.input_variable((1, 2)))


def test_lattices_are_refused_by_name() -> None:
    x = C.sequence.input_variable(3)
    with pytest.raises(NotImplementedError, match=r"lattice.*'states'.*'symbols'"):
        C.lattice_sequence_with_softmax(x, x, x, x, "symbols", "phones", "states", "transitions")
