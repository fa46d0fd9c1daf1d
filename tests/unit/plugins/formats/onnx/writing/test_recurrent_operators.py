"""Stacks of recurrent layers as ONNX's own operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ragged_models import LENGTHS, agree, operators, samples, sequences

import cntk as C


@pytest.mark.parametrize("lengths", [LENGTHS, (1,)], ids=str)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("kind", "op_type"), [("lstm", "LSTM"), ("gru", "GRU"), ("rnnReLU", "RNN"), ("rnnTanh", "RNN")])
def test_stacks(kind: str, op_type: str, bidirectional: bool, lengths: Any) -> None:
    x = C.sequence.input_variable(3, name="x")
    weights = C.parameter((C.InferredDimension, 4), init=C.uniform(0.5, seed=1))
    function = C.optimized_rnnstack(x, weights, 4, 2, bidirectional, kind)
    model = agree(function, {x: sequences(3, lengths)}, behind=1)
    assert operators(model).count(op_type) == 2
    agree(function, {x: sequences(3, (3, 3))}, lengths=False)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 1e-2), (np.float64, 1e-5)])
def test_element_types(dtype: Any, tolerance: float) -> None:
    x = C.sequence.input_variable(3, dtype=dtype, name="x")
    weights = C.parameter((C.InferredDimension, 4), init=C.uniform(0.5, seed=1), dtype=dtype)
    agree(C.optimized_rnnstack(x, weights, 4, 1, True, "gru"), {x: sequences(3, dtype=dtype)}, tolerance=tolerance)


def test_samples_are_sequences_of_one_step() -> None:
    x = C.input_variable(3, name="x")
    weights = C.parameter((C.InferredDimension, 4), init=C.uniform(0.5, seed=1))
    agree(C.optimized_rnnstack(x, weights, 4, 2, True, "lstm"), {x: samples(3)})
