"""Functions written as ONNX models, judged by ONNX's checker, and run by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from cntk.plugins.formats.onnx.format import Onnx
from cntk.testing.samples import LENGTHS, Trial, by_sample, pick
from cntk.testing.tolerances import Tolerance

onnx = pytest.importorskip("onnx", reason="ONNX's checker is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
onnxruntime.set_default_logger_severity(4)

TOLERANCES = {
    np.dtype(np.float16): Tolerance(1e-2, 1e-2),
    np.dtype(np.float32): Tolerance(1e-4, 1e-5),
    np.dtype(np.float64): Tolerance(1e-9, 1e-9),
}
"""How close results are to ours, by element type."""

OPEN = {"with_a_placeholder", "without_shapes"}
"""Models of the zoo that are not closed."""
REFUSED = {
    "assigned",
    "edit_distance",
    "labels_of_graph",
    "noise_contrastive",
    "ranking",
    "sampled_softmax",
    "user_function",
    "user_function_on_sequences",
}
"""Those with operators that exist for training, or with users' own."""


class Exported:
    """A function as an ONNX model, which the checker and strict inference of shapes have passed.

    Args:
        function: the function.
        options: those of ``save(..., format='onnx')``.
    """

    def __init__(self, function: Any, **options: Any) -> None:
        self.data = b"".join(bytes(piece) for piece in Onnx.write(function, **options))
        onnx.checker.check_model(self.data, full_check=True)
        self.model = onnx.shape_inference.infer_shapes(onnx.load_from_string(self.data), strict_mode=True, data_prop=True)

    @cached_property
    def session(self) -> Any:
        """ONNX Runtime with the model."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(self.data, options, providers=["CPUExecutionProvider"])

    @property
    def inputs(self) -> dict[str, list[int | str]]:
        """The sizes of the inputs by name."""
        return {one.name: one.shape for one in self.session.get_inputs()}

    @property
    def nodes(self) -> list[str]:
        """The operators of the outermost graph."""
        return [node.op_type for node in self.model.graph.node]

    def in_rows(self, name: str, sequences: Sequence[Any]) -> Any:
        """Sequences as an input takes them: step by step where no operator tells these apart, else padded."""
        return np.concatenate(sequences) if len(self.inputs.get(name, ())) == sequences[0].ndim else padded(sequences)

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        """The results for arrays by name; what is not an input of the model is left out.

        Raises:
            AssertionError: a result has other sizes than the model says.
        """
        results = self.session.run(None, {name: value for name, value in feed.items() if name in self.inputs})
        for output, result in zip(self.session.get_outputs(), results, strict=True):
            known = [(size, found) for size, found in zip(output.shape, result.shape, strict=True) if isinstance(size, int)]
            assert all(size == found for size, found in known), f"{output.name} is {output.shape} by the model, but {result.shape}"
        return list(results)


def padded(sequences: Sequence[Any]) -> Any:
    """Sequences as ``[batch, time, ...]``, with NaN behind their ends, which must make no difference."""
    arrays = [np.asarray(one) for one in sequences]
    anything = np.nan if arrays[0].dtype.kind == "f" else 0
    made = np.full((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), anything, arrays[0].dtype)
    for row, one in zip(made, arrays, strict=True):
        row[: len(one)] = one
    return made


def check_function(function: Any, *values: Any, **options: Any) -> Exported:
    """Require that the model of a function computes what it does, for all samples and for the last alone.

    Args:
        function: a function with one result, whose inputs have a batch axis.
        values: an array for each input, with a row for each sample, or a list of an array for each sequence.
        options: those of ``save(..., format='onnx')``.

    Raises:
        AssertionError: it does not.
    """
    model = Exported(function, **options)
    for first in (0, len(values[0]) - 1):
        feed: dict[str, Any] = {}
        for variable, value in zip(function.arguments, values, strict=True):
            chosen = value[first:]
            if isinstance(chosen, list):
                feed["sequence_lengths"] = np.array(list(map(len, chosen)), np.int64)
            name = variable.name or variable.uid
            feed[name] = model.in_rows(name, chosen) if isinstance(chosen, list) else chosen
        wanted = function.eval({variable: value[first:] for variable, value in zip(function.arguments, values, strict=True)})
        check_close(model.run(feed)[0], wanted, str(function))
    return model


def check_trial(trial: Trial, **options: Any) -> None:
    """Require that the model of a trial's function computes what it does, for all samples at once and for the second alone.

    Raises:
        AssertionError: it does not.
    """
    model = Exported(trial.result, outputs=list(trial.result.outputs), **options)
    for samples in (range(trial.rows), [1]) if trial.has_samples else (range(trial.rows),):
        expected = trial.evaluate(list(samples))
        for output, found, wanted in zip(trial.result.outputs, _results(model, trial, list(samples), options), expected, strict=True):
            check_close(found, wanted, f"{output}, {len(samples)} samples")


def _results(model: Exported, trial: Trial, samples: list[int], options: Mapping[str, Any]) -> list[Any]:
    feed: dict[str, Any] = {"sequence_lengths": np.array([LENGTHS[i] for i in samples if i < len(LENGTHS)], np.int64)}
    for operand, variable, value in zip(trial.sample.operands, trial.variables, trial.values, strict=True):
        if operand.kind != "parameter":
            rows = value if operand.kind == "static" else pick(by_sample(operand, value), samples)
            name = variable.name or variable.uid
            if options.get("sparse") == "indices" and operand.sparse:
                rows = [one.argmax(-1) for one in rows] if isinstance(rows, list) else rows.argmax(-1)
            feed[name] = model.in_rows(name, rows) if isinstance(rows, list) else rows
    results = model.run(feed)
    return results[: len(trial.result.outputs)]


def check_close(found: Any, wanted: Any, label: str) -> None:
    """Require that a result is near an array, or a list of an array for each sequence, behind which there are zeros.

    Raises:
        AssertionError: it is not.
    """
    if isinstance(wanted, list) and found.ndim == wanted[0].ndim:
        wanted = np.concatenate(wanted)
    if isinstance(wanted, list):
        for row, one in zip(found, wanted, strict=True):
            check_close(row[: len(one)], one, label)
            assert not row[len(one) :].any(), f"{label}: there are numbers behind the end of a sequence"
        return
    wanted = np.asarray(wanted)
    assert found.dtype == wanted.dtype, f"{label}: the results are {found.dtype}, not {wanted.dtype}"
    assert found.shape == wanted.shape, f"{label}: the results are {found.shape}, not {wanted.shape}"
    relative, absolute = TOLERANCES[wanted.dtype]
    np.testing.assert_allclose(found, wanted, rtol=relative, atol=absolute, err_msg=label)
