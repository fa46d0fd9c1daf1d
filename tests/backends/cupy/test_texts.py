"""Every text compiles for GPUs, and no kernel keeps registers in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from standin import nvrtc

import cntk as C
from cntk.backends.cupy import (
    attention,
    attention_text,
    csr,
    dropout,
    elements,
    features,
    features_text,
    folds,
    learner_kernels,
    philox,
    picking,
    pools,
    rows,
    segments,
    sequences,
)
from cntk.backends.cupy.compiler import OPTIONS, THREADS
from cntk.backends.cupy.places import Along
from cntk.core.common.dtypes import is_half
from cntk.core.common.windows import windows
from cntk.core.extension import plugins
from cntk.core.formulas.derivatives import gradient_of
from cntk.core.formulas.formula import operands, states_formula, value_of
from cntk.core.graph.graph import depth_first_search
from cntk.core.operators.elementwise import Elementwise
from cntk.core.operators.op import includes
from cntk.testing.ops import samples_of
from cntk.testing.samples import Trial

pytestmark = pytest.mark.skipif(bool(nvrtc.unavailable()), reason=nvrtc.unavailable())

MOST_REGISTERS = 128
"""More would leave fewer than two blocks of 256 threads to a multiprocessor."""

TYPES = (C.bfloat16, np.float16, np.float32, np.float64)
INDICES = {C.bfloat16: "unsigned int", np.float16: "unsigned int", np.float32: "unsigned long long", np.float64: "unsigned int"}
FULL, SAME_FOR_ALL, STRIDED = (
    (Along(7, 12), Along(3, 4), Along(4, 1)),
    (Along(7, 0), Along(3, 0), Along(4, 1)),
    (Along(7, 15), Along(3, 5), Along(4, 0)),
)


def of_attention(dtype: Any) -> Iterator[str]:
    """Each kernel, for each size of tiles, and narrow and wide operands, of matrices with a bias or a mask, and of sequences."""
    sizes = (32, 16) if dtype is np.float64 else (64, 32, 16)
    shapes = [(64, 64, own, "unsigned int") for own in sizes]
    shapes += [(3, 2, sizes[0], "unsigned int"), (128, 100, attention.ROWS_OF_LARGEST, "unsigned long long")]
    for depth, width, own, index in shapes:
        form = attention_text.Form(dtype, depth, width, own, "*scale", 3, biased=True, keeps_scores=True)
        in_sequences = attention_text.Form(dtype, depth, width, own, "0.125", in_sequences=True)
        masked = form._replace(biased=False, numbers=3, keeps_scores=False)
        for one in (form, masked, in_sequences) if own == sizes[0] else (form,):
            for name in attention_text.MATRICES:
                yield attention_text.text(name, one, index)


def of_elements(dtype: Any) -> Iterator[str]:
    """Each element-wise operator, forward and backward in one text, with sums over rows or without."""
    for number, (of, count) in enumerate(operators()):
        dy, y, *inputs = symbols = operands(2 + count)
        gradients = [gradient_of(of, i, dy, y, tuple(inputs)) for i in range(count) if includes(of.gradient_inputs, i)]
        read = [elements.Operand(one, None, (FULL, SAME_FOR_ALL, STRIDED)[i % 3]) for i, one in enumerate(symbols)]
        stores = [elements.Store(term, None, FULL) for term in (value_of(of, tuple(inputs)), *gradients)]
        yield elements.text(dtype, INDICES[dtype], (3, 4), read, stores, gradients if number % 2 else ())


def operators() -> list[tuple[Elementwise, int]]:
    """An operator of each class that states a formula, and how many operands it has in a sample."""
    found: dict[Any, tuple[Elementwise, int]] = {}
    for name in plugins.ops:
        function = plugins.ops.get(name)
        for sample in samples_of(function):
            for node in depth_first_search(Trial(function, sample, np.float32).result, lambda one: hasattr(one, "op"), -1):
                if isinstance(node.op, Elementwise) and states_formula(type(node.op)):
                    found[type(node.op)] = node.op, len(node.inputs)
    return list(found.values())


def of_features(dtype: Any) -> Iterator[str]:
    """Features side by side, and those with places, in packs and one by one."""
    wide = np.float32 if is_half(dtype) else dtype
    pack = features.PACK // np.dtype(dtype).itemsize
    for columns, width, packs in ((32, 1, 1), (1, 1, 49), (1, pack, 64)):
        for of_scale in {dtype, wide}:
            yield features_text.forward_text(dtype, INDICES[dtype], columns, width, packs, (of_scale, of_scale, wide, wide, np.float32))
            yield features_text.backward_text(dtype, INDICES[dtype], columns, width, packs, (of_scale, of_scale))


def of_folds(dtype: Any) -> Iterator[str]:
    """Each rule: over the last axis and over the first, short, long and in pieces."""
    for rule in (folds.TOTAL, folds.GREATEST, folds.LEAST, folds.LOG_TOTAL, folds.PLACE_OF_GREATEST):
        for outputs, terms in (([Along(7, 12)], [Along(12, 1)]), ([Along(12, 1)], [Along(7, 12)])):
            for shape in (folds.shape_of(7, 12, True), folds.shape_of(3, 10**6, False)):
                yield folds.text(dtype, dtype, INDICES[dtype], rule, outputs, terms, shape)
        yield folds.last_text(dtype, dtype, INDICES[dtype], rule, folds.shape_of(7, 100, False))
    yield folds.text(np.float64, dtype, INDICES[dtype], folds.TOTAL, [Along(12, 1)], [Along(7, 12)], folds.shape_of(12, 7, False))


def of_learners(dtype: Any) -> Iterator[str]:
    """Each rule, averaged or not; types of 16 bits are updated as float32."""
    rules = {one for one in vars(learner_kernels).values() if isinstance(one, learner_kernels.Rule)} if not is_half(dtype) else set()
    for rule in sorted(rules):
        yield learner_kernels.text(rule, dtype, False)
        if rule.leaves_multiplier:
            yield learner_kernels.text(rule, dtype, True)


def of_pools(dtype: Any) -> Iterator[str]:
    """Each kernel, for windows of two to four axes that reach into padding, leave out elements or fill the plane."""
    for dims, kernel, strides, padding in (
        ((112, 112), (3, 3), (2, 2), (True, True)),
        ((7, 7), (7, 7), (1, 1), (False, False)),
        ((40, 30, 20), (17, 3, 20), (5, 1, 1), (True, True, False)),
        ((6, 7, 8, 9), (2, 3, 2, 3), (1, 2, 3, 1), (True, False, True, True)),
    ):
        w = windows(dims, kernel, strides, (1,) * len(dims), padding)
        for name in pools.BODIES:
            yield pools.text(name, dtype, INDICES[dtype], w)


def of_random_numbers(dtype: Any) -> Iterator[str]:
    yield philox.uniform_text(dtype)
    yield philox.normal_text(dtype)
    yield dropout.text(dtype, FULL, STRIDED)


def of_rows(dtype: Any) -> Iterator[str]:
    """Rows of a warp and of a block, with classes together and apart."""
    for name in rows.BODIES:
        for classes, inner, places in ((10, 1, ("int", "int")), (5000, 3, ("long long", "long long"))):
            yield rows.text(name, dtype, classes, inner, INDICES[dtype], places)


def of_sparse_rows(dtype: Any) -> Iterator[str]:
    """Products of CSR rows, and sums of runs of narrow and wide rows."""
    for place in ("int", "long long"):
        yield csr.text(dtype, (place, place))
        for result in {dtype, np.float32, np.float64}:
            for columns in (1, 4, 32):
                yield segments.text(dtype, result, place, columns)


def of_sequences(dtype: Any) -> Iterator[str]:
    """Each kernel that goes over steps, for few columns and for many."""
    for name in sequences.BODIES:
        for columns in (1, 4, 32):
            yield sequences.text(name, dtype, columns)
    for fill in (picking.NONE, picking.ONE, picking.ROWS):
        yield picking.text(dtype, fill)
    for fill in (picking.ONE, picking.ROWS):
        yield picking.text_of_put(dtype, fill)


FAMILIES: dict[str, Callable[[Any], Iterator[str]]] = {
    "attention": of_attention,
    "elements": of_elements,
    "features": of_features,
    "folds": of_folds,
    "learners": of_learners,
    "pools": of_pools,
    "random numbers": of_random_numbers,
    "rows": of_rows,
    "sequences": of_sequences,
    "sparse rows": of_sparse_rows,
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_kernel_spills(family: str, dtype: Any) -> None:
    for text in dict.fromkeys(FAMILIES[family](dtype)):
        alone = f"__launch_bounds__({THREADS}, 1)" in text  # a block that has a multiprocessor to itself
        for report in nvrtc.reports(text, OPTIONS):
            assert report.spills == 0, report.text
            assert 0 < report.registers <= (255 if alone else MOST_REGISTERS), report.text


def test_spills_are_seen() -> None:
    text = """extern "C" __global__ void __launch_bounds__(1024, 2) spills(double *x) {
        double held[64];
        for (int i = 0; i < 64; ++i) held[i] = x[i * 1024 + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < 64; ++i) x[i * 1024 + threadIdx.x] = held[63 - i] * held[i];
    }"""
    assert nvrtc.compiled(text, "sm_90", ()).spills > 0
    with pytest.raises(ValueError, match="NVRTC cannot compile the text for sm_90"):
        nvrtc.compiled("nonsense", "sm_90", ())
