"""Scaling: normalisation outside training, its factors in the weights before it, and what changes of these do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.run.evaluate import program_for

SAME = [False, True, True]
RANDOM = np.random.default_rng(7)


def normalized(x: Any, spatial: bool = False) -> Any:
    """Batch normalisation with scales, shifts and statistics that differ from channel to channel."""
    channels = x.shape[:1] if spatial else x.shape
    scale, bias, mean = (RANDOM.normal(size=channels).astype(x.dtype) for _ in range(3))
    variance = RANDOM.uniform(0.5, 2, channels).astype(x.dtype)
    return C.batch_normalization(
        x, C.parameter(init=scale, dtype=x.dtype), C.parameter(init=bias, dtype=x.dtype), C.constant(mean, dtype=x.dtype),
        C.constant(variance, dtype=x.dtype), spatial, running_count=C.constant(0, shape=(1,), dtype=x.dtype),
    )  # fmt: skip


def parameter(*shape: int) -> Any:
    return C.parameter(init=RANDOM.normal(size=shape).astype(np.float32))


def convolution(x: Any, **options: Any) -> Any:
    return C.convolution(parameter(4, 2, 3, 3), x, auto_padding=SAME, **options)


def names(f: Any) -> list[str]:
    return [name for instruction in program_for(f, f.outputs).instructions for name in instruction.op.op_name.split("+")]


def values(f: Any, data: Any) -> tuple[Any, Any]:
    """Results with this pass, and without any."""
    found = f.eval(data)
    C.debugging.set_passes([])
    plain = f.eval(data)
    C.debugging.set_passes()
    return found, plain


BEFORE: dict[str, tuple[tuple[int, ...], Callable[[Any], Any], bool, bool]] = {
    "product": ((3,), lambda x: C.times(x, parameter(3, 4)), False, True),
    "product and bias": ((3,), lambda x: C.times(x, parameter(3, 4)) + parameter(4), False, True),
    "bias and product": ((3,), lambda x: parameter(4) + C.times(x, parameter(3, 4)), False, False),
    "number for all": ((3,), lambda x: C.times(x, parameter(3, 4)) + parameter(1), False, True),
    "several axes": ((2, 3), lambda x: C.times(x, parameter(2, 3, 4, 5), output_rank=2), False, True),
    "channels of a product": ((2, 3), lambda x: C.times(x, parameter(2, 3, 4, 5), output_rank=2), True, True),
    "rows of a product": ((2, 3), lambda x: C.times(x, parameter(3, 4)), True, False),
    "transposed": ((3,), lambda x: C.times_transpose(x, parameter(4, 3)), False, True),
    "convolution": ((2, 5, 5), lambda x: convolution(x), True, True),
    "convolution and bias": ((2, 5, 5), lambda x: convolution(x) + parameter(4, 1, 1), True, True),
    "convolution and a bias for each place": ((2, 5, 5), lambda x: convolution(x) + parameter(4, 5, 5), True, True),
    "grouped": ((4, 5, 5), lambda x: convolution(x, groups=2), True, True),
    "places of a convolution": ((2, 5, 5), lambda x: convolution(x), False, False),
    "transposed convolution": ((2, 5, 5), lambda x: C.convolution_transpose(parameter(2, 4, 3, 3), x, auto_padding=SAME), True, False),
    "another operator": ((3,), C.exp, False, False),
    "nothing": ((3,), lambda x: x, False, False),
    "data in place of weights": ((3, 3), lambda x: C.times(x, x), False, False),
}


@pytest.mark.parametrize("before", list(BEFORE))
def test_normalization_moves_into_weights_where_it_can(before: str) -> None:
    shape, make, spatial, moves = BEFORE[before]
    x = C.input_variable(shape)
    f = C.tanh(normalized(make(x), spatial))
    found, plain = values(f, RANDOM.normal(size=(4, *shape)).astype(np.float32))
    np.testing.assert_allclose(found, plain, rtol=1e-5, atol=1e-5)
    assert "BatchNormalization" not in names(f)
    assert ("ElementTimes" not in names(f)) == moves


def test_of_double_precision_little_is_rounded() -> None:
    x = C.input_variable(3, dtype=np.float64)
    f = normalized(C.times(x, C.parameter(init=RANDOM.normal(size=(3, 4)), dtype=np.float64)))
    found, plain = values(f, RANDOM.normal(size=(4, 3)))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, plain, rtol=1e-13, atol=1e-13)


def test_what_others_read_stays() -> None:
    x = C.input_variable(3)
    product = C.times(x, parameter(3, 4))
    for f in (C.combine([normalized(product), product]), normalized(product) + C.exp(product)):
        data = RANDOM.normal(size=(4, 3)).astype(np.float32)
        found, plain = values(f, data)
        for of in f.outputs:
            np.testing.assert_allclose(*((one[of] if isinstance(one, dict) else one) for one in (found, plain)), rtol=1e-5, atol=1e-6)
        assert "ElementTimes" in names(f)


def test_shared_weights_are_scaled_for_each() -> None:
    x, w = C.input_variable(3), parameter(3, 4)
    f = normalized(C.times(x, w)) * normalized(C.times(C.exp(x), w))
    np.testing.assert_allclose(*values(f, RANDOM.normal(size=(4, 3)).astype(np.float32)), rtol=1e-5, atol=1e-6)


def test_two_of_them_move_into_the_same_weights() -> None:
    x = C.input_variable(3)
    f = normalized(normalized(C.times(x, parameter(3, 4))))
    np.testing.assert_allclose(*values(f, RANDOM.normal(size=(4, 3)).astype(np.float32)), rtol=1e-5, atol=1e-6)
    assert names(f) == ["Times", "Plus"]


def test_training_goes_on_with_statistics_of_the_minibatch_and_evaluation_follows() -> None:
    x, y = C.input_variable((2, 6, 6)), C.input_variable(3)
    f = C.layers.Sequential(
        [
            C.layers.Convolution2D((3, 3), 4, pad=True, bias=False),
            C.layers.BatchNormalization(map_rank=1, normalization_time_constant=3),
            C.relu,
            C.layers.Dense(3),
            C.layers.BatchNormalization(),
        ]
    )(x)
    trainer = C.Trainer(f, (C.squared_error(f, y), None), [C.momentum_sgd(f.parameters, 0.05, 0.9)])
    images, wanted = RANDOM.normal(size=(8, 2, 6, 6)).astype(np.float32), RANDOM.normal(size=(8, 3)).astype(np.float32)
    bound = f.bind(images.shape)
    before = None
    for _ in range(4):
        trainer.train_minibatch({x: images, y: wanted})
        found, plain = values(f, images)
        np.testing.assert_allclose(found, plain, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(bound(images), found)
        assert before is None or np.abs(found - before).max() > 1e-3
        before = found


def test_values_that_are_assigned_are_seen(tmp_path: Any) -> None:
    x = C.input_variable(3)
    f = normalized(C.times(x, parameter(3, 4)))
    data = RANDOM.normal(size=(4, 3)).astype(np.float32)
    f.eval(data)
    f.save(str(tmp_path / "model"))
    for variable in (*f.parameters, *f.constants):
        variable.value = np.abs(variable.value) + 1
        np.testing.assert_allclose(*values(f, data), rtol=1e-5, atol=1e-5)
    f.restore(str(tmp_path / "model"))
    np.testing.assert_allclose(*values(f, data), rtol=1e-5, atol=1e-5)


def test_checks_for_nan_name_the_normalization() -> None:
    x = C.input_variable(3)
    f = normalized(C.times(x, parameter(3, 4)))
    f.constants[0].value = np.full(4, np.nan, np.float32)
    C.debugging.set_checked_mode(True)
    try:
        with pytest.raises(ValueError, match="BatchNormalization"):
            f.eval(np.ones((1, 3), np.float32))
    finally:
        C.debugging.set_checked_mode(False)
