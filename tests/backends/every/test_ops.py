"""Every registered operator, on every backend, is checked on the samples that it carries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import pytest
from shares import share

from cntk.core.common.dtypes import float_types
from cntk.core.extension import plugins
from cntk.core.extension.device import DeviceDescriptor
from cntk.core.operators.samples import Sample
from cntk.testing.gradients import check_gradients
from cntk.testing.kernels import check_kernels
from cntk.testing.ops import check_documented, check_minibatches, check_on_sequences, check_values, samples_of
from cntk.testing.recurrences import check_in_recurrences
from cntk.testing.samples import describe
from cntk.testing.sparse import check_sparse_operands

SAMPLES = [(name, sample) for name in plugins.ops for sample in samples_of(plugins.ops.get(name))]

SHARE = [case for _, cases in groupby(SAMPLES, key=itemgetter(0)) for case in share(list(cases), 2)]
"""Of each operator the first sample, and every second that follows."""


def of_samples(cases: Sequence[tuple[str, Sample]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("name", "sample"), cases, ids=[describe(plugins.ops.get(name), sample) for name, sample in cases])


@pytest.mark.parametrize("name", plugins.ops.names())
def test_it_carries_samples_and_an_example(name: str) -> None:
    check_documented(plugins.ops.get(name))


@of_samples(SAMPLES)
def test_results_are_right_in_every_type(name: str, sample: Sample, device: DeviceDescriptor) -> None:
    for dtype in float_types():
        check_values(plugins.ops.get(name), sample, dtype, device)


@of_samples(SAMPLES)
def test_gradients_agree_with_finite_differences(name: str, sample: Sample, device: DeviceDescriptor) -> None:
    check_gradients(plugins.ops.get(name), sample, device)


@of_samples(SAMPLES)
def test_what_else_is_in_a_minibatch_does_not_matter(name: str, sample: Sample, device: DeviceDescriptor) -> None:
    check_minibatches(plugins.ops.get(name), sample, device)


@of_samples(SAMPLES)
def test_sequences_are_worked_off_step_by_step(name: str, sample: Sample, device: DeviceDescriptor) -> None:
    check_on_sequences(plugins.ops.get(name), sample, device)


@of_samples(SHARE)
def test_a_recurrence_is_its_unrolling(name: str, sample: Sample, device: DeviceDescriptor) -> None:
    check_in_recurrences(plugins.ops.get(name), sample, device)


@of_samples(SAMPLES)
def test_sparse_operands_are_dense_ones(name: str, sample: Sample, device: DeviceDescriptor) -> None:
    check_sparse_operands(plugins.ops.get(name), sample, device)


@of_samples(SAMPLES)
def test_kernels_compute_what_operators_do(name: str, sample: Sample, device: DeviceDescriptor) -> None:
    check_kernels(plugins.ops.get(name), sample, device)
