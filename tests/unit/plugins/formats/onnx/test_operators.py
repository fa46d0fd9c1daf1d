"""Every registered operator is written as ONNX, on each of its samples, and ONNX Runtime computes what we do; some are refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from exported import TOLERANCES, Exported, check_trial

import cntk as C
from cntk.core.extension import plugins
from cntk.core.graph.graph import depth_first_search
from cntk.core.operators.samples import Sample
from cntk.plugins.formats.onnx.format import Onnx
from cntk.plugins.formats.onnx.writing import model
from cntk.plugins.formats.onnx.writing.model import ModelWriter, UnsupportedOperators
from cntk.plugins.ops.convolution import Convolution, ConvolutionTranspose
from cntk.plugins.ops.ctc import ForwardBackward, LabelsToGraph
from cntk.plugins.ops.edit_distance import EditDistanceError
from cntk.plugins.ops.identity import Assign
from cntk.plugins.ops.noise_contrastive import NoiseContrastiveEstimation
from cntk.plugins.ops.normalization import LocalResponseNormalization
from cntk.plugins.ops.pooling import Pooling, Unpooling
from cntk.plugins.ops.random_distribution import RandomDistribution
from cntk.plugins.ops.random_sampling import RandomSample, RandomSampleInclusionFrequency
from cntk.plugins.ops.ranking import LambdaRank, Ndcg
from cntk.plugins.ops.rnnstack import OptimizedRNNStack
from cntk.plugins.ops.roipooling import ROIPooling
from cntk.plugins.ops.trigonometry import Acos, Asin, Asinh, Atan, Atanh, Cosh, Sinh, Tan
from cntk.testing.ops import samples_of
from cntk.testing.samples import Trial, as_sequences, describe, repetition_is_meant
from cntk.testing.tolerances import Tolerance

REFUSED: tuple[type, ...] = (
    Assign,
    EditDistanceError,
    ForwardBackward,
    LabelsToGraph,
    LambdaRank,
    Ndcg,
    NoiseContrastiveEstimation,
    RandomSample,
    RandomSampleInclusionFrequency,
)
"""Operators that exist for training, and for measuring it."""
SINGLE: tuple[type, ...] = (
    Acos,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Convolution,
    ConvolutionTranspose,
    Cosh,
    LocalResponseNormalization,
    OptimizedRNNStack,
    Pooling,
    ROIPooling,
    Sinh,
    Tan,
    Unpooling,
)
"""Operators that ONNX Runtime has for float32 alone, so that float64 is cast."""
NOT_RUN: tuple[type, ...] = (RandomDistribution, ROIPooling)
"""Operators that ONNX Runtime has up to version 21 of the operators, though their later versions are the same."""

SAMPLES = [(name, sample) for name in plugins.ops for sample in samples_of(plugins.ops.get(name))]
of_each_sample = pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[describe(plugins.ops.get(name), s) for name, s in SAMPLES])


def trials(name: str, samples: Iterator[Sample], dtype: Any) -> Iterator[Trial]:
    """Those trials of samples that we compute, and that are not refused.

    Raises:
        AssertionError: one is written that should be refused.
    """
    for sample in samples:
        try:
            trial = Trial(plugins.ops.get(name), sample, dtype)
            trial.evaluate()
        except (ValueError, TypeError, RuntimeError):
            continue  # such operands may not be sequences
        if has(trial, REFUSED):
            with pytest.raises(UnsupportedOperators, match=r"(?s)outputs=.*\[built at .*:\d+\]"):
                Exported(trial.result, outputs=list(trial.result.outputs))
        else:
            yield trial


def has(trial: Trial, kinds: tuple[type, ...]) -> bool:
    """Whether there is an operator of one of several classes."""
    nodes = depth_first_search(trial.result, lambda node: isinstance(getattr(node, "op", None), kinds), depth=-1)
    return bool(nodes)


@of_each_sample
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_results_agree(name: str, sample: Sample, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for trial in trials(name, iter([sample]), dtype):
        if has(trial, SINGLE):
            monkeypatch.setitem(TOLERANCES, np.dtype(np.float64), Tolerance(1e-6, 1e-6))
        check_trial(trial)


@of_each_sample
@pytest.mark.filterwarnings("ignore:.* is given as")
def test_files_come_back(name: str, sample: Sample) -> None:
    for trial in trials(name, iter([sample]), np.float32):
        function, feed = trial.result, trial.feed()
        data = b"".join(map(bytes, Onnx.write(function, outputs=list(function.outputs))))
        back = Onnx.read(data, None, name)
        found = back.eval({new: feed[old] for new, old in zip(back.arguments, function.arguments, strict=True)}, list(back.outputs))
        for result, wanted in zip(numbers(found), numbers(function.eval(feed, list(function.outputs))), strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-6)


def numbers(values: Any) -> list[Any]:
    """All numbers of results, those of sequences one after another."""
    found = values.values() if isinstance(values, dict) else [values]
    parts = [part for value in found for part in (value if isinstance(value, list) else [value])]
    return [part.toarray() if hasattr(part, "toarray") else np.asarray(part) for part in parts]


@of_each_sample
@pytest.mark.parametrize("factor", [0, -1, 100])
def test_other_numbers(name: str, sample: Sample, factor: float) -> None:
    for trial in trials(name, iter([sample]), np.float32):
        trial.assign([value if operand.sparse else factor * value for operand, value in zip(sample.operands, trial.values, strict=True)])
        try:
            trial.evaluate()
        except (ValueError, RuntimeError):
            continue  # they are no numbers of elements, or no weights, or leave sequences without a step
        check_trial(trial)


@of_each_sample
def test_steps_of_sequences_are_rows(name: str, sample: Sample) -> None:
    for trial in trials(name, (sequences for sequences, _ in as_sequences(sample)), np.float32):
        check_trial(trial)


@of_each_sample
def test_what_is_behind_the_end_of_a_sequence_does_not_matter(name: str, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelWriter, "_unused_axes", lambda self: set())  # all sequences are [batch, time, ...]
    for trial in trials(name, (sequences for sequences, _ in as_sequences(sample)), np.float32):
        check_trial(trial)


@of_each_sample
def test_sparse_operands_may_be_indices(name: str, sample: Sample) -> None:
    if any(operand.sparse for operand in sample.operands):
        every = [sample, *(sequences for sequences, _ in as_sequences(sample))]
        for trial in trials(name, iter(every), np.float32):
            check_trial(trial, sparse="indices")


@of_each_sample
@pytest.mark.parametrize("opset", [model.OLDEST, model.NEWEST])
def test_versions_of_operators(name: str, sample: Sample, opset: int) -> None:
    for trial in trials(name, iter([sample]), np.float32):
        if opset == model.NEWEST and has(trial, NOT_RUN):
            Exported(trial.result, outputs=list(trial.result.outputs), opset=opset)
        else:
            check_trial(trial, opset=opset)


@of_each_sample
def test_steps_of_recurrences(name: str, sample: Sample) -> None:
    on_sequences = [sample] if any(operand.kind == "sequence" for operand in sample.operands) else []
    every = [*on_sequences, *(sequences for sequences, _ in as_sequences(sample))]
    for delay in (C.sequence.past_value, C.sequence.future_value):
        for trial in trials(name, iter(every), np.float32):
            recurrence = in_a_recurrence(name, trial, delay)
            if recurrence is not None:
                trial.result = recurrence
                check_trial(trial)


def in_a_recurrence(name: str, trial: Trial, delay: Any) -> Any:
    """A recurrence of which a step is a trial's operator, with the state before in its first operand; None if it cannot be one."""
    fed = next((i for i, operand in enumerate(trial.sample.operands) if operand.kind == "sequence" and not operand.sparse), None)
    if fed is None:
        return None
    end, variables = C.placeholder(()), list(trial.variables)
    before = delay(end, 0.25)
    x = variables[fed]
    variables[fed] = x * (1 + 0.1 * C.sin(before)) if trial.sample.operands[fed].gradient else x + 0 * before
    try:
        with repetition_is_meant():
            result = trial.sample.build(plugins.ops.get(name), variables)
            state = C.sin(sum(C.reduce_sum(C.sin(output)) for output in result.outputs)) + 0.5 * before
            recurrence = state.replace_placeholders({end: state.output})
            recurrence.eval(trial.feed())
    except (ValueError, TypeError, RuntimeError):
        return None  # it looks at whole sequences, or makes others
    return recurrence
