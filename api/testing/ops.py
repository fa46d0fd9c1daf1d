"""The contract of an operator, checked on the samples that it carries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cntk.core.common.dtypes import float_types
from cntk.core.common.shape import FreeDimension
from cntk.core.extension.device import DeviceDescriptor, default_device
from cntk.core.operators.delay import Delay
from cntk.core.operators.effects import Finishing
from cntk.core.operators.samples import Sample
from cntk.core.operators.sequence_op import SequenceOp
from cntk.core.operators.view import GradientView, View
from cntk.testing.files import check_files
from cntk.testing.gradients import check_gradient_sums, check_gradients
from cntk.testing.kernels import check_kernels
from cntk.testing.recurrences import check_in_recurrences
from cntk.testing.samples import Trial, as_sequences, describe
from cntk.testing.sparse import check_sparse_operands
from cntk.testing.tolerances import VALUES, assert_close

METHODS_OF_KINDS: dict[str, type] = {
    "array_shape": SequenceOp,
    "decide_layout": SequenceOp,
    "fill": Delay,
    "finish": Finishing,
    "grad_view": GradientView,
    "make_layout": SequenceOp,
    "remember": Delay,
    "view": View,
}


def check_op(function: Callable[..., Any], device: DeviceDescriptor | None = None) -> None:
    """Check an operator on every sample that it carries.

    For each sample: results are right, or the same in every element type if the sample has no expected results; they have
    the element type of the operands; they do not depend on other samples of a minibatch; gradients agree with finite differences;
    all that holds step by step for sequences, if the operator takes them; a recurrence over it is its unrolling; sparse operands are
    dense ones; kernels compute what the operator's own methods do, in small minibatches and in large ones; and it is the same when it
    has been saved and loaded, cloned and pickled.

    Args:
        function: the public operator function, marked with ``operator``.
        device: where to compute, which is the default device meanwhile; the default device where None.

    Raises:
        AssertionError: it does not conform, carries no sample or has no example in its docstring.

    >>> from cntk.testing import check_op
    >>> check_op(C.sigmoid)
    """
    check_documented(function)
    check_kinds(function)
    with default_device(device):
        for sample in samples_of(function):
            for dtype in float_types():
                check_values(function, sample, dtype, device)
            check_minibatches(function, sample, device)
            check_gradients(function, sample, device)
            check_on_sequences(function, sample, device)
            check_in_recurrences(function, sample, device)
            check_sparse_operands(function, sample, device)
            check_files(function, sample, device)
            check_kernels(function, sample, device)


def check_on_sequences(function: Callable[..., Any], sample: Sample, device: DeviceDescriptor | None = None) -> None:
    """Require that a sample's call does for each step of sequences what it does for samples, in double precision.

    One of several operands may be left on the batch axis, and counts for every step then.  An operator that takes no sequence axis, or
    none beside a batch axis, says so when the graph is built; its sample declares it by ``sequences``.
    """
    for sequences, left in as_sequences(sample):
        is_refusal_due = sample.sequences == "none" or (sample.sequences == "all" and left is not None)
        try:
            trial = Trial(function, sequences, np.float64, device)
        except (ValueError, TypeError, RuntimeError) as error:
            if is_refusal_due and "sequence" in str(error):
                continue
            why = "but not for its sequence axis" if is_refusal_due else "which its sample does not declare"
            raise AssertionError(f"{describe(function, sequences)} is refused, {why}: {error}") from error
        if is_refusal_due:
            raise AssertionError(f"{describe(function, sequences)} is not refused, as its sample declares: sequences={sample.sequences!r}")
        if left not in trial.result.root_function.op.traits.layout_inputs:  # such an operand says which axes the result is on
            check_values(function, sequences, np.float64, device)
            check_gradients(function, sequences, device)


def samples_of(function: Callable[..., Any]) -> tuple[Sample, ...]:
    """The samples an operator function carries."""
    return getattr(function, "samples", ())


def check_documented(function: Callable[..., Any]) -> None:
    """Require at least one sample, and an example in the docstring."""
    name = getattr(function, "__name__", repr(function))
    if not samples_of(function):
        raise AssertionError(f"{name} carries no sample; mark it with @operator(sample(...))")
    if ">>>" not in (function.__doc__ or ""):
        raise AssertionError(f"{name} has no example (>>>) in its docstring")


def check_kinds(function: Callable[..., Any]) -> None:
    """Require that methods which count only in operators of a kind belong to one of that kind."""
    for sample in samples_of(function):
        op = Trial(function, sample, np.float64).result.root_function.op
        for method, kind in METHODS_OF_KINDS.items():
            if hasattr(op, method) and not isinstance(op, kind):
                raise AssertionError(
                    f"{describe(function, sample)}: {type(op).__name__} has the method {method}, but is not a {kind.__name__}, so it is "
                    f"not called; derive it from cntk.core.operators' {kind.__name__}"
                )


def check_values(function: Callable[..., Any], sample: Sample, dtype: Any, device: DeviceDescriptor | None = None) -> None:
    """Require the right results, of the operands' element type; those of sequences are compared one by one."""
    trial = Trial(function, sample, dtype, device)
    found = trial.evaluate()
    expected = trial.expected() or _in_double(function, sample, trial, device)
    for actual, right, output in zip(found, expected, trial.result.outputs, strict=True):
        message = f"{describe(function, sample)} in {np.dtype(dtype).name}"
        for one, its_right in zip(actual, right, strict=True) if output.dynamic_axes else [(actual, right)]:
            if one.dtype != dtype:
                raise AssertionError(f"{message}: the result is of type {one.dtype}")
            assert_close(_unpadded(one, its_right, output), its_right, message)


def _in_double(function: Callable[..., Any], sample: Sample, trial: Trial, device: DeviceDescriptor | None) -> list[Any]:
    """The results that the same values give in double precision."""
    double = Trial(function, sample, np.float64, device)
    double.assign(trial.values)
    return double.evaluate()


def _unpadded(padded: Any, alike: Any, output: Any) -> Any:
    """A sample's result with its free dimensions, which are as large as the minibatch makes them, cut to those of another."""
    inside = tuple(slice(None if dim != FreeDimension else have) for dim, have in zip(output.shape, np.shape(alike), strict=False))
    return padded[inside] if FreeDimension in output.shape else padded


def check_minibatches(function: Callable[..., Any], sample: Sample, device: DeviceDescriptor | None = None) -> None:
    """Require that it makes no difference which samples are in a minibatch, and in which order.

    A sample's results, and the gradients of its operands, are the same alone and among others; the gradients of operands without batch
    axis add up over minibatches.  Gradients are left out where the results in training depend on the minibatch (batch normalization)
    or on chance (dropout).
    """
    trial = Trial(function, sample, np.float32, device)
    if not trial.has_samples:
        return
    name, together = describe(function, sample), trial.evaluate()
    for samples in _minibatches(trial.rows):
        for whole, part, output in zip(together, trial.evaluate(samples), trial.result.outputs, strict=True):
            if not output.dynamic_axes:
                continue
            for number, one in zip(samples, part, strict=True):
                message = f"{name}: sample {number} gives another result in a minibatch of the samples {samples}"
                assert_close(one, _unpadded(whole[number], one, output), message, VALUES[np.float32])
    check_gradient_sums(function, sample, _minibatches(trial.rows), device)


def _minibatches(count: int) -> list[list[int]]:
    """Each sample alone, then all of them the other way round, and then all but the first, one of them twice."""
    alone = [[sample] for sample in range(count)]
    return [*alone, list(range(count))[::-1], [*range(1, count), count - 1]]
