"""Expressions that become one operator: attention, in which forms, and when its parts stay apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common.thresholds import NEVER, overridden
from cntk.core.extension import plugins
from cntk.core.extension.device import backend_named
from cntk.core.program.program import Program
from cntk.core.run.evaluate import program_for
from cntk.plugins.ops.attention import Attention
from cntk.testing import assert_close

QUERIES, KEYS, DEPTH, WIDTH = 5, 7, 4, 3

HAS_KERNEL = plugins.kernel_place(Attention, "numpy") is not None
needs_kernel = pytest.mark.skipif(not HAS_KERNEL, reason="compiled loops are switched off")


def operands() -> tuple[Any, Any, Any]:
    return tuple(C.input_variable(shape) for shape in ((QUERIES, DEPTH), (KEYS, DEPTH), (KEYS, WIDTH)))  # type: ignore[return-value]


def names(*results: Any) -> list[str]:
    combined = C.combine(*results)
    return [instruction.op.op_name for instruction in program_for(combined, combined.outputs).instructions]


def product(q: Any, k: Any) -> Any:
    return C.times(q, C.transpose(k, (1, 0)))


FORMS: dict[str, Callable[[Any], Any]] = {
    "nothing more": lambda s: s,
    "times a number": lambda s: s * 0.5,
    "a number times": lambda s: 0.5 * s,
    "divided": lambda s: s / 2,
    "computed number": lambda s: s / C.sqrt(C.constant(DEPTH)),
    "mask of keys": lambda s: s * 0.5 + np.float32([0, 0, -1e9, 0, 0, -np.inf, 0]),
    "matrix first": lambda s: C.constant(np.eye(QUERIES, KEYS, dtype=np.float32)) + s / 2,
    "column": lambda s: s + C.parameter((QUERIES, 1), init=0.5),
    "single number": lambda s: s + C.parameter((), init=0.5),
}


@needs_kernel
@pytest.mark.parametrize("form", FORMS)
def test_attention_is_one_operator(form: str) -> None:
    q, k, v = operands()
    attended = C.times(C.softmax(FORMS[form](product(q, k)), axis=-1), v)
    assert [name for name in names(attended) if name != "Sqrt"] == ["Attention"]
    random = np.random.default_rng(1)
    data = {x: random.normal(size=(3, *x.shape)).astype(np.float32) for x in (q, k, v)}
    wanted, found = [q, k, v, *attended.parameters], []
    for passes in (None, []):
        C.debugging.set_passes(passes)
        gradients, value = C.reduce_sum(C.sin(attended)).grad(data, wrt=wanted, outputs=[attended.output])
        found.append([value, *(gradients[x] for x in wanted)])
    for joined, apart in zip(*found, strict=True):
        assert_close(joined, apart)


@needs_kernel
def test_keys_may_come_transposed() -> None:
    q, _, v = operands()
    assert names(C.times(C.softmax(C.times(q, C.input_variable((DEPTH, KEYS)))), v)) == ["Times", "Softmax", "Times"]
    assert names(C.times(C.softmax(C.times(q, C.input_variable((DEPTH, KEYS))), axis=1), v)) == ["Attention"]


@needs_kernel
def test_masks_of_unpacked_sequences_are_a_bias() -> None:
    x = C.sequence.input_variable(DEPTH)
    steps, mask = C.sequence.unpack(x, 0).outputs
    scores = product(steps, steps) * DEPTH**-0.5 + (mask - 1) * 1e9
    attended = C.to_sequence_like(C.times(C.softmax(scores, axis=-1), steps), x)
    assert names(attended) == ["UnpackSequenceOp", "Minus", "ElementTimes", "Attention", "ToSequenceLikeOp"]
    random = np.random.default_rng(2)
    data = [random.normal(size=(length, DEPTH)).astype(np.float32) for length in (3, 1, 6)]
    for ours, right in zip(attended.eval(data), C.sequence.attention(x, x, x).eval(data), strict=True):
        assert_close(ours, right)


def of_rows(q: Any, k: Any, v: Any) -> Any:
    return C.times(C.softmax(product(q, k)), v)


def of_columns(q: Any, k: Any, v: Any) -> Any:
    return C.times(C.softmax(product(q, k), axis=0), v)


def with_learned_scale(q: Any, k: Any, v: Any) -> Any:
    return C.times(C.softmax(product(q, k) * C.parameter((), init=1), axis=-1), v)


def with_scale_of_each_sample(q: Any, k: Any, v: Any) -> Any:
    return C.times(C.softmax(product(q, k) * C.reduce_sum(v, axis=(0, 1)), axis=-1), v)


def with_dropout(q: Any, k: Any, v: Any) -> Any:
    return C.times(C.dropout(C.softmax(product(q, k), axis=-1), 0.5), v)


def of_shared_values(q: Any, k: Any, v: Any) -> Any:
    return C.times(C.softmax(product(q, k), axis=-1), C.parameter((KEYS, WIDTH)))


def of_larger_bias(q: Any, k: Any, v: Any) -> Any:
    return C.times(C.softmax(product(C.slice(q, 0, 0, 1), k) + np.zeros((QUERIES, KEYS), np.float32), axis=-1), v)


APART = [of_rows, of_columns, with_learned_scale, with_scale_of_each_sample, of_shared_values, of_larger_bias]


@pytest.mark.parametrize("attended", APART)
def test_what_is_no_attention_stays_apart(attended: Callable[..., Any]) -> None:
    assert "Attention" not in names(attended(*operands()))


def test_dropout_of_weights_keeps_the_parts_apart_in_training_alone() -> None:
    attended = with_dropout(*operands())
    program = program_for(attended, attended.outputs, training=True)
    assert "Attention" not in [instruction.op.op_name for instruction in program.instructions]
    assert ("Attention" in names(attended)) == HAS_KERNEL


def test_results_that_are_asked_for_or_read_elsewhere_stay_apart() -> None:
    q, k, v = operands()
    scores = product(q, k) * 0.5
    weights = C.softmax(scores, axis=-1)
    attended = C.times(weights, v)
    for other in (scores, weights, C.reduce_sum(scores), C.relu(weights)):
        assert "Attention" not in names(attended, other)


@needs_kernel
def test_the_parts_stay_apart_in_checked_mode_without_kernel_and_for_long_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    attended = of_attention()
    numpy = backend_named("numpy")
    assert [i.op.op_name for i in Program(attended.outputs, numpy).instructions] == ["Attention"]
    assert len(Program(attended.outputs, numpy, checked=True).instructions) == 3
    with overridden(attention_apart=DEPTH):
        assert len(Program(attended.outputs, numpy).instructions) == 3
    monkeypatch.setattr(plugins, "kernel_place", lambda *_: None)
    assert len(Program(attended.outputs, numpy).instructions) == 3


def of_attention() -> Any:
    q, k, v = operands()
    return C.times(C.softmax(product(q, k), axis=-1), v)


@needs_kernel
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_short_types_stay_apart(dtype: Any) -> None:
    q, k, v = (C.input_variable(shape, dtype=dtype) for shape in ((QUERIES, DEPTH), (KEYS, DEPTH), (KEYS, WIDTH)))
    assert ("Attention" in names(C.times(C.softmax(product(q, k), axis=-1), v))) == (dtype is np.float32)


@needs_kernel
@pytest.mark.parametrize("size", [0, NEVER], ids=["loops", "NumPy"])
def test_a_constant_that_changes_counts_at_the_next_call(size: int) -> None:
    q, k, v = operands()
    scale = C.constant(1.0)
    attended = C.times(C.softmax(product(q, k) * scale, axis=-1), v)
    random = np.random.default_rng(3)
    data = {x: random.normal(size=(2, *x.shape)).astype(np.float32) for x in (q, k, v)}
    with overridden(attention_compiled=size):
        before = attended.eval(data)
        scale.value = np.float32(0)
        assert_close(attended.eval(data), np.broadcast_to(data[v].mean(axis=1, keepdims=True), before.shape))
        assert np.abs(attended.eval(data) - before).max() > 0.01
