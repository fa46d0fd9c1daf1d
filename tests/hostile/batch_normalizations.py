"""Batch normalisation against its formula in double precision: values, gradients and running statistics, on all paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import paths
from bounds import UNIT, check, sum_unit

import cntk as C

ROUNDINGS = 64
"""Errors may be so many roundings of the sum of the terms' magnitudes: some hundred terms of a block are added one after another."""

PLACES = ((), (1,), (7,), (100,), (57, 5), (1, 1), (13, 13), (28, 28), (57, 57), (5, 4, 3))
CHANNELS = (1, 1, 2, 3, 8, 16, 17, 33)
ROWS = (1, 2, 3, 7, 16, 33, 200)


def trial(random: np.random.Generator) -> str:
    """A minibatch of images, in training or after it."""
    path = str(random.choice(paths.PATHS))
    dtype = (np.float32, np.float32, np.float64, np.float16)[random.integers(4)]
    is_training = bool(random.random() < 0.8)
    with paths.on(path):
        (_training if is_training else _inference)(random, dtype)
    return f"{'training' if is_training else 'inference'}, {path}"


def _drawn(random: np.random.Generator, dtype: Any) -> tuple[Any, dict[str, Any], tuple[Any, ...], Any]:
    """The operand as users give it, arguments of the operator, scale and bias, and the gradient of the result."""
    places, channels, rows = PLACES[random.integers(len(PLACES))], int(random.choice(CHANNELS)), int(random.choice(ROWS))
    shape = (rows, channels, *places)
    spatial = bool(random.random() < 0.7)
    features = channels if spatial else int(np.prod(shape[1:]))
    far, size = (0.0, 1.0) if dtype is np.float16 else (float(random.choice([0, 0, 1, 30, 1000])), 10.0 ** random.integers(-4, 5))
    x = ((random.standard_normal(shape) + far) * size).astype(dtype)
    if random.random() < 0.1:
        x[:, 0] = x[0, 0].flat[0]  # a feature that is always the same
    scale, bias = (random.standard_normal(features).astype(dtype) for _ in range(2))
    settings = {"spatial": spatial, "epsilon": float(random.choice([1e-5, 1e-3, 1e-10])), "normalization_time_constant": 100}
    return x, settings, (scale, bias), random.standard_normal(shape).astype(dtype)


def _by_feature(array: Any, features: int) -> Any:
    """``(rows, features, places)`` in double precision, or a longer one for what is in double precision itself."""
    wide = np.longdouble if array.dtype == np.float64 else np.float64
    return np.asarray(array, wide).reshape(len(array), features, -1)


def _training(random: np.random.Generator, dtype: Any) -> None:
    x, settings, (scale, bias), dy = _drawn(random, dtype)
    features, over = scale.size, (0, 2)
    wide, up = _by_feature(x, features), _by_feature(dy, features)
    a, b = (vector.astype(wide.dtype).reshape(-1, 1) for vector in (scale, bias))
    count = wide.size // features
    mean = wide.mean(over, keepdims=True)
    variance = ((wide - mean) ** 2).mean(over, keepdims=True)
    inverse = 1 / np.sqrt(variance + settings["epsilon"])
    normal = (wide - mean) * inverse
    dscale, dbias = (up * normal).sum(over, keepdims=True), up.sum(over, keepdims=True)
    dx = a * inverse * (up - dbias / count - normal * dscale / count)

    # The mean is off by roundings of the numbers that it is of; that shifts all, and is in the variance by its square.
    unit = ROUNDINGS * sum_unit(dtype)
    shift = unit * np.abs(wide).mean(over, keepdims=True)
    stretch = unit + (shift * inverse) ** 2
    off = shift * inverse + (unit + stretch) * np.abs(normal)
    of_scale = (np.abs(up) * off).sum(over, keepdims=True) + unit * np.abs(up * normal).sum(over, keepdims=True)
    terms = np.abs(up) + np.abs(up).mean(over, keepdims=True) + np.abs(normal) * np.abs(up * normal).mean(over, keepdims=True)
    of_dx = np.abs(a) * inverse * ((unit + stretch) * terms + off * np.abs(dscale / count) + np.abs(normal) * of_scale / count)

    v, weight = C.input_variable(x.shape[1:], dtype, needs_gradient=True), C.input_variable(x.shape[1:], dtype)
    kept = np.float32 if dtype is np.float16 else dtype
    p, q = (C.parameter(init=vector.astype(kept), dtype=kept) for vector in (scale, bias))
    running = [C.constant(value, (features,), kept) for value in (0, 1)]
    y = C.batch_normalization(v, p, q, *running, running_count=C.constant(0.0, dtype=kept), **settings)
    gradients, value = (y * weight).grad({v: x, weight: dy}, wrt=[v, p, q], outputs=[y.output])
    what = f"{np.dtype(dtype)} {x.shape} {settings}"
    check(what, _narrow(value, features), a * normal + b, np.abs(a) * off + unit * (np.abs(a * normal) + np.abs(b)))
    check(f"{what}: gradient of images", _narrow(gradients[v], features), dx, of_dx)
    check(f"{what}: gradient of scales", gradients[p], dscale.reshape(-1), of_scale.reshape(-1))
    check(f"{what}: gradient of biases", gradients[q], dbias.reshape(-1), unit * np.abs(up).sum(over))
    correction = count / max(count - 1, 1)
    check(f"{what}: running mean", running[0].value, mean.reshape(-1), shift.reshape(-1))
    of_means = UNIT[np.float64] * np.abs(mean) * np.sqrt(variance)  # means of parts have been rounded before they are compared
    of_variance = (unit * variance + shift**2 + of_means) * correction + unit  # of 1, that it was at first
    check(f"{what}: running variance", running[1].value, (variance * correction).reshape(-1), of_variance.reshape(-1))


def _inference(random: np.random.Generator, dtype: Any) -> None:
    x, settings, (scale, bias), _ = _drawn(random, dtype)
    features = scale.size
    kept = np.float32 if dtype is np.float16 else dtype
    wide = _by_feature(x, features)
    mean = wide.mean((0, 2)).astype(kept)
    variance = (wide.var((0, 2)) + random.random()).astype(kept)
    a, b, m, s = (vector.astype(np.float64).reshape(-1, 1) for vector in (scale, bias, mean, variance))
    factor = a / np.sqrt(s + settings["epsilon"])
    v = C.input_variable(x.shape[1:], dtype)
    running = [C.constant(value, dtype=kept) for value in (mean, variance)]
    p, q = (C.parameter(init=vector.astype(kept), dtype=kept) for vector in (scale, bias))
    y = C.batch_normalization(v, p, q, *running, running_count=C.constant(9.0, dtype=kept), **settings)
    right = (wide - m) * factor + b
    last = 4 * sum_unit(dtype) * (np.abs(wide * factor) + np.abs(m * factor) + np.abs(b))  # what is added has been rounded
    check(f"inference {np.dtype(dtype)} {x.shape} {settings}", _narrow(y.eval({v: x}), features), right, last)


def _narrow(array: Any, features: int) -> Any:
    """``(rows, features, places)`` as it is."""
    return array.reshape(len(array), features, -1)
